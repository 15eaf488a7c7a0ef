//! Worked examples: whole exchanges with what every server answers, and what has brought ensembles down elsewhere.

use std::collections::BTreeSet;

use bytes::Bytes;
use quorate_service::wire::{MultiResult, Request, Response, op};
use quorate_znode::acl::Acl;

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::ensemble::{Ensemble, submitted};
use crate::operations::create_as;
use crate::permissions::{acl, with_list};
use crate::stand::{Part, Stand};

fn delete_at(path: &str, version: i32) -> Request {
    Request::Delete { path: path.into(), version }
}

#[test]
fn numbers_of_sequential_nodes_are_how_many_were_created_before() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, create("/q")).unwrap();
        let created = |path: &str| Ok(Response::Created { path: path.into() });
        assert_eq!(stand.call(client, create_with("/q/a-", 2)), created("/q/a-0000000000"));
        assert_eq!(stand.call(client, create("/q/b")), created("/q/b"));
        assert_eq!(stand.call(client, create_with("/q/a-", 2)), created("/q/a-0000000002"));
        for path in ["/q/a-0000000000", "/q/b"] {
            stand.call(client, delete(path)).unwrap();
        }
        assert_eq!(stand.call(client, create_with("/q/", 2)), created("/q/0000000003"));
        let Ok(Response::Stat(stat)) = stand.call(client, exists("/q", false)) else { panic!() };
        assert_eq!((stat.cversion, stat.num_children), (6, 2));
    }
}

/// Multis that fail among them, all in one go, and a restart in between.
#[test]
fn sequential_nodes_of_a_pipeline_never_share_a_number_and_a_failed_multi_takes_none() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.call(client, create("/q")).unwrap();
    let mut names = BTreeSet::new();
    let mut last = String::new();
    for round in 0..20 {
        if round == 10 {
            let mut again = stand.restarted();
            again.serve(false);
            std::mem::swap(&mut stand, &mut again);
        }
        let (client, _) = stand.client();
        let requests: Vec<_> = (0..200)
            .map(|n| {
                let failing = vec![create_with("/q/n-", 2), create_with("/q/n-", 3), set("/q", 99)];
                let request =
                    if n % 3 == 1 { Request::Multi(failing) } else { create_with("/q/n-", 2) };
                (n, request)
            })
            .collect();
        stand.request(client, &requests);
        stand.settle();
        for (heard, (n, request)) in stand.heard(client).into_iter().zip(requests) {
            let crate::stand::Heard::Reply(xid, 0, body) = heard else { panic!("{heard:?}") };
            assert_eq!(xid, n);
            let answer = Response::decode(request.op(), &body).unwrap().unwrap();
            if let Response::Created { path } = answer {
                assert!(path > last, "{path} behind {last}");
                last.clone_from(&path);
                names.insert(path);
            } else {
                let Response::Multi(results) = answer else { panic!("{answer:?}") };
                assert_eq!(results[2], MultiResult::Failed { err: -103 });
            }
        }
    }
    assert_eq!(last, format!("/q/n-{:010}", names.len() - 1), "none is left out");
}

#[test]
fn a_multi_that_fails_in_the_middle_changes_nothing_and_uses_one_zxid() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, create("/m")).unwrap();
        for path in ["/m", "/m/x"] {
            stand.call(client, Request::AddWatch { path: path.into(), mode: 0 }).unwrap();
        }
        let last = stand.tree().last_zxid().0;
        let failing = Request::Multi(vec![create("/m/x"), set("/m", 5), delete("/m")]);
        let Ok(Response::Multi(results)) = stand.call(client, failing) else { panic!() };
        assert_eq!(results, [0, -103, -2].map(|err| MultiResult::Failed { err }));
        assert_eq!(stand.tree().last_zxid().0, last + 1);
        assert_eq!(stand.told(client), [""; 0], "nobody is told");
        let made = stand.call(client, create_with("/m/", 2));
        assert_eq!(made, Ok(Response::Created { path: "/m/0000000000".into() }));
    }
}

