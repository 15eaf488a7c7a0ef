//! One server as a machine: the same inputs always do the same, nothing that comes from outside
//! breaks it, and what it holds is bounded.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{self, *};
use bytes::Bytes;
use quorate_core::config::{Config, ConfigError, HistoryLimits};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, Origin, ReadId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, LinkUp, Place, Plane, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Mark, Message, Notification, Packet, Request, Run};
use quorate_core::output::{Form, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::{Fault, Hangup, Refusal};
use quorate_core::report::Reason;
use quorate_core::rng::Rng;
use quorate_core::status::Phase;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, TxnHeader};
use quorate_core::vote::ServerState::{self, Following, Leading, Looking, Observing};
use quorate_core::zxid::{Epoch, Zxid};

// --- inputs at random ---

/// Draws inputs that are often almost right.
struct Dice {
    rng: Rng,
    /// How many of a hundred packets are what the other end should say just then.
    helpful: usize,
    /// How far a leader has come with our synchronization.
    told: Told,
    /// Requests and reads so far.
    asked: i32,
}

/// What a leader at the other end has said to us.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// On which link; none if it is over.
    link: Option<LinkId>,
    /// DIFF, TRUNC or SNAP.
    begun: bool,
    new_leader: bool,
    /// The last transaction that it knows us to have.
    tail: Zxid,
    committed: Zxid,
}

