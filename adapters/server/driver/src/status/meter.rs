//! Durations between states, as the loop publishes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_core::id::ServerId;
use quorate_core::report::{Change, How, Reason, Report};
use quorate_core::status::{Phase, Status as PeerStatus};
use quorate_core::vote::ServerState;
use quorate_core::zxid::Zxid;

use crate::measures::{Counted, Measures, Step, Took};
use crate::status::metrics::{Counters, Metrics};

/// Measures durations between states.
#[derive(Debug)]
pub(super) struct Meter {
    started: Instant,
    pub(super) looking_since: Option<Instant>,
    serving_since: Option<Instant>,
    leading: bool,
    down_since: Option<Instant>,
    down_before: Duration,
    syncing_since: Option<Instant>,
    /// The step that is under way, and since when.
    step: Option<(Step, Instant)>,
    /// The learners that are being synchronised, and whether with a snapshot.
    syncs: BTreeMap<ServerId, bool>,
    metrics: Metrics,
    measures: Arc<Measures>,
}

impl Meter {
    pub(super) fn new(status: &PeerStatus, now: Instant, measures: Arc<Measures>) -> Self {
        let mut meter = Self {
            started: now,
            looking_since: None,
            serving_since: None,
            leading: false,
            down_since: Some(now),
            down_before: Duration::ZERO,
            syncing_since: None,
            step: None,
            syncs: BTreeMap::new(),
            metrics: Metrics::default(),
            measures,
        };
        meter.observe(status, now);
        meter
    }

    pub(super) fn observe(&mut self, status: &PeerStatus, at: Instant) {
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
        self.observe_step(status, at);
    }

    /// How long each step took that led to the next one: one that failed is none. Those that were done between two looks took
    /// no longer than that.
    fn observe_step(&mut self, status: &PeerStatus, at: Instant) {
        let now = match (status.state, status.phase) {
            (ServerState::Looking, _) | (_, Phase::Election) => Some(Step::Election),
            (_, Phase::Discovery) => Some(Step::Discovery),
            (_, Phase::Synchronization) => Some(Step::Synchronization),
            (_, Phase::Broadcast) => None,
        };
        let Some((was, since)) = self.step.filter(|(was, _)| Some(*was) != now) else {
            if self.step.is_none() {
                self.step = now.map(|step| (step, at));
            }
            return;
        };
        let end = now.map_or(Step::ALL.len(), |step| step as usize);
        let mut took = at.saturating_duration_since(since);
        for step in Step::ALL.get(was as usize..end).unwrap_or_default() {
            self.measures.stepped(*step, took);
            took = Duration::ZERO;
        }
        self.step = now.map(|step| (step, at));
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

    /// What a leader reports of its end.
    pub(super) fn count_ends(&self, reports: &[Report]) {
        let deserted = |report: &&Report| matches!(report.reason, Reason::Deserted { .. });
        if reports.iter().any(|report| deserted(&report)) {
            self.measures.count(Counted::Deserted, 1);
        }
    }

    pub(super) fn count_syncs(&mut self, status: &PeerStatus, reports: &[Report]) {
        if status.state != ServerState::Leading {
            self.syncs.clear();
        }
        for report in reports {
            if let Change::Learner { id, .. } = report.change {
                self.syncs.remove(&id);
            }
            let Change::Sync { id, how } = report.change else { continue };
            if id != status.id {
                self.count_sync(id, how);
            }
        }
    }

    /// A leader begins to synchronise a learner.
    fn count_sync(&mut self, id: ServerId, how: How) {
        let whole = how == How::Snap;
        self.syncs.insert(id, whole);
        let under_way = self.syncs.values().filter(|of| **of == whole).count() as u64;
        if whole {
            self.metrics.snapshots_sent += 1;
            self.measures.saw(Took::InflightSnaps, under_way);
        } else {
            self.metrics.diffs_sent += 1;
            self.measures.saw(Took::InflightDiffs, under_way);
        }
    }

    pub(super) fn metrics(&self, counters: &Counters, now: Instant) -> Metrics {
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
            audit_dropped: read(&counters.audit_dropped),
            client_accept_errors: read(&counters.client_accept_errors),
            applied: Zxid(counters.applied.load(Ordering::Relaxed)),
            outstanding: counters.outstanding.load(Ordering::Relaxed),
            disk_busy: self.measures.disk_busy(),
            disk_fault: self.measures.disk_fault(),
            disk_low: self.measures.disk_is_low(),
            disk_outages: self.measures.counted(Counted::DiskOutages),
            ending: counters.ending.load(Ordering::Relaxed),
            ..self.metrics.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::vote::{Round, Vote};
    use quorate_core::zxid::Epoch;

    use super::*;

    fn status(state: ServerState, phase: Phase) -> PeerStatus {
        let vote = Vote { leader: ServerId(1), zxid: Zxid::ZERO, peer_epoch: Epoch::ZERO };
        PeerStatus {
            id: ServerId(1),
            state,
            phase,
            round: Round(1),
            vote,
            leader: None,
            accepted_epoch: Epoch::ZERO,
            current_epoch: Epoch::ZERO,
            last: Zxid::ZERO,
            processed: Zxid::ZERO,
            serving: phase == Phase::Broadcast,
            voter: true,
            voters: 3,
            learners: Vec::new(),
            linked: Vec::new(),
        }
    }

    #[test]
    fn a_step_is_measured_when_the_next_one_begins_and_not_when_it_fails() {
        use ServerState::{Following, Leading, Looking};
        let (began, measures) = (Instant::now(), Arc::new(Measures::default()));
        let looking = status(Looking, Phase::Election);
        let mut meter = Meter::new(&looking, began, Arc::clone(&measures));
        let mut at = |millis: u64, state, phase| {
            meter.observe(&status(state, phase), began + Duration::from_millis(millis));
        };
        at(5, Looking, Phase::Election);
        at(10, Following, Phase::Discovery);
        // The leader is gone again.
        at(110, Looking, Phase::Election);
        // Two steps in one look, and the last.
        at(140, Leading, Phase::Synchronization);
        at(145, Leading, Phase::Broadcast);
        at(1_000, Leading, Phase::Broadcast);
        let told = |step| {
            let spread = measures.spread_of_step(step);
            (spread.count, spread.sum)
        };
        assert_eq!(told(Step::Election), (2, 40_000));
        assert_eq!(told(Step::Discovery), (1, 0));
        assert_eq!(told(Step::Synchronization), (1, 5_000));
    }

    #[test]
    fn a_leader_that_is_deserted_is_counted_once() {
        let measures = Arc::new(Measures::default());
        let looking = status(ServerState::Looking, Phase::Election);
        let meter = Meter::new(&looking, Instant::now(), Arc::clone(&measures));
        let change = Change::State { from: ServerState::Leading, to: ServerState::Looking };
        let why = |reason| Report { change, reason };
        meter.count_ends(&[why(Reason::Started)]);
        assert_eq!(measures.counted(Counted::Deserted), 0);
        let deserted = why(Reason::Deserted { voter: ServerId(2) });
        meter.count_ends(&[deserted.clone(), deserted]);
        assert_eq!(measures.counted(Counted::Deserted), 1);
    }
}
