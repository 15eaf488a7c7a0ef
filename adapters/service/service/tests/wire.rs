//! The protocol of clients against bytes that clients and Apache ZooKeeper 3.8.0 servers sent.
//!
//! `golden/client-*` are whole conversations on the client port: `hex` is what was on the wire, with its length, and
//! `decoded` what it means.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{
    self, ConnectRequest, ConnectResponse, Malformed, MultiResult, NOTIFICATION_XID, PING_XID,
    ReplyHeader, Request, Response, WatcherEvent, code, op, password, reply, split, split_reply,
};
use serde_json::Value;

use crate::support::{CONVERSATIONS, body_of, code_of, frames, int, long, stat, text, unhex};

// ---- captured bytes ---------------------------------------------------------------------------

#[test]
fn connect_requests_go_both_ways() {
    let mut seen = 0;
    for (line, bytes) in frames("connect") {
        let request = ConnectRequest::decode(&body_of(&bytes)).unwrap();
        let decoded = &line["decoded"];
        let password = decoded["passwd"].as_str().map(unhex);
        assert_eq!(request.protocol, int(&decoded["protocolVersion"]));
        assert_eq!(request.last_zxid, Zxid(long(&decoded["lastZxidSeen"])));
        assert_eq!(request.timeout_ms, int(&decoded["timeOut"]));
        assert_eq!(request.session, long(&decoded["sessionId"]));
        assert_eq!(request.password, password.clone().unwrap_or_default());
        assert_eq!(request.read_only, decoded["readOnly"].as_bool());
        if password.is_some() {
            assert_eq!(request.encode(), bytes);
        }
        assert_eq!(ConnectRequest::decode(&body_of(&request.encode())), Ok(request));
        seen += 1;
    }
    assert_eq!(seen, 62);
}

#[test]
fn connect_responses_go_both_ways_and_their_passwords_are_computed() {
    let mut refused = 0;
    for (line, bytes) in frames("connect response") {
        let response = ConnectResponse::decode(&body_of(&bytes)).unwrap();
        let decoded = &line["decoded"];
        assert_eq!(response.timeout_ms, int(&decoded["timeOut"]));
        assert_eq!(response.session, long(&decoded["sessionId"]));
        assert_eq!(response.read_only, decoded["readOnly"].as_bool());
        assert_eq!(response.encode(), bytes);
        if response.session == 0 {
            assert_eq!(response, ConnectResponse::refused(response.read_only));
            refused += 1;
        } else {
            assert_eq!(response.password, password(response.session));
        }
    }
    assert!(refused > 0);
}

#[test]
fn requests_go_both_ways() {
    let (mut seen, mut malformed, mut longer, mut replaced) = (0, 0, 0, 0);
    for (line, bytes) in frames("request") {
        let (header, body) = split(body_of(&bytes)).unwrap();
        assert_eq!(header.xid, int(&line["xid"]));
        let Some(code) = code_of(&line["op"]) else {
            assert_eq!(Request::decode(header.op, &body), Ok(None), "{line}");
            continue;
        };
        assert_eq!(header.op, code);
        let request = match Request::decode(header.op, &body) {
            Ok(request) => request.unwrap(),
            Err(error) => {
                let decoded = &line["decoded"];
                let null = decoded["path"].is_null() && error == Malformed::NullPath;
                let element = matches!(error, Malformed::NotAnElement(_));
                assert!(null || element || decoded == "undecodable", "{error} of {line}");
                assert_eq!(answer(&line), code::MARSHALLING_ERROR, "{line}");
                malformed += 1;
                continue;
            }
        };
        says(&request, &line["decoded"]);
        let again = request.frame(header.xid);
        if again.len() < bytes.len() {
            // Bytes behind the body.
            assert_eq!(again[4..], bytes[4..again.len()]);
            longer += 1;
        } else if line["decoded"] == "undecodable" {
            // A path that is not UTF-8.
            assert!(format!("{request:?}").contains("/\u{fffd}\u{fffd}"), "{request:?}");
            replaced += 1;
        } else {
            assert_eq!(again, bytes, "{line}");
        }
        seen += 1;
    }
    assert_eq!((malformed, longer, replaced), (11, 2, 2), "of {seen}");
    assert!(seen > 400, "{seen}");
}

