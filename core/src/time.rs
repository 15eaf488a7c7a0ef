//! Time as the core knows it: an integer from an origin that the caller chose.
//!
//! The core never reads a clock. Each input carries the time at which it happened. What Zab promises never
//! depends on it, only progress does; what a [lease](crate::config::Config::lease) promises, a recipe's
//! too, rests on clocks that run at about the same rate.

use core::ops::{Add, Sub};
use core::time::Duration;

/// Nanoseconds since an arbitrary origin; never goes back between two inputs of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The origin.
    pub const ORIGIN: Self = Self(0);

    /// The instant `duration` after the origin; saturates after some 580 years.
    pub fn from_origin(duration: Duration) -> Self {
        let whole = duration.as_secs().saturating_mul(1_000_000_000);
        Self(whole.saturating_add(u64::from(duration.subsec_nanos())))
    }

    /// The time since the origin.
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time from `earlier` to this instant, zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Self::from_origin(duration).0))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
