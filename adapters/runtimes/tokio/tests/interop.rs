//! One election, two implementations: quorate beside Java ZooKeeper servers, over the network.
//!
//! What is asserted is the election: the Java servers' own status, quorate's own status, and what each
//! server answers a non-member on its election port name one leader, and no epoch has two.
//!
//! Needs Debian's `zookeeper` and a Java runtime; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "how long elections took, and why a test was skipped")]

use crate::java;
use std::time::Instant;

use crate::common::within;
use crate::mixed::{Java, Kind, Mixed, Quorate, TICK, established};
use quorate_core::id::ServerId;
use quorate_core::zxid::Epoch;

/// Starts three servers of these kinds in different orders, each time from nothing.
async fn elects_in_any_order(kinds: [Kind; 3]) {
    if !java::available() {
        return;
    }
    let begun = Instant::now();
    let mut mixed = Mixed::new(&kinds);
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed(&format!("{kinds:?} at once")).await;
    println!("{kinds:?} at once: {leader} after {:?}", begun.elapsed());
    drop(mixed);

    for order in [[1, 2, 3], [3, 2, 1], [3, 1, 2]] {
        let story = format!("{kinds:?} in the order {order:?}");
        let begun = Instant::now();
        let (mixed, leader) = established(kinds, order).await;
        assert_eq!(leader.0, order[0].max(order[1]), "{story}: the larger id of two empty servers");
        println!("{story}: {leader} after {:?}", begun.elapsed());
        drop(mixed);
    }
}

#[tokio::test]
async fn two_java_servers_and_a_small_quorate_one() {
    elects_in_any_order([Quorate, Java, Java]).await;
}

#[tokio::test]
async fn two_java_servers_and_a_quorate_one_between() {
    elects_in_any_order([Java, Quorate, Java]).await;
}

#[tokio::test]
async fn two_java_servers_and_a_large_quorate_one() {
    elects_in_any_order([Java, Java, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_small_java_one() {
    elects_in_any_order([Java, Quorate, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_between() {
    elects_in_any_order([Quorate, Java, Quorate]).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_large_java_one() {
    elects_in_any_order([Quorate, Quorate, Java]).await;
}

#[tokio::test]
async fn a_quorate_leader_keeps_its_java_followers_and_they_go_on_without_it() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Java, Java, Quorate], [3, 2, 1]).await;
    assert_eq!(leader, ServerId(3));
    let (before, epoch) = mixed.quorate(leader).leader().unwrap();

    // Pings both ways, for more than twice the silence that either side would bear.
    let mut leaders = mixed.quorate(leader).leaders();
    assert_eq!(within("the present one", leaders.next()).await, Some(Some((before, epoch))));
    let change = tokio::time::timeout(12 * TICK, leaders.next()).await;
    assert!(change.is_err(), "the leader changed: {change:?}");
    assert_eq!(mixed.agreed("after 12 ticks").await, leader);
    let leaderships = mixed.quorate(leader).status().peer.learners.clone();
    assert!(
        leaderships.len() == 2 && leaderships.iter().all(|leadership| leadership.synced),
        "{leaderships:?}"
    );

    let begun = Instant::now();
    mixed.kill(leader).await;
    let next = mixed.agreed("without the quorate leader").await;
    println!("two Java servers without their quorate leader: {next} after {:?}", begun.elapsed());
    mixed.start(leader).await;
    assert_eq!(mixed.agreed("with the quorate server back").await, next);
}

#[tokio::test]
async fn a_java_follower_sees_quorate_leaders_come_and_go() {
    if !java::available() {
        return;
    }
    let (mut mixed, mut leader) = established([Java, Quorate, Quorate], [3, 2, 1]).await;
    let mut epoch = Epoch::ZERO;
    for _ in 0..4 {
        let now = mixed.quorate(leader).leader().unwrap().1;
        assert!(now > epoch, "{now} after {epoch}");
        epoch = now;
        let begun = Instant::now();
        mixed.kill(leader).await;
        let next = mixed.agreed("without the leader").await;
        println!("from {leader} to {next} in {:?}", begun.elapsed());
        mixed.start(leader).await;
        assert_eq!(mixed.agreed("with the old leader back").await, next);
        leader = next;
        if mixed.kinds[&leader] == Java {
            break;
        }
    }
}

#[tokio::test]
async fn quorate_servers_go_on_without_their_java_leader() {
    if !java::available() {
        return;
    }
    let (mut mixed, leader) = established([Quorate, Quorate, Java], [3, 2, 1]).await;
    assert_eq!(leader, ServerId(3));
    let begun = Instant::now();
    mixed.kill(leader).await;
    let next = mixed.agreed("without the Java leader").await;
    println!("two quorate servers without their Java leader: {next} after {:?}", begun.elapsed());
}
