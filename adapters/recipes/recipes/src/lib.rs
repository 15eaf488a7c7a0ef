//! Leader election through an existing ZooKeeper or etcd cluster: the runner shared by both.
//!
//! ```text
//!   program ── leadership() ─► guard ◄─ Seat ◄──┐
//!           ── events(), status() ◄─────────────┤ run: one task for each candidate
//!           ── stop() ─────────────────────────►│   ▲            │
//!                                               │   │ what       │ calls
//!                       quorate_core::recipe ◄──┘   │ happened   ▼
//!                                                  [`Store`]: ZooKeeper, etcd, …
//! ```
//!
//! Use it through the crate of your store: `quorate-zookeeper` or `quorate-etcd`. They are an
//! implementation of [`Store`] each: how a session is kept, and how a call is made. What is called when is
//! decided by the machines of [`quorate_core::recipe`]; this crate hands things on, and gives what they
//! say to the guards of `quorate-leadership`.
//!
//! What it does not do: it makes nobody exclusive. A process may be paused between asking whether it leads
//! and doing what only a leader may; therefore the [token](Leadership::token). And a candidate that holds
//! the leadership and does not do its work is nobody's business but its program's: one that
//! drops its guard gives the leadership up.
#![forbid(unsafe_code, unused_must_use)]

mod candidate;
mod contender;
mod designation;
mod news;
mod recipe;
mod run;
mod settings;
mod store;

pub use quorate_core::recipe::offer::{Naming, Notice};
pub use quorate_core::recipe::{Failure, Loss};
pub use quorate_leadership::{FencingToken, LeadershipError, Lost};

pub use crate::candidate::{AskError, Candidate, Leadership, Tokio, ask};
pub use crate::contender::Contender;
pub use crate::designation::{Designation, DesignationError, designate};
pub use crate::news::{Event, Events, State, Status};
pub use crate::settings::{Recipe, Settings, StartError};
pub use crate::store::{Pace, Store, StoreError, Teller, begin};
