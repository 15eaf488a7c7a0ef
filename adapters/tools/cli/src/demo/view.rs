//! The output of a demo while it runs: text for people, lines of JSON for programs.
//!
//! Everything is written by a thread of its own: a slow terminal must not slow an election down.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde::Serialize;

use super::table::{Row, Summary};
use crate::event::{ChangeLine, Line, Stage, State, What};
use crate::paint::Paint;

/// A step of the demo.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Step {
    /// The ensemble is set up, no server runs.
    Begun {
        at_ms: f64,
        servers: usize,
        processes: bool,
        /// Whether there is TLS around the links between them.
        tls: bool,
        dir: String,
    },
    /// Servers are started for the first time.
    Started { at_ms: f64, servers: Vec<i64> },
    /// A leader serves with a synchronised quorum.
    Led {
        at_ms: f64,
        leader: i64,
        epoch: i64,
        /// Which kill this ends; 0 for the start.
        kill: usize,
        took_ms: f64,
    },
    /// The leader is killed.
    Killed {
        at_ms: f64,
        server: i64,
        epoch: i64,
        kill: usize,
        of: u32,
        /// It was stopped with SIGSTOP, and its connections stay open.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    },
    /// The leader is asked to transfer its leadership.
    #[serde(rename = "handed_over")]
    Transferred {
        at_ms: f64,
        server: i64,
        to: i64,
        epoch: i64,
        #[serde(rename = "transfer")]
        transfer: usize,
        of: u32,
    },
    /// The dead server is started again.
    Restarted { at_ms: f64, server: i64, kill: usize },
    /// It serves again.
    Rejoined { at_ms: f64, server: i64, kill: usize, took_ms: f64 },
    /// Clients begin to write.
    Loaded { at_ms: f64, clients: usize, payload_bytes: usize },
    /// Clients have their sessions, nodes and watches.
    Attended { at_ms: f64, sessions: usize, timeout_ms: f64 },
    /// An acknowledged write was taken out of a server's log, to be found missing.
    #[serde(rename = "planted")]
    LossInjected { at_ms: f64, write: u64, server: i64 },
    /// The servers' disks do not hold what was acknowledged.
    Found { at_ms: f64, found: String },
    /// Something did not happen that had to.
    Failed { at_ms: f64, error: String },
}

/// The last line of JSON.
#[derive(Serialize)]
struct Last<'a> {
    summary: &'a Summary,
}

#[derive(Debug)]
enum Item {
    Change(Box<ChangeLine>),
    Step(Step),
    End { summary: Box<Summary>, rows: Vec<Row>, failed: bool },
}

