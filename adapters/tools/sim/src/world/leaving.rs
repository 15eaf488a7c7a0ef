//! Servers that forget everything: who may, and what it is told when it comes back.
//!
//! ```text
//!   crash ─► nothing of it is on its way any more ─► everybody else has what it had, and knows who is a member
//!         ─► wiped ─► it starts as one that was never there
//! ```
//!
//! A voter that forgets breaks its promises. It may where no decision rests on them: every other voter has all
//! that is committed, and has promised as late an epoch, so that any quorum with the forgetful one in it
//! has one that remembers. And no voter votes for it: its own vote, heard from others, would be of a history that
//! it has no more.

use quorate_core::id::ServerId;
use quorate_core::membership::{Membership, Role};

use crate::faults::FaultClass;
use crate::world::World;

impl World {
    /// Whether a server that is down may start with an empty disk although others may have counted on it.
    pub fn may_wipe(&self, id: i64) -> bool {
        let id = ServerId(id);
        let Some(server) = self.servers.get(&id) else { return false };
        let still = server.peer.is_none()
            && !self.servers.values().any(|server| server.paused)
            && self.servers.values().all(|s| s.brief.is_none_or(|b| b.vote.leader != id))
            && self.network.is_forgotten(id);
        let ensemble = self.ensemble();
        let voter = |id: ServerId| ensemble.member(id).is_some_and(|member| member.voter);
        let known = self.membership_known().map(Membership::version);
        let others = ensemble.ids().filter(|other| *other != id);
        let committed = self.checker.committed();
        let promised = server.disk.latest().accepted_epoch;
        let remembers = |other: ServerId| {
            self.servers.get(&other).is_some_and(|server| {
                let held = server.disk.durable();
                let current = held.membership.as_ref().map(Membership::version) == known;
                let under_way = [held, server.disk.latest()].map(|c| c.next_membership.is_some());
                let has = !voter(other)
                    || (held.accepted_epoch >= promised && self.checker.holds(other, committed));
                current && under_way == [false; 2] && has
            })
        };
        still && !ensemble.is_quorum(|member| member == id) && others.into_iter().all(remembers)
    }

    /// Whether every server has it on its disk that this one is no voter: with one that does not know yet it may be a quorum.
    pub(crate) fn is_voter_to_none(&self, id: i64) -> bool {
        self.servers.values().all(|server| {
            let held = server.disk.durable();
            let known = held.membership.as_ref().unwrap_or(&server.config.membership);
            let voter = |among: &Membership| {
                among.member(ServerId(id)).is_some_and(|member| member.role == Role::Participant)
            };
            !voter(known) && !held.next_membership.as_ref().is_some_and(voter)
        })
    }

    /// Empties the disk of a server of which [that is true](Self::may_wipe). It is told of the present
    /// members, and of itself.
    pub fn forget(&mut self, id: i64) {
        let voter = self.ensemble().member(ServerId(id)).is_some_and(|member| member.voter);
        let known = self.membership_known().cloned();
        self.wipe(id);
        if voter {
            self.coverage.hit(FaultClass::VoterWiped);
        }
        let Some(server) = self.servers.get_mut(&ServerId(id)) else { return };
        let Some(known) = known else { return };
        let mut members = known.members().to_vec();
        if known.member(ServerId(id)).is_none() {
            members.push(crate::ensemble::Ensemble::line_of(ServerId(id), true));
        }
        if let Ok(told) = Membership::build(members, [], [], 0) {
            server.config.membership = told;
        }
    }

    /// The newest membership on any disk, if it is not the first one.
    fn membership_known(&self) -> Option<&Membership> {
        let all = self.servers.values().filter_map(|s| s.disk.durable().membership.as_ref());
        all.max_by_key(|membership| membership.version())
    }
}
