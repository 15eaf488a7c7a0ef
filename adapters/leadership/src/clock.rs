//! What a guard needs of an async runtime.

use std::future::Future;
use std::time::{Duration, Instant};

/// What a guard needs of an async runtime.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}
