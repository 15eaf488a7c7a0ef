//! What is logged, and how a learner is brought up to it.
//!
//! For now servers without transactions: a learner that ends where we end, or that has nothing as we
//! have nothing, needs nothing. Everything else is said to be beyond this version, never guessed.

use crate::zxid::Zxid;

/// The transactions of one server, as far as others must be brought up to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct History {
    last: Zxid,
}

/// How a learner is brought to a leader's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// It has all of it: a DIFF without transactions, labelled with the leader's last zxid.
    Diff(Zxid),
    /// Transactions would have to be brought to it or cut from it.
    Unsupported,
}

impl History {
    /// A history that ends at `last`.
    pub const fn ending_at(last: Zxid) -> Self {
        Self { last }
    }

    /// Its last transaction; zero if it has none.
    pub const fn last(&self) -> Zxid {
        self.last
    }

    /// How a learner whose history ends at `learner` is brought up to this one.
    ///
    /// The bare start of an epoch is no transaction: a server that led or followed an ensemble in
    /// which nothing was ever written reports one, and has as little as a server that reports zero.
    pub fn plan(&self, learner: Zxid) -> Plan {
        let neither_has_any = self.last.is_epoch_start() && learner.is_epoch_start();
        if learner == self.last || (neither_has_any && learner.0 >= 0) {
            Plan::Diff(self.last)
        } else {
            Plan::Unsupported
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_learner_that_ends_where_we_end_needs_nothing() {
        let history = History::ending_at(Zxid(0x1_0000_0007));
        assert_eq!(history.plan(Zxid(0x1_0000_0007)), Plan::Diff(Zxid(0x1_0000_0007)));
        for other in [0x1_0000_0006, 0x1_0000_0008, 0, 0x2_0000_0000, -1, i64::MIN] {
            assert_eq!(history.plan(Zxid(other)), Plan::Unsupported, "{other:#x}");
        }
    }

    #[test]
    fn bare_epochs_are_no_transactions() {
        let empty = History::ending_at(Zxid::ZERO);
        for bare in [0, 0x1_0000_0000, 0x7_0000_0000] {
            assert_eq!(empty.plan(Zxid(bare)), Plan::Diff(Zxid::ZERO), "{bare:#x}");
        }
        for other in [1, 0x1_0000_0001, -1, i64::MIN] {
            assert_eq!(empty.plan(Zxid(other)), Plan::Unsupported, "{other:#x}");
        }
    }
}
