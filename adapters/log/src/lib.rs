//! The data directory of a server: ZooKeeper's own files, written so that they survive a crash.
//!
//! ```text
//!   <dataDir>/myid                        our id; read by the configuration, not here
//!   <dataDir>/version-2/acceptedEpoch     the promise, decimal
//!   <dataDir>/version-2/currentEpoch      the reign whose history we hold, decimal
//!   <dataDir>/version-2/quorate.lock      keeps two processes from sharing a directory
//! ```
//!
//! A vote, a promise and an acknowledgement may leave a server only when what they rest on would
//! survive a power cut. So everything here is replaced in four steps, each of which a crash may
//! interrupt, and is known to the rest only after the last: write another file, fsync it, rename it
//! over the old one, fsync the directory. What a directory tells at start is fsynced before it is
//! believed, too: it may so far live in the page cache only.
//!
//! [`Log`] is plain and synchronous; one thread owns it. It takes its file operations from a
//! [`Files`], so that tests can lose what was not synced. It decides nothing about the protocol,
//! except that it refuses what no server may ever do, such as taking back a promise.
//!
//! Transaction logs and snapshots are not written yet. A directory that has some is refused rather
//! than read as empty.
//!
//! In the Java code: `FileTxnSnapLog`, `AtomicFileOutputStream`, `QuorumPeer.loadDataBase`.
#![forbid(unsafe_code, unused_must_use)]

mod files;
mod log;

pub use files::{Disk, DiskLock, Files, Lock};
pub use log::{Log, LogError, OpenOptions};
pub use quorate_core::durable::Durable;
