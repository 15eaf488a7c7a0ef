//! Elections through an ensemble that somebody else runs: thousands of processes do not vote among
//! themselves, they ask a store that has voted already.
//!
//! ```text
//!             what happened ──►  ┌───────────────────┐  ──► calls on the store, and the seat
//!   answers, watches, session,   │ Candidate::step() │
//!   clock, whoever holds a guard └───────────────────┘
//! ```
//!
//! There are two recipes, and a machine for each. An [`offer`] is one of many nodes in a row: the lowest
//! leads, everybody else watches its neighbour, so that one that goes wakes one. A [`lease`] is one key: who
//! creates it leads, everybody else watches it. The first needs a store that numbers keys; the second needs
//! compare-and-swap and nothing else.
//!
//! Both are of the same shape as the rest of the core: no socket, clock or randomness, and states that are
//! values. An adapter carries out every output at once and in order, and answers each call once. An answer
//! carries the [`Attempt`] of its call, and is dropped if that is not the one waited for: two callbacks that
//! cross, or a watch of yesterday, change nothing (CURATOR-645, CURATOR-653).
//!
//! # What leadership rests on
//!
//! - **Whose node it is.** A node that the store shows may belong to a session that is about to end. It counts
//!   only if its owner is the present session, in the same read (CURATOR-696).
//! - **How old that is.** The store gives a silent owner up at some time of its own choosing. So leadership is
//!   confirmed only until the time at which the last acknowledged contact was *sent*, plus what the store
//!   waits, minus a margin, by the holder's own monotonic clock (CURATOR-444, CURATOR-460). A holder that was
//!   paused learns of it before it does anything else.
//! - **The token.** No clock helps a holder whose write was on its way when it was paused. Each term has a
//!   [`Token`] that is greater than those of all earlier terms, by the store's own count. What is guarded has
//!   to refuse a smaller token than one that it has seen. Where that cannot be done, no election and no lock
//!   can exclude two writers.
//!
//! A term ends before the next begins: whoever holds guards of one that is over says `Released` when they are
//! gone, and nothing new is tried before, nor is the node given back while guarded work still runs.

pub mod lease;
pub mod offer;
mod pace;
mod tenure;
mod terms;

pub use crate::recipe::terms::{
    Attempt, ConfigError, Failure, Leader, Loss, Seat, SessionId, Token,
};
