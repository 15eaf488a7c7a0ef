//! Several writes in one request: all of them or none.

use crate::leader::*;
use crate::support::{Body, open};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_znode::acl::Acl;
use quorate_znode::{Outcome, Rules, kind};

#[test]
fn one_that_fails_in_the_middle_changes_nothing() {
    let mut leader = Leader::new();
    leader.ask(&create("/m", 0)).unwrap();
    leader.settle();
    let asked = multi(&[create("/m/x", SEQUENTIAL), set("/m", 5), delete("/m", -1)]);
    for _ in 0..2 {
        assert!(leader.ask(&asked).is_ok());
        let txn = leader.under_way.last().unwrap();
        let kinds: Vec<_> = elements(txn).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [kind::CREATE, kind::ERROR, kind::ERROR], "as a Java leader logs it");
        assert_eq!(errors(txn), [-103, -2]);
        // What is prepared behind it does not count on it, nor does the number it would have had.
        assert_eq!(leader.ask(&delete("/m/x0000000000", -1)), Err(-101));
    }
    let code = |code| Outcome::Failed(quorate_znode::ErrorCode(code));
    assert_eq!(leader.apply(), Outcome::Multi(vec![code(0), code(-103), code(-2)]));
    let zxid = leader.tree.last_zxid();
    assert_eq!(leader.ask(&create("/m/x", SEQUENTIAL)).as_deref(), Ok("/m/x0000000000"));
    leader.settle();
    assert_eq!(leader.tree.get("/m").unwrap().stat().version, 0);
    assert!(leader.tree.last_zxid() > zxid);
}

#[test]
fn each_element_sees_those_before_it() {
    let mut leader = Leader::new();
    leader
        .ask(&multi(&[
            create("/n", 0),
            set_text("/n", Some(b"b"), 0),
            set_text("/n", Some(b"c"), 1),
            check("/n", 2),
            delete("/n", 2),
        ]))
        .unwrap();
    let Outcome::Multi(outcomes) = leader.apply() else { panic!("no multi") };
    let mut versions = Vec::new();
    for outcome in outcomes {
        if let Outcome::DataSet { stat, .. } = outcome {
            versions.push(stat.version);
        }
    }
    assert_eq!(versions, [1, 2]);
    assert!(leader.tree.get("/n").is_none());
    leader.settle();
}

/// The parents' records, a node that was deleted, and what is on its way before the multi are as before.
#[test]
fn what_a_failed_one_has_touched_is_as_it_was_prepared() {
    let mut leader = Leader::new();
    for path in ["/a", "/b", "/b/old"] {
        leader.ask(&create(path, 0)).unwrap();
    }
    leader.ask(&set("/a", 0)).unwrap();
    leader
        .ask(&multi(&[
            delete("/b/old", 0),
            create("/b/old", EPHEMERAL),
            create("/b/new-", SEQUENTIAL),
            set("/a", 1),
            create("/a/child", EPHEMERAL),
            check("/none", -1),
        ]))
        .unwrap();
    assert_eq!(errors(leader.under_way.last().unwrap()), [-101]);
    for _ in 0..2 {
        assert_eq!(leader.ask(&set("/a", 0)), Err(-103));
        assert_eq!(leader.ask(&create("/b/old", 0)), Err(-110));
        assert_eq!(leader.ask(&create("/b/old/x", 0)).as_deref(), Ok("/b/old/x"), "not ephemeral");
        assert_eq!(leader.ask(&delete("/b/old/x", 0)).as_deref(), Ok("/b/old/x"));
        leader.settle();
    }
    assert_eq!(leader.ask(&create("/b/", SEQUENTIAL)).as_deref(), Ok("/b/0000000001"));
    assert_eq!(leader.ask(&delete("/a", 1)).as_deref(), Ok("/a"), "it has no child");
    leader.ask(&close_session()).unwrap();
    assert_eq!(
        leader.body(leader.under_way.len() - 1),
        Body::default().int(0).0,
        "it owns nothing"
    );
    leader.settle();
}

