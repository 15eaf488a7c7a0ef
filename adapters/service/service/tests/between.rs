//! Clients that come to a server between two leaders: who waits, how long, and what comes of it.

use std::time::Duration;

use quorate_application::clients::{ClientId, Event};
use quorate_service::wire::Request;

use crate::clients::{create, exists};
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
