//! What each voter has said in this round, and who of them votes like us.
//!
//! ```text
//!   voter     1       2       3       4       5
//!   filed     ours    ours    other   -       ours       3 vote like us: is that enough?
//!   dialled                           failed             and is anybody left who could change it?
//! ```
//!
//! Those that are not looking have a leader already; whether that one can be joined is counted here, too.
//!
//! Sums are kept and not recounted, so that one vote costs the same among three servers and among 255.
//! Which vote is ours is decided above, and so is what follows when enough are like it.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::id::ServerId;
use crate::quorum::{Quorum, Support};
use crate::time::Instant;
use crate::vote::{Filed, Round, ServerState};

/// How long a dial that failed tells that a voter cannot be reached, from when it was made: as long as the
/// longest wait before the next one. One that hung for longer tells of a network that was. A server that was alone for
/// minutes and hears others again would otherwise elect with the first of them, by what it knows of the time
/// before, and each part of the ensemble another server.
pub const DIAL_TELLS: Duration = Duration::from_secs(1);

/// The votes of one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Votes {
    /// What each voter said in this round, by position in the quorum.
    filed: Vec<Option<Filed>>,
    /// Whether `filed` may hold votes that we did not compare with ours, so that a vote better than
    /// ours may have supporters there already.
    pub(super) uncompared: bool,
    /// Who of `filed` votes like us; after a decision, on whose word it rests.
    pub(super) support: Support,
    supporters: usize,
    /// When the dial was made that failed last.
    unreachable: Vec<Option<Instant>>,
    unreachables: usize,
}

impl Votes {
    /// No voter has said anything.
    pub(super) fn new(quorum: &Quorum) -> Self {
        let voters = quorum.voters().len();
        Self {
            filed: vec![None; voters],
            uncompared: false,
            support: quorum.support(),
            supporters: 0,
            unreachable: vec![None; voters],
            unreachables: 0,
        }
    }

    /// What was said belongs to an earlier round.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.filed.fill(None);
        self.uncompared = false;
    }

    /// By position in the quorum, what each voter said.
    pub(super) fn filed(&self) -> &[Option<Filed>] {
        &self.filed
    }

    /// Files what a voter said when the round was over: it counts if that goes on.
    pub(super) fn note(&mut self, position: usize, filed: Filed) {
        self.filed[position] = Some(filed);
        self.uncompared = true;
    }

    /// Everybody stands behind what comes.
    pub(super) fn support_all(&mut self, quorum: &Quorum) {
        for position in 0..self.filed.len() {
            self.support.add_at(quorum, position);
        }
    }

    /// We have changed our vote. No other voter votes like us yet if every vote filed was compared with ours, since
    /// ours has become better than all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.support.clear();
        self.supporters = 0;
    }

    /// Counts who votes like us, after [`Votes::clear`]: needed only where some vote was not compared.
    pub(super) fn recount(&mut self, quorum: &Quorum, ours: &Filed) {
        for (position, filed) in self.filed.iter().enumerate() {
            if filed.is_some_and(|filed| filed.supports(ours)) {
                self.support.add_at(quorum, position);
                self.supporters += 1;
            }
        }
    }

    /// Files what a voter said, in place of what it said before, and keeps the count.
    #[inline]
    pub(super) fn file(&mut self, quorum: &Quorum, position: usize, filed: Filed, ours: &Filed) {
        self.filed[position] = Some(filed);
        if filed.supports(ours) {
            if self.support.add_at(quorum, position) {
                self.supporters += 1;
            }
        } else if self.support.remove_at(quorum, position) {
            self.supporters -= 1;
        }
    }

    /// Whether nothing that could still change the outcome is outstanding: every voter votes like us; or
    /// those that do not were unreachable a moment ago, and those that do and end the round at once for that are a
    /// quorum with its leader in it. One that is merely silent is waited for.
    ///
    /// A voter that ends the round later may hear a better vote until then, of one that comes within reach, and go with
    /// that one. A quorum that needs such a voter gains nothing from our haste, and the round would be torn.
    #[inline]
    pub(super) fn is_settled(&self, quorum: &Quorum, leader: ServerId, at: Instant) -> bool {
        let voters = self.filed.len();
        self.support.is_quorum(quorum)
            && (self.supporters == voters
                || (self.supporters + self.unreachables >= voters
                    && self.is_ended_at_once(quorum, leader)
                    && quorum.voters().zip(&self.unreachable).all(|(id, unreachable)| {
                        tells(*unreachable, at) || self.support.contains(quorum, id)
                    })))
    }

    /// Whether those that vote like us and end the round at once are a quorum with its leader in it. Counted here and
    /// not with each vote: it is asked only where all that is missing is out of reach.
    fn is_ended_at_once(&self, quorum: &Quorum, leader: ServerId) -> bool {
        let mut prompt = quorum.support();
        for (position, filed) in self.filed.iter().enumerate() {
            let at_once = filed.is_some_and(|filed| filed.at_once);
            if at_once && self.support.contains(quorum, quorum.id(position)) {
                prompt.add_at(quorum, position);
            }
        }
        prompt.contains(quorum, leader) && prompt.is_quorum(quorum)
    }

    /// A voter could not be reached by a dial made then.
    pub(super) fn on_unreachable(&mut self, position: usize, dialled: Instant) {
        let before = self.unreachable[position].replace(dialled);
        self.unreachables += usize::from(before.is_none());
    }

    /// It can.
    pub(super) fn on_reachable(&mut self, position: usize) {
        if self.unreachable[position].take().is_some() {
            self.unreachables -= 1;
        }
    }

    /// No voter is known to be unreachable any more.
    pub(super) fn forget_unreachable(&mut self) {
        self.unreachable.fill(None);
        self.unreachables = 0;
    }

    /// Who cannot be reached, ascending.
    pub(super) fn unreachable(&self, quorum: &Quorum, at: Instant) -> Vec<ServerId> {
        let unreachable = quorum.voters().zip(&self.unreachable);
        unreachable.filter_map(|(id, dialled)| tells(*dialled, at).then_some(id)).collect()
    }
}

/// Whether a failed dial still tells that a voter cannot be reached.
fn tells(dialled: Option<Instant>, at: Instant) -> bool {
    dialled.is_some_and(|dialled| at.since(dialled) <= DIAL_TELLS)
}

/// Who of `votes` stands behind `needle`, if they are a quorum and its leader says that it leads.
/// If the leader would be we, we must be in that very round (ZOOKEEPER-1514).
pub(super) fn joinable(
    votes: &[Option<Filed>],
    needle: &Filed,
    quorum: &Quorum,
    id: ServerId,
    round: Round,
) -> Option<Support> {
    let leader = needle.standing.vote.leader;
    let says_so = if leader == id {
        needle.standing.round == round
    } else {
        quorum.position(leader).and_then(|at| votes[at]).is_some_and(|filed| {
            filed.standing.state == ServerState::Leading && filed.standing.vote.leader == leader
        })
    };
    if !says_so {
        return None;
    }
    let mut support = quorum.support();
    for (position, filed) in votes.iter().enumerate() {
        if filed.is_some_and(|filed| filed.supports(needle)) {
            support.add_at(quorum, position);
        }
    }
    // While the membership changes, those of one of the two may have decided, and the change may have come
    // to nothing, or be over. The leader knows who has to agree.
    let enough =
        if leader == id { support.is_enough(quorum) } else { support.is_enough_to_follow(quorum) };
    enough.then_some(support)
}
