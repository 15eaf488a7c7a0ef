//! `quorate demo`: an ensemble on this machine that loses its leader again and again, and how long that takes.
//!
//! ```text
//!   layout ─► ensemble ── news of all servers ──► plot: start, kill, wait, restart, wait ──► table
//!                                                   └── each change and step ──► view
//! ```
//!
//! Real sockets on loopback, real files in a temporary directory. Every time is taken from the servers'
//! own reports of their changes, never by asking in a loop: from the call that kills a leader to the
//! report that another one serves with a synchronised quorum.
//!
//! Under load, clients write through all servers meanwhile, and in the end every server's disk is
//! compared with every acknowledgement:
//!
//! ```text
//!   load ── writes ──► connection ──► ensemble        notes what was acknowledged
//!   audit: each server's log and snapshots, read back ──► lost, duplicated, diverged
//! ```
//!
//! With clients instead, real sessions go through the kills, and nothing that a server has promised them may be gone:
//!
//! ```text
//!   sessions ── sockets ──► the servers' client ports      notes what was lost: sessions, ephemeral nodes, watches
//! ```
//!
//! What it does not do: it injects no faults other than sudden death. That is the simulator's.

mod audit;
#[cfg(feature = "tls")]
mod certificates;
mod child;
mod connection;
mod ensemble;
mod error;
mod inject;
mod layout;
mod leaders;
mod ledger;
mod load;
mod news;
mod plot;
mod sessions;
mod spread;
mod table;
mod view;

use std::time::Duration;

use clap::{ArgGroup, Args};
use quorate_tokio::core::config::{Election, Generations};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::child::{Arguments as ServerArguments, run as serve};
use self::ensemble::Ensemble;
use self::layout::{Layout, Links, Placement, Purpose, Times};
use self::load::LoadConfig;
use self::plot::{Options, Plot};
use self::spread::Spread;
use self::view::View;
use crate::failure::Failure;
use crate::paint::Paint;
use quorate_servers::runtime::Kind;

/// Start an ensemble here, kill its leader again and again, and measure.
///
/// Each time the leader is stopped without a word; the survivors notice, elect another, and it takes
/// over; then the dead server is restarted on its own data and rejoins. Exits with 1 if any of that
/// fails or takes too long. With --load, clients write all the while, and in the end all servers' disks
/// are compared with every acknowledgement; exits with 1 if anything is lost or differs. With --clients, the
/// servers are ZooKeeper servers with so many clients each; exits with 1 if a session, an ephemeral node or
/// the event of a watch is lost. With
/// --transfer-leadership no server is killed: each leader transfers its leadership, and the longest time
/// without an acknowledged write is what clients notice of it. With --tls all this happens twice.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("writing").args(["load", "transfer_leadership"]).multiple(true))]
pub(crate) struct Arguments {
    /// How many servers.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u8).range(1..=63))]
    servers: u8,
    /// How often the leader is killed.
    #[arg(long, value_name = "K", default_value_t = 3)]
    kill_leader: u32,
    /// One JSON object per line and event; the last line is a summary.
    #[arg(long)]
    json: bool,
    /// Each server is a process of its own, and is killed with SIGKILL.
    #[arg(long)]
    processes: bool,
    /// Clients write through all servers the whole time; nothing may be lost.
    #[arg(long)]
    load: bool,
    /// Under load: instead of being killed, the leader transfers its leadership to the next server each time.
    #[arg(long, alias = "hand-over", conflicts_with = "processes")]
    transfer_leadership: bool,
    /// Under load: how many write, each one thing at a time.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "writing",
          value_parser = clap::value_parser!(u16).range(1..=2000))]
    writers: u16,
    /// So many clients of each server (200 if not said) with a session, an ephemeral node, 10 watches and a write
    /// each second; nothing of it may be lost.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "200",
          conflicts_with_all = ["load", "inject_loss"],
          value_parser = clap::value_parser!(u16).range(1..=2000))]
    clients: Option<u16>,
    /// How long each write is.
    #[arg(long, value_name = "BYTES", default_value_t = 100, requires = "writing",
          value_parser = clap::value_parser!(u32).range(8..=500_000))]
    payload: u32,
    /// To see that a loss is found: before the comparison, takes one acknowledged write out of one
    /// server's log file.
    #[arg(long, alias = "plant-loss", requires = "load")]
    inject_loss: bool,
    /// Everything twice: first without TLS, then with it on every link between servers, with certificates that are made
    /// on the spot; shows both failovers.
    #[cfg(feature = "tls")]
    #[arg(long)]
    tls: bool,
    /// The servers' tickTime.
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    tick_time: u64,
    /// The kind of election: ZooKeeper's, or by generation.
    #[arg(long, value_enum, default_value_t = ElectionKind::Fast)]
    election: ElectionKind,
    /// By generation: the shortest silence after which a leader is given up; the longest is twice as long.
    #[arg(long, value_name = "MS", default_value_t = 150,
          value_parser = clap::value_parser!(u64).range(4..=600_000))]
    election_timeout: u64,
    /// The leader is not killed but stopped with SIGSTOP: its connections stay open, and it falls silent.
    #[arg(long, requires = "processes")]
    silence: bool,
    /// What runs the servers. Others than tokio are there if built with `--features runtimes`.
    #[arg(long, value_enum, default_value_t = Kind::Tokio, requires = "processes", requires = "load")]
    runtime: Kind,
    /// How long each step may take before the demo gives up.
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
}

