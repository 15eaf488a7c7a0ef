//! A vote that changes nothing costs no memory, nor does a transaction on its way: counted by an
//! allocator, not guessed.
#![cfg(not(miri))] // thousands of transactions each, of which other tests have some

use std::time::Duration;

use crate::support::{Bench, ack, ack_epoch, ensemble, entry, txn, z};
use bytes::{Bytes, BytesMut};
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::election::{Elector, ElectorConfig, ElectorEvent};
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Mark, Message, Notification, Packet, Run};
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, TxnHeader};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};

fn allocations(act: impl FnOnce()) -> u64 {
    allocation_counter::measure(act).count_total
}

fn vote(leader: i64) -> Vote {
    Vote { peer_epoch: Epoch::ZERO, zxid: Zxid::ZERO, leader: ServerId(leader) }
}

const fn looking(vote: Vote) -> Standing {
    Standing { state: ServerState::Looking, vote, round: Round(1) }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn an_elector_hears_the_same_vote_without_allocating() {
    for voters in [3, 255] {
        let mut elector = Elector::new(ElectorConfig {
            id: ServerId(1),
            observer: false,
            quorum: Quorum::majority((1..=voters).map(ServerId)),
            notification_min: Duration::from_millis(200),
            notification_max: Duration::from_secs(60),
            finalize_wait: Duration::from_millis(200),
            finish_when_settled: true,
            may_change: false,
        });
        let mut outputs = Vec::with_capacity(8);
        elector.step_into(Instant(1), ElectorEvent::Look(vote(1)), &mut outputs);
        let (from, standing) = (ServerId(voters), looking(vote(voters)));
        let heard = ElectorEvent::Heard { from, standing, versioned: true, at_once: true };
        elector.step_into(Instant(1), heard, &mut outputs);
        outputs.clear();
        let count = allocations(|| {
            for _ in 0..1_000 {
                elector.step_into(Instant(1), heard, &mut outputs);
            }
        });
        assert_eq!((count, outputs.len()), (0, 0), "{voters} voters");
    }
}

/// From the bytes of a frame, with the configuration text that ZooKeeper always sends, to the step of
/// the whole server. The text is kept as a slice of the buffer that it was read into; the buffer is
/// the reader's, and is paid for by the read, not by the vote.
#[test]
fn a_server_decodes_and_hears_the_same_vote_without_allocating() {
    let lines: String =
        (1..=5).map(|id| format!("server.{id}=host{id}:2888:3888:participant\n")).collect();
    let membership = Membership::parse(lines + "version=0").unwrap();
    let text = membership.text().clone();
    let mut peer = Peer::new(Config::new(ServerId(1), membership), Durable::default()).unwrap();
    let mut outputs = Vec::with_capacity(64);
    let mut step = |event, outputs: &mut Vec<_>| {
        outputs.clear();
        peer.step_into(Input { at: Instant(1), event }, outputs);
    };
    step(Event::Tick, &mut outputs);
    let (link, plane) = (LinkId(1), Plane::Election);
    let up = LinkUp {
        link,
        plane,
        dialled: false,
        peer: Some(ServerId(5)),
        advertised: None,
        remote: None,
    };
    step(Event::LinkUp(up), &mut outputs);

    for config in [Bytes::new(), text] {
        let message = Notification {
            standing: looking(vote(5)),
            version: Notification::VERSION,
            config,
            mark: Mark::SETTLES_AT_ONCE,
        };
        let mut frames = BytesMut::new();
        for _ in 0..1_001 {
            wire::encode_notification(&message, &mut frames);
        }
        let mut hear = |frames: &mut BytesMut| {
            let message = wire::take_notification(frames).unwrap().unwrap();
            step(Event::Received { link, message: Message::Notification(message) }, &mut outputs);
        };
        // The first makes its vote ours; and the buffer becomes one that slices can share.
        hear(&mut frames);
        let count = allocations(|| {
            for _ in 0..1_000 {
                hear(&mut frames);
            }
        });
        assert_eq!(count, 0);
        assert!(frames.is_empty());
    }
}

/// What so many steps cost, each with these inputs; what is said is thrown away.
fn steps(peer: &mut Peer, now: Instant, inputs: impl Iterator<Item = Event>) -> u64 {
    let mut outputs = Vec::with_capacity(64);
    let inputs: Vec<_> = inputs.collect();
    allocations(|| {
        for event in inputs {
            step(peer, now, event, &mut outputs);
        }
    })
}

/// A step, and what its application says of it, which is quick.
fn step(peer: &mut Peer, at: Instant, event: Event, outputs: &mut Vec<Output>) {
    outputs.clear();
    peer.step_into(Input { at, event }, outputs);
    let delivered = outputs.iter().rev().find_map(|output| {
        let Output::Deliver(txn) = output else { return None };
        Some(txn.zxid)
    });
    if let Some(zxid) = delivered {
        outputs.clear();
        peer.step_into(Input { at, event: Event::Applied(zxid) }, outputs);
    }
}

const fn packet(link: LinkId, packet: Packet) -> Event {
    Event::Received { link, message: Message::Packet(packet) }
}

/// A follower that serves in epoch 1, whose window is full; the link to its leader.
fn follower() -> (Bench, LinkId) {
    let few = |config: &mut Config| config.history.window_count = 64;
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), Durable::default(), few);
    bench.lose(3, &[2], 0, 0);
    let link = bench.serve(3, 1);
    for counter in 1..=200 {
        bench.receive(link, Packet::Proposal(entry(z(1, counter))));
        bench.persisted();
        bench.receive(link, Packet::Commit(z(1, counter)));
    }
    (bench, link)
}

