//! Arbitrary bytes as a snapshot file, plain or compressed, and as the body of a whole one: it is refused,
//! or it is a tree that writes itself and is read again as the same.

use std::io::Write as _;
use std::path::Path;

use quorate_core::zxid::Zxid;
use quorate_storage::snapshot::{
    Digest, Parts, SnapshotFile, SnapshotReader, SnapshotWriter, inspect, looks_whole,
};
use quorate_znode::Tree;

use crate::log_files::support::{Forgetful, State};

const LABEL: Zxid = Zxid(0x1_0000_0005);

/// Feeds these bytes; the first says as what.
pub fn feed(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    match first % 4 {
        0 => drop(file("snapshot.100000005", data)),
        // Only what begins as Snappy does gets any further as that.
        1 if data.starts_with(b"\x82") => drop(file("snapshot.100000005.snappy", data)),
        1 => drop(file("snapshot.100000005.gz", data)),
        // A seal fits, and what it seals is anything.
        2 => drop(file("snapshot.100000005", &whole(data, LABEL))),
        _ => body(data),
    }
}

/// A file with this body and all seals.
pub(crate) fn whole(body: &[u8], label: Zxid) -> Vec<u8> {
    let files = Forgetful::new(State::default());
    let parts = Parts {
        digest: Some(Digest { zxid: label, version: 2, digest: 1 }),
        last_zxid: Some(label),
    };
    let written = SnapshotWriter::take(files.clone(), Path::new("/"), label).and_then(|mut to| {
        let written = to.write_all(body);
        assert!(written.is_ok(), "a disk that never fails");
        to.finish(parts)
    });
    let names = files.0.borrow().names.keys().cloned().collect::<Vec<_>>();
    let path = names.first().filter(|_| written.is_ok());
    path.map_or_else(Vec::new, |path| {
        let state = files.0.borrow();
        state.content(path).map(|content| content.synced.to_vec()).unwrap_or_default()
    })
}

/// What a file gives; none if it is refused.
fn file(name: &str, bytes: &[u8]) -> Option<(Tree, Parts)> {
    let mut state = State::default();
    state.put(Path::new("/").join(name), bytes);
    let files = Forgetful::new(state);
    let snapshot = SnapshotFile::at(Path::new("/").join(name)).expect("the name of a snapshot");
    let looks = looks_whole(&files, &snapshot);
    let inspected = inspect(files.clone(), &snapshot);
    let mut reader = SnapshotReader::open(files, &snapshot).ok()?;
    let label = reader.label();
    let tree = Tree::restore(&mut reader, label).ok()?;
    let parts = reader.finish().ok()?;
    assert!(matches!(looks, Ok(true)), "what can be read does not look whole: {looks:?}");
    assert_eq!(inspected.map(|seen| seen.parts).ok(), Some(parts));
    Some((tree, parts))
}

fn body(data: &[u8]) {
    let Ok(tree) = Tree::restore(data, LABEL) else { return };
    let bytes = written(&tree);
    let again = Tree::restore(&bytes[..], LABEL).expect("our own bytes");
    assert_eq!(written(&again), bytes);
    assert_eq!((again.digest(), again.len()), (tree.digest(), tree.len()));
    let (read, parts) = file("snapshot.100000005", &whole(&bytes, LABEL)).expect("our own file");
    assert_eq!((read.digest(), parts.last_zxid), (tree.digest(), Some(LABEL)));
    for cut in 0..bytes.len().min(64) {
        let short = &bytes[..bytes.len() - cut - 1];
        assert!(Tree::restore(short, LABEL).is_err(), "{cut} bytes less");
    }
}

/// The body of a tree's snapshot.
pub(crate) fn written(tree: &Tree) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(tree.write_snapshot(&mut bytes).is_ok(), "a vector takes everything");
    bytes
}
