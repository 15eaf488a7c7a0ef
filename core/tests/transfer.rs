//! Transferring the leadership, and leases: what each side does at each stage, and what it does not.

use std::time::Duration;

use crate::support::*;
use crate::world::World;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Mark, Message, Notification, Packet, Probe};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Hangup, Refusal, TransferRefused};
use quorate_core::reconfiguration::body_of;
use quorate_core::report::Reason;
use quorate_core::status::Phase;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::vote::ServerState::{Following, Leading, Looking, Observing};
use quorate_core::vote::{Round, Standing};
use quorate_core::zxid::{Epoch, Zxid};

const LEASE: Duration = Duration::from_secs(6);

fn lease_of(epoch: i64, length: Duration) -> Packet {
    Packet::Lease { zxid: start(epoch), length, sessions: bytes::Bytes::new() }
}

fn transfer(leader: i64, zxid: Zxid, round: i64) -> Packet {
    Packet::Transfer { vote: vote(zxid.epoch().0, zxid.0, leader), round: Round(round) }
}

/// How the one who asked was told that it ended.
fn handed_over(seen: &Seen) -> Vec<Result<ServerId, TransferRefused>> {
    let told = seen.0.iter().filter_map(|output| {
        if let Output::Transferred(outcome) = output { Some(*outcome) } else { None }
    });
    told.collect()
}

fn prepares(seen: &Seen) -> usize {
    seen.0.iter().filter(|output| matches!(output, Output::Prepare { .. })).count()
}

fn has(seen: &Seen, output: &Output) -> bool {
    seen.0.contains(output)
}

// --- a follower ---

/// Server 1 of 1, 2 and 3, whose start is a lease ago, with 1.1 to 1.3, which follows 3 in epoch 2. The
/// election links to 3 and 2, and the link to the leader.
fn follower() -> (Bench, Vec<LinkId>, LinkId) {
    let durable = stored(1, 1, z(1, 0), entries(1, 1, 3));
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), durable, |config| {
        config.lease = Some(LEASE);
        config.reconfig_enabled = true;
    });
    bench.wait(LEASE);
    let links = bench.lose(3, &[2], 1, z(1, 3).0);
    let link = bench.serve(3, 2);
    (bench, links, link)
}

/// The same, and it has just promised 3 a lease.
fn promised() -> (Bench, Vec<LinkId>, LinkId) {
    let (mut bench, links, link) = follower();
    let seen = bench.receive(link, lease_of(2, LEASE));
    assert_eq!(seen.packets(link), [lease_of(2, LEASE)]);
    (bench, links, link)
}

/// Goes with 2, that leads epoch 3, as far as to its NEWLEADER; the link, and what is said to that.
#[track_caller]
fn goes_with_two(bench: &mut Bench, links: &[LinkId]) -> (LinkId, Seen) {
    bench.lose_again(&links[1..], 2, 2, z(1, 3).0);
    let (link, _) = bench.reach(2);
    bench.receive(link, leader_info(3));
    bench.persisted();
    bench.receive(link, Packet::Diff(bench.status().last));
    bench.receive(link, new_leader(3));
    (link, bench.persisted())
}

fn ended(bench: &mut Bench, link: LinkId, cause: Cause) -> Seen {
    bench.step(Event::LinkDown { link, cause })
}

#[test]
fn a_follower_helps_nobody_else_until_its_promise_is_over() {
    for cause in [Cause::Reset, Cause::Silent, Cause::Garbled] {
        let (mut bench, links, link) = promised();
        let until = bench.now + LEASE;
        ended(&mut bench, link, cause);
        let (two, seen) = goes_with_two(&mut bench, &links);
        assert_eq!(seen.names(two), [""; 0], "{cause:?}: 3 counts on us");
        assert_eq!(bench.due().1, Timer::Lease);
        assert_eq!(bench.to(Timer::Lease).packets(two), [ack(3)]);
        assert_eq!(bench.now, until);
    }
}

#[test]
fn a_follower_whose_leader_closes_is_free() {
    let (mut bench, links, link) = promised();
    ended(&mut bench, link, Cause::Closed);
    let (two, seen) = goes_with_two(&mut bench, &links);
    assert_eq!(seen.packets(two), [ack(3)]);
}

/// It came back to its leader, which has dropped what was promised on the link before; and closes.
#[test]
fn a_follower_whose_leader_closes_the_next_link_is_free_too() {
    for told in [false, true] {
        let (mut bench, links, link) = promised();
        ended(&mut bench, link, Cause::Reset);
        bench.lose_again(&links[..1], 3, 2, z(1, 3).0);
        let (again, _) = bench.reach(3);
        if told {
            bench.receive(again, leader_info(2));
        }
        ended(&mut bench, again, Cause::Closed);
        let (two, seen) = goes_with_two(&mut bench, &links);
        let free: &[_] = if told { &[ack(3)] } else { &[] };
        assert_eq!(seen.packets(two), free, "it was {told} that the leader knew of the new link");
    }
}

/// Only the leader that was promised something can do without it.
#[test]
fn a_promise_outlasts_what_another_leader_closes() {
    for stage in 0..3 {
        let (mut bench, links, link) = promised();
        ended(&mut bench, link, Cause::Reset);
        let other = if stage == 0 {
            bench.lose_again(&links[1..], 2, 2, z(1, 3).0);
            bench.reach(2).0
        } else if stage == 1 {
            bench.lose_again(&links[1..], 2, 2, z(1, 3).0);
            let (other, _) = bench.reach(2);
            bench.receive(other, leader_info(3));
            bench.persisted();
            other
        } else {
            goes_with_two(&mut bench, &links).0
        };
        ended(&mut bench, other, Cause::Closed);
        let epoch = bench.status().current_epoch.0;
        bench.lose_again(&links[1..], 2, epoch, z(1, 3).0);
        let (two, _) = bench.reach(2);
        bench.receive(two, leader_info(4));
        bench.persisted();
        bench.receive(two, Packet::Diff(bench.status().last));
        bench.receive(two, new_leader(4));
        assert_eq!(bench.persisted().names(two), [""; 0], "stage {stage}");
        assert_eq!(bench.to(Timer::Lease).packets(two), [ack(4)]);
    }
}

#[test]
fn a_start_counts_as_a_promise_to_nobody_knows_whom() {
    for closed in [false, true] {
        let durable = stored(1, 1, z(1, 0), entries(1, 1, 3));
        let mut bench =
            Bench::with(1, &ensemble(&[1, 2, 3]), durable, |config| config.lease = Some(LEASE));
        let links = bench.lose(3, &[2], 1, z(1, 3).0);
        if closed {
            let (link, _) = bench.reach(3);
            bench.receive(link, leader_info(2));
            bench.persisted();
            ended(&mut bench, link, Cause::Closed);
            bench.lose_again(&links, 3, 1, z(1, 3).0);
        }
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(2));
        bench.persisted();
        bench.receive(link, Packet::Diff(bench.status().last));
        bench.receive(link, new_leader(2));
        assert_eq!(bench.persisted().names(link), [""; 0]);
        assert_eq!(bench.to(Timer::Lease).packets(link), [ack(2)]);
        assert_eq!(bench.now, Instant::ORIGIN + LEASE);
    }
}

