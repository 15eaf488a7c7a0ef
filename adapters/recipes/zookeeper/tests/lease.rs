//! The lease recipe: the candidate that creates one node leads.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_recipes::testing::the_creator_of_the_key_leads;
use quorate_zookeeper::{Candidate, Lost};

use crate::peers::{Ensemble, make, settings, standing, until, within};

async fn start(ensemble: &Ensemble, name: &str) -> Candidate {
    Candidate::start(ensemble.config_with("/service/leader", settings(name).lease())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_creates_the_node_leads_and_gives_it_back_in_order() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let (second, leadership) =
        the_creator_of_the_key_leads(async |name| start(&ensemble, name).await).await;

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
