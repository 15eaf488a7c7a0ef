//! Introductions: who comes to learn, what it has promised, and what it has.
//!
//! ```text
//!   a link ─► silent ─► FOLLOWERINFO │ OBSERVERINFO ─► introduced ─► LEADERINFO ─► told ─► ACKEPOCH ─► promised
//!               └ too many │ unfit: refused │ the same server's older link goes         └ newer than we: we leave
//! ```
//!
//! Each server that comes is judged here, in each phase of a leadership alike; what a promise counts for is the business
//! of [`discovery`](crate::leader::discovery), and how a learner is brought up that of
//! [`synchronization`](crate::leader::synchronization).

use crate::context::{Context, RoleChange};
use crate::id::{LinkId, ServerId};
use crate::leader::discovery::is_newer;
use crate::leader::progress::{Progress, Stage};
use crate::leader::state::{LeaderState, Phase};
use crate::membership::binding::{is_change, is_later};
use crate::message::LearnerInfo;
use crate::reasons::Hangup;
use crate::report::Reason;
use crate::vote::Vote;
use crate::zxid::{Epoch, Zxid};

/// A server has connected to the quorum port.
pub(super) fn on_link_up(
    cx: &mut Context<'_>,
    state: &mut LeaderState,
    link: LinkId,
) -> RoleChange {
    let (unintroduced, most) = (cx.config.limits.unintroduced, cx.config.limits.learners);
    let silent = state.learners.at_stage(|stage| stage == Stage::Silent);
    if let Some(oldest) = silent.first().filter(|_| silent.len() >= unintroduced) {
        state.drop_learner(cx, *oldest, Hangup::TooManyUnintroduced);
    }
    if state.learners.len() >= most {
        cx.links.hangup(link, Hangup::TooManyLearners, cx.outbox);
    } else {
        state.learners.insert(link, Progress::new(cx.now));
    }
    RoleChange::Stay
}

/// FOLLOWERINFO or OBSERVERINFO: who it is, and what it has promised.
pub(super) fn on_info(
    cx: &mut Context<'_>,
    state: &mut LeaderState,
    link: LinkId,
    info: LearnerInfo,
    follower: bool,
) -> RoleChange {
    let ours = cx.config.membership.version();
    // No other server has a negative one: those are ours, for the anonymous.
    let id = info.id.filter(|id| id.0 >= 0 && *id != ServerId::ANONYMOUS_OBSERVER);
    // A version that a leader gave tells of no change: a learner that has none knows as much.
    let newer = is_change(info.config_version) && is_later(info.config_version, ours);
    // No epoch is left above its promise. We do not stop for the word of one, unless it is ours too.
    let spent = info.accepted_epoch == Epoch::MAX && cx.epochs.accepted_epoch < Epoch::MAX;
    let refuse = if info.protocol < LearnerInfo::PROTOCOL {
        Some(Hangup::OldProtocol(info.protocol))
    } else if !LearnerInfo::go_together(info.protocol, cx.config.protocol) {
        Some(Hangup::OtherApplication(info.protocol))
    } else if newer {
        Some(Hangup::NewerConfiguration { theirs: info.config_version, ours })
    } else if info.id == Some(cx.config.id) {
        Some(Hangup::OwnId(cx.config.id))
    } else if !(cx.config.strangers.may_learn() || id.is_some_and(|id| cx.config.is_member(id))) {
        Some(Hangup::Stranger(id.unwrap_or(ServerId::ANONYMOUS_OBSERVER)))
    } else if !info.accepted_epoch.is_valid() || spent {
        Some(Hangup::EpochOutOfRange(info.accepted_epoch))
    } else {
        None
    };
    if let Some(reason) = refuse {
        state.drop_learner(cx, link, reason);
        return match id.filter(|_| follower && newer) {
            Some(voter) => give_way(cx, state, voter),
            None => RoleChange::Stay,
        };
    }
    let id = id.unwrap_or_else(|| state.learners.name_anonymous());
    if let Some(old) = state.learners.link_of(id) {
        // Its acknowledgements go with the old link, before the new one is answered.
        state.drop_learner(cx, old, Hangup::Replaced(id));
    }
    let votes = follower && cx.quorum.is_voter(id);
    if let Some(learner) = state.learners.get_mut(link) {
        (learner.id, learner.votes, learner.follower) = (id, votes, follower);
        learner.priority = LearnerInfo::priority(info.protocol);
        learner.leases = LearnerInfo::leases(info.protocol);
        learner.collects = LearnerInfo::collects(info.protocol);
        learner.config_version = info.config_version;
        learner.stage = Stage::Introduced;
    }
    match state.epoch() {
        None => {
            if let Phase::Discovery(discovery) = &mut state.phase {
                discovery.on_info(cx, id, votes, info.accepted_epoch);
            }
            return state.advance(cx);
        }
        Some(epoch) if info.accepted_epoch > epoch && votes => {
            // It would refuse our epoch for ever; a new leadership begins above its promise.
            let accepted = info.accepted_epoch;
            if cx.concessions.promise.insert(id, accepted).is_none() {
                return RoleChange::leave(Reason::LaterPromise { voter: id, accepted });
            }
        }
        Some(_) => {}
    }
    state.tell(cx, link);
    RoleChange::Stay
}

