//! Clients that others wrote, at three servers as the command starts them: ZooKeeper's for Java with Curator, the one
//! for C, and the one for Python with its own suite. They are the judges of what a ZooKeeper server is.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and why one was skipped")]

#[path = "../common/mod.rs"]
mod common;

mod c;
mod ensemble;
mod java;
mod kazoo;
mod logins;
mod peer;
mod raw;
mod rolling;
mod seats;
mod tls;
