//! Who may do what, and who is told: identities, access lists, the refusals of a client's own server.

use bytes::Bytes;
use quorate_application::clients::{ClientId, Frame, Transport};
use quorate_service::wire::{Request, Response, op};
use quorate_service::{Denied, DigestAlgorithm, Options, ZooKeeper};
use quorate_znode::acl::Acl;

use crate::clients::{create, delete, exists, get, set};
use crate::stand::{Part, Stand};

pub(crate) fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms, scheme: scheme.into(), id: id.into() }
}

pub(crate) fn with_list(request: Request, list: Vec<Acl>) -> Request {
    let Request::Create { op, path, data, flags, ttl, .. } = request else { panic!() };
    Request::Create { op, path, data, acl: Some(list), flags, ttl }
}

fn set_acl(path: &str, list: Vec<Acl>) -> Request {
    Request::SetAcl { path: path.into(), acl: Some(list), version: -1 }
}

fn prove(stand: &mut Stand, client: ClientId, proof: &str) {
    let auth = Bytes::copy_from_slice(proof.as_bytes());
    stand.request(client, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    assert_eq!(stand.headers(client), [(-4, 0, 0)], "with no zxid");
}

const BOB: &str = "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=";

#[test]
fn a_node_of_one_identity_is_nobody_elses_on_each_kind_of_server() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (bob, _) = stand.client();
        let (other, _) = stand.client();
        let list = vec![acl(31, "digest", BOB)];
        stand.call(other, with_list(create("/own"), list.clone())).unwrap();
        let path = || "/own".to_owned();
        let all = || {
            vec![
                get("/own", false),
                exists("/own", false),
                Request::GetChildren { path: path(), watch: false },
                Request::GetChildren2 { path: path(), watch: false },
                Request::GetAcl { path: path() },
                Request::GetAllChildrenNumber { path: path() },
                set("/own", -1),
                create("/own/x"),
                delete("/own/x"),
                set_acl("/own", list.clone()),
            ]
        };
        for request in all() {
            assert_eq!(stand.call(other, request.clone()), Err(-102), "{request:?}");
        }
        // Without a permission, or for another node.
        stand.call(other, Request::Sync { path: Some(path()) }).unwrap();
        stand.call(other, Request::AddWatch { path: path(), mode: 1 }).unwrap();
        let read = Request::MultiRead(vec![get("/own", false)]);
        let Ok(Response::Multi(results)) = stand.call(other, read) else { panic!() };
        assert_eq!(results, [quorate_service::wire::MultiResult::Failed { err: -102 }]);
        prove(&mut stand, bob, "bob:secret");
        for request in all() {
            assert!(stand.call(bob, request.clone()).is_ok(), "{request:?}");
        }
        // To read is enough to see the list, with the digest masked.
        stand.call(bob, set_acl("/own", vec![acl(31, "digest", BOB), Acl::world(1)])).unwrap();
        let seen = |stand: &mut Stand, client| {
            let answer = stand.call(client, Request::GetAcl { path: path() });
            let Ok(Response::Acl { acl: Some(list), .. }) = answer else { panic!("{answer:?}") };
            list
        };
        assert_eq!(seen(&mut stand, other), [acl(31, "digest", "bob:x"), Acl::world(1)]);
        assert_eq!(seen(&mut stand, bob), [acl(31, "digest", BOB), Acl::world(1)]);
    }
}

