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
mod words;

use std::collections::VecDeque;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_channel::Sender;
use bytes::Bytes;
use quorate_application::Application;
use quorate_application::clients;
use quorate_core::id::{LinkId, Origin, ReadId};
use quorate_core::input::{Event, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::time::Instant as CoreInstant;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::{
    self as stream, DiskHandle, DiskReadError, Intake, Pieces, Reception, Stop, Wanted,
};
use crate::error::ServerError;
use crate::host::callers::{ReadClosure, Requests};
use crate::host::proposal::ReadError;
use crate::host::reads::{Reader, Reads};
use crate::host::replica::words::Words;
use crate::host::service::{Clock, LookClosure, Service};
use crate::host::worker::{
    Done, Job, Order, Purpose, Returned, Worker, WorkerReport, start_thread,
};
use crate::inbox::Inbox;
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
    orders: VecDeque<Order<A>>,
    /// The last transaction that the state will have when every order is carried out.
    planned: Zxid,
    /// The same of what is done.
    applied: Zxid,
    /// What the core knows of that.
    told: Zxid,
    /// The label of the snapshot that was installed last: none of an older history is published any more.
    base: Zxid,
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
    /// Operators who wait for the service to be at home.
    looks: Vec<LookClosure<A>>,
    /// Words that wait for the service, and what they are answered with if it is away for long.
    words: Words,
    /// Why the log could not be read on.
    unreadable: Option<Arc<quorate_storage::reader::ReadError>>,
}

/// A snapshot that is coming or has come from a leader.
struct Receiving<A: Application> {
    label: Zxid,
    wanted: Arc<Wanted>,
    /// The state, once it is whole.
    state: Arc<Mutex<Option<A::Staged>>>,
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

/// What a replica begins with.
pub(crate) struct ReplicaParts<A: Application> {
    pub(crate) application: A,
    /// Its service.
    pub(crate) clients: A::Clients,
    /// When the service steps.
    pub(crate) clock: Clock,
    /// The newest snapshot on disk, restored.
    pub(crate) staged: Option<(Zxid, A::Staged)>,
    pub(crate) client: i64,
    /// The longest transaction that a leader makes.
    pub(crate) txn_bytes_max: usize,
    /// Whether there is no configuration that the application should know of.
    pub(crate) alone: bool,
    pub(crate) disk: DiskHandle,
    pub(crate) inbox: Arc<Inbox<WorkerReport<A>>>,
    pub(crate) keep_alive: KeepAlive,
}

impl<A: Application> Replica<A> {
    pub(crate) fn new(parts: ReplicaParts<A>) -> Self {
        let ReplicaParts { application, staged, client, disk, inbox, keep_alive, .. } = parts;
        let service = Service::new(parts.clients, parts.clock);
        let deadline = service.deadline();
        let worker = Worker {
            application,
            service,
            heard: 0,
            client,
            applied: Zxid::ZERO,
            txn_bytes_max: parts.txn_bytes_max,
            alone: parts.alone,
            disk: disk.clone(),
            reader: None,
        };
        Self {
            worker: Some(worker),
            thread: None,
            inbox,
            quick: true,
            orders: VecDeque::new(),
            planned: Zxid::ZERO,
            applied: Zxid::ZERO,
            told: Zxid::ZERO,
            base: staged.as_ref().map_or(Zxid::ZERO, |(label, _)| *label),
            staged,
            reception: None,
            receptions: Arc::default(),
            done: Vec::new(),
            reports: Vec::new(),
            disk,
            keep_alive,
            stop: Stop::default(),
            requests: Requests::new(client),
            reads: Reads::new(),
            told_service: 0,
            heard: 0,
            deadline,
            ticks: false,
            looks: Vec::new(),
            words: Words::default(),
            unreadable: None,
        }
    }

    /// The last transaction that was applied.
    pub(crate) const fn applied(&self) -> Zxid {
        self.applied
    }

    // --- what the core wants ---

