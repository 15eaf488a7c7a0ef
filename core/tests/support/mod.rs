//! One server on a bench: what happens to it is written down by the test, and what it does about it
//! is looked at. Time is a number; nothing sleeps.
//!
//! The bench also holds the server to its side of the boundary, whatever the test is about: see
//! [`boundary`].
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part of the bench")]
#![allow(clippy::wildcard_enum_match_arm, reason = "one kind of output is looked for at a time")]

pub mod boundary;

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::address::HostPort;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ReadId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Located, Place, Plane, Unreadable};
use quorate_core::membership::{Member, Membership};
use quorate_core::message::{LearnerInfo, Mark, Message, Notification, Packet, Request};
use quorate_core::output::{Form, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::{Fault, Hangup, Refusal};
use quorate_core::reconfiguration::{Reconfiguration, body_of};
use quorate_core::report::{Change, How, Reason};
use quorate_core::status::{Phase, Status};
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use boundary::Boundary;

/// An ensemble of voters with these ids, `hostN` each.
pub fn ensemble(voters: &[i64]) -> String {
    with_observers(voters, &[])
}

/// The same, and observers.
pub fn with_observers(voters: &[i64], observers: &[i64]) -> String {
    let line = |id: &i64, role| format!("server.{id}=host{id}:2888:3888:{role}\n");
    let voters: String = voters.iter().map(|id| line(id, "participant")).collect();
    let observers: String = observers.iter().map(|id| line(id, "observer")).collect();
    voters + &observers + "version=0"
}

/// The server with this id.
pub fn s(id: i64) -> ServerId {
    ServerId(id)
}

/// One of them, in this role.
pub fn member(id: i64, role: &str) -> Member {
    Member::parse(s(id), &format!("host{id}:2888:3888:{role}")).unwrap()
}

/// The membership of voters with these ids.
pub fn voters(ids: &[i64]) -> Membership {
    Membership::parse(ensemble(ids)).unwrap()
}

/// These servers join, with a vote.
pub fn join(ids: &[i64]) -> Reconfiguration {
    Reconfiguration::change(ids.iter().map(|id| member(*id, "participant")), [])
}

/// These servers leave.
pub fn leave(ids: &[i64]) -> Reconfiguration {
    Reconfiguration::change([], ids.iter().copied().map(ServerId))
}

/// What a disk holds.
pub fn disk(accepted: i64, current: i64, last: i64) -> Durable {
    Durable {
        accepted_epoch: Epoch(accepted),
        current_epoch: Epoch(current),
        last_zxid: Zxid(last),
        floor: Zxid(last),
        snapshot: Zxid(last),
        ..Durable::default()
    }
}

pub fn vote(peer_epoch: i64, zxid: i64, leader: i64) -> Vote {
    Vote { peer_epoch: Epoch(peer_epoch), zxid: Zxid(zxid), leader: ServerId(leader) }
}

pub fn standing(state: ServerState, vote: Vote, round: i64) -> Standing {
    Standing { state, vote, round: Round(round) }
}

pub fn ids(of: &[i64]) -> Vec<ServerId> {
    of.iter().map(|id| ServerId(*id)).collect()
}

pub fn at(host: &str, port: u16) -> HostPort {
    HostPort { host: host.to_owned(), port }
}

/// A transaction.
pub fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1, time: 0, kind: 5 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(b"body") }
}

/// The transaction number `counter` of `epoch`.
pub const fn z(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

/// The transaction with this number, whose body tells it.
pub fn entry(zxid: Zxid) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1, time: 0, kind: 5 };
    Txn { zxid, header, body: Bytes::copy_from_slice(&zxid.0.to_be_bytes()) }
}

/// Transactions `first` to `last` of `epoch`.
pub fn entries(epoch: i64, first: u32, last: u32) -> Vec<Txn> {
    (first..=last).map(|counter| entry(z(epoch, counter))).collect()
}

/// A reconfiguration that brings these voters.
pub fn change(zxid: Zxid, ids: &[i64]) -> Txn {
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    Txn { zxid, header, body: body_of(&voters(ids).with_version(zxid.0)) }
}

