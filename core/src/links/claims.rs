//! Connections that claim the id of a voter with which there is a link: an introduction proves nothing.
//!
//! ```text
//!   a larger id   ──► held, our vote goes on the old link ─┬─ that ends ──────────────────► takes its place
//!                                                          └─ a second passes ─┬─ from home ─► takes its place
//!                                                                              └─ otherwise ──► refused
//!   a smaller id  ──► dialled where the configuration says ─── that is through ───────────► takes its place
//! ```
//!
//! A voter that was restarted comes with a new connection while its old one still looks alive here: its machine
//! lost power, or something between forgot the connection. What is written on the old one makes a machine that
//! is back, and knows nothing of it, end it at once. Where nothing answers at all, the address decides: a voter's
//! home is where its configured name leads to at that moment. Looking that up is the driver's affair.
//!
//! `QuorumCnxManager` believes any peer that connects, and ends the link that works. A voter that dials is not asked
//! for a proof by dialling it: a server of ZooKeeper with a larger id would end the old link for that itself, and one
//! that has settled answers no notification of one that has.
//!
//! What a newcomer says while it is held is kept as its own [`Mailbox`] would have kept it, and heard only when it
//! has the place. There is one for each voter at most, and one dial of a smaller one in a second.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use crate::id::{LinkId, ServerId};
use crate::input::Plane;
use crate::links::Links;
use crate::links::dials::UnderWay;
use crate::links::mailbox::Mailbox;
use crate::message::Message;
use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::Hangup;
use crate::time::Instant;

/// How long the old link has to end, and how often a smaller voter is dialled that has a link.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is claimed now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claims {
    /// Those with larger ids.
    held: BTreeMap<ServerId, Held>,
    /// Those with smaller ids.
    knocks: BTreeMap<ServerId, Knock>,
}

/// A connection that is held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    link: LinkId,
    remote: Option<IpAddr>,
    /// When it takes the place or is refused.
    until: Instant,
    /// Where the voter is at home, as soon as that is known.
    homes: Option<Vec<IpAddr>>,
    /// What it has said.
    said: Mailbox,
}

impl Held {
    /// Whether it is known to come from where the voter is at home.
    fn is_at_home(&self) -> bool {
        self.shares_home(self.remote)
    }

    /// Whether a peer that comes from there is known to come from where the voter is at home.
    fn shares_home(&self, remote: Option<IpAddr>) -> bool {
        self.homes.as_ref().is_some_and(|homes| is_among(homes, remote))
    }
}

/// A smaller voter that has a link and asks to be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Knock {
    /// When it may be dialled again.
    dial_at: Instant,
    /// When it asked last, if it was not dialled since.
    asked: Option<Instant>,
    /// A dial that hangs was called off for it.
    called_off: bool,
}

/// Whether an address is one of these. Where a port for both kinds listens, one of the older kind comes as one of
/// the newer.
fn is_among(homes: &[IpAddr], remote: Option<IpAddr>) -> bool {
    let Some(remote) = remote else { return false };
    homes.iter().any(|home| home.to_canonical() == remote.to_canonical())
}

/// A connection that has taken the place of another after all.
#[derive(Debug)]
pub struct Admitted {
    /// Whose.
    pub peer: ServerId,
    /// Which.
    pub link: LinkId,
    /// What it has said meanwhile.
    pub said: Mailbox,
}

