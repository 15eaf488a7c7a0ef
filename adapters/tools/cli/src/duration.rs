//! A time on the command line: `500ms`, `20s`, `2m`.

use std::time::Duration;

use thiserror::Error;

/// Seconds without a unit; a millisecond at least and an hour at most.
pub(crate) fn duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        _ => return Err(wrong()),
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    let millis = millis.filter(|millis| (1..=3_600_000).contains(millis));
    millis.map(Duration::from_millis).ok_or_else(wrong)
}

/// An argument that is none.
#[derive(Debug, Error)]
#[error("{0:?} is no time such as 20s, 500ms or 2m, of an hour at most")]
pub(crate) struct DurationError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        for (text, millis) in [
            ("20s", 20_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("7", 7_000),
            ("1ms", 1),
            ("60m", 3_600_000),
        ] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for wrong in ["", "s", "0s", "-1s", "1.5s", "61m", "1h", "99999999999999999999m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
