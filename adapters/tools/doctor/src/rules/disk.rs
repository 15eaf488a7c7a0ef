//! Rules of disks: what is in a data directory, whose it is, what it lies on, how fast that is.

use quorate_driver::zoo_cfg::ZooCfg;
use quorate_storage::check::{Finding as Damage, Problem, Severity};

use crate::facts::{DataDir, Facts, Member, Space};
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;
use crate::rules::settings::newest_snapshot;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "disk.history",
        levels: &[Level::Error],
        when: "`quorate log check` finds something wrong in snapshots or logs, or a log says that they cannot be loaded",
        why: "the server does not start, or lacks transactions that were acknowledged",
        todo: "see it with `quorate log check`; if the others are whole, move this server's version-2 away and let it take \
               everything from them",
        sources: &["ZOOKEEPER-3056", "ZOOKEEPER-1621"],
        explains: &["live.port-closed"],
        check: history,
    },
    Rule {
        id: "disk.epochs",
        levels: &[Level::Error, Level::Notice],
        when: "acceptedEpoch or currentEpoch is no number, or below what the history needs; a notice for a .tmp left over",
        why: "the server does not start, or could promise an epoch twice",
        todo: "see it with `quorate log check`; if the others are whole, move this server's version-2 away and let it take \
               everything from them",
        sources: &["ZOOKEEPER-2307", "ZOOKEEPER-4269"],
        explains: &["live.port-closed"],
        check: epochs,
    },
    Rule {
        id: "disk.newer-than-ensemble",
        levels: &[Level::Error],
        when: "a stopped server's last transaction is newer than that of every running one",
        why: "writes that were acknowledged may be on this disk alone: wiping it loses them",
        todo: "do not wipe it: copy the directory, then start this server before anything else is written",
        sources: &["zookeeperInternals.md"],
        explains: &[],
        check: newer_than_ensemble,
    },
    Rule {
        id: "disk.free",
        levels: &[Level::Error, Level::Warning],
        when: "free space is below 20 % or three snapshots, an error below 5 % or one snapshot; or under 5 % of the inodes",
        why: "without room a server gives up its role (ZooKeeper's ends), and has none for the snapshot that it is sent",
        todo: "make room: old snapshots and logs go with autopurge, or by hand with zkCleanup.sh",
        sources: &["https://github.com/pravega/zookeeper-operator/issues/263"],
        explains: &["live.port-closed"],
        check: free,
    },
    Rule {
        id: "disk.fsync",
        levels: &[Level::Error, Level::Warning, Level::Notice],
        when: "a write takes 1 s and more to be safe, by a log; p99 by --bench-disk, or the mean by mntr, is beyond 20 ms \
               (notice) or 100 ms",
        why: "every write of the ensemble waits for the disks of a quorum, and pings wait behind them",
        todo: "give the log a device of its own (dataLogDir), or a faster one; see who else writes to it",
        sources: &["zookeeperAdmin.md, fsync.warningthresholdms"],
        explains: &[],
        check: fsync,
    },
    Rule {
        id: "disk.owner",
        levels: &[Level::Error, Level::Notice],
        when: "files do not belong to the directory's owner (error), or everybody here may read them (notice)",
        why: "files that the service's user cannot write stop it, as after a start as root; those that all may read show all data",
        todo: "chown -R the data directories to the service's user; umask 027 in its unit keeps others out",
        sources: &["zookeeperAdmin.md"],
        explains: &["live.port-closed"],
        check: owner,
    },
    Rule {
        id: "cfg.log-shared",
        levels: &[Level::Notice],
        when: "snapshots and logs lie on one device",
        why: "a snapshot that is written makes every write wait",
        todo: "set dataLogDir to a device of its own",
        sources: &["zookeeperAdmin.md, dataLogDir"],
        explains: &[],
        check: log_shared,
    },
    Rule {
        id: "cfg.fs-odd",
        levels: &[Level::Error, Level::Warning],
        when: "data lie on NFS, SMB, 9p or FUSE; an error on tmpfs, ramfs or overlayfs",
        why: "data in memory or in a container's layer are gone with it; a network's fsync promises little",
        todo: "put dataDir and dataLogDir on a local disk, in a container on a volume",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: fs_odd,
    },
];

