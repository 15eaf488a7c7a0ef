//! What happened in a run, as data: everything that servers heard and did, and what was done to them.
//!
//! ```text
//!   World, Stage ── Entry ──► Record ──► Teller ── Moment ──► lines, Chart, Diagram
//!                     │                    │          ▲
//!                     │                    │          └─ Candidacy: told by an election through a store
//!                     │                    └─ which send arrived where, what a disk now holds
//!                     └─ one line each, for a log
//! ```
//!
//! A record is kept only when asked for: a failing seed can simply be run again. It is bounded; of a long
//! run the end is left.

mod candidacy;
mod line;
mod moment;
mod teller;
mod topic;
mod words;

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::output::Output;
use quorate_core::time::Instant;
use quorate_core::zxid::{Epoch, Zxid};

use crate::faults::CrashKind;

pub use candidacy::Candidacy;
pub use moment::{Arrow, Fate, Happening, Moment};
pub use teller::Teller;
pub use topic::Topic;
pub use words::Short;
pub(crate) use words::millis;

/// How many entries a record keeps.
const ENTRIES_MAX: usize = 20_000;

/// What happened, the oldest first.
#[derive(Debug, Default)]
pub struct Record {
    entries: VecDeque<Entry>,
    /// How many have been forgotten.
    forgotten: usize,
}

/// Something that happened to a server.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// To whom.
    pub server: ServerId,
    /// What.
    pub what: What,
}

/// What happened to a server.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are the large ones")]
pub enum What {
    /// It starts, with this on its disk.
    Start(Found),
    /// It crashes.
    Crash(CrashKind),
    /// Its disk fails: it goes on without it, and starts again when that works.
    DiskFails,
    /// Its disk is emptied.
    Wipe,
    /// Its clock jumps forward.
    Clock(Duration),
    /// It stands still.
    Pause,
    /// It goes on.
    Resume,
    /// Nothing passes from it to this server any more.
    Block(ServerId),
    /// Everything passes again.
    Unblock(ServerId),
    /// Its connections with this server break.
    Break(ServerId),
    /// Some who are no members connect to it.
    Visit {
        /// How many.
        crowd: usize,
        /// To which port.
        plane: Plane,
        /// How much each of them says.
        bytes: usize,
    },
    /// Who is at the other end of a link, where that is a scripted peer.
    Meet {
        /// The link.
        link: LinkId,
        /// Which of the two ports it is on.
        plane: Plane,
        /// Who.
        peer: ServerId,
    },
    /// It heard of something.
    Hear(Event),
    /// It did something; what a crash kept it from is not here.
    Do(Output),
}

/// What a server found on its disk when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The epoch it has promised.
    pub accepted_epoch: Epoch,
    /// The epoch whose history it has.
    pub current_epoch: Epoch,
    /// Its last transaction.
    pub last: Zxid,
    /// The log holds everything after this.
    pub floor: Zxid,
    /// The newest snapshot's label.
    pub snapshot: Zxid,
}

impl From<&Durable> for Found {
    fn from(durable: &Durable) -> Self {
        Self {
            accepted_epoch: durable.accepted_epoch,
            current_epoch: durable.current_epoch,
            last: durable.last_zxid,
            floor: durable.floor,
            snapshot: durable.snapshot,
        }
    }
}

impl Record {
    /// Adds an entry; the oldest goes if there are too many.
    pub(crate) fn note(&mut self, at: Instant, server: ServerId, what: What) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(Entry { at, server, what });
    }

    /// The entries that are left.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many entries there ever were.
    pub fn count(&self) -> usize {
        self.forgotten + self.entries.len()
    }

    /// The entries behind the first `count`, as far as they are left.
    pub fn after(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(count.saturating_sub(self.forgotten))
    }

    /// The last entries, a line each.
    pub fn tail(&self, count: usize) -> String {
        let skip = self.entries.len().saturating_sub(count);
        self.entries.iter().skip(skip).fold(String::new(), |all, entry| format!("{all}{entry}\n"))
    }

    /// Everything that is left, retold.
    pub fn moments(&self) -> Vec<Moment> {
        let mut teller = Teller::default();
        let mut all: Vec<_> = self.entries.iter().flat_map(|entry| teller.tell(entry)).collect();
        all.extend(teller.rest());
        all
    }
}
