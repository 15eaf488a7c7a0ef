//! Votes and their order.
//!
//! A vote proposes a leader and says how new that server's history is. Of two votes the better one is
//! known to everybody alike, so that servers which hear the same votes end with the same one:
//!
//! ```text
//!   peer epoch  ── higher wins ─ equal? ─►  zxid  ── higher wins ─ equal? ─►  server id  ── higher wins
//! ```
//!
//! The round is no part of the order: a later round discards the votes of an earlier one, it never
//! beats them (comparing rounds would let a stale server with a busy clock beat newer history).
//! What counts as *equal* when votes are tallied is another question, answered by [`Filed::supports`].

use core::fmt;

use crate::id::ServerId;
use crate::zxid::{Epoch, Zxid};

/// A count of elections on one server (ZooKeeper's logical clock, `electionEpoch`).
///
/// In memory only; 0 before the first election, which is round 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Round(pub i64);

impl Round {
    /// The round after this one.
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A proposal for leader.
///
/// The derived order is the order of votes: peer epoch, then zxid, then server id, all signed. It is
/// strict and total (ZOOKEEPER-1419 is what happens otherwise).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vote {
    /// The epoch of the last leader that the proposed server finished synchronising with.
    pub peer_epoch: Epoch,
    /// The last zxid in the proposed server's log.
    pub zxid: Zxid,
    /// The proposed leader.
    pub leader: ServerId,
}

impl Vote {
    /// The vote of a server that may not be elected: it loses against every other.
    pub const ABSTENTION: Self =
        Self { peer_epoch: Epoch::NONE, zxid: Zxid::NONE, leader: ServerId::NONE };

    /// Why this vote is better than `other`; none if it is not.
    pub fn better_than(&self, other: &Self) -> Option<Better> {
        if self.peer_epoch != other.peer_epoch {
            (self.peer_epoch > other.peer_epoch)
                .then_some(Better::PeerEpoch { theirs: self.peer_epoch, ours: other.peer_epoch })
        } else if self.zxid != other.zxid {
            (self.zxid > other.zxid).then_some(Better::Zxid { theirs: self.zxid, ours: other.zxid })
        } else {
            (self.leader > other.leader)
                .then_some(Better::Leader { theirs: self.leader, ours: other.leader })
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (peer epoch {}, zxid {})", self.leader, self.peer_epoch, self.zxid)
    }
}

/// The first field in which one vote is better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// It follows a later leader.
    PeerEpoch {
        /// The better vote's peer epoch.
        theirs: Epoch,
        /// The other's.
        ours: Epoch,
    },
    /// Same epoch, but its log goes further.
    Zxid {
        /// The better vote's zxid.
        theirs: Zxid,
        /// The other's.
        ours: Zxid,
    },
    /// Equally new; the larger id breaks the tie.
    Leader {
        /// The better vote's leader.
        theirs: ServerId,
        /// The other's.
        ours: ServerId,
    },
}

impl fmt::Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerEpoch { theirs, ours } => write!(f, "peer epoch {theirs} > {ours}"),
            Self::Zxid { theirs, ours } => write!(f, "zxid {theirs} > {ours}"),
            Self::Leader { theirs, ours } => write!(f, "server id {theirs} > {ours}"),
        }
    }
}

/// What a server is doing, as it tells its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerState {
    /// It has no leader and takes part in an election.
    Looking,
    /// It follows the leader of its vote.
    Following,
    /// It leads.
    Leading,
    /// It follows without a vote.
    Observing,
}

impl ServerState {
    /// The number on the wire.
    pub const fn code(self) -> i32 {
        match self {
            Self::Looking => 0,
            Self::Following => 1,
            Self::Leading => 2,
            Self::Observing => 3,
        }
    }

    /// The state of a number on the wire.
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Looking),
            1 => Some(Self::Following),
            2 => Some(Self::Leading),
            3 => Some(Self::Observing),
            _ => None,
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Looking => "LOOKING",
            Self::Following => "FOLLOWING",
            Self::Leading => "LEADING",
            Self::Observing => "OBSERVING",
        })
    }
}

/// Where a server stands: its state, its vote, and the round in which that vote was cast.
///
/// A settled server keeps the vote that ended its election; its zxid is the leader's at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// What the server is doing.
    pub state: ServerState,
    /// Its vote.
    pub vote: Vote,
    /// The round of the vote.
    pub round: Round,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {} in round {}", self.state, self.vote, self.round)
    }
}

/// A vote as a tally keeps it.
///
/// `versioned` tells whether the notification that brought it carried a version above 0; it decides
/// which fields count when two settled votes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filed {
    /// What its sender said.
    pub standing: Standing,
    /// Whether a message version above 0 is attached to it.
    pub versioned: bool,
    /// Whether its sender ends the round at once where no voter is left to wait for. Decides nothing between two
    /// votes.
    pub at_once: bool,
}

