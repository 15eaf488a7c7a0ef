//! The command as a child process, and ensembles of it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub mod secured;

pub const QUORATE: &str = env!("CARGO_BIN_EXE_quorate");
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the command to its end.
pub fn quorate<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(QUORATE)
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Every line as JSON.
pub fn lines(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Asks until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a tool says to a text on its input; none where it is not there and may be missing.
pub fn says(tool: impl AsRef<std::ffi::OsStr>, arguments: &[&str], text: &str) -> Option<Output> {
    let name = Path::new(tool.as_ref()).display().to_string();
    let tool = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut tool = match tool {
        Ok(tool) => tool,
        Err(error) => {
            let required = std::env::var("QUORATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(!required, "{name}: {error}");
            eprintln!("skipped: {name}: {error}");
            return None;
        }
    };
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Some(tool.wait_with_output().unwrap())
}

/// A port that no other server of tests has, whatever process it is of.
pub fn free_port() -> u16 {
    quorate_driver::testing::free_ports(1)[0]
}

/// A child process that does not survive its test.
#[derive(Debug)]
pub struct Process {
    pub child: Child,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self { child: command.stdin(Stdio::null()).spawn().unwrap() }
    }

    /// SIGTERM.
    pub fn tell_to_end(&self) {
        self.signal("TERM");
    }

    /// A signal, by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(told.unwrap().success());
    }

    /// SIGTERM, and the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.tell_to_end();
        self.end()
    }

    /// Waits for its exit code.
    pub fn end(&mut self) -> Option<i32> {
        let status = until("the end after SIGTERM", || self.child.try_wait().unwrap());
        status.code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where Debian's package has its jars.
const JARS: &str = "/usr/share/java";
/// netty-all is only a list of the others there.
const NEEDED: [&str; 14] = [
    "zookeeper.jar",
    "zookeeper-jute.jar",
    "slf4j-api.jar",
    "slf4j-simple.jar",
    "netty-buffer.jar",
    "netty-codec.jar",
    "netty-common.jar",
    "netty-handler.jar",
    "netty-resolver.jar",
    "netty-transport.jar",
    "netty-transport-native-epoll.jar",
    "netty-transport-native-unix-common.jar",
    "metrics-core.jar",
    "snappy-java.jar",
];

/// Where the jars of another version are than Debian's.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("QUORATE_ZOOKEEPER").map(PathBuf::from)
}

/// What a Java server's class path names: Debian's packages, or all that is in [`folder`].
pub fn jars() -> Vec<String> {
    match folder() {
        Some(folder) => jars_in(&folder),
        None => NEEDED.iter().map(|jar| format!("{JARS}/{jar}")).collect(),
    }
}

/// All jars in a folder.
fn jars_in(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let path = |file: std::io::Result<fs::DirEntry>| file.unwrap().path().display().to_string();
    files.map(path).filter(|path| path.ends_with(".jar")).collect()
}

/// As ZooKeeper's own settings of log4j and logback have it.
const DATES: &str = "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS";

