//! What each kind of transaction does, and what those do that nobody should have made.
#![expect(clippy::unwrap_used, reason = "a test")]

use crate::support::*;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::stat::{Owner, StoredStat};
use quorate_znode::{ApplyError, DigestCheck, ErrorCode, Gone, Malformed, Outcome, Tree, kind};

fn stat(tree: &Tree, path: &str) -> StoredStat {
    *tree.get(path).unwrap().stored_stat()
}

fn data<'a>(tree: &'a Tree, path: &str) -> Option<&'a [u8]> {
    tree.get(path).unwrap().data().map(|data| &data[..])
}

fn failed(code: ErrorCode) -> Outcome {
    Outcome::Failed(code)
}

#[test]
fn a_create_makes_a_node_and_is_counted_by_its_parent() {
    for (kind, body, owner) in [
        (kind::CREATE, create("/p/c", Some(b"x"), false, 7), Owner::None),
        (kind::CREATE, create("/p/c", Some(b"x"), true, 7), Owner::Session(SESSION)),
        (kind::CREATE2, create("/p/c", Some(b"x"), false, 7), Owner::None),
        (kind::CREATE2, create("/p/c", Some(b"x"), true, 7), Owner::Session(SESSION)),
        (kind::CREATE_CONTAINER, create_container("/p/c", 7), Owner::Container),
        (kind::CREATE_TTL, create_ttl("/p/c", 7, 99), Owner::Ttl(99)),
    ] {
        let mut tree = Tree::new();
        make(&mut tree, "/p");
        let Outcome::Created { path, stat: told } = apply(&mut tree, kind, body).outcome else {
            panic!("not created")
        };
        assert_eq!(path, "/p/c");
        assert_eq!(told, tree.get("/p/c").unwrap().stat());
        let child = stat(&tree, "/p/c");
        assert_eq!((child.czxid, child.mzxid, child.pzxid), (Zxid(2), Zxid(2), Zxid(2)));
        assert_eq!((child.ctime, child.mtime), (1_002, 1_002));
        assert_eq!((child.version, child.cversion, child.aversion), (0, 0, 0));
        assert_eq!(Owner::from_stored(child.owner), owner);
        let parent = stat(&tree, "/p");
        assert_eq!((parent.cversion, parent.pzxid), (7, Zxid(2)));
        assert_eq!((parent.mzxid, parent.mtime, parent.version), (Zxid(1), 1_001, 0));
        assert_eq!(tree.digest(), digest(&tree));
        assert_eq!(tree.ephemerals(SESSION).count(), usize::from(child.owner == SESSION));
        assert_eq!(tree.containers().count(), usize::from(owner == Owner::Container));
        assert_eq!(tree.ttls().count(), usize::from(owner == Owner::Ttl(99)));
    }
}

#[test]
fn no_data_is_not_empty_data() {
    let mut tree = Tree::new();
    apply(&mut tree, kind::CREATE, create("/null", None, false, 1));
    apply(&mut tree, kind::CREATE, create("/empty", Some(b""), false, 2));
    assert_eq!((data(&tree, "/null"), data(&tree, "/empty")), (None, Some(&[][..])));
    let again = Tree::restore(&bytes(&tree)[..], Zxid(2)).unwrap();
    assert_eq!((data(&again, "/null"), data(&again, "/empty")), (None, Some(&[][..])));
    apply(&mut tree, kind::SET_DATA, set_data("/empty", None, 1));
    assert_eq!(data(&tree, "/empty"), None);
}

#[test]
fn a_create_without_the_parents_version_counts_one_more() {
    let mut tree = Tree::new();
    let mut old = create("/a", Some(b""), false, 0);
    old.0.truncate(old.0.len() - 4);
    apply(&mut tree, kind::CREATE, old.clone());
    assert_eq!(stat(&tree, "").cversion, 1);
    // Only for the oldest kind; elsewhere it is missing.
    let error = tree.apply(&txn(2, SESSION, kind::CREATE2, old)).unwrap_err();
    assert!(matches!(error, ApplyError::Malformed { kind: kind::CREATE2, .. }), "{error}");
}

