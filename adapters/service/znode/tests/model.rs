//! Histories at random: against a model that is as simple as can be, and replayed over snapshots that
//! were written while the history went on, as Java's are.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use crate::support::*;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::{DigestCheck, Snapshot, Tree, kind};

const NAMES: [&str; 4] = ["a", "b", "b-", "c"];
const SESSIONS: [i64; 3] = [0x0100_0000_0000_0001, 0x0100_0000_0000_0002, 0x0200_0000_0000_0001];

/// Some path, two or three levels deep at most.
fn path(random: &mut Random) -> String {
    (0..=random.below(3)).map(|_| format!("/{}", random.of(&NAMES))).collect()
}

fn acl(random: &mut Random) -> Vec<Acl> {
    let id = random.of(&["u:x", "u:y"]).into();
    match random.below(4) {
        0 => vec![Acl::world(1)],
        1 => vec![Acl { perms: 31, scheme: "digest".into(), id }, Acl::world(1)],
        _ => open(),
    }
}

/// What a leader might propose next; with `wild`, also what it should not have.
fn propose(tree: &Tree, random: &mut Random, wild: bool) -> (i64, i32, Body) {
    let session = random.of(&SESSIONS);
    loop {
        if random.below(12) == 0 {
            let elements: Vec<_> =
                (0..random.below(4)).map(|_| element(tree, random, wild)).collect();
            let apart =
                |path: &String| elements.iter().filter(|other| other.0 == *path).count() == 1;
            // A leader sees the changes of earlier elements; here they do not touch each other.
            if wild || elements.iter().all(|(path, ..)| apart(path) && path.len() == 2) {
                let legal: Vec<_> = elements
                    .into_iter()
                    .filter(|(path, kind, _)| {
                        *kind != kind::SET_ACL && (wild || legal(tree, path, *kind))
                    })
                    .map(|(_, kind, body)| (kind, body))
                    .collect();
                return (session, kind::MULTI, multi(&legal));
            }
        }
        let (path, kind, body) = match random.below(14) {
            0 => return (session, kind::CREATE_SESSION, Body::default().int(4_000)),
            1 => {
                let paths: Vec<_> = tree.ephemerals(session).collect();
                let body = match random.below(3) {
                    0 => Body::default(),
                    _ => close_session(&paths),
                };
                return (session, kind::CLOSE_SESSION, body);
            }
            2 => return (session, kind::ERROR, Body::default().int(-103)),
            _ => element(tree, random, wild),
        };
        if wild || legal(tree, &path, kind) {
            return (session, kind, body);
        }
    }
}

fn legal(tree: &Tree, path: &str, kind: i32) -> bool {
    let parent = tree.get(path.rsplit_once('/').unwrap().0);
    let node = tree.get(path);
    match kind {
        kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
            node.is_none() && parent.is_some_and(|parent| parent.stat().ephemeral_owner == 0)
        }
        kind::DELETE => node.is_some_and(|node| node.stat().num_children == 0),
        _ => node.is_some(),
    }
}

fn element(tree: &Tree, random: &mut Random, wild: bool) -> (String, i32, Body) {
    let path = path(random);
    let stored = |path: &str| tree.get(path).map(|node| *node.stored_stat());
    let cversion = if wild && random.below(4) == 0 {
        // The oldest servers left it to those that apply, so that it could not be replayed.
        -1
    } else {
        stored(path.rsplit_once('/').unwrap().0).map_or(1, |stat| stat.cversion + 1)
    };
    let text = format!("{}", random.below(1_000));
    let data = (random.below(5) > 0).then_some(text.as_bytes());
    let (kind, body) = match random.below(10) {
        kind @ 0..4 => {
            let kind = [kind::CREATE, kind::CREATE2][kind % 2];
            (kind, create_as(&path, data, &acl(random), random.below(4) == 0, cversion))
        }
        4 => (kind::CREATE_CONTAINER, create_container(&path, cversion)),
        5 => (kind::CREATE_TTL, create_ttl(&path, cversion, 1 + random.below(99) as i64)),
        6 => {
            let version = stored(&path).map_or(0, |stat| stat.version) + 1;
            (kind::SET_DATA, set_data(&path, data, version))
        }
        7 => {
            let version = stored(&path).map_or(0, |stat| stat.aversion) + 1;
            (kind::SET_ACL, set_acl(&path, &acl(random), version))
        }
        _ => (kind::DELETE, delete(&path)),
    };
    (path, kind, body)
}

