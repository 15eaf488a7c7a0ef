//! Rules of configuration: single settings whose value is asking for trouble.

use std::time::Duration;

use crate::facts::{DataDir, Facts};
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.limits",
        levels: &[Level::Warning],
        when: "syncLimit ticks are less than 4 s, or initLimit ticks less than twice what the newest snapshot takes at 100 MB/s",
        why: "a harmless pause of a server or disk makes followers leave, or a synchronisation can never end",
        todo: "raise syncLimit to 4 s and more, and initLimit to what a snapshot takes on your network",
        sources: &["ZOOKEEPER-1521"],
        explains: &[],
        check: limits,
    },
    Rule {
        id: "cfg.purge-off",
        levels: &[Level::Warning],
        when: "autopurge.purgeInterval is absent or 0, and more than 10 snapshots are there, or they fill 30 % of the disk",
        why: "every snapshot and log is kept for ever: the disk fills, and a full disk stops a voter",
        todo: "set autopurge.purgeInterval=24 and autopurge.snapRetainCount=3",
        sources: &["https://github.com/bitnami/charts/issues/1097", "zookeeperAdmin.md"],
        explains: &[],
        check: purge_off,
    },
    Rule {
        id: "cfg.snapcount",
        levels: &[Level::Notice],
        when: "snapCount is less than 10,000 or more than 1,000,000",
        why: "snapshots are taken all the time, or a start has a very long log to read",
        todo: "leave it at 100,000 unless you have measured",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: snapcount,
    },
    Rule {
        id: "cfg.trust-empty-left-on",
        levels: &[Level::Warning],
        when: "snapshot.trust.empty=true, and there is a snapshot",
        why: "it is meant for one start after an upgrade from 3.4; left on, a lost snapshot is taken for an empty history",
        todo: "remove the line",
        sources: &["ZOOKEEPER-3056", "ZOOKEEPER-3644"],
        explains: &[],
        check: trust_empty,
    },
    Rule {
        id: "cfg.whitelist",
        levels: &[Level::Warning, Level::Notice],
        when: "a server does not answer the words of monitoring; a warning where the whitelist has *, wchp or wchc",
        why: "monitoring sees nothing; with wchp and wchc anybody can keep a server busy",
        todo: "set 4lw.commands.whitelist=srvr,stat,mntr,ruok,conf",
        sources: &["CVE-2017-5637", "https://github.com/influxdata/telegraf/issues/7169"],
        explains: &[],
        check: whitelist,
    },
    Rule {
        id: "cfg.force-sync",
        levels: &[Level::Error],
        when: "forceSync=no, or skipACL=yes",
        why: "acknowledged writes are lost when power fails; or everybody may read and change everything",
        todo: "remove the line and the flag of the JVM, and restart one server at a time",
        sources: &["zookeeperAdmin.md, \"Unsafe Options\""],
        explains: &[],
        check: force_sync,
    },
];

const LEAST_SYNC: Duration = Duration::from_secs(4);
/// A snapshot's way over the network, in bytes a second.
const PACE: u64 = 100_000_000;

fn limits(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(_, cfg)| !cfg.alone) {
        let subject = |name: &str| match file.setting(name) {
            Some(setting) => Subject::file(&file.path, file.id).set_by(setting),
            None => Subject::file(&file.path, file.id).key(name),
        };
        let sync = cfg.sync_time();
        if sync < LEAST_SYNC {
            let what = format!(
                "followers are given up after {} ms (syncLimit {} of tickTime {})",
                sync.as_millis(),
                cfg.sync_limit,
                cfg.tick_time.as_millis()
            );
            found.push(Found::warning(subject("syncLimit"), what));
        }
        let of_file = facts.dirs.iter().find(|dir| dir.dir == cfg.data_dir);
        let newest = of_file.and_then(newest_snapshot).unwrap_or(0);
        let needed = Duration::from_millis(newest.saturating_mul(2000) / PACE);
        if cfg.init_time() < needed {
            let what = format!(
                "a server may take {} s to synchronise, and the newest snapshot has {} MiB",
                cfg.init_time().as_secs(),
                newest >> 20
            );
            found.push(Found::warning(subject("initLimit"), what));
        }
    }
    found
}

