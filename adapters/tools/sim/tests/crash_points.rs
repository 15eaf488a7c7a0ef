//! A server is cut off its power after each single thing that it does, in every scenario; and, in another
//! pass, at each boundary between two of its writes, before it hears that the first of them is durable. Then
//! a second one is, or the same again, at each boundary that comes behind the first.
//!
//! ```text
//!   prepare ─► act, and after its k-th output one server ends ─► it starts again ─► everybody follows,
//!                 for every server, for every k, with what         has the same, serves a write and a
//!                 was not synced lost and not, at once and late    read
//! ```
//!
//! Nothing here is random: the same scenario is told again for every k until it ends before the cut.
//! The rules are tested after every step of it, as everywhere.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::time::Duration;

use quorate_core::config::{HistoryLimits, Timing};
use quorate_core::id::ServerId;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_sim::{
    Answer, CrashKind, DiskConfig, Ensemble, FaultClass, NetworkConfig, Outcome, Survival, World,
    WorldConfig,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

struct Scenario {
    name: &'static str,
    observers: &'static [i64],
    /// Who is no member at first, where the membership may change.
    spares: &'static [i64],
    /// Few transactions are kept in memory, and snapshots are taken often.
    short: bool,
    prepare: fn(&mut World),
    act: fn(&mut World),
    /// What has happened if nobody was cut.
    shows: &'static [FaultClass],
}

impl Scenario {
    fn world(&self, survival: Survival) -> World {
        let history = if self.short {
            HistoryLimits { window_count: 2, snap_count: 4, ..HistoryLimits::default() }
        } else {
            HistoryLimits::default()
        };
        let ensemble = Ensemble::majority(3).with_observers(self.observers.iter().copied());
        let changes = !self.spares.is_empty();
        let mut network = NetworkConfig::default();
        if changes {
            // Time enough for a change while a snapshot is on its way.
            network.stream_gap_min = 10 * MILLI;
            network.stream_gap_max = 10 * MILLI;
        }
        let config = WorldConfig {
            timing: Timing { tick: 100 * MILLI, ..Timing::default() },
            history,
            spares: self.spares.iter().map(|id| ServerId(*id)).collect(),
            may_change: changes,
            network,
            disk: DiskConfig { survival, snapshots: 1, ..DiskConfig::default() },
            keep_log: false,
            ..WorldConfig::new(ensemble)
        };
        let mut world = World::new(7, config);
        (self.prepare)(&mut world);
        world
    }
}

fn settle(world: &mut World, ids: &[i64]) {
    let done = |w: &World| w.is_settled_among(ids.iter().map(|id| ServerId(*id)));
    world.run_until(done, 5 * SECOND).unwrap();
}

fn write(world: &mut World, id: i64, count: u8) {
    for cell in 0..count {
        world.propose(id, cell).unwrap();
        world.run_for(2 * MILLI).unwrap();
    }
    world.run_for(30 * MILLI).unwrap();
}

fn crash(world: &mut World, id: i64) {
    world.crash(id, CrashKind::Process).unwrap();
}

fn begin(world: &mut World) {
    world.start_all(1..=3);
    settle(world, &[1, 2, 3]);
    write(world, 1, 3);
}

/// Server 3, which leads, has logged what nobody else has, and is down; the others go on without it.
fn leave_an_orphan(world: &mut World) {
    begin(world);
    world.partition(&[&[1, 2], &[3]]);
    world.propose(3, 9).unwrap();
    world.run_for(20 * MILLI).unwrap();
    crash(world, 3);
    settle(world, &[1, 2]);
    // What it had sent was never heard.
    world.cut(1, 3);
    world.cut(2, 3);
    world.heal();
}

/// Asks for another membership: who is to join, as a voter or an observer, and who to leave.
fn change(world: &mut World, at: i64, joining: &[(i64, bool)], leaving: &[i64]) {
    let member = |(id, voter): &(i64, bool)| Ensemble::line_of(ServerId(*id), *voter);
    let leaving: Vec<_> = leaving.iter().map(|id| ServerId(*id)).collect();
    let asked = Reconfiguration::change(joining.iter().map(member), leaving);
    world.reconfigure(at, &asked).unwrap();
}

/// 1 is down, and so far behind that only a snapshot helps; 4, which is no member, follows.
fn leave_one_behind(world: &mut World) {
    world.start(4);
    begin(world);
    settle(world, &[1, 2, 3, 4]);
    crash(world, 1);
    write(world, 2, 10);
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "the first quorum, and writes",
        observers: &[],
        spares: &[],
        short: false,
        prepare: |_| {},
        act: |world| {
            begin(world);
            write(world, 2, 2);
        },
        shows: &[FaultClass::SyncDiff, FaultClass::RequestApplied],
    },
    Scenario {
        name: "a follower comes back and is brought up by DIFF",
        observers: &[],
        spares: &[],
        short: false,
        prepare: |world| {
            begin(world);
            crash(world, 1);
            write(world, 2, 4);
        },
        act: |world| {
            world.start(1);
            write(world, 2, 3);
            settle(world, &[1, 2, 3]);
            write(world, 1, 2);
        },
        shows: &[FaultClass::SyncDiff],
    },
    Scenario {
        name: "an old leader comes back and its log is cut",
        observers: &[],
        spares: &[],
        short: false,
        prepare: leave_an_orphan,
        act: |world| {
            world.start(3);
            settle(world, &[1, 2, 3]);
            write(world, 3, 2);
        },
        shows: &[FaultClass::SyncTrunc, FaultClass::LogCut],
    },
    Scenario {
        name: "an old leader comes back when the others have gone on",
        observers: &[],
        spares: &[],
        short: false,
        prepare: |world| {
            leave_an_orphan(world);
            write(world, 1, 2);
        },
        act: |world| {
            world.start(3);
            write(world, 1, 3);
            settle(world, &[1, 2, 3]);
            write(world, 3, 2);
        },
        shows: &[FaultClass::SyncSnap, FaultClass::Installed],
    },
    Scenario {
        name: "a follower comes back and the log does not reach to where it stands",
        observers: &[],
        spares: &[],
        short: true,
        prepare: |world| {
            begin(world);
            crash(world, 1);
            write(world, 2, 14);
        },
        act: |world| {
            world.start(1);
            write(world, 2, 4);
            settle(world, &[1, 2, 3]);
            write(world, 1, 2);
        },
        shows: &[
            FaultClass::SyncSnap,
            FaultClass::Installed,
            FaultClass::Adopted,
            FaultClass::SnapshotTaken,
        ],
    },
    Scenario {
        name: "a leader goes with proposals under way",
        observers: &[],
        spares: &[],
        short: true,
        prepare: begin,
        act: |world| {
            for cell in 0..4 {
                world.propose(3, cell).unwrap();
                world.propose(1, cell).unwrap();
            }
            world.run_for(3 * MILLI).unwrap();
            world.partition(&[&[1, 2], &[3]]);
            world.propose(3, 5).unwrap();
            settle(world, &[1, 2]);
            write(world, 2, 2);
            world.heal();
            settle(world, &[1, 2, 3]);
            write(world, 1, 2);
        },
        shows: &[FaultClass::RequestLost],
    },
    Scenario {
        name: "an observer comes back and follows",
        observers: &[4],
        spares: &[],
        short: true,
        prepare: |world| {
            world.start(4);
            begin(world);
            settle(world, &[1, 2, 3, 4]);
            crash(world, 4);
            write(world, 2, 3);
        },
        act: |world| {
            world.start(4);
            write(world, 2, 3);
            settle(world, &[1, 2, 3, 4]);
            write(world, 4, 3);
        },
        shows: &[FaultClass::Informed],
    },
    Scenario {
        name: "members change, and change again",
        observers: &[],
        spares: &[4],
        short: false,
        prepare: |world| {
            world.start(4);
            begin(world);
            settle(world, &[1, 2, 3, 4]);
        },
        act: |world| {
            change(world, 2, &[(4, false)], &[]);
            write(world, 1, 1);
            change(world, 1, &[(4, true)], &[3]);
            write(world, 2, 1);
            settle(world, &[1, 2, 4]);
        },
        shows: &[FaultClass::Reconfigured, FaultClass::Joined, FaultClass::Left],
    },
    Scenario {
        name: "an old leader comes back with a change that came to nothing",
        observers: &[],
        spares: &[4],
        short: false,
        prepare: |world| {
            begin(world);
            world.partition(&[&[1, 2], &[3]]);
            change(world, 3, &[(4, true)], &[2]);
            world.run_for(20 * MILLI).unwrap();
            crash(world, 3);
            settle(world, &[1, 2]);
            world.cut(1, 3);
            world.cut(2, 3);
            world.heal();
        },
        act: |world| {
            world.start(3);
            settle(world, &[1, 2, 3]);
            write(world, 1, 1);
        },
        shows: &[FaultClass::ChangeCut],
    },
    Scenario {
        name: "members change twice while a follower is brought up",
        observers: &[],
        spares: &[4],
        short: true,
        prepare: leave_one_behind,
        act: |world| {
            world.start(1);
            world.run_for(20 * MILLI).unwrap();
            change(world, 2, &[(4, true)], &[]);
            world.run_for(15 * MILLI).unwrap();
            change(world, 2, &[(4, false)], &[]);
            settle(world, &[1, 2, 3]);
            write(world, 1, 1);
        },
        shows: &[FaultClass::SyncSnap, FaultClass::ChangeAcrossSnapshot],
    },
    Scenario {
        name: "an old leader comes back with a change that came to nothing, and the others change meanwhile",
        observers: &[],
        spares: &[4],
        short: false,
        prepare: |world| {
            world.start(4);
            begin(world);
            settle(world, &[1, 2, 3, 4]);
            world.partition(&[&[1, 2, 4], &[3]]);
            change(world, 3, &[(4, false)], &[]);
            world.run_for(20 * MILLI).unwrap();
            crash(world, 3);
            settle(world, &[1, 2]);
            world.cut(1, 3);
            world.cut(2, 3);
            world.heal();
            // Behind this, what 3 has alone is replaced, not cut.
            write(world, 1, 2);
            settle(world, &[1, 2, 4]);
        },
        act: |world| {
            world.start(3);
            world.run_for(20 * MILLI).unwrap();
            change(world, 2, &[(4, true)], &[]);
            world.run_for(15 * MILLI).unwrap();
            change(world, 2, &[(1, false)], &[]);
            settle(world, &[1, 2, 3, 4]);
            write(world, 2, 1);
        },
        shows: &[FaultClass::SyncSnap, FaultClass::ChangeCut, FaultClass::Reconfigured],
    },
    Scenario {
        name: "a leader leaves, and an observer votes in its place",
        observers: &[4],
        spares: &[5],
        short: true,
        prepare: |world| {
            world.start(4);
            begin(world);
            settle(world, &[1, 2, 3, 4]);
        },
        act: |world| {
            change(world, 3, &[(4, true)], &[3]);
            write(world, 1, 1);
            settle(world, &[1, 2, 4]);
            write(world, 4, 1);
        },
        shows: &[FaultClass::Reconfigured, FaultClass::Left],
    },
];

