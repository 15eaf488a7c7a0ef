//! Crashes: at a moment, at an output or a write; what is left of the server, and its restart.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::output::Output;
use quorate_core::rng::Rng;
use quorate_core::vote::ServerState;

use crate::disk::Survival;
use crate::faults::CrashKind;
use crate::faults::FaultClass;
use crate::record::What as Told;
use crate::rule::Violation;
use crate::world::{Fuse, Trap, World};

/// Sets the draws of what a crash leaves of a transaction apart from others.
const PAGES: u64 = 0x0050_6167_6573;

impl World {
    /// Crashes a server, if it runs; writes that are not synced may be lost.
    ///
    /// # Errors
    ///
    /// If its disk is left in a state that no crash may leave.
    pub fn crash(&mut self, id: i64, kind: CrashKind) -> Result<(), Violation> {
        let (id, now) = (ServerId(id), self.now());
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.waits_for_disk && server.peer.is_none() {
            return self.crash_without_disk(id, kind);
        }
        let Some(brief) = server.brief.take() else { return Ok(()) };
        self.trace.note(now, id, || Told::Crash(kind));
        (server.peer, server.leadership) = (None, None);
        (server.paused, server.suspended) = (false, None);
        (server.disk_hangs, server.waits_for_disk) = (false, false);
        server.backlog.clear();
        server.tick = None;
        // Drawn apart, so that it changes nothing else.
        let pages = (self.seed ^ PAGES ^ (id.0 as u64) << 48).wrapping_add(server.incarnation);
        let mut pages = Rng::new(Rng::new(pages).next_u64());
        if kind == CrashKind::Power {
            server.disk.lose_memory();
        }
        let (states, lost) = server.disk.crash(self.disk.survival, &mut self.rng, &mut pages);
        self.coverage.hit(match kind {
            CrashKind::Process => FaultClass::ProcessCrash,
            CrashKind::Power => FaultClass::PowerLoss,
        });
        if brief.serving && brief.state == ServerState::Leading {
            self.coverage.hit(FaultClass::LeaderCrash);
        }
        self.coverage.hits(FaultClass::WriteLost, lost.all);
        self.coverage.hits(FaultClass::TornWrite, u64::from(lost.torn));
        self.coverage.hits(FaultClass::MisorderedWrites, u64::from(lost.misordered));
        self.coverage.hits(FaultClass::HoledWrite, u64::from(lost.holed));
        self.coverage.hits(FaultClass::MarkLost, u64::from(lost.unmarked));
        if self.disk.forgets {
            server.disk.forget();
        }
        server.taken.clear();
        for done in &states {
            self.coverage.hit(FaultClass::WriteSurvived);
            self.checker.on_durable(id, done)?;
        }
        self.checker.ledger.on_crash(id);
        if let Some(server) = self.servers.get_mut(&id) {
            server.front = None;
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.on_crash(id, kind == CrashKind::Power, now);
            crowd.judge.sessions.on_lost(id, now);
        }
        self.enter_clients();
        self.network.arrivals.retain(|(to, _)| *to != id);
        self.network.host_down(now, id, kind == CrashKind::Power);
        self.enter_network();
        Ok(())
    }

    /// Crashes servers at the same moment, as when a site loses its power.
    ///
    /// # Errors
    ///
    /// As [`World::crash`].
    pub fn crash_all(&mut self, ids: &[i64], kind: CrashKind) -> Result<(), Violation> {
        let writing = |id: &&i64| {
            let server = self.servers.get(&ServerId(**id));
            server.is_some_and(|server| server.peer.is_some() && server.disk.under_way() > 0)
        };
        let writing = ids.iter().filter(writing).count();
        if kind == CrashKind::Power && writing > ids.len() / 2 {
            self.coverage.hit(FaultClass::SitePowerLoss);
        }
        ids.iter().try_for_each(|id| self.crash(*id, kind))
    }

    /// Damages what the disk of a server that is down made durable last: the width of one sync, at which a
    /// start cannot tell damage from what a power cut tore. Tells whether there was anything.
    ///
    /// # Panics
    ///
    /// If the server runs.
    pub fn damage_last_batch(&mut self, id: i64) -> bool {
        assert!(!self.is_up(id), "server {id} runs");
        let id = ServerId(id);
        let Some(server) = self.servers.get_mut(&id) else { return false };
        let any = server.disk.damage_last_batch();
        self.checker.on_damage(id, server.disk.durable());
        any
    }

