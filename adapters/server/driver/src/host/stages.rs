//! What is measured of the application's orders: how long requests wait to be prepared, and commits to be applied.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::{Epoch, Zxid};

use crate::measures::{Counted, Measures, Took, millis};
use crate::proposals::Seen;
use crate::tally::Tally;

/// What is known of the orders at the loop.
#[derive(Debug)]
pub(super) struct Stages {
    measures: Arc<Measures>,
    /// The turn of the loop.
    seen: Seen,
    /// The client of this process's own callers.
    client: i64,
    /// In which epoch the service serves.
    epoch: Option<Epoch>,
    /// What it has submitted there and is not committed, in order: as the transactions come.
    submitted: VecDeque<RequestId>,
    /// How many requests wait to be prepared.
    preparing: usize,
}

/// An order that is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// A request was to be prepared from then on.
    Prepare(Instant),
    /// A transaction was to be applied from then on.
    Apply {
        since: Instant,
        /// When its leader made it, in milliseconds since 1970.
        made_ms: i64,
        /// Whether a client or a caller here has asked for it.
        own: bool,
    },
}

impl Stages {
    pub(super) fn new(measures: Arc<Measures>, client: i64) -> Self {
        Self {
            measures,
            seen: Seen::now(),
            client,
            epoch: None,
            submitted: VecDeque::new(),
            preparing: 0,
        }
    }

    pub(super) const fn begin_turn(&mut self, seen: Seen) {
        self.seen = seen;
    }

    pub(super) const fn turn(&self) -> Seen {
        self.seen
    }

    /// A request is to be prepared.
    pub(super) fn prepare(&mut self) -> Instant {
        self.preparing += 1;
        self.measures.count(Counted::Prepares, 1);
        self.measures.saw_at(self.seen.at, Took::PrepareQueue, self.preparing as u64);
        self.seen.at
    }

    /// One was, or some are not to be any more.
    pub(super) const fn prepared(&mut self, requests: usize) {
        self.preparing = self.preparing.saturating_sub(requests);
    }

    /// A transaction is to be applied.
    pub(super) fn deliver(&mut self, txn: &Txn) -> Stage {
        let submitted = self.submitted.front() == Some(&txn.header.request());
        if submitted {
            self.submitted.pop_front();
        }
        let own = submitted || txn.header.client == self.client;
        Stage::Apply { since: self.seen.at, made_ms: txn.header.time, own }
    }

    /// The service serves in this epoch.
    pub(super) fn serves(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
        self.submitted.clear();
    }

    /// The service asks for a transaction.
    pub(super) fn submit(&mut self, epoch: Epoch, request: RequestId) {
        if self.epoch == Some(epoch) && self.submitted.len() < SUBMITTED_MAX {
            self.submitted.push_back(request);
        }
    }

    /// The application goes on, and has applied so much of what is planned.
    pub(super) fn go_on(&self, applied: Zxid, planned: Zxid) {
        if applied < planned && applied.epoch() == planned.epoch() {
            let waiting = planned.0.abs_diff(applied.0);
            self.measures.saw_at(self.seen.at, Took::CommitQueue, waiting);
        }
    }
}

impl Stage {
    /// It was carried out.
    pub(super) fn done(self, tally: &mut Tally, measures: &Measures, during: &During) {
        let During { begun, from, to } = during;
        let mut saw = |what, much| tally.saw(measures, begun.at, what, much);
        // Most of it came in the same turn.
        let waited = |since| {
            if since == begun.at {
                Duration::ZERO
            } else {
                begun.at.saturating_duration_since(since)
            }
        };
        match self {
            Self::Prepare(since) => {
                saw(Took::PrepareWait, millis(waited(since) + *from));
                saw(Took::Prepare, millis(to.saturating_sub(*from)));
            }
            Self::Apply { since, made_ms, own } => {
                let what = if own { Took::OwnWrite } else { Took::OthersWrite };
                saw(what, millis(waited(since) + *to));
                if let Some(took) = begun.later_since(*to, made_ms) {
                    saw(Took::Propagation, took);
                }
            }
        }
    }
}

/// When an order was carried out: one of many, behind a moment for all of them. To look at a clock for each is not for
/// nothing.
#[derive(Debug)]
pub(super) struct During {
    pub(super) begun: Seen,
    pub(super) from: Duration,
    pub(super) to: Duration,
}

/// Of how many requests it is known that our service has submitted them; more are taken for those of others.
const SUBMITTED_MAX: usize = 1 << 16;
