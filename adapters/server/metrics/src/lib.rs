//! Figures of a server: collected once, written as lines of `mntr` and as a page for Prometheus.
//!
//! ```text
//!   observe ──► Summary ──► Spread ──┐
//!   what is counted and measured ────┴─► Figures ──┬──► words()   zk_name<TAB>value
//!                                                  ├──► page()    text/plain; version=0.0.4
//!                                                  └──► lines()   name and value, for JSON
//! ```
//!
//! Names and kinds are ZooKeeper's where it has one (`ServerMetrics`, `ZooKeeperServer.registerMetrics` and its
//! subclasses); ours stand beside them, with `quorate_` before them where Prometheus reads. A figure that is not known is
//! left out: for rules and dashboards an absent series is not 0.
//!
//! Sans-IO: nothing here reads a clock, and a time is a duration since some moment that stays the same.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]

extern crate alloc;

mod figures;
mod page;
#[cfg(target_has_atomic = "64")]
mod shared;
mod summary;
mod words;

pub use figures::{Detail, Figures, Number};
pub use page::CONTENT_TYPE;
#[cfg(target_has_atomic = "64")]
pub use shared::SharedSummary;
pub use summary::{Spread, Summary};

/// The program of the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