#[test]
fn a_multi_sees_itself_and_tells_of_each_element_in_order() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, Request::AddWatch { path: "/n".into(), mode: 0 }).unwrap();
        let check = Request::Check { path: "/n".into(), version: 2 };
        let whole = vec![create("/n"), set("/n", 0), set("/n", 1), check, delete_at("/n", 2)];
        stand.request(client, &[(1, Request::Multi(whole.clone()))]);
        stand.settle();
        let told = stand.told(client);
        assert_eq!(told, ["created /n", "changed /n", "changed /n", "deleted /n", "1 ok"]);
        let Ok(Response::Multi(results)) = stand.call(client, Request::Multi(whole)) else {
            panic!()
        };
        let mut versions = Vec::new();
        for result in &results {
            if let MultiResult::DataSet { stat } = result {
                versions.push(stat.version);
            }
        }
        assert_eq!((versions, results.len()), (vec![1, 2], 5));
        assert!(stand.tree().get("/n").is_none());
    }
}

/// Containers and TTL nodes are answered as create2 is, which is told with its stat however it stands in the log.
#[test]
fn what_a_multi_creates_is_answered_by_its_operation() {
    for create2_in_multi in [true, false] {
        let mut stand = Stand::with(true, |options| {
            options.extended_types = true;
            options.create2_in_multi = create2_in_multi;
        });
        let (client, _) = stand.client();
        let several = vec![
            create("/a"),
            create_as(op::CREATE2, "/b", 0, None),
            create_as(op::CREATE_CONTAINER, "/c", 4, None),
            create_as(op::CREATE_TTL, "/d", 5, Some(1000)),
            create_as(op::CREATE_TTL, "/plain", 0, Some(-1)),
        ];
        let Ok(Response::Multi(results)) = stand.call(client, Request::Multi(several)) else {
            panic!()
        };
        assert_eq!(results[0], MultiResult::Created { path: "/a".into() });
        for (result, named) in results[1..].iter().zip(["/b", "/c", "/d", "/plain"]) {
            assert!(
                matches!(result, MultiResult::Created2 { path, .. } if path == named),
                "{result:?}"
            );
        }
    }
}

/// `/p/c` with a child and version 3; without DELETE on `/p`, and with it.
#[test]
fn of_all_that_is_wrong_with_a_delete_the_first_is_told() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        for path in ["/p", "/p/c", "/p/c/x"] {
            stand.call(client, create(path)).unwrap();
        }
        for version in 0..3 {
            stand.call(client, set("/p/c", version)).unwrap();
        }
        let list = |perms| {
            let acl = Some(vec![Acl::world(perms)]);
            Request::SetAcl { path: "/p".into(), acl, version: -1 }
        };
        stand.call(client, list(31 - 8)).unwrap();
        assert_eq!(stand.call(client, delete_at("/p/c", 9)), Err(-102));
        stand.call(client, list(31)).unwrap();
        for (path, version, code) in [
            ("/p/c", 9, -103),
            ("/p/c", 3, -111),
            ("/p/none", 9, -101),
            ("/none/x", -1, -101),
            ("/zookeeper", -1, -8),
            ("/", -1, -8),
            ("x", -1, -8),
        ] {
            assert_eq!(stand.call(client, delete_at(path, version)), Err(code), "{path} {version}");
        }
    }
}

#[test]
fn of_all_that_is_wrong_with_a_create_the_first_is_told() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let (client, _) = stand.client();
        for (path, flags) in [("/shut", 0), ("/shut/x", 0), ("/e", 1)] {
            stand.call(client, create_with(path, flags)).unwrap();
        }
        let acl = Some(vec![Acl::world(31 - 4)]);
        stand.call(client, Request::SetAcl { path: "/shut".into(), acl, version: -1 }).unwrap();
        for (request, code) in [
            (create_with("/none/x", 9), -8),
            (create_as(op::CREATE_TTL, "/none/x", 5, Some(0)), -6),
            (with_list(create("/none/x"), vec![]), -114),
            (create("/none/x"), -101),
            (create("/shut/x"), -102),
            (create("/e"), -110),
            (create("/e/x"), -108),
        ] {
            assert_eq!(stand.call(client, request.clone()), Err(code), "{request:?}");
        }
    }
}

#[test]
fn a_version_has_to_be_the_nodes_own_or_any() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/v")).unwrap();
    let version = |answer: Result<Response, i32>| match answer {
        Ok(Response::Stat(stat)) => Ok(stat.version),
        Ok(other) => panic!("{other:?}"),
        Err(err) => Err(err),
    };
    for (given, becomes) in [(0, Ok(1)), (0, Err(-103)), (-1, Ok(2)), (-2, Err(-103)), (2, Ok(3))] {
        assert_eq!(version(stand.call(client, set("/v", given))), becomes, "{given}");
    }
}

