//! Asking to lead.
//!
//! ```text
//!   time-out ─► pre-vote: would you? ─ enough ─► raise the generation, vote for oneself ─► disk ─► vote for me
//!                    │ not enough in time: again            │ a later generation: listen      ─ enough ─► lead
//! ```
//!
//! An answer counts if it says yes, to the very attempt that is under way, and once that has been asked: while our
//! own vote is on its way to the disk, a yes is a guess. One that shows a later generation ends the number, whatever
//! it says. Where only a pre-vote was asked, the next attempt follows at once: those who are behind catch up without a
//! vote being spent.
//!
//! Pre-votes: Ongaro, *Consensus: Bridging Theory and Practice* (2014), 9.6.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::Ties;
use crate::generation::boundary::{Campaign, ClockOutput, Recipient};
use crate::generation::clock::GenerationClock;
use crate::generation_message::{Attempt, Body, GenerationMessage, GrantedVote};
use crate::id::ServerId;
use crate::report::Reason;
use crate::time::Instant;
use crate::vote::{Round, Vote};

impl GenerationClock {
    /// Asks whether we would be elected, or, without pre-votes, to be.
    pub(super) fn ask(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        self.listen(at);
        let next = self.generation.next();
        if !self.is_candidate() || !next.is_valid() {
            return;
        }
        out.push(ClockOutput::Redial);
        self.tries = self.tries.saturating_add(1);
        // The successor that the leader named need not ask whether there is a leader.
        let named = self.appointed.take() == Some(self.config.id);
        if !self.config.rules.pre_vote || named {
            return self.run(out);
        }
        let mut grants = self.config.quorum.support();
        grants.add(&self.config.quorum, self.config.id);
        let attempt = Attempt { generation: next, number: self.number(), pre: true };
        self.campaign = Some(Campaign { attempt, grants, asked: true });
        self.send(Recipient::Voters, Body::VoteRequest(attempt), out);
        self.count(at, out);
    }

    /// Raises the generation and votes for ourselves; the others are asked when that is on disk.
    fn run(&mut self, out: &mut Vec<ClockOutput>) {
        let generation = self.generation.next();
        self.see(generation, Reason::NoLeaderHeard, out);
        let id = self.config.id;
        self.stand_for(Vote { leader: id, ..self.own }, Reason::NoLeaderHeard, out);
        let attempt = Attempt { generation, number: self.number(), pre: false };
        let grants = self.config.quorum.support();
        self.campaign = Some(Campaign { attempt, grants, asked: false });
        self.granted_vote = GrantedVote { generation, vote: id };
        out.push(ClockOutput::Keep(self.granted_vote));
    }

    /// Our own vote is on disk: it counts, and the others are asked for theirs.
    pub(super) fn ask_others(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        let Some(campaign) = &mut self.campaign else { return };
        campaign.asked = true;
        campaign.grants.add(&self.config.quorum, self.config.id);
        let attempt = campaign.attempt;
        self.send(Recipient::Voters, Body::VoteRequest(attempt), out);
        self.count(at, out);
    }

    /// A voter has answered.
    pub(super) fn on_answer(
        &mut self,
        at: Instant,
        from: ServerId,
        message: &GenerationMessage,
        attempt: Attempt,
        granted: bool,
        out: &mut Vec<ClockOutput>,
    ) {
        let present = self.campaign.as_ref().filter(|campaign| campaign.attempt == attempt);
        let current = present.is_some_and(|campaign| campaign.asked);
        if message.generation > self.generation {
            let (theirs, ours) = (Round(message.generation.0), Round(self.generation.0));
            self.see(message.generation, Reason::LaterRound { from, theirs, ours }, out);
            if current && attempt.pre {
                self.ask(at, out);
            }
            return;
        }
        if let (Some(campaign), true, true) = (&mut self.campaign, current, granted) {
            campaign.grants.add(&self.config.quorum, from);
            self.count(at, out);
        }
    }

    /// Whether enough say yes: then we ask in earnest, or lead.
    pub(super) fn count(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        let quorum = &self.config.quorum;
        let Some(campaign) = self.campaign.as_ref().filter(|c| c.grants.is_enough(quorum)) else {
            return;
        };
        if campaign.attempt.pre {
            return self.run(out);
        }
        let members = campaign.grants.members(quorum).collect();
        self.support = campaign.grants.clone();
        let leader = self.config.id;
        let vote = Vote { leader, ..self.own };
        self.begin_to_lead(at, vote, Reason::Quorum { members, leader }, out);
    }

    /// Whether we would rather lead than let this one, which is as new as we are and asks whether it would be
    /// elected. Only once: if we try in vain, so be it.
    pub(super) fn prefers_itself(
        &mut self,
        at: Instant,
        from: ServerId,
        message: &GenerationMessage,
    ) -> bool {
        let first = self.tries == 0 || (self.tries == 1 && self.campaign.is_some());
        let prefers = self.config.rules.ties == Ties::BetterRanked
            && self.appointed.is_none()
            && self.own.leader == self.config.id
            && self.is_candidate()
            && message.claim == self.claim()
            && from < self.config.id
            && first;
        if prefers && self.tries == 0 {
            // The best of us first.
            let turn = at + self.turn();
            self.due = self.due.map(|due| due.min(turn));
        }
        prefers
    }

    /// How long we let those go first that rank better.
    pub(super) fn turn(&self) -> Duration {
        let quorum = &self.config.quorum;
        let better = |id: &ServerId| *id > self.config.id && quorum.weight(*id) > 0;
        let better = u32::try_from(quorum.voters().filter(better).count()).unwrap_or(u32::MAX);
        self.config.rules.stagger.saturating_mul(better)
    }

    fn number(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }
}
