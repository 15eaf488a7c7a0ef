//! The other recipe: one node, and who creates it leads.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_zookeeper::{Candidate, Lost};

use crate::peers::{Ensemble, make, standing, until, within};

async fn start(ensemble: &Ensemble, name: &str) -> Candidate {
    Candidate::start(ensemble.config("/service/leader", name).lease()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_creates_the_node_leads_and_gives_it_back_in_order() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let first = start(&ensemble, "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = start(&ensemble, "second").await;
    standing(&second, "a session", |status| status.connected).await;
    let leader = second.leader().await.unwrap().unwrap();
    assert_eq!((&*leader.name(), leader.token), ("first", leadership.token()));
    assert!(second.status().leads.is_none());

    let stopping = tokio::spawn({
        let first = first.clone();
        async move { first.stop().await }
    });
    assert_eq!(within("the news", leadership.lost()).await, Lost::Leaving);
    let before = leadership.token();
    drop(leadership);
    within("the end", stopping).await.unwrap();
    let leadership = within("leadership", second.leadership()).await.unwrap();
    assert!(leadership.token() > before);

    // A guard that is dropped gives it up.
    let third = start(&ensemble, "third").await;
    standing(&third, "a session", |status| status.connected).await;
    let before = leadership.token();
    drop(leadership);
    let next = async {
        tokio::select! {
            next = third.leadership() => next,
            next = second.leadership() => next,
        }
    };
    assert!(within("leadership", next).await.unwrap().token() > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_somebody_elses_is_waited_for_and_one_that_is_deleted_is_lost() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    make(&client, "/service").await;
    make(&client, "/service/leader").await;
    client.set_data("/service/leader", &[0xff, b'?'], None).await.unwrap();
    let candidate = start(&ensemble, "me").await;
    standing(&candidate, "a session", |status| status.connected).await;
    assert_eq!(&candidate.leader().await.unwrap().unwrap().identity[..], [0xff, b'?']);
    assert!(candidate.status().leads.is_none());
    client.delete("/service/leader", None).await.unwrap();
    let leadership = within("leadership", candidate.leadership()).await.unwrap();

    client.delete("/service/leader", None).await.unwrap();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    let before = leadership.token();
    drop(leadership);
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    assert!(leadership.token() > before);
    drop((leadership, candidate));
    until("no node", async || {
        client.check_stat("/service/leader").await.unwrap().is_none().then_some(())
    })
    .await;
}