    /// Empties the disk of a server that is down.
    ///
    /// # Panics
    ///
    /// If the server runs.
    pub fn wipe(&mut self, id: i64) {
        assert!(!self.is_up(id), "server {id} runs; its disk cannot be exchanged");
        let (now, id) = (self.now(), ServerId(id));
        if let Some(server) = self.servers.get_mut(&id) {
            server.disk.wipe();
            (server.waits_for_disk, server.front) = (false, None);
            server.remembered = None;
            // Without a disk the ids of sessions are new by the clock alone: that is not set back at the same time.
            server.wall = server.wall_max;
            self.trace.note(now, id, || Told::Wipe);
            self.checker.on_wipe(id);
            self.coverage.hit(FaultClass::Wipe);
            if self.leases_change {
                // A start counts as a promise as long as leases are by then; how long they were stood on the disk.
                self.checker.leases.on_wipe(id);
                self.leases_void(now);
            }
        }
    }

    /// Crashes a server instead of letting it carry out another output after so many more of them, reports
    /// not counted; it starts again after a while, if that is said.
    pub fn crash_after_outputs(&mut self, id: i64, count: u64, again: Option<Duration>) {
        self.fuse = Some(Fuse { id: ServerId(id), left: count, again });
    }

    /// Cuts a server off its power when so many more of its writes are durable, before it is told of the last
    /// of them; what was being written behind that is lost. It starts again after a while, if that is said.
    pub fn crash_after_writes(&mut self, id: i64, count: u64, again: Option<Duration>) {
        self.write_fuse = Some(Fuse { id: ServerId(id), left: count, again });
    }

    /// Another crash behind the one of [`crash_after_outputs`](Self::crash_after_outputs), of the same server or
    /// another, counted from there.
    pub fn then_crash_after_outputs(&mut self, id: i64, count: u64, again: Option<Duration>) {
        self.next_fuse = Some(Fuse { id: ServerId(id), left: count, again });
    }

    /// Another behind the one of [`crash_after_writes`](Self::crash_after_writes), likewise.
    pub fn then_crash_after_writes(&mut self, id: i64, count: u64, again: Option<Duration>) {
        self.next_write_fuse = Some(Fuse { id: ServerId(id), left: count, again });
    }

    /// Crashes a server just before it carries out the first output that `at` accepts.
    pub fn crash_before(&mut self, id: i64, at: fn(&Output) -> bool) {
        self.traps.insert(ServerId(id), Trap { at, after: false });
    }

    /// Crashes a server just after it has carried out the first output that `at` accepts.
    pub fn crash_after(&mut self, id: i64, at: fn(&Output) -> bool) {
        self.traps.insert(ServerId(id), Trap { at, after: true });
    }

    /// The first server that is to crash at a point to which it has not come.
    pub(crate) fn trapped(&self) -> Option<ServerId> {
        self.traps.keys().next().copied()
    }

    /// Whether this server is to crash at such a point.
    pub(crate) fn is_trapped(&self, id: i64) -> bool {
        self.traps.contains_key(&ServerId(id))
    }

    /// Lets any step that has outputs end in a crash with this chance, in 65536ths; the server starts
    /// again within a second.
    pub fn crash_within_steps(&mut self, of_65536: u64) {
        self.crash_within = of_65536;
    }

    /// Whether a server has lost its power while its disk was writing.
    pub(super) fn blows_in_sync(&mut self, id: ServerId) -> Result<bool, Violation> {
        let Some(fuse) = self.write_fuse.as_mut().filter(|fuse| fuse.id == id) else {
            return Ok(false);
        };
        let Some(server) = self.servers.get_mut(&id) else { return Ok(false) };
        let durable = match server.disk.complete_some(fuse.left) {
            Ok(durable) => durable,
            Err(left) => {
                fuse.left = left;
                return Ok(false);
            }
        };
        let again = fuse.again;
        self.write_fuse = self.next_write_fuse.take();
        for done in &durable {
            self.checker.on_durable(id, done)?;
        }
        self.coverage.hit(FaultClass::CrashInsideSync);
        let survival = std::mem::replace(&mut self.disk.survival, Survival::Nothing);
        let crashed = self.crash(id.0, CrashKind::Power);
        self.disk.survival = survival;
        if let Some(wait) = again {
            self.start_after(id.0, wait);
        }
        crashed.map(|()| true)
    }

    /// Whether the fuse of a server has burnt down; counts what others could notice.
    pub(super) fn blows(&mut self, id: ServerId, output: &Output) -> bool {
        let Some(fuse) = self.fuse.as_mut().filter(|fuse| fuse.id == id) else { return false };
        if matches!(output, Output::Report(_)) {
            return false;
        }
        if fuse.left == 0 {
            let again = fuse.again;
            self.fuse = self.next_fuse.take();
            if let Some(wait) = again {
                self.start_after(id.0, wait);
            }
            return true;
        }
        fuse.left -= 1;
        false
    }
}
