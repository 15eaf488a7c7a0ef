//! The application at this server, and all that it is to do, in order.
//!
//! ```text
//!   loop ──► orders ──┬──► in the loop, while the application is quick
//!               ▲     └──► on a thread of its own, while it is not, or must wait for the disk
//!               └── those that the thread gave back, first
//! ```
//!
//! An order is one step: apply a transaction, prepare a request, read. As long as nothing takes long, orders are
//! carried out at once, by the loop, since a change of threads costs more than most of them. When they do take
//! long, the application moves to a thread; the loop goes on without it, and whatever comes meanwhile
//! waits here. What waits is bounded: the core hands out transactions up to a limit, requests and reads are bounded by
//! the permits of their callers.
//!
//! A state that was restored is staged until the core says that it is the application's.
//!
//! The service in front of the application steps where the application does, in the same order; what it wants done
//! comes out behind its step. What clients send waits here up to a bound: then their connections wait.
//!
//! What it does not do: decide what the application gets, or when. That is the core's.

mod client_events;
mod parts;
mod snapshots;
mod words;

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_channel::Sender;
use quorate_application::Application;
use quorate_application::clients;
use quorate_core::id::{LinkId, Origin, ReadId};
use quorate_core::input::{Event, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::reasons::Refusal;
use quorate_core::time::Instant as CoreInstant;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::{self as stream, DiskHandle, DiskReadError, Pieces, Stop};
use crate::error::ServerError;
use crate::host::callers::{ReadClosure, Requests};
use crate::host::proposal::ReadError;
use crate::host::reads::{Reader, Reads};
pub(crate) use crate::host::replica::parts::ReplicaParts;
use crate::host::replica::snapshots::{Receiving, Snapshots};
use crate::host::replica::words::Words;
use crate::host::service::LookClosure;
use crate::host::stages::{During, Stages};
use crate::host::worker::{
    Done, Job, Order, Purpose, Returned, Worker, WorkerReport, start_thread,
};
use crate::inbox::Inbox;
use crate::proposals::Seen;
use crate::tally::Tally;
use crate::task_group::KeepAlive;

/// The application, at work in the loop or on its thread.
pub(crate) struct Replica<A: Application> {
    /// At home; elsewhere it is at work on the thread.
    worker: Option<Worker<A>>,
    thread: Option<Sender<Job<A>>>,
    /// Where threads put what they have done.
    inbox: Arc<Inbox<WorkerReport<A>>>,
    /// Whether the application was quick lately.
    quick: bool,
    /// When it is not.
    pace: Pace,
    orders: VecDeque<Order<A>>,
    /// The last transaction that the state will have when every order is carried out.
    planned: Zxid,
    /// The same of what is done.
    applied: Zxid,
    /// What the core knows of that.
    told: Zxid,
    /// The label of the snapshot that was installed last: none of an older history is published any more.
    base: Zxid,
    /// What local reads may have seen.
    least: Zxid,
    /// The staged state, and the label of its snapshot.
    staged: Option<(Zxid, A::Staged)>,
    reception: Option<Receiving<A>>,
    receptions: Arc<Mutex<()>>,
    /// Kept for their memory.
    done: Vec<Done<A>>,
    reports: Vec<WorkerReport<A>>,
    disk: DiskHandle,
    /// Threads that write files keep the server from having ended, and are told to hurry.
    keep_alive: KeepAlive,
    stop: Stop,
    pub(crate) requests: Requests,
    reads: Reads<A>,
    /// How many orders to the service there were.
    told_service: u64,
    /// How many of them it has carried out.
    heard: u64,
    /// When the service is to step next, if nothing happens; as of the last time that it was at home.
    deadline: Option<CoreInstant>,
    /// A tick is among the orders.
    ticks: bool,
    /// Operators who wait for a snapshot.
    snapshots: Snapshots,
    /// Operators who wait for the service to be at home.
    looks: Vec<LookClosure<A>>,
    /// Words that wait for the service, and what they are answered with if it is away for long.
    words: Words,
    /// Why the service does not go on.
    halted: Option<Arc<str>>,
    stages: Stages,
    /// Why the log could not be read on.
    unreadable: Option<Arc<quorate_storage::reader::ReadError>>,
}

/// What the loop has to do because of the application.
#[derive(Default)]
pub(crate) struct ReplicaOutput {
    /// For the core, in order.
    pub(crate) events: Vec<Event>,
    /// For the connections of clients, in order.
    pub(crate) clients: Vec<clients::Output>,
    /// Snapshots for learners.
    pub(crate) streams: Vec<(LinkId, Result<Pieces, Unreadable>)>,
}

impl<A: Application> Replica<A> {
    /// The last transaction that was applied.
    pub(crate) const fn applied(&self) -> Zxid {
        self.applied
    }

    /// A turn of the loop begins.
    pub(crate) const fn begin_turn(&mut self, seen: Seen) {
        self.stages.begin_turn(seen);
    }

    // --- what the core wants ---

    pub(crate) fn prepare(&mut self, epoch: Epoch, zxid: Zxid, origin: Origin, request: Request) {
        let since = self.stages.prepare();
        self.orders.push_back(Order::Prepare { epoch, zxid, origin, request, since });
    }

    pub(crate) fn deliver(&mut self, txn: Txn) {
        self.planned = txn.zxid;
        let stage = self.stages.deliver(&txn);
        self.orders.push_back(Order::Apply(txn, stage));
    }

    pub(crate) fn replay(&mut self, after: Zxid, through: Zxid) {
        self.planned = through;
        self.orders.push_back(Order::Replay { after, through });
    }

    /// Forgets what was prepared, and at once what was to be.
    pub(crate) fn abandon(&mut self) {
        let before = self.orders.len();
        self.orders.retain(|order| !matches!(order, Order::Prepare { .. }));
        self.stages.prepared(before - self.orders.len());
        self.orders.push_back(Order::Abandon);
    }

    /// Keeps the read of a caller until the core says that it may be done; returns what to ask it with.
    pub(crate) fn queue_read(&mut self, read: ReadClosure<A>) -> ReadId {
        self.reads.push(Reader::Caller(read))
    }

    /// What is delivered by now is as new as that read wants.
    pub(crate) fn answer(&mut self, id: ReadId) {
        match self.reads.take(id) {
            Some(Reader::Caller(read)) => self.orders.push_back(Order::Read(read)),
            Some(Reader::Service(sync)) => self.tell_service(clients::Event::Synced(sync)),
            None => {}
        }
    }

    pub(crate) fn refuse(&mut self, id: ReadId, reason: ReadError) {
        let reader = self.reads.take(id);
        reader.into_iter().for_each(|reader| self.refuse_reader(reader, reason));
    }

    fn refuse_reader(&mut self, reader: Reader<A>, reason: ReadError) {
        match reader {
            Reader::Caller(read) => read(Err(reason)),
            Reader::Service(sync) => self.tell_service(clients::Event::SyncRefused(sync)),
        }
    }

    /// The role was given up for the disk: nothing answers what still waits for it.
    pub(crate) fn refuse_all(&mut self) {
        self.requests.refuse_all();
        self.snapshots.refuse_all();
        for reader in self.reads.take_all() {
            self.refuse_reader(reader, ReadError::Refused(Refusal::NotServing));
        }
    }

    /// A stale read, of what was applied by now; refused while that is older than the staged state, or than what could be
    /// read here before the state was taken from the disk again.
    pub(crate) fn read_local(&mut self, read: ReadClosure<A>) {
        let newer = self.staged.as_ref().is_some_and(|(label, _)| *label > self.planned);
        if newer || self.planned < self.least {
            return read(Err(ReadError::Behind));
        }
        self.orders.push_back(Order::Read(read));
    }

    /// This server serves; everything that it inherited is among what was delivered so far.
    pub(crate) fn serving(
        &mut self,
        epoch: Epoch,
        (leads, marks): (bool, bool),
        membership: Membership,
    ) {
        let membership = Box::new(membership);
        self.stages.serves(epoch);
        self.orders.push_back(Order::Serving { epoch, leads, marks, membership });
    }

    /// Why the log could not be read on; none if it could.
    pub(crate) fn unreadable(&mut self) -> Option<Arc<quorate_storage::reader::ReadError>> {
        self.unreadable.take()
    }

    // --- doing it ---

    /// Does what can be done at once; the rest goes on elsewhere.
    pub(crate) fn run(&mut self, then: &mut ReplicaOutput) -> Result<(), ServerError> {
        self.take_reports(then);
        self.answer_words(then);
        self.let_look();
        self.stages.go_on(self.applied, self.planned);
        let (clock, mut tally) = (Instant::now(), Tally::new());
        let mut during =
            During { begun: self.stages.turn(), from: Duration::ZERO, to: Duration::ZERO };
        let mut first = None;
        while let (Some(worker), Some(order)) = (&mut self.worker, self.orders.front()) {
            if self.halted.is_some() {
                break;
            }
            let reads = matches!(order, Order::Replay { .. });
            if reads || !self.quick || during.to > self.pace.inline {
                self.send_to_thread()?;
                break;
            }
            let Some(order) = self.orders.pop_front() else { break };
            self.ticks &= !order.is_tick();
            let (stage, mut done) = (order.stage(), std::mem::take(&mut self.done));
            let first = *first.get_or_insert_with(|| worker.service.look_at_clock());
            worker.perform(order, (first, during.to), &mut done);
            self.applied = worker.applied;
            self.heard = worker.heard;
            self.deadline = worker.service.deadline();
            self.conclude(&mut done, then);
            self.done = done;
            during.from = std::mem::replace(&mut during.to, clock.elapsed());
            self.quick = during.to - during.from < self.pace.slow;
            if let Some(stage) = stage {
                stage.done(&mut tally, self.disk.measures(), &during);
            }
        }
        tally.put(self.disk.measures(), during.begun.at);
        if let Some(reason) = self.halted.clone() {
            return Err(ServerError::HaltedByService { reason });
        }
        // Behind what was prepared and answered; once for all that was applied.
        if self.told < self.applied {
            self.told = self.applied;
            then.events.push(Event::Applied(self.applied));
        }
        Ok(())
    }

    /// Takes in what threads have done.
    fn take_reports(&mut self, then: &mut ReplicaOutput) {
        let mut reports = std::mem::take(&mut self.reports);
        self.inbox.take(&mut reports);
        for report in reports.drain(..) {
            match report {
                WorkerReport::Returned(returned) => {
                    let Returned { worker, mut rest, mut done, slowest } = *returned;
                    self.applied = worker.applied;
                    self.heard = worker.heard;
                    self.deadline = worker.service.deadline();
                    self.worker = Some(worker);
                    self.quick = slowest < self.pace.slow;
                    rest.append(&mut self.orders);
                    self.orders = rest;
                    self.ticks = self.ticks && self.orders.iter().any(Order::is_tick);
                    self.conclude(&mut done, then);
                }
                WorkerReport::Panicked(panic) => resume_unwind(panic),
                WorkerReport::Saved(label, outcome) => {
                    if let Err(error) = &outcome {
                        let event = "snapshot.failed";
                        tracing::warn!(event, %label, %error, "cannot take a snapshot");
                    } else {
                        tracing::info!(event = "snapshot.taken", %label, "a snapshot is taken");
                    }
                    self.snapshots.taken(label, outcome.as_ref().err());
                    then.events.push(Event::SnapshotTaken(label));
                }
            }
        }
        self.reports = reports;
    }

    /// Sends the application to its thread, with the next few orders.
    fn send_to_thread(&mut self) -> Result<(), ServerError> {
        let (mut orders, mut bytes) = (VecDeque::new(), 0);
        while orders.len() < ORDERS_MAX && bytes < ORDERS_BYTES_MAX {
            let Some(order) = self.orders.pop_front() else { break };
            if let Order::Apply(txn, _) = &order {
                bytes += txn.len();
            }
            // How far it comes is known only when it is done.
            let last = matches!(order, Order::Replay { .. });
            orders.push_back(order);
            if last {
                break;
            }
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => start_thread(Arc::clone(&self.inbox)).map_err(ServerError::thread)?,
        };
        if let Some(mut worker) = self.worker.take() {
            let retires = orders.iter().chain(&self.orders).any(Order::is_retirement);
            self.words.look(&mut worker, retires);
            // There is room: it has no other job while the application is here.
            drop(thread.try_send(Job { worker, orders }));
        }
        self.thread = Some(thread);
        Ok(())
    }

    /// Tells callers and the core what came of orders.
    fn conclude(&mut self, done: &mut Vec<Done<A>>, then: &mut ReplicaOutput) {
        for done in done.drain(..) {
            match done {
                Done::Own { cxid, zxid, outcome } => self.requests.applied(cxid, zxid, outcome),
                Done::Prepared(leadership, draft) => {
                    self.stages.prepared(1);
                    match then.events.last_mut() {
                        // What is ready together travels together.
                        Some(Event::Prepared { epoch, drafts }) if *epoch == leadership => {
                            drafts.push(draft);
                        }
                        _ => {
                            let drafts = vec![draft];
                            then.events.push(Event::Prepared { epoch: leadership, drafts });
                        }
                    }
                }
                Done::Snapshot(snapshot, Purpose::Send { link, label, memberships }) => {
                    let pieces = stream::send_snapshot(label, memberships, snapshot);
                    then.streams.push((link, pieces.map_err(|_| Unreadable)));
                }
                Done::Service(output) => self.route(output, then),
                // A history that begins behind it has been installed meanwhile: nothing can start from it.
                Done::Snapshot(_, Purpose::Save(label)) if label < self.base => {
                    then.events.push(Event::SnapshotTaken(label));
                }
                Done::Snapshot(snapshot, Purpose::Save(label)) => self.save(label, snapshot),
                Done::Replayed { reached, through, outcome: Ok(()) } if reached < through => {
                    self.orders.push_front(Order::Replay { after: reached, through });
                }
                // With the disk ends the server, and it says why.
                Done::Replayed { outcome: Err(DiskReadError::Ended), .. } => {}
                Done::Replayed { reached, outcome, .. } => {
                    let outcome = outcome.map_err(|error| {
                        if let DiskReadError::Log(error) = error {
                            self.unreadable = Some(Arc::new(error));
                        }
                        Unreadable
                    });
                    self.told = self.told.max(reached);
                    then.events.push(Event::Replayed { through: reached, outcome });
                }
            }
        }
    }
}

impl<A: Application> Drop for Replica<A> {
    fn drop(&mut self) {
        self.stop.stop();
        self.forget_reception();
        self.requests.end();
    }
}

/// How long the application may hold the loop up.
#[derive(Clone, Copy)]
struct Pace {
    /// How long the loop carries out orders before the thread goes on with them.
    inline: Duration,
    /// An application that takes longer for one order is slow.
    slow: Duration,
}

impl Pace {
    const DRIVEN: Self = Self { inline: Duration::from_millis(2), slow: Duration::from_millis(1) };
}

/// How many orders it gets at a time.
const ORDERS_MAX: usize = 1024;
/// How many bytes of transactions it gets at a time.
const ORDERS_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests;
