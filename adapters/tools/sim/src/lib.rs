//! A world for quorate's servers in which everything comes from one seed.
//!
//! ```text
//!              Input                         Output
//!   World ───────────────► Peer (the shipped core) ───────────────► World
//!     │                                                               │
//!     ├─ Agenda    virtual time; nothing ever waits for a real clock  │
//!     ├─ Network   latency, stalls, resets, dials that hang ◄─────────┤ Dial, Send, Hangup
//!     ├─ Disk      what is durable, what a crash takes away ◄─────────┤ Persist, Locate, StreamLog
//!     ├─ Application   cells that are written ◄───────────────────────┤ Prepare, DeliverThrough, …
//!     └─ Checker   what must hold, tested after every single step ◄───┘
//! ```
//!
//! The servers are real [`Peer`](quorate_core::peer::Peer)s and every message passes through the real
//! codec, introductions included; only sockets, files and clocks are replaced. Whatever goes wrong in
//! here is therefore wrong in the product. A failure is a seed: the same seed gives the same run, event
//! by event, on every machine.
//!
//! - [`World`] is for stories: start these servers, cut that link, see who leads.
//! - [`campaign`] is for numbers: a seed makes an ensemble, its past, its clients and its accidents.
//! - [`runner`] runs many seeds on all processors, and [`shrink`] makes a failure small.
//! - [`Stage`] is for one server among scripted ones: its peers say what the test wants said.
//! - [`scenario`] is for stories as text: commands, and below each of them what came of it.
//! - [`store`] is for elections through somebody else's ensemble: a modelled one, and candidates.
//! - [`audit`] is for servers that really ran: what they recorded has to be what the rules allow.
//! - [`record`] is what happened; a [`Chart`] shows it in a terminal, a [`Diagram`] as a picture.
//!
//! # An hour of it
//!
//! What is run before every change takes minutes. The same at length, on two processors:
//!
//! ```text
//! cargo run --release -p quorate -- sim --seeds 200000
//! cargo run --release -p quorate -- sim --story days --seeds 200
//! cargo run --release -p quorate -- sim --story links --seeds 2000
//! cargo run --release -p quorate-sim --example model -- recovery voters=3 rounds=2 crashes=1 transactions=2 taken=20000000
//! cargo run --release -p quorate-sim --example model -- election voters=5 depth=16 deep taken=6000000
//! cargo run --release -p quorate-sim --example model -- election crashes=1 live
//! cargo test -p quorate-sim --test all -- --ignored crash_points --nocapture
//! QUORATE_SEEDS=5000 cargo test --release -p quorate-sim --test all recipes
//! QUORATE_DIFFERENTIAL=1000000000 cargo test --release -p quorate-core --test all differential
//! cargo test --release -p quorate --features runtimes --test traces -- --ignored --nocapture
//! cargo mutants -p quorate-core -f 'core/src/{election,history,leader,learner}{.rs,/**}' --shard 0/20 --sharding round-robin
//! CARGO_PROFILE_RELEASE_LTO=off cargo fuzz run --features libfuzzer -s none NAME -- -max_total_time=300
//! ```
//!
//! What came of them in November 2026, on a machine that had other work to do:
//!
//! | | |
//! |---|---|
//! | `--seeds 200000` | 2,280,358,027 steps, all rules after each, 535,861 in a second of a processor; 1,122,555 elections, 128 million commits; one order explains 137 million writes and reads; of 91 kinds of events all but one (`StreamedCommits`) came to pass, each in 1,361 runs at least; each pair of faults in 163 at least, and of the pairs of faults and paths eight in fewer than 100: those with `SeatKept` and `OldVersion` (28), `Joined`, `VoterWiped`, `SyncInterrupted`, `Left`, `ChangeUnderway`, `TwoReigns`, `StreamCut`. One seed failed, 147763: a server that was given the seat by a leader that had come back from a crash took over its earlier round (mended). It holds, and so do 100,000 other seeds (`--first 200000`) after the mend: 1,136,548,122 steps, 508,771 in a second of a processor, each pair of faults in 104 at least |
//! | `--story days` | 420 days (`--first 1000`), 386,994,835 steps, none failed; 85,983 simulated seconds, and 917,918 steps, in a second of a processor |
//! | mixed starts | `QUORATE_STARTS=100000 cargo test --release -p quorate-sim --test all mixed`: servers of ZooKeeper's kind and ours in every mixture of three, one up to 250 ms late: all served within 2.3 s, none after an `initLimit`; 1,000 of them in every run of CI |
//! | models | see `tests/model/checking/mod.rs` |
//! | crash points | 109,093 pairs of cuts at outputs; the 3,659 at writes are in every `cargo test` |
//! | recipes | 5,000 elections of each kind (six ways to name offers, two leases, followers that are cut off), 12 minutes. One failed, with the names of etcd: a delete whose connection was lost came when the same lease had made its key anew, and took the seat of whoever led with that (mended: a delete says which creation it means). All hold since |
//! | differential | 1,000,000,000 messages of elections, and as many pairs of votes, decided twice, and 300,000,000 on the code as it is |
//! | Miri | `cargo +nightly miri test -p quorate-core --lib`: 72 unit tests, in every run of CI that has a nightly for it, two minutes. `--test all`: 535 others, in some three hours of a busy processor over several days, each with a few of its cases where it tries thousands; nothing found. Left out: what counts allocations, reads the sources, or needs millions of cases |
//! | traces, `--ignored` | 200 leaders cut off on each runtime, all replaced, and each gave up by itself: led again in 407 to 409 ms (median), 411 to 430 ms (99 %), 464 ms at worst, of which 200 ms are the followers' patience |
//! | mutants | shards 3, 11 and 17 of 20, 205 taken at random: 26 do not compile, 169 are caught, 5 never come to an end, 5 were missed: 97.2 % of 179. Of those five three have a test now, two change nothing and are left out by name |
//! | lines and branches of the core | 96.8 % and 91.2 %, of its own tests alone 94.7 and 89.4: `RUSTC_BOOTSTRAP=1 cargo llvm-cov --branch --no-report -p quorate-core`, the same with `-p quorate-sim --test scenarios --test all`, then `cargo llvm-cov report --branch --summary-only` |
//! | stopped leaders | `demo --servers 3 --kill-leader 110 --processes --load --clients 1 --silence --election generation --runtime R`: on each runtime all replaced, nothing lost; elections 23 to 28 ms (99 %), with failure detection 283 to 294 ms |
//! | fuzzing | 252,653,291 executions of 17 targets, each 90 seconds at least; 190 million of them are handshakes; none failed. An 18th, `play`, was written later: 1.4 million texts in 450 seconds, after the one that it found. In 12 seconds each with the seeds alone, `handshake`, `packet`, `record` and `synchronisation` find their last new edge in the first hundredth; the others find some until the end |
//!
//! # What is checked
//!
//! After every step of every server, all of it, whatever went wrong before. Each line names its [`Rule`]
//! and the test (of this crate's `checker::tests`, if nothing else is said) in which a server that breaks
//! it is found out. The properties of the Zab paper (Junqueira, Reed, Serafini: *Zab: high-performance
//! broadcast for primary-backup systems*, 2011) have the names they have there.
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
//! | what is committed is on a quorum of disks, and stays on one; nobody gives it up who has promised the epoch in which it was | [`Committed`](Rule::Committed) | the same; `who_was_not_counted_gives_up_what_is_committed_while_a_quorum_has_it_and_no_longer` |
//! | a number names one transaction; the established leader of its epoch has proposed it (*integrity*) | [`Payload`](Rule::Payload) | `two_transactions_of_one_number_or_one_that_nobody_proposed` |
//! | all servers apply one sequence, each a prefix, nothing twice, nothing before it is committed (*total order*, *agreement*) | [`Applied`](Rule::Applied) | `applied_before_it_is_committed_or_out_of_turn` |
//! | a leader's transactions are committed in the order in which it proposed them (*local primary order*), later leaders' behind earlier ones' (*global primary order*) | [`Order`](Rule::Order), [`Contiguous`](Rule::Contiguous) | `a_leader_proposes_out_of_order_or_before_it_has_what_was_committed` |
//! | a leader proposes only when it has delivered everything that is ever committed of earlier leaders (*primary integrity*) | [`Order`](Rule::Order) | the same |
//! | whoever acknowledges NEWLEADER has the leader's whole history on disk, and nothing else | [`Synchronised`](Rule::Synchronised) | `newleader_acknowledged_without_the_history` |
//! | a log has no hole | [`Contiguous`](Rule::Contiguous) | `a_log_with_a_hole` |
//! | a snapshot holds what its label says | [`Snapshot`](Rule::Snapshot) | `a_snapshot_that_holds_something_else` |
//! | an established leader's snapshot is not older than its epoch; nobody's is older than a learner that its log could bring up | [`Snapshot`](Rule::Snapshot) | `seeded`: `LabelBelowEpochStart`, `SnapshotBelowLearner` |
//! | nobody is sent what it has to refuse: a hole, another transaction of the same number, a packet out of turn | [`Conduct`](Rule::Conduct) | `seeded`: `PendingForgotten` |
//! | a server's round never goes back, but to join a leader that others follow | [`Rounds`](Rule::Rounds) | `a_round_that_went_back` |
//! | a round ends at once only where all vote alike, or a quorum with its leader in it is known to end it at once, too | [`Haste`](Rule::Haste) | `a_round_that_ends_at_once_with_those_who_go_on` |
//! | whoever joins a leader without an election has heard from that one that it leads | [`Leadership`](Rule::Leadership) | `seeded`: `JoinsOnFollowersWord` |
//! | votes are totally ordered | | the core's `the_order_is_strict_and_total_over_corner_values` |
//! | a learner serves under the established leader of its epoch only | [`Service`](Rule::Service) | `service_under_nobody` |
//! | while one server lets work begin that only one may do, no other counts on its lease | [`Lease`](Rule::Lease) | `seeded`: `LeaseFromAnswer` |
//! | a voter that has promised a lease takes no part in establishing another leader until that is over, also over a restart, or until its leader does without | [`Lease`](Rule::Lease) | `a_voter_helps_to_establish_another_than_it_has_promised`; `seeded`: `LeaseForgotten`, `LeaseForgottenAtStart` |
//! | fencing tokens come in the order of the reigns: of each server always, of all where leases hold | [`Token`](Rule::Token) | `a_token_that_is_not_higher_than_those_before` |
//! | a request comes to pass once | [`Once`](Rule::Once) | `one_request_becomes_two_transactions` |
//! | what a client is told of its request is true | [`Outcome`](Rule::Outcome) | `a_client_is_told_what_is_not_so` |
//! | a read sees everything that any client was told before it was asked | [`Read`](Rule::Read) | `a_read_that_misses_what_was_acknowledged` |
//! | one order explains all writes and reads of a cell (linearizability), those of unknown outcome included | [`Linear`](Rule::Linear) | `a_read_of_what_was_overwritten_before_it_began`; `linear::tests` |
//! | outputs make sense: links that are up, one dial at a time, new tickets; nobody stops | [`Boundary`](Rule::Boundary), [`Progress`](Rule::Progress) | `outputs_that_make_no_sense` |
//! | a link between two servers that live and can reach each other never ends because a stranger claims to be one of them | [`Claims`](Rule::Claims) | `seeded`: `ClaimBelieved` |
//! | no step heaps up outputs, no server links; time does not stand still | [`Bounds`](Rule::Bounds), [`Progress`](Rule::Progress) | the same |
//! | every message survives its bytes | [`Codec`](Rule::Codec) | `seeded`: `PeerEpochLeftOut` |
//! | what a story expects is so whatever ways and writes take | all | `cargo test -p quorate-sim --test scenarios`: each in 100 worlds |
//! | a seed is one run | | `tests/campaign.rs`: `the_same_seed_is_the_same_run` |
//! | who is told the same says the same, on every runtime; and there, too, all of the above but leases holds | [`audit`] | `tests/traces.rs`; `quorate`'s `tests/traces` |
//!
//! That there is a leader, and how soon, is not a rule for every step: `tests/liveness.rs` has the bounds.
//!
//! What is not simulated: clients' sessions; strangers who speak for a voter that is missing, since nothing but the
//! network around an ensemble can tell those.

mod agenda;
mod application;
pub mod audit;
mod brief;
mod call;
pub mod campaign;
mod chart;
mod checker;
pub mod compare;
mod diagram;
mod disk;
mod ensemble;
mod faults;
mod hash;
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
pub use ensemble::{Ensemble, Seat};
pub use faults::{Coverage, CrashKind, FaultClass};
pub use ledger::{Answer, Outcome};
pub use network::{Dialect, NetworkConfig};
pub use stage::Stage;

pub use rule::{Rule, Violation};
pub use world::{World, WorldConfig};
