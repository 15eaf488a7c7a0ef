//! The servers of a bench, each on a thread of its own, with the clients that write through it.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_driver::core::config::Config;
use quorate_driver::core::id::ServerId;
use quorate_driver::core::membership::{Member, Membership, MembershipError, Role, ServerAddress};
use quorate_driver::{Replicated, Runtime, ServerConfig, StartError};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::clients::{Measured, Tally, write};
use super::measure::histogram;
use super::sink::{Server, Sink};
use super::{At, Load};
use crate::cpu::cpu_time;
use crate::runtime::BlockOn;

/// Servers, each with a thread.
pub(super) struct Ensemble<R: Runtime> {
    hosts: Vec<Host<R>>,
}

/// A server and its thread.
struct Host<R: Runtime> {
    server: Server<R>,
    /// What its thread is to run. Dropping it ends the server.
    tasks: UnboundedSender<Task>,
    thread: JoinHandle<()>,
}

/// Something to run on a runtime.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why nothing could be measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// What the servers would listen on is not to be had.
    #[error("no free port on 127.0.0.1: {0}")]
    Ports(io::Error),
    /// So many servers are no ensemble.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// A thread for a server is not to be had, or its runtime.
    #[error(transparent)]
    Thread(io::Error),
    /// A server does not start.
    #[error(transparent)]
    Start(StartError),
    /// A server has ended while it started.
    #[error("a server's thread has ended")]
    ThreadEnded,
    /// After half a minute.
    #[error("the servers do not agree on a leader")]
    NoLeader,
    /// There was one, and there is none when the clients begin.
    #[error("the leader is gone")]
    LeaderGone,
    /// A mistake of ours.
    #[error("a client panicked")]
    ClientPanicked,
    /// A mistake of ours.
    #[error("a server panicked")]
    ServerPanicked,
}

impl<R: Runtime> Ensemble<R> {
    /// Starts all servers and waits until all of them serve.
    pub(super) fn start(
        runtime: &R,
        block_on: BlockOn,
        dir: &Path,
        load: &Load,
    ) -> Result<Self, BenchError> {
        let membership = membership(load.servers)?;
        let starting: Vec<_> = (1..=i64::from(load.servers))
            .map(|id| {
                let mut core = Config::new(ServerId(id), membership.clone());
                core.timing.init_limit = 10;
                core.timing.sync_limit = 5;
                core.history.requests = core.history.requests.max(load.under_way());
                let config = ServerConfig::new(core, dir.join(id.to_string()));
                Host::start(runtime.clone(), block_on, config)
            })
            .collect();
        let mut hosts = Vec::new();
        for starting in starting {
            let (thread, started) = starting.map_err(BenchError::Thread)?;
            let (server, tasks) = started.recv().map_err(|_| BenchError::ThreadEnded)??;
            hosts.push(Host { server, tasks, thread });
        }
        let ensemble = Self { hosts };
        for host in &ensemble.hosts {
            let (server, (led, serving)) = (host.server.clone(), mpsc::channel());
            host.run(async move {
                let _ = led.send(server.leaders().led().await.is_some());
            });
            if !serving.recv_timeout(PATIENCE).unwrap_or(false) {
                return Err(BenchError::NoLeader);
            }
        }
        Ok(ensemble)
    }

