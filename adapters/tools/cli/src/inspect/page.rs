//! Stdout of these commands, as text or as one JSON object per line, until its reader has gone.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Stdout, until its reader has gone.
pub(super) struct Page {
    out: BufWriter<StdoutLock<'static>>,
    /// One JSON object per line.
    json: bool,
}

/// The reader wants no more, or cannot be written to.
pub(super) enum Gone {
    /// It has closed its end: that is no failure.
    Quietly,
    /// The system refuses.
    With(Failure),
}

impl Page {
    pub(super) fn new(json: bool) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), json }
    }

    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// A line for people; nothing in JSON.
    pub(super) fn line(&mut self, text: &str) -> Result<(), Gone> {
        if self.json {
            return Ok(());
        }
        writeln!(self.out, "{text}").map_err(gone)
    }

    /// A line for programs; nothing in text.
    pub(super) fn object(&mut self, object: &impl Serialize) -> Result<(), Gone> {
        if !self.json {
            return Ok(());
        }
        let text = serde_json::to_string(object).map_err(|error| gone(error.into()))?;
        writeln!(self.out, "{text}").map_err(gone)
    }

    /// Everything has been said.
    pub(super) fn end(mut self) -> Result<(), Gone> {
        self.out.flush().map_err(gone)
    }
}

fn gone(error: io::Error) -> Gone {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Gone::Quietly;
    }
    Gone::With(Failure::failed(format!("cannot write to stdout: {error}")))
}

impl From<Failure> for Gone {
    fn from(failure: Failure) -> Self {
        Self::With(failure)
    }
}

/// What `work` has written is what the command does.
pub(super) fn written(work: impl FnOnce() -> Result<(), Gone>) -> Result<(), Failure> {
    match work() {
        Ok(()) | Err(Gone::Quietly) => Ok(()),
        Err(Gone::With(failure)) => Err(failure),
    }
}

/// Milliseconds since 1970 as people write them, in UTC.
pub(super) fn time(millis: i64) -> String {
    let (seconds, millis) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 1 March of the year 0, in eras of 400 years, the leap day last in its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Bytes, so that they stay on one line; no more than some of them.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    if bytes.len() > SHOWN {
        format!("\"{shown}…\" ({} bytes)", bytes.len())
    } else {
        format!("\"{shown}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_795_259_381_736, "2026-11-21T11:09:41.736Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time(millis), expected);
        }
    }
}