/// A disk with these transactions in its log, all of them in memory too; what is before `floor` only a
/// snapshot has.
pub fn stored(accepted: i64, current: i64, floor: Zxid, txns: Vec<Txn>) -> Durable {
    Durable {
        accepted_epoch: Epoch(accepted),
        current_epoch: Epoch(current),
        last_zxid: txns.last().map_or(floor, |txn| txn.zxid),
        floor,
        snapshot: floor,
        window: txns.into(),
        ..Durable::default()
    }
}

/// The disk's answer, where reading the log costs less than a snapshot.
pub const fn cheap(place: Place) -> Located {
    Located { place, log_bytes: 0, snapshot_bytes: 1_000 }
}

/// The disk's answer, where reading the log costs more than a snapshot.
pub const fn dear(place: Place) -> Located {
    Located { place, log_bytes: 1_000, snapshot_bytes: 1_000 }
}

/// A request with this number.
pub fn request(cxid: i32) -> Request {
    let id = RequestId { client: 7, cxid };
    Request { id, op: 5, body: Bytes::from_static(b"body"), identities: None }
}

/// The zxid with which `epoch` begins.
pub fn start(epoch: i64) -> Zxid {
    Zxid::start_of(Epoch(epoch))
}

pub fn info(id: i64, accepted: i64) -> LearnerInfo {
    LearnerInfo {
        accepted_epoch: Epoch(accepted),
        id: Some(ServerId(id)),
        protocol: LearnerInfo::PROTOCOL,
        config_version: 0,
    }
}

/// What a server of ours says it is.
pub fn our_info(id: i64, accepted: i64) -> LearnerInfo {
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, false);
    LearnerInfo { protocol, ..info(id, accepted) }
}

/// What a leader of ours says that does not ask who may lead; see [`asking_leader_info`].
pub fn leader_info(epoch: i64) -> Packet {
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, false) & !LearnerInfo::MAY_LEAD;
    Packet::LeaderInfo { epoch: Epoch(epoch), protocol }
}

/// What a leader of ours says.
pub fn asking_leader_info(epoch: i64) -> Packet {
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, false);
    Packet::LeaderInfo { epoch: Epoch(epoch), protocol }
}

/// ACKEPOCH with a promise.
pub fn ack_epoch(current: i64, last: i64) -> Packet {
    Packet::AckEpoch { last: Zxid(last), current_epoch: Some(Epoch(current)) }
}

/// ACKEPOCH of a learner that had promised this epoch before.
pub fn ack_epoch_again(last: i64) -> Packet {
    Packet::AckEpoch { last: Zxid(last), current_epoch: None }
}

pub fn ack(epoch: i64) -> Packet {
    Packet::Ack(start(epoch))
}

pub fn new_leader(epoch: i64) -> Packet {
    Packet::NewLeader { zxid: start(epoch), config: Bytes::new() }
}

/// A leader's ping.
pub fn ping(epoch: i64) -> Packet {
    Packet::Ping { zxid: start(epoch), sessions: None }
}

/// A learner's answer to it.
pub fn pong(epoch: i64) -> Packet {
    Packet::Ping { zxid: start(epoch), sessions: Some(Bytes::new()) }
}

/// What a server did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(pub Vec<Output>);

impl Seen {
    /// Everything that was sent on a link.
    pub fn sent(&self, link: LinkId) -> Vec<Message> {
        let sent = self.0.iter().filter_map(|output| match output {
            Output::Send { link: to, message } if *to == link => Some(message.clone()),
            _ => None,
        });
        sent.collect()
    }

    /// The packets that were sent on a link, one by one, as the other end may read them.
    pub fn packets(&self, link: LinkId) -> Vec<Packet> {
        let mut packets = Vec::new();
        for message in self.sent(link) {
            match message {
                Message::Packet(Packet::Proposals(txns)) => {
                    packets.extend(txns.iter().cloned().map(Packet::Proposal));
                }
                Message::Packet(Packet::Commits(run)) => {
                    packets.extend(run.zxids().map(Packet::Commit));
                }
                Message::Packet(Packet::Acks(run)) => packets.extend(run.zxids().map(Packet::Ack)),
                Message::Packet(packet) => packets.push(packet),
                Message::Notification(_) | Message::Generation(_) | Message::Probe(_) => {}
            }
        }
        packets
    }

    /// The same as they were handed over, runs and all.
    pub fn handed(&self, link: LinkId) -> Vec<Packet> {
        let packets = self.sent(link).into_iter().filter_map(|message| match message {
            Message::Packet(packet) => Some(packet),
            Message::Notification(_) | Message::Generation(_) | Message::Probe(_) => None,
        });
        packets.collect()
    }

