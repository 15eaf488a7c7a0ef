//! The clock of a guard: what it needs of an async runtime.

use std::future::Future;
use std::time::{Duration, Instant};

/// The clock of a guard: what it needs of an async runtime.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The monotonic time.
    fn now(&self) -> Instant;

    /// Waits for this long.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}
