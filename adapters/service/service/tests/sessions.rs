//! Sessions: how they begin, move, expire and end.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_application::clients::{Event, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request as Submitted;
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;
use quorate_service::wire::{Request, op};

use crate::clients::{create, create_with, exists};
use crate::stand::{Stand, TICK};

#[test]
fn a_time_out_is_what_the_server_allows() {
    let mut stand = Stand::new(true);
    for (asked, agreed) in
        [(-5, 1000), (0, 1000), (1, 1000), (5000, 5000), (10_000, 10_000), (600_000, 10_000)]
    {
        let client = stand.connect();
        stand.ask(client, 0, asked);
        assert!(stand.answer(client).is_none(), "not before it is applied");
        stand.settle();
        assert_eq!(stand.answer(client).unwrap().timeout_ms, agreed);
    }
}

#[test]
fn a_session_comes_back_over_another_connection_and_the_older_one_is_closed() {
    let mut stand = Stand::new(true);
    let (first, session) = stand.client();
    let second = stand.connect();
    stand.ask(second, session, 2000);
    stand.settle();
    let answer = stand.answer(second).unwrap();
    assert_eq!((answer.session, answer.timeout_ms), (session, 2000));
    assert_eq!(stand.told(first), ["closed"]);
    stand.call(second, create("/x")).unwrap();
    // The end of the older one is none of the session's.
    stand.tell(Event::Disconnected(first));
    stand.call(second, exists("/x", false)).unwrap();
}

#[test]
fn a_session_that_is_none_or_a_wrong_password_is_refused() {
    let mut stand = Stand::new(true);
    let client = stand.connect();
    stand.ask(client, 0x1_0000, 4000);
    let refused = stand.answer(client).unwrap();
    assert_eq!((refused.session, refused.timeout_ms, refused.password), (0, 0, [0; 16]));
    assert_eq!(stand.told(client), ["closed"]);
}

#[test]
fn a_learner_asks_the_leader_whether_a_session_lives() {
    for lives in [true, false] {
        let mut stand = Stand::new(false);
        let client = stand.connect();
        stand.ask(client, 0x2_0000, 4000);
        assert!(stand.answer(client).is_none());
        let mut body = BytesMut::new();
        body.put_i64(0x2_0000);
        body.put_i32(4000);
        assert_eq!(stand.asked, [Output::Revalidate(body.freeze())]);
        let mut answer = BytesMut::new();
        answer.put_i64(0x2_0000);
        answer.put_u8(u8::from(lives));
        stand.tell(Event::Revalidated(answer.freeze()));
        assert_eq!(stand.answer(client).unwrap().session != 0, lives);
    }
}

#[test]
fn closing_is_answered_before_the_connection_ends_and_takes_the_ephemerals_along() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    stand.call(client, create_with("/e", 1)).unwrap();
    stand.request(client, &[(1, Request::CloseSession), (2, exists("/e", false))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "closed"]);
    assert!(stand.tree().get("/e").is_none() && stand.tree().session(session).is_none());
}

#[test]
fn a_silent_session_expires_and_one_that_pings_does_not() {
    let mut stand = Stand::new(true);
    let (silent, gone) = stand.client();
    let (alive, session) = stand.client();
    stand.call(silent, create_with("/e", 1)).unwrap();
    for _ in 0..12 {
        stand.wait(TICK);
        stand.request(alive, &[(-2, Request::Ping)]);
        stand.settle();
    }
    assert_eq!(stand.told(silent), ["closed"]);
    assert!(stand.tree().session(gone).is_none() && stand.tree().get("/e").is_none());
    assert!(stand.tree().session(session).is_some());
    assert!(stand.told(alive).iter().all(|told| told == "-2 ok"));
}

/// `ZooKeeperServer.submitRequestNow` touches the session before it looks at the operation.
#[test]
fn a_request_of_an_unknown_operation_is_heard_before_its_connection_ends() {
    let mut learner = Stand::new(false);
    let (client, session) = learner.client();
    learner.tell(Event::Pinged);
    learner.asked.clear();
    learner.raw(client, 7, op::CHECK, &[]);
    assert_eq!(learner.told(client).last().unwrap(), "closed");
    learner.tell(Event::Pinged);
    let heard = [&session.to_be_bytes()[..], &4000_i32.to_be_bytes()].concat();
    assert_eq!(learner.asked.pop(), Some(Output::Touch(heard.into())));
}