impl Dice {
    fn new(seed: u64) -> Self {
        let helpful = if seed % 3 == 0 { 50 } else { 97 };
        Self { rng: Rng::new(seed), helpful, told: Told::default(), asked: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn id(&mut self) -> ServerId {
        let corners = [0, -1, i64::MIN, i64::MAX, 77, 255, 256, 4, 9];
        ServerId(if self.chance(85) { self.pick(&[1, 2, 3, 4, 5]) } else { self.pick(&corners) })
    }

    fn epoch(&mut self) -> Epoch {
        let corners = [-1, i64::MIN, i64::MAX, 1 << 31, (1 << 31) - 1, (1 << 31) - 2, -2];
        Epoch(if self.chance(97) { self.pick(&[0, 0, 0, 1, 2, 3, 7]) } else { self.pick(&corners) })
    }

    /// A number somewhere.
    fn zxid(&mut self) -> Zxid {
        if self.chance(80) {
            Zxid::start_of(self.epoch())
        } else {
            Zxid(self.pick(&[0, -1, 1, i64::MIN, i64::MAX, 0x1_0000_0001, 0x7_0000_0003]))
        }
    }

    /// A number that somebody who knows this log could say: in it, a little beside it, of another epoch.
    fn near(&mut self, log: &[Zxid]) -> Zxid {
        let last = log.last().copied().unwrap_or(Zxid::ZERO);
        let known = if log.is_empty() { last } else { self.pick(log) };
        let Epoch(epoch) = last.epoch();
        let beside = [
            Zxid(last.0.wrapping_add(1)),
            Zxid(last.0.wrapping_add(2)),
            Zxid(known.0.wrapping_sub(1)),
            Zxid::start_of(Epoch(epoch)),
            Zxid::start_of(Epoch(epoch.wrapping_add(1))),
            Zxid(Zxid::start_of(Epoch(epoch.wrapping_add(1))).0 + 1),
            Zxid(Zxid::start_of(known.epoch()).0 + 9),
            Zxid::ZERO,
        ];
        match self.below(20) {
            0..8 => last,
            8..14 => known,
            14..19 => self.pick(&beside),
            _ => self.zxid(),
        }
    }

    /// What somebody says about where it stands; mostly what would help `peer` to get on.
    fn notification(&mut self, peer: &Peer) -> Notification {
        let ours = peer.standing();
        let state = self.pick(&[Looking, Looking, Looking, Following, Leading, Observing]);
        let mut heard = ours;
        heard.state = state;
        if self.chance(50) {
            heard.vote.leader = self.id();
        }
        if self.chance(10) {
            heard.vote = vote(self.epoch().0, self.zxid().0, self.id().0);
        }
        if self.chance(15) {
            let round = ours.round.0;
            let near = [0, round.wrapping_add(1), round.wrapping_sub(1)];
            // A round that is far ahead is adopted, and nothing that is smaller is heard after it.
            let far = [-1, i64::MIN, i64::MAX];
            heard.round.0 = if self.chance(98) { self.pick(&near) } else { self.pick(&far) };
        }
        let versions = (0..4).map(|version| {
            let members = [&[1, 2, 3, 4, 5][..], &[1, 2, 3], &[2, 3, 4, 5], &[1]][version];
            with_observers(members, &[9]).replace("version=0", &format!("version={version}"))
        });
        let config = match self.below(20) {
            0 => Bytes::from_static(b"garbage=\xff"),
            1 => Bytes::from(self.pick(&versions.collect::<Vec<_>>())),
            2..10 => peer.config().membership.text().clone(),
            _ => Bytes::new(),
        };
        Notification {
            standing: heard,
            version: self.pick(&[2, 2, 1, 0, -1]),
            config,
            mark: Mark::SETTLES_AT_ONCE,
        }
    }

    /// What our leader says next, if it does everything right.
    fn leader_says(&mut self, bench: &Bench, link: LinkId) -> Packet {
        let status = bench.status();
        let (last, epoch) = (bench.boundary.disk.last(), status.accepted_epoch);
        if self.told.link != Some(link) {
            self.told = Told { link: Some(link), ..Told::default() };
        }
        if status.phase == Phase::Discovery {
            let epoch = if self.chance(80) { epoch.next().unwrap_or(epoch) } else { epoch };
            return Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL };
        }
        if !self.told.begun {
            let log: Vec<_> = bench.boundary.disk.log.iter().map(|txn| txn.zxid).collect();
            let safe: Vec<_> =
                log.iter().copied().filter(|zxid| *zxid >= bench.delivered()).collect();
            let (packet, tail, committed) = match self.below(10) {
                0..4 => {
                    let label = self.near(&log);
                    (Packet::Diff(label), last, label.min(last))
                }
                4..7 => {
                    let to = if safe.is_empty() { last } else { self.pick(&safe) };
                    let to = if self.chance(90) { to } else { self.near(&log) };
                    (Packet::Trunc(to), to, to)
                }
                _ => {
                    let label = self.near(&log).max(bench.delivered());
                    let label = label.min(Zxid(Zxid::start_of(epoch).0 + 3));
                    (Packet::snap(label), label, label)
                }
            };
            self.told = Told { begun: true, tail, committed, ..self.told };
            return packet;
        }
        let (tail, start) = (self.told.tail, Zxid::start_of(epoch));
        let propose = if self.told.new_leader || tail.epoch() == epoch {
            tail.max(start).next()
        } else if self.chance(50) {
            tail.next()
        } else {
            start.next()
        };
        match (self.below(10), propose) {
            (0..4, Some(next)) if !self.told.new_leader || status.serving => {
                self.told.tail = next;
                if bench.state() == Observing && self.told.new_leader {
                    self.told.committed = next;
                    return Packet::Inform(entry(next));
                }
                Packet::Proposal(entry(next))
            }
            (4..7, _) if self.told.committed < tail => {
                let begun = Zxid::start_of(tail.epoch());
                let next = Zxid(self.told.committed.max(begun).0 + 1);
                self.told.committed = next;
                Packet::Commit(next)
            }
            (7, _) => Packet::Ping { zxid: tail, sessions: None },
            (8, _) if status.serving => Packet::Sync { tag: 0 },
            _ if !self.told.new_leader => {
                self.told.new_leader = true;
                Packet::NewLeader { zxid: start, config: Bytes::new() }
            }
            _ if !status.serving && bench.boundary.acknowledged.contains(&link) => Packet::UpToDate,
            _ => Packet::Ping { zxid: tail, sessions: None },
        }
    }

    /// What one of our learners says next, if it does everything right.
    fn learner_says(&mut self, bench: &Bench, link: LinkId) -> Packet {
        let status = bench.status();
        let epoch = status.current_epoch;
        let log: Vec<_> = bench.boundary.disk.log.iter().map(|txn| txn.zxid).collect();
        let info = LearnerInfo {
            accepted_epoch: if self.chance(90) { epoch } else { self.epoch() },
            id: Some(ServerId(self.pick(&[1, 2, 3, 4, 5, 9]))),
            protocol: LearnerInfo::PROTOCOL,
            config_version: 0,
        };
        let Some(course) = bench.boundary.courses.get(&link) else {
            return if self.chance(80) {
                Packet::FollowerInfo(info)
            } else {
                Packet::ObserverInfo(LearnerInfo {
                    id: Some(ServerId(77)).filter(|_| self.chance(50)),
                    ..info
                })
            };
        };
        if !course.promised {
            let last = self.near(&log);
            let epoch = Epoch(epoch.0.min(status.current_epoch.0));
            let last = if self.chance(60) { last.min(status.last) } else { last };
            return Packet::AckEpoch { last, current_epoch: self.chance(85).then_some(epoch) };
        }
        if course.new_leader && !course.acknowledged {
            return Packet::Ack(Zxid::start_of(epoch));
        }
        let acked = course.acked.max(Zxid::start_of(epoch));
        let most = course.sent.0.saturating_sub(acked.0);
        if most > 0 && self.chance(60) && course.up_to_date {
            let many = self.below(usize::try_from(most).unwrap_or(1).clamp(1, 5)) + 1;
            let first = Zxid(acked.0 + 1);
            let last = Zxid(acked.0 + i64::try_from(many).unwrap());
            return if many == 1 { Packet::Ack(first) } else { Packet::Acks(Run { first, last }) };
        }
        self.asked += 1;
        match self.below(4) {
            0 if course.up_to_date => Packet::Request(request(self.asked)),
            1 if course.up_to_date => {
                Packet::Request(Request { op: Request::SYNC, ..request(self.asked) })
            }
            _ => Packet::Ping { zxid: status.processed, sessions: Some(Bytes::new()) },
        }
    }

    /// Anything, now and then with a number that means something.
    fn packet(&mut self, peer: &Peer, log: &[Zxid]) -> Packet {
        let (status, right) = (peer.status(), self.chance(85));
        let zxid = if right { self.near(log) } else { self.zxid() };
        let epoch = if right { status.accepted_epoch } else { self.epoch() };
        let start = if right { Zxid::start_of(epoch) } else { zxid };
        let info = LearnerInfo {
            accepted_epoch: epoch,
            id: Some(self.id()).filter(|_| right),
            protocol: if right { LearnerInfo::PROTOCOL } else { self.pick(&[0, -1, i32::MAX]) },
            config_version: if right { 0 } else { self.pick(&[-1, 0, 1, 99]) },
        };
        let run = Run { first: zxid, last: Zxid(zxid.0.saturating_add(self.rng.below(3) as i64)) };
        match self.below(44) {
            0..6 => Packet::FollowerInfo(info),
            6..8 => Packet::ObserverInfo(info),
            8..11 => {
                let epoch = if self.chance(50) { epoch.next().unwrap_or(epoch) } else { epoch };
                Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL }
            }
            11..15 => Packet::AckEpoch {
                last: if right { status.last } else { zxid },
                current_epoch: self.chance(80).then_some(status.current_epoch),
            },
            15..17 => Packet::Diff(zxid),
            17..19 => Packet::NewLeader { zxid: start, config: Bytes::new() },
            19..21 => Packet::UpToDate,
            21..23 => Packet::Ack(start),
            23..25 => Packet::Ack(zxid),
            25 => Packet::Acks(run),
            26..28 => Packet::Ping { zxid, sessions: self.chance(50).then(Bytes::new) },
            28..30 => Packet::snap(zxid),
            30 => Packet::Trunc(zxid),
            31..34 => Packet::Proposal(entry(zxid)),
            34 => Packet::Proposals([entry(zxid), entry(run.last)].into()),
            35..37 => Packet::Commit(zxid),
            37 => Packet::Commits(run),
            38..40 => Packet::Request(request(1)),
            _ => self.pick(&[
                Packet::Sync { tag: 0 },
                Packet::Revalidate(Bytes::new()),
                Packet::Inform(entry(zxid)),
                Packet::CommitAndActivate { zxid, leader: ServerId(1) },
                Packet::InformAndActivate { leader: ServerId(1), txn: entry(zxid) },
            ]),
        }
    }

