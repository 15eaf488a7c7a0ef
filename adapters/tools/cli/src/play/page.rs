//! The output of a scenario: a chart in columns for people, lines of JSON for programs.

use std::io::{self, Write};

use quorate_sim::Chart;
use quorate_sim::record::{Happening, Moment, Topic};
use quorate_sim::scenario::{Problem, Scenario, ScenarioError, Step};
use quorate_tokio::core::id::ServerId;
use serde::Serialize;

use crate::paint::Paint;

/// The widest chart that can be read comfortably.
const WIDTH_MAX: usize = 132;
/// The width where the terminal does not say one.
const WIDTH: usize = 110;

/// One line of JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Scenario { title: &'a str, head: &'a [String] },
    Step { line: usize, command: &'a str, notes: &'a [String] },
    Moment(MomentLine),
    End { ok: bool, problem: Option<String> },
}

/// Something that happened.
#[derive(Debug, Serialize)]
struct MomentLine {
    at_ms: f64,
    server: i64,
    topic: String,
    /// The sender of a message; `server` is its receiver, if it arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    text: String,
}

impl MomentLine {
    fn of(moment: &Moment) -> Self {
        let arrow = if let Happening::Message(arrow) = &moment.what { Some(arrow) } else { None };
        let topic = match moment.topic() {
            Topic::Fate => "fate",
            Topic::Votes => "votes",
            Topic::Phases => "phases",
            Topic::Messages => "messages",
            Topic::Disk => "disk",
            Topic::Deliveries => "deliveries",
            Topic::Clients => "clients",
            Topic::Rest => "links",
        };
        Self {
            at_ms: moment.at.since_origin().as_secs_f64() * 1_000.0,
            server: moment.server.0,
            topic: topic.to_owned(),
            from: arrow.map(|arrow| arrow.from.0),
            to: arrow.map(|arrow| arrow.to.0),
            text: moment.to_string(),
        }
    }
}

/// Writes a story down.
#[derive(Debug)]
pub(super) struct Page {
    json: bool,
    paint: Paint,
    chart: Option<Chart>,
    unread: bool,
}

impl Page {
    pub(super) fn new(json: bool, paint: Paint) -> Self {
        Self { json, paint, chart: None, unread: false }
    }

    /// Whether the reader has gone.
    pub(super) fn is_unread(&self) -> bool {
        self.unread
    }

    fn write(&mut self, text: &str) {
        let mut out = io::stdout().lock();
        self.unread |= writeln!(out, "{text}").and_then(|()| out.flush()).is_err();
    }

    fn line(&mut self, line: &Line<'_>) {
        if let Ok(text) = serde_json::to_string(line) {
            self.write(&text);
        }
    }

    /// The story and its reason.
    pub(super) fn head(&mut self, scenario: &Scenario) {
        if self.json {
            return self.line(&Line::Scenario { title: scenario.title(), head: scenario.head() });
        }
        let mut lines = scenario.head().iter();
        if let Some(title) = lines.next() {
            let title = self.paint.strong(title);
            self.write(&title);
        }
        lines.for_each(|line| self.write(line));
        self.write("");
    }

    /// A command and what came of it; whether there was anything to read.
    pub(super) fn step(
        &mut self,
        step: &Step,
        servers: Vec<ServerId>,
        moments: &[Moment],
        done: &Result<(), Problem>,
    ) -> bool {
        if self.json {
            let (line, command, notes) = (step.line, step.text.as_str(), &step.notes[..]);
            self.line(&Line::Step { line, command, notes });
            for moment in moments {
                self.line(&Line::Moment(MomentLine::of(moment)));
            }
            return false;
        }
        if !step.notes.is_empty() {
            self.write("");
            step.notes.iter().for_each(|note| self.write(note));
        }
        let expectation = step.text.strip_prefix("expect ");
        let text = match (expectation, done) {
            (Some(condition), Ok(())) => format!("{} {condition}", self.paint.well("✓")),
            (Some(condition), Err(_)) => format!("{} {condition}", self.paint.alarm("✗")),
            (None, _) => format!("{} {}", self.paint.faint("▸"), self.paint.strong(&step.text)),
        };
        self.write(&text);
        let paint = self.paint;
        let mut rows = Vec::new();
        if !moments.is_empty() {
            let new = self.chart.is_none();
            let chart = self.chart.get_or_insert_with(|| Chart::new(servers, width()));
            if new {
                rows.push(chart.head());
            }
            rows.extend(moments.iter().flat_map(|moment| chart.rows(moment)));
        }
        let servers: Vec<_> =
            self.chart.iter().flat_map(|chart| chart.servers().to_vec()).collect();
        for row in rows {
            let lanes: String =
                row.lanes.iter().zip(&servers).map(|(lane, id)| paint.server(id.0, lane)).collect();
            let text = if row.text.is_empty() {
                String::new()
            } else {
                paint.server(row.server.0, &row.text)
            };
            let time = paint.faint(&format!("{:>9}", row.time));
            self.write(format!("{time}   {lanes}{text}").trim_end());
        }
        !moments.is_empty()
    }

    /// How it ended.
    pub(super) fn end(&mut self, scenario: &Scenario, error: Option<&ScenarioError>) {
        if self.json {
            let problem = error.map(ToString::to_string);
            return self.line(&Line::End { ok: problem.is_none(), problem });
        }
        let notes = scenario.end();
        if error.is_none() && !notes.is_empty() {
            self.write("");
            notes.iter().for_each(|note| self.write(note));
        }
    }
}

/// How wide the terminal is.
fn width() -> usize {
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) {
        if size.ws_col > 0 {
            return usize::from(size.ws_col).min(WIDTH_MAX);
        }
    }
    WIDTH
}
