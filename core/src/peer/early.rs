//! Learners that come before this server leads.
//!
//! ```text
//!   it looks ─► kept, with the first thing said ─┬─► it leads: the leader takes them in
//!                                                └─► it does not, or not in time: hung up
//! ```
//!
//! A follower may connect before this server knows that it leads. Refusing it would make a server of ZooKeeper start
//! another round, and draw this server along, out of the round that is about to end; so its link is kept until this
//! server leads, follows another, or a time limit passes. (At a leader of ZooKeeper's its dials would be refused for as
//! long.) The same holds for the learners of a leadership that this server left to go back into a round.
//!
//! Nothing that they say is judged here.

use alloc::vec::Vec;

use crate::context::Context;
use crate::id::LinkId;
use crate::message::Packet;
use crate::reasons::Hangup;
use crate::time::Instant;
use crate::timers::Timer;

/// A learner has come, and waits.
pub(super) fn on_link_up(cx: &mut Context<'_>, link: LinkId) {
    cx.links.wait(cx.now, link, cx.outbox);
    arm(cx);
}

/// One of them introduces itself; a learner says no more before it is answered. It has settled on us, and
/// we want to hear that: where there is no election link to it there can be one now.
pub(super) fn on_packet(cx: &mut Context<'_>, link: LinkId, packet: Packet) {
    let from = if let Packet::FollowerInfo(info) = &packet { info.id } else { None };
    let mut waiting = cx.links.waiting_mut().iter_mut();
    match waiting.find(|waiting| waiting.link == link) {
        Some(waiting) if waiting.over => {}
        Some(waiting) if waiting.first.is_none() => {
            waiting.first = Some(packet);
            if let Some(from) = from {
                cx.links.dial_back(cx.now, from, cx.outbox);
            }
        }
        Some(_) => {
            let reason = Hangup::OutOfTurn(packet.name());
            cx.links.hangup(link, reason, cx.outbox);
        }
        None => {}
    }
}

/// Hangs up those that came early and have waited long enough by `due`.
pub(super) fn on_late(cx: &mut Context<'_>, due: Instant) {
    let limit = cx.config.timing.early_learner_max;
    let late: Vec<_> = cx
        .links
        .waiting_mut()
        .iter()
        .filter(|waiting| due.since(waiting.since) >= limit)
        .map(|waiting| waiting.link)
        .collect();
    for link in late {
        cx.links.hangup(link, Hangup::NotLeading, cx.outbox);
    }
    arm(cx);
}

/// A server that learns from us just now waits, too, for the end of the round that we go back into.
pub(super) fn detain(cx: &mut Context<'_>) {
    cx.links.detain(cx.now);
}

/// Sets the time when the oldest has waited long enough.
pub(super) fn arm(cx: &mut Context<'_>) {
    let limit = cx.config.timing.early_learner_max;
    match cx.links.waiting_mut().first() {
        Some(oldest) => cx.timers.set(Timer::Introduction, oldest.since + limit),
        None => cx.timers.stop(Timer::Introduction),
    }
}

/// Hangs up those that came early: we will not lead.
pub(super) fn dismiss(cx: &mut Context<'_>) {
    if cx.links.waiting_mut().is_empty() {
        return;
    }
    for waiting in cx.links.take_waiting() {
        cx.links.hangup(waiting.link, Hangup::NotLeading, cx.outbox);
    }
    cx.timers.stop(Timer::Introduction);
}
