//! Discovery, the learner's side: who we are and what we have promised; then a new promise.
//!
//! ```text
//!   FOLLOWERINFO ─►   LEADERINFO(E):  E above our promise → disk, then ACKEPOCH(current epoch, last)
//!                                     E equal             → ACKEPOCH(-1, last): no promise, it was made
//!                                     E below             → this is no leader of ours; but an observer
//!                                                           follows it: ACKEPOCH(-1, last)
//! ```
//!
//! An observer's promise counts nowhere: it is in no quorum that makes an epoch. A prospective leader that died
//! when its LEADERINFO had reached an observer alone leaves one with a promise above every leadership to come for a long
//! time. So an observer follows a leader below its promise, if its history is of no later epoch, and promises
//! nothing. As soon as it would be a voter this is over, see
//! [`new_leader`](crate::learner::synchronization::new_leader).

use crate::context::Context;
use crate::id::{LinkId, ServerId};
use crate::message::{LearnerInfo, Message, Packet};
use crate::output::Write;
use crate::report::{Change, Reason};
use crate::zxid::{Epoch, Zxid};

/// What a learner makes of the epoch that a leader announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Announced {
    /// It is followed; ACKEPOCH is on its way.
    Accepted,
    /// It is older than our promise, or no epoch.
    Refused,
}

/// The first thing a learner says.
pub fn introduce(cx: &mut Context<'_>, link: LinkId, observer: bool) {
    let info = LearnerInfo {
        accepted_epoch: cx.epochs.accepted_epoch,
        id: Some(cx.config.id),
        protocol: cx.config.spoken(),
        config_version: cx.config.membership.version(),
    };
    let packet = if observer { Packet::ObserverInfo(info) } else { Packet::FollowerInfo(info) };
    cx.outbox.send(link, Message::Packet(packet));
}

/// Whether an observer may follow the leader of an epoch below its promise: its history is of no later epoch, and
/// no membership that it has seen gives it a vote.
fn may_observe(cx: &Context<'_>, epoch: Epoch) -> bool {
    let newest = cx.epochs.current_epoch.max(cx.history.last().epoch());
    newest <= epoch && !cx.quorum.is_voter(cx.config.id)
}

/// LEADERINFO: promises the epoch, durably, before it says so. A learner that comes back `blank`, since
/// its log could not be cut where the leader wanted, names a zxid before all others; its real history was told
/// on the link before, and counted. Of one with zxid 0 a leader that has nothing would think that it has the same.
pub fn on_leader_info(
    cx: &mut Context<'_>,
    link: LinkId,
    leader: ServerId,
    epoch: Epoch,
    blank: bool,
    observer: bool,
) -> Announced {
    let accepted = cx.epochs.accepted_epoch;
    let below = epoch < accepted;
    if !epoch.is_valid() || (below && !(observer && may_observe(cx, epoch))) {
        return Announced::Refused;
    }
    let last = if blank && epoch <= accepted { Zxid::UNKNOWN } else { cx.history.claim() };
    if below || epoch == accepted {
        // Who comes back in another role may still be writing what it tells of.
        let packet = Packet::AckEpoch { last, current_epoch: None };
        cx.outbox.send_after(cx.outbox.last(), link, Message::Packet(packet));
    } else {
        let ticket = cx.outbox.persist(Write::AcceptedEpoch(epoch));
        cx.epochs.accepted_epoch = epoch;
        let current_epoch = Some(cx.epochs.current_epoch);
        let packet = Packet::AckEpoch { last, current_epoch };
        cx.outbox.send_after(ticket, link, Message::Packet(packet));
        cx.outbox.report(Change::AcceptedEpoch(epoch), Reason::LeaderSaid { leader, epoch });
    }
    Announced::Accepted
}
