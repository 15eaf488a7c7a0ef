//! Leader election through an existing ZooKeeper or etcd cluster: the runner shared by both.
//!
//! ```text
//!   program ── leadership() ─► guard ◄─ LeadershipGate ◄─┐
//!           ── events(), status() ◄──────────────────────┤ run: one task for each candidate
//!           ── stop() ──────────────────────────────────►│   ▲             │
//!                                                        │   │ Reporter    │ calls
//!                                quorate_core::recipe ◄──┘   │             ▼
//!                                                           [`Store`]: ZooKeeper, etcd, …
//! ```
//!
//! Use it through the crate of your store: `quorate-zookeeper` or `quorate-etcd`. Each of them is an
//! implementation of [`Store`]: how a session is kept, and how a call is made. The machines of
//! [`quorate_core::recipe`] decide what is called when; this crate hands them what the store reports, and passes
//! their orders on to the store and to the guards of `quorate-leadership`.
//!
//! What it does not do: it makes no process exclusive. A process may be paused between asking whether it leads
//! and acting on the answer; therefore the [token](Leadership::token). Nor does it watch what a leader does with
//! its leadership: a candidate leads for as long as its program keeps a guard, and gives the leadership up when the
//! last one is dropped.
#![forbid(unsafe_code, unused_must_use)]

mod backoff;
mod candidate;
mod clock;
mod contender;
mod designation;
mod error;
mod events;
mod machine;
mod members;
mod outage;
mod publisher;
mod reporter;
mod run;
mod settings;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use quorate_core::recipe::offer::{Naming, Notice};
pub use quorate_core::recipe::{Failure, Loss};
pub use quorate_leadership::{FencingToken, LeadershipError, Lost};

pub use crate::backoff::Backoff;
pub use crate::candidate::{Candidate, Leadership, ask};
pub use crate::clock::{Tokio, now, until};
pub use crate::contender::Contender;
pub use crate::designation::{Designation, DesignationError, designate};
pub use crate::error::{AskError, PathFault, StartError, StoreError};
pub use crate::events::{Event, Events, State, Status};
pub use crate::members::Members;
pub use crate::reporter::Reporter;
pub use crate::settings::{Recipe, Settings};
pub use crate::store::{Change, Store, begin};
