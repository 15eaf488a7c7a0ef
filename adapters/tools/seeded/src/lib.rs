//! Makes a copy of the workspace with its seeded bugs: known mistakes, each behind a switch, that show whether the
//! tests find them.
//!
//! ```text
//!   core/seeded/broadcast/AckBeforeDisk.txt             target/seeded/core/src/learner/broadcast.rs
//!
//!   # A proposal is acknowledged before it is on disk.
//!   file core/src/learner/broadcast.rs
//!   --- old
//!   let durable = cx.history.durable();
//!   --- new                                        ──►  let durable =
//!   let durable =                                           if seeded!(AckBeforeDisk) {
//!       if seeded!(AckBeforeDisk) {                             cx.history.last()
//!           cx.history.last()                               ...
//!       ...
//! ```
//!
//! The sources themselves have neither switches nor bugs. In the copy
//!
//! - each file `<Name>.txt` below the folder `seeded` of a crate has taken effect at all of its places: there the
//!   lines `old` have given way to the lines `new`. Lines are compared without their indentation, and `old` has to
//!   occur exactly once. Otherwise, and where two bugs change the same line, there is an error that names bug and file;
//! - the crate has the module `seeded`: what its `seeded/module.rs` holds, or what `switches.rs` does here, and the enum
//!   `Bug`;
//! - the tests that manifests declare as `[[package.metadata.seeded]]` are tests: the hunts.
//!
//! All bugs are in one copy, which is built once; a hunt switches on one after the other. `cargo run -p quorate-seeded
//! -- test -p quorate-sim --test seeded` makes the copy and runs cargo with these arguments there.
#![forbid(unsafe_code)]

pub mod bug;
pub mod copy;
pub mod edit;
pub mod tree;