    /// What was received is the history now, and its state the next one.
    pub(crate) fn install(&mut self, label: Zxid) {
        let Some(Receiving { label: received, state, .. }) = self.reception.take() else {
            debug_assert!(false, "nothing was received");
            return;
        };
        debug_assert_eq!(label, received, "what was received last is installed");
        self.base = label;
        self.staged = state.lock().ok().and_then(|mut state| state.take().map(|s| (label, s)));
    }

    pub(crate) fn prepare(&mut self, epoch: Epoch, zxid: Zxid, origin: Origin, request: Request) {
        self.orders.push_back(Order::Prepare { epoch, zxid, origin, request });
    }

    pub(crate) fn deliver(&mut self, txn: Txn) {
        self.planned = txn.zxid;
        self.orders.push_back(Order::Apply(txn));
    }

    pub(crate) fn replay(&mut self, after: Zxid, through: Zxid) {
        self.planned = through;
        self.orders.push_back(Order::Replay { after, through });
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

    /// Forgets what was prepared, and at once what was to be.
    pub(crate) fn abandon(&mut self) {
        self.orders.retain(|order| !matches!(order, Order::Prepare { .. }));
        self.orders.push_back(Order::Abandon);
    }

    /// Forgets what was received and not installed.
    pub(crate) fn discard(&mut self) {
        self.forget_reception();
    }

    fn forget_reception(&mut self) {
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
            deposit: Box::new(move |state| {
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
        match self.reads.take(id) {
            Some(Reader::Caller(read)) => read(Err(reason)),
            Some(Reader::Service(sync)) => {
                self.tell_service(clients::Event::SyncRefused(sync));
            }
            None => {}
        }
    }

    /// A stale read, of what was applied by now; refused while that is older than the staged state.
    pub(crate) fn read_local(&mut self, read: ReadClosure<A>) {
        if self.staged.as_ref().is_some_and(|(label, _)| *label > self.planned) {
            return read(Err(ReadError::Behind));
        }
        self.orders.push_back(Order::Read(read));
    }

    /// This server serves; everything that it inherited is among what was delivered so far.
    pub(crate) fn serving(&mut self, epoch: Epoch, leads: bool, membership: Membership) {
        let membership = Box::new(membership);
        self.orders.push_back(Order::Serving { epoch, leads, membership });
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
        let begun = Instant::now();
        let mut now = begun;
        while let (Some(worker), Some(order)) = (&mut self.worker, self.orders.front()) {
            let reads = matches!(order, Order::Replay { .. });
            if reads || !self.quick || now - begun > INLINE_TIME {
                self.send_to_thread()?;
                break;
            }
            let Some(order) = self.orders.pop_front() else { break };
            self.ticks &= !order.is_tick();
            let mut done = std::mem::take(&mut self.done);
            worker.perform(order, &mut done);
            self.applied = worker.applied;
            self.heard = worker.heard;
            self.deadline = worker.service.deadline();
            self.conclude(&mut done, then);
            self.done = done;
            let before = std::mem::replace(&mut now, Instant::now());
            self.quick = now - before < SLOW;
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
                    self.quick = slowest < SLOW;
                    rest.append(&mut self.orders);
                    self.orders = rest;
                    self.ticks = self.ticks && self.orders.iter().any(Order::is_tick);
                    self.conclude(&mut done, then);
                }
                WorkerReport::Panicked(panic) => resume_unwind(panic),
                WorkerReport::Saved(label, outcome) => {
                    if let Err(error) = outcome {
                        tracing::warn!(%label, %error, "cannot take a snapshot");
                    }
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
            if let Order::Apply(txn) = &order {
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
                Done::Prepared(leadership, draft) => match then.events.last_mut() {
                    // What is ready together travels together.
                    Some(Event::Prepared { epoch, drafts }) if *epoch == leadership => {
                        drafts.push(draft);
                    }
                    _ => {
                        let drafts = vec![draft];
                        then.events.push(Event::Prepared { epoch: leadership, drafts });
                    }
                },
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

    fn save(&self, label: Zxid, snapshot: A::Snapshot) {
        let (inbox, disk, stop) = (Arc::clone(&self.inbox), self.disk.clone(), self.stop.clone());
        let keep_alive = self.keep_alive.clone();
        let done = move |outcome| drop(inbox.put(WorkerReport::Saved(label, outcome)));
        if let Err(error) = stream::save(label, snapshot, disk, stop, keep_alive, done) {
            drop(self.inbox.put(WorkerReport::Saved(label, Err(error.into()))));
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

/// How long the loop carries out orders before the thread goes on with them.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// An application that takes longer for one order is slow.
const SLOW: Duration = Duration::from_millis(1);
/// How many orders it gets at a time.
const ORDERS_MAX: usize = 1024;
/// How many bytes of transactions it gets at a time.
const ORDERS_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use async_channel::{Receiver, bounded};
    use bytes::BytesMut;
    use futures_lite::future::block_on;
    use quorate_application::clients::SyncId;
    use quorate_application::clients::{
        AtHand, ClientId, Clients, Close, Frame, Host, Input, NoClients, Output,
    };
    use quorate_application::{Facts, Prepared, Restore, RestoreError, Snapshot, SnapshotError};
    use quorate_core::id::{ServerId, Ticket};
    use quorate_core::message::LearnerInfo;
    use quorate_core::output::Write;
    use quorate_core::txn::{RequestId, TxnHeader};
    use tempfile::TempDir;

    use super::*;
    use crate::disk::Disk;
    use crate::host::callers::read_closure;
    use crate::permits::Permits;

    /// Notes what it is told to do. A state is the last transaction in it, as eight bytes.
    struct Notes {
        told: Told,
        /// Waits for a word before each transaction, if there is a sender.
        gate: Receiver<()>,
    }

    /// Notes what it is told of clients, and closes the connection of one that sends what is no frame.
    struct Noted {
        told: Told,
        deadline: Option<CoreInstant>,
    }

    impl Clients<Notes> for Noted {
        type Framing = NoClients;

        const SERVES: bool = true;

        fn framing(&self) -> NoClients {
            NoClients
        }

        fn step_into(&mut self, input: Input, application: &mut Notes, out: &mut Vec<Output>) {
            let Input { at, event, .. } = input;
            let note = if let clients::Event::Connected { client, .. } = event {
                self.deadline = Some(CoreInstant(5));
                format!("client {}", client.0)
            } else if let clients::Event::Received { client, frames } = event {
                if frames.contains(&Frame::Garbled) {
                    out.push(Output::Close { client, how: Close::Reset });
                }
                out.push(Output::Sync(SyncId(client.0)));
                format!("frames {}", frames.len())
            } else if event == clients::Event::Tick {
                self.deadline = None;
                format!("tick {}", at.0)
            } else {
                format!("{event:?}")
            };
            application.note(note);
        }

        fn on_applied(
            &mut self,
            _: CoreInstant,
            txn: &Txn,
            (): &(),
            _: &mut Notes,
            _: &mut Vec<Output>,
        ) {
            if txn.body == "told" {
                self.told.lock().unwrap().push(format!("told of {}", txn.zxid.0));
            }
        }

        fn deadline(&self) -> Option<CoreInstant> {
            self.deadline
        }

        fn at_hand(&mut self, _: &mut Notes) -> AtHand {
            let answer = |text: &'static [u8]| vec![(*b"word", Bytes::from_static(text))];
            AtHand { now: answer(b"serves"), retired: answer(b"does not") }
        }
    }

    type Told = Arc<Mutex<Vec<String>>>;

    struct State(i64);

    impl Snapshot for State {
        fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
            out.extend_from_slice(&self.0.to_be_bytes());
            Ok(false)
        }
    }

    impl Notes {
        fn note(&self, what: String) {
            self.told.lock().unwrap().push(what);
        }
    }

    /// The bytes of a state.
    #[derive(Default)]
    struct Eight(Vec<u8>);

    impl Restore for Eight {
        type State = i64;

        fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<i64>, RestoreError> {
            let (now, later) = bytes.split_at(bytes.len().min(8 - self.0.len()));
            self.0.extend_from_slice(now);
            *bytes = later;
            Ok(self.0.first_chunk().map(|state| i64::from_be_bytes(*state)))
        }
    }

    impl Application for Notes {
        type Snapshot = State;
        type Staged = i64;
        type Restore = Eight;
        type Effect = ();
        type Clients = Noted;

        const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

        fn clients(&mut self, _: Host) -> Noted {
            Noted { told: Arc::clone(&self.told), deadline: None }
        }

        fn prepare(&mut self, request: &Request, _: Origin, _: &Facts) -> Prepared {
            self.note(format!("prepare {}", request.id.cxid));
            Prepared { kind: 5, body: request.body.clone() }
        }

        fn apply(&mut self, txn: &Txn) {
            let _ = self.gate.recv_blocking();
            assert_ne!(txn.body, "panic", "as asked for");
            self.note(format!("apply {}", txn.zxid.0));
        }

        fn reply((): &()) -> Bytes {
            Bytes::new()
        }

        fn void(&mut self) {
            self.note("void".to_owned());
        }

        fn abandon(&mut self) {
            self.note("abandon".to_owned());
        }

        fn snapshot(&self) -> State {
            State(0)
        }

        fn restore(_label: Zxid) -> Eight {
            Eight::default()
        }

        fn staged_snapshot(staged: &i64) -> State {
            State(*staged)
        }

        fn adopt(&mut self, staged: i64) {
            self.note(format!("adopt {staged}"));
        }
    }

    struct Stage {
        replica: Replica<Notes>,
        told: Told,
        /// While it is there, each transaction waits for a word.
        gate: Option<Sender<()>>,
        woken: Receiver<()>,
        disk: Disk,
        tickets: u64,
        _dir: TempDir,
    }

    impl Stage {
        fn new(staged: Option<i64>) -> Self {
            let (disk, dir) = stream::tests::disk();
            let (wake, woken) = bounded(1);
            let told = Told::default();
            let (gate, gate_kept) = bounded(1);
            let mut application = Notes { told: Arc::clone(&told), gate: gate_kept };
            let host = Host {
                id: ServerId(1),
                tick: Duration::ZERO,
                frame_bytes_max: 0,
                txn_bytes_max: 0,
                remembered: None,
            };
            let replica = Replica::new(ReplicaParts {
                clients: application.clients(host),
                clock: Arc::new(|| CoreInstant(7)),
                application,
                staged: staged.map(|label| (Zxid(label), label)),
                client: 7,
                txn_bytes_max: Txn::BYTES_MAX,
                alone: false,
                disk: disk.handle(),
                inbox: Arc::new(Inbox::new(move || _ = wake.try_send(()))),
                keep_alive: KeepAlive::idle(),
            });
            drop(gate);
            Self { replica, told, gate: None, woken, disk, tickets: 0, _dir: dir }
        }

        /// From now on, transactions wait.
        fn close_gate(&mut self) {
            let (gate, kept) = bounded(1);
            self.replica.worker.as_mut().unwrap().application.gate = kept;
            self.gate = Some(gate);
        }

        fn write(&mut self, write: Write) {
            self.tickets += 1;
            if let Write::Install { label, .. } = &write {
                self.replica.install(*label);
            }
            self.disk.write(Ticket(self.tickets), write);
        }

        fn append(&mut self, zxids: impl IntoIterator<Item = i64>) {
            self.write(Write::Append(zxids.into_iter().map(txn).collect()));
        }

        /// Until all that was written is durable.
        fn sync(&mut self) {
            loop {
                if block_on(self.disk.durable()).unwrap() == Ticket(self.tickets) {
                    return;
                }
            }
        }

        fn run(&mut self) -> ReplicaOutput {
            let mut then = ReplicaOutput::default();
            self.replica.run(&mut then).unwrap();
            then
        }

        fn deliver(&mut self, zxids: impl IntoIterator<Item = i64>) -> Vec<Event> {
            for zxid in zxids {
                self.replica.deliver(txn(zxid));
            }
            self.run().events
        }

        /// What comes of all that is under way, until this does.
        fn until(&mut self, event: &Event) -> Vec<Event> {
            let mut events = self.run().events;
            while !events.contains(event) {
                self.woken.recv_blocking().unwrap();
                events.extend(self.run().events);
            }
            events
        }

        /// Runs until the application has come so far.
        fn until_applied(&mut self, zxid: i64) {
            drop(self.run());
            while self.replica.applied() < Zxid(zxid) {
                self.woken.recv_blocking().unwrap();
                drop(self.run());
            }
        }

        fn told(&self) -> Vec<String> {
            std::mem::take(&mut *self.told.lock().unwrap())
        }

        fn read_local(&mut self) -> Result<(), ReadError> {
            let permit = block_on(Permits::new(1).take());
            let (read, mut outcome) = read_closure(permit, |_: &Notes| ());
            self.replica.read_local(read);
            drop(self.run());
            outcome.try_recv().unwrap().expect("it was answered").map(|_| ())
        }

        /// Receives a snapshot, from its first byte to its signature.
        fn receive(&mut self, label: i64) {
            let intake = self.replica.receive(Zxid(label)).unwrap();
            intake.put(&label.to_be_bytes());
            intake.put(b"\0\0\0\x0aBenWasHererest");
            assert_eq!(block_on(intake.done()).unwrap().unread, "rest");
        }
    }

    fn install(label: i64) -> Write {
        let membership = Bytes::from_static(b"server.1=127.0.0.1:2888:3888\nversion=0");
        Write::Install { label: Zxid(label), membership, next: None }
    }

    fn txn(zxid: i64) -> Txn {
        let header = TxnHeader { client: 7, cxid: 1000, time: 1, kind: 5 };
        Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(&[0; 100]) }
    }

    fn request(cxid: i32) -> Request {
        let id = RequestId { client: 7, cxid };
        Request { id, op: 5, body: Bytes::from_static(b"body"), identities: None }
    }

    fn applies(zxids: impl IntoIterator<Item = i64>) -> Vec<String> {
        zxids.into_iter().map(|zxid| format!("apply {zxid}")).collect()
    }

    #[test]
    fn a_quick_application_is_done_at_once_and_in_order() {
        let mut stage = Stage::new(None);
        stage.replica.deliver(txn(1));
        stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 1), Origin::Here, request(8));
        stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 2), Origin::Here, request(9));
        stage.replica.deliver(txn(2));
        stage.replica.deliver(txn(3));
        let then = stage.run();
        let expected = ["apply 1", "prepare 8", "prepare 9", "apply 2", "apply 3"];
        assert_eq!(stage.told(), expected);
        assert_eq!(stage.replica.applied(), Zxid(3));
        let [Event::Prepared { epoch: Epoch(1), drafts }, Event::Applied(Zxid(3))] =
            &then.events[..]
        else {
            panic!("{:?}", then.events)
        };
        assert_eq!(drafts.iter().map(|draft| draft.header.cxid).collect::<Vec<_>>(), [8, 9]);
        assert!(stage.replica.thread.is_none(), "there was nothing for another thread");
        assert_eq!(stage.run().events, [], "it is said once");
    }

    #[test]
    fn a_slow_application_leaves_the_loop() {
        let mut stage = Stage::new(None);
        stage.close_gate();
        stage.replica.quick = false;
        for zxid in 1..=50 {
            assert_eq!(stage.deliver([zxid]), []);
        }
        assert_eq!(stage.replica.applied(), Zxid(0));
        stage.gate = None;
        stage.until_applied(50);
        assert_eq!(stage.told(), applies(1..=50));
        assert!(stage.replica.quick, "it has been quick again");
    }

    #[test]
    fn what_the_log_has_is_replayed_in_its_turn() {
        let mut stage = Stage::new(None);
        stage.append(1..=200);
        stage.sync();
        stage.replica.deliver(txn(1));
        stage.replica.replay(Zxid(1), Zxid(150));
        stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 3), Origin::Here, request(8));
        let through = Event::Replayed { through: Zxid(150), outcome: Ok(()) };
        stage.until(&through);
        stage.deliver([151]);
        stage.until_applied(151);
        let mut expected = applies(1..=150);
        expected.extend(["prepare 8".to_owned(), "apply 151".to_owned()]);
        assert_eq!(stage.told(), expected);
    }

