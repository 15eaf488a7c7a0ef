//! All servers of an ensemble end, and servers of the other kind go on in their directories: with the sessions that
//! lived, and with whatever else stands in a tree.

mod unfinished;
mod unreadable;

use std::time::Instant;

use bytes::Bytes;
use quorate_service::wire::{Request, Response, op};
use quorate_tokio::core::zxid::Zxid;
use quorate_znode::acl::Acl;

use super::digests::digests_agree;
use super::tree::held_by;
use crate::common::until;
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{
    Client, Connected, Ticket, auth, create, delete, ephemeral, exists, get, plain, set,
};

const SESSION_MS: i32 = 10_000;
/// How long nodes live that must have gone when the next servers serve, or soon.
const BRIEF_MS: i64 = 500;
/// Below the one is what goes by itself. The other's times are those of each Java server's start.
const PASSING: [&str; 2] = ["/due", "/zookeeper/config"];

/// What one kind leaves to the other.
struct Estate {
    /// The node that all is below.
    root: String,
    /// It goes on.
    heir: Client,
    /// It has ephemeral nodes, and its client never comes back.
    lost: Client,
    /// What all servers had, but for [`PASSING`].
    tree: Vec<String>,
}

fn list(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms, scheme: scheme.into(), id: id.into() }
}

fn with_list(path: &str, acl: Vec<Acl>) -> Request {
    Request::Create {
        op: op::CREATE,
        path: path.into(),
        data: None,
        acl: Some(acl),
        flags: 0,
        ttl: None,
    }
}

fn with_data(path: &str, data: &'static [u8]) -> Request {
    Request::Create {
        op: op::CREATE2,
        path: path.into(),
        data: Some(Bytes::from_static(data)),
        acl: Some(vec![Acl::world(31)]),
        flags: 0,
        ttl: None,
    }
}

/// What all servers hold, line by line, without what passes.
fn lasting(servers: &Servers) -> Vec<String> {
    let lasts = |line: &&str| !PASSING.iter().any(|path| line.starts_with(path));
    let held =
        |id| -> Vec<_> { held_by(servers, id).lines().filter(lasts).map(str::to_owned).collect() };
    let first = held(1);
    for id in servers.ids().skip(1) {
        same(&first, &held(id));
    }
    first
}

/// Compares two trees.
fn same(left: &[String], right: &[String]) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left, right);
    }
    assert_eq!(left.len(), right.len(), "{:?}", left.last().max(right.last()));
}

fn data(client: &mut Client, path: &str) -> String {
    let Ok(Response::Data { data, .. }) = client.ask(&get(path)) else { panic!("{path}") };
    String::from_utf8(data.unwrap().to_vec()).unwrap()
}

impl Estate {
    fn make(servers: &Servers, root: &str, heir: Option<Client>) -> Self {
        let at = |name: &str| format!("{root}{name}");
        let mut heir = heir.unwrap_or_else(|| Client::open(servers.port(1), SESSION_MS));
        let mut lost = Client::open(servers.port(2), SESSION_MS);
        for request in [
            plain(root),
            plain(&at("/plain")),
            set(&at("/plain"), "changed"),
            with_data(&at("/empty"), b""),
            create(op::CREATE, &at("/number-"), 2),
            ephemeral(&at("/mine")),
            create(op::CREATE2, &at("/mine-"), 3),
            create(op::CREATE_CONTAINER, &at("/box"), 4),
            plain(&at("/box/in")),
            create(op::CREATE_CONTAINER, &at("/unused"), 4),
            create(op::CREATE_TTL, &at("/ttl"), 5),
            plain(&at("/gone")),
            delete(&at("/gone")),
            auth("bob:secret"),
            with_list(&at("/bob"), vec![list(31, "auth", "")]),
            with_list(&at("/more"), vec![list(1, "world", "anyone"), list(31, "auth", "")]),
            with_list(&at("/local"), vec![list(31, "ip", "127.0.0.1"), list(4, "digest", "a:b")]),
            with_list(&at("/again"), vec![list(31, "auth", "")]),
        ] {
            heir.ask(&request).unwrap_or_else(|err| panic!("{err}: {request:?}"));
        }
        let quota = format!("/zookeeper/quota{root}");
        for request in [
            plain(&quota),
            with_data(&format!("{quota}/zookeeper_limits"), b"count=100,bytes=100000"),
            with_data(&format!("{quota}/zookeeper_stats"), b"count=0,bytes=0"),
            set(&at("/plain"), "of another length"),
        ] {
            heir.ask(&request).unwrap_or_else(|err| panic!("{err}: {request:?}"));
        }
        for request in [plain("/due"), ephemeral(&format!("/due/{}", &root[1..]))] {
            drop(lost.ask(&request));
        }
        let tree = lasting(servers);
        let mut brief = create(op::CREATE_TTL, &format!("/due/brief-{}", &root[1..]), 5);
        if let Request::Create { ttl, .. } = &mut brief {
            *ttl = Some(BRIEF_MS);
        }
        lost.ask(&brief).unwrap();
        Self { root: root.into(), heir, lost, tree }
    }

