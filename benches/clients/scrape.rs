//! What looking at servers costs them: a scrape of all figures each second beside writes, probes, and what is recorded for each
//! write.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorate_metrics::SharedSummary;

use crate::Outcome;
use crate::ensemble::{Ensemble, Kind};
use crate::load::LOADS;

/// Writes for so long with and without scrapes, in turn, so often.
pub(crate) fn measure(rounds: usize, lasts: Duration) -> Outcome<()> {
    let ensemble = Ensemble::watched(Kind::Quorate)?;
    let load = LOADS[0];
    // Warm.
    load.run(&ensemble, lasts)?;
    let (mut rates, mut costs) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    let mut scrapes = Vec::new();
    let (mut recorded, mut written) = (0.0, 0);
    for round in 0..2 * rounds {
        let scraped = round % 2;
        let before = observations(&ensemble)?;
        let stop = AtomicBool::new(false);
        let ran = thread::scope(|scope| {
            let scraper = scope.spawn(|| {
                if scraped == 1 { scrape_until(&stop, &ensemble) } else { Ok(Vec::new()) }
            });
            let ran = load.run(&ensemble, lasts);
            stop.store(true, Ordering::Relaxed);
            scrapes.extend(scraper.join().map_err(|_| "a scraper has panicked")??);
            ran
        })?;
        recorded += observations(&ensemble)? - before;
        written += ran.acknowledged;
        rates[scraped].push(ran.writes_a_second());
        costs[scraped].push(ran.cpu_micros_each());
    }
    let [without, with] = &rates;
    let ratios: Vec<_> = with.iter().zip(without).map(|(with, without)| with / without).collect();
    let (without, with) = (median(without.clone()), median(with.clone()));
    println!("  writes/s without {without:.0}, with a scrape a second {with:.0}");
    println!("  {:.3} of it in the median round of {rounds}", median(ratios));
    let [without, with] = costs.map(median);
    println!("  the servers' processor time of a write: {without:.2} µs, {with:.2} µs");
    report("a scrape beside writes", scrapes);
    probe(&ensemble, "a scrape of an idle server", |times| {
        many(&ensemble, "/metrics", times / 10)
    })?;
    probe(&ensemble, "a probe, with its connection", |times| many(&ensemble, "/ready", times))?;
    probe(&ensemble, "a probe on a connection that stays", |times| {
        let mut stream = TcpStream::connect(("127.0.0.1", ensemble.http[0]))?;
        (0..times).map(|_| get_on(&mut stream, "/ready")).collect()
    })?;
    let each = recorded / written.max(1) as f64;
    let nanos = nanos_of_one();
    println!("  recorded for a write, at three servers: {each:.1} observations of {nanos:.1} ns");
    Ok(())
}

/// Scrapes all servers each second; returns how long each took.
fn scrape_until(stop: &AtomicBool, ensemble: &Ensemble) -> Outcome<Vec<Duration>> {
    let mut took = Vec::new();
    let mut next = Instant::now() + Duration::from_millis(200);
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
        if next <= Instant::now() {
            next += Duration::from_secs(1);
            for port in &ensemble.http {
                took.push(get(*port, "/metrics")?.0);
            }
        }
    }
    Ok(took)
}

fn many(ensemble: &Ensemble, path: &str, times: usize) -> Outcome<Vec<Duration>> {
    (0..times).map(|_| Ok(get(ensemble.http[0], path)?.0)).collect()
}

/// How long a page takes, and what it says.
fn get(port: u16, path: &str) -> Outcome<(Duration, String)> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let took = begun.elapsed();
    if page.starts_with("HTTP/1.1 200 ") { Ok((took, page)) } else { Err(page.into()) }
}

/// How long probes take, and what each costs its server.
fn probe(
    ensemble: &Ensemble,
    what: &str,
    ask: impl FnOnce(usize) -> Outcome<Vec<Duration>>,
) -> Outcome<()> {
    let idle = Instant::now();
    let before = ensemble.cpu()?;
    thread::sleep(Duration::from_secs(1));
    let background = (ensemble.cpu()? - before).as_secs_f64() / idle.elapsed().as_secs_f64();
    let (begun, before, times) = (Instant::now(), ensemble.cpu()?, 5_000);
    let took = ask(times)?;
    let times = took.len();
    report(what, took);
    let spent = (ensemble.cpu()? - before).as_secs_f64();
    let each = (spent - background * begun.elapsed().as_secs_f64()).max(0.0) / times as f64;
    println!("    of the server's processor {:.0} µs each", each * 1e6);
    Ok(())
}

/// A page on a connection that stays.
fn get_on(stream: &mut TcpStream, path: &str) -> Outcome<Duration> {
    let begun = Instant::now();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
    let mut held = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        held.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&held);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.and_then(|length| length.parse().ok()) == Some(body.len()) {
                return Ok(begun.elapsed());
            }
        }
        if read == 0 {
            return Err("the connection was closed".into());
        }
    }
}

/// How many observations all servers have recorded.
fn observations(ensemble: &Ensemble) -> Outcome<f64> {
    let mut all = 0.0;
    for port in &ensemble.http {
        let (_, page) = get(*port, "/metrics")?;
        let summaries = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let summaries = summaries.filter_map(|line| line.strip_suffix(" summary"));
        for name in summaries {
            let counts = page.lines().filter_map(|line| line.strip_prefix(name));
            let counts = counts.filter(|rest| rest.starts_with("_count"));
            let counts = counts.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
            all += counts.sum::<f64>();
        }
    }
    Ok(all)
}

/// What an observation costs in a loop: the least of several, since others use the machine as well.
fn nanos_of_one() -> f64 {
    let (summary, times) = (SharedSummary::default(), 500_000_u32);
    let nanos = (0..20).map(|_| {
        let begun = Instant::now();
        for time in 0..times {
            summary.observe(Duration::from_secs(1), u64::from(std::hint::black_box(time) % 64));
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(times)
    });
    nanos.fold(f64::INFINITY, f64::min)
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    if let (Some(half), Some(most)) = (took.get(took.len() / 2), took.last()) {
        let most_but_one = took.get(took.len() * 99 / 100).unwrap_or(most);
        println!(
            "  {what}: p50 {half:.1?}, p99 {most_but_one:.1?}, at most {most:.1?} of {}",
            took.len()
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
