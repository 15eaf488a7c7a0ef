//! The plan of a leadership transfer: which follower may be given the leadership, and which is the best.
//!
//! ```text
//!   followers that serve, vote and take a TRANSFER ─► those that hear a quorum ─► highest priority ─► most history
//! ```
//!
//! Nothing is sent or changed here. When each step may be taken is said in [`steps`](super::steps).

use crate::context::Context;
use crate::id::ServerId;
use crate::leader::learners::Learners;
use crate::leader::pending::Purpose;
use crate::leader::progress::{Progress, Stage};
use crate::reasons::TransferRefused;

/// Who is to lead: the one that is asked for, or the best; rather one that has said that it hears a quorum than one
/// that may yet say so, and where that would be too late no other.
///
/// # Errors
///
/// Why it cannot be.
pub fn choose(
    cx: &Context<'_>,
    learners: &Learners,
    asked: Option<ServerId>,
    purpose: Purpose,
) -> Result<ServerId, TransferRefused> {
    let to = match asked {
        None => {
            let waits = purpose != Purpose::Unreachable;
            let fits = |learner: &Progress| waits || is_heard(cx, learner);
            best(cx, learners, fits).ok_or(TransferRefused::Nobody)?.id
        }
        Some(id) => {
            let learner = learners.link_of(id).and_then(|link| learners.get(link));
            let learner =
                learner.filter(|l| may_lead(cx, l)).ok_or(TransferRefused::NoFollower(id))?;
            if learner.priority.is_none() {
                return Err(TransferRefused::Foreign(id));
            }
            id
        }
    };
    // The others look for a leader by themselves when we leave. They find the next one only where a quorum
    // has gone to it at once.
    let mut told = cx.quorum.support();
    told.add(cx.quorum, cx.config.id);
    for learner in learners.values().filter(|l| l.votes && l.is_ours()) {
        told.add(cx.quorum, learner.id);
    }
    if told.is_quorum(cx.quorum) { Ok(to) } else { Err(TransferRefused::NoQuorum) }
}

/// A follower that is wished to lead more than we are, the most wished one: any, while there is little room on our disk,
/// but for one to which it was given in vain. Only one that answers: requests wait while the leadership is on offer, and
/// no caller has asked for that.
pub fn preferred(cx: &Context<'_>, learners: &Learners) -> Option<ServerId> {
    let recent = 2 * cx.config.timing.ping_interval();
    let answers = |l: &Progress| cx.now.since(l.heard) < recent && is_heard(cx, l);
    let fits = |l: &Progress| {
        let in_vain = || cx.concessions.transfers.is_in_vain(cx.now, l.id);
        answers(l) && !(cx.disk_low && in_vain())
    };
    let ours = if cx.disk_low { None } else { Some(cx.config.priority) };
    let best = best(cx, learners, fits)?;
    (wish(cx, best) > ours).then_some(best.id)
}

/// How much it is wished to lead. One that was given the leadership in vain is wished to no more than any.
fn wish(cx: &Context<'_>, learner: &Progress) -> Option<u8> {
    if cx.concessions.transfers.is_in_vain(cx.now, learner.id) {
        learner.priority.map(|_| 0)
    } else {
        learner.priority
    }
}

/// Whether it has said lately that it hears a quorum. It follows us well, and may be followed by none all the same:
/// its links to the others may be gone, and then nothing would be served until they have given it up.
pub fn is_heard(cx: &Context<'_>, learner: &Progress) -> bool {
    let recent = |at| cx.now.since(at) <= cx.config.timing.recent();
    learner.may_lead.is_some_and(recent)
}

/// The follower that is wished most to lead, of those that hear a quorum if any does; among those the one that has
/// most.
fn best<'a>(
    cx: &Context<'_>,
    learners: &'a Learners,
    fits: impl Fn(&Progress) -> bool,
) -> Option<&'a Progress> {
    let able = learners.values();
    let able = able.filter(|l| may_lead(cx, l) && l.is_ours() && fits(l));
    able.max_by_key(|l| (is_heard(cx, l), wish(cx, l), l.acks.through(), l.id))
}

/// Whether it follows with a vote, and one that it may be elected with.
fn may_lead(cx: &Context<'_>, learner: &Progress) -> bool {
    learner.votes && learner.stage == Stage::Serving && cx.quorum.weight(learner.id) > 0
}
