//! What a replicated transaction costs the machines: three servers in memory, 100 bytes each time.
//!
//! `cargo bench -p quorate-benches --bench replicate`; with `--features peers` raft-rs does the same
//! work beside us in the same run.
//!
//! Counted is everything that the cores of all three servers do for a transaction, from the moment the
//! leader's application has prepared it until all three have delivered it: its number, the proposal,
//! the writes, the acknowledgements, the quorum, the commits. The network and the disks are perfect, and
//! so are those of the other side.
#![allow(missing_docs, reason = "criterion's macros make public items without docs")]
#![expect(clippy::unwrap_used, reason = "a bench stops where something is wrong")]
#![expect(clippy::wildcard_enum_match_arm, reason = "only what replication does is done")]

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet};
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, Txn, TxnHeader};
use quorate_core::zxid::Zxid;

/// One server, what it has said that was not carried out yet, and what it has delivered.
struct Server {
    peer: Peer,
    said: Vec<Output>,
    delivered: Zxid,
}

impl Server {
    fn step(&mut self, event: Event) {
        self.peer.step_into(Input { at: Instant(1), event }, &mut self.said);
    }
}

/// Servers of one process.
struct Ensemble {
    servers: Vec<Server>,
    /// The other end of each link, and whose it is; links are numbered from 0.
    ends: Vec<(usize, LinkId)>,
    /// Kept for its memory.
    outputs: Vec<Output>,
}

/// What lies where a message lay that was handed on: what is handed on is moved once, from where it was
/// said to where it is heard.
const HANDED_ON: Message = Message::Packet(Packet::Sync { tag: 0 });

impl Ensemble {
    fn established(voters: i64) -> Self {
        let lines: String = (1..=voters)
            .map(|id| format!("server.{id}=10.0.0.{id}:2888:3888:participant\n"))
            .collect();
        let membership = Membership::parse(lines + "version=0").unwrap();
        let server = |id| {
            let config = Config::new(ServerId(id), membership.clone());
            let peer = Peer::new(config, Durable::default()).unwrap();
            Server { peer, said: Vec::new(), delivered: Zxid::ZERO }
        };
        let servers = (1..=voters).map(server).collect();
        let mut ensemble = Self { servers, ends: Vec::new(), outputs: Vec::new() };
        ensemble.servers.iter_mut().for_each(|server| server.step(Event::Tick));
        ensemble.settle();
        assert!(ensemble.servers.iter().all(|server| server.peer.status().serving));
        ensemble
    }

    fn leader(&self) -> usize {
        let leads = |server: &Server| server.peer.leadership().is_some();
        self.servers.iter().position(leads).unwrap()
    }

    /// Lets everything happen that is under way: what one server has said, then the next.
    fn settle(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        while self.servers.iter().any(|server| !server.said.is_empty()) {
            for who in 0..self.servers.len() {
                if self.servers[who].said.is_empty() {
                    continue;
                }
                std::mem::swap(&mut self.servers[who].said, &mut outputs);
                let (mut durable, mut delivered) = (None, None);
                for output in &mut outputs {
                    match output {
                        Output::Send { link, message } => {
                            let (to, link) = self.ends[usize::try_from(link.0).unwrap()];
                            let to = &mut self.servers[to];
                            let message = std::mem::replace(message, HANDED_ON);
                            to.step(Event::Received { link, message });
                        }
                        Output::Persist { ticket, .. } => durable = Some(*ticket),
                        Output::Deliver(Txn { zxid, .. }) | Output::Adopt { label: zxid } => {
                            delivered = Some(*zxid);
                        }
                        Output::NotifyDrained(link) => {
                            self.servers[who].step(Event::Drained(*link))
                        }
                        Output::Dial { plane, peer, .. } => self.connect(who, *plane, *peer),
                        _ => {}
                    }
                }
                outputs.clear();
                // The disk is as perfect as the network.
                if let Some(ticket) = durable {
                    self.servers[who].step(Event::Persisted(ticket));
                }
                // And so is the application.
                if let Some(zxid) = delivered {
                    self.servers[who].delivered = zxid;
                    self.servers[who].step(Event::Applied(zxid));
                }
            }
        }
        self.outputs = outputs;
    }

    fn connect(&mut self, who: usize, plane: Plane, peer: ServerId) {
        let other = self.servers.iter().position(|s| s.peer.config().id == peer).unwrap();
        let (ours, theirs) = (self.ends.len() as u64, self.ends.len() as u64 + 1);
        self.ends.extend([(other, LinkId(theirs)), (who, LinkId(ours))]);
        let id = self.servers[who].peer.config().id;
        let up = |link, dialled, peer| {
            let (link, advertised, remote) = (LinkId(link), None, None);
            Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised, remote })
        };
        self.servers[who].step(up(ours, true, Some(peer)));
        let introduced = (plane == Plane::Election).then_some(id);
        self.servers[other].step(up(theirs, false, introduced));
    }
}

