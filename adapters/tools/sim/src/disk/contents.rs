//! The contents of a disk: epochs, the vote, log, snapshots, membership; made up, read and written.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use quorate_core::durable::Durable;
use quorate_core::generation_message::GrantedVote;
use quorate_core::input::{Located, Place};
use quorate_core::membership::Membership;
use quorate_core::output::Write;
use quorate_core::reconfiguration::body_of;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::application::{State, change, written_before};

/// What lies on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// See [`Durable::accepted_epoch`].
    pub accepted_epoch: Epoch,
    /// See [`Durable::current_epoch`].
    pub current_epoch: Epoch,
    /// See [`Durable::granted_vote`].
    pub granted_vote: GrantedVote,
    /// See [`Durable::lease`].
    pub lease: Duration,
    /// The log holds everything after this.
    pub floor: Zxid,
    /// The log, without a hole.
    pub log: VecDeque<Txn>,
    /// Snapshots, the oldest first.
    pub snapshots: Vec<State>,
    /// A snapshot that was received and not installed, and what was written beside the history.
    pub(super) beside: Option<(State, VecDeque<Txn>)>,
    /// The directory is not marked as one that was empty from the beginning: what it held is unknown.
    pub(super) unmarked: bool,
    /// The membership in force, if it is not the first one.
    pub membership: Option<Membership>,
    /// The one that was seen last, if it is another.
    pub next_membership: Option<Membership>,
    /// The changes of the membership in its history: in the log, or in the snapshot before it.
    pub(super) changes: BTreeSet<Zxid>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            accepted_epoch: Epoch::ZERO,
            current_epoch: Epoch::ZERO,
            granted_vote: GrantedVote::NONE,
            lease: Duration::ZERO,
            floor: Zxid::ZERO,
            log: VecDeque::new(),
            snapshots: Vec::new(),
            beside: None,
            unmarked: false,
            membership: None,
            next_membership: None,
            changes: BTreeSet::new(),
        }
    }
}

/// The longest log of a history that is made up; before it lies a snapshot.
pub(crate) const MADE_UP_MAX: u32 = 2000;

impl Contents {
    /// A disk with these epochs, and a history in which nothing but the transactions of one epoch ever
    /// happened, through `last`. Two such histories agree as far as both go.
    pub fn ending(accepted: i64, current: i64, last: Zxid) -> Self {
        let mut contents = Self {
            accepted_epoch: Epoch(accepted),
            current_epoch: Epoch(current),
            ..Self::default()
        };
        let counter = last.counter().0;
        let hidden = if counter > MADE_UP_MAX { counter & !0xff } else { 0 };
        if hidden > 0 {
            let label = Zxid::new(last.epoch(), Counter(hidden));
            let state = State { label, count: u64::from(hidden), ..State::default() };
            (contents.floor, contents.snapshots) = (label, vec![state]);
        }
        for counter in hidden + 1..=counter {
            contents.push(Zxid::new(last.epoch(), Counter(counter)));
        }
        contents
    }

    /// The same with another transaction at the end: the next of `epoch`.
    #[must_use]
    pub fn and(mut self, epoch: i64) -> Self {
        let (last, epoch) = (self.last(), Epoch(epoch));
        let counter = if last.epoch() == epoch { last.counter().0 + 1 } else { 1 };
        self.push(Zxid::new(epoch, Counter(counter)));
        self
    }

    /// The same with a change of the membership at the end, as the next of `epoch`; whether its server has seen it is
    /// another matter.
    #[must_use]
    pub fn and_change(mut self, epoch: i64, next: &Membership) -> Self {
        self = self.and(epoch);
        if let Some(last) = self.log.back_mut() {
            let zxid = last.zxid;
            let header = TxnHeader { kind: Txn::RECONFIGURATION, ..last.header };
            *last = Txn { zxid, header, body: body_of(&next.clone().with_version(zxid.0)) };
            self.changes.insert(zxid);
        }
        self
    }

    /// The same with the last change in the log in force, or seen.
    #[must_use]
    pub fn bound(mut self, in_force: bool) -> Self {
        let last = self.log.iter().rev().find_map(change);
        if in_force {
            self.membership = last
        } else {
            self.next_membership = last
        }
        self
    }