/// Everybody is up again and can hear everybody: they come to an end that is the same for all.
fn ends_well(world: &mut World, told: &str) {
    world.calm();
    world.heal();
    let ids: Vec<i64> = world.ensemble().ids().map(|id| id.0).collect();
    world.start_all(ids.iter().copied());
    world.run_for(MILLI).unwrap();
    // An observer that promised an epoch which came to nothing waits for a later one.
    let promised = |w: &World, id: i64| w.durable(id).map(|durable| durable.accepted_epoch);
    let able = |w: &World| -> Vec<ServerId> {
        let epoch = w.leader().and_then(|leader| w.brief(leader.0)).map(|b| b.current_epoch);
        let may = |id: &i64| *id <= 3 || promised(w, *id) <= epoch;
        ids.iter().filter(|id| may(id)).map(|id| ServerId(*id)).collect()
    };
    let settled = |w: &World| w.is_settled_among(able(w));
    assert!(world.run_until(settled, 15 * SECOND).unwrap().is_some(), "{told}: no leader");
    let mut applied = None;
    for _ in 0..5 {
        let request = world.propose(1, 1).unwrap().unwrap();
        let outcome = |w: &World| w.checker().outcome(request);
        let is_over = |w: &World| !matches!(outcome(w), Some(Outcome::Asked | Outcome::Accepted));
        world.run_until(is_over, SECOND).unwrap();
        if let Some(Outcome::Applied(zxid)) = outcome(world) {
            applied = Some(zxid);
            break;
        }
        // Somebody had not noticed yet that a link is gone.
        world.run_until(settled, 15 * SECOND).unwrap();
    }
    let applied = applied.unwrap_or_else(|| panic!("{told}: no write is served"));
    let read = world.read(2).unwrap().unwrap();
    let answer = |w: &World| w.checker().answer(2, read);
    world.run_until(|w| answer(w) != Some(Answer::Asked), SECOND).unwrap();
    assert!(matches!(answer(world), Some(Answer::Read(z)) if z >= applied), "{told}: no read");
    let level = |w: &World| {
        let commits = w.checker().commits();
        able(w).iter().all(|id| w.applied(id.0).is_some_and(|state| state.count == commits))
    };
    assert!(
        world.run_until(level, 5 * SECOND).unwrap().is_some(),
        "{told}: somebody lacks something"
    );
}

