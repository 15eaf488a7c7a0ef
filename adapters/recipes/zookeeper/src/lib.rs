//! Leader election through a ZooKeeper ensemble that is there already.
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
//! The lowest leads, and each other watches its neighbour: one that goes wakes one. Apache's own recipe for
//! Java, `LeaderElectionSupport`, does the same with the same nodes: both can compete under one root
//! ([`Config::naming`] with [`Naming::Java`]), as can Curator's `LeaderLatch` ([`Naming::Latch`]) and kazoo's
//! `Election` for Python ([`Naming::Kazoo`]). [`Config::lease`] is the other recipe: one node, and who creates it
//! leads.
//!
//! The root is created if it is missing. If no session can be had, or the ensemble refuses
//! something, it is tried again, less and less often; [`Candidate::status`] and [`Candidate::events`]
//! say what is in the way.
//!
//! # What it promises
//!
//! The token of a leader is the zxid with which its node was created: greater than that of everyone who
//! led before. A leader stops by its own monotonic clock before the ensemble can end its session: counted
//! from when the heartbeat was *sent* that ZooKeeper's leader is sure to have counted. A heartbeat is a `sync`,
//! which passes the leader, some seven in each time-out; but its followers tell it of sessions only every half
//! tick, so the last that was answered is not the last that counts. What a paused process still has under way
//! no clock can hold back: whatever is guarded has to refuse tokens smaller than it has seen.
#![forbid(unsafe_code, unused_must_use)]

mod beats;
mod calls;
mod config;
mod error;
mod keys;
mod store;

pub use quorate_recipes::{
    AskError, Contender, Designation, DesignationError, Event, Events, Failure, FencingToken,
    Leadership, LeadershipError, Loss, Lost, Naming, Notice, StartError, State, Status, StoreError,
    designate,
};

pub use crate::config::{Access, Config};
pub use crate::store::ZooKeeper;

/// One that would lead.
pub type Candidate = quorate_recipes::Candidate<ZooKeeper>;

/// Who competes now, the leader first, for somebody who does not.
///
/// # Errors
///
/// If the configuration cannot work, if the ensemble does not answer within the deadline, or refuses.
pub async fn ask(config: Config) -> Result<Vec<Contender>, AskError> {
    quorate_recipes::ask::<ZooKeeper>(config).await
}
