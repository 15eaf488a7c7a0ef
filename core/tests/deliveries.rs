//! What the application gets: in order, no more than it can take, and whatever else it is to do in its turn.

use crate::support::*;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::LinkId;
use quorate_core::input::{Event, Unreadable};
use quorate_core::message::Packet;
use quorate_core::output::Output;
use quorate_core::reasons::Fault;
use quorate_core::zxid::Zxid;

/// Epoch and counter.
fn of(zxid: Zxid) -> String {
    format!("{}.{}", zxid.epoch().0, zxid.counter().0)
}

/// What the application gets, and what is told of service and of reads.
fn got(seen: &Seen) -> Vec<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is not for the application")]
    let got = seen.0.iter().filter_map(|output| match output {
        Output::Deliver(txn) => Some(format!("deliver {}", of(txn.zxid))),
        Output::Adopt { label } => Some(format!("adopt {}", of(*label))),
        Output::Replay { after, through } => {
            Some(format!("replay {} to {}", of(*after), of(*through)))
        }
        Output::SendSnapshot { label, staged: true, .. } => {
            Some(format!("send the other {}", of(*label)))
        }
        Output::SendSnapshot { label, staged: false, .. } => Some(format!("send {}", of(*label))),
        Output::Answer(_) => Some("answer".to_owned()),
        Output::Serving { .. } => Some("serving".to_owned()),
        Output::Retired => Some("retired".to_owned()),
        _ => None,
    });
    got.collect()
}

/// Server 1 follows 3 in epoch 1 with an application that says nothing by itself; each transaction takes 40 bytes.
fn follows(window: usize, bytes: usize) -> (Bench, LinkId) {
    let limits = |config: &mut Config| {
        (config.history.window_count, config.history.delivery_bytes) = (window, bytes);
    };
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), Durable::default(), limits);
    bench.lose(3, &[2], 0, 0);
    let link = bench.serve(3, 1);
    bench.slow = true;
    (bench, link)
}

/// Transactions of epoch 1 are proposed, durable and committed; what the application gets meanwhile.
fn commits(bench: &mut Bench, link: LinkId, first: u32, last: u32) -> Vec<String> {
    let before = bench.said.len();
    for counter in first..=last {
        bench.receive(link, Packet::Proposal(entry(z(1, counter))));
        bench.persisted();
        bench.receive(link, Packet::Commit(z(1, counter)));
    }
    got(&Seen(bench.said[before..].to_vec()))
}

fn applied(bench: &mut Bench, counter: u32) -> Vec<String> {
    got(&bench.step(Event::Applied(z(1, counter))))
}

const NONE: [&str; 0] = [];

#[test]
fn a_slow_application_is_handed_no_more_than_its_bound_and_the_rest_in_order() {
    let (mut bench, link) = follows(500, 100);
    assert_eq!(commits(&mut bench, link, 1, 6), ["deliver 1.1", "deliver 1.2"]);
    assert_eq!(applied(&mut bench, 1), ["deliver 1.3"]);
    assert_eq!(applied(&mut bench, 1), NONE, "it is said once");
    assert_eq!(applied(&mut bench, 3), ["deliver 1.4", "deliver 1.5"]);
    assert_eq!(applied(&mut bench, 5), ["deliver 1.6"]);
    assert_eq!(commits(&mut bench, link, 7, 7), ["deliver 1.7"]);
}

#[test]
fn one_transaction_is_handed_out_however_long_it_is() {
    let (mut bench, link) = follows(500, 1);
    assert_eq!(commits(&mut bench, link, 1, 2), ["deliver 1.1"]);
    assert_eq!(applied(&mut bench, 1), ["deliver 1.2"]);
}

#[test]
fn what_memory_has_no_room_for_is_replayed_from_the_log() {
    let (mut bench, link) = follows(2, 100);
    let first = commits(&mut bench, link, 1, 9);
    assert_eq!(first, ["deliver 1.1", "deliver 1.2", "replay 1.2 to 1.4"], "two are kept");
    assert_eq!(applied(&mut bench, 2), NONE);
    assert_eq!(commits(&mut bench, link, 10, 10), NONE, "it reads the log");
    let replayed = |through| Event::Replayed { through: z(1, through), outcome: Ok(()) };
    assert_eq!(got(&bench.step(replayed(4))), ["replay 1.4 to 1.9"]);
    assert_eq!(got(&bench.step(replayed(9))), ["deliver 1.10"]);
}

#[test]
fn a_read_is_answered_behind_what_was_held_back_before_it() {
    let (mut bench, link) = follows(500, 100);
    commits(&mut bench, link, 1, 3);
    bench.read();
    assert_eq!(got(&bench.receive(link, Packet::Sync { tag: 0 })), NONE);
    assert_eq!(applied(&mut bench, 2), ["deliver 1.3", "answer"]);
}

