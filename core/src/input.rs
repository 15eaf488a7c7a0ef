//! What can happen to a server: half of the boundary.
//!
//! An [`Input`] is an [`Event`] and the time at which it happened, so a whole run is one value (a
//! configuration, what the disk held, a list of inputs) that can be recorded, replayed and shrunk.
//! Local events and messages from the network are different types: no peer can forge a `Persisted`.

use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::Bytes;

use crate::address::HostPort;
use crate::id::{LinkId, ReadId, ReleaseId, ServerId, Ticket};
use crate::message::{Message, Request};
use crate::time::Instant;
use crate::txn::Draft;
use crate::zxid::{Epoch, Zxid};

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// When. A time before that of an earlier input counts as that.
    pub at: Instant,
    /// What.
    pub event: Event,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time has passed. Due when [`Peer::deadline`](crate::peer::Peer::deadline) says so; a spurious
    /// one is harmless.
    Tick,
    /// A connection is open. On the election plane: the introduction has been written (`dialled`) or
    /// read (otherwise).
    LinkUp(LinkUp),
    /// A connection has ended, by the peer or the network, or is of no use to the driver. It stays open until the
    /// [`Hangup`](crate::output::Output::Hangup) that answers. One for a link that the core has hung up already is harmless.
    LinkDown {
        /// Which.
        link: LinkId,
        /// How.
        cause: Cause,
    },
    /// A [`Dial`](crate::output::Output::Dial) came to nothing.
    DialFailed {
        /// The port that was dialled.
        plane: Plane,
        /// The server that was dialled.
        peer: ServerId,
    },
    /// What [`Resolve`](crate::output::Output::Resolve) asked for.
    Resolved {
        /// For which link.
        link: LinkId,
        /// What all the names lead to now; nothing, if none of them can be looked up.
        addresses: Vec<IpAddr>,
    },
    /// No address of this port accepts connections any more: an attempt to accept has failed at each of them,
    /// and none has succeeded or had to wait for a connection since.
    ListenFailed(Plane),
    /// After [`ListenFailed`](Event::ListenFailed): at some address of this port an attempt to accept has
    /// succeeded, or waits for a connection.
    Listening(Plane),
    /// There is little room left on the disk, or enough again. A server with little offers its leadership to one that
    /// has more, and is offered none; it votes, follows and may be elected as any other.
    DiskLow(bool),
    /// A message has arrived on a link, in the order of that link.
    Received {
        /// Which.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// This write and all before it are durable: a crash no longer undoes them.
    Persisted(Ticket),
    /// Everything sent on a link before the last [`NotifyDrained`](crate::output::Output::NotifyDrained) was written.
    Drained(LinkId),
    /// A snapshot is moving on this link, in one direction or the other. At most a few times a second.
    Progress(LinkId),
    /// Where the disk knows a learner's last zxid to stand, in answer to
    /// [`Locate`](crate::output::Output::Locate).
    Located {
        /// The learner's link.
        link: LinkId,
        /// Where it stands.
        located: Located,
    },
    /// What was asked for with [`StreamLog`](crate::output::Output::StreamLog) or
    /// [`SendSnapshot`](crate::output::Output::SendSnapshot) was written to the link. Nothing else is
    /// sent to it meanwhile.
    Streamed {
        /// The learner's link.
        link: LinkId,
        /// Whether all of it could be read.
        outcome: Result<(), Unreadable>,
    },
    /// The snapshot that was announced on a link has come whole, and is staged on disk and in the
    /// application. If it does not come whole, the link ends as [`Cause::Garbled`].
    Restored {
        /// Which.
        link: LinkId,
        /// The text of the membership that stands in the state, if the application keeps it there, as ZooKeeper's
        /// data tree does under `/zookeeper/config`, and a reconfiguration wrote it: with the version -1, at the zxid
        /// that is the text's version. (A client that may do everything may write there, too.)
        membership: Option<Bytes>,
    },
    /// A snapshot of the application's state after this transaction was taken, or could not be.
    SnapshotTaken(Zxid),
    /// The operator asks for a snapshot before the next one is due: of what is to be delivered by now, at once, or as soon
    /// as the one that is being taken is done. [`TakeSnapshot`](crate::output::Output::TakeSnapshot) follows, unless the
    /// application's state is about to be replaced by a newer one, of which there is a snapshot then.
    TakeSnapshot,
    /// A caller at this server asks for a transaction. Answered by
    /// [`Refused`](crate::output::Output::Refused), or by
    /// [`Accepted`](crate::output::Output::Accepted) and, when it is applied, by itself.
    Propose(Request),
    /// A client of the service at this server asks for a transaction: it goes to the leader behind those before it.
    /// Nothing is said of what becomes of it. It comes to pass, or service here ends before
    /// ([`Retired`](crate::output::Output::Retired)); unlike a caller's, it is never carried over to the next leader, even
    /// if that is the same server. The service bounds how many are under way.
    Submit {
        /// In which service here was told to serve last ([`Serving`](crate::output::Output::Serving)); in another one it is
        /// dropped.
        epoch: Epoch,
        /// What for.
        request: Request,
    },
    /// The application has turned requests into transactions, in the order in which it was asked to: as
    /// many as it has ready.
    Prepared {
        /// The leadership in which it was asked.
        epoch: Epoch,
        /// The transactions, one for each request.
        drafts: Vec<Draft>,
    },
    /// The application has applied everything that was [delivered](crate::output::Output::Deliver) through this, or
    /// [adopted](crate::output::Output::Adopt) a state of this label, and every caller that asked for one of these has
    /// its answer. A later one stands for those before it.
    Applied(Zxid),
    /// What was to be [replayed](crate::output::Output::Replay) is applied.
    Replayed {
        /// How far.
        through: Zxid,
        /// Whether all of it could be read.
        outcome: Result<(), Unreadable>,
    },
    /// A caller at this server wants to read what is at least as new as everything acknowledged so far.
    Read(ReadId),
    /// The sessions that this server has heard from since the last time, as PING carries them: the answer to
    /// [`Pinged`](crate::output::Output::Pinged); otherwise it is told with the next. Opaque lists, that can stand behind one
    /// another.
    Touch(Bytes),
    /// A client has come with a session that this learner does not know: the leader is asked whether it lives, with
    /// these bytes. Answered by [`Revalidated`](crate::output::Output::Revalidated), unless the leader is lost before.
    Revalidate(Bytes),
    /// Whether a session lives of which a learner has asked: the answer to
    /// [`Revalidate`](crate::output::Output::Revalidate).
    Revalidated {
        /// The link of that learner.
        to: LinkId,
        /// What it is told, opaque.
        body: Bytes,
    },
    /// What the outside arbiter of a two-server ensemble says now.
    Oracle(bool),
    /// The operator asks a leader to give up its leadership: it transfers it to the best of its followers, or,
    /// where that cannot be, looks for a leader with everybody else.
    StepDown,
    /// The operator asks a leader to transfer its leadership to this server, or to the best that there is.
    /// Answered by [`Transferred`](crate::output::Output::Transferred).
    TransferLeadership(Option<ServerId>),
    /// All leadership guards on this server have been released, in answer to this
    /// [`Release`](crate::output::Output::Release).
    Released(ReleaseId),
    /// The server is to stop. Every link is hung up; nothing happens after.
    Shutdown,
}

