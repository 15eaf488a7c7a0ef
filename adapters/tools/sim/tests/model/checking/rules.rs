//! What must hold, over the disks of all servers and what was committed so far.

use std::fmt;

use quorate_core::generation_message::{Generation, GrantedVote};
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::txn::Txn;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use super::Electing;
use super::ensemble::Ensemble;
use super::members::{is_majority, voters};
use super::server::{Effect, Server, name, number};
use super::state::State;
use super::store::change;

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Two leaders were established in one epoch.
    Leadership,
    /// A vote was counted that was not cast, or for somebody older than the voter.
    Votes,
    /// Two servers were elected in one generation.
    Generation,
    /// A disk has another vote in a generation than it had, or an earlier one.
    GrantedVote,
    /// A quorum was counted that is not on the disks.
    Quorum,
    /// Something left a server that its disk does not hold.
    Promise,
    /// NEWLEADER was acknowledged without just the leader's history on disk, or an epoch entered without it.
    Synchronised,
    /// A leader was established without what was committed before.
    Newest,
    /// What was committed is no longer on a quorum of disks.
    Committed,
    /// Two servers apply different transactions, or one applies what no leader has committed.
    PrefixConsistency,
    /// A change of the membership in a server's history does not bind it, or one is in force that was never committed.
    Membership,
    /// A server stopped for what it took for an accident.
    Halted,
    /// An invariant of the core itself was broken.
    Panicked,
    /// Servers go on telling each other where they stand, and nothing else happens.
    Storm,
    /// The core wants what this model does not know.
    Unforeseen,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leadership => "two leaders are established in one epoch",
            Self::Votes => "a vote is counted that was not cast, or for an older history",
            Self::Generation => "two servers are elected in one generation",
            Self::GrantedVote => "a voter votes twice in a generation",
            Self::Quorum => "a quorum is counted that is not on the disks",
            Self::Promise => "what leaves a server is not on its disk",
            Self::Synchronised => "an epoch is entered without the leader's history on disk",
            Self::Newest => "a leader is established without what was committed",
            Self::Committed => "what was committed is not on a quorum of disks",
            Self::PrefixConsistency => "what is applied was not committed, or is another elsewhere",
            Self::Membership => "a change of the membership does not bind, or binds uncommitted",
            Self::Halted => "a server stops",
            Self::Panicked => "a server panics",
            Self::Storm => "servers answer one another without end",
            Self::Unforeseen => "the core wants what the model does not know",
        })
    }
}

/// The place of an epoch.
fn at<T>(by_epoch: &mut [T], epoch: Epoch) -> Option<&mut T> {
    by_epoch.get_mut(usize::try_from(epoch.0).unwrap_or(usize::MAX))
}

impl Ensemble {
    /// Takes note of what a server has done, and judges it.
    pub(super) fn judge(&self, state: &mut State, by: usize, effect: &Effect) -> Option<Rule> {
        match effect {
            Effect::Dial(..) | Effect::Send(..) | Effect::Hangup(_) => None,
            Effect::Broken(rule) => Some(*rule),
            Effect::Elected(generation, vote, members)
                if matches!(self.scope.electing, Electing::Generation { .. }) =>
            {
                self.judge_election(state, by, *generation, *vote, members)
            }
            Effect::Elected(round, vote, members) => {
                let sound = members.iter().all(|member| {
                    let member = usize::from(number(*member));
                    self.server(state, member, |server| {
                        let Server { brief, store, .. } = server;
                        let here = brief.up
                            && brief.state == ServerState::Looking
                            && brief.round == *round;
                        // Who has started again since knows nothing of its vote; who has heard of a newer membership
                        // begins anew with its own.
                        let anew = state.spent.crashes > 0 || self.scope.changes();
                        let cast = brief.vote >= *vote || anew;
                        !here
                            || (cast
                                && (store.current, store.last()) <= (vote.peer_epoch, vote.zxid))
                    })
                });
                (!sound).then_some(Rule::Votes)
            }
            Effect::Begins(epoch) => {
                let promised = |server: &Server| server.store.accepted >= *epoch;
                let brought = self.server(state, by, Server::latest).history;
                let before = brought.partition_point(|txn| txn.zxid < Zxid::start_of(*epoch));
                let brought = self.histories.number(brought[..before].to_vec());
                if let Some(slot) = at(&mut state.brought, *epoch) {
                    *slot = brought;
                }
                (!self.is_quorum(state, self.binding(state, by), promised)).then_some(Rule::Quorum)
            }
            Effect::Enters(epoch) => {
                // What was taken over has to lie below an epoch that says it was.
                let brought = self.histories.get(*at(&mut state.brought, *epoch)?);
                let holds = |server: &Server| server.store.history.starts_with(brought);
                (!self.server(state, by, holds)).then_some(Rule::Synchronised)
            }
            Effect::Established(epoch) => self.judge_leadership(state, by, *epoch),
            Effect::Acknowledges(link, epoch) => {
                let leader = state.links.iter().find_map(|l| l.other(by, *link))?;
                let theirs = self.server(state, leader, |server| {
                    let leads = server.brief.up && server.brief.state == ServerState::Leading;
                    leads.then(|| server.latest()).filter(|latest| latest.current == *epoch)
                })?;
                let known = self.server(state, by, |server| {
                    let old = |history: &[Txn]| {
                        history.partition_point(|txn| txn.zxid < Zxid::start_of(*epoch))
                    };
                    let (ours, theirs) = (&server.store.history, &theirs.history);
                    ours[..old(ours)] == theirs[..old(theirs)]
                        && ours[old(ours)..].iter().zip(&theirs[old(theirs)..]).all(|(a, b)| a == b)
                });
                (!known).then_some(Rule::Synchronised)
            }
            Effect::Deliver(zxid, led) => self.judge_delivery(state, by, *zxid, *led),
            Effect::Puts(zxid) => {
                let committed = self.histories.get(state.committed);
                let brought = committed.iter().any(|txn| txn.zxid == *zxid);
                (!brought).then_some(Rule::Membership)
            }
        }
    }