    /// An empty disk that may not always have been empty.
    pub fn unmarked() -> Self {
        Self { unmarked: true, ..Self::default() }
    }

    /// The same with other epochs.
    #[must_use]
    pub fn in_epoch(mut self, accepted: i64, current: i64) -> Self {
        (self.accepted_epoch, self.current_epoch) = (Epoch(accepted), Epoch(current));
        self
    }

    fn push(&mut self, zxid: Zxid) {
        let hidden = self.snapshots.first().map_or(0, |state| state.count);
        let number = hidden + self.log.len() as u64 + 1;
        self.log.push_back(written_before(zxid, number));
    }

    /// The same with a snapshot of everything through `label`.
    ///
    /// # Panics
    ///
    /// If the log does not begin with the first transaction.
    #[must_use]
    pub fn with_snapshot(mut self, label: Zxid) -> Self {
        assert_eq!(self.floor, Zxid::ZERO, "a snapshot is made of everything");
        let mut state = State::default();
        for txn in self.log.iter().filter(|txn| txn.zxid <= label) {
            state.apply(txn);
        }
        self.snapshots.push(state);
        self
    }

    /// The same with the log gone through `floor`, where a snapshot must be.
    #[must_use]
    pub fn with_floor(mut self, floor: Zxid) -> Self {
        self.log.retain(|txn| txn.zxid > floor);
        self.floor = floor;
        self
    }

    /// The last transaction; the label of the snapshot if nothing follows it.
    pub fn last(&self) -> Zxid {
        let label = self.snapshots.last().map_or(Zxid::ZERO, |state| state.label);
        self.log.back().map_or(self.floor, |txn| txn.zxid).max(label)
    }

    /// A transaction, if it is in the log.
    pub fn get(&self, zxid: Zxid) -> Option<&Txn> {
        let at = self.log.partition_point(|txn| txn.zxid < zxid);
        self.log.get(at).filter(|txn| txn.zxid == zxid)
    }

    /// The transactions of the log after `after` through `through`.
    pub fn range(&self, after: Zxid, through: Zxid) -> impl Iterator<Item = &Txn> {
        let first = self.log.partition_point(|txn| txn.zxid <= after);
        self.log.range(first..).take_while(move |txn| txn.zxid <= through)
    }

    /// What a server that starts with this is told.
    pub fn durable(&self, window: usize) -> Durable {
        let skip = self.log.len().saturating_sub(window);
        let snapshot = self.snapshots.last().map_or(Zxid::ZERO, |state| state.label);
        Durable {
            accepted_epoch: self.accepted_epoch,
            current_epoch: self.current_epoch,
            last_zxid: self.told(),
            floor: self.floor,
            snapshot,
            granted_vote: self.granted_vote,
            changes: self.log.iter().filter(|txn| txn.zxid > snapshot).filter_map(change).collect(),
            lease: self.lease,
            window: self.log.range(skip..).cloned().collect(),
            window_is_whole: skip == 0,
        }
    }

    /// The membership that the application's state tells when it starts from here, if its kind does.
    pub(crate) fn told_by_state(&self) -> Option<Membership> {
        self.snapshots.last().and_then(State::membership)
    }

    /// Which change in this history binds its server less than it must: the newest is seen or in force, every older
    /// one is in force. Otherwise it could elect, or be elected, by voters whose time is over.
    pub(crate) fn unbound(&self) -> Option<Zxid> {
        let (present, next) = (self.membership.as_ref(), self.next_membership.as_ref());
        self.unbound_by(present, next)
    }

    /// The same of these, whatever the disk says of them.
    pub(crate) fn unbound_by(
        &self,
        present: Option<&Membership>,
        next: Option<&Membership>,
    ) -> Option<Zxid> {
        let change = |of: Option<&Membership>| of.filter(|m| m.is_change()).map(|m| m.version());
        let in_force = change(present).unwrap_or(0);
        let mut over = self.changes.iter().rev().filter(|held| held.0 > in_force);
        let newest = over.next()?;
        over.next().copied().or((change(next) != Some(newest.0)).then_some(*newest))
    }

