//! Ensembles of Java and quorate servers: started, watched, asked as a non-member, compared, and killed.
#![allow(dead_code, unreachable_pub, reason = "each user needs some of it")]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{free_ports, within};
use crate::java::JavaServer;
use crate::java::client::{self, Client, Znode, Znodes};
use bytes::BytesMut;
use quorate_core::address::HostPort;
use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};
use quorate_core::message::{Identity, Introduction, Mark, Notification};
use quorate_core::report::{Change, How};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_service::ZooKeeper;
use quorate_tokio::{Changes, Proposal, Server, ServerConfig};
use quorate_znode::{Tree, kind};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const TICK: Duration = Duration::from_millis(500);
/// How long the slowest machine may take for one election, the start of its Java servers included.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often servers that cannot tell us are asked.
pub const POLL: Duration = Duration::from_millis(20);

static NON_MEMBERS: AtomicI64 = AtomicI64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Java,
    Quorate,
}

pub use Kind::{Java, Quorate};

/// One server of a mixed ensemble.
pub enum Running {
    Java(JavaServer),
    Quorate(Server<ZooKeeper>, Changes),
}

pub struct Mixed {
    pub kinds: BTreeMap<ServerId, Kind>,
    /// Of Java servers started from now on.
    pub java_properties: Vec<&'static str>,
    /// Changes the configuration of quorate servers started from now on.
    pub adjust: fn(&mut ServerConfig),
    pub membership: Membership,
    /// Whether their election ports tell a stranger nothing.
    pub secure: bool,
    running: BTreeMap<ServerId, Running>,
    /// How quorate servers said that learners were brought up: who said it, of whom, how.
    syncs: Vec<(ServerId, ServerId, How)>,
    /// What else they went through, for the message of a failed test.
    heard: Vec<(Instant, ServerId, String)>,
    begun: Instant,
    /// The leader of each epoch that a quorate server has taken part in.
    leaderships: BTreeMap<Epoch, ServerId>,
    dir: TempDir,
}

impl Mixed {
    /// Servers 1, 2, … of these kinds; none started.
    pub fn new(kinds: &[Kind]) -> Self {
        Self::with_observers(kinds, &[])
    }

