//! The picture: a lane for each server, time running down, as an SVG that needs nothing beside itself.
//!
//! Time is not to scale, since an election takes milliseconds and a silence hours: each instant gets the room that its
//! notes need, a longer gap more, and one of half a second is told. Attributes say how everything looks on white paper; in
//! a page, the classes let its style sheet do so on dark paper.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quorate_core::status::Phase;
use quorate_core::vote::ServerState;

use crate::event::What;
use crate::stamp::{clock, span};
use crate::view::View;
use crate::words::thing;

const LEFT: i64 = 128;
const COLUMN: i64 = 264;
const TOP: i64 = 84;
const LINE: i64 = 14;
/// The characters of a note that fit beside a lane.
const NOTE: usize = 40;
/// A gap that is told, in microseconds.
const GAP: i64 = 500_000;
/// From a cause down to its effect, at least.
const FALL: i64 = 12;

/// Pieces of one look, drawn together.
#[derive(Default)]
struct Pieces {
    ticks: String,
    times: String,
    bands: String,
    arrows: String,
    heads: String,
    backs: String,
    dots: String,
    whats: String,
    whys: String,
}

/// Where everything stands.
struct Layout<'a> {
    view: &'a View<'a>,
    lane_of: Vec<usize>,
    /// The height of each event that is shown.
    y: BTreeMap<usize, i64>,
    height: i64,
}

/// Draws what is to be seen. `page`: notes are links to the lines that a page has.
pub(crate) fn draw(view: &View<'_>, title: &str, page: bool) -> String {
    let mut pieces = Pieces::default();
    let layout = Layout::of(view, &mut pieces);
    layout.bands(&mut pieces);
    layout.arrows(&mut pieces);
    layout.notes(page, &mut pieces);
    layout.compose(title, &pieces)
}

/// Whether an event has a note: not what is only the end of an arrow, nor what another says better.
fn noted(view: &View<'_>, at: usize) -> bool {
    match &view.lanes.events[at].what {
        What::Begins { .. } | What::Compared { .. } | What::Connected { .. } => false,
        What::Phase { to, .. } => *to != Phase::Election,
        // Its sender's lane shows it.
        What::Heard { from, .. } => view.lanes.lane(*from).is_none(),
        _ => true,
    }
}

impl<'a> Layout<'a> {
    fn of(view: &'a View<'a>, pieces: &mut Pieces) -> Self {
        let lane_of = view.lanes.lane_of_each();
        let mut causes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for link in &view.links {
            causes.entry(link.effect).or_default().push(link.cause);
        }
        let mut y = BTreeMap::new();
        let mut bottom = TOP;
        let mut lanes = vec![TOP; view.lanes.lanes.len()];
        let mut now: Option<i64> = None;
        let width = LEFT + COLUMN * i64::try_from(lanes.len()).unwrap_or(1);
        for at in &view.events {
            let is_end = causes.contains_key(at);
            let starts = view.links.binary_search_by_key(at, |link| link.cause).is_ok();
            if !is_end && !starts && !noted(view, *at) {
                continue;
            }
            let time = view.times[*at] / 100 * 100;
            if now != Some(time) {
                let passed = now.map_or(0, |before| time - before);
                let base = bottom + room(passed);
                tick(pieces, base, width, time, passed, bottom);
                now = Some(time);
                lanes.fill(base);
            }
            let lane = lane_of[*at];
            let below = causes.get(at).into_iter().flatten().filter_map(|cause| y.get(cause)).max();
            let here = lanes[lane].max(below.map_or(0, |above: &i64| above + FALL));
            y.insert(*at, here);
            let lines = if noted(view, *at) {
                i64::from(!view.lanes.events[*at].what.words().1.is_empty()) + 1
            } else {
                0
            };
            lanes[lane] = here + LINE * lines;
            bottom = bottom.max(lanes[lane]).max(here + 4);
        }
        Self { view, lane_of, y, height: bottom + 2 * LINE }
    }

    fn x(&self, lane: usize) -> i64 {
        LEFT + COLUMN * i64::try_from(lane).unwrap_or(0) + 20
    }

