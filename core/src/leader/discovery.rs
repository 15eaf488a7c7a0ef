//! Discovery, the leader's side: which epoch begins, and who has promised it.
//!
//! ```text
//!   FOLLOWERINFO from a quorum ─► epoch = 1 + the highest accepted ─► disk ─► LEADERINFO to all
//!   ACKEPOCH from a quorum, none newer than we ─► synchronization
//! ```
//!
//! A new epoch is one more than every epoch that a quorum has promised, so that no epoch ever has two
//! leaders (deriving it from the log reused epochs, ZOOKEEPER-335). It is on our disk before anybody
//! hears of it.
//!
//! A voter whose history is newer than this leader's makes it step down: the next election finds that voter. The
//! exception is a voter of the next membership alone, which cannot be elected while some voters do not know that
//! membership. Its promise is held until a quorum has promised without its extra transactions, which proves that they
//! were never committed; then its log is truncated like any other. (What is committed while a change is under way is on
//! the disks of a quorum of the next membership, and a server that has promised without it is not of that quorum.) If
//! they may have been committed, the leader steps down and proposes the newest such voter: by then every server that is
//! needed has told where it stands.

use alloc::vec::Vec;

use crate::context::{Context, RoleChange};
use crate::id::{ServerId, Ticket};
use crate::output::Write;
use crate::quorum::Support;
use crate::reasons::Fault;
use crate::report::{Change, Reason};
use crate::vote::Vote;
use crate::zxid::{Epoch, Zxid};

/// The leader's discovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Discovery {
    /// One more than the highest accepted epoch heard of; none if there is none left.
    candidate: Option<Epoch>,
    /// Who has told its accepted epoch.
    connected: Support,
    /// The epoch that begins, once it is decided, and the write that must precede LEADERINFO.
    begun: Option<(Epoch, Ticket)>,
    /// Who has promised to follow no older leader. A promise outlives its link: the learner does not
    /// repeat it when it comes back.
    promised: Support,
    /// Voters of the next membership alone that have promised, and have more than we have.
    ahead: Support,
    /// The vote for the newest of them.
    newest: Option<Vote>,
}

impl Discovery {
    /// We have connected to ourselves.
    pub fn new(cx: &Context<'_>) -> Self {
        let mut connected = cx.quorum.support();
        connected.add(cx.quorum, cx.config.id);
        let conceded = cx.concessions.promise.values().copied();
        let promised = conceded.fold(cx.epochs.accepted_epoch, Epoch::max);
        let nobody = cx.quorum.support();
        Self {
            candidate: promised.next(),
            connected,
            begun: None,
            promised: nobody.clone(),
            ahead: nobody,
            newest: None,
        }
    }

    /// The epoch that begins, and the write that must precede LEADERINFO; none before it is decided.
    pub const fn begun(&self) -> Option<(Epoch, Ticket)> {
        self.begun
    }

    /// Takes note of a learner's accepted epoch; of observers too, since they would refuse a lower
    /// one. A non-member may say what it likes: it drives no epoch up.
    pub fn on_info(&mut self, cx: &Context<'_>, id: ServerId, votes: bool, accepted: Epoch) {
        if cx.config.is_member(id) {
            self.candidate = self.candidate.and_then(|e| Some(e.max(accepted.next()?)));
        }
        if votes {
            self.connected.add(cx.quorum, id);
        }
    }

    /// Begins the epoch if a quorum including ourselves has connected; returns whether it did.
    pub fn try_begin(&mut self, cx: &mut Context<'_>) -> bool {
        if self.begun.is_some() || !self.connected.is_enough(cx.quorum) {
            return false;
        }
        let Some(epoch) = self.candidate else {
            cx.outbox.halt(Fault::EpochsExhausted(Epoch::MAX));
            return false;
        };
        assert!(epoch > cx.epochs.accepted_epoch, "a new epoch is above every promise");
        let ticket = cx.outbox.persist(Write::AcceptedEpoch(epoch));
        cx.epochs.accepted_epoch = epoch;
        self.begun = Some((epoch, ticket));
        let members = self.connected.members(cx.quorum).collect();
        cx.outbox.report(Change::AcceptedEpoch(epoch), Reason::Connected { members, epoch });
        true
    }

