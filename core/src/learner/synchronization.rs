//! Synchronization, the learner's side: the leader's history becomes ours.
//!
//! ```text
//!   DIFF  ────────────────────────────┐  PROPOSAL, COMMIT …
//!   TRUNC ─► cut? ── yes ─────────────┼──────────────► NEWLEADER ─► disk ─► ACK ─► … ─► UPTODATE ─► serve
//!     │        └──── no ─► come back blank
//!   SNAP ─► staged beside the history ┘
//! ```
//!
//! One path for all three: what came with COMMIT is durable before NEWLEADER is acknowledged, and nothing
//! is delivered before UPTODATE says that a quorum has it. What comes without COMMIT waits in memory, and
//! is logged when the ensemble serves.
//!
//! The order of writes before NEWLEADER is acknowledged stands in [`new_leader`] and nowhere else.

pub mod new_leader;

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::context::Context;
use crate::id::{LinkId, Ticket};
use crate::learner::breach::Breach;
use crate::learner::reconfiguration::{self, Collected};
use crate::membership::Membership;
use crate::output::{Output, Write};
use crate::reconfiguration::{from_snapshot, membership_of};
use crate::report::{Change, How, Reason};
use crate::txn::Txn;
use crate::zxid::{Epoch, Zxid};

/// What a learner has been told of the leader's history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Synchronization {
    /// The epoch that it has promised.
    pub epoch: Epoch,
    /// The write that our acknowledgement of NEWLEADER waits for, once that has come.
    pub acknowledging: Option<Ticket>,
    /// It is sent, or waits for that write alone.
    pub acknowledged: bool,
    step: Step,
    /// What DIFF, TRUNC or SNAP said: what we have through this is committed, once a quorum follows.
    label: Zxid,
    /// The last COMMIT.
    committed: Zxid,
    /// What was committed when NEWLEADER came: our acknowledgement of that covers it, and nothing that
    /// was committed later.
    covered: Zxid,
    /// The last transaction that came, or that we had before the first: the next one follows it.
    tail: Zxid,
    /// The last transaction that is written, in the history or beside it.
    written: Zxid,
    /// NEWLEADER has come before the disk knew whether the log can be cut, or holds the change that binds us.
    due: bool,
    /// The configuration that it told.
    config: Option<Membership>,
    /// Every configuration that came with a snapshot or behind it.
    collected: Collected,
    /// Whether our log holds the change that binds us, which the leader does not know.
    holds: Holds,
    /// Transactions without COMMIT, ascending.
    pending: VecDeque<Txn>,
    /// How many bytes they take.
    pending_bytes: usize,
}

/// How far the leader's decision has been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// It has not come.
    Awaited,
    /// TRUNC to this: the disk is asked whether the log can be cut there.
    Locating(Zxid),
    /// A snapshot with this label is coming.
    Receiving(Zxid),
    /// Transactions follow our history.
    Following(How),
}

/// What is known of a change's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holds {
    /// Nothing was asked.
    Unasked,
    /// The disk was asked where this one stands.
    Asked(Zxid),
    /// It stands in our log, or not.
    Known(bool),
}

impl Synchronization {
    /// Waiting for the leader's decision.
    pub fn new(cx: &Context<'_>, epoch: Epoch) -> Self {
        Self {
            epoch,
            acknowledging: None,
            acknowledged: false,
            step: Step::Awaited,
            label: Zxid::ZERO,
            committed: Zxid::ZERO,
            covered: Zxid::ZERO,
            tail: cx.history.last(),
            written: cx.history.last(),
            due: false,
            config: None,
            collected: Collected::default(),
            holds: Holds::Unasked,
            pending: VecDeque::new(),
            pending_bytes: 0,
        }
    }

    /// DIFF: our history is a part of the leader's.
    pub fn on_diff(&mut self, cx: &mut Context<'_>, label: Zxid) -> Result<(), Breach> {
        if self.step != Step::Awaited {
            return Err(Breach::OutOfTurn);
        }
        self.follow(cx, How::Diff, label);
        Ok(())
    }

