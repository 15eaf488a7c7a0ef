//! The ways in which the simulated world is unkind, the paths that servers took, and how often each was.
//!
//! A simulator that never does what it claims to do proves nothing, so each kind of fault is counted
//! where it takes effect, each path of recovery where it is taken, and the large tests fail if one of
//! them never was.

use std::fmt;

use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::Hangup;
use quorate_core::report::{Change, How, Reason, Report};

/// How a server crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The process ends: its system closes its connections and refuses new ones.
    Process,
    /// The machine loses power: no peer hears anything.
    Power,
}

/// Declares the classes once, and the list of them with it.
macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident,)*) => {
        /// A kind of fault, or a path that a server took.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultClass {
            $($(#[$doc])* $class,)*
        }

        /// How many there are.
        const COUNT: usize = [$(FaultClass::$class),*].len();

        impl FaultClass {
            /// All of them: first what the world does, then what servers do about it.
            pub const ALL: [Self; COUNT] = [$(Self::$class),*];
        }
    };
}

classes! {
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
    /// A dial failed because the certificate of who was dialled is refused.
    CertificateRefusedByDialler,
    /// A dial came through, and the link ended because the certificate of who dialled is refused.
    CertificateRefusedByAcceptor,
    /// There was little room left on a disk.
    LittleRoom,
    /// A dial was lost, repeated by TCP and succeeded.
    DialRetried,
    /// A dial timed out.
    DialTimedOut,
    /// A non-member claimed to be a voter, and was refused.
    ClaimRefused,
    /// A dial hung, and was called off when its server knocked.
    DialCalledOff,
    /// A message was sent to a server that knew nothing of the link any more.
    HalfOpen,
    /// A process ended; its system closed its links.
    ProcessCrash,
    /// A machine ended; no peer was told.
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
    /// A connection broke in the middle of a message.
    CutInside,
    /// What was on an old connection arrived when a newer one was in use.
    LinkLingered,
    /// A server connected although the connection before was still held.
    SecondLink,
    /// A message waited for its turn on a connection that carries little.
    SlowLink,
    /// A dial took much longer than usual.
    SlowDial,
    /// One server could hear all the others, and these only it.
    PartialConnectivity,
    /// A message of a member arrived damaged, and its connection ended.
    DamagedMessage,
    /// A notification of a member arrived damaged, and was left out.
    DamagedNotification,
    /// A non-member sent bytes that are no message.
    StrangeBytes,
    /// A non-member introduced itself, in a way that no server may use or in one that any server may.
    StrangeIntroduction,
    /// A notification of a non-member was heard.
    StrangeNotification,
    /// A packet of a non-member was heard.
    StrangePacket,
    /// Many connections at once said nothing, or not all of it.
    HandshakeFlood,
    /// A non-member sent hundreds of messages at once.
    MessageFlood,
    /// A server ran whose clock was a little fast or slow, within what leases allow.
    ClockDrift,
    /// A server ran whose clock was fast or slow beyond what leases allow.
    ClockFarOff,
    /// A clock jumped forward.
    ClockJump,
    /// A server stood still, and so did its clock.
    Suspended,
    /// A server said what some version of ZooKeeper says, and nothing that only ours do.
    OldVersion,
    /// A server that waits at the end of an election, as ZooKeeper's do, heard something, and began to wait anew.
    WaitBegunAnew,
    /// A server went back into a round that had ended.
    BackIntoRound,
    /// A disk failed, and its server gave up its role, or ended.
    DiskError,
    /// A disk was full, and its server gave up its role, or ended.
    DiskFull,
    /// A disk was tried, and did not work yet.
    DiskTried,
    /// A server came back with what its disk had, in the process that had been told of the failure.
    DiskRecovered,
    /// What could be read of a log behind its last sync was not believed.
    TailDropped,
    /// A write waited for a disk that hung.
    DiskHangs,
    /// The quorum port of a server accepted no connections, for a while or until it was started anew.
    PortFails,
    /// A learner dialled such a port.
    PortFailsDial,
    /// The link broke, or the server ended, while the log or a snapshot was streamed.
    StreamCut,
    /// What was to be streamed could not be read.
    StreamUnreadable,
    /// A snapshot could not be taken.
    SnapshotFailed,
    /// A crash left a part of a transaction at the end of the log.
    TornWrite,
    /// A crash took a write, and left one that came after it.
    MisorderedWrites,
    /// A crash left a transaction that was being written without its middle.
    HoledWrite,
    /// A crash took, or tore, the mark of where the sync before had ended; the older one counted.
    MarkLost,
    /// All machines lost their power at once, and most of them while they were writing.
    SitePowerLoss,
    /// A machine lost power in the middle of a sync: some of its writes were durable, or all, and no server knew.
    CrashInsideSync,
    /// A server became a member that was none before.
    Joined,
    /// A server left the membership.
    Left,
    /// A voter was started again with an empty disk.
    VoterWiped,
    /// A server was started again after its lease was set anew: to less, to none, or to as much as before.
    LeaseChanged,
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
    /// An observer served in an epoch below the one that it had promised.
    ServedBelowPromise,
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
    /// A transaction was prepared for a leadership that was over.
    PreparedInVain,
    /// What an application made of a request was too long, and its refusal was proposed.
    PreparedTooLong,
    /// A staged state was adopted.
    Adopted,
    /// A staged state was older than what was delivered.
    Overtaken,
    /// A read was answered by a leader.
    ReadAtLeader,
    /// A read was answered by a learner.
    ReadAtLearner,
    /// A read was refused.
    ReadRefused,
    /// A request was refused.
    RequestRefused,
    /// An application was given what only the log on disk had.
    Replayed,
    /// A snapshot took the place of the log while an application was to read it.
    ReplayOvertaken,
    /// An application was so slow that what was committed had to wait.
    DeliveryHeldBack,
    /// A request was applied where it was asked.
    RequestApplied,
    /// A request was accepted and not in what the next leadership inherited.
    RequestLost,
    /// The server that accepted a request could not tell what became of it.
    RequestUnknown,
    /// A leader had no number left for what was asked of it, and made room for a new epoch.
    NumbersSpent,
    /// A follower gave up its leader because its disk did not keep up.
    DiskBehind,
    /// A leader gave its leadership to a follower.
    LeadershipGiven,
    /// A leader was about to give its leadership away, and kept it.
    LeadershipKept,
    /// The membership changed while the ensemble served.
    Reconfigured,
    /// A server started that knew of a change which was not in force.
    ChangeUnderway,
    /// A change of the membership was made while a snapshot was on its way, and came behind it.
    ChangeAcrossSnapshot,
    /// Of what came with a snapshot two changes were new to its receiver.
    TwoChangesAcrossSnapshot,
    /// A change of the membership was cut, or was not in the history that took the place of the one that had it.
    ChangeCut,
    /// A server that does not take memberships with a snapshot was left to an election, since it needed one while a
    /// change was under way.
    ///
    /// Hardly ever in a campaign: its leader goes by an earlier change that it does not know, and would have told it
    /// of that on their election link. So that link is missing, and the other stands; here a way passes for both ports
    /// of a server or for none, and what is left is the moment before the link is up.
    LeftToAnElection,
    /// A leader was refused that did not know of a change.
    ///
    /// Hardly ever in a campaign: a server of ours that has a change in its history goes by it. So that leader is of
    /// an earlier version, got two changes with one snapshot and lost its leader before it was told of them, and is
    /// elected by those who have not heard that the first is in force, without any of those who have.
    OlderMembershipRefused,
    /// A server said what servers of ours have said before SNAP told of memberships.
    EarlierVersion,
    /// A leader of ZooKeeper said COMMIT to a learner that it had not told to serve yet.
    CommittedBeforeUpToDate,
    /// A leader was established while another did not know yet that its own leadership was over.
    TwoLeaderships,
    /// The wall clock of a server with clients was set forward.
    WallClockAhead,
    /// It was set back.
    WallClockBack,
    /// The wall clocks of servers with clients were minutes apart.
    WallClocksApart,
    /// A leader with clients stood still.
    LeaderPause,
    /// A leader was asked to hand over, or stood still, while the time-out of a silent session was about to pass.
    LeaderLostAtExpiry,
    /// A client said nothing for so long that its session could expire.
    SilentClient,
    /// A client did not read what it was sent.
    UnreadReplies,
    /// Replies to such a client were held back.
    RepliesHeldBack,
    /// A server of ZooKeeper was told what it had forwarded for its clients.
    Paired,
    /// Events were sent to such a client all the same.
    EventsWhileHeldBack,
    /// The disk under a leader with clients was full, and it ended.
    LeaderDiskFull,
    /// The disk under a leader with clients hung.
    LeaderDiskHangs,
    /// A session expired.
    SessionExpired,
    /// A session came to another server.
    SessionMoved,
    /// A request was prepared that came by a connection which its session had left.
    MovedWriteRefused,
    /// Watches were set again on a new connection.
    WatchesSetAgain,
    /// An event was not told to a client that may not read the node.
    EventHidden,
    /// A request of a client was refused for want of a permission.
    PermissionMissing,
    /// A change was counted by a quota.
    QuotaCounted,
    /// A container was removed since it was empty.
    ContainerRemoved,
    /// A TTL node was removed since its time had passed.
    TtlNodeRemoved,
    /// A container or a TTL node was about to be removed, and was not due any more.
    RemovalRefused,
    /// A session was closed by its client.
    SessionClosed,
    /// A server of ZooKeeper led servers with clients.
    LedByJava,
    /// It has made a transaction of a request.
    PreparedByJava,
    /// It has written a snapshot for a learner while transactions went on.
    WrittenMeanwhile,
    /// A server of ZooKeeper started again as one of ours, or one of ours as one of ZooKeeper.
    KindChanged,
    /// A client of a server of ZooKeeper asked for what ends such servers.
    PoisonAsked,
    /// A server of ZooKeeper ended of a transaction that none can apply.
    PoisonApplied,
    /// A client of a server of ours asked for such.
    PoisonScreened,
    /// A server with clients was stopped in order.
    Drained,
}

