//! The election alone, as tables and stories: what is told to one elector, and what it makes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::election::{
    Decision, Elector, ElectorConfig, ElectorEvent, ElectorOutput, Recipient,
};
use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::report::{Change, Reason};
use quorate_core::time::Instant;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use ServerState::{Following, Leading, Looking, Observing};

const MS: u64 = 1_000_000;

fn config(id: i64, voters: &[i64]) -> ElectorConfig {
    ElectorConfig {
        id: ServerId(id),
        observer: !voters.contains(&id),
        quorum: Quorum::majority(voters.iter().map(|id| ServerId(*id))),
        notification_min: Duration::from_millis(200),
        notification_max: Duration::from_secs(60),
        finalize_wait: Duration::from_millis(200),
        finish_when_settled: true,
        may_change: false,
    }
}

fn vote(peer_epoch: i64, zxid: i64, leader: i64) -> Vote {
    Vote { peer_epoch: Epoch(peer_epoch), zxid: Zxid(zxid), leader: ServerId(leader) }
}

fn standing(state: ServerState, vote: Vote, round: i64) -> Standing {
    Standing { state, vote, round: Round(round) }
}

fn heard(from: i64, state: ServerState, vote: Vote, round: i64) -> ElectorEvent {
    let standing = standing(state, vote, round);
    ElectorEvent::Heard { from: ServerId(from), standing, versioned: true, at_once: true }
}

/// One elector and a clock.
struct Rig {
    elector: Elector,
    at: u64,
}

impl Rig {
    fn new(config: ElectorConfig) -> Self {
        Self { elector: Elector::new(config), at: 0 }
    }

    /// Server `id` of `voters`, looking with `own`.
    fn looking(id: i64, voters: &[i64], own: Vote) -> Self {
        let mut rig = Self::new(config(id, voters));
        rig.tell(ElectorEvent::Look(own));
        rig
    }

    fn tell(&mut self, event: ElectorEvent) -> Vec<ElectorOutput> {
        self.elector.step(Instant(self.at), event)
    }

    /// A dial made now fails at once.
    fn unreachable(&mut self, peer: i64) -> Vec<ElectorOutput> {
        let dialled = Instant(self.at);
        self.tell(ElectorEvent::Unreachable { peer: ServerId(peer), dialled })
    }

    fn wait(&mut self, ms: u64) -> Vec<ElectorOutput> {
        self.at += ms * MS;
        self.tell(ElectorEvent::Tick)
    }

    fn standing(&self) -> Standing {
        self.elector.standing()
    }
}

fn told(outputs: &[ElectorOutput]) -> Vec<(Recipient, Standing)> {
    let notify = |output: &ElectorOutput| match output {
        ElectorOutput::Notify { to, standing } => Some((*to, *standing)),
        ElectorOutput::Redial | ElectorOutput::Changed(..) | ElectorOutput::Decided(_) => None,
    };
    outputs.iter().filter_map(notify).collect()
}

fn decision(outputs: &[ElectorOutput]) -> Option<&Decision> {
    outputs.iter().find_map(|output| match output {
        ElectorOutput::Decided(decision) => Some(decision),
        ElectorOutput::Redial | ElectorOutput::Changed(..) | ElectorOutput::Notify { .. } => None,
    })
}

/// Several electors whose messages arrive in an order that `pick` chooses; newest only, per pair.
struct Electors {
    electors: BTreeMap<i64, Elector>,
    mail: Vec<(i64, i64, Standing)>,
    at: u64,
}

impl Electors {
    fn new(voters: &[i64], here: &[(i64, Vote)]) -> Self {
        let new = |(id, _): &(i64, Vote)| (*id, Elector::new(config(*id, voters)));
        let electors = here.iter().map(new).collect();
        Self { electors, mail: Vec::new(), at: 0 }
    }