    #[test]
    fn where_the_log_ends_too_early_the_core_is_told_how_far_it_went() {
        let mut stage = Stage::new(None);
        stage.append(1..=3);
        stage.sync();
        stage.replica.replay(Zxid(0), Zxid(9));
        let unreadable = Event::Replayed { through: Zxid(0), outcome: Err(Unreadable) };
        stage.until(&unreadable);
        assert!(stage.replica.unreadable().is_some(), "an operator is told why");
    }

    #[test]
    fn a_state_on_disk_is_the_applications_when_the_core_says_so() {
        let mut stage = Stage::new(Some(5));
        assert_eq!(stage.read_local(), Err(ReadError::Behind));
        assert_eq!(stage.told(), [""; 0]);
        stage.replica.adopt(Zxid(5));
        assert_eq!(stage.deliver([6, 7]), [Event::Applied(Zxid(7))]);
        assert_eq!(stage.told(), ["adopt 5", "apply 6", "apply 7"]);
        assert_eq!(stage.read_local(), Ok(()));
    }

    #[test]
    fn a_snapshot_that_is_installed_waits_apart() {
        let mut stage = Stage::new(None);
        stage.deliver(1..=10);
        stage.told();

        stage.receive(15);
        assert_eq!(stage.read_local(), Ok(()), "it is not installed yet");
        stage.write(install(15));
        assert_eq!((stage.told(), stage.read_local()), (vec![], Err(ReadError::Behind)));
        assert!(stage.replica.send_staged(Zxid(15), Bytes::new()).is_ok());
        stage.replica.adopt(Zxid(15));
        stage.deliver([16, 17]);
        assert_eq!(stage.told(), ["adopt 15", "apply 16", "apply 17"]);
        stage.sync();
        assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(15));
    }

