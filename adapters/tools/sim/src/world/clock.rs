//! A server's own clock: it may run fast or slow, jump forward, or stand still while its machine does.
//!
//! ```text
//!   shown │            ╱ after a jump
//!         │      ╱─ ─ │
//!         │    ╱  true time
//!         │  ╱ slow
//!         └──────────────────── the world's time
//! ```
//!
//! It never goes back, since a driver reads a monotonic one. What leases allow: two clocks that run
//! a tenth apart, so each may be [`ALLOWED`] off. A jump, or a clock that stood still when time passed,
//! is beyond that: there, only the number of the leadership tells who leads.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::time::Instant;

use crate::faults::FaultClass;
use crate::record::What as Told;
use crate::rule::Violation;
use crate::world::{Server, World};

/// A millionth part of a clock's speed is one unit; so much is the speed of the world's time.
pub(super) const TRUE: u64 = 1_000_000;
/// How far a clock may be off where leases are to hold, in millionths.
const ALLOWED: u64 = 50_000;

/// A clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// A moment of the world's time, and what was shown then.
    since: (Instant, Instant),
    rate: u64,
}

impl Clock {
    /// One that shows the world's time so far, and runs with this speed.
    pub(super) fn new(rate: u64) -> Self {
        Self { since: (Instant::ORIGIN, Instant::ORIGIN), rate }
    }

    /// What it shows.
    pub(super) fn shows(&self, now: Instant) -> Instant {
        let (from, shown) = self.since;
        shown + scaled(now.since(from), self.rate, TRUE)
    }

    /// When it will show at least this.
    pub(super) fn when(&self, shown: Instant) -> Instant {
        let (from, before) = self.since;
        from + scaled_up(shown.since(before), TRUE, self.rate)
    }

    fn is_true(&self) -> bool {
        self.rate == TRUE
    }

    /// Whether leases may rest on it.
    pub(super) fn is_allowed(&self) -> bool {
        self.rate.abs_diff(TRUE) <= ALLOWED
    }

    fn adjust(&mut self, now: Instant, ahead: Duration, rate: u64) {
        self.since = (now, self.shows(now) + ahead);
        self.rate = rate;
    }

    /// It stood still for so long until now.
    fn stood(&mut self, now: Instant, long: Duration) {
        let (from, shown) = self.since;
        self.since = (from + long.min(now.since(from)), shown);
    }
}

