//! The core driven by hand, as somebody would who brings a runtime of their own: three servers, a
//! perfect network, a disk that is never slow.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, VecDeque};

use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::output::{Output, Write};
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::ServerState;
use quorate_core::zxid::Zxid;

struct World {
    peers: BTreeMap<ServerId, Peer>,
    queue: VecDeque<(ServerId, Event)>,
    ends: BTreeMap<LinkId, (ServerId, LinkId)>,
    links: u64,
    now: Instant,
    logs: BTreeMap<ServerId, Vec<Txn>>,
    delivered: BTreeMap<ServerId, Zxid>,
}

impl World {
    fn new(ids: &[i64]) -> Self {
        let text: String =
            ids.iter().map(|id| format!("server.{id}=host{id}:2888:3888:participant\n")).collect();
        let membership = Membership::parse(text + "version=0").unwrap();
        let peer = |id| {
            let config = Config::new(ServerId(id), membership.clone());
            (ServerId(id), Peer::new(config, Durable::default()).unwrap())
        };
        Self {
            peers: ids.iter().copied().map(peer).collect(),
            queue: VecDeque::new(),
            ends: BTreeMap::new(),
            links: 0,
            now: Instant::ORIGIN,
            logs: BTreeMap::new(),
            delivered: BTreeMap::new(),
        }
    }

    fn step(&mut self, id: ServerId, event: Event) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for output in peer.step(Input { at: self.now, event }) {
            match output {
                Output::Dial { plane, peer, .. } => {
                    if !self.peers.contains_key(&peer) {
                        self.queue.push_back((id, Event::DialFailed { plane, peer }));
                        continue;
                    }
                    let (ours, theirs) = (LinkId(self.links), LinkId(self.links + 1));
                    self.links += 2;
                    self.ends.insert(ours, (peer, theirs));
                    self.ends.insert(theirs, (id, ours));
                    let up = |link, dialled, peer| {
                        let (advertised, remote) = (None, None);
                        Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised, remote })
                    };
                    let who = (plane == Plane::Election).then_some(id);
                    self.queue.push_back((id, up(ours, true, Some(peer))));
                    self.queue.push_back((peer, up(theirs, false, who)));
                }
                Output::Hangup { link, .. } => {
                    if let Some((peer, theirs)) = self.ends.remove(&link) {
                        self.ends.remove(&theirs);
                        let cause = Cause::Closed;
                        self.queue.push_back((peer, Event::LinkDown { link: theirs, cause }));
                    }
                }
                Output::Send { link, message } => {
                    if let Some((peer, theirs)) = self.ends.get(&link) {
                        self.queue.push_back((*peer, Event::Received { link: *theirs, message }));
                    }
                }
                Output::Persist { ticket, write } => {
                    if let Write::Append(txns) = write {
                        self.logs.entry(id).or_default().extend_from_slice(&txns);
                    }
                    self.queue.push_back((id, Event::Persisted(ticket)));
                }
                Output::Prepare { epoch, request, .. } => {
                    let RequestId { client, cxid } = request.id;
                    let header = TxnHeader { client, cxid, time: 0, kind: request.op };
                    let drafts = vec![Draft { header, body: request.body }];
                    self.queue.push_back((id, Event::Prepared { epoch, drafts }));
                }
                Output::DeliverThrough(zxid) => {
                    self.delivered.insert(id, zxid);
                }
                Output::Report(_) | Output::Abandon | Output::Accepted(_) => {}
                Output::Halt(fault) => panic!("{fault}"),
                other @ (Output::Pace(_)
                | Output::Locate { .. }
                | Output::StreamLog { .. }
                | Output::TakeSnapshot(_)
                | Output::SendSnapshot { .. }
                | Output::ReceiveSnapshot { .. }
                | Output::Answer(_)
                | Output::Refused { .. }
                | Output::ReadRefused { .. }) => panic!("not expected here: {other:?}"),
            }
        }
    }

    /// Serves everything that is due, then lets time pass to the next deadline.
    fn run(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if until(self) {
                return;
            }
            if let Some((id, event)) = self.queue.pop_front() {
                self.step(id, event);
            } else {
                let next = self.peers.iter().filter_map(|(id, p)| Some((p.deadline()?.0, *id)));
                let (at, id) = next.min().unwrap();
                self.now = self.now.max(at);
                self.step(id, Event::Tick);
            }
        }
        panic!("it did not come to that");
    }

    fn kill(&mut self, id: ServerId) {
        self.peers.remove(&id);
        let dead: Vec<_> = self.ends.iter().filter(|(_, (peer, _))| *peer == id).collect();
        let dead: Vec<_> = dead.into_iter().map(|(link, (_, theirs))| (*link, *theirs)).collect();
        for (link, theirs) in dead {
            let (owner, _) = self.ends.remove(&theirs).unwrap();
            self.ends.remove(&link);
            self.queue.push_back((owner, Event::LinkDown { link, cause: Cause::Reset }));
        }
    }

    fn all_serve(&self) -> bool {
        self.peers.values().all(|peer| peer.status().serving)
    }
}

#[test]
fn three_servers_elect_serve_and_survive_their_leader() {
    let mut world = World::new(&[1, 2, 3]);
    world.run(World::all_serve);
    let leader = world.peers[&ServerId(1)].status().leader.unwrap();
    assert_eq!(world.peers[&leader].status().state, ServerState::Leading);
    assert!(world.now.0 < 1_000_000, "no wait on the way: {:?}", world.now);
    world.kill(leader);
    world
        .run(|w| w.peers.values().all(|p| p.status().serving && p.status().leader != Some(leader)));
    for peer in world.peers.values() {
        let status = peer.status();
        assert_eq!((status.current_epoch.0, status.accepted_epoch.0), (2, 2), "{status:?}");
    }
}

/// What clients of every server write is logged by all in one order, and delivered through the last.
#[test]
fn what_anybody_writes_is_logged_and_delivered_by_all_in_one_order() {
    let mut world = World::new(&[1, 2, 3]);
    world.run(World::all_serve);
    for number in 0..30u8 {
        let cxid = i32::from(number);
        let (client, to) = (i64::from(number % 3) + 1, ServerId(i64::from(number % 3) + 1));
        let id = RequestId { client, cxid };
        let body = vec![number; 100].into();
        let request = Request { id, op: 5, body, identities: None };
        world.queue.push_back((to, Event::Propose(request)));
    }
    let last = Zxid(0x1_0000_001e);
    world.run(|w| w.peers.keys().all(|id| w.delivered.get(id) == Some(&last)));
    let log = world.logs[&ServerId(1)].clone();
    assert_eq!(log.len(), 30);
    assert!(log.iter().zip(1..).all(|(txn, n)| txn.zxid == Zxid(0x1_0000_0000 + n)));
    assert!(world.logs.values().all(|other| *other == log));
}
