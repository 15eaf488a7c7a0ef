//! A leader, from the end of the election to the end of its leadership.
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
//!
//! Here stands who decides: what learners, the application and the clock say finds its way to the room
//! where it is judged (learners' packets on a page of their own, `packets`). Who may come stands in
//! `introductions`, how one phase follows the other in `state`.

pub mod broadcast;
mod deadlines;
pub mod discovery;
mod introductions;
pub mod learners;
mod packets;
pub mod pending;
pub mod progress;
pub mod reconfiguration;
mod state;
pub mod synchronization;
pub mod tally;
pub mod transfer;

use alloc::vec::Vec;

use crate::context::{Context, RoleChange};
use crate::id::{LinkId, ReadId, ReleaseId, ServerId, Ticket};
use crate::input::{Located, Unreadable};
use crate::leader::broadcast::Asker;
use crate::leader::pending::{Purpose, Transfer};
use crate::leader::progress::{Busy, Stage};
use crate::leader::state::{LeaderState, Phase};
use crate::leader::transfer::steps;
use crate::message::Request;
use crate::output::Output;
use crate::quorum::Support;
use crate::reasons::{Hangup, Refusal, TransferRefused};
use crate::report::Reason;
use crate::status::{self, LearnerStatus};
use crate::time::Instant;
use crate::timers::Timer;
use crate::txn::Draft;
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::Epoch;

/// The leader's side of Zab.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    state: LeaderState,
    /// The voters that elected us and have not looked elsewhere since.
    supporters: Support,
    round: Round,
    /// The vote that the election ended with.
    vote: Vote,
    elected: Instant,
    /// Ends of half ticks so far; every second one ends a tick.
    halves: u64,
    /// A warning about an acknowledgement was given in this tick.
    warned: bool,
    /// The last write at some half tick that was not durable, and when that was.
    unwritten: Option<(Ticket, Instant)>,
}

impl Leader {
    /// Takes office after an election that `supporters` decided; takes in the learners that came
    /// early.
    pub fn new(cx: &mut Context<'_>, elected: Standing, supporters: Support) -> (Self, RoleChange) {
        let mut leader = Self {
            state: LeaderState::new(cx),
            supporters,
            round: elected.round,
            vote: elected.vote,
            elected: cx.now,
            halves: 0,
            warned: false,
            unwritten: None,
        };
        cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
        cx.timers.after(Timer::Ping, cx.now, cx.config.timing.ping_interval());
        let mut role_change = RoleChange::Stay;
        for waiting in cx.links.take_waiting() {
            if waiting.over {
                cx.links.hangup(waiting.link, Hangup::RoleEnded, cx.outbox);
                continue;
            }
            leader.on_link_up(cx, waiting.link);
            if let Some(first) = waiting.first {
                if role_change == RoleChange::Stay {
                    role_change = leader.on_packet(cx, waiting.link, first);
                }
            }
        }
        if role_change == RoleChange::Stay {
            role_change = leader.state.advance(cx);
        }
        (leader, role_change)
    }

    /// How far this leadership has come.
    pub const fn phase(&self) -> status::Phase {
        self.state.phase()
    }

    /// Whether those that elected us are at hand, and none of them has come to our quorum port for the better part of the
    /// time that a leadership may take to begin.
    pub fn is_out_of_reach(&self, cx: &Context<'_>) -> bool {
        let Phase::Discovery(discovery) = &self.state.phase else { return false };
        let mut linked = cx.quorum.support();
        linked.add(cx.quorum, cx.config.id);
        for id in cx.links.linked() {
            linked.add(cx.quorum, id);
        }
        discovery.is_alone(cx)
            && linked.is_quorum(cx.quorum)
            && cx.now.since(self.elected) >= cx.config.timing.init_time() / 2
    }

    /// The learners that have introduced themselves, ascending.
    pub fn learner_statuses(&self) -> Vec<LearnerStatus> {
        self.state.learners.learner_statuses()
    }

    /// Until when no other leader can be established, once a quorum has promised that.
    pub const fn lease(&self) -> Option<Instant> {
        match &self.state.phase {
            Phase::Broadcast(broadcast) => broadcast.lease,
            Phase::Discovery(_) | Phase::Synchronization(_) => None,
        }
    }

    /// Whether a quorum is about to promise that for the first time.
    pub const fn awaits_lease(&self) -> bool {
        match &self.state.phase {
            Phase::Broadcast(broadcast) => broadcast.awaits_lease,
            Phase::Discovery(_) | Phase::Synchronization(_) => false,
        }
    }

    /// A server has connected to the quorum port.
    pub fn on_link_up(&mut self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        introductions::on_link_up(cx, &mut self.state, link)
    }

