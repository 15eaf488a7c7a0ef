//! Mistakes that are made on purpose, one at a time: a checker that misses one is itself a mistake.
//!
//! ```text
//!   plant(Some(Mistake::CommitToldEarly)) ─► planted!(CommitToldEarly), at the place of the rule, is true
//! ```
//!
//! This room exists only in builds with `--cfg quorate_planted`. In all others `planted!` is the constant
//! `false`, and nothing of it is left. It is no feature: features of a crate unite, so that somebody else's
//! could reach whoever runs a server.
//!
//! What is planted is the same for the whole process: whoever plants looks for it alone.

use core::sync::atomic::{AtomicU8, Ordering};

/// Whether a mistake is planted, at the place of the rule that it breaks.
#[macro_export]
macro_rules! planted {
    ($mistake:ident) => {
        $crate::planted::is($crate::planted::Mistake::$mistake)
    };
}

macro_rules! mistakes {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// What may be done wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mistake {
            $($(#[$doc])+ $name,)+
        }

        impl Mistake {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

mistakes! {
    // --- votes ---

    /// The larger id breaks a tie of zxids of different epochs (ZOOKEEPER-1419).
    TieBreakAcrossEpochs,
    /// A vote of an earlier round is taken, and its round with it (ZOOKEEPER-1514).
    RoundGoesBack,
    /// A server leads because others followed it in an earlier round (ZOOKEEPER-1514).
    LeadsInAnEarlierRound,
    /// A leader is joined on its followers' word alone; it may be gone (ZOOKEEPER-569).
    JoinsOnFollowersWord,
    /// Votes of followers are compared in full, though they were cast at different times (ZOOKEEPER-1732).
    SettledVotesComparedInFull,
    /// A server of weight 0 is elected.
    WeightlessElected,
    /// A server whose quorum port accepts no connections is elected.
    UnreachableElected,
    /// Observers count in quorums (ZOOKEEPER-764, -769).
    ObserversCounted,
    /// Half of an even number of voters is a quorum.
    HalfIsEnough,
    /// A round ends at once though some that are counted go on for a while (ZooKeeper's `finalizeWait`).
    OthersSettleAtOnce,
    /// Whoever has settled begins another round where one that it needs goes on in the same, or waits for it.
    RoundLeftForBetterVote,
    /// A vote tells of what is not on disk yet.
    VoteBeforeDisk,
    /// Votes are compared as if no number were negative: who proposes nobody has the best one.
    ComparedUnsigned,
    /// A server that does not know what it has lost votes as if it never had anything (ZOOKEEPER-261).
    WipedVoterVotes,
    /// The peer epoch of a vote does not arrive.
    PeerEpochLeftOut,

    // --- elections by generation ---

    /// A vote is told before it is on disk.
    GrantBeforeDisk,
    /// A candidate counts its own vote, and asks, before that is on disk.
    OwnVoteBeforeDisk,
    /// Whoever asks in a later generation gets the vote, whatever its history.
    LogUnchecked,
    /// A second vote is given in a generation.
    SecondGrant,
    /// Answers to an earlier attempt are counted.
    StaleAnswerCounted,
    /// Answers to what is not asked yet, because our own vote is on its way to the disk, are counted.
    GuessCounted,
    /// An answer counts though it says no.
    RejectionCounted,
    /// Votes are given though a leader was heard just now.
    LiveLeaderForgotten,
    /// A generation that is seen is taken for one that was voted in.
    SeenIsVoted,
    /// A leader leads on though nobody hears it.
    LeadsUnheard,
    /// A server that names another asks for votes with that one's history.
    NomineeClaimed,

    // --- links ---

    /// Whoever claims to be a voter takes the place of the link to it (`QuorumCnxManager` does that).
    ClaimBelieved,

    // --- discovery ---

    /// A new epoch is one more than that of the last transaction, whatever was promised (ZOOKEEPER-335).
    EpochFromLog,
    /// A promised epoch is promised a second time, to whoever announces it then (ZOOKEEPER-1291).
    EpochPromisedTwice,
    /// A leader goes on though a voter has a newer history (Zab, phase 1).
    NewerVoterUnnoticed,
    /// A leader counts its own promise before that is on disk.
    OwnPromiseBeforeDisk,
    /// LEADERINFO leaves before the epoch is on the leader's disk.
    LeaderInfoBeforeDisk,
    /// An observer refuses whoever leads below its promise, which no leader ever asks for.
    ObserverHeldByPromise,
    /// An observer that follows below its promise goes on when it is told that it has a vote.
    PromiseForgottenByVoter,
    /// ACKEPOCH leaves before the epoch is on disk.
    AckEpochBeforeDisk,

    // --- synchronisation ---

    /// NEWLEADER is acknowledged before the history is on disk (ZOOKEEPER-3911, -4646).
    HistoryAckBeforeDisk,
    /// A leader counts its own history before its current epoch is on disk.
    OwnHistoryBeforeDisk,
    /// The current epoch is written before the history that it stands for (ZOOKEEPER-4643).
    EpochBeforeHistory,
    /// A COMMIT that comes before UPTODATE is delivered at once.
    DeliveredAtCommit,
    /// UPTODATE delivers the whole log.
    DeliveredWholeLog,
    /// A leader delivers the history that it brings along before a quorum has it.
    LeaderDeliversUnconfirmed,
    /// The history that a leader brings along goes out without COMMIT (ZOOKEEPER-4785).
    HistoryWithoutCommit,
    /// A learner's orphan beyond the leader's last is left where it is (ZOOKEEPER-1154).
    OrphanBeyondKept,
    /// A learner's orphan between two of the leader's is left where it is (ZOOKEEPER-1156).
    OrphanBetweenKept,
    /// A learner cuts one transaction too few.
    CutOneTooFew,
    /// DIFF begins one transaction too late.
    DiffOneTooLate,
    /// What is proposed goes to a learner that lacks what is before it (ZOOKEEPER-962).
    ForwardedBeforeItsTurn,
    /// What is sent from disk ends before what is sent from memory begins (ZOOKEEPER-2418).
    DiskAndWindowApart,
    /// A snapshot is labelled with what is logged, and holds what is committed (ZOOKEEPER-3104).
    LabelAheadOfState,
    /// A snapshot for one that has more than its leader is labelled below that one's log.
    LabelBelowEpochStart,
    /// A snapshot older than a learner is sent where a DIFF would do.
    SnapshotBelowLearner,
    /// What came without COMMIT before UPTODATE is forgotten (ZOOKEEPER-4394).
    PendingForgotten,
    /// An acknowledgement counts on when its link has ended, and its learner is cut to what is committed.
    AckOutlivesLink,
    /// An acknowledgement of what was never sent counts.
    AckOfUnsent,
    /// An acknowledgement stands for those before it that have not come.
    AckAcrossGap,

    // --- broadcast ---

    /// A proposal is acknowledged before it is on disk.
    AckBeforeDisk,
    /// A leader counts its own copy before that is on its disk.
    OwnCopyBeforeDisk,
    /// A follower takes whatever it is sent, though its disk hangs.
    UnsyncedUnbounded,
    /// COMMIT leaves with the proposal.
    CommitToldEarly,
    /// INFORM leaves with the proposal.
    InformedEarly,
    /// What was prepared for an earlier reign is proposed in this one.
    OldPreparationProposed,
    /// The application is not told that what it prepared comes to nothing.
    PreparationsKept,
    /// What an application makes of a request is proposed however long it is (ZOOKEEPER-4306).
    LongTransactionTaken,
    /// A refusal takes the place of what is too long, and the application is not told.
    VoidPreparationKept,
    /// A leader goes on behind the last number of its epoch (ZOOKEEPER-1277).
    CounterRunsOver,
    /// A leader that a quorum has left goes on (ZOOKEEPER-1154).
    LeadsWithoutQuorum,

    // --- reads ---

    /// A leader answers a read without asking whether it still leads.
    ReadWithoutQuorum,
    /// A learner answers a read without asking its leader.
    ReadWithoutLeader,
    /// SYNC is answered before the COMMITs that it flushes.
    SyncBeforeCommits,

    // --- leases ---

    /// A follower forgets what it has promised to a leader.
    LeaseForgotten,
    /// A promise is over when the follower ends the link.
    LeaseReleasedByFollower,
    /// A server that starts has promised nothing.
    LeaseForgottenAtStart,
    /// A server that starts with a shorter lease, or none, forgets what it may have promised before.
    LongestLeaseForgotten,
    /// A lease is reckoned from when it was answered (CURATOR-460).
    LeaseFromAnswer,
    /// A leader that ends a link goes on counting on what was promised there.
    LeaseOutlivesLink,
    /// The word of an arbiter stands for the promise of a voter.
    ArbiterMakesLease,
    /// A leader counts on the whole of a lease, however its clock runs.
    LeaseWithoutMargin,

    // --- hand-over ---

    /// The seat is offered while what is proposed is not acknowledged yet.
    SeatOfferedEarly,
    /// The seat is offered to one that has not said that it hears a quorum.
    SeatOfferedUnheard,
    /// A prospective leader that gives up when those it needs have done so names nobody.
    NomineeLost,
    /// A follower takes the seat without what its leader has.
    SeatTakenWithLess,

    // --- membership ---

    /// While the membership changes only the present voters are asked (ZOOKEEPER-1699).
    NextVotersIgnored,
    /// A change of the membership is acknowledged and not on disk.
    ChangeOnlyInMemory,
    /// Of the changes that come with a snapshot only the last is taken note of.
    TellsOfOneChange,
    /// A history takes the place of another before what it holds of the membership does.
    InstalledBeforeSeen,
    /// A leader that does not know of a change is followed by one whose log has it.
    OlderMembershipTaken,
    /// A change that was cut binds if its epoch is over.
    CutChangeBinds,

    // --- elections through a store ---

    /// A candidate leads with the node of an earlier session (CURATOR-696).
    OfferOfAnotherSession,
    /// A session is reckoned from when the store's answer came (CURATOR-444).
    SessionFromAnswer,
    /// No answer came to a create, and another offer is made at once (CURATOR-45).
    SecondOfferAfterLostAnswer,
    /// A candidate whose neighbour is missing makes a new offer (CURATOR-644).
    OvertakesMissingNeighbour,
    /// A delete takes whatever has the name when it arrives, also what was made anew since.
    AnyCreationDeleted,
    /// A lease is reckoned from when the store's answer came.
    TermFromAnswer,
    /// A renewal that finds another version is taken for one that has worked.
    ConflictIgnored,
    /// A candidate counts the holder's silence with a duration of its own (kubernetes/kubernetes#67651).
    ObserverUsesOwnDuration,
    /// A node is given back while guarded work still runs.
    ReleasedBeforeGuards,

    // --- disks: the rule is in `quorate_storage::sync_mark` ---

    /// Where the last sync ended counts for nothing: a batch that a power cut tore is taken for damage, and its
    /// server refuses to start.
    TornBatchRefused,

    // --- bytes and texts: found by what fuzzing has left behind, see `fuzz/tests/planted.rs` ---

    /// An announced length is believed before its bytes are there.
    LengthBelieved,
    /// The last of several addresses is introduced.
    LastAddressIntroduced,
    /// Proposals are taken as one run though some between them are missing.
    RunWithHole,
    /// A membership writes itself without its weights.
    WeightsUnwritten,
    /// A backslash in a properties file stands for itself.
    BackslashKept,
    /// What a node was stays in the digest of its tree.
    DigestKeepsOld,
}

static PLANTED: AtomicU8 = AtomicU8::new(NOTHING);
const NOTHING: u8 = u8::MAX;

/// Plants a mistake in the place of another, or none.
pub fn plant(mistake: Option<Mistake>) {
    PLANTED.store(mistake.map_or(NOTHING, |mistake| mistake as u8), Ordering::Relaxed);
}

/// Whether this one is planted.
#[inline]
pub fn is(mistake: Mistake) -> bool {
    PLANTED.load(Ordering::Relaxed) == mistake as u8
}
