//! Servers of quorate in a simulated world: network, disks, clocks, crashes and clients from one seed, and every rule
//! checked after each step.
//!
//! A test of your own starts servers in a [`World`], breaks something, and says what must come of it:
//!
//! ```
//! use std::time::Duration;
//!
//! use quorate_sim::{CrashKind, Ensemble, Violation, World, WorldConfig};
//!
//! # fn main() -> Result<(), Violation> {
//! let mut world = World::new(17, WorldConfig::new(Ensemble::majority(3)));
//! world.start_all([1, 2, 3]);
//! world.run_until(World::is_settled, Duration::from_secs(5))?;
//! let first = world.leader().expect("three servers elect a leader").0;
//! world.crash(first, CrashKind::Power)?;
//! let another = |world: &World| world.leader().is_some_and(|leader| leader.0 != first);
//! let took = world.run_until(another, Duration::from_secs(30))?;
//! assert!(took.is_some(), "two of three are a quorum");
//! # Ok(())
//! # }
//! ```
//!
//! - **Repeat**: the seed is the run, event by event, on every machine. `World::new(17, …)` is that run again, and so is
//!   `quorate sim --seed 17` for a [`campaign`].
//! - **Shrink**: [`shrink::shrink`] leaves out faults and servers as long as the case still fails; `quorate sim` does so
//!   with each seed that fails, and prints the command that repeats what is left.
//!
//! ```text
//!              Input                         Output
//!   World ───────────────► Peer (the shipped core) ───────────────► World
//!     │                                                               │
//!     ├─ Agenda    virtual time; nothing ever waits for a real clock  │
//!     ├─ Network   latency, stalls, resets, dials that hang ◄─────────┤ Dial, Send, Hangup
//!     ├─ Disk      what is durable, what a crash takes away ◄─────────┤ Persist, Locate, StreamLog
//!     ├─ Application   cells that are written ◄───────────────────────┤ Prepare, Deliver, Adopt, …
//!     ├─ Front         or ZooKeeper's tree and service, and clients ◄─┤ Serving, Retired, Pinged, …
//!     └─ Checker   what must hold, tested after every single step ◄───┘
//! ```
//!
//! The servers are real [`Peer`](quorate_core::peer::Peer)s and every message passes through the real
//! codec, introductions included; only sockets, files and clocks are replaced. A rule that breaks in here is therefore
//! broken in the product.
//!
//! - [`campaign`] draws ensembles, their past, clients and faults from seeds; [`runner`] runs many on all processors.
//! - [`scenario`] plays stories as text: commands, and below each of them what came of it.
//! - [`Stage`] has one real server among scripted ones: its peers say what the test wants said.
//! - [`store`] models a store and elects through it; [`mixed`] starts ZooKeeper's kind of servers beside ours;
//!   [`compare`] measures both ways to elect.
//! - [`audit`] judges recordings of servers that really ran by the same rules.
//! - [`record`] is what happened; a [`Chart`] shows it in a terminal, a [`Diagram`] as a picture.
//!
//! What long runs have found and cost is in `RESULTS.md` beside this crate.
//!
//! # What is checked
//!
//! After every step of every server, all of it, whatever went wrong before. Each line names its [`Rule`]
//! and the test (of this crate's `checker::tests`, if nothing else is said) in which a server that breaks
//! it is found out. Which of them are the properties of the Zab paper (Junqueira, Reed, Serafini: *Zab:
//! high-performance broadcast for primary-backup systems*, 2011) and of ZooKeeper's TLA+ specification of it, each
//! [`Rule`] says.
//!
//! | what holds | rule | broken in |
//! |---|---|---|
//! | an epoch has one leader, ever: elected, promised by a quorum, or established | [`Leadership`](Rule::Leadership) | `two_leaders_of_one_epoch` |
//! | a promise that leaves a server is on its disk at that moment | [`Promise`](Rule::Promise) | `a_promise_that_is_not_on_disk` |
//! | a voter promises an epoch to one leader, whatever it lives through | [`Promise`](Rule::Promise) | `one_epoch_promised_to_two_leaders` |
//! | epochs on disk never go back; no epoch is current, nor is any logged, that was not accepted | [`Durability`](Rule::Durability) | `a_disk_that_went_back` |
//! | after a crash a disk holds what was durable on it: epochs, and every transaction | [`Durability`](Rule::Durability) | the same; `shrink::tests::a_disk_that_lies_is_found_and_shown_small` |
//! | every decision that takes a quorum has one, counted here a second time, with weights, groups, and both memberships while one changes; and those counted have on disk what they are counted for | [`Quorum`](Rule::Quorum), [`Promise`](Rule::Promise) | `elected_or_established_without_a_quorum`, `a_quorum_of_the_old_membership_alone`, `a_leader_counts_a_promise_that_nobody_has_on_disk` |
//! | the arithmetic of quorums | | `ensemble::tests::the_core_counts_quorums_as_the_rule_says` |
//! | a leader's history is at least as new as those of the quorum behind it | [`Newest`](Rule::Newest) | `a_leader_with_an_older_history_than_those_who_elected_it` |
//! | a leader has everything committed in epochs before its own | [`Committed`](Rule::Committed) | `what_is_committed_is_not_on_a_quorum_of_disks_or_is_cut` |
//! | what is committed is on a quorum of disks, and stays on one; no server that has promised the epoch in which it was gives it up | [`Committed`](Rule::Committed) | the same; `who_was_not_counted_gives_up_what_is_committed_while_a_quorum_has_it_and_no_longer` |
//! | a number names one transaction; the established leader of its epoch has proposed it (*Integrity*) | [`Integrity`](Rule::Integrity) | `two_transactions_of_one_number_or_one_that_nobody_proposed` |
//! | all servers apply one sequence, each a prefix, nothing twice, nothing before it is committed (*PrefixConsistency*, *TotalOrder*, *Agreement*) | [`PrefixConsistency`](Rule::PrefixConsistency) | `applied_before_it_is_committed_or_out_of_turn` |
//! | a leader's transactions are committed in the order in which it proposed them (*LocalPrimaryOrder*), later leaders' behind earlier ones' (*GlobalPrimaryOrder*) | [`PrimaryIntegrity`](Rule::PrimaryIntegrity), [`Contiguous`](Rule::Contiguous) | `a_leader_proposes_out_of_order_or_before_it_has_what_was_committed` |
//! | a leader proposes only when it has delivered everything that is ever committed of earlier leaders (*PrimaryIntegrity*) | [`PrimaryIntegrity`](Rule::PrimaryIntegrity) | the same |
//! | a learner that acknowledges NEWLEADER has the leader's whole history on disk, and nothing else | [`Synchronised`](Rule::Synchronised) | `newleader_acknowledged_without_the_history` |
//! | a log has no hole | [`Contiguous`](Rule::Contiguous) | `a_log_with_a_hole` |
//! | a snapshot holds what its label says | [`Snapshot`](Rule::Snapshot) | `a_snapshot_that_holds_something_else` |
//! | an established leader's snapshot is not older than its epoch; no snapshot is older than a learner that its log could bring up | [`Snapshot`](Rule::Snapshot) | `seeded`: `LabelBelowEpochStart`, `SnapshotBelowLearner` |
//! | no server is sent what it has to refuse: a hole, another transaction of the same number, a packet out of turn | [`Conduct`](Rule::Conduct) | `seeded`: `PendingForgotten` |
//! | a server's round never goes back, but to join a leader that others follow | [`Rounds`](Rule::Rounds) | `a_round_that_went_back` |
//! | a round ends at once only where all vote alike, or a quorum with its leader in it is known to end it at once, too | [`Haste`](Rule::Haste) | `a_round_that_ends_at_once_with_those_who_go_on` |
//! | a server that joins a leader without an election has heard from that leader that it leads | [`Leadership`](Rule::Leadership) | `seeded`: `JoinsOnFollowersWord` |
//! | votes are totally ordered | | the core's `the_order_is_strict_and_total_over_corner_values` |
//! | a learner serves under the established leader of its epoch only | [`Service`](Rule::Service) | `service_under_nobody` |
//! | while one server lets work begin that only one may do, no other counts on its lease | [`Lease`](Rule::Lease) | `seeded`: `LeaseFromAnswer` |
//! | a voter that has promised a lease takes no part in establishing another leader until that is over, also over a restart, or until its leader does without | [`Lease`](Rule::Lease) | `a_voter_helps_to_establish_another_than_it_has_promised`; `seeded`: `LeaseForgotten`, `LeaseForgottenAtStart` |
//! | fencing tokens come in the order of the leaderships: of each server always, of all where leases hold | [`Token`](Rule::Token) | `a_token_that_is_not_higher_than_those_before` |
//! | a request comes to pass once | [`Once`](Rule::Once) | `one_request_becomes_two_transactions` |
//! | what a client is told of its request is true | [`Outcome`](Rule::Outcome) | `a_client_is_told_what_is_not_so` |
//! | a read sees everything that any client was told before it was asked | [`Read`](Rule::Read) | `a_read_that_misses_what_was_acknowledged` |
//! | one order explains all writes and reads of a cell (linearizability), those of unknown outcome included | [`Linear`](Rule::Linear) | `a_read_of_what_was_overwritten_before_it_began`; `linear::tests` |
//! | outputs make sense: links that are up, one dial at a time, new tickets; no server stops | [`Boundary`](Rule::Boundary), [`Progress`](Rule::Progress) | `outputs_that_make_no_sense` |
//! | a link between two servers that live and can reach each other never ends because a non-member claims to be one of them | [`Claims`](Rule::Claims) | `seeded`: `ClaimBelieved` |
//! | no step heaps up outputs, no server links; time does not stand still | [`Bounds`](Rule::Bounds), [`Progress`](Rule::Progress) | the same |
//! | every message survives its bytes | [`Codec`](Rule::Codec) | `seeded`: `PeerEpochLeftOut` |
//! | what a story expects is so whatever ways and writes take | all | `cargo test -p quorate-sim --test scenarios`: each in 100 worlds |
//! | replies of a session come in the order of its requests | [`ReplyOrder`](Rule::ReplyOrder) | |
//! | the zxids of a session's replies never go back, over reconnects and moves, and none is ahead of what its server has applied | [`View`](Rule::View) | `seeded`: `SeenIgnored` |
//! | a session sees what it has written | [`OwnWrite`](Rule::OwnWrite) | `seeded`: `SeenIgnored` |
//! | a sync shows what any client was shown before it was asked for | [`SyncPoint`](Rule::SyncPoint) | `seeded`: `SyncAtOnce` |
//! | an event comes before each reply that shows its change; events come in the order of transactions, and none without a cause | [`EventOrder`](Rule::EventOrder) | `seeded`: `EventsBehindReply` |
//! | every change of what is watched is told, unless the connection is lost; over a reconnect each changed node is told or watched again | [`Watch`](Rule::Watch) | `seeded`: `ParentUntold`, `CatchUpByCreation` |
//! | an ephemeral node is there only while its session is | [`Ephemeral`](Rule::Ephemeral) | `seeded`: `ClosingSessionCreates` |
//! | a session that its server has heard, and told the leader of, lives for its time-out from then, and while a learner that follows has not told yet; no session that lives is said not to | [`Expiry`](Rule::Expiry) | `seeded`: `TouchesDropped`, `OneLearnerAsked` |
//! | a session that is not heard is gone in the end | [`Silence`](Rule::Silence) | `seeded`: `TableUntracked` |
//! | behind its end a session writes nothing and is not welcomed; no id comes twice | [`Closed`](Rule::Closed) | `seeded`: `ClosedRevalidated` |
//! | a multi is all or nothing; what is refused changes nothing | [`Multi`](Rule::Multi) | |
//! | what a reply says of a write is committed at that zxid with that outcome; what it says of a node was so at that zxid | [`Reply`](Rule::Reply) | `seeded`: `RefusedIsDone` |
//! | every server has the tree and the sessions of the committed history, at every transaction, whatever it went through, and the digest that its transaction says | [`SameTree`](Rule::SameTree) | `seeded`: `SnapshotPassedOver`, `DigestOfApplied`, `WholeAtOnce` |
//! | a connection that its session has left for another server writes nothing; where all servers are ours, what was sent by an older connection has no effect behind the welcome on a newer one | [`Owner`](Rule::Owner) | `seeded`: `MoveUnnoticed`, `MovesUnmarked` |
//! | one order explains all that sessions write and, behind a sync, read, with versions, numbers and multis, those of unknown outcome included | [`Linear`](Rule::Linear) | `linear::sessions::tests`; `seeded`: `VersionIgnored` |
//! | a session does what access lists permit it, and hears of nodes that it may read | [`Access`](Rule::Access), [`EventOrder`](Rule::EventOrder) | `seeded`: `RightsForgotten`, `EventToAll` |
//! | the statistics of a quota are what is there | [`Quota`](Rule::Quota) | `seeded`: `SizesUncounted` |
//! | the times of a leader's transactions never go back, whatever is done to its wall clock | [`Times`](Rule::Times) | `seeded`: `TimesGoBack` |
//! | a container or a TTL node is removed only when it is due, and not by a wall clock that was just set forward | [`Due`](Rule::Due) | `seeded`: `ClockBelieved` |
//! | a server of ZooKeeper, or of ours under one, is told what the head of its queue waits for, of its own, and of all that it has forwarded | [`Paired`](Rule::Paired) | `seeded`: `SyncNotQueued` |
//! | what ends servers of ZooKeeper is passed on to none by ours, is refused by a leader of ours, and has no effect where one of ZooKeeper's has committed it | [`Poison`](Rule::Poison) | `seeded`: `PoisonForwarded`, `PoisonTaken`, `NoTtlApplied` |
//! | a server that serves ends no connection in the middle of what its client asks; one that is about to stop, as long as it waits | [`Unanswered`](Rule::Unanswered) | `seeded`: `BusyClientClosed`, `KeptAtTheSame` |
//! | replies to a client that does not read are held back | [`HeldBack`](Rule::HeldBack) | `seeded`: `RepliesNotHeldBack` |
//! | a seed is one run | | `tests/campaign.rs`: `the_same_seed_is_the_same_run` |
//! | the same inputs give the same outputs, on every runtime; and there, too, all of the above but leases holds | [`audit`] | `tests/traces.rs`; `quorate`'s `tests/traces` |
//!
//! That there is a leader, and how soon, is not a rule for every step: `tests/liveness.rs` has the bounds.
//!
//! The rules from [`ReplyOrder`](Rule::ReplyOrder) on are what ZooKeeper promises its clients. They
//! are checked in the story `clients` of the [`campaign`], where servers run the shipped tree and service beside the core,
//! against one replay of the committed history (`cargo test -p quorate-sim --test all clients`). Bugs that are seeded in
//! the service or the tree are found within a few hundred seeds, some also where every way of two sessions is looked at
//! (`tests/model/sessions.rs`).
//!
//! In a third of those runs some servers are ZooKeeper's: they speak as those do, and one that leads does as a leader of 3.8.0
//! (`java_leader`, a model written from its source). What it does otherwise than ours is allowed to it alone: it expires sessions
//! that a learner was about to tell of, removes containers that are not due any more, judges by an access list that is on its
//! way out, and takes parents for not empty whose children go with a session. In half of those runs servers start again
//! as the other kind. To a learner that it brings up such a leader says COMMIT before UPTODATE, and the snapshot that it sends is
//! written while its tree goes on.
//!
//! What is not simulated: what ZooKeeper's own servers make of such a snapshot, and so what its leader cleans up behind one;
//! transactions too long for its learners; monotonic clocks that jump where there are sessions; non-members who speak for a voter
//! that is missing, since nothing but the network around an ensemble can tell those.

mod agenda;
mod application;
pub mod audit;
mod brief;
mod call;
pub mod campaign;
mod chart;
mod checker;
mod clients;
pub mod compare;
mod diagram;
mod disk;
mod ensemble;
mod faults;
mod hash;
mod java_leader;
mod ledger;
mod linear;
pub mod mixed;
mod network;
pub mod record;
mod rule;
pub mod runner;
pub mod scenario;
pub mod shrink;
pub mod stage;
pub mod store;
mod trace;
mod world;

pub use application::State;
pub use brief::Brief;
pub use chart::{Chart, Row};
pub use checker::Checker;
pub use diagram::Diagram;
pub use disk::{Contents, Disk, DiskConfig, Survival};
pub use ensemble::{Ensemble, SimMember};
pub use faults::{Coverage, CrashKind, FaultClass};
pub use ledger::{Answer, Outcome};
pub use linear::{History, Unexplained};
pub use network::{Dialect, NetworkConfig};
pub use stage::Stage;

pub use rule::{Rule, Violation};
pub use world::{World, WorldConfig};
