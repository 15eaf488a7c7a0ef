//! One server under arbitrary events, in arbitrary order: whatever peers say and the network does, its
//! invariants hold, it keeps its side of the boundary, and it promises nothing that is not on its disk.

// What the tests of the core hold a server to.
#[allow(dead_code, missing_docs, unreachable_pub, reason = "this target uses a part of it")]
#[allow(clippy::wildcard_enum_match_arm, reason = "one kind of output is looked for at a time")]
#[path = "../../core/tests/support/boundary.rs"]
mod boundary;

use std::net::{IpAddr, Ipv4Addr};

use arbitrary::{Arbitrary, Unstructured};
use boundary::Boundary;
use bytes::Bytes;
use quorate_core::config::{Config, HistoryLimits};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ReadId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Located, Plane, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::{
    LearnerInfo, Mark, Message, Notification, Packet, Request, Run as Zxids,
};
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Counter, Epoch, Zxid};

/// A run: who the server is, what its disk held, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    id: u8,
    accepted: u8,
    current: u8,
    reconfig: bool,
    /// The log: how many transactions of each of three epochs; where the snapshot stands in it.
    log: [u8; 3],
    snapshot: u8,
    /// How much of it is kept in memory, and how much may be under way to a learner.
    window: u8,
    pace: u8,
    events: Vec<Happens>,
}

/// Small numbers, so that they meet. A driver reports nothing that it was not asked for.
#[derive(Arbitrary, Debug)]
enum Happens {
    Time { ms: u16 },
    Due,
    Up { quorum: bool, peer: u8 },
    Dialled { which: u8 },
    DialFailed { which: u8 },
    Down { link: u8, garbled: bool },
    Persisted { all: bool },
    Vote { link: u8, state: u8, leader: u8, epoch: u8, zxid: Small, round: u8, old: bool },
    Ours { link: u8, state: u8, leader: u8 },
    Odd { link: u8, leader: i64, epoch: i64, zxid: i64, round: i64 },
    Info { link: u8, observer: bool, id: u8, epoch: i64, protocol: bool },
    Packet { link: u8, kind: u8, zxid: Small, many: u8, current: i8 },
    Located { cheap: bool },
    Streamed { which: u8, readable: bool },
    Drained { which: u8 },
    Restored,
    Progress { link: u8 },
    SnapshotTaken,
    Propose { cxid: u8 },
    Read,
    Prepared { many: u8 },
    StepDown,
    Transfer { to: Option<u8> },
    Released,
    Oracle(bool),
}

/// A transaction of a small epoch, or something beside what the server has.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Small {
    Of { epoch: u8, counter: u8 },
    Last { plus: i8 },
    Start { plus: u8 },
    Any(i64),
}

impl Small {
    fn zxid(self, boundary: &Boundary) -> Zxid {
        match self {
            Self::Of { epoch, counter } => {
                Zxid::new(Epoch(i64::from(epoch % 8)), Counter(u32::from(counter % 8)))
            }
            Self::Last { plus } => Zxid(boundary.disk.last().0.wrapping_add(i64::from(plus))),
            Self::Start { plus } => {
                Zxid(Zxid::start_of(boundary.disk.accepted).0 + i64::from(plus % 4))
            }
            Self::Any(zxid) => Zxid(zxid),
        }
    }
}

/// The same number always means the same transaction.
fn txn(zxid: Zxid) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1, time: 0, kind: 5 };
    Txn { zxid, header, body: Bytes::copy_from_slice(&zxid.0.to_be_bytes()) }
}

