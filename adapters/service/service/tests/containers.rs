//! Nodes that go by themselves: when a leader looks, what it finds to be due, and how fast they go.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{Event, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request as Submitted;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, Response, op, put_text};

use crate::clients::{create, delete, exists, get, set};
use crate::operations::create_as;
use crate::stand::Stand;

const SECOND: Duration = Duration::from_secs(1);

fn looking_each_second(leads: bool) -> Stand {
    Stand::with(leads, |options| {
        options.container_interval = SECOND;
        options.extended_types = true;
        options.session_timeout_max = Some(SECOND * 10_000);
    })
}

fn container(path: &str) -> Request {
    create_as(op::CREATE_CONTAINER, path, 4, None)
}

fn ttl(path: &str, ms: i64) -> Request {
    create_as(op::CREATE_TTL, path, 5, Some(ms))
}

/// A client whose session outlives the test.
fn client(stand: &mut Stand) -> quorate_application::clients::ClientId {
    let client = stand.connect();
    stand.ask(client, 0, i32::MAX);
    stand.settle();
    stand.answer(client).unwrap();
    client
}

/// Time passes and what is asked for happens.
fn wait(stand: &mut Stand, time: Duration) {
    stand.wait(time);
    stand.settle();
}

fn is_there(stand: &Stand, path: &str) -> bool {
    stand.tree().get(path).is_some()
}

#[test]
fn an_empty_container_goes_if_it_ever_had_a_child() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    for path in ["/used", "/never", "/full"] {
        stand.call(client, container(path)).unwrap();
    }
    for path in ["/used/x", "/full/x"] {
        stand.call(client, create(path)).unwrap();
    }
    stand.call(client, exists("/used", true)).unwrap();
    stand.call(client, delete("/used/x")).unwrap();
    let pzxid = stand.tree().last_zxid();
    wait(&mut stand, SECOND);
    assert!(!is_there(&stand, "/used") && is_there(&stand, "/never") && is_there(&stand, "/full"));
    assert_eq!(stand.told(client), ["deleted /used"]);
    assert_eq!(stand.tree().last_zxid().0, pzxid.0 + 1, "a transaction");
    assert_eq!(stand.tree().get("/").unwrap().stat().pzxid, stand.tree().last_zxid());
    wait(&mut stand, SECOND * 100);
    assert!(is_there(&stand, "/never") && is_there(&stand, "/full"));
}

#[test]
fn a_container_that_was_never_used_goes_where_an_operator_says_so() {
    let mut stand = Stand::with(true, |options| {
        options.container_interval = SECOND;
        options.container_unused_max = Some(SECOND * 10);
        options.session_timeout_max = Some(SECOND * 10_000);
    });
    let client = client(&mut stand);
    stand.call(client, container("/never")).unwrap();
    wait(&mut stand, SECOND * 9);
    assert!(is_there(&stand, "/never"));
    wait(&mut stand, SECOND * 3);
    assert!(!is_there(&stand, "/never"));
}

/// 2000 ms: written at 1.5 s it lives until 3.5 s at least. A child keeps it, and one that came and went does not renew it.
#[test]
fn a_ttl_node_goes_when_it_was_not_written_for_its_time_and_has_no_child() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    for path in ["/set", "/parent", "/brief"] {
        stand.call(client, ttl(path, 2000)).unwrap();
    }
    let Ok(Response::Stat(stat)) = stand.call(client, exists("/set", false)) else { panic!() };
    assert_eq!(stat.ephemeral_owner, 0);
    stand.call(client, create("/parent/x")).unwrap();
    wait(&mut stand, SECOND * 3 / 2);
    stand.call(client, set("/set", -1)).unwrap();
    stand.call(client, create("/brief/x")).unwrap();
    stand.call(client, delete("/brief/x")).unwrap();
    wait(&mut stand, SECOND * 3 / 2);
    assert!(is_there(&stand, "/set") && is_there(&stand, "/parent") && !is_there(&stand, "/brief"));
    wait(&mut stand, SECOND * 3 / 2);
    assert!(!is_there(&stand, "/set") && is_there(&stand, "/parent"));
    wait(&mut stand, SECOND * 20);
    assert!(is_there(&stand, "/parent/x"));
}