impl FaultClass {
    /// What the world does to servers.
    pub const FAULTS: &[Self] = Self::ALL.split_at(Self::SnapshotTaken as usize).0;

    /// What servers without clients of ZooKeeper meet, and do.
    pub const OF_SERVERS: &[Self] = Self::ALL.split_at(Self::WallClockAhead as usize).0;

    /// What only servers with clients of ZooKeeper meet, and what those come across.
    pub const OF_CLIENTS: &[Self] = Self::ALL.split_at(Self::WallClockAhead as usize).1;

    /// What elections meet without any transaction.
    pub const OF_ELECTIONS: &[Self] = Self::ALL.split_at(Self::StreamCut as usize).0;
}

/// How often each kind has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    counts: [u64; COUNT],
}

impl Default for Coverage {
    fn default() -> Self {
        Self { counts: [0; COUNT] }
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
            Output::Hangup { reason: Hangup::OlderMembership { .. }, .. } => {
                FaultClass::OlderMembershipRefused
            }
            Output::Hangup { reason: Hangup::Untold { .. }, .. } => FaultClass::LeftToAnElection,
            Output::Hangup { reason: Hangup::NotAtHome(_), .. } => FaultClass::ClaimRefused,
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
            Output::Hangup { reason: Hangup::DiskBehind { .. }, .. } => FaultClass::DiskBehind,
            Output::Report(Report { change: Change::BackIntoRound(_), .. }) => {
                FaultClass::BackIntoRound
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

    /// Those that happened at all.
    pub fn occurred(&self) -> impl Iterator<Item = FaultClass> + '_ {
        FaultClass::ALL.into_iter().filter(|class| self.of(*class) > 0)
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
