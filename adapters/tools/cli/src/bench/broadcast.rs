//! `quorate bench broadcast`: the bare rounds, the ensemble between them, and the report of both.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use quorate_servers::bench::{At, Load, Measured, bare, measure};

use super::Broadcast;
use super::report::{Report, tell};
use crate::failure::Failure;

/// Measures, and prints the report.
pub(super) fn run(arguments: &Broadcast) -> Result<(), Failure> {
    let fails = |error: &dyn Display| Failure::failed(format!("the bench failed: {error}"));
    if std::env::var_os("RUST_LOG").is_some() {
        crate::logs::start(None, "off")?;
    }
    let dir = tempfile::Builder::new()
        .prefix("quorate-bench-")
        .tempdir_in(&arguments.dir)
        .map_err(|error| {
            let dir = arguments.dir.display();
            Failure::failed(format!("cannot make a directory in {dir}: {error}"))
        })?;
    let in_memory = is_in_memory(dir.path());
    if in_memory {
        // The figures say it, too.
        let dir = arguments.dir.display();
        let warning = format!("{dir} is in memory: nothing reaches a disk; take another --dir");
        drop(writeln!(io::stderr(), "{warning}"));
    }
    // Before and afterwards: what else happens on the machine changes.
    let bare = |when| bare::rounds(&dir.path().join(when), arguments.servers.into(), BARE_TIME);
    let mut least = bare("before").map_err(|error| fails(&error))?;
    let measured = measure(arguments.runtime, dir.path(), &load(arguments));
    let Measured { times, writes, failed, took, cpu } = measured.map_err(|error| fails(&error))?;
    least.add(&bare("after").map_err(|error| fails(&error))?);
    if writes == 0 {
        return Err(fails(&format_args!("no write was done, {failed} failed")));
    }
    let seconds = took.as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let count = writes as f64;
    let report = Report {
        bench: "broadcast",
        runtime: arguments.runtime.name(),
        servers: arguments.servers,
        payload_bytes: arguments.payload,
        clients: arguments.clients,
        pipeline: arguments.pipeline,
        at: if arguments.at == At::Leader { "leader" } else { "all" },
        seconds: (seconds * 1e3).round() / 1e3,
        in_memory,
        writes,
        writes_per_s: (count / seconds).round(),
        failed,
        p50_us: times.value_at_quantile(0.5),
        p99_us: times.value_at_quantile(0.99),
        p999_us: times.value_at_quantile(0.999),
        max_us: times.max(),
        cpu_us_per_write: (cpu.as_secs_f64() * 1e8 / count).round() / 1e2,
        bare_p50_us: least.times.value_at_quantile(0.5),
        bare_p99_us: least.times.value_at_quantile(0.99),
        bare_cpu_us: (least.cpu_each().as_secs_f64() * 1e8).round() / 1e2,
    };
    tell(&report, arguments.json)
}

fn load(arguments: &Broadcast) -> Load {
    Load {
        servers: arguments.servers,
        payload_bytes: usize::try_from(arguments.payload).unwrap_or(usize::MAX),
        clients: arguments.clients,
        pipeline: arguments.pipeline,
        time: Duration::from_secs(arguments.seconds.into()),
        at: arguments.at,
    }
}

/// Whether what is written there never reaches a disk.
fn is_in_memory(dir: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    rustix::fs::statfs(dir).is_ok_and(|found| {
        u32::try_from(found.f_type).is_ok_and(|kind| [TMPFS, RAMFS].contains(&kind))
    })
}

/// How long the bare rounds are measured, each time.
const BARE_TIME: Duration = Duration::from_millis(500);
