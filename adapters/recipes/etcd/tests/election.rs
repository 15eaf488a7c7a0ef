//! Elections through an etcd server, by offers.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::time::Duration;

use quorate_core::recipe::Token;
use quorate_core::recipe::offer::{Answer, Call};
use quorate_etcd::Etcd;
use quorate_etcd::{Candidate, Config, Loss, Lost, Settings, StartError, State, StoreError, ask};
use quorate_recipes::testing::{Calls, the_oldest_offer_leads};

use crate::peers::{EtcdCandidate, Server, free_port, standing, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_offer_leads_and_the_next_follows_it() {
    let Some(server) = Server::start().await else { return };
    let (second, leadership) =
        the_oldest_offer_leads(async |name| server.candidate("election", name).await).await;
    let before = leadership.token();
    assert_eq!(ask(server.config("election", "asks")).await.unwrap().len(), 1);

    // The guard gone, it queues up again; the handle gone, nothing is left.
    drop(leadership);
    let again = within("leadership", second.leadership()).await.unwrap();
    assert!(again.token() > before);
    drop((again, second));
    until("an empty prefix", async || (server.count("election/") == 0).then_some(())).await;
}

/// etcd's own, ours, etcd's own, ours: one row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcds_own_candidates_stand_in_the_same_row() {
    let Some(server) = Server::start().await else { return };
    let mut theirs = EtcdCandidate::start(&server, "mixed", "theirs-1");
    theirs.leads().await;
    let ours = server.candidate("mixed", "ours-1").await;
    standing(&ours, "ours to wait", |status| status.state == State::Ready).await;
    assert_eq!(&*ours.leader().await.unwrap().unwrap().name(), "theirs-1");
    let mut next = EtcdCandidate::start(&server, "mixed", "theirs-2");
    until("theirs to queue up", async || (server.count("mixed/") == 3).then_some(())).await;
    let last = server.candidate("mixed", "ours-2").await;
    standing(&last, "ours to wait", |status| status.state == State::Ready).await;

    theirs.interrupt();
    let leadership = within("leadership", ours.leadership()).await.unwrap();
    assert!(!next.is_leading());
    let row = last.candidates().await.unwrap();
    let names: Vec<_> = row.iter().map(|one| one.name().into_owned()).collect();
    assert_eq!(names, ["ours-1", "theirs-2", "ours-2"]);
    drop(leadership);
    ours.stop().await;
    next.leads().await;
    assert_eq!(&*last.leader().await.unwrap().unwrap().name(), "theirs-2");
    assert!(last.status().leads.is_none());
    next.interrupt();
    assert!(within("leadership", last.leadership()).await.is_ok());
}

/// As when a delete overtakes the answer to its first try, and the same lease has made its key anew.
#[tokio::test]
async fn only_the_key_that_is_meant_is_deleted() {
    let Some(server) = Server::start().await else { return };
    let mut calls = Calls::<Etcd>::open(server.config("election", "me")).await;
    let mut made: Vec<Token> = Vec::new();
    let delete = |created| Call::Delete { name: "51".to_owned(), created: Some(created) };
    for count in 0..2 {
        server.ctl(&["put", "election/51", "host"]).unwrap();
        let read = calls.make(Call::Read { name: "51".to_owned(), watch: false }).await;
        let Ok(Answer::Read { created, .. }) = read else { panic!("{read:?}") };
        made.push(created);
        calls.make(delete(made[0])).await.unwrap();
        assert_eq!(server.count("election/"), count, "that was made anew stays");
    }
    calls.make(delete(made[1])).await.unwrap();
    assert_eq!(server.count("election/"), 0);
}

/// The server stands still for longer than the lease: nobody can lead, and it is known in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_cluster_does_not_answer_stops_and_comes_back() {
    let Some(server) = Server::start().await else { return };
    let candidate = server.candidate("election", "me").await;
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    let before = leadership.token();
    let mut events = candidate.events();
    server.signal("-STOP");
    let until_then = leadership.lease().unwrap();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    assert!(leadership.check().is_err() && std::time::Instant::now() >= until_then);
    let loss = async {
        loop {
            if let quorate_etcd::Event::Lost(loss) = events.next().await.unwrap() {
                return loss;
            }
        }
    };
    assert_eq!(within("the event", loss).await, Loss::Unconfirmed);
    drop(leadership);
    server.signal("-CONT");
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    assert!(leadership.token() > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_restarts_is_found_again() {
    let Some(mut server) = Server::start().await else { return };
    let candidate = server.candidate("election", "me").await;
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    server.kill();
    within("the loss", leadership.lost()).await;
    drop(leadership);
    server.run().await;
    assert!(within("leadership", candidate.leadership()).await.is_ok());
}

/// An operator's way to get rid of a leader, and of all its keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_lease_is_revoked_leads_no_more() {
    let Some(server) = Server::start().await else { return };
    let first = server.candidate("election", "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = server.candidate("election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let lease = first.status().offer.unwrap();
    server.ctl(&["lease", "revoke", &lease]).unwrap();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    let next = within("leadership", second.leadership()).await.unwrap();
    assert!(next.token() > leadership.token());
    drop(leadership);
    // It comes back with another lease.
    standing(&first, "the first to wait", |status| status.state == State::Ready).await;
    assert_ne!(first.status().offer.unwrap(), lease);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_a_right_or_a_password_is_told_so() {
    let Some(server) = Server::start().await else { return };
    for command in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "stranger:secret"],
        &["role", "add", "electors"],
        &["role", "grant-permission", "electors", "--prefix=true", "readwrite", "election/"],
        &["user", "add", "elector:secret"],
        &["user", "grant-role", "elector", "electors"],
        &["auth", "enable"],
    ] {
        drop(server.ctl(&["role", "add", "root"]));
        server.ctl(command).unwrap_or_else(|| panic!("etcdctl {command:?}"));
    }
    let trouble = async |config: Config, wanted: StoreError| {
        let candidate = Candidate::start(config).await.unwrap();
        let status = |status: &quorate_etcd::Status| status.trouble == Some(wanted.clone());
        standing(&candidate, "the refusal", status).await;
        within("the end", candidate.stop()).await;
    };
    let config = || server.config("election", "me");
    trouble(config().user("elector", "wrong"), StoreError::Unauthenticated).await;
    trouble(config().user("stranger", "secret"), StoreError::Denied).await;
    let known = Candidate::start(config().user("elector", "secret")).await.unwrap();
    assert!(within("leadership", known.leadership()).await.is_ok());
}

#[tokio::test]
async fn what_cannot_work_is_said_so() {
    let start = async |endpoints: &[&str], prefix: &str| {
        let config = Config::new(endpoints.iter().copied(), prefix, "me");
        Candidate::start(config).await.unwrap_err()
    };
    assert!(matches!(start(&[], "a").await, StartError::NoStore));
    assert!(matches!(start(&["http://e"], "").await, StartError::Path { .. }));
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let settings = Settings::new("me").deadline(Duration::from_secs(1));
    let config = Config::new([nobody], "a", settings);
    let candidate = Candidate::start(config).await.unwrap();
    let status = standing(&candidate, "the trouble", |status| status.trouble.is_some()).await;
    assert!(matches!(status.trouble, Some(StoreError::Unreachable(_))), "{status:?}");
    within("the end", candidate.stop()).await;
}
