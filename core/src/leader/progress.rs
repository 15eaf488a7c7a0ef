//! One learner as its leader sees it: a cursor in the leader's history.
//!
//! ```text
//!        told: COMMIT sent        sent: the transaction sent           last
//!   ───────────┼───────────────────────────┼─────────────────────────────┤
//!                                          │  below the window: StreamLog, from the disk
//!                                          │  in the window: sent from memory
//!                                          │  at the end: live
//! ```
//!
//! Where the cursor stands decides what the learner gets next. So a learner that joins while
//! transactions are under way misses none and gets none twice (ZOOKEEPER-962, -2418), nothing queues up
//! for one that is slow, and forwarding is nothing but the cursor having reached the end.

pub mod acks;
pub mod beats;
mod cursor;

use alloc::collections::VecDeque;

use crate::context::Context;
use crate::id::{LinkId, ServerId};
use crate::leader::progress::acks::Acks;
use crate::leader::progress::beats::Beats;
use crate::leader::progress::cursor::part;
pub use crate::leader::progress::cursor::{Busy, Cursor};
use crate::membership::Membership;
use crate::message::{Message, Packet, Run};
use crate::output::{Form, Output};
use crate::time::Instant;
use crate::txn::{Txn, Txns};
use crate::zxid::{Epoch, Zxid};

/// A learner on its way from a bare connection to a synchronised member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Who; a negative number for an observer without an id. Means nothing while
    /// [`Stage::Silent`].
    pub id: ServerId,
    /// Whether it counts in quorums: it has a vote, and came as a follower.
    pub votes: bool,
    /// Whether it came as a follower.
    pub follower: bool,
    /// How much it is wished to lead; none of a server that is not one of ours.
    pub priority: Option<u8>,
    /// Whether it promises leases, and what it has promised counts.
    pub leases: bool,
    /// Whether it takes every membership that comes with a snapshot and behind it.
    pub collects: bool,
    /// The version of the configuration that it had in force when it came.
    pub config_version: i64,
    /// It keeps using the membership that its first NEWLEADER named: its log holds a reconfiguration, and none was in force
    /// there when it connected.
    pub blind: bool,
    /// When it last said that the leadership may be offered to it; none if it has said since that it may not.
    pub may_lead: Option<Instant>,
    /// How far it has come.
    pub stage: Stage,
    /// When it last said something; when it came, if never.
    pub heard: Instant,
    /// What it gets next, once it is told how it is brought up.
    pub cursor: Cursor,
    /// What it has acknowledged.
    pub acks: Acks,
    /// Which of our pings it has answered.
    pub beats: Beats,
    /// Reconfigurations that it has to be told of when their turn has come, ascending.
    pub activations: VecDeque<Activation>,
    /// SYNCs that it is owed, in order.
    pub syncs: VecDeque<Sync>,
}

/// A SYNC that a learner is owed: behind the COMMIT or INFORM of everything through its point, and before every later
/// one, since a ZooKeeper server completes its requests in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sync {
    /// What was proposed when it was its turn.
    pub point: Zxid,
    /// By which a server of ours knows it; 0 for others.
    pub tag: i32,
}

/// A reconfiguration that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Activation {
    /// What brought it.
    pub txn: Txn,
    /// Who leads from then on.
    pub leader: ServerId,
}

/// How far a learner has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Connected; FOLLOWERINFO or OBSERVERINFO is awaited.
    Silent,
    /// Introduced; it waits for the new epoch.
    Introduced,
    /// LEADERINFO is sent or on its way to the disk; ACKEPOCH is awaited.
    Told,
    /// Its ACKEPOCH has come, with this last zxid; it waits for the end of discovery, for the disk to
    /// locate that zxid, or for its turn to be sent a snapshot.
    Promised(Zxid),
    /// It is being brought to our history; the ACK of NEWLEADER is awaited.
    Syncing,
    /// It has our history; it waits until a quorum has.
    Acknowledged,
    /// UPTODATE is sent.
    Serving,
}

