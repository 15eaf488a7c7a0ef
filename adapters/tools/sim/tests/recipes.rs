//! Elections through a store, with accidents from a seed.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::time::Duration;

use quorate_core::recipe::Token;
use quorate_core::recipe::lease::{self, Expiry};
use quorate_core::recipe::offer::{self, Naming};
use quorate_core::time::Instant;
use quorate_sim::store::{Broken, Election, Happening, Lease, Offers, Plan, Recipe, Wish};

const NAMINGS: [Naming; 6] =
    [Naming::Guid, Naming::Java, Naming::Session, Naming::Latch, Naming::Kazoo, Naming::Lease];

/// As many as there is time for, or as `QUORATE_SEEDS` says, or the one that is asked for with `QUORATE_SEED`.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    match number("QUORATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUORATE_SEEDS").unwrap_or(60),
    }
}

/// Accidents; every other store with revisions is one in which calls take effect late.
fn plan(seed: u64, revisions: bool) -> Plan {
    Plan { late: revisions && seed % 2 == 0, ..Plan::of(seed) }
}

/// Runs one; if it fails, once more with everything written down.
fn run<R: Recipe>(name: &str, seed: u64, make: impl Fn() -> Election<R>) {
    let Err(wrong) = make().run() else { return };
    let mut again = make();
    again.record();
    assert_eq!(again.run().as_ref(), Err(&wrong), "a seed is one run");
    let idle = |line: &&String| !["Ping", "Renewed", "Confirmed"].iter().any(|w| line.contains(w));
    let history: Vec<&str> = again.history().iter().filter(idle).map(String::as_str).collect();
    let last = &history[history.len().saturating_sub(150)..];
    panic!("{}\n{name}, seed {seed}: {wrong}", last.join("\n"));
}

#[test]
fn offers_through_accidents_of_all_kinds() {
    for naming in NAMINGS {
        for seed in seeds() {
            run(&format!("{naming:?}"), seed, || {
                Offers::elect(plan(seed, naming == Naming::Lease), naming)
            });
        }
    }
}

/// Its offer was made while it did not wait for the answer any more, and went while it stood still: that it makes
/// another one has a reason that it does not know itself.
#[test]
fn whoever_makes_another_offer_for_one_that_is_gone_has_a_reason() {
    run("Java", 1411, || Offers::elect(followers(1411, false), Naming::Java));
}

/// A delete was lost with its connection and made again; then the same lease made its key anew and led with it, when
/// the first delete came. It took that key, and another candidate led at once.
#[test]
fn a_delete_that_arrives_late_takes_no_key_that_was_made_anew() {
    run("Lease", 1636, || Offers::elect(plan(1636, true), Naming::Lease));
}

/// A store that numbers no names has none: it lists what there is, and never says that there is no root.
#[test]
fn nobody_makes_a_root_where_names_are_not_numbered() {
    let mut election = Offers::elect(Plan::quiet(3), Naming::Lease);
    election.record();
    election.start().unwrap();
    let root = election.history().iter().find(|line| line.contains("Root"));
    assert_eq!(root, None);
}

#[test]
fn a_lease_that_the_store_ends_through_accidents_of_all_kinds() {
    for seed in seeds() {
        run("lease", seed, || Lease::elect(plan(seed, true), Expiry::Store));
    }
}

#[test]
fn a_lease_that_candidates_observe_through_accidents_of_all_kinds() {
    for seed in seeds() {
        let plan = Plan { deletions: false, ..plan(seed, true) };
        run("observed lease", seed, || Lease::elect(plan.clone(), Expiry::Observed));
    }
}

/// Servers lose their leader, and tell it only now and then whom they have heard.
fn followers(seed: u64, hasty: bool) -> Plan {
    Plan { cuts: true, touches: true, hasty, ..plan(seed, false) }
}