/// What ZooKeeper answered to a request that cannot be read: no other on its connection has the same xid.
fn answer(request: &Value) -> i32 {
    let mut answers = CONVERSATIONS.iter().filter_map(|file| {
        let lines: Vec<Value> =
            file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let at = lines.iter().position(|line| line == request)?;
        let same = |line: &&Value| {
            line["frame"] == "reply" && ["conn", "xid"].iter().all(|key| line[key] == request[key])
        };
        lines[at..].iter().find(same).map(|line| int(&line["err"]))
    });
    answers.next().unwrap()
}

/// Compares the fields that a bytewise comparison cannot see swapped.
fn says(request: &Request, decoded: &Value) {
    let shown = format!("{request:?}");
    if let Some(path) = decoded["path"].as_str() {
        let said = [format!("path: {path:?}"), format!("path: Some({path:?})")];
        assert!(said.iter().any(|said| shown.contains(said)), "{shown} of {decoded}");
    }
    if let Request::Create { data, acl, flags, ttl, .. } = request {
        let fields = &decoded["flags"];
        if !fields.is_null() {
            assert_eq!((*flags, ttl.is_some()), (int(fields), !decoded["ttl"].is_null()));
            assert_eq!(*data, decoded["data"].as_str().map(unhex));
            let entries = decoded["acl"].as_array().map(Vec::len);
            assert_eq!(acl.as_ref().map(Vec::len), entries);
        }
    }
    if let Request::Reconfig { joining, leaving, members, version } = request {
        assert_eq!(*joining, text(&decoded["joiningServers"]), "{decoded}");
        assert_eq!(*leaving, text(&decoded["leavingServers"]));
        assert_eq!(*members, text(&decoded["newMembers"]));
        assert_eq!(*version, long(&decoded["curConfigId"]));
    }
    if let Request::Multi(elements) | Request::MultiRead(elements) = request {
        let all = decoded.as_array().unwrap();
        assert_eq!(elements.len(), all.len());
        for (element, decoded) in elements.iter().zip(all) {
            assert_eq!(element.op(), int(&decoded["type"]));
            says(element, &decoded["body"]);
        }
    }
}

#[test]
fn replies_go_both_ways() {
    let (mut bodies, mut stats) = (0, 0);
    for (line, bytes) in frames("reply") {
        let (header, body) = split_reply(body_of(&bytes)).unwrap();
        assert_eq!(header.xid, int(&line["xid"]));
        assert_eq!(header.zxid, Zxid(long(&line["zxid"])));
        assert_eq!(header.err, int(&line["err"]));
        if header.err != 0 {
            assert_eq!(body.len(), 0);
            assert_eq!(reply(header, |out| out.put_i32(7)), bytes);
            continue;
        }
        // The reply to a ping with an xid of its own, which the files do not find the request of.
        let code = if header.xid == PING_XID && line["op"].is_null() {
            op::PING
        } else {
            code_of(&line["op"]).unwrap_or_else(|| panic!("{line}"))
        };
        let response = Response::decode(code, &body).unwrap().unwrap();
        assert_eq!(reply(header, |out| response.encode(out)), bytes, "{line}");
        if let Response::Data { stat: read, .. } | Response::Children2 { stat: read, .. } = response
        {
            assert_eq!(read, stat(&line["decoded"]["stat"]));
            stats += 1;
        }
        bodies += usize::from(!body.is_empty());
    }
    assert!(bodies > 200 && stats > 50, "{bodies}, {stats}");
}

#[test]
fn events_go_both_ways() {
    let mut seen = 0;
    for (line, bytes) in frames("watch event") {
        let (header, body) = split_reply(body_of(&bytes)).unwrap();
        assert_eq!((header.xid, header.err), (NOTIFICATION_XID, 0));
        let event = WatcherEvent::decode(&body).unwrap();
        assert_eq!(event.path, line["decoded"]["path"].as_str().unwrap());
        assert_eq!(event.encode(header.zxid), bytes);
        seen += 1;
    }
    assert_eq!(seen, 54);
}

