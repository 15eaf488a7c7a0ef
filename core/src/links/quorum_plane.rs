//! Links of the quorum port: which is whose, and those that came before the election was over.
//!
//! A learner may come before this server knows that it leads: its link waits, a bounded number of them, until a role
//! takes it or hangs it up. What is said on these links, and for how long one waits, is decided by the roles.

use alloc::vec::Vec;

use crate::address::HostPort;
use crate::id::{LinkId, ServerId};
use crate::input::Plane;
use crate::links::{Links, Place, Placed};
use crate::message::Packet;
use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::Hangup;
use crate::time::Instant;

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

impl Links {
    /// Dials the quorum port of a leader, unless that is under way.
    pub fn dial_leader(&mut self, peer: ServerId, addresses: Vec<HostPort>, outbox: &mut Outbox) {
        if self.leader_dials.insert(peer) {
            outbox.push(Output::Dial { plane: Plane::Quorum, peer, addresses });
        }
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
}
