//! Where everything stands in a diagram.
//!
//! Each tenth of a millisecond is a band as high as the notes of the server that has most of them. Messages arrive at
//! the upper edge of a band and leave at the lower one, so they never go up.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::message::Message;
use quorate_core::report::Change;
use quorate_core::time::Instant;
use quorate_core::vote::ServerState;

use super::escaped;
use super::style::{
    self, ALL, ARROW, COLUMN, CRASH, HEAD, LABEL, LABEL_CHARS, LEFT, LINE, LOST, NAME, NOTE_CHARS,
    NOTE_REST, PAPER, TICK, TIME, TITLE, TOP, WHY,
};
use crate::record::{Arrow, Fate, Happening, Moment, millis};

/// Among how many of the last arrows one is looked for that goes together with the next.
const BESIDE_MAX: usize = 16;
/// A gap of time that is told, not only drawn.
const GAP: Duration = Duration::from_millis(500);

/// Between the heads of arrows and the first note.
const HEADROOM: i64 = 9;

/// Something to write beside a server's line.
#[derive(Debug)]
struct Note {
    what: String,
    why: String,
    mark: Mark,
}

/// What is drawn on the line itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Dot,
    Disk,
    Crash,
    /// From here on the line is another one.
    State(Option<ServerState>),
}

impl Note {
    fn lines(&self) -> i64 {
        if self.why.is_empty() { 1 } else { 2 }
    }
}

/// What happened at one instant.
#[derive(Debug, Default)]
struct Band {
    notes: BTreeMap<ServerId, Vec<Note>>,
    top: i64,
    bottom: i64,
}

/// A diagram whose pieces have their places.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    servers: &'a [ServerId],
    bands: BTreeMap<Instant, Band>,
    /// Those that leave and arrive together are one.
    arrows: Vec<(Instant, Vec<&'a Arrow>)>,
    height: i64,
}

impl<'a> Layout<'a> {
    pub(super) fn of(servers: &'a [ServerId], moments: &'a [Moment]) -> Self {
        let mut bands: BTreeMap<Instant, Band> = BTreeMap::new();
        let mut arrows: Vec<(Instant, Vec<&Arrow>)> = Vec::new();
        for moment in moments {
            let band = bands.entry(about(moment.at)).or_default();
            if let Happening::Message(arrow) = &moment.what {
                bands.entry(about(arrow.sent.unwrap_or(moment.at))).or_default();
                let at = about(moment.at);
                let beside = |(then, others): &&mut (Instant, Vec<&Arrow>)| {
                    *then == at && others.iter().all(|other| go_together(other, arrow))
                };
                match arrows.iter_mut().rev().take(BESIDE_MAX).find(beside) {
                    Some((_, others)) => others.push(arrow),
                    None => arrows.push((at, vec![arrow])),
                }
            } else {
                band.notes.entry(moment.server).or_default().push(note(moment));
            }
        }
        let mut y = TOP;
        let mut before = None;
        for (at, band) in &mut bands {
            let passed = before.map_or(Duration::ZERO, |before| *at - before);
            y += room(passed);
            let lines = |notes: &Vec<Note>| notes.iter().map(Note::lines).sum::<i64>();
            band.top = y;
            if let Some(most) = band.notes.values().map(lines).max() {
                y += HEADROOM + LINE * most;
            }
            band.bottom = y;
            before = Some(*at);
        }
        Self { servers, bands, arrows, height: y + 2 * LINE }
    }

    fn x(&self, id: ServerId) -> Option<i64> {
        let at = self.servers.iter().position(|one| *one == id)?;
        Some(LEFT + COLUMN * i64::try_from(at).ok()? + 24)
    }