impl Filed {
    /// Whether this filed vote counts for `needle`.
    ///
    /// If either was cast while looking, leader, zxid, round and peer epoch must all match. Between
    /// two settled votes zxid and round are ignored, because the members of one healthy ensemble may
    /// differ in them (ZOOKEEPER-1732, -1805); and if only one of the two carries a version, the peer
    /// epoch is ignored too (ZOOKEEPER-1817).
    pub fn supports(&self, needle: &Self) -> bool {
        let (a, b) = (&self.standing, &needle.standing);
        if a.state == ServerState::Looking || b.state == ServerState::Looking {
            a.vote == b.vote && a.round == b.round
        } else if self.versioned == needle.versioned {
            a.vote.leader == b.vote.leader && a.vote.peer_epoch == b.vote.peer_epoch
        } else {
            a.vote.leader == b.vote.leader
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn vote(peer_epoch: i64, zxid: i64, leader: i64) -> Vote {
        Vote { peer_epoch: Epoch(peer_epoch), zxid: Zxid(zxid), leader: ServerId(leader) }
    }

    #[test]
    fn the_four_cases_and_the_two_of_the_epoch() {
        let own = vote(7, 50, 3);
        for (other, adopt) in [
            (vote(7, 51, 1), true),
            (vote(7, 49, 9), false),
            (vote(7, 50, 4), true),
            (vote(7, 50, 2), false),
            (vote(8, 0, 1), true),
            (vote(6, 99, 9), false),
        ] {
            assert_eq!(other.better_than(&own).is_some(), adopt, "{other} against {own}");
        }
    }

    /// ZOOKEEPER-1419: a misplaced parenthesis let two votes beat each other.
    #[test]
    fn the_order_is_strict_and_total_over_corner_values() {
        let corners = [i64::MIN, -1, 0, (1 << 31) - 1, 1 << 31, i64::MAX];
        let corners = if cfg!(miri) { &corners[..3] } else { &corners[..] };
        let mut votes = alloc::vec::Vec::new();
        for &epoch in corners {
            for &zxid in corners {
                for &leader in corners {
                    votes.push(vote(epoch, zxid, leader));
                }
            }
        }
        for a in &votes {
            for b in &votes {
                let (ab, ba) = (a.better_than(b).is_some(), b.better_than(a).is_some());
                assert_eq!(ab || ba, a != b, "total: {a:?} {b:?}");
                assert!(!(ab && ba), "antisymmetric: {a:?} {b:?}");
                assert_eq!(ab, a > b, "the derived order is the order of votes");
            }
        }
        let mut rng = Rng::new(1419);
        for _ in 0..if cfg!(miri) { 1000 } else { 100_000 } {
            let mut pick = || votes[usize::try_from(rng.below(votes.len() as u64)).unwrap()];
            let (a, b, c) = (pick(), pick(), pick());
            if a > b && b > c {
                assert!(a > c, "transitive: {a:?} {b:?} {c:?}");
            }
        }
    }

    #[test]
    fn the_winner_does_not_depend_on_the_order_of_comparison() {
        let mut rng = Rng::new(7);
        for _ in 0..if cfg!(miri) { 50 } else { 1_000 } {
            let votes: alloc::vec::Vec<_> = (0..7)
                .map(|_| vote(rng.below(3) as i64, rng.below(3) as i64, rng.below(9) as i64))
                .collect();
            let fold = |it: &mut dyn Iterator<Item = &Vote>| {
                it.fold(Vote::ABSTENTION, |w, v| if v.better_than(&w).is_some() { *v } else { w })
            };
            let winner = fold(&mut votes.iter());
            assert_eq!(winner, fold(&mut votes.iter().rev()));
            assert!(votes.contains(&winner));
        }
    }

    #[test]
    fn an_abstention_loses_against_everything() {
        assert!(vote(0, 0, 1).better_than(&Vote::ABSTENTION).is_some());
        assert!(Vote::ABSTENTION.better_than(&vote(i64::MIN, i64::MIN, -5)).is_none());
    }

    #[test]
    fn equality_when_counting() {
        use ServerState::{Following, Leading, Looking};
        let filed = |state, vote, round, versioned| Filed {
            standing: Standing { state, vote, round: Round(round) },
            versioned,
            at_once: false,
        };
        let looking = filed(Looking, vote(2, 7, 3), 4, false);
        for (other, equal) in [
            (filed(Looking, vote(2, 7, 3), 4, false), true),
            (filed(Looking, vote(2, 7, 3), 5, false), false),
            (filed(Looking, vote(2, 8, 3), 4, false), false),
            (filed(Looking, vote(3, 7, 3), 4, false), false),
            (filed(Looking, vote(2, 7, 2), 4, false), false),
            (filed(Following, vote(2, 7, 3), 4, true), true),
            (filed(Following, vote(2, 8, 3), 4, true), false),
        ] {
            assert_eq!(looking.supports(&other), equal, "{other:?}");
            assert_eq!(other.supports(&looking), equal, "{other:?}");
        }
        let settled = filed(Leading, vote(2, 7, 3), 4, true);
        for (other, equal) in [
            (filed(Following, vote(2, 99, 3), 104, true), true),
            (filed(Following, vote(1, 99, 3), 104, true), false),
            (filed(Following, vote(1, 99, 3), 104, false), true),
            (filed(Following, vote(2, 7, 1), 4, false), false),
        ] {
            assert_eq!(settled.supports(&other), equal, "{other:?}");
        }
    }
}