fn cfg_of<'a>(facts: &'a Facts, dir: &DataDir) -> Option<&'a ZooCfg> {
    facts.read_files().map(|(_, cfg)| cfg).find(|cfg| cfg.data_dir == dir.dir)
}

/// Whether what was found is about the small files.
fn is_of_epochs(damage: &Damage) -> bool {
    matches!(
        damage.problem,
        Problem::Garbage(_)
            | Problem::NoEpoch(_)
            | Problem::NotPromised { .. }
            | Problem::LastNotPromised { .. }
            | Problem::Leftover
    )
}

fn damages(facts: &Facts) -> impl Iterator<Item = (&DataDir, &Damage)> {
    let dirs = facts.dirs.iter().filter_map(|dir| Some((dir, dir.history.as_ref()?)));
    dirs.flat_map(|(dir, history)| history.findings.iter().map(move |damage| (dir, damage)))
}

fn told((dir, damage): (&DataDir, &Damage), level: Level) -> Found {
    let subject = Subject::file(&damage.path, dir.id);
    let check = format!("see it with `quorate log check {}`", dir.dir.display());
    let keep = "if the others are whole, move this server's version-2 away and let it take everything from them";
    Found::new(level, subject, damage.problem.to_string()).todo(check).todo(keep)
}

fn history(facts: &Facts) -> Vec<Found> {
    let wrong = damages(facts).filter(|(_, damage)| damage.severity == Severity::Error);
    wrong.filter(|(_, damage)| !is_of_epochs(damage)).map(|one| told(one, Level::Error)).collect()
}

fn epochs(facts: &Facts) -> Vec<Found> {
    let of_epochs = damages(facts).filter(|(_, damage)| is_of_epochs(damage));
    of_epochs
        .filter_map(|one| match one.1.severity {
            Severity::Error => Some(told(one, Level::Error)),
            Severity::Repaired => Some(told(one, Level::Notice)),
            Severity::Note => None,
        })
        .collect()
}

/// Running servers tell their last transaction; those that only answer on their election ports, their epoch.
fn newer_than_ensemble(facts: &Facts) -> Vec<Found> {
    let running = facts.answering();
    let newest = facts.members.iter().filter_map(|member| member.zxid()).max_by_key(|zxid| zxid.0);
    let epoch = facts.members.iter().filter_map(|member| member.heard()?.epoch()).max();
    let mut found = Vec::new();
    for dir in &facts.dirs {
        let (Some(history), Some(id)) = (&dir.history, dir.id) else { continue };
        if history.holder.is_some() || running.contains(&id) || running.is_empty() {
            continue;
        }
        let last = history.last;
        let is_newer = match (newest, epoch) {
            (Some(newest), _) => last.0 > newest.0,
            (None, Some(epoch)) => last.epoch().0 > epoch,
            (None, None) => false,
        };
        if is_newer {
            let others = newest.map_or_else(
                || format!("epoch {}", epoch.unwrap_or_default()),
                |newest| newest.to_string(),
            );
            let what = format!(
                "server {id} is stopped and has {last}; the running ones have {others} at most"
            );
            found.push(Found::error(Subject::file(&dir.dir, Some(id)), what));
        }
    }
    found
}

const MIB: u64 = 1 << 20;

fn free(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for dir in &facts.dirs {
        let newest = newest_snapshot(dir).unwrap_or(0);
        let preallocated = cfg_of(facts, dir).map_or(64 * MIB, |cfg| cfg.preallocate);
        let least = (newest + 128 * MIB, 3 * newest + 2 * preallocated);
        let places = [(Some(&dir.dir), &dir.space), (dir.log_dir.as_ref(), &dir.log_space)];
        for (path, space) in places {
            let (Some(path), Some(space)) = (path, space) else { continue };
            if let Some((level, what)) = lack(space, least) {
                found.push(Found::new(level, Subject::file(path, dir.id), what));
            }
        }
    }
    found
}

/// What is missing on a file system, where so many bytes are an error and so many a warning.
fn lack(space: &Space, (error, warning): (u64, u64)) -> Option<(Level, String)> {
    let percent = space.percent();
    let level = if percent < 5 || space.free < error {
        Level::Error
    } else if percent < 20 || space.free < warning {
        Level::Warning
    } else if space.files > 0 && space.files_free < space.files / 20 {
        let what = format!("{} of {} inodes are free", space.files_free, space.files);
        return Some((Level::Warning, what));
    } else {
        return None;
    };
    Some((
        level,
        format!("{} MiB are free, {percent} % of {} MiB", space.free / MIB, space.size / MIB),
    ))
}

