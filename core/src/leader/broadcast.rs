//! Broadcast, the leader's side: an established leader, for as long as a quorum answers it.
//!
//! ```text
//!   request ─► Prepare ─► Prepared ─► PROPOSAL to all ─► ACKs, our own disk ─► a quorum? COMMIT, deliver
//!   read ────► PING to all voters ─────────────────────► a quorum answers ───► Answer, SYNC
//! ```
//!
//! A transaction gets the next zxid, goes to the followers and to our own disk at the same time, and is
//! committed when a quorum has it on disk, in the order of the zxids. Our own copy counts when our own
//! disk has it, like anybody's.
//!
//! A read is as new as everything acknowledged before it if we still led when it came. No server can lead
//! after us without a quorum that has left us; so we ask a quorum whether it still follows.

mod lease;
mod reads;
mod syncs;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::{Context, Parked, RoleChange};
use crate::id::{LinkId, Origin, ReleaseId, ServerId};
pub use crate::leader::broadcast::reads::Asker;
use crate::leader::broadcast::reads::Read;
use crate::leader::broadcast::syncs::{Held, Preparing};
use crate::leader::learners::Learners;
use crate::leader::pending::Transfer;
use crate::leader::progress::{LeaderProgress, Stage, Sync};
use crate::leader::tally::Tally;
use crate::message::Request;
use crate::output::Output;
use crate::reasons::Refusal;
use crate::report::Reason;
use crate::time::Instant;
use crate::txn::{Draft, Txn, Txns};
use crate::zxid::{Counter, Epoch, Zxid};

/// The leadership of an established leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Its epoch.
    pub epoch: Epoch,
    /// The last transaction proposed, or the start of the epoch.
    proposed: Zxid,
    /// The number that the last request will have which the application was given; the same if it has made
    /// transactions of all.
    numbered: Zxid,
    /// Where the history ends that we brought into it.
    inherited: Zxid,
    /// What each voter has acknowledged.
    tally: Tally,
    /// Reads that wait for a quorum to answer, in the order in which they came.
    reads: VecDeque<Read>,
    /// Requests that the application prepares, in order, and the SYNCs behind them; the first is no SYNC.
    preparing: VecDeque<Preparing>,
    /// The learner whose client waits for what was proposed last, until that is committed.
    asker: Option<LinkId>,
    /// The leadership is on its way to another server.
    pub transfer: Option<Box<Transfer>>,
    /// The membership changes.
    pub change: Option<Box<Change>>,
    /// What waits until the leadership is another server's, or surely ours.
    held: VecDeque<Held>,
    /// Until when no other leader can be established, once a quorum has promised that.
    pub lease: Option<Instant>,
    /// There is no such promise yet, and will be unless too few voters of those here make any; then those of them
    /// that do have not all promised theirs.
    pub awaits_lease: bool,
}

/// A change of the membership on its way. As long as there is one, a quorum of the present voters and one
/// of the next have to agree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// What brings it.
    pub txn: Txn,
    /// We do not lead afterwards.
    pub leaving: bool,
    /// If so: whether a leadership guard here is still held.
    pub parting: Parting,
}

/// What becomes of those who do what only a leader may, before its leadership goes to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parting {
    /// They have not been told.
    Ahead,
    /// They have been told, and are ending it, in answer to this.
    Asked(ReleaseId),
    /// They have ended it, or had time enough.
    Over,
}

impl Broadcast {
    /// The leadership begins; nothing is proposed in it.
    pub fn new(cx: &Context<'_>, epoch: Epoch, inherited: Zxid) -> Self {
        Self {
            epoch,
            inherited,
            proposed: Zxid::start_of(epoch),
            numbered: Zxid::start_of(epoch),
            tally: Tally::new(cx.quorum),
            reads: VecDeque::new(),
            preparing: VecDeque::new(),
            asker: None,
            transfer: None,
            change: None,
            held: VecDeque::new(),
            lease: None,
            awaits_lease: cx.config.lease.is_some(),
        }
    }

    /// The last transaction proposed, or the start of the epoch.
    pub const fn proposed(&self) -> Zxid {
        self.proposed
    }

    /// How far we have come.
    pub fn progress(&self, cx: &Context<'_>) -> LeaderProgress {
        let committed = cx.history.committed();
        LeaderProgress {
            epoch: self.epoch,
            inherited: self.inherited,
            committed,
            established: true,
        }
    }

    // --- requests ---

    /// How many requests are being prepared, or proposed and not committed.
    fn outstanding(&self, cx: &Context<'_>) -> usize {
        let start = cx.history.committed().max(Zxid::start_of(self.epoch));
        let proposed = usize::try_from(self.proposed.0 - start.0).unwrap_or(usize::MAX);
        self.preparing.len() + proposed + self.held.len()
    }