    /// Their names.
    pub fn names(&self, link: LinkId) -> Vec<&'static str> {
        self.packets(link).iter().map(Packet::name).collect()
    }

    /// What was told about ourselves on a link.
    pub fn told(&self, link: LinkId) -> Vec<Standing> {
        let told = self.sent(link).into_iter().filter_map(|message| match message {
            Message::Notification(notification) => Some(notification.standing),
            Message::Packet(_) | Message::Generation(_) | Message::Probe(_) => None,
        });
        told.collect()
    }

    /// Everything that was sent, on any link.
    pub fn all_sent(&self) -> Vec<&Message> {
        let sent = self.0.iter().filter_map(|output| match output {
            Output::Send { message, .. } => Some(message),
            _ => None,
        });
        sent.collect()
    }

    /// Why a link was hung up, if it was.
    pub fn hung_up(&self, link: LinkId) -> Option<Hangup> {
        self.hangups().into_iter().find(|(ended, _)| *ended == link).map(|(_, reason)| reason)
    }

    /// All links that were hung up.
    pub fn hangups(&self) -> Vec<(LinkId, Hangup)> {
        let hangups = self.0.iter().filter_map(|output| match output {
            Output::Hangup { link, reason } => Some((*link, *reason)),
            _ => None,
        });
        hangups.collect()
    }

    /// Whom the server dials.
    pub fn dials(&self) -> Vec<(Plane, i64)> {
        self.addressed().into_iter().map(|(plane, peer, _)| (plane, peer)).collect()
    }

    /// Whom the server dials for elections.
    pub fn election_dials(&self) -> Vec<i64> {
        let dials = self.dials().into_iter();
        dials.filter(|(plane, _)| *plane == Plane::Election).map(|(_, peer)| peer).collect()
    }

    /// Whom the server dials, and where.
    pub fn addressed(&self) -> Vec<(Plane, i64, Vec<HostPort>)> {
        let dials = self.0.iter().filter_map(|output| match output {
            Output::Dial { plane, peer, addresses } => Some((*plane, peer.0, addresses.clone())),
            _ => None,
        });
        dials.collect()
    }

    /// What is to be made durable.
    pub fn persists(&self) -> Vec<Write> {
        let writes = self.0.iter().filter_map(|output| match output {
            Output::Persist { write, .. } => Some(write.clone()),
            _ => None,
        });
        writes.collect()
    }

    /// What is appended to the log.
    pub fn appended(&self) -> Vec<Zxid> {
        let appended = self.0.iter().filter_map(|output| match output {
            Output::Persist { write: Write::Append(txns), .. } => Some(txns.iter()),
            _ => None,
        });
        appended.flatten().map(|txn| txn.zxid).collect()
    }

    /// How far each delivery of several transactions goes.
    pub fn delivered(&self) -> Vec<Zxid> {
        let mut delivered: Vec<Zxid> = Vec::new();
        let mut goes_on = false;
        for output in &self.0 {
            let (Output::Deliver(Txn { zxid, .. })
            | Output::Adopt { label: zxid }
            | Output::Replay { through: zxid, .. }) = output
            else {
                goes_on = false;
                continue;
            };
            match delivered.last_mut().filter(|_| goes_on) {
                Some(last) => *last = *zxid,
                None => delivered.push(*zxid),
            }
            goes_on = true;
        }
        delivered
    }

    /// What the driver is to copy from the log.
    pub fn streams(&self) -> Vec<(LinkId, Zxid, Zxid, Form)> {
        let streams = self.0.iter().filter_map(|output| match output {
            Output::StreamLog { link, after, through, form } => {
                Some((*link, *after, *through, *form))
            }
            _ => None,
        });
        streams.collect()
    }

    /// The snapshots that the driver is to send.
    pub fn snapshots(&self) -> Vec<(LinkId, Zxid)> {
        let snapshots = self.0.iter().filter_map(|output| match output {
            Output::SendSnapshot { link, label, .. } => Some((*link, *label)),
            _ => None,
        });
        snapshots.collect()
    }

    /// What the disk is asked to find.
    /// What the SNAP to this link is to carry.
    pub fn memberships_sent(&self, to: LinkId) -> Option<Bytes> {
        self.0.iter().find_map(|output| match output {
            Output::SendSnapshot { link, memberships, .. } if *link == to => {
                Some(memberships.clone())
            }
            _ => None,
        })
    }

    pub fn locates(&self) -> Vec<(LinkId, Zxid)> {
        let locates = self.0.iter().filter_map(|output| match output {
            Output::Locate { link, zxid } => Some((*link, *zxid)),
            _ => None,
        });
        locates.collect()
    }

    /// The reads that are answered.
    pub fn answers(&self) -> Vec<u64> {
        let answers = self.0.iter().filter_map(|output| match output {
            Output::Answer(read) => Some(read.0),
            _ => None,
        });
        answers.collect()
    }

    /// The requests that are on their way.
    pub fn accepted(&self) -> Vec<i32> {
        let accepted = self.0.iter().filter_map(|output| match output {
            Output::Accepted(id) => Some(id.cxid),
            _ => None,
        });
        accepted.collect()
    }

    /// The requests that are refused.
    pub fn refused(&self) -> Vec<(i32, Refusal)> {
        let refused = self.0.iter().filter_map(|output| match output {
            Output::Refused { id, reason } => Some((id.cxid, *reason)),
            _ => None,
        });
        refused.collect()
    }

    /// The reads that are refused.
    pub fn unread(&self) -> Vec<(u64, Refusal)> {
        let refused = self.0.iter().filter_map(|output| match output {
            Output::ReadRefused { read, reason } => Some((read.0, *reason)),
            _ => None,
        });
        refused.collect()
    }

    /// Whether the application is told that the leadership is over.
    pub fn abandoned(&self) -> bool {
        self.0.contains(&Output::Abandon) || self.0.contains(&Output::Discard)
    }

    /// How many paces are asked for on a link.
    pub fn paces(&self, link: LinkId) -> usize {
        self.0.iter().filter(|output| **output == Output::NotifyDrained(link)).count()
    }

    /// Why things changed.
    pub fn reasons(&self) -> Vec<Reason> {
        let reasons = self.0.iter().filter_map(|output| match output {
            Output::Report(report) => Some(report.reason.clone()),
            _ => None,
        });
        reasons.collect()
    }

    /// What changed.
    pub fn changes(&self) -> Vec<Change> {
        let changes = self.0.iter().filter_map(|output| match output {
            Output::Report(report) => Some(report.change),
            _ => None,
        });
        changes.collect()
    }

    /// How learners are brought up, and where their history ends.
    pub fn syncs(&self) -> Vec<(How, Reason)> {
        let syncs = self.0.iter().filter_map(|output| match output {
            Output::Report(report) => match report.change {
                Change::Sync { how, .. } => Some((how, report.reason.clone())),
                _ => None,
            },
            _ => None,
        });
        syncs.collect()
    }

    /// The reports as people read them.
    pub fn texts(&self) -> Vec<String> {
        let texts = self.0.iter().filter_map(|output| match output {
            Output::Report(report) => Some(report.to_string()),
            _ => None,
        });
        texts.collect()
    }

    /// Why a role was given up, if one was.
    pub fn left(&self) -> Option<Reason> {
        self.0.iter().find_map(|output| match output {
            Output::Report(report) => match report.change {
                Change::Phase { to: Phase::Election, .. } => Some(report.reason.clone()),
                _ => None,
            },
            _ => None,
        })
    }

    /// Why the server stopped, if it did.
    pub fn halted(&self) -> Option<Fault> {
        self.0.iter().find_map(|output| match output {
            Output::Halt(fault) => Some(*fault),
            _ => None,
        })
    }

    /// Nothing at all was done.
    #[track_caller]
    pub fn is_nothing(&self) {
        // That a lease moves is nothing either.
        let moves = |output: &&Output| matches!(output, Output::Leadership(Some(_)));
        let done: Vec<_> = self.0.iter().filter(|output| !moves(output)).collect();
        assert!(done.is_empty(), "nothing was to be done: {done:?}");
    }

    /// Nothing was done but to hang up a link that has ended.
    #[track_caller]
    pub fn is_the_end_of(&self, link: LinkId) {
        assert_eq!(self.0, [Output::Hangup { link, reason: Hangup::Ended }]);
    }

    /// Whether those are asked to go who do what only a leader may.
    pub fn releases(&self) -> bool {
        self.0.iter().any(|output| matches!(output, Output::Release(_)))
    }

    pub fn add(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }
}

