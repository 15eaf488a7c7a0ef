//! A voter that looks for a leader, as we do: what its vote is to us.
//!
//! ```text
//!   an earlier round ─► told ours      ours ─► filed; adopted if better      a later one ─► joined, with its vote or ours
//! ```

use alloc::vec::Vec;

use crate::election::Elector;
use crate::election::boundary::{ElectorOutput, Recipient};
use crate::id::ServerId;
use crate::report::Reason;
use crate::time::Instant;
use crate::vote::{Filed, Standing, Vote};
use crate::zxid::Zxid;

impl Elector {
    /// A voter that is looking, as we are.
    #[inline]
    pub(super) fn on_looking(
        &mut self,
        at: Instant,
        from: ServerId,
        position: usize,
        heard: Standing,
        at_once: bool,
        out: &mut Vec<ElectorOutput>,
    ) {
        // A voter without a candidate never counts, whatever round it is in: it joins the round of those that look.
        // Its vote may be needed by voters who know of a membership that it does not know yet, or by the server that
        // leads in its place because it cannot be followed. Once it proposes
        // a candidate it stays in that round, so that two who do not hear each other cannot call it to and fro.
        let undecided =
            || self.vote.leader == ServerId::NONE && (self.config.may_change || self.barred);
        let candidate = || self.config.quorum.is_voter(heard.vote.leader);
        if heard.round < self.round && !(undecided() && candidate()) {
            // It is behind: not counted, but told, so that it can catch up.
            out.push(ElectorOutput::Notify { to: Recipient::One(from), standing: self.standing() });
            return;
        }
        let filed = Filed { standing: heard, versioned: false, at_once };
        if heard.round == self.round && self.votes.filed()[position] == Some(filed) {
            return;
        }
        if !candidate() || heard.vote.zxid == Zxid::UNKNOWN || self.own.zxid == Zxid::UNKNOWN {
            return;
        }
        // A voter of the next membership alone lets those of the present one propose themselves, since not all
        // of them need know it yet. If they have less than it has, it has to lead.
        let ours = if undecided() && !self.barred && self.config.quorum.is_voter(self.config.id) {
            Vote { leader: self.config.id, ..self.own }
        } else {
            self.own
        };
        if self.has_outlived(heard.vote) {
            let reason = Reason::Outlived { from, zxid: heard.vote.zxid };
            self.change_round(at, heard.round.next().max(heard.round), reason.clone(), out);
            self.forget_unreachable(out);
            self.propose(self.own, reason, out);
            return self.count(at, out);
        }
        if heard.round != self.round {
            self.on_later_round(at, (from, position), heard, ours, out);
        } else if heard.vote != self.vote {
            if let Some(reason) = self.why_better(from, heard.vote, self.vote) {
                self.propose(heard.vote, reason, out);
            } else if ours != self.own {
                self.propose(ours, Reason::OwnVote, out);
            } else if heard.vote > self.vote {
                self.votes.uncompared = true;
            }
        }
        self.file(position, filed);
        self.count(at, out);
    }

    /// What was collected belongs to an earlier round; so does what we proposed: the vote that came is compared with
    /// the one for ourselves.
    fn on_later_round(
        &mut self,
        at: Instant,
        (from, position): (ServerId, usize),
        heard: Standing,
        ours: Vote,
        out: &mut Vec<ElectorOutput>,
    ) {
        if self.hears_few(at, position) {
            // No other voter tells us how this round ends.
            self.ask_soon(at);
        }
        let better = self.why_better(from, heard.vote, self.own).is_some();
        let (vote, reason) = if better || !self.yields(at, position, heard.vote) {
            let reason = Reason::LaterRound { from, theirs: heard.round, ours: self.round };
            (if better { heard.vote } else { ours }, reason)
        } else {
            (heard.vote, Reason::HearsFew { from })
        };
        self.change_round(at, heard.round, reason.clone(), out);
        self.forget_unreachable(out);
        self.propose(vote, reason, out);
    }

    /// Whether this is a vote for ourselves with more than we have. It was cast when we had it: since then our disk
    /// was emptied, or we followed a leader that sent us a snapshot instead, and an earlier round came again. A voter
    /// that adopted it would elect us for a history that is gone. So the round begins anew: those who vote so begin
    /// with their own votes again, and hear what is.
    pub(super) fn has_outlived(&self, vote: Vote) -> bool {
        let history = |vote: Vote| (vote.peer_epoch, vote.zxid);
        let own = self.own.leader == self.config.id && vote.leader == self.config.id;
        own && history(vote) > history(self.own)
    }

    /// Why `vote` should be adopted in place of `over`: it is better, and its server may be elected.
    ///
    /// What a server without weight says is no reason. It may be the only one that hears whom it votes for; a quorum
    /// that hears itself would elect that one again and again. A server that can be elected is heard by those with
    /// weight.
    pub(super) fn why_better(&self, from: ServerId, vote: Vote, over: Vote) -> Option<Reason> {
        let quorum = &self.config.quorum;
        if self.barred {
            let history = |vote: Vote| (vote.peer_epoch, vote.zxid);
            let older = over.leader == ServerId::NONE && history(vote) < history(self.own);
            if vote.leader == self.config.id || older {
                return None;
            }
        }
        let some_weigh_nothing = quorum.has_weightless();
        if some_weigh_nothing && !quorum.has_weight(from) {
            return None;
        }
        if some_weigh_nothing || over.leader == ServerId::NONE {
            if quorum.weight(vote.leader) == 0 {
                return None;
            }
            if quorum.weight(over.leader) == 0 && over != Vote::ABSTENTION {
                return Some(Reason::MayBeElected { from });
            }
        }
        vote.better_than(&over).map(|why| Reason::BetterVote { from, why })
    }
}
