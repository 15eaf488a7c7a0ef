//! The ways in which the simulated world is unkind, and how often each has happened.
//!
//! A simulator that never does what it claims to do proves nothing, so each kind of fault is counted
//! where it takes effect, and the large test fails if one of them never did.

use std::fmt;

/// A kind of fault.
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
}

impl FaultClass {
    /// All of them.
    pub const ALL: [Self; 25] = [
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
    ];
}

/// How often each kind of fault has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: [u64; FaultClass::ALL.len()],
}

impl Coverage {
    /// Counts one.
    pub fn hit(&mut self, class: FaultClass) {
        self.counts[class as usize] += 1;
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

    /// Those that never happened.
    pub fn missing(&self) -> Vec<FaultClass> {
        FaultClass::ALL.into_iter().filter(|class| self.of(*class) == 0).collect()
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