fn durable(run: &Run) -> Durable {
    let mut window = Vec::new();
    for (epoch, many) in (1..).zip(run.log) {
        for counter in 1..=u32::from(many % 8) {
            window.push(txn(Zxid::new(Epoch(epoch), Counter(counter))));
        }
    }
    let last_zxid = window.last().map_or(Zxid::ZERO, |txn| txn.zxid);
    let accepted = Epoch(i64::from(run.accepted % 8)).max(last_zxid.epoch());
    let at = usize::from(run.snapshot) % (window.len() + 1);
    let snapshot = at.checked_sub(1).map_or(Zxid::ZERO, |at| window[at].zxid);
    Durable {
        accepted_epoch: accepted,
        current_epoch: Epoch(i64::from(run.current % 8)).min(accepted),
        last_zxid,
        floor: Zxid::ZERO,
        snapshot,
        window: window.into(),
        ..Durable::default()
    }
}

/// Lets happen what these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(run) = Run::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let text = "server.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\n\
                server.3=c:2888:3888:participant\nserver.4=d:2888:3888:observer\nversion=0";
    let membership = Membership::parse(text).expect("a good text");
    let mut config = Config::new(ServerId(i64::from(run.id % 5) + 1), membership);
    config.reconfig_enabled = run.reconfig;
    config.keeps_sessions = run.reconfig;
    config.history = HistoryLimits {
        window_count: usize::from(run.window),
        pace_bytes: usize::from(run.pace) * 16,
        snap_count: 8,
        observer_snapshots: 1,
        requests: 8,
        ..HistoryLimits::default()
    };
    let durable = durable(&run);
    let mut boundary = Boundary::new(&durable);
    let mut peer = Peer::new(config, durable).expect("a good configuration");
    let (mut now, mut links, mut reads) = (Instant::ORIGIN, 0, 0);
    for happens in run.events {
        if let Happens::Time { ms } = happens {
            now = now + std::time::Duration::from_millis(u64::from(ms));
        } else if let Happens::Due = happens {
            now = peer.deadline().map_or(now, |(at, _)| now.max(at));
        }
        let Some(event) = event(happens, &peer, &mut boundary, &mut links, &mut reads) else {
            continue;
        };
        boundary.before(&event);
        let outputs = peer.step(Input { at: now, event });
        boundary.after(&outputs, &peer.status(), peer.committed());
        assert_eq!(peer.broken(), None);
        // Names are found at once, and lead home for every second link.
        while let Some(link) = boundary.resolving.keys().next().copied() {
            let addresses = (link.0 % 2 == 0).then_some(REMOTE).into_iter().collect();
            let event = Event::Resolved { link, addresses };
            boundary.before(&event);
            let outputs = peer.step(Input { at: now, event });
            boundary.after(&outputs, &peer.status(), peer.committed());
        }
    }
}

/// Where everybody comes from.
const REMOTE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// One of these, if there is one.
fn nth<T>(mut of: impl ExactSizeIterator<Item = T>, which: u8) -> Option<T> {
    let many = of.len();
    if many == 0 { None } else { of.nth(usize::from(which) % many) }
}

