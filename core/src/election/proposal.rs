//! What a server proposes in a round, who agrees, and how the round ends.
//!
//! ```text
//!   change_round ─► propose ─► file … file ─► count ─┬─► decide
//!        ▲             ▲ a better vote               └─► wait for a better vote, a little
//!        └─────────────┴─ a later round
//! ```
//!
//! Which vote is better, and what a vote that was heard means, is decided above.

use alloc::vec::Vec;

use crate::election::{Decision, Elector, ElectorOutput, Recipient};
use crate::id::ServerId;
use crate::report::{Change, Reason};
use crate::time::Instant;
use crate::vote::{Filed, Round, ServerState, Vote};

impl Elector {
    pub(super) fn change_round(
        &mut self,
        at: Instant,
        round: Round,
        reason: Reason,
        out: &mut Vec<ElectorOutput>,
    ) {
        self.round_began = at;
        self.heard.fill(false);
        if round != self.round {
            let change = Change::Round { from: self.round, to: round };
            out.push(ElectorOutput::Changed(change, reason));
        }
        self.round = round;
        self.looked = self.looked.max(round);
        self.votes.forget();
        self.returns = self.config.quorum.voters().len().saturating_sub(1);
        self.finalize_at = None;
    }

    /// Makes `vote` ours and tells everybody.
    pub(super) fn propose(&mut self, vote: Vote, reason: Reason, out: &mut Vec<ElectorOutput>) {
        if vote != self.vote {
            let change = Change::Vote { from: self.vote, to: vote };
            out.push(ElectorOutput::Changed(change, reason));
        }
        self.vote = vote;
        self.finalize_at = None;
        self.votes.clear();
        if self.votes.uncompared {
            let ours = Filed { standing: self.standing(), versioned: false, at_once: false };
            self.votes.recount(&self.config.quorum, &ours);
        }
        let standing = self.standing();
        if let Some(position) = self.config.quorum.position(self.config.id) {
            if vote != Vote::ABSTENTION {
                let at_once = self.config.finish_when_settled;
                self.file(position, Filed { standing, versioned: false, at_once });
            }
        }
        out.push(ElectorOutput::Notify { to: Recipient::Voters, standing });
    }

    /// Files what a voter said, and keeps the count of those that vote like us.
    #[inline]
    pub(super) fn file(&mut self, position: usize, filed: Filed) {
        let ours = Filed { standing: self.standing(), versioned: false, at_once: false };
        self.votes.file(&self.config.quorum, position, filed, &ours);
    }

    /// Whether a quorum votes like us; if so, ends the round or waits for a better vote.
    #[inline]
    pub(super) fn count(&mut self, at: Instant, out: &mut Vec<ElectorOutput>) {
        if !self.is_looking() {
            return;
        }
        let quorum = &self.config.quorum;
        if !self.votes.support.is_enough(quorum) || self.vote.leader == ServerId::NONE {
            self.finalize_at = None;
        } else if self.config.finish_when_settled
            && self.votes.is_settled(quorum, self.vote.leader, at)
        {
            let reason = Reason::Settled {
                members: self.votes.support.members(quorum).collect(),
                leader: self.vote.leader,
                unreachable: self.votes.unreachable(quorum, at),
            };
            self.decide(at, self.vote, reason, out);
        } else if self.finalize_at.is_none() {
            // Not begun anew by each vote: a peer that repeats itself must not hold up the end.
            self.finalize_at = Some(at + self.config.finalize_wait);
        }
    }

    pub(super) fn decide(
        &mut self,
        at: Instant,
        vote: Vote,
        reason: Reason,
        out: &mut Vec<ElectorOutput>,
    ) {
        let to = if vote.leader == self.config.id {
            ServerState::Leading
        } else if self.config.observer {
            ServerState::Observing
        } else {
            ServerState::Following
        };
        if vote != self.vote {
            let change = Change::Vote { from: self.vote, to: vote };
            out.push(ElectorOutput::Changed(change, reason.clone()));
        }
        let change = Change::State { from: self.state, to };
        out.push(ElectorOutput::Changed(change, reason));
        self.state = to;
        self.vote = vote;
        self.notify_at = None;
        self.finalize_at = None;
        out.push(ElectorOutput::Decided(Decision {
            standing: self.standing(),
            took: at.since(self.began),
        }));
    }

    /// Only dials made from now on tell that a voter cannot be reached.
    pub(super) fn forget_unreachable(&mut self, out: &mut Vec<ElectorOutput>) {
        self.votes.forget_unreachable();
        out.push(ElectorOutput::Redial);
    }
}
