//! A server at the edge of its ensemble: links are broken, and it hears too few to elect anybody with them.
//!
//! ```text
//!   S1 ─┐     ┌─ S4         nobody but S3 hears a quorum: S3 can lead, if the others
//!       ├─ S3 ┤             let it, and believe it when it says that it does
//!   S2 ─┘     └─ S5
//! ```
//!
//! ZooKeeper has nothing of the kind; there such an ensemble may be without a leader until its links are mended.

use core::time::Duration;

use crate::election::Elector;
use crate::time::Instant;
use crate::vote::Vote;

/// Whoever was not heard in so much of a round is not heard: links that can come up have, by then.
const HEARD_BY_THEN: Duration = Duration::from_millis(500);

impl Elector {
    /// Whether our vote is for ourselves, who hear too few to be elected, so that any other is worth more. At most
    /// once in a round: it is for another then.
    pub(super) fn yields(&self, at: Instant, from: usize, ours: Vote, theirs: Vote) -> bool {
        let may_lead = self.config.quorum.weight(theirs.leader) > 0;
        let own = |vote: Vote| vote.leader == self.config.id;
        own(ours) && !own(theirs) && may_lead && self.hears_few(at, from)
    }

    /// Whether so few voters are heard that we can neither be elected nor count who is: in this round, that has
    /// lasted for half a second, those that have said anything are no quorum with us and this one.
    ///
    /// That is a server at the edge, where links are broken and not all can hear all. ZooKeeper's election leaves
    /// it out, and with it whoever is in the middle: all vote for the best vote that anybody has heard of, which
    /// may be that of one who cannot be reached by a quorum; and who is reached by one is not believed by those
    /// who hear nobody else. So a server at the edge does not insist on itself, and takes the word of a leader
    /// who says that it leads. It can harm nobody: who leads without a quorum is never established.
    pub(super) fn hears_few(&self, at: Instant, from: usize) -> bool {
        if at.since(self.round_began) < HEARD_BY_THEN {
            return false;
        }
        let quorum = &self.config.quorum;
        let mut heard = quorum.support();
        for (position, id) in quorum.voters().enumerate() {
            if self.heard[position] || position == from || id == self.config.id {
                heard.add_at(quorum, position);
            }
        }
        !heard.is_enough(quorum)
    }
}
