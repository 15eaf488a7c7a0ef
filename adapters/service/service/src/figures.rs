//! What the service has counted and measured, under ZooKeeper's names: the source of `mntr`, and of all other pages with
//! figures.
//!
//! Gauges of a server are there while it serves, as in ZooKeeper (`ZooKeeperServer.registerMetrics`); counters and
//! summaries always. Nothing is walked over.

use core::time::Duration;

use quorate_core::time::Instant;
use quorate_metrics::{Detail, Figures};

use crate::proofs::Scheme;
use crate::replies::{Latencies, Replies};
use crate::service::{Counters, Service};
use crate::version;
use crate::zookeeper::ZooKeeper;

impl Service {
    /// The figures of this server's clients and of the tree at a time of the service's inputs, and behind them those of the
    /// server [beneath](crate::Beneath).
    pub fn figures(&self, at: Instant, state: &ZooKeeper) -> Figures {
        let mut figures = self.own_figures(at, state);
        if let Some(beneath) = &self.options.beneath {
            figures.append(beneath.figures());
        }
        figures
    }

    /// The same without those of the server beneath, which are by far the most and need not be put together while requests
    /// wait for the service.
    pub fn own_figures(&self, at: Instant, state: &ZooKeeper) -> Figures {
        let mut figures = Figures::default();
        figures.text("version", version::long());
        figures.text("server_state", self.mode());
        if self.serves() {
            self.gauges(&mut figures, state);
        }
        self.counted(&mut figures, at.since(Instant::ORIGIN));
        figures
    }

    fn gauges(&self, figures: &mut Figures, state: &ZooKeeper) {
        let (tree, counters) = (state.tree(), &self.counters);
        figures.gauge("avg_latency", counters.average());
        figures.gauge("max_latency", counters.latency_max_ms);
        figures.gauge("min_latency", counters.latency_min_ms.unwrap_or(0));
        figures.gauge("packets_received", counters.received);
        figures.gauge("packets_sent", counters.sent);
        figures.gauge("num_alive_connections", self.clients.len());
        figures.gauge("outstanding_requests", self.submitted.len());
        // The root has two names, and ZooKeeper counts both.
        figures.gauge("znode_count", tree.len() + 1);
        figures.gauge("watch_count", self.watches.len());
        let of_kinds = self.watches.counts();
        for (kind, count) in [
            ("watch_count_data", of_kinds.data),
            ("watch_count_child", of_kinds.children),
            ("watch_count_persistent", of_kinds.persistent),
            ("watch_count_recursive", of_kinds.recursive),
        ] {
            figures.own_gauge(kind, "Watches of one kind.", count);
        }
        figures.gauge("ephemerals_count", tree.ephemeral_count());
        figures.gauge("approximate_data_size", tree.data_size());
        figures.gauge("global_sessions", tree.session_count());
        figures.gauge("auth_failed_count", self.proofs.count());
        let Replies { last, min, max } = counters.replies;
        for (name, bytes) in [
            ("last_client_response_size", last),
            ("min_client_response_size", min),
            ("max_client_response_size", max),
        ] {
            figures.gauge(name, bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)));
        }
    }

    fn counted(&self, figures: &mut Figures, at: Duration) {
        let counters = &self.counters;
        figures.counter("digest_mismatches_count", self.digests.differed());
        figures.counter("connection_drop_count", counters.dropped);
        for (name, help, count) in [
            ("clients_ahead", "Clients that had seen more than this server.", counters.ahead),
            ("sessions_moved", "Connections closed since their sessions moved.", counters.moved),
            ("watch_events_sent", "Events that were sent.", counters.events),
            (
                "watch_events_kept_back",
                "Events not sent, since their clients may not read the node.",
                counters.events_kept_back,
            ),
            ("clients_cut_off", "Clients that did not take their events.", counters.cut_off),
            ("long_replies", "Replies longer than a frame may be.", counters.long_replies),
            ("watches_refused", "Watches beyond the limits.", counters.watches_refused),
            ("auth_failed_digest", "Failed proofs by digest.", self.proofs.of(Scheme::Digest)),
            ("auth_failed_x509", "Failed proofs by certificate.", self.proofs.of(Scheme::X509)),
            ("auth_failed_sasl", "Failed logins by SASL.", self.proofs.of(Scheme::Sasl)),
            ("auth_failed_other", "Failed proofs by other schemes.", self.proofs.of(Scheme::Other)),
        ] {
            figures.own_counter(name, help, count);
        }
        let Latencies { reads, updates } = &self.latencies;
        figures.summary("readlatency", Detail::Advanced, &reads.spread(at));
        figures.summary("updatelatency", Detail::Advanced, &updates.spread(at));
    }
}

impl Counters {
    /// A request is answered, so long after it came.
    pub(crate) fn answered(&mut self, after: Duration) {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.requests += 1;
        self.latency_sum_ms = self.latency_sum_ms.saturating_add(millis);
        self.latency_min_ms = Some(self.latency_min_ms.map_or(millis, |min| min.min(millis)));
        self.latency_max_ms = self.latency_max_ms.max(millis);
    }

    /// The average latency in milliseconds, with at most four decimals.
    #[allow(clippy::cast_precision_loss, reason = "an average for people")]
    pub(crate) fn average(&self) -> f64 {
        let scaled = (self.latency_sum_ms.saturating_mul(10_000)).checked_div(self.requests);
        scaled.unwrap_or(0) as f64 / 1e4
    }
}
