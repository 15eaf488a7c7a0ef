//! Disks with little room left, among the accidents: a leader with one lets another lead, which must do no harm to anybody.

use crate::campaign::case::{Purpose, pick};
use crate::campaign::run::Run;
use crate::rule::Violation;

impl Run {
    /// After every eighth accident a disk has little room, the leader's as often as any, or all have enough again.
    pub(super) fn disks_fill(&mut self, accident: u32) -> Result<(), Violation> {
        let mut rng = self.case.fork(Purpose::LittleRoom, accident);
        let drawn = rng.below(16);
        let any = self.ids[pick(&mut rng, self.ids.len())];
        match drawn {
            0 => self.world.little_room(any, true),
            1 => self.world.little_room(self.world.leader().map_or(any, |leader| leader.0), true),
            2 | 3 => {
                self.ids.clone().into_iter().try_for_each(|id| self.world.little_room(id, false))
            }
            _ => Ok(()),
        }
    }
}
