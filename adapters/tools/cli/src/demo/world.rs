//! The servers of the demo: in this process, or each in a process of its own.
//!
//! Either way a server lives on loopback ports and a data directory that stay its own over all its
//! lives, and its changes come through one channel. Lives are numbered, so that what a dead server
//! said last is never taken for something that its successor said.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_tokio::core::config::{Config, Election};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{Member, Membership, Role, ServerAddress};
use quorate_tokio::{Server, ServerConfig, start_with};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::ledger;
use super::news::{Gate, Seen, forward, read};
use super::port::{Pipe, Port, Roster};
use crate::runtime::Kind;

/// How the servers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All in this process.
    Embedded,
    /// Each in a process of its own.
    Processes,
}
/// When servers notice what, and how they then elect.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) tick: Duration,
    pub(super) election: Election,
}

/// All servers, running or not.
#[derive(Debug)]
pub(super) struct World {
    way: Way,
    membership: Membership,
    times: Times,
    /// Who may be written to, if anybody writes.
    roster: Option<Roster>,
    /// What runs those that can be written to, if they are processes.
    runtime: Kind,
    begun: Instant,
    running: BTreeMap<i64, Running>,
    /// Processes that were stopped where they stood.
    silent: BTreeMap<i64, Box<Child>>,
    lives: BTreeMap<i64, u32>,
    seen: UnboundedSender<Seen>,
    dir: TempDir,
}

#[derive(Debug)]
enum Running {
    Embedded(Server),
    /// Under load.
    Writable(ledger::Server),
    Process(Box<Child>, Option<Arc<Pipe>>),
}

impl World {
    /// Servers 1 to `servers` with ports and directories, none of them running; perhaps such that
    /// can be written to, on this runtime if they are processes.
    pub(super) fn new(
        way: Way,
        servers: u8,
        times: Times,
        writable: Option<Kind>,
    ) -> Result<(Self, UnboundedReceiver<Seen>), String> {
        let cannot = |what: &str, error: &io::Error| format!("cannot {what}: {error}");
        let dir = tempfile::Builder::new()
            .prefix("quorate-demo-")
            .tempdir()
            .map_err(|error| cannot("make a temporary directory", &error))?;
        let ports = free_ports(2 * usize::from(servers))
            .ok_or("cannot find enough free ports on 127.0.0.1")?;
        let members = ports.chunks_exact(2).zip(1..).map(|(ports, id)| {
            let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
            Member::new(ServerId(id), Role::Participant, address)
        });
        let membership =
            Membership::build(members, [], [], 0).map_err(|error| error.to_string())?;
        let (seen, events) = unbounded_channel();
        let world = Self {
            way,
            membership,
            times,
            roster: writable.map(|_| Roster::default()),
            runtime: writable.unwrap_or(Kind::Tokio),
            begun: Instant::now(),
            running: BTreeMap::new(),
            silent: BTreeMap::new(),
            lives: BTreeMap::new(),
            seen,
            dir,
        };
        for id in world.ids() {
            world.prepare(id).map_err(|error| cannot("prepare a data directory", &error))?;
        }
        Ok((world, events))
    }

