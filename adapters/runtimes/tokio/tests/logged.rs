//! What a server logs, with tokio's clock in our hands.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_driver::testing::{Stage, renewals, rotations, tls};
use quorate_tokio::Tokio;

#[tokio::test]
async fn an_election_that_does_not_end_is_in_the_log() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut ensemble = Stage::new([Tokio]).electors(3, 0);
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
    assert!(failed[0].contains(r#"event="election.failed""#), "{}", failed[0]);
    let votes = lines.with(r#"event="election.vote_changed""#);
    assert!(votes.iter().any(|line| line.contains("round=1")), "{votes:#?}");
    let story = lines.with("state");
    assert!(story.iter().all(|line| line.contains("reason=")), "{story:#?}");
}

/// Once for each peer, so that an operator knows who still links without TLS when there should be none.
#[tokio::test]
async fn a_peer_without_tls_is_in_the_log_once() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tls::a_peer_without_tls_comes_again_and_again(Stage::new([Tokio])).await;
    let told = lines.with("tls.plain_link");
    assert!(told.len() == 1 && told[0].contains("peer=201"), "{told:#?}");
}

#[tokio::test]
async fn links_that_are_made_anew_are_in_the_log() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    renewals::an_authority_is_replaced_in_three_steps_while_writes_go_on(Stage::new([Tokio])).await;
    let told = lines.with("tls.closed");
    assert!(told.len() >= 2 && told[0].contains("unknown-authority"), "{told:#?}");
    assert!(lines.with("tls.reloaded").len() >= 9);
}

#[tokio::test]
async fn a_store_that_was_not_good_is_tried_again_though_it_looks_the_same() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let has_failed = || !lines.with("tls.reload_failed").is_empty();
    let stage = Stage::new([Tokio]);
    rotations::a_store_that_was_not_good_is_tried_again_though_it_looks_the_same(stage, has_failed)
        .await;
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
