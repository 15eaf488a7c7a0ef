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
pub(crate) mod client_handshakes;
mod client_link;
pub(crate) mod client_listeners;
pub(crate) mod client_outbound;
pub(crate) mod client_port;
#[cfg(feature = "tls")]
pub(crate) mod client_reload;
#[cfg_attr(not(feature = "tls"), path = "net/no_client_tls.rs")]
pub(crate) mod client_tls;
pub(crate) mod codec;
mod descriptors;
pub(crate) mod dial;
pub(crate) mod events;
pub(crate) mod handshakes;
pub(crate) mod held_back;
mod link;
pub(crate) mod listen;
mod listen_address;
mod listening_socket;
pub(crate) mod login_outcomes;
pub(crate) mod login_reload;
pub(crate) mod looks;
pub(crate) mod member_addresses;
pub(crate) mod member_names;
pub(crate) mod open_links;
pub(crate) mod oracle;
pub(crate) mod outbound;
mod port_health;
mod progress;
pub(crate) mod reach;
mod reader;
#[cfg(feature = "tls")]
pub(crate) mod reload;
#[cfg(feature = "tls")]
mod replayed;
pub(crate) mod resolve;
pub(crate) mod retransmits;
pub(crate) mod sasl;
#[cfg(feature = "tls")]
pub(crate) mod secure_links;
#[cfg_attr(not(feature = "tls"), path = "net/no_tls.rs")]
pub(crate) mod tls;
pub(crate) mod tls_failures;
pub(crate) mod wearing;
pub(crate) mod wire;
mod writer;
