//! Broadcast, the learner's side: a member of an established ensemble.
//!
//! ```text
//!   PROPOSAL ─► disk ─► ACK         COMMIT ─► deliver         INFORM ─► disk, deliver
//!   a request here ─► REQUEST       a read here ─► REQUEST(sync) ─► SYNC ─► Answer
//! ```
//!
//! A follower logs what is proposed and acknowledges it when its disk has it; it delivers what is
//! committed. An observer is told of a transaction when that is committed, and acknowledges nothing.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;

use crate::context::{Context, Parked};
use crate::id::{LinkId, ReadId};
use crate::learner::breach::Breach;
use crate::learner::reconfiguration;
use crate::message::{Message, Packet, Request, Run};
use crate::output::Output;
use crate::reasons::Refusal;
use crate::txn::{RequestId, Txn, Txns};
use crate::zxid::{Epoch, Zxid};

/// Membership in the ensemble of one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Its epoch.
    pub epoch: Epoch,
    /// How long the leader may be silent: reckoned once, needed at every packet.
    pub patience: Duration,
    /// Whether we only observe.
    observer: bool,
    /// Everything through this needs no acknowledgement any more.
    acked: Zxid,
    /// Reads that wait for SYNC, in the order in which they were asked, and by which tag each is known.
    reads: VecDeque<(i32, ReadId)>,
    /// The tag of the last one.
    last_tag: i32,
    /// Pings that the service has not answered yet.
    pinged: VecDeque<Pinged>,
    /// Sessions that were heard from, told when no ping waited.
    untold: Bytes,
}

/// A ping that waits for the sessions that were heard from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pinged {
    zxid: Zxid,
    /// The promise that was asked for and is made.
    lease: Option<Duration>,
}

/// How many pings wait for the service, at most: more than come together from any leader of ours.
const PINGED_MAX: usize = 1024;

/// UPTODATE: says once more that we have the history, as ZooKeeper's learners do, and logs what was left
/// without COMMIT. What is known to be committed is delivered.
///
/// Each transaction beyond what was committed at NEWLEADER, which is `covered` by our acknowledgement of
/// that, is acknowledged, also if its COMMIT has come meanwhile: the leader counts without a gap.
pub fn on_up_to_date(
    cx: &mut Context<'_>,
    link: LinkId,
    observer: bool,
    epoch: Epoch,
    covered: Zxid,
    pending: VecDeque<Txn>,
) -> Broadcast {
    let start = Zxid::start_of(epoch);
    cx.outbox.send(link, Message::Packet(Packet::Ack(start)));
    if !observer && !pending.is_empty() {
        reconfiguration::append(cx, pending.into_iter().collect());
    }
    let acked = covered.max(start);
    let patience = cx.config.timing.sync_time();
    let mut broadcast = Broadcast {
        epoch,
        patience,
        observer,
        acked,
        reads: VecDeque::new(),
        last_tag: 0,
        pinged: VecDeque::new(),
        untold: Bytes::new(),
    };
    broadcast.on_persisted(cx, link);
    broadcast
}

impl Broadcast {
    /// PROPOSAL of one transaction or several. Those that we have, a leader's repetition, are compared
    /// with what we have, as far as that is in memory, and passed over.
    pub fn on_proposals(&self, cx: &mut Context<'_>, txns: Txns) -> Result<(), Breach> {
        if self.observer {
            return Ok(());
        }
        let held = cx.history.last();
        let new = txns.partition_point(|txn| txn.zxid <= held);
        if let Some(other) = txns[..new].iter().find(|txn| cx.history.contradicts(txn)) {
            return Err(Breach::Differs(other.zxid));
        }
        if new == txns.len() {
            return Ok(());
        }
        let mut last = held;
        for txn in &txns[new..] {
            if !self.may_follow(txn.zxid, last) {
                return Err(Breach::Hole(last));
            }
            last = txn.zxid;
        }
        let txns = if new == 0 { txns } else { txns[new..].iter().cloned().collect() };
        if reconfiguration::append(cx, txns) { Ok(()) } else { Err(Breach::OutOfTurn) }
    }

    /// COMMIT: of the next, and of what was proposed.
    pub fn on_commit(&self, cx: &mut Context<'_>, run: Run) -> Result<(), Breach> {
        let committed = cx.history.committed();
        // An observer is told of what it does not have with INFORM; of what it has from before, so.
        let known = run.last <= committed;
        if known || (self.observer && run.last > cx.history.last()) {
            return Ok(());
        }
        let next = run.first.max(Zxid(committed.0 + 1));
        // It may be of the history that the leader brought into its epoch, if that was cut for us.
        if run.last > cx.history.last() || !next.follows(committed) {
            return Err(Breach::Hole(committed));
        }
        cx.commit(run.last);
        Ok(())
    }

