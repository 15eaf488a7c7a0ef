//! Operations, one by one, on each kind of server: what is answered, and with which zxid.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::zxid::Zxid;
use quorate_service::wire::{MultiResult, Request, Response, op};
use quorate_znode::acl::Acl;

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::stand::{Heard, Part, Stand};

/// A create of another kind.
pub(crate) fn create_as(op: i32, path: &str, flags: i32, ttl: Option<i64>) -> Request {
    let (data, acl) = (Some(Bytes::from_static(b"x")), Some(vec![Acl::world(31)]));
    Request::Create { op, path: path.into(), data, acl, flags, ttl }
}

fn names(response: Result<Response, i32>) -> Vec<String> {
    let Ok(Response::Children(names)) = response else { panic!("{response:?}") };
    names
}

/// Each as a client reads it.
#[test]
fn every_operation_is_answered_on_each_kind_of_server() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        let created = |path: &str| Ok(Response::Created { path: path.into() });
        assert_eq!(stand.call(client, create("/p")), created("/p"));
        assert_eq!(stand.call(client, create_with("/e", 1)), created("/e"));
        assert_eq!(stand.call(client, create_with("/p/s-", 2)), created("/p/s-0000000000"));
        assert_eq!(stand.call(client, create_with("/p/s-", 3)), created("/p/s-0000000001"));
        for (op, path, flags, ttl) in [
            (op::CREATE2, "/c2", 0, None),
            (op::CREATE_CONTAINER, "/c", 4, None),
            (op::CREATE_TTL, "/t", 5, Some(1000)),
            (op::CREATE_TTL, "/p/t-", 6, Some(1000)),
        ] {
            let answer = stand.call(client, create_as(op, path, flags, ttl));
            let Ok(Response::Created2 { path: named, stat }) = answer else { panic!("{answer:?}") };
            assert!(named.starts_with(path));
            let last = stand.tree().last_zxid();
            assert_eq!((stat.czxid, stat.mzxid, stat.pzxid), (last, last, last));
            assert_eq!((stat.ctime, stat.mtime), (stand.wall_ms, stand.wall_ms));
            assert_eq!((stat.version, stat.ephemeral_owner, stat.data_length), (0, 0, 1));
        }
        let Ok(Response::Stat(stat)) = stand.call(client, set("/p", 0)) else { panic!() };
        assert_eq!((stat.version, stat.mzxid, stat.num_children), (1, stand.tree().last_zxid(), 3));
        let acl = Some(vec![Acl::world(31), Acl::world(1)]);
        let set_acl = Request::SetAcl { path: "/p".into(), acl: acl.clone(), version: 0 };
        let Ok(Response::Stat(after)) = stand.call(client, set_acl) else { panic!() };
        assert_eq!((after.aversion, after.version, after.mzxid), (1, 1, stat.mzxid));
        assert_eq!(stand.call(client, exists("/p", false)), Ok(Response::Stat(after)));
        let data = Some(Bytes::from_static(b"y"));
        assert_eq!(stand.call(client, get("/p", false)), Ok(Response::Data { data, stat: after }));
        let answer = stand.call(client, Request::GetAcl { path: "/p".into() });
        assert_eq!(answer, Ok(Response::Acl { acl, stat: after }));
        let listed = ["s-0000000000", "s-0000000001", "t-0000000002"].map(String::from).to_vec();
        let path = || "/p".to_owned();
        let list = Request::GetChildren { path: path(), watch: false };
        assert_eq!(names(stand.call(client, list)), listed);
        let list = Request::GetChildren2 { path: path(), watch: false };
        let both = Response::Children2 { names: listed, stat: after };
        assert_eq!(stand.call(client, list), Ok(both));
        let count = Request::GetAllChildrenNumber { path: path() };
        assert_eq!(stand.call(client, count), Ok(Response::Number(3)));
        let ephemerals = stand.call(client, Request::GetEphemerals { prefix: None });
        assert_eq!(names(ephemerals), ["/e", "/p/s-0000000001"]);
        let add = Request::AddWatch { path: path(), mode: 0 };
        assert_eq!(stand.call(client, add), Ok(Response::Number(0)));
        let check = Request::CheckWatches { path: path(), kind: 4 };
        assert_eq!(stand.call(client, check), Ok(Response::Done));
        let remove = Request::RemoveWatches { path: path(), kind: 4 };
        assert_eq!(stand.call(client, remove), Ok(Response::Done));
        let me = stand.call(client, Request::WhoAmI);
        assert_eq!(me, Ok(Response::Identities(vec![("ip".into(), "10.0.0.7".into())])));
        let synced = stand.call(client, Request::Sync { path: Some(path()) });
        assert_eq!(synced, Ok(Response::Synced { path: Some(path()) }));
        assert_eq!(stand.call(client, delete("/c2")), Ok(Response::Done));
        assert_eq!(stand.call(client, exists("/c2", false)), Err(-101));
        let before = stand.tree().last_zxid();
        assert_eq!(stand.call(client, Request::Multi(Vec::new())), Ok(Response::Multi(Vec::new())));
        assert_eq!(stand.tree().last_zxid().0, before.0 + 1, "an empty one, too");
        stand.request(client, &[(9, Request::CloseSession)]);
        stand.settle();
        assert_eq!(stand.told(client), ["9 ok", "closed"]);
    }
}

