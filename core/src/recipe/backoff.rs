//! Back-off between attempts: the delay doubles with each failure, with jitter.

use core::time::Duration;

use crate::rng::Rng;

/// A delay that doubles with each failure, and around which each actual delay is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
    rng: Rng,
}

impl Backoff {
    pub(crate) const fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self { min, max, next: min, rng: Rng::new(seed) }
    }

    /// How long to wait after one more failure: from three quarters to five quarters of the present delay.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.rng.around(self.next);
        self.next = self.next.saturating_mul(2).min(self.max);
        delay
    }

    /// An attempt succeeded.
    pub(crate) const fn reset(&mut self) {
        self.next = self.min;
    }

    /// A time below `bound`, so that candidates that wait for the same event do not act at once.
    pub(crate) fn stagger(&mut self, bound: Duration) -> Duration {
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.below(nanos))
    }
}