/// The settings may say less at the next start, or nothing: what was promised before binds all the same, for as long
/// as the longest that may have been promised. On 953d248 it was over after the new length, and at once with none.
#[test]
fn a_start_with_a_shorter_lease_waits_for_the_longest_that_was_ever_promised() {
    for now in [None, Some(LEASE / 2), Some(LEASE)] {
        let durable = Durable { lease: LEASE, ..stored(1, 1, z(1, 0), entries(1, 1, 3)) };
        let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), durable, |config| config.lease = now);
        bench.lose(3, &[2], 1, z(1, 3).0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(2));
        bench.persisted();
        bench.receive(link, Packet::Diff(bench.status().last));
        bench.receive(link, new_leader(2));
        assert_eq!(bench.persisted().names(link), [""; 0], "{now:?}");
        assert_eq!(bench.to(Timer::Lease).packets(link), [ack(2)]);
        assert_eq!(bench.now, Instant::ORIGIN + LEASE, "{now:?}");
        assert!(
            !bench
                .said
                .iter()
                .any(|output| { matches!(output, Output::Persist { write: Write::Lease(_), .. }) })
        );
    }
}

/// What may be promised is on disk before anybody is voted for, and written only where it grows.
#[test]
fn the_longest_lease_is_on_disk_before_the_first_vote() {
    let durable = Durable { lease: LEASE / 2, ..stored(1, 1, z(1, 0), entries(1, 1, 3)) };
    let longer = |config: &mut Config| config.lease = Some(LEASE);
    let mut bench = Bench::idle(1, &ensemble(&[1, 2, 3]), durable, longer);
    let seen = bench.step(Event::Tick);
    assert_eq!(seen.persists(), [Write::Lease(LEASE)]);
    assert_eq!(seen.election_dials(), [0; 0], "it does not look yet");
    assert!(!bench.persisted().election_dials().is_empty());
}

/// It could not keep the promise over a restart.
#[test]
fn a_lease_longer_than_ours_is_a_ping_and_so_is_any_to_an_observer() {
    let (mut bench, links, link) = follower();
    let longer = lease_of(2, LEASE + Duration::from_millis(1));
    assert_eq!(bench.receive(link, longer).packets(link), [pong(2)]);
    ended(&mut bench, link, Cause::Reset);
    let (two, seen) = goes_with_two(&mut bench, &links);
    assert_eq!(seen.packets(two), [ack(3)], "nothing was promised");

    let text = with_observers(&[1, 2, 3], &[9]);
    let mut bench = Bench::with(9, &text, Durable::default(), |config| config.lease = Some(LEASE));
    bench.wait(LEASE);
    let links = [3, 2].map(|peer| bench.meet(peer));
    bench.hear(links[1], standing(Following, vote(0, 0, 3), 4));
    bench.hear(links[0], standing(Leading, vote(0, 0, 3), 4));
    let link = bench.serve(3, 2);
    assert_eq!(bench.receive(link, lease_of(2, LEASE)).packets(link), [pong(2)]);
}

// --- a follower that is given the leadership, or told of who is ---

#[test]
fn a_follower_that_is_given_the_leadership_leads_in_that_round_and_closes_its_link() {
    let (mut bench, _, link) = promised();
    let last = bench.status().last;
    let seen = bench.receive(link, transfer(1, last, 7));
    assert_eq!((bench.state(), bench.phase()), (Leading, Phase::Discovery));
    assert_eq!(bench.status().round, Round(7));
    assert_eq!(seen.hung_up(link), Some(Hangup::RoleEnded));
    assert!(!bench.status().serving);
    // What it promised has been given back: nothing is waited for.
    bench.establish(2);
    assert_eq!(bench.status().current_epoch, Epoch(3));
}

/// A leader that came back from a crash to those who still followed it is in an earlier round than they are.
#[test]
fn who_is_ahead_of_the_leader_that_gives_its_leadership_away_goes_on_from_its_own_round() {
    for taker in [1, 2] {
        let (mut bench, _, link) = promised();
        let (own, last) = (bench.status().round, bench.status().last);
        bench.receive(link, transfer(taker, last, own.0 - 1));
        assert_eq!((bench.status().leader, bench.status().round), (Some(s(taker)), own.next()));
    }
}

/// Everybody was told of it, whoever took part in the election before, and counts until it looks elsewhere.
#[test]
fn a_leader_that_was_given_the_leadership_bears_those_that_look_elsewhere_while_the_others_are_a_quorum()
 {
    let durable = stored(1, 1, z(1, 0), entries(1, 1, 3));
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3, 4, 5]), durable);
    let links = bench.lose(3, &[2], 1, z(1, 3).0);
    let link = bench.serve(3, 2);
    bench.receive(link, transfer(1, z(1, 3), 7));
    let looks = |leader| standing(Looking, vote(1, z(1, 3).0, leader), 8);
    assert_eq!(bench.hear(links[0], looks(3)).left(), None);
    assert_eq!(bench.hear(links[1], looks(2)).left(), None);
    let (four, _) = bench.accepted(4);
    let deserted = Reason::Deserted { voter: ServerId(4) };
    assert_eq!(bench.hear(four, looks(4)).left(), Some(deserted));
}

#[test]
fn who_is_told_of_the_next_leader_goes_to_it_at_once() {
    let (mut bench, _, link) = promised();
    let seen = bench.receive(link, transfer(2, z(1, 3), 7));
    assert_eq!((bench.state(), bench.status().leader), (Following, Some(ServerId(2))));
    assert_eq!(seen.hung_up(link), Some(Hangup::RoleEnded));
    assert_eq!(seen.dials(), [(Plane::Quorum, 2)]);
    let (two, _) = bench.reach(2);
    bench.receive(two, leader_info(3));
    bench.persisted();
    bench.receive(two, Packet::Diff(bench.status().last));
    bench.receive(two, new_leader(3));
    assert_eq!(bench.persisted().packets(two), [ack(3)], "its leader has given up its leadership");
}

