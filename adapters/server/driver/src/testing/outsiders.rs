//! What non-members and broken peers may send to a running server: it costs them their link or that message, and the
//! server serves on.

use bytes::{Bytes, BytesMut};
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::vote::ServerState;
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};

use super::Stage;
use super::line::{Line, NON_MEMBER, introduction, question, running, still_serves};
use crate::Runtime;

/// An introduction by its fields.
fn raw_introduction(protocol: i64, id: i64, length: i32, text: &[u8]) -> Vec<u8> {
    let head = [&protocol.to_be_bytes()[..], &id.to_be_bytes(), &length.to_be_bytes(), text];
    head.concat()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [&i32::try_from(payload.len()).unwrap().to_be_bytes()[..], payload].concat()
}

/// A good notification with some of its fields overwritten.
fn notification_with(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = question(1).to_vec();
    bytes[4 + at..][..field.len()].copy_from_slice(field);
    bytes
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

pub async fn introductions_that_cannot_be_read<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
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
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&bytes).await;
        if what == "HTTP" {
            // As a number it is a large id: whatever follows is then no frame.
            line.close().await;
        }
        line.until_closed(what).await;
    }
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.refused_introductions >= 11).await;
    // Cut off after each byte.
    let whole = introduction(NON_MEMBER);
    for cut in 0..whole.len() {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&whole[..cut]).await;
    }
    still_serves(&stage, ensemble).await;
}

pub async fn frames_that_cannot_be_read_end_their_link_only<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let fatal: Vec<(&str, Vec<u8>)> = vec![
        ("empty frame", 0_i32.to_be_bytes().to_vec()),
        ("negative frame", (-1_i32).to_be_bytes().to_vec()),
        ("frame of 2^31 - 1 bytes", i32::MAX.to_be_bytes().to_vec()),
        ("frame of 512 KiB and a byte", (512 * 1024 + 1_i32).to_be_bytes().to_vec()),
        ("noise", [&[0x80], &noise(1, 4096)[..]].concat()),
    ];
    for (what, bytes) in fatal {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&introduction(NON_MEMBER)).await;
        line.write(&bytes).await;
        line.until_closed(what).await;
    }
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.garbled_links >= 5).await;
    still_serves(&stage, ensemble).await;
}

pub async fn notifications_that_cannot_be_read_are_dropped<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
    line.write(&introduction(NON_MEMBER)).await;
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
        line.write(&bytes).await;
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
        line.write(&bytes).await;
    }
    // The link has stayed: the next good question on it is answered.
    line.write(&question(7)).await;
    let reply = line.answer().await;
    assert_eq!((reply.standing.state, reply.standing.vote.leader), (ServerState::Leading, leader));
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.dropped_messages >= count).await;
    drop(line);
    still_serves(&stage, ensemble).await;
}

pub async fn packets_that_cannot_be_read_end_their_link_only<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
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
            id: Some(NON_MEMBER),
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
        ("an ACK of a non-member", encoded(&Packet::Ack(Zxid::ZERO))),
        (
            "NEWLEADER to a leader",
            encoded(&Packet::NewLeader { zxid: Zxid(1), config: Bytes::new() }),
        ),
        ("a notification", question(1).to_vec()),
    ];
    for id in ensemble.ids() {
        for (what, bytes) in &closing {
            let mut line = Line::to(&stage, &ensemble, id, Plane::Quorum).await;
            line.write(bytes).await;
            // What looks like the begin of something longer ends here.
            line.close().await;
            line.until_closed(&format!("{what} to server {id}")).await;
        }
        // Cut off after each byte.
        let whole = info(0, LearnerInfo::PROTOCOL);
        for cut in 0..whole.len() {
            let mut line = Line::to(&stage, &ensemble, id, Plane::Quorum).await;
            line.write(&whole[..cut]).await;
        }
    }
    assert_eq!(ensemble.agreed().await.0, leader, "nobody was disturbed");
    still_serves(&stage, ensemble).await;
}