    /// Everybody, running or not.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.membership.members().iter().map(|member| member.id.0).collect()
    }

    /// Who runs.
    pub(super) fn running(&self) -> Vec<i64> {
        self.running.keys().copied().collect()
    }

    /// Whether each server is a process of its own.
    pub(super) fn has_processes(&self) -> bool {
        self.way == Way::Processes
    }

    /// Where the servers' data are.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Who serves and can be written to; none without load.
    pub(super) fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Everybody's data directory.
    pub(super) fn data_dirs(&self) -> Vec<(i64, PathBuf)> {
        self.ids().into_iter().map(|id| (id, self.data_dir(id))).collect()
    }

    /// When all began.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether this is news of a server that runs, in its present life.
    pub(super) fn is_current(&self, seen: &Seen) -> bool {
        self.running.contains_key(&seen.server) && self.lives.get(&seen.server) == Some(&seen.life)
    }

    /// Starts servers, all at the same time.
    pub(super) async fn start(&mut self, ids: &[i64]) -> Result<(), String> {
        let mut starts = JoinSet::new();
        for &id in ids {
            let life = self.lives.entry(id).or_default();
            *life += 1;
            let life = *life;
            match self.way {
                Way::Embedded => {
                    let (config, begun) = (self.config(id), self.begun);
                    let (seen, roster) = (self.seen.clone(), self.roster.clone());
                    let cannot = move |error| format!("server {id} does not start: {error}");
                    starts.spawn(async move {
                        // Changes: before anything else runs on this thread, so that none is missed.
                        let (running, changes, gate) = match roster {
                            None => {
                                let server = quorate_tokio::start(config).await.map_err(cannot)?;
                                let changes = server.changes();
                                (Running::Embedded(server), changes, None)
                            }
                            Some(roster) => {
                                let server = start_with(config, ledger::application()).await;
                                let server = server.map_err(cannot)?;
                                let port = Port::Embedded(server.clone());
                                let gate = Gate { id, life, port, roster };
                                let changes = server.changes();
                                (Running::Writable(server), changes, Some(gate))
                            }
                        };
                        tokio::spawn(forward(changes, id, life, begun, seen, gate));
                        Ok::<_, String>((id, running))
                    });
                }
                Way::Processes => {
                    let mut child = self
                        .spawn(id)
                        .map_err(|error| format!("server {id} does not start: {error}"))?;
                    let gate = match (&self.roster, child.stdin.take_if(|_| self.roster.is_some()))
                    {
                        (Some(roster), Some(stdin)) => {
                            let (pipe, roster) = (Pipe::new(stdin), roster.clone());
                            let port = Port::Process(Arc::clone(&pipe));
                            Some((Gate { id, life, port, roster }, pipe))
                        }
                        _ => None,
                    };
                    let pipe = gate.as_ref().map(|(_, pipe)| Arc::clone(pipe));
                    if let Some(stdout) = child.stdout.take() {
                        let log = self.log_file(id);
                        tokio::spawn(read(stdout, id, life, log, self.seen.clone(), gate));
                    }
                    self.running.insert(id, Running::Process(Box::new(child), pipe));
                }
            }
        }
        while let Some(started) = starts.join_next().await {
            let (id, running) = started.map_err(|error| error.to_string())??;
            self.running.insert(id, running);
        }
        Ok(())
    }

    /// Ends a server abruptly; returns when it may be started again.
    pub(super) async fn kill(&mut self, id: i64) -> Result<(), String> {
        match self.running.remove(&id) {
            Some(Running::Embedded(server)) => server.kill().await,
            Some(Running::Writable(server)) => {
                self.leave(id);
                server.kill().await;
            }
            Some(Running::Process(mut child, _)) => {
                self.leave(id);
                child.kill().await.map_err(|error| format!("cannot kill server {id}: {error}"))?;
            }
            None => {}
        }
        Ok(())
    }

    /// Stops the process of a server where it stands: it says nothing more, and its connections stay open.
    #[cfg(unix)]
    pub(super) fn silence(&mut self, id: i64) -> Result<(), String> {
        use rustix::process::{Pid, Signal, kill_process};
        let Some(Running::Process(child, pipe)) = self.running.remove(&id) else {
            return Err(format!("server {id} is no process"));
        };
        self.leave(id);
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or_else(|| format!("server {id} has ended"))?;
        kill_process(pid, Signal::STOP)
            .map_err(|error| format!("cannot stop server {id}: {error}"))?;
        // Whoever waits for it would wait until it is buried; what it was asked stays in doubt.
        if let Some(pipe) = pipe {
            pipe.close();
        }
        self.silent.insert(id, child);
        Ok(())
    }

    /// There are no such signals here.
    #[cfg(not(unix))]
    pub(super) fn silence(&mut self, id: i64) -> Result<(), String> {
        Err(format!("server {id} cannot be stopped on this system"))
    }

    /// Ends a process that was stopped, for good.
    pub(super) async fn bury(&mut self, id: i64) -> Result<(), String> {
        let Some(mut child) = self.silent.remove(&id) else { return Ok(()) };
        child.kill().await.map_err(|error| format!("cannot kill server {id}: {error}"))
    }

    /// Lets a server hand the seat of the leader over.
    pub(super) async fn hand_over(&self, from: i64, to: i64) -> Result<(), String> {
        match self.running.get(&from) {
            Some(Running::Writable(server)) => {
                let given = server.hand_over(ServerId(to)).await;
                given.map_err(|error| format!("server {from} keeps its seat: {error}"))
            }
            Some(Running::Embedded(_) | Running::Process(..)) | None => {
                Err(format!("server {from} cannot be asked to hand over"))
            }
        }
    }

    /// Nobody needs to try a server that is about to die.
    fn leave(&self, id: i64) {
        if let (Some(roster), Some(life)) = (&self.roster, self.lives.get(&id)) {
            roster.leave(id, *life);
        }
    }

    /// Ends all that run, in order if they let themselves.
    pub(super) async fn end(&mut self) {
        for id in self.silent.keys().copied().collect::<Vec<_>>() {
            drop(self.bury(id).await);
        }
        let mut ends = JoinSet::new();
        for (_, running) in std::mem::take(&mut self.running) {
            ends.spawn(async move {
                match running {
                    Running::Embedded(server) => drop(server.shutdown().await),
                    Running::Writable(server) => drop(server.shutdown().await),
                    Running::Process(mut child, pipe) => {
                        // The end of its stdin ends it.
                        drop(child.stdin.take());
                        if let Some(pipe) = pipe {
                            pipe.close();
                        }
                        let patience = Duration::from_secs(3);
                        if tokio::time::timeout(patience, child.wait()).await.is_err() {
                            drop(child.kill().await);
                        }
                    }
                }
            });
        }
        while ends.join_next().await.is_some() {}
    }

    fn data_dir(&self, id: i64) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    fn log_file(&self, id: i64) -> PathBuf {
        self.dir.path().join(format!("{id}.log"))
    }

    fn cfg_file(&self, id: i64) -> PathBuf {
        self.dir.path().join(format!("{id}.cfg"))
    }

    /// What a server finds in its directory.
    fn prepare(&self, id: i64) -> io::Result<()> {
        fs::create_dir(self.data_dir(id))?;
        if self.way == Way::Embedded {
            return Ok(());
        }
        fs::write(self.data_dir(id).join("myid"), format!("{id}\n"))?;
        let mut cfg = format!(
            "tickTime={}\ninitLimit={INIT_LIMIT}\nsyncLimit={SYNC_LIMIT}\ndataDir={}\n",
            self.times.tick.as_millis(),
            self.data_dir(id).display(),
        );
        if let Election::Generation(rules) = &self.times.election {
            let (min, max) = (rules.timeout_min.as_millis(), rules.timeout_max.as_millis());
            let _ = write!(
                cfg,
                "quorate.election=generation\nquorate.election.minTimeout={min}\n\
                 quorate.election.maxTimeout={max}\n"
            );
        }
        for member in self.membership.members() {
            // A string takes everything.
            let _ = writeln!(cfg, "server.{}={member}", member.id);
        }
        fs::write(self.cfg_file(id), cfg)
    }

    fn config(&self, id: i64) -> ServerConfig {
        let mut core = Config::new(ServerId(id), self.membership.clone());
        core.timing.tick = self.times.tick;
        core.election = self.times.election.clone();
        core.timing.init_limit = INIT_LIMIT;
        core.timing.sync_limit = SYNC_LIMIT;
        let mut config = ServerConfig::new(core, self.data_dir(id));
        config.changes_kept = 4096;
        if self.roster.is_some() {
            ledger::keep_everything(&mut config);
        }
        config
    }

    fn spawn(&self, id: i64) -> io::Result<Child> {
        let log = fs::File::options().create(true).append(true).open(self.log_file(id))?;
        let mut command = Command::new(std::env::current_exe()?);
        match self.roster {
            Some(_) => command
                .arg("demo-server")
                .arg(self.cfg_file(id))
                .args(["--runtime", self.runtime.name()]),
            None => command.arg("serve").arg(self.cfg_file(id)).args([
                "--json",
                "--until-stdin-ends",
                "--log",
                "warn",
            ]),
        };
        if let Some(variable) = self.runtime.threads() {
            if std::env::var_os(variable).is_none() {
                command.env(variable, "1");
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true).spawn()
    }
}

/// Ports on loopback that nobody uses, and that the system gives to nobody who connects: those are
/// above them, and one of them could be gone when a killed server wants its port back.
fn free_ports(count: usize) -> Option<Vec<u16>> {
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
    let span = PORTS.end - PORTS.start;
    let offset = (nanos / 1000).wrapping_add(std::process::id()) % u32::from(span);
    let mut held = Vec::new();
    for step in 0..span {
        let offset = (u32::from(step) + offset) % u32::from(span);
        let port = PORTS.start + u16::try_from(offset).ok()?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
        if held.len() == count {
            return Some(held.into_iter().map(|(port, _)| port).collect());
        }
    }
    None
}

const PORTS: std::ops::Range<u16> = 12_000..32_000;
const INIT_LIMIT: u32 = 10;
const SYNC_LIMIT: u32 = 5;
