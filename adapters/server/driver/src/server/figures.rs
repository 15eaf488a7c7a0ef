//! What the server has counted and measured, under ZooKeeper's names.
//!
//! ZooKeeper registers a gauge with the role that it belongs to and takes it away with it (`Leader`, `QuorumZooKeeperServer`,
//! `LeaderZooKeeperServer.registerMetrics`): some are there on a leader only, some while the server serves. So it is here:
//! dashboards count the leaders by `leader_uptime`.

use std::sync::atomic::Ordering;
#[cfg(feature = "tls")]
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_application::Application;
use quorate_core::input::Plane;
use quorate_core::report::How;
use quorate_core::status::{Phase, Status as PeerStatus};
use quorate_core::vote::ServerState;
use quorate_metrics::Figures;

use crate::measures::{Counted, Of, Step, Took};
use crate::runtime::Runtime;
use crate::server::handle::Server;
use crate::status::{Metrics, Status};

impl<R: Runtime, A: Application> Server<R, A> {
    /// What this server has counted and measured, for `mntr` and for Prometheus; without what its application and the
    /// service of its clients know.
    pub fn figures(&self) -> Figures {
        let Status { peer, sync, metrics } = self.status();
        let mut figures = Figures::default();
        words(&mut figures, &peer, sync);
        gauges(&mut figures, &peer, &metrics);
        self.counters(&mut figures, &metrics);
        self.measured(&mut figures, &peer);
        page(&mut figures, &peer, &metrics);
        self.margin(&mut figures, &peer);
        self.leading(&mut figures, &peer);
        self.reached(&mut figures);
        refused(&mut figures, &metrics);
        self.links(&mut figures);
        self.clients(&mut figures, &metrics);
        figures
    }

    /// Steps of requests, of elections and of the disk: always there, from 0.
    fn measured(&self, figures: &mut Figures, peer: &PeerStatus) {
        let measures = &self.handle.published.measures;
        for what in Took::ALL.iter().filter(|what| **what != Took::LoopStall) {
            figures.summary(what.name(), what.detail(), &measures.spread(*what));
        }
        let help = "How late the loop was, where it was late by more than half a tick.";
        let stalls = measures.spread(Took::LoopStall);
        figures.seconds_on_page("quorate_loop_stall_seconds", help, &[], &stalls);
        for step in Step::ALL {
            let help = "How long each step took on the way to a serving ensemble.";
            let (labels, spread) = ([("phase", step.name())], measures.spread_of_step(*step));
            figures.seconds_on_page("quorate_election_phase_seconds", help, &labels, &spread);
        }
        for of in Of::ALL {
            for (id, spread) in measures.spreads(*of) {
                figures.summary_of(of.name(), of.detail(), &id.to_string(), &spread);
            }
        }
        for (id, synced) in measures.synced() {
            let help =
                "Bytes that were sent to a learner until it served, by how it was brought up.";
            for (how, bytes) in synced.counted() {
                let mode = how.to_string().to_lowercase();
                let labels = [("peer", &*id.to_string()), ("mode", &*mode)];
                figures.counted_on_page("quorate_peer_sync_bytes_total", help, &labels, bytes);
            }
        }
        if peer.state == ServerState::Leading {
            let [last, min, max] = measures.proposal_sizes();
            figures.gauge("last_proposal_size", last);
            figures.gauge("min_proposal_size", min);
            figures.gauge("max_proposal_size", max);
            figures.gauge("pending_syncs", measures.pending_syncs());
            for (id, trip) in measures.round_trips() {
                let help =
                    "The last round trip of a ping to a learner, until the loop here has it.";
                let labels = [("peer", &*id.to_string())];
                figures.on_page("quorate_link_rtt_seconds", help, &labels, trip.as_secs_f64());
            }
        }
    }

    /// For how long a leader leads at least, and how far its learners are.
    fn leading(&self, figures: &mut Figures, peer: &PeerStatus) {
        if peer.state != ServerState::Leading {
            return;
        }
        if let Some(until) = self.handle.gate.lease() {
            let help = "For how long it leads at least, by the promises of its voters.";
            let left = until.saturating_duration_since(self.handle.runtime.now());
            figures.on_page("quorate_lease_remaining_seconds", help, &[], left.as_secs_f64());
        }
        for learner in &peer.learners {
            let help = "1 for a learner that has acknowledged this leader's history, 0 until then.";
            let labels = [("peer", &*learner.id.to_string())];
            figures.on_page("quorate_peer_sync_progress", help, &labels, learner.synced);
        }
    }

