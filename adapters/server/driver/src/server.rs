//! The handle that people embed, and the one place where a server is assembled.
//!
//! ```text
//!   Server ──► Handle ── quit, asks ──►  loop ◄── events ── links, dials, doors
//!          ──► Published ◄─────────────  loop ── writes ──► disk thread
//! ```
//!
//! A server is one loop task, one task for each listening address, one for each connection, and one
//! thread for the disk; while an application is slow, one for that. They end with the loop: when
//! [`Server::finished`] returns, its ports are free and its data directory is unlocked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_channel::{Receiver, Sender, bounded};
use bytes::Bytes;
use futures_channel::oneshot;
use futures_lite::FutureExt;
use futures_lite::future::{or, pending};
use quorate_application::Application;
use quorate_core::config::{Config, Election};
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_core::membership::{Member, Membership};
use quorate_core::message::Request;
use quorate_core::peer::Peer;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::recorder::Recorder;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;
use quorate_leadership::{LeadershipError, LeadershipGate};
use quorate_storage::error::FileError;
use quorate_storage::segments::{Roll, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotFile, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Found, Log, LogError, OpenOptions};

use crate::config::{Kept, ServerConfig};
use crate::disk::{Disk, Retain, write_state};
use crate::drive::{Asks, Driver, Quit, elections_at};
use crate::error::{ServerError, StartError};
use crate::net::codec::Tongue;
use crate::net::dial::{Dialler, UnderWay};
use crate::net::events::{Happened, Shared};
use crate::net::guests::Guests;
use crate::net::listen::{self, Doors, Entrance, Open};
use crate::net::oracle;
use crate::net::resolve::Resolver;
use crate::patience::Patience;
use crate::permits::Permits;
use crate::replica::{self, Beginning, Replica};
use crate::requests::{
    Ask, Doubt, HandOverError, Proposal, ProposeError, Proposed, ReadError, ReconfigureError, Tray,
    look, seen,
};
use crate::runtime::{Leadership, OnRuntime, Runtime};
use crate::status::{Changes, Leader, Leaders, Published, Status};
use crate::task_group::{Reins, Scope, closed};
use crate::threads::offload;

/// A running server of an ensemble, and the [`Application`] that it replicates.
///
/// Clones are the same server. It shuts down when the last one is dropped.
pub struct Server<R: Runtime, A: Application> {
    handle: Arc<Handle<R, A>>,
}

impl<R: Runtime, A: Application> Server<R, A> {
    /// Opens the data directory and both ports, restores the newest snapshot, and starts.
    /// `application` is in its first state, as before the first transaction.
    ///
    /// # Errors
    ///
    /// A [`StartError`] that names the value, file or address which is in the way. Nothing is left
    /// running or locked then. Dropping the future gives up; the directory may stay locked for another
    /// moment.
    pub async fn start(
        runtime: R,
        config: ServerConfig,
        application: A,
    ) -> Result<Self, StartError> {
        Box::pin(Self::launch(runtime, config, application, None)).await
    }

