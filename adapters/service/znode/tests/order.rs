//! The order of checks: of all that is wrong with a request, the first is told.
#![expect(clippy::unwrap_used, reason = "a test")]

use crate::leader::*;
use crate::support::{self, Body, SESSION, create_as, open, txn};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_core::txn::Txn;
use quorate_znode::acl::Acl;
use quorate_znode::{Rules, Tree, kind};

/// `/open`, `/read` (others may only read it) with a child, `/own` (others may create and delete below it, and
/// nothing else), and an ephemeral one.
fn leader(rules: Rules) -> Leader {
    let mut leader = Leader::with(rules);
    leader.ask(&create("/open", 0)).unwrap();
    leader.ask(&create("/read", 0)).unwrap();
    leader.ask(&create("/read/child", 0)).unwrap();
    leader.ask(&create("/open/parent", 0)).unwrap();
    leader.ask(&create("/open/parent/child", 0)).unwrap();
    leader.ask(&create("/ephemeral", EPHEMERAL)).unwrap();
    leader.ask(&set_acl("/read", &[Acl::world(1)], -1)).unwrap();
    leader
}

/// Asks before and after what it is judged by is applied.
fn told(rules: Rules, rows: &[(Request, i32)]) {
    let mut leader = leader(rules);
    for _ in 0..2 {
        for (asked, code) in rows {
            assert_eq!(leader.ask(asked).err().unwrap_or(0), *code, "{asked:?}");
            if *code == 0 {
                // Not for the next row.
                leader.preparer.abandon();
                leader.under_way.clear();
                leader = self::leader(rules);
            }
        }
        leader.settle();
    }
}

const TYPES: Rules = Rules {
    extended_types: true,
    skip_acl: false,
    create2_in_multi: false,
    digest: true,
    container_unused_ms: None,
};

/// Each row has what is wrong in the rows below it, but for the last, which is right.
#[test]
fn a_create_is_checked_in_this_order() {
    let none: &[Acl] = &[];
    for op in [kind::CREATE, kind::CREATE2] {
        let create =
            |path: &str, flags, acl: &[Acl]| Request { op, ..create_with(path, flags, acl) };
        told(
            TYPES,
            &[
                (of(OTHER, create("none\0", 9, none)), -8),
                (of(OTHER, create("none\0", 5, none)), -8),
                (of(OTHER, create("none\0", -1, none)), -8),
                (of(OTHER, create("none\0", 4, none)), -112),
                (of(OTHER, create("none\0", 0, none)), -112),
                (create("none", 0, none), -8),
                (create("/none/no\0", 0, none), -8),
                (create("/none/..", 0, none), -114),
                (create("/none/..", 0, &open()), -101),
                (create("/read/..", 0, &open()), -102),
                (create("/read/child", 0, &open()), -102),
                (create("/open/..", 0, &open()), -8),
                (create("/ephemeral", 0, &open()), -110),
                (create("/ephemeral/x", 0, &open()), -108),
                (create("/open/x", 0, &open()), 0),
            ],
        );
    }
}

#[test]
fn what_a_ttl_node_needs_is_asked_first() {
    let wrong = |flags, ttl| {
        of(OTHER, request(kind::CREATE_TTL, create_body("none", flags, &[]).long(ttl)))
    };
    told(
        Rules::default(),
        &[(wrong(4, 0), -8), (wrong(0, -1), -8), (wrong(5, 0), -6), (wrong(6, 1), -6)],
    );
    told(
        TYPES,
        &[
            (wrong(0, -1), -8),
            (wrong(5, 0), -8),
            (wrong(6, -1), -8),
            (wrong(5, 1 << 40), -8),
            (wrong(5, (1 << 40) - 1), -112),
            (create_ttl("/open/x", 5, (1 << 40) - 1), 0),
            (create_ttl("/open/", 6, 1), 0),
            (of(OTHER, request(kind::CREATE_CONTAINER, create_body("none", 0, &[]))), -8),
            (of(OTHER, request(kind::CREATE_CONTAINER, create_body("none", 4, &[]))), -112),
            (create_container("/open/x"), 0),
        ],
    );
}

#[test]
fn a_delete_is_checked_in_this_order() {
    told(
        TYPES,
        &[
            (of(OTHER, delete("/", 9)), -112),
            (delete("/", 9), -8),
            (delete("/zookeeper", 9), -8),
            (delete("x", 9), -8),
            (delete("/open/\0", 9), -8),
            (delete("/none/x", 9), -101),
            (delete("/read/none", 9), -102),
            (delete("/read/child", 9), -102),
            (delete("/open/none", 9), -101),
            (delete("/open/parent/", 9), -101),
            (delete("/open/parent", 9), -103),
            (delete("/open/parent", -2), -103),
            (delete("/open/parent", 0), -111),
            (delete("/open/parent/child", 0), 0),
        ],
    );
}

