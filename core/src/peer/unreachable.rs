//! A quorum port that accepts no connections: who has one must not lead.
//!
//! ```text
//!   an accept fails ──── syncLimit less a tick ────► the leadership is handed over, or given up
//!        │                                             │
//!        │                                             ▼
//!        │              ┌── proposes nobody, follows whoever has as much ◄──┐
//!        │              │ initLimit: no other server could lead                 │ initLimit
//!        │              └──────────────────► stands for election ───────────┘
//!        └──── an accept succeeds, or waits for a connection: as if nothing had been
//! ```
//!
//! Followers that a leader has stay with it, and so it would lead on, but no server that lost the link could come
//! back. Its history and its id may be the best, and its election links live: left to the election it would win again
//! and again. ZooKeeper's leader gives up at once when its acceptors end (`Leader.LearnerCnxAcceptor`), retries
//! what it takes for passing errors for ever, and is elected again either way.
//!
//! A port that works may be blocked on the way, by a firewall that lets elections through. A server learns that when it was
//! elected, and none came though their election links stand: it says so.
//!
//! What a single attempt to accept has come to is the driver's affair, and so is opening the socket anew.

use core::time::Duration;

use crate::input::Plane;
use crate::leader::pending::Purpose;
use crate::peer::Peer;
use crate::peer::role::Role;
use crate::peer::shared::SharedParts;
use crate::report::Reason;
use crate::timers::Timer;

impl SharedParts {
    /// Whether we may be elected in the election that begins now. Where we could not be followed, and there is
    /// another server to lead, only every second `patience`.
    pub(super) fn may_stand(&mut self, patience: Duration) -> bool {
        if !self.listening.unreachable || !self.others_may_lead() {
            return true;
        }
        let (stands, until) = self.listening.stand(self.now, patience);
        self.timers.set(Timer::Backoff, until);
        stands
    }

    /// Whether there is another voter that can be elected.
    fn others_may_lead(&self) -> bool {
        let quorum = self.elector.quorum();
        quorum.voters().any(|id| id != self.config.id && quorum.weight(id) > 0)
    }

    /// How long a leader's quorum port may fail: its followers would give it up a tick later.
    fn accept_patience(&self) -> Duration {
        let timing = &self.config.timing;
        timing.sync_time().saturating_sub(timing.tick).max(timing.tick)
    }
}

impl Peer {
    /// Why a role ends: of a leader that waited in vain it is told whether any came at all.
    pub(super) fn reason_to_leave(&mut self, reason: Reason) -> Reason {
        let in_vain = matches!(reason, Reason::NoQuorum { .. } | Reason::Deserted { .. });
        match self.context() {
            (Role::Leading(leader), cx) if in_vain && leader.is_out_of_reach(&cx) => {
                Reason::NoneCame
            }
            _ => reason,
        }
    }

    /// A port accepts no connections. On the election port others dial, and are dialled by us: the election can do
    /// without those that cannot.
    pub(super) fn on_listen_failed(&mut self, plane: Plane) {
        if plane == Plane::Quorum && !self.shared.listening.failing {
            self.shared.listening.failing = true;
            let patience = self.shared.accept_patience();
            self.shared.timers.after(Timer::Listening, self.shared.now, patience);
        }
    }

    /// A port accepts connections again.
    pub(super) fn on_listening(&mut self, plane: Plane) {
        if plane == Plane::Election {
            return;
        }
        let before = core::mem::take(&mut self.shared.listening);
        self.shared.timers.stop(Timer::Listening);
        if before.unreachable && matches!(self.role, Role::Looking) {
            self.shared.timers.stop(Timer::Backoff);
            self.vote();
        }
    }

    /// The quorum port has failed for too long, or goes on to fail for as long again: by then we may lead, or
    /// another server could lead that could not before.
    pub(super) fn on_unreachable(&mut self) {
        let patience = self.shared.accept_patience();
        self.shared.timers.after(Timer::Listening, self.shared.now, patience);
        let before = core::mem::replace(&mut self.shared.listening.unreachable, true);
        if !self.shared.others_may_lead() {
            return;
        }
        match self.role {
            Role::Looking if !before => self.vote(),
            // Who stands because no other server could lead has as long as any other to be established.
            Role::Leading(_) if !before || self.serving.is_some() => {
                self.with_leader(|leader, cx| leader.on_transfer(cx, None, Purpose::Unreachable));
            }
            Role::Looking
            | Role::Leading(_)
            | Role::Idle
            | Role::Fencing
            | Role::Resting
            | Role::Learning(_)
            | Role::Stopped => {}
        }
    }
}
