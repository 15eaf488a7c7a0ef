//! The course of the demo: what it does to the ensemble, what it waits for, and what it measures.

mod waits;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::audit::{Verdict, audit};
use super::ensemble::Ensemble;
use super::error::{Awaited, DemoError};
use super::inject::take_write_out;
use super::leaders::{Leaders, Leadership, Marks};
use super::load::{Account, Load, LoadConfig};
use super::news::Seen;
use super::sessions::{Sessions, SessionsError, SessionsSummary, TIMEOUT, set_up};
use super::spread::Spread;
use super::table::{LoadSummary, Row, Summary};
use super::view::{Step, View};
use crate::event::{ChangeLine, millis};
use crate::failure::Failure;

/// The demo.
#[derive(Debug)]
pub(super) struct Plot {
    ensemble: Ensemble,
    events: UnboundedReceiver<Seen>,
    view: View,
    options: Options,
    load: Option<Load>,
    sessions: Option<Sessions>,
    attended: Option<SessionsSummary>,
    /// What each running server reported last.
    latest: BTreeMap<i64, ChangeLine>,
    leaders: Leaders,
    cold_start: Option<Duration>,
    rows: Vec<Row>,
}

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// How often the leader is killed, or transfers its leadership.
    pub(super) kills: u32,
    /// No server is killed: the leader transfers its leadership instead.
    pub(super) transfer_leadership: bool,
    /// The leader is not killed but silenced.
    pub(super) silence: bool,
    /// How long each step may take.
    pub(super) patience: Duration,
    /// What is written meanwhile.
    pub(super) load: Option<LoadConfig>,
    /// How many clients each server has at first.
    pub(super) sessions: Option<usize>,
    /// An acknowledged write is taken out of a log before the logs are compared.
    pub(super) inject_loss: bool,
}

impl Plot {
    pub(super) fn new(
        ensemble: Ensemble,
        events: UnboundedReceiver<Seen>,
        view: View,
        options: Options,
    ) -> Self {
        Self {
            ensemble,
            events,
            view,
            options,
            load: None,
            sessions: None,
            attended: None,
            latest: BTreeMap::new(),
            leaders: Leaders::default(),
            cold_start: None,
            rows: Vec::new(),
        }
    }

    /// Everything, from the start of all servers to the return of the last dead one.
    pub(super) async fn play(&mut self) -> Result<(), DemoError> {
        let mut leadership = self.start().await?;
        if let (Some(config), Some(roster)) = (self.options.load, self.ensemble.roster()) {
            self.load = Some(Load::start(config, roster));
            self.view.step(Step::Loaded {
                at_ms: self.at(Instant::now()),
                clients: config.clients,
                payload_bytes: config.payload,
            });
        }
        self.attend().await?;
        self.under_load().await?;
        for number in 1..=self.options.kills as usize {
            leadership = if self.options.transfer_leadership {
                self.transfer_leadership(number, leadership).await?
            } else {
                self.kill(number, leadership).await?
            };
            self.under_load().await?;
        }
        self.quieten().await?;
        self.dismiss().await
    }

    /// Sums up and cleans up; how long failovers took. A failure has been shown when this returns.
    pub(super) async fn finish(
        mut self,
        outcome: Result<(), DemoError>,
    ) -> Result<Spread, Failure> {
        self.ensemble.end().await;
        let twice = self.leaders.twice();
        let outcome = match outcome {
            Ok(()) if twice > 0 => Err(DemoError::TwoLeaders(twice)),
            outcome => outcome,
        };
        let loaded = self.load.take().map(|load| (load.config(), load.into_account()));
        let (outcome, verdict) = match (outcome, &loaded) {
            (Ok(()), Some((_, account))) => self.audit(account),
            // A server that has not caught up need not have everything.
            (outcome, _) => (outcome, None),
        };
        if let Err(error) = &outcome {
            self.view
                .step(Step::Failed { at_ms: self.at(Instant::now()), error: error.to_string() });
        }
        let mut summary = Summary::new(
            self.ensemble.ids().len(),
            &self.rows,
            self.cold_start,
            self.options.transfer_leadership,
            self.leaders.epochs.len(),
            twice,
            loaded.map(|(config, account)| LoadSummary::new(config, &account, &self.rows, verdict)),
        );
        summary.sessions = self.attended;
        let links = self.ensemble.links();
        (summary.tls, summary.plain_failover_ms) = (links.are_secure(), links.plain());
        let failover = summary.failover_ms;
        let written = self.view.end(summary, self.rows, outcome.is_err());
        outcome.map_err(|error| Failure::failed(format!("the demo failed: {error}")))?;
        written.map_err(|error| {
            Failure::failed(format!("what happened could not be written: {error}"))
        })?;
        Ok(failover)
    }