/// The parent is asked for what is created and deleted, the node for its data and its list.
#[test]
fn each_permission_is_asked_of_the_node_that_it_is_about() {
    for (perms, works) in [(1, "r"), (2, "w"), (4, "c"), (8, "d"), (16, "a"), (0, "")] {
        let mut stand = Stand::new(true);
        let (client, _) = stand.client();
        stand.call(client, create("/n")).unwrap();
        stand.call(client, create("/n/old")).unwrap();
        stand.call(client, set_acl("/n", vec![Acl::world(perms)])).unwrap();
        for (letter, request) in [
            ("r", get("/n", false)),
            ("r", Request::GetChildren { path: "/n".into(), watch: false }),
            ("w", set("/n", -1)),
            ("c", create("/n/new")),
            ("d", delete("/n/old")),
        ] {
            let expected = if works == letter { None } else { Some(-102) };
            assert_eq!(stand.call(client, request.clone()).err(), expected, "{perms}: {request:?}");
        }
        let listed = stand.call(client, Request::GetAcl { path: "/n".into() });
        assert_eq!(listed.is_ok(), works == "r" || works == "a");
        let same = stand.call(client, set_acl("/n", vec![Acl::world(perms)]));
        assert_eq!(same.is_ok(), works == "a");
        stand.call(client, delete("/n/old")).ok();
        stand.call(client, delete("/n/new")).ok();
        let node = stand.call(client, delete("/n"));
        let empty = works == "d";
        assert_eq!(node.is_ok(), empty, "of itself nothing is asked");
    }
}

#[test]
fn a_list_for_who_gives_it_names_all_that_it_has_proved() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    let own = || vec![acl(31, "auth", "")];
    assert_eq!(stand.call(client, with_list(create("/x"), own())), Err(-114), "an address is none");
    prove(&mut stand, client, "bob:secret");
    prove(&mut stand, client, "eve:secret");
    prove(&mut stand, client, "bob:secret");
    stand.call(client, with_list(create("/x"), own())).unwrap();
    let list = stand.tree().get("/x").unwrap().acl().unwrap().to_vec();
    let users: Vec<_> = list.iter().map(|acl| acl.id.split(':').next().unwrap()).collect();
    assert_eq!(users, ["bob", "eve"], "in the order in which they were proved, each once");
    let me = stand.call(client, Request::WhoAmI);
    let names = [("ip", "10.0.0.7"), ("digest", "bob"), ("digest", "eve")];
    let names = names.map(|(scheme, user)| (scheme.to_owned(), user.to_owned()));
    assert_eq!(me, Ok(Response::Identities(names.to_vec())));
}

/// Its reply overtakes what was asked for before; it counts for what is read behind it.
#[test]
fn an_identity_is_proved_at_once_and_counts_for_what_is_read_behind_it() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let (client, _) = stand.client();
        let list = vec![acl(31, "digest", BOB)];
        stand.call(client, with_list(create("/own"), list)).unwrap();
        let auth = Bytes::from_static(b"bob:secret");
        let proof = Request::Auth { kind: 0, scheme: Some("digest".into()), auth };
        let requests = [(1, set("/own", -1)), (-4, proof), (2, set("/own", -1))];
        stand.request(client, &requests);
        assert_eq!(stand.told(client), ["-4 ok"]);
        stand.settle();
        assert_eq!(stand.told(client), ["1 -102", "2 ok"]);
    }
}

#[test]
fn what_is_proved_by_no_scheme_ends_the_connection_and_not_the_session() {
    for scheme in [Some("rumour"), Some("world"), Some("auth"), Some("super"), None] {
        let mut stand = Stand::new(true);
        let (client, session) = stand.client();
        let scheme = scheme.map(String::from);
        let proof = Request::Auth { kind: 0, scheme, auth: Bytes::from_static(b"x") };
        stand.request(client, &[(-4, proof.clone()), (1, create("/x"))]);
        assert_eq!(stand.headers(client), [(-4, 0, -115)], "{proof:?}");
        assert_eq!(stand.told(client), ["closed"]);
        stand.settle();
        assert!(stand.tree().get("/x").is_none() && stand.tree().session(session).is_some());
    }
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let scheme = Some("ip".to_owned());
    stand.request(client, &[(-4, Request::Auth { kind: 7, scheme, auth: Bytes::new() })]);
    assert_eq!(stand.told(client), ["-4 ok"], "the address is known");
}

