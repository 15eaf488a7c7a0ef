//! Bounds that fit in a test run.

use crate::checking::ensemble::Ensemble;
use crate::checking::liveness::search;
use crate::checking::members::Members;
use crate::checking::{Budget, Outcome, Scope, check};
use crate::sessions::{self, Seen};

/// How many transitions a test may take: few where nothing is optimised.
const MANY: usize = if cfg!(debug_assertions) { 300_000 } else { 2_500_000 };

fn look(scope: Scope) -> Outcome {
    look_at(scope, MANY)
}

/// The same, at so many transitions at most.
fn look_at(scope: Scope, most: usize) -> Outcome {
    let outcome = check(scope, Budget { transitions: Some(most), threads: 2, ..Budget::default() });
    println!("{outcome}");
    assert!(outcome.violation.is_none(), "{outcome}");
    outcome
}

#[test]
fn in_one_round_three_voters_elect_whom_a_quorum_voted_for() {
    let outcome = look(Scope::election(3));
    assert!(outcome.unseen.is_empty(), "{outcome}");
    assert!(outcome.exhausted || cfg!(debug_assertions), "{outcome}");
}

#[test]
fn lost_and_repeated_votes_elect_nobody_else() {
    let outcome = look(Scope { lossy: true, repeating: true, ..Scope::election(3) });
    assert!(outcome.unseen.is_empty(), "{outcome}");
}

#[test]
fn votes_that_overtake_one_another_elect_nobody_else() {
    look(Scope::election(3).on_bad_links());
}

#[test]
fn a_voter_may_crash_in_the_round_and_come_back() {
    look(Scope { crashes: 1, ..Scope::election(3) });
}

#[test]
fn three_voters_establish_one_leader_and_commit() {
    let outcome = look(Scope { transactions: 1, ..Scope::recovery(3) });
    assert!(outcome.unseen.is_empty() && outcome.exhausted, "{outcome}");
}

#[test]
fn a_crash_in_recovery_or_broadcast_loses_nothing() {
    look(Scope { transactions: 1, crashes: 1, rounds: 2, ..Scope::recovery(3) });
}

#[test]
fn histories_that_differ_are_made_one() {
    let outcome = look(Scope { rounds: 2, ..Scope::recovery(3).after_accidents() });
    assert!(outcome.unseen.is_empty() || cfg!(debug_assertions), "{outcome}");
    assert!(outcome.exhausted || cfg!(debug_assertions), "{outcome}");
}

#[test]
fn a_generation_elects_one_leader_with_votes_that_are_on_disk() {
    for pre_vote in [true, false] {
        let outcome = look(Scope { candidacies: 1, ..Scope::election(3).by_generation(pre_vote) });
        assert!(outcome.unseen.is_empty() && outcome.exhausted, "{outcome}");
    }
}

#[test]
fn two_candidates_of_a_generation_are_not_both_elected() {
    let outcome = look(Scope::election(3).by_generation(false));
    assert!(outcome.unseen.is_empty(), "{outcome}");
    assert!(outcome.exhausted || cfg!(debug_assertions), "{outcome}");
    look(Scope { rounds: 2, ..Scope::election(3).by_generation(false) }.after_accidents());
}

#[test]
fn a_voter_that_crashes_around_its_vote_does_not_vote_twice_in_a_generation() {
    for pre_vote in [true, false] {
        let scope = Scope { crashes: 1, candidacies: 1, ..Scope::election(3) };
        let outcome = look_at(scope.by_generation(pre_vote), 2 * MANY);
        assert!(outcome.exhausted || pre_vote || cfg!(debug_assertions), "{outcome}");
    }
    look(Scope { crashes: 1, ..Scope::election(3).by_generation(false) });
}

#[test]
fn letters_that_are_lost_repeated_or_late_elect_nobody_else() {
    for pre_vote in [true, false] {
        look(Scope::election(3).by_generation(pre_vote).on_bad_links());
    }
}

