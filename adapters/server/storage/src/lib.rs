//! The data directory of a server: ZooKeeper's own files, written so that they survive a crash.
//!
//! ```text
//!   <dataDir>/myid                          our id; read by the configuration, not here
//!   <dataDir>/version-2/acceptedEpoch       the promise, decimal
//!   <dataDir>/version-2/currentEpoch        the epoch whose leader's history we hold, decimal
//!   <dataDir>/version-2/snapshot.<zxid>     the application's state after that transaction
//!   <dataDir>/version-2/grantedVote         the vote, where servers elect by generation
//!   <dataDir>/version-2/longestLease        in ms, how long a lease was ever to be promised, where one was
//!   <dataDir>/version-2/quorate.lock        keeps two processes from sharing a directory
//!   <dataLogDir>/version-2/log.<zxid>       the transactions from that one on
//! ```
//!
//! A vote, a promise and an acknowledgement may leave a server only when what they rest on would
//! survive a power cut. So whatever is replaced here is replaced in four steps, each of which a crash
//! may interrupt, and is known to the rest only after the last: write another file, fsync it, rename it
//! over the old one, fsync the directory. What a directory tells at start is fsynced before it is
//! believed, too: it may so far live in the page cache only.
//!
//! ```
//! use quorate_storage::{Log, OpenOptions};
//!
//! # let dir = tempfile::tempdir()?;
//! # let data_dir = dir.path();
//! let (log, found) = Log::open(data_dir, OpenOptions::default())?; // locked, repaired, durable
//! println!("last transaction {}, epochs {:?}", found.durable.last_zxid, log.epochs());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Log`] is the directory of one server: the lock, the epochs, and the [`Segments`](segments::Segments),
//! which is the transactions and snapshots. Both are plain and synchronous; one thread owns them. They
//! take their file operations from a [`Files`], so that tests can lose what was not synced. They decide
//! nothing about the protocol, except that they refuse what no server may ever do, such as taking back a
//! promise. What an operator looks at without starting a server is in [`check`] and [`dump`].
//!
//! In the Java code: `FileTxnSnapLog`, `AtomicFileOutputStream`, `QuorumPeer.loadDataBase`.
#![forbid(unsafe_code, unused_must_use)]

pub mod check;
mod cursor;
mod dirs;
pub mod dump;
mod epochs;
pub mod error;
mod files;
pub mod install;
mod log;
mod names;
pub mod reader;
pub mod record;
pub mod replay;
pub mod retention;
mod segment;
pub mod segments;
mod sequence;
pub mod snapshot;
pub mod sync_mark;
mod vote;

pub use files::{Disk, DiskLock, Files, Holder, Lock};
pub use log::{Found, Log, LogError, OpenOptions, Refused, Remains};
pub use quorate_core::durable::Durable;
pub use vote::VoteError;

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
