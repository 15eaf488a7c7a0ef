//! What no random run comes across soon: stories that fail where a bug is seeded, and only there.
//!
//! On a [`Stage`] one server is real, and its peers say what those of ours never would; in a [`World`] all
//! are, and an accident comes at the one moment that matters.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::{Config, Election, Generations, Timing};
use quorate_core::generation_message::{Body, Claim, GenerationMessage};
use quorate_core::id::{LinkId, ReleaseId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{LearnerInfo, Packet, Request};
use quorate_core::output::{Output, Write};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::txn::{Draft, RequestId, TxnHeader};
use quorate_core::vote::ServerState::{Following, Leading, Looking};
use quorate_core::vote::{Round, Vote};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::scenario::{Player, Scenario, bundled};
use quorate_sim::stage::{learner_info, says};
use quorate_sim::{Contents, CrashKind, Dialect, Ensemble, Stage, Survival, World, WorldConfig};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// A lease of those stories in which there are any, and a tick.
const LEASE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(400);

/// What a story is told to: nothing, or what should not have happened.
pub(crate) type Told = Result<(), String>;

/// Plays a story of the simulator.
pub(crate) fn played(name: &str) -> Told {
    let story = bundled().iter().find(|story| story.name == name).ok_or("no such story")?;
    let scenario = Scenario::read(name, story.text).map_err(|error| error.to_string())?;
    let mut player = Player::new();
    for step in scenario.steps() {
        player.play(step).1.map_err(|problem| scenario.error(step.line, problem).to_string())?;
    }
    Ok(())
}

fn no(what: bool, happened: &str) -> Told {
    if what { Err(happened.to_owned()) } else { Ok(()) }
}

const fn z(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

// ---- scripted peers ----

/// Server 3 of three, which the others elect in this round; its disk is synced at once.
fn elect(stage: &mut Stage, links: &[LinkId], round: i64) {
    let (current, last) = (stage.durable().current_epoch.0, stage.durable().last());
    for link in links {
        stage.hear(*link, says(Looking, 3, current, last.0, round));
    }
    assert_eq!(stage.status().state, Leading);
}

/// Server 1 learns from it, and its history is a quorum's; on which link.
fn establish(stage: &mut Stage) -> LinkId {
    let (current, last) = (stage.durable().current_epoch.0, stage.durable().last());
    let link = stage.accept(Plane::Quorum, 0);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    stage.hear(link, Packet::FollowerInfo(LearnerInfo { protocol, ..learner_info(1, current) }));
    stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(current)) });
    let epoch = stage.status().current_epoch;
    stage.hear(link, Packet::Ack(Zxid::start_of(epoch)));
    assert!(stage.status().serving);
    stage.hear(link, Packet::MayLead(true));
    stage.asked();
    link
}

/// A leader in epoch 2, and its links: one with server 1 as its learner, and those for elections.
fn leader(change: impl FnOnce(&mut Config)) -> (Stage, LinkId, Vec<LinkId>) {
    let own = Contents::ending(1, 1, z(1, 3));
    let mut stage = Stage::with(&Ensemble::majority(3), 3, own, change);
    // A server that starts may have promised a lease just before.
    stage.pass(LEASE);
    let links: Vec<_> = [1, 2].into_iter().map(|peer| stage.meet(peer)).collect();
    elect(&mut stage, &links, 1);
    let learner = establish(&mut stage);
    (stage, learner, links)
}

fn leased(config: &mut Config) {
    config.timing = Timing { tick: TICK, ..Timing::default() };
    config.lease = Some(LEASE);
}

/// A voter that has more than its leader says so when it promises the epoch (random histories need some
/// five hundred seeds to come to this).
pub(crate) fn a_voter_has_more_than_it_said() -> Told {
    let mut stage = Stage::new(&Ensemble::majority(3), 3, Contents::ending(2, 2, z(2, 6)));
    let links: Vec<_> = [1, 2].into_iter().map(|peer| stage.meet(peer)).collect();
    elect(&mut stage, &links, 1);
    let learner = stage.accept(Plane::Quorum, 0);
    stage.hear(learner, Packet::FollowerInfo(learner_info(1, 2)));
    stage.hear(learner, Packet::AckEpoch { last: z(2, 7), current_epoch: Some(Epoch(2)) });
    no(!stage.is_looking(), "it leads on, with less")
}

