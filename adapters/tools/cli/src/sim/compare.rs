//! The two ways to elect, in a table and drawn.
//!
//! What is run, and what is counted, is said where it is done.

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
            // Whoever reads no more is told in the end.
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
         or {least:?} to {SILENCE:?} (generation); messages are those of the election port while nobody leads\n\n\
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

/// Three fields, one above the other: the time without a leader after each kind of loss, and messages.
fn draw(rows: &[Row]) -> String {
    let (width, height, left) = (640.0, 190.0, 70.0);
    type Field = (&'static str, Loss, fn(&Row) -> f64);
    let fields: [Field; 3] = [
        ("ms without a leader, its process ends", Loss::Closed, |row| millis(row.without)),
        ("ms without a leader, it falls silent", Loss::Silent, |row| millis(row.without)),
        ("messages, its process ends", Loss::Closed, |row| as_float(row.messages)),
    ];
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        width + left + 90.0,
        3.0 * (height + 60.0)
    );
    let sizes: Vec<u8> = rows.iter().map(|row| row.servers).collect();
    let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
    let span = |n: u8| f64::from(n).log2();
    let (least, most) = (span(least.unwrap_or(3)), span(most.unwrap_or(3)));
    let x = |n: u8| left + (span(n) - least) / (most - least).max(0.1) * width;
    for (at, (title, loss, value)) in (0u8..).zip(fields) {
        let top = f64::from(at) * (height + 60.0) + 30.0;
        let of = |kind: Kind| rows.iter().filter(move |r| r.kind == kind && r.loss == loss);
        let highest = Kind::ALL.into_iter().flat_map(of).map(value).fold(1.0, f64::max);
        // Logarithmic where sizes are far apart.
        let y = |v: f64| top + height - (v + 1.0).ln() / (highest + 1.0).ln() * height;
        // A string takes everything.
        let _ = write!(
            out,
            "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>\
             <path d=\"M{left},{top} v{height} h{width}\" fill=\"none\" stroke=\"#888\"/>",
            top - 10.0
        );
        let mut marks: Vec<f64> = (0..7).map(|power| 10f64.powi(power)).collect();
        marks.retain(|mark| *mark <= highest);
        for mark in marks {
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>\
                 <path d=\"M{left},{:.1} h{width}\" stroke=\"#ddd\"/>",
                left - 6.0,
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
                let _ =
                    write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
            }
            if let Some((x, y)) = points.last() {
                let (x, y, name) = (x + 8.0, y + 4.0, kind.name());
                let _ =
                    write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
            }
        }
        let mut shown = sizes.clone();
        shown.dedup();
        for n in shown {
            let (x, y) = (x(n), top + height + 16.0);
            let _ =
                write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{n}</text>");
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Numbers of messages are far below where this would be inexact.
fn as_float(messages: u64) -> f64 {
    Duration::from_secs(messages).as_secs_f64()
}
