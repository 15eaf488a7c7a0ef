//! Which of a group are alive.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use quorate_etcd::{Candidate, Members};
use quorate_recipes::testing::{members_come_and_go, shows};

use crate::peers::{Server, settings, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_and_whoever_watches_is_told() {
    let Some(server) = Server::start().await else { return };
    let start = async |name: &str| server.candidate("group", name).await;
    members_come_and_go(start, server.config("group", "asks")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_lease_recipe_the_leader_is_the_only_member() {
    let Some(server) = Server::start().await else { return };
    let config = |name: &str| server.config_with("leader", settings(name).lease());
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
