//! Every operation of clients through every server: the same results, and then the same tree.

use std::fmt::Write as _;

use bytes::Bytes;
use quorate_service::wire::{MultiResult, Request, Response, Stat, event, op};
use quorate_tokio::core::zxid::Zxid;
use quorate_znode::acl::Acl;

use super::digests::digests_agree;
use super::tree::{sorted, the_tree};
use super::{JAVA_LEADS, QUORATE_LEADS};
use crate::common::until;
use crate::ensemble::{Kind, Servers, java_is_here};
use crate::raw::{Client, auth, create, delete, exists, get, plain, set};

/// What every server answers to what is asked below.
const EXPECTED: &str = include_str!("operations.txt");

/// What one server answers, in lines that say nothing of times, zxids and the server's own node.
struct Script {
    client: Client,
    /// The node that all is below.
    root: String,
    said: String,
}

impl Script {
    fn begin(servers: &Servers, id: usize) -> Self {
        let client = Client::open(servers.port(id), 10_000);
        Self { client, root: format!("/s{id}"), said: String::new() }
    }

    /// A node below this server's own.
    fn at(&self, name: &str) -> String {
        format!("{}{name}", self.root)
    }

    fn ask(&mut self, what: &str, request: &Request) {
        let answer = self.client.ask(request);
        self.note(what, answer);
    }

    fn note(&mut self, what: &str, answer: Result<Response, i32>) {
        let answer = match answer {
            Ok(response) => self.shown(&response),
            Err(err) => err.to_string(),
        };
        let answer = answer.replace(&self.root, "");
        writeln!(self.said, "{what}: {answer}").unwrap();
        for event in std::mem::take(&mut self.client.events) {
            let path = event.path.replace(&self.root, "");
            writeln!(self.said, "  event {} {path}", event.kind).unwrap();
        }
    }

    fn shown(&self, response: &Response) -> String {
        match response {
            Response::Created { path } => path.clone(),
            Response::Created2 { path, stat } => format!("{path} {}", self.stat(stat)),
            Response::Stat(stat) => self.stat(stat),
            Response::Data { data, stat } => format!("{data:?} {}", self.stat(stat)),
            Response::Children(names) => format!("{:?}", sorted(names)),
            Response::Children2 { names, stat } => {
                format!("{:?} {}", sorted(names), self.stat(stat))
            }
            Response::Acl { acl, stat } => {
                let entry = |acl: &Acl| format!("{}:{}:{}", acl.scheme, acl.id, acl.perms);
                let acl: Vec<_> = acl.iter().flatten().map(entry).collect();
                format!("{acl:?} {}", self.stat(stat))
            }
            Response::Multi(results) => {
                let results: Vec<_> = results.iter().map(|result| self.result(result)).collect();
                results.join(", ")
            }
            Response::Identities(all) => {
                let all: Vec<_> =
                    all.iter().map(|(scheme, user)| format!("{scheme}:{user}")).collect();
                format!("{:?}", sorted(&all))
            }
            Response::Done | Response::Synced { .. } | Response::Number(_) | Response::Token(_) => {
                format!("{response:?}")
            }
        }
    }

    fn stat(&self, stat: &Stat) -> String {
        let Stat { version, cversion, aversion, data_length, num_children, .. } = stat;
        let own = match stat.ephemeral_owner {
            0 => "",
            own if own == self.client.ticket.session => ", mine",
            _ => ", another's",
        };
        let changed = if stat.mzxid == stat.czxid { "" } else { ", changed" };
        format!(
            "({version} {cversion} {aversion}, {data_length} bytes, {num_children} children{own}{changed})"
        )
    }

    fn result(&self, result: &MultiResult) -> String {
        match result {
            MultiResult::Created { path } => path.clone(),
            MultiResult::Created2 { path, stat } => format!("{path} {}", self.stat(stat)),
            MultiResult::DataSet { stat } => self.stat(stat),
            MultiResult::Data { data, stat } => format!("{data:?} {}", self.stat(stat)),
            MultiResult::Children { names } => format!("{:?}", sorted(names)),
            MultiResult::Failed { err } => err.to_string(),
            MultiResult::Deleted | MultiResult::Checked => format!("{result:?}"),
        }
    }
}

fn list(scheme: &str, id: &str) -> Acl {
    Acl { perms: 31, scheme: scheme.into(), id: id.into() }
}

fn set_acl(path: String, scheme: &str, id: &str) -> Request {
    Request::SetAcl { path, acl: Some(vec![list(scheme, id)]), version: -1 }
}

