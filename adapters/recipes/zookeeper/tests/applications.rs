//! The example applications do what they say, also when those die that lead them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use zookeeper_client::Client;

use crate::peers::ours::{Ours, connect};
use crate::peers::{Wire, within};

#[expect(dead_code, reason = "it is run from here, not from its main")]
#[path = "../examples/index_builder.rs"]
mod index_builder;
#[expect(dead_code, reason = "it is run from here, not from its main")]
#[path = "../examples/partition_leaders.rs"]
mod partition_leaders;
#[expect(dead_code, reason = "it is run from here, not from its main")]
#[path = "../examples/region_master.rs"]
mod region_master;

/// What the processes of an application say.
struct Said(UnboundedReceiver<String>);

impl Said {
    /// What they say, and how they say it.
    fn new() -> (Self, impl Fn(String) + Clone + Send + 'static) {
        let (sender, said) = unbounded_channel();
        // Closed: the test is over.
        (Self(said), move |line| drop(sender.send(line)))
    }

    /// Waits until one of them says this.
    async fn until(&mut self, line: &str) {
        within(line, async { while self.0.recv().await.unwrap() != line {} }).await;
    }
}

/// A process's way to the server, and its client: short of the one, it is as good as dead.
async fn process(ours: &Ours) -> (Wire, Client) {
    let wire = Wire::to(ours.port).await;
    let client = connect(wire.port, Duration::from_secs(1)).await;
    (wire, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn region_servers_register_with_a_master_that_is_replaced_when_it_dies() {
    let ours = Ours::start().await;
    let (mut said, say) = Said::new();
    let mut wires = BTreeMap::new();
    for name in ["m1", "s1", "s2", "m2"] {
        let (wire, client) = process(&ours).await;
        wires.insert(name, wire);
        let say = say.clone();
        tokio::spawn(async move {
            match name.starts_with('m') {
                true => region_master::master(&client, name, say).await,
                false => region_master::server(&client, name, say).await,
            }
        });
        match name {
            "m1" => said.until("m1 is master").await,
            "s1" => said.until("s1 serves a-f g-l m-r s-z").await,
            "s2" => said.until("s2 serves g-l s-z").await,
            _ => {}
        }
    }
    wires["m1"].cut();
    said.until("m2 is master").await;
    said.until("m2 assigns to s1 s2").await;
    wires["s1"].cut();
    said.until("s2 serves a-f g-l m-r s-z").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_assigns_a_leader_to_each_partition_and_another_takes_over() {
    let ours = Ours::start().await;
    let (mut said, say) = Said::new();
    let mut wires = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let (wire, client) = process(&ours).await;
        wires.insert(name.to_owned(), wire);
        let say = say.clone();
        tokio::spawn(async move { partition_leaders::node(&client, name, say).await });
    }
    // Who leads each, with which token.
    let mut leaders: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut led_by = async |count: usize| {
        let led = async {
            loop {
                let names: Vec<_> = leaders.values().map(|(name, _)| name.clone()).collect();
                let in_turn = (0..names.len()).all(|at| names[at] == names[at % count]);
                let all: BTreeSet<_> = names.iter().collect();
                if names.len() == 6 && in_turn && all.len() == count {
                    return names;
                }
                let line = said.0.recv().await.unwrap();
                let words: Vec<_> = line.split(' ').collect();
                match words[..] {
                    [name, "leads", partition, "token", token] => {
                        let next = (name.to_owned(), token.parse().unwrap());
                        let before = leaders.insert(partition.to_owned(), next);
                        let token = leaders[partition].1;
                        assert!(before.is_none_or(|(_, before)| before < token), "{line}");
                    }
                    [_, "leaves", ..] => {}
                    _ => panic!("{line}"),
                }
            }
        };
        within("leaders of all partitions", led).await
    };
    let three = led_by(3).await;
    // The first of the row is the controller, and has the first partition.
    wires[&three[0]].cut();
    let two = led_by(2).await;
    assert!(!two.contains(&three[0]), "{two:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_builds_the_index_and_the_others_copy_it() {
    let ours = Ours::start().await;
    let (mut said, say) = Said::new();
    let dir = tempfile::tempdir().unwrap();
    let documents = dir.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    std::fs::write(documents.join("1"), "Zab is no Paxos").unwrap();
    std::fs::write(documents.join("2"), "Raft is no Zab").unwrap();
    let mut wires = Vec::new();
    for name in ["a", "b"] {
        let (wire, client) = process(&ours).await;
        let (own, documents, say) = (dir.path().join(name), documents.clone(), say.clone());
        std::fs::create_dir(&own).unwrap();
        tokio::spawn(
            async move { index_builder::node(&client, name, &documents, &own, say).await },
        );
        wires.push(wire);
        said.until(if name == "a" { "a has built" } else { "b has copied" }).await;
    }
    let index = |name: &str| std::fs::read_to_string(dir.path().join(name).join("index")).unwrap();
    assert_eq!(index("a"), "is: 1 2\nno: 1 2\npaxos: 1\nraft: 2\nzab: 1 2\n");
    assert_eq!(index("b"), index("a"));
    std::fs::write(documents.join("3"), "Paxos").unwrap();
    wires[0].cut();
    said.until("b has built").await;
    assert!(index("b").contains("paxos: 1 3\n"));
}
