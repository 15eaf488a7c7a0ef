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
use std::io::{self, BufRead};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_channel::{Receiver, Sender, bounded};
use bytes::Bytes;
use quorate_application::{Application, Prepared, Rejected};
use quorate_core::id::{LinkId, ReadId, Ticket};
use quorate_core::input::{Event, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::output::Write;
use quorate_core::txn::{Draft, Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::reader::Reader;

use crate::disk::{
    self as stream, DiskHandle, Intake, Pieces, Reception, SnapshotFault, Stop, Unread, Wanted,
};
use crate::error::ServerError;
use crate::feed::Feed;
use crate::requests::{Look, ReadError, Requests, Tray, own_outcome};
use crate::task_group::Hold;
use crate::threads::APPLICATION_STACK;

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
    feed_bytes: usize,
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
    Prepare {
        epoch: Epoch,
        request: Request,
    },
    Deliver(Zxid),
    TakeSnapshot(Zxid),
    SendSnapshot {
        link: LinkId,
        label: Zxid,
        memberships: Bytes,
    },
    Abandon,
    Look(Look<A>),
    /// This server serves again.
    Serving {
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
        memberships: Bytes,
    },
    Serving {
        configuration: String,
        version: i64,
    },
    /// All that was to be delivered through this is applied.
    Reached(Zxid),
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
    Snapshot(A::Snapshot, Purpose),
    /// How far reading the log has come.
    Read {
        reached: Zxid,
        through: Zxid,
        outcome: Result<(), Unread>,
    },
    Reached(Zxid),
}

#[derive(Clone, Debug)]
enum Purpose {
    Save(Zxid),
    Send { link: LinkId, label: Zxid, memberships: Bytes },
}

/// What a thread has to say.
pub(crate) enum Ran<A: Application> {
    /// The application comes home.
    Worked(Box<Worked<A>>),
    /// The application or a snapshot of it has panicked, and so will the loop.
    Panicked(Box<dyn Any + Send>),
    /// A snapshot was taken, or could not be.
    Saved(Zxid, Result<(), SnapshotFault>),
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
    /// The longest transaction.
    txn_bytes_max: usize,
    disk: DiskHandle,
    /// The log is being read.
    reader: Option<(Reader, Zxid)>,
}

/// What the loop has to do because of the application.
#[derive(Default)]
pub(crate) struct Consequences {
    /// For the core, in order.
    pub(crate) events: Vec<Event>,
    /// All that was to be delivered through this is applied.
    pub(crate) applied: Option<Zxid>,
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
    /// The longest transaction that a leader makes.
    pub(crate) txn_bytes_max: usize,
    pub(crate) disk: DiskHandle,
    pub(crate) tray: Arc<Tray<Ran<A>>>,
    pub(crate) hold: Hold,
    /// How many bytes of transactions wait for the application before the log on disk has to do.
    pub(crate) feed_bytes: usize,
}

impl<A: Application> Replica<A> {
    pub(crate) fn new(beginning: Beginning<A>) -> Self {
        let Beginning { application, staged, last, client, disk, tray, hold, feed_bytes, .. } =
            beginning;
        let hands = Hands {
            application,
            client,
            applied: Zxid::ZERO,
            txn_bytes_max: beginning.txn_bytes_max,
            disk: disk.clone(),
            reader: None,
        };
        Self {
            hands: Some(hands),
            thread: None,
            tray,
            quick: true,
            tasks: VecDeque::new(),
            rest: VecDeque::new(),
            planned: Zxid::ZERO,
            applied: Zxid::ZERO,
            feed: Feed::new(last, feed_bytes),
            feed_bytes,
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
            Write::Install { label, .. } => self.install(*label),
            Write::AcceptedEpoch(_)
            | Write::CurrentEpoch(_)
            | Write::GrantedVote { .. }
            | Write::Lease(_)
            | Write::Membership(_)
            | Write::NextMembership(_) => {}
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

    pub(crate) fn send_snapshot(&mut self, link: LinkId, label: Zxid, memberships: Bytes) {
        self.tasks.push_back(Task::SendSnapshot { link, label, memberships });
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
            restore: A::restore(label),
            membership: A::staged_membership,
            deposit: Box::new(move |state| {
                if let Ok(mut place) = place.lock() {
                    *place = Some(state);
                }
            }),
            hold: self.hold.clone(),
        };
        let intake = stream::receive(reception)?;
        let beside = Feed::new(label, self.feed_bytes);
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
    pub(crate) fn serving(&mut self, membership: &Membership) {
        let (configuration, version) = (membership.to_string(), membership.version());
        self.tasks.push_back(Task::Serving { configuration, version });
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
        let (mut errands, mut bytes) = (VecDeque::new(), 0);
        while errands.len() < ERRANDS_MAX && bytes < ERRANDS_BYTES_MAX {
            let Some(errand) = self.next(then) else { break };
            if let Errand::Apply(txn) = &errand {
                bytes += txn.len();
            }
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
            if let Task::Deliver(through) = self.tasks.front()? {
                let through = *through;
                if let Some(errand) = self.next_delivery(through) {
                    return Some(errand);
                }
                self.tasks.pop_front();
                if self.planned >= self.base {
                    return Some(Errand::Reached(through));
                }
                // What is missing comes with the state kept apart.
                continue;
            }
            match self.tasks.pop_front()? {
                Task::Deliver(_) => {}
                Task::Prepare { epoch, request } => {
                    return Some(Errand::Prepare { epoch, request });
                }
                // It was asked for before another history was installed: the state is not that of its label, and
                // never will be.
                Task::TakeSnapshot(label) if self.planned < self.base || label < self.base => {
                    then.events.push(Event::SnapshotTaken(label));
                }
                Task::TakeSnapshot(label) => return Some(Errand::Save(label)),
                Task::SendSnapshot { link, label, memberships } => match &self.staged {
                    Staged::Ready(staged, state) if *staged > self.planned => {
                        let snapshot = A::staged_snapshot(state);
                        let pieces = stream::send_snapshot(label, memberships, snapshot);
                        then.streams.push((link, pieces.map_err(|_| Unreadable)));
                    }
                    Staged::Ready(..) | Staged::None => {
                        return Some(Errand::Send { link, label, memberships });
                    }
                },
                Task::Abandon => return Some(Errand::Abandon),
                // It was to see what a snapshot has, whose state is not ours yet.
                Task::Look(look) if self.planned < self.base => look(Err(ReadError::Behind)),
                Task::Look(look) => return Some(Errand::Look(look)),
                Task::Serving { configuration, version } => {
                    return Some(Errand::Serving { configuration, version });
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
                Done::Reached(through) => then.applied = then.applied.max(Some(through)),
                Done::Snapshot(snapshot, Purpose::Send { link, label, memberships }) => {
                    let pieces = stream::send_snapshot(label, memberships, snapshot);
                    then.streams.push((link, pieces.map_err(|_| Unreadable)));
                }
                // A history that begins behind it has been installed meanwhile: nothing can start from it.
                Done::Snapshot(_, Purpose::Save(label)) if label < self.base => {
                    then.events.push(Event::SnapshotTaken(label));
                }
                Done::Snapshot(snapshot, Purpose::Save(label)) => self.save(label, snapshot),
                Done::Read { reached, through, outcome: Ok(()) } => {
                    if reached < through {
                        self.rest.push_front(Errand::Read { after: reached, through });
                    }
                }
                // With the disk ends the server, and it says why.
                Done::Read { outcome: Err(Unread::Ended), .. } => {}
                Done::Read { reached, outcome: Err(Unread::Log(error)), .. } => {
                    if reached >= self.base {
                        let source = Arc::new(error);
                        return Err(ServerError::Unreadable { after: reached, source });
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
            drop(self.tray.put(Ran::Saved(label, Err(error.into()))));
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
            }
            Errand::Prepare { epoch, request } => {
                let now = now_ms();
                let most = self.txn_bytes_max;
                let body_max = most.saturating_sub(Txn::HEADER_BYTES);
                let Prepared { kind, body } = self.application.prepare(&request, now, body_max);
                let (client, cxid) = (request.id.client, request.id.cxid);
                let header = TxnHeader { client, cxid, time: now, kind };
                let draft = Draft { header, body };
                let draft = draft.fit(most).unwrap_or_else(|refusal| {
                    self.application.void();
                    refusal
                });
                done.push(Done::Prepared(epoch, draft));
            }
            Errand::Abandon => self.application.abandon(),
            Errand::Look(look) => look(Ok(&self.application)),
            Errand::Save(label) => {
                done.push(Done::Snapshot(self.application.snapshot(), Purpose::Save(label)));
            }
            Errand::Send { link, label, memberships } => {
                let purpose = Purpose::Send { link, label, memberships };
                done.push(Done::Snapshot(self.application.snapshot(), purpose));
            }
            Errand::Serving { configuration, version } => {
                self.application.set_configuration(&configuration, version, now_ms());
            }
            Errand::Reached(through) => done.push(Done::Reached(through)),
        }
    }

    fn apply(&mut self, txn: &Txn, done: &mut Vec<Done<A>>) {
        debug_assert!(txn.zxid > self.applied, "{} behind {}", txn.zxid, self.applied);
        let effect = self.application.apply(txn);
        self.applied = txn.zxid;
        if let Some((cxid, outcome)) = own_outcome(self.client, txn, A::reply(&effect)) {
            done.push(Done::Own { cxid, zxid: txn.zxid, outcome });
        }
    }

    /// Applies what the log has behind `after`, for some time; returns how far it came.
    fn read(
        &mut self,
        after: Zxid,
        through: Zxid,
        done: &mut Vec<Done<A>>,
    ) -> (Zxid, Result<(), Unread>) {
        let begun = Instant::now();
        let reader = match self.reader.take().filter(|(_, wanted)| *wanted == through) {
            Some((reader, _)) if self.applied == after => Ok(reader),
            _ => self.disk.reader(after, through),
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
                Err(error) => return (reached, Err(error.into())),
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

/// Restores a snapshot on disk.
pub(crate) fn restore<A: Application>(
    snapshot: &quorate_storage::snapshot::SnapshotFile,
) -> Result<A::Staged, SnapshotFault> {
    let mut reader =
        quorate_storage::snapshot::SnapshotReader::open(quorate_storage::Disk, snapshot)?;
    let mut restore = A::restore(snapshot.label);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Err(SnapshotFault::Ended);
        }
        let mut rest = bytes;
        let whole = stream::push(&mut restore, &mut rest)?;
        let taken = bytes.len() - rest.len();
        reader.consume(taken);
        if let Some(state) = whole {
            reader.finish()?;
            return Ok(state);
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How long the loop does errands before the thread goes on with them.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// An application of which one errand takes longer is slow.
const SLOW: Duration = Duration::from_millis(1);
/// How long the thread works before it says how far it has come.
const WORK_TIME: Duration = Duration::from_millis(20);
/// How many errands it gets at a time.
const ERRANDS_MAX: usize = 1024;
/// How many bytes of transactions it gets at a time.
const ERRANDS_BYTES_MAX: usize = 4 << 20;
/// How much of the log is read at a time.
const CHUNK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use futures_channel::oneshot;
    use futures_lite::future::block_on;
    use quorate_application::{Restore, RestoreError, Snapshot, SnapshotError};
    use quorate_core::message::LearnerInfo;
    use quorate_core::txn::RequestId;
    use tempfile::TempDir;

    use super::*;
    use crate::disk::Disk;
    use crate::net::events::Happened;
    use crate::permits::Permits;
    use crate::requests::look;

    /// Notes what it is told to do. A state is the last transaction in it, as eight bytes.
    struct Notes {
        told: Told,
        /// Waits for a word before each transaction, if there is a sender.
        gate: Receiver<()>,
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

        const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

        fn prepare(&mut self, request: &Request, _now: i64, _bytes_max: usize) -> Prepared {
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
        bell: Receiver<Happened>,
        disk: Disk,
        tickets: u64,
        _dir: TempDir,
    }

    impl Stage {
        fn new(staged: Option<i64>, feed_bytes: usize) -> Self {
            let (disk, dir) = stream::tests::disk();
            let (ring, bell) = bounded(1);
            let told = Told::default();
            let (gate, gate_kept) = bounded(1);
            let replica = Replica::new(Beginning {
                application: Notes { told: Arc::clone(&told), gate: gate_kept },
                staged: staged.map(|label| (Zxid(label), label)),
                last: Zxid(staged.unwrap_or(0)),
                client: 7,
                txn_bytes_max: Txn::BYTES_MAX,
                disk: disk.handle(),
                tray: Arc::new(Tray::new(ring)),
                hold: Hold::idle(),
                feed_bytes,
            });
            drop(gate);
            Self { replica, told, gate: None, bell, disk, tickets: 0, _dir: dir }
        }

        /// From now on, transactions wait.
        fn close_gate(&mut self) {
            let (gate, kept) = bounded(1);
            self.replica.hands.as_mut().unwrap().application.gate = kept;
            self.gate = Some(gate);
        }

        fn write(&mut self, write: Write) {
            self.tickets += 1;
            self.replica.on_write(Ticket(self.tickets), &write);
            self.disk.write(Ticket(self.tickets), write);
        }

        fn append(&mut self, zxids: impl IntoIterator<Item = i64>) {
            self.write(Write::Append(zxids.into_iter().map(txn).collect()));
        }

        /// As a log that has more than this directory.
        fn append_unlogged(&mut self, zxids: impl IntoIterator<Item = i64>) {
            let write = Write::Append(zxids.into_iter().map(txn).collect());
            self.replica.on_write(Ticket(0), &write);
        }

        /// Until all that was written is durable.
        fn sync(&mut self) {
            loop {
                let ticket = block_on(self.disk.durable()).unwrap();
                self.replica.on_persisted(ticket);
                if ticket == Ticket(self.tickets) {
                    return;
                }
            }
        }

        fn run(&mut self) -> Consequences {
            let mut then = Consequences::default();
            self.replica.run(&mut then).unwrap();
            then
        }

        fn deliver(&mut self, zxid: i64) {
            self.replica.deliver_through(Zxid(zxid));
            drop(self.run());
        }

        /// Runs until the application has come so far.
        fn until_applied(&mut self, zxid: i64) {
            drop(self.run());
            while self.replica.applied() < Zxid(zxid) {
                drop(self.bell.recv_blocking().unwrap());
                drop(self.run());
            }
        }

        fn told(&self) -> Vec<String> {
            std::mem::take(&mut *self.told.lock().unwrap())
        }

        fn peek(&mut self) -> Result<(), ReadError> {
            let permit = block_on(Permits::new(1).take());
            let (look, mut seen) = look(permit, |_: &Notes| ());
            self.replica.look(look);
            drop(self.run());
            seen.try_recv().unwrap().expect("somebody has looked").map(|_| ())
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

    const MUCH: usize = 1 << 20;

    #[test]
    fn a_quick_application_is_done_at_once_and_in_order() {
        let mut stage = Stage::new(None, MUCH);
        stage.append(1..=3);
        stage.replica.deliver_through(Zxid(1));
        stage.replica.prepare(Epoch(1), request(8));
        stage.replica.prepare(Epoch(1), request(9));
        stage.replica.deliver_through(Zxid(2));
        stage.replica.deliver_through(Zxid(3));
        let then = stage.run();
        let expected = ["apply 1", "prepare 8", "prepare 9", "apply 2", "apply 3"];
        assert_eq!(stage.told(), expected);
        assert_eq!(stage.replica.applied(), Zxid(3));
        let [Event::Prepared { epoch: Epoch(1), drafts }] = &then.events[..] else {
            panic!("{:?}", then.events)
        };
        assert_eq!(drafts.iter().map(|draft| draft.header.cxid).collect::<Vec<_>>(), [8, 9]);
        assert!(stage.replica.thread.is_none(), "there was nothing for another thread");
    }

    #[test]
    fn a_slow_application_leaves_the_loop_and_costs_a_watermark() {
        let mut stage = Stage::new(None, MUCH);
        stage.append(1..=50);
        stage.close_gate();
        stage.replica.quick = false;
        stage.deliver(1);
        for zxid in 2..=50 {
            stage.deliver(zxid);
        }
        assert_eq!(stage.replica.tasks.len(), 1, "one watermark");
        assert_eq!(stage.replica.applied(), Zxid(0));
        stage.gate = None;
        stage.until_applied(50);
        assert_eq!(stage.told(), applies(1..=50));
        assert!(stage.replica.quick, "it has been quick again");
    }

    #[test]
    fn what_a_slow_application_cannot_take_is_read_back_from_the_log() {
        // Room for some ten.
        let mut stage = Stage::new(None, 2000);
        stage.close_gate();
        stage.replica.quick = false;
        stage.append(1..=100);
        stage.deliver(1);
        for zxid in 101..=200 {
            stage.append([zxid]);
        }
        stage.sync();
        assert!(stage.replica.feed.floor() > Zxid(180), "{:?}", stage.replica.feed.floor());
        stage.deliver(150);
        stage.deliver(200);
        stage.gate = None;
        stage.until_applied(200);
        assert_eq!(stage.told(), applies(1..=200));
    }

    #[test]
    fn a_state_on_disk_is_the_applications_when_all_of_it_is_committed() {
        let mut stage = Stage::new(Some(5), MUCH);
        assert_eq!(stage.peek(), Err(ReadError::Behind));
        stage.append_unlogged(6..=8);
        stage.deliver(4);
        assert_eq!(stage.told(), [""; 0]);
        stage.deliver(7);
        assert_eq!(stage.told(), ["adopt 5", "apply 6", "apply 7"]);
        assert_eq!(stage.peek(), Ok(()));
        stage.deliver(8);
        assert_eq!(stage.told(), ["apply 8"]);
    }

    #[test]
    fn a_snapshot_that_is_installed_replaces_what_was_not_applied() {
        let mut stage = Stage::new(None, MUCH);
        stage.append(1..=20);
        stage.deliver(10);
        let (answer, mut outcome) = oneshot::channel();
        let permit = block_on(Permits::new(1).take());
        let id = request(1).id;
        stage.replica.requests.asked(id, answer, permit);
        stage.replica.requests.accepted(id);
        stage.told();

        stage.receive(15);
        stage.write(Write::Beside(txn(16)));
        stage.write(Write::Beside(txn(17)));
        assert_eq!(stage.peek(), Ok(()), "it is not installed yet");
        stage.write(install(15));
        // What the old history was to deliver is in the new one, and waits until that is confirmed.
        stage.deliver(12);
        assert_eq!((stage.told(), stage.peek()), (vec![], Err(ReadError::Behind)));
        stage.deliver(17);
        assert_eq!(stage.told(), ["adopt 15", "apply 16", "apply 17"]);
        assert_eq!(outcome.try_recv().unwrap().map(drop), None, "the core tells of it");
        stage.sync();
        assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(15));
    }

    /// A snapshot is asked for behind what was to be delivered, and then another history is installed: what was to be
    /// delivered is not, so the state is not what the label says. On 953d248 it was published under that label.
    #[test]
    fn a_snapshot_that_was_to_be_taken_of_a_history_that_is_gone_is_not_taken() {
        for through in [10, 12] {
            let mut stage = Stage::new(None, MUCH);
            stage.append(1..=20);
            stage.deliver(10);
            stage.receive(15);
            stage.replica.deliver_through(Zxid(through));
            stage.replica.take_snapshot(Zxid(through));
            stage.write(install(15));
            let mut then = stage.run();
            while then.events.is_empty() {
                drop(stage.bell.recv_blocking().unwrap());
                then = stage.run();
            }
            assert_eq!(
                then.events,
                [Event::SnapshotTaken(Zxid(through))],
                "the core may ask again"
            );
            stage.sync();
            let names = std::fs::read_dir(stage._dir.path().join("version-2")).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let snapshots: Vec<_> = names.filter(|name| name.starts_with("snapshot")).collect();
            assert_eq!(snapshots, ["snapshot.f"]);
            assert_eq!(stage.replica.applied(), Zxid(10));
        }
    }

    #[test]
    fn an_application_that_has_come_further_keeps_its_own_state() {
        let mut stage = Stage::new(None, MUCH);
        stage.append(1..=20);
        stage.deliver(18);
        stage.told();
        stage.receive(15);
        for zxid in 16..=19 {
            stage.write(Write::Beside(txn(zxid)));
        }
        stage.write(install(15));
        assert_eq!(stage.peek(), Ok(()));
        stage.deliver(19);
        assert_eq!(stage.told(), ["apply 19"]);
    }

    #[test]
    fn what_was_received_and_not_installed_is_forgotten_with_the_reign() {
        let mut stage = Stage::new(None, MUCH);
        stage.receive(15);
        stage.replica.prepare(Epoch(1), request(1));
        stage.replica.abandon();
        assert_eq!(stage.run().events, [], "nobody wants to know any more");
        assert_eq!(stage.told(), ["abandon"]);
        // The next leader sends another one, of the same label.
        stage.receive(15);
        stage.write(install(15));
        stage.deliver(15);
        assert_eq!(stage.told(), ["adopt 15"]);
        stage.sync();
    }

    #[test]
    fn a_snapshot_that_is_not_wanted_any_more_changes_nothing() {
        let mut stage = Stage::new(None, MUCH);
        let intake = stage.replica.receive(Zxid(15)).unwrap();
        intake.put(&15_i64.to_be_bytes());
        stage.replica.abandon();
        intake.put(b"\0\0\0\x0aBenWasHere");
        assert!(block_on(intake.done()).is_err());
        drop(intake);
        stage.receive(16);
        assert_eq!(stage.replica.reception.as_ref().unwrap().label, Zxid(16));
    }

    #[test]
    fn a_panic_on_the_thread_is_one_of_the_server() {
        let mut stage = Stage::new(None, MUCH);
        let bad = Txn { body: Bytes::from_static(b"panic"), ..txn(1) };
        stage.write(Write::Append([bad].into_iter().collect()));
        stage.replica.quick = false;
        stage.deliver(1);
        drop(stage.bell.recv_blocking().unwrap());
        let caught = catch_unwind(AssertUnwindSafe(|| drop(stage.run())));
        assert!(caught.is_err());
    }

    #[test]
    fn a_snapshot_is_written_beside_the_application() {
        let mut stage = Stage::new(None, MUCH);
        stage.append(1..=3);
        stage.deliver(3);
        stage.sync();
        stage.replica.take_snapshot(Zxid(3));
        let mut then = stage.run();
        while then.events.is_empty() {
            drop(stage.bell.recv_blocking().unwrap());
            then = stage.run();
        }
        assert_eq!(then.events, [Event::SnapshotTaken(Zxid(3))]);
        assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(3));
    }
}
