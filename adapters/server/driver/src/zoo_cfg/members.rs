//! The lines of the membership, in `zoo.cfg` or in a file of their own.
//!
//! The grammar of a line is the core's; here is remembered where each stands, so that whatever is wrong
//! with the whole can be said of a line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use quorate_core::id::ServerId;
use quorate_core::membership::{Membership, MembershipBuilder};
use quorate_core::properties::{Line, Lines};

use crate::zoo_cfg::findings::{ConfigError, Place, Setting};

/// The lines of the membership, and where they stand.
pub(super) struct MemberLines {
    file: PathBuf,
    builder: MembershipBuilder,
    settings: BTreeMap<String, Setting>,
}

impl MemberLines {
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), builder: MembershipBuilder::new(), settings: BTreeMap::new() }
    }

    /// Takes a line if it is one of the membership's.
    pub(super) fn take(&mut self, line: &Line) -> Result<bool, ConfigError> {
        let setting = Setting::new(&self.file, line.clone());
        match self.builder.line(&line.key, &line.value) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(source) => {
                return Err(ConfigError::MemberLine { setting: setting.into(), source });
            }
        }
        // One way to write a number, so that `server.01` is found again as `server.1`.
        let (kind, number) = line.key.split_once('.').unwrap_or((&line.key, ""));
        let number: Option<i64> = number.parse().ok();
        if kind == "server" && !number.is_some_and(|id| ServerId::CONFIGURABLE.contains(&id)) {
            return Err(ConfigError::IdRange { setting: setting.into() });
        }
        let name = number.map_or_else(|| kind.to_owned(), |number| format!("{kind}.{number}"));
        self.settings.insert(name, setting);
        Ok(true)
    }

    /// Whether nothing at all was said.
    pub(super) fn are_none(&self) -> bool {
        self.settings.is_empty()
    }

    pub(super) fn at(&self, key: Option<&str>) -> Place {
        match key.and_then(|key| self.settings.get(key)) {
            Some(setting) => setting.at.clone(),
            None => Place { file: self.file.clone(), line: 0 },
        }
    }

    /// The lines of the dynamic file instead of these, of which there must be none.
    pub(super) fn replaced_by(
        self,
        dynamic: &Path,
        read_file: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        if let Some(first) = self.settings.into_values().min_by_key(|setting| setting.at.line) {
            let (setting, dynamic) = (first.into(), dynamic.to_owned());
            return Err(ConfigError::TwoMemberships { setting, dynamic });
        }
        let text = read_file(dynamic)
            .map_err(|source| ConfigError::Read { file: dynamic.to_owned(), source })?;
        let mut new = Self::new(dynamic);
        for line in Lines::new(without_mark(&text)) {
            let line =
                line.map_err(|source| ConfigError::Escape { file: dynamic.to_owned(), source })?;
            if line.key == "version" || !new.take(&line)? {
                let setting = Setting::new(dynamic, line).into();
                return Err(ConfigError::NotDynamic { setting });
            }
        }
        // The last part of the file's name, as in `zoo.cfg.dynamic.100000000`.
        let version =
            dynamic.extension().and_then(|end| i64::from_str_radix(end.to_str()?, 16).ok());
        new.builder.version(version.unwrap_or(0));
        Ok(new)
    }

    /// Without reconfiguration a version that a leader gave means nothing, and ZooKeeper tells its peers 0; that of a
    /// change does, unless it is not after `forgotten`.
    pub(super) fn finish(
        self,
        reconfig_enabled: bool,
        forgotten: i64,
    ) -> Result<Membership, ConfigError> {
        if self.builder.members().next().is_none() {
            return Err(ConfigError::NoServers { file: self.file });
        }
        match self.builder.clone().finish() {
            Ok(membership) if membership.is_change() && membership.version() <= forgotten => {
                Ok(membership.with_version(0))
            }
            Ok(membership) if reconfig_enabled || membership.is_change() => Ok(membership),
            Ok(membership) => Ok(membership.with_version(0)),
            Err(source) => {
                let at = self.at(source.key().as_deref());
                Err(ConfigError::Membership { at, source: source.into() })
            }
        }
    }
}

/// A text without the mark that some editors put in front of it, which would become part of the first
/// key and lose that line.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
