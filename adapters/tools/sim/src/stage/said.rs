//! What a scripted peer says: notifications, messages, probes, packets, and the transactions in them.

use bytes::Bytes;
use quorate_core::generation_message::GenerationMessage;
use quorate_core::id::ServerId;
use quorate_core::message::{LearnerInfo, Mark, Message, Notification, Packet, Probe};
use quorate_core::txn::Txn;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::written_before;

/// What a scripted peer says.
#[derive(Clone, Debug)]
pub struct Said(pub(super) Message);

impl From<Packet> for Said {
    fn from(packet: Packet) -> Self {
        Self(Message::Packet(packet))
    }
}

impl From<GenerationMessage> for Said {
    fn from(message: GenerationMessage) -> Self {
        Self(Message::Generation(message))
    }
}

impl From<Probe> for Said {
    fn from(probe: Probe) -> Self {
        Self(Message::Probe(probe))
    }
}

impl From<Notification> for Said {
    fn from(notification: Notification) -> Self {
        Self(Message::Notification(notification))
    }
}

/// The `number`th transaction of a history that no server here has written; the same from each peer.
pub fn txn(zxid: Zxid, number: u64) -> Txn {
    written_before(zxid, number)
}

/// A notification, as a peer of today sends it.
pub fn says(
    state: ServerState,
    leader: i64,
    peer_epoch: i64,
    zxid: i64,
    round: i64,
) -> Notification {
    let vote = Vote { peer_epoch: Epoch(peer_epoch), zxid: Zxid(zxid), leader: ServerId(leader) };
    let standing = Standing { state, vote, round: Round(round) };
    Notification {
        standing,
        version: Notification::VERSION,
        config: Bytes::new(),
        mark: Mark::SETTLES_AT_ONCE,
    }
}

/// What a learner registers with.
pub fn learner_info(id: i64, accepted_epoch: i64) -> LearnerInfo {
    LearnerInfo {
        accepted_epoch: Epoch(accepted_epoch),
        id: Some(ServerId(id)),
        protocol: LearnerInfo::PROTOCOL,
        config_version: 0,
    }
}
