//! What callers at this server have asked for, and what they are told.
//!
//! ```text
//!   propose ──► asked ──► accepted ──► applied here      Ok, or rejected
//!                 │           ├──────► Lost              surely not
//!                 │           ├──────► Unknown           outcome unknown
//!                 └► Refused  └──────► this server ends  outcome unknown
//!                    surely not
//! ```
//!
//! What became of a request that was accepted is the core's to say, but for those whose transactions are applied.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use async_channel::Sender;
use bytes::Bytes;
use futures_channel::oneshot;
use quorate_application::clients::Note;
use quorate_application::{Application, Rejected};
use quorate_core::id::ServerId;
use quorate_core::message::Request;
use quorate_core::reasons::{self, Refusal, TransferRefused};
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::Zxid;

use crate::host::proposal::{ProposeError, Proposed, ReadError, TakeSnapshotError, UnknownOutcome};
use crate::host::service::LookClosure;
use crate::permits::Permit;

/// The closure of a read: is given the application, or why the read is refused.
pub(crate) type ReadClosure<A> = Box<dyn FnOnce(Result<&A, ReadError>) + Send>;

/// What a caller at this server asks for.
pub(crate) enum Ask<A: Application> {
    /// A transaction.
    Propose { request: Request, answer: Answer, permit: Permit },
    /// A linearisable read.
    Read(ReadClosure<A>),
    /// A stale read.
    ReadLocal(ReadClosure<A>),
    /// A look at the service and the application, in no order with anything.
    Look(LookClosure<A>),
    /// A sign that the loop turns.
    Pulse(Sender<()>),
    /// A snapshot, now.
    TakeSnapshot(SnapshotAnswer),
    /// That a share of the clients leave.
    Shed { percent: u8, within: Duration },
    /// That its log of who does what tells this, if there is one.
    Note(Note),
    /// A leadership transfer, to the server named or to the best follower.
    TransferLeadership { to: Option<ServerId>, answer: Sender<Result<ServerId, TransferRefused>> },
}

/// Where the outcome of a proposal goes.
pub(crate) type Answer = oneshot::Sender<Result<Proposed, ProposeError>>;

/// Where the label of a snapshot goes.
pub(crate) type SnapshotAnswer = oneshot::Sender<Result<Zxid, TakeSnapshotError>>;

/// Makes a [`ReadClosure`] of a closure, and the way its result takes. If the closure panics, the caller does,
/// and not the server.
pub(crate) fn read_closure<A, T: Send + 'static>(
    permit: Permit,
    closure: impl FnOnce(&A) -> T + Send + 'static,
) -> (ReadClosure<A>, oneshot::Receiver<Result<thread::Result<T>, ReadError>>) {
    let (sender, receiver) = oneshot::channel();
    let read = move |application: Result<&A, ReadError>| {
        let seen =
            application.map(|application| catch_unwind(AssertUnwindSafe(|| closure(application))));
        drop(permit);
        // The caller may have stopped waiting.
        drop(sender.send(seen));
    };
    (Box::new(read), receiver)
}

/// Makes a [`LookClosure`] of a closure, as [`read_closure`] does.
pub(crate) fn look_closure<A: Application, T: Send + 'static>(
    permit: Permit,
    closure: impl FnOnce(Instant, &mut A::Clients, &mut A) -> T + Send + 'static,
) -> (LookClosure<A>, oneshot::Receiver<Result<thread::Result<T>, ReadError>>) {
    let (sender, receiver) = oneshot::channel();
    let look = move |at, clients: &mut A::Clients, application: &mut A| {
        let seen = catch_unwind(AssertUnwindSafe(|| closure(at, clients, application)));
        drop(permit);
        // The caller may have stopped waiting.
        drop(sender.send(Ok(seen)));
    };
    (Box::new(look), receiver)
}

/// Waits for what a [`read_closure`] or [`look_closure`] returns.
pub(crate) async fn read_result<T>(
    receiver: oneshot::Receiver<Result<thread::Result<T>, ReadError>>,
) -> Result<T, ReadError> {
    match receiver.await.unwrap_or(Err(ReadError::Ended))? {
        Ok(seen) => Ok(seen),
        Err(panic) => resume_unwind(panic),
    }
}

/// The requests that are under way, and who waits for them.
#[derive(Debug)]
pub(crate) struct Requests {
    client: i64,
    waiting: BTreeMap<i32, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    answer: Answer,
    /// Whether the core has accepted it.
    accepted: bool,
    _permit: Permit,
}

