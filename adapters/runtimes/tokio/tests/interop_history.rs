//! One history, two implementations: quorate beside Java ZooKeeper servers that hold data.
//!
//! Clients write, servers fall behind, lose what was never committed, start from nothing; whoever leads
//! brings the others up. What is asserted each time: by DIFF, TRUNC or SNAP, as told by both sides, and
//! that in the end all servers have the same last transaction and the same nodes.
//!
//! Debian's ZooKeeper is 3.8.0, which acknowledges a leader's history before its own disk holds it, and
//! keeps in memory only what follows a TRUNC; so no Java server is killed here while it is being brought
//! up. Needs Debian's `zookeeper` and a Java runtime; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "why a test was skipped")]

use crate::java;
use crate::mixed;
use std::path::{Path, PathBuf};

use crate::java::client::{Client, EPHEMERAL, SEQUENTIAL};
use crate::java::tools;
use crate::mixed::{Java, Mixed, POLL, Quorate, TICK, established};
use quorate_core::id::ServerId;
use quorate_core::report::How;
use quorate_core::zxid::Zxid;
use quorate_storage::check;
use quorate_storage::snapshot::SnapshotReader;
use quorate_znode::Tree;
use tokio::sync::oneshot;

const ONE: ServerId = ServerId(1);
const TWO: ServerId = ServerId(2);
const THREE: ServerId = ServerId(3);

/// What Java servers log when they bring a learner up, and as a learner.
const SENDS_DIFF: &str = "Sending DIFF zxid=";
const SENDS_SNAP: &str = "Sending snapshot last zxid";
const READS_DISK: &str = "Use txnlog and committedLog";
const GETS_DIFF: &str = "Getting a diff from the leader";
const GETS_TRUNC: &str = "Truncating log to get in sync";
const GETS_SNAP: &str = "Getting a snapshot from leader";

/// A client of a Java server makes a node with so many children.
async fn fill(mixed: &Mixed, id: ServerId, parent: &str, children: usize) {
    let mut client = mixed.client(id).await;
    client.fill(parent, children).await;
    client.close().await;
}

/// The last transaction that a data directory holds, which a server may have open.
fn logged(dir: &Path) -> Zxid {
    check::check(dir, None).unwrap().last
}

/// Waits until a data directory holds a transaction after this one.
async fn logged_after(mixed: &Mixed, id: ServerId, zxid: Zxid) {
    let dir = mixed.data_dir(id);
    let logging = async {
        while logged(&dir) <= zxid {
            tokio::time::sleep(POLL).await;
        }
    };
    mixed.patiently(&format!("a transaction after {zxid} in the log of {id}"), logging).await;
}

#[tokio::test]
async fn a_java_leader_brings_a_quorate_follower_up_and_needs_it() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::new(&[Quorate, Java, Java]);
    for id in [THREE, TWO] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("two Java servers").await, THREE);
    fill(&mixed, TWO, "/early", 30).await;

    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("a quorate server without a history").await, THREE);
    assert_eq!(mixed.syncs(ONE, ONE), [How::Snap]);
    assert_eq!(mixed.java(THREE).said(SENDS_SNAP), 1);
    fill(&mixed, TWO, "/live", 5).await;
    mixed.same("joined without a history").await;

    mixed.kill(ONE).await;
    fill(&mixed, TWO, "/missed", 20).await;
    let before = mixed.java(THREE).said(SENDS_DIFF);
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("a quorate server that missed a little").await, THREE);
    assert_eq!(mixed.syncs(ONE, ONE), [How::Diff]);
    assert_eq!(mixed.java(THREE).said(SENDS_DIFF), before + 1);
    mixed.same("slightly behind").await;

    // A quorum without the other Java server: nothing is committed but by both of the rest.
    mixed.kill(TWO).await;
    let commands = [
        "create /real client",
        "create /real/child data",
        "set /real changed",
        "create -e /real/ephemeral x",
        "create -s /real/s- y",
        "delete /real/child",
        "get /real",
    ];
    let said = tools::command_line(mixed.java(THREE).client_port(), &commands).await;
    assert!(said.contains("Created /real/s-0000000002") && said.contains("changed"), "{said}");
    let znodes = mixed.same("a Java leader and a quorate follower").await;
    let below: Vec<_> = znodes.keys().filter(|path| path.starts_with("/real/")).collect();
    assert_eq!(below, ["/real/s-0000000002"], "the ephemeral node went with its session");

    // Without it, nobody leads; it starts on its own data.
    mixed.kill(ONE).await;
    let alone = async {
        while mixed.java(THREE).mode().await.is_some() {
            tokio::time::sleep(POLL).await;
        }
    };
    mixed.patiently("the end of the Java leader's leadership", alone).await;
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("the quorate server on its own data").await, THREE);
    assert_eq!(mixed.syncs(ONE, ONE), [How::Diff]);
    mixed.start(TWO).await;
    assert_eq!(mixed.agreed("all again").await, THREE);
    fill(&mixed, THREE, "/late", 5).await;
    mixed.same("after restarts").await;
}

