//! How a leader is elected: by fast leader election, or by generation, with the time-outs of that.
//!
//! The same at all servers of an ensemble, since the two do not understand one another.

use core::time::Duration;

/// How it is found out who is to lead. What follows (discovery, synchronisation, broadcast) is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Election {
    /// ZooKeeper's: all tell their votes until all have the best one. Understood by ZooKeeper servers.
    #[default]
    Fast,
    /// One vote for each server and generation, and heartbeats from the leader. Among servers of ours only.
    Generation(Generations),
}

/// Time-outs and policies of elections by generation. The same at all servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Generations {
    /// Silence of the leader after which a server asks to lead, at least; no voter votes against a leader that
    /// was heard in this time.
    pub timeout_min: Duration,
    /// The same, at most: each server draws anew each time. A leader that no quorum has answered for so long
    /// gives up.
    pub timeout_max: Duration,
    /// How often a leader says that it leads; a few times in the shortest time-out.
    pub heartbeat: Duration,
    /// How long after one another servers ask to lead whose leader has closed its links: by rank, which is the
    /// order of their ids, the highest at once.
    pub stagger: Duration,
    /// A server asks first whether it would be elected, and raises the generation only if so: one that was cut
    /// off does not depose a leader when it comes back (Raft's *pre-vote*).
    pub pre_vote: bool,
    /// Who leads of those that are equally new.
    pub ties: Ties,
}

/// Who leads of those that are equally new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ties {
    /// The one with the higher id, as with ZooKeeper's election, unless it tries in vain. It is a pre-vote's
    /// answer, so there is no preference without pre-votes.
    BetterRanked,
    /// The server that asks first, as in Raft.
    FirstCome,
}

impl Default for Generations {
    fn default() -> Self {
        Self::within(Duration::from_millis(1000), Duration::from_millis(2000))
    }
}

impl Generations {
    /// The defaults for these time-outs: four heartbeats in the shortest.
    pub fn within(timeout_min: Duration, timeout_max: Duration) -> Self {
        Self {
            timeout_min,
            timeout_max,
            heartbeat: timeout_min / 4,
            stagger: Duration::from_millis(3),
            pre_vote: true,
            ties: Ties::BetterRanked,
        }
    }
}