/// One server and its surroundings.
#[derive(Clone, Debug)]
pub struct Bench {
    pub peer: Peer,
    pub now: Instant,
    links: u64,
    reads: u64,
    /// Its application does nothing by itself.
    pub slow: bool,
    /// What it has asked for, and what became of it.
    pub boundary: Boundary,
    /// Everything that it ever did.
    pub said: Vec<Output>,
}

impl Bench {
    /// Server `id` of the ensemble that `text` describes, with `durable` on its disk, told to begin.
    pub fn of(id: i64, text: &str, durable: Durable) -> Self {
        Self::with(id, text, durable, |_| {})
    }

    /// The same, with something else in its configuration.
    pub fn with(id: i64, text: &str, durable: Durable, change: impl FnOnce(&mut Config)) -> Self {
        let mut bench = Self::idle(id, text, durable, change);
        let longest = bench.step(Event::Tick).persists();
        if let [Write::Lease(_)] = longest[..] {
            // It looks as soon as the longest lease is on its disk.
            bench.persisted();
        }
        bench
    }

    /// The same, before its first tick.
    pub fn idle(id: i64, text: &str, durable: Durable, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(ServerId(id), Membership::parse(text).unwrap());
        change(&mut config);
        Self::new(config, durable)
    }

    /// A server before its first tick.
    pub fn new(config: Config, durable: Durable) -> Self {
        Self {
            boundary: Boundary::new(&durable),
            peer: Peer::new(config, durable).unwrap(),
            now: Instant::ORIGIN,
            links: 0,
            reads: 0,
            slow: false,
            said: Vec::new(),
        }
    }

