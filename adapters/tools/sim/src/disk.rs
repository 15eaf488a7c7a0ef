//! A server's disk: what is durable, what is on its way, and what a crash leaves of it.
//!
//! ```text
//!   Persist ─► gathering ─► syncing (takes a while) ─► durable ─► Persisted(last ticket)
//!                  └────────── a crash ──────────┘
//!                   each of these writes may be lost
//! ```
//!
//! Writes become durable in order and in batches. Epoch files are replaced atomically, so such a write is
//! there or not there. Of a batch that was not synced, a crash leaves any transactions and not others, whole
//! or in part; of what that means when the log is opened [`quorate_storage::sync_mark`] is the judge, as on a real
//! disk: the place through which the disk has synced is on it, too. Then the log is cut where it breaks, or
//! the server refuses to start, which no crash alone may bring about. A disk that fails, or has no room left, ends its server before
//! anything is reported. A snapshot that was received lies beside the history with what
//! was written there, and takes its place in one step or not at all.

mod marks;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use quorate_core::ballot::Ballot;
use quorate_core::durable::Durable;
use quorate_core::id::Ticket;
use quorate_core::input::{Located, Place};
use quorate_core::membership::Membership;
use quorate_core::output::Write;
use quorate_core::reconfiguration::body_of;
use quorate_core::rng::Rng;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use quorate_storage::sync_mark::{Stop, Verdict, judge};

use crate::application::{State, change, written_before};
use crate::disk::marks::Marks;

/// What a crash leaves of writes that were not yet reported as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// The first few of them, in their order: what a driver gives that syncs them one by one.
    Prefix,
    /// The first few, but epoch files each by itself, where the order does not promise more: what a
    /// driver gives that syncs its files at the same time. A current epoch is never ahead of the log.
    Any,
    /// The same, and of the log each write by itself, since pages reach a disk in any order: behind one that
    /// is lost, or has lost its middle, others lie whole. That this is no damage, only the mark of where the
    /// last sync ended tells.
    Misordered,
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
}

/// How a disk behaves. Chances are in 65536ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The shortest sync.
    pub sync_min: Duration,
    /// The longest sync of a healthy disk.
    pub sync_max: Duration,
    /// The chance that a sync is slow.
    pub slow: u64,
    /// The longest slow sync.
    pub slow_max: Duration,
    /// The chance that a sync fails, and with it the server: a driver does not go on from there, since
    /// nobody knows what is on disk.
    pub failing: u64,
    /// What a crash leaves of unreported writes.
    pub survival: Survival,
    /// How many snapshots are kept; the log is kept from the oldest of them on.
    pub snapshots: usize,
    /// How many bytes of a snapshot file there are for each transaction in it, when it is asked whether
    /// the log costs less to read.
    pub snapshot_bytes_per_txn: u64,
    /// The chance that the log or snapshot that a learner needs cannot be read to its end, or that a
    /// snapshot cannot be taken.
    pub unreadable: u64,
    /// Whether a crash takes the last transaction that was synced: a disk that lies, to be found out.
    pub forgets: bool,
}

impl Default for DiskConfig {
    fn default() -> Self {
        Self {
            sync_min: Duration::from_micros(100),
            sync_max: Duration::from_millis(5),
            slow: 0,
            slow_max: Duration::from_millis(300),
            failing: 0,
            survival: Survival::Prefix,
            snapshots: 3,
            snapshot_bytes_per_txn: 40,
            unreadable: 0,
            forgets: false,
        }
    }
}

