//! What happens in the demo, and what of it is measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::audit::{self, Verdict};
use super::leaders::{Marks, Reign, Reigns};
use super::load::{Book, Load, Weight};
use super::news::{News, Seen};
use super::table::{LoadSummary, Row, Summary};
use super::view::{Step, View};
use super::world::World;
use crate::event::{ChangeLine, State, millis};
use crate::failure::Failure;

/// The demo.
#[derive(Debug)]
pub(super) struct Plot {
    world: World,
    events: UnboundedReceiver<Seen>,
    view: View,
    wishes: Wishes,
    load: Option<Load>,
    /// What each running server said last.
    latest: BTreeMap<i64, ChangeLine>,
    reigns: Reigns,
    cold_start: Option<Duration>,
    rows: Vec<Row>,
}

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// How often the leader is killed.
    pub(super) kills: u32,
    /// Nobody is killed: the leader hands its seat over instead.
    pub(super) hand_over: bool,
    /// The leader is not killed but falls silent.
    pub(super) silence: bool,
    /// How long each step may take.
    pub(super) patience: Duration,
    /// What is written meanwhile.
    pub(super) load: Option<Weight>,
    /// An acknowledged write is taken out of a log before the logs are compared.
    pub(super) plant_loss: bool,
}

impl Plot {
    pub(super) fn new(
        world: World,
        events: UnboundedReceiver<Seen>,
        view: View,
        wishes: Wishes,
    ) -> Self {
        Self {
            world,
            events,
            view,
            wishes,
            load: None,
            latest: BTreeMap::new(),
            reigns: Reigns::default(),
            cold_start: None,
            rows: Vec::new(),
        }
    }

    /// Everything, from the start of all servers to the return of the last dead one.
    pub(super) async fn play(&mut self) -> Result<(), String> {
        let mut reign = self.start().await?;
        if let (Some(weight), Some(roster)) = (self.wishes.load, self.world.roster()) {
            self.load = Some(Load::start(weight, roster));
            self.view.step(Step::Loaded {
                at_ms: self.at(Instant::now()),
                clients: weight.clients,
                payload_bytes: weight.payload,
            });
        }
        self.under_load().await?;
        for number in 1..=self.wishes.kills as usize {
            reign = if self.wishes.hand_over {
                self.hand_over(number, reign).await?
            } else {
                self.kill(number, reign).await?
            };
            self.under_load().await?;
        }
        self.quieten().await
    }

    /// Sums up and cleans up. A failure has been shown when this returns.
    pub(super) async fn finish(mut self, outcome: Result<(), String>) -> Result<(), Failure> {
        self.world.end().await;
        let twice = self.reigns.with_two_leaders();
        let outcome = match outcome {
            Ok(()) if twice > 0 => Err(format!("{twice} epoch(s) had two leaders")),
            outcome => outcome,
        };
        let loaded = self.load.take().map(|load| (load.weight(), load.into_book()));
        let (outcome, verdict) = match (outcome, &loaded) {
            (Ok(()), Some((_, book))) => self.audit(book),
            // Who has not caught up need not have everything.
            (outcome, _) => (outcome, None),
        };
        if let Err(error) = &outcome {
            self.view.step(Step::Failed { at_ms: self.at(Instant::now()), error: error.clone() });
        }
        let summary = Summary::new(
            self.world.ids().len(),
            &self.rows,
            self.cold_start,
            self.wishes.hand_over,
            self.reigns.epochs.len(),
            twice,
            loaded.map(|(weight, book)| LoadSummary::new(weight, &book, &self.rows, verdict)),
        );
        let written = self.view.end(summary, self.rows, outcome.is_err());
        outcome.map_err(|error| Failure::failed(format!("the demo failed: {error}")))?;
        written.map_err(|error| {
            Failure::failed(format!("what happened could not be written: {error}"))
        })
    }

    /// Lets clients write for a while, if there are any.
    async fn under_load(&mut self) -> Result<(), String> {
        let Some(load) = &self.load else { return Ok(()) };
        let mut written = load.more(load.weight().clients * WRITES_EACH);
        let since = Instant::now();
        loop {
            tokio::select! {
                _ = &mut written => return Ok(()),
                seen = self.next("acknowledgements", since) => drop(seen?),
            }
        }
    }

    /// Stops the clients, and waits until every server has everything.
    async fn quieten(&mut self) -> Result<(), String> {
        let patience = self.wishes.patience;
        let Some(load) = &mut self.load else { return Ok(()) };
        let stopped = tokio::time::timeout(patience, load.stop()).await;
        stopped.map_err(|_| "the clients' last writes are not decided".to_owned())?;
        let serving = self.world.roster().map(|roster| roster.watch().borrow().clone());
        for (id, (_, port)) in serving.unwrap_or_default() {
            let caught_up = tokio::time::timeout(patience, port.catch_up()).await;
            caught_up
                .map_err(|_| format!("server {id} does not catch up"))?
                .map_err(|error| format!("server {id} does not catch up: {error}"))?;
        }
        Ok(())
    }

