//! An established leader: from a request to what everybody delivers, who is counted for what, and what
//! becomes of those who wait when the leadership ends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::*;
use bytes::Bytes;
use quorate_core::config::{Config, Strangers};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, Origin, ServerId};
use quorate_core::input::Event;
use quorate_core::membership::Membership;
use quorate_core::message::{Identity, LearnerInfo, Packet, Request, Run};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Hangup, Refusal};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::report::{Change, Reason};
use quorate_core::rng::Rng;
use quorate_core::status::Phase;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::ServerState::{Leading, Looking};
use quorate_core::zxid::{Epoch, Zxid};

/// Server 3 of 1, 2, 3 and observers 8 and 9, elected with this on its disk.
fn elected(durable: Durable, change: impl FnOnce(&mut Config)) -> Bench {
    let mut bench = Bench::with(3, &with_observers(&[1, 2, 3], &[8, 9]), durable, change);
    bench.win(&[1, 2]);
    bench
}

/// The same, established with 2 in epoch 5, with 4.1 and 4.2 behind it; the link of 2.
fn leader() -> (Bench, LinkId) {
    leader_with(|_| {})
}

fn leader_with(change: impl FnOnce(&mut Config)) -> (Bench, LinkId) {
    let mut bench = elected(stored(4, 4, z(4, 0), entries(4, 1, 2)), change);
    let two = bench.establish(2);
    assert_eq!(bench.status().current_epoch, Epoch(5));
    (bench, two)
}

/// Another learner of an established leader, that has everything and is told to serve.
#[track_caller]
fn join(bench: &mut Bench, id: i64, follows: bool) -> LinkId {
    let (epoch, last) = (bench.status().current_epoch.0, bench.boundary.disk.last());
    let link = bench.learner();
    let info = info(id, epoch);
    let first = if follows { Packet::FollowerInfo(info) } else { Packet::ObserverInfo(info) };
    bench.receive(link, first);
    bench.receive(link, ack_epoch_again(last.0));
    let seen = bench.receive(link, ack(epoch));
    assert_eq!(seen.names(link).last(), Some(&"UPTODATE"), "{seen:?}");
    link
}

fn acks(epoch: i64, counter: u32) -> Packet {
    Packet::Ack(z(epoch, counter))
}

// --- from a request to a delivery ---

#[test]
fn a_request_is_prepared_proposed_acknowledged_committed_and_delivered() {
    let (mut bench, two) = leader();
    let one = join(&mut bench, 1, true);
    let nine = join(&mut bench, 9, false);

    let seen = bench.propose(1);
    let (epoch, origin) = (Epoch(5), Origin::Here);
    let zxid = z(5, 1);
    assert_eq!(seen.0, [Output::Prepare { epoch, zxid, origin, request: request(1) }]);

    let seen = bench.prepared();
    assert_eq!(seen.accepted(), [1], "it may come to pass from here on");
    let txn = bench.boundary.disk.log.last().unwrap().clone();
    assert_eq!((txn.zxid, txn.header.request()), (z(5, 1), request(1).id));
    assert_eq!(seen.appended(), [z(5, 1)]);
    for link in [one, two] {
        assert_eq!(seen.packets(link), [Packet::Proposal(txn.clone())]);
    }
    assert_eq!(seen.names(nine), [""; 0], "an observer hears of it when it is committed");

    assert_eq!(bench.receive(two, acks(5, 1)).0, [], "one of three, and our disk has not done it");
    let seen = bench.persisted();
    assert_eq!(seen.delivered(), [z(5, 1)]);
    for link in [one, two] {
        assert_eq!(seen.packets(link), [Packet::Commit(z(5, 1))], "also to who is slow");
    }
    assert_eq!(seen.packets(nine), [Packet::Inform(txn)]);
    assert_eq!(bench.status().processed, z(5, 1));
    bench.receive(one, acks(5, 1)).is_nothing();
}

/// A snapshot under the label of an epoch's start holds what was before it, and that may be nothing.
#[test]
fn an_observer_that_stands_at_the_start_of_an_earlier_epoch_is_told_of_what_is_committed_and_no_more()
 {
    let mut bench = elected(disk(1, 1, 0), |_| {});
    let nine = bench.learner();
    bench.receive(nine, Packet::ObserverInfo(info(9, 1)));
    let (two, _) = bench.follower(2, 1);
    bench.persisted();
    bench.receive(two, ack_epoch(1, 0));
    let seen = bench.receive(nine, ack_epoch(1, z(1, 0).0));
    assert_eq!(seen.names(nine), ["DIFF", "NEWLEADER"], "{seen:?}");
    bench.persisted();
    bench.receive(two, ack(2));
    let seen = bench.receive(nine, ack(2));
    assert_eq!(seen.names(nine), ["UPTODATE"], "{seen:?}");

    bench.propose(1);
    bench.prepared();
    bench.receive(two, acks(2, 1));
    let seen = bench.persisted();
    // A run of none would go unseen among packets.
    let sent = |output: &&Output| matches!(output, Output::Send { link, .. } if *link == nine);
    assert_eq!(seen.0.iter().filter(sent).count(), 1, "INFORM alone: {seen:?}");
    assert_eq!(seen.names(nine), ["INFORM"]);
}

/// Our own disk is one of three, and no more.
#[test]
fn our_own_copy_counts_when_it_is_on_disk_and_two_others_are_enough_without_it() {
    let (mut bench, two) = leader();
    let one = join(&mut bench, 1, true);
    bench.write(2);
    assert_eq!(bench.persisted_one().delivered(), [], "ours alone");
    assert_eq!(bench.receive(two, acks(5, 1)).delivered(), [z(5, 1)]);
    assert_eq!(bench.receive(two, acks(5, 2)).delivered(), []);
    assert_eq!(bench.receive(one, acks(5, 1)).delivered(), []);
    assert_eq!(bench.receive(one, acks(5, 2)).delivered(), [z(5, 2)], "1 and 2");
    assert_eq!(bench.persisted().delivered(), []);
}

