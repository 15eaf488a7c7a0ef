//! What refuses a file before anything is taken out of it: keys that are nearly settings, and what is not there.

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::{Caution, ConfigError, Setting};
use crate::zoo_cfg::foreign::{NOT_SUPPORTED, When};
use crate::zoo_cfg::sasl::PROVIDERS;

impl Entries<'_> {
    pub(super) fn refuse_misspellings(&mut self) -> Result<(), ConfigError> {
        if let Some(setting) = self.entries.remove("electionPort") {
            return Err(ConfigError::Misspelt { setting: setting.into(), instead: ELECTION_PORT });
        }
        if let Some(Setting { at, key, value }) = self.entries.remove("electionAddrBindRetry") {
            self.warn(at, Caution::Misspelt { key, value, instead: BIND_RETRY });
        }
        // `server1`, `server_2`: a member that is not one changes what a majority is.
        for (kind, instead) in MEMBER_KINDS {
            let like = |name: &String| {
                name.to_ascii_lowercase()
                    .strip_prefix(kind)
                    .is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphabetic()))
            };
            if let Some(setting) = self.entries.values().find(|setting| like(&setting.key)) {
                let setting = setting.clone().into();
                return Err(ConfigError::Misspelt { setting, instead });
            }
        }
        Ok(())
    }

    /// Refuses the file for a line that turns on what is not there.
    pub(super) fn refuse_unsupported(&mut self) -> Result<(), ConfigError> {
        let first = self.not_supported().next();
        match first {
            Some((_, setting, what)) => {
                Err(ConfigError::NotSupported { setting: setting.into(), what })
            }
            None => self.check_switches(),
        }
    }

    /// Takes away the lines that turn on what is not there; what that is, in the order of lines.
    pub(super) fn take_unsupported(&mut self) -> Vec<(Setting, &'static str)> {
        let found: Vec<_> = self.not_supported().collect();
        let mut taken = self.take_logins_without_file();
        for (name, setting, what) in found {
            self.entries.remove(&name);
            taken.push((setting, what));
        }
        taken.sort_by_key(|(setting, _)| setting.at.line);
        taken
    }

    fn not_supported(&self) -> impl Iterator<Item = (String, Setting, &'static str)> {
        NOT_SUPPORTED.iter().flat_map(|(key, when, what)| {
            let is = move |name: &str| match key.ends_with('.') {
                true => name.starts_with(key),
                false => name == *key,
            };
            let on = self.entries.iter().filter(move |(name, entry)| {
                is(name) && when.holds(&entry.value) && !PROVIDERS.contains(&&*entry.value)
            });
            on.map(|(name, setting)| (name.clone(), setting.clone(), *what))
        })
    }

    /// Turned off is what it is; whatever is neither true nor false is wrong.
    fn check_switches(&mut self) -> Result<(), ConfigError> {
        for (key, _, _) in NOT_SUPPORTED.iter().filter(|(_, when, _)| *when == When::True) {
            self.boolean(key, false)?;
        }
        Ok(())
    }
}

/// Keys that look like settings; the second part says what to write.
const ELECTION_PORT: &str =
    "the election port is the second port of each server.N=host:quorumPort:electionPort";
const BIND_RETRY: &str = "write electionPortBindRetry instead";

const MEMBER_KINDS: [(&str, &str); 3] = [
    ("server", "a server is written as server.N=host:quorumPort:electionPort"),
    ("group", "a group is written as group.G=1:2:3"),
    ("weight", "a weight is written as weight.N=1"),
];