#[test]
fn who_may_do_everything_may_and_hears_everything() {
    for super_digest in [true, false] {
        let mut stand = Stand::with(true, |options| {
            options.super_digest = Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".into());
        });
        let (client, _) = stand.client();
        stand.call(client, with_list(create("/own"), vec![acl(31, "digest", BOB)])).unwrap();
        stand.call(client, Request::AddWatch { path: "/own".into(), mode: 0 }).unwrap();
        prove(&mut stand, client, if super_digest { "super:test" } else { "super:guess" });
        assert_eq!(stand.call(client, get("/own", false)).is_ok(), super_digest);
        stand.request(client, &[(1, set("/own", -1))]);
        stand.settle();
        let told = stand.told(client);
        let expected: &[&str] = if super_digest { &["changed /own", "1 ok"] } else { &["1 -102"] };
        assert_eq!(told, expected);
    }
}

/// The right password does not count either, from an address that has guessed so often, for a minute.
#[test]
fn who_guesses_at_who_may_do_everything_has_to_wait_and_failures_are_counted_by_scheme() {
    let mut stand = Stand::with(true, |options| {
        options.super_digest = Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".into());
        options.session_timeout_max = Some(std::time::Duration::from_secs(3600));
    });
    let (client, _) = stand.client();
    stand.call(client, with_list(create("/own"), vec![acl(31, "digest", BOB)])).unwrap();
    let (guesses, _) = stand.client();
    for n in 0..20 {
        prove(&mut stand, guesses, &format!("super:{n}"));
    }
    prove(&mut stand, guesses, "super:test");
    stand.call(guesses, get("/own", false)).unwrap_err();
    // What else is proved from there counts as ever.
    prove(&mut stand, guesses, "bob:secret");
    stand.call(guesses, get("/own", false)).unwrap();
    stand.now = stand.now + std::time::Duration::from_secs(61);
    let (late, _) = stand.client();
    prove(&mut stand, late, "super:test");
    stand.call(late, get("/own", false)).unwrap();
    for scheme in [Some("x509"), Some("rumour"), None] {
        let (client, _) = stand.client();
        let scheme = scheme.map(String::from);
        stand.request(client, &[(-4, Request::Auth { kind: 0, scheme, auth: Bytes::new() })]);
    }
    let mut say = |word: &[u8; 4]| {
        let client = stand.connect();
        stand.send(client, vec![Frame::Word(*word)]);
        stand.text(client)
    };
    let told = say(b"mntr");
    for (name, count) in [("count", 23), ("digest", 20), ("x509", 1), ("other", 2)] {
        assert!(told.contains(&format!("zk_auth_failed_{name}\t{count}\n")), "{told}");
    }
    say(b"srst");
    assert!(say(b"mntr").contains("zk_auth_failed_count\t0\n"));
}

/// The certificate of a client is an identity, and one of them may be super's; nothing that a client says is.
#[test]
fn a_client_is_who_its_certificate_says() {
    let mut stand = Stand::with(true, |options| {
        options.x509_super = Some("CN=admin,O=ours".into());
    });
    let tls = |subject: &str| Transport::Tls { subject: Some(subject.into()) };
    let mut come = |over| {
        let client = stand.connect_over(over);
        stand.ask(client, 0, 4000);
        stand.settle();
        stand.answer(client).unwrap();
        client
    };
    let one = come(tls("CN=one,O=ours"));
    let other = come(tls("CN=other,O=ours"));
    let admin = come(tls("CN=admin,O=ours"));
    let [none, unnamed] = [Transport::Tls { subject: None }, tls("")].map(&mut come);
    let plain = come(Transport::Plain);
    let list = vec![acl(31, "x509", "CN=one,O=ours")];
    stand.call(plain, with_list(create("/own"), list.clone())).unwrap();
    for (client, may) in [
        (one, true),
        (other, false),
        (admin, true),
        (none, false),
        (unnamed, false),
        (plain, false),
    ] {
        assert_eq!(stand.call(client, get("/own", false)).is_ok(), may, "{client:?}");
        assert_eq!(stand.call(client, set("/own", -1)).is_ok(), may, "{client:?}");
    }
    // `auth` is whoever gives the list.
    stand.call(one, with_list(create("/mine"), vec![acl(31, "auth", "")])).unwrap();
    let node = stand.tree().get("/mine").unwrap();
    assert_eq!(node.acl().unwrap()[..], list[..]);
    for client in [none, unnamed, plain] {
        stand.call(client, with_list(create("/no"), vec![acl(31, "auth", "")])).unwrap_err();
    }
    // No client says of itself that it has a certificate.
    let scheme = Some("x509".to_owned());
    let auth = Bytes::from_static(b"CN=admin,O=ours");
    stand.request(plain, &[(-4, Request::Auth { kind: 0, scheme, auth })]);
    assert_eq!(stand.told(plain), ["-4 -115", "closed"]);
}