/// Nodes by path and nothing else. A transaction is read anew from its bytes.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<String, Modelled>,
    sessions: BTreeMap<i64, i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Modelled {
    data: Option<Vec<u8>>,
    acl: Vec<(i32, String, String)>,
    czxid: i64,
    mzxid: i64,
    pzxid: i64,
    ctime: i64,
    mtime: i64,
    version: i32,
    cversion: i32,
    aversion: i32,
    owner: i64,
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn buffer(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.take(length))
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.buffer().unwrap()).unwrap()
    }

    fn acl(&mut self) -> Vec<(i32, String, String)> {
        (0..self.int()).map(|_| (self.int(), self.text(), self.text())).collect()
    }
}

impl Model {
    fn apply(&mut self, txn: &Txn) {
        self.one(txn, txn.header.kind, &mut Bytes(&txn.body));
    }

    fn one(&mut self, txn: &Txn, kind: i32, body: &mut Bytes<'_>) {
        let (zxid, time) = (txn.zxid.0, txn.header.time);
        match kind {
            1 | 15 | 19 | 21 => {
                let (path, data, acl) = (body.text(), body.buffer(), body.acl());
                let ephemeral = kind < 19 && body.take(1) == [1];
                let told = body.int();
                let owner = match kind {
                    19 => i64::MIN,
                    21 => i64::from_be_bytes(body.take(8).try_into().unwrap()) | 0xff << 56,
                    _ if ephemeral => txn.header.client,
                    _ => 0,
                };
                let (parent, _) = path.rsplit_once('/').unwrap();
                let exists = self.nodes.contains_key(&path);
                let Some(parent) = self.nodes.get_mut(parent) else { return };
                if !exists || kind == 1 {
                    let cversion = if told == -1 { parent.cversion + 1 } else { told };
                    if cversion > parent.cversion {
                        (parent.cversion, parent.pzxid) = (cversion, zxid);
                    }
                }
                let new = Modelled {
                    data,
                    czxid: zxid,
                    mzxid: zxid,
                    pzxid: zxid,
                    ctime: time,
                    mtime: time,
                    owner,
                    ..Modelled::default()
                };
                self.nodes.entry(path).or_insert(new).acl = acl;
            }
            2 => self.delete(&body.text(), zxid),
            5 => {
                let (path, data, version) = (body.text(), body.buffer(), body.int());
                if let Some(node) = self.nodes.get_mut(&path) {
                    (node.data, node.version) = (data, version);
                    (node.mzxid, node.mtime) = (zxid, time);
                }
            }
            7 => {
                let (path, acl, version) = (body.text(), body.acl(), body.int());
                if let Some(node) = self.nodes.get_mut(&path) {
                    (node.acl, node.aversion) = (acl, version);
                }
            }
            14 => {
                for _ in 0..body.int() {
                    let (kind, element) = (body.int(), body.buffer().unwrap());
                    self.one(txn, kind, &mut Bytes(&element));
                }
            }
            -10 => drop(self.sessions.insert(txn.header.client, body.int())),
            -11 => {
                self.sessions.remove(&txn.header.client);
                let mine = |node: &Modelled| node.owner == txn.header.client;
                let all: Vec<_> = self
                    .nodes
                    .iter()
                    .filter(|(_, node)| mine(node))
                    .map(|(path, _)| path.clone())
                    .collect();
                all.iter().for_each(|path| self.delete(path, zxid));
            }
            _ => {}
        }
    }

    fn delete(&mut self, path: &str, zxid: i64) {
        let (parent, _) = path.rsplit_once('/').unwrap();
        let Some(parent) = self.nodes.get_mut(parent) else { return };
        parent.pzxid = parent.pzxid.max(zxid);
        let below = format!("{path}/");
        self.nodes.retain(|other, _| other != path && !other.starts_with(&below));
    }
}

