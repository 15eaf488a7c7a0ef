//! Times in microseconds, and the histogram that they are counted in.

use std::time::Duration;

use hdrhistogram::Histogram;

/// For microseconds, to three digits, from one to a minute.
pub(super) fn histogram() -> Histogram<u64> {
    let made = Histogram::new_with_bounds(1, 60_000_000, 3);
    // Those bounds are allowed.
    made.unwrap_or_else(|_| unreachable!("bounds of a histogram"))
}

/// At least one.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}
