//! A small world of whole servers: a perfect network, disks that are never slow, and whatever a test does to
//! them. Throughout, all servers deliver one and the same history, and a server that was killed comes back
//! with what its disk had.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part of the world")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ReleaseId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, LinkUp, Place, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet, Request};
use quorate_core::output::{Form, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::TransferRefused;
use quorate_core::reconfiguration::{Reconfiguration, Unchanged};
use quorate_core::report::Reason;
use quorate_core::status::Status;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use super::support::{self, s, voters};

/// What the disk of one server holds; what was asked for is done at once.
#[derive(Clone, Debug)]
pub struct Disk {
    pub accepted: Epoch,
    pub current: Epoch,
    /// From here on the log has no hole; the label of the snapshot before it.
    pub floor: Zxid,
    pub log: Vec<Txn>,
    pub membership: Membership,
    pub next: Option<Membership>,
    pub lease: Duration,
}

impl Disk {
    pub fn durable(&self) -> Durable {
        let window: VecDeque<_> =
            self.log.iter().filter(|txn| txn.zxid > self.floor).cloned().collect();
        Durable {
            accepted_epoch: self.accepted,
            current_epoch: self.current,
            last_zxid: window.back().map_or(self.floor, |txn| txn.zxid),
            floor: self.floor,
            snapshot: self.floor,
            lease: self.lease,
            window,
            ..Durable::default()
        }
    }
}

pub struct World {
    pub peers: BTreeMap<ServerId, Peer>,
    pub disks: BTreeMap<ServerId, Disk>,
    pub queue: VecDeque<(ServerId, Event)>,
    pub ends: BTreeMap<LinkId, (ServerId, LinkId)>,
    /// What a snapshot on its way holds, by the receiver's link.
    pub snapshots: BTreeMap<LinkId, Vec<Txn>>,
    /// What was received and is not installed: label, content, and what came behind it.
    pub beside: BTreeMap<ServerId, (Zxid, Vec<Txn>)>,
    pub links: u64,
    pub now: Instant,
    /// What anybody has delivered, in order.
    pub agreed: Vec<Txn>,
    pub delivered: BTreeMap<ServerId, Zxid>,
    pub handed_over: Vec<(ServerId, Result<ServerId, TransferRefused>)>,
    /// Servers that nobody reaches.
    pub cut_off: BTreeSet<ServerId>,
    /// Pairs between which nothing passes, the smaller id first.
    pub blocked: BTreeSet<(ServerId, ServerId)>,
    /// Servers to which a snapshot takes as long as the test wants.
    pub slow: BTreeSet<ServerId>,
    /// The ends of such snapshots.
    pub held: Vec<(ServerId, Event)>,
    /// Servers that die as soon as a history that was sent to them is installed.
    pub dies_at_install: BTreeSet<ServerId>,
    /// Servers whose quorum ports nobody reaches.
    pub closed: BTreeSet<ServerId>,
    /// What only a leader may is done at each of them, and ends when the test says so.
    pub guarded: bool,
    /// Those where it is to end.
    pub sent_away: Vec<(ServerId, ReleaseId)>,
    /// Why roles were given up or changed.
    pub reasons: Vec<(ServerId, Reason)>,
    pub cxids: i32,
    pub settings: fn(&mut Config),
}

impl World {
    /// Servers of an ensemble that serves.
    pub fn new(ids: &[i64]) -> Self {
        Self::with(ids, |_| {})
    }

    pub fn with(ids: &[i64], settings: fn(&mut Config)) -> Self {
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
            blocked: BTreeSet::new(),
            slow: BTreeSet::new(),
            held: Vec::new(),
            dies_at_install: BTreeSet::new(),
            closed: BTreeSet::new(),
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
    pub fn add(&mut self, id: i64, membership: &Membership) {
        let (accepted, current, floor) = (Epoch::ZERO, Epoch::ZERO, Zxid::ZERO);
        let (membership, log) = (membership.clone(), Vec::new());
        let disk =
            Disk { accepted, current, floor, log, membership, next: None, lease: Duration::ZERO };
        self.disks.insert(s(id), disk);
        self.start(id);
    }

    /// It starts with what its disk holds.
    pub fn start(&mut self, id: i64) {
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

    pub fn step(&mut self, id: ServerId, event: Event) {
        if let Event::Restored { link, .. } = event {
            let content = self.snapshots.remove(&link).unwrap_or_default();
            self.beside.entry(id).or_insert((Zxid::ZERO, Vec::new())).1 = content;
        }
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let outputs = peer.step(Input { at: self.now, event });
        self.check_leases();
        for output in outputs {
            let last = matches!(output, Output::Persist { write: Write::Install { .. }, .. });
            self.carry_out(id, output);
            if last && self.dies_at_install.remove(&id) {
                return self.kill(id.0);
            }
        }
    }

    /// Nobody else is established while a leader counts on its lease.
    fn check_leases(&self) {
        let leaderships = self.peers.values().filter_map(Peer::leadership);
        let Some(last) = leaderships.clone().map(|leadership| leadership.epoch).max() else {
            return;
        };
        let earlier = leaderships
            .filter(|leadership| leadership.epoch < last)
            .filter_map(|leadership| leadership.lease);
        for until in earlier {
            assert!(
                until <= self.now,
                "{last:?} has begun, and an earlier leader counts on {until:?}"
            );
        }
    }

    pub fn carry_out(&mut self, id: ServerId, output: Output) {
        match output {
            Output::Dial { plane, peer, .. } => {
                let cut = self.cut_off.contains(&id) || self.cut_off.contains(&peer);
                let cut = cut || self.blocked.contains(&(id.min(peer), id.max(peer)));
                let cut = cut || plane == Plane::Quorum && self.closed.contains(&peer);
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
            Output::Resolve { link, .. } => {
                let addresses = vec!["127.0.0.1".parse().unwrap()];
                self.queue.push_back((id, Event::Resolved { link, addresses }));
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
            Output::Deliver(Txn { zxid, .. }) | Output::Adopt { label: zxid } => {
                self.deliver(id, zxid);
                self.queue.push_back((id, Event::Applied(zxid)));
            }
            Output::Replay { through, .. } => {
                self.deliver(id, through);
                self.queue.push_back((id, Event::Replayed { through, outcome: Ok(()) }));
            }
            Output::SendSnapshot { link, label, memberships, .. } => {
                let log = &self.disks[&id].log;
                let content = log.iter().filter(|txn| txn.zxid <= label).cloned().collect();
                if let Some((_, theirs)) = self.ends.get(&link) {
                    self.snapshots.insert(*theirs, content);
                }
                self.send(link, Message::Packet(Packet::Snap { label, memberships }));
                let streamed = (id, Event::Streamed { link, outcome: Ok(()) });
                let slow = self.ends.get(&link).is_some_and(|(to, _)| self.slow.contains(to));
                if slow { self.held.push(streamed) } else { self.queue.push_back(streamed) }
            }
            Output::ReceiveSnapshot { link, label } => {
                self.beside.insert(id, (label, Vec::new()));
                self.queue.push_back((id, Event::restored(link)));
            }
            Output::Transferred(outcome) => self.handed_over.push((id, outcome)),
            Output::Release(release) if self.guarded => self.sent_away.push((id, release)),
            Output::Release(release) => self.queue.push_back((id, Event::Released(release))),
            Output::NotifyDrained(link) => self.queue.push_back((id, Event::Drained(link))),
            Output::Report(report) => self.reasons.push((id, report.reason)),
            Output::Locate { link, zxid } => {
                let disk = &self.disks[&id];
                let held = zxid == disk.floor || disk.log.iter().any(|txn| txn.zxid == zxid);
                let place = if held { Place::Held } else { Place::BelowFloor };
                let located = support::cheap(place);
                self.queue.push_back((id, Event::Located { link, located }));
            }
            Output::Halt(fault) => panic!("{id}: {fault}"),
            Output::CancelDial { .. }
            | Output::Abandon
            | Output::Discard
            | Output::Accepted(_)
            | Output::Lost(_)
            | Output::Unknown { .. }
            | Output::Refused { .. }
            | Output::Pinged
            | Output::Touched { .. }
            | Output::Revalidate { .. }
            | Output::Revalidated(_)
            | Output::Answer(_)
            | Output::ReadRefused { .. }
            | Output::Leadership(_)
            | Output::Serving { .. }
            | Output::Retired
            | Output::Keep => {}
            Output::StreamLog { link, after, through, form } => {
                self.stream(id, link, (after, through), form);
            }
            other @ Output::TakeSnapshot(_) => panic!("not expected here: {other:?}"),
        }
    }

    pub fn send(&mut self, link: LinkId, message: Message) {
        if let Some((peer, theirs)) = self.ends.get(&link) {
            self.queue.push_back((*peer, Event::Received { link: *theirs, message }));
        }
    }

    pub fn stream(
        &mut self,
        id: ServerId,
        link: LinkId,
        (after, through): (Zxid, Zxid),
        form: Form,
    ) {
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

    pub fn write(&mut self, id: ServerId, ticket: Ticket, write: Write) {
        let disk = self.disks.get_mut(&id).unwrap();
        match write {
            Write::AcceptedEpoch(epoch) => disk.accepted = epoch,
            Write::CurrentEpoch(epoch) => disk.current = epoch,
            Write::GrantedVote { .. } => {}
            Write::Lease(longest) => disk.lease = longest,
            Write::Append(txns) => disk.log.extend_from_slice(&txns),
            Write::Truncate(zxid) => disk.log.retain(|txn| txn.zxid <= zxid),
            Write::AppendStaged(txn) => self.beside.get_mut(&id).unwrap().1.push(txn),
            Write::Install { membership, next, .. } => {
                (disk.floor, disk.log) = self.beside.remove(&id).unwrap();
                disk.membership = Membership::parse(membership).unwrap();
                disk.next = next.map(|text| Membership::parse(text).unwrap());
            }
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
    pub fn deliver(&mut self, id: ServerId, zxid: Zxid) {
        let log: Vec<_> =
            self.disks[&id].log.iter().filter(|txn| txn.zxid <= zxid).cloned().collect();
        let common = log.len().min(self.agreed.len());
        assert_eq!(log[..common], self.agreed[..common], "{id} delivers something else");
        self.agreed.extend_from_slice(&log[common..]);
        self.delivered.insert(id, zxid);
    }

    /// Serves everything that is due, then lets time pass to the next deadline.
    #[track_caller]
    pub fn run(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..50_000 {
            if self.queue.is_empty() && until(self) {
                return;
            }
            self.next();
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

    /// Serves the next thing that is due; if there is none, time passes to the next deadline.
    pub fn next(&mut self) {
        if let Some((id, event)) = self.queue.pop_front() {
            return self.step(id, event);
        }
        let due = self.peers.iter().filter_map(|(id, peer)| Some((peer.deadline()?.0, *id)));
        if let Some((at, id)) = due.min() {
            self.now = self.now.max(at);
            self.step(id, Event::Tick);
        }
    }

    /// When the next thing is due, in seconds.
    pub fn next_is_later(&self) -> u64 {
        self.now.since_origin().as_secs()
    }

    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.run(|world| world.now > end);
    }

    pub fn kill(&mut self, id: i64) {
        self.peers.remove(&s(id));
        self.delivered.remove(&s(id));
        self.beside.remove(&s(id));
        self.held.retain(|(of, _)| *of != s(id));
        self.queue.retain(|(to, _)| *to != s(id));
        self.break_links(s(id));
    }

    pub fn break_links(&mut self, id: ServerId) {
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

    /// From now on nothing passes between the two.
    pub fn block(&mut self, a: i64, b: i64) {
        let (a, b) = (s(a.min(b)), s(a.max(b)));
        self.blocked.insert((a, b));
        let between = |(link, (peer, theirs)): (&LinkId, &(ServerId, LinkId))| {
            let owner = self.ends.get(theirs).map(|(owner, _)| *owner)?;
            ((owner, *peer) == (a, b)).then_some((*link, *theirs))
        };
        let links: Vec<_> = self.ends.iter().filter_map(between).collect();
        for (link, theirs) in links {
            self.ends.remove(&link);
            self.ends.remove(&theirs);
            for (of, link) in [(a, link), (b, theirs)] {
                self.queue.push_back((of, Event::LinkDown { link, cause: Cause::Reset }));
            }
        }
    }

    /// The two hear each other again.
    pub fn unblock(&mut self, a: i64, b: i64) {
        self.blocked.remove(&(s(a.min(b)), s(a.max(b))));
    }

    /// The snapshots that took their time are through.
    pub fn release(&mut self) {
        self.slow.clear();
        self.queue.extend(self.held.drain(..));
    }

    /// Serves what is due, without a wait for the queue to be empty, until this has come about.
    #[track_caller]
    pub fn step_until(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..50_000 {
            if until(self) {
                return;
            }
            self.next();
        }
        panic!("it did not come to that");
    }

    pub fn cut_off(&mut self, id: i64) {
        self.cut_off.insert(s(id));
        self.break_links(s(id));
    }

    pub fn status(&self, id: i64) -> Status {
        self.peers[&s(id)].status()
    }

    pub fn all_serve(&self) -> bool {
        let leaders: BTreeSet<_> = self.peers.values().map(|peer| peer.status().leader).collect();
        self.peers.values().all(|peer| peer.status().serving) && leaders.len() == 1
    }

    pub fn leader(&self) -> i64 {
        let leads = |peer: &&Peer| peer.status().state == ServerState::Leading;
        self.peers.values().find(leads).unwrap().status().id.0
    }

    pub fn request(&mut self, to: i64, op: i32, body: Bytes) -> i32 {
        self.cxids += 1;
        let id = RequestId { client: to, cxid: self.cxids };
        let request = Request { id, op, body, identities: None };
        self.queue.push_back((s(to), Event::Propose(request)));
        self.cxids
    }

    pub fn propose(&mut self, to: i64) -> i32 {
        self.request(to, 5, Bytes::from_static(b"something"))
    }

    pub fn ask(&mut self, to: i64, asked: &Reconfiguration) -> i32 {
        self.request(to, Request::RECONFIGURE, asked.encode())
    }

    /// What became of a request, once that is known anywhere.
    pub fn outcome(&self, cxid: i32) -> Option<&Txn> {
        self.agreed.iter().find(|txn| txn.header.cxid == cxid)
    }

    /// Asks, and waits for what becomes of it: the version that it brought.
    #[track_caller]
    pub fn reconfigure(&mut self, to: i64, asked: &Reconfiguration) -> Result<i64, Unchanged> {
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
    pub fn settle(&mut self) -> Vec<i64> {
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

impl World {
    /// Of what a server is to do next it does so much; then it dies.
    pub fn kill_amid(&mut self, id: i64, outputs: usize) {
        while let Some((to, event)) = self.queue.pop_front() {
            let own = to == s(id) && !matches!(event, Event::Restored { .. });
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
    pub fn kill_after_writing(&mut self, id: i64) {
        while self.disks[&s(id)].next.is_none() {
            let (to, event) = self.queue.pop_front().unwrap();
            if to == s(id) {
                self.step(to, event);
            }
        }
        self.kill(id);
    }
}