/// A reply without its body: the code stands in the header, with the zxid of the transaction that says so.
#[test]
fn a_write_that_fails_is_a_transaction_and_its_reply_has_no_body() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, create("/p")).unwrap();
        stand.call(client, create("/p/c")).unwrap();
        let check = |version| Request::Delete { path: "/p/c".into(), version };
        for (request, code) in [
            (create("/p"), -110),
            (create("/none/x"), -101),
            (create("x"), -8),
            (create_as(op::CREATE_TTL, "/t", 5, Some(0)), -8),
            (delete("/p"), -111),
            (delete("/none"), -101),
            (delete("/zookeeper"), -8),
            (check(9), -103),
            (set("/none", -1), -101),
            (set("/p", 9), -103),
            (Request::SetAcl { path: "/p".into(), acl: None, version: -1 }, -114),
            (
                Request::SetAcl { path: "/p".into(), acl: Some(vec![Acl::world(31)]), version: 9 },
                -103,
            ),
        ] {
            let before = stand.tree().last_zxid();
            stand.request(client, &[(1, request.clone())]);
            stand.settle();
            let heard = stand.heard(client);
            assert_eq!(heard, [Heard::Reply(1, code, Bytes::new())], "{request:?}");
            assert_eq!(stand.tree().last_zxid().0, before.0 + 1, "{request:?}");
        }
    }
}

#[test]
fn reads_fail_with_what_is_applied_and_take_no_zxid() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let path = || "/none".to_owned();
    let last = stand.tree().last_zxid();
    for (request, code) in [
        (get("/none", false), -101),
        (exists("/none", false), -101),
        (exists("/no\0ne", false), -8),
        (get("/no\0ne", false), -101),
        (get("no path", false), -101),
        (Request::GetChildren { path: path(), watch: false }, -101),
        (Request::GetChildren2 { path: path(), watch: false }, -101),
        (Request::GetAcl { path: path() }, -101),
        (Request::GetAllChildrenNumber { path: path() }, -101),
        (Request::CheckWatches { path: path(), kind: 1 }, -121),
        (Request::RemoveWatches { path: path(), kind: 3 }, -121),
        (Request::CheckWatches { path: path(), kind: 9 }, -5),
        (Request::RemoveWatches { path: path(), kind: 0 }, -5),
        (Request::AddWatch { path: path(), mode: 2 }, -5),
    ] {
        stand.request(client, &[(1, request.clone())]);
        assert_eq!(stand.headers(client), [(1, last.0, code)], "{request:?}");
    }
    assert!(stand.submitted.is_empty());
}

