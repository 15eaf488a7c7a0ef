//! Handing the seat over: a leader lets a follower lead that has everything.
//!
//! ```text
//!   asked ─► catching up ──► releasing ─────► holding ────────────► offered ───────────► over
//!            it is sent      nobody does      requests wait; what   HANDOVER to it; it    HANDOVER to all
//!            what it lacks,  here what only   is under way becomes  leads, and closes     others; we follow
//!            and says that   a leader may     committed             its link
//!            it hears a
//!            quorum
//!              └─────────────── too late, or it is lost ────────────────┘──► the reign goes on
//! ```
//!
//! Requests wait no longer than the last of those under way takes to be committed, and the new reign to
//! begin. Nothing rests on the hand-over: the next leader's reign begins with discovery and synchronisation
//! like any other, and if what was promised here did not hold, it would not begin.
//!
//! The follower closes its link when it leads, so that no learner comes to it before. From the offer on, what it
//! has promised counts for nothing: it may take its seat at any time, also after it was called off.

use crate::context::Context;
use crate::id::{LinkId, ReleaseId, ServerId};
use crate::leader::learners::Learners;
use crate::leader::progress::{Progress, Stage};
use crate::reasons::Kept;
use crate::report::Reason;
use crate::vote::Round;

/// A hand-over on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandOver {
    /// Who is to lead.
    pub to: ServerId,
    /// The round that is over thereby.
    pub round: Round,
    /// A caller is to be told how it ends.
    pub asked: bool,
    /// If it comes to nothing we give the seat up all the same.
    pub in_any_case: bool,
    /// That is because our quorum port accepts no connections.
    pub unreachable: bool,
    /// How far it has come.
    pub step: Step,
}

/// For whose sake the seat is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A caller wants this server to lead, or any other, and is told how it ends.
    Asked,
    /// We are to give the seat up in any case.
    StepDown,
    /// We have to give it up: our quorum port accepts no connections.
    Unreachable,
    /// The server is wished to lead more than we are.
    Preferred,
}

/// How far a hand-over has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The follower is sent what it lacks, and has two ticks to say that it hears a quorum.
    CatchingUp,
    /// The leadership guards here are being released, in answer to this.
    Releasing(ReleaseId),
    /// Requests wait; what is under way becomes committed.
    Holding,
    /// The follower was told to lead, on this link.
    Offered(LinkId),
}

impl HandOver {
    /// It begins.
    pub fn new(to: ServerId, round: Round, purpose: Purpose) -> Self {
        let (asked, unreachable) = (purpose == Purpose::Asked, purpose == Purpose::Unreachable);
        let in_any_case = unreachable || purpose == Purpose::StepDown;
        Self { to, round, asked, in_any_case, unreachable, step: Step::CatchingUp }
    }

    /// Whether this one, which is under way, does for another purpose, too; if so it does from now on. Only
    /// one may ask to be told.
    pub fn serves(&mut self, to: Option<ServerId>, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Asked if self.asked || to.is_some_and(|to| to != self.to) => return false,
            Purpose::Asked => self.asked = true,
            Purpose::StepDown => self.in_any_case = true,
            Purpose::Unreachable => (self.in_any_case, self.unreachable) = (true, true),
            Purpose::Preferred => {}
        }
        true
    }

    /// Why we look for a leader if it comes to nothing and the seat is given up all the same.
    pub const fn reason(&self) -> Reason {
        if self.unreachable { Reason::CannotAccept } else { Reason::Asked }
    }

    /// Whether requests wait.
    pub const fn is_holding(&self) -> bool {
        matches!(self.step, Step::Holding | Step::Offered(_))
    }

    /// Why it has come to nothing, if time has run out.
    pub const fn late(&self) -> Kept {
        match self.step {
            Step::Releasing(_) => Kept::Guarded,
            Step::CatchingUp | Step::Holding | Step::Offered(_) => Kept::Late(self.to),
        }
    }
}

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
) -> Result<ServerId, Kept> {
    let to = match asked {
        None => {
            let waits = purpose != Purpose::Unreachable;
            let fits = |learner: &Progress| waits || is_heard(cx, learner);
            best(cx, learners, fits).ok_or(Kept::Nobody)?.id
        }
        Some(id) => {
            let learner = learners.link_of(id).and_then(|link| learners.get(link));
            let learner = learner.filter(|l| may_lead(cx, l)).ok_or(Kept::NoFollower(id))?;
            if learner.priority.is_none() {
                return Err(Kept::Foreign(id));
            }
            id
        }
    };
    // The others look for a leader by themselves when we leave. They find the next one only where a quorum
    // has gone to it at once.
    let mut told = cx.quorum.support();
    told.add(cx.quorum, cx.config.id);
    for learner in learners.values().filter(|l| l.votes && is_ours(l)) {
        told.add(cx.quorum, learner.id);
    }
    if told.is_quorum(cx.quorum) { Ok(to) } else { Err(Kept::NoQuorum) }
}

/// A follower that is wished to lead more than we are, the most wished one. Only one that answers: requests
/// wait while the seat is on offer, and no caller has asked for that.
pub fn preferred(cx: &Context<'_>, learners: &Learners) -> Option<ServerId> {
    let recent = 2 * cx.config.timing.ping_interval();
    let answers = |l: &Progress| cx.now.since(l.heard) < recent && is_heard(cx, l);
    let best = best(cx, learners, answers)?;
    (wish(cx, best) > Some(cx.config.priority)).then_some(best.id)
}

/// How much it is wished to lead. One that was given the seat in vain is wished to no more than any.
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
    let able = able.filter(|l| may_lead(cx, l) && is_ours(l) && fits(l));
    able.max_by_key(|l| (is_heard(cx, l), wish(cx, l), l.acks.through(), l.id))
}

/// Whether it follows with a vote, and one that it may be elected with.
fn may_lead(cx: &Context<'_>, learner: &Progress) -> bool {
    learner.votes && learner.stage == Stage::Serving && cx.quorum.weight(learner.id) > 0
}

/// Whether it serves, and takes a HANDOVER.
pub const fn is_ours(learner: &Progress) -> bool {
    matches!(learner.stage, Stage::Serving) && learner.priority.is_some()
}
