//! What is wrong with an ensemble of ZooKeeper or quorate servers, and what to do about it.
//!
//! ```text
//!   files, ports, disks, host, logs ──► Facts ──► rules ──► findings ──► fold ──► Report ──► text, JSON
//!     who gathers them: `quorate doctor`          one table              one cause, one finding
//! ```
//!
//! A rule is a pure function of [`Facts`]: it opens nothing, asks no server and has no clock, so each is shown by a
//! test that plants its fault. [`rules()`] is the one table of them; the command prints it (`quorate doctor --rules`).
//!
//! What it does not do: it gathers nothing but files ([`ConfigFile`]), changes nothing, and draws no conclusion from what
//! was not looked at.
#![forbid(unsafe_code)]

mod diagnosis;
mod facts;
mod file;
mod finding;
mod java;
mod meaning;
mod page;
mod report;
mod rule;
mod rules;
mod vulnerability;
mod words;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;

pub use crate::diagnosis::diagnose;
pub use crate::facts::{
    Address, Bench, DataDir, Distrust, Facts, Heard, Held, Link, Log, LogLine, Machine, Member,
    Port, Process, Readable, Served, Silence, Space, Stores, Stray, Told, Wearing,
};
pub use crate::file::{ConfigFile, client_ports};
pub use crate::finding::{Evidence, Finding, Level, Subject};
pub use crate::java::{FAULTS, Fault, Version, faults_of};
pub use crate::meaning::Meaning;
pub use crate::page::{Paint, text};
pub use crate::report::{Looked, Looks, NotLooked, Report, Summary};
pub use crate::rule::Rule;
pub use crate::rules::{RULES, is_public, rule, rules};
pub use crate::vulnerability::{VULNERABILITIES, Vulnerability, first_without, vulnerabilities_of};
pub use crate::words::Words;
