//! quorate's core.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_core)]

extern crate alloc;

pub mod address;
pub mod config;
pub mod context;
pub mod durable;
pub mod election;
pub mod history;
pub mod id;
pub mod input;
pub mod leader;
pub mod learner;
pub mod links;
pub mod membership;
pub mod message;
pub mod outbox;
pub mod output;
pub mod peer;
pub mod quorum;
pub mod report;
pub mod rng;
pub mod time;
pub mod timers;
pub mod txn;
pub mod vote;
pub mod wire;
pub mod zxid;
