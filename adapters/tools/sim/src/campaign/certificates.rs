//! Servers whose certificates the others refuse: among the accidents, and at the end of an election, where nothing else
//! is wrong.
//!
//! ```text
//!   all serve ─► a follower's is refused, and its links end ─► the others go on, nothing is elected, it dials in moderation
//!             ─► the leader's is refused, and its links end ─► the others elect another
//!             ─► it is believed again                       ─► all serve
//! ```

use std::time::Duration;

use quorate_core::id::ServerId;

use crate::campaign::Failure;
use crate::campaign::case::{Purpose, pick};
use crate::campaign::run::{Run, can, is_settled};
use crate::world::World;

/// How often two servers dial each other in a second, at most, of which one refuses the other's certificate: each once, with
/// jitter, and a few times more when the refused one asks everybody anew, which is ever later.
const DIALS_A_SECOND_MAX: u64 = 4;
/// Until then the waits grow.
const AT_FIRST: Duration = Duration::from_secs(10);
/// How long dials are counted.
const COUNTED: Duration = Duration::from_secs(20);

impl Run {
    /// After every eighth accident the certificate of one is refused, or all are believed again.
    pub(super) fn certificates_are_refused(&mut self, accident: u32) {
        let mut rng = self.case.fork(Purpose::Certificates, accident);
        let drawn = rng.below(16);
        let any = self.ids[pick(&mut rng, self.ids.len())];
        match drawn {
            0 => self.world.distrust(any, true),
            1 => self.world.distrust(self.world.leader().map_or(any, |leader| leader.0), true),
            2 | 3 => self.ids.iter().for_each(|id| self.world.distrust(*id, false)),
            _ => {}
        }
    }

    /// In every third run in which all serve, the certificate of one is refused, and its links end.
    pub(super) fn one_is_distrusted(&mut self) -> Result<(), Failure> {
        let mut rng = self.case.fork(Purpose::Certificates, 0);
        let limit = self.noticing + self.election_max;
        if rng.below(3) > 0 || self.world.run_until(is_settled, limit)?.is_none() {
            return Ok(());
        }
        let Some(leader) = self.world.leader() else { return Ok(()) };
        let any = ServerId(self.ids[pick(&mut rng, self.ids.len())]);
        let one = if rng.below(3) == 0 { leader } else { any };
        let ensemble = self.world.ensemble();
        let able = |id: ServerId| id != one && can(&self.world, id);
        if !ensemble.is_quorum(able) || !ensemble.ids().any(|id| able(id) && ensemble.may_lead(id))
        {
            return Ok(());
        }
        let rest: Vec<_> = ensemble.ids().filter(|id| able(*id)).collect();
        self.world.distrust(one.0, true);
        for other in self.ids.clone() {
            self.world.cut(one.0, other);
        }
        if one == leader {
            let another = |w: &World| {
                let led = w.leader().is_some_and(|leader| leader != one);
                led && w.is_settled_among(rest.iter().copied().filter(|id| can(w, *id)))
            };
            let found = self.world.run_until(another, limit)?;
            self.found("no leader whose certificate is believed", limit, found)?;
        } else {
            self.goes_on_without(one, leader, &rest)?;
        }
        self.world.distrust(one.0, false);
        let found = self.world.run_until(is_settled, limit)?;
        self.found("not all follow when all certificates are believed", limit, found).map(|_| ())
    }

    /// A follower that is refused changes nothing for the others, and does not wear them out.
    fn goes_on_without(
        &mut self,
        one: ServerId,
        leader: ServerId,
        rest: &[ServerId],
    ) -> Result<(), Failure> {
        let epoch = |w: &World| w.brief(leader.0).map(|brief| brief.current_epoch);
        let before = epoch(&self.world);
        self.world.run_for(self.noticing + AT_FIRST)?;
        let dials = self.world.dials();
        self.world.run_for(COUNTED)?;
        let same = self.world.leader() == Some(leader) && epoch(&self.world) == before;
        if !same || !self.world.is_settled_among(rest.iter().copied()) {
            return Err(Failure::Unstable { state: self.state() });
        }
        let dials = self.world.dials() - dials;
        let pairs = self.ids.iter().filter(|id| **id != one.0).count() as u64;
        let most = COUNTED.as_secs() * pairs * DIALS_A_SECOND_MAX;
        if dials > most {
            let state = format!("{dials} dials, and {most} are enough\n{}", self.state());
            return Err(Failure::Stuck { what: "servers dial without end", limit: COUNTED, state });
        }
        Ok(())
    }
}
