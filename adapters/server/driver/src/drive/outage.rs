//! Out of service for the disk, and back, while the ports stay open and the loop turns.
//!
//! ```text
//!   a write fails ─► Event::Shutdown ─► no role, no links ─┬─► in 10 s: open the directory, try it out ─┐
//!                                                          └────────────────── refused ◄────────────────┤
//!                        another core, from what is durable, as at a start ◄──────────────── it works ◄─┘
//! ```
//!
//! To the protocol, a server whose disk has failed has ended, and starts again with what its disk holds: it says goodbye as
//! any server that ends, so its peers need not find out, and it comes back by an election as any server that starts. What
//! decides is the same core, so nothing about a failing disk has to be proven anew; what may be believed of the disk is
//! said where it is opened, see [`Remains`]. The application stays, as at a learner that is sent a snapshot: its state is
//! replaced by the one on the disk before this server serves again.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use async_channel::{Receiver, bounded};
use futures_lite::future::pending;
use quorate_application::Application;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::input::{Event, Plane};
use quorate_core::peer::Peer;
use quorate_core::reasons::{Refusal, TransferRefused};
use quorate_core::report::{Change, Reason, Report};
use quorate_core::vote::ServerState;
use quorate_core::zxid::Zxid;
use quorate_storage::Remains;

use crate::disk::Disk;
use crate::drive::{Driver, Turn};
use crate::error::{DiskFault, ServerError, StartError};
use crate::host::callers::Ask;
use crate::host::proposal::{ProposeError, ReadError, TakeSnapshotError};
use crate::runtime::Runtime;
use crate::task_group::KeepAlive;
use crate::threads::offload_to;

/// Opens the directory again, blocking; what keeps the server from having ended stays with the disk.
pub(crate) type Reopen<A> =
    Arc<dyn Fn(Remains, KeepAlive) -> Result<Reopened<A>, StartError> + Send + Sync>;

/// A directory that was opened again, and works.
pub(crate) struct Reopened<A: Application> {
    pub(crate) config: Config,
    pub(crate) durable: Durable,
    pub(crate) disk: Disk,
    /// The newest snapshot, restored.
    pub(crate) staged: Option<(Zxid, A::Staged)>,
}

/// The server is out of service.
pub(crate) struct Outage<A: Application> {
    /// Why.
    error: ServerError,
    remains: Remains,
    since: Instant,
    step: Step<A>,
}

/// How far it is on its way back.
enum Step<A: Application> {
    Waiting {
        until: Instant,
    },
    Opening(Receiver<Result<Reopened<A>, StartError>>),
    /// The application has yet to come home.
    Open(Box<Reopened<A>>),
}

/// What an outage waits for.
pub(super) enum Progress<A: Application> {
    /// It is time to try.
    Due,
    Opened(Box<Result<Reopened<A>, StartError>>),
}

impl<A: Application> Outage<A> {
    /// Waits for what comes next. It borrows nothing: what is lent to a task that waits must be shareable.
    pub(super) fn progress<R: Runtime>(
        &self,
        runtime: &R,
    ) -> impl Future<Output = Progress<A>> + Send + use<R, A> {
        let (until, opening) = match &self.step {
            Step::Waiting { until } => (Some(*until), None),
            Step::Opening(outcome) => (None, Some(outcome.clone())),
            Step::Open(_) => (None, None),
        };
        let runtime = runtime.clone();
        async move {
            if let Some(until) = until {
                runtime.sleep(until.saturating_duration_since(runtime.now())).await;
                return Progress::Due;
            }
            let Some(opening) = opening else { return pending().await };
            let outcome = opening.recv().await;
            let panicked = || StartError::Thread(io::ErrorKind::Other.into());
            Progress::Opened(Box::new(outcome.unwrap_or_else(|_| Err(panicked()))))
        }
    }
}

impl<R: Runtime, A: Application> Driver<R, A> {
    /// The disk has failed: the core ends, and a way back is looked for, unless there is none.
    pub(super) fn lose_disk(
        &mut self,
        error: ServerError,
        batch: &mut Vec<Event>,
    ) -> Result<(), ServerError> {
        let ends = self.shared.counters.ending.load(Ordering::Relaxed);
        let (remains, fault) = (self.disk.remains(), self.disk_faults.of_write(&error));
        let (Some(remains), Some(fault), false) = (remains, fault, ends) else { return Err(error) };
        let (sid, since) = (self.shared.id.0, self.runtime.now());
        tracing::error!(
            event = event_of(fault), sid, %error,
            "the disk has failed: this server gives up its role until the disk works again"
        );
        self.published.measures.disk_fails(Some(fault));
        let step = Step::Waiting { until: since + self.disk_retry };
        self.outage = Some(Outage { error, remains, since, step });
        // Before anything else that has come: it is for a server that has ended.
        batch.insert(0, Event::Shutdown);
        Ok(())
    }

    /// Tells those who watch that the role was given up for the disk.
    pub(super) fn report_outage(&self, before: ServerState, turn: &mut Turn) {
        if self.outage.is_some() && before != ServerState::Looking {
            let change = Change::State { from: before, to: ServerState::Looking };
            turn.reports.push(Report { change, reason: Reason::DiskFailed });
        }
    }

