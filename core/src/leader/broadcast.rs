//! Broadcast, the leader's side: an established leader, for as long as a quorum answers it.
//!
//! Transactions are not proposed yet. What is here keeps a leader honest: it pings its learners twice
//! per tick, and a leader that has not heard from a quorum within the limit stops leading by its own
//! clock, whoever else may have been elected meanwhile.

use alloc::vec::Vec;

use crate::context::Context;
use crate::id::ServerId;
use crate::zxid::Epoch;

/// The reign of an established leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Its epoch.
    pub epoch: Epoch,
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
