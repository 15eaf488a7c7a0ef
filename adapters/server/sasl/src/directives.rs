//! Lists of directives, which every token is (RFC 2831, 7.1): `name=value`, or `name="quoted value"`, with commas between.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::refused::Refused;

/// The directives of a token, in their order.
#[derive(Debug)]
pub(crate) struct Directives<'a>(Vec<(&'a [u8], Cow<'a, [u8]>)>);

impl<'a> Directives<'a> {
    /// Reads them, of at most `most` bytes.
    pub(crate) fn read(token: &'a [u8], most: usize) -> Result<Self, Refused> {
        if token.len() > most {
            return Err(Refused::Length { length: token.len(), most });
        }
        let mut rest = token;
        let mut list = Vec::new();
        loop {
            // Elements may be empty.
            while let [b',' | b' ' | b'\t' | b'\r' | b'\n', more @ ..] = rest {
                rest = more;
            }
            if rest.is_empty() {
                return Ok(Self(list));
            }
            if list.len() == DIRECTIVES_MAX {
                return Err(Refused::Malformed("it has too many directives"));
            }
            let (name, after) = word(rest);
            let after = after.trim_ascii_start();
            let ([b'=', after @ ..], false) = (after, name.is_empty()) else {
                return Err(Refused::Malformed("a directive has no name, or no value"));
            };
            let (value, after) = value(after.trim_ascii_start())?;
            list.push((name, value));
            rest = after.trim_ascii_start();
            if !matches!(rest, [] | [b',', ..]) {
                return Err(Refused::Malformed("directives have no comma between them"));
            }
        }
    }

    /// All values of a directive; names are the same in small and in large letters.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let is = move |other: &[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().filter(move |(other, _)| is(other)).map(|(_, value)| &**value)
    }

    /// The value of one that may be there once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&[u8]>, Refused> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            Some(_) => Err(Refused::Malformed("a directive is there twice")),
            None => Ok(first),
        }
    }

    /// The value of one that has to be there once.
    pub(crate) fn need(&self, name: &str) -> Result<&[u8], Refused> {
        self.one(name)?.ok_or(Refused::Malformed("a directive is missing"))
    }
}

/// The characters of a token of RFC 2616 at the front, and what follows.
fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let is_separator = |byte: &u8| b"()<>@,;:\\\"/[]?={} \t".contains(byte);
    let ends = |byte: &u8| !byte.is_ascii_graphic() || is_separator(byte);
    bytes.split_at(bytes.iter().position(ends).unwrap_or(bytes.len()))
}

/// A word, or a text in quotes.
fn value(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), Refused> {
    let [b'"', quoted @ ..] = bytes else {
        return match word(bytes) {
            ([], _) => Err(Refused::Malformed("a directive has no value")),
            (word, rest) => Ok((word.into(), rest)),
        };
    };
    let mut text = Vec::new();
    let mut rest = quoted;
    loop {
        let (byte, more) = match rest {
            [b'"', rest @ ..] => return Ok((text.into(), rest)),
            [b'\\', byte, rest @ ..] => (byte, rest),
            [b'\\'] | [] => return Err(Refused::Malformed("a quoted value does not end")),
            [byte, rest @ ..] => (byte, rest),
        };
        text.push(*byte);
        rest = more;
    }
}

/// Appends `name="value"`, or without quotes.
pub(crate) fn put(out: &mut Vec<u8>, name: &str, value: &[u8], quoted: bool) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    if !quoted {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// A response has some ten.
const DIRECTIVES_MAX: usize = 32;
