//! What is logged, what of it is committed, and how a learner is brought up to it.
//!
//! ```text
//!     floor             before                    committed        last
//!       │  log on disk    │  window: in memory too    │  outstanding  │
//!   ────┼─────────────────┼───────────────────────────┼───────────────┤
//!       │◄── StreamLog ──►│◄───────── sent from here ────────────────►│
//! ```
//!
//! The window is bounded by a count and by bytes. What leaves it is durable and can be read from the log
//! on disk, down to the floor, below which the log has a hole or nothing. The application gets what is
//! known to be committed and nothing else, so nothing is ever taken back from it.
//!
//! How a learner is brought up to it is planned in [`plan`].

pub mod plan;

use alloc::collections::VecDeque;

use crate::config::HistoryLimits;
use crate::durable::Durable;
use crate::id::Ticket;
use crate::outbox::Outbox;
use crate::output::Write;
use crate::rng::Rng;
use crate::txn::{Txn, Txns};
use crate::zxid::Zxid;

/// The transactions of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    limits: HistoryLimits,
    /// Without a hole, ending with `last`.
    window: VecDeque<Txn>,
    window_bytes: usize,
    /// The window holds everything after this.
    before: Zxid,
    /// If the window held the whole log at the start: where the log began. No transaction stands between that and
    /// `before`, so a learner that stands there is served from memory.
    whole_after: Option<Zxid>,
    /// The log on disk holds everything after this.
    floor: Zxid,
    /// No learner that stands before this is served from the log on disk.
    unreadable: Zxid,
    /// Nothing is known of our history until a leader has told: it may have been lost with the disk.
    unknown: bool,
    /// The last that is logged, durable or not.
    last: Zxid,
    /// The last that is durable.
    durable: Zxid,
    /// Appended and not durable yet.
    unsynced: VecDeque<(Ticket, Zxid)>,
    /// The last that is known to be committed in this incarnation.
    committed: Option<Zxid>,
    /// The label of the snapshot that is staged for the application, or that it started from.
    staged: Zxid,
    /// About how many transactions were delivered since the last snapshot.
    since_snapshot: u64,
    /// How many make the next one.
    snapshot_after: u64,
    /// A snapshot is being taken.
    taking: bool,
    /// And another one behind it.
    another: bool,
    /// The application has got everything through this.
    delivered: Zxid,
}

impl History {
    /// The history that was found on disk.
    pub fn new(durable: &mut Durable, limits: HistoryLimits, rng: &mut Rng) -> Self {
        let window = core::mem::take(&mut durable.window);
        let last = durable.last_zxid.max(Zxid::ZERO);
        let mut history = Self {
            snapshot_after: snapshot_after(&limits, rng),
            limits,
            window_bytes: window.iter().map(Txn::len).sum(),
            before: window.front().map_or(last, |first| Zxid(first.zxid.0 - 1)),
            window,
            whole_after: durable.window_is_whole.then_some(durable.floor),
            floor: durable.floor,
            unreadable: Zxid::ZERO,
            unknown: durable.last_zxid == Zxid::UNKNOWN,
            last,
            durable: last,
            unsynced: VecDeque::new(),
            committed: None,
            staged: durable.snapshot,
            since_snapshot: 0,
            taking: false,
            another: false,
            // No receiver waits in memory for what was there at the start: the log has it.
            delivered: last,
        };
        history.shrink();
        history.delivered = Zxid::ZERO;
        history
    }

    /// The last transaction that is logged, durable or not; zero if there is none.
    pub const fn last(&self) -> Zxid {
        self.last
    }

    /// Where our history ends, as others are told: they must not count on one that may be lost.
    pub const fn claim(&self) -> Zxid {
        if self.unknown { Zxid::UNKNOWN } else { self.last }
    }

    /// The last transaction that is durable.
    pub const fn durable(&self) -> Zxid {
        self.durable
    }

    /// The last transaction that is known to be committed; zero if none is.
    pub fn committed(&self) -> Zxid {
        self.committed.unwrap_or(Zxid::ZERO)
    }

    /// Whether a history that ends with `zxid` would lack what is known to be committed here.
    ///
    /// The start of an epoch, with which a snapshot may be labelled, is no transaction: it stands for the
    /// history with which that epoch began, and that ended before it.
    pub fn loses(&self, zxid: Zxid) -> bool {
        let committed = self.committed();
        let bare = committed.is_epoch_start() && zxid.epoch() < committed.epoch();
        zxid < committed && !bare
    }

    /// What the application's state is after, were it asked for a snapshot now: the last transaction
    /// delivered, or the label of what it keeps apart.
    pub fn position(&self) -> Zxid {
        self.staged.max(self.committed())
    }

