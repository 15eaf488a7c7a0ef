//! Lines of the log that clients can cause, at a bounded rate: what was kept back is counted, and said with the next one.

use core::time::Duration;

use quorate_core::time::Instant;

/// Lets a few lines through in each window.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    since: Option<Instant>,
    said: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Whether to speak now; if so, how many were kept back since the last time.
    pub(crate) fn permit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.since(since) >= WINDOW) {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said < PER_WINDOW {
            self.said += 1;
            return Some(core::mem::take(&mut self.suppressed));
        }
        self.suppressed += 1;
        None
    }
}

const WINDOW: Duration = Duration::from_secs(10);
const PER_WINDOW: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_lines_are_a_few_and_a_number() {
        let mut limit = LogLimit::default();
        let at = |millis| Instant::ORIGIN + Duration::from_millis(millis);
        let said: usize = (0..1000).filter_map(|nth| limit.permit(at(nth))).count();
        assert_eq!(said, 5);
        assert_eq!(limit.permit(at(10_000)), Some(995));
        assert_eq!(limit.permit(at(10_001)), Some(0));
    }
}
