//! What a machine may touch during one step, and what it answers.
//!
//! ```text
//!   Peer ── lends ──► Context ──► Leader │ Learner ── RoleChange ──► Peer
//! ```
//!
//! No logic, but what concerns all of it: taking over another membership (the quorum, the links, the disk and the
//! election), and whether this server would lead well.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::Config;
use crate::delivery::Delivery;
use crate::durable::Epochs;
use crate::generation_message::Cue;
use crate::history::History;
use crate::id::{ReadId, ServerId};
use crate::lease::Lease;
use crate::links::Links;
use crate::membership::Membership;
use crate::membership::binding::{bind, is_later};
use crate::message::Request;
use crate::outbox::Outbox;
use crate::output::{Output, Write};
use crate::quorum::Quorum;
use crate::report::{Change, Reason};
use crate::requests::Requests;
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timers;
use crate::txn::{RequestId, Txns};
use crate::vote::{Round, Vote};
use crate::zxid::{Epoch, Zxid};

/// The parts of a server that all roles share, lent to the machine of its role for one step.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time of the input.
    pub now: Instant,
    /// What the server was told.
    pub config: &'a mut Config,
    /// Who votes.
    pub quorum: &'a mut Quorum,
    /// The voters have changed: the election has to know before anything else happens.
    pub quorum_changed: &'a mut bool,
    /// The epochs as they are or are about to be on disk. A write that fails stops the server, so
    /// what has been asked for is never taken back; whatever promises it waits for its ticket.
    pub epochs: &'a mut Epochs,
    /// What is logged.
    pub history: &'a mut History,
    /// What the application gets next.
    pub delivery: &'a mut Delivery,
    /// What was accepted here.
    pub requests: &'a mut Requests,
    /// Where outputs go.
    pub outbox: &'a mut Outbox,
    /// Deadlines by name.
    pub timers: &'a mut Timers,
    /// Who is connected.
    pub links: &'a mut Links,
    /// For jitter.
    pub rng: &'a mut Rng,
    /// To whom a leader has given way.
    pub concessions: &'a mut Concessions,
    /// The membership that a leader which knew of no reconfiguration announced in NEWLEADER: the first reconfiguration in
    /// our log was made on top of it.
    pub given: &'a mut Option<Membership>,
    /// What we have promised to a leader.
    pub lease: &'a mut Lease,
    /// Whether learners can come to our quorum port.
    pub accepts: bool,
    /// There is little room left on our disk.
    pub disk_low: bool,
    /// What people at this server asked for, and what waits for the next leadership to begin.
    pub parked: &'a mut VecDeque<Parked>,
}

