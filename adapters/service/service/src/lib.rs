//! ZooKeeper as a replicated application: its data tree, and what a leader makes of requests.
//!
//! ```text
//!   quorate-driver ── runs ──► quorate-application::Application
//!                                     ▲
//!                               ZooKeeper (here) ──► quorate-znode: Tree, Preparer
//! ```
//!
//! A server with [`ZooKeeper`] stands among Java servers: it logs, applies, sends and takes over the same
//! transactions and snapshots as they do. Requests that it does not know yet it answers, as a leader, with
//! ZooKeeper's "unimplemented".
//!
//! What it does not do: it serves no clients yet.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]

mod zookeeper;

pub use zookeeper::{RestoreTree, TreeSnapshot, ZooKeeper};

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
