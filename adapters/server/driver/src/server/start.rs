//! Starts a server: opens what it needs, and puts its parts together.
//!
//! ```text
//!   Server ──► Handle ── quit, asks ──►  loop ◄── events ── links, dials, listeners
//!          ──► Published ◄─────────────  loop ── writes ──► disk thread
//! ```
//!
//! A server is one loop task, one task for each listening address, one for each connection, and one
//! thread for the disk; while an application is slow, one for that. They end with the loop: when
//! [`Server::finished`] returns, its ports are free and its data directory is unlocked.

use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_channel::{Receiver, bounded};
use quorate_application::Application;
use quorate_application::clients::{Clients, Host};
use quorate_core::id::ServerId;
use quorate_core::membership::Member;
use quorate_core::peer::Peer;
use quorate_core::recorder::Recorder;
use quorate_leadership::LeadershipGate;
use quorate_storage::Found;

use crate::config::{MembershipFiles, ServerConfig};
use crate::disk::Faults;
#[cfg(feature = "tls")]
use crate::drive::Renewing;
use crate::drive::{Asks, Driver, Quit, elections_at};
use crate::error::StartError;
use crate::host::replica::{Replica, ReplicaParts};
use crate::host::service::clock;
use crate::inbox::Inbox;
use crate::measures::{Measures, Took};
use crate::net::client_port::{self, ClientSockets};
use crate::net::client_tls::ClientSecure;
use crate::net::codec::ElectionCodec;
use crate::net::events::{LoopEvent, Shared};
use crate::net::listen::{self, Bound};
use crate::net::member_addresses::MemberAddresses;
use crate::net::member_names;
use crate::net::resolve::Resolver;
use crate::net::sasl::Logins;
use crate::net::tls::Secure;
use crate::permits::Permits;
use crate::proposals::Proposals;
use crate::runtime::Runtime;
use crate::server::clients;
use crate::server::handle::{Handle, Server};
use crate::server::network::{Around, looks_for_members, network, secure};
use crate::server::open::{Ready, Recalled, check_alone, open, open_again, start_disk};
use crate::server::run::ServerTask;
use crate::server::wake::wake;
use crate::status::Published;
use crate::task_group::TaskGroup;
use crate::wall_clock::Steps;

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

    /// The same, and a recorder is given everything that the protocol hears and does here: a flight recorder.
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
        config.core.keeps_sessions = A::Clients::SERVES;
        config.core.check()?;
        let told = config.clone();
        let mut recalled = Recalled::new(config)?;
        let mut data = open(&recalled.config, application).await?;
        recalled.take_over(&mut data.log, &mut data.found)?;
        recalled.say_what_binds();
        let own = recalled.own_line().ok_or(StartError::NotAMember(told.core.id))?;
        let Recalled { config, kept, .. } = recalled;
        let bound = match config.alone {
            true => Vec::new(),
            false => listen::bind(&runtime, &config, &own).await?,
        };
        let bound_for_clients = match A::Clients::SERVES {
            true => client_port::bind(&runtime, &config, &own).await?,
            false => ClientSockets::none(),
        };
        let secure = secure(&config).await?;
        let resolver = Resolver::default();
        let members = MemberAddresses::default();
        members.know(iter::once(&config.core.membership).chain(&config.core.next_membership));
        if looks_for_members(&config) {
            let by = (&runtime, &resolver);
            member_names::look_up(&members, by, config.connect_timeout).await;
        }
        let names = (members, resolver);
        let for_clients = (bound_for_clients, clients::secure(&config).await?);
        let logins = Logins::open(config.sasl.clone().filter(|_| !config.alone)).await?;
        let opened = Opened { told, data, kept, bound, for_clients, own, secure, logins, names };
        assemble(runtime, &config, opened, recorder)
    }
}

