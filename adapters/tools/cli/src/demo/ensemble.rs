//! The servers of the demo as they run: in this process, or each in a process of its own.
//!
//! Either way their changes come through one channel. A server's lives are numbered, so that the last report of one
//! that was killed is never taken for a report of its next life. What it does not do: it decides nothing; see `plot`.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_service::{Options, ZooKeeper};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::{Server, start_with};
use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;
use tokio::process::Child;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};

use super::connection::{Connection, Pipe, Roster};
use super::layout::{Layout, Links, Placement, Purpose};
use super::ledger;
use super::news::{Gate, Seen, forward, read};

/// All servers, running or not.
#[derive(Debug)]
pub(super) struct Ensemble {
    layout: Layout,
    /// The servers that take writes now; none without load.
    roster: Option<Roster>,
    begun: Instant,
    running: BTreeMap<i64, Running>,
    /// Processes that were stopped with SIGSTOP.
    silent: BTreeMap<i64, Box<Child>>,
    lives: BTreeMap<i64, u32>,
    seen: UnboundedSender<Seen>,
}

#[derive(Debug)]
enum Running {
    Embedded(Server),
    /// Under load.
    Writable(ledger::Server),
    /// With clients.
    Serving(Server<ZooKeeper>),
    Process(Box<Child>, Option<Arc<Pipe>>),
}

/// Why a server does not start.
#[derive(Debug, Error)]
pub(super) enum StartError {
    #[error("server {server} does not start: {source}")]
    Server { server: i64, source: quorate_tokio::StartError },
    #[error("server {server} does not start: {source}")]
    Process { server: i64, source: io::Error },
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// Why a server's process could not be killed.
#[derive(Debug, Error)]
#[error("cannot kill server {server}: {source}")]
pub(super) struct KillError {
    server: i64,
    source: io::Error,
}

/// Why a server could not be silenced.
#[derive(Debug, Error)]
pub(super) enum SilenceError {
    #[error("server {0} is no process")]
    NoProcess(i64),
    #[error("server {0} has ended")]
    Ended(i64),
    #[error("cannot stop server {server}: {source}")]
    Signal { server: i64, source: io::Error },
}

/// Why a leader did not transfer its leadership.
#[derive(Debug, Error)]
pub(super) enum TransferError {
    #[error("server {server} goes on leading: {source}")]
    Refused { server: i64, source: quorate_tokio::TransferError },
    #[error("server {0} cannot be asked for a transfer of leadership")]
    NotHere(i64),
}

impl Ensemble {
    /// None of them running; and what they will report.
    pub(super) fn new(layout: Layout) -> (Self, UnboundedReceiver<Seen>) {
        let (seen, events) = unbounded_channel();
        let ensemble = Self {
            roster: matches!(layout.purpose(), Purpose::Load(_)).then(Roster::default),
            layout,
            begun: Instant::now(),
            running: BTreeMap::new(),
            silent: BTreeMap::new(),
            lives: BTreeMap::new(),
            seen,
        };
        (ensemble, events)
    }

    /// All servers, running or not.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.layout.ids()
    }

    /// The servers that run.
    pub(super) fn running(&self) -> Vec<i64> {
        self.running.keys().copied().collect()
    }

    /// Whether each server is a process of its own.
    pub(super) fn has_processes(&self) -> bool {
        self.layout.placement() == Placement::Processes
    }

    /// How servers speak with one another.
    pub(super) fn links(&self) -> Links {
        self.layout.links()
    }

    /// Where the servers' data are.
    pub(super) fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// The servers that take writes now; none without load.
    pub(super) fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Where clients of each server connect.
    pub(super) fn client_addresses(&self) -> Vec<SocketAddr> {
        self.ids().into_iter().filter_map(|id| self.layout.client_address(id)).collect()
    }

    /// The data directory of each server.
    pub(super) fn data_dirs(&self) -> Vec<(i64, PathBuf)> {
        self.ids().into_iter().map(|id| (id, self.layout.data_dir(id))).collect()
    }

    /// When the demo began.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether this is news of a server that runs, in its present life.
    pub(super) fn is_current(&self, seen: &Seen) -> bool {
        self.running.contains_key(&seen.server) && self.lives.get(&seen.server) == Some(&seen.life)
    }

    /// Starts servers, all at the same time.
    pub(super) async fn start(&mut self, ids: &[i64]) -> Result<(), StartError> {
        let mut starts = JoinSet::new();
        for &id in ids {
            let life = self.lives.entry(id).or_default();
            *life += 1;
            let life = *life;
            match self.layout.placement() {
                Placement::Embedded => drop(starts.spawn(self.embedded(id, life))),
                Placement::Processes => {
                    let process = self
                        .process(id, life)
                        .map_err(|source| StartError::Process { server: id, source })?;
                    self.running.insert(id, process);
                }
            }
        }
        while let Some(started) = starts.join_next().await {
            let (id, running) = started??;
            self.running.insert(id, running);
        }
        Ok(())
    }

