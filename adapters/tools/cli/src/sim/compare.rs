//! `quorate sim --compare`: the two kinds of election under the same losses of a leader, as a table and as curves.
//!
//! What is run, and what is counted, is `quorate-sim`'s.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use quorate_sim::compare::{Kind, Loss, Row, SILENCE, compare};
use serde::Serialize;

use super::{Arguments, as_json, say};
use crate::event::millis;
use crate::failure::Failure;

/// How many servers.
const SIZES: [u8; 7] = [3, 5, 7, 9, 15, 31, 63];
/// How often each is run, if nothing else is asked for.
const SEEDS: u64 = 11;

#[derive(Debug, Serialize)]
struct Line {
    servers: u8,
    loss: &'static str,
    election: &'static str,
    without_leader_ms: f64,
    longest_ms: f64,
    messages: u64,
    rounds: i64,
}

impl From<&Row> for Line {
    fn from(row: &Row) -> Self {
        Self {
            servers: row.servers,
            loss: row.loss.name(),
            election: row.kind.name(),
            without_leader_ms: millis(row.without),
            longest_ms: millis(row.longest),
            messages: row.messages,
            rounds: row.rounds,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sizes: Vec<u8> = arguments.servers.map_or(SIZES.to_vec(), |servers| vec![servers]);
    let seeds = if arguments.seeds == super::SEEDS { SEEDS } else { arguments.seeds };
    if !arguments.json {
        say(&head(seeds))?;
    }
    let show = |row: &Row| {
        if !arguments.json {
            // An error of stdout is reported at the end.
            drop(say(&text(row)));
        }
    };
    let rows = compare(&sizes, seeds, show).map_err(|error| Failure::failed(error.to_string()))?;
    if arguments.json {
        let lines: Vec<Line> = rows.iter().map(Line::from).collect();
        say(&as_json(&lines)?)?;
    }
    if let Some(path) = &arguments.svg {
        fs::write(path, draw(&rows)).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    Ok(())
}

fn head(seeds: u64) -> String {
    let least = SILENCE / 2;
    format!(
        "the leader of an ensemble is lost, {seeds} runs each, medians; a silent one is given up after {SILENCE:?} (fast)\n\
         or {least:?} to {SILENCE:?} (generation); messages are those of the election port while no server leads\n\n\
         servers  the leader        election    without a leader    longest  messages  rounds"
    )
}

fn text(row: &Row) -> String {
    format!(
        "{:>7}  {:16}  {:10}  {:>13.3} ms  {:>6.1} ms  {:>8}  {:>6}",
        row.servers,
        row.loss.name(),
        row.kind.name(),
        millis(row.without),
        millis(row.longest),
        row.messages,
        row.rounds
    )
}

/// A field of the drawing: its title, the kind of loss, and the value of a row.
type Field = (&'static str, Loss, fn(&Row) -> f64);

const FIELDS: [Field; 3] = [
    ("ms without a leader, its process ends", Loss::Closed, |row| millis(row.without)),
    ("ms without a leader, it falls silent", Loss::Silent, |row| millis(row.without)),
    ("messages, its process ends", Loss::Closed, |row| as_float(row.messages)),
];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 70.0;

/// Three fields, one above the other: the time without a leader after each kind of loss, and messages.
fn draw(rows: &[Row]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        WIDTH + LEFT + 90.0,
        3.0 * (HEIGHT + 60.0)
    );
    let sizes: Vec<u8> = rows.iter().map(|row| row.servers).collect();
    let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
    let span = |n: u8| f64::from(n).log2();
    let (least, most) = (span(least.unwrap_or(3)), span(most.unwrap_or(3)));
    let x = |n: u8| LEFT + (span(n) - least) / (most - least).max(0.1) * WIDTH;
    for (at, field) in (0u8..).zip(FIELDS) {
        let top = f64::from(at) * (HEIGHT + 60.0) + 30.0;
        draw_field(&mut out, rows, field, top, x);
        let mut shown = sizes.clone();
        shown.dedup();
        for n in shown {
            let (x, y) = (x(n), top + HEIGHT + 16.0);
            let _ =
                write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{n}</text>");
        }
    }
    out.push_str("</svg>\n");
    out
}

/// One field, its upper edge at `top`: the frame, its marks, and a curve for each kind of election.
fn draw_field(out: &mut String, rows: &[Row], field: Field, top: f64, x: impl Fn(u8) -> f64) {
    let (title, loss, value) = field;
    let of = |kind: Kind| rows.iter().filter(move |r| r.kind == kind && r.loss == loss);
    let highest = Kind::ALL.into_iter().flat_map(of).map(value).fold(1.0, f64::max);
    // Logarithmic where sizes are far apart.
    let y = |v: f64| top + HEIGHT - (v + 1.0).ln() / (highest + 1.0).ln() * HEIGHT;
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>\
         <path d=\"M{LEFT},{top} v{HEIGHT} h{WIDTH}\" fill=\"none\" stroke=\"#888\"/>",
        top - 10.0
    );
    let mut marks: Vec<f64> = (0..7).map(|power| 10f64.powi(power)).collect();
    marks.retain(|mark| *mark <= highest);
    for mark in marks {
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>\
             <path d=\"M{LEFT},{:.1} h{WIDTH}\" stroke=\"#ddd\"/>",
            LEFT - 6.0,
            y(mark) + 4.0,
            y(mark)
        );
    }
    for (kind, colour) in Kind::ALL.into_iter().zip(["#c0392b", "#2166ac"]) {
        let points: Vec<_> = of(kind).map(|r| (x(r.servers), y(value(r)))).collect();
        let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for (x, y) in &points {
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if let Some((x, y)) = points.last() {
            let (x, y, name) = (x + 8.0, y + 4.0, kind.name());
            let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
        }
    }
}

/// Numbers of messages are far below where this would be inexact.
fn as_float(messages: u64) -> f64 {
    Duration::from_secs(messages).as_secs_f64()
}
