//! What four-letter words tell of `quorate serve` beside what the service knows of its clients: settings, and figures of
//! the server beneath.
//!
//! Monitoring that knows ZooKeeper works unchanged: same words, same lines, same whitelist
//! (`4lw.commands.whitelist`), same sentence while the server has no leader. Two differences: without
//! a whitelist the five words are answered that cost nothing, not `srvr` alone; and `mntr` answers also without a
//! leader, so that monitoring sees a server that looks for one. Lines whose value is not known are left out rather than
//! made up.

mod answers;
mod text;

pub(crate) use self::answers::Responder;
pub(crate) use self::text::{directories, size};
