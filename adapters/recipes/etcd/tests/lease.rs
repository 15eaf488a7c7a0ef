//! The lease recipe: the candidate that creates one key leads.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_etcd::{Candidate, Lost};
use quorate_recipes::testing::the_creator_of_the_key_leads;

use crate::peers::{Server, settings, standing, until, within};

async fn start(server: &Server, name: &str) -> Candidate {
    Candidate::start(server.config_with("leader", settings(name).lease())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_creates_the_key_leads_and_gives_it_back_in_order() {
    let Some(server) = Server::start().await else { return };
    let (second, leadership) =
        the_creator_of_the_key_leads(async |name| start(&server, name).await).await;
    drop((leadership, second));
    until("no key", async || (server.count("leader") == 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_somebody_elses_is_waited_for_and_one_that_is_deleted_is_lost() {
    let Some(server) = Server::start().await else { return };
    server.ctl(&["put", "leader", "somebody"]).unwrap();
    let candidate = start(&server, "me").await;
    standing(&candidate, "a session", |status| status.connected).await;
    assert_eq!(&*candidate.leader().await.unwrap().unwrap().name(), "somebody");
    assert!(candidate.status().leads.is_none());
    server.ctl(&["del", "leader"]).unwrap();
    let leadership = within("leadership", candidate.leadership()).await.unwrap();

    server.ctl(&["del", "leader"]).unwrap();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    let before = leadership.token();
    drop(leadership);
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    assert!(leadership.token() > before);

    // Two leaderships later the server stands still for longer than the lease.
    server.signal("-STOP");
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    assert!(leadership.check().is_err());
    let before = leadership.token();
    drop(leadership);
    server.signal("-CONT");
    assert!(within("leadership", candidate.leadership()).await.unwrap().token() > before);
}