    /// The changes of the membership in its history.
    pub(crate) fn changes(&self) -> impl DoubleEndedIterator<Item = Zxid> + '_ {
        self.changes.iter().copied()
    }

    /// Whether it is what a start has found, but for the snapshots and how far the log goes back.
    pub(crate) fn is(&self, found: &Durable) -> bool {
        let ours = self.durable(found.window.len());
        let changes = found.changes.clone();
        let Durable { floor, snapshot, window_is_whole, .. } = *found;
        *found == Durable { floor, snapshot, window_is_whole, changes, ..ours }
    }

    /// Where the history ends, as a start tells.
    pub(super) fn told(&self) -> Zxid {
        if self.unmarked { Zxid::UNKNOWN } else { self.last() }
    }

    /// Where a zxid stands.
    pub(crate) fn locate(&self, zxid: Zxid, snapshot_bytes_per_txn: u64) -> Located {
        let at = self.log.partition_point(|txn| txn.zxid <= zxid);
        let previous = at.checked_sub(1).map_or(self.floor, |before| self.log[before].zxid);
        let place = if zxid < self.floor {
            Place::BelowFloor
        } else if previous == zxid {
            Place::Held
        } else if at == self.log.len() {
            Place::Beyond
        } else {
            Place::Absent { previous }
        };
        Located {
            place,
            log_bytes: self.log.range(at..).map(|txn| txn.len() as u64).sum(),
            snapshot_bytes: self
                .snapshots
                .last()
                .map_or(0, |state| 100 + state.count * snapshot_bytes_per_txn),
        }
    }

    pub(super) fn apply(&mut self, write: &Write) {
        match write {
            Write::AcceptedEpoch(epoch) => self.accepted_epoch = *epoch,
            Write::CurrentEpoch(epoch) => (self.current_epoch, self.unmarked) = (*epoch, false),
            Write::GrantedVote { generation, vote } => {
                self.granted_vote = GrantedVote { generation: *generation, vote: *vote };
            }
            Write::Append(txns) => {
                let changes = txns.iter().filter(|txn| change(txn).is_some());
                self.changes.extend(changes.map(|txn| txn.zxid));
                self.log.extend(txns.iter().cloned());
            }
            Write::Lease(longest) => self.lease = *longest,
            Write::Truncate(zxid) => {
                self.log.retain(|txn| txn.zxid <= *zxid);
                self.changes.retain(|change| change <= zxid);
                self.snapshots.retain(|state| state.label <= *zxid);
                self.floor = self.floor.min(*zxid);
            }
            Write::AppendStaged(txn) => {
                if let Some((_, behind)) = &mut self.beside {
                    behind.push_back(txn.clone());
                }
            }
            Write::Install { label, membership, next } => {
                if let Some((state, behind)) = self.beside.take() {
                    let changes = behind.iter().filter(|txn| change(txn).is_some());
                    self.changes = changes.map(|txn| txn.zxid).collect();
                    self.changes.extend(state.changes.iter().map(|(zxid, _)| *zxid));
                    (self.floor, self.log, self.snapshots) = (*label, behind, vec![state]);
                    self.membership = kept(membership);
                    self.next_membership = next.as_ref().and_then(|next| kept(next));
                }
            }
            Write::Membership(text) => self.puts_in_force(kept(text)),
            Write::NextMembership(text) => {
                self.next_membership = text.as_ref().and_then(|text| kept(text));
            }
        }
    }

    /// One that was seen and is later stays: it may be in the log already.
    fn puts_in_force(&mut self, membership: Option<Membership>) {
        let version = membership.as_ref().map_or(0, Membership::version);
        self.next_membership.take_if(|next| next.version() <= version);
        self.membership = membership;
    }

    /// A snapshot is put beside the others; those that are too many go, and the log before them.
    pub(super) fn publish(&mut self, state: &State, keep: usize) {
        if self.snapshots.last().is_none_or(|newest| newest.label < state.label) {
            self.snapshots.push(state.clone());
        }
        let excess = self.snapshots.len().saturating_sub(keep.max(1));
        self.snapshots.drain(..excess);
        let oldest = self.snapshots.first().map_or(Zxid::ZERO, |state| state.label);
        if excess > 0 && oldest > self.floor {
            self.log.retain(|txn| txn.zxid > oldest);
            self.floor = oldest;
        }
    }
}

/// A membership that was written, unless it is the first one, which stands elsewhere.
pub(crate) fn kept(text: &[u8]) -> Option<Membership> {
    Membership::parse(text).ok().filter(|membership| membership.version() > 0)
}
