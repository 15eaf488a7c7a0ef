//! Model checking of the shipped core: every order in which things can happen, within bounds.
//!
//! ```text
//!   Scope ──► Ensemble (a stateright::Model) ──► check ──► Outcome: states, depth, exhausted or not, violation
//!               │                           └──► liveness::search: fair cycles without a leader
//!               ├─ state      servers by number, links, what was used
//!               ├─ server     the shipped Peer and its disk, stepped once for each thing that can happen to it
//!               └─ rules      what must hold, over the disks of all
//! ```
//!
//! Nothing of the protocol is written a second time: the servers are [`Peer`](quorate_core::peer::Peer)s, and
//! what they do is done. What is a model is the world around them: the clock stands and deadlines pass in any
//! order, writes become durable one at a time and a crash keeps the first few of those under way, a connection
//! carries what is sent in order and ends in order or not, and votes may be lost, come twice, or overtake one
//! another.
//!
//! # What is left out, so that there is an end
//!
//! - *Election* models look at the election plane alone: nobody reaches a quorum port. *Recovery* models look
//!   at the other plane: what is sent on the election plane comes at once.
//! - A connection comes up at both ends at once. A request is prepared, a place in the log located, a stream
//!   written and a snapshot restored at once.
//! - Since the clock stands, nothing has ever lasted long: waits do not grow, a link is always young, a learner
//!   is dropped for its silence only when its own deadline passes. A leader looks for its quorum
//!   ([`Timer::Ping`](quorate_core::timers::Timer::Ping)) only when it has none.
//!   Nor does anybody find out that it hears few: the rule of servers at the edge (`election/edge.rs` of the core) is
//!   not in here. It is in `tests/liveness.rs`, where ways are broken at random.
//! - What comes in a round, or a generation, beyond the last is not looked at. Where servers may end, one that was
//!   elected with the votes of one that ended gives up when nobody has followed it for
//!   [`Timer::Init`](quorate_core::timers::Timer::Init), and so leaves the first round.
//! - In elections by generation a leader that was heard was heard just now until the listener's own time-out,
//!   and a leader's heartbeats have always just been answered. Only so many time-outs end in a candidacy: an attempt
//!   has a number, so that there is no way back to a state before it, and no search for cycles.
//! - Not here: weights, leases, transfer, reads; the log is never longer than memory. Observers are here where the
//!   membership changes; a change that the leader refuses is not looked at, being a transaction as any other.
//!
//! # What is looked for
//!
//! [`Rule`](rules::Rule)s, in every state; that what should happen does happen somewhere (`sometimes`, see
//! `properties`), so that no model is empty; and with [`liveness`], that three voters do not go on for ever
//! without a leader.
//!
//! # Figures
//!
//! Measured with `cargo run --release -p quorate-sim --example model -- …`, two threads of a machine with two
//! cores that had other work to do. The depth is a little different each time, since two threads look.
//!
//! | … | distinct states | depth | exhausted |
//! |---|---|---|---|
//! | `election` | 105,722 | 29 | yes |
//! | `election lossy repeating` | 608,305 | 19 | yes |
//! | `election lossy repeating reordering wire=2 mischief=1` | 3,067,540 | 34 | yes |
//! | `election crashes=1` | 2,870,746 | 35 | yes |
//! | `generation` | 2,803,821 | 45 | yes |
//! | `generation-without-pre-vote crashes=1` | 3,069,698 | 40 | yes |
//! | `generation candidacies=1 crashes=1` | 2,751,773 | 45 | yes |
//! | `generation candidacies=1 lossy repeating reordering wire=2 mischief=1` | 575,408 | 37 | yes |
//! | `generation-without-pre-vote rounds=2` | 956,819 | 41 | yes |
//! | `generation-without-pre-vote candidacies=1 crashes=1` | 585,345 | 32 | yes |
//! | `recovery generation rounds=2` | 916,559 | 73 | yes |
//! | `recovery generation rounds=2 crashes=1 candidacies=1` | 1,055,310 | 77 | yes |
//! | `recovery rounds=2 crashes=1` | 2,222,484 | 68 | yes |
//! | `recovery transactions=2` | 501,203 | 56 | yes |
//! | `recovery rounds=2 accidents transactions=1` | 862,387 | 68 | yes |
//! | `recovery demote` | 74,406 | 64 | yes |
//! | `recovery rounds=2 demote promote` | 463,930 | 87 | yes |
//! | `recovery rounds=2 leave` | 1,099,912 | 266 | yes |
//! | `recovery rounds=2 changes` | 909,351 | 156 | yes |
//! | `recovery rounds=2 changes crashes=1 taken=4800000` | 1,705,109 | 24 | no |
//! | `live election lossy repeating` | 608,305 | | yes, no fair cycle |
//! | `live recovery` | 3,909 | | yes, no fair cycle |
//! | `election crashes=1 live` | 2,870,746 | | yes, no fair cycle |
//! | `voters=5 depth=10 threads=1` | 900,302 | 10 | no |
//! | `voters=5 depth=16 deep taken=6000000` | 2,773,673 | 16 | no |
//! | `recovery rounds=2 crashes=1 transactions=2 taken=20000000` | 6,925,523 | 31 | no |
//!
//! The last was not run again since the election last changed.
//!
//! The last two end where they were told to: without a bound, states by breadth, they outgrew the machine's 24 GB before
//! they came to an end.
//!
//! Each of the seeded bugs in `seeded.rs` is found in at most 60,000 states and two seconds, with 5 to 40 steps that
//! lead to it; one of them elects nobody any more, and that is seen when all was looked at.
//!
//! # Changes of the membership
//!
//! An operator asks a leader for the next of a list of memberships, whenever none is under way: after each write, and
//! after each crash between two of them, every change in a server's history binds it, on its disk and by what it goes
//! itself, and none is in force that was never committed ([`Rule::Membership`](rules::Rule::Membership)). What leads
//! from nothing to a second change and to a snapshot across both takes more steps than fit, so that comes from disks
//! that have been there ([`Scope::after_changes`]).
#![allow(
    unreachable_pub,
    dead_code,
    reason = "the tests and the example share it, and each uses a part"
)]