/// What is ready together goes to the disk and out together.
#[test]
fn transactions_that_are_prepared_together_are_numbered_in_order_and_travel_together() {
    let (mut bench, two) = leader();
    (1..=4).for_each(|cxid| drop(bench.propose(cxid)));
    let seen = bench.prepared_together(3);
    assert_eq!(seen.accepted(), [1, 2, 3]);
    assert_eq!(seen.appended(), [z(5, 1), z(5, 2), z(5, 3)]);
    assert_eq!(seen.persists().len(), 1);
    let Packet::Proposals(txns) = &seen.handed(two)[0] else { panic!("{seen:?}") };
    assert_eq!(txns.iter().map(|txn| txn.header.cxid).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(bench.prepared().appended(), [z(5, 4)]);
    bench.persisted();
    let run = Run { first: z(5, 1), last: z(5, 4) };
    let seen = bench.receive(two, Packet::Acks(run));
    assert_eq!(seen.handed(two), [Packet::Commits(run)]);
    assert_eq!(seen.delivered(), [z(5, 4)]);
}

#[test]
fn a_learners_request_is_prepared_like_ours_and_the_learner_is_told_by_its_transaction() {
    let (mut bench, two) = leader();
    let nine = join(&mut bench, 9, false);
    for (link, counter) in [(two, 1), (nine, 2)] {
        let seen = bench.receive(link, Packet::Request(request(7)));
        let (epoch, zxid, origin) = (Epoch(5), z(5, counter), Origin::Learner(link));
        assert_eq!(seen.0, [Output::Prepare { epoch, zxid, origin, request: request(7) }]);
        let seen = bench.prepared();
        assert_eq!((seen.accepted(), seen.names(two)), (vec![], vec!["PROPOSAL"]));
    }
    // They are answered in the order in which they came, whoever asked.
    bench.propose(1);
    bench.receive(two, Packet::Request(request(2)));
    bench.propose(3);
    assert_eq!(bench.prepared_together(1).accepted(), [1]);
    assert_eq!(bench.prepared_together(2).accepted(), [3]);
}

/// Nobody asked for it, but it is as good: the leader's own services make transactions too.
#[test]
fn the_learner_whose_client_waits_is_told_first_that_it_is_committed() {
    let (mut bench, two) = leader();
    let one = join(&mut bench, 1, true);
    let nine = join(&mut bench, 9, false);
    for (counter, asker) in (1..).zip([nine, one, two, one]) {
        bench.receive(asker, Packet::Request(request(counter)));
        bench.prepared();
        bench.persisted();
        let seen = bench.receive(two, acks(5, u32::try_from(counter).unwrap()));
        let sent = |output: &Output| {
            if let Output::Send { link, .. } = output { Some(*link) } else { None }
        };
        let told: Vec<_> = seen.0.iter().filter_map(sent).collect();
        assert_eq!(told.first(), Some(&asker), "{seen:?}");
        let mut each = told.clone();
        each.sort_unstable();
        assert_eq!(each, [two, one, nine], "each of them once");
    }
    // Ours is nobody's there: the oldest link comes first.
    bench.propose(5);
    bench.prepared();
    bench.persisted();
    let seen = bench.receive(two, acks(5, 5));
    assert!(matches!(seen.0[0], Output::Send { link, .. } if link == two), "{seen:?}");
}

#[test]
fn what_is_prepared_without_being_asked_for_is_proposed() {
    let (mut bench, _) = leader();
    let header = TxnHeader { client: 1, cxid: 2, time: 3, kind: -11 };
    let drafts = vec![Draft { header, body: Bytes::new() }];
    let seen = bench.step(Event::Prepared { epoch: Epoch(5), drafts });
    assert_eq!((seen.appended(), seen.accepted()), (vec![z(5, 1)], vec![]));
    bench.step(Event::Prepared { epoch: Epoch(5), drafts: vec![] }).is_nothing();
}

/// Its last zxid is the start of the epoch, which is no transaction of ours.
#[test]
fn the_first_transaction_of_a_leadership_reaches_who_came_with_the_bare_start_of_it() {
    let (mut bench, two) = leader();
    let (one, _) = bench.follower(1, 5);
    bench.receive(one, ack_epoch_again(0));
    bench.streamed(one);
    assert_eq!(bench.receive(one, ack(5)).names(one), ["UPTODATE"]);
    bench.down(two);
    let (two, _) = bench.follower(2, 5);
    bench.receive(two, ack_epoch_again(z(5, 0).0));
    bench.receive(two, ack(5));
    let seen = bench.write(1);
    assert_eq!((seen.names(one), seen.names(two)), (vec!["PROPOSAL"], vec!["PROPOSAL"]));
}

// --- who is counted ---

/// In epoch 5 with 5.3 committed and 5.4, 5.5 outstanding, both on our own disk.
fn two_outstanding() -> (Bench, LinkId) {
    let (mut bench, two) = leader();
    bench.write(5);
    bench.persisted();
    bench.receive(two, Packet::Acks(Run { first: z(5, 1), last: z(5, 3) }));
    assert_eq!(bench.delivered(), z(5, 3));
    (bench, two)
}

/// What was acknowledged and counts for nothing, as far as it is said.
fn ignored(seen: &Seen) -> Vec<(i64, Zxid)> {
    let ignored = seen.0.iter().filter_map(|output| {
        let Output::Report(report) = output else { return None };
        let Change::Ignored { id, zxid } = report.change else { return None };
        assert_eq!(report.reason, Reason::NotProposed);
        Some((id.0, zxid))
    });
    ignored.collect()
}

/// openraft, and ZooKeeper's own rules: acknowledgements that were early, late, doubled or another's formed
/// a quorum that was none.
#[test]
fn acknowledgements_that_are_early_late_doubled_or_of_something_else() {
    // Twice the same, and what is older than anything: without a word.
    let (mut bench, two) = two_outstanding();
    for known in [acks(5, 3), acks(5, 1), acks(5, 0), acks(4, 9), acks(4, 2), acks(4, 0)] {
        bench.receive(two, known).is_nothing();
    }
    // Out of order: it counts when the one before has come.
    bench.receive(two, acks(5, 5)).is_nothing();
    let seen = bench.receive(two, acks(5, 4));
    assert_eq!(seen.packets(two), [Packet::Commit(z(5, 4)), Packet::Commit(z(5, 5))]);
    assert_eq!(seen.delivered(), [z(5, 5)]);
    bench.receive(two, acks(5, 4)).is_nothing();

    // Never proposed: a warning, and not another before the next half tick.
    let (mut bench, two) = two_outstanding();
    for (zxid, warned) in [(z(5, 9), true), (z(5, 6), false), (z(6, 1), false)] {
        let seen = bench.receive(two, Packet::Ack(zxid));
        assert_eq!(ignored(&seen), if warned { vec![(2, zxid)] } else { vec![] });
        assert_eq!(seen.0.len(), usize::from(warned));
    }
    bench.to(Timer::Ping);
    let seen = bench.receive(two, Packet::Acks(Run { first: z(5, 4), last: z(5, 6) }));
    assert_eq!(ignored(&seen), [(2, z(5, 6))]);
    assert_eq!(bench.receive(two, acks(5, 4)).delivered(), [z(5, 4)], "and the link is good");
}

#[test]
fn acknowledgements_of_observers_and_non_members_count_for_nothing() {
    let (mut bench, two) = two_outstanding();
    let nine = join(&mut bench, 9, false);
    let non_member = join(&mut bench, 77, true);
    let one_observes = join(&mut bench, 1, false);
    for (link, id) in [(nine, 9), (one_observes, 1)] {
        let seen = bench.receive(link, acks(5, 4));
        assert_eq!((ignored(&seen), seen.0.len()), (vec![(id, z(5, 4))], 1));
        bench.to(Timer::Ping);
    }
    // A non-member that follows is proposed to, so what it acknowledges is no surprise; it may be a voter some
    // day, and is then counted for it.
    bench.receive(non_member, acks(5, 4)).is_nothing();
    assert_eq!(bench.write(1).names(non_member), ["PROPOSAL"]);
    assert_eq!(bench.delivered(), z(5, 3));
    bench.receive(two, acks(5, 4));
    bench.receive(non_member, acks(5, 4)).is_nothing();
    assert_eq!(bench.delivered(), z(5, 4));
}

/// A server that was cut back since must not be counted by what it once had.
#[test]
fn acknowledgements_end_with_the_link_they_came_on() {
    for replaced in [false, true] {
        let (mut bench, two) = leader();
        bench.write(2);
        bench.receive(two, acks(5, 1));
        if !replaced {
            bench.down(two);
        }
        let (again, seen) = bench.follower(2, 5);
        assert_eq!(seen.hung_up(two).is_some(), replaced);
        assert_eq!(bench.persisted().delivered(), [], "nobody holds it now but we");
        // It has lost it, and is sent it again.
        let seen = bench.receive(again, ack_epoch_again(z(4, 2).0));
        assert_eq!(seen.names(again), ["DIFF", "PROPOSAL", "PROPOSAL", "NEWLEADER"]);
        bench.step(Event::Received {
            link: two,
            message: quorate_core::message::Message::Packet(acks(5, 2)),
        });
        assert_eq!(bench.delivered(), z(4, 2));
        bench.receive(again, ack(5));
        assert_eq!(bench.receive(again, acks(5, 1)).delivered(), [z(5, 1)]);
    }
}

/// ZOOKEEPER-4685: a leader gave up when an acknowledgement of a transaction came before that of
/// NEWLEADER.
#[test]
fn acknowledgements_before_that_of_newleader_count_when_that_has_come() {
    let (mut bench, _) = leader();
    bench.write(2);
    bench.persisted();
    let (one, _) = bench.follower(1, 5);
    let seen = bench.receive(one, ack_epoch_again(z(4, 2).0));
    assert_eq!(seen.names(one), ["DIFF", "PROPOSAL", "PROPOSAL", "NEWLEADER"]);
    bench.receive(one, acks(5, 1)).is_nothing();
    bench.receive(one, acks(5, 2)).is_nothing();
    let seen = bench.receive(one, ack(5));
    assert_eq!(seen.delivered(), [z(5, 2)]);
    assert_eq!(seen.names(one), ["UPTODATE", "COMMIT", "COMMIT"]);
}

/// ZooKeeper 3.8 acknowledges each transaction that a DIFF brought, before or after UPTODATE.
#[test]
fn acknowledgements_of_the_history_that_was_brought_along_say_nothing_new() {
    let mut bench = elected(stored(4, 4, z(4, 0), entries(4, 1, 2)), |_| {});
    let (two, _) = bench.follower(2, 4);
    bench.persisted();
    bench.receive(two, ack_epoch(4, z(4, 0).0));
    bench.persisted();
    bench.receive(two, acks(4, 1)).is_nothing();
    assert_eq!(bench.receive(two, ack(5)).delivered(), [z(4, 2)]);
    bench.receive(two, acks(4, 2)).is_nothing();
    bench.receive(two, ack(5)).is_nothing();
}

/// Nor while it is on its way as a snapshot.
#[test]
fn acknowledgements_of_what_a_snapshot_brings_say_nothing_new() {
    let mut bench = elected(stored(4, 4, z(4, 0), entries(4, 1, 2)), |_| {});
    let (two, _) = bench.follower(2, 4);
    bench.persisted();
    let mut seen = bench.receive(two, ack_epoch(0, 0));
    seen.0.extend(bench.persisted().0);
    assert_eq!(seen.snapshots().len(), 1);
    bench.receive(two, acks(4, 1)).is_nothing();
}

/// Whoever acknowledges how much in whatever order: committed is what a quorum has on disk on links that
/// are up, and never less than before.
#[test]
fn committed_is_what_a_quorum_has() {
    let five = ensemble(&[1, 2, 3, 4, 5]);
    let weights = "\ngroup.1=1:2:3:4:5\nweight.1=3\nweight.2=1\nweight.3=1\nweight.4=1\nweight.5=1";
    let zero = "\ngroup.1=1:2:3:4:5\nweight.1=0\nweight.2=1\nweight.3=1\nweight.4=1\nweight.5=1";
    let groups = "\ngroup.1=1:2:3\ngroup.2=4:5:6\ngroup.3=7:8:9";
    let nine = ensemble(&[1, 2, 3, 4, 5, 6, 7, 8, 9]) + groups;
    let texts = [
        ensemble(&[1, 2]),
        ensemble(&[1, 2, 3]),
        five.clone(),
        five.clone() + weights,
        five + zero,
        nine,
    ];
    let mut commits = 0;
    for seed in 0..if cfg!(miri) { 1 } else { 300 } {
        let mut rng = Rng::new(seed);
        let mut below = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
        let text = &texts[below(texts.len())];
        let quorum = Membership::parse(text).unwrap().quorum();
        let voters: Vec<_> = quorum.voters().map(|id| id.0).collect();
        let (leader, others) = voters.split_last().unwrap();
        let mut bench = Bench::of(*leader, text, Durable::default());
        bench.win(others);
        let links: Vec<_> = others.iter().map(|id| bench.follower(*id, 0).0).collect();
        bench.persisted();
        links.iter().for_each(|link| drop(bench.receive(*link, ack_epoch(0, 0))));
        bench.persisted();
        links.iter().for_each(|link| drop(bench.receive(*link, ack(1))));
        assert!(bench.status().serving);

        // What each voter on a link that is up has acknowledged on it.
        let mut through: BTreeMap<i64, (LinkId, Zxid)> =
            others.iter().zip(&links).map(|(id, link)| (*id, (*link, z(1, 0)))).collect();
        let mut committed = Zxid(0);
        for _ in 0..if cfg!(miri) { 20 } else { 120 } {
            let last = bench.boundary.disk.last().max(z(1, 0));
            let id = others[below(others.len())];
            match below(10) {
                0..3 => drop(bench.write(1 + u32::try_from(below(3)).unwrap())),
                3..5 if bench.writes_pending() > 0 => drop(bench.persisted_one()),
                5..9 => {
                    let Some((link, acked)) = through.get_mut(&id) else { continue };
                    if *acked < last {
                        let most = usize::try_from(last.0 - acked.0).unwrap();
                        let run = Run {
                            first: Zxid(acked.0 + 1),
                            last: Zxid(acked.0 + 1 + i64::try_from(below(most)).unwrap()),
                        };
                        *acked = run.last;
                        bench.receive(*link, Packet::Acks(run));
                    }
                }
                9 if below(3) == 0 => {
                    if let Some((link, acked)) = through.remove(&id) {
                        bench.down(link);
                        if below(2) == 0 {
                            continue;
                        }
                        // It comes back, with all of that on disk or a part.
                        let (link, _) = bench.follower(id, 1);
                        let kept = if below(2) > 0 { acked } else { z(1, 0) };
                        bench.receive(link, ack_epoch_again(kept.0));
                        if bench.boundary.streams.contains_key(&link) {
                            bench.streamed(link);
                        }
                        bench.receive(link, ack(1));
                        through.insert(id, (link, z(1, 0).max(bench.delivered())));
                    }
                }
                _ => {}
            }
            let ours = bench.boundary.disk.durable.last;
            let counted: Vec<Zxid> = bench.boundary.disk.log.iter().map(|txn| txn.zxid).collect();
            let on_a_quorum = |zxid: &Zxid| {
                let have = through.iter().filter(|(_, (_, acked))| acked >= zxid);
                let have = have.map(|(id, _)| ServerId(*id));
                let own = (ours >= *zxid).then_some(ServerId(*leader));
                quorum.is_quorum(have.chain(own))
            };
            let now = counted.into_iter().filter(on_a_quorum).max().unwrap_or(Zxid(0));
            committed = committed.max(now);
            assert_eq!(bench.delivered(), committed, "seed {seed}: {through:?}, ours {ours}");
        }
        commits += usize::from(committed > z(1, 5));
    }
    assert!(cfg!(miri) || commits > 200, "a test of nothing: {commits}");
}

/// It is prepared in its turn among all others, and nothing is said of what becomes of it.
#[test]
fn a_request_of_a_client_is_prepared_in_its_turn_and_followed_no_further() {
    let (mut bench, two) = leader();
    let seen = bench.step(Event::Submit { epoch: Epoch(5), request: request(1) });
    let (epoch, origin) = (Epoch(5), Origin::Service);
    let zxid = z(5, 1);
    assert_eq!(seen.0, [Output::Prepare { epoch, zxid, origin, request: request(1) }]);
    assert_eq!(bench.prepared().accepted(), []);
    bench.persisted();
    assert_eq!(bench.receive(two, acks(5, 1)).delivered().len(), 1);
    bench.step(Event::Submit { epoch: Epoch(5), request: request(2) });
    let seen = bench.step(Event::Shutdown);
    assert_eq!(seen.refused(), []);
    bench.step(Event::Submit { epoch: Epoch(5), request: request(3) }).is_nothing();
}

#[test]
fn while_the_membership_changes_a_transaction_needs_both_quorums() {
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), enable);
    bench.win(&[1, 2]);
    let links: Vec<_> = [1, 2, 4, 5].map(|id| bench.follower(id, 0).0).into();
    bench.persisted();
    links.iter().for_each(|link| drop(bench.receive(*link, ack_epoch(0, 0))));
    bench.persisted();
    links.iter().for_each(|link| drop(bench.receive(*link, ack(1))));
    let asked = Reconfiguration::whole(Membership::parse(ensemble(&[3, 4, 5])).unwrap());
    let id = RequestId { client: 7, cxid: 9 };
    let request = Request { id, op: Request::RECONFIGURE, body: asked.encode(), identities: None };
    bench.step(Event::Propose(request));
    bench.prepared();
    bench.write(1);
    bench.persisted();
    let both = Packet::Acks(Run { first: z(1, 1), last: z(1, 2) });
    let mut acknowledged = |at: usize| bench.receive(links[at], both.clone()).delivered();
    assert_eq!(acknowledged(0), []);
    assert_eq!(acknowledged(1), [], "all of the old");
    assert_eq!(acknowledged(2), [z(1, 2)], "a quorum of the next has them, too");
}