fn scaled(length: Duration, by: u64, of: u64) -> Duration {
    if by == of {
        return length;
    }
    let nanos = u128::from(Instant::from_origin(length).0) * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn scaled_up(length: Duration, by: u64, of: u64) -> Duration {
    if by == of {
        return length;
    }
    let nanos = (length.as_nanos() * u128::from(by)).div_ceil(u128::from(of));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Server {
    /// How long ago its clock showed that, now that it shows this: rather a little longer, as it may be off.
    pub(super) fn ago(&self, shown: Instant, that: Instant) -> Duration {
        let stood = self.stood.iter().filter(|(at, _)| *at >= that).map(|(_, stood)| *stood);
        shown.since(that) * 11 / 10 + stood.sum::<Duration>()
    }

    /// What kind of clock it has, if that is worth mentioning.
    pub(super) fn odd_clock(&self) -> Option<FaultClass> {
        match (self.clock.is_true(), self.clock.is_allowed()) {
            (true, _) => None,
            (false, true) => Some(FaultClass::ClockDrift),
            (false, false) => Some(FaultClass::ClockFarOff),
        }
    }
}

impl World {
    /// Lets a server's clock jump forward.
    ///
    /// # Errors
    ///
    /// If what the server does about it breaks a rule.
    pub fn jump_clock(&mut self, id: i64, by: Duration) -> Result<(), Violation> {
        let (id, now) = (ServerId(id), self.now());
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        server.clock.adjust(now, by, server.clock.rate);
        if server.peer.is_some() {
            self.coverage.hit(FaultClass::ClockJump);
        }
        self.trace.note(now, id, || Told::Clock(by));
        self.leases_void(now);
        self.wake(id);
        Ok(())
    }

    /// Sets the wall clock of a server forward or back, in milliseconds: what it shows of the time of day, and nothing else.
    pub(crate) fn set_wall_clock(&mut self, id: i64, by_ms: i64) {
        let Some(server) = self.servers.get_mut(&ServerId(id)) else { return };
        // Its disk is empty: it has given no id of a session yet, or has forgotten which.
        if by_ms < 0 && server.remembered.is_none() {
            return;
        }
        server.wall += by_ms;
        server.wall_max = server.wall.max(server.wall_max);
        if server.front.is_some() {
            let ahead = by_ms > 0;
            let class = if ahead { FaultClass::WallClockAhead } else { FaultClass::WallClockBack };
            self.coverage.hit(class);
        }
    }

    /// Lets a machine stand still, and its clock with it, until it is [resumed](Self::resume).
    pub fn suspend(&mut self, id: i64) {
        self.pause(id);
        let now = self.now();
        let Some(server) = self.servers.get_mut(&ServerId(id)) else { return };
        if server.paused && server.suspended.is_none() {
            server.suspended = Some(now);
            self.coverage.hit(FaultClass::Suspended);
        }
    }

    /// A server goes on; if its clock has stood still, it goes on, too.
    pub(super) fn clock_goes_on(&mut self, id: ServerId) {
        let now = self.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        if let Some(since) = server.suspended.take() {
            let stood = now.since(since);
            server.clock.stood(now, stood);
            server.stood.push((server.clock.shows(now), stood));
            // Its wall clock has gone on.
            server.wall += i64::try_from(stood.as_millis()).unwrap_or(0);
            server.wall_max = server.wall.max(server.wall_max);
            self.leases_void(now);
        }
    }

    /// Sets all clocks right from now on: they show what they show, and run as they should.
    pub(super) fn clocks_run_true(&mut self) {
        let now = self.now();
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for id in ids {
            if let Some(server) = self.servers.get_mut(&id) {
                server.clock.adjust(now, Duration::ZERO, TRUE);
            }
            self.wake(id);
        }
    }

    /// A server looks at its clock anew.
    fn wake(&mut self, id: ServerId) {
        if let Some(server) = self.servers.get_mut(&id) {
            server.tick = None;
        }
        self.schedule_tick(id);
        self.wake_front(id);
    }

    /// What was promised before now does not bind.
    pub(super) fn leases_void(&mut self, now: Instant) {
        let Some(lease) = self.lease else { return };
        self.leases_void_until = self.leases_void_until.max(now + lease + lease / 4);
    }

    /// Whether all clocks are such that leases must hold.
    pub(super) fn leases_hold(&self) -> bool {
        let sound = |server: &Server| server.suspended.is_none() && server.clock.is_allowed();
        self.now() >= self.leases_void_until && self.servers.values().all(sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_it_was_waited_for_and_never_goes_back() {
        let at = |millis| Instant::ORIGIN + Duration::from_micros(millis * 1000 + 333);
        for rate in [TRUE, 950_001, 1_050_000, 700_003, 1_400_007] {
            let mut clock = Clock::new(rate);
            let mut last = Instant::ORIGIN;
            for step in 1..200 {
                let now = at(step * 7);
                assert!(clock.shows(now) >= last, "{rate}");
                last = clock.shows(now);
                let shown = last + Duration::from_nanos(step * 1_234_567);
                let when = clock.when(shown);
                assert!(clock.shows(when) >= shown, "{rate}: a tick that comes too early");
                assert!(clock.shows(when) <= shown + Duration::from_nanos(2), "{rate}: or late");
                if step % 50 == 0 {
                    clock.adjust(now, Duration::from_secs(step), rate);
                }
                if step % 70 == 0 {
                    let since = at(step * 7 - 3);
                    let (shown, before) = (clock.shows(since), clock.shows(now));
                    clock.stood(now, now.since(since));
                    last = clock.shows(now);
                    assert!(shown.since(last) <= Duration::from_nanos(2) && last < before);
                }
            }
        }
    }
}
