//! The data directory at work: what is written, read, received and sent.
//!
//! ```text
//!   handle ──► queue ──► thread ──► log                      writes, in order; the last durable ticket comes back
//!   save ──────► queue                                       snapshots of our own state
//!   incoming ◄── pipe ◄── link     outgoing ──► link         snapshots and parts of the log, beside the queue
//! ```

mod error;
mod faults;
mod floor;
mod handle;
mod incoming;
mod outgoing;
mod pipe;
mod queue;
pub(crate) mod remembered;
mod save;
#[cfg(test)]
pub(crate) mod tests;
mod thread;

pub(crate) use error::{DiskReadError, SnapshotFault};
pub(crate) use faults::Faults;
pub(crate) use handle::{Disk, DiskHandle, DiskNews};
pub(crate) use incoming::{Intake, Received, Reception, Wanted, push, receive};
pub(crate) use outgoing::{Piece, Pieces, send_log, send_snapshot};
pub(crate) use save::{Stop, save, write_state};
pub(crate) use thread::Retain;