#[test]
fn a_parents_version_never_goes_back_nor_does_its_pzxid() {
    let mut tree = Tree::new();
    apply(&mut tree, kind::CREATE, create("/a", Some(b""), false, 9));
    apply(&mut tree, kind::CREATE, create("/b", Some(b""), false, 4));
    assert_eq!((stat(&tree, "").cversion, stat(&tree, "").pzxid), (9, Zxid(1)));
    // At the end of the numbers it stays.
    apply(&mut tree, kind::CREATE, create("/c", Some(b""), false, i32::MAX));
    apply(&mut tree, kind::CREATE, create("/d", Some(b""), false, i32::MIN));
    assert_eq!((stat(&tree, "").cversion, stat(&tree, "").pzxid), (i32::MAX, Zxid(3)));
    make(&mut tree, "/e");
    assert_eq!(stat(&tree, "").cversion, i32::MAX);
    tree.apply(&txn(2, SESSION, kind::DELETE, delete("/a"))).unwrap();
    assert_eq!((stat(&tree, "").pzxid, tree.last_zxid()), (Zxid(3), Zxid(5)));
}

#[test]
fn creating_what_exists_sets_its_access_list_and_a_create_raises_the_parent() {
    let all = [
        (kind::CREATE, create_as("/a", Some(b"new"), &[Acl::world(4)], true, 9), 9),
        (kind::CREATE2, create_as("/a", Some(b"new"), &[Acl::world(4)], true, 9), 1),
        (kind::CREATE_CONTAINER, create_container("/a", 9), 1),
        (kind::CREATE_TTL, create_ttl("/a", 9, 9), 1),
    ];
    for (kind, body, cversion) in all {
        let mut tree = Tree::new();
        apply(&mut tree, kind::CREATE, create_as("/a", Some(b"old"), &[Acl::world(2)], false, 1));
        let before = stat(&tree, "/a");
        assert_eq!(apply(&mut tree, kind, body).outcome, failed(ErrorCode::NODE_EXISTS));
        assert_eq!(stat(&tree, "/a"), before);
        assert_eq!(data(&tree, "/a"), Some(&b"old"[..]));
        let list = tree.get("/a").unwrap().acl().unwrap().clone();
        let told = if kind <= kind::CREATE2 { Acl::world(4) } else { Acl::world(31) };
        assert_eq!(*list, [told]);
        let raised = if cversion == 9 { Zxid(2) } else { Zxid(1) };
        assert_eq!((stat(&tree, "").cversion, stat(&tree, "").pzxid), (cversion, raised));
        assert_eq!(tree.digest(), digest(&tree));
        assert_eq!(tree.snapshot().acls().count(), 2, "the list before is gone");
    }
}

#[test]
fn a_delete_is_noted_by_the_parent_even_if_there_is_no_node() {
    for kind in [kind::DELETE, kind::DELETE_CONTAINER] {
        let mut tree = Tree::new();
        apply(&mut tree, kind::CREATE_CONTAINER, create_container("/a", 1));
        let acl = Some([Acl::world(31)].into());
        let gone = Gone { path: "/a".into(), acl };
        assert_eq!(apply(&mut tree, kind, delete("/a")).outcome, Outcome::Deleted(gone));
        assert_eq!((stat(&tree, "").cversion, stat(&tree, "").pzxid), (1, Zxid(2)));
        assert_eq!(tree.get("").unwrap().stat().cversion, 2 - 1);
        assert_eq!(apply(&mut tree, kind, delete("/a")).outcome, failed(ErrorCode::NO_NODE));
        assert_eq!(stat(&tree, "").pzxid, Zxid(3));
        let before = bytes(&tree);
        assert_eq!(apply(&mut tree, kind, delete("/x/a")).outcome, failed(ErrorCode::NO_NODE));
        assert_eq!(bytes(&tree), before);
        assert_eq!(tree.containers().count(), 0);
        assert_eq!(tree.digest(), digest(&tree));
    }
}

