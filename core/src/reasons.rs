//! Why a link is hung up, a request refused or of unknown outcome, a leadership kept, and a server halted.
//!
//! ```text
//!   a peer that misbehaves ──────────► Hangup      a request that cannot be served ──► Refusal
//!   facts that make going on unsafe ─► Fault       an accepted one with no answer ───► UnknownOutcome
//!                                                  a transfer that cannot be ────────► TransferRefused
//! ```
//!
//! Each is the reason of one [`Output`](crate::output::Output), an error with a text for a log. What changes in the
//! protocol has a [`Reason`](crate::report::Reason) instead.

use thiserror::Error;

use crate::id::ServerId;
use crate::zxid::{Epoch, Zxid};

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// There is no established leader that this server leads with or follows.
    #[error("this server does not serve: there is no leader")]
    NotServing,
    /// The leadership ended before the request was proposed or forwarded.
    #[error("the leadership has ended before it was proposed")]
    LeadershipOver,
    /// Too many requests are under way.
    #[error("too many requests are under way")]
    Busy,
    /// It is longer than a packet may be.
    #[error("a request of {0} bytes is too long")]
    TooLong(usize),
    /// This server is so far behind that it is brought up by a snapshot, which the application does not have yet.
    #[error("this server fell behind and is being brought up")]
    Behind,
}

/// Why it is unknown what became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum UnknownOutcome {
    /// This server was so far behind that it got a snapshot, which does not tell who asked for what.
    #[error("this server got a snapshot of the history that may contain it")]
    Snapshot,
    /// This server lost its connection to a leader that went on to lead.
    #[error("the connection to the leader was lost")]
    Disconnected,
}

/// Why a leader keeps its leadership, which it was asked to hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TransferRefused {
    /// Only the leader of an established ensemble has leadership to give.
    #[error("this server does not lead an established ensemble")]
    NotLeading,
    /// It transfers it already.
    #[error("the leadership is being handed over already")]
    Underway,
    /// No such server follows here with a vote that it may be elected with.
    #[error("server {0} does not follow here with a vote")]
    NoFollower(ServerId),
    /// The server is not one of ours; it can only be elected.
    #[error("server {0} does not know how to take leadership over")]
    Foreign(ServerId),
    /// The server has not said lately that it could lead: that it hears a quorum on its election links, so that the others
    /// might be able to follow it, and has room on its disk.
    #[error("server {0} has not said that it hears a quorum, and has room on its disk")]
    Unheard(ServerId),
    /// There is no follower to which it could go.
    #[error("no follower can take the leadership over")]
    Nobody,
    /// Those that can be told are no quorum: the others would elect another leader.
    #[error("the servers that can be told are no quorum")]
    NoQuorum,
    /// The follower was lost, or gave way, before it had the leadership.
    #[error("server {0} was lost on the way")]
    Lost(ServerId),
    /// The follower did not come up in time.
    #[error("server {0} did not come up in time")]
    Late(ServerId),
    /// What only a leader may do did not end in time.
    #[error("work that only a leader may do did not end in time")]
    Guarded,
    /// The membership changes.
    #[error("a reconfiguration is under way")]
    Reconfiguring,
}

