//! More requests than a server has room for: who waits, who goes on, and what is dropped.

use std::time::Duration;

use quorate_application::clients::Event;
use quorate_service::wire::{Request, op};

use crate::clients::{create, create_with, exists, set};
use crate::stand::Stand;

fn throttled(max: usize, drop_stale: bool) -> Stand {
    Stand::with(true, |options| {
        options.throttled_requests_max = Some(max);
        options.drop_stale = drop_stale;
    })
}

#[test]
fn requests_beyond_the_throttle_wait_and_all_are_answered_in_order() {
    let mut stand = throttled(5, false);
    let (busy, _) = stand.client();
    let (other, _) = stand.client();
    let many: Vec<_> = (1..=100).map(|xid| (xid, create_with("/s-", 2))).collect();
    stand.request(busy, &many);
    assert_eq!(stand.submitted.len(), 5);
    stand.request(other, &[(-2, Request::Ping), (1, exists("/", false))]);
    assert_eq!(stand.told(other), ["-2 ok", "1 ok"], "who asks for no room has not to wait");
    stand.request(other, &[(2, Request::Sync { path: None }), (3, create("/x"))]);
    assert_eq!((stand.submitted.len(), stand.syncs.len()), (5, 0));
    stand.settle();
    let told = stand.told(busy);
    assert_eq!(told, (1..=100).map(|xid| format!("{xid} ok")).collect::<Vec<_>>());
    assert_eq!(stand.told(other), ["2 ok", "3 ok"]);
}

#[test]
fn a_sync_that_is_done_or_whose_client_has_gone_makes_room() {
    let mut stand = throttled(1, false);
    let (one, _) = stand.client();
    let (two, _) = stand.client();
    stand.request(one, &[(1, Request::Sync { path: None })]);
    stand.request(two, &[(1, create("/x"))]);
    assert!(stand.submitted.is_empty());
    stand.tell(Event::Disconnected(one));
    stand.settle();
    assert_eq!(stand.told(two), ["1 ok"]);
}

#[test]
fn what_has_waited_longer_than_its_session_may_be_silent_ends_the_connection() {
    for drop_stale in [true, false] {
        let mut stand = throttled(1, drop_stale);
        let (busy, _) = stand.client();
        let (late, session) = stand.client();
        stand.request(busy, &[(1, create("/a"))]);
        stand.request(late, &[(1, create("/b")), (2, create("/c"))]);
        for _ in 0..5 {
            stand.wait(Duration::from_secs(1));
            stand.request(late, &[(-2, Request::Ping)]);
            stand.request(busy, &[(-2, Request::Ping)]);
        }
        stand.settle();
        let told = stand.told(late);
        if drop_stale {
            assert_eq!(told, ["closed"], "and what stands behind it is dropped");
            assert!(stand.tree().get("/b").is_none() && stand.tree().get("/c").is_none());
        } else {
            assert_eq!(told[..2], ["1 ok", "2 ok"]);
        }
        assert!(stand.tree().session(session).is_some());
        assert_eq!(stand.told(busy)[0], "1 ok");
    }
}

#[test]
fn what_a_client_has_asked_for_that_has_gone_is_dropped_but_for_the_end_of_its_session() {
    for closes in [true, false] {
        let mut stand = throttled(1, true);
        let (busy, _) = stand.client();
        let (gone, session) = stand.client();
        stand.call(gone, create_with("/e", 1)).unwrap();
        stand.request(busy, &[(1, create("/a"))]);
        stand.request(gone, &[(1, create("/b"))]);
        if closes {
            stand.request(gone, &[(2, Request::CloseSession)]);
        }
        assert_eq!(stand.submitted.len(), 1);
        stand.tell(Event::Disconnected(gone));
        stand.settle();
        assert!(stand.tree().get("/b").is_none());
        assert_eq!(stand.tree().session(session).is_some(), !closes);
        assert_eq!(stand.tree().get("/e").is_some(), !closes);
    }
}

#[test]
fn the_end_of_a_session_is_never_dropped_however_long_it_has_waited() {
    let mut stand = throttled(1, true);
    let (busy, _) = stand.client();
    let (one, first) = stand.client();
    let (two, second) = stand.client();
    stand.request(busy, &[(1, create("/a"))]);
    stand.request(one, &[(1, Request::CloseSession)]);
    stand.request(two, &[(1, create("/b")), (2, Request::CloseSession)]);
    for _ in 0..5 {
        stand.wait(Duration::from_secs(1));
        stand.submitted.retain(|request| request.op != op::CLOSE_SESSION);
    }
    stand.settle();
    assert_eq!(stand.told(one), ["1 ok", "closed"]);
    assert_eq!(stand.told(two), ["closed"]);
    for session in [first, second] {
        assert!(stand.tree().session(session).is_none());
    }
    assert!(stand.tree().get("/b").is_none());
}

/// All of them, on one connection.
#[test]
fn ten_thousand_requests_of_one_client_are_answered_in_order() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let many: Vec<_> = (1..=10_000)
        .map(|xid| (xid, if xid % 5 == 0 { exists("/", false) } else { set("/", -1) }))
        .collect();
    stand.request(client, &many);
    assert!(stand.is_paused(client) && stand.submitted.len() <= 1000);
    stand.settle();
    let told = stand.told(client);
    assert_eq!(told, (1..=10_000).map(|xid| format!("{xid} ok")).collect::<Vec<_>>());
    assert!(!stand.is_paused(client));
}

/// One write at a time, each as soon as the one before it is answered.
#[test]
fn a_client_that_waits_for_each_of_its_writes_never_waits_for_ever() {
    for leads in [true, false] {
        let mut stand = Stand::with(leads, |options| options.outstanding_max = 1);
        let (one, _) = stand.client();
        let (two, _) = stand.client();
        for xid in 1..=500 {
            for client in [one, two] {
                stand.request(client, &[(xid, set("/", -1)), (xid, exists("/", false))]);
            }
            stand.settle();
            for client in [one, two] {
                assert_eq!(stand.told(client), [format!("{xid} ok"), format!("{xid} ok")]);
            }
        }
    }
}