/// Each operation with its last byte missing, and with none at all.
#[test]
fn a_body_that_cannot_be_read_is_refused_here_and_the_connection_stays() {
    let path = || "/a".to_owned();
    let acl = Some(vec![Acl::world(31)]);
    for request in [
        create("/a"),
        create_as(op::CREATE2, "/a", 0, None),
        create_as(op::CREATE_CONTAINER, "/a", 4, None),
        create_as(op::CREATE_TTL, "/a", 5, Some(1)),
        delete("/a"),
        set("/a", 0),
        Request::SetAcl { path: path(), acl, version: 0 },
        Request::Multi(vec![create("/a")]),
        Request::Reconfig { joining: None, leaving: None, members: None, version: -1 },
        exists("/a", true),
        get("/a", true),
        Request::GetChildren { path: path(), watch: true },
        Request::GetChildren2 { path: path(), watch: true },
        Request::GetAcl { path: path() },
        Request::MultiRead(vec![get("/a", false)]),
        Request::Sync { path: Some(path()) },
        Request::GetEphemerals { prefix: Some(path()) },
        Request::GetAllChildrenNumber { path: path() },
        Request::AddWatch { path: path(), mode: 0 },
        Request::CheckWatches { path: path(), kind: 1 },
        Request::RemoveWatches { path: path(), kind: 1 },
        watches_again(op::SET_WATCHES, &["/a"]),
        watches_again(op::SET_WATCHES2, &["/a"]),
    ] {
        for part in Part::ALL {
            let mut stand = Stand::part(part);
            let (client, _) = stand.client();
            let last = stand.tree().last_zxid();
            let body = request.frame(1).slice(12..);
            for cut in [0, body.len() / 2, body.len() - 1] {
                stand.raw(client, 7, request.op(), &body[..cut]);
                let headers = stand.headers(client);
                assert_eq!(headers, [(7, last.0, -5)], "{cut} bytes of {request:?}");
            }
            assert!(stand.submitted.is_empty() && stand.syncs.is_empty());
            stand.call(client, create("/x")).unwrap();
        }
    }
}

fn watches_again(op: i32, paths: &[&str]) -> Request {
    let list = || paths.iter().map(|path| Some((*path).to_owned())).collect::<Vec<_>>();
    let own = if op == op::SET_WATCHES2 { list() } else { Vec::new() };
    Request::SetWatches {
        op,
        relative_zxid: Zxid(0x1_0000_0000),
        data: list(),
        exist: list(),
        child: list(),
        persistent: own.clone(),
        recursive: own,
    }
}

/// Also those of servers, with whatever body.
#[test]
fn an_operation_of_no_client_is_unimplemented_and_ends_the_connection_and_not_the_session() {
    let container = [&4_i32.to_be_bytes()[..], b"/box"].concat();
    for (op, body) in [
        (0, &[][..]),
        (-1, &[]),
        (99, &[]),
        (108, &[]),
        (i32::MIN, &[]),
        (op::CREATE_SESSION, &[]),
        (op::CREATE_SESSION, &[0, 0, 16, 0]),
        (op::CHECK, &[]),
        (op::CHECK, b"\0\0\0\x01/\0\0\0\0"),
        (op::DELETE_CONTAINER, &container),
    ] {
        let mut stand = Stand::new(true);
        let (client, session) = stand.client();
        stand.call(client, create_as(op::CREATE_CONTAINER, "/box", 4, None)).unwrap();
        stand.raw(client, 3, op, body);
        // What was read behind it is not carried out.
        stand.request(client, &[(4, delete("/box"))]);
        assert_eq!(stand.headers(client), [(3, -1, -6)], "{op}");
        assert_eq!(stand.told(client), ["closed"]);
        assert!(stand.submitted.is_empty());
        assert!(stand.tree().session(session).is_some() && stand.tree().get("/box").is_some());
    }
}

#[test]
fn ttl_nodes_are_unimplemented_unless_types_are_extended_and_the_connection_stays() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    assert_eq!(stand.call(client, create_as(op::CREATE_TTL, "/t", 5, Some(1))), Err(-6));
    stand.call(client, create_as(op::CREATE_CONTAINER, "/c", 4, None)).unwrap();
}

