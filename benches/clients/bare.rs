//! The least that a commit of three servers takes: the bare rounds of `quorate bench`, on the servers' core.

use std::time::Duration;

use crate::Outcome;
use crate::ensemble::{SERVERS, on_core, quorate, target};

/// What such rounds take, in words.
pub(crate) fn rounds(lasts: Duration) -> Outcome<String> {
    let mut command = on_core(SERVERS, &quorate().display().to_string());
    command.args(["bench", "broadcast", "--json", "--clients", "1", "--seconds"]);
    command.arg(lasts.as_secs().max(1).to_string()).arg("--dir").arg(target());
    let output = command.output()?;
    let told = String::from_utf8(output.stdout)?;
    let (half, most) = (number(&told, "bare_p50_us"), number(&told, "bare_p99_us"));
    match half.zip(most) {
        Some((half, most)) => Ok(format!("{:24} p50 {half} µs p99 {most} µs", "a bare commit")),
        None => Err(format!("{told}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn number(told: &str, name: &str) -> Option<u64> {
    let (_, rest) = told.split_once(&format!("\"{name}\":"))?;
    rest.split(',').next()?.trim().trim_end_matches('}').parse().ok()
}
