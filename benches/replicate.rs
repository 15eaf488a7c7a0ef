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

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, TxnHeader};
use quorate_core::zxid::Zxid;

/// Servers of one process, and what is under way between them.
struct Ensemble {
    peers: Vec<Peer>,
    inboxes: Vec<Vec<Event>>,
    /// The other end of each link, and whose it is; links are numbered from 0.
    ends: Vec<(usize, LinkId)>,
    delivered: Vec<Zxid>,
    /// Kept for their memory.
    inbox: Vec<Event>,
    outputs: Vec<Output>,
}

impl Ensemble {
    fn established(voters: i64) -> Self {
        let lines: String = (1..=voters)
            .map(|id| format!("server.{id}=10.0.0.{id}:2888:3888:participant\n"))
            .collect();
        let membership = Membership::parse(lines + "version=0").unwrap();
        let peer = |id| {
            let config = Config::new(ServerId(id), membership.clone());
            Peer::new(config, Durable::default()).unwrap()
        };
        let count = usize::try_from(voters).unwrap();
        let mut ensemble = Self {
            peers: (1..=voters).map(peer).collect(),
            inboxes: vec![vec![Event::Tick]; count],
            ends: Vec::new(),
            delivered: vec![Zxid::ZERO; count],
            inbox: Vec::new(),
            outputs: Vec::new(),
        };
        ensemble.settle();
        assert!(ensemble.peers.iter().all(|peer| peer.status().serving));
        ensemble
    }

    fn leader(&self) -> usize {
        self.peers.iter().position(|p| p.status().leader == Some(p.config().id)).unwrap()
    }

    /// Lets everything happen that is under way.
    fn settle(&mut self) {
        while let Some(who) = self.inboxes.iter().position(|inbox| !inbox.is_empty()) {
            self.turn(who);
        }
    }

    /// One server takes what has come, and its disk what it is given.
    fn turn(&mut self, who: usize) {
        std::mem::swap(&mut self.inbox, &mut self.inboxes[who]);
        let mut outputs = std::mem::take(&mut self.outputs);
        for event in self.inbox.drain(..) {
            self.peers[who].step_into(Input { at: Instant(1), event }, &mut outputs);
        }
        let mut durable: Option<Ticket> = None;
        for output in outputs.drain(..) {
            match output {
                Output::Send { link, message } => {
                    let (to, link) = self.ends[usize::try_from(link.0).unwrap()];
                    self.inboxes[to].push(Event::Received { link, message });
                }
                Output::Persist { ticket, write } => {
                    black_box(&write);
                    durable = Some(ticket);
                }
                Output::DeliverThrough(zxid) => self.delivered[who] = zxid,
                Output::Pace(link) => self.inboxes[who].push(Event::Drained(link)),
                Output::Dial { plane, peer, .. } => self.connect(who, plane, peer),
                other => {
                    black_box(&other);
                }
            }
        }
        self.inboxes[who].extend(durable.map(Event::Persisted));
        self.outputs = outputs;
    }

    fn connect(&mut self, who: usize, plane: Plane, peer: ServerId) {
        let other = self.peers.iter().position(|p| p.config().id == peer).unwrap();
        let (ours, theirs) = (self.ends.len() as u64, self.ends.len() as u64 + 1);
        self.ends.extend([(other, LinkId(theirs)), (who, LinkId(ours))]);
        let id = self.peers[who].config().id;
        let up = |link, dialled, peer| {
            let (link, advertised, remote) = (LinkId(link), None, None);
            Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised, remote })
        };
        self.inboxes[who].push(up(ours, true, Some(peer)));
        let introduced = (plane == Plane::Election).then_some(id);
        self.inboxes[other].push(up(theirs, false, introduced));
    }
}

fn ours(c: &mut Criterion) {
    let mut group = c.benchmark_group("replicate 100 B");
    for (voters, batch) in [(3, 1), (3, 64), (5, 64), (7, 64)] {
        let mut ensemble = Ensemble::established(voters);
        let leader = ensemble.leader();
        let epoch = ensemble.peers[leader].status().current_epoch;
        let body = Bytes::from(vec![7; 100]);
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: 5 };
        group.throughput(Throughput::Elements(batch));
        let name = format!("quorate, {voters} servers, batches of {batch}");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let drafts = (0..batch).map(|_| Draft { header, body: body.clone() }).collect();
                ensemble.inboxes[leader].push(Event::Prepared { epoch, drafts });
                ensemble.settle();
            });
        });
        let last = ensemble.delivered[leader];
        assert!(ensemble.delivered.iter().all(|zxid| *zxid == last), "somebody lags behind");
    }
    group.finish();
}

criterion_group!(benches, ours);
criterion_main!(benches);
