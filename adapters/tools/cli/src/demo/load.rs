//! The load of a demo: clients that write all the time, through all servers, and note what was acknowledged.
//!
//! Every write has a number of its own. One that surely did not happen is made again, under the same
//! number, at another server; one of unknown outcome never is. So whatever the servers hold in the end,
//! each number may be there at most once, and each acknowledged one must be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_tokio::core::zxid::Zxid;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::connection::{Outcome, Roster, Serving};

/// How much is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadConfig {
    /// How many clients, each with one write under way.
    pub(super) clients: usize,
    /// How long each write is.
    pub(super) payload: usize,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Load {
    config: LoadConfig,
    shared: Arc<Shared>,
    clients: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    enough: AtomicBool,
    account: Mutex<Account>,
}

/// What was acknowledged to the clients.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Every acknowledged write, and as which transaction.
    pub(super) acknowledged: Vec<(u64, i64)>,
    /// How many have an unknown outcome.
    pub(super) doubtful: usize,
    /// How often a write had to be made again.
    pub(super) again: usize,
    /// The first and the last acknowledgement.
    between: Option<(Instant, Instant)>,
    longest_gap: Duration,
    /// The first acknowledgement of each epoch.
    epochs: BTreeMap<i64, Instant>,
    /// A receiver that waits until so many are acknowledged.
    waiting: Option<(usize, oneshot::Sender<()>)>,
}

impl Load {
    /// Lets the clients go.
    pub(super) fn start(config: LoadConfig, roster: &Roster) -> Self {
        let shared = Arc::<Shared>::default();
        let mut clients = JoinSet::new();
        for client in 0..config.clients {
            let work = write(Arc::clone(&shared), config.payload, client, roster.watch());
            clients.spawn(work);
        }
        Self { config, shared, clients }
    }

    /// How much is written.
    pub(super) fn config(&self) -> LoadConfig {
        self.config
    }

    /// Tells when so many more are acknowledged. One at a time.
    pub(super) fn more(&self, count: usize) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut account = self.shared.account();
        account.waiting = Some((account.acknowledged.len() + count, tell));
        told
    }

    /// Waits until each client's last write is decided.
    pub(super) async fn stop(&mut self) {
        self.shared.enough.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
    }

    /// What was acknowledged to the clients. Those that still write are ended.
    pub(super) fn into_account(self) -> Account {
        drop(self.clients);
        std::mem::take(&mut *self.shared.account())
    }
}

impl Account {
    fn note(&mut self, number: u64, zxid: i64, at: Instant) {
        let (first, last) = self.between.unwrap_or((at, at));
        self.longest_gap = self.longest_gap.max(at.saturating_duration_since(last));
        self.between = Some((first, at));
        self.acknowledged.push((number, zxid));
        self.epochs.entry(Zxid(zxid).epoch().0).or_insert(at);
        let full = self.acknowledged.len();
        if let Some((_, waiting)) = self.waiting.take_if(|(wanted, _)| *wanted <= full) {
            // The receiver may have gone.
            let _ = waiting.send(());
        }
    }

    /// The longest time without an acknowledgement.
    pub(super) fn longest_gap(&self) -> Duration {
        self.longest_gap
    }

    /// How long it went on.
    pub(super) fn duration(&self) -> Duration {
        self.between.map_or(Duration::ZERO, |(first, last)| last - first)
    }

    /// When a write of this epoch or a later one was acknowledged for the first time.
    pub(super) fn first_since(&self, epoch: i64) -> Option<Instant> {
        self.epochs.range(epoch..).map(|(_, at)| *at).min()
    }
}

impl Shared {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client: one write after the other, each at the next server.
async fn write(
    shared: Arc<Shared>,
    length: usize,
    first: usize,
    mut serving: watch::Receiver<Serving>,
) {
    let mut turn = first;
    while !shared.enough.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        loop {
            turn = turn.wrapping_add(1);
            let connection = {
                let serving = serving.borrow_and_update();
                let at = turn.checked_rem(serving.len());
                at.and_then(|at| serving.values().nth(at)).map(|(_, connection)| connection.clone())
            };
            let Some(connection) = connection else {
                if serving.changed().await.is_err() {
                    return;
                }
                continue;
            };
            match connection.write(number, length).await {
                Outcome::Done(zxid) => {
                    shared.account().note(number, zxid, Instant::now());
                    break;
                }
                Outcome::Doubtful => {
                    shared.account().doubtful += 1;
                    break;
                }
                Outcome::Not => {
                    shared.account().again += 1;
                    // The next one may serve; if none does, that will change.
                    let pause = tokio::time::sleep(PAUSE);
                    tokio::select! {
                        _ = serving.changed() => {}
                        () = pause => {}
                    }
                }
            }
        }
    }
}

/// How long a client that was refused waits for a change in the roster.
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_epochs_are_noted() {
        let mut account = Account::default();
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        for (number, zxid, ms) in
            [(0, 0x1_0000_0001, 5), (1, 0x1_0000_0002, 8), (2, 0x3_0000_0001, 30), (3, 5, 31)]
        {
            account.note(number, zxid, at(ms));
        }
        assert_eq!(account.longest_gap(), Duration::from_millis(22));
        assert_eq!(account.duration(), Duration::from_millis(26));
        assert_eq!(account.first_since(2), Some(at(30)));
        assert_eq!(account.first_since(4), None);
    }
}
