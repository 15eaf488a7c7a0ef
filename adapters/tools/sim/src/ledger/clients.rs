//! What clients asked, what they were told, and whether one order explains it all.

use quorate_core::id::{ReadId, ServerId};
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;

use crate::application::State;
use crate::ledger::Ledger;
use crate::rule::{Rule, Violation, broken};

/// What a client was told of its request, or what is known of it otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    Asked,
    /// It may come to pass.
    Accepted,
    /// It is applied where it was asked.
    Applied(Zxid),
    /// What the application made of it was too long: this transaction says so, and nothing else came of it.
    TooLong(Zxid),
    /// It never comes to pass.
    Refused,
    /// It was accepted, and never comes to pass.
    Lost,
    /// It was accepted, and the server that accepted it cannot tell whether it comes to pass.
    Unknown,
}

/// What a reader was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    Asked,
    /// Its server has applied everything through this.
    Read(Zxid),
    /// Its server could not say.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) at: (ServerId, u64),
    pub(super) outcome: Outcome,
    /// Under which number it came to pass.
    pub(super) committed: Option<Zxid>,
    /// Where it stands in the history of its cell.
    pub(super) operation: Option<usize>,
}

/// A read that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// What some client had been told before.
    told: Zxid,
    pub(super) answer: Answer,
    cell: u8,
    operation: usize,
}

impl Ledger {
    /// What was asked and answered so far: one order has to explain it.
    pub(crate) fn on_end(&self) -> Result<usize, Violation> {
        self.history.check().or_else(|why| broken(Rule::Linear, ServerId::NONE, why.to_string()))
    }

    /// A client of a server asks for a write, of a cell if that is said.
    pub(crate) fn on_asked(&mut self, at: (ServerId, u64), request: RequestId, cell: Option<u8>) {
        let operation = cell.map(|cell| self.history.call(cell, Some(request)));
        let outcome = Outcome::Asked;
        self.requests.insert(request, Asked { at, outcome, committed: None, operation });
    }

    pub(crate) fn on_accepted(
        &mut self,
        id: ServerId,
        request: RequestId,
    ) -> Result<(), Violation> {
        match self.requests.get_mut(&request) {
            Some(asked) if asked.outcome == Outcome::Asked => {
                asked.outcome = Outcome::Accepted;
                Ok(())
            }
            other => broken(Rule::Outcome, id, format!("accepts {request}, {other:?}")),
        }
    }

    pub(crate) fn on_refused(&mut self, id: ServerId, request: RequestId) -> Result<(), Violation> {
        match self.requests.get_mut(&request) {
            Some(asked) if asked.outcome == Outcome::Asked => {
                asked.outcome = Outcome::Refused;
                self.history.forget(asked.operation);
                Ok(())
            }
            other => broken(Rule::Outcome, id, format!("refuses {request}, {other:?}")),
        }
    }

    /// A server says that a request that it accepted never comes to pass.
    pub(crate) fn on_lost(&mut self, id: ServerId, request: RequestId) -> Result<(), Violation> {
        match self.requests.get_mut(&request) {
            Some(asked) if asked.outcome == Outcome::Accepted && asked.committed.is_none() => {
                asked.outcome = Outcome::Lost;
                self.history.forget(asked.operation);
                Ok(())
            }
            other => broken(Rule::Outcome, id, format!("gives up {request}, {other:?}")),
        }
    }

    /// A server says that the outcome of a request that it accepted is unknown; unless the client has been told one.
    pub(crate) fn on_unknown(&mut self, id: ServerId, request: RequestId) -> Result<(), Violation> {
        match self.requests.get_mut(&request) {
            Some(asked) if asked.outcome == Outcome::Accepted => {
                asked.outcome = Outcome::Unknown;
                Ok(())
            }
            Some(Asked { outcome: Outcome::Applied(_) | Outcome::TooLong(_), .. }) => Ok(()),
            other => broken(Rule::Outcome, id, format!("knows nothing of {request}, {other:?}")),
        }
    }

    /// A client of a server asks to read a cell.
    pub(crate) fn on_read(&mut self, id: ServerId, read: ReadId, cell: u8) {
        let operation = self.history.call(cell, None);
        self.reads.insert(
            (id, read),
            Reading { told: self.told, answer: Answer::Asked, cell, operation },
        );
    }

    /// A server answers a read from this state.
    pub(crate) fn on_answer(
        &mut self,
        id: ServerId,
        read: ReadId,
        state: &State,
    ) -> Result<(), Violation> {
        let applied = self.applied.get(&id).copied().unwrap_or(Zxid::ZERO);
        match self.reads.get_mut(&(id, read)) {
            Some(Reading { told, answer, cell, operation }) if *answer == Answer::Asked => {
                let value = state.cells.get(cell).and_then(|zxid| self.wrote.get(zxid)).copied();
                self.history.read(*operation, value);
                if applied < *told {
                    let detail = format!("reads at {applied}, {told} was acknowledged before");
                    return broken(Rule::Read, id, detail);
                }
                *answer = Answer::Read(applied);
                let seen = self.chain.partition_point(|link| link.zxid <= applied);
                let seen = seen.checked_sub(1).map_or(Zxid::ZERO, |at| self.chain[at].zxid);
                self.told = self.told.max(seen);
                self.reads_answered += 1;
                Ok(())
            }
            other => broken(Rule::Read, id, format!("answers {read:?}, {other:?}")),
        }
    }

    pub(crate) fn on_read_refused(&mut self, id: ServerId, read: ReadId) -> Result<(), Violation> {
        match self.reads.get_mut(&(id, read)) {
            Some(Reading { answer, operation, .. }) if *answer == Answer::Asked => {
                self.history.forget(Some(*operation));
                *answer = Answer::Refused;
                Ok(())
            }
            other => broken(Rule::Read, id, format!("refuses {read:?}, {other:?}")),
        }
    }

    /// Forgets the requests and reads of a server that has ended: no client is left to be told.
    pub(crate) fn on_crash(&mut self, id: ServerId) {
        let history = &mut self.history;
        self.reads.retain(|(server, _), reading| {
            let gone = *server == id && reading.answer == Answer::Asked;
            if gone {
                history.forget(Some(reading.operation));
            }
            !gone
        });
    }

    /// Requests and reads asked of a server that still runs, and not answered.
    pub(crate) fn unanswered(&self, at: (ServerId, u64)) -> (Vec<RequestId>, Vec<ReadId>) {
        let client = Self::client(at);
        let of = |cxid| RequestId { client, cxid };
        let asked = self.requests.range(of(i32::MIN)..=of(i32::MAX));
        let requests = asked.filter(|(_, asked)| asked.outcome == Outcome::Asked);
        let reads = self.reads.range((at.0, ReadId(0))..=(at.0, ReadId(u64::MAX)));
        let reads = reads.filter(|(_, reading)| reading.answer == Answer::Asked);
        (requests.map(|(id, _)| *id).collect(), reads.map(|((_, read), _)| *read).collect())
    }

    /// The client that asks for everything that a server is asked in one of its lives.
    pub(crate) fn client((server, incarnation): (ServerId, u64)) -> i64 {
        server.0 << 56 | i64::try_from(incarnation).unwrap_or(0)
    }
}