#[test]
fn only_a_leader_looks_and_for_the_first_time_an_interval_behind_its_begin() {
    let mut stand = looking_each_second(false);
    let client = client(&mut stand);
    stand.call(client, ttl("/t", 1)).unwrap();
    wait(&mut stand, SECOND * 20);
    assert!(is_there(&stand, "/t"));
    stand.tell(Event::Retired);
    stand.serve(true);
    wait(&mut stand, SECOND * 9 / 10);
    assert!(is_there(&stand, "/t"));
    wait(&mut stand, SECOND / 5);
    assert!(!is_there(&stand, "/t"));
}

/// Found to be due, and kept by a child that was asked for meanwhile.
#[test]
fn a_child_that_comes_meanwhile_keeps_its_parent() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    stand.call(client, container("/c")).unwrap();
    stand.call(client, create("/c/x")).unwrap();
    stand.call(client, delete("/c/x")).unwrap();
    stand.request(client, &[(1, create("/c/y"))]);
    stand.wait(SECOND * 2);
    assert_eq!(stand.submitted.len(), 3, "the child, and two looks");
    assert_eq!(stand.submitted[1].op, op::DELETE_CONTAINER);
    assert_eq!((stand.submitted[1].id.client, stand.submitted[1].id.cxid), (0, 0));
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok"]);
    assert!(is_there(&stand, "/c/y"));
    // As a learner would forward it for a client, it is refused.
    stand.call(client, delete("/c/y")).unwrap();
    stand.wait(SECOND * 2);
    let mut asked = stand.submitted.pop_front().unwrap();
    stand.submitted.clear();
    asked.identities = Some(Vec::new());
    stand.commit_of(&asked, Origin::Learner(LinkId(3)));
    assert!(is_there(&stand, "/c"));
}

#[test]
fn no_more_go_in_a_minute_than_an_operator_allows() {
    let mut stand = Stand::with(true, |options| {
        options.container_interval = SECOND;
        options.containers_per_minute = 60;
        options.session_timeout_max = Some(SECOND * 10_000);
    });
    let client = client(&mut stand);
    for n in 0..30 {
        stand.call(client, container(&format!("/c{n}"))).unwrap();
        stand.call(client, create(&format!("/c{n}/x"))).unwrap();
        stand.call(client, delete(&format!("/c{n}/x"))).unwrap();
    }
    let left = |stand: &Stand| stand.tree().containers().count();
    wait(&mut stand, SECOND);
    assert_eq!(left(&stand), 29);
    wait(&mut stand, SECOND * 10);
    assert_eq!(left(&stand), 19);
    wait(&mut stand, SECOND * 30);
    assert_eq!(left(&stand), 0);
}

/// Set forward by an hour, or back: what is not due by then stays.
#[test]
fn a_clock_that_was_set_forward_deletes_nothing_before_it_has_told_the_truth_for_an_interval() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    stand.call(client, ttl("/t", 600_000)).unwrap();
    wait(&mut stand, SECOND * 5);
    stand.wall_ms += 3_600_000;
    wait(&mut stand, SECOND * 3 / 2);
    assert!(is_there(&stand, "/t"), "the look behind the jump deletes nothing");
    // Set right again, it was as if nothing had been.
    stand.wall_ms -= 3_600_000;
    wait(&mut stand, SECOND * 5);
    assert!(is_there(&stand, "/t"));
    stand.wall_ms += 3_600_000;
    wait(&mut stand, SECOND * 4);
    assert!(!is_there(&stand, "/t"), "a clock that stays there is right");
}