    fn message(&mut self, bench: &Bench, link: LinkId, plane: Plane) -> Message {
        if (plane == Plane::Election) == self.chance(98) {
            return Message::Notification(self.notification(&bench.peer));
        }
        let state = bench.state();
        Message::Packet(if !self.chance(self.helpful) {
            let log: Vec<_> = bench.boundary.disk.log.iter().map(|txn| txn.zxid).collect();
            self.packet(&bench.peer, &log)
        } else if state == Leading {
            self.learner_says(bench, link)
        } else if matches!(state, Following | Observing) {
            self.leader_says(bench, link)
        } else {
            Packet::Ping { zxid: Zxid::ZERO, sessions: None }
        })
    }

    /// Something that a driver could say if it was asked for it.
    fn local(&mut self, peer: &Peer, link: LinkId) -> Event {
        let status = peer.status();
        let zxid = self.near(&[status.last]);
        let header = TxnHeader { client: 1, cxid: 2, time: 3, kind: 4 };
        let draft = Draft { header, body: Bytes::new() };
        match self.below(9) {
            0 => {
                let place = self.pick(&[
                    Place::BelowFloor,
                    Place::Held,
                    Place::Absent { previous: zxid },
                    Place::Beyond,
                ]);
                Event::Located { link, located: cheap(place) }
            }
            1 => {
                let outcome = if self.chance(80) { Ok(()) } else { Err(Unreadable) };
                Event::Streamed { link, outcome }
            }
            2 => Event::restored(link),
            3 => Event::Drained(link),
            4 => Event::Progress(link),
            5 => Event::SnapshotTaken(zxid),
            6 => Event::Propose(request(1)),
            7 => Event::Read(ReadId(1)),
            _ => {
                let many = self.below(3);
                let epoch = if self.chance(80) { status.current_epoch } else { self.epoch() };
                Event::Prepared { epoch, drafts: vec![draft; many] }
            }
        }
    }

    fn config(&mut self) -> Config {
        let text = match self.below(6) {
            0 => ensemble(&[1]),
            1 => ensemble(&[1, 2]),
            2 => with_observers(&[2, 3], &[1, 9]),
            3 => ensemble(&[1, 2, 3, 4, 5]) + "\ngroup.1=1:2:3\ngroup.2=4:5\nweight.5=0",
            _ => ensemble(&[1, 2, 3]),
        };
        let membership = Membership::parse(text).unwrap();
        let mut config = Config::new(ServerId(self.pick(&[1, 2, 3])), membership);
        config.seed = self.rng.next_u64();
        config.oracle = self.chance(30);
        config.finish_when_settled = self.chance(80);
        config.limits.non_members = 4;
        config.limits.unintroduced = 4;
        config.limits.learners = 8;
        config.history = HistoryLimits {
            window_count: self.pick(&[1, 3, 10, 500]),
            window_bytes: self.pick(&[100, 1 << 20]),
            delivery_bytes: self.pick(&[100, 1 << 20]),
            size_percent: self.pick(&[None, Some(33)]),
            snap_count: self.pick(&[2, 8, 100_000]),
            observer_snapshots: 1,
            pace_bytes: self.pick(&[1, 200, 1 << 20]),
            requests: self.pick(&[2, 4096]),
            epoch_count: if config.seed % 4 == 0 { 3 } else { u32::MAX },
        };
        config
    }

    fn durable(&mut self) -> Durable {
        let log = [entries(1, 1, 6), entries(3, 1, 4)].concat();
        let stored = stored(4, 3, z(1, 0), log);
        self.pick(&[
            disk(0, 0, 0),
            disk(3, 2, 0),
            disk(3, 3, 0x3_0000_0000),
            disk(7, 1, 0x1_0000_0003),
            disk(0, 0, -1),
            stored.clone(),
            // Interrupted; and with a snapshot in the midst, or at the end, of what can be read.
            Durable { current_epoch: Epoch(1), ..stored.clone() },
            Durable { snapshot: z(1, 4), ..stored.clone() },
            Durable { snapshot: z(3, 4), floor: z(1, 2), ..stored },
        ])
    }
}

/// Something that the disk, the driver or the application has been asked for.
fn owed(dice: &mut Dice, bench: &mut Bench) {
    enum Owes {
        Located(LinkId, Zxid),
        Streamed(LinkId),
        Drained(LinkId),
        Received(LinkId),
        Prepared,
        Taken(Zxid),
        Resolved(LinkId),
    }
    let boundary = &bench.boundary;
    let mut owes: Vec<Owes> = Vec::new();
    owes.extend(boundary.locating.iter().map(|(link, zxid)| Owes::Located(*link, *zxid)));
    owes.extend(boundary.streams.keys().map(|link| Owes::Streamed(*link)));
    let paced = boundary.paces.iter().filter(|(_, paces)| **paces > 0);
    owes.extend(paced.map(|(link, _)| Owes::Drained(*link)));
    owes.extend(boundary.receiving.map(|(link, _)| Owes::Received(link)));
    owes.extend((!boundary.preparing.is_empty()).then_some(Owes::Prepared));
    owes.extend(boundary.taking.map(Owes::Taken));
    owes.extend(boundary.resolving.keys().map(|link| Owes::Resolved(*link)));
    if owes.is_empty() {
        return;
    }
    let at = dice.below(owes.len());
    match owes.swap_remove(at) {
        Owes::Located(link, zxid) => {
            let place = bench.boundary.disk.locate(zxid);
            bench.located(link, if dice.chance(50) { cheap(place) } else { dear(place) });
        }
        Owes::Streamed(link) if dice.chance(10) => drop(bench.unreadable(link)),
        Owes::Streamed(link) => drop(bench.streamed(link)),
        Owes::Drained(link) => drop(bench.step(Event::Drained(link))),
        Owes::Received(link) if dice.chance(10) => {
            bench.step(Event::LinkDown { link, cause: Cause::Garbled });
        }
        Owes::Received(link) => drop(bench.step(Event::restored(link))),
        Owes::Prepared => {
            let most = 1 + dice.below(3);
            bench.prepared_together(most);
        }
        Owes::Taken(zxid) => drop(bench.step(Event::SnapshotTaken(zxid))),
        Owes::Resolved(link) => {
            let addresses =
                if dice.chance(50) { vec!["10.0.0.1".parse().unwrap()] } else { vec![] };
            bench.step(Event::Resolved { link, addresses });
        }
    }
}

