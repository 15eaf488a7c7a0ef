//! A zoo.cfg as it was read: what it says, whose it is, and whether that server is on this machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_driver::zoo_cfg::{ConfigError, JvmFlags, Setting, Survey, ZooCfg};

/// A zoo.cfg, as it was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whose it is, if that is known.
    pub id: Option<ServerId>,
    /// The `myid` of its data directory is here, and says so, too.
    pub is_at_home: bool,
    /// What it says.
    pub survey: Survey,
}

impl ConfigFile {
    /// Reads a file. `id`: whose it is said to be.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] if it cannot be read, or no line can be told from another. All else that is wrong with it is
    /// in the survey.
    pub fn read(path: &Path, id: Option<ServerId>, flags: &JvmFlags) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { file: path.to_owned(), source })?;
        Self::of(path, &text, id, flags, &|path| fs::read_to_string(path))
    }

    /// The same for a text, with other files from `read_file`.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] if no line can be told from another.
    pub fn of(
        path: &Path,
        text: &str,
        id: Option<ServerId>,
        flags: &JvmFlags,
        read_file: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let as_it_is = Survey::of(path, text, flags, read_file)?;
        let found = as_it_is.rest.as_ref().ok().map(|cfg| cfg.my_id);
        let is_unknown = matches!(as_it_is.rest, Err(ConfigError::MyIdUnreadable { .. }));
        if id.is_none() && !is_unknown || id.is_some() && found == id {
            let (path, is_at_home) = (path.to_owned(), found.is_some());
            return Ok(Self { path, id: found, is_at_home, survey: as_it_is });
        }
        let survey = match id {
            Some(id) => Survey::of(path, text, flags, |file| said(file, id, read_file))?,
            None => of_any(path, text, flags, read_file)?,
        };
        Ok(Self { path: path.to_owned(), id, is_at_home: false, survey })
    }

    /// What it says, if it is not refused for something that no table knows.
    pub fn cfg(&self) -> Option<&ZooCfg> {
        self.survey.rest.as_ref().ok()
    }

    /// A setting as it is written.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.survey.settings.get(name)
    }
}

/// Other files as they are, `myid` as it is said to be.
fn said(
    file: &Path,
    id: ServerId,
    read_file: &dyn Fn(&Path) -> io::Result<String>,
) -> io::Result<String> {
    if file.ends_with("myid") { Ok(id.to_string()) } else { read_file(file) }
}

/// As that of a member with which it can be read: which one is not known.
fn of_any(
    path: &Path,
    text: &str,
    flags: &JvmFlags,
    read_file: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<Survey, ConfigError> {
    let mut first = None;
    for id in ServerId::CONFIGURABLE {
        let survey = Survey::of(path, text, flags, |file| said(file, ServerId(id), read_file))?;
        match survey.rest {
            Ok(_) => return Ok(survey),
            Err(ConfigError::MyIdNotListed { .. }) if first.is_none() => first = Some(survey),
            Err(ConfigError::MyIdNotListed { .. }) => {}
            Err(_) => first = Some(survey),
        }
    }
    match first {
        Some(survey) => Ok(survey),
        None => Survey::of(path, text, flags, read_file),
    }
}

/// Where each server listens for clients: as its line says, else as its own file does.
pub fn client_ports(files: &[ConfigFile]) -> Vec<(ServerId, HostPort)> {
    let Some(cfg) = files.iter().find_map(ConfigFile::cfg) else { return Vec::new() };
    let of_file = |id| {
        let own = files.iter().find(|file| file.id == Some(id)).and_then(ConfigFile::cfg)?;
        own.client_address.clone()
    };
    let members = cfg.membership.members().iter().filter_map(|member| {
        let mut at = member.client.clone().or_else(|| of_file(member.id))?;
        if at.is_wildcard() {
            at.host.clone_from(&member.addresses.first()?.quorum.host);
        }
        Some((member.id, at))
    });
    members.collect()
}
