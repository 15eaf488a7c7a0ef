//! What a server wants done: the other half of the boundary.
//!
//! The whole rule for a driver: carry out every output at once and in order; perform writes in order;
//! report the last durable ticket. What must wait for the disk is held back inside the core and comes
//! out when its ticket has been reported.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use thiserror::Error;

use crate::address::HostPort;
use crate::ballot::Generation;
use crate::id::{LinkId, Origin, ReadId, ReleaseId, ServerId, Ticket};
use crate::input::Plane;
use crate::membership::Membership;
use crate::message::{Message, Request};
use crate::report::Report;
use crate::time::Instant;
use crate::txn::{RequestId, Txn, Txns};
use crate::zxid::{Epoch, Zxid};
use bytes::Bytes;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Here may be done what only a leader may, under this; or no longer, if there is none. It is the first output
    /// of its step, so the holders of guards know that the leadership is over before others can hear of it, and
    /// lead. It comes again whenever the lease moves, to an earlier time, too.
    Leadership(Option<Leadership>),
    /// This server serves from here on: everything that the epoch has inherited is delivered before.
    Serving {
        /// In which epoch.
        epoch: Epoch,
        /// Whether it leads; it follows or observes otherwise.
        leads: bool,
        /// The membership in force.
        membership: Membership,
    },
    /// It serves no longer. What was accepted may still come to pass.
    Retired,
    /// Connect to a server: try the addresses in order, resolving each name anew. On the election
    /// plane write our introduction first. Answer with `LinkUp` or `DialFailed`; until then no other
    /// dial for this plane and peer comes.
    Dial {
        /// The port.
        plane: Plane,
        /// The server.
        peer: ServerId,
        /// Where, never empty.
        addresses: Vec<HostPort>,
    },
    /// Give up the dial of this plane and peer that is under way: its answer, whichever it is by now, comes at
    /// once.
    CallOff {
        /// The port.
        plane: Plane,
        /// The server.
        peer: ServerId,
    },
    /// Look up what these names lead to now, to compare it with where the connection on this link comes from, and
    /// answer with [`Resolved`](crate::input::Event::Resolved) unless the link has ended.
    Resolve {
        /// For which link.
        link: LinkId,
        /// The names, or addresses in their place.
        hosts: Vec<String>,
    },
    /// Close a link, after what was sent on it before has been written (bounded in time). Nothing more
    /// is to come from it, not even a `LinkDown`.
    Hangup {
        /// Which.
        link: LinkId,
        /// Why.
        reason: Hangup,
    },
    /// Write a message to a link. On the election plane only the newest that was not yet written
    /// counts (see [`Mailbox`](crate::links::Mailbox)).
    Send {
        /// Which.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// Make something durable, after the writes before it, and answer with `Persisted`.
    Persist {
        /// The number to answer with.
        ticket: Ticket,
        /// What.
        write: Write,
    },
    /// Answer with [`Drained`](crate::input::Event::Drained) when everything sent on this link before
    /// has been written: a learner is sent no more than it reads.
    Pace(LinkId),
    /// Tell where a learner's last zxid stands in the log on disk, with
    /// [`Located`](crate::input::Event::Located).
    Locate {
        /// The learner's link.
        link: LinkId,
        /// Its last zxid.
        zxid: Zxid,
    },
    /// Copy a part of the log on disk, all of it durable, to a learner, then say
    /// [`Streamed`](crate::input::Event::Streamed).
    StreamLog {
        /// The learner's link.
        link: LinkId,
        /// Begin with what follows this.
        after: Zxid,
        /// End with this.
        through: Zxid,
        /// In which packets.
        form: Form,
    },
    /// To the application, in order with the next six: turn a request into a transaction, on top of
    /// everything delivered and of everything prepared before; answer with [`Prepared`](crate::input::Event::Prepared).
    /// What [fits](crate::txn::Draft::fit) in [`Limits::txn_bytes`](crate::config::Limits::txn_bytes) is
    /// taken, else its refusal; the application forgets then what it prepared, before the next.
    /// A request for a [reconfiguration](Request::RECONFIGURE) that the application has nothing against comes
    /// back as it is, as a draft of the kind [`Txn::RECONFIGURATION`] with the request's body: the core makes
    /// the transaction.
    Prepare {
        /// The reign; comes back with the answer.
        epoch: Epoch,
        /// Who asked; comes back with the answer.
        origin: Origin,
        /// For what.
        request: Request,
    },
    /// The state kept apart (restored from the newest snapshot on disk before the first step, or received and
    /// installed since) is the application's from here on. Answer with [`Applied`](crate::input::Event::Applied).
    Adopt {
        /// The label of its snapshot.
        label: Zxid,
    },
    /// Apply a transaction: it is committed. Answer with [`Applied`](crate::input::Event::Applied).
    Deliver(Txn),
    /// Apply what the log on disk has behind `after`, through `through`: it is committed. Answer with
    /// [`Replayed`](crate::input::Event::Replayed); until then nothing else comes for the application but `Discard`.
    Replay {
        /// The application has everything through this.
        after: Zxid,
        /// Where it is to end.
        through: Zxid,
    },
    /// Take a snapshot of the state after what was delivered; answer with
    /// [`SnapshotTaken`](crate::input::Event::SnapshotTaken).
    TakeSnapshot(Zxid),
    /// Send the state as it is now to a learner: SNAP with this label, the state, its signature; then say
    /// [`Streamed`](crate::input::Event::Streamed).
    SendSnapshot {
        /// The learner's link.
        link: LinkId,
        /// What SNAP says.
        label: Zxid,
        /// What SNAP carries, see [`Packet::Snap`](crate::message::Packet::Snap).
        memberships: Bytes,
        /// Whether it is the state kept apart.
        apart: bool,
    },
    /// A snapshot begins on this link: restore it apart, as the next state, and write it beside the
    /// history; then say [`Restored`](crate::input::Event::Restored). It takes the place of what was
    /// kept apart only when it is [installed](Write::Install).
    ReceiveSnapshot {
        /// The leader's link.
        link: LinkId,
        /// What SNAP says.
        label: Zxid,
    },
    /// The leadership is over: forget what was prepared and not delivered.
    Abandon,
    /// At once: forget the snapshot that is received, or was and is not installed.
    Discard,
    /// To the caller: from here on, what is delivered is at least as new as the read wanted.
    Answer(ReadId),
    /// To the caller, at once: it is proposed or on its way to the leader, so it may come to pass. If its
    /// transaction is applied here, that is the answer; otherwise [`Lost`](Output::Lost) or
    /// [`Unknown`](Output::Unknown) comes.
    Accepted(RequestId),
    /// To the caller, if it has no answer yet: it was accepted, and surely never comes to pass.
    Lost(RequestId),
    /// To the caller, if it has no answer yet: it was accepted, and it cannot be told here whether it came or comes
    /// to pass.
    Unknown {
        /// Which request.
        id: RequestId,
        /// Why.
        doubt: Doubt,
    },
    /// To the caller, at once: it will not come to pass.
    Refused {
        /// Which request.
        id: RequestId,
        /// Why.
        reason: Refusal,
    },
    /// To the caller, at once: the read cannot be answered.
    ReadRefused {
        /// Which read.
        read: ReadId,
        /// Why.
        reason: Refusal,
    },
    /// This server is about to give up its seat: the leadership guards here have to be released.
    /// Answer with [`Released`](crate::input::Event::Released). If that is not in time, it leads on.
    Release(ReleaseId),
    /// After [`Output::Release`]: it keeps the seat.
    Keep,
    /// To the caller: the seat belongs to this server now, or it stays where it is.
    HandedOver(Result<ServerId, Kept>),
    /// Something has changed, and why. For people: nothing needs to be done.
    Report(Report),
    /// Stop, and keep the data: going on would be unsafe. Every step after this returns nothing.
    Halt(Fault),
}