/// The pages of an operator, over HTTP, ask the same of who would see more than figures.
#[test]
fn who_guesses_at_an_operators_pages_has_to_wait_too() {
    let mut stand = Stand::with(true, |options| {
        options.super_digest = Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".into());
    });
    let (client, _) = stand.client();
    stand.call(client, set_acl("/", vec![acl(31, "digest", BOB)])).unwrap();
    let mut from = |address: &str, proof: &str| {
        let Stand { service, state, now, .. } = &mut stand;
        service.authorize(*now, state, ("digest", proof), address.parse().unwrap())
    };
    assert_eq!(from("10.0.0.1", "super:test"), Ok(()));
    for n in 0..20 {
        assert_eq!(from("10.0.0.1", &format!("super:{n}")), Err(Denied::NotAuthorized));
    }
    assert_eq!(from("10.0.0.1", "super:test"), Err(Denied::NotAuthorized));
    assert_eq!(from("10.0.0.1", "bob:secret"), Ok(()));
    assert_eq!(from("10.0.0.2", "super:test"), Ok(()));
}

#[test]
fn where_lists_are_skipped_they_forbid_nothing() {
    for leads in [true, false] {
        let mut stand = Stand::with(leads, |options| options.skip_acl = true);
        let (client, _) = stand.client();
        stand.call(client, with_list(create("/own"), vec![acl(0, "digest", BOB)])).unwrap();
        for request in [
            get("/own", true),
            exists("/own", true),
            create("/own/x"),
            delete("/own/x"),
            set_acl("/own", vec![acl(0, "digest", BOB)]),
        ] {
            assert!(stand.call(client, request.clone()).is_ok(), "{request:?}");
        }
        stand.request(client, &[(1, set("/own", -1))]);
        stand.settle();
        assert_eq!(stand.told(client), ["changed /own", "1 ok"]);
        let none = Request::SetAcl { path: "/own".into(), acl: Some(Vec::new()), version: -1 };
        assert_eq!(stand.call(client, none), Err(-114), "what is no list is none all the same");
    }
}

