//! What strangers and broken peers may send, against a running server: it costs them their link or
//! that message, and the server serves on. What an operator may get wrong: the server refuses to
//! start and says what is in the way.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

mod common;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use common::{Ensemble, free_ports, within};
use quorate_core::address::HostPort;
use quorate_core::config::ConfigError;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, LearnerInfo, Notification, Packet};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_tokio::{Server, ServerError, StartError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An id larger than those of all members, so that its connections stay, and no member.
const STRANGER: ServerId = ServerId(200);

struct Ports {
    election: HostPort,
    quorum: HostPort,
}

fn ports(ensemble: &Ensemble, id: ServerId) -> Ports {
    let member = ensemble.membership.member(id).unwrap();
    Ports { election: member.election_address().clone(), quorum: member.quorum_address().clone() }
}

async fn connect(to: &HostPort) -> TcpStream {
    within("connect", TcpStream::connect((to.host.as_str(), to.port))).await.unwrap()
}

/// Writes; the server may have closed meanwhile.
async fn write(stream: &mut TcpStream, bytes: &[u8]) {
    drop(within("write", stream.write_all(bytes)).await);
}

/// Waits until the server has closed the connection.
async fn until_closed(stream: &mut TcpStream, what: &str) {
    let mut rest = Vec::new();
    match within(what, stream.read_to_end(&mut rest)).await {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}"),
    }
}

fn introduction(id: ServerId) -> Bytes {
    let address = HostPort { host: "127.0.0.1".into(), port: 9 };
    wire::encode_introduction(&Introduction { id, addresses: vec![address] })
}

/// An introduction by its fields.
fn raw_introduction(protocol: i64, id: i64, length: i32, text: &[u8]) -> Vec<u8> {
    let head = [&protocol.to_be_bytes()[..], &id.to_be_bytes(), &length.to_be_bytes(), text];
    head.concat()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [&i32::try_from(payload.len()).unwrap().to_be_bytes()[..], payload].concat()
}

/// A notification of somebody who looks for a leader.
fn question(round: i64) -> BytesMut {
    let vote = Vote { peer_epoch: Epoch::ZERO, zxid: Zxid::ZERO, leader: STRANGER };
    let standing = Standing { state: ServerState::Looking, vote, round: Round(round) };
    let mut bytes = BytesMut::new();
    let version = Notification::VERSION;
    wire::encode_notification(
        &Notification { standing, version, config: Bytes::new() },
        &mut bytes,
    );
    bytes
}

/// A good notification with some of its fields overwritten.
fn notification_with(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = question(1).to_vec();
    bytes[4 + at..][..field.len()].copy_from_slice(field);
    bytes
}

/// Reads the next notification.
async fn answer(stream: &mut TcpStream, buf: &mut BytesMut) -> Notification {
    within("an answer", async {
        loop {
            if let Some(notification) = wire::take_notification(buf).unwrap() {
                return notification;
            }
            assert_ne!(stream.read_buf(buf).await.unwrap(), 0, "closed instead of answering");
        }
    })
    .await
}

/// Asks a server on its election port who leads, as `quorate probe` would.
async fn who_leads(ensemble: &Ensemble, id: ServerId) -> (ServerState, ServerId) {
    let mut stream = connect(&ports(ensemble, id).election).await;
    write(&mut stream, &introduction(STRANGER)).await;
    write(&mut stream, &question(1)).await;
    let standing = answer(&mut stream, &mut BytesMut::new()).await.standing;
    (standing.state, standing.vote.leader)
}

/// The servers still answer, and can still elect.
async fn still_serves(mut ensemble: Ensemble) {
    let (leader, epoch) = ensemble.agreed().await;
    for id in ensemble.ids() {
        let expected = if id == leader { ServerState::Leading } else { ServerState::Following };
        assert_eq!(who_leads(&ensemble, id).await, (expected, leader), "server {id}");
    }
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
}

