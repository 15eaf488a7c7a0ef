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
pub mod hand_over;
pub mod learners;
pub mod progress;
pub mod reconfiguration;
pub mod succession;
pub mod synchronization;

use alloc::vec::Vec;

use crate::context::{Context, Verdict};
use crate::id::{LinkId, ReadId, ServerId};
use crate::input::{Located, Unreadable};
use crate::leader::broadcast::{Asker, Broadcast, quorum_left};
use crate::leader::discovery::{Discovery, is_newer};
use crate::leader::hand_over::{HandOver, Purpose};
use crate::leader::learners::Learners;
use crate::leader::progress::{Busy, Progress, Reign, Stage, send};
use crate::leader::synchronization::{Begun, Synchronization, Terms};
use crate::message::{LearnerInfo, Message, Packet, Request, Run};
use crate::output::{Hangup, Kept, Output, Refusal};
use crate::quorum::Support;
use crate::report::{self, Change, Reason, Seat};
use crate::time::Instant;
use crate::timers::Timer;
use crate::txn::{Draft, Txn};
use crate::vote::{Round, ServerState, Standing};
use crate::zxid::{Epoch, Zxid};

/// The leader's side of Zab.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    phase: Phase,
    learners: Learners,
    /// The voters that elected us and have not looked elsewhere since.
    supporters: Support,
    round: Round,
    elected: Instant,
    /// Where the history ends that we bring into this reign.
    inherited: Zxid,
    /// Ends of half ticks so far; every second one ends a tick.
    halves: u64,
    /// A warning about an acknowledgement was given in this tick.
    warned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Discovery(Discovery),
    Synchronization(Synchronization),
    Broadcast(Broadcast),
}

impl Phase {
    /// The epoch, once it is decided.
    fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Discovery(discovery) => discovery.begun().map(|(epoch, _)| epoch),
            Self::Synchronization(synchronization) => Some(synchronization.epoch),
            Self::Broadcast(broadcast) => Some(broadcast.epoch),
        }
    }
}

impl Leader {
    /// Takes office after an election that `supporters` decided; takes in the learners that came
    /// early.
    pub fn new(cx: &mut Context<'_>, round: Round, supporters: Support) -> (Self, Verdict) {
        let mut leader = Self {
            phase: Phase::Discovery(Discovery::new(cx)),
            learners: Learners::default(),
            supporters,
            round,
            elected: cx.now,
            inherited: cx.history.last(),
            halves: 0,
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
        self.learners.seats()
    }

    /// Until when nobody else can be established, once a quorum has promised that.
    pub const fn lease(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Broadcast(broadcast) => broadcast.lease,
            Phase::Discovery(_) | Phase::Synchronization(_) => None,
        }
    }

    /// Whether a quorum is about to promise that for the first time.
    pub const fn awaits_lease(&self) -> bool {
        match &self.phase {
            Phase::Broadcast(broadcast) => broadcast.awaits_lease,
            Phase::Discovery(_) | Phase::Synchronization(_) => false,
        }
    }

    /// Somebody has connected to the quorum port.
    pub fn on_link_up(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        let (unintroduced, most) = (cx.config.limits.unintroduced, cx.config.limits.learners);
        let silent = self.learners.at_stage(|stage| stage == Stage::Silent);
        if let Some(oldest) = silent.first().filter(|_| silent.len() >= unintroduced) {
            self.drop_learner(cx, *oldest, Hangup::TooManyUnintroduced);
        }
        if self.learners.len() >= most {
            cx.links.hangup(link, Hangup::TooManyLearners, cx.outbox);
        } else {
            self.learners.insert(link, Progress::new(cx.now));
        }
        Verdict::Stay
    }

