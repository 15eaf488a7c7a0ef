//! Probes, metrics and status of a server over HTTP, on any async runtime.
//!
//! ```text
//!   sockets ──► Port: limits, TLS, heads, idle time ──► Request ──► Site ──► Answer
//!                                                                   │
//!              Pages: probes, /metrics, /quorate/… ─────────────────┘  of what the server publishes
//! ```
//!
//! A page is made of what the loop of the server publishes; a probe takes no lock that the loop holds for long, and waits
//! at most a second for a sign of it. Nothing here changes a server.
//!
//! What strangers send is read by hyper, up to 8 KiB a head and no body at all.
#![forbid(unsafe_code, unused_must_use)]

mod exchange;
mod pages;
mod port;
mod probes;
#[cfg(feature = "tls")]
mod secure;
mod status;
mod stream;

pub use exchange::{Answer, Method, Request, pretty};
pub use pages::{NoMore, Pages, Site, Source};
pub use port::{Limits, Port};
pub use probes::{Check, Health};
#[cfg(feature = "tls")]
pub use secure::Secure;

/// The program of the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