    fn tell(&mut self, id: i64, event: ElectorEvent) {
        let peers: Vec<i64> = self.electors.keys().copied().filter(|peer| *peer != id).collect();
        let Some(elector) = self.electors.get_mut(&id) else { return };
        for (to, standing) in told(&elector.step(Instant(self.at), event)) {
            for peer in &peers {
                if to == Recipient::Voters || to == Recipient::One(ServerId(*peer)) {
                    self.mail.retain(|(from, to, _)| (*from, *to) != (id, *peer));
                    self.mail.push((id, *peer, standing));
                }
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        let (from, to, standing) = self.mail.remove(index);
        let from = ServerId(from);
        self.tell(to, ElectorEvent::Heard { from, standing, versioned: true, at_once: true });
    }

    /// Delivers in the order that `seed` picks, and lets time pass when nothing is under way.
    fn run(&mut self, seed: u64) {
        let mut rng = quorate_core::rng::Rng::new(seed);
        for _ in 0..10_000 {
            if !self.mail.is_empty() {
                let pick = usize::try_from(rng.below(self.mail.len() as u64)).unwrap();
                self.deliver(pick);
            } else if self.electors.values().any(Elector::is_looking) && self.at < 600_000 * MS {
                let next = self.electors.iter().filter_map(|(id, e)| Some((e.deadline()?.0, *id)));
                let (at, id) = next.min().unwrap();
                self.at = at.0;
                self.tell(id, ElectorEvent::Tick);
            } else {
                return;
            }
        }
        panic!("seed {seed}: no end");
    }

    fn states(&self) -> Vec<(i64, ServerState, i64)> {
        let state = |(id, e): (&i64, &Elector)| {
            let standing = e.standing();
            (*id, standing.state, standing.vote.leader.0)
        };
        self.electors.iter().map(state).collect()
    }
}

/// Elects among `here` of `voters`, in many orders; everybody must settle on `leader`.
fn all_elect(voters: &[i64], here: &[(i64, Vote)], leader: i64) {
    for seed in 0..if cfg!(miri) { 2 } else { 500 } {
        let mut electors = Electors::new(voters, here);
        for (id, own) in here {
            electors.tell(*id, ElectorEvent::Look(*own));
        }
        electors.run(seed);
        for (id, state, of) in electors.states() {
            let expected = if id == leader { Leading } else { Following };
            assert_eq!((state, of), (expected, leader), "seed {seed}, server {id}");
        }
    }
}

#[test]
fn one_of_three_waits_200_400_800_ms_up_to_a_minute_and_never_leads() {
    let mut rig = Rig::looking(1, &[1, 2, 3], vote(0, 0, 1));
    let mut expected = 200;
    for _ in 0..20 {
        let (at, _) = rig.elector.deadline().unwrap();
        assert_eq!((at.0 - rig.at) / MS, expected);
        let outputs = rig.wait(expected);
        assert_eq!(told(&outputs), [(Recipient::Voters, rig.standing())]);
        assert!(outputs.contains(&ElectorOutput::Redial));
        expected = (expected * 2).min(60_000);
    }
    assert_eq!(rig.standing(), standing(Looking, vote(0, 0, 1), 1));
}

/// Both look when they meet again, and the other leads before it is told anything more. It answers who tells
/// it something, and only then: so that must not take the minute that waits have grown to.
#[test]
fn whoever_was_alone_for_long_tells_soon_again_once_somebody_is_reachable() {
    let mut rig = Rig::looking(1, &[1, 2, 3, 4, 5], vote(0, 0, 1));
    for expected in [200, 400, 800, 1_600, 3_200] {
        rig.wait(expected);
    }
    rig.tell(ElectorEvent::Reachable(ServerId(3)));
    rig.tell(heard(3, Looking, vote(0, 0, 3), 1));
    let outputs = rig.wait(200);
    assert_eq!(told(&outputs), [(Recipient::Voters, rig.standing())]);
    assert_eq!((rig.elector.deadline().unwrap().0.0 - rig.at) / MS, 400, "less often again");
}

/// It was counted, and goes with another leader in the same round while a better vote is waited for.
#[test]
fn a_quorum_that_falls_apart_during_the_wait_elects_nobody() {
    let mut rig = Rig::looking(3, &[1, 2, 3], vote(0, 0, 3));
    rig.tell(heard(1, Looking, vote(0, 0, 3), 1));
    rig.tell(heard(1, Following, vote(1, 0, 2), 1));
    assert_eq!(decision(&rig.wait(200)), None);
    assert!(rig.elector.is_looking());
    rig.tell(heard(1, Looking, vote(0, 0, 3), 1));
    assert_eq!(decision(&rig.wait(200)).unwrap().standing.state, Leading);
}

#[test]
fn two_of_three_elect_the_larger_id_in_round_1() {
    let (mut one, mut two) =
        (Rig::looking(1, &[1, 2, 3], vote(0, 0, 1)), Rig::looking(2, &[1, 2, 3], vote(0, 0, 2)));
    let answer = two.tell(heard(1, Looking, vote(0, 0, 1), 1));
    assert!(told(&answer).is_empty(), "2 keeps its vote and says nothing");
    let changed = one.tell(heard(2, Looking, vote(0, 0, 2), 1));
    assert_eq!(
        told(&changed),
        [(Recipient::Voters, standing(Looking, vote(0, 0, 2), 1))],
        "1 changes its vote and tells"
    );
    two.tell(heard(1, Looking, vote(0, 0, 2), 1));
    assert!(one.elector.is_looking() && two.elector.is_looking(), "3 may still have a better one");
    assert_eq!(decision(&one.wait(200)).unwrap().standing, standing(Following, vote(0, 0, 2), 1));
    assert_eq!(decision(&two.wait(200)).unwrap().standing, standing(Leading, vote(0, 0, 2), 1));
}

#[test]
fn the_third_comes_late_and_joins_the_smaller_leader_in_both_orders_of_answers() {
    let from_1 = heard(1, Following, vote(0, 0, 2), 1);
    let from_2 = heard(2, Leading, vote(0, 0, 2), 1);
    for answers in [[from_1, from_2], [from_2, from_1]] {
        let mut three = Rig::looking(3, &[1, 2, 3], vote(0, 0, 3));
        assert!(decision(&three.tell(answers[0])).is_none());
        let outputs = three.tell(answers[1]);
        assert_eq!(decision(&outputs).unwrap().standing, standing(Following, vote(0, 0, 2), 1));
    }
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.tell(heard(1, Looking, vote(0, 0, 2), 1));
    two.wait(200);
    let outputs = two.tell(heard(3, Looking, vote(0, 0, 3), 1));
    assert_eq!(
        told(&outputs),
        [(Recipient::One(ServerId(3)), standing(Leading, vote(0, 0, 2), 1))],
        "the leader answers and is not disturbed"
    );
}

#[test]
fn three_empty_servers_that_start_together_elect_the_largest_id_in_every_order() {
    let here = [(1, vote(0, 0, 1)), (2, vote(0, 0, 2)), (3, vote(0, 0, 3))];
    all_elect(&[1, 2, 3], &here, 3);
}

#[test]
fn the_newest_history_wins_whoever_has_it() {
    // The leader, 2, died; server 1 has one transaction more than 3.
    all_elect(&[1, 2, 3], &[(1, vote(1, 123, 1)), (3, vote(1, 122, 3))], 1);
    // Of five, 1 and 2 died.
    let three_of_five = [(3, vote(1, 9, 3)), (4, vote(1, 8, 4)), (5, vote(1, 8, 5))];
    all_elect(&[1, 2, 3, 4, 5], &three_of_five, 3);
    // The leader, 3 of 3, died; 2 leads with two votes, since the ensemble is three.
    all_elect(&[1, 2, 3], &[(1, vote(1, 98, 1)), (2, vote(1, 100, 2))], 2);
    // A later epoch beats any zxid and id.
    all_elect(&[1, 2, 3], &[(1, vote(8, 0, 1)), (3, vote(6, 99, 3))], 1);
}

#[test]
fn two_of_five_elect_nobody_however_long_they_try() {
    let mut electors =
        Electors::new(&[1, 2, 3, 4, 5], &[(1, vote(1, 98, 1)), (2, vote(1, 100, 2))]);
    for (id, own) in [(1, vote(1, 98, 1)), (2, vote(1, 100, 2))] {
        electors.tell(id, ElectorEvent::Look(own));
    }
    electors.run(5);
    assert_eq!(electors.states(), [(1, Looking, 2), (2, Looking, 2)]);
}

#[test]
fn a_healed_minority_follows_the_majoritys_leader_whatever_the_rounds() {
    for (ours, theirs) in [(2, 2), (9, 2), (2, 9)] {
        let mut one = Rig::looking(1, &[1, 2, 3, 4, 5], vote(1, 7, 1));
        for _ in 1..ours {
            // Each later round of the other minority server takes us along.
            let round = one.standing().round.0 + 1;
            one.tell(heard(2, Looking, vote(1, 7, 2), round));
        }
        assert_eq!(one.standing().round, Round(ours));
        let settled = vote(2, 7, 5);
        assert!(decision(&one.tell(heard(3, Following, settled, theirs))).is_none());
        assert!(decision(&one.tell(heard(4, Following, settled, theirs))).is_none());
        let outputs = one.tell(heard(5, Leading, settled, theirs));
        assert_eq!(
            decision(&outputs).unwrap().standing,
            standing(Following, settled, theirs),
            "its round goes to theirs, down too"
        );
    }
}

#[test]
fn rounds_that_differ_are_caught_up_with_and_old_votes_thrown_away() {
    // Of five, 3 and 5 are gone. 2 and 4 are in round 3; 1 was cut off in round 2, or restarted.
    for round_of_1 in [1, 2] {
        let mut one = Rig::looking(1, &[1, 2, 3, 4, 5], vote(2, 50, 1));
        for round in 2..=round_of_1 {
            one.tell(heard(5, Looking, vote(2, 50, 5), round));
        }
        let mut four = Rig::looking(4, &[1, 2, 3, 4, 5], vote(2, 50, 4));
        four.tell(heard(2, Looking, vote(2, 50, 2), 3));
        let answer = four.tell(heard(1, Looking, one.standing().vote, round_of_1));
        assert_eq!(
            told(&answer),
            [(Recipient::One(ServerId(1)), standing(Looking, vote(2, 50, 4), 3))],
            "what comes of an older round is answered, not counted"
        );
        let outputs = one.tell(heard(4, Looking, vote(2, 50, 4), 3));
        assert_eq!(told(&outputs), [(Recipient::Voters, standing(Looking, vote(2, 50, 4), 3))]);
        let forgot = Change::Round { from: Round(round_of_1), to: Round(3) };
        assert!(outputs.iter().any(|o| matches!(o, ElectorOutput::Changed(c, _) if *c == forgot)));
        four.tell(heard(1, Looking, vote(2, 50, 4), 3));
        four.tell(heard(2, Looking, vote(2, 50, 4), 3));
        let outputs = four.wait(200);
        let decision = decision(&outputs).unwrap();
        assert_eq!(decision.standing, standing(Leading, vote(2, 50, 4), 3));
        let support: Vec<_> = four.elector.support().members(four.elector.quorum()).collect();
        assert_eq!(support, [ServerId(1), ServerId(2), ServerId(4)]);
    }
}

#[test]
fn a_later_round_is_compared_with_our_first_vote_not_with_the_last() {
    let mut one = Rig::looking(1, &[1, 2, 3], vote(1, 10, 1));
    one.tell(heard(3, Looking, vote(1, 20, 3), 1));
    assert_eq!(one.standing().vote, vote(1, 20, 3));
    one.tell(heard(2, Looking, vote(1, 5, 2), 2));
    assert_eq!(one.standing(), standing(Looking, vote(1, 10, 1), 2));
}

#[test]
fn the_four_cases_of_one_round() {
    for (other, adopts) in [
        (vote(7, 51, 1), true),
        (vote(7, 49, 9), false),
        (vote(7, 50, 4), true),
        (vote(7, 50, 2), false),
        (vote(8, 0, 1), true),
        (vote(6, 99, 9), false),
    ] {
        let mut rig = Rig::looking(3, &[1, 2, 3, 4, 9], vote(7, 50, 3));
        let outputs = rig.tell(heard(9, Looking, other, 1));
        assert_eq!(rig.standing().vote == other, adopts, "{other}");
        assert_eq!(!told(&outputs).is_empty(), adopts, "only a changed vote is told: {other}");
    }
}

#[test]
fn everybody_heard_ends_the_round_at_once() {
    let mut three = Rig::looking(3, &[1, 2, 3], vote(0, 0, 3));
    assert!(decision(&three.tell(heard(1, Looking, vote(0, 0, 3), 1))).is_none());
    let outputs = three.tell(heard(2, Looking, vote(0, 0, 3), 1));
    assert_eq!(decision(&outputs).unwrap().took, Duration::ZERO);
}

/// Its disk was emptied, or a snapshot took the place of its log, and then its round came again.
#[test]
fn nobody_is_elected_for_a_history_that_is_gone() {
    for round in [1, 4] {
        let mut one = Rig::looking(1, &[1, 2, 3], vote(2, 7, 1));
        let outputs = one.tell(heard(2, Looking, vote(2, 9, 1), round));
        let own = standing(Looking, vote(2, 7, 1), round + 1);
        assert_eq!((one.standing(), told(&outputs)), (own, vec![(Recipient::Voters, own)]));
        assert!(decision(&outputs).is_none());
        // What is said again is of an earlier round; and in the new one it is elected as it is.
        one.tell(heard(2, Looking, vote(2, 9, 1), round));
        assert_eq!(one.standing(), own);
        one.tell(heard(2, Looking, vote(2, 7, 1), round + 1));
        let outputs = one.tell(heard(3, Looking, vote(2, 7, 1), round + 1));
        assert_eq!(decision(&outputs).unwrap().standing.vote, vote(2, 7, 1));
    }
    // A vote for less than it has is of an earlier life, too, and is outvoted like any other.
    let mut one = Rig::looking(1, &[1, 2, 3], vote(2, 7, 1));
    one.tell(heard(2, Looking, vote(2, 5, 1), 1));
    assert_eq!(one.standing(), standing(Looking, vote(2, 7, 1), 1));
}

#[test]
fn the_unreachable_are_not_waited_for_but_the_silent_are() {
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.tell(heard(1, Looking, vote(0, 0, 2), 1));
    assert!(two.elector.is_looking());
    let outputs = two.unreachable(3);
    assert_eq!(decision(&outputs).unwrap().standing.state, Leading);
    assert!(outputs.iter().any(|output| matches!(
        output,
        ElectorOutput::Changed(Change::State { .. }, Reason::Settled { unreachable, .. })
            if unreachable == &[ServerId(3)]
    )));
    // A quorum is needed all the same.
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    for gone in [1, 3] {
        assert!(decision(&two.unreachable(gone)).is_none());
    }
    // Whoever votes like us and then cannot be reached is not another one who need not be waited for.
    let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 9, 5));
    for from in [3, 4] {
        five.tell(heard(from, Looking, vote(1, 9, 5), 1));
    }
    for gone in [2, 4] {
        assert!(decision(&five.unreachable(gone)).is_none());
    }
    assert!(decision(&five.unreachable(1)).is_some());
    // It came back: the wait is on again.
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.unreachable(3);
    two.tell(ElectorEvent::Reachable(ServerId(3)));
    assert!(decision(&two.tell(heard(1, Looking, vote(0, 0, 2), 1))).is_none());
    // What was known of an earlier round does not count in this one.
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.unreachable(3);
    let outputs = two.tell(heard(1, Looking, vote(0, 0, 2), 2));
    assert!(outputs.contains(&ElectorOutput::Redial), "asks anew");
    assert!(decision(&outputs).is_none());
}