    /// A learner's link has ended.
    pub fn on_link_down(&mut self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        self.state.forget(cx, link);
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) => {
                steps::on_link_down(cx, broadcast, &mut self.state.learners, link)
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => RoleChange::Stay,
        }
    }

    /// A write has become durable.
    pub fn on_persisted(&mut self, cx: &mut Context<'_>) -> RoleChange {
        if let Phase::Broadcast(broadcast) = &mut self.state.phase {
            let durable = cx.history.durable();
            if durable > cx.history.committed() {
                broadcast.on_ack(cx, &mut self.state.learners, cx.config.id, durable);
            }
            return self.move_on(cx);
        }
        self.state.advance(cx)
    }

    /// The disk has found where a learner stands.
    pub fn on_located(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        located: Located,
    ) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        if let (Stage::Promised(last), Busy::Locating) = (learner.stage, learner.cursor.busy) {
            learner.cursor.busy = Busy::No;
            self.state.synchronise(cx, link, last, Some(located));
        }
        RoleChange::Stay
    }

    /// What the driver was asked to stream to a learner is written.
    pub fn on_streamed(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        outcome: Result<(), Unreadable>,
    ) -> RoleChange {
        let Some(epoch) = self.state.epoch() else { return RoleChange::Stay };
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        learner.heard = cx.now;
        let busy = learner.cursor.busy;
        if outcome.is_err() {
            if let Busy::Log(..) = busy {
                cx.history.on_unreadable(learner.cursor.sent);
            }
            self.state.drop_learner(cx, link, Hangup::Unreadable);
        } else {
            learner.on_streamed(cx.now, epoch);
            if learner.stage == Stage::Acknowledged
                && matches!(self.state.phase, Phase::Broadcast(_))
            {
                self.state.welcome(cx, link);
            }
            self.state.feed_one(cx, link);
        }
        if let Busy::Snapshot(_) = busy {
            self.state.resume(cx);
        }
        self.move_on(cx)
    }

    /// A stream to a learner moves: that is no silence. A leader that needs this voter to be established
    /// waits on, if those that are here would be a quorum.
    pub fn on_progress(&mut self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        learner.heard = cx.now;
        let voter = learner.id;
        if let (true, Phase::Synchronization(synchronization)) = (learner.votes, &self.state.phase)
        {
            let here = self.state.learners.values().filter(|l| l.votes && l.stage > Stage::Silent);
            if synchronization.needs(cx, voter, here.map(|l| l.id)) {
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
            }
        }
        RoleChange::Stay
    }

    /// A learner has read what was sent to it.
    pub fn on_drained(&mut self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        if let Some(learner) = self.state.learners.get_mut(link) {
            learner.cursor.on_drained();
            self.state.feed_one(cx, link);
        }
        self.move_on(cx)
    }

    /// A caller here asks for a transaction.
    pub fn on_propose(&mut self, cx: &mut Context<'_>, request: Request) -> RoleChange {
        let (id, reason) = (request.id, Refusal::NotServing);
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) => broadcast.on_propose(cx, request),
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                cx.outbox.push(Output::Refused { id, reason });
            }
        }
        RoleChange::Stay
    }

    /// A client of the service here asks for a transaction.
    pub fn on_submit(&mut self, cx: &mut Context<'_>, request: Request) -> RoleChange {
        if let Phase::Broadcast(broadcast) = &mut self.state.phase {
            broadcast.on_submit(cx, request);
        }
        RoleChange::Stay
    }

    /// The application has made transactions of requests: each gets the next zxid, and they go out.
    pub fn on_prepared(
        &mut self,
        cx: &mut Context<'_>,
        epoch: Epoch,
        drafts: Vec<Draft>,
    ) -> RoleChange {
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) if broadcast.epoch == epoch => {
                let mut drafts = fitting(drafts, cx.config.limits.txn_bytes);
                if drafts.iter().any(reconfiguration::is_asked_by) {
                    reconfiguration::prepare(cx, broadcast, &mut self.state.learners, &mut drafts);
                }
                broadcast.propose(cx, &mut self.state.learners, drafts)
            }
            Phase::Broadcast(_) | Phase::Discovery(_) | Phase::Synchronization(_) => {
                RoleChange::Stay
            }
        }
    }

    /// A caller here wants to read what is as new as everything acknowledged so far.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadId) -> RoleChange {
        let reason = Refusal::NotServing;
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) => {
                let point = cx.history.committed();
                broadcast.read(cx, &mut self.state.learners, Asker::Here(read), point);
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                cx.outbox.push(Output::ReadRefused { read, reason });
            }
        }
        RoleChange::Stay
    }

    /// The leadership is over: tells those who wait for something here.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        if let Phase::Broadcast(broadcast) = &mut self.state.phase {
            if let Some(Transfer { to, asked: true, .. }) = broadcast.transfer.as_deref() {
                cx.outbox.push(Output::Transferred(Err(TransferRefused::Lost(*to))));
            }
            broadcast.end(cx);
        }
    }

    // --- transferring the leadership ---

    /// A caller or an operator wants another server to lead, a certain one or any.
    pub fn on_transfer(
        &mut self,
        cx: &mut Context<'_>,
        to: Option<ServerId>,
        purpose: Purpose,
    ) -> RoleChange {
        let LeaderState { phase, learners, .. } = &mut self.state;
        match phase {
            Phase::Broadcast(broadcast) => {
                steps::begin(cx, broadcast, learners, self.round, to, purpose)
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => {
                steps::keep(cx, purpose, TransferRefused::NotLeading)
            }
        }
    }

    /// All leadership guards here are released, since this was asked.
    pub fn on_released(&mut self, cx: &mut Context<'_>, release: ReleaseId) -> RoleChange {
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) if broadcast.change.is_some() => {
                let (learners, round) = (&mut self.state.learners, self.round);
                reconfiguration::released(cx, broadcast, learners, round, release)
            }
            Phase::Broadcast(broadcast) => {
                steps::released(cx, broadcast, &mut self.state.learners, release)
            }
            Phase::Discovery(_) | Phase::Synchronization(_) => RoleChange::Stay,
        }
    }

    /// Goes on with a transfer or a change of the membership, if there is one, as far as can be.
    #[inline]
    fn move_on(&mut self, cx: &mut Context<'_>) -> RoleChange {
        match &mut self.state.phase {
            Phase::Broadcast(broadcast) if broadcast.transfer.is_some() => {
                steps::go_on(cx, broadcast, &mut self.state.learners)
            }
            Phase::Broadcast(broadcast) if broadcast.change.is_some() => {
                reconfiguration::complete(cx, broadcast, &mut self.state.learners, self.round)
            }
            Phase::Broadcast(_) | Phase::Discovery(_) | Phase::Synchronization(_) => {
                RoleChange::Stay
            }
        }
    }

    /// A voter is looking for a leader. If it elected us, has moved on since, and those that are left
    /// are no quorum, waiting for them is in vain (ZOOKEEPER-3109). Only a later round counts, or the
    /// lower one of a restarted server, or a better vote than that for us: a peer repeats its last frame on each new
    /// link, and a server of ZooKeeper looks on for 200 ms. With a better vote it has gone on in the round that we think
    /// is over, and so do we.
    pub fn on_looking(
        &mut self,
        cx: &mut Context<'_>,
        voter: ServerId,
        heard: Standing,
    ) -> RoleChange {
        let goes_on = heard.round == self.round && heard.vote.better_than(&self.vote).is_some();
        let moved_on = goes_on
            || heard.round > self.round
            || (heard.round < self.round && cx.links.is_newer(voter, self.elected));
        let here = self.state.learners.values().any(|l| l.id == voter && l.stage > Stage::Silent);
        if heard.state != ServerState::Looking
            || !moved_on
            || here
            || matches!(self.state.phase, Phase::Broadcast(_))
        {
            return RoleChange::Stay;
        }
        self.supporters.remove(cx.quorum, voter);
        if self.supporters.is_enough(cx.quorum) {
            RoleChange::Stay
        } else if goes_on {
            RoleChange::GoBack {
                from: voter,
                vote: heard.vote,
                otherwise: Reason::Deserted { voter },
            }
        } else {
            self.give_up(cx);
            RoleChange::leave(Reason::Deserted { voter })
        }
    }

    /// Our patience is at its end, or that of those we need. If that is because of one who is ahead of us, the
    /// next election is told of it. Followers hear nothing behind LEADERINFO, and give us as long as we give
    /// them: which of the two is first is a matter of a disk and of two clocks.
    pub fn give_up(&self, cx: &mut Context<'_>) {
        if let Phase::Discovery(discovery) = &self.state.phase {
            discovery.nominate(cx);
        }
    }
}

/// The same, with a refusal in the place of each that is too long: no other server could read it, and this server's
/// own log would not take it. The application has made it already; that it was forgotten must cost one
/// request and not the leader.
fn fitting(drafts: Vec<Draft>, most: usize) -> Vec<Draft> {
    if drafts.iter().all(|draft| draft.fits(most)) {
        return drafts;
    }
    let fit = |draft: Draft| draft.fit(most).unwrap_or_else(|refusal| refusal);
    drafts.into_iter().map(fit).collect()
}
