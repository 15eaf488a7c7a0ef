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
use crate::id::{LinkId, ServerId};
use crate::leader::broadcast::{Broadcast, quorum_left};
use crate::leader::discovery::{Discovery, is_newer};
use crate::leader::progress::{Progress, Stage, send};
use crate::leader::synchronization::{Synchronization, synchronise};
use crate::message::{LearnerInfo, Message, Packet};
use crate::output::Hangup;
use crate::quorum::Support;
use crate::report::{self, Change, Reason, Seat};
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing};
use crate::zxid::{Epoch, Zxid};

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
    /// Pings so far; every second one ends a tick.
    pings: u64,
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
            pings: 0,
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
        let Some(learner) = self.learners.get_mut(&link) else { return Verdict::Stay };
        learner.heard = cx.now;
        match (learner.stage, packet) {
            (Stage::Silent, Packet::FollowerInfo(info)) => self.on_info(cx, link, info, true),
            (Stage::Silent, Packet::ObserverInfo(info)) => self.on_info(cx, link, info, false),
            (Stage::Told, Packet::AckEpoch { last, current_epoch }) => {
                self.on_ack_epoch(cx, link, last, current_epoch)
            }
            (Stage::Syncing, Packet::Ack(zxid)) if Some(zxid.epoch()) == self.epoch() => {
                if zxid.is_epoch_start() { self.on_ack(cx, link) } else { Verdict::Stay }
            }
            // Java's older learners may acknowledge single transactions of their synchronisation
            // before all of it.
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Ack(_))
            | (Stage::Acknowledged | Stage::Serving, Packet::Ping { .. })
            // Nothing is proposed yet, so nothing is asked with success.
            | (Stage::Serving, Packet::Request { .. } | Packet::Revalidate(_)) => Verdict::Stay,
            (_, packet) => {
                self.drop_learner(cx, link, Hangup::OutOfTurn(packet.name()));
                Verdict::Stay
            }
        }
    }

    /// A write has become durable.
    pub fn on_persisted(&mut self, cx: &mut Context<'_>) -> Verdict {
        self.advance(cx)
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
            *learner = Progress { id, votes, follower, stage: Stage::Introduced, heard: cx.now };
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
        let packet = Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL };
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
            self.synchronise(cx, link, last);
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
    fn on_ack(&mut self, cx: &mut Context<'_>, link: LinkId) -> Verdict {
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
                learner.stage = Stage::Serving;
                send(cx, link, Packet::UpToDate);
                Verdict::Stay
            }
            Phase::Discovery(_) => Verdict::Stay,
        }
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
                for link in self.at_stage(|stage| matches!(stage, Stage::Promised(_))) {
                    if let Some(Stage::Promised(last)) = self.learners.get(&link).map(|l| l.stage) {
                        self.synchronise(cx, link, last);
                    }
                }
            }
        }
        if let Phase::Synchronization(synchronization) = &mut self.phase {
            synchronization.count_own(cx);
            if let Some(members) = synchronization.established(cx) {
                let (epoch, from) = (synchronization.epoch, self.phase());
                self.phase = Phase::Broadcast(Broadcast { epoch });
                let change = Change::Phase { from, to: self.phase() };
                cx.outbox.report(change, Reason::Acknowledged { members });
                cx.timers.stop(Timer::Init);
                for link in self.at_stage(|stage| stage == Stage::Acknowledged) {
                    if let Some(learner) = self.learners.get_mut(&link) {
                        learner.stage = Stage::Serving;
                        learner.heard = cx.now;
                    }
                    send(cx, link, Packet::UpToDate);
                }
                return Verdict::Serve(epoch);
            }
        }
        Verdict::Stay
    }

    fn synchronise(&mut self, cx: &mut Context<'_>, link: LinkId, last: Zxid) {
        let Some(epoch) = self.epoch() else { return };
        if synchronise(cx, link, epoch, last) {
            if let Some(learner) = self.learners.get_mut(&link) {
                learner.stage = Stage::Syncing;
            }
        } else {
            self.drop_learner(cx, link, Hangup::HistoryUnsupported(last));
        }
    }

    /// Twice per tick: silent learners are given up, the others pinged; once per tick the quorum is
    /// looked for.
    fn on_ping(&mut self, cx: &mut Context<'_>) -> Verdict {
        cx.timers.after(Timer::Ping, cx.now, cx.config.timing.ping_interval());
        self.pings += 1;
        let timing = &cx.config.timing;
        let (init, sync) = (timing.init_time(), timing.sync_time());
        let silent = self.learners.iter().filter_map(|(link, l)| {
            let limit = match l.stage {
                Stage::Serving => sync,
                // It has nothing to say until it is told that it may serve.
                Stage::Acknowledged => return None,
                Stage::Silent
                | Stage::Introduced
                | Stage::Told
                | Stage::Promised(_)
                | Stage::Syncing => init,
            };
            (cx.now.since(l.heard) > limit).then_some(*link)
        });
        for link in silent.collect::<Vec<_>>() {
            self.drop_learner(cx, link, Hangup::Silent);
        }
        if let Some(epoch) = self.epoch() {
            let zxid = Zxid::start_of(epoch);
            for link in self.at_stage(|stage| stage >= Stage::Acknowledged) {
                send(cx, link, Packet::Ping { zxid, sessions: None });
            }
        }
        if matches!(self.phase, Phase::Broadcast(_)) && self.pings % 2 == 0 {
            let synced = self.learners.values().filter(|l| l.votes && l.is_synced());
            if let Err(members) = quorum_left(cx, synced.map(|l| l.id)) {
                return Verdict::leave(Reason::NoQuorum { phase: self.phase(), members });
            }
        }
        Verdict::Stay
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
        if learner.is_synced() {
            if let Phase::Synchronization(synchronization) = &mut self.phase {
                synchronization.on_lost(cx, learner.id);
            }
            let change = Change::Learner { id: learner.id, synced: false };
            cx.outbox.report(change, Reason::LinkEnded);
        }
    }
}
