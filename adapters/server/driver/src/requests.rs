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
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use async_channel::Sender;
use bytes::Bytes;
use futures_channel::oneshot;
use quorate_application::{Rejected, SET_DATA};
use quorate_core::id::ServerId;
use quorate_core::message::{Identity, Request};
use quorate_core::reasons::{self, Kept, Refusal};
use quorate_core::reconfiguration::Unchanged;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::net::events::Happened;
use crate::permits::Permit;

/// What is proposed, see [`Server::propose`](crate::Server::propose).
///
/// For a [`StateMachine`](crate::StateMachine) it is its bytes: anything that becomes [`Bytes`] will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// ZooKeeper's operation code; `setData` where the application is not ZooKeeper's.
    pub op: i32,
    /// What is asked for.
    pub body: Bytes,
    /// The identities of the client for whom it is asked, if there is one.
    pub identities: Option<Vec<Identity>>,
}

impl<B: Into<Bytes>> From<B> for Proposal {
    fn from(body: B) -> Self {
        Self { op: SET_DATA, body: body.into(), identities: None }
    }
}

/// A request was agreed on, and its transaction applied at this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The number of the transaction.
    pub zxid: Zxid,
    /// What the application replied.
    pub reply: Bytes,
}

/// Why a request was not seen to be applied.
///
/// [`may_have_happened`](Self::may_have_happened) tells which it is: surely not, so that it can be
/// asked for again, or outcome unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// This server did not take it. It surely does not happen.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The application refused it, in its turn with all others. It surely does not happen.
    #[error("transaction {zxid}: {reason}")]
    Rejected {
        /// The transaction that says so.
        zxid: Zxid,
        /// Why.
        reason: Rejected,
    },
    /// The leader lost its seat, and the next one does not know the request. It surely does not happen.
    #[error("the leader that it was proposed to lost its seat; it did not happen")]
    Lost,
    /// No leader took it as long as there was patience, see
    /// [`ServerConfig::patience`](crate::ServerConfig::patience). It surely does not happen.
    #[error("waited {waited:?} for a leader that takes it; the last try: {last}")]
    Unserved {
        /// How long.
        waited: Duration,
        /// What came of the last try.
        last: Setback,
    },
    /// This server had ended before it took the request. It surely does not happen.
    #[error("this server has ended")]
    Ended,
    /// It was proposed, and its outcome is unknown: it may have happened, or still may.
    #[error("{0}; whether it happened is not known")]
    Unknown(Doubt),
}

impl ProposeError {
    /// Whether the request may have been carried out, or may still be.
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

impl ProposeError {
    /// What surely kept it from happening, and may not the next time.
    pub(crate) const fn setback(&self) -> Option<Setback> {
        match self {
            Self::Refused(Refusal::TooLong(_)) => None,
            Self::Refused(refusal) => Some(Setback::Refused(*refusal)),
            Self::Lost => Some(Setback::Lost),
            Self::Rejected { .. } | Self::Unserved { .. } | Self::Ended | Self::Unknown(_) => None,
        }
    }
}

/// What kept a request or a read from being served, and may not the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Setback {
    /// This server did not take it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The leader that it was proposed to lost its seat, and the next one does not know it.
    #[error("the leader that it was proposed to lost its seat; it did not happen")]
    Lost,
    /// This server fell behind and is getting a snapshot.
    #[error("this server fell behind and is being brought up")]
    Behind,
}

/// Why it is unknown whether a request was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Doubt {
    /// This server ended while the request was under way.
    #[error("this server ended")]
    Ended,
    /// This server was so far behind that it got a snapshot, which does not tell who asked for what.
    #[error("this server got a snapshot of the history that may contain it")]
    Snapshot,
    /// This server lost its connection to a leader that went on to lead.
    #[error("the connection to the leader was lost")]
    Disconnected,
}

impl From<reasons::Doubt> for Doubt {
    fn from(doubt: reasons::Doubt) -> Self {
        match doubt {
            reasons::Doubt::Snapshot => Self::Snapshot,
            reasons::Doubt::Disconnected => Self::Disconnected,
        }
    }
}

/// Why a read was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// This server cannot tell what is newest now.
    #[error(transparent)]
    Refused(Refusal),
    /// This server fell behind and is getting a snapshot.
    #[error("this server fell behind and is being brought up")]
    Behind,
    /// This server could not tell what is newest as long as there was patience, see
    /// [`ServerConfig::patience`](crate::ServerConfig::patience).
    #[error("waited {waited:?} for a leader to read under; the last try: {last}")]
    Unserved {
        /// How long.
        waited: Duration,
        /// What came of the last try.
        last: Setback,
    },
    /// This server has ended.
    #[error("this server has ended")]
    Ended,
}

impl From<Refusal> for ReadError {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::Behind { Self::Behind } else { Self::Refused(refusal) }
    }
}

impl ReadError {
    /// What kept it from being answered, and may not the next time.
    pub(crate) const fn setback(&self) -> Option<Setback> {
        match self {
            Self::Refused(refusal) => Some(Setback::Refused(*refusal)),
            Self::Behind => Some(Setback::Behind),
            Self::Unserved { .. } | Self::Ended => None,
        }
    }
}

/// Why a [reconfiguration](crate::Server::reconfigure) was not seen to be in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The membership stays as it is.
    #[error(transparent)]
    Unchanged(#[from] Unchanged),
    /// The request came to nothing, or its outcome is unknown.
    #[error(transparent)]
    Propose(ProposeError),
}