/// See [`Election`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ElectionKind {
    /// ZooKeeper's fast leader election.
    Fast,
    /// One vote for each server and generation, and heartbeats.
    Generation,
}

/// `quorate demo`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { servers, kill_leader: kills, transfer_leadership, .. } = arguments;
    if servers < 3 && kills > 0 && !transfer_leadership {
        return Err(Failure::usage(format!(
            "{servers} server(s) tolerate no failure, so none could lead after a kill: \
             take --servers 3 or more, or --kill-leader 0"
        )));
    }
    if std::env::var_os("RUST_LOG").is_some() {
        crate::logs::start(None, "off")?;
    }
    #[cfg(feature = "tls")]
    if arguments.tls {
        let plain = once(&arguments, Links::Plain).await?;
        once(&arguments, Links::Tls { plain }).await?;
        return Ok(());
    }
    once(&arguments, Links::Plain).await?;
    Ok(())
}

/// One ensemble, from its start to its end; how long its failovers took.
async fn once(arguments: &Arguments, links: Links) -> Result<Spread, Failure> {
    let Arguments { servers, kill_leader: kills, json, processes, tick_time, patience, .. } =
        *arguments;
    let placement = if processes { Placement::Processes } else { Placement::Embedded };
    let sessions = arguments.clients.map(usize::from);
    let loaded = arguments.load || (arguments.transfer_leadership && sessions.is_none());
    let load = loaded.then(|| LoadConfig {
        clients: arguments.writers.into(),
        payload: usize::try_from(arguments.payload).unwrap_or(usize::MAX),
    });
    let tick = Duration::from_millis(tick_time);
    let paint = Paint::stdout();
    let view = if json { View::json() } else { View::text(paint) };
    let timeout = Duration::from_millis(arguments.election_timeout);
    let election = match arguments.election {
        ElectionKind::Fast => Election::Fast,
        ElectionKind::Generation => Election::Generation(Generations::within(timeout, timeout * 2)),
    };
    let purpose = match (load, sessions) {
        (Some(_), _) => Purpose::Load(arguments.runtime),
        (None, Some(each)) => {
            sessions::allow_descriptors(each * usize::from(servers));
            Purpose::Sessions
        }
        (None, None) => Purpose::Elections,
    };
    let layout = Layout::new(placement, servers, Times { tick, election }, purpose, links)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let (ensemble, events) = Ensemble::new(layout);
    let options = Options {
        kills,
        transfer_leadership: arguments.transfer_leadership,
        silence: arguments.silence,
        patience: Duration::from_secs(patience),
        load,
        sessions,
        inject_loss: arguments.inject_loss,
    };
    let mut plot = Plot::new(ensemble, events, view, options);
    let outcome = tokio::select! {
        outcome = plot.play() => outcome,
        () = interrupted() => {
            plot.end().await;
            return Err(Failure::interrupted());
        }
    };
    plot.finish(outcome).await
}

/// Waits for a signal to end: processes and files of the demo must not stay behind.
async fn interrupted() {
    if let Ok(mut terminate) = signal(SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    drop(tokio::signal::ctrl_c().await);
}
