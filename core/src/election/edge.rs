//! A server at the edge of its ensemble: links are broken, and it hears too few to elect anybody with them.
//!
//! ```text
//!   S1 ─┐     ┌─ S4         only S3 hears a quorum: S3 can lead, if the others
//!       ├─ S3 ┤             let it, and believe it when it says that it does
//!   S2 ─┘     └─ S5
//! ```
//!
//! ZooKeeper has nothing of the kind; there such an ensemble may be without a leader until its links are mended.

use core::time::Duration;

use crate::election::Elector;
use crate::quorum::Support;
use crate::time::Instant;
use crate::vote::{Filed, ServerState, Standing, Vote};

/// After this long in a round, a voter that was not heard counts as unreachable. Its link may still come up, so this decides
/// only whose word to lead is taken, never how many make a quorum.
const HEARD_BY_THEN: Duration = Duration::from_millis(500);

impl Elector {
    /// Whether we go into a later round with `theirs` rather than with our own vote, which is better: we hear too few
    /// to be elected. We yield only to a server that has heard our vote in this round: if our history is newer, it has
    /// had the chance to vote for us.
    pub(super) fn yields(&self, at: Instant, from: usize, theirs: Vote) -> bool {
        let own = |vote: Vote| vote.leader == self.config.id;
        let may_lead = self.config.quorum.weight(theirs.leader) > 0;
        let told = self.heard[from];
        told && own(self.own) && !own(theirs) && may_lead && self.hears_few(at, from)
    }

    /// A leader has said that it leads, and it is too early to take its word alone: it is asked again when that would
    /// do. The wait for notifications grows, and a leadership that only we could bring about may be over by its end.
    pub(super) fn ask_when_known(&mut self, at: Instant) {
        let known = self.round_began + HEARD_BY_THEN;
        if let (Some(due), true) = (self.notify_at, at < known) {
            self.notify_at = Some(due.min(known));
        }
    }

    /// Who stands behind a leader, and we with them, if without us they are too few: leadership that was handed over may
    /// wait for us, who did not hear of it. ZooKeeper's server counts the others alone, and there the leader was
    /// elected, so they are enough; or it has not heard them all, and so the word of a leader that needs us is taken no
    /// sooner than when all who can be heard have been. Not of one that has less than we.
    pub(super) fn completed(&self, at: Instant, needle: &Filed) -> Option<Support> {
        let history = |vote: Vote| (vote.peer_epoch, vote.zxid);
        let newer = history(needle.standing.vote) < history(self.own);
        if newer || at.since(self.round_began) < HEARD_BY_THEN {
            return None;
        }
        let own = self.config.quorum.position(self.config.id)?;
        let mut votes = self.settled.clone();
        let standing = Standing { state: ServerState::Following, ..needle.standing };
        votes[own] = Some(Filed { standing, ..*needle });
        self.joinable(&votes, needle)
    }

    /// Whether so few voters are heard that we can neither be elected nor count who is: in this round, that has
    /// lasted for half a second, those that have said anything are no quorum with us and this one. While the
    /// membership changes, no quorum of both.
    ///
    /// That is a server at the edge, where links are broken and not all can hear all. ZooKeeper's election leaves
    /// it out, and with it the server in the middle: all vote for the best vote that anybody has heard of, which
    /// may be that of one who cannot be reached by a quorum; and who is reached by one is not believed by those
    /// that hear no other server. So a server at the edge does not insist on itself, and takes the word of a leader
    /// that it has heard before in this round: by now others, if they are there, have been heard, too. So does an
    /// observer. Who hears one other of three is no such server.
    ///
    /// It can cost an election, not safety: a leader is established by a quorum only, none of whom has more than it.
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
