//! The pages of servers on every runtime, as a client of plain sockets sees them.

#![allow(clippy::unwrap_used, reason = "tests")]

mod client;
mod pages;
#[cfg(feature = "tls")]
mod secure;
mod strangers;
