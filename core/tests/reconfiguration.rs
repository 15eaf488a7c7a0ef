//! The membership changes while the ensemble serves.
//!
//! Most of it in a small world of whole servers: a perfect network, disks that are never slow, and
//! whatever the test does to them. Throughout, all servers deliver one and the same history, and a server
//! that was killed comes back with what its disk had.
#![expect(clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::{Member, Membership};
use quorate_core::message::{Message, Notification, Packet, Request};
use quorate_core::output::{Form, Kept, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reconfiguration::{Reconfiguration, Unchanged, body_of};
use quorate_core::report::{Reason, Status};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};
use support::{Bench, ack, ack_epoch, entry, info, leader_info, start, vote, with_observers, z};

/// What the disk of one server holds; what was asked for is done at once.
#[derive(Clone, Debug)]
struct Disk {
    accepted: Epoch,
    current: Epoch,
    /// From here on the log has no hole; the label of the snapshot before it.
    floor: Zxid,
    log: Vec<Txn>,
    membership: Membership,
    next: Option<Membership>,
}

impl Disk {
    fn durable(&self) -> Durable {
        let window: VecDeque<_> =
            self.log.iter().filter(|txn| txn.zxid > self.floor).cloned().collect();
        Durable {
            accepted_epoch: self.accepted,
            current_epoch: self.current,
            last_zxid: window.back().map_or(self.floor, |txn| txn.zxid),
            floor: self.floor,
            snapshot: self.floor,
            window,
        }
    }
}

struct World {
    peers: BTreeMap<ServerId, Peer>,
    disks: BTreeMap<ServerId, Disk>,
    queue: VecDeque<(ServerId, Event)>,
    ends: BTreeMap<LinkId, (ServerId, LinkId)>,
    /// What a snapshot on its way holds, by the receiver's link.
    snapshots: BTreeMap<LinkId, Vec<Txn>>,
    /// What was received and is not installed: label, content, and what came behind it.
    beside: BTreeMap<ServerId, (Zxid, Vec<Txn>)>,
    links: u64,
    now: Instant,
    /// What anybody has delivered, in order.
    agreed: Vec<Txn>,
    delivered: BTreeMap<ServerId, Zxid>,
    handed_over: Vec<(ServerId, Result<ServerId, Kept>)>,
    /// Servers that nobody reaches.
    cut_off: BTreeSet<ServerId>,
    /// What only a leader may is done at each of them, and ends when the test says so.
    guarded: bool,
    /// Those where it is to end.
    sent_away: Vec<ServerId>,
    /// Why roles were given up or changed.
    reasons: Vec<(ServerId, Reason)>,
    cxids: i32,
    settings: fn(&mut Config),
}

fn s(id: i64) -> ServerId {
    ServerId(id)
}

fn member(id: i64, role: &str) -> Member {
    Member::parse(s(id), &format!("host{id}:2888:3888:{role}")).unwrap()
}

fn voters(ids: &[i64]) -> Membership {
    Membership::parse(support::ensemble(ids)).unwrap()
}

fn join(ids: &[i64]) -> Reconfiguration {
    Reconfiguration::change(ids.iter().map(|id| member(*id, "participant")), [])
}

fn leave(ids: &[i64]) -> Reconfiguration {
    Reconfiguration::change([], ids.iter().copied().map(ServerId))
}

impl World {
    /// Servers of an ensemble that serves.
    fn new(ids: &[i64]) -> Self {
        Self::with(ids, |_| {})
    }

    fn with(ids: &[i64], settings: fn(&mut Config)) -> Self {
        let mut world = Self {
            peers: BTreeMap::new(),
            disks: BTreeMap::new(),
            queue: VecDeque::new(),
            ends: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            beside: BTreeMap::new(),
            links: 0,
            now: Instant::ORIGIN,
            agreed: Vec::new(),
            delivered: BTreeMap::new(),
            handed_over: Vec::new(),
            cut_off: BTreeSet::new(),
            guarded: false,
            sent_away: Vec::new(),
            reasons: Vec::new(),
            cxids: 0,
            settings,
        };
        ids.iter().for_each(|id| world.add(*id, &voters(ids)));
        if !ids.is_empty() {
            world.run(Self::all_serve);
        }
        world
    }

    /// A new server that was told this.
    fn add(&mut self, id: i64, membership: &Membership) {
        let (accepted, current, floor) = (Epoch::ZERO, Epoch::ZERO, Zxid::ZERO);
        let (membership, log) = (membership.clone(), Vec::new());
        let disk = Disk { accepted, current, floor, log, membership, next: None };
        self.disks.insert(s(id), disk);
        self.start(id);
    }

    /// It starts with what its disk holds.
    fn start(&mut self, id: i64) {
        let disk = &self.disks[&s(id)];
        let mut config = Config::new(s(id), disk.membership.clone());
        config.next_membership.clone_from(&disk.next);
        config.reconfig_enabled = true;
        (self.settings)(&mut config);
        let mut peer = Peer::new(config, disk.durable()).unwrap();
        // Its clock begins when it starts.
        assert_eq!(peer.step(Input { at: Instant::ORIGIN, event: Event::Oracle(false) }), []);
        self.peers.insert(s(id), peer);
    }

    fn step(&mut self, id: ServerId, event: Event) {
        if let Event::Restored(link) = event {
            let content = self.snapshots.remove(&link).unwrap_or_default();
            self.beside.entry(id).or_insert((Zxid::ZERO, Vec::new())).1 = content;
        }
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let now = self.now;
        for output in peer.step(Input { at: now, event }) {
            self.carry_out(id, output);
        }
    }

