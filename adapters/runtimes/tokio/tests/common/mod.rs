//! Waiting with an end, and ports.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses some of it")]

use std::future::Future;
use std::time::Duration;

pub use quorate_driver::testing::free_ports;

/// Waits for what must happen soon.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: nothing in {PATIENCE:?}"),
    }
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
