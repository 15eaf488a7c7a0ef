//! All learners of one leader.
//!
//! ```text
//!   link ──► Progress: who it is, how far it has come, what it gets next
//! ```
//!
//! What concerns them all alike stands here: feeding them, pinging them, finding those that are overdue.
//! What a learner says is judged by the leader.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::Context;
use crate::id::{LinkId, ServerId};
use crate::leader::progress::{Activation, Busy, LeaderProgress, Progress, Stage, send};
use crate::message::Packet;
use crate::quorum::Quorum;
use crate::reasons::Hangup;
use crate::status::LearnerStatus;
use crate::time::Instant;
use crate::txn::Txns;
use crate::zxid::Zxid;

/// Everybody who learns from us, by link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Learners {
    /// Ascending.
    by_link: Vec<(LinkId, Progress)>,
    /// Anonymous observers so far: they are called -1, -2, …
    anonymous: i64,
    /// Pings so far.
    beat: u64,
}

impl Learners {
    /// How many there are, introduced or not.
    pub fn len(&self) -> usize {
        self.by_link.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_link.is_empty()
    }

    /// Where the one on this link stands, or would stand.
    #[inline]
    fn position(&self, link: LinkId) -> Result<usize, usize> {
        self.by_link.binary_search_by_key(&link, |(link, _)| *link)
    }

    /// The one on this link.
    pub fn get(&self, link: LinkId) -> Option<&Progress> {
        self.position(link).ok().map(|at| &self.by_link[at].1)
    }

    /// The one on this link.
    pub fn get_mut(&mut self, link: LinkId) -> Option<&mut Progress> {
        self.position(link).ok().map(|at| &mut self.by_link[at].1)
    }

    /// All of them, by link.
    pub fn iter(&self) -> impl Iterator<Item = (LinkId, &Progress)> {
        self.by_link.iter().map(|(link, learner)| (*link, learner))
    }

    /// All of them.
    pub fn values(&self) -> impl Iterator<Item = &Progress> {
        self.by_link.iter().map(|(_, learner)| learner)
    }

    /// Takes one in.
    pub fn insert(&mut self, link: LinkId, learner: Progress) {
        match self.position(link) {
            Ok(at) => self.by_link[at].1 = learner,
            Err(at) => self.by_link.insert(at, (link, learner)),
        }
    }

    /// Forgets one.
    pub fn remove(&mut self, link: LinkId) -> Option<Progress> {
        self.position(link).ok().map(|at| self.by_link.remove(at).1)
    }

    /// The links of those that are at such a stage, the oldest first.
    pub fn at_stage(&self, is: impl Fn(Stage) -> bool) -> Vec<LinkId> {
        self.by_link.iter().filter_map(|(link, l)| is(l.stage).then_some(*link)).collect()
    }

    /// The link on which a server has introduced itself.
    pub fn link_of(&self, id: ServerId) -> Option<LinkId> {
        let same = |(_, l): &(LinkId, &Progress)| l.stage > Stage::Silent && l.id == id;
        self.iter().find(same).map(|(link, _)| link)
    }

    /// A name for an observer without an id.
    pub const fn name_anonymous(&mut self) -> ServerId {
        self.anonymous -= 1;
        ServerId(self.anonymous)
    }

    /// Those that have introduced themselves, ascending.
    pub fn learner_statuses(&self) -> Vec<LearnerStatus> {
        let introduced = self.values().filter(|l| l.stage > Stage::Silent);
        let mut statuses: Vec<_> = introduced
            .map(|l| LearnerStatus {
                id: l.id,
                voter: l.votes,
                follower: l.follower,
                synced: l.is_synced(),
            })
            .collect();
        statuses.sort_unstable();
        statuses
    }

    /// How many observers are being sent a snapshot.
    pub fn observer_snapshots(&self) -> usize {
        let observers = self.values().filter(|l| !l.follower);
        observers.filter(|l| matches!(l.cursor.busy, Busy::Snapshot(_))).count()
    }

