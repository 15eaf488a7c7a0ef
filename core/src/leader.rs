//! A leader, from the end of the election to the end of its reign.
//!
//! ```text
//!               a quorum connects       a quorum promises       a quorum acknowledges
//!   elected ──► discovery ────────────► synchronization ──────► broadcast (established)
//!      │            │ initLimit             │ initLimit             │ no quorum within syncLimit
//!      └────────────┴───────────────────────┴───────────────────────┴──► LOOKING
//! ```
//!
//! The winner of an election is only a prospective leader. It serves when a quorum has taken over its
//! history, and no longer than a quorum answers it. The learner's side of each phase stands in the
//! file of the same name under [`learner`](crate::learner).

pub mod broadcast;
pub mod discovery;
pub mod progress;
pub mod synchronization;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::context::{Context, Verdict};
use crate::id::{LinkId, Origin, ReadId, ServerId};
use crate::input::{Located, Unreadable};
use crate::leader::broadcast::{Asker, Broadcast, quorum_left};
use crate::leader::discovery::{Discovery, is_newer};
use crate::leader::progress::{Busy, Progress, Reign, Stage, send};
use crate::leader::synchronization::{Begun, Synchronization, Terms};
use crate::message::{LearnerInfo, Message, Packet, Request, Run};
use crate::output::{Hangup, Output, Refusal};
use crate::quorum::Support;
use crate::report::{self, Change, Reason, Seat};
use crate::time::Instant;
use crate::timers::Timer;
use crate::txn::{Draft, Txn, Txns};
use crate::vote::{Round, ServerState, Standing};
use crate::zxid::{Counter, Epoch, Zxid};

/// The leader's side of Zab.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    phase: Phase,
    learners: BTreeMap<LinkId, Progress>,
    /// The voters that elected us and have not looked elsewhere since.
    supporters: Support,
    round: Round,
    elected: Instant,
    /// Anonymous observers so far: they are called -1, -2, …
    anonymous: i64,
    /// Where the history ends that we bring into this reign.
    inherited: Zxid,
    /// Ends of half ticks so far; every second one ends a tick.
    halves: u64,
    /// Pings so far.
    beat: u64,
    /// A warning about an acknowledgement was given in this tick.
    warned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Discovery(Discovery),
    Synchronization(Synchronization),
    Broadcast(Broadcast),
}

impl Leader {
    /// Takes office after an election that `supporters` decided; takes in the learners that came
    /// early.
    pub fn new(cx: &mut Context<'_>, round: Round, supporters: Support) -> (Self, Verdict) {
        let mut leader = Self {
            phase: Phase::Discovery(Discovery::new(cx)),
            learners: BTreeMap::new(),
            supporters,
            round,
            elected: cx.now,
            anonymous: 0,
            inherited: cx.history.last(),
            halves: 0,
            beat: 0,
            warned: false,
        };
        cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
        cx.timers.after(Timer::Ping, cx.now, cx.config.timing.ping_interval());
        let mut verdict = Verdict::Stay;
        for waiting in cx.links.take_waiting() {
            leader.on_link_up(cx, waiting.link);
            if let Some(first) = waiting.first {
                if verdict == Verdict::Stay {
                    verdict = leader.on_packet(cx, waiting.link, first);
                }
            }
        }
        if verdict == Verdict::Stay {
            verdict = leader.advance(cx);
        }
        (leader, verdict)
    }

    /// How far this reign has come.
    pub const fn phase(&self) -> report::Phase {
        match self.phase {
            Phase::Discovery(_) => report::Phase::Discovery,
            Phase::Synchronization(_) => report::Phase::Synchronization,
            Phase::Broadcast(_) => report::Phase::Broadcast,
        }
    }

    /// The learners that have introduced themselves, ascending.
    pub fn seats(&self) -> Vec<Seat> {
        let introduced = self.learners.values().filter(|l| l.stage > Stage::Silent);
        let mut seats: Vec<_> = introduced
            .map(|l| Seat { id: l.id, voter: l.votes, follower: l.follower, synced: l.is_synced() })
            .collect();
        seats.sort_unstable();
        seats
    }