/// Server 5 of five hears 1 alone, which hears all. It is not elected, and counts nobody's votes.
#[test]
fn whoever_hears_few_does_not_insist_on_itself_and_takes_a_leaders_word() {
    // 1 has tried to follow 5, and begins another round with its own vote.
    let at_the_edge = |after: u64| {
        let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 0, 5));
        five.tell(heard(1, Looking, vote(1, 0, 5), 1));
        five.wait(after);
        let outputs = five.tell(heard(1, Looking, vote(1, 0, 1), 2));
        (five, outputs)
    };
    let (mut five, outputs) = at_the_edge(500);
    assert_eq!(five.standing(), standing(Looking, vote(1, 0, 1), 2));
    let few = |output: &ElectorOutput| {
        matches!(output, ElectorOutput::Changed(_, Reason::HearsFew { from: ServerId(1) }))
    };
    assert!(outputs.iter().any(few), "{outputs:?}");
    // The round is young again: 2 and 3 may still come within reach.
    assert!(decision(&five.tell(heard(1, Leading, vote(1, 0, 1), 2))).is_none());
    five.wait(500);
    let outputs = five.tell(heard(1, Leading, vote(1, 0, 1), 2));
    assert_eq!(decision(&outputs).unwrap().standing, standing(Following, vote(1, 0, 1), 2));
    // Not before it could have heard others, and not if it has.
    let (five, _) = at_the_edge(499);
    assert_eq!(five.standing().vote, vote(1, 0, 5));
    let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 0, 5));
    five.tell(heard(1, Looking, vote(1, 0, 5), 1));
    five.tell(heard(2, Following, vote(0, 0, 3), 7));
    five.wait(500);
    five.tell(heard(1, Looking, vote(1, 0, 1), 2));
    assert_eq!(five.standing().vote, vote(1, 0, 5));
    // A follower's word is not a leader's.
    let (mut five, _) = at_the_edge(500);
    five.wait(500);
    assert!(decision(&five.tell(heard(1, Following, vote(1, 0, 2), 2))).is_none());
}

