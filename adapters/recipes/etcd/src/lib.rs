//! Leader election through an existing etcd cluster.
//!
//! ```no_run
//! use quorate_etcd::{Candidate, Config};
//!
//! # async fn work(_: quorate_etcd::FencingToken) {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::new(["http://etcd1:2379", "http://etcd2:2379"], "nightly", "host-7");
//! let candidate = Candidate::start(config).await?;
//! loop {
//!     let leadership = candidate.leadership().await?; // waits until this process leads
//!     let token = leadership.token();                 // its key's create revision: greater than every earlier one
//!     if let Err(lost) = leadership.run(work(token)).await {
//!         println!("{lost}");                         // the work has been dropped
//!     }
//! }                                                   // the guard goes, and the next in the row leads
//! # }
//! ```
//!
//! Each candidate has a lease, and leaves a key below the prefix that goes with it, named as the lease is.
//! The oldest leads, by etcd's own count of revisions, and each other watches its neighbour, so that a candidate
//! that goes wakes one other. etcd's own elections (`etcdctl elect`, Go's `concurrency.Election`) do the same with the same
//! keys: all can compete under one prefix. [`Settings::lease`] is the other recipe: one key, and the
//! candidate that creates it leads.
//!
//! Where no lease is granted, or the cluster refuses something, the candidate tries again after a back-off;
//! [`Candidate::status`] and [`Candidate::events`] say what is in the way.
//!
//! Which candidates of a group are alive, now and at each change: [`Candidate::members`], [`Members`].
//!
//! # What it promises
//!
//! The token of a leader is the revision in which its key was created: greater than that of every earlier
//! leader. A leader stops by its own monotonic clock before its lease can end: counted from
//! when the last acknowledged renewal was *sent*, three in each time to live. No clock can hold back what a
//! paused process still has under way: the guarded resource has to refuse tokens smaller than the greatest it has
//! seen, or has to be written in one transaction with a comparison of the key's create revision.
#![forbid(unsafe_code, unused_must_use)]

mod config;
mod error;
mod lease_calls;
mod offer_calls;
mod revision;
mod session;
mod store;
mod watches;

pub use quorate_recipes::{
    AskError, Contender, Designation, DesignationError, Event, Events, Failure, FencingToken,
    Leadership, LeadershipError, Loss, Lost, Notice, PathFault, Settings, StartError, State,
    Status, StoreError, designate,
};

pub use crate::config::Config;
pub use crate::store::Etcd;

/// A candidate for leadership.
pub type Candidate = quorate_recipes::Candidate<Etcd>;

/// The members of a group.
pub type Members = quorate_recipes::Members<Etcd>;

/// The candidates that compete now, the leader first, for a caller that does not compete.
///
/// # Errors
///
/// If the configuration cannot work, if the cluster does not answer within the deadline, or refuses.
pub async fn ask(config: Config) -> Result<Vec<Contender>, AskError> {
    quorate_recipes::ask::<Etcd>(config).await
}
