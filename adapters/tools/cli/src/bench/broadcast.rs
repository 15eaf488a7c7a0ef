//! `quorate bench broadcast`.

use std::future::Future;
use std::io::{self, Write};
use std::iter;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use quorate_driver::core::config::Config;
use quorate_driver::core::id::ServerId;
use quorate_driver::core::membership::{Member, Membership, Role, ServerAddress};
use quorate_driver::core::zxid::Zxid;
use quorate_driver::{Replicated, RestoreError, Runtime, ServerConfig, StateMachine};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::measure::{histogram, micros};
use super::{At, Broadcast, bare};
use crate::cpu::cpu_time;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::runtime::Kind;

type Server<R> = quorate_driver::Server<R, Replicated<Sink>>;

/// A state machine that keeps nothing: what is measured is how a write gets there.
#[derive(Debug)]
struct Sink;

impl StateMachine for Sink {
    type State = ();

    fn apply(&mut self, _zxid: Zxid, _command: &[u8]) -> Bytes {
        Bytes::new()
    }

    fn save(&self) {}

    fn load(&mut self, (): ()) {}

    fn write((): ()) -> impl Iterator<Item = Bytes> + Send {
        iter::empty()
    }

    fn read((): &mut (), _piece: &[u8]) -> Result<(), RestoreError> {
        Ok(())
    }
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    runtime: &'static str,
    servers: u8,
    payload_bytes: u32,
    clients: u16,
    pipeline: u16,
    at: &'static str,
    seconds: f64,
    /// The files were in memory, so nothing was flushed.
    in_memory: bool,
    writes: u64,
    writes_per_s: f64,
    /// Refused, or in doubt.
    failed: u64,
    p50_us: u64,
    p99_us: u64,
    p999_us: u64,
    max_us: u64,
    /// Of all servers together, and their clients.
    cpu_us_per_write: f64,
    /// What a write must take at least.
    bare_p50_us: u64,
    bare_p99_us: u64,
    bare_cpu_us: f64,
}

/// Measures and tells.
pub(super) fn run(arguments: &Broadcast) -> Result<(), Failure> {
    let fails = |error: io::Error| Failure::failed(format!("the bench failed: {error}"));
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
    let mut least = bare("before").map_err(fails)?;
    let measured = match arguments.runtime {
        Kind::Tokio => measure(quorate_tokio::Tokio, on_tokio, dir.path(), arguments)?,
        #[cfg(feature = "runtimes")]
        Kind::Smol => measure(quorate_smol::Smol, on_smol, dir.path(), arguments)?,
        #[cfg(feature = "runtimes")]
        Kind::AsyncStd => {
            measure(quorate_async_std::AsyncStd, on_async_std, dir.path(), arguments)?
        }
    };
    let Measured { times, writes, failed, took, cpu } = measured;
    least.add(&bare("after").map_err(fails)?);
    if writes == 0 {
        return Err(Failure::failed(format!(
            "the bench failed: no write was done, {failed} failed"
        )));
    }
    let seconds = took.as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "nobody counts to 2^53 here")]
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

fn tell(report: &Report, json: bool) -> Result<(), Failure> {
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

/// Servers, each with a thread.
struct Ensemble<R: Runtime> {
    seats: Vec<Seat<R>>,
}

struct Seat<R: Runtime> {
    server: Server<R>,
    /// What its thread is to run. Dropping it ends the server.
    tasks: UnboundedSender<Task>,
    thread: JoinHandle<()>,
}

/// Something to run on a runtime.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What a thread does, and nothing beside it.
type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Measured {
    times: Histogram<u64>,
    writes: u64,
    failed: u64,
    took: Duration,
    cpu: Duration,
}

fn on_tokio(work: Work) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(work);
    Ok(())
}

#[cfg(feature = "runtimes")]
fn on_smol(work: Work) -> io::Result<()> {
    smol::block_on(work);
    Ok(())
}

#[cfg(feature = "runtimes")]
fn on_async_std(work: Work) -> io::Result<()> {
    async_std::task::block_on(work);
    Ok(())
}