impl Context<'_> {
    /// Takes note of a configuration that is not known to be in force, or that none is any more; on disk
    /// before whatever is written after it.
    pub fn see(&mut self, next: Option<Membership>) {
        if next == self.config.next_membership {
            return;
        }
        self.outbox.persist(Write::NextMembership(next.as_ref().map(|n| n.text().clone())));
        let version = next.as_ref().unwrap_or(&self.config.membership).version();
        let reason = Reason::Reconfigured { version };
        self.outbox.report(Change::NextConfiguration(version), reason);
        self.config.next_membership = next;
        self.update_quorum();
    }

    /// The next configuration is in force.
    pub fn activate(&mut self) {
        let Some(next) = self.config.next_membership.take() else { return };
        self.outbox.persist(Write::Membership(next.text().clone()));
        let version = next.version();
        self.outbox.report(Change::Configuration(version), Reason::Reconfigured { version });
        self.config.membership = next;
        self.update_quorum();
    }

    /// The next configuration, if `committed` tells that it is in force: its version is the zxid that
    /// brought it.
    pub fn is_due(&self, committed: Zxid) -> bool {
        let next = self.config.next_membership.as_ref();
        next.is_some_and(|next| next.version() <= committed.0)
    }

    /// A configuration that we have seen binds us from when we may have said so: a change when its transaction is
    /// logged, a version that a leader gave when its epoch is ours. One that is neither came to nothing.
    ///
    /// A change behind a cut is forgotten with it, whatever our epoch: otherwise it would count as logged again as
    /// soon as the log is that long, and be put in force though no leader ever committed it.
    pub fn forget_unheld(&mut self) {
        let Some(next) = &self.config.next_membership else { return };
        let known = if next.is_change() {
            self.history.last()
        } else {
            self.history.last().max(Zxid::start_of(self.epochs.current_epoch))
        };
        if next.version() > known.0 {
            self.see(None);
        }
    }

    /// Puts transactions at the end of the log.
    pub fn append(&mut self, txns: Txns) {
        for txn in &*txns {
            self.requests.on_logged(txn);
        }
        self.history.append(txns, self.outbox);
    }

    /// Marks everything through `zxid` as committed, and queues its delivery. To be called even if that was known: it also
    /// lets the application adopt a staged state that waits for that.
    pub fn commit(&mut self, zxid: Zxid) {
        let label = self.history.commit(zxid, self.rng);
        self.delivery.through(zxid);
        if let Some(label) = label {
            self.for_application(Output::TakeSnapshot(label));
        }
    }

    /// The operator wants a snapshot now.
    pub fn on_snapshot_asked(&mut self) {
        if let Some(label) = self.history.take_snapshot(self.rng) {
            self.for_application(Output::TakeSnapshot(label));
        }
    }

    /// A snapshot was taken, or could not be.
    pub fn on_snapshot_taken(&mut self) {
        if self.history.on_snapshot_taken() {
            self.on_snapshot_asked();
        }
    }

    /// The application is to do this behind all that is to be delivered by now.
    pub fn for_application(&mut self, output: Output) {
        self.delivery.then(output, self.history, self.outbox);
    }

    /// Cuts off the log what follows this.
    pub fn truncate(&mut self, zxid: Zxid) {
        self.requests.on_cut(zxid);
        self.history.truncate(zxid, self.outbox);
    }

    /// Tells the caller that its request may come to pass.
    pub fn accept(&mut self, id: RequestId) {
        self.requests.accept(id, self.outbox);
    }

    /// The history that a leader sent takes the place of ours, with what it holds of the membership: one step. What
    /// the leader says is in force is so here, too: an election would ask the voters of what was before otherwise,
    /// whom there may not be any more.
    pub fn install(
        &mut self,
        label: Zxid,
        last: Zxid,
        in_force: Option<Membership>,
        held: Vec<Membership>,
    ) {
        let forgotten = self.config.forgotten;
        let ours = self.config.membership.version();
        let later =
            |told: &Membership| is_later(told.version(), ours) && told.version() > forgotten;
        let present = in_force.filter(later).unwrap_or_else(|| self.config.membership.clone());
        let (present, next) = bind(present, held);
        let text = |membership: &Membership| membership.text().clone();
        let (membership, next_text) = (text(&present), next.as_ref().map(text));
        let write = Write::Install { label, membership, next: next_text };
        self.history.install(label, last, write, self.outbox);
        self.requests.on_installed(label, self.outbox);
        for (version, change) in [
            (present.version(), Change::Configuration as fn(i64) -> Change),
            (next.as_ref().map_or(0, Membership::version), Change::NextConfiguration),
        ] {
            let known = [Some(&self.config.membership), self.config.next_membership.as_ref()];
            if known.into_iter().flatten().all(|known| known.version() < version) {
                self.outbox.report(change(version), Reason::Reconfigured { version });
            }
        }
        if (&present, &next) != (&self.config.membership, &self.config.next_membership) {
            (self.config.membership, self.config.next_membership) = (present, next);
            self.update_quorum();
        }
    }

    /// Whether the leadership may be offered to this server: that it follows well tells nothing of whether the others
    /// could follow it, so it has heard a quorum of each membership that binds it on its election links, in both
    /// directions and within two ticks. Nor may it lead while its quorum port accepts no connections, or with little room on
    /// its disk, which would stop the whole ensemble when it is full. Whatever else forbids it belongs here.
    pub fn may_lead(&self) -> bool {
        if !self.accepts || self.disk_low {
            return false;
        }
        let mut heard = self.quorum.support();
        heard.add(self.quorum, self.config.id);
        for id in self.links.heard(self.now, self.config.timing.recent()) {
            heard.add(self.quorum, id);
        }
        heard.is_quorum(self.quorum)
    }

    /// Lets the other voters know that we live, and whether we hear them.
    pub fn probe(&mut self) {
        self.links.probe(self.now, self.config.timing.recent(), self.outbox);
    }

    fn update_quorum(&mut self) {
        *self.quorum = self.config.quorum().in_place_of(self.quorum);
        self.links.reconfigure(self.config, self.outbox);
        self.links.sweep(self.now, self.outbox);
        *self.quorum_changed = true;
    }
}

