//! Leaders, and how soon: three to nine servers whose histories differ, and no clients.
//!
//! Where histories differ no transactions were committed, so a leader is demanded only if a quorum shares
//! the newest history: an unlucky election may give the leader of a minority a later epoch, and no server
//! else the history to follow it.

use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::campaign::accidents::{Course, Kind};
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose, pick};
use crate::campaign::run::{Disks, Run, can, is_settled};
use crate::campaign::{Failure, Outcome, background};
use crate::disk::DiskConfig;
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::network::{NetworkConfig, up_to};
use crate::world::{World, WorldConfig};

/// How long a new leader is watched for staying one.
const WATCH: Duration = Duration::from_secs(1);

/// How likely each accident is.
const ACCIDENTS: &[(Kind, u64)] = &[
    (Kind::Crash, 2),
    (Kind::LeaderCrash, 1),
    (Kind::Partition, 2),
    (Kind::OneIsAlone, 1),
    (Kind::OneWay, 1),
    (Kind::Heal, 1),
    (Kind::Pause, 1),
    (Kind::Cuts, 1),
    (Kind::BlackHole, 1),
    (Kind::Transfer, 2),
    (Kind::Wipe, 1),
    (Kind::ClockJump, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
];

struct Elections {
    run: Run,
    /// Whether every server's history ends at the same zxid.
    same_history: bool,
}

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    Elections::new(case, false).run.disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut elections = Elections::new(case, keep_log);
    let outcome = elections.tell();
    (outcome, elections.run.world)
}

impl Elections {
    fn new(case: &Case, keep_log: bool) -> Self {
        let mut draw = Draw::new(case);
        let ensemble = ensemble(&mut draw.rng, case.servers);
        let same_history = draw.rng.below(10) < 7;
        let network = network(&mut draw);
        let tick = draw.pick(&[100, 200, 200, 400, 2000]);
        let disks = histories(&mut draw.rng, &ensemble, same_history);
        let changes = same_history && ensemble.is_plain() && ensemble.ids().count() > 2;
        let changes = changes && case.fork(Purpose::Memberships, 0).below(4) == 0;
        let spare = ensemble.ids().last().map_or(1, |last| last.0 + 1);
        let empty_history = disks.values().all(|contents| contents.last() == Zxid::ZERO);
        let config = WorldConfig {
            may_change: changes,
            spares: if changes { vec![ServerId(spare)] } else { Vec::new() },
            disks,
            timing: Timing { tick: Duration::from_millis(tick), ..Timing::default() },
            finish_when_settled: draw.rng.below(8) > 0,
            network,
            disk: disk(&mut draw),
            keep_log,
            ..WorldConfig::new(ensemble)
        };
        let config = background::world(&mut draw, config);
        let config = background::memberships(&mut draw, config);
        let config = background::election(case, config);
        let calm = draw.rng.below(8) == 0;
        let course = Course::dense(ACCIDENTS, if calm { 0 } else { 6 });
        let mut run = Run::new(draw, config, None, &course);
        if calm {
            run.world.calm();
        }
        // Only who has an empty history lacks nothing with an empty disk.
        run.may_wipe = empty_history;
        Self { run, same_history }
    }