/// ZOOKEEPER-1277: the counter ran into the epoch. The leader that has used the last number gives up its
/// leadership, and the next transaction is the first of the next epoch.
#[test]
fn after_the_last_number_of_an_epoch_comes_the_first_of_the_next() {
    let last = z(3, 0xffff_fffe);
    let mut bench =
        elected(stored(3, 3, z(3, 0xffff_fffc), entries(3, 0xffff_fffd, 0xffff_fffe)), |_| {});
    let two = bench.establish(2);
    assert_eq!(bench.delivered(), last);
    let seen = bench.write(1);
    assert_eq!(seen.appended(), [z(4, 1)]);
    let one = join(&mut bench, 1, true);
    bench.persisted();
    assert_eq!(bench.receive(two, acks(4, 1)).names(one), ["COMMIT"]);

    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), stored(3, 3, last, vec![]));
    bench.lose(3, &[2], 3, last.0);
    let link = bench.serve(3, 4);
    assert_eq!(bench.receive(link, Packet::Proposal(entry(z(4, 1)))).appended(), [z(4, 1)]);
}

// --- the beginning of a leadership ---

/// Exactly what it brought along, when a quorum has it and not before.
#[test]
fn a_leader_delivers_its_own_history_when_a_quorum_has_acknowledged_it() {
    let mut bench = elected(stored(4, 4, z(4, 0), entries(4, 1, 2)), |_| {});
    let (two, _) = bench.follower(2, 4);
    bench.persisted();
    bench.receive(two, ack_epoch(4, z(4, 1).0));
    assert_eq!(bench.propose(1).refused(), [(1, Refusal::NotServing)]);
    bench.persisted();
    assert_eq!(bench.delivered(), Zxid(0));
    let seen = bench.receive(two, ack(5));
    assert_eq!(seen.delivered(), [z(4, 2)]);
    assert_eq!(bench.status().processed, z(5, 0));
}

