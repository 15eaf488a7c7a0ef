//! Leader election through an etcd cluster that is there already.
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
//! The oldest leads, by etcd's own count of revisions, and each other watches its neighbour: one that goes
//! wakes one. etcd's own elections (`etcdctl elect`, Go's `concurrency.Election`) do the same with the same
//! keys: all can compete under one prefix. [`Config::lease`] is the other recipe: one key, and who creates
//! it leads.
//!
//! If no lease can be had, or the cluster refuses something, it is tried again, less and less often;
//! [`Candidate::status`] and [`Candidate::events`] say what is in the way.
//!
//! # What it promises
//!
//! The token of a leader is the revision in which its key was created: greater than that of everyone who
//! led before. A leader stops by its own monotonic clock before its lease can end: counted from
//! when the last acknowledged renewal was *sent*, three in each time to live. What a paused process still has
//! under way no clock can hold back: whatever is guarded has to refuse tokens smaller than it has seen, or
//! has to be written in one transaction with a comparison of the key's create revision.
#![forbid(unsafe_code, unused_must_use)]

mod calls;
mod config;
mod error;
mod keys;
#[cfg(test)]
mod peers;
mod session;
mod store;
mod watches;

pub use quorate_recipes::{
    AskError, Contender, Designation, DesignationError, Event, Events, Failure, FencingToken,
    Leadership, LeadershipError, Loss, Lost, Notice, StartError, State, Status, StoreError,
    designate,
};

pub use crate::config::Config;
pub use crate::store::Etcd;

/// One that would lead.
pub type Candidate = quorate_recipes::Candidate<Etcd>;

/// Who competes now, the leader first, for somebody who does not.
///
/// # Errors
///
/// If the configuration cannot work, if the cluster does not answer within the deadline, or refuses.
pub async fn ask(config: Config) -> Result<Vec<Contender>, AskError> {
    quorate_recipes::ask::<Etcd>(config).await
}
