//! In which shares the clients of a server go that is about to stop, and when.

use alloc::collections::BTreeSet;
use core::time::Duration;

use quorate_application::clients::ClientId;
use quorate_core::time::Instant;

/// The plan, and how far it is.
#[derive(Debug)]
pub(crate) struct Shares {
    begun: Instant,
    within: Duration,
    /// How many connections there were.
    total: usize,
    /// In how many shares they go.
    count: u64,
    /// The first connection that was not told to go.
    pub(crate) next: ClientId,
    /// Those that go behind their last replies.
    pub(crate) leaving: BTreeSet<ClientId>,
    /// Nobody is waited for any more.
    pub(crate) over: bool,
}

impl Shares {
    /// One connection at a time, or as many at a time as it takes for all to be told within that time.
    pub(crate) fn new(begun: Instant, within: Duration, total: usize) -> Self {
        let most = u64::try_from(within.as_millis() / STEP.as_millis()).unwrap_or(u64::MAX);
        let count = most.min(total as u64).max(1);
        let (next, leaving) = (ClientId(0), BTreeSet::new());
        Self { begun, within, total, count, next, leaving, over: false }
    }

    /// How many shares have gone by now: the first at once.
    fn gone_at(&self, now: Instant) -> u64 {
        let steps = now.since(self.begun).as_millis() / STEP.as_millis();
        u64::try_from(steps).unwrap_or(u64::MAX).saturating_add(1).min(self.count)
    }

    /// How many connections may be there that were not told to go.
    pub(crate) fn may_stay(&self, now: Instant) -> usize {
        let gone = self.total as u128 * u128::from(self.gone_at(now)) / u128::from(self.count);
        self.total.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    /// When nobody is waited for any longer: what a client has asked for may never be answered.
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

/// How long there is between two shares.
const STEP: Duration = Duration::from_millis(10);
