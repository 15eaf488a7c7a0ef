//! Who is heard on an election link, and who hears us: marks, probes, and first words.

use core::time::Duration;

use crate::id::{LinkId, ServerId};
use crate::links::neighbour::{Neighbour, Up};
use crate::links::{Links, Place, Placed, Position};
use crate::message::{Message, Probe};
use crate::outbox::Outbox;
use crate::time::Instant;

impl Links {
    /// The server at the other end of an election link has said something, and whether it knows probes. Returns whether that
    /// is the first word of one that has let links end without one: it is within reach only now.
    #[inline]
    pub fn on_marked(&mut self, now: Instant, at: Position, knows_probes: bool) -> bool {
        let placed = &mut self.places[at.0];
        placed.heard = now;
        let first = !core::mem::replace(&mut placed.spoke, true);
        if placed.knows_probes != knows_probes {
            placed.knows_probes = knows_probes;
            let Placed { link, place, .. } = *placed;
            if let Place::Election(peer) = place {
                self.on_mark_changed(peer, link, knows_probes);
            }
        }
        first && self.on_first_word(at)
    }

    #[cold]
    fn on_first_word(&mut self, at: Position) -> bool {
        let Place::Election(peer) = self.places[at.0].place else { return false };
        self.neighbours.get_mut(&peer).is_some_and(Neighbour::speaks)
    }

    /// Whether this server has let links end without a word, and has said nothing since.
    pub fn is_mute(&self, peer: ServerId) -> bool {
        self.neighbours.get(&peer).is_some_and(Neighbour::is_mute)
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
}
