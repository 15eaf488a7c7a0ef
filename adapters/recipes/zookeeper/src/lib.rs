//! Leader election through an existing ZooKeeper ensemble.
//!
//! ```no_run
//! use quorate_zookeeper::{Candidate, Config};
//!
//! # async fn work(_: quorate_zookeeper::FencingToken) {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let candidate = Candidate::start(Config::new("zk1:2181,zk2:2181", "/nightly", "host-7")).await?;
//! loop {
//!     let leadership = candidate.leadership().await?; // waits until this process leads
//!     let token = leadership.token();                 // the zxid of its offer: greater than every earlier one
//!     if let Err(lost) = leadership.run(work(token)).await {
//!         println!("{lost}");                         // the work has been dropped
//!     }
//! }                                                   // the guard goes, and the next in the row leads
//! # }
//! ```
//!
//! Each candidate leaves an *offer* below the root, an ephemeral sequential node with its identity in it.
//! The lowest leads, and each other watches its neighbour, so that a candidate that goes wakes one other. Apache's own recipe for
//! Java, `LeaderElectionSupport`, does the same with the same nodes: both can compete under one root
//! ([`Config::naming`] with [`Naming::Java`]), as can Curator's `LeaderLatch` ([`Naming::Latch`]) and kazoo's
//! `Election` for Python ([`Naming::Kazoo`]). [`Settings::lease`] is the other recipe: one node, and the
//! candidate that creates it leads.
//!
//! The root is created if it is missing. Where a session cannot be opened, or the ensemble refuses
//! something, the candidate tries again after a back-off; [`Candidate::status`] and [`Candidate::events`]
//! say what is in the way.
//!
//! A program that has a client already can hold any number of elections in its session: [`Session`], [`Config::on`]. Which
//! candidates of a group are alive, now and at each change: [`Candidate::members`], [`Members`].
//!
//! # What it promises
//!
//! The token of a leader is the zxid with which its node was created: greater than that of every earlier
//! leader. A leader stops by its own monotonic clock before the ensemble can end its session: counted
//! from when the heartbeat was *sent* that ZooKeeper's leader is sure to have counted. A heartbeat is a `sync`,
//! which passes the leader, some seven in each time-out; but its followers tell it of sessions only every half
//! tick, so the last that was answered is not the last that counts. No clock can hold back what a paused process
//! still has under way: the guarded resource has to refuse tokens smaller than the greatest it has seen.
#![forbid(unsafe_code, unused_must_use)]

mod config;
mod error;
mod heartbeats;
mod lease_calls;
mod nodes;
mod offer_calls;
mod session;
mod store;

pub use quorate_recipes::{
    AskError, Contender, Designation, DesignationError, Event, Events, Failure, FencingToken,
    Leadership, LeadershipError, Loss, Lost, Naming, Notice, PathFault, Settings, StartError,
    State, Status, StoreError, designate,
};

pub use crate::config::{Access, Config};
pub use crate::session::Session;
pub use crate::store::ZooKeeper;
/// The client library, whose client a [`Session`] is of.
pub use zookeeper_client;

/// A candidate for leadership.
pub type Candidate = quorate_recipes::Candidate<ZooKeeper>;

/// The members of a group.
pub type Members = quorate_recipes::Members<ZooKeeper>;

/// The candidates that compete now, the leader first, for a caller that does not compete.
///
/// # Errors
///
/// If the configuration cannot work, if the ensemble does not answer within the deadline, or refuses.
pub async fn ask(config: Config) -> Result<Vec<Contender>, AskError> {
    quorate_recipes::ask::<ZooKeeper>(config).await
}