#[test]
fn set_data_and_reconfig_take_version_zxid_and_time() {
    for (kind, path) in [(kind::SET_DATA, "/a"), (kind::RECONFIG, "/zookeeper/config")] {
        let mut tree = Tree::new();
        make(&mut tree, "/a");
        let outcome = apply(&mut tree, kind, set_data(path, Some(b"new"), 41)).outcome;
        let node = tree.get(path).unwrap();
        assert_eq!(outcome, Outcome::DataSet { path: path.into(), stat: node.stat() });
        let stat = node.stored_stat();
        assert_eq!((stat.version, stat.mzxid, stat.mtime), (41, Zxid(2), 1_002));
        assert_eq!((stat.pzxid, data(&tree, path)), (stat.czxid, Some(&b"new"[..])));
        assert_eq!(tree.digest(), digest(&tree));
        let gone = apply(&mut tree, kind, set_data("/gone", Some(b"new"), 1)).outcome;
        assert_eq!(gone, failed(ErrorCode::NO_NODE));
    }
}

#[test]
fn the_root_has_two_names_and_counts_once() {
    let mut tree = Tree::new();
    for (version, root) in [(1, "/"), (2, "")] {
        apply(&mut tree, kind::SET_DATA, set_data(root, Some(b"root"), version));
        apply(&mut tree, kind::SET_ACL, set_acl(root, &[Acl::world(3)], version));
        assert_eq!(tree.get("/").unwrap().stat(), tree.get("").unwrap().stat());
        assert_eq!((stat(&tree, "").version, stat(&tree, "").aversion), (version, version));
        assert_eq!(tree.digest(), digest(&tree));
    }
}

#[test]
fn set_acl_sets_the_list_and_its_version_only() {
    let mut tree = Tree::new();
    make(&mut tree, "/a");
    let before = stat(&tree, "/a");
    let body = set_acl("/a", &[Acl::world(1)], 5);
    assert!(matches!(apply(&mut tree, kind::SET_ACL, body).outcome, Outcome::AclSet { .. }));
    assert_eq!(stat(&tree, "/a"), StoredStat { aversion: 5, ..before });
    assert_eq!(**tree.get("/a").unwrap().acl().unwrap(), [Acl::world(1)]);
    assert_eq!(tree.digest(), digest(&tree));
    let gone = apply(&mut tree, kind::SET_ACL, set_acl("/gone", &open(), 1)).outcome;
    assert_eq!(gone, failed(ErrorCode::NO_NODE));
}

#[test]
fn keys_of_access_lists_are_counted_up_as_in_java() {
    let key = |tree: &Tree, path: &str| tree.get(path).unwrap().acl_key();
    let mut tree = Tree::new();
    make(&mut tree, "/a");
    make(&mut tree, "/b");
    assert_eq!((key(&tree, "/a"), key(&tree, "/b"), key(&tree, "/zookeeper/config")), (2, 2, 1));
    // The only node of a list that is given it anew: the list leaves before it comes.
    apply(&mut tree, kind::SET_ACL, set_acl("/a", &[Acl::world(4)], 1));
    assert_eq!(key(&tree, "/a"), 3);
    apply(&mut tree, kind::SET_ACL, set_acl("/a", &[Acl::world(4)], 2));
    assert_eq!(key(&tree, "/a"), 4);
    // The list of another node stays.
    apply(&mut tree, kind::SET_ACL, set_acl("/a", &[Acl::world(1)], 3));
    assert_eq!(key(&tree, "/a"), 1);
    apply(&mut tree, kind::DELETE, delete("/b"));
    assert_eq!(tree.snapshot().acls().map(|(key, _)| key).collect::<Vec<_>>(), [1]);
    // No list at all is the open one.
    let body = Body::default().buffer("/n").int(-1).int(-1).byte(0).int(1);
    apply(&mut tree, kind::CREATE, body);
    assert_eq!(key(&tree, "/n"), -1);
    assert_eq!(**tree.get("/n").unwrap().acl().unwrap(), [Acl::world(31)]);
}

