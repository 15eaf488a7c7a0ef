//! Opens a data directory, and finds out which membership binds this server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_application::Application;
use quorate_application::clients::Clients;
use quorate_core::config::{Config, Election};
use quorate_core::membership::{Member, Membership};
use quorate_core::zxid::Zxid;
use quorate_leadership::boot_time;
use quorate_storage::error::FileError;
use quorate_storage::segments::{Roll, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotFile, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Found, Log, LogError, OpenOptions, Remains};

use crate::config::{MembershipFiles, ServerConfig};
use crate::disk::{Disk, Retain, remembered, write_state};
use crate::drive::Reopened;
use crate::error::StartError;
use crate::host::restore::restore;
use crate::measures::Measures;
use crate::task_group::KeepAlive;
use crate::threads::offload;

/// A data directory, opened, and what it says the application's state is.
pub(super) struct Ready<A: Application> {
    pub(super) log: Log,
    pub(super) found: Found,
    pub(super) application: A,
    pub(super) staged: Option<(Zxid, A::Staged)>,
    /// What the service has had kept.
    pub(super) remembered: Option<i64>,
    /// How long that took.
    pub(super) opened: Opened,
}

/// How long reading the disk took at start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// All of it.
    pub(super) whole: Duration,
    /// Of that, restoring the snapshot; none without one.
    pub(super) restore: Option<Duration>,
    /// How many transactions of the log are behind it.
    pub(super) behind: u64,
}

/// What a server is told, and what it has kept of its membership.
pub(super) struct Recalled {
    /// What it is told, but for a membership that is newer.
    pub(super) config: ServerConfig,
    pub(super) kept: MembershipFiles,
    told: Membership,
}

impl Recalled {
    pub(super) fn new(mut config: ServerConfig) -> Result<Self, StartError> {
        let told = config.core.membership.clone();
        let kept = kept_files(&config);
        let [present, next] = kept.recall().map_err(unkept)?;
        adopt_kept(&mut config.core, present, next);
        let mut recalled = Self { config, kept, told };
        recalled.remember();
        Ok(recalled)
    }

    /// Our line. A server that is about to join, or was removed, knows where it listens only from what it is told.
    pub(super) fn own_line(&self) -> Option<Member> {
        let (id, now) = (self.config.core.id, &self.config.core.membership);
        let own = now.member(id).or_else(|| self.told.member(id));
        own.or(self.config.own_line.as_ref()).cloned()
    }

    fn remember(&mut self) {
        if let Some(own) = self.own_line() {
            self.kept.remember(own, self.config.core.membership.version());
        }
    }

    /// What came with a history whose installation a crash has interrupted is kept.
    pub(super) fn take_over(&mut self, log: &mut Log, found: &mut Found) -> Result<(), StartError> {
        if let Some(installed) = found.installed.take() {
            self.kept.take_over(&installed).map_err(unkept)?;
            log.memberships_kept()?;
            let read = |text: &Bytes| Membership::parse(text).ok();
            let next = installed.next.as_ref().and_then(read);
            self.config.core.next_membership = None;
            adopt_kept(&mut self.config.core, read(&installed.present), next);
        }
        self.remember();
        Ok(())
    }

    pub(super) fn say_what_binds(&self) {
        say_what_binds(&self.config.core, &self.told);
    }
}

fn unkept((path, source): (PathBuf, io::Error)) -> StartError {
    StartError::Membership { path, source }
}

/// How to open the data directory.
fn open_options(config: &ServerConfig) -> OpenOptions {
    let limits = &config.core.history;
    OpenOptions {
        data_log_dir: config.data_log_dir.clone(),
        autocreate: config.autocreate,
        remains: None,
        voter: match config.core.election {
            Election::Fast => None,
            Election::Generation(_) => Some(config.core.id),
        },
        segments: SegmentOptions {
            preallocate: config.preallocate,
            roll: roll(config),
            txn_bytes_max: config.core.limits.read_bytes(),
            window_count: limits.window_count,
            window_bytes: limits.window_bytes,
            trust_empty_snapshot: config.trust_empty_snapshot,
            size_percent: limits.size_percent,
            ..SegmentOptions::default()
        },
    }
}

