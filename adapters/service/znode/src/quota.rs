//! Quotas: the statistics that ZooKeeper keeps of them, as data of ordinary nodes.
//!
//! A client puts `/p` under quota by creating `/zookeeper/quota/p/zookeeper_limits`, and beside it
//! `zookeeper_stats`, whose data servers then keep at `count=<nodes>,bytes=<data>` of `/p` and all
//! below. That is no transaction: no version, no watch, no digest knows of it. Whether a limit is
//! reached is for the leader to say, before there is a transaction.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str;

use bytes::Bytes;

use crate::node::Node;
use crate::path::{self, QUOTA};
use crate::tree::Tree;

const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

impl Tree {
    /// `path`, that is `name` below `parent`, was created with so much data.
    pub(crate) fn quota_created(&mut self, parent: &str, name: &str, path: &str, bytes: usize) {
        if let Some(of) = under_quota(parent) {
            match name {
                LIMITS => drop(self.quotas.insert(of.to_owned())),
                STATS => self.quota_recount(of),
                _ => {}
            }
        }
        self.quota_changed(path, 1, signed(bytes));
    }

    /// `path` is no more.
    pub(crate) fn quota_gone(&mut self, path: &str) {
        if let Some((parent, LIMITS)) = path::split(path) {
            if let Some(of) = under_quota(parent) {
                self.quotas.remove(of);
            }
        }
    }

    /// `path` was deleted, and so many nodes with so much data in all.
    pub(crate) fn quota_deleted(&mut self, path: &str, nodes: usize, bytes: usize) {
        self.quota_changed(path, -signed(nodes), -signed(bytes));
    }

    /// The data of `path` has become longer or shorter.
    pub(crate) fn quota_set(&mut self, path: &str, before: usize, after: usize) {
        self.quota_changed(path, 0, signed(after) - signed(before));
    }

    /// Finds the quotas of a tree that was restored and counts what they speak of.
    pub(crate) fn quota_restored(&mut self) {
        let mut left: Vec<_> =
            self.root.find(QUOTA).map(|node| (String::new(), node)).into_iter().collect();
        let mut found = Vec::new();
        while let Some((of, node)) = left.pop() {
            for (name, child) in node.children.iter() {
                if **name == *LIMITS && !of.is_empty() {
                    found.push(of.clone());
                }
                left.push((format!("{of}/{name}"), &**child));
            }
        }
        for of in found {
            self.quota_recount(&of);
            self.quotas.insert(of);
        }
    }

    fn quota_recount(&mut self, of: &str) {
        let (mut count, mut bytes) = (0, 0);
        let mut left: Vec<_> = self.root.find(of).into_iter().collect();
        while let Some(node) = left.pop() {
            count += 1;
            bytes += signed(node.data_len());
            left.extend(node.children.iter().map(|(_, child)| &**child));
        }
        let stats = Stats { count, bytes, others: BTreeMap::new() };
        self.quota_write(of, |_| stats);
    }

    fn quota_changed(&mut self, path: &str, count: i64, bytes: i64) {
        if self.quotas.is_empty() {
            return;
        }
        let mut prefix = path;
        while !prefix.is_empty() && !self.quotas.contains(prefix) {
            prefix = prefix.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        if !prefix.is_empty() {
            self.quota_write(prefix, |data| {
                // What is no text of a quota, and stands there all the same, says nothing: it is counted from here on.
                let none = || Stats { count: 0, bytes: 0, others: BTreeMap::new() };
                let stats = data.map_or_else(none, |data| Stats::parse(data).unwrap_or_else(none));
                Stats {
                    count: stats.count.wrapping_add(count),
                    bytes: stats.bytes.wrapping_add(bytes),
                    ..stats
                }
            });
        }
    }

    /// Rewrites the statistics, if there is a node for them.
    fn quota_write(&mut self, of: &str, change: impl FnOnce(Option<&[u8]>) -> Stats) {
        let path = format!("{QUOTA}{of}/{STATS}");
        let Some(node) = Node::find_mut(&mut self.root, &path) else { return };
        let (stats, before) = (change(node.data.as_deref()), node.data_len());
        node.set_data(&path, Some(Bytes::from(stats.to_text())));
        self.size = self.size - before + node.data_len();
    }
}

/// Whether `path` would be the limits or the statistics of a quota, and its data no such text. Java servers that
/// read it stop, and stop again at each start.
pub fn is_poisoned_quota(path: &str, data: Option<&[u8]>) -> bool {
    let Some((parent, LIMITS | STATS)) = path::split(path) else { return false };
    let quota = parent == QUOTA || under_quota(parent).is_some();
    quota && data.and_then(Stats::parse).is_none()
}

/// The path whose quota a node below `parent` describes.
fn under_quota(parent: &str) -> Option<&str> {
    parent.strip_prefix(QUOTA).filter(|of| of.starts_with('/'))
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// `count=4,bytes=5`, and perhaps `=;key=6;key=7`, sorted; what is missing is -1.
#[derive(Debug, PartialEq, Eq)]
struct Stats {
    count: i64,
    bytes: i64,
    others: BTreeMap<String, i64>,
}

impl Stats {
    fn parse(data: &[u8]) -> Option<Self> {
        let mut others = BTreeMap::new();
        if !data.is_empty() {
            for pair in str::from_utf8(data).ok()?.split([',', ';']) {
                // As Java splits it: empty parts at the end are none.
                let mut parts = pair.trim_end_matches('=').split('=');
                let (key, value) = (parts.next()?, parts.next()?);
                let value = if value.is_empty() { -1 } else { value.parse().ok()? };
                others.insert(key.to_owned(), value);
            }
        }
        let count = others.remove("count").unwrap_or(-1);
        let bytes = others.remove("bytes").unwrap_or(-1);
        Some(Self { count, bytes, others })
    }

    fn to_text(&self) -> String {
        let mut text = format!("count={},bytes={}", self.count, self.bytes);
        for (index, (key, value)) in self.others.iter().enumerate() {
            // The first one is set off by what very old readers skip.
            let before = if index == 0 { "=;" } else { ";" };
            let written = write!(text, "{before}{key}={value}");
            debug_assert!(written.is_ok(), "writing to a string");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_go_to_text_and_back() {
        for text in ["count=4,bytes=5", "count=-1,bytes=5=;byteHardLimit=6;countHardLimit=7"] {
            assert_eq!(Stats::parse(text.as_bytes()).unwrap().to_text(), text);
        }
        let empty = Stats { count: -1, bytes: -1, others: BTreeMap::new() };
        assert_eq!(Stats::parse(b""), Some(empty));
        let left_out = Stats { count: -1, bytes: 5, others: BTreeMap::new() };
        assert_eq!(Stats::parse(b"count==1,bytes=5="), Some(left_out));
    }

    #[test]
    fn what_is_no_statistics_is_left_alone() {
        for odd in
            ["count", "count=", "=", "count=x", ",", "count=1,", "count=99999999999999999999"]
        {
            assert_eq!(Stats::parse(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(Stats::parse(&[0xff]), None);
    }
}
