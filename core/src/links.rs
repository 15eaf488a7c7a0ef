//! Who is connected: which server dials, which of two connections stays, when to try again.
//!
//! ```text
//!    smaller id                          larger id
//!        │ ── connects, introduces itself ──► │   "dial me": both sides drop this one
//!        │ ◄────────────────── connects ───── │   this one stays
//! ```
//!
//! Between two servers there is one election link, dialled by the larger id; so the two never keep
//! one each. The smaller may connect too, but only to be dialled back. Links come back by themselves,
//! 10 ms to 1 s after they broke, so that recovery after a partition does not depend on anybody
//! having something to say.
//!
//! Where to dial is what our configuration says, resolved anew; what a server says of itself is a
//! second choice, since it may be a wildcard or a lie (ZOOKEEPER-2164). Servers that are no members
//! may connect and ask, a bounded number of them; they are dialled only where the membership may
//! change, where they came from, and seldom.
//!
//! A connection that claims the id of a voter with which there is a link does not take its place at once: see
//! `claims`.
//!
//! The names in the Java code (`QuorumCnxManager`): `senderWorkerMap` is the links of the neighbours.
//! `lastMessageSent` has no place here: a link that comes up is told how things stand then.
//!
//! On the quorum plane this module only remembers which link is whose, and keeps those waiting that
//! came before the election was over. What is said on a link it does not know.

mod answers;
mod claims;
mod mailbox;
mod neighbour;
mod strangers;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use crate::address::HostPort;
use crate::config::{Config, Limits, Timing};
use crate::id::{LinkId, ServerId};
use crate::input::{LinkUp, Plane};
pub use crate::links::claims::Admitted;
use crate::links::claims::Claims;
pub use crate::links::mailbox::Mailbox;
use crate::links::neighbour::{Neighbour, Up};
use crate::links::strangers::Strangers;
use crate::message::{Message, Packet, Probe};
use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::Hangup;
use crate::rng::Rng;
use crate::time::Instant;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Notifications with this server.
    Election(ServerId),
    /// We learn from this leader.
    Leader(ServerId),
    /// A server came to learn from us.
    Learner,
}

/// What becomes of a connection on the election port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was hung up.
    Over,
    /// It is the link to this server.
    Kept(ServerId),
    /// It waits: there is a link to this server already.
    Held {
        /// To whom.
        peer: ServerId,
        /// Which.
        old: LinkId,
    },
}

/// A quorum link without a role to belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// Which.
    pub link: LinkId,
    /// Since when.
    pub since: Instant,
    /// Its first packet, if that has come.
    pub first: Option<Packet>,
    /// It has learned from us before: whatever it says now belongs to a role that is over.
    pub over: bool,
}

/// A knock on a link or a dial that is younger than this crossed with our own dial; that is good.
const CROSSED: Duration = Duration::from_millis(100);

/// A dial that is older than this hangs: no way to a server and back takes as long.
const HANGS: Duration = Duration::from_millis(500);

/// Among so many links one is found by looking at each.
const FEW: usize = 16;

/// Where a link is found, until one comes or goes.
#[derive(Clone, Copy, Debug)]
pub struct Position(usize);

/// A dial that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UnderWay {
    since: Instant,
    /// It was made since every missing link was dialled afresh the last time, and is not called off.
    fresh: bool,
    /// It came of a sign that the server can be reached, or the one after it will: it is not called off for
    /// another, since one that leads nowhere has to come to its end, and to the next address.
    asked: bool,
}

/// A link that is up, and what has come on it. It is found with each message, its neighbour is not: that would
/// be a second search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Placed {
    link: LinkId,
    place: Place,
    /// When the other end of an election link was heard; when the link came up, if never.
    heard: Instant,
    /// Whether its neighbour is known to know probes.
    knows_probes: bool,
}

/// All connections of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Links {
    id: ServerId,
    neighbours: BTreeMap<ServerId, Neighbour>,
    strangers: Strangers,
    claims: Claims,
    /// Ascending, since numbers never come back.
    places: Vec<Placed>,
    waiting: Vec<Waiting>,
    leader_dials: BTreeSet<ServerId>,
    /// The dials of election ports that are under way.
    dials: BTreeMap<ServerId, UnderWay>,
    reconfig_enabled: bool,
    limits: Limits,
    redial_min: Duration,
    redial_max: Duration,
}