#[tokio::test]
async fn a_quorate_follower_far_behind_a_java_leader_gets_a_diff_from_disk() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::new(&[Quorate, Java, Java]);
    // Java weighs whole log files, with what is allocated in advance, against a tiny snapshot.
    mixed.java_properties = vec!["snapshotSizeFactor=1000000"];
    for id in [THREE, TWO] {
        mixed.start(id).await;
    }
    mixed.agreed("two Java servers").await;
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("all of them").await, THREE);
    fill(&mixed, TWO, "/early", 10).await;
    mixed.same("before").await;
    mixed.kill(ONE).await;
    // More than the 500 that a Java server keeps in memory.
    fill(&mixed, TWO, "/missed", 700).await;
    mixed.syncs(ONE, ONE);
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("a quorate server far behind").await, THREE);
    assert_eq!(mixed.syncs(ONE, ONE), [How::Diff]);
    assert_eq!(mixed.java(THREE).said(READS_DISK), 1);
    mixed.same("far behind").await;
    fill(&mixed, TWO, "/late", 5).await;
    mixed.same("afterwards").await;
}

#[tokio::test]
async fn a_former_quorate_leader_loses_what_only_it_had_under_a_java_leader() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Java, Java, Quorate], [3, 2, 1]).await;
    assert_eq!(leader, THREE);
    fill(&mixed, ONE, "/kept", 5).await;
    let kept = mixed.same("under the quorate leader").await;

    // It logs a transaction that its followers do not get.
    let last = mixed.settled("under the quorate leader").await;
    mixed.java(ONE).freeze().await;
    mixed.java(TWO).freeze().await;
    let server = mixed.quorate(THREE).clone();
    let lost = tokio::spawn(async move { server.propose(mixed::create("/lost")).await });
    logged_after(&mixed, THREE, last).await;
    for id in [THREE, TWO, ONE] {
        mixed.kill(id).await;
    }
    let error = lost.await.unwrap().unwrap_err();
    assert!(error.may_have_happened(), "{error}");

    for id in [ONE, TWO] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("the two Java servers").await, TWO);
    mixed.syncs(THREE, THREE);
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the former leader back").await, TWO);
    assert_eq!(mixed.syncs(THREE, THREE), [How::Trunc]);
    fill(&mixed, ONE, "/late", 5).await;
    let now = mixed.same("under the Java leader").await;
    assert!(!now.contains_key("/lost"));
    assert!(kept.keys().all(|path| now.contains_key(path)));

    // What was cut stays cut.
    mixed.kill(THREE).await;
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the former leader once more").await, TWO);
    assert_eq!(mixed.syncs(THREE, THREE), [How::Diff]);
    mixed.same("once more").await;
}