    /// Each vote was given, and is on disk; nobody else has them.
    fn judge_election(
        &self,
        state: &mut State,
        by: usize,
        generation: i64,
        vote: Vote,
        members: &[ServerId],
    ) -> Option<Rule> {
        let granted_vote = GrantedVote { generation: Generation(generation), vote: vote.leader };
        let sound = members.iter().all(|member| {
            let member = usize::from(number(*member));
            self.server(state, member, |server| {
                let Server { brief, store, .. } = server;
                let looks =
                    brief.up && brief.state == ServerState::Looking && brief.round == generation;
                // Who has voted again since tells nothing of this vote.
                let later = member != by && store.granted_vote.generation > granted_vote.generation;
                let fresh = (store.current, store.last()) <= (vote.peer_epoch, vote.zxid);
                later || (store.granted_vote == granted_vote && (!looks || fresh))
            })
        });
        let slot = usize::try_from(generation).ok().and_then(|at| state.led.get_mut(at));
        let Some(slot) = slot else { return Some(Rule::Unforeseen) };
        let leader = u8::try_from(by).unwrap_or(u8::MAX) + 1;
        if ![0, leader].contains(&std::mem::replace(slot, leader)) {
            return Some(Rule::Generation);
        }
        (!sound || !members.contains(&vote.leader)).then_some(Rule::Votes)
    }

    fn judge_leadership(&self, state: &mut State, by: usize, epoch: Epoch) -> Option<Rule> {
        let leader = u8::try_from(by).unwrap_or(u8::MAX) + 1;
        let Some(slot) = at(&mut state.leaderships, epoch) else { return Some(Rule::Unforeseen) };
        if std::mem::replace(slot, leader) != 0 {
            return Some(Rule::Leadership);
        }
        let entered = |server: &Server| server.store.current >= epoch;
        if !self.is_quorum(state, self.binding(state, by), entered) {
            return Some(Rule::Quorum);
        }
        // What later leaderships have committed by then it cannot have, and it commits nothing any more.
        let committed = self.histories.get(state.committed);
        let before = committed.partition_point(|txn| txn.zxid < Zxid::start_of(epoch));
        let complete =
            self.server(state, by, |server| server.store.history.starts_with(&committed[..before]));
        (!complete).then_some(Rule::Newest)
    }

    fn judge_delivery(&self, state: &mut State, by: usize, zxid: Zxid, led: bool) -> Option<Rule> {
        let committed = self.histories.get(state.committed);
        let (applied, leads) = self.server(state, by, |server| {
            (server.latest().through(zxid).to_vec(), led || server.brief.leadership.is_some())
        });
        if committed.starts_with(&applied) {
            return None;
        }
        if !applied.starts_with(committed) || !leads {
            return Some(Rule::PrefixConsistency);
        }
        state.committed = self.histories.number(applied);
        self.judge_disks(state).map(|_| Rule::Quorum)
    }

    /// Whether everything committed is on a quorum of disks.
    pub(super) fn judge_disks(&self, state: &State) -> Option<Rule> {
        if state.committed == 0 {
            return None;
        }
        let committed = self.histories.get(state.committed);
        let holds = |server: &Server| server.store.history.starts_with(committed);
        (!self.is_quorum(state, [self.voters_after(state.committed); 2], holds))
            .then_some(Rule::Committed)
    }

    /// Whether this is true of a majority of each of two sets of voters.
    fn is_quorum(&self, state: &State, of: [u8; 2], has: impl Fn(&Server) -> bool) -> bool {
        let those = (0..self.scope.servers()).filter(|id| self.server(state, *id, &has));
        is_majority(those.fold(0, |all, id| all | 1 << id), of)
    }

    /// Who votes, as this server goes by it: in the membership in force, and in the next.
    fn binding(&self, state: &State, id: usize) -> [u8; 2] {
        self.server(state, id, |server| server.brief.binding)
    }

    /// Who votes when this history is committed.
    pub(super) fn voters_after(&self, history: u32) -> u8 {
        let first = self.scope.first().voters;
        if !self.scope.changes() {
            return first;
        }
        self.electorates.recall(history, |history| {
            let newest = self.histories.get(*history).iter().rev().find_map(change);
            newest.map_or(first, |newest: Membership| voters(&newest))
        })
    }

    /// Whether a quorum agrees who leads, and that one leads.
    pub fn is_led(&self, state: &State) -> bool {
        let briefs: Vec<_> = (0..self.scope.servers())
            .map(|id| self.server(state, id, |server| server.brief))
            .collect();
        let follow = |leader: u8| {
            let with = (0u8..).zip(&briefs).filter(|(_, brief)| {
                brief.up && brief.state != ServerState::Looking && brief.vote.leader == name(leader)
            });
            let with = with.fold(0, |all, (id, _)| all | 1 << id);
            is_majority(with, briefs[usize::from(leader)].binding)
        };
        (0..).zip(&briefs).any(|(id, brief)| brief.state == ServerState::Leading && follow(id))
    }

    /// Whether a quorum serves with a leader.
    pub fn is_served(&self, state: &State) -> bool {
        let serves = |server: &Server| server.brief.up && server.brief.serves;
        (0..self.scope.servers()).any(|id| {
            self.server(state, id, |s| s.brief.leadership.is_some())
                && self.is_quorum(state, self.binding(state, id), serves)
        })
    }
}
