//! Clients that write all the time, through all servers, and remember what they were told.
//!
//! Every write has a number of its own. One that surely did not happen is made again, under the same
//! number, at another server; one that is in doubt never is. So whatever the servers hold in the end,
//! each number may be there at most once, and each acknowledged one must be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_tokio::core::zxid::Zxid;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::port::{Outcome, Roster, Serving};

/// How much is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// How many clients, each with one write under way.
    pub(super) clients: usize,
    /// How long each write is.
    pub(super) payload: usize,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Load {
    weight: Weight,
    shared: Arc<Shared>,
    clients: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    enough: AtomicBool,
    book: Mutex<Book>,
}

/// What the clients were told.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Every acknowledged write, and as which transaction.
    pub(super) acknowledged: Vec<(u64, i64)>,
    /// How many are in doubt.
    pub(super) doubtful: usize,
    /// How often a write had to be made again.
    pub(super) again: usize,
    /// The first and the last acknowledgement.
    between: Option<(Instant, Instant)>,
    longest_gap: Duration,
    /// The first acknowledgement of each epoch.
    epochs: BTreeMap<i64, Instant>,
    /// Who waits until there are so many.
    waiting: Option<(usize, oneshot::Sender<()>)>,
}

impl Load {
    /// Lets the clients go.
    pub(super) fn start(weight: Weight, roster: &Roster) -> Self {
        let shared = Arc::<Shared>::default();
        let mut clients = JoinSet::new();
        for client in 0..weight.clients {
            let work = write(Arc::clone(&shared), weight.payload, client, roster.watch());
            clients.spawn(work);
        }
        Self { weight, shared, clients }
    }

    /// How much is written.
    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    /// Tells when so many more are acknowledged. One at a time.
    pub(super) fn more(&self, count: usize) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut book = self.shared.book();
        book.waiting = Some((book.acknowledged.len() + count, tell));
        told
    }

    /// Waits until each client's last write is decided.
    pub(super) async fn stop(&mut self) {
        self.shared.enough.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
    }

    /// What the clients were told. Those that still write are ended.
    pub(super) fn into_book(self) -> Book {
        drop(self.clients);
        std::mem::take(&mut *self.shared.book())
    }
}

impl Book {
    fn note(&mut self, number: u64, zxid: i64, at: Instant) {
        let (first, last) = self.between.unwrap_or((at, at));
        self.longest_gap = self.longest_gap.max(at.saturating_duration_since(last));
        self.between = Some((first, at));
        self.acknowledged.push((number, zxid));
        self.epochs.entry(Zxid(zxid).epoch().0).or_insert(at);
        let full = self.acknowledged.len();
        if let Some((_, waiting)) = self.waiting.take_if(|(wanted, _)| *wanted <= full) {
            // Nobody may be waiting any more.
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
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
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
            let port = {
                let serving = serving.borrow_and_update();
                let at = turn.checked_rem(serving.len());
                at.and_then(|at| serving.values().nth(at)).map(|(_, port)| port.clone())
            };
            let Some(port) = port else {
                if serving.changed().await.is_err() {
                    return;
                }
                continue;
            };
            match port.write(number, length).await {
                Outcome::Done(zxid) => {
                    shared.book().note(number, zxid, Instant::now());
                    break;
                }
                Outcome::Doubtful => {
                    shared.book().doubtful += 1;
                    break;
                }
                Outcome::Not => {
                    shared.book().again += 1;
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

/// How long a client that was refused waits for a change of who serves.
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_epochs_are_noted() {
        let mut book = Book::default();
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        for (number, zxid, ms) in
            [(0, 0x1_0000_0001, 5), (1, 0x1_0000_0002, 8), (2, 0x3_0000_0001, 30), (3, 5, 31)]
        {
            book.note(number, zxid, at(ms));
        }
        assert_eq!(book.longest_gap(), Duration::from_millis(22));
        assert_eq!(book.duration(), Duration::from_millis(26));
        assert_eq!(book.first_since(2), Some(at(30)));
        assert_eq!(book.first_since(4), None);
    }
}