#[tokio::test]
async fn a_quorate_observer_of_java_servers_is_informed() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::with_observers(&[Java, Java, Quorate], &[THREE]);
    for id in [TWO, ONE] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("two Java servers").await, TWO);
    fill(&mixed, ONE, "/early", 5).await;
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the observer").await, TWO);
    assert_eq!(mixed.syncs(THREE, THREE), [How::Snap]);
    fill(&mixed, ONE, "/live", 30).await;
    mixed.same("informed").await;

    // A request of its own comes back the same way.
    mixed.ask(THREE, mixed::session()).await;
    let zxid = mixed.ask(THREE, mixed::in_session(mixed::create("/proposed"))).await;
    let znodes = mixed.same("asked by the observer").await;
    assert_eq!(znodes["/proposed"].stat.czxid, zxid);

    mixed.kill(THREE).await;
    fill(&mixed, ONE, "/missed", 10).await;
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the observer on its own data").await, TWO);
    assert_eq!(mixed.syncs(THREE, THREE), [How::Diff]);
    mixed.same("informed again").await;
}

#[tokio::test]
async fn a_quorate_leader_with_the_newest_history_brings_java_followers_up() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Quorate, Java, Java], [3, 2, 1]).await;
    assert_eq!(leader, THREE);
    fill(&mixed, TWO, "/early", 10).await;
    mixed.same("all of them").await;
    mixed.kill(THREE).await;
    assert_eq!(mixed.agreed("without 3").await, TWO);
    fill(&mixed, TWO, "/missed", 10).await;
    mixed.same("without 3").await;
    mixed.kill(TWO).await;

    // The smallest id, and the newest history.
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the newest history").await, ONE);
    assert_eq!(mixed.syncs(ONE, THREE), [How::Diff]);
    assert_eq!(mixed.java(THREE).said(GETS_DIFF), 1);
    let commands = ["create /real client", "set /real changed", "create -e /real/gone x", "sync /"];
    let said = tools::command_line(mixed.java(THREE).client_port(), &commands).await;
    assert!(said.contains("Created /real/gone") && said.contains("Sync is OK"), "{said}");
    let znodes = mixed.same("a quorate leader and a Java follower").await;
    assert_eq!(znodes["/real"].data.as_deref(), Some(&b"changed"[..]));
    assert!(!znodes.contains_key("/real/gone"), "it went with its session");

    // One that has lost everything.
    std::fs::remove_dir_all(mixed.data_dir(TWO)).unwrap();
    mixed.start(TWO).await;
    assert_eq!(mixed.agreed("a Java server without a history").await, ONE);
    assert_eq!(mixed.syncs(ONE, TWO), [How::Snap]);
    assert_eq!(mixed.java(TWO).said(GETS_SNAP), 1);

    // More than twice the silence that either side would bear.
    let mut leaders = mixed.quorate(ONE).leaders();
    let present = leaders.next().await;
    let mut client = mixed.client(TWO).await;
    for tick in 0..12 {
        tokio::time::sleep(TICK).await;
        client.create("/tick-", b"", SEQUENTIAL).await.unwrap();
        assert_eq!(client.create("/missing/x", b"", 0).await, Err(-101), "tick {tick}");
    }
    client.create("/mine", b"", EPHEMERAL).await.unwrap();
    assert_eq!(client.create("/mine/x", b"", 0).await, Err(-108));
    assert_eq!(client.set("/real", b"", 7).await, Err(-103));
    assert_eq!(client.delete("/early", -1).await, Err(-111));
    client.set("/real", b"again", 1).await.unwrap();
    client.sync().await.unwrap();
    client.close().await;
    let znodes = mixed.same("after many ticks").await;
    assert!(!znodes.contains_key("/mine"));
    assert_eq!(znodes["/real"].stat.version, 2);
    assert_eq!(Some(mixed.quorate(ONE).leader()), present, "the same leadership all the time");
    for id in [TWO, THREE] {
        assert_eq!(mixed.java(id).errors(), [""; 0]);
    }

    // What it broadcast is in the Java server's log, and its tool can read it.
    let last = mixed.zxids().await[&THREE].unwrap();
    mixed.kill(THREE).await;
    let logs = files(&mixed.data_dir(THREE), "log.");
    assert_eq!(tools::log_entries(logs.last().unwrap()).last(), Some(&last));
}

