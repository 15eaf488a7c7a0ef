//! Connections that claim the id of a voter with which there is a link: live links stay, and a voter that was
//! restarted has its link soon.

use std::net::IpAddr;

use crate::support::*;
use quorate_core::config::Election;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::message::{Message, Packet};
use quorate_core::output::Output;
use quorate_core::reasons::Hangup;
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState::{Following, Leading, Looking};

/// Where server 3 is, and where it is not.
const HOME: &str = "10.0.0.3";
const AWAY: &str = "10.9.9.9";

/// Server 2 of three, looking, linked with both others for longer than a crossing takes; its links.
fn between() -> (Bench, LinkId, LinkId) {
    let mut bench = Bench::of(2, &ensemble(&[1, 2, 3]), Durable::default());
    let (one, three) = (bench.meet(1), bench.meet(3));
    bench.refused(Plane::Election, 3);
    bench.ms(101);
    (bench, one, three)
}

fn claim(bench: &mut Bench, peer: i64, from: &str) -> (LinkId, Seen) {
    bench.knock(peer, at("elsewhere", 9999), from)
}

fn resolved(bench: &mut Bench, link: LinkId, homes: &[&str]) -> Seen {
    let addresses = homes.iter().map(|home| home.parse::<IpAddr>().unwrap()).collect();
    bench.step(Event::Resolved { link, addresses })
}

fn asked(seen: &Seen) -> Vec<(LinkId, Vec<String>)> {
    let asked = seen.0.iter().filter_map(|output| {
        if let Output::Resolve { link, hosts } = output {
            Some((*link, hosts.clone()))
        } else {
            None
        }
    });
    asked.collect()
}

fn called_off(seen: &Seen) -> usize {
    let off = Output::CancelDial { plane: Plane::Election, peer: ServerId(1) };
    seen.0.iter().filter(|output| **output == off).count()
}

const NOT_AT_HOME: Option<Hangup> = Some(Hangup::NotAtHome(ServerId(3)));
const REPLACED: Option<Hangup> = Some(Hangup::Replaced(ServerId(3)));

// --- who is none of them ---

#[test]
fn a_non_member_that_claims_a_larger_voters_id_is_not_heard_and_ends_no_link() {
    let (mut bench, one, three) = between();
    let own = bench.peer.standing();
    let (fake, seen) = claim(&mut bench, 3, AWAY);
    assert_eq!(seen.hangups(), []);
    assert_eq!(seen.told(three), [own], "a machine that knows nothing of this link would end it");
    assert_eq!((seen.told(fake), asked(&seen)), (vec![], vec![(fake, vec!["host3".to_owned()])]));
    bench.hear(fake, standing(Looking, vote(9, 9, 3), 9)).is_nothing();
    resolved(&mut bench, fake, &[HOME]).is_nothing();
    let came = bench.now;
    let seen = bench.to(Timer::Claim);
    assert_eq!(bench.now.since(came), millis(1_000));
    assert_eq!(seen.hangups(), [(fake, Hangup::NotAtHome(ServerId(3)))]);
    assert!(bench.is_up(one) && bench.is_up(three));
    assert_eq!(bench.peer.standing(), own);
    bench.hear(three, standing(Looking, vote(0, 0, 3), 1));
    assert_eq!(bench.peer.standing().vote, vote(0, 0, 3), "the voter is heard as before");
}

#[test]
fn a_non_member_that_claims_a_smaller_voters_id_ends_no_link_and_is_not_dialled() {
    let (mut bench, one, three) = between();
    let own = bench.peer.standing();
    let (fake, seen) = claim(&mut bench, 1, AWAY);
    assert_eq!(seen.hangups(), [(fake, Hangup::WeDial(ServerId(1)))]);
    assert_eq!(seen.addressed(), [(Plane::Election, 1, vec![at("host1", 3888)])]);
    // Whether that comes to nothing or not, there is a link all the time.
    let seen = bench.refused(Plane::Election, 1);
    assert_eq!((seen.hangups(), seen.dials()), (vec![], vec![]));
    assert!(bench.is_up(one) && bench.is_up(three));
    assert_eq!(bench.peer.standing(), own);
    // Nor is it dialled there when the voter is missing.
    bench.down(one);
    let seen = bench.to(Timer::Redial);
    assert_eq!(seen.addressed(), [(Plane::Election, 1, vec![at("host1", 3888)])]);
}

