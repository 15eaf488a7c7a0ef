//! `quorate probe`: asks the servers of an ensemble for their view of the election, on their election ports.
//!
//! ```text
//!   ask ── one answer per server ──► compare ── views, and where they disagree ──► page, or JSON
//! ```
//!
//! No permission and no client port is needed: a server answers the notification of a non-member that
//! has no vote with its own vote, state, round and configuration; ZooKeeper since 3.5 as well as quorate.
//!
//! What is sent must not harm Java servers, which are sensitive to it:
//!
//! - the introduction goes out in one write, with a port that exists;
//! - the id is larger than any server's, or the server would hang up and dial the probe back;
//! - the configuration is well-formed and has voters: an empty one ends the thread that receives
//!   notifications, if `standaloneEnabled=false`;
//! - the vote can't win: LOOKING in round 0, without a candidate and without a history.
//!
//! A port that speaks TLS tells nothing to a program without a certificate. With `--tls` it is asked through TLS; what
//! it shows is told in any case.
//!
//! What it does not do: it never takes part in an election, and it does not wait until all have answered.

mod ask;
mod compare;
mod page;

pub(crate) use self::compare::{Belief, View};

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use serde::Serialize;
use tokio::task::JoinError;

pub(crate) use self::ask::{AskError, Asked, ask, look, speaks_tls};
use self::compare::{Finding, compare};
use self::page::table;
use crate::address::address;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::peer_tls::{PeerTls, PeerTlsArguments};

/// Ask election ports what their servers believe.
///
/// Works on any ZooKeeper server since 3.5, too, and changes nothing there. Exits with 0 if those that
/// answered agree on a leader, 1 if they do not, or are no quorum while others could not be reached, 3 if none answered.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Election ports (the last port of a server.N line, 3888 mostly).
    #[arg(required = true, value_name = "HOST:PORT", value_parser = address)]
    servers: Vec<HostPort>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// How long to wait for each answer.
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
    /// The id to introduce the probe with: larger than any server's, and no other probe's. Random if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(256..i64::MAX))]
    id: Option<i64>,
    #[command(flatten)]
    tls: PeerTlsArguments,
}

/// Asks all at once, and prints what they answered.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let patience = Duration::from_millis(arguments.timeout);
    let tls = arguments.tls.open()?;
    let views = ask_all(arguments.servers, arguments.id, patience, tls).await;
    let findings = compare(&views);
    let reached = views.iter().any(|view| view.answer.is_some());
    let agree = reached && findings.is_empty();
    let text = if arguments.json {
        let report = Report { servers: &views, findings: &findings, agree };
        format!("{}\n", serde_json::to_string(&report).map_err(|e| Failure::failed(e.to_string()))?)
    } else {
        table(&views, &findings, Paint::stdout())
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    if !reached {
        return Err(Failure::unreachable("no server could be reached"));
    }
    if agree { Ok(()) } else { Err(Failure::failed("")) }
}

/// What each of these servers believes; `id` is that of the probe, random if absent.
pub(crate) async fn ask_all(
    servers: Vec<HostPort>,
    id: Option<i64>,
    patience: Duration,
    tls: Option<PeerTls>,
) -> Vec<View> {
    let id = ServerId(id.unwrap_or_else(random_id));
    let asked: Vec<_> = servers
        .into_iter()
        .map(|at| {
            let question = ask(at.clone(), id, patience, tls.clone());
            (at, tokio::spawn(question))
        })
        .collect();
    let mut views = Vec::new();
    for (at, answer) in asked {
        let failed = |error: JoinError| Asked { answer: Err(error.into()), served: Vec::new() };
        views.push(View::new(&at, answer.await.unwrap_or_else(failed)));
    }
    views
}

/// An id so large that the connection which the probe dials is the one that stays; most likely not
/// even another probe's.
pub(crate) fn random_id() -> i64 {
    let random = RandomState::new().hash_one(std::process::id());
    (1 << 62) | i64::try_from(random >> 3).unwrap_or(0)
}
#[derive(Debug, Serialize)]
struct Report<'a> {
    servers: &'a [View],
    findings: &'a [Finding],
    agree: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_id_is_large_and_not_reserved() {
        let id = random_id();
        assert!(id > i64::MAX / 2 && id < i64::MAX, "{id}");
    }
}
