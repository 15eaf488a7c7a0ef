//! The reports of the demo's servers, as they come: their changes, and their end. They also open and close the way for
//! clients.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use quorate_tokio::Changes;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::sync::mpsc::UnboundedSender;

use super::connection::{Connection, Pipe, Roster};
use crate::event::{ChangeLine, Line};

/// A report of a server, or its end.
#[derive(Debug)]
pub(super) struct Seen {
    /// When: by the server's own clock if it runs in this process, else when it arrived here.
    pub(super) at: Instant,
    /// Of which server.
    pub(super) server: i64,
    /// In which of its lives.
    pub(super) life: u32,
    /// What it says.
    pub(super) news: News,
}

/// See [`Seen`].
#[derive(Debug)]
pub(super) enum News {
    /// A change.
    Change(ChangeLine),
    /// It changed faster than this program could read: so many changes are not known.
    Lost(u64),
    /// It has ended; the last line of its log.
    Ended(String),
}

/// Lets clients in while a server serves.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) id: i64,
    pub(super) life: u32,
    pub(super) connection: Connection,
    pub(super) roster: Roster,
}

impl Gate {
    fn open(&self, serving: bool) {
        if serving { self.roster.enter(self.id, self.life, &self.connection) } else { self.close() }
    }

    fn close(&self) {
        self.roster.leave(self.id, self.life);
    }
}

/// Forwards the reports of a server in this process.
pub(super) async fn forward(
    mut changes: Changes,
    server: i64,
    life: u32,
    begun: Instant,
    to: UnboundedSender<Seen>,
    gate: Option<Gate>,
) {
    while let Some(observed) = changes.next().await {
        if let Some(gate) = &gate {
            gate.open(observed.status.serving);
        }
        let at = observed.at;
        let line = ChangeLine::new(&observed, at.saturating_duration_since(begun));
        let lost = changes.lost();
        let news = if lost > 0 { News::Lost(lost) } else { News::Change(line) };
        if to.send(Seen { at, server, life, news }).is_err() {
            return;
        }
    }
    if let Some(gate) = gate {
        gate.close();
    }
    let news = News::Ended("see the log: set RUST_LOG=info".to_owned());
    // Without a receiver, the demo has ended.
    drop(to.send(Seen { at: Instant::now(), server, life, news }));
}

/// Forwards the reports that the process of a server writes.
pub(super) async fn read(
    stdout: ChildStdout,
    server: i64,
    life: u32,
    log: PathBuf,
    to: UnboundedSender<Seen>,
    gate: Option<(Gate, Arc<Pipe>)>,
) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let at = Instant::now();
        if let (Some((_, pipe)), Ok(answer)) = (&gate, line.parse()) {
            pipe.answered(answer);
            continue;
        }
        let news = match serde_json::from_str(&line) {
            Ok(Line::Change(line)) => {
                if let Some((gate, _)) = &gate {
                    gate.open(line.serving);
                }
                News::Change(line)
            }
            Ok(Line::Lost { changes }) => News::Lost(changes),
            Err(error) => News::Ended(format!("{line} cannot be read: {error}")),
        };
        if to.send(Seen { at, server, life, news }).is_err() {
            return;
        }
    }
    if let Some((gate, pipe)) = gate {
        gate.close();
        pipe.close();
    }
    let logged = fs::read_to_string(log).unwrap_or_default();
    let last = logged.lines().last().unwrap_or("without a word").to_owned();
    // Without a receiver, the demo has ended.
    drop(to.send(Seen { at: Instant::now(), server, life, news: News::Ended(last) }));
}