#[test]
fn a_set_data_is_checked_in_this_order() {
    told(
        TYPES,
        &[
            (of(OTHER, set("none", 9)), -112),
            (set("none", 9), -8),
            (set("/open/", 9), -8),
            (set("/none", 9), -101),
            (set("/read", 9), -102),
            (set("/open", 9), -103),
            (set("/open", -2), -103),
            (set("/zookeeper/config", 9), -102),
            (set("/open", 0), 0),
            (set("/open", -1), 0),
        ],
    );
}

#[test]
fn a_set_acl_is_checked_in_this_order() {
    let wrong = [acl(31, "digest", "none")];
    told(
        TYPES,
        &[
            (of(OTHER, set_acl("none", &wrong, 9)), -112),
            (set_acl("none", &wrong, 9), -8),
            (set_acl("/none", &wrong, 9), -114),
            (set_acl("/none", &[], 9), -114),
            (set_acl("/none", &open(), 9), -101),
            (set_acl("/read", &open(), 9), -102),
            (set_acl("/open", &open(), 9), -103),
            (set_acl("/open", &open(), -2), -103),
            (set_acl("/open", &open(), 0), 0),
            (set_acl("/open", &open(), -1), 0),
        ],
    );
}

#[test]
fn a_check_in_a_multi_is_checked_in_this_order() {
    let mut leader = leader(TYPES);
    leader.ask(&set_acl("/open/parent", &[Acl::world(30)], -1)).unwrap();
    for (path, version, code) in [
        ("none", 9, -8),
        ("/open/", 9, -8),
        ("/none", 9, -101),
        ("/open/parent", 9, -102),
        ("/open", 9, -103),
        ("/open", 0, 0),
        ("/open", -1, 0),
    ] {
        assert!(leader.ask(&multi(&[check(path, version)])).is_ok());
        let errors = errors(leader.under_way.last().unwrap());
        assert_eq!(errors.first().copied().unwrap_or(0), code, "{path}");
    }
    assert_eq!(leader.ask(&of(OTHER, multi(&[check("none", 9)]))), Err(-112), "the whole of it");
}

#[test]
fn a_containers_deletion_is_checked_in_this_order() {
    let mut leader = leader(TYPES);
    leader.ask(&create_container("/read-not")).unwrap();
    leader.ask(&create_container("/full")).unwrap();
    leader.ask(&create("/full/x", 0)).unwrap();
    leader.ask(&create_ttl("/ttl", TTL, 100)).unwrap();
    for (path, code) in [
        ("none", -8),
        ("/zookeeper/quota", -8),
        ("/none/x", -101),
        ("/none", -101),
        ("/full", -111),
        ("/open/parent", -111),
        ("/ephemeral", -103),
        ("/open/parent/child", -103),
        ("/ttl", -103),
        // It has had no child: it may be another than that which the leader found empty.
        ("/read-not", -103),
    ] {
        assert_eq!(leader.ask(&delete_container(path)), Err(code), "{path}");
    }
    leader.ask(&create("/read-not/x", 0)).unwrap();
    leader.ask(&delete("/read-not/x", -1)).unwrap();
    // The time is counted from the last that was written, applied or not.
    leader.facts.now_ms = 1_100;
    assert_eq!(leader.ask(&delete_container("/ttl")), Err(-103));
    leader.ask(&set("/ttl", -1)).unwrap();
    leader.facts.now_ms = 1_200;
    assert_eq!(leader.ask(&delete_container("/ttl")), Err(-103));
    leader.facts.now_ms = 1_201;
    for path in ["/ttl", "/read-not"] {
        assert_eq!(leader.ask(&delete_container(path)).as_deref(), Ok(path));
    }
    leader.ask(&delete("/full/x", -1)).unwrap();
    assert_eq!(leader.ask(&delete_container("/full")).as_deref(), Ok("/full"));
    leader.settle();
    let left: Vec<_> = leader.tree.children("/").unwrap().collect();
    assert_eq!(left, ["ephemeral", "open", "read", "zookeeper"]);
}

#[test]
fn a_reconfiguration_asks_for_the_session_and_the_right_to_write() {
    let mut leader = leader(TYPES);
    let asked = request(kind::RECONFIG, Body::default().int(-1).int(-1).int(-1).long(-1));
    assert_eq!(leader.ask(&of(OTHER, asked.clone())), Err(-112));
    let denied = leader.prepare(Origin::Here, &asked);
    assert_eq!(denied.kind, Txn::RECONFIGURATION_DENIED, "what else is wrong with it comes first");
    assert_eq!(denied.body, [&(-102_i32).to_be_bytes()[..], &asked.body].concat());
    let by_super = Request { identities: identities(&[("super", "")]), ..asked.clone() };
    assert_eq!(leader.ask_by(learner(1), &by_super), Err(-118));
    let last = leader.prepare(Origin::Here, &by_super);
    assert_eq!((last.kind, last.body), (Txn::RECONFIGURATION, asked.body));
}