    /// The same, and somebody listens to everything that the protocol hears and does here: a flight recorder.
    /// It is called from the server's loop, between two steps, so whatever takes it long holds the server up.
    /// What it keeps can be gone through again with `quorate_sim::audit`.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub async fn start_recorded(
        runtime: R,
        config: ServerConfig,
        application: A,
        recorder: Box<dyn Recorder>,
    ) -> Result<Self, StartError> {
        Box::pin(Self::launch(runtime, config, application, Some(recorder))).await
    }

    // Boxed, as the driver is: futures of several kilobytes that are moved from call to call without
    // optimisation fill the stack of a thread that has others of their kind.
    async fn launch(
        runtime: R,
        config: ServerConfig,
        application: A,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Result<Self, StartError> {
        let mut config = config;
        config.core.oracle |= config.oracle_path.is_some();
        config.core.protocol = A::PROTOCOL;
        config.core.check()?;
        let id = config.core.id;
        let told = config.core.membership.clone();
        let mut kept = kept_files(&config);
        let unkept = |(path, source)| StartError::Membership { path, source };
        let [present, next] = kept.recall().map_err(unkept)?;
        adopt_kept(&mut config.core, present, next);
        // A server that is about to join, or was removed, knows where it listens only from what it is told.
        let own_line = |now: &Membership| {
            let own = now.member(id).or_else(|| told.member(id)).or(config.own_line.as_ref());
            own.cloned()
        };
        let own = own_line(&config.core.membership);
        if let Some(own) = own {
            kept.remember(own, config.core.membership.version());
        }
        let mut opened = open(&config, application).await?;
        if let Some(installed) = opened.found.installed.take() {
            kept.take_over(&installed).map_err(unkept)?;
            opened.log.memberships_kept()?;
            let read = |text: &Bytes| Membership::parse(text).ok();
            let next = installed.next.as_ref().and_then(read);
            config.core.next_membership = None;
            adopt_kept(&mut config.core, read(&installed.present), next);
        }
        say_what_binds(&config.core, &told);
        let own = own_line(&config.core.membership).ok_or(StartError::NotAMember(id))?;
        kept.remember(own.clone(), config.core.membership.version());
        let open = listen::bind(&runtime, &config, &own).await?;
        assemble(runtime, config, (opened, kept), open, &own, recorder)
    }

    /// Asks the ensemble for a transaction, whoever leads, and waits until it is agreed on and applied
    /// at this server. What [`read`](Self::read) or [`peek`](Self::peek) sees here afterwards has it.
    ///
    /// Where nobody leads it waits, and what surely did not happen because the leader changed is asked for
    /// again: until [`ServerConfig::patience`] is over. So what one program asks for at the same time may come
    /// to pass in another order. [`try_propose`](Self::try_propose) asks once. A request that is under way is
    /// waited for however long it takes.
    ///
    /// Waits its turn while as many are under way as
    /// [`HistoryLimits::requests`](quorate_core::config::HistoryLimits::requests) allows. Dropping the
    /// future does not take the request back.
    ///
    /// # Errors
    ///
    /// A [`ProposeError`]. Only [`ProposeError::Unknown`] leaves open whether it happened, and is never asked
    /// for a second time; after any other the request can be made again without being carried out twice.
    pub async fn propose(&self, proposal: impl Into<Proposal>) -> Result<Proposed, ProposeError> {
        let proposal = proposal.into();
        let mut patience = self.patience();
        loop {
            let error = match self.try_propose(proposal.clone()).await {
                Ok(proposed) => return Ok(proposed),
                Err(error) => error,
            };
            let Some(last) = error.setback() else { return Err(error) };
            patience.wait().await.map_err(|waited| ProposeError::Unserved { waited, last })?;
        }
    }

    /// The same, once: where nobody leads it is refused at once, and lost if the leader changes on the way.
    ///
    /// # Errors
    ///
    /// As [`Server::propose`].
    pub async fn try_propose(
        &self,
        proposal: impl Into<Proposal>,
    ) -> Result<Proposed, ProposeError> {
        let Proposal { op, body, identities } = proposal.into();
        let permit = self.handle.permits.take().await;
        let cxid = self.handle.requests.fetch_add(1, Ordering::Relaxed);
        let id = RequestId { client: self.handle.client, cxid };
        let request = Request { id, op, body, identities };
        let (answer, outcome) = oneshot::channel();
        if self.handle.asks.put(Ask::Propose { request, answer, permit }).is_err() {
            return Err(ProposeError::Ended);
        }
        outcome.await.unwrap_or(Err(ProposeError::Unknown(Doubt::Ended)))
    }

    /// Looks at the application when it has everything that was acknowledged anywhere in the ensemble
    /// before this call: a linearisable read. Costs an exchange with a quorum, and no write.
    ///
    /// Where nobody leads it waits, until [`ServerConfig::patience`] is over; [`try_read`](Self::try_read)
    /// asks once.
    ///
    /// The closure runs once, in order with transactions, and holds them up while it runs.
    ///
    /// # Errors
    ///
    /// A [`ReadError`], if this server does not serve in time, or has ended.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn read<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        // A try that comes to nothing has not used it.
        let closure = Arc::new(Mutex::new(Some(closure)));
        let mut patience = self.patience();
        loop {
            let closure = Arc::clone(&closure);
            let looked = self.try_read(move |application| {
                let closure = closure.lock().ok().and_then(|mut closure| closure.take());
                closure.map(|closure| closure(application))
            });
            let error = match looked.await {
                Ok(seen) => return seen.ok_or(ReadError::Ended),
                Err(error) => error,
            };
            let Some(last) = error.setback() else { return Err(error) };
            patience.wait().await.map_err(|waited| ReadError::Unserved { waited, last })?;
        }
    }

    /// The same, once: where nobody leads it is refused at once.
    ///
    /// # Errors
    ///
    /// A [`ReadError`], if this server does not serve, or ceases to.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn try_read<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let (look, receiver) = look(self.handle.permits.take().await, closure);
        if self.handle.asks.put(Ask::Read(look)).is_err() {
            return Err(ReadError::Ended);
        }
        seen(receiver).await
    }

    fn patience(&self) -> Patience<'_, R> {
        Patience::new(&self.handle.runtime, &self.handle.published, self.handle.patience)
    }

    /// Waits until everything that was acknowledged anywhere in the ensemble before this call is applied
    /// here. As ZooKeeper's `sync`, but whoever has been deposed without knowing it does not answer.
    ///
    /// # Errors
    ///
    /// As [`Server::read`].
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        self.read(|_| ()).await
    }

    /// Looks at the application as it is here and now: it may be behind the others, but never takes a
    /// step back. Needs no leader.
    ///
    /// # Errors
    ///
    /// A [`ReadError`], if there is nothing to see.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn peek<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let (look, receiver) = look(self.handle.permits.take().await, closure);
        if self.handle.asks.put(Ask::Peek(look)).is_err() {
            return Err(ReadError::Ended);
        }
        seen(receiver).await
    }

    /// Who it is.
    pub fn id(&self) -> ServerId {
        self.handle.shared.id
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        let Handle { published, shared, runtime, .. } = &*self.handle;
        published.status(&shared.counters, runtime.now())
    }

    /// Who leads and in which epoch, if this server serves under that leader or is it.
    pub fn leader(&self) -> Option<Leader> {
        self.handle.published.leader()
    }

    /// The leader now, and each change of leader from now on; the latest counts.
    pub fn leaders(&self) -> Leaders {
        self.handle.published.leaders()
    }

    /// Waits until this server serves, as leader or under one, and tells who leads: what a readiness probe
    /// wants to know.
    ///
    /// # Errors
    ///
    /// A [`ServerError`], if it ends before.
    pub async fn ready(&self) -> Result<Leader, ServerError> {
        match self.leaders().led().await {
            Some(leader) => Ok(leader),
            None => {
                self.finished().await?;
                Err(ServerError::Ended)
            }
        }
    }

    /// Asks whether the server is alive: returns as soon as its loop has turned. What a liveness probe wants
    /// to know, with a limit of its own: a server that has no leader is healthy.
    ///
    /// # Errors
    ///
    /// A [`ServerError`], if it has ended.
    pub async fn healthy(&self) -> Result<(), ServerError> {
        let (answer, pulse) = bounded(1);
        if self.handle.asks.put(Ask::Pulse(answer)).is_ok() && pulse.recv().await.is_ok() {
            return Ok(());
        }
        self.finished().await?;
        Err(ServerError::Ended)
    }

    /// Every change of vote, state, round and phase from now on, with its reason. A reader that does
    /// not keep up loses the oldest; the server never waits for it.
    pub fn changes(&self) -> Changes {
        self.handle.published.changes()
    }

    /// Waits until this server leads an established ensemble, and keeps the seat until the guard is dropped,
    /// as far as that is up to this server.
    ///
    /// Dropping the future is harmless: nothing is taken before it is ready.
    ///
    /// # Errors
    ///
    /// If the server ends before.
    pub async fn leadership(&self) -> Result<Leadership<R>, LeadershipError> {
        self.handle.seat.acquire(&OnRuntime(self.handle.runtime.clone())).await
    }

    /// The same, for a limited time.
    ///
    /// # Errors
    ///
    /// If the server ends before, or does not come to lead within `limit`.
    pub async fn leadership_within(
        &self,
        limit: Duration,
    ) -> Result<Leadership<R>, LeadershipError> {
        let elapsed = async {
            self.handle.runtime.sleep(limit).await;
            Err(LeadershipError::Elapsed(limit))
        };
        or(self.leadership(), elapsed).await
    }

    /// Changes who belongs to the ensemble, whoever leads, and waits until that is in force at this server;
    /// returns the version of the new membership. The ensemble goes on serving; where the leader leaves, the
    /// next one takes over without an election.
    ///
    /// A server that joins is started before, told its own line and those of the others: it follows without a
    /// vote, and is brought up, until it is made a member. One that leaves follows on without a vote, until
    /// it is shut down.
    ///
    /// # Errors
    ///
    /// A [`ReconfigureError`].
    pub async fn reconfigure(&self, asked: &Reconfiguration) -> Result<i64, ReconfigureError> {
        let (op, body) = (Request::RECONFIGURE, asked.encode());
        match self.propose(Proposal { op, body, identities: None }).await {
            Ok(proposed) => Ok(proposed.zxid.0),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands the seat of the leader over to a follower, which is sent what it lacks before; returns when it
    /// has taken it, its reign about to begin. Requests and reads made here meanwhile wait, no longer than a
    /// few exchanges of messages take. So do reads at other servers; a request that one of them has sent
    /// here too late to be done is [lost](ProposeError::Lost), which is certain, and may be made again.
    ///
    /// Whoever holds a [`Leadership`] here is told first, and waited for. Dropping the future does not call
    /// the hand-over off.
    ///
    /// # Errors
    ///
    /// Why the seat stays here; then the reign goes on as if nothing had happened.
    pub async fn hand_over(&self, to: ServerId) -> Result<(), HandOverError> {
        let (answer, outcome) = bounded(1);
        if self.handle.asks.put(Ask::HandOver { to: Some(to), answer }).is_err() {
            return Err(HandOverError::Ended);
        }
        outcome.recv().await.map_err(|_| HandOverError::Ended)??;
        Ok(())
    }

    /// Asks a leader to give up its seat: it goes to the follower that is wished most to lead and has most.
    /// Where nobody can take it over, a new election begins, which may elect this server again. Does
    /// nothing elsewhere.
    pub async fn step_down(&self) {
        // Nobody listens: it has ended.
        drop(self.handle.shared.events.send(Happened::Event(Event::StepDown)).await);
    }

    /// Ends it in order: a leader hands its seat over first, if somebody can take it; then it closes its
    /// links, so that the others need not find out, and waits until its ports are free and its data
    /// directory is unlocked.
    ///
    /// # Errors
    ///
    /// As [`Server::finished`].
    pub async fn shutdown(&self) -> Result<(), ServerError> {
        // Full: it has been told already.
        let _ = self.handle.quit.try_send(Quit::Gracefully);
        self.finished().await
    }

    /// Ends it at once, as if the process had been killed: nothing more is written to any link. Returns
    /// when it may be started again on the same ports and directory.
    pub async fn kill(&self) {
        let _ = self.handle.quit.try_send(Quit::AtOnce);
        closed(&self.handle.ended).await;
    }

    /// Waits until it has ended, and tells why.
    ///
    /// # Errors
    ///
    /// A [`ServerError`] unless it was asked to end.
    pub async fn finished(&self) -> Result<(), ServerError> {
        closed(&self.handle.ended).await;
        self.handle.outcome.get().cloned().unwrap_or(Err(ServerError::Aborted))
    }
}

impl<R: Runtime, A: Application> Clone for Server<R, A> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<R: Runtime, A: Application> fmt::Debug for Server<R, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("id", &self.id()).field("leader", &self.leader()).finish()
    }
}

