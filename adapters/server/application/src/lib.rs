//! What a quorate server replicates: the traits that an embedding program implements.
//!
//! ```text
//!              leader only                                  everywhere, in the same order
//!   request ──► prepare ──► transaction ── agreed, durable ──► apply ──► reply to the caller
//!
//!   snapshot: the state after one transaction, written to disk or to a learner
//!   restore:  such a state, read and staged (staged) until it is known to be committed: adopt
//! ```
//!
//! Two traits. Most programs implement [`StateMachine`]: bytes in, bytes out. Wrapped in
//! [`Replicated`] it is an [`Application`], which is what a server runs: it speaks ZooKeeper's
//! transactions, because these are what is logged and sent. ZooKeeper itself, in
//! `quorate-service`, is an application directly. [`NoApplication`] replicates nothing: such servers only
//! elect.
//!
//! What is applied is never taken back: nothing reaches an application before it is known to be
//! committed. Whatever `apply` does must depend on nothing but the state and the transaction, or the
//! servers' states drift apart; clocks, random numbers and the outside world belong into `prepare`,
//! which runs once, at the leader.
//!
//! Every method is called by one server after the other in one order, never by two at once: from the
//! server's loop while it is quick, from a thread of its own while it is not. None may wait for the
//! server itself.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]

extern crate alloc;

mod application;
mod framing;
mod none;
mod state_machine;

pub use application::clients;
pub use application::{Application, Restore, RestoreError, Snapshot, SnapshotError};
pub use framing::{PIECE_BYTES_MAX, PieceTooLong};
pub use none::{NoApplication, Nothing, RestoreNothing, UnwantedState};
pub use quorate_core::prepared::{Facts, Prepared, Rejected, TxnTimes};
pub use state_machine::{Reading, Replicated, SET_DATA, Saved, StateMachine};

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
