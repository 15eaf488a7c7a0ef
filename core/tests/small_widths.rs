//! What rests on arithmetic, with all values that are small enough or lie at a corner: nothing is drawn, nothing
//! is left out. Each rule is written a second time, as plainly as it can be said.
#![allow(clippy::unwrap_used, reason = "a test")]

use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::vote::Vote;
use quorate_core::zxid::{Counter, Epoch, Zxid};

/// Voters with their weights, by group.
type Groups = Vec<Vec<(i64, u64)>>;

/// More than half of the weight in more than half of the groups that have weight.
fn is_enough(groups: &Groups, has: impl Fn(i64) -> bool) -> bool {
    let sum = |group: &[(i64, u64)]| group.iter().map(|(_, weight)| *weight).sum::<u64>();
    let counted: Vec<_> = groups.iter().filter(|group| sum(group) > 0).collect();
    let is_won = |group: &[(i64, u64)]| {
        let here: u64 = group.iter().filter(|(id, _)| has(*id)).map(|(_, weight)| *weight).sum();
        2 * here > sum(group)
    };
    2 * counted.iter().filter(|group| is_won(group)).count() > counted.len()
}

fn quorum(groups: &Groups) -> Quorum {
    let group = |group: &Vec<(i64, u64)>| {
        group.iter().map(|(id, weight)| (ServerId(*id), *weight)).collect::<Vec<_>>()
    };
    Quorum::hierarchical(groups.iter().map(group))
}

/// All ways to give so many voters one of some groups and one of some weights.
fn systems(ids: std::ops::RangeInclusive<i64>, groups: usize, weights: u64) -> Vec<Groups> {
    let mut all = vec![vec![Vec::new(); groups]];
    for id in ids {
        let with = |system: Groups| {
            (0..groups).flat_map(move |group| {
                let system = system.clone();
                (0..weights).map(move |weight| {
                    let mut system = system.clone();
                    system[group].push((id, weight));
                    system
                })
            })
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all
}

/// Looks at all sets of the voters: whether they are enough, and whether they and the rest are not both.
fn look(quorum: &Quorum, voters: i64, rule: impl Fn(u32) -> bool) {
    let (sets, has) = (1u32 << voters, |set: u32, id: i64| set >> (id - 1) & 1 == 1);
    for set in 0..sets {
        let here = || (1..=voters).filter(|id| has(set, *id)).map(ServerId);
        let enough = quorum.is_quorum(here());
        assert_eq!(enough, rule(set), "{set:b} of {quorum:?}");
        let mut support = quorum.support();
        here().for_each(|id| {
            support.add(quorum, id);
        });
        assert_eq!(enough, support.is_quorum(quorum), "{set:b} of {quorum:?}, added up");
        assert!(
            !(enough && quorum.is_quorum((1..=voters).filter(|id| !has(set, *id)).map(ServerId)))
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "millions of sets")]
fn every_set_of_voters_in_every_small_ensemble_is_a_quorum_or_not_as_the_rule_says() {
    let has = |set: u32| move |id: i64| set >> (id - 1) & 1 == 1;
    let small = [systems(1..=6, 1, 3), systems(1..=4, 3, 3), systems(1..=5, 2, 2)];
    for groups in small.iter().flatten() {
        look(&quorum(groups), 6, |set| is_enough(groups, has(set)));
    }
    // And while the membership changes: both have to agree.
    let (old, new) = (systems(1..=3, 2, 2), systems(2..=4, 2, 2));
    for old in &old {
        for new in &new {
            let rule = |set| is_enough(old, has(set)) && is_enough(new, has(set));
            look(&Quorum::joint(&quorum(old), &quorum(new)), 4, rule);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "millions of votes")]
fn votes_are_ordered_by_epoch_then_zxid_then_id() {
    let corners = [-1, 0, 1, 2, i64::MAX];
    let votes: Vec<_> = corners
        .iter()
        .flat_map(|epoch| corners.iter().map(move |zxid| (*epoch, *zxid)))
        .flat_map(|(epoch, zxid)| corners.iter().map(move |leader| (epoch, zxid, *leader)))
        .collect();
    let vote = |(epoch, zxid, leader): (i64, i64, i64)| Vote {
        peer_epoch: Epoch(epoch),
        zxid: Zxid(zxid),
        leader: ServerId(leader),
    };
    for a in &votes {
        for b in &votes {
            let better = a.0 > b.0 || a.0 == b.0 && (a.1 > b.1 || a.1 == b.1 && a.2 > b.2);
            assert_eq!(vote(*a).better_than(&vote(*b)).is_some(), better, "{a:?} against {b:?}");
            for c in votes.iter().filter(|_| better) {
                let next = vote(*b).better_than(&vote(*c)).is_some();
                assert!(!next || vote(*a).better_than(&vote(*c)).is_some(), "{a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn zxids_are_an_epoch_and_a_counter_and_follow_one_another_without_a_hole() {
    let epochs = [0, 1, 2, Epoch::MAX.0 - 1, Epoch::MAX.0];
    let counters = [0, 1, 2, u32::MAX - 2, u32::MAX - 1, u32::MAX];
    let all: Vec<_> = epochs.iter().flat_map(|e| counters.iter().map(move |c| (*e, *c))).collect();
    let zxid = |(epoch, counter): (i64, u32)| Zxid::new(Epoch(epoch), Counter(counter));
    for a in &all {
        assert_eq!((zxid(*a).epoch(), zxid(*a).counter()), (Epoch(a.0), Counter(a.1)));
        assert_eq!(zxid(*a).is_epoch_start(), a.1 == 0);
        let next = zxid(*a).next();
        assert!(next.is_none_or(|next| (next.epoch().0, next.counter().0) == (a.0, a.1 + 1)));
        assert_eq!(next.is_none(), a.1 >= Counter::LAST.0);
        for b in &all {
            assert_eq!(zxid(*a) < zxid(*b), a < b);
            let behind = a.0 == b.0 && a.1.checked_sub(1) == Some(b.1);
            let begins = a.0 > b.0 && a.1 == 1;
            assert_eq!(zxid(*a).follows(zxid(*b)), behind || begins, "{a:?} behind {b:?}");
        }
    }
}
