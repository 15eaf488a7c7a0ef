//! One server as a machine: the same inputs always do the same, nothing that comes from outside
//! breaks it, and what it holds is bounded.
#![expect(clippy::unwrap_used, reason = "a test")]

mod support;

use bytes::Bytes;
use quorate_core::config::{Config, ConfigError};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Message, Notification, Packet};
use quorate_core::output::{Hangup, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::report::{Phase, Reason};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState::{self, Following, Leading, Looking, Observing};
use quorate_core::zxid::{Epoch, Zxid};
use support::*;

// --- inputs at random ---

/// Draws inputs that are often almost right.
struct Dice {
    rng: Rng,
    /// How many of a hundred packets are what the other end should say just then.
    helpful: usize,
    /// How far a leader has come with our synchronization.
    told: usize,
}

impl Dice {
    fn new(seed: u64) -> Self {
        let helpful = if seed % 2 == 0 { 97 } else { 50 };
        Self { rng: Rng::new(seed), helpful, told: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn id(&mut self) -> ServerId {
        let corners = [0, -1, i64::MIN, i64::MAX, 77, 255, 256, 4, 9];
        ServerId(if self.chance(85) { self.pick(&[1, 2, 3, 4, 5]) } else { self.pick(&corners) })
    }

    fn epoch(&mut self) -> Epoch {
        let corners = [-1, i64::MIN, i64::MAX, 1 << 31, (1 << 31) - 1, (1 << 31) - 2, -2];
        Epoch(if self.chance(97) { self.pick(&[0, 0, 0, 1, 2, 3, 7]) } else { self.pick(&corners) })
    }

    fn zxid(&mut self) -> Zxid {
        if self.chance(80) {
            Zxid::start_of(self.epoch())
        } else {
            Zxid(self.pick(&[0, -1, 1, i64::MIN, i64::MAX, 0x1_0000_0001, 0x7_0000_0003]))
        }
    }

    /// What somebody says about where it stands; mostly what would help `peer` to get on.
    fn notification(&mut self, peer: &Peer) -> Notification {
        let ours = peer.standing();
        let state = self.pick(&[Looking, Looking, Looking, Following, Leading, Observing]);
        let mut heard = ours;
        heard.state = state;
        if self.chance(50) {
            heard.vote.leader = self.id();
        }
        if self.chance(10) {
            heard.vote = vote(self.epoch().0, self.zxid().0, self.id().0);
        }
        if self.chance(15) {
            let round = ours.round.0;
            let near = [0, round.wrapping_add(1), round.wrapping_sub(1)];
            // A round that is far ahead is adopted, and nothing that is smaller is heard after it.
            let far = [-1, i64::MIN, i64::MAX];
            heard.round.0 = if self.chance(98) { self.pick(&near) } else { self.pick(&far) };
        }
        let versions = (0..4).map(|version| {
            let members = [&[1, 2, 3, 4, 5][..], &[1, 2, 3], &[2, 3, 4, 5], &[1]][version];
            with_observers(members, &[9]).replace("version=0", &format!("version={version}"))
        });
        let config = match self.below(20) {
            0 => Bytes::from_static(b"garbage=\xff"),
            1 => Bytes::from(self.pick(&versions.collect::<Vec<_>>())),
            2..10 => peer.config().membership.text().clone(),
            _ => Bytes::new(),
        };
        Notification { standing: heard, version: self.pick(&[2, 2, 1, 0, -1]), config }
    }

    fn packet(&mut self, peer: &Peer) -> Packet {
        let (none, zxid, status) = (Bytes::new(), self.zxid(), peer.status());
        let right = self.chance(85);
        let epoch = if right { status.accepted_epoch } else { self.epoch() };
        let start = if right { Zxid::start_of(epoch) } else { zxid };
        let info = LearnerInfo {
            accepted_epoch: epoch,
            id: Some(self.id()).filter(|_| right),
            protocol: if right { LearnerInfo::PROTOCOL } else { self.pick(&[0, -1, i32::MAX]) },
            config_version: if right { 0 } else { self.pick(&[-1, 0, 1, 99]) },
        };
        if status.phase != Phase::Synchronization {
            self.told = 0;
        }
        if self.chance(self.helpful) {
            // If it comes on the right link.
            let current_epoch = Some(status.current_epoch);
            let next = epoch.next().unwrap_or(epoch);
            return match (status.state, status.phase) {
                (Leading, Phase::Broadcast) => Packet::Ping { zxid, sessions: Some(none) },
                (Leading, _) => self.pick(&[
                    Packet::FollowerInfo(info),
                    Packet::AckEpoch { last: status.last, current_epoch },
                    Packet::Ack(start),
                ]),
                (_, Phase::Synchronization) => {
                    self.told += 1;
                    match self.told {
                        1 => Packet::Diff(zxid),
                        2 => Packet::NewLeader { zxid: start, config: none },
                        3..6 => Packet::Ping { zxid, sessions: None },
                        _ => Packet::UpToDate,
                    }
                }
                (Following | Observing, Phase::Discovery) => {
                    Packet::LeaderInfo { epoch: next, protocol: LearnerInfo::PROTOCOL }
                }
                _ => Packet::Ping { zxid, sessions: None },
            };
        }
        match self.below(40) {
            0..8 => Packet::FollowerInfo(info),
            8..10 => Packet::ObserverInfo(info),
            10..14 => {
                let epoch = if self.chance(50) { epoch.next().unwrap_or(epoch) } else { epoch };
                Packet::LeaderInfo { epoch, protocol: LearnerInfo::PROTOCOL }
            }
            14..18 => Packet::AckEpoch {
                last: if right { status.last } else { zxid },
                current_epoch: self.chance(80).then_some(status.current_epoch),
            },
            18..20 => Packet::Diff(zxid),
            20..23 => Packet::NewLeader { zxid: start, config: Bytes::new() },
            23..26 => Packet::UpToDate,
            26..31 => Packet::Ack(start),
            31..34 => Packet::Ping { zxid, sessions: self.chance(50).then(Bytes::new) },
            34 => Packet::Snap(zxid),
            35 => Packet::Trunc(zxid),
            36 => Packet::Proposal(txn(zxid.0)),
            37 => Packet::Commit(zxid),
            38 => Packet::Request(request(1)),
            _ => self.pick(&[
                Packet::Sync,
                Packet::Revalidate(Bytes::new()),
                Packet::Inform(txn(zxid.0)),
                Packet::CommitAndActivate { zxid, leader: ServerId(1) },
                Packet::InformAndActivate { leader: ServerId(1), txn: txn(zxid.0) },
            ]),
        }
    }

    fn message(&mut self, peer: &Peer, plane: Plane) -> Message {
        if (plane == Plane::Election) == self.chance(98) {
            Message::Notification(self.notification(peer))
        } else {
            Message::Packet(self.packet(peer))
        }
    }

    fn config(&mut self) -> Config {
        let text = match self.below(6) {
            0 => ensemble(&[1]),
            1 => ensemble(&[1, 2]),
            2 => with_observers(&[2, 3], &[1, 9]),
            3 => ensemble(&[1, 2, 3, 4, 5]) + "\ngroup.1=1:2:3\ngroup.2=4:5\nweight.5=0",
            _ => ensemble(&[1, 2, 3]),
        };
        let membership = Membership::parse(text).unwrap();
        let mut config = Config::new(ServerId(self.pick(&[1, 2, 3])), membership);
        config.seed = self.rng.next_u64();
        config.oracle = self.chance(30);
        config.finish_when_settled = self.chance(80);
        config.limits.strangers = 4;
        config.limits.unintroduced = 4;
        config.limits.learners = 8;
        config
    }

    fn durable(&mut self) -> Durable {
        self.pick(&[
            disk(0, 0, 0),
            disk(3, 2, 0),
            disk(3, 3, 0x3_0000_0000),
            disk(7, 1, 0x1_0000_0003),
        ])
    }
}

/// Something at random that a driver could report to this server. What is said comes from anybody
/// and may be anything.
fn lawful(dice: &mut Dice, bench: &mut Bench) {
    match dice.below(100) {
        0..20 => {
            // Time passes, often not even to the next deadline.
            let most =
                bench.peer.deadline().map_or(1_000_000, |(at, _)| at.since(bench.now).as_nanos());
            let most = u64::try_from(most).unwrap();
            bench.now = Instant(bench.now.0 + dice.rng.below(most * 5 / 4 + 1));
            let due = bench.peer.deadline().is_some_and(|(at, _)| at <= bench.now);
            let before = (!due).then(|| bench.peer.clone());
            let seen = bench.step(Event::Tick);
            if let Some(before) = before {
                seen.is_nothing();
                let mut before = before;
                before.step(Input { at: bench.now, event: Event::Oracle(false) });
                // Nothing but the time has changed, which any input may carry.
                let mut after = bench.peer.clone();
                after.step(Input { at: bench.now, event: Event::Oracle(false) });
                assert_eq!(before, after, "a spurious tick");
            }
            let due = bench.peer.deadline();
            assert!(due.is_none_or(|(at, _)| at > bench.now), "{due:?} at {:?}", bench.now);
        }
        20..32 => match dice.pick(&bench.dials()) {
            Some((plane, peer)) if dice.chance(60) => {
                let up = bench.fresh(plane, true, Some(peer.0));
                bench.connect(up);
            }
            Some((plane, peer)) => {
                bench.refused(plane, peer.0);
            }
            None => {}
        },
        32..38 => {
            let peer = dice.id();
            let up = LinkUp {
                advertised: dice.chance(50).then(|| at("10.0.0.1", 3888)),
                remote: Some("10.0.0.1".parse().unwrap()),
                ..bench.fresh(Plane::Election, false, Some(peer.0))
            };
            bench.connect(up);
        }
        38..44 => {
            bench.learner();
        }
        44..47 => {
            if let Some((link, _)) = dice.pick(&bench.planes()) {
                bench.down(link);
            }
        }
        47..60 => {
            if bench.writes_pending() > 0 {
                bench.persisted_one();
            }
        }
        60 => {
            bench.step(Event::Oracle(dice.chance(50)));
        }
        61 => {
            bench.step(Event::StepDown);
        }
        _ => {
            let links = bench.planes();
            let quorum = |link: &Option<(LinkId, Plane)>| {
                link.is_some_and(|(_, plane)| plane == Plane::Quorum)
            };
            let newest = links.iter().copied().rev().find(quorum).flatten();
            let any = dice.pick(&links);
            if let Some((link, plane)) = newest.filter(|_| dice.chance(30)).or(any) {
                let message = dice.message(&bench.peer, plane);
                bench.step(Event::Received { link, message });
            }
        }
    }
}

/// Five hundred lives of five hundred events; what became of them.
fn lives(change: fn(&mut Config)) -> [usize; 4] {
    let mut seen = [0; 4];
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut config = dice.config();
        change(&mut config);
        let mut bench = Bench::new(config, dice.durable());
        let mut was = [false; 4];
        for _ in 0..500 {
            lawful(&mut dice, &mut bench);
            bench.peer.check();
            let status = bench.status();
            was[0] |= status.state == Leading;
            was[1] |= matches!(status.state, Following | Observing);
            was[2] |= status.state == Leading && status.serving && status.voters > 1;
            was[3] |= matches!(status.state, Following | Observing) && status.serving;
        }
        for (count, was) in seen.iter_mut().zip(was) {
            *count += usize::from(was);
        }
    }
    seen
}

/// ZOOKEEPER-3769, -2186, -547: bytes from anybody ended the thread that read them.
#[test]
fn nothing_that_a_peer_says_or_the_network_does_breaks_a_server() {
    let [led, followed, led_on, followed_on] = lives(|_| {});
    assert!(
        led > 100 && followed > 100 && led_on > 10 && followed_on > 10,
        "a test of nothing: {led} led, {followed} followed, {led_on} and {followed_on} served"
    );
}

#[test]
fn the_same_where_the_membership_may_change() {
    lives(|config| config.reconfig_enabled = true);
}

/// Not even a driver that keeps no rule: links that never came up, dials that nobody made, old
/// tickets, time that goes back.
#[test]
fn nothing_that_a_driver_reports_makes_a_server_panic() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut config = dice.config();
        config.reconfig_enabled = dice.chance(50);
        let mut peer = Peer::new(config, dice.durable()).unwrap();
        let (mut issued, mut now, mut links) = (0, 0u64, 0);
        for _ in 0..1_000 {
            now += dice.rng.below(1_000_000_000);
            let at = Instant(now.saturating_sub(dice.rng.below(10_000_000_000)));
            let link = LinkId(if dice.chance(90) { dice.rng.below(links + 1) } else { 99_999 });
            let plane = dice.pick(&[Plane::Election, Plane::Quorum]);
            let event = match dice.below(12) {
                0 | 1 => Event::Tick,
                2 | 3 => {
                    links += 1;
                    Event::LinkUp(LinkUp {
                        link: LinkId(links),
                        plane,
                        dialled: dice.chance(50),
                        peer: Some(dice.id()),
                        advertised: dice.chance(50).then(|| support::at("h", 1)),
                        remote: dice.chance(50).then(|| "::1".parse().unwrap()),
                    })
                }
                4 => Event::LinkDown { link, cause: Cause::Garbled },
                5 => Event::DialFailed { plane, peer: dice.id() },
                6 => Event::Persisted(Ticket(dice.rng.below(issued + 1))),
                7 => Event::Oracle(dice.chance(50)),
                8 if dice.chance(5) => Event::StepDown,
                _ => Event::Received { link, message: dice.message(&peer, plane) },
            };
            for output in peer.step(Input { at, event }) {
                if let Output::Persist { ticket, .. } = output {
                    issued = ticket.0;
                }
            }
            peer.check();
        }
        peer.step(Input { at: Instant(now), event: Event::Shutdown });
    }
}

