//! `quorate serve`: one server in the foreground, from a `zoo.cfg`.
//!
//! Everything is checked before anything is opened: a file that cannot be understood is a usage error
//! (exit code 2), a port or directory that is not to be had a failure (1). SIGINT and SIGTERM end the
//! server in order: its leadership goes to another, its clients go a share at a time (`quorate.shed`), and its peers look for
//! another leader at once; a second one ends it without.
//!
//! It is a ZooKeeper server: it holds the data tree, as the Java servers of its ensemble do, and serves clients at the
//! client port, four-letter words among what it answers, see [`four_letter`]; and HTTP where the file says so, see
//! [`crate::admin`].

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use quorate_http::{Limits, Pages, Port};
use quorate_service::{DigestAlgorithm, Options, Words, ZooKeeper};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::zoo_cfg::{HttpSettings, JavaVersion, JvmFlags, ZooCfg};
use quorate_tokio::{Changes, Server, ServerConfig, StartError, Tokio, start_with};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::admin::Admin;
use crate::event::{ChangeLine, Line};
use crate::failure::Failure;
use crate::four_letter;
use crate::operator::OperatorSocket;
use crate::recover;
use crate::supervisor;
use crate::threads::thread;

/// Run one server in the foreground, as a zoo.cfg says.
///
/// At the client port, if there is one, ZooKeeper's clients are served. Of the four-letter words ruok, srvr, stat, conf and
/// mntr are answered there; 4lw.commands.whitelist says which others. With reconfigEnabled=true,
/// `quorate reconfig` reaches it by a socket in dataDir.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The zoo.cfg.
    #[arg(value_name = "FILE", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The same.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Write each change of vote, state, round and phase to stdout, as one JSON object per line.
    #[arg(long)]
    json: bool,
    /// What to log, such as "debug" or "quorate_driver=debug"; before RUST_LOG. "info" if neither.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// End when stdin does, so that a server never survives the program that started it.
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// `quorate serve`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let begun = Instant::now();
    crate::logs::start(arguments.log.as_deref(), "info")?;
    let Some(file) = arguments.file.or(arguments.config) else {
        return Err(Failure::usage("which zoo.cfg?"));
    };
    let flags = JvmFlags::of_environment();
    let cfg =
        ZooCfg::read_with(&file, &flags).map_err(|error| Failure::usage(error.to_string()))?;
    for warning in &cfg.warnings {
        if warning.is_notice() {
            tracing::info!("{warning}");
        } else {
            tracing::warn!("{warning}");
        }
    }
    tracing::info!("{}", cfg.derived());
    recover::warn(&cfg.data_dir);

    let mut config = ServerConfig::from(cfg.clone());
    // That of our own line the server finds there itself, now and when it changes.
    if let Some(address) = cfg.client_address.as_ref().filter(|_| cfg.own().client.is_none()) {
        config.client_addresses = resolve(address).await?;
    }
    let responder = Arc::new(four_letter::Responder::new(cfg.clone()));
    let pages = open_pages(&cfg).await?;
    let zookeeper = ZooKeeper::with(options(&cfg, Arc::clone(&responder)));
    let server = supervisor::starting(start_with(config, zookeeper)).await.map_err(|error| {
        if matches!(
            error,
            StartError::Config(_) | StartError::NotAMember(_) | StartError::NotAlone { .. }
        ) {
            Failure::usage(format!("{}: {error}", file.display()))
        } else {
            Failure::failed(error.to_string())
        }
    })?;
    if arguments.json {
        write_changes(server.changes(), begun)?;
    }
    if cfg.reconfig_enabled {
        match OperatorSocket::open(&cfg.data_dir) {
            Ok(socket) => drop(tokio::spawn(socket.serve(server.clone()))),
            Err(error) => tracing::warn!(%error, "`quorate reconfig` cannot reach this server"),
        }
    }
    responder.on_started(server.clone());
    if let Some(pages) = pages {
        pages.started(&Tokio, server.clone());
    }
    for address in server.client_addrs() {
        tracing::info!(%address, "serving ZooKeeper clients");
    }
    supervisor::started(&server);
    until_told(server, arguments.until_stdin_ends).await
}

/// Opens the ports for HTTP that the file asks for: a port that is not to be had is an error. They answer at once.
async fn open_pages(cfg: &ZooCfg) -> Result<Option<Pages<Tokio, ZooKeeper, Admin>>, Failure> {
    let HttpSettings { admin, metrics, probes } = &cfg.http;
    if admin.is_none() && metrics.is_none() && probes.is_none() {
        return Ok(None);
    }
    let pages = Pages::with(Admin::new(cfg.clone()), cfg.sync_time());
    let whole =
        Limits { idle: admin.as_ref().map_or(IDLE, |admin| admin.idle), ..Limits::default() };
    let admin = admin.as_ref().map(|admin| (&admin.address, "admin server", pages.clone(), whole));
    let metrics =
        metrics.as_ref().map(|at| (at, "metrics", pages.only_metrics(), Limits::default()));
    let probes = probes.as_ref().map(|at| (at, "probes", pages.only_probes(), Limits::default()));
    for (address, what, pages, limits) in [admin, metrics, probes].into_iter().flatten() {
        let failed =
            |error| Failure::failed(format!("cannot listen at {address} ({what}): {error}"));
        for at in resolve(address).await? {
            let port = Port::open(Tokio, at).await.map_err(failed)?;
            tracing::info!(address = %port.local_addr(), "{what} over HTTP");
            drop(tokio::spawn(port.serve(Arc::new(pages.clone()), limits)));
        }
    }
    Ok(Some(pages))
}

