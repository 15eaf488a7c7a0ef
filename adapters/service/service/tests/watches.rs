//! Watches: who hears of what, in which order.

use bytes::Bytes;
use quorate_application::clients::{Event, Frame, Output};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::stand::Stand;

pub(crate) fn add(path: &str, mode: i32) -> Request {
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
    stand.settle();
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

/// All sixteen sets of what can be held on one path, set in both orders: what each hears is the sum of its own, and one
/// event at most of a transaction and a walk.
#[test]
fn every_set_of_watches_on_one_path_hears_what_each_of_them_would() {
    let list = || Request::GetChildren { path: "/a".into(), watch: true };
    let kinds: [fn() -> Request; 4] = [
        || get("/a", true),
        || Request::GetChildren { path: "/a".into(), watch: true },
        || add("/a", 0),
        || add("/a", 1),
    ];
    for set_of in 0..16_u32 {
        let has = |kind: u32| set_of & 1 << kind != 0;
        let (data, children, persistent, recursive) = (has(0), has(1), has(2), has(3));
        for backwards in [true, false] {
            let mut stand = Stand::new(true);
            let (actor, _) = stand.client();
            let (client, _) = stand.client();
            stand.call(actor, create("/a")).unwrap();
            let mut order: Vec<_> = (0..4).filter(|kind| has(*kind)).collect();
            if backwards {
                order.reverse();
            }
            for kind in order {
                stand.call(client, kinds[kind as usize]()).unwrap();
            }
            let mut expect = |request: Request, heard: &[(bool, &str)]| {
                stand.call(actor, request.clone()).unwrap();
                let heard: Vec<_> =
                    heard.iter().filter(|(hears, _)| *hears).map(|(_, event)| *event).collect();
                assert_eq!(stand.told(client), heard, "{set_of:04b}, {request:?}");
            };
            let below = [(recursive, "created /a/b"), (children || persistent, "children /a")];
            expect(create("/a/b"), &below);
            expect(set("/a", -1), &[(data || persistent || recursive, "changed /a")]);
            expect(set("/a/b", -1), &[(recursive, "changed /a/b")]);
            let below = [(recursive, "deleted /a/b"), (persistent, "children /a")];
            expect(delete("/a/b"), &below);
            expect(delete("/a"), &[(persistent || recursive, "deleted /a")]);
            expect(create("/a"), &[(persistent || recursive, "created /a")]);
            // Each is asked for and taken away alone: 1 children, 2 data, 4 persistent, 5 recursive.
            stand.call(client, get("/a", data)).unwrap();
            if children {
                stand.call(client, list()).unwrap();
            }
            for (at, kind) in [(0, 2), (1, 1), (2, 4), (3, 5)] {
                let path = || "/a".to_owned();
                let expected = if has(at) { None } else { Some(-121) };
                let check = Request::CheckWatches { path: path(), kind };
                assert_eq!(stand.call(client, check).err(), expected, "{set_of:04b}, {kind}");
                let remove = || Request::RemoveWatches { path: path(), kind };
                assert_eq!(stand.call(client, remove()).err(), expected);
                assert_eq!(stand.call(client, remove()), Err(-121), "once");
            }
            stand.call(actor, set("/a", -1)).unwrap();
            stand.call(actor, create("/a/c")).unwrap();
            assert_eq!(stand.told(client), [""; 0], "nothing is left");
        }
    }
}

#[test]
fn a_watch_that_is_set_twice_fires_once_and_has_gone_then() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for _ in 0..2 {
        assert_eq!(stand.call(client, exists("/u", true)), Err(-101));
    }
    stand.request(client, &[(1, create("/u")), (2, delete("/u"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["created /u", "1 ok", "2 ok"]);
}

/// A sequential node by its whole name; of a list, of a session that opens, of what fails, nothing.
#[test]
fn events_name_the_node_as_it_was_made_and_some_transactions_have_none() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/q")).unwrap();
    stand.call(client, add("/q", 1)).unwrap();
    stand.call(client, create_with("/q/n-", 2)).unwrap();
    assert_eq!(stand.told(client), [""; 0], "{}", "read by the call");
    let acl = Some(vec![Acl::world(31)]);
    stand.request(
        client,
        &[
            (1, create_with("/q/n-", 2)),
            (2, Request::SetAcl { path: "/q".into(), acl, version: -1 }),
            (3, set("/q", 9)),
            (4, delete("/q")),
        ],
    );
    stand.settle();
    let told = stand.told(client);
    assert_eq!(told, ["created /q/n-0000000001", "1 ok", "2 ok", "3 -103", "4 -111"]);
    stand.client();
    assert_eq!(stand.told(client), [""; 0]);
}

/// However many nodes a session takes along, in the order of its list, before the reply.
#[test]
fn the_end_of_a_session_tells_of_each_of_its_nodes_and_of_their_parents() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let (other, _) = stand.client();
    stand.call(client, create("/p")).unwrap();
    for path in ["/p/a", "/p/b"] {
        stand.call(other, create_with(path, 1)).unwrap();
    }
    stand.call(client, add("/p", 0)).unwrap();
    stand.call(client, exists("/p/a", true)).unwrap();
    stand.call(client, Request::GetChildren { path: "/p/a".into(), watch: true }).unwrap();
    stand.request(other, &[(1, Request::CloseSession)]);
    stand.settle();
    assert_eq!(stand.told(client), ["deleted /p/a", "children /p", "children /p"]);
}

#[test]
fn watches_need_no_node_no_path_and_no_permission() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for path in ["/none/at/all", "no path", "", "/a//b", "/\u{1}"] {
        for mode in [0, 1] {
            stand.call(client, add(path, mode)).unwrap();
        }
        let kind = 3;
        assert!(stand.call(client, Request::CheckWatches { path: path.into(), kind }).is_ok());
        assert!(stand.call(client, Request::RemoveWatches { path: path.into(), kind }).is_ok());
    }
    stand.call(client, add("/none", 0)).unwrap();
    stand.request(client, &[(1, create("/none"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["created /none", "1 ok"]);
}

pub(crate) fn watch_count(stand: &mut Stand) -> usize {
    figure(stand, "zk_watch_count")
}

fn figure(stand: &mut Stand, name: &str) -> usize {
    let client = stand.connect();
    stand.send(client, vec![Frame::Word(*b"mntr")]);
    let text = stand.text(client);
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

/// Reads that wait behind a write when their connection goes set no watch any more.
#[test]
fn a_connection_that_has_gone_leaves_no_watch_behind() {
    let mut stand = Stand::new(false);
    for round in 0..20 {
        let (client, _) = stand.client();
        stand.call(client, get("/", true)).unwrap();
        stand.call(client, add("/", 1)).unwrap();
        let list = Request::GetChildren { path: "/".into(), watch: true };
        let requests = [(1, set("/", -1)), (2, get("/", true)), (3, list), (4, add("/x", 0))];
        stand.request(client, &requests);
        if round % 2 == 0 {
            stand.tell(Event::Disconnected(client));
        } else {
            // The same when this server closes it.
            stand.raw(client, 9, 99, &[]);
        }
        stand.settle();
        assert_eq!(watch_count(&mut stand), 0, "{round}");
    }
}

/// One that reads nothing: it is told no more replies, and all others are told of everything at once.
#[test]
fn an_event_is_encoded_once_and_who_does_not_read_delays_nobody() {
    let mut stand = Stand::new(true);
    let (slow, _) = stand.client();
    let watchers: Vec<_> = (0..5).map(|_| stand.client().0).collect();
    let data = Some(Bytes::from(vec![7; 1 << 20]));
    let Request::Create { op, path, acl, flags, ttl, .. } = create("/big") else { panic!() };
    stand.call(slow, Request::Create { op, path, data, acl, flags, ttl }).unwrap();
    stand.request(slow, &[(1, get("/big", false)), (2, get("/big", false))]);
    assert!(stand.is_paused(slow));
    stand.told(slow);
    for client in watchers.iter().chain([&slow]) {
        if *client == slow {
            continue;
        }
        stand.call(*client, add("/big", 0)).unwrap();
    }
    let request =
        crate::ensemble::submitted(&set("/big", -1), stand.tree().sessions().next().unwrap().0);
    stand.commit_of(&request, quorate_core::id::Origin::Service);
    let mut sent = Vec::new();
    for output in &stand.last {
        if let Output::Send { bytes, .. } = output {
            sent.push(bytes.as_ptr());
        }
    }
    assert_eq!(sent.len(), watchers.len());
    assert!(sent.iter().all(|at| *at == sent[0]), "all are sent the same bytes");
    for client in watchers {
        assert_eq!(stand.told(client), ["changed /big"]);
        assert!(stand.call(client, exists("/", false)).is_ok());
    }
    assert_eq!(figure(&mut stand, "zk_watch_events_sent"), 5);
}

#[test]
fn events_carry_the_zxid_of_their_transaction_where_an_operator_says_so() {
    for event_zxids in [true, false] {
        let mut stand = Stand::with(true, |options| options.event_zxids = event_zxids);
        let (client, _) = stand.client();
        stand.call(client, add("/", 1)).unwrap();
        let several = Request::Multi(vec![create("/x"), set("/x", 0)]);
        stand.request(client, &[(1, several), (2, delete("/x"))]);
        stand.settle();
        let last = stand.tree().last_zxid().0;
        let carried = |zxid| if event_zxids { zxid } else { -1 };
        let expected = [
            (-1, carried(last - 1), 0),
            (-1, carried(last - 1), 0),
            (1, last - 1, 0),
            (-1, carried(last), 0),
            (2, last, 0),
        ];
        assert_eq!(stand.headers(client), expected);
        let again = Request::SetWatches {
            op: op::SET_WATCHES,
            relative_zxid: Zxid(last),
            data: vec![Some("/x".into())],
            exist: vec![],
            child: vec![],
            persistent: vec![],
            recursive: vec![],
        };
        stand.request(client, &[(-8, again)]);
        assert_eq!(stand.headers(client), [(-1, -1, 0), (-8, last, 0)], "none of one transaction");
    }
}

#[test]
fn watches_are_counted_by_their_kinds() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let (other, _) = stand.client();
    let list = || Request::GetChildren { path: "/".into(), watch: true };
    for client in [client, other] {
        for request in [get("/", true), get("/", true), list(), add("/", 0), add("/", 1)] {
            stand.call(client, request).unwrap();
        }
    }
    stand.call(other, exists("/none", true)).unwrap_err();
    let counts = |stand: &mut Stand| {
        ["data", "child", "persistent", "recursive"]
            .map(|kind| figure(stand, &format!("zk_watch_count_{kind}")))
    };
    assert_eq!(counts(&mut stand), [3, 2, 2, 2]);
    stand.call(client, set("/", -1)).unwrap();
    assert_eq!(counts(&mut stand), [1, 2, 2, 2]);
    stand.call(client, create("/none")).unwrap();
    assert_eq!(counts(&mut stand), [0, 0, 2, 2]);
    stand.call(client, Request::RemoveWatches { path: "/".into(), kind: 4 }).unwrap();
    assert_eq!(counts(&mut stand), [0, 0, 1, 2]);
    stand.tell(Event::Disconnected(other));
    assert_eq!(counts(&mut stand), [0, 0, 0, 1]);
    stand.tell(Event::Disconnected(client));
    assert_eq!(counts(&mut stand), [0; 4]);
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
