//! A run of a campaign: the world, its clients, and the accidents that are still to come.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::rng::Rng;

use crate::campaign::accidents::{Accident, Course};
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose, pick};
use crate::campaign::{Failure, Times};
use crate::disk::Contents;
use crate::network::up_to;
use crate::rule::Violation;
use crate::world::{World, WorldConfig};

/// How long an election may take once those that are needed can hear one another and know it.
pub const ELECTION_MAX: Duration = Duration::from_secs(3);

/// What clients do.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    /// The longest pause between two requests.
    pub(super) pause_max: Duration,
    /// The most bytes of a write beyond what it needs.
    pub(super) padding: usize,
    /// How many cells they write.
    pub(super) cells: u64,
}

/// A case that is being run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) case: Case,
    pub(super) world: World,
    pub(super) ids: Vec<i64>,
    /// How long it may take to notice that a link or a leader is gone.
    pub(super) noticing: Duration,
    pub(super) silent_max: Duration,
    /// How long a message and its answer take, but for spikes.
    pub(super) round_trip_max: Duration,
    /// How long a member of an ensemble that serves may be silent.
    pub(super) sync_time: Duration,
    /// How long a prospective leader has (`initLimit`).
    pub(super) init_time: Duration,
    /// How long an election may take. A leader of ZooKeeper waits for `initLimit` for supporters that have gone on to
    /// another round.
    pub(super) election_max: Duration,
    pub(super) clients: Option<Clients>,
    /// Whether clients ask for what ends servers of ZooKeeper.
    pub(super) poison: bool,
    /// What clients draw from; forked anew after each accident.
    pub(super) asking: Rng,
    /// For what is done in the end.
    pub(super) rng: Rng,
    pub(super) accidents: Vec<Accident>,
    /// Whether an observer with an empty disk lacks nothing that it promised.
    pub(super) may_wipe: bool,
    /// How many transactions were committed before.
    pub(super) past: u64,
    /// What it meets unless it is left out.
    pub(super) disturbances: Vec<Disturbance>,
}

impl Run {
    /// A run in which nothing has happened yet. Servers start within `start_max`; everything that is left
    /// to draw is drawn here.
    pub(super) fn new(
        mut draw: Draw<'_>,
        config: WorldConfig,
        clients: Option<Clients>,
        course: &Course<'_>,
    ) -> Self {
        let case = draw.case;
        let spares = config.spares.iter().copied();
        let ids: Vec<i64> = config.ensemble.ids().chain(spares).map(|id| id.0).collect();
        let silent_max = config.network.silent_max;
        let round_trip_max = 2 * config.network.latency_max;
        let noticing = config.timing.init_time().max(silent_max);
        let sync_time = config.timing.sync_time();
        let init_time = config.timing.init_time();
        let crashes = draw.one_in(2, Condition::CrashesWithinSteps);
        let chance = 1 + draw.rng.below(300);
        let (least, most) = course.count;
        let count = least + draw.rng.below(most - least + 1);
        let mut accidents: Vec<_> = (0..count).map(|at| Accident::draw(case, at, course)).collect();
        if config.may_change && most > 0 {
            Accident::add_changes(case, course, &mut accidents);
        }
        let mut config = config;
        config.disk.forgets = case.plant_loss;
        let mut world = World::new(case.fork(Purpose::World, 0).next_u64(), config);
        if crashes {
            world.crash_within_steps(chance);
        }
        let mut disturbances = draw.met;
        disturbances.extend(accidents.iter().map(Accident::disturbance));
        let waits = if ids.iter().any(|id| world.refers(*id)) { init_time } else { Duration::ZERO };
        // By generation an attempt that splits the votes costs a time-out, and the next one is drawn anew: on slow
        // networks a dozen voters may take six of them.
        let split = if case.generation { ELECTION_MAX } else { Duration::ZERO };
        Self {
            past: world.checker().commits(),
            world,
            ids,
            noticing,
            silent_max,
            round_trip_max,
            sync_time,
            init_time,
            election_max: ELECTION_MAX + waits + split,
            clients,
            poison: false,
            asking: case.fork(Purpose::Clients, 0),
            rng: case.fork(Purpose::End, 0),
            accidents,
            may_wipe: true,
            disturbances,
            case: case.clone(),
        }
    }