    fn carry_out(&mut self, id: ServerId, output: Output) {
        match output {
            Output::Dial { plane, peer, .. } => {
                let cut = self.cut_off.contains(&id) || self.cut_off.contains(&peer);
                if cut || !self.peers.contains_key(&peer) {
                    self.queue.push_back((id, Event::DialFailed { plane, peer }));
                    return;
                }
                let (ours, theirs) = (LinkId(self.links), LinkId(self.links + 1));
                self.links += 2;
                self.ends.insert(ours, (peer, theirs));
                self.ends.insert(theirs, (id, ours));
                let (advertised, remote) = (
                    Some(support::at(&format!("host{id}"), 3888)),
                    Some("127.0.0.1".parse().unwrap()),
                );
                let dialled = LinkUp {
                    link: ours,
                    plane,
                    dialled: true,
                    peer: Some(peer),
                    advertised: None,
                    remote: None,
                };
                let who = (plane == Plane::Election).then_some(id);
                let accepted =
                    LinkUp { link: theirs, plane, dialled: false, peer: who, advertised, remote };
                self.queue.push_back((id, Event::LinkUp(dialled)));
                self.queue.push_back((peer, Event::LinkUp(accepted)));
            }
            Output::Hangup { link, .. } => {
                if let Some((peer, theirs)) = self.ends.remove(&link) {
                    self.ends.remove(&theirs);
                    let cause = Cause::Closed;
                    self.queue.push_back((peer, Event::LinkDown { link: theirs, cause }));
                }
            }
            Output::Send { link, message } => self.send(link, message),
            Output::Persist { ticket, write } => self.write(id, ticket, write),
            Output::Prepare { epoch, request, .. } => {
                let RequestId { client, cxid } = request.id;
                let header = TxnHeader { client, cxid, time: 0, kind: request.op };
                let drafts = vec![Draft { header, body: request.body }];
                self.queue.push_back((id, Event::Prepared { epoch, drafts }));
            }
            Output::DeliverThrough(zxid) => self.deliver(id, zxid),
            Output::SendSnapshot { link, label } => {
                let log = &self.disks[&id].log;
                let content = log.iter().filter(|txn| txn.zxid <= label).cloned().collect();
                if let Some((_, theirs)) = self.ends.get(&link) {
                    self.snapshots.insert(*theirs, content);
                }
                self.send(link, Message::Packet(Packet::Snap(label)));
                self.queue.push_back((id, Event::Streamed { link, outcome: Ok(()) }));
            }
            Output::ReceiveSnapshot { link, label } => {
                self.beside.insert(id, (label, Vec::new()));
                self.queue.push_back((id, Event::Restored(link)));
            }
            Output::HandedOver(outcome) => self.handed_over.push((id, outcome)),
            Output::Release if self.guarded => self.sent_away.push(id),
            Output::Release => self.queue.push_back((id, Event::Released)),
            Output::Pace(link) => self.queue.push_back((id, Event::Drained(link))),
            Output::Report(report) => self.reasons.push((id, report.reason)),
            Output::Locate { link, zxid } => {
                let disk = &self.disks[&id];
                let held = zxid == disk.floor || disk.log.iter().any(|txn| txn.zxid == zxid);
                let place = if held { support_place::HELD } else { support_place::BELOW };
                let located = support::cheap(place);
                self.queue.push_back((id, Event::Located { link, located }));
            }
            Output::Halt(fault) => panic!("{id}: {fault}"),
            Output::Abandon
            | Output::Accepted(_)
            | Output::Refused { .. }
            | Output::Answer(_)
            | Output::ReadRefused { .. }
            | Output::Keep => {}
            Output::StreamLog { link, after, through, form } => {
                self.stream(id, link, (after, through), form);
            }
            other @ Output::TakeSnapshot(_) => panic!("not expected here: {other:?}"),
        }
    }

    fn send(&mut self, link: LinkId, message: Message) {
        if let Some((peer, theirs)) = self.ends.get(&link) {
            self.queue.push_back((*peer, Event::Received { link: *theirs, message }));
        }
    }

    fn stream(&mut self, id: ServerId, link: LinkId, (after, through): (Zxid, Zxid), form: Form) {
        let log = self.disks[&id].log.clone();
        for txn in log.into_iter().filter(|txn| txn.zxid > after && txn.zxid <= through) {
            let commit = Packet::Commit(txn.zxid);
            let packets = match form {
                Form::Proposals => vec![Packet::Proposal(txn)],
                Form::Committed => vec![Packet::Proposal(txn), commit],
                Form::Commits => vec![commit],
                Form::Informs => vec![Packet::Inform(txn)],
            };
            packets.into_iter().for_each(|packet| self.send(link, Message::Packet(packet)));
        }
        self.queue.push_back((id, Event::Streamed { link, outcome: Ok(()) }));
    }

    fn write(&mut self, id: ServerId, ticket: Ticket, write: Write) {
        let disk = self.disks.get_mut(&id).unwrap();
        match write {
            Write::AcceptedEpoch(epoch) => disk.accepted = epoch,
            Write::CurrentEpoch(epoch) => disk.current = epoch,
            Write::Append(txns) => disk.log.extend_from_slice(&txns),
            Write::Truncate(zxid) => disk.log.retain(|txn| txn.zxid <= zxid),
            Write::Beside(txn) => self.beside.get_mut(&id).unwrap().1.push(txn),
            Write::Install { .. } => (disk.floor, disk.log) = self.beside.remove(&id).unwrap(),
            Write::Membership(text) => {
                disk.membership = Membership::parse(text).unwrap();
                let version = disk.membership.version();
                disk.next = disk.next.take().filter(|next| next.version() > version);
            }
            Write::NextMembership(text) => {
                disk.next = text.map(|text| Membership::parse(text).unwrap());
            }
        }
        self.queue.push_back((id, Event::Persisted(ticket)));
    }

    /// Everybody delivers the same, in the same order.
    fn deliver(&mut self, id: ServerId, zxid: Zxid) {
        let log: Vec<_> =
            self.disks[&id].log.iter().filter(|txn| txn.zxid <= zxid).cloned().collect();
        let common = log.len().min(self.agreed.len());
        assert_eq!(log[..common], self.agreed[..common], "{id} delivers something else");
        self.agreed.extend_from_slice(&log[common..]);
        self.delivered.insert(id, zxid);
    }

