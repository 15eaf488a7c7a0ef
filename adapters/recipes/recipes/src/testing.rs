//! What the tests of every store share: limits for waiting, free ports, and the scenarios that each store passes.
#![allow(clippy::unwrap_used, reason = "code of tests, which fail by panicking")]

use std::future::Future;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use quorate_core::recipe::offer::{Answer, Call, Session};
use quorate_core::recipe::{Attempt, Failure};
use quorate_leadership::Lost;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use crate::candidate::{Candidate, Leadership};
use crate::clock::Origin;
use crate::contender::Contender;
use crate::events::{State, Status};
use crate::members::Members;
use crate::reporter::{Reporter, StoreEvent};
use crate::store::Store;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A port that is not in use, and that neither the system gives to outgoing connections nor tests of servers to theirs.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 2_000).unwrap();
    loop {
        let port = 10_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Waits for something that has to come.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, work).await;
    waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// Asks until there is an answer.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Waits until the status of a candidate is so.
pub async fn standing<S: Store>(
    candidate: &Candidate<S>,
    what: &str,
    so: impl FnMut(&Status) -> bool,
) -> Status {
    within(what, candidate.until(so)).await
}

/// Names, in their order, of the candidates that one of them sees.
pub async fn names<S: Store>(candidate: &Candidate<S>) -> Vec<String> {
    let row = candidate.candidates().await.unwrap();
    row.iter().map(|one| one.name().into_owned()).collect()
}

/// Calls of the offer recipe, one after another, in a session that is kept for them.
#[derive(Debug)]
pub struct Calls<S> {
    store: S,
    report: Reporter,
    reports: Receiver<StoreEvent>,
    keeper: JoinHandle<()>,
}

impl<S: Store> Calls<S> {
    /// Waits for the session.
    pub async fn open(config: S::Config) -> Self {
        let (store, _) = S::open(config).unwrap();
        let (report, mut reports) = Reporter::new(Origin::start());
        let (keeps, told) = (store.clone(), report.clone());
        let keeper = tokio::spawn(async move { keeps.keep_session(told).await });
        let connected = async {
            loop {
                let report = reports.recv().await.unwrap();
                if let StoreEvent::Session(Session::Connected { .. }) = report {
                    return;
                }
            }
        };
        within("a session", connected).await;
        Self { store, report, reports, keeper }
    }

    /// The answer to a call.
    pub async fn make(&mut self, call: Call) -> Result<Answer, Failure> {
        self.store.offer(Attempt(1), call, &self.report).await;
        let answered = async {
            loop {
                if let StoreEvent::Offer { result, .. } = self.reports.recv().await.unwrap() {
                    return result;
                }
            }
        };
        within("an answer", answered).await
    }
}

impl<S> Drop for Calls<S> {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Scenario of the offer recipe: the oldest offer leads, the next one follows it, and leadership that is given up in
/// order stays until the guard is gone. Returns the second candidate, and its leadership.
pub async fn the_oldest_offer_leads<S: Store>(
    start: impl AsyncFn(&str) -> Candidate<S>,
) -> (Candidate<S>, Leadership) {
    let first = start("first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = start("second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let leader = second.leader().await.unwrap().unwrap();
    assert_eq!((&*leader.name(), leader.token), ("first", leadership.token()));
    let row = second.candidates().await.unwrap();
    assert_eq!(names(&second).await, ["first", "second"]);
    assert!(row[0].token < row[1].token && leadership.check().is_ok());

    let leadership = succeeds(&first, &second, leadership).await;
    assert_eq!(&*second.leader().await.unwrap().unwrap().name(), "second");
    (second, leadership)
}

/// Scenario of the lease recipe: the candidate that creates the key leads, and gives it back in order. Returns the
/// second candidate, and its leadership.
pub async fn the_creator_of_the_key_leads<S: Store>(
    start: impl AsyncFn(&str) -> Candidate<S>,
) -> (Candidate<S>, Leadership) {
    let first = start("first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = start("second").await;
    standing(&second, "a session", |status| status.connected).await;
    let leader = second.leader().await.unwrap().unwrap();
    assert_eq!((&*leader.name(), leader.token), ("first", leadership.token()));
    assert!(second.status().leads.is_none());
    let leadership = succeeds(&first, &second, leadership).await;
    (second, leadership)
}

/// Waits until the members are these, in this order. It may see others before, and trouble with the store.
pub async fn shows<S: Store>(members: &mut Members<S>, names: &[&str]) {
    let shown = async {
        loop {
            let Ok(row) = members.next().await else { continue };
            if row.iter().map(Contender::name).eq(names.iter().copied()) {
                return;
            }
        }
    };
    within(&format!("the members {names:?}"), shown).await;
}

/// Scenario of the offer recipe: who looks at a group sees each that comes or goes, in the order of the row, whether it is
/// a member itself or not. `asks` is the configuration of one that is not.
pub async fn members_come_and_go<S: Store<Config: Clone>>(
    start: impl AsyncFn(&str) -> Candidate<S>,
    asks: S::Config,
) {
    let mut outside = Members::<S>::open(asks.clone()).unwrap();
    let mut leaders = each_row(Members::<S>::open(asks).unwrap().leader_only());
    let mut led_by = async |name: Option<&str>| {
        let row = within(&format!("the leader {name:?}"), leaders.recv()).await.unwrap();
        assert_eq!(row, Vec::from_iter(name));
    };
    shows(&mut outside, &[]).await;
    led_by(None).await;
    let first = start("first").await;
    led_by(Some("first")).await;
    let mut inside = first.members();
    shows(&mut inside, &["first"]).await;
    let second = start("second").await;
    for members in [&mut inside, &mut outside] {
        shows(members, &["first", "second"]).await;
    }
    let third = start("third").await;
    shows(&mut outside, &["first", "second", "third"]).await;
    within("the second to stop", second.stop()).await;
    shows(&mut outside, &["first", "third"]).await;
    within("the first to stop", first.stop()).await;
    shows(&mut outside, &["third"]).await;
    // That others came and went was no news of the leader.
    led_by(Some("third")).await;
    drop(third);
    shows(&mut outside, &[]).await;
    led_by(None).await;
}

/// The names of each row that is shown from now on.
fn each_row<S: Store>(mut members: Members<S>) -> UnboundedReceiver<Vec<String>> {
    let (sender, rows) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            let Ok(row) = members.next().await else { continue };
            let names = row.iter().map(|one| one.name().into_owned()).collect();
            if sender.send(names).is_err() {
                return;
            }
        }
    });
    rows
}

/// The first is stopped and leads until its guard is gone; then the second leads.
async fn succeeds<S: Store>(
    first: &Candidate<S>,
    second: &Candidate<S>,
    leadership: Leadership,
) -> Leadership {
    let stopping = tokio::spawn({
        let first = first.clone();
        async move { first.stop().await }
    });
    assert_eq!(within("the news", leadership.lost()).await, Lost::Leaving);
    assert_eq!(&*second.leader().await.unwrap().unwrap().name(), "first");
    let before = leadership.token();
    drop(leadership);
    within("the first to stop", stopping).await.unwrap();
    let leadership = within("leadership", second.leadership()).await.unwrap();
    assert!(leadership.token() > before);
    leadership
}