#[test]
fn claims_disturb_neither_a_leader_nor_a_follower() {
    let text = ensemble(&[1, 2, 3]);
    let mut leader = Bench::of(3, &text, Durable::default());
    let links = leader.win(&[1, 2]);
    let learner = leader.establish(2);
    let (mut follower, one, three) = between();
    follower.hear(one, standing(Looking, vote(0, 0, 3), 1));
    follower.hear(three, standing(Looking, vote(0, 0, 3), 1));
    assert_eq!(follower.state(), Following);
    for _ in 0..20 {
        leader.ms(250);
        leader.receive(learner, pong(1));
        claim(&mut leader, 1, AWAY);
        claim(&mut leader, 2, AWAY);
        let (fake, _) = claim(&mut follower, 3, AWAY);
        resolved(&mut follower, fake, &[HOME]);
        follower.hear(fake, standing(Looking, vote(9, 9, 3), 9));
        claim(&mut follower, 1, AWAY);
        follower.ms(1);
        assert_eq!((leader.state(), follower.state()), (Leading, Following));
        assert!(links.iter().all(|link| leader.is_up(*link)) && leader.status().serving);
        assert!(follower.is_up(one) && follower.is_up(three));
    }
}

// --- a larger voter that was restarted ---

#[test]
fn a_larger_voter_whose_old_link_ends_has_its_new_one_at_once_and_what_it_said_is_heard() {
    for cause in [Cause::Closed, Cause::Reset, Cause::Silent] {
        let (mut bench, _, old) = between();
        let (new, seen) = claim(&mut bench, 3, AWAY);
        assert_eq!(seen.told(old).len(), 1);
        bench.hear(new, standing(Looking, vote(0, 0, 1), 1)).is_nothing();
        bench.hear(new, standing(Looking, vote(0, 0, 3), 1)).is_nothing();
        bench.ms(700);
        let seen = bench.step(Event::LinkDown { link: old, cause });
        assert_eq!((seen.hangups(), seen.dials()), (vec![(old, Hangup::Ended)], vec![]));
        assert_eq!(
            seen.told(new),
            [standing(Looking, vote(0, 0, 2), 1), standing(Looking, vote(0, 0, 3), 1)]
        );
        assert_eq!(bench.status().linked, ids(&[1, 3]));
        // The address is of no interest any more.
        resolved(&mut bench, new, &[HOME]).is_nothing();
        bench.ms(5_000);
        assert!(bench.is_up(new));
    }
}

#[test]
fn a_larger_voter_whose_old_link_says_nothing_has_its_new_one_after_a_second_if_it_comes_from_home()
{
    let (mut bench, _, old) = between();
    let (new, _) = claim(&mut bench, 3, HOME);
    bench.hear(new, standing(Looking, vote(0, 0, 3), 1)).is_nothing();
    resolved(&mut bench, new, &["10.0.0.4", HOME]).is_nothing();
    let came = bench.now;
    let seen = bench.to(Timer::Claim);
    assert_eq!(bench.now.since(came), millis(1_000));
    assert_eq!((seen.hung_up(old), seen.hung_up(new)), (REPLACED, None));
    assert_eq!(seen.told(new).len(), 2, "where we stood, and what came of its vote");
    assert_eq!(bench.peer.standing().vote, vote(0, 0, 3));
    assert_eq!(bench.status().linked, ids(&[1, 3]));
}

#[test]
fn an_address_that_is_found_late_decides_as_soon_as_it_is_found() {
    for (found, goes) in [(HOME, false), ("10.0.0.4", true)] {
        let (mut bench, _, old) = between();
        let (new, _) = claim(&mut bench, 3, HOME);
        assert_eq!(bench.ms(3_000).hangups(), []);
        let seen = resolved(&mut bench, new, &[found]);
        assert_eq!((seen.hung_up(new).is_some(), seen.hung_up(old).is_some()), (goes, !goes));
    }
}

