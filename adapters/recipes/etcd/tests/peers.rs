//! An etcd server, and etcd's own candidates.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses some of it")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use quorate_recipes::testing::{free_port, standing, until, within};
use tempfile::TempDir;

use crate::{Candidate, Config, Settings};

/// Leases in these tests; etcd grants none that are shorter than some two seconds.
pub const SESSION: Duration = Duration::from_secs(2);

/// Whether the programs are on this machine. Says so if not, and fails if they must be.
pub fn available() -> bool {
    let missing = ["etcd", "etcdctl"].into_iter().find(|program| {
        let mut command = Command::new(program);
        let version = if *program == "etcd" { "--version" } else { "version" };
        command.arg(version).env("ETCDCTL_API", "3");
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    });
    let Some(missing) = missing else { return true };
    let required = std::env::var("QUORATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "{missing} is missing, and QUORATE_REQUIRE_PEERS=1");
    println!("skipped: {missing} is missing (Debian: etcd-server, etcd-client)");
    false
}

/// An etcd server with a directory of its own. Dropping it kills it.
pub struct Server {
    dir: TempDir,
    port: u16,
    peer_port: u16,
    child: Option<Child>,
}

impl Server {
    /// Starts one, and waits until it serves. None if there is no etcd here.
    pub async fn start() -> Option<Self> {
        if !available() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self { dir, port: free_port(), peer_port: free_port(), child: None };
        server.run().await;
        Some(server)
    }

    /// Starts it, again if it ran before, and waits until it serves.
    pub async fn run(&mut self) {
        let log = File::create(self.path("log")).unwrap();
        let (own, peer) = (self.endpoint(), format!("http://127.0.0.1:{}", self.peer_port));
        let mut etcd = Command::new("etcd");
        etcd.arg("--data-dir").arg(self.path("data"));
        etcd.args(["--name", "one", "--initial-cluster", &format!("one={peer}")]);
        etcd.args(["--listen-client-urls", &own, "--advertise-client-urls", &own]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(etcd.spawn().unwrap());
        until("etcd to serve", async || self.ctl(&["get", "x"]).map(drop)).await;
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Stops its threads where they are, with all its connections open; or lets them go on.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn command(&self) -> Command {
        let mut etcdctl = Command::new("etcdctl");
        etcdctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint()]);
        etcdctl
    }

    /// What `etcdctl` says; none if it fails.
    pub fn ctl(&self, arguments: &[&str]) -> Option<String> {
        let mut etcdctl = self.command();
        let output = etcdctl.args(arguments).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn config(&self, prefix: &str, identity: &str) -> Config {
        self.config_with(prefix, settings(identity))
    }

    pub fn config_with(&self, prefix: &str, settings: Settings) -> Config {
        Config::new([self.endpoint()], prefix, settings)
    }

    pub async fn candidate(&self, prefix: &str, identity: &str) -> Candidate {
        Candidate::start(self.config(prefix, identity)).await.unwrap()
    }

    /// How many keys there are below a prefix.
    pub fn count(&self, prefix: &str) -> usize {
        let said = self.ctl(&["get", "--prefix", "--keys-only", prefix]).unwrap();
        said.lines().filter(|line| !line.is_empty()).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Settings with the leases of these tests.
pub fn settings(identity: &str) -> Settings {
    Settings::from(identity).session_timeout(SESSION)
}

/// `etcdctl elect`. Dropping it kills it.
pub struct EtcdCandidate {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl EtcdCandidate {
    pub fn start(server: &Server, prefix: &str, name: &str) -> Self {
        let mut etcdctl = server.command();
        etcdctl.args(["elect", prefix, name]);
        etcdctl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = etcdctl.spawn().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&lines);
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    /// It prints its key when it leads, and nothing before.
    pub fn is_leading(&self) -> bool {
        !self.lines.lock().unwrap().is_empty()
    }

    pub async fn leads(&self) {
        until("etcdctl to lead", async || self.is_leading().then_some(())).await;
    }

    /// Lets it give the leadership up in order.
    pub fn interrupt(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        drop(self.child.wait());
    }
}

impl Drop for EtcdCandidate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