/// Something at random that a driver could report to this server. What is said comes from anybody
/// and may be anything.
fn lawful(dice: &mut Dice, bench: &mut Bench) {
    match dice.below(100) {
        0..11 => {
            // Time passes, often not even to the next deadline.
            let most =
                bench.peer.deadline().map_or(1_000_000, |(at, _)| at.since(bench.now).as_nanos());
            let most = u64::try_from(most).unwrap();
            let most = if dice.chance(30) { most * 5 / 4 } else { most / 4 };
            bench.now = Instant(bench.now.0 + dice.rng.below(most + 1));
            let due = bench.peer.deadline().is_some_and(|(at, _)| at <= bench.now);
            let before = (!due).then(|| bench.peer.clone());
            let seen = bench.step(Event::Tick);
            if let Some(before) = before {
                seen.is_nothing();
                let mut before = before;
                before.step(Input { at: bench.now, event: Event::Oracle(false) });
                // Nothing but the time has changed, which any input may carry.
                let mut after = bench.peer.clone();
                after.step(Input { at: bench.now, event: Event::Oracle(false) });
                assert_eq!(before, after, "a spurious tick");
            }
            let due = bench.peer.deadline();
            assert!(due.is_none_or(|(at, _)| at > bench.now), "{due:?} at {:?}", bench.now);
        }
        11..21 => match dice.pick(&bench.dials()) {
            Some((plane, peer)) if dice.chance(70) => {
                let up = bench.fresh(plane, true, Some(peer.0));
                bench.connect(up);
            }
            Some((plane, peer)) => {
                bench.refused(plane, peer.0);
            }
            None => {}
        },
        21..25 => {
            let peer = dice.id();
            let up = LinkUp {
                advertised: dice.chance(50).then(|| at("10.0.0.1", 3888)),
                remote: Some("10.0.0.1".parse().unwrap()),
                ..bench.fresh(Plane::Election, false, Some(peer.0))
            };
            bench.connect(up);
        }
        25..28 => {
            bench.learner();
        }
        28 => {
            if let Some((link, _)) = dice.pick(&bench.planes()) {
                bench.down(link);
            }
        }
        29..39 => {
            if bench.writes_pending() > 0 {
                bench.persisted_one();
            }
        }
        39..51 => owed(dice, bench),
        51..55 => {
            dice.asked += 1;
            let mut request = request(dice.asked);
            if dice.chance(2) {
                request.body = Bytes::from(vec![0; Request::BODY_BYTES_MAX + 1]);
            }
            bench.step(Event::Propose(request));
        }
        55..57 => {
            bench.read();
        }
        57 => {
            if let Some((link, Plane::Quorum)) = dice.pick(&bench.planes()) {
                bench.step(Event::Progress(link));
            }
        }
        58 => {
            bench.step(Event::Oracle(dice.chance(50)));
        }
        59 => {
            if dice.chance(20) {
                bench.step(Event::StepDown);
            }
        }
        _ => {
            let links = bench.planes();
            let quorum = |link: &Option<(LinkId, Plane)>| {
                link.is_some_and(|(_, plane)| plane == Plane::Quorum)
            };
            let on_quorum: Vec<_> = links.iter().copied().filter(quorum).collect();
            let any = dice.pick(&links);
            let one = if on_quorum.is_empty() { None } else { dice.pick(&on_quorum) };
            if let Some((link, plane)) = one.filter(|_| dice.chance(60)).or(any) {
                if bench.boundary.receiving.is_some_and(|(of, _)| of == link) {
                    return owed(dice, bench);
                }
                let message = dice.message(bench, link, plane);
                bench.step(Event::Received { link, message });
            }
        }
    }
}

