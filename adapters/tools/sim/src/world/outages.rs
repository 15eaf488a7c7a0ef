//! Disks that fail, and work again, under servers that go on.
//!
//! ```text
//!   a sync fails ─► Shutdown ─► what the machine says then is done, but for writes ─► nothing of the machine is left
//!                ─► the disk is tried, now and then ─► it works: another machine, with what is believed of it
//! ```
//!
//! As a driver does it. The process is the same: what surrounds the machine goes on, the service and its clients with it, and
//! what the system has in memory of the files stays readable until the power goes.

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_core::zxid::Zxid;

use crate::faults::{CrashKind, FaultClass};
use crate::network::{hit, up_to};
use crate::record::What as Told;
use crate::rule::Violation;
use crate::world::World;
use crate::world::front::{Front, Order};

impl Front {
    /// A process that goes on begins with an older state, or with the first, which a leader may have sent, too.
    pub(super) fn begins_again(&mut self, from: Option<Zxid>) {
        self.wakes = None;
        // To the core an application begins in its first state, and takes over later ones only.
        if from.is_none_or(|label| label == Zxid::ZERO) {
            self.order(Order::Adopt { label: Zxid::ZERO, tree: Bytes::new(), whole: true });
        }
    }
}

impl World {
    /// A disk fails. A server of ours gives up its role, one of ZooKeeper's ends, as do those of earlier versions.
    pub(super) fn disk_fails(&mut self, id: ServerId, class: FaultClass) -> Result<(), Violation> {
        self.coverage.hit(class);
        let old = self.network.old.contains_key(&id) || self.network.is_java(id);
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if old || server.reference.is_some() {
            self.crash(id.0, CrashKind::Process)?;
        } else {
            let now = self.agenda.now();
            self.trace.note(now, id, || Told::DiskFails);
            server.waits_for_disk = true;
            self.feed(id, Event::Shutdown)?;
            self.lose_machine(id)?;
        }
        let wait = up_to(&mut self.rng, self.restart_max);
        self.start_after(id.0, wait);
        Ok(())
    }

    /// What is left of the machine goes; the disk is left as it is found again.
    fn lose_machine(&mut self, id: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.peer.take().is_none() {
            // It has crashed on the way.
            return Ok(());
        }
        (server.brief, server.leadership, server.tick) = (None, None, None);
        server.backlog.clear();
        server.taken.clear();
        let (states, dropped) = server.disk.fail(&mut self.rng);
        self.coverage.hits(FaultClass::TailDropped, dropped);
        for done in &states {
            self.coverage.hit(FaultClass::WriteSurvived);
            self.checker.on_durable(id, done)?;
        }
        self.checker.ledger.on_crash(id);
        if let Some(crowd) = &mut self.crowd {
            crowd.judge.sessions.on_lost(id, now);
        }
        self.order(id, Order::Abandon);
        self.enter_clients();
        self.network.arrivals.retain(|(to, _)| *to != id);
        self.network.host_down(now, id, false);
        self.enter_network();
        Ok(())
    }

    /// Such a server crashes: its memory goes, or the process alone. It starts again as any that has crashed.
    pub(super) fn crash_without_disk(
        &mut self,
        id: ServerId,
        kind: CrashKind,
    ) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        self.trace.note(now, id, || Told::Crash(kind));
        (server.waits_for_disk, server.paused, server.suspended) = (false, false, None);
        server.front = None;
        if kind == CrashKind::Power {
            server.disk.lose_memory();
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.on_crash(id, kind == CrashKind::Power, now);
        }
        self.enter_clients();
        Ok(())
    }

    /// Whether a server has given up its role for its disk, and goes on without.
    pub(super) fn waits_for_disk(&self, id: ServerId, incarnation: u64) -> bool {
        self.servers.get(&id).is_some_and(|s| s.waits_for_disk && s.incarnation == incarnation)
    }

    /// The disk of a server is tried before that starts on it; false if it does not work yet, and is tried again later.
    pub(super) fn tries_disk(&mut self, id: ServerId) -> bool {
        let Some(server) = self.servers.get_mut(&id) else { return false };
        if !server.waits_for_disk {
            return true;
        }
        let fails = server.disk_full || server.disk_hangs || server.paused;
        if fails || hit(&mut self.rng, self.disk.failing) {
            self.coverage.hit(FaultClass::DiskTried);
            let wait = up_to(&mut self.rng, self.restart_max);
            self.start_after(id.0, wait);
            return false;
        }
        server.waits_for_disk = false;
        self.coverage.hit(FaultClass::DiskRecovered);
        true
    }
}
