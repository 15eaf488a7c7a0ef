//! Rules of configuration: what keeps a file from being read, and who a server is.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_driver::zoo_cfg::{Caution, ConfigError};

use crate::facts::{Address, Facts};
use crate::file::ConfigFile;
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.unreadable",
        levels: &[Level::Error],
        when: "a file breaks the grammar, or a value is not of its kind",
        why: "a server does not start with this file, or takes the line for something else than it says",
        todo: "correct the line; what is right stands on ZooKeeper's page of its configuration",
        sources: &["QuorumPeerConfig.java"],
        explains: &[],
        check: unreadable,
    },
    Rule {
        id: "cfg.unknown-key",
        levels: &[Level::Warning],
        when: "a key that neither ZooKeeper nor quorate knows, or a well-known misspelling",
        why: "the line has no effect, so a default holds that was not chosen",
        todo: "correct the key or remove the line",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: unknown_key,
    },
    Rule {
        id: "cfg.myid-missing",
        levels: &[Level::Error],
        when: "the data directory is here and holds no myid",
        why: "a server of an ensemble does not start without its id",
        todo: "write the N of its server.N line into the file myid in its dataDir",
        sources: &["https://github.com/pravega/zookeeper-operator/issues/315"],
        explains: &[],
        check: myid_missing,
    },
    Rule {
        id: "cfg.myid-invalid",
        levels: &[Level::Error],
        when: "myid holds no number from 1 to 255",
        why: "the server does not start",
        todo: "write the N of its server.N line into myid, and nothing else",
        sources: &["QuorumPeerConfig.java"],
        explains: &[],
        check: myid_invalid,
    },
    Rule {
        id: "cfg.myid-not-listed",
        levels: &[Level::Error],
        when: "there is no server.N line for the id in myid",
        why: "the server does not start, or takes part in nothing",
        todo: "write the line into the files of all servers, or the right id into myid",
        sources: &[
            "https://github.com/pravega/zookeeper-operator/issues/315",
            "https://github.com/bitnami/bitnami-docker-zookeeper/issues/35",
        ],
        explains: &[],
        check: myid_not_listed,
    },
    Rule {
        id: "cfg.myid-twice",
        levels: &[Level::Error],
        when: "two files with their data directories here claim one id, or a log tells of a second server with its own",
        why: "one of the two never gets a link to the others, and both may vote",
        todo: "give each server an id of its own; images that default to id 1 need it set",
        sources: &["https://github.com/31z4/zookeeper-docker/issues/115"],
        explains: &[],
        check: myid_twice,
    },
    Rule {
        id: "cfg.myid-elsewhere",
        levels: &[Level::Error],
        when: "the host of the own server.N line is no address of this machine, while another server's is",
        why: "the server cannot open its ports, or answers in another's name: a data directory was copied with its myid",
        todo: "write the id of the server line of this machine into myid, or move the directory",
        sources: &["QuorumPeer.java"],
        explains: &["live.port-closed"],
        check: myid_elsewhere,
    },
];

/// What the reader refuses, but for the errors that have rules of their own.
fn refusal(file: &ConfigFile) -> Option<&ConfigError> {
    file.survey.rest.as_ref().err()
}

fn unreadable(facts: &Facts) -> Vec<Found> {
    let refused = facts.files.iter().filter_map(|file| Some((&file.path, file.id, refusal(file)?)));
    let broken = facts.broken.iter().map(|(path, error)| (path, None, error));
    let mut found = Vec::new();
    for (path, id, error) in refused.chain(broken) {
        let subject = Subject::file(path, id);
        let subject = match error {
            ConfigError::MyIdUnreadable { .. }
            | ConfigError::MyId { .. }
            | ConfigError::MyIdNotListed { .. } => continue,
            ConfigError::Value { setting, .. }
            | ConfigError::Misspelt { setting, .. }
            | ConfigError::NotSupported { setting, .. }
            | ConfigError::MemberLine { setting, .. }
            | ConfigError::IdRange { setting }
            | ConfigError::IdExtended { setting, .. }
            | ConfigError::TwoMemberships { setting, .. }
            | ConfigError::NotDynamic { setting } => subject.set_by(setting),
            ConfigError::Membership { at, .. } => subject.at(at),
            ConfigError::Missing { key, .. } => subject.key(*key),
            ConfigError::Read { .. }
            | ConfigError::Escape { .. }
            | ConfigError::NoServers { .. }
            | ConfigError::TwoClientAddresses { .. }
            | ConfigError::ClientPortTaken { .. } => subject,
        };
        found.push(Found::error(subject, error.to_string()));
    }
    found
}

