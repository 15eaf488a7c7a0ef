//! What is asked for while there is no leader, or the leader changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate_core::reasons::Refusal;

use super::Stage;
use super::journal::{number, numbered};
use crate::{ProposeError, ReadError, Runtime, Setback};

/// The first thing that a program does when `start` has returned.
pub async fn what_is_asked_before_anybody_leads_waits_for_a_leader<R: Runtime>(stage: Stage<R>) {
    for servers in [1, 3] {
        let mut ensemble = stage.journals(servers, 0);
        ensemble.adjust = |config| config.patience = Duration::from_secs(60);
        let first = ensemble.ids()[0];
        ensemble.start(first).await;
        let ask = || ensemble.server(first).clone();
        let (writer, reader, late) = (ask(), ask(), ask());
        let written = stage.spawn(async move { writer.propose("early").await });
        let read = stage.spawn(async move { reader.read(|j| j.machine().entries.len()).await });
        let caught_up = stage.spawn(async move { late.sync().await });
        if servers > 1 {
            let error = ensemble.server(first).try_propose("now").await.unwrap_err();
            assert_eq!(error, ProposeError::Refused(Refusal::NotServing));
            let error = ensemble.server(first).try_read(|_| ()).await.unwrap_err();
            assert_eq!(error, ReadError::Refused(Refusal::NotServing));
        }
        ensemble.start_all().await;
        stage.within("a write", written.join()).await.unwrap();
        assert!(stage.within("a read", read.join()).await.unwrap() <= 1);
        stage.within("a read", caught_up.join()).await.unwrap();
        let entries = stage.all_entries(ensemble.server(first)).await;
        assert_eq!(entries.len(), 1, "it happened once");
    }
}

pub async fn patience_ends_and_says_what_was_waited_for<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.patience = PATIENCE;
    let first = ensemble.ids()[0];
    ensemble.start(first).await;
    let server = ensemble.server(first);
    let last = Setback::Refused(Refusal::NotServing);
    let error = stage.within("an end", server.propose("x")).await.unwrap_err();
    let ProposeError::Unserved { waited, last: kept } = error else { panic!("{error}") };
    assert!(waited >= PATIENCE && kept == last && !error.may_have_happened(), "{error}");
    let said = error.to_string();
    assert!(said.contains("waited") && said.contains("there is no leader"), "{said}");
    let error = stage.within("an end", server.read(|_| ())).await.unwrap_err();
    let ReadError::Unserved { waited, last: kept } = error else { panic!("{error}") };
    assert!(waited >= PATIENCE && kept == last, "{error}");
    // A caller that waits when the server ends is told so.
    let waiting = server.clone();
    let waits = stage.spawn(async move { waiting.propose("y").await });
    stage.pass().await;
    ensemble.kill(first).await;
    let error = stage.within("the end", waits.join()).await.unwrap_err();
    assert!(matches!(error, ProposeError::Ended | ProposeError::Unserved { .. }), "{error}");
}

/// A caller notices a change of leader by the time that it takes, and is told when an outcome is unknown.
pub async fn a_killed_leader_costs_no_write_that_surely_did_not_happen<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.patience = Duration::from_secs(60);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let follower = ensemble.other_than(&[leader]);
    let enough = Arc::new(AtomicBool::new(false));
    let writers = (0..4).map(|nth| {
        let (server, enough) = (ensemble.server(follower).clone(), Arc::clone(&enough));
        stage.spawn(async move {
            let (mut done, mut next) = (Vec::new(), 1000 * nth);
            while !enough.load(Ordering::Relaxed) && next < 1000 * (nth + 1) {
                match server.propose(numbered(next, 8)).await {
                    Ok(_) => done.push(next),
                    Err(error) => assert!(error.may_have_happened(), "{error}"),
                }
                next += 1;
            }
            done
        })
    });
    let writers: Vec<_> = writers.collect();
    stage.propose(ensemble.server(follower), numbered(9_000, 8)).await;
    ensemble.kill(leader).await;
    // The next leader has taken what comes after.
    stage.propose(ensemble.server(follower), numbered(9_001, 8)).await;
    enough.store(true, Ordering::Relaxed);
    let mut done: Vec<_> = stage.join_all("the writers", writers).await.concat();
    done.extend([9_000, 9_001]);
    let entries = stage.all_entries(ensemble.server(follower)).await;
    let mut applied: Vec<_> = entries.iter().map(|(_, entry)| number(entry)).collect();
    applied.sort_unstable();
    assert!(applied.windows(2).all(|two| two[0] != two[1]), "nothing twice");
    assert!(done.iter().all(|number| applied.binary_search(number).is_ok()), "nothing lost");
}

/// Long enough for some tries.
const PATIENCE: Duration = Duration::from_millis(50);
