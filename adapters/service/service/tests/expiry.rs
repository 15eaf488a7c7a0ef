//! Who is taken for silent, and who is not: at a leader, at a learner, after pauses and restarts.

use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{Event, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request as Submitted;
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, Response, op};

use crate::clients::{create, create_with, exists, get};
use crate::stand::{Stand, TICK};

const LINK: LinkId = LinkId(4);

fn closes(stand: &Stand) -> Vec<i64> {
    let closes = stand.submitted.iter().filter(|asked| asked.op == op::CLOSE_SESSION);
    closes.map(|asked| asked.id.client).collect()
}

fn entry(session: i64, timeout_ms: i32) -> Bytes {
    [&session.to_be_bytes()[..], &timeout_ms.to_be_bytes()].concat().into()
}

#[test]
fn requests_and_pings_keep_a_session_and_what_only_proves_identities_does_not() {
    let auth = Request::Auth { kind: 0, scheme: Some("digest".into()), auth: Bytes::new() };
    for (request, keeps) in [
        (Request::Ping, true),
        (exists("/none", false), true),
        (create_with("/x", 9), true),
        (Request::Sync { path: None }, true),
        (auth, false),
        (Request::Sasl { token: Bytes::new() }, false),
    ] {
        let mut stand = Stand::new(true);
        let (client, session) = stand.client();
        for _ in 0..10 {
            stand.wait(TICK * 2);
            stand.request(client, &[(1, request.clone())]);
            stand.settle();
        }
        assert_eq!(stand.tree().session(session).is_some(), keeps, "{request:?}");
        // The same at a learner, which tells the leader.
        let mut learner = Stand::new(false);
        let (client, session) = learner.client();
        learner.tell(Event::Pinged);
        assert_eq!(learner.asked.pop(), Some(Output::Touch(entry(session, 4000))), "it was opened");
        learner.request(client, &[(1, request.clone())]);
        learner.tell(Event::Pinged);
        let heard = if keeps { entry(session, 4000) } else { Bytes::new() };
        assert_eq!(learner.asked.pop(), Some(Output::Touch(heard)), "{request:?}");
    }
}

/// Wherever its client is: the leader hears at once that the table has it.
#[test]
fn a_learner_tells_of_every_session_whose_opening_it_has_applied() {
    let mut learner = Stand::new(false);
    learner.open_by(LINK, 0x0200_0000_0000_0001, 2000);
    learner.tell(Event::Pinged);
    let list = entry(0x0200_0000_0000_0001, 2000);
    assert_eq!(learner.asked.pop(), Some(Output::Touch(list)));
}

#[test]
fn writes_that_a_learner_forwards_are_no_sign_of_their_sessions_by_themselves() {
    let mut stand = Stand::new(true);
    let session = 0x0200_0000_0000_0001;
    stand.open_by(LINK, session, 2000);
    for n in 0..30 {
        stand.wait(TICK / 5);
        let body = create(&format!("/n{n}")).frame(1).slice(12..);
        let id = RequestId { client: session, cxid: 1 };
        let identities = Some(Vec::new());
        let request = Submitted { id, op: op::CREATE, body, identities };
        if closes(&stand).is_empty() {
            stand.commit_of(&request, Origin::Learner(LINK));
            let asked = stand.now;
            stand.tell(Event::Touched { from: LINK, asked, sessions: Bytes::new() });
        }
    }
    assert_eq!(closes(&stand), [session]);
}

#[test]
fn a_wall_clock_that_jumps_changes_no_session() {
    for jump in [3_600_000, -3_600_000] {
        let mut stand = Stand::new(true);
        let (client, session) = stand.client();
        stand.wall_ms += jump;
        stand.wait(Duration::from_secs(3));
        assert!(stand.submitted.is_empty());
        stand.request(client, &[(-2, Request::Ping)]);
        stand.wall_ms += jump;
        stand.wait(Duration::from_secs(4));
        assert!(stand.submitted.is_empty());
        stand.wait(TICK * 2);
        assert_eq!(closes(&stand), [session]);
    }
}

/// Its clients have pinged all the time; that lies unread when it wakes.
#[test]
fn a_leader_that_stood_still_expires_nobody_who_was_heard_in_time() {
    let mut stand = Stand::new(true);
    let (heard, lives) = stand.client();
    let (_, silent) = stand.client();
    let elsewhere = 0x0200_0000_0000_0001;
    stand.open_by(LINK, elsewhere, 4000);
    stand.now = stand.now + Duration::from_secs(5);
    // The step that was due comes first.
    stand.tell(Event::Tick);
    assert!(closes(&stand).is_empty());
    stand.request(heard, &[(-2, Request::Ping)]);
    stand.tell(Event::Touched { from: LINK, asked: Instant(5), sessions: entry(elsewhere, 4000) });
    stand.wait(TICK * 3);
    assert_eq!(closes(&stand), [silent]);
    assert!(stand.tree().session(lives).is_some());
}

