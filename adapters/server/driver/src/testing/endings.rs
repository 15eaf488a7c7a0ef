//! How a server ends, and what becomes of those who want something of it then.

use std::fs;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::FutureExt;
use futures_lite::future::or;
use quorate_core::id::ServerId;

use super::{App, Brake, Ensemble, Journal, Stage, Witnessed};
use crate::{ProposeError, ReadError, Replicated, Runtime, Server, ServerError, UnknownOutcome};

pub async fn the_end_of_a_server_is_told_to_those_who_wait<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for id in ensemble.ids() {
        if id != leader {
            ensemble.kill(id).await;
        }
    }
    // No follower is there to acknowledge it; the leader may not have noticed yet.
    let server = ensemble.take(leader);
    let asked = stage.spawn({
        let server = server.clone();
        async move { server.propose("x").await }
    });
    stage.pass().await;
    stage.within("kill", server.kill()).await;
    let error = stage.within("an answer", asked.join()).await.unwrap_err();
    let expected = [ProposeError::Unknown(UnknownOutcome::Ended), ProposeError::Ended];
    assert!(expected.contains(&error) || matches!(error, ProposeError::Refused(_)), "{error}");
}

/// Everything that can be asked of it is answered at once; its successor is another server.
pub async fn a_handle_kept_after_the_end_says_so<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.core.history.requests = 2;
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let kept = ensemble.take(leader);
    stage.within("shutdown", kept.shutdown()).await.unwrap();
    has_ended(&stage, &kept).await;
    ensemble.start(leader).await;
    ensemble.agreed().await;
    has_ended(&stage, &kept).await;
    stage.propose(ensemble.server(leader), "x").await;
    drop(kept);
    stage.propose(ensemble.server(leader), "y").await;
}

/// Asks more often than there is room, so that a place that is not given back is missed.
async fn has_ended<R: Runtime>(stage: &Stage<R>, server: &Server<R, App>) {
    let asks = async {
        for _ in 0..4 {
            assert_eq!(server.propose("x").await, Err(ProposeError::Ended));
            assert_eq!(server.read(|_| ()).await, Err(ReadError::Ended));
            assert_eq!(server.read_local(|_| ()).await, Err(ReadError::Ended));
            assert_eq!(server.sync().await, Err(ReadError::Ended));
        }
        assert_eq!(server.leader(), None);
        assert_eq!(server.leaders().next().await, None);
        assert_eq!(server.leaders().led().await, None);
        assert_eq!(server.changes().next().await, None);
        server.step_down().await;
        server.kill().await;
    };
    stage.within("answers", asks).await;
    assert_eq!(server.status().peer.id, server.id());
}

/// In an ensemble whose server 1 panics at a command.
fn one_is_fragile<R: Runtime>(stage: &Stage<R>, brake: &Arc<Brake>) -> Ensemble<R, App> {
    let brake = Arc::clone(brake);
    let starts = std::cell::Cell::new(0);
    Ensemble::new(stage, "127.0.0.1", [3, 0], move |id| {
        let mut journal = Journal::default();
        if id == FRAGILE && starts.replace(starts.get() + 1) == 0 {
            journal.fatal = Some(Bytes::from_static(FATAL));
            journal.brake = Arc::clone(&brake);
        }
        Replicated::new("journal", journal)
    })
}

pub async fn a_panic_of_the_application_ends_its_server_only<R: Runtime>(stage: Stage<R>) {
    let ensemble = one_is_fragile(&stage, &Arc::default());
    panics(stage, ensemble, &Brake::default()).await;
}

pub async fn a_panic_of_the_application_on_its_thread_ends_its_server_only<R: Runtime>(
    stage: Stage<R>,
) {
    let brake = Arc::new(Brake::default());
    let ensemble = one_is_fragile(&stage, &brake);
    brake.pull();
    panics(stage, ensemble, &brake).await;
}