    /// States as bands: the colour is the state's; a server that is down has none.
    fn bands(&self, pieces: &mut Pieces) {
        for (lane, of) in self.view.lanes.lanes.iter().enumerate() {
            let x = self.x(lane) - 5;
            let (mut state, mut last) = self.view.before[lane];
            let mut since = TOP - 6;
            let mut until = |y: i64, state: Option<ServerState>| {
                if let Some((class, colour)) = state.map(look) {
                    let tall = (y - since).max(0);
                    let _ = writeln!(
                        pieces.bands,
                        "<rect class=\"{class}\" x=\"{x}\" y=\"{since}\" width=\"10\" height=\"{tall}\" fill=\"{colour}\"/>"
                    );
                }
                since = y;
            };
            for (at, y) in self.y.range(of.range.clone()) {
                let next = match &self.view.lanes.events[*at].what {
                    What::State { to, .. } => Some(*to),
                    What::Started => {
                        if let Some(last) = last {
                            let known = self.y.get(&last).map_or(TOP, |y| *y + LINE);
                            until(self.missed(lane, last).unwrap_or(known), state);
                            state = None;
                        }
                        None
                    }
                    What::Stopped => None,
                    What::Votes { .. } if state.is_none() => Some(ServerState::Looking),
                    _ => state,
                };
                last = Some(*at);
                if next != state {
                    until(*y, state);
                    state = next;
                }
            }
            let end = last.and_then(|last| self.missed(lane, last));
            let end = end.filter(|_| state == Some(ServerState::Leading));
            until(end.unwrap_or(self.height - LINE), state);
        }
    }

    /// A server that was killed logs no end. Where the others missed it first: after its last event, and before it starts
    /// again, if it does.
    fn missed(&self, lane: usize, last: usize) -> Option<i64> {
        let times = self.view.times;
        let what = |at: usize| &self.view.lanes.events[at].what;
        let next = Some(last + 1).filter(|at| self.view.lanes.lanes[lane].range.contains(at));
        let to = match next {
            Some(next) if *what(next) == What::Started => times[next],
            Some(_) => return None,
            None => i64::MAX,
        };
        let looks = |at: usize| {
            matches!(what(at), What::State { to: ServerState::Looking, .. } | What::Lost { .. })
        };
        let others = self.y.iter().filter(|(at, _)| self.lane_of[**at] != lane && looks(**at));
        others.filter(|(at, _)| (times[last]..=to).contains(&times[**at])).map(|(_, y)| *y).min()
    }

    fn arrows(&self, pieces: &mut Pieces) {
        for link in &self.view.links {
            let (Some(y1), Some(y2)) = (self.y.get(&link.cause), self.y.get(&link.effect)) else {
                continue;
            };
            let (from, to) = (self.x(self.lane_of[link.cause]), self.x(self.lane_of[link.effect]));
            let took = self.view.times[link.effect] - self.view.times[link.cause];
            // What was said to others long before, and now to one that has come back.
            if took >= GAP {
                continue;
            }
            let side = if to > from { 1 } else { -1 };
            let (x1, x2) = (from + 6 * side, to - 6 * side);
            let _ = writeln!(
                pieces.arrows,
                "<path d=\"M{x1} {y1}L{x2} {y2}\"><title>{} of {}, {}</title></path>",
                thing(link.what),
                self.view.lanes.lanes[self.lane_of[link.cause]].id,
                span(took)
            );
            // The head lies in the direction of its line.
            let (dx, dy) = (x2 - x1, y2 - y1);
            let long = dx.abs().max(dy.abs()).max(1);
            let (bx, by) = (x2 - 8 * dx / long, y2 - 8 * dy / long);
            let (nx, ny) = (3 * dy / long, -3 * dx / long);
            let _ = writeln!(
                pieces.heads,
                "<path d=\"M{x2} {y2}L{} {}L{} {}Z\"/>",
                bx + nx,
                by + ny,
                bx - nx,
                by - ny
            );
        }
    }

    fn notes(&self, page: bool, pieces: &mut Pieces) {
        for (at, y) in &self.y {
            let x = self.x(self.lane_of[*at]);
            let event = &self.view.lanes.events[*at];
            if !noted(self.view, *at) {
                continue;
            }
            let (what, why) = event.what.words();
            let bad =
                matches!(event.what, What::Lost { .. } | What::Unreachable { .. } | What::Stopped);
            let _ = writeln!(
                pieces.dots,
                "<circle{} cx=\"{x}\" cy=\"{y}\" r=\"{}\"/>",
                if bad { " class=\"bad\" fill=\"#cf222e\"" } else { "" },
                if bad { 4 } else { 3 }
            );
            let place = self.view.place(*at);
            let whole = escaped(&format!("{} {what} {why} ({place})", clock(self.view.times[*at])));
            let (open, close) =
                if page { (format!("<a href=\"#e{at}\">"), "</a>") } else { (String::new(), "") };
            let (left, base) = (x + 12, y + 4);
            back(pieces, left, base, &what);
            let _ = writeln!(
                pieces.whats,
                "{open}<text x=\"{left}\" y=\"{base}\">{}<title>{whole}</title></text>{close}",
                cut(&what)
            );
            if !why.is_empty() {
                back(pieces, left, base + LINE, &why);
                let _ = writeln!(
                    pieces.whys,
                    "<text x=\"{left}\" y=\"{}\">{}</text>",
                    base + LINE,
                    cut(&why)
                );
            }
        }
    }

