//! How a connection begins: which session it gets, and who is turned away how.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{Clients as _, Event, Frame, Framing as _};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, Response};

use crate::clients::{create, create_with, get, set};
use crate::stand::{Part, Stand};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// As clients write it: with the last byte, and without it as clients before 3.4 do.
#[test]
fn a_client_is_answered_with_the_layout_that_it_has_used() {
    let asked = "00000000 0000000000000000 00001388 0000000000000000 00000010 00000000000000000000000000000000";
    for (byte, length) in [("00", 37), ("", 36)] {
        let mut stand = Stand::new(false);
        let client = stand.connect();
        let frame = hex(&format!("{asked}{byte}"));
        let mut bytes = BytesMut::from(&u32::try_from(frame.len()).unwrap().to_be_bytes()[..]);
        bytes.extend_from_slice(&frame);
        let frame = stand.service.framing().take(&mut bytes).unwrap();
        stand.send(client, vec![frame]);
        stand.settle();
        let (session, _) = stand.tree().sessions().next().unwrap();
        let password: String = quorate_service::wire::password(session)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let answer = stand.frame(client).unwrap();
        let expected = format!("00000000 00001388 {session:016x} 00000010 {password} {byte}");
        assert_eq!(answer.len(), length);
        assert_eq!(answer, hex(&expected));
    }
}

#[test]
fn a_wrong_password_is_refused_and_the_session_and_its_connection_live() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (holder, session) = stand.client();
        for password in [&b""[..], b"guess", &[0; 16]] {
            for read_only in [Some(false), Some(true), None] {
                let thief = stand.connect();
                stand.ask_with(thief, session, |request| {
                    request.password = Bytes::from_static(password);
                    request.read_only = read_only;
                });
                let refused = stand.answer(thief).unwrap();
                assert_eq!((refused.session, refused.timeout_ms), (0, 0));
                assert_eq!(
                    (refused.password, refused.read_only),
                    ([0; 16], read_only.map(|_| false))
                );
                assert_eq!(stand.told(thief), ["closed"]);
            }
        }
        stand.call(holder, create("/x")).unwrap();
        assert!(stand.asked.is_empty(), "the leader is not asked");
    }
}

/// Single system image: also for a new session, and ahead of every other test.
#[test]
fn a_client_that_has_seen_more_than_this_server_is_closed_without_a_byte_until_it_has_caught_up() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    let last = stand.tree().last_zxid();
    for session in [0, session, 0x99] {
        for ahead in [1, 1 << 32] {
            let early = stand.connect();
            stand.ask_with(early, session, |request| {
                request.last_zxid = Zxid(last.0 + ahead);
                request.password = Bytes::from_static(b"wrong");
            });
            assert!(stand.is_closed_without_a_byte(early), "{session}");
        }
    }
    assert!(stand.submitted.is_empty());
    let same = stand.connect();
    stand.ask_with(same, 0, |request| request.last_zxid = last);
    stand.settle();
    assert!(stand.answer(same).unwrap().session != 0, "equal is not more");
    // The session of the one that was turned away lives, and it is served when this server has what it has seen.
    stand.call(client, set("/", -1)).unwrap();
    let next = stand.tree().last_zxid();
    let caught_up = stand.connect();
    stand.ask_with(caught_up, session, |request| request.last_zxid = next);
    stand.settle();
    assert_eq!(stand.answer(caught_up).unwrap().session, session);
    let mntr = stand.connect();
    stand.send(mntr, vec![Frame::Word(*b"mntr")]);
    assert!(stand.text(mntr).contains("zk_clients_ahead\t6\n"), "and it can be seen");
}

#[test]
fn a_request_that_is_sent_first_makes_no_session() {
    for request in [get("/", false), Request::Ping, Request::CloseSession, create("/x")] {
        let mut stand = Stand::new(true);
        let client = stand.connect();
        stand.request(client, &[(1, request.clone()), (2, create("/y"))]);
        stand.settle();
        assert_eq!(stand.heard(client).len(), 1, "{request:?}: closed, and nothing else");
        assert_eq!(stand.tree().sessions().count(), 0);
        assert_eq!(stand.tree().len(), 4);
    }
}

#[test]
fn what_is_sent_behind_the_first_frame_waits_for_the_session_and_keeps_its_order() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let client = stand.connect();
        stand.ask(client, 0, 4000);
        let auth = Request::Auth { kind: 0, scheme: Some("digest".into()), auth: Bytes::new() };
        let requests = [(-4, auth), (1, create("/x")), (2, get("/x", false)), (-2, Request::Ping)];
        stand.request(client, &requests);
        assert_eq!(stand.submitted.len(), 1, "the session's");
        assert!(stand.answer(client).is_none());
        stand.commit();
        assert!(stand.answer(client).unwrap().session != 0);
        stand.settle();
        assert_eq!(stand.told(client), ["-4 ok", "1 ok", "2 ok", "-2 ok"]);
    }
}

#[test]
fn what_is_sent_behind_a_first_frame_that_is_refused_is_not_carried_out() {
    let mut stand = Stand::new(true);
    let client = stand.connect();
    stand.ask(client, 0x99, 4000);
    stand.request(client, &[(1, create("/x"))]);
    assert_eq!(stand.answer(client).unwrap().session, 0);
    assert_eq!(stand.told(client), ["closed"]);
    assert!(stand.submitted.is_empty());
}

