//! Rules of versions: which run beside one another, and what is known to be wrong with them.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;

use crate::facts::Facts;
use crate::finding::{Evidence, Found, Level, Subject};
use crate::java::{Version, faults_of};
use crate::rule::Rule;

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

fn java_bug(facts: &Facts) -> Vec<Found> {
    let mut versions = BTreeMap::<Version, Vec<ServerId>>::new();
    for member in &facts.members {
        let Some(words) = member.words().filter(|words| !words.is_ours()) else { continue };
        if let Some(version) = words.number_of_version() {
            versions.entry(version).or_default().push(member.id);
        }
    }
    let mut found = Vec::new();
    for (version, ids) in versions {
        let mut faults: Vec<_> = faults_of(version).collect();
        faults.sort_by_key(|fault| fault.level);
        let Some(worst) = faults.first() else { continue };
        let (who, verb) = (shown(&ids), if ids.len() == 1 { "runs" } else { "run" });
        let beside = match faults.len() {
            1 => String::new(),
            more => format!("; {} more known fault(s)", more - 1),
        };
        let what = format!("{who} {verb} ZooKeeper {version}, which {}{beside}", worst.what);
        let evidence = faults.iter().map(|fault| {
            Evidence::new(
                fault.issues.join(", "),
                format!("{}: {} (fixed in {})", fault.level, fault.what, fault.fixed),
            )
        });
        let subject = match ids.as_slice() {
            [one] => Subject::server(*one),
            _ => Subject::default(),
        };
        found.push(Found::new(worst.level, subject, what).seen_all(evidence));
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
