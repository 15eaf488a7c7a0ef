//! Links that are broken and stay so: an ensemble that can be led is led, whatever its servers wish.
//!
//! ```text
//!   all hear all ─► some links pass one way, or none ─► nothing changes for a minute
//!                                                        └── two initLimits after that is noticed a leader
//!                                                            serves, all but a hundredth of the time
//! ```
//!
//! The other stories ask who leads when everything is repaired. Here nothing is: one server alone may hear a quorum,
//! another may have a higher priority, and be heard by none but it. Leadership transferred to that one returns after an
//! initLimit without service; if that repeats, the ensemble is as good as without a leader. Only if some voter hears a quorum, is
//! heard by it, and has all that it has, there is anything to ask for: who lacks something must not lead, and may be
//! the only one whom those can reach who have it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::rng::Rng;

use crate::campaign::accidents::Course;
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose, pick};
use crate::campaign::run::Run;
use crate::campaign::{Failure, Outcome, background};
use crate::ensemble::Ensemble;
use crate::network::{NetworkConfig, up_to};
use crate::world::{World, WorldConfig};

/// How long the links stay as they are.
const STAYS: Duration = Duration::from_secs(60);
/// How often it is asked who leads.
const EVERY: Duration = Duration::from_millis(10);
/// How many in a thousand of the answers name one, at least.
const LED: u64 = 990;

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    begin(case, false).disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut run = begin(case, keep_log);
    let outcome = run.links();
    (outcome, run.world)
}

fn begin(case: &Case, keep_log: bool) -> Run {
    let mut draw = Draw::new(case);
    let voters = case.servers.map_or_else(|| 3 + draw.rng.below(3), u64::from);
    let ensemble = Ensemble::majority(voters as i64);
    let mut priorities = BTreeMap::new();
    for id in ensemble.ids() {
        priorities.insert(id, [0, 0, 1, 2][pick(&mut draw.rng, 4)]);
    }
    if !draw.note(true, Condition::Priorities) {
        priorities.clear();
    }
    let tick = Duration::from_millis(draw.pick(&[200, 500, 1000, 2000]));
    let timing = Timing { tick, ..Timing::default() };
    let network = NetworkConfig {
        // A connection that passes nothing one way ends within an initLimit.
        silent_min: timing.sync_time(),
        silent_max: timing.init_time(),
        ..NetworkConfig::default()
    };
    let config =
        WorldConfig { priorities, timing, network, keep_log, ..WorldConfig::new(ensemble) };
    let config = background::election(case, config);
    Run::new(draw, config, None, &Course::dense(&[], 0))
}

impl Run {
    fn links(&mut self) -> Result<Outcome, Failure> {
        for id in &self.ids {
            let wait = up_to(&mut self.rng, Duration::from_millis(300));
            self.world.start_after(*id, wait);
        }
        let mut rng = self.case.fork(Purpose::Links, 0);
        let first = up_to(&mut rng, Duration::from_secs(4));
        self.world.run_for(first)?;
        self.repair()?;
        let blocked = draw_links(&mut rng, &self.ids);
        for (from, to) in &blocked {
            self.world.block(*from, *to);
        }
        // Connections that pass nothing one way are still to be noticed.
        self.world.run_for(self.silent_max + 2 * self.init_time)?;
        let has = |id: i64| self.world.durable(id).map(|disk| (disk.current_epoch, disk.last()));
        let hub = |id: &i64| {
            let hears =
                |other: i64| !blocked.contains(&(*id, other)) && !blocked.contains(&(other, *id));
            let follows = |other: i64| hears(other) && has(other) <= has(*id);
            self.world.ensemble().is_quorum(|other| other.0 == *id || follows(other.0))
        };
        let can_be_led = self.ids.iter().any(hub);
        let (mut asked, mut led, mut changes, mut last) = (0, 0, 0, None);
        let end = self.world.now() + STAYS;
        while can_be_led && self.world.now() < end {
            self.world.run_for(EVERY)?;
            let leader = self.world.leader();
            let leadership =
                leader.and_then(|id| Some((id, self.world.brief(id.0)?.current_epoch)));
            (asked, led) = (asked + 1, led + u64::from(leadership.is_some()));
            if leadership.is_some() && leadership != last {
                changes += u32::from(last.is_some());
                last = leadership;
            }
        }
        if led * 1000 < asked * LED || changes > 1 {
            let led = led * 1000 / asked.max(1);
            return Err(Failure::Unled { led, changes, blocked, state: self.state() });
        }
        Ok(Outcome::of(&self.world, self.past, self.times()))
    }
}

/// Which ways nothing passes, from one to the other.
fn draw_links(rng: &mut Rng, ids: &[i64]) -> Vec<(i64, i64)> {
    let hub = ids[pick(rng, ids.len())];
    let mut any = ids[pick(rng, ids.len())];
    if any == hub {
        any = ids[(ids.iter().position(|id| *id == hub).unwrap_or(0) + 1) % ids.len()];
    }
    let pairs = ids.iter().flat_map(|a| ids.iter().map(move |b| (*a, *b))).filter(|(a, b)| a < b);
    let shape = rng.below(4);
    let mut blocked = Vec::new();
    let way = rng.below(3);
    for (a, b) in pairs {
        let of_hub = a == hub || b == hub;
        let of_any = a == any || b == any;
        let (there, back) = match shape {
            // One server hears all, the others only it.
            0 => (!of_hub, !of_hub),
            // One server hears the hub alone: in both directions, or in one.
            1 if of_any && !of_hub => (way != 1, way != 2),
            // One link is broken.
            2 if of_any && of_hub => (way != 1, way != 2),
            1 | 2 => (false, false),
            _ => (rng.below(3) == 0, rng.below(3) == 0),
        };
        let (a, b) = if a == any { (a, b) } else { (b, a) };
        blocked.extend(there.then_some((a, b)));
        blocked.extend(back.then_some((b, a)));
    }
    blocked
}