/// The first ticket that it will hand out next.
fn next_ticket(bench: &Bench) -> u64 {
    let tickets = bench.said.iter().filter_map(|output| {
        let Output::Persist { ticket, .. } = output else { return None };
        Some(ticket.0)
    });
    tickets.max().unwrap_or(0) + 1
}

/// To log a transaction, acknowledge it, and deliver it, one by one.
#[test]
fn a_follower_logs_acknowledges_and_delivers_without_allocating() {
    let (mut bench, link) = follower();
    let ticket = next_ticket(&bench);
    let inputs = (201..1_201_u32).flat_map(|counter| {
        [
            packet(link, Packet::Proposal(txn(z(1, counter).0))),
            Event::Persisted(Ticket(ticket + u64::from(counter - 201))),
            packet(link, Packet::Commit(z(1, counter))),
        ]
    });
    let count = steps(&mut bench.peer, bench.now, inputs);
    assert_eq!(bench.status().last, z(1, 1_200));
    assert_eq!(count, 0, "for 1,000 transactions");
}

/// And together, as they come under load.
#[test]
fn a_follower_takes_a_run_of_transactions_without_allocating() {
    let (mut bench, link) = follower();
    let ticket = next_ticket(&bench);
    let inputs = (0..100_u32).flat_map(|n| {
        let (first, last) = (201 + n * 10, 210 + n * 10);
        let txns: Vec<_> = (first..=last).map(|counter| txn(z(1, counter).0)).collect();
        [
            packet(link, Packet::Proposals(txns.into())),
            Event::Persisted(Ticket(ticket + u64::from(n))),
            packet(link, Packet::Commits(Run { first: z(1, first), last: z(1, last) })),
        ]
    });
    let count = steps(&mut bench.peer, bench.now, inputs);
    assert_eq!(bench.status().last, z(1, 1_200));
    assert_eq!(count, 0, "for 100 times 10 transactions");
}

/// A leader with this many followers, whose window is full; their links.
fn leader(followers: i64) -> (Bench, Vec<LinkId>) {
    let voters: Vec<_> = (1..=followers + 1).collect();
    let few = |config: &mut Config| config.history.window_count = 64;
    let mut bench = Bench::with(followers + 1, &ensemble(&voters), Durable::default(), few);
    bench.win(&voters[..voters.len() - 1]);
    let links: Vec<_> = (1..=followers).map(|id| bench.follower(id, 0).0).collect();
    bench.persisted();
    for packet in [ack_epoch(0, 0), ack(1)] {
        links.iter().for_each(|link| drop(bench.receive(*link, packet.clone())));
        bench.persisted();
    }
    assert!(bench.status().serving);
    for counter in 1..=200 {
        bench.write(1);
        bench.persisted();
        for link in &links {
            bench.receive(*link, Packet::Ack(z(1, counter)));
        }
    }
    assert_eq!(bench.delivered(), z(1, 200));
    (bench, links)
}

/// An acknowledgement, with the COMMIT to all that comes of it.
#[test]
fn a_leader_counts_acknowledgements_and_commits_without_allocating() {
    for followers in [2, 4, 8] {
        let (mut bench, links) = leader(followers);
        bench.write(1_000);
        bench.persisted();
        let inputs = (201..=1_200).flat_map(|counter| {
            links.iter().map(move |link| packet(*link, Packet::Ack(z(1, counter))))
        });
        let count = steps(&mut bench.peer, bench.now, inputs);
        assert_eq!(bench.status().processed, z(1, 1_200));
        assert_eq!(count, 0, "{followers} followers, 1,000 transactions");
    }
}

/// A transaction on its way out costs the list in which the application transfers it, which is the
/// application's, and no more however many followers there are.
#[test]
fn a_leader_proposes_without_allocating() {
    for followers in [2, 4, 8] {
        let (mut bench, links) = leader(followers);
        let ticket = next_ticket(&bench);
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };
        let mut written: Vec<_> =
            (0..1_000).map(|_| vec![Draft { header, body: Bytes::from_static(b"body") }]).collect();
        let mut outputs = Vec::with_capacity(64);
        let (now, peer) = (bench.now, &mut bench.peer);
        let mut step = |event, outputs: &mut Vec<Output>| step(peer, now, event, outputs);
        let count = allocations(|| {
            for n in 0..1_000 {
                let drafts = written.pop().unwrap();
                step(Event::Prepared { epoch: Epoch(1), drafts }, &mut outputs);
                step(Event::Persisted(Ticket(ticket + n)), &mut outputs);
                let zxid = z(1, 201 + u32::try_from(n).unwrap());
                for link in &links {
                    step(packet(*link, Packet::Ack(zxid)), &mut outputs);
                }
            }
        });
        assert_eq!(bench.status().processed, z(1, 1_200));
        assert_eq!(count, 0, "{followers} followers, 1,000 transactions");
    }
}

/// From the bytes of the frames: the buffer is the reader's, and its slices are shared.
#[test]
fn packets_with_transactions_are_decoded_without_allocating_for_each() {
    let mut frames = BytesMut::new();
    for counter in 1..=1_000 {
        wire::encode_packet(&Packet::Proposal(entry(z(1, counter))), &mut frames);
        wire::encode_packet(&Packet::Commit(z(1, counter)), &mut frames);
    }
    let first = wire::take_packet(&mut frames, wire::MAX_DATA).unwrap();
    assert_eq!(first, Some(Packet::Proposal(entry(z(1, 1)))), "now slices can share the buffer");
    let mut taken = 1;
    let count = allocations(|| {
        while wire::take_packet(&mut frames, wire::MAX_DATA).unwrap().is_some() {
            taken += 1;
        }
    });
    assert_eq!((count, taken), (0, 2_000));
}
