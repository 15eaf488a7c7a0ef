//! What becomes of sessions between several servers: they move, expire, and outlive their leader.

use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{Event, Frame};
use quorate_application::{Application, Snapshot};
use quorate_core::message::Request as Submitted;
use quorate_core::zxid::Zxid;
use quorate_service::ZooKeeper;
use quorate_service::wire::{Request, op};
use quorate_znode::Tree;

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::ensemble::Ensemble;
use crate::stand::{Stand, TICK};

#[test]
fn a_session_and_its_nodes_are_the_same_on_every_server_and_end_at_one_zxid() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let (a, session) = ensemble.client(server, 4000);
        let (b, _) = ensemble.client((server + 1) % 3, 4000);
        assert_eq!(ensemble.told(server, a, &[(1, create_with("/e", 1))]), ["1 ok"]);
        for stand in &ensemble.servers {
            let stat = stand.tree().get("/e").unwrap().stat();
            assert_eq!(stat.ephemeral_owner, session);
            assert_eq!(stand.tree().session(session), Some(4000));
        }
        assert_eq!(ensemble.told(server, a, &[(2, create("/e/x"))]), ["2 -108"]);
        assert_eq!(ensemble.told((server + 1) % 3, b, &[(1, delete("/e"))]), ["1 ok"]);
        let requests = [(3, create_with("/e", 1)), (4, Request::CloseSession)];
        ensemble.servers[server].request(a, &requests);
        ensemble.settle();
        let zxid = ensemble.servers[server].zxids(a)[1];
        for stand in &ensemble.servers {
            assert!(stand.tree().get("/e").is_none() && stand.tree().session(session).is_none());
            assert_eq!(stand.tree().get("/").unwrap().stat().pzxid, zxid);
        }
    }
}

/// The old connection is answered what it reads; what it writes is a transaction that does nothing, and its end.
#[test]
fn a_session_that_moves_takes_its_writes_along() {
    for (old, new) in [(1, 2), (2, 1), (1, 0)] {
        let mut ensemble = Ensemble::new();
        let (first, session) = ensemble.client(old, 4000);
        assert_eq!(ensemble.told(old, first, &[(1, create("/v"))]), ["1 ok"]);
        let (second, answer) = ensemble.attach(new, session, 9000);
        assert_eq!((answer.session, answer.timeout_ms), (session, 9000));
        assert_eq!(answer.password, quorate_service::wire::password(session));
        assert_eq!(ensemble.told(old, first, &[(2, get("/v", false))]), ["2 ok"]);
        let last = ensemble.last;
        assert_eq!(ensemble.told(old, first, &[(3, set("/v", -1))]), ["closed"]);
        assert_eq!(ensemble.last.0, last.0 + 1, "a zxid is used");
        assert_eq!(ensemble.servers[0].tree().get("/v").unwrap().stat().version, 0);
        assert_eq!(ensemble.told(new, second, &[(1, set("/v", 0))]), ["1 ok"]);
        // A move back is one like any other.
        let (third, answer) = ensemble.attach(old, session, 4000);
        assert_eq!(answer.session, session);
        assert_eq!(ensemble.told(new, second, &[(2, set("/v", -1))]), ["closed"]);
        assert_eq!(ensemble.told(old, third, &[(1, set("/v", 1))]), ["1 ok"]);
        assert_eq!(ensemble.told(old, third, &[(2, Request::CloseSession)]), ["2 ok", "closed"]);
        assert!(!ensemble.lives(session));
    }
}

/// The next leader would not know that the session has moved, and would carry out what is still on its way.
#[test]
fn a_leader_closes_what_a_session_that_has_come_to_a_learner_has_left_there() {
    let mut ensemble = Ensemble::new();
    let (first, session) = ensemble.client(0, 4000);
    let (second, _) = ensemble.attach(1, session, 4000);
    assert_eq!(ensemble.servers[0].told(first), ["closed"]);
    assert_eq!(ensemble.told(1, second, &[(1, set("/", -1))]), ["1 ok"]);
}

