//! Access lists: what is made of those that clients give, and whom they permit what.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use crate::leader::*;
use crate::support::{Body, open};
use quorate_core::message::{Identity, Request};
use quorate_znode::access::{ADMIN, CREATE, DELETE, READ, WRITE, masked, permitted};
use quorate_znode::acl::{Acl, Acls};
use quorate_znode::{Rules, kind};

fn as_these(of: &[(&str, &str)], request: Request) -> Request {
    Request { identities: identities(of), ..request }
}

fn allowed(list: &[Acl], permission: i32, of: &[(&str, &str)]) -> bool {
    let list: Acls = Arc::from(list);
    permitted(Some(&list), permission, identities(of).as_deref())
}

/// The list that a node gets.
fn becomes(given: &[Acl], of: &[(&str, &str)]) -> Result<Vec<Acl>, i32> {
    let mut leader = Leader::new();
    leader.ask(&as_these(of, create_with("/x", 0, given)))?;
    leader.settle();
    Ok(leader.tree.get("/x").unwrap().acl().unwrap().to_vec())
}

#[test]
fn each_permission_is_a_bit_of_its_own() {
    for (given, bit) in [(1, READ), (2, WRITE), (4, CREATE), (8, DELETE), (16, ADMIN)] {
        for asked in [READ, WRITE, CREATE, DELETE, ADMIN] {
            assert_eq!(allowed(&[Acl::world(given)], asked, &[]), asked == bit);
        }
        assert!(allowed(&[Acl::world(given)], READ | bit, &[]), "any of them");
    }
    assert!(!allowed(&[Acl::world(0)], 31, &[("ip", "127.0.0.1")]));
}

#[test]
fn an_identity_matches_by_its_scheme() {
    for (scheme, id, own, expected) in [
        ("digest", "a:b", ("digest", "a:b"), true),
        ("digest", "a:b", ("digest", "a:c"), false),
        ("digest", "a:b", ("sasl", "a:b"), false),
        ("sasl", "a", ("sasl", "a"), true),
        ("sasl", "a", ("sasl", "super"), true),
        ("x509", "CN=a", ("x509", "CN=a"), true),
        ("x509", "CN=a", ("x509", "super"), false),
        ("world", "someone", ("ip", "1.2.3.4"), false),
        ("auth", "", ("digest", "a:b"), false),
        ("ip", "10.1.2.3", ("ip", "10.1.2.3"), true),
        ("ip", "10.1.2.3", ("ip", "10.1.2.4"), false),
        ("ip", "10.0.0.0/8", ("ip", "10.1.2.4"), true),
        ("ip", "10.0.0.0/8", ("ip", "11.1.2.4"), false),
        ("ip", "10.1.2.4/31", ("ip", "10.1.2.5"), true),
        ("ip", "10.1.2.4/31", ("ip", "10.1.2.6"), false),
        ("ip", "10.0.0.0/0", ("ip", "200.1.2.4"), true),
        ("ip", "0.0.0.0/0", ("ip", "0:0:0:0:0:0:0:1"), false),
        ("ip", "::/0", ("ip", "10.1.2.3"), false),
        ("ip", "::/0", ("ip", "0:0:0:0:0:0:0:1"), true),
        ("ip", "::1", ("ip", "0:0:0:0:0:0:0:1"), true),
        ("ip", "fd00::/16", ("ip", "fd00:1:0:0:0:0:0:1"), true),
        ("ip", "fd00::/16", ("ip", "fd01:1:0:0:0:0:0:1"), false),
        ("ip", "fe80::/10", ("ip", "fe80:0:0:0:0:0:0:1%eth0"), true),
        ("ip", "10.0.0.0/8", ("ip", "no address"), false),
        ("digest", "a:b", ("super", ""), true),
    ] {
        let list = [acl(READ, scheme, id)];
        assert_eq!(allowed(&list, READ, &[own]), expected, "{scheme} {id} for {own:?}");
    }
}

#[test]
fn a_list_that_is_missing_permits_nothing_and_an_empty_one_all() {
    let (own, none) = (identities(&[("ip", "127.0.0.1")]), identities(&[]));
    for own in [&own, &none] {
        assert!(!permitted(None, READ, own.as_deref()));
        assert!(permitted(Some(&Acls::from([])), READ, own.as_deref()));
    }
    assert!(permitted(None, READ, identities(&[("super", "x")]).as_deref()));
    assert!(permitted(None, READ, None), "the embedding program");
    let all = Rules { skip_acl: true, ..Rules::default() };
    assert!(all.permit(None, ADMIN, own.as_deref()));
    assert!(!Rules::default().permit(None, ADMIN, own.as_deref()));
}

#[test]
fn a_digest_is_masked_for_those_who_may_not_administer() {
    let list = [acl(31, "digest", "bob:secret"), Acl::world(1), acl(1, "sasl", "a:b")];
    assert_eq!(masked(&list), [acl(31, "digest", "bob:x"), Acl::world(1), acl(1, "sasl", "a:b")]);
    assert_eq!(masked(&[acl(1, "digest", "bob:a:b")]), [acl(1, "digest", "bob:x")]);
}

