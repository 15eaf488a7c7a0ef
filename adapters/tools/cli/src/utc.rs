//! Times as people write them.

/// Milliseconds since 1970 as people write them, in UTC.
pub(crate) fn utc(millis: i64) -> String {
    let (seconds, millis) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    format!("{}.{millis:03}Z", utc_seconds(seconds))
}

/// Seconds, the same.
pub(crate) fn utc_of_seconds(seconds: i64) -> String {
    format!("{}Z", utc_seconds(seconds))
}

/// Microseconds, the same.
pub(crate) fn utc_micros(micros: i64) -> String {
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    format!("{}.{micros:06}Z", utc_seconds(seconds))
}

fn utc_seconds(seconds: i64) -> String {
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
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
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
            assert_eq!(utc(millis), expected);
            let micros = expected.replace('Z', "000Z");
            assert_eq!(utc_micros(millis * 1000), micros);
        }
    }
}