/// The leader's ping is the first that it finds when it wakes.
#[test]
fn a_learner_that_stood_still_reads_its_clients_before_it_says_whom_it_has_heard() {
    let mut stand = Stand::new(false);
    let (client, session) = stand.client();
    stand.tell(Event::Pinged);
    assert!(stand.asked.pop().is_some());
    stand.now = stand.now + Duration::from_secs(3);
    stand.tell(Event::Pinged);
    stand.tell(Event::Pinged);
    assert!(stand.asked.is_empty());
    stand.request(client, &[(-2, Request::Ping)]);
    stand.wait(TICK / 2);
    let answers = std::mem::take(&mut stand.asked);
    assert_eq!(answers, [Output::Touch(entry(session, 4000)), Output::Touch(Bytes::new())]);
    // From then on it answers at once.
    stand.tell(Event::Pinged);
    assert_eq!(stand.asked, [Output::Touch(Bytes::new())]);
}

/// 5 s of silence of a server whose sessions have 2 s: they are held for 2 s more, and no longer.
#[test]
fn a_session_whose_server_does_not_answer_is_held_for_its_time_out_once_more() {
    let mut stand = Stand::new(true);
    let session = 0x0200_0000_0000_0001;
    stand.open_by(LINK, session, 2000);
    stand.wait(Duration::from_millis(4400));
    assert!(closes(&stand).is_empty());
    stand.wait(TICK);
    assert_eq!(closes(&stand), [session]);
}

#[test]
fn a_client_that_is_not_read_counts_as_heard_while_it_reads() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    let data = Some(Bytes::from(vec![7; 1 << 20]));
    let Request::Create { op, path, acl, flags, ttl, .. } = create("/big") else { panic!() };
    stand.call(client, Request::Create { op, path, data, acl, flags, ttl }).unwrap();
    stand.request(client, &[(1, get("/big", false)), (2, get("/big", false))]);
    assert!(stand.is_paused(client));
    for _ in 0..10 {
        stand.wait(TICK * 4);
        stand.tell(Event::Written { client, bytes: 1 });
    }
    assert!(closes(&stand).is_empty());
    stand.wait(Duration::from_secs(5));
    assert_eq!(closes(&stand), [session], "not without a byte");
}

/// Left by a snapshot that a Java server wrote while sessions were closed. Containers and TTL nodes own nothing.
#[test]
fn ephemeral_nodes_without_a_session_go_by_transactions_when_a_leader_begins() {
    let dead = 0x0300_0000_0000_0007;
    let marked = [i64::MIN, 0xff00_0000_0000_0010_u64 as i64];
    let mut stand = Stand::idle(1, |options| options.extended_types = true);
    for (n, owner) in [dead, dead, marked[0], marked[1]].into_iter().enumerate() {
        let header = TxnHeader { client: owner, cxid: 1, time: 5, kind: op::CREATE };
        let mut body = Vec::new();
        for part in [&format!("/e{n}")[..], "x"] {
            body.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
            body.extend(part.bytes());
        }
        body.extend((-1_i32).to_be_bytes());
        body.push(1);
        body.extend((-1_i32).to_be_bytes());
        let zxid = Zxid(1 + i64::try_from(n).unwrap());
        stand.apply(&Txn { zxid, header, body: body.into() });
    }
    stand.serve(false);
    assert!(stand.submitted.is_empty(), "only a leader");
    stand.tell(Event::Retired);
    stand.serve(true);
    assert_eq!(closes(&stand), [dead]);
    stand.settle();
    assert!(stand.tree().get("/e0").is_none() && stand.tree().get("/e1").is_none());
    assert!(stand.tree().get("/e2").is_some() && stand.tree().get("/e3").is_some());
}

#[test]
fn after_a_restart_of_all_sessions_and_their_nodes_live_on_or_expire_one_time_out_later() {
    let mut stand = Stand::new(true);
    let (one, comes) = stand.client();
    let (two, stays_away) = stand.client();
    stand.call(one, create_with("/one", 1)).unwrap();
    stand.call(two, create_with("/two", 1)).unwrap();
    stand.wait(Duration::from_secs(2));
    let mut again = stand.restarted();
    again.wait(Duration::from_secs(60));
    again.serve(true);
    let client = again.connect();
    again.ask(client, comes, 10_000);
    again.settle();
    assert_eq!(again.answer(client).unwrap().session, comes);
    let ephemerals = again.call(client, Request::GetEphemerals { prefix: None });
    assert_eq!(ephemerals, Ok(Response::Children(vec!["/one".to_owned()])));
    again.wait(Duration::from_secs(4));
    assert!(again.submitted.is_empty());
    again.wait(TICK * 2);
    assert_eq!(closes(&again), [stays_away]);
    again.settle();
    assert!(again.tree().get("/one").is_some() && again.tree().get("/two").is_none());
}

/// Once it is asked for, nothing is done for the session any more.
#[test]
fn what_is_asked_for_behind_the_end_of_a_session_is_not_done() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let (client, session) = stand.client();
        stand.request(client, &[(1, create_with("/e", 1)), (2, Request::CloseSession)]);
        stand.request(client, &[(3, create_with("/late", 1)), (4, exists("/", false))]);
        stand.settle();
        assert_eq!(stand.told(client), ["1 ok", "2 ok", "closed"]);
        assert!(stand.tree().get("/late").is_none() && stand.tree().get("/e").is_none());
        assert!(stand.tree().session(session).is_none());
    }
}
