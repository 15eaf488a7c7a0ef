//! A leader's look at containers and TTL nodes that are due: when, how many at a time, and by which clock.
//!
//! ```text
//!   every interval: look ──► what is due ──► one by one, at their pace ──► deleteContainer, judged anew when it is prepared
//!                    └─ the wall clock was set forward ──► nothing, this time
//! ```

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorate_core::time::Instant;
use quorate_znode::Tree;

use crate::options::Options;

/// What a leader deletes by itself.
#[derive(Debug)]
pub(crate) struct Containers {
    interval: Duration,
    /// Between two deletions.
    pace: Duration,
    unused_max: Option<Duration>,
    look_at: Instant,
    /// When it has looked last, by both clocks.
    looked: (Instant, i64),
    /// What both clocks showed last.
    seen: (Instant, i64),
    /// How far the wall clock was set forward at once since it has looked, at most, in milliseconds.
    jumped: i64,
    /// What was found to be due and is not asked for yet.
    found: VecDeque<String>,
    next_at: Instant,
}

impl Containers {
    /// A leader begins: it looks an interval from now for the first time.
    pub(crate) fn new(now: Instant, wall_ms: i64, options: &Options) -> Self {
        let pace = Duration::from_secs(60) / options.containers_per_minute.max(1);
        Self {
            interval: options.container_interval,
            pace,
            unused_max: options.container_unused_max,
            look_at: now + options.container_interval,
            looked: (now, wall_ms),
            seen: (now, wall_ms),
            jumped: 0,
            found: VecDeque::new(),
            next_at: now,
        }
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Instant {
        if self.found.is_empty() { self.look_at } else { self.next_at.min(self.look_at) }
    }

    /// What is to be deleted now.
    pub(crate) fn take_due(&mut self, now: Instant, wall_ms: i64, tree: &Tree) -> Vec<String> {
        // What was set back and forward again may show no more than at the last look, and more than what was written between.
        let jumped = ahead(core::mem::replace(&mut self.seen, (now, wall_ms)), self.seen);
        self.jumped = self.jumped.max(jumped);
        if self.look_at <= now {
            self.look_at = now + self.interval;
            let ahead_ms = ahead(core::mem::replace(&mut self.looked, self.seen), self.seen);
            let ahead_ms = ahead_ms.max(core::mem::take(&mut self.jumped));
            // Whose clock was set forward would find nodes due that were written just now. Next time it has told the
            // truth for an interval.
            if ahead_ms > millis(self.interval) {
                tracing::warn!(
                    event = "clock.jumped",
                    ahead_ms,
                    "the clock was set forward: nodes that seem to be due are looked at again later"
                );
            } else if self.found.is_empty() {
                let due = tree.due(wall_ms, self.unused_max.map(millis));
                self.found = due.map(String::from).collect();
                self.next_at = self.next_at.max(now);
            }
        }
        let mut due = Vec::new();
        while self.next_at <= now {
            let Some(path) = self.found.pop_front() else { break };
            due.push(path);
            self.next_at = self.next_at + self.pace;
        }
        due
    }
}

/// By how much more the wall clock has gone on than the monotonic one, in milliseconds.
fn ahead((at, wall): (Instant, i64), (now, wall_now): (Instant, i64)) -> i64 {
    wall_now.saturating_sub(wall.saturating_add(millis(now.since(at))))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