#[test]
fn the_same_inputs_do_the_same_and_a_copy_goes_on_like_its_original() {
    for seed in 0..50 {
        let run = |copied_at: usize| {
            let mut dice = Dice::new(seed);
            let (config, durable) = (dice.config(), dice.durable());
            let mut bench = Bench::new(config, durable);
            for at in 0..400 {
                if at == copied_at {
                    bench = bench.clone();
                }
                lawful(&mut dice, &mut bench);
            }
            (bench.peer.clone(), bench.said.clone())
        };
        let (first, second) = (run(0), run(200));
        assert_eq!(first.1, second.1, "seed {seed}");
        assert!(first.0 == second.0, "seed {seed}");
        assert!(!first.1.is_empty());
    }
}

// --- its ends ---

#[test]
fn a_shutdown_hangs_up_everything_and_after_it_there_is_nothing() {
    // A leader with a follower, a silent learner, its election links and a stranger.
    let mut leader = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    leader.win(&[1, 2]);
    leader.establish(2);
    leader.learner();
    leader.accepted(77);
    // One that looks, with an early learner and a write under way.
    let mut looking = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    looking.meet(1);
    looking.learner();
    // A follower that waits for its disk.
    let mut follower = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    follower.lose(3, &[2], 0, 0);
    let (link, _) = follower.reach(3);
    follower.receive(link, leader_info(1));
    for (mut bench, links) in [(leader, 5), (looking, 2), (follower, 3)] {
        assert_eq!(bench.links_up(), links);
        let seen = bench.step(Event::Shutdown);
        assert_eq!(seen.hangups().len(), links, "{seen:?}");
        assert!(seen.hangups().iter().all(|(_, reason)| *reason == Hangup::Shutdown));
        assert_eq!((bench.links_up(), bench.peer.deadline()), (0, None));
        let status = bench.status();
        assert_eq!((status.state, status.serving, status.leader), (Looking, false, None));
        bench.persisted().is_nothing();
        bench.now = Instant(bench.now.0 + 100_000_000_000);
        for event in [Event::Tick, Event::Shutdown, Event::StepDown, Event::Oracle(true)] {
            bench.step(event).is_nothing();
        }
        let (_, seen) = bench.accepted(99);
        seen.is_nothing();
        bench.learner_seen().1.is_nothing();
    }
}