    /// Others vote from now on.
    pub fn update_quorum(&mut self, quorum: &Quorum) {
        for (_, learner) in &mut self.by_link {
            learner.votes = learner.follower && quorum.is_voter(learner.id);
        }
    }

    /// A reconfiguration is in force: each learner that was told of the configuration before is told so.
    pub fn activate(&mut self, activation: &Activation) {
        for (_, learner) in self.by_link.iter_mut().filter(|(_, l)| l.cursor.new_leader) {
            learner.activations.push_back(activation.clone());
        }
    }

    /// Sends new transactions to those that have all before them.
    pub fn propose(&mut self, cx: &mut Context<'_>, before: Zxid, txns: &Txns) {
        for (link, learner) in &mut self.by_link {
            learner.propose(cx, *link, before, txns);
        }
    }

    /// Lets a learner have what it can take, before the others: somebody waits for it there.
    pub fn feed_one(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) {
        if let Some(learner) = self.get_mut(link) {
            learner.feed(cx, link, ours);
        }
    }

    /// Lets every learner have what it can take.
    pub fn feed(&mut self, cx: &mut Context<'_>, ours: LeaderProgress) {
        for (link, learner) in &mut self.by_link {
            learner.feed(cx, *link, ours);
        }
    }

    /// Pings so far.
    pub const fn beat(&self) -> u64 {
        self.beat
    }

    /// Pings every learner that has our history. Only those that serve answer; one that owes too many answers
    /// is not asked again before it gives some.
    pub fn ping(&mut self, cx: &mut Context<'_>, zxid: Zxid) {
        self.beat += 1;
        for (link, learner) in &mut self.by_link {
            if learner.is_synced() && !learner.cursor.is_streaming() && !learner.beats.is_full() {
                let serves = learner.stage == Stage::Serving;
                let lease = cx.config.lease.filter(|_| serves && learner.leases && learner.votes);
                send(
                    cx,
                    *link,
                    match lease {
                        Some(length) => Packet::Lease { zxid, length, sessions: Bytes::new() },
                        None => Packet::Ping { zxid, sessions: None },
                    },
                );
                if serves {
                    learner.beats.on_ping(self.beat, cx.now);
                }
            }
        }
    }

    /// The voters that follow us, and the last ping that each has answered.
    pub fn answered(&self) -> impl Iterator<Item = (ServerId, u64)> {
        let serving = self.values().filter(|l| l.votes && l.stage == Stage::Serving);
        serving.map(|l| (l.id, l.beats.answered()))
    }

    /// The voters that have promised to establish no other leader, and when the last ping was sent that they have
    /// answered so.
    pub fn promised(&self) -> impl Iterator<Item = (Instant, ServerId)> {
        let serving = self.values().filter(|l| l.votes && l.leases && l.stage == Stage::Serving);
        serving.filter_map(|l| Some((l.beats.promised()?, l.id)))
    }

    /// Those that have been silent for too long, or owe an acknowledgement for too long.
    pub fn overdue(&self, cx: &Context<'_>) -> Vec<(LinkId, Hangup)> {
        let (init, sync) = (cx.config.timing.init_time(), cx.config.timing.sync_time());
        let overdue = self.by_link.iter().filter_map(|(link, l)| {
            let limit = match l.stage {
                Stage::Serving => sync,
                // It has nothing to say until it is told that it may serve.
                Stage::Acknowledged if !l.cursor.is_streaming() => return None,
                Stage::Acknowledged
                | Stage::Silent
                | Stage::Introduced
                | Stage::Told
                | Stage::Promised(_)
                | Stage::Syncing => init,
            };
            let owes = l.acks.owing_since().is_some_and(|since| cx.now.since(since) > sync);
            if cx.now.since(l.heard) > limit {
                let introduced = l.stage > Stage::Silent;
                let silent = if introduced { Hangup::Silent(l.id) } else { Hangup::Unintroduced };
                Some((*link, silent))
            } else {
                (l.stage == Stage::Serving && owes).then_some((*link, Hangup::Unacknowledged(l.id)))
            }
        });
        overdue.collect()
    }
}
