//! Changing the membership, the learner's side.
//!
//! ```text
//!   PROPOSAL of one ─► seen: on disk, before it is logged ──► COMMITANDACTIVATE ─► in force
//!   NEWLEADER ───────► seen: on disk, before the ACK ───────► UPTODATE ──────────► in force
//! ```
//!
//! A configuration that was seen binds in elections: they need a quorum of it, too. It is in force when what
//! brought it is known to be committed, however that comes about; then this server may have another role
//! than before, or another leader. One that is logged binds until then, or until it is cut: another one that
//! we are told of takes its place only when that is logged, too, and where there is a second one the first is
//! in force, since no leader proposes it before.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::{Context, RoleChange};
use crate::id::ServerId;
use crate::membership::binding::is_later;
use crate::membership::{Membership, Role};
use crate::reconfiguration::membership_of;
use crate::report::Reason;
use crate::txn::{Txn, Txns};
use crate::vote::{Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// Logs transactions; a membership that one of them brings is seen. Returns whether it could be read.
pub fn append(cx: &mut Context<'_>, txns: Txns) -> bool {
    if !see(cx, &txns) {
        return false;
    }
    cx.append(txns);
    true
}

/// Logs a transaction that is known to be of the leader's history. What cannot be read of it does not bind:
/// its COMMIT came before anybody waited for us.
pub fn take_over(cx: &mut Context<'_>, txn: Txn) {
    see(cx, core::slice::from_ref(&txn));
    cx.append(txn.into());
}

fn see(cx: &mut Context<'_>, txns: &[Txn]) -> bool {
    for txn in txns.iter().filter(|txn| txn.header.kind == Txn::RECONFIGURATION) {
        let Some(next) = membership_of(txn) else { return false };
        take(cx, next);
    }
    true
}

/// Sees a change that our history holds. The one before it, if that is not in force here yet, is: no leader proposes a
/// change before. So is what the leader gave that knew of none: a server that was started with other servers in its
/// file, itself among them, would count on those otherwise beside the ones that the change names.
fn take(cx: &mut Context<'_>, change: Membership) {
    let bound = cx.config.next_membership.as_ref().filter(|next| next.is_change());
    let bound = bound.map_or(cx.config.membership.version(), Membership::version);
    if change.version() > bound.max(cx.config.forgotten) {
        if cx.config.next_membership.as_ref().is_some_and(Membership::is_change) {
            cx.activate();
        } else if let Some(given) = cx.given.take().filter(|given| is_later_than_ours(cx, given)) {
            cx.see(Some(given));
            cx.activate();
        }
        cx.see(Some(change));
    }
}

fn is_later_than_ours(cx: &Context<'_>, told: &Membership) -> bool {
    is_later(told.version(), cx.config.membership.version())
}

/// Whether we have a vote in what the leader tells at NEWLEADER, or in a membership that we have seen.
pub fn gives_vote(cx: &Context<'_>, told: Option<&Membership>) -> bool {
    let votes = told.is_some_and(|membership| membership.is_participant(cx.config.id));
    votes || cx.quorum.is_voter(cx.config.id)
}

/// What NEWLEADER tells of the membership; none if it cannot be read. ZooKeeper's servers before 3.5 say nothing, or
/// a single byte.
pub fn told(text: &Bytes) -> Option<Option<Membership>> {
    if text.len() <= 1 { Some(None) } else { Membership::parse(text).ok().map(Some) }
}

/// The change that binds us, where the leader tells of an older membership, or of none. If our history holds it, that
/// leader has it, too, being elected by a quorum of which one had logged it, and does not know it: two leaders could
/// come of that. (So it is with a majority; where an outside oracle's word made the quorum, nothing can be told.)
pub fn untold(cx: &Context<'_>, told: Option<&Membership>) -> Option<Zxid> {
    let seen = cx.config.next_membership.as_ref().filter(|next| next.is_change());
    let next = seen.or(Some(&cx.config.membership).filter(|present| present.is_change()))?;
    // The start of an epoch as version is given by a leader that knows of no change.
    let told = told.filter(|told| told.is_change()).map_or(0, Membership::version);
    let older = told < next.version() && next.version() > cx.config.forgotten;
    older.then_some(Zxid(next.version()))
}

/// Takes over what the leader has seen, where its history came as transactions, of which we have what is in the log
/// by now. A change that is later comes as a transaction.
pub fn on_new_leader(cx: &mut Context<'_>, told: Option<Membership>, epoch: Epoch) {
    let Some(told) = told else { return };
    *cx.given = Some(&told).filter(|told| !told.is_change()).cloned();
    if told.is_change() {
        // What is of an earlier epoch and no transaction of ours a ZooKeeper server has seen that was cut later; it
        // puts that in force all the same.
        if told.version() <= cx.history.last().max(Zxid::start_of(epoch)).0 {
            take(cx, told);
        }
    } else if cx.config.reconfig_enabled {
        let seen = cx.config.next_membership.as_ref().is_some_and(Membership::is_change);
        if !seen && !cx.config.membership.is_change() {
            let newer = told.version() > cx.config.membership.version();
            cx.see(newer.then_some(told));
        }
    }
}

/// The memberships that come with a snapshot and behind it. Each of them may be the only trace of a change that is in
/// force elsewhere: NEWLEADER tells of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Collected {
    memberships: Vec<Membership>,
    /// What is in force at the leader, and so is committed if it is a change.
    in_force: Option<Membership>,
}