    /// INFORM: an observer logs it and delivers it.
    pub fn on_inform(&self, cx: &mut Context<'_>, txn: Txn) -> Result<(), Breach> {
        let (zxid, last) = (txn.zxid, cx.history.last());
        if !self.observer {
            return Ok(());
        }
        if zxid <= last {
            let differs = cx.history.contradicts(&txn);
            return if differs { Err(Breach::Differs(zxid)) } else { Ok(()) };
        }
        if !self.may_follow(zxid, last) {
            return Err(Breach::Hole(last));
        }
        if !reconfiguration::append(cx, txn.into()) {
            return Err(Breach::OutOfTurn);
        }
        cx.commit(zxid);
        Ok(())
    }

    /// Whether nothing is missing between the two. Only this epoch's transactions come now.
    fn may_follow(&self, zxid: Zxid, last: Zxid) -> bool {
        zxid.epoch() == self.epoch && zxid.follows(last)
    }

    /// Acknowledges what has become durable, in order.
    pub fn on_persisted(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let durable = cx.history.durable();
        if self.observer || durable <= self.acked {
            return;
        }
        let run = Run { first: Zxid(self.acked.0 + 1), last: durable };
        self.acked = durable;
        if run.first == run.last {
            cx.outbox.send_packet(link, || Packet::Ack(durable));
        } else {
            cx.outbox.send_packet(link, || Packet::Acks(run));
        }
    }

    /// PING: answered with the same zxid and the sessions heard from.
    pub fn on_ping(&mut self, cx: &mut Context<'_>, link: LinkId, zxid: Zxid) {
        self.pinged(cx, link, Pinged { zxid, lease: None });
    }

    /// LEASE: promises to take no part in establishing another leader, if we know of leases, and of such long
    /// ones: after a restart we could not keep a longer promise. To anything else it is a ping.
    pub fn on_lease(&mut self, cx: &mut Context<'_>, link: LinkId, zxid: Zxid, length: Duration) {
        let promises = !self.observer && cx.config.lease.is_some_and(|longest| length <= longest);
        if promises {
            cx.lease.grant(self.epoch, cx.now + length);
        }
        self.pinged(cx, link, Pinged { zxid, lease: promises.then_some(length) });
    }

    /// The service is asked which sessions it has heard from, if there is one.
    fn pinged(&mut self, cx: &mut Context<'_>, link: LinkId, ping: Pinged) {
        if cx.config.keeps_sessions && self.pinged.len() < PINGED_MAX {
            self.pinged.push_back(ping);
            cx.outbox.push(Output::Pinged);
        } else {
            answer(cx, link, ping, Bytes::new());
        }
    }

    /// The sessions that were heard from by the time of the oldest ping: a later one has an answer of its own, which tells
    /// of what was heard meanwhile. What comes without a ping, asked for on an earlier link, goes with the next.
    pub fn on_touch(&mut self, cx: &mut Context<'_>, link: LinkId, sessions: Bytes) {
        let untold = core::mem::take(&mut self.untold);
        let sessions =
            if untold.is_empty() { sessions } else { [untold, sessions].concat().into() };
        match self.pinged.pop_front() {
            Some(ping) => answer(cx, link, ping, sessions),
            None => self.untold = sessions,
        }
    }

    /// A caller here asks for a transaction: the leader is asked.
    pub fn on_propose(&self, cx: &mut Context<'_>, link: LinkId, request: Request) {
        cx.accept(request.id);
        cx.outbox.send(link, Message::Packet(Packet::Request(request)));
    }

    /// A caller here wants to read what is as new as everything acknowledged so far: the leader is asked
    /// to flush the path.
    pub fn on_read(&mut self, cx: &mut Context<'_>, link: LinkId, read: ReadId) {
        // 0 is none.
        self.last_tag = self.last_tag.checked_add(1).unwrap_or(1);
        self.reads.push_back((self.last_tag, read));
        let id = RequestId { client: 0, cxid: self.last_tag };
        let request = Request { id, op: Request::SYNC, body: Bytes::new(), identities: None };
        cx.outbox.send(link, Message::Packet(Packet::Request(request)));
    }

    /// SYNC: what was committed when this read was asked has come; the oldest, if the leader does not say which.
    pub fn on_sync(&mut self, cx: &mut Context<'_>, tag: i32) {
        let at = self.reads.iter().position(|(of, _)| tag == 0 || tag == *of);
        if let Some((_, read)) = at.and_then(|at| self.reads.remove(at)) {
            cx.for_application(Output::Answer(read));
        }
    }

    /// The leadership belongs to another server: those who wait here wait on.
    pub fn hand_on(&mut self, cx: &mut Context<'_>) {
        cx.parked.extend(self.reads.drain(..).map(|(_, read)| Parked::Read(read)));
    }

    /// The leadership is over: tells those who wait here.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        for (_, read) in self.reads.drain(..) {
            cx.outbox.push(Output::ReadRefused { read, reason: Refusal::LeadershipOver });
        }
    }
}

/// Answers a ping: with the same zxid, the promise that it asked for, and the sessions heard from.
fn answer(cx: &mut Context<'_>, link: LinkId, ping: Pinged, sessions: Bytes) {
    let Pinged { zxid, lease } = ping;
    let packet = match lease {
        Some(length) => Packet::Lease { zxid, length, sessions },
        None => Packet::Ping { zxid, sessions: Some(sessions) },
    };
    cx.outbox.send(link, Message::Packet(packet));
}