    /// Whether everything that was asked for is committed.
    pub fn is_done(&self, cx: &Context<'_>) -> bool {
        self.preparing.is_empty()
            && cx.history.committed().max(Zxid::start_of(self.epoch)) >= self.proposed
    }

    /// The transfer has come to nothing: requests go on.
    pub fn call_off(&mut self, cx: &mut Context<'_>, learners: &mut Learners) {
        self.transfer = None;
        for held in core::mem::take(&mut self.held) {
            match held {
                Held::Request(origin, request) => self.prepare(cx, origin, request),
                Held::Sync(link, tag) => self.on_sync(cx, learners, link, tag),
                Held::Revalidate(from, body) if learners.get(from).is_some() => {
                    cx.for_application(Output::Revalidate { from, body });
                }
                Held::Revalidate(..) => {}
            }
        }
    }

    /// A caller here asks for a transaction.
    pub fn on_propose(&mut self, cx: &mut Context<'_>, request: Request) {
        if self.outstanding(cx) < cx.config.history.requests {
            self.prepare(cx, Origin::Here, request);
        } else {
            let (id, reason) = (request.id, Refusal::Busy);
            cx.outbox.push(Output::Refused { id, reason });
        }
    }

    /// A client of the service here asks for a transaction. The service bounds how many are under way.
    pub fn on_submit(&mut self, cx: &mut Context<'_>, request: Request) {
        self.prepare(cx, Origin::Service, request);
    }

    /// REQUEST of a learner's client. Returns whether it was taken: not if too many wait.
    pub fn on_request(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        link: LinkId,
        request: Request,
    ) -> bool {
        // Of its own also those that are confirmed, and wait until it has been told of enough.
        let owed = learners.get(link).map_or(0, |learner| learner.syncs.len());
        let waiting = self.outstanding(cx) + self.reads.len() + owed;
        if waiting >= cx.config.history.requests.saturating_mul(LEARNERS_SHARE) {
            return false;
        }
        if request.op == Request::SYNC {
            self.on_sync(cx, learners, link, request.id.cxid);
        } else {
            self.prepare(cx, Origin::Learner(link), request);
        }
        true
    }

    /// REVALIDATE of a learner: behind the requests that wait, or those of an earlier connection of the session would be
    /// taken for the later one's, and be carried out behind what its client has done elsewhere meanwhile. Returns whether
    /// it was taken: not if too much waits.
    pub fn on_revalidate(&mut self, cx: &mut Context<'_>, from: LinkId, body: Bytes) -> bool {
        if self.held.is_empty() {
            cx.for_application(Output::Revalidate { from, body });
            return true;
        }
        let few = self.outstanding(cx) < cx.config.history.requests.saturating_mul(LEARNERS_SHARE);
        if few {
            self.held.push_back(Held::Revalidate(from, body));
        }
        few
    }

    /// Whether requests wait for the next leader.
    fn is_holding(&self) -> bool {
        self.transfer.as_deref().is_some_and(Transfer::is_holding)
            || self.change.as_ref().is_some_and(|change| change.leaving)
    }

    /// Lets the application prepare a request, unless requests wait for the next leader.
    fn prepare(&mut self, cx: &mut Context<'_>, origin: Origin, request: Request) {
        if self.is_holding() {
            return self.held.push_back(Held::Request(origin, request));
        }
        self.preparing.push_back(Preparing::Request(origin, request.id));
        self.numbered = Zxid(self.numbered.0 + 1);
        let (epoch, zxid) = (self.epoch, self.numbered);
        cx.for_application(Output::Prepare { epoch, zxid, origin, request });
    }