    fn at(&self, name: &str) -> String {
        format!("{}{name}", self.root)
    }
}

/// What has become of it, at servers that started at `since` at the earliest.
fn is_there(servers: &Servers, estate: &Estate, since: Instant) -> Client {
    let at = |name: &str| estate.at(name);
    // Its client was at a server that may not be the leader's.
    let mut heir = estate.heir.moved(servers.port(3));
    assert_eq!(heir.ticket.session, estate.heir.ticket.session);
    let stranger = Ticket { password: vec![1; 16].into(), ..heir.ticket.clone() };
    let refused = Client::settled(servers.port(1), &stranger, Zxid::ZERO);
    assert!(matches!(refused, Connected::Refused), "{refused:?}");
    same(&lasting(servers), &estate.tree);
    expires(&mut heir, servers.port(1), estate, since);

    let Ok(Response::Stat(mine)) = heir.ask(&exists(&at("/mine"))) else { panic!("no /mine") };
    assert_eq!(mine.ephemeral_owner, heir.ticket.session);
    let Ok(Response::Created { path }) = heir.ask(&create(op::CREATE, &at("/number-"), 2)) else {
        panic!("no number")
    };
    let Ok(Response::Stat(root)) = heir.ask(&exists(&estate.root)) else { panic!("no root") };
    // A node that was deleted makes two changes, but the numbers follow the creations.
    assert!(path.ends_with(&format!("{:010}", created_before(&root))), "{path}: {root:?}");
    assert_eq!(heir.ask(&get(&at("/bob"))).map(drop), Err(-102), "its proof was the connection's");
    heir.ask(&auth("bob:secret")).unwrap();
    heir.ask(&set(&at("/bob"), "mine")).unwrap();

    quota_goes_on(&mut heir, &estate.root);

    heir.ask(&delete(&at("/box/in"))).unwrap();
    for gone in [at("/box"), format!("/due/brief-{}", &estate.root[1..])] {
        until("what is due", || (heir.ask(&exists(&gone)) == Err(-101)).then_some(()));
    }
    for stays in ["/unused", "/ttl", "/mine"] {
        heir.ask(&exists(&at(stays))).unwrap();
    }
    digests_agree(servers);
    heir
}

/// How many numbers a parent has given before the newest of its children.
fn created_before(parent: &quorate_service::wire::Stat) -> i32 {
    // Of the children that were made one is deleted, which is the other half of a change.
    (parent.cversion + parent.num_children) / 2 - 1
}

/// The numbers of a quota follow what is written.
fn quota_goes_on(client: &mut Client, root: &str) {
    let stats = format!("/zookeeper/quota{root}/zookeeper_stats");
    let count = |text: &str| -> i64 {
        let number = text.split(',').find_map(|pair| pair.strip_prefix("count=")).unwrap();
        number.parse().unwrap()
    };
    let before = data(client, &stats);
    let fresh = format!("{root}/counted");
    client.ask(&plain(&fresh)).unwrap();
    assert_eq!(count(&data(client, &stats)), count(&before) + 1, "{before}");
    client.ask(&delete(&fresh)).unwrap();
    assert_eq!(data(client, &stats), before);
}

/// The session that nobody goes on with has its whole time, and no more for ever.
fn expires(heir: &mut Client, port: u16, estate: &Estate, since: Instant) {
    let node = exists(&format!("/due/{}", &estate.root[1..]));
    until("the end of the session", || (heir.ask(&node) == Err(-101)).then_some(()));
    let lived = since.elapsed();
    assert!(lived.as_millis() >= SESSION_MS.unsigned_abs().into(), "{lived:?}");
    let ended = Client::settled(port, &estate.lost.ticket, Zxid::ZERO);
    assert!(matches!(ended, Connected::Refused), "{ended:?}");
}

/// From Java to quorate and back.
fn directories_change_hands(killed: bool) {
    if !java_is_here() {
        return;
    }
    let mut servers = Servers::mixed(&[(Kind::Java, PARTICIPANT); 3]);
    let mut heir = None;
    for (kind, root) in [(Kind::Quorate, "/of-java"), (Kind::Java, "/of-quorate")] {
        let estate = Estate::make(&servers, root, heir);
        let since = servers.replace_all(kind, killed);
        heir = Some(is_there(&servers, &estate, since));
    }
}

#[test]
fn directories_with_all_that_lives_in_them_change_hands() {
    directories_change_hands(false);
}

#[test]
fn directories_of_servers_that_were_killed_change_hands() {
    directories_change_hands(true);
}
