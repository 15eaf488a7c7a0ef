//! What servers really heard and did, gone through again under the checker's eyes.
//!
//! ```text
//!   World      ─┐                                        ┌─► the same Peer, stepped again: says the same?
//!   tokio       ├─ Recorder ──► Tape ──► Audit ── Entry ─┤
//!   smol        │   (one for each server)                └─► Checker: the rules, over all servers,
//!   async-std  ─┘                                             with disks and applications as told
//! ```
//!
//! The servers run wherever they like: in the simulated world, or on a runtime with real sockets, files and
//! clocks. All that is needed is what a [`Recorder`] of each of them heard, on one [`Tape`]. The audit
//! believes none of it:
//!
//! - each life is lived again by a `Peer` made of the same configuration and the same disk, and has to say
//!   the same to everything that it hears. Whatever a driver keeps from the core, or tells it in another
//!   way than it was recorded, comes out here;
//! - every rule of the [`Checker`] holds after every step, over the servers together. A disk
//!   holds what its server was told to be durable, no more: a leader that counted on an acknowledgement
//!   before that was given is found out by the order of the tape. What a server finds on its real
//!   disk when it starts again has to be what a crash can have left there.
//!
//! Not looked at: leases, since they compare clocks, and each life has its own; and what never comes to the
//! core, as the bytes of a snapshot. The application is taken to be one that counts as [`State`] does.

mod tape;

use std::collections::BTreeMap;

use quorate_core::config::{Config, ConfigError, Election};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input};
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::peer::Peer;
#[cfg(doc)]
use quorate_core::recorder::Recorder;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::application::{Application, KIND, State};
use crate::brief::Brief;
use crate::checker::{Around, Checker, Standing};
use crate::disk::{Contents, Disk};
use crate::ensemble::Ensemble;
use crate::record::Found;
use crate::rule::{Rule, Violation, broken};
pub use tape::{Entry, Tape, What};

/// Goes through a tape.
#[derive(Debug)]
pub struct Audit {
    checker: Checker,
    servers: BTreeMap<ServerId, Server>,
    /// The last snapshot that one server has sent to another.
    sent: BTreeMap<(ServerId, ServerId), State>,
    entries: usize,
    steps: usize,
}

/// One server, as far as the tape has told.
#[derive(Debug)]
struct Server {
    peer: Peer,
    brief: Brief,
    /// Whether it leads, and lets work begin.
    leads: bool,
    disk: Disk,
    application: Application,
    /// Snapshots that were asked for and are not known to be on disk.
    taken: Vec<State>,
    /// Behind what its application is reading the log.
    replaying: Option<Zxid>,
    /// Who is at the other end of a link, as far as that is known.
    peers: BTreeMap<LinkId, ServerId>,
    lives: u64,
}

/// Something on a tape that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("entry {entry} of the tape: {why}")]
pub struct Objection {
    /// Where, counted from 0.
    pub entry: usize,
    /// Why not.
    pub why: Why,
}

/// Why something on a tape cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// A rule is broken.
    #[error(transparent)]
    Broken(#[from] Violation),
    /// The same server, told the same, says something else.
    #[error(
        "server {server} hears {event:?} and its {nth}th output is {recorded:?}; told again, it is {again:?}"
    )]
    Differs {
        /// Who.
        server: ServerId,
        /// What it heard.
        event: Box<Event>,
        /// The first of its outputs that differs, counted from 0.
        nth: usize,
        /// What was recorded; none if there was less.
        recorded: Option<Box<Output>>,
        /// What it says now; none if that is less.
        again: Option<Box<Output>>,
    },
    /// It cannot have started.
    #[error("server {server} starts with a configuration that cannot work: {source}")]
    Config {
        /// Who.
        server: ServerId,
        /// Why not.
        source: ConfigError,
    },
    /// It takes a step before it has started.
    #[error("server {0} takes a step, and has not started")]
    NotStarted(ServerId),
}

impl Audit {
    /// Before the first entry; the disks of this ensemble's servers are empty.
    pub fn new(ensemble: Ensemble) -> Self {
        Self {
            checker: Checker::new(ensemble, &BTreeMap::new()),
            servers: BTreeMap::new(),
            sent: BTreeMap::new(),
            entries: 0,
            steps: 0,
        }
    }

    /// Goes through a whole tape.
    ///
    /// # Errors
    ///
    /// The first [`Objection`].
    pub fn of(ensemble: Ensemble, tape: &[Entry]) -> Result<Self, Objection> {
        let mut audit = Self::new(ensemble);
        for entry in tape {
            audit.go_on(entry)?;
        }
        audit.end()?;
        Ok(audit)
    }

    /// Looks at the next entry.
    ///
    /// # Errors
    ///
    /// If it cannot be.
    pub fn go_on(&mut self, entry: &Entry) -> Result<(), Objection> {
        let looked_at = match &entry.what {
            What::Start { config, durable } => self.on_start(entry.server, config, durable),
            What::Step { input, outputs } => self.on_step(entry.server, input, outputs),
        };
        looked_at.map_err(|why| Objection { entry: self.entries, why })?;
        self.entries += 1;
        Ok(())
    }