/// The others say who leads, and have cast their votes for it at different times (ZOOKEEPER-1732).
pub(crate) fn settled_votes_differ() -> Told {
    let mut stage = Stage::new(&Ensemble::majority(3), 1, Contents::ending(2, 2, z(2, 1)));
    let two = stage.meet(2);
    stage.hear(two, says(Following, 3, 2, z(2, 7).0, 9));
    let three = stage.meet(3);
    stage.hear(three, says(Leading, 3, 2, z(2, 1).0, 4));
    no(stage.is_looking(), "it does not join those who agree")
}

/// All vote alike, and one hears it who proposes nobody.
pub(crate) fn an_observer_hears_an_election() -> Told {
    let ensemble = Ensemble::majority(3).with_observers([4]);
    let mut stage = Stage::new(&ensemble, 4, Contents::default());
    for peer in 1..=3 {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, 0, 0, 1));
    }
    stage.pass(SECOND);
    no(stage.is_looking(), "it proposes nobody, and finds nobody better")
}

/// A follower acknowledges what comes next before it is sent.
pub(crate) fn acknowledged_before_it_is_sent() -> Told {
    let (mut stage, learner, _) = leader(|_| {});
    stage.hear(learner, Packet::Ack(z(2, 1)));
    stage.write();
    no(stage.delivered().is_some(), "what only the leader has is committed")
}

/// A follower acknowledges the second of two, and not the first.
pub(crate) fn acknowledged_out_of_turn() -> Told {
    let (mut stage, learner, _) = leader(|_| {});
    stage.write();
    stage.write();
    stage.hear(learner, Packet::Ack(z(2, 2)));
    no(stage.delivered().is_some(), "what only the leader has is committed")
}

/// A preparation of one leadership ends in the next.
pub(crate) fn prepared_for_an_earlier_leadership() -> Told {
    let (mut stage, learner, links) = leader(|_| {});
    let id = RequestId { client: 1, cxid: 1 };
    let body = Bytes::from_static(b"write");
    let request = Request { id, op: 5, body: body.clone(), identities: None };
    stage.feed(Event::Propose(request));
    stage.close(learner);
    stage.pass(30 * SECOND);
    assert!(stage.is_looking(), "nobody follows it");
    let round = stage.status().round.0;
    elect(&mut stage, &links, round);
    establish(&mut stage);
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: 5 };
    stage.feed(Event::Prepared { epoch: Epoch(2), drafts: vec![Draft { header, body }] });
    let appends =
        |output: &Output| matches!(output, Output::Persist { write: Write::Append(_), .. });
    no(stage.asked().iter().any(appends), "it is proposed")
}

fn promise(stage: &mut Stage, learner: LinkId) {
    let zxid = z(2, 0);
    stage.hear(learner, Packet::Lease { zxid, length: LEASE, sessions: Bytes::new() });
}

/// A promise is answered when it is over.
pub(crate) fn promise_answered_late() -> Told {
    let (mut stage, learner, _) = leader(leased);
    stage.pass(LEASE - 10 * MILLI);
    promise(&mut stage, learner);
    let counts = stage.leadership().is_some_and(|leadership| leadership.lease.is_some());
    no(counts, "it counts on a promise that may be over")
}

/// Nobody promises again.
pub(crate) fn promise_on_a_slower_clock() -> Told {
    let (mut stage, learner, _) = leader(leased);
    promise(&mut stage, learner);
    stage.pass(LEASE - LEASE / 20);
    no(stage.status().serving, "it counts on a promise that may be over on a faster clock")
}