#[test]
fn what_no_list_may_hold_is_refused() {
    for (scheme, id, fine) in [
        ("world", "anyone", true),
        ("world", "someone", false),
        ("digest", "a:b", true),
        ("digest", ":b", true),
        ("digest", "a:b:", true),
        ("digest", "a:", false),
        ("digest", "a", false),
        ("digest", "", false),
        ("digest", "a:b:c", false),
        ("ip", "10.0.0.1", true),
        ("ip", "10.0.0.0/32", true),
        ("ip", "10.0.0.0/33", false),
        ("ip", "10.0.0.0/-1", false),
        ("ip", "10.0.0.0/", false),
        ("ip", "300.1.1.1", false),
        ("ip", "10.0.0", false),
        ("ip", "10.0.0.1.2", false),
        ("ip", "::1", true),
        ("ip", "fd00::/128", true),
        ("ip", "fd00::/129", false),
        ("ip", "localhost", false),
        ("x509", "CN=a,OU=b", true),
        ("x509", "nothing", false),
        ("x509", "=a", false),
        ("sasl", "zk", true),
        ("sasl", "zk/host@REALM", true),
        ("sasl", "zk@REALM@OTHER", false),
        ("sasl", "a/b/c@REALM", false),
        ("super", "", false),
        ("none", "x", false),
    ] {
        let given = [acl(31, scheme, id)];
        let expected = if fine { Ok(given.to_vec()) } else { Err(-114) };
        assert_eq!(becomes(&given, &[]), expected, "{scheme} {id}");
    }
    assert_eq!(becomes(&[], &[]), Err(-114));
    assert_eq!(
        becomes(&[Acl::world(0)], &[]),
        Ok(vec![Acl::world(0)]),
        "permissions are not judged"
    );
}

#[test]
fn null_is_told_apart_in_a_list() {
    let mut leader = Leader::new();
    let given = |scheme: Option<&[u8]>, id: Option<&[u8]>| {
        let acl = Body::default().int(1).int(31).data(scheme).data(id);
        let mut body = Body::default().buffer("/x").data(None);
        body.0.extend(acl.0);
        request(kind::CREATE, body.int(0))
    };
    let digest = ("digest", "a:b");
    for (scheme, id, code) in [
        (None, None, -114),
        (None, Some(&b"anyone"[..]), -114),
        (Some(&b"none"[..]), None, -114),
        (Some(b"world"), None, -5),
        (Some(b"digest"), None, -5),
        (Some(b"ip"), None, -5),
        (Some(b"auth"), None, 0),
    ] {
        let asked = as_these(&[digest], given(scheme, id));
        assert_eq!(leader.ask(&asked).err().unwrap_or(0), code, "{scheme:?} {id:?}");
    }
    let null = Body::default().buffer("/y").data(None).int(-1).int(0);
    assert_eq!(leader.ask(&request(kind::CREATE, null)), Err(-114));
    leader.settle();
}

#[test]
fn auth_stands_for_what_the_client_has_proved() {
    let auth = acl(31, "auth", "ignored");
    let bob = ("digest", "bob:x");
    let eve = ("digest", "eve:y");
    let own = |perms, (scheme, id)| acl(perms, scheme, id);
    let ip = ("ip", "127.0.0.1");
    assert_eq!(
        becomes(std::slice::from_ref(&auth), &[ip, bob, eve]),
        Ok(vec![own(31, bob), own(31, eve)])
    );
    for without in [&[][..], &[ip], &[("super", "")]] {
        assert_eq!(becomes(std::slice::from_ref(&auth), without), Err(-114));
    }
    let given = [Acl::world(1), auth, own(31, bob), acl(1, "auth", ""), Acl::world(1)];
    assert_eq!(
        becomes(&given, &[bob, ("sasl", "s"), ("x509", "CN=x")]),
        Ok(vec![
            Acl::world(1),
            own(31, bob),
            acl(31, "sasl", "s"),
            acl(31, "x509", "CN=x"),
            own(1, bob),
            acl(1, "sasl", "s"),
            acl(1, "x509", "CN=x"),
        ])
    );
}

/// A megabyte of entries, and a thousand identities in a short request.
#[test]
fn a_long_list_is_no_burden() {
    let before = std::time::Instant::now();
    let many: Vec<_> = (0..40_000).map(|n| acl(n % 20_000, "world", "anyone")).collect();
    let mut leader = Leader::new();
    leader.ask(&create_with("/x", 0, &many)).unwrap();
    leader.settle();
    assert_eq!(leader.tree.get("/x").unwrap().acl().unwrap().len(), 20_000);
    let own: Vec<Identity> = (0..1_000)
        .map(|n| Identity { scheme: "digest".into(), id: format!("user{n}:x") })
        .collect();
    let same: Vec<_> = (0..40_000).map(|_| acl(31, "auth", "")).collect();
    let different: Vec<_> = (0..40_000).map(|n| acl(n, "auth", "")).collect();
    let asked = |given| Request { identities: Some(own.clone()), ..create_with("/y", 0, given) };
    assert_eq!(leader.ask(&asked(&different)), Err(-5), "it becomes too long");
    assert_eq!(leader.ask(&asked(&same)).as_deref(), Ok("/y"));
    leader.settle();
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

#[test]
fn skipping_access_lists_permits_every_write() {
    let mut leader = Leader::with(Rules { skip_acl: true, ..Rules::default() });
    leader.ask(&create_with("/x", 0, &[acl(0, "digest", "a:b")])).unwrap();
    assert!(leader.ask(&set("/x", -1)).is_ok());
    assert!(leader.ask(&create("/x/y", 0)).is_ok());
    assert!(leader.ask(&set_acl("/x", &open(), -1)).is_ok());
    leader.settle();
}
