//! SASL DIGEST-MD5 (RFC 2831) as ZooKeeper speaks it: both sides, without I/O; and who may log in, out of a JAAS file.
//!
//! ```text
//!   JAAS file ──► Jaas ──► Users ───────┐
//!                     └──► Credentials ─┼─┐
//!   seed ──► Nonces ──► a nonce ──────► Acceptor ◄── tokens ──► Dialler ◄── a nonce
//!                                       │                       │
//!                                       quorum::Accepting       quorum::Dialling    the same in packets between servers
//! ```
//!
//! The mechanism proves that both sides know a password, and nothing more: what follows is neither encrypted nor protected,
//! and who listens can guess at the password as fast as MD5 goes. It is here for ensembles and clients that have it; TLS
//! does what it does not. Every token and file is bounded. A proof is compared in constant time, and a refusal does not tell
//! whether it was the user or the password.
//!
//! ```
//! use quorate_sasl::{Acceptor, CLIENTS, Dialler, Jaas, Nonces, Reply, Turn};
//!
//! let jaas = Jaas::read(r#"
//!     Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="builder"; };
//!     Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="builder"; };
//! "#)?;
//! let (server, client) = (jaas.section("Server")?, jaas.section("Client")?);
//! let nonces = Nonces::new([7; 32]); // from the operating system's randomness
//! let mut acceptor = Acceptor::new(CLIENTS, nonces.next());
//! let mut dialler = Dialler::new(CLIENTS, client.own().unwrap().clone(), nonces.next());
//! let Reply::Challenge(challenge) = acceptor.step(b"", server.users())? else { panic!() };
//! let Turn::Send(response) = dialler.step(&challenge)? else { panic!() };
//! let Reply::Done { user, token } = acceptor.step(&response, server.users())? else { panic!() };
//! assert_eq!(user, "bob");
//! assert_eq!(dialler.step(&token)?, Turn::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In the Java code: `ZooKeeperSaslServer`, `SaslQuorumAuthServer`, `SaslQuorumAuthLearner`, `DigestLoginModule`, and the
//! JDK's `DigestMD5Server`, `DigestMD5Client` and `ConfigFile`.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]

extern crate alloc;

mod acceptor;
mod dialler;
mod directives;
mod jaas;
mod nonces;
mod packet;
mod password;
mod proof;
pub mod quorum;
mod refused;
mod service;
mod tokens;
mod users;

pub use acceptor::{Acceptor, Reply};
pub use dialler::{Dialler, Turn};
pub use jaas::{FILE_BYTES_MAX, Jaas, JaasError, JaasReason, Section};
pub use nonces::{Nonce, Nonces};
pub use packet::{MAGIC, Packet, PacketError, Status, TOKEN_BYTES_MAX};
pub use password::Password;
pub use refused::Refused;
pub use service::{CLIENTS, SERVERS, Service};
pub use users::{Credentials, Users};

/// The program of the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