async fn panics<R: Runtime>(stage: Stage<R>, mut ensemble: Ensemble<R, App>, brake: &Brake) {
    ensemble.start_all().await;
    let leadership = ensemble.agreed().await;
    assert_ne!(leadership.0, FRAGILE, "the one with the lowest id is not elected");
    let fragile = ensemble.take(FRAGILE);
    let mut leaders = fragile.leaders();
    stage.propose_many(ensemble.server(leadership.0), MANY).await;
    let asked = stage.spawn({
        let fragile = fragile.clone();
        async move { fragile.propose(FATAL).await }
    });
    // It is agreed on all the same.
    let leader = ensemble.server(leadership.0).clone();
    let holds = |journal: &App| journal.machine().entries.iter().any(|(_, entry)| entry == FATAL);
    let agreed = async { while !leader.read(holds).await.unwrap() {} };
    stage.within("an agreement", agreed).await;
    brake.release();
    let error = stage.within("an answer", asked.join()).await.unwrap_err();
    assert_eq!(error, ProposeError::Unknown(UnknownOutcome::Ended));
    let outcome = stage.within("the end", fragile.finished()).await;
    assert!(matches!(outcome, Err(ServerError::Aborted)), "{outcome:?}");
    // Its ports are free and its directory is unlocked already; no other server has noticed.
    ensemble.start(FRAGILE).await;
    assert_eq!(ensemble.agreed().await, leadership);
    while stage.within("leaders", leaders.next()).await.is_some() {}
    assert_eq!(fragile.propose("x").await, Err(ProposeError::Ended));
    let expected = stage.all_entries(&leader).await;
    assert_eq!(stage.all_entries(ensemble.server(FRAGILE)).await, expected);
}

pub async fn a_panic_of_a_reader_is_its_own<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(1, 0);
    ensemble.adjust = |config| config.core.history.requests = 2;
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    let server = ensemble.server(id);
    for _ in 0..4 {
        assert!(panics_within(&stage, server.read(|_| panic!("as asked for"))).await);
        assert!(panics_within(&stage, server.read_local(|_| panic!("as asked for"))).await);
    }
    stage.propose(server, "x").await;
}

async fn panics_within<R: Runtime>(
    stage: &Stage<R>,
    work: impl Future<Output = Result<(), ReadError>>,
) -> bool {
    stage.within("a panic", AssertUnwindSafe(work).catch_unwind()).await.is_err()
}

/// The application cannot be stopped, but no caller has to wait for it.
pub async fn a_stuck_application_does_not_keep_its_server_from_ending<R: Runtime>(stage: Stage<R>) {
    let brake = Arc::new(Brake::default());
    let mut ensemble = one_is_fragile(&stage, &brake);
    ensemble.start_all().await;
    let leadership = ensemble.agreed().await;
    assert_ne!(leadership.0, FRAGILE, "the one with the lowest id is not elected");
    brake.pull();
    stage.propose_many(ensemble.server(leadership.0), MANY).await;
    stage.until("being stuck", || brake.has_stopped()).await;
    let stuck = ensemble.take(FRAGILE);
    let asked: Vec<_> = (0..3)
        .map(|_| {
            let stuck = stuck.clone();
            stage.spawn(async move { stuck.read_local(|_| ()).await })
        })
        .collect();
    let proposed = stage.spawn({
        let stuck = stuck.clone();
        async move { stuck.propose("y").await }
    });
    let leader = ensemble.server(leadership.0);
    let holds = |journal: &App| journal.machine().entries.len() == MANY + 1;
    let agreed = async { while !leader.read(holds).await.unwrap() {} };
    stage.within("an agreement", agreed).await;
    stage.within("shutdown", stuck.shutdown()).await.unwrap();
    let error = stage.within("an answer", proposed.join()).await.unwrap_err();
    assert_eq!(error, ProposeError::Unknown(UnknownOutcome::Ended));
    for outcome in stage.join_all("answers", asked).await {
        assert_eq!(outcome, Err(ReadError::Ended));
    }
    ensemble.start(FRAGILE).await;
    assert_eq!(ensemble.agreed().await, leadership);
    assert_eq!(stage.all_entries(ensemble.server(FRAGILE)).await.len(), MANY + 1);
    brake.release();
}