impl Placed {
    /// On the quorum plane packets tell who is heard.
    const fn of_quorum(link: LinkId, place: Place) -> Self {
        Self { link, place, heard: Instant::ORIGIN, knows_probes: false }
    }
}

impl Links {
    /// No connections; those that `config` asks for are dialled by the first [sweep](Self::sweep).
    pub fn new(config: &Config) -> Self {
        let Timing { redial_min, redial_max, .. } = config.timing;
        let mut links = Self {
            id: config.id,
            neighbours: BTreeMap::new(),
            strangers: Strangers::default(),
            claims: Claims::default(),
            places: Vec::new(),
            waiting: Vec::new(),
            leader_dials: BTreeSet::new(),
            dials: BTreeMap::new(),
            reconfig_enabled: config.reconfig_enabled,
            limits: config.limits.clone(),
            redial_min,
            redial_max,
        };
        links.reconfigure(config, &mut Outbox::default());
        links
    }

    /// Takes over another membership: links of servers that left are hung up, those of servers that
    /// came are dialled.
    pub fn reconfigure(&mut self, config: &Config, outbox: &mut Outbox) {
        let next = config.next_membership.as_ref();
        let memberships = || core::iter::once(&config.membership).chain(next);
        let mut members = BTreeMap::new();
        for member in memberships().flat_map(|m| m.members()) {
            let wanted = memberships().any(|m| m.is_participant(member.id));
            let configured: Vec<_> =
                member.addresses.iter().map(|address| address.election.clone()).collect();
            members.entry(member.id).or_insert((wanted, configured));
        }
        members.remove(&self.id);
        let gone: Vec<_> =
            self.neighbours.keys().filter(|id| !members.contains_key(id)).copied().collect();
        for id in gone {
            if let Some(up) = self.neighbours.remove(&id).and_then(|gone| gone.link) {
                self.hangup(up.link, Hangup::Unwanted, outbox);
            }
            self.drop_claim(id, Hangup::Unwanted, outbox);
        }
        for (id, (wanted, configured)) in members {
            if let Some(link) = self.strangers.remove(id) {
                self.hangup(link, Hangup::Unwanted, outbox);
            }
            let new = Neighbour::new(self.redial_min);
            let neighbour = self.neighbours.entry(id).or_insert(new);
            neighbour.wanted = wanted;
            neighbour.configured = configured;
            if !wanted {
                self.drop_claim(id, Hangup::Unwanted, outbox);
            }
        }
    }

    /// What a link is for, and its [`Position`]; none if it has been hung up or never came up.
    #[inline]
    pub fn place(&self, link: LinkId) -> Option<(Position, Place)> {
        let at = if self.places.len() <= FEW {
            // Each step of the other search waits for the one before.
            self.places.iter().position(|placed| placed.link == link)?
        } else {
            self.search(link).ok()?
        };
        Some((Position(at), self.places[at].place))
    }

    fn search(&self, link: LinkId) -> Result<usize, usize> {
        self.places.binary_search_by_key(&link, |placed| placed.link)
    }

    /// The election link to a server.
    #[inline]
    pub fn election(&self, peer: ServerId) -> Option<LinkId> {
        match self.neighbours.get(&peer) {
            Some(neighbour) => neighbour.link.map(|up| up.link),
            None => self.strangers.link(peer),
        }
    }