/// It was logged and never committed; the leadership in which it was proposed is over. Now it is history like
/// the rest.
#[test]
fn what_an_earlier_leadership_left_uncommitted_is_committed_with_the_next_one() {
    let (mut bench, two) = leader();
    bench.write(2);
    bench.receive(two, acks(5, 1));
    bench.persisted();
    assert_eq!(bench.delivered(), z(5, 1));
    let links: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    let links: Vec<_> = links.into_iter().filter(|link| *link != two).collect();
    let seen = bench.step(Event::StepDown);
    assert!(seen.abandoned());
    bench.win_again(&links);
    let (two, _) = bench.follower(2, 5);
    bench.persisted();
    let seen = bench.receive(two, ack_epoch(5, z(5, 1).0));
    assert_eq!(seen.names(two), ["DIFF", "PROPOSAL", "COMMIT", "NEWLEADER"]);
    bench.persisted();
    assert_eq!(bench.delivered(), z(5, 1));
    assert_eq!(bench.receive(two, ack(6)).delivered(), [z(5, 2)]);
    assert_eq!(bench.write(1).appended(), [z(6, 1)]);
}

// --- its end ---

/// Those whose request was not proposed are told so; of the others nobody can tell.
#[test]
fn the_end_of_the_leadership_answers_those_who_wait() {
    type End = fn(&mut Bench, LinkId) -> Seen;
    let ends: [(&str, End); 3] = [
        ("the operator", |bench, _| bench.step(Event::StepDown)),
        ("no quorum", |bench, two| {
            bench.down(two);
            let mut seen = bench.to(Timer::Ping);
            if bench.state() == Leading {
                seen = bench.to(Timer::Ping);
            }
            seen
        }),
        ("shutdown", |bench, _| bench.step(Event::Shutdown)),
    ];
    for (name, end) in ends {
        let (mut bench, two) = leader();
        bench.write(1);
        bench.propose(2);
        bench.receive(two, Packet::Request(request(3)));
        bench.propose(4);
        let reads = [bench.read().0, bench.read().0];
        let seen = end(&mut bench, two);
        let over = Refusal::LeadershipOver;
        assert_eq!(seen.refused(), [(2, over), (4, over)], "{name}");
        assert_eq!(seen.unread(), reads.map(|read| (read, over)), "{name}");
        assert!(seen.abandoned(), "{name}");
        // What the application still had ready is of a leadership that is over.
        let seen = bench.prepared();
        assert_eq!((seen.appended(), seen.accepted()), (vec![], vec![]), "{name}");
    }
}