/// How far we have come ourselves; what a learner may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaderProgress {
    /// Our epoch.
    pub epoch: Epoch,
    /// Where the history ends that we brought into it.
    pub inherited: Zxid,
    /// Everything through this counts as committed. Before we are established that is our whole
    /// history: learners must make it durable before they acknowledge NEWLEADER.
    pub committed: Zxid,
    /// Whether a quorum has acknowledged it.
    pub established: bool,
}

impl Progress {
    /// A learner that has just connected.
    pub fn new(now: Instant) -> Self {
        Self {
            id: ServerId::NONE,
            votes: false,
            follower: false,
            priority: None,
            leases: false,
            collects: false,
            config_version: 0,
            blind: false,
            may_lead: None,
            stage: Stage::Silent,
            heard: now,
            cursor: Cursor::default(),
            acks: Acks::default(),
            beats: Beats::default(),
            activations: VecDeque::new(),
            syncs: VecDeque::new(),
        }
    }

    /// Whether a snapshot would bring this learner past a change that is in force here while another is under way: of
    /// two changes NEWLEADER can tell it one alone, and it takes none with the snapshot.
    pub fn misses_a_change(&self, cx: &Context<'_>) -> bool {
        let underway = cx.config.next_membership.as_ref().is_some_and(Membership::is_change);
        let behind = cx.config.membership.is_change()
            && self.config_version < cx.config.membership.version();
        underway && behind && !self.collects
    }

    /// Whether it is a server of ours that serves.
    pub const fn is_ours(&self) -> bool {
        matches!(self.stage, Stage::Serving) && self.priority.is_some()
    }

    /// Whether it has acknowledged our history.
    pub fn is_synced(&self) -> bool {
        self.stage >= Stage::Acknowledged
    }

    /// Sends new transactions to a follower whose cursor is at the end; any other gets them in its turn.
    pub fn propose(&mut self, cx: &mut Context<'_>, link: LinkId, before: Zxid, txns: &Txns) {
        let cursor = &mut self.cursor;
        // The start of our epoch, where a snapshot may have brought it, is beyond an older last one.
        let live = cursor.sent >= before && self.follower && self.stage >= Stage::Syncing;
        let turn = live && cursor.may_send();
        let Some(last) = txns.last().filter(|_| turn) else { return };
        cursor.sent = last.zxid;
        match &**txns {
            [txn] => cx.outbox.send_packet(link, || Packet::Proposal(txn.clone())),
            _ => cx.outbox.send_packet(link, || Packet::Proposals(Txns::clone(txns))),
        }
        self.acks.on_sent(cx.now, last.zxid);
        cursor.count(cx, link, txns.iter().map(|txn| txn.len() + PACKET_BYTES).sum());
    }

    /// The driver has done what it was asked to do. What it sent of our epoch is owed an acknowledgement,
    /// unless that has come meanwhile.
    pub fn on_streamed(&mut self, now: Instant, epoch: Epoch) {
        let from_log = matches!(self.cursor.busy, Busy::Log(..));
        self.cursor.on_streamed();
        let owed = self.cursor.sent > self.acks.through().max(Zxid::start_of(epoch));
        if from_log && self.follower && owed {
            self.acks.on_sent(now, self.cursor.sent);
        }
    }

    /// Sends what the learner can take now: transactions, COMMITs, NEWLEADER, answers to SYNC.
    pub fn feed(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) {
        if self.stage < Stage::Syncing {
            return;
        }
        loop {
            let sync = self.syncs.front().copied();
            let through = sync.map_or(ours.committed, |sync| sync.point.min(ours.committed));
            let ours = LeaderProgress { committed: through, ..ours };
            if self.activations.is_empty() || self.feed_activations(cx, link, ours) {
                self.feed_through(cx, link, ours);
            }
            let told = self.cursor.told;
            let due = sync.filter(|sync| !self.cursor.is_streaming() && sync.point <= told);
            let Some(Sync { tag, .. }) = due else { return };
            self.syncs.pop_front();
            send(cx, link, Packet::Sync { tag });
        }
    }

