//! The logs that the tests read.

use std::fs;
use std::path::PathBuf;

use quorate_timeline::{Source, Timeline};

pub(crate) const KINDS: [&str; 3] = ["java", "ours", "mixed"];

pub(crate) fn folder(kind: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", kind].iter().collect()
}

/// The text of the logs of servers 1, 2 and 3.
pub(crate) fn read(kind: &str) -> Vec<String> {
    (1..=3).map(|id| fs::read_to_string(folder(kind).join(format!("{id}.log"))).unwrap()).collect()
}

pub(crate) fn timeline<T: AsRef<[u8]>>(logs: &[T]) -> Timeline {
    let names: Vec<_> = (1..=logs.len()).map(|id| format!("{id}.log")).collect();
    let source = |(name, bytes)| Source { name, bytes, own: None };
    let sources: Vec<_> =
        names.iter().map(String::as_str).zip(logs.iter().map(AsRef::as_ref)).map(source).collect();
    Timeline::of(&sources)
}

/// The log of a server whose clock is ahead by so many milliseconds.
pub(crate) fn shifted(log: &str, millis: i64) -> String {
    log.lines().map(|line| shifted_line(line, millis) + "\n").collect()
}

/// A line at another time of its day: all times of these logs are far from midnight.
pub(crate) fn shifted_line(line: &str, millis: i64) -> String {
    let time = line.get(11..23).filter(|_| line.starts_with("20"));
    let Some(time) = time else { return line.to_owned() };
    let number = |range: std::ops::Range<usize>| time[range].parse::<i64>().unwrap();
    let of_day =
        ((number(0..2) * 60 + number(3..5)) * 60 + number(6..8)) * 1000 + number(9..12) + millis;
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let point = &time[8..9];
    format!("{}{hour:02}:{minute:02}:{second:02}{point}{millis:03}{}", &line[..11], &line[23..])
}
