//! What a vote costs: one notification through the core, and whole elections in memory.
//!
//! `cargo bench -p quorate-benches --bench votes`; with `--features peers` raft-rs does its comparable
//! work beside us in the same run.
#![allow(missing_docs, reason = "criterion's macros make public items without docs")]
#![expect(clippy::unwrap_used, reason = "a bench stops where something is wrong")]

use std::hint::black_box;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use quorate_core::config::{Config, Generations};
use quorate_core::durable::Durable;
use quorate_core::election::{Elector, ElectorConfig, ElectorEvent, ElectorOutput, Recipient};
use quorate_core::generation::{
    ClockConfig, ClockEvent, ClockOutput, Cue, GenerationClock, Recipient as To,
};
use quorate_core::generation_message::{Body, GenerationMessage, GrantedVote};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Mark, Message, Notification};
use quorate_core::peer::Peer;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};

fn config(id: i64, voters: i64) -> ElectorConfig {
    ElectorConfig {
        id: ServerId(id),
        observer: false,
        quorum: Quorum::majority((1..=voters).map(ServerId)),
        notification_min: Duration::from_millis(200),
        notification_max: Duration::from_secs(60),
        finalize_wait: Duration::from_millis(200),
        finish_when_settled: true,
        may_change: false,
    }
}

fn vote(leader: i64) -> Vote {
    Vote { peer_epoch: Epoch(1), zxid: Zxid(0x1_0000_0007), leader: ServerId(leader) }
}

fn notification(leader: i64, round: i64, config: &Bytes) -> Notification {
    let standing =
        Standing { state: ServerState::Looking, vote: vote(leader), round: Round(round) };
    Notification {
        standing,
        version: Notification::VERSION,
        config: config.clone(),
        mark: Mark::NONE,
    }
}

fn membership(voters: i64) -> Membership {
    let lines: String =
        (1..=voters).map(|id| format!("server.{id}=10.0.0.{id}:2888:3888:participant\n")).collect();
    Membership::parse(lines + "version=0").unwrap()
}

/// A server among `voters` that is looking and has a link to the largest of them.
fn looking_peer(voters: i64) -> (Peer, LinkId) {
    let membership = membership(voters);
    let mut peer = Peer::new(Config::new(ServerId(1), membership), Durable::default()).unwrap();
    peer.step(Input { at: Instant(1), event: Event::Tick });
    let mut last = LinkId(0);
    for id in 2..=voters {
        last = LinkId(id.unsigned_abs());
        let (peer_id, address) = (Some(ServerId(id)), None);
        peer.step(Input {
            at: Instant(1),
            event: Event::LinkUp(LinkUp {
                link: last,
                plane: Plane::Election,
                dialled: false,
                peer: peer_id,
                advertised: address,
                remote: None,
            }),
        });
    }
    (peer, last)
}