    /// Tells it of reconfigurations, each behind everything that was committed before it. Returns whether it
    /// knows of all of them.
    fn feed_activations(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        ours: LeaderProgress,
    ) -> bool {
        let due = |activation: &&Activation| activation.txn.zxid <= ours.committed;
        while let Some(Activation { txn, leader }) = self.activations.front().filter(due).cloned() {
            let before = Zxid(txn.zxid.0 - 1);
            let due = if before.is_epoch_start() { ours.inherited } else { before };
            self.feed_through(cx, link, LeaderProgress { committed: due, ..ours });
            let withholds = self.withholds_commits();
            let cursor = &mut self.cursor;
            let has = !self.follower || cursor.sent >= txn.zxid;
            if withholds || cursor.told < due || !has || cursor.is_streaming() {
                return false;
            }
            cursor.told = txn.zxid;
            let packet = if self.follower {
                Packet::CommitAndActivate { zxid: txn.zxid, leader }
            } else {
                cursor.sent = txn.zxid;
                Packet::InformAndActivate { leader, txn }
            };
            send(cx, link, packet);
            self.activations.pop_front();
        }
        true
    }

    #[inline]
    fn feed_through(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) {
        if self.cursor.new_leader && self.cursor.sent >= cx.history.last() && self.cursor.may_send()
        {
            // Live: it has everything, and only learns what of it is committed.
            self.feed_commits(cx, link, ours);
        } else {
            self.catch_up(cx, link, ours);
        }
    }

    fn catch_up(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) {
        while self.cursor.may_send() {
            let moved = self.feed_transactions(cx, link, ours)
                || self.feed_commits(cx, link, ours)
                || self.feed_new_leader(cx, link, ours);
            if !moved {
                break;
            }
        }
    }

    /// Whether transactions go out as PROPOSAL: to followers always, to observers until NEWLEADER.
    const fn proposes(&self) -> bool {
        self.follower || !self.cursor.new_leader
    }

    /// Whether it is told of no COMMIT now, whatever is committed: behind a TRUNC until NEWLEADER, see
    /// [`Cursor::reserved`], and a follower from NEWLEADER until UPTODATE.
    ///
    /// ZooKeeper's followers log at NEWLEADER what they were sent, and look for the transaction of a COMMIT that comes
    /// then among what was sent later: where there is nothing they fail, until 3.9.2 (ZOOKEEPER-4394). Behind UPTODATE
    /// they know both. Its observers want each COMMIT before UPTODATE, and get none of what they do not have.
    const fn withholds_commits(&self) -> bool {
        if self.cursor.new_leader {
            self.follower && !matches!(self.stage, Stage::Serving)
        } else {
            self.cursor.reserved
        }
    }

    /// Returns whether anything was sent.
    fn feed_transactions(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        ours: LeaderProgress,
    ) -> bool {
        let (proposes, cursor) = (self.proposes(), &mut self.cursor);
        let in_pairs = if cursor.new_leader { !proposes } else { !cursor.reserved };
        if in_pairs && cursor.told < cursor.sent.min(ours.committed) {
            // Committed since it had them: their COMMITs come before those of what follows.
            return self.feed_commits(cx, link, ours);
        }
        let end = if self.follower { cx.history.last() } else { ours.committed };
        if cursor.sent >= end {
            return false;
        }
        if cursor.sent < cx.history.before() {
            return self.feed_from_disk(cx, link, ours);
        }
        let mut bytes = 0;
        let limit = part(cx);
        for txn in cx.history.after(cursor.sent) {
            if txn.zxid > end || bytes >= limit {
                break;
            }
            bytes += txn.len() + PACKET_BYTES;
            cursor.sent = txn.zxid;
            let packet =
                if proposes { Packet::Proposal(txn.clone()) } else { Packet::Inform(txn.clone()) };
            cx.outbox.send(link, Message::Packet(packet));
            let committed = txn.zxid <= ours.committed;
            if !proposes {
                cursor.told = txn.zxid;
            } else if committed && !cursor.new_leader && !cursor.reserved {
                // The order that ZooKeeper's learners have always seen.
                cursor.told = txn.zxid;
                cx.outbox.send(link, Message::Packet(Packet::Commit(txn.zxid)));
            }
        }
        if self.follower && cursor.sent.epoch() == ours.epoch {
            self.acks.on_sent(cx.now, cursor.sent);
        }
        cursor.count(cx, link, bytes);
        true
    }