/// What is counted until the cut.
#[derive(Clone, Copy, Debug)]
enum After {
    Outputs,
    Writes,
}

/// A cut of a server after so many of what is counted.
type Cut = (i64, u64);

/// Tells the scenario with these cuts, each counted from the one before it, if there is one; whether all of them
/// were made.
fn cut(
    scenario: &Scenario,
    after: After,
    survival: Survival,
    (first, second): (Cut, Option<Cut>),
    again: Option<Duration>,
) -> bool {
    let mut world = scenario.world(survival);
    let class = match after {
        After::Outputs => FaultClass::CrashInsideStep,
        After::Writes => FaultClass::CrashInsideSync,
    };
    let before = world.coverage().of(class);
    match after {
        After::Outputs => world.crash_after_outputs(first.0, first.1, again),
        After::Writes => world.crash_after_writes(first.0, first.1, again),
    }
    if let Some((victim, count)) = second {
        match after {
            After::Outputs => world.then_crash_after_outputs(victim, count, again),
            After::Writes => world.then_crash_after_writes(victim, count, again),
        }
    }
    (scenario.act)(&mut world);
    let made = world.coverage().of(class) - before == 1 + u64::from(second.is_some());
    if made {
        let name = scenario.name;
        let cuts = format!("{name}: cut after {after:?} {first:?} {second:?}, {survival:?}");
        ends_well(&mut world, &cuts);
    }
    made
}

