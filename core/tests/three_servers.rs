//! The core driven by hand, as somebody would who brings a runtime of their own: three servers, a
//! perfect network, a disk that is never slow.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::output::{Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::TransferRefused;
use quorate_core::status::Status;
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
    handed_over: Vec<(ServerId, Result<ServerId, TransferRefused>)>,
    unreachable: Option<ServerId>,
}

impl World {
    fn new(ids: &[i64]) -> Self {
        Self::with(ids, |_| {})
    }

    fn with(ids: &[i64], change: impl Fn(&mut Config)) -> Self {
        let text: String =
            ids.iter().map(|id| format!("server.{id}=host{id}:2888:3888:participant\n")).collect();
        let membership = Membership::parse(text + "version=0").unwrap();
        let peer = |id| {
            let mut config = Config::new(ServerId(id), membership.clone());
            change(&mut config);
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
            handed_over: Vec::new(),
            unreachable: None,
        }
    }

    fn step(&mut self, id: ServerId, event: Event) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for output in peer.step(Input { at: self.now, event }) {
            match output {
                Output::Dial { plane, peer, .. } => {
                    let cut = [Some(id), Some(peer)].contains(&self.unreachable)
                        && self.unreachable.is_some();
                    if cut || !self.peers.contains_key(&peer) {
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
                Output::Resolve { link, .. } => {
                    let addresses = Vec::new();
                    self.queue.push_back((id, Event::Resolved { link, addresses }));
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
                Output::Deliver(Txn { zxid, .. }) | Output::Adopt { label: zxid } => {
                    self.delivered.insert(id, zxid);
                    self.queue.push_back((id, Event::Applied(zxid)));
                }
                Output::Replay { through, .. } => {
                    self.delivered.insert(id, through);
                    self.queue.push_back((id, Event::Replayed { through, outcome: Ok(()) }));
                }
                Output::Report(_)
                | Output::Abandon
                | Output::Discard
                | Output::Accepted(_)
                | Output::Lost(_)
                | Output::Unknown { .. }
                | Output::Leadership(_)
                | Output::Serving { .. }
                | Output::Retired
                | Output::Keep => {}
                Output::Release(release) => {
                    self.queue.push_back((id, Event::Released(release)));
                }
                Output::Transferred(outcome) => self.handed_over.push((id, outcome)),
                Output::Halt(fault) => panic!("{fault}"),
                other @ (Output::CancelDial { .. }
                | Output::NotifyDrained(_)
                | Output::Locate { .. }
                | Output::StreamLog { .. }
                | Output::TakeSnapshot(_)
                | Output::SendSnapshot { .. }
                | Output::ReceiveSnapshot { .. }
                | Output::Pinged
                | Output::Touched { .. }
                | Output::Revalidate { .. }
                | Output::Revalidated(_)
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

    /// A server that nobody can reach any more; the others learn that their links are broken, and it that
    /// nobody answers.
    fn silence(&mut self, id: ServerId) {
        let of_it: Vec<_> = self.ends.iter().filter(|(_, (peer, _))| *peer == id).collect();
        let links: Vec<_> = of_it.into_iter().map(|(link, (_, theirs))| (*link, *theirs)).collect();
        for (link, theirs) in links {
            let (owner, _) = self.ends.remove(&theirs).unwrap();
            self.ends.remove(&link);
            self.queue.push_back((owner, Event::LinkDown { link, cause: Cause::Reset }));
        }
        self.unreachable = Some(id);
    }

    fn all_serve(&self) -> bool {
        self.peers.values().all(|peer| peer.status().serving)
    }

    fn all_serve_under(&self, leader: i64) -> bool {
        let under = |status: Status| status.serving && status.leader == Some(ServerId(leader));
        self.peers.values().all(|peer| under(peer.status()))
    }

    fn propose(&mut self, to: i64, cxid: i32) {
        let id = RequestId { client: to, cxid };
        let request = Request { id, op: 5, body: vec![1; 100].into(), identities: None };
        self.queue.push_back((ServerId(to), Event::Propose(request)));
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

/// What is asked for while the leadership goes from one to the other waits, and is done in the new leadership.
#[test]
fn a_leader_gives_its_leadership_to_the_server_that_was_named_and_nobody_who_asks_notices() {
    let mut world = World::new(&[1, 2, 3]);
    world.run(World::all_serve);
    for cxid in 0..10 {
        world.propose(3, cxid);
    }
    world.queue.push_back((ServerId(3), Event::TransferLeadership(Some(ServerId(1)))));
    for cxid in 10..20 {
        world.propose(3, cxid);
    }
    let before = world.now;
    world.run(|w| w.all_serve_under(1) && w.delivered.values().all(|z| z.counter().0 > 0));
    assert_eq!(world.handed_over, [(ServerId(3), Ok(ServerId(1)))]);
    assert_eq!(world.now, before, "nothing was waited for");
    for cxid in 20..30 {
        world.propose(3, cxid);
        world.propose(2, cxid);
    }
    let done = |w: &World| w.logs[&ServerId(2)].len() == 40 && w.queue.is_empty();
    world.run(done);
    let log = &world.logs[&ServerId(1)];
    let of_three = log.iter().filter(|txn| txn.header.client == 3).map(|txn| txn.header.cxid);
    assert!(of_three.eq(0..30), "each once, in order: {log:?}");
    assert!(world.logs.values().all(|other| other == log));
    assert_eq!(log.last().unwrap().zxid.epoch().0, 2, "of the new leadership");
}

#[test]
fn a_leader_that_steps_down_lets_the_best_of_its_followers_lead() {
    let mut world = World::new(&[1, 2, 3]);
    world.run(World::all_serve);
    world.queue.push_back((ServerId(3), Event::StepDown));
    world.run(|w| w.all_serve_under(2));
    assert_eq!(world.handed_over, [], "nobody asked for anybody");
}

#[test]
fn the_server_that_is_wished_most_comes_to_lead_and_stays() {
    let mut world = World::with(&[1, 2, 3], |config| {
        config.priority = [0, 9, 1, 1][usize::try_from(config.id.0).unwrap()];
    });
    world.run(World::all_serve);
    let elected = world.peers[&ServerId(2)].status().leader;
    assert_eq!(elected, Some(ServerId(3)), "votes know no wishes");
    world.run(|w| w.all_serve_under(1));
    let end = world.now + Duration::from_secs(60);
    world.run(|w| w.now > end);
    assert!(world.all_serve_under(1));
    assert_eq!(world.peers[&ServerId(1)].status().current_epoch.0, 2, "once");
}

/// With leases: a leader that is cut off gives up before the others can have established another.
#[test]
fn a_leader_that_hears_nobody_gives_up_before_another_is_established() {
    let lease = Duration::from_secs(6);
    let mut world = World::with(&[1, 2, 3], |config| config.lease = Some(lease));
    world.run(World::all_serve);
    let leases = |w: &World| w.peers[&ServerId(3)].leadership().and_then(|l| l.lease);
    assert!(world.now >= Instant::ORIGIN + lease, "a start counts as a promise just made");
    world.run(|w| leases(w).is_some());
    let end = world.now + Duration::from_secs(30);
    world.run(|w| w.now > end && w.queue.is_empty());
    let until = leases(&world).unwrap();
    assert!(until > world.now, "it is renewed");
    // From here on it says and hears nothing, and the others find out at once.
    world.silence(ServerId(3));
    world.run(|w| w.peers[&ServerId(3)].leadership().is_none());
    assert!(world.now <= until, "by its own clock");
    assert!(!world.all_serve_under(2));
    world.run(|w| [1, 2].iter().all(|id| w.peers[&ServerId(*id)].status().serving));
    assert!(world.now >= until, "{:?} is before {until:?}", world.now);
}