#[test]
fn whoever_a_generation_elects_loses_nothing() {
    for pre_vote in [true, false] {
        let scope = Scope { rounds: 2, crashes: 1, candidacies: 1, ..Scope::recovery(3) };
        let outcome = look_at(scope.by_generation(pre_vote), 2 * MANY);
        assert!(outcome.exhausted || cfg!(debug_assertions), "{outcome}");
        look(Scope { rounds: 2, ..Scope::recovery(3) }.by_generation(pre_vote).after_accidents());
    }
}

/// 1 becomes an observer, and then a voter again.
fn demoted_and_promoted() -> [Members; 2] {
    [Members::of(&[2, 3], &[1]), Members::of(&[1, 2, 3], &[])]
}

#[test]
fn a_change_of_the_membership_binds_whoever_has_it_in_its_history() {
    let [demoted, promoted] = demoted_and_promoted();
    let outcome = look(Scope::recovery(3).with_changes(&[demoted]));
    assert!(outcome.unseen.is_empty() && outcome.exhausted, "{outcome}");
    let outcome = look_at(Scope::recovery(3).with_changes(&[demoted, promoted]), MANY / 2);
    assert!(outcome.unseen.is_empty() || cfg!(debug_assertions), "{outcome}");
    // Whoever leads first is not among the voters any more.
    for leader in [2, 3] {
        let others: Vec<i64> = (1..=3).filter(|id| *id != leader).collect();
        let left = Scope { rounds: 2, ..Scope::recovery(3) };
        look_at(left.with_changes(&[Members::of(&others, &[])]), MANY / 16);
    }
}

#[test]
fn a_crash_around_a_change_of_the_membership_loses_neither() {
    let scope = Scope { crashes: 1, rounds: 2, ..Scope::recovery(3) };
    look_at(scope.with_changes(&demoted_and_promoted()), MANY / 4);
}

#[test]
fn changes_that_disks_know_of_in_part_bind_whoever_is_brought_up() {
    let after = || Scope { rounds: 2, ..Scope::recovery(3) }.after_changes();
    let outcome = look_at(after(), MANY / 2);
    assert!(outcome.unseen.is_empty() || cfg!(debug_assertions), "{outcome}");
    look_at(Scope { crashes: 1, ..after() }, MANY / 4);
    let slow = Scope { slow_streams: true, ..after() };
    look_at(slow.with_changes(&[Members::of(&[1, 2], &[3])]), MANY / 4);
}

#[test]
fn three_voters_do_not_go_on_without_a_leader_for_ever() {
    let found = search(Scope::election(3), MANY, Ensemble::is_led);
    println!("{found}");
    assert!(found.violation.is_none(), "{found}");
    assert!(found.exhausted && found.cycles > 0, "{found}");
}

#[test]
fn nor_do_they_stop_on_the_way_from_election_to_service() {
    let found = search(Scope::recovery(3), MANY, Ensemble::is_served);
    println!("{found}");
    assert!(found.violation.is_none(), "{found}");
    assert!(found.exhausted && found.cycles > 0, "{found}");
}

#[test]
fn sessions_live_and_end_as_they_should_through_a_move_and_a_change_of_the_leader() {
    let most = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    for (scope, expected) in [
        (sessions::SILENCE, &[Seen::Expiry, Seen::ExpiryBehindChange, Seen::TakenOver][..]),
        (sessions::MOVE, &[Seen::MovedWriteRefused]),
    ] {
        let found = sessions::look(scope, most);
        println!("{} states of sessions, all: {}", found.states, found.exhausted);
        assert!(found.broken.is_none(), "{found:#?}");
        assert!(found.exhausted || cfg!(debug_assertions), "{} states", found.states);
        let missing = expected.iter().any(|one| found.unseen.contains(one));
        assert!(!missing || cfg!(debug_assertions), "{found:?}");
    }
}
