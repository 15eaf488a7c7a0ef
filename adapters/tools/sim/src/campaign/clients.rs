//! Servers with clients: ZooKeeper's sessions, watches and ephemeral nodes, through everything that happens to an ensemble.
//!
//! Three to six clients share a small tree, a quota, a container and a TTL node, and nodes that not all of them may read.
//! Servers may be ZooKeeper's: they speak and pair as those do, lead as those do, and may start again as ours, or end of what
//! clients ask for. Others are stopped in order. Leaders stand still, wall clocks are set, disks fill, members come and go. In the end all clients are served; then they
//! vanish, and their sessions with them, and what was due. What they are told is judged as it comes, see the
//! [page of the crate](crate#what-is-checked).

use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;

use crate::campaign::accidents::{Course, Kind};
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose, pick};
use crate::campaign::run::{Run, can, is_settled};
use crate::campaign::{Failure, Outcome, histories};
use crate::ensemble::Ensemble;
use crate::faults::FaultClass;
use crate::network::{Dialect, up_to};
use crate::rule::Violation;
use crate::world::{World, WorldConfig};

/// How likely each accident is. No monotonic clock jumps: sessions go by the leader's.
const ACCIDENTS: &[(Kind, u64)] = &[
    (Kind::Crash, 3),
    (Kind::LeaderCrash, 3),
    (Kind::EverybodyCrashes, 1),
    (Kind::Partition, 1),
    (Kind::LeaderIsAlone, 2),
    (Kind::Heal, 3),
    (Kind::Pause, 3),
    (Kind::Cuts, 2),
    (Kind::LongAbsence, 1),
    (Kind::Transfer, 2),
    (Kind::Wipe, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
    (Kind::WallClock, 3),
    (Kind::LeaderPause, 2),
    (Kind::LostAtExpiry, 3),
    (Kind::LeaderDisk, 2),
];

/// The most ticks for which a client asks that its session lives.
const TICKS_MAX: u32 = 6;
/// How far wall clocks are apart at first, and how far they are set, at most.
const WALLS_APART_MAX: Duration = Duration::from_secs(10 * 60);
const WALL_SET_MAX_MS: u64 = 3_600_000;

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    begin(case, false).disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut run = begin(case, keep_log);
    let outcome = run.clients();
    (outcome, run.world)
}

fn begin(case: &Case, keep_log: bool) -> Run {
    let mut draw = Draw::new(case);
    let voters = draw.pick(&[3, 3, 3, 5, 1]);
    let ensemble = match case.servers.map(i64::from) {
        Some(wanted) => Ensemble::majority(wanted),
        None if draw.rng.below(3) == 0 => {
            Ensemble::majority(voters).with_observers(voters + 1..=voters + 1)
        }
        None => Ensemble::majority(voters),
    };
    let tick = Duration::from_millis(draw.pick(&[100, 200, 400]));
    let count = 3 + usize::try_from(draw.rng.below(4)).unwrap_or(0);
    // Draws of their own, so that the others stay what they are.
    let mut members = case.fork(Purpose::Memberships, 0);
    let may_change = members.below(3) == 0 && ensemble.is_plain() && ensemble.members().len() > 2;
    let next = 1 + i64::try_from(ensemble.members().len()).unwrap_or(0);
    let spares = if may_change { vec![ServerId(next)] } else { Vec::new() };
    let mut leases = case.fork(Purpose::Leases, 0);
    let lease = (leases.below(3) == 0).then(|| tick * [1, 2, 5][pick(&mut leases, 3)]);
    let leases_change = draw.note(leases.below(2) == 0 && lease.is_some(), Condition::LeasesChange);
    let apart = case.fork(Purpose::Walls, 0).below(2) == 0;
    let apart = draw.note(apart, Condition::WallClocksApart);
    let mut dialects = case.fork(Purpose::Dialects, 0);
    let mixed = draw.note(dialects.below(3) == 0, Condition::OldVersions);
    let is_java = |_: &ServerId| dialects.below(2) == 0 && mixed;
    let java = ensemble.ids().filter(is_java).map(|id| (id, Dialect::V38)).collect();
    let kinds_change = mixed && case.fork(Purpose::Kinds, 0).below(2) == 0;
    let kinds_change = draw.note(kinds_change, Condition::KindsChange);
    let poison = kinds_change && case.fork(Purpose::Poison, 0).below(2) == 0;
    let poison = draw.note(poison, Condition::Poison);
    let config = WorldConfig {
        old: java,
        kinds_change,
        timing: Timing { tick, ..Timing::default() },
        spares,
        may_change,
        lease,
        leases_change,
        walls_apart: if apart { WALLS_APART_MAX } else { Duration::ZERO },
        history: histories::history(&mut draw),
        application_max: Duration::from_micros(draw.pick(&[50, 1_000, 10_000])),
        network: histories::network(&mut draw),
        disk: histories::disk(&mut draw),
        keep_log,
        clients: if draw.note(true, Condition::Clients) { count } else { 0 },
        ..WorldConfig::new(ensemble)
    };
    let drift = if draw.one_in(2, Condition::Drift) { 50_000 } else { 0 };
    let course = Course::dense(ACCIDENTS, 10);
    let run = Run::new(draw, WorldConfig { drift, ..config }, None, &course);
    Run { poison, ..run }
}

