//! A world for quorate's servers in which everything comes from one seed.
//!
//! ```text
//!              Input                         Output
//!   World ───────────────► Peer (the shipped core) ───────────────► World
//!     │                                                               │
//!     ├─ Agenda    virtual time; nothing ever waits for a real clock  │
//!     ├─ Network   latency, stalls, resets, dials that hang ◄─────────┤ Dial, Send, Hangup
//!     ├─ Disk      what is durable, what a crash takes away ◄─────────┤ Persist, Locate, StreamLog
//!     ├─ Application   cells that are written ◄───────────────────────┤ Prepare, DeliverThrough, …
//!     └─ Checker   what must hold, tested after every single step ◄───┘
//! ```
//!
//! The servers are real [`Peer`](quorate_core::peer::Peer)s and every message passes through the real
//! codec, introductions included; only sockets, files and clocks are replaced. Whatever goes wrong in
//! here is therefore wrong in the product. A failure is a seed: the same seed gives the same run, event
//! by event, on every machine.
//!
//! - [`World`] is for stories: start these servers, cut that link, see who leads.
//! - [`campaign`] is for numbers: a seed makes an ensemble, its past, its clients and its accidents.
//! - [`runner`] runs many seeds on all processors, and [`shrink`] makes a failure small.
//! - [`Stage`] is for one server among scripted ones: its peers say what the test wants said.
//!
//! What is not simulated: clients' sessions; servers that join or leave altogether (roles do change); bytes damaged on the way (the
//! codec is fuzzed for that); clocks that run at different speeds.

mod agenda;
mod application;
pub mod campaign;
mod chart;
mod checker;
mod diagram;
mod disk;
mod ensemble;
mod faults;
mod ledger;
mod network;
pub mod record;
pub mod runner;
pub mod shrink;
pub mod stage;
mod trace;
mod world;

pub use application::State;
pub use chart::{Chart, Row};
pub use checker::{Checker, Rule, Violation};
pub use diagram::Diagram;
pub use disk::{Contents, Disk, DiskConfig, Survival};
pub use ensemble::{Ensemble, Seat};
pub use faults::{Coverage, FaultClass};
pub use ledger::{Answer, Outcome};
pub use network::NetworkConfig;
pub use stage::Stage;

pub use world::{Brief, CrashKind, World, WorldConfig};
