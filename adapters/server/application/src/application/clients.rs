//! Whom a server serves: the clients of a service in front of the application, sans-IO like the core.
//!
//! ```text
//!   sockets ──► Connected, Received ──►  Clients::step_into   ──► Send, Close ──────────► sockets
//!   core ─────► Serving, Synced … ────►  beside the           ──► Submit, Sync, Touch … ─► core
//!   apply ────► on_applied ───────────►  application
//! ```
//!
//! The service steps where the application steps: a read and what it asks to be told of are one step towards applying.
//! All that it is told comes in one order with what is applied; outputs are carried out in order.
//!
//! A server without a service has [`NoClients`] and pays nothing.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::zxid::Epoch;

use crate::application::Application;

/// One connection of a client, numbered by the driver; a number never comes back, so what is meant for one never
/// reaches a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// One question for a read point, numbered by the service; a number never comes back while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncId(pub u64);

/// What happens, and when.
#[derive(Clone, Debug)]
pub struct Input {
    /// When the service steps.
    pub at: Instant,
    /// The wall clock then, in milliseconds since 1970.
    pub wall_ms: i64,
    /// What happens.
    pub event: Event,
}

/// What the service of a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time has passed: something is [due](Clients::deadline).
    Tick,
    /// A client has connected.
    Connected {
        /// Its number.
        client: ClientId,
        /// Where it comes from.
        remote: SocketAddr,
        /// What its connection goes through, and what that proves.
        over: Transport,
    },
    /// A client has sent these frames, as [`Framing::take`] took them off its bytes, in order. Behind a
    /// [`Frame::Word`] or [`Frame::Garbled`] comes nothing more of it but its end, some seconds later if it is not
    /// [closed](Output::Close) before.
    Received {
        /// Which.
        client: ClientId,
        /// What.
        frames: Vec<Frame>,
    },
    /// A client has sent what tells how long its first frame is ([`Framing::announced`]), and not all of it.
    Begun(ClientId),
    /// A client was heard from, and has sent no whole frame: it has to wait for its turn to send a long one, or that has
    /// come. From now on it has the time that it may be silent.
    Heard(ClientId),
    /// So many bytes of what was to be [sent](Output::Send) to it are written: told at once while more than 64 KiB wait,
    /// else within a moment.
    Written {
        /// To which client.
        client: ClientId,
        /// How many more.
        bytes: usize,
    },
    /// The connection of a client has ended, and was not [closed](Output::Close) from here. Nothing that is sent to it
    /// from here on is written.
    Disconnected(ClientId),
    /// This server serves from here on; see the core's output of that name.
    Serving {
        /// In which epoch.
        epoch: Epoch,
        /// Whether it leads.
        leads: bool,
        /// Whether its leader leaves a mark in the log of each session that comes to a server.
        marks: bool,
        /// The membership in force.
        membership: Box<Membership>,
    },
    /// It serves no longer.
    Retired,
    /// The application's state is another one as a whole: a leader's snapshot was adopted, while this server does not serve.
    Replaced,
    /// What is applied by now is as new as everything that was acknowledged before that [`Output::Sync`].
    Synced(SyncId),
    /// There is no such read point: the leader is lost, or is about to be.
    SyncRefused(SyncId),
    /// The leader has pinged: answer with one [`Output::Touch`], in this step or soon behind it.
    Pinged,
    /// A learner has answered a ping, and has heard from these sessions.
    Touched {
        /// Its link.
        from: LinkId,
        /// When the ping was sent; the origin of time if it answers none.
        asked: Instant,
        /// The sessions, as PING carries them.
        sessions: Bytes,
    },
    /// A learner asks whether a session lives: answer with [`Output::Revalidated`], in this step or later.
    Revalidate {
        /// Its link.
        from: LinkId,
        /// Which, as REVALIDATE carries it.
        body: Bytes,
    },
    /// What the leader says of a session, as REVALIDATE carries it.
    Revalidated(Bytes),
    /// The link of a learner has ended, if it was one.
    LinkLost(LinkId),
    /// This has happened here without a client: a service that keeps a log of who does what may tell it there.
    Noted(Note),
    /// The operator wants this share of the clients, of those that are there now, to find another server: none in the
    /// middle of what it asks, and not all at once. The server goes on, and who comes is served.
    Shed {
        /// How many in a hundred, rounded up.
        percent: u8,
        /// Within about this time, from now on.
        within: Duration,
    },
    /// The server is about to stop. No client can connect any more; those that are there are to find another server, not
    /// all at once: answer with one [`Output::Vacated`] when none is left that is waited for.
    Stopping {
        /// Within about this time, from now on.
        within: Duration,
    },
}

/// What a log of who does what may tell beside the changes of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is, in a word that stays.
    pub operation: &'static str,
    /// What is known of it, under names that stay: not long, and no secrets.
    pub fields: Vec<(&'static str, String)>,
    /// What became of it: `success`, `failure`, or `unknown`.
    pub result: &'static str,
}

/// What the connection of a client goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Nothing: others may read it, and change it.
    #[default]
    Plain,
    /// TLS.
    Tls {
        /// Whose certificate the client has shown, if it has: the subject in RFC 2253, as Java writes it. It was verified
        /// before anything else was read.
        subject: Option<String>,
    },
}

