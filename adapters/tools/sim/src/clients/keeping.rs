//! What servers keep by themselves: counts of quotas, and nodes that are removed when they are due.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::stat::Owner;
use quorate_znode::{Outcome, Tree, kind};

use crate::clients::judge::Seen;
use crate::rule::{Rule, Violation, broken};

/// What clients put under quota.
pub(crate) const UNDER_QUOTA: &str = "/a";
/// The nodes by which they do.
pub(crate) const QUOTA: &str = "/zookeeper/quota/a";
pub(crate) const LIMITS: &str = "/zookeeper/quota/a/zookeeper_limits";
pub(crate) const STATS: &str = "/zookeeper/quota/a/zookeeper_stats";

/// What was counted and removed so far.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// What the statistics said last.
    stats: Option<String>,
    pub(crate) counted: u64,
    pub(crate) containers: u64,
    pub(crate) ttls: u64,
    pub(crate) refused: u64,
    /// The TTL nodes that were created, by path.
    pub(crate) ttl_of: BTreeMap<String, i64>,
}

impl Kept {
    /// A transaction is committed; `before` is the node that it removes, as it was until then.
    pub(crate) fn on_committed(
        &mut self,
        server: ServerId,
        txn: &Txn,
        outcome: &Outcome,
        before: Option<&Seen>,
        tree: &Tree,
        by_java: bool,
    ) -> Result<(), Violation> {
        let (zxid, header) = (txn.zxid, txn.header);
        quota_is_right(server, tree)?;
        let stats = stats_of(tree);
        self.counted += u64::from(stats != self.stats && self.stats.is_some());
        self.stats = stats;
        match (header.kind, outcome) {
            (kind::CREATE_TTL, Outcome::Created { path, .. }) => {
                // Behind it stands the digest.
                let (body, _) = txn.body.split_last_chunk::<12>().unwrap_or((&[], &[0; 12]));
                let ttl = body.last_chunk().copied().map_or(0, i64::from_be_bytes);
                self.ttl_of.insert(path.clone(), ttl);
            }
            (kind::DELETE_CONTAINER, Outcome::Deleted(gone)) => {
                return self.is_due(server, zxid, header, &gone.path, before, by_java);
            }
            (_, Outcome::Failed(_)) if header.client == 0 && header.cxid == 0 => self.refused += 1,
            _ => {}
        }
        Ok(())
    }

    /// A container or a TTL node is removed by the leader: it was due just before.
    fn is_due(
        &mut self,
        server: ServerId,
        zxid: Zxid,
        header: TxnHeader,
        path: &str,
        before: Option<&Seen>,
        by_java: bool,
    ) -> Result<(), Violation> {
        let due = before.is_some_and(|node| {
            let since = header.time.saturating_sub(node.stat.mtime);
            let by_kind = match node.owner {
                Owner::Container => node.stat.cversion > 0,
                Owner::Ttl(ttl) => since > ttl && self.ttl_of.get(path) == Some(&ttl),
                Owner::None | Owner::Session(_) => false,
            };
            // A leader of ZooKeeper looks at it once, before it asks.
            (by_kind || by_java) && node.children.is_empty()
        });
        let container = before.is_some_and(|node| node.owner == Owner::Container);
        *(if container { &mut self.containers } else { &mut self.ttls }) += 1;
        if due {
            return Ok(());
        }
        let detail = format!("{zxid} removes {path} at {}, which was {before:?}", header.time);
        broken(Rule::Due, server, detail)
    }
}

fn stats_of(tree: &Tree) -> Option<String> {
    tree.get(LIMITS)?;
    let data = tree.get(STATS)?.data()?;
    Some(String::from_utf8_lossy(data).into_owned())
}

/// What the statistics say is what there is.
pub(crate) fn quota_is_right(server: ServerId, tree: &Tree) -> Result<(), Violation> {
    let Some(said) = stats_of(tree) else { return Ok(()) };
    let (mut count, mut bytes) = (0, 0);
    let mut left = vec![UNDER_QUOTA.to_owned()];
    while let Some(path) = left.pop() {
        let Some(node) = tree.get(&path) else { continue };
        count += 1;
        bytes += node.data().map_or(0, bytes::Bytes::len);
        left.extend(node.children().map(|name| format!("{path}/{name}")));
    }
    if said == format!("count={count},bytes={bytes}") {
        return Ok(());
    }
    let zxid = tree.last_zxid();
    let detail =
        format!("counts {said} below {UNDER_QUOTA} at {zxid}: {count} nodes, {bytes} bytes");
    broken(Rule::Quota, server, detail)
}