fn fsync(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for dir in &facts.dirs {
        let Some(bench) = dir.bench else { continue };
        let level = if bench.max > 1000.0 {
            Level::Error
        } else if bench.p99 > 100.0 {
            Level::Warning
        } else if bench.p99 > 20.0 {
            Level::Notice
        } else {
            continue;
        };
        let path = dir.log_dir.as_ref().unwrap_or(&dir.dir);
        let what = format!(
            "{} writes of 4 KiB took {:.1} ms each in the median, {:.1} ms at p99, {:.1} ms at most to be safe",
            bench.writes, bench.p50, bench.p99, bench.max
        );
        found.push(Found::new(level, Subject::file(path, dir.id), what));
    }
    found.extend(facts.members.iter().filter_map(fsync_of));
    found
}

/// What a server says of its own disk: the mean since it started, once there were a hundred writes.
fn fsync_of(member: &Member) -> Option<Found> {
    let words = member.words()?;
    let count = words.number("cnt_fsynctime").filter(|count| *count >= 100.0)?;
    let mean = words.number("avg_fsynctime").filter(|mean| *mean > 20.0)?;
    let level = if mean > 100.0 { Level::Warning } else { Level::Notice };
    let what = format!("its {count:.0} writes took {mean:.0} ms to be safe in the mean");
    let found = Found::new(level, Subject::server(member.id), what);
    Some(found.seen("mntr", format!("zk_avg_fsynctime {mean}")))
}

fn owner(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for dir in &facts.dirs {
        if let Some(first) = dir.strays.first() {
            let what = format!(
                "{} file(s) do not belong to user {}, whose the directory is: {} is user {}'s",
                dir.strays.len(),
                first.expected,
                first.file.display(),
                first.owner
            );
            let todo = format!("chown -R {} {}", first.expected, dir.dir.display());
            found.push(Found::error(Subject::file(&dir.dir, dir.id), what).todo(todo));
        }
        if let Some(file) = &dir.readable {
            let what = "everybody on this machine may read its data";
            let subject = Subject::file(&dir.dir, dir.id);
            found.push(
                Found::notice(subject, what)
                    .seen(file.display(), "readable by others")
                    .todo("set a umask of 027 in the unit of the service, and chmod -R o-rwx the data directories"),
            );
        }
    }
    found
}

fn log_shared(facts: &Facts) -> Vec<Found> {
    let shared = facts.dirs.iter().filter(|dir| match (&dir.space, &dir.log_space) {
        (Some(space), Some(logs)) => space.device == logs.device,
        (Some(_), None) => dir.log_dir.is_none(),
        (None, _) => false,
    });
    shared
        .map(|dir| {
            let what = "snapshots and logs lie on one device";
            Found::notice(Subject::file(&dir.dir, dir.id), what)
        })
        .collect()
}

/// File systems by what `statfs` calls them (`linux/magic.h`), and whether data there are gone with a restart.
const ODD: [(u64, &str, Level); 8] = [
    (0x0102_1994, "tmpfs", Level::Error),
    (0x8584_58f6, "ramfs", Level::Error),
    (0x794c_7630, "overlayfs", Level::Error),
    (0x6969, "NFS", Level::Warning),
    (0xff53_4d42, "SMB", Level::Warning),
    (0xfe53_4d42, "SMB", Level::Warning),
    (0x0102_1997, "9p", Level::Warning),
    (0x6573_5546, "FUSE", Level::Warning),
];

fn fs_odd(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for dir in &facts.dirs {
        let places = [(Some(&dir.dir), &dir.space), (dir.log_dir.as_ref(), &dir.log_space)];
        for (path, space) in places {
            let (Some(path), Some(space)) = (path, space) else { continue };
            let odd = ODD.iter().find(|(kind, _, _)| *kind == space.kind);
            if let Some((_, name, level)) = odd {
                let subject = Subject::file(path, dir.id);
                found.push(Found::new(*level, subject, format!("it lies on {name}")));
            }
        }
    }
    found
}
