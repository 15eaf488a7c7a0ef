//! Quorum ports that accept no connections: among the accidents, and at the end of an election, where it is asked
//! who leads then.

use std::time::Duration;

use quorate_core::id::ServerId;

use crate::campaign::Failure;
use crate::campaign::case::{Purpose, pick};
use crate::campaign::run::{Run, can, is_settled};
use crate::faults::CrashKind;
use crate::rule::Violation;
use crate::world::World;

impl Run {
    /// After every eighth accident a port begins to fail, or all accept again.
    pub(super) fn ports_fail(&mut self, accident: u32) -> Result<(), Violation> {
        let mut rng = self.case.fork(Purpose::Ports, accident);
        let (drawn, refuses) = (rng.below(16), rng.below(2) == 0);
        let any = self.ids[pick(&mut rng, self.ids.len())];
        match drawn {
            0 => self.world.deafen(any, refuses),
            1 => {
                let leader = self.world.leader().map_or(any, |leader| leader.0);
                self.world.deafen(leader, refuses)
            }
            2 | 3 => self.ids.clone().into_iter().try_for_each(|id| self.world.undeafen(id)),
            _ => Ok(()),
        }
    }

    /// In every third run in which all serve, the port of the leader fails for good, and nothing else is wrong.
    /// Another one leads within syncLimit and one election; when that one ends, and there is a third, the third.
    /// Its own vote may be needed for either.
    pub(super) fn nobody_can_follow(&mut self) -> Result<(), Failure> {
        let mut rng = self.case.fork(Purpose::Ports, 0);
        let Some(deaf) = self.world.leader().filter(|_| rng.below(3) == 0) else { return Ok(()) };
        let others = |world: &World, gone: Option<ServerId>| {
            let able = |id: &ServerId| world.ensemble().may_lead(*id) && can(world, *id);
            world.ensemble().ids().filter(able).any(|id| id != deaf && Some(id) != gone)
        };
        if !others(&self.world, None) {
            return Ok(());
        }
        self.world.deafen(deaf.0, rng.below(2) == 0)?;
        let limit = self.sync_time + self.election_max;
        let another = |w: &World| w.leader().is_some_and(|leader| leader != deaf);
        let found = self.world.run_until(another, limit)?;
        self.found("no leader that can be followed", limit, found)?;
        // A server that follows one to whom the leadership was given in vain finds the other when that one gives up.
        let limit = self.noticing + self.election_max;
        let found = self.world.run_until(|w| another(w) && is_settled(w), limit)?;
        self.found("not all follow the one that can be followed", limit, found)?;
        self.world.run_for(self.sync_time + Duration::from_secs(1))?;
        let Some(second) = self.world.leader().filter(|leader| *leader != deaf) else {
            return Err(Failure::Unstable { state: self.state() });
        };
        let left = self.world.ensemble().is_quorum(|id| id != second);
        if left && others(&self.world, Some(second)) && !self.is_needed_and_ahead(deaf, second) {
            self.world.crash(second.0, CrashKind::Process)?;
            let rest: Vec<_> = self.world.ensemble().ids().filter(|id| *id != second).collect();
            let third = |w: &World| {
                let leads = w.leader().is_some_and(|leader| leader != deaf && leader != second);
                leads && w.is_settled_among(rest.iter().copied().filter(|id| can(w, *id)))
            };
            let limit = self.election_max;
            let found = self.world.run_until(third, limit)?;
            self.found("no other leader that can be followed", limit, found)?;
            self.world.start(second.0);
        }
        self.world.undeafen(deaf.0)?;
        let limit = self.noticing + self.election_max;
        let found = self.world.run_until(is_settled, limit)?;
        self.found("not all follow when the port accepts again", limit, found).map(|_| ())
    }

    /// Whether no server can lead but one that cannot be followed: without its vote the others are no quorum when `gone`
    /// is down, and it votes for none of them, since each has less. It may be the label of a snapshot alone: a server
    /// that is brought up by one ends at the beginning of the epoch, and those before it at the end of the last.
    fn is_needed_and_ahead(&self, deaf: ServerId, gone: ServerId) -> bool {
        let ensemble = self.world.ensemble();
        let ends = |id: ServerId| {
            let held = self.world.durable(id.0);
            held.map(|held| (held.current_epoch, held.last()))
        };
        let others = ensemble.ids().filter(|id| *id != deaf && *id != gone);
        let behind = |id: ServerId| !ensemble.may_lead(id) || ends(id) < ends(deaf);
        !ensemble.is_quorum(|id| id != deaf && id != gone) && others.into_iter().all(behind)
    }
}