/// A change that names another leader ends the promise to this one; one that does not, does not.
#[test]
fn who_is_led_by_another_behind_a_change_has_promised_nothing() {
    for leader in [2, 3] {
        let (mut bench, _, link) = promised();
        let next =
            if leader == 2 { with_observers(&[1, 2], &[3]) } else { with_observers(&[2, 3], &[1]) };
        let next = Membership::parse(next).unwrap().with_version(z(2, 1).0);
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
        let txn = Txn { zxid: z(2, 1), header, body: body_of(&next) };
        bench.receive(link, Packet::Proposal(txn));
        bench.persisted();
        let activate = Packet::CommitAndActivate { zxid: z(2, 1), leader: ServerId(leader) };
        bench.receive(link, activate);
        bench.persisted();
        assert_eq!(bench.status().leader, Some(ServerId(leader)));
        if leader == 3 {
            assert_eq!(bench.state(), Observing);
            assert_eq!(
                bench.status().vote.peer_epoch,
                Epoch(2),
                "that is what its leader says, too"
            );
            continue;
        }
        let (two, _) = bench.reach(2);
        bench.receive(two, leader_info(3));
        bench.persisted();
        bench.receive(two, Packet::Diff(bench.status().last));
        let config = bench.peer.config().membership.text().clone();
        bench.receive(two, Packet::NewLeader { zxid: start(3), config });
        assert_eq!(bench.persisted().packets(two), [ack(3)]);
    }
}

/// Leadership for which we lack something, that is no voter's, nobody's, or that of whoever gives it away.
#[test]
fn a_leadership_that_cannot_be_is_not_taken() {
    let (mut bench, _, link) = promised();
    let seen = bench.receive(link, transfer(1, z(2, 1), 7));
    assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("TRANSFER")));
    assert_eq!(bench.state(), Looking, "2.1 was never sent to us");

    let (mut bench, _, link) = promised();
    let seen = bench.receive(link, transfer(77, z(1, 3), 7));
    let unreachable = Reason::LeaderUnreachable { leader: ServerId(77) };
    assert!(seen.reasons().contains(&unreachable), "{seen:?}");
    assert_eq!(bench.state(), Looking);

    // Its own leader again.
    let (mut bench, _, link) = promised();
    let seen = bench.receive(link, transfer(3, z(1, 3), 7));
    assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("TRANSFER")));
    assert_eq!(bench.state(), Looking);

    let text = with_observers(&[1, 2, 3], &[9]);
    let weightless = ensemble(&[2, 3, 9]) + "\ngroup.1=2:3:9\nweight.9=0";
    for text in [text, weightless] {
        let mut bench = Bench::of(9, &text, Durable::default());
        let links = [3, 2].map(|peer| bench.meet(peer));
        bench.hear(links[1], standing(Following, vote(0, 0, 3), 4));
        bench.hear(links[0], standing(Leading, vote(0, 0, 3), 4));
        let link = bench.serve(3, 2);
        let seen = bench.receive(link, transfer(9, Zxid(0), 7));
        assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("TRANSFER")), "{text}");
        assert_ne!(bench.state(), Leading, "{text}");
    }
}

/// What is asked for between the two leaderships waits, and is refused if there is no second.
#[test]
fn what_waits_for_a_leadership_that_does_not_begin_is_refused() {
    enum End {
        Given,
        Told,
        Stopped,
    }
    for end in [End::Given, End::Told, End::Stopped] {
        let (mut bench, _, link) = follower();
        let (read, _) = bench.read();
        let to = if matches!(end, End::Told) { 2 } else { 1 };
        assert_eq!(bench.receive(link, transfer(to, z(1, 3), 7)).unread(), []);
        bench.propose(1).is_nothing();
        let (later, seen) = bench.read();
        seen.is_nothing();
        let seen = match end {
            End::Given => bench.to(Timer::Init),
            End::Told => bench.to(Timer::ConnectLimit),
            End::Stopped => bench.step(Event::Shutdown),
        };
        let over = Refusal::LeadershipOver;
        assert_eq!(seen.refused(), [(1, over)]);
        assert_eq!(seen.unread(), [(read, over), (later, over)]);
        if !matches!(end, End::Stopped) {
            assert_eq!(bench.propose(2).refused(), [(2, Refusal::NotServing)]);
        }
    }
}

// --- a leader ---

/// Server 3 of 1, 2 and 3, whose start is a lease ago, established in epoch 5 with 2 and 1, servers of
/// ours both; their links.
fn leader() -> (Bench, LinkId, LinkId) {
    leader_with(|_| {})
}

fn leader_with(change: impl FnOnce(&mut Config)) -> (Bench, LinkId, LinkId) {
    let durable = stored(4, 4, z(4, 0), entries(4, 1, 2));
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), durable, change);
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    let two = bench.learner();
    bench.receive(two, Packet::FollowerInfo(LearnerInfo { protocol, ..info(2, 4) }));
    bench.persisted();
    bench.receive(two, ack_epoch(4, z(4, 2).0));
    bench.persisted();
    bench.receive(two, ack(5));
    bench.receive(two, Packet::MayLead(true));
    let one = join(&mut bench, 1);
    (bench, one, two)
}

/// A follower of ours comes, has everything and is told to serve.
#[track_caller]
fn join(bench: &mut Bench, id: i64) -> LinkId {
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    let (link, last) = (bench.learner(), bench.boundary.disk.last());
    bench.receive(link, Packet::FollowerInfo(LearnerInfo { protocol, ..info(id, 5) }));
    bench.receive(link, ack_epoch_again(last.0));
    let seen = bench.receive(link, ack(5));
    assert_eq!(seen.names(link).first(), Some(&"UPTODATE"), "{seen:?}");
    bench.receive(link, Packet::MayLead(true));
    link
}

fn leased() -> (Bench, LinkId, LinkId) {
    leader_with(|config| config.lease = Some(LEASE))
}

/// Until when the leader counts on nobody else being established.
fn lease(bench: &Bench) -> Option<Instant> {
    bench.peer.leadership()?.lease
}

/// What it counts on for a promise in answer to what it sent then.
fn counted(sent: Instant) -> Option<Instant> {
    Some(sent + LEASE * 9 / 10)
}

fn ask(bench: &mut Bench, to: i64) -> Seen {
    bench.step(Event::TransferLeadership(Some(ServerId(to))))
}

/// A transfer to 2 that has come so far that it is offered the leadership.
#[track_caller]
fn offered(bench: &mut Bench, two: LinkId) -> Seen {
    assert!(ask(bench, 2).releases());
    let seen = bench.released();
    let vote = vote(5, bench.status().last.0, 2);
    let offer = Packet::Transfer { vote, round: Round(bench.status().round.0 + 1) };
    assert_eq!(seen.packets(two), [offer]);
    seen
}

/// A session that expires is not closed by the next leader for what the last one knew of it.
#[test]
fn what_a_service_asks_for_while_the_leadership_is_on_offer_is_not_the_next_leaders() {
    let (mut bench, _, two) = leader();
    offered(&mut bench, two);
    bench.step(Event::Submit { epoch: Epoch(5), request: request(7) }).is_nothing();
    bench.propose(8).is_nothing();
    assert_eq!(handed_over(&bench.down(two)), [Ok(ServerId(2))]);
    let seen = bench.step(Event::Shutdown);
    assert_eq!(seen.refused(), [(8, Refusal::LeadershipOver)], "what a caller asks for waits");
}