/// Server 5 of five was alone, and has what only 1 and 2 have, who are down; then it hears 4, in a later round, to whom
/// it has said nothing. ZooKeeper elects 5.
#[test]
fn whoever_was_alone_says_what_it_has_before_it_gives_its_vote_away() {
    let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 9, 5));
    five.wait(600);
    five.tell(heard(4, Looking, vote(1, 7, 4), 2));
    assert_eq!(five.standing(), standing(Looking, vote(1, 9, 5), 2), "4 has to hear of it");
}

/// The same, and 4 has led until now; 1 to 3 follow 3 since, and are heard a moment later.
#[test]
fn whoever_was_alone_takes_nobodys_word_before_the_others_can_have_spoken() {
    let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 9, 5));
    five.wait(600);
    for peer in [1, 2, 3, 4] {
        five.tell(ElectorEvent::Reachable(ServerId(peer)));
    }
    let outputs = five.tell(heard(4, Leading, vote(1, 9, 4), 1));
    assert!(decision(&outputs).is_none(), "1, 2 and 3 are there, too");
    five.tell(heard(3, Leading, vote(2, 9, 3), 2));
    five.tell(heard(2, Following, vote(2, 9, 3), 2));
    let outputs = five.tell(heard(1, Following, vote(2, 9, 3), 2));
    assert_eq!(decision(&outputs).unwrap().standing.vote.leader, ServerId(3));
}

/// 4 and 5 said that they follow 3, in an earlier round. 4 looks again since, and has more than 3: what 2 says now does
/// not make 3 the leader with 4's word of before.
#[test]
fn whoever_looks_again_follows_nobody_any_more() {
    let mut three = Rig::looking(3, &[1, 2, 3, 4, 5], vote(1, 9, 3));
    three.tell(heard(4, Following, vote(1, 9, 3), 0));
    three.tell(heard(5, Following, vote(1, 9, 3), 0));
    three.tell(heard(4, Looking, vote(1, 10, 4), 1));
    let outputs = three.tell(heard(2, Following, vote(1, 9, 3), 1));
    assert!(decision(&outputs).is_none(), "{outputs:?}");
    assert_eq!(three.standing(), standing(Looking, vote(1, 10, 4), 1));
}

