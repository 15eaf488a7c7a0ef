//! Lines of the log that clients can cause, at a bounded rate: what was kept back is counted, and said with the next one.
//! What clients have written themselves is escaped there, and cut.

use core::fmt::{self, Write as _};
use core::time::Duration;

use quorate_core::time::Instant;

/// Lets a few lines through, and then one now and then.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    /// Since when the lines that were said are forgotten, one after the other.
    since: Instant,
    said: u64,
    suppressed: u64,
}

impl LogLimit {
    /// Whether to speak now; if so, how many were kept back since the last time.
    pub(crate) fn permit(&mut self, now: Instant) -> Option<u64> {
        let forgotten = now.since(self.since).as_millis() / EVERY.as_millis();
        self.said = self.said.saturating_sub(u64::try_from(forgotten).unwrap_or(u64::MAX));
        match u32::try_from(forgotten) {
            Ok(forgotten) if self.said > 0 => self.since = self.since + EVERY * forgotten,
            _ => self.since = now,
        }
        if self.said < AT_ONCE {
            self.said += 1;
            return Some(core::mem::take(&mut self.suppressed));
        }
        self.suppressed += 1;
        None
    }
}

/// The beginning of a client's text, escaped: on one line, and nothing that a terminal obeys.
pub(crate) struct Cut<'a>(pub(crate) &'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars();
        for character in rest.by_ref().take(CUT) {
            write!(f, "{}", character.escape_debug())?;
        }
        if rest.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

/// How many characters of it are shown.
const CUT: usize = 64;
const EVERY: Duration = Duration::from_secs(10);
const AT_ONCE: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_lines_are_a_few_and_a_number() {
        let mut limit = LogLimit::default();
        let at = |millis| Instant::ORIGIN + Duration::from_millis(millis);
        let said: usize = (0..1000).filter_map(|nth| limit.permit(at(nth))).count();
        assert_eq!(said, 3);
        assert_eq!(limit.permit(at(10_000)), Some(997));
        assert_eq!(limit.permit(at(10_001)), None, "one in ten seconds");
        assert_eq!(limit.permit(at(20_000)), Some(1));
        let quiet: usize = (0..5).filter_map(|nth| limit.permit(at(100_000 + nth))).count();
        assert_eq!(quiet, 3, "whoever was quiet may say as much as at first");
    }

    #[test]
    fn what_a_client_wrote_is_escaped_and_cut() {
        use alloc::{format, string::ToString as _};
        assert_eq!(Cut("/a\n\x1b[2J").to_string(), "/a\\n\\u{1b}[2J");
        let long = format!("/{}", "x".repeat(1000));
        assert_eq!(Cut(&long).to_string(), format!("{}…", &long[..64]));
    }
}
