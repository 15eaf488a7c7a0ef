//! A vote that changes nothing costs no memory: counted by an allocator, not guessed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::election::{Elector, ElectorConfig, ElectorEvent};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Notification};
use quorate_core::peer::Peer;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
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
        });
        let mut outputs = Vec::with_capacity(8);
        elector.step_into(Instant(1), ElectorEvent::Look(vote(1)), &mut outputs);
        let (from, standing) = (ServerId(voters), looking(vote(voters)));
        let heard = ElectorEvent::Heard { from, standing, versioned: true };
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
        let message =
            Notification { standing: looking(vote(5)), version: Notification::VERSION, config };
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