/// What the driver reports; none if it has nothing of the kind to report.
fn event(
    happens: Happens,
    peer: &Peer,
    boundary: &mut Boundary,
    links: &mut u64,
    reads: &mut u64,
) -> Option<Event> {
    let server = |peer: u8| ServerId(i64::from(peer % 7));
    let plane = |quorum| if quorum { Plane::Quorum } else { Plane::Election };
    let states = [
        ServerState::Looking,
        ServerState::Following,
        ServerState::Leading,
        ServerState::Observing,
    ];
    let notification = |standing, version, config| {
        Message::Notification(Notification {
            standing,
            version,
            config,
            mark: Mark::SETTLES_AT_ONCE,
        })
    };
    let message = match happens {
        Happens::Time { .. } | Happens::Due => return Some(Event::Tick),
        Happens::Up { quorum, peer } => {
            let peer = (!quorum).then(|| server(peer));
            return Some(up(plane(quorum), false, peer, boundary, links));
        }
        Happens::Dialled { which } => {
            let (plane, peer) = nth(boundary.dialling.iter(), which).copied()?;
            boundary.dialling.remove(&(plane, peer));
            return Some(up(plane, true, Some(peer), boundary, links));
        }
        Happens::DialFailed { which } => {
            let (plane, peer) = nth(boundary.dialling.iter(), which).copied()?;
            boundary.dialling.remove(&(plane, peer));
            return Some(Event::DialFailed { plane, peer });
        }
        Happens::Down { link, garbled } => {
            let link = *nth(boundary.up.keys(), link)?;
            let cause = if garbled { Cause::Garbled } else { Cause::Reset };
            return Some(Event::LinkDown { link, cause });
        }
        Happens::Persisted { all } => {
            let disk = &boundary.disk;
            let ticket = if all { disk.newest() } else { disk.oldest() };
            return ticket.map(Event::Persisted);
        }
        Happens::Located { cheap } => {
            let (link, zxid) = *boundary.locating.front()?;
            let place = boundary.disk.locate(zxid);
            let located = Located { place, log_bytes: u64::from(!cheap), snapshot_bytes: 1 };
            return Some(Event::Located { link, located });
        }
        Happens::Streamed { which, readable } => {
            let link = *nth(boundary.streams.keys(), which)?;
            let outcome = if readable { Ok(()) } else { Err(Unreadable) };
            return Some(Event::Streamed { link, outcome });
        }
        Happens::Drained { which } => {
            let paced = boundary.paces.iter().filter(|(_, paces)| **paces > 0);
            let paced: Vec<_> = paced.map(|(link, _)| *link).collect();
            return nth(paced.into_iter(), which).map(Event::Drained);
        }
        Happens::Restored => return boundary.receiving.map(|(link, _)| Event::restored(link)),
        Happens::Progress { link } => {
            return nth(boundary.up.keys(), link).copied().map(Event::Progress);
        }
        // Or the application has done the first of what it was given: what the seeds mean rests on the number of these.
        Happens::SnapshotTaken => {
            let applied = boundary.applying.front().cloned();
            return boundary.taking.map(Event::SnapshotTaken).or(applied);
        }
        Happens::Propose { cxid } => {
            return Some(Event::Propose(request(i32::from(cxid), 5)));
        }
        Happens::Read => {
            *reads += 1;
            return Some(Event::Read(ReadId(*reads)));
        }
        Happens::Prepared { many } => {
            let epoch = boundary.preparing.front()?.0;
            let of_it = boundary.preparing.iter().take_while(|(of, ..)| *of == epoch).count();
            let ready = boundary.preparing.drain(..of_it.min(usize::from(many % 4)));
            let drafts = ready.map(|(_, _, request)| {
                let RequestId { client, cxid } = request.id;
                let header = TxnHeader { client, cxid, time: 0, kind: request.op };
                Draft { header, body: request.body }
            });
            return Some(Event::Prepared { epoch, drafts: drafts.collect() });
        }
        Happens::StepDown => return Some(Event::StepDown),
        Happens::Transfer { to } => return Some(Event::TransferLeadership(to.map(server))),
        // Or the service says which sessions it has heard from.
        Happens::Released if boundary.pinged => {
            return Some(Event::Touch(Bytes::from_static(b"session and time")));
        }
        Happens::Released => return Some(Event::Released(boundary.release)),
        Happens::Oracle(yes) => return Some(Event::Oracle(yes)),
        Happens::Vote { link, state, leader, epoch, zxid, round, old } => {
            let peer_epoch = Epoch(i64::from(epoch % 8));
            let vote = Vote { peer_epoch, zxid: zxid.zxid(boundary), leader: server(leader) };
            let (state, round) = (states[usize::from(state % 4)], Round(i64::from(round % 8)));
            let standing = Standing { state, vote, round };
            let version = if old { 0 } else { 2 };
            (link, notification(standing, version, Bytes::new()))
        }
        Happens::Ours { link, state, leader } => {
            let mut standing = peer.standing();
            standing.state = states[usize::from(state % 4)];
            if leader > 7 {
                standing.vote.leader = server(leader);
            }
            (link, notification(standing, 2, Bytes::new()))
        }
        Happens::Odd { link, leader, epoch, zxid, round } => {
            let vote =
                Vote { peer_epoch: Epoch(epoch), zxid: Zxid(zxid), leader: ServerId(leader) };
            let standing = Standing { state: ServerState::Looking, vote, round: Round(round) };
            (link, notification(standing, 2, Bytes::from_static(b"version=5")))
        }
        Happens::Info { link, observer, id, epoch, protocol } => {
            let info = LearnerInfo {
                accepted_epoch: Epoch(epoch),
                id: (id < 200).then(|| server(id)),
                protocol: if protocol { LearnerInfo::PROTOCOL } else { 1 },
                config_version: 0,
            };
            let packet =
                if observer { Packet::ObserverInfo(info) } else { Packet::FollowerInfo(info) };
            (link, Message::Packet(packet))
        }
        Happens::Packet { link, kind, zxid, many, current } => {
            let zxid = zxid.zxid(boundary);
            (link, Message::Packet(packet(kind, zxid, many, current, boundary)))
        }
    };
    let (link, message) = (*nth(boundary.up.keys(), message.0)?, message.1);
    // A snapshot has no frame: nothing else comes on its link before its end.
    let receiving = boundary.receiving.is_some_and(|(of, _)| of == link);
    (!receiving).then_some(Event::Received { link, message })
}