#[test]
fn a_session_comes_and_goes_with_its_nodes() {
    let mut tree = Tree::new();
    let opened = apply(&mut tree, kind::CREATE_SESSION, Body::default().int(8_000)).outcome;
    assert_eq!(opened, Outcome::SessionOpened { timeout: 8_000 });
    assert_eq!(tree.session(SESSION), Some(8_000));
    apply(&mut tree, kind::CREATE_SESSION, Body::default().int(9_000));
    assert_eq!(tree.sessions().collect::<Vec<_>>(), [(SESSION, 9_000)]);
    for path in ["/a", "/b", "/c"] {
        apply(&mut tree, kind::CREATE, create(path, None, true, -1));
    }
    make(&mut tree, "/stays");
    // First those that the leader lists, then what else there is; what is missing is passed over.
    let body = close_session(&["/c", "/gone", "/no/parent"]);
    let Outcome::SessionClosed { deleted } = apply(&mut tree, kind::CLOSE_SESSION, body).outcome
    else {
        panic!("not closed")
    };
    let deleted: Vec<_> = deleted.iter().map(|gone| &*gone.path).collect();
    assert_eq!(deleted, ["/c", "/a", "/b"]);
    assert_eq!(tree.children("/").unwrap().collect::<Vec<_>>(), ["stays", "zookeeper"]);
    assert_eq!((tree.sessions().count(), tree.owners().count()), (0, 0));
    assert_eq!(tree.digest(), digest(&tree));
    assert_eq!(stat(&tree, "").pzxid, tree.last_zxid());
}

#[test]
fn closing_a_session_takes_no_container_and_no_ttl_node() {
    for session in [Owner::Container.to_stored(), Owner::Ttl(9).to_stored(), 0] {
        let mut tree = Tree::new();
        apply(&mut tree, kind::CREATE_CONTAINER, create_container("/c", 1));
        apply(&mut tree, kind::CREATE_TTL, create_ttl("/t", 2, 9));
        make(&mut tree, "/p");
        let body = Body::default();
        let outcome = tree.apply(&txn(9, session, kind::CLOSE_SESSION, body)).unwrap().outcome;
        assert_eq!(outcome, Outcome::SessionClosed { deleted: vec![] });
    }
}

#[test]
fn a_close_is_told_from_its_digest() {
    let mut tree = Tree::new();
    let digest = tree.digest() as i64;
    for (body, check) in [
        (Body::default(), DigestCheck::Absent),
        (Body::default().int(2).long(digest), DigestCheck::Equal),
        (close_session(&[]), DigestCheck::Absent),
        (close_session(&[]).int(2).long(digest), DigestCheck::Equal),
        (close_session(&["/x", "/y"]).int(2).long(digest), DigestCheck::Equal),
        (close_session(&["/x"]), DigestCheck::Absent),
        (Body::default().int(-1).int(2).long(digest), DigestCheck::Equal),
    ] {
        make(&mut tree, "/zookeeper/x");
        let applied = apply(&mut tree, kind::CLOSE_SESSION, body);
        assert!(matches!(applied.outcome, Outcome::SessionClosed { .. }));
        let absent = applied.digest == DigestCheck::Absent;
        assert_eq!(absent, check == DigestCheck::Absent, "{applied:?}");
    }
}

/// A Java server writes its snapshot while it applies: what its log has up to the end of that cannot be compared, and what is
/// behind it can.
#[test]
fn a_tree_that_has_effects_of_later_transactions_is_not_compared_before_it_is_whole() {
    let mut tree = Tree::new();
    tree.is_whole_at(Zxid(8));
    for (zxid, check) in [(6, true), (7, true), (8, false), (9, false)] {
        let body = Body::default().int(2).long(1);
        let applied = tree.apply(&txn(zxid, 5, kind::CLOSE_SESSION, body)).unwrap();
        assert_eq!(applied.digest == DigestCheck::Absent, check, "{zxid} {applied:?}");
    }
}

#[test]
fn a_multi_is_carried_out_in_order() {
    let mut tree = Tree::new();
    let body = multi(&[
        (kind::CREATE, create("/a", Some(b"1"), false, 1)),
        (kind::CREATE2, create("/a/b", None, true, 1)),
        (kind::CREATE_CONTAINER, create_container("/c", 2)),
        (kind::CREATE_TTL, create_ttl("/t", 3, 5)),
        (kind::SET_DATA, set_data("/a", Some(b"2"), 1)),
        (kind::CHECK, delete("/a").int(2)),
        (kind::DELETE, delete("/c")),
        (kind::DELETE_CONTAINER, delete("/t")),
    ]);
    let Outcome::Multi(outcomes) = apply(&mut tree, kind::MULTI, body).outcome else {
        panic!("no multi")
    };
    assert_eq!(outcomes.len(), 8);
    assert!(outcomes.iter().all(|outcome| outcome.error().is_none()));
    assert_eq!(tree.children("").unwrap().collect::<Vec<_>>(), ["a", "zookeeper"]);
    assert_eq!(tree.ephemerals(SESSION).collect::<Vec<_>>(), ["/a/b"]);
    assert_eq!(stat(&tree, "").cversion, 3);
    assert_eq!(tree.digest(), digest(&tree));
    assert_eq!(tree.last_zxid(), Zxid(1));
    assert_eq!(apply(&mut tree, kind::MULTI, multi(&[])).outcome, Outcome::Multi(vec![]));
}