/// Tells the scenario until all that is counted comes before the cut; returns how often a server was cut.
fn cut_everywhere(
    scenario: &Scenario,
    after: After,
    survival: Survival,
    victim: i64,
    again: Option<Duration>,
) -> u64 {
    let made = |k: &u64| cut(scenario, after, survival, ((victim, *k), None), again);
    (0..).take_while(made).count() as u64
}

/// The same with every second cut behind each first one, of any server; returns how many pairs there were. A
/// `stride` of more than one leaves out those between.
fn cut_twice_everywhere(
    scenario: &Scenario,
    after: After,
    survival: Survival,
    again: Option<Duration>,
    stride: usize,
) -> u64 {
    let ids: Vec<i64> = scenario.world(survival).ensemble().ids().map(|id| id.0).collect();
    let mut pairs = 0;
    for first in &ids {
        for k in (0..).step_by(stride) {
            if !cut(scenario, after, survival, ((*first, k), None), again) {
                break;
            }
            for second in &ids {
                let both = |j: &u64| ((*first, k), Some((*second, *j)));
                let made = |j: &u64| cut(scenario, after, survival, both(j), again);
                pairs += (0..).step_by(stride).take_while(made).count() as u64;
            }
        }
    }
    pairs
}

/// At each boundary between two writes, a server loses its power: the one before survives, the one behind
/// does not, and nobody has been told.
#[test]
fn a_server_cut_at_every_boundary_between_writes_of_every_scenario() {
    let mut cuts = 0;
    for scenario in SCENARIOS {
        let before = cuts;
        let ids: Vec<_> = scenario.world(Survival::Nothing).ensemble().ids().collect();
        for again in [None, Some(20 * MILLI)] {
            for victim in &ids {
                cuts += cut_everywhere(scenario, After::Writes, Survival::Nothing, victim.0, again);
            }
        }
        println!("{:>6} cuts: {}", cuts - before, scenario.name);
    }
    assert!(cuts > 300, "only {cuts}");
}