    /// TRUNC: what we have after `zxid` was never committed.
    ///
    /// What we logged of this very epoch is not cut: the leader still has it, since it proposed it, and
    /// sends it again. It may even be committed: a Java leader tells so before it has applied it itself, and
    /// cuts a learner that comes back meanwhile to what it has applied.
    pub fn on_trunc(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        zxid: Zxid,
    ) -> Result<(), Breach> {
        if self.step != Step::Awaited {
            return Err(Breach::OutOfTurn);
        }
        let last = cx.history.last();
        if zxid > last || zxid.0 < 0 {
            return Err(Breach::OutOfTurn);
        }
        let mut of_this_epoch = zxid.epoch() == self.epoch;
        if zxid >= cx.history.before() {
            of_this_epoch |= cx.history.after(zxid).all(|txn| txn.zxid.epoch() == self.epoch);
        }
        if zxid == last || of_this_epoch {
            self.tail = zxid;
            self.follow(cx, How::Trunc, zxid);
            return Ok(());
        }
        if cx.history.loses(zxid) {
            return Err(Breach::CommittedCut(zxid));
        }
        if cx.history.can_cut(zxid) {
            self.tail = zxid;
            self.cut(cx, zxid);
            return Ok(());
        }
        if zxid < cx.history.base() {
            return Err(Breach::CannotCut(zxid));
        }
        (self.step, self.tail, self.written) = (Step::Locating(zxid), zxid, zxid);
        cx.outbox.push(Output::Locate { link, zxid });
        Ok(())
    }

    /// The disk knows whether the log can be cut, or holds a change.
    pub fn on_located(&mut self, cx: &mut Context<'_>, held: bool) -> Result<(), Breach> {
        if let Holds::Asked(_) = self.holds {
            self.holds = Holds::Known(held);
            return Ok(());
        }
        match self.step {
            Step::Locating(zxid) if held => self.cut(cx, zxid),
            Step::Locating(zxid) => return Err(Breach::CannotCut(zxid)),
            Step::Awaited | Step::Receiving(_) | Step::Following(_) => {}
        }
        Ok(())
    }

    fn cut(&mut self, cx: &mut Context<'_>, zxid: Zxid) {
        cx.truncate(zxid);
        cx.forget_unheld();
        self.written = zxid;
        self.follow(cx, How::Trunc, zxid);
    }

    /// SNAP: a whole history comes, and `memberships` with it. Ours stays until it is here and installed.
    pub fn on_snap(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        label: Zxid,
        memberships: &Bytes,
    ) -> Result<(), Breach> {
        if self.step != Step::Awaited || label.0 < 0 || label.epoch() > self.epoch {
            return Err(Breach::OutOfTurn);
        }
        let Some(memberships) = from_snapshot(memberships) else { return Err(Breach::OutOfTurn) };
        self.collected.add_all(memberships);
        self.step = Step::Receiving(label);
        cx.outbox.push(Output::ReceiveSnapshot { link, label });
        Ok(())
    }

    /// Whether a snapshot is coming, or has come and is not installed.
    pub const fn receives(&self) -> bool {
        let came = matches!(self.step, Step::Receiving(_) | Step::Following(How::Snap));
        came && self.acknowledging.is_none()
    }

    /// The snapshot has come whole, and perhaps with a membership in its state; what follows it is written beside the
    /// history.
    pub fn on_restored(&mut self, cx: &mut Context<'_>, membership: Option<&Bytes>) {
        if let Step::Receiving(label) = self.step {
            // What stands there could not be read by its own ensemble either.
            let membership = membership.and_then(|text| Membership::parse(text).ok());
            if let Some(membership) = membership.filter(|held| held.version() <= label.0) {
                self.collected.add(membership);
            }
            (self.tail, self.written) = (label, label);
            self.follow(cx, How::Snap, label);
        }
    }

    fn follow(&mut self, cx: &mut Context<'_>, how: How, label: Zxid) {
        self.step = Step::Following(how);
        self.label = label;
        cx.outbox.report(Change::Sync { id: cx.config.id, how }, Reason::EndsAt(label));
        // The disk may have answered while the leader went on.
        self.take_pending_before_new_leader(cx);
    }

    /// PROPOSAL.
    pub fn on_proposal(&mut self, cx: &mut Context<'_>, txn: Txn) -> Result<(), Breach> {
        if let (true, Step::Following(How::Snap)) =
            (txn.header.kind == Txn::RECONFIGURATION, self.step)
        {
            // Also one that the snapshot has already: it may be the only one to tell of it.
            if let Some(membership) = membership_of(&txn) {
                self.collected.add(membership);
                self.collected.prune(self.committed.max(self.label));
            }
        }
        match self.step {
            Step::Awaited | Step::Receiving(_) => return Err(Breach::OutOfTurn),
            // ZooKeeper reads the label after it has begun to forward: what it covers is in it.
            Step::Following(How::Snap) if txn.zxid <= self.label => return Ok(()),
            Step::Locating(_) | Step::Following(_) => {}
        }
        if txn.zxid.epoch() > self.epoch {
            return Err(Breach::OutOfTurn);
        }
        if txn.zxid <= self.tail {
            // A leader's repetition.
            return self.compare(cx, &txn);
        }
        if !txn.zxid.follows(self.tail) {
            return Err(Breach::Hole(self.tail));
        }
        self.tail = txn.zxid;
        if txn.zxid <= self.written {
            // Sent again by the leader whose epoch it is of: not logged twice.
            return self.compare(cx, &txn);
        }
        self.pending_bytes += txn.len();
        self.pending.push_back(txn);
        Ok(())
    }

