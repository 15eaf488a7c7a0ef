//! What comes from strangers: slow, huge, half, or nothing like HTTP. It costs a connection at most.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use quorate_http::Limits;

use crate::client::{get, open, parts, send, until};

/// Pages of a server that is yet to start, which answer all the same.
fn site(limits: Limits) -> SocketAddr {
    open(&quorate_smol::Smol, limits).0
}

#[test]
fn a_head_is_read_up_to_8_kib() {
    let at = site(Limits::default());
    let padded = |bytes: usize| {
        let padding = "a".repeat(bytes);
        send(at, &format!("GET /ready HTTP/1.1\r\nX: {padding}\r\nConnection: close\r\n\r\n"))
    };
    assert_eq!(parts(&padded(7000)).0, 503);
    assert_eq!(parts(&padded(9000)).0, 431);
    assert_eq!(parts(&padded(1 << 20)).0, 431);
    let many = "X: y\r\n".repeat(200);
    let many = send(at, &format!("GET /ready HTTP/1.1\r\n{many}Connection: close\r\n\r\n"));
    assert_eq!(parts(&many).0, 431);
    let path = "a".repeat(9000);
    assert!(matches!(get(at, &format!("/{path}")).0, 414 | 431));
}

#[test]
fn only_what_can_be_answered_is() {
    let at = site(Limits::default());
    for method in ["TRACE", "PUT", "DELETE", "OPTIONS", "CONNECT", "BREW"] {
        let target = if method == "CONNECT" { "x:1" } else { "/ready" };
        let asked = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(parts(&send(at, &asked)).0, 405, "{method}");
    }
    let body = "GET /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
    let (status, head, _) = parts(&send(at, body));
    assert!(status == 400 && head.contains("connection: close"), "{head}");
    let chunked = "GET /ready HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n";
    assert_eq!(parts(&send(at, chunked)).0, 400);
    let head = "HEAD /healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!((parts(&send(at, head)).0, parts(&send(at, head)).2), (200, String::new()));
    for garbage in
        ["\x16\x03\x01\x02\0\x01", "ruok\n\n\n", "GET\r\n\r\n", "\0\0\0\x2d\0\0\0\0\r\n\r\n"]
    {
        let status = parts(&send(at, garbage)).0;
        assert!(matches!(status, 0 | 400), "{garbage:?}: {status}");
    }
    assert_eq!(get(at, "/healthy").0, 200);
}

#[test]
fn a_connection_without_a_request_is_closed_and_leaves_room() {
    let at = site(Limits { connections: 4, idle: Duration::from_millis(300) });
    let half = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let mut held: Vec<_> =
        [&b""[..], b"GET /ready HT", b"GET /ready HTTP/1.1\r\nX: "].map(half).into();
    // One that goes on to send a byte now and then is no better.
    let mut slow = half(b"GET /ready HTTP/1.1\r\nX: ");
    let dripping = std::thread::spawn(move || {
        until("the end", || {
            std::thread::sleep(Duration::from_millis(50));
            slow.write_all(b"a").is_err().then_some(())
        });
    });
    for stream in &mut held {
        let mut rest = Vec::new();
        // In order or by a reset: it ends.
        drop(stream.read_to_end(&mut rest));
    }
    dripping.join().unwrap();
    assert_eq!(get(at, "/healthy").0, 200);
}

#[test]
fn one_connection_too_many_is_closed_and_the_others_are_served() {
    let at = site(Limits { connections: 2, ..Limits::default() });
    let asked = b"GET /healthy HTTP/1.1\r\nHost: x\r\n\r\n";
    let ask = |stream: &mut TcpStream| {
        let mut answer = [0; 15];
        let sent = stream.write_all(asked).is_ok();
        sent && stream.read_exact(&mut answer).is_ok() && answer == *b"HTTP/1.1 200 OK"
    };
    let connect = || {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let mut held: Vec<_> = (0..2).map(|_| connect()).collect();
    assert!(held.iter_mut().all(ask));
    assert!(!ask(&mut connect()));
    drop(held.pop());
    until("room", || ask(&mut connect()).then_some(()));
}

/// A pipeline of requests is answered in order, and nothing more is kept of it than a head at a time.
#[test]
fn requests_may_come_one_behind_the_other() {
    let at = site(Limits::default());
    let many = "GET /healthy HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500);
    let last = "GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = send(at, &(many + last));
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 500);
    assert!(answer.ends_with("not ready: starting\n"), "{answer:.100}");
}
