//! Everything that servers say to one another, as types; no bytes.
//!
//! Two planes, two ports: the election port carries [`Notification`]s behind an [`Introduction`], the
//! quorum port carries [`Packet`]s between a leader and its learners. The bytes are in
//! [`wire`](crate::wire).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use bytes::Bytes;

use crate::address::HostPort;
use crate::generation_message::GenerationMessage;
use crate::id::ServerId;
use crate::txn::{RequestId, Txn, Txns};
use crate::vote::{Round, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// A message on an established link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// On the election plane.
    Notification(Notification),
    /// On the quorum plane.
    Packet(Packet),
    /// On the election plane, where servers elect by generation.
    Generation(GenerationMessage),
    /// On the election plane, in both kinds of elections, to servers that know what it is.
    Probe(Probe),
}

/// Says that its sender lives and can be heard, and whether it hears the other end; nothing else. Links of the
/// election plane are silent when an election is over. A server of ours that serves says this to each voter that
/// said [`Mark::KNOWS_PROBES`] when it last said anything, whenever its leader pings it, or it pings. A server of
/// ZooKeeper that has taken its place meanwhile passes over it, as over everything that is shorter than a notification
/// (`FastLeaderElection.Messenger.WorkerReceiver`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Whether the sender has heard the receiver lately.
    pub hears_you: bool,
}

/// A vote on its way: where its sender stands, and the configuration that the sender knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// Where the sender stands.
    pub standing: Standing,
    /// The message version: 2 is what we send, 0 what very old peers are taken for.
    pub version: i32,
    /// The sender's configuration as text, not decoded; empty if it sent none.
    pub config: Bytes,
    /// What only servers of ours say; nothing from any other.
    pub mark: Mark,
}

/// What a server of ours says of itself with each notification, behind the configuration text, where servers of
/// ZooKeeper read nothing: one bit for each thing.
///
/// | bit | |
/// |---|---|
/// | 0 | [`Mark::SETTLES_AT_ONCE`] |
/// | 1 | [`Mark::KNOWS_PROBES`] |
///
/// Bits that are not known say nothing. It belongs to the notification that it came with, not to its sender for
/// good: what was said before a restart may be said no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u32);

impl Mark {
    /// Nothing: as of every server of ZooKeeper.
    pub const NONE: Self = Self(0);
    /// The sender ends an election as soon as nothing can change how it ends. A server of ZooKeeper waits for 200 ms
    /// first (`FastLeaderElection.finalizeWait`), and goes with a better vote that comes meanwhile.
    pub const SETTLES_AT_ONCE: Self = Self(1 << 0);

    /// The sender knows what a [`Probe`] is.
    pub const KNOWS_PROBES: Self = Self(1 << 1);

    /// This, and that too.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it says all of that.
    pub const fn says(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Notification {
    /// The version that we send.
    pub const VERSION: i32 = 2;
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.standing.fmt(f)
    }
}

/// The first bytes on an election link: who dialled, and where that server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Introduction {
    /// The dialling server.
    pub id: ServerId,
    /// Its election addresses; empty from very old peers.
    pub addresses: Vec<HostPort>,
}

/// What a learner says of itself when it registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LearnerInfo {
    /// The highest epoch that it has promised to a prospective leader. As wide as the wire: check
    /// [`Epoch::is_valid`].
    pub accepted_epoch: Epoch,
    /// Who it is; none for an anonymous observer.
    pub id: Option<ServerId>,
    /// The protocol that it speaks, at least [`LearnerInfo::PROTOCOL`].
    pub protocol: i32,
    /// The version of the configuration that it has activated, 0 if that is static.
    pub config_version: i64,
}

/// What stands in the protocol beside ZooKeeper's number. ZooKeeper's servers only test that theirs is not
/// above it, so the low bits are ours to use:
///
/// | bits | |
/// |---|---|
/// | 0 | the application is not ZooKeeper's data tree |
/// | 1 | the server is one of ours: it takes [`Packet::Transfer`] |
/// | 2 | it promises leases, see [`Packet::Lease`] |
/// | 4 | it takes the memberships that come [with a snapshot](Packet::Snap) and behind it |
/// | 5 | as a leader it leaves a mark in the log of each session that comes to a server |
/// | 3 | it is told whether a follower may lead, see [`Packet::MayLead`] |
/// | 8 to 15 | how much it is wished to lead |
impl LearnerInfo {
    /// The protocol of ZooKeeper 3.4 and later.
    pub const PROTOCOL: i32 = 0x1_0000;
    /// The same between servers whose application is not ZooKeeper's data tree.
    pub const OTHER_APPLICATION: i32 = Self::PROTOCOL | 1;
    /// What servers of ours add.
    pub const OURS: i32 = 1 << 1;
    /// What those of them add that promise leases.
    pub const LEASES: i32 = 1 << 2;
    /// What those of them add that take the memberships which come with a snapshot.
    pub const COLLECTS: i32 = 1 << 4;
    /// What those of them add that know [`Packet::MayLead`].
    pub const MAY_LEAD: i32 = 1 << 3;

