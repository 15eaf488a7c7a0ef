//! What a server is at the moment, and the machine of that.
//!
//! ```text
//!   idle ─► fencing ─► looking ─┬─► leading ──┬─► resting ─► fencing …        any ─► stopped
//!            (disk)             └─► learning ─┘   (a back-off)
//! ```
//!
//! When one becomes another is decided above.

use alloc::vec::Vec;

use crate::context::Context;
use crate::id::ServerId;
use crate::leader::Leader;
use crate::learner::Learner;
use crate::output::Output;
use crate::status::{LearnerStatus, Phase};

/// The role of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "there is one of it, and packets are frequent")]
pub(super) enum Role {
    /// Not started yet.
    Idle,
    /// About to look, as soon as its writes are on disk: a vote tells what they say.
    Fencing,
    /// About to look, after a back-off.
    Resting,
    Looking,
    Leading(Leader),
    Learning(Learner),
    Stopped,
}

impl Role {
    /// How far it has come, who leads, and who learns from us.
    pub(super) fn seen_by(&self, own: ServerId) -> (Phase, Option<ServerId>, Vec<LearnerStatus>) {
        match self {
            Self::Leading(leader) => (leader.phase(), Some(own), leader.learner_statuses()),
            Self::Learning(learner) => (learner.phase(), Some(learner.leader()), Vec::new()),
            Self::Idle | Self::Fencing | Self::Resting | Self::Looking | Self::Stopped => {
                (Phase::Election, None, Vec::new())
            }
        }
    }

    /// Tells those who wait for something of the role that it is over, and the application that what
    /// it prepared or began to receive comes to nothing.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Leading(leader) => {
                leader.end(cx);
                cx.delivery.abandon(cx.history, cx.outbox);
            }
            Self::Learning(learner) => {
                learner.end(cx);
                if learner.receives() {
                    cx.outbox.push(Output::Discard);
                }
            }
            Self::Idle | Self::Fencing | Self::Resting | Self::Looking | Self::Stopped => {}
        }
    }
}
