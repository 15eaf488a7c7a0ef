//! What the ensemble has committed and what it owes to whom: the checker's book of transactions.
//!
//! There is one committed history, the *chain*. The first to deliver a transaction puts it there, and
//! must be an established leader with a quorum of disks behind it, which are looked at here. Everybody
//! else is compared with the chain.

mod applying;
mod clients;
mod epochs;

use std::collections::BTreeMap;

use quorate_core::id::{ReadId, ServerId};
use quorate_core::output::Write;
use quorate_core::reconfiguration::membership_of;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::{State, change, hash_of, takes_the_place_of_a_void_one};
use crate::disk::{Contents, Done};
use crate::ensemble::Ensemble;
use crate::linear::History;
use crate::rule::{Rule, Violation, broken};
pub use clients::{Answer, Outcome};
use clients::{Asked, Reading};

/// One committed transaction.
#[derive(Clone, Copy, Debug)]
struct Link {
    zxid: Zxid,
    hash: u64,
    /// Of it and everything before.
    digest: u64,
    /// The epoch of the leader that committed it; before the first, if it was before the run.
    by: Epoch,
}

/// What a disk holds, kept up by each write that becomes durable.
#[derive(Debug, Default)]
struct Copy {
    log: BTreeMap<Zxid, u64>,
    /// Everything through this lies in an installed snapshot.
    label: Zxid,
}

impl Copy {
    fn last(&self) -> Zxid {
        self.log.last_key_value().map_or(self.label, |(zxid, _)| *zxid).max(self.label)
    }

    /// These follow it, without a hole; `how` says how they come.
    fn append<'a>(
        &mut self,
        id: ServerId,
        how: &str,
        txns: impl IntoIterator<Item = &'a Txn>,
    ) -> Result<(), Violation> {
        for txn in txns {
            let last = self.last();
            if !txn.zxid.follows(last) {
                return broken(Rule::Contiguous, id, format!("{} {how} behind {last}", txn.zxid));
            }
            self.log.insert(txn.zxid, hash_of(txn));
        }
        Ok(())
    }

    fn covers(&self, zxid: Zxid) -> bool {
        zxid <= self.label || self.log.contains_key(&zxid)
    }
}

/// A leader's epoch and the history that it brought into it.
#[derive(Debug)]
struct EpochRecord {
    leader: ServerId,
    history: Vec<Zxid>,
    inherited: Zxid,
    /// Everything through this lies in a snapshot.
    label: Zxid,
}

/// The book.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    payloads: BTreeMap<Zxid, u64>,
    chain: Vec<Link>,
    /// The chain begins behind this state.
    base: State,
    copies: BTreeMap<ServerId, Copy>,
    applied: BTreeMap<ServerId, Zxid>,
    leaderships: BTreeMap<Epoch, EpochRecord>,
    /// What each change of the membership that was proposed leads to.
    memberships: BTreeMap<Zxid, Ensemble>,
    /// What the last committed one has led to, if any was.
    in_force: Option<Ensemble>,
    /// Which change that was.
    changed_at: Zxid,
    requests: BTreeMap<RequestId, Asked>,
    reads: BTreeMap<(ServerId, ReadId), Reading>,
    /// Reads and writes of cells.
    history: History<RequestId>,
    /// Who asked for each transaction that a client asked for.
    wrote: BTreeMap<Zxid, RequestId>,
    /// The last that was proposed in each epoch.
    minted: BTreeMap<Epoch, Zxid>,
    /// The newest that any client was told.
    told: Zxid,
    acknowledged: u64,
    pub(crate) reads_answered: u64,
    /// How many servers have become members, or ceased to be.
    pub(crate) joined: u64,
    pub(crate) left: u64,
    /// Logs may be unreadable. Then a leader sends its snapshot where it would have sent its log, and a
    /// learner that has more gives up what was committed since; others have it.
    pub(crate) unreadable: bool,
}