    /// Serves everything that is due, then lets time pass to the next deadline.
    #[track_caller]
    fn run(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..50_000 {
            if self.queue.is_empty() && until(self) {
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
        let tell = |peer: &Peer| {
            let (status, config) = (peer.status(), peer.config());
            let next = config.next_membership.as_ref().map(|next| next.to_string());
            let Status { id, state, round, vote, last, serving, leader, linked, .. } = status;
            format!(
                "{id} {state} {leader:?} {serving} {last} {round:?} {vote} linked {linked:?}\n{}\n{next:?}\n",
                config.membership
            )
        };
        let told: String = self.peers.values().map(tell).collect();
        panic!("it did not come to that:\n{told}");
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.run(|world| world.now > end);
    }

    fn kill(&mut self, id: i64) {
        self.peers.remove(&s(id));
        self.delivered.remove(&s(id));
        self.beside.remove(&s(id));
        self.queue.retain(|(to, _)| *to != s(id));
        self.break_links(s(id));
    }

    fn break_links(&mut self, id: ServerId) {
        let of_it: Vec<_> = self.ends.iter().filter(|(_, (peer, _))| *peer == id).collect();
        let links: Vec<_> = of_it.into_iter().map(|(link, (_, theirs))| (*link, *theirs)).collect();
        for (link, theirs) in links {
            let Some((owner, _)) = self.ends.remove(&theirs) else { continue };
            self.ends.remove(&link);
            for (of, link) in [(owner, link), (id, theirs)] {
                self.queue.push_back((of, Event::LinkDown { link, cause: Cause::Reset }));
            }
        }
    }

    fn cut_off(&mut self, id: i64) {
        self.cut_off.insert(s(id));
        self.break_links(s(id));
    }

    fn status(&self, id: i64) -> Status {
        self.peers[&s(id)].status()
    }

    fn all_serve(&self) -> bool {
        let leaders: BTreeSet<_> = self.peers.values().map(|peer| peer.status().leader).collect();
        self.peers.values().all(|peer| peer.status().serving) && leaders.len() == 1
    }

    fn leader(&self) -> i64 {
        let leads = |peer: &&Peer| peer.status().state == ServerState::Leading;
        self.peers.values().find(leads).unwrap().status().id.0
    }

    fn request(&mut self, to: i64, op: i32, body: Bytes) -> i32 {
        self.cxids += 1;
        let id = RequestId { client: to, cxid: self.cxids };
        let request = Request { id, op, body, identities: None };
        self.queue.push_back((s(to), Event::Propose(request)));
        self.cxids
    }

    fn propose(&mut self, to: i64) -> i32 {
        self.request(to, 5, Bytes::from_static(b"something"))
    }

    fn ask(&mut self, to: i64, asked: &Reconfiguration) -> i32 {
        self.request(to, Request::RECONFIGURE, asked.encode())
    }

    /// What became of a request, once that is known anywhere.
    fn outcome(&self, cxid: i32) -> Option<&Txn> {
        self.agreed.iter().find(|txn| txn.header.cxid == cxid)
    }

    /// Asks, and waits for what becomes of it: the version that it brought.
    #[track_caller]
    fn reconfigure(&mut self, to: i64, asked: &Reconfiguration) -> Result<i64, Unchanged> {
        let cxid = self.ask(to, asked);
        self.run(|world| world.outcome(cxid).is_some());
        let txn = self.outcome(cxid).unwrap();
        if txn.header.kind == Txn::RECONFIGURATION {
            return Ok(txn.zxid.0);
        }
        assert_eq!(txn.header.kind, Txn::REJECTED);
        let code = i32::from_be_bytes(*txn.body.first_chunk().unwrap());
        Err(Unchanged::from_code(code).unwrap())
    }

    /// Everybody is of one mind, on disk too, and serves; who votes.
    #[track_caller]
    fn settle(&mut self) -> Vec<i64> {
        let of_one_mind = |world: &Self| {
            let last = world.agreed.last().map(|txn| txn.zxid);
            let mut delivered = world.peers.keys().map(|id| world.delivered.get(id).copied());
            let all = delivered.all(|through| through >= last);
            let mut configs = world.peers.values().map(Peer::config);
            let first = &world.peers.values().next().unwrap().config().membership;
            let same =
                |config: &Config| config.membership == *first && config.next_membership.is_none();
            all && configs.all(same) && world.all_serve()
        };
        self.run(of_one_mind);
        for (id, peer) in &self.peers {
            let (config, disk) = (peer.config(), &self.disks[id]);
            assert_eq!(
                (&config.membership, &config.next_membership),
                (&disk.membership, &disk.next)
            );
            assert_eq!(peer.status().voter, config.membership.is_participant(*id));
        }
        let any = self.peers.values().next().unwrap();
        any.config().membership.participants().map(|member| member.id.0).collect()
    }
}

mod support_place {
    use quorate_core::input::Place;

    pub(crate) const HELD: Place = Place::Held;
    pub(crate) const BELOW: Place = Place::BelowFloor;
}

// --- growing and shrinking ---

#[test]
fn an_ensemble_grows_to_five_and_shrinks_to_three_while_everybody_writes() {
    let mut world = World::new(&[1, 2, 3]);
    assert_eq!(world.status(1).voters, 3);
    let mut asked: Vec<i32> = Vec::new();
    let steps = [
        (Some(4), join(&[4]), vec![1, 2, 3, 4]),
        (Some(5), join(&[5]), vec![1, 2, 3, 4, 5]),
        (None, leave(&[1, 2]), vec![3, 4, 5]),
    ];
    for (new, change, expected) in steps {
        if let Some(id) = new {
            world.add(id, &voters(&[1, 2, 3, id]));
            world.run(World::all_serve);
            assert!(!world.status(id).voter, "it follows, and has no vote yet");
        }
        asked.extend((0..10).map(|n| world.propose(1 + n % 3)));
        let change = world.ask(2, &change);
        asked.extend((0..10).map(|n| world.propose(1 + n % 3)));
        world.run(|world| world.outcome(change).is_some());
        assert_eq!(world.settle(), expected);
    }
    assert!(asked.iter().all(|cxid| world.outcome(*cxid).is_some_and(|txn| txn.header.kind == 5)));
    assert_eq!(world.status(3).current_epoch.0, 1, "nobody noticed");
    assert_eq!(world.leader(), 3);

    // Those that are left are enough, and those that left follow without a vote.
    world.kill(4);
    world.run(World::all_serve);
    let cxid = world.propose(5);
    world.run(|world| world.outcome(cxid).is_some());
    assert!(!world.status(1).voter && world.status(1).serving);
    world.kill(5);
    world.run(|world| !world.status(3).serving);
}

#[test]
fn the_version_is_the_zxid_and_the_text_the_same_everywhere() {
    let mut world = World::new(&[1, 2, 3]);
    let first = world.peers[&s(2)].config().membership.version();
    assert_eq!(first, start(1).0, "the first membership got its version with the first epoch");
    world.propose(1);
    let version = world.reconfigure(1, &Reconfiguration::change([], []).if_version(first));
    assert_eq!(version, Ok(z(1, 2).0), "the same members, another version");
    world.settle();
    let text = String::from_utf8(world.disks[&s(1)].membership.text().to_vec()).unwrap();
    assert!(text.ends_with("version=100000002"), "{text}");
    let txn = world.agreed.last().unwrap();
    assert_eq!(txn.body, body_of(&world.disks[&s(1)].membership));
}

#[test]
fn what_cannot_be_is_refused_in_its_turn_and_says_why() {
    let mut world = World::new(&[1, 2, 3]);
    let refused = |world: &mut World, asked: Reconfiguration| world.reconfigure(1, &asked).err();
    let twice = Member::parse(s(4), "host1:2888:4888").unwrap();
    let twice = Reconfiguration::change([twice], []);
    assert_eq!(refused(&mut world, twice), Some(Unchanged::Unsuitable));
    assert_eq!(refused(&mut world, leave(&[1, 2])), Some(Unchanged::Unsuitable), "one is too few");
    assert_eq!(refused(&mut world, leave(&[1]).if_version(7)), Some(Unchanged::Version));
    let strangers = Reconfiguration::whole(voters(&[3, 8, 9]));
    assert_eq!(refused(&mut world, strangers), Some(Unchanged::NoQuorum));
    let cxid = world.request(2, Request::RECONFIGURE, Bytes::from_static(b"nonsense"));
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.outcome(cxid).unwrap().header.kind, Txn::REJECTED);
    assert_eq!(world.settle(), [1, 2, 3]);

    // Two at once: the second comes while the first is under way.
    let (first, second) = (world.ask(3, &leave(&[1])), world.ask(3, &leave(&[2])));
    world.run(|world| world.outcome(second).is_some());
    assert_eq!(world.outcome(first).unwrap().header.kind, Txn::RECONFIGURATION);
    let code = Unchanged::Underway.code().to_be_bytes();
    assert_eq!(world.outcome(second).unwrap().body, code[..]);
    assert_eq!(world.settle(), [2, 3]);

    let mut world = World::with(&[1, 2, 3], |config| config.reconfig_enabled = false);
    assert_eq!(refused(&mut world, join(&[4])), Some(Unchanged::Disabled));
    assert_eq!(world.peers[&s(1)].config().membership.version(), 0, "it stays as it was told");
}

// --- the leader leaves ---

/// The next leader is named, and takes over without an election; whoever asks waits a little.
#[test]
fn a_leader_removes_itself_and_follows_without_a_vote() {
    let mut world = World::new(&[1, 2, 3, 4]);
    assert_eq!(world.leader(), 4);
    let before: Vec<_> = (0..5).map(|_| world.propose(4)).collect();
    let gone = world.ask(1, &leave(&[4]));
    let after: Vec<_> = (0..5).map(|n| world.propose(1 + n % 4)).collect();
    let now = world.now;
    world.run(|world| world.outcome(gone).is_some());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.now, now, "nothing was waited for");
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 2));
    assert_eq!(world.status(4).state, ServerState::Following);
    assert!(before.iter().all(|cxid| world.outcome(*cxid).is_some()));
    // What came through a follower may have been lost with its link, and is not known to be done.
    let own = after.iter().zip(0..).filter(|(_, n)| 1 + n % 4 == 4);
    assert!(own.map(|(cxid, _)| cxid).all(|cxid| world.outcome(*cxid).is_some()), "its own waited");
    let handed = world.reasons.iter().filter(
        |(_, reason)| matches!(reason, Reason::HandedOver { from, to } if (from.0, to.0) == (4, 3)),
    );
    assert!(handed.count() >= 4, "everybody was told");

    world.kill(4);
    let cxid = world.propose(1);
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.leader(), 3);
}

