//! Requests of clients: in which order they are answered, and how.

use bytes::Bytes;
use quorate_core::message::Request as Submitted;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{MultiResult, Request, Response, op};
use quorate_znode::acl::Acl;

use crate::ensemble::submitted;
use crate::stand::{Heard, Stand, TICK};

/// A node that all may do everything with.
pub(crate) fn create(path: &str) -> Request {
    create_with(path, 0)
}

pub(crate) fn create_with(path: &str, flags: i32) -> Request {
    let (data, acl) = (Some(Bytes::from_static(b"x")), Some(vec![Acl::world(31)]));
    Request::Create { op: op::CREATE, path: path.into(), data, acl, flags, ttl: None }
}

pub(crate) fn set(path: &str, version: i32) -> Request {
    Request::SetData { path: path.into(), data: Some(Bytes::from_static(b"y")), version }
}

pub(crate) fn delete(path: &str) -> Request {
    Request::Delete { path: path.into(), version: -1 }
}

pub(crate) fn get(path: &str, watch: bool) -> Request {
    Request::GetData { path: path.into(), watch }
}

pub(crate) fn exists(path: &str, watch: bool) -> Request {
    Request::Exists { path: path.into(), watch }
}

/// Pipelined on one connection, with writes, reads and a sync in between.
#[test]
fn replies_leave_in_the_order_of_requests() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let (client, _) = stand.client();
        let sync = Request::Sync { path: Some("/".into()) };
        let requests = [
            create("/x"),
            get("/x", false),
            Request::Ping,
            sync,
            set("/x", 0),
            exists("/none", false),
            delete("/x"),
            exists("/x", false),
        ];
        let numbered: Vec<_> = (1..).zip(requests).collect();
        stand.request(client, &numbered);
        assert_eq!(stand.told(client), [""; 0], "nothing overtakes the write");
        assert_eq!(stand.submitted.len(), 1, "what is behind the sync waits for it");
        stand.settle();
        let told = stand.told(client);
        assert_eq!(told, ["1 ok", "2 ok", "-2 ok", "4 ok", "5 ok", "6 -101", "7 ok", "8 -101"]);
    }
}

#[test]
fn writes_are_submitted_one_behind_the_other_and_reads_see_those_before_them_only() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/x")), (2, get("/x", false)), (3, set("/x", -1))]);
    assert_eq!(stand.submitted.len(), 2);
    stand.commit();
    let heard = stand.heard(client);
    let Some(Heard::Reply(2, 0, body)) = heard.get(1) else { panic!("{heard:?}") };
    let Response::Data { data, .. } = Response::decode(op::GET_DATA, body).unwrap().unwrap() else {
        panic!("{body:?}")
    };
    assert_eq!(data, Some(Bytes::from_static(b"x")), "not what is behind it");
    stand.commit();
    assert_eq!(stand.told(client), ["3 ok"]);
}

/// A read between them would see the write that comes behind it.
#[test]
fn a_write_behind_a_sync_waits_for_it() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.call(client, create("/x")).unwrap();
    let sync = Request::Sync { path: None };
    stand.request(client, &[(1, sync), (2, get("/x", false)), (3, set("/x", -1))]);
    stand.request(client, &[(4, Request::Ping)]);
    assert!(stand.submitted.is_empty());
    let synced = stand.syncs.pop_front().unwrap();
    stand.tell(quorate_application::clients::Event::Synced(synced));
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
    stand.settle();
    assert_eq!(stand.told(client), ["3 ok", "-2 ok"]);
}

#[test]
fn what_another_server_has_asked_for_answers_nothing_here() {
    let mut stand = Stand::new(false);
    let (client, session) = stand.client();
    stand.request(client, &[(1, create("/x"))]);
    let own = stand.submitted.pop_front().unwrap();
    let mut other = own.clone();
    other.id.client = session + 1;
    other.identities = None;
    stand.commit_of(&other, quorate_core::id::Origin::Here);
    assert_eq!(stand.told(client), [""; 0]);
    stand.commit_of(&own, quorate_core::id::Origin::Service);
    assert_eq!(stand.told(client), ["1 -110"]);
}

