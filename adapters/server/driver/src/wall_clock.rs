//! The wall clock: what is made of it here, and whether somebody has set it.
//!
//! The protocol never asks it. Transactions carry it, since clients read it there (`ctime`, `mtime`); of one leader's none is
//! earlier than the one before, whatever is done to the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The times of one leader's transactions, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct TxnTimes {
    last: i64,
}

impl TxnTimes {
    /// The time of the next one: never before the last.
    pub(crate) fn next(&mut self, now_ms: i64) -> i64 {
        self.last = self.last.max(now_ms);
        self.last
    }

    /// Another leadership begins: its times are its own.
    pub(crate) fn forget(&mut self) {
        self.last = 0;
    }
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
        let expected = wall_then + now.saturating_duration_since(then);
        let (by, forward) = match wall.duration_since(expected) {
            Ok(by) => (by, true),
            Err(behind) => (behind.duration(), false),
        };
        (by > STEP_MIN).then_some(Step { by, forward })
    }
}

/// What is worth a word; a clock that is disciplined is slewed.
const STEP_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_one_leader_never_go_back() {
        let mut times = TxnTimes::default();
        let given: Vec<_> = [7, 9, 3, 9, 10].map(|now| times.next(now)).into();
        assert_eq!(given, [7, 9, 9, 9, 10]);
        times.forget();
        assert_eq!(times.next(3), 3, "another leader goes by its clock");
    }

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
