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

use crate::ballot::{Ballot, Body, Letter, Poll};
use crate::generation::boundary::{ClockOutput, Owed, Recipient};
use crate::generation::clock::GenerationClock;
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
        letter: Letter,
        poll: Poll,
        out: &mut Vec<ClockOutput>,
    ) {
        let from = letter.from;
        if self.has_live_leader(at) {
            self.early.keep(position, letter);
            return self.answer(from, poll, false, out);
        }
        if !self.looking {
            // The leader has been silent for the shortest time-out. What we had when we last looked tells
            // enough of us for an answer that binds no voter.
            let granted = poll.pre && self.has_standing() && self.would_grant(&letter, poll);
            self.early.keep(position, letter);
            if self.has_standing() {
                self.answer(from, poll, granted, out);
                if !poll.pre {
                    let leader = self.vote.leader;
                    self.leave(Reason::LeaderSilent { leader }, out);
                }
            }
            return;
        }
        let shown = if poll.pre { letter.generation } else { poll.generation };
        if shown > self.generation {
            let (theirs, ours) = (Round(shown.0), Round(self.generation.0));
            self.see(shown, Reason::LaterRound { from, theirs, ours }, out);
        }
        let granted = self.would_grant(&letter, poll);
        let granted = granted && !(poll.pre && self.prefers_itself(at, from, &letter));
        if granted && self.campaign.is_none() {
            // Let it try. A server that only asks does not put off those that are newer.
            self.listen(at);
        }
        if granted && !poll.pre {
            self.grant(letter, poll, out)
        } else {
            self.answer(from, poll, granted, out)
        }
    }

    /// Whether it may have our vote: see the table above.
    fn would_grant(&self, letter: &Letter, poll: Poll) -> bool {
        let quorum = &self.config.quorum;
        let may_lead = quorum.weight(letter.from) > 0;
        let known = letter.claim.last != Zxid::UNKNOWN && self.own.zxid != Zxid::UNKNOWN;
        let unseen = poll.generation > self.ballot.generation;
        let fresh = letter.claim >= self.claim();
        let open = if poll.pre {
            poll.generation > self.generation
        } else {
            let again = self.ballot.vote == letter.from;
            poll.generation == self.generation && (unseen || again)
        };
        may_lead && known && fresh && open
    }

    /// It has our vote, as soon as that is on disk.
    fn grant(&mut self, letter: Letter, poll: Poll, out: &mut Vec<ClockOutput>) {
        let (to, generation) = (letter.from, poll.generation);
        let ballot = Ballot { generation, vote: to };
        if ballot != self.ballot {
            self.ballot = ballot;
            let vote = Vote {
                peer_epoch: letter.claim.current_epoch,
                zxid: letter.claim.last,
                leader: to,
            };
            self.stand_for(vote, Reason::VoteGranted { to }, out);
            out.push(ClockOutput::Keep(ballot));
        }
        if self.kept >= generation {
            self.answer(to, poll, true, out);
        } else {
            self.owed = Some(Owed { to, poll });
        }
    }

    /// A vote is on disk.
    pub(super) fn on_kept(&mut self, at: Instant, ballot: Ballot, out: &mut Vec<ClockOutput>) {
        self.kept = self.kept.max(ballot.generation);
        if let Some(Owed { to, poll }) = self.owed.filter(|o| o.poll.generation <= self.kept) {
            self.owed = None;
            if self.ballot == (Ballot { generation: poll.generation, vote: to }) {
                self.answer(to, poll, true, out);
            }
        }
        let waiting = self.campaign.as_ref().filter(|campaign| !campaign.asked);
        if waiting.is_some_and(|campaign| campaign.poll.generation <= self.kept) {
            self.ask_others(at, out);
        }
    }

    /// What came before we looked is answered now.
    pub(super) fn answer_early(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        for position in 0..self.early.len() {
            let Some(letter) = self.early.take(position) else { continue };
            if let (true, Body::Request(poll)) = (self.looking, letter.body) {
                self.on_request(at, position, letter, poll, out);
            }
        }
    }

    fn answer(&self, to: ServerId, poll: Poll, granted: bool, out: &mut Vec<ClockOutput>) {
        self.send(Recipient::One(to), Body::Answer { poll, granted }, out);
    }
}
