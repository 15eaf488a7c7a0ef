//! The worker: the application and its clients, and the steps that they carry out, in the loop or on their thread.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use bytes::Bytes;
use quorate_application::clients::{self, ClientId, Clients};
use quorate_application::{Application, Facts, Prepared, Rejected, TxnTimes};
use quorate_core::id::{LinkId, Origin};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::time::Instant as CoreInstant;
use quorate_core::txn::{Draft, Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_leadership::boot_time;
use quorate_storage::reader::Reader;

use crate::disk::{DiskHandle, DiskReadError, SnapshotFault};
use crate::host::callers::{ReadClosure, own_outcome};
use crate::host::service::Service;
use crate::host::stages::{During, Stage};
use crate::inbox::Inbox;
use crate::proposals::Seen;
use crate::tally::Tally;
use crate::threads::APPLICATION_STACK;
use crate::turns::Held;
use crate::wall_clock::now_ms;

/// One step of what the application is to do. It moves a few times, so what is large and rare in it is boxed: an order
/// of more than 128 bytes is moved by a call.
pub(super) enum Order<A: Application> {
    Apply(Txn, Stage),
    /// Applies what the log has.
    Replay {
        after: Zxid,
        through: Zxid,
    },
    Adopt(Zxid, Box<A::Staged>),
    Prepare {
        epoch: Epoch,
        zxid: Zxid,
        origin: Origin,
        request: Request,
        /// Since when it waits.
        since: Instant,
    },
    Abandon,
    Read(ReadClosure<A>),
    Save(Zxid),
    Send {
        link: LinkId,
        label: Zxid,
        memberships: Bytes,
    },
    /// This server serves again.
    Serving {
        epoch: Epoch,
        leads: bool,
        marks: bool,
        membership: Box<Membership>,
    },
    /// The service is told. What the event holds is given back when it has been.
    Client(clients::Event, Held),
}

impl<A: Application> Order<A> {
    /// What is measured of it.
    pub(super) const fn stage(&self) -> Option<Stage> {
        if let Self::Apply(_, stage) = self {
            Some(*stage)
        } else if let Self::Prepare { since, .. } = self {
            Some(Stage::Prepare(*since))
        } else {
            None
        }
    }

    pub(super) const fn is_tick(&self) -> bool {
        matches!(self, Self::Client(clients::Event::Tick, _))
    }

    pub(super) const fn is_retirement(&self) -> bool {
        matches!(self, Self::Client(clients::Event::Retired, _))
    }

    pub(super) fn is_arrival(&self, of: ClientId) -> bool {
        matches!(self, Self::Client(clients::Event::Connected { client, .. }, _) if *client == of)
    }
}

/// What came of an order.
pub(super) enum Done<A: Application> {
    /// A transaction that a caller at this server has asked for.
    Own {
        cxid: i32,
        zxid: Zxid,
        outcome: Result<Bytes, Rejected>,
    },
    Prepared(Epoch, Draft),
    Snapshot(A::Snapshot, Purpose),
    /// What the service wants done.
    Service(clients::Output),
    /// How far reading the log has come.
    Replayed {
        reached: Zxid,
        through: Zxid,
        outcome: Result<(), DiskReadError>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Purpose {
    Save(Zxid),
    Send { link: LinkId, label: Zxid, memberships: Bytes },
}

/// What a thread has to say.
pub(crate) enum WorkerReport<A: Application> {
    /// The application comes home.
    Returned(Box<Returned<A>>),
    /// The application or a snapshot of it has panicked, and so will the loop.
    Panicked(Box<dyn Any + Send>),
    /// A snapshot was taken, or could not be.
    Saved(Zxid, Result<(), SnapshotFault>),
}

pub(crate) struct Returned<A: Application> {
    pub(super) worker: Worker<A>,
    pub(super) rest: VecDeque<Order<A>>,
    pub(super) done: Vec<Done<A>>,
    /// How long the slowest order took.
    pub(super) slowest: Duration,
}

pub(super) struct Job<A: Application> {
    pub(super) worker: Worker<A>,
    pub(super) orders: VecDeque<Order<A>>,
}

/// What goes to the thread and comes back.
pub(super) struct Worker<A: Application> {
    pub(super) application: A,
    pub(super) service: Service<A>,
    /// How many orders to the service were carried out.
    pub(super) heard: u64,
    pub(super) client: i64,
    pub(super) applied: Zxid,
    /// The longest transaction.
    pub(super) txn_bytes_max: usize,
    /// Whether there is no configuration that the application should know of.
    pub(super) alone: bool,
    /// Those of the transactions that it prepares.
    pub(super) times: TxnTimes,
    pub(super) disk: DiskHandle,
    /// The log is being read.
    pub(super) reader: Option<(Reader, Zxid)>,
    /// The service does not go on: no more is carried out.
    pub(super) halted: bool,
}

impl<A: Application> Worker<A> {
    /// Carries an order out, of which there are several: the first when the clock was looked at, this so much later.
    pub(super) fn perform(
        &mut self,
        order: Order<A>,
        (first, later): (CoreInstant, Duration),
        done: &mut Vec<Done<A>>,
    ) {
        if self.halted {
            return;
        }
        self.service.is_now(first + later);
        match order {
            Order::Apply(txn, _) => self.apply(&txn, done),
            Order::Replay { after, through } => {
                let (reached, outcome) = self.replay(after, through, done);
                done.push(Done::Replayed { reached, through, outcome });
            }
            Order::Adopt(label, state) => {
                self.application.adopt(*state);
                self.applied = label;
                self.tell_service(clients::Event::Replaced, done);
            }
            Order::Prepare { epoch, zxid, origin, request, .. } => {
                let (now_ms, most) = (self.times.next(now_ms()), self.txn_bytes_max);
                let bytes_max = most.saturating_sub(Txn::HEADER_BYTES);
                let facts = Facts { zxid, now_ms, bytes_max };
                let Prepared { kind, body } = self.application.prepare(&request, origin, &facts);
                let (client, cxid) = (request.id.client, request.id.cxid);
                let header = TxnHeader { client, cxid, time: now_ms, kind };
                let draft = Draft { header, body };
                let draft = draft.fit(most).unwrap_or_else(|refusal| {
                    self.application.void();
                    refusal
                });
                done.push(Done::Prepared(epoch, draft));
            }
            Order::Abandon => {
                self.times.forget();
                self.application.abandon();
            }
            Order::Read(read) => read(Ok(&self.application)),
            Order::Save(label) => {
                done.push(Done::Snapshot(self.application.snapshot(), Purpose::Save(label)));
            }
            Order::Send { link, label, memberships } => {
                let purpose = Purpose::Send { link, label, memberships };
                done.push(Done::Snapshot(self.application.snapshot(), purpose));
            }
            Order::Serving { epoch, leads, marks, membership } => {
                if !self.alone {
                    let (text, version) = (membership.to_string(), membership.version());
                    self.application.set_configuration(&text, version, now_ms());
                }
                let serving = clients::Event::Serving { epoch, leads, marks, membership };
                self.tell_service(serving, done);
            }
            Order::Client(event, held) => {
                self.heard += 1;
                self.tell_service(event, done);
                drop(held);
            }
        }
    }

    fn tell_service(&mut self, event: clients::Event, done: &mut Vec<Done<A>>) {
        self.service.step(event, &mut self.application);
        self.take_outputs(done);
    }

    fn take_outputs(&mut self, done: &mut Vec<Done<A>>) {
        for output in self.service.outputs() {
            self.halted |= matches!(output, clients::Output::Halt(_));
            done.push(Done::Service(output));
        }
    }

    fn apply(&mut self, txn: &Txn, done: &mut Vec<Done<A>>) {
        debug_assert!(txn.zxid > self.applied, "{} behind {}", txn.zxid, self.applied);
        let effect = self.application.apply(txn);
        self.applied = txn.zxid;
        self.service.on_applied(txn, &effect, &mut self.application);
        self.take_outputs(done);
        if let Some((cxid, outcome)) = own_outcome(self.client, txn, A::reply(&effect)) {
            done.push(Done::Own { cxid, zxid: txn.zxid, outcome });
        }
    }

    /// Applies what the log has behind `after`, for some time; returns how far it came.
    fn replay(
        &mut self,
        after: Zxid,
        through: Zxid,
        done: &mut Vec<Done<A>>,
    ) -> (Zxid, Result<(), DiskReadError>) {
        let begun = boot_time::now();
        let reader = match self.reader.take().filter(|(_, wanted)| *wanted == through) {
            Some((reader, _)) if self.applied == after => Ok(reader),
            _ => self.disk.reader(after, through),
        };
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => return (after, Err(error)),
        };
        let mut reached = after;
        while boot_time::since(begun) < work_time::<A>() && !self.halted {
            match reader.next_chunk(CHUNK_BYTES) {
                Ok(Some(chunk)) => {
                    self.service.look_at_clock();
                    for txn in chunk.txns().filter(|txn| txn.zxid <= through) {
                        if self.halted {
                            break;
                        }
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
pub(super) fn start_thread<A: Application>(
    inbox: Arc<Inbox<WorkerReport<A>>>,
) -> io::Result<Sender<Job<A>>> {
    let (jobs, queue) = bounded(1);
    let thread = std::thread::Builder::new().name("quorate-apply".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || work(&queue, &inbox))?;
    Ok(jobs)
}

fn work<A: Application>(jobs: &Receiver<Job<A>>, inbox: &Inbox<WorkerReport<A>>) {
    while let Ok(Job { mut worker, mut orders }) = jobs.recv_blocking() {
        let returned = catch_unwind(AssertUnwindSafe(move || {
            let (mut done, mut slowest) = (Vec::new(), Duration::ZERO);
            let started = Seen::now();
            let (clock, mut tally) = (Instant::now(), Tally::new());
            let mut during = During { begun: started, from: Duration::ZERO, to: Duration::ZERO };
            let first = worker.service.look_at_clock();
            while during.to < work_time::<A>() {
                let Some(order) = orders.pop_front() else { break };
                let stage = order.stage();
                worker.perform(order, (first, during.to), &mut done);
                during.from = std::mem::replace(&mut during.to, clock.elapsed());
                slowest = slowest.max(during.to - during.from);
                if let Some(stage) = stage {
                    stage.done(&mut tally, worker.disk.measures(), &during);
                }
            }
            tally.put(worker.disk.measures(), started.at);
            Returned { worker, rest: orders, done, slowest }
        }));
        drop(inbox.put(match returned {
            Ok(returned) => WorkerReport::Returned(Box::new(returned)),
            Err(panic) => WorkerReport::Panicked(panic),
        }));
    }
}

/// How long the thread works before it says how far it has come: what clients are told waits for that.
const fn work_time<A: Application>() -> Duration {
    Duration::from_millis(if A::Clients::SERVES { 4 } else { 20 })
}

/// How much of the log is read at a time.
const CHUNK_BYTES: usize = 256 << 10;