/// A peer that sees its link to a leader end may follow another one, so work that only a leader may do is over by then.
pub async fn guards_hear_of_a_fault_before_a_peer_sees_a_connection_end<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.witnessed(3);
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let leader = leader_before_its_witness(&stage, &ensemble).await;
    let dir = ensemble.data_dir(leader).join("version-2");
    fs::rename(&dir, dir.with_file_name("aside")).unwrap();
    let asked = ensemble.server(leader).propose("x").await;
    assert!(asked.is_err(), "its log has no directory");
    let witness = &stage.runtime(nth(leader)).witness;
    stage.until("the end of a connection", || witness.saw().0 > 0).await;
    all_ended_in_time(&stage, leader);
}

pub async fn guards_hear_of_a_panic_before_a_peer_sees_a_connection_end<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.witnessed(3);
    let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [3, 0], |_| {
        let fatal = Some(Bytes::from_static(FATAL));
        Replicated::new("journal", Journal { fatal, ..Journal::default() })
    });
    ensemble.start_all().await;
    let leader = leader_before_its_witness(&stage, &ensemble).await;
    let ends = ensemble.take(leader);
    assert!(ends.propose(FATAL).await.is_err());
    let outcome = stage.within("its end", ends.finished()).await;
    assert!(matches!(outcome, Err(ServerError::Aborted)), "{outcome:?}");
    all_ended_in_time(&stage, leader);
}

pub async fn guards_hear_of_a_peer_that_does_not_read_before_its_connection_ends<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.gated(2).witnessed(2);
    let mut ensemble = stage.journals(2, 0);
    // More than may wait for a peer: the last defence is all that is left. The lease is what the peer promised, and
    // what it is free of when the connection ends.
    ensemble.adjust = |config| {
        config.core.lease = Some(config.core.timing.tick * 4);
        config.core.history.pace_bytes = usize::MAX;
        config.core.history.requests = 1_000;
    };
    ensemble.start_all().await;
    // On a busy machine the promise may be over before so much waits, or the peer be sent from the log what it lacks.
    for _ in 0..4 {
        let leader = leader_before_its_witness(&stage, &ensemble).await;
        let other = ensemble.other_than(&[leader]);
        let gate = Arc::clone(&stage.runtime(nth(other)).inner().gate);
        gate.hold();
        let server = ensemble.server(leader).clone();
        let long = Bytes::from(vec![7; 500_000]);
        let asked: Vec<_> = (0..64)
            .map(|_| {
                let (server, long) = (server.clone(), long.clone());
                stage.spawn(async move { server.propose(long).await })
            })
            .collect();
        let ends = async {
            stage.until("its end", || server.status().metrics.overflowed_links > 0).await;
            true
        };
        let late = async {
            stage.runtime(0).sleep(Duration::from_secs(5)).await;
            false
        };
        let ended = or(ends, late).await;
        if ended {
            let closed = || stage.runtime(nth(leader)).witness.saw().0 > 0;
            stage.until("a closed connection", closed).await;
            all_ended_in_time(&stage, leader);
        }
        gate.release();
        drop(asked);
        if ended {
            return;
        }
    }
    panic!("the link never has to end");
}

/// The leader, whose connections end before a witness who has its guard.
async fn leader_before_its_witness<R: Runtime>(
    stage: &Stage<Witnessed<R>>,
    ensemble: &Ensemble<Witnessed<R>, App>,
) -> ServerId {
    let (leader, _) = ensemble.agreed().await;
    let guard = stage.within("leadership", ensemble.server(leader).leadership()).await.unwrap();
    stage.runtime(nth(leader)).witness.watch(move || guard.check().is_ok());
    leader
}

fn all_ended_in_time<R: Runtime>(stage: &Stage<Witnessed<R>>, leader: ServerId) {
    let (ended, too_early) = stage.runtime(nth(leader)).witness.saw();
    assert!(ended > 0 && too_early == 0, "{too_early} of {ended} while its guard was good");
}

fn nth(id: ServerId) -> usize {
    usize::try_from(id.0 - 1).unwrap()
}

/// More than a slow application has done when it is seen to be slow.
const MANY: usize = 50;
const FRAGILE: ServerId = ServerId(1);
const FATAL: &[u8] = b"fatal";
