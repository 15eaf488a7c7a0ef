//! Back into a round that seemed to be over.
//!
//! ```text
//!   we settle on 3 ── reach it, or wait for those who voted for us ──► it serves
//!         ▲                      │ one that is needed still looks in this round,
//!         └──── looking ◄────────┘ and has a better vote now: 1
//! ```
//!
//! The end of a round is what a quorum says, and a server of ZooKeeper may say something better until its own 200 ms
//! are over, which begin anew with each message (`FastLeaderElection`, `finalizeWait`). A server that went on to a
//! round of its own then would take others along, and leave the one alone that had been elected by the better votes of
//! this one, for as long as a leadership may take to begin (`initLimit`). So it goes back, with what it had heard there.

use alloc::vec::Vec;

use crate::election::{Elector, ElectorOutput};
use crate::id::ServerId;
use crate::time::Instant;
use crate::vote::{ServerState, Vote};

impl Elector {
    /// Goes back into the round that has ended, with the vote of one that is needed for how it ended and looks in it
    /// still; or with a better one that was heard in it. `own` is the vote that we would begin a round with now.
    ///
    /// Votes within a round only rise, so this comes to an end: once for each other voter at most. Returns
    /// false, and nothing has changed, if we have served since, have another history than when the round began, or
    /// could not vote so; a caller that still cannot wait begins another round.
    pub fn go_back(
        &mut self,
        at: Instant,
        own: Vote,
        from: ServerId,
        vote: Vote,
        out: &mut Vec<ElectorOutput>,
    ) -> bool {
        let settled = self.has_standing() && !self.is_looking();
        let fits =
            |vote: Vote| self.config.quorum.is_voter(vote.leader) && !self.has_outlived(vote);
        if !settled || self.returns == 0 || own != self.own || !fits(vote) {
            return false;
        }
        let Some(mut reason) = self.why_better(from, vote, self.vote) else { return false };
        let mut best = vote;
        for (position, filed) in self.votes.filed().iter().enumerate() {
            let Some(standing) = filed.map(|filed| filed.standing) else { continue };
            let here = standing.state == ServerState::Looking && standing.round == self.round;
            if here && fits(standing.vote) {
                let from = self.config.quorum.id(position);
                if let Some(why) = self.why_better(from, standing.vote, best) {
                    (best, reason) = (standing.vote, why);
                }
            }
        }
        self.returns -= 1;
        self.state = ServerState::Looking;
        self.settled.fill(None);
        self.wait = self.config.notification_min;
        self.notify_at = Some(at + self.wait);
        self.votes.uncompared = true;
        self.propose(best, reason, out);
        self.count(at, out);
        true
    }
}
