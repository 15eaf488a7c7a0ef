//! How a server is doing, for people and monitoring, and who wants to be told.
//!
//! The loop publishes here and never waits: a reader that does not keep up loses the oldest changes
//! and learns how many; a reader of the leader gets the latest one. Nothing in the protocol reads any
//! of it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::stream::{Stream, unfold};
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::report::{Change, How, Report};
use quorate_core::status::{Phase, Status as PeerStatus};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::lock::locked;
use crate::measures::{Measures, Took};

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

/// What the driver counts and measures. Counters begin at the start of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Since the start.
    pub uptime: Duration,
    /// How often it began to look for a leader (`zk_looking_count`).
    pub looking_count: u64,
    /// How many elections have ended with a leader.
    pub elections: u64,
    /// How long the last of them took (`zk_election_time`).
    pub last_election: Option<Duration>,
    /// How long all of them took together.
    pub election_time: Duration,
    /// Since it began to look for a leader, if it is looking.
    pub looking_for: Option<Duration>,
    /// Since it serves, if it does.
    pub serving_for: Option<Duration>,
    /// Since it leads a serving ensemble, if it does (`zk_leader_uptime`).
    pub leading_for: Option<Duration>,
    /// How long the last time without service took, from the start or the loss of the leader on
    /// (`zk_unavailable_time`).
    pub last_unavailable: Option<Duration>,
    /// How long it has not served, all together.
    pub unavailable: Duration,
    /// Messages that could not be read, while their link could be kept.
    pub dropped_messages: u64,
    /// Links closed because what came could not be read.
    pub garbled_links: u64,
    /// Connections to the election port closed because their introduction could not be read.
    pub refused_introductions: u64,
    /// Connections to the election port closed because they stayed silent while others came.
    pub evicted_introductions: u64,
    /// Dials that reached no address of a peer.
    pub failed_dials: u64,
    /// How often the system refused to accept a connection.
    pub accept_errors: u64,
    /// Connections to our ports for peers that were closed at once, because their address had as many as it may
    /// have, see [`ServerConfig::max_peer_connections`](crate::ServerConfig::max_peer_connections).
    pub refused_connections: u64,
    /// Links ended because the peer did not read.
    pub overflowed_links: u64,
    /// How many connections clients have now (`zk_num_alive_connections`).
    pub clients: usize,
    /// Connections of clients that were closed at once, because there were as many as there may be, see
    /// [`ServerConfig::max_client_connections`](crate::ServerConfig::max_client_connections).
    pub refused_clients: u64,
    /// Connections of clients that were ended because they read nothing while ever more was to be written.
    pub overflowed_clients: u64,
    /// How often the system refused to accept a connection of a client.
    pub client_accept_errors: u64,
    /// The last transaction that the application has applied; zero if none.
    pub applied: Zxid,
    /// Learners that were sent what they miss, or were told what to cut, by this leader (`zk_diff_count`).
    pub diffs_sent: u64,
    /// Learners that were sent a whole snapshot (`zk_snap_count`).
    pub snapshots_sent: u64,
    /// For how long the disk has been at the same work: a write that hangs.
    pub disk_busy: Duration,
    /// It has been told to end in order.
    pub ending: bool,
    /// How many requests of callers at this server, in this process, are under way
    /// (`zk_outstanding_requests`); those of a leader's learners are counted where they were made.
    pub outstanding: usize,
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