/// The application was slow; meanwhile we lead again.
#[test]
fn what_was_prepared_in_an_earlier_leadership_is_not_proposed_in_this_one() {
    let (mut bench, two) = leader();
    bench.propose(1);
    let links: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    let links: Vec<_> = links.into_iter().filter(|link| *link != two).collect();
    bench.step(Event::StepDown);
    bench.win_again(&links);
    bench.establish(2);
    assert_eq!(bench.status().current_epoch, Epoch(6));
    bench.propose(2);
    let seen = bench.prepared_together(1);
    assert_eq!((seen.appended(), seen.accepted()), (vec![], vec![]), "of epoch 5");
    let seen = bench.prepared_together(1);
    assert_eq!((seen.appended(), seen.accepted()), (vec![z(6, 1)], vec![2]));
}

// --- limits ---

#[test]
fn requests_beyond_the_limit_are_refused_until_some_are_committed() {
    let (mut bench, two) = leader_with(|config| config.history.requests = 3);
    (1..=3).for_each(|cxid| assert_eq!(bench.propose(cxid).refused(), []));
    assert_eq!(bench.propose(4).refused(), [(4, Refusal::Busy)], "all are being prepared");
    bench.prepared();
    assert_eq!(bench.propose(5).refused(), [(5, Refusal::Busy)], "all are outstanding");
    bench.persisted();
    bench.receive(two, acks(5, 1));
    assert_eq!(bench.propose(6).refused(), []);
    assert_eq!(bench.propose(7).refused(), [(7, Refusal::Busy)]);
}

/// A learner bounds its own; one that does not must not fill our memory.
#[test]
fn a_learner_that_asks_without_end_loses_its_link() {
    for sync in [false, true] {
        let (mut bench, two) = leader_with(|config| config.history.requests = 2);
        let one = join(&mut bench, 1, true);
        // SYNC waits behind a request that is being prepared.
        bench.receive(one, Packet::Request(request(-1)));
        let op = if sync { Request::SYNC } else { 5 };
        let mut asked = 0;
        let hangup = loop {
            let packet = Packet::Request(Request { op, ..request(asked) });
            let seen = bench.receive(one, packet);
            asked += 1;
            if let Some(hangup) = seen.hung_up(one) {
                break hangup;
            }
            assert!(asked < 1_000, "without end");
        };
        assert_eq!(hangup, Hangup::TooManyRequests);
        assert!(asked > 16, "{asked}");
        assert!(bench.is_up(two) && bench.status().serving);
    }
}

// --- strangers ---

fn asking(schemes: &[&str]) -> Request {
    let identity = |scheme: &&str| Identity { scheme: (*scheme).to_owned(), id: String::new() };
    Request { identities: Some(schemes.iter().map(identity).collect()), ..request(1) }
}

/// CVE-2018-8012, and what is left of it in a ZooKeeper without TLS: whoever reaches the quorum port may be an observer of
/// any id, and its requests are believed, a superuser's among them.
#[test]
fn a_superuser_of_a_server_that_is_no_member_ends_its_link() {
    for strangers in [Strangers::Allow, Strangers::IpOnly] {
        let (mut bench, two) = leader_with(|config| config.strangers = strangers);
        for follows in [false, true] {
            let link = join(&mut bench, 77, follows);
            let seen = bench.receive(link, Packet::Request(asking(&["ip", "super"])));
            assert_eq!(seen.hung_up(link), Some(Hangup::ForgedIdentity(s(77))));
            assert!(!seen.0.iter().any(|output| matches!(output, Output::Prepare { .. })));
        }
        let seen = bench.receive(two, Packet::Request(asking(&["ip", "super"])));
        assert!(
            seen.0.iter().any(|output| matches!(output, Output::Prepare { .. })),
            "a member's is"
        );
    }
}