    /// The label of the oldest history that a cut can lead to.
    pub const fn base(&self) -> Zxid {
        self.staged
    }

    /// Everything after this can be sent from memory.
    pub const fn before(&self) -> Zxid {
        self.before
    }

    /// Whether everything after `zxid` is in memory.
    pub fn remembers_after(&self, zxid: Zxid) -> bool {
        zxid >= self.before || self.whole_after.is_some_and(|from| zxid >= from)
    }

    /// A transaction before which, and with which, the log on disk has all that memory lacks.
    pub fn on_disk_through(&self) -> Zxid {
        // In front of the first that was found at the start stands no transaction of that number.
        let first = self.window.front().filter(|first| first.zxid <= self.durable);
        first.map_or(self.before, |first| first.zxid)
    }

    /// The transactions in memory after `zxid`, ascending.
    pub fn after(&self, zxid: Zxid) -> impl Iterator<Item = &Txn> {
        self.window.range(self.index_after(zxid)..)
    }

    /// The last transaction that is not after `zxid`, as far as memory tells; otherwise that itself.
    pub fn until(&self, zxid: Zxid) -> Zxid {
        let at = self.index_after(zxid).checked_sub(1);
        at.and_then(|at| self.window.get(at)).map_or(self.before.min(zxid), |txn| txn.zxid)
    }

    /// A transaction, if it is in memory.
    pub fn get(&self, zxid: Zxid) -> Option<&Txn> {
        let at = self.index_after(zxid).checked_sub(1)?;
        self.window.get(at).filter(|txn| txn.zxid == zxid)
    }

    /// Whether a transaction of this number is in our history, if memory or the snapshot that it starts from tells;
    /// otherwise the disk has to be asked. What lies at or below that snapshot counts as held: it cannot be cut
    /// away any more.
    pub fn holds(&self, zxid: Zxid) -> Option<bool> {
        if zxid > self.before || zxid > self.last {
            Some(self.get(zxid).is_some())
        } else {
            (zxid == self.before || zxid <= self.staged).then_some(true)
        }
    }

    /// Whether another transaction of the same number is in memory: then one of the two is of no leader.
    pub fn contradicts(&self, txn: &Txn) -> bool {
        self.get(txn.zxid).is_some_and(|held| held != txn)
    }

    /// Where the first transaction after `zxid` stands in the window.
    fn index_after(&self, zxid: Zxid) -> usize {
        if zxid >= self.last {
            return self.window.len();
        }
        // Within one epoch there are no gaps, as a rule: count back from the end.
        let back = usize::try_from(self.last.0.saturating_sub(zxid.0)).unwrap_or(usize::MAX);
        if let Some(at) = self.window.len().checked_sub(back) {
            let previous = at.checked_sub(1).and_then(|before| self.window.get(before));
            if previous.map_or(self.before, |txn| txn.zxid) == zxid {
                return at;
            }
        }
        self.window.partition_point(|txn| txn.zxid <= zxid)
    }

    /// Puts transactions at the end of the log.
    ///
    /// # Panics
    ///
    /// If one does not [follow](Zxid::follows) the one before: the caller makes sure.
    pub fn append(&mut self, txns: Txns, outbox: &mut Outbox) {
        let mut bytes = 0;
        for txn in &*txns {
            assert!(txn.zxid.follows(self.last), "{} does not follow {}", txn.zxid, self.last);
            self.last = txn.zxid;
            bytes += txn.len();
        }
        self.window_bytes += bytes;
        self.window.extend(txns.iter().cloned());
        let ticket = outbox.persist_with(|| Write::Append(txns));
        outbox.weigh(ticket, bytes);
        self.unsynced.push_back((ticket, self.last));
        if self.is_large() {
            self.shrink();
        }
    }

    /// Takes note of what has become durable.
    pub fn on_persisted(&mut self, outbox: &Outbox) {
        while self.unsynced.front().is_some_and(|(ticket, _)| outbox.is_durable(*ticket)) {
            if let Some((_, zxid)) = self.unsynced.pop_front() {
                self.durable = zxid;
            }
        }
        self.shrink();
    }

    /// Whether the log can be made to end with `zxid` without asking the disk: it is in memory, and the
    /// snapshot that we would start from is not newer.
    pub fn can_cut(&self, zxid: Zxid) -> bool {
        zxid >= self.staged && (self.get(zxid).is_some() || zxid == self.last)
    }