    /// Compares what is on the disks with what was acknowledged.
    fn audit(&self, book: &Book) -> (Result<(), String>, Option<Verdict>) {
        let dirs = self.world.data_dirs();
        let at_ms = || self.at(Instant::now());
        if self.wishes.plant_loss {
            match audit::plant_loss(&dirs, &book.acknowledged) {
                Ok((write, server)) => {
                    self.view.step(Step::Planted { at_ms: at_ms(), write, server });
                }
                Err(error) => return (Err(format!("no loss can be planted: {error}")), None),
            }
        }
        let verdict = match audit::audit(&dirs, &book.acknowledged) {
            Ok(verdict) => verdict,
            Err(error) => return (Err(format!("the logs cannot be compared: {error}")), None),
        };
        for found in &verdict.details {
            self.view.step(Step::Found { at_ms: at_ms(), found: found.clone() });
        }
        let outcome = if verdict.is_clean() {
            Ok(())
        } else {
            let Verdict { lost, duplicated, diverged, .. } = verdict;
            Err(format!(
                "{lost} acknowledged write(s) lost, {duplicated} carried out more than once, \
                 {diverged} server(s) with another history"
            ))
        };
        (outcome, Some(verdict))
    }

    /// Cleans up.
    pub(super) async fn end(&mut self) {
        self.world.end().await;
    }

    /// All servers, from nothing to one leader whom all follow.
    async fn start(&mut self) -> Result<Reign, String> {
        let ids = self.world.ids();
        self.view.step(Step::Begun {
            at_ms: 0.0,
            servers: ids.len(),
            processes: self.world.has_processes(),
            dir: self.world.dir().display().to_string(),
        });
        let begun = Instant::now();
        self.view.step(Step::Started { at_ms: self.at(begun), servers: ids.clone() });
        self.start_servers(&ids).await?;
        let mut none = Marks::default();
        let reign = self.led("a first leader", begun, &mut none).await?;
        let took = reign.at.saturating_duration_since(begun);
        self.cold_start = Some(took);
        self.show_reign(reign, 0, took);
        self.all_serve(reign).await?;
        Ok(reign)
    }

    /// Kills the leader, waits for the next, restarts the dead one, waits for it.
    async fn kill(&mut self, number: usize, old: Reign) -> Result<Reign, String> {
        let victim = old.leader;
        self.latest.remove(&victim);
        let killed = Instant::now();
        self.view.step(Step::Killed {
            at_ms: self.at(killed),
            server: victim,
            epoch: old.epoch,
            kill: number,
            of: self.wishes.kills,
            silent: self.wishes.silence,
        });
        if self.wishes.silence {
            self.world.silence(victim)?;
        }
        let death = tokio::time::timeout(self.wishes.patience, self.world.kill(victim)).await;
        death.map_err(|_| format!("server {victim} does not die"))??;
        let mut marks = Marks::default();
        let reign = self.led("the next leader", killed, &mut marks).await?;
        let detected = marks.looking.unwrap_or(reign.at);
        let elected = marks.leading.get(&reign.leader).copied().unwrap_or(reign.at);
        let total = reign.at.saturating_duration_since(killed);
        self.rows.push(Row {
            killed: victim,
            from_epoch: old.epoch,
            leader: reign.leader,
            epoch: reign.epoch,
            detection: detected.saturating_duration_since(killed),
            election: elected.saturating_duration_since(detected),
            activation: reign.at.saturating_duration_since(elected),
            total,
            rejoin: None,
            at: killed,
        });
        self.show_reign(reign, number, total);
        self.all_serve(reign).await?;
        self.under_load().await?;

        self.world.bury(victim).await?;
        let restarted = Instant::now();
        let at_ms = self.at(restarted);
        self.view.step(Step::Restarted { at_ms, server: victim, kill: number });
        self.start_servers(&[victim]).await?;
        let serving = self.serves(victim, restarted).await?;
        let took = serving.saturating_duration_since(restarted);
        if let Some(row) = self.rows.last_mut() {
            row.rejoin = Some(took);
        }
        let (at_ms, took_ms) = (self.at(serving), millis(took));
        self.view.step(Step::Rejoined { at_ms, server: victim, kill: number, took_ms });
        self.all_serve(reign).await?;
        Ok(reign)
    }

