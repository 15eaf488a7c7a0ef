//! Java ZooKeeper servers as processes of their own: started, asked, frozen, and killed; their clients
//! and their tools.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

pub mod client;
pub mod tools;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::zxid::Zxid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use self::client::Client;

/// Where Debian's packages put them; the first one names in its manifest what it needs besides.
const JARS: [&str; 2] = ["/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"];
/// What ZooKeeper's TLS needs besides, and the manifest does not name.
const NETTY: [&str; 6] = ["buffer", "codec", "common", "handler", "resolver", "transport"];
const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// What is on the class path: Debian's jars, or all of another version in the folder that `QUORATE_ZOOKEEPER` names.
fn jars() -> Vec<String> {
    let Some(folder) = std::env::var_os("QUORATE_ZOOKEEPER").map(PathBuf::from) else {
        let netty = NETTY.iter().map(|part| format!("/usr/share/java/netty-{part}.jar"));
        return JARS.iter().map(|&jar| jar.to_owned()).chain(netty).collect();
    };
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let path = |file: std::io::Result<fs::DirEntry>| file.unwrap().path().display().to_string();
    files.map(path).filter(|path| path.ends_with(".jar")).collect()
}

/// Whether there is a Java ZooKeeper on this machine. Says so if not, and fails if there must be one.
pub fn available() -> bool {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let missing = if let Some(jar) = jars().into_iter().find(|jar| !Path::new(jar).exists()) {
        jar
    } else if !runs("java") {
        "java".to_owned()
    } else {
        return true;
    };
    skipped(&missing, "zookeeper, default-jre-headless")
}

/// Says that a test is skipped since something is missing, and what it comes with; fails if it must be there.
/// False.
pub fn skipped(missing: &str, packages: &str) -> bool {
    for (name, wanted) in [("QUORATE_REQUIRE_PEERS", "1"), ("CI", "true")] {
        let required = std::env::var(name).is_ok_and(|value| value == wanted);
        assert!(!required, "{missing} is missing, and {name}={wanted}");
    }
    println!("skipped: {missing} is missing (Debian: {packages})");
    false
}

