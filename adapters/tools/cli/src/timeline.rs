//! `quorate timeline`: the logs of several servers, Java's and ours, as one timeline.
//!
//! Files are read and written here; everything else is `quorate-timeline`'s.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use quorate_timeline::{Source, Timeline};

use crate::failure::Failure;
use crate::log_file;

/// Elections from the logs of several servers: who voted why, what took how long, who waited for whom.
///
/// Logs of Java's servers (3.4 to 3.9) and of quorate's, in any mix. Clocks are not trusted: what the lines carry says what
/// was before what, and by how much each clock is wrong. A server's log may be in several files, packed by gzip or not. Exits with 1 if the logs
/// tell of no server.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A log, `-` for stdin; `2=FILE` if its lines do not say that they are server 2's.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// From this time on: `2026-11-26T13:19:47.112`, or `13:19:47` of the day on which the logs begin.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Until this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only this election, counted from 1, or `last`.
    #[arg(long, value_name = "N|last", conflicts_with_all = ["from", "to"])]
    election: Option<String>,
    /// Write the picture, too.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page with words, picture and lines, too: one file without a script.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object in place of text.
    #[arg(long)]
    json: bool,
}

/// `quorate timeline`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let logs: Vec<_> = arguments.logs.iter().map(|log| owner(log)).collect();
    let paths: Vec<_> = logs.iter().map(|(_, path)| Path::new(path)).collect();
    let logs: Vec<Log> =
        logs.iter().map(|(own, path)| read(*own, path, &paths)).collect::<Result<_, _>>()?;
    let sources: Vec<Source<'_>> = logs
        .iter()
        .map(|log| Source { name: &log.name, bytes: &log.bytes, own: log.own })
        .collect();
    let timeline = Timeline::of(&sources);
    if timeline.is_empty() {
        return Err(Failure::failed("no line of these logs tells of a server's elections"));
    }
    let timeline = shown(timeline, arguments)?;
    if let Some(file) = &arguments.svg {
        write(file, &timeline.svg())?;
    }
    if let Some(file) = &arguments.html {
        write(file, &timeline.html())?;
    }
    let text = if arguments.json { timeline.json() + "\n" } else { timeline.to_string() };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    Ok(())
}

struct Log {
    name: String,
    bytes: Vec<u8>,
    own: Option<i64>,
}

/// Whose log it is, if `ID=FILE` says so, and the path.
fn owner(log: &str) -> (Option<i64>, &str) {
    match log.split_once('=') {
        Some((id, path)) if id.parse::<i64>().is_ok() => (id.parse().ok(), path),
        _ => (None, log),
    }
}

/// Reads a file, or stdin.
fn read(own: Option<i64>, path: &str, all: &[&Path]) -> Result<Log, Failure> {
    let read = match path {
        "-" => log_file::read_from(io::stdin().lock()),
        path => log_file::read(Path::new(path)),
    };
    let bytes = read.map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    Ok(Log { name: log_name(Path::new(path), all), bytes, own })
}

/// What a log is called: the end of its path, or the whole where another of them ends alike.
pub(crate) fn log_name(path: &Path, all: &[&Path]) -> String {
    let alike = all.iter().filter(|other| other.file_name() == path.file_name()).count();
    let end = path.file_name().filter(|_| alike < 2);
    end.unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The part that is asked for.
fn shown(timeline: Timeline, arguments: &Arguments) -> Result<Timeline, Failure> {
    let elections = timeline.elections();
    if let Some(which) = &arguments.election {
        let number = if which == "last" { Some(elections) } else { which.parse().ok() };
        return number.and_then(|number| timeline.election(number)).ok_or_else(|| {
            Failure::usage(format!("no election {which}: the logs tell of {elections}"))
        });
    }
    timeline.between(arguments.from.as_deref(), arguments.to.as_deref()).ok_or_else(|| {
        Failure::usage("a time is written 13:19:47.112, with a date before it if need be")
    })
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}
