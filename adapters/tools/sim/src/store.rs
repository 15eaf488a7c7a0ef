//! A modelled store, for the recipes that elect through one, and the people who use it.
//!
//! ```text
//!   client ── FIFO ──► server ── FIFO ──► leader      writes and `sync`: one order, in the log
//!     ▲                  │ ▲                 │        sessions: who was silent for too long
//!     └── FIFO ──────────┘ └──── lags ───────┘
//!         answers, watches, pongs      reads: what this server has applied by now
//! ```
//!
//! It promises what ZooKeeper does and no more. Writes are linearisable. Reads are not: a server may lag, so
//! that what one client has written another does not see. A client sees its own past: it connects to no
//! server that is behind what it has seen. A watch is told before the state that it was left for, and ends with
//! the connection. A write whose connection has broken may still take effect, until the session is
//! connected elsewhere (*Sessions* and *Consistency Guarantees* in ZooKeeper's Programmer's Guide). A server that
//! is cut off from the leader serves what it has for a while, as a follower does for `syncLimit` ticks, and then
//! sends its clients away. Where the [`Plan`] says so, a server tells the leader only now and then whom it has
//! heard, as ZooKeeper's followers do with their answers to its pings: what the leader has confirmed in between,
//! it does not count.
//!
//! [`Election`] has candidates elect through it, with clocks of their own, and accidents from a seed or from a
//! story.

mod accidents;
mod agenda;
mod broken;
mod call_faults;
mod candidates;
mod client;
mod clients;
mod network;
mod plan;
mod rules;
mod script;
mod servers;
mod telling;
mod world;

pub use crate::call::{Node, Op, Reply};
pub use broken::Broken;
pub(crate) use call_faults::{CallFault, CallKind, Leg};
pub use candidates::{Happening, Lease, Offers, Recipe, Wish};
pub use plan::{Plan, SYNC_LIMIT, Standing};
pub(crate) use script::Stand;
pub use servers::Store;
pub use world::Election;
