//! `quorate serve`: one server in the foreground, from a `zoo.cfg`.
//!
//! Everything is checked before anything is opened: a file that cannot be understood is a usage error
//! (exit code 2), a port or directory that is not to be had a failure (1); [`crate::exit`] has the others. SIGINT and SIGTERM end the
//! server in order: its leadership goes to another, its clients go a share at a time (`quorate.shed`), and its peers look for
//! another leader at once; a second one ends it without.
//!
//! It is a ZooKeeper server: it holds the data tree, as the Java servers of its ensemble do, and serves clients at the
//! client port, four-letter words among what it answers, see [`four_letter`]; and HTTP where the file says so, see
//! [`crate::admin`].

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use clap::{Args, ValueEnum};
use quorate_servers::zookeeper;
use quorate_service::ZooKeeper;
use quorate_tokio::zoo_cfg::{JvmFlags, Loaded, LogFormat, ZooCfg};
use quorate_tokio::{Changes, Server, ServerConfig, Tokio};
use rustix::fs::Access;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::client_logins::ClientLogins;
use crate::control::Control;
use crate::event::{ChangeLine, Line};
use crate::exit;
use crate::failure::Failure;
use crate::four_letter;
use crate::http_ports;
use crate::in_force::InForce;
use crate::last_changes::{self, LastChanges};
use crate::listen_at::resolve;
use crate::logs::{JsonLine, Logs};
use crate::operator::OperatorSocket;
use crate::own_id::{self, OwnId};
use crate::process::keep_memory_private;
use crate::recover;
use crate::settings::options;
use crate::supervisor;
use crate::threads::thread;

/// Run one server in the foreground, as a zoo.cfg says.
///
/// At the client port, if there is one, ZooKeeper's clients are served. Of the four-letter words ruok, srvr, stat, conf and
/// mntr are answered there; 4lw.commands.whitelist says which others. `quorate admin`, and with reconfigEnabled=true
/// `quorate reconfig`, reach it by a socket in dataDir.
///
/// SIGTERM and SIGINT end it in order, SIGHUP has it read the file again, SIGUSR1 log more for ten minutes.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct Arguments {
    /// The zoo.cfg.
    #[arg(value_name = "FILE", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The same.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Whose number this server has, if dataDir has no myid yet, which is written then; another one there is refused.
    #[arg(long, value_name = "SOURCE")]
    myid: Option<OwnId>,
    /// Write each change of vote, state, round and phase to stdout, as one JSON object per line.
    #[arg(long)]
    json: bool,
    /// What to log, such as "debug" or "quorate_driver=debug"; before RUST_LOG and quorate.log.level. "info" if none.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// How to write it; before quorate.log.format. "text" if neither.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
    /// End when stdin does, so that a server never survives the program that started it.
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One flat JSON object a line, with ts, level, event, sid, more, and msg.
    Json,
}

/// `quorate serve`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let format = arguments.log_format.map(|format| match format {
        Format::Text => LogFormat::Text,
        Format::Json => LogFormat::Json,
    });
    // Before anything is read that is secret.
    keep_memory_private();
    let flags = JvmFlags::of_environment();
    let Some(file) = arguments.file.as_ref().or(arguments.config.as_ref()) else {
        return Err(Failure::usage("which zoo.cfg?"));
    };
    if let Some(OwnId::FromHostname) = arguments.myid {
        own_id::read(file, &flags)?;
    }
    let loaded = Loaded::read(file, &flags).map_err(|error| Failure::usage(error.to_string()));
    let (format, sid) = match &loaded {
        Ok(Loaded { cfg, .. }) => (format.unwrap_or(cfg.log.format), cfg.my_id.0),
        Err(_) => (format.unwrap_or_default(), 0),
    };
    let ended = match loaded {
        Ok(loaded) => serve(&arguments, (loaded, flags), format).await,
        Err(failure) => Err(failure),
    };
    ended.map_err(|failure| match format {
        LogFormat::Text => failure,
        LogFormat::Json => in_json(failure, sid),
    })
}

/// The last line of a log has the form of the others.
fn in_json(failure: Failure, sid: i64) -> Failure {
    let line = JsonLine {
        at: SystemTime::now(),
        level: "error",
        event: "server.failed",
        sid,
        fields: vec![("code", failure.code.into())],
        msg: failure.message,
    };
    Failure { code: failure.code, message: line.text() }
}

