//! The steps of a leadership transfer: when the next one may be taken, and what ends it.
//!
//! ```text
//!   begin ─► go_on … ─► released ─► go_on … ─► (the follower closes its link) hand_on
//!              └────────────┴──────────┴─────► call_off
//! ```
//!
//! All that is decided here is when the next step may be taken; none waits for anything by itself.

use alloc::boxed::Box;

use crate::context::{Context, RoleChange};
use crate::id::{LinkId, ReleaseId, ServerId};
use crate::leader::broadcast::Broadcast;
use crate::leader::learners::Learners;
use crate::leader::pending::{Purpose, Step, Transfer};
use crate::leader::progress::{Stage, send};
use crate::leader::transfer::plan::{choose, is_heard};
use crate::message::Packet;
use crate::output::Output;
use crate::reasons::TransferRefused;
use crate::report::Reason;
use crate::timers::Timer;
use crate::vote::{Round, Vote};

/// Another server is to lead, or anybody else: the present round would be over thereby.
pub fn begin(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    round: Round,
    to: Option<ServerId>,
    purpose: Purpose,
) -> RoleChange {
    if let Some(under_way) = &mut broadcast.transfer {
        if !under_way.serves(to, purpose) {
            return keep(cx, purpose, TransferRefused::Underway);
        }
        return RoleChange::Stay;
    }
    if broadcast.change.is_some() {
        return keep(cx, purpose, TransferRefused::Reconfiguring);
    }
    match choose(cx, learners, to, purpose) {
        Ok(to) => {
            broadcast.transfer = Some(Box::new(Transfer::new(to, round.next(), purpose)));
            let timing = &cx.config.timing;
            // A follower says with each ping whether it hears a quorum; right after an election it may not know yet.
            let patience =
                if is_named_heard(cx, learners, to) { timing.init_time() } else { timing.recent() };
            cx.timers.after(Timer::Transfer, cx.now, patience);
            go_on(cx, broadcast, learners)
        }
        Err(kept) => keep(cx, purpose, kept),
    }
}

/// Goes on with a transfer as far as can be.
pub fn go_on(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
) -> RoleChange {
    let (done, epoch, proposed) = (broadcast.is_done(cx), broadcast.epoch, broadcast.proposed());
    let Some(transfer) = &mut broadcast.transfer else { return RoleChange::Stay };
    let (to, round) = (transfer.to, transfer.round);
    let link = learners.link_of(to);
    let Some((link, learner)) = link.and_then(|link| Some((link, learners.get_mut(link)?))) else {
        return call_off(cx, broadcast, learners, TransferRefused::Lost(to));
    };
    match transfer.step {
        Step::CatchingUp => {
            if learner.stage == Stage::Serving
                && !learner.cursor.is_streaming()
                && learner.cursor.sent >= cx.history.last()
                && is_heard(cx, learner)
            {
                transfer.step = Step::Releasing(cx.outbox.release());
            }
        }
        Step::Holding => {
            if !is_heard(cx, learner) {
                return call_off(cx, broadcast, learners, TransferRefused::Unheard(to));
            }
            if done && learner.acks.through() >= proposed {
                transfer.step = Step::Offered(link);
                // It takes that back when it hears of its leadership, whatever we know by then.
                learner.leases = false;
                let vote = Vote { peer_epoch: epoch, zxid: cx.history.last(), leader: to };
                send(cx, link, Packet::Transfer { vote, round });
                broadcast.renew(cx, learners);
            }
        }
        Step::Releasing(_) | Step::Offered(_) => {}
    }
    RoleChange::Stay
}

/// All leadership guards here are released, since this was asked: from now on requests wait.
pub fn released(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    release: ReleaseId,
) -> RoleChange {
    match &mut broadcast.transfer {
        Some(transfer) if transfer.step == Step::Releasing(release) => {
            transfer.step = Step::Holding;
            cx.timers.after(Timer::Transfer, cx.now, cx.config.timing.transfer_max);
            go_on(cx, broadcast, learners)
        }
        Some(_) | None => RoleChange::Stay,
    }
}

/// A learner's link has ended, and that may be how it takes the leadership.
pub fn on_link_down(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    link: LinkId,
) -> RoleChange {
    match &broadcast.transfer {
        Some(transfer) if transfer.step == Step::Offered(link) => hand_on(cx, broadcast, learners),
        Some(_) => go_on(cx, broadcast, learners),
        None => RoleChange::Stay,
    }
}

/// The follower leads: the others are told, and we follow it.
fn hand_on(cx: &mut Context<'_>, broadcast: &mut Broadcast, learners: &Learners) -> RoleChange {
    let Some(&Transfer { to, round, asked, .. }) = broadcast.transfer.as_deref() else {
        return RoleChange::Stay;
    };
    let vote = Vote { peer_epoch: broadcast.epoch, zxid: cx.history.last(), leader: to };
    for (link, _) in learners.iter().filter(|(_, learner)| learner.is_ours()) {
        send(cx, link, Packet::Transfer { vote, round });
    }
    if asked {
        cx.outbox.push(Output::Transferred(Ok(to)));
    }
    cx.concessions.transfers.on_given(cx.now, to, cx.config.timing.init_time());
    broadcast.hand_on(cx);
    RoleChange::Appointed { vote, round }
}

/// Time has run out.
pub fn late(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
) -> RoleChange {
    let Some(transfer) = broadcast.transfer.as_deref() else { return RoleChange::Stay };
    let kept = match (transfer.step, transfer.to) {
        (Step::CatchingUp, to) if !is_named_heard(cx, learners, to) => TransferRefused::Unheard(to),
        _ => transfer.late(),
    };
    call_off(cx, broadcast, learners, kept)
}

/// Whether the follower of this name has said lately that it hears a quorum.
fn is_named_heard(cx: &Context<'_>, learners: &Learners, to: ServerId) -> bool {
    let learner = learners.link_of(to).and_then(|link| learners.get(link));
    learner.is_some_and(|learner| is_heard(cx, learner))
}

/// It has come to nothing.
fn call_off(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    kept: TransferRefused,
) -> RoleChange {
    cx.timers.stop(Timer::Transfer);
    let Some(transfer) = broadcast.transfer.as_deref() else { return RoleChange::Stay };
    let (reason, &Transfer { to, step, asked, in_any_case, .. }) = (transfer.reason(), transfer);
    if let Step::Offered(_) = step {
        // Requests have waited for it, and would again.
        cx.concessions.transfers.on_given(cx.now, to, cx.config.timing.init_time());
    }
    if step != Step::CatchingUp {
        cx.outbox.push(Output::Keep);
    }
    broadcast.call_off(cx, learners);
    if let Some(until) = broadcast.lease {
        // It was not looked at while the leadership was on offer.
        cx.timers.set(Timer::Lease, until);
    }
    if asked {
        cx.outbox.push(Output::Transferred(Err(kept)));
    }
    if in_any_case { RoleChange::leave(reason) } else { RoleChange::Stay }
}

/// The leadership stays ours: the caller is told; a leader that is to give it up in any case does.
pub fn keep(cx: &mut Context<'_>, purpose: Purpose, kept: TransferRefused) -> RoleChange {
    match purpose {
        Purpose::StepDown => return RoleChange::leave(Reason::Asked),
        Purpose::Unreachable => return RoleChange::leave(Reason::CannotAccept),
        Purpose::Asked => cx.outbox.push(Output::Transferred(Err(kept))),
        Purpose::Preferred => {}
    }
    RoleChange::Stay
}