    /// What those of them add that, leading, answer [`Packet::Revalidate`] with yes only when a transaction of that session
    /// is committed: whoever had it before, hears of it.
    pub const MARKS: i32 = 1 << 5;

    /// Whether servers that speak these two can bring each other up: the application of both is
    /// ZooKeeper's data tree, or of neither.
    pub const fn go_together(a: i32, b: i32) -> bool {
        Self::is_other(a) == Self::is_other(b)
    }

    const fn is_other(protocol: i32) -> bool {
        protocol >> 16 == Self::PROTOCOL >> 16 && protocol & 1 != 0
    }

    /// What a server of ours says whose application speaks `protocol`, how much it is wished to lead, and
    /// whether it promises leases.
    pub const fn ours(protocol: i32, priority: u8, leases: bool) -> i32 {
        let leases = if leases { Self::LEASES } else { 0 };
        let knows = Self::OURS | Self::MAY_LEAD | Self::COLLECTS | Self::MARKS;
        protocol | knows | leases | ((priority as i32) << 8)
    }

    /// Whether a server that says this knows [`Packet::MayLead`].
    pub const fn knows_may_lead(protocol: i32) -> bool {
        Self::priority(protocol).is_some() && protocol & Self::MAY_LEAD != 0
    }

    /// Whether a leader that says this leaves a mark in the log of each session that comes to a server.
    pub const fn marks(protocol: i32) -> bool {
        Self::priority(protocol).is_some() && protocol & Self::MARKS != 0
    }

    /// Whether a server that says this promises leases.
    pub const fn leases(protocol: i32) -> bool {
        Self::priority(protocol).is_some() && protocol & Self::LEASES != 0
    }

    /// Whether a learner that says this takes every membership that comes with a snapshot and behind it. Any other
    /// knows of the one that NEWLEADER tells, and of those proposed after it is up.
    pub const fn collects(protocol: i32) -> bool {
        Self::priority(protocol).is_some() && protocol & Self::COLLECTS != 0
    }

    /// How much a server of ours that says this is wished to lead; none of another.
    pub const fn priority(protocol: i32) -> Option<u8> {
        if protocol >> 16 == Self::PROTOCOL >> 16 && protocol & Self::OURS != 0 {
            Some((protocol >> 8 & 0xff) as u8)
        } else {
            None
        }
    }
}

/// An identity of a client, as a REQUEST carries it to the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The scheme (`ip`, `digest`, …).
    pub scheme: String,
    /// The id within the scheme.
    pub id: String,
}

/// What a client asks for, on its way to the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Who asks, and which of its requests this is. The transaction that comes of it carries the same,
    /// which is how the answer finds its way back.
    pub id: RequestId,
    /// ZooKeeper's operation code.
    pub op: i32,
    /// What is asked for, opaque.
    pub body: Bytes,
    /// The client's identities; none if the field was absent.
    pub identities: Option<Vec<Identity>>,
}

impl Request {
    /// The operation `reconfig`: change the membership, see
    /// [`Reconfiguration`](crate::reconfiguration::Reconfiguration).
    pub const RECONFIGURE: i32 = 16;
    /// The operation `sync`: flush the path from the leader to the asking learner.
    pub const SYNC: i32 = 9;

    /// The longest body of a request that a caller here may ask for, unless
    /// [`Limits::request_bytes`](crate::config::Limits::request_bytes) says otherwise.
    pub const BODY_BYTES_MAX: usize = 1 << 20;
}

/// Transactions of one epoch without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The first.
    pub first: Zxid,
    /// The last, not before the first.
    pub last: Zxid,
}

impl Run {
    /// One transaction.
    pub const fn one(zxid: Zxid) -> Self {
        Self { first: zxid, last: zxid }
    }

    /// All of them, ascending.
    pub fn zxids(self) -> impl Iterator<Item = Zxid> {
        (self.first.0..=self.last.0).map(Zxid)
    }
}