impl Collected {
    /// What came with SNAP: the first of them is in force.
    pub fn add_all(&mut self, memberships: Vec<Membership>) {
        self.in_force = memberships.first().cloned();
        memberships.into_iter().for_each(|membership| self.add(membership));
    }

    /// What is known to be in force: a change, if it is in the history that ends at `last`; what a leader gave, if a
    /// change that is there follows it.
    pub fn in_force(&self, last: Zxid) -> Option<Membership> {
        let within = |told: &Membership| told.is_change() && told.version() <= last.0;
        let followed = self.memberships.iter().any(within);
        self.in_force.clone().filter(|told| within(told) || (!told.is_change() && followed))
    }

    /// The last change that came.
    pub fn newest(&self) -> Option<&Membership> {
        let changes = self.memberships.iter().filter(|membership| membership.is_change());
        changes.max_by_key(|membership| membership.version())
    }

    /// One that came, in whatever way.
    pub fn add(&mut self, membership: Membership) {
        if self.memberships.iter().all(|known| known.version() != membership.version()) {
            self.memberships.push(membership);
        }
    }

    /// Everything through this is in the history to come. Of the changes in there only the last two are of use.
    pub fn prune(&mut self, known: Zxid) {
        self.memberships.sort_unstable_by_key(Membership::version);
        let within = self.memberships.partition_point(|held| held.version() <= known.0);
        self.memberships.drain(..within.saturating_sub(2));
    }

    /// What of it a history holds that ends at `last`, and what the leader told, if that is no change.
    pub fn held(self, cx: &Context<'_>, last: Zxid) -> Vec<Membership> {
        let (changes, given): (Vec<_>, Vec<_>) =
            self.memberships.into_iter().partition(Membership::is_change);
        let held = |change: &Membership| {
            change.version() <= last.0 && change.version() > cx.config.forgotten
        };
        let mut held: Vec<_> = changes.into_iter().filter(held).collect();
        let bound = cx.config.membership.is_change();
        if held.is_empty() && cx.config.reconfig_enabled && !bound {
            held.extend(given);
        }
        held
    }
}

/// Puts the next membership in force, if what is committed brings it; `leader` leads from then on, if the
/// leader has told. What becomes of a server that stood like this.
pub fn activate(
    cx: &mut Context<'_>,
    committed: Zxid,
    leader: Option<ServerId>,
    stood: Standing,
    observer: bool,
) -> RoleChange {
    if !cx.is_due(committed) {
        return RoleChange::Stay;
    }
    let present = stood.vote.leader;
    let address = |membership: &Membership| {
        let member = membership.member(present);
        member.map(|member| member.addresses.iter().map(|a| a.quorum.clone()).collect())
    };
    let before: Option<Vec<_>> = address(&cx.config.membership);
    cx.activate();
    let config = &cx.config.membership;
    let observes = config.member(cx.config.id).is_some_and(|own| own.role == Role::Observer);
    match leader {
        Some(leader) if leader != present => {
            let zxid = Zxid(config.version());
            let vote = Vote { peer_epoch: cx.epochs.current_epoch, zxid, leader };
            RoleChange::Appointed { vote, round: stood.round.next() }
        }
        None if !config.is_participant(present) || address(config) != before => {
            RoleChange::leave(Reason::Reconfigured { version: config.version() })
        }
        Some(_) | None if observes != observer => {
            let vote = Vote { peer_epoch: cx.epochs.current_epoch, ..stood.vote };
            RoleChange::Appointed { vote, round: stood.round }
        }
        Some(_) | None => RoleChange::Stay,
    }
}