#[test]
fn an_idle_server_wants_its_first_tick_at_once_and_answers_nobody_before() {
    let mut bench = Bench::idle(1, &ensemble(&[1, 2, 3]), Durable::default(), |_| {});
    assert_eq!(bench.due().1, Timer::Start);
    let (link, seen) = bench.accepted(3);
    assert_eq!(seen.told(link), [], "it has no vote yet");
    assert_eq!(bench.hear(link, standing(Looking, vote(0, 0, 3), 1)).told(link), []);
    let (learner, seen) = bench.learner_seen();
    assert_eq!(seen.hung_up(learner), Some(Hangup::NotLeading));
    let seen = bench.step(Event::Tick);
    let first = standing(Looking, vote(0, 0, 1), 1);
    let then = standing(Looking, vote(0, 0, 3), 1);
    assert_eq!(seen.told(link), [first, then], "what it heard before counts now");
}

// --- what it may hold ---

/// Everything that a server holds, as long as it is when written down.
fn size(bench: &Bench) -> usize {
    format!("{:?}", bench.peer).len()
}

/// Floods a server twice and returns what it held after the first and after the second time.
fn flood(bench: &mut Bench, mut wave: impl FnMut(&mut Bench, i64)) -> (usize, usize) {
    let mut sizes = [0; 2];
    for size_then in &mut sizes {
        for at in 0..3_000 {
            wave(bench, at);
        }
        *size_then = size(bench);
    }
    (sizes[0], sizes[1])
}