/// Something asked for while the leadership goes from one server to another: it is asked for again when that is
/// over, so that no caller need notice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Parked {
    /// A transaction.
    Propose(Request),
    /// A read.
    Read(ReadId),
}

/// What becomes of a role after a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoleChange {
    /// Nothing.
    Stay,
    /// It begins to serve in this epoch.
    Serve(Epoch),
    /// It ends, and another begins without an election: the leadership was given to the leader of this vote.
    Appointed {
        /// What everybody says ended the election.
        vote: Vote,
        /// The round that is over thereby.
        round: Round,
    },
    /// It ends: one that is needed looks in the same round, with a better vote. The server goes back into that round,
    /// if it can; otherwise it begins another.
    GoBack {
        /// Who.
        from: ServerId,
        /// What it votes.
        vote: Vote,
        /// Why the role ends if another round begins.
        otherwise: Reason,
    },
    /// It ends; the server looks for a leader again after a back-off.
    Leave {
        /// Why.
        reason: Reason,
        /// How long it rests before.
        backoff: Duration,
        /// How soon it asks to lead, where elections go by generation.
        cue: Cue,
    },
}

impl RoleChange {
    /// The role ends now.
    pub const fn leave(reason: Reason) -> Self {
        Self::leave_on(reason, Cue::Fresh)
    }

    /// The same, where it is known what has become of the leader.
    pub const fn leave_on(reason: Reason, cue: Cue) -> Self {
        Self::Leave { reason, backoff: Duration::ZERO, cue }
    }
}

/// The voters for whose sake a leader has stepped down, so that none can do it again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Concessions {
    /// To a newer history or configuration; forgotten when a quorum is established that we lead or follow.
    pub history: BTreeSet<ServerId>,
    /// To a later promise, and which; the next epoch is above them, whichever server comes first. Forgotten
    /// when another server leads.
    pub promise: BTreeMap<ServerId, Epoch>,
    /// That need a snapshot while a change is under way, take no memberships with it, and were refused so that an
    /// election tells them; until when that is remembered, by whomever of us leads.
    pub untold: BTreeMap<ServerId, Instant>,
    /// To one that votes in the next membership alone, and cannot be done without: we propose it in the next
    /// round, for as long as a leadership may take to begin.
    pub nominee: Option<Vote>,
    /// To one that was given the leadership.
    pub transfers: Transfers,
}

/// The servers to which the leadership was given, as far as it is not known that this came to something. One that was
/// given it in vain is not preferred for a while, and for longer each time: its reason may last. It is kept by all
/// that were told, since any of them may lead next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transfers {
    by_id: BTreeMap<ServerId, Transfer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Transfer {
    /// Until when it is not preferred.
    until: Instant,
    /// How long that was, once it was clear that it would not serve.
    wait: Duration,
    /// Since when its leadership has lasted, as far as it has begun here.
    serves: Option<Instant>,
}

impl Transfers {
    /// The first wait, and the longest.
    const WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

    /// A server is given the leadership; its leadership begins within `patience`, if ever.
    pub fn on_given(&mut self, now: Instant, to: ServerId, patience: Duration) {
        let (first, longest) = Self::WAITS;
        let wait = self.by_id.get(&to).map_or(first, |before| (before.wait * 2).min(longest));
        let until = now + patience + wait;
        self.by_id.insert(to, Transfer { until, wait, serves: None });
    }

    /// The leadership of this leader has begun.
    pub fn on_served(&mut self, now: Instant, leader: ServerId) {
        if let Some(transfer) = self.by_id.get_mut(&leader) {
            transfer.serves = Some(now);
        }
    }

    /// The leadership is over: one that has lasted for `patience` was not in vain.
    pub fn on_leadership_over(&mut self, now: Instant, patience: Duration) {
        self.by_id.retain(|_, transfer| {
            transfer.serves.take().is_none_or(|since| now.since(since) < patience)
        });
    }

    /// Whether this server was given the leadership in vain, and not long ago.
    pub fn is_in_vain(&self, now: Instant, id: ServerId) -> bool {
        self.by_id.get(&id).is_some_and(|transfer| now < transfer.until)
    }
}
