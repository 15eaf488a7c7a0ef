//! Futures that are dropped before they are done: each is polled none, one, two, … times, whenever it
//! wants to be, and dropped, until it is done before that. Afterwards the server has to work as if
//! nothing had happened, with room for no more requests than are asked for at a time.

use std::future::Future;

use quorate_core::reconfiguration::Reconfiguration;

use super::journal::numbered;
use super::stage::polled;
use super::{App, Stage};
use crate::{Runtime, Server};

pub async fn a_start_that_is_dropped_leaves_nothing_behind<R: Runtime>(stage: Stage<R>) {
    let ensemble = stage.journals(1, 0);
    let id = ensemble.ids()[0];
    let mut done = false;
    for times in 0.. {
        let starting = polled(times, ensemble.try_start(ensemble.config(id)));
        let server = match stage.within("start", starting).await {
            Some(server) => {
                done = true;
                server.unwrap()
            }
            // A thread of the one that was dropped may still close the directory.
            None => {
                stage
                    .within("start again", async {
                        loop {
                            match ensemble.try_start(ensemble.config(id)).await {
                                Ok(server) => return server,
                                Err(error) => {
                                    assert!(error.to_string().contains("in use"), "{error}")
                                }
                            }
                        }
                    })
                    .await
            }
        };
        stage.within("a leader", server.leaders().led()).await.unwrap();
        stage.propose(&server, "x").await;
        stage.within("shutdown", server.shutdown()).await.unwrap();
        if done {
            assert!(times > 1, "it waits for something");
            return;
        }
    }
}

pub async fn requests_that_are_dropped_free_their_place<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.core.history.requests = PLACES;
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for id in [leader, ensemble.other_than(&[leader])] {
        let server = ensemble.server(id);
        let mut proposals = 0;
        dropped(&stage, server, || {
            proposals += 1;
            let proposal = server.propose(numbered(proposals, 8));
            async {
                proposal.await.unwrap();
            }
        })
        .await;
        dropped(&stage, server, || async { server.read(|_| ()).await.unwrap() }).await;
        dropped(&stage, server, || async { server.sync().await.unwrap() }).await;
        dropped(&stage, server, || async { server.read_local(|_| ()).await.unwrap() }).await;
        dropped(&stage, server, || async { server.healthy().await.unwrap() }).await;
        dropped(&stage, server, || async { assert_eq!(server.ready().await.unwrap().0, leader) })
            .await;
        // It is refused here, in its turn with all others.
        let same = Reconfiguration::change([], []);
        dropped(&stage, server, || async {
            server.reconfigure(&same).await.map(drop).unwrap_err();
        })
        .await;
        // While all places are taken, too.
        let (one, two) = (server.clone(), server.clone());
        let busy = [
            stage.spawn(async move { one.propose("busy").await.is_ok() }),
            stage.spawn(async move { two.propose("busy").await.is_ok() }),
        ];
        assert_eq!(polled(1, server.propose("never")).await, None);
        let served = stage.join_all("the busy ones", busy.into()).await;
        assert_eq!(served, [true, true]);
    }
    // Whatever was asked for is there once at most, and the same everywhere.
    let entries = stage.all_entries(ensemble.server(leader)).await;
    assert!(entries.is_sorted_by(|(one, _), (two, _)| one < two));
    for (id, server) in ensemble.running() {
        assert_eq!(stage.all_entries(server).await, entries, "server {id}");
        stage.until("the last answer", || server.status().metrics.outstanding == 0).await;
    }
}

/// How many requests may be under way at a server.
const PLACES: usize = 2;

/// Drops it at each place, and lets it be done as often as there are places; asks in earnest after each time, more
/// often than that.
async fn dropped<R: Runtime, F: Future<Output = ()>>(
    stage: &Stage<R>,
    server: &Server<R, App>,
    mut work: impl FnMut() -> F,
) {
    let mut done = 0;
    for times in 0.. {
        let worked = stage.within("a request", polled(times, work())).await;
        done += usize::from(worked.is_some());
        for _ in 0..=PLACES {
            stage.propose(server, "earnest").await;
            stage.within("a read", server.sync()).await.unwrap();
            stage.entries(server).await;
        }
        if done == PLACES {
            return;
        }
    }
}

pub async fn readers_that_are_dropped_miss_nothing<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let server = ensemble.server(leader).clone();
    let mut leaders = server.leaders();
    assert_eq!(polled(0, leaders.next()).await, None);
    assert_eq!(polled(1, leaders.next()).await, Some(Some(Some((leader, epoch)))));
    let mut changes = server.changes();
    for _ in 0..3 {
        assert_eq!(polled(1, leaders.next()).await, None);
        assert_eq!(polled(1, leaders.led()).await, None);
        assert_eq!(polled(1, changes.next()).await, None);
        assert!(polled(1, server.finished()).await.is_none());
        // One that is not polled does not happen; one that is polled waits for nothing.
        assert_eq!(polled(0, server.step_down()).await, None);
    }
    assert_eq!(server.leader(), Some((leader, epoch)));
    assert_eq!(stage.within("stepping down", polled(1, server.step_down())).await, Some(()));
    assert_eq!(stage.within("no leader", leaders.next()).await, Some(None));
    assert!(stage.within("a change", changes.next()).await.is_some());
    assert_eq!(changes.lost(), 0);
    assert!(ensemble.agreed().await.1 > epoch);
}

/// `shutdown` and `kill` have done their part when they are polled for the first time.
pub async fn an_end_that_nobody_waits_for_comes_all_the_same<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    for gracefully in [true, false] {
        for times in 0.. {
            ensemble.start(id).await;
            let server = ensemble.take(id);
            stage.within("a leader", server.leaders().led()).await.unwrap();
            let ending = async {
                if gracefully { server.shutdown().await.unwrap() } else { server.kill().await }
            };
            let done = stage.within("the end", polled(times, ending)).await.is_some();
            if times == 0 {
                assert!(server.leader().is_some(), "nobody has asked it to end");
                stage.within("shutdown", server.shutdown()).await.unwrap();
            }
            stage.within("the end", server.finished()).await.unwrap();
            if done {
                break;
            }
        }
    }
}
