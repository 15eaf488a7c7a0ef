//! Java's key and trust stores, as a ZooKeeper server takes them: JKS, PKCS12 and PEM, out of bytes.
//!
//! ```text
//!   bytes, ssl.*.type, password ──► key_store ────► a key, its chain, its alias    ┐
//!                               └─► trust_store ──► certificates that are trusted  ├─ and notices; or why not
//! ```
//!
//! Files are read by their content; what a Java server would make of them is a [`Notice`]. What a file asks for is
//! bounded: its length, the rounds and the memory of key derivation. A seal is compared in constant time, and before what
//! it seals is taken; one password opens a store and the key in it. Weak keys are refused by name.
//!
//! ```
//! use quorate_keystore::{Password, key_store, trust_store, usable_by_a_member};
//!
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
//! # let read = |name| std::fs::read(format!("{folder}/{name}"));
//! let password = Password::new("changeit");
//! let own = key_store("zk1.jks", &read("keytool-ec.jks")?, None, Some(&password))?;
//! usable_by_a_member(&own)?;
//! let trusted = trust_store("trust.p12", &read("trust.p12")?, None, Some(&password))?;
//! println!("{} certificates, {} trusted", own.chain.len(), trusted.certificates.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A key on an elliptic curve, or of Ed25519, may be written without its public half; Java's are. Its curve is compared
//! with that of its certificate, and the rest is left to the TLS that makes a link with it.
//!
//! In the Java code: `FileKeyStoreLoader`, `PemReader`, `X509Util`.
#![forbid(unsafe_code, unused_must_use)]

mod budget;
mod certificate;
mod der;
mod digests;
mod entries;
mod jks;
mod kind;
mod notice;
mod oid;
mod password;
mod pem;
mod pkcs12;
mod private_key;
mod reason;
mod settle;
mod store;
mod unseal;
mod usable;

pub use certificate::{Certificate, Named, Names, NoCertificate, Uses};
pub use kind::Kind;
pub use notice::{JavaCannot, Notice};
pub use password::{NotText, Password};
pub use reason::{Reason, Remedy, StoreError};
pub use rustls_pki_types;
pub use store::{
    KeyStore, MOST_BYTES, MOST_CHAIN, MOST_ROUNDS, Options, TrustStore, key_store, key_store_with,
    trust_store, trust_store_with,
};
pub use usable::{Unusable, usable_by_a_member};

/// The program of the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
