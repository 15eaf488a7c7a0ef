//! How long it takes until transactions are on disk, acknowledged and known to be committed; and what learners of this leader
//! ask for and answer.
//!
//! All of it is read off what passes between the loop and the core: nothing in the protocol knows of it. As in ZooKeeper
//! (`Request.logLatency`), a time begins with the time in a transaction's header, which is the leader's wall clock: on a learner
//! two clocks are compared, and what would be negative is left out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::message::{Packet, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_leadership::boot_time;

use crate::measures::{Counted, Keyed, Measures, Of, OfLink, Took, micros, millis};
use crate::tally::Tally;

/// Transactions on their way, as one server sees them.
#[derive(Debug)]
pub(crate) struct Proposals {
    measures: Arc<Measures>,
    tally: Tally,
    /// In which epoch this server serves, and whether it leads.
    serving: Option<(Epoch, bool)>,
    /// The last transactions of that epoch without a hole, and when each was made, in milliseconds since 1970.
    recent: VecDeque<Made>,
    /// When those were made that are not durable here, and how many at once.
    unsynced: VecDeque<(Ticket, i64, u32)>,
    learners: BTreeMap<LinkId, Learner>,
    id: ServerId,
    /// A leader acknowledges, too.
    own: Option<Arc<Keyed>>,
}

/// Transactions one behind the other that were made in the same millisecond: those of a turn of their leader's mostly are.
#[derive(Clone, Copy, Debug)]
struct Made {
    first: Zxid,
    last: Zxid,
    /// In milliseconds since 1970.
    at_ms: i64,
}

/// A learner of this leader.
#[derive(Debug)]
struct Learner {
    id: ServerId,
    acks: Arc<Keyed>,
    queue: Arc<Keyed>,
    /// How many of its syncs wait.
    syncs: usize,
    pinged: Option<Instant>,
    round_trip: Arc<AtomicU64>,
}

/// When something is seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    /// The wall clock, in milliseconds since 1970.
    pub(crate) wall_ms: i64,
}

impl Seen {
    /// By both clocks.
    pub(crate) fn now() -> Self {
        Self::at(boot_time::now())
    }

    /// The same at a time that was looked at just now.
    pub(crate) fn at(at: Instant) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at, wall_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX) }
    }

    /// How long ago something was made; none if that is in the future.
    pub(crate) fn since(self, made_ms: i64) -> Option<u64> {
        u64::try_from(self.wall_ms.saturating_sub(made_ms)).ok()
    }

    /// The same a while after this moment.
    pub(crate) fn later_since(self, by: Duration, made_ms: i64) -> Option<u64> {
        let later = self.wall_ms.saturating_add_unsigned(millis(by));
        u64::try_from(later.saturating_sub(made_ms)).ok()
    }
}

impl Proposals {
    /// Those of the server of this id.
    pub(crate) fn new(measures: Arc<Measures>, id: ServerId) -> Self {
        Self {
            measures,
            tally: Tally::new(),
            serving: None,
            recent: VecDeque::new(),
            unsynced: VecDeque::new(),
            learners: BTreeMap::new(),
            id,
            own: None,
        }
    }

    /// It serves, or does so no longer.
    pub(crate) fn serves(&mut self, serving: Option<(Epoch, bool)>) {
        self.serving = serving;
        self.recent.clear();
        self.unsynced.clear();
        self.measures.forget_proposals();
        self.own = self.leads().then(|| self.measures.keyed(Of::Ack, self.id));
    }

    const fn leads(&self) -> bool {
        matches!(self.serving, Some((_, true)))
    }

    /// Transactions go to the disk.
    pub(crate) fn written(&mut self, ticket: Ticket, txns: &[Txn], seen: Seen) {
        let Some((epoch, leads)) = self.serving else { return };
        for txn in txns.iter().filter(|txn| txn.zxid.epoch() == epoch) {
            let made_ms = txn.header.time;
            match self.unsynced.back_mut() {
                Some((last, at_ms, count)) if (*last, *at_ms) == (ticket, made_ms) => *count += 1,
                Some(_) | None => self.unsynced.push_back((ticket, made_ms, 1)),
            }
            if leads {
                self.remember(txn);
                self.tally.count(Counted::Proposals, 1);
                // It was made when it had been prepared.
                self.observe(Took::Propose, (made_ms, 1), seen);
                self.measures.proposed(txn.len());
            }
        }
    }