impl Run {
    fn clients(&mut self) -> Result<Outcome, Failure> {
        for id in self.ids.clone() {
            let wait = up_to(&mut self.rng, Duration::from_millis(200));
            self.world.start_after(id, wait);
        }
        let first = up_to(&mut self.rng, Duration::from_secs(4));
        self.pass(first)?;
        self.meet_accidents()?;
        self.repair()?;
        let mut times = self.times();
        // A learner at the end of what was written may be fed a transaction at a time.
        let written = u32::try_from(self.world.checker().commits()).unwrap_or(u32::MAX);
        let limit = self.election_limit() + self.round_trip_max * written;
        let led = self.world.run_until(|world| world.leader().is_some(), limit)?;
        if led.is_none() && self.is_left_behind() {
            return Ok(Outcome::of(&self.world, self.past, times));
        }
        let settled = self.world.run_until(is_settled, limit)?;
        times.settled = Some(self.found("not all follow", limit, settled)?);
        self.are_served()?;
        let more = up_to(&mut self.rng, Duration::from_secs(1));
        self.pass(more)?;
        self.world.clients_vanish();
        self.pass(self.patience())?;
        let all = self.world.ensemble().ids();
        let able: Vec<_> = all.filter(|id| can(&self.world, *id)).collect();
        self.found(
            "not all have applied everything",
            limit,
            self.world.trees_are_level(able.into_iter()).then_some(()),
        )?;
        self.world.check_clients()?;
        let explained = self.world.explain_clients()? as u64;
        let outcome = Outcome::of(&self.world, self.past, times);
        let replies = self.world.judge().map_or(0, |judge| judge.replies);
        Ok(Outcome { acknowledged: replies, explained, ..outcome })
    }

    /// Every client is served, as soon as it has noticed what was broken.
    fn are_served(&mut self) -> Result<(), Failure> {
        let (since, limit) = (self.world.now(), self.patience());
        let served = self.world.run_until(|world| world.clients_are_served(since), limit)?;
        self.found("not all clients are served", limit, served).map(|_| ())
    }

    /// Behind every fourth accident a server is stopped in order, and before that gives away its leadership, if an operator
    /// thinks of it.
    pub(super) fn is_drained(&mut self, accident: u32) -> Result<(), Violation> {
        let mut rng = self.case.fork(Purpose::Draining, accident);
        if self.world.judge().is_none() || rng.below(4) > 0 {
            return Ok(());
        }
        let any = self.ids[pick(&mut rng, self.ids.len())];
        let leader = self.world.leader().map_or(any, |leader| leader.0);
        let id = if rng.below(2) == 0 { leader } else { any };
        if id == leader && rng.below(2) == 0 {
            self.world.transfer(leader, None)?;
        }
        self.world.drain(id, up_to(&mut rng, self.tick() * 2));
        Ok(())
    }