#[test]
fn an_empty_one_is_fine() {
    let mut leader = Leader::new();
    let prepared = leader.prepare(Origin::Here, &multi(&[]));
    assert_eq!((prepared.kind, leader.body(0)), (kind::MULTI, &[0, 0, 0, 0][..]));
    leader.settle();
}

/// As a Java leader has logged it.
#[test]
fn the_bytes_are_those_of_a_java_leader() {
    let mut leader = Leader::new();
    for n in 0..3 {
        leader.ask(&create(&format!("/{n}"), 0)).unwrap();
    }
    leader.ask(&create("/a", 0)).unwrap();
    leader.ask(&set("/a", 0)).unwrap();
    let text = |path, text: &'static [u8]| create_text(path, Some(text));
    leader
        .ask(&multi(&[
            text("/m1", b"1"),
            set_text("/a", Some(b"3"), 1),
            check("/a", 2),
            delete("/m1", -1),
        ]))
        .unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let elements = elements(leader.under_way.last().unwrap());
    let elements: Vec<_> = elements.iter().map(|(kind, body)| (*kind, hex(body))).collect();
    let expected = [
        (
            1,
            "000000032f6d310000000131000000010000001f00000005776f726c6400000006616e796f6e650000000005",
        ),
        (5, "000000022f61000000013300000002"),
        (13, "000000022f6100000003"),
        (2, "000000032f6d31"),
    ];
    assert_eq!(elements, expected.map(|(kind, hex)| (kind, hex.to_owned())));
}

#[test]
fn what_is_created_is_told_by_the_flags() {
    let body = |flags| create_body("/x", flags, &open());
    let ttl = |flags, ttl| body(flags).long(ttl);
    let rules = |extended_types, create2_in_multi| Rules {
        extended_types,
        create2_in_multi,
        ..Rules::default()
    };
    const REFUSED: i32 = -5;
    for (op, body, rules, becomes) in [
        (kind::CREATE, body(0), rules(true, true), kind::CREATE),
        (kind::CREATE, body(4), rules(true, true), kind::CREATE_CONTAINER),
        (kind::CREATE, body(5), rules(true, true), REFUSED),
        (kind::CREATE, body(7), rules(true, true), REFUSED),
        (kind::CREATE, body(-1), rules(true, true), REFUSED),
        (kind::CREATE2, body(1), rules(true, true), kind::CREATE2),
        (kind::CREATE2, body(1), rules(true, false), kind::CREATE),
        (kind::CREATE2, body(4), rules(true, true), kind::CREATE_CONTAINER),
        (kind::CREATE_CONTAINER, body(4), rules(false, false), kind::CREATE_CONTAINER),
        (kind::CREATE_CONTAINER, body(0), rules(true, true), kind::CREATE),
        (kind::CREATE_CONTAINER, body(6), rules(true, true), REFUSED),
        (kind::CREATE_TTL, ttl(5, 9), rules(true, true), kind::CREATE_TTL),
        (kind::CREATE_TTL, ttl(0, -1), rules(true, true), kind::CREATE),
        (kind::CREATE_TTL, ttl(4, -1), rules(true, true), kind::CREATE_CONTAINER),
        (kind::CREATE_TTL, ttl(7, 9), rules(true, true), REFUSED),
    ] {
        let mut leader = Leader::with(rules);
        let asked = request(kind::MULTI, multi_body(&[(op, body.clone())], true));
        let told = leader.ask(&asked);
        if becomes == REFUSED {
            assert_eq!(told, Err(REFUSED), "{op}: {body:?}");
        } else {
            let kinds = elements(leader.under_way.last().unwrap());
            assert_eq!(kinds.first().unwrap().0, becomes, "{op}: {body:?}");
        }
        leader.settle();
    }
    for (rules, flags, ms, code) in [
        (rules(false, true), 5, 9, -6),
        (rules(true, true), 5, 0, -8),
        (rules(true, true), 6, 1 << 40, -8),
    ] {
        let mut leader = Leader::with(rules);
        let asked = (kind::CREATE_TTL, ttl(flags, ms));
        leader.ask(&request(kind::MULTI, multi_body(&[asked], true))).unwrap();
        assert_eq!(errors(leader.under_way.last().unwrap()), [code], "of the element");
    }
}