fn creations(script: &mut Script) {
    let root = script.root.clone();
    script.ask("create", &plain(&root));
    script.ask("create again", &plain(&root));
    script.ask("create2", &create(op::CREATE2, &script.at("/plain"), 0));
    for (op, name, flags) in [
        (op::CREATE, "/e", 1),
        (op::CREATE, "/q-", 2),
        (op::CREATE, "/q-", 3),
        (op::CREATE2, "/e2", 1),
        (op::CREATE2, "/q-", 2),
        (op::CREATE2, "/q-", 3),
        (op::CREATE_CONTAINER, "/container", 4),
        (op::CREATE_TTL, "/ttl", 5),
        (op::CREATE_TTL, "/ttl-", 6),
        (op::CREATE, "/none/below", 0),
        (op::CREATE, "/e/below", 0),
        (op::CREATE, "/plain/./below", 0),
        (op::CREATE, "/plain/\u{1}", 0),
    ] {
        let path = script.at(name);
        script.ask(&format!("create {op} {flags} {name:?}"), &create(op, &path, flags));
    }
    for (name, data) in [("/null", None), ("/empty", Some(Bytes::new()))] {
        let (path, acl) = (script.at(name), Some(vec![Acl::world(31)]));
        let request = Request::Create { op: op::CREATE, path, data, acl, flags: 0, ttl: None };
        script.ask(name, &request);
        script.ask("read", &get(&script.at(name)));
    }
    let (path, acl) = (script.at("/no-list"), Some(Vec::new()));
    let none = Request::Create { op: op::CREATE, path, data: None, acl, flags: 0, ttl: None };
    script.ask("an empty list", &none);
}

fn reads(script: &mut Script) {
    for name in ["", "/plain", "/e", "/container", "/ttl", "/none"] {
        let (path, watch) = (script.at(name), false);
        script.ask(&format!("exists {name:?}"), &exists(&path));
        script.ask("get", &get(&path));
        script.ask("children", &Request::GetChildren { path: path.clone(), watch });
        script.ask("children2", &Request::GetChildren2 { path: path.clone(), watch });
        script.ask("acl", &Request::GetAcl { path: path.clone() });
        script.ask("descendants", &Request::GetAllChildrenNumber { path: path.clone() });
        let missing = Request::GetData { path: script.at("/none"), watch };
        let both = vec![get(&path), missing, Request::GetChildren { path, watch }];
        script.ask("multi-read", &Request::MultiRead(both));
    }
    script.ask("ephemerals", &Request::GetEphemerals { prefix: Some(script.at("/e")) });
    script.ask("whoami", &Request::WhoAmI);
    script.ask("sync", &Request::Sync { path: Some("/".into()) });
}

fn writes(script: &mut Script) {
    let path = script.at("/plain");
    let with = |version| Request::SetData { path: path.clone(), data: None, version };
    script.ask("set", &set(&path, "more"));
    script.ask("set 1", &with(1));
    script.ask("set 1 again", &with(1));
    script.ask("set nothing", &set(&script.at("/none"), ""));
    script.ask("delete a version", &Request::Delete { path: path.clone(), version: 7 });
    script.ask("create below", &plain(&script.at("/plain/below")));
    script.ask("delete not empty", &delete(&path));
    script.ask("delete below", &delete(&script.at("/plain/below")));
    script.ask("delete nothing", &delete(&script.at("/none")));
    script.ask("delete /", &delete("/"));

    let check = |path: String, version| Request::Check { path, version };
    let all = vec![
        create(op::CREATE, &script.at("/m"), 0),
        create(op::CREATE_CONTAINER, &script.at("/mc"), 4),
        create(op::CREATE_TTL, &script.at("/mt"), 5),
        create(op::CREATE, &script.at("/m/e-"), 3),
        set(&script.at("/m"), "1"),
        check(script.at("/m"), 1),
        delete(&script.at("/mc")),
    ];
    script.ask("multi", &Request::Multi(all));
    let refused = vec![
        set(&script.at("/m"), "2"),
        check(script.at("/m"), 2),
        create(op::CREATE, &script.at("/m/e-"), 2),
        check(script.at("/m"), 7),
        delete(&script.at("/m")),
    ];
    script.ask("multi that fails", &Request::Multi(refused));
    script.ask("what it left", &get(&script.at("/m")));
    script.ask("multi of nothing", &Request::Multi(Vec::new()));
    script.ask("number behind", &create(op::CREATE, &script.at("/m/e-"), 2));
}

/// As long as a request may be.
fn long_data(script: &mut Script) {
    let path = script.at("/long");
    script.ask("short", &plain(&path));
    let data = Some(Bytes::from(vec![7; 1_048_500]));
    script.ask("set long", &Request::SetData { path: path.clone(), data, version: -1 });
    script.ask("exists", &exists(&path));
    script.ask("set short", &set(&path, ""));
}

