//! An ensemble on loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::task::Poll;

use quorate_core::address::HostPort;
use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::recorder::Recorder;
use tempfile::TempDir;

use super::free_ports::free_ports;
use super::journal::{App, Journal};
use super::stage::Stage;
use crate::{
    Application, Leader, Leaders, NoApplication, ReconfigureError, Replicated, Runtime, Server,
    ServerConfig, StartError,
};

impl<R: Runtime> Stage<R> {
    /// Voters 1..=n, then observers, that only elect; none started.
    pub fn electors(&self, voters: usize, observers: usize) -> Ensemble<R> {
        Ensemble::new(self, "127.0.0.1", [voters, observers], |_| NoApplication)
    }

    /// The same with a [`Journal`] each.
    pub fn journals(&self, voters: usize, observers: usize) -> Ensemble<R, App> {
        Ensemble::new(self, "127.0.0.1", [voters, observers], |_| {
            Replicated::new("journal", Journal::default())
        })
    }
}

type MakeRecorder = Box<dyn Fn(ServerId) -> Box<dyn Recorder>>;

/// Servers of one membership, each with its ports and its directory.
pub struct Ensemble<R: Runtime, A: Application = NoApplication> {
    pub membership: Membership,
    /// Changes each server's configuration.
    pub adjust: fn(&mut ServerConfig),
    stage: Stage<R>,
    application: Box<dyn Fn(ServerId) -> A>,
    recorder: Option<MakeRecorder>,
    servers: BTreeMap<ServerId, Server<R, A>>,
    dir: TempDir,
}

impl<R: Runtime, A: Application> fmt::Debug for Ensemble<R, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.servers).finish()
    }
}

impl<R: Runtime, A: Application> Ensemble<R, A> {
    /// Voters 1..=n, then observers, on a name of this machine; none started. Each start makes an
    /// application.
    pub fn new(
        stage: &Stage<R>,
        host: &str,
        [voters, observers]: [usize; 2],
        application: impl Fn(ServerId) -> A + 'static,
    ) -> Self {
        let ports = free_ports(2 * (voters + observers));
        let members = ports.chunks(2).zip(1_i64..).map(|(ports, id)| {
            let voter = usize::try_from(id).unwrap() <= voters;
            let role = if voter { Role::Participant } else { Role::Observer };
            Member::new(ServerId(id), role, ServerAddress::new(host, ports[0], ports[1]))
        });
        Self {
            membership: Membership::build(members, [], [], 0).unwrap(),
            adjust: |_| {},
            stage: stage.clone(),
            application: Box::new(application),
            recorder: None,
            servers: BTreeMap::new(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// Each start makes a recorder, too.
    pub fn record(&mut self, recorder: impl Fn(ServerId) -> Box<dyn Recorder> + 'static) {
        self.recorder = Some(Box::new(recorder));
    }

    pub fn ids(&self) -> Vec<ServerId> {
        self.membership.members().iter().map(|member| member.id).collect()
    }

    pub fn observers(&self) -> Vec<ServerId> {
        let members = self.membership.members().iter();
        members.filter(|member| member.role == Role::Observer).map(|member| member.id).collect()
    }

    /// The first one that is not among these.
    pub fn other_than(&self, some: &[ServerId]) -> ServerId {
        self.ids().into_iter().find(|id| !some.contains(id)).unwrap()
    }

    pub fn data_dir(&self, id: ServerId) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    /// Where one listens, as configured.
    pub fn port(&self, id: ServerId, plane: Plane) -> HostPort {
        let member = self.membership.member(id).unwrap();
        match plane {
            Plane::Election => member.election_address().clone(),
            Plane::Quorum => member.quorum_address().clone(),
        }
    }

    /// Connects to one as a non-member.
    pub async fn connect(&self, id: ServerId, plane: Plane) -> R::Stream {
        let HostPort { host, port } = self.port(id, plane);
        let at = SocketAddr::new(host.parse().unwrap(), port);
        self.stage.within("connect", self.stage.runtime(0).dial(at)).await.unwrap()
    }

    pub fn config(&self, id: ServerId) -> ServerConfig {
        let core = Config::new(id, self.membership.clone());
        let mut config = ServerConfig::new(core, self.data_dir(id));
        config.bind_tries = 1;
        (self.adjust)(&mut config);
        config
    }

    pub async fn try_start(&self, config: ServerConfig) -> Result<Server<R, A>, StartError> {
        let id = config.core.id;
        let application = (self.application)(id);
        let nth = usize::try_from(id.0 - 1).unwrap();
        let runtime = self.stage.runtime(nth).clone();
        match &self.recorder {
            None => Server::start(runtime, config, application).await,
            Some(recorder) => {
                Server::start_recorded(runtime, config, application, recorder(id)).await
            }
        }
    }

    pub async fn start(&mut self, id: ServerId) {
        self.start_as(self.config(id)).await;
    }

    /// Starts one with a configuration of its own.
    pub async fn start_as(&mut self, config: ServerConfig) {
        let id = config.core.id;
        let starting = self.try_start(config);
        let server = self.stage.within("start", starting).await.unwrap();
        self.servers.insert(id, server);
    }

    pub async fn start_all(&mut self) {
        for id in self.ids() {
            if !self.servers.contains_key(&id) {
                self.start(id).await;
            }
        }
    }

    pub fn server(&self, id: ServerId) -> &Server<R, A> {
        &self.servers[&id]
    }

    pub fn take(&mut self, id: ServerId) -> Server<R, A> {
        self.servers.remove(&id).unwrap()
    }

    /// Those that run.
    pub fn running(&self) -> impl Iterator<Item = (ServerId, &Server<R, A>)> {
        self.servers.iter().map(|(id, server)| (*id, server))
    }

    pub async fn kill(&mut self, id: ServerId) {
        let server = self.take(id);
        self.stage.within("kill", server.kill()).await;
    }

    /// Waits until all that run serve under one leader, which runs too.
    pub async fn agreed(&self) -> Leader {
        self.agreed_but_for(&[]).await
    }

    /// The same without asking some of them.
    pub async fn agreed_but_for(&self, silent: &[ServerId]) -> Leader {
        let asked = || self.running().filter(|(id, _)| !silent.contains(id));
        let agreement = async {
            let mut watches: Vec<_> = asked().map(|(_, server)| server.leaders()).collect();
            loop {
                let leaders: BTreeSet<_> = asked().map(|(_, server)| server.leader()).collect();
                if let (1, Some(Some(leader))) = (leaders.len(), leaders.first()) {
                    if self.servers.contains_key(&leader.0) {
                        return *leader;
                    }
                }
                any_of(watches.iter_mut().map(Leaders::next)).await.expect("a server has ended");
            }
        };
        self.stage.within("an agreement", agreement).await
    }
}

/// Asks until it is known what became of it.
pub(super) async fn insist<R: Runtime, A: Application>(
    server: &Server<R, A>,
    asked: Reconfiguration,
) {
    loop {
        match server.reconfigure(&asked).await {
            Ok(_) => return,
            // The leader was changed by the one before.
            Err(ReconfigureError::Propose(error)) if !error.may_have_happened() => {
                let _ = server.sync().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The outcome of whichever is done first.
pub(super) async fn any_of<T>(work: impl Iterator<Item = impl Future<Output = T>>) -> T {
    let mut work: Vec<_> = work.map(Box::pin).collect();
    poll_fn(|context| {
        let mut outcomes = work.iter_mut().map(|work| work.as_mut().poll(context));
        outcomes.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}
