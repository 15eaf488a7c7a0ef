//! A story for a terminal: one column per server, and beside it what happened, with its reason.
//!
//! ```text
//!      ms   1      2      3
//!     0.0   ○      ╎      ╎      1 starts with an empty disk
//!     4.2   │      ●─────►╎      3 hears 2: LOOKING, votes 2 (epoch 0, zxid 0.0), round 1
//!     4.2   ╎      ╎      ●      3 is LEADING: quorum {2,3} for 3, everybody heard
//! ```
//!
//! A column is dashed while its server looks, thin while it follows, double while it leads, dotted while it
//! observes, and empty while it is down. The text says the whole by itself.

use std::collections::BTreeMap;
use std::fmt;

use quorate_core::id::ServerId;
use quorate_core::report::Change;
use quorate_core::vote::ServerState;

use crate::record::{Arrow, Candidacy, Fate, Happening, Moment};

/// The characters of the time and the space around it.
const TIME: usize = 12;
/// The least that is left for the text.
const TEXT_MIN: usize = 44;
/// The widest column.
const LANE_MAX: usize = 8;
/// The narrowest column that an arrow fits in.
const LANE_MIN: usize = 4;

/// Draws moments, one after the other.
#[derive(Clone, Debug)]
pub struct Chart {
    servers: Vec<ServerId>,
    lane: usize,
    text: usize,
    states: BTreeMap<ServerId, ServerState>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When; empty in a line that goes on with the one before.
    pub time: String,
    /// A piece for each server, all of one width.
    pub lanes: Vec<String>,
    /// Whom the text is about.
    pub server: ServerId,
    /// What happened, or the next piece of that.
    pub text: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, lanes, text, .. } = self;
        write!(f, "{time:>9}   {}{text}", lanes.concat())
    }
}

impl Chart {
    /// A chart for these servers in a terminal of so many characters. It is wider if that is not enough
    /// for a column each and some text.
    pub fn new(servers: impl IntoIterator<Item = ServerId>, width: usize) -> Self {
        let servers: Vec<_> = servers.into_iter().collect();
        let room = width.saturating_sub(TIME + TEXT_MIN) / servers.len().max(1);
        let lane = room.clamp(LANE_MIN, LANE_MAX);
        let text = width.saturating_sub(TIME + lane * servers.len()).max(TEXT_MIN);
        Self { servers, lane, text, states: BTreeMap::new() }
    }

    /// The servers, from left to right.
    pub fn servers(&self) -> &[ServerId] {
        &self.servers
    }

    /// The numbers of the servers above their columns.
    pub fn head(&self) -> Row {
        let lanes =
            self.servers.iter().map(|id| format!("{:<width$}", id.0, width = self.lane)).collect();
        Row { time: "ms".to_owned(), lanes, server: ServerId::NONE, text: String::new() }
    }

    /// The lines of the next moment.
    pub fn rows(&mut self, moment: &Moment) -> Vec<Row> {
        self.note(moment);
        let lanes = self.lanes(moment);
        let plain = self.cells(&self.lifelines());
        let (mut time, mut lanes) = (moment.time(), Some(lanes));
        wrapped(&moment.to_string(), self.text)
            .into_iter()
            .map(|text| Row {
                time: std::mem::take(&mut time),
                lanes: lanes.take().unwrap_or_else(|| plain.clone()),
                server: moment.server,
                text,
            })
            .collect()
    }

