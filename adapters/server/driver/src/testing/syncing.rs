//! How a server that was away, or out of reach, comes to have what the others have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_core::id::ServerId;
use quorate_core::report::{Change, How};
use quorate_core::zxid::Zxid;

use super::journal::{numbered, position};
use super::{Gate, Gated, Stage};
use crate::{Application, Changes, Runtime, Server};

/// How many bytes a leader has sent to bring up a learner in a way.
fn sent<R: Runtime, A: Application>(leader: &Server<R, A>, to: ServerId, mode: &str) -> u64 {
    let page = leader.figures().page(&["quorate_peer_sync_bytes_total"]);
    let begins = format!("quorate_peer_sync_bytes_total{{peer=\"{to}\",mode=\"{mode}\"}} ");
    let told = page.lines().find_map(|line| line.strip_prefix(&*begins));
    told.map_or(0, |told| told.split('.').next().unwrap().parse().unwrap())
}

/// Waits until a server is brought up, and says how.
async fn brought_up<R: Runtime>(stage: &Stage<R>, changes: &mut Changes) -> How {
    stage
        .within("being brought up", async {
            loop {
                let observed = changes.next().await.unwrap();
                if let Change::Sync { how, .. } = observed.report.change {
                    return how;
                }
            }
        })
        .await
}

/// The gate of a server.
fn gate<R: Runtime>(stage: &Stage<Gated<R>>, id: ServerId) -> Arc<Gate> {
    Arc::clone(&stage.runtime(usize::try_from(id.0 - 1).unwrap()).gate)
}

pub async fn a_server_that_missed_nothing_gets_an_empty_diff<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for (_, server) in ensemble.running() {
        stage.propose(server, "x").await;
    }
    let absent = ensemble.other_than(&[leader]);
    ensemble.kill(absent).await;
    let writer = ensemble.server(leader).clone();
    let before = stage.all_entries(&writer).await;
    let mut changes = writer.changes();
    ensemble.start(absent).await;
    assert_eq!(brought_up(&stage, &mut changes).await, How::Diff);
    ensemble.agreed().await;
    assert_eq!(stage.entries(ensemble.server(absent)).await, before);
    // And so does one whose disk holds nothing but epochs, among others like it.
    let mut bare = stage.journals(3, 0);
    bare.start_all().await;
    let (leader, _) = bare.agreed().await;
    let absent = bare.other_than(&[leader]);
    bare.kill(absent).await;
    bare.start(absent).await;
    bare.agreed().await;
    assert_eq!(stage.all_entries(bare.server(absent)).await, []);
}

pub async fn a_server_that_comes_back_gets_what_it_missed<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let absent = ensemble.other_than(&[leader]);
    stage.propose(ensemble.server(absent), numbered(0, 8)).await;
    ensemble.kill(absent).await;
    for number in 1..100 {
        stage.propose(ensemble.server(leader), numbered(number, 8)).await;
    }
    let mut changes = ensemble.server(leader).changes();
    ensemble.start(absent).await;
    assert_eq!(brought_up(&stage, &mut changes).await, How::Diff);
    ensemble.agreed().await;
    // What it inherited was delivered before it said that it serves.
    let server = ensemble.server(absent);
    let expected = stage.all_entries(ensemble.server(leader)).await;
    assert_eq!(stage.all_entries(server).await, expected);
    assert_eq!(position(&stage.propose(server, numbered(100, 8)).await), 101);
}

pub async fn what_a_server_missed_is_read_from_the_log_if_memory_has_it_no_more<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| {
        config.core.history.window_count = 5;
        // Whatever it costs.
        config.core.history.size_percent = Some(u64::MAX);
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let absent = ensemble.other_than(&[leader]);
    // A server that has nothing gets a snapshot.
    stage.propose(ensemble.server(absent), numbered(0, 8)).await;
    ensemble.kill(absent).await;
    let writer = ensemble.server(leader).clone();
    for number in 1..30 {
        stage.propose(&writer, numbered(number, 100_000)).await;
    }
    let mut changes = writer.changes();
    ensemble.start(absent).await;
    assert_eq!(brought_up(&stage, &mut changes).await, How::Diff);
    ensemble.agreed().await;
    let expected = stage.all_entries(&writer).await;
    assert!(stage.all_entries(ensemble.server(absent)).await == expected);
}

