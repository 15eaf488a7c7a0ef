//! The lines of Java's properties files, which `zoo.cfg`, dynamic files and the configuration text in
//! messages are.
//!
//! It knows keys and values, not what they mean.

use alloc::borrow::ToOwned;
use alloc::string::String;

use thiserror::Error;

/// One `key=value` of a properties file, unescaped, without blanks at its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the line where it begins, from 1.
    pub number: usize,
    /// What stands before the separator.
    pub key: String,
    /// What stands behind it, perhaps nothing.
    pub value: String,
}

/// Reads the lines of a Java properties file in order, also those that say a key again.
///
/// As `java.util.Properties` has it: `#` and `!` begin a comment; a key ends at `=`, `:` or a blank;
/// a backslash at the end continues a line, elsewhere it takes the next character as it is, or means
/// a tab, newline, return, form feed or `\u` with four hexadecimal digits. Characters outside the
/// basic plane stand for themselves, not as two `\u`.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: &'a str,
    /// How many natural lines were read.
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { rest: text, number: 0 }
    }

    /// The next line up to a newline, return or both.
    fn natural(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\n', '\r']));
        self.rest = rest.unwrap_or_default();
        Some(line)
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, EscapeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut piece = self.natural()?.trim_start_matches(BLANKS);
            let number = self.number;
            if piece.is_empty() || piece.starts_with(['#', '!']) {
                continue;
            }
            let mut logical = String::new();
            while let Some(head) = continued(piece) {
                logical.push_str(head);
                piece = self.natural().unwrap_or_default().trim_start_matches(BLANKS);
            }
            logical.push_str(piece);
            if !logical.is_empty() {
                return Some(split(number, &logical));
            }
        }
    }
}

/// A backslash in a properties file that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line {line}: \\u is not followed by the four hexadecimal digits of a character")]
pub struct EscapeError {
    /// The number of the line where the entry begins, from 1.
    pub line: usize,
}

/// What properties files call white space.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// `piece` without its last backslash, if that continues the line: if it is not itself escaped.
fn continued(piece: &str) -> Option<&str> {
    let backslashes = piece.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if backslashes % 2 == 1 { piece.strip_suffix('\\') } else { None }
}

fn split(number: usize, logical: &str) -> Result<Line, EscapeError> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut chars = logical.chars().peekable();
    while let Some(c) = chars.next_if(|c| !matches!(c, '=' | ':') && !BLANKS.contains(c)) {
        key.push(unescape(number, c, &mut chars)?);
    }
    while chars.next_if(|c| BLANKS.contains(c)).is_some() {}
    if chars.next_if(|c| matches!(c, '=' | ':')).is_some() {
        while chars.next_if(|c| BLANKS.contains(c)).is_some() {}
    }
    while let Some(c) = chars.next() {
        value.push(unescape(number, c, &mut chars)?);
    }
    // ZooKeeper trims both, with Java's idea of a blank.
    let trim = |text: &str| text.trim_matches(|c| c <= ' ').to_owned();
    Ok(Line { number, key: trim(&key), value: trim(&value) })
}

fn unescape(
    line: usize,
    first: char,
    rest: &mut impl Iterator<Item = char>,
) -> Result<char, EscapeError> {
    if first != '\\' {
        return Ok(first);
    }
    Ok(match rest.next() {
        Some('t') => '\t',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('f') => '\u{c}',
        Some('u') => (0..4)
            .try_fold(0, |code, _| Some(code * 16 + rest.next()?.to_digit(16)?))
            .and_then(char::from_u32)
            .ok_or(EscapeError { line })?,
        Some(other) => other,
        // An escaped end continues the line and never comes here.
        None => '\\',
    })
}
