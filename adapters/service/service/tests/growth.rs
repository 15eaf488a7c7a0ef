//! What grows with what: many sessions, watchers, nodes and elements.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::id::LinkId;
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

use crate::clients::{create, create_with, exists, get, set};
use crate::stand::{Heard, Stand};

/// How often a leader steps in so much time, with so many sessions that are silent.
fn ticks(sessions: i64, timeout_ms: i32, time: Duration) -> usize {
    let mut stand = Stand::new(true);
    for session in 1..=sessions {
        stand.open_by(LinkId(7), session, timeout_ms);
    }
    let before = stand.ticks;
    stand.wait(time);
    assert!(stand.submitted.is_empty(), "none has expired");
    stand.ticks - before
}

#[test]
fn silent_sessions_cost_a_leader_no_steps_of_their_own() {
    let time = Duration::from_secs(8);
    let of_one = ticks(1, 10_000, time);
    assert_eq!(ticks(10_000, 10_000, time), of_one);
    // Each tick it looks whether it has stood still itself.
    assert!(of_one <= 16, "{of_one} in 16 ticks");
}

#[test]
fn as_many_sessions_are_closed_as_expire() {
    let mut stand = Stand::new(true);
    for session in 1..=5_000 {
        stand.open_by(LinkId(7), session, if session % 100 == 0 { 2_000 } else { 10_000 });
    }
    stand.tell(quorate_application::clients::Event::LinkLost(LinkId(7)));
    stand.wait(Duration::from_secs(4));
    let closed: Vec<_> = stand.submitted.iter().map(|request| request.id.client).collect();
    assert_eq!(closed, (1..=50).map(|nth| nth * 100).collect::<Vec<_>>());
    assert!(stand.submitted.iter().all(|request| request.op == op::CLOSE_SESSION));
}

#[test]
fn an_event_is_encoded_once_for_all_who_hear_it() {
    let mut stand = Stand::new(true);
    let (writer, _) = stand.client();
    stand.call(writer, create("/a")).unwrap();
    let watching: Vec<_> = (0..100)
        .map(|_| {
            let (client, _) = stand.client();
            stand.call(client, get("/a", true)).unwrap();
            client
        })
        .collect();
    stand.request(writer, &[(1, set("/a", -1))]);
    stand.commit().unwrap();
    let events: Vec<_> = stand.places.iter().filter(|(to, _)| watching.contains(to)).collect();
    assert_eq!(events.len(), 100);
    assert!(events.iter().all(|(_, place)| *place == events[0].1), "one piece of memory");
}

#[test]
fn a_session_with_twenty_thousand_ephemerals_ends_in_one_transaction() {
    let mut stand = Stand::new(true);
    let (owner, session) = stand.client();
    let (other, _) = stand.client();
    stand.call(other, create("/p")).unwrap();
    for hundred in 0..200 {
        let creates: Vec<_> =
            (0..100).map(|nth| create_with(&format!("/p/{hundred}-{nth}"), 1)).collect();
        stand.call(owner, Request::Multi(creates)).unwrap();
    }
    assert_eq!(stand.tree().ephemerals(session).count(), 20_000);
    stand.request(owner, &[(1, Request::CloseSession)]);
    let zxid = stand.commit().unwrap();
    assert!(stand.submitted.is_empty());
    assert_eq!(stand.tree().ephemerals(session).count(), 0);
    assert_eq!(stand.tree().get("/p").unwrap().stat().pzxid, zxid);
    assert!(stand.call(other, exists("/p/0-0", false)).is_err());
}

#[test]
fn a_multi_may_have_ten_thousand_elements() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let make = |nth: i32| Request::Create {
        op: op::CREATE,
        path: format!("/{nth}"),
        data: Some(Bytes::from_static(b"x")),
        acl: Some(vec![Acl::world(31)]),
        flags: 0,
        ttl: None,
    };
    let multi = Request::Multi((0..10_000).map(make).collect());
    assert!(multi.frame(1).len() < 1_048_575);
    stand.request(client, &[(1, multi)]);
    stand.settle();
    let heard = stand.heard(client);
    assert!(matches!(heard[..], [Heard::Reply(1, 0, _)]), "{} replies", heard.len());
    assert_eq!(stand.tree().len(), 10_000 + 4);
}

/// A list of children that no client of ZooKeeper takes by default.
#[test]
fn a_reply_that_is_longer_than_a_frame_may_be_is_sent_and_counted() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for hundred in 0..110 {
        let name = |nth| format!("/{hundred:0>50}{nth:0>50}");
        let creates = (0..100).map(|nth| create(&name(nth))).collect();
        stand.call(client, Request::Multi(creates)).unwrap();
        stand.tell(quorate_application::clients::Event::Written { client, bytes: 1 << 20 });
    }
    stand.request(client, &[(1, Request::GetChildren { path: "/".into(), watch: false })]);
    let heard = stand.heard(client);
    let [Heard::Reply(1, 0, body)] = &heard[..] else { panic!("{} replies", heard.len()) };
    assert!(body.len() > 1 << 20);
    let probe = stand.connect();
    stand.send(probe, vec![quorate_application::clients::Frame::Word(*b"mntr")]);
    assert!(stand.text(probe).contains("zk_long_replies\t1\n"));
}