/// A leader hangs up on the follower that has promised, and that is free thereby.
pub(crate) fn hung_up_after_a_promise() -> Told {
    let (mut stage, learner, _) = leader(leased);
    promise(&mut stage, learner);
    stage.hear(learner, Packet::UpToDate);
    assert!(stage.hang_up_of(learner).is_some(), "that is out of turn");
    stage.pass(MILLI);
    no(stage.status().serving, "it counts on a promise that is given back")
}

/// There are five numbers in an epoch.
pub(crate) fn the_numbers_of_an_epoch_end() -> Told {
    let (mut stage, learner, _) = leader(|config| config.history.epoch_count = 5);
    for counter in 1..=5 {
        stage.write();
        stage.hear(learner, Packet::Ack(z(2, counter)));
    }
    assert_eq!(stage.durable().last(), z(2, 5));
    stage.write();
    no(stage.durable().last() > z(2, 5), "a transaction has a number that there is not")
}

/// Somebody asks for the leadership to be handed over while a transaction is not acknowledged.
pub(crate) fn asked_to_transfer_while_it_proposes() -> Told {
    let (mut stage, learner, _) = leader(|_| {});
    stage.write();
    stage.feed(Event::TransferLeadership(Some(ServerId(1))));
    stage.feed(Event::Released(ReleaseId(1)));
    let offers = |stage: &mut Stage| {
        let sent = stage.packets(learner);
        sent.iter().any(|packet| matches!(packet, Packet::Transfer { .. }))
    };
    no(offers(&mut stage), "the leadership is offered to one that may lack what is proposed")?;
    stage.hear(learner, Packet::Ack(z(2, 1)));
    no(!offers(&mut stage), "the leadership is not offered")
}

/// A follower is given the leadership of a leader that has more than it has.
pub(crate) fn given_a_leadership_with_less() -> Told {
    let mut stage = Stage::new(&Ensemble::majority(3), 1, Contents::ending(1, 1, z(1, 3)));
    for peer in [2, 3] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, 1, z(1, 3).0, 1));
    }
    stage.pass(SECOND);
    let link = stage.answer(Plane::Quorum, 3);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    stage.hear(link, Packet::LeaderInfo { epoch: Epoch(2), protocol });
    stage.hear(link, Packet::Diff(z(1, 3)));
    stage.hear(link, Packet::NewLeader { zxid: z(2, 0), config: Bytes::new() });
    stage.hear(link, Packet::UpToDate);
    assert!(stage.status().serving);
    let vote = Vote { peer_epoch: Epoch(2), zxid: z(2, 1), leader: ServerId(1) };
    stage.hear(link, Packet::Transfer { vote, round: Round(2) });
    no(stage.status().state == Leading, "it leads without what was committed")
}

// ---- accidents at the one moment ----

/// Server 2 has lost its disk and knows it; 3 lags behind; 1, which has everything, is down.
pub(crate) fn a_lost_disk_and_one_that_lags() -> Told {
    let config = WorldConfig { keep_log: false, ..WorldConfig::new(Ensemble::majority(3)) };
    let config = config
        .with_disk(1, Contents::ending(1, 1, z(1, 5)))
        .with_disk(2, Contents::unmarked())
        .with_disk(3, Contents::ending(1, 1, z(1, 1)));
    let mut world = World::new(1, config);
    world.start_all([2, 3]);
    let led = world.run_until(|world| world.leader().is_some(), 10 * SECOND);
    no(led.map_err(|violation| violation.to_string())?.is_some(), "they lead without 1.5")
}

fn world(seed: u64, servers: i64, change: impl FnOnce(&mut WorldConfig)) -> World {
    let mut config = WorldConfig {
        timing: Timing { tick: TICK, ..Timing::default() },
        keep_log: false,
        ..WorldConfig::new(Ensemble::majority(servers))
    };
    change(&mut config);
    let mut world = World::new(seed, config);
    world.survival(Survival::Everything);
    world.start_all(1..=servers);
    let settled = world.run_until(World::is_settled, 10 * SECOND).unwrap();
    assert!(settled.is_some(), "all follow");
    world.run_for(SECOND).unwrap();
    world
}

