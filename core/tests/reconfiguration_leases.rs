//! Leases while the membership changes: what was told of one holds, whoever votes from then on.

use std::time::Duration;

use crate::support::*;
use quorate_core::durable::Durable;
use quorate_core::id::LinkId;
use quorate_core::input::Event;
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Packet, Request};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::report::Reason;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::RequestId;
use quorate_core::vote::ServerState;

const LEASE: Duration = Duration::from_secs(6);

/// A follower comes, one of ours that promises leases or none of ours, and has our history.
#[track_caller]
fn join(bench: &mut Bench, id: i64, ours: bool) -> LinkId {
    let protocol = LearnerInfo::PROTOCOL;
    let protocol = if ours { LearnerInfo::ours(protocol, 0, true) } else { protocol };
    let link = bench.learner();
    let accepted = bench.status().accepted_epoch.0;
    bench.receive(link, Packet::FollowerInfo(LearnerInfo { protocol, ..info(id, accepted) }));
    if bench.status().serving {
        bench.receive(link, ack_epoch_again(bench.delivered().0));
    } else {
        bench.persisted();
        bench.receive(link, ack_epoch(0, 0));
        bench.persisted();
    }
    bench.receive(link, ack(1));
    link
}

/// Server 3 of 1, 2, 3, established with 2; 1 follows it, too, and so does 4, which has no vote. 1 and 2 have
/// promised a lease, and everybody has 1.1.
fn leader(four_is_ours: bool) -> (Bench, [LinkId; 3]) {
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), |config| {
        config.reconfig_enabled = true;
        config.lease = Some(LEASE);
    });
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    let two = join(&mut bench, 2, true);
    let one = join(&mut bench, 1, true);
    let four = join(&mut bench, 4, four_is_ours);
    bench.persisted();
    bench.to(Timer::Ping);
    bench.write(1);
    bench.persisted();
    for link in [one, two, four] {
        promise(&mut bench, link);
        bench.receive(link, Packet::Ack(z(1, 1)));
    }
    assert!(lease(&bench) > Some(bench.now));
    (bench, [one, two, four])
}

/// Until when the leader counts on nobody else being established.
fn lease(bench: &Bench) -> Option<Instant> {
    bench.peer.leadership()?.lease
}

/// Answers the oldest ping with a promise.
#[track_caller]
fn promise(bench: &mut Bench, link: LinkId) -> Seen {
    bench.receive(
        link,
        Packet::Lease { zxid: start(1), length: LEASE, sessions: bytes::Bytes::new() },
    )
}

/// From now on 3 and 4 are to vote.
fn change(bench: &mut Bench) -> Seen {
    let next = Membership::parse(ensemble(&[3, 4])).unwrap();
    let body = Reconfiguration::whole(next).encode();
    let id = RequestId { client: 7, cxid: 9 };
    let request = Request { id, op: Request::RECONFIGURE, body, identities: None };
    bench.step(Event::Propose(request));
    bench.prepared()
}

/// The link of 4 ends when it has been sent the change, and it comes again.
#[test]
fn a_next_voter_that_comes_late_completes_a_change_only_when_it_has_promised_what_was_told() {
    let (mut bench, [one, two, four]) = leader(true);
    change(&mut bench);
    bench.persisted();
    bench.down(four);
    for link in [one, two] {
        promise(&mut bench, link);
        bench.receive(link, Packet::Ack(z(1, 2)));
    }
    bench.ms(100);
    let told = lease(&bench);
    let four = join(&mut bench, 4, true);
    let seen = bench.receive(four, Packet::Ack(z(1, 2)));
    assert_eq!(seen.names(two), [""; 0], "4 has promised nothing");
    assert_eq!(lease(&bench), told);
    let seen = promise(&mut bench, four);
    assert_eq!(seen.names(two), ["COMMITANDACTIVATE"], "it was asked at once");
    assert!(lease(&bench) >= told);
    assert_eq!((bench.status().voters, bench.state()), (2, ServerState::Leading));
}

/// 4 answers each ping only after the others have answered the next one.
#[test]
fn the_lease_waits_for_the_next_voters_and_is_never_taken_back() {
    let (mut bench, [one, two, four]) = leader(true);
    bench.to(Timer::Ping);
    for link in [one, two] {
        promise(&mut bench, link);
    }
    let told = lease(&bench);
    change(&mut bench);
    bench.persisted();
    for link in [one, two] {
        promise(&mut bench, link);
        bench.receive(link, Packet::Ack(z(1, 2)));
    }
    bench.receive(four, Packet::Ack(z(1, 2)));
    bench.to(Timer::Ping);
    for link in [one, two] {
        promise(&mut bench, link);
    }
    assert_eq!((bench.status().voters, lease(&bench)), (4, told), "4 has not promised so much");
    promise(&mut bench, four);
    assert_eq!((bench.status().voters, lease(&bench)), (2, told), "now it has");
    bench.to(Timer::Ping);
    promise(&mut bench, four);
    promise(&mut bench, four);
    assert!(lease(&bench) > told);
}

/// Whoever is no server of ours promises nothing. The change comes to pass, and the leadership is over before anybody
/// hears of it.
#[test]
fn where_the_next_voters_promise_no_leases_the_leadership_ends_with_the_change() {
    let (mut bench, [one, two, four]) = leader(false);
    change(&mut bench);
    bench.persisted();
    for link in [one, two] {
        promise(&mut bench, link);
        bench.receive(link, Packet::Ack(z(1, 2)));
    }
    let seen = bench.receive(four, Packet::Ack(z(1, 2)));
    assert_eq!(seen.names(four), ["COMMITANDACTIVATE"]);
    assert_eq!(lease(&bench), Some(bench.now));
    let seen = bench.to(Timer::Lease);
    assert_eq!(seen.left(), Some(Reason::LeaseOver));
}
