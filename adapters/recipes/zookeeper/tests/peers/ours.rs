//! A quorate server in the test's own process, which every machine has.

use std::time::Duration;

use quorate_recipes::testing::{free_port, until, within};
use quorate_service::{Options, Words, ZooKeeper};
use quorate_tokio::{Server, ServerConfig, start_with};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::Client;

/// A quorate server, alone. Its sessions may be short.
pub struct Ours {
    _dir: TempDir,
    _server: Server<ZooKeeper>,
    pub port: u16,
}

impl Ours {
    /// Starts one, and waits until it leads.
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let own = format!("127.0.0.1:{}:{}", free_port(), free_port());
        let config = ServerConfig::builder(1, dir.path())
            .voter(1, &own)
            .tick(Duration::from_millis(100))
            .client_addresses([([127, 0, 0, 1], 0).into()])
            .build()
            .unwrap();
        let options = Options {
            session_timeout_max: Some(Duration::from_secs(60)),
            words: Words::All,
            ..Options::default()
        };
        let server = start_with(config, ZooKeeper::with(options)).await.unwrap();
        within("a leader", server.ready()).await.unwrap();
        let port = server.client_addrs()[0].port();
        Self { _dir: dir, _server: server, port }
    }

    pub fn hosts(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A client whose session is this long.
    pub async fn client(&self, session: Duration) -> Client {
        connect(self.port, session).await
    }

    /// How many watches it keeps.
    pub async fn watches(&self) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(b"wchs").await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        let total = said.lines().find_map(|line| line.strip_prefix("Total watches:"));
        total.unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap()
    }

    /// Waits until it keeps so many watches.
    pub async fn keeps_watches(&self, count: usize) {
        let what = format!("{count} watches");
        until(&what, async || (self.watches().await == count).then_some(())).await;
    }
}

/// A client of the server at a port.
pub async fn connect(port: u16, session: Duration) -> Client {
    let connector = Client::connector().with_session_timeout(session);
    within("a session", connector.connect(&format!("127.0.0.1:{port}"))).await.unwrap()
}