    /// How many voters a leader may still lose; where weights or groups count, no number says it.
    fn margin(&self, figures: &mut Figures, peer: &PeerStatus) {
        let membership = self.membership();
        if peer.state == ServerState::Leading && peer.serving && !membership.is_hierarchical() {
            let synced = peer.learners.iter().filter(|at| at.synced && at.voter).count();
            let here = synced + usize::from(peer.voter);
            let margin = here.saturating_sub(peer.voters / 2 + 1);
            let help = "How many voters may still go until there is no quorum.";
            figures.on_page("quorate_quorum_margin", help, &[], margin);
        }
    }

    /// Which members could not be dialled.
    fn reached(&self, figures: &mut Figures) {
        for (id, why, count) in self.handle.shared.reach.failures() {
            let help = "Dials to an address of a member that came to nothing.";
            let labels = [("peer", &*id.to_string()), ("reason", why.name())];
            figures.counted_on_page("quorate_dial_failures_total", help, &labels, count);
        }
    }

    /// What had to be sent again to each member, if the system tells.
    fn resent(&self, figures: &mut Figures) {
        let membership = self.membership();
        let is_member = |id| membership.member(id).is_some();
        for (id, count) in self.handle.shared.retransmits.counts(is_member) {
            let help = "Packets that the system had to send again to a peer, over all links to it.";
            let labels = [("peer", &*id.to_string())];
            figures.counted_on_page("quorate_link_retransmits_total", help, &labels, count);
        }
    }

    /// Links by whether there is TLS around them, and those that did not come to be for it.
    fn links(&self, figures: &mut Figures) {
        self.resent(figures);
        let shared = &self.handle.shared;
        for plane in [Plane::Election, Plane::Quorum] {
            for (secure, word) in [(false, "false"), (true, "true")] {
                let help = "Links that are open, by whether there is TLS around them.";
                let labels = [("plane", plane_name(plane)), ("tls", word)];
                let count = shared.open_links.count(plane, secure);
                figures.on_page("quorate_links", help, &labels, count);
            }
        }
        #[cfg(feature = "tls")]
        self.secure_links(figures);
        let failures = shared.tls_failures.all();
        for ((plane, side, reason), count) in &failures {
            figures.tls_failures(plane_name(*plane), side.word(), reason, *count);
        }
        #[cfg(feature = "tls")]
        for plane in [Plane::Election, Plane::Quorum] {
            let failed = failures.iter().filter(|((of, ..), _)| *of == plane);
            let failed = failed.map(|(_, count)| count).sum();
            handshakes(figures, plane_name(plane), shared.secure_links.made(plane), failed);
        }
        for ((plane, dialled, outcome), count) in shared.logins.all() {
            let help = "Logins between servers, and links without where none is required.";
            let side = if dialled { "dial" } else { "accept" };
            let labels = [("plane", plane_name(plane)), ("side", side), ("outcome", outcome)];
            figures.counted_on_page("quorate_sasl_logins_total", help, &labels, count);
        }
    }

    /// Clients by whether there is TLS around them, their handshakes, and those that were not let in.
    fn clients(&self, figures: &mut Figures, metrics: &Metrics) {
        let handshakes = &self.handle.shared.client_handshakes;
        let [under_way, secure] =
            [&handshakes.under_way, &handshakes.open].map(|count| count.load(Ordering::Relaxed));
        figures.gauge("outstanding_tls_handshake", under_way);
        figures.counter("tls_handshake_exceeded", handshakes.evicted.load(Ordering::Relaxed));
        let failures = handshakes.failures();
        let unsuccessful: u64 = failures.iter().map(|(_, count)| count).sum();
        figures.counter("unsuccessful_handshake", unsuccessful);
        for (word, count) in [("false", metrics.clients.saturating_sub(secure)), ("true", secure)] {
            let help = "Connections of clients, by whether there is TLS around them.";
            figures.on_page("quorate_client_connections", help, &[("tls", word)], count);
        }
        for (reason, count) in failures {
            figures.tls_failures("client", "accept", reason, count);
        }
        let made = handshakes.made.load(Ordering::Relaxed);
        self::handshakes(figures, "client", made, unsuccessful);
    }

    #[cfg(feature = "tls")]
    fn secure_links(&self, figures: &mut Figures) {
        let links = &self.handle.shared.secure_links;
        for ((plane, peer), count) in links.records() {
            let help = "Records of TLS on links with a member; with others together, under none.";
            let peer = peer.map_or_else(|| "none".to_owned(), |peer| peer.to_string());
            let labels = [("plane", plane_name(plane)), ("peer", &*peer)];
            figures.counted_on_page("quorate_tls_records_total", help, &labels, count);
        }
        let reloads = self.handle.shared.store_reloads.load(Ordering::Relaxed);
        let help = "How often changed stores of TLS between servers were read again.";
        figures.counted_on_page("quorate_tls_reloads_total", help, &[], reloads);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let ended = |ends: i64| u64::try_from(ends).map_or(true, |ends| ends < now);
        let ended = links.all().into_iter().filter(|(_, link)| ended(link.ends)).count();
        let help = "Links that are up with a certificate of the other side that has ended.";
        figures.on_page("quorate_tls_expired_links", help, &[], ended);
        for (peer, ends) in links.ends() {
            let help = "When the certificate ends that this server shows, or that a member has shown, since 1970.";
            let of = if peer.is_some() { "peer" } else { "own" };
            let peer = peer.unwrap_or(self.handle.shared.id).to_string();
            let labels = [("use", of), ("peer", &*peer)];
            figures.on_page("quorate_certificate_expiry_timestamp_seconds", help, &labels, ends);
        }
    }

