//! Discovery, the learner's side: who we are and what we have promised; then a new promise.
//!
//! ```text
//!   FOLLOWERINFO ─►   LEADERINFO(E):  E above our promise → disk, then ACKEPOCH(current epoch, last)
//!                                     E equal             → ACKEPOCH(-1, last): no promise, it was made
//!                                     E below             → this is no leader of ours
//! ```

use crate::context::Context;
use crate::id::{LinkId, ServerId, Ticket};
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

/// LEADERINFO: promises the epoch, durably, before it says so. A learner that comes back `blank`, since
/// its log could not be cut where the leader wanted, names a zxid before all others; its real history was told
/// on the link before, and counted. Of one with zxid 0 a leader that has nothing would think that it has the same.
pub fn on_leader_info(
    cx: &mut Context<'_>,
    link: LinkId,
    leader: ServerId,
    epoch: Epoch,
    blank: bool,
) -> Announced {
    let accepted = cx.epochs.accepted_epoch;
    if !epoch.is_valid() || epoch < accepted {
        return Announced::Refused;
    }
    let last = if blank && epoch == accepted { Zxid::UNKNOWN } else { cx.history.claim() };
    if epoch == accepted && !planted!(EpochPromisedTwice) {
        // Who comes back in another role may still be writing what it tells of.
        let packet = Packet::AckEpoch { last, current_epoch: None };
        cx.outbox.send_after(cx.outbox.last(), link, Message::Packet(packet));
    } else {
        let ticket = cx.outbox.persist(Write::AcceptedEpoch(epoch));
        cx.epochs.accepted_epoch = epoch;
        let current_epoch = Some(cx.epochs.current_epoch);
        let packet = Packet::AckEpoch { last, current_epoch };
        let ticket = if planted!(AckEpochBeforeDisk) { Ticket(0) } else { ticket };
        cx.outbox.send_after(ticket, link, Message::Packet(packet));
        cx.outbox.report(Change::AcceptedEpoch(epoch), Reason::LeaderSaid { leader, epoch });
    }
    Announced::Accepted
}
