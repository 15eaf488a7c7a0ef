//! Timelines of real logs: three servers, of Java, of ours and of both, whose leader was killed and came back. Their lines
//! are in `golden/`, without those that tell nothing here.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod clocks;
mod damage;
mod golden;
mod logs;
mod pages;
