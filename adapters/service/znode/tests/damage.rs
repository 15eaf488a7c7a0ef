//! Snapshots that are damaged, hostile, very deep or very wide.

use std::io::{self, BufReader, Read, Write};
use std::time::Instant;

use crate::support::*;
use bytes::BytesMut;
use quorate_core::zxid::Zxid;
use quorate_znode::{Restoring, SnapshotError, Tree, kind};

const BODY: &[u8] = include_bytes!("golden/snap.stream");

fn restore(body: &[u8]) -> Result<Tree, SnapshotError> {
    Tree::restore(body, Zxid(1))
}

#[test]
fn a_snapshot_that_ends_early_is_refused_at_every_length() {
    let length = Parts::of(BODY).length;
    for cut in 0..length {
        let error = restore(&BODY[..cut]).unwrap_err();
        let SnapshotError::Ended { offset } = error else { panic!("{cut}: {error}") };
        assert!(offset <= cut as u64);
    }
    assert!(restore(&BODY[..length]).is_ok());
}

#[test]
fn a_flipped_bit_is_refused_or_gives_a_tree_that_is_whole() {
    let (mut refused, mut restored) = (0, 0);
    for bit in 0..Parts::of(BODY).length * 8 {
        let mut body = BODY.to_vec();
        body[bit / 8] ^= 1 << (bit % 8);
        match restore(&body) {
            Err(error) => {
                refused += 1;
                assert!(
                    error.to_string().contains("at byte")
                        || error.to_string().contains("before byte")
                );
            }
            Ok(tree) => {
                restored += 1;
                assert_eq!(tree.digest(), digest(&tree));
                let again = restore(&bytes(&tree)).unwrap();
                assert_eq!(bytes(&again), bytes(&tree));
            }
        }
    }
    assert!(refused > 1_000 && restored > 1_000, "{refused} {restored}");
}

#[test]
fn random_bytes_are_refused() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let body: Vec<_> =
            (0..random.below(200)).map(|_| random.of(&[0, 0, 0, 0, 1, 47, 97, 255])).collect();
        // Whatever comes of it, it comes.
        drop(restore(&body));
    }
}

#[test]
fn a_length_is_not_believed() {
    let lists = Body::default().int(0).int(0);
    for (body, begins) in [
        (lists.clone().int(i32::MAX), 12),
        (lists.buffer("").int(i32::MAX), 16),
        (Body::default().int(0).int(1).long(5).int(1).int(31).int(i32::MAX), 28),
        (Body::default().int(i32::MAX), 4),
        (Body::default().int(0).int(i32::MAX), 8),
    ] {
        let error = restore(&body.0).unwrap_err();
        let SnapshotError::Ended { offset } = error else { panic!("{error}") };
        assert_eq!(offset, begins);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let node = |body: Body, path: &str| body.buffer(path).int(-1).long(-1).stat();
    let root = || node(Body::default().int(0).int(0), "");
    for (body, said) in [
        (Body::default().int(-1), "a negative count"),
        (Body::default().int(2).long(7).int(1).long(7).int(1), "a session is there twice"),
        (Body::default().int(0).int(1).long(-1).int(0), "the key of an access list"),
        (Body::default().int(0).int(0).buffer("/"), "the first node is not the root"),
        (node(Body::default().int(0).int(0), "/a"), "the first node is not the root"),
        (node(root(), "/a/b"), "\"/a/b\""),
        (node(root(), ""), "the node's parent is missing, or it is there twice"),
        (node(root(), "a"), "\"a\""),
        (node(root(), "/a/"), "\"/a/\""),
        (node(node(root(), "/a"), "/a"), "\"/a\""),
        (root().buffer([0xff, 0xfe]), "not UTF-8"),
        (root().int(-2), "a negative count or length"),
    ] {
        let error = restore(&body.0).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let long = "/x".repeat(400_000);
    let error = restore(&node(root(), &long).0).unwrap_err().to_string();
    assert!(error.len() < 500, "a path is shown in part");
    assert!(restore(&root().buffer("/").0).is_ok());
}

trait WithStat {
    fn stat(self) -> Self;
}

impl WithStat for Body {
    fn stat(mut self) -> Self {
        self.0.extend([0; 60]);
        self
    }
}

#[test]
fn the_readers_and_writers_errors_come_through() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is on fire"))
        }
    }
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is on fire"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let broken = BufReader::new(BODY[..40].chain(Broken));
    let error = Tree::restore(broken, Zxid(0)).unwrap_err();
    let SnapshotError::Io { offset, source } = error else { panic!("{error}") };
    assert!(offset <= 40);
    assert_eq!(source.to_string(), "the disk is on fire");
    assert!(Tree::new().write_snapshot(Broken).is_err());
}

