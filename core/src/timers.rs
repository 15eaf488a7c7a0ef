//! Named deadlines.
//!
//! Machines work with names; the driver asks once for the earliest deadline, sleeps, and says `Tick`.
//! What follows when one has passed is the business of the machine that set it, and no clock is read.

use core::time::Duration;

use crate::time::Instant;

/// What a deadline is for; the order is that in which several due at once are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// When the server begins its first election.
    Start,
    /// When an observer, or a learner that was refused, looks for a leader again.
    Backoff,
    /// When a server that is looking sends its vote again.
    Notification,
    /// When a quorum has waited long enough for a better vote.
    Finalize,
    /// When a missing election link is dialled again.
    Redial,
    /// When a connection that claims to be a voter to which there is a link takes its place or is refused, or that
    /// voter is dialled.
    Claim,
    /// When a quorum link that has not introduced itself, or came too early, is given up.
    Introduction,
    /// When a quorum port that accepts no connections has failed for as long as a leader may be without one.
    Listening,
    /// When a learner that could not reach its leader tries again.
    Connect,
    /// When a learner gives up reaching its leader.
    ConnectLimit,
    /// When a learner that has heard nothing from its leader gives it up.
    Silence,
    /// When a leader gives up waiting for a quorum.
    Init,
    /// When a leader gives up transferring its leadership.
    Transfer,
    /// When a lease is over: ours as leader, or what we have promised.
    Lease,
    /// When a leader pings and looks for silent learners: twice per tick.
    Ping,
    /// In elections by generation: when a server that hears no leader asks to be one.
    Candidacy,
    /// In elections by generation: when a leader says again that it leads.
    Heartbeat,
}

impl Timer {
    /// Those that the table holds; the others belong to the election and the links.
    const TABLED: [Self; 11] = [
        Self::Start,
        Self::Backoff,
        Self::Introduction,
        Self::Listening,
        Self::Connect,
        Self::ConnectLimit,
        Self::Silence,
        Self::Init,
        Self::Transfer,
        Self::Lease,
        Self::Ping,
    ];
}

/// At most one deadline for each name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timers {
    deadlines: [Option<Instant>; Timer::TABLED.len()],
}

impl Timers {
    /// Sets a deadline, in place of an earlier one of that name.
    pub fn set(&mut self, timer: Timer, at: Instant) {
        if let Some(slot) = self.slot(timer) {
            *slot = Some(at);
        }
    }

    /// Sets a deadline a while from `now`.
    pub fn after(&mut self, timer: Timer, now: Instant, wait: Duration) {
        self.set(timer, now + wait);
    }

    /// Drops a deadline.
    pub fn stop(&mut self, timer: Timer) {
        if let Some(slot) = self.slot(timer) {
            *slot = None;
        }
    }

    /// A deadline, if there is one of that name.
    pub fn get(&self, timer: Timer) -> Option<Instant> {
        let mut named = self.deadlines.iter().zip(Timer::TABLED);
        named.find_map(|(at, tabled)| at.filter(|_| tabled == timer))
    }

    /// Drops all deadlines but those of the links and of the ports.
    pub fn stop_role(&mut self) {
        for timer in Timer::TABLED {
            if !matches!(timer, Timer::Introduction | Timer::Listening) {
                self.stop(timer);
            }
        }
    }

    /// The earliest deadline; by name among equals.
    pub fn next(&self) -> Option<(Instant, Timer)> {
        let named = self.deadlines.iter().zip(Timer::TABLED);
        named.filter_map(|(at, timer)| at.map(|at| (at, timer))).min()
    }

    fn slot(&mut self, timer: Timer) -> Option<&mut Option<Instant>> {
        let at = Timer::TABLED.iter().position(|tabled| *tabled == timer);
        debug_assert!(at.is_some(), "{timer:?} is not in the table");
        at.map(|at| &mut self.deadlines[at])
    }
}