    fn tell(&mut self) -> Result<Outcome, Failure> {
        let run = &mut self.run;
        let late = run.rng.below(3) == 0;
        for (at, id) in run.ids.iter().enumerate() {
            let mut wait = up_to(&mut run.rng, Duration::from_millis(300));
            if late && at == 0 {
                wait += Duration::from_millis(800);
            }
            run.world.start_after(*id, wait);
        }
        let first = up_to(&mut run.rng, Duration::from_millis(1500));
        run.pass(first)?;
        run.meet_accidents()?;
        run.repair()?;
        let mut times = run.times();
        // What is still to be noticed: a leader without a quorum, links that broke or will break.
        let (noticing, silent_max) = (run.noticing, run.silent_max);
        if self.same_history {
            let start = run.world.now();
            let limit = noticing + run.election_max;
            let led = run.world.run_until(|w| w.leader().is_some(), limit)?;
            if led.is_none() && run.is_left_behind() {
                return Ok(Outcome::of(&run.world, run.past, times));
            }
            times.repaired = Some(run.found("no leader", limit, led)?);
            let limit = noticing + silent_max + run.election_max;
            let all = run.world.run_until(is_settled, limit)?;
            run.found("not all follow", limit, all)?;
            times.settled = Some(run.world.now() - start);
            run.world.run_for(silent_max + WATCH)?;
            let all = run.world.run_until(is_settled, limit)?;
            // A leader may be lost once more by then, and the next election come to nothing for the same reason.
            if all.is_none() && run.is_left_behind() {
                return Ok(Outcome::of(&run.world, run.past, times));
            }
            run.found("not all follow in the end", limit, all)?;
            self.stays()?;
            if let Some((failover, rejoined)) = self.fail_over()? {
                (times.failover, times.rejoined) = (Some(failover), Some(rejoined));
                self.run.nobody_can_follow()?;
            }
            self.run.non_members_claim()?;
            self.run.one_is_distrusted()?;
        } else {
            // An unlucky election may give a minority's leader a later epoch; so the question is asked
            // again in the end.
            let demanded = self.newest_is_a_quorum();
            let patience = self.run.election_max;
            let limit = if demanded { 2 * noticing + patience } else { patience };
            let led = self.run.world.run_until(|w| w.leader().is_some(), limit)?;
            if demanded && self.newest_is_a_quorum() {
                self.run.found("no leader of the newest", limit, led)?;
            }
        }
        Ok(Outcome::of(&self.run.world, self.run.past, times))
    }

    /// The leader of a settled ensemble crashes; the others go on, and it comes back to follow. Returns
    /// how long each took.
    fn fail_over(&mut self) -> Result<Option<(Duration, Duration)>, Failure> {
        let run = &mut self.run;
        let Some(old) = run.world.leader() else { return Ok(None) };
        if !run.world.ensemble().is_quorum(|id| id != old) {
            return Ok(None);
        }
        let power = run.rng.below(4) == 0;
        run.world.crash(old.0, if power { CrashKind::Power } else { CrashKind::Process })?;
        let noticing = if power { run.noticing } else { Duration::ZERO };
        let limit = noticing + run.election_max;
        let others: Vec<_> = run.world.ensemble().ids().filter(|id| *id != old).collect();
        let settled =
            |w: &World| w.is_settled_among(others.iter().copied().filter(|id| can(w, *id)));
        let found = run.world.run_until(settled, limit)?;
        let failover = run.found("no other leader", limit, found)?;
        let new = run.world.leader();
        run.world.start(old.0);
        let limit = noticing + run.election_max;
        let found = run.world.run_until(is_settled, limit)?;
        let rejoined = run.found("the old leader does not follow", limit, found)?;
        if run.world.leader() != new {
            return Err(Failure::Unstable { state: run.state() });
        }
        Ok(Some((failover.saturating_sub(noticing), rejoined)))
    }

    /// A leader that all follow stays one.
    fn stays(&mut self) -> Result<(), Failure> {
        let world = &mut self.run.world;
        let epoch = |w: &World| w.leader().and_then(|id| w.brief(id.0)).map(|b| b.current_epoch);
        let before = (world.leader(), epoch(world));
        world.run_for(WATCH)?;
        if (world.leader(), epoch(world)) != before || !is_settled(world) {
            return Err(Failure::Unstable { state: self.run.state() });
        }
        Ok(())
    }

    /// Whether those whose history ends where the best vote's does are a quorum by themselves.
    fn newest_is_a_quorum(&self) -> bool {
        let world = &self.run.world;
        let ensemble = world.ensemble();
        let of = |id: ServerId| world.durable(id.0).cloned().unwrap_or_default();
        let best = ensemble
            .ids()
            .filter(|id| ensemble.may_lead(*id))
            .map(|id| (of(id).current_epoch, of(id).last()))
            .max();
        ensemble.is_quorum(|id| best.is_some_and(|(_, last)| of(id).last() == last))
    }
}

