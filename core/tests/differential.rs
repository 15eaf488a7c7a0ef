//! Random inputs, each decided twice: by the core, and by a second implementation that was written from the
//! protocol's description alone, with maps and loops instead of sums that are kept.
//!
//! How a learner is brought up is compared in the same way in `synchronisation.rs`. So many inputs as
//! `QUORATE_DIFFERENTIAL` says, a million of each kind if it says nothing:
//!
//! ```text
//! QUORATE_DIFFERENTIAL=1000000000 cargo test --release -p quorate-core --test all -- differential synchronisation
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::election::{Elector, ElectorConfig, ElectorEvent, ElectorOutput};
use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Epoch, Zxid};

/// How many inputs there are to be.
fn wanted() -> u64 {
    if cfg!(miri) {
        return 200;
    }
    std::env::var("QUORATE_DIFFERENTIAL").map_or(1_000_000, |count| count.parse().unwrap())
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[usize::try_from(rng.below(of.len() as u64)).unwrap()]
}

// --- the order of votes ---

/// Numbers at which comparisons go wrong.
const CORNERS: [i64; 10] =
    [i64::MIN, i64::MIN + 1, -1, 0, 1, (1 << 31) - 1, 1 << 31, 1 << 32, i64::MAX - 1, i64::MAX];

#[test]
fn votes_are_ordered_by_epoch_then_zxid_then_id() {
    let mut rng = Rng::new(1);
    for _ in 0..wanted() {
        let mut draw = || [0; 3].map(|_: i64| pick(&mut rng, &CORNERS));
        let (a, mut b) = (draw(), draw());
        // As a rule what decides is not the first that is looked at.
        let same = usize::try_from(rng.below(3)).unwrap();
        b[..same].copy_from_slice(&a[..same]);
        let vote = |[epoch, zxid, id]: [i64; 3]| Vote {
            peer_epoch: Epoch(epoch),
            zxid: Zxid(zxid),
            leader: ServerId(id),
        };
        let (one, other) = (vote(a), vote(b));
        assert_eq!(one.better_than(&other).is_some(), a > b, "{a:?} {b:?}");
        assert_eq!(one.cmp(&other), a.cmp(&b), "{a:?} {b:?}");
    }
}

// --- an election ---

/// Who votes: groups of servers with their weights.
type Groups = Vec<Vec<(i64, u64)>>;

fn weight(groups: &Groups, id: i64) -> u64 {
    groups.iter().flatten().find(|(of, _)| *of == id).map_or(0, |(_, weight)| *weight)
}

/// More than half of the weight in each of more than half of the groups that have any.
fn is_quorum(groups: &Groups, members: &BTreeSet<i64>) -> bool {
    let total = |group: &[(i64, u64)]| group.iter().map(|(_, weight)| weight).sum::<u64>();
    let counted: Vec<_> = groups.iter().filter(|group| total(group) > 0).collect();
    let present = |group: &[(i64, u64)]| {
        let here: Vec<_> = group.iter().copied().filter(|(id, _)| members.contains(id)).collect();
        total(&here)
    };
    let won = counted.iter().filter(|group| present(group) > total(group) / 2).count();
    won > counted.len() / 2
}

/// A vote: peer epoch, zxid, leader.
type GrantedVote = (i64, i64, i64);

/// What somebody has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    state: ServerState,
    granted_vote: GrantedVote,
    round: i64,
    version: i32,
}

/// Whether two votes are for the same, as the description has it.
fn equal(a: &Said, b: &Said) -> bool {
    if a.state == ServerState::Looking || b.state == ServerState::Looking {
        a.granted_vote == b.granted_vote && a.round == b.round
    } else if (a.version > 0) != (b.version > 0) {
        a.granted_vote.2 == b.granted_vote.2
    } else {
        a.granted_vote.2 == b.granted_vote.2 && a.granted_vote.0 == b.granted_vote.0
    }
}

/// One server's election, as the description has it; but what comes during the last wait is filed, not thrown
/// away, and that wait is not begun anew by it.
#[derive(Debug)]
struct Book {
    id: i64,
    groups: Groups,
    init: GrantedVote,
    round: i64,
    proposal: GrantedVote,
    recvset: BTreeMap<i64, Said>,
    outofelection: BTreeMap<i64, Said>,
    /// Since when a quorum votes like us, in milliseconds.
    since: Option<u64>,
    ask_at: u64,
    ask_wait: u64,
    decided: Option<(ServerState, GrantedVote, i64)>,
}

