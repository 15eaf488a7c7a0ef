//! A whole simulated ensemble whose accidents are arbitrary: no rule is ever broken, and as soon as the
//! accidents end there is a leader that all follow, and every request is served.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use quorate_core::config::HistoryLimits;
use quorate_core::id::ServerId;
use quorate_sim::{CrashKind, Ensemble, NetworkConfig, Survival, Violation, World, WorldConfig};

/// A run: the members, the world, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    seed: u8,
    servers: u8,
    observes: bool,
    leases: bool,
    window: u8,
    snapshots: u8,
    resets: u8,
    survival: u8,
    happens: Vec<Happens>,
}

#[derive(Arbitrary, Debug)]
enum Happens {
    Passes { ms: u8 },
    Steps { many: u8 },
    Crash { id: u8, power: bool },
    CrashLater { id: u8, outputs: u8, again: bool },
    Start { id: u8 },
    Pause { id: u8 },
    Resume { id: u8 },
    Parts { group: u8 },
    Block { from: u8, to: u8 },
    Heal,
    Cut { a: u8, b: u8 },
    Vanish { id: u8, on: bool },
    Transfer { id: u8, to: Option<u8> },
    Write { id: u8, many: u8, cell: u8 },
    Read { id: u8 },
    Wipe,
}

/// A run has no more events than this.
const HAPPENS_MAX: usize = 48;
/// By then there is a leader that all follow.
const SETTLED_MAX: Duration = Duration::from_secs(120);
/// By then a request is served.
const SERVED_MAX: Duration = Duration::from_secs(5);

struct Case {
    world: World,
    servers: i64,
    observer: Option<i64>,
}

/// Lets happen what these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(run) = Run::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut case = Case::new(&run);
    if let Err(violation) = case.all(run.happens) {
        panic!("{violation}");
    }
}

impl Case {
    fn new(run: &Run) -> Self {
        let voters = [1, 2, 3, 3, 4, 5][usize::from(run.servers % 6)];
        let observer = run.observes.then_some(voters + 1);
        let config = WorldConfig {
            lease: run.leases.then_some(Duration::from_secs(4)),
            history: HistoryLimits {
                window_count: usize::from(run.window % 16),
                snap_count: 2 + u64::from(run.snapshots % 32),
                ..HistoryLimits::default()
            },
            network: NetworkConfig {
                reset: u64::from(run.resets % 8) * 32,
                split: 0x4000,
                ..NetworkConfig::default()
            },
            keep_log: false,
            ..WorldConfig::new(Ensemble::majority(voters).with_observers(observer))
        };
        let mut world = World::new(u64::from(run.seed), config);
        let survivals = [Survival::Prefix, Survival::Any, Survival::Nothing, Survival::Everything];
        world.survival(survivals[usize::from(run.survival % 4)]);
        let servers = observer.unwrap_or(voters);
        world.start_all(1..=servers);
        Self { world, servers, observer }
    }

    fn id(&self, which: u8) -> i64 {
        1 + i64::from(which) % self.servers
    }

    fn all(&mut self, happens: Vec<Happens>) -> Result<(), Violation> {
        for happens in happens.into_iter().take(HAPPENS_MAX) {
            self.happens(happens)?;
        }
        self.world.calm();
        self.world.heal();
        for id in 1..=self.servers {
            self.world.black_hole(id, false);
            self.world.resume(id)?;
            self.world.start(id);
        }
        // What broke before may be noticed later.
        self.settles("no server leads, or not all follow")?;
        self.world.run_for(Duration::from_secs(10))?;
        self.settles("it did not last")?;
        for id in
            (1..=self.servers).filter(|id| can(&self.world, ServerId(*id))).collect::<Vec<_>>()
        {
            let request = self.world.propose(id, 1)?;
            assert!(request.is_some(), "{id} is up");
            let served = |world: &World| world.unanswered(id).0.is_empty() && world.is_level();
            let served = self.world.run_until(served, SERVED_MAX)?;
            assert!(served.is_some(), "{id} asks, and gets no answer");
        }
        Ok(())
    }

    fn settles(&mut self, otherwise: &str) -> Result<(), Violation> {
        let settled = |world: &World| {
            world.is_settled_among((1..=self.servers).map(ServerId).filter(|id| can(world, *id)))
        };
        let settled = self.world.run_until(settled, SETTLED_MAX)?;
        let briefs = (1..=self.servers).map(|id| self.world.brief(id)).collect::<Vec<_>>();
        assert!(settled.is_some(), "{otherwise}: {briefs:?}");
        Ok(())
    }

    fn happens(&mut self, happens: Happens) -> Result<(), Violation> {
        match happens {
            Happens::Passes { ms } => {
                // Up to four seconds, and rather short.
                let ms = u64::from(ms);
                self.world.run_for(Duration::from_millis(ms * ms / 16))?;
            }
            Happens::Steps { many } => {
                for _ in 0..many {
                    self.world.step()?;
                }
            }
            Happens::Crash { id, power } => {
                let kind = if power { CrashKind::Power } else { CrashKind::Process };
                self.world.crash(self.id(id), kind)?;
            }
            Happens::CrashLater { id, outputs, again } => {
                let again = again.then_some(Duration::from_millis(100));
                self.world.crash_after_outputs(self.id(id), u64::from(outputs), again);
            }
            Happens::Start { id } => self.world.start(self.id(id)),
            Happens::Pause { id } => self.world.pause(self.id(id)),
            Happens::Resume { id } => self.world.resume(self.id(id))?,
            Happens::Parts { group } => {
                let (left, right): (Vec<i64>, Vec<i64>) =
                    (1..=self.servers).partition(|id| group >> id & 1 == 1);
                self.world.partition(&[&left, &right]);
            }
            Happens::Block { from, to } => self.world.block(self.id(from), self.id(to)),
            Happens::Heal => self.world.heal(),
            Happens::Cut { a, b } => self.world.cut(self.id(a), self.id(b)),
            Happens::Vanish { id, on } => self.world.black_hole(self.id(id), on),
            Happens::Transfer { id, to } => {
                let to = to.map(|to| self.id(to));
                self.world.transfer(self.id(id), to)?;
            }
            Happens::Write { id, many, cell } => {
                for _ in 0..many % 16 {
                    self.world.propose(self.id(id), cell % 4)?;
                }
            }
            Happens::Read { id } => {
                self.world.read(self.id(id))?;
            }
            // Only a server in no quorum may forget its history.
            Happens::Wipe => {
                if let Some(id) = self.observer {
                    self.world.crash(id, CrashKind::Power)?;
                    self.world.wipe(id);
                    self.world.start(id);
                }
            }
        }
        Ok(())
    }
}

/// Whether a server can follow the present leader. An observer that has promised a later epoch to a leader
/// that was never established waits for the next leader, as ZooKeeper's observers do.
fn can(world: &World, id: ServerId) -> bool {
    let leader = world.leader().and_then(|leader| world.brief(leader.0));
    let voter = world.ensemble().member(id).is_some_and(|member| member.voter);
    let promised = world.durable(id.0).map(|durable| durable.accepted_epoch);
    voter || leader.is_none_or(|leader| promised <= Some(leader.current_epoch))
}