    /// The application has made transactions of the oldest requests: each gets the next zxid, and they go
    /// out. The callers here are told that they are on their way.
    ///
    /// Nothing is awaited: a transaction that was prepared without being asked for is as good.
    pub fn propose(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        drafts: Vec<Draft>,
    ) -> RoleChange {
        let (before, first) = (cx.history.last(), self.proposed);
        // The counter must not run into the epoch (ZOOKEEPER-1277).
        let end = cx.config.history.epoch_count.min(Counter::LAST.0);
        let room = end.saturating_sub(first.counter().0);
        if drafts.len() > room as usize {
            return RoleChange::leave(Reason::CounterEnd(first));
        }
        let mut drafts = drafts;
        let number = |Draft { header, body }, n: i64| Txn { zxid: Zxid(first.0 + n), header, body };
        let txns = match drafts.len() {
            0 | 1 => match drafts.pop() {
                None => return RoleChange::Stay,
                Some(draft) => Txns::One(number(draft, 1)),
            },
            _ => drafts.into_iter().zip(1..).map(|(draft, n)| number(draft, n)).collect(),
        };
        let mut due = Vec::new();
        for txn in &*txns {
            self.proposed = txn.zxid;
            self.numbered = self.numbered.max(txn.zxid);
            self.asker = None;
            match self.preparing.pop_front() {
                Some(Preparing::Request(Origin::Here, id)) => cx.accept(id),
                Some(Preparing::Request(Origin::Learner(link), _)) => self.asker = Some(link),
                Some(Preparing::Request(Origin::Service, _) | Preparing::Sync(..)) | None => {}
            }
            while let Some(&Preparing::Sync(link, tag)) = self.preparing.front() {
                self.preparing.pop_front();
                due.push((link, Sync { point: txn.zxid, tag }));
            }
        }
        learners.propose(cx, before, &txns);
        cx.append(txns);
        for (link, sync) in due {
            self.sync(cx, learners, link, sync);
        }
        RoleChange::Stay
    }

    // --- acknowledgements ---

    /// A voter, perhaps ourselves, has everything through `through` on disk. Commits what a quorum has, in
    /// order, and tells everybody.
    pub fn on_ack(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        voter: ServerId,
        through: Zxid,
    ) {
        self.tally.set(cx.quorum, voter, through);
        if through > cx.history.committed() {
            self.commit(cx, learners);
        }
    }

    /// Commits what a quorum has; a reconfiguration is not committed here, nor what follows it.
    #[inline]
    fn commit(&mut self, cx: &mut Context<'_>, learners: &mut Learners) {
        let Some(mut through) = self.agreed(cx) else { return };
        if let Some(change) = &self.change {
            through = through.min(Zxid(change.txn.zxid.0 - 1));
        }
        if through > cx.history.committed() && through > Zxid::start_of(self.epoch) {
            cx.commit(through);
            let ours = self.progress(cx);
            if let Some(link) = self.asker.take_if(|_| through >= self.proposed) {
                learners.feed_one(cx, link, ours);
            }
            learners.feed(cx, ours);
        }
    }

    /// What a quorum has; of all that have to agree.
    pub fn agreed(&mut self, cx: &Context<'_>) -> Option<Zxid> {
        self.tally.quorum(cx.quorum)
    }

    /// Whether the application prepares nothing.
    pub fn is_prepared(&self) -> bool {
        self.preparing.is_empty()
    }

    /// Others vote from now on: counts anew who has what, and who still follows.
    pub fn update_quorum(&mut self, cx: &mut Context<'_>, learners: &mut Learners) {
        learners.update_quorum(cx.quorum);
        self.tally = Tally::new(cx.quorum);
        self.tally.set(cx.quorum, cx.config.id, cx.history.durable());
        for learner in learners.values().filter(|l| l.votes && l.stage == Stage::Serving) {
            self.tally.set(cx.quorum, learner.id, learner.acks.through());
        }
        self.commit(cx, learners);
        self.renew(cx, learners);
        self.serve_reads(cx, learners);
    }

    /// The link of a voter has ended: its acknowledgements are withdrawn.
    pub fn on_lost(&mut self, cx: &Context<'_>, voter: ServerId) {
        self.tally.withdraw(cx.quorum, voter);
    }

    // --- reads ---

    /// The leadership belongs to another server: those who wait here wait on. Requests of learners are dropped
    /// with their links.
    pub fn hand_on(&mut self, cx: &mut Context<'_>) {
        self.transfer = None;
        for held in self.held.drain(..) {
            if let Held::Request(Origin::Here, request) = held {
                cx.parked.push_back(Parked::Propose(request));
            }
        }
        for read in self.reads.drain(..) {
            if let Asker::Here(read) = read.asker {
                cx.parked.push_back(Parked::Read(read));
            }
        }
    }

    /// The leadership is over: tells those who wait here. What was proposed may still come to pass.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        let reason = Refusal::LeadershipOver;
        let here = |preparing| match preparing {
            Preparing::Request(Origin::Here, id) => Some(id),
            Preparing::Request(..) | Preparing::Sync(..) => None,
        };
        let held = self.held.drain(..).filter_map(|held| match held {
            Held::Request(Origin::Here, request) => Some(request.id),
            Held::Request(..) | Held::Sync(..) | Held::Revalidate(..) => None,
        });
        for id in self.preparing.drain(..).filter_map(here).chain(held) {
            cx.outbox.push(Output::Refused { id, reason });
        }
        for read in self.reads.drain(..) {
            if let Asker::Here(read) = read.asker {
                cx.outbox.push(Output::ReadRefused { read, reason });
            }
        }
    }
}

