//! The commands and conditions of a story, parsed.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::address::HostPort;
use quorate_core::config::Election;
use quorate_core::generation_message::Generation;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::Message;
use quorate_core::recipe::lease::Expiry;
use quorate_core::recipe::offer::Naming;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::{Contents, Survival};
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::network::Dialect;
use crate::record::Topic;
use crate::store::{CallFault, CallKind, Leg};

/// What a line asks for.
#[derive(Clone, Debug)]
pub(super) enum Demand {
    /// Before anything has started.
    Set(Setting),
    /// Only this server is real; the script says what the others say.
    Stage(i64),
    /// So many candidates elect through a store, by these means.
    Elect(i64, Means),
    /// How much is told.
    Show(Vec<Topic>),
    /// Time passes, and something is looked at.
    Run(Duration),
    Until(Expected, Duration),
    Holds(Expected, Duration),
    Expect(Expected),
    /// Something is done.
    Do(Command),
}

/// A condition, and how it is written.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) condition: Condition,
    pub(super) said: String,
}

/// Something that is done to servers or candidates.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Start(Vec<i64>),
    /// A candidate gives up in good order.
    Stop(Vec<i64>),
    Crash(Vec<i64>, CrashKind),
    /// Crash with these writes surviving, and start again.
    Restart(Vec<i64>, Option<Survival>),
    Trap(i64, Trap),
    Wipe(i64),
    Pause(i64),
    Resume(i64),
    /// Nothing passes along these ways.
    Cut(Vec<(i64, i64)>),
    Split(Vec<Vec<i64>>),
    Break(i64, i64),
    /// Nothing passes between a candidate and the store.
    CutOff(i64),
    /// A candidate's connection breaks, or it notices that.
    BreakOff(i64),
    /// What becomes of the next call of this kind.
    CallFault {
        id: i64,
        kind: CallKind,
        part: Leg,
        what: CallFault,
    },
    /// An operator deletes a candidate's nodes.
    Delete(i64),
    /// An operator ends a candidate's session.
    End(i64),
    /// What is of sessions that are over stays in the store.
    Linger(bool),
    /// How long a candidate's guarded work takes to end.
    Guards(i64, Duration),
    /// So many who are no members say these pieces to a port of a server.
    NonMembers {
        crowd: usize,
        to: i64,
        plane: Plane,
        pieces: Vec<Bytes>,
    },
    Heal,
    BlackHole(i64, bool),
    Advertise(i64, HostPort),
    /// A client at this server writes one letter.
    Write(i64, u8),
    /// A client at the real server writes something.
    WriteHere,
    Read(i64),
    Transfer(i64, Option<i64>),
    /// An operator at this server wants another membership.
    Reconfigure(i64, Reconfiguration),
    StepDown(i64),
    /// A scripted peer says something to the real server.
    Hears {
        id: i64,
        peer: i64,
        line: Line,
    },
    /// Its quorum link ends.
    HangsUp(i64),
    /// It opens another quorum link.
    Connects(i64),
    /// The snapshot that was announced has come whole.
    Snapshot(Zxid),
    /// What was written becomes durable.
    Sync,
}

/// By which means candidates elect.
#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    Offers(Naming),
    Lease(Expiry),
}

/// What a scripted peer says; transactions get their contents when they are said.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Ready(Message),
    Proposal(Zxid),
    Inform(Zxid),
    /// Its answer to the last vote, or pre-vote, that it was asked for in this generation, and which generation
    /// it has seen itself.
    Answer {
        granted: bool,
        pre: bool,
        asked: Generation,
        seen: Generation,
    },
}

/// Something about the world, fixed before anything starts.
#[derive(Clone, Debug)]
pub(super) enum Setting {
    /// Who takes part; later, that the files of all say so from now on.
    Servers(Ensemble),
    /// What the configuration of one server says; also later, while it is down.
    View(i64, Ensemble),
    /// Who is no member at first.
    Spares(Vec<i64>),
    /// Who speaks as some version of ZooKeeper does.
    Speak(Dialect, Vec<i64>),
    Disk(i64, Box<Contents>),
    Seed(u64),
    Tick(Duration),
    InitLimit(u32),
    SyncLimit(u32),
    Latency(Duration),
    Silence(Duration),
    Stream(Duration),
    /// How many transactions are kept in memory.
    Window(usize),
    /// After how many transactions a snapshot is taken.
    Snap(u64),
    Crash(Survival),
    /// Whether elections end as soon as nothing can change them.
    Settle(bool),
    /// How it is found out who is to lead.
    Election(Election),
    /// Whether the membership may change while the servers run.
    Reconfig(bool),
    /// Whether a stage's writes become durable at once.
    DiskByHand,
    /// After how much silence a store ends a session, or a lease.
    Session(Duration),
    /// How long the lease of one candidate lasts where others observe it.
    Lease(i64, Duration),
    /// By how much a candidate stops before that.
    Margin(Duration),
    /// The counter of a store's offers.
    Counter(i32),
}