/// A leader stands still, and what it was promised is not over; `act` is what becomes of its followers.
fn leader_stalls(act: impl Fn(&mut World, i64, i64)) -> Told {
    for seed in 0..5 {
        let mut world = world(seed, 3, |config| config.lease = Some(LEASE));
        let leader = world.leader().unwrap().0;
        world.pause(leader);
        for other in (1..=3).filter(|other| *other != leader) {
            act(&mut world, leader, other);
        }
        world.run_for(3 * SECOND).map_err(|violation| violation.to_string())?;
        world.resume(leader).map_err(|violation| violation.to_string())?;
        world.run_for(SECOND).map_err(|violation| violation.to_string())?;
    }
    Ok(())
}

/// The followers of a leader that stands still start anew, with a shorter lease, or with none: what they have promised binds them as it did.
pub(crate) fn a_leader_stalls_and_its_followers_restart_with_less() -> Told {
    for lease in [None, Some(TICK)] {
        leader_stalls(|world, _, other| {
            world.set_lease(other, lease);
            world.crash(other, CrashKind::Process).unwrap();
            world.start(other);
        })?;
    }
    Ok(())
}

/// The links of a leader that stands still break, and it does not notice.
pub(crate) fn a_leader_stalls_and_its_links_break() -> Told {
    leader_stalls(|world, leader, other| world.cut(leader, other))
}

/// The followers of a leader that stands still start anew.
pub(crate) fn a_leader_stalls_and_its_followers_restart() -> Told {
    leader_stalls(|world, _, other| {
        world.crash(other, CrashKind::Process).unwrap();
        world.start(other);
    })
}

/// Servers 1 and 2 of five become observers; 3, 4 and 5, which leads, go on voting.
fn without_one_and_two() -> Reconfiguration {
    Reconfiguration::change([1, 2].map(|id| Ensemble::line_of(ServerId(id), false)), [])
}

fn five() -> World {
    let world = world(1, 5, |config| config.may_change = true);
    assert_eq!(world.leader(), Some(ServerId(5)));
    world
}

/// The next voters do not hear of the change that makes them so.
pub(crate) fn a_change_that_the_next_voters_do_not_hear_of() -> Told {
    let mut world = five();
    world.block(5, 3);
    world.block(5, 4);
    let asked = world.reconfigure(5, &without_one_and_two());
    let passed = asked.and_then(|_| world.run_for(SECOND));
    passed.map_err(|violation| violation.to_string())
}

/// 3 came by a history in which 2, 4 and 5 vote, as servers have that take no memberships with a snapshot, and does not
/// know; 1 has logged that change. Together they are a quorum of what was before.
pub(crate) fn a_leader_that_does_not_know_of_a_change() -> Told {
    let ensemble = Ensemble::majority(3);
    let next = Ensemble::majority(5).without(1).without(3).membership().unwrap();
    let history = || Contents::ending(2, 2, z(2, 3)).and_change(2, &next);
    let change = history().last();
    let known = history().and(2).with_snapshot(z(2, 4)).with_floor(z(2, 4));
    let config = WorldConfig {
        may_change: true,
        spares: [4, 5].map(ServerId).to_vec(),
        timing: Timing { tick: TICK, ..Timing::default() },
        old: [(ServerId(3), Dialect::Earlier)].into(),
        ..WorldConfig::new(ensemble)
    };
    let config = config.with_disk(1, history().bound(false)).with_disk(3, known);
    let config = [2, 4, 5]
        .into_iter()
        .fold(config, |config, id| config.with_disk(id, history().bound(true).and(2)));
    let mut world = World::new(1, config);
    world.start(1);
    world.start(3);
    let passed = world.run_for(20 * SECOND);
    assert!(world.durable(1).is_some_and(|disk| disk.get(change).is_some()), "it holds the change");
    passed.map_err(|violation| violation.to_string())
}

