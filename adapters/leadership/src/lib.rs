//! Leadership as a guard: a fencing token, and work that ends when leadership does.
//!
//! ```text
//!   leadership().await ──► Leadership ── token() ──► with every write to the guarded resource
//!                             ├── run(work) ──► work is dropped when leadership is lost
//!                             ├── lost() ─────► when
//!                             └── dropped ────► another candidate may lead
//!
//!   an election ──► LeadershipGate ── set(leads, lease), revoke(), reopen(), end()
//!                     └── acquire() ──► a guard, for a caller that waits to lead
//! ```
//!
//! The guard is the same whatever elects: an embedded server, or a store that is there already.
//!
//! A leader that gives leadership up in order (to transfer it, to step down, to shut down) first revokes its
//! guards, and keeps leadership until they are dropped. A leader that loses it cannot wait: it revokes them, and
//! their work may overlap with that of the next leader. That is what the token is for: the guarded resource refuses
//! a token smaller than the greatest it has seen.
//!
//! What it does not do: decide which candidate leads, or when that is over. Programs that want to lead need nothing
//! of this crate by name: the crates that elect re-export it. [`LeadershipGate`] and [`Clock`] are for those.
#![forbid(unsafe_code, unused_must_use)]

pub mod boot_time;
mod clock;
mod error;
mod gate;
mod guard;
mod token;

pub use crate::clock::Clock;
pub use crate::error::{LeadershipError, Lost};
pub use crate::gate::LeadershipGate;
pub use crate::guard::Leadership;
pub use crate::token::FencingToken;

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