/// The nodes of a tree, without ZooKeeper's own.
fn nodes(tree: &Tree) -> BTreeMap<String, Modelled> {
    let mut nodes = BTreeMap::new();
    let all = tree.snapshot().walk(|path, node| {
        if !path.starts_with("/zookeeper") {
            let stat = node.stored_stat();
            let acl = node.acl().ok_or(path.to_owned())?;
            let modelled = Modelled {
                data: node.data().map(|data| data.to_vec()),
                acl: acl
                    .iter()
                    .map(|acl| (acl.perms, acl.scheme.to_string(), acl.id.to_string()))
                    .collect(),
                czxid: stat.czxid.0,
                mzxid: stat.mzxid.0,
                pzxid: stat.pzxid.0,
                ctime: stat.ctime,
                mtime: stat.mtime,
                version: stat.version,
                cversion: stat.cversion,
                aversion: stat.aversion,
                owner: stat.owner,
            };
            nodes.insert(path.to_owned(), modelled);
        }
        Ok::<_, String>(())
    });
    assert_eq!(all, Ok(()), "an access list is missing");
    nodes
}

/// Whether the indexes and counters say what the nodes say.
fn check(tree: &Tree) {
    assert_eq!(tree.digest(), digest(tree));
    let mut owned: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    let (mut containers, mut ttls, mut count, mut keys) = (vec![], vec![], 0, vec![]);
    let mut size = 0;
    tree.snapshot()
        .walk(|path, node| {
            count += 1;
            keys.push(node.acl_key());
            match node.owner() {
                quorate_znode::stat::Owner::None => {}
                quorate_znode::stat::Owner::Container => containers.push(path.to_owned()),
                quorate_znode::stat::Owner::Ttl(_) => ttls.push(path.to_owned()),
                quorate_znode::stat::Owner::Session(id) => {
                    owned.entry(id).or_default().push(path.to_owned());
                }
            }
            let found = tree.get(path).unwrap();
            size += path.len() + found.data().map_or(0, |data| data.len());
            assert_eq!(found.stat(), node.stat());
            assert_eq!(tree.children(path).unwrap().count(), found.stat().num_children as usize);
            Ok::<_, ()>(())
        })
        .unwrap();
    assert_eq!((tree.len(), tree.data_size()), (count, size));
    let sorted = |mut paths: Vec<String>| {
        paths.sort();
        paths
    };
    assert!(tree.containers().eq(sorted(containers)));
    assert!(tree.ttls().eq(sorted(ttls)));
    assert!(tree.owners().eq(owned.keys().copied()));
    assert_eq!(tree.ephemeral_count(), owned.values().map(|paths| paths.len()).sum::<usize>());
    assert_eq!(tree.session_count(), tree.sessions().count());
    for (session, paths) in owned {
        assert!(tree.ephemerals(session).eq(sorted(paths)));
    }
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| *key != -1);
    assert!(tree.snapshot().acls().map(|(key, _)| key).eq(keys), "every list has a node");
}

#[test]
fn a_random_history_does_what_the_model_does() {
    for seed in 1..=60 {
        let mut random = Random::new(seed);
        let (mut tree, mut model) = (Tree::new(), Model::default());
        let root = Modelled {
            acl: nodes(&tree)[""].acl.clone(),
            data: Some(vec![]),
            ..Modelled::default()
        };
        model.nodes.insert(String::new(), root);
        let mut before: Option<(Snapshot, Vec<u8>)> = None;
        for zxid in 1..=400 {
            let (session, kind, body) = propose(&tree, &mut random, seed % 2 == 0);
            let txn = txn(zxid, session, kind, body);
            tree.apply(&txn).unwrap();
            model.apply(&txn);
            assert_eq!(nodes(&tree), model.nodes, "{seed}: {txn:?}");
            assert!(tree.sessions().eq(model.sessions.clone()));
            check(&tree);
            if random.below(30) == 0 {
                // The one before has not changed under all that came after.
                if let Some((snapshot, then)) = before.take() {
                    let mut now = Vec::new();
                    snapshot.write(&mut now).unwrap();
                    assert_eq!(now, then);
                }
                before = Some((tree.snapshot(), bytes(&tree)));
                let again = Tree::restore(&bytes(&tree)[..], tree.last_zxid()).unwrap();
                check(&again);
                assert_eq!(nodes(&again), nodes(&tree));
                tree = again;
            }
        }
    }
}

