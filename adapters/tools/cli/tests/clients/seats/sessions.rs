//! Sessions that are opened at servers of either kind: they move, live on, expire, and end.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread;

use bytes::{Bytes, BytesMut};
use quorate_service::wire::{Request, Response, op};

use super::digests::digests_agree;
use super::{JAVA_LEADS, QUORATE_LEADS};
use crate::common::until;
use crate::ensemble::{Kind, Servers, java_is_here};
use crate::raw::{Client, Connected, ephemeral, exists, get, plain, set};

/// The shortest time-out that these servers grant, in milliseconds: two ticks.
const SHORT: i32 = 1000;
const LONG: i32 = 20_000;
/// The longest: twenty ticks.
const LONGEST: i32 = 10_000;

/// Whether a node is at this server, which has all that the leader had.
fn is_at(client: &mut Client, path: &str) -> bool {
    client.sync();
    match client.ask(&exists(path)) {
        Ok(_) => true,
        Err(-101) => false,
        other => panic!("{path}: {other:?}"),
    }
}

fn witnesses(servers: &Servers) -> Vec<Client> {
    servers.ids().map(|id| Client::open(servers.port(id), LONG)).collect()
}

/// From every server to every other. The old connection ends when it writes, and the session does not.
fn move_about(servers: &Servers) {
    let mut witnesses = witnesses(servers);
    for from in servers.ids() {
        for to in servers.ids().filter(|to| *to != from) {
            let path = format!("/moves-{from}-{to}");
            let mut old = Client::open(servers.port(from), LONG);
            old.ask(&ephemeral(&path)).unwrap();
            let mut wrong = old.ticket.clone();
            wrong.password = Bytes::from(vec![1; 16]);
            let refused = Client::settled(servers.port(to), &wrong, old.seen);
            assert!(matches!(refused, Connected::Refused), "{from} to {to}: {refused:?}");

            let mut new = old.moved(servers.port(to));
            assert_eq!(new.ticket.session, old.ticket.session);
            assert_eq!([old.ticket.timeout_ms, new.ticket.timeout_ms], [LONGEST; 2]);
            new.ask(&set(&path, "moved")).unwrap();
            assert_eq!(old.try_ask(&set(&path, "not moved")), None, "{from} to {to}");
            let Ok(Response::Data { data, stat }) = new.ask(&get(&path)) else { panic!("{path}") };
            assert_eq!(data.as_deref(), Some(&b"moved"[..]));
            assert_eq!((stat.version, stat.ephemeral_owner), (1, new.ticket.session));

            // And back, without a word at the other.
            let mut back = new.moved(servers.port(from));
            back.ask(&set(&path, "back")).unwrap();
            back.ask(&Request::CloseSession).unwrap();
            assert_eq!(new.reply(), None, "its end closes every connection");
            for witness in &mut witnesses {
                assert!(!is_at(witness, &path), "{from} to {to}");
            }
            for id in servers.ids() {
                let closed = Client::settled(servers.port(id), &back.ticket, back.seen);
                assert!(matches!(closed, Connected::Refused), "at {id}: {closed:?}");
            }
        }
    }
}

/// Whoever says nothing for its time-out expires; whoever pings meanwhile does not, at whatever server.
fn live_and_expire(servers: &Servers) {
    let mut living = Vec::new();
    for id in servers.ids() {
        let mut client = Client::open(servers.port(id), SHORT);
        client.ask(&ephemeral(&format!("/lives-{id}"))).unwrap();
        living.push(client);
    }
    let mut witnesses = witnesses(servers);
    for round in 0..3 {
        // Each round begins when that before has expired: so the living outlive their time-out several times.
        let mut silent = Vec::new();
        for id in servers.ids() {
            let mut client = Client::open(servers.port(id), SHORT);
            client.ask(&ephemeral(&format!("/dies-{id}"))).unwrap();
            // Its connection ends without a word.
            silent.push((client.ticket.clone(), client.seen));
        }
        until("the end of who is silent", || {
            for client in living.iter_mut().chain(&mut witnesses) {
                client.ask(&Request::Ping).unwrap();
            }
            let path = |id| format!("/dies-{id}");
            let gone = |witness: &mut Client| {
                servers.ids().all(|id| witness.ask(&exists(&path(id))) == Err(-101))
            };
            witnesses.iter_mut().all(gone).then_some(())
        });
        for (ticket, seen) in silent {
            for id in servers.ids() {
                let answer = Client::settled(servers.port(id), &ticket, seen);
                assert!(matches!(answer, Connected::Refused), "{round}: at {id}: {answer:?}");
            }
        }
    }
    for (id, client) in servers.ids().zip(&mut living) {
        client.ask(&set(&format!("/lives-{id}"), "still")).unwrap();
    }
}