#[test]
fn a_multi_that_fails_says_for_each_element_why() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/m")).unwrap();
    let failing = Request::Multi(vec![create("/m/x"), set("/m", 5), delete("/m")]);
    let Ok(Response::Multi(results)) = stand.call(client, failing) else { panic!() };
    let codes = [0, -103, -2].map(|err| MultiResult::Failed { err });
    assert_eq!(results, codes);
    assert!(stand.tree().get("/m/x").is_none());
    let fine = Request::Multi(vec![
        create("/n"),
        set("/n", 0),
        Request::Check { path: "/n".into(), version: 1 },
        delete("/n"),
    ]);
    let Ok(Response::Multi(results)) = stand.call(client, fine) else { panic!() };
    assert!(matches!(
        &results[..],
        [
            MultiResult::Created { .. },
            MultiResult::DataSet { .. },
            MultiResult::Checked,
            MultiResult::Deleted
        ]
    ));
}

/// It never reaches a leader: some of those stop all writes for ever.
#[test]
fn a_write_that_cannot_be_read_is_refused_in_its_turn_and_the_connection_stays() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let garbled =
        [&3_i32.to_be_bytes()[..], &5_i32.to_be_bytes(), &i32::MAX.to_be_bytes()].concat();
    stand.request(client, &[(1, create("/x"))]);
    stand.send(client, vec![quorate_application::clients::Frame::Whole(garbled.into())]);
    assert_eq!(stand.told(client), [""; 0], "behind the first");
    assert_eq!(stand.submitted.len(), 1);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "3 -5"]);
    stand.call(client, set("/x", -1)).unwrap();
}

/// A client remembers the zxid of the last reply: one that was made up when the request was read would take it back, and let
/// it come to a server that has not applied its own writes.
#[test]
fn what_is_refused_in_its_turn_is_so_as_of_what_is_applied_then() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/x")), (2, create_with("/y", 9)), (3, set("/x", 0))]);
    let (first, second) = (stand.commit(), stand.commit());
    let zxids = stand.zxids(client);
    assert_eq!(zxids, [first, first, second].map(Option::unwrap));
}

#[test]
fn an_operation_that_is_none_of_a_clients_ends_the_connection_and_not_the_session() {
    let lone = Request::Check { path: "/".into(), version: 0 };
    for request in [lone, Request::CreateSession { timeout_ms: 4000 }] {
        let mut stand = Stand::new(true);
        let (client, session) = stand.client();
        stand.request(client, &[(1, request)]);
        assert_eq!(stand.told(client), ["1 -6", "closed"]);
        assert!(stand.submitted.is_empty());
        assert!(stand.tree().session(session).is_some());
    }
}

#[test]
fn a_client_with_too_much_unread_is_answered_no_more_until_it_reads() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let data = Some(Bytes::from(vec![7; 1 << 20]));
    let acl = Some(vec![Acl::world(31)]);
    let path = "/big".to_owned();
    let big = Request::Create { op: op::CREATE, path, data, acl, flags: 0, ttl: None };
    stand.request(
        client,
        &[(1, big), (2, get("/big", false)), (3, get("/big", false)), (4, Request::Ping)],
    );
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
    assert!(stand.is_paused(client));
    stand.tell(quorate_application::clients::Event::Written { client, bytes: 2 << 20 });
    assert_eq!(stand.told(client), ["3 ok"]);
    stand.tell(quorate_application::clients::Event::Written { client, bytes: 2 << 20 });
    assert_eq!(stand.told(client), ["-2 ok"]);
    assert!(!stand.is_paused(client));
}