pub(super) fn newest_snapshot(dir: &DataDir) -> Option<u64> {
    Some(dir.history.as_ref()?.snapshots.first()?.bytes)
}

fn purge_off(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(_, cfg)| cfg.snapshots_kept.is_none()) {
        let Some(dir) = facts.dirs.iter().find(|dir| dir.dir == cfg.data_dir) else { continue };
        let Some(history) = &dir.history else { continue };
        let snapshots = history.snapshots.len();
        let bytes: u64 = history.snapshots.iter().map(|snapshot| snapshot.bytes).sum();
        let logs: u64 = history.logs.iter().map(|log| log.bytes).sum();
        let disk = dir.space.as_ref().map_or(u64::MAX, |space| space.size);
        if snapshots > 10 || (bytes + logs) / 3 > disk / 10 {
            let what = format!(
                "nothing is ever removed: {snapshots} snapshots and {} logs are there, {} MiB",
                history.logs.len(),
                (bytes + logs) >> 20
            );
            let subject = Subject::file(&file.path, file.id).key("autopurge.purgeInterval");
            found.push(
                Found::warning(subject, what)
                    .seen(dir.dir.display(), format!("{snapshots} snapshots"))
                    .todo("set autopurge.purgeInterval=24 and autopurge.snapRetainCount=3")
                    .todo(format!("now: `zkCleanup.sh -n 3`, which needs {}", dir.dir.display())),
            );
        }
    }
    found
}

fn snapcount(facts: &Facts) -> Vec<Found> {
    let odd = facts.read_files().filter(|(_, cfg)| !(10_000..=1_000_000).contains(&cfg.snap_count));
    odd.map(|(file, cfg)| {
        let subject = Subject::file(&file.path, file.id);
        let subject = match file.setting("snapCount") {
            Some(setting) => subject.set_by(setting),
            None => subject.key("snapCount"),
        };
        Found::notice(subject, format!("a snapshot after {} transactions", cfg.snap_count))
    })
    .collect()
}

fn trust_empty(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(_, cfg)| cfg.trust_empty_snapshot) {
        let dir = facts.dirs.iter().find(|dir| dir.dir == cfg.data_dir);
        let Some(newest) = dir.and_then(|dir| dir.history.as_ref()?.snapshots.first()) else {
            continue;
        };
        let subject = Subject::file(&file.path, file.id);
        let subject = match file.setting("snapshot.trust.empty") {
            Some(setting) => subject.set_by(setting),
            None => subject.key("snapshot.trust.empty"),
        };
        let what = "a log without a snapshot would be taken for a whole history";
        found.push(
            Found::warning(subject, what).seen(newest.file.path.display(), "there is a snapshot"),
        );
    }
    found
}

fn whitelist(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for member in &facts.members {
        let Some(words) = member.client_words().filter(|words| !words.refused.is_empty()) else {
            continue;
        };
        let what = format!("it does not answer {}", words.refused.join(", "));
        found.push(Found::notice(Subject::server(member.id), what));
    }
    for (file, _) in facts.read_files() {
        let Some(setting) = file.setting("4lw.commands.whitelist") else { continue };
        let dangerous = ["*", "wchp", "wchc"];
        let has = setting.value.split(',').map(str::trim).find(|word| dangerous.contains(word));
        if let Some(word) = has {
            let what = format!("{word} is in the whitelist");
            let subject = Subject::file(&file.path, file.id).set_by(setting);
            found.push(Found::warning(subject, what));
        }
    }
    found
}

fn force_sync(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, _) in facts.read_files() {
        let unsafe_if = [
            ("forceSync", "no", "writes are acknowledged that are not on the disk"),
            ("skipACL", "yes", "access lists are not looked at"),
        ];
        for (name, value, what) in unsafe_if {
            let set = file.setting(name);
            if let Some(setting) = set.filter(|set| set.value.eq_ignore_ascii_case(value)) {
                let subject = Subject::file(&file.path, file.id).set_by(setting);
                found.push(Found::error(subject, what));
            }
        }
    }
    found
}