/// What a start has opened.
struct Opened<R: Runtime, A: Application> {
    /// The configuration before what was kept of the membership.
    told: ServerConfig,
    data: Ready<A>,
    kept: MembershipFiles,
    bound: Vec<Bound<R>>,
    for_clients: (ClientSockets<R>, Option<Arc<ClientSecure>>),
    /// Our line in the membership.
    own: Member,
    secure: Option<Arc<Secure>>,
    logins: Option<Arc<Logins>>,
    /// Where the members are, and what looks for them.
    names: (MemberAddresses, Resolver),
}

/// What connects the loop with the tasks around it: the loop's ends, and where tasks are spawned.
struct Wires<R> {
    runtime: R,
    shared: Arc<Shared>,
    gate: Arc<LeadershipGate>,
    events: Receiver<LoopEvent>,
    quit: Receiver<Quit>,
    acceptors: TaskGroup<R>,
    links: TaskGroup<R>,
    client: i64,
}

/// Puts the parts together and sets them going.
fn assemble<R: Runtime, A: Application>(
    runtime: R,
    config: &ServerConfig,
    mut opened: Opened<R, A>,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<Server<R, A>, StartError> {
    let (sender, events) = bounded(EVENTS_MAX);
    let (quit_sender, quit) = bounded(QUITS_MAX);
    let (alive, ended) = bounded(1);
    let (acceptors, acceptor_handle) = TaskGroup::new(runtime.clone());
    let (links, link_handle) = TaskGroup::new(runtime.clone());
    let client = session(config.core.id);
    let gate = Arc::new(LeadershipGate::new(wake(&sender)));
    let (codec, patience) =
        (ElectionCodec::of(&config.core.election), config.core.timing.init_time());
    let mut shared = Shared::new(config.core.id, sender, patience, codec);
    shared.members = std::mem::take(&mut opened.names.0);
    shared.packet_bytes_max = config.core.limits.read_bytes();
    shared.is_audited = config.audit.is_some();
    let shared = Arc::new(shared);
    let wires =
        Wires { runtime: runtime.clone(), shared, gate, events, quit, acceptors, links, client };
    let driver = driver(config, opened, wires, recorder)?;
    let outcome = Arc::new(OnceLock::new());
    let handle = Handle {
        runtime: runtime.clone(),
        shared: Arc::clone(&driver.shared),
        client_addrs: Arc::clone(&driver.clients.place.addrs),
        secure_client_addrs: driver.clients.place.secure_addrs(),
        client_limit: Arc::clone(&driver.clients.place.limit),
        published: Arc::clone(&driver.published),
        quit: quit_sender,
        ended,
        outcome: Arc::clone(&outcome),
        asks: Arc::clone(&driver.asks.inbox),
        gate: Arc::clone(&driver.gate),
        permits: Permits::new(config.core.history.requests),
        looks: Permits::new(LOOKS_MAX),
        patience: config.patience,
        client,
        requests: AtomicI32::new(1),
    };
    let task = ServerTask {
        listeners: acceptor_handle,
        links: link_handle,
        outcome,
        published: Arc::clone(&driver.published),
        gate: Arc::clone(&driver.gate),
    };
    runtime.spawn(async move {
        task.run(driver).await;
        drop(alive);
    });
    Ok(Server { handle: Arc::new(handle) })
}

/// The loop, with its disk, its application and its connections.
fn driver<R: Runtime, A: Application>(
    config: &ServerConfig,
    opened: Opened<R, A>,
    wires: Wires<R>,
    mut recorder: Option<Box<dyn Recorder>>,
) -> Result<Box<Driver<R, A>>, StartError> {
    let Opened { told, data, kept, bound, for_clients, own, secure, logins, names } = opened;
    let Ready { log, found: Found { durable, .. }, mut application, staged, remembered, opened } =
        data;
    let Wires { runtime, shared, gate, events, quit, acceptors, links, client } = wires;
    let origin = runtime.now();
    if let Some(recorder) = &mut recorder {
        recorder.starts(&config.core, &durable);
    }
    // With the seed and the inputs the same run can be had again.
    tracing::info!(
        event = "server.starting",
        sid = config.core.id.0,
        seed = config.core.seed,
        "server starts"
    );
    let peer = Peer::new(config.core.clone(), durable)?;
    check_alone(config, peer.config())?;
    let measures: Arc<Measures> = Arc::default();
    let disk = start_disk(config, log, kept, Arc::clone(&measures), links.keep_alive())?;
    let measured = Arc::clone(&measures);
    let reopen =
        move |remains, keep_alive| open_again(&told, remains, Arc::clone(&measured), keep_alive);
    measures.took(Took::Open, opened.whole);
    if let Some(restore) = opened.restore {
        measures.took(Took::Restore, restore);
    }
    measures.took(Took::ReadLog, opened.whole.saturating_sub(opened.restore.unwrap_or_default()));
    measures.saw(Took::Found, opened.behind);
    let proposals = Proposals::new(Arc::clone(&measures), config.core.id);
    let published = Published::new(
        peer.status(),
        &peer.config().membership,
        config.changes_kept,
        origin,
        measures,
    );
    let published = Arc::new(published);
    let host = Host {
        id: config.core.id,
        tick: config.core.timing.tick,
        frame_bytes_max: config.core.limits.request_bytes,
        txn_bytes_max: config.core.limits.txn_bytes,
        remembered,
    };
    let service = application.clients(host);
    let framing = service.framing();
    let groups = (&acceptors, &links);
    let snapshots = disk.handle().dirs().snapshots.clone();
    let clients = clients::serve(config, &shared, groups, framing, for_clients, &own, snapshots)?;
    let replica = Replica::new(ReplicaParts {
        application,
        clients: service,
        clock: clock(runtime.clone(), origin),
        staged,
        client,
        txn_bytes_max: config.core.limits.txn_bytes,
        alone: config.alone,
        disk: disk.handle(),
        inbox: Arc::new(Inbox::new(wake(&shared.events))),
        keep_alive: links.keep_alive(),
    });
    let asks = Arc::new(Inbox::new(wake(&shared.events)));
    let groups = (acceptors, links);
    let around = Around { secure: &secure, logins: &logins, resolver: names.1 };
    let (listeners, dialler) = network(config, &shared, around, groups, bound);
    Ok(Box::new(Driver {
        runtime,
        peer,
        recorder,
        origin,
        shared,
        events,
        quit,
        disk,
        dialler,
        links: BTreeMap::new(),
        releasing: None,
        replica,
        clients,
        client_shed: config.client_shed,
        asks: Asks { inbox: asks, taken: Vec::new() },
        published,
        gate,
        transfer: None,
        proposals,
        warn_at: None,
        publish_at: None,
        wall_steps: Steps::default(),
        ending: false,
        outage: None,
        reopen: Arc::new(reopen),
        disk_faults: Faults::default(),
        disk_retry: config.disk_retry,
        oracle: None,
        secure,
        known: (i64::MIN, None),
        #[cfg(feature = "tls")]
        renewing: Renewing::of(config.core.id),
        listeners,
        elections_at: elections_at(&own, config.multi_address),
        multi_address: config.multi_address,
    }))
}

/// A session id, made as ZooKeeper makes them: the server's id, the time in milliseconds, and room to
/// count.
fn session(id: ServerId) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = now.as_secs().wrapping_mul(1000).wrapping_add(u64::from(now.subsec_millis()));
    let time = (millis << 24) >> 8;
    i64::from_be_bytes((time | (id.0.unsigned_abs() << 56)).to_be_bytes())
}

/// How many events may wait for the loop; beyond, readers wait.
const EVENTS_MAX: usize = 256;
/// How many operators may look at once.
const LOOKS_MAX: usize = 64;
/// Room to be told to quit gracefully and then, all the same, at once.
const QUITS_MAX: usize = 8;
