//! Sessions at the leader: by which way their requests come, and what happens while they close.

use crate::leader::*;
use crate::support::{Body, Random, SESSION};
use quorate_core::id::Origin;
use quorate_znode::{Rules, Tree, kind};

#[test]
fn the_first_request_tells_whose_a_session_is() {
    for first in [Origin::Here, learner(1)] {
        let mut leader = Leader::new();
        assert!(leader.ask_by(first, &create("/a", 0)).is_ok());
        for (n, other) in [Origin::Here, learner(1), learner(2)].into_iter().enumerate() {
            let told = leader.ask_by(other, &create(&format!("/b{n}"), 0)).err();
            assert_eq!(told, (other != first).then_some(-118), "{other:?}");
            assert_eq!(
                leader.preparer.check_owner(&leader.tree, SESSION, other).err().map(|code| code.0),
                told
            );
        }
        leader.settle();
    }
}

#[test]
fn a_request_that_fails_tells_it_as_well() {
    let mut leader = Leader::new();
    assert_eq!(leader.ask_by(learner(1), &set("/none", -1)), Err(-101));
    assert_eq!(leader.ask(&set("/none", -1)), Err(-118));
    // A read or a ping does, too.
    let mut leader = Leader::new();
    assert_eq!(leader.preparer.check_owner(&leader.tree, SESSION, learner(1)), Ok(()));
    assert_eq!(leader.ask(&set("/none", -1)), Err(-118));
    let mut leader = Leader::new();
    assert_eq!(leader.ask_by(learner(1), &create("/x", 9)), Err(-8), "this was asked before");
    assert_eq!(leader.ask(&set("/none", -1)), Err(-101));
}

#[test]
fn a_session_is_its_learners_from_its_creation_on() {
    let mut leader = Leader::of(Tree::new(), Rules::default());
    leader.ask_by(learner(1), &open_session()).unwrap();
    assert_eq!(leader.ask(&create("/a", 0)), Err(-118), "before it is applied");
    assert!(leader.ask_by(learner(1), &create("/a", 0)).is_ok());
    leader.settle();
    assert_eq!(leader.ask(&create("/b", 0)), Err(-118));
    // Of the leader's own client it is not known until its first request.
    leader.ask(&of(OTHER, open_session())).unwrap();
    assert!(leader.ask_by(learner(3), &of(OTHER, create("/b", 0))).is_ok());
    assert_eq!(leader.ask(&of(OTHER, create("/c", 0))), Err(-118));
}

#[test]
fn a_session_moves_when_it_is_revalidated() {
    let mut leader = Leader::new();
    leader.ask_by(learner(1), &create("/a", 0)).unwrap();
    leader.settle();
    assert!(leader.preparer.revalidate(&leader.tree, SESSION, learner(2)));
    let zxid = leader.last();
    assert_eq!(leader.ask_by(learner(1), &set("/a", 0)), Err(-118), "the old way, a late one");
    assert!(leader.last() > zxid, "which takes a transaction");
    assert_eq!(leader.ask_by(learner(2), &set("/a", 0)).as_deref(), Ok("/a"));
    // Back again, on another link of the same server, and to the leader itself.
    for origin in [learner(1), learner(3), Origin::Here] {
        assert!(leader.preparer.revalidate(&leader.tree, SESSION, origin));
        assert_eq!(leader.preparer.owner(SESSION), Some(origin));
        assert!(leader.ask_by(origin, &set("/a", -1)).is_ok());
    }
    assert_eq!(leader.ask_by(learner(3), &set("/a", -1)), Err(-118));
    leader.settle();
    assert_eq!(leader.tree.get("/a").unwrap().stat().version, 4);
}

#[test]
fn only_a_session_that_is_open_can_be_revalidated() {
    let mut leader = Leader::of(Tree::new(), Rules::default());
    let valid = |leader: &mut Leader| leader.preparer.revalidate(&leader.tree, SESSION, learner(1));
    assert!(!valid(&mut leader), "it does not exist");
    leader.ask(&open_session()).unwrap();
    assert!(valid(&mut leader), "it is prepared");
    leader.settle();
    assert!(valid(&mut leader));
    assert!(!leader.preparer.is_closing(SESSION));
    leader.ask(&close_session()).unwrap();
    assert!(!valid(&mut leader) && leader.preparer.is_closing(SESSION), "it is closing");
    leader.settle();
    assert!(!valid(&mut leader) && !leader.preparer.is_closing(SESSION), "it is closed");
}

#[test]
fn a_new_leadership_knows_no_owners() {
    let mut leader = Leader::new();
    leader.ask_by(learner(1), &create("/a", 0)).unwrap();
    leader.settle();
    leader.ask(&close_session()).unwrap();
    leader.preparer.abandon();
    leader.under_way.clear();
    assert!(!leader.preparer.is_closing(SESSION) && leader.preparer.is_settled());
    assert!(leader.ask_by(learner(2), &create("/b", 0)).is_ok());
    assert_eq!(leader.ask_by(learner(1), &create("/c", 0)), Err(-118));
    // Nor of a session that was not closing.
    leader.preparer.abandon();
    leader.under_way.clear();
    assert!(leader.ask_by(learner(1), &create("/b", 0)).is_ok());
}

