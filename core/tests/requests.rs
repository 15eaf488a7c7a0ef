//! What becomes of requests that were accepted, when their leader is lost: settled by their own transactions, lost
//! for certain, or nobody can tell; and nothing is said before the application has what might be theirs.

use crate::support::*;
use quorate_core::id::LinkId;
use quorate_core::input::Event;
use quorate_core::message::Packet;
use quorate_core::output::Output;
use quorate_core::reasons::UnknownOutcome;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::Zxid;

/// Server 1 follows 3 in epoch 2, and has forwarded these; the election links, that of 3 first, and the link to 3.
fn asked(cxids: &[i32]) -> (Bench, Vec<LinkId>, LinkId) {
    let durable = stored(1, 1, z(1, 0), entries(1, 1, 3));
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), durable);
    let links = bench.lose(3, &[2], 1, z(1, 3).0);
    let link = bench.serve(3, 2);
    bench.slow = true;
    for cxid in cxids {
        assert_eq!(bench.propose(*cxid).accepted(), [*cxid]);
    }
    (bench, links, link)
}

/// The transaction of a request.
fn of(cxid: i32, zxid: Zxid) -> Txn {
    let mut txn = entry(zxid);
    (txn.header.client, txn.header.cxid) = (7, cxid);
    txn
}

/// What is said of requests: that they are lost, or why nobody can tell.
fn told(seen: &Seen) -> Vec<(i32, Option<UnknownOutcome>)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is about something else")]
    let told = seen.0.iter().filter_map(|output| match output {
        Output::Lost(id) => Some((id.cxid, None)),
        Output::Unknown { id, doubt } => Some((id.cxid, Some(*doubt))),
        _ => None,
    });
    told.collect()
}

const NOTHING: [(i32, Option<UnknownOutcome>); 0] = [];

/// The leader is lost; 2 or 3 leads in this epoch, with what we have and this beside.
fn serve_again(bench: &mut Bench, links: &[LinkId], leader: i64, epoch: i64, more: &[Txn]) -> Seen {
    let before = bench.said.len();
    let links = if leader == 3 { links.to_vec() } else { vec![links[1], links[0]] };
    let last = more.last().map_or(bench.status().last, |txn| txn.zxid);
    let peer_epoch = bench.status().current_epoch.0;
    bench.lose_again(&links, leader, peer_epoch, last.0);
    let (link, _) = bench.reach(leader);
    bench.receive(link, leader_info(epoch));
    bench.persisted();
    bench.receive(link, Packet::Diff(last));
    for txn in more {
        bench.receive(link, Packet::Proposal(txn.clone()));
        bench.receive(link, Packet::Commit(txn.zxid));
    }
    bench.receive(link, new_leader(epoch));
    bench.persisted();
    bench.receive(link, Packet::UpToDate);
    assert!(bench.status().serving, "{:?}", bench.status());
    Seen(bench.said[before..].to_vec())
}

#[test]
fn what_the_next_epoch_did_not_inherit_is_lost_once_all_it_inherited_is_applied() {
    let (mut bench, links, link) = asked(&[1, 2]);
    assert_eq!(told(&bench.down(link)), NOTHING, "a change of leader says nothing yet");
    let inherited = of(1, z(2, 1));
    let seen = serve_again(&mut bench, &links, 2, 3, &[inherited]);
    assert_eq!(told(&seen), NOTHING, "the application has still to apply the first");
    assert_eq!(bench.propose(3).accepted(), [3]);
    assert_eq!(told(&bench.step(Event::Applied(z(1, 3)))), NOTHING);
    let seen = bench.step(Event::Applied(z(2, 1)));
    assert_eq!(told(&seen), [(2, None)], "the first has its reply, the third is the new leader's");
    assert_eq!(told(&bench.step(Event::Applied(z(2, 1)))), NOTHING, "it is said once");
}

#[test]
fn where_nothing_is_left_to_apply_it_is_said_at_once() {
    let (mut bench, links, link) = asked(&[1]);
    bench.down(link);
    let seen = serve_again(&mut bench, &links, 2, 3, &[]);
    assert_eq!(told(&seen), [(1, None)]);
}

#[test]
fn the_same_leader_may_still_have_it() {
    let (mut bench, links, link) = asked(&[1]);
    bench.down(link);
    let seen = serve_again(&mut bench, &links, 3, 2, &[]);
    assert_eq!(told(&seen), [(1, Some(UnknownOutcome::Disconnected))]);
}