#[test]
fn a_server_cut_at_every_output_of_every_scenario() {
    let mut cuts = 0;
    for scenario in SCENARIOS {
        let mut whole = scenario.world(Survival::Everything);
        (scenario.act)(&mut whole);
        let missing = whole.coverage().missing(scenario.shows);
        assert!(missing.is_empty(), "{}: {missing:?} did not happen", scenario.name);
        let before = cuts;
        for survival in [Survival::Nothing, Survival::Everything] {
            for again in [None, Some(20 * MILLI)] {
                for victim in whole.ensemble().ids().map(|id| id.0).collect::<Vec<_>>() {
                    cuts += cut_everywhere(scenario, After::Outputs, survival, victim, again);
                }
            }
        }
        println!("{:>6} cuts: {}", cuts - before, scenario.name);
    }
    assert!(cuts > 1_000, "only {cuts}");
}

/// Two cuts, the second at every boundary between writes that comes behind the first, of the same server, started
/// again, or another. The first one comes back at once, or when all do.
#[test]
fn two_cuts_at_every_two_boundaries_between_writes_of_every_scenario() {
    let mut all = 0;
    for scenario in SCENARIOS {
        let mut pairs = 0;
        for again in [None, Some(20 * MILLI)] {
            pairs += cut_twice_everywhere(scenario, After::Writes, Survival::Nothing, again, 1);
        }
        println!("{pairs:>6} pairs: {}", scenario.name);
        all += pairs;
    }
    assert!(all > 1_000, "only {all}");
}

/// The same behind outputs; of these there are so many that only some of them are paired in every run.
#[test]
fn two_cuts_at_some_of_the_outputs_of_every_scenario() {
    two_cuts_at_outputs(4);
}

/// The same behind every output.
#[test]
#[ignore = "takes minutes: cargo test --release -p quorate-sim --test all crash_points -- --ignored"]
fn two_cuts_at_every_two_outputs_of_every_scenario() {
    two_cuts_at_outputs(1);
}

fn two_cuts_at_outputs(stride: usize) {
    let mut all = 0;
    for scenario in SCENARIOS {
        let mut pairs = 0;
        for survival in [Survival::Nothing, Survival::Everything] {
            let again = Some(20 * MILLI);
            pairs += cut_twice_everywhere(scenario, After::Outputs, survival, again, stride);
        }
        println!("{pairs:>6} pairs: {}", scenario.name);
        all += pairs;
    }
    assert!(all > 1_000, "only {all}");
}