/// Behind it the clock shows less than at the look before, and more than what was written meanwhile.
#[test]
fn a_clock_that_was_set_back_and_forward_again_between_two_looks_deletes_nothing_that_is_young() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    stand.wall_ms -= 7_200_000;
    stand.call(client, ttl("/t", 600_000)).unwrap();
    stand.wall_ms += 3_600_000;
    wait(&mut stand, SECOND * 3 / 2);
    assert!(is_there(&stand, "/t"));
    wait(&mut stand, SECOND * 2);
    assert!(!is_there(&stand, "/t"), "a clock that stays there is right");
}

#[test]
fn children_of_containers_and_ttl_nodes_are_allowed_and_sessions_do_not_take_them_along() {
    let mut stand = looking_each_second(true);
    let client = client(&mut stand);
    let (other, _) = stand.client();
    stand.call(other, container("/c")).unwrap();
    stand.call(other, ttl("/t", 1_000_000)).unwrap();
    for path in ["/c/x", "/t/x"] {
        stand.call(client, create(path)).unwrap();
    }
    stand.request(other, &[(1, Request::CloseSession)]);
    stand.settle();
    for path in ["/c/x", "/t/x"] {
        stand.call(client, get(path, false)).unwrap();
    }
}

/// A TTL node as another server's leader makes it, that has extended types.
fn made_elsewhere(zxid: i64) -> Txn {
    let mut leader = Stand::idle(2, |options| options.extended_types = true);
    leader.open_by(LinkId(3), 5, 4000);
    let (id, body) = (RequestId { client: 5, cxid: 1 }, ttl("/t", 600_000).frame(1).slice(12..));
    let request = Submitted { id, op: op::CREATE_TTL, body, identities: Some(Vec::new()) };
    leader.prepare(&request, Origin::Learner(LinkId(3)), Zxid(zxid))
}

fn halts(stand: &Stand) -> Option<&str> {
    let Some(Output::Halt(reason)) = stand.last.last() else { return None };
    Some(reason)
}

#[test]
fn a_server_without_extended_types_that_meets_a_ttl_node_stops_by_name_and_tells_nobody_of_it() {
    let txn = made_elsewhere(0x1_0000_0100);
    let mut stand = Stand::new(false);
    let client = client(&mut stand);
    stand.call(client, exists("/t", true)).unwrap_err();
    stand.apply(&txn);
    let reason = halts(&stand).expect("it stops");
    assert!(reason.contains("/t") && reason.contains("extendedTypesEnabled"), "{reason}");
    assert_eq!(stand.told(client), ["closed"]);
    // Started again, it has not begun when it stops.
    let mut again = stand.restarted();
    again.serve(false);
    assert!(halts(&again).is_some() && again.last.len() == 1, "{:?}", again.last);
    let mut knows = Stand::with(false, |options| options.extended_types = true);
    knows.apply(&txn);
    assert_eq!(halts(&knows), None);
}

/// Its history is read before it serves, and has both the node and its end.
#[test]
fn what_has_gone_before_a_server_serves_stops_nobody() {
    let mut stand = Stand::idle(1, |_| {});
    stand.apply(&made_elsewhere(0x1_0000_0100));
    assert!(is_there(&stand, "/t") && halts(&stand).is_none());
    let header = TxnHeader { client: 0, cxid: 0, time: 1, kind: op::DELETE_CONTAINER };
    let mut body = BytesMut::new();
    put_text(&mut body, Some("/t"));
    stand.apply(&Txn { zxid: Zxid(0x1_0000_0101), header, body: body.freeze() });
    stand.serve(true);
    assert_eq!(halts(&stand), None);
    assert!(!is_there(&stand, "/t"));
}

/// A newer server may have done something where this one would do nothing.
#[test]
fn a_server_that_does_not_understand_a_transaction_stops_by_name() {
    for serves in [true, false] {
        let mut stand = Stand::idle(1, |_| {});
        if serves {
            stand.serve(false);
        }
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 77 };
        stand.apply(&Txn { zxid: Zxid(0x1_0000_0100), header, body: Bytes::new() });
        let reason = halts(&stand).expect("it stops");
        assert!(reason.contains("0x100000100") && reason.contains("77"), "{reason}");
    }
}