    /// What comes again must be what we have under its number.
    fn compare(&self, cx: &Context<'_>, txn: &Txn) -> Result<(), Breach> {
        let waiting = self.pending.binary_search_by_key(&txn.zxid, |waiting| waiting.zxid);
        let differs = match waiting {
            Ok(at) => self.pending[at] != *txn,
            Err(_) => cx.history.contradicts(txn),
        };
        if differs { Err(Breach::Differs(txn.zxid)) } else { Ok(()) }
    }

    /// COMMIT.
    pub fn on_commit(&mut self, cx: &mut Context<'_>, zxid: Zxid) -> Result<(), Breach> {
        match self.step {
            Step::Awaited | Step::Receiving(_) => return Err(Breach::OutOfTurn),
            Step::Following(How::Snap) if zxid <= self.label => return Ok(()),
            Step::Locating(_) | Step::Following(_) => {}
        }
        if zxid <= self.committed {
            return Ok(());
        }
        if zxid > self.tail {
            return Err(Breach::Hole(self.tail));
        }
        self.committed = zxid;
        if matches!(self.step, Step::Following(_)) {
            self.take_committed(cx);
        }
        Ok(())
    }

    /// INFORM: a transaction with its COMMIT.
    pub fn on_inform(&mut self, cx: &mut Context<'_>, txn: Txn) -> Result<(), Breach> {
        let zxid = txn.zxid;
        self.on_proposal(cx, txn)?;
        self.on_commit(cx, zxid)
    }

    /// Writes what is committed of what waits.
    fn take_committed(&mut self, cx: &mut Context<'_>) {
        while self.pending.front().is_some_and(|txn| txn.zxid <= self.committed) {
            self.write_next(cx);
        }
    }

    /// What came before NEWLEADER with COMMIT; after a TRUNC also what came without: a leader sends what
    /// follows a cut so, because ZooKeeper's learners would keep it in memory only otherwise, and it may
    /// be of the history that we are about to acknowledge.
    fn take_pending_before_new_leader(&mut self, cx: &mut Context<'_>) {
        self.take_committed(cx);
        if self.acknowledging.is_none() && self.step == Step::Following(How::Trunc) {
            while !self.pending.is_empty() {
                self.write_next(cx);
            }
        }
    }

    fn write_next(&mut self, cx: &mut Context<'_>) {
        let Some(txn) = self.pending.pop_front() else { return };
        self.pending_bytes -= txn.len();
        self.written = txn.zxid;
        if self.acknowledging.is_none() && self.step == Step::Following(How::Snap) {
            // What this brings of the membership is collected.
            let bytes = txn.len();
            let ticket = cx.outbox.persist(Write::AppendStaged(txn));
            cx.outbox.weigh(ticket, bytes);
        } else {
            reconfiguration::take_over(cx, txn);
        }
    }

    /// NEWLEADER tells this configuration. Returns whether it has a place here and can be read.
    pub fn on_config(&mut self, config: &Bytes) -> bool {
        let told = reconfiguration::told(config).filter(|_| !self.due);
        let fits = told.is_some();
        self.config = told.flatten();
        fits
    }

    /// Whether NEWLEADER has come and waited until now for what the disk had to say.
    pub const fn is_due(&self) -> bool {
        self.due
            && matches!(self.step, Step::Following(_))
            && !matches!(self.holds, Holds::Asked(_))
    }

    /// Whether our log holds a change; none as long as the disk was not heard.
    fn holds(&mut self, cx: &mut Context<'_>, link: LinkId, change: Zxid) -> Option<bool> {
        match (self.holds, cx.history.holds(change)) {
            (Holds::Known(held), _) => Some(held),
            (Holds::Unasked, Some(held)) => Some(held),
            (Holds::Unasked, None) => {
                self.holds = Holds::Asked(change);
                cx.outbox.push(Output::Locate { link, zxid: change });
                None
            }
            (Holds::Asked(_), _) => None,
        }
    }

    /// How many bytes of transactions wait in memory for their COMMIT, or for UPTODATE.
    pub const fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// What the acknowledgement of NEWLEADER has acknowledged.
    pub const fn covered(&self) -> Zxid {
        self.covered
    }

    /// UPTODATE: everything through the returned zxid is committed, and what is left without COMMIT is
    /// returned to be logged.
    pub fn end(&mut self, cx: &Context<'_>) -> (Zxid, VecDeque<Txn>) {
        // The start of an epoch is no transaction: what it stands for ends before, and what follows may still be cut.
        let known = cx.history.until(self.label.max(self.committed));
        self.pending_bytes = 0;
        (known.max(cx.history.committed()), core::mem::take(&mut self.pending))
    }
}
