//! Our own dials of election ports: which is made when, which is called off, and when a missing link is tried again.
//!
//! ```text
//!   missing ─► dialled ─┬─ through ──────────────► it stays, or the other side dials
//!                       ├─ failed ───────────────► again, 10 ms to 1 s later
//!                       └─ hangs, a sign of life ► called off and made anew, once
//! ```

use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use crate::address::HostPort;
use crate::id::{LinkId, ServerId};
use crate::input::{LinkUp, Plane};
use crate::links::Links;
use crate::links::neighbour::Up;
use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::Hangup;
use crate::rng::Rng;
use crate::time::Instant;

/// A knock on a link or a dial that is younger than this crossed with our own dial; that is good.
const CROSSED: Duration = Duration::from_millis(100);

/// A dial that is older than this hangs: no way to a server and back takes as long.
const HANGS: Duration = Duration::from_millis(500);

/// A dial that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct UnderWay {
    pub(super) since: Instant,
    /// It was made since every missing link was dialled afresh the last time, and is not called off.
    pub(super) fresh: bool,
    /// It came of a sign that the server can be reached, or the one after it will: it is not called off for
    /// another, since one that leads nowhere has to come to its end, and to the next address.
    pub(super) asked: bool,
}

impl Links {
    /// Dials, now and afresh, every voter to which there is no link. The failure of a dial that was
    /// under way before says nothing about now. Who has let links end without a word, or was asked
    /// to dial and did not, is dialled when its time comes: it may refuse us.
    pub fn sweep(&mut self, now: Instant, outbox: &mut Outbox) {
        self.dials.values_mut().for_each(|dial| dial.fresh = false);
        let missing: Vec<_> = self
            .neighbours
            .iter_mut()
            .filter(|(_, neighbour)| neighbour.wanted && neighbour.link.is_none())
            .filter(|(id, neighbour)| {
                let comes = neighbour.redial_at.is_some() || self.dials.contains_key(id);
                !(neighbour.keeps_its_pace() && comes)
            })
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

    /// Our dial has come through.
    pub(super) fn on_dialled(
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
                    neighbour.asked = true;
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
    pub(super) fn on_knock(
        &mut self,
        now: Instant,
        peer: ServerId,
        up: &LinkUp,
        outbox: &mut Outbox,
    ) {
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
        let non_members = self.dials.keys().filter(|id| !self.neighbours.contains_key(id));
        if self.dials.contains_key(&peer) || !self.non_members.may_dial(now, non_members.count()) {
            return;
        }
        self.dials.insert(peer, UnderWay { since: now, fresh: true, asked: true });
        let address = HostPort { host: remote.to_string(), port: advertised.port };
        outbox.push(Output::Dial { plane: Plane::Election, peer, addresses: Vec::from([address]) });
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

    /// When the next link is to be dialled.
    pub fn deadline(&self) -> Option<Instant> {
        self.next_redial().map(|(at, _)| at)
    }

    fn next_redial(&self) -> Option<(Instant, ServerId)> {
        let due = self.neighbours.iter().filter_map(|(id, n)| Some((n.due()?, *id)));
        due.filter(|(_, id)| !self.dials.contains_key(id)).min()
    }
}
