//! Every order in which things can happen to a few servers of the shipped core, within bounds that fit in a
//! test run. Larger ones are run by hand, see the example `model`; what is looked at, and how, stands in
//! `checking`.
#![allow(clippy::print_stdout, reason = "its figures are for people: `-- --nocapture`")]

mod bounds;
mod checking;
mod sessions;