    /// The whole chart of some moments.
    pub fn draw<'a>(mut self, moments: impl IntoIterator<Item = &'a Moment>) -> String {
        let mut drawn = format!("{}\n", self.head()).replace(" \n", "\n");
        for row in moments.into_iter().flat_map(|moment| self.rows(moment)) {
            drawn += row.to_string().trim_end();
            drawn.push('\n');
        }
        drawn
    }

    /// Remembers the state that a server has from here on.
    fn note(&mut self, moment: &Moment) {
        match &moment.what {
            Happening::Start(_) => {
                self.states.insert(moment.server, ServerState::Looking);
            }
            Happening::Crash(_) | Happening::Halt(_) => {
                self.states.remove(&moment.server);
            }
            Happening::Change(report) => {
                if let Change::State { to, .. } = report.change {
                    self.states.insert(moment.server, to);
                }
            }
            Happening::Candidate(candidacy) => match candidacy.state() {
                Some(Some(state)) => drop(self.states.insert(moment.server, state)),
                Some(None) => drop(self.states.remove(&moment.server)),
                None => {}
            },
            Happening::Wipe
            | Happening::Pause
            | Happening::Resume
            | Happening::Way { .. }
            | Happening::Break(_)
            | Happening::Visit { .. }
            | Happening::Message(_)
            | Happening::Durable(_)
            | Happening::Deliver(_)
            | Happening::HangUp { .. }
            | Happening::Other(_) => {}
        }
    }

    fn lifelines(&self) -> Vec<char> {
        let mut canvas = vec![' '; self.lane * self.servers.len()];
        for (at, id) in self.servers.iter().enumerate() {
            canvas[at * self.lane] = match self.states.get(id) {
                None => ' ',
                Some(ServerState::Looking) => '╎',
                Some(ServerState::Following) => '│',
                Some(ServerState::Leading) => '║',
                Some(ServerState::Observing) => '┊',
            };
        }
        canvas
    }

    fn cells(&self, canvas: &[char]) -> Vec<String> {
        canvas.chunks(self.lane).map(|cell| cell.iter().collect()).collect()
    }

    fn lanes(&self, moment: &Moment) -> Vec<String> {
        let mut canvas = self.lifelines();
        let column = |id| self.servers.iter().position(|one| *one == id).map(|at| at * self.lane);
        let mark = match &moment.what {
            Happening::Start(_) | Happening::Resume | Happening::Candidate(Candidacy::Starts) => {
                '○'
            }
            Happening::Candidate(Candidacy::Way { open: false } | Candidacy::Suspended)
            | Happening::Crash(_)
            | Happening::Halt(_)
            | Happening::Break(_) => '✗',
            Happening::Message(Arrow { from, to, fate, .. }) => {
                if let (Some(from), Some(to)) = (column(*from), column(*to)) {
                    draw_arrow(&mut canvas, from, to, *fate);
                    return self.cells(&canvas);
                }
                '●'
            }
            Happening::Way { to, open } => {
                let to = if let [one] = to[..] { column(one) } else { None };
                if let (Some(from), Some(to)) = (column(moment.server), to) {
                    let fate = if *open { Fate::Arrived } else { Fate::Lost };
                    draw_arrow(&mut canvas, from, to, fate);
                    return self.cells(&canvas);
                }
                '●'
            }
            Happening::Wipe
            | Happening::Pause
            | Happening::Visit { .. }
            | Happening::Change(_)
            | Happening::Deliver(_)
            | Happening::HangUp { .. }
            | Happening::Candidate(_)
            | Happening::Other(_) => '●',
            Happening::Durable(_) => '▪',
        };
        if let Some(at) = column(moment.server) {
            canvas[at] = mark;
        }
        self.cells(&canvas)
    }
}

fn draw_arrow(canvas: &mut [char], from: usize, to: usize, fate: Fate) {
    let (low, high) = (from.min(to), from.max(to));
    for at in &mut canvas[low + 1..high] {
        *at = if *at == ' ' { '─' } else { '┼' };
    }
    canvas[from] = '●';
    let head = if to > from { to - 1 } else { to + 1 };
    canvas[head] = match fate {
        Fate::Lost | Fate::Replaced => '╳',
        Fate::UnderWay => '┄',
        Fate::Arrived | Fate::Repeated if to > from => '►',
        Fate::Arrived | Fate::Repeated => '◄',
    };
}

/// A text in lines of at most so many characters, broken at spaces where there are some.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = lines.last().map_or(0, |line| line.chars().count());
        if room > 0 && room + 1 + word.chars().count() > width {
            // What goes on stands behind what began.
            lines.push("  ".to_owned());
        } else if room > 0 {
            if let Some(line) = lines.last_mut() {
                line.push(' ');
            }
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::CrashKind;
    use quorate_core::time::Instant;

    fn moment(server: i64, what: Happening) -> Moment {
        Moment { at: Instant::ORIGIN, server: ServerId(server), what }
    }

    #[test]
    fn a_chart_fits_its_width_for_three_to_nine_servers() {
        let long = moment(1, Happening::Way { to: vec![ServerId(3)], open: false });
        for servers in 3..=9 {
            for width in [100, 120, 200] {
                let mut chart = Chart::new((1..=servers).map(ServerId), width);
                for row in chart.rows(&long) {
                    assert!(row.to_string().chars().count() <= width, "{row}");
                }
            }
        }
    }

    #[test]
    fn an_arrow_runs_from_its_sender_and_a_lost_one_does_not_arrive() {
        let mut chart = Chart::new((1..=3).map(ServerId), 80);
        let mut drawn = |from, to, open| {
            let way = Happening::Way { to: vec![ServerId(to)], open };
            chart.rows(&moment(from, way))[0].lanes.concat()
        };
        assert_eq!(drawn(1, 3, true), format!("●{}►{}", "─".repeat(14), " ".repeat(8)));
        assert_eq!(drawn(2, 1, false).chars().take(9).collect::<String>(), " ╳──────●");
        assert_eq!(drawn(3, 2, true).chars().skip(8).collect::<String>(), " ◄──────●       ");
        let crash = moment(2, Happening::Crash(CrashKind::Power));
        assert!(chart.rows(&crash)[0].to_string().contains('✗'));
    }

    #[test]
    fn a_long_text_goes_on_in_the_next_line() {
        assert_eq!(wrapped("one two three", 8), ["one two", "  three"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    }
}
