//! Rules of TLS and SASL among servers, from files alone: who can link with whom, and on which step of the way there they are.
//!
//! ```text
//!   TLS   0 plain ─► 1 portUnification ─► 2 both ─► 3 sslQuorum           each step on all servers before the next
//!   SASL  0 none ──► 1 enableSasl ──────► 2 learnerRequireSasl ─► 3 serverRequireSasl
//! ```

use std::collections::BTreeSet;

use quorate_core::id::ServerId;

use crate::facts::Facts;
use crate::file::ConfigFile;
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.tls-differ",
        levels: &[Level::Error],
        when: "by their files two members cannot link: one dials with TLS where the other takes none, or without it where the \
               other wants it, or they have no version or cipher suite in common",
        why: "each waits for the other for ever, and no log says why: there is no quorum as soon as it takes these two",
        todo: "go through portUnification: first that on all servers, then sslQuorum=true on all, then portUnification away; one \
               server at a time",
        sources: &["ZOOKEEPER-236", "zookeeperAdmin.md, \"Upgrading existing non-TLS cluster\""],
        explains: &[],
        check: tls_differ,
    },
    Rule {
        id: "cfg.tls-step",
        levels: &[Level::Notice],
        when: "members are on the way from plain links to TLS, or to SASL: it says on which step, and whether the next is safe",
        why: "until the last step any host that reaches the ports is let in as before; a step too far cuts members off",
        todo: "finish the way: each step on all servers before the next, one server at a time",
        sources: &["zookeeperAdmin.md, \"Upgrading existing non-TLS cluster\"", "ZOOKEEPER-1045"],
        explains: &[],
        check: step,
    },
    Rule {
        id: "cfg.sasl-order",
        levels: &[Level::Error],
        when: "serverRequireSasl is set without learnerRequireSasl, or that without enableSasl, or members are more than one of \
               these steps apart",
        why: "the server does not start, or refuses the members that do not log in, or is refused by those that know no logins",
        todo: "enableSasl on all servers, then learnerRequireSasl on all, then serverRequireSasl on all; one server at a time",
        sources: &["ZOOKEEPER-1045"],
        explains: &["cfg.unreadable"],
        check: sasl_order,
    },
];

/// Whether a setting says true.
pub(super) fn is_true(file: &ConfigFile, name: &str) -> bool {
    file.setting(name).is_some_and(|setting| setting.value.trim().eq_ignore_ascii_case("true"))
}

/// The files of members of ensembles.
pub(super) fn of_ensembles(facts: &Facts) -> impl Iterator<Item = &ConfigFile> {
    facts.files.iter().filter(|file| file.cfg().is_none_or(|cfg| !cfg.alone))
}

/// A file, in the line of a setting if it has one.
pub(super) fn at(file: &ConfigFile, name: &str) -> Subject {
    let subject = Subject::file(&file.path, file.id);
    match file.setting(name) {
        Some(setting) => subject.set_by(setting),
        None => subject.key(name),
    }
}

/// How a file is named beside another.
fn named(file: &ConfigFile) -> String {
    match file.id {
        Some(id) => format!("server {id} ({})", file.path.display()),
        None => file.path.display().to_string(),
    }
}

const SSL: &str = "sslQuorum";
const BOTH: &str = "portUnification";
const SASL: [&str; 3] =
    ["quorum.auth.enableSasl", "quorum.auth.learnerRequireSasl", "quorum.auth.serverRequireSasl"];

/// Whether servers of this file have TLS among themselves, in one direction at least.
pub(super) fn has_tls(file: &ConfigFile) -> bool {
    tls_step(file) > 0
}

/// From 0 to 3.
fn tls_step(file: &ConfigFile) -> usize {
    match (is_true(file, SSL), is_true(file, BOTH)) {
        (false, false) => 0,
        (false, true) => 1,
        (true, true) => 2,
        (true, false) => 3,
    }
}