/// Where to write what happens.
#[derive(Debug)]
pub(super) struct View {
    items: Option<Sender<Item>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl View {
    /// One JSON object per line.
    pub(super) fn json() -> Self {
        Self::start(|item, out| match item {
            Item::Change(line) => json(out, &Line::Change(*line)),
            Item::Step(step) => json(out, &step),
            Item::End { summary, .. } => json(out, &Last { summary: &summary }),
        })
    }

    /// For people.
    pub(super) fn text(paint: Paint) -> Self {
        Self::start(move |item, out| match item {
            Item::Change(line) => match describe(&line, paint) {
                Some(line) => writeln!(out, "{line}"),
                None => Ok(()),
            },
            Item::Step(step) => writeln!(out, "{}", announce(&step, paint)),
            Item::End { summary, rows, failed } => {
                writeln!(out)?;
                for line in summary.table(&rows, paint) {
                    writeln!(out, "{line}")?;
                }
                if !failed {
                    writeln!(out, "\n{}", paint.well(&summary.sentence()))?;
                    if let Some(comparison) = summary.comparison() {
                        writeln!(out, "{}", paint.well(&comparison))?;
                    }
                }
                Ok(())
            }
        })
    }

    fn start(
        mut write: impl FnMut(Item, &mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let (items, queue): (_, Receiver<Item>) = channel();
        let work = move || {
            for item in queue {
                let mut out = io::stdout().lock();
                match write(item, &mut out).and_then(|()| out.flush()) {
                    Ok(()) => {}
                    // A reader that has gone wants no more.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        match std::thread::Builder::new().name("quorate-view".to_owned()).spawn(work) {
            Ok(writer) => Self { items: Some(items), writer: Some(writer) },
            Err(_) => Self { items: None, writer: None },
        }
    }

    /// A server has changed.
    pub(super) fn change(&self, line: ChangeLine) {
        self.show(Item::Change(Box::new(line)));
    }

    /// The demo goes on.
    pub(super) fn step(&self, step: Step) {
        self.show(Item::Step(step));
    }

    /// All is over; returns when it is written, or with why it could not be.
    pub(super) fn end(&mut self, summary: Summary, rows: Vec<Row>, failed: bool) -> io::Result<()> {
        self.show(Item::End { summary: Box::new(summary), rows, failed });
        self.items = None;
        // It panics on nothing.
        self.writer.take().map_or(Ok(()), |writer| writer.join().unwrap_or(Ok(())))
    }

    fn show(&self, item: Item) {
        if let Some(items) = &self.items {
            // The reader of our output has gone: nothing to do.
            drop(items.send(item));
        }
    }
}

fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(value)?)
}

/// A heading.
fn announce(step: &Step, paint: Paint) -> String {
    let at = |at_ms: f64| paint.faint(&format!("{at_ms:>11.3}"));
    let name = |id: i64| paint.server(id, &format!("server {id:<3}"));
    match step {
        Step::Begun { servers, processes, tls, dir, .. } => {
            let kind = if *processes { "each in a process of its own" } else { "in one process" };
            let tls = if *tls { ", with TLS between them" } else { "" };
            let text = format!("{servers} servers {kind}{tls}, on loopback; data in {dir}");
            let head = format!(
                "{:>11}  {:<10}  {:<32}  {:>5}  {:>5}  why",
                "ms", "", "what", "round", "epoch"
            );
            format!("{}\n\n{}", paint.strong(&text), paint.faint(&head))
        }
        Step::Started { at_ms, servers } => {
            format!("{}  {}", at(*at_ms), paint.strong(&format!("start {} servers", servers.len())))
        }
        Step::Led { at_ms, leader, epoch, took_ms, kill } => {
            let since = if *kill == 0 { "start" } else { "end of the last leadership" };
            let text = format!(
                "LEADS epoch {epoch} with a synchronised quorum, {took_ms:.3} ms after the {since}"
            );
            format!("{}  {}  {}", at(*at_ms), name(*leader), paint.well(&text))
        }
        Step::Killed { at_ms, server, epoch, kill, of, silent } => {
            let how = if *silent { "SILENCED" } else { "KILLED" };
            let text = format!("{how} while it leads epoch {epoch} ({kill} of {of})");
            format!("\n{}  {}  {}", at(*at_ms), name(*server), paint.alarm(&text))
        }
        Step::Transferred { at_ms, server, to, epoch, transfer, of } => {
            let text = format!(
                "TRANSFERS leadership of epoch {epoch} to server {to} ({transfer} of {of})"
            );
            format!("\n{}  {}  {}", at(*at_ms), name(*server), paint.alarm(&text))
        }
        Step::Restarted { at_ms, server, .. } => {
            format!("{}  {}  {}", at(*at_ms), name(*server), paint.strong("restarted on its data"))
        }
        Step::Rejoined { at_ms, server, took_ms, .. } => {
            let text = format!("REJOINED {took_ms:.3} ms after its restart");
            format!("{}  {}  {}", at(*at_ms), name(*server), paint.well(&text))
        }
        Step::Loaded { at_ms, clients, payload_bytes } => {
            let text = format!("{clients} clients begin to write, {payload_bytes} bytes at a time");
            format!("{}  {}", at(*at_ms), paint.strong(&text))
        }
        Step::Attended { at_ms, sessions, timeout_ms } => {
            let text = format!(
                "{sessions} clients have a session of {timeout_ms} ms, an ephemeral node and watches each, and write"
            );
            format!("{}  {}", at(*at_ms), paint.strong(&text))
        }
        Step::LossInjected { at_ms, write, server } => {
            let text = format!("write {write} taken out of its log, to be found missing");
            format!("\n{}  {}  {}", at(*at_ms), name(*server), paint.alarm(&text))
        }
        Step::Found { at_ms, found } => {
            format!("{}  {}", at(*at_ms), paint.alarm(&format!("FOUND: {found}")))
        }
        Step::Failed { at_ms, error } => {
            format!("{}  {}", at(*at_ms), paint.alarm(&format!("FAILED: {error}")))
        }
    }
}

/// A server's change; none for what only repeats another line.
fn describe(line: &ChangeLine, paint: Paint) -> Option<String> {
    let leader = line.leader.map_or(String::new(), |id| id.to_string());
    let (what, loud) = match line.change {
        What::State if line.to == "LOOKING" => ("LOOKING for a leader".to_owned(), true),
        What::State if line.to == "LEADING" => ("LEADING, elected".to_owned(), true),
        What::State => (format!("{} {leader}", line.to), true),
        What::Vote => match (line.vote.leader, line.vote.peer_epoch, &line.vote.zxid) {
            (Some(id), Some(epoch), Some(zxid)) => {
                (format!("votes {id} (epoch {epoch}, zxid {zxid})"), false)
            }
            _ => ("abstains".to_owned(), false),
        },
        What::Round => (format!("round {}", line.to), false),
        What::Phase if line.to == "broadcast" => {
            let role = if line.state == State::Leading { "leads" } else { "follows" };
            (format!("serves, {role}"), true)
        }
        What::Phase if line.phase == Stage::Election => return None,
        What::Phase => (line.to.clone(), false),
        What::AcceptedEpoch => (format!("promises epoch {}", line.to), false),
        What::CurrentEpoch => (format!("history of epoch {}", line.to), false),
        What::Configuration => (format!("configuration {}", line.to), false),
        What::NextConfiguration => (format!("next configuration {}", line.to), false),
        What::Sync => (format!("brings up {}", line.to), false),
        What::Ignored => (format!("ignores the ACK of {}", line.to), false),
        What::Learner => (format!("learner {}", line.to), false),
    };
    let what = format!("{what:<32}");
    Some(format!(
        "{}  {}  {}  {:>5}  {:>5}  {}",
        paint.faint(&format!("{:>11.3}", line.at_ms)),
        paint.server(line.server, &format!("server {:<3}", line.server)),
        if loud { paint.strong(&what) } else { what },
        line.round,
        line.current_epoch,
        line.reason,
    ))
}
