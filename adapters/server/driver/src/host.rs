//! The application at this server, and the callers that ask for transactions and reads.
//!
//! ```text
//!   callers ──► inbox ──► loop ──► replica ── orders ──► worker ──► application
//!      ▲                              │                    │
//!      └────────── outcomes ──────────┴──── done ◄─────────┘
//! ```

pub(crate) mod callers;
pub(crate) mod inbox;
pub(crate) mod proposal;
pub(crate) mod replica;
pub(crate) mod restore;
mod worker;