/// From 0 to 3: the last of the three that is set.
fn sasl_step(file: &ConfigFile) -> usize {
    SASL.iter().rposition(|name| is_true(file, name)).map_or(0, |last| last + 1)
}

fn tls_differ(facts: &Facts) -> Vec<Found> {
    let files: Vec<_> = of_ensembles(facts).collect();
    let mut found = Vec::new();
    for (nth, file) in files.iter().enumerate() {
        let before = files.iter().take(nth);
        let apart = before.filter(|other| !is_same(file, other));
        let Some((other, key, why)) = apart
            .into_iter()
            .find_map(|other| cut(file, other).map(|(key, why)| (other, key, why)))
        else {
            continue;
        };
        let what = format!("it cannot link with {}: {why}", named(other));
        let seen = [*file, *other].map(|file| {
            let switches = [SSL, BOTH].map(|name| format!("{name}={}", is_true(file, name)));
            Evidence::new(file.path.display(), switches.join(", "))
        });
        found.push(Found::error(at(file, key), what).seen_all(seen));
    }
    found
}

/// Two files of one server are not two members.
fn is_same(one: &ConfigFile, other: &ConfigFile) -> bool {
    one.id.is_some() && one.id == other.id
}

/// Why two servers cannot link, if they cannot, and the setting that is behind it. Either may have to dial the other.
fn cut(here: &ConfigFile, there: &ConfigFile) -> Option<(&'static str, &'static str)> {
    match (tls_step(here), tls_step(there)) {
        (0, 2 | 3) => return Some((SSL, "that one dials with TLS, and there is none here")),
        (2 | 3, 0) => return Some((SSL, "it dials with TLS, and there is none there")),
        (1, 3) => return Some((SSL, "it dials without TLS, which is wanted there")),
        (3, 1) => return Some((SSL, "that one dials without TLS, which is wanted here")),
        (0, _) | (_, 0) | (1, 1) => return None,
        _ => {}
    }
    let (here_speaks, there_speaks) = (versions(here), versions(there));
    if here_speaks.is_disjoint(&there_speaks) {
        let why = "they have no version of TLS in common";
        return Some(("ssl.quorum.enabledProtocols", why));
    }
    let suites = "ssl.quorum.ciphersuites";
    let (here, there) = (list(here, suites), list(there, suites));
    let apart = here.zip(there).is_some_and(|(here, there)| here.is_disjoint(&there));
    apart.then_some((suites, "they have no cipher suite in common"))
}

fn list<'a>(file: &'a ConfigFile, name: &str) -> Option<BTreeSet<&'a str>> {
    let words = file.setting(name)?.value.split([',', ':']).map(str::trim);
    Some(words.filter(|word| !word.is_empty()).collect())
        .filter(|list: &BTreeSet<_>| !list.is_empty())
}

/// What a file lets a server speak, as far as all servers read it alike: ZooKeeper 3.8 takes `protocol` for the one version
/// that there is, newer ones and ours for the highest.
fn versions(file: &ConfigFile) -> BTreeSet<&str> {
    let all = || BTreeSet::from(["TLSv1.2", "TLSv1.3"]);
    if let Some(enabled) = list(file, "ssl.quorum.enabledProtocols") {
        return enabled;
    }
    match file.setting("ssl.quorum.protocol").map(|setting| setting.value.as_str()) {
        Some("TLSv1.2") => BTreeSet::from(["TLSv1.2"]),
        Some(_) | None => all(),
    }
}