impl Ledger {
    /// A book that opens with what lies on the disks.
    pub(crate) fn new(disks: &BTreeMap<ServerId, Contents>) -> Self {
        let mut ledger = Self::default();
        let mut all: BTreeMap<Zxid, Txn> = BTreeMap::new();
        for (id, contents) in disks {
            let mut copy = Copy { label: contents.floor, ..Copy::default() };
            for txn in &contents.log {
                copy.log.insert(txn.zxid, hash_of(txn));
                ledger.payloads.insert(txn.zxid, hash_of(txn));
                all.insert(txn.zxid, txn.clone());
            }
            ledger.copies.insert(*id, copy);
        }
        let states = || disks.values().flat_map(|contents| &contents.snapshots);
        let hidden = states().filter(|state| !all.contains_key(&state.label));
        if let Some(base) = hidden.min_by_key(|state| state.label) {
            ledger.base = base.clone();
        }
        // No server makes a snapshot of what is not committed.
        let known = states().map(|state| state.label).max().unwrap_or(Zxid::ZERO);
        let mut state = ledger.base.clone();
        for (zxid, txn) in all.range(..=known).filter(|(zxid, _)| **zxid > ledger.base.label) {
            state.apply(txn);
            let by = Epoch(0);
            ledger.chain.push(Link { zxid: *zxid, hash: hash_of(txn), digest: state.digest, by });
        }
        for (zxid, next) in all.iter().filter_map(|(zxid, txn)| Some((*zxid, change(txn)?))) {
            ledger.memberships.insert(zxid, Ensemble::of(&next));
            if zxid <= known {
                (ledger.in_force, ledger.changed_at) = (Some(Ensemble::of(&next)), zxid);
            }
        }
        ledger
    }

    /// The last committed transaction.
    pub(crate) fn committed(&self) -> Zxid {
        self.chain.last().map_or(self.base.label, |link| link.zxid)
    }

    /// How many transactions are committed.
    pub(crate) fn commits(&self) -> u64 {
        self.base.count + self.chain.len() as u64
    }

