//! A story of one real server; the script says what the others say.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::generation_message::{Body, Claim, GenerationMessage};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{Message, Packet};
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use super::Problem;
use super::command::{Condition, Line};
use super::condition::{Place, Whole, look};
use super::course::Course;
use super::hearing::Hearing;
use crate::brief::Brief;
use crate::disk::{Contents, MADE_UP_MAX, Survival};
use crate::record::Moment;
use crate::stage::{Said, Stage, txn};

/// The last transaction that a snapshot can have which the script makes up, of a log that has all before it.
const SNAPSHOT_MAX: Counter = Counter(MADE_UP_MAX);

/// A stage, and the links that the script has with it.
#[derive(Debug)]
pub(super) struct StageStory {
    id: i64,
    /// Everybody, real or not.
    all: Vec<ServerId>,
    /// Taken out only while it restarts.
    stage: Option<Stage>,
    links: BTreeMap<(Plane, i64), LinkId>,
    /// The snapshot that a peer has announced, and with what it ends.
    announced: Option<(i64, Zxid)>,
    /// What the script has said under which number.
    said: BTreeMap<Zxid, Txn>,
    /// How many transactions come before the next that is new.
    count: u64,
    hearing: Hearing,
}

impl StageStory {
    pub(super) fn new(id: i64, all: Vec<ServerId>, stage: Stage) -> Self {
        let count = count(stage.durable());
        Self {
            id,
            all,
            stage: Some(stage),
            links: BTreeMap::new(),
            announced: None,
            said: BTreeMap::new(),
            count,
            hearing: Hearing::default(),
        }
    }

    /// This is the one that is real.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub(super) fn real(&self, id: i64) -> Result<(), Problem> {
        self.known(id)?;
        if id == self.id {
            return Ok(());
        }
        let why = format!("on this stage only server {} is real, and {id} is not", self.id);
        Err(Problem::Impossible(why))
    }

    fn stage(&mut self) -> Result<&mut Stage, Problem> {
        self.stage
            .as_mut()
            .ok_or_else(|| Problem::Impossible("no server is on the stage".to_owned()))
    }

    /// Everything that happened since this was asked last.
    pub(super) fn listen(&mut self) -> Vec<Moment> {
        self.hear();
        self.hearing.take()
    }

    fn hear(&mut self) {
        if let Some(stage) = &self.stage {
            self.hearing.hear(stage.record());
        }
    }

    pub(super) fn by_hand(&mut self) -> Result<(), Problem> {
        self.stage()?.sync_at_once = false;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), Problem> {
        self.stage()?.sync();
        Ok(())
    }

    pub(super) fn write(&mut self) -> Result<(), Problem> {
        self.stage()?.write();
        Ok(())
    }

    pub(super) fn restart(&mut self, survival: Survival) {
        self.links.clear();
        self.announced = None;
        let by_hand = self.stage.as_ref().is_some_and(|stage| !stage.sync_at_once);
        self.stage = self.stage.take().map(|stage| stage.restarted(survival));
        if let Some(stage) = self.stage.as_mut() {
            stage.sync_at_once = !by_hand;
        }
    }

    /// A scripted peer says something, on a link that is made if there is none.
    pub(super) fn hears(&mut self, peer: i64, line: &Line) -> Result<(), Problem> {
        let message = match line {
            Line::Ready(message) => message.clone(),
            Line::Proposal(zxid) => Message::Packet(Packet::Proposal(self.txn(*zxid))),
            Line::Inform(zxid) => Message::Packet(Packet::Inform(self.txn(*zxid))),
            Line::Answer { granted, pre, asked, seen } => {
                let Some(attempt) = self.stage()?.attempt(*asked, *pre) else {
                    let why = format!("no vote was asked for in generation {asked}");
                    return Err(Problem::Impossible(why));
                };
                let body = Body::VoteResponse { attempt, granted: *granted };
                let claim = Claim { current_epoch: Epoch::ZERO, last: Zxid::ZERO };
                let (from, config) = (ServerId(peer), Bytes::new());
                let (generation, knows_probes) = (*seen, false);
                Message::Generation(GenerationMessage {
                    from,
                    generation,
                    claim,
                    body,
                    config,
                    knows_probes,
                })
            }
        };
        let plane = match &message {
            Message::Notification(_) | Message::Generation(_) | Message::Probe(_) => {
                Plane::Election
            }
            Message::Packet(_) => Plane::Quorum,
        };
        let link = self.link(plane, peer)?;
        if let Message::Packet(Packet::Snap { label, .. }) = message {
            self.announced = Some((peer, label));
        }
        let said = match message {
            Message::Notification(notification) => Said::from(notification),
            Message::Packet(packet) => Said::from(packet),
            Message::Generation(message) => Said::from(message),
            Message::Probe(probe) => Said::from(probe),
        };
        self.stage()?.hear(link, said);
        Ok(())
    }

    pub(super) fn connects(&mut self, peer: i64) -> Result<(), Problem> {
        self.links.remove(&(Plane::Quorum, peer));
        self.link(Plane::Quorum, peer).map(|_| ())
    }

    pub(super) fn hangs_up(&mut self, peer: i64) -> Result<(), Problem> {
        let link = self.links.remove(&(Plane::Quorum, peer));
        let Some(link) = link else {
            return Err(Problem::Impossible(format!("{peer} is not connected")));
        };
        self.stage()?.close(link);
        Ok(())
    }

    /// The snapshot that the leader has announced has come whole.
    pub(super) fn snapshot(&mut self, label: Zxid) -> Result<(), Problem> {
        if label.is_epoch_start() || label.counter() > SNAPSHOT_MAX {
            let why = format!("a snapshot here ends with one of {} transactions", SNAPSHOT_MAX.0);
            return Err(Problem::Impossible(why));
        }
        let leader = self.brief(self.id)?.and_then(|brief| brief.leader).map(|leader| leader.0);
        let link = leader.and_then(|leader| self.links.get(&(Plane::Quorum, leader)).copied());
        let Some(link) = link else {
            return Err(Problem::Impossible("no leader is connected".to_owned()));
        };
        if self.announced.take().is_none_or(|(peer, end)| leader != Some(peer) || end != label) {
            let why = "its leader has announced no such snapshot";
            return Err(Problem::Impossible(why.to_owned()));
        }
        let epoch = label.epoch().0;
        let whole = Contents::ending(epoch, epoch, label).with_snapshot(label);
        let Some(state) = whole.snapshots.last().cloned() else { return Ok(()) };
        self.count = state.count;
        self.stage()?.restore(link, state);
        Ok(())
    }

    /// The transaction of a number: the same whenever it is said.
    fn txn(&mut self, zxid: Zxid) -> Txn {
        let held = self.stage.as_ref().and_then(|stage| stage.durable().get(zxid)).cloned();
        if let Some(known) = held.or_else(|| self.said.get(&zxid).cloned()) {
            return known;
        }
        self.count += 1;
        let new = txn(zxid, self.count);
        self.said.insert(zxid, new.clone());
        new
    }

    fn link(&mut self, plane: Plane, peer: i64) -> Result<LinkId, Problem> {
        let known = self.links.get(&(plane, peer)).copied();
        let id = self.id;
        if peer == id {
            let why = format!("server {id} is real: the script says what the others say");
            return Err(Problem::Impossible(why));
        }
        let stage = self.stage()?;
        if let Some(link) = known.filter(|link| stage.hang_up_of(*link).is_none()) {
            return Ok(link);
        }
        let status = stage.status();
        let dials = match plane {
            Plane::Election => id > peer || !status.voter,
            Plane::Quorum => {
                status.leader.is_some_and(|leader| leader.0 == peer)
                    && status.state != ServerState::Leading
            }
        };
        let link = if !dials {
            stage.accept(plane, peer)
        } else if stage.is_dialling(plane, peer) {
            stage.answer(plane, peer)
        } else {
            let port = match plane {
                Plane::Election => "election",
                Plane::Quorum => "quorum",
            };
            let why = format!("{id} does not dial the {port} port of {peer} now");
            return Err(Problem::Impossible(why));
        };
        self.links.insert((plane, peer), link);
        Ok(link)
    }
}