/// The table keeps what the session was opened with; each touch counts with the time-out of its connection.
#[test]
fn the_time_out_is_the_connections_and_the_table_keeps_the_first() {
    let mut ensemble = Ensemble::new();
    let (_, session) = ensemble.client(1, 2000);
    let (second, answer) = ensemble.attach(2, session, 10_000);
    assert_eq!(answer.timeout_ms, 10_000);
    assert_eq!(ensemble.told(2, second, &[(-2, Request::Ping)]), ["-2 ok"]);
    assert_eq!(ensemble.servers[0].tree().session(session), Some(2000));
    ensemble.wait(Duration::from_secs(8));
    assert!(ensemble.lives(session));
    ensemble.wait(Duration::from_secs(4));
    assert!(!ensemble.lives(session));
    // A new leader begins with the table's.
    let (_, session) = ensemble.client(1, 2000);
    let (client, _) = ensemble.attach(2, session, 10_000);
    ensemble.servers[2].tell(Event::Disconnected(client));
    ensemble.lead(1);
    ensemble.wait(Duration::from_millis(2000));
    assert!(ensemble.lives(session));
    ensemble.wait(TICK * 2);
    assert!(!ensemble.lives(session));
}

#[test]
fn an_unknown_an_expired_and_a_closed_session_are_refused_everywhere() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let (client, closed) = ensemble.client(1, 1000);
        ensemble.told(1, client, &[(1, Request::CloseSession)]);
        let (_, expired) = ensemble.client(1, 1000);
        ensemble.wait(Duration::from_secs(3));
        for session in [closed, expired, 0x0300_0000_0000_0001] {
            let (client, refused) = ensemble.attach(server, session, 4000);
            assert_eq!((refused.session, refused.timeout_ms, refused.password), (0, 0, [0; 16]));
            assert_eq!(ensemble.servers[server].told(client), ["closed"]);
        }
    }
}

/// Between 1000 and 2000 ms after its last byte: its nodes go, who watches is told, the connection ends without a word.
#[test]
fn a_silent_session_ends_within_its_time_out_and_two_ticks_whatever_its_server_is() {
    for server in 0..3 {
        for late in 0..10 {
            let mut ensemble = Ensemble::new();
            let (watcher, own) = ensemble.client((server + 1) % 3, 10_000);
            ensemble.wait(TICK / 10 * late);
            let (silent, session) = ensemble.client(server, 1000);
            assert_eq!(ensemble.told(server, silent, &[(1, create_with("/e", 1))]), ["1 ok"]);
            let at = (server + 1) % 3;
            assert_eq!(ensemble.told(at, watcher, &[(1, get("/e", true))]), ["1 ok"]);
            let begun = ensemble.now();
            while ensemble.lives(session) {
                ensemble.wait(TICK / 10);
                assert!(ensemble.now().since(begun) <= Duration::from_secs(2), "{server}, {late}");
            }
            assert!(ensemble.now().since(begun) >= Duration::from_secs(1), "{server}, {late}");
            assert!(!ensemble.has("/e") && ensemble.lives(own));
            assert_eq!(ensemble.servers[at].told(watcher), ["deleted /e"]);
            assert_eq!(ensemble.servers[server].told(silent), ["closed"]);
        }
    }
}

/// Every 300 ms of 1000.
#[test]
fn a_session_that_is_heard_in_time_lives_whatever_its_server_is() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let (client, session) = ensemble.client(server, 1000);
        for _ in 0..60 {
            ensemble.wait(Duration::from_millis(300));
            ensemble.servers[server].request(client, &[(-2, Request::Ping)]);
        }
        assert!(ensemble.lives(session));
    }
}

/// It was in flight when the client moved.
#[test]
fn a_late_close_ends_the_session_and_its_connection_at_the_other_server() {
    let mut ensemble = Ensemble::new();
    let (first, session) = ensemble.client(1, 4000);
    ensemble.servers[1].request(first, &[(1, Request::CloseSession)]);
    let late = ensemble.servers[1].submitted.pop_front().unwrap();
    let (second, answer) = ensemble.attach(2, session, 4000);
    assert_eq!(answer.session, session);
    ensemble.asked.push_back((1, late));
    ensemble.settle();
    assert!(!ensemble.lives(session));
    assert_eq!(ensemble.servers[2].told(second), ["closed"]);
    assert_eq!(ensemble.servers[1].told(first), ["1 ok", "closed"]);
}