/// A Java runtime with ZooKeeper in it, and what makes a small one start fast.
fn command() -> Command {
    let mut java = Command::new("java");
    java.args(["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
    // What newer versions log with says nothing below errors unless it is told to.
    java.arg("-Dorg.apache.logging.log4j.level=INFO").arg("-cp").arg(jars().join(":"));
    java
}

/// A running Java server. Dropping it kills it.
#[derive(Debug)]
pub struct JavaServer {
    pub id: ServerId,
    child: Child,
    client_port: u16,
    log: PathBuf,
}

impl JavaServer {
    /// Writes `zoo.cfg` and `myid` below `dir` and starts the server; the rest is up to it.
    /// `properties` are ZooKeeper's, as `snapCount=100`; `@DIR@` is `dir`. A file `jaas.conf` there says who logs in.
    pub fn start(
        dir: &Path,
        id: ServerId,
        membership: &Membership,
        tick: Duration,
        client_port: u16,
        properties: &[&str],
    ) -> Self {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("myid"), id.to_string()).unwrap();
        let mut cfg = String::new();
        writeln!(cfg, "tickTime={}\ninitLimit=10\nsyncLimit=5", tick.as_millis()).unwrap();
        writeln!(cfg, "dataDir={}", dir.display()).unwrap();
        writeln!(cfg, "clientPort={client_port}\nclientPortAddress=127.0.0.1").unwrap();
        writeln!(cfg, "admin.enableServer=false\n4lw.commands.whitelist=*").unwrap();
        // One server is an ensemble, too.
        writeln!(cfg, "standaloneEnabled=false").unwrap();
        // What is no setting of the file's own becomes one of the system's.
        let here = dir.display().to_string();
        let of_this = |property: &&str| property.replace("@DIR@", &here);
        properties.iter().map(of_this).for_each(|line| writeln!(cfg, "{line}").unwrap());
        let text = std::str::from_utf8(membership.text()).unwrap();
        let servers = text.lines().filter(|line| !line.starts_with("version="));
        servers.for_each(|line| writeln!(cfg, "{line}").unwrap());
        let file = dir.join("zoo.cfg");
        fs::write(&file, cfg).unwrap();

        let log = dir.join("log");
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let mut java = command();
        java.args(["-Dorg.slf4j.simpleLogger.showDateTime=true"]);
        java.args(["-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]);
        let jaas = dir.join("jaas.conf");
        if jaas.exists() {
            java.arg(format!("-Djava.security.auth.login.config={}", jaas.display()));
        }
        java.arg(MAIN).arg(file).stdin(Stdio::null());
        java.stdout(output.try_clone().unwrap()).stderr(output);
        Self { id, child: java.spawn().unwrap(), client_port, log }
    }

    /// What `srvr` says after `Mode:`, once the server serves.
    pub async fn mode(&self) -> Option<String> {
        let said = self.ask("srvr").await?;
        said.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// Opens a session, if the server serves.
    pub async fn client(&self) -> Option<Client> {
        let connecting = Client::connect(self.client_port);
        tokio::time::timeout(Duration::from_secs(5), connecting).await.ok()?.ok()
    }

    /// Where its clients connect.
    pub const fn client_port(&self) -> u16 {
        self.client_port
    }

    /// The last transaction that it has applied, once it serves.
    pub async fn zxid(&self) -> Option<Zxid> {
        let said = self.ask("srvr").await?;
        let zxid = said.lines().find_map(|line| line.strip_prefix("Zxid: 0x"))?;
        i64::from_str_radix(zxid, 16).ok().map(Zxid)
    }

    /// Stops its threads where they are, with all its connections open. Only [`Drop`] ends that.
    pub async fn freeze(&self) {
        let pid = self.child.id().to_string();
        let mut kill = Command::new("kill");
        assert!(kill.args(["-STOP", &pid]).status().unwrap().success());
        let stat = format!("/proc/{pid}/stat");
        // The name of the program, in parentheses, then the state.
        while !fs::read_to_string(&stat).unwrap().contains(") T ") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// How often it has logged this.
    pub fn said(&self, what: &str) -> usize {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.matches(what).count()
    }

    /// The errors that it has logged, but for those of its election links: it replaces one by another
    /// now and then, and takes that for an error.
    pub fn errors(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let errors = log.lines().filter(|line| line.contains(" ERROR "));
        errors.filter(|line| !line.contains("QuorumCnxManager")).map(str::to_owned).collect()
    }

    /// Whether its client port is open: configured, and about to look for a leader.
    pub async fn is_up(&self) -> bool {
        self.ask("ruok").await.is_some()
    }

    /// Asks with one of ZooKeeper's four-letter words.
    pub async fn ask(&self, word: &str) -> Option<String> {
        let asking = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.client_port)).await.ok()?;
            stream.write_all(word.as_bytes()).await.ok()?;
            let mut said = String::new();
            stream.read_to_string(&mut said).await.ok()?;
            Some(said)
        };
        tokio::time::timeout(Duration::from_secs(2), asking).await.ok()?
    }

    /// How long each of its elections took, as it has logged them.
    pub fn elections(&self) -> Vec<Duration> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let took = log.lines().filter_map(|line| line.split_once("LEADER ELECTION TOOK - "));
        let millis = took.filter_map(|(_, took)| took.strip_suffix(" MS")?.parse().ok());
        millis.map(Duration::from_millis).collect()
    }

    /// The end of what it has logged, for the message of a failed test.
    pub fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let noise = |line: &str| line.starts_with("\tat ") || line.contains("Server environment");
        let lines: Vec<_> = log.lines().filter(|line| !noise(line)).collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }
}

impl Drop for JavaServer {
    fn drop(&mut self) {
        // It has ended by itself if this fails.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
