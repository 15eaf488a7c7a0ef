//! Names of subjects and issuers, as text (RFC 4514).

use std::fmt::Write as _;

use crate::der::{BMP_STRING, Der, DerError, OBJECT_IDENTIFIER, SET};
use crate::oid;

const COMMON_NAME: &[u8] = b"\x55\x04\x03";

/// Those that RFC 4514 names, and two that are usual.
const SHORT: &[(&[u8], &str)] = &[
    (COMMON_NAME, "CN"),
    (b"\x55\x04\x06", "C"),
    (b"\x55\x04\x07", "L"),
    (b"\x55\x04\x08", "ST"),
    (b"\x55\x04\x09", "STREET"),
    (b"\x55\x04\x0a", "O"),
    (b"\x55\x04\x0b", "OU"),
    (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19", "DC"),
    (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01", "UID"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "EMAILADDRESS"),
];

/// One part of a name.
struct Part<'a> {
    kind: &'a [u8],
    value: String,
    /// Whether it belongs to the one before it.
    joined: bool,
}

/// Whether a name can be read.
pub(super) fn check(name: &[u8]) -> Result<(), DerError> {
    parts(name).map(drop)
}

pub(super) fn text(name: &[u8]) -> String {
    let mut out = String::new();
    let parts = parts(name).unwrap_or_default();
    // What is joined keeps its order; the rest is turned round.
    let starts = parts.iter().enumerate().filter(|(_, part)| !part.joined).map(|(place, _)| place);
    for start in starts.rev() {
        if !out.is_empty() {
            out.push(',');
        }
        for (place, part) in parts.iter().enumerate().skip(start) {
            if place > start {
                if !part.joined {
                    break;
                }
                out.push('+');
            }
            let short = SHORT.iter().find(|(known, _)| *known == part.kind);
            let kind = short.map_or_else(|| oid::name(part.kind), |(_, short)| (*short).to_owned());
            let _ = write!(out, "{kind}={}", escaped(&part.value));
        }
    }
    out
}

pub(super) fn common_name(name: &[u8]) -> Option<String> {
    let parts = parts(name).ok()?;
    parts.into_iter().rfind(|part| part.kind == COMMON_NAME).map(|part| part.value)
}

fn parts(name: &[u8]) -> Result<Vec<Part<'_>>, DerError> {
    let mut found = Vec::new();
    let mut name = Der::new(name).sequence()?;
    while !name.is_empty() {
        let mut together = name.open(SET)?;
        let mut joined = false;
        while !together.is_empty() {
            let mut part = together.sequence()?;
            let kind = part.take(OBJECT_IDENTIFIER)?;
            let (tag, value) = part.any()?;
            found.push(Part { kind, value: string(tag, value), joined });
            joined = true;
        }
    }
    Ok(found)
}

/// A string of any type. What its type does not allow is replaced: it is only shown, and names of hosts are ASCII.
fn string(tag: u8, bytes: &[u8]) -> String {
    if tag == BMP_STRING {
        let units = bytes.chunks_exact(2).map(|unit| match unit {
            [high, low] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        });
        return char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
    }
    String::from_utf8_lossy(bytes).into_owned()
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (place, c) in value.chars().enumerate() {
        let at_an_end = (c == ' ' && (place == 0 || place == last)) || (c == '#' && place == 0);
        if at_an_end || matches!(c, '"' | '+' | ',' | ';' | '<' | '>' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