pub mod ensemble;
pub mod liveness;
pub mod members;
pub mod rules;
pub mod server;
pub mod state;
pub mod store;
pub mod tables;

use std::fmt;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use quorate_core::message::{Message, Packet};
use quorate_core::vote::ServerState;
use stateright::{Checker, HasDiscoveries, Model, Property};

use self::ensemble::Ensemble;
use self::members::Members;
use self::server::GenerationMessage;
use self::state::State;
use self::store::Store;

/// The number of the last transaction that may be asked for; behind it come those of changes.
pub(crate) const NEXT: u8 = 100;

/// How it is found out who is to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Electing {
    /// By votes that all tell one another.
    Fast,
    /// By one vote for each server and generation.
    Generation {
        /// Whether a server asks first whether it would be elected.
        pre_vote: bool,
    },
}

/// What may happen in a model, and how often.
#[derive(Clone, Debug)]
pub struct Scope {
    /// How many voters there are.
    pub voters: usize,
    /// How many observers, with the numbers behind those of the voters.
    pub observers: usize,
    /// How it is found out who is to lead.
    pub electing: Electing,
    /// The last round of elections, or the last generation.
    pub rounds: i64,
    /// Whether servers reach each other's quorum ports; otherwise elections alone are looked at.
    pub recovery: bool,
    /// How often a server may end and start again.
    pub crashes: u8,
    /// How often a link may break, or a dial fail.
    pub breaks: u8,
    /// How often a server may give up waiting for another.
    pub timeouts: u8,
    /// How often a server may ask to lead because it hears no leader, in elections by generation.
    pub candidacies: u8,
    /// How many transactions may be asked for.
    pub transactions: u8,
    /// Which changes of the membership may be asked for, in this order.
    pub changes: Vec<Members>,
    /// Whether a snapshot takes its time; what happens meanwhile comes behind it.
    pub slow_streams: bool,
    /// How often a notification may be lost, repeated or overtaken; as often as you like, if none.
    pub mischief: Option<u8>,
    /// Whether notifications may be lost.
    pub lossy: bool,
    /// Whether they may come twice.
    pub repeating: bool,
    /// Whether the second may come before the first.
    pub reordering: bool,
    /// Whether everything on the election plane comes at once, so that only the other one is looked at.
    pub prompt: bool,
    /// Whether dials of election ports are answered at once.
    pub prompt_dials: bool,
    /// How many notifications a link holds, the last of them being the newest; of messages, the last is the
    /// newest of each kind.
    pub wire: usize,
    /// What may be on the disks at the beginning.
    pub beginnings: Vec<Vec<Store>>,
}

