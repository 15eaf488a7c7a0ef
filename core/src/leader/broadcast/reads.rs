//! Linearisable reads: each waits for its point, and for a quorum to have answered a ping sent after it came.
//!
//! No other server can be established without a quorum that has left this one, so a quorum that still answers
//! proves that what this leader has committed is the newest there is. One round of pings serves all reads that came
//! before it was sent. Stale reads do not come here: the driver answers them from the application.

use crate::context::Context;
use crate::id::{LinkId, ReadId};
use crate::leader::broadcast::Broadcast;
use crate::leader::learners::Learners;
use crate::leader::progress::Sync;
use crate::output::Output;
use crate::zxid::Zxid;

/// A read that waits for a quorum to say that we still lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    pub(super) asker: Asker,
    /// Answers to this ping or a later one count.
    beat: u64,
    /// What it must not be older than.
    point: Zxid,
}

/// Who wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker {
    /// A caller at this server.
    Here(ReadId),
    /// A server of ours that learns here, with SYNC of this tag.
    Learner(LinkId, i32),
}

impl Broadcast {
    /// Takes a read; asks the voters whether they still follow, unless an earlier read has just done so:
    /// then it waits for the next ping, with all that come until then.
    pub fn read(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        asker: Asker,
        point: Zxid,
    ) {
        let first = self.reads.is_empty();
        self.reads.push_back(Read { asker, beat: learners.beat() + 1, point });
        if first {
            learners.ping(cx, self.proposed);
            self.serve_reads(cx, learners);
        }
    }

    /// Answers the reads that a quorum has confirmed.
    pub fn serve_reads(&mut self, cx: &mut Context<'_>, learners: &mut Learners) {
        let mut served = false;
        while let Some(Read { asker, beat, point }) = self.reads.front().copied() {
            if !confirmed(cx, learners, beat) {
                break;
            }
            served = true;
            self.reads.pop_front();
            match asker {
                Asker::Here(read) => cx.for_application(Output::Answer(read)),
                Asker::Learner(link, tag) => {
                    if let Some(learner) = learners.get_mut(link) {
                        learner.syncs.push_back(Sync { point, tag });
                    }
                }
            }
        }
        if served {
            if !self.reads.is_empty() {
                learners.ping(cx, self.proposed);
            }
            learners.feed(cx, self.progress(cx));
        }
    }
}

/// Whether a quorum has answered this ping or a later one, ourselves included.
pub(super) fn confirmed(cx: &Context<'_>, learners: &Learners, beat: u64) -> bool {
    let mut support = cx.quorum.support();
    support.add(cx.quorum, cx.config.id);
    for (id, _) in learners.answered().filter(|(_, last)| *last >= beat) {
        support.add(cx.quorum, id);
    }
    support.is_enough(cx.quorum)
}