    /// Lets the leader hand its seat over to the next server, and waits for the next reign.
    async fn hand_over(&mut self, number: usize, old: Reign) -> Result<Reign, String> {
        let ids = self.world.ids();
        let after = ids.iter().copied().find(|id| *id > old.leader);
        let Some(to) = after.or_else(|| ids.first().copied().filter(|id| *id != old.leader)) else {
            return Err("there is nobody else to lead".to_owned());
        };
        let asked = Instant::now();
        self.view.step(Step::HandedOver {
            at_ms: self.at(asked),
            server: old.leader,
            to,
            epoch: old.epoch,
            hand_over: number,
            of: self.wishes.kills,
        });
        let given =
            tokio::time::timeout(self.wishes.patience, self.world.hand_over(old.leader, to));
        given.await.map_err(|_| format!("server {} does not let go", old.leader))??;
        let mut marks = Marks::default();
        let reign = self.led("the next leader", asked, &mut marks).await?;
        if reign.leader != to {
            return Err(format!("server {} leads, and not server {to}", reign.leader));
        }
        let elected = marks.leading.get(&to).copied().unwrap_or(reign.at);
        let total = reign.at.saturating_duration_since(asked);
        self.rows.push(Row {
            killed: old.leader,
            from_epoch: old.epoch,
            leader: reign.leader,
            epoch: reign.epoch,
            detection: Duration::ZERO,
            election: elected.saturating_duration_since(asked),
            activation: reign.at.saturating_duration_since(elected),
            total,
            rejoin: None,
            at: asked,
        });
        self.show_reign(reign, number, total);
        self.all_serve(reign).await?;
        Ok(reign)
    }

    async fn start_servers(&mut self, ids: &[i64]) -> Result<(), String> {
        let started = tokio::time::timeout(self.wishes.patience, self.world.start(ids)).await;
        started.map_err(|_| format!("servers {ids:?} do not start"))?
    }

    /// Waits for a leader that serves, noting what comes before.
    async fn led(
        &mut self,
        what: &str,
        since: Instant,
        marks: &mut Marks,
    ) -> Result<Reign, String> {
        loop {
            let (at, line) = self.next(what, since).await?;
            marks.note(at, &line);
            if line.serving && line.state == State::Leading {
                return Ok(Reign { leader: line.server, epoch: line.current_epoch, at });
            }
        }
    }

    /// Waits until `server` serves.
    async fn serves(&mut self, server: i64, since: Instant) -> Result<Instant, String> {
        let what = format!("the return of server {server}");
        loop {
            let (at, line) = self.next(&what, since).await?;
            if line.server == server && line.serving {
                return Ok(at);
            }
        }
    }

    /// Waits until all that run serve in this reign.
    async fn all_serve(&mut self, reign: Reign) -> Result<(), String> {
        let since = Instant::now();
        loop {
            let outside: Vec<_> = self
                .world
                .running()
                .into_iter()
                .filter(|id| {
                    !self.latest.get(id).is_some_and(|line| {
                        line.serving
                            && line.leader == Some(reign.leader)
                            && line.current_epoch == reign.epoch
                    })
                })
                .collect();
            if outside.is_empty() {
                return Ok(());
            }
            let what = format!(
                "servers {outside:?} to serve under server {} in epoch {}",
                reign.leader, reign.epoch
            );
            self.next(&what, since).await?;
        }
    }

    /// The next change of a running server; an error if it takes too long or a server ends by itself.
    async fn next(&mut self, what: &str, since: Instant) -> Result<(Instant, ChangeLine), String> {
        let by = tokio::time::Instant::from_std(since + self.wishes.patience);
        loop {
            let seen = tokio::time::timeout_at(by, self.events.recv()).await;
            let Ok(seen) = seen else {
                let waited = since.elapsed().as_secs_f64();
                return Err(format!("waited {waited:.1} s for {what}"));
            };
            let Some(seen) = seen else {
                return Err(format!("all servers have ended; waited for {what}"));
            };
            if !self.world.is_current(&seen) {
                continue;
            }
            let Seen { at, server, news, .. } = seen;
            let mut line = match news {
                News::Change(line) => line,
                News::Lost(changes) => {
                    return Err(format!("{changes} changes of server {server} were lost"));
                }
                News::Ended(last) => {
                    return Err(format!("server {server} has ended by itself: {last}"));
                }
            };
            line.at_ms = self.at(at);
            self.reigns.note(&line);
            self.latest.insert(server, line.clone());
            self.view.change(line.clone());
            return Ok((at, line));
        }
    }

    fn show_reign(&self, reign: Reign, kill: usize, took: Duration) {
        self.view.step(Step::Led {
            at_ms: self.at(reign.at),
            leader: reign.leader,
            epoch: reign.epoch,
            kill,
            took_ms: millis(took),
        });
    }

    fn at(&self, at: Instant) -> f64 {
        millis(at.saturating_duration_since(self.world.begun()))
    }
}

/// How often each client writes between two steps, on average.
const WRITES_EACH: usize = 50;