/// A list of all that this session has takes 4 MB, and a Java server reads 2 (ZOOKEEPER-4306).
#[tokio::test]
async fn a_session_with_more_than_a_transaction_can_list_ends_under_a_quorate_leader() {
    if !java::available() {
        return;
    }
    let (mixed, leader) = established([Java, Java, Quorate], [3, 2, 1]).await;
    assert_eq!(leader, THREE);
    let present = mixed.quorate(THREE).leader();
    let mut client = mixed.client(ONE).await;
    for parent in ["/locks", "/others"] {
        client.create(parent, b"", 0).await.unwrap();
    }
    client.hold((0..50_000).map(|n| format!("/locks/{n:073}"))).await;
    client.hold(["/others/mine".to_owned()].into_iter()).await;
    client.close().await;

    let znodes = mixed.same("after the end of the session").await;
    for parent in ["/locks", "/others"] {
        assert_eq!(znodes[parent].stat.num_children, 0, "{parent}");
    }
    let closing = znodes["/locks"].stat.pzxid;
    assert_eq!(znodes["/others"].stat.pzxid, closing, "all of it at one number");
    assert_eq!(mixed.quorate(THREE).leader(), present, "the same leadership all the time");
    assert_eq!(mixed.java(ONE).errors(), [""; 0]);
    // Once in a while, and only while the machine has other things to do, the digest that this one keeps drifts from its
    // tree in the middle of so many deletions; the tree is right, and the other one agrees with the leader's digest.
    let errors = mixed.java(TWO).errors();
    assert!(errors.iter().all(|line| line.contains("First digest mismatch")), "{errors:?}");
}

#[tokio::test]
async fn a_former_java_leader_loses_what_only_it_had_under_a_quorate_leader() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Java, Quorate, Java], [3, 2, 1]).await;
    assert_eq!(leader, THREE);
    fill(&mixed, THREE, "/kept", 5).await;
    let mut client = mixed.client(THREE).await;
    let kept = mixed.same("under the Java leader").await;

    // It logs a transaction that its followers do not get. It does not miss them at once: a frozen one
    // is heard again, for all it knows.
    let last = mixed.settled("under the Java leader").await;
    mixed.java(ONE).freeze().await;
    mixed.kill(TWO).await;
    client.send_create("/lost").await.unwrap();
    logged_after(&mixed, THREE, last).await;
    for id in [THREE, ONE] {
        mixed.kill(id).await;
    }

    for id in [ONE, TWO] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("the quorate server and a Java server").await, TWO);
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("the former leader back").await, TWO);
    assert_eq!(mixed.syncs(TWO, THREE), [How::Trunc]);
    assert_eq!(mixed.java(THREE).said(GETS_TRUNC), 1);
    fill(&mixed, THREE, "/late", 5).await;
    let now = mixed.same("under the quorate leader").await;
    assert!(!now.contains_key("/lost"));
    assert!(kept.keys().all(|path| now.contains_key(path)));
}

#[tokio::test]
async fn a_quorate_leader_reads_its_log_for_a_java_follower_far_behind() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::new(&[Java, Java, Quorate]);
    mixed.adjust = |config| {
        config.core.history.window_count = 50;
        config.core.history.size_percent = Some(1_000_000);
    };
    for id in [THREE, TWO, ONE] {
        mixed.start(id).await;
        mixed.up(id).await;
    }
    assert_eq!(mixed.agreed("all of them").await, THREE);
    fill(&mixed, TWO, "/early", 10).await;
    mixed.same("before").await;
    mixed.kill(ONE).await;
    fill(&mixed, TWO, "/missed", 400).await;
    mixed.syncs(THREE, ONE);
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("a Java server far behind").await, THREE);
    assert_eq!(mixed.syncs(THREE, ONE), [How::Diff]);
    assert_eq!(mixed.java(ONE).said(GETS_DIFF), 2);
    fill(&mixed, ONE, "/late", 5).await;
    mixed.same("afterwards").await;
}