// ---- what was not captured --------------------------------------------------------------------

#[test]
fn passwords_are_those_of_the_examples() {
    for (session, hex) in [
        (0x0200_0044_b8d0_0006, "a8807ebd2732319a1bd0ba15af104ec9"),
        (1, "054cc74a37327db215e702e20c73f005"),
        (0x038b_cfe5_6800_0000, "f2e26f4f973e3638201c89f83802c844"),
        (0xff00_0000_0000_0001_u64 as i64, "054cc74a37327db215e702e20c73f005"),
    ] {
        assert_eq!(password(session)[..], unhex(hex)[..], "{session:x}");
    }
}

fn header(err: i32) -> ReplyHeader {
    ReplyHeader { xid: 9, zxid: Zxid(0x1_0000_0002), err }
}

#[test]
fn only_a_failed_sasl_exchange_has_a_body_beside_an_error() {
    let bytes = wire::failed_sasl(header(code::AUTH_FAILED));
    assert_eq!(bytes, unhex("00000014000000090000000100000002ffffff8dffffffff"));
    let (_, body) = split_reply(body_of(&bytes)).unwrap();
    assert_eq!(Response::decode(op::SASL, &body), Ok(Some(Response::Token(None))));
    let refused = reply(header(code::NO_NODE), |_| panic!("it has no body"));
    assert_eq!(refused, unhex("00000010000000090000000100000002ffffff9b"));
}

#[test]
fn a_read_in_a_multi_or_a_multi_in_a_multi_is_refused() {
    let get = Request::GetData { path: "/a".into(), watch: false };
    let multi = Request::Multi(vec![get.clone()]);
    for (inner, outer) in [
        (get, op::MULTI),
        (multi, op::MULTI),
        (Request::MultiRead(vec![]), op::MULTI_READ),
        (Request::Delete { path: "/a".into(), version: -1 }, op::MULTI_READ),
    ] {
        let mut body = BytesMut::new();
        body.put_i32(inner.op());
        body.put_u8(0);
        body.put_i32(-1);
        inner.encode(&mut body);
        let refused = Request::decode(outer, &body.freeze());
        assert_eq!(refused, Err(Malformed::NotAnElement(inner.op())));
    }
    // And not written either.
    let mut body = BytesMut::new();
    Request::Multi(vec![Request::Multi(vec![])]).encode(&mut body);
    assert_eq!(body, unhex("ffffffff01ffffffff"));
}

#[test]
fn a_sasl_token_and_a_null_path_of_sync_go_both_ways() {
    let requests = [
        Request::Sasl { token: Bytes::from_static(b"token") },
        Request::Sync { path: None },
        Request::GetEphemerals { prefix: None },
    ];
    for request in requests {
        let (header, body) = split(body_of(&request.frame(3))).unwrap();
        assert_eq!((header.xid, header.op), (3, request.op()));
        assert_eq!(Request::decode(header.op, &body), Ok(Some(request)));
    }
}

#[test]
fn results_of_every_kind_go_both_ways() {
    let stat = stat(&serde_json::json!({
        "czxid": 1, "mzxid": 2, "ctime": 3, "mtime": 4, "version": 5, "cversion": 6,
        "aversion": 7, "ephemeralOwner": 8, "dataLength": 9, "numChildren": 10, "pzxid": 11,
    }));
    let results = vec![
        MultiResult::Created { path: "/a".into() },
        MultiResult::Created2 { path: "/b".into(), stat },
        MultiResult::Deleted,
        MultiResult::DataSet { stat },
        MultiResult::Checked,
        MultiResult::Data { data: None, stat },
        MultiResult::Children { names: vec!["x".into(), String::new()] },
        MultiResult::Failed { err: code::BAD_VERSION },
    ];
    let mut out = BytesMut::new();
    wire::put_multi(&mut out, &results);
    let read = Response::decode(op::MULTI, &out.freeze()).unwrap();
    assert_eq!(read, Some(Response::Multi(results)));
}