/// Measures on a runtime, whose threads `block_on`.
fn measure<R: Runtime>(
    runtime: R,
    block_on: impl Fn(Work) -> io::Result<()> + Copy + Send + 'static,
    dir: &Path,
    arguments: &Broadcast,
) -> Result<Measured, Failure> {
    let ensemble = Ensemble::start(&runtime, block_on, dir, arguments)?;
    let measured = ensemble.measure(arguments);
    let ended = ensemble.end();
    let measured = measured?;
    ended?;
    Ok(measured)
}

impl<R: Runtime> Ensemble<R> {
    /// Starts all servers and waits until all of them serve.
    fn start(
        runtime: &R,
        block_on: impl Fn(Work) -> io::Result<()> + Copy + Send + 'static,
        dir: &Path,
        arguments: &Broadcast,
    ) -> Result<Self, Failure> {
        let fails = |error: String| Failure::failed(format!("the bench failed: {error}"));
        let membership = membership(arguments.servers).map_err(fails)?;
        let under_way = usize::from(arguments.clients) * usize::from(arguments.pipeline);
        let starting: Vec<_> = (1..=i64::from(arguments.servers))
            .map(|id| {
                let mut core = Config::new(ServerId(id), membership.clone());
                core.timing.init_limit = 10;
                core.timing.sync_limit = 5;
                core.history.requests = core.history.requests.max(under_way);
                let config = ServerConfig::new(core, dir.join(id.to_string()));
                Seat::start(runtime.clone(), block_on, config)
            })
            .collect();
        let mut seats = Vec::new();
        for starting in starting {
            let (thread, seat) = starting.map_err(|error| fails(error.to_string()))?;
            let seat = seat.recv();
            let seat = seat.unwrap_or_else(|_| Err("a server's thread has ended".to_owned()));
            let (server, tasks) = seat.map_err(fails)?;
            seats.push(Seat { server, tasks, thread });
        }
        let ensemble = Self { seats };
        for seat in &ensemble.seats {
            let (server, (led, serving)) = (seat.server.clone(), mpsc::channel());
            seat.run(async move {
                let _ = led.send(server.leaders().led().await.is_some());
            });
            if !serving.recv_timeout(PATIENCE).unwrap_or(false) {
                return Err(fails("the servers do not agree on a leader".to_owned()));
            }
        }
        Ok(ensemble)
    }