    fn remember(&mut self, txn: &Txn) {
        let (zxid, at_ms) = (txn.zxid, txn.header.time);
        match self.recent.back_mut() {
            Some(made) if made.last.0 + 1 != zxid.0 => self.recent.clear(),
            Some(made) if made.at_ms == at_ms => {
                made.last = zxid;
                return;
            }
            Some(_) | None => {}
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Made { first: zxid, last: zxid, at_ms });
    }

    /// This write and all before it are durable.
    pub(crate) fn durable(&mut self, through: Ticket, seen: Seen) {
        let mut alike = Alike::default();
        while let Some((_, made_ms, count)) =
            self.unsynced.front().copied().filter(|(ticket, ..)| *ticket <= through)
        {
            self.unsynced.pop_front();
            self.observe(Took::OwnAck, (made_ms, count), seen);
            if let (Some(own), Some(took)) = (&self.own, seen.since(made_ms)) {
                alike.saw(own, seen.at, (took, count));
            }
        }
        self.own.iter().for_each(|own| alike.put(own, seen.at));
    }

    /// A transaction is known to be committed, and goes to the application.
    pub(crate) fn delivered(&mut self, txn: &Txn, seen: Seen) {
        self.tally.count(Counted::Delivered, 1);
        if self.serving == Some((txn.zxid.epoch(), true)) {
            self.tally.count(Counted::Commits, 1);
            self.observe(Took::QuorumAck, (txn.header.time, 1), seen);
        }
    }

    /// So many were made then.
    fn observe(&mut self, what: Took, (made_ms, count): (i64, u32), seen: Seen) {
        if let Some(took) = seen.since(made_ms) {
            self.tally.saw_alike(&self.measures, seen.at, what, (took, count));
        }
    }

    /// Puts in what was seen in a turn.
    pub(crate) fn put(&mut self, seen: Seen) {
        self.tally.put(&self.measures, seen.at);
    }

    /// A packet has come.
    pub(crate) fn received(&mut self, link: LinkId, packet: &Packet, seen: Seen) {
        match packet {
            Packet::Ack(zxid) => self.acknowledged(link, *zxid, *zxid, seen),
            Packet::Acks(run) => self.acknowledged(link, run.first, run.last, seen),
            Packet::Ping { .. } | Packet::Lease { .. } => self.answered(link, seen),
            Packet::Request(Request { op: Request::SYNC, .. }) => self.syncs(link, true),
            Packet::Proposal(txn) => self.proposed(std::slice::from_ref(txn), seen),
            Packet::Proposals(txns) => self.proposed(txns, seen),
            Packet::Commit(zxid) | Packet::CommitAndActivate { zxid, .. } => {
                self.committed(*zxid, *zxid, seen);
            }
            Packet::Commits(run) => self.committed(run.first, run.last, seen),
            Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => self.informed(txn, seen),
            Packet::FollowerInfo(_)
            | Packet::ObserverInfo(_)
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Diff(_)
            | Packet::Trunc(_)
            | Packet::Snap { .. }
            | Packet::NewLeader { .. }
            | Packet::UpToDate
            | Packet::Request(_)
            | Packet::Revalidate(_)
            | Packet::Sync { .. }
            | Packet::Transfer { .. }
            | Packet::MayLead(_) => {}
        }
    }

    /// A packet goes out.
    pub(crate) fn sent(&mut self, link: LinkId, packet: &Packet, seen: Seen) {
        if let Packet::Sync { .. } = packet {
            self.syncs(link, false);
        } else if let Packet::Ping { .. } | Packet::Lease { .. } = packet {
            if let Some(learner) = self.learners.get_mut(&link) {
                learner.pinged.get_or_insert(seen.at);
            }
        }
    }

    /// A link has ended.
    pub(crate) fn ended(&mut self, link: LinkId) {
        let Some(Learner { id, syncs, .. }) = self.learners.remove(&link) else { return };
        if !self.learners.values().any(|learner| learner.id == id) {
            self.measures.forget_round_trip(id);
        }
        if syncs > 0 {
            self.tell_syncs();
        }
    }

    /// A learner has said who it is: a member, since for each id that is measured there is memory. Returns what is
    /// measured on its link.
    pub(crate) fn joined(&mut self, link: LinkId, id: ServerId) -> OfLink {
        let acks = self.measures.keyed(Of::Ack, id);
        let queue = self.measures.keyed(Of::QueueSize, id);
        let round_trip = self.measures.round_trip(id);
        let learner = Learner { id, acks, queue, syncs: 0, pinged: None, round_trip };
        self.learners.insert(link, learner);
        self.measures.of_link(id)
    }