#[test]
fn a_learner_reports_whom_it_has_heard_and_the_leader_keeps_them() {
    let mut learner = Stand::new(false);
    let (client, session) = learner.client();
    learner.request(client, &[(-2, Request::Ping)]);
    learner.tell(Event::Pinged);
    let Some(Output::Touch(sessions)) = learner.asked.pop() else { panic!() };
    assert_eq!(sessions, [&session.to_be_bytes()[..], &4000_i32.to_be_bytes()].concat());
    learner.tell(Event::Pinged);
    assert_eq!(learner.asked.pop(), Some(Output::Touch(Bytes::new())));

    let mut leader = Stand::new(true);
    let link = LinkId(9);
    let opened = quorate_core::message::Request {
        id: RequestId { client: session, cxid: 0 },
        op: op::CREATE_SESSION,
        body: Bytes::copy_from_slice(&4000_i32.to_be_bytes()),
        identities: None,
    };
    leader.commit_of(&opened, Origin::Learner(link));
    for _ in 0..20 {
        leader.wait(TICK);
        let asked = leader.now;
        leader.tell(Event::Touched { from: link, asked, sessions: sessions.clone() });
    }
    assert!(leader.submitted.is_empty());
    // Silent from now on, at a server that answers.
    let mut expired = Duration::ZERO;
    while leader.submitted.is_empty() {
        leader.wait(TICK);
        expired += TICK;
        let asked = leader.now;
        leader.tell(Event::Touched { from: link, asked, sessions: Bytes::new() });
        assert!(expired < TICK * 20);
    }
    assert!(expired > Duration::from_secs(4));
}

#[test]
fn a_session_that_has_moved_is_the_other_servers() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    stand.call(client, create("/x")).unwrap();
    let mut body = BytesMut::new();
    body.put_i64(session);
    body.put_i32(4000);
    let from = LinkId(3);
    stand.tell(Event::Revalidate { from, body: body.freeze() });
    assert_eq!(stand.told(client), ["closed"]);
    assert_eq!(stand.asked, [], "its mark is not committed");
    stand.settle();
    let answer = [&session.to_be_bytes()[..], &[1]].concat().into();
    assert_eq!(stand.asked, [Output::Revalidated { to: from, body: answer }]);
}

/// Each when its own is, in their order.
#[test]
fn who_comes_with_a_session_is_told_when_its_mark_is_applied_and_not_before() {
    let mut stand = Stand::new(true);
    let (_, session) = stand.client();
    let asks = |stand: &mut Stand, link: u64| {
        let body = [&session.to_be_bytes()[..], &4000_i32.to_be_bytes()].concat().into();
        stand.tell(Event::Revalidate { from: LinkId(link), body });
    };
    let told = |link: u64, lives: u8| Output::Revalidated {
        to: LinkId(link),
        body: [&session.to_be_bytes()[..], &[lives]].concat().into(),
    };
    asks(&mut stand, 3);
    asks(&mut stand, 4);
    asks(&mut stand, 5);
    assert_eq!((stand.submitted.len(), stand.asked.len()), (3, 0));
    // What the session asked for where it was, and is refused, is no mark.
    let refused = Request::Delete { path: "/not-there".into(), version: -1 };
    let mut body = BytesMut::new();
    refused.encode(&mut body);
    let id = RequestId { client: session, cxid: 7 };
    let body = body.freeze();
    let refused = Submitted { id, op: op::DELETE, body, identities: Some(Vec::new()) };
    stand.commit_of(&refused, Origin::Learner(LinkId(5)));
    assert_eq!(stand.asked, []);
    let all = [told(3, 1), told(4, 1), told(5, 1)];
    for said in 1..=3 {
        stand.commit();
        assert_eq!(stand.asked, all[..said]);
    }
    // One that ends meanwhile.
    asks(&mut stand, 4);
    let client = stand.connect();
    stand.ask(client, session, 4000);
    let close = RequestId { client: session, cxid: 9 };
    let close =
        Submitted { id: close, op: op::CLOSE_SESSION, body: Bytes::new(), identities: None };
    stand.commit_of(&close, Origin::Here);
    stand.settle();
    assert_eq!(stand.asked.last(), Some(&told(4, 0)));
    assert_eq!(stand.told(client), ["closed"]);
    asks(&mut stand, 3);
    assert_eq!(
        stand.asked.last(),
        Some(&told(3, 0)),
        "of one that is not there nothing is left in the log"
    );
    assert!(stand.submitted.is_empty());
}

/// The mark of the older one says nothing of what is under way behind it.
#[test]
fn a_mark_that_was_asked_for_a_client_that_has_gone_is_no_answer_for_the_next() {
    let mut stand = Stand::new(true);
    let (_, session) = stand.client();
    let gone = stand.connect();
    stand.ask(gone, session, 4000);
    stand.tell(Event::Disconnected(gone));
    let next = stand.connect();
    stand.ask(next, session, 4000);
    assert_eq!(stand.submitted.len(), 2);
    stand.commit();
    assert_eq!(stand.told(next), Vec::<String>::new());
    stand.commit();
    assert_eq!(stand.answer(next).unwrap().session, session);
}