fn one_notification(c: &mut Criterion) {
    let mut group = c.benchmark_group("notification");
    let mut buffer = BytesMut::with_capacity(1 << 16);

    for (name, text) in
        [("44 bytes", Bytes::new()), ("with configuration", { membership(3).text().clone() })]
    {
        let message = notification(3, 1, &text);
        group.bench_function(BenchmarkId::new("encode + decode", name), |b| {
            b.iter(|| {
                wire::encode_notification(black_box(&message), &mut buffer);
                black_box(&wire::take_notification(&mut buffer).unwrap());
                buffer.clear();
            });
        });
    }

    for voters in [3, 255] {
        unchanged(&mut group, voters);
        counted(&mut group, voters);
        changed(&mut group, voters);
    }
    group.finish();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The vote is the best there is, and it comes again and again: it is known, and that is all.
fn unchanged(group: &mut Group<'_>, voters: i64) {
    let mut buffer = BytesMut::with_capacity(1 << 16);
    let mut elector = Elector::new(config(1, voters));
    let mut outputs = Vec::with_capacity(16);
    elector.step_into(Instant(1), ElectorEvent::Look(vote(1)), &mut outputs);
    let from = ServerId(voters);
    let standing = notification(voters, 1, &Bytes::new()).standing;
    let heard = ElectorEvent::Heard { from, standing, versioned: true, at_once: true };
    elector.step_into(Instant(1), heard, &mut outputs);
    group.bench_function(BenchmarkId::new("unchanged, elector", voters), |b| {
        b.iter(|| {
            outputs.clear();
            elector.step_into(Instant(1), black_box(heard), &mut outputs);
        });
    });

    let (mut peer, link) = looking_peer(voters);
    let message = notification(voters, 1, &Bytes::new());
    let mut frame = BytesMut::new();
    wire::encode_notification(&message, &mut frame);
    let mut outputs = Vec::with_capacity(16);
    group.bench_function(BenchmarkId::new("unchanged, decode + peer", voters), |b| {
        b.iter(|| {
            buffer.clear();
            buffer.extend_from_slice(&frame);
            let message = wire::take_notification(&mut buffer).unwrap().unwrap();
            let message = Message::Notification(message);
            outputs.clear();
            let event = Event::Received { link, message };
            peer.step_into(Input { at: Instant(1), event }, &mut outputs);
        });
    });
}

/// A voter goes over to our vote and back: each time it is filed anew, and what we have is counted. (At
/// 3 every other one makes a quorum, which then has to wait for a better vote.)
fn counted(group: &mut Group<'_>, voters: i64) {
    let standing = notification(voters, 1, &Bytes::new()).standing;
    let heard =
        ElectorEvent::Heard { from: ServerId(voters), standing, versioned: true, at_once: true };
    let mut elector =
        Elector::new(ElectorConfig { finish_when_settled: false, ..config(1, voters) });
    let mut outputs = Vec::with_capacity(16);
    elector.step_into(Instant(1), ElectorEvent::Look(vote(1)), &mut outputs);
    elector.step_into(Instant(1), heard, &mut outputs);
    let other = notification(2, 1, &Bytes::new()).standing;
    let mut votes = [standing, other].into_iter().cycle();
    group.bench_function(BenchmarkId::new("counted, elector", voters), |b| {
        b.iter(|| {
            let standing = votes.next().unwrap();
            let heard =
                ElectorEvent::Heard { from: ServerId(2), standing, versioned: true, at_once: true };
            outputs.clear();
            elector.step_into(Instant(1), black_box(heard), &mut outputs);
            assert!(elector.is_looking());
        });
    });
}

/// Each comes from a later round, with a vote that is better than our own: adopted, the old
/// votes forgotten, all told.
fn changed(group: &mut Group<'_>, voters: i64) {
    let from = ServerId(voters);
    let standing = notification(voters, 1, &Bytes::new()).standing;
    let mut elector = Elector::new(config(1, voters));
    elector.step_into(Instant(1), ElectorEvent::Look(vote(1)), &mut Vec::new());
    let mut outputs = Vec::with_capacity(16);
    let mut round = 1;
    group.bench_function(BenchmarkId::new("changed, elector", voters), |b| {
        b.iter(|| {
            round += 1;
            let standing = Standing { round: Round(round), ..standing };
            let heard = ElectorEvent::Heard { from, standing, versioned: true, at_once: true };
            outputs.clear();
            elector.step_into(Instant(1), black_box(heard), &mut outputs);
        });
    });
}

/// An ensemble whose messages are in memory. Each server has one standing, its newest, and each pair a
/// mark that it is still to be delivered: what the mailboxes hold.
struct Ensemble {
    electors: Vec<Elector>,
    newest: Vec<Option<Standing>>,
    pending: Vec<bool>,
    /// How many of a server's notifications are pending.
    pendings: Vec<usize>,
    order: std::collections::VecDeque<(usize, usize)>,
    outputs: Vec<ElectorOutput>,
}

impl Ensemble {
    fn new(voters: i64) -> Self {
        let n = usize::try_from(voters).unwrap();
        Self {
            electors: (1..=voters).map(|id| Elector::new(config(id, voters))).collect(),
            newest: vec![None; n],
            pending: vec![false; n * n],
            pendings: vec![0; n],
            order: std::collections::VecDeque::with_capacity(n * n),
            outputs: Vec::with_capacity(16),
        }
    }

    /// All begin a round at once, each with a vote for itself; returns how many messages were
    /// delivered until all had settled.
    fn elect(&mut self) -> u64 {
        let n = self.electors.len();
        for (at, id) in (0..n).zip(1..) {
            self.step(at, ElectorEvent::Look(vote(id)));
        }
        let mut delivered = 0;
        while let Some((from, to)) = self.order.pop_front() {
            delivered += 1;
            self.pending[from * n + to] = false;
            self.pendings[from] -= 1;
            let standing = self.newest[from].unwrap();
            let from = ServerId(i64::try_from(from).unwrap() + 1);
            self.step(to, ElectorEvent::Heard { from, standing, versioned: true, at_once: true });
        }
        assert!(self.electors.iter().all(|elector| !elector.is_looking()));
        delivered
    }

    fn step(&mut self, at: usize, event: ElectorEvent) {
        let n = self.electors.len();
        let Self { electors, newest, pending, pendings, order, outputs } = self;
        electors[at].step_into(Instant(1), event, outputs);
        for output in outputs.drain(..) {
            let ElectorOutput::Notify { to, standing } = output else { continue };
            newest[at] = Some(standing);
            if to == Recipient::Voters && pendings[at] == n - 1 {
                continue;
            }
            let mut put = |to: usize| {
                if !std::mem::replace(&mut pending[at * n + to], true) {
                    pendings[at] += 1;
                    order.push_back((at, to));
                }
            };
            match to {
                Recipient::Voters => (0..n).filter(|to| *to != at).for_each(put),
                Recipient::One(to) => put(usize::try_from(to.0 - 1).unwrap()),
            }
        }
    }
}

fn elections(c: &mut Criterion) {
    let mut group = c.benchmark_group("election");
    for voters in [3, 5, 7, 15, 63, 255] {
        let mut ensemble = Ensemble::new(voters);
        let messages = ensemble.elect();
        group.throughput(Throughput::Elements(messages));
        if voters > 15 {
            group.sample_size(20);
        }
        group.bench_function(BenchmarkId::new("quorate", voters), |b| {
            b.iter(|| ensemble.elect());
        });
        let mut clocks = Clocks::new(voters);
        let messages = clocks.elect();
        group.throughput(Throughput::Elements(messages));
        group.bench_function(BenchmarkId::new("quorate by generation", voters), |b| {
            b.iter(|| clocks.elect());
        });
        #[cfg(feature = "peers")]
        {
            let mut nodes = peers::Nodes::new(voters.unsigned_abs());
            let messages = nodes.elect();
            group.throughput(Throughput::Elements(messages));
            group.bench_function(BenchmarkId::new("raft-rs", voters), |b| b.iter(|| nodes.elect()));
        }
    }
    group.finish();
}

/// Servers that elect by generation, doing what raft-rs does: one candidate, no pre-vote and no timer, messages
/// delivered in order, votes on disk at once.
struct Clocks {
    clocks: Vec<GenerationClock>,
    mail: Vec<(usize, GenerationMessage)>,
    outputs: Vec<ClockOutput>,
}

impl Clocks {
    fn new(voters: i64) -> Self {
        let rules = Generations { pre_vote: false, ..Generations::default() };
        let clock = |id| {
            let config = ClockConfig {
                id: ServerId(id),
                observer: false,
                quorum: Quorum::majority((1..=voters).map(ServerId)),
                rules: rules.clone(),
                seed: id.unsigned_abs(),
            };
            let mut clock = GenerationClock::new(config, GrantedVote::NONE);
            let own = Vote { leader: ServerId(id), ..vote(id) };
            clock.step(Instant(1), ClockEvent::Look { own, cue: Cue::Fresh });
            clock
        };
        let clocks = (1..=voters).map(clock).collect();
        Self { clocks, mail: Vec::new(), outputs: Vec::with_capacity(16) }
    }

    /// The first server forgets that it leads, asks for votes and wins; returns how many messages were
    /// delivered until nothing of the election was left to be said.
    fn elect(&mut self) -> u64 {
        self.clocks[0].retire();
        let look = ClockEvent::Look { own: vote(1), cue: Cue::Silence };
        self.step(0, look);
        let mut delivered = 0;
        while !self.mail.is_empty() {
            for (to, message) in std::mem::take(&mut self.mail) {
                delivered += 1;
                self.step(to, ClockEvent::Heard { from: message.from, message });
            }
        }
        assert_eq!(self.clocks[0].standing().state, ServerState::Leading);
        delivered
    }

    fn step(&mut self, at: usize, event: ClockEvent) {
        let Self { clocks, mail, outputs } = self;
        clocks[at].step_into(Instant(1), event, outputs);
        let mut kept = None;
        for output in outputs.drain(..) {
            match output {
                ClockOutput::Keep(granted_vote) => kept = Some(granted_vote),
                // Heartbeats are no part of the election.
                ClockOutput::Send { message, .. }
                    if matches!(message.body, Body::Heartbeat { .. }) => {}
                ClockOutput::Send { to: To::One(to), message } => {
                    mail.push((usize::try_from(to.0 - 1).unwrap(), message));
                }
                ClockOutput::Send { message, .. } => {
                    let others = (0..clocks.len()).filter(|to| *to != at);
                    mail.extend(others.map(|to| (to, message.clone())));
                }
                ClockOutput::Redial
                | ClockOutput::Changed(..)
                | ClockOutput::Decided(_)
                | ClockOutput::Leave(..) => {}
            }
        }
        if let Some(granted_vote) = kept {
            self.step(at, ClockEvent::Kept(granted_vote));
        }
    }
}

#[cfg(feature = "peers")]
mod peers {
    use raft::eraftpb::{Message, MessageType};
    use raft::storage::MemStorage;
    use raft::{Config, RawNode, StateRole};

    /// raft-rs with one candidate and no timer, messages delivered in order.
    pub(crate) struct Nodes {
        nodes: Vec<RawNode<MemStorage>>,
    }

    impl Nodes {
        pub(crate) fn new(voters: u64) -> Self {
            let logger = slog::Logger::root(slog::Discard, slog::o!());
            let node = |id| {
                let ids: Vec<u64> = (1..=voters).collect();
                let storage = MemStorage::new_with_conf_state((ids, vec![]));
                let config = Config { id, max_inflight_msgs: 256, ..Config::default() };
                RawNode::new(&config, storage, &logger).unwrap()
            };
            Self { nodes: (1..=voters).map(node).collect() }
        }

        /// The first node forgets that it leads, campaigns and wins; returns how many messages were
        /// delivered until nothing of the election was left to be said.
        pub(crate) fn elect(&mut self) -> u64 {
            let candidate = 0;
            let term = self.nodes[candidate].raft.term;
            self.nodes[candidate].raft.become_follower(term, raft::INVALID_ID);
            self.nodes[candidate].campaign().unwrap();
            let mut mail = Vec::new();
            let mut delivered = 0;
            self.ready(candidate, &mut mail);
            while !mail.is_empty() {
                for message in std::mem::take(&mut mail) {
                    let to = usize::try_from(message.to - 1).unwrap();
                    delivered += 1;
                    self.nodes[to].step(message).unwrap();
                    self.ready(to, &mut mail);
                }
            }
            assert_eq!(self.nodes[candidate].raft.state, StateRole::Leader);
            delivered
        }

        fn ready(&mut self, at: usize, mail: &mut Vec<Message>) {
            let node = &mut self.nodes[at];
            while node.has_ready() {
                let mut ready = node.ready();
                mail.extend(ready.take_messages());
                node.store().wl().append(ready.entries()).unwrap();
                if let Some(hard) = ready.hs() {
                    node.store().wl().set_hardstate(hard.clone());
                }
                mail.extend(ready.take_persisted_messages());
                let mut light = node.advance(ready);
                mail.extend(light.take_messages());
                node.advance_apply();
            }
            // Replication of the new leader's empty entry is no part of the election.
            mail.retain(|message| {
                matches!(
                    message.get_msg_type(),
                    MessageType::MsgRequestVote | MessageType::MsgRequestVoteResponse
                )
            });
        }
    }
}

criterion_group!(votes, one_notification, elections);
criterion_main!(votes);
