//! A ZooKeeper server's service: its clients, their sessions, requests and watches, in front of the data tree.
//!
//! ```text
//!   sockets ◄──► driver ◄──► Service: connections, sessions, order of replies, watches      this server's
//!                   │           │ sees
//!                   └─ runs ──► ZooKeeper: Tree, Preparer                                   every server's; the leader's
//! ```
//!
//! [`ZooKeeper`] is an [`Application`](quorate_application::Application): a server with it logs, applies, sends and takes
//! over the same transactions and snapshots as Java servers do. [`Service`] is what it owes its clients: sans-IO like the
//! core, it steps where the tree is applied to, so that a read and its watch are one step towards applying.
//!
//! | room | |
//! |---|---|
//! | [`wire`] | the protocol: bytes to messages and back |
//! | `watches` | who wants to hear of what |
//! | `sessions`, `tracker` | ids, and who was heard from; at the leader: who was not |
//! | `pauses` | whether this server stood still, and may not have heard what was said |
//! | `containers` | at the leader: nodes that go by themselves |
//! | `connection`, `handshake` | one client, and how it comes to its session |
//! | `between`, `marks` | clients that wait for the next leader; how each server hears that one has gone to another |
//! | `requests`, `screen`, `identities`, `logins`, `proofs` | what is asked for, what goes no further, who asks; who guesses |
//! | `order` | replies in the order of requests |
//! | `reads`, `applied` | answers from the tree; events and replies of what is applied |
//! | `stopping`, `shares` | clients leave a server that is about to stop, or is to have fewer |
//! | `adjusting` | settings that change while it runs |
//! | `halting` | when a server must not go on |
//! | `figures` | what is counted and measured |
//! | `words`, `telling`, `portion`, `views` | four-letter words, and long answers to them; what else an operator may look at |
//!
//! TLS is its host's. What it does not do yet: Kerberos, quotas that are enforced, local sessions, read-only mode.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]

extern crate alloc;

mod adjusting;
mod application;
mod applied;
mod audit;
mod auditing;
mod between;
mod certificates;
mod connection;
mod containers;
mod digests;
mod figures;
mod halting;
mod handshake;
mod identities;
mod latencies;
mod log_limit;
mod logins;
mod marks;
mod options;
mod order;
mod pauses;
mod portion;
mod proofs;
mod reads;
mod replies;
mod requests;
mod rewatches;
mod screen;
mod service;
mod sessions;
mod shares;
mod step;
mod stopping;
mod telling;
mod tracker;
mod unwritten;
mod version;
mod views;
mod watches;
pub mod wire;
mod words;
mod zookeeper;

pub use quorate_metrics as metrics;
pub use quorate_metrics::Figures;

pub use adjusting::Adjustment;
pub use application::{RestoreTree, TreeSnapshot};
pub use options::{Audit, AuditFormat, Beneath, DigestAlgorithm, Options, Sasl, Words};
pub use quorate_sasl as sasl;
pub use service::Service;
pub use shares::Shedding;
pub use step::ClientFraming;
pub use version::long as version;
pub use views::{ConnectionView, Denied, SessionView};
pub use zookeeper::ZooKeeper;

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