impl Scope {
    /// One round of elections among so many voters with nothing on their disks, on good links.
    pub fn election(voters: usize) -> Self {
        Self {
            voters,
            observers: 0,
            electing: Electing::Fast,
            rounds: 1,
            recovery: false,
            crashes: 0,
            breaks: 0,
            timeouts: 0,
            candidacies: 2,
            transactions: 0,
            changes: Vec::new(),
            slow_streams: false,
            mischief: None,
            lossy: false,
            repeating: false,
            reordering: false,
            prompt: false,
            prompt_dials: true,
            wire: 1,
            beginnings: Vec::new(),
        }
    }

    /// The same, and what comes after the election.
    pub fn recovery(voters: usize) -> Self {
        Self { recovery: true, prompt: true, ..Self::election(voters) }
    }

    /// The same, where servers elect by generation.
    #[must_use]
    pub fn by_generation(self, pre_vote: bool) -> Self {
        Self { electing: Electing::Generation { pre_vote }, ..self }
    }

    /// The same, where notifications are lost, repeated and overtake one another.
    #[must_use]
    pub fn on_bad_links(self) -> Self {
        Self { lossy: true, repeating: true, reordering: true, wire: 2, ..self }
    }

    /// The same, where the three voters have lived through accidents before: some hold what no quorum has,
    /// of one epoch or of two, some have nothing, some were interrupted.
    #[must_use]
    pub fn after_accidents(self) -> Self {
        let beginnings = vec![
            // The last transaction of a leadership is on one disk, on two, on all three.
            [
                Store::with(1, 1, &[(1, 1)]),
                Store::with(1, 1, &[(1, 1)]),
                Store::with(1, 1, &[(1, 1), (1, 2)]),
            ],
            [
                Store::with(1, 1, &[(1, 1), (1, 2)]),
                Store::with(1, 1, &[(1, 1)]),
                Store::with(1, 1, &[]),
            ],
            // One was away for a whole leadership, and has one that was never committed; or has nothing.
            [
                Store::with(2, 2, &[(1, 1), (2, 1)]),
                Store::with(2, 2, &[(1, 1), (2, 1)]),
                Store::with(1, 1, &[(1, 1), (1, 2)]),
            ],
            [Store::default(), Store::with(1, 1, &[(1, 1)]), Store::with(1, 1, &[(1, 1)])],
            // A leader has proposed in its leadership, and nobody else has it.
            [
                Store::with(2, 1, &[(1, 1)]),
                Store::with(2, 2, &[(1, 1), (2, 1)]),
                Store::with(2, 2, &[(1, 1)]),
            ],
            // One has never heard of the only leadership, in which nothing happened.
            [Store::with(1, 1, &[]), Store::with(1, 1, &[]), Store::default()],
            // It was interrupted between its history and its epoch.
            [
                Store::with(2, 1, &[(1, 1), (2, 1)]),
                Store::with(2, 2, &[(1, 1), (2, 1)]),
                Store::with(1, 1, &[(1, 1), (1, 2)]),
            ],
        ];
        Self { beginnings: beginnings.into_iter().map(Vec::from).collect(), ..self }
    }

    /// The same, where an operator asks for these members, one after the other.
    #[must_use]
    pub fn with_changes(self, changes: &[Members]) -> Self {
        Self { changes: changes.to_vec(), ..self }
    }

    /// The same, where three servers have lived through changes of the membership before: 1 became an observer, and
    /// then a voter again.
    #[must_use]
    pub fn after_changes(self) -> Self {
        let first = Members::of(&[2, 3], &[1]);
        let second = Members::of(&[1, 2, 3], &[]);
        let other = Members::of(&[1, 2], &[3]);
        let one = || Store::with(2, 2, &[(1, 1)]).and_change(2, 1, first);
        let both = || one().and_change(2, 2, second);
        let others = || Store::with(5, 5, &[(3, 1)]);
        let beginnings = vec![
            // One has an orphan and knows of nothing; one has logged the first change, one the second.
            [Store::with(1, 1, &[(1, 1), (1, 2)]), one(), both()],
            // The orphan is a change.
            [Store::with(1, 1, &[(1, 1)]).and_change(1, 2, other), one(), both()],
            // The log does not reach back to where one stands.
            [Store::with(1, 1, &[]), one().with_next_in_force(), both().with_snapshot(2, 1)],
            // A change that was cut elsewhere is on a disk that has seen a later epoch.
            [Store::with(4, 4, &[(3, 1)]).and_change(3, 2, other), others(), others()],
        ];
        Self { beginnings: beginnings.into_iter().map(Vec::from).collect(), ..self }
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.voters + self.observers
    }

