//! Watches: who hears of what, in which order.

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::stand::Stand;

fn add(path: &str, mode: i32) -> Request {
    Request::AddWatch { path: path.into(), mode }
}

#[test]
fn an_event_comes_before_the_reply_to_who_caused_it() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/w")).unwrap();
    stand.request(client, &[(1, get("/w", true)), (2, set("/w", -1))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "changed /w", "2 ok"]);
    stand.call(client, set("/w", -1)).unwrap();
    assert_eq!(stand.told(client), [""; 0], "once");
}

/// Persistent, recursive, on children, on data.
#[test]
fn each_kind_of_watch_hears_what_is_its_own() {
    let mut stand = Stand::new(true);
    let (actor, _) = stand.client();
    stand.call(actor, create("/a")).unwrap();
    let watchers: Vec<_> = (0..4).map(|_| stand.client().0).collect();
    let children = Request::GetChildren { path: "/a".into(), watch: true };
    let requests = [add("/a", 0), add("/a", 1), children, get("/a", true)];
    for (client, request) in watchers.iter().zip(requests) {
        stand.call(*client, request).unwrap();
    }
    let mut expect = |request: Request, heard: [&[&str]; 4]| {
        stand.call(actor, request.clone()).unwrap();
        for (client, heard) in watchers.iter().zip(heard) {
            assert_eq!(stand.told(*client), heard, "{request:?}");
        }
    };
    expect(create("/a/b"), [&["children /a"], &["created /a/b"], &["children /a"], &[]]);
    expect(set("/a", -1), [&["changed /a"], &["changed /a"], &[], &["changed /a"]]);
    expect(create("/a/b/c"), [&[], &["created /a/b/c"], &[], &[]]);
    expect(delete("/a/b/c"), [&[], &["deleted /a/b/c"], &[], &[]]);
    expect(delete("/a/b"), [&["children /a"], &["deleted /a/b"], &[], &[]]);
    expect(delete("/a"), [&["deleted /a"], &["deleted /a"], &[], &[]]);
    expect(create("/a"), [&["created /a"], &["created /a"], &[], &[]]);
}

