//! A server's disk at work: syncs that begin and end, snapshots that are put there.

use quorate_core::id::ServerId;
use quorate_core::input::Event;

use crate::checker::Violation;
use crate::faults::FaultClass;
use crate::network::{hit, up_to};
use crate::world::{What, World};

impl World {
    pub(super) fn on_synced(&mut self, id: ServerId, incarnation: u64) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.incarnation != incarnation || server.peer.is_none() {
            return Ok(());
        }
        let (states, last) = server.disk.complete();
        for done in &states {
            self.checker.on_durable(id, done)?;
        }
        self.publish(id)?;
        self.begin_sync(id);
        match last {
            Some(ticket) => self.feed(id, Event::Persisted(ticket)),
            None => Ok(()),
        }
    }

    pub(super) fn begin_sync(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if !server.disk.begin() {
            return;
        }
        let incarnation = server.incarnation;
        let range = self.disk.sync_max.saturating_sub(self.disk.sync_min);
        let mut wait = self.disk.sync_min + up_to(&mut self.rng, range);
        if hit(&mut self.rng, self.disk.slow) {
            wait += up_to(&mut self.rng, self.disk.slow_max);
            self.coverage.hit(FaultClass::SlowDisk);
        }
        self.agenda.after(wait, What::Synced { id, incarnation });
    }
}