impl Event {
    /// [`Event::Restored`] of a state that tells nothing of the membership.
    pub const fn restored(link: LinkId) -> Self {
        Self::Restored { link, membership: None }
    }
}

/// A connection that has come up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkUp {
    /// Its number, never used before.
    pub link: LinkId,
    /// Which of the two ports it is on.
    pub plane: Plane,
    /// Whether we dialled it.
    pub dialled: bool,
    /// Who is at the other end: whom we dialled, or who introduced itself. None on a quorum link that
    /// was accepted: its first packet tells.
    pub peer: Option<ServerId>,
    /// Where the other end says it listens for elections, if it introduced itself with an address.
    pub advertised: Option<HostPort>,
    /// The other end's address as the network sees it; the port means nothing.
    pub remote: Option<IpAddr>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The peer closed it.
    Closed,
    /// It broke.
    Reset,
    /// The network stopped acknowledging.
    Silent,
    /// The peer sent what cannot be read; the driver closed it.
    Garbled,
}

/// The two ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plane {
    /// Notifications between all voters (3888 by convention).
    Election,
    /// Packets between a leader and its learners (2888 by convention).
    Quorum,
}

/// Where a zxid stands in the history on disk, and what it costs to read on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Located {
    /// Where.
    pub place: Place,
    /// How many bytes of log files follow it, about.
    pub log_bytes: u64,
    /// How many bytes the newest snapshot has; 0 if there is none.
    pub snapshot_bytes: u64,
}

/// Where a zxid stands in the history on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Before everything that can be read without a hole.
    BelowFloor,
    /// It is a transaction of the log, or the floor itself.
    Held,
    /// It lies between two transactions of the log, and is none of them.
    Absent {
        /// The last one before it; the floor if that is nearer.
        previous: Zxid,
    },
    /// After everything that is durable.
    Beyond,
}

/// What was to be streamed to a learner cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unreadable;
