//! Broadcast, the leader's side: an established leader, for as long as a quorum answers it.
//!
//! ```text
//!   request ─► Prepare ─► Prepared ─► PROPOSAL to all ─► ACKs, our own disk ─► a quorum? COMMIT, deliver
//!   read ────► PING to all voters ─────────────────────► a quorum answers ───► Answer, SYNC
//! ```
//!
//! A transaction gets the next zxid, goes to the followers and to our own disk at the same time, and is
//! committed when a quorum has it on disk, in the order of the zxids. Our own copy counts when our own
//! disk has it, like anybody's.
//!
//! A read is as new as everything acknowledged before it if we still led when it came. Nobody can lead
//! after us without a quorum that has left us; so we ask a quorum whether it still follows.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::context::Context;
use crate::id::{LinkId, Origin, ReadId, ServerId};
use crate::message::Request;
use crate::output::{Output, Refusal};
use crate::quorum::{Quorum, Support};
use crate::txn::RequestId;
use crate::zxid::{Epoch, Zxid};

/// The reign of an established leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Its epoch.
    pub epoch: Epoch,
    /// The last transaction proposed, or the start of the epoch.
    pub proposed: Zxid,
    /// What each voter has acknowledged.
    pub tally: Tally,
    /// Reads that wait for a quorum to answer, in the order in which they came.
    reads: VecDeque<Read>,
    /// Requests that the application prepares, in order.
    preparing: VecDeque<(Origin, RequestId)>,
}

/// A read that waits for a quorum to say that we still lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Read {
    asker: Asker,
    /// Answers to this ping or a later one count.
    beat: u64,
    /// What it must not be older than.
    point: Zxid,
}

/// Who wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker {
    /// Somebody at this server.
    Here(ReadId),
    /// A learner, with SYNC.
    Learner(LinkId),
}

impl Broadcast {
    /// The reign begins; nothing is proposed in it.
    pub fn new(epoch: Epoch, quorum: &Quorum) -> Self {
        Self {
            epoch,
            proposed: Zxid::start_of(epoch),
            tally: Tally::new(quorum),
            reads: VecDeque::new(),
            preparing: VecDeque::new(),
        }
    }

    /// How many requests are being prepared, or proposed and not committed.
    pub fn outstanding(&self, committed: Zxid) -> usize {
        let start = committed.max(Zxid::start_of(self.epoch));
        let proposed = usize::try_from(self.proposed.0 - start.0).unwrap_or(usize::MAX);
        self.preparing.len() + proposed
    }

    /// Lets the application prepare a request.
    pub fn prepare(&mut self, cx: &mut Context<'_>, origin: Origin, request: Request) {
        self.preparing.push_back((origin, request.id));
        cx.outbox.push(Output::Prepare { epoch: self.epoch, origin, request });
    }

    /// The application has prepared the oldest request. Tells a caller here that it is on its way.
    ///
    /// Nothing is awaited: a transaction that was prepared without being asked for is as good.
    pub fn on_prepared(&mut self, cx: &mut Context<'_>) {
        if let Some((Origin::Here, id)) = self.preparing.pop_front() {
            cx.outbox.push(Output::Accepted(id));
        }
    }

    /// Takes note of a read.
    pub fn on_read(&mut self, asker: Asker, beat: u64, point: Zxid) {
        self.reads.push_back(Read { asker, beat, point });
    }

    /// The oldest read, if a quorum has answered the ping that it waits for. `answered` are the voters
    /// that follow us, and the last ping that each has answered.
    pub fn next_read(
        &mut self,
        cx: &mut Context<'_>,
        answered: impl Iterator<Item = (ServerId, u64)>,
    ) -> Option<(Asker, Zxid)> {
        let Read { asker, beat, point } = *self.reads.front()?;
        let mut support = cx.quorum.support();
        support.add(cx.quorum, cx.config.id);
        for (id, _) in answered.filter(|(_, last)| *last >= beat) {
            support.add(cx.quorum, id);
        }
        if !support.is_enough(cx.quorum) {
            return None;
        }
        self.reads.pop_front();
        Some((asker, point))
    }

    /// How many reads wait.
    pub fn reads(&self) -> usize {
        self.reads.len()
    }

    /// The reign is over: tells those who wait here. What was proposed may still come to pass.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        let reason = Refusal::ReignOver;
        for (origin, id) in self.preparing.drain(..) {
            if origin == Origin::Here {
                cx.outbox.push(Output::Refused { id, reason });
            }
        }
        for read in self.reads.drain(..) {
            if let Asker::Here(read) = read.asker {
                cx.outbox.push(Output::ReadRefused { read, reason });
            }
        }
    }
}

/// How far each voter has acknowledged, and so how far a quorum has.
///
/// Voters stand in order of what they have acknowledged, so an acknowledgement moves one of them a
/// little, and the watermark of a quorum is found from the front. No map of transactions: what is
/// committed is a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Descending; a position in the quorum each.
    ranked: Vec<(Zxid, usize)>,
    /// Kept for its memory.
    support: Support,
}

impl Tally {
    /// Nobody has acknowledged anything.
    pub fn new(quorum: &Quorum) -> Self {
        Self { ranked: Vec::with_capacity(quorum.voters().len()), support: quorum.support() }
    }

    /// A voter has acknowledged everything through `zxid`.
    pub fn set(&mut self, quorum: &Quorum, voter: ServerId, zxid: Zxid) {
        let Some(position) = quorum.position(voter) else { return };
        let mut at = match self.ranked.iter().position(|(_, p)| *p == position) {
            Some(at) => at,
            None => {
                self.ranked.push((zxid, position));
                self.ranked.len() - 1
            }
        };
        self.ranked[at].0 = zxid;
        while at > 0 && self.ranked[at - 1].0 < zxid {
            self.ranked.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Its acknowledgements are withdrawn: its link has ended.
    pub fn withdraw(&mut self, quorum: &Quorum, voter: ServerId) {
        let position = quorum.position(voter);
        self.ranked.retain(|(_, p)| Some(*p) != position);
    }

    /// What a quorum has acknowledged; none if it has acknowledged nothing.
    pub fn quorum(&mut self, quorum: &Quorum) -> Option<Zxid> {
        self.support.clear();
        self.ranked.iter().find_map(|(zxid, position)| {
            self.support.add_at(quorum, *position);
            self.support.is_enough(quorum).then_some(*zxid)
        })
    }
}

/// Whether the leader and these synchronised voters are enough to go on; if not, who is left.
///
/// With two voters and an arbiter, the arbiter is asked when no follower is left.
pub fn quorum_left(
    cx: &mut Context<'_>,
    voters: impl Iterator<Item = ServerId>,
) -> Result<(), Vec<ServerId>> {
    let mut left = cx.quorum.support();
    left.add(cx.quorum, cx.config.id);
    let mut followers = 0;
    for id in voters {
        left.add(cx.quorum, id);
        followers += 1;
    }
    cx.quorum.need_oracle(followers == 0);
    if left.is_enough(cx.quorum) { Ok(()) } else { Err(left.members(cx.quorum).collect()) }
}
