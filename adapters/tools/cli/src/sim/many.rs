//! Many seeds: run on all processors, and summed up.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_sim::FaultClass;
use quorate_sim::runner::{Progress, Runner, Spread, Tally};
use quorate_sim::shrink::{Shrunk, shrink};
use serde::Serialize;

use super::{Arguments, Kind, as_json, say};
use crate::event::millis;
use crate::failure::Failure;
use crate::paint::Paint;
use quorate_servers::cpu::cpu_time;

/// How many runs a failure may take to be made small.
const SHRINK_MAX: u32 = 500;
/// How many pairs are shown, and how many are in JSON.
const PAIRS_SHOWN: usize = 5;
const PAIRS_TOLD: usize = 100;
/// How wide the bar is.
const BAR: usize = 30;

/// The sums of many seeds.
#[derive(Debug, Serialize)]
struct Report {
    first: u64,
    seeds: u64,
    threads: usize,
    passed: u64,
    failed: usize,
    steps: u64,
    virtual_s: f64,
    seconds: f64,
    cpu_s: f64,
    steps_per_cpu_s: f64,
    virtual_s_per_cpu_s: f64,
    elected: u64,
    established: u64,
    commits: u64,
    acknowledged: u64,
    reads: u64,
    /// Reads and writes of cells that one order explains.
    explained: u64,
    repaired: Times,
    settled: Times,
    failover: Times,
    rejoined: Times,
    /// How often each fault happened, and in how many runs.
    coverage: Vec<Class>,
    /// Faults that never happened although the run was large.
    missing: Vec<String>,
    /// The pairs that met least often.
    rarest_pairs: Vec<Pair>,
    /// The same of what the world did to servers, without what they did about it.
    rarest_fault_pairs: Vec<Pair>,
    /// The same for the same seeds, on every machine.
    digest: String,
    failures: Vec<Failed>,
    shrunk: Option<Small>,
}

#[derive(Debug, Serialize)]
struct Times {
    count: usize,
    median_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    max_seed: Option<u64>,
}

impl Times {
    fn of(spread: &Spread) -> Self {
        let longest = spread.longest();
        Self {
            count: spread.count(),
            median_ms: millis(spread.permille(500)),
            p999_ms: millis(spread.permille(999)),
            max_ms: millis(longest.map_or(Duration::ZERO, |(took, _)| took)),
            max_seed: longest.map(|(_, seed)| seed),
        }
    }
}

#[derive(Debug, Serialize)]
struct Class {
    class: String,
    times: u64,
    runs: u32,
}

#[derive(Debug, Serialize)]
struct Pair {
    classes: [String; 2],
    runs: u32,
}

#[derive(Debug, Serialize)]
struct Failed {
    seed: u64,
    kind: String,
    replay: String,
}

/// The first failure, with only what it takes.
#[derive(Debug, Serialize)]
struct Small {
    replay: String,
    failure: String,
    left: Vec<String>,
    of: usize,
    runs: u32,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut runner = Runner::new(arguments.first, arguments.seeds);
    runner.story = arguments.story.map(Into::into);
    runner.servers = arguments.servers;
    runner.generation = arguments.election == Kind::Generation;
    runner.plant_loss = arguments.inject_loss;
    runner.threads = arguments.threads.map_or(runner.threads, usize::from);
    let (begun, cpu) = (Instant::now(), cpu_time());
    let tally = with_bar(&runner);
    let (seconds, cpu_s) = (begun.elapsed().as_secs_f64(), (cpu_time() - cpu).as_secs_f64());
    let smaller = tally.failures.first().map(|(case, failure)| shrink(case, failure, SHRINK_MAX));
    let report = report(&runner, &tally, seconds, cpu_s, smaller.as_ref());
    let text = if arguments.json { as_json(&report)? } else { table(&report, Paint::stdout()) };
    say(&text)?;
    if report.failed == 0 && report.missing.is_empty() {
        return Ok(());
    }
    Err(Failure { code: 1, message: String::new() })
}

fn report(
    runner: &Runner,
    tally: &Tally,
    seconds: f64,
    cpu_s: f64,
    smaller: Option<&Shrunk>,
) -> Report {
    let virtual_s = tally.time.as_secs_f64();
    let class = |class: FaultClass| Class {
        class: format!("{class:?}"),
        times: tally.coverage.of(class),
        runs: tally.pairs.cases(class),
    };
    let pair = |(runs, one, other): (u32, FaultClass, FaultClass)| Pair {
        classes: [format!("{one:?}"), format!("{other:?}")],
        runs,
    };
    let rarest = |of| tally.pairs.rarest(of).into_iter().take(PAIRS_TOLD).map(pair).collect();
    let missing = tally.coverage.missing(&runner.must_happen());
    Report {
        first: runner.first,
        seeds: runner.seeds,
        threads: runner.threads,
        passed: tally.passed,
        failed: tally.failures.len(),
        steps: tally.steps,
        virtual_s,
        seconds,
        cpu_s,
        steps_per_cpu_s: tally.steps as f64 / cpu_s,
        virtual_s_per_cpu_s: virtual_s / cpu_s,
        elected: tally.elected,
        established: tally.established,
        commits: tally.commits,
        acknowledged: tally.acknowledged,
        reads: tally.reads,
        explained: tally.explained,
        repaired: Times::of(&tally.repaired),
        settled: Times::of(&tally.settled),
        failover: Times::of(&tally.failover),
        rejoined: Times::of(&tally.rejoined),
        coverage: FaultClass::ALL.into_iter().map(class).collect(),
        missing: missing.iter().map(|class| format!("{class:?}")).collect(),
        rarest_pairs: rarest(&FaultClass::ALL),
        rarest_fault_pairs: rarest(FaultClass::FAULTS),
        digest: format!("{:016x}", tally.digest),
        failures: tally
            .failures
            .iter()
            .map(|(case, failure)| Failed {
                seed: case.seed,
                kind: failure.kind(),
                replay: format!("quorate sim {case}"),
            })
            .collect(),
        shrunk: smaller.map(|smaller| Small {
            replay: format!("quorate sim {}", smaller.case),
            failure: smaller.failure.to_string(),
            left: smaller.left.iter().map(ToString::to_string).collect(),
            of: smaller.of,
            runs: smaller.runs,
        }),
    }
}