    /// So many packets wait for a learner.
    pub(crate) fn queued(&self, link: LinkId, packets: usize, at: Instant) {
        if let Some(learner) = self.learners.get(&link) {
            learner.queue.saw_at(at, packets as u64);
        }
    }

    fn acknowledged(&mut self, link: LinkId, first: Zxid, last: Zxid, seen: Seen) {
        let Some(learner) = self.learners.get(&link).filter(|_| self.leads()) else { return };
        let mut alike = Alike::default();
        for (made_ms, count) in made(&self.recent, first, last) {
            if let Some(took) = seen.since(made_ms) {
                alike.saw(&learner.acks, seen.at, (took, count));
            }
        }
        alike.put(&learner.acks, seen.at);
    }

    fn answered(&mut self, link: LinkId, seen: Seen) {
        let Some(learner) = self.learners.get_mut(&link) else { return };
        if let Some(pinged) = learner.pinged.take() {
            let took = micros(seen.at.saturating_duration_since(pinged)).max(1);
            learner.round_trip.store(took, Ordering::Relaxed);
        }
    }

    fn syncs(&mut self, link: LinkId, comes: bool) {
        let Some(learner) = self.learners.get_mut(&link) else { return };
        let more = if comes { learner.syncs + 1 } else { learner.syncs.saturating_sub(1) };
        learner.syncs = more;
        self.tell_syncs();
    }

    fn tell_syncs(&self) {
        self.measures.set_pending_syncs(self.learners.values().map(|learner| learner.syncs).sum());
    }

    fn proposed(&mut self, txns: &[Txn], seen: Seen) {
        if self.serving.is_some() {
            self.measures.count(Counted::ProposalsReceived, txns.len());
            for txn in txns {
                // Before it is written: its COMMIT may come in the same turn.
                self.remember(txn);
                self.observe(Took::Proposal, (txn.header.time, 1), seen);
            }
        }
    }

    fn informed(&mut self, txn: &Txn, seen: Seen) {
        if self.serving.is_some() {
            self.tally.count(Counted::CommitsReceived, 1);
            self.observe(Took::Commit, (txn.header.time, 1), seen);
        }
    }

    fn committed(&mut self, first: Zxid, last: Zxid, seen: Seen) {
        if self.serving.is_none() {
            return;
        }
        // What a peer says is no number that may run over.
        let said = last.0.saturating_sub(first.0).saturating_add(1).clamp(0, COUNTED_MAX);
        let said = u32::try_from(said).unwrap_or(0);
        self.tally.count(Counted::CommitsReceived, said);
        let Self { recent, tally, measures, .. } = self;
        for (made_ms, count) in made(recent, first, last) {
            if let Some(took) = seen.since(made_ms) {
                tally.saw_alike(measures, seen.at, Took::Commit, (took, count));
            }
        }
    }
}

/// When those of these transactions were made that are remembered, in milliseconds since 1970, and how many at once.
fn made(
    recent: &VecDeque<Made>,
    first: Zxid,
    last: Zxid,
) -> impl Iterator<Item = (i64, u32)> + use<'_> {
    let from = recent.partition_point(|made| made.last < first);
    let of_them = recent.range(from..).take_while(move |made| made.first <= last);
    of_them.map(move |made| {
        let (from, to) = (made.first.max(first), made.last.min(last));
        (made.at_ms, u32::try_from(to.0.abs_diff(from.0)).map_or(u32::MAX, |more| more + 1))
    })
}

/// What one server took for transactions one after the other, as far as it is alike.
#[derive(Debug, Default)]
struct Alike {
    much: u64,
    count: u32,
}

impl Alike {
    fn saw(&mut self, of: &Keyed, now: Instant, (much, more): (u64, u32)) {
        if self.much != much {
            self.put(of, now);
            self.much = much;
        }
        self.count += more;
    }

    fn put(&mut self, of: &Keyed, now: Instant) {
        if self.count > 0 {
            of.saw_alike(now, self.much, std::mem::take(&mut self.count));
        }
    }
}

