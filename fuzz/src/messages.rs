//! Arbitrary messages, written one after the other, come out of the bytes as they went in, however the bytes
//! arrive: on both ports, with the introduction before them.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::message::{
    Identity, Introduction, LearnerInfo, Mark, Notification, Packet, Request, Run,
};
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire::{
    decode_introduction, encode_introduction, encode_notification, encode_packet, take_notification,
};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::packet::{in_runs, one_by_one};

/// What is said, and where the bytes are torn apart.
#[derive(Arbitrary, Debug)]
struct Talk {
    id: i64,
    address: Option<(String, u16)>,
    notifications: Vec<Says>,
    packets: Vec<Sends>,
    at: u16,
}

#[derive(Arbitrary, Debug)]
struct Says {
    state: u8,
    vote: [i64; 3],
    round: i64,
    config: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Sends {
    Info {
        observer: bool,
        epoch: i32,
        id: Option<u32>,
        protocol: u16,
        config_version: i64,
    },
    LeaderInfo {
        epoch: i32,
        protocol: i32,
    },
    AckEpoch {
        last: i64,
        current: Option<u16>,
    },
    Plain {
        kind: u8,
        zxid: i64,
    },
    Run {
        commits: bool,
        epoch: u16,
        first: u16,
        many: u8,
    },
    NewLeader {
        zxid: i64,
        config: Vec<u8>,
    },
    Pong {
        zxid: i64,
        sessions: Vec<u8>,
    },
    Txn {
        kind: u8,
        leader: i64,
        txn: Transaction,
    },
    Request {
        client: i64,
        cxid: i32,
        op: i32,
        body: Vec<u8>,
        identities: Option<Vec<(String, String)>>,
    },
    Revalidate(Vec<u8>),
    Transfer {
        vote: [i64; 3],
        round: i64,
    },
    Lease {
        zxid: i64,
        ms: u32,
    },
}

#[derive(Arbitrary, Debug)]
struct Transaction {
    zxid: i64,
    client: i64,
    cxid: i32,
    time: i64,
    kind: i32,
    body: Vec<u8>,
}

fn vote([peer_epoch, zxid, leader]: [i64; 3]) -> Vote {
    Vote { peer_epoch: Epoch(peer_epoch), zxid: Zxid(zxid), leader: ServerId(leader) }
}

impl Says {
    fn notification(self) -> Notification {
        let states = [
            ServerState::Looking,
            ServerState::Following,
            ServerState::Leading,
            ServerState::Observing,
        ];
        let state = states[usize::from(self.state % 4)];
        let standing = Standing { state, vote: vote(self.vote), round: Round(self.round) };
        Notification {
            standing,
            version: Notification::VERSION,
            config: self.config.into(),
            mark: Mark(u32::from(self.state & 3)),
        }
    }
}

impl Sends {
    fn packet(self) -> Packet {
        match self {
            Self::Info { observer, epoch, id, protocol, config_version } => {
                let accepted_epoch = Epoch(i64::from(epoch));
                let id = id.map(|id| ServerId(i64::from(id)));
                // Without an id nothing else is said.
                let (protocol, config_version) = match id {
                    Some(_) => (LearnerInfo::PROTOCOL | i32::from(protocol), config_version),
                    None => (1, 0),
                };
                let info = LearnerInfo { accepted_epoch, id, protocol, config_version };
                if observer { Packet::ObserverInfo(info) } else { Packet::FollowerInfo(info) }
            }
            Self::LeaderInfo { epoch, protocol } => {
                Packet::LeaderInfo { epoch: Epoch(i64::from(epoch)), protocol }
            }
            Self::AckEpoch { last, current } => {
                let current_epoch = current.map(|epoch| Epoch(i64::from(epoch)));
                Packet::AckEpoch { last: Zxid(last), current_epoch }
            }
            Self::Plain { kind, zxid } => {
                let zxid = Zxid(zxid);
                match kind % 8 {
                    0 => Packet::Diff(zxid),
                    1 => Packet::Trunc(zxid),
                    2 => Packet::snap(zxid),
                    3 => Packet::UpToDate,
                    4 => Packet::Ack(zxid),
                    5 => Packet::Commit(zxid),
                    6 => Packet::Ping { zxid, sessions: None },
                    _ => Packet::Sync { tag: 0 },
                }
            }
            Self::Run { commits, epoch, first, many } => {
                let counter = Counter(u32::from(first) + 1);
                let first = Zxid::new(Epoch(i64::from(epoch)), counter);
                let run = Run { first, last: Zxid(first.0 + 1 + i64::from(many % 16)) };
                if commits { Packet::Commits(run) } else { Packet::Acks(run) }
            }
            Self::NewLeader { zxid, config } => {
                Packet::NewLeader { zxid: Zxid(zxid), config: config.into() }
            }
            Self::Pong { zxid, sessions } => {
                Packet::Ping { zxid: Zxid(zxid), sessions: Some(sessions.into()) }
            }
            Self::Txn { kind, leader, txn } => {
                let Transaction { zxid, client, cxid, time, kind: of, body } = txn;
                let (zxid, leader) = (Zxid(zxid), ServerId(leader));
                let header = TxnHeader { client, cxid, time, kind: of };
                let txn = Txn { zxid, header, body: body.into() };
                match kind % 4 {
                    0 => Packet::Proposal(txn),
                    1 => Packet::Inform(txn),
                    2 => Packet::CommitAndActivate { zxid, leader },
                    _ => Packet::InformAndActivate { leader, txn },
                }
            }
            Self::Request { client, cxid, op, body, identities } => {
                let identity = |(scheme, id)| Identity { scheme, id };
                let identities = identities.map(|pairs| pairs.into_iter().map(identity).collect());
                let id = RequestId { client, cxid };
                Packet::Request(Request { id, op, body: body.into(), identities })
            }
            Self::Revalidate(bytes) => Packet::Revalidate(bytes.into()),
            Self::Transfer { vote: of, round } => {
                Packet::Transfer { vote: vote(of), round: Round(round) }
            }
            Self::Lease { zxid, ms } => {
                let length = Duration::from_millis(u64::from(ms));
                let sessions = Bytes::from(vec![7; usize::from(ms % 3 == 0)]);
                Packet::Lease { zxid: Zxid(zxid), length, sessions }
            }
        }
    }
}

/// Says what these bytes describe.
pub fn feed(data: &[u8]) {
    let Ok(talk) = Talk::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let packets: Vec<_> = talk.packets.into_iter().map(Sends::packet).collect();
    let (mut bytes, mut singles) = (BytesMut::new(), Vec::new());
    for packet in packets {
        encode_packet(&packet, &mut bytes);
        one_by_one(packet, &mut singles);
    }
    assert_eq!(in_runs(&bytes, usize::from(talk.at)), singles);

    // Brackets are how an address is written, and part of no host.
    let written = |(host, _): &(String, u16)| !host.contains(['[', ']']);
    let addresses = talk.address.filter(written).map(|(host, port)| HostPort { host, port });
    let introduction =
        Introduction { id: ServerId(talk.id), addresses: addresses.into_iter().collect() };
    let notifications: Vec<_> = talk.notifications.into_iter().map(Says::notification).collect();
    let mut bytes = BytesMut::from(encode_introduction(&introduction));
    if bytes.len() == size_of::<i64>() && talk.id < 0 {
        // An id alone that is a protocol's number: no server has such an id.
        return;
    }
    for notification in &notifications {
        encode_notification(notification, &mut bytes);
    }
    let at = usize::from(talk.at).min(bytes.len());
    election_port(&introduction, &notifications, bytes.freeze(), at);
}

fn election_port(introduction: &Introduction, said: &[Notification], bytes: Bytes, at: usize) {
    let mut buf = BytesMut::from(&bytes[..at]);
    let (mut introduced, mut heard) = (false, Vec::new());
    for part in [&bytes[at..], &[]] {
        if !introduced {
            match decode_introduction(&mut buf) {
                Ok(Some(found)) => {
                    introduced = true;
                    assert_eq!(found.id, introduction.id);
                    if let [address] = &found.addresses[..] {
                        assert_eq!(introduction.addresses.first(), Some(address));
                    }
                }
                Ok(None) => {}
                // No server of ours has such an address, or such an id.
                Err(_) => return,
            }
        }
        if introduced {
            heard.extend(std::iter::from_fn(|| taken(&mut buf)));
        }
        buf.extend_from_slice(part);
    }
    assert!(introduced);
    assert_eq!(heard, said);
}

fn taken(buf: &mut BytesMut) -> Option<Notification> {
    take_notification(buf).unwrap_or_else(|error| panic!("{error}, in our own bytes"))
}