/// What lies on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// See [`Durable::accepted_epoch`].
    pub accepted_epoch: Epoch,
    /// See [`Durable::current_epoch`].
    pub current_epoch: Epoch,
    /// See [`Durable::ballot`].
    pub ballot: Ballot,
    /// See [`Durable::lease`].
    pub lease: Duration,
    /// The log holds everything after this.
    pub floor: Zxid,
    /// The log, without a hole.
    pub log: VecDeque<Txn>,
    /// Snapshots, the oldest first.
    pub snapshots: Vec<State>,
    /// A snapshot that was received and not installed, and what was written beside the history.
    beside: Option<(State, VecDeque<Txn>)>,
    /// The directory is not marked as one that was empty from the beginning: what it held, nobody knows.
    unmarked: bool,
    /// The membership in force, if it is not the first one.
    pub membership: Option<Membership>,
    /// The one that was seen last, if it is another.
    pub next_membership: Option<Membership>,
    /// The changes of the membership in its history: in the log, or in the snapshot before it.
    changes: BTreeSet<Zxid>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            accepted_epoch: Epoch::ZERO,
            current_epoch: Epoch::ZERO,
            ballot: Ballot::NONE,
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

    /// An empty disk of which nobody knows whether it was always empty.
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
            ballot: self.ballot,
            changes: self.log.iter().filter(|txn| txn.zxid > snapshot).filter_map(change).collect(),
            lease: self.lease,
            window: self.log.range(skip..).cloned().collect(),
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
        *found == Durable { floor: found.floor, snapshot: found.snapshot, changes, ..ours }
    }

    /// Where the history ends, as a start tells.
    fn told(&self) -> Zxid {
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

    fn apply(&mut self, write: &Write) {
        match write {
            Write::AcceptedEpoch(epoch) => self.accepted_epoch = *epoch,
            Write::CurrentEpoch(epoch) => (self.current_epoch, self.unmarked) = (*epoch, false),
            Write::GrantedVote { generation, vote } => {
                self.ballot = Ballot { generation: *generation, vote: *vote };
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
            Write::Beside(txn) => {
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
    fn publish(&mut self, state: &State, keep: usize) {
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

/// What is on its way to the disk.
#[derive(Clone, Debug)]
enum Op {
    /// Of several transactions in one write only the last has a ticket: each may be lost by itself.
    Write(Option<Ticket>, Write),
    /// A received snapshot, beside the history.
    Stage(State),
    /// What lies beside the history is not wanted.
    Discard,
}

/// Whether it leaves the log as it is.
fn is_beside_the_log(op: &Op) -> bool {
    let Op::Write(_, write) = op else { return true };
    !matches!(write, Write::Append(_) | Write::Truncate(_) | Write::Install { .. })
}

/// One server's disk.
#[derive(Clone, Debug)]
pub struct Disk {
    durable: Contents,
    /// What it will hold when everything under way is durable: what a reader sees meanwhile.
    latest: Contents,
    syncing: Vec<Op>,
    gathering: VecDeque<Op>,
    /// What the log file says of where syncs have ended.
    marks: Marks,
    /// How many transactions were synced together last.
    batch: usize,
    /// Why the log cannot be opened.
    refused: Option<String>,
}

/// A write that has become durable.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) write: Write,
    /// The state and what was written behind it, if they were installed.
    pub(crate) installed: Option<(State, VecDeque<Txn>)>,
    /// What the disk holds then.
    pub(crate) held: Held,
    /// A change in the history on it that binds less than it must.
    pub(crate) unbound: Option<Zxid>,
}

/// The numbers on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) accepted_epoch: Epoch,
    pub(crate) current_epoch: Epoch,
    pub(crate) last_zxid: Zxid,
    pub(crate) ballot: Ballot,
}

impl Held {
    pub(crate) fn of(contents: &Contents) -> Self {
        Self {
            accepted_epoch: contents.accepted_epoch,
            current_epoch: contents.current_epoch,
            last_zxid: contents.told(),
            ballot: contents.ballot,
        }
    }
}

/// What a crash has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// How many writes.
    pub(crate) all: u64,
    /// Whether some bytes of the first of them are at the end of the log. They are cut off.
    pub(crate) torn: bool,
    /// Whether one was lost although a later one was on the disk.
    pub(crate) misordered: bool,
    /// Whether the first of them, a transaction, is there but for its middle.
    pub(crate) holed: bool,
    /// Whether the mark that came with them is not there, so that the one before counts.
    pub(crate) unmarked: bool,
}

impl Disk {
    /// A disk that holds this.
    pub fn new(contents: Contents) -> Self {
        Self {
            latest: contents.clone(),
            durable: contents,
            syncing: Vec::new(),
            gathering: VecDeque::new(),
            marks: Marks::default(),
            batch: 0,
            refused: None,
        }
    }

    /// Why its server refuses to start, if it does.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// What would be read after a crash at this moment if nothing else survived.
    pub fn durable(&self) -> &Contents {
        &self.durable
    }

    /// What would be read if everything survived.
    pub fn latest(&self) -> &Contents {
        &self.latest
    }

    /// Takes a write; returns whether a sync is to be begun.
    pub(crate) fn persist(&mut self, ticket: Ticket, write: Write) -> bool {
        self.latest.apply(&write);
        if let Write::Append(txns) = &write {
            for (left, txn) in (0..txns.len()).rev().zip(&**txns) {
                let write = Write::Append([txn.clone()].into());
                self.gathering.push_back(Op::Write((left == 0).then_some(ticket), write));
            }
        } else {
            self.gathering.push_back(Op::Write(Some(ticket), write));
        }
        self.syncing.is_empty()
    }

    /// Lays a snapshot beside the history.
    pub(crate) fn stage(&mut self, state: State) {
        self.latest.beside = Some((state.clone(), VecDeque::new()));
        self.gathering.push_back(Op::Stage(state));
    }

    /// Removes what lies beside the history.
    pub(crate) fn discard(&mut self) {
        if self.latest.beside.take().is_some() {
            self.gathering.push_back(Op::Discard);
        }
    }

    /// Keeps a snapshot of a prefix of the log that is durable.
    pub(crate) fn publish(&mut self, state: &State, keep: usize) {
        self.durable.publish(state, keep);
        self.latest.publish(state, keep);
    }

    /// Begins to sync what has gathered; returns whether there was anything.
    pub(crate) fn begin(&mut self) -> bool {
        self.syncing.extend(self.gathering.drain(..));
        !self.syncing.is_empty()
    }

    /// How many bytes of transactions are under way.
    pub(crate) fn unsynced_bytes(&self) -> usize {
        let writes = self.syncing.iter().chain(&self.gathering);
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others carry none")]
        let bytes = writes.map(|op| match op {
            Op::Write(_, Write::Append(txns)) => txns.iter().map(Txn::len).sum(),
            Op::Write(_, Write::Beside(txn)) => txn.len(),
            _ => 0,
        });
        bytes.sum()
    }

    /// How many writes are under way.
    pub(crate) fn under_way(&self) -> usize {
        let writes = self.syncing.iter().chain(&self.gathering);
        writes.filter(|op| matches!(op, Op::Write(..))).count()
    }

    /// Ends the sync: its writes are durable. Returns them and the last ticket.
    pub(crate) fn complete(&mut self) -> (Vec<Done>, Option<Ticket>) {
        let (mut done, mut last) = (Vec::with_capacity(self.syncing.len()), None);
        let appends = |op: &&Op| matches!(op, Op::Write(_, Write::Append(_)));
        match self.syncing.iter().rev().take_while(appends).count() {
            0 if self.syncing.iter().any(|op| !is_beside_the_log(op)) => self.batch = 0,
            0 => {}
            batch => self.batch = batch,
        }
        for op in std::mem::take(&mut self.syncing) {
            if let Op::Write(Some(ticket), _) = &op {
                last = Some(*ticket);
            }
            done.extend(self.carry_out(op));
        }
        self.marks.synced();
        (done, last)
    }

    /// Everything through this ticket is durable; none if it is not under way.
    pub(crate) fn complete_through(&mut self, ticket: Ticket) -> Option<Vec<Done>> {
        self.begin();
        let is_last = |op: &Op| matches!(op, Op::Write(Some(other), _) if *other == ticket);
        let last = self.syncing.iter().position(is_last)?;
        let ops: Vec<_> = self.syncing.drain(..=last).collect();
        let done = ops.into_iter().filter_map(|op| self.carry_out(op)).collect();
        self.marks.synced();
        Some(done)
    }

    /// Ends everything under way, in its order: as much of it survives as can, such that `is` holds. None, and
    /// nothing changes, if no crash leaves that.
    pub(crate) fn survive(&mut self, is: impl Fn(&Contents) -> bool) -> Option<Vec<Done>> {
        self.begin();
        for survivors in (0..=self.syncing.len()).rev() {
            let mut left = self.clone();
            left.syncing.truncate(survivors);
            let (done, _) = left.complete();
            left.durable.beside = None;
            left.latest = left.durable.clone();
            if is(&left.durable) {
                *self = left;
                return Some(done);
            }
        }
        None
    }

    /// Its files are as somebody has found them: the log begins there, and no snapshot is newer.
    pub(crate) fn tidy(&mut self, floor: Zxid, snapshot: Zxid) {
        for contents in [&mut self.durable, &mut self.latest] {
            contents.snapshots.retain(|state| state.label <= snapshot);
            contents.log.retain(|txn| txn.zxid > floor);
            contents.floor = floor;
        }
    }

    /// Ends the sync of so many writes and no more; tells what was left of that number if there were fewer,
    /// and does nothing then.
    pub(crate) fn complete_some(&mut self, count: u64) -> Result<Vec<Done>, u64> {
        let writes = |op: &Op| u64::from(matches!(op, Op::Write(..)));
        let there: u64 = self.syncing.iter().map(writes).sum();
        if count > there {
            return Err(count - there);
        }
        let (mut done, mut left) = (Vec::new(), count);
        let ops = std::mem::take(&mut self.syncing);
        for op in ops {
            if left == 0 {
                self.syncing.push(op);
                continue;
            }
            left -= writes(&op);
            done.extend(self.carry_out(op));
        }
        Ok(done)
    }

    fn carry_out(&mut self, op: Op) -> Option<Done> {
        match op {
            Op::Write(_, write) => {
                self.marks.on_write(&write);
                let installs = matches!(write, Write::Install { .. });
                let installed = self.durable.beside.clone().filter(|_| installs);
                self.durable.apply(&write);
                let (held, unbound) = (Held::of(&self.durable), self.durable.unbound());
                Some(Done { write, installed, held, unbound })
            }
            Op::Stage(state) => {
                self.durable.beside = Some((state, VecDeque::new()));
                None
            }
            Op::Discard => {
                self.durable.beside = None;
                None
            }
        }
    }

    /// Ends everything under way, and opens what is left. Returns the writes that survive, and what was lost;
    /// what lies beside the history goes. `pages` says what is left of a transaction that is lost.
    pub(crate) fn crash(
        &mut self,
        survival: Survival,
        rng: &mut Rng,
        pages: &mut Rng,
    ) -> (Vec<Done>, Lost) {
        let pending: Vec<_> = self.syncing.drain(..).chain(self.gathering.drain(..)).collect();
        let prefix = match survival {
            Survival::Nothing => 0,
            Survival::Everything | Survival::Misordered => pending.len(),
            Survival::Prefix | Survival::Any => {
                usize::try_from(rng.below(pending.len() as u64 + 1)).unwrap_or(0)
            }
        };
        let each = matches!(survival, Survival::Any | Survival::Misordered);
        let appends = |op: &Op| matches!(op, Op::Write(_, Write::Append(_)));
        let mut marks = self.marks.clone();
        let mut lost = Lost::default();
        if pending.iter().any(appends) {
            lost.unmarked = marks.write(each.then_some(pages));
        }
        let (mut done, mut whole, mut buried) = (Vec::new(), true, false);
        for (at, op) in pending.into_iter().enumerate() {
            #[allow(clippy::wildcard_enum_match_arm, reason = "the log keeps its order")]
            let survives = match &op {
                Op::Write(_, Write::AcceptedEpoch(_)) if each => rng.below(2) == 0,
                Op::Write(_, Write::CurrentEpoch(_)) if each => {
                    whole && at < prefix && rng.below(2) == 0
                }
                Op::Write(_, Write::Append(_) | Write::Beside(_))
                    if survival == Survival::Misordered =>
                {
                    let written = rng.below(4) > 0;
                    lost.misordered |= written && !whole;
                    // What no sync may pass ends the batch.
                    buried |= written && !whole && appends(&op) && lost.all > 0;
                    whole &= written;
                    whole
                }
                _ => {
                    whole &= at < prefix;
                    whole
                }
            };
            if survives {
                if !is_beside_the_log(&op) && !appends(&op) {
                    // What was cut or replaced has no mark; what follows is in a file that begins.
                    marks = Marks::default();
                    marks.write(None);
                }
                done.extend(self.carry_out(op));
            } else {
                // The first that is lost may have been under the head.
                let first = appends(&op) && lost.all == 0;
                lost.torn |= first && rng.below(2) == 0;
                lost.holed |= first && survival == Survival::Misordered && pages.below(3) == 0;
                lost.all += u64::from(matches!(op, Op::Write(..)));
            }
        }
        let stop = match () {
            () if buried || lost.holed => Stop::Damaged,
            () if lost.torn => Stop::Torn,
            () => Stop::Clean,
        };
        let (offset, mark) = (self.marks.written(), marks.mark());
        if judge(offset, stop, mark) == Verdict::Refuse {
            let last = self.durable.last();
            self.refused =
                Some(format!("behind {last} the log is {stop:?}, synced through {mark:?}"));
        }
        // It is cut there, and goes on in another file.
        self.marks = Marks::default();
        self.durable.beside = None;
        self.latest = self.durable.clone();
        (done, lost)
    }

    /// What was synced last cannot be read any more. Until the next batch, or time, marks where it ended, it
    /// looks like a torn one, and is cut off as such. Tells whether there was anything.
    pub(crate) fn damage_last_batch(&mut self) -> bool {
        let label = self.durable.snapshots.last().map_or(Zxid::ZERO, |state| state.label);
        let before = self.durable.log.len();
        for _ in 0..std::mem::take(&mut self.batch) {
            if self.durable.log.back().is_some_and(|txn| txn.zxid > label) {
                self.durable.log.pop_back();
            }
        }
        self.latest = self.durable.clone();
        self.durable.log.len() < before
    }

    /// Loses the last transaction of the log, which it said was safe.
    pub(crate) fn forget(&mut self) {
        self.durable.log.pop_back();
        let last = self.durable.last();
        self.durable.changes.retain(|change| *change <= last);
        self.latest = self.durable.clone();
    }

    /// Makes the disk empty.
    pub(crate) fn wipe(&mut self) {
        *self = Self::new(Contents::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn zxid(epoch: i64, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), Counter(counter))
    }

    fn install(label: Zxid) -> Write {
        Write::Install { label, membership: Bytes::new(), next: None }
    }

    #[test]
    fn a_crash_leaves_a_prefix_and_completing_leaves_everything() {
        let (mut rng, mut seen) = (Rng::new(1), BTreeSet::new());
        for _ in 0..100 {
            let mut disk = Disk::new(Contents::default());
            assert!(disk.persist(Ticket(1), Write::AcceptedEpoch(Epoch(1))));
            assert!(disk.begin());
            assert!(!disk.persist(Ticket(2), Write::CurrentEpoch(Epoch(1))), "one at a time");
            let (_, lost) = disk.crash(Survival::Prefix, &mut rng, &mut Rng::new(0));
            let Contents { accepted_epoch, current_epoch, .. } = disk.durable().clone();
            seen.insert((accepted_epoch.0, current_epoch.0, lost.all));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(0, 0, 2), (1, 0, 1), (1, 1, 0)]);
        let mut disk = Disk::new(Contents::default());
        disk.persist(Ticket(1), Write::AcceptedEpoch(Epoch(1)));
        disk.persist(Ticket(2), Write::CurrentEpoch(Epoch(1)));
        assert!(disk.begin());
        let (done, last) = disk.complete();
        assert_eq!((done.len(), last), (2, Some(Ticket(2))));
        assert!(!disk.begin());
    }

    /// On 953d248 what is left so could not be opened.
    #[test]
    fn what_lies_whole_behind_a_lost_write_of_a_batch_is_cut_off() {
        let append = |counter| Write::Append([written_before(zxid(1, counter), 1)].into());
        let (mut rng, mut pages) = (Rng::new(3), Rng::new(4));
        let (mut misordered, mut holed, mut unmarked) = (0, 0, 0);
        for _ in 0..300 {
            let mut disk = Disk::new(Contents::ending(1, 1, zxid(1, 5)));
            for counter in 6..=7 {
                disk.persist(Ticket(1), append(counter));
                disk.begin();
                disk.complete();
            }
            for counter in 8..=12 {
                disk.persist(Ticket(2), append(counter));
            }
            disk.begin();
            let (done, lost) = disk.crash(Survival::Misordered, &mut rng, &mut pages);
            assert_eq!(disk.refused(), None);
            assert_eq!(
                disk.durable().log.len(),
                7 + done.len(),
                "a prefix, and all that was synced"
            );
            misordered += u32::from(lost.misordered);
            holed += u32::from(lost.holed);
            unmarked += u32::from(lost.unmarked);
        }
        assert!(misordered > 50 && holed > 20 && unmarked > 50, "{misordered} {holed} {unmarked}");
    }

    #[test]
    fn a_log_that_was_cut_in_the_middle_of_a_crash_has_no_old_mark() {
        let append = |counter| Write::Append([written_before(zxid(1, counter), 1)].into());
        let mut disk = Disk::new(Contents::default());
        for counter in 1..=5 {
            disk.persist(Ticket(1), append(counter));
            disk.begin();
            disk.complete();
        }
        disk.persist(Ticket(2), Write::Truncate(zxid(1, 2)));
        disk.persist(Ticket(3), append(3));
        disk.crash(Survival::Everything, &mut Rng::new(1), &mut Rng::new(1));
        assert_eq!((disk.refused(), disk.durable().last()), (None, zxid(1, 3)));
    }

    #[test]
    fn an_install_takes_the_place_of_the_history_in_one_step() {
        for survive in [false, true] {
            let mut disk = Disk::new(Contents::ending(2, 1, zxid(1, 5)));
            let state = State { label: zxid(2, 7), count: 12, ..State::default() };
            disk.stage(state.clone());
            let behind = written_before(zxid(2, 8), 13);
            disk.persist(Ticket(1), Write::Beside(behind.clone()));
            assert!(disk.begin());
            disk.complete();
            assert_eq!(disk.durable().last(), zxid(1, 5), "the history is whole so far");
            disk.persist(Ticket(2), install(zxid(2, 7)));
            let survival = if survive { Survival::Everything } else { Survival::Nothing };
            disk.crash(survival, &mut Rng::new(1), &mut Rng::new(0));
            let held = disk.durable();
            if survive {
                assert_eq!((held.floor, held.last()), (zxid(2, 7), zxid(2, 8)));
                assert_eq!(held.snapshots, [state]);
            } else {
                assert_eq!((held.log.len(), held.last()), (5, zxid(1, 5)));
            }
            assert_eq!(held.beside, None);
        }
    }

    #[test]
    fn places_in_a_log() {
        let contents = Contents::ending(2, 2, zxid(1, 6)).and(2).with_snapshot(zxid(1, 3));
        let contents = contents.with_floor(zxid(1, 3));
        let place = |zxid| contents.locate(zxid, 1).place;
        assert_eq!(place(zxid(1, 2)), Place::BelowFloor);
        assert_eq!(place(zxid(1, 3)), Place::Held, "the floor itself");
        assert_eq!(place(zxid(1, 6)), Place::Held);
        assert_eq!(place(zxid(1, 7)), Place::Absent { previous: zxid(1, 6) });
        assert_eq!(place(zxid(2, 1)), Place::Held);
        assert_eq!(place(zxid(2, 2)), Place::Beyond);
    }

    #[test]
    fn the_log_goes_with_the_oldest_snapshot() {
        let mut disk = Disk::new(Contents::ending(1, 1, zxid(1, 9)));
        for counter in [3, 6, 8] {
            let state = State { label: zxid(1, counter), ..State::default() };
            disk.publish(&state, 2);
        }
        assert_eq!(disk.durable().floor, zxid(1, 6));
        assert_eq!(disk.durable().log.len(), 3);
        assert_eq!(disk.durable().durable(2).window.len(), 2);
    }
}