/// Whoever joins an ensemble of an earlier round goes back to it. Looking again in a round in which it has voted
/// already it would say what the others have on file, and be answered by nobody for up to a minute.
#[test]
fn nobody_looks_twice_in_one_round() {
    let mut three = Rig::looking(3, &[1, 2, 3, 4, 5], vote(1, 9, 3));
    three.tell(heard(1, Looking, vote(1, 9, 1), 5));
    assert_eq!(three.standing(), standing(Looking, vote(1, 9, 3), 5), "1 has heard of this");
    three.tell(heard(4, Following, vote(1, 9, 2), 4));
    three.tell(heard(5, Following, vote(1, 9, 2), 4));
    let outputs = three.tell(heard(2, Leading, vote(1, 9, 2), 4));
    assert_eq!(decision(&outputs).unwrap().standing.round, Round(4));
    three.elector.retire();
    three.tell(ElectorEvent::Look(vote(1, 9, 3)));
    assert_eq!(three.standing().round, Round(6));
}

#[test]
fn a_dial_tells_of_when_it_was_made() {
    for (made, heard_after, settled) in
        [(0, 0, true), (0, 1_000, true), (0, 1_001, false), (500, 1_500, true), (500, 1_501, false)]
    {
        let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
        two.wait(made);
        two.unreachable(3);
        two.wait(heard_after - made);
        let outputs = two.tell(heard(1, Looking, vote(0, 0, 2), 1));
        assert_eq!(decision(&outputs).is_some(), settled, "{made} {heard_after}");
    }
    // One that hung tells nothing of now: what it was made for has not answered, which may have changed.
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.tell(heard(1, Looking, vote(0, 0, 2), 1));
    let dialled = Instant(two.at);
    two.at += 5_000 * MS;
    let late = ElectorEvent::Unreachable { peer: ServerId(3), dialled };
    assert!(decision(&two.tell(late)).is_none());
}

#[test]
fn without_finish_when_settled_the_wait_is_always_kept() {
    let mut config = config(3, &[1, 2, 3]);
    config.finish_when_settled = false;
    let mut three = Rig::new(config);
    three.tell(ElectorEvent::Look(vote(0, 0, 3)));
    for from in [1, 2] {
        assert!(decision(&three.tell(heard(from, Looking, vote(0, 0, 3), 1))).is_none());
    }
    assert!(decision(&three.wait(199)).is_none());
    assert!(decision(&three.wait(1)).is_some());
}

#[test]
fn a_better_vote_during_the_wait_goes_on_and_one_that_is_not_better_is_filed() {
    let mut two = Rig::looking(2, &[1, 2, 3, 4, 5], vote(1, 9, 2));
    two.tell(heard(1, Looking, vote(1, 9, 2), 1));
    two.tell(heard(3, Looking, vote(1, 9, 2), 1));
    two.wait(100);
    two.tell(heard(4, Looking, vote(1, 7, 4), 1));
    two.wait(50);
    two.tell(heard(5, Looking, vote(1, 10, 5), 1));
    assert_eq!(two.standing().vote, vote(1, 10, 5));
    assert!(decision(&two.wait(60)).is_none(), "the old wait is over, and so is its quorum");
    for from in [1, 3] {
        two.tell(heard(from, Looking, vote(1, 10, 5), 1));
    }
    let outputs = two.tell(heard(4, Looking, vote(1, 10, 5), 1));
    assert_eq!(decision(&outputs).unwrap().standing.vote.leader, ServerId(5));
}

#[test]
fn a_supporter_that_changes_its_mind_during_the_wait_takes_its_vote_along() {
    let mut two = Rig::looking(2, &[1, 2, 3], vote(1, 9, 2));
    two.tell(heard(1, Looking, vote(1, 9, 2), 1));
    two.tell(heard(1, Looking, vote(1, 9, 1), 1));
    assert!(decision(&two.wait(300)).is_none());
    assert!(two.elector.is_looking());
    // Nor does it count among those who all say the same.
    let mut five = Rig::looking(5, &[1, 2, 3, 4, 5], vote(1, 9, 5));
    for (from, leader) in [(3, 5), (4, 5), (4, 4), (2, 5)] {
        assert!(decision(&five.tell(heard(from, Looking, vote(1, 9, leader), 1))).is_none());
    }
    assert!(decision(&five.wait(200)).is_some(), "the wait is over");
}

#[test]
fn repeated_and_reordered_notifications_change_nothing() {
    let mut two = Rig::looking(2, &[1, 2, 3, 4, 5], vote(1, 9, 2));
    two.tell(heard(1, Looking, vote(1, 9, 2), 1));
    let before = two.elector.clone();
    for _ in 0..3 {
        assert_eq!(two.tell(heard(1, Looking, vote(1, 9, 2), 1)), []);
        assert_eq!(two.elector, before);
    }
}

#[test]
fn unknown_histories_non_members_and_observers_are_not_counted() {
    let mut two = Rig::looking(2, &[1, 2, 3], vote(1, 9, 2));
    two.tell(heard(1, Looking, vote(1, -1, 1), 1));
    two.tell(heard(1, Looking, vote(5, 50, 8), 1));
    two.tell(heard(3, Observing, vote(5, 50, 3), 1));
    assert_eq!(two.standing(), standing(Looking, vote(1, 9, 2), 1));
    let before = two.elector.clone();
    let outputs = two.tell(heard(8, Looking, vote(9, 90, 8), 7));
    assert_eq!(told(&outputs), [(Recipient::One(ServerId(8)), two.standing())], "but answered");
    assert_eq!(two.elector, before);
    let mut unknown = Rig::looking(2, &[1, 2, 3], vote(1, -1, 2));
    unknown.tell(heard(1, Looking, vote(5, 50, 1), 1));
    assert_eq!(unknown.standing().vote, vote(1, -1, 2));
}

