//! A controller that assigns a leader to each partition; each leader has a seat of its own, and all seats of a process
//! stand in one session.
//!
//! ```console
//! $ cargo run -p quorate-zookeeper --example partition_leaders -- zk1:2181 host-1
//! $ cargo run -p quorate-zookeeper --example partition_leaders -- zk1:2181 host-2
//! ```
//!
//! ```text
//!   /partitions/nodes       who is alive; the first is the controller
//!   /partitions/assignment  what the controller wants
//!   /partitions/seats/N     who leads partition N: a node for the worker that does, and one for each that waits
//! ```
//!
//! The assignment decides nothing: a worker that is assigned a partition stands for its seat, and leads it when the one
//! before has left it, with a token greater than that one's. So two controllers that disagree for a moment do no harm.
#![allow(clippy::print_stdout, reason = "an example")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use quorate_zookeeper::zookeeper_client::{Acls, Client, CreateMode};
use quorate_zookeeper::{Candidate, Config, Contender, Session};

const NODES: &str = "/partitions/nodes";
const ASSIGNMENT: &str = "/partitions/assignment";
const PARTITIONS: usize = 6;

type Failure = Box<dyn Error + Send + Sync>;

/// A node, until its session is over.
pub(crate) async fn node(
    client: &Client,
    name: &str,
    say: impl Fn(String) + Clone + Send + 'static,
) -> Result<Infallible, Failure> {
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(ASSIGNMENT, &mode).await?;
    let session = Session::of(client);
    let member = Candidate::start(Config::on(&session, NODES, name)).await?;
    tokio::select! {
        ended = control(client, &member) => ended,
        ended = serve(client, &session, name, say) => ended,
    }
}

/// The controller's work, whenever this node is the controller.
async fn control(client: &Client, member: &Candidate) -> Result<Infallible, Failure> {
    loop {
        let leadership = member.leadership().await?;
        let Some(offer) = member.status().offer else { continue };
        let mut nodes = member.members();
        let work = async {
            loop {
                assign(client, &offer, &nodes.next().await?).await?;
            }
        };
        let ended: Result<Result<Infallible, Failure>, _> = leadership.run(work).await;
        if let Ok(Err(error)) = ended {
            return Err(error);
        }
    }
}

/// Each partition to one of those that are alive. ZooKeeper refuses it from a controller whose time is over.
async fn assign(client: &Client, offer: &str, alive: &[Contender]) -> Result<(), Failure> {
    let pairs = (0..PARTITIONS).zip(alive.iter().cycle());
    let text: String = pairs.map(|(number, node)| format!("{number} {}\n", node.name())).collect();
    let mut write = client.new_check_writer(&format!("{NODES}/{offer}"), None)?;
    write.add_set_data(ASSIGNMENT, text.as_bytes(), None)?;
    write.commit().await?;
    Ok(())
}

/// Stands for the seats that are assigned to this node, and leaves the others.
async fn serve(
    client: &Client,
    session: &Session,
    name: &str,
    say: impl Fn(String) + Clone + Send + 'static,
) -> Result<Infallible, Failure> {
    let mut seats: BTreeMap<usize, Candidate> = BTreeMap::new();
    loop {
        let (text, _, changed) = client.get_and_watch_data(ASSIGNMENT).await?;
        let text = String::from_utf8_lossy(&text);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let own: Vec<usize> = pairs
            .filter(|(_, node)| *node == name)
            .filter_map(|(partition, _)| partition.parse().ok())
            .collect();
        for partition in &own {
            if !seats.contains_key(partition) {
                let root = format!("/partitions/seats/{partition}");
                let seat = Candidate::start(Config::on(session, root, name)).await?;
                let (name, say) = (name.to_owned(), say.clone());
                tokio::spawn(lead(seat.clone(), *partition, name, say));
                seats.insert(*partition, seat);
            }
        }
        let left: Vec<_> = seats.keys().copied().filter(|seat| !own.contains(seat)).collect();
        for partition in left {
            if let Some(seat) = seats.remove(&partition) {
                seat.stop().await;
            }
        }
        changed.changed().await;
    }
}

/// The work of one partition's leader.
async fn lead(seat: Candidate, partition: usize, name: String, say: impl Fn(String)) {
    while let Ok(leadership) = seat.leadership().await {
        say(format!("{name} leads {partition} token {}", leadership.token()));
        let lost = leadership.lost().await;
        say(format!("{name} leaves {partition}: {lost}"));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(hosts), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("which HOST:PORT, and which name?".into());
    };
    let connector = Client::connector().with_session_timeout(Duration::from_secs(10));
    let client = connector.connect(&hosts).await?;
    node(&client, &name, |line| println!("{line}")).await?;
    Ok(())
}
