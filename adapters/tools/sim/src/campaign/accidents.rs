//! What goes wrong at a moment, and what operators do: each drawn from a fork of the seed of its own.

use std::time::Duration;

use quorate_core::rng::Rng;

use crate::campaign::case::{ACCIDENTS, CHANGES, Case, Disturbance, Purpose, pick};
use crate::network::up_to;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Crash,
    LeaderCrash,
    EverybodyCrashes,
    Partition,
    OneIsAlone,
    LeaderIsAlone,
    OneWay,
    Heal,
    Pause,
    Cuts,
    BlackHole,
    LongAbsence,
    Transfer,
    Wipe,
    ClockJump,
    Suspension,
    FullDisk,
    HangingDisk,
    Star,
    Forgetting,
    MembersChange,
    TwoChanges,
    ChangeAcrossSnapshot,
    TwoChangesAcrossSnapshot,
    ChangeThatIsCut,
    WallClock,
    LeaderPause,
    LostAtExpiry,
    LeaderDisk,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Crash => "a crash",
            Self::LeaderCrash => "the leader crashes",
            Self::EverybodyCrashes => "everybody crashes",
            Self::Partition => "a partition",
            Self::OneIsAlone => "a server is alone",
            Self::LeaderIsAlone => "the leader is alone",
            Self::OneWay => "a link passes one way only",
            Self::Heal => "the network heals",
            Self::Pause => "a pause",
            Self::Cuts => "links break",
            Self::BlackHole => "dials to a server vanish, or no longer",
            Self::LongAbsence => "a long absence",
            Self::Transfer => "the leader is asked to hand over",
            Self::Wipe => "an observer's disk is emptied",
            Self::ClockJump => "a clock jumps",
            Self::Suspension => "a machine is suspended",
            Self::FullDisk => "a disk is full",
            Self::HangingDisk => "a disk hangs",
            Self::Star => "one server hears all, the others only it",
            Self::Forgetting => "a server's disk is emptied that no quorum needs",
            Self::MembersChange => "members and roles change",
            Self::TwoChanges => "members and roles change twice",
            Self::ChangeAcrossSnapshot => "members and roles change while a server is brought up",
            Self::TwoChangesAcrossSnapshot => "a role changes twice while a server is brought up",
            Self::ChangeThatIsCut => "the leader is alone with a change",
            Self::WallClock => "a wall clock is set",
            Self::LeaderPause => "the leader stands still",
            Self::LostAtExpiry => {
                "a client is silent, and the leader is lost when its time has passed"
            }
            Self::LeaderDisk => "the leader's disk is full, or hangs",
        }
    }
}

/// How likely each accident around a change of the membership is.
const CHANGES_OF_MEMBERS: &[(Kind, u64)] = &[
    (Kind::MembersChange, 2),
    (Kind::TwoChanges, 3),
    (Kind::ChangeAcrossSnapshot, 4),
    (Kind::TwoChangesAcrossSnapshot, 2),
    (Kind::ChangeThatIsCut, 2),
];

/// What accidents a run may meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course<'a> {
    /// Their kinds, each as likely as its number says.
    pub(super) kinds: &'a [(Kind, u64)],
    /// How many there are at least, and at most.
    pub(super) count: (u64, u64),
    /// How long nothing else goes wrong after one, at most.
    pub(super) pause_max: Duration,
}

impl<'a> Course<'a> {
    /// A few, one on the heels of the other.
    pub(super) const fn dense(kinds: &'a [(Kind, u64)], most: u64) -> Self {
        Self { kinds, count: (0, most), pause_max: Duration::from_millis(1200) }
    }

    /// Many, and hardly any time between them.
    pub(super) const fn heaped(kinds: &'a [(Kind, u64)]) -> Self {
        Self { kinds, count: (10, 40), pause_max: Duration::from_millis(600) }
    }
}

/// One accident of a run.
#[derive(Debug)]
pub(super) struct Accident {
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// How long nothing else goes wrong after it.
    pub(super) pause: Duration,
    pub(super) rng: Rng,
}

impl Accident {
    /// The one of this position.
    pub(super) fn draw(case: &Case, at: u64, course: &Course<'_>) -> Self {
        let number = ACCIDENTS + u32::try_from(at).unwrap_or(0);
        Self::of(case.fork(Purpose::Accident, number), number, course)
    }

    /// Puts accidents around changes of the membership between the others.
    pub(super) fn add_changes(case: &Case, course: &Course<'_>, accidents: &mut Vec<Self>) {
        let mut rng = case.fork(Purpose::Change, 0);
        let course = Course { kinds: CHANGES_OF_MEMBERS, ..*course };
        for at in 0..u32::try_from(rng.below(4)).unwrap_or(0) {
            let number = CHANGES + at;
            let accident = Self::of(case.fork(Purpose::Change, number), number, &course);
            accidents.insert(pick(&mut rng, accidents.len() + 1), accident);
        }
    }

    fn of(mut rng: Rng, number: u32, course: &Course<'_>) -> Self {
        let mut left = rng.below(course.kinds.iter().map(|(_, weight)| weight).sum());
        let chosen = course.kinds.iter().find(|(_, weight)| {
            let found = left < *weight;
            left = left.saturating_sub(*weight);
            found
        });
        let kind = chosen.map_or(Kind::Crash, |(kind, _)| *kind);
        let pause = up_to(&mut rng, course.pause_max);
        Self { number, kind, pause, rng }
    }

    pub(super) fn disturbance(&self) -> Disturbance {
        Disturbance { number: self.number, name: self.kind.name() }
    }
}
