//! TLS between the servers of an ensemble, and for their clients: who is trusted, what a certificate may be used for, and which server it is for.
//!
//! ```text
//!   zoo.cfg ─► Settings ─► stores ─► Tls ──┬─► acceptor    rustls's configuration of the side that accepts
//!                                          └─► dialler     that of one dial, with a look at who answers
//!           ─► ClientSettings ─► ClientTls ─► acceptor of clients, and who each is by its certificate
//!   a certificate ─► PeerNames ─┐
//!   a claimed id  ──────────────┴─► judge ─► Verdict       pure: no clock, no network, no files
//! ```
//!
//! ZooKeeper's rules where it has some: each side shows a certificate, both check the other's, and a certificate that stands
//! in the trust store byte for byte is trusted although it is no authority's (its guide makes one self-signed certificate for
//! each server). Ours beside them: a certificate is for the servers whose hosts it names, and a claimed id has to be one of
//! those.
//!
//! Sessions are never resumed, so that each link is a look at the certificate; no server name is sent, since nothing depends
//! on it; early data is off. rustls's provider is handed over, and the process's own one is neither set nor used.
//!
//! No runtime and no socket is here, and only [`Tls::open`], [`ClientTls::open`] and what makes [`Marks`] look at files.
#![forbid(unsafe_code, unused_must_use)]

mod certificate;
mod client_port;
mod client_settings;
mod distinguished;
mod error;
mod first_bytes;
mod identity;
mod marks;
mod names;
mod provider;
mod reason;
mod records;
mod renewal;
mod revoked;
mod settings;
mod stores;
mod tls;
mod trust;
mod verifier;

pub use client_port::{ClientTls, Holder, holder_of};
pub use client_settings::ClientSettings;
pub use distinguished::name_text;
pub use error::{StoreError, TlsError};
pub use first_bytes::{ClientFirstBytes, FirstBytes, Speaks};
pub use identity::{IdentityMode, Mismatch, Verdict, judge};
pub use marks::Marks;
pub use names::{Named, PeerNames};
pub use quorate_keystore::{Kind as StoreKind, Password};
pub use reason::{Failure, Reason};
pub use records::Records;
pub use renewal::{Renewals, Worn, WornKind};
pub use revoked::lists_in;
pub use rustls;
pub use settings::{
    ClientAuth, CloseOnReload, RevokedFile, Settings, StoreFile, StorePassword, Suite, Versions,
    store_kind,
};
pub use tls::{Notice, Tls, end_of, names_of, trusted_by};
pub use verifier::Check;