#[test]
fn what_else_a_stranger_says_of_its_clients_is_believed_as_far_as_that_is_allowed() {
    for (strangers, left) in [(Strangers::Allow, 2), (Strangers::IpOnly, 1)] {
        let (mut bench, _) = leader_with(|config| config.strangers = strangers);
        let link = join(&mut bench, 77, false);
        let seen = bench.receive(link, Packet::Request(asking(&["ip", "digest"])));
        let prepared = seen.0.iter().find_map(|output| {
            let Output::Prepare { request, .. } = output else { return None };
            request.identities.clone()
        });
        assert_eq!(prepared.map(|identities| identities.len()), Some(left), "{strangers:?}");
        assert!(bench.is_up(link));
    }
}

/// Nothing of the history leaves, not even the epoch.
#[test]
fn a_stranger_that_is_not_let_in_is_told_nothing() {
    let (mut bench, _) = leader_with(|config| config.strangers = Strangers::Refuse);
    let unnamed = LearnerInfo { id: None, ..info(0, 0) };
    for info in [info(77, 0), info(i64::MAX, 0), info(-1, 0), info(i64::MIN, 0), unnamed] {
        for packet in [Packet::FollowerInfo(info.clone()), Packet::ObserverInfo(info)] {
            let link = bench.learner();
            let seen = bench.receive(link, packet);
            assert!(matches!(seen.hung_up(link), Some(Hangup::Stranger(_))), "{seen:?}");
            assert_eq!(seen.sent(link), []);
        }
    }
    join(&mut bench, 9, false);
    join(&mut bench, 1, true);
}

/// A server that claims a negative id would take the place of an observer without one.
#[test]
fn an_observer_without_an_id_keeps_its_link_whatever_id_another_claims() {
    let (mut bench, _) = leader();
    let unnamed = LearnerInfo { id: None, ..info(0, 5) };
    let first = bench.learner();
    bench.receive(first, Packet::ObserverInfo(unnamed));
    for claimed in [-1, -2, i64::MIN, i64::MAX] {
        let link = bench.learner();
        let seen = bench.receive(link, Packet::ObserverInfo(info(claimed, 5)));
        assert_eq!((seen.hangups(), seen.names(link)), (vec![], vec!["LEADERINFO"]), "{claimed}");
    }
    assert!(bench.is_up(first));
}

#[test]
fn a_request_that_is_too_long_is_refused() {
    let (mut bench, _) = leader();
    let length = Request::BODY_BYTES_MAX + 1;
    let long = Request { body: Bytes::from(vec![0; length]), ..request(4) };
    let seen = bench.step(Event::Propose(long));
    assert_eq!((seen.refused(), seen.0.len()), (vec![(4, Refusal::TooLong(length))], 1));
    let long = Request { body: Bytes::from(vec![0; length - 1]), ..request(4) };
    assert_eq!(bench.step(Event::Propose(long)).refused(), []);
}

/// ZOOKEEPER-3496, -4306: proposed, it would end every link that reads it, and this server's own log.
#[test]
fn what_is_prepared_too_long_becomes_its_refusal_whoever_asked() {
    let (mut bench, two) = leader();
    bench.propose(1);
    bench.receive(two, Packet::Request(request(2)));
    bench.propose(3);
    let most = Txn::BYTES_MAX - Txn::HEADER_BYTES;
    let draft = |cxid, length| Draft {
        header: TxnHeader { client: 1, cxid, time: 3, kind: 5 },
        body: vec![7; length].into(),
    };
    let drafts = vec![draft(1, most + 1), draft(2, 3 << 20), draft(3, most)];
    let seen = bench.step(Event::Prepared { epoch: Epoch(5), drafts });
    assert_eq!(seen.accepted(), [1, 3], "each request has its transaction");
    let kinds = |txns: &[Txn]| -> Vec<(i32, i32, usize)> {
        txns.iter().map(|txn| (txn.header.cxid, txn.header.kind, txn.body.len())).collect()
    };
    let expected = vec![(1, Txn::REJECTED, 4), (2, Txn::REJECTED, 4), (3, 5, most)];
    let appended = seen.persists().into_iter().find_map(|write| {
        let Write::Append(txns) = write else { return None };
        Some(kinds(&txns))
    });
    assert_eq!(appended.as_ref(), Some(&expected));
    let proposed = seen.packets(two).into_iter().flat_map(|packet| {
        let Packet::Proposal(txn) = packet else { return vec![] };
        kinds(&[txn])
    });
    assert_eq!(proposed.collect::<Vec<_>>(), expected);
}

#[test]
fn before_it_is_established_requests_and_reads_are_refused() {
    let mut bench = Bench::idle(3, &ensemble(&[1, 2, 3]), Durable::default(), |_| {});
    let refused = |bench: &mut Bench| {
        assert_eq!(bench.propose(1).refused(), [(1, Refusal::NotServing)]);
        let (read, seen) = bench.read();
        assert_eq!(seen.unread(), [(read, Refusal::NotServing)]);
    };
    refused(&mut bench);
    bench.step(Event::Tick);
    bench.win(&[1, 2]);
    refused(&mut bench);
    let (two, _) = bench.follower(2, 0);
    refused(&mut bench);
    bench.persisted();
    bench.receive(two, ack_epoch(0, 0));
    refused(&mut bench);
    bench.persisted();
    refused(&mut bench);
    bench.receive(two, ack(1));
    assert_eq!(bench.propose(2).refused(), []);
    bench.step(Event::StepDown);
    assert_eq!(bench.state(), Looking);
    refused(&mut bench);
}

// --- liveness ---

#[test]
fn a_ping_tells_what_was_proposed_last() {
    let (mut bench, two) = leader();
    let pinged = |bench: &mut Bench| {
        let seen = bench.to(Timer::Ping);
        bench.receive(two, pong(5));
        seen.packets(two)
    };
    let ping = |zxid| vec![Packet::Ping { zxid, sessions: None }];
    assert_eq!(pinged(&mut bench), ping(z(5, 0)));
    bench.write(3);
    assert_eq!(pinged(&mut bench), ping(z(5, 3)));
}

/// It answers pings, so it lives; but what it does not acknowledge cannot be committed by it.
#[test]
fn a_follower_that_acknowledges_nothing_for_the_sync_limit_loses_its_link() {
    for acked in [0, 1, 2] {
        let (mut bench, two) = leader();
        let one = join(&mut bench, 1, true);
        let nine = join(&mut bench, 9, false);
        bench.write(2);
        bench.persisted();
        bench.receive(two, Packet::Acks(Run { first: z(5, 1), last: z(5, 2) }));
        (1..=acked).for_each(|counter| drop(bench.receive(one, acks(5, counter))));
        let since = bench.now;
        let mut gone = None;
        while gone.is_none() && bench.now.since(since) < Duration::from_secs(60) {
            let seen = bench.to(Timer::Ping);
            [one, two, nine]
                .iter()
                .filter(|link| bench.is_up(**link))
                .copied()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|link| drop(bench.receive(link, pong(5))));
            gone = seen.hung_up(one);
            assert!(bench.is_up(two) && bench.is_up(nine), "they owe nothing");
        }
        if acked == 2 {
            assert_eq!(gone, None);
        } else {
            assert_eq!(gone, Some(Hangup::Unacknowledged(ServerId(1))));
            within(bench.now.since(since), Duration::from_secs(15), Duration::from_secs(17));
        }
    }
}

