//! How many bytes a learner was sent before it served, by how it was brought up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quorate_core::report::How;

/// How many bytes a learner was sent to be brought up, by how.
#[derive(Debug, Default)]
pub(crate) struct SyncBytes([AtomicU64; 3]);

impl SyncBytes {
    const ALL: [How; 3] = [How::Diff, How::Trunc, How::Snap];

    pub(crate) fn add(&self, how: How, bytes: usize) {
        self.0[how as usize].fetch_add(bytes as u64, Relaxed);
    }

    /// Those ways that were gone.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (How, u64)> {
        let counted = Self::ALL.into_iter().map(|how| (how, self.0[how as usize].load(Relaxed)));
        counted.filter(|(_, bytes)| *bytes > 0)
    }
}