/// What the clones of a server share. Dropping it closes `quit`, which shuts the server down.
struct Handle<R, A> {
    runtime: R,
    shared: Arc<Shared>,
    published: Arc<Published>,
    quit: Sender<Quit>,
    ended: Receiver<Infallible>,
    outcome: Arc<OnceLock<Result<(), ServerError>>>,
    asks: Arc<Tray<Ask<A>>>,
    seat: Arc<LeadershipGate>,
    /// Bounds what is under way.
    permits: Permits,
    /// How long requests and reads wait for service.
    patience: Duration,
    /// The session that requests come in, another one after each start.
    client: i64,
    /// How many have come.
    requests: AtomicI32,
}

/// A data directory, opened, and what it says the application's state is.
struct Ready<A: Application> {
    log: Log,
    found: Found,
    application: A,
    staged: Option<(Zxid, A::Staged)>,
}

/// How to open the data directory.
fn open_options(config: &ServerConfig) -> OpenOptions {
    let limits = &config.core.history;
    OpenOptions {
        data_log_dir: config.data_log_dir.clone(),
        autocreate: config.autocreate,
        voter: match config.core.election {
            Election::Fast => None,
            Election::Generation(_) => Some(config.core.id),
        },
        segments: SegmentOptions {
            preallocate: config.preallocate,
            roll: roll(config),
            txn_bytes_max: config.core.limits.read_bytes(),
            window_count: limits.window_count,
            window_bytes: limits.window_bytes,
            trust_empty_snapshot: config.trust_empty_snapshot,
            size_percent: limits.size_percent,
            ..SegmentOptions::default()
        },
    }
}

