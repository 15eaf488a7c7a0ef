//! The servers of a bench.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use quorate_driver::core::config::Config;
use quorate_driver::core::id::ServerId;
use quorate_driver::core::membership::{Member, Membership, Role, ServerAddress};
use quorate_driver::{Replicated, Runtime, ServerConfig};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::clients::{Tally, write};
use super::measure::histogram;
use super::sink::{Server, Sink};
use super::{At, Broadcast};
use crate::cpu::cpu_time;
use crate::failure::Failure;
use crate::runtime::BlockOn;

/// Servers, each with a thread.
pub(super) struct Ensemble<R: Runtime> {
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
pub(super) struct Measured {
    pub(super) times: Histogram<u64>,
    pub(super) writes: u64,
    pub(super) failed: u64,
    pub(super) took: Duration,
    pub(super) cpu: Duration,
}
impl<R: Runtime> Ensemble<R> {
    /// Starts all servers and waits until all of them serve.
    pub(super) fn start(
        runtime: &R,
        block_on: BlockOn,
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
    pub(super) fn measure(&self, arguments: &Broadcast) -> Result<Measured, Failure> {
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

    pub(super) fn end(self) -> Result<(), Failure> {
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
        block_on: BlockOn,
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
/// How long the clients write before it counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long servers may take to agree on a leader.
const PATIENCE: Duration = Duration::from_secs(30);
