//! What a crash, or damage, leaves of unsynced writes.

use quorate_core::output::Write;
use quorate_core::rng::Rng;
use quorate_core::zxid::Zxid;
use quorate_storage::sync_mark::{Stop, Verdict, judge};

use super::config::Survival;
use super::contents::Contents;
use super::marks::Marks;
use super::{Disk, Done, Op, is_beside_the_log};

/// What a crash has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// How many writes.
    pub(crate) all: u64,
    /// Whether some bytes of the first of them are at the end of the log. They are cut off.
    pub(crate) torn: bool,
    /// Whether one was lost although a later one was on the disk.
    pub(crate) misordered: bool,
    /// Whether the first of them, a transaction, is there but for its middle.
    pub(crate) holed: bool,
    /// Whether the mark that came with them is not there, so that the one before counts.
    pub(crate) unmarked: bool,
}

impl Disk {
    /// Ends everything under way, and opens what is left. Returns the writes that survive, and what was lost;
    /// what lies beside the history goes. `pages` says what is left of a transaction that is lost.
    pub(crate) fn crash(
        &mut self,
        survival: Survival,
        rng: &mut Rng,
        pages: &mut Rng,
    ) -> (Vec<Done>, Lost) {
        let pending: Vec<_> = self.syncing.drain(..).chain(self.gathering.drain(..)).collect();
        let prefix = match survival {
            Survival::Nothing => 0,
            Survival::Everything | Survival::Misordered => pending.len(),
            Survival::Prefix | Survival::Any => {
                usize::try_from(rng.below(pending.len() as u64 + 1)).unwrap_or(0)
            }
        };
        let each = matches!(survival, Survival::Any | Survival::Misordered);
        let appends = |op: &Op| matches!(op, Op::Write(_, Write::Append(_)));
        let mut marks = self.marks.clone();
        let mut lost = Lost::default();
        if pending.iter().any(appends) {
            lost.unmarked = marks.write(each.then_some(pages));
        }
        let (mut done, mut whole, mut buried) = (Vec::new(), true, false);
        for (at, op) in pending.into_iter().enumerate() {
            #[allow(clippy::wildcard_enum_match_arm, reason = "the log keeps its order")]
            let survives = match &op {
                Op::Write(_, Write::AcceptedEpoch(_)) if each => rng.below(2) == 0,
                Op::Write(_, Write::CurrentEpoch(_)) if each => {
                    whole && at < prefix && rng.below(2) == 0
                }
                Op::Write(_, Write::Append(_) | Write::AppendStaged(_))
                    if survival == Survival::Misordered =>
                {
                    let written = rng.below(4) > 0;
                    lost.misordered |= written && !whole;
                    // What no sync may pass ends the batch.
                    buried |= written && !whole && appends(&op) && lost.all > 0;
                    whole &= written;
                    whole
                }
                _ => {
                    whole &= at < prefix;
                    whole
                }
            };
            if survives {
                if !is_beside_the_log(&op) && !appends(&op) {
                    // What was cut or replaced has no mark; what follows is in a file that begins.
                    marks = Marks::default();
                    marks.write(None);
                }
                done.extend(self.carry_out(op));
            } else {
                // The first that is lost may have been under the head.
                let first = appends(&op) && lost.all == 0;
                lost.torn |= first && rng.below(2) == 0;
                lost.holed |= first && survival == Survival::Misordered && pages.below(3) == 0;
                lost.all += u64::from(matches!(op, Op::Write(..)));
            }
        }
        self.open(&marks, buried, &lost);
        (done, lost)
    }

    /// Opens the log as a start does: where it breaks it is cut, or the server refuses to start.
    pub(super) fn open(&mut self, marks: &Marks, buried: bool, lost: &Lost) {
        let stop = match () {
            () if buried || lost.holed => Stop::Damaged,
            () if lost.torn => Stop::Torn,
            () => Stop::Clean,
        };
        let (offset, mark) = (self.marks.written(), marks.mark());
        if judge(offset, stop, mark) == Verdict::Refuse {
            let last = self.durable.last();
            self.refused =
                Some(format!("behind {last} the log is {stop:?}, synced through {mark:?}"));
        }
        // It is cut there, and goes on in another file.
        self.marks = Marks::default();
        self.durable.beside = None;
        self.latest = self.durable.clone();
    }

    /// What was synced last cannot be read any more. Until the next batch, or time, marks where it ended, it
    /// looks like a torn one, and is cut off as such. Tells whether there was anything.
    pub(crate) fn damage_last_batch(&mut self) -> bool {
        let label = self.durable.snapshots.last().map_or(Zxid::ZERO, |state| state.label);
        let before = self.durable.log.len();
        for _ in 0..std::mem::take(&mut self.batch) {
            if self.durable.log.back().is_some_and(|txn| txn.zxid > label) {
                self.durable.log.pop_back();
            }
        }
        self.latest = self.durable.clone();
        self.durable.log.len() < before
    }

    /// Loses the last transaction of the log, which it said was safe.
    pub(crate) fn forget(&mut self) {
        self.durable.log.pop_back();
        let last = self.durable.last();
        self.durable.changes.retain(|change| *change <= last);
        self.latest = self.durable.clone();
    }

    /// Makes the disk empty.
    pub(crate) fn wipe(&mut self) {
        *self = Self::new(Contents::default());
    }
}
