//! ZooKeeper's client for Java judges, with recipes of Curator, and its command line.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::{folder, jars};
use crate::ensemble::Servers;
use crate::peer::{Judge, available, beside, run};

/// Where Debian's packages put them; each names in its manifest what it needs besides.
const JARS: [&str; 3] = [
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/zookeeper.jar",
    "/usr/share/java/slf4j-simple.jar",
];
const KILLS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(90);

/// ZooKeeper and Curator.
fn class_path() -> Vec<String> {
    folder().map_or_else(|| JARS.map(str::to_owned).to_vec(), |_| jars())
}

/// Whether it is. Says so if not, and fails if it must be.
pub(crate) fn curator_is_here() -> bool {
    let path = class_path();
    let mut files: Vec<_> = path.iter().map(String::as_str).collect();
    files.push("/usr/bin/javac");
    available(&files, "Debian: zookeeper, libcurator-recipes-java, default-jdk-headless")
}

/// Java with ZooKeeper and Curator in it, and what makes a small one start fast.
fn java(classes: Option<&Path>) -> Command {
    let mut java = Command::new("java");
    java.args(["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
    // It reads the names of all that it wrote at once, which may be more than a client takes unless it is told.
    java.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Djute.maxbuffer=16777216", "-cp"]);
    let classes = classes.map(|dir| dir.display().to_string());
    java.arg(classes.into_iter().chain(class_path()).collect::<Vec<_>>().join(":"));
    java
}

#[test]
fn recipes_of_curator_go_on_through_leaders_killed_and_lose_no_session_and_no_write() {
    if !curator_is_here() {
        return;
    }
    let mut servers = Servers::start();
    let begun = Instant::now();
    let mut curator = Curator::start(&servers.hosts());
    for round in 1..=KILLS {
        curator.arm(round);
        let leader = servers.leader();
        servers.kill(leader);
        curator.hold(round);
        servers.restart(leader);
        println!("without server {leader}: all held after {:.1?}", begun.elapsed());
    }
    curator.end();
}

/// Recipes of Curator that stand at servers, see `Judge.java`.
#[derive(Debug)]
pub(crate) struct Curator {
    judge: Judge,
    _classes: TempDir,
}

impl Curator {
    /// Compiles it, starts it, and waits until all recipes stand. `hosts`: with commas.
    pub(crate) fn start(hosts: &str) -> Self {
        let classes = tempfile::tempdir().unwrap();
        let mut compiler = Command::new("javac");
        compiler
            .args(["-cp", &class_path().join(":"), "-d"])
            .arg(classes.path())
            .arg(beside("Judge.java"));
        run(&mut compiler);
        let judge = Judge::start(java(Some(classes.path())).arg("Judge").arg(hosts));
        judge.says("ready", PATIENCE);
        Self { judge, _classes: classes }
    }

    /// Sets a watch for this round.
    pub(crate) fn arm(&mut self, round: usize) {
        self.judge.tell(&format!("arm {round}"));
        self.judge.says(&format!("armed {round}"), PATIENCE);
    }

    /// Sees that everything goes on, and that the watch has held.
    pub(crate) fn hold(&mut self, round: usize) {
        self.judge.tell(&format!("hold {round}"));
        self.judge.says(&format!("held {round}"), PATIENCE);
    }

    /// Counts what was written, and ends.
    pub(crate) fn end(mut self) {
        self.judge.tell("end");
        self.judge.says("done", PATIENCE);
    }
}

/// The command line with one command, or with lines as one types them; what it prints.
fn zk_cli(host: &str, command: &[&str], typed: &str) -> String {
    zk_cli_as(None, host, command, typed)
}

/// The same, logged in as a JAAS file says.
pub(crate) fn zk_cli_as(jaas: Option<&Path>, host: &str, command: &[&str], typed: &str) -> String {
    let mut cli = java(None);
    let flag = |file: &Path| format!("-Djava.security.auth.login.config={}", file.display());
    cli.args(jaas.map(flag));
    // Java's client has no MD5 otherwise since 3.9 (ZOOKEEPER-4393).
    cli.args(jaas.map(|_| "-Dzookeeper.fips-mode=false"));
    cli.args(["org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", host]);
    cli.args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut cli = cli.spawn().unwrap();
    // One that was given its command may have ended by now.
    drop(cli.stdin.take().unwrap().write_all(typed.as_bytes()));
    let Output { stdout, stderr, .. } = cli.wait_with_output().unwrap();
    (String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr)).into_owned()
}

#[test]
fn each_command_of_zookeepers_command_line_says_what_it_says_at_java_servers() {
    if !curator_is_here() {
        return;
    }
    let servers = Servers::start();
    let owned = "addauth digest bob:secret\ncreate /own x auth::cdrwa\ngetAcl /own\nquit\n";
    let said = zk_cli(&servers.host(1), &[], owned);
    let expected = "'digest,'bob:fyVmFCwVbTJYrznoSu1koqYEYF0=\n: cdrwa\n";
    assert!(said.contains(expected), "{said}");

    let table: [(&str, &[&str]); 15] = [
        ("create /node first", &["Created /node"]),
        ("create -s /node/n- x", &["Created /node/n-0000000000"]),
        ("create /node", &["Node already exists: /node"]),
        ("ls /node", &["[n-0000000000]"]),
        ("set /node second", &[]),
        ("get /node", &["second"]),
        ("stat /node", &["dataVersion = 1\n", "cversion = 1\n", "dataLength = 6\n"]),
        ("getAcl /node", &["'world,'anyone\n: cdrwa"]),
        ("addauth digest bob:secret", &[]),
        ("sync /", &["Sync is OK"]),
        ("get /own", &["Insufficient permission : /own"]),
        ("delete /node", &["Node not empty: /node"]),
        ("delete /node/n-0000000000", &[]),
        ("delete /node", &[]),
        ("ls /", &["[own, zookeeper]"]),
    ];
    for (index, (command, expected)) in table.into_iter().enumerate() {
        // Each in a session of its own at another server; a server is behind for less time than Java needs to start.
        let words: Vec<_> = command.split(' ').collect();
        let said = zk_cli(&servers.host(index % 3 + 1), &words, "");
        for text in expected {
            assert!(said.contains(text), "{command}: {said}");
        }
        assert!(!said.contains("Exception"), "{command}: {said}");
    }
}