#[test]
fn a_voter_whose_name_leads_nowhere_keeps_the_link_that_it_has() {
    let (mut bench, _, old) = between();
    let (new, _) = claim(&mut bench, 3, HOME);
    resolved(&mut bench, new, &[]).is_nothing();
    assert_eq!(bench.to(Timer::Claim).hung_up(new), NOT_AT_HOME);
    assert!(bench.is_up(old));
    // So does one of which it is not known where it comes from.
    let (new, _) = bench.accepted(3);
    resolved(&mut bench, new, &[HOME]).is_nothing();
    assert_eq!(bench.to(Timer::Claim).hung_up(new), NOT_AT_HOME);
    assert!(bench.is_up(old));
}

/// Where a port for both kinds of addresses listens, one of the older kind comes as one of the newer.
#[test]
fn an_address_of_the_older_kind_is_the_same_in_the_guise_of_the_newer() {
    let (mut bench, _, old) = between();
    let (new, _) = claim(&mut bench, 3, "::ffff:10.0.0.3");
    resolved(&mut bench, new, &[HOME]);
    assert_eq!(bench.to(Timer::Claim).hung_up(old), REPLACED);
    assert!(bench.is_up(new));
}

#[test]
fn a_newcomer_that_goes_is_forgotten() {
    let (mut bench, _, old) = between();
    let (new, _) = claim(&mut bench, 3, HOME);
    resolved(&mut bench, new, &[HOME]);
    bench.down(new).is_the_end_of(new);
    assert_eq!(bench.ms(5_000).hangups(), []);
    bench.down(old);
    assert_eq!(bench.status().linked, ids(&[1]));
    assert_eq!(bench.to(Timer::Redial).election_dials(), [3]);
}

#[test]
fn a_newcomer_that_says_what_does_not_belong_there_is_hung_up() {
    let (mut bench, _, _) = between();
    let (new, _) = claim(&mut bench, 3, HOME);
    let message = Message::Packet(Packet::FollowerInfo(info(3, 0)));
    let seen = bench.step(Event::Received { link: new, message });
    assert_eq!(seen.0, [Output::Hangup { link: new, reason: Hangup::OutOfTurn("FOLLOWERINFO") }]);
}

#[test]
fn of_two_newcomers_the_newer_is_held_unless_only_the_older_is_at_home() {
    let (mut bench, _, old) = between();
    let (first, _) = claim(&mut bench, 3, AWAY);
    resolved(&mut bench, first, &[HOME]);
    bench.ms(900);
    let (second, seen) = claim(&mut bench, 3, HOME);
    assert_eq!(seen.hangups(), [(first, Hangup::ClaimedAgain(ServerId(3)))]);
    assert_eq!(seen.told(old).len(), 1);
    resolved(&mut bench, second, &[HOME]);
    // A non-member cannot keep the voter out by claiming again and again.
    bench.ms(500);
    let (third, seen) = claim(&mut bench, 3, AWAY);
    assert_eq!(seen.0, [Output::Hangup { link: third, reason: Hangup::NotAtHome(ServerId(3)) }]);
    let (fourth, seen) = claim(&mut bench, 3, HOME);
    assert_eq!(seen.hangups(), [(second, Hangup::ClaimedAgain(ServerId(3)))]);
    resolved(&mut bench, fourth, &[HOME]);
    assert_eq!(bench.ms(999).hung_up(old), None);
    assert_eq!(bench.ms(1).hung_up(old), REPLACED);
    assert!(bench.is_up(fourth));
}

