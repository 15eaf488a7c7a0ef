//! The files of an ensemble beside one another: what has to be the same in all of them, and is not.

use std::collections::{BTreeMap, BTreeSet};

use quorate_doctor::ConfigFile;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::ZooCfg;

use super::finding::{Finding, Level};

/// What is found between files.
pub(super) fn findings(files: &[ConfigFile]) -> Vec<Finding> {
    let mut found = twice(files);
    found.extend(members(files));
    let read: Vec<_> = files.iter().filter_map(|file| Some((file, file.cfg()?))).collect();
    for (name, value, why) in ALIKE {
        let Some(((_, first), rest)) = read.split_first() else { break };
        for (file, cfg) in rest.iter().filter(|(_, cfg)| value(cfg) != value(first)) {
            let (ours, theirs) = (value(cfg), value(first));
            let what =
                format!("{name} is {ours} here and {theirs} in {}: {why}", files[0].path.display());
            let remedy =
                "set it alike on all servers, restarting one at a time, before any is replaced";
            let finding = Finding::new(Level::Endangers, what, remedy).in_file(&file.path);
            let finding = finding.of(file.id);
            found.push(match file.setting(name) {
                Some(setting) => finding.set_by(setting),
                None => finding,
            });
        }
    }
    found.extend(missing(files));
    found
}

/// Two files of one server.
fn twice(files: &[ConfigFile]) -> Vec<Finding> {
    let mut seen = BTreeMap::<ServerId, &ConfigFile>::new();
    let mut found = Vec::new();
    for file in files {
        let Some(id) = file.id else { continue };
        if let Some(before) = seen.insert(id, file) {
            let (one, other) = (before.path.display(), file.path.display());
            let what =
                format!("{one} and {other} are both of server {id}, by the myid of their dataDir");
            let remedy = "each server needs an id of its own; if the files were gathered here from other machines, say \
                          whose each is: `quorate migrate check 1=FILE 2=FILE …`";
            found.push(Finding::new(Level::Forbids, what, remedy).in_file(&file.path).of(Some(id)));
        }
    }
    found
}

/// Other memberships.
fn members(files: &[ConfigFile]) -> Vec<Finding> {
    let mut read = files.iter().filter_map(|file| Some((file, file.cfg()?)));
    let Some((first_file, first)) = read.next() else { return Vec::new() };
    let differs = |cfg: &ZooCfg| {
        cfg.membership.clone().with_version(first.membership.version()) != first.membership
    };
    let what = || {
        let first = first_file.path.display();
        format!("its server lines are not those of {first}: two views of what a quorum is")
    };
    read.filter(|(_, cfg)| differs(cfg))
        .map(|(file, _)| {
            let remedy = "write the same server, group and weight lines into all files";
            Finding::new(Level::Forbids, what(), remedy).in_file(&file.path).of(file.id)
        })
        .collect()
}

/// Members whose files were not given.
fn missing(files: &[ConfigFile]) -> Option<Finding> {
    let cfg = files.iter().find_map(ConfigFile::cfg)?;
    let given: BTreeSet<_> = files.iter().filter_map(|file| file.id).collect();
    let missing = cfg.membership.members().iter().filter(|member| !given.contains(&member.id));
    let missing: Vec<_> = missing.map(|member| member.id.to_string()).collect();
    if missing.is_empty() {
        return None;
    }
    let what = format!(
        "no file is known to be that of server {}: they may say something else",
        missing.join(", ")
    );
    Some(Finding::new(Level::Notice, what, "give the zoo.cfg of every server"))
}

/// What a setting is, to be compared.
type Value = fn(&ZooCfg) -> String;

/// What has to be the same, and why.
const ALIKE: [(&str, Value, &str); 12] = [
    ("tickTime", |cfg| cfg.tick_time.as_millis().to_string(), TIMING),
    ("initLimit", |cfg| cfg.init_limit.to_string(), TIMING),
    ("syncLimit", |cfg| cfg.sync_limit.to_string(), TIMING),
    (
        "jute.maxbuffer",
        |cfg| format!("{} with {} around it", cfg.request_bytes, cfg.txn_bytes - cfg.request_bytes),
        "one server writes what another cannot read",
    ),
    (
        "extendedTypesEnabled",
        |cfg| cfg.clients.extended_types.to_string(),
        "TTL nodes at one server are nodes of sessions at another",
    ),
    (
        "DigestAuthenticationProvider.digestAlg",
        |cfg| cfg.clients.digest_algorithm.clone(),
        "a user has other digests at one server than at another",
    ),
    (
        "DigestAuthenticationProvider.superDigest",
        |cfg| match &cfg.clients.super_digest {
            Some(_) => "one".to_owned(),
            None => "none".to_owned(),
        },
        "the superuser is not known everywhere",
    ),
    (
        "X509AuthenticationProvider.superUser",
        |cfg| cfg.clients.x509_super.clone().unwrap_or_default(),
        "the superuser is not known everywhere",
    ),
    ("skipACL", |cfg| cfg.clients.skip_acl.to_string(), "access depends on the server"),
    (
        "digest.enabled",
        |cfg| cfg.clients.tree_digests.to_string(),
        "whether trees are compared depends on who leads",
    ),
    (
        "reconfigEnabled",
        |cfg| cfg.reconfig_enabled.to_string(),
        "a server without it does not see changes of the membership",
    ),
    (
        "maxSessionTimeout",
        |cfg| {
            let shown = |set: Option<std::time::Duration>, ticks| {
                set.unwrap_or(cfg.tick_time * ticks).as_millis()
            };
            let clients = &cfg.clients;
            let (min, max) =
                (shown(clients.session_timeout_min, 2), shown(clients.session_timeout_max, 20));
            format!("{max} ms (and minSessionTimeout {min} ms)")
        },
        "a client that moves gets another time-out",
    ),
];

const TIMING: &str = "leader and learner give one another up after different times";