/// Its reply waits with the others, and what it has read is as of its turn.
#[test]
fn a_read_before_a_write_that_is_under_way_does_not_see_it_though_replies_wait() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let data = Some(Bytes::from(vec![7; 1 << 20]));
    let acl = Some(vec![Acl::world(31)]);
    let path = "/big".to_owned();
    let big = Request::Create { op: op::CREATE, path, data, acl, flags: 0, ttl: None };
    stand.call(client, big).unwrap();
    stand.call(client, create("/x")).unwrap();
    let requests = [
        (1, set("/x", 0)),
        (2, get("/big", false)),
        (3, get("/big", false)),
        (4, exists("/x", false)),
        (5, set("/x", 1)),
    ];
    stand.request(client, &requests);
    assert_eq!(stand.submitted.len(), 2);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
    stand.tell(quorate_application::clients::Event::Written { client, bytes: 4 << 20 });
    stand.tell(quorate_application::clients::Event::Written { client, bytes: 4 << 20 });
    let heard = stand.heard(client);
    let Some(Heard::Reply(4, 0, body)) = heard.get(1) else { panic!("{heard:?}") };
    let Some(Response::Stat(stat)) = Response::decode(op::EXISTS, body).unwrap() else { panic!() };
    assert_eq!(stat.version, 1, "not what is behind it");
    // Behind many reads a write is not submitted before they are carried out.
    let mut many: Vec<_> = (1..=40).map(|xid| (xid, exists("/x", false))).collect();
    many.insert(0, (0, set("/x", -1)));
    many.push((99, set("/x", -1)));
    stand.request(client, &many);
    assert_eq!(stand.submitted.len(), 1);
    stand.settle();
    assert_eq!(stand.told(client).len(), 42);
}

/// What is refused at this server, and a read point that has come, are answered as of their turn.
#[test]
fn a_refusal_before_a_write_that_is_under_way_is_not_as_of_later_though_replies_wait() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let data = Some(Bytes::from(vec![7; 1 << 20]));
    let acl = Some(vec![Acl::world(31)]);
    let path = "/big".to_owned();
    let big = Request::Create { op: op::CREATE, path, data, acl, flags: 0, ttl: None };
    stand.call(client, big).unwrap();
    let (other, _) = stand.client();
    let requests = [
        (1, get("/big", false)),
        (2, get("/big", false)),
        (3, create_with("/x", 9)),
        (4, Request::Sync { path: None }),
    ];
    stand.request(client, &requests);
    stand.settle();
    stand.request(client, &[(5, create("/x"))]);
    stand.settle();
    for _ in 0..3 {
        stand.call(other, set("/big", -1)).unwrap();
    }
    for _ in 0..4 {
        stand.tell(quorate_application::clients::Event::Written { client, bytes: 4 << 20 });
        stand.settle();
    }
    let shown = stand.zxids(client);
    assert_eq!(shown.len(), 5);
    assert!(shown.is_sorted(), "{shown:?}");
}

#[test]
fn writes_beyond_what_may_be_under_way_wait_and_none_is_forgotten() {
    // Of four voters, each has its part of it.
    let mut stand = Stand::with(true, |options| options.outstanding_max = 30);
    let (one, _) = stand.client();
    let (two, _) = stand.client();
    let many: Vec<_> = (1..=40).map(|xid| (xid, create_with("/s-", 2))).collect();
    stand.request(one, &many);
    stand.request(two, &many[..20]);
    assert_eq!(stand.submitted.len(), 10);
    stand.settle();
    assert_eq!(stand.told(one).len(), 40);
    assert_eq!(stand.told(two).len(), 20);
    assert_eq!(stand.tree().get("/").unwrap().stat().num_children, 61);
}

