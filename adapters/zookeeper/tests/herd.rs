//! One that goes wakes one, however many there are.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod peers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorate_zookeeper::{Candidate, Event, Notice, State};
use zookeeper_client::{Acls, Client, CreateMode, EventType};

use self::peers::{Ensemble, standing, within};

const CANDIDATES: usize = 200;
const KILLS: usize = 50;
const WATCHERS: usize = 100;

/// Events of ZooKeeper are counted by what a candidate does for each: it looks for its place again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_candidates_one_is_woken_by_each_death_of_a_leader() {
    let Some(ensemble) = Ensemble::start_with(1, &["maxClientCnxns=0"]).await else { return };
    let woken = Arc::new(AtomicUsize::new(0));
    let (mut all, mut counters) = (Vec::new(), Vec::new());
    for number in 0..CANDIDATES {
        let config = ensemble.config("/herd", &number.to_string());
        let config = config.session_timeout(Duration::from_secs(10));
        all.push(Candidate::start(config.deadline(Duration::from_secs(30))).await.unwrap());
    }
    for candidate in &all {
        let placed = |state| matches!(state, State::Ready | State::Elected);
        standing(candidate, "its place", |status| placed(status.state)).await;
    }
    let row = all[0].candidates().await.unwrap();
    assert_eq!(row.len(), CANDIDATES);
    // Whoever was placed while others came may look again; from here on nobody has a reason to.
    for candidate in &all {
        let (mut events, woken) = (candidate.events(), Arc::clone(&woken));
        counters.push(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if event == Event::Notice(Notice::DetermineStart) {
                    woken.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    let place =
        |contender: &quorate_zookeeper::Contender| contender.name().parse::<usize>().unwrap();
    let order: Vec<usize> = row.iter().map(place).collect();
    let mut before = None;
    for pair in order.windows(2).take(KILLS) {
        let leadership = within("leadership", all[pair[0]].leadership()).await.unwrap();
        assert!(before < Some(leadership.token()));
        before = Some(leadership.token());
        // The session ends with the last handle, as with a process.
        drop(leadership);
        all[pair[0]].stop().await;
        standing(&all[pair[1]], "the next to lead", |status| status.leads.is_some()).await;
    }
    // The last first: nobody stands behind them. What was on its way to anybody has come before the answer.
    for &number in order[KILLS..].iter().rev() {
        all[number].stop().await;
    }
    for counter in counters {
        within("the end of the events", counter).await.unwrap();
    }
    assert_eq!(woken.load(Ordering::Relaxed), KILLS);
}

/// What is avoided: all watch the leader's node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_naive_way_wakes_everybody() {
    let Some(ensemble) = Ensemble::start_with(1, &["maxClientCnxns=0"]).await else { return };
    let leader = ensemble.client().await;
    let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    leader.create("/leader", b"naive", &mode).await.unwrap();
    let (mut clients, mut watchers): (Vec<Client>, Vec<_>) = (Vec::new(), Vec::new());
    for _ in 1..WATCHERS {
        let client = ensemble.client().await;
        let (_, _, watcher) = client.get_and_watch_data("/leader").await.unwrap();
        watchers.push(tokio::spawn(watcher.changed()));
        clients.push(client);
    }
    leader.delete("/leader", None).await.unwrap();
    let mut woken = 0;
    for watcher in watchers {
        let event = within("a wake-up", watcher).await.unwrap();
        woken += usize::from(event.event_type == EventType::NodeDeleted);
    }
    assert_eq!(woken, WATCHERS - 1);
}
