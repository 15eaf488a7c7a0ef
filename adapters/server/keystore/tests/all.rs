//! All tests of the package, in one program.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod fixtures;
mod hostile;
mod key_stores;
mod members;
mod passwords;
mod trust_stores;
