//! A cursor: how far a learner was sent and told, and whether more may be sent now.
//!
//! The pace is counted in bytes: two parts of a learner's allowance may be on their way, and the next is sent when the
//! driver says that the first is written. What is sent next is decided in `progress`.

use crate::context::Context;
use crate::id::LinkId;
use crate::output::{Form, Output};
use crate::zxid::Zxid;

/// What a learner gets next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Everything through this was sent, by us or by the driver.
    pub sent: Zxid,
    /// COMMIT was sent for everything through this.
    pub told: Zxid,
    /// Whether transactions that are committed go out without their COMMIT until NEWLEADER is sent.
    ///
    /// After a TRUNC a ZooKeeper learner applies what comes with COMMIT in memory only; what comes
    /// without, it logs.
    pub reserved: bool,
    /// Whether NEWLEADER was sent.
    pub new_leader: bool,
    /// Whether it was sent a snapshot.
    pub snapshot: bool,
    /// The driver sends; we say nothing meanwhile.
    pub busy: Busy,
    /// How many bytes were sent since the last [`Output::NotifyDrained`].
    unpaced: usize,
    /// How many of them were not answered yet.
    paces: u8,
}

/// What the driver does for a learner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Busy {
    /// Nothing.
    #[default]
    No,
    /// It looks for its last zxid.
    Locating,
    /// It sends a snapshot with this label.
    Snapshot(Zxid),
    /// It copies the log through this.
    Log(Zxid, Form),
}

/// How many parts of a learner's allowance may be under way.
const PACES_MAX: u8 = 2;

/// How many bytes such a part has.
pub(super) fn part(cx: &Context<'_>) -> usize {
    (cx.config.history.pace_bytes / usize::from(PACES_MAX)).max(1)
}

impl Cursor {
    /// A cursor of a learner that has everything through `sent`, and knows it to be committed through
    /// `told`.
    pub fn at(sent: Zxid, told: Zxid, reserved: bool) -> Self {
        Self { sent, told, reserved, ..Self::default() }
    }

    /// Everything sent before some [`Output::NotifyDrained`] was written.
    pub const fn on_drained(&mut self) {
        self.paces = self.paces.saturating_sub(1);
    }

    /// The driver has done what it was asked to do.
    pub const fn on_streamed(&mut self) {
        match self.busy {
            Busy::No | Busy::Locating => {}
            Busy::Snapshot(label) => {
                (self.sent, self.told, self.snapshot) = (label, label, true);
            }
            Busy::Log(through, Form::Proposals) => self.sent = through,
            Busy::Log(through, Form::Commits) => self.told = through,
            Busy::Log(through, Form::Committed | Form::Informs) => {
                (self.sent, self.told) = (through, through);
            }
        }
        self.busy = Busy::No;
    }

    /// Everything beyond this was surely not sent. The driver may have sent some of what it streams.
    pub fn reach(&self) -> Zxid {
        match self.busy {
            Busy::Log(through, Form::Proposals | Form::Committed) => self.sent.max(through),
            Busy::Log(_, Form::Commits | Form::Informs)
            | Busy::No
            | Busy::Locating
            | Busy::Snapshot(_) => self.sent,
        }
    }

    /// Whether the driver sends, so that nothing else may be sent.
    pub const fn is_streaming(&self) -> bool {
        matches!(self.busy, Busy::Snapshot(_) | Busy::Log(..))
    }

    pub(super) const fn may_send(&self) -> bool {
        matches!(self.busy, Busy::No) && self.paces < PACES_MAX
    }

    pub(super) fn count(&mut self, cx: &mut Context<'_>, link: LinkId, bytes: usize) {
        self.unpaced += bytes;
        if self.unpaced >= part(cx) {
            (self.unpaced, self.paces) = (0, self.paces + 1);
            cx.outbox.push(Output::NotifyDrained(link));
        }
    }
}