/// One thing that a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A word of four letters, and nothing else is heard from this connection.
    Word([u8; 4]),
    /// A frame without its length.
    Whole(Bytes),
    /// What came is no frame: the connection is of no use any more.
    Garbled,
}

/// What the service of a server wants done, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write these bytes to a client, behind what was to be written before.
    Send {
        /// Which.
        client: ClientId,
        /// A whole frame with its length, or text.
        bytes: Bytes,
    },
    /// End the connection of a client. It is told nothing more, and from this step on nothing is heard from it.
    Close {
        /// Which.
        client: ClientId,
        /// How.
        how: Close,
    },
    /// Read nothing from a client. What was read before may still come.
    Pause(ClientId),
    /// Read from it again.
    Resume(ClientId),
    /// Ask the leader for a transaction, see the core's event of that name.
    Submit {
        /// In which the service was told to serve last.
        epoch: Epoch,
        /// What for.
        request: Request,
    },
    /// Ask for a read point.
    Sync(SyncId),
    /// The answer to one [`Event::Pinged`]: the sessions that were heard from since the last.
    Touch(Bytes),
    /// Ask the leader whether a session lives.
    Revalidate(Bytes),
    /// Tell a learner whether a session lives.
    Revalidated {
        /// Its link.
        to: LinkId,
        /// What it is told.
        body: Bytes,
    },
    /// Write this line, with its end, to the log of what clients have changed, behind those before it.
    Audit(Bytes),
    /// No client is left that the server has to wait for before it stops; the answer to [`Event::Stopping`].
    Vacated,
    /// Keep this number, in place of the one before: it is told at the next start, see [`Host::remembered`]. Nothing
    /// waits until it is kept.
    Remember(i64),
    /// Going on would be unsafe: the server ends with this reason, and keeps what is on disk. Nothing that was to be done
    /// behind this is done.
    Halt(String),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    /// When what was to be sent is written, or cannot be written in time.
    AfterWriting,
    /// At once, by a reset.
    Reset,
}

/// Takes frames off the bytes of one connection. Each connection has its own.
pub trait Framing: Clone + Send + Sync + 'static {
    /// Takes the next frame off the front of `bytes`, if it has come whole. Behind [`Frame::Garbled`] nothing
    /// more is taken.
    fn take(&mut self, bytes: &mut BytesMut) -> Option<Frame>;

    /// How many bytes the frame at the front of `bytes` has, with what tells its length, if that can be seen yet: clients
    /// take turns at sending long ones, and nothing is kept for what is only announced.
    fn announced(&self, bytes: &[u8]) -> Option<usize>;
}

/// The clients of one server, and what it owes them.
pub trait Clients<A: Application + ?Sized>: Send + 'static {
    /// What takes frames off a connection.
    type Framing: Framing;

    /// Whether there is a service: it hears of sessions at other servers, and its ports are opened.
    const SERVES: bool;

    /// What takes the frames of a new connection off its bytes.
    fn framing(&self) -> Self::Framing;

    /// Takes in what has happened; puts what is to be done behind what is in `out`.
    fn step_into(&mut self, input: Input, application: &mut A, out: &mut Vec<Output>);

    /// The application has applied a transaction, with this effect.
    fn on_applied(
        &mut self,
        at: Instant,
        txn: &Txn,
        effect: &A::Effect,
        application: &mut A,
        out: &mut Vec<Output>,
    );

    /// When to step with [`Event::Tick`], if nothing happens before.
    fn deadline(&self) -> Option<Instant>;

    /// What words are answered with by the driver while the application is busy for long, and the service with it. Asked
    /// about once a second, and only when it may become busy.
    fn at_hand(&mut self, application: &mut A) -> AtHand {
        let _ = application;
        AtHand::default()
    }
}

/// Words of four letters, each with its answer.
pub type Answers = Vec<([u8; 4], Bytes)>;

/// Answers to words, see [`Clients::at_hand`]. A word without one waits for the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtHand {
    /// As of now.
    pub now: Answers,
    /// Once it is told that this server [serves no longer](Event::Retired).
    pub retired: Answers,
}

/// No service: nothing listens, and nothing is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoClients;

impl Framing for NoClients {
    fn take(&mut self, bytes: &mut BytesMut) -> Option<Frame> {
        bytes.clear();
        Some(Frame::Garbled)
    }

    fn announced(&self, _: &[u8]) -> Option<usize> {
        None
    }
}

impl<A: Application + ?Sized> Clients<A> for NoClients {
    type Framing = Self;

    const SERVES: bool = false;

    fn framing(&self) -> Self {
        Self
    }

    fn step_into(&mut self, _: Input, _: &mut A, _: &mut Vec<Output>) {}

    fn on_applied(&mut self, _: Instant, _: &Txn, _: &A::Effect, _: &mut A, _: &mut Vec<Output>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// What a service is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The server.
    pub id: ServerId,
    /// How long a tick of the ensemble is.
    pub tick: Duration,
    /// The longest frame of a client, in bytes.
    pub frame_bytes_max: usize,
    /// The longest transaction that the members take, in bytes, with its header.
    pub txn_bytes_max: usize,
    /// What the service has had [kept](Output::Remember) last, if anything is left of it.
    pub remembered: Option<i64>,
}