    fn counters(&self, figures: &mut Figures, metrics: &Metrics) {
        let measures = &self.handle.published.measures;
        for what in Counted::ALL {
            let count = measures.counted(*what);
            if *what == Counted::SlowSyncs {
                // As in ZooKeeper, where `mntr` tells it beside the gauges.
                figures.gauge(what.name(), count);
            } else if *what == Counted::DiskOutages {
                let help = "Failures of the disk for which it left service.";
                figures.own_counter(what.name(), help, count);
            } else {
                figures.counter(what.name(), count);
            }
        }
        figures.counter("looking_count", metrics.looking_count);
        figures.counter("diff_count", metrics.diffs_sent);
        figures.counter("snap_count", metrics.snapshots_sent);
        figures.counter("connection_rejected", metrics.refused_clients);
        let help = "Lines of the audit log that were dropped.";
        figures.own_counter("audit_dropped", help, metrics.audit_dropped);
        // Where such an error is met the server ends, and what it has counted with it.
        figures.counter("unrecoverable_error_count", 0_u64);
        let own = [
            ("leader_changes", "Elections that ended with a leader.", metrics.elections),
            ("dropped_messages", "Messages that could not be read.", metrics.dropped_messages),
            ("garbled_links", "Links closed for what came.", metrics.garbled_links),
            (
                "refused_introductions",
                "Connections to the election port whose introduction could not be read.",
                metrics.refused_introductions,
            ),
            (
                "evicted_introductions",
                "Connections to the election port that stayed silent while others came.",
                metrics.evicted_introductions,
            ),
            ("overflowed_links", "Links whose peer did not read.", metrics.overflowed_links),
            ("failed_dials", "Dials that reached no address of a peer.", metrics.failed_dials),
            ("accept_errors", "Refusals of the system to accept.", metrics.accept_errors),
            (
                "refused_connections",
                "Connections of peers beyond the limit of one address.",
                metrics.refused_connections,
            ),
        ];
        for (name, help, count) in own {
            figures.own_counter(name, help, count);
        }
    }
}

const fn plane_name(plane: Plane) -> &'static str {
    match plane {
        Plane::Election => "election",
        Plane::Quorum => "quorum",
    }
}

/// What is no number, and what only words have under a name of ours.
fn words(figures: &mut Figures, peer: &PeerStatus, sync: Option<How>) {
    figures.text("peer_state", peer_state(peer, sync));
    if let Some(how) = sync {
        figures.text("sync_mode", how.to_string().to_lowercase());
    }
    figures.text("epoch", peer.current_epoch);
    figures.text("zxid", peer.processed);
    figures.text("round", peer.round);
    figures.text("sync_progress", sync_progress(peer));
    if let (ServerState::Observing, Some(leader)) = (peer.state, peer.leader) {
        figures.text("observer_master_id", leader);
    }
}

fn gauges(figures: &mut Figures, peer: &PeerStatus, metrics: &Metrics) {
    let millis = |time: std::time::Duration| time.as_millis();
    if let Some(since) = metrics.serving_for {
        figures.gauge("uptime", millis(since));
        figures.gauge("quorum_size", peer.voters);
    }
    if peer.state == ServerState::Leading {
        let synced = |follower: bool| {
            peer.learners.iter().filter(move |at| at.synced && at.follower == follower)
        };
        figures.gauge("learners", peer.learners.len());
        figures.gauge("synced_followers", synced(true).count());
        let non_voting = synced(true).filter(|at| !at.voter).count();
        figures.gauge("synced_non_voting_followers", non_voting);
        figures.gauge("synced_observers", synced(false).count());
    }
    if let Some(since) = metrics.leading_for {
        figures.gauge("leader_uptime", millis(since));
    }
    figures.own_gauge("election_links", "Links for elections.", peer.linked.len());
}

/// Handshakes of TLS on links, or of clients.
fn handshakes(figures: &mut Figures, plane: &str, made: u64, failed: u64) {
    for (result, count) in [("ok", made), ("failed", failed)] {
        let help = "Handshakes of TLS that came to an end, and connections refused for what TLS says, or for its lack.";
        let labels = [("plane", plane), ("result", result)];
        figures.counted_on_page("quorate_tls_handshakes_total", help, &labels, count);
    }
}