    /// Whether a voter's promise is known.
    pub fn has_promised(&self, cx: &Context<'_>, id: ServerId) -> bool {
        self.promised.contains(cx.quorum, id) || self.ahead.contains(cx.quorum, id)
    }

    /// Counts a voter's promise.
    pub fn on_promise(&mut self, cx: &Context<'_>, id: ServerId) {
        self.promised.add(cx.quorum, id);
    }

    /// Takes note of the promise of one who votes in the next membership alone and is newer than we, in the
    /// words of a vote for it.
    pub fn on_promise_ahead(&mut self, cx: &Context<'_>, vote: Vote) {
        self.ahead.add(cx.quorum, vote.leader);
        self.newest = self.newest.max(Some(vote));
    }

    /// Whether those who are ahead are a quorum of the next membership by themselves: no other promise can
    /// tell that what they have was never committed.
    pub fn is_ahead_for_good(&self, cx: &Context<'_>) -> bool {
        let next = cx.config.next_membership.as_ref();
        next.is_some_and(|next| next.quorum().is_quorum(self.ahead.members(cx.quorum)))
    }

    /// We leave, and the next round is to find the newest of those who are ahead.
    pub fn nominate(&self, cx: &mut Context<'_>) {
        if !self.is_ahead_in_vain(cx) {
            cx.concessions.nominee = self.newest;
        }
    }

    /// Whether those of the next membership who may have what some have beyond us are no quorum of it.
    fn is_ahead_in_vain(&self, cx: &Context<'_>) -> bool {
        let Some(next) = &cx.config.next_membership else { return false };
        let next = next.quorum();
        let lacks = |id: &ServerId| *id == cx.config.id || self.promised.contains(cx.quorum, *id);
        !next.is_quorum(next.voters().filter(|id| !lacks(id)))
    }

    /// Counts our own promise as soon as it is durable, not before.
    pub fn count_own(&mut self, cx: &Context<'_>) {
        if self.begun.is_some_and(|(_, t)| cx.outbox.is_durable(t)) {
            self.promised.add(cx.quorum, cx.config.id);
        }
    }

    /// Whether a quorum including ourselves has promised; who.
    pub fn promised(&self, cx: &Context<'_>) -> Option<Vec<ServerId>> {
        let mut promised = self.promised.clone();
        if self.is_ahead_in_vain(cx) {
            for id in self.ahead.members(cx.quorum) {
                promised.add(cx.quorum, id);
            }
        }
        let enough = promised.contains(cx.quorum, cx.config.id) && promised.is_enough(cx.quorum);
        enough.then(|| promised.members(cx.quorum).collect())
    }

    /// What becomes of us because a voter's promise was lost with an earlier link: if those that
    /// have promised or still may are no quorum without it, only another epoch helps.
    pub fn on_lost_promise(
        &self,
        cx: &Context<'_>,
        voter: ServerId,
        may_promise: impl Iterator<Item = ServerId>,
    ) -> RoleChange {
        let mut hope = self.promised.clone();
        hope.add(cx.quorum, cx.config.id);
        for id in self.ahead.members(cx.quorum).chain(may_promise) {
            hope.add(cx.quorum, id);
        }
        if hope.is_enough(cx.quorum) {
            RoleChange::Stay
        } else {
            RoleChange::leave(Reason::LostPromise { voter })
        }
    }

    /// Whether we are the only one that has connected.
    pub fn is_alone(&self, cx: &Context<'_>) -> bool {
        self.connected.members(cx.quorum).all(|id| id == cx.config.id)
    }

    /// Who is here, for the report that it was not enough.
    pub fn members(&self, cx: &Context<'_>) -> Vec<ServerId> {
        let here = if self.begun.is_some() { &self.promised } else { &self.connected };
        here.members(cx.quorum).collect()
    }
}

/// Whether a history is newer than ours: by the epoch it was taken over in, then by its end.
pub fn is_newer(cx: &Context<'_>, current_epoch: Epoch, last: Zxid) -> bool {
    (current_epoch, last) > (cx.epochs.current_epoch, cx.history.last())
}