impl Requests {
    pub(crate) const fn new(client: i64) -> Self {
        Self { client, waiting: BTreeMap::new() }
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps the request of a caller, which will be told its outcome.
    pub(crate) fn asked(&mut self, id: RequestId, answer: Answer, permit: Permit) {
        self.waiting.insert(id.cxid, Waiting { answer, accepted: false, _permit: permit });
    }

    pub(crate) fn accepted(&mut self, id: RequestId) {
        if let Some(waiting) = self.waiting.get_mut(&id.cxid).filter(|_| id.client == self.client) {
            waiting.accepted = true;
        }
    }

    pub(crate) fn refused(&mut self, id: RequestId, reason: Refusal) {
        if id.client == self.client {
            self.tell(id.cxid, Err(ProposeError::Refused(reason)));
        }
    }

    /// The outcome of a transaction that was applied.
    pub(crate) fn applied(&mut self, cxid: i32, zxid: Zxid, outcome: Result<Bytes, Rejected>) {
        let outcome = match outcome {
            Ok(reply) => Ok(Proposed { zxid, reply }),
            Err(reason) => Err(ProposeError::Rejected { zxid, reason }),
        };
        self.tell(cxid, outcome);
    }

    /// It surely never comes to pass, if it is not applied.
    pub(crate) fn lost(&mut self, id: RequestId) {
        if id.client == self.client {
            self.tell(id.cxid, Err(ProposeError::Lost));
        }
    }

    /// The outcome of the request is unknown, if it is not applied.
    pub(crate) fn unknown(&mut self, id: RequestId, doubt: reasons::UnknownOutcome) {
        if id.client == self.client {
            self.tell(id.cxid, Err(ProposeError::Unknown(doubt.into())));
        }
    }

    /// This server has given up its role for its disk.
    pub(crate) fn refuse_all(&mut self) {
        for (_, Waiting { answer, accepted, .. }) in std::mem::take(&mut self.waiting) {
            let doubt = ProposeError::Unknown(UnknownOutcome::Disk);
            let refused = ProposeError::Refused(Refusal::NotServing);
            // The caller may have stopped waiting.
            drop(answer.send(Err(if accepted { doubt } else { refused })));
        }
    }

    /// The server ends.
    pub(crate) fn end(&mut self) {
        for (_, Waiting { answer, accepted, .. }) in std::mem::take(&mut self.waiting) {
            let doubt = ProposeError::Unknown(UnknownOutcome::Ended);
            drop(answer.send(Err(if accepted { doubt } else { ProposeError::Ended })));
        }
    }

    fn tell(&mut self, cxid: i32, outcome: Result<Proposed, ProposeError>) {
        if let Some(waiting) = self.waiting.remove(&cxid) {
            // The caller may have stopped waiting.
            drop(waiting.answer.send(outcome));
        }
    }
}

/// What a transaction means for the caller that asked for it at this server, if there is one.
pub(crate) fn own_outcome(
    client: i64,
    txn: &Txn,
    reply: Bytes,
) -> Option<(i32, Result<Bytes, Rejected>)> {
    if txn.header.client != client {
        return None;
    }
    Some((txn.header.cxid, Rejected::of(txn).map_or(Ok(reply), Err)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permits::Permits;
    use futures_lite::future::block_on;

    type Outcome = oneshot::Receiver<Result<Proposed, ProposeError>>;

    struct Desk {
        requests: Requests,
        permits: Permits,
    }

    impl Desk {
        fn new() -> Self {
            Self { requests: Requests::new(7), permits: Permits::new(100) }
        }

        fn ask(&mut self, cxid: i32) -> Outcome {
            let (answer, outcome) = oneshot::channel();
            let permit = block_on(self.permits.take());
            self.requests.asked(RequestId { client: 7, cxid }, answer, permit);
            outcome
        }

        fn accept(&mut self, cxid: i32) -> Outcome {
            let outcome = self.ask(cxid);
            self.requests.accepted(RequestId { client: 7, cxid });
            outcome
        }
    }

    fn error(outcome: &mut Outcome) -> Option<ProposeError> {
        let outcome = outcome.try_recv().ok().flatten();
        outcome.map(|outcome| outcome.expect_err("no success"))
    }

    #[test]
    fn who_has_an_answer_is_told_nothing_else() {
        let mut desk = Desk::new();
        let id = |cxid| RequestId { client: 7, cxid };
        let (mut done, mut lost, mut unknown) = (desk.accept(1), desk.accept(2), desk.accept(3));
        desk.requests.applied(1, Zxid(0x1_0000_0009), Ok(Bytes::from_static(b"done")));
        for cxid in [1, 2] {
            desk.requests.lost(id(cxid));
        }
        desk.requests.unknown(id(3), reasons::UnknownOutcome::Disconnected);
        assert_eq!(done.try_recv().unwrap().unwrap().unwrap().reply, "done");
        assert_eq!(error(&mut lost), Some(ProposeError::Lost));
        assert!(!ProposeError::Lost.may_have_happened());
        let doubt = ProposeError::Unknown(UnknownOutcome::Disconnected);
        assert_eq!(error(&mut unknown), Some(doubt));
        assert!(doubt.may_have_happened());
    }

    #[test]
    fn the_end_is_in_doubt_only_for_what_was_accepted() {
        let mut desk = Desk::new();
        let (mut accepted, mut asked) = (desk.accept(1), desk.ask(2));
        desk.requests.end();
        assert_eq!(error(&mut accepted), Some(ProposeError::Unknown(UnknownOutcome::Ended)));
        assert_eq!(error(&mut asked), Some(ProposeError::Ended));
    }

    #[test]
    fn a_refusal_is_final_and_frees_the_place() {
        let mut desk = Desk { requests: Requests::new(7), permits: Permits::new(1) };
        let mut refused = desk.ask(1);
        desk.requests.refused(RequestId { client: 7, cxid: 1 }, Refusal::NotServing);
        assert_eq!(error(&mut refused), Some(ProposeError::Refused(Refusal::NotServing)));
        let mut next = desk.accept(2);
        desk.requests.applied(2, Zxid(5), Err(Rejected(-101)));
        let reason = Rejected(-101);
        assert_eq!(error(&mut next), Some(ProposeError::Rejected { zxid: Zxid(5), reason }));
        assert_eq!(desk.requests.len(), 0);
    }

    #[test]
    fn a_panic_in_a_closure_is_the_callers() {
        let permit = block_on(Permits::new(1).take());
        let (read, receiver) = read_closure(permit, |_: &u8| panic!("mine"));
        read(Ok(&1));
        let caught = catch_unwind(AssertUnwindSafe(|| block_on(read_result::<()>(receiver))));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"mine"));
    }
}
