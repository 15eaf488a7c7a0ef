//! Why the disk did not give or take what was asked for.

use std::io;
use std::sync::Arc;

use quorate_application::RestoreError;
use quorate_storage::LogError;
use quorate_storage::reader::ReadError;
use quorate_storage::snapshot::SnapshotError;
use thiserror::Error;

/// Why something was not read from the disk.
#[derive(Debug, Error)]
pub(crate) enum DiskReadError {
    /// The storage thread has ended, and with it the server.
    #[error("the server ends")]
    Ended,
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
}

/// Why a snapshot was not written, not restored, or not taken in.
#[derive(Debug, Error)]
pub(crate) enum SnapshotFault {
    /// Its file.
    #[error(transparent)]
    File(#[from] SnapshotError),
    /// The disk does not answer.
    #[error(transparent)]
    Disk(#[from] DiskReadError),
    /// Where it comes from, or goes to.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is written, and cannot take its place.
    #[error(transparent)]
    Publish(#[from] Arc<LogError>),
    /// What the application says of it.
    #[error("the application cannot restore it: {0}")]
    Restore(#[source] RestoreError),
    #[error("it ends within the state")]
    Ended,
    #[error("it ends before its signature")]
    Unsigned,
    #[error("its signature is {0:02x?}")]
    Signature([u8; 14]),
    /// Meanwhile its leader is gone.
    #[error("it is not wanted any more")]
    Unwanted,
    #[error("the application has panicked")]
    Panicked,
}