    /// Nothing follows: whether one order explains all reads and writes.
    ///
    /// # Errors
    ///
    /// If none does.
    pub fn end(&self) -> Result<(), Objection> {
        let ended = self.checker.ledger.on_end();
        ended.map_err(|broken| Objection { entry: self.entries, why: broken.into() })?;
        Ok(())
    }

    /// How many inputs were told again.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How often servers have started.
    pub fn lives(&self) -> u64 {
        self.servers.values().map(|server| server.lives).sum()
    }

    /// What the checker has seen.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The state that a server's application is in, by what it was told; none if it never started.
    pub fn state(&self, id: i64) -> Option<&State> {
        self.servers.get(&ServerId(id)).map(|server| &server.application.state)
    }

    fn on_start(&mut self, id: ServerId, config: &Config, durable: &Durable) -> Result<(), Why> {
        let cannot = |source| Why::Config { server: id, source };
        let peer = Peer::new(config.clone(), durable.clone()).map_err(cannot)?;
        self.checker.by_generation = config.election != Election::Fast;
        self.checker.may_change |= config.reconfig_enabled;
        let mut before = self.servers.remove(&id);
        let (disk, lives) = match &mut before {
            None => (self.found(id, Disk::new(Contents::default()), &[], durable)?, 0),
            Some(server) => {
                self.checker.ledger.on_crash(id);
                let disk = std::mem::replace(&mut server.disk, Disk::new(Contents::default()));
                (self.found(id, disk, &server.taken, durable)?, server.lives)
            }
        };
        self.checker.on_start(id, disk.durable())?;
        let server = Server {
            brief: Brief::of(&peer.status()),
            peer,
            leads: false,
            application: Application::new(disk.durable().snapshots.last().cloned()),
            disk,
            taken: Vec::new(),
            replaying: None,
            peers: BTreeMap::new(),
            lives: lives + 1,
        };
        self.servers.insert(id, server);
        Ok(())
    }

    /// The disk with which a server starts again: some of what was under way has become durable, in its
    /// order, and it is just what was found.
    fn found(
        &mut self,
        id: ServerId,
        mut disk: Disk,
        taken: &[State],
        durable: &Durable,
    ) -> Result<Disk, Violation> {
        let Some(survived) = disk.survive(|contents| contents.is(durable)) else {
            let (found, held) = (Found::from(durable), disk.durable().durable(0));
            let held = Found::from(&held);
            let detail = format!("starts with {found:?}, and a crash can leave {held:?} or more");
            return broken(Rule::Durability, id, detail);
        };
        for done in &survived {
            self.checker.on_durable(id, done)?;
        }
        for state in taken.iter().filter(|state| state.label <= durable.snapshot) {
            disk.publish(state, usize::MAX);
        }
        disk.tidy(durable.floor, durable.snapshot);
        let snapshot = disk.durable().durable(0).snapshot;
        if snapshot != durable.snapshot {
            let detail = format!("starts from a snapshot of {}, not {snapshot}", durable.snapshot);
            return broken(Rule::Durability, id, detail);
        }
        Ok(disk)
    }

    fn on_step(&mut self, id: ServerId, input: &Input, outputs: &[Output]) -> Result<(), Why> {
        self.on_event(id, &input.event)?;
        let server = self.servers.get_mut(&id).ok_or(Why::NotStarted(id))?;
        let again = server.peer.step(input.clone());
        self.steps += 1;
        if let Some(nth) = difference(outputs, &again) {
            return Err(Why::Differs {
                server: id,
                event: Box::new(input.event.clone()),
                nth,
                recorded: outputs.get(nth).cloned().map(Box::new),
                again: again.get(nth).cloned().map(Box::new),
            });
        }
        let status = server.peer.status();
        let before = std::mem::replace(&mut server.brief, Brief::of(&status));
        let standing = Standing::of(Some(before), &status, outputs);
        let begins = server.peer.leadership().is_some() && !server.leads;
        server.leads = server.peer.leadership().is_some();
        self.checker.on_step(id, &status, outputs)?;
        if begins {
            self.checker.leases.on_begun(id, status.current_epoch, false)?;
        }
        // What a leader commits is committed, whatever becomes of its outputs.
        if standing.commits() {
            self.judge_commits(id, standing)?;
        }
        for output in outputs {
            self.on_output(id, output, standing)?;
        }
        self.judge_commits(id, standing)?;
        Ok(())
    }

    fn judge_commits(&mut self, id: ServerId, standing: Standing) -> Result<(), Violation> {
        let Self { checker, servers, .. } = self;
        if let Some(Server { peer, disk, .. }) = servers.get(&id) {
            checker.on_committed(id, peer.committed(), standing, disk)?;
        }
        Ok(())
    }

