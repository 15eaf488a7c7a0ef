//! What a store has to do for an election.

use std::future::Future;
use std::pin::Pin;

use futures_lite::future::poll_once;
use quorate_core::recipe::{Attempt, lease, offer};

use crate::contender::Contender;
use crate::error::{StartError, StoreError};
use crate::reporter::Reporter;
use crate::settings::Settings;

/// A store, as elections use it.
///
/// It has to create a node or key only if it is absent, to delete it with the session that created it, and to
/// report changes to watches. It decides nothing: it makes the calls that it is given, and reports to its
/// [`Reporter`] what happened.
pub trait Store: Clone + Send + Sync + 'static {
    /// Where it is, and what else it has to know.
    type Config: Send;

    /// A handle, without a connection yet, and the settings of the candidate.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work.
    fn open(config: Self::Config) -> Result<(Self, Settings), StartError>;

    /// Keeps a session, and opens another when it has ended, for as long as the future lives. Reports how the
    /// session stands, and each time the store has confirmed it. Where the session is not the candidate's to open,
    /// the future ends with it, and the candidate does.
    fn keep_session(&self, report: Reporter) -> impl Future<Output = ()> + Send;

    /// Makes a call of the offer recipe. Ready when the request is on its way, behind all earlier ones;
    /// its answer is reported once.
    fn offer(
        &self,
        attempt: Attempt,
        call: offer::Call,
        report: &Reporter,
    ) -> impl Future<Output = ()> + Send;

    /// Makes a call of the lease recipe, in the same way.
    fn lease(
        &self,
        attempt: Attempt,
        call: lease::Call,
        report: &Reporter,
    ) -> impl Future<Output = ()> + Send;

    /// The candidates that compete now, the leader first; the leader alone unless `all` is set.
    fn contenders(
        &self,
        all: bool,
    ) -> impl Future<Output = Result<Vec<Contender>, StoreError>> + Send;

    /// The candidates that compete now, as [`contenders`](Self::contenders) gives them, and a future that is ready when
    /// they may be others; it may be ready for nothing. No change comes between the two. `known` are candidates that
    /// were seen before: of a node or key that cannot have changed since, what is known may be given again.
    fn watch(
        &self,
        all: bool,
        known: &[Contender],
    ) -> impl Future<Output = Result<(Vec<Contender>, Change), StoreError>> + Send;

    /// Whether the session belongs to others, too, and goes on after [`close`](Self::close). A candidate that ends has
    /// deleted what it left there before, however long the store takes.
    fn is_shared(&self) -> bool {
        false
    }

    /// Ends the session, and with it the nodes or keys that it created. One that [is shared](Self::is_shared) goes on.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Waits for a change of the candidates, see [`Store::watch`]. Dropping it takes the watch back.
pub type Change = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins the work of a call: its first part is done when this returns, and with it what it sends, or its
/// place in a queue. The rest is done by a task of its own.
pub async fn begin(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    if poll_once(&mut work).await.is_none() {
        // Detached: it ends with the session at the latest.
        drop(tokio::spawn(work));
    }
}
