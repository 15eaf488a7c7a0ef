//! Elections through a Java server.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use crate::peers;
use quorate_zookeeper::{Event, Lost, Notice, State};

use crate::peers::{Ensemble, standing, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_offer_leads_and_the_next_follows_it() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let first = ensemble.candidate("/a/election", "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = ensemble.candidate("/a/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;

    let leader = second.leader().await.unwrap().unwrap();
    assert_eq!((&*leader.name(), leader.token), ("first", leadership.token()));
    let row = second.candidates().await.unwrap();
    let names: Vec<_> = row.iter().map(|one| one.name().into_owned()).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(row[0].token < row[1].token && leadership.check().is_ok());

    // In order: the offer stays until the guard is gone.
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
    assert_eq!(&*second.leader().await.unwrap().unwrap().name(), "second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_is_dropped_gives_the_leadership_up() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let first = ensemble.candidate("/election", "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = ensemble.candidate("/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let mut events = first.events();
    drop(leadership);
    let leadership = within("leadership", second.leadership()).await.unwrap();
    // The first stands behind the second again, without being asked to.
    while within("an event", events.next()).await.unwrap() != Event::Notice(Notice::ReadyComplete) {
    }
    let row = first.candidates().await.unwrap();
    let names: Vec<_> = row.iter().map(|one| one.name().into_owned()).collect();
    assert_eq!(names, ["second", "first"]);
    drop(leadership);
    assert!(within("leadership", first.leadership()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_whose_handles_are_dropped_leave_nothing_behind() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    let candidate = ensemble.candidate("/election", "me").await;
    let guard = within("leadership", candidate.leadership()).await.unwrap();
    drop(candidate);
    // The guard keeps the offer until it is gone itself.
    assert_eq!(within("the news", guard.lost()).await, Lost::Leaving);
    assert_eq!(client.list_children("/election").await.unwrap().len(), 1);
    drop(guard);
    peers::until("an empty root", async || {
        client.list_children("/election").await.unwrap().is_empty().then_some(())
    })
    .await;
}