#[test]
fn a_leadership_is_offered_when_nothing_is_under_way_and_then_all_are_told() {
    let (mut bench, one, two) = leader();
    bench.write(1);
    assert!(ask(&mut bench, 2).releases());
    assert_eq!(bench.released().names(two), [""; 0], "5.1 is under way");
    bench.propose(2).is_nothing();
    let (read, _) = bench.read();
    bench.persisted();
    let seen = bench.receive(one, Packet::Ack(z(5, 1)));
    assert_eq!((seen.delivered(), seen.names(two)), (vec![z(5, 1)], vec!["COMMIT"]), "2 lacks it");
    let seen = bench.receive(two, Packet::Ack(z(5, 1)));
    assert_eq!(seen.packets(two), [transfer(2, z(5, 1), bench.status().round.0 + 1)]);
    let round = bench.status().round.0;
    let seen = bench.down(two);
    assert_eq!(handed_over(&seen), [Ok(ServerId(2))]);
    assert_eq!(seen.packets(one), [transfer(2, z(5, 1), round + 1)]);
    assert_eq!(seen.hung_up(one), Some(Hangup::RoleEnded));
    assert_eq!((bench.state(), bench.status().leader), (Following, Some(ServerId(2))));
    assert_eq!(seen.dials(), [(Plane::Quorum, 2)]);
    assert_eq!((seen.refused(), seen.unread()), (vec![], vec![]), "they wait on");
    // In the new leadership they are asked for again.
    let (link, _) = bench.reach(2);
    bench.receive(link, leader_info(6));
    bench.persisted();
    bench.receive(link, Packet::Diff(z(5, 1)));
    bench.receive(link, new_leader(6));
    bench.persisted();
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.names(link), ["ACK", "REQUEST", "REQUEST"]);
    assert_eq!(seen.accepted(), [2]);
    assert_eq!(bench.receive(link, Packet::Sync { tag: 0 }).answers(), [read]);
}

/// It has what was proposed, and no quorum has.
#[test]
fn a_leadership_is_not_offered_before_what_its_taker_has_is_committed() {
    let (mut bench, _, two) = leader();
    bench.write(1);
    assert!(ask(&mut bench, 2).releases());
    bench.released();
    assert_eq!(bench.receive(two, Packet::Ack(z(5, 1))).names(two), [""; 0]);
    assert_eq!(bench.persisted().names(two), ["COMMIT", "TRANSFER"]);
}

/// Whatever stops it on the way: whoever asked is told, requests go on, and the leadership is kept.
#[test]
fn a_transfer_is_called_off_at_each_stage() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum At {
        CatchingUp,
        Releasing,
        Holding,
        Offered,
    }
    for at in [At::CatchingUp, At::Releasing, At::Holding, At::Offered] {
        for late in [false, true] {
            let told = format!("{at:?}, late: {late}");
            let (mut bench, one, two) = leader_with(|config| config.history.pace_bytes = 2);
            let mut held = 0;
            if matches!(at, At::CatchingUp | At::Holding) {
                bench.write(2);
            }
            if at == At::CatchingUp {
                // 2 reads nothing: it is sent no more.
                bench.persisted();
                bench.step(Event::Drained(one));
                bench.step(Event::Drained(one));
                for counter in [1, 2] {
                    bench.receive(two, Packet::Ack(z(5, counter)));
                }
                bench.write(1);
                bench.persisted();
                ask(&mut bench, 2).is_nothing();
            } else {
                assert!(ask(&mut bench, 2).releases());
            }
            if matches!(at, At::Holding | At::Offered) {
                let seen = bench.released();
                assert_eq!(seen.names(two) == ["TRANSFER"], at == At::Offered);
                assert_eq!(prepares(&bench.propose(9)), 0);
                held = 1;
            } else {
                assert_eq!(prepares(&bench.propose(9)), 1, "nobody waits yet");
                bench.prepared();
                bench.persisted();
                if at == At::Releasing {
                    let last = bench.status().last;
                    for link in [one, two] {
                        bench.receive(link, Packet::Ack(last));
                    }
                }
            }
            let (since, max) = (bench.now, bench.peer.config().timing.transfer_max);
            let (seen, kept) = if late {
                // They live, and answer.
                let mut seen = Seen::default();
                while handed_over(&seen).is_empty() {
                    seen = bench.next().1;
                    bench.receive(one, pong(5));
                    bench.receive(two, pong(5));
                    bench.receive(two, Packet::MayLead(true));
                }
                let kept = if at == At::Releasing {
                    TransferRefused::Guarded
                } else {
                    TransferRefused::Late(ServerId(2))
                };
                let limit = if held == 1 { max } else { bench.peer.config().timing.init_time() };
                assert_eq!(bench.now.since(since), limit, "{told}");
                (seen, kept)
            } else if at == At::Offered {
                // Not of itself: that is how it takes the leadership.
                let again = join(&mut bench, 2);
                assert!(bench.is_up(again) && !bench.is_up(two));
                let (seen, kept) = (bench.to(Timer::Transfer), TransferRefused::Late(ServerId(2)));
                (seen, kept)
            } else {
                (bench.down(two), TransferRefused::Lost(ServerId(2)))
            };
            assert_eq!(handed_over(&seen), [Err(kept)], "{told}");
            assert_eq!(has(&seen, &Output::Keep), at != At::CatchingUp, "{told}");
            assert_eq!(prepares(&seen), held, "{told}");
            assert_eq!((bench.state(), bench.status().serving), (Leading, true), "{told}");
            assert_eq!(prepares(&bench.propose(10)), 1, "{told}");
            bench.released().is_nothing();
        }
    }
}

/// The end of the leadership is an answer, too.
#[test]
fn who_asked_is_told_when_the_leadership_ends_on_the_way() {
    let (mut bench, _, _) = leader();
    ask(&mut bench, 2);
    // Nobody answers any more.
    let seen = bench.ms(20_000);
    let lost = Err(TransferRefused::Lost(ServerId(2)));
    assert_eq!((seen.left().is_some(), handed_over(&seen)), (true, vec![lost]));
    let (mut bench, _, two) = leader();
    offered(&mut bench, two);
    assert_eq!(handed_over(&bench.step(Event::Shutdown)), [lost]);
}

/// Only servers of ours know what an offer is, and that they are to follow whoever takes it.
#[test]
fn the_leadership_is_offered_to_nobody_else_than_servers_of_ours_and_only_if_they_make_a_quorum() {
    let mut bench = Bench::of(5, &ensemble(&[1, 2, 3, 4, 5]), disk(4, 4, z(4, 0).0));
    bench.win(&[1, 2, 3, 4]);
    let links = [3, 4].map(|id| bench.follower(id, 4).0);
    bench.persisted();
    for link in links {
        bench.receive(link, ack_epoch(4, z(4, 0).0));
    }
    bench.persisted();
    for link in links {
        bench.receive(link, ack(5));
    }
    assert!(bench.status().serving);
    let whoever = |bench: &mut Bench| handed_over(&bench.step(Event::TransferLeadership(None)));
    assert_eq!(whoever(&mut bench), [Err(TransferRefused::Nobody)]);
    join(&mut bench, 1);
    assert_eq!(whoever(&mut bench), [Err(TransferRefused::NoQuorum)], "3 and 4 would go to nobody");
    join(&mut bench, 2);
    assert!(bench.step(Event::TransferLeadership(None)).releases());
}

