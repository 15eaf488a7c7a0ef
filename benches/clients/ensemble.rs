//! Three servers in processes of their own, on one core.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_rustls::rustls::ClientConfig;
use quorate_core::id::ServerId;
use quorate_driver::testing::{free_ports, member_stores};

use crate::Outcome;
use crate::client::Client;
use crate::load::NODE;

/// The kind of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Quorate,
    Java,
    /// The first is ours, and another leads.
    UnderJava,
    /// The last is ours, and leads.
    OverJava,
    /// Ours, with TLS between them.
    Tls,
}

impl Kind {
    /// Whether a server is ours; they are counted from 0.
    const fn is_ours(self, index: usize) -> bool {
        match self {
            Self::Quorate | Self::Tls => true,
            Self::Java => false,
            Self::UnderJava => index == 0,
            Self::OverJava => index == 2,
        }
    }
}

/// Three servers.
pub(crate) struct Ensemble {
    kind: Kind,
    servers: Vec<Child>,
    pub(crate) ports: Vec<u16>,
    /// Their HTTP ports; none unless they are watched.
    pub(crate) http: Vec<u16>,
    /// The ports on which they speak with each other.
    pub(crate) among: Vec<u16>,
    /// Who dials those with TLS and without a certificate.
    pub(crate) stranger: Arc<ClientConfig>,
    dir: tempfile::TempDir,
}

impl Ensemble {
    /// They serve, and have the node.
    pub(crate) fn start(kind: Kind) -> Outcome<Self> {
        Self::with(kind, false)
    }

    /// The same, which tell how they are by HTTP.
    pub(crate) fn watched(kind: Kind) -> Outcome<Self> {
        Self::with(kind, true)
    }

    fn with(kind: Kind, watched: bool) -> Outcome<Self> {
        // The disk that this tree is on, not whatever is behind /tmp.
        let dir = tempfile::tempdir_in(target())?;
        let stranger = member_stores(dir.path(), (1..=3).map(ServerId));
        let (mut ports, mut http, mut among) = (Vec::new(), Vec::new(), Vec::new());
        let mut free = free_ports(12).into_iter();
        let mut free = || free.next().ok_or("no port is free");
        let mut members = String::new();
        for id in 1..=3 {
            let (quorum, election, client) = (free()?, free()?, free()?);
            ports.push(client);
            among.extend([quorum, election]);
            members += &format!("server.{id}=127.0.0.1:{quorum}:{election};127.0.0.1:{client}\n");
        }
        for id in 1..=3 {
            let data = dir.path().join(id.to_string());
            fs::write(data.join("myid"), id.to_string())?;
            let admin = if watched {
                let port = free()?;
                http.push(port);
                format!("admin.enableServer=true\nadmin.serverPort={port}")
            } else {
                "admin.enableServer=false".to_owned()
            };
            let secured = if kind == Kind::Tls { secured(&data) } else { String::new() };
            let text = format!(
                "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nmaxClientCnxns=0\n\
                 4lw.commands.whitelist=*\n{admin}\n{secured}{members}",
                data.display()
            );
            fs::write(dir.path().join(format!("{id}.cfg")), text)?;
        }
        let mut ensemble = Self { kind, servers: Vec::new(), ports, http, among, stranger, dir };
        ensemble.start_all()?;
        Client::connect(ensemble.ports[0])?.create(NODE, 100)?;
        Ok(ensemble)
    }

    /// Starts those that do not run, and waits until all serve.
    pub(crate) fn start_all(&mut self) -> Outcome<()> {
        for index in 0..3 {
            let runs = self.servers.get_mut(index).map(Child::try_wait).transpose()?;
            match runs {
                None => self.servers.push(self.spawn(index)?),
                Some(Some(_ended)) => self.servers[index] = self.spawn(index)?,
                Some(None) => {}
            }
        }
        (0..3).try_for_each(|index| self.until_serving(index))
    }

    fn until_serving(&mut self, index: usize) -> Outcome<()> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            if ask(self.ports[index], "srvr").is_ok_and(|text| text.contains("Mode: ")) {
                return Ok(());
            }
            if let Some(status) = self.servers[index].try_wait()? {
                let said = fs::read_to_string(self.said(index))?;
                return Err(format!("server {} ended ({status}): {said}", index + 1).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        let said = fs::read_to_string(self.said(index))?;
        Err(format!("server {} does not serve: {said}", index + 1).into())
    }

    /// The file with what a server says.
    fn said(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("{}.log", index + 1))
    }

    fn spawn(&self, index: usize) -> Outcome<Child> {
        let mut command = if self.kind.is_ours(index) {
            let mut command = on_core(SERVERS, &quorate().display().to_string());
            command.arg("serve");
            command
        } else {
            java()
        };
        let file = self.dir.path().join(format!("{}.cfg", index + 1));
        let said = fs::File::create(self.said(index))?;
        Ok(command.arg(&file).stdout(said.try_clone()?).stderr(said).spawn()?)
    }

