//! The processor time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time that all threads of this process have had together.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
