//! Opens a data directory, and finds out which membership binds this server.

use std::time::{Duration, Instant};

use quorate_application::Application;
use quorate_application::clients::Clients;
use quorate_core::config::{Config, Election};
use quorate_core::membership::Membership;
use quorate_core::zxid::Zxid;
use quorate_storage::error::FileError;
use quorate_storage::segments::{Roll, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotFile, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Found, Log, LogError, OpenOptions};

use crate::config::{MembershipFiles, ServerConfig};
use crate::disk::{Retain, remembered, write_state};
use crate::error::StartError;
use crate::host::restore::restore;
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

/// How to open the data directory.
fn open_options(config: &ServerConfig) -> OpenOptions {
    let limits = &config.core.history;
    OpenOptions {
        data_log_dir: config.data_log_dir.clone(),
        autocreate: config.autocreate,
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
pub(super) fn kept_files(config: &ServerConfig) -> MembershipFiles {
    MembershipFiles::new(
        &config.data_dir,
        config.dynamic_config_file.as_deref(),
        config.config_file.clone(),
    )
}

/// What to keep in it.
pub(super) fn retain(config: &ServerConfig) -> Retain {
    Retain { snapshots: config.snapshots_kept.unwrap_or(usize::MAX), roll: roll(config) }
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
    let begun = Instant::now();
    let work = move || loop {
        let (mut log, mut found) = Log::open(&data_dir, options.clone())?;
        let used = found.snapshot.is_some();
        let remembered =
            A::Clients::SERVES.then(|| remembered::read(&log.dirs().snapshots, used)).flatten();
        let Some(snapshot) = &found.snapshot else {
            log.begin_with(first_snapshot(&log, &application)?)?;
            let opened = Opened { whole: begun.elapsed(), restore: None, behind: 0 };
            return Ok(Ready { log, found, application, staged: None, remembered, opened });
        };
        let restoring = Instant::now();
        match restore::<A>(snapshot) {
            Ok(state) => {
                if let Some(text) = A::staged_membership(&state) {
                    let membership = Membership::parse(text).ok();
                    let label = snapshot.label;
                    let held = membership.filter(|held| held.version() <= label.0);
                    found.durable.changes.extend(held);
                }
                let staged = Some((snapshot.label, state));
                let restore = Some(restoring.elapsed());
                let (whole, behind) = (begun.elapsed(), log.found_behind());
                let opened = Opened { whole, restore, behind };
                return Ok(Ready { log, found, application, staged, remembered, opened });
            }
            // Perhaps the log leads to the end from an older one.
            Err(error) => {
                let SnapshotFile { path, label, .. } = snapshot;
                let event = "snapshot.unreadable";
                tracing::warn!(event, path = %path.display(), %error, "cannot restore a snapshot");
                options.segments.snapshot_before = Some(*label);
            }
        }
    };
    offload("quorate-open", work).await.map_err(StartError::Thread)?
}

/// Takes over what was kept of the membership and is newer than what the server was told, unless the operator has said
/// that it binds no more.
pub(super) fn adopt_kept(core: &mut Config, present: Option<Membership>, next: Option<Membership>) {
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
pub(super) fn say_what_binds(core: &Config, told: &Membership) {
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

/// Whoever is to be alone must be, by all that binds it: `now` has what its history says, too.
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
