//! Acknowledgements are counted without a gap, so there must be none: whatever a learner was sent is
//! acknowledged or known to be covered, on both sides of the link.

use std::time::Duration;

use crate::support::*;
use quorate_core::config::HistoryLimits;
use quorate_core::input::{Located, Place};
use quorate_core::message::Packet;
use quorate_core::zxid::{Counter, Epoch, Zxid};

fn zxid(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

/// A PROPOSAL came before NEWLEADER, its COMMIT after: the leader did not count it as covered by the
/// acknowledgement of NEWLEADER, so the learner acknowledges it by itself.
#[test]
fn what_is_committed_between_newleader_and_uptodate_is_acknowledged() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), stored(1, 1, Zxid::ZERO, entries(1, 1, 2)));
    bench.lose(3, &[2, 3], 1, zxid(1, 2).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Diff(zxid(1, 2)));
    bench.receive(link, Packet::Proposal(entry(zxid(2, 1))));
    bench.receive(link, new_leader(2));
    bench.receive(link, Packet::Commit(zxid(2, 1)));
    assert_eq!(bench.persisted().packets(link), [ack(2)]);
    bench.receive(link, Packet::UpToDate);
    bench.persisted();
    let acks =
        bench.said.iter().filter(|said| format!("{said:?}").contains("Ack(Zxid(8589934593))"));
    assert_eq!(acks.count(), 1, "acknowledged once, when it is durable");
}

/// What a follower was sent before NEWLEADER and is committed by then is not owed: it was hung up for
/// that when the time had passed.
#[test]
fn nothing_is_owed_that_the_acknowledgement_of_newleader_covers() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), disk(0, 0, 0));
    bench.win(&[1, 2]);
    let first = bench.establish(1);
    let (second, _) = bench.follower(2, 0);
    bench.write(2);
    bench.persisted();
    bench.receive(first, Packet::Ack(zxid(1, 1)));
    bench.receive(first, Packet::Ack(zxid(1, 2)));
    assert_eq!(bench.delivered(), zxid(1, 2));
    let seen = bench.receive(second, ack_epoch(0, zxid(1, 1).0));
    assert_eq!(
        seen.handed(second).len(),
        4,
        "DIFF, a transaction, its COMMIT, NEWLEADER: {seen:?}"
    );
    bench.receive(second, ack(1));
    for _ in 0..40 {
        bench.wait(Duration::from_millis(1500));
        for link in [first, second] {
            assert!(bench.is_up(link), "it owes nothing");
            bench.receive(link, pong(1));
        }
    }
}

/// A follower acknowledges the first transactions of a part of the log while the driver still sends the
/// rest: they count.
#[test]
fn acknowledgements_that_come_while_the_log_is_streamed_count() {
    let history = HistoryLimits { window_count: 1, delivery_bytes: 1, ..HistoryLimits::default() };
    let durable = stored(1, 1, Zxid::ZERO, entries(1, 1, 2));
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), durable, |c| c.history = history);
    bench.win(&[1, 2]);
    let first = bench.establish(1);
    bench.write(3);
    bench.persisted();
    let (second, _) = bench.follower(2, 2);
    bench.receive(second, ack_epoch_again(zxid(1, 2).0));
    let place = Place::Held;
    bench.located(second, Located { place, log_bytes: 1, snapshot_bytes: 1000 });
    assert!(!bench.peer.status().learners.is_empty());
    bench.receive(second, Packet::Ack(zxid(2, 1)));
    let seen = bench.streamed(second);
    assert!(seen.names(second).contains(&"NEWLEADER"), "{seen:?}");
    bench.receive(second, ack(2));
    bench.receive(second, Packet::Ack(zxid(2, 2)));
    bench.down(first);
    bench.receive(second, Packet::Ack(zxid(2, 3)));
    assert_eq!(bench.delivered(), zxid(2, 3), "all three are on a quorum of disks");
}

/// No follower that follows the protocol does so; of one that does, nothing counts that an earlier one is missing of.
#[test]
fn acknowledgements_ahead_of_their_turn_wait_for_every_one_that_is_missing() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), disk(0, 0, 0));
    bench.win(&[1, 2]);
    let link = bench.establish(1);
    bench.write(5);
    bench.persisted();
    let acknowledged = [(3, 0), (5, 0), (2, 0), (1, 3), (4, 5)];
    for (counter, through) in acknowledged {
        bench.receive(link, Packet::Ack(zxid(1, counter)));
        let delivered = bench.delivered();
        assert_eq!(delivered.max(zxid(1, 0)), zxid(1, through), "after that of {counter}");
    }
}
