//! The back-off between attempts to reach a store.

use std::time::Duration;

/// How long to wait before the next attempt to reach a store: longer each time, and with jitter, so that many
/// candidates do not come back at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    const MIN: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(5);

    /// From 100 ms to 5 s.
    pub const fn new() -> Self {
        Self { next: Self::MIN }
    }

    /// Waits: three quarters to five quarters of what is due.
    pub async fn wait(&mut self) {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let share = 0.75 + 0.5 * f64::from(random) / f64::from(u32::MAX);
        let wait = self.next.mul_f64(share);
        self.next = (self.next * 2).min(Self::MAX);
        tokio::time::sleep(wait).await;
    }

    /// The store was reached: the next wait is the shortest again.
    pub const fn reset(&mut self) {
        self.next = Self::MIN;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
