//! Vote requests, responses and heartbeats: what servers say to one another, and write down, in elections by generation.
//!
//! ```text
//!   VoteRequest   generation 6, attempt 2, my history ends at (5, 40)        ──►
//!                                  ◄── VoteResponse  granted or not, generation 6, attempt 2
//!   Heartbeat "I lead generation 6" ──►   ◄── Heartbeat "I follow 3"
//! ```
//!
//! Every message carries the generation of its sender and how new its history is, so that a server that is behind
//! learns it from any of them, also from one that says no. Who may vote for whom is the business of
//! [`generation`](crate::generation); the bytes are in [`wire`](crate::wire).

use core::fmt;

use bytes::Bytes;

use crate::id::ServerId;
use crate::zxid::{Epoch, Zxid};

/// A count of elections that all servers share: each candidate raises it by one (*term* in Raft,
/// *generation clock* in the pattern of that name). 0 before the first election.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub i64);

impl Generation {
    /// The generation after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whether a server may be in it: the others belong to no server.
    pub const fn is_valid(self) -> bool {
        self.0 >= 0 && self.0 < i64::MAX
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The one vote that a server has given in a generation. It is on disk before anybody hears of it, and
/// stays what it is until there is a vote in a later generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantedVote {
    /// In which.
    pub generation: Generation,
    /// For whom; [`ServerId::NONE`] before the first.
    pub vote: ServerId,
}

impl GrantedVote {
    /// No vote was ever given.
    pub const NONE: Self = Self { generation: Generation(0), vote: ServerId::NONE };
}

impl Default for GrantedVote {
    fn default() -> Self {
        Self::NONE
    }
}

/// How new a server's history is. The derived order is that of freshness: current epoch, then last zxid; a
/// longer log of an older epoch is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The epoch of the last leader whose history it took over.
    pub current_epoch: Epoch,
    /// The last transaction in its log.
    pub last: Zxid,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}, zxid {}", self.current_epoch, self.last)
    }
}

/// A message between two servers that elect by generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GenerationMessage {
    /// Who says it. A message that names another than the server at the other end counts for nothing.
    pub from: ServerId,
    /// The highest generation that the sender has seen.
    pub generation: Generation,
    /// How new the sender's history was when it last looked for a leader; where it says that it has one, how
    /// new that one's was, in the epoch that it has begun since.
    pub claim: Claim,
    /// What it says.
    pub body: Body,
    /// The sender's configuration as text, not decoded; empty if it sent none.
    pub config: Bytes,
    /// Whether the sender knows what a [`Probe`](crate::message::Probe) is.
    pub knows_probes: bool,
}

/// What a [`GenerationMessage`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Vote for me.
    VoteRequest(Attempt),
    /// Whether I do.
    VoteResponse {
        /// What was asked, as it was asked.
        attempt: Attempt,
        /// Yes. Nothing else counts as one.
        granted: bool,
    },
    /// Where I stand. From a leader, the heartbeat; from others, the answer to it.
    Heartbeat {
        /// Whom the sender follows; itself if it leads, [`ServerId::NONE`] while it looks.
        leader: ServerId,
        /// A leader's time when it said so, in its own nanoseconds, opaque to others; they give it back.
        beat: u64,
    },
}

/// One attempt of a candidate to be elected: answers to an earlier one are told apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The generation that it wants to lead.
    pub generation: Generation,
    /// Which of its attempts this is; never the same twice while it runs.
    pub number: u64,
    /// It only asks whether it would be elected: no voter is bound by the answer.
    pub pre: bool,
}

impl Body {
    /// The kinds of message; of each, only the newest that was not yet written counts.
    pub const KINDS: usize = 3;

    /// Which of them this is.
    pub const fn kind(&self) -> usize {
        match self {
            Self::VoteRequest(_) => 0,
            Self::VoteResponse { .. } => 1,
            Self::Heartbeat { .. } => 2,
        }
    }
}

impl fmt::Display for GenerationMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |pre| if pre { "pre-vote" } else { "vote" };
        match &self.body {
            Body::VoteRequest(attempt) => {
                write!(f, "asks for a {} in generation {}", name(attempt.pre), attempt.generation)?;
                write!(f, " ({})", self.claim)
            }
            Body::VoteResponse { attempt, granted } => {
                let granted = if *granted { "grants" } else { "refuses" };
                write!(f, "{granted} a {} in generation {}", name(attempt.pre), attempt.generation)
            }
            Body::Heartbeat { leader, .. } if *leader == self.from => {
                write!(f, "leads generation {}", self.generation)
            }
            Body::Heartbeat { leader, .. } => {
                write!(f, "follows {leader} in generation {}", self.generation)
            }
        }
    }
}

/// Why a server looks for a leader, and so how soon it asks to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cue {
    /// It has just started, or does not know whether its leader lives: it listens for a time-out.
    Fresh,
    /// Its leader was silent for a time-out: now.
    Silence,
    /// Its leader closed the link: all notice at once, so they go by rank.
    Closed,
    /// Its leader gave the leadership to this server: that one asks now, the others wait for it.
    Appointed(ServerId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_log_of_an_older_epoch_is_older() {
        let claim = |epoch, zxid| Claim { current_epoch: Epoch(epoch), last: Zxid(zxid) };
        assert!(claim(5, 1) > claim(4, 90));
        assert!(claim(5, 40) > claim(5, 39));
        assert!(claim(5, 40) >= claim(5, 40));
    }

    #[test]
    fn generations_end_before_they_wrap() {
        assert_eq!(Generation(i64::MAX).next(), Generation(i64::MAX));
        assert!(!Generation(i64::MAX).is_valid() && !Generation(-1).is_valid());
        assert!(Generation(0).is_valid());
    }
}
