//! What the driver counts and measures.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use quorate_core::zxid::Zxid;

use crate::error::DiskFault;

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
    /// Lines of the audit log that were dropped: it could not be written, or not as fast as they came.
    pub audit_dropped: u64,
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
    /// Why it is out of service, if that is because of its disk.
    pub disk_fault: Option<DiskFault>,
    /// There is less room on its disk than [`ServerConfig::disk_floor`](crate::ServerConfig::disk_floor) asks for: it leads
    /// only where no other can that has more.
    pub disk_low: bool,
    /// How often its disk has failed so that it gave up its role.
    pub disk_outages: u64,
    /// It has been told to end in order.
    pub ending: bool,
    /// How many requests of callers at this server, in this process, are under way
    /// (`zk_outstanding_requests`); those of a leader's learners are counted where they were made.
    pub outstanding: usize,
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
    pub(crate) audit_dropped: AtomicU64,
    pub(crate) client_accept_errors: AtomicU64,
    pub(super) applied: AtomicI64,
    pub(super) outstanding: AtomicUsize,
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
