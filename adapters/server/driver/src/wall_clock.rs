//! The wall clock: what it shows, and whether it was set.
//!
//! The protocol never asks it. Transactions carry it, see [`TxnTimes`](quorate_application::TxnTimes), and log lines do.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Notices steps of the wall clock.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    seen: Option<(Instant, SystemTime)>,
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// By how much.
    pub(crate) by: Duration,
    pub(crate) forward: bool,
}

impl Steps {
    /// Looks at both clocks; tells of a step of more than a second since the last look.
    pub(crate) fn look(&mut self, now: Instant, wall: SystemTime) -> Option<Step> {
        let (then, wall_then) = self.seen.replace((now, wall))?;
        let expected = wall_then.checked_add(now.saturating_duration_since(then))?;
        let (by, forward) = match wall.duration_since(expected) {
            Ok(by) => (by, true),
            Err(behind) => (behind.duration(), false),
        };
        (by > STEP_MIN).then_some(Step { by, forward })
    }
}

/// What is worth a word: a clock that is disciplined is slewed.
const STEP_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_more_than_a_second_is_noticed_once() {
        let (mut steps, begun) = (Steps::default(), Instant::now());
        let mut look = |at: u64, wall: u64| {
            let at = begun + Duration::from_millis(at);
            steps.look(at, UNIX_EPOCH + Duration::from_millis(1_000_000 + wall))
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(60_000, 60_900), None, "slewed");
        let forward = Step { by: Duration::from_millis(3600), forward: true };
        assert_eq!(look(60_100, 64_600), Some(forward));
        assert_eq!(look(60_200, 64_700), None);
        let back = Step { by: Duration::from_millis(5000), forward: false };
        assert_eq!(look(60_300, 59_800), Some(back));
    }
}
