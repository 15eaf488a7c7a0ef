//! The transactions that were logged and may have to be applied: the newest in memory, the rest on disk.
//!
//! ```text
//!            delivered                       floor                                last
//!   ─────────────┼─────── read from the log ───┼──────────── in memory ─────────────┤
//! ```
//!
//! What is behind the floor is here; what is in front of it was logged before this server started, or
//! was let go because there was too much. That is bounded in bytes, so an application that is slow, or
//! does not move at all, costs no more memory than that. Only what is durable is let go, since it must
//! be found again.

use std::collections::VecDeque;

use quorate_core::id::Ticket;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

/// See the module.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Everything up to here, and nothing else, has to be read from the log.
    floor: Zxid,
    txns: VecDeque<(Ticket, Txn)>,
    bytes: usize,
    /// How many of them, from the front, are durable.
    durable: usize,
    bytes_max: usize,
}

impl Feed {
    /// A log that ends at `last`, all of it on disk.
    pub(crate) const fn new(last: Zxid, bytes_max: usize) -> Self {
        Self { floor: last, txns: VecDeque::new(), bytes: 0, durable: 0, bytes_max }
    }

    /// See [`Feed`].
    pub(crate) const fn floor(&self) -> Zxid {
        self.floor
    }

    /// A transaction at the end of the log.
    pub(crate) fn append(&mut self, ticket: Ticket, txn: Txn) {
        self.bytes += cost(&txn);
        self.txns.push_back((ticket, txn));
        self.shrink();
    }

    /// This write and all before it are durable.
    pub(crate) fn persisted(&mut self, ticket: Ticket) {
        while self.txns.get(self.durable).is_some_and(|(of, _)| *of <= ticket) {
            self.durable += 1;
        }
        self.shrink();
    }

    /// The log ends with this transaction now.
    pub(crate) fn truncate(&mut self, zxid: Zxid) {
        while let Some((_, txn)) = self.txns.back().filter(|(_, txn)| txn.zxid > zxid) {
            self.bytes -= cost(txn);
            self.txns.pop_back();
        }
        self.durable = self.durable.min(self.txns.len());
        self.floor = self.floor.min(zxid);
    }

    /// Takes out what follows `after`, if that is in memory and not beyond `through`. What is before it
    /// is not asked for any more.
    pub(crate) fn take_next(&mut self, after: Zxid, through: Zxid) -> Option<Txn> {
        loop {
            let (_, txn) = self.txns.front()?;
            if txn.zxid > through {
                return None;
            }
            let txn = self.pop()?;
            if txn.zxid > after {
                return Some(txn);
            }
        }
    }

    fn pop(&mut self) -> Option<Txn> {
        let (_, txn) = self.txns.pop_front()?;
        self.bytes -= cost(&txn);
        self.durable = self.durable.saturating_sub(1);
        self.floor = txn.zxid;
        Some(txn)
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max && self.durable > 0 && self.pop().is_some() {}
    }
}

/// What keeping a transaction costs, about.
const fn cost(txn: &Txn) -> usize {
    txn.len() + size_of::<(Ticket, Txn)>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_core::txn::TxnHeader;

    const HEADER: TxnHeader = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };

    fn txn(zxid: i64) -> Txn {
        Txn { zxid: Zxid(zxid), header: HEADER, body: Bytes::from_static(&[0; 100]) }
    }

    fn feed(room: usize, zxids: impl IntoIterator<Item = i64>) -> Feed {
        let mut feed = Feed::new(Zxid::ZERO, room * cost(&txn(0)));
        for zxid in zxids {
            feed.append(Ticket(zxid.unsigned_abs()), txn(zxid));
        }
        feed
    }

    fn taken(feed: &mut Feed, after: i64, through: i64) -> Vec<i64> {
        let mut after = Zxid(after);
        let mut taken = Vec::new();
        while let Some(txn) = feed.take_next(after, Zxid(through)) {
            after = txn.zxid;
            taken.push(txn.zxid.0);
        }
        taken
    }

    #[test]
    fn what_is_committed_comes_out_once_and_in_order() {
        let mut feed = feed(100, 1..=9);
        assert_eq!(taken(&mut feed, 0, 0), []);
        assert_eq!(taken(&mut feed, 0, 4), [1, 2, 3, 4]);
        assert_eq!(taken(&mut feed, 4, 4), []);
        assert_eq!(taken(&mut feed, 6, 9), [7, 8, 9], "a state up to 6 was adopted");
        assert_eq!(feed.floor(), Zxid(9));
        assert_eq!(feed.bytes, 0);
    }

    #[test]
    fn too_much_is_left_to_the_disk_as_far_as_it_is_there() {
        let mut feed = feed(4, 1..=9);
        assert_eq!(feed.floor(), Zxid(0), "nothing is durable yet");
        feed.persisted(Ticket(3));
        assert_eq!(feed.floor(), Zxid(3));
        feed.persisted(Ticket(9));
        assert_eq!(feed.floor(), Zxid(5));
        assert_eq!(taken(&mut feed, 5, 9), [6, 7, 8, 9]);
    }

    #[test]
    fn a_cut_takes_what_is_behind_it() {
        let mut feed = feed(100, 1..=9);
        feed.persisted(Ticket(8));
        feed.truncate(Zxid(6));
        feed.append(Ticket(10), txn(0x1_0000_0001));
        assert_eq!(taken(&mut feed, 4, i64::MAX), [5, 6, 0x1_0000_0001]);
        feed.truncate(Zxid(3));
        assert_eq!(feed.floor(), Zxid(3), "the log ends there, and all of it is on disk");
        feed.persisted(Ticket(10));
        feed.append(Ticket(11), txn(4));
        assert_eq!(taken(&mut feed, 3, 4), [4]);
    }
}
