//! Connections: how they come to be, and what passes over them.
//!
//! ```text
//!   listen ── handshakes ──┐            ┌── reader ──► events ──► loop
//!   dial ──── resolve ─────┴──► link ───┤
//!                                       └── writer ◄── outbound ◄── loop
//! ```

mod accepting;
mod budget;
pub(crate) mod codec;
pub(crate) mod dial;
pub(crate) mod events;
pub(crate) mod guests;
mod handshakes;
mod link;
pub(crate) mod listen;
pub(crate) mod oracle;
pub(crate) mod outbound;
mod ports;
mod progress;
mod reader;
pub(crate) mod resolve;
mod writer;