#[test]
fn whatever_floods_a_server_it_holds_no_more_than_its_limits() {
    let members = ensemble(&[1, 2, 3]);
    let looking = || Bench::of(3, &members, Durable::default());
    let leading = || {
        let mut bench = looking();
        bench.win(&[1, 2]);
        bench.establish(2);
        bench
    };
    type Wave = fn(&mut Bench, i64);
    let floods: [(&str, Bench, Wave); 8] = [
        ("strangers", looking(), |bench, at| {
            let (link, _) = bench.accepted(1_000 + at);
            bench.hear(link, standing(Looking, vote(9, 9, 1_000 + at), at));
        }),
        ("knocks of strangers", looking(), |bench, at| {
            bench.knock(-at, support::at("h", 1), "10.0.0.1");
            bench.knock(0, support::at("h", 1), "10.0.0.1");
        }),
        ("knocks of a member", looking(), |bench, at| {
            bench.knock(1, support::at(&format!("h{at:04}"), 1), "10.0.0.1");
        }),
        ("early learners", looking(), |bench, _| {
            let link = bench.learner();
            bench.receive(link, Packet::FollowerInfo(info(2, 0)));
        }),
        ("silent learners", leading(), |bench, _| {
            bench.learner();
        }),
        ("learners with ever new ids", leading(), |bench, at| {
            let (link, seen) = bench.learner_seen();
            if seen.hung_up(link).is_none() {
                bench.receive(link, Packet::ObserverInfo(info(10_000 + at, 0)));
            }
        }),
        ("learners that come again and again", leading(), |bench, _| {
            let (link, _) = bench.follower(1, 1);
            bench.receive(link, ack_epoch_again(0));
        }),
        ("votes of members", looking(), |bench, at| {
            let link = match bench.planes().first() {
                Some(Some((link, _))) => *link,
                _ => bench.meet(2),
            };
            bench.hear(link, standing(Looking, vote(0, at, 2), at));
        }),
    ];
    for (name, mut bench, wave) in floods {
        let (first, second) = flood(&mut bench, wave);
        assert!(second <= first + first / 50 + 64, "{name}: {first}, then {second} bytes");
        assert!(bench.links_up() < 1_200, "{name}: {} links", bench.links_up());
    }
}

