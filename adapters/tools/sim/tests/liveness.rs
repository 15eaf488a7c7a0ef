//! That there is a leader, and how soon, once nothing goes wrong any more: bounds in virtual time.
//!
//! Ways take at most D, a sync at most S, and F is the time that ZooKeeper waits for a better vote. Each
//! test says its bound and prints the longest that it has measured. The random histories of `campaign.rs`
//! have bounds, too: a leader within three seconds of a repair, and service.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::rng::Rng;
use quorate_core::vote::{Round, ServerState};
use quorate_sim::{CrashKind, DiskConfig, Ensemble, NetworkConfig, World, WorldConfig};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// The wait for a better vote.
const F: Duration = Duration::from_millis(200);

/// How long an election may take that nothing disturbs.
fn election_max() -> Duration {
    let (network, disk) = (NetworkConfig::default(), DiskConfig::default());
    F + 6 * network.latency_max + 4 * disk.sync_max
}

/// A world of so many voters, and its patience.
fn world(voters: i64, seed: u64) -> World {
    world_of(Ensemble::majority(voters), seed)
}

fn world_of(ensemble: Ensemble, seed: u64) -> World {
    let timing = Timing { tick: Duration::from_millis(200), ..Timing::default() };
    World::new(seed, WorldConfig { keep_log: false, timing, ..WorldConfig::new(ensemble) })
}

/// The same when all follow one leader.
fn settled(voters: i64, seed: u64) -> World {
    settled_of(Ensemble::majority(voters), seed)
}

fn settled_of(ensemble: Ensemble, seed: u64) -> World {
    let voters = i64::try_from(ensemble.members().len()).unwrap();
    let mut world = world_of(ensemble, seed);
    world.start_all(1..=voters);
    assert!(world.run_until(World::is_settled, 5 * SECOND).unwrap().is_some());
    world
}

/// Whether there is a leader whom a quorum follows and serves under.
fn is_led(world: &World) -> bool {
    let leader = world.leader();
    let epoch = leader.and_then(|leader| world.brief(leader.0)).map(|brief| brief.current_epoch);
    leader.is_some()
        && world.ensemble().is_quorum(|id| {
            let follows = world.brief(id.0).filter(|brief| brief.serving && brief.leader == leader);
            follows.is_some_and(|brief| Some(brief.current_epoch) == epoch)
        })
}

/// Whether there is a quorum of which each has a link with each other.
fn quorum_is_linked(world: &World) -> bool {
    let ids: Vec<ServerId> = world.ensemble().ids().collect();
    let linked =
        |a: ServerId, b: ServerId| a == b || world.links_between(a.0, b.0, Plane::Election) > 0;
    let neighbours: Vec<u32> = ids
        .iter()
        .map(|a| ids.iter().fold(0, |all, b| all << 1 | u32::from(linked(*a, *b))))
        .map(|all: u32| all.reverse_bits() >> (32 - ids.len()))
        .collect();
    (0..1_u32 << ids.len()).any(|set| {
        let has = |at: usize| set >> at & 1 == 1;
        let clique = (0..ids.len()).all(|at| !has(at) || neighbours[at] & set == set);
        let of = |id: ServerId| ids.iter().position(|one| *one == id).is_some_and(has);
        clique && world.ensemble().is_quorum(of)
    })
}

/// Who leads in which epoch.
fn leadership(world: &World) -> Option<(ServerId, i64)> {
    let leader = world.leader()?;
    Some((leader, world.brief(leader.0)?.current_epoch.0))
}

fn told(what: &str, times: &mut [Duration], bound: Duration) {
    times.sort_unstable();
    let (count, longest) = (times.len(), times.last().copied().unwrap_or_default());
    let (median, most, nearly) = (permille(times, 500), permille(times, 990), permille(times, 999));
    println!(
        "{what}: {count} times, median {median:.1?}, 99 % {most:.1?}, 99.9 % {nearly:.1?}, longest {longest:.1?}, \
         bound {bound:.1?}"
    );
}

