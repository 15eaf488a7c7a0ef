//! The disk of a server at work: syncs begin and end, or fail.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Event;

use crate::faults::FaultClass;
use crate::network::{hit, up_to};
use crate::rule::Violation;
use crate::world::{What, World};

/// How often it is looked whether a disk that hangs goes on.
const HUNG_FOR: Duration = Duration::from_millis(20);

impl World {
    /// Lets a server's disk have no room left, or have some again.
    pub fn fill_disk(&mut self, id: i64, full: bool) {
        if let Some(server) = self.servers.get_mut(&ServerId(id)) {
            server.disk_full = full;
        }
    }

    /// Lets a server's disk make nothing durable of what it is given, and fail nothing either, or go on.
    pub fn hang_disk(&mut self, id: i64, hangs: bool) {
        if let Some(server) = self.servers.get_mut(&ServerId(id)) {
            server.disk_hangs = hangs;
        }
    }

    /// What was being synced is durable.
    pub(super) fn on_synced(&mut self, id: ServerId, incarnation: u64) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.incarnation != incarnation || server.peer.is_none() {
            return Ok(());
        }
        if server.disk_hangs {
            self.coverage.hit(FaultClass::DiskHangs);
            let leads = server.leads_clients();
            self.coverage.hits(FaultClass::LeaderDiskHangs, u64::from(leads));
            self.agenda.after(HUNG_FOR, What::Synced { id, incarnation });
            return Ok(());
        }
        // The loop is told when it goes on.
        if server.paused && (server.disk_full || self.disk.failing > 0) {
            self.agenda.after(HUNG_FOR, What::Synced { id, incarnation });
            return Ok(());
        }
        if server.disk_full {
            let leads = server.leads_clients();
            self.coverage.hits(FaultClass::LeaderDiskFull, u64::from(leads));
            return self.disk_fails(id, FaultClass::DiskFull);
        }
        if hit(&mut self.rng, self.disk.failing) {
            return self.disk_fails(id, FaultClass::DiskError);
        }
        if self.blows_in_sync(id)? {
            return Ok(());
        }
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
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

    /// Begins to make durable what has gathered.
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