/// With no zxid, and ahead of what was asked for before.
#[test]
fn where_it_is_asked_for_a_clients_own_server_refuses_what_its_tree_forbids() {
    for eager in [true, false] {
        for leads in [true, false] {
            let mut stand = Stand::with(leads, |options| options.eager_acl_check = eager);
            let (client, _) = stand.client();
            let list = vec![acl(31, "digest", BOB)];
            stand.call(client, create("/open")).unwrap();
            stand.call(client, with_list(create("/own"), list.clone())).unwrap();
            let create2 = {
                let Request::Create { path, data, acl, flags, ttl, .. } = create("/own/x") else {
                    panic!()
                };
                Request::Create { op: op::CREATE2, path, data, acl, flags, ttl }
            };
            for request in [
                create("/own/x"),
                create2,
                delete("/own/x"),
                set("/own", 9),
                set_acl("/own", list.clone()),
            ] {
                let last = stand.tree().last_zxid().0;
                stand.request(client, &[(1, set("/open", -1)), (2, request.clone())]);
                let first = stand.headers(client);
                stand.settle();
                let rest = stand.headers(client);
                if eager {
                    assert_eq!((first, rest), (vec![(2, 0, -102)], vec![(1, last + 1, 0)]));
                } else {
                    assert_eq!(first, []);
                    assert_eq!(rest, [(1, last + 1, 0), (2, last + 2, -102)], "{request:?}");
                }
            }
            // What it permits, or does not know of, is the leader's to judge.
            for (request, code) in [
                (set("/none", -1), Some(-101)),
                (create("/none/x"), Some(-101)),
                (create("no path"), Some(-8)),
                (set("/open", 99), Some(-103)),
                (Request::Multi(vec![set("/own", -1)]), None),
            ] {
                assert_eq!(stand.call(client, request).err(), code);
            }
            prove(&mut stand, client, "bob:secret");
            stand.call(client, create("/own/x")).unwrap();
        }
    }
}

/// What a list is judged by is the node's own, and the rest of the world's when it was written.
#[test]
fn within_a_multi_nobody_hears_of_a_node_that_it_may_not_read() {
    let mut stand = Stand::new(true);
    let (bob, _) = stand.client();
    prove(&mut stand, bob, "bob:secret");
    let (other, _) = stand.client();
    stand.call(other, Request::AddWatch { path: "/".into(), mode: 1 }).unwrap();
    stand.call(other, Request::AddWatch { path: "/k".into(), mode: 0 }).unwrap();
    let secret = |path: &str| with_list(create(path), vec![acl(31, "digest", BOB)]);
    // It is gone when the events are sent; then another that all may read is in its place.
    let gone = vec![secret("/k"), secret("/k/x"), delete("/k/x"), set("/k", 0), delete("/k")];
    stand.call(bob, Request::Multi(gone)).unwrap();
    assert_eq!(stand.told(other), [""; 0]);
    let replaced = vec![secret("/k"), delete("/k"), create("/k"), set("/k", 0)];
    stand.call(bob, Request::Multi(replaced)).unwrap();
    assert_eq!(stand.told(other), ["created /k", "changed /k"]);
    let other_way = vec![delete("/k"), secret("/k")];
    stand.call(bob, Request::Multi(other_way)).unwrap();
    assert_eq!(stand.told(other), ["deleted /k"]);
}

#[test]
fn a_watch_whose_event_is_not_told_is_used_up_and_catching_up_is_not_filtered() {
    let mut stand = Stand::new(true);
    let (bob, _) = stand.client();
    prove(&mut stand, bob, "bob:secret");
    let (other, _) = stand.client();
    stand.call(bob, create("/k")).unwrap();
    stand.call(other, get("/k", true)).unwrap();
    let seen = stand.tree().last_zxid();
    stand.call(bob, set_acl("/k", vec![acl(31, "digest", BOB)])).unwrap();
    stand.call(bob, set("/k", -1)).unwrap();
    stand.call(bob, set_acl("/k", vec![Acl::world(31)])).unwrap();
    stand.call(bob, set("/k", -1)).unwrap();
    assert_eq!(stand.told(other), [""; 0]);
    stand.call(bob, set_acl("/k", vec![acl(31, "digest", BOB)])).unwrap();
    let again = Request::SetWatches {
        op: op::SET_WATCHES,
        relative_zxid: seen,
        data: vec![Some("/k".into())],
        exist: vec![],
        child: vec![],
        persistent: vec![],
        recursive: vec![],
    };
    stand.request(other, &[(-8, again)]);
    assert_eq!(stand.told(other), ["changed /k", "-8 ok"]);
}

