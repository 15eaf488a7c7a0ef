//! The tests of the doctor in one program: faults that are planted in facts, each seen by its rule at its place.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod certificates;
mod configuration;
mod ensemble;
mod healthy;
mod links;
mod live;
mod logs;
mod machine;
mod planted;
mod report;
mod security;
