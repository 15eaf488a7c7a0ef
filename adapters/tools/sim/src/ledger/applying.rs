//! What applications have: each applies what is committed, in its order, and adopts no state that differs.

use quorate_core::id::ServerId;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::{State, hash_of, takes_the_place_of_a_void_one};
use crate::ledger::Ledger;
use crate::ledger::clients::Outcome;
use crate::rule::{Rule, Violation, broken};

impl Ledger {
    /// A server applies a transaction; `in_turn` if the application counts it as the next. Returns
    /// whether it was asked for there.
    pub(crate) fn on_applied(
        &mut self,
        id: ServerId,
        txn: &Txn,
        incarnation: u64,
        in_turn: bool,
    ) -> Result<bool, Violation> {
        let position = self.applied.entry(id).or_insert(Zxid::ZERO);
        let at = self.chain.partition_point(|link| link.zxid <= *position);
        let before = std::mem::replace(position, txn.zxid);
        let next = self.chain.get(at);
        if next.is_none_or(|link| link.zxid != txn.zxid || link.hash != hash_of(txn)) {
            let next = next.map(|link| link.zxid);
            let detail = format!("applies {} after {before}, committed is {next:?}", txn.zxid);
            return broken(Rule::PrefixConsistency, id, detail);
        }
        if !in_turn {
            let detail = format!("{} was not prepared in its turn", txn.zxid);
            return broken(Rule::PrefixConsistency, id, detail);
        }
        let Some(asked) = self.requests.get_mut(&txn.header.request()) else {
            return Ok(false);
        };
        match asked.outcome {
            Outcome::Refused | Outcome::Lost => {
                let detail = format!(
                    "applies {} of {}, which was {:?}",
                    txn.zxid,
                    txn.header.request(),
                    asked.outcome
                );
                broken(Rule::Outcome, id, detail)
            }
            Outcome::Applied(first) | Outcome::TooLong(first) if first != txn.zxid => {
                let detail = format!("{} is {first} and {}", txn.header.request(), txn.zxid);
                broken(Rule::Outcome, id, detail)
            }
            // The client that asked was told that it may be so.
            Outcome::Unknown => Ok(false),
            Outcome::Asked | Outcome::Accepted | Outcome::Applied(_) | Outcome::TooLong(_) => {
                if asked.at == (id, incarnation) {
                    if asked.outcome == Outcome::Asked {
                        let detail = format!("applies {} untold", txn.header.request());
                        return broken(Rule::Outcome, id, detail);
                    }
                    if takes_the_place_of_a_void_one(txn) {
                        asked.outcome = Outcome::TooLong(txn.zxid);
                    } else {
                        asked.outcome = Outcome::Applied(txn.zxid);
                        self.history.wrote(asked.operation);
                    }
                    self.acknowledged += 1;
                    self.told = self.told.max(txn.zxid);
                    return Ok(true);
                }
                Ok(false)
            }
        }
    }

    /// A state is taken over, sent or put on disk under a label: it holds just what is committed through
    /// that.
    pub(crate) fn on_state(
        &self,
        id: ServerId,
        state: &State,
        label: Zxid,
    ) -> Result<(), Violation> {
        let at = self.through(label);
        let (digest, last) = match at.checked_sub(1) {
            Some(before) => (self.chain[before].digest, self.chain[before].zxid),
            None => (self.base.digest, self.base.label),
        };
        let count = self.base.count + at as u64;
        let named = label == last || label.is_epoch_start();
        if (digest, count) == (state.digest, state.count) && named && label >= self.base.label {
            return Ok(());
        }
        let detail = format!(
            "a state of {} transactions is labelled {label}; committed are {count}, through {last}",
            state.count
        );
        broken(Rule::Snapshot, id, detail)
    }

    /// A server's application goes on from a staged state, since everything through
    /// `through` is committed.
    pub(crate) fn on_adopted(
        &mut self,
        id: ServerId,
        state: &State,
        through: Zxid,
    ) -> Result<(), Violation> {
        // The label of an epoch's start names nothing that could be committed: an established leader sends it with
        // a state of its initial history, which is committed with its leadership. A later leader that has nothing of
        // that epoch confirms the state with a lower number. What is in it is looked at below: it is just what
        // the ensemble has committed through the label, or it is broken.
        if state.label > through && !state.label.is_epoch_start() {
            let detail = format!("adopts {} when {through} is committed", state.label);
            return broken(Rule::PrefixConsistency, id, detail);
        }
        self.on_state(id, state, state.label)?;
        self.applied.insert(id, state.label);
        // Which requests are in it cannot be told.
        Ok(())
    }
}
