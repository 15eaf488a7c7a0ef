//! What is measured: how long elections, outages, synchronisations, snapshots, forced writes and the steps of a request took,
//! how many there were, and since when the disk has been at work.
//!
//! The loop and the disk's thread put in, a page of metrics takes out. No lock is held by what happens for each
//! transaction: it costs a few atomic additions. A summary takes no memory before its first observation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use quorate_core::id::ServerId;
use quorate_leadership::boot_time;
use quorate_metrics::{Detail, SharedSummary, Spread};

use crate::error::DiskFault;
use crate::lock::locked;
use crate::sync_bytes::SyncBytes;

/// Where it is put.
#[derive(Debug)]
pub(crate) struct Measures {
    began: Instant,
    summaries: [OnceLock<SharedSummary>; Took::ALL.len()],
    counters: [AtomicU64; Counted::ALL.len()],
    /// By server; the lock is for who begins to measure one, and for who asks.
    keyed: [Mutex<BTreeMap<ServerId, Arc<Keyed>>>; Of::ALL.len()],
    /// Steps on the way to a serving ensemble, in microseconds.
    steps: [OnceLock<SharedSummary>; Step::ALL.len()],
    /// Since when the disk's thread has been at its work, in microseconds since we began, and one; 0 if it has none.
    disk_since: AtomicU64,
    /// When the loop began its last turn, in microseconds since we began, and one; 0 before the first.
    turned_at: AtomicU64,
    sizes: Sizes,
    pending_syncs: AtomicU64,
    /// Round trips of a leader's pings, in microseconds.
    round_trips: Mutex<BTreeMap<ServerId, Arc<AtomicU64>>>,
    synced: Mutex<BTreeMap<ServerId, Arc<SyncBytes>>>,
    /// Why the server is out of service, if that is because of its disk.
    disk_fault: Mutex<Option<DiskFault>>,
    /// There is little room left on it.
    disk_low: AtomicBool,
}

/// The lengths of proposals of one leadership, in bytes; -1 before the first.
#[derive(Debug)]
struct Sizes {
    last: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
}

/// What is measured on the link to a learner.
#[derive(Clone, Debug)]
pub(crate) struct OfLink {
    /// For how long packets wait for it.
    pub(crate) waits: Arc<Keyed>,
    /// What it is sent until it serves.
    pub(crate) synced: Arc<SyncBytes>,
}

/// A summary of one server.
#[derive(Debug)]
pub(crate) struct Keyed {
    began: Instant,
    summary: SharedSummary,
}

