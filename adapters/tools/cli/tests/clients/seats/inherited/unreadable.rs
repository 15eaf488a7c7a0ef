//! What a client could make a Java server write to its log, which Java servers cannot read again: servers of ours go on
//! in its directory.

use bytes::{BufMut as _, BytesMut};
use quorate_service::wire::op;

use super::lasting;
use crate::common::{Ensemble, Process, read};
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, create, exists, get, plain, set};

const SESSION_MS: i32 = 10_000;

/// A check by itself, which belongs into a multi.
fn lone_check(client: &mut Client, path: &str) {
    let mut body = BytesMut::new();
    put(&mut body, path.as_bytes());
    body.put_i32(-1);
    client.send_raw(op::CHECK, &body);
}

/// A TTL node by its operation, and none by its flags.
fn ttl_without_flags(client: &mut Client, path: &str) {
    let mut body = BytesMut::new();
    put(&mut body, path.as_bytes());
    put(&mut body, b"data");
    body.put_i32(1);
    body.put_i32(31);
    put(&mut body, b"world");
    put(&mut body, b"anyone");
    body.put_i32(0);
    body.put_i64(-1);
    client.send_raw(op::CREATE_TTL, &body);
}

fn put(body: &mut BytesMut, bytes: &[u8]) {
    body.put_i32(i32::try_from(bytes.len()).unwrap());
    body.put_slice(bytes);
}

/// A Java server by itself, whose transactions are committed once they are in its log.
fn alone() -> (Ensemble, Process) {
    let ensemble = Ensemble::new(&[PARTICIPANT], "extendedTypesEnabled=true");
    let java = ensemble.java(1);
    ensemble.led();
    (ensemble, java)
}

/// A server of ours in the directory that it left.
fn inherited(ensemble: &Ensemble, java: Process) -> (Process, Client) {
    drop(java);
    let server = ensemble.serve(1);
    ensemble.led();
    (server, Client::open(ensemble.client[0], SESSION_MS))
}

#[test]
fn a_lone_check_in_the_log_of_a_java_server_has_no_effect() {
    if !java_is_here() {
        return;
    }
    let (ensemble, java) = alone();
    let mut client = Client::open(ensemble.client[0], SESSION_MS);
    client.ask(&plain("/before")).unwrap();
    lone_check(&mut client, "/before");
    client.reply();
    let mut client = Client::open(ensemble.client[0], SESSION_MS);
    client.ask(&plain("/behind")).unwrap();
    let (_server, mut again) = inherited(&ensemble, java);
    for path in ["/before", "/behind"] {
        again.ask(&get(path)).unwrap();
    }
    // Its session is there, with what came behind the poison.
    let mut moved = client.moved(ensemble.client[0]);
    moved.ask(&set("/behind", "more")).unwrap();
    let log = read(&ensemble.log(1));
    assert!(log.contains("a check that is not within a multi; it has no effect"), "{log}");
}

#[test]
fn a_ttl_node_without_its_flags_in_the_log_of_a_java_server_stops_no_one() {
    if !java_is_here() {
        return;
    }
    let (ensemble, java) = alone();
    let mut client = Client::open(ensemble.client[0], SESSION_MS);
    client.ask(&plain("/before")).unwrap();
    ttl_without_flags(&mut client, "/poison");
    // It may answer, close the connection, or be at its end.
    client.reply();
    let (_server, mut again) = inherited(&ensemble, java);
    again.ask(&get("/before")).unwrap();
    assert_eq!(again.ask(&exists("/poison")), Err(-101));
    again.ask(&create(op::CREATE_TTL, "/behind", 5)).unwrap();
    let log = read(&ensemble.log(1));
    assert!(log.contains("a TTL of -1 ms; nothing is created"), "{log}");
}

#[test]
fn a_lone_check_that_took_a_java_leader_its_quorum_is_no_harm_in_any_directory() {
    if !java_is_here() {
        return;
    }
    let mut servers = Servers::mixed(&[(Kind::Java, PARTICIPANT); 3]);
    let leader = servers.leader();
    let mut client = Client::open(servers.port(leader), SESSION_MS);
    client.ask(&plain("/before")).unwrap();
    lone_check(&mut client, "/before");
    assert!(client.reply().is_none(), "nobody can read its proposal");
    servers.replace_all(Kind::Quorate, true);
    let mut client = Client::open(servers.port(leader), SESSION_MS);
    client.sync();
    client.ask(&set("/before", "more")).unwrap();
    lasting(&servers);
}