/// Whether the leader and these synchronised voters are enough to go on; if not, who is left.
///
/// With two voters and an arbiter, the arbiter is asked when no follower is left.
pub fn quorum_left(
    cx: &mut Context<'_>,
    voters: impl Iterator<Item = ServerId>,
) -> Result<(), Vec<ServerId>> {
    let mut left = cx.quorum.support();
    left.add(cx.quorum, cx.config.id);
    let mut alone = true;
    for id in voters {
        left.add(cx.quorum, id);
        alone = false;
    }
    cx.quorum.need_oracle(alone);
    if left.is_enough(cx.quorum) { Ok(()) } else { Err(left.members(cx.quorum).collect()) }
}

/// Requests of all learners may be this many times what those of one server may be.
const LEARNERS_SHARE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::context::Concessions;
    use crate::delivery::Delivery;
    use crate::durable::{Durable, Epochs};
    use crate::history::History;
    use crate::lease::Lease;
    use crate::links::Links;
    use crate::membership::Membership;
    use crate::outbox::Outbox;
    use crate::output::Write;
    use crate::requests::Requests;
    use crate::rng::Rng;
    use crate::time::Instant;
    use crate::timers::Timers;
    use crate::txn::TxnHeader;

    /// What becomes of so many transactions, prepared together, when this was proposed last: what is
    /// appended, and the role_change. The test does not propose four billion to get there.
    fn proposed_after(last: Zxid, many: usize) -> (Vec<Zxid>, RoleChange) {
        let text = "server.1=a:2888:3888:participant\nversion=0";
        let mut config = Config::new(ServerId(1), Membership::parse(text).expect("a good text"));
        let (mut quorum, mut outbox) = (config.membership.quorum(), Outbox::default());
        let (mut rng, epoch) = (Rng::new(1), last.epoch());
        let mut durable = Durable { last_zxid: last, ..Durable::default() };
        let mut history = History::new(&mut durable, config.history.clone(), &mut rng);
        let mut links = Links::new(&config);
        let mut cx = Context {
            now: Instant::ORIGIN,
            config: &mut config,
            quorum: &mut quorum,
            quorum_changed: &mut false,
            epochs: &mut Epochs { accepted_epoch: epoch, current_epoch: epoch },
            history: &mut history,
            delivery: &mut Delivery::default(),
            requests: &mut Requests::default(),
            outbox: &mut outbox,
            timers: &mut Timers::default(),
            links: &mut links,
            rng: &mut rng,
            concessions: &mut Concessions::default(),
            given: &mut None,
            lease: &mut Lease::default(),
            accepts: true,
            disk_low: false,
            parked: &mut VecDeque::new(),
        };
        let mut broadcast = Broadcast::new(&cx, epoch, Zxid::ZERO);
        (broadcast.proposed, broadcast.numbered) = (last, last);
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: 5 };
        let draft = Draft { header, body: Bytes::new() };
        let drafts = alloc::vec![draft; many];
        let role_change = broadcast.propose(&mut cx, &mut Learners::default(), drafts);
        let mut outputs = Vec::new();
        outbox.swap(&mut outputs);
        let appended = outputs.iter().filter_map(|output| {
            let Output::Persist { write: Write::Append(txns), .. } = output else { return None };
            Some(txns.to_vec())
        });
        (appended.flatten().map(|txn| txn.zxid).collect(), role_change)
    }

    /// ZOOKEEPER-1277.
    #[test]
    fn the_counter_does_not_run_into_the_epoch() {
        let z = |counter| Zxid::new(Epoch(3), Counter(counter));
        let over = |last| (Vec::new(), RoleChange::leave(Reason::CounterEnd(last)));
        let fine = |of: &[Zxid]| (of.to_vec(), RoleChange::Stay);
        assert_eq!(proposed_after(z(0xffff_fffc), 1), fine(&[z(0xffff_fffd)]));
        assert_eq!(proposed_after(z(0xffff_fffc), 2), fine(&[z(0xffff_fffd), z(0xffff_fffe)]));
        assert_eq!(proposed_after(z(0xffff_fffd), 1), fine(&[z(0xffff_fffe)]));
        // Those that have no number are as good as never prepared, all of them.
        assert_eq!(proposed_after(z(0xffff_fffd), 2), over(z(0xffff_fffd)));
        assert_eq!(proposed_after(z(0xffff_fffe), 1), over(z(0xffff_fffe)));
    }
}