#[test]
fn one_that_cannot_be_read_is_refused_as_a_whole() {
    let fine = (kind::CREATE, create_body("/x", 0, &open()));
    let element = |op, body| request(kind::MULTI, multi_body(&[fine.clone(), (op, body)], true));
    let path = || Body::default().buffer("/");
    let mut leader = Leader::new();
    for asked in [
        request(kind::MULTI, Body::default()),
        request(kind::MULTI, multi_body(std::slice::from_ref(&fine), false)),
        element(4, path().byte(0)),
        element(8, path().byte(0)),
        element(kind::SET_ACL, path().acl(&open()).int(-1)),
        element(kind::MULTI, multi_body(&[], true)),
        element(kind::DELETE_CONTAINER, path()),
        element(kind::CLOSE_SESSION, Body::default()),
        element(kind::ERROR, Body::default().int(0)),
        element(kind::DELETE, Body::default().int(-1).int(-1)),
        element(kind::DELETE, Body::default().int(i32::MAX).int(-1)),
        element(
            kind::CREATE,
            Body::default().buffer("/y").data(None).int(1).int(31).buffer("world").int(-1).int(0),
        ),
    ] {
        assert_eq!(leader.ask(&asked), Err(-5), "{asked:?}");
        assert_eq!(leader.ask(&delete("/x", -1)), Err(-101), "nothing is left of it");
    }
    leader.settle();
    let end = Body(vec![0, 0, 0, 1, 1, 0, 0, 0, 0, 99, 99]);
    assert!(leader.ask(&request(kind::MULTI, end)).is_ok(), "what follows the end does not count");
}

#[test]
fn one_that_becomes_too_long_is_refused_and_nothing_counts_on_it() {
    let mut leader = Leader::new();
    let all: Vec<_> = (0..20).map(|n| format!("user{n}:x")).collect();
    let all: Vec<_> = all.iter().map(|id| ("digest", id.as_str())).collect();
    let own = [acl(31, "auth", "")];
    let asked = multi(&[create_with("/a", 0, &own), create_with("/b", EPHEMERAL, &own)]);
    let asked = Request { identities: identities(&all), ..asked };
    let takes = leader.prepare(Origin::Here, &asked).body.len() - 12;
    assert!(takes > 4 * asked.body.len(), "it has grown");
    for (bytes_max, fits) in [(takes - 1, false), (takes, true)] {
        let mut leader = Leader::new();
        leader.facts.bytes_max = bytes_max;
        assert_eq!(leader.ask(&asked).is_ok(), fits);
        let below = Request { identities: asked.identities.clone(), ..create("/a/x", 0) };
        assert_eq!(leader.ask(&below).err(), (!fits).then_some(-101));
        leader.settle();
    }
}

#[test]
fn refusals_of_rights_and_of_sessions_are_kept_apart() {
    let mut leader = Leader::new();
    leader.ask(&create_with("/mine", 0, &[acl(31, "digest", "me:x"), Acl::world(4)])).unwrap();
    leader.ask(&multi(&[create("/mine/x", 0), set("/mine", -1), delete("/mine/x", -1)])).unwrap();
    assert_eq!(errors(leader.under_way.last().unwrap()), [-102, -2]);
    assert_eq!(leader.ask(&of(OTHER, multi(&[]))), Err(-112));
    assert!(leader.preparer.revalidate(&leader.tree, crate::support::SESSION, learner(1)));
    assert_eq!(leader.ask(&multi(&[create("/x", 0)])), Err(-118));
    let ephemeral = of(OTHER, by_program(multi(&[create("/x", 0), create("/y", EPHEMERAL)])));
    leader.ask(&ephemeral).unwrap();
    assert_eq!(errors(leader.under_way.last().unwrap()), [-112], "it would never go");
    leader.settle();
}