/// Counters of what happens outside the loop.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) dropped_messages: AtomicU64,
    pub(crate) garbled_links: AtomicU64,
    pub(crate) refused_introductions: AtomicU64,
    pub(crate) evicted_introductions: AtomicU64,
    pub(crate) failed_dials: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) overflowed_links: AtomicU64,
    pub(crate) clients: AtomicUsize,
    pub(crate) refused_clients: AtomicU64,
    pub(crate) overflowed_clients: AtomicU64,
    pub(crate) client_accept_errors: AtomicU64,
    applied: AtomicI64,
    outstanding: AtomicUsize,
    pub(crate) ending: AtomicBool,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How far the application is, and how much is asked for.
    pub(crate) fn set(&self, applied: Zxid, outstanding: usize) {
        self.applied.store(applied.0, Ordering::Relaxed);
        self.outstanding.store(outstanding, Ordering::Relaxed);
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

/// Measures durations between states.
#[derive(Debug)]
struct Meter {
    started: Instant,
    looking_since: Option<Instant>,
    serving_since: Option<Instant>,
    leading: bool,
    down_since: Option<Instant>,
    down_before: Duration,
    syncing_since: Option<Instant>,
    metrics: Metrics,
    measures: Arc<Measures>,
}

impl Meter {
    fn new(status: &PeerStatus, now: Instant, measures: Arc<Measures>) -> Self {
        let mut meter = Self {
            started: now,
            looking_since: None,
            serving_since: None,
            leading: false,
            down_since: Some(now),
            down_before: Duration::ZERO,
            syncing_since: None,
            metrics: Metrics::default(),
            measures,
        };
        meter.observe(status, now);
        meter
    }

    fn observe(&mut self, status: &PeerStatus, at: Instant) {
        let metrics = &mut self.metrics;
        match (status.state == ServerState::Looking, self.looking_since) {
            (true, None) => {
                metrics.looking_count += 1;
                self.looking_since = Some(at);
            }
            (false, Some(since)) => {
                let took = at.saturating_duration_since(since);
                metrics.elections += 1;
                metrics.last_election = Some(took);
                metrics.election_time += took;
                if status.voter {
                    self.measures.took(Took::Election, took);
                }
                self.looking_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
        match (status.serving, self.down_since) {
            (true, Some(since)) => {
                let took = at.saturating_duration_since(since);
                metrics.last_unavailable = Some(took);
                self.down_before += took;
                self.measures.took(Took::Unavailable, took);
                if status.state == ServerState::Leading {
                    self.measures.took(Took::LeaderUnavailable, took);
                }
                self.down_since = None;
                self.serving_since = Some(at);
            }
            (false, None) => {
                self.down_since = Some(at);
                self.serving_since = None;
            }
            (true, None) | (false, Some(_)) => {}
        }
        self.leading = status.state == ServerState::Leading;
        self.observe_sync(status, at);
    }

    /// From the leader's epoch on until this learner serves.
    fn observe_sync(&mut self, status: &PeerStatus, at: Instant) {
        let took = match status.state {
            ServerState::Following => Took::FollowerSync,
            ServerState::Observing => Took::ObserverSync,
            ServerState::Looking | ServerState::Leading => return self.syncing_since = None,
        };
        if status.serving {
            if let Some(since) = self.syncing_since.take() {
                self.measures.took(took, at.saturating_duration_since(since));
            }
        } else if status.phase == Phase::Synchronization {
            self.syncing_since.get_or_insert(at);
        }
    }

    fn count_syncs(&mut self, status: &PeerStatus, reports: &[Report]) {
        for report in reports {
            let Change::Sync { id, how } = report.change else { continue };
            if id != status.id {
                match how {
                    How::Snap => self.metrics.snapshots_sent += 1,
                    How::Diff | How::Trunc => self.metrics.diffs_sent += 1,
                }
            }
        }
    }

    fn metrics(&self, counters: &Counters, now: Instant) -> Metrics {
        let since = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            uptime: now.saturating_duration_since(self.started),
            looking_for: since(self.looking_since),
            serving_for: since(self.serving_since),
            leading_for: since(self.serving_since.filter(|_| self.leading)),
            unavailable: self.down_before + since(self.down_since).unwrap_or_default(),
            dropped_messages: read(&counters.dropped_messages),
            garbled_links: read(&counters.garbled_links),
            refused_introductions: read(&counters.refused_introductions),
            evicted_introductions: read(&counters.evicted_introductions),
            failed_dials: read(&counters.failed_dials),
            accept_errors: read(&counters.accept_errors),
            refused_connections: read(&counters.refused_connections),
            overflowed_links: read(&counters.overflowed_links),
            clients: counters.clients.load(Ordering::Relaxed),
            refused_clients: read(&counters.refused_clients),
            overflowed_clients: read(&counters.overflowed_clients),
            client_accept_errors: read(&counters.client_accept_errors),
            applied: Zxid(counters.applied.load(Ordering::Relaxed)),
            outstanding: counters.outstanding.load(Ordering::Relaxed),
            disk_busy: self.measures.disk_busy(),
            ending: counters.ending.load(Ordering::Relaxed),
            ..self.metrics.clone()
        }
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
