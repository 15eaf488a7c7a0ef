//! Requests made into transactions: judged as ZooKeeper does, on top of what is on its way.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;

use crate::leader::*;
use crate::support::{Body, SESSION, open};
use quorate_core::message::Request;
use quorate_znode::acl::Acl;
use quorate_znode::kind;
use quorate_znode::stat::Owner;

#[test]
fn requests_are_refused_with_zookeepers_codes() {
    let mut leader = Leader::new();
    for path in ["/a", "/a/b", "/c"] {
        assert_eq!(leader.ask(&create(path, 0)).as_deref(), Ok(path));
    }
    assert_eq!(leader.ask(&create("/e", EPHEMERAL)).as_deref(), Ok("/e"));
    let refused: &[(Request, i32)] = &[
        (create("/missing/x", 0), -101),
        (create("/a", 0), -110),
        (create("/", 0), -110),
        (create("/e/x", 0), -108),
        (create("x", 0), -8),
        (create("", 0), -8),
        (create("/a/", 0), -8),
        (create("/a/.", 0), -8),
        (create("/a/..", 0), -8),
        (create("/a//b", 0), -101),
        (create("/a/\u{1}", 0), -8),
        (create("/a/\u{1f600}", 0), -8),
        (create("/new\0", 0), -8),
        (create("/new", 7), -8),
        (create("/new", -1), -8),
        (create_with("/new", 0, &[]), -114),
        (create_with("/new", 0, &[Acl { perms: 31, scheme: "auth".into(), id: "".into() }]), -114),
        (create_with("/new", 0, &[Acl { perms: 1, scheme: "ip".into(), id: "x".into() }]), -114),
        (request(kind::CREATE, Body::default().int(-1).data(None).acl(&open()).int(0)), -5),
        (request(kind::CREATE, Body::default().buffer("/new")), -5),
        (delete("/a", -1), -111),
        (delete("/missing", -1), -101),
        (delete("/missing/x", -1), -101),
        (delete("/c", 1), -103),
        (delete("/c", -2), -103),
        (delete("/", -1), -8),
        (delete("/zookeeper/quota", -1), -8),
        (delete("c", -1), -8),
        (set("/missing", -1), -101),
        (set("/c", 1), -103),
        (set("/c/", -1), -8),
        (set("/zookeeper/config", -1), -102),
        (request(kind::CHECK, Body::default().buffer("/c").int(-1)), -6),
        (request(kind::MULTI, Body::default()), -5),
        (request(kind::SET_ACL, Body::default()), -5),
        (request(99, Body::default()), -6),
    ];
    // It makes no difference whether what they are judged by is applied.
    for _ in 0..2 {
        for (request, code) in refused {
            assert_eq!(leader.ask(request), Err(*code), "{request:?}");
        }
        leader.settle();
    }
}

#[test]
fn a_request_sees_what_is_on_its_way() {
    let mut leader = Leader::new();
    assert_eq!(leader.ask(&create("/a", 0)).as_deref(), Ok("/a"));
    assert_eq!(leader.ask(&set("/a", 0)).as_deref(), Ok("/a"));
    assert_eq!(leader.ask(&set("/a", 0)), Err(-103));
    leader.apply();
    assert_eq!(leader.ask(&set("/a", 1)).as_deref(), Ok("/a"));
    for n in 0..3 {
        let name = leader.ask(&create("/a/n-", SEQUENTIAL)).unwrap();
        assert_eq!(name, format!("/a/n-{n:010}"));
    }
    assert_eq!(leader.ask(&delete("/a/n-0000000001", 0)).as_deref(), Ok("/a/n-0000000001"));
    let name = leader.ask(&create("/a/n-", SEQUENTIAL)).unwrap();
    assert_eq!(name, "/a/n-0000000003", "deletions do not count");
    leader.settle();
    assert_eq!(leader.tree.get("/a").unwrap().stat().version, 2);
    assert_eq!(leader.tree.children("/a").unwrap().count(), 3);
    let stat = leader.tree.get("/a").unwrap().stat();
    assert_eq!((stat.cversion, stat.num_children), (5, 3));
}