/// Each stretch of the log costs an application that is behind, so reads do not cut it up.
#[test]
fn answers_that_stand_in_a_stretch_of_the_log_come_behind_it_in_their_order() {
    let (mut bench, link) = follows(2, 100);
    commits(&mut bench, link, 1, 9);
    applied(&mut bench, 2);
    for counter in [11, 13, 15] {
        let (read, _) = bench.read();
        assert_eq!(got(&bench.receive(link, Packet::Sync { tag: 0 })), NONE, "{read}");
        commits(&mut bench, link, counter - 1, counter);
    }
    let replayed = |through| Event::Replayed { through: z(1, through), outcome: Ok(()) };
    assert_eq!(got(&bench.step(replayed(4))), ["replay 1.4 to 1.14"]);
    assert_eq!(bench.step(replayed(14)).answers(), [1, 2, 3]);
}

#[test]
fn a_log_that_cannot_be_read_on_stops_the_server() {
    let (mut bench, link) = follows(2, 100);
    commits(&mut bench, link, 1, 9);
    applied(&mut bench, 2);
    let seen = bench.step(Event::Replayed { through: z(1, 4), outcome: Err(Unreadable) });
    assert_eq!(seen.halted(), Some(Fault::Unreadable { after: z(1, 4) }));
}

/// What it inherited is longer than its window.
fn replays_at_start() -> Durable {
    let mut durable = stored(1, 1, Zxid::ZERO, entries(1, 1, 9));
    durable.window = durable.window.split_off(5);
    durable
}

#[test]
fn service_is_told_behind_what_was_inherited_and_not_at_all_if_it_is_over_by_then() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), replays_at_start());
    bench.slow = true;
    bench.lose(3, &[2], 1, z(1, 9).0);
    let before = bench.said.len();
    let link = bench.serve(3, 2);
    let told = Seen(bench.said[before..].to_vec());
    assert_eq!(got(&told), ["replay 0.0 to 1.6"], "before anything else");
    assert_eq!(got(&bench.down(link)), NONE, "neither that it serves nor that it does no more");
    let seen = bench.step(Event::Replayed { through: z(1, 6), outcome: Ok(()) });
    assert_eq!(got(&seen), ["deliver 1.7", "deliver 1.8", "deliver 1.9"]);
}

#[test]
fn where_the_window_is_the_whole_log_nothing_is_read() {
    let durable = Durable { window_is_whole: true, ..stored(1, 1, Zxid::ZERO, entries(1, 1, 3)) };
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), durable);
    bench.lose(3, &[2], 1, z(1, 3).0);
    let before = bench.said.len();
    bench.serve(3, 2);
    let told = Seen(bench.said[before..].to_vec());
    assert_eq!(got(&told), ["deliver 1.1", "deliver 1.2", "deliver 1.3", "serving"]);
}

#[test]
fn a_state_kept_apart_is_adopted_when_all_of_it_is_committed() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), stored(1, 1, z(1, 5), entries(1, 6, 7)));
    bench.lose(3, &[2], 1, z(1, 7).0);
    let before = bench.said.len();
    bench.serve(3, 2);
    let told = Seen(bench.said[before..].to_vec());
    assert_eq!(got(&told), ["adopt 1.5", "deliver 1.6", "deliver 1.7", "serving"]);
}

#[test]
fn a_prospective_leader_sends_the_state_that_it_keeps_apart() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), stored(1, 1, z(1, 5), vec![]));
    bench.win(&[1, 2]);
    let (link, _) = bench.follower(1, 1);
    bench.persisted();
    bench.receive(link, ack_epoch(0, 0));
    let before = bench.said.len();
    if bench.boundary.locating.front().is_some() {
        bench.located(link, dear(quorate_core::input::Place::BelowFloor));
    }
    let told = got(&Seen(bench.said[before.saturating_sub(40)..].to_vec()));
    assert!(told.contains(&"send the other 1.5".to_owned()), "{told:?}");
}

#[test]
fn a_snapshot_for_a_learner_that_has_gone_meanwhile_is_not_sent() {
    let limits = |config: &mut Config| config.history.delivery_bytes = 1;
    let durable = stored(1, 1, z(1, 5), entries(1, 6, 7));
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), durable, limits);
    bench.win(&[1, 2]);
    bench.slow = true;
    bench.establish(1);
    let (link, _) = bench.follower(2, 1);
    bench.receive(link, ack_epoch(0, 0));
    if bench.boundary.locating.front().is_some() {
        bench.located(link, dear(quorate_core::input::Place::BelowFloor));
    }
    bench.down(link);
    let seen = [z(1, 5), z(1, 6), z(1, 7)].map(|zxid| got(&bench.step(Event::Applied(zxid))));
    assert!(!seen.concat().iter().any(|what| what.starts_with("send")), "{seen:?}");
}