    /// The same, some of them observers.
    pub fn with_observers(kinds: &[Kind], observers: &[ServerId]) -> Self {
        let ids = (1..).map(ServerId);
        let kinds: BTreeMap<_, _> = ids.zip(kinds.iter().copied()).collect();
        let ports = free_ports(2 * kinds.len());
        let members = kinds.keys().zip(ports.chunks(2)).map(|(id, ports)| {
            let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
            let observer = observers.contains(id);
            let role = if observer { Role::Observer } else { Role::Participant };
            Member::new(*id, role, address)
        });
        let membership = Membership::build(members, [], [], 0).unwrap();
        Self {
            kinds,
            java_properties: Vec::new(),
            adjust: |_| {},
            membership,
            secure: false,
            running: BTreeMap::new(),
            syncs: Vec::new(),
            heard: Vec::new(),
            begun: Instant::now(),
            leaderships: BTreeMap::new(),
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
                let properties = &self.java_properties;
                Running::Java(JavaServer::start(&dir, id, members, TICK, port, properties))
            }
            Quorate => {
                let mut core = Config::new(id, self.membership.clone());
                core.timing.tick = TICK;
                let mut config = ServerConfig::new(core, self.data_dir(id));
                config.changes_kept = 4096;
                (self.adjust)(&mut config);
                let server = within("start", quorate_tokio::start_with(config, ZooKeeper::new()))
                    .await
                    .unwrap();
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

    pub fn quorate(&self, id: ServerId) -> &Server<ZooKeeper> {
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
        self.hear();
        match self.running.remove(&id).unwrap() {
            Running::Java(server) => drop(server),
            Running::Quorate(server, _) => within("kill", server.kill()).await,
        }
    }

    /// Takes note of what the quorate servers have gone through.
    pub fn hear(&mut self) {
        for (id, server) in &mut self.running {
            let Running::Quorate(_, changes) = server else { continue };
            while let Some(observed) = changes.try_next() {
                if let Change::Sync { id: learner, how } = observed.report.change {
                    self.syncs.push((*id, learner, how));
                }
                self.heard.push((observed.at, *id, observed.report.to_string()));
            }
            let failed = std::thread::panicking();
            assert!(failed || changes.lost() == 0, "the test did not listen to {id} in time");
        }
    }

    /// How often quorate servers have said this.
    pub fn heard_of(&mut self, what: &str) -> usize {
        self.hear();
        self.heard.iter().filter(|(_, _, report)| report.contains(what)).count()
    }

    /// How a quorate server said that `learner` was brought up, each time since it was last asked.
    pub fn syncs(&mut self, said_by: ServerId, learner: ServerId) -> Vec<How> {
        self.hear();
        let (asked, others): (Vec<_>, _) =
            self.syncs.drain(..).partition(|(by, of, _)| (*by, *of) == (said_by, learner));
        self.syncs = others;
        asked.into_iter().map(|(_, _, how)| how).collect()
    }

    /// Waits until everything that runs serves under one leader that runs too.
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

    /// Whom each running server names as its leader.
    pub async fn view(&mut self) -> BTreeMap<ServerId, Option<ServerId>> {
        self.hear();
        let mut view = BTreeMap::new();
        let mut followers = Vec::new();
        for (id, server) in &self.running {
            let named = match server {
                Running::Java(server) if self.secure => match server.mode().await.as_deref() {
                    Some("leader") => Some(*id),
                    Some("follower") => {
                        followers.push(*id);
                        None
                    }
                    _ => None,
                },
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
                    let ended = tokio::time::timeout(Duration::ZERO, server.finished()).await;
                    assert!(ended.is_err(), "server {id} has ended: {ended:?}");
                    server.leader().map(|(leader, epoch)| {
                        let first = *self.leaderships.entry(epoch).or_insert(leader);
                        assert_eq!(first, leader, "two leaders in {epoch}");
                        leader
                    })
                }
            };
            view.insert(*id, named);
        }
        // Whom they follow the others say.
        let leader = view.values().copied().flatten().next();
        view.extend(followers.into_iter().map(|id| (id, leader.filter(|leader| *leader != id))));
        view
    }

    /// What a server answers a non-member on its election port.
    pub async fn probe(&self, id: ServerId) -> Option<Standing> {
        let address = self.membership.member(id).unwrap().election_address();
        let asking = async {
            let mut stream =
                TcpStream::connect((address.host.as_str(), address.port)).await.ok()?;
            // A large id, so that the link is kept; no member, so that it is answered and not counted.
            // Another one each time: to one that it knows, Java first repeats its last answer.
            let non_member = ServerId(1_000_000_000 + NON_MEMBERS.fetch_add(1, Ordering::Relaxed));
            let nowhere = HostPort { host: "127.0.0.1".to_owned(), port: 1 };
            let hello = Introduction { id: non_member, addresses: vec![nowhere] };
            stream.write_all(&wire::encode_introduction(&hello)).await.ok()?;
            let question = Notification {
                standing: Standing {
                    state: ServerState::Looking,
                    vote: Vote { leader: non_member, zxid: Zxid::ZERO, peer_epoch: Epoch::ZERO },
                    round: Round(0),
                },
                version: Notification::VERSION,
                config: self.membership.text().clone(),
                mark: Mark::NONE,
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

    /// Where clients connect to those that run; of quorate servers to those that take any.
    pub fn client_ports(&self) -> Vec<u16> {
        let of = |server: &Running| match server {
            Running::Java(server) => vec![server.client_port()],
            Running::Quorate(server, _) => {
                server.client_addrs().iter().map(SocketAddr::port).collect()
            }
        };
        self.running.values().flat_map(of).collect()
    }

    /// Opens a session with a Java server as soon as that serves.
    pub async fn client(&self, id: ServerId) -> Client {
        let connecting = async {
            loop {
                match self.java(id).client().await {
                    Some(client) => return client,
                    None => tokio::time::sleep(POLL).await,
                }
            }
        };
        self.patiently(&format!("a session with {id}"), connecting).await
    }

    /// Asks a quorate server for a node, as the program that embeds it does.
    pub async fn propose(&self, id: ServerId, path: &str) -> Zxid {
        self.ask(id, create(path)).await
    }

    /// Asks a quorate server for a transaction.
    pub async fn ask(&self, id: ServerId, proposal: Proposal) -> Zxid {
        let story = format!("{proposal:?}");
        let proposed = self.patiently(&story, self.quorate(id).propose(proposal)).await;
        proposed.unwrap_or_else(|error| panic!("{story}: {error}")).zxid
    }

    /// Waits until all that run have applied the same transactions, and returns the last. Something
    /// must have been written in the present epoch: before that, Java leaders and followers name
    /// different zxids.
    pub async fn settled(&self, story: &str) -> Zxid {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let zxids = self.zxids().await;
            let mut different: Vec<_> = zxids.values().copied().collect();
            different.dedup();
            if let [Some(zxid)] = different[..] {
                return zxid;
            }
            if Instant::now() > deadline {
                let said = self.describe(&BTreeMap::new()).await;
                panic!("{story}: not the same in {PATIENCE:?}: {zxids:?}\n{said}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits for the same, and asserts that all that run hold the same nodes, which are returned.
    pub async fn same(&self, story: &str) -> Znodes {
        self.settled(story).await;
        let mut first: Option<(ServerId, Znodes)> = None;
        for id in self.running.keys().copied() {
            let znodes = self.znodes(id).await;
            match &first {
                None => first = Some((id, znodes)),
                Some((other, theirs)) => assert_same(story, (*other, theirs), (id, &znodes)),
            }
        }
        first.unwrap().1
    }

    /// What each running server has applied.
    pub async fn zxids(&self) -> BTreeMap<ServerId, Option<Zxid>> {
        let mut zxids = BTreeMap::new();
        for (id, server) in &self.running {
            let zxid = match server {
                Running::Java(server) => server.zxid().await,
                Running::Quorate(server, _) => Some(server.status().metrics.applied),
            };
            zxids.insert(*id, zxid);
        }
        zxids
    }

    /// What a server holds, as its clients see it.
    pub async fn znodes(&self, id: ServerId) -> Znodes {
        let mut znodes = match &self.running[&id] {
            Running::Java(_) => {
                let mut client = self.client(id).await;
                let znodes = client.znodes().await;
                client.close().await;
                znodes
            }
            Running::Quorate(server, _) => within(
                "a look at the tree",
                server.read_local(|zookeeper: &ZooKeeper| znodes(zookeeper.tree())),
            )
            .await
            .unwrap(),
        };
        // Each server writes it for itself, with its own clock.
        if let Some(config) = znodes.get_mut("/zookeeper/config") {
            config.stat.mtime = 0;
        }
        znodes
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

impl Drop for Mixed {
    /// Tells what has happened, if the test has failed.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        self.hear();
        self.heard.sort();
        for (at, id, report) in &self.heard {
            println!("{:?} {id}: {report}", at.saturating_duration_since(self.begun));
        }
        for (id, server) in &self.running {
            if let Running::Java(server) = server {
                println!("server {id}, the end of its log:\n{}", server.last_words());
            }
        }
    }
}

/// Asks for a node, as the program that embeds a server does: in no session.
pub fn create(path: &str) -> Proposal {
    let body = client::create(path, b"proposed", 0).0.into();
    Proposal { op: kind::CREATE, body, identities: None }
}

/// Asks for a session of the embedding program's own, for ten seconds. A Java leader takes no write
/// without one, see [`in_session`].
pub fn session() -> Proposal {
    let body = 10_000_i32.to_be_bytes().to_vec().into();
    Proposal { op: kind::CREATE_SESSION, body, identities: None }
}

/// Asks in that session, as somebody: a Java leader does not bear a request of nobody.
pub fn in_session(proposal: Proposal) -> Proposal {
    let local = Identity { scheme: "ip".to_owned(), id: "127.0.0.1".to_owned() };
    Proposal { identities: Some(vec![local]), ..proposal }
}

/// What a tree holds, as a client would see it.
pub fn znodes(tree: &Tree) -> Znodes {
    let mut znodes = Znodes::new();
    let walked = tree.snapshot().walk(|path, node| {
        let path = if path.is_empty() { "/" } else { path };
        let data = node.data().map(|data| data.to_vec());
        let acl = node.acl().unwrap().to_vec();
        znodes.insert(path.to_owned(), Znode { data, acl, stat: node.stat() });
        Ok::<_, ()>(())
    });
    walked.unwrap();
    znodes
}

/// Names the first node that differs: the whole would be unreadable.
fn assert_same(story: &str, first: (ServerId, &Znodes), second: (ServerId, &Znodes)) {
    for path in first.1.keys().chain(second.1.keys()) {
        let (one, two) = (first.1.get(path), second.1.get(path));
        assert_eq!(one, two, "{story}: {path} at server {} and at {}", first.0, second.0);
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