#[test]
fn an_address_is_a_list_of_its_own_and_only_proved_identities_stand_for_who_gives_it() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let near = vec![acl(31, "ip", "10.0.0.0/24")];
    let far = vec![acl(31, "ip", "10.0.1.0/24")];
    stand.call(client, with_list(create("/near"), near)).unwrap();
    stand.call(client, with_list(create("/far"), far)).unwrap();
    assert!(stand.call(client, get("/near", false)).is_ok());
    assert_eq!(stand.call(client, get("/far", false)), Err(-102));
    assert_eq!(stand.call(client, with_list(create("/x"), vec![acl(31, "auth", "")])), Err(-114));
}

/// A length of 2^31 - 1: refused where it was read, and the next write of anybody works.
#[test]
fn one_malformed_frame_stops_nobodys_writes() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let (client, _) = ensemble.client(server, 4000);
        let (other, _) = ensemble.client((server + 1) % 3, 4000);
        let garbled = [&i32::MAX.to_be_bytes()[..], b"/x"].concat();
        ensemble.servers[server].raw(client, 3, op::SET_DATA, &garbled);
        ensemble.settle();
        assert_eq!(ensemble.servers[server].told(client), ["3 -5"]);
        assert_eq!(ensemble.told((server + 1) % 3, other, &[(1, create("/x"))]), ["1 ok"]);
        assert_eq!(ensemble.told(server, client, &[(4, set("/x", 0))]), ["4 ok"]);
    }
}

/// Each has ended ensembles of other makes. All still serve, and again behind a restart.
#[test]
fn poisoned_requests_leave_everyone_alive() {
    for server in 0..3 {
        let mut ensemble = Ensemble::new();
        let stats = "/zookeeper/quota/q/zookeeper_stats";
        let poison = [
            (create_as(op::CREATE_TTL, "/t", 0, Some(-1)), "1 -8", false),
            (Request::Check { path: "/".into(), version: 0 }, "1 -6", true),
            (with_list(create(stats), vec![Acl::world(31)]), "1 -8", false),
            (create(&"/a".repeat(2001)), "1 -8", false),
        ];
        for (request, answer, closes) in poison {
            let (client, session) = ensemble.client(server, 4000);
            let mut expected = vec![answer.to_owned()];
            expected.extend(closes.then(|| "closed".to_owned()));
            assert_eq!(ensemble.told(server, client, &[(1, request)]), expected);
            assert!(ensemble.lives(session));
        }
        let (client, _) = ensemble.client(server, 4000);
        ensemble.servers[server].raw(client, 1, 20, b"\0\0\0\x01/");
        assert_eq!(ensemble.servers[server].told(client), ["1 -6", "closed"]);
        // Within a multi the flags say what it is: a plain node.
        let (client, _) = ensemble.client(server, 4000);
        let plain = Request::Multi(vec![create_as(op::CREATE_TTL, "/plain", 0, Some(-1))]);
        assert_eq!(ensemble.told(server, client, &[(1, plain)]), ["1 ok"]);
        for stand in &ensemble.servers {
            let mut again = stand.restarted();
            again.serve(true);
            let (client, _) = again.client();
            again.call(client, get("/plain", false)).unwrap();
        }
    }
}

/// As if a Java follower had forwarded them: transactions that say no, so that its queue moves on.
#[test]
fn poison_that_another_server_forwards_becomes_a_transaction_that_refuses_it() {
    let mut ensemble = Ensemble::new();
    let (_, session) = ensemble.client(1, 4000);
    let (other, _) = ensemble.client(2, 4000);
    let mut garbled = submitted(&set("/", -1), session);
    garbled.body = Bytes::from_static(b"\x7f\xff\xff\xff/");
    let stats = create("/zookeeper/quota/q/zookeeper_stats");
    let mut all: Vec<_> = [
        create_as(op::CREATE_TTL, "/t", 0, Some(-1)),
        Request::Check { path: "/".into(), version: 0 },
        stats,
    ]
    .iter()
    .map(|request| submitted(request, session))
    .collect();
    let mut container = submitted(&delete("/"), session);
    container.op = op::DELETE_CONTAINER;
    all.extend([garbled, container]);
    for request in all {
        let nodes = ensemble.servers[0].tree().len();
        let last = ensemble.servers[0].tree().last_zxid().0;
        ensemble.asked.push_back((1, request));
        ensemble.settle();
        let tree = ensemble.servers[0].tree();
        assert_eq!((tree.last_zxid().0, tree.len()), (last + 1, nodes));
        assert_eq!(ensemble.told(2, other, &[(1, set("/", -1))]), ["1 ok"]);
    }
}