#[test]
fn promises_that_wait_for_a_disk_that_never_answers_are_bounded_by_the_learners() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    bench.win(&[1, 2]);
    let (first, second) = flood(&mut bench, |bench, _| {
        bench.follower(1, 0);
    });
    assert!(second <= first + 64, "{first}, then {second} bytes");
}

// --- what it says ---

#[test]
fn the_story_of_a_leader_as_people_read_it() {
    let mut bench = Bench::idle(3, &ensemble(&[1, 2, 3]), Durable::default(), |_| {});
    let mut story = bench.step(Event::Tick).texts();
    story.extend(bench.win_seen(&[1, 2]).texts());
    let link = bench.learner();
    for packet in [Packet::FollowerInfo(info(2, 0)), ack_epoch(0, 0), ack(1)] {
        story.extend(bench.receive(link, packet).texts());
        story.extend(bench.persisted().texts());
    }
    story.extend(bench.down(link).texts());
    story.extend(bench.step(Event::StepDown).texts());
    assert_eq!(
        story[..13],
        [
            "round 0 -> 1: a round begins with one's own vote",
            "vote nobody (peer epoch none, zxid none) -> 3 (peer epoch 0, zxid 0x0): \
             a round begins with one's own vote",
            "state LOOKING -> LEADING: quorum {1,2,3} for 3, everybody heard",
            "phase election -> discovery: quorum {1,2,3} for 3",
            "accepted epoch 1: quorum {2,3} connected, epoch 1",
            "current epoch 1: quorum {2,3} promised",
            "phase discovery -> synchronization: quorum {2,3} promised",
            "learner 2 is brought up by DIFF: its history ends at 0x0",
            "learner 2 synchronised: quorum {2} acknowledged",
            "phase synchronization -> broadcast: quorum {2,3} acknowledged",
            "learner 2 lost: its link ended",
            "state LEADING -> LOOKING: asked to",
            "phase broadcast -> election: asked to",
        ]
    );
}