    /// Lets clients write for a while, if there are any.
    async fn under_load(&mut self) -> Result<(), DemoError> {
        let written = self.load.as_ref().map(|load| load.more(load.config().clients * WRITES_EACH));
        let time = self.sessions.as_ref().map(|_| ATTENDED.min(self.options.patience / 2));
        let enough = async move {
            match written {
                Some(written) => drop(written.await),
                None => tokio::time::sleep(time.unwrap_or_default()).await,
            }
        };
        let (since, mut enough) = (Instant::now(), pin!(enough));
        loop {
            tokio::select! {
                () = &mut enough => return Ok(()),
                seen = self.next(&Awaited::Acknowledgements, since) => drop(seen?),
            }
        }
    }

    /// Lets clients in, if there are to be any, and waits until all are set up.
    async fn attend(&mut self) -> Result<(), DemoError> {
        let Some(each) = self.options.sessions else { return Ok(()) };
        let joining = set_up(self.ensemble.client_addresses(), each);
        let (since, mut joining) = (Instant::now(), tokio::spawn(joining));
        let attendees = loop {
            tokio::select! {
                joined = &mut joining => break joined.map_err(|_| SessionsError::Ended)??,
                seen = self.next(&Awaited::Sessions, since) => drop(seen?),
            }
        };
        let sessions = self.sessions.insert(Sessions::start(attendees)).count();
        let (at_ms, timeout_ms) = (self.at(Instant::now()), millis(TIMEOUT));
        self.view.step(Step::Attended { at_ms, sessions, timeout_ms });
        Ok(())
    }

    /// Lets the clients look whether they have all that is theirs, and go.
    async fn dismiss(&mut self) -> Result<(), DemoError> {
        let Some(sessions) = self.sessions.take() else { return Ok(()) };
        let finished = tokio::time::timeout(self.options.patience, sessions.finish()).await;
        let summary = finished.map_err(|_| DemoError::SessionsLate)?;
        self.attended = Some(summary);
        if summary.is_clean() { Ok(()) } else { Err(DemoError::Forgotten(summary)) }
    }

    /// Stops the clients, and waits until every server has everything.
    async fn quieten(&mut self) -> Result<(), DemoError> {
        let patience = self.options.patience;
        let Some(load) = &mut self.load else { return Ok(()) };
        let stopped = tokio::time::timeout(patience, load.stop()).await;
        stopped.map_err(|_| DemoError::Undecided)?;
        let serving = self.ensemble.roster().map(|roster| roster.watch().borrow().clone());
        for (server, (_, connection)) in serving.unwrap_or_default() {
            let caught_up = tokio::time::timeout(patience, connection.catch_up()).await;
            caught_up
                .map_err(|_| DemoError::CatchUpLate(server))?
                .map_err(|source| DemoError::CatchUp { server, source })?;
        }
        Ok(())
    }

    /// Compares what is on the disks with what was acknowledged.
    fn audit(&self, account: &Account) -> (Result<(), DemoError>, Option<Verdict>) {
        let dirs = self.ensemble.data_dirs();
        let at_ms = || self.at(Instant::now());
        if self.options.inject_loss {
            match take_write_out(&dirs, &account.acknowledged) {
                Ok((write, server)) => {
                    self.view.step(Step::LossInjected { at_ms: at_ms(), write, server });
                }
                Err(error) => return (Err(error.into()), None),
            }
        }
        let verdict = match audit(&dirs, &account.acknowledged) {
            Ok(verdict) => verdict,
            Err(error) => return (Err(error.into()), None),
        };
        for found in &verdict.details {
            self.view.step(Step::Found { at_ms: at_ms(), found: found.clone() });
        }
        let sound = verdict.is_clean();
        let outcome = if sound { Ok(()) } else { Err(DemoError::Unsound(verdict.clone())) };
        (outcome, Some(verdict))
    }

    pub(super) async fn end(&mut self) {
        self.ensemble.end().await;
    }

    /// Starts all servers, and waits for one leader that all follow.
    async fn start(&mut self) -> Result<Leadership, DemoError> {
        let ids = self.ensemble.ids();
        self.view.step(Step::Begun {
            at_ms: 0.0,
            servers: ids.len(),
            processes: self.ensemble.has_processes(),
            tls: self.ensemble.links().are_secure(),
            dir: self.ensemble.dir().display().to_string(),
        });
        let begun = Instant::now();
        self.view.step(Step::Started { at_ms: self.at(begun), servers: ids.clone() });
        self.start_servers(&ids).await?;
        let mut none = Marks::default();
        let leadership = self.led(&Awaited::FirstLeader, begun, &mut none).await?;
        let took = leadership.at.saturating_duration_since(begun);
        self.cold_start = Some(took);
        self.show_leadership(leadership, 0, took);
        self.all_serve(leadership).await?;
        Ok(leadership)
    }

