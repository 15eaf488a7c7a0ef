//! What a server bounds of its clients: watches, writes under way, patience with those that do not read.
use quorate_application::clients::{ClientId, Event, Frame};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, op};

use crate::clients::{create, create_with, get, set};
use crate::stand::{Part, Stand, TICK};
use crate::watches::watch_count;

/// A figure of `mntr`.
fn figure(stand: &mut Stand, name: &str) -> u64 {
    let probe = stand.connect();
    stand.send(probe, vec![Frame::Word(*b"mntr")]);
    let text = stand.text(probe);
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("zk_{name}\t")));
    value.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

fn exists(path: &str) -> Request {
    Request::Exists { path: path.into(), watch: true }
}

fn again(exist: &[&str], persistent: &[&str]) -> Request {
    let some = |paths: &[&str]| paths.iter().map(|path| Some((*path).to_owned())).collect();
    Request::SetWatches {
        op: op::SET_WATCHES2,
        relative_zxid: Zxid::ZERO,
        data: vec![],
        exist: some(exist),
        child: vec![],
        persistent: some(persistent),
        recursive: vec![],
    }
}

/// What would be one too many is refused and sets nothing, and what is watched already is no more for being watched again.
#[test]
fn a_watch_more_than_a_connection_or_the_server_may_have_is_refused_as_throttled() {
    let mut stand = Stand::with(true, |options| {
        (options.watches_per_client_max, options.watches_max) = (2, 3);
    });
    let (one, _) = stand.client();
    let (two, _) = stand.client();
    let watch = |path: &str, mode| Request::AddWatch { path: path.into(), mode };
    assert_eq!(stand.call(one, exists("/a")), Err(-101), "there is none, and it is watched");
    assert!(stand.call(one, get("/", true)).is_ok());
    for refused in [exists("/b"), get("/zookeeper", true), watch("/c", 0), watch("/c", 1)] {
        assert_eq!(stand.call(one, refused), Err(-127));
    }
    assert!(stand.call(one, get("/zookeeper", false)).is_ok(), "without a watch");
    assert!(stand.call(one, watch("/", 1)).is_ok(), "another kind on the same path");
    assert!(stand.call(two, watch("/x", 0)).is_ok());
    assert_eq!(stand.call(two, exists("/y")), Err(-127), "of all together");
    assert_eq!(figure(&mut stand, "watches_refused"), 5);

    // One that has fired makes room, and so does a connection that ends.
    stand.call(one, create("/a")).unwrap();
    assert_eq!(stand.call(one, exists("/b")), Err(-101));
    stand.tell(Event::Disconnected(one));
    assert_eq!(stand.call(two, exists("/y")), Err(-101));
    assert_eq!(stand.call(two, exists("/z")), Err(-127));
}

/// Clients take no notice of what is answered to setWatches: one that believed to watch would wait for ever.
#[test]
fn watches_that_are_set_again_and_are_too_many_end_the_connection_and_none_is_set() {
    let mut stand = Stand::with(true, |options| options.watches_per_client_max = 3);
    let (first, _) = stand.client();
    stand.request(first, &[(-8, again(&["/a", "/b", "/a"], &["/b", "/c"]))]);
    assert_eq!(stand.told(first), ["-8 ok"], "three paths, each counts once");
    let watches = watch_count(&mut stand);

    let (second, _) = stand.client();
    stand.request(second, &[(-8, again(&["/", "/a", "/b"], &["/c", "/d"])), (1, get("/", false))]);
    assert_eq!(stand.told(second), ["closed"], "nor is told that / is there");
    assert_eq!(watch_count(&mut stand), watches);
    assert_eq!(figure(&mut stand, "watches_refused"), 1);
    let (third, _) = stand.client();
    stand.request(third, &[(-8, again(&["/", "/a", "/b"], &["/c"]))]);
    assert_eq!(stand.told(third), ["created /", "-8 ok"], "what is told needs no room");
}

