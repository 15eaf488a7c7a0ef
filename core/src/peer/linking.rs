//! The election links of a server as they come up, and those that wait for the place of another.
//!
//! ```text
//!   Kept ──────────────────────────────► linked: the election hears of it, the other end hears our vote
//!   Held ──► our vote on the old link      ▲
//!    └──► the old one ends, or its time ───┴──► then what it has said meanwhile
//! ```
//!
//! Which connection stays is decided in [`links`](crate::links).

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::election::ElectorEvent;
use crate::generation::ClockEvent;
use crate::id::{LinkId, ServerId};
use crate::links::Admitted;
use crate::message::Message;
use crate::peer::Peer;
use crate::peer::role::Role;
use crate::time::Instant;

impl Peer {
    /// There is a link for elections with this server. One that has let links end without a word is within reach when it says
    /// something: it may refuse our certificate, and an election that asked everybody anew for each such link would never rest.
    pub(super) fn on_linked(&mut self, link: LinkId, peer: ServerId) {
        if self.shared.links.is_mute(peer) {
            return self.shared.greet(link, peer);
        }
        self.on_reachable(peer);
        self.tell_standing(link, peer);
    }

    /// A mute server has said something.
    #[cold]
    pub(super) fn on_first_word(&mut self, peer: ServerId) {
        self.on_reachable(peer);
        self.tell_clock(peer);
    }

    fn on_reachable(&mut self, peer: ServerId) {
        if matches!(self.role, Role::Looking) {
            let (_, cx) = self.context();
            cx.links.retry(cx.now, cx.outbox);
        }
        self.elect(ElectorEvent::Reachable(peer));
    }

    /// A connection claims to be this voter, to which there is a link: a machine that does not know it any more ends it as
    /// soon as it hears something on it.
    pub(super) fn on_claimed(&mut self, old: LinkId, peer: ServerId) {
        self.tell_standing(old, peer);
    }

    /// A member hears where we stand, on the link that there is to it.
    fn tell_standing(&mut self, link: LinkId, peer: ServerId) {
        self.shared.greet(link, peer);
        self.tell_clock(peer);
    }

    fn tell_clock(&mut self, peer: ServerId) {
        if self.shared.config.is_member(peer) {
            self.on_clock(ClockEvent::Reachable(peer));
        }
    }

    /// It is known where a voter is at home.
    pub(super) fn on_resolved(&mut self, link: LinkId, homes: Vec<IpAddr>) {
        self.shared.links.on_resolved(link, homes);
        self.settle_claims(self.shared.now);
    }

    /// Decides on the claims that are due by `due`.
    pub(super) fn settle_claims(&mut self, due: Instant) {
        loop {
            let (_, cx) = self.context();
            let Some(admitted) = cx.links.settle(cx.now, due, cx.outbox) else { return };
            self.on_admitted(admitted);
        }
    }

    /// A connection that was held has taken the place of another.
    pub(super) fn on_admitted(&mut self, admitted: Admitted) {
        let Admitted { peer, link, mut said } = admitted;
        self.on_linked(link, peer);
        if let Some(notification) = said.take() {
            self.on_received(link, Message::Notification(notification));
        }
        while let Some(message) = said.take_generation() {
            self.on_received(link, Message::Generation(message));
        }
        if let Some(probe) = said.take_probe() {
            self.on_received(link, Message::Probe(probe));
        }
    }
}