#[test]
fn what_was_refused_opens_and_closes_no_session() {
    let mut leader = Leader::new();
    leader.facts.bytes_max = 3;
    assert_eq!(leader.ask(&of(OTHER, open_session())), Err(-5), "it does not fit");
    assert_eq!(leader.ask(&close_session()), Err(-5));
    leader.facts.bytes_max = 1_000;
    assert_eq!(leader.ask(&of(OTHER, create("/x", 0))), Err(-112));
    assert!(leader.ask(&create("/x", 0)).is_ok());
    leader.settle();
}

#[test]
fn a_session_is_closed_by_whichever_way_it_is_asked_for() {
    let mut leader = Leader::new();
    leader.ask_by(learner(1), &create("/e", EPHEMERAL)).unwrap();
    assert!(leader.ask_by(learner(2), &close_session()).is_ok());
    assert_eq!(leader.preparer.owner(SESSION), None);
    for origin in [Origin::Here, learner(1), learner(2)] {
        assert_eq!(leader.ask_by(origin, &create("/x", EPHEMERAL)), Err(-112));
        let told = leader.preparer.check_owner(&leader.tree, SESSION, origin);
        assert_eq!(told.unwrap_err().0, -112);
    }
    // The same once more, and one that never was.
    assert!(leader.ask_by(learner(1), &close_session()).is_ok());
    assert!(leader.ask(&of(OTHER, close_session())).is_ok());
    assert_eq!(leader.ask(&of(OTHER, open_session())), Err(-112), "it is closing");
    leader.settle();
    assert!(leader.tree.get("/e").is_none());
    assert!(leader.ask(&of(OTHER, open_session())).is_ok());
    assert!(leader.ask_by(learner(5), &of(OTHER, create("/x", EPHEMERAL))).is_ok());
    leader.settle();
}

#[test]
fn a_session_that_is_known_gets_another_timeout() {
    let mut leader = Leader::new();
    let again = by_program(request(kind::CREATE_SESSION, Body::default().int(-7)));
    assert!(leader.ask_by(learner(4), &again).is_ok());
    leader.settle();
    assert_eq!(leader.tree.session(SESSION), Some(-7));
    assert_eq!(leader.ask(&create("/x", 0)), Err(-118));
}

/// Either the node is made and goes with the session, or it is refused.
#[test]
fn a_closing_session_leaves_no_node_behind() {
    for seed in 1..=200 {
        let mut random = Random::new(seed);
        let mut leader = Leader::new();
        leader.ask(&create("/p", 0)).unwrap();
        let mut closed = false;
        for step in 0..40 {
            let path = format!("/p/{}", random.below(6));
            let asked = match random.below(8) {
                0 => {
                    closed = true;
                    close_session()
                }
                1 => delete(&path, -1),
                2 => by_program(delete(&path, -1)),
                3 => multi(&[create(&path, EPHEMERAL), set(&path, random.of(&[0, 1]))]),
                4 => by_program(create(&path, random.of(&[0, EPHEMERAL]))),
                _ => create(&path, EPHEMERAL),
            };
            let told = leader.ask(&asked);
            if closed && asked.identities.is_some() && asked.op != kind::CLOSE_SESSION {
                assert_eq!(told, Err(-112), "seed {seed}, step {step}: {asked:?}");
            }
            if random.below(4) == 0 && !leader.under_way.is_empty() {
                leader.apply();
            }
        }
        leader.settle();
        let tree = &leader.tree;
        assert!(!closed || tree.ephemerals(SESSION).next().is_none(), "seed {seed}");
    }
}

#[test]
fn a_parent_can_be_deleted_right_behind_the_close() {
    let mut leader = Leader::new();
    leader.ask(&of(OTHER, open_session())).unwrap();
    leader.ask(&create("/p", 0)).unwrap();
    leader.ask(&create("/p/e", EPHEMERAL)).unwrap();
    leader.settle();
    leader.ask(&close_session()).unwrap();
    assert_eq!(leader.ask(&of(OTHER, delete("/p", -1))).as_deref(), Ok("/p"));
    leader.settle();
    assert!(leader.tree.get("/p").is_none());
}

#[test]
fn a_close_takes_no_container_no_ttl_node_and_no_successor() {
    let mut leader = Leader::with(Rules { extended_types: true, ..Rules::default() });
    leader.ask(&create_container("/c")).unwrap();
    leader.ask(&create_ttl("/t", TTL, 1_000)).unwrap();
    leader.ask(&create("/e", EPHEMERAL)).unwrap();
    leader.settle();
    // What was ephemeral is a plain node by then.
    leader.ask(&delete("/e", -1)).unwrap();
    leader.ask(&create("/e", 0)).unwrap();
    leader.ask(&create("/f", EPHEMERAL)).unwrap();
    leader.ask(&close_session()).unwrap();
    assert_eq!(leader.body(leader.under_way.len() - 1), Body::default().int(1).buffer("/f").0);
    leader.settle();
    let left: Vec<_> = leader.tree.children("/").unwrap().collect();
    assert_eq!(left, ["c", "e", "t", "zookeeper"]);
}