/// Three to nine servers: mostly equal voters, sometimes with observers, sometimes in weighted groups.
fn ensemble(rng: &mut Rng, wanted: Option<u8>) -> Ensemble {
    let drawn = 3 + i64::try_from(rng.below(7)).unwrap_or(0);
    let servers = wanted.map_or(drawn, i64::from);
    match rng.below(10) {
        0..6 => Ensemble::majority(servers),
        6 | 7 => {
            let observers = 1 + i64::try_from(rng.below(2)).unwrap_or(0);
            let voters = (servers - observers).max(1);
            Ensemble::majority(voters).with_observers(voters + 1..=servers)
        }
        _ => {
            let mut groups = vec![Vec::new(); 1 + pick(rng, 3)];
            for id in 1..=servers {
                let at = pick(rng, groups.len());
                groups[at].push((id, rng.below(3)));
            }
            groups.retain(|group| !group.is_empty());
            groups[0][0].1 += 1;
            let groups: Vec<&[(i64, u64)]> = groups.iter().map(Vec::as_slice).collect();
            Ensemble::hierarchical(&groups)
        }
    }
}

/// What the disks hold: epochs as some earlier run may have left them. An epoch that anybody took over
/// was promised by a quorum before.
fn histories(rng: &mut Rng, ensemble: &Ensemble, same: bool) -> Disks {
    let mut all = Disks::new();
    let first = i64::try_from(rng.below(3)).unwrap_or(0);
    let common = Zxid::new(Epoch(first), Counter(u32::from(first > 0) * 7));
    for id in ensemble.ids() {
        let current = first + i64::try_from(rng.below(2)).unwrap_or(0);
        let mut last = common;
        if !same && rng.below(3) == 0 {
            let counter = u32::try_from(rng.below(4)).unwrap_or(0) + 1;
            last = Zxid::new(Epoch(current), Counter(counter));
        }
        // Everybody's history is a part of the common one, or that and some of an epoch behind it.
        let mut contents = crate::disk::Contents::ending(current, current, common.min(last));
        while contents.last() < last {
            contents = contents.and(last.epoch().0);
        }
        all.insert(id, contents);
    }
    let newest = all.values().map(|d| d.current_epoch.0).max().unwrap_or(0);
    let lags: Vec<ServerId> = ensemble.ids().filter(|_| rng.below(4) == 0).collect();
    let may_lag = ensemble.is_quorum(|id| !lags.contains(&id));
    for (id, durable) in &mut all {
        if !(may_lag && lags.contains(id)) {
            durable.accepted_epoch = Epoch(newest + i64::try_from(rng.below(3)).unwrap_or(0));
        }
    }
    all
}

fn network(draw: &mut Draw<'_>) -> NetworkConfig {
    let far = [(1_000, 8_000), (20_000, 60_000)];
    let (mut min, mut max) = draw.pick(&[(100, 1_000), (100, 2_000)]);
    let slow = draw.pick(&far);
    if draw.one_in(2, Condition::SlowNetwork) {
        (min, max) = slow;
    }
    let slow_writing = draw.one_in(2, Condition::SlowWriting);
    let fair = NetworkConfig {
        latency_min: Duration::from_micros(min),
        latency_max: Duration::from_micros(max),
        spike: draw.sometimes(Condition::DelaySpikes, 800),
        spike_max: Duration::from_millis(300),
        reset: draw.sometimes(Condition::LinkResets, 300),
        duplicate: draw.sometimes(Condition::DuplicateNotifications, 2_000),
        split: draw.sometimes(Condition::SplitMessages, 4_000),
        write_max: Duration::from_micros(if slow_writing { 5_000 } else { 50 }),
        silent_min: Duration::from_millis(500),
        silent_max: Duration::from_secs(2),
        ..NetworkConfig::default()
    };
    background::network(draw, fair)
}

fn disk(draw: &mut Draw<'_>) -> DiskConfig {
    let fair = DiskConfig {
        sync_max: Duration::from_millis(draw.pick(&[1, 5, 20])),
        slow: if draw.one_in(3, Condition::SlowDisk) { 6_000 } else { 0 },
        ..DiskConfig::default()
    };
    background::disk(draw, fair)
}
