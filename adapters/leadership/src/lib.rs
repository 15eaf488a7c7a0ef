//! Leadership as a guard: the right to do what only a leader may, for as long as the guard is there.
//!
//! ```text
//!   leadership().await ──► Leadership ── token() ──► with every write to whatever is guarded
//!                             ├── run(work) ──► work is dropped when the seat is lost
//!                             ├── lost() ─────► when
//!                             └── dropped ────► the seat may go to another
//!
//!   whoever runs an election ──► Seat ── set(leads, lease), send_away(), keep(), end()
//!                                  └──── take() ──► a guard, for who waits to lead
//! ```
//!
//! The guard is the same whatever elects: a server of one's own, or a store that is there already.
//!
//! A leader that gives its seat up by itself (to hand it over, to step down, to shut down) first tells its
//! guards, and keeps the seat until they are gone. One that loses it cannot wait: it tells them, and
//! whatever they still do may overlap with what the next leader does. That is what the token is for: what
//! is guarded refuses a token that is smaller than one it has seen.
//!
//! What it does not do: decide who leads, or when that is over. Programs that want to lead need nothing of
//! this crate by name: the crates that elect name it again. [`Seat`] and [`Clock`] are for those.
#![forbid(unsafe_code, unused_must_use)]

mod clock;
mod error;
mod guard;
mod seat;
mod token;

pub use crate::clock::Clock;
pub use crate::error::{LeadershipError, Lost};
pub use crate::guard::Leadership;
pub use crate::seat::Seat;
pub use crate::token::FencingToken;

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
