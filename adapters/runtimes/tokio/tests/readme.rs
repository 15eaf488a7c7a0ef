//! The programs that the README and this package's page show do what they say, as they stand: on one server, and on
//! three of which the leader is killed.
//!
//! Each is a file in `readme`, the same text as on the page, included here. It is run as a process of its own,
//! which is this one again: its only argument is the `zoo.cfg` of its directory.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::fs;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{free_ports, within};
use quorate_tokio::core::status::LearnerStatus;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Application, NoApplication, Server, ServerConfig, Tokio};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const README: &str = include_str!("../../../../README.md");
const PAGE: &str = include_str!("../README.md");

/// Each stands in a room of its own, beside what runs it.
#[allow(clippy::print_stdout, reason = "the programs of a page print")]
mod state_machine {
    include!("readme/state_machine.rs");

    #[test]
    #[ignore = "run by the tests below, as a process"]
    fn program() {
        main().unwrap();
    }

    pub(super) fn application() -> impl quorate_tokio::Application {
        Replicated::new("sum", Sum::default())
    }
}

#[allow(clippy::print_stdout, reason = "the programs of a page print")]
mod elector {
    include!("readme/elector.rs");

    #[test]
    #[ignore = "run by the tests below, as a process"]
    fn program() {
        main().unwrap();
    }
}

#[allow(clippy::print_stdout, reason = "the programs of a page print")]
mod leader_work {
    use std::future::pending;

    use quorate_tokio::zoo_cfg::ZooCfg;

    include!("readme/leader_work.rs");

    async fn work(token: FencingToken) {
        println!("works with {token:?}");
        pending().await
    }

    #[tokio::main]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = quorate_tokio::start(ZooCfg::read("zoo.cfg")?).await?;
        Ok(lead(server, work).await?)
    }

    #[test]
    #[ignore = "run by the tests below, as a process"]
    fn program() {
        main().unwrap();
    }
}

/// The programs on a page, without lines that only rustdoc hides: a page is read elsewhere, too.
fn programs(page: &str) -> Vec<&str> {
    page.split("```rust,no_run\n").skip(1).map(|text| text.split("```").next().unwrap()).collect()
}

#[test]
fn every_program_of_the_readme_is_run_here() {
    let run = [include_str!("readme/state_machine.rs"), include_str!("readme/leader_work.rs")];
    assert_eq!(programs(README), run);
    assert_eq!(README.matches("```rust").count(), run.len());
}

#[test]
fn the_pages_elector_is_run_here() {
    assert!(programs(PAGE).contains(&include_str!("readme/elector.rs")));
}

/// The README's links within this repository lead somewhere, and the tests that hold its guarantees are there.
#[test]
fn the_readme_names_what_is_there() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let links = README.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    for link in links.filter(|link| !link.starts_with("http")) {
        // Whether a heading of that page has the name behind `#`, the tests of the command see.
        let file = link.split('#').next().unwrap();
        assert!(root.join(file).exists(), "{link}");
    }
    let guarantees = README.split("## Guarantees").nth(1).unwrap().split("## ").next().unwrap();
    let mut sources = String::new();
    let mut tests = 0;
    for line in guarantees.lines().filter(|line| line.starts_with("- ")) {
        if let Some(link) = line.split("](").nth(1) {
            sources = fs::read_to_string(root.join(link.split(')').next().unwrap())).unwrap();
        }
        let test = line.split('`').nth(1).unwrap();
        assert!(sources.contains(&format!("fn {test}()")), "{test}");
        tests += 1;
    }
    assert_eq!(tests, 4);
}

/// A program under way.
struct Running {
    child: Child,
    lines: UnboundedReceiver<String>,
}