/// Whoever says that it observes has no vote in this leadership, and nobody has to hear it as a leader.
#[test]
fn a_voter_that_came_to_observe_is_not_offered_the_leadership() {
    let (mut bench, one, _) = leader();
    bench.down(one);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 9, true);
    let (link, last) = (bench.learner(), bench.status().last);
    bench.receive(link, Packet::ObserverInfo(LearnerInfo { protocol, ..info(1, 5) }));
    bench.receive(link, ack_epoch_again(last.0));
    assert_eq!(bench.receive(link, ack(5)).names(link).first(), Some(&"UPTODATE"));
    assert_eq!(handed_over(&ask(&mut bench, 1)), [Err(TransferRefused::NoFollower(ServerId(1)))]);
}

#[test]
fn a_second_wish_is_refused_while_the_first_is_on_its_way() {
    let (mut bench, _, two) = leader();
    ask(&mut bench, 2);
    assert_eq!(handed_over(&ask(&mut bench, 1)), [Err(TransferRefused::Underway)]);
    bench.released();
    assert_eq!(handed_over(&bench.down(two)), [Ok(ServerId(2))]);
}

/// It gives the leadership up in any case; also when a transfer that was under way comes to nothing.
#[test]
fn a_leader_that_is_to_step_down_does_whatever_becomes_of_a_transfer() {
    for asked in [false, true] {
        let (mut bench, _, two) = leader();
        if asked {
            ask(&mut bench, 2);
        }
        bench.step(Event::StepDown);
        let seen = bench.down(two);
        assert_eq!(seen.left(), Some(Reason::Asked), "asked for: {asked}");
        let lost = Err(TransferRefused::Lost(ServerId(2)));
        assert_eq!(handed_over(&seen), if asked { vec![lost] } else { vec![] });
    }
}

/// A transfer that began by itself is as good as one that is asked for: a shutdown waits for it.
#[test]
fn who_asks_for_what_is_under_way_is_told_how_that_ends() {
    for to in [None, Some(ServerId(2)), Some(ServerId(1))] {
        let (mut bench, _, two) = leader();
        bench.step(Event::StepDown);
        let seen = bench.step(Event::TransferLeadership(to));
        if to == Some(ServerId(1)) {
            assert_eq!(handed_over(&seen), [Err(TransferRefused::Underway)]);
            continue;
        }
        seen.is_nothing();
        bench.released();
        assert_eq!(handed_over(&bench.down(two)), [Ok(ServerId(2))]);
    }
}

/// The one that takes the leadership comes back before it has: nothing else happens that would be waited for.
#[test]
fn a_transfer_goes_on_when_the_follower_comes_back_on_another_link() {
    let (mut bench, one, two) = leader_with(|config| config.history.pace_bytes = 2);
    bench.write(2);
    bench.persisted();
    bench.step(Event::Drained(one));
    bench.write(1);
    bench.persisted();
    for counter in 1..=3 {
        bench.receive(one, Packet::Ack(z(5, counter)));
    }
    ask(&mut bench, 2).is_nothing();
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    let again = bench.learner();
    let seen = bench.receive(again, Packet::FollowerInfo(LearnerInfo { protocol, ..info(2, 5) }));
    assert_eq!(seen.hung_up(two), Some(Hangup::Replaced(ServerId(2))));
    let seen = bench.receive(again, ack_epoch_again(z(5, 3).0));
    assert_eq!(seen.names(again), ["DIFF", "NEWLEADER"]);
    bench.receive(again, ack(5));
    let seen = bench.receive(again, Packet::MayLead(true));
    assert!(seen.releases(), "{seen:?}");
}

// --- a leader's lease ---

#[test]
fn a_lease_counts_from_when_it_was_asked_for_and_a_quorum_is_enough() {
    let (mut bench, one, two) = leased();
    let asked = bench.now;
    assert_eq!(lease(&bench), None);
    bench.ms(300);
    bench.receive(two, lease_of(5, LEASE));
    assert_eq!(lease(&bench), counted(asked));
    bench.to(Timer::Ping);
    let later = bench.now;
    bench.ms(100);
    bench.receive(one, pong(5));
    assert_eq!(lease(&bench), counted(asked), "1 answered with a ping: that is no promise");
    bench.receive(two, lease_of(5, LEASE));
    assert_eq!(lease(&bench), counted(later));
}

#[test]
fn a_lease_is_withdrawn_before_the_link_is_closed() {
    let (mut bench, _, two) = leased();
    bench.to(Timer::Ping);
    let later = bench.now;
    bench.receive(two, lease_of(5, LEASE));
    bench.receive(two, lease_of(5, LEASE));
    assert_eq!(lease(&bench), counted(later));
    let seen = bench.receive(two, ack_epoch(5, 0));
    assert_eq!(seen.hung_up(two), Some(Hangup::OutOfTurn("ACKEPOCH")));
    assert_eq!(lease(&bench), Some(bench.now), "1 has promised nothing");
}

/// ZooKeeper's followers know of no leases.
#[test]
fn who_promises_no_leases_is_not_asked_for_one() {
    let (mut bench, one, two) = leased();
    bench.down(one);
    let (foreign, _) = bench.follower(1, 5);
    bench.receive(foreign, ack_epoch_again(z(4, 2).0));
    bench.receive(foreign, ack(5));
    let seen = bench.to(Timer::Ping);
    assert!(matches!(seen.packets(foreign)[..], [Packet::Ping { .. }]), "{seen:?}");
    assert_eq!(seen.packets(two), [lease_of(5, LEASE)]);
}

/// Whoever is offered the leadership takes it whenever it hears of that, and its promise ends with that.
#[test]
fn an_offer_gives_a_promise_back() {
    let (mut bench, one, two) = leased();
    bench.to(Timer::Ping);
    let first = bench.now;
    bench.receive(one, lease_of(5, LEASE));
    bench.to(Timer::Ping);
    let second = bench.now;
    bench.receive(two, lease_of(5, LEASE));
    bench.receive(two, lease_of(5, LEASE));
    bench.receive(two, lease_of(5, LEASE));
    assert_eq!(lease(&bench), counted(second));
    offered(&mut bench, two);
    assert!(lease(&bench) <= counted(first), "2 may be leading with 1 when 1 is free");
    bench.receive(two, lease_of(5, LEASE));
    assert!(lease(&bench) <= counted(first), "what it said before it heard of the leadership");
}

