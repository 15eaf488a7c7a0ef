//! What becomes of the requests that were accepted at this server.
//!
//! ```text
//!   accepted ──► its transaction is logged ──► applied here                settled: the caller sees the reply
//!      │                  └─ cut again ─┐
//!      ├────────────────────────────────┴──► this server serves again, ──► Lost, in a later epoch; Unknown, in the
//!      │                                     what that inherited is applied                              same one
//!      └──► a snapshot took the place of the history ────────────────────► Unknown
//! ```
//!
//! That a leader is lost says nothing about a request: the next one may hold its transaction or not. But a
//! transaction of an old epoch that the next one did not inherit never comes. So when all that was inherited is
//! applied here, what has not come is known not to have happened, and can be asked for again without being done
//! twice. Where the same leader serves us again it may still have the request, and a snapshot does not tell who
//! asked for what: then the outcome is unknown.
//!
//! Nothing is said before the application [has applied](crate::input::Event::Applied) what might be the request's own
//! transaction: an application may be slow, and what it has still to apply is not lost. Each request is told once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::UnknownOutcome;
use crate::txn::{RequestId, Txn};
use crate::zxid::{Epoch, Zxid};

/// The requests that were accepted here, and whose outcome is not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requests {
    /// By id; of the same id, the older first.
    open: VecDeque<Open>,
    /// Those whose transactions are logged, ascending: they are settled when these are applied.
    logged: VecDeque<(Zxid, RequestId)>,
    /// How often this server has begun to serve, and in which epoch it did last.
    service: u64,
    epoch: Epoch,
    /// What the application has.
    applied: Zxid,
    /// Who is judged when the application has come so far.
    judgement: Option<Judgement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    id: RequestId,
    /// In which service it was accepted, and in which epoch that was.
    service: u64,
    epoch: Epoch,
    /// The number under which it is logged.
    logged: Option<Zxid>,
    /// Its transaction may be in a snapshot that took the place of our history.
    jumped: bool,
}

/// Those accepted before a service are judged when everything through this is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Judgement {
    through: Zxid,
    before: u64,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            open: VecDeque::new(),
            logged: VecDeque::new(),
            service: 0,
            epoch: Epoch::ZERO,
            applied: Zxid::ZERO,
            judgement: None,
        }
    }
}

impl Requests {
    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// It is proposed, or on its way to the leader.
    pub fn accept(&mut self, id: RequestId, outbox: &mut Outbox) {
        let at = self.open.partition_point(|open| open.id <= id);
        let (service, epoch) = (self.service, self.epoch);
        self.open.insert(at, Open { id, service, epoch, logged: None, jumped: false });
        outbox.push(Output::Accepted(id));
    }

    /// A transaction is at the end of the log.
    pub fn on_logged(&mut self, txn: &Txn) {
        if self.logged.len() == self.open.len() {
            return;
        }
        let id = txn.header.request();
        let first = self.open.partition_point(|open| open.id < id);
        let same = self.open.range_mut(first..).take_while(|open| open.id == id);
        if let Some(open) = same.into_iter().find(|open| open.logged.is_none()) {
            open.logged = Some(txn.zxid);
            self.logged.push_back((txn.zxid, id));
        }
    }

    /// Everything behind this is cut off the log.
    pub fn on_cut(&mut self, last: Zxid) {
        while let Some((zxid, id)) = self.logged.back().copied().filter(|(zxid, _)| *zxid > last) {
            self.logged.pop_back();
            if let Some(at) = self.position(zxid, id) {
                self.open[at].logged = None;
            }
        }
    }

    /// A snapshot with this label takes the place of the history.
    pub fn on_installed(&mut self, label: Zxid, outbox: &mut Outbox) {
        self.logged.clear();
        for open in &mut self.open {
            (open.logged, open.jumped) = (None, true);
        }
        self.judgement = Some(Judgement { through: label, before: self.service + 1 });
        self.judge(outbox);
    }

    /// This server serves: everything through `inherited` was committed before.
    pub fn on_serving(&mut self, epoch: Epoch, inherited: Zxid, outbox: &mut Outbox) {
        (self.service, self.epoch) = (self.service + 1, epoch);
        self.judgement = Some(Judgement { through: inherited, before: self.service });
        self.judge(outbox);
    }

    /// The application has applied everything through this.
    pub fn on_applied(&mut self, through: Zxid, outbox: &mut Outbox) {
        self.applied = self.applied.max(through);
        let applied = self.applied;
        while let Some((zxid, id)) = self.logged.front().copied().filter(|(z, _)| *z <= applied) {
            self.logged.pop_front();
            if let Some(at) = self.position(zxid, id) {
                self.open.remove(at);
            }
        }
        self.judge(outbox);
    }

    fn position(&self, zxid: Zxid, id: RequestId) -> Option<usize> {
        let first = self.open.partition_point(|open| open.id < id);
        let same = self.open.range(first..).take_while(|open| open.id == id);
        same.into_iter().position(|open| open.logged == Some(zxid)).map(|nth| first + nth)
    }

    fn judge(&mut self, outbox: &mut Outbox) {
        let due = |judgement: &mut Judgement| judgement.through <= self.applied;
        let Some(Judgement { before, .. }) = self.judgement.take_if(due) else { return };
        let epoch = self.epoch;
        // What is in our log comes, or is cut, and is judged when we serve again.
        let judged = |open: &Open| open.service < before && open.logged.is_none();
        let told: Vec<_> = self.open.iter().filter(|open| judged(open)).cloned().collect();
        self.open.retain(|open| !judged(open));
        for Open { id, jumped, epoch: of, .. } in told {
            outbox.push(if jumped {
                Output::Unknown { id, doubt: UnknownOutcome::Snapshot }
            } else if of < epoch {
                Output::Lost(id)
            } else {
                Output::Unknown { id, doubt: UnknownOutcome::Disconnected }
            });
        }
    }
}