#[test]
fn who_may_not_read_a_node_is_told_so_and_its_digest_is_masked() {
    let mut stand = Stand::new(true);
    let (bob, _) = stand.client();
    let proof = Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        auth: Bytes::from_static(b"bob:secret"),
    };
    stand.request(bob, &[(-4, proof)]);
    assert_eq!(stand.told(bob), ["-4 ok"]);
    let acl = |perms, scheme: &str, id: &str| Acl { perms, scheme: scheme.into(), id: id.into() };
    let own = vec![acl(31, "auth", ""), acl(1, "world", "anyone")];
    let Request::Create { op, path, data, flags, ttl, .. } = create("/own") else { panic!() };
    let made = Request::Create { op, path, data, acl: Some(own), flags, ttl };
    stand.call(bob, made).unwrap();
    let (other, _) = stand.client();
    assert!(stand.call(other, get("/own", false)).is_ok());
    assert_eq!(stand.call(other, set("/own", -1)), Err(-102));
    let Ok(Response::Acl { acl: Some(seen), .. }) =
        stand.call(other, Request::GetAcl { path: "/own".into() })
    else {
        panic!()
    };
    assert_eq!(&*seen[0].id, "bob:x");
    let Ok(Response::Acl { acl: Some(seen), .. }) =
        stand.call(bob, Request::GetAcl { path: "/own".into() })
    else {
        panic!()
    };
    assert_eq!(&*seen[0].id, "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=");
    let closed =
        Request::SetAcl { path: "/own".into(), acl: Some(vec![acl(31, "auth", "")]), version: -1 };
    stand.call(bob, closed).unwrap();
    for request in [get("/own", true), exists("/own", false)] {
        assert_eq!(stand.call(other, request), Err(-102));
    }
    let wrong = Request::Auth { kind: 0, scheme: Some("rumour".into()), auth: Bytes::new() };
    stand.request(other, &[(-4, wrong)]);
    assert_eq!(stand.told(other), ["-4 -115", "closed"]);
}

#[test]
fn words_are_answered_and_the_connection_is_closed() {
    let mut stand = Stand::new(true);
    stand.client();
    let mut say = |word: &[u8; 4]| {
        let client = stand.connect();
        stand.send(client, vec![quorate_application::clients::Frame::Word(*word)]);
        stand.text(client)
    };
    assert_eq!(say(b"ruok"), "imok");
    assert_eq!(say(b"isro"), "rw");
    let served = say(b"srvr");
    assert!(served.contains("Mode: leader\nNode count: 5\n"), "{served}");
    assert!(say(b"mntr").contains("zk_server_state\tleader\n"));
    assert!(say(b"envi").contains("zookeeper.version=3."));
    assert!(say(b"wchs").starts_with("0 connections watching 0 paths"));
    assert!(say(b"dump").contains("Session Sets (1)/(1):"));
}

#[test]
fn words_tell_of_connections_watches_and_sessions_and_set_figures_back() {
    let mut stand = Stand::new(true);
    let (client, session) = stand.client();
    stand.call(client, create_with("/e", 1)).unwrap();
    stand.call(client, get("/e", true)).unwrap();
    let mut say = |word: &[u8; 4]| {
        let client = stand.connect();
        stand.send(client, vec![quorate_application::clients::Frame::Word(*word)]);
        stand.text(client)
    };
    let cons = say(b"cons");
    assert!(cons.contains(&format!(",sid=0x{session:x},lop=GETD,")), "{cons}");
    assert!(cons.contains("recved=3,sent=3") && cons.ends_with("\n\n"), "{cons}");
    assert_eq!(say(b"wchc"), format!("0x{session:x}\n\t/e\n\n"));
    assert_eq!(say(b"wchp"), format!("/e\n\t0x{session:x}\n\n"));
    assert_eq!(say(b"wchs"), "1 connections watching 1 paths\nTotal watches:1\n");
    let dump = say(b"dump");
    assert!(dump.contains(&format!("Sessions with Ephemerals (1):\n0x{session:x}:\n\t/e\n")));
    assert!(dump.contains(&format!("1 expire in 4500ms:\n\t0x{session:x}\n")), "{dump}");
    assert_eq!(say(b"crst"), "Connection stats reset.\n");
    assert!(say(b"cons").contains("recved=0,sent=0"));
    assert_eq!(say(b"srst"), "Server stats reset.\n");
    // The word itself is no packet, the answer is one.
    let srvr = say(b"srvr");
    assert!(srvr.contains("\nReceived: 0\nSent: 1\n"), "{srvr}");
}

