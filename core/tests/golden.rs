//! The wire formats against bytes that Apache ZooKeeper 3.8.0 servers sent and accepted.
//!
//! `golden/election-*` are conversations on the election port, `golden/session-*` whole connections
//! between a learner and a leader, and `golden/probe-*` hand-made input with what the real server did.
//! In all of them `hex` is what was on the wire, and `decoded` what it means.
#![allow(clippy::unwrap_used, reason = "a test: what is wrong with a golden file should be loud")]

use bytes::{Buf, Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::message::{
    Identity, Introduction, LearnerInfo, Mark, Notification, Packet, Request,
};
use quorate_core::rng::Rng;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire::{self, DecodeError};
use quorate_core::zxid::{Epoch, Zxid};
use serde_json::Value;

const ELECTIONS: [(&str, &str); 5] = [
    ("hierarchical", include_str!("golden/election-hierarchical.jsonl")),
    ("join third and observer", include_str!("golden/election-join-third-and-observer.jsonl")),
    ("leader killed", include_str!("golden/election-leader-killed.jsonl")),
    ("rejoin smaller sid", include_str!("golden/election-rejoin-smaller-sid.jsonl")),
    ("two voters", include_str!("golden/election-two-voters.jsonl")),
];
const SESSIONS: [(&str, &str); 9] = [
    ("diff of 3 proposals", include_str!("golden/session-follower-diff-3-proposals.jsonl")),
    ("empty diff", include_str!("golden/session-follower-diff-empty.jsonl")),
    ("epoch 3", include_str!("golden/session-follower-epoch3.jsonl")),
    ("first quorum, live", include_str!("golden/session-follower-first-quorum-live.jsonl")),
    ("no digest", include_str!("golden/session-follower-no-digest.jsonl")),
    ("reconfig", include_str!("golden/session-follower-reconfig.jsonl")),
    ("snap", include_str!("golden/session-follower-snap.jsonl")),
    ("trunc", include_str!("golden/session-follower-trunc.jsonl")),
    ("observer, snap, inform", include_str!("golden/session-observer-snap-inform.jsonl")),
];
const HANDSHAKE_PROBES: &str = include_str!("golden/probe-election-handshake.jsonl");
const NOTIFICATION_PROBES: &str = include_str!("golden/probe-election-notification-input.jsonl");
const QUORUM_PROBES: [&str; 2] = [
    include_str!("golden/probe-leader-sync-decision.jsonl"),
    include_str!("golden/probe-follower-under-test-leader.jsonl"),
];

// ---- reading the files ------------------------------------------------------------------------

fn lines(file: &str) -> impl Iterator<Item = Value> + '_ {
    file.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn number(value: &Value) -> i64 {
    match value.as_str() {
        Some(hex) => u64::from_str_radix(hex.strip_prefix("0x").unwrap(), 16).unwrap() as i64,
        None => value.as_i64().unwrap_or_else(|| panic!("{value} is no number")),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| core::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex_of(value: &Value) -> Vec<u8> {
    unhex(text(value, "hex"))
}

/// The bytes of a jute buffer, none if it is absent.
fn data_of(value: &Value) -> Option<Bytes> {
    value["data"].as_str().map(|hex| Bytes::from(unhex(hex)))
}

fn expected_introduction(decoded: &Value) -> Introduction {
    let (host, port) = text(decoded, "addr").rsplit_once(':').unwrap();
    Introduction {
        id: ServerId(number(&decoded["sid"])),
        addresses: vec![HostPort { host: host.into(), port: port.parse().unwrap() }],
    }
}

fn expected_notification(decoded: &Value) -> Notification {
    let state = i32::try_from(number(&decoded["state"])).unwrap();
    Notification {
        standing: Standing {
            state: ServerState::from_code(state).unwrap(),
            vote: Vote {
                peer_epoch: Epoch(number(&decoded["peerEpoch"])),
                zxid: Zxid(number(&decoded["zxid"])),
                leader: ServerId(number(&decoded["leader"])),
            },
            round: Round(number(&decoded["electionEpoch"])),
        },
        version: i32::try_from(number(&decoded["version"])).unwrap(),
        config: Bytes::copy_from_slice(text(decoded, "config").as_bytes()),
        mark: Mark::NONE,
    }
}

/// The packet that a line of a session means, from its `decoded` where that says it all.
fn expected_packet(line: &Value) -> Packet {
    let zxid = Zxid(number(&line["zxid"]));
    let decoded = &line["decoded"];
    let data = || data_of(line).unwrap();
    let protocol = || i32::try_from(number(&decoded["protocolVersion"])).unwrap();
    let info = || LearnerInfo {
        accepted_epoch: zxid.epoch(),
        id: Some(ServerId(number(&decoded["serverid"]))),
        protocol: protocol(),
        config_version: number(&decoded["configVersion"]),
    };
    match text(line, "packet") {
        "FOLLOWERINFO" => Packet::FollowerInfo(info()),
        "OBSERVERINFO" => Packet::ObserverInfo(info()),
        "LEADERINFO" => Packet::LeaderInfo { epoch: zxid.epoch(), protocol: protocol() },
        "ACKEPOCH" => {
            let epoch = number(&decoded["lastEpoch"]);
            Packet::AckEpoch { last: zxid, current_epoch: (epoch != -1).then_some(Epoch(epoch)) }
        }
        "DIFF" => Packet::Diff(zxid),
        "TRUNC" => Packet::Trunc(zxid),
        "SNAP" => Packet::snap(zxid),
        "NEWLEADER" => Packet::NewLeader {
            zxid,
            config: Bytes::copy_from_slice(text(decoded, "config").as_bytes()),
        },
        "UPTODATE" => Packet::UpToDate,
        "ACK" => Packet::Ack(zxid),
        "COMMIT" => Packet::Commit(zxid),
        "PING" => Packet::Ping { zxid, sessions: data_of(line) },
        "PROPOSAL" => Packet::Proposal(Txn::decode(data()).unwrap()),
        "INFORM" => Packet::Inform(Txn::decode(data()).unwrap()),
        "COMMITANDACTIVATE" => Packet::CommitAndActivate {
            zxid,
            leader: ServerId(number(&decoded["designatedLeader"])),
        },
        "REQUEST" => {
            let identity = |identity: &Value| Identity {
                scheme: text(identity, "scheme").into(),
                id: text(identity, "id").into(),
            };
            let identities =
                line["authinfo"].as_array().map(|all| all.iter().map(identity).collect());
            let mut body = data();
            let id = RequestId { client: body.get_i64(), cxid: body.get_i32() };
            Packet::Request(Request { id, op: body.get_i32(), body, identities })
        }
        "REVALIDATE" => Packet::Revalidate(data()),
        "SYNC" => Packet::Sync { tag: 0 },
        other => panic!("unexpected packet {other}"),
    }
}

/// Numbers at the beginning of the data, as `decoded` has them.
fn check_numbers(row: &str, data: &[u8], fields: &[(usize, &Value)]) {
    let mut at = 0;
    for (width, value) in fields {
        let mut wide = [if data[at] & 0x80 == 0 { 0 } else { 0xff }; 8];
        wide[8 - width..].copy_from_slice(&data[at..at + width]);
        assert_eq!(i64::from_be_bytes(wide), number(value), "{row}: number at {at}");
        at += width;
    }
}

fn is_snapshot(line: &Value) -> bool {
    text(line, "packet") == "SNAPSHOT STREAM"
}

// ---- one message at a time --------------------------------------------------------------------

#[test]
fn handshakes_of_elections_both_ways() {
    let mut count = 0;
    for (file, content) in ELECTIONS {
        for line in lines(content).filter(|line| line["event"] == "handshake") {
            let row = format!("{file} at {}", line["t_ms"]);
            let bytes = hex_of(&line);
            let mut buf = BytesMut::from(&bytes[..]);
            let introduction = wire::decode_introduction(&mut buf);
            let expected = expected_introduction(&line["decoded"]);
            assert_eq!(introduction, Ok(Some(expected.clone())), "{row}");
            assert!(buf.is_empty(), "{row}");
            assert_eq!(wire::encode_introduction(&expected), bytes, "{row}");
            count += 1;
        }
    }
    assert_eq!(count, 12);
}

#[test]
fn notifications_of_elections_both_ways() {
    let mut count = 0;
    for (file, content) in ELECTIONS {
        for line in lines(content).filter(|line| line["event"] == "notification") {
            let row = format!("{file} at {}", line["t_ms"]);
            let bytes = hex_of(&line);
            let expected = expected_notification(&line["decoded"]);
            let mut buf = BytesMut::from(&bytes[..]);
            assert_eq!(wire::take_notification(&mut buf), Ok(Some(expected.clone())), "{row}");
            assert!(buf.is_empty(), "{row}");

            let mut buf = BytesMut::from(&bytes[..]);
            let frame = wire::decode_frame(&mut buf).unwrap().unwrap();
            assert_eq!(wire::decode_notification(frame), Ok(expected.clone()), "{row}");

            let mut out = BytesMut::new();
            wire::encode_notification(&expected, &mut out);
            assert_eq!(out, bytes, "{row}");
            count += 1;
        }
    }
    assert_eq!(count, 40);
}

#[test]
fn packets_of_sessions_both_ways() {
    let mut count = 0;
    for (file, content) in SESSIONS {
        for line in lines(content).skip(1).filter(|line| !is_snapshot(line)) {
            let row = format!("{file}, packet {}", line["n"]);
            let bytes = hex_of(&line);
            let mut buf = BytesMut::from(&bytes[..]);
            let packet = wire::decode_packet(&mut buf, wire::MAX_DATA).unwrap().unwrap();
            assert!(buf.is_empty(), "{row}");
            assert_eq!(packet, expected_packet(&line), "{row}");
            assert_eq!(packet.name(), text(&line, "packet"), "{row}");

            let mut out = BytesMut::new();
            wire::encode_packet(&packet, &mut out);
            assert_eq!(out, bytes, "{row}");
            let mut around = BytesMut::new();
            if let Some((place, payload)) = wire::encode_around_payload(&packet, &mut around) {
                let tail = around.split_off(place);
                around.extend_from_slice(&payload);
                around.unsplit(tail);
            }
            assert_eq!(around, bytes, "{row}, around its payload");
            check_decoded(&row, &packet, &line["decoded"]);
            count += 1;
        }
    }
    assert_eq!(count, 574);
}

/// What `decoded` says about payloads that we carry undecoded.
fn check_decoded(row: &str, packet: &Packet, decoded: &Value) {
    if let Packet::Proposal(txn) | Packet::Inform(txn) = packet {
        let (hdr, data) = (&decoded["hdr"], &txn.head());
        let fields = [(8, "clientId"), (4, "cxid"), (8, "zxid"), (8, "time"), (4, "type")];
        check_numbers(row, data, &fields.map(|(width, key)| (width, &hdr[key])));
    } else if let Packet::Request(request) = packet {
        let numbers = [
            (request.id.client, "session"),
            (i64::from(request.id.cxid), "cxid"),
            (i64::from(request.op), "optype"),
        ];
        for (found, key) in numbers {
            assert_eq!(found, number(&decoded[key]), "{row}: {key}");
        }
        assert_eq!(request.body, unhex(text(decoded, "request")), "{row}");
    } else if let Packet::Revalidate(data) = packet {
        check_numbers(row, data, &[(8, &decoded["session"])]);
        if let Some(valid) = decoded["valid"].as_bool() {
            assert_eq!(data[8..], [u8::from(valid)], "{row}");
        } else {
            check_numbers(row, &data[8..], &[(4, &decoded["timeout"])]);
        }
    } else if let Packet::Ping { sessions, .. } = packet {
        let touched = decoded["touch"].as_array().map(Vec::as_slice).unwrap_or_default();
        let data = sessions.as_deref().unwrap_or_default();
        assert_eq!(data.len(), 12 * touched.len(), "{row}");
        for (data, touch) in data.chunks(12).zip(touched) {
            check_numbers(row, data, &[(8, &touch["session"]), (4, &touch["timeout"])]);
        }
    }
}

// ---- streams, one byte at a time --------------------------------------------------------------

#[test]
fn streams_of_elections_one_byte_at_a_time() {
    for (file, content) in ELECTIONS {
        for handshake in lines(content).filter(|line| line["event"] == "handshake") {
            let (conn, dialler) = (&handshake["conn"], &handshake["from"]);
            // Only the dialler's direction begins with an introduction.
            for from_dialler in [true, false] {
                let row = format!("{file}, connection {conn}, from its dialler: {from_dialler}");
                let ours = lines(content).filter(|line| {
                    line["conn"] == *conn
                        && (line["event"] == "handshake" || line["event"] == "notification")
                        && (line["from"] == *dialler) == from_dialler
                });
                let mut introduced = !from_dialler;
                let mut buf = BytesMut::new();
                for line in ours {
                    let mut seen = None;
                    for byte in hex_of(&line) {
                        assert_eq!(seen, None, "{row}: before the last byte");
                        buf.extend_from_slice(&[byte]);
                        if introduced {
                            seen = wire::take_notification(&mut buf).unwrap();
                        } else if let Some(who) = wire::decode_introduction(&mut buf).unwrap() {
                            assert_eq!(who, expected_introduction(&line["decoded"]), "{row}");
                            introduced = true;
                        }
                    }
                    assert!(introduced && buf.is_empty(), "{row}");
                    let expected = (line["event"] == "notification")
                        .then(|| expected_notification(&line["decoded"]));
                    assert_eq!(seen, expected, "{row}");
                }
            }
        }
    }
}

#[test]
fn streams_of_sessions_one_byte_at_a_time() {
    for (file, content) in SESSIONS {
        for from in ["learner", "leader"] {
            let ours: Vec<_> = lines(content).skip(1).filter(|line| line["from"] == from).collect();
            let mut expected = ours.iter().filter(|line| !is_snapshot(line)).map(expected_packet);
            let mut buf = BytesMut::new();
            for line in &ours {
                if is_snapshot(line) {
                    assert!(buf.is_empty(), "{file}: nothing of the snapshot was taken");
                    continue;
                }
                for byte in hex_of(line) {
                    buf.extend_from_slice(&[byte]);
                    if let Some(packet) = wire::decode_packet(&mut buf, wire::MAX_DATA).unwrap() {
                        assert_eq!(Some(packet), expected.next(), "{file}: {from} {}", line["n"]);
                    }
                }
            }
            assert!(buf.is_empty() && expected.next().is_none(), "{file}: {from}");
        }
    }
}

#[test]
fn streams_of_sessions_all_at_once() {
    for (file, content) in SESSIONS {
        let ours = || lines(content).skip(1).filter(|line| line["from"] == "learner");
        let mut buf =
            BytesMut::from(&ours().flat_map(|line| hex_of(&line)).collect::<Vec<_>>()[..]);
        for line in ours() {
            let packet = wire::decode_packet(&mut buf, wire::MAX_DATA).unwrap().unwrap();
            assert_eq!(packet, expected_packet(&line), "{file}: {}", line["n"]);
        }
        assert!(buf.is_empty(), "{file}");
    }
}

// ---- what the real server accepted and refused ------------------------------------------------

/// What became of some input.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Accepted,
    Dropped,
    Closed,
}

fn fate<T>(result: &Result<Option<T>, DecodeError>) -> Fate {
    match result {
        Ok(Some(_)) => Fate::Accepted,
        Ok(None) => panic!("undecided"),
        Err(error) if error.is_fatal() => Fate::Closed,
        Err(_) => Fate::Dropped,
    }
}

/// What the real server did with the first input of a case.
fn real_fate(case: &Value) -> Fate {
    let steps = case["steps"].as_array().unwrap();
    let answered = |step: &Value| step["dir"].as_str().is_some_and(|dir| dir.starts_with("server"));
    if steps.iter().any(answered) {
        Fate::Accepted
    } else if steps.iter().any(|step| step["event"] == "server closed connection") {
        Fate::Closed
    } else {
        Fate::Dropped
    }
}

fn sent_by(case: &Value, who: &str) -> Vec<Value> {
    let steps = case["steps"].as_array().unwrap().iter();
    steps
        .filter(|step| step["dir"].as_str().is_some_and(|dir| dir.starts_with(who)))
        .cloned()
        .collect()
}

/// Well-formed introductions that the real server did not answer for another reason than their form.
const INTRODUCTIONS_FOR_LINKS_TO_JUDGE: [(&str, &str); 3] = [
    (
        "handshake: bare sid 0 unknown",
        "a smaller id is dialled back, but nobody knows where it listens",
    ),
    ("handshake: own sid 1", "nobody may speak under our own id"),
    ("handshake: sid Long.MAX (observer id)", "reserved for observers without an id of their own"),
];

#[test]
fn introductions_are_accepted_and_refused_as_by_the_real_server() {
    for case in lines(HANDSHAKE_PROBES) {
        let name = text(&case, "case");
        let judged_by_links = INTRODUCTIONS_FOR_LINKS_TO_JUDGE.iter().find(|row| row.0 == name);
        let expected = if let Some((_, why)) = judged_by_links {
            assert_ne!(real_fate(&case), Fate::Accepted, "{name}: {why}");
            Fate::Accepted
        } else {
            real_fate(&case)
        };
        let mut sent = sent_by(&case, "probe").into_iter();
        let mut buf = BytesMut::from(&hex_of(&sent.next().unwrap())[..]);
        assert_eq!(fate(&wire::decode_introduction(&mut buf)), expected, "{name}");
        assert!(expected == Fate::Closed || buf.is_empty(), "{name}");

        for step in sent {
            let mut buf = BytesMut::from(&hex_of(&step)[..]);
            assert_eq!(fate(&wire::take_notification(&mut buf)), Fate::Accepted, "{name}: {step}");
        }
        for step in sent_by(&case, "server") {
            check_frames(name, &step);
        }
    }
}

/// The frames, or the introduction, that the real server sent in a step.
fn check_frames(row: &str, step: &Value) {
    let mut buf = BytesMut::from(&hex_of(step)[..]);
    let decoded = step["decoded"].as_array().unwrap();
    if decoded.is_empty() {
        let introduction = wire::decode_introduction(&mut buf).unwrap().unwrap();
        assert_eq!(wire::encode_introduction(&introduction), hex_of(step), "{row}");
    }
    for decoded in decoded {
        let notification = wire::take_notification(&mut buf);
        assert_eq!(notification, Ok(Some(expected_notification(decoded))), "{row}");
    }
    assert!(buf.is_empty(), "{row}");
}

/// Hand-made introductions of which no capture exists, because the real server did not survive them or
/// because they are ours to define.
#[test]
fn introductions_of_other_forms() {
    let head = |protocol: i64, length: i32| {
        [&protocol.to_be_bytes()[..], &3_i64.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    let with = |protocol: i64, text: &[u8]| {
        [&head(protocol, i32::try_from(text.len()).unwrap())[..], text].concat()
    };
    let one = |text: &str| with(wire::PROTOCOL_ONE_ADDRESS, text.as_bytes());
    let many = |text: &str| with(wire::PROTOCOL_MANY_ADDRESSES, text.as_bytes());
    let port = |port| Err(DecodeError::Port { index: 0, port });
    let longest = format!("{}:1", "a".repeat(wire::MAX_ADDRESSES - 2));
    type Addresses<'a> = Result<&'a [&'a str], DecodeError>;
    let rows: [(&str, Vec<u8>, Addresses<'_>); 28] = [
        ("port 70000, at which the real acceptor dies", one("a:70000"), port(70_000)),
        ("port 65536", one("a:65536"), port(65_536)),
        ("port 65535", one("a:65535"), Ok(&["a:65535"])),
        (
            "port with 30 digits",
            one("a:123456789012345678901234567890"),
            Err(DecodeError::Address(0)),
        ),
        ("negative port", one("a:-1"), Err(DecodeError::Address(0))),
        ("port 0, to which nobody can dial", one("a:0"), Ok(&[])),
        ("port that is a name", one("a:http"), Err(DecodeError::Address(0))),
        ("empty port", one("a:"), Err(DecodeError::Address(0))),
        ("empty host", one(":1"), Ok(&[])),
        ("two ports", one("a:1:2"), Err(DecodeError::Address(0))),
        ("two addresses in the form for one", one("a:1|b:2"), Ok(&["a:1", "b:2"])),
        ("two addresses", many("a:1|b:2"), Ok(&["a:1", "b:2"])),
        ("second of two malformed", many("a:1|b"), Err(DecodeError::Address(1))),
        ("nothing after the separator", many("a:1|"), Err(DecodeError::Address(1))),
        ("IPv6", one("[fe80::1]:3888"), Ok(&["[fe80::1]:3888"])),
        ("IPv6 without brackets", one("fe80::1:3888"), Err(DecodeError::Address(0))),
        ("IPv6 without port", one("[fe80::1]"), Err(DecodeError::Address(0))),
        ("brackets within brackets", one("[[]:1"), Err(DecodeError::Address(0))),
        ("bracket without its other half", one("a]:1"), Err(DecodeError::Address(0))),
        ("end of line in a name", one("a\nb:1"), Err(DecodeError::Address(0))),
        ("IPv6 wildcard", many("[::]:3888|10.0.0.1:3888"), Ok(&["10.0.0.1:3888"])),
        ("wildcard only", many("0.0.0.0:3888"), Ok(&[])),
        (
            "name that does not resolve",
            one("no.such.host.invalid:1"),
            Ok(&["no.such.host.invalid:1"]),
        ),
        ("not UTF-8", with(-65536, b"a\xff:1"), Err(DecodeError::AddressText(1))),
        ("longest", one(&longest), Ok(&[&longest])),
        ("length 2^31-1", head(-65536, i32::MAX), Err(DecodeError::AddressLength(i32::MAX))),
        ("length -2^31", head(-65535, i32::MIN), Err(DecodeError::AddressLength(i32::MIN))),
        ("protocol -65534", head(-65534, 1), Err(DecodeError::UnknownProtocol(-65534))),
    ];
    for (row, bytes, expected) in rows {
        let result = wire::decode_introduction(&mut BytesMut::from(&bytes[..]));
        assert_ne!(fate(&result), Fate::Dropped, "{row}");
        let addresses = result.map(|introduction| {
            let introduction = introduction.unwrap();
            assert_eq!(introduction.id, ServerId(3), "{row}");
            introduction.addresses.iter().map(HostPort::to_string).collect()
        });
        let expected: Result<Vec<_>, _> =
            expected.map(|all| all.iter().map(|address| String::from(*address)).collect());
        assert_eq!(addresses, expected, "{row}");
    }
    let negative =
        [&(-65536_i64).to_be_bytes()[..], &(-1_i64).to_be_bytes(), &3_i32.to_be_bytes(), b"a:1"];
    let introduction = wire::decode_introduction(&mut BytesMut::from(&negative.concat()[..]));
    assert_eq!(introduction.unwrap().unwrap().id, ServerId(-1), "ids are judged elsewhere");
}

/// Notifications that the real server took and had nothing to answer to.
const NOTIFICATIONS_WITHOUT_ANSWER: [(&str, &str); 2] = [
    ("notification: state FOLLOWING", "a settled server answers only who is looking"),
    ("notification: state OBSERVING", "a settled server answers only who is looking"),
];

#[test]
fn notifications_are_accepted_and_refused_as_by_the_real_server() {
    for case in lines(NOTIFICATION_PROBES) {
        let name = text(&case, "case");
        let without_answer = NOTIFICATIONS_WITHOUT_ANSWER.iter().find(|row| row.0 == name);
        let expected = if let Some((_, why)) = without_answer {
            assert_eq!(real_fate(&case), Fate::Dropped, "{name}: {why}");
            Fate::Accepted
        } else {
            real_fate(&case)
        };
        for step in sent_by(&case, "probe") {
            let bytes = hex_of(&step);
            let mut buf = BytesMut::from(&bytes[..]);
            assert_eq!(fate(&wire::take_notification(&mut buf)), expected, "{name}");
            assert!(expected == Fate::Closed || buf.is_empty(), "{name}");

            let mut buf = BytesMut::from(&bytes[..]);
            let framed = wire::decode_frame(&mut buf);
            let fate = match framed {
                Ok(frame) => fate(&wire::decode_notification(frame.unwrap()).map(Some)),
                Err(_) => fate(&framed),
            };
            assert_eq!(fate, expected, "{name}, frame first");
        }
        for step in sent_by(&case, "server") {
            check_frames(name, &step);
        }
    }
}

#[test]
fn quorum_probes() {
    for case in QUORUM_PROBES.into_iter().flat_map(lines) {
        let name = text(&case, "case");
        for step in case["steps"].as_array().unwrap() {
            if let Some(event) = step["event"].as_str() {
                check_notifications_in_event(name, event);
                continue;
            }
            let mut buf = BytesMut::from(&hex_of(step)[..]);
            if name == "learner: unreasonable length" {
                let result = wire::decode_packet(&mut buf, wire::MAX_DATA);
                assert_eq!(
                    result,
                    Err(DecodeError::BufferLength { length: i32::MAX, max: wire::MAX_DATA }),
                    "{name}"
                );
                continue;
            }
            let mut expected = step["decoded"].as_array().map(|all| all.iter());
            while !buf.is_empty() {
                let packet = wire::decode_packet(&mut buf, wire::MAX_DATA).unwrap().unwrap();
                if let Some(expected) = &mut expected {
                    let expected = expected.next().unwrap();
                    assert_eq!(packet.name(), text(expected, "packet"), "{name}");
                    check_payload(name, &packet, expected);
                }
                if matches!(packet, Packet::Snap { .. }) {
                    let signature = b"\0\0\0\x0aBenWasHere";
                    let end = buf.windows(signature.len()).position(|w| w == signature).unwrap();
                    drop(buf.split_to(end + signature.len()));
                    expected.as_mut().unwrap().next();
                }
            }
            assert!(expected.is_none_or(|mut rest| rest.next().is_none()), "{name}");
        }
    }
}

fn check_payload(row: &str, packet: &Packet, expected: &Value) {
    let mut out = BytesMut::new();
    let (place, payload) = wire::encode_around_payload(packet, &mut out).unzip();
    assert_eq!(out[4..12], number(&expected["zxid"]).to_be_bytes(), "{row}");
    if let (Some(place), Some(payload)) = (place, payload) {
        let tail = out.split_off(place);
        out.extend_from_slice(&payload);
        out.unsplit(tail);
    }
    let data = (out.len() > 20).then(|| out.split_to(out.len() - 4).split_off(16).freeze());
    let old_leader = packet.name() == "NEWLEADER" && data_of(expected).is_none();
    let expected = data_of(expected).filter(|data| !data.is_empty());
    assert!(old_leader || data == expected, "{row}: {place:?}, {packet:?}");
}

fn check_notifications_in_event(row: &str, event: &str) {
    let Some(json) = event.find('{').map(|at| &event[at..]) else { return };
    let frames: Value = serde_json::from_str(json).unwrap();
    for frame in frames.as_object().unwrap().values() {
        let bytes = unhex(frame.as_str().unwrap());
        let notification =
            wire::take_notification(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        let mut out = BytesMut::new();
        wire::encode_notification(&notification, &mut out);
        assert_eq!(out, bytes, "{row}");
    }
}

/// The shorter forms of a learner's information, which the real leader accepts.
#[test]
fn learner_information_of_older_forms() {
    let first = |name: &str| {
        let case = lines(QUORUM_PROBES[0]).find(|case| case["case"] == name).unwrap();
        wire::decode_packet(&mut BytesMut::from(&hex_of(&case["steps"][0])[..]), wire::MAX_DATA)
    };
    let old = |id| {
        Ok(Some(Packet::FollowerInfo(LearnerInfo {
            accepted_epoch: Epoch(1),
            id,
            protocol: 1,
            config_version: 0,
        })))
    };
    assert_eq!(first("learner: old protocol: null learner info"), old(None));
    assert_eq!(first("learner: old protocol: 8 byte info"), old(Some(ServerId(3))));
}

// ---- damaged bytes ----------------------------------------------------------------------------

/// Flips, cuts, doubles and overwrites what real servers sent: nothing panics, every decoder comes to
/// an end, and no decoder grows the buffer.
#[test]
fn damaged_messages_never_panic() {
    let elections = ELECTIONS.iter().flat_map(|(_, content)| lines(content));
    let sessions = SESSIONS.iter().flat_map(|(_, content)| lines(content).skip(1));
    let messages: Vec<_> = elections
        .chain(sessions)
        .filter(|line| line["hex"].is_string())
        .map(|line| hex_of(&line))
        .collect();
    let corners: [u32; 8] =
        [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x8_0001, 0x1f_fffe, 0x1f_ffff];
    let mut rng = Rng::new(3769);
    for _ in 0..if cfg!(miri) { 200 } else { 40_000 } {
        let mut pick = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
        let mut bytes = messages[pick(messages.len())].clone();
        for _ in 0..=pick(3) {
            match pick(4) {
                0 => {
                    let at = pick(bytes.len().max(1));
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << pick(8);
                    }
                }
                1 => bytes.truncate(pick(bytes.len() + 1)),
                2 => bytes.extend_from_slice(&messages[pick(messages.len())]),
                _ => {
                    let at = pick(bytes.len().max(1));
                    if let Some(place) = bytes.get_mut(at..at + 4) {
                        place.copy_from_slice(&corners[pick(corners.len())].to_be_bytes());
                    }
                }
            }
        }
        drain(&bytes, wire::decode_introduction);
        drain(&bytes, wire::take_notification);
        drain(&bytes, |buf| wire::decode_packet(buf, wire::MAX_DATA));
        drain(&bytes, |buf| {
            let frame = wire::decode_frame(buf)?;
            frame.map(wire::decode_notification).transpose()
        });
    }
}

/// Each message as real servers sent it, of each length and each kind of beginning once: every prefix of it, and
/// every byte of it as every other byte.
#[test]
#[cfg_attr(miri, ignore = "a million messages")]
fn every_byte_of_a_message_may_be_any_other_and_the_last() {
    let mut seen = std::collections::BTreeSet::new();
    let mut look = |file: &str, skip: usize, decode: fn(&[u8])| {
        for bytes in lines(file).skip(skip).filter(|l| l["hex"].is_string()).map(|l| hex_of(&l)) {
            if bytes.len() > 400
                || !seen.insert((bytes.len(), bytes[..bytes.len().min(8)].to_vec()))
            {
                continue;
            }
            (0..bytes.len()).for_each(|end| decode(&bytes[..end]));
            for at in 0..bytes.len() {
                let mut bytes = bytes.clone();
                for value in 0..=u8::MAX {
                    bytes[at] = value;
                    decode(&bytes);
                }
            }
        }
    };
    for (_, file) in ELECTIONS {
        look(file, 0, |bytes| {
            drain(bytes, wire::decode_introduction);
            drain(bytes, wire::take_notification);
        });
    }
    for (_, file) in SESSIONS {
        look(file, 1, |bytes| drain(bytes, |buf| wire::decode_packet(buf, wire::MAX_DATA)));
    }
    assert!(seen.len() > 40, "only {}", seen.len());
}

fn drain<T>(bytes: &[u8], decode: impl Fn(&mut BytesMut) -> Result<Option<T>, DecodeError>) {
    let mut buf = BytesMut::from(bytes);
    let capacity = buf.capacity();
    loop {
        let before = buf.len();
        match decode(&mut buf) {
            Ok(None) => {
                assert_eq!(buf.len(), before, "nothing was taken");
                break;
            }
            Err(error) if error.is_fatal() => break,
            Ok(Some(_)) | Err(_) => assert!(buf.len() < before, "a whole message was taken"),
        }
        assert!(buf.capacity() <= capacity);
    }
}