#[test]
fn a_ping_is_answered_as_one_whatever_number_it_had_and_behind_the_writes_before_it() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/x")), (77, Request::Ping), (-2, Request::Ping)]);
    assert_eq!(stand.told(client), [""; 0]);
    let zxid = stand.commit().unwrap().0;
    let (created, pong) = ((1, zxid, 0), (-2, zxid, 0));
    assert_eq!(stand.headers(client), [created, pong, pong]);
}

#[test]
fn any_number_of_a_request_is_taken_and_what_stands_behind_a_body_is_ignored() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    for xid in [0, -2, -1000, 7, 7, i32::MAX, i32::MIN] {
        let mut body = BytesMut::from(&get("/", false).frame(0)[12..]);
        body.put_slice(b"and more");
        stand.raw(client, xid, op::GET_DATA, &body);
        assert_eq!(stand.told(client), [format!("{xid} ok")]);
        stand.request(client, &[(xid, set("/", -1)), (xid, create("/x")), (xid, delete("/x"))]);
        stand.settle();
        assert_eq!(
            stand.told(client),
            [format!("{xid} ok"), format!("{xid} ok"), format!("{xid} ok")]
        );
    }
    stand.raw(client, 1, op::CLOSE_SESSION, b"a body");
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "closed"]);
}

#[test]
fn no_data_is_not_empty_data_in_replies_multis_and_behind_a_restart() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let with = |path: &str, data: Option<&'static [u8]>| {
        let Request::Create { op, path, acl, flags, ttl, .. } = create(path) else { panic!() };
        Request::Create { op, path, data: data.map(Bytes::from_static), acl, flags, ttl }
    };
    stand.call(client, with("/null", None)).unwrap();
    stand.call(client, with("/empty", Some(b""))).unwrap();
    let mut again = stand.restarted();
    again.serve(true);
    let (other, _) = again.client();
    for (stand, client) in [(&mut stand, client), (&mut again, other)] {
        for (path, expected) in [("/null", None), ("/empty", Some(Bytes::new()))] {
            let Ok(Response::Data { data, stat }) = stand.call(client, get(path, false)) else {
                panic!()
            };
            assert_eq!((data, stat.data_length), (expected.clone(), 0), "{path}");
            let read = Request::MultiRead(vec![get(path, false)]);
            let Ok(Response::Multi(results)) = stand.call(client, read) else { panic!() };
            assert!(matches!(&results[0], MultiResult::Data { data, .. } if *data == expected));
        }
    }
    let null = Request::SetData { path: "/empty".into(), data: None, version: -1 };
    stand.call(client, null).unwrap();
    let Ok(Response::Data { data, .. }) = stand.call(client, get("/empty", false)) else {
        panic!()
    };
    assert_eq!(data, None);
}

