//! Leaders that are named by hand while the store is out of reach.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::recipe::offer::{Answer, Call, Entry};
use quorate_core::recipe::{Attempt, Failure, SessionId, Token, lease};
use quorate_recipes::{
    Candidate, Change, Contender, Designation, FencingToken, Lost, Reporter, Settings, StartError,
    Store, StoreError, designate,
};
use tokio::sync::{Notify, watch};

const SESSION: SessionId = SessionId(7);
const TIMEOUT: Duration = Duration::from_secs(1);

/// A store with one client, which is there when it is said to be.
#[derive(Clone, Debug)]
struct Fake {
    is_there: watch::Receiver<bool>,
    /// How often it goes again when it has come, before it stays.
    goes: usize,
    stays: Arc<Notify>,
    offer: Arc<Mutex<Option<(String, Bytes)>>>,
}

impl Fake {
    /// One that is not there, and how it is made to come.
    fn away() -> (Self, watch::Sender<bool>) {
        let (comes, is_there) = watch::channel(false);
        (Self { is_there, goes: 0, stays: Arc::default(), offer: Arc::default() }, comes)
    }

    fn entries(&self) -> Vec<Entry> {
        let offer = self.offer.lock().unwrap();
        offer.iter().map(|(name, _)| Entry { name: name.clone(), created: None }).collect()
    }
}

impl Store for Fake {
    type Config = (Self, Settings);

    fn open(config: Self::Config) -> Result<(Self, Settings), StartError> {
        Ok(config)
    }

    async fn keep_session(&self, report: Reporter) {
        self.is_there.clone().wait_for(|there| *there).await.unwrap();
        for going in 0..self.goes {
            report.connected(SessionId(8), TIMEOUT);
            tokio::task::yield_now().await;
            if going % 2 == 0 {
                report.suspended()
            } else {
                report.expired()
            }
            tokio::task::yield_now().await;
        }
        report.connected(SESSION, TIMEOUT);
        self.stays.notify_one();
        loop {
            report.renewed(SESSION, Instant::now());
            tokio::time::sleep(TIMEOUT / 10).await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: Call, report: &Reporter) {
        let result = match call {
            Call::EnsureRoot => Ok(Answer::Done),
            Call::Create { name, data, .. } => {
                let name = format!("{name}0000000001");
                *self.offer.lock().unwrap() = Some((name.clone(), data));
                Ok(Answer::Created { name })
            }
            Call::List { .. } => Ok(Answer::Listed(self.entries())),
            Call::Read { .. } => match &*self.offer.lock().unwrap() {
                Some((_, data)) => Ok(Answer::Read {
                    data: data.clone(),
                    owner: Some(SESSION),
                    created: Token(100),
                }),
                None => Err(Failure::Absent),
            },
            Call::Delete { .. } => {
                *self.offer.lock().unwrap() = None;
                Ok(Answer::Done)
            }
        };
        report.offer(attempt, result);
    }

    async fn lease(&self, _: Attempt, _: lease::Call, _: &Reporter) {}

    async fn contenders(&self, _: bool) -> Result<Vec<Contender>, StoreError> {
        if *self.is_there.borrow() {
            return Ok(Vec::new());
        }
        Err(StoreError::Unreachable("it is not there".to_owned()))
    }

    async fn watch(
        &self,
        all: bool,
        _: &[Contender],
    ) -> Result<(Vec<Contender>, Change), StoreError> {
        Ok((self.contenders(all).await?, Box::pin(std::future::pending())))
    }

    async fn close(&self) {}
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("in time")
}

fn settings(file: &Path, max_age: Duration) -> Settings {
    let designation = Designation::file(file, max_age);
    Settings::new("me").session_timeout(TIMEOUT).designation(designation)
}

#[tokio::test]
async fn who_is_designated_leads_until_the_store_is_there_and_is_never_mixed_with_the_elected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader");
    let (store, comes) = Fake::away();
    let settings = settings(&file, Duration::from_secs(600));
    let candidate = Candidate::<Fake>::start((store, settings)).await.unwrap();
    assert!(candidate.leader().await.is_err(), "nobody is designated");

    // Somebody else.
    designate(&file, "other", 4).unwrap();
    let leader = candidate.leader().await.unwrap().unwrap();
    assert_eq!((&*leader.name(), leader.token), ("other", FencingToken::designated(4)));
    let none = candidate.leadership_within(TIMEOUT * 2).await;
    assert!(none.is_err());

    designate(&file, "me", 5).unwrap();
    let leadership = within(candidate.leadership()).await.unwrap();
    assert!(leadership.token().is_designated() && leadership.token().as_u64() == 5);
    assert_eq!(candidate.status().leads, Some(FencingToken::designated(5)));

    // The store is there: the guard is told, and nobody is elected before it is gone.
    comes.send_replace(true);
    assert_eq!(within(leadership.lost()).await, Lost::Deposed);
    assert!(candidate.leadership_within(TIMEOUT).await.is_err());
    drop(leadership);
    let leadership = within(candidate.leadership()).await.unwrap();
    assert_eq!(leadership.token(), FencingToken::elected(100));
    drop(leadership);
    within(candidate.stop()).await;
}

/// Of what such a store said while nobody could be elected yet, the last counts, however much it was.
#[tokio::test]
async fn a_store_that_comes_and_goes_while_work_goes_on_is_elected_through_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader");
    let (mut store, comes) = Fake::away();
    store.goes = 3_000;
    let stays = Arc::clone(&store.stays);
    let settings = settings(&file, Duration::from_secs(600));
    designate(&file, "me", 5).unwrap();
    let candidate = Candidate::<Fake>::start((store, settings)).await.unwrap();
    let leadership = within(candidate.leadership()).await.unwrap();
    comes.send_replace(true);
    within(stays.notified()).await;
    assert_eq!(within(leadership.lost()).await, Lost::Deposed);
    drop(leadership);
    let leadership = within(candidate.leadership()).await.unwrap();
    assert_eq!(leadership.token(), FencingToken::elected(100));
}

/// The next designated, and the next elected, are let in when those before have gone.
#[tokio::test]
async fn a_designation_that_has_ended_is_followed_by_nobody_while_its_work_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader");
    let (store, comes) = Fake::away();
    let settings = settings(&file, Duration::from_secs(600));
    designate(&file, "me", 5).unwrap();
    let candidate = Candidate::<Fake>::start((store, settings)).await.unwrap();
    let first = within(candidate.leadership()).await.unwrap();
    designate(&file, "me", 6).unwrap();
    assert_eq!(within(first.lost()).await, Lost::Deposed);
    assert!(candidate.leadership_within(TIMEOUT).await.is_err());
    drop(first);
    let second = within(candidate.leadership()).await.unwrap();
    assert_eq!(second.token(), FencingToken::designated(6));

    // Taken back, and then the store comes.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(within(second.lost()).await, Lost::Deposed);
    comes.send_replace(true);
    assert!(candidate.leadership_within(TIMEOUT).await.is_err());
    drop(second);
    let third = within(candidate.leadership()).await.unwrap();
    assert_eq!(third.token(), FencingToken::elected(100));
}
