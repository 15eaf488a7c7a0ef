//! Those who are no members and come by: they send what is no message, or what looks like one.
//!
//! ```text
//!   election port  bytes │ half an introduction │ one, and a non-member's votes │ a hundred of them
//!   quorum port    bytes │ nothing │ an unknown learner, and what it says out of turn
//! ```
//!
//! They use their own ids, and ids that no server may use. Only where all voters are linked some claim to be one of them:
//! a connection that comes while a voter is missing, and says the voter's id, is believed, as ZooKeeper does; to prevent that is
//! up to the network around an ensemble.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, LearnerInfo, Mark, Notification, Packet, Request, Run};
use quorate_core::rng::Rng;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::application::KIND;
use crate::ensemble::Ensemble;
use crate::faults::FaultClass;
use crate::network::{Visit, hit, up_to};
use crate::record::What as Told;
use crate::world::{What, World};

/// How long a visit takes at most.
const VISIT_MAX: Duration = Duration::from_millis(1500);
/// How long a non-member waits who says something piece by piece.
const BETWEEN_PIECES: Duration = Duration::from_millis(10);
/// How many connections, or messages, a flood has at most.
const FLOOD_MAX: u64 = 150;

impl World {
    /// A non-member connects now, and others again and again.
    pub(super) fn on_non_member(&mut self) {
        let Some(every) = self.non_members else { return };
        let ids: Vec<_> = self.servers.keys().copied().collect();
        let target = ids[usize::try_from(self.rng.below(ids.len() as u64)).unwrap_or(0)];
        let plane = if self.rng.below(2) == 0 { Plane::Election } else { Plane::Quorum };
        let now = self.now();
        let crowd = if self.rng.below(20) == 0 {
            self.coverage.hit(FaultClass::HandshakeFlood);
            FLOOD_MAX / 2 + self.rng.below(FLOOD_MAX / 2)
        } else {
            1
        };
        for _ in 0..crowd {
            let non_member = Ensemble::non_member(self.rng.next_u64());
            let script =
                if crowd > 1 { silence(&mut self.rng) } else { self.script(non_member, plane) };
            let listens = self.rng.below(2) == 0;
            self.network.visit(now, Visit { non_member, target, plane, script, listens });
        }
        self.enter_network();
        let wait = up_to(&mut self.rng, 2 * every) + Duration::from_millis(1);
        self.agenda.after(wait, What::NonMember);
    }

    /// So many who are no members connect to a server at once, say these bytes one after the other, and are silent
    /// for a while before they go.
    pub(crate) fn visit(&mut self, target: i64, plane: Plane, pieces: &[Bytes], crowd: usize) {
        let (now, target) = (self.now(), ServerId(target));
        let bytes = pieces.iter().map(Bytes::len).sum();
        self.trace.note(now, target, || Told::Visit { crowd, plane, bytes });
        for _ in 0..crowd {
            let non_member = Ensemble::non_member(self.rng.next_u64());
            let mut script: Vec<_> =
                pieces.iter().map(|bytes| (BETWEEN_PIECES, bytes.clone())).collect();
            script.push((VISIT_MAX, Bytes::new()));
            self.network.visit(now, Visit { non_member, target, plane, script, listens: false });
        }
        self.enter_network();
    }

