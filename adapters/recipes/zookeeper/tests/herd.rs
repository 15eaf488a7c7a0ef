//! One that goes wakes one, however many there are.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod peers;
#[path = "peers/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorate_zookeeper::{Candidate, Event, Naming, Notice, Settings, State};
use zookeeper_client::{Acls, Client, CreateMode, EventType};

use self::peers::{Ensemble, standing, until, within};
use self::process::{Kind, Process};

const CANDIDATES: usize = 200;
const KILLS: usize = 50;
const WATCHERS: usize = 100;

/// The first fifty of the row are processes, and killed one after the other: each time the server tells one watch of
/// one node, and one candidate looks for its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_candidates_one_is_woken_by_each_death_of_a_leader() {
    let properties = ["maxClientCnxns=0", "tickTime=100", "maxSessionTimeout=60000"];
    let Some(ensemble) = Ensemble::start_with(1, &properties).await else { return };
    // Nobody's session ends before its time, however busy this machine is.
    let session = Duration::from_secs(60);
    let mut doomed = BTreeMap::new();
    for number in 0..KILLS {
        let (name, kind) = (format!("doomed {number}"), Kind::Ours(Naming::Guid));
        let process = Process::start(kind, &ensemble, "/herd", &name, session).await;
        doomed.insert(name, process);
    }
    let is_placed = |one: &Process| one.times("leads") + one.times("ready") > 0;
    until("fifty processes", async || doomed.values().all(is_placed).then_some(())).await;
    let mut others = Vec::new();
    for number in KILLS..CANDIDATES {
        let settings = Settings::new(number.to_string())
            .session_timeout(session)
            .deadline(Duration::from_secs(30));
        let config = ensemble.config_with("/herd", settings);
        others.push(Candidate::start(config).await.unwrap());
    }
    for candidate in &others {
        standing(candidate, "its place", |status| status.state == State::Ready).await;
    }
    let row = others[0].candidates().await.unwrap();
    let order: Vec<_> = row.iter().map(|one| one.name().into_owned()).collect();
    assert_eq!(order.len(), CANDIDATES);
    let heir: usize = order[KILLS].parse().unwrap();

    // Whoever was placed while others came may look again; from here on nobody has a reason to.
    let woken = Arc::new(AtomicUsize::new(0));
    for candidate in &others {
        let (mut events, woken) = (candidate.events(), Arc::clone(&woken));
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if event == Event::Notice(Notice::DetermineStart) {
                    woken.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let looks = |doomed: &BTreeMap<String, Process>| {
        doomed.values().map(|one| one.times("looks")).sum::<usize>()
    };
    let before = looks(&doomed);
    assert_eq!(deletions_told(&ensemble).await, 0);
    let mut token = None;
    for (killed, name) in order[..KILLS].iter().enumerate() {
        doomed[name].says("leads").await;
        let next = Some(doomed[name].tells("token").await.parse::<u64>().unwrap());
        assert!(token < next, "{next:?} after {token:?}");
        token = next;
        assert_eq!(looks(&doomed) - before, killed);
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        doomed.get_mut(name).unwrap().kill(Duration::ZERO).await;
        until("the end of a session", async || {
            (deletions_told(&ensemble).await > killed).then_some(())
        })
        .await;
        assert_eq!(deletions_told(&ensemble).await, killed + 1, "watches of what was deleted");
    }
    let leadership = within("leadership", others[heir - KILLS].leadership()).await.unwrap();
    assert!(token < Some(leadership.token().as_u64()));
    // What was on its way to anybody has come before the answer.
    for candidate in &others {
        candidate.leader().await.unwrap();
    }
    assert_eq!((looks(&doomed) - before, woken.load(Ordering::Relaxed)), (KILLS - 1, 1));
}

/// How many watches the server has told of a deletion so far.
async fn deletions_told(ensemble: &Ensemble) -> usize {
    let figures = ensemble.servers[0].as_ref().unwrap().ask("mntr").await.unwrap();
    let told =
        figures.lines().find_map(|line| line.strip_prefix("zk_sum_node_deleted_watch_count"));
    told.unwrap_or_else(|| panic!("{figures}")).trim().parse().unwrap()
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
