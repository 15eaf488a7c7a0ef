//! The data directory of one server, locked: epochs, vote, lease, log and snapshots.
//!
//! ```text
//!   open ─► Found: epochs, history, vote        append, cut, stage ─► sync ─► durable
//!             └─► the core's Durable            epochs, vote ─► durable at once
//! ```
//!
//! The front of this crate: it holds the lock, and hands each act to the room that knows its files. In which
//! order writes have to become durable is the core's decision; that they are when this says so is decided
//! here.

mod error;
mod open;
mod remains;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use quorate_core::durable::Epochs;
use quorate_core::generation_message::GrantedVote;
use quorate_core::id::ServerId;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

use crate::epochs::{self, ACCEPTED, CURRENT, LEASE};
use crate::files::{Disk, Files};
use crate::install::{Install, Memberships};
use crate::reader::{ReadError, Reader};
use crate::retention::Purged;
use crate::segments::{Dirs, Locating, Roll, Segments, Synced};
use crate::snapshot::{SnapshotFile, StagedSnapshot};
use crate::vote::{self, VoteError};

pub use error::{LogError, Refused};
pub use open::{Found, OpenOptions};
pub use remains::Remains;

/// The data directory of one server, locked for as long as this exists.
///
/// It holds the two epochs and the [`Segments`]. Epochs only go up, and the current epoch never passes
/// the accepted one; a caller that asks for anything else gets an error and the files stay as they are.
/// After an error of the disk it is unknown what a crash would leave, so from then on every write is
/// refused: the directory has to be opened again, by the same process as [`Remains`] says.
#[derive(Debug)]
pub struct Log<F: Files = Disk> {
    files: F,
    /// `version-2`.
    dir: PathBuf,
    /// What a crash would leave; changed only after the files.
    epochs: Epochs,
    /// The last vote given, and whose it is; none if we do not elect by generation.
    granted_vote: Option<(GrantedVote, ServerId)>,
    /// The longest lease that may have been promised.
    lease: Duration,
    segments: Segments<F>,
    /// The application's first state, as long as it is unknown whether the history begins with it.
    origin: Option<StagedSnapshot<F>>,
    /// The history is known to be what the directory says.
    known: bool,
    /// A log without a snapshot is a history from the beginning.
    trust_empty_snapshot: bool,
    /// The history that a leader is sending.
    staged: Option<Install<F>>,
    /// Where the history may end while it is cut or replaced.
    least: Option<Zxid>,
    /// A write of an epoch failed, see the type.
    failed: bool,
    /// How many transactions were behind the snapshot when it was opened.
    behind: u64,
    _lock: F::Lock,
}

