//! Connections: how they come to be, and what passes over them.
//!
//! ```text
//!   listen ──► acceptor ── handshakes ──┐            ┌── reader ──► events ──► loop
//!   dial ───── resolve ─────────────────┴──► link ───┤
//!                                                    └── writer ◄── outbound ◄── loop
//! ```

pub(crate) mod acceptor;
pub(crate) mod address_limit;
mod budget;
pub(crate) mod codec;
pub(crate) mod dial;
pub(crate) mod events;
mod handshakes;
mod link;
pub(crate) mod listen;
mod listen_address;
mod listening_socket;
pub(crate) mod oracle;
pub(crate) mod outbound;
mod port_health;
mod progress;
mod reader;
pub(crate) mod resolve;
mod writer;