/// Slow is not silent, and a new transaction does not excuse an old one for ever.
#[test]
fn a_follower_that_is_always_a_little_behind_stays_and_one_that_stopped_goes() {
    let (mut bench, two) = leader();
    let one = join(&mut bench, 1, true);
    let (mut acked, mut counter) = (0, 0);
    let mut beat = |bench: &mut Bench, acknowledges: bool| {
        bench.write(1);
        counter += 1;
        bench.persisted();
        bench.receive(two, acks(5, counter));
        // Ten seconds behind.
        if acknowledges && counter > 7 {
            acked += 1;
            bench.receive(one, acks(5, acked));
        }
        let seen = bench.to(Timer::Ping);
        bench.receive(two, pong(5));
        if bench.is_up(one) {
            bench.receive(one, pong(5));
        }
        seen.hung_up(one)
    };
    for _ in 0..100 {
        assert_eq!(beat(&mut bench, true), None);
    }
    let stopped = bench.now;
    let hangup = loop {
        if let Some(hangup) = beat(&mut bench, false) {
            break hangup;
        }
        assert!(bench.now.since(stopped) < Duration::from_secs(60), "never");
    };
    assert_eq!(hangup, Hangup::Unacknowledged(ServerId(1)));
    within(bench.now.since(stopped), Duration::from_secs(4), Duration::from_secs(32));
}

/// A large snapshot for a voter that is needed takes longer than a leader waits for silence.
#[test]
fn a_leader_waits_on_while_the_stream_to_a_voter_moves() {
    let mut bench = elected(six(), |_| {});
    let (two, _) = bench.follower(2, 5);
    bench.persisted();
    let seen = bench.receive(two, ack_epoch(5, 0));
    assert_eq!(seen.snapshots().len(), 1);
    bench.persisted();
    for _ in 0..20 {
        assert_eq!(bench.ms(20_000).left(), None);
        bench.step(Event::Progress(two)).is_nothing();
    }
    assert!(bench.is_up(two));
    bench.streamed(two);
    assert_eq!(bench.ms(20_000).left(), None);
    bench.receive(two, ack(6));
    assert!(bench.status().serving);
}

/// Whoever has everything waits with it, and has nothing to say.
#[test]
fn who_has_everything_is_kept_while_the_stream_to_another_voter_moves() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3, 4, 5]), six());
    bench.win(&[1, 2]);
    let [one, two] = [1, 2].map(|id| bench.follower(id, 5).0);
    bench.persisted();
    bench.receive(one, ack_epoch(5, z(5, 6).0));
    bench.receive(two, ack_epoch(5, 0));
    bench.persisted();
    bench.receive(one, ack(6));
    for _ in 0..5 {
        assert_eq!(bench.ms(20_000).left(), None);
        bench.step(Event::Progress(two)).is_nothing();
    }
    assert!(bench.is_up(one));
}

fn six() -> Durable {
    stored(5, 5, z(5, 3), entries(5, 4, 6))
}

/// One that is not needed does not make a leader wait.
#[test]
fn a_leader_does_not_wait_for_an_observers_stream() {
    let mut bench = elected(six(), |_| {});
    let nine = bench.learner();
    bench.receive(nine, Packet::ObserverInfo(info(9, 5)));
    let (two, _) = bench.follower(2, 5);
    bench.persisted();
    bench.receive(two, ack_epoch(5, z(5, 6).0));
    bench.receive(nine, ack_epoch(5, 0));
    bench.persisted();
    let began = bench.now;
    let mut left = None;
    while left.is_none() {
        left = bench.ms(1_000).left();
        if bench.is_up(nine) {
            bench.step(Event::Progress(nine));
        }
        assert!(bench.now.since(began) < Duration::from_secs(40));
    }
    assert!(matches!(left, Some(Reason::NoQuorum { .. })), "{left:?}");
}

/// One whose vote has no weight is not needed either.
#[test]
fn a_leader_does_not_wait_for_the_stream_to_a_voter_without_weight() {
    let text = ensemble(&[1, 2, 3, 4]) + "\ngroup.1=1:2:3:4\nweight.4=0";
    let mut bench = Bench::of(3, &text, six());
    bench.win(&[1, 2]);
    let (two, _) = bench.follower(2, 5);
    let (four, _) = bench.follower(4, 5);
    bench.persisted();
    bench.receive(two, ack_epoch(5, z(5, 6).0));
    assert_eq!(bench.receive(four, ack_epoch(5, 0)).snapshots().len(), 1);
    bench.persisted();
    assert_eq!(bench.ms(20_000).left(), None);
    bench.step(Event::Progress(four)).is_nothing();
    assert!(matches!(bench.ms(10_000).left(), Some(Reason::NoQuorum { .. })));
}

/// However long the stream to one voter takes: if those that are here would be no quorum, the others
/// may have one.
#[test]
fn a_leader_waits_for_a_stream_only_while_there_could_be_a_quorum() {
    for comes_back in [false, true] {
        let mut bench = Bench::of(3, &ensemble(&[1, 2, 3, 4, 5]), six());
        bench.win(&[1, 2]);
        let (one, _) = bench.follower(1, 5);
        let (two, _) = bench.follower(2, 5);
        bench.persisted();
        bench.receive(one, ack_epoch(5, 0));
        bench.receive(two, ack_epoch(5, 0));
        bench.persisted();
        for _ in 0..3 {
            bench.ms(20_000);
            bench.step(Event::Progress(one));
            bench.step(Event::Progress(two));
        }
        assert_eq!(bench.phase(), Phase::Synchronization, "both are needed, and both move");
        bench.down(one);
        if comes_back {
            bench.follower(1, 6);
        }
        bench.ms(20_000);
        bench.step(Event::Progress(two));
        let left = bench.ms(20_000).left();
        assert_eq!(left.is_none(), comes_back, "{left:?}");
    }
}

