//! A transfer of the leadership on its way: to which follower, for what purpose, and how far it has come.
//!
//! How the follower is chosen and when the next step is taken is said in [`transfer`](super::transfer); this is what an
//! established leader keeps of it.

use crate::id::{LinkId, ReleaseId, ServerId};
use crate::reasons::TransferRefused;
use crate::report::Reason;
use crate::vote::Round;

/// A transfer on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Who is to lead.
    pub to: ServerId,
    /// The round that is over thereby.
    pub round: Round,
    /// A caller is to be told how it ends.
    pub asked: bool,
    /// If it comes to nothing we give the leadership up all the same.
    pub in_any_case: bool,
    /// That is because our quorum port accepts no connections.
    pub unreachable: bool,
    /// How far it has come.
    pub step: Step,
}

/// For whose sake the leadership is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A caller wants this server to lead, or any other, and is told how it ends.
    Asked,
    /// We are to give the leadership up in any case.
    StepDown,
    /// We have to give it up: our quorum port accepts no connections.
    Unreachable,
    /// The server is wished to lead more than we are.
    Preferred,
}

/// How far a transfer has come.
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

impl Transfer {
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

    /// Why we look for a leader if it comes to nothing and the leadership is given up all the same.
    pub const fn reason(&self) -> Reason {
        if self.unreachable { Reason::CannotAccept } else { Reason::Asked }
    }

    /// Whether requests wait.
    pub const fn is_holding(&self) -> bool {
        matches!(self.step, Step::Holding | Step::Offered(_))
    }

    /// Why it has come to nothing, if time has run out.
    pub const fn late(&self) -> TransferRefused {
        match self.step {
            Step::Releasing(_) => TransferRefused::Guarded,
            Step::CatchingUp | Step::Holding | Step::Offered(_) => TransferRefused::Late(self.to),
        }
    }
}
