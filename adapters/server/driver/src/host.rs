//! The application at this server, the service in front of it, and the callers that ask for transactions and reads.
//!
//! ```text
//!   callers ──► inbox ──► loop ──► replica ── orders ──► worker ──► application
//!      ▲                              │                    │
//!      └────────── outcomes ──────────┴──── done ◄─────────┘
//! ```

pub(crate) mod callers;
pub(crate) mod proposal;
mod reads;
pub(crate) mod replica;
pub(crate) mod restore;
pub(crate) mod service;
mod stages;
mod worker;