    // --- what happens ---

    /// Anything, now.
    #[track_caller]
    pub fn step(&mut self, event: Event) -> Seen {
        self.boundary.before(&event);
        let outputs = self.peer.step(Input { at: self.now, event });
        self.boundary.after(&outputs, &self.peer.status(), self.peer.committed());
        assert_eq!(self.boundary.leadership, self.peer.leadership());
        self.said.extend_from_slice(&outputs);
        let mut seen = Seen(outputs);
        // An application that is quick.
        while !self.slow {
            let Some(event) = self.boundary.applying.pop_front() else { break };
            seen.add(self.step(event));
        }
        seen
    }

    /// Those are gone who do what only a leader may, as they were asked last.
    #[track_caller]
    pub fn released(&mut self) -> Seen {
        let release = self.boundary.release;
        self.step(Event::Released(release))
    }

    /// A connection comes up; its number.
    #[track_caller]
    pub fn connect(&mut self, up: LinkUp) -> (LinkId, Seen) {
        let link = up.link;
        if let (true, Some(peer)) = (up.dialled, up.peer) {
            let (plane, was) = (up.plane, self.boundary.dialling.remove(&(up.plane, peer)));
            assert!(was, "nobody dialled {peer} on {plane:?}");
        }
        self.boundary.up.insert(link, up.plane);
        (link, self.step(Event::LinkUp(up)))
    }

    /// A connection of which nothing is known yet.
    pub fn fresh(&mut self, plane: Plane, dialled: bool, peer: Option<i64>) -> LinkUp {
        self.links += 1;
        LinkUp {
            link: LinkId(self.links),
            plane,
            dialled,
            peer: peer.map(ServerId),
            advertised: None,
            remote: None,
        }
    }

    /// Our election dial comes through.
    #[track_caller]
    pub fn dialled(&mut self, peer: i64) -> (LinkId, Seen) {
        let up = self.fresh(Plane::Election, true, Some(peer));
        self.connect(up)
    }

    /// Somebody comes to the election port and introduces itself, without an address.
    #[track_caller]
    pub fn accepted(&mut self, peer: i64) -> (LinkId, Seen) {
        let up = self.fresh(Plane::Election, false, Some(peer));
        self.connect(up)
    }

    /// Somebody comes to the election port, and says where it listens.
    #[track_caller]
    pub fn knock(&mut self, peer: i64, advertised: HostPort, remote: &str) -> (LinkId, Seen) {
        let remote = Some(remote.parse::<IpAddr>().unwrap());
        let advertised = Some(advertised);
        let up = LinkUp { advertised, remote, ..self.fresh(Plane::Election, false, Some(peer)) };
        self.connect(up)
    }