    /// Behind every third accident clients of servers of ZooKeeper ask for what ends those, if any do.
    pub(super) fn is_poisoned(&mut self, accident: u32) {
        let mut rng = self.case.fork(Purpose::Poison, accident);
        if self.poison && rng.below(3) == 0 {
            let count = 1 + rng.below(4);
            self.world.is_poisoned(&mut rng, count);
        }
    }

    /// By an hour at most, and often by little: forward or back.
    pub(super) fn set_a_wall_clock(&mut self, rng: &mut Rng, id: i64, leader: i64) {
        let which = if rng.below(2) == 0 { leader } else { id };
        let most = [1_000, 60_000, WALL_SET_MAX_MS][pick(rng, 3)];
        let by = i64::try_from(1 + rng.below(most)).unwrap_or(0);
        self.world.set_wall_clock(which, if rng.below(2) == 0 { by } else { -by });
    }

    /// Up to twice as long as any session may be silent; its clock goes on, or stands still, too.
    pub(super) fn leader_stands_still(
        &mut self,
        rng: &mut Rng,
        leader: i64,
    ) -> Result<(), Violation> {
        let most = 2 * TICKS_MAX * self.tick();
        if rng.below(3) == 0 {
            self.world.suspend(leader);
        } else {
            self.world.pause(leader);
        }
        self.world.hits_clients(FaultClass::LeaderPause);
        self.pass(up_to(rng, most))?;
        self.world.resume(leader)
    }

    /// A client says nothing. Around the time at which its session may end for that, the leadership goes to another server,
    /// or the leader stands still; and the client comes back.
    pub(super) fn leader_is_lost_at_expiry(
        &mut self,
        rng: &mut Rng,
        leader: i64,
        id: i64,
    ) -> Result<(), Violation> {
        let Some((client, timeout)) = self.world.silence_a_client(rng.next_u64()) else {
            return Ok(());
        };
        self.pass(timeout * 7 / 10 + up_to(rng, timeout))?;
        self.world.hits_clients(FaultClass::LeaderLostAtExpiry);
        let speaks_first = rng.below(2) == 0;
        if speaks_first {
            self.world.client_speaks(client);
        }
        match rng.below(4) {
            0 => {
                self.world.pause(leader);
                self.pass(up_to(rng, timeout))?;
                self.world.client_speaks(client);
                self.pass(up_to(rng, timeout / 4))?;
                self.world.resume(leader)?;
            }
            drawn => self.world.transfer(leader, (drawn > 1).then_some(id))?,
        }
        self.pass(up_to(rng, timeout / 2))?;
        self.world.client_speaks(client);
        Ok(())
    }

    pub(super) fn leader_cannot_write(
        &mut self,
        rng: &mut Rng,
        leader: i64,
        soon: Duration,
    ) -> Result<(), Violation> {
        let full = rng.below(2) == 0;
        let set = |world: &mut World, on| {
            if full { world.fill_disk(leader, on) } else { world.hang_disk(leader, on) }
        };
        set(&mut self.world, true);
        self.pass(2 * soon)?;
        set(&mut self.world, false);
        Ok(())
    }

    fn tick(&self) -> Duration {
        self.sync_time / Timing::default().sync_limit
    }

    /// As long as a session may live that is not heard: twice its time-out, `syncLimit`, two ticks, and an election. A client
    /// that was told nothing comes back in that time, too.
    fn patience(&self) -> Duration {
        let tick = self.tick();
        2 * TICKS_MAX * tick + self.sync_time + 2 * tick + self.election_limit()
    }
}