    /// A snapshot is to be taken of a slow application, and then another history is installed. On 953d248 it was
    /// published under its label, from which nothing can start.
    #[test]
    fn a_snapshot_that_was_to_be_taken_of_a_history_that_is_gone_is_not_published() {
        let mut stage = Stage::new(None);
        stage.append(1..=12);
        stage.deliver(1..=10);
        stage.receive(15);
        stage.replica.deliver(txn(12));
        stage.replica.take_snapshot(Zxid(12));
        stage.write(install(15));
        stage.until(&Event::SnapshotTaken(Zxid(12)));
        stage.sync();
        let names = std::fs::read_dir(stage._dir.path().join("version-2")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let snapshots: Vec<_> = names.filter(|name| name.starts_with("snapshot")).collect();
        assert_eq!(snapshots, ["snapshot.f"]);
    }

    #[test]
    fn an_application_that_has_come_further_keeps_its_own_state() {
        let mut stage = Stage::new(None);
        stage.deliver(1..=18);
        stage.told();
        stage.receive(15);
        stage.write(install(15));
        assert_eq!(stage.read_local(), Ok(()));
        stage.deliver([19]);
        assert_eq!(stage.told(), ["apply 19"]);
    }

    #[test]
    fn what_was_received_and_not_installed_is_forgotten_when_the_core_says_so() {
        let mut stage = Stage::new(None);
        stage.receive(15);
        stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 4), Origin::Here, request(1));
        stage.replica.discard();
        stage.replica.abandon();
        assert_eq!(stage.run().events, [], "nobody wants to know any more");
        assert_eq!(stage.told(), ["abandon"]);
        // The next leader sends another one, of the same label.
        stage.receive(15);
        stage.write(install(15));
        stage.replica.adopt(Zxid(15));
        drop(stage.run());
        assert_eq!(stage.told(), ["adopt 15"]);
        stage.sync();
    }

    #[test]
    fn a_snapshot_that_is_not_wanted_any_more_changes_nothing() {
        let mut stage = Stage::new(None);
        let intake = stage.replica.receive(Zxid(15)).unwrap();
        intake.put(&15_i64.to_be_bytes());
        stage.replica.discard();
        intake.put(b"\0\0\0\x0aBenWasHere");
        assert!(block_on(intake.done()).is_err());
        drop(intake);
        stage.receive(16);
        assert_eq!(stage.replica.reception.as_ref().unwrap().label, Zxid(16));
    }

    #[test]
    fn a_panic_on_the_thread_is_one_of_the_server() {
        let mut stage = Stage::new(None);
        stage.replica.quick = false;
        stage.replica.deliver(Txn { body: Bytes::from_static(b"panic"), ..txn(1) });
        drop(stage.run());
        stage.woken.recv_blocking().unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| drop(stage.run())));
        assert!(caught.is_err());
    }

    #[test]
    fn a_snapshot_is_written_beside_the_application() {
        let mut stage = Stage::new(None);
        stage.append(1..=3);
        stage.sync();
        stage.deliver(1..=3);
        stage.replica.take_snapshot(Zxid(3));
        stage.until(&Event::SnapshotTaken(Zxid(3)));
        assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(3));
    }

    fn garbled(client: u64) -> clients::Event {
        let frames = vec![Frame::Garbled];
        clients::Event::Received { client: ClientId(client), frames }
    }

    fn connected(client: u64) -> clients::Event {
        let remote = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        clients::Event::Connected { client: ClientId(client), remote }
    }

    #[test]
    fn the_service_is_told_in_order_with_what_is_applied() {
        let mut stage = Stage::new(None);
        let told = |zxid| Txn { body: Bytes::from_static(b"told"), ..txn(zxid) };
        stage.replica.deliver(told(1));
        stage.replica.tell_service(connected(4));
        stage.replica.deliver(told(2));
        drop(stage.run());
        let expected = ["apply 1", "told of 1", "client 4", "apply 2", "told of 2"];
        assert_eq!(stage.told(), expected);
    }

    #[test]
    fn a_connection_that_the_service_has_closed_says_nothing_more() {
        let mut stage = Stage::new(None);
        stage.replica.tell_service(connected(4));
        for _ in 0..2 {
            stage.replica.tell_service(garbled(4));
        }
        stage.replica.tell_service(clients::Event::Disconnected(ClientId(4)));
        let ReplicaOutput { clients, events, .. } = stage.run();
        assert_eq!(clients, [Output::Close { client: ClientId(4), how: Close::Reset }]);
        assert_eq!(stage.told(), ["client 4", "frames 1"]);

        // What it has asked is answered all the same: that is no word of the connection.
        let [Event::Read(read)] = events[..] else { panic!("{events:?}") };
        stage.replica.answer(read);
        drop(stage.run());
        assert_eq!(stage.told(), ["Synced(SyncId(4))"]);
    }

    #[test]
    fn a_tick_comes_when_it_is_due_and_once() {
        let mut stage = Stage::new(None);
        stage.replica.tell_service(connected(4));
        drop(stage.run());
        assert_eq!(stage.replica.deadline(), Some(CoreInstant(5)));
        stage.replica.quick = false;
        for now in [4, 5, 6] {
            stage.replica.tick(CoreInstant(now));
            assert_eq!(stage.replica.deadline().is_some(), now == 4);
        }
        drop(stage.run());
        while stage.replica.worker.is_none() {
            stage.woken.recv_blocking().unwrap();
            drop(stage.run());
        }
        assert_eq!(stage.told(), ["client 4", "tick 7"]);
        assert_eq!(stage.replica.deadline(), None);
    }

    /// It is at work on its thread, and much waits for it.
    fn busy() -> Stage {
        let mut stage = Stage::new(None);
        stage.close_gate();
        stage.replica.quick = false;
        for zxid in 1..=3 {
            stage.replica.deliver(txn(zxid));
        }
        assert_eq!(stage.run().clients, []);
        stage.replica.tick(CoreInstant::ORIGIN);
        stage.replica.tell_service(connected(4));
        stage
    }

    #[test]
    fn a_word_waits_for_what_is_being_done_and_for_nothing_else() {
        let mut stage = busy();
        stage.replica.tell_word(ClientId(4), *b"else");
        stage.replica.tell_service(connected(5));
        assert_eq!(stage.run().clients, []);
        assert_eq!(stage.replica.words_due(), None, "nothing is at hand for it");
        // Longer than the thread works before it comes home.
        std::thread::sleep(Duration::from_millis(10));
        stage.gate.as_ref().unwrap().send_blocking(()).unwrap();
        while stage.replica.worker.is_none() && stage.replica.heard == 0 {
            stage.woken.recv_blocking().unwrap();
            drop(stage.run());
        }
        stage.gate = None;
        stage.until_applied(3);
        while stage.replica.heard < stage.replica.told_service {
            stage.woken.recv_blocking().unwrap();
            drop(stage.run());
        }
        let expected = ["apply 1", "client 4", "frames 1", "apply 2", "apply 3", "client 5"];
        assert_eq!(stage.told(), expected);
    }

    #[test]
    fn a_word_is_answered_with_what_is_at_hand_if_the_application_is_slow() {
        let time = Duration::from_millis(200);
        for (retires, answer) in [(false, "serves"), (true, "does not")] {
            let mut stage = busy();
            if retires {
                stage.replica.tell_service(clients::Event::Retired);
            }
            stage.replica.tell_word(ClientId(4), *b"word");
            assert_eq!(stage.run().clients, [], "it may come home");
            assert_eq!(stage.replica.words_due(), Some(CoreInstant::ORIGIN + time));
            stage.replica.tick(CoreInstant::ORIGIN + time);
            let client = ClientId(4);
            let said = [
                Output::Send { client, bytes: Bytes::from_static(answer.as_bytes()) },
                Output::Close { client, how: Close::AfterWriting },
            ];
            assert_eq!(stage.run().clients, said);
            assert_eq!(stage.replica.words_due(), None);
            stage.gate = None;
            stage.until_applied(3);
            while stage.replica.heard < stage.replica.told_service {
                stage.woken.recv_blocking().unwrap();
                drop(stage.run());
            }
            let told = stage.told();
            assert!(!told.contains(&"frames 1".to_owned()), "{told:?}");
            assert_eq!(told.last().unwrap(), "Disconnected(ClientId(4))");
        }
    }

    #[test]
    fn clients_wait_while_the_service_is_behind() {
        let mut stage = Stage::new(None);
        stage.close_gate();
        stage.replica.quick = false;
        stage.replica.deliver(txn(1));
        drop(stage.run());
        let mut told = 0;
        while stage.replica.hears_clients() {
            stage.replica.tell_service(connected(told));
            told += 1;
        }
        assert_eq!(told, 256);
        drop(stage.gate.take());
        stage.until(&Event::Applied(Zxid(1)));
        while !stage.replica.hears_clients() {
            stage.woken.recv_blocking().unwrap();
            drop(stage.run());
        }
    }
}
