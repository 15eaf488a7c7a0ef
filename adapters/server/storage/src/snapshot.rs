//! Snapshot files: the header, the application's body, and the seals around and behind it.
//!
//! ```text
//!   "ZKSN" ┬ version 2 : i32 ┬ dbid -1 : i64            the file's header, 16 bytes
//!   body                                                the application's, opaque
//!   Adler-32 : i64 ┬ "/"                                seal 1
//!   zxid : i64 ┬ version : i32 ┬ digest : i64           digest of the data tree, since 3.6
//!   Adler-32 : i64 ┬ "/"                                seal 2
//!   zxid : i64                                          last processed, since 3.9
//!   Adler-32 : i64 ┬ "/"                                seal 3
//! ```
//!
//! Each seal covers everything before it. What older servers do not write may be missing. The zxid of a
//! snapshot, its label, is its file name's. A snapshot is written under another name, made durable, and
//! then renamed: a file that has the name of a snapshot and was written here is complete. Those of a
//! Java server may not be (ZOOKEEPER-2872); at start a look at the last bytes tells most of them, and
//! the seals tell the rest when the application reads the body.
//!
//! The body has no length: only the application knows where it ends. It must take exactly its own bytes
//! from a [`SnapshotReader`] and then ask it to [finish](SnapshotReader::finish).
//!
//! Files compressed with gzip or Snappy are read; nothing is written compressed.
//!
//! In the Java code: `FileSnap`, `SnapStream`.

mod error;
mod format;
mod inspect;
mod names;
mod reader;
mod snappy;
mod writer;

pub use error::SnapshotError;
pub use format::{Digest, Parts};
pub use inspect::{Inspection, inspect, looks_whole};
pub use names::{Compression, SnapshotFile, list};
pub use reader::SnapshotReader;
pub use writer::{SYNC_BYTES, SnapshotWriter, StagedSnapshot};

pub(crate) use inspect::newest;
pub(crate) use names::{name, parse_name};
