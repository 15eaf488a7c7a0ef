//! All tests of the package, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod jaas;
mod logins;
mod packets;
mod recorded;
