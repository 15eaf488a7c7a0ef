//! One server of the world: the core's `Peer` with its disk, application, clock and links.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::input::Event;
use quorate_core::output::Leadership;
use quorate_core::peer::Peer;
use quorate_core::recorder::Recorder;
use quorate_core::time::Instant;
use quorate_core::txn::Draft;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::{Application, State};
use crate::brief::Brief;
use crate::disk::{Contents, Disk};
use crate::world::clock::Clock;
use crate::world::front::Front;
use crate::world::reference::Reference;

impl Server {
    /// One that does not run, with what its disk holds.
    pub(super) fn new(config: Config, contents: Contents, clock: Clock) -> Self {
        Self {
            config,
            recorder: None,
            peer: None,
            brief: None,
            leadership: None,
            disk: Disk::new(contents),
            disk_full: false,
            waits_for_disk: false,
            application: Application::default(),
            front: None,
            drafts: Vec::new(),
            taken: Vec::new(),
            busy_until: Instant::ORIGIN,
            committed: Zxid::ZERO,
            handed: None,
            asked: 0,
            incarnation: 0,
            disk_hangs: false,
            largest: 0,
            fell_behind: 0,
            paused: false,
            reference: None,
            clock,
            wall: 0,
            wall_max: 0,
            stood: Vec::new(),
            remembered: None,
            suspended: None,
            backlog: VecDeque::new(),
            tick: None,
            token: 0,
        }
    }

    /// When it is to be told the time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let peer = self.peer.as_ref()?;
        match &self.reference {
            Some(reference) => reference.deadline(peer),
            None => peer.deadline().map(|(at, _)| at),
        }
    }

    /// Whether it leads, and clients of ZooKeeper come to it.
    pub(super) fn leads_clients(&self) -> bool {
        let leads = |b: Brief| b.serving && b.state == ServerState::Leading;
        self.front.is_some() && self.brief.is_some_and(leads)
    }

    /// Whether it runs and has not been restarted.
    pub(super) fn is(&self, incarnation: u64) -> bool {
        self.peer.is_some() && self.incarnation == incarnation
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: Config,
    /// Who listens to it, if anybody does.
    pub(super) recorder: Option<Box<dyn Recorder>>,
    pub(super) peer: Option<Peer>,
    pub(super) brief: Option<Brief>,
    /// What those know who do what only a leader may.
    pub(super) leadership: Option<Leadership>,
    pub(super) disk: Disk,
    /// No room is left on it.
    pub(super) disk_full: bool,
    /// It makes nothing durable.
    pub(super) disk_hangs: bool,
    /// It has given up its role for that, and starts again when the disk works.
    pub(super) waits_for_disk: bool,
    /// The most bytes of transactions that it was ever sent at once.
    pub(super) largest: usize,
    /// How often it gave up a leader because its disk did not keep up, since it served.
    pub(super) fell_behind: u32,
    pub(super) application: Application,
    /// ZooKeeper beside it, where clients have come.
    pub(super) front: Option<Box<Front>>,
    /// Transactions that are prepared, each in its leadership.
    pub(super) drafts: Vec<(Epoch, Draft)>,
    /// Snapshots that were taken, and wait for the log to be durable as far.
    pub(super) taken: Vec<State>,
    /// When the application has done what it was asked to do.
    pub(super) busy_until: Instant,
    /// What it knows to be committed.
    pub(super) committed: Zxid,
    /// The last that its application was handed in this step.
    pub(super) handed: Option<Zxid>,
    /// Requests and reads so far.
    pub(super) asked: u64,
    pub(super) incarnation: u64,
    pub(super) paused: bool,
    pub(super) clock: Clock,
    /// How far its wall clock is ahead of what that shows, in milliseconds.
    pub(super) wall: i64,
    /// The most of that so far.
    pub(super) wall_max: i64,
    /// What its service has had kept.
    pub(super) remembered: Option<i64>,
    /// What surrounds it that elects as ZooKeeper's do.
    pub(super) reference: Option<Reference>,
    /// What its clock showed whenever it has stood still, and for how long.
    pub(super) stood: Vec<(Instant, Duration)>,
    /// Since when its clock stands still.
    pub(super) suspended: Option<Instant>,
    pub(super) backlog: VecDeque<Event>,
    pub(super) tick: Option<Instant>,
    pub(super) token: u64,
}
