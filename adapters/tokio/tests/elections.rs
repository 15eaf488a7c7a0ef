//! Elections between servers on loopback: real sockets, real files, no sleeps.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

mod common;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Ensemble, within};
use quorate_core::vote::ServerState;

#[tokio::test]
async fn three_servers_establish_a_leader() {
    let mut ensemble = Ensemble::new(3, 0);
    let begun = Instant::now();
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    println!("cold start of 3: {:?}", begun.elapsed());
    // Usually 3; 2 if it has won with 1 before 3 had opened its ports.
    assert!(leader.0 >= 2 && epoch.0 == 1, "{leader} in {epoch}");
    let status = ensemble.server(leader).status();
    assert_eq!(status.peer.state, ServerState::Leading);
    assert!(status.metrics.leading_for.is_some());
    assert_eq!(status.metrics.looking_count, 1);
    assert_eq!(status.metrics.elections, 1);
    assert!(status.metrics.last_election.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_replaced_and_comes_back() {
    let mut ensemble = Ensemble::new(5, 0);
    ensemble.start_all().await;
    let (mut leader, mut epoch) = ensemble.agreed().await;
    for _ in 0..3 {
        let begun = Instant::now();
        ensemble.kill(leader).await;
        let (next, later) = ensemble.agreed().await;
        println!("failover among 4 of 5: {:?}", begun.elapsed());
        assert_ne!(next, leader);
        assert!(later > epoch, "{later} after {epoch}");

        // It comes back as a follower of the new leader, not as a usurper.
        ensemble.start(leader).await;
        let again = ensemble.agreed().await;
        assert_eq!(again, (next, later));
        (leader, epoch) = again;
    }
}

#[tokio::test]
async fn a_failover_of_three_takes_milliseconds() {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.start_all().await;
    let mut took = Vec::new();
    for _ in 0..7 {
        let (leader, _) = ensemble.agreed().await;
        let begun = Instant::now();
        ensemble.kill(leader).await;
        ensemble.agreed().await;
        took.push(begun.elapsed());
        ensemble.start(leader).await;
    }
    took.sort();
    println!("failover of 3, sorted: {took:?}");
}

#[tokio::test]
async fn shutdown_says_goodbye_and_frees_everything() {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    let mut changes = server.changes();
    within("shutdown", server.shutdown()).await.unwrap();
    // The others have noticed without any timeout.
    let (_, later) = ensemble.agreed().await;
    assert!(later > epoch);
    assert_eq!(server.leader(), None);
    // Readers are told that it is over.
    while within("leaders", leaders.next()).await.is_some() {}
    while within("changes", changes.next()).await.is_some() {}
    within("finished", server.finished()).await.unwrap();
    within("shutdown again", server.shutdown()).await.unwrap();
    // Same ports, same directory, while the old handle is still there.
    ensemble.start(leader).await;
    ensemble.agreed().await;
}

#[tokio::test]
async fn a_server_that_looks_for_a_leader_shuts_down() {
    let mut ensemble = Ensemble::new(3, 0);
    let first = ensemble.ids()[0];
    ensemble.start(first).await;
    let server = ensemble.take(first);
    // Its first change is that it looks.
    within("looking", server.changes().next()).await.unwrap();
    within("shutdown", server.shutdown()).await.unwrap();
}

#[tokio::test]
async fn dropping_the_handle_shuts_down() {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    drop(server);
    while within("leaders", leaders.next()).await.is_some() {}
    assert!(ensemble.agreed().await.1 > epoch);
}

#[tokio::test]
async fn observers_follow_and_do_not_count() {
    let mut ensemble = Ensemble::new(3, 2);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for id in ensemble.observers() {
        assert_ne!(leader, id);
        assert_eq!(ensemble.server(id).status().peer.state, ServerState::Observing);
    }
    ensemble.kill(leader).await;
    let (next, epoch) = ensemble.agreed().await;
    assert!(!ensemble.observers().contains(&next));
    // Two observers and one voter are no quorum.
    ensemble.kill(next).await;
    let mut leaders = ensemble.server(ensemble.observers()[0]).leaders();
    within("losing the leader", async { while leaders.next().await.unwrap().is_some() {} }).await;
    ensemble.start(next).await;
    assert!(ensemble.agreed().await.1 > epoch);
}

#[tokio::test]
async fn a_leader_steps_down_when_asked() {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let mut leaders = ensemble.server(leader).leaders();
    within("the present one", leaders.next()).await;
    ensemble.server(leader).step_down().await;
    within("stepping down", async { while leaders.next().await.unwrap().is_some() {} }).await;
    within("a successor", leaders.led()).await.unwrap();
    assert!(ensemble.agreed().await.1 > epoch);
}

#[tokio::test]
async fn hosts_have_names_and_machines_have_interfaces() {
    let mut ensemble = Ensemble::on("localhost", 3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
    ensemble.listen_on_all_ips = true;
    ensemble.start(leader).await;
    ensemble.agreed().await;
}

#[tokio::test]
async fn an_election_that_does_not_end_is_in_the_log() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut ensemble = Ensemble::new(3, 0);
    let first = ensemble.ids()[0];
    ensemble.start(first).await;
    // From here on time passes only when everybody waits, and then at once.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let failed = lines.with("leader election failed");
    assert_eq!(failed.len(), 3, "once every 30 s: {failed:#?}");
    assert!(failed[0].contains("WARN") && failed[0].contains("sid=1"), "{}", failed[0]);
    let metrics = ensemble.server(first).status().metrics;
    assert!(metrics.looking_for.is_some_and(|time| time >= Duration::from_secs(99)), "{metrics:?}");
    let story = lines.with("state");
    assert!(story.iter().all(|line| line.contains("reason=")), "{story:#?}");
}

#[tokio::test]
async fn one_server_is_an_ensemble() {
    let mut ensemble = Ensemble::new(1, 0);
    ensemble.start_all().await;
    assert_eq!(ensemble.agreed().await.0.0, 1);
}

#[tokio::test]
async fn changes_tell_the_story_and_do_not_hold_up_the_server() {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.changes_kept = 2;
    ensemble.start_all().await;
    let first = ensemble.ids()[0];
    let mut changes = ensemble.server(first).changes();
    let (leader, _) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    ensemble.agreed().await;
    // Nobody has read so far: two are left, the newest ones, and the others are counted.
    assert!(changes.lost() > 0);
    let (one, two) = (changes.try_next().unwrap(), changes.try_next().unwrap());
    assert!(one.at <= two.at);
    assert!(two.status.serving, "{}", two.report);
    assert_eq!(changes.try_next(), None);
}

/// What was logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn with(&self, words: &str) -> Vec<String> {
        let all = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        all.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