    /// Lets the clients write.
    fn measure(&self, arguments: &Broadcast) -> Result<Measured, Failure> {
        let leader = self.seats.iter().find_map(|seat| seat.server.leader());
        let is_place = |seat: &&Seat<R>| match arguments.at {
            At::All => true,
            At::Leader => leader.is_some_and(|(id, _)| id == seat.server.id()),
        };
        let places: Vec<_> = self.seats.iter().filter(is_place).collect();
        if places.is_empty() {
            return Err(Failure::failed("the bench failed: the leader is gone"));
        }
        let payload = usize::try_from(arguments.payload).unwrap_or(usize::MAX);
        let payload = Bytes::from(vec![b'x'; payload]);
        let tallies: Vec<_> = places.iter().map(|_| Arc::new(Tally::new())).collect();
        let under_way = usize::from(arguments.clients) * usize::from(arguments.pipeline);
        let ends: Vec<_> = places
            .iter()
            .zip(&tallies)
            .enumerate()
            .map(|(nth, (seat, tally))| {
                // As many at each, the first ones one more.
                let count = (under_way + places.len() - 1 - nth) / places.len();
                let (ended, end) = mpsc::channel();
                for _ in 0..count {
                    let client = write(seat.server.clone(), payload.clone(), Arc::clone(tally));
                    let ended = ended.clone();
                    seat.run(async move {
                        client.await;
                        let _ = ended.send(());
                    });
                }
                (count, end)
            })
            .collect();

        let time = Duration::from_secs(arguments.seconds.into());
        std::thread::sleep(WARM_UP.min(time));
        let (begun, cpu) = (Instant::now(), cpu_time());
        for tally in &tallies {
            tally.counts.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(time);
        // Where the machine has other things to do, until there is one at least.
        let is_empty = |tally: &Arc<Tally>| {
            tally.times.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        };
        while tallies.iter().all(is_empty) && begun.elapsed() < PATIENCE {
            std::thread::sleep(WARM_UP);
        }
        for tally in &tallies {
            tally.counts.store(false, Ordering::Relaxed);
        }
        let (took, cpu) = (begun.elapsed(), cpu_time().saturating_sub(cpu));
        for tally in &tallies {
            tally.enough.store(true, Ordering::Relaxed);
        }
        for (count, end) in ends {
            if end.iter().count() < count {
                return Err(Failure::failed("the bench failed: a client panicked"));
            }
        }
        let (mut times, mut failed) = (histogram(), 0);
        for tally in tallies {
            let seen = tally.times.lock().unwrap_or_else(PoisonError::into_inner);
            // Both are made the same way.
            let _ = times.add(&*seen);
            failed += tally.failed.load(Ordering::Relaxed);
        }
        let writes = times.len();
        Ok(Measured { times, writes, failed, took, cpu })
    }

    fn end(self) -> Result<(), Failure> {
        // All of them at once: each `tasks` is dropped here.
        let threads: Vec<_> = self.seats.into_iter().map(|seat| seat.thread).collect();
        for thread in threads {
            thread.join().map_err(|_| Failure::failed("the bench failed: a server panicked"))?;
        }
        Ok(())
    }
}

/// A server that has started, and what takes tasks for its thread.
type Started<R> = Result<(Server<R>, UnboundedSender<Task>), String>;

impl<R: Runtime> Seat<R> {
    fn start(
        runtime: R,
        block_on: impl FnOnce(Work) -> io::Result<()> + Send + 'static,
        config: ServerConfig,
    ) -> io::Result<(JoinHandle<()>, mpsc::Receiver<Started<R>>)> {
        let (tell, told) = mpsc::channel();
        let name = format!("server-{}", config.core.id);
        let work = move || {
            let tells = tell.clone();
            let served = block_on(Box::pin(async move {
                let bench = Replicated::new("bench", Sink);
                let server = match Server::start(runtime.clone(), config, bench).await {
                    Ok(server) => server,
                    Err(error) => {
                        drop(tells.send(Err(error.to_string())));
                        return;
                    }
                };
                let (tasks, mut wanted) = unbounded_channel();
                drop(tells.send(Ok((server.clone(), tasks))));
                while let Some(task) = wanted.recv().await {
                    runtime.spawn(task);
                }
                drop(server.shutdown().await);
            }));
            if let Err(error) = served {
                drop(tell.send(Err(error.to_string())));
            }
        };
        Ok((std::thread::Builder::new().name(name).spawn(work)?, told))
    }

    /// Runs a task where the server runs.
    fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        // It has ended: so does whoever waits for the task.
        drop(self.tasks.send(Box::pin(task)));
    }
}

/// What the clients at one server have seen.
struct Tally {
    /// It is being measured.
    counts: AtomicBool,
    enough: AtomicBool,
    failed: AtomicU64,
    /// The clients are on one thread, so nobody waits for this.
    times: Mutex<Histogram<u64>>,
}

impl Tally {
    fn new() -> Self {
        Self {
            counts: AtomicBool::new(false),
            enough: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            times: Mutex::new(histogram()),
        }
    }
}

/// One write after the other.
async fn write<R: Runtime>(server: Server<R>, payload: Bytes, tally: Arc<Tally>) {
    while !tally.enough.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let outcome = server.propose(payload.clone()).await;
        if !tally.counts.load(Ordering::Relaxed) {
            continue;
        }
        if outcome.is_ok() {
            let mut times = tally.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.saturating_record(micros(begun.elapsed()));
        } else {
            tally.failed.fetch_add(1, Ordering::Relaxed);
        }
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

/// Servers 1 to `servers` on free ports of this machine.
fn membership(servers: u8) -> Result<Membership, String> {
    let cannot = |error: io::Error| format!("no free port on 127.0.0.1: {error}");
    let held: Vec<_> = (0..2 * servers)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot))
        .collect::<Result<_, _>>()?;
    let ports: Vec<_> = held
        .iter()
        .map(|listener| listener.local_addr().map(|at| at.port()).map_err(cannot))
        .collect::<Result<_, _>>()?;
    let members = ports.chunks_exact(2).zip(1..).map(|(ports, id)| {
        let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
        Member::new(ServerId(id), Role::Participant, address)
    });
    Membership::build(members, [], [], 0).map_err(|error| error.to_string())
}

/// How long the bare rounds are measured, each time.
const BARE_TIME: Duration = Duration::from_millis(500);
/// How long the clients write before it counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long servers may take to agree on a leader.
const PATIENCE: Duration = Duration::from_secs(30);