    /// Who takes part at first.
    pub(crate) fn first(&self) -> Members {
        let count = |servers: usize| i64::try_from(servers).unwrap_or(0);
        let (voters, all) = (count(self.voters), count(self.servers()));
        let voters: Vec<i64> = (1..=voters).collect();
        let observers: Vec<i64> = (1 + count(self.voters)..=all).collect();
        Members::of(&voters, &observers)
    }

    /// Whether the membership changes, or has changed before.
    pub(crate) fn changes(&self) -> bool {
        let before = || self.beginnings.iter().flatten();
        !self.changes.is_empty() || before().any(|disk| disk.next.is_some() || disk.in_force() > 0)
    }

    /// What may be on the disks at the beginning.
    pub(crate) fn disks(&self) -> Vec<Vec<Store>> {
        if self.beginnings.is_empty() {
            return vec![vec![Store::default(); self.servers()]];
        }
        self.beginnings.clone()
    }
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    /// So many transitions, about.
    pub transitions: Option<usize>,
    /// States so many steps from the beginning.
    pub depth: Option<usize>,
    /// For so long.
    pub time: Option<Duration>,
    /// By so many threads.
    pub threads: usize,
    /// The last state that was found first. That keeps no state, only its fingerprint, and so goes on for longer; but
    /// of what is cut at a depth not everything is found that lies within it.
    pub deep: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many states are different.
    pub states: usize,
    /// How many transitions were taken.
    pub transitions: usize,
    /// How many states single servers were found in.
    pub servers: usize,
    /// How many steps from the beginning the farthest is.
    pub depth: usize,
    /// Whether every state within the bounds was looked at.
    pub exhausted: bool,
    /// How long it took.
    pub took: Duration,
    /// What should have been seen and was not.
    pub unseen: Vec<&'static str>,
    /// What must not be, and how it comes about.
    pub violation: Option<(String, Vec<String>)>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        let rate = self.transitions as f64 / seconds.max(0.001);
        let exhausted = if self.exhausted { "yes" } else { "no" };
        write!(
            f,
            "{} distinct states, depth {}, exhausted: {exhausted}; {} transitions in {seconds:.1} s, \
             {rate:.0}/s; {} states of servers",
            self.states, self.depth, self.transitions, self.servers
        )?;
        for unseen in &self.unseen {
            write!(f, "\nnever seen: {unseen}")?;
        }
        if let Some((what, how)) = &self.violation {
            write!(f, "\nVIOLATION: {what}")?;
            for (number, step) in (1..).zip(how) {
                write!(f, "\n{number:4}  {step}")?;
            }
        }
        Ok(())
    }
}