/// A server that is wished more and has stopped, and whose links stand: while it was offered the leadership, requests
/// would wait for nothing, again and again until it is given up.
#[test]
fn a_wished_follower_that_does_not_answer_is_offered_nothing() {
    let (mut bench, one, _) = leader();
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 9, false);
    bench.down(one);
    let wished = bench.learner();
    bench.receive(wished, Packet::FollowerInfo(LearnerInfo { protocol, ..info(1, 5) }));
    bench.receive(wished, ack_epoch_again(bench.boundary.disk.last().0));
    bench.receive(wished, ack(5));
    bench.receive(wished, Packet::MayLead(true));
    let mut released = 0;
    for answers in [true, false] {
        for _ in 0..8 {
            let seen = bench.to(Timer::Ping);
            if seen.releases() {
                released += 1;
                bench.released();
                bench.to(Timer::Transfer);
            }
            if answers {
                bench.receive(wished, pong(5));
                bench.receive(wished, Packet::MayLead(true));
            }
        }
        assert_eq!(released, 1, "it answers: {answers}; and it did not take what it was offered");
    }
}

/// It follows us well, and that tells nothing of whether the others could follow it. What it said is over after two
/// ticks. On 953d248 the leadership was offered to any follower of ours.
#[test]
fn a_leadership_is_offered_only_to_who_says_lately_that_it_hears_a_quorum() {
    let unheard = [Err(TransferRefused::Unheard(ServerId(2)))];
    for says in [None, Some(false), Some(true)] {
        let (mut bench, one, two) = leader();
        bench.receive(one, Packet::MayLead(false));
        let recent = 2 * bench.peer.config().timing.tick;
        if let Some(yes) = says {
            bench.receive(two, Packet::MayLead(yes));
        }
        if says.is_none() {
            // It did, and answers pings since, as an older one of ours does.
            let end = bench.now + recent;
            while bench.now <= end {
                bench.next();
                bench.receive(one, pong(5));
                bench.receive(two, pong(5));
            }
        }
        if says == Some(true) {
            bench.ms(u64::try_from(recent.as_millis()).unwrap());
            offered(&mut bench, two);
            continue;
        }
        assert!(!ask(&mut bench, 2).releases());
        let asked = bench.now;
        assert_eq!(handed_over(&bench.to(Timer::Transfer)), unheard);
        assert_eq!(bench.now.since(asked), recent);
        let answer = |bench: &mut Bench| {
            for link in [one, two] {
                bench.receive(link, pong(5));
            }
        };
        answer(&mut bench);
        bench.step(Event::TransferLeadership(None));
        assert_eq!(handed_over(&bench.to(Timer::Transfer)), unheard);
        answer(&mut bench);
        bench.step(Event::StepDown).is_nothing();
        let seen = bench.to(Timer::Transfer);
        let offered = seen.names(two).into_iter().any(|name| name == "TRANSFER");
        assert_eq!((seen.left(), offered), (Some(Reason::Asked), false));
    }
}

/// Right after an election it may not have heard the others yet, and says so with its next ping.
#[test]
fn who_asks_for_a_server_too_soon_waits_until_that_hears_a_quorum() {
    let (mut bench, _, two) = leader();
    bench.receive(two, Packet::MayLead(false));
    assert!(!ask(&mut bench, 2).releases());
    assert!(bench.receive(two, Packet::MayLead(true)).releases());
}

/// Between the wish and the offer its links are lost: nothing is offered, and what waited goes on.
#[test]
fn a_follower_that_hears_a_quorum_no_more_is_not_offered_what_was_meant_for_it() {
    let (mut bench, _, two) = leader();
    assert!(ask(&mut bench, 2).releases());
    bench.receive(two, Packet::MayLead(false));
    let seen = bench.released();
    assert_eq!(
        (handed_over(&seen), seen.names(two)),
        (vec![Err(TransferRefused::Unheard(s(2)))], vec![])
    );
    assert!(has(&seen, &Output::Keep) && bench.status().serving);
}

/// It may be asked for by name all the same.
#[test]
fn who_was_given_the_leadership_in_vain_is_not_preferred_for_a_while_and_longer_each_time() {
    let (mut bench, one, two) = leader();
    bench.down(one);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 9, false);
    let wished = bench.learner();
    bench.receive(wished, Packet::FollowerInfo(LearnerInfo { protocol, ..info(1, 5) }));
    bench.receive(wished, ack_epoch_again(bench.boundary.disk.last().0));
    bench.receive(wished, ack(5));
    let patience = bench.peer.config().timing.init_time();
    let mut offers = Vec::new();
    while offers.len() < 9 {
        let seen = bench.to(Timer::Ping);
        if seen.releases() {
            let seen = bench.released();
            assert_eq!(seen.names(wished), ["TRANSFER"]);
            // It is never taken.
            bench.to(Timer::Transfer);
            offers.push(bench.now);
        }
        for link in [two, wished] {
            bench.receive(link, pong(5));
            bench.receive(link, Packet::MayLead(true));
        }
    }
    let (tick, minute) = (bench.peer.config().timing.tick, Duration::from_secs(60));
    for (at, pair) in offers.windows(2).enumerate() {
        let wait = patience + (minute * (1 << at)).min(60 * minute);
        within(pair[1].since(pair[0]), wait, wait + 2 * tick + tick);
    }
    assert!(ask(&mut bench, 1).releases());
}

// --- what a follower says of itself ---

/// Server 1 of 1 to 4 follows 4, and its links are these: of each, whether it stands, and whether the other end
/// knows probes.
fn heard_by(links: &[(i64, bool)]) -> (Bench, Vec<LinkId>, LinkId) {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3, 4]), disk(1, 1, z(1, 0).0));
    bench.step(Event::Tick);
    let following = |leader| standing(Following, vote(1, z(1, 0).0, leader), 4);
    let mut up = Vec::new();
    for (peer, ours) in [(4, true), (3, false), (2, false)] {
        let ours = links.iter().find(|(id, _)| *id == peer).map_or(ours, |(_, ours)| *ours);
        let link = bench.meet(peer);
        let state = if peer == 4 { Leading } else { Following };
        let standing = Standing { state, ..following(4) };
        let mark = if ours { Mark::KNOWS_PROBES } else { Mark::NONE };
        let (version, config) = (Notification::VERSION, Default::default());
        let notification = Notification { standing, version, config, mark };
        let message = Message::Notification(notification);
        bench.step(Event::Received { link, message });
        up.push((peer, link));
    }
    let leader = bench.serve_under(4, asking_leader_info(2), 2);
    for (peer, link) in &up {
        if *peer != 4 && links.iter().all(|(id, _)| id != peer) {
            bench.down(*link);
        }
    }
    let up = links.iter().filter_map(|(id, _)| up.iter().find(|(peer, _)| peer == id));
    let up = up.map(|(_, link)| *link).collect();
    (bench, up, leader)
}

