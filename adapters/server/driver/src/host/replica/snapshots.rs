//! Snapshots of the application: taken and sent, received and staged, until one is its state.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quorate_application::Application;
use quorate_core::id::LinkId;
use quorate_core::input::Unreadable;
use quorate_core::zxid::Zxid;

use crate::disk::SnapshotFault;
use crate::disk::{self as stream, DiskHandle, Intake, Pieces, Reception, Wanted};
use crate::host::callers::SnapshotAnswer;
use crate::host::proposal::TakeSnapshotError;
use crate::host::replica::Replica;
use crate::host::worker::{Order, WorkerReport};

/// A snapshot that is coming or has come from a leader.
pub(super) struct Receiving<A: Application> {
    pub(super) label: Zxid,
    wanted: Arc<Wanted>,
    /// The state, once it is whole.
    state: Arc<Mutex<Option<A::Staged>>>,
}

/// The newest snapshot on disk, and who waits for another one.
#[derive(Debug)]
pub(super) struct Snapshots {
    newest: Zxid,
    /// Each for one of at least this label. As many as operators ask at a time.
    waiting: Vec<(Zxid, SnapshotAnswer)>,
}

impl Snapshots {
    pub(super) const fn new(newest: Zxid) -> Self {
        Self { newest, waiting: Vec::new() }
    }

    /// One was taken, or could not be.
    pub(super) fn taken(&mut self, label: Zxid, error: Option<&SnapshotFault>) {
        if error.is_none() {
            self.newest = self.newest.max(label);
        }
        let outcome = match error {
            None => Ok(label),
            Some(error) => Err(TakeSnapshotError::Failed(error.to_string().into())),
        };
        self.tell(|least| least <= label, &outcome);
    }

    /// Another history has taken the place of ours: what was asked for never comes.
    fn replaced(&mut self, label: Zxid) {
        self.newest = label;
        self.tell(|_| true, &Err(TakeSnapshotError::Replaced));
    }

    /// The disk has failed.
    pub(super) fn refuse_all(&mut self) {
        self.tell(|_| true, &Err(TakeSnapshotError::disk_failed()));
    }

    fn tell(&mut self, of: impl Fn(Zxid) -> bool, outcome: &Result<Zxid, TakeSnapshotError>) {
        let waiting = std::mem::take(&mut self.waiting);
        let (told, waiting) = waiting.into_iter().partition(|(least, _)| of(*least));
        self.waiting = waiting;
        let told: Vec<(_, SnapshotAnswer)> = told;
        for (_, answer) in told {
            // The operator may have stopped waiting.
            drop(answer.send(outcome.clone()));
        }
    }
}

impl<A: Application> Replica<A> {
    /// An operator wants a snapshot of what is to be applied by now. Returns whether it is to be asked for: not if the
    /// newest on disk has all of it.
    pub(crate) fn await_snapshot(&mut self, answer: SnapshotAnswer) -> bool {
        let Snapshots { newest, waiting } = &mut self.snapshots;
        if *newest >= self.planned {
            drop(answer.send(Ok(*newest)));
            return false;
        }
        waiting.retain(|(_, answer)| !answer.is_canceled());
        waiting.push((self.planned, answer));
        true
    }

    /// What was received is the history now, and its state the next one.
    pub(crate) fn install(&mut self, label: Zxid) {
        let Some(Receiving { label: received, state, .. }) = self.reception.take() else {
            debug_assert!(false, "nothing was received");
            return;
        };
        debug_assert_eq!(label, received, "what was received last is installed");
        self.base = label;
        self.snapshots.replaced(label);
        self.staged = state.lock().ok().and_then(|mut state| state.take().map(|s| (label, s)));
    }

    /// The staged state is the application's from here on.
    pub(crate) fn adopt(&mut self, label: Zxid) {
        let staged = self.staged.take_if(|(staged, _)| *staged == label);
        assert!(staged.is_some(), "no state of {label} is staged");
        self.planned = label;
        self.orders.extend(staged.map(|(label, state)| Order::Adopt(label, Box::new(state))));
    }