/// ZooKeeper divides what may be under way among those that vote: a leader has as much to do with each as with itself.
#[test]
fn writes_under_way_are_divided_among_the_voters() {
    for (part, expected) in [(Part::Leader, 4), (Part::Follower, 4), (Part::Observer, 12)] {
        let mut stand = Stand::idle(1, |options| options.outstanding_max = 12);
        stand.serve_as(part);
        let (client, _) = stand.client();
        let many: Vec<_> = (1..=40).map(|xid| (xid, create_with("/s-", 2))).collect();
        stand.request(client, &many);
        assert_eq!(stand.submitted.len(), expected, "{part:?}, of four voters or beside three");
        stand.settle();
        assert_eq!(stand.told(client).len(), 40);
    }
}

/// Room that comes when a client is first in line which has gone meanwhile is for the next.
#[test]
fn clients_that_have_gone_while_they_waited_take_nobodys_turn() {
    let mut stand = Stand::with(true, |options| options.outstanding_max = 1);
    let clients: Vec<_> = (0..5).map(|_| stand.client().0).collect();
    for client in &clients {
        stand.request(*client, &[(1, create_with("/s-", 2))]);
    }
    assert_eq!(stand.submitted.len(), 1);
    for gone in &clients[1..4] {
        stand.tell(Event::Disconnected(*gone));
    }
    stand.commit();
    assert_eq!(stand.submitted.len(), 1, "the last one's");
    stand.settle();
    assert_eq!(stand.told(clients[4]), ["1 ok"]);
}

/// As to their clients, such a leader is a server that looks for one; its followers' clients write through it.
#[test]
fn a_leader_that_is_to_serve_no_clients_closes_them_unless_it_votes_alone() {
    let none = |options: &mut quorate_service::Options| options.leader_serves = false;
    let mut leader = Stand::with(true, none);
    let client = leader.connect();
    leader.ask(client, 0, 4000);
    assert!(leader.is_closed_without_a_byte(client) && leader.submitted.is_empty());
    let probe = leader.connect();
    leader.send(probe, vec![Frame::Word(*b"srvr")]);
    assert!(leader.text(probe).contains("not currently serving requests"));
    leader.open_by(quorate_core::id::LinkId(7), 0x0200_0000_0000_0001, 4000);
    assert!(leader.tree().session(0x0200_0000_0000_0001).is_some());

    let mut follower = Stand::with(false, none);
    follower.client();
    let mut alone = Stand::idle(1, none);
    alone.serve_alone();
    alone.client();
}

/// So much is written to a client.
fn write(stand: &mut Stand, client: ClientId, bytes: usize) {
    stand.tell(Event::Written { client, bytes });
}

/// A client that speaks and reads nothing would keep its session, and what waits for it, for ever.
#[test]
fn a_client_that_takes_nothing_for_its_time_out_is_cut_off() {
    let mut stand = Stand::new(true);
    let (deaf, session) = stand.client();
    let (slow, _) = stand.client();
    for client in [deaf, slow] {
        write(&mut stand, client, 1 << 20);
        stand.request(client, &[(1, get("/", false))]);
    }
    for half in 1..=20 {
        stand.wait(TICK);
        for client in [deaf, slow] {
            stand.request(client, &[(half, Request::Ping)]);
        }
        if half % 4 == 0 {
            write(&mut stand, slow, 1);
        }
    }
    let told = stand.told(deaf);
    assert_eq!(told.last().map(String::as_str), Some("closed"));
    assert_eq!(told.len(), 9, "seven pings in less than four seconds: {told:?}");
    assert_eq!(stand.told(slow).len(), 21, "a byte in two seconds is a sign of it");
    assert!(stand.tree().session(session).is_some(), "its session lives for as long as it may");
    assert_eq!(figure(&mut stand, "clients_cut_off"), 1);
}

/// This server stood still, and what it was to be told of came late.
#[test]
fn a_server_that_stood_still_cuts_nobody_off() {
    // The shortest time-out is two ticks: a pause that is no longer than that is most of it.
    for (timeout_ms, pause) in [(4000, TICK * 20), (1000, TICK * 2)] {
        let mut stand = Stand::new(true);
        let client = stand.connect();
        stand.ask(client, 0, timeout_ms);
        stand.settle();
        assert!(stand.answer(client).is_some());
        write(&mut stand, client, 1 << 20);
        stand.call(client, set("/", -1)).unwrap();
        stand.now = stand.now + pause;
        stand.request(client, &[(2, Request::Ping)]);
        assert_eq!(stand.told(client), ["-2 ok"], "{pause:?}");
    }
}