/// What it says with the answer to a ping, and to whom it says that it lives.
fn pinged(bench: &mut Bench, leader: LinkId) -> (Option<bool>, Vec<(LinkId, bool)>) {
    let seen = bench.receive(leader, ping(2));
    let word = seen
        .packets(leader)
        .iter()
        .find_map(|packet| if let Packet::MayLead(yes) = packet { Some(*yes) } else { None });
    let probes = seen.0.iter().filter_map(|output| {
        let Output::Send { link, message: Message::Probe(probe) } = output else { return None };
        Some((*link, probe.hears_you))
    });
    (word, probes.collect())
}

#[test]
fn a_follower_says_that_it_may_lead_while_it_hears_a_quorum_in_both_directions() {
    let (mut bench, links, leader) = heard_by(&[(4, true), (3, true)]);
    let [four, three] = links[..] else { panic!("{links:?}") };
    assert_eq!(pinged(&mut bench, leader), (Some(true), vec![(three, true), (four, true)]));
    let probe = |hears_you| Message::Probe(Probe { hears_you });
    let tick = u64::try_from(bench.peer.config().timing.tick.as_millis()).unwrap();
    let mut beat = |said: [Option<bool>; 2]| {
        bench.ms(tick);
        for (link, hears_you) in [(three, said[0]), (four, said[1])] {
            if let Some(hears_you) = hears_you {
                bench.step(Event::Received { link, message: probe(hears_you) });
            }
        }
        pinged(&mut bench, leader)
    };
    for _ in 0..4 {
        assert_eq!(beat([Some(true); 2]).0, Some(true));
    }
    // 3 lives, and hears nothing of us.
    assert_eq!(beat([Some(false), Some(true)]).0, Some(true), "two ticks are not over");
    assert_eq!(beat([Some(false), Some(true)]).0, Some(true));
    assert_eq!(beat([Some(false), Some(true)]), (Some(false), vec![(three, true), (four, true)]));
    assert_eq!(beat([Some(true), Some(true)]).0, Some(true));
    // It says nothing any more: after two ticks we say so.
    for word in [true, true, false] {
        assert_eq!(beat([None, Some(true)]).0, Some(word));
    }
    assert_eq!(beat([None, Some(true)]).1, [(three, false), (four, true)]);
}

/// Servers of ZooKeeper say nothing when an election is over; nor is anything said to them that they do not know.
#[test]
fn towards_who_knows_no_probes_a_link_that_stands_is_enough() {
    let (mut bench, links, leader) = heard_by(&[(4, true), (3, false)]);
    let tick = u64::try_from(bench.peer.config().timing.tick.as_millis()).unwrap();
    for _ in 0..4 {
        bench.ms(tick);
        let message = Message::Probe(Probe { hears_you: true });
        bench.step(Event::Received { link: links[0], message });
        assert_eq!(pinged(&mut bench, leader), (Some(true), vec![(links[0], true)]));
    }
    bench.down(links[1]);
    assert_eq!(pinged(&mut bench, leader).0, Some(false), "1 and 4 are two of four");
}

/// A link that comes up in place of another may pass nothing at all, and then nothing tells what is at its end.
#[test]
fn a_server_that_knew_probes_is_heard_on_its_next_link_or_not_at_all() {
    let (mut bench, links, leader) = heard_by(&[(4, true), (3, true)]);
    assert_eq!(pinged(&mut bench, leader).0, Some(true));
    bench.down(links[1]);
    let three = bench.meet(3);
    let tick = u64::try_from(bench.peer.config().timing.tick.as_millis()).unwrap();
    let mut beat = |heard| {
        bench.ms(tick);
        let probe = Message::Probe(Probe { hears_you: true });
        bench.step(Event::Received { link: links[0], message: probe.clone() });
        if heard {
            bench.step(Event::Received { link: three, message: probe });
        }
        pinged(&mut bench, leader).0
    };
    // Two ticks are given to it, as to any link that has just come up.
    for word in [true, true, false, false] {
        assert_eq!(beat(false), Some(word));
    }
    assert_eq!(beat(true), Some(true));
    // A server of ZooKeeper takes its place, and says nothing once it has a leader.
    let standing = standing(Following, vote(1, z(1, 0).0, 4), 4);
    bench.hear_marked(three, standing, Mark::NONE);
    for _ in 0..4 {
        bench.ms(tick);
        let message = Message::Probe(Probe { hears_you: true });
        bench.step(Event::Received { link: links[0], message });
        assert_eq!(pinged(&mut bench, leader).0, Some(true));
    }
}

/// An older leader would not know what that is; whoever only observes is not asked.
#[test]
fn a_leader_that_does_not_ask_is_told_nothing() {
    let (mut bench, _, link) = follower();
    assert_eq!(pinged(&mut bench, link).0, None);
    let mut bench = Bench::of(9, &with_observers(&[1, 2, 3], &[9]), Durable::default());
    let links = [3, 2].map(|peer| bench.meet(peer));
    bench.hear(links[1], standing(Following, vote(0, 0, 3), 4));
    bench.hear(links[0], standing(Leading, vote(0, 0, 3), 4));
    let link = bench.serve_under(3, asking_leader_info(2), 2);
    assert_eq!(pinged(&mut bench, link).0, None);
}

/// Nobody need know that it counts on nothing while it waits for the leadership to be taken.
#[test]
fn a_leader_without_a_lease_waits_for_its_offer_to_be_taken_and_no_longer() {
    for taken in [false, true] {
        let (mut bench, one, two) = leased();
        bench.receive(two, lease_of(5, LEASE));
        bench.down(one);
        offered(&mut bench, two);
        assert_eq!(bench.ms(10).left(), None, "it is to be taken");
        if taken {
            assert_eq!(handed_over(&bench.down(two)), [Ok(ServerId(2))]);
        } else {
            let seen = bench.to(Timer::Transfer);
            let seen = if seen.left().is_none() { bench.next().1 } else { seen };
            assert_eq!(seen.left(), Some(Reason::LeaseOver));
        }
    }
}