impl Links {
    /// A voter with a larger id has a link, and a newcomer claims to be that voter. Returns whether it is held.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        peer: ServerId,
        link: LinkId,
        remote: Option<IpAddr>,
        outbox: &mut Outbox,
    ) -> bool {
        // One that comes from home does not give way to one that does not.
        let at_home = self.claims.held.get(&peer).filter(|older| older.is_at_home());
        if at_home.is_some_and(|older| !older.shares_home(remote)) {
            outbox.hangup(link, Hangup::NotAtHome(peer));
            return false;
        }
        let (until, said) = (now + PATIENCE, Mailbox::default());
        let newcomer = Held { link, remote, until, homes: None, said };
        if let Some(older) = self.claims.held.insert(peer, newcomer) {
            outbox.hangup(older.link, Hangup::ClaimedAgain(peer));
        }
        let mut hosts: Vec<String> = Vec::new();
        for address in self.neighbours.get(&peer).iter().flat_map(|n| &n.configured) {
            if !hosts.contains(&address.host) {
                hosts.push(address.host.clone());
            }
        }
        outbox.push(Output::Resolve { link, hosts });
        true
    }

    /// It is known where the voter is at home whom the connection on this link claims to be.
    pub fn on_resolved(&mut self, link: LinkId, homes: Vec<IpAddr>) {
        if let Some(held) = self.claims.held.values_mut().find(|held| held.link == link) {
            held.homes = Some(homes);
        }
    }

    /// Something has come on a link that has no place. From one that is held it is kept.
    #[cold]
    pub fn on_unplaced(&mut self, link: LinkId, message: Message, outbox: &mut Outbox) {
        let claim = self.claims.held.iter_mut().find(|(_, held)| held.link == link);
        let Some((peer, held)) = claim else { return };
        match message {
            Message::Notification(notification) => {
                held.said.put(notification);
            }
            Message::Generation(message) => {
                held.said.post(message);
            }
            Message::Probe(probe) => {
                held.said.put_probe(probe);
            }
            Message::Packet(packet) => {
                let peer = *peer;
                self.claims.held.remove(&peer);
                outbox.hangup(link, Hangup::OutOfTurn(packet.name()));
            }
        }
    }

    /// The old link of a voter has ended: a newcomer that claims to be that voter takes its place at once. One that is
    /// known to come from elsewhere has to come again: the old link may have been ended for a newer one, whose
    /// introduction is on its way.
    pub fn succeed(
        &mut self,
        now: Instant,
        peer: ServerId,
        outbox: &mut Outbox,
    ) -> Option<Admitted> {
        let Held { link, said, homes, remote, .. } = self.claims.held.remove(&peer)?;
        if homes.is_some_and(|homes| !is_among(&homes, remote)) {
            outbox.hangup(link, Hangup::NotAtHome(peer));
            return None;
        }
        self.keep(now, link, peer, false, outbox);
        Some(Admitted { peer, link, said })
    }

    /// Decides on what is due by `due`: returns the next connection that takes the place of another.
    pub fn settle(&mut self, now: Instant, due: Instant, outbox: &mut Outbox) -> Option<Admitted> {
        self.answer_knocks(now, due, outbox);
        loop {
            let of = |(peer, held): (&ServerId, &Held)| {
                (held.homes.is_some() && held.until <= due).then_some((*peer, held.is_at_home()))
            };
            let (peer, is_at_home) = self.claims.held.iter().find_map(of)?;
            if is_at_home {
                return self.succeed(now, peer, outbox);
            }
            if let Some(held) = self.claims.held.remove(&peer) {
                outbox.hangup(held.link, Hangup::NotAtHome(peer));
            }
        }
    }

    /// A voter with a smaller id has a link, and a newcomer claims to be that voter: it is dialled, now or as soon as
    /// a second has passed since it was dialled last.
    pub(super) fn on_claiming_knock(&mut self, now: Instant, peer: ServerId, outbox: &mut Outbox) {
        let knock = Knock { dial_at: now, asked: None, called_off: false };
        let knock = self.claims.knocks.entry(peer).or_insert(knock);
        if let Some(dial) = self.dials.get(&peer) {
            knock.dial_at = knock.dial_at.max(dial.since + PATIENCE);
        }
        knock.asked = Some(now);
        self.answer_knocks(now, now, outbox);
    }

    /// Dials the voters that have asked for it, and may be dialled by `due`.
    fn answer_knocks(&mut self, now: Instant, due: Instant, outbox: &mut Outbox) {
        while let Some((at, peer)) = self.claims.next_dial() {
            if at > due {
                return;
            }
            let Some(knock) = self.claims.knocks.get_mut(&peer) else { return };
            let link = self.neighbours.get(&peer).and_then(|neighbour| neighbour.link);
            let outlived = link.is_some_and(|up| knock.asked.is_some_and(|asked| up.since < asked));
            match self.dials.get_mut(&peer) {
                // There is another link since, or none, and that is sought by itself.
                _ if !outlived => knock.asked = None,
                // It was made into a network that was, or into nothing.
                Some(dial) => {
                    knock.called_off = true;
                    dial.fresh = false;
                    outbox.push(Output::CancelDial { plane: Plane::Election, peer });
                }
                None => self.dial_beside(now, peer, outbox),
            }
        }
    }

    /// Dials a voter beside the link to it: only where the configuration says, since what was said of another
    /// address may have been said by anybody.
    pub(super) fn dial_beside(&mut self, now: Instant, peer: ServerId, outbox: &mut Outbox) {
        let dial_at = now + PATIENCE;
        let knock = Knock { dial_at, asked: None, called_off: false };
        self.claims.knocks.insert(peer, knock);
        let configured = self.neighbours.get(&peer).map(|neighbour| neighbour.configured.clone());
        let Some(addresses) = configured.filter(|addresses| !addresses.is_empty()) else { return };
        self.dials.insert(peer, UnderWay { since: now, fresh: true, asked: false });
        outbox.push(Output::Dial { plane: Plane::Election, peer, addresses });
    }

    /// A server is no voter any more, or none of ours: what is claimed of it is of no interest.
    pub(super) fn drop_claim(&mut self, peer: ServerId, reason: Hangup, outbox: &mut Outbox) {
        self.claims.knocks.remove(&peer);
        if let Some(held) = self.claims.held.remove(&peer) {
            outbox.hangup(held.link, reason);
        }
    }

    /// The same of all of them.
    pub(super) fn drop_claims(&mut self, reason: Hangup, outbox: &mut Outbox) {
        for held in core::mem::take(&mut self.claims).held.into_values() {
            outbox.hangup(held.link, reason);
        }
    }
}

impl Claims {
    /// When something is to be decided.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let held = self.held.values().filter(|held| held.homes.is_some()).map(|held| held.until);
        held.chain(self.next_dial().map(|(at, _)| at)).min()
    }

    /// Who is to be dialled next, and when.
    fn next_dial(&self) -> Option<(Instant, ServerId)> {
        let asking = self.knocks.iter().filter(|(_, k)| k.asked.is_some() && !k.called_off);
        asking.map(|(peer, knock)| (knock.dial_at, *peer)).min()
    }

    /// A link has ended, perhaps one that was held.
    #[cold]
    pub(super) fn on_down(&mut self, link: LinkId) {
        self.held.retain(|_, held| held.link != link);
    }

    /// Our own dial of a server is over; returns whether it was called off, to be made anew.
    pub(super) fn on_dial_over(&mut self, peer: ServerId) -> bool {
        let knock = self.knocks.get_mut(&peer);
        knock.is_some_and(|knock| core::mem::take(&mut knock.called_off))
    }
}
