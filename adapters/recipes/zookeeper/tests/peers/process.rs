//! Candidates in processes of their own, ours and those of others, which can be killed.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_zookeeper::{Candidate, Config, Event, Naming, Notice, Settings};

use crate::peers::{Ensemble, Wire, java, until};

/// Whose candidates they are.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Ours, called so.
    Ours(Naming),
    /// Apache's LeaderElectionSupport for Java.
    Support,
    /// Curator's LeaderLatch for Java.
    Latch,
    /// kazoo's Election for Python.
    Kazoo,
}

impl Kind {
    /// How ours are called beside it.
    pub const fn naming(self) -> Naming {
        match self {
            Self::Ours(naming) => naming,
            Self::Support => Naming::Java,
            Self::Latch => Naming::Latch,
            Self::Kazoo => Naming::Kazoo,
        }
    }

    /// What it comes as, and in which package of Debian's.
    const fn comes_as(self) -> (&'static str, &'static str) {
        match self {
            Self::Ours(_) => ("/proc/self/exe", "none: it is this program"),
            Self::Support => {
                ("/usr/share/java/zookeeper-recipes-election.jar", "libzookeeper-java")
            }
            Self::Latch => ("/usr/share/java/curator-recipes.jar", "libcurator-recipes-java"),
            Self::Kazoo => ("/usr/lib/python3/dist-packages/kazoo", "python3-kazoo"),
        }
    }

    /// Whether it is on this machine. Says so if not, and fails if it must be.
    pub fn available(self) -> bool {
        let (path, package) = self.comes_as();
        Path::new(path).exists() || java::skipped(path, package)
    }

    fn command(self) -> Command {
        let resource =
            |name: &str| format!("{}/tests/resources/{name}", env!("CARGO_MANIFEST_DIR"));
        let java = |name| {
            let (jar, _) = self.comes_as();
            let jars = [jar, "/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-nop.jar"];
            let mut java = Command::new("java");
            java.args(["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
            java.arg("-cp").arg(jars.join(":")).arg(resource(name));
            java
        };
        match self {
            Self::Ours(naming) => {
                let mut ours = Command::new(std::env::current_exe().unwrap());
                ours.args(["process::a_candidate_in_a_process_of_its_own", "--exact"]);
                ours.arg("--nocapture").env(NAMING, format!("{naming:?}"));
                ours
            }
            Self::Support => java("Support.java"),
            Self::Latch => java("Latch.java"),
            Self::Kazoo => {
                let mut python = Command::new("/usr/bin/python3");
                python.arg(resource("election.py"));
                python
            }
        }
    }
}

/// The node that a leader has for as long as it leads, next to the root. Whoever finds it taken leads together
/// with another.
pub fn seat(root: &str) -> String {
    format!("{root}-led-by")
}

/// A candidate in a process of its own. Dropping it kills it.
///
/// It says `leads` when it leads, and has the [`seat`] then if it is not ours; and `failed` with a reason. To each
/// line it is told it says `leader` and a name. When there are no more it leaves the seat, and ends in order.
pub struct Process {
    name: String,
    server: u16,
    wire: Wire,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub async fn start(
        kind: Kind,
        ensemble: &Ensemble,
        root: &str,
        name: &str,
        session: Duration,
    ) -> Self {
        let wire = ensemble.wire().await;
        let mut command = kind.command();
        command.arg(format!("127.0.0.1:{}", wire.port)).args([root, name]);
        command.args([&session.as_millis().to_string(), &seat(root)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let output = BufReader::new(child.stdout.take().unwrap());
        let heard = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        let server = ensemble.servers[0].as_ref().unwrap().client_port();
        Self { name: name.to_owned(), server, wire, child, lines }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has said so far, which is of no failure.
    fn said(&self) -> Vec<String> {
        let said = self.lines.lock().unwrap().clone();
        assert!(!said.iter().any(|line| line.starts_with("failed")), "{}: {said:?}", self.name);
        said
    }

    /// How often it has said this.
    pub fn times(&self, word: &str) -> usize {
        self.said().iter().filter(|line| *line == word).count()
    }

    /// Waits until it has said this.
    pub async fn says(&self, word: &str) {
        until(&format!("{} to say {word}", self.name), async || {
            (self.times(word) > 0).then_some(())
        })
        .await;
    }

    /// What it says after this.
    pub async fn tells(&self, what: &str) -> String {
        until(&format!("{} to tell its {what}", self.name), async || {
            let told = |line: &String| Some(line.strip_prefix(what)?.trim().to_owned());
            self.said().iter().find_map(told)
        })
        .await
    }

    /// Who leads, as it sees it.
    pub async fn leader(&mut self) -> String {
        let before = self.said().len();
        self.child.stdin.as_mut().unwrap().write_all(b"?\n").unwrap();
        until(&format!("an answer of {}", self.name), async || {
            let said = self.said();
            let answers = said[before..].iter().find_map(|line| line.strip_prefix("leader "));
            answers.map(str::to_owned)
        })
        .await
    }

    /// Lets it stop in order.
    pub fn stop(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Kills it with SIGKILL. Its session is still there then, and runs out: sooner than it was agreed, which
    /// nobody would wait for.
    pub async fn kill(&mut self, session: Duration) {
        self.end();
        self.wire.hasten_expiry(self.server, session).await;
    }

    fn end(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

const NAMING: &str = "QUORATE_TEST_NAMING";

/// One of ours: not a test, but what others start, with the arguments behind those of the test program. Says in
/// addition its `token`, when it is `ready`, and each time that it `looks` for its place.
#[tokio::test]
async fn a_candidate_in_a_process_of_its_own() {
    let Ok(naming) = std::env::var(NAMING) else { return };
    let namings = [Naming::Guid, Naming::Java, Naming::Session, Naming::Latch, Naming::Kazoo];
    let namings: HashMap<_, _> = namings.map(|one| (format!("{one:?}"), one)).into();
    let arguments: Vec<String> = std::env::args().skip(4).collect();
    let [hosts, root, name, session, _] = &arguments[..] else { panic!("{arguments:?}") };
    let session = Duration::from_millis(session.parse().unwrap());
    let settings =
        Settings::new(name.clone()).session_timeout(session).deadline(Duration::from_secs(30));
    let config = Config::new(hosts.clone(), root.clone(), settings).naming(namings[&naming]);
    let candidate = Candidate::start(config).await.unwrap();
    let mut events = candidate.events();
    let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| ask.send(line))
    });
    let leading = candidate.leadership();
    tokio::pin!(leading);
    let mut guard = None;
    loop {
        tokio::select! {
            // What it went through before what has come of it.
            biased;
            event = events.next() => match event {
                Some(Event::Notice(Notice::DetermineStart)) => println!("\nlooks"),
                Some(Event::Notice(Notice::ReadyComplete)) => println!("\nready"),
                _ => {}
            },
            leadership = &mut leading, if guard.is_none() => {
                let leadership = leadership.unwrap();
                println!("\ntoken {}\nleads", leadership.token());
                guard = Some(leadership);
            }
            line = asked.recv() => {
                if line.is_none() {
                    break;
                }
                let leader = candidate.leader().await.unwrap().unwrap();
                println!("\nleader {}", leader.name());
            }
        }
    }
    drop(guard);
    candidate.stop().await;
}