#[test]
fn what_a_deposed_leader_has_prepared_is_forgotten() {
    let mut leader = Leader::new();
    leader.ask(&create("/lost", 0)).unwrap();
    leader.ask(&close_session()).unwrap();
    leader.preparer.abandon();
    leader.under_way.clear();
    assert_eq!(leader.ask(&create("/lost/x", 0)), Err(-101));
    assert_eq!(leader.ask(&create("/lost", 0)).as_deref(), Ok("/lost"));
    leader.settle();
    assert!(leader.tree.get("/lost").is_some());
}

#[test]
fn a_session_ends_with_what_is_its_own_by_then() {
    let mut leader = Leader::new();
    for path in ["/a", "/a/b", "/kept"] {
        leader.ask(&create(path, if path == "/a/b" { EPHEMERAL } else { 0 })).unwrap();
    }
    leader.ask(&create("/gone", EPHEMERAL)).unwrap();
    leader.settle();
    leader.ask(&delete("/gone", -1)).unwrap();
    leader.ask(&create("/late", EPHEMERAL)).unwrap();
    leader.ask(&close_session()).unwrap();
    let listed = Body::default().int(2).buffer("/a/b").buffer("/late");
    assert_eq!(leader.body(2), listed.0);
    assert_eq!(leader.ask(&create("/x", 0)), Err(-112), "the session is closing");
    let by_program = by_program(delete("/a", -1));
    assert_eq!(leader.ask(&by_program).as_deref(), Ok("/a"), "its child is as good as gone");
    leader.settle();
    assert_eq!(leader.tree.children("/").unwrap().collect::<Vec<_>>(), ["kept", "zookeeper"]);
    assert_eq!(leader.tree.sessions().count(), 0);
    assert_eq!(leader.ask(&create("/x", 0)), Err(-112), "the session is closed");
    let ephemeral = Request { identities: None, ..create("/x", EPHEMERAL) };
    assert_eq!(leader.ask(&ephemeral), Err(-112), "it would never go");
}

/// ZOOKEEPER-4306. Whatever is not listed goes all the same, at the same number.
#[test]
fn a_session_with_more_than_a_transaction_can_list_ends_in_one() {
    for bytes_max in [4, 40, 41, 114, 115, 1_000, 1_001, 5_000, 5_924] {
        let mut leader = Leader::new();
        leader.ask(&create("/kept", 0)).unwrap();
        for parent in ["/a", "/b", "/c"] {
            leader.ask(&create(parent, 0)).unwrap();
            for n in 0..40 {
                let path = format!("{parent}/{n:030}");
                leader.ask(&create(&path, EPHEMERAL)).unwrap();
            }
        }
        leader.settle();
        // Half of what it has is not applied yet.
        for n in 40..80 {
            leader.ask(&create(&format!("/a/{n:030}"), EPHEMERAL)).unwrap();
        }
        leader.facts.bytes_max = bytes_max;
        assert_eq!(leader.ask(&close_session()), Ok(String::new()));
        leader.facts.bytes_max = 1 << 20;
        let (closing, body) = (leader.last(), leader.under_way.last().unwrap().body.clone());
        assert!(body.len() <= bytes_max, "{} of {bytes_max} bytes", body.len());
        let listed = paths(&body);
        // Each path takes 37 bytes.
        assert_eq!(listed.len(), ((bytes_max - 4) / 37).min(160), "as many as fit");
        let parents: BTreeSet<_> = listed.iter().map(|path| &path[..2]).collect();
        assert_eq!(parents.len(), listed.len().min(3), "first one of each parent: {listed:?}");
        // What comes after it counts on all of them being gone.
        let by_program = |path: &str| Request { identities: None, ..delete(path, -1) };
        assert_eq!(leader.ask(&by_program("/b")).as_deref(), Ok("/b"));
        while leader.under_way.len() > 1 {
            leader.apply();
        }
        for parent in ["/a", "/b", "/c"] {
            let stat = leader.tree.get(parent).unwrap().stat();
            assert_eq!((stat.num_children, stat.pzxid), (0, closing), "{parent}");
        }
        assert_eq!(leader.tree.ephemerals(SESSION).count(), 0);
        leader.settle();
        assert!(leader.tree.get("/b").is_none() && leader.tree.get("/kept").is_some());
    }
}

