//! Changing the membership, the leader's side.
//!
//! ```text
//!   request ─► prepared ─► judged ─► PROPOSAL ────────► a quorum of the present voters ────► in force:
//!     in its turn among        │     next: on disk,     and one of the next has it       COMMITANDACTIVATE
//!     all requests             │     votes count in both                                 INFORMANDACTIVATE
//!                              └──► refused: a transaction that says why
//! ```
//!
//! From the proposal on, whatever is decided needs a quorum of the present voters and one of the next, also
//! what was proposed before: so whichever of the two memberships the next leader is elected by, it has
//! everything. That is why there is only one change at a time. A leader that has told of a lease waits until
//! the next voters have promised as much.
//!
//! A leader that is no voter afterwards, or whose address changes, names a successor: the voter of the next membership
//! with the longest log. If there is none, a leader whose address changes leads on. It waits until the successor has the
//! whole log, and commits nothing behind the change. Its leadership guards are released before, as in a transfer: the
//! voters' promises end with the change, whatever was told of a lease.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use crate::address::HostPort;
use crate::context::{Context, RoleChange};
use crate::id::{ReleaseId, ServerId};
use crate::leader::broadcast::{Broadcast, Change, Parting};
use crate::leader::learners::Learners;
use crate::leader::progress::{Activation, Progress, Stage};
use crate::leader::transfer::plan::is_heard;
use crate::membership::{Membership, Role};
use crate::output::Output;
use crate::reconfiguration::{Reconfiguration, Unchanged, body_of};
use crate::timers::Timer;
use crate::txn::{Draft, Txn};
use crate::vote::{Round, Vote};
use crate::zxid::Zxid;

/// Makes what it is to become of each draft that asks for another membership.
pub fn prepare(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    drafts: &mut [Draft],
) {
    let first = broadcast.proposed();
    for (draft, n) in drafts.iter_mut().zip(1..).filter(|(draft, _)| is_asked_by(draft)) {
        let zxid = Zxid(first.0 + n);
        let denied = (draft.header.kind == Txn::RECONFIGURATION_DENIED)
            .then(|| draft.body.try_get_i32().unwrap_or(Txn::TOO_LONG));
        let judged = judge(cx, broadcast, learners, &draft.body).map_err(|why| why.code());
        let judged = match denied {
            Some(code) => Err(judged.err().unwrap_or(code)),
            None => judged,
        };
        match judged {
            Ok(next) => {
                let next = next.with_version(zxid.0);
                draft.body = body_of(&next);
                let txn = Txn { zxid, header: draft.header, body: draft.body.clone() };
                let leaving = !stays(cx, &next);
                cx.see(Some(next));
                let parting = Parting::Ahead;
                broadcast.change = Some(Box::new(Change { txn, leaving, parting }));
                broadcast.update_quorum(cx, learners);
                if cx.config.lease.is_some() {
                    // Before they have acknowledged this, the new voters have promised what the old ones did.
                    learners.ping(cx, first);
                }
            }
            Err(code) => {
                draft.header.kind = Txn::REJECTED;
                draft.body = Bytes::copy_from_slice(&code.to_be_bytes());
            }
        }
    }
}

/// Whether a draft asks for another membership.
pub const fn is_asked_by(draft: &Draft) -> bool {
    matches!(draft.header.kind, Txn::RECONFIGURATION | Txn::RECONFIGURATION_DENIED)
}

/// The membership that comes of what is asked for.
fn judge(
    cx: &Context<'_>,
    broadcast: &Broadcast,
    learners: &Learners,
    body: &[u8],
) -> Result<Membership, Unchanged> {
    if !cx.config.reconfig_enabled {
        return Err(Unchanged::Disabled);
    }
    if broadcast.change.is_some() || broadcast.transfer.is_some() {
        return Err(Unchanged::Underway);
    }
    let next = Reconfiguration::decode(body)?.apply(&cx.config.membership)?;
    // Whatever its number will be.
    let longest = body_of(&next.with_version(i64::MAX)).len();
    if Txn::HEADER_BYTES + longest > cx.config.limits.txn_bytes {
        return Err(Unchanged::Unsuitable);
    }
    // One that has just become an observer comes back as one, and will acknowledge nothing.
    let observes = |id| cx.config.membership.member(id).is_some_and(|m| m.role == Role::Observer);
    let able = |l: &&Progress| l.follower && l.stage == Stage::Serving && !observes(l.id);
    let blind = |l: &&Progress| l.blind && (l.votes || next.is_participant(l.id));
    if learners.values().any(|l| blind(&l)) {
        return Err(Unchanged::Blind);
    }
    let here = learners.values().filter(able).map(|l| l.id);
    if next.quorum().is_quorum(here.chain([cx.config.id])) {
        Ok(next)
    } else {
        Err(Unchanged::NoQuorum)
    }
}

