//! The tests of this directory in one program.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod client_port;
mod distinguished;
mod handshakes;
mod identities;
mod made;
mod revoked;
mod stores;
mod trusted;
