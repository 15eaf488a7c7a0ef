//! Rules of configuration: what has to be the same for all members, and is not.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_driver::zoo_cfg::ZooCfg;

use crate::facts::{Facts, Member};
use crate::file::ConfigFile;
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.members-differ",
        levels: &[Level::Error],
        when: "the server.N lines (host as written, ports, role), groups or weights differ between members",
        why: "there are two views of what a quorum is: votes are ignored for ever, or a leader is elected that cannot commit",
        todo: "write the same server, group and weight lines into all files, and restart one server at a time",
        sources: &[
            "ZOOKEEPER-3829",
            "https://github.com/strimzi/strimzi-kafka-operator/issues/8675",
        ],
        explains: &["live.no-leader", "live.votes-differ", "live.round-grows"],
        check: members_differ,
    },
    Rule {
        id: "cfg.version-differs",
        levels: &[Level::Warning],
        when: "members tell different versions of the configuration, twice",
        why: "a reconfiguration is under way, or a member was left behind by one",
        todo: "wait a minute and look again; restart a member that stays behind",
        sources: &["zookeeperReconfig.md"],
        explains: &[],
        check: version_differs,
    },
    Rule {
        id: "cfg.timing-differs",
        levels: &[Level::Error, Level::Warning],
        when: "tickTime, initLimit, syncLimit, jute.maxbuffer, quorate.election or a switch differs between members",
        why: "members give one another up after different times, or one writes what another cannot read",
        todo: "set it alike on all servers and restart one at a time",
        sources: &["ZOOKEEPER-3496", "https://github.com/pravega/zookeeper-operator/issues/477"],
        explains: &[],
        check: timing_differs,
    },
];

/// The part of a membership that has to be the same for all, as text: a line for each server, group and weight.
fn lines(membership: &Membership) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(membership.text()).into_owned();
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let lines = lines.filter(|(key, _)| *key != "version");
    // Where clients connect is no matter of votes.
    let as_voters_see_it = |value: &str| value.split(';').next().unwrap_or_default().to_owned();
    lines.map(|(key, value)| (key.to_owned(), spelt_out(&as_voters_see_it(value)))).collect()
}

/// IPv6 addresses in one spelling: Java writes `0:0:0:0:0:0:0:1` for `::1`.
fn spelt_out(value: &str) -> String {
    let Some((host, rest)) = value.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return value.to_owned();
    };
    match host.parse::<std::net::Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]{rest}"),
        Err(_) => value.to_owned(),
    }
}

/// A membership and where it was seen.
struct View<'a> {
    source: String,
    server: Option<ServerId>,
    file: Option<&'a ConfigFile>,
    membership: &'a Membership,
}

fn views(facts: &Facts) -> Vec<View<'_>> {
    let files = facts.read_files().filter(|(_, cfg)| !cfg.alone).map(|(file, cfg)| View {
        source: file.path.display().to_string(),
        server: file.id,
        file: Some(file),
        membership: &cfg.membership,
    });
    let told = facts.members.iter().filter_map(|member| {
        let membership = member.heard()?.membership.as_ref()?;
        let source = format!("server {} on its election port", member.id);
        Some(View { source, server: Some(member.id), file: None, membership })
    });
    files.chain(told).collect()
}

/// Views of different versions differ by right; those of files without one, which have version 0, are compared with one
/// another and with members that tell version 0.
fn members_differ(facts: &Facts) -> Vec<Found> {
    let views = views(facts);
    let mut found = Vec::new();
    let mut by_version = BTreeMap::<i64, Vec<&View<'_>>>::new();
    for view in &views {
        by_version.entry(view.membership.version()).or_default().push(view);
    }
    for group in by_version.values() {
        let Some((first, rest)) = group.split_first() else { continue };
        let expected = lines(first.membership);
        let mut told = BTreeSet::new();
        for view in rest {
            let other = lines(view.membership);
            let keys: BTreeSet<_> = expected.keys().chain(other.keys()).collect();
            let differs = keys.into_iter().find(|key| expected.get(*key) != other.get(*key));
            let Some(key) = differs else { continue };
            // One finding of a server, whether its file or its port tells it.
            if view.server.is_some_and(|id| !told.insert(id)) {
                continue;
            }
            let shown =
                |value: Option<&String>| value.map_or("no such line".to_owned(), Clone::clone);
            let (here, there) = (shown(other.get(key)), shown(expected.get(key)));
            let what = format!("{key} is {here} here, and {there} in {}", first.source);
            let subject = match (view.file, view.server) {
                (Some(file), id) => Subject::file(&file.path, id),
                (None, Some(id)) => Subject::server(id),
                (None, None) => Subject::default(),
            };
            found.push(
                Found::error(subject.key(key), what)
                    .seen(&first.source, there)
                    .seen(&view.source, here),
            );
        }
    }
    found
}