/// What is set on the way, a word for each step.
struct Way {
    what: &'static str,
    step: fn(&ConfigFile) -> usize,
    key: [&'static str; 4],
    next: [&'static str; 4],
}

const WAYS: [Way; 2] = [
    Way {
        what: "TLS between servers",
        step: tls_step,
        key: [SSL, BOTH, SSL, SSL],
        next: [
            "set portUnification=true and the stores",
            "set sslQuorum=true beside portUnification=true",
            "remove portUnification, when no server has a link without TLS any more",
            "",
        ],
    },
    Way {
        what: "SASL between servers",
        step: sasl_step,
        key: [SASL[0], SASL[0], SASL[1], SASL[2]],
        next: [
            "set quorum.auth.enableSasl=true",
            "set quorum.auth.learnerRequireSasl=true",
            "set quorum.auth.serverRequireSasl=true",
            "",
        ],
    },
];

fn step(facts: &Facts) -> Vec<Found> {
    WAYS.iter().filter_map(|way| on_the_way(facts, way)).collect()
}

fn on_the_way(facts: &Facts, way: &Way) -> Option<Found> {
    let files: Vec<_> = of_ensembles(facts).collect();
    let steps: Vec<_> = files.iter().map(|file| (way.step)(file)).collect();
    let (least, most) = (steps.iter().copied().min()?, steps.iter().copied().max()?);
    let has_arrived = least == most && (least == 0 || least == 3);
    if has_arrived {
        return None;
    }
    let unseen = unseen(facts, &files);
    let next = way.next.get(least).copied().unwrap_or_default();
    let (what, todo) = if most - least > 1 {
        let what = format!("{}: members are on step {least} and on step {most} of 3", way.what);
        (what, format!("not safe: servers on step {least} first: {next}"))
    } else if least < most {
        let behind = files.iter().zip(&steps).filter(|(_, step)| **step == least);
        let behind: Vec<_> = behind.map(|(file, _)| named(file)).collect();
        let what = format!("{}: step {most} of 3 is under way", way.what);
        (what, format!("next, and safe: on {}: {next}", behind.join(", ")))
    } else if unseen.is_empty() {
        let what = format!("{}: all members are on step {least} of 3", way.what);
        (what, format!("next, and safe, one server at a time: {next}"))
    } else {
        let what = format!("{}: step {least} of 3, in the files that were given", way.what);
        let ids: Vec<_> = unseen.iter().map(ToString::to_string).collect();
        (
            what,
            format!("not known to be safe without the files of servers {}: {next}", ids.join(", ")),
        )
    };
    let key = way.key.get(most).copied().unwrap_or_default();
    let seen = files.iter().zip(&steps);
    let seen = seen.map(|(file, step)| Evidence::new(named(file), format!("step {step}")));
    Some(Found::notice(Subject::default().key(key), what).seen_all(seen).todo(todo))
}

/// The members whose files are not here.
fn unseen(facts: &Facts, files: &[&ConfigFile]) -> Vec<ServerId> {
    let members = facts.membership().map(|membership| membership.members()).unwrap_or_default();
    let ids = members.iter().map(|member| member.id);
    ids.filter(|id| !files.iter().any(|file| file.id == Some(*id))).collect()
}

fn sasl_order(facts: &Facts) -> Vec<Found> {
    let files: Vec<_> = of_ensembles(facts).collect();
    let mut found = Vec::new();
    for (nth, file) in files.iter().enumerate() {
        let missing = SASL.iter().zip(SASL.iter().skip(1));
        let missing = missing.filter(|(needed, set)| is_true(file, set) && !is_true(file, needed));
        if let Some((needed, set)) = missing.into_iter().next_back() {
            let what = format!("{set} is true, and {needed}, which it takes, is not");
            found.push(Found::error(at(file, set), what));
            continue;
        }
        let own = sasl_step(file);
        let others = files.iter().take(nth).filter(|other| !is_same(file, other));
        let Some(other) = others.into_iter().find(|other| sasl_step(other).abs_diff(own) > 1)
        else {
            continue;
        };
        let step = sasl_step(other);
        let what = format!("it is on step {own} of SASL, and {} on step {step}", named(other));
        let key = SASL.get(own.max(step) - 1).copied().unwrap_or(SASL[0]);
        found.push(Found::error(at(file, key), what));
    }
    found
}
