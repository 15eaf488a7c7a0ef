//! What ZooKeeper's start script gives its JVM: `-D` flags in the environment.
//!
//! ```text
//!   SERVER_JVMFLAGS, then JVMFLAGS     -Dzookeeper.x=y   the key x, unless the file sets it
//!                                      -Djute.maxbuffer=…, and what else ZooKeeper has as a flag alone: before the file
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::zoo_cfg::findings::{Place, Setting};

/// The `-D` flags in an environment that an operator made for ZooKeeper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmFlags {
    /// As they are written, the last of each name.
    settings: BTreeMap<String, Setting>,
}

impl JvmFlags {
    /// Those of this process.
    pub fn of_environment() -> Self {
        Self::of(|variable| std::env::var(variable).ok())
    }

    /// Those of variables that are looked up. Words that are no such flags are passed over.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut settings = BTreeMap::new();
        for name in VARIABLES {
            let flags = variable(name).unwrap_or_default();
            for flag in flags.split_whitespace().filter_map(|word| word.strip_prefix("-D")) {
                let (key, value) = flag.split_once('=').unwrap_or((flag, ""));
                let at = Place { file: PathBuf::from(name), line: 0 };
                let setting = Setting { at, key: key.to_owned(), value: value.to_owned() };
                settings.insert(key.to_owned(), setting);
            }
        }
        Self { settings }
    }

    /// The keys that they set, and whether each comes before the file or behind it.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, Rank, &Setting)> {
        self.settings.iter().filter_map(|(name, setting)| {
            let of_flags = |key: &str| FLAGS_ALONE.iter().any(|known| is(known, key));
            match name.strip_prefix("zookeeper.") {
                None if of_flags(name) => Some((&**name, Rank::BeforeFile, setting)),
                // It is none of ZooKeeper's.
                None => None,
                Some(key) if FILE_ALONE.iter().any(|known| is(known, key)) => {
                    Some((key, Rank::NotAFlag, setting))
                }
                Some(key) => Some((key, Rank::BehindFile, setting)),
            }
        })
    }
}

/// Which counts, a flag or the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    BeforeFile,
    BehindFile,
    /// ZooKeeper reads this key from its file alone.
    NotAFlag,
}

/// Whether a key is that one, or one of a family whose name ends in a dot.
fn is(known: &str, key: &str) -> bool {
    key == known || known.ends_with('.') && key.starts_with(known)
}

/// The later counts.
const VARIABLES: [&str; 2] = ["SERVER_JVMFLAGS", "JVMFLAGS"];

/// What ZooKeeper's servers have as flags alone, without `zookeeper.` before them.
const FLAGS_ALONE: [&str; 4] = [
    "jute.maxbuffer",
    "readonlymode.enabled",
    "znode.container.",
    "java.security.auth.login.config",
];

/// What ZooKeeper's parser knows by name, and does not make a property of.
const FILE_ALONE: [&str; 39] = [
    "autopurge.",
    "clientPort",
    "clientPortAddress",
    "clientPortListenBacklog",
    "connectToLearnerMasterLimit",
    "dataDir",
    "dataLogDir",
    "dynamicConfigFile",
    "electionAlg",
    "group.",
    "initLimit",
    "localSessionsEnabled",
    "localSessionsUpgradingEnabled",
    "maxClientCnxns",
    "maxSessionTimeout",
    "metricsProvider.",
    "minSessionTimeout",
    "multiAddress.",
    "observerMasterPort",
    "oraclePath",
    "peerType",
    "portUnification",
    "quorum.auth.enableSasl",
    "quorum.auth.kerberos.servicePrincipal",
    "quorum.auth.learner.saslLoginContext",
    "quorum.auth.learnerRequireSasl",
    "quorum.auth.server.saslLoginContext",
    "quorum.auth.serverRequireSasl",
    "quorum.cnxn.threads.size",
    "quorumListenOnAllIPs",
    "reconfigEnabled",
    "secureClientPort",
    "secureClientPortAddress",
    "server.",
    "sslQuorum",
    "standaloneEnabled",
    "syncLimit",
    "tickTime",
    "weight.",
];
