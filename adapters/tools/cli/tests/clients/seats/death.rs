//! The death of a Java leader in the middle of what clients of our servers have asked for.

use quorate_service::wire::{ConnectRequest, Request, op};
use quorate_tokio::core::zxid::Zxid;

use super::tree::the_tree;
use crate::common::until;
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, Connected, Ticket, create, ephemeral, exists, plain, set};

const LONG: i32 = 20_000;
const ROUNDS: usize = 4;

/// What a client had under way when the leader died.
struct Underway {
    /// The server that it is connected to, which is ours.
    at: usize,
    client: Client,
    /// What the leader may have done or not, but not by half.
    request: Request,
}

fn name(round: usize, at: usize, what: &str) -> String {
    format!("/{what}-{round}-{at}")
}

/// A client that waits for the answer to this.
fn asks(servers: &Servers, at: usize, own: &str, request: Request) -> Underway {
    let mut client = Client::open(servers.port(at), LONG);
    client.ask(&ephemeral(own)).unwrap();
    Underway { at, client, request }
}

/// Begins all of it at one server: the clients, a session that is being opened, and one that moves there.
fn begin(servers: &Servers, round: usize, at: usize) -> Vec<Underway> {
    let path = |what| name(round, at, what);
    let both = vec![
        plain(&path("first")),
        create(op::CREATE2, &path("second"), 0),
        set(&path("first"), "1"),
    ];
    let end = Request::CloseSession;
    let sync = Request::Sync { path: Some("/".into()) };
    vec![
        asks(servers, at, &path("multi"), Request::Multi(both)),
        asks(servers, at, &path("close"), end),
        asks(servers, at, &path("sync"), sync),
    ]
}

/// A connection on which the first frame was sent.
fn knocking(port: u16, ticket: &Ticket, seen: Zxid) -> std::net::TcpStream {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let request = ConnectRequest {
        protocol: 0,
        last_zxid: seen,
        timeout_ms: ticket.timeout_ms,
        session: ticket.session,
        password: ticket.password.clone(),
        read_only: Some(false),
    };
    stream.write_all(&request.encode()).unwrap();
    stream
}

/// One round: everything is under way, and the leader is killed. Half of the rounds it had not even read it.
fn one_death(servers: &mut Servers, round: usize) {
    let leader = servers.last_leads();
    assert_eq!(servers.kind(leader), Kind::Java);
    let ours = [1, 2];
    let mut underway: Vec<_> = ours.iter().flat_map(|&at| begin(servers, round, at)).collect();
    // They are at the leader, and come from there.
    let moving: Vec<_> = ours
        .iter()
        .map(|&at| {
            let mut client = Client::open(servers.port(leader), LONG);
            client.ask(&ephemeral(&name(round, at, "moving"))).unwrap();
            // A server that has seen less than a client closes its connection.
            let mut there = Client::open(servers.port(at), LONG);
            there.sync();
            (at, client)
        })
        .collect();
    if round % 2 == 0 {
        servers.freeze(leader);
    }
    for Underway { client, request, .. } in &mut underway {
        client.send(request);
    }
    let nobody = Ticket { session: 0, password: vec![0; 16].into(), timeout_ms: LONG };
    let opening = ours.map(|at| knocking(servers.port(at), &nobody, Zxid::ZERO));
    let moved: Vec<_> = moving
        .iter()
        .map(|(at, client)| knocking(servers.port(*at), &client.ticket, client.seen))
        .collect();
    servers.kill(leader);

    for Underway { at, client, request } in &mut underway {
        // It is answered, or the connection is lost; nothing else is said.
        match client.answer(request.op()) {
            None | Some(Ok(_)) => {}
            Some(Err(err)) => panic!("round {round}, at {at}: {request:?}: {err}"),
        }
        assert_eq!(client.reply(), None, "without a leader no connection lives");
    }
    let mut opened = Vec::new();
    for stream in opening.into_iter().chain(moved) {
        match Client::connected(stream, Zxid::ZERO) {
            Connected::Closed => {}
            Connected::Yes(mut client) => {
                assert_eq!(client.reply(), None);
                opened.push(client);
            }
            Connected::Refused => panic!("round {round}: no session has ended"),
        }
    }
    servers.leader();
    for client in opened {
        client.moved(servers.port(1)).ask(&Request::Ping).unwrap();
    }
    outcome(servers, round, &underway, &moving);
    servers.launch(leader);
}

/// What is so behind it: sessions live, and each request is done or is not.
fn outcome(servers: &Servers, round: usize, underway: &[Underway], moving: &[(usize, Client)]) {
    for Underway { at, client, request } in underway {
        let other = 3 - at;
        let again = Client::settled(servers.port(other), &client.ticket, client.seen);
        match (again, request) {
            (Connected::Yes(mut client), request) => {
                client.sync();
                let own = match request.op() {
                    op::MULTI => "multi",
                    op::SYNC => "sync",
                    _ => "close",
                };
                client.ask(&exists(&name(round, *at, own))).unwrap();
                let [first, second] = ["first", "second"]
                    .map(|what| client.ask(&exists(&name(round, *at, what))).is_ok());
                assert_eq!(first, second, "round {round}: half of a multi");
            }
            // It is closed, and its node went with it.
            (Connected::Refused, Request::CloseSession) => {
                let mut witness = Client::open(servers.port(other), LONG);
                witness.sync();
                assert_eq!(witness.ask(&exists(&name(round, *at, "close"))), Err(-101));
            }
            (other, _) => panic!("round {round}: {request:?}: {other:?}"),
        }
    }
    for (at, client) in moving {
        let mut client = client.moved(servers.port(3 - at));
        client.ask(&set(&name(round, *at, "moving"), "lives")).unwrap();
    }
}

#[test]
fn a_java_leader_dies_in_the_middle_of_everything_and_no_session_of_ours_is_lost() {
    if !java_is_here() {
        return;
    }
    let seats =
        [(Kind::Quorate, PARTICIPANT), (Kind::Quorate, PARTICIPANT), (Kind::Java, PARTICIPANT)];
    let mut servers = Servers::mixed(&seats);
    for round in 0..ROUNDS {
        one_death(&mut servers, round);
    }
    until("the last leader's return", || servers.mode(3));
    // Not the digests: that of the server of ZooKeeper may drift from its tree when it is killed under load.
    the_tree(&servers);
}
