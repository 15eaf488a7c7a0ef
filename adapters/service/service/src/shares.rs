//! In which shares clients leave a server, and when: all of them before it stops, or those that an operator sends away.

use alloc::collections::BTreeSet;
use core::time::Duration;

use quorate_application::clients::ClientId;
use quorate_core::time::Instant;

/// The plan, and how far it is.
#[derive(Debug)]
pub(crate) struct Shares {
    begun: Instant,
    within: Duration,
    /// How many connections are to go in all, and how many were told to.
    pub(crate) goal: usize,
    pub(crate) told: usize,
    /// In how many shares they go.
    count: u64,
    /// The server stops behind it, and takes no client in meanwhile.
    pub(crate) stops: bool,
    /// The first connection that was not told to go, and the last that may be.
    pub(crate) next: ClientId,
    pub(crate) last: ClientId,
    /// Those that go behind their last replies.
    pub(crate) leaving: BTreeSet<ClientId>,
    /// No client is waited for any more.
    pub(crate) over: bool,
}

impl Shares {
    /// One connection at a time, or as many at a time as it takes for all `goal` to be told within that time.
    pub(crate) fn new(begun: Instant, within: Duration, goal: usize, stops: bool) -> Self {
        let most = u64::try_from(within.as_millis() / STEP.as_millis()).unwrap_or(u64::MAX);
        let count = most.min(goal as u64).max(1);
        let (next, last, leaving) = (ClientId(0), ClientId(u64::MAX), BTreeSet::new());
        Self { begun, within, goal, told: 0, count, stops, next, last, leaving, over: false }
    }

    /// How many shares have gone by now: the first at once.
    fn gone_at(&self, now: Instant) -> u64 {
        let steps = now.since(self.begun).as_millis() / STEP.as_millis();
        u64::try_from(steps).unwrap_or(u64::MAX).saturating_add(1).min(self.count)
    }

    /// How many connections may be there that were not told to go, of those that are to.
    pub(crate) fn may_stay(&self, now: Instant) -> usize {
        let gone = self.goal as u128 * u128::from(self.gone_at(now)) / u128::from(self.count);
        self.goal.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    /// When no client is waited for any longer: what a client has asked for may never be answered.
    pub(crate) fn end(&self) -> Instant {
        self.begun + self.within * 2
    }

    /// When to go on behind a step at `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let gone = self.gone_at(now);
        let next = match u32::try_from(gone) {
            Ok(steps) if gone < self.count => self.begun + STEP * steps,
            _ => self.end(),
        };
        (!self.over).then_some(next)
    }
}

/// How far the clients have gone that an operator has sent elsewhere, see
/// [`Event::Shed`](quorate_application::clients::Event::Shed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shedding {
    /// Whether some are still to go.
    pub under_way: bool,
    /// How many are to go.
    pub goal: usize,
    /// How many have gone. Fewer at the end, if some went by themselves, or have waited for a reply all the time.
    pub gone: usize,
}

/// How long there is between two shares.
const STEP: Duration = Duration::from_millis(10);
