//! NEWLEADER at a learner: the order of writes before it is acknowledged.
//!
//! ```text
//!   history (DIFF, TRUNC: what was committed; SNAP: installed) ─► membership ─► current epoch ─► disk ─► ACK
//! ```

use crate::context::Context;
use crate::id::{LinkId, ServerId};
use crate::learner::breach::Breach;
use crate::learner::reconfiguration;
use crate::learner::synchronization::{Step, Synchronization};
use crate::message::{Message, Packet};
use crate::output::Write;
use crate::report::{Change, How, Reason};
use crate::timers::Timer;
use crate::zxid::Zxid;

/// NEWLEADER: makes the leader's history ours, then says so.
///
/// The order is the whole point, and what six accidents in the field were about (ZOOKEEPER-3911,
/// -4643, -4646, -4685, -4785, -4394): first what the leader sent as committed becomes durable (a
/// snapshot and what followed it are put in the place of our history, in one step) and the configuration that
/// it has seen, then the current epoch, then the acknowledgement leaves. A current epoch ahead of the
/// history would let us win an election with a history we do not have; an acknowledgement ahead of either
/// would let the leader count on what a crash can still take.
///
/// A server that only observes, below its promise, acknowledges nothing that may count as a voter's: a ZooKeeper leader
/// counts each server that is in the membership that it tells here, whatever it introduced itself as. It hangs up, and comes
/// back as a voter once it knows; then the leader begins an epoch above its promise.
pub fn on_new_leader(
    cx: &mut Context<'_>,
    link: LinkId,
    leader: ServerId,
    synchronization: &mut Synchronization,
) -> Result<(), Breach> {
    let epoch = synchronization.epoch;
    match synchronization.step {
        Step::Awaited | Step::Receiving(_) => return Err(Breach::OutOfTurn),
        Step::Following(_) | Step::Locating(_) if synchronization.acknowledging.is_some() => {
            return Err(Breach::OutOfTurn);
        }
        Step::Locating(_) => {
            synchronization.due = true;
            return Ok(());
        }
        Step::Following(_) => {}
    }
    let (label, tail) = (synchronization.label, synchronization.tail);
    if tail < label && !label.is_epoch_start() {
        // What the leader calls committed did not come.
        return Err(Breach::Hole(tail));
    }
    if epoch < cx.epochs.accepted_epoch
        && reconfiguration::gives_vote(cx, synchronization.config.as_ref())
    {
        return Err(Breach::WouldVote);
    }
    synchronization.due = false;
    synchronization.covered = synchronization.label.max(synchronization.committed);
    synchronization.take_pending_before_new_leader(cx);
    let last = synchronization.written;
    if cx.history.loses(last) {
        return Err(Breach::CommittedCut(last));
    }
    if !take_over(cx, link, synchronization)? {
        return Ok(());
    }
    let ticket = cx.outbox.persist(Write::CurrentEpoch(epoch));
    cx.epochs.current_epoch = epoch;
    cx.outbox.report(Change::CurrentEpoch(epoch), Reason::LeaderSaid { leader, epoch });
    synchronization.acknowledging = Some(ticket);
    cx.timers.after(Timer::Silence, cx.now, cx.config.timing.sync_time());
    acknowledge(cx, link, synchronization);
    Ok(())
}

/// Puts the leader's history and the membership that it tells in the place of ours. Returns false if the disk has to
/// be asked first whether our log holds a change that the leader does not know.
fn take_over(
    cx: &mut Context<'_>,
    link: LinkId,
    synchronization: &mut Synchronization,
) -> Result<bool, Breach> {
    let last = synchronization.written;
    let told = synchronization.config.take();
    if synchronization.step == Step::Following(How::Snap) {
        let mut collected = core::mem::take(&mut synchronization.collected);
        if let Some(told) = told {
            collected.add(told);
        }
        // Of one epoch there is one history: a snapshot that goes beyond a change of that epoch has it.
        let label = synchronization.label;
        let within = |change: &Zxid| *change <= label && change.epoch() == label.epoch();
        let untold = reconfiguration::untold(cx, collected.newest());
        if let Some(change) = untold.filter(within) {
            return Err(Breach::OlderMembership(change));
        }
        let in_force = collected.in_force(last);
        let held = collected.held(cx, last);
        cx.install(synchronization.label, last, in_force, held);
    } else {
        if let Some(change) = reconfiguration::untold(cx, told.as_ref()) {
            match synchronization.holds(cx, link, change) {
                Some(true) => return Err(Breach::OlderMembership(change)),
                Some(false) => {}
                None => {
                    (synchronization.config, synchronization.due) = (told, true);
                    return Ok(false);
                }
            }
        }
        reconfiguration::on_new_leader(cx, told, synchronization.epoch);
    }
    Ok(true)
}

/// The acknowledgement itself. It helps to establish a leader, so it waits while we promise another one to
/// establish no other leader.
pub fn acknowledge(cx: &mut Context<'_>, link: LinkId, synchronization: &mut Synchronization) {
    let (Some(ticket), false) = (synchronization.acknowledging, synchronization.acknowledged)
    else {
        return;
    };
    if let Some(until) = cx.lease.forbids(synchronization.epoch, cx.now) {
        return cx.timers.set(Timer::Lease, until);
    }
    synchronization.acknowledged = true;
    let ack = Packet::Ack(Zxid::start_of(synchronization.epoch));
    cx.outbox.send_after(ticket, link, Message::Packet(ack));
}
