//! A log, from bytes to events: what cannot be read is passed over, counted, and told.

use std::borrow::Cow;

use quorate_core::id::ServerId;

use crate::event::{Event, Said, What};
use crate::stamp::{self, Stamp};
use crate::{java, ours};

/// A log that was given.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for people: where each claim is found.
    pub name: &'a str,
    /// What is in it: a half of a line at its end, or bytes that are no text, are passed over and told.
    pub bytes: &'a [u8],
    /// Whose log it is, where its lines do not say so (Java's `[myid:]` before it is known, or no such field).
    pub own: Option<i64>,
}

/// What a log holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) name: String,
    pub(crate) lines: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) damage: Damage,
}

/// What could not be read as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Lines that are longer than [`LINE_MAX`]: their beginning is read.
    pub(crate) huge: usize,
    /// Lines with bytes that are no UTF-8: these are replaced.
    pub(crate) no_text: usize,
    /// The last line has no end: the server was writing, or died.
    pub(crate) half: bool,
    /// Events beyond [`EVENTS_MAX`], which are not shown.
    pub(crate) beyond: usize,
    /// Events that no line says whose they are.
    pub(crate) nobody: usize,
}

/// A line of a log is longer only if it is damaged, or holds what a client sent.
const LINE_MAX: usize = 64 * 1024;
/// As many events of one log are shown. A day of elections has fewer.
const EVENTS_MAX: usize = 200_000;
/// So much of a line is kept, as evidence.
const EVIDENCE: usize = 240;
/// A server of ours logs a change after it has sent what comes of it: within this, in microseconds.
const LATE: i64 = 2_000;

/// Reads a log; `at` is its place among those that were given.
pub(crate) fn read(source: &Source<'_>, at: usize) -> Log {
    let mut log = Log { name: source.name.to_owned(), ..Log::default() };
    let mut own = source.own.map(ServerId);
    let given = own.is_some();
    let mut lines = source.bytes.split(|byte| *byte == b'\n').peekable();
    while let Some(bytes) = lines.next() {
        if lines.peek().is_none() {
            if bytes.is_empty() {
                break;
            }
            log.damage.half = true;
        }
        log.lines += 1;
        let cut = &bytes[..bytes.len().min(LINE_MAX)];
        log.damage.huge += usize::from(cut.len() < bytes.len());
        let text = String::from_utf8_lossy(cut);
        log.damage.no_text +=
            usize::from(matches!(text, Cow::Owned(_)) && cut.len() == bytes.len());
        let text = uncoloured(text.trim_end());
        let Some((stamp, said, late)) = said(&text, &mut own, given) else { continue };
        if log.events.len() == EVENTS_MAX {
            log.damage.beyond += 1;
            continue;
        }
        log.events.push(Event {
            own: if given { own } else { said.own.or(own) },
            at: stamp.at,
            fine: stamp.fine,
            late,
            log: at,
            line: log.lines,
            text: text.chars().take(EVIDENCE).collect(),
            what: said.what,
        });
        if !given && said.own.is_some() {
            own = said.own;
        }
    }
    whose(&mut log);
    log
}

/// What a line says; also learns whose log it is from lines that say nothing else.
fn said(text: &str, own: &mut Option<ServerId>, given: bool) -> Option<(Stamp, Said, i64)> {
    if let Some(brace) = text.find('{').filter(|_| text.ends_with('}')) {
        if let Some((stamp, said)) = text.get(brace..).and_then(ours::read_json) {
            return Some((stamp, said, LATE));
        }
    }
    let (stamp, rest) = stamp::read(text)?;
    if let Some(said) = ours::read(rest) {
        return Some((stamp, said, LATE));
    }
    if own.is_none() && !given {
        *own = java::own(rest);
    }
    java::read(rest).map(|said| (stamp, said, 0))
}

/// Lines before the first that says whose log it is belong to that server, too.
fn whose(log: &mut Log) {
    if let Some(first) = log.events.iter().find_map(|event| event.own) {
        for event in log.events.iter_mut().take_while(|event| event.own.is_none()) {
            event.own = Some(first);
        }
    }
    let all = log.events.len();
    log.events.retain(|event| event.own.is_some());
    log.damage.nobody = all - log.events.len();
    for event in &mut log.events {
        // Java's learner does not name itself there.
        if let (What::Sync { learner, .. }, Some(own)) = (&mut event.what, event.own) {
            if *learner == ServerId::NONE {
                *learner = own;
            }
        }
    }
}

/// Without the colours of a terminal.
fn uncoloured(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split('\x1b');
    plain += pieces.next().unwrap_or_default();
    for piece in pieces {
        let code = piece.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let is_code =
            |(code, _): &(&str, &str)| code.chars().all(|c| c.is_ascii_digit() || c == ';');
        plain += code.filter(is_code).map_or(piece, |(_, rest)| rest);
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Log {
        read(&Source { name: "a.log", bytes, own: None }, 0)
    }

    #[test]
    fn damage_is_passed_over_counted_and_told() {
        let mut bytes =
            b"2026-11-26 13:19:45,303 [myid:] - INFO  [q:QuorumPeer@1455] - LOOKING\n".to_vec();
        bytes.extend_from_slice(b"2026-11-26 13:19:45,304 [myid:1] - INFO  [x] - \xff\xfe\0\n");
        bytes.extend(std::iter::repeat_n(b'x', LINE_MAX + 1));
        bytes.extend_from_slice(b"\n2026-11-26 13:19:46,304 [myid:1] - INFO  [q:QuorumPeer@1] - LEADING\n2026-11-26 13:19:46,3");
        let log = read_bytes(&bytes);
        assert_eq!(log.damage, Damage { huge: 1, no_text: 1, half: true, beyond: 0, nobody: 0 });
        assert_eq!(log.lines, 5);
        let owners: Vec<_> = log.events.iter().map(|event| (event.own, event.line)).collect();
        assert_eq!(
            owners,
            [(Some(ServerId(1)), 1), (Some(ServerId(1)), 4)],
            "the first before it is said whose it is"
        );
    }

    #[test]
    fn colours_are_no_part_of_a_line() {
        let line = "\x1b[2m2026-11-26T13:20:01.065643Z\x1b[0m \x1b[32m INFO\x1b[0m \x1b[2mquorate_driver::drive::publish\x1b[0m\x1b[2m:\x1b[0m state FOLLOWING -> LOOKING \x1b[3msid\x1b[0m\x1b[2m=\x1b[0m2 \x1b[3mround\x1b[0m\x1b[2m=\x1b[0m2 \x1b[3mreason\x1b[0m\x1b[2m=\x1b[0mleader 3 closed its link\n";
        assert_eq!(read_bytes(line.as_bytes()).events.len(), 1);
    }
}