#[test]
fn followers_that_are_cut_off_confirm_nothing_that_is_not_counted() {
    for seed in seeds() {
        run("lease", seed, || Lease::elect(followers(seed, false), Expiry::Store));
        for naming in [Naming::Guid, Naming::Java] {
            run(&format!("{naming:?}"), seed, || Offers::elect(followers(seed, false), naming));
        }
    }
}

/// What ZooKeeper's leader has confirmed last it may not have counted yet: its followers tell it of sessions with
/// their answers to its pings.
#[test]
fn whoever_relies_on_the_last_heartbeat_leads_too_long_behind_a_follower_that_is_cut_off() {
    let two = |wrong: Broken| wrong.to_string().contains("lead");
    let offers = |seed| Offers::elect(followers(seed, true), Naming::Guid).run();
    let lease = |seed| Lease::elect(followers(seed, true), Expiry::Store).run();
    assert!((0..500).any(|seed| offers(seed).is_err_and(two)));
    assert!((0..500).any(|seed| lease(seed).is_err_and(two)));
}

/// A candidate that hears nothing and does nothing.
#[derive(Debug)]
struct Deaf;

impl Recipe for Deaf {
    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn step(&mut self, _at: Instant, _happening: Happening) -> Vec<Wish> {
        Vec::new()
    }

    fn leads(&self) -> Option<Token> {
        None
    }

    fn node(&self) -> Option<&str> {
        None
    }
}

/// A candidate from its number and a seed.
type Make = fn(usize, u64) -> Box<dyn Recipe>;

#[test]
fn a_candidate_that_does_nothing_is_found_whichever_it_is() {
    fn offers(number: usize, seed: u64) -> Box<dyn Recipe> {
        let config = offer::Config::new(format!("host {number}"), 1 + number as u128);
        Box::new(Offers::new(offer::Config { seed, ..config }).unwrap())
    }
    fn leases(number: usize, seed: u64, expiry: Expiry) -> Box<dyn Recipe> {
        let (unique, timeout) = ((1 + number as u128) << 64, Plan::quiet(1).timeout);
        let config = lease::Config::new(format!("host {number}"), unique, timeout);
        Box::new(Lease::new(lease::Config { expiry, seed, ..config }).unwrap())
    }
    let means: [(&str, Make); 3] = [
        ("offers", offers),
        ("lease", |number, seed| leases(number, seed, Expiry::Store)),
        ("observed lease", |number, seed| leases(number, seed, Expiry::Observed)),
    ];
    for (name, make) in means {
        for candidates in 2..=4 {
            for deaf in 0..candidates {
                for seed in 0..20 {
                    let plan = Plan { seed, ..Plan::quiet(candidates) };
                    let mut election = Election::new(plan, |number, seed| {
                        if number == deaf { Box::new(Deaf) } else { make(number, seed) }
                    });
                    let run = election.run();
                    let which = format!("{name}, number {deaf} of {candidates}, seed {seed}");
                    assert!(run.is_err(), "{which} is not found");
                }
            }
        }
    }
}

/// A row of candidates that have settled, and no accidents.
fn settled(candidates: usize) -> Election<Offers> {
    let mut election = Offers::elect(Plan::quiet(candidates), Naming::Guid);
    election.start().unwrap();
    assert!(election.leader().is_some());
    election
}

/// Ends the leader's session: how many are woken by it, and how often the children are listed.
fn end_of_a_leader(election: &mut Election<Offers>) -> (u64, u64) {
    let before = election.standing();
    election.crash(election.leader().unwrap()).unwrap();
    let after = election.standing();
    (after.woken - before.woken, after.lists - before.lists)
}

#[test]
fn of_a_hundred_candidates_one_is_woken_when_the_leader_dies() {
    let mut election = settled(100);
    assert_eq!(end_of_a_leader(&mut election), (1, 1));
    assert!(election.leader().is_some());
}

#[test]
fn a_hundred_leaders_die_in_turn_and_wake_ninety_nine_in_all() {
    let mut election = settled(100);
    let mut all = (0, 0);
    for _ in 0..100 {
        let (woken, lists) = end_of_a_leader(&mut election);
        all = (all.0 + woken, all.1 + lists);
    }
    assert_eq!((all, election.leader()), ((99, 99), None));
}

