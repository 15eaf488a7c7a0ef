//! Arbitrary bytes on election links under any claimed id, and then a valid election: all servers end under the same
//! leader, as soon as they hear each other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::Message;
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::wire::{decode_introduction, encode_notification, take_notification};

/// More than this never has to happen before all serve.
const EVENTS_MAX: usize = 100_000;
/// Nor has more time to pass.
const TIME_MAX: Duration = Duration::from_secs(600);

/// Three servers on a perfect network; the first has links that lead nowhere.
struct World {
    peers: BTreeMap<ServerId, Peer>,
    queue: VecDeque<(ServerId, Event)>,
    /// The other end of each link.
    ends: BTreeMap<LinkId, (ServerId, LinkId)>,
    links: u64,
    now: Instant,
}

/// Feeds these bytes: each link of garbage begins with its length.
pub fn feed(data: &[u8]) {
    let mut world = World::new();
    let mut rest = data;
    while let Some((length, behind)) = rest.split_first() {
        let (bytes, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        world.hear(bytes);
        rest = behind;
    }
    let serve = |world: &World| {
        let leader = world.peers.values().next().and_then(|peer| peer.status().leader);
        world.peers.values().all(|p| p.status().serving && p.status().leader == leader)
    };
    for _ in 0..EVENTS_MAX {
        if serve(&world) {
            return;
        }
        world.go_on();
        assert!(world.now <= Instant::ORIGIN + TIME_MAX, "{}", world.state());
    }
    panic!("they go on for ever: {}", world.state());
}

impl World {
    fn new() -> Self {
        let text = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888";
        let membership = Membership::parse(text).expect("a good text");
        let peer = |id| {
            let config = Config::new(ServerId(id), membership.clone());
            (ServerId(id), Peer::new(config, Durable::default()).expect("a good configuration"))
        };
        let peers = (1..=3).map(peer).collect();
        let (queue, ends) = (VecDeque::new(), BTreeMap::new());
        Self { peers, queue, ends, links: 0, now: Instant::ORIGIN }
    }

    fn link(&mut self) -> LinkId {
        self.links += 1;
        LinkId(self.links)
    }

    /// A peer connects to the first server and sends these bytes; what was going on meanwhile goes on.
    fn hear(&mut self, bytes: &[u8]) {
        let id = ServerId(1);
        let mut buf = BytesMut::from(bytes);
        let Ok(Some(introduction)) = decode_introduction(&mut buf) else { return };
        let link = self.link();
        self.ends.insert(link, (ServerId::NONE, link));
        self.step(id, up(link, Plane::Election, false, Some(introduction.id)));
        let cause = loop {
            match take_notification(&mut buf) {
                Ok(Some(notification)) => {
                    let message = Message::Notification(notification);
                    if self.ends.contains_key(&link) {
                        self.step(id, Event::Received { link, message });
                    }
                    self.go_on();
                }
                Ok(None) => break Cause::Closed,
                Err(error) if error.is_fatal() => break Cause::Garbled,
                Err(_) => {}
            }
        };
        if self.ends.remove(&link).is_some() {
            self.step(id, Event::LinkDown { link, cause });
        }
    }

    /// The next thing that was said, or else the next that is due.
    fn go_on(&mut self) {
        if let Some((id, event)) = self.queue.pop_front() {
            self.step(id, event);
            return;
        }
        let due = self.peers.iter().filter_map(|(id, peer)| Some((peer.deadline()?.0, *id)));
        let (at, id) = due.min().expect("a server always waits for something");
        self.now = self.now.max(at);
        self.step(id, Event::Tick);
    }

    fn step(&mut self, id: ServerId, event: Event) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let outputs = peer.step(Input { at: self.now, event });
        for output in outputs {
            self.carry_out(id, output);
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "there is no application, and no disk")]
    fn carry_out(&mut self, id: ServerId, output: Output) {
        match output {
            Output::Dial { plane, peer, .. } => {
                if !self.peers.contains_key(&peer) {
                    self.queue.push_back((id, Event::DialFailed { plane, peer }));
                    return;
                }
                let (ours, theirs) = (self.link(), self.link());
                self.ends.insert(ours, (peer, theirs));
                self.ends.insert(theirs, (id, ours));
                let claimed = (plane == Plane::Election).then_some(id);
                self.queue.push_back((id, up(ours, plane, true, Some(peer))));
                self.queue.push_back((peer, up(theirs, plane, false, claimed)));
            }
            Output::Hangup { link, .. } => {
                let Some((peer, theirs)) = self.ends.remove(&link) else { return };
                if self.ends.remove(&theirs).is_some() {
                    let down = Event::LinkDown { link: theirs, cause: Cause::Closed };
                    self.queue.push_back((peer, down));
                }
            }
            Output::Send { link, message } => {
                if let Some((peer, theirs)) = self.ends.get(&link) {
                    let (link, message) = (*theirs, through_bytes(message));
                    self.queue.push_back((*peer, Event::Received { link, message }));
                }
            }
            Output::Persist { ticket, .. } => self.queue.push_back((id, Event::Persisted(ticket))),
            Output::Resolve { link, .. } => {
                self.queue.push_back((id, Event::Resolved { link, addresses: Vec::new() }));
            }
            Output::Release(release) => self.queue.push_back((id, Event::Released(release))),
            Output::Halt(fault) => panic!("{id} stops: {fault}"),
            _ => {}
        }
    }

    fn state(&self) -> String {
        let status = self.peers.values().map(|peer| format!("{:?}\n", peer.status()));
        status.collect()
    }
}

fn up(link: LinkId, plane: Plane, dialled: bool, peer: Option<ServerId>) -> Event {
    Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised: None, remote: None })
}

/// What comes out at the other end.
fn through_bytes(message: Message) -> Message {
    let Message::Notification(notification) = &message else { return message };
    let mut bytes = BytesMut::new();
    encode_notification(notification, &mut bytes);
    let taken = take_notification(&mut bytes).ok().flatten();
    Message::Notification(taken.expect("our own bytes"))
}
