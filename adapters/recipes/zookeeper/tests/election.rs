//! Elections through a Java server.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_recipes::testing::the_oldest_offer_leads;
use quorate_zookeeper::{Event, Lost, Notice, State};

use crate::peers::{Ensemble, names, standing, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_offer_leads_and_the_next_follows_it() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    the_oldest_offer_leads(async |name| ensemble.candidate("/a/election", name).await).await;
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
    assert_eq!(names(&first).await, ["second", "first"]);
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
    until("an empty root", async || {
        client.list_children("/election").await.unwrap().is_empty().then_some(())
    })
    .await;
}