    fn compose(&self, title: &str, pieces: &Pieces) -> String {
        let columns = i64::try_from(self.view.lanes.lanes.len()).unwrap_or(1);
        let (width, height) = (LEFT + COLUMN * columns, self.height);
        let title = escaped(title);
        let mut names = String::new();
        for (lane, of) in self.view.lanes.lanes.iter().enumerate() {
            let offset = self.view.offset(lane);
            let offset = if offset.is_empty() {
                offset
            } else {
                format!(
                    "<tspan class=\"w\" font-size=\"10\" font-weight=\"400\" fill=\"#59636e\">  clock {offset}</tspan>"
                )
            };
            let _ = writeln!(
                names,
                "<text x=\"{}\" y=\"{}\">server {}{offset}</text>",
                self.x(lane) - 5,
                TOP - 18,
                of.id
            );
        }
        let mut legend = String::new();
        let states = [
            ServerState::Looking,
            ServerState::Following,
            ServerState::Leading,
            ServerState::Observing,
        ];
        for (x, state) in (16..).step_by(110).zip(states) {
            let (class, colour) = look(state);
            let _ = writeln!(
                legend,
                "<rect class=\"{class}\" x=\"{x}\" y=\"36\" width=\"10\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"46\">{state}</text>",
                x + 16
            );
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text class=\"n\" x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#1b1f24\">{title}</text>\n\
             <g class=\"n\" fill=\"#1b1f24\">{legend}</g>\n\
             <g class=\"tick\" stroke=\"#8c959f\" stroke-opacity=\"0.3\">\n{}</g>\n\
             <g class=\"w\" fill=\"#59636e\" text-anchor=\"end\">\n{}</g>\n\
             <g class=\"n\" font-size=\"14\" font-weight=\"600\" fill=\"#1b1f24\">\n{names}</g>\n<g>\n{}</g>\n\
             <g class=\"arrow\" stroke=\"#6e7781\" stroke-width=\"1.1\" fill=\"none\">\n{}</g>\n\
             <g class=\"paper\" fill=\"#ffffff\" fill-opacity=\"0.8\">\n{}</g>\n<g class=\"head\" fill=\"#6e7781\">\n{}</g>\n<g class=\"n\" fill=\"#1b1f24\">\n{}</g>\n\
             <g class=\"n\" fill=\"#1b1f24\">\n{}</g>\n<g class=\"w\" fill=\"#59636e\">\n{}</g>\n</svg>\n",
            pieces.ticks,
            pieces.times,
            pieces.bands,
            pieces.arrows,
            pieces.backs,
            pieces.heads,
            pieces.dots,
            pieces.whats,
            pieces.whys,
        )
    }
}

fn tick(pieces: &mut Pieces, y: i64, width: i64, time: i64, passed: i64, bottom: i64) {
    let _ = writeln!(pieces.ticks, "<path d=\"M{LEFT} {y}H{}\"/>", width - 8);
    let _ =
        writeln!(pieces.times, "<text x=\"{}\" y=\"{}\">{}</text>", LEFT - 8, y + 4, clock(time));
    if passed >= GAP {
        let middle = bottom + (y - bottom) / 2 + 4;
        let _ = writeln!(
            pieces.times,
            "<text x=\"{}\" y=\"{middle}\">⋮ {}</text>",
            LEFT - 8,
            span(passed)
        );
    }
}

/// Paper behind a text, so that lines do not strike it through. A letter is 6 wide, about.
fn back(pieces: &mut Pieces, left: i64, base: i64, text: &str) {
    let wide = 6 * i64::try_from(text.chars().count().min(NOTE)).unwrap_or(0);
    let _ = writeln!(pieces.backs, "<path d=\"M{left} {}h{wide}v13h-{wide}z\"/>", base - 10);
}

/// How far apart two instants are drawn.
fn room(passed: i64) -> i64 {
    let doublings = (passed.unsigned_abs() / 100 + 1).ilog2();
    LINE + 3 * i64::from(doublings.min(10)) + if passed >= GAP { 2 * LINE } else { 0 }
}

/// The class and the colour of a state's band. They differ in lightness as well as in hue.
fn look(state: ServerState) -> (&'static str, &'static str) {
    match state {
        ServerState::Looking => ("looking", "#e08a1e"),
        ServerState::Following => ("following", "#54a3e8"),
        ServerState::Leading => ("leading", "#1a7f37"),
        ServerState::Observing => ("observing", "#a475f9"),
    }
}

/// The beginning of a text, escaped.
fn cut(text: &str) -> String {
    if text.chars().count() <= NOTE {
        return escaped(text);
    }
    escaped(&text.chars().take(NOTE - 1).chain(['…']).collect::<String>())
}

/// A text as XML and HTML may hold it.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // XML has no way to hold the others.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