/// A packet on the quorum plane, between a leader and one of its learners.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Learner: I want to follow you (type 11).
    FollowerInfo(LearnerInfo),
    /// Learner: I want to observe you (type 16).
    ObserverInfo(LearnerInfo),
    /// Leader: this is the new epoch (type 17).
    LeaderInfo {
        /// The new epoch, as wide as the wire.
        epoch: Epoch,
        /// The leader's protocol.
        protocol: i32,
    },
    /// Learner: I promise to ignore older leaders; my history is this new (type 18).
    AckEpoch {
        /// Its last logged zxid.
        last: Zxid,
        /// Its current epoch; none if it had accepted this epoch before, so that this is no promise.
        current_epoch: Option<Epoch>,
    },
    /// Leader: your history is a prefix of mine, here is the rest (type 13).
    Diff(Zxid),
    /// Leader: cut your history after this zxid (type 14).
    Trunc(Zxid),
    /// Leader: a whole snapshot follows, outside the framing (type 15).
    Snap {
        /// What it is labelled with: everything through this is in it.
        label: Zxid,
        /// What is known at the label of the membership, see [`with_snapshot`](crate::reconfiguration::with_snapshot).
        /// Nothing from ZooKeeper's leaders, and nothing that its learners read.
        memberships: Bytes,
    },
    /// Leader: that was my history; acknowledge it (type 10).
    NewLeader {
        /// The start of the new epoch.
        zxid: Zxid,
        /// The leader's last-seen configuration as text.
        config: Bytes,
    },
    /// Leader: the ensemble has acknowledged; serve (type 12).
    UpToDate,
    /// Learner: this is on my disk (type 3).
    Ack(Zxid),
    /// The same for several transactions of one epoch: on the wire, an ACK for each.
    Acks(Run),
    /// Both: alive (type 5). A learner echoes the zxid and adds the sessions it has heard from.
    Ping {
        /// The leader's last proposed zxid.
        zxid: Zxid,
        /// The sessions touched; none from the leader.
        sessions: Option<Bytes>,
    },
    /// Leader: log this transaction (type 2).
    Proposal(Txn),
    /// The same for several without a hole: on the wire, a PROPOSAL for each.
    Proposals(Txns),
    /// Leader: that transaction is committed (type 4).
    Commit(Zxid),
    /// The same for several of one epoch: on the wire, a COMMIT for each.
    Commits(Run),
    /// Leader to observer: this transaction is committed (type 8).
    Inform(Txn),
    /// Leader: that reconfiguration is committed; activate it (type 9).
    CommitAndActivate {
        /// Its number.
        zxid: Zxid,
        /// Who leads under the new configuration.
        leader: ServerId,
    },
    /// Leader to observer: this reconfiguration is committed; activate it (type 19).
    InformAndActivate {
        /// Who leads under the new configuration.
        leader: ServerId,
        /// The reconfiguration.
        txn: Txn,
    },
    /// Learner: a client asks for this (type 1).
    Request(Request),
    /// Both: does this session live (type 6)?
    Revalidate(Bytes),
    /// Leader: everything before your sync has been sent (type 7).
    Sync {
        /// Which: the `cxid` of the request that asked for it, between servers of ours. 0 otherwise: the oldest that
        /// was asked for.
        tag: i32,
    },
    /// Leader, to servers of ours only: I give my leadership to the leader of this vote; follow it, or lead.
    /// Everybody then says that this vote and round ended the election.
    Transfer {
        /// For the next leader, with all that the present one has.
        vote: Vote,
        /// The round that is over thereby.
        round: Round,
    },
    /// Learner, to leaders of ours that know it: whether the leadership may be offered to it. Said when it begins to
    /// serve and with each answer to a ping; what was said last counts.
    MayLead(bool),
    /// Both, servers of ours only: in the place of a PING, take no part in establishing another leader for
    /// so long; and, I shall not.
    Lease {
        /// The leader's last proposed zxid.
        zxid: Zxid,
        /// For how long, to the millisecond.
        length: Duration,
        /// The sessions touched; empty from the leader.
        sessions: Bytes,
    },
}

impl Packet {
    /// SNAP as ZooKeeper's leaders send it: it tells nothing of the membership.
    pub const fn snap(label: Zxid) -> Self {
        Self::Snap { label, memberships: Bytes::new() }
    }

    /// The name in the protocol.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FollowerInfo(_) => "FOLLOWERINFO",
            Self::ObserverInfo(_) => "OBSERVERINFO",
            Self::LeaderInfo { .. } => "LEADERINFO",
            Self::AckEpoch { .. } => "ACKEPOCH",
            Self::Diff(_) => "DIFF",
            Self::Trunc(_) => "TRUNC",
            Self::Snap { .. } => "SNAP",
            Self::NewLeader { .. } => "NEWLEADER",
            Self::UpToDate => "UPTODATE",
            Self::Ack(_) | Self::Acks(_) => "ACK",
            Self::Ping { .. } => "PING",
            Self::Proposal(_) | Self::Proposals(_) => "PROPOSAL",
            Self::Commit(_) | Self::Commits(_) => "COMMIT",
            Self::Inform(_) => "INFORM",
            Self::CommitAndActivate { .. } => "COMMITANDACTIVATE",
            Self::InformAndActivate { .. } => "INFORMANDACTIVATE",
            Self::Request(_) => "REQUEST",
            Self::Revalidate(_) => "REVALIDATE",
            Self::Sync { .. } => "SYNC",
            Self::Transfer { .. } => "TRANSFER",
            Self::Lease { .. } => "LEASE",
            Self::MayLead(_) => "MAYLEAD",
        }
    }
}
