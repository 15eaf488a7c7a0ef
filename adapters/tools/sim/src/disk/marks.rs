//! Sync marks: a log file's record of how far it was last synced. Simulated marks count transactions since the file
//! began, real ones bytes, see [`quorate_storage::sync_mark`].

use quorate_core::output::Write;
use quorate_core::rng::Rng;

/// The two slots, and what they will say next.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// How many transactions of the file were synced.
    durable: u64,
    /// How many are written behind them and not synced.
    pending: u64,
    slots: [Option<u64>; 2],
    next: usize,
}

impl Marks {
    /// A write of the batch under way has reached the disk.
    pub(super) fn on_write(&mut self, write: &Write) {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are in files of their own")]
        match write {
            Write::Append(txns) => self.pending += txns.len() as u64,
            // The file is shortened, or another takes its place.
            Write::Truncate(_) | Write::Install { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// How far the file goes.
    pub(super) fn written(&self) -> u64 {
        self.durable + self.pending
    }

    /// The mark that goes with a batch is written. With chances, it is lost or torn, which is told.
    pub(super) fn write(&mut self, chances: Option<&mut Rng>) -> bool {
        if self.slots == [None; 2] {
            // Where a file begins, they are durable before the first batch.
            self.slots = [Some(0); 2];
        }
        let slot = &mut self.slots[self.next];
        match chances.map(|chances| chances.below(4)) {
            Some(0) => true,
            Some(1) => {
                *slot = None;
                true
            }
            _ => {
                *slot = Some(self.durable);
                false
            }
        }
    }

    /// The sync has ended, and with it the batch.
    pub(super) fn synced(&mut self) {
        if self.pending > 0 {
            self.write(None);
            self.next ^= 1;
            self.durable += std::mem::take(&mut self.pending);
        }
    }

    /// How far the file was synced, as it says.
    pub(super) fn mark(&self) -> Option<u64> {
        self.slots.into_iter().flatten().max()
    }
}