    /// A non-member connects to the election port of a server as `claimed`, says that it has the best of all votes, if it
    /// says anything, and goes after a while.
    pub(crate) fn claim(&mut self, target: i64, claimed: i64, votes: bool) {
        let (now, target, claimed) = (self.now(), ServerId(target), ServerId(claimed));
        let rng = &mut self.claims;
        let non_member = Ensemble::non_member(rng.next_u64());
        let addresses = vec![Ensemble::address(non_member, Plane::Election)];
        let said = Introduction { id: claimed, addresses };
        let introduction = match self.network.messages {
            true => wire::encode_generation_introduction(&said),
            false => wire::encode_introduction(&said),
        };
        let mut script = vec![(Duration::ZERO, introduction)];
        for _ in 0..if votes && !self.network.messages { 1 + rng.below(3) } else { 0 } {
            let states = [ServerState::Looking, ServerState::Following, ServerState::Leading];
            let state = states[usize::try_from(rng.below(3)).unwrap_or(0)];
            let last = Zxid::new(Epoch(99), Counter(9));
            let vote = Vote { peer_epoch: Epoch(99), zxid: last, leader: claimed };
            let round = Round(i64::try_from(rng.below(99)).unwrap_or(0));
            let notification = Notification {
                standing: Standing { state, vote, round },
                version: Notification::VERSION,
                config: Bytes::new(),
                mark: Mark::NONE,
            };
            let mut bytes = BytesMut::new();
            wire::encode_notification(&notification, &mut bytes);
            script.push((BETWEEN_PIECES, bytes.freeze()));
        }
        script.push((up_to(rng, VISIT_MAX), Bytes::new()));
        let (plane, listens) = (Plane::Election, rng.below(2) == 0);
        self.network.visit(now, Visit { non_member, target, plane, script, listens });
        self.enter_network();
    }

    fn script(&mut self, non_member: ServerId, plane: Plane) -> Vec<(Duration, Bytes)> {
        let rng = &mut self.rng;
        let mut script = match (rng.below(4), plane) {
            (0, _) => vec![noise(rng)],
            (_, Plane::Election) => {
                let id = match rng.below(8) {
                    0 => ServerId(-1 - i64::try_from(rng.below(9)).unwrap_or(0)),
                    1 => ServerId(i64::MAX),
                    _ => non_member,
                };
                let introduction = introduction(rng, id);
                let shown = if rng.below(6) == 0 { 9 } else { introduction.len() };
                vec![introduction.slice(..shown.min(introduction.len()))]
            }
            (_, Plane::Quorum) => Vec::new(),
        };
        let messages = if rng.below(10) == 0 {
            self.coverage.hit(FaultClass::MessageFlood);
            FLOOD_MAX + rng.below(FLOOD_MAX)
        } else {
            rng.below(6)
        };
        for at in 0..messages {
            let mut bytes = BytesMut::new();
            match plane {
                Plane::Election => wire::encode_notification(&notification(rng), &mut bytes),
                Plane::Quorum => wire::encode_packet(&packet(rng, non_member, at), &mut bytes),
            }
            script.push(bytes.freeze());
        }
        if rng.below(6) == 0 {
            script.push(noise(rng));
        }
        let each = VISIT_MAX / u32::try_from(script.len() + 1).unwrap_or(1);
        let mut script: Vec<_> =
            script.into_iter().map(|bytes| (up_to(rng, each), bytes)).collect();
        script.extend(silence(rng));
        script
    }
}

/// Nothing is said for a while, or for long.
fn silence(rng: &mut Rng) -> Vec<(Duration, Bytes)> {
    let most = if hit(rng, 0x2000) { 6 * VISIT_MAX } else { VISIT_MAX };
    vec![(up_to(rng, most), Bytes::new())]
}

/// Bytes that mean nothing; least of all the id of a member, with which a connection of ZooKeeper 3.4 begins.
fn noise(rng: &mut Rng) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u64((rng.next_u64() >> (8 * rng.below(8))).max(1 << 10));
    for _ in 0..rng.below(40) {
        bytes.put_u64(rng.next_u64() >> (8 * rng.below(8)));
    }
    bytes.freeze()
}

fn introduction(rng: &mut Rng, id: ServerId) -> Bytes {
    let address = match rng.below(3) {
        0 => Ensemble::address(id, Plane::Election),
        1 => HostPort { host: "0.0.0.0".to_owned(), port: 3888 },
        _ => HostPort { host: "nobody.example".to_owned(), port: 1 },
    };
    wire::encode_introduction(&Introduction { id, addresses: vec![address] })
}