    /// What an event says of the disk, of the application and of clients.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others say nothing of those")]
    fn on_event(&mut self, id: ServerId, event: &Event) -> Result<(), Why> {
        let Self { checker, servers, sent, .. } = self;
        let server = servers.get_mut(&id).ok_or(Why::NotStarted(id))?;
        match event {
            Event::Persisted(ticket) => {
                let Some(durable) = server.disk.complete_through(*ticket) else {
                    let detail =
                        format!("is told that {ticket} is durable, which is not under way");
                    return Err(Violation { rule: Rule::Boundary, server: id, detail }.into());
                };
                for done in &durable {
                    checker.on_durable(id, done)?;
                }
            }
            Event::SnapshotTaken(label) => {
                let Server { taken, disk, .. } = server;
                taken
                    .iter()
                    .filter(|state| state.label <= *label)
                    .for_each(|s| disk.publish(s, usize::MAX));
                taken.retain(|state| state.label > *label);
            }
            Event::Replayed { through, .. } => {
                let Server { application, disk, replaying, lives, .. } = server;
                let after = replaying.take().unwrap_or(*through);
                for txn in disk.durable().range(after, *through) {
                    let in_turn = application.apply(txn);
                    checker.on_applied(id, txn, *lives, in_turn)?;
                }
            }
            Event::LinkUp(up) => server.peers.extend(up.peer.map(|peer| (up.link, peer))),
            Event::Received {
                link,
                message: Message::Packet(Packet::FollowerInfo(info) | Packet::ObserverInfo(info)),
            } => server.peers.extend(info.id.map(|peer| (*link, peer))),
            Event::Restored { link, .. } => {
                let from = server.peers.get(link).copied();
                let (_, label) = server.application.receiving.take().unwrap_or((*link, Zxid::ZERO));
                let came = from.and_then(|from| sent.get(&(from, id)));
                let Some(state) = came.filter(|state| state.label == label) else {
                    let detail = format!("has a snapshot of {label}, and {from:?} has sent none");
                    return Err(Violation { rule: Rule::Snapshot, server: id, detail }.into());
                };
                server.application.received = Some(state.clone());
                server.disk.stage(state.clone());
            }
            Event::Propose(request) => {
                let cell = request.body.first().copied().filter(|_| request.op == KIND);
                checker.ledger.on_asked((id, server.lives), request.id, cell);
            }
            // Which cell a client looks at is not known here; any will do.
            Event::Read(read) => checker.ledger.on_read(id, *read, read.0.to_be_bytes()[7] % CELLS),
            _ => {}
        }
        checker.on_event(id, event);
        Ok(())
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others change nothing here")]
    fn on_output(
        &mut self,
        id: ServerId,
        output: &Output,
        standing: Standing,
    ) -> Result<(), Violation> {
        let Self { checker, servers, sent, .. } = self;
        let Some(server) = servers.get_mut(&id) else { return Ok(()) };
        let Server { peer, disk, application, taken, peers, lives, replaying, .. } = server;
        checker.on_output(id, output)?;
        checker.on_done(id, output, standing, Around { disk, application })?;
        if let Output::Adopt { .. } | Output::Deliver(_) | Output::Replay { .. } = output {
            checker.on_committed(id, peer.committed(), standing, disk)?;
        }
        match output {
            Output::Persist { ticket, write } => {
                if let Write::Install { .. } = write {
                    taken.clear();
                    application.install();
                }
                disk.persist(*ticket, write.clone());
            }
            Output::Adopt { label } => {
                if !application.adopt(*label) {
                    let detail = format!("adopts {label}, which is not staged");
                    return broken(Rule::Boundary, id, detail);
                }
                checker.on_adopted(id, &application.state, peer.committed())?;
            }
            Output::Deliver(txn) => {
                let in_turn = application.apply(txn);
                checker.on_applied(id, txn, *lives, in_turn)?;
            }
            Output::Replay { after, .. } => *replaying = Some(*after),
            Output::TakeSnapshot(label) => taken.push(application.labelled(*label, false)),
            Output::SendSnapshot { link, label, staged, .. } => {
                let state = |to: &ServerId| ((id, *to), application.labelled(*label, *staged));
                let to = peers.get(link).map(state);
                sent.extend(to);
            }
            Output::ReceiveSnapshot { link, label } => {
                application.receiving = Some((*link, *label));
                application.received = None;
                disk.discard();
            }
            Output::Abandon => application.abandon(),
            Output::Discard => {
                application.discard();
                disk.discard();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Where two lists of outputs part.
fn difference(recorded: &[Output], again: &[Output]) -> Option<usize> {
    let same = recorded.iter().zip(again).take_while(|(a, b)| a == b).count();
    (same < recorded.len().max(again.len())).then_some(same)
}

/// How many cells are looked at.
const CELLS: u8 = 8;
