//! Every bound: on links and bytes that others can make us hold, and on the history that is kept at hand.
//!
//! Beyond a bound something gives way, and each says what: the oldest link, the learner that does not read, the request
//! that comes last. Bounds in time are in `timing`.

use crate::message::Request;
use crate::txn::Txn;
use crate::zxid::Counter;

/// Every bound on what others can make us hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Election links of servers that are no members (probes, servers that want to join). The
    /// oldest makes room.
    pub non_members: usize,
    /// Quorum links that have not said yet who they are. The oldest makes room.
    pub unintroduced: usize,
    /// Learners of one leader.
    pub learners: usize,
    /// The longest body of a request that a caller at this server asks for, in bytes (`jute.maxbuffer`).
    pub request_bytes: usize,
    /// The longest transaction that this server proposes as a leader, in bytes, with its header:
    /// `jute.maxbuffer` and what it may be exceeded by (`zookeeper.jute.maxbuffer.extrasize`). At least
    /// [`Limits::TXN_BYTES_MIN`], at most [`Limits::TXN_BYTES_MAX`]. The same at all servers, or what one proposes
    /// another cannot read.
    pub txn_bytes: usize,
    /// Bytes of transactions that a follower or observer holds before its disk has them, besides the packet that
    /// came last. When another comes it gives up its leader, and comes back when the disk has caught up; if it did not
    /// serve yet, with twice the room. Much more than the longest transaction, so that an ordinary moment of a disk
    /// costs nothing.
    pub unsynced_bytes: usize,
}

impl Limits {
    /// What [`Limits::txn_bytes`] has to allow for: ZooKeeper's least extra size.
    pub const TXN_BYTES_MIN: usize = 1024;
    /// The most that [`Limits::txn_bytes`] may be: a length is an `i32` on the wire and on disk.
    pub const TXN_BYTES_MAX: usize = i32::MAX as usize;

    /// The longest transaction, and the longest buffer of a packet, that this server reads, in bytes: what it may
    /// propose itself, and never less than what every server of ZooKeeper writes by default
    /// ([`Txn::BYTES_MAX`]).
    pub fn read_bytes(&self) -> usize {
        self.txn_bytes.max(Txn::BYTES_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            non_members: 64,
            unintroduced: 64,
            learners: 1024,
            request_bytes: Request::BODY_BYTES_MAX,
            txn_bytes: Txn::BYTES_MAX,
            unsynced_bytes: 64 << 20,
        }
    }
}

/// How much history is kept, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HistoryLimits {
    /// How many committed transactions are kept in memory for learners (`zookeeper.commitLogCount`).
    pub window_count: usize,
    /// How many bytes they may take together.
    pub window_bytes: usize,
    /// How many bytes of transactions may be handed to the application beyond what it has said that it has applied. As
    /// many are kept in memory for it before the log on disk has to do.
    pub delivery_bytes: usize,
    /// A learner is served from the log on disk if that is not more than this many hundredths of the
    /// newest snapshot (`zookeeper.snapshotSizeFactor`); never, if none.
    pub size_percent: Option<u64>,
    /// A snapshot is taken after between half as many and as many transactions (`snapCount`); the
    /// servers of an ensemble should not all do it at once.
    pub snap_count: u64,
    /// How many observers may be sent snapshots at a time (`zookeeper.leader.maxConcurrentSnapSyncs`);
    /// voters always may.
    pub observer_snapshots: usize,
    /// How many bytes of transactions may be under way to one learner before it has read them.
    pub pace_bytes: usize,
    /// How many requests of one server may be under way.
    pub requests: usize,
    /// How many transactions we propose in one leadership, as many as there are counters at most
    /// ([`Counter::LAST`]); then we make room for a new epoch. Less is for those who want to see that
    /// and cannot wait for four billion (ZooKeeper has `zookeeper.testingonly.initialZxid`).
    pub epoch_count: u32,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            window_count: 500,
            window_bytes: 16 << 20,
            delivery_bytes: 64 << 20,
            size_percent: Some(33),
            snap_count: 100_000,
            observer_snapshots: 10,
            pace_bytes: 1 << 20,
            requests: 4096,
            epoch_count: Counter::LAST.0,
        }
    }
}