/// A number that may be anything, mostly a likely one.
fn number(rng: &mut Rng) -> i64 {
    match rng.below(8) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => -1,
        3 => i64::from_be_bytes(rng.next_u64().to_be_bytes()),
        _ => i64::try_from(rng.below(9)).unwrap_or(0),
    }
}

fn epoch(rng: &mut Rng) -> Epoch {
    match rng.below(6) {
        0 => Epoch::MAX,
        1 => Epoch(Epoch::MAX.0 - 1),
        2 => Epoch(number(rng)),
        _ => Epoch(i64::try_from(rng.below(30)).unwrap_or(0)),
    }
}

fn zxid(rng: &mut Rng) -> Zxid {
    if rng.below(4) == 0 {
        return Zxid(number(rng));
    }
    let epoch = Epoch(i64::try_from(rng.below(12)).unwrap_or(0));
    Zxid::new(epoch, Counter(u32::try_from(rng.below(200)).unwrap_or(0)))
}

/// A non-member's vote, for any server.
fn notification(rng: &mut Rng) -> Notification {
    let states = [
        ServerState::Looking,
        ServerState::Following,
        ServerState::Leading,
        ServerState::Observing,
    ];
    let state = states[usize::try_from(rng.below(4)).unwrap_or(0)];
    let vote = Vote { peer_epoch: epoch(rng), zxid: zxid(rng), leader: ServerId(number(rng)) };
    let round = Round(number(rng));
    let config = match rng.below(4) {
        0 => noise(rng),
        // A membership of others, newer than anything.
        1 => Bytes::from_static(
            b"server.1=10.9.9.9:2888:3888:participant\nserver.200=10.0.0.200:2888:3888:participant\n\
              version=7fffffffffff",
        ),
        _ => Bytes::new(),
    };
    let version = i32::try_from(rng.below(4)).unwrap_or(0);
    let config = if version >= 2 { config } else { Bytes::new() };
    Notification { standing: Standing { state, vote, round }, version, config, mark: Mark::NONE }
}

/// What an unknown learner might say, and what it might not.
fn packet(rng: &mut Rng, non_member: ServerId, at: u64) -> Packet {
    if at == 0 && rng.below(4) > 0 {
        let id = if rng.below(4) == 0 { None } else { Some(non_member) };
        let info = LearnerInfo {
            accepted_epoch: epoch(rng),
            id,
            protocol: match rng.below(4) {
                0 => i32::try_from(rng.below(0x2_0000)).unwrap_or(0),
                1 => LearnerInfo::ours(LearnerInfo::PROTOCOL, 255, true),
                _ => LearnerInfo::PROTOCOL,
            },
            config_version: if rng.below(6) == 0 { number(rng) } else { 0 },
        };
        return if rng.below(2) == 0 {
            Packet::FollowerInfo(info)
        } else {
            Packet::ObserverInfo(info)
        };
    }
    let last = zxid(rng);
    match rng.below(14) {
        0 | 1 => Packet::AckEpoch { last, current_epoch: None },
        2 => Packet::AckEpoch { last, current_epoch: Some(last.epoch()) },
        3..=5 => Packet::Ack(last),
        6 => Packet::Acks(Run::one(last)),
        7 => Packet::Ping { zxid: last, sessions: Some(noise(rng)) },
        8 => Packet::Revalidate(noise(rng)),
        9 => {
            let id =
                RequestId { client: non_member.0 << 56 >> 1, cxid: i32::try_from(at).unwrap_or(0) };
            Packet::Request(Request { id, op: KIND, body: noise(rng), identities: None })
        }
        10 => Packet::Commit(last),
        11 => {
            let header = TxnHeader { client: 0, cxid: 0, time: 0, kind: KIND };
            Packet::Proposal(Txn { zxid: last, header, body: noise(rng) })
        }
        12 => Packet::snap(last),
        _ => Packet::UpToDate,
    }
}
