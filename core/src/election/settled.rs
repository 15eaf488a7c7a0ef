//! A voter that has a leader already: whether we join that leader.
//!
//! Votes of settled servers are counted apart from those of the round, whatever round they name: a quorum of them, and
//! the leader's own word, make us join. What a server does that still looks is in `looking`.

use alloc::vec::Vec;

use crate::election::boundary::ElectorOutput;
use crate::election::{Elector, votes};
use crate::quorum::Support;
use crate::report::{Change, Reason};
use crate::time::Instant;
use crate::vote::{Filed, ServerState, Standing};

impl Elector {
    /// A voter that has a leader already.
    pub(super) fn on_settled(
        &mut self,
        at: Instant,
        position: usize,
        heard: Standing,
        versioned: bool,
        at_once: bool,
        out: &mut Vec<ElectorOutput>,
    ) {
        let leads = heard.vote.leader == self.config.id;
        if !self.config.quorum.is_voter(heard.vote.leader) || (leads && self.barred) {
            return;
        }
        let needle = Filed { standing: heard, versioned, at_once };
        if heard.round == self.round {
            // Filed without its version, so that between peers of today the leader alone counts.
            self.file(position, Filed { versioned: false, ..needle });
            self.votes.uncompared = true;
            if let Some(support) = self.joinable(self.votes.filed(), &needle) {
                return self.join(at, heard, support, out);
            }
        }
        self.settled[position] = Some(needle);
        if let Some(support) = self.joinable(&self.settled, &needle) {
            return self.join(at, heard, support, out);
        }
        let (leader, from) = (heard.vote.leader, self.config.quorum.id(position));
        if leader == from && self.heard[position] {
            if let Some(support) = self.completed(at, &needle) {
                return self.join(at, heard, support, out);
            }
        }
        let reason = if heard.state != ServerState::Leading {
            return;
        } else if leader == from && self.heard[position] && self.hears_few(at, position) {
            Reason::OnlyLeaderHeard { leader }
        } else if self.config.quorum.oracle() == Some(false) {
            // The arbiter prefers the other of two servers, and that one leads.
            Reason::Oracle { leader }
        } else {
            if leader == from {
                self.ask_when_known(at);
            }
            return;
        };
        let mut support = self.config.quorum.support();
        support.add_at(&self.config.quorum, position);
        self.follow(at, heard, support, reason, out);
    }

    pub(super) fn joinable(&self, votes: &[Option<Filed>], needle: &Filed) -> Option<Support> {
        votes::joinable(votes, needle, &self.config.quorum, self.config.id, self.round)
    }

    /// Takes the ensemble's word for who leads.
    pub(super) fn join(
        &mut self,
        at: Instant,
        heard: Standing,
        support: Support,
        out: &mut Vec<ElectorOutput>,
    ) {
        let leader = heard.vote.leader;
        let members = support.members(&self.config.quorum).collect();
        self.follow(at, heard, support, Reason::Joined { members, leader }, out);
    }

    /// Goes with who leads already, and into its round, even if that is lower than ours.
    pub(super) fn follow(
        &mut self,
        at: Instant,
        heard: Standing,
        support: Support,
        reason: Reason,
        out: &mut Vec<ElectorOutput>,
    ) {
        if heard.round != self.round {
            let change = Change::Round { from: self.round, to: heard.round };
            out.push(ElectorOutput::Changed(change, reason.clone()));
            self.round = heard.round;
            self.votes.forget();
        }
        self.votes.support = support;
        self.decide(at, heard.vote, reason, out);
    }
}
