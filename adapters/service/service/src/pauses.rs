//! Whether this server stood still: a process that was stopped, a machine that was suspended.
//!
//! ```text
//!   step ── expected by then ───── a tick later ──┬──► step: it came late
//!                                                 │     └─ for a tick: what came meanwhile may not have been read
//! ```
//!
//! Who stood still has heard nothing, and must not say that nothing was said. So a service that has sessions to think of
//! steps within a tick, whatever else is due.

use core::time::Duration;

use quorate_core::time::Instant;

/// The last step that came late.
#[derive(Debug)]
pub(crate) struct Pauses {
    tick: Duration,
    stepped: Instant,
    late: Option<Instant>,
    /// The last one that came a little late.
    a_little_late: Option<Instant>,
}

impl Pauses {
    pub(crate) const fn new(tick: Duration) -> Self {
        Self { tick, stepped: Instant::ORIGIN, late: None, a_little_late: None }
    }

    /// The service steps, and was to do so by `expected`.
    pub(crate) fn step(&mut self, now: Instant, expected: Option<Instant>) {
        let late = expected.map_or(Duration::ZERO, |expected| now.since(expected));
        if late > self.tick {
            self.late = Some(now);
        }
        if late > self.tick / 4 {
            self.a_little_late = Some(now);
        }
        self.stepped = now;
    }

    /// When it stepped last.
    pub(crate) const fn stepped(&self) -> Instant {
        self.stepped
    }

    /// By when the next step is to come, so that it is seen if it does not.
    pub(crate) fn next(&self) -> Instant {
        self.stepped + self.tick
    }

    /// If it stood still until not as long ago as this: when it will be as long.
    pub(crate) fn awake_at(&self, now: Instant, since: Duration) -> Option<Instant> {
        self.late.map(|late| late + since).filter(|awake| *awake > now)
    }

    /// Whether it was at work all that time: no step came more than a quarter of a tick late.
    pub(crate) fn was_at_work(&self, now: Instant, time: Duration) -> bool {
        self.a_little_late.is_none_or(|late| now.since(late) >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn a_step_is_late_if_it_comes_more_than_a_tick_behind_what_was_expected() {
        let tick = Duration::from_millis(500);
        for (came, late) in [(900, false), (1500, false), (1501, true), (9000, true)] {
            let mut pauses = Pauses::new(tick);
            pauses.step(at(500), None);
            assert_eq!(pauses.next(), at(1000));
            pauses.step(at(came), Some(pauses.next()));
            assert_eq!(pauses.was_at_work(at(came), tick), came < 1125, "{came}");
            let awake = late.then(|| at(came + 500));
            assert_eq!(pauses.awake_at(at(came), tick), awake, "{came}");
            pauses.step(at(came + 499), Some(pauses.next()));
            assert_eq!(pauses.awake_at(at(came + 499), tick), awake);
            assert_eq!(pauses.awake_at(at(came + 500), tick), None);
        }
        let mut idle = Pauses::new(tick);
        idle.step(at(90_000), None);
        assert_eq!(idle.awake_at(at(90_000), tick), None, "nobody waited for it");
    }
}
