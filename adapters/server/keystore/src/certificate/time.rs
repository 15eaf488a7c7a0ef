//! The times of a certificate (RFC 5280, 4.1.2.5).

use crate::der::{Der, DerError};

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// In seconds since 1970.
pub(super) fn read(der: &mut Der<'_>) -> Result<i64, DerError> {
    let (tag, text) = der.any()?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = two(text)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (century, rest) = two(text)?;
            let (year, rest) = two(rest)?;
            (century * 100 + year, rest)
        }
        _ => return Err(DerError::Other),
    };
    let (month, rest) = two(rest)?;
    let (day, rest) = two(rest)?;
    let (hour, rest) = two(rest)?;
    let (minute, rest) = two(rest)?;
    let (second, rest) = two(rest)?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    if rest != b"Z" || !fits || hour > 23 || minute > 59 || second > 60 {
        return Err(DerError::Other);
    }
    Ok(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn two(text: &[u8]) -> Result<(i64, &[u8]), DerError> {
    match text {
        [high @ b'0'..=b'9', low @ b'0'..=b'9', rest @ ..] => {
            Ok((i64::from(high - b'0') * 10 + i64::from(low - b'0'), rest))
        }
        _ => Err(DerError::Other),
    }
}

/// Days since 1970 in the Gregorian calendar, of which 400 years have 146,097. A year begins with March here, so that the
/// odd day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let of_year = (month * 153 + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}
