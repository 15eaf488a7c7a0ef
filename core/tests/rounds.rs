//! Where a round ends for one server and goes on for another: who waits for whom, and who goes back.

use crate::support::*;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{Mark, Packet};
use quorate_core::reasons::Hangup;
use quorate_core::report::{Change, Reason};
use quorate_core::timers::Timer;
use quorate_core::vote::Round;
use quorate_core::vote::ServerState::{Following, Leading, Looking};
use quorate_core::zxid::Zxid;

const NEWER: i64 = 0x6_0000_0000;
const OLDER: i64 = 0x5_0000_0000;

/// Server `id` of three in epoch 6, which has less than server 1.
fn of_three(id: i64) -> Bench {
    Bench::of(id, &ensemble(&[1, 2, 3]), disk(6, 6, OLDER))
}

/// Server 2, with 3 as leader of whom it has heard nothing; 1 cannot be reached. The link to 3.
fn settled_on_a_server_of_zookeeper() -> (Bench, LinkId) {
    let mut bench = of_three(2);
    bench.refused(Plane::Election, 1);
    let (three, _) = bench.accepted(3);
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    let seen = bench.hear_marked(three, for_three, Mark::NONE);
    assert_eq!((seen.left(), bench.state()), (None, Looking), "3 waits for 200 ms, and so do we");
    (bench, three)
}

/// Seen with real servers: 1 opens its port 3 ms after our dial was refused, and 3, which is ZooKeeper's, hears it in
/// its 200 ms. Settled by then we would begin another round, take 3 along, and leave 1 alone for an `initLimit`.
#[test]
fn a_server_that_starts_late_is_elected_by_all_who_wait_for_it() {
    let (mut bench, three) = settled_on_a_server_of_zookeeper();
    bench.ms(15);
    let (one, _) = bench.dialled(1);
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    let seen = bench.hear_marked(one, for_one, Mark::NONE);
    assert_eq!(seen.told(three), [for_one]);
    // All three vote alike now, and nothing is to be waited for.
    bench.hear_marked(three, for_one, Mark::NONE);
    assert_eq!((bench.state(), bench.status().vote.leader.0), (Following, 1));
    assert_eq!(bench.status().round, Round(1));
}

#[test]
fn nobody_waits_for_a_voter_that_is_gone_if_those_who_are_counted_do_not() {
    let mut bench = of_three(2);
    bench.refused(Plane::Election, 1);
    let (three, _) = bench.accepted(3);
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    bench.hear_marked(three, for_three, Mark::SETTLES_AT_ONCE.and(Mark(1 << 31)));
    assert_eq!((bench.state(), bench.status().vote.leader.0), (Following, 3));
}

/// What 3 said before it was started again, as another program, says nothing of what it says now.
#[test]
fn each_notification_speaks_for_itself() {
    let mut bench = of_three(2);
    let (three, _) = bench.accepted(3);
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    bench.hear_marked(three, for_three, Mark::SETTLES_AT_ONCE);
    bench.hear_marked(three, for_three, Mark::NONE);
    bench.refused(Plane::Election, 1);
    assert_eq!(bench.state(), Looking);
    bench.hear_marked(three, for_three, Mark::SETTLES_AT_ONCE);
    assert_eq!(bench.state(), Following);
}

/// The wait was over for us, and 3 has heard of 1 in its own, which was longer.
#[test]
fn a_follower_whose_leader_goes_on_in_the_round_goes_on_with_it() {
    let (mut bench, three) = settled_on_a_server_of_zookeeper();
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), Following);
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    let seen = bench.hear_marked(three, for_one, Mark::NONE);
    let reason = Reason::LeaderMovedOn { leader: ServerId(3), round: Round(1) };
    assert_eq!(seen.left(), Some(reason));
    assert!(seen.changes().contains(&Change::BackIntoRound(Round(1))));
    assert_eq!(seen.told(three), [for_one], "and not that we follow 3");
    // 1 itself is counted when it comes; without it {2,3} would be enough after 200 ms.
    bench.to(Timer::Finalize);
    assert_eq!((bench.state(), bench.status().vote.leader.0), (Following, 1));
    assert_eq!(bench.status().round, Round(1));
}

#[test]
fn what_was_said_in_the_round_while_it_seemed_to_be_over_counts() {
    let mut bench = Bench::of(2, &ensemble(&[1, 2, 3, 4, 5]), disk(6, 6, OLDER));
    let (three, four, five) = (bench.meet(3), bench.meet(4), bench.meet(5));
    let for_five = standing(Looking, vote(6, OLDER, 5), 1);
    for link in [three, four, five] {
        bench.hear_marked(link, for_five, Mark::NONE);
    }
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), Following);
    // 1 comes. It is answered, and says so once; 4 goes with it.
    let one = bench.meet(1);
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    assert_eq!(bench.hear_marked(one, for_one, Mark::NONE).told(one).len(), 1);
    bench.hear_marked(four, for_one, Mark::NONE);
    assert_eq!(bench.state(), Following);
    // With 5, which we follow, and 1 and 4, who have said it before, we are a quorum.
    bench.hear_marked(five, for_one, Mark::NONE);
    assert_eq!(bench.status().vote.leader.0, 1);
    bench.to(Timer::Finalize);
    assert_eq!((bench.state(), bench.status().round), (Following, Round(1)));
}