#[test]
fn the_story_of_a_follower_as_people_read_it() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    let (three, two) = (bench.meet(3), bench.meet(2));
    let mut story = bench.hear(three, standing(Looking, vote(0, 0, 3), 4)).texts();
    story.extend(bench.hear(two, standing(Looking, vote(0, 0, 3), 4)).texts());
    let (link, _) = bench.reach(3);
    let packets = [leader_info(1), Packet::Diff(Zxid(0)), new_leader(1), Packet::UpToDate];
    for packet in packets {
        story.extend(bench.receive(link, packet).texts());
        story.extend(bench.persisted().texts());
    }
    story.extend(bench.down(link).texts());
    assert_eq!(
        story[..11],
        [
            "round 1 -> 4: round 4 > 1, says 3",
            "vote 1 (peer epoch 0, zxid 0x0) -> 3 (peer epoch 0, zxid 0x0): round 4 > 1, says 3",
            "state LOOKING -> FOLLOWING: quorum {1,2,3} for 3, everybody heard",
            "phase election -> discovery: quorum {1,2,3} for 3",
            "accepted epoch 1: leader 3 begins epoch 1",
            "phase discovery -> synchronization: leader 3 begins epoch 1",
            "learner 1 is brought up by DIFF: its history ends at 0x0",
            "current epoch 1: leader 3 begins epoch 1",
            "phase synchronization -> broadcast: leader 3 begins epoch 1",
            "state FOLLOWING -> LOOKING: leader 3 closed its link",
            "phase broadcast -> election: leader 3 closed its link",
        ]
    );
}

