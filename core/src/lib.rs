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
//! The whole rule for a driver: **carry out outputs at once and in order, do writes in order, report the last durable
//! ticket.** Nothing has to be drained, and no order of calls remembered. What happened at one moment may be stepped
//! together, and the outputs carried out behind that. This is a server that is an ensemble of its own; a driver with
//! sockets has the same loop and fills in the other arms.
//!
//! ```
//! use std::collections::VecDeque;
//!
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
//! let mut happened = VecDeque::new();
//! while !peer.status().serving {
//!     // 1. Wait for something to happen, or for the deadline.
//!     let (at, event) = match happened.pop_front() {
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
//!                 happened.push_back(Event::Persisted(ticket));
//!             }
//!             Output::Report(report) => println!("{report}"),
//!             Output::Halt(fault) => return Err(fault.into()),
//!             _ => {} // no peer to dial, and no application
//!         }
//!     }
//! }
//! assert_eq!(disk.current_epoch.0, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The boundary at a glance
//!
//! | [`Event`](input::Event) | what happened |
//! |---|---|
//! | [`Tick`](input::Event::Tick) | the time of [`Peer::deadline`](peer::Peer::deadline) has come |
//! | [`LinkUp`](input::Event::LinkUp) | a connection is open, dialled or accepted |
//! | [`LinkDown`](input::Event::LinkDown) | a connection has ended, by the peer or the network; it stays open until the `Hangup` |
//! | [`DialFailed`](input::Event::DialFailed) | a `Dial` came to nothing |
//! | [`Resolved`](input::Event::Resolved) | the addresses that `Resolve` asked for |
//! | [`ListenFailed`](input::Event::ListenFailed) | a port of ours accepts no connections any more |
//! | [`Listening`](input::Event::Listening) | it accepts them again |
//! | [`DiskLow`](input::Event::DiskLow) | there is little room left on the disk, or enough again |
//! | [`Received`](input::Event::Received) | a message has arrived on a link |
//! | [`Persisted`](input::Event::Persisted) | a write and all before it are durable |
//! | [`Drained`](input::Event::Drained) | what was sent before a `NotifyDrained` is written |
//! | [`Progress`](input::Event::Progress) | a snapshot is moving on a link |
//! | [`Located`](input::Event::Located) | where a learner's last zxid stands in the log on disk |
//! | [`Streamed`](input::Event::Streamed) | a `StreamLog` or `SendSnapshot` is written to its link |
//! | [`Restored`](input::Event::Restored) | a received snapshot is whole, on disk and in the application |
//! | [`SnapshotTaken`](input::Event::SnapshotTaken) | a `TakeSnapshot` is done, or failed |
//! | [`TakeSnapshot`](input::Event::TakeSnapshot) | the operator asks for a snapshot now |
//! | [`Propose`](input::Event::Propose) | a caller asks for a transaction |
//! | [`Submit`](input::Event::Submit) | a client of the service does |
//! | [`Prepared`](input::Event::Prepared) | the application has made transactions of requests |
//! | [`Applied`](input::Event::Applied) | the application has applied what was delivered |
//! | [`Replayed`](input::Event::Replayed) | a `Replay` is done, as far as the log could be read |
//! | [`Read`](input::Event::Read) | a caller wants to read what is at least as new as everything acknowledged |
//! | [`Touch`](input::Event::Touch) | the sessions that were heard from, in answer to `Pinged` |
//! | [`Revalidate`](input::Event::Revalidate) | a client has come with a session that this learner does not know |
//! | [`Revalidated`](input::Event::Revalidated) | whether a session lives, in answer to `Revalidate` |
//! | [`Oracle`](input::Event::Oracle) | what the arbiter of a two-server ensemble says |
//! | [`StepDown`](input::Event::StepDown) | the operator asks the leader to give up its leadership |
//! | [`TransferLeadership`](input::Event::TransferLeadership) | the operator asks for a leadership transfer |
//! | [`Released`](input::Event::Released) | all leadership guards on this server have been released |
//! | [`Shutdown`](input::Event::Shutdown) | the server is to stop |
//!
//! | [`Output`](output::Output) | what to do |
//! |---|---|
//! | [`Leadership`](output::Output::Leadership) | admit leadership guards, or revoke them: first of its step |
//! | [`Serving`](output::Output::Serving) | begin to serve callers and clients |
//! | [`Retired`](output::Output::Retired) | serve them no longer |
//! | [`Dial`](output::Output::Dial) | connect; answer with `LinkUp` or `DialFailed` |
//! | [`CancelDial`](output::Output::CancelDial) | give up a dial |
//! | [`Resolve`](output::Output::Resolve) | look up names; answer with `Resolved` |
//! | [`Hangup`](output::Output::Hangup) | close a link behind what was sent on it; the answer to each `LinkDown`, too |
//! | [`Send`](output::Output::Send) | write a message to a link |
//! | [`Persist`](output::Output::Persist) | make a write durable, in order; answer with `Persisted` |
//! | [`NotifyDrained`](output::Output::NotifyDrained) | answer with `Drained` when what was sent on a link is written |
//! | [`Locate`](output::Output::Locate) | find a zxid in the log on disk; answer with `Located` |
//! | [`StreamLog`](output::Output::StreamLog) | copy a stretch of the log to a learner; answer with `Streamed` |
//! | [`Prepare`](output::Output::Prepare) | to the application: make a transaction of a request; answer with `Prepared` |
//! | [`Adopt`](output::Output::Adopt) | to the application: the staged state is its state; answer with `Applied` |
//! | [`Deliver`](output::Output::Deliver) | to the application: apply a transaction; answer with `Applied` |
//! | [`Replay`](output::Output::Replay) | to the application: apply a stretch of the log; answer with `Replayed` |
//! | [`TakeSnapshot`](output::Output::TakeSnapshot) | to the application: take a snapshot; answer with `SnapshotTaken` |
//! | [`SendSnapshot`](output::Output::SendSnapshot) | to the application: send its state to a learner; answer with `Streamed` |
//! | [`ReceiveSnapshot`](output::Output::ReceiveSnapshot) | stage a snapshot from a link; answer with `Restored` |
//! | [`Abandon`](output::Output::Abandon) | to the application: forget what was prepared and not delivered |
//! | [`Discard`](output::Output::Discard) | forget a snapshot that was received and not installed |
//! | [`Answer`](output::Output::Answer) | to a reader: what is delivered now is new enough |
//! | [`Accepted`](output::Output::Accepted) | to a caller: its request is proposed or forwarded, its outcome open |
//! | [`Lost`](output::Output::Lost) | to a caller: the accepted request surely never happens |
//! | [`Unknown`](output::Output::Unknown) | to a caller: the accepted request may or may not have happened |
//! | [`Refused`](output::Output::Refused) | to a caller: the request will not happen |
//! | [`ReadRefused`](output::Output::ReadRefused) | to a reader: the read cannot be answered |
//! | [`Pinged`](output::Output::Pinged) | to the service: the leader wants to know of sessions; answer with `Touch` |
//! | [`Touched`](output::Output::Touched) | to the leader's service: sessions that a learner has heard from |
//! | [`Revalidate`](output::Output::Revalidate) | to the leader's service: does this session live; answer with `Revalidated` |
//! | [`Revalidated`](output::Output::Revalidated) | to the service: what the leader says of a session |
//! | [`Release`](output::Output::Release) | have the leadership guards released; answer with `Released` |
//! | [`Keep`](output::Output::Keep) | after `Release`: the leadership stays here |
//! | [`Transferred`](output::Output::Transferred) | to the operator: what became of the transfer |
//! | [`Report`](output::Output::Report) | something has changed, and why: for people, nothing to do |
//! | [`Halt`](output::Output::Halt) | stop, and keep the data |
//!
//! A snapshot is *staged* from when it is received until the application adopts it: first beside the history, then, once
//! it is installed, on disk in its place.
//!
//! | [`Write`](output::Write) | what becomes durable |
//! |---|---|
//! | [`AcceptedEpoch`](output::Write::AcceptedEpoch) | the promise to establish no leader of an earlier epoch |
//! | [`CurrentEpoch`](output::Write::CurrentEpoch) | the epoch whose history this server has taken over |
//! | [`Append`](output::Write::Append) | transactions, behind the log |
//! | [`Truncate`](output::Write::Truncate) | the log, cut behind this |
//! | [`AppendStaged`](output::Write::AppendStaged) | a transaction behind a snapshot that is not installed |
//! | [`Install`](output::Write::Install) | that snapshot and what followed it, in the place of the history |
//! | [`GrantedVote`](output::Write::GrantedVote) | the vote of a generation |
//! | [`Lease`](output::Write::Lease) | for how long this server may promise a lease |
//! | [`Membership`](output::Write::Membership) | the membership in force |
//! | [`NextMembership`](output::Write::NextMembership) | the membership that was seen, or that none is |
//!
//! A [`Peer`](peer::Peer) is made with [`new`](peer::Peer::new), stepped with [`step`](peer::Peer::step) or
//! [`step_into`](peer::Peer::step_into), and says when it is due with [`deadline`](peer::Peer::deadline). It shows its
//! [`status`](peer::Peer::status), [`leadership`](peer::Peer::leadership), [`committed`](peer::Peer::committed),
//! [`standing`](peer::Peer::standing) and [`config`](peer::Peer::config), and whether one of its invariants is
//! [`broken`](peer::Peer::broken). A model checker, which chooses when time passes, has
//! [`due`](peer::Peer::due), [`fire`](peer::Peer::fire) and [`rewind`](peer::Peer::rewind).
//!
//! # The house
//!
//! Modules stand on floors, several to each row of this table, and use only what is below them. The plan of
//! `quorate-floors` has each module's place, and a test that holds it.
//!
//! | modules | |
//! |---|---|
//! | [`peer`] | one server: holds the role, routes events |
//! | [`election`] or [`generation`], [`leader`], [`learner`] | who leads; the three phases of Zab from both sides |
//! | [`context`] | what a machine may touch during one step |
//! | [`links`] | who is connected, which of two connections stays |
//! | [`delivery`], [`requests`] | what the application gets next; what became of a request |
//! | [`history`], [`outbox`], [`timers`] | what is logged, and how a learner is brought up to it; outputs, and what waits for the disk; deadlines |
//! | [`input`], [`output`], [`recorder`], [`wire`] | the boundary, what records it, and the bytes |
//! | [`vote`], [`generation_message`], [`quorum`], [`lease`], [`txn`], [`message`], [`membership`], [`config`], [`reconfiguration`], [`reasons`], [`report`], [`status`], [`durable`], [`prepared`] | what servers say, are told, and keep |
//! | [`id`], [`zxid`], [`time`], [`rng`], [`address`], [`properties`] | the smallest words |
//!
//! Elections through a store that is there already are a wing of their own: [`recipe`] knows the last row only.
//!
//! A program that wants the election alone, with a recovery of its own, drives an
//! [`Elector`](election::Elector) or a [`GenerationClock`](generation::GenerationClock).
//!
//! # What it promises
//!
//! - At most one leader is established in an epoch, because an epoch is one more than every epoch that
//!   a quorum has promised, and promises are on disk before they leave the server.
//! - A server never votes, promises or acknowledges what a crash could take back.
//! - Bytes and messages from peers never make it panic, allocate by an unchecked length, or loop. After
//!   every step it checks the invariants of its state
//!   ([`Peer::broken`](peer::Peer::broken)). If one is broken, the server halts, and the outputs of that step are dropped.
//! - A transaction that was acknowledged is on the disks of a quorum, and every later leader
//!   has it. Nothing reaches the application before that is known, so nothing is ever taken back.
#![no_std]
// What is dropped unused here would be an output or an error that never comes about.
#![forbid(unsafe_code, unused_must_use)]
// What core has is taken from there, so that what needs an allocator shows.
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_core)]

extern crate alloc;

/// The example of the package's page for the registry compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;

pub mod address;
pub mod config;
pub mod context;
pub mod delivery;
pub mod durable;
pub mod election;
pub mod generation;
pub mod generation_message;
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
pub mod reasons;
pub mod recipe;
pub mod reconfiguration;
pub mod recorder;
pub mod report;
pub mod requests;
pub mod rng;
pub mod status;
pub mod time;
pub mod timers;
pub mod txn;
pub mod vote;
pub mod wire;
pub mod zxid;