/// A history, and the states after each transaction; the first is the initial one.
fn history(seed: u64) -> (Vec<Txn>, Vec<Tree>, Random) {
    let mut random = Random::new(seed);
    let mut tree = Tree::new();
    let mut states = vec![Tree::restore(&bytes(&tree)[..], Zxid(0)).unwrap()];
    let mut txns = Vec::new();
    for zxid in 1..=60 {
        let (session, kind, body) = propose(&tree, &mut random, false);
        let txn = txn(zxid, session, kind, body);
        assert_eq!(tree.apply(&txn).unwrap().outcome.error().filter(|_| kind != kind::ERROR), None);
        // Not a restored one: keys of access lists are as on the server that writes the snapshot.
        states.push(Tree::restore(&bytes(&tree)[..], txn.zxid).unwrap());
        txns.push(txn);
    }
    (txns, states, random)
}

#[test]
fn replaying_from_any_earlier_point_gives_the_same_state() {
    for seed in 1..=40 {
        let (txns, states, mut random) = history(seed);
        for _ in 0..10 {
            let at = random.below(txns.len());
            let mut tree = Tree::restore(&bytes(&states[at])[..], Zxid(at as i64)).unwrap();
            txns[random.below(at + 1)..].iter().for_each(|txn| drop(tree.apply(txn).unwrap()));
            let last = states.last().unwrap();
            assert_eq!(nodes(&tree), nodes(last), "{seed}");
            assert_eq!((tree.digest(), tree.last_zxid()), (last.digest(), last.last_zxid()));
            assert!(tree.sessions().eq(last.sessions()));
            check(&tree);
        }
    }
}

/// Java writes sessions and access lists, and then one node after the other with its children's names
/// as they are at that moment, while transactions are applied.
fn fuzzy(states: &[Tree], start: usize, random: &mut Random) -> Vec<u8> {
    let parts = Parts::of(&bytes(&states[start]));
    let mut body = Body::default().int(i32::try_from(parts.sessions.len()).unwrap());
    for (id, timeout) in parts.sessions {
        body = body.long(id).int(timeout);
    }
    body = body.int(i32::try_from(parts.lists.len()).unwrap());
    for (key, list) in parts.lists {
        body = body.long(key);
        body.0.extend(list);
    }
    let mut now = start;
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        now = (now + random.below(6) / 4 * random.below(4)).min(states.len() - 1);
        let Some(node) = states[now].get(&path) else { continue };
        let mut children: Vec<_> = node.children().map(|name| format!("{path}/{name}")).collect();
        if random.below(2) == 0 {
            children.reverse();
        }
        body = body.buffer(&path);
        body.0.extend(&Parts::of(&bytes(&states[now])).nodes[&path]);
        left.extend(children);
    }
    body.buffer("/").0
}

#[test]
fn a_snapshot_written_meanwhile_is_made_whole_by_the_log() {
    for seed in 1..=150 {
        let (txns, states, mut random) = history(seed);
        let start = random.below(txns.len());
        let body = fuzzy(&states, start, &mut random);
        let mut tree = Tree::restore(&body[..], Zxid(start as i64)).unwrap();
        txns[start..].iter().for_each(|txn| drop(tree.apply(txn).unwrap()));
        let last = states.last().unwrap();
        assert_eq!(nodes(&tree), nodes(last), "{seed}");
        assert_eq!(tree.digest(), last.digest());
        assert!(tree.sessions().eq(last.sessions()));
        check(&tree);
        // From here on the leader's digests can be compared.
        let body = create("/next", None, false, 99).int(2).long(0);
        let applied = tree.apply(&txn(100, 1, kind::CREATE, body)).unwrap();
        assert!(matches!(applied.digest, DigestCheck::Differs { leader: 0, .. }));
    }
}