/// The client, the leader's clock and an old path, and a session that was never there.
#[test]
fn a_session_that_is_closed_several_times_ends_once() {
    let mut ensemble = Ensemble::new();
    let (client, session) = ensemble.client(1, 4000);
    let (watcher, _) = ensemble.client(2, 4000);
    ensemble.told(1, client, &[(1, create_with("/e", 1))]);
    ensemble.told(2, watcher, &[(1, get("/e", true))]);
    ensemble.servers[1].request(client, &[(2, Request::CloseSession)]);
    ensemble.pass();
    let close = ensemble.asked.pop_front().unwrap().1;
    let mut never = close.clone();
    never.id.client = session + 99;
    for (from, request) in [(1, &close), (0, &close), (2, &close), (0, &never)] {
        ensemble.asked.push_back((from, request.clone()));
    }
    let last = ensemble.last;
    ensemble.settle();
    assert_eq!(ensemble.last.0, last.0 + 4, "each is a transaction");
    assert_eq!(ensemble.servers[2].told(watcher), ["deleted /e"], "once");
    assert_eq!(ensemble.servers[1].told(client), ["2 ok", "closed"]);
    let (next, answer) = ensemble.attach(1, 0, 4000);
    assert_eq!(answer.session, session + 1);
    ensemble.asked.push_back((0, close));
    assert_eq!(ensemble.told(1, next, &[(1, create_with("/e", 1))]), ["1 ok"]);
    assert!(ensemble.has("/e"), "the next session is another");
}

/// Both orders: it was made and goes with the session, or it was never made.
#[test]
fn a_node_that_is_created_while_its_session_expires_is_never_left_behind() {
    for create_first in [true, false] {
        for applied in 0..=2 {
            let mut ensemble = Ensemble::new();
            let (client, session) = ensemble.client(1, 1000);
            ensemble.servers[1].request(client, &[(1, create_with("/e", 1))]);
            let create = ensemble.servers[1].submitted.pop_front().unwrap();
            let id = quorate_core::txn::RequestId { client: session, cxid: 0 };
            let close =
                Submitted { id, op: op::CLOSE_SESSION, body: Bytes::new(), identities: None };
            let mut both = [(1, create), (0, close)];
            if !create_first {
                both.reverse();
            }
            for request in both {
                ensemble.asked.push_back(request);
                ensemble.propose();
                // What is prepared is judged by what was prepared, applied or not.
                for _ in 0..applied {
                    ensemble.apply();
                }
            }
            ensemble.settle();
            assert!(!ensemble.has("/e") && !ensemble.lives(session));
            let told = ensemble.servers[1].told(client);
            let expected: &[&str] = if create_first { &["1 ok", "closed"] } else { &["closed"] };
            assert!(told.ends_with(&["closed".to_owned()]), "{told:?}");
            assert!(told == expected || told == ["1 -112", "closed"], "{told:?}");
        }
    }
}

#[test]
fn a_parent_can_be_deleted_right_behind_the_close_of_its_childs_session() {
    let mut ensemble = Ensemble::new();
    let (a, _) = ensemble.client(1, 4000);
    let (b, _) = ensemble.client(2, 4000);
    ensemble.told(2, b, &[(1, create("/p"))]);
    ensemble.told(1, a, &[(1, create_with("/p/e", 1))]);
    ensemble.servers[1].request(a, &[(2, Request::CloseSession)]);
    ensemble.pass();
    ensemble.servers[2].request(b, &[(2, delete("/p"))]);
    ensemble.pass();
    // Both are prepared before either is applied.
    assert!(ensemble.propose() && ensemble.propose());
    ensemble.settle();
    assert_eq!(ensemble.servers[2].told(b), ["2 ok"]);
    assert!(!ensemble.has("/p"));
}

