//! The ways in which the simulated world is unkind, the paths that servers took, and how often each was.
//!
//! A simulator that never does what it claims to do proves nothing, so each kind of fault is counted
//! where it takes effect, each path of recovery where it is taken, and the large tests fail if one of
//! them never was.

use std::fmt;

use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::report::{Change, How, Reason, Report};

/// A kind of fault, or a path that a server took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// A message took much longer than usual.
    DelaySpike,
    /// The bytes of a message arrived in two pieces.
    SplitMessage,
    /// A link broke while it was in use.
    LinkReset,
    /// A message was written and lost with its link.
    MessageLost,
    /// A notification arrived twice.
    DuplicateNotification,
    /// A notification that was not yet sent was replaced by a newer one.
    MailboxReplaced,
    /// Two servers could not hear each other.
    Partition,
    /// One server could hear another, but not the other way round.
    OneWayPartition,
    /// A stalled link went on after the partition.
    StallResumed,
    /// A link was stalled for so long that both ends gave it up.
    StallSilent,
    /// A dial was refused.
    DialRefused,
    /// A dial was lost, repeated by TCP and succeeded.
    DialRetried,
    /// A dial timed out.
    DialTimedOut,
    /// A message was sent to a server that knew nothing of the link any more.
    HalfOpen,
    /// A process ended; its system closed its links.
    ProcessCrash,
    /// A machine ended; nobody was told.
    PowerLoss,
    /// A server crashed between two outputs of one step.
    CrashInsideStep,
    /// A crash took a write that was not yet synced.
    WriteLost,
    /// A write survived a crash although it was not yet reported as durable.
    WriteSurvived,
    /// A disk took much longer than usual.
    SlowDisk,
    /// A server was started again with what its disk held.
    Restart,
    /// A server was started again with an empty disk.
    Wipe,
    /// A server stood still for a while.
    Pause,
    /// A server started when the others had a leader already.
    LateStart,
    /// An established leader crashed.
    LeaderCrash,
    /// The link broke, or the server ended, while the log or a snapshot was streamed.
    StreamCut,
    /// What was to be streamed could not be read.
    StreamUnreadable,
    /// A snapshot could not be taken.
    SnapshotFailed,
    /// A snapshot was taken and put on disk.
    SnapshotTaken,
    /// The log was streamed as PROPOSALs.
    StreamedProposals,
    /// The log was streamed as PROPOSALs with their COMMITs.
    StreamedCommitted,
    /// COMMITs were streamed.
    StreamedCommits,
    /// The log was streamed as INFORMs.
    StreamedInforms,
    /// A learner was brought up by DIFF.
    SyncDiff,
    /// A learner was brought up by TRUNC.
    SyncTrunc,
    /// A learner was brought up by SNAP.
    SyncSnap,
    /// A snapshot was sent under the label of an epoch's start.
    SnapOfEpochStart,
    /// A log was cut.
    LogCut,
    /// A received snapshot took the place of a history.
    Installed,
    /// A snapshot had come, or was coming, and was not installed.
    SnapshotAbandoned,
    /// A server started with transactions of an epoch that was not its current one yet.
    SyncInterrupted,
    /// A zxid was found in a log on disk.
    LocatedHeld,
    /// A zxid was not found in a log on disk.
    LocatedElsewhere,
    /// A transaction was sent from memory.
    ProposedLive,
    /// Several transactions were proposed together.
    ProposedInRuns,
    /// A transaction went out to an observer as it was committed.
    Informed,
    /// A leader committed a transaction that its own disk did not hold yet.
    CommittedElsewhereFirst,
    /// A transaction was prepared for a reign that was over.
    PreparedInVain,
    /// A state that was kept apart was adopted.
    Adopted,
    /// A state that was kept apart was older than what was delivered.
    Overtaken,
    /// A read was answered by a leader.
    ReadAtLeader,
    /// A read was answered by a learner.
    ReadAtLearner,
    /// A read was refused.
    ReadRefused,
    /// A request was refused.
    RequestRefused,
    /// A request was applied where it was asked.
    RequestApplied,
    /// A request was accepted and not in what the next reign inherited.
    RequestLost,
    /// A leader had no number left for what was asked of it, and made room for a new epoch.
    NumbersSpent,
    /// A crash left a part of a transaction at the end of the log.
    TornWrite,
    /// A leader gave its seat to a follower.
    SeatGiven,
    /// A leader was about to give its seat away, and kept it.
    SeatKept,
    /// The membership changed while the ensemble served.
    Reconfigured,
    /// A server started that knew of a change which was not in force.
    ChangeUnderway,
    /// A leader was established while another did not know yet that its own reign was over.
    TwoReigns,
}

