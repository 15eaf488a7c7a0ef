//! Leaders that are named by hand while the store is out of reach.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::recipe::offer::{Answer, Call, Entry};
use quorate_core::recipe::{Attempt, Failure, SessionId, Token, lease};
use quorate_store::{
    Candidate, Contender, Designation, FencingToken, Lost, Naming, Recipe, Settings, StartError,
    Store, StoreError, Teller, designate,
};
use tokio::sync::watch;

const SESSION: SessionId = SessionId(7);
const TIMEOUT: Duration = Duration::from_secs(1);

/// A store with one client, which is there when it is said to be.
#[derive(Clone, Debug)]
struct Fake {
    is_there: watch::Receiver<bool>,
    offer: Arc<Mutex<Option<(String, Bytes)>>>,
}

impl Fake {
    fn entries(&self) -> Vec<Entry> {
        let offer = self.offer.lock().unwrap();
        offer.iter().map(|(name, _)| Entry { name: name.clone(), created: None }).collect()
    }
}

impl Store for Fake {
    type Config = (watch::Receiver<bool>, Settings);

    fn open((is_there, settings): Self::Config) -> Result<(Self, Settings), StartError> {
        Ok((Self { is_there, offer: Arc::default() }, settings))
    }

    async fn keep_session(&self, tell: Teller) {
        self.is_there.clone().wait_for(|there| *there).await.unwrap();
        tell.connected(SESSION, TIMEOUT);
        loop {
            tell.renewed(SESSION, Instant::now());
            tokio::time::sleep(TIMEOUT / 10).await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: Call, tell: &Teller) {
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
        tell.offer(attempt, result);
    }

    async fn lease(&self, _: Attempt, _: lease::Call, _: &Teller) {}

    async fn contenders(&self, _: bool) -> Result<Vec<Contender>, StoreError> {
        if *self.is_there.borrow() {
            return Ok(Vec::new());
        }
        Err(StoreError::Unreachable("it is not there".to_owned()))
    }

    async fn close(&self) {}
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("in time")
}

#[tokio::test]
async fn who_is_designated_leads_until_the_store_is_there_and_is_never_mixed_with_the_elected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader");
    let (comes, is_there) = watch::channel(false);
    let mut settings = Settings::new("me", Recipe::Offer(Naming::Guid));
    settings.session_timeout = TIMEOUT;
    settings.designation = Some(Designation::file(&file, Duration::from_secs(600)));
    let candidate = Candidate::<Fake>::start((is_there, settings)).await.unwrap();
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
