//! What would harm a server that reads it never becomes a transaction.

use crate::leader::*;
use crate::support::{Body, Random, open};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_znode::{Rules, kind};

const TYPES: Rules = Rules {
    extended_types: true,
    skip_acl: true,
    create2_in_multi: true,
    digest: true,
    container_unused_ms: None,
};

#[test]
fn what_no_server_should_be_told_is_refused() {
    let container = request(kind::DELETE_CONTAINER, Body::default().buffer("/c"));
    for origin in [Origin::Here, learner(1)] {
        let mut leader = Leader::with(TYPES);
        leader.ask(&by_program(create_container("/c"))).unwrap();
        for (asked, code) in [
            (check("/c", 0), -6),
            (container.clone(), -6),
            (by_program(container.clone()), -6),
            (create_ttl("/x", 0, -1), -8),
            (create_ttl("/x", 4, -1), -8),
            (create("/x", 5), -8),
            (Request { op: kind::CREATE2, ..create("/x", 7) }, -8),
            (request(kind::CREATE_CONTAINER, create_body("/x", 0, &open())), -8),
            (request(0, Body::default()), -6),
            (request(99, Body::default()), -6),
            (request(kind::ERROR, Body::default().int(-1)), -6),
            (Request { op: kind::CREATE_SESSION, ..open_session() }, 0),
            (request(kind::CREATE_SESSION, Body::default().int(9_000)), -6),
            (of(i64::MIN, open_session()), -8),
            (of(0, open_session()), -8),
            (of(0xff00_0000_0000_0001_u64 as i64, open_session()), -8),
            (set("/c", -1), 0),
        ] {
            assert_eq!(leader.ask_by(origin, &asked).err().unwrap_or(0), code, "{asked:?}");
        }
        leader.settle();
        assert_eq!(leader.tree.session(crate::support::SESSION), Some(10_000));
    }
    // The leader's own look at containers is believed, another server's is not.
    let mut leader = Leader::new();
    leader.ask(&create_container("/c")).unwrap();
    leader.ask(&create("/c/x", 0)).unwrap();
    leader.ask(&delete("/c/x", -1)).unwrap();
    assert_eq!(leader.ask_by(learner(1), &delete_container("/c")), Err(-6));
    assert_eq!(leader.ask(&delete_container("/c")).as_deref(), Ok("/c"));
    assert_eq!(leader.under_way.last().unwrap().header.kind, kind::DELETE_CONTAINER);
    leader.settle();
}

#[test]
fn quotas_hold_text_that_every_server_can_read() {
    let mut leader = Leader::new();
    leader.ask(&create("/zookeeper/quota/a", 0)).unwrap();
    for name in ["/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats"] {
        for odd in [Some(&b"x"[..]), Some(b"count="), Some(b"count=1,"), Some(b"count=1,b"), None] {
            assert_eq!(leader.ask(&create_text(name, odd)), Err(-8), "{odd:?}");
            leader.ask(&multi(&[create_text(name, odd)])).unwrap();
            assert_eq!(errors(leader.under_way.last().unwrap()), [-8], "{odd:?}");
        }
        let fine = Some(&b"count=3,bytes=-1=;byteHardLimit=100"[..]);
        assert_eq!(leader.ask(&create_text(name, fine)).as_deref(), Ok(name));
        assert_eq!(leader.ask(&set_text(name, Some(b"x"), 9)), Err(-8));
        assert_eq!(leader.ask(&set_text(name, None, -1)), Err(-8));
        assert_eq!(leader.ask(&set_text(name, Some(b""), -1)).as_deref(), Ok(name));
        leader.settle();
    }
    for (name, code) in [
        ("/zookeeper/quota/zookeeper_stats", -8),
        ("/zookeeper/quota/a/other", 0),
        ("/zookeeper/zookeeper_stats", 0),
        ("/zookeeper_limits", 0),
    ] {
        assert_eq!(leader.ask(&create_text(name, None)).err().unwrap_or(0), code, "{name}");
    }
    leader.settle();
}

#[test]
fn a_path_has_two_thousand_names_at_most() {
    let mut leader = Leader::new();
    let mut path = String::new();
    for _ in 0..2_000 {
        path += "/a";
        assert!(leader.ask(&create(&path, 0)).is_ok());
        leader.settle();
    }
    assert_eq!(leader.ask(&set(&path, 0)).as_ref(), Ok(&path));
    path += "/a";
    assert_eq!(leader.ask(&create(&path, 0)), Err(-8));
    assert_eq!(leader.ask(&set(&path, -1)), Err(-8));
    assert_eq!(leader.ask(&set_acl(&path, &open(), -1)), Err(-8));
    assert_eq!(leader.ask(&delete(&path, -1)), Err(-8));
    leader.ask(&multi(&[check(&path, -1)])).unwrap();
    assert_eq!(errors(leader.under_way.last().unwrap()), [-8]);
}

/// Every body cut short, and every one with a changed byte, is refused or becomes what a tree can carry out.
#[test]
fn damaged_requests_do_no_harm() {
    let several = multi(&[create("/a/s", SEQUENTIAL), set("/a", -1), check("/a", -1)]);
    let whole = [
        create("/a/x", 0),
        Request { op: kind::CREATE2, ..create("/a/x", EPHEMERAL) },
        create_container("/a/x"),
        create_ttl("/a/x", TTL, 9),
        delete("/a/b", 0),
        set_text("/a", Some(b"data"), -1),
        set_acl("/a", &[acl(31, "ip", "10.0.0.0/8"), acl(31, "auth", "")], 0),
        several,
        open_session(),
    ];
    let mut random = Random::new(7);
    for asked in &whole {
        for _ in 0..3 {
            let mut leader = Leader::with(TYPES);
            for path in ["/a", "/a/b"] {
                leader.ask(&create(path, 0)).unwrap();
            }
            for length in 0..asked.body.len() {
                let cut = Request { body: asked.body.slice(..length), ..asked.clone() };
                assert_eq!(leader.ask(&cut), Err(-5), "{length} bytes of {asked:?}");
            }
            for at in 0..asked.body.len() {
                let mut body = asked.body.to_vec();
                body[at] = random.of(&[0, 1, 0x2f, 0x7f, 0x80, 0xff, body[at] ^ 1]);
                let changed = Request { body: body.into(), ..asked.clone() };
                let _told = leader.ask(&changed);
            }
            leader.settle();
        }
    }
}

#[test]
fn a_count_is_not_believed() {
    let mut leader = Leader::new();
    for body in [
        Body::default().buffer("/x").data(None).int(i32::MAX).int(31),
        Body::default().buffer("/x").int(i32::MAX).int(31),
        Body::default().int(i32::MAX),
        Body::default().int(-2),
        Body::default().buffer("/x").data(None).int(-2).int(31).int(0).int(0),
    ] {
        assert_eq!(leader.ask(&request(kind::CREATE, body)), Err(-5));
    }
    leader.settle();
}
