//! Backup and restore of a server's data directory, and the recovery of an ensemble that lost its quorum for good.
//!
//! ```text
//!   data directory ──► history ──► backup ──► archive (a tar: manifest, snapshot, log files)
//!   archive ──► history ──► restore ──► an empty directory
//!
//!   data directory of each survivor ──► survivor ──┐
//!   membership, answers of the lost ───────────────┴► verdict: every reason against it, or the epoch ──► carry_out
//! ```
//!
//! All of it is offline and synchronous: no server is asked or started. Directories are ZooKeeper's or quorate's, which are
//! the same. What is in a directory is known by reading all of it: the newest whole snapshot, every transaction behind
//! it, and the digest that the tree then has. [`verdict`] is a pure function of facts; that no lost server answers is
//! for the caller to find out.
//!
//! ```
//! use quorate_rescue::archive::Archive;
//! use quorate_rescue::backup;
//! use quorate_rescue::source::Source;
//! # use std::path::Path;
//! # let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/storage/tests/golden");
//! # let dir = tempfile::tempdir()?;
//! # let (data_dir, file) = (dir.path(), dir.path().join("backup.tar"));
//! # std::fs::create_dir(data_dir.join("version-2"))?;
//! # for name in ["snapshot.100000018", "log.100000001"] {
//! #     std::fs::copy(Path::new(golden).join(name), data_dir.join("version-2").join(name))?;
//! # }
//!
//! let manifest = backup::take(&Source::of(data_dir), &file, None)?;
//! println!("{} nodes at {}", manifest.nodes, manifest.zxid);
//! Archive::open(&file)?.verify()?; // reads all of it, and computes the digest again
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code, unused_must_use)]

pub mod archive;
pub mod backup;
pub mod carry_out;
mod durable;
pub mod history;
pub mod manifest;
pub mod recovered;
pub mod restore;
pub mod source;
pub mod survivor;
pub mod verdict;

pub use durable::WriteError;

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
