//! Closing a session: the transaction that lists what goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::BytesMut;

use crate::digest;
use crate::encode::{put_count, put_text};
use crate::judge::Judge;
use crate::path;

/// Lists what a session will have, so that every server deletes the same, and notes that all of it goes and that
/// the session is closing. A list that does not fit is cut: a server that applies it deletes what is listed, and
/// then whatever else is the session's.
pub(crate) fn close(judge: &mut Judge<'_>, session: i64) -> BytesMut {
    let applied = judge.tree.ephemerals.get(&session).into_iter().flatten();
    let applied = applied.filter(|path| judge.outstanding.node(path).is_none());
    let mut paths: BTreeSet<Arc<str>> = applied.cloned().collect();
    paths.extend(judge.outstanding.owned(session).cloned());
    let body = list(session, &paths, judge.facts.bytes_max);
    // All of them go, listed or not.
    let mut parents = BTreeMap::new();
    for path in &paths {
        if let Some((parent, _)) = path::split(path) {
            *parents.entry(parent).or_insert(0_usize) += 1;
        }
        judge.forget(path);
    }
    for (path, fewer) in parents {
        if let Some(mut record) = judge.record(path) {
            let before = record.digest(path);
            record.children = record.children.saturating_sub(fewer);
            record.stat.pzxid = record.stat.pzxid.max(judge.facts.zxid);
            judge.put(path, before, Some(record));
        }
    }
    judge.outstanding.put_session(session, false);
    body
}

/// The body of a transaction that closes a session: its paths, or as many as fit in `bytes_max`. It is never
/// two transactions: a crash between them would leave a session that lives and has lost its locks.
///
/// Of each parent one comes first. A Java server that applies this to a snapshot in which the others are gone
/// already moves the parent's `pzxid` for those that are listed only; for the rest it is enough that every
/// server knows what the session has.
fn list(session: i64, paths: &BTreeSet<Arc<str>>, bytes_max: usize) -> BytesMut {
    let takes = |path: &Arc<str>| 4 + path.len();
    let whole = 4 + paths.iter().map(takes).sum::<usize>();
    let mut listed: Vec<&Arc<str>> = Vec::new();
    if whole <= bytes_max {
        listed.extend(paths);
    } else {
        let (mut parents, mut left) = (BTreeSet::new(), bytes_max.saturating_sub(4));
        let (first, others): (Vec<_>, Vec<_>) = paths
            .iter()
            .partition(|path| parents.insert(path::split(path).map(|(parent, _)| parent)));
        let mut take = |path: &Arc<str>| {
            let room = left.checked_sub(takes(path));
            left = room.unwrap_or(left);
            room.is_some()
        };
        listed.extend(first.iter().copied().filter(|path| take(path)));
        if listed.len() < first.len() {
            tracing::warn!(
                event = "session.many_parents",
                session = format_args!("0x{session:x}"),
                ephemerals = paths.len(),
                parents = first.len(),
                listed = listed.len(),
                "a session closes with ephemeral nodes below more parents than a transaction can name: \
                 a Java server that recovers from a snapshot taken meanwhile may keep an older pzxid of the others"
            );
        }
        listed.extend(others.into_iter().filter(|path| take(path)));
    }
    let mut body = BytesMut::with_capacity(whole.min(bytes_max) + digest::BYTES);
    put_count(&mut body, listed.len());
    for path in listed {
        put_text(&mut body, path);
    }
    body
}
