//! What is told of the server beneath the service, from its status.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quorate_service::{Beneath, ZooKeeper};
use quorate_tokio::core::vote::ServerState;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Changes, Server, Status as ServerStatus};

use super::text::{List, Spread, configuration, peer_state, sizes, sync_progress};

/// Tells what the service does not know: the server that it asks, and how long elections took.
#[derive(Debug)]
pub(crate) struct Responder {
    cfg: ZooCfg,
    /// Once it has started.
    server: OnceLock<Server<ZooKeeper>>,
    counters: Mutex<Counters>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    election_time: Spread,
    unavailable_time: Spread,
    leader_unavailable_time: Spread,
}

impl Responder {
    pub(crate) fn new(cfg: ZooCfg) -> Self {
        Self { cfg, server: OnceLock::new(), counters: Mutex::default() }
    }

    /// The server has started.
    pub(crate) fn on_started(self: &Arc<Self>, server: Server<ZooKeeper>) {
        let changes = server.changes();
        // Set once, here.
        drop(self.server.set(server));
        tokio::spawn(Arc::clone(self).measure(changes));
    }

    /// The lines of `mntr` that are not the service's.
    fn monitor(&self, whole: &ServerStatus) -> String {
        let (metrics, status) = (&whole.metrics, &whole.peer);
        let counters = self.counters();
        let mut list = List::default();
        list.add("peer_state", peer_state(status, whole.sync));
        if let Some(how) = whole.sync {
            list.add("sync_mode", how.to_string().to_lowercase());
        }
        list.add("epoch", status.current_epoch);
        list.add("zxid", status.processed);
        list.add("round", status.round);
        if let (ServerState::Observing, Some(leader)) = (status.state, status.leader) {
            list.add("observer_master_id", leader);
        }
        list.add("uptime", metrics.uptime.as_millis());
        list.add("quorum_size", status.voters);
        list.add("election_links", status.linked.len());
        if status.state == ServerState::Leading {
            let synced = |follower: bool, voter: bool| {
                let learners = status.learners.iter();
                learners.filter(|s| s.synced && s.follower == follower && s.voter == voter).count()
            };
            list.add("learners", status.learners.len());
            list.add("synced_followers", synced(true, true));
            list.add("synced_non_voting_followers", synced(true, false));
            list.add("synced_observers", synced(false, false) + synced(false, true));
        }
        if let Some(since) = metrics.leading_for {
            list.add("leader_uptime", since.as_millis());
        }
        list.add("sync_progress", sync_progress(status));
        list.add("looking_count", metrics.looking_count);
        list.spread("election_time", &counters.election_time);
        list.spread("unavailable_time", &counters.unavailable_time);
        list.spread("leader_unavailable_time", &counters.leader_unavailable_time);
        list.add("dropped_messages", metrics.dropped_messages);
        list.add("garbled_links", metrics.garbled_links);
        list.add("refused_introductions", metrics.refused_introductions);
        list.add("evicted_introductions", metrics.evicted_introductions);
        list.add("overflowed_links", metrics.overflowed_links);
        list.add("failed_dials", metrics.failed_dials);
        list.add("accept_errors", metrics.accept_errors);
        list.add("refused_connections", metrics.refused_connections);
        list.text
    }

    /// Notes how long elections and outages took. The server itself keeps the last and the sum.
    async fn measure(self: Arc<Self>, mut changes: Changes) {
        let mut before = (0, false);
        loop {
            before = self.note(before);
            if changes.next().await.is_none() {
                return;
            }
        }
    }

    /// Compares how many elections there were, and whether the server served, with what it is now.
    fn note(&self, (elections, served): (u64, bool)) -> (u64, bool) {
        let Some(server) = self.server.get() else { return (elections, served) };
        let status = server.status();
        let (peer, metrics) = (&status.peer, &status.metrics);
        let mut counters = self.counters();
        if metrics.elections > elections {
            counters.election_time.extend(metrics.last_election);
        }
        if peer.serving && !served {
            counters.unavailable_time.extend(metrics.last_unavailable);
            if peer.state == ServerState::Leading {
                counters.leader_unavailable_time.extend(metrics.last_unavailable);
            }
        }
        (metrics.elections, peer.serving)
    }

    pub(super) fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beneath for Responder {
    fn configuration(&self) -> String {
        let ports = self.server.get().map(Server::client_addrs).unwrap_or_default();
        configuration(&self.cfg, ports.first().map(SocketAddr::port))
    }

    fn directories(&self) -> String {
        sizes(&self.cfg)
    }

    fn figures(&self) -> String {
        self.server.get().map(|server| self.monitor(&server.status())).unwrap_or_default()
    }
}
