//! The application at this server, and all that it is to do, in order.
//!
//! ```text
//!   loop ──► tasks ──► errands ──┬──► in the loop, while the application is quick
//!                        ▲       └──► on a thread of its own, while it is not, or must wait for the disk
//!                  feed, log
//! ```
//!
//! A task is what the core or a caller wants: deliver through a transaction, prepare a request, look. An
//! errand is one step of it, such as a single transaction. As long as nothing takes long, errands are
//! done at once, by the loop, since a change of threads costs more than most of them. When they do take
//! long, the application moves to a thread; the loop goes on without it, and whatever comes meanwhile
//! waits here. What waits is bounded: deliveries are one watermark, the transactions themselves are
//! bounded by the [`Feed`], requests and reads by the permits of those who ask.
//!
//! A state that was restored is kept apart until everything in it is known to be committed; then it
//! becomes the application's, unless that has come further already.
//!
//! What it does not do: decide what is committed. That is the core's.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_channel::{Receiver, Sender, bounded};
use bytes::Bytes;
use quorate_core::id::{LinkId, ReadId, Ticket};
use quorate_core::input::{Event, Unreadable};
use quorate_core::message::Request;
use quorate_core::output::Write;
use quorate_core::txn::{Draft, Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_log::reader::Reader;

use crate::application::{Application, Rejected};
use crate::disk::DiskHandle;
use crate::feed::Feed;
use crate::requests::{Look, ReadError, Requests, Service, Tray, own_outcome};
use crate::scope::Hold;
use crate::server::ServerError;
use crate::stream::{self, APPLICATION_STACK, Intake, Pieces, Reception, Stop, Wanted};

/// The application, at work in the loop or on its thread.
pub(crate) struct Replica<A: Application> {
    /// At home; elsewhere it is at work on the thread.
    hands: Option<Hands<A>>,
    thread: Option<Sender<Job<A>>>,
    /// Where threads put what they have done.
    tray: Arc<Tray<Ran<A>>>,
    /// Whether the application was quick lately.
    quick: bool,
    tasks: VecDeque<Task<A>>,
    /// Errands that the thread gave back because it had worked long enough.
    rest: VecDeque<Errand<A>>,
    /// The last transaction that the state will have when every errand handed out is done.
    planned: Zxid,
    /// The same of what is done.
    applied: Zxid,
    feed: Feed,
    /// What the log begins behind: before it, nothing can be read.
    base: Zxid,
    staged: Staged<A>,
    reception: Option<Receiving<A>>,
    receptions: Arc<Mutex<()>>,
    /// Kept for their memory.
    done: Vec<Done<A>>,
    ran: Vec<Ran<A>>,
    disk: DiskHandle,
    /// Threads that write files keep the server from having ended, and are told to hurry.
    hold: Hold,
    stop: Stop,
    pub(crate) requests: Requests,
    /// Reads that wait for the core's answer.
    reads: VecDeque<(ReadId, Look<A>)>,
}

/// The next state.
enum Staged<A: Application> {
    None,
    /// It is being restored; everything waits for it.
    Coming,
    Ready(Zxid, A::Staged),
}

/// A snapshot that is coming or has come from a leader.
struct Receiving<A: Application> {
    label: Zxid,
    wanted: Arc<Wanted>,
    /// The state, once it is whole.
    state: Arc<Mutex<Option<A::Staged>>>,
    /// What the leader has sent behind it.
    beside: Feed,
}

/// What is to be done, in order.
enum Task<A> {
    Stage,
    Prepare {
        epoch: Epoch,
        request: Request,
    },
    Deliver(Zxid),
    TakeSnapshot(Zxid),
    SendSnapshot {
        link: LinkId,
        label: Zxid,
    },
    Abandon,
    Look(Look<A>),
    /// This server serves again.
    Serving {
        service: Service,
        configuration: String,
        version: i64,
    },
}

/// One step of a task.
enum Errand<A: Application> {
    Apply(Txn),
    /// Applies what the log has.
    Read {
        after: Zxid,
        through: Zxid,
    },
    Adopt(Zxid, A::Staged),
    Prepare {
        epoch: Epoch,
        request: Request,
    },
    Abandon,
    Look(Look<A>),
    Save(Zxid),
    Send {
        link: LinkId,
        label: Zxid,
    },
    Serving {
        service: Service,
        configuration: String,
        version: i64,
    },
}

/// What came of an errand.
enum Done<A: Application> {
    /// A transaction that somebody at this server has asked for.
    Own {
        cxid: i32,
        zxid: Zxid,
        outcome: Result<Bytes, Rejected>,
    },
    Prepared(Epoch, Draft),
    Adopted,
    Snapshot(A::Snapshot, Purpose),
    /// How far reading the log has come.
    Read {
        reached: Zxid,
        through: Zxid,
        outcome: Result<(), String>,
    },
    Inherited(Service),
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Save(Zxid),
    Send { link: LinkId, label: Zxid },
}

/// What a thread has to say.
pub(crate) enum Ran<A: Application> {
    /// The application comes home.
    Worked(Box<Worked<A>>),
    /// The application or a snapshot of it has panicked, and so will the loop.
    Panicked(Box<dyn Any + Send>),
    /// A snapshot on disk was restored.
    Staged(Result<Option<(Zxid, A::Staged)>, String>),
    /// A snapshot was taken, or could not be.
    Saved(Zxid, Result<(), String>),
}

pub(crate) struct Worked<A: Application> {
    hands: Hands<A>,
    rest: VecDeque<Errand<A>>,
    done: Vec<Done<A>>,
    /// How long the slowest errand took.
    slowest: Duration,
}

struct Job<A: Application> {
    hands: Hands<A>,
    errands: VecDeque<Errand<A>>,
}

/// What goes to the thread and comes back.
struct Hands<A: Application> {
    application: A,
    client: i64,
    applied: Zxid,
    disk: DiskHandle,
    /// The log is being read.
    reader: Option<(Reader, Zxid)>,
}

/// What the loop has to do because of the application.
#[derive(Default)]
pub(crate) struct Consequences {
    /// For the core, in order.
    pub(crate) events: Vec<Event>,
    /// Snapshots for learners.
    pub(crate) streams: Vec<(LinkId, Result<Pieces, Unreadable>)>,
}

/// What a replica begins with.
pub(crate) struct Beginning<A: Application> {
    pub(crate) application: A,
    /// The newest snapshot on disk, restored.
    pub(crate) staged: Option<(Zxid, A::Staged)>,
    /// The end of the log.
    pub(crate) last: Zxid,
    pub(crate) client: i64,
    pub(crate) disk: DiskHandle,
    pub(crate) tray: Arc<Tray<Ran<A>>>,
    pub(crate) hold: Hold,
}

impl<A: Application> Replica<A> {
    pub(crate) fn new(beginning: Beginning<A>) -> Self {
        let Beginning { application, staged, last, client, disk, tray, hold } = beginning;
        let hands =
            Hands { application, client, applied: Zxid::ZERO, disk: disk.clone(), reader: None };
        Self {
            hands: Some(hands),
            thread: None,
            tray,
            quick: true,
            tasks: VecDeque::new(),
            rest: VecDeque::new(),
            planned: Zxid::ZERO,
            applied: Zxid::ZERO,
            feed: Feed::new(last, FEED_BYTES),
            base: staged.as_ref().map_or(Zxid::ZERO, |(label, _)| *label),
            staged: staged.map_or(Staged::None, |(label, state)| Staged::Ready(label, state)),
            reception: None,
            receptions: Arc::default(),
            done: Vec::new(),
            ran: Vec::new(),
            disk,
            hold,
            stop: Stop::default(),
            requests: Requests::new(client),
            reads: VecDeque::new(),
        }
    }

    /// The last transaction that was applied.
    pub(crate) const fn applied(&self) -> Zxid {
        self.applied
    }

    // --- what the core wants ---

    /// A write is handed to the disk: what is logged will have to be applied.
    pub(crate) fn on_write(&mut self, ticket: Ticket, write: &Write) {
        match write {
            Write::Append(txns) => {
                for txn in &**txns {
                    self.feed.append(ticket, txn.clone());
                }
            }
            Write::Truncate(zxid) => self.feed.truncate(*zxid),
            Write::Beside(txn) => {
                if let Some(reception) = &mut self.reception {
                    reception.beside.append(ticket, txn.clone());
                }
            }
            Write::Install { label } => self.install(*label),
            Write::AcceptedEpoch(_) | Write::CurrentEpoch(_) | Write::Membership(_) => {}
        }
    }

    /// This write and all before it are durable.
    pub(crate) fn on_persisted(&mut self, ticket: Ticket) {
        self.feed.persisted(ticket);
        if let Some(reception) = &mut self.reception {
            reception.beside.persisted(ticket);
        }
    }

    /// What was received is the history now, and its state the next one.
    fn install(&mut self, label: Zxid) {
        let Some(Receiving { label: received, state, beside, .. }) = self.reception.take() else {
            debug_assert!(false, "nothing was received");
            return;
        };
        debug_assert_eq!(label, received, "what was received last is installed");
        self.feed = beside;
        self.base = label;
        let state = state.lock().ok().and_then(|mut state| state.take());
        self.staged = state.map_or(Staged::None, |state| Staged::Ready(label, state));
    }

    pub(crate) fn stage(&mut self) {
        self.tasks.push_back(Task::Stage);
    }

    pub(crate) fn prepare(&mut self, epoch: Epoch, request: Request) {
        self.tasks.push_back(Task::Prepare { epoch, request });
    }

    pub(crate) fn deliver_through(&mut self, zxid: Zxid) {
        if let Some(Task::Deliver(through)) = self.tasks.back_mut() {
            *through = zxid.max(*through);
        } else {
            self.tasks.push_back(Task::Deliver(zxid));
        }
    }

    pub(crate) fn take_snapshot(&mut self, label: Zxid) {
        self.tasks.push_back(Task::TakeSnapshot(label));
    }

    pub(crate) fn send_snapshot(&mut self, link: LinkId, label: Zxid) {
        self.tasks.push_back(Task::SendSnapshot { link, label });
    }

    /// Forgets what was prepared, at once what was to be, and what was received and not installed.
    pub(crate) fn abandon(&mut self) {
        self.tasks.retain(|task| !matches!(task, Task::Prepare { .. }));
        self.rest.retain(|errand| !matches!(errand, Errand::Prepare { .. }));
        self.forget_reception();
        self.tasks.push_back(Task::Abandon);
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
            restore: A::restore,
            deposit: Box::new(move |state| {
                if let Ok(mut place) = place.lock() {
                    *place = Some(state);
                }
            }),
            hold: self.hold.clone(),
        };
        let intake = stream::receive(reception)?;
        let beside = Feed::new(label, FEED_BYTES);
        self.reception = Some(Receiving { label, wanted, state, beside });
        Ok(intake)
    }

    /// Somebody looks when the core says so.
    pub(crate) fn expect(&mut self, read: ReadId, look: Look<A>) {
        self.reads.push_back((read, look));
    }

    /// What is delivered by now is as new as that read wants.
    pub(crate) fn answer(&mut self, read: ReadId) {
        if let Some(look) = self.expected(read) {
            self.look(look);
        }
    }

    pub(crate) fn refuse(&mut self, read: ReadId, reason: ReadError) {
        if let Some(look) = self.expected(read) {
            look(Err(reason));
        }
    }

    fn expected(&mut self, read: ReadId) -> Option<Look<A>> {
        // They are answered in order, but for those refused.
        let at = self.reads.iter().position(|(waiting, _)| *waiting == read)?;
        self.reads.remove(at).map(|(_, look)| look)
    }

    /// Somebody looks, at whatever is there.
    pub(crate) fn look(&mut self, look: Look<A>) {
        self.tasks.push_back(Task::Look(look));
    }

    /// This server serves; everything that it inherited is among the deliveries asked for so far.
    pub(crate) fn serving(&mut self, service: Service, configuration: String, version: i64) {
        self.tasks.push_back(Task::Serving { service, configuration, version });
    }

    // --- doing it ---

    /// Does what can be done at once; the rest goes on elsewhere.
    pub(crate) fn run(&mut self, then: &mut Consequences) -> Result<(), ServerError> {
        self.welcome(then)?;
        let begun = Instant::now();
        let mut now = begun;
        while self.hands.is_some() {
            if !self.quick || now - begun > INLINE_TIME {
                return self.hand_over(then);
            }
            let Some(errand) = self.next(then) else { return Ok(()) };
            if matches!(errand, Errand::Read { .. }) {
                self.rest.push_front(errand);
                return self.hand_over(then);
            }
            let Some(hands) = &mut self.hands else { return Ok(()) };
            let mut done = std::mem::take(&mut self.done);
            hands.perform(errand, &mut done);
            self.applied = hands.applied;
            self.conclude(&mut done, then)?;
            self.done = done;
            let before = std::mem::replace(&mut now, Instant::now());
            self.quick = now - before < SLOW;
        }
        Ok(())
    }

    /// Takes in what threads have done.
    fn welcome(&mut self, then: &mut Consequences) -> Result<(), ServerError> {
        let mut ran = std::mem::take(&mut self.ran);
        self.tray.take(&mut ran);
        for ran in ran.drain(..) {
            match ran {
                Ran::Worked(worked) => {
                    let Worked { hands, mut rest, mut done, slowest } = *worked;
                    self.applied = hands.applied;
                    self.hands = Some(hands);
                    self.quick = slowest < SLOW;
                    rest.append(&mut self.rest);
                    self.rest = rest;
                    self.conclude(&mut done, then)?;
                }
                Ran::Panicked(panic) => resume_unwind(panic),
                Ran::Staged(Ok(staged)) => {
                    let staged = staged.map(|(label, state)| Staged::Ready(label, state));
                    self.staged = staged.unwrap_or(Staged::None);
                }
                Ran::Staged(Err(error)) => return Err(ServerError::Restore { error }),
                Ran::Saved(label, outcome) => {
                    if let Err(error) = outcome {
                        tracing::warn!(%label, %error, "cannot take a snapshot");
                    }
                    then.events.push(Event::SnapshotTaken(label));
                }
            }
        }
        self.ran = ran;
        Ok(())
    }

    /// Sends the application to its thread, with the next few errands.
    fn hand_over(&mut self, then: &mut Consequences) -> Result<(), ServerError> {
        let mut errands = VecDeque::new();
        while errands.len() < ERRANDS_MAX {
            let Some(errand) = self.next(then) else { break };
            // How far it comes is known only when it is done.
            let last = matches!(errand, Errand::Read { .. });
            errands.push_back(errand);
            if last {
                break;
            }
        }
        if errands.is_empty() {
            self.quick = true;
            return Ok(());
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => start_thread(Arc::clone(&self.tray)).map_err(ServerError::thread)?,
        };
        if let Some(hands) = self.hands.take() {
            // There is room: it has no other job while the application is here.
            drop(thread.try_send(Job { hands, errands }));
        }
        self.thread = Some(thread);
        Ok(())
    }

    /// The next errand, if there is one that can begin now.
    fn next(&mut self, then: &mut Consequences) -> Option<Errand<A>> {
        if let Some(errand) = self.rest.pop_front() {
            return Some(errand);
        }
        loop {
            if matches!(self.staged, Staged::Coming) {
                return None;
            }
            if let Task::Deliver(through) = self.tasks.front()? {
                match self.next_delivery(*through) {
                    Some(errand) => return Some(errand),
                    None => drop(self.tasks.pop_front()),
                }
                continue;
            }
            match self.tasks.pop_front()? {
                Task::Stage => self.begin_to_stage(),
                Task::Deliver(_) => {}
                Task::Prepare { epoch, request } => {
                    return Some(Errand::Prepare { epoch, request });
                }
                Task::TakeSnapshot(label) => return Some(Errand::Save(label)),
                Task::SendSnapshot { link, label } => match &self.staged {
                    Staged::Ready(staged, state) if *staged > self.planned => {
                        let pieces = stream::send_snapshot(label, A::staged_snapshot(state));
                        then.streams.push((link, pieces.map_err(|_| Unreadable)));
                    }
                    Staged::Ready(..) | Staged::Coming | Staged::None => {
                        return Some(Errand::Send { link, label });
                    }
                },
                Task::Abandon => return Some(Errand::Abandon),
                // It was to see what a snapshot has, whose state is not ours yet.
                Task::Look(look) if self.planned < self.base => look(Err(ReadError::Behind)),
                Task::Look(look) => return Some(Errand::Look(look)),
                Task::Serving { service, configuration, version } => {
                    return Some(Errand::Serving { service, configuration, version });
                }
            }
        }
    }

    /// The next step of delivering through a transaction; none if it is there.
    fn next_delivery(&mut self, through: Zxid) -> Option<Errand<A>> {
        if let Staged::Ready(label, _) = self.staged {
            if label <= self.planned {
                // The application has come further by itself.
                self.staged = Staged::None;
            } else if label <= through {
                let Staged::Ready(label, state) = std::mem::replace(&mut self.staged, Staged::None)
                else {
                    return None;
                };
                self.planned = label;
                return Some(Errand::Adopt(label, state));
            }
        }
        if self.planned >= through {
            return None;
        }
        if self.planned < self.base {
            // The log begins later: what is missing will come with the state kept apart.
            return None;
        }
        if self.planned < self.feed.floor() {
            let (after, through) = (self.planned, through.min(self.feed.floor()));
            if after < through {
                self.planned = through;
                return Some(Errand::Read { after, through });
            }
        }
        let txn = self.feed.take_next(self.planned, through)?;
        self.planned = txn.zxid;
        Some(Errand::Apply(txn))
    }

    fn begin_to_stage(&mut self) {
        self.staged = Staged::Coming;
        let (disk, tray) = (self.disk.clone(), Arc::clone(&self.tray));
        let work = move || {
            let staged = catch_unwind(AssertUnwindSafe(|| restore_newest::<A>(&disk)));
            drop(tray.put(match staged {
                Ok(staged) => Ran::Staged(staged),
                Err(panic) => Ran::Panicked(panic),
            }));
        };
        let thread = std::thread::Builder::new().name("quorate-restore".to_owned());
        if let Err(error) = thread.stack_size(APPLICATION_STACK).spawn(work) {
            drop(self.tray.put(Ran::Staged(Err(error.to_string()))));
        }
    }

    /// Tells everybody what came of errands.
    fn conclude(
        &mut self,
        done: &mut Vec<Done<A>>,
        then: &mut Consequences,
    ) -> Result<(), ServerError> {
        for done in done.drain(..) {
            match done {
                Done::Own { cxid, zxid, outcome } => self.requests.applied(cxid, zxid, outcome),
                Done::Prepared(reign, draft) => match then.events.last_mut() {
                    // What is ready together travels together.
                    Some(Event::Prepared { epoch, drafts }) if *epoch == reign => {
                        drafts.push(draft);
                    }
                    _ => {
                        let drafts = vec![draft];
                        then.events.push(Event::Prepared { epoch: reign, drafts });
                    }
                },
                Done::Adopted => self.requests.jumped(),
                Done::Inherited(service) => self.requests.inherited(service),
                Done::Snapshot(snapshot, Purpose::Send { link, label }) => {
                    let pieces = stream::send_snapshot(label, snapshot);
                    then.streams.push((link, pieces.map_err(|_| Unreadable)));
                }
                Done::Snapshot(snapshot, Purpose::Save(label)) => self.save(label, snapshot),
                Done::Read { reached, through, outcome: Ok(()) } => {
                    if reached < through {
                        self.rest.push_front(Errand::Read { after: reached, through });
                    }
                }
                Done::Read { reached, outcome: Err(error), .. } => {
                    if reached >= self.base {
                        return Err(ServerError::Unreadable { after: reached, error });
                    }
                    // A snapshot has taken the place of what was to be read.
                    self.planned = reached;
                }
            }
        }
        Ok(())
    }

    fn save(&self, label: Zxid, snapshot: A::Snapshot) {
        let (tray, disk, stop) = (Arc::clone(&self.tray), self.disk.clone(), self.stop.clone());
        let hold = self.hold.clone();
        let done = move |outcome| drop(tray.put(Ran::Saved(label, outcome)));
        if let Err(error) = stream::save(label, snapshot, disk, stop, hold, done) {
            drop(self.tray.put(Ran::Saved(label, Err(error.to_string()))));
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

impl<A: Application> Hands<A> {
    fn perform(&mut self, errand: Errand<A>, done: &mut Vec<Done<A>>) {
        match errand {
            Errand::Apply(txn) => self.apply(&txn, done),
            Errand::Read { after, through } => {
                let (reached, outcome) = self.read(after, through, done);
                done.push(Done::Read { reached, through, outcome });
            }
            Errand::Adopt(label, state) => {
                self.application.adopt(state);
                self.applied = label;
                done.push(Done::Adopted);
            }
            Errand::Prepare { epoch, request } => {
                let now = now_ms();
                let prepared = self.application.prepare(&request, now);
                let (client, cxid) = (request.id.client, request.id.cxid);
                let header = TxnHeader { client, cxid, time: now, kind: prepared.kind };
                done.push(Done::Prepared(epoch, Draft { header, body: prepared.body }));
            }
            Errand::Abandon => self.application.abandon(),
            Errand::Look(look) => look(Ok(&self.application)),
            Errand::Save(label) => {
                done.push(Done::Snapshot(self.application.snapshot(), Purpose::Save(label)));
            }
            Errand::Send { link, label } => {
                let purpose = Purpose::Send { link, label };
                done.push(Done::Snapshot(self.application.snapshot(), purpose));
            }
            Errand::Serving { service, configuration, version } => {
                self.application.set_configuration(&configuration, version, now_ms());
                done.push(Done::Inherited(service));
            }
        }
    }

    fn apply(&mut self, txn: &Txn, done: &mut Vec<Done<A>>) {
        debug_assert!(txn.zxid > self.applied, "{} behind {}", txn.zxid, self.applied);
        let reply = self.application.apply(txn);
        self.applied = txn.zxid;
        if let Some((cxid, outcome)) = own_outcome(self.client, txn, reply) {
            done.push(Done::Own { cxid, zxid: txn.zxid, outcome });
        }
    }

    /// Applies what the log has behind `after`, for some time; returns how far it came.
    fn read(
        &mut self,
        after: Zxid,
        through: Zxid,
        done: &mut Vec<Done<A>>,
    ) -> (Zxid, Result<(), String>) {
        let begun = Instant::now();
        let reader = match self.reader.take().filter(|(_, wanted)| *wanted == through) {
            Some((reader, _)) if self.applied == after => Ok(reader),
            _ => self.disk.reader(after, through).map_err(|error| error.to_string()),
        };
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => return (after, Err(error)),
        };
        let mut reached = after;
        while begun.elapsed() < WORK_TIME {
            match reader.next_chunk(CHUNK_BYTES) {
                Ok(Some(chunk)) => {
                    for txn in chunk.txns().filter(|txn| txn.zxid <= through) {
                        reached = txn.zxid;
                        self.apply(&txn, done);
                    }
                }
                Ok(None) => return (through, Ok(())),
                Err(error) => return (reached, Err(error.to_string())),
            }
        }
        self.reader = Some((reader, through));
        (reached, Ok(()))
    }
}

/// Starts the thread on which an application works that is not quick.
fn start_thread<A: Application>(tray: Arc<Tray<Ran<A>>>) -> io::Result<Sender<Job<A>>> {
    let (jobs, queue) = bounded(1);
    let thread = std::thread::Builder::new().name("quorate-apply".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || work(&queue, &tray))?;
    Ok(jobs)
}

fn work<A: Application>(jobs: &Receiver<Job<A>>, tray: &Tray<Ran<A>>) {
    while let Ok(Job { mut hands, mut errands }) = jobs.recv_blocking() {
        let worked = catch_unwind(AssertUnwindSafe(move || {
            let (mut done, mut slowest) = (Vec::new(), Duration::ZERO);
            let begun = Instant::now();
            let mut now = begun;
            while now - begun < WORK_TIME {
                let Some(errand) = errands.pop_front() else { break };
                hands.perform(errand, &mut done);
                let before = std::mem::replace(&mut now, Instant::now());
                slowest = slowest.max(now - before);
            }
            Worked { hands, rest: errands, done, slowest }
        }));
        drop(tray.put(match worked {
            Ok(worked) => Ran::Worked(Box::new(worked)),
            Err(panic) => Ran::Panicked(panic),
        }));
    }
}

/// Restores the newest snapshot on disk, if there is one.
pub(crate) fn restore_newest<A: Application>(
    disk: &DiskHandle,
) -> Result<Option<(Zxid, A::Staged)>, String> {
    let Some(snapshot) = disk.newest_snapshot().map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    restore::<A>(&snapshot).map(|state| Some((snapshot.label, state)))
}

/// Restores a snapshot on disk.
pub(crate) fn restore<A: Application>(
    snapshot: &quorate_log::snapshot::SnapshotFile,
) -> Result<A::Staged, String> {
    let path = snapshot.path.display();
    let reader = quorate_log::snapshot::SnapshotReader::open(quorate_log::Disk, snapshot);
    let mut reader = reader.map_err(|error| error.to_string())?;
    let state = A::restore(snapshot.label, &mut reader)
        .map_err(|error| format!("the application cannot restore {path}: {error}"))?;
    reader.finish().map_err(|error| error.to_string())?;
    Ok(state)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How many bytes of transactions wait for the application before the log on disk has to do.
const FEED_BYTES: usize = 64 << 20;
/// How long the loop does errands before the thread goes on with them.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// An application of which one errand takes longer is slow.
const SLOW: Duration = Duration::from_millis(1);
/// How long the thread works before it says how far it has come.
const WORK_TIME: Duration = Duration::from_millis(20);
/// How many errands it gets at a time.
const ERRANDS_MAX: usize = 1024;
/// How much of the log is read at a time.
const CHUNK_BYTES: usize = 256 << 10;
