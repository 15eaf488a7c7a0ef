//! A server's log, from bytes to the lines that have one meaning. Whatever the bytes are, this ends.

use quorate_core::id::ServerId;

use crate::finding::shortened;
use crate::meaning::{MEANINGS, Meaning};

/// A log.
#[derive(Clone, Debug)]
pub struct Log {
    /// Its name, for people.
    pub name: String,
    /// Whose it is, if that was said.
    pub id: Option<ServerId>,
    /// How many lines it has.
    pub lines: usize,
    /// The lines that mean something, the last ones of each meaning.
    pub found: Vec<LogLine>,
}

/// Lines with one meaning in a log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// What it means.
    pub meaning: &'static Meaning,
    /// The number in the line that the meaning looks for: a server's id, milliseconds, bytes.
    pub number: Option<i64>,
    /// How many such lines there are with that number, or one for a size.
    pub count: usize,
    /// The last of them, from 1.
    pub line: usize,
    /// The last of them, shortened.
    pub text: String,
}

impl Log {
    /// Reads a log.
    pub fn of(name: &str, id: Option<ServerId>, bytes: &[u8]) -> Self {
        let mut log = Self { name: name.to_owned(), id, lines: 0, found: Vec::new() };
        let text = |line: &[u8]| {
            let cut = line.get(..line.len().min(LINE_MAX)).unwrap_or_default();
            String::from_utf8_lossy(cut).into_owned()
        };
        let mut lines = bytes.split(|byte| *byte == b'\n').map(text).peekable();
        while let Some(text) = lines.next() {
            log.lines += 1;
            let next = lines.peek().map_or("", String::as_str);
            if let Some(id) = sender(&text) {
                let gone = |old: &LogLine| old.meaning.ends_when_heard() && old.number == Some(id);
                log.found.retain(|old| !gone(old));
            }
            for meaning in &MEANINGS {
                if let Some(number) = meaning.read(&text, next) {
                    log.add(meaning, number, &text);
                }
            }
        }
        log
    }

    fn add(&mut self, meaning: &'static Meaning, number: Option<i64>, text: &str) {
        let line = self.lines;
        let same = |old: &&mut LogLine| {
            old.meaning.contains == meaning.contains
                && (meaning.is_of_size() || old.number == number)
        };
        if let Some(old) = self.found.iter_mut().find(same) {
            old.count += 1;
            // Of sizes the greatest is told.
            if !meaning.is_of_size() || number >= old.number {
                (old.number, old.line, old.text) = (number, line, shortened(text));
            }
        } else if self.found.len() < FOUND_MAX {
            let text = shortened(text);
            self.found.push(LogLine { meaning, number, count: 1, line, text });
        }
    }
}

/// The server whose notification a line of Java's logs tells of, since 3.4.
fn sender(text: &str) -> Option<i64> {
    let rest = text.split_once("Notification: ")?.1;
    if let Some((_, rest)) = rest.split_once("n.sid:") {
        return rest.split([',', ';', ' ']).next()?.parse().ok();
    }
    rest.split_once(" (n.sid)")?.0.rsplit([' ', ',']).next()?.parse().ok()
}

/// A line of a log is longer only if it is damaged, or holds what a client sent.
const LINE_MAX: usize = 64 * 1024;
/// So many different things of one log are kept.
const FOUND_MAX: usize = 1000;