#[test]
fn the_reasons_that_an_operator_will_search_for() {
    let (voter, leader) = (ServerId(2), ServerId(3));
    let members = ids(&[1, 3]);
    for (reason, text) in [
        (Reason::LeaderSilent { leader }, "leader 3 is silent"),
        (Reason::LeaderUnreachable { leader }, "leader 3 cannot be reached"),
        (
            Reason::LeaderMovedOn { leader, round: standing(Looking, vote(0, 0, 3), 5).round },
            "server 3 no longer leads, it is in round 5",
        ),
        (
            Reason::OldEpoch { announced: Epoch(4), accepted: Epoch(6) },
            "leader announced epoch 4, but 6 is promised",
        ),
        (Reason::Deserted { voter }, "voter 2 looks again, no quorum is left"),
        (Reason::LostPromise { voter }, "the promise of voter 2 was lost"),
        (
            Reason::LaterPromise { voter, accepted: Epoch(9) },
            "voter 2 has promised the later epoch 9",
        ),
        (
            Reason::NoQuorum { phase: Phase::Broadcast, members },
            "no quorum in broadcast, only {1,3}",
        ),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}

// --- what it is told ---

#[test]
fn a_configuration_that_cannot_work_is_refused_by_name() {
    let config = || Config::new(ServerId(1), Membership::parse(ensemble(&[1, 2, 3])).unwrap());
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Peer::new(config, Durable::default()).err().map(|error: ConfigError| error.to_string())
    };
    assert_eq!(refused(|_| {}), None);
    for (change, text) in [
        (
            (|c| c.timing.tick = millis(0)) as fn(&mut Config),
            "tick is 0ns, at least 1 ms is needed",
        ),
        (|c| c.timing.sync_limit = 0, "sync_limit is 0 ticks, at least 1 is needed"),
        (
            |c| c.timing.redial_min = millis(5_000),
            "redial_min is 5s, more than redial_max, which is 1s",
        ),
        (|c| c.limits.learners = 0, "the limit of learners is 0, at least 1 is needed"),
        (|c| c.id = ServerId(-4), "server id -4 is reserved"),
        (|c| c.id = ServerId(i64::MAX), "server id 9223372036854775807 is reserved"),
    ] {
        assert_eq!(refused(change).as_deref(), Some(text));
    }
}

/// A newer configuration is on disk before a vote is cast under it.
#[test]
fn a_newer_configuration_is_adopted_only_while_looking_only_where_allowed_and_first_made_durable() {
    let newer = ensemble(&[1, 2, 3, 4]).replace("version=0", "version=5");
    let told = |state: ServerState| {
        let standing = standing(state, vote(0, 0, 3), 1);
        let config = Bytes::from(newer.clone());
        Message::Notification(Notification { standing, version: 2, config })
    };
    for allowed in [false, true] {
        let change = |config: &mut Config| config.reconfig_enabled = allowed;
        let mut bench = Bench::with(2, &ensemble(&[1, 2, 3]), Durable::default(), change);
        let three = bench.meet(3);
        let seen = bench.step(Event::Received { link: three, message: told(Looking) });
        if allowed {
            let text = bench.peer.config().membership.text().clone();
            assert_eq!(seen.persists(), [Write::Membership(text)]);
            assert_eq!(seen.told(three), [], "no vote before it is on disk");
            assert_eq!(bench.peer.config().membership.version(), 5);
            let seen = bench.persisted();
            assert_eq!(seen.told(three), [standing(Looking, vote(0, 0, 2), 1)]);
            assert_eq!(bench.status().voters, 4);
        } else {
            assert_eq!((seen.persists(), bench.status().voters), (vec![], 3));
        }
        let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), change);
        let links = bench.win(&[1, 2]);
        let seen = bench.step(Event::Received { link: links[1], message: told(Following) });
        assert_eq!((seen.persists(), bench.status().voters), (vec![], 3));
    }
}
