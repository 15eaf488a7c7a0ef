//! Preparing ahead: what is on its way counts as if it had been applied.

use crate::leader::*;
use crate::support::{self, Body, Random, SESSION, digest, open};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_znode::acl::Acl;
use quorate_znode::{Rules, kind};

const NAMES: [&str; 7] = ["/a", "/b", "/a/c", "/a/d", "/b/c", "/a/c/e", "/b/c/"];

fn list(random: &mut Random) -> Vec<Acl> {
    match random.below(8) {
        0 => vec![Acl::world(random.of(&[1, 7, 15]))],
        1 => vec![acl(31, "auth", ""), Acl::world(5)],
        2 => vec![acl(31, "ip", "127.0.0.0/8")],
        3 => vec![],
        _ => open(),
    }
}

/// What may stand in a multi, too.
fn write(random: &mut Random) -> Request {
    let (name, version) = (random.of(&NAMES), random.of(&[-1, -1, -1, 0, 1]));
    match random.below(14) {
        0..=2 => create_with(name, 0, &list(random)),
        3 => create(name, EPHEMERAL),
        4 => create(name, SEQUENTIAL | random.of(&[0, EPHEMERAL])),
        5 => create_container(name),
        6 => create_ttl(name, random.of(&[TTL, TTL + 1]), random.of(&[5, 50, 5_000])),
        7 => Request { op: kind::CREATE2, ..create(name, random.of(&[0, 1, 2, 3])) },
        8..=9 => set(name, version),
        10 => check(name, version),
        _ => delete(name, version),
    }
}

fn ask(random: &mut Random) -> Request {
    match random.below(16) {
        0 => set_acl(random.of(&NAMES), &list(random), random.of(&[-1, 0, 1])),
        1..=3 => {
            let many = random.below(5);
            multi(&(0..many).map(|_| write(random)).collect::<Vec<_>>())
        }
        4 => delete_container(random.of(&NAMES)),
        5 => close_session(),
        6..=8 => open_session(),
        _ => write(random),
    }
}

/// However much is on its way, each request becomes the transaction that it would become if everything before it
/// had been applied; and what was promised is then carried out without an error.
#[test]
fn preparing_ahead_changes_nothing() {
    let rules = Rules {
        extended_types: true,
        create2_in_multi: true,
        skip_acl: false,
        digest: true,
        container_unused_ms: None,
    };
    let (mut made, mut refused) = (0, 0);
    for seed in 1..=150 {
        let mut random = Random::new(seed);
        let (mut ahead, mut at_once) = (Leader::with(rules), Leader::with(rules));
        let mut home = Origin::Here;
        for step in 0..150 {
            let asked = ask(&mut random);
            let asked = match random.below(6) {
                0 if asked.id.client == SESSION => of(OTHER, asked),
                1 => Request { identities: identities(&[("digest", "me:x")]), ..asked },
                2 if asked.op != kind::MULTI => by_program(asked),
                _ => asked,
            };
            if asked.op == kind::CREATE_SESSION && ahead.preparer.is_closing(asked.id.client) {
                continue;
            }
            if random.below(20) == 0 {
                home = random.of(&[Origin::Here, learner(1), learner(2)]);
                for session in [SESSION, OTHER] {
                    let valid = ahead.preparer.revalidate(&ahead.tree, session, home);
                    assert_eq!(at_once.preparer.revalidate(&at_once.tree, session, home), valid);
                }
            }
            let origin = match asked.op {
                kind::DELETE_CONTAINER => Origin::Here,
                _ if random.below(15) == 0 => learner(3),
                _ => home,
            };
            let prepared = ahead.prepare(origin, &asked);
            *if prepared.kind == kind::ERROR { &mut refused } else { &mut made } += 1;
            let expected = at_once.prepare(origin, &asked);
            assert_eq!(prepared, expected, "seed {seed}, step {step}: {asked:?}");
            at_once.settle();
            while ahead.under_way.len() > random.below(20) {
                ahead.apply();
            }
            for leader in [&mut ahead, &mut at_once] {
                leader.facts.now_ms += 7;
            }
        }
        ahead.settle();
        let (ahead, at_once) = (&ahead.tree, &at_once.tree);
        assert_eq!(support::bytes(ahead), support::bytes(at_once), "seed {seed}");
        assert_eq!(ahead.digest(), digest(ahead), "seed {seed}");
        // Each ephemeral node has a session that is open.
        assert!(ahead.owners().all(|owner| ahead.session(owner).is_some()), "seed {seed}");
    }
    assert!(made > 6_000 && refused > 6_000, "{made} made, {refused} refused");
}

#[test]
fn an_access_list_counts_from_its_preparation_on() {
    let mut leader = Leader::new();
    leader.ask(&create("/a", 0)).unwrap();
    leader.settle();
    assert_eq!(leader.ask(&set_acl("/a", &[Acl::world(16)], 0)).as_deref(), Ok("/a"));
    for _ in 0..2 {
        assert_eq!(leader.ask(&set("/a", -1)), Err(-102), "what is revoked is revoked");
        assert_eq!(leader.ask(&set_acl("/a", &open(), 0)), Err(-103));
        leader.settle();
    }
    assert_eq!(leader.ask(&set_acl("/a", &open(), 1)).as_deref(), Ok("/a"));
    assert_eq!(leader.ask(&set("/a", 0)).as_deref(), Ok("/a"));
    leader.settle();
    assert_eq!(leader.tree.get("/a").unwrap().stat().aversion, 2);
}

/// What one request costs does not depend on what is on its way: a hundred thousand records of other sessions.
#[test]
fn closing_a_session_looks_at_its_own_records_only() {
    let mut leader = Leader::new();
    leader.ask(&of(OTHER, open_session())).unwrap();
    for parent in 0..20 {
        leader.ask(&create(&format!("/{parent}"), 0)).unwrap();
    }
    for n in 0..100_000 {
        leader.ask(&create(&format!("/{}/{n}", n % 20), EPHEMERAL)).unwrap();
    }
    leader.ask(&of(OTHER, create("/other", EPHEMERAL))).unwrap();
    let before = std::time::Instant::now();
    for _ in 0..1_000 {
        assert!(leader.ask(&of(OTHER, close_session())).is_ok());
    }
    let took = before.elapsed();
    assert!(took.as_secs() < 5, "a thousand closings took {took:?}");
    let listed = Body::default().int(1).buffer("/other");
    assert_eq!(leader.body(100_022), listed.0);
}