/// The leader writes what it can send to no follower any more, and dies. The others never hear of it.
pub async fn a_tail_that_nobody_acknowledged_is_cut<R: Runtime>(stage: Stage<R>) {
    let stage = stage.gated(3);
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    stage.propose(ensemble.server(leader), "kept").await;
    let before = stage.all_entries(ensemble.server(leader)).await;

    let lonely = ensemble.server(leader).clone();
    gate(&stage, leader).hold();
    let logged = lonely.status().peer.last;
    let asked = stage.spawn({
        let lonely = lonely.clone();
        async move { lonely.propose("cut").await }
    });
    stage.until("the tail on its disk", || lonely.status().peer.last > logged).await;
    ensemble.kill(leader).await;
    let error = stage.within("an answer", asked.join()).await.unwrap_err();
    assert!(error.may_have_happened(), "{error}");
    gate(&stage, leader).release();

    let (next, _) = ensemble.agreed().await;
    let mut changes = ensemble.server(next).changes();
    ensemble.start(leader).await;
    assert_eq!(brought_up(&stage, &mut changes).await, How::Trunc);
    ensemble.agreed().await;
    let proposed = stage.propose(ensemble.server(leader), "after").await;
    let expected = [&before[..], &[(proposed.zxid.0, "after".into())]].concat();
    for (id, server) in ensemble.running() {
        assert_eq!(stage.all_entries(server).await, expected, "server {id}");
    }
}

/// The state is some ten pieces of a stream long, and more is written while it is on its way.
pub async fn a_fresh_server_gets_a_snapshot<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 1);
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
        stage.propose(&writer, numbered(number, 100_000)).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let goes_on = stage.spawn({
        let (writer, enough) = (writer.clone(), Arc::clone(&enough));
        async move {
            for number in 40.. {
                if enough.load(Ordering::Relaxed) {
                    break;
                }
                writer.propose(numbered(number, 1000)).await.unwrap();
            }
        }
    });
    for id in &ids[2..] {
        let mut changes = writer.changes();
        ensemble.start(*id).await;
        assert_eq!(brought_up(&stage, &mut changes).await, How::Snap, "server {id}");
        ensemble.agreed().await;
        let [diff, snap] = ["diff", "snap"].map(|mode| sent(&writer, *id, mode));
        assert!(diff == 0 && (4_000_000..20_000_000).contains(&snap), "{id}: {diff}, {snap}");
    }
    enough.store(true, Ordering::Relaxed);
    stage.within("the last write", goes_on.join()).await;
    let expected = stage.all_entries(&writer).await;
    for id in &ids {
        assert!(stage.all_entries(ensemble.server(*id)).await == expected, "server {id}");
    }
    // What they got is on their disks.
    let last = ids[2];
    ensemble.kill(last).await;
    ensemble.start(last).await;
    ensemble.agreed().await;
    let server = ensemble.server(last);
    assert!(stage.all_entries(server).await == expected);
    assert_eq!(position(&stage.propose(server, numbered(9, 8)).await), expected.len() + 1);
}

/// Neither the leader nor the others wait for it; it has everything when it answers again.
pub async fn a_server_that_does_not_answer_holds_up_nobody<R: Runtime>(stage: Stage<R>) {
    let stage = stage.gated(3);
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let silent = ensemble.other_than(&[leader]);
    let other = ensemble.other_than(&[leader, silent]);
    gate(&stage, silent).hold();
    let mut last = Zxid::ZERO;
    for number in 0..100 {
        let writer = ensemble.server([leader, other][number % 2]);
        last = stage.propose(writer, numbered(number, 1000)).await.zxid;
    }
    assert_eq!(ensemble.agreed_but_for(&[silent]).await, (leader, epoch));
    assert!(ensemble.server(silent).status().metrics.applied < last);
    gate(&stage, silent).release();
    assert_eq!(ensemble.agreed().await, (leader, epoch));
    assert_eq!(stage.all_entries(ensemble.server(silent)).await.len(), 100);
}

/// More than its leader keeps in memory, and than sockets hold.
pub async fn an_observer_that_does_not_read_gets_it_all_when_it_does<R: Runtime>(stage: Stage<R>) {
    let stage = stage.gated(2);
    let mut ensemble = stage.journals(1, 1);
    ensemble.adjust = |config| config.core.history.window_count = 5;
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let [observer] = ensemble.observers()[..] else { panic!("one observer") };
    gate(&stage, observer).hold();
    let writer = ensemble.server(leader).clone();
    let count = 30;
    let mut last = Zxid::ZERO;
    for number in 0..count {
        last = stage.propose(&writer, numbered(number, 900_000)).await.zxid;
    }
    gate(&stage, observer).release();
    let server = ensemble.server(observer);
    stage.until("the rest", || server.status().metrics.applied == last).await;
    assert_eq!(stage.entries(server).await.len(), count);
    ensemble.agreed().await;
}