/// The settings of the service.
fn options(cfg: &ZooCfg, beneath: Arc<four_letter::Responder>) -> Options {
    let clients = &cfg.clients;
    let words = match cfg.four_letter_words.iter().any(|word| word == "*") {
        true => Words::All,
        false => Words::Some(cfg.four_letter_words.clone()),
    };
    Options {
        session_timeout_min: clients.session_timeout_min,
        session_timeout_max: clients.session_timeout_max,
        outstanding_max: clients.outstanding_max,
        event_zxids: clients.oldest_java.is_some_and(JavaVersion::has_event_zxids),
        create2_in_multi: clients.oldest_java.is_some_and(JavaVersion::knows_create2_in_multi),
        leader_serves: clients.leader_serves,
        watches_per_client_max: any_for_none(clients.watches_per_client_max),
        watches_max: any_for_none(clients.watches_max),
        super_digest: clients.super_digest.clone(),
        skip_acl: clients.skip_acl,
        eager_acl_check: clients.eager_acl,
        throttled_requests_max: clients.throttled_requests_max,
        drop_stale: clients.drop_stale,
        digest_algorithm: DigestAlgorithm::named(&clients.digest_algorithm).unwrap_or_default(),
        tree_digests: clients.tree_digests,
        containers_per_minute: clients.containers_per_minute,
        container_unused_max: clients.container_unused_max,
        extended_types: clients.extended_types,
        words,
        container_interval: clients.container_interval,
        beneath: Some(beneath),
    }
}

/// A limit, of which 0 is none.
const fn any_for_none(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// Where to listen for clients.
async fn resolve(address: &HostPort) -> Result<Vec<SocketAddr>, Failure> {
    if address.host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified()) {
        // For IPv4 too, where the system has both.
        let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        let any: IpAddr =
            if both { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        return Ok(vec![SocketAddr::new(any, address.port)]);
    }
    match tokio::net::lookup_host((address.host.as_str(), address.port)).await {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(Failure::failed(format!("cannot listen at {address}: {error}"))),
    }
}

/// Waits for a signal, or for the server to end by itself.
async fn until_told(server: Server<ZooKeeper>, until_stdin_ends: bool) -> Result<(), Failure> {
    let no_signals = |error| Failure::failed(format!("cannot wait for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut stdin = until_stdin_ends.then(stdin_end).transpose()?;
    let mut told = async || {
        let stdin = async {
            match &mut stdin {
                Some(end) => drop(end.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => tracing::info!("SIGINT"),
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            () = stdin => tracing::info!("stdin has ended"),
        }
        supervisor::stopping();
    };
    let ended = tokio::select! {
        ended = server.finished() => ended,
        () = told() => tokio::select! {
            ended = server.shutdown() => ended,
            _ = interrupt.recv() => return Err(Failure::interrupted()),
            _ = terminate.recv() => return Err(Failure::interrupted()),
        },
    };
    ended.map_err(|error| Failure::failed(error.to_string()))
}

/// Says when stdin has ended. A thread of its own: no runtime can wait for every kind of stdin.
fn stdin_end() -> Result<oneshot::Receiver<()>, Failure> {
    let (sender, end) = oneshot::channel();
    let wait = move || {
        let mut rest = [0; 64];
        while io::stdin().read(&mut rest).is_ok_and(|read| read > 0) {}
        // The server has ended already.
        let _ = sender.send(());
    };
    thread("quorate-stdin", wait)?;
    Ok(end)
}

/// Writes changes to stdout from a thread of its own: the server never waits for the reader, which is told instead
/// how many were lost.
fn write_changes(mut changes: Changes, begun: Instant) -> Result<(), Failure> {
    let runtime = tokio::runtime::Handle::current();
    let write = move || {
        let mut lost = 0;
        while let Some(observed) = runtime.block_on(changes.next()) {
            let mut lines = Vec::new();
            if changes.lost() > lost {
                lost = changes.lost();
                lines.push(Line::Lost { changes: lost });
            }
            let at = observed.at.saturating_duration_since(begun);
            lines.push(Line::Change(ChangeLine::new(&observed, at)));
            let mut stdout = io::stdout().lock();
            for line in lines {
                let Ok(text) = serde_json::to_string(&line) else { continue };
                if writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_err() {
                    return;
                }
            }
        }
    };
    thread("quorate-changes", write)
}

/// How long a connection for HTTP may be without a request, unless the file says so.
const IDLE: Duration = Duration::from_secs(30);
