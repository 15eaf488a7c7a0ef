//! What is proposed, and what is seen of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::zxid::Zxid;

use super::journal::{number, numbered, position};
use super::{App, Brake, Ensemble, Journal, Stage};
use crate::{
    ProposeError, Proposed, ReadError, Rejected, Replicated, Runtime, Server, UnknownOutcome,
};

pub async fn what_is_proposed_anywhere_is_applied_everywhere_in_one_order<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.journals(3, 1);
    ensemble.start_all().await;
    ensemble.agreed().await;
    let mut proposals = Vec::new();
    for (nth, (_, server)) in ensemble.running().enumerate() {
        for at in 0..50 {
            let (server, number) = (server.clone(), 1000 * nth + at);
            proposals.push(stage.spawn(async move {
                (number, server.propose(numbered(number, 8)).await.unwrap())
            }));
        }
    }
    let answered = stage.join_all("all answers", proposals).await;
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
        assert_eq!(stage.all_entries(server).await, expected, "server {id}");
        // The figures follow when the server has ended its turn.
        let counted = || {
            let metrics = server.status().metrics;
            (metrics.applied.0, metrics.outstanding) == (expected[199].0, 0)
        };
        stage.until("the figures", counted).await;
    }
}

pub async fn a_refusal_of_the_application_comes_in_its_turn<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let follower = ensemble.other_than(&[leader]);
    for id in [leader, follower] {
        let server = ensemble.server(id);
        let before = stage.propose(server, numbered(1, 8)).await.zxid;
        let refused = stage.within("a refusal", server.propose(Bytes::new())).await.unwrap_err();
        let reason = Rejected(-8);
        assert_eq!(refused, ProposeError::Rejected { zxid: Zxid(before.0 + 1), reason });
        assert!(!refused.may_have_happened());
    }
    assert_eq!(stage.all_entries(ensemble.server(leader)).await.len(), 2);
}

pub async fn a_single_server_replicates_to_itself_and_remembers<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(1, 0);
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    for number in 0..20 {
        let proposed = stage.propose(ensemble.server(id), numbered(number, 8)).await;
        assert_eq!(position(&proposed), number + 1);
    }
    let before = stage.all_entries(ensemble.server(id)).await;
    ensemble.kill(id).await;
    ensemble.start(id).await;
    ensemble.agreed().await;
    assert_eq!(stage.all_entries(ensemble.server(id)).await, before);
    assert_eq!(position(&stage.propose(ensemble.server(id), numbered(20, 8)).await), 21);
}

pub async fn a_read_sees_what_was_acknowledged_elsewhere<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 1);
    ensemble.start_all().await;
    ensemble.agreed().await;
    let servers: Vec<_> = ensemble.running().map(|(_, server)| server.clone()).collect();
    for number in 0..100 {
        let (writer, reader) = (&servers[number % 4], &servers[(number + 1 + number / 4) % 4]);
        stage.propose(writer, numbered(number, 8)).await;
        let read = reader.read(|journal| journal.machine().entries.len());
        assert_eq!(stage.within("a read", read).await.unwrap(), number + 1);
    }
}

pub async fn without_a_quorum_nothing_happens_and_whoever_asks_is_told<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    stage.propose(ensemble.server(leader), numbered(0, 8)).await;
    for id in ensemble.ids() {
        if id != leader {
            ensemble.kill(id).await;
        }
    }
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    let lost = async { while leaders.next().await.unwrap().is_some() {} };
    stage.within("losing the quorum", lost).await;
    let error = stage.within("a refusal", server.try_propose("x")).await.unwrap_err();
    assert!(matches!(error, ProposeError::Refused(_)), "{error}");
    assert!(!error.may_have_happened());
    let error = stage.within("a refusal", server.try_read(|_| ())).await.unwrap_err();
    assert!(matches!(error, ReadError::Refused(_)), "{error}");
    // What was delivered stays to be seen.
    assert_eq!(stage.entries(&server).await.len(), 1);
}

/// A proposal that a lonely leader has accepted is decided by the next leadership, whichever server leads it.
pub async fn a_request_that_is_under_way_survives_a_change_of_leader<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let mut unknown = 0;
    for round in 0..5 {
        let (leader, _) = ensemble.agreed().await;
        let follower = ensemble.other_than(&[leader]);
        let mut asked = Vec::new();
        for at in 0..20 {
            let server = ensemble.server(follower).clone();
            let number = 100 * round + at;
            asked.push(
                stage.spawn(async move { (number, server.propose(numbered(number, 8)).await) }),
            );
        }
        stage.pass().await;
        ensemble.kill(leader).await;
        ensemble.agreed().await;
        let outcomes = stage.join_all("all outcomes", asked).await;
        let entries = stage.all_entries(ensemble.server(follower)).await;
        for (number, outcome) in outcomes {
            let times = entries.iter().filter(|(_, entry)| *entry == numbered(number, 8)).count();
            match outcome {
                Ok(Proposed { zxid, .. }) => {
                    assert_eq!(times, 1, "{number}");
                    assert!(entries.contains(&(zxid.0, numbered(number, 8))));
                }
                // On a busy machine a second leader may follow at once, and replace what the first one has left here.
                Err(ProposeError::Unknown(UnknownOutcome::Snapshot)) => {
                    assert!(times <= 1, "{number}");
                    unknown += 1;
                }
                Err(error) => {
                    assert!(!error.may_have_happened(), "{number}: {error}");
                    assert_eq!(times, 0, "{number}: {error}");
                }
            }
        }
        ensemble.start(leader).await;
    }
    assert!(unknown < 5 * 20, "no outcome was known");
}

