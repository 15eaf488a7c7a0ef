//! Why a packet of the leader cannot be followed: it is out of turn, leaves a hole, or contradicts what we have.
//!
//! The phases only say which it is; what becomes of the link and of us is said in one place, `Learner::judge`.

use thiserror::Error;

use crate::zxid::Zxid;

/// Why a packet of the leader cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Breach {
    /// It has no place here.
    #[error("out of turn")]
    OutOfTurn,
    /// A transaction that does not follow this one, or the commit of one that did not come.
    #[error("it leaves a hole after {0}")]
    Hole(Zxid),
    /// Another transaction than the one that we have under this number.
    #[error("another transaction {0} than ours")]
    Differs(Zxid),
    /// Our log cannot be cut where the leader wants: only a whole history helps.
    #[error("our log cannot be cut at {0}")]
    CannotCut(Zxid),
    /// What the leader wants cut was committed.
    #[error("what follows {0} was committed, and is to be cut")]
    CommittedCut(Zxid),
    /// It tells of an older membership than this one, which our history holds.
    #[error("it does not know of the change at {0}")]
    OlderMembership(Zxid),
    /// We would acknowledge as a voter an epoch below our promise.
    #[error("a voter would acknowledge an epoch below its promise")]
    WouldVote,
}
