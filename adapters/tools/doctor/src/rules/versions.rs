//! Rules of versions: which run beside one another, and what is known to be wrong with them.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;

use crate::facts::Facts;
use crate::finding::{Evidence, Found, Level, Subject};
use crate::java::{Fault, Version, faults_of};
use crate::rule::Rule;
use crate::rules::steps::is_true;
use crate::vulnerability::{Vulnerability, first_without, vulnerabilities_of};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.java-bug",
        levels: &[Level::Error, Level::Notice],
        when: "a member is a ZooKeeper of a version with a known fault; an error where acknowledged data can be lost",
        why: "the fault has happened to others, and a newer release does not have it",
        todo: "upgrade to 3.9.5 or newer, one server at a time",
        sources: &["https://zookeeper.apache.org/releases.html"],
        explains: &[],
        check: java_bug,
    },
    Rule {
        id: "live.cve",
        levels: &[Level::Error, Level::Warning],
        when: "a member is a ZooKeeper of a version with a published vulnerability; an error where it lets others be servers",
        why: "how it is used is public",
        todo: "upgrade to 3.8.6, 3.9.5 or newer, one server at a time; until then keep strangers from the ports",
        sources: &["https://zookeeper.apache.org/security.html"],
        explains: &[],
        check: cve,
    },
    Rule {
        id: "live.version-mix",
        levels: &[Level::Notice],
        when: "members run different versions",
        why: "an upgrade was left half done, or is under way",
        todo: "bring all members to one version, unless you are about to",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: version_mix,
    },
];

fn shown(ids: &[ServerId]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("server{} {}", if ids.len() == 1 { "" } else { "s" }, ids.join(", "))
}

/// The versions of ZooKeeper's own servers, and who runs each.
fn of_java(facts: &Facts) -> BTreeMap<Version, Vec<ServerId>> {
    let mut versions = BTreeMap::<Version, Vec<ServerId>>::new();
    for member in &facts.members {
        let Some(words) = member.words().filter(|words| !words.is_ours()) else { continue };
        if let Some(version) = words.number_of_version() {
            versions.entry(version).or_default().push(member.id);
        }
    }
    versions
}

/// The servers of a version, as a subject and in a sentence.
fn who_runs(version: Version, ids: &[ServerId]) -> (Subject, String) {
    let subject = match ids {
        [one] => Subject::server(*one),
        _ => Subject::default(),
    };
    let verb = if ids.len() == 1 { "runs" } else { "run" };
    (subject, format!("{} {verb} ZooKeeper {version}", shown(ids)))
}

fn java_bug(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (version, ids) in of_java(facts) {
        let mut faults: Vec<_> = faults_of(version).collect();
        faults.sort_by_key(|fault| fault.level);
        let Some(worst) = faults.first() else { continue };
        let (subject, who) = who_runs(version, &ids);
        let beside = match faults.len() {
            1 => String::new(),
            more => format!("; {} more known fault(s)", more - 1),
        };
        let what = format!("{who}, which {}{beside}", worst.what);
        let evidence = faults.iter().map(|fault| {
            Evidence::new(
                fault.issues.join(", "),
                format!("{}: {} (fixed in {})", fault.level, fault.what, fault.fixed),
            )
        });
        let one = Found::new(worst.level, subject, what).seen_all(evidence);
        found.push(if faults.iter().all(|fault| Fault::is_open(fault)) {
            one.todo("no release is without it yet: let a supervisor start it again whatever its exit code")
        } else {
            one
        });
    }
    found
}

fn cve(facts: &Facts) -> Vec<Found> {
    let has_logins = facts.files.iter().any(|file| is_true(file, "quorum.auth.enableSasl"));
    let level = |known: &Vulnerability| match known.takes_logins && !has_logins {
        true => Level::Warning,
        false => known.level,
    };
    let mut found = Vec::new();
    for (version, ids) in of_java(facts) {
        let mut known: Vec<_> = vulnerabilities_of(version).collect();
        known.sort_by_key(|known| level(known));
        let Some(worst) = known.first() else { continue };
        let (subject, who) = who_runs(version, &ids);
        let beside = match known.len() {
            1 => String::new(),
            more => format!("; {} more", more - 1),
        };
        let what = format!("{who}, which {} ({}){beside}", worst.what, worst.cve);
        let evidence = known.iter().map(|known| {
            let fixed: Vec<_> = known.fixed.iter().map(ToString::to_string).collect();
            Evidence::new(known.cve, format!("{} (mended in {})", known.what, fixed.join(", ")))
        });
        let release = first_without(version);
        found.push(Found::new(level(worst), subject, what).seen_all(evidence).todo(format!(
            "upgrade to {release} or newer, one server at a time; until then keep strangers from the ports"
        )));
    }
    found
}

fn version_mix(facts: &Facts) -> Vec<Found> {
    let mut versions = BTreeMap::<String, Vec<ServerId>>::new();
    for member in &facts.members {
        let Some(version) = member.words().and_then(|words| words.version.as_ref()) else {
            continue;
        };
        let version = version.split(',').next().unwrap_or_default();
        versions.entry(version.to_owned()).or_default().push(member.id);
    }
    if versions.len() < 2 {
        return Vec::new();
    }
    let evidence = versions.iter().map(|(version, ids)| Evidence::new(shown(ids), version.clone()));
    let what = format!("members run {} different versions", versions.len());
    vec![Found::notice(Subject::default(), what).seen_all(evidence)]
}