#[test]
fn sessions_and_their_nodes_outlive_their_leader_stay_where_they_are_and_come_back_to_any_server() {
    let mut ensemble = Ensemble::new();
    let mut sessions = Vec::new();
    for n in 0..200 {
        let (client, session) = ensemble.client(n % 3, 4000);
        let path = format!("/e{n}");
        ensemble.told(n % 3, client, &[(1, create_with(&path, 1))]);
        sessions.push((session, path, client));
    }
    let seen = ensemble.last;
    ensemble.lead(1);
    for (n, (_, path, client)) in sessions.iter().enumerate() {
        assert_eq!(ensemble.told(n % 3, *client, &[(2, set(path, 0))]), ["2 ok"], "{n}");
        // Those of odd numbers are lost, and come back elsewhere.
        if n % 2 == 1 {
            ensemble.servers[n % 3].tell(Event::Disconnected(*client));
        }
    }
    ensemble.wait(Duration::from_secs(3));
    for (n, (session, path, _)) in sessions.iter().enumerate() {
        let server = (n + 1) % 3;
        let client = ensemble.servers[server].connect();
        ensemble.servers[server].ask_with(client, *session, |request| request.last_zxid = seen);
        ensemble.settle();
        let answer = ensemble.servers[server].answer(client).unwrap();
        assert_eq!(answer.session, *session, "{n}");
        ensemble.servers[server].request(client, &[(1, exists(path, false)), (2, set(path, 1))]);
        ensemble.settle();
        let zxids = ensemble.servers[server].zxids(client);
        assert!(zxids.len() == 2 && zxids.iter().all(|zxid| *zxid >= seen), "{zxids:?}");
    }
    assert_eq!(ensemble.servers[2].tree().sessions().count(), 200);
    assert_eq!(ensemble.servers[2].tree().owners().count(), 200);
}

#[test]
fn a_session_whose_client_died_with_the_leader_expires_one_time_out_behind_the_next_ones_begin() {
    let mut ensemble = Ensemble::new();
    let (client, session) = ensemble.client(0, 4000);
    ensemble.told(0, client, &[(1, create_with("/e", 1))]);
    // Its end was asked for, and is lost with the leader.
    ensemble.servers[0].request(client, &[(2, Request::CloseSession)]);
    ensemble.pass();
    ensemble.propose();
    ensemble.lead(1);
    ensemble.wait(Duration::from_secs(4));
    assert!(ensemble.lives(session) && ensemble.has("/e"));
    ensemble.wait(TICK * 2);
    assert!(!ensemble.lives(session) && !ensemble.has("/e"));
}

/// Two connections at one server are its own matter: the older is closed before the newer is answered.
#[test]
fn two_clients_with_one_session_write_one_at_a_time() {
    let mut ensemble = Ensemble::new();
    let (mut one, session) = ensemble.client(1, 4000);
    ensemble.told(1, one, &[(1, create("/v"))]);
    for turn in 0..10 {
        let (other, answer) = ensemble.attach(2, session, 4000);
        assert_eq!(answer.session, session);
        assert_eq!(ensemble.told(1, one, &[(9, set("/v", -1))]), ["closed"], "{turn}");
        assert_eq!(ensemble.told(2, other, &[(1, set("/v", 2 * turn))]), ["1 ok"]);
        one = ensemble.attach(1, session, 4000).0;
        assert_eq!(ensemble.told(2, other, &[(9, set("/v", -1))]), ["closed"]);
        assert_eq!(ensemble.told(1, one, &[(1, set("/v", 2 * turn + 1))]), ["1 ok"]);
    }
    // It can be seen on both.
    for server in &mut ensemble.servers[1..] {
        let client = server.connect();
        server.send(client, vec![Frame::Word(*b"mntr")]);
        assert!(server.text(client).contains("zk_sessions_moved\t10\n"));
    }
}

