//! Broadcast, the learner's side: a member of an established ensemble.
//!
//! Transactions are not taken over yet; what is here answers the leader's pings, which is how it
//! knows that we are alive.

use bytes::Bytes;

use crate::context::Context;
use crate::id::LinkId;
use crate::message::{Message, Packet};
use crate::zxid::{Epoch, Zxid};

/// Membership in the ensemble of one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Its epoch.
    pub epoch: Epoch,
}

/// The second ACK of the epoch's start, which ZooKeeper's learners send after UPTODATE.
pub fn on_up_to_date(cx: &mut Context<'_>, link: LinkId, epoch: Epoch) -> Broadcast {
    let ack = Packet::Ack(Zxid::start_of(epoch));
    cx.outbox.send(link, Message::Packet(ack));
    Broadcast { epoch }
}

/// Answers a ping with the same zxid and the sessions heard from: there are none.
pub fn on_ping(cx: &mut Context<'_>, link: LinkId, zxid: Zxid) {
    let packet = Packet::Ping { zxid, sessions: Some(Bytes::new()) };
    cx.outbox.send(link, Message::Packet(packet));
}