    /// An election link with `peer`, by whichever of the two has to dial.
    #[track_caller]
    pub fn meet(&mut self, peer: i64) -> LinkId {
        let dials = ServerId(peer) < self.peer.config().id;
        let (link, seen) = if dials { self.dialled(peer) } else { self.accepted(peer) };
        assert_eq!(seen.hung_up(link), None, "the link with {peer} is good");
        link
    }

    /// Somebody comes to the quorum port.
    #[track_caller]
    pub fn learner(&mut self) -> LinkId {
        self.learner_seen().0
    }

    /// The same, and what is done about it.
    #[track_caller]
    pub fn learner_seen(&mut self) -> (LinkId, Seen) {
        let up = self.fresh(Plane::Quorum, false, None);
        self.connect(up)
    }

    /// Our dial of a leader's quorum port comes through.
    #[track_caller]
    pub fn reach(&mut self, leader: i64) -> (LinkId, Seen) {
        let up = self.fresh(Plane::Quorum, true, Some(leader));
        self.connect(up)
    }

    /// A dial comes to nothing.
    #[track_caller]
    pub fn refused(&mut self, plane: Plane, peer: i64) -> Seen {
        let peer = ServerId(peer);
        assert!(
            self.boundary.dialling.remove(&(plane, peer)),
            "nobody dialled {peer} on {plane:?}"
        );
        self.step(Event::DialFailed { plane, peer })
    }

    /// A link ends.
    #[track_caller]
    pub fn down(&mut self, link: LinkId) -> Seen {
        assert!(self.is_up(link), "{link} is not up");
        self.step(Event::LinkDown { link, cause: Cause::Closed })
    }

    /// A vote of a server that settles at once arrives.
    #[track_caller]
    pub fn hear(&mut self, link: LinkId, standing: Standing) -> Seen {
        self.hear_marked(link, standing, Mark::SETTLES_AT_ONCE)
    }

    /// A vote with this mark arrives.
    #[track_caller]
    pub fn hear_marked(&mut self, link: LinkId, standing: Standing, mark: Mark) -> Seen {
        let (version, config) = (Notification::VERSION, Bytes::new());
        let notification = Notification { standing, version, config, mark };
        self.step(Event::Received { link, message: Message::Notification(notification) })
    }

    /// A packet arrives.
    #[track_caller]
    pub fn receive(&mut self, link: LinkId, packet: Packet) -> Seen {
        self.step(Event::Received { link, message: Message::Packet(packet) })
    }

    /// The disk has done everything.
    #[track_caller]
    pub fn persisted(&mut self) -> Seen {
        match self.boundary.disk.newest() {
            Some(ticket) => self.step(Event::Persisted(ticket)),
            None => Seen::default(),
        }
    }

    /// The disk has done the oldest write only.
    #[track_caller]
    pub fn persisted_one(&mut self) -> Seen {
        let ticket = self.boundary.disk.oldest().expect("a write is under way");
        self.step(Event::Persisted(ticket))
    }

    /// The disk has found what it was asked for.
    #[track_caller]
    pub fn located(&mut self, link: LinkId, located: Located) -> Seen {
        assert!(self.boundary.locating.iter().any(|(of, _)| *of == link), "nobody asked");
        self.step(Event::Located { link, located })
    }

    /// The driver has copied what it was asked to copy.
    #[track_caller]
    pub fn streamed(&mut self, link: LinkId) -> Seen {
        self.step(Event::Streamed { link, outcome: Ok(()) })
    }

    /// The driver could not read what it was asked to copy.
    #[track_caller]
    pub fn unreadable(&mut self, link: LinkId) -> Seen {
        self.step(Event::Streamed { link, outcome: Err(Unreadable) })
    }

    /// Somebody here asks for a transaction.
    #[track_caller]
    pub fn propose(&mut self, cxid: i32) -> Seen {
        self.step(Event::Propose(request(cxid)))
    }

    /// The application has prepared everything that it was asked to, each by itself.
    #[track_caller]
    pub fn prepared(&mut self) -> Seen {
        let mut seen = Seen::default();
        while !self.boundary.preparing.is_empty() {
            seen.add(self.prepared_together(1));
        }
        seen
    }