/// Each server gives out ids of its own.
fn ids_are_given_out_once(servers: &Servers) {
    let mut ids = BTreeSet::new();
    for id in servers.ids() {
        for _ in 0..50 {
            let mut client = Client::open(servers.port(id), LONG);
            let session = client.ticket.session;
            assert_eq!(session.to_be_bytes()[0], u8::try_from(id).unwrap());
            assert!(ids.insert(session), "{session:x} twice");
            client.ask(&Request::CloseSession).unwrap();
        }
    }
}

fn sessions_of(seats: &[(Kind, &str)]) {
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(seats);
    move_about(&servers);
    live_and_expire(&servers);
    ids_are_given_out_once(&servers);
    digests_agree(&servers);
}

#[test]
fn sessions_move_live_expire_and_end_at_quorates_servers_under_a_java_leader() {
    sessions_of(&JAVA_LEADS);
}

#[test]
fn sessions_move_live_expire_and_end_at_java_servers_under_quorates_leader() {
    sessions_of(&QUORATE_LEADS);
}

/// So often in all.
const TURNS: usize = 10_000;

/// Writes and syncs of three sessions wait in one queue there, whose head alone is completed.
fn writes_and_syncs_in_one_queue(seats: &[(Kind, &str)]) {
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(seats);
    Client::open(servers.port(1), LONG).ask(&plain("/turns")).unwrap();
    thread::scope(|scope| {
        // At the server that votes and at the one that does not.
        for (at, own) in [1, 3].into_iter().flat_map(|at| (0..3).map(move |own| (at, own))) {
            let servers = &servers;
            scope.spawn(move || {
                let path = format!("/turns/{at}-{own}");
                let mut client = Client::open(servers.port(at), LONG);
                client.ask(&plain(&path)).unwrap();
                turns(client, &path, TURNS / 6);
            });
        }
    });
    digests_agree(&servers);
}

/// Set, sync, set, in a pipeline; each reply in its turn, and each set the next version.
fn turns(mut client: Client, path: &str, count: usize) {
    let mut stream = client.stream();
    let mut frames = BytesMut::new();
    let one = set(path, "x");
    let sync = Request::Sync { path: Some(path.to_owned()) };
    for (request, xid) in [&one, &sync, &one].into_iter().cycle().zip(1..).take(3 * count) {
        frames.extend_from_slice(&request.frame(xid));
    }
    thread::scope(|scope| {
        scope.spawn(move || stream.write_all(&frames).unwrap());
        let mut version = 0;
        for xid in 1..=i32::try_from(3 * count).unwrap() {
            let (header, body) = client.reply().unwrap();
            assert_eq!((header.xid, header.err), (xid, 0));
            if xid % 3 == 2 {
                continue;
            }
            version += 1;
            let Some(Response::Stat(stat)) = Response::decode(op::SET_DATA, &body).unwrap() else {
                panic!("{path}")
            };
            assert_eq!((stat.version, stat.mzxid), (version, header.zxid));
        }
    });
}

#[test]
fn sessions_of_a_java_server_write_and_sync_ten_thousand_times_under_quorates_leader() {
    writes_and_syncs_in_one_queue(&QUORATE_LEADS);
}

#[test]
fn sessions_of_quorates_server_write_and_sync_ten_thousand_times_under_a_java_leader() {
    writes_and_syncs_in_one_queue(&JAVA_LEADS);
}