pub async fn what_was_acknowledged_survives_leaders_killed_under_load<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.snap_count = 200;
        config.core.history.window_count = 50;
    };
    ensemble.start_all().await;
    ensemble.agreed().await;
    let load = Load::default();
    for round in 0..6 {
        load.enough.store(false, Ordering::Relaxed);
        let mut clients = Vec::new();
        for (_, server) in ensemble.running() {
            for _ in 0..8 {
                clients.push(stage.spawn(load.clone().run(server.clone())));
            }
        }
        load.more(&stage, 150).await;
        let (leader, _) = ensemble.agreed().await;
        ensemble.kill(leader).await;
        // The others go on.
        load.more(&stage, 150).await;
        ensemble.start(leader).await;
        ensemble.agreed().await;
        load.more(&stage, 50).await;
        load.enough.store(true, Ordering::Relaxed);
        stage.join_all("all clients", clients).await;

        let (leader, _) = ensemble.agreed().await;
        let expected = stage.all_entries(ensemble.server(leader)).await;
        for (id, server) in ensemble.running() {
            assert!(stage.all_entries(server).await == expected, "server {id} in round {round}");
        }
        let mut times = BTreeMap::<_, usize>::new();
        for (_, entry) in &expected {
            *times.entry(number(entry)).or_default() += 1;
        }
        let acknowledged = load.acknowledged.lock().unwrap();
        let doubtful = load.doubtful.lock().unwrap();
        for number in &*acknowledged {
            assert_eq!(times.remove(number), Some(1), "{number} was acknowledged");
        }
        for (number, times) in times {
            assert!(times == 1 && doubtful.contains(&number), "{number}, {times} times");
        }
    }
}

/// Clients that propose numbers until each is acknowledged or in doubt.
#[derive(Clone, Default)]
struct Load {
    acknowledged: Arc<Mutex<Vec<usize>>>,
    doubtful: Arc<Mutex<Vec<usize>>>,
    next: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
}

impl Load {
    async fn run<R: Runtime>(self, server: Server<R, App>) {
        while !self.enough.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
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
    async fn more<R: Runtime>(&self, stage: &Stage<R>, count: usize) {
        let acknowledged = || self.acknowledged.lock().unwrap().len();
        let wanted = acknowledged() + count;
        stage.until("acknowledgements", || acknowledged() >= wanted).await;
    }
}

pub async fn snapshots_are_taken_and_old_files_go_while_the_server_runs<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.snap_count = 20;
        config.core.history.window_count = 10;
        config.preallocate = 4096;
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let server = ensemble.server(leader).clone();
    // Where snapshots take long, others are due when they are done.
    let gone = |id| {
        let count = |prefix| files(&ensemble, id, prefix).len();
        (2..=4).contains(&count("snapshot.")) && count("log.") <= 8
    };
    let writing = async {
        for number in 0.. {
            stage.propose(&server, numbered(number, 8)).await;
            if number >= 600 && number % 20 == 0 && ensemble.ids().into_iter().all(gone) {
                return;
            }
        }
    };
    stage.within("old files to go", writing).await;
    let expected = stage.all_entries(&server).await;
    for id in ensemble.ids() {
        ensemble.kill(id).await;
    }
    ensemble.start_all().await;
    ensemble.agreed().await;
    for (id, server) in ensemble.running() {
        assert!(stage.all_entries(server).await == expected, "server {id}");
    }
}

/// Its seals tell that it is not what was written; the log leads to the end from an older one.
pub async fn a_snapshot_that_is_damaged_is_passed_over_at_start<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(1, 0);
    ensemble.adjust = |config| config.core.history.snap_count = 20;
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    for number in 0..100 {
        stage.propose(ensemble.server(id), numbered(number, 100)).await;
    }
    let expected = stage.all_entries(ensemble.server(id)).await;
    stage.within("shutdown", ensemble.take(id).shutdown()).await.unwrap();
    let (_, newest) = files(&ensemble, id, "snapshot.").pop_last().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    ensemble.start(id).await;
    ensemble.agreed().await;
    assert!(stage.all_entries(ensemble.server(id)).await == expected);
}

/// The files of a server whose names are this and a zxid.
fn files<R: Runtime>(
    ensemble: &Ensemble<R, App>,
    id: ServerId,
    prefix: &str,
) -> BTreeMap<i64, PathBuf> {
    let dir = std::fs::read_dir(ensemble.data_dir(id).join("version-2")).unwrap();
    let paths = dir.map(|file| file.unwrap().path());
    let zxid = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        i64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()
    };
    paths.filter_map(|path| Some((zxid(&path)?, path))).collect()
}

/// Its server acknowledges, pings and votes all the same, and it comes after when it can.
pub async fn a_slow_application_holds_up_nobody_else<R: Runtime>(stage: Stage<R>) {
    let (brake, slow) = (Arc::new(Brake::default()), ServerId(1));
    let pulled = Arc::clone(&brake);
    let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [3, 0], move |id| {
        let brake = if id == slow { Arc::clone(&pulled) } else { Arc::default() };
        Replicated::new("journal", Journal { brake, ..Journal::default() })
    });
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    assert_ne!(leader, slow, "the one with the lowest id is not elected");
    brake.pull();
    let proposed = stage.propose_many(ensemble.server(leader), 200).await;
    let last = proposed.iter().map(|proposed| proposed.zxid).max().unwrap();
    let applied = ensemble.server(slow).status().metrics.applied;
    assert!(applied < last, "it is not slow, {applied}");
    // It still takes part: without its vote and its disk there would be no quorum.
    let other = ensemble.other_than(&[leader, slow]);
    ensemble.kill(other).await;
    stage.propose(ensemble.server(leader), numbered(200, 8)).await;
    assert_eq!(ensemble.agreed().await, (leader, epoch));
    brake.release();
    assert_eq!(stage.all_entries(ensemble.server(slow)).await.len(), 201);
}
