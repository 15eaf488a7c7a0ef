//! What a server wants done: the other half of the boundary.
//!
//! The whole rule for a driver: carry out every output at once and in order; perform writes in order;
//! report the last durable ticket. What must wait for the disk is held back inside the core and comes
//! out when its ticket has been reported.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::address::HostPort;
use crate::generation_message::Generation;
use crate::id::{LinkId, Origin, ReadId, ReleaseId, ServerId, Ticket};
use crate::input::Plane;
use crate::membership::Membership;
use crate::message::{Message, Request};
use crate::reasons::{Fault, Hangup, Refusal, TransferRefused, UnknownOutcome};
use crate::report::Report;
use crate::time::Instant;
use crate::txn::{RequestId, Txn, Txns};
use crate::zxid::{Epoch, Zxid};
use bytes::Bytes;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Admit leadership guards under this leadership; with `None`, revoke all of them. It is the first output
    /// of its step, so the holders of guards know that the leadership is over before others can hear of it, and
    /// lead. It comes again whenever the lease moves, to an earlier time, too.
    Leadership(Option<Leadership>),
    /// This server serves from here on: everything that the epoch has inherited is delivered before.
    Serving {
        /// In which epoch.
        epoch: Epoch,
        /// Whether it leads; it follows or observes otherwise.
        leads: bool,
        /// Whether its leader, this server or another, leaves a mark in the log of each session that comes to a server
        /// ([`LearnerInfo::MARKS`](crate::message::LearnerInfo::MARKS)).
        marks: bool,
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
    CancelDial {
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
    /// Close a link, after what was sent on it before has been written (bounded in time). What
    /// comes from it all the same is ignored. Each [`LinkDown`](crate::input::Event::LinkDown) is answered by one:
    /// only here is a link closed, so that the peer at its other end does not see that before its end was told here.
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
    NotifyDrained(LinkId),
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
    /// To the application, in order with all outputs that go there: turn a request into a transaction, on top of
    /// everything delivered and of everything prepared before; answer with [`Prepared`](crate::input::Event::Prepared).
    /// What [fits](crate::txn::Draft::fit) in [`Limits::txn_bytes`](crate::config::Limits::txn_bytes) is
    /// taken, else its refusal; then that preparation is void, and nothing prepared later may count on it.
    /// A request for a [reconfiguration](Request::RECONFIGURE) that the application has nothing against comes
    /// back as it is, as a draft of the kind [`Txn::RECONFIGURATION`] with the request's body: the core makes
    /// the transaction.
    Prepare {
        /// The leadership; comes back with the answer.
        epoch: Epoch,
        /// The number that the transaction will have: each request becomes one transaction, in this order.
        zxid: Zxid,
        /// Who asked.
        origin: Origin,
        /// For what.
        request: Request,
    },
    /// The staged state (restored from the newest snapshot on disk before the first step, or received and
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
        /// Whether it is the staged state.
        staged: bool,
    },
    /// A snapshot begins on this link: stage it: restore it as the next state, and write it beside the
    /// history; then say [`Restored`](crate::input::Event::Restored). It takes the place of what was
    /// staged only when it is [installed](Write::Install).
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
        doubt: UnknownOutcome,
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
    /// The leader has pinged this learner: answer each soon with the sessions that were heard from since the last, in an
    /// [`Event::Touch`](crate::input::Event::Touch). Only where
    /// [`keeps_sessions`](crate::config::Config::keeps_sessions) says so.
    Pinged,
    /// A learner has answered a ping of this leader, and has heard from these sessions. Only where
    /// [`keeps_sessions`](crate::config::Config::keeps_sessions) says so.
    Touched {
        /// Its link.
        from: LinkId,
        /// When the ping was sent; the origin of time if it answers none.
        asked: Instant,
        /// The sessions, opaque; none of which anything was heard, if empty.
        sessions: Bytes,
    },
    /// A learner asks this leader whether a session lives; answer with
    /// [`Event::Revalidated`](crate::input::Event::Revalidated). Behind everything that is to be delivered by now: a
    /// session that the learner knows of is known here. Only where
    /// [`keeps_sessions`](crate::config::Config::keeps_sessions) says so.
    Revalidate {
        /// Its link.
        from: LinkId,
        /// Which, opaque.
        body: Bytes,
    },
    /// What the leader says of a session that this learner has asked about, opaque.
    Revalidated(Bytes),
    /// This server is about to give up its leadership: the leadership guards here have to be released.
    /// Answer with [`Released`](crate::input::Event::Released). If that is not in time, it leads on.
    Release(ReleaseId),
    /// After [`Output::Release`]: it keeps the leadership.
    Keep,
    /// To the caller of a transfer: this server leads now; or the leadership was not transferred, and why.
    Transferred(Result<ServerId, TransferRefused>),
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
    AppendStaged(Txn),
    /// The snapshot that was received last and what was written [beside](Write::AppendStaged) the history
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
    /// The text of a newer configuration (the dynamic configuration file). It may name other addresses of this server, on
    /// which it listens from then on. The next one, if there was one, is
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
