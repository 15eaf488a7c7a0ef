//! How a server is doing, for people and monitoring, and who wants to be told.
//!
//! The loop publishes here and never waits: a reader that does not keep up loses the oldest changes
//! and learns how many; a reader of the leader gets the latest one. Nothing in the protocol reads any
//! of it.

mod meter;
mod metrics;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_channel::{Receiver, Sender, bounded};
use futures_lite::stream::{Stream, unfold};
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::report::{Change, How, Report};
use quorate_core::status::Status as PeerStatus;
use quorate_core::vote::ServerState;
use quorate_core::zxid::Epoch;

use crate::lock::locked;
use crate::measures::Measures;
use crate::status::meter::Meter;

pub(crate) use self::metrics::Counters;
pub use self::metrics::Metrics;

/// A server at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What the protocol knows.
    pub peer: Arc<PeerStatus>,
    /// How this server was brought to the history of the leader that it follows; none while it has no leader or
    /// leads, and until the leader has said.
    pub sync: Option<How>,
    /// What the driver has counted and measured.
    pub metrics: Metrics,
}

/// A change and its reason, when, and what the server was after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When.
    pub at: Instant,
    /// The change and its reason.
    pub report: Report,
    /// The server afterwards: after all changes of this moment.
    pub status: Arc<PeerStatus>,
}

impl Observed {
    /// What the change is called in the log: a name that programs may rely on, unlike the words.
    pub fn event(&self) -> &'static str {
        event_of(&self.report.change)
    }
}

/// The changes of one server, in order. See [`Server::changes`](crate::Server::changes).
#[derive(Debug)]
pub struct Changes {
    receiver: Receiver<Observed>,
    lost: Arc<AtomicU64>,
}

impl Changes {
    /// Waits for the next change; none when the server has ended.
    pub async fn next(&mut self) -> Option<Observed> {
        self.receiver.recv().await.ok()
    }

    /// The next change, if there is one already.
    pub fn try_next(&mut self) -> Option<Observed> {
        self.receiver.try_recv().ok()
    }

    /// The same as a stream, for those who combine streams.
    pub fn into_stream(self) -> impl Stream<Item = Observed> + Send {
        unfold(self, async |mut changes| Some((changes.next().await?, changes)))
    }

    /// How many changes were lost so far because they were not read in time.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The leader of a serving ensemble, and the epoch of its leadership.
pub type Leader = (ServerId, Epoch);

/// Each change of leader, as one server sees it. See [`Server::leaders`](crate::Server::leaders).
#[derive(Debug)]
pub struct Leaders {
    receiver: Receiver<Option<Leader>>,
    last: Option<Option<Leader>>,
}

impl Leaders {
    /// Waits until the leader is another one than last time; the first time returns the present one at
    /// once. `Some(None)` means that there is no leader now; none, that the server has ended. Changes
    /// between two calls are passed over: only the latest counts.
    pub async fn next(&mut self) -> Option<Option<Leader>> {
        loop {
            let leader = self.receiver.recv().await.ok()?;
            if self.last != Some(leader) {
                self.last = Some(leader);
                return Some(leader);
            }
        }
    }

    /// The same as a stream, for those who combine streams.
    pub fn into_stream(self) -> impl Stream<Item = Option<Leader>> + Send {
        unfold(self, async |mut leaders| Some((leaders.next().await?, leaders)))
    }

    /// Waits for a leader; none if the server ends before there is one.
    pub async fn led(&mut self) -> Option<Leader> {
        loop {
            if let Some(leader) = self.next().await? {
                return Some(leader);
            }
        }
    }
}

/// Where the loop publishes.
#[derive(Debug)]
pub(crate) struct Published {
    state: Mutex<State>,
    changes_kept: usize,
    pub(crate) measures: Arc<Measures>,
}

#[derive(Debug)]
struct State {
    peer: Arc<PeerStatus>,
    membership: Arc<Membership>,
    sync: Option<How>,
    meter: Meter,
    changes: Vec<(Sender<Observed>, Arc<AtomicU64>)>,
    leaders: Vec<Sender<Option<Leader>>>,
    ended: bool,
}

impl Published {
    pub(crate) fn new(
        peer: PeerStatus,
        membership: &Membership,
        changes_kept: usize,
        now: Instant,
        measures: Arc<Measures>,
    ) -> Self {
        let meter = Meter::new(&peer, now, Arc::clone(&measures));
        let state = State {
            peer: Arc::new(peer),
            membership: Arc::new(membership.clone()),
            sync: None,
            meter,
            changes: Vec::new(),
            leaders: Vec::new(),
            ended: false,
        };
        Self { state: Mutex::new(state), changes_kept: changes_kept.max(1), measures }
    }

