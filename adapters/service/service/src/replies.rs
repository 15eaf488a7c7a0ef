//! What is measured of replies: how long they took, and how long they are.

use quorate_metrics::Summary;

/// How long it took from a request until its answer, in milliseconds (`ServerStats.updateLatency`): of what changes
/// nothing, and of what is a transaction.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) reads: Summary,
    pub(crate) updates: Summary,
}

/// How many bytes replies had: the last, the shortest and the longest one (`BufferStats`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replies {
    pub(crate) last: Option<usize>,
    pub(crate) min: Option<usize>,
    pub(crate) max: Option<usize>,
}

impl Replies {
    /// One more was sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.last = Some(bytes);
        self.min = Some(self.min.map_or(bytes, |min| min.min(bytes)));
        self.max = self.max.max(Some(bytes));
    }
}