/// What the offers are for: everybody watches the one key, and everybody comes when it goes.
#[test]
fn one_key_wakes_everybody() {
    let mut election = Lease::elect(Plan::quiet(100), Expiry::Store);
    election.start().unwrap();
    let mut woken = 0;
    for left in (1..100).rev() {
        let before = election.standing().woken;
        election.crash(election.leader().unwrap()).unwrap();
        assert_eq!(election.standing().woken - before, left);
        woken += left;
    }
    assert_eq!(woken, 4950);
}

/// What a message takes at most where nothing goes wrong, and what else passes: a copy lags, time is looked at.
const HOP: Duration = Duration::from_millis(21);
const LAG: Duration = Duration::from_millis(10 + 20 + 1);

/// Three candidates that have settled, with this seed.
fn three<R: Recipe>(seed: u64, make: impl Fn(Plan) -> Election<R>) -> Election<R> {
    let mut election = make(Plan { seed, ..Plan::quiet(3) });
    election.start().unwrap();
    election
}

#[test]
fn after_an_offer_that_is_given_back_the_next_leads_within_two_round_trips() {
    for naming in NAMINGS {
        for seed in seeds() {
            let mut election = three(seed, |plan| Offers::elect(plan, naming));
            election.stop(election.leader().unwrap(), Duration::from_secs(5)).unwrap();
            let (took, calls) = election.until_led(Duration::from_secs(5)).unwrap();
            assert_eq!(calls, 2, "{naming:?}, seed {seed}");
            assert!(took <= LAG + HOP + 4 * HOP, "{naming:?}, seed {seed}: {took:?}");
        }
    }
}

#[test]
fn after_a_lease_that_is_given_back_the_next_leads_within_two_round_trips() {
    for seed in seeds() {
        for expiry in [Expiry::Store, Expiry::Observed] {
            let mut election = three(seed, |plan| Lease::elect(plan, expiry));
            let holder = election.leader().unwrap();
            election.stop(holder, Duration::from_secs(5)).unwrap();
            let (took, _) = election.until_led(Duration::from_secs(5)).unwrap();
            // The write passes the store's leader.
            assert!(took <= LAG + HOP + 2 * HOP + 4 * HOP, "{expiry:?}, seed {seed}: {took:?}");
        }
    }
}

/// The session's time-out or the lease's, one heartbeat in which the last was perhaps sent, and what follows.
#[test]
fn after_a_leader_that_is_killed_the_next_leads_within_the_time_out_and_a_heartbeat() {
    fn kill<R: Recipe>(name: &str, seed: u64, most: Duration, mut election: Election<R>) {
        let creates = election.standing().creates;
        election.kill(election.leader().unwrap());
        let (took, _) = election.until_led(most).unwrap_or_else(|wrong| {
            panic!("{name}, seed {seed}: {wrong}");
        });
        assert!(took > Duration::ZERO);
        let offers = election.standing().creates - creates;
        assert!(name.contains("lease") || offers == 0, "{name}, seed {seed}: {offers} offers");
    }
    let timeout = Plan::quiet(3).timeout;
    let heartbeat = timeout / 4;
    for seed in seeds() {
        for naming in NAMINGS {
            let election = three(seed, |plan| Offers::elect(plan, naming));
            // No heartbeat is needed: it counts from what was heard last.
            // What was on its way arrives.
            kill(&format!("{naming:?}"), seed, timeout + LAG + 6 * HOP, election);
        }
        let most = timeout + heartbeat;
        kill("lease", seed, most, three(seed, |plan| Lease::elect(plan, Expiry::Store)));
        // Every other candidate's lease lasts twice as long.
        let election = three(seed, |plan| Lease::elect(plan, Expiry::Observed));
        let lasts = if election.leader().unwrap() % 2 == 0 { 2 * timeout } else { timeout };
        kill("observed lease", seed, lasts + heartbeat, election);
    }
}
