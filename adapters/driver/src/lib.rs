//! Runs quorate's core: sockets, a disk and a clock around one [`Peer`](quorate_core::peer::Peer).
//!
//! ```text
//!     doors ──┐                                    ┌──► links ──► sockets
//!     dials ──┼─ bounded channel ─► loop: step() ──┼──► dials
//!     links ──┘                       ▲            └──► disk thread
//!                                     └── last durable ticket ──┘
//! ```
//!
//! The core decides; this crate carries out. [`Server`] is what programs embed, and the only place
//! where a server is assembled. It is generic over a small [`Runtime`], so the same code runs on every
//! async runtime; use it through the crate of yours, such as `quorate-tokio`.
//!
//! - `drive`: the loop, on one screen.
//! - `link`: a reader and a writer for each connection.
//! - `listen`, `dial`: how connections come to be.
//! - `disk`: the one thread that writes.
//! - [`zoo_cfg`]: ZooKeeper's configuration files.
//!
//! Everything that others can make us hold is bounded: connections that have not introduced themselves
//! (128, the oldest of the host that has most makes room), events that wait for the loop (256, of them
//! 8 long messages; beyond that readers wait), packets
//! that wait for one learner (4096, beyond that its link ends), notifications that wait for one peer
//! (1, the newest). A peer that sends what cannot be read costs its link, or only that message.
#![forbid(unsafe_code, unused_must_use)]

mod config;
mod dial;
mod disk;
mod drive;
mod link;
mod listen;
mod oracle;
mod quiet;
mod runtime;
mod scope;
mod server;
mod status;
pub mod zoo_cfg;

pub use config::ServerConfig;
pub use quorate_core as core;
pub use runtime::{Runtime, tune};
pub use server::{Server, ServerError, StartError};
pub use status::{Changes, Leader, Leaders, Metrics, Observed, Status};