/// Whether there is a Java ZooKeeper on this machine. Says so if not, and fails if there must be one.
pub fn java_is_here() -> bool {
    let has_jars = jars().iter().all(|jar| Path::new(jar).exists());
    if has_jars && Command::new("java").arg("-version").output().is_ok() {
        return true;
    }
    let required = std::env::var("QUORATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "Java, or ZooKeeper's jars in {JARS}, are missing");
    eprintln!("skipped: Java, or ZooKeeper's jars in {JARS}, are missing");
    false
}

/// Configuration files for servers 1, 2, …
#[derive(Debug)]
pub struct Ensemble {
    pub dir: TempDir,
    pub quorum: Vec<u16>,
    pub election: Vec<u16>,
    pub client: Vec<u16>,
}

impl Ensemble {
    /// `roles` in the order of ids; `extra` for all files.
    pub fn new(roles: &[&str], extra: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (mut members, mut quorum) = (String::new(), Vec::new());
        let (mut election, mut client) = (Vec::new(), Vec::new());
        for (role, id) in roles.iter().zip(1..) {
            let (learners, own) = (free_port(), free_port());
            members += &format!("server.{id}=127.0.0.1:{learners}:{own}:{role}\n");
            quorum.push(learners);
            election.push(own);
            client.push(free_port());
        }
        for (port, id) in client.iter().zip(1..) {
            let data = dir.path().join(id.to_string());
            fs::create_dir(&data).unwrap();
            fs::write(data.join("myid"), format!("{id}\n")).unwrap();
            let cfg = format!(
                "tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir={}\nclientPort={port}\n\
                 clientPortAddress=127.0.0.1\n{extra}\n{members}",
                data.display()
            );
            fs::write(dir.path().join(format!("{id}.cfg")), cfg).unwrap();
        }
        Self { dir, quorum, election, client }
    }

    pub fn cfg(&self, id: usize) -> PathBuf {
        self.dir.path().join(format!("{id}.cfg"))
    }

    pub fn log(&self, id: usize) -> PathBuf {
        self.dir.path().join(format!("{id}.log"))
    }

    pub fn serve(&self, id: usize) -> Process {
        let mut command = Command::new(QUORATE);
        command.env_remove("RUST_LOG").arg("serve").arg(self.cfg(id));
        self.start(id, command)
    }

    /// A Java server.
    pub fn java(&self, id: usize) -> Process {
        self.start(id, self.java_command(id))
    }

    /// One of the version whose jars are in that folder.
    pub fn java_of(&self, id: usize, folder: &Path) -> Process {
        self.start(id, self.java_command_of(id, &jars_in(folder)))
    }

    fn start(&self, id: usize, mut command: Command) -> Process {
        let log = fs::File::create(self.log(id)).unwrap();
        // Some versions of ZooKeeper log to their standard output, and all JVMs tell their threads there.
        let said = log.try_clone().unwrap();
        Process::start(command.stdout(said).stderr(log))
    }

    /// What starts a Java server. Its configuration is ours, but it must not serve on an admin port.
    pub fn java_command(&self, id: usize) -> Command {
        self.java_command_of(id, &jars())
    }

    fn java_command_of(&self, id: usize, jars: &[String]) -> Command {
        let heap = std::env::var("QUORATE_JAVA_HEAP").unwrap_or_else(|_| "64m".to_owned());
        let mut command = Command::new("java");
        command
            .args([
                &format!("-Xmx{heap}"),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xshare:auto",
            ])
            .args(["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=*"])
            .args(["-Dorg.slf4j.simpleLogger.showDateTime=true", DATES])
            // Of these flags of its JVM it reads none in its configuration.
            .args(["-Dznode.container.checkIntervalMs=500", "-cp", &jars.join(":")])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(self.cfg(id));
        command
    }

    pub fn serve_all(&self) -> Vec<Process> {
        (1..=self.client.len()).map(|id| self.serve(id)).collect()
    }

    /// What the server says to a four-letter word; none if its port is not open.
    pub fn try_ask(&self, id: usize, word: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.client[id - 1])).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(word.as_bytes()).unwrap();
        let mut answer = String::new();
        // A Java server that has just opened its port may let the first one wait for ever.
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    pub fn ask(&self, id: usize, word: &str) -> String {
        until("the client port", || self.try_ask(id, word))
    }

    /// Waits until all serve; the leader's id.
    pub fn led(&self) -> usize {
        until("a leader whom all follow", || {
            let modes: Vec<_> = (1..=self.client.len())
                .map(|id| self.try_ask(id, "srvr").filter(|text| text.contains("Mode: ")))
                .collect::<Option<_>>()?;
            let leads = |text: &String| {
                ["leader", "standalone"]
                    .iter()
                    .any(|mode| text.contains(&format!("Mode: {mode}\n")))
            };
            let leader = modes.iter().position(leads)?;
            Some(leader + 1)
        })
    }

    pub fn election_ports(&self) -> Vec<String> {
        self.election.iter().map(|port| format!("127.0.0.1:{port}")).collect()
    }
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A client with a session that may be silent for so long; none if it is closed before.
pub fn client_of(ensemble: &Ensemble, id: usize, timeout_ms: i32) -> Option<TcpStream> {
    let mut client = TcpStream::connect(("127.0.0.1", ensemble.client[id - 1])).unwrap();
    let mut connect = vec![0; 49];
    connect[3] = 45;
    connect[16..20].copy_from_slice(&timeout_ms.to_be_bytes());
    client.write_all(&connect).ok()?;
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.read_exact(&mut [0; 41]).ok()?;
    Some(client)
}

/// Whether the server has closed the connection.
pub fn is_closed(client: &mut TcpStream) -> bool {
    matches!(client.read(&mut [0; 1]), Ok(0) | Err(_))
}
