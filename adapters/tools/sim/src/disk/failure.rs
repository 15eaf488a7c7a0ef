//! What a process finds on its disk that was told of a failure, and opens it again.

use quorate_core::output::Write;
use quorate_core::rng::Rng;
use quorate_storage::sync_mark::believed;

use super::crash::Lost;
use super::marks::Marks;
use super::{Disk, Done, Op};

impl Disk {
    /// A write fails, or the sync at the end; what was done before it is done. What has gathered since was not begun. Of the
    /// log as much is there as is believed; it can all be read. Returns the writes that are there, and how many were not
    /// believed.
    pub(crate) fn fail(&mut self, rng: &mut Rng) -> (Vec<Done>, u64) {
        self.gathering.clear();
        let mut syncing = std::mem::take(&mut self.syncing);
        let begun = rng.below(syncing.len() as u64 + 1);
        syncing.truncate(usize::try_from(begun).unwrap_or(0));
        let (mut done, mut unsynced) = (Vec::new(), Vec::new());
        for op in syncing {
            #[allow(clippy::wildcard_enum_match_arm, reason = "what else it may be has its order")]
            match op {
                Op::Write(_, Write::Append(_)) => unsynced.push(op),
                // It has a file of its own, which no other write waits for.
                Op::Write(_, Write::AcceptedEpoch(_)) => done.extend(self.carry_out(op)),
                // Behind it the log is synced.
                _ => {
                    done.extend(unsynced.drain(..).filter_map(|op| self.carry_out(op)));
                    self.marks.synced();
                    done.extend(self.carry_out(op));
                }
            }
        }
        let synced = self.marks.written();
        let readable = synced + unsynced.len() as u64;
        let believed = believed(synced, readable);
        let count = usize::try_from(believed - synced).unwrap_or(0);
        let dropped = unsynced.split_off(count);
        for op in unsynced {
            let last = self.durable.last();
            let more = self.carry_out(op);
            if let Some(Write::Append(txns)) = more.as_ref().map(|done| &done.write) {
                let first = txns.first().map_or(last, |txn| txn.zxid);
                self.unwritten.get_or_insert(first);
            }
            done.extend(more);
        }
        self.open(&Marks::default(), false, &Lost::default());
        (done, dropped.len() as u64)
    }

    /// The power goes, and what was in memory alone.
    pub(crate) fn lose_memory(&mut self) {
        let Some(first) = self.unwritten.take() else { return };
        let label = self.durable.snapshots.last().map_or(first, |state| state.label);
        self.durable.log.retain(|txn| txn.zxid < first || txn.zxid <= label);
        let last = self.durable.last();
        self.durable.changes.retain(|change| *change <= last);
        self.latest = self.durable.clone();
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::id::Ticket;
    use quorate_core::zxid::{Counter, Epoch, Zxid};

    use super::super::config::Survival;
    use super::super::contents::Contents;
    use super::*;
    use crate::application::written_before;

    #[test]
    fn of_a_log_that_could_not_be_synced_what_was_synced_before_is_believed() {
        let zxid = |counter| Zxid::new(Epoch(1), Counter(counter));
        let append = |disk: &mut Disk, counter: u32| {
            let txn = written_before(zxid(counter), u64::from(counter));
            disk.persist(Ticket(u64::from(counter)), Write::Append([txn].into()));
        };
        let mut dropped = 0;
        for seed in 0..20 {
            let mut disk = Disk::new(Contents::ending(1, 1, zxid(1)));
            append(&mut disk, 2);
            disk.begin();
            disk.complete();
            append(&mut disk, 3);
            disk.begin();
            append(&mut disk, 4);
            let (done, more) = disk.fail(&mut Rng::new(seed));
            assert_eq!((done.len(), disk.durable().last()), (0, zxid(2)));
            assert_eq!((disk.latest(), disk.refused()), (disk.durable(), None));
            let mut after = disk.clone();
            disk.lose_memory();
            assert_eq!(disk.durable(), after.durable(), "all that is believed is on the disk");
            append(&mut after, 3);
            assert!(after.begin());
            assert_eq!(after.complete().1, Some(Ticket(3)));
            dropped += more;
        }
        assert!(dropped > 0);
        let (mut rng, mut pages) = (Rng::new(1), Rng::new(1));
        let mut disk = Disk::new(Contents::default());
        disk.persist(Ticket(1), Write::AcceptedEpoch(Epoch(1)));
        disk.begin();
        disk.fail(&mut rng);
        let (done, _) = disk.crash(Survival::Everything, &mut rng, &mut pages);
        assert!(done.is_empty(), "nothing is under way behind a failure");
    }
}
