//! The clock of a guard: what it needs of an async runtime.

use std::future::Future;
use std::time::{Duration, Instant};

/// The clock of a guard: what it needs of an async runtime.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The monotonic time; time in which the machine was suspended counts, see [`boot_time`](crate::boot_time).
    fn now(&self) -> Instant;

    /// Waits for this long, by the same clock or by one that stands still while the machine is suspended.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}
