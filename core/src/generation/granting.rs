//! Who gets our vote.
//!
//! ```text
//!   asked in        what we say
//!   an earlier one  no; ours is in the answer
//!   ours            yes, if we have not voted in it or voted for the same, and it is at least as new as we are
//!   a later one     ours is over; then the same
//!   any             no, while a leader lives
//! ```
//!
//! A history is never left unlooked at: a server that is behind must not be elected only because its generation is
//! later. One vote for each generation, on disk before anybody hears of it, so that two leaders of one generation
//! would need two quorums that share no voter.
//!
//! Who is asked at the wrong moment, because it has a leader or its history is not on disk yet, keeps the question:
//! the first to notice that a leader is gone asks servers that will notice a moment later.

use alloc::vec::Vec;

use crate::generation::boundary::{ClockOutput, Owed, Recipient};
use crate::generation::clock::GenerationClock;
use crate::generation_message::{Attempt, Body, GenerationMessage, GrantedVote};
use crate::id::ServerId;
use crate::report::Reason;
use crate::time::Instant;
use crate::vote::{Round, Vote};
use crate::zxid::Zxid;

impl GenerationClock {
    /// A voter asks for our vote.
    pub(super) fn on_request(
        &mut self,
        at: Instant,
        position: usize,
        message: GenerationMessage,
        attempt: Attempt,
        out: &mut Vec<ClockOutput>,
    ) {
        let from = message.from;
        if self.has_live_leader(at) {
            self.early.keep(position, message);
            return self.answer(from, attempt, false, out);
        }
        if !self.looking {
            // The leader has been silent for the shortest time-out. What we had when we last looked tells
            // enough of us for an answer that binds no voter.
            let granted = attempt.pre && self.has_standing() && self.would_grant(&message, attempt);
            self.early.keep(position, message);
            if self.has_standing() {
                self.answer(from, attempt, granted, out);
                if !attempt.pre {
                    self.leave_silent(out);
                }
            }
            return;
        }
        let shown = if attempt.pre { message.generation } else { attempt.generation };
        if shown > self.generation {
            let (theirs, ours) = (Round(shown.0), Round(self.generation.0));
            self.see(shown, Reason::LaterRound { from, theirs, ours }, out);
        }
        let granted = self.would_grant(&message, attempt);
        let granted = granted && !(attempt.pre && self.prefers_itself(at, from, &message));
        if granted && self.campaign.is_none() {
            // Let it try. A server that only asks does not put off those that are newer.
            self.listen(at);
        }
        if granted && !attempt.pre {
            self.grant(message, attempt, out)
        } else {
            self.answer(from, attempt, granted, out)
        }
    }

    /// Whether it may have our vote: see the table above.
    fn would_grant(&self, message: &GenerationMessage, attempt: Attempt) -> bool {
        let quorum = &self.config.quorum;
        let may_lead = quorum.weight(message.from) > 0;
        let known = message.claim.last != Zxid::UNKNOWN && self.own.zxid != Zxid::UNKNOWN;
        let unseen = attempt.generation > self.granted_vote.generation;
        let fresh = message.claim >= self.claim();
        let open = if attempt.pre {
            attempt.generation > self.generation
        } else {
            let again = self.granted_vote.vote == message.from;
            attempt.generation == self.generation && (unseen || again)
        };
        may_lead && known && fresh && open
    }

    /// It has our vote, as soon as that is on disk.
    fn grant(&mut self, message: GenerationMessage, attempt: Attempt, out: &mut Vec<ClockOutput>) {
        let (to, generation) = (message.from, attempt.generation);
        let granted_vote = GrantedVote { generation, vote: to };
        if granted_vote != self.granted_vote {
            self.granted_vote = granted_vote;
            let vote = Vote {
                peer_epoch: message.claim.current_epoch,
                zxid: message.claim.last,
                leader: to,
            };
            self.stand_for(vote, Reason::VoteGranted { to }, out);
            out.push(ClockOutput::Keep(granted_vote));
        }
        if self.kept >= generation {
            self.answer(to, attempt, true, out);
        } else {
            self.owed = Some(Owed { to, attempt });
        }
    }

    /// A vote is on disk.
    pub(super) fn on_kept(
        &mut self,
        at: Instant,
        granted_vote: GrantedVote,
        out: &mut Vec<ClockOutput>,
    ) {
        self.kept = self.kept.max(granted_vote.generation);
        if let Some(Owed { to, attempt }) = self.owed.filter(|o| o.attempt.generation <= self.kept)
        {
            self.owed = None;
            if self.granted_vote == (GrantedVote { generation: attempt.generation, vote: to }) {
                self.answer(to, attempt, true, out);
            }
        }
        let waiting = self.campaign.as_ref().filter(|campaign| !campaign.asked);
        if waiting.is_some_and(|campaign| campaign.attempt.generation <= self.kept) {
            self.ask_others(at, out);
        }
    }

    /// What came before we looked is answered now.
    pub(super) fn answer_early(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        for position in 0..self.early.len() {
            let Some(message) = self.early.take(position) else { continue };
            if let (true, Body::VoteRequest(attempt)) = (self.looking, message.body) {
                self.on_request(at, position, message, attempt, out);
            }
        }
    }

    fn answer(&self, to: ServerId, attempt: Attempt, granted: bool, out: &mut Vec<ClockOutput>) {
        self.send(Recipient::One(to), Body::VoteResponse { attempt, granted }, out);
    }
}