async fn running() -> (Ensemble, ServerId) {
    let mut ensemble = Ensemble::new(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    (ensemble, leader)
}

/// Bytes without a meaning, the same each time.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

#[tokio::test]
async fn introductions_that_cannot_be_read() {
    let (ensemble, leader) = running().await;
    let to = ports(&ensemble, leader).election;
    let known = wire::PROTOCOL_ONE_ADDRESS;
    let text = b"127.0.0.1:70000";
    let refused: Vec<(&str, Vec<u8>)> = vec![
        ("port 70000", raw_introduction(known, 200, 15, text)),
        ("port -1", raw_introduction(known, 200, 12, b"127.0.0.1:-1")),
        ("no port", raw_introduction(known, 200, 9, b"127.0.0.1")),
        ("no text", raw_introduction(known, 200, 0, b"")),
        ("negative length", raw_introduction(known, 200, -1, b"")),
        ("length 2^31 - 1", raw_introduction(known, 200, i32::MAX, b"")),
        ("2049 bytes", raw_introduction(known, 200, 2049, &[b'a'; 2049])),
        ("not UTF-8", raw_introduction(known, 200, 4, &[0xff, 0xfe, 0xfd, 0xfc])),
        ("unknown protocol", raw_introduction(-65537, 200, 15, text)),
        ("smallest protocol", raw_introduction(i64::MIN, 200, 15, text)),
        ("all ones", vec![0xff; 64]),
        ("own id", introduction(leader).to_vec()),
        ("nobody's id", raw_introduction(known, i64::MIN, 11, b"127.0.0.1:9")),
        ("an observer without an id", raw_introduction(known, i64::MAX, 11, b"127.0.0.1:9")),
        ("a negative id", raw_introduction(known, -7, 11, b"127.0.0.1:9")),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: zk\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in refused {
        let mut stream = connect(&to).await;
        write(&mut stream, &bytes).await;
        if what == "HTTP" {
            // As a number it is a large id: whatever follows is then no frame.
            stream.shutdown().await.unwrap();
        }
        until_closed(&mut stream, what).await;
    }
    let metrics = ensemble.server(leader).status().metrics;
    assert!(metrics.refused_introductions >= 11, "{metrics:?}");
    // Cut off after each byte.
    let whole = introduction(STRANGER);
    for cut in 0..whole.len() {
        let mut stream = connect(&to).await;
        write(&mut stream, &whole[..cut]).await;
    }
    still_serves(ensemble).await;
}

#[tokio::test]
async fn frames_that_cannot_be_read_end_their_link_only() {
    let (ensemble, leader) = running().await;
    let to = ports(&ensemble, leader).election;
    let fatal: Vec<(&str, Vec<u8>)> = vec![
        ("empty frame", 0_i32.to_be_bytes().to_vec()),
        ("negative frame", (-1_i32).to_be_bytes().to_vec()),
        ("frame of 2^31 - 1 bytes", i32::MAX.to_be_bytes().to_vec()),
        ("frame of 512 KiB and a byte", (512 * 1024 + 1_i32).to_be_bytes().to_vec()),
        ("noise", [&[0x80], &noise(1, 4096)[..]].concat()),
    ];
    for (what, bytes) in fatal {
        let mut stream = connect(&to).await;
        write(&mut stream, &introduction(STRANGER)).await;
        write(&mut stream, &bytes).await;
        until_closed(&mut stream, what).await;
    }
    assert!(ensemble.server(leader).status().metrics.garbled_links >= 5);
    still_serves(ensemble).await;
}

#[tokio::test]
async fn notifications_that_cannot_be_read_are_dropped() {
    let (ensemble, leader) = running().await;
    let mut stream = connect(&ports(&ensemble, leader).election).await;
    let mut buf = BytesMut::new();
    write(&mut stream, &introduction(STRANGER)).await;
    let mut bad: Vec<Vec<u8>> = (1..40).filter(|n| *n != 28).map(|n| framed(&vec![0; n])).collect();
    bad.extend([
        notification_with(0, &4_i32.to_be_bytes()),
        notification_with(0, &(-1_i32).to_be_bytes()),
        notification_with(40, &(-1_i32).to_be_bytes()),
        notification_with(40, &1_i32.to_be_bytes()),
        notification_with(40, &i32::MAX.to_be_bytes()),
    ]);
    let count = u64::try_from(bad.len()).unwrap();
    for bytes in bad {
        write(&mut stream, &bytes).await;
    }
    // In order as far as bytes go, nonsense otherwise: versions, leaders, epochs, configurations.
    let id = u8::try_from(leader.0).unwrap();
    for bytes in [
        notification_with(4, &i64::MAX.to_be_bytes()),
        notification_with(4, &i64::MIN.to_be_bytes()),
        notification_with(12, &(-1_i64).to_be_bytes()),
        notification_with(20, &i64::MAX.to_be_bytes()),
        notification_with(28, &i64::MIN.to_be_bytes()),
        notification_with(36, &i32::MAX.to_be_bytes()),
        notification_with(36, &(-1_i32).to_be_bytes()),
        framed(&[&notification_with(40, &9_i32.to_be_bytes())[4..], b"server.1="].concat()),
        framed(&[&notification_with(40, &4_i32.to_be_bytes())[4..], &[0xff, 0, id, 0xfe]].concat()),
        framed(&[0; 28]),
    ] {
        write(&mut stream, &bytes).await;
    }
    // The link has stayed: the next good question on it is answered.
    write(&mut stream, &question(7)).await;
    let reply = answer(&mut stream, &mut buf).await;
    assert_eq!((reply.standing.state, reply.standing.vote.leader), (ServerState::Leading, leader));
    within("counting", async {
        while ensemble.server(leader).status().metrics.dropped_messages < count {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(stream);
    still_serves(ensemble).await;
}

#[tokio::test]
async fn packets_that_cannot_be_read_end_their_link_only() {
    let (ensemble, leader) = running().await;
    let packet = |kind: i32, length: i32| {
        [&kind.to_be_bytes()[..], &0_i64.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    let encoded = |packet: &Packet| {
        let mut bytes = BytesMut::new();
        wire::encode_packet(packet, &mut bytes);
        bytes.to_vec()
    };
    let info = |epoch, protocol| {
        encoded(&Packet::FollowerInfo(LearnerInfo {
            accepted_epoch: Epoch(epoch),
            id: Some(STRANGER),
            protocol,
            config_version: 0,
        }))
    };
    let closing: Vec<(&str, Vec<u8>)> = vec![
        ("negative buffer", packet(11, -2)),
        ("buffer of 2^31 - 1 bytes", packet(11, i32::MAX)),
        ("identities without end", [packet(1, -1), i32::MAX.to_be_bytes().to_vec()].concat()),
        ("FOLLOWERINFO of 3 bytes", [packet(11, 3), vec![0; 7]].concat()),
        ("a first packet of a megabyte", [packet(11, 1_000_000), vec![0; 8192]].concat()),
        ("noise", noise(3, 8192)),
        ("all ones", vec![0xff; 64]),
        ("an old protocol", info(0, 1)),
        ("an epoch beyond all", info(-1, LearnerInfo::PROTOCOL)),
        ("UPTODATE from a learner", encoded(&Packet::UpToDate)),
        ("an ACK of a stranger", encoded(&Packet::Ack(Zxid::ZERO))),
        (
            "NEWLEADER to a leader",
            encoded(&Packet::NewLeader { zxid: Zxid(1), config: Bytes::new() }),
        ),
        ("a notification", question(1).to_vec()),
    ];
    for id in ensemble.ids() {
        let to = ports(&ensemble, id).quorum;
        for (what, bytes) in &closing {
            let mut stream = connect(&to).await;
            write(&mut stream, bytes).await;
            // What looks like the begin of something longer ends here.
            stream.shutdown().await.ok();
            until_closed(&mut stream, &format!("{what} to server {id}")).await;
        }
        // Cut off after each byte.
        let whole = info(0, LearnerInfo::PROTOCOL);
        for cut in 0..whole.len() {
            let mut stream = connect(&to).await;
            write(&mut stream, &whole[..cut]).await;
        }
    }
    assert_eq!(ensemble.agreed().await.0, leader, "nobody was disturbed");
    still_serves(ensemble).await;
}

/// Anybody may register as an observer and begin a long request. Together they get a bounded part of
/// the leader's memory; who wants more loses its link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_never_end_share_a_bound() {
    const MEGABYTE: usize = 1 << 20;
    let (ensemble, leader) = running().await;
    let to = ports(&ensemble, leader).quorum;
    let (closed, mut closings) = tokio::sync::mpsc::channel(64);
    for n in 0..40 {
        let mut stream = connect(&to).await;
        let mut hello = BytesMut::new();
        let info = LearnerInfo {
            accepted_epoch: Epoch::ZERO,
            id: Some(ServerId(1_000 + n)),
            protocol: LearnerInfo::OTHER_APPLICATION,
            config_version: 0,
        };
        wire::encode_packet(&Packet::ObserverInfo(info), &mut hello);
        write(&mut stream, &hello).await;
        // LEADERINFO: from now on longer packets are in order.
        within("LEADERINFO", stream.read_exact(&mut [0; 24])).await.unwrap();
        let length = i32::try_from(MEGABYTE).unwrap().to_be_bytes();
        let request = [&1_i32.to_be_bytes()[..], &(-1_i64).to_be_bytes(), &length].concat();
        write(&mut stream, &request).await;
        write(&mut stream, &vec![0; MEGABYTE - 1]).await;
        let closed = closed.clone();
        tokio::spawn(async move {
            // Ends when the server closes; those that it keeps are dropped with the test.
            drop(stream.read_to_end(&mut Vec::new()).await);
            closed.send(()).await.ok();
        });
    }
    for nth in 1..=20 {
        within(&format!("the end of link {nth}"), closings.recv()).await.unwrap();
    }
    still_serves(ensemble).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_silent_connections_keep_nobody_out() {
    let mut ensemble = Ensemble::new(3, 0);
    let [first, second, third] = ensemble.ids()[..] else { panic!("three servers") };
    ensemble.start(first).await;
    ensemble.start(second).await;
    let (leader, _) = ensemble.agreed().await;
    let mut silent = Vec::new();
    for n in 0..1000 {
        let Ports { election, quorum } = ports(&ensemble, [first, second][n % 2]);
        silent.push(connect(if n % 4 < 2 { &election } else { &quorum }).await);
    }
    let begun = Instant::now();
    ensemble.start(third).await;
    assert_eq!(ensemble.agreed().await.0, leader);
    let took = begun.elapsed();
    println!("joined past 1000 silent connections in {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    let metrics = ensemble.server(first).status().metrics;
    assert!(metrics.evicted_introductions > 0, "{metrics:?}");
    still_serves(ensemble).await;
    drop(silent);
}

#[tokio::test]
async fn an_introduction_has_a_deadline() {
    let mut ensemble = Ensemble::new(1, 0);
    ensemble.introduction_timeout = Some(Duration::from_millis(50));
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let mut stream = connect(&ports(&ensemble, leader).election).await;
    write(&mut stream, &introduction(STRANGER)[..10]).await;
    until_closed(&mut stream, "half an introduction").await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let ensemble = Ensemble::new(3, 0);
    let id = ensemble.ids()[0];
    for plane in [Plane::Election, Plane::Quorum] {
        let Ports { election, quorum } = ports(&ensemble, id);
        let taken = if plane == Plane::Election { election } else { quorum };
        let holder = std::net::TcpListener::bind((taken.host.as_str(), taken.port)).unwrap();
        let error = ensemble.try_start(ensemble.config(id)).await.unwrap_err();
        let shown = error.to_string();
        let StartError::Bind { plane: found, address, tries: 1, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((found, &address), (plane, &taken.to_string()));
        assert!(shown.contains(&taken.to_string()), "{shown}");
        drop(holder);
    }
    // Nothing was left behind: the same directory and ports can be used.
    let server: Server = ensemble.try_start(ensemble.config(id)).await.unwrap();
    within("shutdown", server.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_freed_in_time_is_taken() {
    let ensemble = Ensemble::new(1, 0);
    let id = ensemble.ids()[0];
    let taken = ports(&ensemble, id).election;
    let holder = tokio::net::TcpListener::bind((taken.host.as_str(), taken.port)).await.unwrap();
    let mut config = ensemble.config(id);
    config.bind_tries = 3;
    let freed = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(holder);
    };
    let (server, ()) = tokio::join!(ensemble.try_start(config), freed);
    within("a leader", server.unwrap().leaders().led()).await.unwrap();
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_used_is_named() {
    let mut ensemble = Ensemble::new(1, 0);
    let id = ensemble.ids()[0];
    let mut config = ensemble.config(id);
    // A file stands where the directory should be; root may write wherever modes forbid it.
    let file = ensemble.data_dir(id);
    std::fs::write(&file, "").unwrap();
    config.data_dir = file.join("data");
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(matches!(error, StartError::Log(_)), "{error:?}");
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    std::fs::remove_file(&file).unwrap();

    ensemble.start(id).await;
    let error = ensemble.try_start(ensemble.config(id)).await.unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    assert_eq!(ensemble.agreed().await.0, id);
}

#[tokio::test]
async fn a_disk_that_fails_ends_the_server_and_is_named() {
    let (mut ensemble, leader) = running().await;
    let follower = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
    let server = ensemble.take(follower);
    let dir = ensemble.data_dir(follower);
    std::fs::remove_dir_all(&dir).unwrap();
    // The next reign has to be promised, and that cannot be written.
    ensemble.kill(leader).await;
    let error = within("the end", server.finished()).await.unwrap_err();
    assert!(matches!(error, ServerError::Disk { .. }), "{error:?}");
    assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
    assert_eq!(server.leader(), None);
    // With its directory back it may start again.
    std::fs::create_dir_all(&dir).unwrap();
    ensemble.start(follower).await;
    ensemble.agreed().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_work_is_named() {
    let ensemble = Ensemble::new(1, 0);
    let id = ensemble.ids()[0];
    let mut config = ensemble.config(id);
    config.core.id = ServerId(9);
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(error.to_string().contains("server.9"), "{error}");

    let mut config = ensemble.config(id);
    config.core.timing.tick = Duration::ZERO;
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(matches!(error, StartError::Config(ConfigError::TooShort { .. })), "{error:?}");

    let name = "no-such-host.invalid";
    let ports = free_ports(2);
    let line = format!("server.1={name}:{}:{}", ports[0], ports[1]);
    let mut config = ensemble.config(id);
    config.core.membership = quorate_core::membership::Membership::parse(line).unwrap();
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}
