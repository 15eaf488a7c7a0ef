//! ZooKeeper's leader election and Zab, as state machines that do nothing by themselves.
//!
//! ```text
//!                  what happened ──►  ┌───────────────┐  ──► what to do
//!    sockets, disk, clock, operator   │  Peer::step() │      send, persist, dial, hang up
//!                                     └───────────────┘
//! ```
//!
//! No socket, file, clock, thread or randomness is in here, and no `std`. Each world (a runtime, a
//! simulator, a model checker) hands a [`Peer`](peer::Peer) what happened, as an
//! [`Input`](input::Input), and carries out what it says, as [`Output`](output::Output)s. The same
//! inputs always give the same outputs.
//!
//! # The run loop
//!
//! There is one rule: **carry out every output at once and in order, perform writes in order, and
//! report the last durable ticket.** Nothing has to be drained, and no order of calls remembered. What
//! happened at one moment may be stepped together, and the outputs carried out behind that.
//! This is a server that is an ensemble of its own; a driver with sockets has the same loop and fills
//! in the other arms.
//!
//! ```
//! use quorate_core::config::Config;
//! use quorate_core::durable::Durable;
//! use quorate_core::id::ServerId;
//! use quorate_core::input::{Event, Input};
//! use quorate_core::membership::Membership;
//! use quorate_core::output::{Output, Write};
//! use quorate_core::peer::Peer;
//! use quorate_core::time::Instant;
//!
//! let membership = Membership::parse("server.1=localhost:2888:3888:participant\nversion=0")?;
//! let mut disk = Durable::default();
//! let mut peer = Peer::new(Config::new(ServerId(1), membership), disk.clone())?;
//!
//! let mut happened = Vec::new();
//! while !peer.status().serving {
//!     // 1. Wait for something to happen, or for the deadline.
//!     let (at, event) = match happened.pop() {
//!         Some(event) => (Instant(0), event),
//!         None => (peer.deadline().expect("something is due").0, Event::Tick),
//!     };
//!     // 2. Step.
//!     for output in peer.step(Input { at, event }) {
//!         // 3. Carry out.
//!         match output {
//!             Output::Persist { ticket, write } => {
//!                 match write {
//!                     Write::AcceptedEpoch(epoch) => disk.accepted_epoch = epoch,
//!                     Write::CurrentEpoch(epoch) => disk.current_epoch = epoch,
//!                     Write::Append(txns) => disk.last_zxid = txns[txns.len() - 1].zxid,
//!                     _ => {} // no leader cuts or replaces the history of an ensemble of one
//!                 }
//!                 happened.push(Event::Persisted(ticket));
//!             }
//!             Output::Report(report) => println!("{report}"),
//!             Output::Halt(fault) => return Err(fault.into()),
//!             _ => {} // nobody to dial, and no application
//!         }
//!     }
//! }
//! assert_eq!(disk.current_epoch.0, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The house
//!
//! Modules stand on floors, several to each row of this table, and use only what is below them; a test,
//! `tests/floors.rs`, has the whole plan and holds it.
//!
//! | floor | modules | |
//! |---|---|---|
//! | roof | [`peer`] | one server: holds the role, routes events |
//! | machines | [`election`] or [`generation`], [`leader`], [`learner`] | who leads; the three phases of Zab from both sides |
//! | tray | [`context`] | what a machine may touch during one step |
//! | connections | [`links`] | who is connected, which of two connections stays |
//! | instruments | [`outbox`], [`timers`], [`history`], [`delivery`], [`requests`] | outputs and what waits for the disk; deadlines; what is logged and how a learner is brought up to it; what the application gets next; what became of a request |
//! | boundary | [`input`], [`output`], [`recorder`], [`wire`] | what happens, what to do, who listens, and the bytes |
//! | nouns | [`vote`], [`ballot`], [`quorum`], [`lease`], [`txn`], [`message`], [`membership`], [`config`], [`reconfiguration`], [`report`], [`durable`] | |
//! | words | [`id`], [`zxid`], [`time`], [`rng`], [`address`], [`properties`] | |
//!
//! Elections through a store that is there already are a wing of their own: [`recipe`] knows words only.
//!
//! Whoever wants the election alone, with a recovery of one's own, drives an
//! [`Elector`](election::Elector) or a [`GenerationClock`](generation::GenerationClock).
//!
//! # What it promises
//!
//! - At most one leader is established in an epoch, because an epoch is one more than every epoch that
//!   a quorum has promised, and promises are on disk before anybody hears of them.
//! - A server never votes, promises or acknowledges what a crash could take back.
//! - Bytes and messages from others never make it panic, allocate by an unchecked length, or loop. After
//!   every step it looks whether what always holds of it still does
//!   ([`Peer::broken`](peer::Peer::broken)); if not, it stops, and what that step wanted is left undone.
//! - A transaction that was acknowledged to anybody is on the disks of a quorum, and every later leader
//!   has it. Nothing reaches the application before that is known, so nothing is ever taken back.
#![no_std]
#![forbid(unsafe_code, unused_must_use)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_core)]

extern crate alloc;

pub mod address;
pub mod ballot;
pub mod config;
pub mod context;
pub mod delivery;
pub mod durable;
pub mod election;
pub mod generation;
pub mod history;
pub mod id;
pub mod input;
pub mod leader;
pub mod learner;
pub mod lease;
pub mod links;
pub mod membership;
pub mod message;
pub mod outbox;
pub mod output;
pub mod peer;
pub mod prepared;
pub mod properties;
pub mod quorum;
pub mod recipe;
pub mod reconfiguration;
pub mod recorder;
pub mod report;
pub mod requests;
pub mod rng;
pub mod time;
pub mod timers;
pub mod txn;
pub mod vote;
pub mod wire;
pub mod zxid;
