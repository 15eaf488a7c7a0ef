//! A tree as a server of ZooKeeper writes it into a snapshot: one node after the other, while transactions are applied.
//!
//! ```text
//!   sessions, access lists: as they are at first ─► "" ─► a child ─► its children … ─► "/"
//!                                         transactions: ┴────────┴──────┴──────────┘ between any two nodes
//! ```
//!
//! A node is written as it is when its turn comes, with the names that its children have then. So a child that is created behind
//! that is not written, though what has created it is in other nodes; one that is deleted is left out, and its parent may still
//! count it; and an access list that is new has no place in the table. Who reads it applies all those transactions again.
//!
//! In the Java code: `SerializeUtils.serializeSnapshot`, `DataTree.serialize`, `serializeNode`.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::rng::Rng;
use quorate_core::txn::Txn;
use quorate_znode::stat::StoredStat;
use quorate_znode::{NodeRef, Tree};

/// The body of a snapshot that is begun at `tree` and written while `txns` are applied to it.
pub(crate) fn meanwhile(mut tree: Tree, txns: &[Txn], rng: &mut Rng) -> Bytes {
    let mut body = BytesMut::new();
    let begun = tree.snapshot();
    put_count(&mut body, begun.sessions().count());
    for (session, timeout_ms) in begun.sessions() {
        body.put_i64(session);
        body.put_i32(timeout_ms);
    }
    put_count(&mut body, begun.acls().count());
    for (key, list) in begun.acls() {
        body.put_i64(key);
        put_count(&mut body, list.len());
        for entry in list.iter() {
            body.put_i32(entry.perms);
            put_bytes(&mut body, entry.scheme.as_bytes());
            put_bytes(&mut body, entry.id.as_bytes());
        }
    }
    // All of them come to pass before the last node more often than not.
    let nodes_each = (2 * begun.len()).div_ceil(txns.len().max(1)) as u64;
    let mut txns = txns.iter();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        while rng.below(nodes_each + 1) == 0 {
            let Some(txn) = txns.next() else { break };
            drop(tree.apply(txn));
        }
        let Some(node) = tree.get(&path) else { continue };
        put_bytes(&mut body, path.as_bytes());
        put_node(&mut body, node);
        // Their names are in a hash set there: they come in any order.
        let children = left.len();
        left.extend(node.children().map(|name| format!("{path}/{name}")));
        if rng.below(2) == 0 {
            left[children..].reverse();
        }
    }
    put_bytes(&mut body, b"/");
    body.freeze()
}

fn put_node(body: &mut BytesMut, node: NodeRef<'_>) {
    match node.data() {
        Some(data) => put_bytes(body, data),
        None => body.put_i32(-1),
    }
    body.put_i64(node.acl_key());
    let StoredStat { czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid } =
        *node.stored_stat();
    for long in [czxid.0, mzxid.0, ctime, mtime] {
        body.put_i64(long);
    }
    for int in [version, cversion, aversion] {
        body.put_i32(int);
    }
    body.put_i64(owner);
    body.put_i64(pzxid.0);
}

fn put_count(body: &mut BytesMut, count: usize) {
    body.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn put_bytes(body: &mut BytesMut, bytes: &[u8]) {
    put_count(body, bytes.len());
    body.put_slice(bytes);
}
