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
//! the server refuses to start, which no crash alone may bring about. A disk that fails, or has no room left, fails
//! before anything is reported: then the log is what [`quorate_storage::sync_mark`] believes of it. A snapshot that was received lies beside the history with what
//! was written there, and takes its place in one step or not at all.

mod config;
mod contents;
mod crash;
mod failure;
mod marks;

use std::collections::VecDeque;

use quorate_core::generation_message::GrantedVote;
use quorate_core::id::Ticket;
use quorate_core::output::Write;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::State;
use marks::Marks;

pub use config::{DiskConfig, Survival};
pub use contents::Contents;
pub(crate) use contents::{MADE_UP_MAX, kept};

/// What is on its way to the disk.
#[derive(Clone, Debug)]
pub(super) enum Op {
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
    /// From where on the log is in memory alone.
    unwritten: Option<Zxid>,
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
    pub(crate) granted_vote: GrantedVote,
}

impl Held {
    pub(crate) fn of(contents: &Contents) -> Self {
        Self {
            accepted_epoch: contents.accepted_epoch,
            current_epoch: contents.current_epoch,
            last_zxid: contents.told(),
            granted_vote: contents.granted_vote,
        }
    }
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
            unwritten: None,
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
            Op::Write(_, Write::AppendStaged(txn)) => txn.len(),
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

    /// Its files are as a start has found them: the log begins there, and no snapshot is newer.
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
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use quorate_core::input::Place;
    use quorate_core::rng::Rng;
    use quorate_core::zxid::Counter;

    use super::*;
    use crate::application::written_before;

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
            disk.persist(Ticket(1), Write::AppendStaged(behind.clone()));
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