/// What a life has seen, by what the server did.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest is not counted")]
fn memorable(output: &Output) -> Option<&'static str> {
    match output {
        Output::Locate { .. } => Some("Locate"),
        Output::StreamLog { form, .. } => Some(match form {
            Form::Proposals => "StreamLog, Proposals",
            Form::Committed => "StreamLog, Committed",
            Form::Commits => "StreamLog, Commits",
            Form::Informs => "StreamLog, Informs",
        }),
        Output::NotifyDrained(_) => Some("NotifyDrained"),
        Output::SendSnapshot { .. } => Some("SendSnapshot"),
        Output::ReceiveSnapshot { .. } => Some("ReceiveSnapshot"),
        Output::TakeSnapshot(_) => Some("TakeSnapshot"),
        Output::Abandon => Some("Abandon"),
        Output::Answer(_) => Some("Answer"),
        Output::Accepted(_) => Some("Accepted"),
        Output::Refused { reason, .. } => Some(match reason {
            Refusal::NotServing => "Refused, NotServing",
            Refusal::LeadershipOver => "Refused, LeadershipOver",
            Refusal::Busy => "Refused, Busy",
            Refusal::TooLong(_) => "Refused, TooLong",
            Refusal::Behind => "Refused, Behind",
        }),
        Output::ReadRefused { reason: Refusal::LeadershipOver, .. } => {
            Some("ReadRefused, LeadershipOver")
        }
        Output::Prepare { origin: Origin::Here, .. } => Some("Prepare, Here"),
        Output::Prepare { origin: Origin::Learner(_), .. } => Some("Prepare, Learner"),
        Output::Deliver(_) => Some("Deliver"),
        Output::Persist { write: Write::Append(_), .. } => Some("Append"),
        Output::Persist { write: Write::Truncate(_), .. } => Some("Truncate"),
        Output::Persist { write: Write::AppendStaged(_), .. } => Some("AppendStaged"),
        Output::Persist { write: Write::Install { .. }, .. } => Some("Install"),
        Output::Hangup { reason, .. } => match reason {
            Hangup::Hole { .. } => Some("Hangup, Hole"),
            Hangup::CannotCut(_) => Some("Hangup, CannotCut"),
            Hangup::Unreadable => Some("Hangup, Unreadable"),
            Hangup::Unacknowledged(_) => Some("Hangup, Unacknowledged"),
            Hangup::TooManyRequests => Some("Hangup, TooManyRequests"),
            Hangup::NewerHistory(_) => Some("Hangup, NewerHistory"),
            _ => None,
        },
        Output::Send { message: Message::Packet(packet), .. } => match packet {
            Packet::Diff(_) => Some("DIFF"),
            Packet::Trunc(_) => Some("TRUNC"),
            Packet::Proposal(_) => Some("PROPOSAL"),
            Packet::Proposals(_) => Some("PROPOSALs"),
            Packet::Commit(_) => Some("COMMIT"),
            Packet::Commits(_) => Some("COMMITs"),
            Packet::Inform(_) => Some("INFORM"),
            Packet::Sync { .. } => Some("SYNC"),
            Packet::Request(_) => Some("REQUEST"),
            Packet::Ack(zxid) if !zxid.is_epoch_start() => Some("ACK"),
            Packet::Acks(_) => Some("ACKs"),
            Packet::AckEpoch { current_epoch: None, .. } => Some("ACKEPOCH again"),
            Packet::UpToDate => Some("UPTODATE"),
            _ => None,
        },
        Output::Halt(Fault::CommittedCut { .. }) => Some("Halt, CommittedCut"),
        _ => None,
    }
}

/// What has to come about in some of the lives.
const MEMORABLE: [&str; 41] = [
    "Locate",
    "StreamLog, Proposals",
    "StreamLog, Committed",
    "StreamLog, Informs",
    "NotifyDrained",
    "SendSnapshot",
    "ReceiveSnapshot",
    "TakeSnapshot",
    "Abandon",
    "Answer",
    "Accepted",
    "Refused, NotServing",
    "Refused, LeadershipOver",
    "Refused, Busy",
    "Refused, TooLong",
    "ReadRefused, LeadershipOver",
    "Prepare, Here",
    "Prepare, Learner",
    "Deliver",
    "Append",
    "Truncate",
    "AppendStaged",
    "Install",
    "Hangup, Hole",
    "Hangup, CannotCut",
    "Hangup, Unreadable",
    "Hangup, NewerHistory",
    "DIFF",
    "TRUNC",
    "PROPOSAL",
    "PROPOSALs",
    "COMMIT",
    "COMMITs",
    "INFORM",
    "SYNC",
    "REQUEST",
    "ACK",
    "ACKs",
    "ACKEPOCH again",
    "UPTODATE",
    "Halt, CommittedCut",
];

/// Three thousand lives of six hundred events; in how many of them each of these came about.
fn lives(change: fn(&mut Config)) -> BTreeMap<&'static str, usize> {
    let mut lives = BTreeMap::new();
    for seed in 0..if cfg!(miri) { 1 } else { 3_000 } {
        let mut dice = Dice::new(seed);
        let mut config = dice.config();
        change(&mut config);
        let mut bench = Bench::new(config, dice.durable());
        let mut seen = BTreeSet::new();
        for _ in 0..if cfg!(miri) { 40 } else { 600 } {
            let before = bench.said.len();
            lawful(&mut dice, &mut bench);
            assert_eq!(bench.peer.broken(), None);
            let status = bench.status();
            let follows = matches!(status.state, Following | Observing);
            seen.extend((status.state == Leading).then_some("led"));
            seen.extend(follows.then_some("followed"));
            let on = status.state == Leading && status.serving && status.voters > 1;
            seen.extend(on.then_some("led on"));
            seen.extend((follows && status.serving).then_some("followed on"));
            seen.extend(bench.said[before..].iter().filter_map(memorable));
        }
        for what in seen {
            *lives.entry(what).or_default() += 1;
        }
    }
    lives
}

/// ZOOKEEPER-3769, -2186, -547: bytes from anybody ended the thread that read them.
#[test]
fn nothing_that_a_peer_says_or_the_network_does_breaks_a_server() {
    let lives = lives(|_| {});
    let often = |what: &str| lives.get(what).copied().unwrap_or(0);
    for (what, least) in [("led", 200), ("followed", 200), ("led on", 100), ("followed on", 100)] {
        assert!(cfg!(miri) || often(what) >= least, "a test of nothing: {lives:?}");
    }
    for what in MEMORABLE {
        assert!(cfg!(miri) || often(what) > 0, "{what} never came about: {lives:?}");
    }
}

#[test]
fn the_same_where_the_membership_may_change() {
    lives(|config| config.reconfig_enabled = true);
}