    pub(super) fn draw(&self, title: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = i64::try_from(self.servers.len()).unwrap_or(1);
        let (width, height) = (LEFT + COLUMN * columns + NOTE_REST, self.height);
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" {ALL}>"
        )?;
        let title = escaped(title);
        writeln!(
            f,
            "<title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" {PAPER}/>"
        )?;
        writeln!(f, "<text {TITLE} x=\"16\" y=\"26\">{title}</text>")?;
        legend(f)?;
        for id in self.servers {
            let x = self.x(*id).unwrap_or(0);
            writeln!(f, "<text {NAME} x=\"{x}\" y=\"{}\">{id}</text>", TOP - 12)?;
        }
        self.times(width, f)?;
        for id in self.servers {
            self.lifeline(*id, f)?;
        }
        for (at, arrows) in &self.arrows {
            self.arrow(*at, arrows, f)?;
        }
        for id in self.servers {
            self.notes(*id, f)?;
        }
        writeln!(f, "</svg>")
    }

    fn times(&self, width: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<(Instant, i64)> = None;
        for (at, band) in &self.bands {
            let y = band.top;
            let end = width - 8;
            writeln!(
                f,
                "<line {TICK} x1=\"{LEFT}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\"/>\
                 <text {TIME} x=\"{}\" y=\"{}\">{} ms</text>",
                LEFT - 10,
                y + 4,
                millis(*at)
            )?;
            if let Some((last, bottom)) = before.filter(|(last, _)| *at - *last >= GAP) {
                let passed = (*at - last).as_secs_f64();
                let middle = (bottom + y) / 2 + 4;
                let x = LEFT - 10;
                writeln!(f, "<text {TIME} x=\"{x}\" y=\"{middle}\">⋮ {passed:.1} s</text>")?;
            }
            before = Some((*at, band.bottom));
        }
        Ok(())
    }

    /// The line of a server, in the colours of its states.
    fn lifeline(&self, id: ServerId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.x(id).unwrap_or(0);
        let mut since = TOP;
        let mut state = None;
        let mut until = |y: i64, state: Option<ServerState>, f: &mut fmt::Formatter<'_>| {
            if let Some(look) = state.map(style::lifeline) {
                writeln!(f, "<line {look} x1=\"{x}\" y1=\"{since}\" x2=\"{x}\" y2=\"{y}\"/>")?;
            }
            since = y;
            Ok(())
        };
        for band in self.bands.values() {
            let mut y = band.top + HEADROOM;
            for note in band.notes.get(&id).into_iter().flatten() {
                if let Mark::State(next) = note.mark {
                    until(y, state, f)?;
                    state = next;
                } else if note.mark == Mark::Crash {
                    until(y, state, f)?;
                    state = None;
                }
                y += LINE * note.lines();
            }
        }
        until(self.height - LINE, state, f)
    }

    fn notes(&self, id: ServerId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.x(id).unwrap_or(0);
        for band in self.bands.values() {
            let mut y = band.top + HEADROOM;
            for note in band.notes.get(&id).into_iter().flatten() {
                match note.mark {
                    Mark::Dot | Mark::State(_) => {
                        writeln!(f, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3.5\"/>")?;
                    }
                    Mark::Disk => {
                        let (left, top) = (x - 8, y - 3);
                        writeln!(
                            f,
                            "<rect x=\"{left}\" y=\"{top}\" width=\"16\" \
                             height=\"5\"/>"
                        )?;
                    }
                    Mark::Crash => cross(CRASH, x, y, 7, f)?,
                }
                let whole = format!("{} {}", note.what, note.why);
                let (what, why) = (cut(&note.what, NOTE_CHARS), cut(&note.why, NOTE_CHARS));
                let left = x + 12;
                write!(
                    f,
                    "<g><title>{}</title><text x=\"{left}\" y=\"{}\">{what}</text>",
                    escaped(whole.trim_end()),
                    y + 4
                )?;
                if !why.is_empty() {
                    write!(f, "<text {WHY} x=\"{left}\" y=\"{}\">{why}</text>", y + 4 + LINE)?;
                }
                writeln!(f, "</g>")?;
                y += LINE * note.lines();
            }
        }
        Ok(())
    }

    fn arrow(&self, at: Instant, arrows: &[&Arrow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(arrow) = arrows.first() else { return Ok(()) };
        let (Some(from), Some(to)) = (self.x(arrow.from), self.x(arrow.to)) else { return Ok(()) };
        let band = |at| self.bands.get(&at);
        let sent = arrow.sent.map_or(at, about);
        let (Some(first), Some(last)) = (band(sent), band(at)) else { return Ok(()) };
        let arrives = matches!(arrow.fate, Fate::Arrived | Fate::Repeated);
        let y1 = if sent == at { first.top } else { first.bottom };
        let y2 = match (arrives, sent == at) {
            (true, false) => last.top,
            // A script has no distance.
            (true, true) => first.top + 4,
            // It got nowhere in particular.
            (false, _) => y1 + LINE,
        };
        let side = if to > from { 1 } else { -1 };
        let (x1, x2) =
            (from + 5 * side, if arrives { to - 7 * side } else { from + (to - from) * 2 / 5 });
        let text = arrows.iter().map(|arrow| label(arrow)).collect::<Vec<_>>().join(", ");
        writeln!(
            f,
            "<g><title>{}</title><line {} x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" \
             y2=\"{y2}\"/>",
            escaped(&text),
            if arrow.fate == Fate::Lost { LOST } else { ARROW }
        )?;
        if arrives {
            let (tail, up, down) = (x2 - 7 * side, y2 - 3, y2 + 3);
            writeln!(f, "<path {HEAD} d=\"M{x2} {y2} L{tail} {up} L{tail} {down} Z\"/>")?;
        } else if arrow.fate == Fate::Lost {
            cross(LOST, x2, y2, 5, f)?;
        }
        // In the last gap before the receiver, where arrows to different servers are apart.
        let (near, across) = if arrives { (COLUMN / 2, x2 - x1) } else { (0, x2 - x1) };
        let x = x2 - side * near;
        let y = y1 + (y2 - y1) * (x - x1) / if across == 0 { 1 } else { across } - 4;
        let text = cut(&text, LABEL_CHARS);
        writeln!(f, "<text {LABEL} x=\"{x}\" y=\"{y}\">{text}</text></g>")
    }
}

