//! Requests that end servers of ZooKeeper, or whole ensembles: through servers of either kind, under leaders of either
//! kind, and as transactions that a Java leader has committed.

use std::fmt::Write as _;

use bytes::{BufMut as _, Bytes, BytesMut};
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

use super::digests::{differed, digests_agree, digests_are_equal};
use super::tree::the_tree;
use super::{JAVA_LEADS, QUORATE_LEADS, Random};
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, create, delete, plain, set};

const LONG: i32 = 20_000;

/// An operation, and the bytes of its body.
struct Poison {
    what: &'static str,
    op: i32,
    body: Vec<u8>,
}

fn poison(what: &'static str, request: &Request) -> Poison {
    let mut body = BytesMut::new();
    request.encode(&mut body);
    Poison { what, op: request.op(), body: body.to_vec() }
}

fn with_data(mut request: Request, set: Option<Bytes>) -> Request {
    if let Request::Create { data, .. } | Request::SetData { data, .. } = &mut request {
        *data = set;
    }
    request
}

/// A TTL node whose flags say that it is a plain one, and whose TTL is none.
fn no_ttl(path: &str) -> Request {
    let mut request = create(op::CREATE_TTL, path, 0);
    if let Request::Create { ttl, .. } = &mut request {
        *ttl = Some(-1);
    }
    request
}

const STATS: &str = "/zookeeper/quota/q/zookeeper_stats";

/// A node's path as deleteContainer has it: bytes that end with the frame.
fn container(path: &str) -> Poison {
    Poison { what: "deleteContainer", op: op::DELETE_CONTAINER, body: path.as_bytes().to_vec() }
}

fn all() -> Vec<Poison> {
    let mut garbled = BytesMut::new();
    garbled.put_i32(i32::MAX);
    let garbled = garbled.to_vec();
    let text = Some(Bytes::from_static(b"count=many"));
    let many = (0..1000).map(|n| expanding(&format!("/n{n}"))).collect();
    vec![
        poison("no TTL", &no_ttl("/poison")),
        poison("check", &Request::Check { path: "/".into(), version: 0 }),
        container("/q"),
        Poison { what: "a set that ends early", op: op::SET_DATA, body: garbled.clone() },
        Poison { what: "a multi that ends early", op: op::MULTI, body: garbled },
        poison("strange flags", &create(op::CREATE, "/poison", 9)),
        poison("flags of a TTL", &create(op::CREATE2, "/poison", 5)),
        poison("no container", &create(op::CREATE_CONTAINER, "/poison", 0)),
        poison("a quota of text", &with_data(plain(STATS), text.clone())),
        poison("a quota of nothing", &with_data(plain(STATS), None)),
        poison("a quota in a multi", &Request::Multi(vec![with_data(plain(STATS), text)])),
        poison("no list in a multi", &Request::Multi(vec![without_a_list("/poison")])),
        poison("a deep path", &plain(&"/a".repeat(2001))),
        poison("more than fits", &Request::Multi(many)),
    ]
}

fn without_a_list(path: &str) -> Request {
    let mut request = plain(path);
    if let Request::Create { acl, .. } = &mut request {
        *acl = None;
    }
    request
}

/// Its list has one entry for each identity of who asks.
fn expanding(path: &str) -> Request {
    let mut request = plain(path);
    if let Request::Create { acl, .. } = &mut request {
        *acl = Some(vec![Acl { perms: 31, scheme: "auth".into(), id: "".into() }]);
    }
    request
}

fn many_identities(client: &mut Client) {
    for n in 0..100 {
        let proof = Bytes::from(format!("user{n}:x"));
        let scheme = Some("digest".into());
        client.ask(&Request::Auth { kind: 0, scheme, auth: proof }).unwrap();
    }
}

/// What a client is told of each, and whether its connection ends; everybody else goes on.
fn through(servers: &Servers, id: usize, said: &mut String) {
    let mut other = Client::open(servers.port(id), LONG);
    for (n, Poison { what, op, body }) in all().into_iter().enumerate() {
        let mut client = Client::open(servers.port(id), LONG);
        many_identities(&mut client);
        client.send_raw(op, &body);
        let err = client.reply().unwrap().0.err;
        let closed = client.try_ask(&set("/q", "behind")).is_none();
        let closed = if closed { ", closed" } else { "" };
        writeln!(said, "{what}: {err}{closed}").unwrap();
        other.ask(&set("/q", &n.to_string())).unwrap();
    }
}

