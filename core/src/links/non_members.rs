//! Servers that are no members and have connected to the election port: a new server that wants to
//! join, a tool that asks.
//!
//! ```text
//!   a non-member's link ──► kept, the oldest makes room ──► answered, so and so often in a second
//!   a non-member knocks ──► dialled back, a few at a time and seldom
//! ```
//!
//! All that they can make us do is bounded here. Whether they are dialled at all, and where, is decided
//! above; what they say counts for nothing anywhere.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::id::{LinkId, ServerId};
use crate::links::answers::Answers;
use crate::reasons::Hangup;
use crate::time::Instant;

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NonMembers {
    by_id: BTreeMap<ServerId, NonMember>,
    /// When one may be dialled again.
    dial_at: Instant,
}

/// A server that is no member, on an election link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NonMember {
    link: LinkId,
    answers: Answers,
}

impl NonMembers {
    /// The link of one.
    pub(super) fn link(&self, peer: ServerId) -> Option<LinkId> {
        self.by_id.get(&peer).map(|non_member| non_member.link)
    }

    /// Its link, if it may be answered now: one answer less is left to it then.
    pub(super) fn may_answer(&mut self, peer: ServerId, now: Instant) -> Option<LinkId> {
        let non_member = self.by_id.get_mut(&peer)?;
        non_member.answers.take(now).then_some(non_member.link)
    }

    /// Keeps a link; returns the one that makes room for it among so many at `most`, and why.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        peer: ServerId,
        link: LinkId,
        most: usize,
    ) -> Option<(LinkId, Hangup)> {
        let gone = if let Some(old) = self.by_id.remove(&peer) {
            Some((old.link, Hangup::Replaced(peer)))
        } else if self.by_id.len() >= most {
            let oldest = self.by_id.iter().min_by_key(|(_, non_member)| non_member.link);
            let oldest = oldest.map(|(id, non_member)| (*id, non_member.link));
            oldest.map(|(id, link)| {
                self.by_id.remove(&id);
                (link, Hangup::TooManyNonMembers)
            })
        } else {
            None
        };
        self.by_id.insert(peer, NonMember { link, answers: Answers::new(now) });
        gone
    }

    /// Whether one more may be dialled now, with so many dials of them under way.
    pub(super) fn may_dial(&mut self, now: Instant, under_way: usize) -> bool {
        let may = now >= self.dial_at && under_way < DIALS;
        if may {
            self.dial_at = now + DIAL_INTERVAL;
        }
        may
    }

    /// Forgets one, who has become a member; returns its link.
    pub(super) fn remove(&mut self, peer: ServerId) -> Option<LinkId> {
        self.by_id.remove(&peer).map(|non_member| non_member.link)
    }

    /// A link has ended, perhaps one of theirs.
    pub(super) fn on_left(&mut self, peer: ServerId, link: LinkId) {
        if self.link(peer) == Some(link) {
            self.by_id.remove(&peer);
        }
    }

    /// All links have ended.
    pub(super) fn clear(&mut self) {
        self.by_id.clear();
    }
}

/// How often one is dialled, at most.
const DIAL_INTERVAL: Duration = Duration::from_secs(1);

/// How many of them are dialled at a time, at most.
const DIALS: usize = 8;