#[test]
fn each_element_of_several_reads_fails_alone_and_watches_nothing() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/a")).unwrap();
    stand.call(client, create("/a/b")).unwrap();
    let list = Request::GetChildren { path: "/a".into(), watch: true };
    let read = Request::MultiRead(vec![get("/none", true), get("/a", true), list]);
    let Ok(Response::Multi(results)) = stand.call(client, read) else { panic!() };
    assert_eq!(results[0], MultiResult::Failed { err: -101 });
    assert!(matches!(results[1], MultiResult::Data { .. }));
    assert_eq!(results[2], MultiResult::Children { names: vec!["b".to_owned()] });
    stand.request(client, &[(1, set("/a", -1)), (2, delete("/a/b"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
}

#[test]
fn reads_among_several_writes_or_the_other_way_cannot_be_read() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let element = |request: &Request| {
        let mut body = BytesMut::new();
        body.put_i32(request.op());
        body.put_slice(&[0, 0xff, 0xff, 0xff, 0xff]);
        body.put_slice(&request.frame(0)[12..]);
        body
    };
    let end = [0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff];
    let acl = Request::SetAcl { path: "/".into(), acl: Some(vec![Acl::world(31)]), version: -1 };
    for (op, elements) in [
        (op::MULTI, vec![create("/x"), get("/", false)]),
        (op::MULTI, vec![acl]),
        (op::MULTI_READ, vec![get("/", false), create("/x")]),
        (op::MULTI_READ, vec![exists("/", false)]),
    ] {
        let body: Vec<u8> = elements.iter().flat_map(element).chain(end).collect();
        stand.raw(client, 1, op, &body);
        assert_eq!(stand.told(client), ["1 -5"], "{elements:?}");
    }
    assert!(stand.submitted.is_empty());
}

#[test]
fn own_ephemeral_nodes_are_listed_by_how_their_paths_begin() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let (other, _) = stand.client();
    stand.call(client, create("/p")).unwrap();
    for path in ["/a", "/ab", "/b", "/p/a"] {
        stand.call(client, create_with(path, 1)).unwrap();
    }
    stand.call(other, create_with("/a-of-another", 1)).unwrap();
    let all: &[&str] = &["/a", "/ab", "/b", "/p/a"];
    for (prefix, expected) in [
        (None, all),
        (Some(""), all),
        (Some("  "), all),
        (Some("/"), all),
        (Some("/a"), &all[..2]),
        (Some("/ab"), &all[1..2]),
        (Some("/none"), &[]),
    ] {
        let asked = Request::GetEphemerals { prefix: prefix.map(String::from) };
        assert_eq!(names(stand.call(client, asked)), expected, "{prefix:?}");
    }
}

#[test]
fn all_children_are_counted_at_any_depth_without_the_node_itself() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for path in ["/a", "/a/b", "/a/b/c", "/a/d", "/ab"] {
        stand.call(client, create(path)).unwrap();
    }
    for (path, count) in [("/a", 3), ("/a/b", 1), ("/ab", 0), ("/", 8), ("", 8)] {
        let asked = Request::GetAllChildrenNumber { path: path.into() };
        assert_eq!(stand.call(client, asked), Ok(Response::Number(count)), "{path:?}");
    }
}

/// A watch that is set by that name is filed under it, and no node has it.
#[test]
fn the_empty_path_is_the_root_for_reads() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, get("", true)).unwrap();
    stand.call(client, exists("", true)).unwrap();
    let list = Request::GetChildren { path: String::new(), watch: true };
    assert_eq!(names(stand.call(client, list)), ["zookeeper"]);
    stand.request(client, &[(1, set("/", -1)), (2, create("/x"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
}

#[test]
fn children_are_listed_in_the_same_order_until_they_change() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for n in [5, 3, 9, 1] {
        stand.call(client, create(&format!("/n{n}"))).unwrap();
    }
    let list = || Request::GetChildren { path: "/".into(), watch: false };
    let first = names(stand.call(client, list()));
    assert_eq!(names(stand.call(client, list())), first);
    let mut again = stand.restarted();
    again.serve(false);
    let (other, _) = again.client();
    assert_eq!(names(again.call(other, list())), first);
}

#[test]
fn a_server_without_sasl_lets_clients_go_on_without() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.request(client, &[(1, Request::Sasl { token: Bytes::new() })]);
    let null = Bytes::from_static(&[0xff; 4]);
    assert_eq!(stand.heard(client), [Heard::Reply(1, 0, null)]);
    stand.call(client, create("/x")).unwrap();
}

/// A leader of ZooKeeper would count a container into its digest, and all others a persistent node.
#[test]
fn a_create_with_the_flags_of_a_container_is_forwarded_as_what_it_makes() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let (client, _) = stand.client();
        for (op, path) in [(op::CREATE, "/a"), (op::CREATE2, "/b")] {
            stand.request(client, &[(1, create_as(op, path, 4, None))]);
            let asked = stand.submitted.back().unwrap();
            let flags = asked.body.last_chunk().copied().map(i32::from_be_bytes);
            assert_eq!((asked.op, flags), (op, Some(0)));
            stand.settle();
            assert_eq!(stand.told(client), ["1 ok"]);
        }
    }
}
