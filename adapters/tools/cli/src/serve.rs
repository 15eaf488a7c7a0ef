//! `quorate serve`: one server in the foreground, from a `zoo.cfg`.
//!
//! Everything is checked before anything is opened: a file that cannot be understood is a usage error
//! (exit code 2), a port or directory that is not to be had a failure (1). SIGINT and SIGTERM end the
//! server in order, so that its peers look for another leader at once; a second one ends it without.
//!
//! It holds ZooKeeper's data tree, as the Java servers of its ensemble do. What it does not do: it serves
//! no ZooKeeper clients. On the client port it answers four-letter words, see [`four_letter`].

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use quorate_service::ZooKeeper;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Changes, Server, StartError, start_with};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::event::{ChangeLine, Line};
use crate::failure::Failure;
use crate::four_letter;
use crate::operator::OperatorSocket;

/// Run one server in the foreground, as a zoo.cfg says.
///
/// On the client port, if there is one, ZooKeeper's four-letter words ruok, srvr, stat, conf and mntr
/// are answered; 4lw.commands.whitelist says which, if not all of them. With reconfigEnabled=true,
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
    let cfg = ZooCfg::read(&file).map_err(|error| Failure::usage(error.to_string()))?;
    for warning in &cfg.warnings {
        if warning.is_notice() {
            tracing::info!("{warning}");
        } else {
            tracing::warn!("{warning}");
        }
    }
    tracing::info!("{}", cfg.derived());

    let client_port = match &cfg.client_address {
        Some(address) => Some(four_letter::ClientPort::open(address).await?),
        None => None,
    };
    let server = start_with(cfg.clone(), ZooKeeper::new()).await.map_err(|error| {
        if matches!(error, StartError::Config(_) | StartError::NotAMember(_)) {
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
    if let Some(client_port) = client_port {
        let responder = Arc::new(four_letter::Responder::new(cfg, server.clone()));
        tokio::spawn(client_port.serve(responder));
    }
    until_told(server, arguments.until_stdin_ends).await
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

/// Starts a detached thread.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    // Detached: it ends with the process.
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot start a thread: {error}"))),
    }
}
