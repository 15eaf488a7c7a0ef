//! One server under arbitrary events, in arbitrary order: whatever peers say and the network does, its
//! invariants hold and it promises nothing that is not on its disk.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Message, Notification, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Epoch, Zxid};

/// A run: who the server is, what its disk held, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    id: u8,
    accepted: u8,
    current: u8,
    reconfig: bool,
    events: Vec<Happens>,
}

/// Small numbers, so that they meet.
#[derive(Arbitrary, Debug)]
enum Happens {
    Time { ms: u16 },
    Due,
    Up { quorum: bool, dialled: bool, peer: u8 },
    Down { link: u8 },
    DialFailed { quorum: bool, peer: u8 },
    Persisted,
    Vote { link: u8, state: u8, leader: u8, epoch: u8, zxid: i8, round: u8, old: bool },
    Odd { link: u8, leader: i64, epoch: i64, zxid: i64, round: i64 },
    Info { link: u8, observer: bool, id: u8, epoch: i64, protocol: bool },
    Packet { link: u8, kind: u8, epoch: u8, counter: u8, current: i8 },
    StepDown,
    Oracle(bool),
}

fuzz_target!(|run: Run| {
    let text = "server.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\n\
                server.3=c:2888:3888:participant\nserver.4=d:2888:3888:observer\nversion=0";
    let membership = Membership::parse(text).expect("a good text");
    let mut config = Config::new(ServerId(i64::from(run.id % 5) + 1), membership);
    config.reconfig_enabled = run.reconfig;
    let accepted = Epoch(i64::from(run.accepted % 8));
    let current = Epoch(i64::from(run.current % 8)).min(accepted);
    let mut durable =
        Durable { accepted_epoch: accepted, current_epoch: current, last_zxid: Zxid::ZERO };
    let mut peer = Peer::new(config, durable.clone()).expect("a good configuration");

    let mut now = Instant::ORIGIN;
    let mut links = 0u64;
    let mut writes: Vec<(Ticket, Write)> = Vec::new();
    let mut up: BTreeSet<LinkId> = BTreeSet::new();
    for happens in run.events {
        let plane = |quorum| if quorum { Plane::Quorum } else { Plane::Election };
        let peer_id = |peer: u8| ServerId(i64::from(peer % 7));
        let link = |link: u8| LinkId(u64::from(link) % (links + 1));
        let event = match happens {
            Happens::Time { ms } => {
                now = now + std::time::Duration::from_millis(u64::from(ms));
                Event::Tick
            }
            Happens::Due => {
                now = peer.deadline().map_or(now, |(at, _)| now.max(at));
                Event::Tick
            }
            Happens::Up { quorum, dialled, peer } => {
                links += 1;
                up.insert(LinkId(links));
                Event::LinkUp(LinkUp {
                    link: LinkId(links),
                    plane: plane(quorum),
                    dialled,
                    peer: (!quorum || dialled).then(|| peer_id(peer)),
                    advertised: None,
                    remote: None,
                })
            }
            Happens::Down { link: of } => {
                up.remove(&link(of));
                Event::LinkDown { link: link(of), cause: Cause::Reset }
            }
            Happens::DialFailed { quorum, peer } => {
                Event::DialFailed { plane: plane(quorum), peer: peer_id(peer) }
            }
            Happens::Persisted => {
                if writes.is_empty() {
                    continue;
                }
                let (ticket, write) = writes.remove(0);
                match write {
                    Write::AcceptedEpoch(epoch) => {
                        assert!(epoch > durable.accepted_epoch, "promises only rise");
                        durable.accepted_epoch = epoch;
                    }
                    Write::CurrentEpoch(epoch) => durable.current_epoch = epoch,
                    Write::Membership(_) => {}
                }
                assert!(durable.current_epoch <= durable.accepted_epoch);
                Event::Persisted(ticket)
            }
            Happens::Vote { link: on, state, leader, epoch, zxid, round, old } => {
                let states = [
                    ServerState::Looking,
                    ServerState::Following,
                    ServerState::Leading,
                    ServerState::Observing,
                ];
                let vote = Vote {
                    peer_epoch: Epoch(i64::from(epoch % 8)),
                    zxid: Zxid(i64::from(zxid)),
                    leader: peer_id(leader),
                };
                let (state, round) = (states[usize::from(state % 4)], Round(i64::from(round % 8)));
                let standing = Standing { state, vote, round };
                let version = if old { 0 } else { 2 };
                let config = Bytes::new();
                let message = Message::Notification(Notification { standing, version, config });
                Event::Received { link: link(on), message }
            }
            Happens::Odd { link: on, leader, epoch, zxid, round } => {
                let vote =
                    Vote { peer_epoch: Epoch(epoch), zxid: Zxid(zxid), leader: ServerId(leader) };
                let standing = Standing { state: ServerState::Looking, vote, round: Round(round) };
                let config = Bytes::from_static(b"version=5");
                let message = Message::Notification(Notification { standing, version: 2, config });
                Event::Received { link: link(on), message }
            }
            Happens::Info { link: on, observer, id, epoch, protocol } => {
                let info = LearnerInfo {
                    accepted_epoch: Epoch(epoch),
                    id: (id < 200).then(|| peer_id(id)),
                    protocol: if protocol { LearnerInfo::PROTOCOL } else { 1 },
                    config_version: 0,
                };
                let packet =
                    if observer { Packet::ObserverInfo(info) } else { Packet::FollowerInfo(info) };
                Event::Received { link: link(on), message: Message::Packet(packet) }
            }
            Happens::Packet { link: on, kind, epoch, counter, current } => {
                let epoch = Epoch(i64::from(epoch % 12));
                let zxid = Zxid(epoch.0 << 32 | i64::from(counter % 3));
                let packet = match kind % 10 {
                    0 => Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL },
                    1 => Packet::AckEpoch {
                        last: zxid,
                        current_epoch: (current >= 0).then(|| Epoch(i64::from(current % 12))),
                    },
                    2 => Packet::Diff(zxid),
                    3 => Packet::NewLeader { zxid, config: Bytes::new() },
                    4 => Packet::UpToDate,
                    5 => Packet::Ack(zxid),
                    6 => Packet::Ping { zxid, sessions: None },
                    7 => Packet::Snap(zxid),
                    8 => Packet::Commit(zxid),
                    _ => Packet::Sync,
                };
                Event::Received { link: link(on), message: Message::Packet(packet) }
            }
            Happens::StepDown => Event::StepDown,
            Happens::Oracle(yes) => Event::Oracle(yes),
        };
        for output in peer.step(Input { at: now, event }) {
            match output {
                Output::Persist { ticket, write } => writes.push((ticket, write)),
                Output::Hangup { link, .. } => assert!(up.remove(&link), "{link} is not up"),
                Output::Send { link, message } => {
                    assert!(up.contains(&link), "{link} is not up");
                    promised(&message, &durable);
                }
                Output::Dial { .. } | Output::Report(_) | Output::Halt(_) => {}
            }
        }
        peer.check();
    }
});

/// Whatever promises something says what is on the disk.
fn promised(message: &Message, durable: &Durable) {
    let Message::Packet(packet) = message else { return };
    if let Packet::LeaderInfo { epoch, .. } = packet {
        assert!(durable.accepted_epoch >= *epoch, "LEADERINFO before the disk has the promise");
    }
    if let Packet::AckEpoch { current_epoch: Some(_), .. } = packet {
        assert!(durable.accepted_epoch > Epoch::ZERO, "ACKEPOCH before the disk has the promise");
    }
    if let Packet::Ack(zxid) = packet {
        assert!(durable.current_epoch >= zxid.epoch(), "ACK before the disk has the epoch");
    }
}
