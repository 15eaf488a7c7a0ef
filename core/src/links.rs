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
//! Our own dials are in `dials`, who is heard in `hearing`, the links of the quorum port in `quorum_plane`.

mod answers;
mod claims;
mod dials;
mod hearing;
mod mailbox;
mod neighbour;
mod non_members;
mod quorum_plane;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::{Config, Limits, Timing};
use crate::id::{LinkId, ServerId};
use crate::input::LinkUp;
pub use crate::links::claims::Admitted;
use crate::links::claims::Claims;
use crate::links::dials::UnderWay;
pub use crate::links::mailbox::Mailbox;
use crate::links::neighbour::{Neighbour, Up};
use crate::links::non_members::NonMembers;
pub use crate::links::quorum_plane::Waiting;
use crate::outbox::Outbox;
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

/// Among so many links one is found by looking at each.
const FEW: usize = 16;

/// Where a link is found, until one comes or goes.
#[derive(Clone, Copy, Debug)]
pub struct Position(usize);

/// A link that is up, and what has come on it. It is found with each message, its neighbour is not: that would
/// be a second search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Placed {
    link: LinkId,
    place: Place,
    /// When the other end of an election link was heard; when the link came up, if never.
    heard: Instant,
    /// Whether anything was.
    spoke: bool,
    /// Whether its neighbour is known to know probes.
    knows_probes: bool,
}

/// All connections of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Links {
    id: ServerId,
    neighbours: BTreeMap<ServerId, Neighbour>,
    non_members: NonMembers,
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
        Self { link, place, heard: Instant::ORIGIN, spoke: true, knows_probes: false }
    }
}

impl Links {
    /// No connections; those that `config` asks for are dialled by the first [sweep](Self::sweep).
    pub fn new(config: &Config) -> Self {
        let Timing { redial_min, redial_max, .. } = config.timing;
        let mut links = Self {
            id: config.id,
            neighbours: BTreeMap::new(),
            non_members: NonMembers::default(),
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
            if let Some(link) = self.non_members.remove(id) {
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
            None => self.non_members.link(peer),
        }
    }

    /// The election link to a server, if that may be answered now: voters always may.
    #[inline]
    pub fn to_answer(&mut self, peer: ServerId, now: Instant) -> Option<LinkId> {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            return neighbour.may_answer(now);
        }
        self.non_members.may_answer(peer, now)
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

    /// Whether the election link to `peer` came up after `at`.
    pub fn is_newer(&self, peer: ServerId, at: Instant) -> bool {
        let link = self.neighbours.get(&peer).and_then(|neighbour| neighbour.link);
        link.is_some_and(|up| up.since > at)
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
            if let Some(old) = neighbour.on_up(up) {
                self.hangup(old.link, Hangup::Replaced(peer), outbox);
            }
        } else {
            let gone = self.non_members.keep(now, peer, link, self.limits.non_members);
            if let Some((old, why)) = gone {
                self.hangup(old, why, outbox);
            }
        }
        let knows_probes = self.neighbours.get(&peer).is_some_and(Neighbour::knows_probes);
        let place = Place::Election(peer);
        self.enter(Placed { link, place, heard: now, spoke: false, knows_probes });
    }

    /// Ends a link of ours.
    pub fn hangup(&mut self, link: LinkId, reason: Hangup, outbox: &mut Outbox) {
        self.leave(link);
        outbox.hangup(link, reason);
    }

    /// A link has ended, or is to for this reason: it is hung up, whatever its place, and what it was for is returned.
    pub fn on_down(
        &mut self,
        now: Instant,
        link: LinkId,
        reason: Hangup,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<Place> {
        outbox.hangup(link, reason);
        let up = self.search(link).ok().and_then(|at| match self.places[at].place {
            Place::Election(peer) => {
                let up = self.neighbours.get(&peer)?.link?;
                Some((up.held(now), self.places[at].spoke))
            }
            Place::Leader(_) | Place::Learner => None,
        });
        let Some(place) = self.leave(link) else {
            self.claims.on_down(link);
            return None;
        };
        if let Place::Election(peer) = place {
            if let Some(neighbour) = self.neighbours.get_mut(&peer) {
                let (held, spoke) = up.unwrap_or_default();
                if held || spoke {
                    neighbour.hope(self.redial_min);
                    neighbour.on_down(now, held, rng);
                } else {
                    neighbour.on_mute(now, self.redial_max, rng);
                }
            }
        }
        Some(place)
    }

    /// When it is to be decided who takes the place of whom.
    pub fn claim_deadline(&self) -> Option<Instant> {
        self.claims.deadline()
    }

    /// Ends all links.
    pub fn hangup_all(&mut self, reason: Hangup, outbox: &mut Outbox) {
        for placed in core::mem::take(&mut self.places) {
            outbox.hangup(placed.link, reason);
        }
        self.drop_claims(reason, outbox);
        self.waiting.clear();
        self.non_members.clear();
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
            self.non_members.on_left(peer, link);
            if let Some(neighbour) = self.neighbours.get_mut(&peer) {
                neighbour.link = neighbour.link.filter(|up| up.link != link);
            }
        }
        Some(place)
    }
}