    /// Somebody has connected to the quorum port.
    pub fn on_link_up(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        let silent = |(link, l): (&LinkId, &Progress)| (l.stage == Stage::Silent).then_some(*link);
        let limits = &cx.config.limits;
        if self.learners.iter().filter_map(silent).count() >= limits.unintroduced {
            if let Some(oldest) = self.learners.iter().find_map(silent) {
                self.drop_learner(cx, oldest, Hangup::TooManyUnintroduced);
            }
        }
        if self.learners.len() >= limits.learners {
            cx.links.hangup(link, Hangup::TooManyLearners, cx.outbox);
        } else {
            self.learners.insert(link, Progress::new(cx.now));
        }
        Verdict::Stay
    }

    /// A learner's link has ended.
    pub fn on_link_down(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        self.forget(cx, link);
        Verdict::Stay
    }

    /// A learner has said something.
    pub fn on_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet) -> Verdict {
        let epoch = self.epoch();
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        learner.heard = cx.now;
        match (learner.stage, packet) {
            (Stage::Silent, Packet::FollowerInfo(info)) => self.on_info(cx, link, info, true),
            (Stage::Silent, Packet::ObserverInfo(info)) => self.on_info(cx, link, info, false),
            (Stage::Told, Packet::AckEpoch { last, current_epoch }) => {
                self.on_ack_epoch(cx, link, last, current_epoch)
            }
            (Stage::Syncing, Packet::Ack(zxid))
                if learner.cursor.new_leader
                    && zxid.is_epoch_start()
                    && Some(zxid.epoch()) == epoch =>
            {
                self.on_history_ack(cx, link)
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Ack(zxid)) => {
                self.on_ack(cx, link, Run::one(zxid))
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Acks(run)) => {
                self.on_ack(cx, link, run)
            }
            (Stage::Serving, Packet::Ping { .. }) => {
                if learner.beats.on_answer() {
                    self.serve_reads(cx);
                }
                Verdict::Stay
            }
            (Stage::Serving, Packet::Request(request)) => self.on_request(cx, link, request),
            (Stage::Acknowledged, Packet::Ping { .. })
            // Sessions are a service above us, and none is there yet.
            | (Stage::Serving, Packet::Revalidate(_)) => Verdict::Stay,
            (_, packet) => {
                self.drop_learner(cx, link, Hangup::OutOfTurn(packet.name()));
                Verdict::Stay
            }
        }
    }

    /// A write has become durable.
    pub fn on_persisted(&mut self, cx: &mut Context<'_>) -> Verdict {
        if let Phase::Broadcast(broadcast) = &mut self.phase {
            let durable = cx.history.durable();
            if durable > cx.history.committed() {
                broadcast.tally.set(cx.quorum, cx.config.id, durable);
                self.commit(cx);
            }
            return Verdict::Stay;
        }
        self.advance(cx)
    }

    /// The disk has found where a learner stands.
    pub fn on_located(&mut self, cx: &mut Context<'_>, link: LinkId, located: Located) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        if let (Stage::Promised(last), Busy::Locating) = (learner.stage, learner.cursor.busy) {
            learner.cursor.busy = Busy::No;
            self.synchronise(cx, link, last, Some(located));
        }
        Verdict::Stay
    }

    /// What the driver was asked to stream to a learner is written.
    pub fn on_streamed(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        outcome: Result<(), Unreadable>,
    ) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        learner.heard = cx.now;
        let busy = learner.cursor.busy;
        if outcome.is_err() {
            if let Busy::Log(..) = busy {
                cx.history.on_unreadable(learner.cursor.sent);
            }
            self.drop_learner(cx, link, Hangup::Unreadable);
        } else {
            learner.cursor.on_streamed();
            if learner.stage == Stage::Acknowledged && matches!(self.phase, Phase::Broadcast(_)) {
                self.welcome(cx, link);
            }
            self.feed_one(cx, link);
        }
        if let Busy::Snapshot(_) = busy {
            self.resume(cx);
        }
        Verdict::Stay
    }

    /// A stream to a learner moves: that is no silence. A leader that waits for this voter waits on.
    pub fn on_progress(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        learner.heard = cx.now;
        if learner.votes && matches!(self.phase, Phase::Synchronization(_)) {
            cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
        }
        Verdict::Stay
    }

    /// A learner has read what was sent to it.
    pub fn on_drained(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        if let Some(learner) = self.learners.get_mut(&link) {
            learner.cursor.on_drained();
            self.feed_one(cx, link);
        }
        Verdict::Stay
    }

    /// Somebody here asks for a transaction.
    pub fn on_propose(&mut self, cx: &mut Context<'_>, request: Request) -> Verdict {
        let id = request.id;
        let refusal = match &mut self.phase {
            Phase::Broadcast(broadcast) => {
                if broadcast.outstanding(cx.history.committed()) < cx.config.history.requests {
                    broadcast.prepare(cx, Origin::Here, request);
                    return Verdict::Stay;
                }
                Refusal::Busy
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => Refusal::NotServing,
        };
        cx.outbox.push(Output::Refused { id, reason: refusal });
        Verdict::Stay
    }

    /// The application has made transactions of requests: each gets the next zxid, and they go out.
    pub fn on_prepared(
        &mut self,
        cx: &mut Context<'_>,
        epoch: Epoch,
        drafts: Vec<Draft>,
    ) -> Verdict {
        let Phase::Broadcast(broadcast) = &mut self.phase else { return Verdict::Stay };
        if broadcast.epoch != epoch || drafts.is_empty() {
            return Verdict::Stay;
        }
        let (before, first) = (cx.history.last(), broadcast.proposed);
        // The counter must not run into the epoch (ZOOKEEPER-1277).
        let room = Counter::LAST.0 - first.counter().0;
        if drafts.len() > room as usize {
            return Verdict::leave(Reason::CounterEnd(first));
        }
        let single = drafts.len() == 1;
        let mut numbered = drafts.into_iter().zip(1..).map(|(Draft { header, body }, n)| Txn {
            zxid: Zxid(first.0 + n),
            header,
            body,
        });
        let txns = match numbered.next() {
            Some(txn) if single => Txns::One(txn),
            first => first.into_iter().chain(numbered).collect(),
        };
        for txn in &*txns {
            broadcast.proposed = txn.zxid;
            broadcast.on_prepared(cx);
        }
        for (link, learner) in &mut self.learners {
            learner.propose(cx, *link, before, &txns);
        }
        cx.history.append(txns, cx.outbox);
        Verdict::Stay
    }

    /// Somebody here wants to read what is as new as everything acknowledged so far.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadId) -> Verdict {
        let point = cx.history.committed();
        self.read(cx, Asker::Here(read), point);
        Verdict::Stay
    }

    /// The reign is over: tells those who wait for something here.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        if let Phase::Broadcast(broadcast) = &mut self.phase {
            broadcast.end(cx);
        }
    }

    /// A deadline has passed.
    pub fn on_timer(&mut self, cx: &mut Context<'_>, timer: Timer) -> Verdict {
        match timer {
            Timer::Init => {
                let members = match &self.phase {
                    Phase::Discovery(discovery) => discovery.members(cx),
                    Phase::Synchronization(synchronization) => synchronization.members(cx),
                    Phase::Broadcast(_) => return Verdict::Stay,
                };
                Verdict::leave(Reason::NoQuorum { phase: self.phase(), members })
            }
            Timer::Ping => self.on_ping(cx),
            Timer::Start
            | Timer::Rest
            | Timer::Notification
            | Timer::Finalize
            | Timer::Redial
            | Timer::Introduction
            | Timer::Connect
            | Timer::ConnectLimit
            | Timer::Silence => Verdict::Stay,
        }
    }

    /// A voter is looking for a leader. If it elected us, has moved on since, and those that are left
    /// are no quorum, waiting for them is in vain (ZOOKEEPER-3109). Only a later round counts, or the
    /// lower one of a restarted server: a peer repeats its last frame on each new link.
    pub fn on_looking(
        &mut self,
        cx: &mut Context<'_>,
        voter: ServerId,
        heard: Standing,
    ) -> Verdict {
        let moved_on = heard.round > self.round
            || (heard.round < self.round && cx.links.is_newer(voter, self.elected));
        let here = self.learners.values().any(|l| l.id == voter && l.stage > Stage::Silent);
        if heard.state != ServerState::Looking
            || !moved_on
            || here
            || matches!(self.phase, Phase::Broadcast(_))
        {
            return Verdict::Stay;
        }
        self.supporters.remove(cx.quorum, voter);
        if self.supporters.is_enough(cx.quorum) {
            Verdict::Stay
        } else {
            Verdict::leave(Reason::Deserted { voter })
        }
    }

    /// The epoch, once it is decided.
    fn epoch(&self) -> Option<Epoch> {
        match &self.phase {
            Phase::Discovery(discovery) => discovery.begun().map(|(epoch, _)| epoch),
            Phase::Synchronization(synchronization) => Some(synchronization.epoch),
            Phase::Broadcast(broadcast) => Some(broadcast.epoch),
        }
    }

    /// FOLLOWERINFO or OBSERVERINFO: who it is, and what it has promised.
    fn on_info(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        info: LearnerInfo,
        follower: bool,
    ) -> Verdict {
        let ours = cx.config.membership.version();
        let refuse = if info.protocol < LearnerInfo::PROTOCOL {
            Some(Hangup::OldProtocol(info.protocol))
        } else if !LearnerInfo::go_together(info.protocol, cx.config.protocol) {
            Some(Hangup::OtherApplication(info.protocol))
        } else if info.config_version > ours {
            Some(Hangup::NewerConfiguration { theirs: info.config_version, ours })
        } else if info.id == Some(cx.config.id) {
            Some(Hangup::OwnId(cx.config.id))
        } else if !info.accepted_epoch.is_valid() || info.accepted_epoch == Epoch::MAX {
            Some(Hangup::EpochOutOfRange(info.accepted_epoch))
        } else {
            None
        };
        if let Some(reason) = refuse {
            self.drop_learner(cx, link, reason);
            return Verdict::Stay;
        }
        let id = info.id.unwrap_or_else(|| {
            self.anonymous -= 1;
            ServerId(self.anonymous)
        });
        let same = |(_, l): &(&LinkId, &Progress)| l.stage > Stage::Silent && l.id == id;
        if let Some(old) = self.learners.iter().find(same).map(|(link, _)| *link) {
            // Its acknowledgements go with the old link, before the new one is answered.
            self.drop_learner(cx, old, Hangup::Replaced(id));
        }
        let votes = follower && cx.quorum.is_voter(id);
        if let Some(learner) = self.learners.get_mut(&link) {
            (learner.id, learner.votes, learner.follower) = (id, votes, follower);
            learner.stage = Stage::Introduced;
        }
        match self.epoch() {
            None => {
                if let Phase::Discovery(discovery) = &mut self.phase {
                    discovery.on_info(cx, id, votes, info.accepted_epoch);
                }
                return self.advance(cx);
            }
            Some(epoch) if info.accepted_epoch > epoch && votes => {
                // It would refuse our epoch for ever; a new reign begins above its promise.
                let accepted = info.accepted_epoch;
                if cx.concessions.promise.insert(id, accepted).is_none() {
                    return Verdict::leave(Reason::LaterPromise { voter: id, accepted });
                }
            }
            Some(_) => {}
        }
        self.tell(cx, link);
        Verdict::Stay
    }

    /// LEADERINFO, when our own promise of the epoch is on disk.
    fn tell(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let (Some(epoch), Some(learner)) = (self.epoch(), self.learners.get_mut(&link)) else {
            return;
        };
        learner.stage = Stage::Told;
        let packet = Packet::LeaderInfo { epoch, protocol: cx.config.protocol };
        match &self.phase {
            Phase::Discovery(discovery) => {
                if let Some((_, ticket)) = discovery.begun() {
                    cx.outbox.send_after(ticket, link, Message::Packet(packet));
                }
            }
            // Discovery ended only after our promise was durable.
            Phase::Synchronization(_) | Phase::Broadcast(_) => send(cx, link, packet),
        }
    }

    /// ACKEPOCH: it follows nobody older from now on; this is how new it is.
    fn on_ack_epoch(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        last: Zxid,
        current_epoch: Option<Epoch>,
    ) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        let (id, votes) = (learner.id, learner.votes);
        learner.stage = Stage::Promised(last);
        let Phase::Discovery(discovery) = &mut self.phase else {
            // Late: it is synchronised like any other, however new it is; what it has beyond us was
            // never committed.
            self.synchronise(cx, link, last, None);
            return Verdict::Stay;
        };
        let Some(current_epoch) = current_epoch else {
            if votes && !discovery.has_promised(cx, id) {
                let learners = self.learners.values();
                let may = learners
                    .filter(|l| l.votes && matches!(l.stage, Stage::Introduced | Stage::Told));
                return discovery.on_lost_promise(cx, id, may.map(|l| l.id));
            }
            return Verdict::Stay;
        };
        if !current_epoch.is_valid() {
            self.drop_learner(cx, link, Hangup::EpochOutOfRange(current_epoch));
            return Verdict::Stay;
        }
        if is_newer(cx, current_epoch, last) {
            // The election was wrong. The next one finds the newer voter; an observer none finds.
            if votes && cx.quorum.weight(id) > 0 && cx.concessions.history.insert(id) {
                return Verdict::leave(Reason::NewerHistory { voter: id, current_epoch, last });
            }
            self.drop_learner(cx, link, Hangup::NewerHistory(last));
            return Verdict::Stay;
        }
        if votes && last.0 >= 0 {
            discovery.on_promise(cx, id);
        }
        self.advance(cx)
    }

    /// ACK of NEWLEADER: it has our history.
    fn on_history_ack(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        learner.stage = Stage::Acknowledged;
        let (id, votes) = (learner.id, learner.votes);
        cx.outbox.report(
            Change::Learner { id, synced: true },
            Reason::Acknowledged { members: Vec::from([id]) },
        );
        match &mut self.phase {
            Phase::Synchronization(synchronization) => {
                if votes {
                    synchronization.on_ack(cx, id);
                }
                self.advance(cx)
            }
            Phase::Broadcast(_) => {
                self.welcome(cx, link);
                Verdict::Stay
            }
            Phase::Discovery(_) => Verdict::Stay,
        }
    }

    /// UPTODATE: it serves, and what it has acknowledged counts. If the driver is sending to it, when that
    /// is over.
    fn welcome(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.get_mut(&link) else { return };
        if learner.cursor.is_streaming() {
            return;
        }
        (learner.stage, learner.heard) = (Stage::Serving, cx.now);
        send(cx, link, Packet::UpToDate);
        if let (Phase::Broadcast(broadcast), true) = (&mut self.phase, learner.votes) {
            broadcast.tally.set(cx.quorum, learner.id, learner.acks.through());
            self.commit(cx);
        }
    }

    /// ACK of transactions. Those of the history that it was brought, which ZooKeeper's learners send,
    /// say nothing new.
    fn on_ack(&mut self, cx: &mut Context<'_>, link: LinkId, run: Run) -> Verdict {
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        let outdated = run.last <= self.inherited.max(learner.acks.through());
        if outdated || run.last.is_epoch_start() {
            return Verdict::Stay;
        }
        let may = learner.votes || run.last <= cx.history.committed();
        if run.last > learner.cursor.reach() || !may {
            if !core::mem::replace(&mut self.warned, true) {
                let (id, zxid) = (learner.id, run.last);
                cx.outbox.report(Change::Ignored { id, zxid }, Reason::NotProposed);
            }
            return Verdict::Stay;
        }
        if learner.acks.on_ack(run) && learner.votes && learner.stage == Stage::Serving {
            if let Phase::Broadcast(broadcast) = &mut self.phase {
                broadcast.tally.set(cx.quorum, learner.id, learner.acks.through());
                self.commit(cx);
            }
        }
        Verdict::Stay
    }

    /// Commits what a quorum has on disk, in order, and tells everybody.
    fn commit(&mut self, cx: &mut Context<'_>) {
        let Phase::Broadcast(broadcast) = &mut self.phase else { return };
        let Some(through) = broadcast.tally.quorum(cx.quorum) else { return };
        if through > cx.history.committed() && through > Zxid::start_of(broadcast.epoch) {
            cx.history.commit(through, cx.rng, cx.outbox);
            self.feed(cx);
        }
    }

    /// REQUEST of a learner's client.
    fn on_request(&mut self, cx: &mut Context<'_>, link: LinkId, request: Request) -> Verdict {
        let Phase::Broadcast(broadcast) = &mut self.phase else { return Verdict::Stay };
        let waiting = broadcast.outstanding(cx.history.committed()) + broadcast.reads();
        if waiting >= cx.config.history.requests.saturating_mul(LEARNERS_SHARE) {
            self.drop_learner(cx, link, Hangup::TooManyRequests);
            return Verdict::Stay;
        }
        if request.op == Request::SYNC {
            // What is proposed by now, as ZooKeeper has it.
            let point = cx.history.last();
            self.read(cx, Asker::Learner(link), point);
        } else {
            broadcast.prepare(cx, Origin::Learner(link), request);
        }
        Verdict::Stay
    }

    /// Takes a read; asks the voters whether they still follow, unless an earlier read has just done so:
    /// then it waits for the next ping, with all that come until then.
    fn read(&mut self, cx: &mut Context<'_>, asker: Asker, point: Zxid) {
        let Phase::Broadcast(broadcast) = &mut self.phase else {
            if let Asker::Here(read) = asker {
                cx.outbox.push(Output::ReadRefused { read, reason: Refusal::NotServing });
            }
            return;
        };
        let first = broadcast.reads() == 0;
        broadcast.on_read(asker, self.beat + 1, point);
        if first {
            self.ping(cx);
            self.serve_reads(cx);
        }
    }

    /// Answers the reads that a quorum has confirmed.
    fn serve_reads(&mut self, cx: &mut Context<'_>) {
        let mut served = false;
        loop {
            let Phase::Broadcast(broadcast) = &mut self.phase else { return };
            let serving = self.learners.values().filter(|l| l.votes && l.stage == Stage::Serving);
            let answered = serving.map(|l| (l.id, l.beats.answered()));
            let Some((asker, point)) = broadcast.next_read(cx, answered) else { break };
            served = true;
            match asker {
                Asker::Here(read) => cx.outbox.push(Output::Answer(read)),
                Asker::Learner(link) => {
                    if let Some(learner) = self.learners.get_mut(&link) {
                        learner.syncs.push_back(point);
                    }
                }
            }
        }
        if served {
            let waiting = matches!(&self.phase, Phase::Broadcast(b) if b.reads() > 0);
            if waiting {
                self.ping(cx);
            }
            self.feed(cx);
        }
    }

    /// Lets a learner have what it can take.
    fn feed_one(&mut self, cx: &mut Context<'_>, link: LinkId) {
        if let (Some(reign), Some(learner)) = (self.reign(cx), self.learners.get_mut(&link)) {
            learner.feed(cx, link, reign);
        }
    }

    /// Lets every learner have what it can take.
    fn feed(&mut self, cx: &mut Context<'_>) {
        if let Some(reign) = self.reign(cx) {
            for (link, learner) in &mut self.learners {
                learner.feed(cx, *link, reign);
            }
        }
    }

    /// How far we have come, once the epoch has begun.
    fn reign(&self, cx: &Context<'_>) -> Option<Reign> {
        let (epoch, committed) = match &self.phase {
            Phase::Discovery(_) => return None,
            Phase::Synchronization(synchronization) => (synchronization.epoch, self.inherited),
            Phase::Broadcast(broadcast) => (broadcast.epoch, cx.history.committed()),
        };
        Some(Reign { epoch, inherited: self.inherited, committed })
    }

    /// Goes on to the next phase as far as what is known allows.
    fn advance(&mut self, cx: &mut Context<'_>) -> Verdict {
        if let Phase::Discovery(discovery) = &mut self.phase {
            if discovery.try_begin(cx) {
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
                for link in self.at_stage(|stage| stage == Stage::Introduced) {
                    self.tell(cx, link);
                }
            }
        }
        if let Phase::Discovery(discovery) = &mut self.phase {
            discovery.count_own(cx);
            if let (Some((epoch, _)), Some(members)) = (discovery.begun(), discovery.promised(cx)) {
                let from = self.phase();
                let synchronization = Synchronization::begin(cx, epoch, members.clone());
                self.phase = Phase::Synchronization(synchronization);
                let change = Change::Phase { from, to: self.phase() };
                cx.outbox.report(change, Reason::Promised { members });
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
                self.resume(cx);
            }
        }
        if let Phase::Synchronization(synchronization) = &mut self.phase {
            synchronization.count_own(cx);
            if let Some(members) = synchronization.established(cx) {
                let (epoch, from) = (synchronization.epoch, self.phase());
                self.phase = Phase::Broadcast(Broadcast::new(epoch, cx.quorum));
                let change = Change::Phase { from, to: self.phase() };
                cx.outbox.report(change, Reason::Acknowledged { members });
                cx.timers.stop(Timer::Init);
                // A quorum has what we brought along: now, and not before, it is known to be committed.
                cx.history.commit(self.inherited, cx.rng, cx.outbox);
                for link in self.at_stage(|stage| stage == Stage::Acknowledged) {
                    self.welcome(cx, link);
                }
                self.resume(cx);
                return Verdict::Serve(epoch);
            }
        }
        Verdict::Stay
    }

    /// Begins to bring up those that wait: for the end of discovery, for us to be established, or for
    /// their turn to be sent a snapshot.
    fn resume(&mut self, cx: &mut Context<'_>) {
        for link in self.at_stage(|stage| matches!(stage, Stage::Promised(_))) {
            let Some(learner) = self.learners.get(&link) else { continue };
            if let (Stage::Promised(last), Busy::No) = (learner.stage, learner.cursor.busy) {
                self.synchronise(cx, link, last, None);
            }
        }
    }

    fn synchronise(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        last: Zxid,
        located: Option<Located>,
    ) {
        let Some(reign) = self.reign(cx) else { return };
        let to_observers = self.learners.values().filter(|l| !l.follower);
        let snapshots = to_observers.filter(|l| matches!(l.cursor.busy, Busy::Snapshot(_))).count();
        let Some(learner) = self.learners.get_mut(&link) else { return };
        let terms = Terms {
            reign,
            established: matches!(self.phase, Phase::Broadcast(_)),
            room: learner.follower || snapshots < cx.config.history.observer_snapshots,
            located,
        };
        if synchronization::begin(cx, link, learner, last, terms) == Begun::Under {
            learner.feed(cx, link, reign);
        }
    }

    /// Twice per tick: silent learners are given up, the others pinged; once per tick the quorum is
    /// looked for.
    fn on_ping(&mut self, cx: &mut Context<'_>) -> Verdict {
        cx.timers.after(Timer::Ping, cx.now, cx.config.timing.ping_interval());
        self.halves += 1;
        self.warned = false;
        let timing = &cx.config.timing;
        let (init, sync) = (timing.init_time(), timing.sync_time());
        let silent = self.learners.iter().filter_map(|(link, l)| {
            let limit = match l.stage {
                Stage::Serving => sync,
                // It has nothing to say until it is told that it may serve.
                Stage::Acknowledged if !l.cursor.is_streaming() => return None,
                Stage::Acknowledged
                | Stage::Silent
                | Stage::Introduced
                | Stage::Told
                | Stage::Promised(_)
                | Stage::Syncing => init,
            };
            let owes = l.acks.owing_since().is_some_and(|since| cx.now.since(since) > sync);
            if cx.now.since(l.heard) > limit {
                Some((*link, Hangup::Silent))
            } else {
                (l.stage == Stage::Serving && owes).then_some((*link, Hangup::Unacknowledged))
            }
        });
        for (link, reason) in silent.collect::<Vec<_>>() {
            self.drop_learner(cx, link, reason);
        }
        self.ping(cx);
        if matches!(self.phase, Phase::Broadcast(_)) && self.halves % 2 == 0 {
            let synced = self.learners.values().filter(|l| l.votes && l.is_synced());
            if let Err(members) = quorum_left(cx, synced.map(|l| l.id)) {
                return Verdict::leave(Reason::NoQuorum { phase: self.phase(), members });
            }
        }
        Verdict::Stay
    }

    /// Pings every learner that has our history. Only those that serve answer.
    fn ping(&mut self, cx: &mut Context<'_>) {
        let zxid = match &self.phase {
            Phase::Discovery(_) => return,
            Phase::Synchronization(synchronization) => Zxid::start_of(synchronization.epoch),
            Phase::Broadcast(broadcast) => broadcast.proposed,
        };
        self.beat += 1;
        for (link, learner) in &mut self.learners {
            if learner.is_synced() && !learner.cursor.is_streaming() {
                send(cx, *link, Packet::Ping { zxid, sessions: None });
                if learner.stage == Stage::Serving {
                    learner.beats.on_ping(self.beat);
                }
            }
        }
    }

    fn at_stage(&self, is: impl Fn(Stage) -> bool) -> Vec<LinkId> {
        self.learners.iter().filter_map(|(link, l)| is(l.stage).then_some(*link)).collect()
    }

    fn drop_learner(&mut self, cx: &mut Context<'_>, link: LinkId, reason: Hangup) {
        cx.links.hangup(link, reason, cx.outbox);
        self.forget(cx, link);
    }

    fn forget(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.remove(&link) else { return };
        if let Busy::Snapshot(_) = learner.cursor.busy {
            self.resume(cx);
        }
        if learner.is_synced() {
            match &mut self.phase {
                Phase::Discovery(_) => {}
                Phase::Synchronization(synchronization) => synchronization.on_lost(cx, learner.id),
                Phase::Broadcast(broadcast) => broadcast.tally.withdraw(cx.quorum, learner.id),
            }
            let change = Change::Learner { id: learner.id, synced: false };
            cx.outbox.report(change, Reason::LinkEnded);
        }
    }
}