/// A voter knows a newer configuration. One who looks takes that over from it, one who leads does not; so we look
/// again, rather than wait for a server that cannot follow.
fn give_way(cx: &mut Context<'_>, state: &LeaderState, voter: ServerId) -> RoleChange {
    let established = matches!(state.phase, Phase::Broadcast(_));
    let gives = cx.config.reconfig_enabled && !established && cx.quorum.weight(voter) > 0;
    if gives && cx.concessions.history.insert(voter) {
        RoleChange::leave(Reason::NewerConfiguration { from: voter })
    } else {
        RoleChange::Stay
    }
}

/// ACKEPOCH: it follows no older leader from now on; this is how new it is.
pub(super) fn on_ack_epoch(
    cx: &mut Context<'_>,
    state: &mut LeaderState,
    link: LinkId,
    last: Zxid,
    current_epoch: Option<Epoch>,
) -> RoleChange {
    // It has promised our epoch, and no server logs anything of an epoch that it has not promised.
    if state.epoch().is_some_and(|epoch| last.epoch() > epoch) {
        state.drop_learner(cx, link, Hangup::EpochOutOfRange(last.epoch()));
        return RoleChange::Stay;
    }
    let Some(learner) = state.learners.get_mut(link) else { return RoleChange::Stay };
    let (id, votes) = (learner.id, learner.votes);
    learner.stage = Stage::Promised(last);
    // It has logged something behind the version in force here, and had none in force when it came.
    let version = cx.config.membership.version();
    let behind = last.0 > version && !last.is_epoch_start();
    learner.blind = version > 0 && learner.config_version == 0 && behind && !learner.collects;
    let Phase::Discovery(discovery) = &mut state.phase else {
        // Late: it is synchronised like any other, however new it is; what it has beyond us was
        // never committed.
        state.synchronise(cx, link, last, None);
        return RoleChange::Stay;
    };
    let Some(current_epoch) = current_epoch else {
        if votes && !discovery.has_promised(cx, id) {
            let learners = state.learners.values();
            let may =
                learners.filter(|l| l.votes && matches!(l.stage, Stage::Introduced | Stage::Told));
            return discovery.on_lost_promise(cx, id, may.map(|l| l.id));
        }
        return RoleChange::Stay;
    };
    if !current_epoch.is_valid() {
        state.drop_learner(cx, link, Hangup::EpochOutOfRange(current_epoch));
        return RoleChange::Stay;
    }
    if is_newer(cx, current_epoch, last) {
        if votes && !cx.config.membership.is_participant(id) {
            discovery
                .on_promise_ahead(cx, Vote { peer_epoch: current_epoch, zxid: last, leader: id });
            if discovery.is_ahead_for_good(cx) {
                discovery.nominate(cx);
                return RoleChange::leave(Reason::NewerHistory { voter: id, current_epoch, last });
            }
            return state.advance(cx);
        }
        // The election was wrong. The next one finds the newer voter; an observer none finds.
        if votes && cx.quorum.weight(id) > 0 && cx.concessions.history.insert(id) {
            return RoleChange::leave(Reason::NewerHistory { voter: id, current_epoch, last });
        }
        state.drop_learner(cx, link, Hangup::NewerHistory(last));
        return RoleChange::Stay;
    }
    if votes && last.0 >= 0 {
        discovery.on_promise(cx, id);
    }
    state.advance(cx)
}