fn version_differs(facts: &Facts) -> Vec<Found> {
    let versions = |members: &[Member]| -> BTreeMap<i64, Vec<ServerId>> {
        let mut versions: BTreeMap<i64, Vec<_>> = BTreeMap::new();
        for member in members {
            if let Some(membership) = member.heard().and_then(|heard| heard.membership.as_ref()) {
                versions.entry(membership.version()).or_default().push(member.id);
            }
        }
        versions
    };
    let now = versions(&facts.members);
    if now.len() < 2 || versions(&facts.before).len() < 2 {
        return Vec::new();
    }
    let Some((newest, _)) = now.last_key_value() else { return Vec::new() };
    let behind = now.iter().filter(|(version, _)| *version != newest);
    let behind = behind.flat_map(|(version, ids)| ids.iter().map(move |id| (version, id)));
    behind
        .map(|(version, id)| {
            let what = format!(
                "it has version {version:x} of the configuration, while others have {newest:x}"
            );
            Found::warning(Subject::server(*id), what)
        })
        .collect()
}

/// What a setting is, to be compared.
type Value = fn(&ZooCfg) -> String;

const ALIKE: [(&str, Value); 7] = [
    ("tickTime", |cfg| cfg.tick_time.as_millis().to_string()),
    ("initLimit", |cfg| cfg.init_limit.to_string()),
    ("syncLimit", |cfg| cfg.sync_limit.to_string()),
    ("jute.maxbuffer", |cfg| cfg.request_bytes.to_string()),
    ("quorate.election", |cfg| match cfg.election {
        quorate_core::config::Election::Fast => "fast".to_owned(),
        quorate_core::config::Election::Generation(_) => "generation".to_owned(),
    }),
    ("reconfigEnabled", |cfg| cfg.reconfig_enabled.to_string()),
    ("standaloneEnabled", |cfg| cfg.standalone_enabled.to_string()),
];

fn timing_differs(facts: &Facts) -> Vec<Found> {
    let read: Vec<_> = facts.read_files().filter(|(_, cfg)| !cfg.alone).collect();
    let Some(((first_file, first), rest)) = read.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (file, cfg) in rest {
        let values = ALIKE.iter().map(|(name, value)| (*name, value(cfg), value(first)));
        for (name, here, there) in values.filter(|(_, here, there)| here != there) {
            let source = first_file.path.display();
            let what = format!("{name} is {here} here, and {there} in {source}");
            let subject = Subject::file(&file.path, file.id).key(name);
            let subject = match file.setting(name) {
                Some(setting) => subject.set_by(setting),
                None => subject,
            };
            found.push(Found::warning(subject, what));
        }
    }
    found.extend(told_timing(facts));
    found
}

/// The same of what servers tell at their client ports (`conf`).
fn told_timing(facts: &Facts) -> Vec<Found> {
    let told: Vec<_> = facts
        .members
        .iter()
        .filter_map(|member| Some((member.id, &member.words()?.conf)))
        .collect();
    let mut found = Vec::new();
    for name in ["tickTime", "initLimit", "syncLimit", "electionAlg"] {
        let values = told.iter().filter_map(|(id, conf)| Some((*id, conf.get(name)?)));
        let mut by_value = BTreeMap::<&String, Vec<ServerId>>::new();
        for (id, value) in values {
            by_value.entry(value).or_default().push(id);
        }
        if by_value.len() < 2 {
            continue;
        }
        let evidence = by_value.iter().map(|(value, ids)| {
            let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
            Evidence::new(format!("conf of server {}", ids.join(", ")), (*value).clone())
        });
        let what = format!("{name} is not the same for all servers");
        found.push(Found::warning(Subject::default().key(name), what).seen_all(evidence));
    }
    found
}