/// Requests of all learners may be this many times what those of one server may be.
const LEARNERS_SHARE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::context::Concessions;
    use crate::durable::{Durable, Epochs};
    use crate::history::History;
    use crate::links::Links;
    use crate::membership::Membership;
    use crate::outbox::Outbox;
    use crate::output::Write;
    use crate::rng::Rng;
    use crate::timers::Timers;
    use crate::txn::TxnHeader;

    /// What becomes of so many transactions, prepared together, when this was proposed last: what is
    /// appended, and the verdict. Nobody proposes four billion to get there.
    fn proposed_after(last: Zxid, many: usize) -> (Vec<Zxid>, Verdict) {
        let text = "server.1=a:2888:3888:participant\nversion=0";
        let config = Config::new(ServerId(1), Membership::parse(text).expect("a good text"));
        let (mut quorum, mut outbox) = (config.membership.quorum(), Outbox::default());
        let (mut rng, epoch) = (Rng::new(1), last.epoch());
        let mut durable = Durable { last_zxid: last, ..Durable::default() };
        let mut history = History::new(&mut durable, config.history.clone(), &mut rng);
        let mut broadcast = Broadcast::new(epoch, &quorum);
        broadcast.proposed = last;
        let mut leader = Leader {
            phase: Phase::Broadcast(broadcast),
            learners: BTreeMap::new(),
            supporters: quorum.support(),
            round: Round(1),
            elected: Instant::ORIGIN,
            anonymous: 0,
            inherited: Zxid::ZERO,
            halves: 0,
            beat: 0,
            warned: false,
        };
        let mut cx = Context {
            now: Instant::ORIGIN,
            config: &config,
            quorum: &mut quorum,
            epochs: &mut Epochs { accepted_epoch: epoch, current_epoch: epoch },
            history: &mut history,
            outbox: &mut outbox,
            timers: &mut Timers::default(),
            links: &mut Links::new(&config),
            rng: &mut rng,
            concessions: &mut Concessions::default(),
        };
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: 5 };
        let draft = Draft { header, body: bytes::Bytes::new() };
        let verdict = leader.on_prepared(&mut cx, epoch, alloc::vec![draft; many]);
        let mut outputs = Vec::new();
        outbox.swap(&mut outputs);
        let appended = outputs.iter().filter_map(|output| {
            let Output::Persist { write: Write::Append(txns), .. } = output else { return None };
            Some(txns.to_vec())
        });
        (appended.flatten().map(|txn| txn.zxid).collect(), verdict)
    }

    /// ZOOKEEPER-1277.
    #[test]
    fn the_counter_does_not_run_into_the_epoch() {
        let z = |counter| Zxid::new(Epoch(3), Counter(counter));
        let over = |last| (Vec::new(), Verdict::leave(Reason::CounterEnd(last)));
        let fine = |of: &[Zxid]| (of.to_vec(), Verdict::Stay);
        assert_eq!(proposed_after(z(0xffff_fffc), 1), fine(&[z(0xffff_fffd)]));
        assert_eq!(proposed_after(z(0xffff_fffc), 2), fine(&[z(0xffff_fffd), z(0xffff_fffe)]));
        assert_eq!(proposed_after(z(0xffff_fffd), 1), fine(&[z(0xffff_fffe)]));
        // Those that have no number are as good as never prepared, all of them.
        assert_eq!(proposed_after(z(0xffff_fffd), 2), over(z(0xffff_fffd)));
        assert_eq!(proposed_after(z(0xffff_fffe), 1), over(z(0xffff_fffe)));
    }
}
