//! A file that a server runs with, and the same file when its operator has changed it: what of it counts at once, and what
//! when the server starts again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::zoo_cfg::findings::{Caution, ConfigError, Setting};
use crate::zoo_cfg::flags::JvmFlags;
use crate::zoo_cfg::{Survey, ZooCfg};

/// What a server runs with, and the lines that say so.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub cfg: ZooCfg,
    settings: BTreeMap<String, Setting>,
}

/// How a newer file differs from what a server runs with; keys as they are written, without `zookeeper.`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// These can count at once, each with its value for people to see; none where the line is gone, so that the default
    /// counts.
    pub at_once: Vec<(String, Option<String>)>,
    /// These count when the server starts again.
    pub at_restart: Vec<(String, Option<String>)>,
}

impl FileChanges {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.at_once.is_empty() && self.at_restart.is_empty()
    }
}

impl Loaded {
    /// Reads a file, as [`ZooCfg::read_with`] does.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names file, line, key and value.
    pub fn read(path: impl AsRef<Path>, flags: &JvmFlags) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { file: path.to_owned(), source })?;
        let read = |path: &Path| fs::read_to_string(path);
        let cfg = ZooCfg::parse_with(path, &text, flags, read)?;
        let settings = Survey::of(path, &text, flags, read)?.settings;
        Ok(Self { cfg, settings })
    }

    /// What is different in a newer file. Keys that have no effect are passed over; and so is, where the membership may
    /// change while the ensemble runs, what the servers then write themselves.
    pub fn changes(&self, newer: &Self) -> FileChanges {
        let mut changes = FileChanges::default();
        let ineffective: BTreeSet<_> = newer.cfg.warnings.iter().filter_map(ineffective).collect();
        let names: BTreeSet<_> = self.settings.keys().chain(newer.settings.keys()).collect();
        for name in names {
            let (old, new) = (self.settings.get(name), newer.settings.get(name));
            let written = self.cfg.reconfig_enabled && WRITTEN.contains(&name.as_str());
            let key = new.or(old).map_or(name.as_str(), |setting| &setting.key);
            let same = old.map(|setting| &setting.value) == new.map(|setting| &setting.value);
            if same || written || ineffective.contains(key) {
                continue;
            }
            let change = (name.clone(), new.map(|setting| setting.shown().to_owned()));
            match AT_ONCE.contains(&name.as_str()) {
                true => changes.at_once.push(change),
                false => changes.at_restart.push(change),
            }
        }
        if !self.cfg.reconfig_enabled && self.cfg.membership != newer.cfg.membership {
            changes.at_restart.push(("server.N".to_owned(), None));
        }
        changes
    }

    /// Takes over from a newer file what counts at once.
    pub fn adopt(&mut self, newer: &Self) {
        for key in AT_ONCE {
            match newer.settings.get(key) {
                Some(setting) => drop(self.settings.insert(key.to_owned(), setting.clone())),
                None => drop(self.settings.remove(key)),
            }
        }
        let (own, newer) = (&mut self.cfg, &newer.cfg);
        own.four_letter_words.clone_from(&newer.four_letter_words);
        own.clients.max_per_address = newer.clients.max_per_address;
        own.clients.max_connections = newer.clients.max_connections;
        own.clients.session_timeout_min = newer.clients.session_timeout_min;
        own.clients.session_timeout_max = newer.clients.session_timeout_max;
        own.clients.watches_per_client_max = newer.clients.watches_per_client_max;
        own.clients.watches_max = newer.clients.watches_max;
        own.log.level.clone_from(&newer.log.level);
    }
}

/// The key of a line that has no effect.
#[allow(clippy::wildcard_enum_match_arm, reason = "all others have one")]
fn ineffective(warning: &crate::zoo_cfg::Warning) -> Option<&str> {
    match &warning.caution {
        Caution::UnknownKey { key, .. }
        | Caution::NotUsed { key, .. }
        | Caution::Misspelt { key, .. } => Some(key),
        _ => None,
    }
}

/// What a running server can take over.
const AT_ONCE: [&str; 8] = [
    "4lw.commands.whitelist",
    "maxClientCnxns",
    "maxCnxns",
    "maxSessionTimeout",
    "minSessionTimeout",
    "quorate.log.level",
    "quorate.maxWatches",
    "quorate.maxWatchesPerConnection",
];
/// What a server writes into its file when the membership changes.
const WRITTEN: [&str; 4] = ["clientPort", "clientPortAddress", "dynamicConfigFile", "quorate.self"];