impl Running {
    /// Runs a program in the directory of its `zoo.cfg`.
    fn new(program: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("readme::{program}::program"), "--ignored", "--nocapture"])
            .current_dir(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (heard, lines) = unbounded_channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                drop(heard.send(line));
            }
        });
        Self { child, lines }
    }

    /// What it prints next that has this in it.
    async fn says(&mut self, what: &str) -> String {
        let line = async {
            loop {
                match self.lines.recv().await {
                    Some(line) if line.contains(what) => return line,
                    Some(_) => {}
                    None => panic!("it ends and has not said {what}"),
                }
            }
        };
        within(what, line).await
    }

    async fn succeeds(mut self) {
        self.says("test result: ok. 1 passed").await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself if this fails.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Directories 1, 2 and so on, with a `zoo.cfg` each, as operators write them.
fn ensemble(servers: usize) -> (TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().unwrap();
    let ports = free_ports(2 * servers);
    let lines: String = (ports.chunks(2).zip(1..))
        .map(|(ports, id)| format!("server.{id}=127.0.0.1:{}:{}\n", ports[0], ports[1]))
        .collect();
    let dirs = (1..=servers).map(|id| {
        let dir = root.path().join(id.to_string());
        let data = dir.join("data");
        fs::create_dir_all(&data).unwrap();
        fs::write(data.join("myid"), id.to_string()).unwrap();
        let head = "tickTime=500\ninitLimit=10\nsyncLimit=5\n";
        let text = format!("{head}dataDir={}\n{lines}", data.display());
        fs::write(dir.join("zoo.cfg"), text).unwrap();
        dir
    });
    let dirs = dirs.collect();
    (root, dirs)
}

/// Servers 1 and 2 of three, serving; the one that leads, and the other.
async fn two_of<A: Application>(
    dirs: &[PathBuf],
    application: impl Fn() -> A,
) -> (Server<A>, Server<A>) {
    let start = |dir: &PathBuf| {
        let config = ServerConfig::from(ZooCfg::read(dir.join("zoo.cfg")).unwrap());
        Server::start(Tokio, config, application())
    };
    let (one, two) = (start(&dirs[0]).await.unwrap(), start(&dirs[1]).await.unwrap());
    let (leader, _) = within("a leader", one.ready()).await.unwrap();
    within("a follower", two.ready()).await.unwrap();
    if leader == one.id() { (one, two) } else { (two, one) }
}

fn on_tokio(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().build().unwrap().block_on(test);
}

#[test]
fn the_state_machine_runs_on_one_server() {
    on_tokio(async {
        let (_root, dirs) = ensemble(1);
        let mut program = Running::new("state_machine", &dirs[0]);
        program.says("7 after transaction").await;
        program.succeeds().await;
        // It remembers.
        let mut program = Running::new("state_machine", &dirs[0]);
        program.says("14 after transaction").await;
        program.succeeds().await;
    });
}

#[test]
fn the_state_machine_runs_on_three_servers_while_their_leader_is_killed() {
    on_tokio(async {
        let (_root, dirs) = ensemble(3);
        let (leader, _other) = two_of(&dirs, state_machine::application).await;
        let mut program = Running::new("state_machine", &dirs[2]);
        leader.kill().await;
        program.says(" after transaction").await;
        program.succeeds().await;
    });
}

#[test]
fn the_elector_tells_who_leads_one_server() {
    on_tokio(async {
        let (_root, dirs) = ensemble(1);
        let mut program = Running::new("elector", &dirs[0]);
        program.says("epoch: Some((ServerId(1), Epoch(1)))").await;
    });
}

#[test]
fn the_elector_tells_who_leads_three_servers_and_who_after_that() {
    on_tokio(async {
        let (_root, dirs) = ensemble(3);
        let (leader, _other) = two_of(&dirs, || NoApplication).await;
        let mut program = Running::new("elector", &dirs[2]);
        program.says(&format!("epoch: Some((ServerId({}), Epoch(1)))", leader.id().0)).await;
        leader.kill().await;
        program.says("epoch: None").await;
        program.says("epoch: Some((ServerId(3), Epoch(2)))").await;
    });
}

#[test]
fn work_of_the_leader_is_done_on_one_server() {
    on_tokio(async {
        let (_root, dirs) = ensemble(1);
        Running::new("leader_work", &dirs[0]).says("works with ").await;
    });
}

#[test]
fn work_of_the_leader_is_taken_over_when_it_is_killed() {
    on_tokio(async {
        let (_root, dirs) = ensemble(3);
        let (leader, _other) = two_of(&dirs, || NoApplication).await;
        let first = within("leadership", leader.leadership()).await.unwrap().token();
        let mut program = Running::new("leader_work", &dirs[2]);
        // All three have the same, and the highest id is elected.
        let three = async {
            let follows = |learner: &LearnerStatus| learner.id.0 == 3 && learner.synced;
            while !leader.status().peer.learners.iter().any(follows) {
                tokio::task::yield_now().await;
            }
        };
        within("the program's server", three).await;
        leader.kill().await;
        let said = program.says("works with ").await;
        assert_ne!(said, format!("works with {first:?}"));
    });
}