/// A try that its client gave up is answered last: the connection to which the leader said yes last writes.
#[test]
fn the_connection_that_was_answered_last_writes_and_the_other_is_closed() {
    let mut ensemble = Ensemble::new();
    let (first, session) = ensemble.client(0, 4000);
    ensemble.told(0, first, &[(1, create("/v"))]);
    let given_up = ensemble.servers[1].connect();
    ensemble.servers[1].ask(given_up, session, 4000);
    let slow = std::mem::take(&mut ensemble.servers[1].asked);
    let (second, _) = ensemble.attach(2, session, 4000);
    ensemble.servers[1].tell(Event::Disconnected(given_up));
    ensemble.servers[1].asked = slow;
    ensemble.settle();
    let several = || Request::Multi(vec![set("/v", -1)]);
    assert_eq!(ensemble.told(2, second, &[(1, several())]), ["closed"], "not told -118");
    let (third, answer) = ensemble.attach(2, session, 4000);
    assert_eq!(answer.session, session);
    assert_eq!(ensemble.told(2, third, &[(1, several())]), ["1 ok"], "after one reconnect");
}

/// Syncs and writes of two sessions of one follower.
#[test]
fn a_sync_shows_what_was_committed_before_it_and_order_is_kept() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let (a, _) = ensemble.client(server, 4000);
        let (b, _) = ensemble.client(server, 4000);
        ensemble.told(server, a, &[(1, create("/a")), (2, create("/b"))]);
        let sync = || Request::Sync { path: Some("/".into()) };
        ensemble.servers[server].request(a, &[(3, sync()), (4, set("/a", 0))]);
        ensemble.servers[server].request(b, &[(1, set("/b", 0)), (2, sync())]);
        ensemble.servers[server].request(a, &[(5, sync()), (6, get("/b", false))]);
        ensemble.settle();
        let (a, b) = (ensemble.servers[server].headers(a), ensemble.servers[server].headers(b));
        let xids = |of: &[(i32, i64, i32)]| of.iter().map(|header| header.0).collect::<Vec<_>>();
        assert_eq!((xids(&a), xids(&b)), (vec![3, 4, 5, 6], vec![1, 2]));
        assert!(a.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!(b[1].1 >= b[0].1 && a[2].1 >= a[1].1);
    }
}

#[test]
fn what_a_client_asked_for_before_its_server_lost_the_leader_is_answered_nowhere() {
    let mut ensemble = Ensemble::new();
    let (client, session) = ensemble.client(1, 4000);
    ensemble.servers[1].request(client, &[(1, create("/x"))]);
    let request = ensemble.servers[1].submitted[0].clone();
    ensemble.lead(2);
    assert_eq!(ensemble.servers[1].told(client), ["closed"]);
    let (again, answer) = ensemble.attach(1, session, 4000);
    assert_eq!(answer.session, session);
    // The same request, committed after all, by another way.
    ensemble.asked.push_back((0, Submitted { identities: None, ..request }));
    ensemble.settle();
    assert!(ensemble.has("/x"));
    assert_eq!(ensemble.servers[1].told(again), [""; 0]);
    assert_eq!(ensemble.told(1, again, &[(1, create("/x"))]), ["1 -110"]);
}

/// A leader of ZooKeeper's writes a snapshot while it applies. A digest of what came of that would be taken for the tree
/// behind its label: by who compares, and by the next server in this directory.
#[test]
fn a_tree_that_came_from_a_leader_says_no_digest_until_this_server_serves() {
    let stand = Stand::new(true);
    let mut bytes = Vec::new();
    stand.tree().write_snapshot(&mut bytes).unwrap();
    let mut staged = Tree::restore(&bytes[..], Zxid(0x1_0000_0005)).unwrap();
    assert!(ZooKeeper::staged_snapshot(&staged).digest().is_some());
    ZooKeeper::staged_whole_at(&mut staged, None);
    assert!(ZooKeeper::staged_snapshot(&staged).digest().is_none());
    let mut next = stand.restarted();
    next.state.adopt(staged);
    assert!(next.state.snapshot().digest().is_none());
    next.serve(false);
    assert!(next.state.snapshot().digest().is_some());
}
