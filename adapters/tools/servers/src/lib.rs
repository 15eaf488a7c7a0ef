//! The servers that the command `quorate` runs.
//!
//! The driver is generic over the runtime and the application, so its code is made in the crate that names both. Here it
//! is, compiled for speed, as the protocol is; the command around it, most of which waits for a person, is compiled for
//! size: what it maps of the program counts as its memory.
#![forbid(unsafe_code, unused_must_use)]

pub mod bench;
pub mod cpu;
pub mod runtime;
pub mod zookeeper;