fn every_poison_through_every_server(seats: &[(Kind, &str)], expected: &str) {
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(seats);
    let leader = servers.leader();
    let mut client = Client::open(servers.port(leader), LONG);
    for path in ["/q", "/zookeeper/quota/q"] {
        client.ask(&plain(path)).unwrap();
    }
    for id in servers.ids().filter(|id| *id != leader) {
        let mut said = String::new();
        through(&servers, id, &mut said);
        assert_eq!(said, expected, "through server {id}");
    }
    // It has led all the time. (The first client's session may have ended meanwhile: it sends no pings.)
    Client::open(servers.port(leader), LONG).ask(&set("/q", "last")).unwrap();
    assert_eq!(servers.leader(), leader);
    digests_agree(&servers);
    the_tree(&servers);
}

/// What a client is told of each through a server of ZooKeeper, and then its own; ours ends some connections besides.
const REFUSED: &str = "\
no TTL: -8
check: -6, closed
deleteContainer: -6, closed
a set that ends early: -5
a multi that ends early: -5
strange flags: -8
flags of a TTL: -8
no container: -8
a quota of text: -8
a quota of nothing: -8
a quota in a multi: -8
no list in a multi: 0
a deep path: -8
more than fits: -5
";

#[test]
fn poison_through_java_servers_is_refused_by_quorates_leader_and_their_queues_move_on() {
    // A transaction that says no to a multi says so of its elements.
    let expected = REFUSED.replace(", closed", "").replace("multi: -8", "multi: 0");
    every_poison_through_every_server(&QUORATE_LEADS, &expected);
}

#[test]
fn poison_through_quorates_servers_never_comes_to_a_java_leader() {
    every_poison_through_every_server(&JAVA_LEADS, REFUSED);
}

/// A request that could be, with some bytes changed or cut off.
fn damaged(random: &mut Random) -> (i32, Vec<u8>) {
    let all = [
        plain("/damaged/a"),
        create(op::CREATE2, "/damaged/b-", 2),
        create(op::CREATE_CONTAINER, "/damaged/c", 4),
        create(op::CREATE_TTL, "/damaged/d", 5),
        set("/damaged", "more"),
        delete("/damaged/a"),
        expanding("/damaged/e"),
        Request::SetAcl { path: "/damaged".into(), acl: Some(vec![Acl::world(31)]), version: -1 },
        Request::Multi(vec![plain("/damaged/f"), set("/damaged", "0"), delete("/damaged/f")]),
    ];
    let mut poison = poison("", &all[random.below(all.len())]);
    for _ in 0..random.below(4) {
        let at = random.below(poison.body.len());
        poison.body[at] = [0, 1, 0x7f, 0xff, b'/'][random.below(5)];
    }
    if random.below(3) == 0 {
        poison.body.truncate(random.below(poison.body.len()));
    }
    (poison.op, poison.body)
}

/// A queue that does not move on answers nobody any more.
fn each_damaged_request_is_answered(seats: &[(Kind, &str)]) {
    const COUNT: i32 = 500;
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(seats);
    let leader = servers.leader();
    let mut other = Client::open(servers.port(1), LONG);
    // Access lists are damaged, too, but not of these.
    for path in ["/damaged", "/other", "/digests"] {
        other.ask(&plain(path)).unwrap();
    }
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random(seed);
    for id in servers.ids().filter(|id| *id != leader) {
        let mut client = Client::open(servers.port(id), LONG);
        for _ in 0..COUNT {
            let (op, body) = damaged(&mut random);
            client.send_raw(op, &body);
        }
        for xid in 1..=COUNT {
            let (header, _) = client.reply().unwrap();
            assert_eq!(header.xid, xid, "seed {seed}, at server {id}");
        }
        other.ask(&set("/other", "still")).unwrap();
    }
    assert_eq!(servers.leader(), leader, "seed {seed}");
    digests_agree(&servers);
    the_tree(&servers);
}