#[test]
fn nothing_is_answered_while_the_server_does_not_serve() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/x"))]);
    stand.tell(quorate_application::clients::Event::Retired);
    assert_eq!(stand.told(client), ["closed"]);
    stand.wait(TICK);
    let late = stand.connect();
    stand.ask(late, 0, 4000);
    assert_eq!(stand.told(late), ["closed"]);
    let word = stand.connect();
    stand.send(word, vec![quorate_application::clients::Frame::Word(*b"srvr")]);
    assert!(stand.text(word).contains("not currently serving"));
    // What was under way may come to pass, and nothing waits for it any more.
    stand.settle();
    assert!(stand.tree().get("/x").is_some());
    assert_eq!(stand.tree().last_zxid(), Zxid(0x1_0000_0002));
}

/// For the driver to say while the service is busy: whether it serves may change meanwhile.
#[test]
fn what_probes_ask_for_is_at_hand_for_a_server_that_serves_and_for_one_that_no_longer_does() {
    use quorate_application::clients::{Clients as _, Frame};
    use quorate_service::Words;
    let mut stand = Stand::new(true);
    stand.client();
    let at_hand = stand.service.at_hand(&mut stand.state);
    let text = |answers: &[([u8; 4], Bytes)], word: &[u8; 4]| {
        let answer = answers.iter().find(|(known, _)| known == word).unwrap();
        String::from_utf8(answer.1.to_vec()).unwrap()
    };
    assert_eq!(text(&at_hand.now, b"ruok"), "imok");
    assert_eq!(text(&at_hand.now, b"isro"), "rw");
    let client = stand.connect();
    stand.send(client, vec![Frame::Word(*b"srvr")]);
    let said = stand.text(client).replace("Connections: 2", "Connections: 1");
    assert_eq!(text(&at_hand.now, b"srvr"), said);
    assert_eq!(text(&at_hand.retired, b"ruok"), "imok");
    assert_eq!(text(&at_hand.retired, b"isro"), "null");
    assert!(text(&at_hand.retired, b"srvr").contains("not currently serving"));
    // As the whitelist says, and the service goes on as before.
    assert_eq!(text(&stand.service.at_hand(&mut stand.state).now, b"isro"), "rw");
    let mut stand = Stand::with(false, |options| options.words = Words::Some(vec![]));
    let at_hand = stand.service.at_hand(&mut stand.state);
    assert!(text(&at_hand.now, b"ruok").contains("not in the whitelist"));
}

#[test]
fn the_digest_of_each_128th_transaction_is_told_if_it_is_the_leaders() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.call(client, create("/a")).unwrap();
    let mut expected = String::new();
    while stand.tree().last_zxid().0 % 512 != 0 {
        stand.call(client, set("/a", -1)).unwrap();
        let (zxid, digest) = (stand.tree().last_zxid().0, stand.tree().digest());
        if zxid % 128 == 0 {
            expected += &format!("{zxid:x}: {digest}\n");
        }
    }
    let word = |stand: &mut Stand, word| {
        let client = stand.connect();
        stand.send(client, vec![quorate_application::clients::Frame::Word(word)]);
        stand.text(client)
    };
    assert_eq!(word(&mut stand, *b"hash"), expected);
    // A leader whose tree is another one.
    let own = Submitted { identities: None, ..submitted(&set("/a", -1), 0) };
    for _ in 0..128 {
        let zxid = Zxid(stand.tree().last_zxid().0 + 1);
        let mut txn = stand.prepare(&own, quorate_core::id::Origin::Here, zxid);
        let mut body = txn.body.to_vec();
        *body.last_mut().unwrap() ^= 1;
        txn.body = body.into();
        stand.apply(&txn);
    }
    assert_eq!(word(&mut stand, *b"hash"), expected, "nothing else is told");
    assert!(word(&mut stand, *b"mntr").contains("zk_digest_mismatches_count\t128\n"));
}
