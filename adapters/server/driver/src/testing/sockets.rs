//! What a runtime promises by itself, without any server.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use futures_lite::future::zip;
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};

use super::stage::polled;
use super::{Stage, free_ports};
use crate::Runtime;

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_ports(1)[0]).into()
}

/// Both ends of a connection; who dialled comes first.
async fn connected<R: Runtime>(
    stage: &Stage<R>,
    listener: &R::Listener,
    at: SocketAddr,
) -> (R::Stream, R::Stream) {
    let runtime = stage.runtime(0);
    let both = zip(runtime.dial(at), runtime.accept(listener));
    let (dialled, accepted) = stage.within("a connection", both).await;
    let (accepted, remote) = accepted.unwrap();
    assert_eq!(remote.ip(), at.ip());
    (dialled.unwrap(), accepted)
}

pub async fn a_connection_carries_bytes_both_ways_and_ends_one_way_at_a_time<R: Runtime>(
    stage: Stage<R>,
) {
    let at = free_address();
    let listener = stage.runtime(0).listen(at).await.unwrap();
    let (dialled, accepted) = connected(&stage, &listener, at).await;
    let (also_dialled, also_accepted) = connected(&stage, &listener, at).await;
    for (mut one, mut two) in [(dialled, accepted), (also_accepted, also_dialled)] {
        let sent = vec![7; 1 << 20];
        let mut received = Vec::new();
        let sending = async {
            one.write_all(&sent).await.unwrap();
            one.close().await.unwrap();
        };
        let both = zip(sending, two.read_to_end(&mut received));
        let ((), read) = stage.within("all of it, and its end", both).await;
        assert_eq!(read.unwrap(), sent.len());
        // The other direction is still open, and ends when its stream is dropped.
        stage.within("an answer", two.write_all(b"answer")).await.unwrap();
        drop(two);
        let mut answer = Vec::new();
        stage.within("its end", one.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, b"answer");
    }
}

/// Although connections that it has accepted are still about.
pub async fn a_listener_that_is_dropped_frees_its_port_at_once<R: Runtime>(stage: Stage<R>) {
    let at = free_address();
    let mut left = Vec::new();
    for _ in 0..3 {
        let listener = stage.runtime(0).listen(at).await.unwrap();
        let (dialled, accepted) = connected(&stage, &listener, at).await;
        // The side that closes first keeps the address for a while.
        drop(accepted);
        left.push(dialled);
        assert!(stage.runtime(0).listen(at).await.is_err(), "it is taken");
    }
    let (two, nobody) = (stage.runtime(0).dial(at), free_address());
    assert!(stage.within("a refusal", two).await.is_err());
    assert!(stage.within("a refusal", stage.runtime(0).dial(nobody)).await.is_err());
}

pub async fn an_accept_that_is_dropped_takes_no_connection<R: Runtime>(stage: Stage<R>) {
    let at = free_address();
    let listener = stage.runtime(0).listen(at).await.unwrap();
    for _ in 0..3 {
        assert!(polled(1, stage.runtime(0).accept(&listener)).await.is_none());
    }
    let (mut dialled, mut accepted) = connected(&stage, &listener, at).await;
    dialled.write_all(b"x").await.unwrap();
    stage.within("a byte", accepted.read_exact(&mut [0])).await.unwrap();
}

pub async fn a_dial_that_is_dropped_gives_up<R: Runtime>(stage: Stage<R>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    drop(polled(1, stage.runtime(0).dial(at)).await);
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(accepted.read(&mut [0]).unwrap(), 0, "it is closed");
}

/// As far as the system shows it: the timer of an idle connection is that of keep-alive.
pub async fn connections_are_tuned_on_both_sides<R: Runtime>(stage: Stage<R>) {
    const KEEPALIVE: &str = "02";
    let at = free_address();
    let listener = stage.runtime(0).listen(at).await.unwrap();
    let (_one, _two) = connected(&stage, &listener, at).await;
    // Columns: number, local and remote address, state, queues, timer, …
    let Ok(table) = std::fs::read_to_string("/proc/self/net/tcp") else { return };
    let port = format!(":{:04X}", at.port());
    let connections: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|columns: &Vec<&str>| columns[3] == "01")
        .filter(|columns| columns[1].ends_with(&port) || columns[2].ends_with(&port))
        .collect();
    assert_eq!(connections.len(), 2, "{table}");
    for columns in connections {
        assert_eq!(columns[5].split(':').next(), Some(KEEPALIVE), "{columns:?}");
    }
}
