//! A replicated state machine on loopback: real sockets, real files, no sleeps but where time is what
//! is tested.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

mod common;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Ensemble, within};
use quorate_core::id::ServerId;
use quorate_core::report::{Change, How};
use quorate_core::zxid::Zxid;
use quorate_tokio::{
    Changes, Doubt, ProposeError, Proposed, ReadError, Rejected, Replicated, RestoreError, Server,
    StateMachine,
};

/// All commands, in the order in which they were applied. Replies with how many there are.
#[derive(Debug, Default)]
struct Journal {
    /// A command is a number and padding; the zxid is kept to see that none comes twice.
    entries: Arc<Vec<(i64, Bytes)>>,
    /// Microseconds that applying takes.
    pause: Arc<AtomicU64>,
}

impl StateMachine for Journal {
    type State = Arc<Vec<(i64, Bytes)>>;

    fn prepare(&mut self, request: &Bytes) -> Result<Bytes, Rejected> {
        if request.is_empty() { Err(Rejected(-8)) } else { Ok(request.clone()) }
    }

    fn apply(&mut self, zxid: Zxid, command: &[u8]) -> Bytes {
        let pause = Duration::from_micros(self.pause.load(Ordering::Relaxed));
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let entries = Arc::make_mut(&mut self.entries);
        entries.push((zxid.0, Bytes::copy_from_slice(command)));
        Bytes::copy_from_slice(&entries.len().to_be_bytes())
    }

    fn save(&self) -> Self::State {
        Arc::clone(&self.entries)
    }

    fn load(&mut self, state: Self::State) {
        self.entries = state;
    }

    fn write(state: Self::State, to: &mut dyn Write) -> io::Result<()> {
        for (zxid, command) in &*state {
            to.write_all(&zxid.to_be_bytes())?;
            to.write_all(&command.len().to_be_bytes())?;
            to.write_all(command)?;
        }
        Ok(())
    }

    fn read(from: &mut dyn Read) -> Result<Self::State, RestoreError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        let (mut rest, mut entries) = (&bytes[..], Vec::new());
        while let Some((zxid, behind)) = rest.split_first_chunk() {
            let (length, behind) = behind.split_first_chunk().ok_or("cut short")?;
            let (command, behind) =
                behind.split_at_checked(usize::from_be_bytes(*length)).ok_or("cut short")?;
            entries.push((i64::from_be_bytes(*zxid), Bytes::copy_from_slice(command)));
            rest = behind;
        }
        Ok(entries.into())
    }
}

type App = Replicated<Journal>;

fn journals(voters: usize, observers: usize) -> Ensemble<App> {
    Ensemble::of(voters, observers, |_| Replicated::new("journal", Journal::default()))
}

/// What a server has, without waiting for anybody.
async fn entries(server: &Server<App>) -> Vec<(i64, Bytes)> {
    let seen = server.peek(|journal| journal.machine().entries.to_vec());
    within("a look", seen).await.unwrap()
}

/// What a server has, when it has everything.
async fn all_entries(server: &Server<App>) -> Vec<(i64, Bytes)> {
    let seen = server.read(|journal| journal.machine().entries.to_vec());
    within("a read", seen).await.unwrap()
}

async fn propose(server: &Server<App>, command: impl Into<Bytes>) -> Proposed {
    within("a proposal", server.propose(command.into())).await.unwrap()
}

fn position(proposed: &Proposed) -> usize {
    usize::from_be_bytes(proposed.reply[..].try_into().unwrap())
}

fn numbered(number: usize, length: usize) -> Bytes {
    let mut command = vec![0; length.max(8)];
    command[..8].copy_from_slice(&number.to_be_bytes());
    command.into()
}

fn number(command: &[u8]) -> usize {
    usize::from_be_bytes(command[..8].try_into().unwrap())
}

