//! The lease of a leader: until when a quorum has promised to establish no other, and whether work may begin.

use alloc::vec::Vec;

use crate::context::Context;
use crate::leader::broadcast::Broadcast;
use crate::leader::learners::Learners;
use crate::leader::pending::Step;
use crate::lease::relied_on;
use crate::quorum::{Quorum, Support};
use crate::time::Instant;
use crate::timers::Timer;

impl Broadcast {
    /// Works out anew until when a quorum has promised to establish no other leader, and sees to it that the
    /// leadership ends then. It may be earlier than before: a learner's promise goes with its link.
    pub fn renew(&mut self, cx: &mut Context<'_>, learners: &Learners) {
        if cx.config.lease.is_none() {
            return;
        }
        let mut until = promised(cx, learners, cx.quorum);
        if self.change.is_some() {
            // As long as a change is under way, no leader is established without a quorum of the present voters.
            // What is told has to hold afterwards, too: it moves on no further than the next ones have come.
            let present = promised(cx, learners, &cx.config.membership.quorum());
            until = present.min(until.max(self.lease));
        }
        if self.awaits_lease {
            // It may have come when it was over: of a first one that ended before it began no caller is told.
            until = until.filter(|until| *until > cx.now);
        }
        self.awaits_lease &= until.is_none() && !may_begin_without(cx, learners);
        if let Some(until) = until.or(self.lease.map(|_| cx.now)) {
            self.lease = Some(until);
            cx.timers.set(Timer::Lease, until);
        }
    }

    /// Whether what was told of the lease holds when the change that is under way is in force: a quorum of the
    /// next voters, too, has promised so much, or enough of them never promise anything.
    pub fn is_promised(&self, cx: &Context<'_>, learners: &Learners) -> bool {
        self.lease.is_none()
            || promised(cx, learners, cx.quorum) >= self.lease
            || needs_others(cx, learners)
    }

    /// Whether the lease is over, and with it the leadership. While the leadership is on offer no caller counts on it, and
    /// it is to be taken.
    pub fn has_lost(&self, now: Instant) -> bool {
        let offered = self.transfer.as_ref().is_some_and(|h| matches!(h.step, Step::Offered(_)));
        !offered && self.lease.is_some_and(|until| until <= now)
    }
}

/// Until when a quorum, ourselves included, has promised to establish no other leader. A quorum of votes alone: what an
/// arbiter says binds no voter, and may be said to the other of two servers, too.
fn promised(cx: &Context<'_>, learners: &Learners, quorum: &Quorum) -> Option<Instant> {
    let length = cx.config.lease?;
    let mut promised: Vec<_> = learners.promised().collect();
    promised.sort_unstable_by(|a, b| b.cmp(a));
    let mut support = quorum.support();
    support.add(quorum, cx.config.id);
    let is_quorum = |support: &Support| support.is_quorum(quorum);
    let mut sent = Some(cx.now).filter(|_| is_quorum(&support));
    for (at, id) in promised {
        if sent.is_some() {
            break;
        }
        support.add(quorum, id);
        sent = is_quorum(&support).then_some(at);
    }
    sent.map(|at| at + relied_on(length))
}

/// Whether a leader that will have no lease may let work begin: each of a quorum has promised as much as it ever will, so
/// that no other leader counts on a lease. A quorum that has given one promises always; a server that is in both has
/// promised us to establish no other, after its acknowledgement of our history, which may be as old as a pause of ours.
fn may_begin_without(cx: &Context<'_>, learners: &Learners) -> bool {
    let Some(length) = cx.config.lease else { return true };
    let mut bound = cx.quorum.support();
    bound.add(cx.quorum, cx.config.id);
    for (at, id) in learners.promised() {
        if at + relied_on(length) > cx.now {
            bound.add(cx.quorum, id);
        }
    }
    for learner in learners.values().filter(|l| l.votes && l.is_synced() && !l.leases) {
        bound.add(cx.quorum, learner.id);
    }
    needs_others(cx, learners) && bound.is_enough(cx.quorum)
}

/// Whether there is a quorum here, and none without voters that promise no leases.
fn needs_others(cx: &Context<'_>, learners: &Learners) -> bool {
    let mut promising = cx.quorum.support();
    promising.add(cx.quorum, cx.config.id);
    let mut all = promising.clone();
    for learner in learners.values().filter(|l| l.votes && l.is_synced()) {
        all.add(cx.quorum, learner.id);
        if learner.leases {
            promising.add(cx.quorum, learner.id);
        }
    }
    all.is_enough(cx.quorum) && !promising.is_quorum(cx.quorum)
}
