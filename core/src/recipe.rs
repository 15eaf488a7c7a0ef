//! Client-side elections: one of many processes is elected through a store that exists already, such as a ZooKeeper
//! or etcd cluster.
//!
//! ```text
//!             what happened ──►  ┌───────────────────┐  ──► calls on the store, orders to the guards
//!   answers, watches, session,   │ Candidate::step() │
//!   clock, guards                └───────────────────┘
//! ```
//!
//! There are two recipes, and a machine for each. An [`offer`] is one of many nodes in a row: the lowest
//! leads, each other candidate watches its neighbour, so that one that goes wakes one. A [`lease`] is one key: the
//! candidate that creates it leads, all others watch it. The first needs a store that numbers keys; the second needs
//! compare-and-swap and nothing else.
//!
//! Both are of the same shape as the rest of the core: no socket, clock or randomness, and states that are
//! values. An adapter carries out every output at once and in order, and answers each call once. An answer
//! carries the [`Attempt`] of its call, and is dropped if no such call is waited for: two callbacks that
//! cross, or an outdated watch, change nothing (CURATOR-645, CURATOR-653).
//!
//! # What leadership rests on
//!
//! - **Whose node it is.** A node that the store shows may belong to a session that is about to end. It counts
//!   only if its owner is the present session, in the same read (CURATOR-696).
//! - **How old that is.** The store gives a silent owner up at some time of its own choosing. So leadership is
//!   confirmed only until the time at which the last acknowledged contact was *sent*, plus what the store
//!   waits, minus a margin, by the holder's own monotonic clock (CURATOR-444, CURATOR-460). A holder that was
//!   paused learns of it before it does anything else.
//! - **The token.** No clock helps a holder whose write was on its way when it was paused. Each leadership has a
//!   [`Token`] that is greater than those of all earlier ones, by the store's own count. The guarded resource has
//!   to refuse a token smaller than the greatest it has seen. Where that cannot be done, no election and no lock
//!   can exclude two writers.
//!
//! One leadership ends before the next begins: the adapter reports `Released` when the guards of an earlier one are
//! gone; before that no new attempt is made, nor is the node given back while guarded work still runs.

mod backoff;
mod boundary;
mod leadership;
pub mod lease;
pub mod offer;

pub use crate::recipe::boundary::{
    Attempt, ConfigError, Failure, Leader, LeadershipChange, Loss, SessionId, Token,
};
