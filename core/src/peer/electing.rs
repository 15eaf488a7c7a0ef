//! Which of the two elections this server takes part in.
//!
//! ```text
//!   Config::election ─┬─► Elector           notifications
//!                     └─► GenerationClock   messages, votes on disk
//! ```
//!
//! What both know is asked here; what is said in them has rooms of its own.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::{Config, Election, Generations};
use crate::election::{Elector, ElectorConfig};
use crate::generation::{ClockConfig, ClockOutput, Cue, GenerationClock};
use crate::generation_message::GrantedVote;
use crate::id::Ticket;
use crate::membership::Role as MemberRole;
use crate::quorum::{Quorum, Support};
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::Standing;
use crate::zxid::Epoch;

/// The election of this server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "there is one of it, and notifications are frequent")]
pub(super) enum Electing {
    Fast(Elector),
    Generation(Box<Generational>),
}

/// An election by generation, and what is under way for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Generational {
    pub(super) clock: GenerationClock,
    /// Outputs on their way; empty between steps, kept for its memory.
    pub(super) told: Vec<ClockOutput>,
    /// Votes on their way to the disk.
    pub(super) writes: VecDeque<(Ticket, GrantedVote)>,
    /// Why the next election begins.
    pub(super) cue: Cue,
}

impl Electing {
    /// The one that `config` asks for, of a server that finds `granted_vote` on its disk.
    pub(super) fn new(config: &Config, granted_vote: GrantedVote) -> Self {
        match &config.election {
            Election::Fast => Self::Fast(Elector::new(elector_config(config))),
            Election::Generation(rules) => Self::Generation(Box::new(Generational {
                clock: GenerationClock::new(clock_config(config, rules.clone()), granted_vote),
                told: Vec::new(),
                writes: VecDeque::new(),
                cue: Cue::Fresh,
            })),
        }
    }

    pub(super) const fn standing(&self) -> Standing {
        match self {
            Self::Fast(elector) => elector.standing(),
            Self::Generation(by) => by.clock.standing(),
        }
    }

    pub(super) const fn has_standing(&self) -> bool {
        match self {
            Self::Fast(elector) => elector.has_standing(),
            Self::Generation(by) => by.clock.has_standing(),
        }
    }

    pub(super) const fn is_looking(&self) -> bool {
        match self {
            Self::Fast(elector) => elector.is_looking(),
            Self::Generation(by) => by.clock.is_looking(),
        }
    }

    /// Whether this server may propose itself. By generation it only does not ask to be elected.
    pub(super) const fn may_lead(&self) -> bool {
        match self {
            Self::Fast(elector) => elector.may_lead(),
            Self::Generation(_) => true,
        }
    }

    pub(super) const fn quorum(&self) -> &Quorum {
        match self {
            Self::Fast(elector) => elector.quorum(),
            Self::Generation(by) => by.clock.quorum(),
        }
    }

    #[inline]
    pub(super) const fn quorum_mut(&mut self) -> &mut Quorum {
        match self {
            Self::Fast(elector) => elector.quorum_mut(),
            Self::Generation(by) => by.clock.quorum_mut(),
        }
    }

    pub(super) const fn support(&self) -> &Support {
        match self {
            Self::Fast(elector) => elector.support(),
            Self::Generation(by) => by.clock.support(),
        }
    }

    pub(super) fn deadline(&self) -> Option<(Instant, Timer)> {
        match self {
            Self::Fast(elector) => elector.deadline(),
            Self::Generation(by) => by.clock.deadline(),
        }
    }

    /// When a deadline of this name passes.
    pub(super) fn due(&self, timer: Timer) -> Option<Instant> {
        self.deadline().filter(|(_, named)| *named == timer).map(|(at, _)| at)
    }

    pub(super) fn establish(&mut self, epoch: Epoch) {
        match self {
            Self::Fast(elector) => elector.establish(epoch),
            Self::Generation(by) => by.clock.establish(epoch),
        }
    }

    pub(super) fn retire(&mut self) {
        match self {
            Self::Fast(elector) => elector.retire(),
            Self::Generation(by) => by.clock.retire(),
        }
    }

    /// Others vote from now on.
    pub(super) fn update_quorum(&mut self, config: &Config, now: Instant) {
        match self {
            Self::Fast(elector) => elector.update_quorum(observes(config)),
            Self::Generation(by) => by.clock.update_quorum(observes(config), now),
        }
    }

    /// Begins anew under another configuration.
    pub(super) fn reconfigure(&mut self, config: &Config, now: Instant) {
        match (self, &config.election) {
            (Self::Generation(by), Election::Generation(rules)) => {
                by.clock.reconfigure(clock_config(config, rules.clone()), now);
            }
            (Self::Fast(elector), _) => elector.reconfigure(elector_config(config)),
            (Self::Generation(_), Election::Fast) => {}
        }
    }

    /// For model checkers.
    pub(super) fn rewind(&mut self) {
        if let Self::Generation(by) = self {
            by.clock.rewind();
        }
    }
}

/// What the fast election needs to know of the configuration.
fn elector_config(config: &Config) -> ElectorConfig {
    ElectorConfig {
        id: config.id,
        observer: observes(config),
        quorum: config.quorum(),
        notification_min: config.timing.notification_min,
        notification_max: config.timing.notification_max,
        finalize_wait: config.timing.finalize_wait,
        finish_when_settled: config.finish_when_settled,
        may_change: config.reconfig_enabled,
    }
}

/// What an election by generation needs to know of it.
fn clock_config(config: &Config, rules: Generations) -> ClockConfig {
    ClockConfig {
        id: config.id,
        observer: observes(config),
        quorum: config.quorum(),
        rules,
        seed: config.seed,
    }
}

/// Whether we follow without a vote. A server that is no member follows as if it had one.
fn observes(config: &Config) -> bool {
    let role = config.membership.member(config.id).map(|member| member.role);
    role == Some(MemberRole::Observer)
}