/// Whether we may lead under the next membership: a voter, at the same address.
fn stays(cx: &Context<'_>, next: &Membership) -> bool {
    let id = cx.config.id;
    next.is_participant(id)
        && quorum_addresses(next, id) == quorum_addresses(&cx.config.membership, id)
}

fn quorum_addresses(membership: &Membership, id: ServerId) -> Vec<&HostPort> {
    let addresses = membership.member(id).into_iter().flat_map(|member| &member.addresses);
    addresses.map(|address| &address.quorum).collect()
}

/// Puts the next membership in force, if all that have to agree have what brings it.
pub fn complete(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    round: Round,
) -> RoleChange {
    let Some(agreed) = broadcast.agreed(cx) else { return RoleChange::Stay };
    let proposed = broadcast.proposed();
    let Some(change) = broadcast.change.as_deref_mut() else { return RoleChange::Stay };
    let (zxid, leaving) = (change.txn.zxid, change.leaving);
    if leaving && agreed >= zxid && change.parting == Parting::Ahead {
        change.parting = Parting::Asked(cx.outbox.release());
        cx.timers.after(Timer::Transfer, cx.now, cx.config.timing.transfer_max);
    }
    let parted = !leaving || change.parting == Parting::Over;
    let txn = change.txn.clone();
    let needed = if leaving { proposed.max(zxid) } else { zxid };
    if !parted || agreed < needed || (leaving && !broadcast.is_prepared()) {
        return RoleChange::Stay;
    }
    let leader = match next_leader(cx, learners).filter(|_| leaving) {
        Some(leader) => leader,
        // A leader that no other can succeed leads on, at its new address.
        None if !leaving || cx.config.last_seen().quorum().weight(cx.config.id) > 0 => cx.config.id,
        None => return RoleChange::Stay,
    };
    if leader == cx.config.id && !broadcast.is_promised(cx, learners) {
        // Their answers are on their way.
        return RoleChange::Stay;
    }
    let activation = Activation { txn, leader };
    cx.commit(zxid);
    learners.activate(&activation);
    learners.feed(cx, broadcast.progress(cx));
    broadcast.change = None;
    cx.activate();
    if leader == cx.config.id {
        if leaving {
            cx.outbox.push(Output::Keep);
            broadcast.call_off(cx, learners);
        }
        broadcast.update_quorum(cx, learners);
        // Some may have waited for it to be told of it.
        learners.feed(cx, broadcast.progress(cx));
        return RoleChange::Stay;
    }
    broadcast.hand_on(cx);
    let vote = Vote { peer_epoch: broadcast.epoch, zxid, leader };
    RoleChange::Appointed { vote, round: round.next() }
}

/// All leadership guards here are released, since this was asked.
pub fn released(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    round: Round,
    release: ReleaseId,
) -> RoleChange {
    match &broadcast.change {
        Some(change) if change.parting == Parting::Asked(release) => {
            parted(cx, broadcast, learners, round)
        }
        Some(_) | None => RoleChange::Stay,
    }
}

/// All leadership guards here are released, or time has run out for it: their loss was told when
/// that began.
pub fn parted(
    cx: &mut Context<'_>,
    broadcast: &mut Broadcast,
    learners: &mut Learners,
    round: Round,
) -> RoleChange {
    match broadcast.change.as_deref_mut() {
        Some(change) if matches!(change.parting, Parting::Asked(_)) => {
            change.parting = Parting::Over;
            cx.timers.stop(Timer::Transfer);
            complete(cx, broadcast, learners, round)
        }
        Some(_) | None => RoleChange::Stay,
    }
}

/// The new voter that has most; of those that hear a quorum, if one does.
fn next_leader(cx: &Context<'_>, learners: &Learners) -> Option<ServerId> {
    let next = cx.config.next_membership.as_ref()?.quorum();
    let able = |l: &&Progress| l.votes && l.stage == Stage::Serving && next.weight(l.id) > 0;
    learners
        .values()
        .filter(able)
        .max_by_key(|l| (is_heard(cx, l), l.acks.through(), l.id))
        .map(|l| l.id)
}
