//! What TLS between the servers costs: writes, and failovers, with it and without, in turn; and what strangers can do to an
//! election who shake hands.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_rustls::rustls::{ClientConfig, ClientConnection};

use crate::Outcome;
use crate::ensemble::{Ensemble, Kind};
use crate::failover;
use crate::load::{LOADS, Load};

const KINDS: [Kind; 2] = [Kind::Quorate, Kind::Tls];

/// Writes to both for so long, in turn, so often; then as many failovers, and as many under a flood. Of some loads only if
/// so said, and no more than those.
pub(crate) fn measure(rounds: usize, lasts: Duration, only: Option<&str>) -> Outcome<()> {
    let mut ensembles = Vec::new();
    for kind in KINDS {
        let ensemble = Ensemble::start(kind)?;
        // Warmed up.
        LOADS[0].run(&ensemble, lasts)?;
        ensembles.push(ensemble);
    }
    let large = LOADS[0].of_size("setData 1 KiB, 3 × 200", 1024);
    for load in [LOADS[0], large, LOADS[1]] {
        if only.is_none_or(|only| load.name.contains(only)) {
            compare(load, &ensembles, rounds, lasts)?;
        }
    }
    if only.is_some() {
        return Ok(());
    }
    println!("failover");
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (ensemble, took) in ensembles.iter_mut().zip(&mut took) {
            took.push(failover::once(ensemble, round)?);
        }
    }
    for (kind, took) in KINDS.iter().zip(took) {
        failover::report(&format!("{kind:?}: "), took);
    }
    let [_, secured] = &mut ensembles[..] else { return Ok(()) };
    flooded(secured, rounds, lasts)
}

/// Prints the medians of each, and of what TLS makes of the same round's without.
fn compare(load: Load, both: &[Ensemble], rounds: usize, lasts: Duration) -> Outcome<()> {
    println!("{}", load.name);
    let mut figures = KINDS.map(|_| Vec::new());
    for _ in 0..rounds {
        for (ensemble, figures) in both.iter().zip(&mut figures) {
            let ran = load.run(ensemble, lasts)?;
            let (rate, cpu) = (ran.writes_a_second(), ran.cpu_micros_each());
            figures.push([rate, ran.write_at(50), ran.write_at(99), cpu]);
        }
    }
    let [plain, secured] = &figures;
    for (kind, of_kind) in KINDS.iter().zip(&figures) {
        let [rate, p50, p99, cpu] = [0, 1, 2, 3].map(|at| median(of_kind.iter().map(|of| of[at])));
        let kind = format!("{kind:?}");
        println!("  {kind:8} {rate:7.0}/s, p50 {p50:6.0} µs, p99 {p99:6.0} µs, {cpu:6.2} µs each");
    }
    let [rate, p50, p99, cpu] = [0, 1, 2, 3].map(|at| {
        median(plain.iter().zip(secured).map(|(plain, secured)| secured[at] / plain[at]))
    });
    println!("  of the same round's without: {rate:.3}, p50 {p50:.3}, p99 {p99:.3}, each {cpu:.3}");
    Ok(())
}

/// Strangers come to the servers' ports for each other, while they write and fail over.
fn flooded(ensemble: &mut Ensemble, rounds: usize, lasts: Duration) -> Outcome<()> {
    println!("strangers at the ports of servers with TLS");
    let resident =
        |ensemble: &Ensemble| (0..3).map(|index| ensemble.resident(index)).sum::<Outcome<u64>>();
    let quiet = LOADS[1].run(ensemble, lasts)?;
    let before = resident(ensemble)?;
    let (stop, counts) = (AtomicBool::new(false), Counts::default());
    let flood = Flood {
        ports: ensemble.among.clone(),
        config: Arc::clone(&ensemble.stranger),
        stop: &stop,
        counts: &counts,
    };
    let (took, written, within) = thread::scope(|scope| {
        scope.spawn(|| flood.handshakes());
        scope.spawn(|| flood.silent());
        let measured = (|| {
            let written = LOADS[1].run(ensemble, lasts)?;
            let took = (0..rounds).map(|round| failover::once(ensemble, round));
            let took = took.collect::<Outcome<Vec<_>>>()?;
            Outcome::Ok((took, written, resident(ensemble)?))
        })();
        stop.store(true, Ordering::Relaxed);
        measured
    })?;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "  {} handshakes without a certificate, {} connections that said nothing or half of it",
        of(&counts.handshakes),
        of(&counts.silent)
    );
    println!("  without them: {quiet}\n  with them:    {written}");
    failover::report("", took);
    thread::sleep(MEMORY_IS_BACK);
    let after = resident(ensemble)?;
    println!("  resident before, with them, and a minute later: {before}, {within}, {after} KiB");
    Ok(())
}

/// How long servers have to let go of what strangers took.
const MEMORY_IS_BACK: Duration = Duration::from_secs(60);

/// How many connections that say nothing are held open.
const HELD: usize = 2_000;

/// What came of a flood.
#[derive(Default)]
struct Counts {
    handshakes: AtomicU64,
    silent: AtomicU64,
}

/// Those who come without a certificate.
struct Flood<'a> {
    ports: Vec<u16>,
    config: Arc<ClientConfig>,
    stop: &'a AtomicBool,
    counts: &'a Counts,
}

impl Flood<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn connect(&self, nth: usize) -> Option<TcpStream> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports[nth % self.ports.len()]));
        let stream = TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
        Some(stream)
    }

    /// Whole handshakes, 200 a second.
    fn handshakes(&self) {
        let mut due = Instant::now();
        for nth in 0.. {
            if !self.goes_on() {
                return;
            }
            let Some(mut stream) = self.connect(nth) else { continue };
            let name = "127.0.0.1".try_into().expect("an address");
            let Ok(mut client) = ClientConnection::new(Arc::clone(&self.config), name) else {
                return;
            };
            while client.is_handshaking() && client.complete_io(&mut stream).is_ok() {}
            self.counts.handshakes.fetch_add(1, Ordering::Relaxed);
            due += Duration::from_millis(5);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    /// Connections that say nothing, and in turn half of a ClientHello.
    fn silent(&self) {
        let mut held = VecDeque::new();
        for nth in 0.. {
            if !self.goes_on() {
                return;
            }
            // Six ports in turn: both kinds come to each.
            let Some(mut stream) = self.connect(nth) else { continue };
            if nth / self.ports.len() % 2 == 0 {
                drop(stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"));
            }
            self.counts.silent.fetch_add(1, Ordering::Relaxed);
            held.push_back(stream);
            if held.len() > HELD {
                held.pop_front();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn median(all: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}
