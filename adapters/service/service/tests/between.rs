//! Clients of a server between two leaders: who stays and who waits, how long, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use quorate_application::Application;
use quorate_application::clients::{ClientId, Event, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request as Submitted;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;
use quorate_service::wire::Request;
use quorate_znode::kind;

use crate::clients::{create, exists, set};
use crate::ensemble::submitted;
use crate::stand::{Stand, TICK};

/// A tick, which is shorter than a second here.
const LONGEST: Duration = TICK;

/// A server that has just lost its leader, and a session that was open there.
fn retired() -> (Stand, i64) {
    let mut stand = Stand::new(false);
    let (_, session) = stand.client();
    stand.tell(Event::Retired);
    (stand, session)
}

/// One that comes for a session; 0: a new one.
fn comes(stand: &mut Stand, session: i64) -> ClientId {
    let client = stand.connect();
    stand.ask(client, session, 4000);
    client
}

#[test]
fn who_comes_between_two_leaders_is_heard_by_the_next_with_all_that_it_has_said() {
    for leads in [true, false] {
        let (mut stand, session) = retired();
        let (old, new) = (comes(&mut stand, session), comes(&mut stand, 0));
        stand.request(old, &[(1, create("/x")), (2, exists("/x", false))]);
        stand.wait(LONGEST / 2);
        assert!(stand.told(old).is_empty() && stand.told(new).is_empty());
        stand.serve(leads);
        if !leads {
            stand.tell(Event::Revalidated([&session.to_be_bytes()[..], &[1]].concat().into()));
        }
        stand.settle();
        assert_eq!(stand.answer(old).unwrap().session, session);
        let replies: Vec<_> = stand.headers(old).iter().map(|(xid, _, err)| (*xid, *err)).collect();
        assert_eq!(replies, [(1, 0), (2, 0)]);
        assert_ne!(stand.answer(new).unwrap().session, session);
        stand.wait(LONGEST * 2);
        assert!(stand.told(old).is_empty() && stand.told(new).is_empty(), "they stay");
    }
}

#[test]
fn nobody_waits_longer_than_a_tick_since_the_leader_went_and_who_comes_then_does_not_wait() {
    let (mut stand, session) = retired();
    stand.wait(LONGEST - Duration::from_millis(200));
    let waits = comes(&mut stand, session);
    assert!(stand.told(waits).is_empty());
    stand.wait(Duration::from_millis(200));
    assert!(stand.is_closed_without_a_byte(waits));
    let late = comes(&mut stand, session);
    assert!(stand.is_closed_without_a_byte(late));
    assert_eq!(stand.service_deadline(), None, "nothing is due");
    // The next leader is one like any other.
    stand.serve(true);
    let again = comes(&mut stand, session);
    stand.settle();
    assert_eq!(stand.answer(again).unwrap().session, session);
}

#[test]
fn a_server_that_stops_keeps_nobody_waiting() {
    let (mut stand, session) = retired();
    let waiting: Vec<_> = (0..10).map(|_| comes(&mut stand, 0)).collect();
    stand.tell(Event::Stopping { within: Duration::from_secs(3) });
    for client in waiting {
        assert!(stand.is_closed_without_a_byte(client));
    }
    let late = comes(&mut stand, session);
    assert_eq!(stand.told(late), ["closed"]);
}

#[test]
fn what_is_no_request_for_a_session_does_not_wait() {
    let (mut stand, _) = retired();
    let client = stand.connect();
    stand.request(client, &[(1, Request::Ping)]);
    assert!(stand.is_closed_without_a_byte(client));
}

/// Whether the leader has been told of a session.
fn has_heard_of(stand: &Stand, session: i64) -> bool {
    stand.asked.iter().any(
        |output| matches!(output, Output::Touch(list) if list.starts_with(&session.to_be_bytes())),
    )
}

/// A node below which nothing is, and who has left a watch on it and asks nothing more.
fn watching(leads: bool) -> (Stand, ClientId, i64) {
    let mut stand = Stand::new(leads);
    let (client, session) = stand.client();
    stand.request(client, &[(1, create("/x")), (2, exists("/x", true))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
    (stand, client, session)
}

#[test]
fn a_session_for_which_nothing_is_under_way_stays_with_its_watches() {
    for leads in [true, false] {
        let (mut stand, client, session) = watching(!leads);
        let (_, other) = stand.client();
        stand.tell(Event::Retired);
        assert!(stand.told(client).is_empty());
        stand.request(client, &[(3, set("/x", 1)), (-2, Request::Ping)]);
        // Of the next leader's history, before this server serves.
        stand.commit_of(&submitted(&set("/x", 0), other), Origin::Here);
        assert_eq!(stand.told(client), ["changed /x"], "its watch");
        stand.serve(leads);
        stand.settle();
        assert_eq!(stand.told(client), ["3 ok", "-2 ok"]);
        if !leads {
            stand.tell(Event::Pinged);
            assert!(has_heard_of(&stand, session));
        }
        stand.wait(LONGEST * 2);
        assert!(stand.told(client).is_empty(), "it stays");
    }
}

#[test]
fn the_next_leader_hears_at_once_of_a_session_that_stays_and_is_silent() {
    let (mut stand, _, session) = watching(true);
    stand.tell(Event::Retired);
    stand.serve(false);
    stand.tell(Event::Pinged);
    assert!(has_heard_of(&stand, session));
}

#[test]
fn a_session_that_has_asked_for_something_ends_with_its_leader() {
    for request in [set("/x", 0), Request::Sync { path: Some("/".into()) }] {
        let (mut stand, client, _) = watching(true);
        stand.request(client, &[(3, request), (4, exists("/x", false))]);
        stand.tell(Event::Retired);
        assert_eq!(stand.told(client), ["closed"]);
    }
}

#[test]
fn who_has_stayed_is_closed_when_the_tree_becomes_another_one_and_who_has_come_waits() {
    let (mut stand, stayed, session) = watching(false);
    stand.tell(Event::Retired);
    let came = comes(&mut stand, 0);
    stand.tell(Event::Replaced);
    assert_eq!(stand.told(stayed), ["closed"]);
    stand.serve(true);
    stand.settle();
    assert_ne!(stand.answer(came).unwrap().session, session);
}

#[test]
fn who_has_stayed_waits_no_longer_than_a_tick_and_not_for_a_server_that_stops() {
    let (mut stand, client, _) = watching(true);
    stand.tell(Event::Retired);
    stand.wait(LONGEST - Duration::from_millis(200));
    assert!(stand.told(client).is_empty());
    stand.wait(Duration::from_millis(200));
    assert_eq!(stand.told(client), ["closed"]);

    let (mut stand, client, _) = watching(true);
    stand.tell(Event::Retired);
    stand.tell(Event::Stopping { within: Duration::from_secs(3) });
    assert_eq!(stand.told(client), ["closed"]);
}

#[test]
fn a_session_that_the_next_leaders_history_closes_does_not_stay() {
    let (mut stand, client, session) = watching(true);
    stand.tell(Event::Retired);
    stand.commit_of(&submitted(&Request::CloseSession, session), Origin::Here);
    assert_eq!(stand.told(client), ["closed"]);
}

#[test]
fn nobody_stays_at_a_leader_that_serves_no_clients() {
    let mut stand = Stand::with(false, |options| options.leader_serves = false);
    let (client, _) = stand.client();
    stand.tell(Event::Retired);
    assert!(stand.told(client).is_empty());
    stand.serve(true);
    assert_eq!(stand.told(client), ["closed"]);
}

/// To that leader, their sessions are at the link that is gone: it would refuse what they ask for.
#[test]
fn who_has_stayed_is_closed_when_the_same_leader_is_found_again_and_who_has_come_is_heard() {
    let (mut stand, stayed, session) = watching(false);
    stand.tell(Event::Retired);
    let came = comes(&mut stand, 0);
    assert!(stand.told(stayed).is_empty());
    stand.serve_again();
    stand.tell(Event::Pinged);
    assert!(has_heard_of(&stand, session), "its time-out begins anew");
    stand.settle();
    assert_eq!(stand.told(stayed), ["closed"]);
    assert_ne!(stand.answer(came).unwrap().session, 0);
}

/// What it had sent here before it left must not be carried out behind what it has done since.
#[test]
fn a_session_that_has_written_elsewhere_does_not_stay() {
    for leads in [true, false] {
        let (mut stand, client, session) = watching(!leads);
        let (_, other) = stand.client();
        if leads {
            stand.tell(Event::Retired);
        }
        stand.request(client, &[(3, exists("/late", false))]);
        let mut txn = stand.prepare(&submitted(&create("/y"), other), Origin::Here, Zxid(1 << 33));
        txn.header.client = session;
        stand.apply(&txn);
        if !leads {
            assert_eq!(stand.told(client), ["3 -101"], "as long as the leader is there, it knows");
            stand.tell(Event::Retired);
        }
        assert_eq!(stand.told(client), ["closed"]);
    }
}

/// A request tells a new leader at which server a session is. If that is another, nothing is read for it here.
#[test]
fn at_a_leader_a_session_that_has_stayed_and_asks_elsewhere_first_is_closed_with_the_next_thing_it_asks()
 {
    for request in [exists("/", false), Request::Ping, set("/x", 0)] {
        let (mut stand, client, session) = watching(false);
        stand.tell(Event::Retired);
        stand.state.abandon();
        stand.serve(true);
        let elsewhere = Origin::Learner(LinkId(7));
        stand.prepare(&submitted(&set("/x", 0), session), elsewhere, Zxid(1 << 33));
        assert!(stand.told(client).is_empty());
        stand.request(client, &[(3, request)]);
        assert_eq!(stand.told(client), ["closed"]);
    }
}

/// A session has come to a server, and its leader leaves a mark in the log.
fn marked(stand: &mut Stand, session: i64) {
    let id = RequestId { client: session, cxid: 0 };
    let mark = Submitted { id, op: kind::ERROR, body: Bytes::new(), identities: None };
    let txn = stand.prepare(&mark, Origin::Service, Zxid(1 << 33));
    assert_eq!(txn.header.kind, kind::ERROR);
    stand.apply(&txn);
}

/// What it had sent here must not be carried out behind what it has read there.
#[test]
fn a_session_that_has_come_to_another_server_does_not_stay() {
    for retired in [true, false] {
        let (mut stand, client, session) = watching(false);
        if retired {
            stand.tell(Event::Retired);
        }
        marked(&mut stand, session);
        if !retired {
            stand.request(client, &[(3, exists("/late", false))]);
            assert_eq!(stand.told(client), ["3 -101"], "as long as the leader is there, it knows");
            stand.tell(Event::Retired);
        }
        assert_eq!(stand.told(client), ["closed"], "{retired}");
    }
}

#[test]
fn a_session_stays_whose_mark_is_its_own() {
    let says =
        |session: i64| Event::Revalidated([&session.to_be_bytes()[..], &[1]].concat().into());
    for (marks, stays) in [(1, true), (2, false)] {
        let (mut stand, _, session) = watching(false);
        let client = stand.connect();
        stand.ask(client, session, 4000);
        (0..marks).for_each(|_| marked(&mut stand, session));
        stand.tell(says(session));
        assert_eq!(stand.answer(client).unwrap().session, session);
        stand.tell(Event::Retired);
        assert_eq!(stand.told(client).is_empty(), stays, "behind its own is another server's");
    }
}

/// Leaders of ZooKeeper leave no marks: a session may be anywhere, and no server knows.
#[test]
fn nobody_stays_who_was_served_under_a_leader_that_leaves_no_marks() {
    let mut stand = Stand::new(false);
    stand.marks = false;
    stand.tell(Event::Retired);
    stand.serve(false);
    let (client, _) = stand.client();
    stand.tell(Event::Retired);
    assert_eq!(stand.told(client), ["closed"]);
    let waits = comes(&mut stand, 0);
    assert!(stand.told(waits).is_empty(), "who comes waits all the same");
}

/// A leader hears nothing of a session that it ends, and answers nothing: its end may be lost with that leader.
#[test]
fn a_session_that_its_leader_was_about_to_end_does_not_stay_if_it_has_asked_for_something() {
    let (mut stand, client, session) = watching(true);
    stand.prepare(&submitted(&Request::CloseSession, session), Origin::Service, Zxid(1 << 40));
    stand.request(client, &[(3, set("/x", 0))]);
    assert!(stand.told(client).is_empty());
    stand.tell(Event::Retired);
    assert_eq!(stand.told(client), ["closed"]);
}