    /// The application has prepared the oldest few that it was asked to, together.
    #[track_caller]
    pub fn prepared_together(&mut self, most: usize) -> Seen {
        let waiting = &mut self.boundary.preparing;
        let epoch = waiting.front().expect("something is to be prepared").0;
        let of_it = waiting.iter().take_while(|(of, ..)| *of == epoch).count().min(most);
        let drafts = waiting.drain(..of_it).map(|(_, _, request)| {
            let RequestId { client, cxid } = request.id;
            let header = TxnHeader { client, cxid, time: 0, kind: request.op };
            Draft { header, body: request.body }
        });
        let drafts = drafts.collect();
        self.step(Event::Prepared { epoch, drafts })
    }

    /// So many transactions are asked for here, prepared and proposed.
    #[track_caller]
    pub fn write(&mut self, many: u32) -> Seen {
        let mut seen = Seen::default();
        for cxid in 0..many {
            seen.add(self.propose(i32::try_from(cxid).unwrap()));
            seen.add(self.prepared());
        }
        seen
    }

    /// Somebody here wants to read; the number of the read.
    #[track_caller]
    pub fn read(&mut self) -> (u64, Seen) {
        self.reads += 1;
        (self.reads, self.step(Event::Read(ReadId(self.reads))))
    }

    /// Time passes to the next deadline, and that is served.
    #[track_caller]
    pub fn next(&mut self) -> (Timer, Seen) {
        let (at, timer) = self.peer.deadline().expect("something is due");
        self.now = self.now.max(at);
        (timer, self.step(Event::Tick))
    }

    /// Time passes until this deadline has been served, and no longer.
    #[track_caller]
    pub fn to(&mut self, timer: Timer) -> Seen {
        let mut seen = Seen::default();
        for _ in 0..10_000 {
            let (served, more) = self.next();
            seen.add(more);
            if served == timer {
                return seen;
            }
        }
        panic!("{timer:?} never came");
    }

    /// A while passes; everything that is due meanwhile is served in time.
    #[track_caller]
    pub fn wait(&mut self, duration: Duration) -> Seen {
        let (until, mut seen) = (self.now + duration, Seen::default());
        for _ in 0..100_000 {
            match self.peer.deadline() {
                Some((at, _)) if at <= until => seen.add(self.next().1),
                _ => {
                    self.now = until;
                    return seen;
                }
            }
        }
        panic!("the server spins");
    }

    /// A while passes in milliseconds.
    #[track_caller]
    pub fn ms(&mut self, ms: u64) -> Seen {
        self.wait(Duration::from_millis(ms))
    }

    /// How long until the next deadline, and what for.
    #[track_caller]
    pub fn due(&self) -> (Duration, Timer) {
        let (at, timer) = self.peer.deadline().expect("something is due");
        (at.since(self.now), timer)
    }

    // --- how it stands ---

    pub fn status(&self) -> Status {
        self.peer.status()
    }

    pub fn state(&self) -> ServerState {
        self.status().state
    }

    pub fn phase(&self) -> Phase {
        self.status().phase
    }

    pub fn is_up(&self, link: LinkId) -> bool {
        self.boundary.up.contains_key(&link)
    }

    /// How many links are up.
    pub fn links_up(&self) -> usize {
        self.boundary.up.len()
    }

    /// The links that are up and the plane of each; one that is none if there are none.
    pub fn planes(&self) -> Vec<Option<(LinkId, Plane)>> {
        let up: Vec<_> =
            self.boundary.up.iter().map(|(link, plane)| Some((*link, *plane))).collect();
        if up.is_empty() { vec![None] } else { up }
    }

    /// The dials under way; one that is none if there are none.
    pub fn dials(&self) -> Vec<Option<(Plane, ServerId)>> {
        let dials: Vec<_> = self.boundary.dialling.iter().copied().map(Some).collect();
        if dials.is_empty() { vec![None] } else { dials }
    }

    pub fn is_dialling(&self, plane: Plane, peer: i64) -> bool {
        self.boundary.dialling.contains(&(plane, ServerId(peer)))
    }

    pub fn writes_pending(&self) -> usize {
        self.boundary.disk.writes_pending()
    }

    /// What was delivered so far.
    pub fn delivered(&self) -> Zxid {
        self.boundary.delivered
    }

    // --- stories that many tests begin with ---