#[test]
fn a_multi_that_failed_does_nothing() {
    let error = |code| (kind::ERROR, Body::default().int(code));
    let mut tree = Tree::new();
    let before = bytes(&tree);
    let body = multi(&[
        (kind::CREATE, create("/a", None, false, 1)),
        error(0),
        error(-101),
        (kind::CREATE, create("/b", None, false, 1)),
        (99, Body::default()),
    ]);
    let applied = apply(&mut tree, kind::MULTI, body);
    assert_eq!(
        applied.outcome,
        Outcome::Multi([0, 0, -101, -2, -2].map(ErrorCode).map(failed).to_vec())
    );
    assert_eq!(applied.outcome.error(), Some(ErrorCode::NO_NODE));
    assert_eq!((bytes(&tree), tree.last_zxid()), (before, Zxid(1)));
}

#[test]
fn elements_that_cannot_be_carried_out_do_not_stop_the_others() {
    let mut tree = Tree::new();
    make(&mut tree, "/a");
    let body = multi(&[
        (kind::CREATE, create("/a", None, false, 8)),
        (kind::DELETE, delete("/gone")),
        (kind::SET_DATA, set_data("/a", Some(b"x"), 1)),
    ]);
    let outcome = apply(&mut tree, kind::MULTI, body).outcome;
    assert_eq!(outcome.error(), Some(ErrorCode::NODE_EXISTS));
    assert_eq!(data(&tree, "/a"), Some(&b"x"[..]));
    assert_eq!(stat(&tree, "").cversion, 8);
}

#[test]
fn an_error_takes_its_zxid_and_nothing_else() {
    let mut tree = Tree::new();
    let before = bytes(&tree);
    let applied = apply(&mut tree, kind::ERROR, Body::default().int(-103));
    assert_eq!(applied.outcome, failed(ErrorCode(-103)));
    assert_eq!((bytes(&tree), tree.last_zxid()), (before, Zxid(1)));
}

#[test]
fn what_nobody_should_have_made_is_survived() {
    let body = |elements: &[(i32, Body)]| multi(elements);
    let nested = multi(&[(kind::MULTI, multi(&[]))]);
    let good = (kind::CREATE, create("/good", None, false, 1));
    for (kind, body, error) in [
        (kind::CHECK, delete("/").int(1), ApplyError::LoneCheck),
        (kind::CREATE_TTL, create_ttl("/t", 1, -1), ApplyError::Ttl { ttl: -1 }),
        (kind::CREATE_TTL, create_ttl("/t", 1, 0), ApplyError::Ttl { ttl: 0 }),
        (kind::CREATE_TTL, create_ttl("/t", 1, 1 << 40), ApplyError::Ttl { ttl: 1 << 40 }),
        (
            kind::MULTI,
            body(&[good.clone(), (kind::CREATE_TTL, create_ttl("/t", 1, -1))]),
            ApplyError::Ttl { ttl: -1 },
        ),
        (0, Body::default(), ApplyError::UnknownKind { kind: 0 }),
        (99, Body::default(), ApplyError::UnknownKind { kind: 99 }),
        (kind::MULTI, nested, ApplyError::NotInMulti { index: 0, kind: kind::MULTI }),
        (
            kind::MULTI,
            body(&[good.clone(), (kind::CREATE_SESSION, Body::default().int(1))]),
            ApplyError::NotInMulti { index: 1, kind: kind::CREATE_SESSION },
        ),
        (
            kind::MULTI,
            body(&[good, (kind::DELETE, Body::default())]),
            ApplyError::MalformedElement { index: 1, offset: 0, reason: Malformed::Short },
        ),
        (
            kind::DELETE,
            Body::default().int(-1),
            ApplyError::Malformed { kind: 2, offset: 0, reason: Malformed::NullPath },
        ),
        (
            kind::DELETE,
            Body::default().buffer([b'/', 0xff]),
            ApplyError::Malformed { kind: 2, offset: 0, reason: Malformed::PathNotUtf8 },
        ),
        (
            kind::SET_DATA,
            Body::default().buffer("/").int(i32::MAX),
            ApplyError::Malformed { kind: 5, offset: 9, reason: Malformed::LengthBeyondEnd },
        ),
        (
            kind::MULTI,
            Body::default().int(i32::MAX),
            ApplyError::Malformed { kind: 14, offset: 4, reason: Malformed::Short },
        ),
    ] {
        let mut tree = Tree::new();
        let before = bytes(&tree);
        assert_eq!(tree.apply(&txn(5, SESSION, kind, body)), Err(error.clone()));
        assert!(!error.to_string().is_empty());
        let harmless = matches!(error, ApplyError::LoneCheck | ApplyError::Ttl { .. });
        assert_eq!(error.may_differ(), !harmless);
        assert_eq!((bytes(&tree), tree.last_zxid()), (before, Zxid(5)));
        make(&mut tree, "/next");
        assert!(tree.get("/next").is_some());
    }
}