#[test]
fn a_leader_that_becomes_an_observer_observes_the_next_one() {
    let mut world = World::new(&[1, 2, 3]);
    let asked = Reconfiguration::change([member(3, "observer")], []);
    assert!(world.reconfigure(3, &asked).is_ok());
    assert_eq!(world.settle(), [1, 2]);
    assert_eq!((world.leader(), world.status(3).state), (2, ServerState::Observing));
    let back = Reconfiguration::change([member(3, "participant")], []);
    assert!(world.reconfigure(1, &back).is_ok());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!((world.leader(), world.status(3).state), (2, ServerState::Following));
}

/// The next leader does not begin before those have ended who do at this one what only a leader may; or before
/// they had time enough: their loss was told when that began.
#[test]
fn a_leader_that_leaves_waits_for_those_who_do_what_only_a_leader_may() {
    for ends in [true, false] {
        let mut world = World::new(&[1, 2, 3]);
        world.guarded = true;
        let begun = world.now;
        let cxid = world.ask(1, &leave(&[3]));
        world.run(|world| !world.sent_away.is_empty());
        assert_eq!(world.sent_away, [s(3)]);
        assert!(world.outcome(cxid).is_none() && world.status(3).serving, "it still leads");
        if ends {
            world.queue.push_back((s(3), Event::Released));
            world.run(|world| world.outcome(cxid).is_some());
            assert_eq!(world.now, begun, "nothing else was waited for");
        }
        assert_eq!(world.settle(), [1, 2]);
        assert_eq!(world.leader(), 2);
        assert_eq!(world.now >= begun + Duration::from_secs(1), !ends);
        assert_eq!(world.sent_away, [s(3)], "once");
    }
}

// --- roles change ---

#[test]
fn followers_become_observers_and_observers_followers_without_an_election() {
    let mut world = World::new(&[1, 2, 3]);
    world.add(4, &Membership::parse(with_observers(&[1, 2, 3], &[4])).unwrap());
    world.run(World::all_serve);
    let observer = Reconfiguration::change([member(4, "observer")], []);
    let now = world.now;
    assert!(world.reconfigure(2, &observer).is_ok());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.status(4).state, ServerState::Observing);
    let swap = Reconfiguration::change([member(4, "participant"), member(1, "observer")], []);
    assert!(world.reconfigure(4, &swap).is_ok());
    assert_eq!(world.settle(), [2, 3, 4]);
    assert_eq!(world.status(4).state, ServerState::Following);
    assert_eq!(world.status(1).state, ServerState::Observing);
    assert_eq!(world.now, now, "nothing was waited for");
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

// --- both quorums ---

/// Asked for at a leader of 1, 2, 3 whom 4 and 5 follow; they go before it is proposed to them.
fn to_those_who_have_gone() -> World {
    let mut world = World::new(&[1, 2, 3]);
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
    }
    world.run(World::all_serve);
    let asked = Reconfiguration::whole(voters(&[3, 4, 5]));
    world.ask(3, &asked);
    while world.disks[&s(3)].next.is_none() {
        let (id, event) = world.queue.pop_front().unwrap();
        world.step(id, event);
    }
    world.cut_off(4);
    world.cut_off(5);
    world
}

/// A leader without a quorum of the next membership gives up; what was under way binds until that quorum is
/// back, and then it comes to pass.
#[test]
fn a_leader_that_has_lost_the_next_voters_gives_up_and_the_change_comes_to_pass_when_they_are_back()
{
    let mut world = to_those_who_have_gone();
    world.run(|world| !world.status(3).serving);
    let (membership, before) = (world.disks[&s(3)].membership.version(), world.agreed.len());
    world.pass(Duration::from_secs(120));
    assert!([1, 2, 3].iter().all(|id| !world.status(*id).serving), "the old ones are not enough");
    assert_eq!((world.disks[&s(3)].membership.version(), world.agreed.len()), (membership, before));
    world.cut_off.clear();
    assert_eq!(world.settle(), [3, 4, 5]);
}