/// Of how many transactions it is remembered when they were made: more than are ever under way, some of which slow followers
/// acknowledge late.
const RECENT_MAX: usize = 4096;
/// How many commits are counted of one that a leader tells of.
const COUNTED_MAX: i64 = 4096;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_core::message::Run;
    use quorate_core::txn::{RequestId, TxnHeader};

    use super::*;

    const E1: i64 = 1 << 32;
    const LINK: LinkId = LinkId(7);

    fn txn(zxid: i64, made_ms: i64) -> Txn {
        let header = TxnHeader { client: 1, cxid: 1, time: made_ms, kind: 5 };
        Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(&[7; 8]) }
    }

    fn seen(wall_ms: i64) -> Seen {
        Seen { at: Instant::now(), wall_ms }
    }

    fn serving(leads: bool) -> (Proposals, Arc<Measures>) {
        let measures = Arc::new(Measures::default());
        let mut proposals = Proposals::new(Arc::clone(&measures), ServerId(1));
        proposals.serves(Some((Epoch(1), leads)));
        (proposals, measures)
    }

    #[test]
    fn a_leader_measures_who_acknowledges_when_and_what_is_of_its_epoch_alone() {
        let (mut leader, measures) = serving(true);
        leader.joined(LINK, ServerId(2));
        // Of an earlier leader: when that was made says nothing.
        leader.written(Ticket(1), &[txn(5, 0)], seen(1_011));
        leader.written(Ticket(2), &[txn(E1 + 1, 1_000), txn(E1 + 2, 1_010)], seen(1_011));
        leader.durable(Ticket(2), seen(1_020));
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 1)), seen(1_030));
        // It says more than there is, and a stranger says something.
        let run = Run { first: Zxid(E1 + 2), last: Zxid(i64::MAX) };
        leader.received(LINK, &Packet::Acks(run), seen(1_040));
        leader.received(LinkId(8), &Packet::Ack(Zxid(E1 + 2)), seen(1_040));
        leader.delivered(&txn(5, 0), seen(1_040));
        leader.delivered(&txn(E1 + 1, 1_000), seen(1_031));
        leader.put(seen(1_040));
        let acks: Vec<_> =
            measures.spreads(Of::Ack).into_iter().map(|(id, of)| (id.0, of)).collect();
        let [(1, own), (2, theirs)] = acks[..] else { panic!("{acks:?}") };
        assert_eq!((own.count, own.sum), (2, 20 + 10));
        assert_eq!((theirs.count, theirs.sum), (2, 30 + 30));
        assert_eq!(measures.spread(Took::QuorumAck).sum, 31);
        assert_eq!(measures.spread(Took::Propose).sum, 11 + 1);
        let counted = [Counted::Proposals, Counted::Commits, Counted::Delivered];
        assert_eq!(counted.map(|what| measures.counted(what)), [2, 1, 2]);
        assert_eq!(measures.proposal_sizes(), [40, 40, 40]);
        // Another leadership begins at nothing.
        leader.serves(None);
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 1)), seen(2_000));
        assert_eq!(measures.proposal_sizes(), [-1; 3]);
        assert_eq!(measures.spreads(Of::Ack)[1].1.count, 2);
    }

    #[test]
    fn what_is_durable_or_acknowledged_is_known_by_its_place_behind_what_has_no_hole() {
        let (mut leader, measures) = serving(true);
        leader.joined(LINK, ServerId(2));
        let own = |measures: &Measures| measures.spread(Took::OwnAck).count;
        let theirs = |measures: &Measures| measures.spreads(Of::Ack)[1].1.count;
        leader.written(Ticket(1), &[txn(E1 + 1, 1_000)], seen(1_000));
        leader.written(Ticket(2), &[txn(E1 + 9, 1_000)], seen(1_000));
        leader.durable(Ticket(1), seen(1_001));
        leader.put(seen(1_001));
        assert_eq!(own(&measures), 1, "the other one is not");
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 2)), seen(1_001));
        assert_eq!(theirs(&measures), 0, "there was none of this number");
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 9)), seen(1_001));
        assert_eq!(theirs(&measures), 1);
        // As many as are remembered, and ten more, each in a millisecond of its own.
        let many = (10..).take(RECENT_MAX + 9).map(|counter| txn(E1 + counter, 1_000 + counter));
        leader.written(Ticket(3), &many.collect::<Vec<_>>(), seen(9_000));
        assert_eq!(leader.recent.len(), RECENT_MAX);
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 18)), seen(9_001));
        assert_eq!(theirs(&measures), 1, "that was long ago");
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 19)), seen(9_001));
        assert_eq!(theirs(&measures), 2);
        // Those of one millisecond are remembered together, and acknowledged as they are.
        let next = E1 + 10 + RECENT_MAX as i64 + 9;
        let together = (next..next + 100).map(|zxid| txn(zxid, 9_010));
        leader.written(Ticket(4), &together.collect::<Vec<_>>(), seen(9_010));
        let last = leader.recent.back().map(|made| (made.first, made.last));
        assert_eq!(last, Some((Zxid(next), Zxid(next + 99))));
        for (first, count) in [(next, 7), (next + 10, 1), (next + 95, 5)] {
            let (before, last) = (theirs(&measures), Zxid(first + count - 1));
            let run = Run { first: Zxid(first), last };
            leader.received(LINK, &Packet::Acks(run), seen(9_011));
            assert_eq!(theirs(&measures), before + count.unsigned_abs());
        }
        leader.durable(Ticket(4), seen(9_012));
        leader.put(seen(9_012));
        assert_eq!(own(&measures), 1 + 1 + RECENT_MAX as u64 + 9 + 100);
        // It leads anew: what comes now was of another leadership.
        let before = (own(&measures), theirs(&measures));
        leader.serves(Some((Epoch(1), true)));
        leader.received(LINK, &Packet::Ack(Zxid(E1 + 19)), seen(1_001));
        leader.durable(Ticket(3), seen(1_001));
        leader.put(seen(1_001));
        assert_eq!((own(&measures), theirs(&measures)), before);
    }

    #[test]
    fn a_learner_measures_what_has_come_and_leaves_out_what_is_in_the_future() {
        let (mut learner, measures) = serving(false);
        learner.received(LINK, &Packet::Proposal(txn(E1 + 1, 1_000)), seen(1_007));
        // In the same turn, before anything was written.
        learner.received(LINK, &Packet::Commit(Zxid(E1 + 1)), seen(1_009));
        learner.received(LINK, &Packet::Proposal(txn(E1 + 2, 5_000)), seen(1_010));
        learner.received(LINK, &Packet::Inform(txn(E1 + 3, 1_000)), seen(1_011));
        // It proposes nothing, and nothing is acknowledged to it.
        learner.written(Ticket(1), &[txn(E1 + 1, 1_000)], seen(1_012));
        learner.joined(LINK, ServerId(2));
        learner.received(LINK, &Packet::Ack(Zxid(E1 + 1)), seen(1_013));
        assert_eq!(measures.spreads(Of::Ack)[0].1.count, 0);
        learner.put(seen(1_013));
        let [proposal, commit] = [Took::Proposal, Took::Commit].map(|what| measures.spread(what));
        assert_eq!((proposal.count, proposal.sum), (1, 7));
        assert_eq!((commit.count, commit.sum), (2, 9 + 11));
        let counted = [Counted::ProposalsReceived, Counted::CommitsReceived, Counted::Proposals];
        assert_eq!(counted.map(|what| measures.counted(what)), [2, 2, 0]);
    }

    #[test]
    fn syncs_wait_until_they_are_answered_or_their_learner_is_gone() {
        let (mut leader, measures) = serving(true);
        leader.joined(LINK, ServerId(2));
        leader.joined(LinkId(8), ServerId(3));
        let id = RequestId { client: 1, cxid: 1 };
        let sync = Request { id, op: Request::SYNC, body: Bytes::new(), identities: None };
        for link in [LINK, LINK, LinkId(8), LinkId(9)] {
            leader.received(link, &Packet::Request(sync.clone()), seen(0));
        }
        assert_eq!(measures.pending_syncs(), 3);
        leader.sent(LINK, &Packet::Sync { tag: 0 }, seen(0));
        assert_eq!(measures.pending_syncs(), 2);
        let ping = Packet::Ping { zxid: Zxid::ZERO, sessions: None };
        let begun = Instant::now();
        leader.sent(LINK, &ping, Seen { at: begun, wall_ms: 0 });
        let later = begun + Duration::from_micros(1_500);
        leader.received(LINK, &ping, Seen { at: later, wall_ms: 0 });
        assert_eq!(measures.round_trips(), [(ServerId(2), Duration::from_micros(1_500))]);
        // A ping that is answered late is measured from when it was sent, and what is no answer not at all.
        for (micros, answer) in [(10_000, false), (11_000, false), (13_000, true), (90_000, true)] {
            let now = Seen { at: begun + Duration::from_micros(micros), wall_ms: 0 };
            if answer {
                leader.received(LINK, &ping, now);
            } else {
                leader.sent(LINK, &ping, now);
            }
        }
        assert_eq!(measures.round_trips(), [(ServerId(2), Duration::from_micros(3_000))]);
        leader.ended(LINK);
        assert_eq!((measures.pending_syncs(), measures.round_trips().len()), (1, 0));
    }
}