#[test]
fn a_non_member_that_got_the_place_gives_way_to_the_voter() {
    let (mut bench, _, old) = between();
    let (fake, _) = claim(&mut bench, 3, AWAY);
    bench.down(old);
    assert!(bench.is_up(fake) && bench.status().linked == ids(&[1, 3]));
    let (new, _) = claim(&mut bench, 3, HOME);
    resolved(&mut bench, new, &[HOME]);
    assert_eq!(bench.to(Timer::Claim).hung_up(fake), REPLACED);
    assert!(bench.is_up(new));
}

/// The voter may have ended the old link for a newer one, of which we do not know yet.
#[test]
fn a_newcomer_that_is_known_to_come_from_elsewhere_has_to_come_again_when_the_old_link_ends() {
    let (mut bench, _, old) = between();
    let (fake, _) = claim(&mut bench, 3, AWAY);
    bench.hear(fake, standing(Looking, vote(9, 9, 3), 9)).is_nothing();
    resolved(&mut bench, fake, &[HOME]);
    assert_eq!(bench.down(old).hung_up(fake), NOT_AT_HOME);
    let (new, seen) = claim(&mut bench, 3, HOME);
    assert_eq!((seen.hangups(), seen.told(new).len()), (vec![], 1), "it has no other link");
}

#[test]
fn each_voter_has_a_newcomer_of_its_own() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    let (two, three) = (bench.meet(2), bench.meet(3));
    let (second, third) = (claim(&mut bench, 2, AWAY).0, claim(&mut bench, 3, HOME).0);
    resolved(&mut bench, second, &["10.0.0.2"]);
    resolved(&mut bench, third, &[HOME]);
    let seen = bench.ms(1_000);
    assert_eq!(seen.hung_up(second), Some(Hangup::NotAtHome(ServerId(2))));
    assert_eq!((seen.hung_up(two), seen.hung_up(three)), (None, REPLACED));
}

#[test]
fn where_servers_elect_by_generation_the_old_link_is_written_to_as_well() {
    let by_generation = |config: &mut quorate_core::config::Config| {
        config.election = Election::Generation(quorate_core::config::Generations::default());
    };
    let mut bench = Bench::with(2, &ensemble(&[1, 2, 3]), Durable::default(), by_generation);
    let old = bench.meet(3);
    let (new, seen) = claim(&mut bench, 3, HOME);
    assert!(matches!(seen.sent(old)[..], [Message::Generation(_)]), "{seen:?}");
    assert_eq!(seen.sent(new), []);
    resolved(&mut bench, new, &[HOME]);
    let seen = bench.to(Timer::Claim);
    assert_eq!(seen.hung_up(old), REPLACED);
    assert!(matches!(seen.sent(new)[0], Message::Generation(_)), "{seen:?}");
}

// --- a smaller voter that was restarted ---

#[test]
fn a_smaller_voter_that_was_restarted_has_its_new_link_as_soon_as_our_dial_is_through() {
    let (mut bench, old, _) = between();
    let (_, seen) = claim(&mut bench, 1, AWAY);
    assert_eq!((seen.election_dials(), seen.hung_up(old)), (vec![1], None));
    let (new, seen) = bench.dialled(1);
    assert_eq!(seen.hangups(), [(old, Hangup::Replaced(ServerId(1)))]);
    assert_eq!(seen.told(new).len(), 1);
    assert_eq!(bench.status().linked, ids(&[1, 3]));
    assert_eq!(bench.ms(5_000).hangups(), []);
}

#[test]
fn a_smaller_voter_with_a_link_is_dialled_once_a_second_however_often_it_knocks() {
    let (mut bench, old, _) = between();
    let began = bench.now;
    let mut dials = Vec::new();
    for _ in 0..100 {
        let (_, mut seen) = claim(&mut bench, 1, AWAY);
        assert_eq!(seen.hung_up(old), None);
        seen.add(bench.ms(50));
        if seen.election_dials() == [1] {
            dials.push(bench.now.since(began));
            bench.refused(Plane::Election, 1);
        }
    }
    // They are seen up to 50 ms later than they are made.
    assert_eq!(dials.len(), 6, "{dials:?}");
    assert!(dials.windows(2).all(|pair| pair[1] - pair[0] >= millis(950)), "{dials:?}");
    assert!(bench.is_up(old));
}