    /// Lets the clients write, and counts.
    pub(super) fn measure(&self, load: &Load) -> Result<Measured, BenchError> {
        let (tallies, ends) = self.start_clients(load)?;
        let time = load.time;
        std::thread::sleep(WARM_UP.min(time));
        let (begun, cpu) = (Instant::now(), cpu_time());
        tallies.iter().for_each(|tally| tally.count(true));
        std::thread::sleep(time);
        // Where the machine has other things to do, until there is one at least.
        while tallies.iter().all(|tally| tally.is_empty()) && begun.elapsed() < PATIENCE {
            std::thread::sleep(WARM_UP);
        }
        tallies.iter().for_each(|tally| tally.count(false));
        let (took, cpu) = (begun.elapsed(), cpu_time().saturating_sub(cpu));
        tallies.iter().for_each(|tally| tally.end());
        for (count, end) in ends {
            if end.iter().count() < count {
                return Err(BenchError::ClientPanicked);
            }
        }
        let (mut times, mut failed) = (histogram(), 0);
        for tally in tallies {
            // Both are made the same way.
            let _ = times.add(&*tally.times());
            failed += tally.failed();
        }
        let writes = times.len();
        Ok(Measured { times, writes, failed, took, cpu })
    }

    /// Starts the clients at their servers: what each server's clients count, and how many of them say when they end.
    fn start_clients(&self, load: &Load) -> Result<(Vec<Arc<Tally>>, Ends), BenchError> {
        let leader = self.hosts.iter().find_map(|host| host.server.leader());
        let has_clients = |host: &&Host<R>| match load.at {
            At::All => true,
            At::Leader => leader.is_some_and(|(id, _)| id == host.server.id()),
        };
        let hosts: Vec<_> = self.hosts.iter().filter(has_clients).collect();
        if hosts.is_empty() {
            return Err(BenchError::LeaderGone);
        }
        let payload = Bytes::from(vec![b'x'; load.payload_bytes]);
        let (mut tallies, mut ends) = (Vec::new(), Vec::new());
        for (nth, host) in hosts.iter().enumerate() {
            let tally = Arc::new(Tally::new());
            // As many at each, the first ones one more.
            let count = (load.under_way() + hosts.len() - 1 - nth) / hosts.len();
            let (ended, end) = mpsc::channel();
            for _ in 0..count {
                let client = write(host.server.clone(), payload.clone(), Arc::clone(&tally));
                let ended = ended.clone();
                host.run(async move {
                    client.await;
                    let _ = ended.send(());
                });
            }
            tallies.push(tally);
            ends.push((count, end));
        }
        Ok((tallies, ends))
    }

    /// Ends all servers at once.
    pub(super) fn end(self) -> Result<(), BenchError> {
        // Each `tasks` is dropped here.
        let threads: Vec<_> = self.hosts.into_iter().map(|host| host.thread).collect();
        for thread in threads {
            thread.join().map_err(|_| BenchError::ServerPanicked)?;
        }
        Ok(())
    }
}

/// For each server with clients, how many there are, and a message from each that ends.
type Ends = Vec<(usize, mpsc::Receiver<()>)>;
/// A server that has started, and what takes tasks for its thread.
type Started<R> = Result<(Server<R>, UnboundedSender<Task>), BenchError>;

impl<R: Runtime> Host<R> {
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
                        drop(tells.send(Err(BenchError::Start(error))));
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
                drop(tell.send(Err(BenchError::Thread(error))));
            }
        };
        Ok((std::thread::Builder::new().name(name).spawn(work)?, told))
    }

    /// Runs a task where the server runs.
    fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        // A server that has ended drops the task, and the task's channel tells that.
        drop(self.tasks.send(Box::pin(task)));
    }
}

/// Servers 1 to `servers` on free ports of this machine.
fn membership(servers: u8) -> Result<Membership, BenchError> {
    let held: Vec<_> = (0..2 * servers)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .map_err(BenchError::Ports)?;
    let ports: Vec<_> = held
        .iter()
        .map(|listener| listener.local_addr().map(|at| at.port()))
        .collect::<Result<_, _>>()
        .map_err(BenchError::Ports)?;
    let members = ports.chunks_exact(2).zip(1..).map(|(ports, id)| {
        let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
        Member::new(ServerId(id), Role::Participant, address)
    });
    Ok(Membership::build(members, [], [], 0)?)
}

/// How long the clients write before it counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long servers may take to agree on a leader.
const PATIENCE: Duration = Duration::from_secs(30);
