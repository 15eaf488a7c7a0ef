//! Watches that are set again after a reconnect: what has changed meanwhile is told at once.

use bytes::{BufMut, BytesMut};
use quorate_application::clients::{Clients as _, Event, Frame, Framing as _};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, op};

use crate::clients::{create, delete, set};
use crate::stand::Stand;
use crate::watches::watch_count;

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

/// Of several changes one event: of a node that has gone, or is another, or that has come.
#[test]
fn what_has_changed_several_times_meanwhile_is_told_once() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for path in ["/set", "/gone", "/again", "/same"] {
        stand.call(client, create(path)).unwrap();
    }
    let seen = stand.tree().last_zxid();
    for request in [
        set("/set", -1),
        set("/set", -1),
        set("/gone", -1),
        delete("/gone"),
        delete("/again"),
        create("/again"),
        create("/new"),
        delete("/new"),
        create("/new"),
        create("/brief"),
        delete("/brief"),
    ] {
        stand.call(client, request).unwrap();
    }
    let paths = |paths: &[&str]| paths.iter().map(|path| Some((*path).to_owned())).collect();
    let (again, _) = stand.client();
    let request = Request::SetWatches {
        op: op::SET_WATCHES,
        relative_zxid: seen,
        data: paths(&["/set", "/gone", "/again", "/same"]),
        exist: paths(&["/new", "/brief"]),
        child: paths(&["/gone"]),
        persistent: vec![],
        recursive: vec![],
    };
    stand.request(again, &[(5, request)]);
    let told = stand.told(again);
    assert_eq!(
        told,
        [
            "changed /set",
            "deleted /gone",
            "changed /again",
            "created /new",
            "deleted /gone",
            "5 ok"
        ]
    );
}

/// The change itself, the one before it and the one after.
#[test]
fn what_was_seen_is_no_change_and_the_next_one_is() {
    for (back, told) in
        [(1, &["changed /d", "children /c", "-8 ok"][..]), (0, &["-8 ok"]), (-1, &["-8 ok"])]
    {
        let mut stand = Stand::new(true);
        let (client, _) = stand.client();
        stand.call(client, create("/c")).unwrap();
        stand.call(client, create("/d")).unwrap();
        let both = Request::Multi(vec![create("/c/x"), set("/d", -1)]);
        stand.call(client, both).unwrap();
        let request = Request::SetWatches {
            op: op::SET_WATCHES,
            relative_zxid: Zxid(stand.tree().last_zxid().0 - back),
            data: vec![Some("/d".into())],
            exist: vec![],
            child: vec![Some("/c".into())],
            persistent: vec![],
            recursive: vec![],
        };
        let (again, _) = stand.client();
        stand.request(again, &[(-8, request)]);
        assert_eq!(stand.told(again), told, "{back}");
    }
}

/// A null path: the lists before it are done.
#[test]
fn a_list_that_cannot_be_read_is_refused_behind_those_before_it() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let request = Request::SetWatches {
        op: op::SET_WATCHES,
        relative_zxid: Zxid::ZERO,
        data: vec![Some("/".into())],
        exist: vec![Some("/x".into()), None],
        child: vec![Some("/".into())],
        persistent: vec![],
        recursive: vec![],
    };
    stand.request(client, &[(-8, request), (1, create("/x"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["-8 -5", "created /x", "1 ok"]);
}

/// As the C client sends them: 20,000 of 100 bytes in one frame of 2 MB.
#[test]
fn all_watches_of_a_client_are_set_again_in_one_frame() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let long = "x".repeat(93);
    let data: Vec<_> = (0..20_000).map(|n| Some(format!("/{long}-{n:05}"))).collect();
    let missing = data.len();
    let request = Request::SetWatches {
        op: op::SET_WATCHES,
        relative_zxid: stand.tree().last_zxid(),
        data: vec![Some("/".into())],
        exist: data,
        child: vec![],
        persistent: vec![],
        recursive: vec![],
    };
    let bytes = request.frame(-8);
    assert!(bytes.len() > 2_000_000);
    let mut framing = stand.service.framing();
    let mut stream = BytesMut::from(&b"\0\0\0\x08first..."[..12]);
    framing.take(&mut stream).unwrap();
    stream.put_slice(&bytes);
    let frame = framing.take(&mut stream).unwrap();
    assert!(matches!(frame, Frame::Whole(_)));
    stand.send(client, vec![frame]);
    assert_eq!(stand.told(client), ["-8 ok"]);
    assert_eq!(watch_count(&mut stand), missing + 1);
    stand.tell(Event::Disconnected(client));
    assert_eq!(watch_count(&mut stand), 0);
}

/// Its client does not know yet whether it has a session, and so none of watches that it had.
#[test]
fn a_long_frame_behind_a_session_that_is_only_asked_for_ends_the_connection() {
    for length in [1_048_575, 1_048_576] {
        let mut stand = Stand::new(true);
        let client = stand.connect();
        stand.ask(client, 0, 4000);
        let head = [&(-8_i32).to_be_bytes()[..], &101_i32.to_be_bytes()].concat();
        let frame = [head, vec![0; length - 8]].concat();
        stand.send(client, vec![Frame::Whole(frame.into())]);
        let taken = length == 1_048_575;
        assert_eq!(stand.is_closed_without_a_byte(client), !taken);
        stand.settle();
        assert_eq!(stand.answer(client).is_some(), taken);
    }
}