fn up(
    plane: Plane,
    dialled: bool,
    peer: Option<ServerId>,
    boundary: &mut Boundary,
    links: &mut u64,
) -> Event {
    *links += 1;
    let link = LinkId(*links);
    boundary.up.insert(link, plane);
    Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised: None, remote: Some(REMOTE) })
}

fn request(cxid: i32, op: i32) -> Request {
    let id = RequestId { client: 7, cxid };
    Request { id, op, body: Bytes::from_static(b"body"), identities: None }
}

fn packet(kind: u8, zxid: Zxid, many: u8, current: i8, boundary: &Boundary) -> Packet {
    let last = Zxid(zxid.0.saturating_add(i64::from(many % 4)));
    let run = Zxids { first: zxid, last };
    let protocol = LearnerInfo::PROTOCOL;
    let start = Zxid::start_of(boundary.disk.accepted);
    match kind % 24 {
        0 => Packet::LeaderInfo { epoch: zxid.epoch(), protocol },
        1 => Packet::LeaderInfo { epoch: Epoch(boundary.disk.accepted.0 + 1), protocol },
        2 => Packet::AckEpoch {
            last: zxid,
            current_epoch: (current >= 0).then(|| Epoch(i64::from(current % 8))),
        },
        3 => Packet::Diff(zxid),
        4 => Packet::Trunc(zxid),
        5 => Packet::snap(zxid),
        6 => Packet::NewLeader { zxid, config: Bytes::new() },
        7 => Packet::NewLeader { zxid: start, config: Bytes::new() },
        8 => Packet::UpToDate,
        9 => Packet::Ack(zxid),
        10 => Packet::Ack(start),
        11 => Packet::Acks(run),
        12 => Packet::Ping { zxid, sessions: None },
        13 | 14 => Packet::Proposal(txn(zxid)),
        15 => Packet::Proposals(run.zxids().map(txn).collect()),
        16 => Packet::Commit(zxid),
        17 => Packet::Commits(run),
        18 => Packet::Inform(txn(zxid)),
        19 => Packet::InformAndActivate { leader: ServerId(1), txn: txn(zxid) },
        20 => Packet::CommitAndActivate { zxid, leader: ServerId(1) },
        21 => Packet::Request(request(i32::from(many), 5)),
        22 => Packet::Request(request(i32::from(many), Request::SYNC)),
        _ => Packet::Sync { tag: 0 },
    }
}
