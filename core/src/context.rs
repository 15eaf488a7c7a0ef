//! What a machine may touch during one step, and what it answers.
//!
//! ```text
//!   Peer ── lends ──► Context ──► Leader │ Learner ── Verdict ──► Peer
//! ```
//!
//! No logic, but that of taking over another membership, which concerns all of it: the quorum, the links,
//! the disk and the election.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

use crate::config::Config;
use crate::durable::Epochs;
use crate::history::History;
use crate::id::{ReadId, ServerId};
use crate::lease::Lease;
use crate::links::Links;
use crate::membership::Membership;
use crate::message::Request;
use crate::outbox::Outbox;
use crate::output::Write;
use crate::quorum::Quorum;
use crate::report::{Change, Reason};
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timers;
use crate::vote::{Round, Vote};
use crate::zxid::{Epoch, Zxid};

/// The instruments of a server, lent to the machine of its role for one step.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time of the input.
    pub now: Instant,
    /// What the server was told.
    pub config: &'a mut Config,
    /// Who votes.
    pub quorum: &'a mut Quorum,
    /// Somebody else votes now: the election has to know before anything else happens.
    pub reseated: &'a mut bool,
    /// The epochs as they are or are about to be on disk. A write that fails stops the server, so
    /// what has been asked for is never taken back; whatever promises it waits for its ticket.
    pub epochs: &'a mut Epochs,
    /// What is logged.
    pub history: &'a mut History,
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
    /// What we have promised to a leader.
    pub lease: &'a mut Lease,
    /// What people at this server asked for, and what waits for the next reign to begin.
    pub adrift: &'a mut VecDeque<Adrift>,
}

impl Context<'_> {
    /// Takes note of a configuration that is not known to be in force, or that none is any more; on disk
    /// before whatever is written after it.
    pub fn see(&mut self, next: Option<Membership>) {
        if next == self.config.next_membership {
            return;
        }
        if !planted!(ChangeOnlyInMemory) {
            self.outbox.persist(Write::NextMembership(next.as_ref().map(|n| n.text().clone())));
        }
        let version = next.as_ref().unwrap_or(&self.config.membership).version();
        let reason = Reason::Reconfigured { version };
        self.outbox.report(Change::NextConfiguration(version), reason);
        self.config.next_membership = next;
        self.reseat();
    }

    /// The next configuration is in force.
    pub fn activate(&mut self) {
        let Some(next) = self.config.next_membership.take() else { return };
        self.outbox.persist(Write::Membership(next.text().clone()));
        let version = next.version();
        self.outbox.report(Change::Configuration(version), Reason::Reconfigured { version });
        self.config.membership = next;
        self.reseat();
    }

    /// The next configuration, if `committed` tells that it is in force: its version is the zxid that
    /// brought it.
    pub fn is_due(&self, committed: Zxid) -> bool {
        let next = self.config.next_membership.as_ref().filter(|_| self.config.reconfig_enabled);
        next.is_some_and(|next| next.version() <= committed.0)
    }

    /// A configuration that we have seen binds us from when we may have said so: when its transaction is
    /// logged, or the epoch that it came with is ours. One that is neither, or was cut, came to nothing.
    pub fn forget_unlogged(&mut self) {
        let next = self.config.next_membership.as_ref().filter(|_| self.config.reconfig_enabled);
        let known = self.history.last().max(Zxid::start_of(self.epochs.current_epoch));
        if next.is_some_and(|next| next.version() > known.0) {
            self.see(None);
        }
    }

    fn reseat(&mut self) {
        *self.quorum = self.config.quorum().in_place_of(self.quorum);
        self.links.reconfigure(self.config, self.outbox);
        self.links.sweep(self.now, self.outbox);
        *self.reseated = true;
    }
}

/// Something asked for while the seat goes from one server to another: it is asked for again when that is
/// over, so that nobody need notice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Adrift {
    /// A transaction.
    Propose(Request),
    /// A read.
    Read(ReadId),
}

/// What becomes of a role after a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing.
    Stay,
    /// It begins to serve in this epoch.
    Serve(Epoch),
    /// It ends, and another begins without an election: the seat was given to the leader of this vote.
    Appointed {
        /// What everybody says ended the election.
        vote: Vote,
        /// The round that is over thereby.
        round: Round,
    },
    /// It ends; the server looks for a leader again after a rest.
    Leave {
        /// Why.
        reason: Reason,
        /// How long it rests before.
        rest: Duration,
    },
}

impl Verdict {
    /// The role ends now.
    pub const fn leave(reason: Reason) -> Self {
        Self::Leave { reason, rest: Duration::ZERO }
    }
}

/// The voters for whose sake a leader has stepped down, so that none can do it again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Concessions {
    /// To a newer history or configuration; forgotten when a quorum is established that we lead or follow.
    pub history: BTreeSet<ServerId>,
    /// To a later promise, and which; the next epoch is above them, whoever comes first. Forgotten
    /// when somebody else leads.
    pub promise: BTreeMap<ServerId, Epoch>,
    /// To one that votes in the next membership alone, and cannot be done without: we propose it in the next
    /// round, for as long as a reign may take to begin.
    pub nominee: Option<Vote>,
}