    /// Publishes how the server is now, and what has brought it there.
    pub(crate) fn publish(&self, peer: PeerStatus, reports: Vec<Report>, at: Instant) {
        let mut state = locked(&self.state);
        let before = leader_of(&state.peer);
        if state.peer.state == ServerState::Leading {
            state.meter.count_ends(&reports);
        }
        state.sync = sync_of(&peer, state.sync, &reports);
        state.meter.observe(&peer, at);
        state.meter.count_syncs(&peer, &reports);
        state.peer = Arc::new(peer);
        let now = leader_of(&state.peer);
        if now != before {
            state.leaders.retain(|watcher| watcher.force_send(now).is_ok());
        }
        for report in reports {
            let status = Arc::clone(&state.peer);
            let observed = Observed { at, report, status };
            state.changes.retain(|(reader, lost)| match reader.force_send(observed.clone()) {
                Ok(displaced) => {
                    if displaced.is_some() {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                    true
                }
                Err(_) => false,
            });
        }
    }

    /// The membership in force, if it is another one.
    pub(crate) fn publish_membership(&self, membership: &Membership) {
        let mut state = locked(&self.state);
        if *state.membership != *membership {
            state.membership = Arc::new(membership.clone());
        }
    }

    pub(crate) fn membership(&self) -> Arc<Membership> {
        Arc::clone(&locked(&self.state).membership)
    }

    /// Tells every reader that nothing comes any more.
    pub(crate) fn end(&self) {
        let mut state = locked(&self.state);
        state.ended = true;
        state.changes.clear();
        state.leaders.clear();
    }

    pub(crate) fn status(&self, counters: &Counters, now: Instant) -> Status {
        let state = locked(&self.state);
        let peer = Arc::clone(&state.peer);
        Status { peer, sync: state.sync, metrics: state.meter.metrics(counters, now) }
    }

    pub(crate) fn leader(&self) -> Option<Leader> {
        let state = locked(&self.state);
        if state.ended { None } else { leader_of(&state.peer) }
    }

    /// When it began to look for a leader, if it is looking.
    pub(crate) fn looking_since(&self) -> Option<Instant> {
        locked(&self.state).meter.looking_since
    }

    pub(crate) fn changes(&self) -> Changes {
        let (sender, receiver) = bounded(self.changes_kept);
        let lost = Arc::new(AtomicU64::new(0));
        let mut state = locked(&self.state);
        if !state.ended {
            // Who reads no longer is not kept until the next change, which may never come.
            state.changes.retain(|(reader, _)| !reader.is_closed());
            state.changes.push((sender, Arc::clone(&lost)));
        }
        Changes { receiver, lost }
    }

    pub(crate) fn leaders(&self) -> Leaders {
        let (sender, receiver) = bounded(1);
        let mut state = locked(&self.state);
        if !state.ended {
            // There is room for one.
            let _ = sender.try_send(leader_of(&state.peer));
            state.leaders.retain(|watcher| !watcher.is_closed());
            state.leaders.push(sender);
        }
        Leaders { receiver, last: None }
    }
}

/// Who leads, if the server knows and serves under that leader.
fn leader_of(status: &PeerStatus) -> Option<Leader> {
    status.leader.filter(|_| status.serving).map(|id| (id, status.current_epoch))
}

/// How a server that is like this was brought to its leader's history, if it was.
fn sync_of(status: &PeerStatus, before: Option<How>, reports: &[Report]) -> Option<How> {
    let said = reports.iter().rev().find_map(|report| {
        if let Change::Sync { id, how } = report.change {
            return (id == status.id).then_some(Some(how));
        }
        matches!(report.change, Change::State { .. }).then_some(None)
    });
    let learns = matches!(status.state, ServerState::Following | ServerState::Observing);
    said.unwrap_or(before).filter(|_| learns)
}

/// See [`Observed::event`].
pub(crate) fn event_of(change: &Change) -> &'static str {
    match change {
        Change::State { to: ServerState::Looking, from: ServerState::Leading } => {
            "leader.stepped_down"
        }
        Change::State { to: ServerState::Looking, .. } => "follower.lost_leader",
        Change::State { .. } => "election.decided",
        Change::Vote { .. } => "election.vote_changed",
        Change::Round { .. } | Change::BackIntoRound(_) => "election.round_joined",
        Change::Phase { .. } => "election.phase_changed",
        Change::AcceptedEpoch(_) => "epoch.promised",
        Change::CurrentEpoch(_) => "epoch.established",
        Change::Configuration(_) => "config.changed",
        Change::NextConfiguration(_) => "config.proposed",
        Change::Sync { .. } => "sync.started",
        Change::Ignored { .. } => "sync.ignored",
        Change::Learner { synced: true, .. } => "sync.finished",
        Change::Learner { synced: false, .. } => "learner.lost",
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::config::Config;
    use quorate_core::durable::Durable;
    use quorate_core::peer::Peer;

    use super::*;

    /// Changes may be days apart: until then nothing would notice that a reader has gone.
    #[test]
    fn readers_that_are_gone_are_forgotten_when_another_one_comes() {
        let membership = Membership::parse("server.1=a:2888:3888:participant\nversion=0").unwrap();
        let config = Config::new(ServerId(1), membership.clone());
        let peer = Peer::new(config, Durable::default()).unwrap();
        let published =
            Published::new(peer.status(), &membership, 4, Instant::now(), Arc::default());
        let (_changes, _leaders) = (published.changes(), published.leaders());
        for _ in 0..100 {
            drop((published.changes(), published.leaders()));
        }
        let state = locked(&published.state);
        assert!(state.changes.len() <= 2 && state.leaders.len() <= 2, "{state:?}");
    }
}
