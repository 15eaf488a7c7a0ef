//! The order of what clients are told, and which transaction is whose.

use bytes::{BufMut, BytesMut};
use quorate_application::clients::{Event, Output};
use quorate_core::id::Origin;
use quorate_core::message::Request as Submitted;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{MultiResult, Request, Response, op};

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::stand::{Heard, Part, Stand};

#[test]
fn a_read_waits_for_the_writes_of_its_own_session_and_for_nothing_else() {
    let mut stand = Stand::new(false);
    let (one, _) = stand.client();
    let (two, _) = stand.client();
    stand.request(one, &[(1, create("/x")), (2, exists("/x", false))]);
    stand.request(two, &[(1, exists("/x", false)), (2, Request::Sync { path: None })]);
    stand.request(two, &[(3, exists("/x", false))]);
    assert_eq!(stand.told(one), [""; 0]);
    assert_eq!(stand.told(two), ["1 -101"]);
    stand.commit();
    assert_eq!(stand.told(one), ["1 ok", "2 ok"]);
    assert_eq!(stand.told(two), [""; 0], "its own sync");
    stand.settle();
    assert_eq!(stand.told(two), ["2 ok", "3 ok"]);
}

/// Of a write its own, of everything else the last that is applied here; never back, and never ahead.
#[test]
fn the_zxid_of_a_reply_is_its_own_or_the_last_that_is_applied() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (one, _) = stand.client();
        let (two, _) = stand.client();
        stand.request(one, &[(1, create("/x")), (2, get("/x", false)), (3, create("/x"))]);
        stand.request(two, &[(1, create("/y"))]);
        stand.request(one, &[(4, set("/x", 0)), (-2, Request::Ping), (5, create_with("/z", 9))]);
        let mut zxids = Vec::new();
        while let Some(zxid) = stand.commit() {
            zxids.push(zxid.0);
            for client in [one, two] {
                for (_, zxid, _) in stand.headers(client) {
                    assert!(zxid <= stand.tree().last_zxid().0);
                }
            }
        }
        assert_eq!(zxids.len(), 4);
        let mut stand = Stand::part(part);
        let (one, _) = stand.client();
        let (two, _) = stand.client();
        let z = stand.tree().last_zxid().0;
        stand.request(one, &[(1, create("/x")), (2, get("/x", false)), (3, create("/x"))]);
        stand.request(two, &[(1, create("/y"))]);
        stand.request(one, &[(4, set("/x", 0)), (-2, Request::Ping), (5, create_with("/z", 9))]);
        stand.settle();
        let of_one = stand.headers(one);
        let expected = [
            (1, z + 1, 0),
            (2, z + 1, 0),
            (3, z + 2, -110),
            (4, z + 4, 0),
            (-2, z + 4, 0),
            (5, z + 4, -8),
        ];
        assert_eq!(of_one, expected);
        assert_eq!(stand.headers(two), [(1, z + 3, 0)]);
    }
}

/// Two requests with one number in flight: each is answered with what became of it.
#[test]
fn requests_with_the_same_number_are_answered_in_their_order() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.request(
        client,
        &[(7, create("/x")), (7, create("/x")), (7, delete("/x")), (7, create("/x"))],
    );
    stand.settle();
    let told: Vec<_> = stand.headers(client).into_iter().map(|(xid, _, err)| (xid, err)).collect();
    assert_eq!(told, [(7, 0), (7, -110), (7, 0), (7, 0)]);
}

/// What it has asked for is done, and what others ask for here is still known.
#[test]
fn a_write_whose_connection_has_gone_is_applied_and_keeps_nobody_waiting() {
    let mut stand = Stand::new(false);
    let (gone, session) = stand.client();
    let (stays, _) = stand.client();
    stand.request(gone, &[(1, create("/a")), (2, create_with("/e", 1))]);
    stand.request(stays, &[(1, create("/b"))]);
    stand.tell(Event::Disconnected(gone));
    stand.settle();
    assert_eq!(stand.told(stays), ["1 ok"]);
    assert!(stand.tree().get("/a").is_some());
    assert_eq!(stand.tree().get("/e").unwrap().stat().ephemeral_owner, session);
    stand.call(stays, create("/c")).unwrap();
}

/// The pairing is by session and number; the same of a session elsewhere is somebody else's.
#[test]
fn what_was_submitted_before_a_change_of_leader_answers_nothing_behind_it() {
    let mut stand = Stand::new(false);
    let (client, session) = stand.client();
    stand.request(client, &[(1, create("/x"))]);
    let old = stand.submitted.pop_front().unwrap();
    stand.tell(Event::Retired);
    stand.serve(false);
    let again = stand.connect();
    stand.ask(again, session, 4000);
    stand.tell(Event::Revalidated([&session.to_be_bytes()[..], &[1]].concat().into()));
    stand.answer(again).unwrap();
    stand.request(again, &[(1, create("/y"))]);
    // The old leader's transaction was committed after all: it comes first, with the same session and number.
    let new = stand.submitted.pop_front().unwrap();
    let other = Submitted { id: quorate_core::txn::RequestId { cxid: 2, ..old.id }, ..old };
    stand.commit_of(&other, Origin::Service);
    assert_eq!(stand.told(again), [""; 0]);
    stand.commit_of(&new, Origin::Service);
    assert_eq!(stand.told(again), ["1 ok"]);
}