#[tokio::test]
async fn a_java_observer_of_a_quorate_leader_is_informed() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::with_observers(&[Quorate, Quorate, Java], &[THREE]);
    for id in [TWO, ONE] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("two quorate servers").await, TWO);
    mixed.propose(ONE, "/early").await;
    mixed.start(THREE).await;
    fill(&mixed, THREE, "/live", 30).await;
    assert_eq!(mixed.syncs(TWO, THREE), [How::Snap]);
    mixed.propose(ONE, "/live/proposed").await;
    mixed.same("informed").await;

    mixed.kill(THREE).await;
    mixed.propose(ONE, "/missed").await;
    mixed.start(THREE).await;
    fill(&mixed, THREE, "/late", 5).await;
    assert_eq!(mixed.syncs(TWO, THREE), [How::Diff]);
    mixed.same("informed again").await;
}

#[tokio::test]
async fn a_snapshot_of_megabytes_goes_both_ways() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::new(&[Quorate, Java, Java]);
    for id in [THREE, TWO] {
        mixed.start(id).await;
    }
    mixed.agreed("two Java servers").await;
    let mut client = mixed.client(TWO).await;
    client.create("/large", b"", 0).await.unwrap();
    let data = vec![b'x'; 250_000];
    for n in 0..25 {
        client.create(&format!("/large/{n}"), &data, 0).await.unwrap();
    }
    client.close().await;
    mixed.start(ONE).await;
    assert_eq!(mixed.agreed("from Java").await, THREE);
    assert_eq!(mixed.syncs(ONE, ONE), [How::Snap]);
    fill(&mixed, TWO, "/between", 1).await;
    mixed.settled("from Java").await;

    for id in [THREE, TWO] {
        mixed.kill(id).await;
    }
    std::fs::remove_dir_all(mixed.data_dir(THREE)).unwrap();
    mixed.start(THREE).await;
    assert_eq!(mixed.agreed("to Java").await, ONE);
    assert_eq!(mixed.syncs(ONE, THREE), [How::Snap]);
    fill(&mixed, THREE, "/late", 1).await;
    mixed.same("to Java").await;
}

#[tokio::test]
async fn any_two_of_three_servers_go_on_with_one_history() {
    if !java::available() {
        return;
    }
    let (mut mixed, _) = established([Java, Quorate, Java], [1, 2, 3]).await;
    for dead in [TWO, ONE, THREE] {
        let client_of = if dead == ONE { THREE } else { ONE };
        mixed.kill(dead).await;
        mixed.agreed(&format!("without {dead}")).await;
        fill(&mixed, client_of, &format!("/without-{dead}"), 5).await;
        mixed.same(&format!("without {dead}")).await;
        mixed.start(dead).await;
        let leader = mixed.agreed(&format!("with {dead} back")).await;
        fill(&mixed, client_of, &format!("/with-{dead}-under-{leader}"), 5).await;
        mixed.same(&format!("with {dead} back")).await;
    }
}

/// Creates nodes at a Java server that stays, one after the other, until told to end; those that the
/// server has confirmed.
async fn write_until(end: oneshot::Receiver<()>, port: u16) -> Vec<String> {
    let mut confirmed = Vec::new();
    let mut names = (0..).map(|n| format!("/written/{n}"));
    let write = async {
        loop {
            let Ok(mut client) = Client::connect(port).await else {
                tokio::time::sleep(POLL).await;
                continue;
            };
            // Until the server loses its leader and closes the connection.
            for name in names.by_ref() {
                let written = async {
                    client.send_create(&name).await?;
                    client.answer().await
                };
                match written.await {
                    Ok(answer) => assert_eq!(answer.map(drop), Ok(()), "{name}"),
                    Err(_) => break,
                }
                confirmed.push(name);
            }
        }
    };
    tokio::select! {
        () = write => {}
        _ = end => {}
    }
    confirmed
}