/// Whom a setting changes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    /// Everybody.
    All,
    /// Real servers, all or one.
    Servers,
    /// Many real servers.
    World,
    /// One server, wherever that is.
    Server(i64),
    /// The one real server of a stage.
    Stage,
    /// Candidates.
    Candidates,
    /// Those that make offers in a store which counts them.
    Offers,
    /// One candidate that observes leases.
    Observer(i64),
}

impl Setting {
    /// How it is written, and whom it changes.
    pub(super) const fn about(&self) -> (&'static str, Whom) {
        match self {
            Self::Servers(_) => ("servers", Whom::Servers),
            Self::View(id, _) => ("view", Whom::Server(*id)),
            Self::Spares(_) => ("spares", Whom::World),
            Self::Speak(..) => ("speak", Whom::World),
            Self::Disk(id, _) => ("disk", Whom::Server(*id)),
            Self::Seed(_) => ("set seed", Whom::All),
            Self::Tick(_) => ("set tick", Whom::Servers),
            Self::InitLimit(_) => ("set init", Whom::Servers),
            Self::SyncLimit(_) => ("set sync", Whom::Servers),
            Self::Latency(_) => ("set latency", Whom::World),
            Self::Silence(_) => ("set silence", Whom::World),
            Self::Stream(_) => ("set stream", Whom::World),
            Self::Window(_) => ("set window", Whom::Servers),
            Self::Snap(_) => ("set snap", Whom::Servers),
            Self::Crash(_) => ("set crash", Whom::Servers),
            Self::Settle(_) => ("set settle", Whom::Servers),
            Self::Election(_) => ("set election", Whom::Servers),
            Self::Reconfig(_) => ("set reconfig", Whom::World),
            Self::DiskByHand => ("set disk by hand", Whom::Stage),
            Self::Session(_) => ("set session", Whom::Candidates),
            Self::Lease(id, _) => ("set lease", Whom::Observer(*id)),
            Self::Margin(_) => ("set margin", Whom::Candidates),
            Self::Counter(_) => ("set counter", Whom::Offers),
        }
    }
}

/// A point in what a server does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub(super) after: bool,
    pub(super) at: Point,
}

/// What a server is about to do there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Point {
    AcceptedEpoch,
    CurrentEpoch,
    Append,
    Install,
    LeaderInfo,
    Ack,
    NewLeader,
}

/// Something that is the case or not.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// A leader serves; this one, or whichever.
    Led(Option<i64>),
    NoLeader,
    /// One leads, and all these serve with it; all there are, if none is named.
    Settled(Vec<i64>),
    /// All that run have applied everything committed.
    Level,
    Is(i64, Being),
    Follows(i64, i64),
    Round(i64, i64),
    Votes(i64, i64),
    /// So many connections join two servers, known to both.
    Links(i64, i64, Plane, usize),
    LogIs(i64, Vec<Zxid>),
    LogEnds(i64, Zxid),
    Epochs(i64, Epoch, Epoch),
    Applied(i64, u64),
    /// The voters of the membership that a server has on its disk.
    Voters(i64, Vec<i64>),
    /// Those of the membership that is to follow it.
    NextVoters(i64, Vec<i64>),
    Committed(Zxid),
    LastWrite(Outcome),
    LastRead(Outcome),
    /// So many nodes are in the store.
    Nodes(u64),
    /// So many of them are of one candidate.
    NodesOf(i64, u64),
    /// So many were made in all.
    Made(u64),
    /// So many terms have begun.
    Terms(u64),
}

/// What a server is, or a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Being {
    In(ServerState),
    Serving,
    NotServing,
    Down,
    /// It leads and is not confirmed.
    Suspended,
    Waiting,
    Stopped,
    /// What only a leader may do is done there, or is not.
    Working,
    Idle,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done(Option<Zxid>),
    Accepted,
    Refused,
    Lost,
    /// What became of it cannot be told there.
    Unknown,
    Open,
}

/// A server's number as the core knows it.
pub(super) const fn id(number: i64) -> ServerId {
    ServerId(number)
}
