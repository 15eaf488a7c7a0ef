//! Connections: how they come to be, and what passes over them.
//!
//! ```text
//!   listen ──► acceptor ── handshakes ──┐            ┌── reader ──► events ──► loop
//!   dial ───── resolve ─────────────────┴──► link ───┤
//!                                                    └── writer ◄── outbound ◄── loop
//!
//!   client_listeners ──► client_port ──► client_link: the same for clients, whose frames go to the service ◄──► loop
//! ```

mod accepting;
pub(crate) mod acceptor;
pub(crate) mod address_limit;
mod bind_tries;
mod budget;
pub(crate) mod client_events;
mod client_link;
pub(crate) mod client_listeners;
pub(crate) mod client_outbound;
pub(crate) mod client_port;
pub(crate) mod codec;
mod descriptors;
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
pub(crate) mod reach;
mod reader;
pub(crate) mod resolve;
mod writer;