/// The leadership of an established leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// Its epoch: no two leaderships have the same.
    pub epoch: Epoch,
    /// Until when no other leader can be established, if a quorum has promised that. Where there is to be such a promise,
    /// there is no leadership before it has come.
    pub lease: Option<Instant>,
}

/// Something to make durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// The highest epoch promised (`acceptedEpoch`).
    AcceptedEpoch(Epoch),
    /// The epoch whose history is taken over (`currentEpoch`).
    CurrentEpoch(Epoch),
    /// Transactions at the end of the log.
    Append(Txns),
    /// The log ends with this transaction; what follows is given up. Snapshots of what is given up go
    /// too.
    Truncate(Zxid),
    /// A transaction behind the snapshot that was received last, beside the history; no promise rests
    /// on it.
    Beside(Txn),
    /// The snapshot that was received last and what was written [beside](Write::Beside) the history
    /// become the history, in one step, and with it what that history knows of the membership: as
    /// [`Write::Membership`] and [`Write::NextMembership`] write it, whatever was there before. A crash between
    /// the history and its memberships would leave changes that bind no server.
    Install {
        /// The snapshot's label.
        label: Zxid,
        /// The text of the configuration in force.
        membership: Bytes,
        /// The text of the one seen last, if that is another.
        next: Option<Bytes>,
    },
    /// The vote of this server in a generation: it gives no other in this generation or an earlier one, also
    /// after a restart.
    GrantedVote {
        /// In which.
        generation: Generation,
        /// For whom.
        vote: ServerId,
    },
    /// The longest lease that this server may promise from now on: more than it ever has. Whatever its settings say
    /// later, it is there again after a restart ([`Durable::lease`](crate::durable::Durable::lease)).
    Lease(Duration),
    /// The text of a newer configuration (the dynamic configuration file). The next one, if there was one, is
    /// forgotten, unless it is later still.
    Membership(Bytes),
    /// The text of the configuration that was seen last and is not known to be in force (the dynamic
    /// configuration file's neighbour that ends in `next`); none if it came to nothing. It is there again
    /// after a restart, as [`Config::next_membership`](crate::config::Config::next_membership).
    NextMembership(Option<Bytes>),
}

