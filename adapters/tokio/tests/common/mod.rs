//! An ensemble on loopback, and waiting with an end.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};
use quorate_tokio::{Application, Leader, NoApplication, Server, ServerConfig, StartError};
use tempfile::TempDir;

/// Waits for what must happen soon.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: nothing in {PATIENCE:?}"),
    }
}

/// Ports that nobody uses at the moment, and nobody will by chance: they lie below those that systems
/// give to outgoing connections, and no two tests of a process get the same.
pub fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut candidates = std::iter::repeat_with(|| {
        let nth = std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
        u16::try_from(12_000 + nth % 20_000).unwrap()
    });
    let free = candidates.by_ref().filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.take(count).collect()
}

pub struct Ensemble<A: Application = NoApplication> {
    pub membership: Membership,
    pub changes_kept: usize,
    pub listen_on_all_ips: bool,
    pub introduction_timeout: Option<Duration>,
    /// Changes each server's configuration.
    pub adjust: fn(&mut ServerConfig),
    application: Box<dyn Fn(ServerId) -> A>,
    servers: BTreeMap<ServerId, Server<A>>,
    dir: TempDir,
}

impl Ensemble {
    /// Voters 1..=n, then observers; none started.
    pub fn new(voters: usize, observers: usize) -> Self {
        Self::on("127.0.0.1", voters, observers)
    }

    /// The same, on another name of this machine.
    pub fn on(host: &str, voters: usize, observers: usize) -> Self {
        Self::with(host, voters, observers, |_| NoApplication)
    }
}

impl<A: Application> Ensemble<A> {
    /// An ensemble whose servers replicate what `application` makes for each start.
    pub fn of(
        voters: usize,
        observers: usize,
        application: impl Fn(ServerId) -> A + 'static,
    ) -> Self {
        Self::with("127.0.0.1", voters, observers, application)
    }

    fn with(
        host: &str,
        voters: usize,
        observers: usize,
        application: impl Fn(ServerId) -> A + 'static,
    ) -> Self {
        let ports = free_ports(2 * (voters + observers));
        let members = ports.chunks(2).zip(1_i64..).map(|(ports, id)| {
            let voter = usize::try_from(id).unwrap() <= voters;
            let role = if voter { Role::Participant } else { Role::Observer };
            Member::new(ServerId(id), role, ServerAddress::new(host, ports[0], ports[1]))
        });
        let membership = Membership::build(members, [], [], 0).unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self {
            membership,
            changes_kept: 256,
            listen_on_all_ips: false,
            introduction_timeout: None,
            adjust: |_| {},
            application: Box::new(application),
            servers: BTreeMap::new(),
            dir,
        }
    }

    pub fn ids(&self) -> Vec<ServerId> {
        self.membership.members().iter().map(|member| member.id).collect()
    }

    pub fn observers(&self) -> Vec<ServerId> {
        let members = self.membership.members().iter();
        members.filter(|member| member.role == Role::Observer).map(|member| member.id).collect()
    }

    pub fn data_dir(&self, id: ServerId) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    pub fn config(&self, id: ServerId) -> ServerConfig {
        let core = Config::new(id, self.membership.clone());
        let mut config = ServerConfig::new(core, self.data_dir(id));
        config.changes_kept = self.changes_kept;
        config.introduction_timeout = self.introduction_timeout;
        config.listen_on_all_ips = self.listen_on_all_ips;
        config.bind_tries = 1;
        (self.adjust)(&mut config);
        config
    }

    pub async fn try_start(&self, config: ServerConfig) -> Result<Server<A>, StartError> {
        let application = (self.application)(config.core.id);
        within("start", quorate_tokio::start_with(config, application)).await
    }

    pub async fn start(&mut self, id: ServerId) {
        let server = self.try_start(self.config(id)).await.unwrap();
        self.servers.insert(id, server);
    }

    pub async fn start_all(&mut self) {
        for id in self.ids() {
            self.start(id).await;
        }
    }

    pub fn server(&self, id: ServerId) -> &Server<A> {
        &self.servers[&id]
    }

    pub fn take(&mut self, id: ServerId) -> Server<A> {
        self.servers.remove(&id).unwrap()
    }

    /// Those that run.
    pub fn running(&self) -> impl Iterator<Item = (ServerId, &Server<A>)> {
        self.servers.iter().map(|(id, server)| (*id, server))
    }

    pub async fn kill(&mut self, id: ServerId) {
        within("kill", self.take(id).kill()).await;
    }

    /// Waits until all that run serve under one leader, which runs too.
    pub async fn agreed(&self) -> Leader {
        let agreement = async {
            let mut watches: Vec<_> = self.servers.values().map(Server::leaders).collect();
            loop {
                let first = watches[0].led().await.unwrap();
                for watch in &mut watches[1..] {
                    watch.led().await.unwrap();
                }
                let runs = self.servers.contains_key(&first.0);
                if runs && self.servers.values().all(|server| server.leader() == Some(first)) {
                    return first;
                }
                // Wait for whoever is behind: its next change.
                watches = self.servers.values().map(Server::leaders).collect();
                tokio::task::yield_now().await;
            }
        };
        match tokio::time::timeout(PATIENCE, agreement).await {
            Ok(leader) => leader,
            Err(_) => {
                let all: Vec<_> = self.servers.values().map(Server::status).collect();
                panic!("no agreement in {PATIENCE:?}: {all:#?}");
            }
        }
    }
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