/// What so many of a thousand of these sorted times do not exceed.
fn permille(times: &[Duration], of: usize) -> Duration {
    times.get(times.len() * of / 1000).copied().unwrap_or_default()
}

/// Everybody starts at once and nothing goes wrong: F + 6 D, one round, one election won.
#[test]
fn a_clean_start_takes_one_round() {
    let mut times = Vec::new();
    for voters in 3..=9 {
        for seed in 0..100 {
            let mut world = world(voters, seed);
            world.start_all(1..=voters);
            let took = world.run_until(is_led, 5 * SECOND).unwrap().expect("a leader");
            times.push(took);
            assert!(took <= election_max(), "{voters} voters, seed {seed}: {took:?}");
            world.run_until(World::is_settled, SECOND).unwrap().expect("all follow");
            assert_eq!(world.leader(), Some(ServerId(voters)));
            assert_eq!(world.checker().elected(), 1, "seed {seed}");
            assert!((1..=voters).all(|id| world.brief(id).is_some_and(|b| b.round == Round(1))));
        }
    }
    told("a clean start", &mut times, election_max());
}

/// Servers that could hear nobody, for up to ten minutes, so that they ask less and less often: a second
/// after all of a quorum have links with one another there is a leader, in 999 of 1000 cases, and three seconds
/// after in all; and all votes name it.
#[test]
fn a_quorum_that_is_linked_again_has_a_leader_however_long_it_was_not() {
    let mut times = Vec::new();
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed);
        let voters = 3 + 2 * i64::try_from(rng.below(3)).unwrap();
        let mut world = world(voters, seed);
        world.start_all(1..=voters);
        world.run_for(Duration::from_millis(rng.below(400))).unwrap();
        world.partition(&[]);
        world.run_for(Duration::from_millis(rng.below(600_000))).unwrap();
        world.heal();
        let linked = world.run_until(quorum_is_linked, 5 * SECOND).unwrap();
        assert!(linked.is_some(), "seed {seed}: no links after {:?}", 5 * SECOND);
        let took = world.run_until(is_led, 3 * SECOND).unwrap();
        times.push(took.unwrap_or_else(|| panic!("seed {seed}: no leader")));
        // One that still believes in a link, or whose SYN was lost, takes longer to come in.
        assert!(world.run_until(World::is_settled, 15 * SECOND).unwrap().is_some(), "seed {seed}");
        let leader = world.leader();
        let votes = (1..=voters).map(|id| world.brief(id).map(|brief| brief.vote.leader));
        assert!(votes.into_iter().all(|vote| vote == leader), "seed {seed}");
    }
    told("linked again", &mut times, 3 * SECOND);
    assert!(permille(&times, 999) <= SECOND, "99.9 % take less than a second");
}

/// The leader's process ends: as long as an election. Its machine loses power: that, after it is noticed.
#[test]
fn a_leader_that_dies_is_replaced() {
    for kind in [CrashKind::Process, CrashKind::Power] {
        let mut times = Vec::new();
        let noticing = match kind {
            CrashKind::Process => Duration::ZERO,
            CrashKind::Power => NetworkConfig::default().silent_max.min(5 * F),
        };
        let bound = noticing + election_max();
        for seed in 0..300 {
            let voters = 3 + 2 * i64::try_from(seed % 4).unwrap();
            let mut world = settled(voters, seed);
            let old = world.leader().unwrap();
            world.crash(old.0, kind).unwrap();
            let next = |w: &World| is_led(w) && w.leader() != Some(old);
            let took = world.run_until(next, bound).unwrap();
            times.push(took.unwrap_or_else(|| panic!("seed {seed}: no leader after {bound:?}")));
        }
        told(&format!("a leader dies ({kind:?})"), &mut times, bound);
    }
}

