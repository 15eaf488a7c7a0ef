//! One election, two implementations: quorate beside Java ZooKeeper servers, over the network.
//!
//! What is asserted is the election: the Java servers' own status, quorate's own status, and what each
//! server answers a stranger on its election port name one leader, and no epoch has two. A quorate
//! server cannot take over a history yet, so one that meets an established Java leader follows it
//! only until that leader begins to send one.
//!
//! Needs Debian's `zookeeper` and a Java runtime; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "how long elections took, and why a test was skipped")]

mod common;
mod java;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use common::{free_ports, within};
use java::JavaServer;
use quorate_core::address::HostPort;
use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};
use quorate_core::message::{Introduction, Notification};
use quorate_core::report::Change;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_tokio::{Changes, Server, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TICK: Duration = Duration::from_millis(500);
/// How long the slowest machine may take for one election, the start of its Java servers included.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often servers that cannot tell us are asked.
const POLL: Duration = Duration::from_millis(20);

static STRANGERS: AtomicI64 = AtomicI64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Java,
    Quorate,
}

use Kind::{Java, Quorate};

/// One server of a mixed ensemble.
enum Running {
    Java(JavaServer),
    Quorate(Server, Changes),
}

struct Mixed {
    kinds: BTreeMap<ServerId, Kind>,
    membership: Membership,
    running: BTreeMap<ServerId, Running>,
    /// Whom a quorate server has followed, or been, since [`Mixed::forget`].
    followed: BTreeMap<ServerId, ServerId>,
    /// The leader of each epoch that a quorate server has taken part in.
    reigns: BTreeMap<Epoch, ServerId>,
    dir: TempDir,
}

