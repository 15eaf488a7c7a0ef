//! Runs quorate's core: sockets, a disk and a clock around one [`Peer`](quorate_core::peer::Peer).
//!
//! ```text
//!     doors ──┐                                    ┌──► links ──► sockets
//!     dials ──┼─ bounded channel ─► loop: step() ──┼──► dials
//!     links ──┘                     ▲ ▲            └──► disk thread
//!     clients ── bounded channel ───┘ └── last durable ticket ──┘
//! ```
//!
//! The core decides; this crate carries out. [`Server`] is what programs embed, and the only place
//! where a server is assembled. It is generic over a small [`Runtime`], so the same code runs on every
//! async runtime; use it through the crate of yours: `quorate-tokio`, `quorate-smol` or
//! `quorate-async-std`. They are an `impl Runtime` and [`embed!`] each.
//!
//! - `drive`: the loop.
//! - `net`: how connections come to be; a reader and a writer for each.
//! - `disk`: the one thread that writes, and what is too long to wait in its queue or a connection's.
//! - `host`: the application at work, the service of its clients beside it, and what callers have asked for; what an
//!   application is, and a service, stands in `quorate-application`.
//! - [`Leadership`]: the guard, from `quorate-leadership`.
//! - [`zoo_cfg`]: ZooKeeper's configuration files.
//! - `tls`, a feature: TLS between servers (`ServerConfig::tls`) and for clients (`ServerConfig::client_tls`); who is
//!   trusted and may be which server is decided in `quorate-tls`.
//! - `testing`, a feature: the scenarios that every runtime's crate is tested with.
//!
//! Everything that others can make us hold is bounded: connections that have not introduced themselves
//! (128, the oldest of the host that has most makes room; with TLS 64 at both ports, 8 of one host), unfinished messages (16 MiB in all), events that
//! wait for the loop (256, of them 8 long messages; beyond that readers wait), packets that wait for one
//! learner (8 MiB, beyond that its link ends), notifications that wait for one peer (1, the newest), a snapshot or a part of the log on
//! its way (1 MiB for each link), transactions that wait for the application (64 MiB; the rest is read
//! back from the log), requests of callers (4096; the next one waits). A peer that sends what cannot be
//! read costs its link, or only that message.
//!
//! Of clients: connections (60 of one address, and all but the last 64 descriptors on Linux; one that says nothing is closed
//! after 10 s), frames that have not come whole (256 MiB in all, 64 MiB of those that may be longer than others; who needs more
//! waits for a turn unread, and nothing is taken for what is only promised), events that wait
//! for the loop (256) and for the service (256), of both 32 long ones, behind which the connections wait; what waits for one
//! client (64 MiB, beyond that its connection ends; the service is told what was written, and holds back earlier).
#![forbid(unsafe_code, unused_must_use)]

mod allowed_hosts;
mod audit;
mod config;
mod disk;
mod disk_floor;
mod drive;
mod embed;
mod error;
mod host;
mod inbox;
mod lock;
mod log_limit;
mod measures;
mod net;
mod permits;
mod proposals;
mod randomness;
mod replace_file;
mod runtime;
mod server;
mod status;
mod sync_bytes;
mod tally;
mod task_group;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
mod turns;
mod wall_clock;
pub mod zoo_cfg;

pub use allowed_hosts::{AllowedHosts, Network, NoNetwork};
#[cfg(feature = "tls")]
pub use config::SecureClients;
pub use config::{BuildError, ServerConfig, ServerConfigBuilder, replace_membership};
pub use disk_floor::DiskFloor;
pub use error::{DiskFault, SaslError, ServerError, StartError};
pub use host::proposal::{
    Proposal, ProposeError, Proposed, ReadError, ReconfigureError, Setback, TakeSnapshotError,
    TransferError, UnknownOutcome,
};
pub use net::reach::Dialled;
pub use net::wearing::WearingLink;
pub use quorate_application::{
    Application, Facts, NoApplication, Nothing, Prepared, Rejected, Replicated, Restore,
    RestoreError, Saved, Snapshot, SnapshotError, StateMachine, clients,
};
pub use quorate_core as core;
pub use quorate_leadership::{FencingToken, LeadershipError, Lost, boot_time};
pub use quorate_metrics as metrics;
pub use randomness::nonces;
pub use runtime::{
    Leadership, OnRuntime, Runtime, ends, lengthen_queue, limit_queue, reset_on_close, tune,
    tune_for_client,
};
pub use server::Server;
pub use status::{Changes, Leader, Leaders, Metrics, Observed, Status};
pub use threads::offload;