/// Restarted with a change under way, they still need both.
#[test]
fn both_quorums_are_needed_after_a_restart_too() {
    let mut world = to_those_who_have_gone();
    world.run(|world| !world.status(3).serving);
    for id in [1, 2, 3] {
        world.kill(id);
        assert!(world.disks[&s(id)].next.is_some(), "{id} has seen it");
        world.start(id);
    }
    world.pass(Duration::from_secs(120));
    assert!([1, 2, 3].iter().all(|id| !world.status(*id).serving));
    // The new ones alone are not enough either.
    world.kill(1);
    world.kill(2);
    world.cut_off.clear();
    world.pass(Duration::from_secs(120));
    assert!([3, 4, 5].iter().all(|id| !world.status(*id).serving));
    world.start(1);
    world.run(|world| world.status(3).serving);
    world.start(2);
    assert_eq!(world.settle(), [3, 4, 5]);
}

/// What never reached another disk came to nothing, and the old membership goes on.
#[test]
fn a_change_that_died_with_its_leader_is_forgotten() {
    let mut world = World::new(&[1, 2, 3, 4]);
    world.cut_off(4);
    // It has not noticed yet.
    let before = world.disks[&s(1)].membership.clone();
    world.queue.clear();
    world.ask(4, &leave(&[1]));
    world.kill_after_writing(4);
    world.run(|world| {
        [1, 2, 3]
            .iter()
            .all(|id| world.status(*id).serving && world.status(*id).leader == Some(s(3)))
    });
    let cxid = world.propose(1);
    world.run(|world| world.outcome(cxid).is_some());
    world.cut_off.clear();
    world.start(4);
    assert_eq!(world.settle(), [1, 2, 3, 4]);
    assert_eq!(world.disks[&s(4)].membership, before);
}

impl World {
    /// Of what a server is to do next it does so much; then it dies.
    fn kill_amid(&mut self, id: i64, outputs: usize) {
        while let Some((to, event)) = self.queue.pop_front() {
            let own = to == s(id) && !matches!(event, Event::Restored(_));
            match self.peers.get_mut(&to) {
                Some(peer) if own => {
                    let to_do = peer.step(Input { at: self.now, event });
                    let some = to_do.len() > 1;
                    to_do.into_iter().take(outputs).for_each(|output| self.carry_out(to, output));
                    if some {
                        break;
                    }
                }
                Some(_) | None => self.step(to, event),
            }
        }
        self.kill(id);
    }

    /// Lets a server do what it is about until its disk has seen another membership; then it dies.
    fn kill_after_writing(&mut self, id: i64) {
        while self.disks[&s(id)].next.is_none() {
            let (to, event) = self.queue.pop_front().unwrap();
            if to == s(id) {
                self.step(to, event);
            }
        }
        self.kill(id);
    }
}

/// 1 observes and is made a voter by a quorum of 2 and 3; before it hears of that, 2 is gone.
#[test]
fn a_voter_that_does_not_know_yet_that_it_is_one_votes_when_it_is_asked() {
    let text = with_observers(&[2, 3], &[1]);
    let membership = Membership::parse(text).unwrap();
    let mut world = World::new(&[]);
    [1, 2, 3].iter().for_each(|id| world.add(*id, &membership));
    world.run(World::all_serve);
    assert_eq!(world.leader(), 3);
    // Both voters have it in force, and 1 is told nothing any more.
    world.add(4, &voters(&[2, 3, 4]));
    world.run(World::all_serve);
    let cxid = world.ask(2, &join(&[4]));
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.settle(), [2, 3, 4]);
    world.kill(1);
    let asked = Reconfiguration::change([member(1, "participant")], [s(4)]);
    assert!(world.reconfigure(2, &asked).is_ok());
    world.kill(4);
    world.run(|world| world.status(2).serving && world.disks[&s(2)].next.is_none());
    assert!(!world.disks[&s(1)].membership.is_participant(s(1)), "it knows nothing");
    world.start(1);
    world.kill(3);
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.leader(), 2);
}

// --- the seat and the membership ---

#[test]
fn the_seat_is_not_handed_over_to_who_has_no_vote_nor_while_the_membership_changes() {
    let mut world = World::new(&[1, 2, 3]);
    world.add(4, &voters(&[1, 2, 3, 4]));
    world.run(World::all_serve);
    world.queue.push_back((s(3), Event::HandOver(Some(s(4)))));
    world.run(|world| world.handed_over.len() == 1);
    world.ask(3, &join(&[4]));
    while world.disks[&s(3)].next.is_none() {
        let (id, event) = world.queue.pop_front().unwrap();
        world.step(id, event);
    }
    world.queue.push_front((s(3), Event::HandOver(Some(s(1)))));
    world.settle();
    let refused = [Err(Kept::NoFollower(s(4))), Err(Kept::Reconfiguring)];
    assert_eq!(world.handed_over, refused.map(|outcome| (s(3), outcome)));
    world.queue.push_back((s(3), Event::HandOver(Some(s(4)))));
    world.run(|world| world.handed_over.len() == 3);
    assert_eq!(world.settle(), [1, 2, 3, 4]);
    assert_eq!(world.leader(), 4);
}

/// With leases, the new voters have promised before they count.
#[test]
fn a_leader_with_a_lease_keeps_it_over_a_change() {
    let mut world = World::with(&[1, 2, 3], |config| config.lease = Some(Duration::from_secs(6)));
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
        world.run(World::all_serve);
    }
    let lease = |world: &World| world.peers[&s(3)].reign().and_then(|reign| reign.lease);
    world.run(|world| lease(world).is_some());
    assert!(world.reconfigure(1, &Reconfiguration::whole(voters(&[3, 4, 5]))).is_ok());
    assert_eq!(world.settle(), [3, 4, 5]);
    assert!(lease(&world) > Some(world.now));
    world.pass(Duration::from_secs(30));
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

// --- packets ---

/// Server 3 of 1, 2, 3 and observer 9, established with 2 in epoch 1; the link of 2, and that of 9.
fn leader() -> (Bench, LinkId, LinkId) {
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(3, &with_observers(&[1, 2, 3], &[9]), Durable::default(), enable);
    bench.win(&[1, 2]);
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    let mut seen = bench.receive(two, ack_epoch(0, 0)).0;
    seen.extend(bench.persisted().0);
    let seen = support::Seen(seen);
    let said = seen.packets(two).into_iter().find_map(|packet| {
        let Packet::NewLeader { config, .. } = packet else { return None };
        Some(config)
    });
    let text = with_observers(&[1, 2, 3], &[9]).replace("version=0", "version=100000000");
    assert_eq!(said, Some(Bytes::from(text.clone())), "the first version is that of the epoch");
    assert!(seen.persists().contains(&Write::NextMembership(Some(text.clone().into()))));
    let seen = bench.receive(two, ack(1));
    assert!(seen.persists().contains(&Write::Membership(text.into())), "{seen:?}");
    assert!(bench.status().serving);
    let nine = bench.learner();
    bench.receive(nine, Packet::ObserverInfo(info(9, 1)));
    bench.receive(nine, support::ack_epoch_again(0));
    bench.receive(nine, ack(1));
    bench.persisted();
    (bench, two, nine)
}