    /// Lets a while pass; clients write and read, where there are any.
    pub(super) fn pass(&mut self, time: Duration) -> Result<(), Violation> {
        let Some(Clients { pause_max, padding, cells }) = self.clients.clone() else {
            return self.world.run_for(time);
        };
        let end = self.world.now() + time;
        while self.world.now() < end {
            let id = self.ids[pick(&mut self.asking, self.ids.len())];
            if self.asking.below(5) == 0 {
                let cell = self.cell(cells);
                self.world.read_cell(id, cell)?;
            } else {
                // Some ask in bursts.
                for _ in 0..=self.asking.below(8).saturating_sub(4) {
                    let cell = self.cell(cells);
                    let padding = pick(&mut self.asking, padding + 1);
                    self.world.propose_padded(id, cell, padding)?;
                }
            }
            let wait = up_to(&mut self.asking, pause_max);
            self.world.run_for(wait + Duration::from_micros(1))?;
        }
        Ok(())
    }

    fn cell(&mut self, cells: u64) -> u8 {
        u8::try_from(self.asking.below(cells)).unwrap_or(0)
    }

    /// Ends every fault, and starts every server that is down.
    pub(super) fn repair(&mut self) -> Result<(), Violation> {
        self.world.calm();
        self.world.heal();
        for id in self.ids.clone() {
            self.world.black_hole(id, false);
            self.world.resume(id)?;
            self.world.undeafen(id)?;
            self.world.distrust(id, false);
            self.world.little_room(id, false)?;
            self.world.start(id);
        }
        Ok(())
    }

    /// What was waited for, if it came.
    pub(super) fn found<T>(
        &self,
        what: &'static str,
        limit: Duration,
        it: Option<T>,
    ) -> Result<T, Failure> {
        it.ok_or_else(|| Failure::Stuck { what, limit, state: self.state() })
    }

    /// Where the servers stand.
    pub(super) fn state(&self) -> String {
        self.ids.iter().fold(format!("{:?}\n", self.world.ensemble()), |all, id| {
            let last = self.world.durable(*id).map(Contents::last);
            let count = self.world.applied(*id).map(|state| state.count);
            let brief = self.world.brief(*id);
            let refers = if self.world.refers(*id) { ", elects as ZooKeeper's do" } else { "" };
            all + &format!("  {id}: {brief:?}, ends at {last:?}, applied {count:?}{refers}\n")
        }) + &self.world.clients_state()
    }

    /// Whether elections may come to nothing again and again: who takes over no membership that it is told of in one
    /// may win it, and turns those away who know a newer one; so may the next. ZooKeeper wants `reconfigEnabled` alike
    /// everywhere.
    pub(super) fn is_left_behind(&self) -> bool {
        let behind = |id| self.world.is_left_behind(id) || self.world.knows_less(id);
        self.ids.iter().any(|id| behind(ServerId(*id)))
    }

    /// Durations, of which none is measured yet.
    pub(super) fn times(&self) -> Times {
        Times { noticing: self.noticing, ..Times::default() }
    }
}

/// Whether everybody serves who can.
pub(super) fn is_settled(world: &World) -> bool {
    world.is_settled_among(world.ensemble().ids().filter(|id| can(world, *id)))
}

/// Whether a server can follow the present leader: not an observer whose history is of a later epoch, which no
/// election finds. What an observer has promised does not keep it away. Who is no member may follow or not, and so may
/// who does not know of a change and is not to hear of one in an election.
pub(super) fn can(world: &World, id: ServerId) -> bool {
    let leader = world.leader().and_then(|leader| world.brief(leader.0));
    let Some(member) = world.ensemble().member(id) else { return false };
    let newest = world.durable(id.0).map(|held| held.current_epoch.max(held.last().epoch()));
    // So it is with one that stood for a later generation when it still had a vote.
    let stood = world.brief(id.0).zip(leader).is_some_and(|(own, led)| own.round > led.round);
    let waits = world.checker().by_generation && stood;
    let able = leader.is_none_or(|leader| newest <= Some(leader.current_epoch));
    !world.is_left_behind(id) && (member.voter || (!waits && able))
}

/// What disks hold, by server.
pub(super) type Disks = BTreeMap<ServerId, Contents>;