/// Why the core ends a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Hangup {
    /// Between two servers the one with the larger id dials: this link only asked it to.
    #[error("server {0} has the larger id and dials back")]
    PeerDials(ServerId),
    /// Between two servers the one with the larger id dials: we dial back.
    #[error("server {0} has the smaller id, we dial back")]
    WeDial(ServerId),
    /// A newer link of the same server takes its place.
    #[error("a newer link of server {0} takes its place")]
    Replaced(ServerId),
    /// It claims to be a voter to which there is a link, and comes from somewhere else than where the configuration
    /// says that this voter is.
    #[error("there is a link of server {0}, and this one comes from another address than its")]
    NotAtHome(ServerId),
    /// It claims to be a voter to which there is a link, and so does a newer one.
    #[error("a newer connection claims to be server {0}")]
    ClaimedAgain(ServerId),
    /// A peer introduced itself with our own id: two servers have the same `myid`.
    #[error("server {0} introduced itself with our own id")]
    OwnId(ServerId),
    /// A peer introduced itself with an id that is reserved.
    #[error("id {0} is reserved")]
    ReservedId(ServerId),
    /// More non-members are connected than are allowed.
    #[error("too many links of servers that are no members")]
    TooManyNonMembers,
    /// More quorum links have not introduced themselves than are allowed.
    #[error("too many links without an introduction")]
    TooManyUnintroduced,
    /// More learners are connected than are allowed.
    #[error("too many learners")]
    TooManyLearners,
    /// We do not lead.
    #[error("this server does not lead")]
    NotLeading,
    /// We are no longer in the role that the link belonged to.
    #[error("the leadership that this link belonged to is over")]
    RoleEnded,
    /// It has ended: no more comes, and nothing more is sent. This answers its [`LinkDown`](crate::input::Event::LinkDown).
    #[error("it has ended")]
    Ended,
    /// The link was dialled for something that has passed.
    #[error("no longer needed")]
    Unwanted,
    /// It said nothing for too long.
    #[error("server {0} was silent for too long")]
    Silent(ServerId),
    /// It has not said who it is.
    #[error("no introduction for too long")]
    Unintroduced,
    /// A message that has no place at this point, or on this plane.
    #[error("{0} out of turn")]
    OutOfTurn(&'static str),
    /// An epoch that cannot be.
    #[error("epoch {0} is out of range")]
    EpochOutOfRange(Epoch),
    /// The learner knows a newer configuration than we do.
    #[error("configuration version {theirs:x} is newer than ours, {ours:x}")]
    NewerConfiguration {
        /// The learner's.
        theirs: i64,
        /// Ours.
        ours: i64,
    },
    /// The leader tells of an older membership than one that our history holds.
    #[error("it does not know of the change of version {version:x}, which our history holds")]
    OlderMembership {
        /// Of ours.
        version: i64,
    },
    /// The learner needs a snapshot while a change is under way, and could learn of one change only that way.
    #[error(
        "its configuration is older than {version:x}, and a change is under way: an election tells it"
    )]
    Untold {
        /// Of what is in force.
        version: i64,
    },
    /// The learner's protocol is older than ZooKeeper 3.4.
    #[error("protocol {0:#x} is older than 0x10000")]
    OldProtocol(i32),
    /// The learner's history is newer than ours, and no election can settle that.
    #[error("its history ends at {0}, beyond ours")]
    NewerHistory(Zxid),
    /// It is in no configuration, and such are not let in.
    #[error("server {0} is in no configuration, and is not let in")]
    Stranger(ServerId),
    /// It is in no configuration, and says that its client is a superuser.
    #[error("server {0} is in no configuration, and says that its client is a superuser")]
    ForgedIdentity(ServerId),
    /// Its snapshots would mean nothing to us, or ours to it.
    #[error("protocol {0:#x} belongs to another kind of application")]
    OtherApplication(i32),
    /// What was to be sent to it cannot be read from our disk.
    #[error("the log or snapshot that it needs cannot be read")]
    Unreadable,
    /// It has not acknowledged a transaction for too long.
    #[error("server {0} acknowledged nothing for too long")]
    Unacknowledged(ServerId),
    /// It asks for more than is allowed.
    #[error("too many requests of learners are under way")]
    TooManyRequests,
    /// It sent a transaction that leaves a hole, or commits what it did not propose.
    #[error("{zxid} does not follow {after}")]
    Hole {
        /// What it sent.
        zxid: Zxid,
        /// Behind which.
        after: Zxid,
    },
    /// It sent another transaction than the one that we have under its number.
    #[error("its transaction {0} is another than ours of that number")]
    Differs(Zxid),
    /// Our log cannot be cut where it wants; the next link asks for everything.
    #[error("our log cannot be cut at {0}")]
    CannotCut(Zxid),
    /// Our disk does not keep up with what the leader sends.
    #[error("{bytes} bytes wait for our disk, {most} may")]
    DiskBehind {
        /// What waits.
        bytes: usize,
        /// What may: [`Limits::unsynced_bytes`](crate::config::Limits::unsynced_bytes).
        most: usize,
    },
    /// The leader's epoch is older than our promise.
    #[error("epoch {0} is older than our promise")]
    OldEpoch(Epoch),
    /// This server stops.
    #[error("this server stops")]
    Shutdown,
}

/// Why going on would be unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// No epoch is left to begin.
    #[error("epoch {0} is the last that zxids have room for; no new epoch can begin")]
    EpochsExhausted(Epoch),
    /// A leader wants us to give up what was committed: it leads an ensemble that has lost it.
    #[error(
        "leader {leader} wants the log cut at {zxid}, and {committed} was committed: the ensemble has \
         lost committed transactions; keep this data directory"
    )]
    CommittedCut {
        /// Who wants that.
        leader: ServerId,
        /// Where.
        zxid: Zxid,
        /// What was committed.
        committed: Zxid,
    },
    /// The log on disk cannot be read, and the application needs what follows this: it is committed.
    #[error(
        "the log cannot be read after {after}, and the application has yet to apply what follows"
    )]
    Unreadable {
        /// The last that could be read.
        after: Zxid,
    },
    /// Something is untrue of this server that always holds ([`Peer::broken`](crate::peer::Peer::broken)).
    /// Nothing is done of what the last step would have done.
    #[error(
        "{0}: a mistake in this program, which stops before it does harm; keep this data directory"
    )]
    Broken(&'static str),
}
