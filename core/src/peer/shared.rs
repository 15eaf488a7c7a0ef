//! Everything of a server but its role.
//!
//! ```text
//!   Peer ──┬── Role          the machine that decides just now
//!          └── SharedParts   what it is lent for a step, and the election, which is always there
//! ```
//!
//! Apart from the role, so that both can be touched at once. Nothing is decided here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::{Config, ConfigError};
use crate::context::{Concessions, Context, Parked};
use crate::delivery::Delivery;
use crate::durable::{Durable, Epochs};
use crate::election::ElectorOutput;
use crate::history::History;
use crate::id::LinkId;
use crate::lease::Lease;
use crate::links::Links;
use crate::membership::Membership;
use crate::membership::binding::bind;
use crate::outbox::Outbox;
use crate::output::Write;
use crate::peer::electing::Electing;
use crate::peer::listening::Listening;
use crate::reasons::Hangup;
use crate::reconfiguration::membership_of;
use crate::requests::Requests;
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::{Timer, Timers};
use crate::txn::Txn;

/// What all roles of one server share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharedParts {
    pub(super) config: Config,
    pub(super) elector: Electing,
    pub(super) epochs: Epochs,
    pub(super) history: History,
    pub(super) delivery: Delivery,
    pub(super) requests: Requests,
    pub(super) links: Links,
    pub(super) timers: Timers,
    pub(super) outbox: Outbox,
    pub(super) rng: Rng,
    pub(super) concessions: Concessions,
    /// The membership that a leader which knew of no reconfiguration announced in NEWLEADER.
    pub(super) given: Option<Membership>,
    pub(super) now: Instant,
    /// What we have promised to a leader.
    pub(super) lease: Lease,
    /// Whether learners can come.
    pub(super) listening: Listening,
    /// There is little room left on the disk.
    pub(super) disk_low: bool,
    /// What was asked for while the leadership goes from one server to another.
    pub(super) parked: VecDeque<Parked>,
    /// Others vote now, and the election does not know yet.
    pub(super) quorum_changed: bool,
    /// What the disk has to be told of the membership before the first vote.
    pub(super) healing: Vec<Write>,
    /// Outputs of the elector on their way; empty between steps, kept for its memory.
    pub(super) told: Vec<ElectorOutput>,
}

impl SharedParts {
    /// Those of a server that finds `durable` on its disk.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub(super) fn new(config: Config, durable: Durable) -> Result<Self, ConfigError> {
        config.check()?;
        let (mut config, mut durable) = (config, durable);
        let healing = bind_to_history(&mut config, &mut durable);
        let mut rng = Rng::new(config.seed);
        let Durable { accepted_epoch, current_epoch, .. } = durable;
        let mut timers = Timers::default();
        timers.set(Timer::Start, Instant::ORIGIN);
        Ok(Self {
            elector: Electing::new(&config, durable.granted_vote),
            history: History::new(&mut durable, config.history.clone(), &mut rng),
            delivery: Delivery::default(),
            requests: Requests::default(),
            epochs: Epochs { accepted_epoch, current_epoch },
            links: Links::new(&config),
            timers,
            outbox: Outbox::default(),
            rng,
            concessions: Concessions::default(),
            given: None,
            now: Instant::ORIGIN,
            listening: Listening::default(),
            disk_low: false,
            lease: Lease::found(durable.lease),
            parked: VecDeque::new(),
            quorum_changed: false,
            healing,
            told: Vec::new(),
            config,
        })
    }

    /// Hands the application what it can have.
    pub(super) fn hand_out(&mut self) {
        let limits = &self.config.history;
        self.delivery.hand_out(&mut self.history, &self.links, limits, &mut self.outbox);
        self.requests.on_applied(self.delivery.applied(), &mut self.outbox);
    }

    /// What a machine may touch.
    #[inline]
    pub(super) const fn context(&mut self) -> Context<'_> {
        Context {
            now: self.now,
            config: &mut self.config,
            quorum: self.elector.quorum_mut(),
            quorum_changed: &mut self.quorum_changed,
            epochs: &mut self.epochs,
            history: &mut self.history,
            delivery: &mut self.delivery,
            requests: &mut self.requests,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
            links: &mut self.links,
            rng: &mut self.rng,
            concessions: &mut self.concessions,
            given: &mut self.given,
            lease: &mut self.lease,
            accepts: self.listening.accepts(),
            disk_low: self.disk_low,
            parked: &mut self.parked,
        }
    }

    /// Ends a link of ours.
    pub(super) fn hangup(&mut self, link: LinkId, reason: Hangup) {
        self.links.hangup(link, reason, &mut self.outbox);
    }

    /// The role is over, and with it what was due and who was connected for its sake.
    pub(super) fn clear(&mut self) {
        self.elector.quorum_mut().need_oracle(true);
        self.timers.stop_role();
        self.links.hangup_quorum(Hangup::RoleEnded, &mut self.outbox);
    }

    /// The earliest time at which something is due, and what.
    pub(super) fn deadline(&self) -> Option<(Instant, Timer)> {
        let redial = self.links.deadline().map(|at| (at, Timer::Redial));
        let election = self.elector.deadline();
        let claim = self.links.claim_deadline().map(|at| (at, Timer::Claim));
        [self.timers.next(), redial, claim, election].into_iter().flatten().min()
    }
}

/// Lets the changes in the history that was found bind: the newest is seen, every older one is in force. Returns
/// what the disk has to be told of that.
fn bind_to_history(config: &mut Config, durable: &mut Durable) -> Vec<Write> {
    let forgotten = config.forgotten;
    let mut found = core::mem::take(&mut durable.changes);
    let changes = durable.window.iter().filter(|txn| txn.header.kind == Txn::RECONFIGURATION);
    found.extend(changes.filter_map(membership_of));
    let found: Vec<_> = found.into_iter().filter(|held| held.version() > forgotten).collect();
    let next = config.next_membership.take();
    // One behind the snapshot whose transaction is not there was cut; one that the snapshot may have came with it; and
    // what is no change was seen in an epoch that may be ours.
    let stays = |next: &Membership| {
        !next.is_change()
            || next.version() <= durable.snapshot.0
            || found.iter().any(|held| held.version() == next.version())
    };
    let kept = next.clone().filter(|next| stays(next) && next.version() > forgotten);
    let changes = found.iter().cloned().chain(kept.clone().filter(Membership::is_change));
    let (membership, bound) = bind(config.membership.clone(), changes);
    let bound = bound.or_else(|| kept.filter(|kept| kept.version() > membership.version()));
    let mut writes = Vec::new();
    if membership != config.membership {
        writes.push(Write::Membership(membership.text().clone()));
    }
    if bound != next || !writes.is_empty() {
        writes.push(Write::NextMembership(bound.as_ref().map(|next| next.text().clone())));
    }
    (config.membership, config.next_membership) = (membership, bound);
    writes
}