/// Nor do data and children that may not be read.
#[test]
fn a_read_that_is_forbidden_sets_no_watch() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, with_list(create("/own"), vec![acl(30, "world", "anyone")])).unwrap();
    let list = |two| match two {
        true => Request::GetChildren2 { path: "/own".into(), watch: true },
        false => Request::GetChildren { path: "/own".into(), watch: true },
    };
    for request in [exists("/own", true), get("/own", true), list(true), list(false)] {
        assert_eq!(stand.call(client, request), Err(-102));
    }
    stand.call(client, set_acl("/own", vec![Acl::world(31)])).unwrap();
    stand.request(client, &[(1, set("/own", -1)), (2, create("/own/x"))]);
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
}

#[test]
fn settings_are_printed_without_secrets() {
    let digest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    let options = Options { super_digest: Some(digest.into()), ..Options::default() };
    for printed in [format!("{options:?}"), format!("{:?}", ZooKeeper::with(options))] {
        assert!(!printed.contains("InIHSb7y"), "{printed}");
        assert!(printed.contains("session_timeout_max"));
    }
}

/// Entries of null things, and lists of nothing: refused by whoever decodes them, whether lists are skipped or not.
#[test]
fn a_list_of_nothing_does_no_harm() {
    for skip in [true, false] {
        let mut stand = Stand::with(true, |options| options.skip_acl = skip);
        let (client, _) = stand.client();
        let null = (-1_i32).to_be_bytes();
        let text = |text: &str| {
            [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
        };
        let perms = 31_i32.to_be_bytes();
        let one = 1_i32.to_be_bytes();
        for (list, code) in [
            (null.to_vec(), -114),
            (0_i32.to_be_bytes().to_vec(), -114),
            ([&one[..], &perms, &null, &text("x")].concat(), -114),
            ([&one[..], &perms, &null, &null].concat(), -114),
            ([&one[..], &perms, &text("world"), &null].concat(), -5),
            ([&one[..], &perms, &text("digest"), &null].concat(), -5),
            ([&one[..], &perms, &text("rumour"), &text("x")].concat(), -114),
            ((-2_i32).to_be_bytes().to_vec(), -5),
        ] {
            let created = [&text("/x")[..], &null, &list, &[0; 4]].concat();
            let set = [&text("/")[..], &list, &null].concat();
            for (op, body) in [(op::CREATE, created), (op::SET_ACL, set)] {
                stand.raw(client, 1, op, &body);
                stand.settle();
                assert_eq!(stand.told(client), [format!("1 {code}")], "{list:?}");
            }
        }
        stand.call(client, create("/x")).unwrap();
    }
}

/// In the order in which it was proved; the leader asks nobody else.
#[test]
fn a_write_goes_to_the_leader_with_who_asks_for_it() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/x"))]);
    prove(&mut stand, client, "bob:secret");
    stand.request(client, &[(2, set("/x", -1)), (3, Request::CloseSession)]);
    let who: Vec<_> = stand
        .submitted
        .iter()
        .map(|request| {
            let identities = request.identities.as_deref().expect("never null");
            identities.iter().map(|own| own.scheme.clone()).collect::<Vec<_>>()
        })
        .collect();
    let known = vec!["ip".to_owned(), "digest".to_owned()];
    assert_eq!(who, [vec!["ip".to_owned()], known.clone(), known]);
}

#[test]
fn an_identity_is_a_digest_by_the_algorithm_that_an_operator_has_named() {
    let mut stand = Stand::with(true, |options| options.digest_algorithm = DigestAlgorithm::Sha256);
    let (client, _) = stand.client();
    prove(&mut stand, client, "bob:secret");
    stand.call(client, with_list(create("/own"), vec![acl(31, "auth", "")])).unwrap();
    let list = stand.tree().get("/own").unwrap().acl().unwrap().to_vec();
    assert_eq!(list, [acl(31, "digest", "bob:huAluaVu3uER4LIpielGv9Qqk5x3YVDr6I2R/mXf2wE=")]);
    let (other, _) = stand.client();
    assert_eq!(stand.call(other, get("/own", false)), Err(-102));
}
