//! Seeded bugs, switched on one after the other, and found in simulated worlds: a checker that misses one is at fault
//! itself.
//!
//! ```text
//! cargo run -p quorate-seeded -- test --release -p quorate-sim --test seeded -- --nocapture
//! ```
//!
//! [`TABLE`] says for each of them where it is looked for, and how many seeds may pass until one fails. With
//! none switched on as many seeds pass without a complaint.
//!
//! `QUORATE_SEEDED=<name>,<name>` looks for these alone, and tells all of what was found.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod clock;
mod stories;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quorate_core::seeded::{Bug, switch_to};
use quorate_sim::campaign::{Case, Failure, Story};
use quorate_sim::mixed;
use quorate_sim::runner::attempt;

/// Where a bug is looked for.
#[derive(Clone, Copy, Debug)]
enum Hunt {
    /// Among so many random elections.
    Elections(u64),
    /// Among so many random histories, in which clients write and read.
    Histories(u64),
    /// Among so many ensembles whose links are broken and stay so.
    Links(u64),
    /// Among so many random elections by generation.
    Generations(u64),
    /// Among so many random elections by offers through a store.
    Offers(u64),
    /// Among so many random elections by a lease through a store.
    Lease(Expiry, u64),
    /// Among so many ensembles with clients of ZooKeeper.
    Clients(u64),
    /// Among so many starts of ensembles with servers of ZooKeeper in them.
    Mixed(u64),
    /// In a story that comes to where it matters.
    Story(fn() -> stories::Told),
    /// In one of the stories that come with the simulator, played.
    Played(&'static str),
}

use Hunt::{Elections, Generations, Histories};
use quorate_core::recipe::lease::Expiry;
use quorate_core::recipe::offer::Naming;
use quorate_sim::store::{Broken, Lease, Offers, Plan, Standing};

/// Bugs with bytes and texts that hardly ever come up here; `fuzz/tests/seeded.rs` looks for them.
const ELSEWHERE: &[Bug] = &[
    Bug::LengthBelieved,
    Bug::LastAddressIntroduced,
    Bug::RunWithHole,
    Bug::WeightsUnwritten,
    Bug::BackslashKept,
    Bug::DigestKeepsOld,
    Bug::HeaderUnchecked,
    Bug::TextUnescaped,
];

/// What is looked for and where; and the seed that was the first to fail when this was written, on two
/// processors; 0 for a story.
const TABLE: &[(Bug, Hunt, u64)] = &[
    (Bug::TornBatchRefused, Histories(50), 3),
    (Bug::DroppedBelieved, Histories(500), 114),
    (Bug::TieBreakAcrossEpochs, Elections(100), 2),
    (Bug::RoundGoesBack, Elections(100), 11),
    (Bug::LeadsInAnEarlierRound, Histories(50), 14),
    (Bug::JoinsOnFollowersWord, Elections(50), 1),
    (Bug::SettledVotesComparedInFull, Hunt::Story(stories::settled_votes_differ), 0),
    (Bug::WeightlessElected, Elections(100), 29),
    (Bug::ObserversCounted, Elections(100), 2),
    (Bug::UnreachableElected, Elections(50), 0),
    (Bug::ClaimBelieved, Elections(50), 2),
    (Bug::HalfIsEnough, Elections(100), 1),
    (Bug::OthersSettleAtOnce, Elections(100), 57),
    (Bug::RoundLeftForBetterVote, Hunt::Mixed(2_000), 910),
    (Bug::VoteBeforeDisk, Histories(50), 0),
    (Bug::GrantBeforeDisk, Generations(50), 0),
    (Bug::OwnVoteBeforeDisk, Generations(50), 0),
    (Bug::LogUnchecked, Generations(200), 2),
    (Bug::SecondGrant, Generations(200), 3),
    (Bug::StaleAnswerCounted, Hunt::Story(clock::a_late_grant), 0),
    (Bug::GuessCounted, Hunt::Story(clock::a_guessed_grant), 0),
    (Bug::RejectionCounted, Hunt::Story(clock::a_rejection), 0),
    (Bug::LiveLeaderForgotten, Hunt::Story(clock::asked_while_a_leader_lives), 0),
    (Bug::SeenIsVoted, Hunt::Story(clock::seen_before_it_is_asked), 0),
    (Bug::LeadsUnheard, Hunt::Story(clock::a_leader_that_nobody_hears), 0),
    // Two voters of the next membership alone have to be ahead of a leader that is elected without them.
    (Bug::NomineeClaimed, Hunt::Story(stories::a_leader_by_generation_names_another), 0),
    (Bug::ComparedUnsigned, Hunt::Story(stories::an_observer_hears_an_election), 0),
    (Bug::WipedVoterVotes, Hunt::Story(stories::a_lost_disk_and_one_that_lags), 0),
    (Bug::PeerEpochLeftOut, Elections(20), 0),
    (Bug::EpochFromLog, Elections(50), 0),
    (Bug::EpochPromisedTwice, Elections(100), 10),
    (Bug::NewerVoterUnnoticed, Hunt::Story(stories::a_voter_has_more_than_it_said), 0),
    (Bug::OwnPromiseBeforeDisk, Histories(50), 1),
    (Bug::LeaderInfoBeforeDisk, Elections(20), 0),
    (Bug::ObserverHeldByPromise, Histories(100), 2),
    (
        Bug::PromiseForgottenByVoter,
        Hunt::Story(stories::an_observer_below_its_promise_is_told_that_it_votes),
        0,
    ),
    (Bug::AckEpochBeforeDisk, Elections(20), 0),
    (Bug::HistoryAckBeforeDisk, Elections(20), 0),
    (Bug::OwnHistoryBeforeDisk, Histories(50), 1),
    (Bug::EpochBeforeHistory, Elections(50), 5),
    (Bug::DeliveredAtCommit, Histories(50), 0),
    (Bug::DeliveredWholeLog, Histories(50), 7),
    (Bug::LeaderDeliversUnconfirmed, Elections(50), 0),
    (Bug::HistoryWithoutCommit, Elections(50), 1),
    (Bug::OrphanBeyondKept, Elections(100), 10),
    (Bug::OrphanBetweenKept, Histories(200), 0),
    (Bug::CutOneTooFew, Histories(100), 9),
    (Bug::DiffOneTooLate, Histories(50), 0),
    (Bug::ForwardedBeforeItsTurn, Histories(50), 0),
    (Bug::DiskAndWindowApart, Elections(50), 5),
    (Bug::LabelAheadOfState, Elections(50), 5),
    (Bug::LabelBelowEpochStart, Histories(50), 1),
    (Bug::SnapshotBelowLearner, Histories(50), 3),
    (Bug::PendingForgotten, Histories(50), 1),
    (Bug::AckOutlivesLink, Histories(300), 12),
    (Bug::AckOfUnsent, Hunt::Story(stories::acknowledged_before_it_is_sent), 0),
    (Bug::AckAcrossGap, Hunt::Story(stories::acknowledged_out_of_turn), 0),
    (Bug::AckBeforeDisk, Histories(20), 0),
    (Bug::OwnCopyBeforeDisk, Histories(50), 1),
    (Bug::UnsyncedUnbounded, Histories(200), 49),
    (Bug::CommitToldEarly, Histories(20), 0),
    (Bug::InformedEarly, Histories(50), 1),
    (Bug::OldPreparationProposed, Hunt::Story(stories::prepared_for_an_earlier_leadership), 0),
    (Bug::PreparationsKept, Histories(20), 0),
    (Bug::StateApartForgotten, Histories(200), 0),
    (Bug::DeliveredWhileReplaying, Histories(50), 0),
    (Bug::LostThoughLogged, Histories(500), 0),
    (Bug::LongTransactionTaken, Histories(20), 0),
    (Bug::VoidPreparationKept, Histories(20), 0),
    (Bug::CounterRunsOver, Hunt::Story(stories::the_numbers_of_an_epoch_end), 0),
    (Bug::LeadsWithoutQuorum, Elections(100), 30),
    (Bug::ReadWithoutQuorum, Histories(300), 126),
    (Bug::ReadWithoutLeader, Histories(20), 0),
    (Bug::SyncBeforeCommits, Histories(100), 1),
    (Bug::LeaseForgotten, Hunt::Story(stories::a_leader_stalls_and_its_links_break), 0),
    (Bug::LeaseReleasedByFollower, Hunt::Story(stories::a_leader_stalls_and_its_links_break), 0),
    (
        Bug::LeaseForgottenAtStart,
        Hunt::Story(stories::a_leader_stalls_and_its_followers_restart),
        0,
    ),
    (
        Bug::LongestLeaseForgotten,
        Hunt::Story(stories::a_leader_stalls_and_its_followers_restart_with_less),
        0,
    ),
    (Bug::LeaseFromAnswer, Hunt::Story(stories::promise_answered_late), 0),
    (Bug::LeaseOutlivesLink, Hunt::Story(stories::hung_up_after_a_promise), 0),
    (Bug::ArbiterMakesLease, Hunt::Story(stories::an_arbiter_lets_one_of_two_lead), 0),
    (Bug::LeaseWithoutMargin, Hunt::Story(stories::promise_on_a_slower_clock), 0),
    (Bug::LeadershipOfferedUnheard, Hunt::Links(60), 10),
    (Bug::NomineeLost, Hunt::Story(stories::a_leader_that_is_deserted_names_another), 0),
    (Bug::LeadershipOfferedEarly, Hunt::Story(stories::asked_to_transfer_while_it_proposes), 0),
    (Bug::LeadershipTakenWithLess, Hunt::Story(stories::given_a_leadership_with_less), 0),
    (Bug::NextVotersIgnored, Hunt::Story(stories::a_change_that_the_next_voters_do_not_hear_of), 0),
    (
        Bug::ChangeOnlyInMemory,
        Hunt::Story(stories::a_change_is_committed_and_all_who_know_start_anew),
        0,
    ),
    (
        Bug::TellsOfOneChange,
        Hunt::Played("of-two-changes-across-a-snapshot-the-first-binds-too"),
        0,
    ),
    (Bug::InstalledBeforeSeen, Hunt::Played("a-crash-when-a-snapshot-brings-a-change"), 0),
    (Bug::OlderMembershipTaken, Hunt::Story(stories::a_leader_that_does_not_know_of_a_change), 0),
    (Bug::CutChangeBinds, Hunt::Story(stories::a_change_is_cut_behind_a_later_epoch), 0),
    (Bug::OfferOfAnotherSession, Hunt::Offers(300), 102),
    (Bug::SessionFromAnswer, Hunt::Offers(200), 69),
    (Bug::SecondOfferAfterLostAnswer, Hunt::Offers(200), 1),
    (Bug::OvertakesMissingNeighbour, Hunt::Offers(200), 2),
    (Bug::AnyCreationDeleted, Hunt::Played("a-delete-that-arrives-late"), 0),
    (Bug::TermFromAnswer, Hunt::Lease(Expiry::Observed, 400), 88),
    (Bug::ConflictIgnored, Hunt::Lease(Expiry::Observed, 200), 1),
    (Bug::ObserverUsesOwnDuration, Hunt::Lease(Expiry::Observed, 200), 1),
    (Bug::ReleasedBeforeGuards, Hunt::Offers(200), 7),
    (Bug::VersionIgnored, Hunt::Clients(100), 0),
    (Bug::SeenIgnored, Hunt::Clients(200), 1),
    (Bug::SyncAtOnce, Hunt::Clients(100), 50),
    (Bug::SyncNotQueued, Hunt::Clients(100), 6),
    (Bug::EventsBehindReply, Hunt::Clients(100), 0),
    (Bug::ParentUntold, Hunt::Clients(100), 3),
    (Bug::CatchUpByCreation, Hunt::Clients(100), 2),
    (Bug::ClosingSessionCreates, Hunt::Clients(200), 0),
    (Bug::TouchesDropped, Hunt::Clients(100), 1),
    (Bug::TableUntracked, Hunt::Clients(100), 0),
    (Bug::ClosedRevalidated, Hunt::Clients(200), 3),
    (Bug::FailedMultiKept, Hunt::Clients(100), 0),
    (Bug::RefusedIsDone, Hunt::Clients(100), 0),
    (Bug::SnapshotPassedOver, Hunt::Clients(200), 3),
    (Bug::MoveUnnoticed, Hunt::Clients(200), 3),
    (Bug::EventToAll, Hunt::Clients(100), 0),
    (Bug::RightsForgotten, Hunt::Clients(100), 3),
    (Bug::ClockBelieved, Hunt::Clients(300), 0),
    (Bug::TimesGoBack, Hunt::Clients(500), 101),
    (Bug::RepliesNotHeldBack, Hunt::Clients(200), 0),
    (Bug::SizesUncounted, Hunt::Clients(100), 0),
    (Bug::DigestOfApplied, Hunt::Clients(100), 0),
    (Bug::WholeAtOnce, Hunt::Clients(1_000), 97),
    (Bug::PoisonForwarded, Hunt::Clients(200), 4),
    (Bug::PoisonTaken, Hunt::Clients(2_000), 465),
    (Bug::NoTtlApplied, Hunt::Clients(1_000), 105),
    (Bug::BusyClientClosed, Hunt::Clients(200), 5),
    (Bug::KeptOverSnapshot, Hunt::Clients(2_000), 1_106),
    (Bug::OneLearnerAsked, Hunt::Clients(3_000), 769),
    (Bug::KeptAtTheSame, Hunt::Clients(200), 25),
    (Bug::MovesUnmarked, Hunt::Clients(200), 3),
];

/// The first of so many seeds that fails; if another was begun before and fails, too, that one.
fn hunt(story: Story, generation: bool, seeds: u64) -> Option<(u64, Failure)> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(None::<(u64, Failure)>));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || found.lock().unwrap().is_some() {
                        return;
                    }
                    if let Err(failure) = attempt(&Case { generation, ..Case::of(story, seed) }) {
                        let mut found = found.lock().unwrap();
                        if found.as_ref().is_none_or(|(first, _)| seed < *first) {
                            *found = Some((seed, failure));
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// One election by offers, whose names tell whose they are, or do not.
fn offers(seed: u64) -> Result<Standing, Broken> {
    let naming = if seed % 2 == 0 { Naming::Guid } else { Naming::Java };
    Offers::elect(Plan::of(seed), naming).run()
}

/// The first of so many seeds that fails.
fn through_a_store(
    seeds: u64,
    run: impl Fn(u64) -> Result<Standing, Broken>,
) -> Option<(Option<u64>, String)> {
    (0..seeds).find_map(|seed| run(seed).err().map(|failure| (Some(seed), failure.to_string())))
}

/// What is found where a bug is looked for: the seed, if there is one, and what it fails with.
fn look(at: Hunt) -> Option<(Option<u64>, String)> {
    let (story, generation, seeds) = match at {
        Elections(seeds) => (Story::Elections, false, seeds),
        Histories(seeds) => (Story::Histories, false, seeds),
        Generations(seeds) => (Story::Elections, true, seeds),
        Hunt::Links(seeds) => (Story::Links, false, seeds),
        Hunt::Clients(seeds) => (Story::Clients, false, seeds),
        Hunt::Offers(seeds) => return through_a_store(seeds, offers),
        Hunt::Lease(expiry, seeds) => {
            return through_a_store(seeds, |seed| {
                // Whoever deletes a key that is waited for by the clock lets two lead.
                let plan = Plan { deletions: expiry == Expiry::Store, ..Plan::of(seed) };
                Lease::elect(plan, expiry).run()
            });
        }
        Hunt::Mixed(seeds) => {
            let failed =
                |seed| mixed::start(seed).err().map(|failure| (Some(seed), failure.to_string()));
            return (0..seeds).find_map(failed);
        }
        Hunt::Story(tell) => return tell().err().map(|failure| (None, failure)),
        Hunt::Played(story) => return stories::played(story).err().map(|failure| (None, failure)),
    };
    let found = hunt(story, generation, seeds);
    found.map(|(seed, failure)| (Some(seed), format!("{}: {failure}", failure.kind())))
}

/// One test, since the switch is the same for the whole process.
#[test]
fn every_seeded_bug_is_found_and_nothing_else() {
    let alone = std::env::var("QUORATE_SEEDED").ok();
    let (begun, mut missed) = (Instant::now(), Vec::new());
    for bug in Bug::ALL {
        let rows = TABLE.iter().filter(|(seeded, ..)| seeded == bug).count();
        let elsewhere = ELSEWHERE.contains(bug);
        assert_eq!(rows, usize::from(!elsewhere), "{bug:?} has a row");
    }
    println!("{:>6} {:>7}  {:28} found as", "seed", "seconds", "bug");
    for (bug, at, _) in TABLE {
        let name = format!("{bug:?}");
        if alone.as_ref().is_some_and(|alone| !alone.split(',').any(|one| one == name)) {
            continue;
        }
        let begun = Instant::now();
        switch_to(Some(*bug));
        let found = look(*at);
        switch_to(None);
        let took = begun.elapsed().as_secs_f64();
        let Some((seed, failure)) = found else {
            println!("{:>6} {took:>7.2}  {name:28} NOT FOUND: {at:?}", "");
            missed.push(name);
            continue;
        };
        let seed = seed.map_or_else(|| "story".to_owned(), |seed| seed.to_string());
        let shown = if alone.is_some() { usize::MAX } else { 60 };
        let failure: String = failure.chars().take(shown).collect();
        println!("{seed:>6} {took:>7.2}  {name:28} {}", failure.replace('\n', " "));
    }
    println!("{:?}", begun.elapsed());
    assert!(missed.is_empty(), "not found: {missed:?}");
    if alone.is_some() {
        return;
    }
    let most = |budget: fn(&Hunt) -> u64| TABLE.iter().map(|(_, at, _)| budget(at)).max();
    let elections = most(|at| if let Elections(seeds) = at { *seeds } else { 0 }).unwrap_or(0);
    let histories = most(|at| if let Histories(seeds) = at { *seeds } else { 0 }).unwrap_or(0);
    let generations = most(|at| if let Generations(seeds) = at { *seeds } else { 0 }).unwrap_or(0);
    assert_eq!(hunt(Story::Elections, false, elections), None, "none is switched on");
    assert_eq!(hunt(Story::Histories, false, histories), None, "none is switched on");
    assert_eq!(hunt(Story::Elections, true, generations), None, "none is switched on");
    assert_eq!(hunt(Story::Links, false, 60), None, "none is switched on");
    assert_eq!(hunt(Story::Clients, false, 300), None, "none is switched on");
    for (_, at, _) in TABLE {
        if let Hunt::Story(_)
        | Hunt::Played(_)
        | Hunt::Offers(_)
        | Hunt::Lease(..)
        | Hunt::Mixed(_) = at
        {
            assert_eq!(look(*at), None, "none is switched on");
        }
    }
    println!("{:?} with {elections} and {histories} seeds without a bug", begun.elapsed());
}
