//! Ensembles of Java and quorate servers: started, watched, asked as a stranger, and killed.
#![allow(dead_code, unreachable_pub, reason = "each user needs some of it")]

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{free_ports, within};
use crate::java::JavaServer;
use bytes::BytesMut;
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
use quorate_znode::Tree;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const TICK: Duration = Duration::from_millis(500);
/// How long the slowest machine may take for one election, the start of its Java servers included.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often servers that cannot tell us are asked.
pub const POLL: Duration = Duration::from_millis(20);

static STRANGERS: AtomicI64 = AtomicI64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Java,
    Quorate,
}

pub use Kind::{Java, Quorate};

/// One server of a mixed ensemble.
pub enum Running {
    Java(JavaServer),
    Quorate(Server<Tree>, Changes),
}

pub struct Mixed {
    pub kinds: BTreeMap<ServerId, Kind>,
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
    pub fn new(kinds: &[Kind]) -> Self {
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

    pub fn data_dir(&self, id: ServerId) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    pub async fn start(&mut self, id: ServerId) {
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
                let server =
                    within("start", quorate_tokio::start_with(config, Tree::new())).await.unwrap();
                let changes = server.changes();
                Running::Quorate(server, changes)
            }
        };
        self.running.insert(id, server);
    }

    /// Waits until a server takes part in elections.
    pub async fn up(&self, id: ServerId) {
        let Running::Java(server) = &self.running[&id] else { return };
        let up = async {
            while !server.is_up().await {
                tokio::time::sleep(POLL).await;
            }
        };
        self.patiently(&format!("server {id} coming up"), up).await;
    }

    pub fn quorate(&self, id: ServerId) -> &Server<Tree> {
        match &self.running[&id] {
            Running::Quorate(server, _) => server,
            Running::Java(_) => panic!("{id} is a Java server"),
        }
    }

    pub fn java(&self, id: ServerId) -> &JavaServer {
        match &self.running[&id] {
            Running::Java(server) => server,
            Running::Quorate(..) => panic!("{id} is a quorate server"),
        }
    }

    /// As if its process, or its machine, had been cut off.
    pub async fn kill(&mut self, id: ServerId) {
        match self.running.remove(&id).unwrap() {
            Running::Java(server) => drop(server),
            Running::Quorate(server, _) => within("kill", server.kill()).await,
        }
    }

    /// Forgets whom the servers have followed so far.
    pub fn forget(&mut self) {
        self.hear();
        self.followed.clear();
    }

    /// Takes note of what the quorate servers have gone through.
    pub fn hear(&mut self) {
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
    pub async fn agreed(&mut self, story: &str) -> ServerId {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = self.view().await;
            let mut leaders: Vec<_> = view.values().copied().collect();
            leaders.dedup();
            match leaders[..] {
                [Some(leader)] if self.running.contains_key(&leader) => return leader,
                _ => {}
            }
            if Instant::now() > deadline {
                panic!("{story}: no agreement in {PATIENCE:?}\n{}", self.describe(&view).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until all Java servers serve under one leader of theirs, whatever the others do.
    pub async fn led_by_java(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = self.view().await;
            let java = view.iter().filter(|(id, _)| self.kinds[id] == Java);
            let mut leaders: Vec<_> = java.map(|(_, leader)| *leader).collect();
            leaders.dedup();
            let runs = |id: &ServerId| self.running.contains_key(id) && self.kinds[id] == Java;
            if matches!(&leaders[..], [Some(leader)] if runs(leader)) {
                return;
            }
            if Instant::now() > deadline {
                panic!("no agreement in {PATIENCE:?}\n{}", self.describe(&view).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whom each running server names as its leader.
    pub async fn view(&mut self) -> BTreeMap<ServerId, Option<ServerId>> {
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
    pub async fn probe(&self, id: ServerId) -> Option<Standing> {
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

    pub async fn patiently<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => {
                panic!("{what}: nothing in {PATIENCE:?}\n{}", self.describe(&BTreeMap::new()).await)
            }
        }
    }

    pub async fn describe(&self, view: &BTreeMap<ServerId, Option<ServerId>>) -> String {
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

/// Starts the servers one by one, in this order; the first two have a leader before the last comes.
pub async fn established(kinds: [Kind; 3], order: [i64; 3]) -> (Mixed, ServerId) {
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