/// Where a changed membership is kept.
fn kept_files(config: &ServerConfig) -> Kept {
    Kept::new(&config.data_dir, config.dynamic_config_file.as_deref(), config.config_file.clone())
}

/// What to keep in it.
fn retain(config: &ServerConfig) -> Retain {
    Retain { snapshots: config.snapshots_kept.unwrap_or(usize::MAX), roll: roll(config) }
}

fn roll(config: &ServerConfig) -> Roll {
    Roll { records: config.core.history.snap_count, bytes: config.log_bytes }
}

/// Opening a directory and restoring a state may take a while; a runtime must not wait for it.
async fn open<A: Application>(
    config: &ServerConfig,
    application: A,
) -> Result<Ready<A>, StartError> {
    let (data_dir, mut options) = (config.data_dir.clone(), open_options(config));
    let work = move || loop {
        let (mut log, mut found) = Log::open(&data_dir, options.clone())?;
        let Some(snapshot) = &found.snapshot else {
            log.begin_with(first_snapshot(&log, &application)?)?;
            return Ok(Ready { log, found, application, staged: None });
        };
        match replica::restore::<A>(snapshot) {
            Ok(state) => {
                if let Some(text) = A::staged_membership(&state) {
                    let membership = Membership::parse(text).ok();
                    let label = snapshot.label;
                    let held = membership.filter(|held| held.version() <= label.0);
                    found.durable.changes.extend(held);
                }
                let staged = Some((snapshot.label, state));
                return Ok(Ready { log, found, application, staged });
            }
            // Perhaps the log leads to the end from an older one.
            Err(error) => {
                let SnapshotFile { path, label, .. } = snapshot;
                tracing::warn!(path = %path.display(), %error, "cannot restore a snapshot");
                options.segments.snapshot_before = Some(*label);
            }
        }
    };
    offload("quorate-open", work).await.map_err(StartError::Thread)?
}