/// In which packets a learner gets transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// PROPOSAL.
    Proposals,
    /// PROPOSAL and COMMIT, for each.
    Committed,
    /// COMMIT alone: their PROPOSALs went out before.
    Commits,
    /// INFORM.
    Informs,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// There is no established leader that this server leads with or follows.
    #[error("this server does not serve: there is no leader")]
    NotServing,
    /// The reign ended before the request was proposed or forwarded.
    #[error("the reign has ended before it was proposed")]
    ReignOver,
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
pub enum Doubt {
    /// This server was so far behind that it got a snapshot, which does not tell who asked for what.
    #[error("this server got a snapshot of the history that may contain it")]
    Snapshot,
    /// This server lost its connection to a leader that went on to lead.
    #[error("the connection to the leader was lost")]
    Disconnected,
}

/// Why a leader keeps its seat, which it was asked to hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Kept {
    /// Only the leader of an established ensemble has a seat to give.
    #[error("this server does not lead an established ensemble")]
    NotLeading,
    /// It hands it over already.
    #[error("the seat is being handed over already")]
    Underway,
    /// No such server follows here with a vote that it may be elected with.
    #[error("server {0} does not follow here with a vote")]
    NoFollower(ServerId),
    /// The server is not one of ours; it can only be elected.
    #[error("server {0} does not know how to take a seat over")]
    Foreign(ServerId),
    /// The server has not said lately that it hears a quorum on its election links: the others might not be
    /// able to follow it.
    #[error("server {0} has not said that it hears a quorum")]
    Unheard(ServerId),
    /// There is no follower to which it could go.
    #[error("no follower can take the seat over")]
    Nobody,
    /// Those that can be told are no quorum: the others would elect another leader.
    #[error("the servers that can be told are no quorum")]
    NoQuorum,
    /// The follower was lost, or gave way, before it had the seat.
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
    /// More strangers are connected than are allowed.
    #[error("too many links of servers that are no members")]
    TooManyStrangers,
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
    #[error("the reign that this link belonged to is over")]
    RoleEnded,
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