#[tokio::test]
async fn what_was_confirmed_outlives_quorate_servers_that_are_killed() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Java, Quorate, Quorate], [3, 2, 1]).await;
    assert_eq!(leader, THREE);
    mixed.propose(leader, "/written").await;
    let (end, ended) = oneshot::channel();
    let writing = tokio::spawn(write_until(ended, mixed.java(ONE).client_port()));
    let mut leader = leader;
    for leadership in 0..4 {
        // Something is written in each.
        fill(&mixed, ONE, &format!("/leadership-{leadership}"), 20).await;
        let dead = if leader == ONE { THREE } else { leader };
        mixed.kill(dead).await;
        mixed.agreed(&format!("without {dead}")).await;
        mixed.start(dead).await;
        leader = mixed.agreed(&format!("with {dead} back")).await;
    }
    end.send(()).unwrap();
    let confirmed = writing.await.unwrap();
    println!("{} nodes", confirmed.len());
    fill(&mixed, ONE, "/late", 1).await;
    let znodes = mixed.same("in the end").await;
    let lost: Vec<_> = confirmed.iter().filter(|name| !znodes.contains_key(*name)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[tokio::test]
async fn a_data_directory_goes_from_java_to_quorate_and_back() {
    if !java::available() {
        return;
    }
    let mut mixed = Mixed::new(&[Java]);
    mixed.java_properties = vec!["snapCount=40"];
    mixed.adjust = |config| config.core.history.snap_count = 40;
    let dir = mixed.data_dir(ONE);

    mixed.start(ONE).await;
    fill(&mixed, ONE, "/java", 100).await;
    let before = mixed.znodes(ONE).await;
    let last = mixed.zxids().await[&ONE].unwrap();
    mixed.kill(ONE).await;
    readable_by_both(&dir, last);

    mixed.kinds.insert(ONE, Quorate);
    mixed.start(ONE).await;
    mixed.agreed("quorate on a Java server's directory").await;
    assert_eq!(mixed.znodes(ONE).await, before);
    mixed.propose(ONE, "/quorate").await;
    for n in 0..100 {
        mixed.propose(ONE, &format!("/quorate/{n}")).await;
    }
    let before = mixed.znodes(ONE).await;
    let last = mixed.zxids().await[&ONE].unwrap();
    mixed.kill(ONE).await;
    readable_by_both(&dir, last);

    mixed.kinds.insert(ONE, Java);
    mixed.start(ONE).await;
    mixed.agreed("Java on a quorate server's directory").await;
    assert_eq!(mixed.znodes(ONE).await, before);
    fill(&mixed, ONE, "/java-again", 5).await;
    mixed.kill(ONE).await;
    mixed.kinds.insert(ONE, Quorate);
    mixed.start(ONE).await;
    mixed.agreed("quorate once more").await;
    let now = mixed.znodes(ONE).await;
    assert!(now.contains_key("/java-again") && before.keys().all(|path| now.contains_key(path)));
}

/// The files of a data directory whose names begin so, in the order of their zxids.
fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("version-2")).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let zxid = i64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
            Some((zxid, path))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Our check and Java's tools find nothing wrong in a data directory, and find the same in it.
fn readable_by_both(dir: &Path, last: Zxid) {
    let report = check::check(dir, None).unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!(report.last, last);
    let logs = files(dir, "log.");
    assert_eq!(report.logs.iter().map(|log| log.path.clone()).collect::<Vec<_>>(), logs);
    assert!(logs.len() > 1, "{logs:?}");
    for log in &report.logs {
        let entries = tools::log_entries(&log.path);
        let count = u64::try_from(entries.len()).unwrap();
        let seen = (count, entries.first().copied(), entries.last().copied());
        assert_eq!(seen, (log.records, log.first, log.last), "{}", log.path.display());
    }
    assert!(report.snapshots.len() > 1, "{:?}", report.snapshots);
    for snapshot in &report.snapshots {
        let mut reader = SnapshotReader::open(quorate_storage::Disk, &snapshot.file).unwrap();
        let tree = Tree::restore(&mut reader, snapshot.file.label).unwrap();
        reader.finish().unwrap();
        let paths: Vec<_> = mixed::znodes(&tree).into_keys().collect();
        assert_eq!(tools::snapshot_entries(&snapshot.file.path), paths);
    }
}