async fn serve(
    arguments: &Arguments,
    (loaded, flags): (Loaded, JvmFlags),
    format: LogFormat,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let cfg = &loaded.cfg;
    let level = cfg.log.level.as_deref();
    let logs = Logs::start(arguments.log.as_deref(), level, format, cfg.my_id.0)
        .map_err(|error| Failure::usage(error.to_string()))?;
    // Before there is a server they would end the process.
    let signals = Signals::open()?;
    say(cfg);
    check_writable(cfg)?;
    let mut config = ServerConfig::from(cfg.clone());
    config.changes_kept = config.changes_kept.max(last_changes::KEPT);
    // That of our own line the server finds there itself, now and when it changes.
    if let Some(address) = cfg.client_address.as_ref().filter(|_| cfg.own().client.is_none()) {
        config.client_addresses = resolve(address).await?;
    }
    #[cfg(feature = "tls")]
    if let (Some(tls), Some(address)) = (&mut config.client_tls, cfg.secure_client_address()) {
        tls.addresses = resolve(address).await?;
    }
    let in_force = InForce::new(cfg.clone());
    let responder = Arc::new(four_letter::Responder::new(in_force.clone()));
    let pages = http_ports::open(&in_force).await?;
    let beneath: Arc<four_letter::Responder> = Arc::clone(&responder);
    let (client_logins, sasl) =
        ClientLogins::read(cfg).map_err(|error| Failure::usage(error.to_string()))?;
    let tree = ZooKeeper::with(options(cfg, sasl, beneath));
    let starting = supervisor::starting(zookeeper::start(config, tree)).await;
    let server = starting.map_err(|error| {
        let (file, code) = (cfg.file.display(), exit::of_start(&error));
        let message = match code {
            2 => format!("{file}: {error}"),
            _ => error.to_string(),
        };
        Failure { code, message }
    })?;
    let changes = LastChanges::path_in(&cfg.data_dir);
    let changes = LastChanges::new(server.changes(), changes, cfg.my_id.0);
    if arguments.json {
        write_changes(server.changes(), begun)?;
    }
    let (reconfig, data_dir) = (cfg.reconfig_enabled, cfg.data_dir.clone());
    drop(tokio::spawn(client_logins.clone().watch(server.clone())));
    let control = Control::new(server.clone(), logs, (in_force, client_logins), (loaded, flags));
    match OperatorSocket::open(&data_dir) {
        Ok(socket) => {
            let snapshots = data_dir.join("version-2");
            drop(tokio::spawn(socket.serve(control.clone(), snapshots, reconfig)));
        }
        Err(error) => {
            let event = "operator.failed";
            tracing::warn!(event, %error, "`quorate admin` cannot reach this server");
        }
    }
    responder.on_started(server.clone());
    if let Some(pages) = pages {
        pages.started(&Tokio, server.clone());
    }
    for address in server.client_addrs() {
        tracing::info!(event = "server.serving", %address, "serving ZooKeeper clients");
    }
    for address in server.secure_client_addrs() {
        tracing::info!(event = "server.serving", %address, "serving ZooKeeper clients over TLS");
    }
    supervisor::started(&server);
    drop(tokio::spawn(signals.obey(control)));
    until_told(server, changes, arguments.until_stdin_ends).await
}

/// What the operator should know of the file.
fn say(cfg: &ZooCfg) {
    for warning in &cfg.warnings {
        let event = "config.warning";
        if warning.is_notice() {
            tracing::info!(event, "{warning}");
        } else {
            tracing::warn!(event, "{warning}");
        }
    }
    tracing::info!(event = "config.loaded", "{}", cfg.derived());
    recover::warn(&cfg.data_dir);
}

/// With `reconfigEnabled` the membership is written beside zoo.cfg, and beside the file that holds it, from the first leader
/// on. A server that may not would leave service again and again, as if its disk had failed.
fn check_writable(cfg: &ZooCfg) -> Result<(), Failure> {
    let files = [Some(&cfg.file), cfg.dynamic_config_file.as_ref()];
    for file in files.into_iter().flatten().filter(|_| cfg.reconfig_enabled) {
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        if let Err(error) = rustix::fs::access(dir, Access::WRITE_OK) {
            return Err(Failure::usage(format!(
                "{}: reconfigEnabled is on, and the membership cannot be written into {}: {error}. Put zoo.cfg into a \
                 directory in which the server's user may write, or switch it off",
                cfg.file.display(),
                dir.display()
            )));
        }
    }
    Ok(())
}

/// Signals that do not end it.
struct Signals {
    reload: Signal,
    debug: Signal,
}

impl Signals {
    fn open() -> Result<Self, Failure> {
        Ok(Self {
            reload: signal(SignalKind::hangup()).map_err(no_signals)?,
            debug: signal(SignalKind::user_defined1()).map_err(no_signals)?,
        })
    }

    /// Does what they ask for until the process ends.
    async fn obey(mut self, control: Control) {
        loop {
            tokio::select! {
                Some(()) = self.reload.recv() => drop(control.reload().await),
                Some(()) = self.debug.recv() => control.logs.toggle_debugging(),
                else => return,
            }
        }
    }
}

fn no_signals(error: io::Error) -> Failure {
    Failure::failed(format!("cannot wait for signals: {error}"))
}

/// Waits for a signal, or for the server to end by itself.
async fn until_told(
    server: Server<ZooKeeper>,
    changes: LastChanges,
    until_stdin_ends: bool,
) -> Result<(), Failure> {
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
            _ = interrupt.recv() => stopping("SIGINT"),
            _ = terminate.recv() => stopping("SIGTERM"),
            () = stdin => stopping("stdin has ended"),
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
    ended.map_err(|error| {
        let failure = Failure { code: exit::of_end(&error), message: error.to_string() };
        changes.write(&error);
        failure
    })
}

fn stopping(why: &str) {
    tracing::info!(event = "server.stopping", why, "{why}");
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