fn unknown_key(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files() {
        for warning in &cfg.warnings {
            let (key, todo) = match &warning.caution {
                Caution::UnknownKey { key, nearest: Some(nearest), .. } => {
                    (key, format!("write {nearest}, or remove the line"))
                }
                Caution::UnknownKey { key, nearest: None, .. } => {
                    (key, "remove the line, unless a program of yours reads it".to_owned())
                }
                Caution::Misspelt { key, instead, .. } => (key, (*instead).to_owned()),
                Caution::NotUsed { .. }
                | Caution::Repeated { .. }
                | Caution::Weakens { .. }
                | Caution::KeepAliveStays
                | Caution::OtherRole { .. }
                | Caution::SeveralAddresses { .. }
                | Caution::Alone
                | Caution::MyIdUnused { .. }
                | Caution::OneParticipant
                | Caution::TwoParticipants
                | Caution::EvenParticipants { .. } => continue,
            };
            let subject = Subject::file(&file.path, file.id).at(&warning.at).key(key);
            found.push(Found::warning(subject, warning.caution.to_string()).todo(todo));
        }
    }
    found
}

/// A file that was not said to be another machine's, and whose `dataDir` is here without a `myid`, is one that does not
/// start. The reader of files knows that the directory is here by what stands in it, so what gathers facts says it.
fn myid_missing(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files() {
        let is_here = facts.dirs.iter().any(|dir| dir.dir == cfg.data_dir);
        if is_here && file.id.is_none() && !cfg.alone {
            let myid = cfg.data_dir.join("myid");
            let what = format!("{} does not exist", myid.display());
            found.push(Found::error(Subject::file(&file.path, None), what));
        }
    }
    found
}

fn myid_invalid(facts: &Facts) -> Vec<Found> {
    let wrong = facts.files.iter().filter_map(|file| {
        let error = refusal(file)?;
        let ConfigError::MyId { file: myid, .. } = error else { return None };
        Some(Found::error(Subject::file(myid, None), error.to_string()))
    });
    wrong.collect()
}

fn myid_not_listed(facts: &Facts) -> Vec<Found> {
    let wrong = facts.files.iter().filter_map(|file| {
        let error = refusal(file)?;
        let ConfigError::MyIdNotListed { file: myid, id, .. } = error else { return None };
        let found = Found::error(Subject::file(myid, Some(*id)), error.to_string());
        Some(found.seen(file.path.display(), "the server lines"))
    });
    wrong.collect()
}

fn myid_twice(facts: &Facts) -> Vec<Found> {
    let mut seen = BTreeMap::<ServerId, &ConfigFile>::new();
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files() {
        let Some(id) = file.id.filter(|_| !cfg.alone) else { continue };
        let Some(before) = seen.insert(id, file) else { continue };
        let what = format!(
            "{} and {} are both of server {id}",
            before.path.display(),
            file.path.display()
        );
        found.push(
            Found::error(Subject::file(&file.path, Some(id)), what)
                .todo("give each server an id of its own")
                .todo("if the files were gathered from other machines, say whose each is: `quorate doctor 1=FILE 2=FILE`"),
        );
    }
    found
}

fn myid_elsewhere(facts: &Facts) -> Vec<Found> {
    let here = |host: &str| -> Option<bool> {
        let addresses = facts.hosts.get(host)?.as_ref().ok()?;
        Some(addresses.iter().any(|Address { is_here, .. }| *is_here))
    };
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(file, cfg)| file.is_at_home && !cfg.alone) {
        let own = cfg.own();
        if here(&own.election_address().host) != Some(false) {
            continue;
        }
        let others = cfg.membership.members().iter().filter(|member| member.id != own.id);
        let of_this_machine: Vec<_> =
            others.filter(|member| here(&member.election_address().host) == Some(true)).collect();
        if let [other] = of_this_machine.as_slice() {
            let host = &own.election_address().host;
            let what = format!(
                "myid says {}, whose host {host} is not this machine; server {} on {} is",
                own.id,
                other.id,
                other.election_address().host
            );
            // Of the server that this machine should run: its ports are closed.
            found.push(Found::error(Subject::file(&file.path, Some(other.id)), what));
        }
    }
    found
}