#[test]
fn each_damaged_request_through_java_servers_is_answered_in_its_turn_by_quorates_leader() {
    each_damaged_request_is_answered(&QUORATE_LEADS);
}

#[test]
fn each_damaged_request_through_quorates_servers_is_answered_in_its_turn_and_harms_no_java_leader()
{
    each_damaged_request_is_answered(&JAVA_LEADS);
}

/// A Java leader proposes what a client of its own asks, and two of ours follow it: they live, and so does one that takes
/// over its directory.
fn committed_by_a_java_leader(ask: impl Fn(&mut Client)) -> Servers {
    let seats =
        [(Kind::Quorate, PARTICIPANT), (Kind::Quorate, PARTICIPANT), (Kind::Java, PARTICIPANT)];
    let mut servers = Servers::mixed(&seats);
    let mut client = Client::open(servers.port(3), LONG);
    for path in ["/q", "/zookeeper/quota/q"] {
        client.ask(&plain(path)).unwrap();
    }
    ask(&mut client);
    // If it has not ended by itself.
    servers.kill(3);
    servers.leader();
    let mut witness = Client::open(servers.port(1), LONG);
    witness.ask(&set("/q", "without it")).unwrap();
    servers.replace(3, Kind::Quorate);
    // Its own log has it, too.
    servers.restart(1);
    digests_are_equal(&servers);
    servers
}

#[test]
fn a_ttl_that_is_none_ends_the_java_leader_that_proposed_it_and_has_no_effect_here() {
    if !java_is_here() {
        return;
    }
    let servers = committed_by_a_java_leader(|client| {
        assert_eq!(client.try_ask(&no_ttl("/poison")), None);
    });
    assert!(!the_tree(&servers).contains("/poison"));
    assert_eq!(differed(&servers, 2), 0);
    assert!(servers.log(2).contains("a transaction without effect"), "{}", servers.log(2));
}

#[test]
fn a_lone_check_that_a_java_leader_has_proposed_has_no_effect_here() {
    if !java_is_here() {
        return;
    }
    let servers = committed_by_a_java_leader(|client| {
        let check = Request::Check { path: "/".into(), version: 0 };
        assert_eq!(client.try_ask(&check), None);
    });
    the_tree(&servers);
    assert_eq!(differed(&servers, 2), 0);
    assert!(servers.log(2).contains("a transaction without effect"), "{}", servers.log(2));
}

#[test]
fn text_of_a_quota_ends_the_java_leader_that_proposed_it_and_counts_from_0_here() {
    if !java_is_here() {
        return;
    }
    let servers = committed_by_a_java_leader(|client| {
        let text = |text: &'static [u8]| Some(Bytes::from_static(text));
        let limits =
            with_data(plain("/zookeeper/quota/q/zookeeper_limits"), text(b"count=9,bytes=9"));
        client.ask(&limits).unwrap();
        // Created, it is counted; and then it is whatever is set.
        client.ask(&plain(STATS)).unwrap();
        client.ask(&set(STATS, "many")).unwrap();
        assert_eq!(client.try_ask(&plain("/q/below")), None);
    });
    assert!(the_tree(&servers).contains("/q/below "));
    assert_eq!(differed(&servers, 2), 0);
}

/// Where servers of ZooKeeper disagree with their own digests, ours say that they differ, and go on.
#[test]
fn what_a_java_leader_counts_wrongly_is_told_and_followed() {
    if !java_is_here() {
        return;
    }
    let servers = committed_by_a_java_leader(|client| {
        let foreign = create(op::CREATE, "/foreign", 4);
        assert!(client.ask(&foreign).is_ok());
        assert!(client.ask(&create(op::CREATE_CONTAINER, "/plain", 0)).is_ok());
        client.send_raw(op::DELETE_CONTAINER, b"/q");
        client.reply().unwrap();
        client.ask(&plain("/q")).map_or_else(|err| assert_eq!(err, -110), drop);
    });
    assert!(the_tree(&servers).contains("/foreign "));
    assert_eq!(differed(&servers, 2), 2);
}
