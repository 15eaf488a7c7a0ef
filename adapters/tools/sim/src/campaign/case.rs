//! A case: the seed of a run, its size, and which of its faults are left in.

use std::collections::BTreeSet;
use std::fmt;

use quorate_core::rng::Rng;

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Story {
    /// Three to nine servers, histories that differ, no clients: leaders, and how soon.
    Elections,
    /// Clients that write and read all the time: nothing is lost, and in the end they are served.
    Histories,
    /// Two days of an ordinary ensemble of five, and an accident about every hour; told only if it is asked for.
    Days,
    /// Links that are broken and stay so, and servers that are wished to lead; told only if it is asked for.
    Links,
    /// Clients of ZooKeeper with sessions and watches at servers that run its tree and service; told only if it is asked for.
    Clients,
}

impl Story {
    /// The story of a seed for which nothing else is said: every fourth is about elections.
    pub fn of(seed: u64) -> Self {
        if seed % 4 == 0 { Self::Elections } else { Self::Histories }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elections => "elections",
            Self::Histories => "histories",
            Self::Days => "days",
            Self::Links => "links",
            Self::Clients => "clients",
        }
    }
}

/// What is run. It is shown as the arguments that run it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Where everything is drawn from.
    pub seed: u64,
    /// What it is about.
    pub story: Story,
    /// How many servers, whatever was drawn.
    pub servers: Option<u8>,
    /// Whether servers elect by generation.
    pub generation: bool,
    /// The numbers of the disturbances that may happen; all if none is said.
    pub only: Option<BTreeSet<u32>>,
    /// Whether each crash takes the last transaction that its disk had synced: to see that such a loss is
    /// found.
    pub plant_loss: bool,
}

impl Case {
    /// Everything that a seed has to tell.
    pub fn new(seed: u64) -> Self {
        Self::of(Story::of(seed), seed)
    }

    /// Everything that a seed has to tell in this story.
    pub fn of(story: Story, seed: u64) -> Self {
        Self { seed, story, servers: None, generation: false, only: None, plant_loss: false }
    }

    /// Whether a disturbance may happen.
    pub fn allows(&self, number: u32) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&number))
    }

    /// Whether everything is heaped up in this run, so that what is rare meets what is rare: in every eighth.
    pub(super) fn is_heaped(&self) -> bool {
        self.story == Story::Histories && self.seed % 8 == 3
    }

    /// A generator for one purpose, which no other takes anything from.
    pub(super) fn fork(&self, purpose: Purpose, number: u32) -> Rng {
        let purpose = (purpose as u64) << 32 | u64::from(number);
        let seed = Rng::new(self.seed ^ (self.story as u64) << 62).next_u64();
        Rng::new(Rng::new(seed ^ purpose).next_u64())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {}", self.seed)?;
        if self.story != Story::of(self.seed) {
            write!(f, " --story {}", self.story.name())?;
        }
        if let Some(servers) = self.servers {
            write!(f, " --servers {servers}")?;
        }
        if self.generation {
            f.write_str(" --election generation")?;
        }
        if self.plant_loss {
            f.write_str(" --inject-loss")?;
        }
        if let Some(only) = &self.only {
            let numbers: Vec<_> = only.iter().map(u32::to_string).collect();
            // An empty list is said in words.
            let none = only.is_empty().then_some("none");
            write!(f, " --only {}", none.unwrap_or(&numbers.join(",")))?;
        }
        Ok(())
    }
}

/// What a fork of the seed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The ensemble, its disks, its network, when servers start.
    Stage = 1,
    /// Latencies, and whether chances come true.
    World,
    /// One accident.
    Accident,
    /// What clients do after the accident of that number.
    Clients,
    /// What is done in the end.
    End,
    /// How servers and applications come to know of changes of the membership, and whether there are any.
    Memberships,
    /// One accident around such a change.
    Change,
    /// What applications make of requests.
    Application,
    /// Which ports fail after the accident of that number; in the end, if it is none.
    Ports,
    /// What observers have promised before.
    Observers,
    /// Whether leases are set anew.
    Leases,
    /// How much room there is for what is not on disk.
    Room,
    /// Whether servers of older versions elect as ZooKeeper's do.
    Reference,
    /// Which links are broken.
    Links,
    /// Who claims to be whom in the end.
    Claims,
    /// How much an application may have to apply at a time.
    Delivery,
    /// Whether wall clocks are apart.
    Walls,
    /// Which servers with clients are ZooKeeper's.
    Dialects,
    /// Whether they start again as the other kind.
    Kinds,
    /// What their clients ask for after the accident of that number, that ends such servers.
    Poison,
    /// Whose certificate is refused after the accident of that number; in the end, if it is none.
    Certificates,
    /// Whose disk has little room after the accident of that number.
    LittleRoom,
    /// Which server is stopped in order behind the accident of that number.
    Draining,
}