#[test]
fn a_settled_server_answers_who_looks_and_ignores_the_settled() {
    let mut three = Rig::looking(3, &[1, 2, 3], vote(0, 0, 3));
    three.tell(heard(1, Looking, vote(0, 0, 3), 1));
    three.tell(heard(2, Looking, vote(0, 0, 3), 1));
    three.elector.establish(Epoch(1));
    let standing = standing(Leading, vote(1, 0, 3), 1);
    assert_eq!(
        told(&three.tell(heard(1, Looking, vote(1, 0, 1), 7))),
        [(Recipient::One(ServerId(1)), standing)]
    );
    assert_eq!(three.tell(heard(1, Following, vote(1, 0, 3), 1)), []);
    assert_eq!(
        told(&three.tell(heard(77, Following, vote(1, 0, 3), 1))),
        [(Recipient::One(ServerId(77)), standing)],
        "a server without a vote is answered whatever it claims"
    );
    three.elector.retire();
    assert_eq!(three.tell(heard(1, Looking, vote(1, 0, 1), 7)), []);
    let none = Standing { state: Looking, vote: Vote::ABSTENTION, round: Round(1) };
    assert_eq!(
        told(&three.tell(heard(77, Looking, vote(1, 0, 3), 1))),
        [(Recipient::One(ServerId(77)), none)],
        "and when they look, with nothing that could be counted"
    );
    assert_eq!(three.tell(heard(1, Looking, vote(1, 0, 1), 7)), []);
}

/// The first that notices the end of a leader says its vote once; the others, still settled, must not
/// wait for the repetition after 200 ms.
#[test]
fn what_the_first_to_look_said_is_known_to_the_last() {
    let mut two = Rig::looking(2, &[1, 2, 3], vote(0, 0, 2));
    two.tell(heard(1, Following, vote(0, 0, 3), 1));
    two.tell(heard(3, Leading, vote(0, 0, 3), 1));
    assert_eq!(two.standing().state, Following);
    two.tell(heard(1, Looking, vote(1, 0, 1), 2));
    two.tell(ElectorEvent::Look(vote(1, 0, 2)));
    let outputs = two.unreachable(3);
    assert!(decision(&outputs).is_none(), "1 voted for itself, it has not heard us yet");
    let outputs = two.tell(heard(1, Looking, vote(1, 0, 2), 2));
    assert_eq!(decision(&outputs).unwrap().took, Duration::ZERO);
    // And the other way round: who voted for us already is counted at once.
    let mut one = Rig::looking(1, &[1, 2, 3], vote(0, 0, 1));
    one.tell(heard(2, Following, vote(0, 0, 3), 1));
    one.tell(heard(3, Leading, vote(0, 0, 3), 1));
    one.tell(heard(2, Looking, vote(1, 0, 2), 2));
    one.tell(ElectorEvent::Look(vote(1, 0, 1)));
    assert_eq!(one.standing().vote, vote(1, 0, 2));
    // What was said before that server settled again is not.
    let mut one = Rig::looking(1, &[1, 2, 3], vote(0, 0, 1));
    one.tell(heard(2, Following, vote(0, 0, 3), 1));
    one.tell(heard(3, Leading, vote(0, 0, 3), 1));
    one.tell(heard(2, Looking, vote(1, 0, 2), 2));
    one.tell(heard(2, Following, vote(1, 0, 3), 2));
    one.tell(ElectorEvent::Look(vote(1, 0, 1)));
    assert_eq!(one.standing().vote, vote(1, 0, 1));
}

#[test]
fn an_observer_follows_and_never_proposes_itself() {
    let mut nine = Rig::looking(9, &[1, 2, 3], Vote::ABSTENTION);
    assert_eq!(nine.standing().vote, Vote::ABSTENTION);
    nine.tell(heard(1, Following, vote(1, 0, 2), 4));
    let outputs = nine.tell(heard(2, Leading, vote(1, 0, 2), 4));
    assert_eq!(decision(&outputs).unwrap().standing, standing(Observing, vote(1, 0, 2), 4));
}

/// However new its history is: nobody could elect it.
#[test]
fn who_proposes_nobody_takes_the_vote_of_whoever_proposes_somebody() {
    let mut four = Rig::new(config(4, &[1, 2, 3]));
    let own = Vote { leader: ServerId::NONE, ..vote(5, 9, 0) };
    let why = |outputs: &[ElectorOutput]| match &outputs[0] {
        ElectorOutput::Changed(Change::Round { .. }, reason) => Some(reason.clone()),
        ElectorOutput::Changed(..)
        | ElectorOutput::Redial
        | ElectorOutput::Notify { .. }
        | ElectorOutput::Decided(_) => None,
    };
    assert_eq!(four.tell(heard(9, Looking, vote(1, 1, 1), 1)), [], "it has nothing to say yet");
    assert_eq!(why(&four.tell(ElectorEvent::Look(own))), Some(Reason::OwnVote));
    assert_eq!(four.tell(ElectorEvent::Look(own)), [], "it looks already");
    four.tell(heard(1, Looking, vote(1, 1, 1), 1));
    assert_eq!(four.standing().vote, vote(1, 1, 1));
    let mut five = Rig::new(config(5, &[1, 2, 3]));
    assert_eq!(why(&five.tell(ElectorEvent::Look(Vote::ABSTENTION))), Some(Reason::NoVote));
}

/// Whoever has taken a vote holds it against a worse one; it does not come to propose itself.
#[test]
fn who_proposes_nobody_keeps_the_vote_that_it_has_taken() {
    let mut two = Rig::looking(2, &[1, 2, 3], Vote { leader: ServerId::NONE, ..vote(1, 5, 0) });
    two.tell(heard(3, Looking, vote(1, 9, 3), 1));
    two.tell(heard(1, Looking, vote(1, 1, 1), 1));
    assert_eq!(two.standing().vote, vote(1, 9, 3));
}

