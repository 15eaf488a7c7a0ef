//! Elections in a session that is the program's own.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::time::{Duration, Instant};

use quorate_zookeeper::zookeeper_client::SessionState;
use quorate_zookeeper::{
    Candidate, Config, Designation, LeadershipError, Lost, Session, Settings, StartError, State,
    StoreError,
};

use crate::peers::ours::{Ours, connect};
use crate::peers::{Ensemble, SESSION, Wire, settings, standing, within};

async fn stand(session: &Session, root: &str, identity: &str) -> Candidate {
    Candidate::start(Config::on(session, root, identity)).await.unwrap()
}

/// Whoever ends the session, and whichever recipe it is.
async fn ends_with_its_session(server: u16, lease: bool) {
    let wire = Wire::to(server).await;
    let client = connect(wire.port, SESSION).await;
    let recipe = |settings: Settings| if lease { settings.lease() } else { settings };
    let config = Config::on(&Session::of(&client), "/election", recipe("ours".into()));
    let first = Candidate::start(config).await.unwrap();
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let hosts = format!("127.0.0.1:{server}");
    let second = Config::new(hosts, "/election", recipe(settings("second")));
    let second = Candidate::start(second).await.unwrap();
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;

    wire.cut();
    within("the end of the session", wire.end_session(server)).await;
    wire.mend();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    let next = within("leadership", second.leadership()).await.unwrap();
    assert!(leadership.token() < next.token() && leadership.check().is_err());
    drop(leadership);
    let status = standing(&first, "the end of the candidate", |status| status.ended).await;
    assert_eq!(status.trouble, Some(StoreError::Expired));
    assert_eq!(first.leadership().await.unwrap_err(), LeadershipError::Ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_and_candidacy_end_with_the_session_that_they_stand_in() {
    let ours = Ours::start().await;
    ends_with_its_session(ours.port, false).await;
    let ours = Ours::start().await;
    ends_with_its_session(ours.port, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_and_candidacy_end_with_their_session_at_a_java_server() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let server = ensemble.servers[0].as_ref().unwrap().client_port();
    ends_with_its_session(server, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_leaves_takes_its_node_and_watches_along_and_nothing_else() {
    let ours = Ours::start().await;
    let client = ours.client(SESSION).await;
    let session = Session::of(&client);
    let other = ours.client(SESSION).await;
    let first = stand(&Session::of(&other), "/election", "first").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = stand(&session, "/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    // Each its own node, and the second its neighbour's.
    ours.keeps_watches(3).await;
    within("the second to leave", second.stop()).await;
    assert_eq!(client.list_children("/election").await.unwrap().len(), 1);
    ours.keeps_watches(1).await;
    assert!(leadership.check().is_ok());
    drop((leadership, first, session));
    ours.keeps_watches(0).await;
    assert_eq!(client.list_children("/election").await.unwrap(), Vec::<String>::new());
    for client in [client, other] {
        assert_eq!(client.state(), SessionState::SyncConnected);
    }
}

/// The session goes on, and with it would the node, in front of all that come later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_leaves_without_its_server_has_left_when_it_says_so() {
    let ours = Ours::start().await;
    let wire = Wire::to(ours.port).await;
    let other = ours.client(SESSION).await;
    let client = connect(wire.port, Duration::from_secs(20)).await;
    // Less than it is out of reach.
    let settings = Settings::from("me").deadline(Duration::from_millis(100));
    let config = Config::on(&Session::of(&client), "/election", settings);
    let candidate = Candidate::start(config).await.unwrap();
    drop(within("leadership", candidate.leadership()).await.unwrap());
    standing(&candidate, "its next offer", |status| status.offer.is_some()).await;
    wire.cut();
    let stopping = tokio::spawn({
        let candidate = candidate.clone();
        async move { candidate.stop().await }
    });
    standing(&candidate, "the silence", |status| !status.connected || status.ended).await;
    wire.mend();
    within("the end", stopping).await.unwrap();
    assert_eq!(other.list_children("/election").await.unwrap(), Vec::<String>::new());
    assert_eq!(client.state(), SessionState::SyncConnected);
}

/// As in a session of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_session_is_cut_off_stops_before_the_next_begins() {
    let ours = Ours::start().await;
    let wire = Wire::to(ours.port).await;
    let first = Session::of(&connect(wire.port, Duration::from_secs(1)).await);
    let first = stand(&first, "/election", "cut off").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let second = Session::of(&ours.client(SESSION).await);
    let second = stand(&second, "/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    wire.cut();
    // Whoever comes second, both times are taken in this process.
    let lost = async { (leadership.lost().await, Instant::now()) };
    let next = async { (second.leadership().await.unwrap(), Instant::now()) };
    let ((lost, stopped), (next, begun)) =
        within("the loss, and the next", async { tokio::join!(lost, next) }).await;
    assert!(stopped < begun && lost == Lost::Deposed, "{lost}, {:?} late", stopped - begun);
    assert!(leadership.token() < next.token());
    drop(leadership);
    // By the client's own clock, without a word of the server's.
    standing(&first, "the end of the candidate", |status| status.ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_a_session_of_its_own_is_refused() {
    let ours = Ours::start().await;
    let session = Session::of(&ours.client(SESSION).await);
    let refusal = async |config: Config| Candidate::start(config).await.unwrap_err();
    let config = Config::on(&session, "/a", "me").credentials("digest", "me:secret");
    assert!(matches!(refusal(config).await, StartError::NotOwnSession(_)));
    let designation = Designation::file("/nowhere", Duration::from_secs(60));
    let settings = Settings::from("me").designation(designation);
    let error = refusal(Config::on(&session, "/a", settings)).await;
    assert!(error.to_string().contains("a designation"), "{error}");
}
