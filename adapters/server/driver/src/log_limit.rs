//! Warnings that outsiders can cause, at a bounded rate: a log is no place that they may fill.
//!
//! What was kept back is counted, and the count is said with the next one. The service does the same for its clients, in
//! the time of its steps and without a lock; below both are only the core and the traits, which log nothing.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::locked;

/// Lets a few warnings through in each window and counts the rest.
#[derive(Debug)]
pub(crate) struct LogLimit {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    said: u32,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self { window: Mutex::new(Window { since: None, said: 0, suppressed: 0 }) }
    }

    /// Whether to speak now; if so, how many were kept back since the last time.
    pub(crate) fn permit(&self, now: Instant) -> Option<u64> {
        let mut window = locked(&self.window);
        if window.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            window.since = Some(now);
            window.said = 0;
        }
        if window.said < PER_WINDOW {
            window.said += 1;
            Some(std::mem::take(&mut window.suppressed))
        } else {
            window.suppressed += 1;
            None
        }
    }
}

const WINDOW: Duration = Duration::from_secs(10);
const PER_WINDOW: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_not_said() {
        let limit = LogLimit::new();
        let start = Instant::now();
        let said = (0..1000).filter_map(|_| limit.permit(start)).count();
        assert_eq!(said, PER_WINDOW as usize);
        assert_eq!(limit.permit(start + WINDOW), Some(1000 - u64::from(PER_WINDOW)));
        assert_eq!(limit.permit(start + WINDOW), Some(0));
    }
}