    /// A learner's link has ended.
    pub fn on_link_down(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        self.forget(cx, link);
        match &mut self.phase {
            Phase::Broadcast(broadcast) => {
                succession::on_link_down(cx, broadcast, &mut self.learners, link)
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => Verdict::Stay,
        }
    }

    /// A learner has said something.
    pub fn on_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet) -> Verdict {
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
        learner.heard = cx.now;
        if let (Packet::Ack(zxid), Stage::Serving) = (&packet, learner.stage) {
            // The most frequent of all.
            return self.on_ack(cx, link, Run::one(*zxid));
        }
        match (learner.stage, packet) {
            (Stage::Silent, Packet::FollowerInfo(info)) => self.on_info(cx, link, info, true),
            (Stage::Silent, Packet::ObserverInfo(info)) => self.on_info(cx, link, info, false),
            (Stage::Told, Packet::AckEpoch { last, current_epoch }) => {
                self.on_ack_epoch(cx, link, last, current_epoch)
            }
            (Stage::Syncing, Packet::Ack(zxid))
                if learner.cursor.new_leader
                    && zxid.is_epoch_start()
                    && Some(zxid.epoch()) == self.phase.epoch() =>
            {
                self.on_history_ack(cx, link)
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Ack(zxid)) => {
                self.on_ack(cx, link, Run::one(zxid))
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Acks(run)) => {
                self.on_ack(cx, link, run)
            }
            (Stage::Serving, packet @ (Packet::Ping { .. } | Packet::Lease { .. })) => {
                let promises = matches!(packet, Packet::Lease { .. }) && learner.leases;
                let answered = learner.beats.on_answer(promises);
                let leases = learner.leases;
                // Whoever answers with a ping what asks for a promise does not promise so long ones.
                learner.leases &= promises || !answered;
                if let (true, Phase::Broadcast(broadcast)) = (answered, &mut self.phase) {
                    if leases {
                        broadcast.renew(cx, &self.learners);
                    }
                    broadcast.serve_reads(cx, &mut self.learners);
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
                broadcast.on_ack(cx, &mut self.learners, cx.config.id, durable);
            }
            return self.move_on(cx);
        }
        self.advance(cx)
    }

    /// The disk has found where a learner stands.
    pub fn on_located(&mut self, cx: &mut Context<'_>, link: LinkId, located: Located) -> Verdict {
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
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
        let Some(epoch) = self.epoch() else { return Verdict::Stay };
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
        learner.heard = cx.now;
        let busy = learner.cursor.busy;
        if outcome.is_err() {
            if let Busy::Log(..) = busy {
                cx.history.on_unreadable(learner.cursor.sent);
            }
            self.drop_learner(cx, link, Hangup::Unreadable);
        } else {
            learner.on_streamed(cx.now, epoch);
            if learner.stage == Stage::Acknowledged && matches!(self.phase, Phase::Broadcast(_)) {
                self.welcome(cx, link);
            }
            self.feed_one(cx, link);
        }
        if let Busy::Snapshot(_) = busy {
            self.resume(cx);
        }
        self.move_on(cx)
    }

    /// A stream to a learner moves: that is no silence. A leader that needs this voter to be established
    /// waits on, if those that are here would be a quorum.
    pub fn on_progress(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
        learner.heard = cx.now;
        let voter = learner.id;
        if let (true, Phase::Synchronization(synchronization)) = (learner.votes, &self.phase) {
            let here = self.learners.values().filter(|l| l.votes && l.stage > Stage::Silent);
            if synchronization.needs(cx, voter, here.map(|l| l.id)) {
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
            }
        }
        Verdict::Stay
    }

    /// A learner has read what was sent to it.
    pub fn on_drained(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
        if let Some(learner) = self.learners.get_mut(link) {
            learner.cursor.on_drained();
            self.feed_one(cx, link);
        }
        self.move_on(cx)
    }

    /// Somebody here asks for a transaction.
    pub fn on_propose(&mut self, cx: &mut Context<'_>, request: Request) -> Verdict {
        let (id, reason) = (request.id, Refusal::NotServing);
        match &mut self.phase {
            Phase::Broadcast(broadcast) => broadcast.on_propose(cx, request),
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                cx.outbox.push(Output::Refused { id, reason });
            }
        }
        Verdict::Stay
    }

    /// The application has made transactions of requests: each gets the next zxid, and they go out.
    pub fn on_prepared(
        &mut self,
        cx: &mut Context<'_>,
        epoch: Epoch,
        drafts: Vec<Draft>,
    ) -> Verdict {
        match &mut self.phase {
            Phase::Broadcast(broadcast) if broadcast.epoch == epoch => {
                let mut drafts = drafts;
                if drafts.iter().any(|draft| draft.header.kind == Txn::RECONFIGURATION) {
                    reconfiguration::prepare(cx, broadcast, &mut self.learners, &mut drafts);
                }
                broadcast.propose(cx, &mut self.learners, drafts)
            }
            Phase::Broadcast(_) | Phase::Discovery(_) | Phase::Synchronization(_) => Verdict::Stay,
        }
    }