/// What was refused to others, by reason.
fn refused(figures: &mut Figures, metrics: &Metrics) {
    let limited = metrics.refused_connections + metrics.refused_clients;
    for (reason, count) in [
        ("introduction", metrics.refused_introductions),
        ("frame", metrics.garbled_links),
        ("limit", limited),
    ] {
        let help = "Connections that were refused or closed for what came, or for their number.";
        figures.counted_on_page("quorate_refused_total", help, &[("reason", reason)], count);
    }
}

/// What only the page has: states as labels, seconds.
fn page(figures: &mut Figures, peer: &PeerStatus, metrics: &Metrics) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    figures.on_page("quorate_build_info", "The version of this server.", &version, true);
    let states = [
        ("looking", ServerState::Looking),
        ("following", ServerState::Following),
        ("leading", ServerState::Leading),
        ("observing", ServerState::Observing),
    ];
    for (name, state) in states {
        let is = peer.state == state;
        figures.on_page("quorate_state", "1 for what this server does.", &[("state", name)], is);
    }
    for phase in [Phase::Election, Phase::Discovery, Phase::Synchronization, Phase::Broadcast] {
        let (name, is) = (phase.to_string(), peer.phase == phase);
        let help = "1 for how far it is on the way to a serving ensemble.";
        figures.on_page("quorate_phase", help, &[("phase", &name)], is);
    }
    let leader = peer.leader.is_some() && peer.serving;
    for (name, help, value) in [
        ("quorate_has_leader", "Whether it serves under a leader, or leads.", i64::from(leader)),
        ("quorate_epoch", "The epoch whose history it has.", peer.current_epoch.0),
        (
            "quorate_accepted_epoch",
            "The highest epoch that it has promised.",
            peer.accepted_epoch.0,
        ),
        ("quorate_round", "Its election round.", peer.round.0),
        ("quorate_zxid_epoch", "The epoch of its last zxid.", peer.processed.0 >> 32),
        ("quorate_zxid_counter", "The counter of its last zxid.", peer.processed.0 & 0xffff_ffff),
        // As words call them.
        ("zk_epoch", "The epoch whose history it has.", peer.current_epoch.0),
        ("zk_zxid", "Its last zxid.", peer.processed.0),
    ] {
        figures.on_page(name, help, &[], value);
    }
    // What was inherited is committed.
    if peer.serving {
        let help = "Transactions of the log here that are not known to be committed.";
        let same = peer.last.epoch() == peer.processed.epoch();
        let lag = if same { peer.last.0.saturating_sub(peer.processed.0).max(0) } else { 0 };
        figures.on_page("quorate_committed_zxid_lag", help, &[], lag);
    }
    let progress = sync_progress(peer);
    figures.on_page("zk_sync_progress", "How much is synchronised, in percent.", &[], progress);
    for link in &peer.linked {
        let labels = [("peer", &*link.to_string()), ("plane", "election")];
        figures.on_page("quorate_link_up", "1 for a link that is there.", &labels, true);
    }
    disk(figures, metrics);
}

/// How its disk is.
fn disk(figures: &mut Figures, metrics: &Metrics) {
    let low = "Whether there is less room on its disk than a leader should have.";
    for (name, help, is) in [
        ("quorate_disk_failed", "Whether it waits for its disk.", metrics.disk_fault.is_some()),
        ("quorate_disk_low", low, metrics.disk_low),
        ("quorate_disk_stalled", "Whether a write has hung for 1 s.", metrics.disk_busy > STALLED),
    ] {
        figures.on_page(name, help, &[], is);
    }
}

/// ZooKeeper's words for state and phase, and how a learner is being synchronised.
fn peer_state(status: &PeerStatus, sync: Option<How>) -> String {
    let state = match status.state {
        ServerState::Looking => return "looking".to_owned(),
        ServerState::Following => "following",
        ServerState::Leading => "leading",
        ServerState::Observing => "observing",
    };
    match status.phase {
        Phase::Election => state.to_owned(),
        phase @ Phase::Synchronization => match sync {
            Some(how) => format!("{state} - {phase} - {how}").to_lowercase(),
            None => format!("{state} - {phase}"),
        },
        phase @ (Phase::Discovery | Phase::Broadcast) => format!("{state} - {phase}"),
    }
}

/// How much of the synchronisation is done, in percent: of a leader's learners, or of this learner.
fn sync_progress(status: &PeerStatus) -> usize {
    if status.state != ServerState::Leading {
        return if status.serving { 100 } else { 0 };
    }
    let synced = status.learners.iter().filter(|learner| learner.synced).count();
    (100 * synced).checked_div(status.learners.len()).unwrap_or(100)
}

/// From when on a write hangs.
const STALLED: std::time::Duration = std::time::Duration::from_secs(1);
