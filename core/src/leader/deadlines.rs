//! What is due at a leader: half ticks and their pings, and the end of its patience with a quorum, a learner or its disk.
//!
//! ```text
//!   half a tick ─► our disk hangs? ─► silent learners go ─► PING ─► (each tick) still a quorum? ─► a preferred follower?
//! ```
//!
//! Each deadline has one timer, set where the wait begins; here stands what follows when it has passed in vain.

use core::time::Duration;

use crate::context::{Context, RoleChange};
use crate::leader::broadcast::quorum_left;
use crate::leader::pending::Purpose;
use crate::leader::state::Phase;
use crate::leader::transfer::{plan, steps};
use crate::leader::{Leader, reconfiguration};
use crate::report::Reason;
use crate::timers::Timer;

/// How many half ticks lie between two attempts to let a more wished follower lead.
const PREFER_HALVES: u64 = 4;

impl Leader {
    /// Lets a follower lead that is wished to lead more than we are. If that comes to nothing it is tried
    /// again, but not at once.
    fn prefer(&mut self, cx: &mut Context<'_>) -> RoleChange {
        if self.halves % PREFER_HALVES != 0 {
            return RoleChange::Stay;
        }
        match (&self.state.phase, plan::preferred(cx, &self.state.learners)) {
            (Phase::Broadcast(broadcast), Some(to)) if broadcast.transfer.is_none() => {
                self.on_transfer(cx, Some(to), Purpose::Preferred)
            }
            _ => RoleChange::Stay,
        }
    }

    /// A deadline has passed.
    pub fn on_timer(&mut self, cx: &mut Context<'_>, timer: Timer) -> RoleChange {
        match timer {
            Timer::Init => {
                self.give_up(cx);
                let members = match &self.state.phase {
                    Phase::Discovery(discovery) => discovery.members(cx),
                    Phase::Synchronization(synchronization) => synchronization.members(cx),
                    Phase::Broadcast(_) => return RoleChange::Stay,
                };
                RoleChange::leave(Reason::NoQuorum { phase: self.state.phase(), members })
            }
            Timer::Ping => self.on_ping(cx),
            Timer::Transfer => match &mut self.state.phase {
                Phase::Broadcast(broadcast) if broadcast.change.is_some() => {
                    reconfiguration::parted(cx, broadcast, &mut self.state.learners, self.round)
                }
                Phase::Broadcast(broadcast) => steps::late(cx, broadcast, &mut self.state.learners),
                Phase::Discovery(_) | Phase::Synchronization(_) => RoleChange::Stay,
            },
            Timer::Lease => match &self.state.phase {
                Phase::Broadcast(broadcast) if broadcast.has_lost(cx.now) => {
                    RoleChange::leave(Reason::LeaseOver)
                }
                Phase::Synchronization(_) => self.state.advance(cx),
                Phase::Broadcast(_) | Phase::Discovery(_) => RoleChange::Stay,
            },
            Timer::Start
            | Timer::Backoff
            | Timer::Notification
            | Timer::Finalize
            | Timer::Redial
            | Timer::Claim
            | Timer::Candidacy
            | Timer::Heartbeat
            | Timer::Introduction
            | Timer::Listening
            | Timer::Connect
            | Timer::ConnectLimit
            | Timer::Silence => RoleChange::Stay,
        }
    }

    /// Twice per tick: silent learners are given up, the others pinged; once per tick the quorum is
    /// looked for.
    fn on_ping(&mut self, cx: &mut Context<'_>) -> RoleChange {
        cx.timers.after(Timer::Ping, cx.now, cx.config.timing.ping_interval());
        self.halves += 1;
        self.warned = false;
        let timing = &cx.config.timing;
        let limit = match self.state.phase {
            Phase::Broadcast(_) => timing.sync_time(),
            // Learners have as long.
            Phase::Discovery(_) | Phase::Synchronization(_) => timing.init_time(),
        };
        if let Some(waits) = self.disk_hangs(cx, limit) {
            return RoleChange::leave(Reason::DiskHangs { waits });
        }
        for (link, reason) in self.state.learners.overdue(cx) {
            self.state.drop_learner(cx, link, reason);
        }
        self.state.ping(cx);
        if let Phase::Broadcast(broadcast) = &mut self.state.phase {
            cx.probe();
            // A leader that needs no other voter's promise renews its lease by itself.
            broadcast.renew(cx, &self.state.learners);
        }
        if matches!(self.state.phase, Phase::Broadcast(_)) && self.halves % 2 == 0 {
            let synced = self.state.learners.values().filter(|l| l.votes && l.is_synced());
            if let Err(members) = quorum_left(cx, synced.map(|l| l.id)) {
                return RoleChange::leave(Reason::NoQuorum { phase: self.state.phase(), members });
            }
        }
        self.prefer(cx)
    }

    /// For how long our disk has owed us what it had been given when we last looked, if that is too long: a follower
    /// would be dropped for that. The others can commit without our disk, so no other server would notice, but everything
    /// that we promise waits for it. A write is found at the first half tick after it, and so is the end of our
    /// patience: it all comes to `limit` at most, if that is two ticks or more.
    fn disk_hangs(&mut self, cx: &Context<'_>, limit: Duration) -> Option<Duration> {
        let waits = self.unwritten.filter(|(ticket, _)| !cx.outbox.is_durable(*ticket));
        let (_, since) = match waits {
            Some(waits) => waits,
            None => {
                self.unwritten = (!cx.outbox.is_settled()).then(|| (cx.outbox.last(), cx.now));
                self.unwritten?
            }
        };
        let tick = cx.config.timing.tick;
        let patience = limit.saturating_sub(tick).max(tick);
        let waits = cx.now.since(since);
        (waits >= patience).then_some(waits)
    }
}