    /// What is left of the role is told to those who wait for it; if the disk is open and the application at home, the
    /// server starts again.
    pub(super) fn attend_outage(&mut self, batch: &mut Vec<Event>) -> Result<(), ServerError> {
        if self.outage.is_none() {
            return Ok(());
        }
        self.links.clear();
        self.dialler.under_way.clear();
        self.releasing = None;
        self.replica.refuse_all();
        if let Some(answer) = self.transfer.take_if(|_| !self.ending) {
            // The caller may have stopped waiting.
            let _ = answer.try_send(Err(TransferRefused::NotLeading));
        }
        let idle = self.replica.is_idle() && !self.shared.counters.ending.load(Ordering::Relaxed);
        let is_open = |outage: &mut Outage<A>| idle && matches!(outage.step, Step::Open(_));
        if let Some(Outage { error, since, step: Step::Open(reopened), .. }) =
            self.outage.take_if(is_open)
        {
            self.come_back(*reopened, error, since, batch)?;
        }
        Ok(())
    }

    /// Goes on with the way back.
    pub(super) fn on_progress(&mut self, progress: Progress<A>) -> Result<(), ServerError> {
        let Some(outage) = &mut self.outage else { return Ok(()) };
        let sid = self.shared.id.0;
        let opened = match progress {
            Progress::Due => {
                let (reopen, remains) = (Arc::clone(&self.reopen), outage.remains.clone());
                let keep_alive = self.dialler.links.keep_alive();
                let (sender, receiver) = bounded(1);
                let work = move || reopen(remains, keep_alive);
                outage.step = Step::Opening(receiver);
                match offload_to(sender, "quorate-open", work) {
                    Ok(()) => return Ok(()),
                    Err(error) => Err(StartError::Thread(error)),
                }
            }
            Progress::Opened(opened) => *opened,
        };
        match opened {
            Ok(reopened) => outage.step = Step::Open(Box::new(reopened)),
            Err(error) => {
                let Some(fault) = self.disk_faults.of_opening(&error) else {
                    return Err(ended(error, outage.error.clone()));
                };
                tracing::warn!(event = event_of(fault), sid, %error, "the disk does not work yet");
                self.published.measures.disk_fails(Some(fault));
                outage.step = Step::Waiting { until: self.runtime.now() + self.disk_retry };
            }
        }
        Ok(())
    }

    fn come_back(
        &mut self,
        reopened: Reopened<A>,
        error: ServerError,
        since: Instant,
        batch: &mut Vec<Event>,
    ) -> Result<(), ServerError> {
        let Reopened { config, durable, disk, staged } = reopened;
        if let Some(recorder) = &mut self.recorder {
            recorder.starts(&config, &durable);
        }
        let (sid, last) = (self.shared.id.0, durable.last_zxid);
        let outage = self.runtime.now().saturating_duration_since(since);
        self.peer = Peer::new(config, durable).map_err(|_| error)?;
        self.replica.restart(disk.handle(), staged);
        self.disk = disk;
        self.proposals.serves(None);
        self.published.measures.disk_fails(None);
        self.published.publish_membership(&self.peer.config().membership);
        tracing::info!(
            event = "disk.recovered", sid, %last, ?outage,
            "the disk works again: this server starts with what is there"
        );
        // What is there was for the one that has ended.
        batch.clear();
        batch.extend([Plane::Election, Plane::Quorum].map(|plane| self.shared.ports.state(plane)));
        batch.extend(self.oracle.map(Event::Oracle));
        self.move_listeners();
        Ok(())
    }

    /// Answers what cannot be done without a disk; gives back what can.
    pub(super) fn refuse_for_disk(&self, ask: Ask<A>) -> Option<Ask<A>> {
        if self.outage.is_none() {
            return Some(ask);
        }
        match ask {
            Ask::Propose { answer, permit, .. } => {
                drop(permit);
                // The caller may have stopped waiting.
                drop(answer.send(Err(ProposeError::Refused(Refusal::NotServing))));
                None
            }
            Ask::Read(read) => {
                read(Err(ReadError::Refused(Refusal::NotServing)));
                None
            }
            Ask::TransferLeadership { answer, .. } => {
                let _ = answer.try_send(Err(TransferRefused::NotLeading));
                None
            }
            Ask::TakeSnapshot(answer) => {
                let why = TakeSnapshotError::disk_failed();
                // The operator may have stopped waiting.
                drop(answer.send(Err(why)));
                None
            }
            ask @ (Ask::ReadLocal(_)
            | Ask::Look(_)
            | Ask::Pulse(_)
            | Ask::Shed { .. }
            | Ask::Note(_)) => Some(ask),
        }
    }
}

/// What a failure is called in the log.
const fn event_of(fault: DiskFault) -> &'static str {
    match fault {
        DiskFault::Full => "disk.full",
        DiskFault::Failing => "disk.failed",
    }
}

/// Why the server ends whose directory is of no more use.
fn ended(opening: StartError, write: ServerError) -> ServerError {
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is the disk's")]
    match opening {
        StartError::Log(source) => ServerError::Disk { source: Arc::new(source) },
        StartError::Membership { path, source } => {
            ServerError::DynamicConfig { path, source: Arc::new(source) }
        }
        other => {
            let event = "disk.failed";
            tracing::error!(event, error = %other, "the data directory cannot be opened again");
            write
        }
    }
}
