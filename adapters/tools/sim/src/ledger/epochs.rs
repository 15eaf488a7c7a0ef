//! Leaders and what they bring along: everything that was committed before.

use quorate_core::id::ServerId;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::Contents;
use crate::ensemble::Ensemble;
use crate::ledger::{Copy, EpochRecord, Ledger};
use crate::rule::{Rule, Violation, broken};

impl Ledger {
    /// A prospective leader takes over its own history in a new epoch: a quorum has promised that epoch to
    /// it, established or not, and so to no other server, ever.
    pub(crate) fn on_leadership(
        &mut self,
        leader: ServerId,
        epoch: Epoch,
        held: &Contents,
    ) -> Result<(), Violation> {
        let leadership = EpochRecord {
            leader,
            history: held.log.iter().map(|txn| txn.zxid).collect(),
            inherited: held.last(),
            label: held.floor,
        };
        if let Some(first) = self.leaderships.insert(epoch, leadership) {
            let detail =
                format!("takes over epoch {epoch}, which {} took over before", first.leader);
            return broken(Rule::Leadership, leader, detail);
        }
        Ok(())
    }

    /// The memberships that a leader's history brings along and that are not known to be in force.
    pub(crate) fn pending(&self, epoch: Epoch) -> impl Iterator<Item = &Ensemble> {
        let leadership = self.leaderships.get(&epoch);
        let inherits = move |zxid: &Zxid| {
            leadership.is_some_and(|leadership| leadership.history.contains(zxid))
        };
        let after = self.memberships.range(Zxid(self.committed().0 + 1)..);
        after.filter(move |(zxid, _)| inherits(zxid)).map(|(_, ensemble)| ensemble)
    }

    /// A leader is established. What later leaderships have committed by then, because the last acknowledgement
    /// of this one came late, it cannot have, and does not need: it commits nothing any more.
    pub(crate) fn on_established(
        &self,
        id: ServerId,
        epoch: Epoch,
        ensemble: &Ensemble,
    ) -> Result<(), Violation> {
        let before = self.chain.partition_point(|link| link.zxid.epoch() < epoch);
        let committed = match before.checked_sub(1) {
            Some(last) => self.chain[last].zxid,
            None => self.base.label,
        };
        let Some(copy) = self.copies.get(&id) else { return Ok(()) };
        if committed > Zxid::ZERO && !copy.covers(committed) && ensemble.may_lead(id) {
            let detail = format!("leads without {committed}; its disk ends at {}", copy.last());
            return broken(Rule::Committed, id, detail);
        }
        Ok(())
    }

    /// A learner acknowledges NEWLEADER of an epoch.
    pub(crate) fn on_history_ack(&self, id: ServerId, epoch: Epoch) -> Result<(), Violation> {
        let Some(leadership) = self.leaderships.get(&epoch) else {
            return broken(Rule::Synchronised, id, format!("no server leads epoch {epoch}"));
        };
        let nothing = Copy::default();
        let copy = self.copies.get(&id).unwrap_or(&nothing);
        let (inherited, leader) = (leadership.inherited, leadership.leader);
        if inherited > Zxid::ZERO && !copy.covers(inherited) {
            let detail = format!(
                "acknowledges {leader}'s history through {inherited}, its disk ends at {}",
                copy.last()
            );
            return broken(Rule::Synchronised, id, detail);
        }
        let begin = copy.label.max(leadership.label);
        let first = self.payloads.keys().next().copied().unwrap_or(Zxid::ZERO);
        let ours = copy.log.keys().filter(|z| **z > begin && **z <= inherited && **z >= first);
        let known = copy.log.keys().next().copied().unwrap_or(inherited);
        let theirs = leadership.history.iter().filter(|z| **z > begin && **z >= known);
        if !ours.clone().eq(theirs.clone()) {
            let detail = format!(
                "acknowledges {leader}'s history {:x?} with {:x?} on disk",
                theirs.collect::<Vec<_>>(),
                ours.collect::<Vec<_>>()
            );
            return broken(Rule::Synchronised, id, detail);
        }
        let mut after = copy.log.range(Zxid(inherited.0 + 1)..);
        if let Some((other, _)) = after.find(|(zxid, _)| zxid.epoch() != epoch) {
            let detail = format!("acknowledges {leader}'s history with {other} beyond it");
            return broken(Rule::Synchronised, id, detail);
        }
        Ok(())
    }

    /// The established leader of an epoch gives a transaction its number: the next, and not before it has
    /// delivered everything that earlier leaders have committed.
    pub(super) fn on_minted(&mut self, id: ServerId, txn: &Txn) -> Result<(), Violation> {
        let epoch = txn.zxid.epoch();
        let last = self.minted.insert(epoch, txn.zxid).unwrap_or(Zxid::start_of(epoch));
        if txn.zxid.0 != last.0 + 1 {
            return broken(
                Rule::PrimaryIntegrity,
                id,
                format!("proposes {} after {last}", txn.zxid),
            );
        }
        let before = self.chain.partition_point(|link| link.zxid.epoch() < epoch);
        let committed = before.checked_sub(1).map_or(self.base.label, |at| self.chain[at].zxid);
        let applied = self.applied.get(&id).copied().unwrap_or(Zxid::ZERO);
        if applied < committed {
            let detail = format!("proposes {} at {applied}, {committed} is committed", txn.zxid);
            return broken(Rule::PrimaryIntegrity, id, detail);
        }
        Ok(())
    }
}