/// 30,000 nodes with paths of 80 bytes: more than a transaction can list. It is one, and all are gone on every server.
#[test]
fn a_session_with_thirty_thousand_nodes_ends_in_one_transaction_that_fits() {
    let mut ensemble = Ensemble::new();
    let (client, session) = ensemble.client(1, 4000);
    ensemble.told(1, client, &[(1, create("/d"))]);
    let long = "x".repeat(71);
    let mut request = submitted(&create("/"), session);
    for n in 0..30_000 {
        let path = format!("/d/{long}{n:06}");
        assert_eq!(path.len(), 80);
        request.body = create_with(&path, 1).frame(1).slice(12..);
        ensemble.asked.push_back((1, request.clone()));
        ensemble.propose();
        let txn = ensemble.proposed.pop_front().unwrap();
        for stand in &mut ensemble.servers {
            stand.apply(&txn);
        }
    }
    assert_eq!(ensemble.servers[2].tree().ephemerals(session).count(), 30_000);
    ensemble.servers[1].request(client, &[(2, Request::CloseSession)]);
    ensemble.pass();
    ensemble.propose();
    let length = ensemble.proposed[0].body.len();
    assert!(length <= 2_097_150 && length > 2_000_000, "{length} bytes");
    ensemble.settle();
    assert_eq!(ensemble.servers[1].told(client), ["2 ok", "closed"]);
    for stand in &ensemble.servers {
        let stat = stand.tree().get("/d").unwrap().stat();
        assert_eq!((stat.num_children, stat.pzxid), (0, stand.tree().last_zxid()));
        assert!(stand.tree().session(session).is_none());
    }
}

/// An access list that becomes longer for every identity of who gives it.
#[test]
fn what_would_be_too_long_a_transaction_is_refused_and_nothing_is_proposed_of_it() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for n in 0..100 {
        let auth = Bytes::from(format!("user{n}:x"));
        stand.request(
            client,
            &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })],
        );
    }
    assert_eq!(stand.told(client).len(), 100);
    let one = |n: usize| with_list(create(&format!("/n{n}")), vec![acl(31, "auth", "")]);
    let many: Vec<_> = (0..1000).map(one).collect();
    assert!(Request::Multi(many.clone()).frame(1).len() < 1_048_575);
    assert_eq!(stand.call(client, Request::Multi(many)), Err(-5));
    assert_eq!(stand.tree().get("/n0").map(|_| ()), None);
    stand.call(client, one(0)).unwrap();
}

/// The same at a server that does not lead: its leader may be one that proposes it, and then nobody can read it.
#[test]
fn what_would_be_too_long_a_transaction_is_never_forwarded() {
    let mut ensemble = Ensemble::new();
    let (client, _) = ensemble.client(1, 4000);
    let auth = |n: usize| {
        let auth = Bytes::from(format!("user{n}:x"));
        (-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })
    };
    let proofs: Vec<_> = (0..100).map(auth).collect();
    assert_eq!(ensemble.told(1, client, &proofs).len(), 100);
    let one = |n: usize| with_list(create(&format!("/n{n}")), vec![acl(31, "auth", "")]);
    let many = |count| Request::Multi((0..count).map(one).collect());
    let last = ensemble.servers[0].tree().last_zxid();
    assert_eq!(ensemble.told(1, client, &[(1, many(1000))]), ["1 -5"]);
    assert_eq!(ensemble.servers[0].tree().last_zxid(), last, "nothing was proposed");
    assert_eq!(ensemble.told(1, client, &[(2, many(300))]), ["2 ok"]);
}

/// Ids of servers at the bounds of a byte, where TTL nodes have a mark of their own.
#[test]
fn sessions_of_servers_with_large_ids_own_what_they_create() {
    for sid in [1, 127, 128, 200, 254] {
        let mut stand = Stand::idle(sid, |options| options.extended_types = true);
        stand.serve(true);
        let mut sessions = BTreeSet::new();
        for n in 0..5 {
            let (client, session) = stand.client();
            assert_eq!((session as u64) >> 56, u64::try_from(sid).unwrap());
            assert!(sessions.insert(session));
            let path = format!("/e{n}");
            stand.call(client, create_with(&path, 1)).unwrap();
            let Ok(Response::Stat(stat)) = stand.call(client, exists(&path, false)) else {
                panic!()
            };
            assert_eq!(stat.ephemeral_owner, session);
            stand.request(client, &[(1, Request::CloseSession)]);
            stand.settle();
            assert!(stand.tree().get(&path).is_none());
        }
    }
}