    /// These servers meet us and vote as we do, until that makes us the leader of the ensemble.
    /// Their election links.
    #[track_caller]
    pub fn win(&mut self, supporters: &[i64]) -> Vec<LinkId> {
        let links: Vec<_> = supporters.iter().map(|peer| self.meet(*peer)).collect();
        self.win_again(&links);
        links
    }

    /// The same, and what we do about it.
    #[track_caller]
    pub fn win_seen(&mut self, supporters: &[i64]) -> Seen {
        let links: Vec<_> = supporters.iter().map(|peer| self.meet(*peer)).collect();
        self.win_again(&links)
    }

    /// The same with those that are linked already.
    #[track_caller]
    pub fn win_again(&mut self, links: &[LinkId]) -> Seen {
        let (ours, mut seen) = (self.peer.standing(), Seen::default());
        assert_eq!(ours.vote.leader, self.peer.config().id, "we propose ourselves");
        for link in links {
            seen.add(self.hear(*link, ours));
        }
        if self.state() == ServerState::Looking {
            seen.add(self.to(Timer::Finalize));
        }
        assert_eq!(self.state(), ServerState::Leading, "the election is won");
        seen
    }

    /// A learner comes and introduces itself as a follower.
    #[track_caller]
    pub fn follower(&mut self, id: i64, accepted: i64) -> (LinkId, Seen) {
        let link = self.learner();
        let seen = self.receive(link, Packet::FollowerInfo(info(id, accepted)));
        (link, seen)
    }

    /// A leader of a new epoch that `follower` and we have established; the follower's link.
    #[track_caller]
    pub fn establish(&mut self, follower: i64) -> LinkId {
        let status = self.status();
        let (link, _) = self.follower(follower, status.accepted_epoch.0);
        self.persisted();
        self.receive(link, ack_epoch(status.current_epoch.0, status.last.0));
        self.persisted();
        self.receive(link, ack(self.status().current_epoch.0));
        assert!(self.status().serving, "{:?}", self.status());
        link
    }

    /// We settle on `leader`, for whom `others` vote too, with this history. The election links of
    /// all of them, the leader's first.
    #[track_caller]
    pub fn lose(&mut self, leader: i64, others: &[i64], epoch: i64, zxid: i64) -> Vec<LinkId> {
        let peers = std::iter::once(&leader).chain(others);
        let links: Vec<_> = peers.map(|peer| self.meet(*peer)).collect();
        self.lose_again(&links, leader, epoch, zxid);
        links
    }

    /// The same with those that are linked already.
    #[track_caller]
    pub fn lose_again(&mut self, links: &[LinkId], leader: i64, epoch: i64, zxid: i64) {
        let round = self.status().round.0;
        for link in links {
            self.hear(*link, standing(ServerState::Looking, vote(epoch, zxid, leader), round));
        }
        if self.state() == ServerState::Looking {
            self.to(Timer::Finalize);
        }
        assert_eq!(self.status().leader, Some(ServerId(leader)), "the election is lost");
    }

    /// We settle on `leader` and go with it through all phases of `epoch`; the link to it.
    #[track_caller]
    pub fn serve(&mut self, leader: i64, epoch: i64) -> LinkId {
        self.serve_under(leader, leader_info(epoch), epoch)
    }

    /// The same under a leader that says this of itself.
    #[track_caller]
    pub fn serve_under(&mut self, leader: i64, info: Packet, epoch: i64) -> LinkId {
        let (link, _) = self.reach(leader);
        self.receive(link, info);
        self.persisted();
        self.receive(link, Packet::Diff(self.status().last));
        self.receive(link, new_leader(epoch));
        self.persisted();
        self.receive(link, Packet::UpToDate);
        assert!(self.status().serving, "{:?}", self.status());
        link
    }
}

/// Asserts that `value` lies in a range, and says so if not.
#[track_caller]
pub fn within<T: PartialOrd + Debug>(value: T, least: T, most: T) {
    assert!(value >= least && value <= most, "{value:?} is not in {least:?}..={most:?}");
}

pub fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The write that puts a snapshot with this label in the place of the history, where the membership stays as it is.
pub fn install(bench: &Bench, label: Zxid) -> Write {
    let config = bench.peer.config();
    let next = config.next_membership.as_ref().map(|next| next.text().clone());
    Write::Install { label, membership: config.membership.text().clone(), next }
}
