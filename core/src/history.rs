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
//! # How a learner is brought up: the table of cases
//!
//! [`History::plan`] is one pure function of the learner's last zxid `z`. The first line that fits
//! decides. *Processed* is the later of the last committed transaction and the start of the epoch in
//! which we are established; before that, our whole history counts as committed.
//!
//! | | the learner's last zxid | it gets |
//! |---|---|---|
//! | 1 | nothing, nor have we anything | DIFF, empty |
//! | 2 | nothing, or it could not cut where it was told to ([`Zxid::UNKNOWN`]) | SNAP, of nothing too |
//! | 3 | processed, or our last | DIFF, empty |
//! | 4 | beyond our last, a transaction of the epoch of our last | TRUNC to our last |
//! | 5 | beyond our last, of another epoch, and we are not established | TRUNC to our last; DIFF, empty, if it is the bare start of an epoch |
//! | 5' | … and we are | SNAP |
//! | 6 | in the window, or the bare start of an epoch there | DIFF, then what follows |
//! | 7 | between two of the window, the later of its own epoch | TRUNC to the earlier, then what follows |
//! | 8 | between two of the window, the later of another epoch | SNAP |
//! | 9 | below the window | only the disk knows: [`Plan::Locate`], and then: |
//! | 10 | … in the log, which costs less than a part of a snapshot to read | DIFF, from disk, then the window |
//! | 11 | … in the log, and our snapshot would be older than `z` | the same, whatever it costs |
//! | 12 | … anything else: below the floor, in none of our transactions, too much | SNAP |
//!
//! Once we are established a TRUNC never crosses an epoch (4, 7): what the learner has of an epoch that we
//! do not know need not stand behind what we have. A snapshot for a learner beyond our last (5') has a
//! later label than the learner's log then, the start of our epoch at least, or a ZooKeeper server would
//! replay that log behind it after a restart. Before we are established we have no such label, and the
//! learner may be needed for that: two of three, of which one brings a later epoch's transaction that no
//! quorum ever had. So it is cut to our last (5). It has that: its epoch was established on a history of
//! which ours is a continuation, and whose last transaction before that epoch is our last. One that
//! cannot cut there, since its snapshot is later, comes back blank (2); and one that stands
//! at the bare start of that epoch has just that history, and needs nothing. DIFF never starts below the
//! floor: there would be a hole.
//!
//! What ZooKeeper does, and where it differs: `LearnerHandler.syncFollower`; it cuts across epochs in 4.

use alloc::collections::VecDeque;

use crate::config::HistoryLimits;
use crate::durable::Durable;
use crate::id::Ticket;
use crate::input::{Located, Place};
use crate::outbox::Outbox;
use crate::output::Write;
use crate::rng::Rng;
use crate::txn::{Txn, Txns};
use crate::zxid::{Epoch, Zxid};

/// The transactions of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    limits: HistoryLimits,
    /// Without a hole, ending with `last`.
    window: VecDeque<Txn>,
    window_bytes: usize,
    /// The window holds everything after this.
    before: Zxid,
    /// The same, further back, where the window was found to hold the whole log: there is nothing between.
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
    /// The label of the snapshot that the application keeps apart, or started from.
    staged: Zxid,
    /// About how many transactions were delivered since the last snapshot.
    since_snapshot: u64,
    /// How many make the next one.
    snapshot_after: u64,
    /// A snapshot is being taken.
    taking: bool,
    /// The application has got everything through this.
    delivered: Zxid,
}

/// How a learner is brought to a leader's history; see the module for the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// DIFF with this label, then what follows `after`.
    Diff {
        /// What DIFF says: nothing beyond it may be delivered by virtue of the DIFF.
        label: Zxid,
        /// The learner has everything through this.
        after: Zxid,
    },
    /// TRUNC to this, then what follows it.
    Trunc {
        /// The last transaction that both have.
        to: Zxid,
    },
    /// SNAP, then what follows it.
    Snap,
    /// Only the disk knows: ask it, and then plan again.
    Locate,
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
        if self.since_snapshot >= self.snapshot_after && !self.taking {
            self.taking = true;
            self.since_snapshot = 0;
            self.snapshot_after = snapshot_after(&self.limits, rng);
            return Some(self.position());
        }
        None
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

    /// A snapshot that was asked for has been taken, or could not be.
    pub const fn on_snapshot_taken(&mut self) {
        self.taking = false;
    }

    /// The log could not be read after `zxid`: from now on no learner that stands there is served from it.
    pub fn on_unreadable(&mut self, zxid: Zxid) {
        self.unreadable = self.unreadable.max(Zxid(zxid.0.saturating_add(1)));
    }

    /// How a learner whose history ends at `learner` is brought up to this one. `established` is our
    /// epoch, once we are established in it; `located` is the disk's answer, once it was asked.
    pub fn plan(
        &self,
        learner: Zxid,
        established: Option<Epoch>,
        located: Option<Located>,
    ) -> Plan {
        let top = established.map_or(self.last, |_| self.committed());
        let processed = established.map_or(top, |epoch| top.max(Zxid::start_of(epoch)));
        if learner <= Zxid::ZERO {
            let nothing = learner == Zxid::ZERO && self.last == Zxid::ZERO;
            return if nothing { Plan::Diff { label: top, after: Zxid::ZERO } } else { Plan::Snap };
        }
        if learner == processed || learner == self.last {
            return Plan::Diff { label: top.max(learner.min(processed)), after: learner };
        }
        if learner > self.last {
            let ours = learner.epoch() == self.last.epoch() && !learner.is_epoch_start();
            return if ours {
                Plan::Trunc { to: self.last }
            } else if established.is_some() {
                Plan::Snap
            } else if learner.is_epoch_start() {
                Plan::Diff { label: learner, after: learner }
            } else {
                Plan::Trunc { to: self.last }
            };
        }
        if learner >= self.before && learner >= self.floor {
            return self.plan_in_window(learner, top);
        }
        let Some(Located { place, log_bytes, snapshot_bytes }) = located else {
            return if learner < self.unreadable { Plan::Snap } else { Plan::Locate };
        };
        let cheap = self.limits.size_percent.is_some_and(|percent| {
            snapshot_bytes == 0
                || log_bytes.saturating_mul(100) <= snapshot_bytes.saturating_mul(percent)
        });
        let begun = established.map_or(Zxid::ZERO, Zxid::start_of);
        let too_old = self.position().max(begun) < learner;
        let held = match place {
            Place::Held => true,
            Place::Absent { .. } => learner.is_epoch_start(),
            Place::BelowFloor | Place::Beyond => false,
        };
        if held && (cheap || too_old) {
            Plan::Diff { label: top, after: learner }
        } else {
            Plan::Snap
        }
    }

    fn plan_in_window(&self, learner: Zxid, top: Zxid) -> Plan {
        let at = self.index_after(learner);
        let previous = at.checked_sub(1).map_or(self.before, |before| self.window[before].zxid);
        if previous == learner || learner.is_epoch_start() {
            return Plan::Diff { label: top, after: learner };
        }
        match self.window.get(at) {
            Some(next) if next.zxid.epoch() == learner.epoch() => Plan::Trunc { to: previous },
            Some(_) | None => Plan::Snap,
        }
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