    /// How many requests were applied where they were asked.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(crate) fn outcome(&self, id: RequestId) -> Option<Outcome> {
        self.requests.get(&id).map(|asked| asked.outcome)
    }

    pub(crate) fn answer(&self, server: ServerId, read: ReadId) -> Option<Answer> {
        self.reads.get(&(server, read)).map(|reading| reading.answer)
    }

    /// How many links of the chain are not after `zxid`.
    fn through(&self, zxid: Zxid) -> usize {
        self.chain.partition_point(|link| link.zxid <= zxid)
    }

    // ---- the disk ----

    pub(crate) fn on_wipe(&mut self, id: ServerId) {
        self.copies.remove(&id);
    }

    pub(crate) fn on_damage(&mut self, id: ServerId, last: Zxid) {
        if let Some(copy) = self.copies.get_mut(&id) {
            copy.log.retain(|zxid, _| *zxid <= last);
        }
    }

    /// A write has become durable. What is committed it must not take away, unless the server has not
    /// promised the epoch in which it was: it was not counted then, and obeys an earlier leader that has a
    /// quorum's promises, too, and whose leadership comes to nothing. Those that were counted have it still.
    pub(crate) fn on_durable(
        &mut self,
        id: ServerId,
        done: &Done,
        ensemble: &Ensemble,
    ) -> Result<(), Violation> {
        let copy = self.copies.entry(id).or_default();
        let chain = &self.chain;
        let link = |zxid: &Zxid| {
            chain.binary_search_by_key(zxid, |link| link.zxid).ok().map(|at| chain[at])
        };
        let counts = |link: Link| link.by <= done.held.accepted_epoch;
        let mut given_up = None;
        match &done.write {
            Write::Append(txns) => copy.append(id, "on disk", txns.iter())?,
            Write::Truncate(zxid) => {
                let gone = copy.log.split_off(&Zxid(zxid.0 + 1));
                if let Some(lost) = gone.keys().find(|zxid| link(zxid).is_some_and(counts)) {
                    let detail = format!("cuts its log at {zxid}, and {lost} is committed");
                    return broken(Rule::Committed, id, detail);
                }
                given_up = gone.into_keys().rfind(|zxid| link(zxid).is_some());
                if copy.label > *zxid {
                    let detail = format!("cuts at {zxid}, below its snapshot of {}", copy.label);
                    return broken(Rule::Committed, id, detail);
                }
            }
            Write::Install { label, .. } => {
                let Some((state, behind)) = &done.installed else {
                    return broken(Rule::Snapshot, id, format!("installs {label}, none is there"));
                };
                let before = std::mem::take(&mut copy.log);
                copy.label = *label;
                copy.append(id, "installed", behind)?;
                let gone = |zxid: &Zxid| link(zxid).filter(|_| !copy.covers(*zxid));
                let lost = before.keys().rfind(|zxid| gone(zxid).is_some_and(counts));
                if let Some(lost) = lost.filter(|_| !self.unreadable) {
                    let detail = format!("installs a history without {lost}, which is committed");
                    return broken(Rule::Committed, id, detail);
                }
                given_up = before.keys().rfind(|zxid| gone(zxid).is_some()).copied();
                self.on_state(id, state, *label)?;
            }
            // A server that says that it has taken over an epoch's history has it, acknowledged or not.
            Write::CurrentEpoch(epoch) if self.leaderships.contains_key(epoch) => {
                return self.on_history_ack(id, *epoch);
            }
            Write::AcceptedEpoch(_)
            | Write::CurrentEpoch(_)
            | Write::GrantedVote { .. }
            | Write::Lease(_)
            | Write::AppendStaged(_)
            | Write::Membership(_)
            | Write::NextMembership(_) => {}
        }
        match given_up {
            Some(zxid) => self.on_quorum(id, zxid, self.in_force.as_ref().unwrap_or(ensemble)),
            None => Ok(()),
        }
    }

    /// A server writes a transaction; `mints` if it is the established leader of its epoch.
    pub(crate) fn on_logged(
        &mut self,
        id: ServerId,
        txn: &Txn,
        mints: bool,
    ) -> Result<(), Violation> {
        let hash = hash_of(txn);
        match self.payloads.get(&txn.zxid) {
            Some(first) if *first == hash => Ok(()),
            Some(_) => broken(Rule::Integrity, id, format!("a second {}", txn.zxid)),
            None if mints => {
                self.payloads.insert(txn.zxid, hash);
                self.on_minted(id, txn)?;
                let request = txn.header.request();
                if self.requests.contains_key(&request) {
                    self.wrote.insert(txn.zxid, request);
                }
                if txn.header.kind == Txn::RECONFIGURATION {
                    let Some(next) = membership_of(txn) else {
                        return broken(
                            Rule::Integrity,
                            id,
                            format!("{} is no membership", txn.zxid),
                        );
                    };
                    self.memberships.insert(txn.zxid, Ensemble::of(&next));
                }
                Ok(())
            }
            None => {
                let detail = format!("logs {}, which no established leader proposed", txn.zxid);
                broken(Rule::Integrity, id, detail)
            }
        }
    }

    /// The ensemble that the committed changes of the membership have led to; none if there was none.
    pub(crate) fn in_force(&self) -> Option<&Ensemble> {
        self.in_force.as_ref()
    }

    /// Whether a transaction is committed.
    pub(crate) fn is_committed(&self, zxid: Zxid) -> bool {
        zxid <= self.base.label || self.chain.binary_search_by_key(&zxid, |link| link.zxid).is_ok()
    }

    /// Which change that was; zero, if there was none.
    pub(crate) fn changed_at(&self) -> Zxid {
        self.changed_at
    }

    /// Whether a server's disk holds a transaction, or a state that it is in.
    pub(crate) fn holds(&self, id: ServerId, zxid: Zxid) -> bool {
        self.copies.get(&id).is_some_and(|copy| copy.covers(zxid))
    }

    /// Whether a change of the membership was ever proposed.
    pub(crate) fn has_changes(&self) -> bool {
        !self.memberships.is_empty()
    }

    // ---- the application ----

    /// A server starts, with nothing applied, and with the log that was durable.
    pub(crate) fn on_start(&mut self, id: ServerId, held: &Contents) -> Result<(), Violation> {
        self.applied.insert(id, Zxid::ZERO);
        let nothing = Copy::default();
        let kept = self.copies.get(&id).unwrap_or(&nothing).log.range(Zxid(held.floor.0 + 1)..);
        let same = held.log.iter().map(|txn| (txn.zxid, hash_of(txn)));
        if kept.map(|(zxid, hash)| (*zxid, *hash)).eq(same) {
            return Ok(());
        }
        let detail =
            format!("starts with another log than was on its disk, through {}", held.last());
        broken(Rule::Durability, id, detail)
    }

    /// A server knows that everything through a transaction is committed: the first that does must be a leader, and a
    /// quorum must have it on disk.
    pub(crate) fn on_committed(
        &mut self,
        id: ServerId,
        through: Zxid,
        leads: bool,
        by: Epoch,
        log: &Contents,
        ensemble: &Ensemble,
    ) -> Result<(), Violation> {
        let committed = self.committed();
        let mut digest = self.chain.last().map_or(self.base.digest, |link| link.digest);
        let mut count = self.commits();
        let mut last = None;
        for txn in log.range(committed, through) {
            let mut state = State { digest, count, ..State::default() };
            state.apply(txn);
            (digest, count) = (state.digest, state.count);
            self.chain.push(Link { zxid: txn.zxid, hash: hash_of(txn), digest, by });
            if self.minted.last_key_value().is_some_and(|(epoch, _)| *epoch > txn.zxid.epoch()) {
                let detail = format!("commits {}, and a later leader has proposed", txn.zxid);
                return broken(Rule::PrimaryIntegrity, id, detail);
            }
            if let Some(asked) = self.requests.get_mut(&txn.header.request()) {
                if takes_the_place_of_a_void_one(txn) {
                    self.history.forget(asked.operation);
                }
                if let Some(first) = asked.committed.replace(txn.zxid) {
                    let request = txn.header.request();
                    let detail = format!("commits {request} as {}, it is {first}", txn.zxid);
                    return broken(Rule::Once, id, detail);
                }
            }
            if let Some(next) = self.memberships.get(&txn.zxid).cloned() {
                // Both have to agree on it.
                let present = self.in_force.as_ref().unwrap_or(ensemble);
                self.on_quorum(id, txn.zxid, present)?;
                self.joined += next.ids().filter(|id| present.member(*id).is_none()).count() as u64;
                self.left += present.ids().filter(|id| next.member(*id).is_none()).count() as u64;
                (self.in_force, self.changed_at) = (Some(next), txn.zxid);
            }
            last = Some(txn.zxid);
        }
        let Some(last) = last else { return Ok(()) };
        if !leads {
            let detail = format!("takes {last} for committed, and no leader has committed it");
            return broken(Rule::PrefixConsistency, id, detail);
        }
        self.on_quorum(id, last, self.in_force.as_ref().unwrap_or(ensemble))
    }

    /// A transaction is committed, or a server has given up one that is: a quorum has to have it on disk.
    fn on_quorum(&self, id: ServerId, zxid: Zxid, ensemble: &Ensemble) -> Result<(), Violation> {
        let has = |member: ServerId| self.copies.get(&member).is_some_and(|c| c.covers(zxid));
        if ensemble.is_quorum(has) {
            return Ok(());
        }
        let where_: Vec<_> = ensemble.ids().filter(|id| has(*id)).collect();
        let detail = format!("{zxid} is committed and on the disks of {where_:?}");
        broken(Rule::Committed, id, detail)
    }
}