#[test]
fn data_are_slices_of_the_frame() {
    let request =
        Request::SetData { path: "/a".into(), data: Some(vec![7; 1_000].into()), version: 0 };
    let (header, body) = split(body_of(&request.frame(1))).unwrap();
    let Ok(Some(Request::SetData { data: Some(data), .. })) = Request::decode(header.op, &body)
    else {
        panic!("our own bytes")
    };
    assert!(body.as_ptr_range().contains(&data.as_ptr()));
}

// ---- bytes that are cut, or absurd --------------------------------------------------------------

#[test]
fn a_request_that_is_cut_is_malformed_or_a_shorter_one() {
    for (line, bytes) in frames("request") {
        let (header, body) = split(body_of(&bytes)).unwrap();
        for end in 0..body.len() {
            let cut = body.slice(..end);
            if let Ok(Some(shorter)) = Request::decode(header.op, &cut) {
                let mut again = BytesMut::new();
                shorter.encode(&mut again);
                let whole = Request::decode(header.op, &body);
                assert_eq!(whole, Ok(Some(shorter)), "what was cut off was not read: {line}");
            }
        }
    }
}

#[test]
fn a_reply_that_is_cut_is_malformed() {
    for (line, bytes) in frames("reply") {
        let (header, body) = split_reply(body_of(&bytes)).unwrap();
        let Some(code) = code_of(&line["op"]).filter(|_| header.err == 0) else { continue };
        for end in 0..body.len() {
            assert!(Response::decode(code, &body.slice(..end)).is_err(), "{end} of {line}");
        }
    }
    for (_, bytes) in frames("watch event") {
        let (_, body) = split_reply(body_of(&bytes)).unwrap();
        for end in 0..body.len() {
            assert!(WatcherEvent::decode(&body.slice(..end)).is_err());
        }
    }
}

#[test]
fn a_connect_request_that_is_cut_is_malformed_up_to_its_password() {
    let (_, bytes) = frames("connect").next().unwrap();
    let body = body_of(&bytes);
    assert_eq!(body.len(), 45);
    for end in 0..44 {
        assert!(ConnectRequest::decode(&body.slice(..end)).is_err(), "{end}");
    }
    assert_eq!(ConnectRequest::decode(&body.slice(..44)).unwrap().read_only, None);
    let (_, bytes) = frames("getData header as first frame").next().unwrap();
    assert_eq!(ConnectRequest::decode(&body_of(&bytes)), Err(Malformed::Short));
}

#[test]
fn absurd_counts_and_lengths_are_refused_before_anything_is_allocated() {
    let absurd = i32::MAX.to_be_bytes();
    let path = [0, 0, 0, 1, b'/'];
    let create: Bytes = [&path[..], &[0; 4], &absurd].concat().into();
    let acl = Request::decode(op::CREATE, &create);
    assert_eq!(acl, Err(Malformed::CountBeyondEnd { count: 0x7fff_ffff, left: 0 }));
    let watches: Bytes = [&[0; 8][..], &absurd, &path].concat().into();
    for code in [op::SET_WATCHES, op::SET_WATCHES2] {
        let refused = Request::decode(code, &watches);
        assert_eq!(refused, Err(Malformed::CountBeyondEnd { count: 0x7fff_ffff, left: 5 }));
    }
    let data: Bytes = [&path[..], &absurd, &path].concat().into();
    let refused = Request::decode(op::SET_DATA, &data);
    assert_eq!(refused, Err(Malformed::LengthBeyondEnd { length: 0x7fff_ffff, left: 5 }));
    for code in [op::GET_CHILDREN, op::GET_CHILDREN2, op::GET_EPHEMERALS, op::GET_ACL, op::WHO_AM_I]
    {
        let refused = Response::decode(code, &Bytes::copy_from_slice(&absurd));
        assert!(matches!(refused, Err(Malformed::CountBeyondEnd { .. })), "{code}");
    }
}
