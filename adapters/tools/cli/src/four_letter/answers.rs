//! The answer to each word, from the server's status and the counters of this port.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_service::ZooKeeper;
use quorate_tokio::core::vote::ServerState;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Changes, Server, Status as ServerStatus};

use super::text::{List, Spread, configuration, line, mode, peer_state, sync_progress};

/// The words that are answered, if the whitelist lets them.
const WORDS: [&str; 5] = ["ruok", "srvr", "stat", "conf", "mntr"];
/// Words of ZooKeeper that mean nothing here; they are never on the whitelist.
const UNANSWERED_WORDS: [&str; 14] = [
    "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "lead", "srst", "stmk", "wchc",
    "wchp", "wchs",
];

/// How many connections there may be at once.
pub(super) const CONNECTIONS_MAX: usize = 60;
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-quorate");
/// The least time between two lines of the log about clients that were turned away.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Answers words: the server that it asks, and the counters of its port.
#[derive(Debug)]
pub(crate) struct Responder {
    cfg: ZooCfg,
    pub(super) server: Server<ZooKeeper>,
    received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) accept_errors: AtomicU64,
    counters: Mutex<Counters>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) next: u64,
    pub(super) connections: BTreeMap<u64, SocketAddr>,
    turned_away: u64,
    logged: Option<Instant>,
    election_time: Spread,
    unavailable_time: Spread,
    leader_unavailable_time: Spread,
}

impl Responder {
    pub(crate) fn new(cfg: ZooCfg, server: Server<ZooKeeper>) -> Self {
        Self {
            cfg,
            server,
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            counters: Mutex::default(),
        }
    }

    /// The answer to a word; none if it is no word.
    pub(super) async fn answer(&self, word: &str) -> Option<String> {
        if !WORDS.contains(&word) && !UNANSWERED_WORDS.contains(&word) {
            return None;
        }
        self.received.fetch_add(1, Ordering::Relaxed);
        if !WORDS.contains(&word) && self.cfg.answers(word) {
            return Some(format!(
                "{word} is not executed because this server has nothing to say to it.\n"
            ));
        }
        if !self.cfg.answers(word) {
            return Some(format!("{word} is not executed because it is not in the whitelist.\n"));
        }
        let status = self.server.status();
        // ZooKeeper counts the root twice.
        let nodes =
            self.server.read_local(|zookeeper| zookeeper.tree().len() + 1).await.unwrap_or(0);
        Some(match word {
            "ruok" => "imok".to_owned(),
            "mntr" => self.monitor(&status, nodes),
            _ if !status.peer.serving => NOT_SERVING.to_owned(),
            "conf" => configuration(&self.cfg, CONNECTIONS_MAX),
            word => self.statistics(&status, word == "stat", nodes),
        })
    }

    /// `srvr`, and `stat` with the connections. Without ZooKeeper's lines about latency, since no request of a client is
    /// served, and about the sizes of proposals, which are not measured.
    fn statistics(&self, status: &ServerStatus, with_clients: bool, nodes: usize) -> String {
        let (metrics, status) = (&status.metrics, &status.peer);
        let mut text = format!("Zookeeper version: {VERSION}\n");
        let counters = self.counters();
        if with_clients {
            text.push_str("Clients:\n");
            for remote in counters.connections.values() {
                line(&mut text, format_args!(" /{remote}[0](queued=0,recved=1,sent=0)"));
            }
            text.push('\n');
        }
        line(&mut text, format_args!("Received: {}", self.received.load(Ordering::Relaxed)));
        line(&mut text, format_args!("Sent: {}", self.sent.load(Ordering::Relaxed)));
        line(&mut text, format_args!("Connections: {}", counters.connections.len()));
        line(&mut text, format_args!("Outstanding: {}", metrics.outstanding));
        line(&mut text, format_args!("Zxid: {}", status.processed));
        line(&mut text, format_args!("Mode: {}", mode(status.state)));
        line(&mut text, format_args!("Node count: {nodes}"));
        text
    }

    /// `mntr`.
    fn monitor(&self, whole: &ServerStatus, nodes: usize) -> String {
        let (metrics, status) = (&whole.metrics, &whole.peer);
        let counters = self.counters();
        let mut list = List::default();
        list.add("version", VERSION);
        list.add("server_state", mode(status.state));
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
        list.add("num_alive_connections", counters.connections.len());
        list.add("packets_received", self.received.load(Ordering::Relaxed));
        list.add("packets_sent", self.sent.load(Ordering::Relaxed));
        list.add("outstanding_requests", metrics.outstanding);
        list.add("znode_count", nodes);
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
        list.add("client_accept_errors", self.accept_errors.load(Ordering::Relaxed));
        list.add("refused_connections", metrics.refused_connections);
        list.text
    }

    /// Notes how long elections and outages took. The server itself keeps the last and the sum.
    pub(super) async fn measure(self: Arc<Self>, mut changes: Changes) {
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
        let status = self.server.status();
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

    /// Notes a connection whose first four bytes are no word; those of a client are a length.
    pub(super) fn turn_away(&self, remote: SocketAddr, first: [u8; 4]) {
        let length = i32::from_be_bytes(first);
        if !(0..0x10_0000).contains(&length) {
            tracing::debug!(%remote, ?first, "neither a four-letter word nor a client");
            return;
        }
        let mut counters = self.counters();
        counters.turned_away += 1;
        if counters.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            counters.logged = Some(Instant::now());
            tracing::info!(
                %remote, so_far = counters.turned_away,
                "a ZooKeeper client was turned away: this version serves no clients, \
                 only four-letter words"
            );
        }
    }

    pub(super) fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