impl Mixed {
    /// Servers 1, 2, … of these kinds; none started.
    fn new(kinds: &[Kind]) -> Self {
        let ids = (1..).map(ServerId);
        let kinds: BTreeMap<_, _> = ids.zip(kinds.iter().copied()).collect();
        let ports = free_ports(2 * kinds.len());
        let members = kinds.keys().zip(ports.chunks(2)).map(|(id, ports)| {
            let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
            Member::new(*id, Role::Participant, address)
        });
        let membership = Membership::build(members, [], [], 0).unwrap();
        Self {
            kinds,
            membership,
            running: BTreeMap::new(),
            followed: BTreeMap::new(),
            reigns: BTreeMap::new(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn data_dir(&self, id: ServerId) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    async fn start(&mut self, id: ServerId) {
        let server = match self.kinds[&id] {
            Java => {
                let port = free_ports(1)[0];
                let (dir, members) = (self.data_dir(id), &self.membership);
                Running::Java(JavaServer::start(&dir, id, members, TICK, port))
            }
            Quorate => {
                let mut core = Config::new(id, self.membership.clone());
                core.timing.tick = TICK;
                let mut config = ServerConfig::new(core, self.data_dir(id));
                config.changes_kept = 4096;
                let server = within("start", quorate_tokio::start(config)).await.unwrap();
                let changes = server.changes();
                Running::Quorate(server, changes)
            }
        };
        self.running.insert(id, server);
    }

    /// Waits until a server takes part in elections.
    async fn up(&self, id: ServerId) {
        let Running::Java(server) = &self.running[&id] else { return };
        let up = async {
            while !server.is_up().await {
                tokio::time::sleep(POLL).await;
            }
        };
        self.patiently(&format!("server {id} coming up"), up).await;
    }

    fn quorate(&self, id: ServerId) -> &Server {
        match &self.running[&id] {
            Running::Quorate(server, _) => server,
            Running::Java(_) => panic!("{id} is a Java server"),
        }
    }

    fn java(&self, id: ServerId) -> &JavaServer {
        match &self.running[&id] {
            Running::Java(server) => server,
            Running::Quorate(..) => panic!("{id} is a quorate server"),
        }
    }

    /// As if its process, or its machine, had been cut off.
    async fn kill(&mut self, id: ServerId) {
        match self.running.remove(&id).unwrap() {
            Running::Java(server) => drop(server),
            Running::Quorate(server, _) => within("kill", server.kill()).await,
        }
    }

    /// Forgets whom the servers have followed so far.
    fn forget(&mut self) {
        self.hear();
        self.followed.clear();
    }

    /// Takes note of what the quorate servers have gone through.
    fn hear(&mut self) {
        for (id, server) in &mut self.running {
            let Running::Quorate(_, changes) = server else { continue };
            while let Some(observed) = changes.try_next() {
                let Change::State { to, .. } = observed.report.change else { continue };
                if to != ServerState::Looking {
                    // Where the election has ended is known from the change itself; the status is
                    // that of the end of the same moment.
                    if let Some(leader) = observed.status.leader {
                        self.followed.insert(*id, leader);
                    }
                }
            }
            assert_eq!(changes.lost(), 0, "the test did not listen to {id} in time");
        }
    }

    /// Waits until everything that runs names one leader that runs too. All of them serve under it,
    /// but for quorate servers under a Java leader: they have followed it at least.
    async fn agreed(&mut self, story: &str) -> ServerId {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = self.view().await;
            let mut leaders: Vec<_> = view.values().copied().collect();
            leaders.dedup();
            if let [Some(leader)] = leaders[..]
                && self.running.contains_key(&leader)
            {
                return leader;
            }
            if Instant::now() > deadline {
                panic!("{story}: no agreement in {PATIENCE:?}\n{}", self.describe(&view).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whom each running server names as its leader.
    async fn view(&mut self) -> BTreeMap<ServerId, Option<ServerId>> {
        self.hear();
        let mut view = BTreeMap::new();
        for (id, server) in &self.running {
            let named = match server {
                Running::Java(server) => {
                    let mode = server.mode().await;
                    let probed = self.probe(*id).await;
                    let settled = probed.filter(|said| said.state != ServerState::Looking);
                    let leader = settled.map(|said| said.vote.leader);
                    // Its status and its election port must tell the same.
                    match mode.as_deref() {
                        Some("leader") => leader.filter(|leader| leader == id),
                        Some("follower") => leader.filter(|leader| leader != id),
                        _ => None,
                    }
                }
                Running::Quorate(server, _) => {
                    if let Some((leader, epoch)) = server.leader() {
                        let first = *self.reigns.entry(epoch).or_insert(leader);
                        assert_eq!(first, leader, "two leaders in {epoch}");
                        Some(leader)
                    } else {
                        let followed = self.followed.get(id).copied();
                        followed.filter(|leader| self.kinds[leader] == Java)
                    }
                }
            };
            view.insert(*id, named);
        }
        view
    }

    /// What a server answers a stranger on its election port.
    async fn probe(&self, id: ServerId) -> Option<Standing> {
        let address = self.membership.member(id).unwrap().election_address();
        let asking = async {
            let mut stream =
                TcpStream::connect((address.host.as_str(), address.port)).await.ok()?;
            // A large id, so that the link is kept; no member, so that it is answered and not counted.
            // Another one each time: to one that it knows, Java first repeats its last answer.
            let stranger = ServerId(1_000_000_000 + STRANGERS.fetch_add(1, Ordering::Relaxed));
            let nowhere = HostPort { host: "127.0.0.1".to_owned(), port: 1 };
            let hello = Introduction { id: stranger, addresses: vec![nowhere] };
            stream.write_all(&wire::encode_introduction(&hello)).await.ok()?;
            let question = Notification {
                standing: Standing {
                    state: ServerState::Looking,
                    vote: Vote { leader: stranger, zxid: Zxid::ZERO, peer_epoch: Epoch::ZERO },
                    round: Round(0),
                },
                version: Notification::VERSION,
                config: self.membership.text().clone(),
            };
            let mut bytes = BytesMut::new();
            wire::encode_notification(&question, &mut bytes);
            stream.write_all(&bytes).await.ok()?;
            let mut read = BytesMut::new();
            loop {
                if let Some(answer) = wire::take_notification(&mut read).ok()? {
                    return Some(answer.standing);
                }
                if stream.read_buf(&mut read).await.ok()? == 0 {
                    return None;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(2), asking).await.ok()?
    }

    async fn patiently<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => {
                panic!("{what}: nothing in {PATIENCE:?}\n{}", self.describe(&BTreeMap::new()).await)
            }
        }
    }

    async fn describe(&self, view: &BTreeMap<ServerId, Option<ServerId>>) -> String {
        let mut text = String::new();
        for (id, server) in &self.running {
            let probed = self.probe(*id).await;
            text += &format!("server {id} names {:?}, answers {probed:?}\n", view.get(id));
            text += &match server {
                Running::Java(server) => server.last_words(),
                Running::Quorate(server, _) => format!("{:#?}", server.status().peer),
            };
            text.push('\n');
        }
        text
    }
}

/// Starts three servers of these kinds in different orders, each time from nothing.
async fn elects_in_any_order(kinds: [Kind; 3]) {
    if !java::available() {
        return;
    }
    let begun = Instant::now();
    let mut mixed = Mixed::new(&kinds);
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed(&format!("{kinds:?} at once")).await;
    println!("{kinds:?} at once: {leader} after {:?}", begun.elapsed());
    drop(mixed);

    for order in [[1, 2, 3], [3, 2, 1], [3, 1, 2]] {
        let story = format!("{kinds:?} in the order {order:?}");
        let begun = Instant::now();
        let (mixed, leader) = established(kinds, order).await;
        assert_eq!(leader.0, order[0].max(order[1]), "{story}: the larger id of two empty servers");
        println!("{story}: {leader} after {:?}", begun.elapsed());
        drop(mixed);
    }
}

/// Starts the servers one by one, in this order; the first two have a leader before the last comes.
async fn established(kinds: [Kind; 3], order: [i64; 3]) -> (Mixed, ServerId) {
    let mut mixed = Mixed::new(&kinds);
    let [first, second, last] = order.map(ServerId);
    for id in [first, second] {
        mixed.start(id).await;
        mixed.up(id).await;
    }
    let leader = mixed.agreed("the first two").await;
    mixed.start(last).await;
    assert_eq!(mixed.agreed("all of them").await, leader);
    (mixed, leader)
}

#[tokio::test]
async fn two_java_servers_and_a_small_quorate_one() {
    elects_in_any_order([Quorate, Java, Java]).await;
}

#[tokio::test]
async fn two_java_servers_and_a_quorate_one_between() {
    elects_in_any_order([Java, Quorate, Java]).await;
}

#[tokio::test]
async fn two_java_servers_and_a_large_quorate_one() {
    elects_in_any_order([Java, Java, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_small_java_one() {
    elects_in_any_order([Java, Quorate, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_between() {
    elects_in_any_order([Quorate, Java, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_large_java_one() {
    elects_in_any_order([Quorate, Quorate, Java]).await;
}

#[tokio::test]
async fn a_quorate_leader_keeps_its_java_followers_and_they_go_on_without_it() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Java, Java, Quorate], [3, 2, 1]).await;
    assert_eq!(leader, ServerId(3));
    let (before, epoch) = mixed.quorate(leader).leader().unwrap();

    // Pings both ways, for more than twice the silence that either side would bear.
    let mut leaders = mixed.quorate(leader).leaders();
    assert_eq!(within("the present one", leaders.next()).await, Some(Some((before, epoch))));
    let change = tokio::time::timeout(12 * TICK, leaders.next()).await;
    assert!(change.is_err(), "the leader changed: {change:?}");
    assert_eq!(mixed.agreed("after 12 ticks").await, leader);
    let seats = mixed.quorate(leader).status().peer.learners.clone();
    assert!(seats.len() == 2 && seats.iter().all(|seat| seat.synced), "{seats:?}");

    let begun = Instant::now();
    mixed.kill(leader).await;
    let next = mixed.agreed("without the quorate leader").await;
    println!("two Java servers without their quorate leader: {next} after {:?}", begun.elapsed());
    mixed.start(leader).await;
    assert_eq!(mixed.agreed("with the quorate server back").await, next);
}

#[tokio::test]
async fn a_java_follower_sees_quorate_leaders_come_and_go() {
    if !java::available() {
        return;
    }
    let (mut mixed, mut leader) = established([Java, Quorate, Quorate], [3, 2, 1]).await;
    let mut epoch = Epoch::ZERO;
    for _ in 0..4 {
        let now = mixed.quorate(leader).leader().unwrap().1;
        assert!(now > epoch, "{now} after {epoch}");
        epoch = now;
        let begun = Instant::now();
        mixed.kill(leader).await;
        let next = mixed.agreed("without the leader").await;
        println!("from {leader} to {next} in {:?}", begun.elapsed());
        mixed.start(leader).await;
        assert_eq!(mixed.agreed("with the old leader back").await, next);
        leader = next;
        if mixed.kinds[&leader] == Java {
            break;
        }
    }
}

#[tokio::test]
async fn quorate_servers_go_on_without_their_java_leader() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Quorate, Quorate, Java], [3, 2, 1]).await;
    assert_eq!(leader, ServerId(3));
    mixed.forget();
    let begun = Instant::now();
    mixed.kill(leader).await;
    let next = mixed.agreed("without the Java leader").await;
    println!("two quorate servers without their Java leader: {next} after {:?}", begun.elapsed());
}

/// How long a Java server looks for a new leader after the old one has died, by its own clock: with a
/// quorate server as the other voter that is left, and with a Java one.
#[tokio::test]
#[ignore = "a measurement, of some minutes, that wants an idle machine"]
async fn a_mixed_ensemble_elects_as_fast_as_a_java_one() {
    if !java::available() {
        return;
    }
    let (dead, asked) = (ServerId(3), ServerId(2));
    let kinds = [[Java, Java, Java], [Quorate, Java, Java]];
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..20 {
        for (kinds, took) in kinds.iter().zip(&mut took) {
            let (mut mixed, leader) = established(*kinds, [3, 1, 2]).await;
            assert_eq!(leader, dead);
            let before = mixed.java(asked).elections().len();
            mixed.kill(dead).await;
            let election = async {
                while mixed.java(asked).elections().len() == before {
                    tokio::time::sleep(POLL).await;
                }
            };
            mixed.patiently("an election without the leader", election).await;
            took.push(mixed.java(asked).elections()[before]);
        }
    }
    let [java, mixed] = took.map(|mut took| {
        took.sort();
        println!("{took:?}");
        (took[9] + took[10]) / 2
    });
    println!("median of 20 elections: all Java {java:?}, mixed {mixed:?}");
    assert!(mixed <= java.mul_f64(1.05));
}