#[test]
fn an_equal_vote_or_a_worse_one_changes_nothing() {
    for (heard, why) in [
        (vote(6, OLDER, 3), "a server of ZooKeeper says so on each new link for 200 ms"),
        (vote(5, OLDER, 3), "it may lead us all the same"),
    ] {
        let (mut bench, three) = settled_on_a_server_of_zookeeper();
        bench.to(Timer::Finalize);
        let seen = bench.hear_marked(three, standing(Looking, heard, 1), Mark::NONE);
        assert_eq!((seen.left(), bench.state()), (None, Following), "{why}");
    }
}

#[test]
fn whoever_has_taken_over_a_history_begins_another_round() {
    let (mut bench, three) = settled_on_a_server_of_zookeeper();
    bench.to(Timer::Finalize);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(7));
    bench.persisted();
    bench.receive(link, Packet::Diff(Zxid(OLDER)));
    bench.receive(link, new_leader(7));
    bench.persisted();
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    let seen = bench.hear_marked(three, for_one, Mark::NONE);
    assert_eq!((seen.left(), bench.state()), (None, Following), "the end of its link tells");
    bench.down(link);
    assert_eq!((bench.state(), bench.status().round), (Looking, Round(2)));
}

/// The leader's side: 2 elected us, and waits 200 ms itself, from the last notification on.
#[test]
fn a_leader_whose_supporter_goes_on_in_the_round_goes_on_with_it() {
    let mut bench = of_three(3);
    let two = bench.meet(2);
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    bench.hear_marked(two, for_three, Mark::NONE);
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), Leading);
    for heard in [for_three, standing(Looking, vote(5, 9, 2), 1)] {
        bench.hear_marked(two, heard, Mark::NONE);
        assert_eq!(bench.state(), Leading, "a frame that is repeated");
    }
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    let seen = bench.hear_marked(two, for_one, Mark::NONE);
    assert_eq!(seen.left(), Some(Reason::Deserted { voter: ServerId(2) }));
    assert_eq!(seen.told(two), [for_one]);
    assert_eq!(bench.status().round, Round(1));
    bench.to(Timer::Finalize);
    assert_eq!((bench.state(), bench.status().vote.leader.0), (Following, 1));
}

#[test]
fn a_leader_that_has_supporters_to_spare_stays() {
    let mut bench = of_three(3);
    let (one, two) = (bench.meet(1), bench.meet(2));
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    bench.hear_marked(one, for_three, Mark::NONE);
    bench.hear_marked(two, for_three, Mark::NONE);
    assert_eq!(bench.state(), Leading);
    let for_one = standing(Looking, vote(6, NEWER, 1), 1);
    bench.hear_marked(two, for_one, Mark::NONE);
    assert_eq!(bench.state(), Leading, "1 and we are a quorum");
    bench.hear_marked(one, for_one, Mark::NONE);
    // 2 has said so before: all vote alike.
    assert_eq!((bench.state(), bench.status().vote.leader.0), (Following, 1));
}

/// Sent away at once it would look in another round, and draw us out of this one.
#[test]
fn who_learns_from_a_leader_that_goes_back_is_sent_away_when_the_round_is_over() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3, 4, 5]), disk(6, 6, OLDER));
    let (one, two) = (bench.meet(1), bench.meet(2));
    let for_three = standing(Looking, vote(6, OLDER, 3), 1);
    bench.hear_marked(one, for_three, Mark::NONE);
    bench.hear_marked(two, for_three, Mark::NONE);
    bench.to(Timer::Finalize);
    let (loyal, _) = bench.follower(1, 6);
    let for_four = standing(Looking, vote(6, NEWER, 4), 1);
    let seen = bench.hear_marked(two, for_four, Mark::NONE);
    assert_eq!((bench.state(), seen.hung_up(loyal)), (Looking, None));
    // What it says meanwhile, it says to a leader that is none any more.
    bench.receive(loyal, ack_epoch(6, OLDER));
    bench.receive(loyal, ack_epoch(6, OLDER));
    let four = bench.meet(4);
    bench.hear_marked(four, for_four, Mark::NONE);
    let seen = bench.to(Timer::Finalize);
    assert_eq!((bench.state(), seen.hung_up(loyal)), (Following, Some(Hangup::NotLeading)));
}

/// Votes only rise in a round; whoever says otherwise again and again does not keep us in it for ever.
#[test]
fn it_goes_back_as_often_as_there_are_others_at_most() {
    let mut bench = Bench::of(2, &ensemble(&[1, 2, 3]), Durable::default());
    let (one, three) = (bench.meet(1), bench.meet(3));
    for zxid in 1..=3 {
        let for_three = standing(Looking, vote(0, 2 * zxid, 3), 1);
        bench.hear_marked(three, for_three, Mark::NONE);
        bench.hear_marked(one, for_three, Mark::NONE);
        assert_eq!((bench.state(), bench.status().round), (Following, Round(1)));
        let better = standing(Looking, vote(0, 2 * zxid + 1, 1), 1);
        bench.hear_marked(three, better, Mark::NONE);
        let round = if zxid < 3 { Round(1) } else { Round(2) };
        assert_eq!((bench.state(), bench.status().round), (Looking, round));
    }
}
