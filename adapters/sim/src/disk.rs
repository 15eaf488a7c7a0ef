//! A server's disk: what is durable, what is on its way, and what a crash leaves of it.
//!
//! ```text
//!   Persist ─► gathering ─► syncing (takes a while) ─► durable ─► Persisted(last ticket)
//!                  └────────── a crash ──────────┘
//!                   each of these writes may be lost
//! ```
//!
//! Epoch files are replaced atomically, so a write is there or not there, never half.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::durable::Durable;
use quorate_core::id::Ticket;
use quorate_core::output::Write;
use quorate_core::rng::Rng;

/// What a crash leaves of writes that were not yet reported as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// The first few of them, in their order: what a driver gives that syncs them one by one.
    Prefix,
    /// Any of them: what a driver would give that syncs several files in no order.
    Any,
}

/// How a disk behaves. Chances are in 65536ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The shortest sync.
    pub sync_min: Duration,
    /// The longest sync of a healthy disk.
    pub sync_max: Duration,
    /// The chance that a sync is slow.
    pub slow: u64,
    /// The longest slow sync.
    pub slow_max: Duration,
    /// What a crash leaves of unreported writes.
    pub survival: Survival,
}

impl Default for DiskConfig {
    fn default() -> Self {
        Self {
            sync_min: Duration::from_micros(100),
            sync_max: Duration::from_millis(5),
            slow: 0,
            slow_max: Duration::from_millis(300),
            survival: Survival::Prefix,
        }
    }
}

/// One server's disk.
#[derive(Clone, Debug)]
pub struct Disk {
    durable: Durable,
    syncing: Vec<(Ticket, Write)>,
    gathering: VecDeque<(Ticket, Write)>,
}

impl Disk {
    /// A disk that holds this.
    pub fn new(durable: Durable) -> Self {
        Self { durable, syncing: Vec::new(), gathering: VecDeque::new() }
    }

    /// What would be read after a crash at this moment if nothing else survived.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Takes a write; returns whether a sync is to be begun.
    pub(crate) fn persist(&mut self, ticket: Ticket, write: Write) -> bool {
        self.gathering.push_back((ticket, write));
        self.syncing.is_empty()
    }

    /// Begins to sync what has gathered; returns whether there was anything.
    pub(crate) fn begin(&mut self) -> bool {
        self.syncing.extend(self.gathering.drain(..));
        !self.syncing.is_empty()
    }

    /// Ends the sync: its writes are durable. Returns each state on the way and the last ticket.
    pub(crate) fn complete(&mut self) -> (Vec<Durable>, Option<Ticket>) {
        let mut states = Vec::with_capacity(self.syncing.len());
        let mut last = None;
        for (ticket, write) in std::mem::take(&mut self.syncing) {
            self.apply(&write);
            states.push(self.durable.clone());
            last = Some(ticket);
        }
        (states, last)
    }

    /// Ends everything under way; returns each state on the way, and how many writes were lost.
    pub(crate) fn crash(&mut self, survival: Survival, rng: &mut Rng) -> (Vec<Durable>, usize) {
        let pending: Vec<_> = self.syncing.drain(..).chain(self.gathering.drain(..)).collect();
        let prefix = usize::try_from(rng.below(pending.len() as u64 + 1)).unwrap_or(0);
        let (mut states, mut lost) = (Vec::new(), 0);
        for (at, (_, write)) in pending.iter().enumerate() {
            let survives = match survival {
                Survival::Prefix => at < prefix,
                Survival::Any => rng.below(2) == 0,
            };
            if survives {
                self.apply(write);
                states.push(self.durable.clone());
            } else {
                lost += 1;
            }
        }
        (states, lost)
    }

    /// Makes the disk empty.
    pub(crate) fn wipe(&mut self) {
        *self = Self::new(Durable::default());
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::AcceptedEpoch(epoch) => self.durable.accepted_epoch = *epoch,
            Write::CurrentEpoch(epoch) => self.durable.current_epoch = *epoch,
            Write::Membership(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::zxid::Epoch;

    #[test]
    fn a_crash_leaves_a_prefix_and_completing_leaves_everything() {
        let (mut rng, mut seen) = (Rng::new(1), std::collections::BTreeSet::new());
        for _ in 0..100 {
            let mut disk = Disk::new(Durable::default());
            assert!(disk.persist(Ticket(1), Write::AcceptedEpoch(Epoch(1))));
            assert!(disk.begin());
            assert!(!disk.persist(Ticket(2), Write::CurrentEpoch(Epoch(1))), "one at a time");
            let (_, lost) = disk.crash(Survival::Prefix, &mut rng);
            let Durable { accepted_epoch, current_epoch, .. } = disk.durable().clone();
            seen.insert((accepted_epoch.0, current_epoch.0, lost));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(0, 0, 2), (1, 0, 1), (1, 1, 0)]);
        let mut disk = Disk::new(Durable::default());
        disk.persist(Ticket(1), Write::AcceptedEpoch(Epoch(1)));
        disk.persist(Ticket(2), Write::CurrentEpoch(Epoch(1)));
        assert!(disk.begin());
        let (states, last) = disk.complete();
        assert_eq!((states.len(), last), (2, Some(Ticket(2))));
        assert!(!disk.begin());
    }
}