/// 1 has logged a change, and taken over a later epoch whose leader was never established; those who lead then have
/// cut it, and it never comes to pass.
pub(crate) fn a_change_is_cut_behind_a_later_epoch() -> Told {
    let next = Ensemble::majority(4).membership().unwrap();
    let history = || Contents::ending(3, 3, z(3, 5));
    let config = WorldConfig {
        may_change: true,
        spares: [4].map(ServerId).to_vec(),
        timing: Timing { tick: TICK, ..Timing::default() },
        ..WorldConfig::new(Ensemble::majority(3))
    };
    let one = history().and_change(3, &next).bound(false).in_epoch(4, 4);
    let config = config.with_disk(1, one).with_disk(2, history().in_epoch(5, 5));
    let mut world = World::new(1, config.with_disk(3, history().in_epoch(5, 5)));
    (1..=3).for_each(|id| world.start(id));
    let passed = world.run_for(5 * SECOND).and_then(|()| world.propose(3, 1));
    assert!(world.durable(1).is_some_and(|disk| disk.get(z(3, 6)).is_none()), "it is cut");
    let passed = passed.and_then(|_| world.run_for(5 * SECOND));
    passed.map_err(|violation| violation.to_string())
}

/// A leader commits a change and is gone; who is left of the present voters starts anew.
pub(crate) fn a_change_is_committed_and_all_who_know_start_anew() -> Told {
    let mut world = five();
    world.crash_after(5, |output| matches!(output, Output::Deliver(_)));
    world.reconfigure(5, &without_one_and_two()).unwrap();
    let gone = world.run_until(|world| !world.is_up(5), SECOND);
    no(gone.map_err(|violation| violation.to_string())?.is_none(), "the change is not committed")?;
    world.partition(&[&[1, 2, 3], &[4, 5]]);
    for id in 1..=3 {
        world.crash(id, CrashKind::Process).unwrap();
        world.start(id);
    }
    world.run_for(5 * SECOND).map_err(|violation| violation.to_string())
}

/// An observer that follows below its promise is told at NEWLEADER that it has a vote: a ZooKeeper leader would count
/// its acknowledgement, and an epoch that it has promised not to help would begin.
pub(crate) fn an_observer_below_its_promise_is_told_that_it_votes() -> Told {
    let ensemble = Ensemble::majority(3).with_observers(4..=4);
    let mut stage = Stage::new(&ensemble, 4, Contents::ending(9, 1, z(1, 1)));
    for (peer, state) in [(2, Following), (3, Leading)] {
        let link = stage.meet(peer);
        stage.hear(link, says(state, 3, 1, z(1, 1).0, 1));
    }
    let link = stage.answer(Plane::Quorum, 3);
    let info = Packet::LeaderInfo { epoch: Epoch(2), protocol: LearnerInfo::PROTOCOL };
    stage.hear(link, info);
    stage.hear(link, Packet::Diff(z(1, 1)));
    let votes = Ensemble::majority(4).membership().map_err(|error| error.to_string())?;
    let config = votes.with_version(z(1, 1).0).text().clone();
    stage.packets(link);
    stage.hear(link, Packet::NewLeader { zxid: z(2, 0), config });
    let acknowledges = |packet: &Packet| matches!(packet, Packet::Ack(_));
    no(stage.packets(link).iter().any(acknowledges), "it acknowledges as a voter")
}