/// Whether two messages that arrive at one time are one arrow.
fn go_together(one: &Arrow, other: &Arrow) -> bool {
    let sent = |arrow: &Arrow| arrow.sent.map(about);
    (one.from, one.to, one.fate, sent(one)) == (other.from, other.to, other.fate, sent(other))
}

/// A time to the tenth of a millisecond, as it is written.
fn about(at: Instant) -> Instant {
    let since = at.since_origin();
    let below = Duration::from_nanos(u64::from(since.subsec_nanos() % 100_000));
    Instant::ORIGIN + since.saturating_sub(below)
}

/// How far apart two instants are drawn.
fn room(passed: Duration) -> i64 {
    let doublings = (passed.as_micros() / 100 + 1).ilog2();
    let more = if passed >= GAP { LINE } else { 0 };
    LINE + 4 * i64::from(doublings.min(9)) + more
}

fn cross(look: &str, x: i64, y: i64, r: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (left, right, up, down) = (x - r, x + r, y - r, y + r);
    writeln!(f, "<path {look} d=\"M{left} {up} L{right} {down} M{left} {down} L{right} {up}\"/>")
}

fn legend(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let states = [
        ServerState::Looking,
        ServerState::Following,
        ServerState::Leading,
        ServerState::Observing,
    ];
    for (x, state) in (16..).step_by(110).zip(states) {
        let (look, end, text) = (style::lifeline(state), x + 24, x + 30);
        writeln!(
            f,
            "<line {look} x1=\"{x}\" y1=\"48\" x2=\"{end}\" y2=\"48\"/>\
             <text {WHY} x=\"{text}\" y=\"52\">{state}</text>"
        )?;
    }
    writeln!(
        f,
        "<rect x=\"460\" y=\"45\" width=\"16\" height=\"5\"/>\
         <text {WHY} x=\"484\" y=\"52\">on disk</text>"
    )
}

/// What is written beside the line of a server.
fn note(moment: &Moment) -> Note {
    let text = moment.to_string();
    let own = text.strip_prefix(&format!("{} ", moment.server)).unwrap_or(&text);
    let own = own.strip_prefix(&format!("the disk of {} has ", moment.server)).unwrap_or(own);
    let (what, why) = own.split_once(": ").unwrap_or((own, ""));
    let mark = match &moment.what {
        Happening::Start(_) => Mark::State(Some(ServerState::Looking)),
        Happening::Crash(_) | Happening::Halt(_) => Mark::Crash,
        Happening::Change(report) => match report.change {
            Change::State { to, .. } => Mark::State(Some(to)),
            Change::Vote { .. }
            | Change::Round { .. }
            | Change::BackIntoRound(_)
            | Change::Phase { .. }
            | Change::AcceptedEpoch(_)
            | Change::CurrentEpoch(_)
            | Change::Configuration(_)
            | Change::NextConfiguration(_)
            | Change::Sync { .. }
            | Change::Ignored { .. }
            | Change::Learner { .. } => Mark::Dot,
        },
        Happening::Durable(_) => Mark::Disk,
        Happening::Candidate(candidacy) => candidacy.state().map_or(Mark::Dot, Mark::State),
        Happening::Wipe
        | Happening::Pause
        | Happening::Resume
        | Happening::Way { .. }
        | Happening::Break(_)
        | Happening::Visit { .. }
        | Happening::Message(_)
        | Happening::Deliver(_)
        | Happening::HangUp { .. }
        | Happening::Other(_) => Mark::Dot,
    };
    Note { what: what.to_owned(), why: why.to_owned(), mark }
}

/// What is written on an arrow.
fn label(arrow: &Arrow) -> String {
    match &arrow.message {
        Message::Notification(notification) => {
            let standing = &notification.standing;
            match standing.state {
                ServerState::Looking => {
                    format!("votes {}, round {}", standing.vote.leader, standing.round)
                }
                ServerState::Leading => format!("LEADING, round {}", standing.round),
                state @ (ServerState::Following | ServerState::Observing) => {
                    format!("{state} {}, round {}", standing.vote.leader, standing.round)
                }
            }
        }
        Message::Packet(_) | Message::Generation(_) | Message::Probe(_) => arrow.words(),
    }
}

/// The beginning of a text, escaped.
fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return escaped(text);
    }
    escaped(&text.chars().take(chars - 1).chain(['…']).collect::<String>())
}