/// Runs the seeds; shows on a terminal how far they are.
fn with_bar(runner: &Runner) -> Tally {
    let progress = Progress::default();
    if !io::stderr().is_terminal() {
        return runner.run(&progress);
    }
    let (over, begun) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // It is a picture; one that cannot be shown is not missed.
                drop(write!(io::stderr(), "\r{}", bar(&progress, runner.seeds, begun.elapsed())));
                std::thread::sleep(Duration::from_millis(100));
            }
            drop(write!(io::stderr(), "\r\x1b[K"));
        });
        let tally = runner.run(&progress);
        over.store(true, Ordering::Relaxed);
        tally
    })
}

fn bar(progress: &Progress, seeds: u64, elapsed: Duration) -> String {
    let done = progress.done.load(Ordering::Relaxed).min(seeds);
    let steps = progress.steps.load(Ordering::Relaxed);
    let full = usize::try_from(done * BAR as u64 / seeds.max(1)).unwrap_or(0).min(BAR);
    let rate = steps as f64 / elapsed.as_secs_f64();
    let failed = match progress.failed.load(Ordering::Relaxed) {
        0 => String::new(),
        failed => format!(", {failed} FAILED"),
    };
    format!(
        "[{}{}] {done} of {seeds} seeds, {rate:.0} steps/s{failed}\x1b[K",
        "#".repeat(full),
        "·".repeat(BAR - full)
    )
}

fn table(report: &Report, paint: Paint) -> String {
    let mut text = format!(
        "{} seeds from {}: {} steps, {} of simulated time, in {:.1} s on {} threads\n\
         per second of a processor: {:.0} steps, {:.0} simulated seconds\n\
         {} elections won, {} leaders established, {} transactions committed, {} reads;\n\
         of what clients wrote and read one order explains {} operations\n",
        report.seeds,
        report.first,
        report.steps,
        long(report.virtual_s),
        report.seconds,
        report.threads,
        report.steps_per_cpu_s,
        report.virtual_s_per_cpu_s,
        report.elected,
        report.established,
        report.commits,
        report.reads,
        report.explained,
    );
    let heads = format!("\n{:44}{:>10}{:>10}{:>10}", "ms", "median", "99.9 %", "longest");
    let _ = writeln!(text, "{}", paint.strong(&heads));
    for (what, times) in [
        ("all is repaired, and a server leads", &report.repaired),
        ("… and all serve, beyond noticing", &report.settled),
        ("a leader dies, and all follow another", &report.failover),
        ("it comes back, and follows", &report.rejoined),
    ] {
        let Times { median_ms, p999_ms, max_ms, .. } = times;
        let _ = writeln!(text, "{what:44}{median_ms:>10.1}{p999_ms:>10.1}{max_ms:>10.1}");
    }
    let heads = format!("\n{:>12}{:>9}  what happened", "times", "runs");
    let _ = writeln!(text, "{}", paint.strong(&heads));
    for Class { class, times, runs } in &report.coverage {
        let line = format!("{times:>12}{runs:>9}  {class}");
        let alarming = report.missing.contains(class);
        let _ = writeln!(text, "{}", if alarming { paint.alarm(&line) } else { line });
    }
    let rarest = [("faults", &report.rarest_fault_pairs), ("of all", &report.rarest_pairs)];
    for (of, pairs) in rarest {
        let _ = write!(text, "\nrarest {of} together:");
        for Pair { classes: [one, other], runs } in pairs.iter().take(PAIRS_SHOWN) {
            let _ = write!(text, " {one} and {other} ({runs} runs);");
        }
    }
    let _ = write!(text, "\nthe digest of all runs is {}\n", report.digest);
    text.push_str(&verdict(report, paint));
    text
}

fn verdict(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    if !report.missing.is_empty() {
        let never = format!("never happened: {}", report.missing.join(", "));
        let _ = writeln!(text, "{}", paint.alarm(&never));
    }
    let Some(Small { replay, failure, left, of, runs }) = &report.shrunk else {
        let well = format!("every rule held after every step of {} runs", report.passed);
        return text + &paint.well(&well);
    };
    let _ = writeln!(text, "{}", paint.alarm(&format!("{} seeds failed:", report.failed)));
    for Failed { kind, replay, .. } in report.failures.iter().take(10) {
        let _ = writeln!(text, "  {kind:20} {replay}");
    }
    let left = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
    let _ = write!(
        text,
        "the first, made small in {runs} runs, takes {left} ({of} disturbances at first):\n\
         {failure}\nsee it with\n  {}",
        paint.strong(replay)
    );
    text
}

/// Seconds, said with days and hours.
fn long(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.1} s"),
        ..3_600.0 => format!("{:.1} min", seconds / 60.0),
        ..86_400.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_full_as_the_work_is_done() {
        let progress = Progress::default();
        progress.done.store(500, Ordering::Relaxed);
        let half = bar(&progress, 1_000, Duration::from_secs(1));
        assert!(half.starts_with("[###############···············] 500 of 1000 seeds"), "{half}");
        progress.failed.store(2, Ordering::Relaxed);
        assert!(bar(&progress, 1_000, Duration::from_secs(1)).contains("2 FAILED"));
    }
}