/// Takes over what was kept of the membership and is newer than what the server was told, unless the operator has said
/// that it binds no more.
fn adopt_kept(core: &mut Config, present: Option<Membership>, next: Option<Membership>) {
    let forgotten = core.forgotten;
    let newer = |kept: &Membership, than: &Membership| {
        kept.version() > than.version() && (!kept.is_change() || kept.version() > forgotten)
    };
    if let Some(present) = present.filter(|kept| newer(kept, &core.membership)) {
        core.membership = present;
    }
    let next = next.filter(|kept| newer(kept, &core.membership));
    // Without reconfiguration only a change binds, not a version that some leader gave.
    let next = next.filter(|next| next.is_change() || core.reconfig_enabled);
    core.next_membership = next.or(core.next_membership.take());
}

/// An operator who has switched reconfiguration off may think that `zoo.cfg` tells the membership.
fn say_what_binds(core: &Config, told: &Membership) {
    let (membership, next) = (&core.membership, core.next_membership.as_ref());
    if !core.reconfig_enabled && (membership.is_change() || next.is_some()) {
        let version = next.unwrap_or(membership).version();
        tracing::warn!(
            version = format_args!("{version:x}"),
            told = format_args!("{:x}", told.version()),
            "reconfigEnabled is off, but this membership was changed while the ensemble ran, and binds this server; \
             a leader that does not know of it is not followed. To go by zoo.cfg again, only where the ensemble \
             is another one from here on: quorate.membership.forget={version:x}"
        );
    }
}