/// Whoever comes late, or comes back, is in within a second and changes nothing for the others. Its machine
/// runs meanwhile: TCP asks one that does not less and less often, and nobody hears at once that it does.
#[test]
fn a_late_server_joins_and_disturbs_nobody() {
    let mut times = Vec::new();
    for seed in 0..300 {
        let voters = 3 + 2 * i64::try_from(seed % 4).unwrap();
        let late = 1 + i64::try_from(seed % u64::try_from(voters).unwrap()).unwrap();
        let mut world = world(voters, seed);
        world.start_all(1..=voters);
        world.run_for(MILLI / 10).unwrap();
        world.crash(late, CrashKind::Process).unwrap();
        world.run_until(is_led, 5 * SECOND).unwrap().expect("a leader");
        world.run_for(SECOND).unwrap();
        let before = (leadership(&world), world.checker().elected());
        for _ in 0..2 {
            world.start(late);
            let took = world.run_until(World::is_settled, SECOND).unwrap();
            times.push(took.unwrap_or_else(|| panic!("seed {seed}: {late} is not in")));
            world.run_for(SECOND).unwrap();
            assert_eq!((leadership(&world), world.checker().elected()), before, "seed {seed}");
            world.crash(late, CrashKind::Process).unwrap();
            world.run_for(SECOND).unwrap();
        }
    }
    told("a late server", &mut times, SECOND);
}

/// Cut off for minutes or flapping, and back: it follows, in the epoch that was.
#[test]
fn a_server_that_was_alone_never_deposes_a_healthy_leader() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let voters = 3 + 2 * i64::try_from(seed % 3).unwrap();
        let mut world = settled(voters, seed);
        let before = leadership(&world);
        let alone = 1 + i64::try_from(rng.below(u64::try_from(voters - 1).unwrap())).unwrap();
        let others: Vec<i64> = (1..=voters).filter(|id| *id != alone).collect();
        let epochs = |w: &World| w.durable(alone).map(|held| held.accepted_epoch);
        let promised = epochs(&world);
        for _ in 0..4 {
            world.partition(&[&others, &[alone]]);
            world.run_for(Duration::from_millis(rng.below(120_000))).unwrap();
            assert_eq!(leadership(&world), before, "seed {seed}");
            world.heal();
            world.run_for(Duration::from_millis(rng.below(5_000))).unwrap();
            assert_eq!(leadership(&world), before, "seed {seed}");
        }
        world.run_until(World::is_settled, 15 * SECOND).unwrap().expect("it follows again");
        assert_eq!((leadership(&world), epochs(&world)), (before, promised), "seed {seed}");
    }
}

/// Links break between followers, one after the other, until each hears the leader alone: it leads on.
#[test]
fn a_leader_that_reaches_a_quorum_stays_whatever_the_others_hear() {
    for seed in 0..100 {
        let voters = 3 + 2 * i64::try_from(seed % 3).unwrap();
        let mut world = settled(voters, seed);
        let before = leadership(&world);
        let (leader, mut led, step) = (voters, 0, 10 * MILLI);
        for a in 1..leader {
            for b in a + 1..leader {
                world.block(a, b);
                world.block(b, a);
                for _ in 0..100 {
                    world.run_for(step).unwrap();
                    led += u32::from(is_led(&world));
                }
            }
        }
        let samples = u32::try_from((leader - 1) * (leader - 2) / 2).unwrap() * 100;
        assert_eq!((led, leadership(&world)), (samples, before), "seed {seed}");
    }
}

/// Whether a server believes that it leads an ensemble that serves.
fn leads(world: &World, id: ServerId) -> bool {
    world.brief(id.0).is_some_and(|b| b.state == ServerState::Leading && b.serving)
}