impl From<ProposeError> for ReconfigureError {
    fn from(error: ProposeError) -> Self {
        let unchanged = match error {
            ProposeError::Rejected { reason, .. } => Unchanged::from_code(reason.0),
            ProposeError::Refused(_)
            | ProposeError::Lost
            | ProposeError::Unserved { .. }
            | ProposeError::Ended
            | ProposeError::Unknown(_) => None,
        };
        unchanged.map_or(Self::Propose(error), Self::Unchanged)
    }
}

/// Why a leader still has the seat that it was asked to hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// It keeps it.
    #[error(transparent)]
    Kept(#[from] Kept),
    /// This server has ended.
    #[error("this server has ended")]
    Ended,
}

/// Looks at the application, or is told why it cannot.
pub(crate) type Look<A> = Box<dyn FnOnce(Result<&A, ReadError>) + Send>;

/// What a caller at this server asks for.
pub(crate) enum Ask<A> {
    /// A transaction.
    Propose { request: Request, answer: Answer, permit: Permit },
    /// To look when everything acknowledged so far is there.
    Read(Look<A>),
    /// To look.
    Peek(Look<A>),
    /// To see that the loop turns.
    Pulse(Sender<()>),
    /// Another server to lead, or anybody else.
    HandOver { to: Option<ServerId>, answer: Sender<Result<ServerId, Kept>> },
}

/// Where the outcome of a proposal goes.
pub(crate) type Answer = oneshot::Sender<Result<Proposed, ProposeError>>;

/// Makes a [`Look`] of a closure, and the way its result takes. If the closure panics, the caller does,
/// and not the server.
pub(crate) fn look<A, T: Send + 'static>(
    permit: Permit,
    closure: impl FnOnce(&A) -> T + Send + 'static,
) -> (Look<A>, oneshot::Receiver<Result<thread::Result<T>, ReadError>>) {
    let (sender, receiver) = oneshot::channel();
    let look = move |application: Result<&A, ReadError>| {
        let seen =
            application.map(|application| catch_unwind(AssertUnwindSafe(|| closure(application))));
        drop(permit);
        // The caller may have stopped waiting.
        drop(sender.send(seen));
    };
    (Box::new(look), receiver)
}

/// Waits for what a [`look`] has seen.
pub(crate) async fn seen<T>(
    receiver: oneshot::Receiver<Result<thread::Result<T>, ReadError>>,
) -> Result<T, ReadError> {
    match receiver.await.unwrap_or(Err(ReadError::Ended))? {
        Ok(seen) => Ok(seen),
        Err(panic) => resume_unwind(panic),
    }
}

/// What others hand to the loop, and the loop takes all at once: a cell with a bell, so that a burst
/// costs one wake-up, and no caller waits here for the loop.
#[derive(Debug)]
pub(crate) struct Tray<T> {
    items: Mutex<Items<T>>,
    bell: Sender<Happened>,
}

#[derive(Debug)]
struct Items<T> {
    waiting: Vec<T>,
    closed: bool,
}

impl<T> Tray<T> {
    pub(crate) fn new(bell: Sender<Happened>) -> Self {
        Self { items: Mutex::new(Items { waiting: Vec::new(), closed: false }), bell }
    }

    /// Puts an item in; gives it back if the loop takes no more.
    pub(crate) fn put(&self, item: T) -> Result<(), T> {
        let mut items = self.locked();
        if items.closed {
            return Err(item);
        }
        items.waiting.push(item);
        let first = items.waiting.len() == 1;
        drop(items);
        if first {
            // Full: the loop is awake, and looks here before it waits again.
            drop(self.bell.try_send(Happened::Rung));
        }
        Ok(())
    }

    /// Takes what is there, in exchange for an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before is done");
        std::mem::swap(&mut self.locked().waiting, into);
    }

    /// Lets nothing more in; returns what the loop has not taken.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut items = self.locked();
        items.closed = true;
        std::mem::take(&mut items.waiting)
    }

    fn locked(&self) -> MutexGuard<'_, Items<T>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) fn unknown(&mut self, id: RequestId, doubt: reasons::Doubt) {
        if id.client == self.client {
            self.tell(id.cxid, Err(ProposeError::Unknown(doubt.into())));
        }
    }

    /// The server ends.
    pub(crate) fn end(&mut self) {
        for (_, Waiting { answer, accepted, .. }) in std::mem::take(&mut self.waiting) {
            let doubt = ProposeError::Unknown(Doubt::Ended);
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
        desk.requests.unknown(id(3), reasons::Doubt::Disconnected);
        assert_eq!(done.try_recv().unwrap().unwrap().unwrap().reply, "done");
        assert_eq!(error(&mut lost), Some(ProposeError::Lost));
        assert!(!ProposeError::Lost.may_have_happened());
        let doubt = ProposeError::Unknown(Doubt::Disconnected);
        assert_eq!(error(&mut unknown), Some(doubt));
        assert!(doubt.may_have_happened());
    }

    #[test]
    fn the_end_is_in_doubt_only_for_what_was_accepted() {
        let mut desk = Desk::new();
        let (mut accepted, mut asked) = (desk.accept(1), desk.ask(2));
        desk.requests.end();
        assert_eq!(error(&mut accepted), Some(ProposeError::Unknown(Doubt::Ended)));
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
        let (look, receiver) = look(permit, |_: &u8| panic!("mine"));
        look(Ok(&1));
        let caught = catch_unwind(AssertUnwindSafe(|| block_on(seen::<()>(receiver))));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"mine"));
    }
}
