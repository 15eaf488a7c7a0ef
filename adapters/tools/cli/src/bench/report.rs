//! The report of a bench, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;
use crate::paint::Paint;

/// What was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) bench: &'static str,
    pub(super) runtime: &'static str,
    pub(super) servers: u8,
    pub(super) payload_bytes: u32,
    pub(super) clients: u16,
    pub(super) pipeline: u16,
    pub(super) at: &'static str,
    pub(super) seconds: f64,
    /// The files were in memory, so nothing was flushed.
    pub(super) in_memory: bool,
    pub(super) writes: u64,
    pub(super) writes_per_s: f64,
    /// Refused, or of unknown outcome.
    pub(super) failed: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    pub(super) max_us: u64,
    /// Of all servers together, and their clients.
    pub(super) cpu_us_per_write: f64,
    /// What a write must take at least.
    pub(super) bare_p50_us: u64,
    pub(super) bare_p99_us: u64,
    pub(super) bare_cpu_us: f64,
}

pub(super) fn tell(report: &Report, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string(report).map_err(|error| Failure::failed(error.to_string()))?
    } else {
        table(report, Paint::stdout())
    };
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        // A reader that has gone wants no more.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn table(report: &Report, paint: Paint) -> String {
    let Report { servers, clients, pipeline, payload_bytes, .. } = report;
    let place = if report.at == "leader" { "the leader" } else { "all servers" };
    let count = |count: &dyn std::fmt::Display, what: &str| match count.to_string().as_str() {
        "1" => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let (servers, clients) = (count(servers, "server"), count(clients, "client"));
    let heads = ["writes/s", "p50 µs", "p99 µs", "p99.9 µs", "max µs", "CPU µs/write"];
    let cells = [
        format!("{:.0}", report.writes_per_s),
        report.p50_us.to_string(),
        report.p99_us.to_string(),
        report.p999_us.to_string(),
        report.max_us.to_string(),
        format!("{:.1}", report.cpu_us_per_write),
    ];
    let row = |cells: [String; 6]| cells.map(|cell| format!("{cell:>13}")).join("");
    let (bare_p50, bare_p99) = (report.bare_p50_us, report.bare_p99_us);
    let failed = match report.failed {
        0 => String::new(),
        failed => format!("\n{}", paint.alarm(&format!("{failed} writes failed"))),
    };
    format!(
        "{servers} on loopback, on {}; {clients} at {place}, {pipeline} x {payload_bytes} \
         bytes under way each; {:.1} s\n\n{}\n{}\n\n\
         CPU: all servers together, and their clients. To send, flush and acknowledge 160 bytes and\n\
         nothing else takes: p50 {bare_p50} µs, p99 {bare_p99} µs, CPU {:.1} µs.{failed}",
        report.runtime,
        report.seconds,
        paint.strong(&row(heads.map(str::to_owned))),
        row(cells),
        report.bare_cpu_us,
    )
}