/// A leader by generation cannot do without a voter of the next membership alone, which has more than it has, and names
/// that one; what it claims afterwards is on its disk.
pub(crate) fn a_leader_by_generation_names_another() -> Told {
    let next = Ensemble::majority(5).membership().map_err(|error| error.to_string())?;
    let own = Contents::ending(1, 1, z(1, 1)).and_change(1, &next);
    let mut stage = Stage::with(&Ensemble::majority(3), 3, own, |config| {
        config.reconfig_enabled = true;
        config.next_membership = Some(next.with_version(z(1, 2).0));
        config.election =
            Election::Generation(Generations { pre_vote: false, ..Generations::default() });
    });
    let links = [1, 2, 4, 5].map(|peer| (ServerId(peer), stage.meet(peer)));
    stage.pass(3 * SECOND);
    let asked = |messages: Vec<GenerationMessage>| {
        let asks = |message: &GenerationMessage| matches!(message.body, Body::VoteRequest(_));
        messages.into_iter().rev().find(asks)
    };
    let first = asked(stage.messages(links[0].1)).ok_or("it asks nobody")?;
    let Body::VoteRequest(attempt) = first.body else { return Err("it asks nothing".to_owned()) };
    for (from, link) in links {
        let body = Body::VoteResponse { attempt, granted: true };
        let claim = Claim { current_epoch: Epoch(1), last: z(1, 2) };
        stage.hear(link, GenerationMessage { from, body, claim, ..first.clone() });
        stage.messages(link);
    }
    assert_eq!(stage.status().state, Leading);
    for (id, last) in [(1, z(1, 2)), (4, z(1, 3))] {
        let link = stage.accept(Plane::Quorum, 0);
        stage.hear(link, Packet::FollowerInfo(learner_info(id, 1)));
        stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(1)) });
    }
    stage.pass(35 * SECOND);
    assert_eq!(stage.status().state, Looking);
    stage.pass(40 * SECOND);
    let again = stage.messages(links[0].1);
    let asks = |message: &&GenerationMessage| matches!(message.body, Body::VoteRequest(_));
    let has = |message: &GenerationMessage| message.claim.last <= z(1, 2);
    no(!again.iter().any(|message| asks(&message)), "it never asks again")?;
    no(!again.iter().filter(asks).all(has), "it asks for votes with what another has")
}

/// The same by the fast election, and a follower that it needs runs out of patience before it does.
pub(crate) fn a_leader_that_is_deserted_names_another() -> Told {
    let next = Ensemble::majority(5).membership().map_err(|error| error.to_string())?;
    let own = Contents::ending(1, 1, z(1, 1)).and_change(1, &next);
    let mut stage = Stage::with(&Ensemble::majority(3), 3, own, |config| {
        config.reconfig_enabled = true;
        config.next_membership = Some(next.with_version(z(1, 2).0));
    });
    let [one, four] = [1, 4].map(|peer| stage.meet(peer));
    stage.pass(SECOND);
    for link in [one, four] {
        stage.hear(link, says(Looking, 3, 1, z(1, 2).0, 1));
    }
    stage.pass(SECOND);
    assert_eq!(stage.status().state, Leading);
    let mut learners = Vec::new();
    for (id, last) in [(1, z(1, 2)), (4, z(1, 3))] {
        let link = stage.accept(Plane::Quorum, 0);
        stage.hear(link, Packet::FollowerInfo(learner_info(id, 1)));
        stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(1)) });
        learners.push(link);
    }
    assert_eq!(stage.status().state, Leading);
    learners.into_iter().for_each(|link| stage.close(link));
    stage.notifications(four);
    stage.hear(one, says(Looking, 1, 2, z(1, 2).0, 2));
    stage.pass(SECOND);
    let votes = stage.notifications(four);
    let four = |vote: &Vote| vote.leader == ServerId(4);
    no(!votes.iter().any(|said| four(&said.standing.vote)), "it names nobody that is ahead")
}

/// The other of two servers is gone, and the arbiter says that this one may lead. Nobody has promised it anything: the
/// arbiter may tell the other the same.
pub(crate) fn an_arbiter_lets_one_of_two_lead() -> Told {
    let own = Contents::ending(1, 1, z(1, 2));
    let mut stage = Stage::with(&Ensemble::majority(2), 2, own, |config| {
        config.timing.tick = TICK;
        config.oracle = true;
        config.lease = Some(LEASE);
    });
    stage.feed(Event::Oracle(true));
    stage.pass(60 * SECOND);
    let leadership = stage.leadership().ok_or("it does not lead")?;
    no(leadership.lease.is_some(), "it counts on a lease that nobody has promised")
}