/// Rounds in which servers spoke before must not come again; only who joins others takes theirs, whatever it is.
#[test]
fn who_is_appointed_goes_back_to_no_round() {
    for (leader, given, expected) in
        [(3, 1, 4), (3, 4, 4), (3, 9, 9), (2, 1, 5), (2, 4, 5), (2, 5, 5), (2, 9, 9)]
    {
        let mut one = Rig::looking(1, &[1, 2, 3], vote(1, 5, 1));
        one.tell(heard(2, Following, vote(1, 5, 3), 4));
        one.tell(heard(3, Leading, vote(1, 5, 3), 4));
        assert_eq!(one.standing(), standing(Following, vote(1, 5, 3), 4));
        let mut outputs = Vec::new();
        let (next, round) = (vote(1, 5, leader), Round(given));
        one.elector.appoint(Instant(one.at), next, round, Reason::Asked, &mut outputs);
        assert_eq!(one.standing(), standing(Following, next, expected), "{leader} in {given}");
    }
}

/// While the membership changes it may be needed by those who know only of this one.
#[test]
fn who_proposes_nobody_while_the_membership_changes_proposes_itself_once_others_look() {
    let quorum = Quorum::hierarchical([vec![(ServerId(1), 1), (ServerId(2), 1), (ServerId(3), 0)]]);
    let mut two = Rig::new(ElectorConfig { quorum, may_change: true, ..config(2, &[1, 2, 3]) });
    two.tell(ElectorEvent::Look(Vote { leader: ServerId::NONE, ..vote(1, 5, 0) }));
    two.tell(heard(3, Looking, vote(1, 9, 3), 1));
    assert_eq!(two.standing().vote, vote(1, 5, 2), "3 cannot be elected");
}

#[test]
fn a_server_of_weight_0_is_never_elected_and_follows() {
    let groups = || {
        Quorum::hierarchical([
            vec![(ServerId(1), 1), (ServerId(2), 1), (ServerId(3), 1)],
            vec![(ServerId(4), 1), (ServerId(5), 1), (ServerId(6), 0)],
        ])
    };
    let mut five = Rig::new(ElectorConfig { quorum: groups(), ..config(5, &[5]) });
    five.tell(ElectorEvent::Look(vote(1, 9, 5)));
    five.tell(heard(6, Looking, vote(9, 99, 6), 1));
    assert_eq!(five.standing().vote, vote(1, 9, 5), "whatever its history");
    five.tell(heard(4, Looking, vote(1, 1, 4), 1));
    assert_eq!(five.standing().vote, vote(1, 9, 5), "that may be elected, and is older");
    let mut six = Rig::new(ElectorConfig { quorum: groups(), ..config(6, &[6]) });
    six.tell(ElectorEvent::Look(vote(9, 99, 6)));
    let outputs = six.tell(heard(5, Looking, vote(1, 9, 5), 1));
    assert_eq!(six.standing().vote, vote(1, 9, 5));
    assert!(outputs.iter().any(|output| matches!(
        output,
        ElectorOutput::Changed(_, Reason::MayBeElected { from: ServerId(5) })
    )));
}

/// ZOOKEEPER-569, -480: followers that had not noticed yet reported a leader that was gone; the
/// server that looked elected the corpse, could not reach it, and elected it again.
#[test]
fn a_dead_leader_is_not_elected_on_its_followers_word() {
    let mut one = Rig::looking(1, &[1, 2, 3, 4, 5], vote(3, 7, 1));
    for _ in 0..100 {
        for from in [2, 3, 4] {
            assert!(decision(&one.tell(heard(from, Following, vote(3, 7, 5), 1))).is_none());
            assert!(decision(&one.tell(heard(from, Following, vote(3, 7, 5), 4))).is_none());
        }
    }
    assert_eq!(one.standing().state, Looking);
}

/// ZOOKEEPER-1514: a server that a quorum followed in an earlier round took their word for it again,
/// moved its round back and led alone.
#[test]
fn a_leader_is_not_made_by_reports_of_an_earlier_round() {
    let mut zero = Rig::looking(1, &[1, 2, 3], vote(0, 0, 1));
    let reports = [heard(2, Following, vote(0, 0, 1), 1), heard(3, Following, vote(0, 0, 1), 1)];
    for report in reports {
        zero.tell(report);
    }
    assert_eq!(zero.standing(), standing(Leading, vote(0, 0, 1), 1));
    zero.tell(ElectorEvent::Look(vote(0, 0, 1)));
    for report in reports {
        assert!(decision(&zero.tell(report)).is_none());
    }
    assert_eq!((zero.standing().state, zero.standing().round), (Looking, Round(2)));
}