/// The state before the first transaction, for a directory that has none.
fn first_snapshot<A: Application>(
    log: &Log,
    application: &A,
) -> Result<StagedSnapshot<quorate_storage::Disk>, LogError> {
    let path = &log.dirs().snapshots;
    let mut file = SnapshotWriter::take(quorate_storage::Disk, path, Zxid::ZERO)?;
    write_state(application.snapshot(), &mut file).map_err(|source| FileError {
        action: "write a first snapshot to",
        path: path.clone(),
        source,
    })?;
    Ok(file.finish(Parts::default())?)
}

/// Puts the parts together and sets them going.
fn assemble<R: Runtime, A: Application>(
    runtime: R,
    config: ServerConfig,
    (opened, kept): (Ready<A>, Kept),
    open: Vec<Open<R>>,
    own: &Member,
    mut recorder: Option<Box<dyn Recorder>>,
) -> Result<Server<R, A>, StartError> {
    let (sender, events) = bounded(EVENTS_MAX);
    let (quit_sender, quit) = bounded(QUITS_MAX);
    let (alive, ended) = bounded(1);
    let (doors, door_reins) = Scope::new(runtime.clone());
    let (links, link_reins) = Scope::new(runtime.clone());
    let client = session(config.core.id);
    let permits = Permits::new(config.core.history.requests);
    let asks = Arc::new(Tray::new(sender.clone()));
    let bell = sender.clone();
    // Full: the loop is awake, and looks at the seat before it waits again.
    let seat = Arc::new(LeadershipGate::new(move || drop(bell.try_send(Happened::Rung))));
    let tray = Arc::new(Tray::new(sender.clone()));
    let tongue = Tongue::of(&config.core.election);
    let patience = config.core.timing.init_time();
    let mut shared = Shared::new(config.core.id, sender, patience, tongue);
    shared.packet_bytes_max = config.core.limits.read_bytes();
    let shared = Arc::new(shared);
    let patience = config.introduction_time();
    let tick = config.core.timing.tick;
    let origin = runtime.now();
    let Ready { log, found: Found { durable, .. }, application, staged } = opened;
    let retained = retain(&config);
    if let Some(recorder) = &mut recorder {
        recorder.starts(&config.core, &durable);
    }
    // With the seed and the inputs the same run can be had again.
    tracing::info!(sid = config.core.id.0, seed = config.core.seed, "server starts");
    let txn_bytes_max = config.core.limits.txn_bytes;
    let peer = Peer::new(config.core, durable)?;
    let published = Arc::new(Published::new(peer.status(), config.changes_kept, origin));
    let disk = Disk::start(log, kept, retained, config.fsync_warning, links.hold())
        .map_err(StartError::Thread)?;
    let replica = Replica::new(Beginning {
        application,
        staged,
        client,
        txn_bytes_max,
        disk: disk.handle(),
        tray,
        hold: links.hold(),
    });

    if let Some(path) = config.oracle_path {
        doors.spawn(oracle::watch(path, tick, Arc::clone(&shared), runtime.clone()));
    }
    let entrance = Entrance {
        shared: Arc::clone(&shared),
        doors: doors.clone(),
        links: links.clone(),
        pending: Arc::default(),
        guests: Arc::new(Guests::new(config.max_peer_connections)),
        patience,
    };
    let open = Doors::new(entrance, config.listen_on_all_ips, open);
    let dialler = Dialler {
        shared: Arc::clone(&shared),
        doors,
        links,
        timeout: config.connect_timeout,
        resolver: Resolver::default(),
        under_way: UnderWay::default(),
    };
    let driver = Box::new(Driver {
        runtime: runtime.clone(),
        peer,
        recorder,
        origin,
        shared: Arc::clone(&shared),
        events,
        quit,
        disk,
        dialler,
        links: BTreeMap::new(),
        lost: Vec::new(),
        releasing: None,
        replica,
        asks: Asks { tray: Arc::clone(&asks), taken: Vec::new(), reads: 0 },
        published: Arc::clone(&published),
        seat: Arc::clone(&seat),
        handing: None,
        complain_at: None,
        publish_at: None,
        ending: false,
        doors: open,
        elections_at: elections_at(own, config.multi_address),
        multi_address: config.multi_address,
    });
    let outcome = Arc::new(OnceLock::new());
    let life = Life {
        doors: door_reins,
        links: link_reins,
        outcome: Arc::clone(&outcome),
        published: Arc::clone(&published),
        seat: Arc::clone(&seat),
    };
    runtime.spawn(async move {
        life.live(driver).await;
        drop(alive);
    });
    let handle = Handle {
        runtime,
        shared,
        published,
        quit: quit_sender,
        ended,
        outcome,
        asks,
        seat,
        permits,
        patience: config.patience,
        client,
        requests: AtomicI32::new(1),
    };
    Ok(Server { handle: Arc::new(handle) })
}