/// How many transactions a history has.
fn count(contents: &Contents) -> u64 {
    let before = contents.snapshots.last().map_or(0, |state| state.count);
    let label = contents.snapshots.last().map_or(Zxid::ZERO, |state| state.label);
    before + contents.log.iter().filter(|txn| txn.zxid > label).count() as u64
}

impl Place for StageStory {
    fn known(&self, id: i64) -> Result<(), Problem> {
        if self.all.contains(&ServerId(id)) { Ok(()) } else { Err(nobody(id)) }
    }

    fn brief(&self, id: i64) -> Result<Option<Brief>, Problem> {
        self.real(id)?;
        let up = self.stage.as_ref().filter(|stage| stage.fault().is_none());
        Ok(up.map(|stage| Brief::of(&stage.status())))
    }

    fn contents(&self, id: i64) -> Result<&Contents, Problem> {
        self.real(id)?;
        self.stage.as_ref().map(Stage::durable).ok_or_else(|| nobody(id))
    }

    fn committed(&self) -> Zxid {
        self.stage.as_ref().and_then(Stage::delivered).unwrap_or(Zxid::ZERO)
    }

    fn world(&self) -> Result<&dyn Whole, Problem> {
        let why = format!("on a stage that cannot be told: only server {} is real", self.id);
        Err(Problem::Impossible(why))
    }
}

impl Course for StageStory {
    fn now(&self) -> Instant {
        self.stage.as_ref().map_or(Instant::ORIGIN, Stage::now)
    }

    fn go_on(&mut self, most: Duration) -> Result<(), Problem> {
        let stage = self.stage()?;
        let next = stage.deadline().map_or(most, |at| at - stage.now());
        stage.pass(next.min(most));
        self.hear();
        Ok(())
    }

    fn at_once(&mut self) -> Result<(), Problem> {
        self.stage()?.pass(Duration::ZERO);
        Ok(())
    }

    fn look(&self, condition: &Condition) -> Result<(bool, String), Problem> {
        look(self, condition)
    }
}

fn nobody(id: i64) -> Problem {
    Problem::Impossible(format!("there is no server {id}"))
}