/// Between the beginning of a leadership and the first promise nothing tells by the clock that it is over:
/// whoever needs that waits, but not for what never comes.
#[test]
fn a_leadership_awaits_its_first_lease_where_there_will_be_one() {
    let awaits = |bench: &Bench| bench.status().serving && bench.peer.leadership().is_none();
    let (mut bench, one, two) = leased();
    assert!(awaits(&bench));
    // One that is lost takes nothing from the need of it.
    bench.down(one);
    assert!(awaits(&bench));
    bench.receive(two, lease_of(5, LEASE));
    assert!(!awaits(&bench) && lease(&bench).is_some());

    // We stood still, and it was over when we heard of it: another may lead by now.
    let (mut bench, _, two) = leased();
    bench.now = bench.now + LEASE;
    bench.receive(two, lease_of(5, LEASE));
    assert!(awaits(&bench) && lease(&bench).is_none());

    assert!(!awaits(&leader().0), "leases are off");
    // Both promise shorter ones only.
    let (mut bench, one, two) = leased();
    bench.to(Timer::Ping);
    bench.receive(one, pong(5));
    assert!(awaits(&bench));
    bench.receive(two, pong(5));
    assert!(!awaits(&bench), "there will be none");
    assert_eq!(lease(&bench), None);
    // 2 is ZooKeeper's, and needed.
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), disk(4, 4, z(4, 0).0), |config| {
        config.lease = Some(LEASE);
    });
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    bench.establish(2);
    assert!(!awaits(&bench) && lease(&bench).is_none());
    let one = join(&mut bench, 1);
    assert!(!awaits(&bench), "who was let in is not sent away for it");
    bench.to(Timer::Ping);
    bench.receive(one, lease_of(5, LEASE));
    assert!(lease(&bench).is_some(), "the better");

    // Who promises, and has not our history yet, makes it no better.
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), disk(4, 4, z(4, 0).0), |config| {
        config.lease = Some(LEASE);
    });
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    let one = bench.learner();
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    bench.receive(one, Packet::FollowerInfo(LearnerInfo { protocol, ..info(1, 4) }));
    bench.persisted();
    bench.establish(2);
    assert!(bench.is_up(one) && !awaits(&bench));
}

/// Of a quorum that needs a ZooKeeper server, the others have promised before work begins: their acknowledgements may be as
/// old as a pause of ours, and they may have given another leader a lease since.
#[test]
fn a_leader_that_will_have_no_lease_still_awaits_the_promises_of_those_who_make_them() {
    let mut bench = Bench::with(5, &ensemble(&[1, 2, 3, 4, 5]), disk(4, 4, z(4, 0).0), |config| {
        config.lease = Some(LEASE);
    });
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    let (one, two) = (bench.learner(), bench.learner());
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    bench.receive(one, Packet::FollowerInfo(LearnerInfo { protocol, ..info(1, 4) }));
    bench.receive(two, Packet::FollowerInfo(info(2, 4)));
    bench.persisted();
    for link in [one, two] {
        bench.receive(link, ack_epoch(4, z(4, 0).0));
    }
    bench.persisted();
    for link in [one, two] {
        bench.receive(link, ack(5));
    }
    assert!(bench.status().serving && bench.peer.leadership().is_none());
    bench.to(Timer::Ping);
    bench.receive(two, pong(5));
    assert!(bench.peer.leadership().is_none(), "2 never promises, 1 has not yet");
    bench.receive(one, lease_of(5, LEASE));
    assert!(bench.peer.leadership().is_some_and(|leadership| leadership.lease.is_none()));
}

/// Before the promise of its own restart is over it counts for nobody, itself included.
#[test]
fn a_leader_counts_itself_when_its_own_promise_is_over() {
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), disk(4, 4, z(4, 0).0), |config| {
        config.lease = Some(LEASE);
    });
    bench.win(&[1, 2]);
    let (two, _) = bench.follower(2, 4);
    bench.persisted();
    bench.receive(two, ack_epoch(4, z(4, 0).0));
    bench.persisted();
    assert_eq!(bench.receive(two, ack(5)).names(two), [""; 0]);
    assert!(!bench.status().serving);
    assert!(bench.to(Timer::Lease).names(two).contains(&"UPTODATE"));
    assert_eq!(bench.now, Instant::ORIGIN + LEASE);
}

// --- whole servers ---

/// Servers of which 1 is wished to lead most, and has got the leadership.
fn wished(ids: &[i64]) -> World {
    let mut world = World::with(ids, |config| {
        config.timing.tick = Duration::from_secs(2);
        if config.id == ServerId(1) {
            config.priority = 9;
        }
    });
    world.pass(Duration::from_secs(60));
    assert_eq!(world.leader(), 1);
    world
}

/// For how much of so much time somebody leads and serves, in thousandths, and how often that becomes another one.
fn led(world: &mut World, time: Duration) -> (u128, usize) {
    let (start, mut serving) = (world.now, Duration::ZERO);
    let mut leaders = Vec::new();
    while world.now.since(start) < time {
        let before = world.now;
        let leadership = world.peers.iter().find_map(|(id, peer)| {
            let leads = peer.status().state == Leading && peer.status().serving;
            leads.then(|| (*id, peer.status().current_epoch))
        });
        world.next();
        if let Some(leadership) = leadership {
            serving += world.now.since(before);
            leaders.push(leadership);
        }
    }
    leaders.dedup();
    (serving.as_nanos() * 1000 / world.now.since(start).as_nanos(), leaders.len() - 1)
}

/// The preferred server reaches one of the others, the hub, and follows that well. On 953d248 it was given the leadership
/// two ticks after each election, got no quorum together, and the next was elected when its `initLimit` was over:
/// nobody served for five sixths of the time, for as long as one link was down.
#[test]
fn a_preferred_server_that_reaches_only_the_leader_is_not_given_the_leadership_until_it_reaches_more()
 {
    for (ids, dead) in [(&[1, 2, 3, 4][..], None), (&[1, 2, 3, 4, 5], Some(2))] {
        let mut world = wished(ids);
        let hub = *ids.last().unwrap();
        for id in &ids[1..ids.len() - 1] {
            world.block(1, *id);
        }
        if let Some(dead) = dead {
            world.kill(dead);
        }
        // 1 is without a quorum now, and notices.
        world.run(|world| {
            world.peers.values().any(|p| p.leadership().is_some_and(|l| l.epoch > Epoch(2)))
        });
        let (of_1000, changes) = led(&mut world, Duration::from_secs(600));
        assert!(of_1000 >= 990 && changes <= 1, "{ids:?}: {of_1000} of 1000, {changes} changes");
        assert_eq!(world.leader(), hub);
        for id in &ids[1..] {
            world.unblock(1, *id);
        }
        world.pass(Duration::from_secs(60));
        assert_eq!(world.leader(), 1, "the links are back");
    }
}

/// It hears everybody on the election port, and none reaches its quorum port: what it says of itself does not tell.
/// Every server was told to whom the leadership went, so whoever leads next knows, and the tries become rare.
#[test]
fn a_preferred_server_whose_quorum_port_none_reaches_costs_less_and_less() {
    let mut world = wished(&[1, 2, 3]);
    world.closed.insert(s(1));
    world.break_links(s(1));
    let hour = Duration::from_secs(3600);
    let (of_1000, changes) = led(&mut world, 4 * hour);
    assert!(of_1000 >= 970 && changes <= 16, "{of_1000} of 1000, {changes} changes");
    // Its port is open: it leads within the longest wait, and for good.
    world.closed.clear();
    world.pass(hour + Duration::from_secs(60));
    assert_eq!(world.leader(), 1);
    assert_eq!(led(&mut world, hour), (1000, 0));
}