#[test]
fn a_knock_soon_after_a_dial_is_answered_when_a_second_is_over_unless_there_is_a_link_since() {
    for comes_through in [false, true] {
        let (mut bench, old, _) = between();
        claim(&mut bench, 1, AWAY);
        if comes_through {
            bench.ms(200);
            assert_eq!(claim(&mut bench, 1, AWAY).1.dials(), []);
            bench.dialled(1);
            assert_eq!(bench.ms(5_000).election_dials(), [], "it has a link that is newer");
        } else {
            bench.refused(Plane::Election, 1);
            bench.ms(200);
            assert_eq!(claim(&mut bench, 1, AWAY).1.dials(), []);
            let before = bench.now;
            assert_eq!(bench.to(Timer::Claim).election_dials(), [1]);
            assert_eq!(bench.now.since(before), millis(800));
            assert!(bench.is_up(old));
        }
    }
}

/// It was made while the machine was down, and TCP asks less and less often.
#[test]
fn a_dial_that_hangs_is_called_off_for_a_later_knock_and_made_anew() {
    let (mut bench, old, _) = between();
    claim(&mut bench, 1, AWAY);
    bench.ms(500);
    let (_, seen) = claim(&mut bench, 1, AWAY);
    assert_eq!((called_off(&seen), seen.dials()), (0, vec![]));
    assert_eq!(called_off(&bench.ms(500)), 1);
    assert_eq!(called_off(&claim(&mut bench, 1, AWAY).1), 0, "once");
    assert_eq!(bench.refused(Plane::Election, 1).election_dials(), [1]);
    bench.ms(20);
    let (_, seen) = bench.dialled(1);
    assert_eq!(seen.hung_up(old), Some(Hangup::Replaced(ServerId(1))));
}

#[test]
fn an_old_link_that_ends_while_the_dial_beside_it_is_under_way_changes_nothing_about_that() {
    for called_off in [false, true] {
        let (mut bench, old, _) = between();
        claim(&mut bench, 1, AWAY);
        if called_off {
            bench.ms(500);
            claim(&mut bench, 1, AWAY);
            bench.ms(500);
        }
        assert_eq!(bench.down(old).dials(), []);
        bench.ms(5);
        let seen = bench.refused(Plane::Election, 1);
        let dials = if called_off { vec![1] } else { bench.ms(20).election_dials() };
        assert_eq!(dials, [1], "{seen:?}");
        let (new, _) = bench.dialled(1);
        bench.ms(5_000);
        assert!(bench.is_up(new));
        // And the next claim is like the first.
        assert_eq!(claim(&mut bench, 1, AWAY).1.election_dials(), [1]);
    }
}

// --- ends ---

#[test]
fn nothing_is_held_of_a_voter_that_leaves_nor_by_a_server_that_stops() {
    let (mut bench, _, _) = between();
    let (new, _) = claim(&mut bench, 3, HOME);
    let mut stops = bench.clone();
    assert_eq!(stops.step(Event::Shutdown).hung_up(new), Some(Hangup::Shutdown));
    let reconfigurable = |config: &mut quorate_core::config::Config| config.reconfig_enabled = true;
    let text = ensemble(&[1, 2, 3, 4]);
    let mut bench = Bench::with(2, &text, Durable::default(), reconfigurable);
    let (one, three) = (bench.meet(1), bench.meet(3));
    let (new, _) = claim(&mut bench, 3, HOME);
    let newer = ensemble(&[1, 2, 4]).replace("version=0", "version=10");
    let message = Message::Notification(quorate_core::message::Notification {
        standing: standing(Looking, vote(0, 0, 1), 1),
        version: 2,
        config: newer.into_bytes().into(),
        mark: quorate_core::message::Mark::NONE,
    });
    let seen = bench.step(Event::Received { link: one, message });
    let unwanted = Some(Hangup::Unwanted);
    assert_eq!((seen.hung_up(three), seen.hung_up(new)), (unwanted, unwanted));
}
