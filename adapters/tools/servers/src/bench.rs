//! The measure of `quorate bench`: an ensemble in this process, clients that write through it, and the least that a write
//! can take with the same files and sockets.
//!
//! ```text
//!   thread of server 1 ── its loop, and the clients that write through it ──┐
//!   thread of server 2 ── its loop ─────────────────────────────────────────┼── loopback TCP
//!   thread of server 3 ── its loop ─────────────────────────────────────────┘
//!   and a disk thread for each; all data on one file system
//! ```

pub mod bare;
mod clients;
mod ensemble;
mod measure;
mod sink;

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use quorate_driver::Runtime;

pub use self::clients::Measured;
pub use self::ensemble::BenchError;
use self::ensemble::Ensemble;
use crate::runtime::{BlockOn, Kind, WithRuntime};

/// What is written, and by how many.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many servers, 1 to 9.
    pub servers: u8,
    /// How long each write is, in bytes.
    pub payload_bytes: usize,
    /// How many clients.
    pub clients: u16,
    /// How many writes each of them has under way.
    pub pipeline: u16,
    /// How long is counted; a second before it, or as long, is not.
    pub time: Duration,
    /// Where the clients are.
    pub at: At,
}

impl Load {
    /// How many writes are under way at a time.
    fn under_way(&self) -> usize {
        usize::from(self.clients) * usize::from(self.pipeline)
    }
}

/// Where the clients of a bench are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum At {
    /// All at the leader.
    Leader,
    /// Spread over all servers.
    All,
}

/// Measures an ensemble on a runtime, with its servers' files below `dir`.
///
/// # Errors
///
/// A [`BenchError`] says what was in the way: ports, threads, no leader, or a server or client that has ended.
pub fn measure(runtime: Kind, dir: &Path, load: &Load) -> Result<Measured, BenchError> {
    runtime.dispatch(Measure { dir, load })
}

/// Measures with servers on any runtime.
struct Measure<'a> {
    dir: &'a Path,
    load: &'a Load,
}

impl WithRuntime for Measure<'_> {
    type Output = Result<Measured, BenchError>;

    fn with<R: Runtime>(self, runtime: R, block_on: BlockOn) -> Self::Output {
        let ensemble = Ensemble::start(&runtime, block_on, self.dir, self.load)?;
        let measured = ensemble.measure(self.load);
        let ended = ensemble.end();
        let measured = measured?;
        ended?;
        Ok(measured)
    }
}