    /// Somebody here wants to read what is as new as everything acknowledged so far.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadId) -> Verdict {
        let reason = Refusal::NotServing;
        match &mut self.phase {
            Phase::Broadcast(broadcast) => {
                let point = cx.history.committed();
                broadcast.read(cx, &mut self.learners, Asker::Here(read), point);
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                cx.outbox.push(Output::ReadRefused { read, reason });
            }
        }
        Verdict::Stay
    }

    /// The reign is over: tells those who wait for something here.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        if let Phase::Broadcast(broadcast) = &mut self.phase {
            if let Some(HandOver { to, asked: true, .. }) = broadcast.hand_over.as_deref() {
                cx.outbox.push(Output::HandedOver(Err(Kept::Lost(*to))));
            }
            broadcast.end(cx);
        }
    }

    // --- handing the seat over ---

    /// Somebody wants another server to lead, or anybody else.
    pub fn on_hand_over(
        &mut self,
        cx: &mut Context<'_>,
        to: Option<ServerId>,
        purpose: Purpose,
    ) -> Verdict {
        let Self { phase, learners, round, .. } = self;
        match phase {
            Phase::Broadcast(broadcast) => {
                succession::begin(cx, broadcast, learners, *round, to, purpose)
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                succession::keep(cx, purpose, Kept::NotLeading)
            }
        }
    }

    /// Nobody here does any more what only a leader may.
    pub fn on_released(&mut self, cx: &mut Context<'_>) -> Verdict {
        match &mut self.phase {
            Phase::Broadcast(broadcast) => succession::released(cx, broadcast, &mut self.learners),
            Phase::Discovery(_) | Phase::Synchronization(_) => Verdict::Stay,
        }
    }

    /// Goes on with a hand-over or a change of the membership, if there is one, as far as can be.
    #[inline]
    fn move_on(&mut self, cx: &mut Context<'_>) -> Verdict {
        match &mut self.phase {
            Phase::Broadcast(broadcast) if broadcast.hand_over.is_some() => {
                succession::go_on(cx, broadcast, &mut self.learners)
            }
            Phase::Broadcast(broadcast) if broadcast.change.is_some() => {
                reconfiguration::complete(cx, broadcast, &mut self.learners, self.round)
            }
            Phase::Broadcast(_) | Phase::Discovery(_) | Phase::Synchronization(_) => Verdict::Stay,
        }
    }

    /// Lets a follower lead that is wished to lead more than we are. If that comes to nothing it is tried
    /// again, but not at once.
    fn prefer(&mut self, cx: &mut Context<'_>) -> Verdict {
        if self.halves % PREFER_HALVES != 0 {
            return Verdict::Stay;
        }
        match (&self.phase, hand_over::preferred(cx, &self.learners)) {
            (Phase::Broadcast(broadcast), Some(to)) if broadcast.hand_over.is_none() => {
                self.on_hand_over(cx, Some(to), Purpose::Preferred)
            }
            _ => Verdict::Stay,
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
            Timer::HandOver => match &mut self.phase {
                Phase::Broadcast(broadcast) => succession::late(cx, broadcast),
                Phase::Discovery(_) | Phase::Synchronization(_) => Verdict::Stay,
            },
            Timer::Lease => match &self.phase {
                Phase::Broadcast(broadcast) if broadcast.has_lost(cx.now) => {
                    Verdict::leave(Reason::LeaseOver)
                }
                Phase::Synchronization(_) => self.advance(cx),
                Phase::Broadcast(_) | Phase::Discovery(_) => Verdict::Stay,
            },
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
        self.phase.epoch()
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
        // No epoch is left above its promise. We do not stop for the word of one, unless it is ours too.
        let spent = info.accepted_epoch == Epoch::MAX && cx.epochs.accepted_epoch < Epoch::MAX;
        let refuse = if info.protocol < LearnerInfo::PROTOCOL {
            Some(Hangup::OldProtocol(info.protocol))
        } else if !LearnerInfo::go_together(info.protocol, cx.config.protocol) {
            Some(Hangup::OtherApplication(info.protocol))
        } else if info.config_version > ours {
            Some(Hangup::NewerConfiguration { theirs: info.config_version, ours })
        } else if info.id == Some(cx.config.id) {
            Some(Hangup::OwnId(cx.config.id))
        } else if !info.accepted_epoch.is_valid() || spent {
            Some(Hangup::EpochOutOfRange(info.accepted_epoch))
        } else {
            None
        };
        if let Some(reason) = refuse {
            self.drop_learner(cx, link, reason);
            return Verdict::Stay;
        }
        let id = info.id.unwrap_or_else(|| self.learners.name_anonymous());
        if let Some(old) = self.learners.link_of(id) {
            // Its acknowledgements go with the old link, before the new one is answered.
            self.drop_learner(cx, old, Hangup::Replaced(id));
        }
        let votes = follower && cx.quorum.is_voter(id);
        if let Some(learner) = self.learners.get_mut(link) {
            (learner.id, learner.votes, learner.follower) = (id, votes, follower);
            learner.priority = LearnerInfo::priority(info.protocol);
            learner.leases = LearnerInfo::leases(info.protocol);
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
        let (Some(epoch), Some(learner)) = (self.epoch(), self.learners.get_mut(link)) else {
            return;
        };
        learner.stage = Stage::Told;
        let packet = Packet::LeaderInfo { epoch, protocol: cx.config.spoken() };
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
        // It has promised our epoch, and nobody logs anything of an epoch that it has not promised.
        if self.epoch().is_some_and(|epoch| last.epoch() > epoch) {
            self.drop_learner(cx, link, Hangup::EpochOutOfRange(last.epoch()));
            return Verdict::Stay;
        }
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
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
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
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
                self.move_on(cx)
            }
            Phase::Discovery(_) => Verdict::Stay,
        }
    }

    /// UPTODATE: it serves, and what it has acknowledged counts. If the driver is sending to it, when that
    /// is over.
    fn welcome(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.get_mut(link) else { return };
        if learner.cursor.is_streaming() {
            return;
        }
        (learner.stage, learner.heard) = (Stage::Serving, cx.now);
        send(cx, link, Packet::UpToDate);
        if let (Phase::Broadcast(broadcast), true) = (&mut self.phase, learner.votes) {
            let (id, through) = (learner.id, learner.acks.through());
            broadcast.on_ack(cx, &mut self.learners, id, through);
        }
    }

    /// ACK of transactions. Those of the history that it was brought, which ZooKeeper's learners send,
    /// say nothing new.
    fn on_ack(&mut self, cx: &mut Context<'_>, link: LinkId, run: Run) -> Verdict {
        let Some(learner) = self.learners.get_mut(link) else { return Verdict::Stay };
        let outdated = run.last <= self.inherited.max(learner.acks.through());
        if outdated || run.last.is_epoch_start() {
            return Verdict::Stay;
        }
        let may = learner.follower || run.last <= cx.history.committed();
        if run.last > learner.cursor.reach() || !may {
            if !core::mem::replace(&mut self.warned, true) {
                let (id, zxid) = (learner.id, run.last);
                cx.outbox.report(Change::Ignored { id, zxid }, Reason::NotProposed);
            }
            return Verdict::Stay;
        }
        if learner.acks.on_ack(run) && learner.votes && learner.stage == Stage::Serving {
            if let Phase::Broadcast(broadcast) = &mut self.phase {
                let (id, through) = (learner.id, learner.acks.through());
                broadcast.on_ack(cx, &mut self.learners, id, through);
            }
        }
        self.move_on(cx)
    }

    /// REQUEST of a learner's client.
    fn on_request(&mut self, cx: &mut Context<'_>, link: LinkId, request: Request) -> Verdict {
        let Phase::Broadcast(broadcast) = &mut self.phase else { return Verdict::Stay };
        if !broadcast.on_request(cx, &mut self.learners, link, request) {
            self.drop_learner(cx, link, Hangup::TooManyRequests);
        }
        Verdict::Stay
    }

    /// Lets a learner have what it can take.
    fn feed_one(&mut self, cx: &mut Context<'_>, link: LinkId) {
        if let (Some(reign), Some(learner)) = (self.reign(cx), self.learners.get_mut(link)) {
            learner.feed(cx, link, reign);
        }
    }

    /// How far we have come, once the epoch has begun.
    fn reign(&self, cx: &Context<'_>) -> Option<Reign> {
        let (epoch, committed) = match &self.phase {
            Phase::Discovery(_) => return None,
            Phase::Synchronization(synchronization) => (synchronization.epoch, self.inherited),
            Phase::Broadcast(broadcast) => return Some(broadcast.reign(cx)),
        };
        Some(Reign { epoch, inherited: self.inherited, committed })
    }

    /// Goes on to the next phase as far as what is known allows.
    fn advance(&mut self, cx: &mut Context<'_>) -> Verdict {
        if let Phase::Discovery(discovery) = &mut self.phase {
            if discovery.try_begin(cx) {
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
                for link in self.learners.at_stage(|stage| stage == Stage::Introduced) {
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
                let change = Change::Phase { from, to: report::Phase::Broadcast };
                cx.outbox.report(change, Reason::Acknowledged { members });
                cx.timers.stop(Timer::Init);
                // A quorum has what we brought along: now, and not before, it is known to be committed.
                cx.history.commit(self.inherited, cx.rng, cx.outbox);
                if cx.is_due(self.inherited.max(Zxid::start_of(epoch))) {
                    cx.activate();
                    self.learners.reseat(cx.quorum);
                }
                self.phase = Phase::Broadcast(Broadcast::new(cx, epoch, self.inherited));
                for link in self.learners.at_stage(|stage| stage == Stage::Acknowledged) {
                    self.welcome(cx, link);
                }
                self.resume(cx);
                if !cx.quorum.is_voter(cx.config.id) {
                    // The membership that we brought along is without us.
                    return Verdict::leave(Reason::Reconfigured {
                        version: cx.config.membership.version(),
                    });
                }
                if cx.config.lease.is_some() {
                    // Nobody need wait for the first lease longer than an answer takes.
                    self.ping(cx);
                    if let Phase::Broadcast(broadcast) = &mut self.phase {
                        broadcast.renew(cx, &self.learners);
                    }
                }
                return Verdict::Serve(epoch);
            }
        }
        Verdict::Stay
    }

    /// Begins to bring up those that wait: for the end of discovery, for us to be established, or for
    /// their turn to be sent a snapshot.
    fn resume(&mut self, cx: &mut Context<'_>) {
        for link in self.learners.at_stage(|stage| matches!(stage, Stage::Promised(_))) {
            let Some(learner) = self.learners.get(link) else { continue };
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
        let snapshots = self.learners.observer_snapshots();
        let Some(learner) = self.learners.get_mut(link) else { return };
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
        for (link, reason) in self.learners.overdue(cx) {
            self.drop_learner(cx, link, reason);
        }
        self.ping(cx);
        if let Phase::Broadcast(broadcast) = &mut self.phase {
            // A leader that needs nobody's promise renews its lease by itself.
            broadcast.renew(cx, &self.learners);
        }
        if matches!(self.phase, Phase::Broadcast(_)) && self.halves % 2 == 0 {
            let synced = self.learners.values().filter(|l| l.votes && l.is_synced());
            if let Err(members) = quorum_left(cx, synced.map(|l| l.id)) {
                return Verdict::leave(Reason::NoQuorum { phase: self.phase(), members });
            }
        }
        self.prefer(cx)
    }

    /// Pings every learner that has our history. Only those that serve answer.
    fn ping(&mut self, cx: &mut Context<'_>) {
        let zxid = match &self.phase {
            Phase::Discovery(_) => return,
            Phase::Synchronization(synchronization) => Zxid::start_of(synchronization.epoch),
            Phase::Broadcast(broadcast) => broadcast.proposed(),
        };
        self.learners.ping(cx, zxid);
    }

    fn drop_learner(&mut self, cx: &mut Context<'_>, link: LinkId, reason: Hangup) {
        cx.links.hangup(link, reason, cx.outbox);
        self.forget(cx, link);
    }

    fn forget(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.remove(link) else { return };
        if let Busy::Snapshot(_) = learner.cursor.busy {
            self.resume(cx);
        }
        if learner.is_synced() {
            match &mut self.phase {
                Phase::Discovery(_) => {}
                Phase::Synchronization(synchronization) => synchronization.on_lost(cx, learner.id),
                Phase::Broadcast(broadcast) => {
                    broadcast.on_lost(cx, learner.id);
                    if learner.leases {
                        broadcast.renew(cx, &self.learners);
                    }
                }
            }
            let change = Change::Learner { id: learner.id, synced: false };
            cx.outbox.report(change, Reason::LinkEnded);
        }
    }
}

/// How many half ticks lie between two attempts to let a more wished follower lead.
const PREFER_HALVES: u64 = 4;