#[test]
fn odd_paths_have_no_effect() {
    for path in ["", "/", "a", "a/b", "//", "/x/", "/x//y", "x/"] {
        let mut tree = Tree::new();
        make(&mut tree, "/x");
        let before = (bytes(&tree), tree.digest());
        for (kind, body) in [
            (kind::CREATE, create(path, None, true, 5)),
            (kind::CREATE_TTL, create_ttl(path, 5, 5)),
            (kind::DELETE, delete(path)),
        ] {
            let outcome = apply(&mut tree, kind, body).outcome;
            assert!(outcome.error().is_some(), "{path:?} {outcome:?}");
        }
        assert_eq!((bytes(&tree), tree.digest()), before, "{path:?}");
        assert_eq!(tree.owners().count(), 0);
    }
}

/// Every prefix and every flipped bit of the bodies that there are: no panic, and the tree stays whole.
#[test]
fn damaged_bodies_do_no_harm() {
    let bodies = [
        (kind::CREATE, create_as("/a", Some(b"x"), &[Acl::world(1)], true, 1)),
        (kind::CREATE_TTL, create_ttl("/a", 1, 9)),
        (kind::CREATE_CONTAINER, create_container("/a", 1)),
        (kind::DELETE, delete("/a")),
        (kind::SET_DATA, set_data("/a", Some(b"x"), 3)),
        (kind::SET_ACL, set_acl("/a", &open(), 3)),
        (kind::CLOSE_SESSION, close_session(&["/a", "/b"]).int(2).long(5)),
        (kind::MULTI, multi(&[(1, create("/b", None, false, 1)), (2, delete("/b"))])),
        (kind::MULTI, multi(&[(1, create("/b", None, false, 1)), (-1, Body::default().int(-2))])),
    ];
    let mut whole = Tree::new();
    make(&mut whole, "/a");
    for (kind, Body(body)) in bodies {
        let cut = (0..body.len()).map(|length| body[..length].to_vec());
        let flipped = (0..body.len() * 8).map(|bit| {
            let mut body = body.clone();
            body[bit / 8] ^= 1 << (bit % 8);
            body
        });
        for body in cut.chain(flipped) {
            let mut tree = Tree::restore(&bytes(&whole)[..], Zxid(1)).unwrap();
            let header = TxnHeader { client: SESSION, cxid: 1, time: 5, kind };
            let applied = tree.apply(&Txn { zxid: Zxid(2), header, body: body.into() });
            if applied.is_err() {
                assert_eq!(bytes(&tree), bytes(&whole));
            }
            assert_eq!(tree.digest(), digest(&tree));
            let again = Tree::restore(&bytes(&tree)[..], Zxid(2)).unwrap();
            assert_eq!(bytes(&again), bytes(&tree));
        }
    }
}