/// The application is slow, and two leaders are lost meanwhile.
#[test]
fn a_slow_application_is_waited_for_through_several_epochs() {
    let (mut bench, links, link) = asked(&[1, 2]);
    bench.receive(link, Packet::Proposal(of(1, z(2, 1))));
    bench.persisted();
    bench.receive(link, Packet::Commit(z(2, 1)));
    bench.down(link);
    assert_eq!(told(&serve_again(&mut bench, &links, 2, 3, &[])), NOTHING);
    let second = bench.boundary.up.keys().next_back().copied().expect("the link to 2");
    assert_eq!(bench.propose(3).accepted(), [3]);
    bench.down(second);
    assert_eq!(told(&serve_again(&mut bench, &links, 3, 4, &[])), NOTHING);
    assert_eq!(told(&bench.step(Event::Applied(z(2, 1)))), [(2, None), (3, None)]);
}

#[test]
fn what_was_logged_and_cut_again_is_lost() {
    let (mut bench, links, link) = asked(&[1]);
    bench.receive(link, Packet::Proposal(of(1, z(2, 1))));
    bench.persisted();
    bench.down(link);
    let peer_epoch = bench.status().current_epoch.0;
    bench.lose_again(&[links[1], links[0]], 2, peer_epoch, z(2, 1).0);
    let (link, _) = bench.reach(2);
    bench.receive(link, leader_info(3));
    bench.persisted();
    bench.receive(link, Packet::Trunc(z(1, 3)));
    bench.receive(link, new_leader(3));
    bench.persisted();
    assert_eq!(told(&bench.receive(link, Packet::UpToDate)), [(1, None)]);
}

/// The transaction may be in the snapshot, which does not tell. On the version before this one it was called lost
/// where the application had not yet applied what an earlier leader had inherited.
#[test]
fn a_snapshot_does_not_tell_who_asked() {
    for slow in [false, true] {
        let (mut bench, links, link) = asked(&[1]);
        bench.down(link);
        let inherited = [of(1, z(2, 1)), of(9, z(2, 2))];
        if slow {
            assert_eq!(told(&serve_again(&mut bench, &links, 2, 3, &inherited)), NOTHING);
            let second = bench.boundary.up.keys().next_back().copied().expect("the link to 2");
            bench.down(second);
        }
        let epoch = if slow { 4 } else { 3 };
        let (peer_epoch, label) = (bench.status().current_epoch.0, z(epoch - 1, 5));
        bench.lose_again(&links, 3, peer_epoch, label.0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(epoch));
        bench.persisted();
        bench.receive(link, Packet::Snap { label, memberships: bytes::Bytes::new() });
        bench.step(Event::restored(link));
        bench.receive(link, new_leader(epoch));
        bench.persisted();
        let seen = bench.receive(link, Packet::UpToDate);
        assert_eq!(told(&seen), NOTHING, "the application has not taken it over");
        // What it was at when the snapshot was installed.
        assert_eq!(told(&bench.step(Event::Applied(z(1, 3)))), NOTHING);
        let seen = bench.step(Event::Applied(label));
        assert_eq!(told(&seen), [(1, Some(UnknownOutcome::Snapshot))], "slow: {slow}");
    }
}

/// A leader's own requests are logged when they are accepted.
#[test]
fn a_leader_that_leads_again_still_has_what_it_logged() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), disk(1, 1, z(1, 0).0));
    let links = bench.win(&[1, 2]);
    let two = bench.establish(2);
    bench.propose(1);
    assert_eq!(bench.prepared().accepted(), [1]);
    bench.persisted();
    let seen = bench.ms(20_000);
    assert!(seen.left().is_some() || bench.down(two).left().is_some() || !bench.status().serving);
    assert_eq!(told(&seen), NOTHING);
    let again = bench.win_again(&links);
    assert_eq!(told(&again), NOTHING);
    bench.establish(2);
    let committed = bench.delivered();
    assert_eq!(committed.epoch().0, 2);
    let seen = bench.step(Event::Applied(committed));
    assert_eq!(told(&seen), NOTHING, "it has its reply");
    let id = RequestId { client: 7, cxid: 1 };
    assert!(!bench.said.contains(&Output::Lost(id)));
}
