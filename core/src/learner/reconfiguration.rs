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
//! in force, since nobody proposes it before.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::{Context, Verdict};
use crate::id::ServerId;
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
    cx.history.append(txns, cx.outbox);
    true
}

/// Logs a transaction that is known to be of the leader's history. What cannot be read of it does not bind:
/// its COMMIT came before anybody waited for us.
pub fn take_over(cx: &mut Context<'_>, txn: Txn) {
    see(cx, core::slice::from_ref(&txn));
    cx.history.append(txn.into(), cx.outbox);
}

fn see(cx: &mut Context<'_>, txns: &[Txn]) -> bool {
    if !cx.config.reconfig_enabled {
        return true;
    }
    for txn in txns.iter().filter(|txn| txn.header.kind == Txn::RECONFIGURATION) {
        let Some(next) = membership_of(txn) else { return false };
        if next.version() > cx.config.last_seen().version() {
            // The one before it, if that is not in force here yet.
            cx.activate();
            cx.see(Some(next));
        }
    }
    true
}

/// Takes over what the leader has seen, with its history, of which we have what is in the log by now, and all
/// of it if it came as a `snapshot`. Returns whether it could be read.
pub fn on_new_leader(cx: &mut Context<'_>, text: &Bytes, epoch: Epoch, snapshot: bool) -> bool {
    // ZooKeeper's servers before 3.5 say nothing, or a single byte.
    if !cx.config.reconfig_enabled || text.len() <= 1 {
        return true;
    }
    let Ok(seen) = Membership::parse(text) else { return false };
    let known = cx.history.last().max(Zxid::start_of(epoch));
    if seen.version() <= known.0 || snapshot {
        let newer = seen.version() > cx.config.membership.version();
        cx.see(newer.then_some(seen));
    }
    true
}

/// Puts the next membership in force, if what is committed brings it; `leader` leads from then on, if the
/// leader has told. What becomes of a server that stood like this.
pub fn activate(
    cx: &mut Context<'_>,
    committed: Zxid,
    leader: Option<ServerId>,
    stood: Standing,
    observer: bool,
) -> Verdict {
    if !cx.is_due(committed) {
        return Verdict::Stay;
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
            Verdict::Appointed { vote, round: stood.round.next() }
        }
        None if !config.is_participant(present) || address(config) != before => {
            Verdict::leave(Reason::Reconfigured { version: config.version() })
        }
        Some(_) | None if observes != observer => {
            let vote = Vote { peer_epoch: cx.epochs.current_epoch, ..stood.vote };
            Verdict::Appointed { vote, round: stood.round }
        }
        Some(_) | None => Verdict::Stay,
    }
}
