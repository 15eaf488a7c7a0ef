//! Times of logs: read from the beginning of a line, and written for people.

/// The time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Microseconds since 1970; a time without a zone is taken for UTC, and what it is wrong by is an offset like
    /// that of any clock.
    pub(crate) at: i64,
    /// What its last digit counts, in microseconds.
    pub(crate) fine: i64,
}

/// How far into a line its time may stand: behind the names that Docker, Kubernetes and the journal put before it.
const BEFORE_MAX: usize = 120;

/// The time in a line, and what stands behind it. None if there is none.
///
/// `2026-11-26 13:19:47,112` (log4j, logback), with `T`, with a point, with up to nine digits, with `Z`.
pub(crate) fn read(line: &str) -> Option<(Stamp, &str)> {
    let bytes = line.as_bytes();
    let last = bytes.len().checked_sub(19)?.min(BEFORE_MAX);
    let start = (0..=last).find(|start| looks_like_a_time(&bytes[*start..*start + 19]))?;
    let number = |from: usize, digits: usize| {
        bytes[start + from..start + from + digits]
            .iter()
            .fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'))
    };
    let days = days_since_1970(number(0, 4), number(5, 2), number(8, 2));
    let seconds = number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
    let mut end = start + 19;
    let (mut micros, mut fine) = (0, 1_000_000);
    if matches!(bytes.get(end), Some(b',' | b'.')) {
        end += 1;
        while let Some(digit) = bytes.get(end).filter(|byte| byte.is_ascii_digit()) {
            if fine > 1 {
                fine /= 10;
                micros += i64::from(digit - b'0') * fine;
            }
            end += 1;
        }
    }
    let at = (days * 86_400 + seconds) * 1_000_000 + micros;
    // A digit is a byte of its own, so this is the border of a character.
    Some((Stamp { at, fine }, line.get(end..)?))
}

fn looks_like_a_time(bytes: &[u8]) -> bool {
    b"dddd-dd-ddTdd:dd:dd".iter().zip(bytes).all(|(form, byte)| match form {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        form => form == byte,
    })
}

/// Of the calendar that clocks use, also where it was not yet in force. Months beyond December go into the next year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day
        - 1
        - 719_468
}

/// A time given by an operator: a whole one, or `13:19:47`, which may have a fraction, of the day of `beside`.
pub(crate) fn asked(text: &str, beside: i64) -> Option<i64> {
    if let Some((stamp, _)) = read(text) {
        return Some(stamp.at);
    }
    let day = beside.div_euclid(86_400_000_000);
    let (stamp, _) = read(&format!("1970-01-01T{}", text.trim()))?;
    Some(day * 86_400_000_000 + stamp.at)
}

/// The time of a day, as `13:19:47.112`, with microseconds if they are known.
pub(crate) fn clock(at: i64) -> String {
    let of_day = at.rem_euclid(86_400_000_000);
    let (seconds, micros) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros % 1000 == 0 {
        format!("{hour:02}:{minute:02}:{second:02}.{:03}", micros / 1000)
    } else {
        format!("{hour:02}:{minute:02}:{second:02}.{micros:06}")
    }
}

/// A span in the unit that suits it: `3.1 ms`, `12.40 s`.
pub(crate) fn span(micros: i64) -> String {
    match micros.unsigned_abs() {
        0 => "0 ms".to_owned(),
        1..=999_999 => format!("{}.{} ms", micros / 1000, micros.unsigned_abs() % 1000 / 100),
        _ => format!("{}.{:02} s", micros / 1_000_000, micros.unsigned_abs() % 1_000_000 / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_of_a_time_is_read() {
        for (line, at, fine, rest) in [
            ("2026-11-26 13:19:47,112 [myid:2]", 1_795_699_187_112_000, 1000, " [myid:2]"),
            ("2026-11-26T13:20:01.065643Z  INFO", 1_795_699_201_065_643, 1, "Z  INFO"),
            ("[2019-11-14 03:19:10,837] INFO x", 1_573_701_550_837_000, 1000, "] INFO x"),
            ("zk1_1  | 2000-02-29 00:00:00 - x", 951_782_400_000_000, 1_000_000, " - x"),
        ] {
            assert_eq!(read(line), Some((Stamp { at, fine }, rest)), "{line}");
        }
        for line in
            ["", "java.io.IOException", "\tat java.base", "2026-11-26", "ä".repeat(99).as_str()]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn a_time_of_day_is_of_the_day_of_the_logs() {
        let beside = 1_795_699_187_112_000;
        assert_eq!(asked("13:19:47.112", beside), Some(beside));
        assert_eq!(asked("2026-11-26T13:19:47.112", 0), Some(beside));
        assert_eq!(asked("noon", beside), None);
        assert_eq!(clock(beside), "13:19:47.112");
    }
}