    /// Kills the leader, waits for the next, restarts the dead one, waits for it.
    async fn kill(&mut self, number: usize, old: Leadership) -> Result<Leadership, DemoError> {
        let victim = old.leader;
        self.latest.remove(&victim);
        let killed = Instant::now();
        self.view.step(Step::Killed {
            at_ms: self.at(killed),
            server: victim,
            epoch: old.epoch,
            kill: number,
            of: self.options.kills,
            silent: self.options.silence,
        });
        if self.options.silence {
            self.ensemble.silence(victim)?;
        }
        let death = tokio::time::timeout(self.options.patience, self.ensemble.kill(victim)).await;
        death.map_err(|_| DemoError::KillLate(victim))??;
        let mut marks = Marks::default();
        let next = self.led(&Awaited::NextLeader, killed, &mut marks).await?;
        let detected = marks.looking.unwrap_or(next.at);
        self.note(number, old, next, killed, detected, &marks);
        self.all_serve(next).await?;
        self.under_load().await?;
        self.ensemble.kill_silent(victim).await?;
        let restarted = Instant::now();
        self.view.step(Step::Restarted { at_ms: self.at(restarted), server: victim, kill: number });
        self.start_servers(&[victim]).await?;
        let serving = self.serves(victim, restarted).await?;
        let took = serving.saturating_duration_since(restarted);
        if let Some(row) = self.rows.last_mut() {
            row.rejoin = Some(took);
        }
        let (at_ms, took_ms) = (self.at(serving), millis(took));
        self.view.step(Step::Rejoined { at_ms, server: victim, kill: number, took_ms });
        self.all_serve(next).await?;
        Ok(next)
    }

    /// Lets the leader transfer its leadership to the next server, and waits until that one leads.
    async fn transfer_leadership(
        &mut self,
        number: usize,
        old: Leadership,
    ) -> Result<Leadership, DemoError> {
        let ids = self.ensemble.ids();
        let after = ids.iter().copied().find(|id| *id > old.leader);
        let to = after
            .or_else(|| ids.first().copied().filter(|id| *id != old.leader))
            .ok_or(DemoError::NoSuccessor)?;
        let asked = Instant::now();
        self.view.step(Step::Transferred {
            at_ms: self.at(asked),
            server: old.leader,
            to,
            epoch: old.epoch,
            transfer: number,
            of: self.options.kills,
        });
        let transfer = self.ensemble.transfer_leadership(old.leader, to);
        let given = tokio::time::timeout(self.options.patience, transfer).await;
        given.map_err(|_| DemoError::TransferLate(old.leader))??;
        let mut marks = Marks::default();
        let next = self.led(&Awaited::NextLeader, asked, &mut marks).await?;
        if next.leader != to {
            return Err(DemoError::WrongSuccessor { leader: next.leader, wanted: to });
        }
        self.note(number, old, next, asked, asked, &marks);
        self.all_serve(next).await?;
        Ok(next)
    }

    /// Notes and shows how the leadership changed, `since` the old one was killed or asked.
    fn note(
        &mut self,
        number: usize,
        old: Leadership,
        next: Leadership,
        since: Instant,
        detected: Instant,
        marks: &Marks,
    ) {
        let elected = marks.leading.get(&next.leader).copied().unwrap_or(next.at);
        let total = next.at.saturating_duration_since(since);
        self.rows.push(Row {
            killed: old.leader,
            from_epoch: old.epoch,
            leader: next.leader,
            epoch: next.epoch,
            detection: detected.saturating_duration_since(since),
            election: elected.saturating_duration_since(detected),
            activation: next.at.saturating_duration_since(elected),
            total,
            rejoin: None,
            at: since,
        });
        self.show_leadership(next, number, total);
    }

    async fn start_servers(&mut self, ids: &[i64]) -> Result<(), DemoError> {
        let started = tokio::time::timeout(self.options.patience, self.ensemble.start(ids)).await;
        Ok(started.map_err(|_| DemoError::StartLate(ids.to_vec()))??)
    }

    fn show_leadership(&self, leadership: Leadership, kill: usize, took: Duration) {
        self.view.step(Step::Led {
            at_ms: self.at(leadership.at),
            leader: leadership.leader,
            epoch: leadership.epoch,
            kill,
            took_ms: millis(took),
        });
    }

    fn at(&self, at: Instant) -> f64 {
        millis(at.saturating_duration_since(self.ensemble.begun()))
    }
}

/// How long clients go on between two steps.
const ATTENDED: Duration = Duration::from_secs(3);
/// How often each client writes between two steps, on average.
const WRITES_EACH: usize = 50;