fn reconfigure(bench: &mut Bench, asked: &Reconfiguration) -> support::Seen {
    let id = RequestId { client: 7, cxid: 9 };
    let request = Request { id, op: Request::RECONFIGURE, body: asked.encode(), identities: None };
    bench.step(Event::Propose(request));
    bench.prepared()
}

#[test]
fn a_change_goes_out_in_order_and_those_who_know_the_old_membership_are_told_to_activate_it() {
    let (mut bench, two, nine) = leader();
    bench.write(1);
    let seen = reconfigure(&mut bench, &leave(&[1]));
    let text = with_observers(&[2, 3], &[9]).replace("version=0", "version=100000002");
    let writes = seen.persists();
    assert_eq!(writes[0], Write::NextMembership(Some(text.clone().into())), "seen, then logged");
    let [Packet::Proposal(txn)] = &seen.packets(two)[..] else { panic!("{seen:?}") };
    assert_eq!((txn.zxid, txn.header.kind), (z(1, 2), Txn::RECONFIGURATION));
    let length = u8::try_from(text.len()).unwrap();
    let expected =
        [&[0, 0, 0, 17][..], b"/zookeeper/config", &[0, 0, 0, length], text.as_bytes(), &[0xff; 4]];
    assert_eq!(txn.body, expected.concat(), "as ZooKeeper's leaders write it");
    let txn = txn.clone();
    bench.write(1);
    bench.persisted();
    let run = quorate_core::message::Run { first: z(1, 1), last: z(1, 3) };
    let seen = bench.receive(two, Packet::Acks(run));
    let leader = s(3);
    let activate = Packet::CommitAndActivate { zxid: z(1, 2), leader };
    let commits = [Packet::Commit(z(1, 1)), activate, Packet::Commit(z(1, 3))];
    assert_eq!(seen.packets(two), commits);
    let informs = seen.packets(nine);
    assert_eq!(informs[1], Packet::InformAndActivate { leader, txn });
    assert_eq!(seen.names(nine), ["INFORM", "INFORMANDACTIVATE", "INFORM"]);
    assert_eq!(seen.persists(), [Write::Membership(text.into())]);
    assert_eq!(seen.delivered(), [z(1, 1), z(1, 2), z(1, 3)]);
    assert_eq!(bench.status().voters, 2);

    // To who comes later it is history like any other.
    let (one, _) = bench.follower(1, 1);
    bench.receive(one, support::ack_epoch_again(0));
    bench.streamed(one);
    let seen = bench.receive(one, ack(1));
    assert_eq!(seen.names(one), ["UPTODATE"]);
}

/// Its ACK says that it is bound.
#[test]
fn a_follower_acknowledges_a_change_when_both_it_and_the_membership_are_on_disk() {
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(1, &support::ensemble(&[1, 2, 3]), Durable::default(), enable);
    bench.lose(3, &[2], 0, 0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(1));
    bench.persisted();
    bench.receive(link, Packet::Diff(Zxid::ZERO));
    let first = support::ensemble(&[1, 2, 3]).replace("version=0", "version=100000000");
    let zxid = start(1);
    let seen = bench.receive(link, Packet::NewLeader { zxid, config: first.clone().into() });
    let seen_first = Write::NextMembership(Some(first.clone().into()));
    assert_eq!(seen.persists(), [seen_first, Write::CurrentEpoch(Epoch(1))]);
    bench.persisted();
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.persists(), [Write::Membership(first.into())]);
    bench.persisted();

    let next = voters(&[1, 3, 4]).with_version(z(1, 1).0);
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    let txn = Txn { zxid: z(1, 1), header, body: body_of(&next) };
    let seen = bench.receive(link, Packet::Proposal(txn.clone()));
    let text = next.text().clone();
    let writes = [Write::NextMembership(Some(text.clone())), Write::Append(txn.into())];
    assert_eq!(seen.persists(), writes);
    assert_eq!(seen.election_dials(), [4], "it is dialled at once");
    assert_eq!(bench.persisted_one().packets(link), []);
    assert_eq!(bench.persisted_one().packets(link), [Packet::Ack(z(1, 1))]);
    let seen = bench.receive(link, Packet::CommitAndActivate { zxid: z(1, 1), leader: s(3) });
    assert_eq!(seen.persists(), [Write::Membership(text)]);
    assert_eq!(seen.delivered(), [z(1, 1)]);
    assert_eq!(bench.state(), ServerState::Following);

    // The next one names another leader, and that is where it goes.
    let next = voters(&[1, 2, 4]).with_version(z(1, 2).0);
    let txn = Txn { zxid: z(1, 2), header, body: body_of(&next) };
    bench.receive(link, Packet::Proposal(txn));
    bench.persisted();
    let seen = bench.receive(link, Packet::CommitAndActivate { zxid: z(1, 2), leader: s(4) });
    assert_eq!(seen.dials().last(), Some(&(Plane::Quorum, 4)));
    assert_eq!(bench.status().leader, Some(s(4)));

    // What cannot be read is not acknowledged.
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(1, &support::ensemble(&[1, 2, 3]), Durable::default(), enable);
    bench.lose(3, &[2], 0, 0);
    let link = bench.serve(3, 1);
    let txn = Txn { header, ..entry(z(1, 1)) };
    assert_eq!(bench.receive(link, Packet::Proposal(txn)).appended(), []);
    assert_eq!(bench.state(), ServerState::Looking);
}

/// The others hear of the next leader when it does, and may come to it a little before.
#[test]
fn who_comes_to_a_follower_while_the_membership_changes_may_only_be_early() {
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(2, &support::ensemble(&[1, 2, 3]), Durable::default(), enable);
    bench.lose(3, &[1], 0, 0);
    let link = bench.serve(3, 1);
    let (early, seen) = bench.learner_seen();
    assert!(seen.hung_up(early).is_some(), "nothing changes");
    let next = voters(&[1, 2]).with_version(z(1, 1).0);
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    let txn = Txn { zxid: z(1, 1), header, body: body_of(&next) };
    bench.receive(link, Packet::Proposal(txn));
    bench.persisted();
    let (early, seen) = bench.learner_seen();
    assert_eq!(seen.hung_up(early), None);
    bench.receive(early, Packet::FollowerInfo(info(1, 1)));
    let seen = bench.receive(link, Packet::CommitAndActivate { zxid: z(1, 1), leader: s(2) });
    assert_eq!((bench.state(), seen.hung_up(early)), (ServerState::Leading, None));
    assert_eq!(bench.persisted().names(early), ["LEADERINFO"]);
}

