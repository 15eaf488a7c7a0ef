//! The audit log: what is told of who has changed what, in the words of ZooKeeper's.

use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{Event, Note};
use quorate_service::wire::{Request, op};
use quorate_service::{Audit, AuditFormat};
use quorate_znode::acl::Acl;

use crate::clients::{create, delete, get, set};
use crate::permissions::{acl, with_list};
use crate::stand::Stand;

fn audited(format: AuditFormat) -> Stand {
    Stand::with(true, |options| {
        options.extended_types = true;
        options.audit = Some(Audit { format, server_user: "zk".into() });
    })
}

fn of_kind(path: &str, op: i32, flags: i32) -> Request {
    let Request::Create { path, data, acl, .. } = create(path) else { panic!() };
    let ttl = (op == op::CREATE_TTL).then_some(60_000);
    Request::Create { op, path, data, acl, flags, ttl }
}

/// The records since the last time, without their times.
fn records(stand: &mut Stand) -> Vec<String> {
    let text = std::mem::take(&mut stand.audited);
    let lines = text.lines().map(|line| {
        let (time, record) = line.split_once(" INFO audit.Slf4jAuditLogger: ").unwrap();
        assert_eq!(time.len(), "2026-11-23 08:00:00,123".len(), "{time}");
        record.to_owned()
    });
    lines.collect()
}