/// Waits until a server is brought up, and says how.
async fn brought_up(changes: &mut Changes) -> How {
    within("being brought up", async {
        loop {
            let observed = changes.next().await.unwrap();
            if let Change::Sync { how, .. } = observed.report.change {
                return how;
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_proposed_anywhere_is_applied_everywhere_in_one_order() {
    let mut ensemble = journals(3, 1);
    ensemble.start_all().await;
    ensemble.agreed().await;
    let mut proposals = tokio::task::JoinSet::new();
    for (nth, (_, server)) in ensemble.running().enumerate() {
        for at in 0..50 {
            let (server, number) = (server.clone(), 1000 * nth + at);
            proposals.spawn(async move { (number, propose(&server, numbered(number, 8)).await) });
        }
    }
    let answered = within("all answers", proposals.join_all()).await;
    let mut expected: Vec<_> = answered
        .iter()
        .map(|(number, proposed)| (position(proposed), proposed.zxid.0, *number))
        .collect();
    expected.sort_unstable();
    let expected: Vec<_> = expected
        .into_iter()
        .enumerate()
        .map(|(at, (position, zxid, number))| {
            assert_eq!(position, at + 1, "each is applied once");
            (zxid, numbered(number, 8))
        })
        .collect();
    assert_eq!(expected.len(), 200);
    assert!(expected.is_sorted_by_key(|(zxid, _)| *zxid));
    for (id, server) in ensemble.running() {
        assert_eq!(all_entries(server).await, expected, "server {id}");
        let metrics = server.status().metrics;
        assert_eq!((metrics.applied.0, metrics.outstanding), (expected[199].0, 0), "server {id}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_application_comes_in_its_turn() {
    let mut ensemble = journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let follower = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
    for id in [leader, follower] {
        let server = ensemble.server(id);
        let before = propose(server, numbered(1, 8)).await.zxid;
        let refused = within("a refusal", server.propose(Bytes::new())).await.unwrap_err();
        let reason = Rejected(-8);
        assert_eq!(refused, ProposeError::Rejected { zxid: Zxid(before.0 + 1), reason });
        assert!(!refused.may_have_happened());
    }
    assert_eq!(all_entries(ensemble.server(leader)).await.len(), 2);
}

#[tokio::test]
async fn a_single_server_replicates_to_itself_and_remembers() {
    let mut ensemble = journals(1, 0);
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    for number in 0..20 {
        assert_eq!(position(&propose(ensemble.server(id), numbered(number, 8)).await), number + 1);
    }
    let before = all_entries(ensemble.server(id)).await;
    ensemble.kill(id).await;
    ensemble.start(id).await;
    ensemble.agreed().await;
    assert_eq!(all_entries(ensemble.server(id)).await, before);
    assert_eq!(position(&propose(ensemble.server(id), numbered(20, 8)).await), 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_gets_what_it_missed() {
    let mut ensemble = journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let absent = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
    propose(ensemble.server(absent), numbered(0, 8)).await;
    ensemble.kill(absent).await;
    for number in 1..100 {
        propose(ensemble.server(leader), numbered(number, 8)).await;
    }
    let mut changes = ensemble.server(leader).changes();
    ensemble.start(absent).await;
    assert_eq!(brought_up(&mut changes).await, How::Diff);
    ensemble.agreed().await;
    // What it inherited was delivered before it said that it serves.
    let server = ensemble.server(absent);
    assert_eq!(all_entries(server).await, all_entries(ensemble.server(leader)).await);
    assert_eq!(position(&propose(server, numbered(100, 8)).await), 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_missed_is_read_from_the_log_if_memory_has_it_no_more() {
    let mut ensemble = journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.window_count = 5;
        // Whatever it costs.
        config.core.history.size_percent = Some(u64::MAX);
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let absent = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
    // Whoever has nothing gets a snapshot.
    propose(ensemble.server(absent), numbered(0, 8)).await;
    ensemble.kill(absent).await;
    let writer = ensemble.server(leader).clone();
    for number in 1..30 {
        propose(&writer, numbered(number, 100_000)).await;
    }
    let mut changes = writer.changes();
    ensemble.start(absent).await;
    assert_eq!(brought_up(&mut changes).await, How::Diff);
    ensemble.agreed().await;
    assert!(all_entries(ensemble.server(absent)).await == all_entries(&writer).await);
}

/// The state is some ten pieces of a stream long, and more is written while it is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_server_gets_a_snapshot() {
    let mut ensemble = journals(3, 1);
    ensemble.adjust = |config| {
        config.core.history.window_count = 5;
        config.core.history.size_percent = None;
    };
    let ids = ensemble.ids();
    for id in &ids[..2] {
        ensemble.start(*id).await;
    }
    let (leader, _) = ensemble.agreed().await;
    let writer = ensemble.server(leader).clone();
    for number in 0..40 {
        propose(&writer, numbered(number, 100_000)).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let goes_on = tokio::spawn({
        let (writer, enough) = (writer.clone(), Arc::clone(&enough));
        async move {
            let mut number = 40;
            while !enough.load(Ordering::Relaxed) {
                propose(&writer, numbered(number, 1000)).await;
                number += 1;
            }
        }
    });
    for id in &ids[2..] {
        let mut changes = writer.changes();
        ensemble.start(*id).await;
        assert_eq!(brought_up(&mut changes).await, How::Snap, "server {id}");
        ensemble.agreed().await;
    }
    enough.store(true, Ordering::Relaxed);
    goes_on.await.unwrap();
    let expected = all_entries(&writer).await;
    for id in &ids {
        assert!(all_entries(ensemble.server(*id)).await == expected, "server {id}");
    }
    // What they got is on their disks.
    let (last, _) = (ids[2], ensemble.kill(ids[2]).await);
    ensemble.start(last).await;
    ensemble.agreed().await;
    assert!(all_entries(ensemble.server(last)).await == expected);
    assert_eq!(position(&propose(ensemble.server(last), numbered(9, 8)).await), expected.len() + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_sees_what_was_acknowledged_elsewhere() {
    let mut ensemble = journals(3, 1);
    ensemble.start_all().await;
    ensemble.agreed().await;
    let servers: Vec<_> = ensemble.running().map(|(_, server)| server.clone()).collect();
    for number in 0..100 {
        let (writer, reader) = (&servers[number % 4], &servers[(number + 1 + number / 4) % 4]);
        propose(writer, numbered(number, 8)).await;
        let read = reader.read(|journal| journal.machine().entries.len());
        assert_eq!(within("a read", read).await.unwrap(), number + 1);
    }
}

#[tokio::test]
async fn without_a_quorum_nothing_happens_and_whoever_asks_is_told() {
    let mut ensemble = journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    propose(ensemble.server(leader), numbered(0, 8)).await;
    for id in ensemble.ids() {
        if id != leader {
            ensemble.kill(id).await;
        }
    }
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    within("losing the quorum", async { while leaders.next().await.unwrap().is_some() {} }).await;
    let error = within("a refusal", server.propose("x")).await.unwrap_err();
    assert!(matches!(error, ProposeError::Refused(_)), "{error}");
    assert!(!error.may_have_happened());
    let error = within("a refusal", server.catch_up()).await.unwrap_err();
    assert!(matches!(error, ReadError::Refused(_)), "{error}");
    // What was delivered stays to be seen.
    assert_eq!(entries(&server).await.len(), 1);
    within("shutdown", server.shutdown()).await.unwrap();
    assert_eq!(server.propose("x").await.unwrap_err(), ProposeError::Ended);
    assert_eq!(server.peek(|_| ()).await.unwrap_err(), ReadError::Ended);
}

/// A proposal that a lonely leader has accepted is decided by the next reign, whoever leads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_under_way_survives_a_change_of_leader() {
    let mut ensemble = journals(3, 0);
    ensemble.start_all().await;
    for round in 0..5 {
        let (leader, _) = ensemble.agreed().await;
        let follower = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
        let mut asked = tokio::task::JoinSet::new();
        for at in 0..20 {
            let server = ensemble.server(follower).clone();
            let number = 100 * round + at;
            asked.spawn(async move { (number, server.propose(numbered(number, 8)).await) });
        }
        tokio::task::yield_now().await;
        ensemble.kill(leader).await;
        ensemble.agreed().await;
        let outcomes = within("all outcomes", asked.join_all()).await;
        let entries = all_entries(ensemble.server(follower)).await;
        for (number, outcome) in outcomes {
            let times = entries.iter().filter(|(_, entry)| *entry == numbered(number, 8)).count();
            match outcome {
                Ok(Proposed { zxid, .. }) => {
                    assert_eq!(times, 1, "{number}");
                    assert!(entries.contains(&(zxid.0, numbered(number, 8))));
                }
                Err(error) => {
                    assert!(!error.may_have_happened(), "{number}: {error}");
                    assert_eq!(times, 0, "{number}: {error}");
                }
            }
        }
        ensemble.start(leader).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_leaders_killed_under_load() {
    let mut ensemble = journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.snap_count = 200;
        config.core.history.window_count = 50;
    };
    ensemble.start_all().await;
    ensemble.agreed().await;
    let (acknowledged, doubtful, next) = (Arc::default(), Arc::default(), Arc::default());
    let mut epochs = 0;
    for round in 0..6 {
        let load = Load {
            acknowledged: Arc::clone(&acknowledged),
            doubtful: Arc::clone(&doubtful),
            next: Arc::clone(&next),
            enough: Arc::default(),
        };
        let mut clients = tokio::task::JoinSet::new();
        for (_, server) in ensemble.running() {
            for _ in 0..8 {
                clients.spawn(load.clone().run(server.clone()));
            }
        }
        load.more(150).await;
        let (leader, epoch) = ensemble.agreed().await;
        epochs = epochs.max(epoch.0);
        ensemble.kill(leader).await;
        // The others go on.
        load.more(150).await;
        ensemble.start(leader).await;
        ensemble.agreed().await;
        load.more(50).await;
        load.enough.store(true, Ordering::Relaxed);
        within("all clients", clients.join_all()).await;

        let (leader, _) = ensemble.agreed().await;
        let expected = all_entries(ensemble.server(leader)).await;
        for (id, server) in ensemble.running() {
            assert!(all_entries(server).await == expected, "server {id} in round {round}");
        }
        let mut times = BTreeMap::<_, usize>::new();
        for (_, entry) in &expected {
            *times.entry(number(entry)).or_default() += 1;
        }
        let acknowledged = acknowledged.lock().unwrap();
        let doubtful = doubtful.lock().unwrap();
        for number in &*acknowledged {
            assert_eq!(times.remove(number), Some(1), "{number} was acknowledged");
        }
        for (number, times) in times {
            assert!(times == 1 && doubtful.contains(&number), "{number}, {times} times");
        }
        println!("{} acknowledged, {} doubtful", acknowledged.len(), doubtful.len());
    }
}

/// Clients that propose numbers until each is acknowledged or in doubt.
#[derive(Clone)]
struct Load {
    acknowledged: Arc<std::sync::Mutex<Vec<usize>>>,
    doubtful: Arc<std::sync::Mutex<Vec<usize>>>,
    next: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
}

impl Load {
    async fn run(self, server: Server<App>) {
        while !self.enough.load(Ordering::Relaxed) {
            let number = usize::try_from(self.next.fetch_add(1, Ordering::Relaxed)).unwrap();
            loop {
                match server.propose(numbered(number, 50)).await {
                    Ok(_) => {
                        self.acknowledged.lock().unwrap().push(number);
                        break;
                    }
                    Err(error) if error.may_have_happened() => {
                        self.doubtful.lock().unwrap().push(number);
                        break;
                    }
                    Err(ProposeError::Ended) => return,
                    // It did not happen: once more, when there is a leader.
                    Err(_) if self.enough.load(Ordering::Relaxed) => return,
                    Err(_) => drop(server.leaders().led().await),
                }
            }
        }
    }

    /// Waits until so many more are acknowledged.
    async fn more(&self, count: usize) {
        let acknowledged = || self.acknowledged.lock().unwrap().len();
        let wanted = acknowledged() + count;
        within("acknowledgements", async {
            while acknowledged() < wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_taken_and_old_files_go_while_the_server_runs() {
    let mut ensemble = journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.snap_count = 20;
        config.core.history.window_count = 10;
        config.preallocate = 4096;
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let server = ensemble.server(leader).clone();
    for number in 0..600 {
        propose(&server, numbered(number, 8)).await;
    }
    let files = |id: ServerId, prefix: &str| {
        let dir = std::fs::read_dir(ensemble.data_dir(id).join("version-2")).unwrap();
        dir.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(prefix))
            .count()
    };
    for id in ensemble.ids() {
        // The last snapshot may be on its way.
        within("old files to go", async {
            while !(2..=4).contains(&files(id, "snapshot.")) || files(id, "log.") > 8 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    let expected = all_entries(&server).await;
    for id in ensemble.ids() {
        ensemble.kill(id).await;
    }
    ensemble.start_all().await;
    ensemble.agreed().await;
    for (id, server) in ensemble.running() {
        assert!(all_entries(server).await == expected, "server {id}");
    }
}

/// Its seals tell that it is not what was written; the log leads to the end from an older one.
#[tokio::test]
async fn a_snapshot_that_is_damaged_is_passed_over_at_start() {
    let mut ensemble = journals(1, 0);
    ensemble.adjust = |config| config.core.history.snap_count = 20;
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    let snapshots = |ensemble: &Ensemble<App>| {
        let dir = std::fs::read_dir(ensemble.data_dir(id).join("version-2")).unwrap();
        let paths = dir.map(|file| file.unwrap().path());
        let label = |path: &std::path::PathBuf| {
            let name = path.file_name()?.to_str()?;
            i64::from_str_radix(name.strip_prefix("snapshot.")?, 16).ok()
        };
        paths.filter_map(|path| Some((label(&path)?, path))).collect::<BTreeMap<_, _>>()
    };
    for number in 0..100 {
        propose(ensemble.server(id), numbered(number, 100)).await;
    }
    let expected = all_entries(ensemble.server(id)).await;
    within("shutdown", ensemble.take(id).shutdown()).await.unwrap();
    let (_, newest) = snapshots(&ensemble).pop_last().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    ensemble.start(id).await;
    ensemble.agreed().await;
    assert!(all_entries(ensemble.server(id)).await == expected);
}

/// Its server acknowledges, pings and votes all the same, and it comes after as fast as it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_application_holds_up_nobody_else() {
    let pause = Arc::new(AtomicU64::new(0));
    let slow = ServerId(1);
    let paused = Arc::clone(&pause);
    let mut ensemble = Ensemble::of(3, 0, move |id| {
        let pause = if id == slow { Arc::clone(&paused) } else { Arc::default() };
        Replicated::new("journal", Journal { pause, ..Journal::default() })
    });
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    assert_ne!(leader, slow, "the one with the lowest id is not elected");
    pause.store(20_000, Ordering::Relaxed);
    let begun = Instant::now();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..200 {
        let server = ensemble.server(leader).clone();
        asked.spawn(async move { propose(&server, numbered(number, 8)).await });
    }
    let answers = within("all answers", asked.join_all()).await;
    let took = begun.elapsed();
    let last = answers.iter().map(|proposed| proposed.zxid).max().unwrap();
    let applied = ensemble.server(slow).status().metrics.applied;
    assert!(applied < last, "{took:?}: it is not slow, {applied}");
    // It still takes part: without its vote and its disk there would be no quorum.
    let other = ensemble.ids().into_iter().find(|id| ![leader, slow].contains(id)).unwrap();
    ensemble.kill(other).await;
    propose(ensemble.server(leader), numbered(200, 8)).await;
    assert_eq!(ensemble.agreed().await, (leader, epoch));
    pause.store(0, Ordering::Relaxed);
    assert_eq!(all_entries(ensemble.server(slow)).await.len(), 201);
}

#[tokio::test]
async fn the_end_of_a_server_is_told_to_those_who_wait() {
    let mut ensemble = journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for id in ensemble.ids() {
        if id != leader {
            ensemble.kill(id).await;
        }
    }
    // Nobody is there to acknowledge it; the leader may not have noticed yet.
    let server = ensemble.take(leader);
    let asked = tokio::spawn({
        let server = server.clone();
        async move { server.propose("x").await }
    });
    tokio::task::yield_now().await;
    within("kill", server.kill()).await;
    let error = within("an answer", asked).await.unwrap().unwrap_err();
    let expected = [ProposeError::Unknown(Doubt::Ended), ProposeError::Ended];
    assert!(expected.contains(&error) || matches!(error, ProposeError::Refused(_)), "{error}");
}