#[test]
fn two_tables_of_one_node_are_one_event() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/t")).unwrap();
    stand.call(client, get("/t", true)).unwrap();
    stand.call(client, Request::GetChildren { path: "/t".into(), watch: true }).unwrap();
    stand.request(client, &[(1, delete("/t"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["deleted /t", "1 ok"]);
}

#[test]
fn a_node_that_is_not_there_can_be_waited_for_and_a_failed_read_watches_nothing() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    assert_eq!(stand.call(client, exists("/u", true)), Err(-101));
    assert_eq!(stand.call(client, get("/v", true)), Err(-101));
    stand.call(client, create("/v")).unwrap();
    assert_eq!(stand.told(client), [""; 0]);
    stand.request(client, &[(1, create("/u")), (2, delete("/u"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["created /u", "1 ok", "2 ok"]);
}

#[test]
fn a_multi_tells_of_all_or_of_nothing() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, add("/n", 0)).unwrap();
    stand.request(client, &[(1, Request::Multi(vec![create("/n"), set("/n", 7)]))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok"]);
    let fine = vec![create("/n"), set("/n", 0), set("/n", 1), delete("/n")];
    stand.request(client, &[(2, Request::Multi(fine))]);
    stand.settle();
    let told = stand.told(client);
    assert_eq!(told, ["created /n", "changed /n", "changed /n", "deleted /n", "2 ok"]);
}

/// What has changed since is told at once, what has not is watched again; equal is no change.
#[test]
fn watches_that_are_set_again_catch_up() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for path in ["/d1", "/c1"] {
        stand.call(client, create(path)).unwrap();
    }
    let seen = stand.tree().last_zxid();
    for path in ["/d2", "/x2", "/c2"] {
        stand.call(client, create(path)).unwrap();
    }
    let some = |paths: &[&str]| paths.iter().map(|path| Some((*path).to_owned())).collect();
    let (again, _) = stand.client();
    let request = Request::SetWatches {
        op: op::SET_WATCHES2,
        relative_zxid: seen,
        data: some(&["/d1", "/d2", "/d3"]),
        exist: some(&["/x1", "/x2"]),
        child: some(&["/c1", "/c2", "/c3"]),
        persistent: some(&["/d1"]),
        recursive: some(&["/r"]),
    };
    stand.request(again, &[(-8, request)]);
    let told = stand.told(again);
    assert_eq!(
        told,
        ["changed /d2", "deleted /d3", "created /x2", "children /c2", "deleted /c3", "-8 ok"]
    );
    assert_eq!(stand.tree().get("/d1").unwrap().stat().mzxid, Zxid(seen.0 - 1));
    stand.call(client, create("/r")).unwrap();
    stand.call(client, create("/x1")).unwrap();
    stand.call(client, create("/c1/y")).unwrap();
    stand.call(client, set("/d1", -1)).unwrap();
    let told = stand.told(again);
    assert_eq!(told, ["created /r", "created /x1", "children /c1", "changed /d1"]);
}

#[test]
fn watches_are_removed_one_kind_at_a_time() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/a")).unwrap();
    stand.call(client, get("/a", true)).unwrap();
    stand.call(client, add("/a", 0)).unwrap();
    let remove = |kind| Request::RemoveWatches { path: "/a".into(), kind };
    let check = |kind| Request::CheckWatches { path: "/a".into(), kind };
    assert_eq!(stand.call(client, remove(1)), Err(-121));
    assert!(stand.call(client, check(2)).is_ok());
    assert!(stand.call(client, remove(2)).is_ok());
    assert_eq!(stand.call(client, check(2)), Err(-121));
    stand.request(client, &[(1, set("/a", -1))]);
    stand.settle();
    assert_eq!(stand.told(client), ["changed /a", "1 ok"], "the persistent one");
    assert!(stand.call(client, remove(4)).is_ok());
    assert_eq!(stand.call(client, remove(3)), Err(-121));
}

#[test]
fn a_watch_ends_with_its_connection_and_not_with_its_session() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    stand.call(client, create("/a")).unwrap();
    stand.call(client, get("/a", true)).unwrap();
    let again = stand.connect();
    stand.ask(again, session, 4000);
    stand.answer(again).unwrap();
    stand.request(again, &[(1, set("/a", -1))]);
    stand.settle();
    assert_eq!(stand.told(again), ["1 ok"]);
}

#[test]
fn who_may_not_read_a_node_hears_nothing_of_it() {
    let mut stand = Stand::new(true);
    let (bob, _) = stand.client();
    let auth = Bytes::from_static(b"bob:secret");
    stand.request(bob, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    stand.told(bob);
    let (other, _) = stand.client();
    stand.call(bob, create("/s")).unwrap();
    stand.call(other, add("/s", 1)).unwrap();
    let own = Acl { perms: 31, scheme: "auth".into(), id: "".into() };
    let Request::Create { op, path, data, flags, ttl, .. } = create_with("/s/k", 0) else {
        panic!()
    };
    let secret = Request::Create { op, path, data, acl: Some(vec![own]), flags, ttl };
    stand.call(bob, secret).unwrap();
    stand.call(bob, set("/s/k", -1)).unwrap();
    stand.call(bob, delete("/s/k")).unwrap();
    assert_eq!(stand.told(other), [""; 0]);
    stand.call(bob, create("/s/k2")).unwrap();
    assert_eq!(stand.told(other), ["created /s/k2"]);
}

/// What it was is not to be seen in the tree any more when it is told of.
#[test]
fn nor_of_one_that_is_gone_with_the_transaction_that_made_it() {
    let mut stand = Stand::new(true);
    let (bob, _) = stand.client();
    let auth = Bytes::from_static(b"bob:secret");
    stand.request(bob, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    stand.told(bob);
    let (other, _) = stand.client();
    stand.call(bob, create("/s")).unwrap();
    stand.call(other, add("/s", 1)).unwrap();
    stand.call(bob, add("/s", 1)).unwrap();
    let Request::Create { op, path, data, flags, ttl, .. } = create_with("/s/k", 0) else {
        panic!()
    };
    let own = Acl { perms: 31, scheme: "auth".into(), id: "".into() };
    let secret = Request::Create { op, path, data, acl: Some(vec![own]), flags, ttl };
    let open = create("/s/k");
    let all = vec![secret, set("/s/k", -1), delete("/s/k"), open.clone(), delete("/s/k"), open];
    stand.request(bob, &[(9, Request::Multi(all))]);
    stand.settle();
    let mut told = stand.told(bob);
    assert_eq!(told.pop().as_deref(), Some("9 ok"));
    assert_eq!(told[..3], ["created /s/k", "changed /s/k", "deleted /s/k"]);
    assert_eq!(told[3..], ["created /s/k", "deleted /s/k", "created /s/k"]);
    assert_eq!(stand.told(other), told[3..], "only of that which it may read");
}