impl FaultClass {
    /// Those that elections meet without any transaction.
    pub const OF_ELECTIONS: &[Self] = Self::ALL.split_at(25).0;

    /// All of them.
    pub const ALL: [Self; 63] = [
        Self::DelaySpike,
        Self::SplitMessage,
        Self::LinkReset,
        Self::MessageLost,
        Self::DuplicateNotification,
        Self::MailboxReplaced,
        Self::Partition,
        Self::OneWayPartition,
        Self::StallResumed,
        Self::StallSilent,
        Self::DialRefused,
        Self::DialRetried,
        Self::DialTimedOut,
        Self::HalfOpen,
        Self::ProcessCrash,
        Self::PowerLoss,
        Self::CrashInsideStep,
        Self::WriteLost,
        Self::WriteSurvived,
        Self::SlowDisk,
        Self::Restart,
        Self::Wipe,
        Self::Pause,
        Self::LateStart,
        Self::LeaderCrash,
        Self::StreamCut,
        Self::StreamUnreadable,
        Self::SnapshotFailed,
        Self::SnapshotTaken,
        Self::StreamedProposals,
        Self::StreamedCommitted,
        Self::StreamedCommits,
        Self::StreamedInforms,
        Self::SyncDiff,
        Self::SyncTrunc,
        Self::SyncSnap,
        Self::SnapOfEpochStart,
        Self::LogCut,
        Self::Installed,
        Self::SnapshotAbandoned,
        Self::SyncInterrupted,
        Self::LocatedHeld,
        Self::LocatedElsewhere,
        Self::ProposedLive,
        Self::ProposedInRuns,
        Self::Informed,
        Self::CommittedElsewhereFirst,
        Self::PreparedInVain,
        Self::Adopted,
        Self::Overtaken,
        Self::ReadAtLeader,
        Self::ReadAtLearner,
        Self::ReadRefused,
        Self::RequestRefused,
        Self::RequestApplied,
        Self::RequestLost,
        Self::NumbersSpent,
        Self::TornWrite,
        Self::SeatGiven,
        Self::SeatKept,
        Self::Reconfigured,
        Self::ChangeUnderway,
        Self::TwoReigns,
    ];
}

/// How often each kind has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    counts: [u64; FaultClass::ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self { counts: [0; FaultClass::ALL.len()] }
    }
}

impl Coverage {
    /// Counts one.
    pub fn hit(&mut self, class: FaultClass) {
        self.counts[class as usize] += 1;
    }

    /// Counts several.
    pub fn hits(&mut self, class: FaultClass, count: u64) {
        self.counts[class as usize] += count;
    }

    /// Counts what an output shows.
    pub(crate) fn note(&mut self, output: &Output, leads: bool) {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others show nothing of this")]
        let class = match output {
            Output::Persist { write: Write::Truncate(_), .. } => FaultClass::LogCut,
            Output::Persist { write: Write::Membership(_), .. } if leads => {
                FaultClass::Reconfigured
            }
            Output::Send { message: Message::Packet(packet), .. } => match packet {
                Packet::Proposal(_) => FaultClass::ProposedLive,
                Packet::Proposals(_) => FaultClass::ProposedInRuns,
                Packet::Inform(_) => FaultClass::Informed,
                _ => return,
            },
            Output::Report(Report { reason: Reason::CounterEnd(_), .. }) => {
                FaultClass::NumbersSpent
            }
            Output::Answer(_) if leads => FaultClass::ReadAtLeader,
            Output::Answer(_) => FaultClass::ReadAtLearner,
            Output::ReadRefused { .. } => FaultClass::ReadRefused,
            Output::Refused { .. } => FaultClass::RequestRefused,
            Output::Report(Report { change: Change::Sync { how, .. }, .. }) if !leads => {
                match how {
                    How::Diff => FaultClass::SyncDiff,
                    How::Trunc => FaultClass::SyncTrunc,
                    How::Snap => FaultClass::SyncSnap,
                }
            }
            _ => return,
        };
        self.hit(class);
    }

    /// How often one has happened.
    pub fn of(&self, class: FaultClass) -> u64 {
        self.counts[class as usize]
    }

    /// Adds what another world has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Those of `classes` that never happened.
    pub fn missing(&self, classes: &[FaultClass]) -> Vec<FaultClass> {
        classes.iter().copied().filter(|class| self.of(*class) == 0).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in FaultClass::ALL {
            writeln!(f, "{:>12} {class:?}", self.of(class))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_complete_and_in_order() {
        for (at, class) in FaultClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
        }
    }
}
