//! A simulated run that is recorded: clients, and accidents of a leader and others.

use std::time::Duration;

use quorate_core::config::{HistoryLimits, Timing};
use quorate_core::rng::Rng;
use quorate_sim::audit::{Entry, Tape};
use quorate_sim::{CrashKind, Ensemble, NetworkConfig, Violation, World, WorldConfig};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A seed's run: clients, and now and then something happens to the leader or to somebody else. What was
/// recorded, and the rule that was broken, if one was.
pub(super) fn run(seed: u64, voters: i64) -> (Vec<Entry>, Result<(), Violation>) {
    let config = WorldConfig {
        timing: Timing { tick: 100 * MILLI, ..Timing::default() },
        history: HistoryLimits { window_count: 8, snap_count: 20, ..HistoryLimits::default() },
        network: NetworkConfig { reset: 20, duplicate: 200, ..NetworkConfig::default() },
        keep_log: false,
        ..WorldConfig::new(Ensemble::majority(voters))
    };
    let (mut world, tape) = (World::new(seed, config), Tape::default());
    world.listen(|id| tape.recorder(id));
    world.start_all(1..=voters);
    let outcome = play(&mut world, &mut Rng::new(seed), voters);
    (tape.take(), outcome)
}

fn play(world: &mut World, rng: &mut Rng, voters: i64) -> Result<(), Violation> {
    let mut any = |below: i64| i64::try_from(rng.below(below.unsigned_abs())).unwrap();
    for _ in 0..60 {
        let who = 1 + any(voters);
        let leader = world.leader().map_or(who, |leader| leader.0);
        match any(12) {
            0 => {
                world.crash(leader, CrashKind::Process)?;
                world.start_after(leader, 200 * MILLI);
            }
            1 => {
                world.crash(who, CrashKind::Power)?;
                world.start_after(who, 500 * MILLI);
            }
            2 => world.transfer(leader, Some(who))?,
            3 => world.cut(leader, who),
            4 => {
                world.block(who, leader);
                world.run_for(SECOND)?;
                world.heal();
            }
            5 => {
                world.crash_within_steps(2000);
                world.run_for(100 * MILLI)?;
                world.crash_within_steps(0);
            }
            6 => {
                // What only it has logged will be cut.
                (1..=voters).for_each(|other| world.block(leader, other));
                world.propose(leader, 1)?;
                world.run_for(20 * MILLI)?;
                world.crash(leader, CrashKind::Process)?;
                world.start_after(leader, 2 * SECOND);
                world.run_for(SECOND)?;
                world.heal();
            }
            _ => {
                for cell in 0..8 {
                    world.propose(1 + any(voters), cell)?;
                    world.read_cell(1 + any(voters), cell)?;
                }
            }
        }
        world.run_for(u32::try_from(any(100)).unwrap() * MILLI)?;
    }
    Ok(())
}
