//! A server's disk: what is durable, and what is under way to it.
//!
//! ```text
//!   Persist ─► pending, in order ── one at a time ──► durable ─► Persisted(ticket)
//!                  └─ a crash keeps the first few, perhaps none
//! ```
//!
//! A history is kept whole, so that two of them can be compared; what is in a snapshot is told by its label.

use quorate_core::durable::Durable;
use quorate_core::generation_message::GrantedVote;
use quorate_core::id::Ticket;
use quorate_core::input::{Located, Place};
use quorate_core::membership::Membership;
use quorate_core::output::Write;
use quorate_core::reconfiguration::{body_of, membership_of};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use super::members::Members;

/// What lies on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The highest epoch promised.
    pub accepted: Epoch,
    /// The epoch whose history was taken over.
    pub current: Epoch,
    /// The last vote given in an election by generation.
    pub granted_vote: GrantedVote,
    pub lease: std::time::Duration,
    /// The label of the snapshot from which the application starts; zero if there is none.
    pub label: Zxid,
    /// Every transaction, those in the snapshot too.
    pub history: Vec<Txn>,
    /// The membership in force, if it is not the first one.
    pub membership: Option<Membership>,
    /// The one that was seen last, if it is another.
    pub next: Option<Membership>,
    beside: Option<(Zxid, Vec<Txn>)>,
}

/// Something under way to the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// What the core asked for.
    Write(Ticket, Write),
    /// A snapshot that was received, with this label and history, beside the one that there is.
    Stage(Zxid, Vec<Txn>),
}

impl Default for Store {
    fn default() -> Self {
        let (accepted, current, label) = (Epoch::ZERO, Epoch::ZERO, Zxid::ZERO);
        let (granted_vote, lease) = (GrantedVote::NONE, std::time::Duration::ZERO);
        let (membership, next, beside) = (None, None, None);
        let history = Vec::new();
        Self { accepted, current, granted_vote, lease, label, history, membership, next, beside }
    }
}

/// A transaction that is told from others by its payload.
pub fn txn(epoch: i64, counter: u32, payload: u8) -> Txn {
    let zxid = Zxid::new(Epoch(epoch), Counter(counter));
    let header = TxnHeader { client: 0, cxid: i32::from(payload), time: 0, kind: 5 };
    Txn { zxid, header, body: bytes::Bytes::new() }
}

/// The membership that a transaction brings.
pub fn change(txn: &Txn) -> Option<Membership> {
    Some(txn).filter(|txn| txn.header.kind == Txn::RECONFIGURATION).and_then(membership_of)
}

impl Store {
    /// A disk with these epochs and these transactions, each an epoch and a counter.
    pub fn with(accepted: i64, current: i64, history: &[(i64, u32)]) -> Self {
        let history = history.iter().map(|(epoch, counter)| txn(*epoch, *counter, 0)).collect();
        Self { accepted: Epoch(accepted), current: Epoch(current), history, ..Self::default() }
    }

    /// The same, with a change behind what there is: seen, and the one before it in force.
    pub fn and_change(mut self, epoch: i64, counter: u32, members: Members) -> Self {
        let plain = txn(epoch, counter, 0);
        let next = members.membership(plain.zxid.0);
        let header = TxnHeader { kind: Txn::RECONFIGURATION, ..plain.header };
        self.history.push(Txn { header, body: body_of(&next), ..plain });
        self = self.with_next_in_force();
        self.next = Some(next);
        self
    }

    /// The same, where the change that was seen last is in force.
    pub fn with_next_in_force(mut self) -> Self {
        self.membership = self.next.take().or(self.membership);
        self
    }

    /// The same, with one more transaction.
    pub fn and(mut self, epoch: i64, counter: u32) -> Self {
        self.history.push(txn(epoch, counter, 0));
        self
    }

    /// The same, starting from a snapshot of everything through this.
    pub fn with_snapshot(self, epoch: i64, counter: u32) -> Self {
        Self { label: Zxid::new(Epoch(epoch), Counter(counter)), ..self }
    }

    /// The zxid of the change that is in force; 0 if none is.
    pub fn in_force(&self) -> i64 {
        let present = self.membership.as_ref().filter(|present| present.is_change());
        present.map_or(0, Membership::version)
    }