    /// The election link to a server, if that may be answered now: voters always may.
    #[inline]
    pub fn to_answer(&mut self, peer: ServerId, now: Instant) -> Option<LinkId> {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            return neighbour.may_answer(now);
        }
        self.strangers.may_answer(peer, now)
    }

    /// The election links to all voters, ascending by server.
    pub fn to_voters(&self) -> impl Iterator<Item = LinkId> + '_ {
        let wanted = self.neighbours.values().filter(|neighbour| neighbour.wanted);
        wanted.filter_map(|neighbour| neighbour.link.map(|up| up.link))
    }

    /// The election links to members without a vote, ascending by server.
    pub fn to_observers(&self) -> impl Iterator<Item = LinkId> + '_ {
        let observers = self.neighbours.values().filter(|neighbour| !neighbour.wanted);
        observers.filter_map(|neighbour| neighbour.link.map(|up| up.link))
    }

    /// The members with which there is an election link, ascending.
    pub fn linked(&self) -> impl Iterator<Item = ServerId> + '_ {
        let up = self.neighbours.iter().filter(|(_, neighbour)| neighbour.link.is_some());
        up.map(|(id, _)| *id)
    }

    /// The server at the other end of an election link has said something, and whether it knows probes.
    #[inline]
    pub fn on_marked(&mut self, now: Instant, at: Position, knows_probes: bool) {
        let placed = &mut self.places[at.0];
        placed.heard = now;
        if placed.knows_probes != knows_probes {
            placed.knows_probes = knows_probes;
            let Placed { link, place, .. } = *placed;
            if let Place::Election(peer) = place {
                self.on_mark_changed(peer, link, knows_probes);
            }
        }
    }

    #[cold]
    fn on_mark_changed(&mut self, peer: ServerId, link: LinkId, knows_probes: bool) {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            neighbour.on_marked(link, knows_probes);
        }
    }

    /// A probe has come.
    pub fn on_probe(&mut self, now: Instant, at: Position, probe: Probe) {
        let Placed { link, place, .. } = self.places[at.0];
        self.places[at.0].heard = now;
        if let Place::Election(peer) = place {
            if let Some(up) = self.up_mut(peer, link) {
                up.on_probe(now, probe);
            }
        }
    }

    fn up_mut(&mut self, peer: ServerId, link: LinkId) -> Option<&mut Up> {
        self.neighbours.get_mut(&peer)?.link.as_mut().filter(|up| up.link == link)
    }

    /// Probes the voters that know what that is: whether each was heard within so long.
    pub fn probe(&self, now: Instant, recent: Duration, outbox: &mut Outbox) {
        let voters = self.neighbours.values().filter(|neighbour| neighbour.wanted);
        for up in voters.filter_map(|neighbour| neighbour.link) {
            let placed = self.search(up.link).ok().map(|at| self.places[at]);
            if let Some(placed) = placed.filter(|_| up.knows_probes()) {
                let hears_you = now.since(placed.heard) <= recent;
                outbox.send(up.link, Message::Probe(Probe { hears_you }));
            }
        }
    }

    /// The voters with which there is an election link on which both ends have heard each other within so long.
    pub fn heard(&self, now: Instant, recent: Duration) -> impl Iterator<Item = ServerId> + '_ {
        let voters = self.neighbours.iter().filter(|(_, neighbour)| neighbour.wanted);
        let up = voters.filter_map(|(id, neighbour)| Some((*id, neighbour.link?)));
        up.filter(move |(_, up)| up.is_heard(now, recent)).map(|(id, _)| id)
    }

    /// Whether the election link to `peer` came up after `at`.
    pub fn is_newer(&self, peer: ServerId, at: Instant) -> bool {
        let link = self.neighbours.get(&peer).and_then(|neighbour| neighbour.link);
        link.is_some_and(|up| up.since > at)
    }

    /// Dials, now and afresh, every voter to which there is no link. The failure of a dial that was
    /// under way before says nothing about now.
    pub fn sweep(&mut self, now: Instant, outbox: &mut Outbox) {
        self.dials.values_mut().for_each(|dial| dial.fresh = false);
        let missing: Vec<_> = self
            .neighbours
            .iter_mut()
            .filter(|(_, neighbour)| neighbour.wanted && neighbour.link.is_none())
            .map(|(id, neighbour)| {
                neighbour.hope(self.redial_min);
                *id
            })
            .collect();
        for id in missing {
            self.dial(now, id, outbox);
        }
    }

    /// Dials one server now, unless there is a link or a dial is under way.
    pub fn dial(&mut self, now: Instant, peer: ServerId, outbox: &mut Outbox) {
        let Some(neighbour) = self.neighbours.get_mut(&peer) else { return };
        if neighbour.link.is_some() {
            return;
        }
        if self.dials.contains_key(&peer) {
            neighbour.redial_at = Some(now);
            return;
        }
        let addresses = neighbour.addresses();
        if addresses.is_empty() {
            return;
        }
        self.dials.insert(peer, UnderWay { since: now, fresh: true, asked: false });
        neighbour.redial_at = None;
        outbox.push(Output::Dial { plane: Plane::Election, peer, addresses });
    }

    /// Dials the quorum port of a leader, unless that is under way.
    pub fn dial_leader(&mut self, peer: ServerId, addresses: Vec<HostPort>, outbox: &mut Outbox) {
        if self.leader_dials.insert(peer) {
            outbox.push(Output::Dial { plane: Plane::Quorum, peer, addresses });
        }
    }

    /// Decides whether a connection on the election port stays.
    pub fn on_election_up(
        &mut self,
        now: Instant,
        up: &LinkUp,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Fate {
        let Some(peer) = up.peer else { return Fate::Over };
        let link = up.link;
        let refuse = if peer == self.id {
            Some(Hangup::OwnId(peer))
        } else if peer == ServerId::ANONYMOUS_OBSERVER || peer.0 < 0 {
            Some(Hangup::ReservedId(peer))
        } else {
            None
        };
        if let Some(reason) = refuse {
            outbox.hangup(link, reason);
            return Fate::Over;
        }
        if up.dialled {
            let kept = self.on_dialled(now, link, peer, rng, outbox);
            return kept.map_or(Fate::Over, Fate::Kept);
        }
        if peer < self.id {
            outbox.hangup(link, Hangup::WeDial(peer));
            self.on_knock(now, peer, up, outbox);
            return Fate::Over;
        }
        if let Some(old) = self.voter_link(peer) {
            return match self.hold(now, peer, link, up.remote, outbox) {
                true => Fate::Held { peer, old },
                false => Fate::Over,
            };
        }
        self.keep(now, link, peer, false, outbox);
        Fate::Kept(peer)
    }

    /// The link to a voter, which none takes the place of that only says who it is.
    fn voter_link(&self, peer: ServerId) -> Option<LinkId> {
        let voter = self.neighbours.get(&peer).filter(|neighbour| neighbour.wanted)?;
        voter.link.map(|up| up.link)
    }

    /// Our dial has come through.
    fn on_dialled(
        &mut self,
        now: Instant,
        link: LinkId,
        peer: ServerId,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<ServerId> {
        self.dials.remove(&peer);
        self.claims.on_dial_over(peer);
        let redial_max = self.redial_max;
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            if peer > self.id {
                // We only asked to be dialled; ask again later if that does not happen.
                if neighbour.link.is_none() && neighbour.wanted {
                    neighbour.put_off(now, redial_max, rng);
                }
                outbox.hangup(link, Hangup::PeerDials(peer));
                return None;
            }
            // A link that came up meanwhile was dialled by a larger id than ours: not this peer's.
            self.keep(now, link, peer, true, outbox);
            return Some(peer);
        }
        if peer > self.id {
            outbox.hangup(link, Hangup::PeerDials(peer));
            return None;
        }
        self.keep(now, link, peer, true, outbox);
        Some(peer)
    }

    /// A smaller id has asked to be dialled.
    fn on_knock(&mut self, now: Instant, peer: ServerId, up: &LinkUp, outbox: &mut Outbox) {
        let advertised = up.advertised.clone().filter(|address| !address.is_wildcard());
        let claims = self.voter_link(peer).is_some();
        let Some(neighbour) = self.neighbours.get_mut(&peer) else {
            return self.on_strange_knock(now, peer, advertised, up.remote, outbox);
        };
        let crossed = |old: Up| old.dialled && now.since(old.since) < CROSSED;
        if claims && !neighbour.link.is_some_and(crossed) {
            return self.on_claiming_knock(now, peer, outbox);
        }
        if let Some(address) = advertised {
            neighbour.advertised = Some(address);
        }
        if let Some(old) = neighbour.link {
            if crossed(old) {
                return;
            }
            // It would not knock if it had a link: ours is dead, we only have not noticed.
            neighbour.link = None;
            self.hangup(old.link, Hangup::Replaced(peer), outbox);
        }
        self.dial_back(now, peer, outbox);
    }

    /// A member has shown that it reaches us: so we should reach it, and a dial that hangs does so because
    /// of what was before.
    pub fn dial_back(&mut self, now: Instant, peer: ServerId, outbox: &mut Outbox) {
        if self.election(peer).is_some() || !self.neighbours.contains_key(&peer) {
            return;
        }
        match self.dials.get_mut(&peer) {
            Some(dial) if !dial.asked && now.since(dial.since) >= CROSSED => {
                (dial.fresh, dial.asked) = (false, true);
                outbox.push(Output::CancelDial { plane: Plane::Election, peer });
            }
            Some(_) => {}
            None => {
                self.dial(now, peer, outbox);
                self.dials.entry(peer).and_modify(|dial| dial.asked = true);
            }
        }
    }

    /// A server looks, and a peer has come within reach: perhaps the others have, too. Dials that hang were
    /// made into a network that was, and would be repeated later and later: each is made anew, once.
    pub fn retry(&mut self, now: Instant, outbox: &mut Outbox) {
        for (peer, dial) in &mut self.dials {
            if !dial.asked && now.since(dial.since) >= HANGS {
                (dial.fresh, dial.asked) = (false, true);
                outbox.push(Output::CancelDial { plane: Plane::Election, peer: *peer });
            }
        }
    }

    fn on_strange_knock(
        &mut self,
        now: Instant,
        peer: ServerId,
        advertised: Option<HostPort>,
        remote: Option<IpAddr>,
        outbox: &mut Outbox,
    ) {
        let (true, Some(advertised), Some(remote)) = (self.reconfig_enabled, advertised, remote)
        else {
            return;
        };
        let strangers = self.dials.keys().filter(|id| !self.neighbours.contains_key(id));
        if self.dials.contains_key(&peer) || !self.strangers.may_dial(now, strangers.count()) {
            return;
        }
        self.dials.insert(peer, UnderWay { since: now, fresh: true, asked: true });
        let address = HostPort { host: remote.to_string(), port: advertised.port };
        outbox.push(Output::Dial { plane: Plane::Election, peer, addresses: Vec::from([address]) });
    }

    fn keep(
        &mut self,
        now: Instant,
        link: LinkId,
        peer: ServerId,
        dialled: bool,
        outbox: &mut Outbox,
    ) {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            let up = Up::new(link, now, dialled);
            if let Some(old) = neighbour.on_up(up, self.redial_min) {
                self.hangup(old.link, Hangup::Replaced(peer), outbox);
            }
        } else {
            let gone = self.strangers.keep(now, peer, link, self.limits.strangers);
            if let Some((old, why)) = gone {
                self.hangup(old, why, outbox);
            }
        }
        let knows_probes = self.neighbours.get(&peer).is_some_and(Neighbour::knows_probes);
        self.enter(Placed { link, place: Place::Election(peer), heard: now, knows_probes });
    }

    /// Takes note of the link to our leader.
    pub fn on_leader_up(&mut self, link: LinkId, leader: ServerId) {
        self.leader_dials.remove(&leader);
        self.enter(Placed::of_quorum(link, Place::Leader(leader)));
    }

    /// A dial to a quorum port is over for which no caller waits any more.
    pub fn on_leader_dial_over(&mut self, leader: ServerId) {
        self.leader_dials.remove(&leader);
    }

    /// Takes note of a learner's link.
    pub fn on_learner_up(&mut self, link: LinkId) {
        self.enter(Placed::of_quorum(link, Place::Learner));
    }

    /// Keeps a learner's link that no leader can take yet; the oldest makes room.
    pub fn wait(&mut self, now: Instant, link: LinkId, outbox: &mut Outbox) {
        if self.waiting.len() >= self.limits.unintroduced {
            let oldest = self.waiting.remove(0);
            self.hangup(oldest.link, Hangup::TooManyUnintroduced, outbox);
        }
        self.waiting.push(Waiting { link, since: now, first: None, over: false });
    }

    /// The role that the learners' links belong to is over, and they are to hear of it later.
    pub fn detain(&mut self, now: Instant) {
        for Placed { link, place, .. } in self.places.iter().copied() {
            let waits = self.waiting.iter().any(|waiting| waiting.link == link);
            if place == Place::Learner && !waits {
                self.waiting.push(Waiting { link, since: now, first: None, over: true });
            }
        }
    }

    /// The links that wait, and from now on none does.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        core::mem::take(&mut self.waiting)
    }

    /// The links that wait.
    pub fn waiting_mut(&mut self) -> &mut [Waiting] {
        &mut self.waiting
    }

    /// Ends a link of ours.
    pub fn hangup(&mut self, link: LinkId, reason: Hangup, outbox: &mut Outbox) {
        self.leave(link);
        outbox.hangup(link, reason);
    }

    /// Takes note that a link has ended, and returns what it was for.
    pub fn on_down(
        &mut self,
        now: Instant,
        link: LinkId,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<Place> {
        let up = self.search(link).ok().and_then(|at| match self.places[at].place {
            Place::Election(peer) => self.neighbours.get(&peer)?.link,
            Place::Leader(_) | Place::Learner => None,
        });
        let Some(place) = self.leave(link) else {
            self.claims.on_down(link);
            return None;
        };
        outbox.forget(link);
        if let Place::Election(peer) = place {
            if let Some(neighbour) = self.neighbours.get_mut(&peer) {
                neighbour.on_down(now, up, rng);
            }
        }
        Some(place)
    }

    /// Takes note that a dial of the election port came to nothing; returns when it was made, if nothing
    /// that came later has to be waited for.
    pub fn on_election_dial_failed(
        &mut self,
        now: Instant,
        peer: ServerId,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<Instant> {
        let over = self.dials.remove(&peer);
        let called_off = self.claims.on_dial_over(peer);
        let redial_max = self.redial_max;
        if called_off && self.voter_link(peer).is_some() {
            self.dial_beside(now, peer, outbox);
        }
        let neighbour = self.neighbours.get_mut(&peer).filter(|n| n.link.is_none())?;
        let Some(dial) = over.filter(|dial| dial.fresh) else {
            // A caller asked for a fresh dial while this one was under way.
            self.dial(now, peer, outbox);
            let asked = over.is_some_and(|dial| dial.asked);
            self.dials.entry(peer).and_modify(|dial| dial.asked = asked);
            return None;
        };
        if neighbour.wanted {
            neighbour.put_off(now, redial_max, rng);
        }
        Some(dial.since)
    }

    /// Dials what is due by `due`, now as a rule.
    pub fn redial(&mut self, now: Instant, due: Instant, outbox: &mut Outbox) {
        while let Some((at, peer)) = self.next_redial() {
            if at > due {
                return;
            }
            self.dial(now, peer, outbox);
            // A neighbour without an address is never due again by itself.
            if let Some(neighbour) = self.neighbours.get_mut(&peer) {
                neighbour.redial_at = None;
            }
        }
    }

    /// When it is to be decided who takes the place of whom.
    pub fn claim_deadline(&self) -> Option<Instant> {
        self.claims.deadline()
    }

    /// When the next link is to be dialled.
    pub fn deadline(&self) -> Option<Instant> {
        self.next_redial().map(|(at, _)| at)
    }

    fn next_redial(&self) -> Option<(Instant, ServerId)> {
        let due = self.neighbours.iter().filter_map(|(id, n)| Some((n.due()?, *id)));
        due.filter(|(_, id)| !self.dials.contains_key(id)).min()
    }

    /// Ends all links of the quorum plane: the role that they belonged to is over. Those that wait belong to
    /// none yet.
    pub fn hangup_quorum(&mut self, reason: Hangup, outbox: &mut Outbox) {
        let quorum = |placed: &Placed| match placed.place {
            Place::Election(_) => None,
            Place::Leader(_) | Place::Learner => Some(placed.link),
        };
        for link in self.places.iter().filter_map(quorum).collect::<Vec<_>>() {
            if self.waiting.iter().all(|waiting| waiting.link != link) {
                self.hangup(link, reason, outbox);
            }
        }
    }

    /// Ends all links.
    pub fn hangup_all(&mut self, reason: Hangup, outbox: &mut Outbox) {
        for placed in core::mem::take(&mut self.places) {
            outbox.hangup(placed.link, reason);
        }
        self.drop_claims(reason, outbox);
        self.waiting.clear();
        self.strangers.clear();
        for neighbour in self.neighbours.values_mut() {
            neighbour.link = None;
            neighbour.redial_at = None;
        }
    }

    fn enter(&mut self, placed: Placed) {
        match self.search(placed.link) {
            Ok(at) => self.places[at] = placed,
            Err(at) => self.places.insert(at, placed),
        }
    }

    fn leave(&mut self, link: LinkId) -> Option<Place> {
        let at = self.search(link).ok()?;
        self.waiting.retain(|waiting| waiting.link != link);
        let Placed { place, .. } = self.places.remove(at);
        if let Place::Election(peer) = place {
            self.strangers.on_left(peer, link);
            if let Some(neighbour) = self.neighbours.get_mut(&peer) {
                neighbour.link = neighbour.link.filter(|up| up.link != link);
            }
        }
        Some(place)
    }
}