/// A leader of ZooKeeper 3.8 notes no list of permissions in its record of a change: until it has applied the change
/// itself, which may be after a follower has, it checks what comes next against the list before.
fn the_leader_has([here, leader]: &mut [Client; 2], path: &str) {
    let wanted = here.ask(&exists(path));
    until("the leader has it", || (leader.ask(&exists(path)) == wanted).then_some(()));
}

/// `readers`: at the same server and at the leader, who may do everything.
fn permissions(script: &mut Script, stranger: &mut Client, readers: &mut [Client; 2]) {
    let path = script.at("/guarded");
    script.ask("guarded", &plain(&path));
    script.ask("auth list of nobody", &set_acl(path.clone(), "auth", ""));
    script.ask("auth", &auth("bob:secret"));
    script.ask("whoami", &Request::WhoAmI);
    for (scheme, id) in [
        ("world", "anyone"),
        ("world", "somebody"),
        ("ip", "127.0.0.1"),
        ("ip", "127.0.0.0/8"),
        ("ip", "no address"),
        ("digest", "no digest"),
        ("digest", "eve:unknown"),
    ] {
        let fresh = script.at(&format!("/{scheme}-{}", id.len()));
        script.ask(&format!("{scheme} {id}"), &plain(&fresh));
        script.ask("its list", &set_acl(fresh.clone(), scheme, id));
        script.ask("as it is", &Request::GetAcl { path: fresh.clone() });
        the_leader_has(readers, &fresh);
        script.ask("its use", &set(&fresh, "more"));
    }
    script.ask("auth list", &set_acl(path.clone(), "auth", ""));
    script.ask("as it is", &Request::GetAcl { path: path.clone() });
    the_leader_has(readers, &path);
    script.ask("own use", &set(&path, "mine"));
    for (who, proof) in
        [("nobody", None), ("wrong", Some("bob:wrong")), ("super", Some("super:test"))]
    {
        if let Some(proof) = proof {
            stranger.ask(&auth(proof)).unwrap();
        }
        stranger.sync();
        for request in [
            get(&path),
            set(&path, who),
            plain(&format!("{path}/{who}")),
            Request::GetAcl { path: path.clone() },
            Request::Multi(vec![set(&path, who), delete(&format!("{path}/nothing"))]),
        ] {
            let answer = stranger.ask(&request);
            script.note(&format!("{who} {}", request.op()), answer);
        }
    }
}

/// Schemes whose identities no server here can prove. Java's leader refuses them where they are not set up.
fn foreign_schemes(script: &mut Script, leader: Kind) {
    for (scheme, id) in [("sasl", "bob"), ("x509", "CN=bob")] {
        let path = script.at(&format!("/{scheme}"));
        script.client.ask(&plain(&path)).unwrap();
        let listed = script.client.ask(&set_acl(path.clone(), scheme, id)).map(drop);
        let expected = if leader == Kind::Java { Err(-114) } else { Ok(()) };
        assert_eq!(listed, expected, "{scheme}");
    }
}

/// Servers of ZooKeeper before 3.8.2 tell no stat of a create2 within a multi. Its transaction is the same.
fn create2_in_a_multi(script: &mut Script, server: Kind) {
    let path = script.at("/m2");
    let request = Request::Multi(vec![create(op::CREATE2, &path, 0), delete(&path)]);
    let Ok(Response::Multi(results)) = script.client.ask(&request) else { panic!("{request:?}") };
    match (server, &results[0]) {
        (Kind::Java, MultiResult::Created { path: made })
        | (_, MultiResult::Created2 { path: made, .. }) => assert_eq!(*made, path),
        (_, other) => panic!("{other:?}"),
    }
}

