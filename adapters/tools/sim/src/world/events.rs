//! What can happen in a world: events of its queue, traps and fuses.

use std::time::Duration;

use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Event;
use quorate_core::output::Output;
use quorate_core::zxid::Zxid;

use crate::application::State;
use crate::clients::News;
use crate::network::NetworkEvent;

/// Something that will happen.
#[derive(Debug)]
pub(super) enum What {
    Start {
        id: ServerId,
    },
    Tick {
        id: ServerId,
        token: u64,
    },
    Network(NetworkEvent),
    /// A non-member comes by.
    NonMember,
    Synced {
        id: ServerId,
        incarnation: u64,
    },
    /// The application or the disk answers.
    Answer {
        id: ServerId,
        incarnation: u64,
        event: Box<Event>,
    },
    /// An application reads the log, and applies what it finds.
    Replay {
        id: ServerId,
        incarnation: u64,
        after: Zxid,
        through: Zxid,
    },
    /// The application has prepared all that it was asked to.
    Prepared {
        id: ServerId,
        incarnation: u64,
    },
    Locate {
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        zxid: Zxid,
    },
    /// A snapshot that was taken is ready to be put on disk.
    Publish {
        id: ServerId,
        incarnation: u64,
        state: Box<State>,
    },
    /// The front of a server has something to do.
    Front {
        id: ServerId,
        incarnation: u64,
    },
    /// A server of ZooKeeper ends of a transaction that none can apply.
    Ends {
        id: ServerId,
        incarnation: u64,
    },
    /// The clients of a server that is about to stop have gone.
    Vacated {
        id: ServerId,
        incarnation: u64,
    },
    /// Something happens to clients.
    Client(News),
    Restored {
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        state: Box<State>,
    },
}

/// Where a crash has been laid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub(super) at: fn(&Output) -> bool,
    pub(super) after: bool,
}

/// How many more outputs of a server are carried out before it crashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fuse {
    pub(super) id: ServerId,
    pub(super) left: u64,
    pub(super) again: Option<Duration>,
}