/// Where a changed membership is kept.
fn kept_files(config: &ServerConfig) -> MembershipFiles {
    MembershipFiles::new(
        &config.data_dir,
        config.dynamic_config_file.as_deref(),
        config.config_file.clone(),
    )
}

/// What to keep in it.
fn retain(config: &ServerConfig) -> Retain {
    let (snapshots, floor) = (config.snapshots_kept.unwrap_or(usize::MAX), config.disk_floor);
    Retain { snapshots, roll: roll(config), floor }
}

fn roll(config: &ServerConfig) -> Roll {
    Roll { records: config.core.history.snap_count, bytes: config.log_bytes }
}

/// Opening a directory and restoring a state may take a while; a runtime must not wait for it.
pub(super) async fn open<A: Application>(
    config: &ServerConfig,
    application: A,
) -> Result<Ready<A>, StartError> {
    let (data_dir, mut options) = (config.data_dir.clone(), open_options(config));
    let begun = boot_time::now();
    let work = move || loop {
        let (mut log, mut found) = Log::open(&data_dir, options.clone())?;
        let used = found.snapshot.is_some();
        let remembered =
            A::Clients::SERVES.then(|| remembered::read(&log.dirs().snapshots, used)).flatten();
        let Some(snapshot) = &found.snapshot else {
            log.begin_with(first_snapshot(&log, &application)?)?;
            let opened = Opened { whole: boot_time::since(begun), restore: None, behind: 0 };
            return Ok(Ready { log, found, application, staged: None, remembered, opened });
        };
        let snapshot = snapshot.clone();
        let restoring = boot_time::now();
        match staged::<A>(&snapshot, &mut found) {
            Some(staged) => {
                let (staged, restore) = (Some(staged), Some(boot_time::since(restoring)));
                let (whole, behind) = (boot_time::since(begun), log.found_behind());
                let opened = Opened { whole, restore, behind };
                return Ok(Ready { log, found, application, staged, remembered, opened });
            }
            None => options.segments.snapshot_before = Some(snapshot.label),
        }
    };
    offload("quorate-open", work).await.map_err(StartError::Thread)?
}

/// The state of a snapshot; none if it cannot be restored, and perhaps the log leads to the end from an older one.
fn staged<A: Application>(snapshot: &SnapshotFile, found: &mut Found) -> Option<(Zxid, A::Staged)> {
    let SnapshotFile { path, label, .. } = snapshot;
    match restore::<A>(snapshot) {
        Ok(state) => {
            if let Some(text) = A::staged_membership(&state) {
                let membership = Membership::parse(text).ok();
                let held = membership.filter(|held| held.version() <= label.0);
                found.durable.changes.extend(held);
            }
            Some((*label, state))
        }
        Err(error) => {
            let event = "snapshot.unreadable";
            tracing::warn!(event, path = %path.display(), %error, "cannot restore a snapshot");
            None
        }
    }
}

/// Sets the thread of a disk going.
pub(super) fn start_disk(
    config: &ServerConfig,
    log: Log,
    kept: MembershipFiles,
    measures: Arc<Measures>,
    keep_alive: KeepAlive,
) -> Result<Disk, StartError> {
    let slow = config.fsync_warning;
    Disk::start(log, kept, retain(config), slow, measures, keep_alive).map_err(StartError::Thread)
}

