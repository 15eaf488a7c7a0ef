//! Synchronization, the learner's side: the leader's history becomes ours.
//!
//! ```text
//!   DIFF ─► NEWLEADER ─► disk ─► ACK ─► … a quorum has it … ─► UPTODATE ─► serve
//! ```
//!
//! The order of writes before NEWLEADER is acknowledged stands in [`on_new_leader`] and nowhere else.

use crate::context::Context;
use crate::id::{LinkId, ServerId, Ticket};
use crate::message::{Message, Packet};
use crate::output::Write;
use crate::report::{Change, Reason};
use crate::zxid::{Epoch, Zxid};

/// What a learner has been told of the leader's history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Synchronization {
    /// The epoch that it has promised.
    pub epoch: Epoch,
    /// Whether the leader has said how it brings us up.
    pub begun: bool,
    /// The write that our acknowledgement of NEWLEADER waits for, once that has come.
    pub acknowledging: Option<Ticket>,
}

impl Synchronization {
    /// Waiting for the leader's decision.
    pub const fn new(epoch: Epoch) -> Self {
        Self { epoch, begun: false, acknowledging: None }
    }
}

/// NEWLEADER: makes the leader's history ours, then says so.
///
/// The order is the whole point, and what six accidents in the field were about (ZOOKEEPER-3911,
/// -4643, -4646, -4685, -4785, -4394): first what the leader sent as committed becomes durable, then
/// the current epoch, then the acknowledgement leaves. A current epoch ahead of the history would let
/// us win an election with a history we do not have; an acknowledgement ahead of either would let the
/// leader count on what a crash can still take.
///
/// There are no transactions yet, so the history is the one we came with.
pub fn on_new_leader(
    cx: &mut Context<'_>,
    link: LinkId,
    leader: ServerId,
    synchronization: &mut Synchronization,
) {
    let epoch = synchronization.epoch;
    let ticket = cx.outbox.persist(Write::CurrentEpoch(epoch));
    cx.epochs.current_epoch = epoch;
    cx.outbox.report(Change::CurrentEpoch(epoch), Reason::LeaderSaid { leader, epoch });
    let ack = Packet::Ack(Zxid::start_of(epoch));
    cx.outbox.send_after(ticket, link, Message::Packet(ack));
    synchronization.acknowledging = Some(ticket);
}