impl Book {
    fn new(id: i64, groups: Groups, init: GrantedVote) -> Self {
        let mut book = Self {
            id,
            groups,
            init,
            round: 1,
            proposal: init,
            recvset: BTreeMap::new(),
            outofelection: BTreeMap::new(),
            since: None,
            ask_at: 200,
            ask_wait: 200,
            decided: None,
        };
        book.propose(init);
        book.count(0);
        book
    }

    fn needle(&self) -> Said {
        Said {
            state: ServerState::Looking,
            granted_vote: self.proposal,
            round: self.round,
            version: 0,
        }
    }

    /// What we propose counts like what others do.
    fn propose(&mut self, granted_vote: GrantedVote) {
        self.proposal = granted_vote;
        self.since = None;
        self.recvset.insert(self.id, self.needle());
    }

    /// Weightless servers are never better, and worse than any other; nor is any better because they say so, other
    /// than in the description.
    fn better(&self, from: i64, new: GrantedVote, current: GrantedVote) -> bool {
        weight(&self.groups, from) > 0
            && match (weight(&self.groups, new.2), weight(&self.groups, current.2)) {
                (0, _) => false,
                (_, 0) => true,
                _ => new > current,
            }
    }

    fn tracker(&self, votes: &BTreeMap<i64, Said>, needle: &Said) -> bool {
        let members = votes.iter().filter(|(_, said)| equal(said, needle)).map(|(id, _)| *id);
        is_quorum(&self.groups, &members.collect())
    }

    fn check_leader(&self, votes: &BTreeMap<i64, Said>, leader: i64, round: i64) -> bool {
        if leader == self.id {
            return round == self.round;
        }
        votes.get(&leader).is_some_and(|said| said.state == ServerState::Leading)
    }

    fn count(&mut self, at: u64) {
        if !self.tracker(&self.recvset, &self.needle()) {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(at);
        }
    }

    fn decide(&mut self, granted_vote: GrantedVote, round: i64) {
        let leads = granted_vote.2 == self.id;
        let state = if leads { ServerState::Leading } else { ServerState::Following };
        self.decided = Some((state, granted_vote, round));
    }

    fn hear(&mut self, at: u64, from: i64, said: Said) {
        let is_voter = |id: i64| self.groups.iter().flatten().any(|(of, _)| *of == id);
        // The description goes on counting it.
        if self.decided.is_none() && said.state == ServerState::Looking {
            self.outofelection.remove(&from);
        }
        if self.decided.is_some() || !is_voter(from) || !is_voter(said.granted_vote.2) {
            return;
        }
        if said.state == ServerState::Looking {
            let said = Said { version: 0, ..said };
            if said.round < self.round || self.recvset.get(&from) == Some(&said) {
                return;
            }
            let (epoch, zxid, leader) = said.granted_vote;
            if leader == self.id && (epoch, zxid) > (self.init.0, self.init.1) {
                // Ours: the description adopts what others remember of us.
                self.round = said.round + 1;
                self.recvset.clear();
                self.propose(self.init);
                return self.count(at);
            }
            if said.round > self.round {
                self.round = said.round;
                self.recvset.clear();
                let better = self.better(from, said.granted_vote, self.init);
                self.propose(if better { said.granted_vote } else { self.init });
            } else if self.better(from, said.granted_vote, self.proposal) {
                self.propose(said.granted_vote);
            }
            self.recvset.insert(from, said);
            return self.count(at);
        }
        let (leader, round) = (said.granted_vote.2, said.round);
        if round == self.round {
            self.recvset.insert(from, Said { version: 0, ..said });
            let found = self.tracker(&self.recvset, &said);
            if found && self.check_leader(&self.recvset, leader, round) {
                return self.decide(said.granted_vote, round);
            }
        }
        self.outofelection.insert(from, said);
        let found = self.tracker(&self.outofelection, &said);
        if found && self.check_leader(&self.outofelection, leader, round) {
            self.decide(said.granted_vote, round);
        }
    }

    fn pass(&mut self, at: u64) {
        while self.decided.is_none() {
            if let Some(since) = self.since {
                if since + 200 > at {
                    return;
                }
                self.since = None;
                if self.tracker(&self.recvset, &self.needle()) {
                    self.decide(self.proposal, self.round);
                }
            } else if self.ask_at <= at {
                self.ask_wait *= 2;
                self.ask_at = at + self.ask_wait;
                self.count(at);
            } else {
                return;
            }
        }
    }
}