/// What is looked at in every state.
pub(crate) fn properties(scope: &Scope) -> Vec<Property<Ensemble>> {
    let mut properties = vec![
        Property::<Ensemble>::always("nothing is broken", |_, state: &State| {
            state.broken.is_none()
        }),
        Property::<Ensemble>::sometimes("a quorum agrees who leads", Ensemble::is_led),
    ];
    let by_generation = matches!(scope.electing, Electing::Generation { .. });
    if by_generation && scope.rounds > 1 && scope.candidacies > 1 {
        properties.push(Property::<Ensemble>::sometimes("two generations", |_, state| {
            state.led.iter().filter(|leader| **leader != 0).count() > 1
        }));
    }
    if scope.crashes > 0 {
        properties.push(Property::<Ensemble>::sometimes(
            "a server has restarted and settled",
            |m, s| {
                s.spent.crashes > 0
                    && s.dials == 0
                    && (0..m.scope.servers()).all(|id| {
                        m.server(s, id, |server| server.brief.state != ServerState::Looking)
                    })
            },
        ));
    }
    if scope.recovery {
        properties.push(Property::<Ensemble>::sometimes("a quorum serves", Ensemble::is_served));
        properties.push(Property::<Ensemble>::sometimes("DIFF", |model, state| {
            model.is_under_way(state, |message| matches!(packet(message), Some(Packet::Diff(_))))
        }));
    }
    let disturbed = scope.crashes + scope.breaks + scope.timeouts > 0;
    if scope.recovery && scope.rounds > 1 && disturbed {
        properties.push(Property::<Ensemble>::sometimes("two leaderships", |_, state| {
            state.leaderships.iter().filter(|leader| ![0, u8::MAX].contains(*leader)).count() > 1
        }));
    }
    if scope.recovery && scope.beginnings.len() > 1 {
        properties.push(Property::<Ensemble>::sometimes("SNAP", |model, state| {
            model
                .is_under_way(state, |message| matches!(packet(message), Some(Packet::Snap { .. })))
        }));
        properties.push(Property::<Ensemble>::sometimes("TRUNC", |model, state| {
            model.is_under_way(state, |message| matches!(packet(message), Some(Packet::Trunc(_))))
        }));
    }
    if !scope.changes.is_empty() {
        properties.push(Property::<Ensemble>::sometimes("a change is committed", |m, s| {
            m.histories.get(s.committed).iter().any(|txn| store::change(txn).is_some())
        }));
    }
    if scope.changes.len() > 1 {
        properties.push(Property::<Ensemble>::sometimes("two changes are committed", |m, s| {
            m.histories.get(s.committed).iter().filter_map(store::change).count() > 1
        }));
    }
    if scope.transactions > 0 {
        properties
            .push(Property::<Ensemble>::sometimes("a new transaction is committed", |m, s| {
                m.histories.get(s.committed).last().is_some_and(|txn| txn.header.cxid > 0)
            }));
    }
    properties
}

fn packet(message: &GenerationMessage) -> Option<&Packet> {
    match message {
        GenerationMessage::Message(Message::Packet(packet)) => Some(packet),
        GenerationMessage::Message(
            Message::Notification(_) | Message::Generation(_) | Message::Probe(_),
        )
        | GenerationMessage::Snapshot(..)
        | GenerationMessage::End => None,
    }
}

/// Looks at every state within `scope`, as far as `budget` goes; ends with the first violation.
pub fn check(scope: Scope, budget: Budget) -> Outcome {
    let start = now();
    let mut checker = Ensemble::new(scope)
        .checker()
        .threads(budget.threads.max(1))
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(transitions) = budget.transitions.and_then(NonZeroUsize::new) {
        checker = checker.target_state_count(transitions.get());
    }
    if let Some(depth) = budget.depth.and_then(NonZeroUsize::new) {
        checker = checker.target_max_depth(depth.get());
    }
    if let Some(time) = budget.time {
        checker = checker.timeout(time);
    }
    if budget.deep {
        told(&checker.spawn_dfs().join(), &budget, start)
    } else {
        told(&checker.spawn_bfs().join(), &budget, start)
    }
}

/// What came of it, and how long it took.
fn told(checker: &impl Checker<Ensemble>, budget: &Budget, start: Instant) -> Outcome {
    let took = now().duration_since(start);
    let discoveries = checker.discoveries();
    let model = checker.model();
    let mut violation = None;
    let mut unseen = Vec::new();
    for property in model.properties() {
        let failure = property.expectation.discovery_is_failure();
        match discoveries.get(property.name) {
            Some(path) if failure => {
                let what =
                    path.last_state().broken.map_or(property.name.to_owned(), |r| r.to_string());
                let steps = path.clone().into_vec();
                let how = steps
                    .iter()
                    .filter_map(|(state, action)| Some(model.tell(state, action.as_ref()?)))
                    .collect();
                violation = Some((what, how));
            }
            None if !failure => unseen.push(property.name),
            Some(_) | None => {}
        }
    }
    let states = checker.unique_state_count();
    let (transitions, depth) = (checker.state_count(), checker.max_depth());
    let cut = budget.transitions.is_some_and(|most| transitions >= most)
        || budget.depth.is_some_and(|most| depth >= most)
        || budget.time.is_some_and(|most| took >= most);
    Outcome {
        states,
        transitions,
        servers: model.servers(),
        depth,
        exhausted: !cut && violation.is_none(),
        took,
        unseen,
        violation,
    }
}

#[allow(clippy::disallowed_methods, reason = "it measures how long it took")]
fn now() -> Instant {
    Instant::now()
}