/// Nor is a learner silent whose snapshot moves; and one whose snapshot does not is.
#[test]
fn a_learner_is_kept_while_its_stream_moves() {
    let (mut bench, two) = leader();
    let (one, _) = bench.follower(1, 5);
    let seen = bench.receive(one, ack_epoch_again(0));
    assert_eq!(seen.snapshots(), [(one, z(5, 0))]);
    for _ in 0..100 {
        let seen = bench.to(Timer::Ping);
        assert_eq!(seen.names(one), [""; 0], "nothing is said into a snapshot");
        bench.receive(two, pong(5));
        bench.step(Event::Progress(one)).is_nothing();
    }
    let since = bench.now;
    while bench.is_up(one) {
        bench.to(Timer::Ping);
        bench.receive(two, pong(5));
    }
    within(bench.now.since(since), Duration::from_secs(30), Duration::from_secs(32));
}

// --- the last number of an epoch ---

/// ZOOKEEPER-1277: the counter ran over into the epoch. What has no number any more is as good as never
/// asked for, and whoever asked is told; what has one goes on in the next leadership.
#[test]
fn a_leader_without_a_number_left_makes_room_for_the_next_epoch() {
    for together in [false, true] {
        let (mut bench, two) = leader_with(|config| config.history.epoch_count = 3);
        let seen = bench.write(3);
        assert_eq!(seen.appended(), [z(5, 1), z(5, 2), z(5, 3)], "the last number is used");
        assert_eq!(seen.left(), None);
        bench.persisted();
        assert_eq!(bench.receive(two, acks(5, 1)).delivered(), [z(5, 1)]);
        let asked = if together { 2 } else { 1 };
        for cxid in 10..10 + asked {
            assert_eq!(bench.propose(cxid).refused(), []);
        }
        let seen = bench.prepared_together(2);
        assert_eq!(seen.left(), Some(Reason::CounterEnd(z(5, 3))));
        assert_eq!((seen.appended(), seen.accepted()), (vec![], vec![]));
        let refused: Vec<_> =
            (10..10 + asked).map(|cxid| (cxid, Refusal::LeadershipOver)).collect();
        assert_eq!(seen.refused(), refused);
        assert!(seen.abandoned() && !bench.is_up(two));
        assert_eq!(bench.status().vote, vote(5, z(5, 3).0, 3), "it stands with all that it has");
    }
}

/// The same with room for one of two: both are refused, neither is half done.
#[test]
fn of_two_transactions_that_are_made_together_none_is_left_without_a_number() {
    let (mut bench, _) = leader_with(|config| config.history.epoch_count = 3);
    bench.write(2);
    (10..12).for_each(|cxid| drop(bench.propose(cxid)));
    let seen = bench.prepared_together(2);
    assert_eq!((seen.left(), seen.appended()), (Some(Reason::CounterEnd(z(5, 2))), vec![]));
    let over = Refusal::LeadershipOver;
    assert_eq!(seen.refused(), [(10, over), (11, over)]);
}

/// The epoch behind it is one above, and counts from 1.
#[test]
fn the_epoch_behind_the_last_number_counts_from_one() {
    let mut bench = elected(stored(4, 4, z(4, 0), entries(4, 1, 2)), |config| {
        config.history.epoch_count = 2;
    });
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    for epoch in 5..9 {
        let two = bench.establish(2);
        let seen = bench.write(2);
        assert_eq!(seen.appended(), [z(epoch, 1), z(epoch, 2)]);
        bench.persisted();
        let seen = bench.receive(two, Packet::Acks(Run { first: z(epoch, 1), last: z(epoch, 2) }));
        assert_eq!(seen.delivered(), [z(epoch, 2)]);
        assert!(bench.write(1).left().is_some());
        bench.win_again(&election);
    }
}

// --- applications ---

/// Snapshots of one mean nothing to the other.
#[test]
fn servers_whose_applications_differ_do_not_come_together() {
    let (zookeeper, other) = (LearnerInfo::PROTOCOL, LearnerInfo::OTHER_APPLICATION);
    assert_eq!((zookeeper, other), (0x1_0000, 0x1_0001));
    for (ours, theirs, together) in [
        (zookeeper, zookeeper, true),
        (zookeeper, other, false),
        (other, zookeeper, false),
        (other, other, true),
        // A later ZooKeeper, whatever it adds.
        (zookeeper, 0x1_0002, true),
        (other, 0x2_0000, false),
        (zookeeper, i32::MAX, true),
    ] {
        // A leader and who comes to it.
        let mut bench = elected(Durable::default(), |config| config.protocol = ours);
        for observes in [false, true] {
            let link = bench.learner();
            let info = LearnerInfo { protocol: theirs, ..info(if observes { 9 } else { 2 }, 0) };
            let packet =
                if observes { Packet::ObserverInfo(info) } else { Packet::FollowerInfo(info) };
            let seen = bench.receive(link, packet);
            let refused = Some(Hangup::OtherApplication(theirs)).filter(|_| !together);
            assert_eq!(seen.hung_up(link), refused, "{ours:x} leads, {theirs:x} comes");
        }
        if together {
            let seen = bench.persisted();
            let told = seen.0.iter().any(|output| {
                matches!(output, Output::Send { message, .. } if *message
                == quorate_core::message::Message::Packet(Packet::LeaderInfo {
                    epoch: Epoch(1),
                    protocol: LearnerInfo::ours(ours, 0, false),
                }))
            });
            assert!(told, "{seen:?}");
        }

        // A follower and whom it comes to.
        let change = |config: &mut Config| config.protocol = ours;
        let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), Durable::default(), change);
        bench.lose(3, &[2], 0, 0);
        let (link, seen) = bench.reach(3);
        let protocol = LearnerInfo::ours(ours, 0, false);
        let told = LearnerInfo { protocol, ..info(1, 0) };
        assert_eq!(seen.packets(link), [Packet::FollowerInfo(told)]);
        let seen = bench.receive(link, Packet::LeaderInfo { epoch: Epoch(1), protocol: theirs });
        if together {
            assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(1))]);
        } else {
            assert_eq!(seen.hung_up(link), Some(Hangup::OtherApplication(theirs)));
            assert_eq!((seen.persists(), bench.state()), (vec![], Looking), "nothing is promised");
        }
    }
}

/// An expiry that the last leadership has found would kill a session that lives again.
#[test]
fn what_a_service_asked_for_in_another_epoch_is_dropped() {
    let (mut bench, _) = leader();
    for epoch in [4, 6] {
        bench.step(Event::Submit { epoch: Epoch(epoch), request: request(1) }).is_nothing();
    }
    assert!(!bench.step(Event::Submit { epoch: Epoch(5), request: request(2) }).0.is_empty());
}