    /// Lets the driver copy the part of the log that is no longer in memory.
    fn feed_from_disk(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) -> bool {
        let (live, withholds) = (self.cursor.new_leader, self.withholds_commits());
        if live && !withholds && self.cursor.told < self.cursor.sent.min(ours.committed) {
            // Their COMMITs come before those of what follows.
            return self.feed_commits(cx, link, ours);
        }
        let (after, durable) = (self.cursor.sent, cx.history.durable());
        let committed = ours.committed.min(durable);
        let (through, form) = if committed <= after {
            // Not committed, and out of memory: a long way from a quorum.
            (if self.follower { durable } else { after }, Form::Proposals)
        } else if !self.proposes() {
            (committed, Form::Informs)
        } else if withholds {
            (committed, Form::Proposals)
        } else {
            (committed, Form::Committed)
        };
        if through <= after {
            return false;
        }
        self.cursor.busy = Busy::Log(through, form);
        cx.outbox.push(Output::StreamLog { link, after, through, form });
        true
    }

    #[inline]
    fn feed_commits(&mut self, cx: &mut Context<'_>, link: LinkId, ours: LeaderProgress) -> bool {
        let withholds = self.withholds_commits();
        let cursor = &mut self.cursor;
        let end = ours.committed.min(cursor.sent);
        if withholds || end <= cursor.told {
            return false;
        }
        let start = Zxid::start_of(ours.epoch);
        if cursor.told >= ours.inherited {
            // The rule: all of our own epoch, without gaps.
            let first = Zxid(cursor.told.max(start).0 + 1);
            // One that stands at the start of an earlier epoch, beyond all that we brought, has none of it.
            if first <= end {
                send_commits(cx, link, Run { first, last: end });
            }
        } else if cursor.told >= cx.history.before() {
            let zxids: VecDeque<_> = cx
                .history
                .after(cursor.told)
                .map(|txn| txn.zxid)
                .take_while(|z| *z <= end)
                .collect();
            for zxid in zxids {
                send(cx, link, Packet::Commit(zxid));
            }
        } else {
            cursor.busy = Busy::Log(end, Form::Commits);
            let (after, form) = (cursor.told, Form::Commits);
            cx.outbox.push(Output::StreamLog { link, after, through: end, form });
            return true;
        }
        cursor.told = end;
        true
    }

    /// NEWLEADER, when the learner has all that there is.
    fn feed_new_leader(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        ours: LeaderProgress,
    ) -> bool {
        let snapshot = self.cursor.snapshot && ours.established;
        if self.cursor.new_leader || snapshot && self.misses_a_change(cx) {
            // The change, or our leadership, ends.
            return false;
        }
        self.cursor.new_leader = true;
        self.acks.begin(ours.epoch, ours.committed);
        let config = cx.config.last_seen().text().clone();
        let zxid = Zxid::start_of(ours.epoch);
        send(cx, link, Packet::NewLeader { zxid, config });
        true
    }
}

/// Sends a packet that promises nothing.
pub fn send(cx: &mut Context<'_>, link: LinkId, packet: Packet) {
    cx.outbox.send(link, Message::Packet(packet));
}

fn send_commits(cx: &mut Context<'_>, link: LinkId, run: Run) {
    if run.first == run.last {
        cx.outbox.send_packet(link, || Packet::Commit(run.last));
    } else {
        cx.outbox.send_packet(link, || Packet::Commits(run));
    }
}

/// About what a PROPOSAL takes beside its transaction.
const PACKET_BYTES: usize = 20;