/// In this order: a change that is logged and not seen would bind nobody.
#[test]
fn a_truncation_takes_the_change_with_it() {
    let next = voters(&[1, 4, 5]).with_version(z(1, 2).0);
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    let txns = vec![entry(z(1, 1)), Txn { zxid: z(1, 2), header, body: body_of(&next) }];
    let present =
        Membership::parse(support::ensemble(&[1, 2, 3])).unwrap().with_version(start(1).0);
    let durable = support::stored(1, 1, z(1, 0), txns);
    let enable = |config: &mut Config| {
        config.reconfig_enabled = true;
        config.membership = present.clone();
        config.next_membership = Some(next);
    };
    let mut bench = Bench::with(1, &support::ensemble(&[1, 2, 3]), durable, enable);
    bench.lose(3, &[2, 4], 2, z(2, 0).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    let seen = bench.receive(link, Packet::Trunc(z(1, 1)));
    assert_eq!(seen.persists(), [Write::Truncate(z(1, 1)), Write::NextMembership(None)]);
    let config = present.text().clone();
    bench.receive(link, Packet::NewLeader { zxid: start(2), config });
    assert_eq!(bench.peer.config().next_membership, None);
}

/// Server 1 of 1, 2, 3 in epoch 1, with this log and this as the next membership.
fn seasoned(txns: Vec<Txn>, next: Option<Membership>) -> Bench {
    let present = voters(&[1, 2, 3]).with_version(start(1).0);
    let enable = |config: &mut Config| {
        config.reconfig_enabled = true;
        (config.membership, config.next_membership) = (present, next);
    };
    let durable = support::stored(1, 1, z(1, 0), txns);
    Bench::with(1, &support::ensemble(&[1, 2, 3]), durable, enable)
}

/// What brings these voters.
fn change(zxid: Zxid, ids: &[i64]) -> Txn {
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    Txn { zxid, header, body: body_of(&voters(ids).with_version(zxid.0)) }
}

/// The leader goes before it has said NEWLEADER: what we vote with has the change, so that binds us.
#[test]
fn a_change_in_the_history_that_a_leader_sends_binds_as_soon_as_it_is_logged() {
    let mut bench = seasoned(vec![entry(z(1, 1))], None);
    bench.lose(3, &[2], 1, z(1, 2).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Diff(z(1, 2)));
    let txn = change(z(1, 2), &[3, 4, 5]);
    let mut seen = bench.receive(link, Packet::Proposal(txn.clone())).0;
    seen.extend(bench.receive(link, Packet::Commit(z(1, 2))).0);
    let text = voters(&[3, 4, 5]).with_version(z(1, 2).0).text().clone();
    let writes = [Write::NextMembership(Some(text)), Write::Append(txn.into())];
    assert_eq!(support::Seen(seen).persists(), writes);
    bench.persisted();
    bench.down(link);
    bench.persisted();
    assert_eq!((bench.state(), bench.status().last), (ServerState::Looking, z(1, 2)));
    assert_eq!(bench.status().voters, 5, "a quorum of the next ones is needed too");
}

/// We have logged and acknowledged a change; while we were away it was committed, and another one proposed
/// behind it, which NEWLEADER tells. As long as that is not logged here the first one binds.
#[test]
fn a_logged_change_binds_until_one_behind_it_is_logged() {
    let first = voters(&[3, 4, 5]).with_version(z(1, 2).0);
    let second = voters(&[4, 5, 6]).with_version(z(1, 3).0);
    let log = || vec![entry(z(1, 1)), change(z(1, 2), &[3, 4, 5])];
    let told = || {
        let mut bench = seasoned(log(), Some(first.clone()));
        bench.lose(3, &[2, 4, 5], 1, z(1, 2).0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(1));
        bench.persisted();
        bench.receive(link, Packet::Diff(z(1, 2)));
        bench.receive(link, Packet::Proposal(change(z(1, 3), &[4, 5, 6])));
        let config = second.text().clone();
        bench.receive(link, Packet::NewLeader { zxid: start(1), config });
        bench.persisted();
        (bench, link)
    };
    let (mut bench, link) = told();
    bench.down(link);
    bench.persisted();
    assert_eq!(bench.status().last, z(1, 2));
    assert_eq!(bench.peer.config().next_membership.as_ref(), Some(&first));
    assert_eq!(bench.status().voters, 5);

    // With UPTODATE the first is in force, and the second is what comes next.
    let (mut bench, link) = told();
    let seen = bench.receive(link, Packet::UpToDate);
    let writes = [
        Write::Membership(first.text().clone()),
        Write::NextMembership(Some(second.text().clone())),
        Write::Append([change(z(1, 3), &[4, 5, 6])].into_iter().collect()),
    ];
    assert_eq!(seen.persists(), writes);
    assert!(bench.status().serving);
    let config = bench.peer.config();
    assert_eq!((&config.membership, config.next_membership.as_ref()), (&first, Some(&second)));
}

/// Only one change is under way at a time: where there is a second one, the first is in force.
#[test]
fn of_two_changes_in_the_history_that_a_leader_sends_the_first_is_in_force() {
    let mut bench = seasoned(vec![entry(z(1, 1))], None);
    bench.lose(3, &[2], 1, z(1, 3).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Diff(z(1, 3)));
    for txn in [change(z(1, 2), &[3, 4, 5]), change(z(1, 3), &[4, 5, 6])] {
        let zxid = txn.zxid;
        bench.receive(link, Packet::Proposal(txn));
        bench.receive(link, Packet::Commit(zxid));
    }
    bench.down(link);
    bench.persisted();
    assert_eq!(bench.peer.config().membership, voters(&[3, 4, 5]).with_version(z(1, 2).0));
    assert_eq!(bench.status().voters, 4);
}

/// A TRUNC, then something of a later epoch: what was cut does not come back with the numbers.
#[test]
fn a_change_that_was_cut_binds_nobody_whatever_comes_behind_the_cut() {
    let log = vec![entry(z(1, 1)), change(z(1, 2), &[1, 4, 5])];
    let next = voters(&[1, 4, 5]).with_version(z(1, 2).0);
    let mut bench = seasoned(log, Some(next));
    bench.lose(3, &[2, 4], 2, z(2, 0).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Trunc(z(1, 1)));
    bench.receive(link, Packet::Proposal(entry(z(2, 1))));
    bench.receive(link, Packet::Commit(z(2, 1)));
    bench.persisted();
    bench.down(link);
    bench.persisted();
    assert_eq!((bench.state(), bench.status().last), (ServerState::Looking, z(2, 1)));
    assert_eq!(bench.status().voters, 3);
}

/// A leader's history with a change that we cannot read is history all the same.
#[test]
fn what_cannot_be_read_of_a_committed_history_is_logged() {
    let mut bench = seasoned(vec![entry(z(1, 1))], None);
    bench.lose(3, &[2], 1, z(1, 1).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Diff(z(1, 1)));
    bench.receive(link, support::new_leader(2));
    let header = change(z(2, 1), &[1]).header;
    bench.receive(link, Packet::Proposal(Txn { header, ..entry(z(2, 1)) }));
    bench.receive(link, Packet::Proposal(entry(z(2, 2))));
    let seen = bench.receive(link, Packet::Commit(z(2, 2)));
    assert_eq!(seen.appended(), [z(2, 1), z(2, 2)]);
}

/// The ensemble has taken two steps meanwhile, and the second leads back to the members that we know: the first
/// binds nobody any more, and least of all those who would need its servers for a quorum.
#[test]
fn a_change_that_a_newer_configuration_has_left_behind_is_over() {
    let next = voters(&[1, 2, 3, 4, 5]).with_version(z(1, 2).0);
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    let txns = vec![entry(z(1, 1)), Txn { zxid: z(1, 2), header, body: body_of(&next) }];
    let present =
        Membership::parse(support::ensemble(&[1, 2, 3])).unwrap().with_version(start(1).0);
    let enable = |config: &mut Config| {
        config.reconfig_enabled = true;
        config.membership = present.clone();
        config.next_membership = Some(next);
    };
    let durable = support::stored(1, 1, z(1, 0), txns);
    let mut bench = Bench::with(1, &support::ensemble(&[1, 2, 3]), durable, enable);
    assert_eq!(bench.status().voters, 5);
    let two = bench.meet(2);
    let standing = support::standing(ServerState::Looking, vote(1, z(1, 9).0, 2), 1);
    let config = present.with_version(z(1, 5).0).text().clone();
    let message = Message::Notification(Notification { standing, version: 2, config });
    bench.step(Event::Received { link: two, message });
    bench.persisted();
    assert_eq!(bench.peer.config().next_membership, None);
    assert_eq!(bench.status().voters, 3);
    bench.hear(two, standing);
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), ServerState::Following);
}

