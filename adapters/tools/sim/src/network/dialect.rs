//! What servers of ZooKeeper say in its versions, and what they understand.
//!
//! | | notification | introduction | FOLLOWERINFO, OBSERVERINFO | NEWLEADER |
//! |---|---|---|---|---|
//! | [`V34`](Dialect::V34) | 40 bytes, no version | the bare id | 12 bytes | without a text |
//! | [`V35`](Dialect::V35) | version 1, no configuration | as ours | as ZooKeeper's today | as ours |
//! | [`V38`](Dialect::V38) | as ours | as ours | as ZooKeeper's today | as ours |
//! | [`Earlier`](Dialect::Earlier) | as ours | as ours | does not take memberships with a snapshot | as ours |
//!
//! None but the last says or understands what only servers of ours do, and none says in SNAP, or reads there, which
//! memberships come with it. What the first three have committed by the time at which they say UPTODATE, they have said before
//! (`Network::welcome`). The server itself is one of ours all the same:
//! what is tested is what the others make of what it says, and it of what it does not hear.

use bytes::{Bytes, BytesMut};
use quorate_core::generation_message::GenerationMessage;
use quorate_core::message::{LearnerInfo, Mark, Message, Notification, Packet};
use quorate_core::wire;

use crate::faults::FaultClass;

/// The way in which a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As ZooKeeper 3.4.
    V34,
    /// As the first of ZooKeeper 3.5.
    V35,
    /// As ZooKeeper 3.8: the membership may change beside such a server.
    V38,
    /// As one of ours that was made before SNAP told of memberships.
    Earlier,
}

/// Where the version begins in a notification with its frame, and how long the oldest is that has none.
const NOTIFICATION_V34: usize = 4 + 40;
/// How long a packet of [`LearnerInfo`] is before its configuration version.
const INFO_V34: usize = 16 + 12;

impl Dialect {
    /// Whether it is that of a server which tells its syncs apart by their places alone; ours, however old, have tags.
    pub(crate) fn is_javas(self) -> bool {
        self != Self::Earlier
    }

    /// What it counts as that a server speaks so.
    pub(super) fn class(self) -> FaultClass {
        if self == Self::Earlier { FaultClass::EarlierVersion } else { FaultClass::OldVersion }
    }

    /// A notification as the other end reads it, and as bytes.
    pub(super) fn notification(self, notification: &Notification) -> (Notification, Bytes) {
        let (version, config) = match self {
            Self::V34 => (0, Bytes::new()),
            Self::V35 => (1, Bytes::new()),
            Self::V38 | Self::Earlier => (notification.version, notification.config.clone()),
        };
        let said = Notification { version, config, mark: Mark::NONE, ..notification.clone() };
        let mut bytes = BytesMut::new();
        wire::encode_notification(&said, &mut bytes);
        if self == Self::V34 {
            bytes.truncate(NOTIFICATION_V34);
            bytes[..4].copy_from_slice(&40_u32.to_be_bytes());
        }
        (said, bytes.freeze())
    }

    /// A packet as the other end reads it, and as bytes.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are the same in all versions")]
    pub(super) fn packet(self, packet: Packet) -> (Packet, Bytes) {
        let old = self == Self::V34;
        let info = |info: LearnerInfo| {
            let config_version = if old { 0 } else { info.config_version };
            LearnerInfo { config_version, ..plain(info) }
        };
        let said = match packet {
            packet if self == Self::Earlier => earlier(packet),
            Packet::FollowerInfo(said) => Packet::FollowerInfo(info(said)),
            Packet::ObserverInfo(said) => Packet::ObserverInfo(info(said)),
            Packet::NewLeader { zxid, .. } if old => {
                Packet::NewLeader { zxid, config: Bytes::new() }
            }
            packet => understood(packet),
        };
        let mut bytes = BytesMut::new();
        wire::encode_packet(&said, &mut bytes);
        if old && matches!(said, Packet::FollowerInfo(_) | Packet::ObserverInfo(_)) {
            let identities = bytes.split_off(bytes.len() - 4);
            bytes.truncate(INFO_V34);
            bytes[12..16].copy_from_slice(&12_u32.to_be_bytes());
            bytes.unsplit(identities);
        }
        (said, bytes.freeze())
    }

    /// A message as such a server understands it; none if only ours have such.
    pub(super) fn heard(self, message: Message) -> Option<Message> {
        Some(match message {
            Message::Packet(packet) if self == Self::Earlier => Message::Packet(earlier(packet)),
            Message::Generation(message) if self == Self::Earlier => {
                Message::Generation(GenerationMessage { knows_probes: false, ..message })
            }
            Message::Notification(heard) => {
                let whole = matches!(self, Self::V38 | Self::Earlier);
                let config = if whole { heard.config.clone() } else { Bytes::new() };
                Message::Notification(Notification { config, mark: Mark::NONE, ..heard })
            }
            Message::Packet(
                Packet::Transfer { .. } | Packet::Lease { .. } | Packet::MayLead(_),
            )
            | Message::Generation(_)
            | Message::Probe(_) => return None,
            Message::Packet(packet) => Message::Packet(understood(packet)),
        })
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others say nothing of versions")]
fn understood(packet: Packet) -> Packet {
    match packet {
        Packet::FollowerInfo(info) => Packet::FollowerInfo(plain(info)),
        Packet::ObserverInfo(info) => Packet::ObserverInfo(plain(info)),
        Packet::LeaderInfo { epoch, .. } => {
            Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL }
        }
        Packet::Snap { label, .. } => Packet::snap(label),
        packet => packet,
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others are the same")]
fn earlier(packet: Packet) -> Packet {
    let collects_not = |info: LearnerInfo| LearnerInfo {
        protocol: info.protocol & !LearnerInfo::COLLECTS,
        ..info
    };
    match packet {
        Packet::FollowerInfo(info) => Packet::FollowerInfo(collects_not(info)),
        Packet::ObserverInfo(info) => Packet::ObserverInfo(collects_not(info)),
        Packet::Snap { label, .. } => Packet::snap(label),
        packet => packet,
    }
}

fn plain(info: LearnerInfo) -> LearnerInfo {
    LearnerInfo { protocol: LearnerInfo::PROTOCOL, ..info }
}