/// A machine stands still, and its clock with it or not. A leader is replaced after its followers' patience and
/// an election, and gives up its leadership as soon as it goes on. One that loses a quorum in that way gives it up by
/// its own clock: at the first tick after the sync limit.
#[test]
fn who_stands_still_gives_up_its_role_within_the_sync_limit() {
    let limit = Timing { tick: Duration::from_millis(200), ..Timing::default() }.sync_time();
    // It looks at each tick whom it has heard in time, and what is under way still comes.
    let alone = limit + limit / 5 + 2 * NetworkConfig::default().latency_max;
    let (mut replaced, mut woken, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..90 {
        let mut rng = Rng::new(seed);
        let voters = 3 + 2 * i64::try_from(seed % 3).unwrap();
        let mut world = settled(voters, seed);
        world.run_for(Duration::from_millis(rng.below(1_000))).unwrap();
        let old = world.leader().unwrap();
        if rng.below(2) == 0 {
            world.pause(old.0);
        } else {
            world.suspend(old.0);
        }
        let next = |w: &World| is_led(w) && w.leader() != Some(old);
        let took = world.run_until(next, limit + election_max()).unwrap();
        replaced.push(took.unwrap_or_else(|| panic!("seed {seed}: {old} is not replaced")));
        world.run_for(Duration::from_millis(rng.below(20_000))).unwrap();
        world.resume(old.0).unwrap();
        let took = world.run_until(|w| !leads(w, old), limit).unwrap();
        woken.push(took.unwrap_or_else(|| panic!("seed {seed}: {old} leads on")));
        assert!(world.run_until(World::is_settled, 15 * SECOND).unwrap().is_some(), "seed {seed}");

        let leader = world.leader().unwrap();
        for id in (1..=voters)
            .filter(|id| *id != leader.0)
            .take(usize::try_from(voters).unwrap().div_ceil(2))
        {
            world.pause(id);
        }
        let took = world.run_until(|w| !leads(w, leader), alone).unwrap();
        left.push(took.unwrap_or_else(|| panic!("seed {seed}: {leader} leads on alone")));
    }
    told("a leader that stands still is replaced", &mut replaced, limit + election_max());
    told("it goes on, and leaves", &mut woken, limit);
    told("a leader whose followers stand still leaves", &mut left, alone);
}

/// A disk neither fails nor makes anything durable. Its server hears and answers as ever, and the others commit
/// without it; but everything that it has to promise would wait.
#[test]
fn a_leader_whose_disk_hangs_gives_up_its_role_within_the_sync_limit() {
    let limit = Timing { tick: Duration::from_millis(200), ..Timing::default() }.sync_time();
    let (mut left, mut replaced) = (Vec::new(), Vec::new());
    for seed in 0..90 {
        let mut rng = Rng::new(seed);
        let voters = 3 + 2 * i64::try_from(seed % 3).unwrap();
        let mut world = settled(voters, seed);
        world.run_for(Duration::from_millis(rng.below(1_000))).unwrap();
        let old = world.leader().unwrap();
        world.hang_disk(old.0, true);
        world.propose(old.0, 1).unwrap().expect("it is accepted");
        let commits = world.checker().commits();
        let took = world.run_until(|w| !leads(w, old), limit).unwrap();
        left.push(took.unwrap_or_else(|| panic!("seed {seed}: {old} leads on")));
        assert_eq!(world.checker().commits(), commits + 1, "the others have it");
        let next = |w: &World| is_led(w) && w.leader() != Some(old);
        let took = world.run_until(next, election_max()).unwrap();
        replaced.push(took.unwrap_or_else(|| panic!("seed {seed}: {old} is not replaced")));
        world.hang_disk(old.0, false);
        assert!(world.run_until(World::is_settled, 15 * SECOND).unwrap().is_some(), "seed {seed}");
    }
    told("a leader whose disk hangs leaves", &mut left, limit);
    told("it is replaced", &mut replaced, election_max());
}

/// The server at this place of the matrix.
fn id(at: usize) -> ServerId {
    ServerId(i64::try_from(at).unwrap() + 1)
}

fn position(id: ServerId) -> usize {
    usize::try_from(id.0).unwrap() - 1
}

/// Which servers a server hears: a matrix of ways that are free in both directions.
#[derive(Clone, PartialEq, Eq)]
struct Ways(Vec<Vec<bool>>);

impl Ways {
    fn all(voters: usize) -> Self {
        Self(vec![vec![true; voters]; voters])
    }

    fn set(&mut self, a: usize, b: usize, free: bool) {
        (self.0[a][b], self.0[b][a]) = (free, free);
    }

    /// Whether a quorum hears this server, itself included, and it may lead.
    fn reaches_a_quorum(&self, at: usize, ensemble: &Ensemble) -> bool {
        ensemble.may_lead(id(at)) && ensemble.is_quorum(|other| self.0[at][position(other)])
    }

    /// Whether some server hears a quorum of which nobody has a newer history.
    fn somebody_may_lead(&self, world: &World) -> bool {
        let held = |at: usize| {
            let disk = world.durable(id(at).0).unwrap();
            (disk.current_epoch, disk.last())
        };
        (0..self.0.len()).any(|at| {
            let behind = |other| self.0[at][position(other)] && held(position(other)) <= held(at);
            world.ensemble().may_lead(id(at)) && world.ensemble().is_quorum(behind)
        })
    }

    fn somebody_reaches_a_quorum(&self, ensemble: &Ensemble) -> bool {
        (0..self.0.len()).any(|at| self.reaches_a_quorum(at, ensemble))
    }

    fn apply(&self, world: &mut World) {
        world.heal();
        for (a, row) in self.0.iter().enumerate() {
            for (b, _) in row.iter().enumerate().filter(|(_, free)| !**free) {
                world.block(id(a).0, id(b).0);
            }
        }
    }
}

/// What came of ten minutes after each of some changes of the ways.
#[derive(Debug, Default)]
struct Reached {
    changes: u32,
    /// Where each who hears a quorum has an older history than one who is needed for it.
    hopeless: u32,
    led: u32,
    samples: u32,
    /// Leaders beyond one for each change.
    storms: u32,
    slowest: Duration,
    longest: Vec<Duration>,
}

/// Each of these ways of being joined lasts ten minutes.
fn live_through(world: &mut World, all: &[Ways], reached: &mut Reached) {
    let step = 100 * MILLI;
    for ways in all {
        let leader = leadership(world);
        ways.apply(world);
        if !ways.somebody_may_lead(world) {
            reached.hopeless += 1;
            world.run_for(60 * SECOND).unwrap();
            continue;
        }
        let (mut since, mut gap, mut seen, mut last) = (world.now(), Duration::ZERO, 0, leader);
        for _ in 0..6_000 {
            world.run_for(step).unwrap();
            let led = is_led(world);
            reached.samples += 1;
            reached.led += u32::from(led);
            if led {
                since = world.now();
                if leadership(world) != last {
                    (seen, last) = (seen + 1, leadership(world));
                }
            }
            gap = gap.max(world.now().since(since));
        }
        reached.changes += 1;
        reached.storms += u32::from(seen > 1);
        reached.slowest = reached.slowest.max(gap);
        reached.longest.push(gap);
    }
}

/// Ways break and come back, whichever, so that as a rule not all can hear all; but some server can hear a
/// quorum, and be heard. There is a leader, 99 % of the time, and no more than one new one for each change.
#[test]
fn where_one_server_reaches_a_quorum_there_is_a_leader() {
    where_ways_break_at_random(|rng| {
        Ensemble::majority(3 + 2 * i64::try_from(rng.below(3)).unwrap())
    });
}

/// The same where voters are in groups, or have weights, or have none.
#[test]
fn where_one_server_reaches_a_quorum_of_groups_there_is_a_leader() {
    where_ways_break_at_random(|rng| match rng.below(3) {
        0 => Ensemble::hierarchical(&[
            &[(1, 1), (2, 1), (3, 1)],
            &[(4, 1), (5, 1), (6, 1)],
            &[(7, 1), (8, 1), (9, 1)],
        ]),
        1 => Ensemble::hierarchical(&[&[(1, 3), (2, 1), (3, 1)], &[(4, 1), (5, 2)], &[(6, 1)]]),
        _ => Ensemble::hierarchical(&[&[(1, 2), (2, 1), (3, 1), (4, 1), (5, 0)]]),
    });
}

/// Sixteen ensembles; with `QUORATE_WAYS` in the environment so many.
///
/// A gap has no bound but that of the back-off: where a quorum hears of the best vote over others and then finds
/// that it cannot reach whom it has elected, it waits for longer each time. So the share of the time is what is
/// held, and the longest gap of these sixteen, which are always the same. 400 of each kind, 3,144 changes: led
/// 99.88 % of the time, no change cost two leaders, 99 % were over in 5.3 s and the longest in 11.5 s; among 1,171
/// others of three groups of three were two that took 38 s.
fn where_ways_break_at_random(ensemble: impl Fn(&mut Rng) -> Ensemble) {
    let ensembles = std::env::var("QUORATE_WAYS").map_or(16, |n| n.parse().unwrap());
    let mut reached = Reached::default();
    for seed in 0..ensembles {
        let mut rng = Rng::new(seed);
        let ensemble = ensemble(&mut rng);
        let voters = ensemble.members().len();
        let mut world = settled_of(ensemble.clone(), seed);
        let mut all = Vec::new();
        while all.len() < 4 {
            let mut ways = Ways::all(voters);
            let of = 20 + rng.below(70);
            for a in 0..voters {
                for b in 0..a {
                    ways.set(a, b, rng.below(100) >= of);
                }
            }
            if ways.somebody_reaches_a_quorum(&ensemble) {
                all.push(ways);
            }
        }
        let (led, samples) = (reached.led, reached.samples);
        live_through(&mut world, &all, &mut reached);
        let (led, samples) = (reached.led - led, reached.samples - samples);
        if led * 100 < samples * 99 {
            println!("seed {seed}: {voters} voters, led {led} of {samples}");
        }
    }
    told("nobody leads, at most, after a change", &mut reached.longest, 6 * SECOND);
    let Reached { led, samples, storms, changes, hopeless, longest, .. } = reached;
    println!("led {led} of {samples}, storms {storms} of {changes} changes, hopeless {hopeless}");
    assert!(u64::from(led) * 100 >= u64::from(samples) * 99);
    assert_eq!(storms, 0);
    assert!(ensembles > 16 || longest.iter().all(|gap| *gap <= 6 * SECOND));
}

/// All but one lose each other, and that one is not the leader.
#[test]
fn a_hub_that_does_not_lead_comes_to_lead() {
    let mut reached = Reached::default();
    for seed in 0..24 {
        let voters = 5 + 2 * usize::try_from(seed % 3).unwrap();
        let mut world = settled(i64::try_from(voters).unwrap(), seed);
        let hub = usize::try_from(seed).unwrap() / 3 % (voters - 1);
        let mut star = Ways::all(voters);
        for a in 0..voters {
            for b in 0..a {
                star.set(a, b, a == hub || b == hub);
            }
        }
        live_through(&mut world, &[star], &mut reached);
        assert_eq!(world.leader(), Some(ServerId(i64::try_from(hub).unwrap() + 1)), "seed {seed}");
    }
    told("a hub comes to lead", &mut reached.longest, 6 * SECOND);
    assert!(reached.longest.iter().all(|gap| *gap <= 6 * SECOND));
    assert!(u64::from(reached.led) * 100 >= u64::from(reached.samples) * 99, "{reached:?}");
    assert_eq!(reached.storms, 0);
}
