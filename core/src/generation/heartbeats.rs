//! Hearing that a leader lives, and telling it.
//!
//! ```text
//!   leader ── I lead generation 6, at 10:00:00.250 ──► follower     listens for another time-out
//!          ◄── I follow you, 10:00:00.250 ────────────
//!   answered by a quorum: leads on        by none for a time-out: gives up, by its own clock
//! ```
//!
//! Only the leader itself says that it leads (a follower may not have noticed yet that it is gone). One of an
//! earlier generation is told ours, and gives up.

use alloc::vec::Vec;

use crate::generation::boundary::{ClockOutput, Recipient};
use crate::generation::clock::GenerationClock;
use crate::generation_message::{Body, Claim, GenerationMessage};
use crate::id::ServerId;
use crate::report::Reason;
use crate::time::Instant;
use crate::vote::{Round, Vote};

impl GenerationClock {
    /// Enough have granted us their votes.
    pub(super) fn begin_to_lead(
        &mut self,
        at: Instant,
        vote: Vote,
        reason: Reason,
        out: &mut Vec<ClockOutput>,
    ) {
        (self.due, self.heard) = (None, None);
        self.beats.fill(at);
        self.beat_at = Some(at + self.config.rules.heartbeat);
        self.decide(vote, reason, out);
        self.tell(at, Recipient::Members, out);
    }

    /// It is time to say again that we lead, if anybody hears it.
    pub(super) fn beat(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        let quorum = &self.config.quorum;
        let mut hearing = quorum.support();
        hearing.add(quorum, self.config.id);
        for (position, beat) in self.beats.iter().enumerate() {
            if at.since(*beat) < self.config.rules.timeout_max {
                hearing.add_at(quorum, position);
            }
        }
        if !hearing.is_enough(quorum) {
            let members = hearing.members(quorum).collect();
            return self.leave(Reason::Unheard { members }, out);
        }
        self.beat_at = Some(at + self.config.rules.heartbeat);
        self.tell(at, Recipient::Members, out);
    }

    /// Says where we stand.
    pub(super) fn tell(&self, at: Instant, to: Recipient, out: &mut Vec<ClockOutput>) {
        let settled = self.has_standing() && !self.looking;
        let leader = if settled { self.vote.leader } else { ServerId::NONE };
        let body = Body::Heartbeat { leader, beat: at.0 };
        if !settled {
            return self.send(to, body, out);
        }
        // The same from all, as of the leader that they have: no receiver compares it.
        let claim = Claim { current_epoch: self.vote.peer_epoch, last: self.vote.zxid };
        let message = self.message(claim, body);
        out.push(ClockOutput::Send { to, message });
    }

    /// A voter says that it leads.
    pub(super) fn on_leading(
        &mut self,
        at: Instant,
        message: &GenerationMessage,
        beat: u64,
        out: &mut Vec<ClockOutput>,
    ) {
        let (from, theirs) = (message.from, message.generation);
        if theirs < self.generation {
            if self.has_standing() {
                self.tell(Instant(beat), Recipient::One(from), out);
            }
            return;
        }
        let later = theirs > self.generation;
        let rounds = (Round(theirs.0), Round(self.generation.0));
        let reason = Reason::LaterRound { from, theirs: rounds.0, ours: rounds.1 };
        self.see(theirs, reason.clone(), out);
        if self.looking {
            self.heard = Some(at);
            let claim = message.claim;
            let vote = Vote { peer_epoch: claim.current_epoch, zxid: claim.last, leader: from };
            self.decide(vote, Reason::LeaderHeard { leader: from }, out);
        } else if !self.has_standing() {
            return;
        } else if later {
            // Ours is over, be it ourselves.
            let leader = self.vote.leader;
            let moved = Reason::LeaderMovedOn { leader, round: rounds.0 };
            return self.leave(if self.leads() { reason } else { moved }, out);
        } else if self.vote.leader == from && !self.leads() {
            self.heard = Some(at);
        } else {
            return;
        }
        self.due = None;
        if self.config.quorum.is_voter(self.config.id) {
            let wait = self.draw();
            self.due = Some(at + wait);
        }
        self.tell(Instant(beat), Recipient::One(from), out);
    }

    /// A voter says that it does not lead.
    pub(super) fn on_standing(
        &mut self,
        at: Instant,
        position: usize,
        message: &GenerationMessage,
        leader: ServerId,
        beat: u64,
        out: &mut Vec<ClockOutput>,
    ) {
        let from = message.from;
        if message.generation > self.generation && (self.looking || self.leads()) {
            let (theirs, ours) = (Round(message.generation.0), Round(self.generation.0));
            let reason = Reason::LaterRound { from, theirs, ours };
            self.see(message.generation, reason.clone(), out);
            if self.leads() {
                self.leave(reason, out);
            }
            return;
        }
        if self.leads() && leader == ServerId::NONE {
            self.tell(at, Recipient::One(from), out);
        } else if self.leads()
            && leader == self.config.id
            && message.generation == self.generation
            && beat <= at.0
        {
            self.beats[position] = self.beats[position].max(Instant(beat));
        }
    }

    /// There is a link to this server: what was said on an earlier one may have been lost with it.
    pub(super) fn on_reachable(&mut self, at: Instant, peer: ServerId, out: &mut Vec<ClockOutput>) {
        if !self.has_standing() {
            return;
        }
        let asked = self.campaign.as_ref().filter(|campaign| campaign.asked);
        let quorum = &self.config.quorum;
        match asked.filter(|c| quorum.is_voter(peer) && !c.grants.contains(quorum, peer)) {
            Some(campaign) => {
                self.send(Recipient::One(peer), Body::VoteRequest(campaign.attempt), out);
            }
            None => self.tell(at, Recipient::One(peer), out),
        }
    }
}