#[test]
fn a_multi_is_seen_by_others_as_a_whole_or_not_at_all() {
    let mut stand = Stand::new(false);
    let (writer, _) = stand.client();
    let (reader, _) = stand.client();
    stand.request(writer, &[(1, Request::Multi(vec![create("/a"), create("/b")]))]);
    let both = || Request::MultiRead(vec![get("/a", false), get("/b", false)]);
    let seen = |stand: &mut Stand| {
        let Ok(Response::Multi(results)) = stand.call(reader, both()) else { panic!() };
        results.iter().map(|result| matches!(result, MultiResult::Data { .. })).collect::<Vec<_>>()
    };
    let submitted = std::mem::take(&mut stand.submitted);
    assert_eq!(seen(&mut stand), [false, false]);
    stand.submitted = submitted;
    stand.commit();
    assert_eq!(seen(&mut stand), [true, true]);
}

/// The older connection is told of its end before the newer one has the session.
#[test]
fn of_one_session_the_older_connection_is_closed_before_the_newer_is_answered() {
    let mut stand = Stand::new(true);
    let (first, session) = stand.client();
    let second = stand.connect();
    stand.ask(second, session, 4000);
    let closed = stand.last.first();
    assert!(matches!(closed, Some(Output::Close { client, .. }) if *client == first), "{closed:?}");
    assert!(stand.told(second).is_empty());
    stand.settle();
    assert_eq!(stand.answer(second).unwrap().session, session);
}

/// An event, the replies before it and behind it, and the last word.
#[test]
fn events_replies_and_the_end_of_a_connection_do_not_overtake_each_other() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let (other, session) = stand.client();
    stand.call(other, create_with("/e", 1)).unwrap();
    stand.request(client, &[(1, get("/e", true)), (2, create("/a")), (3, get("/none", false))]);
    stand.request(other, &[(1, Request::CloseSession)]);
    stand.request(
        client,
        &[(4, exists("/e", false)), (5, create("/b")), (6, Request::CloseSession)],
    );
    stand.settle();
    let told = stand.told(client);
    // The fourth does not wait for the other session: it is answered behind the third, before the node has gone.
    assert_eq!(told, ["1 ok", "2 ok", "3 -101", "4 ok", "deleted /e", "5 ok", "6 ok", "closed"]);
    assert_eq!(stand.told(other), ["1 ok", "closed"]);
    assert!(stand.tree().session(session).is_none());
}

/// The text that the members have agreed on, and who watches it hears first.
#[test]
fn a_reconfiguration_is_told_to_those_that_watch_it_before_it_is_answered() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    let config = "/zookeeper/config";
    stand.state_configuration("server.1=a:1:2:participant\nversion=0", 0);
    let Ok(Response::Data { data: Some(text), stat }) = stand.call(client, get(config, true))
    else {
        panic!()
    };
    assert!(text.ends_with(b"version=0") && stat.version == -1);
    let joining = Some("server.2=b:1:2:participant".to_owned());
    let request = Request::Reconfig { joining, leaving: None, members: None, version: -1 };
    stand.request(client, &[(1, request)]);
    assert_eq!(stand.submitted.pop_front().unwrap().op, op::RECONFIG);
    let text = "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=100000003";
    let mut body = BytesMut::new();
    for part in [config, text] {
        body.put_u32(u32::try_from(part.len()).unwrap());
        body.put_slice(part.as_bytes());
    }
    body.put_i32(-1);
    let header = TxnHeader { client: session, cxid: 1, time: 9, kind: op::RECONFIG };
    stand.apply(&Txn { zxid: Zxid(0x1_0000_0003), header, body: body.freeze() });
    let heard = stand.heard(client);
    assert_eq!(heard[0], Heard::Event(3, config.to_owned()));
    let Heard::Reply(1, 0, body) = &heard[1] else { panic!("{heard:?}") };
    let answer = Response::decode(op::RECONFIG, body).unwrap().unwrap();
    let Response::Data { data: Some(data), stat } = answer else { panic!("{answer:?}") };
    assert_eq!((&data[..], stat.mzxid.0), (text.as_bytes(), 0x1_0000_0003));
    assert_eq!(stand.call(client, set(config, -1)), Err(-102));
}
