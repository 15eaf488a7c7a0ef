//! The digests of the trees of all servers, which every server has compared with its leader's.

use std::collections::BTreeMap;

use quorate_service::wire::op;
use quorate_tokio::core::zxid::Zxid;
use serde_json::Value;

use crate::common::{Ensemble, lines, quorate, until};
use crate::ensemble::Servers;
use crate::raw::{Client, plain, set};

/// Servers keep one for each 128 transactions.
const EVERY: usize = 128;
/// So many must be equal.
const EQUAL: usize = 3;

/// Digests by zxid, as `hash` says them.
fn kept(servers: &Servers, id: usize) -> BTreeMap<i64, String> {
    let said = servers.word(id, "hash").unwrap();
    let pair = |line: &str| {
        let (zxid, digest) = line.split_once(": ")?;
        Some((i64::from_str_radix(zxid, 16).ok()?, digest.to_owned()))
    };
    said.lines().filter_map(pair).collect()
}

/// How many of the transactions that [`digests_agree`] makes stand in a server's log with the leader's digest.
fn logged(servers: &Servers, id: usize) -> usize {
    let mut count = 0;
    for file in std::fs::read_dir(servers.data(id)).unwrap() {
        let path = file.unwrap().path();
        let is_log =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
        if is_log {
            let dump = quorate(["log", "dump", "--json", path.to_str().unwrap()]);
            let ours = |line: &Value| line["path"] == "/digests" && line["digest"].is_string();
            count += lines(&dump).iter().filter(|line| ours(line)).count();
        }
    }
    count
}

/// All servers have the same behind some transactions, and none has found that its leader had something else.
pub(crate) fn digests_agree(servers: &Servers) {
    for id in servers.ids() {
        assert_eq!(differed(servers, id), 0, "server {id}");
    }
    digests_agree_from_now_on(servers);
}

/// The same, whatever they have found before.
pub(crate) fn digests_agree_from_now_on(servers: &Servers) {
    let before: Vec<_> = servers.ids().map(|id| differed(servers, id)).collect();
    digests_are_equal(servers);
    for (id, before) in servers.ids().zip(before) {
        // Servers of ZooKeeper compare what came with a transaction, if it came, and log both.
        assert!(logged(servers, id) >= EVERY * EQUAL, "server {id}");
        assert_eq!(differed(servers, id), before, "server {id}");
    }
}

/// How often a server has found that its leader had another digest.
pub(super) fn differed(servers: &Servers, id: usize) -> u64 {
    count_in(&servers.word(id, "mntr").unwrap())
}

/// The same of a server that is asked without the rest.
pub(super) fn differed_at(ensemble: &Ensemble, id: usize) -> u64 {
    count_in(&ensemble.ask(id, "mntr"))
}

fn count_in(said: &str) -> u64 {
    let count = said.lines().find_map(|line| line.strip_prefix("zk_digest_mismatches_count\t"));
    count.unwrap().parse().unwrap()
}

/// Makes as many transactions as it needs, and compares what all servers had behind some of them. Each digest is of
/// the whole tree: those of earlier transactions would tell no more.
pub(super) fn digests_are_equal(servers: &Servers) {
    let mut client = Client::open(servers.port(1), 10_000);
    // It may be there.
    drop(client.ask(&plain("/digests")));
    client.ask(&set("/digests", "begun")).unwrap();
    let begun = client.seen;
    for n in 0..EVERY * (EQUAL + 1) {
        client.send(&set("/digests", &n.to_string()));
    }
    for _ in 0..EVERY * (EQUAL + 1) {
        client.answer(op::SET_DATA).unwrap().unwrap();
    }
    until("equal digests", || {
        let all: Vec<_> = servers.ids().map(|id| kept(servers, id)).collect();
        let first = all.first()?;
        let common =
            |zxid: &&i64| Zxid(**zxid) > begun && all.iter().all(|kept| kept.contains_key(zxid));
        let common: Vec<_> = first.keys().filter(common).collect();
        for zxid in &common {
            let digests: Vec<_> = all.iter().map(|kept| &kept[zxid]).collect();
            assert!(digests.iter().all(|digest| *digest == digests[0]), "{zxid:x}: {digests:?}");
        }
        (common.len() >= EQUAL).then_some(())
    });
}