#[test]
fn a_session_that_comes_to_a_learner_has_the_time_out_that_is_asked_for_there() {
    let mut stand = Stand::new(true);
    let (_, session) = stand.client();
    let body = [&session.to_be_bytes()[..], &8000_i32.to_be_bytes()].concat().into();
    stand.tell(Event::Revalidate { from: LinkId(3), body });
    stand.settle();
    stand.wait(Duration::from_secs(7));
    assert!(stand.submitted.is_empty(), "4 s were asked for where it was");
}

/// Without a quorum its mark is not committed: it is there all the same, and waits.
#[test]
fn a_session_whose_client_waits_for_its_mark_does_not_expire() {
    let mut stand = Stand::new(true);
    let (_, session) = stand.client();
    let client = stand.connect();
    stand.ask(client, session, 4000);
    stand.wait(Duration::from_secs(20));
    assert_eq!(stand.submitted.len(), 1, "the mark alone");
    stand.settle();
    assert_eq!(stand.answer(client).unwrap().session, session);
    stand.wait(Duration::from_secs(4));
    assert!(stand.submitted.is_empty(), "from then on it has its time");
    stand.wait(TICK * 2);
    assert_eq!(stand.submitted.len(), 1);
}

#[test]
fn where_no_marks_are_left_a_leader_answers_at_once() {
    let mut stand = Stand::new(true);
    let (_, session) = stand.client();
    stand.tell(Event::Retired);
    stand.marks = false;
    stand.serve(true);
    let client = stand.connect();
    stand.ask(client, session, 4000);
    assert_eq!(stand.answer(client).unwrap().session, session);
    assert!(stand.submitted.is_empty());
}

#[test]
fn a_new_leader_gives_every_session_its_time_from_when_it_serves() {
    let mut stand = Stand::new(false);
    stand.client();
    stand.tell(Event::Retired);
    stand.wait(Duration::from_secs(60));
    stand.serve(true);
    stand.wait(Duration::from_secs(4));
    assert!(stand.submitted.is_empty());
    stand.wait(TICK * 2);
    assert_eq!(stand.submitted.len(), 1);
    assert!(stand.now > Instant::ORIGIN);
}

#[test]
fn ids_are_given_out_once() {
    let mut stand = Stand::new(true);
    let sessions: Vec<_> = (0..5).map(|_| stand.client().1).collect();
    for pair in sessions.windows(2) {
        assert_eq!(pair[1], pair[0] + 1);
    }
    assert_eq!((sessions[0] as u64) >> 56, 1);
}

/// A learner that ends before its first answer to a ping has told nothing of a session that was opened by it.
#[test]
fn a_session_that_a_learner_has_opened_has_its_full_time_out_when_that_is_lost() {
    let (link, session) = (LinkId(4), 0x2_0000);
    let expired = |stand: &Stand| stand.submitted.iter().any(|asked| asked.op == op::CLOSE_SESSION);
    let mut stand = Stand::new(true);
    stand.open_by(link, session, 2000);
    stand.wait(Duration::from_millis(1500));
    stand.tell(Event::LinkLost(link));
    stand.wait(Duration::from_millis(1900));
    assert!(!expired(&stand), "2000 ms from 1500 on");
    stand.wait(Duration::from_millis(700));
    assert!(expired(&stand));
}

/// Another look has to confirm it: by then it may have been set back.
#[test]
fn a_wall_clock_that_is_set_forward_removes_nothing_at_the_next_look() {
    let interval = 4 * TICK;
    let mut stand = Stand::with(true, |options| {
        (options.extended_types, options.container_interval) = (true, interval);
    });
    let (client, _) = stand.client();
    let Request::Create { path, data, acl, .. } = create("/t") else { panic!() };
    let (op, ttl) = (op::CREATE_TTL, Some(60_000));
    stand.call(client, Request::Create { op, path, data, acl, flags: 5, ttl }).unwrap();
    stand.wait(interval);
    for set_back in [true, false] {
        stand.wall_ms += 3_600_000;
        stand.request(client, &[(-2, Request::Ping)]);
        stand.wait(interval);
        assert!(stand.submitted.is_empty(), "it was set just now");
        if set_back {
            stand.wall_ms -= 3_600_000;
        }
        stand.request(client, &[(-2, Request::Ping)]);
        stand.wait(interval);
        assert_eq!(stand.submitted.is_empty(), set_back);
    }
}