#[test]
fn each_kind_of_change_is_told_with_its_fields_in_the_order_of_zookeeper() {
    let mut stand = audited(AuditFormat::Java);
    assert_eq!(records(&mut stand), ["user=zk\toperation=serverStart\tresult=success"]);
    let (client, session) = stand.client();
    let who = format!("session=0x{session:x}\tuser=10.0.0.7\tip=10.0.0.7\toperation=");
    let told = |stand: &mut Stand, request| {
        drop(stand.call(client, request));
        let records = records(stand);
        let of_it = records.iter().map(|record| record.strip_prefix(&*who).unwrap().to_owned());
        of_it.collect::<Vec<_>>()
    };
    for (path, op, flags, name, kind) in [
        ("/a", op::CREATE, 0, "/a", "persistent"),
        ("/e", op::CREATE2, 1, "/e", "ephemeral"),
        ("/a/s", op::CREATE, 2, "/a/s0000000000", "persistent_sequential"),
        ("/a/t", op::CREATE, 3, "/a/t0000000001", "ephemeral_sequential"),
        ("/c", op::CREATE_CONTAINER, 4, "/c", "container"),
        ("/l", op::CREATE_TTL, 5, "/l", "persistent_with_ttl"),
        ("/a/l", op::CREATE_TTL, 6, "/a/l0000000002", "persistent_sequential_with_ttl"),
    ] {
        let expected = format!("create\tznode={name}\tznode_type={kind}\tresult=success");
        assert_eq!(told(&mut stand, of_kind(path, op, flags)), [expected]);
    }
    assert_eq!(told(&mut stand, set("/a", -1)), ["setData\tznode=/a\tresult=success"]);
    let list = vec![acl(31, "digest", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="), Acl::world(1)];
    let set_acl =
        |path: &str| Request::SetAcl { path: path.into(), acl: Some(list.clone()), version: -1 };
    let list_told = "acl=digest:bob:x:cdrwa,world:anyone:r";
    let expected = format!("setAcl\tznode=/c\t{list_told}\tresult=success");
    assert_eq!(told(&mut stand, set_acl("/c")), [expected], "without the digest of a password");
    assert_eq!(told(&mut stand, delete("/l")), ["delete\tznode=/l\tresult=success"]);
    // What was refused.
    let expected = "create\tznode=/a\tznode_type=persistent\tresult=failure";
    assert_eq!(told(&mut stand, create("/a")), [expected]);
    assert_eq!(told(&mut stand, delete("/nothing")), ["delete\tznode=/nothing\tresult=failure"]);
    assert_eq!(told(&mut stand, set("/nothing", 7)), ["setData\tznode=/nothing\tresult=failure"]);
    let expected = format!("setAcl\tznode=/c\t{list_told}\tresult=failure");
    assert_eq!(told(&mut stand, set_acl("/c")), [expected]);
    // What changes nothing.
    assert_eq!(told(&mut stand, get("/a", false)), [""; 0]);
    assert_eq!(told(&mut stand, Request::Sync { path: Some("/a".into()) }), [""; 0]);
}

#[test]
fn a_multi_is_told_by_its_elements_or_as_one_that_failed() {
    let mut stand = audited(AuditFormat::Java);
    let (client, session) = stand.client();
    records(&mut stand);
    let check = Request::Check { path: "/m".into(), version: -1 };
    let all = vec![
        create("/m"),
        check,
        set("/m", -1),
        of_kind("/m/s", op::CREATE, 2),
        delete("/m/s0000000000"),
    ];
    stand.call(client, Request::Multi(all)).unwrap();
    let who = format!("session=0x{session:x}\tuser=10.0.0.7\tip=10.0.0.7\toperation=");
    let expected = [
        "create\tznode=/m\tznode_type=persistent\tresult=success",
        "setData\tznode=/m\tresult=success",
        "create\tznode=/m/s0000000000\tznode_type=persistent_sequential\tresult=success",
        "delete\tznode=/m/s0000000000\tresult=success",
    ];
    assert_eq!(records(&mut stand), expected.map(|told| who.clone() + told));
    drop(stand.call(client, Request::Multi(vec![delete("/m"), create("/m/x")])));
    assert_eq!(records(&mut stand), [who + "multiOperation\tresult=failure"]);
}

#[test]
fn ephemeral_nodes_go_in_the_name_of_the_server_and_all_names_of_a_client_are_told() {
    let mut stand = audited(AuditFormat::Java);
    let (client, session) = stand.client();
    for proof in ["sara:secret", "bob:x"] {
        let auth = Bytes::copy_from_slice(proof.as_bytes());
        let scheme = Some("digest".into());
        stand.request(client, &[(-4, Request::Auth { kind: 0, scheme, auth })]);
    }
    stand.headers(client);
    stand.call(client, of_kind("/e1", op::CREATE, 1)).unwrap();
    stand.call(client, of_kind("/e2", op::CREATE, 1)).unwrap();
    let session_told = format!("session=0x{session:x}\tuser=");
    let created = records(&mut stand).pop().unwrap();
    let users = created.strip_prefix(&*session_told).unwrap();
    assert!(users.starts_with("sara,bob,10.0.0.7\tip=10.0.0.7\toperation=create\t"), "{users}");
    stand.wait(Duration::from_secs(10));
    stand.settle();
    let gone = "zk\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=";
    let expected = ["/e1", "/e2"].map(|path| format!("{session_told}{gone}{path}\tresult=success"));
    assert_eq!(records(&mut stand), expected);
    stand.tell(Event::Stopping { within: Duration::ZERO });
    assert_eq!(records(&mut stand), ["user=zk\toperation=serverStop\tresult=invoked"]);
}

#[test]
fn what_a_client_has_asked_for_is_told_though_it_has_gone() {
    let mut stand = audited(AuditFormat::Java);
    let (client, _) = stand.client();
    records(&mut stand);
    stand.request(client, &[(1, create("/late"))]);
    stand.tell(Event::Disconnected(client));
    assert_eq!(records(&mut stand), [""; 0]);
    stand.settle();
    let told = records(&mut stand);
    assert!(told[0].ends_with("\tznode=/late\tznode_type=persistent\tresult=success"), "{told:?}");
}

#[test]
fn what_is_refused_before_it_reaches_a_leader_is_told_as_well() {
    let mut stand = Stand::with(false, |options| {
        options.eager_acl_check = true;
        let format = AuditFormat::Java;
        options.audit = Some(Audit { format, server_user: "zk".into() });
    });
    let (client, _) = stand.client();
    let list = vec![acl(1, "world", "anyone")];
    stand.call(client, with_list(create("/closed"), list)).unwrap();
    records(&mut stand);
    assert_eq!(stand.call(client, set("/closed", -1)), Err(-102));
    let told = records(&mut stand);
    assert!(told[0].ends_with("operation=setData\tznode=/closed\tresult=failure"), "{told:?}");
}

#[test]
fn json_has_a_time_in_utc_the_same_fields_and_failed_proofs() {
    let mut stand = audited(AuditFormat::Json);
    let (client, session) = stand.client();
    stand.audited.clear();
    stand.call(client, create("/a\"b")).unwrap();
    let line: serde_json::Value = serde_json::from_str(&stand.audited).unwrap();
    let expected = serde_json::json!({
        "time": "2023-11-14T22:13:20.000Z", "session": format!("0x{session:x}"),
        "user": "10.0.0.7", "ip": "10.0.0.7", "operation": "create", "znode": "/a\"b",
        "znodeType": "persistent", "result": "success",
    });
    assert_eq!(line, expected);
    stand.audited.clear();
    let (scheme, auth) = (Some("nonsense".into()), Bytes::from_static(b"secret"));
    stand.request(client, &[(-4, Request::Auth { kind: 0, scheme, auth })]);
    let line: serde_json::Value = serde_json::from_str(&stand.audited).unwrap();
    assert_eq!((&line["operation"], &line["result"]), (&"auth".into(), &"failure".into()));
    assert!(!stand.audited.contains("secret"));
}

#[test]
fn what_happens_without_a_client_is_told_in_json_alone() {
    let note = || Note {
        operation: "linkRefused",
        fields: vec![("server", "3".into()), ("reason", "no \"name\"\n".into())],
        result: "failure",
    };
    let mut stand = audited(AuditFormat::Json);
    stand.audited.clear();
    stand.tell(Event::Noted(note()));
    assert_eq!(stand.audited.matches('\n').count(), 1, "{}", stand.audited);
    let line: serde_json::Value = serde_json::from_str(&stand.audited).unwrap();
    let expected = serde_json::json!({
        "time": "2023-11-14T22:13:20.000Z", "operation": "linkRefused", "server": "3",
        "reason": "no \"name\"\n", "result": "failure",
    });
    assert_eq!(line, expected);
    let mut stand = audited(AuditFormat::Java);
    stand.audited.clear();
    stand.tell(Event::Noted(note()));
    assert_eq!(stand.audited, "", "readers of ZooKeeper's log do not expect it");
}

#[test]
fn nothing_is_told_unless_it_is_asked_for() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/a")).unwrap();
    assert_eq!(stand.audited, "");
}