/// Opens the directory again after a write to it has failed: as at a start, with what was durable then, and only where there
/// is room to go on. What may be removed is removed before.
pub(super) fn open_again<A: Application>(
    told: &ServerConfig,
    remains: Remains,
    measures: Arc<Measures>,
    keep_alive: KeepAlive,
) -> Result<Reopened<A>, StartError> {
    let mut recalled = Recalled::new(told.clone())?;
    let mut options = open_options(told);
    options.remains = Some(remains);
    let (mut log, mut found, staged) = loop {
        let (log, mut found) = Log::open(&told.data_dir, options.clone())?;
        let Some(snapshot) = found.snapshot.clone() else {
            // Its first state is gone with the log that failed.
            return Err(LogError::NoOrigin { dir: log.dirs().snapshots.clone() }.into());
        };
        match staged::<A>(&snapshot, &mut found) {
            Some(staged) => break (log, found, staged),
            None => options.segments.snapshot_before = Some(snapshot.label),
        }
    };
    recalled.take_over(&mut log, &mut found)?;
    let Recalled { config, kept, .. } = recalled;
    while log.purge(retain(&config).snapshots, PURGED_AT_ONCE)?.more {}
    log.try_out(config.preallocate.clamp(ROOM_MIN, ROOM_MAX) + ROOM_MIN)?;
    let disk = start_disk(&config, log, kept, measures, keep_alive)?;
    Ok(Reopened { config: config.core, durable: found.durable, disk, staged: Some(staged) })
}

/// How many files are removed between two looks.
const PURGED_AT_ONCE: usize = 16;
/// How much room there has to be: for a log file to be begun, and one step.
const ROOM_MIN: u64 = 64 << 10;
/// The longest step in which a log file grows.
const ROOM_MAX: u64 = 4 << 20;

/// Takes over what was kept of the membership and is newer than what the server was told, unless the operator has said
/// that it binds no more.
fn adopt_kept(core: &mut Config, present: Option<Membership>, next: Option<Membership>) {
    let forgotten = core.forgotten;
    let newer = |kept: &Membership, than: &Membership| {
        kept.version() > than.version() && (!kept.is_change() || kept.version() > forgotten)
    };
    if let Some(present) = present.filter(|kept| newer(kept, &core.membership)) {
        core.membership = present;
    }
    let next = next.filter(|kept| newer(kept, &core.membership));
    // Without reconfiguration only a change binds, not a version that some leader gave.
    let next = next.filter(|next| next.is_change() || core.reconfig_enabled);
    core.next_membership = next.or(core.next_membership.take());
}

/// An operator who has switched reconfiguration off may think that `zoo.cfg` tells the membership.
fn say_what_binds(core: &Config, told: &Membership) {
    let (membership, next) = (&core.membership, core.next_membership.as_ref());
    if !core.reconfig_enabled && (membership.is_change() || next.is_some()) {
        let version = next.unwrap_or(membership).version();
        tracing::warn!(
            event = "config.warning",
            version = format_args!("{version:x}"),
            told = format_args!("{:x}", told.version()),
            "reconfigEnabled is off, but this membership was changed while the ensemble ran, and binds this server; \
             a leader that does not know of it is not followed. To go by zoo.cfg again, only where the ensemble \
             is another one from here on: quorate.membership.forget={version:x}"
        );
    }
}

/// A server that is to be alone must be, by all that binds it: `now` has what its history says, too.
pub(super) fn check_alone(config: &ServerConfig, now: &Config) -> Result<(), StartError> {
    let mut binds = now.next_membership.iter().chain([&now.membership]);
    match binds.find(|membership| config.alone && membership.members().len() > 1) {
        None => Ok(()),
        Some(membership) => {
            let (members, version) = (membership.members().len(), membership.version());
            Err(StartError::NotAlone { members, version })
        }
    }
}

/// The state before the first transaction, for a directory that has none.
fn first_snapshot<A: Application>(
    log: &Log,
    application: &A,
) -> Result<StagedSnapshot<quorate_storage::Disk>, LogError> {
    let path = &log.dirs().snapshots;
    let mut file = SnapshotWriter::take(quorate_storage::Disk, path, Zxid::ZERO)?;
    write_state(application.snapshot(), &mut file).map_err(|source| FileError {
        action: "write a first snapshot to",
        path: path.clone(),
        source,
    })?;
    Ok(file.finish(Parts::default())?)
}