#[test]
fn a_client_that_goes_before_its_session_is_opened_leaves_one_that_expires() {
    let mut stand = Stand::new(true);
    let client = stand.connect();
    stand.ask(client, 0, 4000);
    stand.tell(Event::Disconnected(client));
    stand.settle();
    let (session, timeout) = stand.tree().sessions().next().unwrap();
    assert_eq!(timeout, 4000);
    stand.wait(Duration::from_secs(4));
    assert!(stand.submitted.is_empty());
    stand.wait(Duration::from_secs(1));
    stand.settle();
    assert_eq!(stand.tree().session(session), None);
}

/// Identities, watches and what was asked for are of a connection.
#[test]
fn a_new_connection_of_a_session_begins_with_nothing_of_the_older_ones() {
    let mut stand = Stand::new(false);
    let (first, session) = stand.client();
    let auth = Bytes::from_static(b"bob:secret");
    stand.request(first, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    assert_eq!(stand.told(first), ["-4 ok"]);
    stand.call(first, get("/", true)).unwrap();
    stand.request(first, &[(7, create_with("/e", 1))]);
    let second = stand.connect();
    stand.ask(second, session, 4000);
    let lives = [&session.to_be_bytes()[..], &[1]].concat();
    stand.tell(Event::Revalidated(lives.into()));
    assert_eq!(stand.answer(second).unwrap().session, session);
    stand.settle();
    assert!(stand.tree().get("/e").is_some(), "what was under way comes to pass");
    assert_eq!(stand.told(second), [""; 0], "and is answered to nobody");
    let me = stand.call(second, Request::WhoAmI);
    assert_eq!(me, Ok(Response::Identities(vec![("ip".into(), "10.0.0.7".into())])));
    stand.request(second, &[(1, set("/", -1))]);
    stand.settle();
    assert_eq!(stand.told(second), ["1 ok"]);
}

/// The older one ends late: what is known of the session is the newer one's.
#[test]
fn the_end_of_an_older_connection_is_none_of_the_newer_ones() {
    let mut stand = Stand::new(true);
    let (first, session) = stand.client();
    let (second, third) = (stand.connect(), stand.connect());
    for client in [second, third] {
        stand.ask(client, session, 4000);
        stand.settle();
    }
    assert_eq!(stand.answer(second).unwrap().session, session);
    assert_eq!(stand.told(second), ["closed"]);
    stand.tell(Event::Disconnected(first));
    stand.tell(Event::Disconnected(second));
    let fourth = stand.connect();
    stand.ask(fourth, session, 4000);
    stand.settle();
    stand.answer(third).unwrap();
    assert_eq!(stand.told(third), ["closed"], "it was still known");
    assert_eq!(stand.answer(fourth).unwrap().session, session);
}

#[test]
fn every_connection_ends_when_its_server_loses_the_leader_and_nothing_more_is_said() {
    let mut stand = Stand::new(false);
    let (open, _) = stand.client();
    stand.request(open, &[(1, create("/x")), (2, Request::Sync { path: None })]);
    let (opening, asking, new) = (stand.connect(), stand.connect(), stand.connect());
    stand.ask(opening, 0, 4000);
    stand.ask(asking, 0x99, 4000);
    stand.tell(Event::Retired);
    for client in [open, opening, asking, new] {
        assert!(stand.is_closed_without_a_byte(client));
    }
    // What comes of it is told nobody: the stand would say so.
    stand.settle();
    stand.tell(Event::Revalidated([&0x99_i64.to_be_bytes()[..], &[1]].concat().into()));
    assert!(stand.tree().get("/x").is_some());
}

/// What was left on the older connection may be under way until the leader has heard of the newer one.
#[test]
fn who_comes_to_a_learner_again_before_it_is_answered_is_told_by_its_own_answer() {
    for lives in [1, 0] {
        let mut stand = Stand::new(false);
        let (_, session) = stand.client();
        let says =
            |lives: u8| Event::Revalidated([&session.to_be_bytes()[..], &[lives]].concat().into());
        let (older, newer) = (stand.connect(), stand.connect());
        stand.ask(older, session, 4000);
        stand.ask(newer, session, 4000);
        assert_eq!(stand.told(older), ["closed"]);
        stand.tell(says(lives));
        if lives == 1 {
            assert!(stand.answer(newer).is_none());
            stand.tell(says(lives));
        }
        assert_eq!(stand.answer(newer).unwrap().session != 0, lives == 1);
        // Of another leader nothing is expected any more.
        let third = stand.connect();
        stand.ask(third, session, 4000);
        stand.tell(Event::Retired);
        stand.serve(false);
        let fourth = stand.connect();
        stand.ask(fourth, session, 4000);
        stand.tell(says(1));
        assert_eq!(stand.answer(fourth).unwrap().session, session);
    }
}

/// A client may take its time for the rest: it has come for nothing either way.
#[test]
fn a_server_that_does_not_serve_closes_a_connection_when_it_sees_how_long_the_first_frame_is() {
    for serves in [false, true] {
        let mut stand = Stand::idle(1, |_| {});
        if serves {
            stand.serve(true);
        }
        let client = stand.connect();
        stand.tell(Event::Begun(client));
        assert_eq!(stand.is_closed_without_a_byte(client), !serves);
    }
}