/// What a client asks for may grow on the way: an access list that says "auth" gets all its identities.
#[test]
fn what_becomes_too_long_is_refused_and_nothing_counts_on_it() {
    let mut leader = Leader::new();
    let asked = create("/x", 0);
    leader.facts.bytes_max = 1_000;
    leader.ask(&create("/long-enough-to-see-how-much-it-takes", 0)).unwrap();
    let takes = leader.body(0).len() - "/long-enough-to-see-how-much-it-takes".len() + 2;
    for bytes_max in [takes - 1, takes, takes + 1] {
        let mut leader = Leader::new();
        leader.facts.bytes_max = bytes_max;
        let fits = bytes_max >= takes;
        assert_eq!(leader.ask(&asked), if fits { Ok("/x".to_owned()) } else { Err(-5) });
        leader.facts.bytes_max = 1_000;
        let below = leader.ask(&create("/x/y", 0));
        assert_eq!(below, if fits { Ok("/x/y".to_owned()) } else { Err(-101) });
        leader.settle();
    }
}

/// The paths that the body of a closeSession lists.
fn paths(mut body: &[u8]) -> Vec<String> {
    let int = |body: &mut &[u8]| {
        let (int, rest) = body.split_first_chunk().unwrap();
        *body = rest;
        usize::try_from(i32::from_be_bytes(*int)).unwrap()
    };
    let many = int(&mut body);
    let paths = (0..many).map(|_| {
        let length = int(&mut body);
        let (path, rest) = body.split_at(length);
        body = rest;
        String::from_utf8(path.to_vec()).unwrap()
    });
    let paths = paths.collect();
    assert!(body.is_empty() || body.len() == 12, "the digest");
    paths
}

#[test]
fn access_lists_are_asked() {
    let mut leader = Leader::new();
    let me = identities(&[("ip", "10.1.2.3"), ("digest", "me:secret")]);
    let as_me = |request: Request| Request { identities: me.clone(), ..request };
    let own = [Acl { perms: 31, scheme: "auth".into(), id: "".into() }, Acl::world(1)];
    leader.ask(&as_me(create_with("/mine", 0, &own))).unwrap();
    let office = [Acl { perms: 6, scheme: "ip".into(), id: "10.1.0.0/16".into() }];
    leader.ask(&create_with("/office", 0, &office)).unwrap();
    for _ in 0..2 {
        for path in ["/mine", "/office"] {
            let child = format!("{path}/child");
            assert_eq!(leader.ask(&set(path, -1)), Err(-102));
            assert_eq!(leader.ask(&create(&child, 0)), Err(-102));
            assert!(leader.ask(&as_me(set(path, -1))).is_ok());
            assert!(leader.ask(&as_me(create(&child, 0))).is_ok());
            assert_eq!(leader.ask(&delete(&child, -1)), Err(-102));
        }
        assert_eq!(leader.ask(&as_me(delete("/office/child", -1))), Err(-102), "no permission 8");
        let admin =
            Request { identities: identities(&[("super", "")]), ..delete("/office/child", -1) };
        assert!(leader.ask(&admin).is_ok());
        let program = Request { identities: None, ..delete("/mine/child", -1) };
        assert!(leader.ask(&program).is_ok());
        leader.settle();
    }
    let acl = leader.tree.get("/mine").unwrap().acl().unwrap().to_vec();
    let digest = Acl { perms: 31, scheme: "digest".into(), id: "me:secret".into() };
    assert_eq!(acl, [digest, Acl::world(1)]);
}

/// As every server of ZooKeeper does; only in a multi the flags say what is created.
#[test]
fn of_the_flags_of_a_container_a_create_makes_a_persistent_node() {
    for op in [kind::CREATE, kind::CREATE2] {
        let mut leader = Leader::new();
        leader.ask(&Request { op, ..create("/latch", 4) }).unwrap();
        assert_eq!(leader.under_way[0].header.kind, op);
        leader.settle();
        assert_eq!(leader.tree.get("/latch").unwrap().owner(), Owner::None);
    }
}