fn watches(script: &mut Script, other: &mut Client) {
    let path = script.at("/watched");
    script.ask("exists", &Request::Exists { path: path.clone(), watch: true });
    let mut hears = |script: &mut Script, request: &Request| {
        other.ask(request).unwrap();
        let event::WatcherEvent { kind, path } = script.client.event();
        let path = path.replace(&script.root, "");
        writeln!(script.said, "told {kind} {path}").unwrap();
    };
    hears(script, &plain(&path));
    script.ask("get", &Request::GetData { path: path.clone(), watch: true });
    hears(script, &set(&path, "1"));
    script.ask("children", &Request::GetChildren { path: path.clone(), watch: true });
    hears(script, &plain(&script.at("/watched/below")));
    script.ask("persistent", &Request::AddWatch { path: path.clone(), mode: 0 });
    hears(script, &set(&path, "2"));
    hears(script, &set(&path, "3"));
    script.ask("check", &Request::CheckWatches { path: path.clone(), kind: 3 });
    script.ask("remove", &Request::RemoveWatches { path: path.clone(), kind: 3 });
    script.ask("remove again", &Request::RemoveWatches { path: path.clone(), kind: 3 });
    script.ask("recursive", &Request::AddWatch { path: path.clone(), mode: 1 });
    hears(script, &set(&script.at("/watched/below"), "4"));
    hears(script, &delete(&script.at("/watched/below")));
    script.ask("remove", &Request::RemoveWatches { path, kind: 3 });
    for op in [op::SET_WATCHES, op::SET_WATCHES2] {
        let one = |name: &str| vec![Some(script.at(name))];
        let (data, child) = (one("/watched"), one("/watched"));
        let (exist, persistent) = if op == op::SET_WATCHES2 {
            (one("/none"), one("/plain"))
        } else {
            (one("/plain"), Vec::new())
        };
        let again = Request::SetWatches {
            op,
            relative_zxid: Zxid::ZERO,
            data,
            exist,
            child,
            persistent,
            recursive: Vec::new(),
        };
        script.ask(&format!("watches again {op}"), &again);
    }
    hears(script, &set(&script.at("/plain"), "5"));
}

/// The leader alone takes them away, in transactions of its own.
fn what_goes_by_itself(script: &mut Script) {
    let container = script.at("/gone");
    script.ask("container", &create(op::CREATE_CONTAINER, &container, 4));
    script.ask("in it", &plain(&script.at("/gone/in")));
    script.ask("out of it", &delete(&script.at("/gone/in")));
    let mut short = create(op::CREATE_TTL, &script.at("/short"), 5);
    if let Request::Create { ttl, .. } = &mut short {
        *ttl = Some(1);
    }
    script.ask("for a millisecond", &short);
    for name in ["/gone", "/short"] {
        let request = exists(&script.at(name));
        until("what goes by itself", || (script.client.ask(&request) == Err(-101)).then_some(()));
    }
}

fn reconfigure(script: &mut Script, line: &str) {
    let change = Request::Reconfig {
        joining: Some(line.to_owned()),
        leaving: None,
        members: None,
        version: -1,
    };
    let note = |script: &mut Script, what: &str| {
        let answer = match script.client.ask(&change) {
            Ok(_) => "done".to_owned(),
            Err(err) => err.to_string(),
        };
        writeln!(script.said, "{what}: {answer}").unwrap();
    };
    note(script, "reconfig as bob");
    script.ask("super", &auth("super:test"));
    note(script, "reconfig as super");
    script.ask("whoami", &Request::WhoAmI);
}

fn every_operation_through_every_server(seats: &[(Kind, &str)]) {
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(seats);
    let leader = servers.kind(servers.leader());
    let mut sessions = Vec::new();
    for id in servers.ids() {
        let mut script = Script::begin(&servers, id);
        let mut other = Client::open(servers.port(id % seats.len() + 1), 10_000);
        let mut stranger = Client::open(servers.port(id), 10_000);
        creations(&mut script);
        reads(&mut script);
        writes(&mut script);
        long_data(&mut script);
        let mut readers = [id, servers.leader()].map(|at| Client::open(servers.port(at), 10_000));
        for reader in &mut readers {
            reader.ask(&auth("super:test")).unwrap();
        }
        permissions(&mut script, &mut stranger, &mut readers);
        watches(&mut script, &mut other);
        what_goes_by_itself(&mut script);
        reconfigure(&mut script, &servers.member(3));
        for (said, expected) in script.said.lines().zip(EXPECTED.lines()) {
            assert_eq!(said, expected, "through server {id}");
        }
        assert_eq!(script.said, EXPECTED, "through server {id}");
        foreign_schemes(&mut script, leader);
        create2_in_a_multi(&mut script, servers.kind(id));
        sessions.push(script);
    }
    the_tree(&servers);
    for (id, mut script) in servers.ids().zip(sessions) {
        script.client.ask(&Request::CloseSession).unwrap();
        for other in servers.ids() {
            let mut witness = Client::open(servers.port(other), 10_000);
            witness.sync();
            assert_eq!(witness.ask(&exists(&format!("/s{id}/e"))), Err(-101));
        }
    }
    digests_agree(&servers);
    assert_eq!(the_tree(&servers).matches("/s1/e ").count(), 0);
}

#[test]
fn every_operation_is_answered_alike_by_quorates_follower_and_observer_of_a_java_leader() {
    every_operation_through_every_server(&JAVA_LEADS);
}

#[test]
fn every_operation_is_answered_alike_by_a_java_follower_and_observer_of_quorates_leader() {
    every_operation_through_every_server(&QUORATE_LEADS);
}