    /// Gives up everything after `zxid`.
    ///
    /// # Panics
    ///
    /// If something of it is known to be committed: the caller makes sure.
    pub fn truncate(&mut self, zxid: Zxid, outbox: &mut Outbox) -> Ticket {
        assert!(zxid >= self.committed(), "a committed transaction is never cut");
        while self.window.back().is_some_and(|txn| txn.zxid > zxid) {
            if let Some(txn) = self.window.pop_back() {
                self.window_bytes -= txn.len();
            }
        }
        self.unsynced.retain(|(_, appended)| *appended <= zxid);
        self.last = zxid;
        self.durable = self.durable.min(zxid);
        self.before = self.before.min(zxid);
        self.whole_after = self.whole_after.filter(|from| *from <= zxid);
        self.floor = self.floor.min(zxid);
        outbox.persist(Write::Truncate(zxid))
    }

    /// Puts the snapshot that was received, and what was written beside the history after it, in the
    /// place of the history, by this [`Write::Install`].
    pub fn install(
        &mut self,
        label: Zxid,
        last: Zxid,
        write: Write,
        outbox: &mut Outbox,
    ) -> Ticket {
        self.window.clear();
        self.window_bytes = 0;
        self.unsynced.clear();
        (self.before, self.last, self.durable) = (last, last, last);
        self.whole_after = None;
        (self.floor, self.staged) = (label, label);
        // The start of an epoch may have been known; what it stood for is in this history.
        self.committed = self.committed.filter(|committed| *committed <= last);
        outbox.persist(write)
    }

    /// Takes note that everything through `zxid` is committed. Returns the label of the snapshot that is to be taken
    /// behind it, when enough has gathered.
    ///
    /// # Panics
    ///
    /// If it is not logged, unless it is the start of an epoch: the caller makes sure.
    pub fn commit(&mut self, zxid: Zxid, rng: &mut Rng) -> Option<Zxid> {
        let before = self.committed();
        assert!(zxid <= self.last && zxid >= before, "{zxid} is not between {before} and our last");
        (self.committed, self.unknown) = (Some(zxid), false);
        let delivered = if zxid.epoch() == before.epoch() {
            zxid.0.saturating_sub(before.0)
        } else {
            i64::from(zxid.counter().0)
        };
        self.since_snapshot += u64::try_from(delivered).unwrap_or(0);
        let due = self.since_snapshot >= self.snapshot_after && !self.taking;
        if due { self.take_snapshot(rng) } else { None }
    }

    /// A snapshot is to be taken, whether or not enough has gathered. Returns its label; none while another one is being
    /// taken, behind which it follows.
    pub fn take_snapshot(&mut self, rng: &mut Rng) -> Option<Zxid> {
        self.another = self.taking;
        if self.taking {
            return None;
        }
        self.taking = true;
        self.since_snapshot = 0;
        self.snapshot_after = snapshot_after(&self.limits, rng);
        Some(self.position())
    }

    /// The application has got everything through this: it need not be kept in memory for its sake.
    pub fn on_delivered(&mut self, zxid: Zxid) {
        self.delivered = zxid;
        if self.is_large() {
            self.shrink();
        }
    }

    /// Whether more is in memory than has to be for learners.
    fn is_large(&self) -> bool {
        self.window.len() > self.limits.window_count || self.window_bytes > self.limits.window_bytes
    }

    /// A snapshot that was asked for has been taken, or could not be. Returns whether another one is to follow.
    pub const fn on_snapshot_taken(&mut self) -> bool {
        self.taking = false;
        core::mem::replace(&mut self.another, false)
    }

    /// The log could not be read after `zxid`: from now on no learner that stands there is served from it.
    pub fn on_unreadable(&mut self, zxid: Zxid) {
        self.unreadable = self.unreadable.max(Zxid(zxid.0.saturating_add(1)));
    }

    /// Drops from memory what is beyond the limits and can be read from the disk. What the application has yet to get
    /// is kept as long as there is room for that.
    fn shrink(&mut self) {
        while self.is_large() {
            let Some(first) = self.window.front().filter(|first| first.zxid <= self.durable) else {
                break;
            };
            if first.zxid > self.delivered && self.window_bytes <= self.limits.delivery_bytes {
                break;
            }
            (self.before, self.window_bytes) = (first.zxid, self.window_bytes - first.len());
            self.whole_after = None;
            self.window.pop_front();
        }
    }

    /// What does not hold though it always should, if anything.
    pub fn broken(&self) -> Option<&'static str> {
        let window = self.window.back().is_none_or(|last| last.zxid == self.last);
        if self.durable > self.last {
            Some("more is durable than is logged")
        } else if self.committed() > self.last {
            Some("more is committed than is logged")
        } else if self.before > self.last || !window {
            Some("what it remembers of its log does not end where the log does")
        } else {
            None
        }
    }
}

/// How many transactions make the next snapshot: between half of `snapCount` and all of it, since a
/// quorum should not be busy with snapshots at the same time.
fn snapshot_after(limits: &HistoryLimits, rng: &mut Rng) -> u64 {
    let half = limits.snap_count / 2;
    half + 1 + rng.below(half.max(1))
}
