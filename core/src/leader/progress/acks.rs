//! What a follower has acknowledged on its link.
//!
//! ```text
//!   NEWLEADER sent ─► everything committed counts      ACK ─┬─ the next ─► through, and what waited behind it
//!                                                           └─ ahead ────► kept, until the gap closes
//! ```
//!
//! A follower that follows the protocol acknowledges in order; what it owes, and since when, is known here.

use alloc::collections::BTreeSet;

use crate::message::Run;
use crate::time::Instant;
use crate::zxid::{Epoch, Zxid};

/// What a follower has acknowledged on this link, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Acks {
    /// Everything through this.
    through: Zxid,
    /// Acknowledged ahead of their turn.
    early: BTreeSet<Zxid>,
    /// A transaction that waits for its acknowledgement, and since when; and a later one.
    oldest: Option<(Zxid, Instant)>,
    newest: Option<(Zxid, Instant)>,
}

impl Acks {
    /// NEWLEADER is sent: what is committed by now needs no acknowledgement, and its own covers what
    /// came before.
    pub(super) fn begin(&mut self, epoch: Epoch, committed: Zxid) {
        self.through = self.through.max(committed).max(Zxid::start_of(epoch));
        self.close_gap();
        self.forgive();
    }

    /// A transaction of our epoch was sent.
    pub(super) const fn on_sent(&mut self, now: Instant, sent: Zxid) {
        let slot = if self.oldest.is_none() { &mut self.oldest } else { &mut self.newest };
        *slot = Some((sent, now));
    }

    /// The learner has acknowledged transactions of our epoch that it was sent. Returns whether it has
    /// acknowledged more than before without a gap.
    pub fn on_ack(&mut self, run: Run) -> bool {
        if run.first.0 > self.through.0 + 1 {
            for zxid in run.zxids() {
                if self.early.len() >= EARLY_MAX {
                    break;
                }
                self.early.insert(zxid);
            }
            return false;
        }
        if run.last <= self.through {
            return false;
        }
        self.through = run.last;
        self.close_gap();
        self.forgive();
        true
    }

    /// What is acknowledged is not owed.
    fn forgive(&mut self) {
        if self.oldest.is_some_and(|(oldest, _)| oldest <= self.through) {
            self.oldest = self.newest.take().filter(|(newest, _)| *newest > self.through);
        }
    }

    #[inline]
    fn close_gap(&mut self) {
        if !self.early.is_empty() {
            self.close_early();
        }
    }

    fn close_early(&mut self) {
        while let Some(early) = self.early.first().copied() {
            if early.0 > self.through.0 + 1 {
                return;
            }
            self.early.pop_first();
            self.through = self.through.max(early);
        }
    }

    /// Everything through this is acknowledged.
    pub const fn through(&self) -> Zxid {
        self.through
    }

    /// Since when, at least, it owes us an acknowledgement.
    pub fn owing_since(&self) -> Option<Instant> {
        self.oldest.map(|(_, since)| since)
    }
}

/// How many acknowledgements ahead of their turn are kept. No learner that follows the protocol sends one.
const EARLY_MAX: usize = 1024;