impl<F: Files + Clone> Log<F> {
    /// Takes a snapshot of the application's first state, labelled zero, for a directory in which
    /// [none was found](Found::snapshot). Without one nothing can be appended: a log without a snapshot
    /// looks as if its beginning had been lost. It is published at once where the history is known to be
    /// empty, otherwise as soon as the server has entered an epoch.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn begin_with(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), LogError> {
        self.guard()?;
        self.origin = Some(snapshot);
        if self.known { self.publish_origin() } else { Ok(()) }
    }

    /// Promises to follow no leader of an epoch before `epoch`, durably. Nothing is written if that
    /// was promised already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the one promised, is no epoch, or cannot be written.
    pub fn write_accepted_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.epochs.accepted_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: ACCEPTED, from, to: epoch });
        }
        self.write_epoch(ACCEPTED, from, epoch)?;
        self.epochs.accepted_epoch = epoch;
        Ok(())
    }

    /// Records that the history of the leader of `epoch` was taken over, durably. Nothing is written
    /// if that was recorded already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the present one, was not promised, or cannot be written.
    pub fn write_current_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.epochs.current_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: CURRENT, from, to: epoch });
        }
        if epoch > self.epochs.accepted_epoch {
            let accepted = self.epochs.accepted_epoch;
            return Err(LogError::NotPromised { current: epoch, accepted });
        }
        self.guard()?;
        // Whatever the history was before, it is known from here on.
        self.publish_origin()?;
        self.write_epoch(CURRENT, from, epoch)?;
        self.epochs.current_epoch = epoch;
        self.known = true;
        Ok(())
    }

    /// Keeps the vote of this server, durably. Nothing is written if that is what it voted already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if it voted otherwise in this generation, or in a later one, if the directory was opened
    /// without [`OpenOptions::voter`], or if the disk fails.
    pub fn write_vote(&mut self, granted_vote: GrantedVote) -> Result<(), LogError> {
        self.guard()?;
        let (from, id) = self.granted_vote.ok_or(VoteError::Unwanted)?;
        if !vote::follows(from, granted_vote) {
            return Err(VoteError::Twice { from, to: granted_vote }.into());
        }
        if from != granted_vote {
            self.failed = true;
            vote::keep(&self.files, &self.dir, granted_vote, id)?;
            self.failed = false;
            self.granted_vote = Some((granted_vote, id));
        }
        Ok(())
    }

    /// Keeps how long a lease this server may promise, durably, if that is more than before: what it has promised
    /// binds it whatever its settings say later.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn write_lease(&mut self, longest: Duration) -> Result<(), LogError> {
        self.guard()?;
        if longest > self.lease {
            self.failed = true;
            // Whole milliseconds, and not one too few.
            let millis = longest.as_nanos().div_ceil(1_000_000);
            epochs::replace_with(&self.files, &self.dir, LEASE, format!("{millis}\n").as_bytes())?;
            self.failed = false;
            self.lease = longest;
        }
        Ok(())
    }

    /// Takes transactions that follow the last one. They are kept in memory until [`Log::sync`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if one does not follow, is too long or of an epoch that was not promised, or if
    /// there is no snapshot yet; then none was taken.
    pub fn append(&mut self, txns: &[Txn]) -> Result<(), LogError> {
        self.guard()?;
        let begun = self.segments.snapshot().is_some() || self.origin.is_some();
        if !begun && !self.trust_empty_snapshot {
            return Err(LogError::NoOrigin { dir: self.dir.clone() });
        }
        self.promised(txns.last().map(|txn| txn.zxid))?;
        Ok(self.segments.append(txns)?)
    }

    /// Writes what was appended, in one piece, and syncs once.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn sync(&mut self) -> Result<Synced, LogError> {
        self.guard()?;
        Ok(self.segments.sync()?)
    }

    /// Whether the last batch has no mark yet; see [`Segments::is_unmarked`].
    pub fn is_unmarked(&self) -> bool {
        self.segments.is_unmarked()
    }

    /// Marks where the last batch ends; see [`Segments::mark`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn mark(&mut self) -> Result<(), LogError> {
        self.guard()?;
        Ok(self.segments.mark()?)
    }

    /// Gives up everything behind `zxid`, durably; see [`Segments::truncate`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the log cannot end there, or the disk fails.
    pub fn truncate(&mut self, zxid: Zxid) -> Result<(), LogError> {
        self.guard()?;
        self.least = Some(zxid);
        self.segments.truncate(zxid)?;
        self.least = None;
        Ok(())
    }

    /// Begins a history that a leader sends. One that was begun before is given up.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the older one cannot be removed.
    pub fn stage(&mut self, install: Install<F>) -> Result<(), LogError> {
        self.discard_staged()?;
        self.staged = Some(install);
        Ok(())
    }

    /// Adds transactions to the history that a leader sends.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if none was begun, or one does not follow, is too long or cannot be written.
    pub fn append_staged(&mut self, txns: &[Txn]) -> Result<(), LogError> {
        self.guard()?;
        let Some(first) = txns.first() else { return Ok(()) };
        let nothing = LogError::NothingStaged { zxid: first.zxid };
        let staged = self.staged.as_mut().ok_or(nothing)?;
        Ok(staged.append(txns)?)
    }

    /// Gives up the history that a leader has been sending, if there is one.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if a file cannot be removed.
    pub fn discard_staged(&mut self) -> Result<(), LogError> {
        self.guard()?;
        match self.staged.take() {
            Some(staged) => Ok(staged.discard()?),
            None => Ok(()),
        }
    }

    /// Puts the history that a leader has sent, which begins with the snapshot labelled `label`, in the
    /// place of this one, durably and in one step, and with it what it holds of the membership; see
    /// [`Segments::install`].
    ///
    /// # Errors
    ///
    /// A [`LogError`], in particular if that history ends in an epoch that was not promised. If the disk
    /// fails, the next start finds the old history or the new one, whole.
    pub fn install(
        &mut self,
        label: Zxid,
        memberships: &Memberships,
        keep: impl FnOnce() -> Result<(), (PathBuf, io::Error)>,
    ) -> Result<(), LogError> {
        self.guard()?;
        let staged = match self.staged.take() {
            Some(staged) if staged.label() == label => staged,
            other => {
                self.staged = other;
                return Err(LogError::NothingStaged { zxid: label });
            }
        };
        self.promised(Some(staged.last()))?;
        self.least = Some(staged.last());
        self.segments.install(staged, memberships, keep)?;
        self.least = None;
        match self.origin.take() {
            Some(origin) => Ok(origin.discard()?),
            None => Ok(()),
        }
    }

    /// What was found to be [installed](Found::installed) of the membership is kept.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn memberships_kept(&mut self) -> Result<(), LogError> {
        Ok(self.segments.memberships_kept()?)
    }

    /// Makes a snapshot of our own state one that a start may choose; see [`Segments::publish`].
    ///
    /// # Errors
    ///
    /// A [`LogError`], in particular if the log is not durable through the snapshot's label.
    pub fn publish(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), LogError> {
        self.guard()?;
        Ok(self.segments.publish(snapshot)?)
    }

    /// Removes old snapshots and log files; see [`Segments::purge`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn purge(&mut self, keep: usize, files_max: usize) -> Result<Purged, LogError> {
        self.guard()?;
        Ok(self.segments.purge(keep, files_max)?)
    }

    /// Where `zxid` stands; see [`Segments::locate`].
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if a file cannot be read.
    pub fn locate(&mut self, zxid: Zxid, bytes: u64) -> Result<Locating, ReadError> {
        self.segments.locate(zxid, bytes)
    }

    /// Prepares to read what follows `after`, up to `through`; see [`Segments::read`].
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if that is not in the log without a hole, or not durable.
    pub fn read(&mut self, after: Zxid, through: Zxid) -> Result<Reader<F>, ReadError> {
        self.segments.read(after, through)
    }

    /// How many transactions were behind the snapshot when this was opened.
    pub const fn found_behind(&self) -> u64 {
        self.behind
    }

    /// Sets when the file being written is long enough.
    pub fn set_roll(&mut self, roll: Roll) {
        self.segments.set_roll(roll);
    }

    /// Makes everything durable, gives back the room that was taken in advance, and unlocks the directory.
    /// Nothing depends on it: dropping a `Log` is as good, but for that room.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn close(mut self) -> Result<(), LogError> {
        self.guard()?;
        self.segments.roll()?;
        Ok(())
    }

    /// The snapshot that a start would choose; none before the first.
    pub fn snapshot(&self) -> Option<&SnapshotFile> {
        self.segments.snapshot()
    }

    /// What a crash would leave of the epochs.
    pub fn epochs(&self) -> Epochs {
        self.epochs
    }

    /// The last transaction that was appended.
    pub fn last(&self) -> Zxid {
        self.segments.last()
    }

    /// The last transaction that is durable.
    pub fn durable(&self) -> Zxid {
        self.segments.durable()
    }

    /// Where the files are.
    pub fn dirs(&self) -> &Dirs {
        self.segments.dirs()
    }

    /// The longest transaction that is read or written.
    pub fn txn_bytes_max(&self) -> usize {
        self.segments.txn_bytes_max()
    }

    fn guard(&self) -> Result<(), LogError> {
        if self.failed || self.segments.has_failed() {
            return Err(LogError::Failed { dir: self.dir.clone() });
        }
        Ok(())
    }

    fn promised(&self, last: Option<Zxid>) -> Result<(), LogError> {
        let accepted = self.epochs.accepted_epoch;
        match last {
            Some(zxid) if zxid.epoch() > accepted => Err(LogError::Unpromised { zxid, accepted }),
            _ => Ok(()),
        }
    }

    fn publish_origin(&mut self) -> Result<(), LogError> {
        match self.origin.take() {
            None => Ok(()),
            Some(origin) if self.segments.snapshot().is_some() => Ok(origin.discard()?),
            Some(origin) => Ok(self.segments.publish(origin)?),
        }
    }

    fn write_epoch(&mut self, name: &'static str, from: Epoch, to: Epoch) -> Result<(), LogError> {
        self.guard()?;
        if !to.is_valid() {
            return Err(LogError::NoEpoch { path: self.dir.join(name), found: to.0 });
        }
        if from == to {
            return Ok(());
        }
        // Until it has returned well, a crash may leave either of the two.
        self.failed = true;
        epochs::replace(&self.files, &self.dir, name, to)?;
        self.failed = false;
        Ok(())
    }
}