#[test]
fn quotas_are_counted_and_recounted() {
    let stats = "/zookeeper/quota/q/zookeeper_stats";
    let text = |tree: &Tree| String::from_utf8(data(tree, stats).unwrap().to_vec()).unwrap();
    let mut tree = Tree::new();
    make(&mut tree, "/q");
    apply(&mut tree, kind::CREATE, create("/q/a", Some(b"12345"), false, 1));
    make(&mut tree, "/zookeeper/quota/q");
    let limits = "/zookeeper/quota/q/zookeeper_limits";
    apply(&mut tree, kind::CREATE, create(limits, Some(b"count=9,bytes=9"), false, 1));
    apply(&mut tree, kind::CREATE, create(stats, Some(b"count=0,bytes=0"), false, 2));
    assert_eq!(text(&tree), "count=2,bytes=5");
    let versions = stat(&tree, stats);
    apply(&mut tree, kind::CREATE, create("/q/b", Some(b"123"), false, 2));
    apply(&mut tree, kind::CREATE, create("/q/b/c", None, true, 1));
    apply(&mut tree, kind::SET_DATA, set_data("/q/a", Some(b"1"), 1));
    apply(&mut tree, kind::SET_DATA, set_data("/other", Some(b"1"), 1));
    make(&mut tree, "/qq");
    assert_eq!(text(&tree), "count=4,bytes=4");
    apply(&mut tree, kind::CLOSE_SESSION, close_session(&["/q/b/c"]));
    apply(&mut tree, kind::DELETE, delete("/q/a"));
    assert_eq!(text(&tree), "count=2,bytes=3");
    assert_eq!(stat(&tree, stats), versions, "no transaction");
    assert_eq!(tree.digest(), digest(&tree));

    // A snapshot's statistics are counted again: Java's may be of another moment.
    apply(&mut tree, kind::SET_DATA, set_data(stats, Some(b"count=77,bytes=77"), 1));
    let mut again = Tree::restore(&bytes(&tree)[..], tree.last_zxid()).unwrap();
    assert_eq!(text(&again), "count=2,bytes=3");
    make(&mut again, "/q/d");
    assert_eq!(text(&again), "count=3,bytes=3");

    // What stands there and is no text of a quota is counted from then on, and no quota is left without limits.
    for odd in [Some(&b"hello"[..]), None] {
        apply(&mut tree, kind::SET_DATA, set_data(stats, odd, 2));
        apply(&mut tree, kind::CREATE, create("/q/d", Some(b"12"), false, -1));
        assert_eq!(text(&tree), "count=1,bytes=2");
        apply(&mut tree, kind::DELETE, delete("/q/d"));
    }
    apply(&mut tree, kind::SET_DATA, set_data(stats, Some(b"count=1,bytes=1"), 3));
    apply(&mut tree, kind::DELETE, delete(limits));
    make(&mut tree, "/q/e");
    assert_eq!(text(&tree), "count=1,bytes=1");
    // Directly below there is nothing that they could limit.
    make(&mut tree, "/zookeeper/quota/zookeeper_limits");
    make(&mut tree, "/zookeeper/quota/zookeeper_stats");
    make(&mut tree, "/q/f");
}

#[test]
fn the_configuration_node_is_written_and_made_if_it_is_missing() {
    let mut tree = Tree::new();
    apply(&mut tree, kind::DELETE, delete("/zookeeper/config"));
    assert!(tree.set_configuration("version=7", 7, 99));
    let config = tree.get("/zookeeper/config").unwrap();
    let stat = config.stored_stat();
    assert_eq!((stat.version, stat.aversion, stat.mzxid, stat.mtime), (-1, -1, Zxid(7), 99));
    assert_eq!(**config.acl().unwrap(), [Acl::world(1)]);
    assert_eq!(config.data().unwrap(), &b"version=7"[..]);
    for path in ["/zookeeper/config", "/zookeeper/quota", "/zookeeper"] {
        apply(&mut tree, kind::DELETE, delete(path));
    }
    assert!(!tree.set_configuration("version=8", 8, 99));
    assert_eq!((tree.len(), tree.snapshot().acls().count()), (1, 0));
}