/// What there is, with ZooKeeper's names (`ServerMetrics`).
macro_rules! named {
    ($(#[$doc:meta])* $kind:ident: $($(#[$of:meta])* $variant:ident => $name:literal;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $kind { $($(#[$of])* $variant,)+ }

        impl $kind {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)+];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

named! {
    /// What took some time, in milliseconds, or how much there was of something.
    Took:
    /// From the loss of a leader, or the start, to the next one; on each server that votes.
    Election => "election_time";
    /// The loop was held up, or its machine: by how much it was late. In microseconds, told in seconds under a
    /// name of ours.
    LoopStall => "loop_stall";
    /// Without service.
    Unavailable => "unavailable_time";
    /// The same, on a server that leads then.
    LeaderUnavailable => "leader_unavailable_time";
    /// From the leader's epoch to its word that this learner is as new as it; a follower.
    FollowerSync => "follower_sync_time";
    /// The same of an observer.
    ObserverSync => "observer_sync_time";
    /// Learners that are sent what they miss, when one more begins.
    InflightDiffs => "inflight_diff_count";
    /// Learners that are sent a snapshot, when one more begins.
    InflightSnaps => "inflight_snap_count";
    /// Reading the disk at start.
    Open => "dbinittime";
    /// Of that, restoring the snapshot.
    Restore => "startup_snap_load_time";
    /// And the rest of it, which reads the log.
    ReadLog => "startup_txns_load_time";
    /// Transactions that the log had behind the snapshot at start.
    Found => "startup_txns_loaded";
    /// Writing a snapshot.
    Snapshot => "snapshottime";
    /// A forced write of the log.
    Fsync => "fsynctime";
    /// Transactions of one forced write.
    BatchSize => "sync_processor_batch_size";
    /// Transactions that wait for the disk's thread when it takes them.
    DiskQueue => "sync_processor_queue_size";
    /// From when the disk's thread takes transactions until they are durable.
    DiskWork => "sync_process_time";
    /// How long transactions wait for the disk's thread; those that are written together are observed once.
    DiskWait => "sync_processor_queue_time_ms";
    /// Making a batch of transactions durable.
    DiskFlush => "sync_processor_queue_flush_time_ms";
    /// Waiting and flushing together, as the wait is observed.
    DiskWaitAndFlush => "sync_processor_queue_and_flush_time_ms";
    /// A leader prepares a request.
    Prepare => "prep_process_time";
    /// Requests that wait to be prepared, with the one that comes.
    PrepareQueue => "prep_processor_queue_size";
    /// A leader has prepared a request, and proposes it.
    Propose => "proposal_process_time";
    /// How long one waits for that.
    PrepareWait => "prep_processor_queue_time_ms";
    /// Transactions that wait to be applied when the application goes on.
    CommitQueue => "commit_commit_proc_req_queued";
    /// A leader has proposed a transaction, and it is committed.
    QuorumAck => "quorum_ack_latency";
    /// A transaction was made, and is on our disk.
    OwnAck => "proposal_ack_creation_latency";
    /// A transaction was made, and this follower has it.
    Proposal => "proposal_latency";
    /// A transaction was made, and this learner knows that it is committed.
    Commit => "commit_propagation_latency";
    /// A transaction was made, and is applied here.
    Propagation => "propagation_latency";
    /// A write of our clients was committed, and is applied.
    OwnWrite => "local_write_committed_time_ms";
    /// A write of others' clients was committed, and is applied.
    OthersWrite => "server_write_committed_time_ms";
}

named! {
    /// What was counted.
    Counted:
    /// Forced writes that were worth a warning.
    SlowSyncs => "fsync_threshold_exceed_count";
    FailedSnapshots => "snapshot_error_count";
    /// Failures of the disk for which the server left service; told under a name of ours.
    DiskOutages => "disk_outages";
    /// Leaders here that were deserted by the voters who had elected them.
    Deserted => "quit_leading_due_to_disloyal_voter";
    /// Transactions that went to the disk.
    Logged => "sync_processor_request_queued";
    /// Requests that went to be prepared.
    Prepares => "prep_processor_request_queued";
    /// Proposals of this leader.
    Proposals => "proposal_count";
    /// Of them, those that were committed.
    Commits => "commit_count";
    /// Commits handed on to be applied.
    Delivered => "request_commit_queued";
    /// Proposals of its leader.
    ProposalsReceived => "learner_proposal_received_count";
    /// Commits of its leader.
    CommitsReceived => "learner_commit_received_count";
}

named! {
    /// The steps on the way to a serving ensemble, in their order.
    Step:
    /// It looks for a leader.
    Election => "election";
    /// Leader and learners agree on the new epoch.
    Discovery => "discovery";
    /// Learners take over the leader's history.
    Synchronization => "synchronization";
}

named! {
    /// What is measured for each member, by its id.
    Of:
    /// This leader has proposed a transaction, and that server acknowledges it.
    Ack => "ack_latency";
    /// Packets that wait for that learner whenever some more do.
    QueueSize => "learner_handler_qp_size";
    /// How long the first of them waited.
    QueueTime => "learner_handler_qp_time_ms";
}

impl Took {
    /// With how many quantiles it is told.
    pub(crate) const fn detail(self) -> Detail {
        let advanced = matches!(
            self,
            Self::DiskWait
                | Self::DiskFlush
                | Self::DiskWaitAndFlush
                | Self::PrepareWait
                | Self::QuorumAck
                | Self::OwnAck
                | Self::Proposal
                | Self::Commit
                | Self::Propagation
                | Self::OwnWrite
                | Self::OthersWrite
        );
        if advanced { Detail::Advanced } else { Detail::Basic }
    }
}

impl Of {
    /// With how many quantiles it is told.
    pub(crate) const fn detail(self) -> Detail {
        match self {
            Self::QueueSize => Detail::Basic,
            Self::Ack | Self::QueueTime => Detail::Advanced,
        }
    }
}

impl Default for Measures {
    fn default() -> Self {
        let none = || AtomicI64::new(-1);
        Self {
            began: boot_time::now(),
            summaries: std::array::from_fn(|_| OnceLock::new()),
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            keyed: Default::default(),
            steps: std::array::from_fn(|_| OnceLock::new()),
            disk_since: AtomicU64::new(0),
            turned_at: AtomicU64::new(0),
            sizes: Sizes { last: none(), min: none(), max: none() },
            pending_syncs: AtomicU64::new(0),
            round_trips: Mutex::default(),
            synced: Mutex::default(),
            disk_fault: Mutex::default(),
            disk_low: AtomicBool::new(false),
        }
    }
}

impl Measures {
    /// Something has ended that took so long.
    pub(crate) fn took(&self, what: Took, time: Duration) {
        self.saw(what, millis(time));
    }

    /// There is so much of something now.
    pub(crate) fn saw(&self, what: Took, much: u64) {
        self.saw_at(boot_time::now(), what, much);
    }

    /// The same, for who has looked at the clock already: a look costs more than the rest.
    pub(crate) fn saw_at(&self, now: Instant, what: Took, much: u64) {
        let at = now.saturating_duration_since(self.began);
        self.summaries[what as usize].get_or_init(SharedSummary::default).observe(at, much);
    }

    /// So many times so much of something, at once.
    pub(crate) fn saw_alike(&self, now: Instant, what: Took, (much, count): (u64, u32)) {
        let at = now.saturating_duration_since(self.began);
        let summary = self.summaries[what as usize].get_or_init(SharedSummary::default);
        summary.observe_alike(at, much, count);
    }

    /// A step was done, and the next one begins.
    pub(crate) fn stepped(&self, step: Step, took: Duration) {
        let summary = self.steps[step as usize].get_or_init(SharedSummary::default);
        summary.observe(self.age(), micros(took));
    }

    pub(crate) fn count(&self, what: Counted, more: usize) {
        self.counters[what as usize].fetch_add(more as u64, Relaxed);
    }

    /// Where something is measured of that server.
    pub(crate) fn keyed(&self, what: Of, id: ServerId) -> Arc<Keyed> {
        let new = || Arc::new(Keyed { began: self.began, summary: SharedSummary::default() });
        Arc::clone(locked(&self.keyed[what as usize]).entry(id).or_insert_with(new))
    }

    /// A proposal of this length, in bytes.
    pub(crate) fn proposed(&self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let Sizes { last, min, max } = &self.sizes;
        last.store(bytes, Relaxed);
        if !(0..=bytes).contains(&min.load(Relaxed)) {
            min.store(bytes, Relaxed);
        }
        if max.load(Relaxed) < bytes {
            max.store(bytes, Relaxed);
        }
    }

    /// A leadership begins or ends.
    pub(crate) fn forget_proposals(&self) {
        let Sizes { last, min, max } = &self.sizes;
        [last, min, max].into_iter().for_each(|size| size.store(-1, Relaxed));
    }

    pub(crate) fn set_pending_syncs(&self, pending: usize) {
        self.pending_syncs.store(pending as u64, Relaxed);
    }

    /// What is measured on a link to that server.
    pub(crate) fn of_link(&self, id: ServerId) -> OfLink {
        let synced = Arc::clone(locked(&self.synced).entry(id).or_default());
        OfLink { waits: self.keyed(Of::QueueTime, id), synced }
    }

    /// Where the round trips to that server are told.
    pub(crate) fn round_trip(&self, id: ServerId) -> Arc<AtomicU64> {
        Arc::clone(locked(&self.round_trips).entry(id).or_default())
    }

    /// That server is no learner any more.
    pub(crate) fn forget_round_trip(&self, id: ServerId) {
        locked(&self.round_trips).remove(&id);
    }

    /// The disk's thread begins to work, or is done.
    pub(crate) fn disk_works(&self, works: bool) {
        let since = if works { micros(self.age()) + 1 } else { 0 };
        self.disk_since.store(since, Relaxed);
    }

    /// The server is out of service because of its disk, or is not any more.
    pub(crate) fn disk_fails(&self, fault: Option<DiskFault>) {
        let before = std::mem::replace(&mut *locked(&self.disk_fault), fault);
        self.count(Counted::DiskOutages, usize::from(fault.is_some() && before.is_none()));
    }

    /// There is little room left on the disk, or enough again.
    pub(crate) fn disk_gets_low(&self, low: bool) {
        self.disk_low.store(low, Relaxed);
    }

    /// The loop was held up, and is late by so much.
    pub(crate) fn stalled(&self, late: Duration) {
        self.saw(Took::LoopStall, micros(late));
    }

    /// The loop begins a turn.
    pub(crate) fn turns(&self, now: Instant) {
        let at = micros(now.saturating_duration_since(self.began)) + 1;
        self.turned_at.store(at, Relaxed);
    }

    // --- for who asks ---

    /// How long this has been measured.
    fn age(&self) -> Duration {
        boot_time::since(self.began)
    }

    pub(crate) fn disk_fault(&self) -> Option<DiskFault> {
        *locked(&self.disk_fault)
    }

    pub(crate) fn disk_is_low(&self) -> bool {
        self.disk_low.load(Relaxed)
    }

    /// Whether the loop has begun a turn in the time before now.
    pub(crate) fn has_turned_within(&self, time: Duration) -> bool {
        let at = self.turned_at.load(Relaxed);
        let turned = Duration::from_micros(at.saturating_sub(1));
        at > 0 && self.age().saturating_sub(turned) < time
    }

    /// For how long the disk's thread has been at the same work; zero if it has none.
    pub(crate) fn disk_busy(&self) -> Duration {
        match self.disk_since.load(Relaxed) {
            0 => Duration::ZERO,
            since => self.age().saturating_sub(Duration::from_micros(since - 1)),
        }
    }

    pub(crate) fn spread(&self, what: Took) -> Spread {
        let summary = self.summaries[what as usize].get();
        summary.map_or_else(Spread::default, |summary| summary.spread(self.age()))
    }

    /// In microseconds.
    pub(crate) fn spread_of_step(&self, step: Step) -> Spread {
        let summary = self.steps[step as usize].get();
        summary.map_or_else(Spread::default, |summary| summary.spread(self.age()))
    }

    pub(crate) fn counted(&self, what: Counted) -> u64 {
        self.counters[what as usize].load(Relaxed)
    }

    /// What was measured of each server, ascending.
    pub(crate) fn spreads(&self, what: Of) -> Vec<(ServerId, Spread)> {
        let at = self.age();
        let keyed = locked(&self.keyed[what as usize]);
        keyed.iter().map(|(id, keyed)| (*id, keyed.summary.spread(at))).collect()
    }

    /// The last, the shortest and the longest proposal, in bytes.
    pub(crate) fn proposal_sizes(&self) -> [i64; 3] {
        let Sizes { last, min, max } = &self.sizes;
        [last, min, max].map(|size| size.load(Relaxed))
    }

    /// How many requests to sync wait at this leader.
    pub(crate) fn pending_syncs(&self) -> u64 {
        self.pending_syncs.load(Relaxed)
    }

    /// How many bytes learners were sent to be brought up, ascending.
    pub(crate) fn synced(&self) -> Vec<(ServerId, Arc<SyncBytes>)> {
        let synced = locked(&self.synced);
        synced.iter().map(|(id, bytes)| (*id, Arc::clone(bytes))).collect()
    }

    /// The last round trip of a ping to each learner of this leader that has answered one.
    pub(crate) fn round_trips(&self) -> Vec<(ServerId, Duration)> {
        let trips = locked(&self.round_trips);
        let known = trips.iter().map(|(id, micros)| (*id, micros.load(Relaxed)));
        known
            .filter(|(_, micros)| *micros > 0)
            .map(|(id, micros)| (id, Duration::from_micros(micros)))
            .collect()
    }
}

impl Keyed {
    pub(crate) fn saw_at(&self, now: Instant, much: u64) {
        self.saw_alike(now, much, 1);
    }

    /// So many times so much, at once.
    pub(crate) fn saw_alike(&self, now: Instant, much: u64, count: u32) {
        let at = now.saturating_duration_since(self.began);
        self.summary.observe_alike(at, much, count);
    }
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1000).saturating_add(u64::from(time.subsec_millis()))
}

/// Whole microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
