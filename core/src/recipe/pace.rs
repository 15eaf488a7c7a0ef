//! How often something is tried that fails: less and less often, and not all at the same time.

use core::time::Duration;

use crate::rng::Rng;

/// A wait that doubles with each failure, around which each rest is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pace {
    least: Duration,
    most: Duration,
    next: Duration,
    rng: Rng,
}

impl Pace {
    pub(crate) const fn new(least: Duration, most: Duration, seed: u64) -> Self {
        Self { least, most, next: least, rng: Rng::new(seed) }
    }

    /// How long to rest after one more failure: from three quarters to five quarters of the present wait.
    pub(crate) fn rest(&mut self) -> Duration {
        let rest = self.rng.around(self.next);
        self.next = self.next.saturating_mul(2).min(self.most);
        rest
    }

    /// Something worked.
    pub(crate) const fn reset(&mut self) {
        self.next = self.least;
    }

    /// A time below `bound`, so that many who wait for the same thing do not come at once.
    pub(crate) fn stagger(&mut self, bound: Duration) -> Duration {
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.below(nanos))
    }
}