    /// Kills all of them at once.
    pub(crate) fn kill_all(&mut self) -> Outcome<()> {
        for server in &mut self.servers {
            server.kill()?;
        }
        for server in &mut self.servers {
            server.wait()?;
        }
        Ok(())
    }

    /// Kills the leader.
    pub(crate) fn kill_leader(&mut self) -> Outcome<()> {
        let leader = self.leader()?;
        let server = &mut self.servers[leader];
        server.kill()?;
        server.wait()?;
        Ok(())
    }

    /// The index of the leader.
    fn leader(&self) -> Outcome<usize> {
        let leads = |port: &u16| ask(*port, "srvr").is_ok_and(|told| told.contains("Mode: leader"));
        self.ports.iter().position(leads).ok_or_else(|| "no server leads".into())
    }

    /// Whether a server of ours leads.
    pub(crate) fn is_led_by_ours(&self) -> Outcome<bool> {
        Ok(self.kind.is_ours(self.leader()?))
    }

    /// The processor time of all servers so far.
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        let mut ticks = 0;
        for server in &self.servers {
            let stat = fs::read_to_string(format!("/proc/{}/stat", server.id()))?;
            let behind = stat.rsplit(')').next().unwrap_or_default();
            let times = behind.split_whitespace().skip(11).take(2);
            ticks += times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>();
        }
        // A hundred a second, on every Linux that we know.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// What a server holds in memory, in KiB; Java's when it has collected its garbage.
    pub(crate) fn resident(&self, index: usize) -> Outcome<u64> {
        let id = self.servers[index].id();
        if !self.kind.is_ours(index) {
            for _ in 0..2 {
                Command::new("jcmd").args([&id.to_string(), "GC.run"]).output()?;
            }
        }
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| "no VmRSS".into())
    }

    /// Begins to count how often each server waits for its disk; none where `perf` is not there, or may not.
    pub(crate) fn count_syncs(&self) -> Option<Syncs> {
        let counting = self.servers.iter().map(|server| {
            let mut command = Command::new("perf");
            command.args(["stat", "-x,", "-e", "syscalls:sys_enter_fdatasync"]);
            command.args(["-e", "syscalls:sys_enter_fsync", "-p", &server.id().to_string()]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
        });
        counting.collect::<Result<_, _>>().ok().map(Syncs)
    }
}

/// Those who count.
pub(crate) struct Syncs(Vec<Child>);

impl Syncs {
    /// How often each server has waited for its disk.
    pub(crate) fn end(self) -> Outcome<Vec<u64>> {
        let mut all = Vec::new();
        for child in self.0 {
            Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
            let told = String::from_utf8_lossy(&child.wait_with_output()?.stderr).into_owned();
            let counts =
                told.lines().filter_map(|line| line.split(',').next()?.parse::<u64>().ok());
            all.push(counts.sum());
        }
        Ok(all)
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

/// The lines of a server that speaks TLS with the others; they are on one host, so that a certificate is for an id.
fn secured(stores: &Path) -> String {
    let stores = stores.display();
    format!(
        "sslQuorum=true\nquorate.ssl.identity=id\nssl.quorum.keyStore.location={stores}/own.pem\n\
         ssl.quorum.trustStore.location={stores}/trusted.pem\n"
    )
}

/// What a server answers to a word of four letters.
fn ask(port: u16, word: &str) -> Outcome<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(word.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Where servers run, and where the load: the first and the second of the processors.
pub(crate) const SERVERS: &str = "0";
const LOAD: &str = "1";

/// A program on one processor, where there is `taskset`.
pub(crate) fn on_core(core: &str, program: &str) -> Command {
    if !can_pin() {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]);
    command
}

fn can_pin() -> bool {
    let two = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let quiet = || Command::new("taskset").arg("-V").stdout(Stdio::null()).status();
    (two || PINNED.get().is_some()) && quiet().is_ok()
}

/// This process was pinned, and no longer sees more than one processor.
static PINNED: std::sync::OnceLock<()> = std::sync::OnceLock::new();

/// Keeps this process off the servers' processor.
pub(crate) fn pin() {
    if can_pin() {
        let id = std::process::id().to_string();
        let pinned =
            Command::new("taskset").args(["-cp", LOAD, &id]).stdout(Stdio::null()).status();
        if pinned.is_ok_and(|status| status.success()) {
            let _ = PINNED.set(());
        }
    }
}

fn java() -> Command {
    let jars = ["zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all"];
    let jars = jars.iter().chain(&["metrics-core", "snappy-java"]);
    let jars: Vec<_> = jars.map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
    let mut command = on_core(SERVERS, "java");
    command
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        .args(["-cp", &jars.join(":")])
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
    command
}

/// Where cargo has built this.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// The program that is measured, built as this is.
pub(crate) fn quorate() -> PathBuf {
    target().join("quorate")
}