/// Not even a driver that keeps no rule: links that never came up, dials that nobody made, old
/// tickets, time that goes back.
#[test]
fn nothing_that_a_driver_reports_makes_a_server_panic() {
    for seed in 0..if cfg!(miri) { 1 } else { 200 } {
        let mut dice = Dice::new(seed);
        let mut config = dice.config();
        config.reconfig_enabled = dice.chance(50);
        let mut peer = Peer::new(config, dice.durable()).unwrap();
        let (mut issued, mut now, mut links) = (0, 0u64, 0);
        for _ in 0..if cfg!(miri) { 60 } else { 1_000 } {
            now += dice.rng.below(1_000_000_000);
            let at = Instant(now.saturating_sub(dice.rng.below(10_000_000_000)));
            let link = LinkId(if dice.chance(90) { dice.rng.below(links + 1) } else { 99_999 });
            let plane = dice.pick(&[Plane::Election, Plane::Quorum]);
            let event = match dice.below(12) {
                0 | 1 => Event::Tick,
                2 | 3 => {
                    links += 1;
                    Event::LinkUp(LinkUp {
                        link: LinkId(links),
                        plane,
                        dialled: dice.chance(50),
                        peer: Some(dice.id()),
                        advertised: dice.chance(50).then(|| support::at("h", 1)),
                        remote: dice.chance(50).then(|| "::1".parse().unwrap()),
                    })
                }
                4 => Event::LinkDown { link, cause: Cause::Garbled },
                5 => Event::DialFailed { plane, peer: dice.id() },
                6 => Event::Persisted(Ticket(dice.rng.below(issued + 1))),
                7 => Event::Oracle(dice.chance(50)),
                8 if dice.chance(5) => Event::StepDown,
                8 => dice.local(&peer, link),
                _ => {
                    let message = if plane == Plane::Election || dice.chance(2) {
                        Message::Notification(dice.notification(&peer))
                    } else {
                        Message::Packet(dice.packet(&peer, &[peer.status().last]))
                    };
                    Event::Received { link, message }
                }
            };
            for output in peer.step(Input { at, event }) {
                if let Output::Persist { ticket, .. } = output {
                    issued = ticket.0;
                }
            }
            assert_eq!(peer.broken(), None);
        }
        peer.step(Input { at: Instant(now), event: Event::Shutdown });
    }
}

#[test]
fn the_same_inputs_do_the_same_and_a_copy_goes_on_like_its_original() {
    let half = if cfg!(miri) { 20 } else { 200 };
    for seed in 0..if cfg!(miri) { 1 } else { 50 } {
        let run = |copied_at: usize| {
            let mut dice = Dice::new(seed);
            let (config, durable) = (dice.config(), dice.durable());
            let mut bench = Bench::new(config, durable);
            for at in 0..2 * half {
                if at == copied_at {
                    bench = bench.clone();
                }
                lawful(&mut dice, &mut bench);
            }
            (bench.peer.clone(), bench.said.clone())
        };
        let (first, second) = (run(0), run(half));
        assert_eq!(first.1, second.1, "seed {seed}");
        assert!(first.0 == second.0, "seed {seed}");
        assert!(!first.1.is_empty());
    }
}

// --- its ends ---

#[test]
fn a_shutdown_hangs_up_everything_and_after_it_there_is_nothing() {
    // A leader with a follower, a silent learner, its election links and a non-member.
    let mut leader = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    leader.win(&[1, 2]);
    leader.establish(2);
    leader.learner();
    leader.accepted(77);
    // One that looks, with an early learner and a write under way.
    let mut looking = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    looking.meet(1);
    looking.learner();
    // A follower that waits for its disk.
    let mut follower = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    follower.lose(3, &[2], 0, 0);
    let (link, _) = follower.reach(3);
    follower.receive(link, leader_info(1));
    for (mut bench, links) in [(leader, 5), (looking, 2), (follower, 3)] {
        assert_eq!(bench.links_up(), links);
        let seen = bench.step(Event::Shutdown);
        assert_eq!(seen.hangups().len(), links, "{seen:?}");
        assert!(seen.hangups().iter().all(|(_, reason)| *reason == Hangup::Shutdown));
        assert_eq!((bench.links_up(), bench.peer.deadline()), (0, None));
        let status = bench.status();
        assert_eq!((status.state, status.serving, status.leader), (Looking, false, None));
        bench.persisted().is_nothing();
        bench.now = Instant(bench.now.0 + 100_000_000_000);
        for event in [Event::Tick, Event::Shutdown, Event::StepDown, Event::Oracle(true)] {
            bench.step(event).is_nothing();
        }
        let (_, seen) = bench.accepted(99);
        seen.is_nothing();
        bench.learner_seen().1.is_nothing();
    }
}

#[test]
fn an_idle_server_wants_its_first_tick_at_once_and_answers_nobody_before() {
    let mut bench = Bench::idle(1, &ensemble(&[1, 2, 3]), Durable::default(), |_| {});
    assert_eq!(bench.due().1, Timer::Start);
    let (link, seen) = bench.accepted(3);
    assert_eq!(seen.told(link), [], "it has no vote yet");
    assert_eq!(bench.hear(link, standing(Looking, vote(0, 0, 3), 1)).told(link), []);
    let (learner, seen) = bench.learner_seen();
    assert_eq!(seen.hung_up(learner), Some(Hangup::NotLeading));
    let seen = bench.step(Event::Tick);
    let first = standing(Looking, vote(0, 0, 1), 1);
    let then = standing(Looking, vote(0, 0, 3), 1);
    assert_eq!(seen.told(link), [first, then], "what it heard before counts now");
}

// --- what it may hold ---

/// Everything that a server holds, as long as it is when written down.
fn size(bench: &Bench) -> usize {
    format!("{:?}", bench.peer).len()
}

/// Floods a server twice and returns what it held after the first and after the second time.
fn flood(bench: &mut Bench, mut wave: impl FnMut(&mut Bench, i64)) -> (usize, usize) {
    let mut sizes = [0; 2];
    for size_then in &mut sizes {
        for at in 0..3_000 {
            wave(bench, at);
        }
        *size_then = size(bench);
    }
    (sizes[0], sizes[1])
}

