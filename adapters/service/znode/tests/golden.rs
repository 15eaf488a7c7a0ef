//! What real ZooKeeper 3.8.0 servers logged, sent and stored, applied, restored and written again.
//!
//! `golden/`: files of a data directory (`log.*`, `snapshot.*`); `*.stream`, what follows a SNAP
//! packet; `*.txns`, the transactions that followed on the same connection, one in hex per line.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::io::Read;

use crate::support::{Parts, bytes, digest};
use bytes::Bytes;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_znode::stat::Owner;
use quorate_znode::{Applied, DigestCheck, ErrorCode, Gone, Outcome, Tree};

const LOG: &[u8] = include_bytes!("golden/log.100000001");
const EMPTY: &[u8] = include_bytes!("golden/snapshot.0");
const LEARNER: &[u8] = include_bytes!("golden/snapshot.10000000c");
const FULL: &[u8] = include_bytes!("golden/snapshot.100000018");
const SNAP: &[u8] = include_bytes!("golden/snap.stream");
const OBSERVER: &[u8] = include_bytes!("golden/observer-snap-inform.stream");
const OBSERVER_TXNS: &str = include_str!("golden/observer-snap-inform.txns");
const RECONFIG: &[u8] = include_bytes!("golden/reconfig.stream");
const RECONFIG_TXNS: &str = include_str!("golden/reconfig.txns");
const NO_DIGEST_TXNS: &str = include_str!("golden/no-digest.txns");

/// The body of a snapshot file and whatever follows.
fn body(file: &[u8]) -> &[u8] {
    &file[16..]
}

fn restore(body: &[u8], label: i64) -> Tree {
    Tree::restore(body, Zxid(label)).unwrap()
}

fn logged() -> Vec<Txn> {
    let mut rest = &LOG[16..];
    let mut txns = Vec::new();
    loop {
        let length = u32::from_be_bytes(rest[8..12].try_into().unwrap()) as usize;
        if length == 0 {
            return txns;
        }
        txns.push(Txn::decode(Bytes::copy_from_slice(&rest[12..12 + length])).unwrap());
        rest = &rest[12 + length + 1..];
    }
}

fn unhex(lines: &str) -> Vec<Txn> {
    let byte = |at| move |line: &str| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
    lines
        .lines()
        .map(|line| (0..line.len()).step_by(2).map(|at| byte(at)(line)).collect::<Vec<_>>())
        .map(|bytes| Txn::decode(bytes.into()).unwrap())
        .collect()
}

/// Applies all; every digest that the leader sent must be ours.
fn replay(tree: &mut Tree, txns: &[Txn]) -> Vec<Applied> {
    txns.iter()
        .map(|txn| {
            let applied = tree.apply(txn).unwrap();
            let differs = matches!(applied.digest, DigestCheck::Differs { .. });
            assert!(!differs, "{}: {applied:?}", txn.zxid);
            assert_eq!(tree.last_zxid(), txn.zxid);
            assert_eq!(tree.digest(), digest(tree));
            applied
        })
        .collect()
}

#[test]
fn the_initial_tree_is_that_of_a_fresh_server() {
    let text = Parts::of(body(EMPTY)).nodes["/zookeeper/config"].clone();
    let length = u32::from_be_bytes(text[..4].try_into().unwrap()) as usize;
    let mtime = i64::from_be_bytes(text[4 + length + 32..4 + length + 40].try_into().unwrap());
    let text = std::str::from_utf8(&text[4..4 + length]).unwrap();

    let mut tree = Tree::new();
    assert_eq!(tree.digest(), 1_371_985_504);
    assert!(tree.set_configuration(text, 0, mtime));
    assert_eq!(tree.digest(), 1_371_985_504);
    assert_eq!(Parts::of(&bytes(&tree)).nodes, Parts::of(body(EMPTY)).nodes);
    assert_eq!(Parts::of(&bytes(&tree)).lists, Parts::of(body(EMPTY)).lists);
}

#[test]
fn the_log_over_the_empty_snapshot_gives_the_later_snapshots() {
    let (txns, mut tree) = (logged(), restore(body(EMPTY), 0));
    assert_eq!(txns.len(), 26);
    let mut checked = 0;
    let mut states = BTreeMap::new();
    for txn in &txns {
        let applied = replay(&mut tree, std::slice::from_ref(txn)).remove(0);
        checked += usize::from(applied.digest == DigestCheck::Equal);
        states.insert(txn.zxid.0, tree.snapshot());
    }
    assert_eq!(checked, 25, "all but the error carry a digest");

    for (file, label) in [(LEARNER, 0x1_0000_000c), (FULL, 0x1_0000_0018)] {
        let mut ours = Vec::new();
        states[&label].write(&mut ours).unwrap();
        let (mut ours, mut theirs) = (Parts::of(&ours), Parts::of(body(file)));
        // Each server writes its own configuration there, by its own clock.
        for parts in [&mut ours, &mut theirs] {
            let config = parts.nodes.get_mut("/zookeeper/config").unwrap();
            let mtime = config.len() - 60 + 24;
            config[mtime..mtime + 8].fill(0);
        }
        assert_eq!(ours, theirs);
    }
    assert_eq!(states[&0x1_0000_0018].digest(), 16_815_654_747);
}

