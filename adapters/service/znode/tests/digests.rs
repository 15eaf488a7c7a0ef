//! The digest of the tree behind each transaction.

use quorate_core::id::Origin;
use quorate_core::prepared::Prepared;
use quorate_znode::{DigestCheck, Preparer, Rules, Tree, kind};

use crate::leader::{
    EPHEMERAL, Leader, SEQUENTIAL, close_session, create, delete, multi, open_session, set,
};

fn digest(prepared: &Prepared) -> Option<u64> {
    let (body, digest) = prepared.body.split_last_chunk::<8>()?;
    body.ends_with(&[0, 0, 0, 2]).then_some(u64::from_be_bytes(*digest))
}

/// As a Java leader has logged it.
#[test]
fn to_open_a_session_repeats_the_digest_of_a_fresh_tree() {
    let mut leader = Leader::of(Tree::new(), Rules::default());
    assert_eq!(digest(&leader.prepare(Origin::Here, &open_session())), Some(1_371_985_504));
}

#[test]
fn each_transaction_carries_the_digest_of_the_tree_behind_it_however_far_it_is_ahead() {
    let mut leader = Leader::new();
    let asked = [
        create("/a", 0),
        create("/a/b-", SEQUENTIAL),
        create("/e", EPHEMERAL),
        set("/a", -1),
        multi(&[create("/m", 0), set("/m", 0), delete("/a/b-0000000000", -1)]),
        delete("/m", -1),
        close_session(),
    ];
    let told: Vec<_> =
        asked.iter().map(|asked| digest(&leader.prepare(Origin::Here, asked)).unwrap()).collect();
    for expected in told {
        leader.apply();
        assert_eq!(leader.tree.digest(), expected);
    }
}

#[test]
fn a_multi_that_fails_repeats_the_digest_and_an_error_has_none() {
    let mut leader = Leader::new();
    let before = leader.tree.digest();
    let failed = multi(&[create("/m", 0), delete("/none", -1)]);
    assert_eq!(digest(&leader.prepare(Origin::Here, &failed)), Some(before));
    let refused = leader.prepare(Origin::Here, &delete("/none", -1));
    assert_eq!((refused.kind, digest(&refused)), (kind::ERROR, None));
    leader.settle();
    assert_eq!(leader.tree.digest(), before);
}

#[test]
fn an_operator_can_do_without() {
    let mut leader = Leader::new();
    leader.preparer = Preparer::new(Rules { digest: false, ..Rules::default() });
    assert_eq!(digest(&leader.prepare(Origin::Here, &create("/a", 0))), None);
    let txn = leader.under_way.remove(0);
    leader.preparer.on_applied();
    assert_eq!(leader.tree.apply(&txn).unwrap().digest, DigestCheck::Absent);
}
