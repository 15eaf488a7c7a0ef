//! What clients have asked real ZooKeeper 3.8.0 servers for, and what they were told, asked of a leader of ours.
//!
//! `golden/requests.txt`, a line for each: the client, its identities, the kind of request, the code, what was told
//! (the path; of a multi, of each element its path or its code), and the body in hex. What we refuse on purpose is
//! not among them.

use crate::leader::{Leader, by_program, elements, of, request};
use crate::support::{Body, SESSION};
use quorate_core::id::Origin;
use quorate_core::message::{Identity, Request};
use quorate_core::prepared::Prepared;
use quorate_core::txn::RequestId;
use quorate_znode::{Rules, kind};

const REQUESTS: &str = include_str!("golden/requests.txt");

struct Line {
    asked: Request,
    code: i32,
    told: String,
}

fn line(text: &str) -> Line {
    let mut words = text.split(' ');
    let mut word = || words.next().unwrap();
    let client = SESSION + word().parse::<i64>().unwrap();
    let identities = word().split(',').map(|identity| {
        let (scheme, id) = identity.split_once('=').unwrap();
        Identity { scheme: scheme.to_owned(), id: id.to_owned() }
    });
    let identities = Some(identities.collect());
    let (op, code) = (word().parse().unwrap(), word().parse().unwrap());
    let (told, hex) = (word().to_owned(), word().replace('-', ""));
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let body: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let id = RequestId { client, cxid: 1 };
    Line { asked: Request { id, op, body: body.into(), identities }, code, told }
}

fn path(body: &[u8]) -> String {
    let (length, rest) = body.split_first_chunk().unwrap();
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap();
    String::from_utf8(rest[..length].to_vec()).unwrap()
}

/// What a client would be told of the transaction that was prepared last.
fn told(leader: &Leader, prepared: &Prepared) -> String {
    match prepared.kind {
        kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
            path(&prepared.body)
        }
        kind::MULTI => {
            let elements = elements(leader.under_way.last().unwrap());
            let failed = elements.iter().any(|(kind, _)| *kind == kind::ERROR);
            let told = elements.iter().map(|(kind, body)| match *kind {
                kind::ERROR => i32::from_be_bytes(body[..].try_into().unwrap()).to_string(),
                kind::CREATE if !failed => path(body),
                _ => "0".to_owned(),
            });
            let told = told.collect::<Vec<_>>().join(",");
            if told.is_empty() { "-".to_owned() } else { told }
        }
        _ => "-".to_owned(),
    }
}

#[test]
fn clients_are_told_what_java_told_them() {
    for at_once in [true, false] {
        let mut leader = Leader::with(Rules { extended_types: true, ..Rules::default() });
        let mut asked = 0;
        for text in REQUESTS.lines() {
            if text.starts_with('#') {
                leader.settle();
                for client in 1..=3 {
                    let open = request(kind::CREATE_SESSION, Body::default().int(10_000));
                    leader.prepare(Origin::Here, &of(SESSION + client, by_program(open)));
                }
                continue;
            }
            let line = line(text);
            let prepared = leader.prepare(Origin::Here, &line.asked);
            let code = match prepared.kind {
                kind::ERROR => i32::from_be_bytes(prepared.body[..].try_into().unwrap()),
                _ => 0,
            };
            assert_eq!(code, line.code, "{text}");
            assert_eq!(told(&leader, &prepared), line.told, "{text}");
            if at_once {
                leader.settle();
            }
            asked += 1;
        }
        leader.settle();
        assert!(asked > 100, "{asked}");
    }
}