/// A follower that serves says this; it comes back if it was hung up.
fn flood_of(bench: &mut Bench, packet: Packet) {
    let courses = bench.boundary.courses.iter();
    let link = courses.rev().find(|(_, course)| course.up_to_date).map(|(link, _)| *link);
    let link = link.unwrap_or_else(|| {
        let (link, _) = bench.follower(1, 1);
        bench.receive(link, ack_epoch_again(0));
        bench.receive(link, ack(1));
        link
    });
    bench.receive(link, packet);
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of messages")]
fn whatever_floods_a_server_it_holds_no_more_than_its_limits() {
    let members = ensemble(&[1, 2, 3]);
    let looking = || Bench::of(3, &members, Durable::default());
    let leading = || {
        let few = |config: &mut Config| config.history.requests = 16;
        let mut bench = Bench::with(3, &members, Durable::default(), few);
        bench.win(&[1, 2]);
        bench.establish(2);
        bench
    };
    type Wave = fn(&mut Bench, i64);
    let floods: [(&str, Bench, Wave); 13] = [
        ("non_members", looking(), |bench, at| {
            let (link, _) = bench.accepted(1_000 + at);
            bench.hear(link, standing(Looking, vote(9, 9, 1_000 + at), at));
        }),
        ("knocks of non-members", looking(), |bench, at| {
            bench.knock(-at, support::at("h", 1), "10.0.0.1");
            bench.knock(0, support::at("h", 1), "10.0.0.1");
        }),
        ("knocks of a member", looking(), |bench, at| {
            bench.knock(1, support::at(&format!("h{at:04}"), 1), "10.0.0.1");
        }),
        ("early learners", looking(), |bench, _| {
            let link = bench.learner();
            bench.receive(link, Packet::FollowerInfo(info(2, 0)));
        }),
        ("silent learners", leading(), |bench, _| {
            bench.learner();
        }),
        ("learners with ever new ids", leading(), |bench, at| {
            let (link, seen) = bench.learner_seen();
            if seen.hung_up(link).is_none() {
                bench.receive(link, Packet::ObserverInfo(info(10_000 + at, 0)));
            }
        }),
        ("learners that come again and again", leading(), |bench, _| {
            let (link, _) = bench.follower(1, 1);
            bench.receive(link, ack_epoch_again(0));
        }),
        ("requests from here, and nothing is prepared", leading(), |bench, at| {
            bench.propose(i32::try_from(at).unwrap());
        }),
        ("requests of a learner", leading(), |bench, at| {
            let request = request(i32::try_from(at).unwrap());
            let op = if at % 2 == 0 { Request::SYNC } else { 5 };
            flood_of(bench, Packet::Request(Request { op, ..request }));
        }),
        ("reads of a learner that acknowledges nothing", leading(), |bench, at| {
            if at == 0 && bench.boundary.disk.last() < z(1, 1) {
                bench.propose(1);
                bench.prepared();
            }
            flood_of(bench, Packet::Request(Request { op: Request::SYNC, ..request(2) }));
            flood_of(bench, pong(1));
        }),
        ("a learner that answers no ping, and others that read", leading(), |bench, _| {
            if bench.boundary.courses.values().filter(|course| course.up_to_date).count() < 2 {
                let (link, _) = bench.follower(1, 1);
                bench.receive(link, ack_epoch_again(0));
                bench.receive(link, ack(1));
            }
            let mut courses = bench.boundary.courses.iter();
            let two = courses.find(|(_, course)| course.up_to_date).map(|(link, _)| *link).unwrap();
            flood_of(bench, ack(1));
            bench.read();
            bench.receive(two, pong(1));
        }),
        ("acknowledgements of what was never proposed", leading(), |bench, at| {
            let first = z(1, 2 + u32::try_from(at).unwrap());
            flood_of(bench, Packet::Acks(Run { first, last: Zxid(first.0 + 1_000) }));
        }),
        ("votes of members", looking(), |bench, at| {
            let link = match bench.planes().first() {
                Some(Some((link, _))) => *link,
                _ => bench.meet(2),
            };
            bench.hear(link, standing(Looking, vote(0, at, 2), at));
        }),
    ];
    for (name, mut bench, wave) in floods {
        let (first, second) = flood(&mut bench, wave);
        assert!(second <= first + first / 50 + 64, "{name}: {first}, then {second} bytes");
        assert!(bench.links_up() < 1_200, "{name}: {} links", bench.links_up());
    }
}

#[test]
fn promises_that_wait_for_a_disk_that_never_answers_are_bounded_by_the_learners() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    bench.win(&[1, 2]);
    let (first, second) = flood(&mut bench, |bench, _| {
        bench.follower(1, 0);
    });
    assert!(second <= first + 64, "{first}, then {second} bytes");
}

// --- what it says ---

#[test]
fn the_story_of_a_leader_as_people_read_it() {
    let mut bench = Bench::idle(3, &ensemble(&[1, 2, 3]), Durable::default(), |_| {});
    let mut story = bench.step(Event::Tick).texts();
    story.extend(bench.win_seen(&[1, 2]).texts());
    let link = bench.learner();
    for packet in [Packet::FollowerInfo(info(2, 0)), ack_epoch(0, 0), ack(1)] {
        story.extend(bench.receive(link, packet).texts());
        story.extend(bench.persisted().texts());
    }
    story.extend(bench.down(link).texts());
    story.extend(bench.step(Event::StepDown).texts());
    assert_eq!(
        story[..13],
        [
            "round 0 -> 1: a round begins with one's own vote",
            "vote nobody (peer epoch none, zxid none) -> 3 (peer epoch 0, zxid 0x0): \
             a round begins with one's own vote",
            "state LOOKING -> LEADING: quorum {1,2,3} for 3, everybody heard",
            "phase election -> discovery: quorum {1,2,3} for 3",
            "accepted epoch 1: quorum {2,3} connected, epoch 1",
            "current epoch 1: quorum {2,3} promised",
            "phase discovery -> synchronization: quorum {2,3} promised",
            "learner 2 is brought up by DIFF: its history ends at 0x0",
            "learner 2 synchronised: quorum {2} acknowledged",
            "phase synchronization -> broadcast: quorum {2,3} acknowledged",
            "learner 2 lost: its link ended",
            "state LEADING -> LOOKING: asked to",
            "phase broadcast -> election: asked to",
        ]
    );
}