/// A tree as deep as a path can be long: nothing may go one call deeper for each level.
#[test]
fn a_very_deep_tree_is_applied_written_restored_and_dropped() {
    let mut tree = Tree::new();
    let mut path = String::new();
    let depth = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
    for _ in 0..depth {
        path.push_str("/d");
        make(&mut tree, &path);
    }
    let snapshot = tree.snapshot();
    let written = bytes(&tree);
    let again = Tree::restore(&written[..], snapshot.zxid()).unwrap();
    assert_eq!((again.len(), again.digest()), (depth + 4, tree.digest()));
    apply(&mut tree, kind::SET_DATA, set_data(&path, Some(b"end"), 1));
    assert_eq!(tree.digest(), digest(&tree));
    // A state may contain later transactions: what is below goes too.
    apply(&mut tree, kind::DELETE, delete("/d"));
    assert_eq!((tree.len(), tree.digest()), (4, digest(&tree)));
    let mut same = Vec::new();
    snapshot.write(&mut same).unwrap();
    assert_eq!(same, written);
    let deep = std::thread::Builder::new().stack_size(128 * 1024);
    deep.spawn(move || drop((tree, again, snapshot))).unwrap().join().unwrap();
}

#[test]
fn a_snapshot_can_be_written_by_another_thread() {
    let mut tree = Tree::new();
    make(&mut tree, "/a");
    let (snapshot, then) = (tree.snapshot(), bytes(&tree));
    let writer = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        snapshot.write(&mut bytes).map(|()| bytes)
    });
    for i in 0..1_000 {
        make(&mut tree, &format!("/a/{i}"));
    }
    assert_eq!(writer.join().unwrap().unwrap(), then);
}

/// Writes in pieces, as a socket would.
struct Pieces {
    largest: usize,
    bytes: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(bytes.len());
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The times are for those who look (`--nocapture`); nothing depends on them.
#[test]
fn a_hundred_thousand_nodes_are_written_and_restored() {
    let mut tree = Tree::new();
    make(&mut tree, "/wide");
    let count = 100_000;
    let bodies: Vec<_> = (0..count)
        .map(|i| create(&format!("/wide/n-{i:010}"), Some(&[7; 100]), false, i + 1))
        .collect();
    let start = Instant::now();
    for body in bodies {
        apply(&mut tree, kind::CREATE, body);
    }
    let created = start.elapsed();

    let start = Instant::now();
    let mut to = Pieces { largest: 0, bytes: Vec::new() };
    let snapshot = tree.snapshot();
    snapshot.write(&mut to).unwrap();
    let (written, mib) = (start.elapsed(), to.bytes.len() >> 20);
    assert!(to.largest <= 65 * 1024, "a piece, and at most a node more");

    // The snapshot is held: the first changes copy what they touch, no more.
    let start = Instant::now();
    apply(&mut tree, kind::SET_DATA, set_data("/wide/n-0000000007", None, 1));
    let first = start.elapsed();

    let start = Instant::now();
    let again = Tree::restore(&to.bytes[..], snapshot.zxid()).unwrap();
    let restored = start.elapsed();
    assert_eq!((again.len(), again.digest()), (snapshot.len(), snapshot.digest()));
    println!(
        "created {created:?}, {mib} MiB written {written:?}, first change {first:?}, restored {restored:?}"
    );
}

/// Whatever comes of a body comes of it in pieces of any length: the same tree, the same error, and not one byte of
/// what is behind.
#[test]
fn a_snapshot_may_come_in_pieces_of_any_length() {
    let whole = Parts::of(BODY).length;
    let mut bad = BODY.to_vec();
    bad[whole / 2] ^= 0x80;
    for body in [BODY, &bad] {
        let expected = restore(body).map(|tree| bytes(&tree)).map_err(|error| error.to_string());
        for length in [1, 2, 3, 7, 64, 1_000] {
            let mut restoring = Restoring::new(Zxid(1));
            let (mut taken, mut found) = (0, None);
            for piece in body.chunks(length) {
                let mut rest = piece;
                found = restoring.push(&mut rest).map_err(|error| error.to_string()).transpose();
                taken += piece.len() - rest.len();
                if found.is_some() {
                    break;
                }
                assert!(rest.is_empty());
            }
            let found = found.unwrap_or_else(|| Err(restoring.ended().to_string()));
            let ok = found.is_ok();
            assert_eq!(found.map(|tree| bytes(&tree)), expected, "{length}");
            assert!(!ok || taken == whole, "{taken}");
        }
    }
}

/// A piece begins where the last one ended, wherever that is.
#[test]
fn a_snapshot_of_many_of_everything_is_written_in_pieces() {
    let mut tree = Tree::new();
    for id in 0..20_000 {
        let zxid = tree.last_zxid().0 + 1;
        let body = Body::default().int(4_000);
        tree.apply(&txn(zxid, id, kind::CREATE_SESSION, body)).unwrap();
    }
    for i in 0..300 {
        make(&mut tree, &format!("/{i}"));
        for j in 0..20 {
            make(&mut tree, &format!("/{i}/{j}"));
        }
    }
    let snapshot = tree.snapshot();
    let (mut pieces, mut written, mut count) = (snapshot.clone().pieces(), BytesMut::new(), 0);
    loop {
        let before = written.len();
        let more = pieces.next(&mut written).unwrap();
        assert!(written.len() - before < 70_000);
        count += 1;
        if !more {
            break;
        }
    }
    assert!(count > 8, "{count}");
    assert!(!pieces.next(&mut written).unwrap(), "nothing is behind the end");
    let again = Tree::restore(&written[..], snapshot.zxid()).unwrap();
    assert_eq!((again.len(), again.digest()), (tree.len(), tree.digest()));
    assert!(again.sessions().eq(tree.sessions()));
    assert_eq!(bytes(&again), written);
}
