//! Which of a group are alive.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_recipes::testing::{members_come_and_go, shows};
use quorate_zookeeper::{Candidate, Config, Members, Session, StoreError};

use crate::peers::ours::{Ours, connect};
use crate::peers::{Ensemble, SESSION, Wire, make, settings, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_and_whoever_watches_is_told() {
    let ours = Ours::start().await;
    let config = |name: &str| Config::new(ours.hosts(), "/a/group", settings(name));
    let start = async |name: &str| Candidate::start(config(name)).await.unwrap();
    members_come_and_go(start, config("asks")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_at_a_java_server() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let start = async |name: &str| ensemble.candidate("/a/group", name).await;
    members_come_and_go(start, ensemble.config("/a/group", "asks")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_lease_recipe_the_leader_is_the_only_member() {
    let ours = Ours::start().await;
    let config = |name: &str| Config::new(ours.hosts(), "/a/leader", settings(name).lease());
    let mut members = Members::open(config("asks")).unwrap();
    shows(&mut members, &[]).await;
    let first = Candidate::start(config("first")).await.unwrap();
    shows(&mut members, &["first"]).await;
    let second = Candidate::start(config("second")).await.unwrap();
    within("the end", first.stop()).await;
    shows(&mut members, &["second"]).await;
    drop(second);
    shows(&mut members, &[]).await;
}

/// The counter of a root begins anew with it: the second member may have the very node of the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_the_node_of_an_earlier_one_is_not_taken_for_it() {
    let ours = Ours::start().await;
    let client = ours.client(SESSION).await;
    let mut members = Members::open(Config::new(ours.hosts(), "/group", "asks")).unwrap();
    shows(&mut members, &[]).await;
    for name in ["first", "second"] {
        make(&client, "/group").await;
        make(&client, "/group/n_0000000000").await;
        client.set_data("/group/n_0000000000", name.as_bytes(), None).await.unwrap();
        // Between the two it does not look.
        if name == "first" {
            shows(&mut members, &["first"]).await;
            client.delete("/group/n_0000000000", None).await.unwrap();
            client.delete("/group", None).await.unwrap();
        }
    }
    shows(&mut members, &["second"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_is_told_when_its_session_is_over_and_sees_on_in_the_next() {
    let ours = Ours::start().await;
    let wire = Wire::to(ours.port).await;
    let own = Config::new(format!("127.0.0.1:{}", wire.port), "/group", settings("asks"));
    let mut members = Members::open(own).unwrap();
    let client = connect(ours.port, SESSION).await;
    let session = Session::of(&client);
    let member = Candidate::start(Config::on(&session, "/group", "a")).await.unwrap();
    shows(&mut members, &["a"]).await;
    wire.cut();
    within("the end of the session", wire.end_session(ours.port)).await;
    wire.mend();
    let error = within("the news", members.next()).await.unwrap_err();
    assert_eq!(error, StoreError::Expired);
    within("the end", member.stop()).await;
    shows(&mut members, &[]).await;
}