fn ours(c: &mut Criterion) {
    let mut group = c.benchmark_group("replicate 100 B");
    for (voters, batch) in [(3, 1), (3, 64), (5, 64), (7, 64)] {
        let mut ensemble = Ensemble::established(voters);
        let leader = ensemble.leader();
        let epoch = ensemble.servers[leader].peer.status().current_epoch;
        let body = Bytes::from(vec![7; 100]);
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: 5 };
        group.throughput(Throughput::Elements(batch));
        let name = format!("quorate, {voters} servers, batches of {batch}");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let drafts = (0..batch).map(|_| Draft { header, body: body.clone() }).collect();
                ensemble.servers[leader].step(Event::Prepared { epoch, drafts });
                ensemble.settle();
            });
        });
        let last = ensemble.servers[leader].delivered;
        let even = ensemble.servers.iter().all(|server| server.delivered == last);
        assert!(even, "somebody lags behind");
    }
    group.finish();
}

/// raft-rs at its best: nodes that settled long ago, messages delivered in order, entries kept in memory,
/// as in its own benches.
#[cfg(feature = "peers")]
mod peers {
    use std::collections::VecDeque;

    use criterion::{BenchmarkId, Criterion, Throughput};
    use raft::eraftpb::{Entry, Message};
    use raft::storage::MemStorage;
    use raft::{Config, RawNode, StateRole};

    struct Nodes {
        nodes: Vec<RawNode<MemStorage>>,
        queue: VecDeque<Message>,
        applied: Vec<u64>,
    }

    impl Nodes {
        fn elected(voters: u64) -> Self {
            let logger = slog::Logger::root(slog::Discard, slog::o!());
            let node = |id| {
                let ids: Vec<_> = (1..=voters).collect();
                let storage = MemStorage::new_with_conf_state((ids, vec![]));
                let config = Config {
                    id,
                    max_size_per_msg: 1 << 20,
                    max_inflight_msgs: 1 << 10,
                    // Entries that are proposed together go out together, as with us.
                    batch_append: true,
                    ..Config::default()
                };
                RawNode::new(&config, storage, &logger).unwrap()
            };
            let count = usize::try_from(voters).unwrap();
            let mut nodes = Self {
                nodes: (1..=voters).map(node).collect(),
                queue: VecDeque::new(),
                applied: vec![0; count],
            };
            nodes.nodes[0].campaign().unwrap();
            nodes.settle();
            assert_eq!(nodes.nodes[0].raft.state, StateRole::Leader);
            nodes
        }

        fn settle(&mut self) {
            loop {
                // What has gathered is taken before anybody writes.
                while let Some(message) = self.queue.pop_front() {
                    let to = usize::try_from(message.to - 1).unwrap();
                    self.nodes[to].step(message).unwrap();
                }
                if !self.nodes.iter().any(RawNode::has_ready) {
                    break;
                }
                for who in 0..self.nodes.len() {
                    self.ready(who);
                }
            }
        }

        fn ready(&mut self, who: usize) {
            let node = &mut self.nodes[who];
            if !node.has_ready() {
                return;
            }
            let mut ready = node.ready();
            self.queue.extend(ready.take_messages());
            let store = node.store().clone();
            if let Some(state) = ready.hs() {
                store.wl().set_hardstate(state.clone());
            }
            store.wl().append(ready.entries()).unwrap();
            self.applied[who] += deliver(&ready.take_committed_entries());
            self.queue.extend(ready.take_persisted_messages());
            let mut light = node.advance(ready);
            if let Some(commit) = light.commit_index() {
                store.wl().mut_hard_state().set_commit(commit);
            }
            self.queue.extend(light.take_messages());
            self.applied[who] += deliver(&light.take_committed_entries());
            node.advance_apply();
        }

        /// Keeps what is held in memory bounded, as our window is.
        fn compact(&mut self) {
            for node in &mut self.nodes {
                let applied = node.raft.raft_log.applied;
                if applied > 1000 {
                    node.store().wl().compact(applied - 500).unwrap();
                }
            }
        }
    }

    fn deliver(entries: &[Entry]) -> u64 {
        entries.iter().filter(|entry| !entry.data.is_empty()).count() as u64
    }

    pub(super) fn raft(c: &mut Criterion) {
        let mut group = c.benchmark_group("replicate 100 B");
        for (voters, batch) in [(3, 1), (3, 64), (5, 64), (7, 64)] {
            let mut nodes = Nodes::elected(voters);
            let body = vec![7; 100];
            group.throughput(Throughput::Elements(batch));
            let name = format!("raft-rs, {voters} servers, batches of {batch}");
            let mut proposed = 0;
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| {
                    for _ in 0..batch {
                        nodes.nodes[0].propose(vec![], body.clone()).unwrap();
                    }
                    nodes.settle();
                    proposed += batch;
                    if proposed % 512 == 0 {
                        nodes.compact();
                    }
                });
            });
            assert_eq!(nodes.applied[0], proposed, "the leader has delivered everything");
        }
        group.finish();
    }
}

#[cfg(feature = "peers")]
criterion_group!(benches, ours, peers::raft);
#[cfg(not(feature = "peers"))]
criterion_group!(benches, ours);
criterion_main!(benches);
