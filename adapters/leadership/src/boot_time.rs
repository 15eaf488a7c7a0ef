//! The time since the machine was booted, in which it may have been suspended.
//!
//! ```text
//!                     the machine sleeps, or its virtual machine is stopped and told of it
//!   Instant::now()   ──────────────┤├──────────────   CLOCK_MONOTONIC stands still meanwhile
//!   boot_time::now() ──────────────[++++]──────────   CLOCK_BOOTTIME goes on
//! ```
//!
//! What others promise for a while, they promise for that while, whatever became of this machine: a laptop that wakes must
//! not believe that it still leads. Rust's [`Instant`] does not count such time on Linux, where it is `CLOCK_MONOTONIC`
//! (see [its page](Instant#underlying-system-calls), and clock_gettime(2)).
//!
//! Linux and Android have such a clock. Elsewhere it is [`Instant::now`], which goes on during suspension on Windows, and
//! does not on the systems of Apple and the BSDs: there the fencing token is the guarantee.

use std::time::{Duration, Instant};

/// The monotonic clock, with the time in which the machine was suspended. Not before anything that it showed earlier in this
/// process. To be compared with other times of this function only.
pub fn now() -> Instant {
    system::now()
}

/// How long ago a time of [`now`] was.
pub fn since(at: Instant) -> Duration {
    now().saturating_duration_since(at)
}

/// For how long the machine was suspended since this process asked for the first time: what is to be added to another
/// monotonic clock. It never goes back.
pub fn suspended() -> Duration {
    system::suspended()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use rustix::time::{ClockId, clock_gettime};

    /// What both clocks showed at one moment.
    static BEGUN: OnceLock<(Instant, Duration)> = OnceLock::new();
    /// In nanoseconds; only what is certain: between two looks at clocks this thread may have waited.
    static SUSPENDED: AtomicU64 = AtomicU64::new(0);

    pub(super) fn now() -> Instant {
        let (begun, booted) = *BEGUN.get_or_init(begin);
        begun + boot_time().saturating_sub(booted)
    }

    pub(super) fn suspended() -> Duration {
        let with = now();
        let certain = with.saturating_duration_since(Instant::now());
        let certain = u64::try_from(certain.as_nanos()).unwrap_or(u64::MAX);
        let before = SUSPENDED.fetch_max(certain, Ordering::Relaxed);
        Duration::from_nanos(before.max(certain))
    }

    /// The two looks that were nearest to each other, of a few.
    fn begin() -> (Instant, Duration) {
        let look = || {
            let (instant, booted) = (Instant::now(), boot_time());
            (instant.elapsed(), instant, booted)
        };
        let (_, instant, booted) = (1..8)
            .map(|_| look())
            .fold(look(), |best, next| if next.0 < best.0 { next } else { best });
        (instant, booted)
    }

    fn boot_time() -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::time::{Duration, Instant};

    pub(super) fn now() -> Instant {
        Instant::now()
    }

    pub(super) const fn suspended() -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_with_the_monotonic_clock_and_never_back() {
        let (begun, shown) = (Instant::now(), now());
        let (mut last, mut slept) = (shown, suspended());
        for _ in 0..10_000 {
            let (next, more) = (now(), suspended());
            assert!(next >= last && more >= slept);
            (last, slept) = (next, more);
        }
        // No machine is suspended for so long within a test, and no test runs for a day.
        let passed = last.saturating_duration_since(shown);
        assert!(passed <= begun.elapsed() + Duration::from_secs(86_400));
        assert!(begun.elapsed() + slept >= passed.saturating_sub(Duration::from_millis(1)));
    }
}
