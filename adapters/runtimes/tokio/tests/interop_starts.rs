//! Java servers and one of ours are started together, with histories of different ends: each serves as soon as it
//! would among Java servers alone, and none waits out an `initLimit`.
//!
//! ```text
//! QUORATE_STARTS=20 cargo test --release -p quorate-tokio --test interop_starts -- --nocapture
//! ```
//!
//! With that many the times are compared, too. Needs Debian's `zookeeper` and a Java runtime; skipped without, see
//! [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "how long starts took, and why a test was skipped")]

mod common;
mod java;
mod mixed;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mixed::{Java, Kind, Mixed, POLL, Quorate};
use quorate_core::id::ServerId;

/// Where the histories of servers 1, 2 and 3 end: sometimes one has more than the others, and is the last to say so.
const ENDS: [[&str; 3]; 4] = [
    ["600000000", "500000000", "500000000"],
    ["500000000", "600000000", "500000000"],
    ["500000000", "500000000", "600000000"],
    ["500000000", "500000000", "500000000"],
];

/// An empty tree, as a Java server has written it.
async fn empty_snapshot(dir: &Path) -> PathBuf {
    let mut mixed = Mixed::new(&[Java]);
    mixed.start(ServerId(1)).await;
    mixed.agreed("one Java server").await;
    let kept = dir.join("snapshot");
    fs::copy(mixed.data_dir(ServerId(1)).join("version-2/snapshot.0"), &kept).unwrap();
    kept
}

/// How long it takes until all three serve.
async fn start(kinds: [Kind; 3], ends: [&str; 3], snapshot: &Path) -> Duration {
    let mut mixed = Mixed::new(&kinds);
    for (id, end) in (1..).map(ServerId).zip(ends) {
        let dir = mixed.data_dir(id).join("version-2");
        fs::create_dir_all(&dir).unwrap();
        fs::copy(snapshot, dir.join(format!("snapshot.{end}"))).unwrap();
        fs::write(dir.join("currentEpoch"), "6").unwrap();
        fs::write(dir.join("acceptedEpoch"), "6").unwrap();
        mixed.java_properties = vec!["snapshot.trust.empty=true"];
    }
    let begun = Instant::now();
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    while mixed.view().await.values().any(Option::is_none) {
        tokio::time::sleep(POLL).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "{kinds:?}, {ends:?}: not all serve");
    }
    let took = begun.elapsed();
    let in_vain = mixed.heard_of("no quorum in discovery");
    assert_eq!(in_vain, 0, "{kinds:?}, {ends:?}: a server of ours waited for a quorum in vain");
    for id in (1..=3).map(ServerId).filter(|id| mixed.kinds[id] == Java) {
        let in_vain = mixed.java(id).said("Timeout while waiting for epoch from quorum");
        assert_eq!(in_vain, 0, "{kinds:?}, {ends:?}: server {id} waited for a quorum in vain");
    }
    took
}

/// Seen with an earlier server of ours: one start of some twenty took 10 s, an `initLimit`.
#[tokio::test]
async fn whoever_comes_last_no_server_waits_out_an_init_limit() {
    if !java::available() {
        return;
    }
    let wanted = std::env::var("QUORATE_STARTS").ok();
    let starts = wanted.map_or(4, |starts| starts.parse::<usize>().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let snapshot = empty_snapshot(dir.path()).await;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for at in 0..starts {
        let ends = ENDS[at % ENDS.len()];
        alone.push(start([Java, Java, Java], ends, &snapshot).await);
        beside.push(start([Java, Quorate, Java], ends, &snapshot).await);
        println!("{ends:?}: Java {:?}, with one of ours {:?}", alone[at], beside[at]);
    }
    alone.sort();
    beside.sort();
    let (slowest, ours) = (alone[starts - 1], beside[starts - 1]);
    let middle = starts / 2;
    println!("{starts} starts of Java servers: {:?} (median), {slowest:?} at most", alone[middle]);
    println!("with one of ours between them: {:?} (median), {ours:?} at most", beside[middle]);
    if starts >= 20 {
        let limit = slowest + Duration::from_millis(300);
        assert!(ours <= limit, "{ours:?}, and {slowest:?} among Java servers alone");
    }
}