#[test]
fn the_log_says_what_happened() {
    let txns = logged();
    let mut tree = Tree::new();
    let applied = replay(&mut tree, &txns);
    let outcome = |counter: usize| &applied[counter - 1].outcome;

    assert_eq!(*outcome(1), Outcome::SessionOpened { timeout: 8_000 });
    let Outcome::Created { path, stat } = outcome(3) else { panic!("{:?}", outcome(3)) };
    assert_eq!((path.as_str(), stat.ephemeral_owner), ("/a/eph", 0x0200_0015_a778_0000));
    let Outcome::Multi(elements) = outcome(10) else { panic!("{:?}", outcome(10)) };
    assert!(matches!(
        &elements[..],
        [
            Outcome::Created { .. },
            Outcome::DataSet { .. },
            Outcome::Checked { .. },
            Outcome::Deleted(_),
        ]
    ));
    assert_eq!(outcome(10).error(), None);
    let failed = [ErrorCode::OK, ErrorCode::NO_NODE].map(Outcome::Failed);
    assert_eq!(*outcome(11), Outcome::Multi(failed.to_vec()));
    assert_eq!(outcome(11).error(), Some(ErrorCode::NO_NODE));
    assert_eq!(*outcome(12), Outcome::Failed(ErrorCode::NO_NODE));
    let Outcome::SessionClosed { deleted } = outcome(24) else { panic!("{:?}", outcome(24)) };
    assert_eq!(paths(deleted), ["/a/eph"]);
    assert_eq!(tree.sessions().map(|(_, timeout)| timeout).collect::<Vec<_>>(), [8_000]);
    assert_eq!(tree.owners().count(), 0);
}

#[test]
fn snapshots_are_written_as_they_were_read() {
    let bodies = [body(EMPTY), body(LEARNER), body(FULL), SNAP, OBSERVER, RECONFIG];
    for (index, body) in bodies.into_iter().enumerate() {
        let theirs = Parts::of(body);
        let tree = restore(body, 5);
        assert_eq!(Parts::of(&bytes(&tree)), theirs, "{index}");
        assert_eq!(tree.digest(), digest(&tree));
        assert_eq!(tree.len(), theirs.nodes.len());
        assert_eq!(tree.last_zxid(), Zxid(5));
        // Ours has one order, whatever theirs was.
        assert_eq!(bytes(&restore(&bytes(&tree), 5)), bytes(&tree));
    }
    assert_eq!(restore(body(FULL), 0).digest(), 16_815_654_747);
}

#[test]
fn restoring_leaves_what_follows_the_body() {
    let mut stream = SNAP;
    Tree::restore(&mut stream, Zxid::ZERO).unwrap();
    let mut signature = Vec::new();
    stream.read_to_end(&mut signature).unwrap();
    assert_eq!(signature, b"\0\0\0\x0aBenWasHere");
}

#[test]
fn an_observer_follows_from_its_snapshot() {
    let mut tree = restore(OBSERVER, 0x1_0000_000c);
    replay(&mut tree, &unhex(OBSERVER_TXNS));
    assert_eq!(tree.digest(), 16_815_654_747);
    assert_eq!(
        Parts::of(&bytes(&tree)).nodes_with_lists()["/a"],
        Parts::of(body(FULL)).nodes_with_lists()["/a"]
    );
}

#[test]
fn containers_ttl_nodes_and_reconfigurations_are_followed() {
    let mut tree = restore(RECONFIG, 0x1_0000_0000);
    let txns = unhex(RECONFIG_TXNS);
    replay(&mut tree, &txns);
    assert_eq!(tree.containers().collect::<Vec<_>>(), ["/cont"]);
    assert_eq!(tree.ttls().collect::<Vec<_>>(), ["/ttl", "/ttls-0000000002"]);
    let ttl = tree.get("/ttl").unwrap();
    assert_eq!((ttl.owner(), ttl.stat().ephemeral_owner), (Owner::Ttl(100_000), 0));
    assert_eq!(tree.get("/cont").unwrap().owner(), Owner::Container);

    let config = tree.get("/zookeeper/config").unwrap();
    let last = txns.last().unwrap();
    assert_eq!((config.stat().version, config.stat().mzxid), (-1, last.zxid));
    assert!(config.data().unwrap().ends_with(b"version=10000000c"));
}

fn paths(deleted: &[Gone]) -> Vec<&str> {
    deleted.iter().map(|gone| &*gone.path).collect()
}

#[test]
fn a_leader_without_digests_is_followed() {
    let mut tree = Tree::new();
    let applied = replay(&mut tree, &unhex(NO_DIGEST_TXNS));
    assert!(applied.iter().all(|applied| applied.digest == DigestCheck::Absent));
    // It did not list what the session had either.
    let Outcome::SessionClosed { deleted } = &applied.last().unwrap().outcome else {
        panic!("{applied:?}")
    };
    assert_eq!(paths(deleted), ["/f"]);
    assert!(tree.get("/f").is_none() && tree.get("/f2").is_some());
    assert_eq!(tree.sessions().count(), 0);
}
