//! Mistakes that are made on purpose, one at a time: crash tests that miss one are themselves a mistake.
//!
//! Only in builds with `--cfg quorate_planted`; in all others `planted!` is the constant `false`. What is
//! planted is said in the environment, `QUORATE_PLANTED=<name>`, since a whole run of the tests is to fail.

use std::sync::OnceLock;

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
    /// What was appended is called durable before it is synced (ZOOKEEPER-4646).
    AppendUnsynced,
    /// After a failed write or sync the log is written on (ZOOKEEPER-2247).
    WrittenOnAfterFailure,
    /// What a start finds is reported before it is synced; only the page cache may hold it.
    FoundUnsynced,
    /// An epoch file takes the place of the old one before it is synced (ZOOKEEPER-2307, -1653).
    EpochUnsynced,
    /// A torn record at the end of the log stays there.
    TornEndKept,
    /// Where the last sync ended counts for nothing: a batch that a power cut tore is taken for damage.
    MarkIgnored,
    /// A mark says how far its own batch comes.
    MarkAhead,
    /// Every mark takes the place of the one before.
    MarkInOneSlot,
    /// Room is added, and the marks in it come with the batch that needs it.
    RoomUnmarked,
    /// A file is shortened before what was found in it is durable.
    CutBeforeSync,
    /// A log with a hole is read on.
    HolePassedOver,
    /// A step to another epoch behind a torn record is no hole.
    TornStepPassedOver,
    /// Files that end before the snapshot stay when the log goes on behind it.
    ObsoleteKept,
    /// A cut is not durable before the next begins: what is behind it may come back.
    CutUnsynced,
    /// A cut leaves the snapshots behind it (ZOOKEEPER-1489).
    SnapshotsKeptAtCut,
    /// A received snapshot is installed before it is synced (ZOOKEEPER-2872).
    SnapshotUnsynced,
    /// What came behind a received snapshot is installed before it is synced.
    InstallUnsynced,
    /// The history that a received one replaces stays beside it.
    OldHistoryKept,
    /// A snapshot is published before the log is durable as far.
    PublishedAhead,
    /// A record is taken whatever its checksum is.
    ChecksumUnchecked,
    /// A snapshot is taken whatever its seals are.
    SealUnchecked,
}

/// Whether this one is planted.
pub(crate) fn is(mistake: Mistake) -> bool {
    static PLANTED: OnceLock<Option<Mistake>> = OnceLock::new();
    let find = || {
        let name = std::env::var("QUORATE_PLANTED").ok()?;
        Mistake::ALL.iter().copied().find(|mistake| format!("{mistake:?}") == name)
    };
    // The simulator's disks keep to this rule, and plant it by another name.
    let shared = quorate_core::planted::is(quorate_core::planted::Mistake::TornBatchRefused);
    *PLANTED.get_or_init(find) == Some(mistake) || (shared && mistake == Mistake::MarkIgnored)
}