/// ZOOKEEPER-1732, -1805, -1817, -1818: members of one healthy ensemble tell different zxids and rounds for
/// the same leader, and a joiner found no quorum among them.
#[test]
fn a_joiner_finds_the_quorum_behind_votes_that_differ() {
    // One member's zxid and round are 100 ahead.
    let mut three = Rig::looking(3, &[1, 2, 3], vote(1, 0, 3));
    three.tell(heard(1, Following, vote(1, 107, 2), 101));
    let outputs = three.tell(heard(2, Leading, vote(1, 7, 2), 1));
    assert_eq!(decision(&outputs).unwrap().standing.vote.leader, ServerId(2));

    // Old members without a message version tell the peer epoch of before the election.
    let mut joiner = Rig::looking(3, &[1, 2, 3, 4, 5], vote(0x17, 0, 3));
    let mut old = |from, state, peer_epoch, versioned| {
        let standing = standing(state, vote(peer_epoch, 0xf_0000_0000, 5), 0xa);
        joiner.tell(ElectorEvent::Heard {
            from: ServerId(from),
            standing,
            versioned,
            at_once: true,
        })
    };
    old(1, Following, 0x17, false);
    old(2, Following, 0x17, false);
    old(4, Following, 0x18, true);
    assert!(decision(&old(5, Leading, 0x18, true)).is_some());

    // Four zxids and four rounds, one leader and one peer epoch.
    let mut joiner = Rig::looking(2, &[0, 1, 2, 3, 4], vote(2, 0, 2));
    let zxids = [(0, 0x1_0000_0001, 1), (1, 0x1_0000_0002, 1), (3, 0x2_0000_0001, 2)];
    for (from, zxid, round) in zxids {
        assert!(decision(&joiner.tell(heard(from, Following, vote(2, zxid, 4), round))).is_none());
    }
    assert!(decision(&joiner.tell(heard(4, Leading, vote(2, 0x2_0000_0001, 4), 2))).is_some());

    // The same as votes of servers that are looking are four different votes.
    let mut joiner = Rig::looking(2, &[0, 1, 2, 3, 4], vote(2, 0, 2));
    joiner.tell(heard(3, Looking, vote(2, 0x2_0000_0001, 4), 3));
    for (from, zxid, round) in zxids {
        joiner.tell(heard(from, Looking, vote(2, zxid, 4), round));
    }
    assert!(decision(&joiner.wait(200)).is_none());
}

#[test]
fn the_oracle_lets_one_of_two_go_on_alone_after_a_wait() {
    let quorum = Quorum::majority([ServerId(1), ServerId(2)]).with_oracle();
    let mut one = Rig::new(ElectorConfig { quorum, ..config(1, &[1, 2]) });
    one.tell(ElectorEvent::Look(vote(1, 0, 1)));
    one.tell(ElectorEvent::Oracle(true));
    assert!(decision(&one.wait(200)).is_none(), "the other server has not had its time");
    one.tell(ElectorEvent::Oracle(false));
    assert!(decision(&one.wait(400)).is_none());
    one.tell(ElectorEvent::Oracle(true));
    let outputs = one.wait(200);
    assert_eq!(
        decision(&outputs).unwrap().standing.state,
        Leading,
        "it is asked at once, then waits"
    );
    let quorum = Quorum::majority([ServerId(1), ServerId(2)]).with_oracle();
    let mut one = Rig::new(ElectorConfig { quorum, ..config(1, &[1, 2]) });
    one.tell(ElectorEvent::Look(vote(1, 0, 1)));
    let outputs = one.tell(heard(2, Leading, vote(1, 0, 2), 5));
    assert_eq!(
        decision(&outputs).unwrap().standing,
        standing(Following, vote(1, 0, 2), 5),
        "denied by the oracle, it follows the one that leads"
    );
}

#[test]
fn a_single_server_leads_at_once() {
    let mut rig = Rig::new(config(1, &[1]));
    let outputs = rig.tell(ElectorEvent::Look(vote(4, 2, 1)));
    assert_eq!(decision(&outputs).unwrap().standing, standing(Leading, vote(4, 2, 1), 1));
}

#[test]
fn reasons_read_like_an_explanation() {
    let mut rig = Rig::looking(1, &[1, 2, 3], vote(6, 1, 1));
    let mut texts = Vec::new();
    for event in [
        heard(2, Looking, vote(7, 0, 2), 1),
        heard(3, Looking, vote(7, 0, 3), 1),
        heard(2, Looking, vote(7, 5, 2), 4),
        heard(2, Looking, vote(7, 5, 2), 4),
        heard(3, Looking, vote(7, 5, 2), 4),
    ] {
        for output in rig.tell(event) {
            if let ElectorOutput::Changed(change, reason) = output {
                texts.push(format!("{change}: {reason}"));
            }
        }
    }
    assert_eq!(
        texts,
        [
            "vote 1 (peer epoch 6, zxid 0x1) -> 2 (peer epoch 7, zxid 0x0): peer epoch 7 > 6, says 2",
            "vote 2 (peer epoch 7, zxid 0x0) -> 3 (peer epoch 7, zxid 0x0): server id 3 > 2, says 3",
            "round 1 -> 4: round 4 > 1, says 2",
            "vote 3 (peer epoch 7, zxid 0x0) -> 2 (peer epoch 7, zxid 0x5): round 4 > 1, says 2",
            "state LOOKING -> FOLLOWING: quorum {1,2,3} for 2, everybody heard",
        ]
    );
}

/// 3 gave its leadership to 1, and 2 did not hear of it; 4 is cut off from 2. Without 2 they are no quorum, so 2 would wait
/// for a third who says that 1 leads, and 1 for 2.
#[test]
fn whoever_is_missing_for_a_quorum_takes_the_word_of_the_leader_that_needs_it() {
    let rig = |own: Vote| {
        let mut two = Rig::looking(2, &[1, 2, 3, 4], own);
        two.tell(heard(1, Leading, vote(1, 9, 1), 1));
        two.tell(heard(3, Following, vote(1, 9, 1), 1));
        two
    };
    let mut two = rig(vote(1, 9, 2));
    // A third may still be heard; it is asked when that is over.
    assert!(decision(&two.tell(heard(1, Leading, vote(1, 9, 1), 1))).is_none());
    let asked = two.elector.deadline().unwrap().0;
    two.wait(500);
    assert!(asked <= Instant::ORIGIN + Duration::from_millis(two.at), "1 is asked again by then");
    let outputs = two.tell(heard(1, Leading, vote(1, 9, 1), 1));
    assert_eq!(decision(&outputs).unwrap().standing, standing(Following, vote(1, 9, 1), 1));
    // A follower's word is not a leader's, and one that has less is not needed.
    let mut two = rig(vote(1, 9, 2));
    two.wait(500);
    assert!(decision(&two.tell(heard(3, Following, vote(1, 9, 1), 1))).is_none());
    let mut two = rig(vote(1, 10, 2));
    two.wait(500);
    assert!(decision(&two.tell(heard(1, Leading, vote(1, 9, 1), 1))).is_none());
}
