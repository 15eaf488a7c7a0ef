//! Stores that are not there, do not answer, or refuse; and what stands in a root that is not ours.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::time::Duration;

use quorate_zookeeper::{
    Access, AskError, Candidate, Config, Event, Loss, Lost, Settings, StartError, State,
    StoreError, ask,
};
use zookeeper_client::{Acls, CreateMode};

use crate::peers::{Ensemble, SESSION, Wire, free_port, make, settings, standing, within};

#[tokio::test]
async fn a_candidate_without_a_store_a_place_or_an_identity_is_told_which_it_lacks() {
    let start = async |hosts: &str, root: &str, identity: &'static str| {
        Candidate::start(Config::new(hosts, root, identity)).await.unwrap_err()
    };
    assert!(matches!(start("", "/a", "me").await, StartError::NoStore));
    assert!(matches!(start("zk", "a", "me").await, StartError::Path { .. }));
    let error = start("zk", "/a", "").await;
    assert!(error.to_string().contains("identity"), "{error}");
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_said_so_and_looked_for_again() {
    let port = free_port();
    let settings = Settings::new("me")
        .session_timeout(Duration::from_millis(500))
        .deadline(Duration::from_secs(2));
    let config = Config::new(format!("127.0.0.1:{port}"), "/election", settings);
    let candidate = Candidate::start(config.clone()).await.unwrap();
    let status = standing(&candidate, "the trouble", |status| status.trouble.is_some()).await;
    assert!(matches!(status.trouble, Some(StoreError::Unreachable(_))), "{status:?}");
    assert!(!status.connected && status.leads.is_none());
    let error = candidate.leader().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
    let error = within("an answer", ask(config)).await.unwrap_err();
    assert!(matches!(error, AskError::Store(StoreError::Unreachable(_))), "{error}");
    // Nothing is left in the store, so nothing has to be waited for.
    within("the end", candidate.stop()).await;
    assert!(candidate.leadership().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_that_is_somebody_elses_is_refused_and_tried_again() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    client.auth("digest", b"owner:secret").await.unwrap();
    let mode = CreateMode::Persistent.with_acls(Acls::creator_all());
    client.create("/election", b"", &mode).await.unwrap();

    let stranger = ensemble.candidate("/election", "stranger").await;
    let refused = |status: &quorate_zookeeper::Status| status.trouble == Some(StoreError::Denied);
    standing(&stranger, "the refusal", refused).await;
    assert_eq!(stranger.leader().await.unwrap_err(), StoreError::Denied);

    let config = ensemble.config("/election", "known").credentials("digest", "owner:secret");
    let known = Candidate::start(config.access(Access::Creator)).await.unwrap();
    let leadership = within("leadership", known.leadership()).await.unwrap();
    // Once it is allowed the stranger comes by itself.
    client
        .set_acl(
            "/election",
            &[zookeeper_client::Acl::new(
                zookeeper_client::Permission::ALL,
                zookeeper_client::AuthId::anyone(),
            )],
            None,
        )
        .await
        .unwrap();
    drop(leadership);
    known.stop().await;
    assert!(within("leadership", stranger.leadership()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_taken_for_whom_he_says_is_told_so() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let config = ensemble.config("/election", "me").credentials("no-such-scheme", "me");
    let candidate = Candidate::start(config).await.unwrap();
    let refused =
        |status: &quorate_zookeeper::Status| status.trouble == Some(StoreError::Unauthenticated);
    standing(&candidate, "the refusal", refused).await;
    within("the end", candidate.stop()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_offer_is_left_alone_and_any_bytes_are_an_identity() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    make(&client, "/election").await;
    for number in 0..500 {
        make(&client, &format!("/election/foreign-{number}")).await;
    }
    make(&client, "/election/0000000000").await;
    make(&client, "/election/n_").await;
    let bytes: &[u8] = &[0xff, 0xfe, b'x', 0];
    let settings = Settings::new(bytes).session_timeout(SESSION);
    let config = ensemble.config_with("/election", settings);
    let odd = Candidate::start(config).await.unwrap();
    let leadership = within("leadership", odd.leadership()).await.unwrap();
    let next = ensemble.candidate("/election", "next").await;
    standing(&next, "the next to wait", |status| status.state == State::Ready).await;
    let leader = next.leader().await.unwrap().unwrap();
    assert_eq!((&leader.identity[..], leader.token), (bytes, leadership.token()));
    assert!(leader.name().contains('x'));
    assert_eq!(next.candidates().await.unwrap().len(), 2);
    drop(leadership);
    odd.stop().await;
    assert!(within("leadership", next.leadership()).await.is_ok());
    assert_eq!(client.list_children("/election").await.unwrap().len(), 503);
}

/// The server ends the session of a leader that it does not hear, and the leader has stopped before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_stops_before_the_next_begins() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let wire = Wire::to(ensemble.servers[0].as_ref().unwrap().client_port()).await;
    let hosts = format!("127.0.0.1:{}", wire.port);
    let config = Config::new(hosts, "/election", settings("cut off"));
    let first = Candidate::start(config).await.unwrap();
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = ensemble.candidate("/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let mut events = first.events();
    wire.cut();
    // Whoever comes second, both times are taken in this process.
    let lost = async {
        let lost = leadership.lost().await;
        (lost, std::time::Instant::now())
    };
    let next = async {
        let next = second.leadership().await.unwrap();
        (next, std::time::Instant::now())
    };
    let ((lost, stopped), (next, begun)) =
        within("the loss, and the next", async { tokio::join!(lost, next) }).await;
    assert_eq!(lost, Lost::Deposed);
    assert!(stopped < begun, "the second began {:?} before", stopped - begun);
    assert_eq!(leadership.check().unwrap_err(), Lost::Deposed);
    assert!(leadership.token() < next.token());
    let mut losses = Vec::new();
    while losses.is_empty() {
        if let Some(Event::Lost(loss)) = within("the event", events.next()).await {
            losses.push(loss);
        }
    }
    assert_eq!(losses, [Loss::Unconfirmed]);

    // With the wire it comes back, in a new session and behind the other.
    drop(leadership);
    wire.mend();
    standing(&first, "the first to wait", |status| status.state == State::Ready).await;
    assert!(next.check().is_ok());
    drop(next);
    assert!(within("leadership", first.leadership()).await.is_ok());
}

/// An operator's way to get rid of a leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_offer_is_deleted_leads_no_more() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    let first = ensemble.candidate("/election", "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = ensemble.candidate("/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let offer = first.status().offer.unwrap();
    client.delete(&format!("/election/{offer}"), None).await.unwrap();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    let next = within("leadership", second.leadership()).await.unwrap();
    assert!(next.token() > leadership.token());
    drop(leadership);
    standing(&first, "the first to wait", |status| status.state == State::Ready).await;
}