    pub(crate) fn take_snapshot(&mut self, label: Zxid) {
        self.orders.push_back(Order::Save(label));
    }

    pub(crate) fn send_snapshot(&mut self, link: LinkId, label: Zxid, memberships: Bytes) {
        self.orders.push_back(Order::Send { link, label, memberships });
    }

    /// Sends the staged state.
    pub(crate) fn send_staged(
        &self,
        label: Zxid,
        memberships: Bytes,
    ) -> Result<Pieces, Unreadable> {
        let (_, state) = self.staged.as_ref().ok_or(Unreadable)?;
        let snapshot = A::staged_snapshot(state);
        stream::send_snapshot(label, memberships, snapshot).map_err(|_| Unreadable)
    }

    /// Forgets what was received and not installed.
    pub(crate) fn discard(&mut self) {
        self.forget_reception();
    }

    pub(super) fn forget_reception(&mut self) {
        if let Some(reception) = self.reception.take() {
            reception.wanted.revoke();
            self.disk.discard_staged();
        }
    }

    /// Begins to restore what a leader sends, beside everything else.
    pub(crate) fn receive(&mut self, label: Zxid) -> io::Result<Intake> {
        self.forget_reception();
        let (wanted, state) = (Wanted::new(), Arc::new(Mutex::new(None)));
        let place = Arc::clone(&state);
        let reception = Reception {
            label,
            disk: self.disk.clone(),
            wanted: Arc::clone(&wanted),
            turn: Arc::clone(&self.receptions),
            restore: A::restore(label),
            membership: A::staged_membership,
            deposit: Box::new(move |mut state| {
                A::staged_whole_at(&mut state, None);
                if let Ok(mut place) = place.lock() {
                    *place = Some(state);
                }
            }),
            keep_alive: self.keep_alive.clone(),
        };
        let intake = stream::receive(reception)?;
        self.reception = Some(Receiving { label, wanted, state });
        Ok(intake)
    }

    /// Whether the application is at home, and has nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.worker.is_some() && self.orders.is_empty()
    }

    /// The disk was opened again, and the core begins anew with what is there: the next state that it adopts is this one.
    /// Only while nothing is [to be done](Self::is_idle).
    pub(crate) fn restart(&mut self, disk: DiskHandle, staged: Option<(Zxid, A::Staged)>) {
        debug_assert!(self.is_idle(), "the application is at work");
        // What is written now is written to the disk that has failed.
        std::mem::take(&mut self.stop).stop();
        self.forget_reception();
        self.least = self.least.max(self.planned);
        (self.planned, self.applied, self.told) = (Zxid::ZERO, Zxid::ZERO, Zxid::ZERO);
        self.base = staged.as_ref().map_or(Zxid::ZERO, |(label, _)| *label);
        self.snapshots = Snapshots::new(self.base);
        self.orders.push_back(Order::Abandon);
        self.staged = staged;
        // To the core an application begins in its first state, and takes over later ones only.
        if let Some((label, first)) = self.staged.take_if(|(label, _)| *label == Zxid::ZERO) {
            self.orders.push_back(Order::Adopt(label, Box::new(first)));
        }
        if let Some(worker) = &mut self.worker {
            worker.disk = disk.clone();
            (worker.reader, worker.applied) = (None, Zxid::ZERO);
        }
        self.disk = disk;
    }

    pub(super) fn save(&self, label: Zxid, snapshot: A::Snapshot) {
        let (inbox, disk, stop) = (Arc::clone(&self.inbox), self.disk.clone(), self.stop.clone());
        let keep_alive = self.keep_alive.clone();
        let done = move |outcome| drop(inbox.put(WorkerReport::Saved(label, outcome)));
        if let Err(error) = stream::save(label, snapshot, disk, stop, keep_alive, done) {
            drop(self.inbox.put(WorkerReport::Saved(label, Err(error.into()))));
        }
    }
}