#[test]
fn the_story_of_a_follower_as_people_read_it() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    let (three, two) = (bench.meet(3), bench.meet(2));
    let mut story = bench.hear(three, standing(Looking, vote(0, 0, 3), 4)).texts();
    story.extend(bench.hear(two, standing(Looking, vote(0, 0, 3), 4)).texts());
    let (link, _) = bench.reach(3);
    let packets = [leader_info(1), Packet::Diff(Zxid(0)), new_leader(1), Packet::UpToDate];
    for packet in packets {
        story.extend(bench.receive(link, packet).texts());
        story.extend(bench.persisted().texts());
    }
    story.extend(bench.down(link).texts());
    assert_eq!(
        story[..11],
        [
            "round 1 -> 4: round 4 > 1, says 3",
            "vote 1 (peer epoch 0, zxid 0x0) -> 3 (peer epoch 0, zxid 0x0): round 4 > 1, says 3",
            "state LOOKING -> FOLLOWING: quorum {1,2,3} for 3, everybody heard",
            "phase election -> discovery: quorum {1,2,3} for 3",
            "accepted epoch 1: leader 3 begins epoch 1",
            "phase discovery -> synchronization: leader 3 begins epoch 1",
            "learner 1 is brought up by DIFF: its history ends at 0x0",
            "current epoch 1: leader 3 begins epoch 1",
            "phase synchronization -> broadcast: leader 3 begins epoch 1",
            "state FOLLOWING -> LOOKING: leader 3 closed its link",
            "phase broadcast -> election: leader 3 closed its link",
        ]
    );
}

#[test]
fn the_reasons_that_an_operator_will_search_for() {
    let (voter, leader) = (ServerId(2), ServerId(3));
    let members = ids(&[1, 3]);
    for (reason, text) in [
        (Reason::LeaderSilent { leader }, "leader 3 is silent"),
        (Reason::LeaderUnreachable { leader }, "leader 3 cannot be reached"),
        (
            Reason::LeaderMovedOn { leader, round: standing(Looking, vote(0, 0, 3), 5).round },
            "server 3 no longer leads, it is in round 5",
        ),
        (
            Reason::OldEpoch { announced: Epoch(4), accepted: Epoch(6) },
            "leader announced epoch 4, but 6 is promised",
        ),
        (Reason::Deserted { voter }, "voter 2 looks again, no quorum is left"),
        (Reason::LostPromise { voter }, "the promise of voter 2 was lost"),
        (
            Reason::LaterPromise { voter, accepted: Epoch(9) },
            "voter 2 has promised the later epoch 9",
        ),
        (
            Reason::NoQuorum { phase: Phase::Broadcast, members },
            "no quorum in broadcast, only {1,3}",
        ),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}

// --- what it is told ---

#[test]
fn a_configuration_that_cannot_work_is_refused_by_name() {
    let config = || Config::new(ServerId(1), Membership::parse(ensemble(&[1, 2, 3])).unwrap());
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Peer::new(config, Durable::default()).err().map(|error: ConfigError| error.to_string())
    };
    assert_eq!(refused(|_| {}), None);
    for (change, text) in [
        (
            (|c| c.timing.tick = millis(0)) as fn(&mut Config),
            "tick is 0ns, at least 1 ms is needed",
        ),
        (|c| c.timing.sync_limit = 0, "sync_limit is 0 ticks, at least 1 is needed"),
        (
            |c| c.timing.redial_min = millis(5_000),
            "redial_min is 5s, more than redial_max, which is 1s",
        ),
        (|c| c.limits.learners = 0, "the limit of learners is 0, at least 1 is needed"),
        (|c| c.id = ServerId(-4), "server id -4 is reserved"),
        (|c| c.id = ServerId(i64::MAX), "server id 9223372036854775807 is reserved"),
    ] {
        assert_eq!(refused(change).as_deref(), Some(text));
    }
}

/// A newer configuration is on disk before a vote is cast under it.
#[test]
fn a_newer_configuration_is_adopted_only_while_looking_only_where_allowed_and_first_made_durable() {
    let newer = ensemble(&[1, 2, 3, 4]).replace("version=0", "version=5");
    let told = |state: ServerState| {
        let standing = standing(state, vote(0, 0, 3), 1);
        let config = Bytes::from(newer.clone());
        Message::Notification(Notification {
            standing,
            version: 2,
            config,
            mark: Mark::SETTLES_AT_ONCE,
        })
    };
    for allowed in [false, true] {
        let change = |config: &mut Config| config.reconfig_enabled = allowed;
        let mut bench = Bench::with(2, &ensemble(&[1, 2, 3]), Durable::default(), change);
        let three = bench.meet(3);
        let seen = bench.step(Event::Received { link: three, message: told(Looking) });
        if allowed {
            let text = bench.peer.config().membership.text().clone();
            assert_eq!(seen.persists(), [Write::Membership(text)]);
            assert_eq!(seen.told(three), [], "no vote before it is on disk");
            assert_eq!(bench.peer.config().membership.version(), 5);
            let seen = bench.persisted();
            assert_eq!(seen.told(three), [standing(Looking, vote(0, 0, 2), 1)]);
            assert_eq!(bench.status().voters, 4);
        } else {
            assert_eq!((seen.persists(), bench.status().voters), (vec![], 3));
        }
        let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), change);
        let links = bench.win(&[1, 2]);
        let seen = bench.step(Event::Received { link: links[1], message: told(Following) });
        assert_eq!((seen.persists(), bench.status().voters), (vec![], 3));
    }
}

/// Whoever comes from another ensemble, or from nowhere, brings no membership; one that joined while this
/// server was away does.
#[test]
fn the_configuration_of_somebody_who_is_no_member_is_adopted_only_if_both_of_us_are_in_it() {
    let [three, five] = [[1, 2, 3].as_slice(), &[2, 4, 5]].map(ensemble);
    for (from, config, adopted) in [
        (3, five.clone(), true),
        (5, five.clone(), true),
        (6, five.clone(), false),
        (5, ensemble(&[1, 3, 5]), false),
        (5, five.replace("host2", "elsewhere"), false),
    ] {
        let config = config.replace("version=0", "version=5");
        let change = |config: &mut Config| config.reconfig_enabled = true;
        let mut bench = Bench::with(2, &three, Durable::default(), change);
        let link = bench.meet(from);
        let standing = standing(Looking, vote(0, 0, from), 1);
        let notification =
            Notification { standing, version: 2, config: config.clone().into(), mark: Mark::NONE };
        let message = Message::Notification(notification);
        let seen = bench.step(Event::Received { link, message });
        assert_eq!(!seen.persists().is_empty(), adopted, "{config:?} of {from}");
    }
}