fn groups(rng: &mut Rng) -> Groups {
    let voters = 1 + i64::try_from(rng.below(5)).unwrap();
    if rng.below(2) == 0 {
        return vec![(1..=voters).map(|id| (id, 1)).collect()];
    }
    let mut groups = vec![Vec::new(); 1 + usize::try_from(rng.below(3)).unwrap()];
    for id in 1..=voters {
        let at = usize::try_from(rng.below(groups.len() as u64)).unwrap();
        groups[at].push((id, rng.below(3)));
    }
    groups
}

/// One voter hears whatever can be said, true or not, and lets time pass, less than half a second:
/// after each step it stands where the description has it.
#[test]
fn an_election_goes_as_the_description_has_it() {
    let (mut heard, mut outcomes) = (0, [0; 3]);
    for seed in 0.. {
        if heard >= wanted() {
            break;
        }
        let rng = &mut Rng::new(seed);
        let groups = groups(rng);
        let ids: Vec<i64> = groups.iter().flatten().map(|(id, _)| *id).collect();
        let id = pick(rng, &ids);
        let histories: BTreeMap<i64, (i64, i64)> =
            (1..=6).map(|id| (id, (1 + rng.below(2) as i64, rng.below(2) as i64))).collect();
        let granted_vote = |id: i64| (histories[&id].0, histories[&id].1, id);
        let quorum = Quorum::hierarchical(
            groups.iter().map(|group| group.iter().map(|(id, weight)| (ServerId(*id), *weight))),
        );
        let mut elector = Elector::new(ElectorConfig {
            id: ServerId(id),
            observer: false,
            quorum,
            notification_min: Duration::from_millis(200),
            notification_max: Duration::from_secs(60),
            finalize_wait: Duration::from_millis(200),
            finish_when_settled: false,
            may_change: false,
        });
        let vote = |(epoch, zxid, id): GrantedVote| Vote {
            peer_epoch: Epoch(epoch),
            zxid: Zxid(zxid),
            leader: ServerId(id),
        };
        let mut book = Book::new(id, groups, granted_vote(id));
        let mut at = 0;
        let instant = |at: u64| Instant(at * 1_000_000);
        elector.step(instant(0), ElectorEvent::Look(vote(granted_vote(id))));
        for _ in 0..20 {
            let event = if rng.below(6) == 0 && at < 400 {
                at += 100;
                book.pass(at);
                ElectorEvent::Tick
            } else {
                let from = pick(rng, &[1, 2, 3, 4, 5, 6]);
                if from == id {
                    continue;
                }
                let states = [ServerState::Looking, ServerState::Following, ServerState::Leading];
                let state = pick(rng, &states);
                let leader = if state == ServerState::Leading {
                    from
                } else if rng.below(2) == 0 {
                    *ids.iter().max().unwrap()
                } else {
                    pick(rng, &[1, 2, 3, 4, 5, 6])
                };
                let (epoch, zxid, _) = granted_vote(leader);
                // Once they serve they tell the new epoch, one after the other.
                let serves = state != ServerState::Looking && rng.below(3) == 0;
                let epoch = epoch + i64::from(serves);
                // Members of one ensemble may differ in what they say of their leader.
                let said = Said {
                    state,
                    granted_vote: (epoch, zxid + i64::from(rng.below(8) == 0), leader),
                    round: pick(rng, &[book.round, book.round, book.round, 1, 2, 3]),
                    version: pick(rng, &[0, 2, 2]),
                };
                heard += 1;
                book.hear(at, from, said);
                let standing =
                    Standing { state, vote: vote(said.granted_vote), round: Round(said.round) };
                let versioned = said.version > 0;
                ElectorEvent::Heard { from: ServerId(from), standing, versioned, at_once: false }
            };
            let outputs = elector.step(instant(at), event);
            let decided = outputs.iter().any(|output| matches!(output, ElectorOutput::Decided(_)));
            assert_eq!(decided, book.decided.is_some(), "seed {seed}: {event:?} {book:?}");
            let (state, granted_vote, round) =
                book.decided.unwrap_or((ServerState::Looking, book.proposal, book.round));
            let expected = Standing { state, vote: vote(granted_vote), round: Round(round) };
            assert_eq!(elector.standing(), expected, "seed {seed}: {event:?} {book:?}");
            if decided {
                break;
            }
        }
        outcomes[match book.decided {
            None => 0,
            Some((ServerState::Leading, ..)) => 1,
            Some(_) => 2,
        }] += 1;
    }
    assert!(cfg!(miri) || outcomes.iter().all(|count| *count > heard / 500), "{outcomes:?}");
}