/// Something that a run meets, and could be spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disturbance {
    /// Its number in the run: below 100 it is a condition, which has the same number in all runs.
    pub number: u32,
    /// What it is.
    pub name: &'static str,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.name)
    }
}

/// The number of the first accident.
pub(super) const ACCIDENTS: u32 = 100;

/// The number of the first accident around a change of the membership.
pub(super) const CHANGES: u32 = 300;

/// What may be the case all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Clients,
    CrashesWithinSteps,
    DelaySpikes,
    LinkResets,
    DuplicateNotifications,
    SplitMessages,
    SlowNetwork,
    SlowWriting,
    SlowDisk,
    UnreadableDisk,
    EpochFilesLostFirst,
    WritesLostFirst,
    FailingDisk,
    LingeringLinks,
    SlowLinks,
    SlowDials,
    DamagedMessages,
    Drift,
    FarOffClocks,
    OldVersions,
    NonMembers,
    StateTellsMembership,
    Unwilling,
    EarlierVersions,
    SlowSnapshots,
    ExpandingApplication,
    PromisesOfObservers,
    LeasesChange,
    LittleRoom,
    Priorities,
    WallClocksApart,
    KindsChange,
    Poison,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::CrashesWithinSteps => "crashes within steps",
            Self::DelaySpikes => "delay spikes",
            Self::LinkResets => "link resets",
            Self::DuplicateNotifications => "duplicate notifications",
            Self::SplitMessages => "split messages",
            Self::SlowNetwork => "slow network",
            Self::SlowWriting => "slow writing",
            Self::SlowDisk => "slow disk",
            Self::UnreadableDisk => "unreadable disk",
            Self::EpochFilesLostFirst => "epoch files lost out of order",
            Self::WritesLostFirst => "log writes lost out of order",
            Self::FailingDisk => "failing disk",
            Self::LingeringLinks => "old links linger",
            Self::SlowLinks => "slow links",
            Self::SlowDials => "slow dials",
            Self::DamagedMessages => "damaged messages",
            Self::Drift => "clocks drift",
            Self::FarOffClocks => "clocks are far off",
            Self::OldVersions => "servers of old versions",
            Self::NonMembers => "non-members",
            Self::StateTellsMembership => "the application's state tells the membership",
            Self::Unwilling => "servers that are not to change the membership",
            Self::EarlierVersions => "servers that take no memberships with a snapshot",
            Self::SlowSnapshots => "slow snapshots",
            Self::ExpandingApplication => "requests that become too long",
            Self::LeasesChange => "leases are set anew",
            Self::LittleRoom => "little room for what is not on disk",
            Self::WallClocksApart => "wall clocks are apart",
            Self::KindsChange => "servers start again as the other kind",
            Self::Poison => "clients ask for what ends servers of ZooKeeper",
            Self::Priorities => "servers that are wished to lead",
            Self::PromisesOfObservers => "observers have promised more",
        }
    }
}

/// Draws what a run is made of, and notes what it meets.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    pub(super) case: &'a Case,
    pub(super) rng: Rng,
    /// What was drawn, allowed or not.
    pub(super) met: Vec<Disturbance>,
}

impl<'a> Draw<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self { case, rng: case.fork(Purpose::Stage, 0), met: Vec::new() }
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[pick(&mut self.rng, of.len())]
    }

    /// Whether something is the case with a chance of one in so many; drawn whether it is allowed or not.
    pub(super) fn one_in(&mut self, of: u64, condition: Condition) -> bool {
        let of = if self.case.is_heaped() { of.min(2) } else { of };
        let drawn = self.rng.below(of) == 0;
        self.note(drawn, condition)
    }

    /// Whether what was drawn is allowed.
    pub(super) fn note(&mut self, drawn: bool, condition: Condition) -> bool {
        let number = condition as u32;
        if drawn {
            self.met.push(Disturbance { number, name: condition.name() });
        }
        drawn && self.case.allows(number)
    }

    /// A chance, in 65536ths, in half of the runs.
    pub(super) fn sometimes(&mut self, condition: Condition, chance: u64) -> u64 {
        if self.one_in(2, condition) { chance } else { 0 }
    }
}

/// A position in a list of this length.
pub(super) fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or(0)
}