    /// Starts a server in this process.
    fn embedded(
        &self,
        id: i64,
        life: u32,
    ) -> impl Future<Output = Result<(i64, Running), StartError>> + Send + use<> {
        let (config, begun) = (self.layout.config(id), self.begun);
        let (seen, roster) = (self.seen.clone(), self.roster.clone());
        let cannot = move |source| StartError::Server { server: id, source };
        let for_clients = self.layout.purpose() == Purpose::Sessions;
        async move {
            // Changes: before anything else runs on this thread, so that none is missed.
            let (running, changes, gate) = match roster {
                None if for_clients => {
                    let server = start_with(config, ZooKeeper::with(Options::default())).await;
                    let server = server.map_err(cannot)?;
                    let changes = server.changes();
                    (Running::Serving(server), changes, None)
                }
                None => {
                    let server = quorate_tokio::start(config).await.map_err(cannot)?;
                    let changes = server.changes();
                    (Running::Embedded(server), changes, None)
                }
                Some(roster) => {
                    let server = start_with(config, ledger::application()).await;
                    let server = server.map_err(cannot)?;
                    let connection = Connection::Embedded(server.clone());
                    let gate = Gate { id, life, connection, roster };
                    let changes = server.changes();
                    (Running::Writable(server), changes, Some(gate))
                }
            };
            tokio::spawn(forward(changes, id, life, begun, seen, gate));
            Ok((id, running))
        }
    }

    /// Starts a server as a process of its own.
    fn process(&self, id: i64, life: u32) -> io::Result<Running> {
        let mut child = self.layout.command(id)?.spawn()?;
        let gate = match (&self.roster, child.stdin.take_if(|_| self.roster.is_some())) {
            (Some(roster), Some(stdin)) => {
                let (pipe, roster) = (Pipe::new(stdin), roster.clone());
                let connection = Connection::Process(Arc::clone(&pipe));
                Some((Gate { id, life, connection, roster }, pipe))
            }
            _ => None,
        };
        let pipe = gate.as_ref().map(|(_, pipe)| Arc::clone(pipe));
        if let Some(stdout) = child.stdout.take() {
            let log = self.layout.log_file(id);
            tokio::spawn(read(stdout, id, life, log, self.seen.clone(), gate));
        }
        Ok(Running::Process(Box::new(child), pipe))
    }

    /// Ends a server abruptly; returns when it may be started again.
    pub(super) async fn kill(&mut self, id: i64) -> Result<(), KillError> {
        match self.running.remove(&id) {
            Some(Running::Embedded(server)) => server.kill().await,
            Some(Running::Serving(server)) => server.kill().await,
            Some(Running::Writable(server)) => {
                self.leave(id);
                server.kill().await;
            }
            Some(Running::Process(mut child, _)) => {
                self.leave(id);
                child.kill().await.map_err(|source| KillError { server: id, source })?;
            }
            None => {}
        }
        Ok(())
    }

    /// Stops the process of a server with SIGSTOP: it says nothing more, and its connections stay open.
    pub(super) fn silence(&mut self, id: i64) -> Result<(), SilenceError> {
        let Some(Running::Process(child, pipe)) = self.running.remove(&id) else {
            return Err(SilenceError::NoProcess(id));
        };
        self.leave(id);
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or(SilenceError::Ended(id))?;
        kill_process(pid, Signal::STOP)
            .map_err(|error| SilenceError::Signal { server: id, source: error.into() })?;
        // A client would wait for its answer until the process is killed; the outcome of what it asked is unknown.
        if let Some(pipe) = pipe {
            pipe.close();
        }
        self.silent.insert(id, child);
        Ok(())
    }

    /// Kills a process that was silenced.
    pub(super) async fn kill_silent(&mut self, id: i64) -> Result<(), KillError> {
        let Some(mut child) = self.silent.remove(&id) else { return Ok(()) };
        child.kill().await.map_err(|source| KillError { server: id, source })
    }

    /// Asks a leader to transfer its leadership.
    pub(super) async fn transfer_leadership(
        &self,
        from: i64,
        to: i64,
    ) -> Result<(), TransferError> {
        match self.running.get(&from) {
            Some(Running::Writable(server)) => {
                let given = server.transfer_leadership(ServerId(to)).await;
                given.map_err(|source| TransferError::Refused { server: from, source }).map(drop)
            }
            Some(Running::Serving(server)) => {
                let given = server.transfer_leadership(ServerId(to)).await;
                given.map_err(|source| TransferError::Refused { server: from, source }).map(drop)
            }
            Some(Running::Embedded(_) | Running::Process(..)) | None => {
                Err(TransferError::NotHere(from))
            }
        }
    }

    /// Takes a server that is about to die out of the clients' roster.
    fn leave(&self, id: i64) {
        if let (Some(roster), Some(life)) = (&self.roster, self.lives.get(&id)) {
            roster.leave(id, *life);
        }
    }

    /// Ends all that run, in order if they let themselves.
    pub(super) async fn end(&mut self) {
        for id in self.silent.keys().copied().collect::<Vec<_>>() {
            drop(self.kill_silent(id).await);
        }
        let mut ends = JoinSet::new();
        for (_, running) in std::mem::take(&mut self.running) {
            ends.spawn(running.end());
        }
        while ends.join_next().await.is_some() {}
    }
}

impl Running {
    async fn end(self) {
        match self {
            Self::Embedded(server) => drop(server.shutdown().await),
            Self::Writable(server) => drop(server.shutdown().await),
            Self::Serving(server) => drop(server.shutdown().await),
            Self::Process(mut child, pipe) => {
                // The end of its stdin ends it.
                drop(child.stdin.take());
                if let Some(pipe) = pipe {
                    pipe.close();
                }
                if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
                    drop(child.kill().await);
                }
            }
        }
    }
}

/// How long a process may take to end in order.
const PATIENCE: Duration = Duration::from_secs(3);
