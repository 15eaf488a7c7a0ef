//! What the tests compete through: Java ZooKeeper servers, and a wire that can be cut.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses some of it")]

#[path = "../../../../runtimes/tokio/tests/java/mod.rs"]
pub mod java;
pub mod ours;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
pub use quorate_recipes::testing::{free_port, names, standing, until, within};
use quorate_zookeeper::{Candidate, Config, Settings};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use zookeeper_client::{Acls, Client, CreateMode};

use self::java::JavaServer;

/// Sessions in these tests; servers tick every 500 ms and so allow no less than a second.
pub const SESSION: Duration = Duration::from_secs(4);

/// A Java ensemble.
pub struct Ensemble {
    dir: TempDir,
    membership: Membership,
    ports: Vec<u16>,
    extra: Vec<&'static str>,
    pub servers: Vec<Option<JavaServer>>,
}

impl Ensemble {
    /// Starts one, and waits until it serves. None if there is no Java ZooKeeper here.
    pub async fn start(size: i64) -> Option<Self> {
        Self::start_with(size, &[]).await
    }

    /// The same, with properties of ZooKeeper's.
    pub async fn start_with(size: i64, extra: &[&'static str]) -> Option<Self> {
        if !java::available() {
            return None;
        }
        let lines = (1..=size).map(|id| {
            let (quorum, election) = (free_port(), free_port());
            format!("server.{id}=127.0.0.1:{quorum}:{election}:participant\n")
        });
        let text: String = lines.chain(["version=0".to_owned()]).collect();
        let mut ensemble = Self {
            dir: tempfile::tempdir().unwrap(),
            membership: Membership::parse(text.as_bytes()).unwrap(),
            ports: (0..size).map(|_| free_port()).collect(),
            extra: extra.to_vec(),
            servers: (0..size).map(|_| None).collect(),
        };
        for place in 0..ensemble.servers.len() {
            ensemble.run(place);
        }
        ensemble.serves().await;
        Some(ensemble)
    }

    /// Starts a server, again if it ran before.
    pub fn run(&mut self, place: usize) {
        let id = ServerId(i64::try_from(place).unwrap() + 1);
        let dir = self.dir.path().join(id.to_string());
        let tick = Duration::from_millis(500);
        let (members, port) = (&self.membership, self.ports[place]);
        let server = JavaServer::start(&dir, id, members, tick, port, &self.extra);
        self.servers[place] = Some(server);
    }

    /// Waits until all that run serve.
    pub async fn serves(&self) {
        for server in self.servers.iter().flatten() {
            until("a server that serves", async || server.mode().await).await;
        }
    }

    /// Which of them leads.
    pub async fn leader(&self) -> usize {
        until("a leader of the ensemble", async || {
            for (place, server) in self.servers.iter().enumerate() {
                let Some(server) = server else { continue };
                if server.mode().await.is_some_and(|mode| mode == "leader") {
                    return Some(place);
                }
            }
            None
        })
        .await
    }

    /// A wire to the only server.
    pub async fn wire(&self) -> Wire {
        Wire::to(self.ports[0]).await
    }

    pub fn hosts(&self) -> String {
        let hosts: Vec<_> = self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        hosts.join(",")
    }

    /// A client of its own for the test.
    pub async fn client(&self) -> Client {
        let connect = Client::connector().with_session_timeout(Duration::from_secs(10));
        within("a session", connect.connect(&self.hosts())).await.unwrap()
    }

    pub fn config(&self, root: &str, identity: &str) -> Config {
        self.config_with(root, settings(identity))
    }

    pub fn config_with(&self, root: &str, settings: Settings) -> Config {
        Config::new(self.hosts(), root, settings)
    }

    pub async fn candidate(&self, root: &str, identity: &str) -> Candidate {
        Candidate::start(self.config(root, identity)).await.unwrap()
    }
}

/// Settings with the sessions of these tests.
pub fn settings(identity: &str) -> Settings {
    Settings::from(identity).session_timeout(SESSION)
}

/// A node that outlives its session.
pub async fn make(client: &Client, path: &str) {
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(path, &mode).await.unwrap();
}

/// A wire to a server, through which nothing comes while it is cut; connections stay open.
pub struct Wire {
    pub port: u16,
    cut: watch::Sender<bool>,
    /// What the server said first on the newest connection.
    greeting: Arc<Mutex<Vec<u8>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Wire {
    pub async fn to(port: u16) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (cut, is_cut) = watch::channel(false);
        let greeting: Arc<Mutex<Vec<u8>>> = Arc::default();
        let heard = Arc::clone(&greeting);
        let task = tokio::spawn(async move {
            loop {
                let Ok((near, _)) = listener.accept().await else { return };
                tokio::spawn(carry(near, port, is_cut.clone(), Arc::clone(&heard)));
            }
        });
        Self { port: own, cut, greeting, task }
    }

    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub fn mend(&self) {
        self.cut.send_replace(false);
    }

    /// Ends the session that was opened last, as an administrator of the ensemble could.
    pub async fn end_session(&self, server: u16) {
        let mut stream = self.take_session(server, Duration::from_secs(10)).await;
        // closeSession, as request 1.
        let close = [8_i32.to_be_bytes(), 1_i32.to_be_bytes(), (-11_i32).to_be_bytes()].concat();
        stream.write_all(&close).await.unwrap();
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    }

    /// The session that was opened last, of which nothing more is heard, runs out this soon, or as soon as the
    /// server allows.
    pub async fn hasten_expiry(&self, server: u16, timeout: Duration) {
        drop(self.take_session(server, timeout).await);
    }

    /// Takes over the session that was opened last.
    async fn take_session(&self, server: u16, timeout: Duration) -> TcpStream {
        // Length, version, time-out, session, length, password.
        let greeting = self.greeting.lock().unwrap().clone();
        let (session, password) = (&greeting[12..20], &greeting[20..40]);
        let mut stream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
        let timeout = i32::try_from(timeout.as_millis()).unwrap().to_be_bytes();
        // Version, last zxid, time-out; whether reading is enough.
        let mut request = [&[0; 12][..], &timeout, session, password, &[0]].concat();
        request.splice(0..0, 45_i32.to_be_bytes());
        stream.write_all(&request).await.unwrap();
        let mut answer = [0; 20];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer[12..20], session, "the session is not what was taken for it");
        stream
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries one connection. While the wire is cut nothing is copied, and nothing is closed; what was under way
/// then is lost with the connection.
async fn carry(
    near: TcpStream,
    port: u16,
    mut is_cut: watch::Receiver<bool>,
    heard: Arc<Mutex<Vec<u8>>>,
) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
        (near.into_split(), far.into_split());
    let there = tokio::io::copy(&mut near_in, &mut far_out);
    let back = async {
        let mut first = vec![0; 4096];
        let read = far_in.read(&mut first).await?;
        heard.lock().unwrap().splice(.., first[..read].iter().copied());
        near_out.write_all(&first[..read]).await?;
        tokio::io::copy(&mut far_in, &mut near_out).await
    };
    let mut cut = is_cut.clone();
    tokio::select! {
        _ = there => return,
        _ = back => return,
        _ = cut.wait_for(|cut| *cut) => {}
    }
    drop(is_cut.wait_for(|cut| !cut).await);
}