    /// The last transaction, or the label of the snapshot if nothing follows it.
    pub fn last(&self) -> Zxid {
        self.history.last().map_or(Zxid::ZERO, |txn| txn.zxid).max(self.label)
    }

    /// Everything through `zxid`.
    pub fn through(&self, zxid: Zxid) -> &[Txn] {
        &self.history[..self.history.partition_point(|txn| txn.zxid <= zxid)]
    }

    /// What a server that starts with this is told.
    pub fn durable(&self) -> Durable {
        let behind = &self.history[self.through(self.label).len()..];
        Durable {
            accepted_epoch: self.accepted,
            current_epoch: self.current,
            last_zxid: self.last(),
            floor: self.label,
            snapshot: self.label,
            granted_vote: self.granted_vote,
            lease: self.lease,
            changes: behind.iter().filter_map(change).collect(),
            window: behind.iter().cloned().collect(),
            window_is_whole: true,
        }
    }

    /// Whether the newest change of the membership in its history is seen or in force, and every older one is in
    /// force.
    pub fn is_bound(&self) -> bool {
        self.is_bound_by(self.membership.as_ref(), self.next.as_ref())
    }

    /// The same for a server that goes by these.
    pub fn is_bound_by(&self, present: Option<&Membership>, next: Option<&Membership>) -> bool {
        let version = |of: Option<&Membership>| {
            of.filter(|membership| membership.is_change()).map_or(0, Membership::version)
        };
        let (in_force, seen) = (version(present), version(next));
        let brings = |txn: &&Txn| txn.header.kind == Txn::RECONFIGURATION;
        let changes = self.history.iter().rev().filter(brings);
        let mut over = changes.map(|txn| txn.zxid.0).filter(|held| *held > in_force);
        over.next().is_none_or(|newest| newest == seen) && over.next().is_none()
    }

    /// Where a zxid stands.
    pub fn locate(&self, zxid: Zxid) -> Located {
        let previous = self.through(zxid).last().map_or(Zxid::ZERO, |txn| txn.zxid).max(self.label);
        let place = if zxid < self.label {
            Place::BelowFloor
        } else if previous == zxid {
            Place::Held
        } else if zxid > self.last() {
            Place::Beyond
        } else {
            Place::Absent { previous }
        };
        Located { place, log_bytes: 0, snapshot_bytes: 0 }
    }

    /// Something has become durable.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Stage(label, history) => self.beside = Some((*label, history.clone())),
            Op::Write(_, Write::AcceptedEpoch(epoch)) => self.accepted = *epoch,
            Op::Write(_, Write::CurrentEpoch(epoch)) => self.current = *epoch,
            Op::Write(_, Write::Append(txns)) => self.history.extend(txns.iter().cloned()),
            Op::Write(_, Write::Truncate(zxid)) => self.history.retain(|txn| txn.zxid <= *zxid),
            Op::Write(_, Write::AppendStaged(txn)) => {
                if let Some((_, history)) = &mut self.beside {
                    history.push(txn.clone());
                }
            }
            Op::Write(_, Write::Install { membership, next, .. }) => {
                if let Some((label, history)) = self.beside.take() {
                    (self.label, self.history) = (label, history);
                    self.membership = Membership::parse(membership).ok();
                    self.next = next.as_ref().and_then(|next| Membership::parse(next).ok());
                }
            }
            Op::Write(_, Write::GrantedVote { generation, vote }) => {
                self.granted_vote = GrantedVote { generation: *generation, vote: *vote };
            }
            Op::Write(_, Write::Membership(text)) => {
                self.membership = Membership::parse(text).ok();
                let version = self.membership.as_ref().map_or(0, Membership::version);
                self.next.take_if(|next| next.version() <= version);
            }
            Op::Write(_, Write::NextMembership(text)) => {
                self.next = text.as_ref().and_then(|text| Membership::parse(text).ok());
            }
            Op::Write(_, Write::Lease(longest)) => self.lease = *longest,
        }
    }

    /// What an end leaves: what was received and not installed is not wanted any more.
    pub fn close(&mut self) {
        self.beside = None;
    }
}
