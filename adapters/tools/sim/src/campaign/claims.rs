//! Non-members who claim to be voters, at the end of an election, where all voters are linked and nothing else is wrong.
//!
//! ```text
//!   all linked ─► non-members say that they are voters, and vote ─► all linked, the same leader
//!              ─► a voter is cut off its power, and comes back ─► linked within a second, whatever claims to be it
//! ```

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::rng::Rng;

use crate::campaign::Failure;
use crate::campaign::case::{Purpose, pick};
use crate::campaign::run::{ELECTION_MAX, Run, is_settled};
use crate::faults::CrashKind;
use crate::network::up_to;
use crate::world::World;

/// A voter that dials has a link within a second; a few ways through the network come before and after that.
const LINKED_MAX: Duration = Duration::from_millis(1500);

impl Run {
    /// In every third run in which all serve non-members claim to be voters.
    pub(super) fn non_members_claim(&mut self) -> Result<(), Failure> {
        let mut rng = self.case.fork(Purpose::Claims, 0);
        let limit = self.noticing + ELECTION_MAX;
        if rng.below(3) > 0 || self.world.run_until(is_settled, limit)?.is_none() {
            return Ok(());
        }
        let voters: Vec<i64> = self.voters();
        let all = |w: &World| voters.iter().all(|a| is_linked(w, *a, &voters));
        let linked = self.world.run_until(all, self.silent_max + ELECTION_MAX)?;
        self.found("voters without a link", self.silent_max + ELECTION_MAX, linked)?;
        let Some(leader) = self.world.leader().filter(|_| voters.len() > 1) else { return Ok(()) };
        let epoch = |w: &World| w.brief(leader.0).map(|brief| brief.current_epoch);
        let before = epoch(&self.world);
        for _ in 0..4 + rng.below(12) {
            let (target, claimed) = two(&mut rng, &voters);
            self.world.claim(target, claimed, true);
            self.world.run_for(up_to(&mut rng, Duration::from_millis(400)))?;
            let same = self.world.leader() == Some(leader) && epoch(&self.world) == before;
            if !same || !is_settled(&self.world) {
                return Err(Failure::Unstable { state: self.state() });
            }
        }
        self.restarts_among_claims(&mut rng, leader, &voters)
    }

    /// One that is not the leader crashes, and comes back while non-members claim to be it.
    fn restarts_among_claims(
        &mut self,
        rng: &mut Rng,
        leader: ServerId,
        voters: &[i64],
    ) -> Result<(), Failure> {
        let others: Vec<i64> = voters.iter().copied().filter(|id| *id != leader.0).collect();
        let gone = others[pick(rng, others.len())];
        if !self.world.ensemble().is_quorum(|id| id.0 != gone) {
            return Ok(());
        }
        let rest: Vec<i64> = voters.iter().copied().filter(|id| *id != gone).collect();
        let power = rng.below(3) > 0;
        self.world.crash(gone, if power { CrashKind::Power } else { CrashKind::Process })?;
        for _ in 0..rng.below(4) {
            // While it is missing, what is said in its name is believed: nothing is said.
            self.world.claim(rest[pick(rng, rest.len())], gone, false);
            self.world.run_for(up_to(rng, Duration::from_millis(500)))?;
        }
        self.world.start(gone);
        let begun = self.world.now();
        let all = |w: &World| rest.iter().all(|id| w.are_linked(gone, *id));
        let mut linked = None;
        while linked.is_none() && self.world.now() < begun + LINKED_MAX {
            self.world.claim(rest[pick(rng, rest.len())], gone, false);
            let left = (begun + LINKED_MAX).since(self.world.now());
            let wait = Duration::from_millis(100) + up_to(rng, Duration::from_millis(300));
            linked = self.world.run_until(all, wait.min(left))?;
        }
        self.found("a voter that came back has no link", LINKED_MAX, linked)?;
        let limit = self.noticing + ELECTION_MAX;
        let found = self.world.run_until(is_settled, limit)?;
        self.found("not all follow after the claims", limit, found).map(|_| ())
    }

    fn voters(&self) -> Vec<i64> {
        let members = self.world.ensemble().members().iter();
        members.filter(|member| member.voter).map(|member| member.id.0).collect()
    }
}

/// Whether one of them is linked with all others.
fn is_linked(world: &World, id: i64, voters: &[i64]) -> bool {
    voters.iter().all(|other| *other == id || world.are_linked(id, *other))
}

/// Two of them, of at least so many.
fn two(rng: &mut Rng, voters: &[i64]) -> (i64, i64) {
    let first = pick(rng, voters.len());
    let second = (first + 1 + pick(rng, voters.len() - 1)) % voters.len();
    (voters[first], voters[second])
}