/// It will come back as an observer, which acknowledges nothing: a change that needs it as a voter would bind
/// everybody and never come to pass.
#[test]
fn a_follower_that_has_just_become_an_observer_does_not_count_for_the_next_change() {
    let (mut bench, two, _) = leader();
    let (one, _) = bench.follower(1, 1);
    bench.receive(one, support::ack_epoch_again(0));
    bench.receive(one, ack(1));
    bench.persisted();
    reconfigure(&mut bench, &Reconfiguration::change([member(2, "observer")], []));
    bench.persisted();
    bench.receive(one, Packet::Ack(z(1, 1)));
    bench.receive(two, Packet::Ack(z(1, 1)));
    assert_eq!(bench.peer.config().membership.participants().count(), 2);
    let seen = reconfigure(&mut bench, &Reconfiguration::whole(voters(&[2, 3])));
    let [Packet::Proposal(txn)] = &seen.packets(one)[..] else { panic!("{seen:?}") };
    assert_eq!(txn.header.kind, Txn::REJECTED);
    assert_eq!(txn.body, Unchanged::NoQuorum.code().to_be_bytes()[..]);
}

#[test]
fn a_follower_without_a_vote_has_its_acknowledgements_counted_when_it_gets_one() {
    let (mut bench, two, _) = leader();
    let (four, _) = bench.follower(4, 1);
    bench.receive(four, support::ack_epoch_again(0));
    bench.receive(four, ack(1));
    bench.write(3);
    let run = |first, last| {
        Packet::Acks(quorate_core::message::Run { first: z(1, first), last: z(1, last) })
    };
    bench.receive(four, run(1, 3));
    assert_eq!(bench.delivered(), start(1).min(bench.delivered()), "it has no vote");
    bench.persisted();
    let asked = Reconfiguration::whole(voters(&[3, 4, 5]));
    let seen = reconfigure(&mut bench, &asked);
    assert_eq!(seen.delivered(), [], "2 is needed too");
    bench.persisted();
    bench.receive(two, run(1, 4));
    assert_eq!(bench.delivered(), z(1, 3), "4 has these");
    let seen = bench.receive(four, run(4, 4));
    assert_eq!(bench.delivered(), z(1, 4));
    assert_eq!(seen.names(two), ["COMMITANDACTIVATE"]);
    assert_eq!(bench.status().voters, 3);
}

// --- anything ---

/// Servers come, go, die between any two writes and come back while the membership changes: all deliver the
/// same, and in the end those that are members serve.
#[test]
fn random_changes_and_crashes_leave_one_history() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        // With so little in memory whoever was away for long gets a snapshot.
        let short: fn(&mut Config) = |config| {
            (config.history.window_count, config.history.size_percent) = (2, None);
        };
        let mut world = World::with(&[1, 2, 3], if seed % 2 == 0 { short } else { |_| {} });
        for id in [4, 5] {
            world.add(id, &voters(&[1, 2, 3, id]));
        }
        world.run(World::all_serve);
        for _ in 0..40 {
            let id = 1 + i64::try_from(rng.below(5)).unwrap();
            let running = world.peers.contains_key(&s(id));
            match rng.below(9) {
                0 if running => world.kill(id),
                7 if running => {
                    let outputs = usize::try_from(rng.below(8)).unwrap();
                    world.kill_amid(id, outputs);
                }
                0..=2 if !running => world.start(id),
                3 | 4 if running => {
                    let whole: Vec<_> = (1..=5).filter(|_| rng.below(5) < 3).collect();
                    if whole.len() >= 2 {
                        world.ask(id, &Reconfiguration::whole(voters(&whole)));
                    }
                }
                5 if running => world.cut_off(id),
                6 => {
                    world.cut_off.pop_first();
                }
                _ if running => drop(world.propose(id)),
                _ => {}
            }
            for _ in 0..rng.below(60) {
                if let Some((id, event)) = world.queue.pop_front() {
                    world.step(id, event);
                } else {
                    let due = world.peers.iter().filter_map(|(id, p)| Some((p.deadline()?.0, *id)));
                    let Some((at, id)) = due.min() else { break };
                    world.now = world.now.max(at);
                    world.step(id, Event::Tick);
                }
            }
        }
        world.cut_off.clear();
        for id in 1..=5 {
            if !world.peers.contains_key(&s(id)) {
                world.start(id);
            }
        }
        world.settle();
    }
}