#[test]
fn paths_are_judged_as_java_judges_them() {
    for (path, code) in [
        ("", -8),
        ("m", -8),
        ("m/x", -101),
        ("/", -110),
        ("/m/", -8),
        ("/m//x", -101),
        ("/m/./x", -101),
        ("/m/../x", -101),
        ("/m/.", -8),
        ("/m/..", -8),
        ("/m/a.b", 0),
        ("/m/...", 0),
        ("/m/\u{1}", -8),
        ("/m/\u{7f}", -8),
        ("/m/\u{9f}", -8),
        ("/m/\u{a0}", 0),
        ("/m/\u{d7ff}", 0),
        ("/m/\u{e000}", -8),
        ("/m/\u{f900}", 0),
        ("/m/\u{ffef}", 0),
        ("/m/\u{fff0}", -8),
        ("/m/\u{fffd}", -8),
        ("/m/\u{1f600}", -8),
        ("/zookeeper/x", 0),
    ] {
        let mut leader = Leader::new();
        leader.ask(&create("/m", 0)).unwrap();
        assert_eq!(leader.ask(&create(path, 0)).err().unwrap_or(0), code, "{path:?}");
    }
    let mut leader = Leader::new();
    leader.ask(&create("/m", 0)).unwrap();
    assert_eq!(leader.ask(&create("/m/", SEQUENTIAL)).as_deref(), Ok("/m/0000000000"));
    let not_utf8 = Body::default().buffer(b"/m/\xff").data(None).acl(&open()).int(0);
    assert_eq!(leader.ask(&request(kind::CREATE, not_utf8)), Err(-8));
}

#[test]
fn numbers_follow_creations_and_not_children() {
    let mut leader = Leader::new();
    leader.ask(&create("/q", 0)).unwrap();
    for (path, flags, named) in [
        ("/q/a-", SEQUENTIAL, "/q/a-0000000000"),
        ("/q/b", 0, "/q/b"),
        ("/q/a-", SEQUENTIAL, "/q/a-0000000002"),
    ] {
        assert_eq!(leader.ask(&create(path, flags)).as_deref(), Ok(named));
    }
    for path in ["/q/a-0000000000", "/q/b"] {
        leader.ask(&delete(path, -1)).unwrap();
    }
    assert_eq!(leader.ask(&create("/q/", SEQUENTIAL)).as_deref(), Ok("/q/0000000003"));
    leader.settle();
    let stat = leader.tree.get("/q").unwrap().stat();
    assert_eq!((stat.cversion, stat.num_children), (6, 2));
}

/// A tree whose root's children were numbered so far.
fn numbered(cversion: i32) -> Tree {
    let mut tree = Tree::new();
    let session = Body::default().int(10_000);
    tree.apply(&txn(1, SESSION, kind::CREATE_SESSION, session)).unwrap();
    let first = create_as("/first", Some(b""), &open(), false, cversion);
    tree.apply(&txn(2, SESSION, kind::CREATE, first)).unwrap();
    tree
}

#[test]
fn the_last_number_stays_and_plain_nodes_go_on() {
    let mut leader = Leader::of(numbered(i32::MAX - 1), Rules::default());
    assert_eq!(leader.ask(&create("/s", SEQUENTIAL)).as_deref(), Ok("/s2147483646"));
    for _ in 0..2 {
        for prefix in ["/s", "/t"] {
            assert_eq!(leader.ask(&create(prefix, SEQUENTIAL)), Err(-110), "it was given out");
            assert_eq!(leader.ask(&create(prefix, SEQUENTIAL | EPHEMERAL)), Err(-110));
        }
        leader.settle();
    }
    let before = *leader.tree.get("/").unwrap().stored_stat();
    assert_eq!(before.cversion, i32::MAX);
    for path in ["/plain", "/plainer"] {
        assert_eq!(leader.ask(&create(path, 0)).as_deref(), Ok(path));
    }
    assert_eq!(leader.ask(&create("/s", SEQUENTIAL)), Err(-110));
    leader.settle();
    assert_eq!(*leader.tree.get("/").unwrap().stored_stat(), before);
}

#[test]
fn no_version_is_the_one_that_stands_for_any() {
    for (version, next) in [(-3, -2), (-2, 0), (-1, 0), (0, 1), (i32::MAX, i32::MIN)] {
        let mut tree = numbered(0);
        let set_to = support::set_data("/first", None, version);
        tree.apply(&txn(3, SESSION, kind::SET_DATA, set_to)).unwrap();
        let acl_to = support::set_acl("/first", &open(), version);
        tree.apply(&txn(4, SESSION, kind::SET_ACL, acl_to)).unwrap();
        let mut leader = Leader::of(tree, Rules::default());
        leader.ask(&set("/first", version)).unwrap();
        leader.ask(&set_acl("/first", &open(), version)).unwrap();
        leader.settle();
        let stat = leader.tree.get("/first").unwrap().stat();
        assert_eq!((stat.version, stat.aversion), (next, next), "after {version}");
    }
}
