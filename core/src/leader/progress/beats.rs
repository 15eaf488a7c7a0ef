//! The pings under way to a learner.
//!
//! ```text
//!   ping ─► unanswered ─► … ─► answered, with a promise or without
//! ```
//!
//! What an answer is worth, to reads and to the lease, is judged by the broadcast.

use alloc::collections::VecDeque;

use crate::time::Instant;

/// The pings that a learner has answered. Answers come in the order of the pings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Beats {
    unanswered: VecDeque<(u64, Instant)>,
    answered: u64,
    promised: Option<Instant>,
}

impl Beats {
    /// Whether so many answers are owed that no more are kept.
    pub fn is_full(&self) -> bool {
        self.unanswered.len() >= PINGS_MAX
    }

    /// A ping was sent that will be answered.
    pub fn on_ping(&mut self, beat: u64, now: Instant) {
        self.unanswered.push_back((beat, now));
    }

    /// One was answered, with or without a promise to establish no other leader; returns when it was sent, if a read or
    /// the lease may wait for that.
    pub fn on_answer(&mut self, promises: bool) -> Option<Instant> {
        let (beat, sent) = self.unanswered.pop_front()?;
        self.answered = beat;
        if promises {
            self.promised = Some(sent);
        }
        Some(sent)
    }

    /// When the last ping was sent that was answered with such a promise.
    pub const fn promised(&self) -> Option<Instant> {
        self.promised
    }

    /// The last ping that was answered.
    pub const fn answered(&self) -> u64 {
        self.answered
    }
}

/// How many pings may be under way to a learner. More than come together while a reader after the other waits
/// for one round trip.
const PINGS_MAX: usize = 1024;
