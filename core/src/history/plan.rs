//! How a learner is brought up to the history of its leader: DIFF, TRUNC or SNAP, as a table of cases.
//!
//! [`History::plan`] is one pure function of the learner's last zxid `z`. The first line that fits
//! decides. *Processed* is the later of the last committed transaction and the start of the epoch in
//! which we are established; before that, our whole history counts as committed.
//!
//! | | the learner's last zxid | it gets |
//! |---|---|---|
//! | 1 | nothing, nor have we anything | DIFF, empty |
//! | 2 | nothing, or it could not cut where it was told to ([`Zxid::UNKNOWN`]) | SNAP, of nothing too |
//! | 3 | processed, or our last | DIFF, empty |
//! | 4 | beyond our last, a transaction of the epoch of our last | TRUNC to our last |
//! | 5 | beyond our last, of another epoch, and we are not established | TRUNC to our last; DIFF, empty, if it is the bare start of an epoch |
//! | 5' | … and we are | SNAP |
//! | 6 | in the window, or the bare start of an epoch there | DIFF, then what follows |
//! | 7 | between two of the window, the later of its own epoch | TRUNC to the earlier, then what follows |
//! | 8 | between two of the window, the later of another epoch | SNAP |
//! | 9 | below the window | only the disk knows: [`Plan::Locate`], and then: |
//! | 10 | … in the log, which costs less than a part of a snapshot to read | DIFF, from disk, then the window |
//! | 11 | … in the log, and our snapshot would be older than `z` | the same, whatever it costs |
//! | 12 | … anything else: below the floor, in none of our transactions, too much | SNAP |
//!
//! Once we are established a TRUNC never crosses an epoch (4, 7): what the learner has of an epoch that we
//! do not know need not stand behind what we have. A snapshot for a learner beyond our last (5') has a
//! later label than the learner's log then, the start of our epoch at least, or a ZooKeeper server would
//! replay that log behind it after a restart. Before we are established we have no such label, and the
//! learner may be needed for that: two of three, of which one brings a later epoch's transaction that no
//! quorum ever had. So it is cut to our last (5). It has that: its epoch was established on a history of
//! which ours is a continuation, and whose last transaction before that epoch is our last. One that
//! cannot cut there, since its snapshot is later, comes back blank (2); and one that stands
//! at the bare start of that epoch has just that history, and needs nothing. DIFF never starts below the
//! floor: there would be a hole.
//!
//! What ZooKeeper does, and where it differs: `LearnerHandler.syncFollower`; it cuts across epochs in 4.

use crate::history::History;
use crate::input::{Located, Place};
use crate::zxid::{Epoch, Zxid};

/// How a learner is brought to a leader's history; see the module for the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// DIFF with this label, then what follows `after`.
    Diff {
        /// What DIFF says: nothing beyond it may be delivered by virtue of the DIFF.
        label: Zxid,
        /// The learner has everything through this.
        after: Zxid,
    },
    /// TRUNC to this, then what follows it.
    Trunc {
        /// The last transaction that both have.
        to: Zxid,
    },
    /// SNAP, then what follows it.
    Snap,
    /// Only the disk knows: ask it, and then plan again.
    Locate,
}

impl History {
    /// How a learner whose history ends at `learner` is brought up to this one. `established` is our
    /// epoch, once we are established in it; `located` is the disk's answer, once it was asked.
    pub fn plan(
        &self,
        learner: Zxid,
        established: Option<Epoch>,
        located: Option<Located>,
    ) -> Plan {
        let top = established.map_or(self.last, |_| self.committed());
        let processed = established.map_or(top, |epoch| top.max(Zxid::start_of(epoch)));
        if learner <= Zxid::ZERO {
            let nothing = learner == Zxid::ZERO && self.last == Zxid::ZERO;
            return if nothing { Plan::Diff { label: top, after: Zxid::ZERO } } else { Plan::Snap };
        }
        if learner == processed || learner == self.last {
            return Plan::Diff { label: top.max(learner.min(processed)), after: learner };
        }
        if learner > self.last {
            let ours = learner.epoch() == self.last.epoch() && !learner.is_epoch_start();
            return if ours {
                Plan::Trunc { to: self.last }
            } else if established.is_some() {
                Plan::Snap
            } else if learner.is_epoch_start() {
                Plan::Diff { label: learner, after: learner }
            } else {
                Plan::Trunc { to: self.last }
            };
        }
        if learner >= self.before && learner >= self.floor {
            return self.plan_in_window(learner, top);
        }
        let Some(Located { place, log_bytes, snapshot_bytes }) = located else {
            return if learner < self.unreadable { Plan::Snap } else { Plan::Locate };
        };
        let cheap = self.limits.size_percent.is_some_and(|percent| {
            snapshot_bytes == 0
                || log_bytes.saturating_mul(100) <= snapshot_bytes.saturating_mul(percent)
        });
        let begun = established.map_or(Zxid::ZERO, Zxid::start_of);
        let too_old = self.position().max(begun) < learner;
        let held = match place {
            Place::Held => true,
            Place::Absent { .. } => learner.is_epoch_start(),
            Place::BelowFloor | Place::Beyond => false,
        };
        if held && (cheap || too_old) {
            Plan::Diff { label: top, after: learner }
        } else {
            Plan::Snap
        }
    }

    fn plan_in_window(&self, learner: Zxid, top: Zxid) -> Plan {
        let at = self.index_after(learner);
        let previous = at.checked_sub(1).map_or(self.before, |before| self.window[before].zxid);
        if previous == learner || learner.is_epoch_start() {
            return Plan::Diff { label: top, after: learner };
        }
        match self.window.get(at) {
            Some(next) if next.zxid.epoch() == learner.epoch() => Plan::Trunc { to: previous },
            Some(_) | None => Plan::Snap,
        }
    }
}
