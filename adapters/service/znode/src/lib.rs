//! ZooKeeper's data tree, and what a leader makes of requests to change it.
//!
//! A [`Tree`] applies committed transactions one after the other, each exactly as a ZooKeeper server
//! does, so that quorate and Java servers of one ensemble hold the same nodes, the same `Stat`s and the
//! same digest. It writes and restores the bodies of ZooKeeper's snapshots, those of files and those of
//! the SNAP stream, which are the same.
//!
//! ```
//! use quorate_core::txn::{Txn, TxnHeader};
//! use quorate_core::zxid::Zxid;
//! use quorate_znode::{Outcome, Tree, kind};
//!
//! // setData of "/zookeeper/quota" to "hi", its first version
//! let body = b"\0\0\0\x10/zookeeper/quota\0\0\0\x02hi\0\0\0\x01".as_slice().into();
//! let header = TxnHeader { client: 1, cxid: 1, time: 1_700_000_000_000, kind: kind::SET_DATA };
//! let mut tree = Tree::new();
//! let applied = tree.apply(&Txn { zxid: Zxid(0x1_0000_0001), header, body })?;
//! assert!(matches!(applied.outcome, Outcome::DataSet { stat, .. } if stat.version == 1));
//!
//! let snapshot = tree.snapshot(); // a moment's work; the tree may go on
//! let mut bytes = Vec::new();
//! snapshot.write(&mut bytes)?;
//! let same = Tree::restore(&bytes[..], snapshot.zxid())?;
//! assert_eq!(same.digest(), tree.digest());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a leader prepares
//!
//! | request | [`Preparer::prepare`] makes of it |
//! |---|---|
//! | createSession, closeSession | the same; closeSession lists the session's ephemeral nodes |
//! | create, create2, createContainer, createTTL | the same, with the name, list and number that the node gets |
//! | delete, setData, setACL | the same, with the new version |
//! | multi | the same; or one that says which element was refused |
//! | deleteContainer | the same, if the leader itself asks |
//! | reconfig | a reconfiguration, if the client may write `/zookeeper/config` |
//! | check, and all others | refused as unimplemented |
//!
//! What is refused becomes a transaction with ZooKeeper's code. A client's requests come by one way at a time, see
//! [`Preparer::revalidate`].
//!
//! # What is here
//!
//! - [`Tree`]: nodes, sessions, access lists, and the indexes of ephemeral, container and TTL nodes;
//!   `apply` turns a transaction into changes, `quota` keeps ZooKeeper's quota statistics.
//! - `txn`: the bodies of transactions, decoded; every length is checked against what is there.
//! - [`Snapshot`]: a point in time; [`Pieces`] writes it, [`Restoring`] makes a tree of them.
//! - [`Preparer`]: what a leader makes of clients' requests. `request` decodes them, `judge`, `multi` and `closing`
//!   make transactions of them on top of `outstanding`, the records of what is under way; [`Rules`] and [`Facts`](quorate_core::prepared::Facts) are
//!   what they are judged by, and `owners` by which way they may come.
//! - [`access`]: permissions, for reads as well as for writes.
//! - `map`: the persistent sorted map that makes a point in time cheap.
//! - `digest`, [`acl`], [`stat`]: what their names say.
//!
//! # What is not
//!
//! Reads, watches and the expiry of sessions belong to the service in front of the
//! tree (`quorate-service`), and so does the tree as what a server replicates; the header and the seals of a
//! snapshot file belong to `quorate-storage`. Nothing here does I/O of its own.
#![forbid(unsafe_code, unused_must_use)]

pub mod access;
pub mod acl;
mod apply;
mod closing;
mod digest;
mod due;
mod encode;
mod judge;
mod jute;
mod map;
mod multi;
mod node;
mod outcome;
mod outstanding;
mod owners;
mod path;
mod pieces;
mod prepare;
mod quota;
mod refusal;
mod request;
mod restore;
mod rules;
mod snapshot;
pub mod stat;
mod tree;
mod txn;
mod walk;

pub use jute::Malformed;
pub use node::NodeRef;
pub use outcome::{Applied, DigestCheck, ErrorCode, Gone, Outcome};
pub use pieces::{Pieces, Uncountable};
pub use prepare::Preparer;
pub use quota::is_poisoned_quota;
pub use restore::{Damage, Restoring, SnapshotError};
pub use rules::Rules;
pub use snapshot::Snapshot;
pub use tree::Tree;
pub use txn::{ApplyError, kind};

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
