//! The operator's socket in a server's data directory: what `quorate reconfig` and `quorate admin` ask, and the answers.
//!
//! ```text
//!   quorate admin ──► dataDir/quorate.sock ──► quorate serve
//!      a line of JSON:  {"transfer":{"to":"lowest","wait_ms":20000}}
//!      a line back:     {"done":{"leads":{"leader":1,"epoch":8,"changed":true}}}
//! ```
//!
//! It is there while a server runs. Access is a matter of files: the user that the server runs as, and root; no network
//! port is opened. Each connection has one question, a few seconds to ask it, and a task of its own; who asks for something
//! that cannot be read hurts no client.

mod answers;
mod ask;
mod membership;
mod questions;
mod report;
mod socket;
mod transferring;

pub(crate) use self::ask::{AskError, ask};
pub(crate) use self::membership::Wanted;
pub(crate) use self::questions::{Answer, Question, Successor};
pub(crate) use self::report::Report;
pub(crate) use self::socket::OperatorSocket;