/// A session id, made as ZooKeeper makes them: the server's id, the time in milliseconds, and room to
/// count.
fn session(id: ServerId) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = now.as_secs().wrapping_mul(1000).wrapping_add(u64::from(now.subsec_millis()));
    let time = (millis << 24) >> 8;
    i64::from_be_bytes((time | (id.0.unsigned_abs() << 56)).to_be_bytes())
}

/// From the first step to the last socket closed.
struct Life {
    doors: Reins,
    links: Reins,
    outcome: Arc<OnceLock<Result<(), ServerError>>>,
    published: Arc<Published>,
    seat: Arc<LeadershipGate>,
}

/// Also when the loop panics or the runtime drops it.
impl Drop for Life {
    fn drop(&mut self) {
        self.published.end();
        self.seat.end();
    }
}

impl Life {
    async fn live<R: Runtime, A: Application>(mut self, mut driver: Box<Driver<R, A>>) {
        let life = async {
            match driver.drive().await? {
                Quit::Gracefully => driver.give_way().await,
                Quit::AtOnce => Ok(Quit::AtOnce),
            }
        };
        // A panic of the application, or of ours, must not leave anything open either.
        let lived = AssertUnwindSafe(life).catch_unwind().await;
        let result = lived.unwrap_or(Err(ServerError::Aborted));
        // Nobody watches over it any more.
        self.seat.end();
        let sid = driver.shared.id.0;
        match &result {
            Ok(how) => tracing::info!(sid, ?how, "server ends"),
            Err(error) => tracing::error!(sid, %error, "server ends"),
        }
        // Doors first: a peer that loses its link to us and dials finds them closed, so that it need
        // not wait for us.
        self.doors.stop();
        self.doors.idle().await;
        match result {
            Ok(Quit::Gracefully) => driver.say_goodbye().await,
            Ok(Quit::AtOnce) | Err(ServerError::Aborted) => self.links.stop(),
            Err(_) => {}
        }
        let (runtime, quit) = (driver.runtime.clone(), driver.quit.clone());
        // The loop's ends of all links with it: each link writes what it has and closes.
        drop(driver);
        let at_once = async {
            loop {
                match quit.recv().await {
                    Ok(Quit::AtOnce) => return,
                    Ok(Quit::Gracefully) => {}
                    Err(_) => return pending().await,
                }
            }
        };
        or(self.links.idle(), or(at_once, runtime.sleep(GOODBYE_TIME))).await;
        self.links.stop();
        self.links.idle().await;
        // Set once, here.
        drop(self.outcome.set(result.map(|_| ())));
    }
}

/// How many events may wait for the loop; beyond, readers wait.
const EVENTS_MAX: usize = 256;
/// Room to be told to quit gracefully and then, all the same, at once.
const QUITS_MAX: usize = 8;
/// How long links may take all together to write their last bytes.
const GOODBYE_TIME: Duration = Duration::from_millis(1100);
