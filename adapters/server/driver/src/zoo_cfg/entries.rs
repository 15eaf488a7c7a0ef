//! The settings of a `zoo.cfg`, taken out one by one.
//!
//! ```text
//!   key=value ─► number │ millis │ boolean │ path │ …   each of its kind, or the file is refused
//!   what has not been taken ─► a warning: not used here, or unknown, and what was perhaps meant
//! ```
//!
//! What a setting is for is not known here, except for a few of which ZooKeeper has two.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::{Election, Generations, Limits, Ties};
use quorate_core::id::ServerId;
use quorate_core::properties::Line;

use crate::disk_floor::DiskFloor;
use crate::zoo_cfg::findings::{Caution, ConfigError, Place, Setting, Warning};
use crate::zoo_cfg::flags::{JvmFlags, Rank};
use crate::zoo_cfg::foreign::{not_used, why_not_used};

/// The lines that are not the membership's. Asking for a key takes its line away; those left at
/// the end are of no use.
pub(super) struct Entries<'a> {
    file: &'a Path,
    pub(super) entries: BTreeMap<String, Setting>,
    /// The keys that were asked for, so that there is no second list of them.
    asked: Vec<&'static str>,
    warnings: Vec<Warning>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(file: &'a Path) -> Self {
        Self { file, entries: BTreeMap::new(), asked: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn add(&mut self, line: Line) {
        let setting = Setting::new(self.file, line);
        let name = match setting.key.strip_prefix("zookeeper.").unwrap_or(&setting.key) {
            "maxTimeToWaitForEpoch" => "leader.maxTimeToWaitForEpoch",
            name => name,
        };
        if let Some(before) = self.entries.insert(name.to_owned(), setting.clone()) {
            let Setting { at, key, value } = setting;
            self.warn(at, Caution::Repeated { key, value, first: before.at.line });
        }
    }

    /// Adds flags of the JVM, behind all lines of the file.
    pub(super) fn add_flags(&mut self, flags: &JvmFlags) {
        for (name, rank, setting) in flags.settings() {
            let Setting { at, key, value } = setting.clone();
            match (rank, self.entries.get(name)) {
                (Rank::NotAFlag, _) => {
                    self.warn(at, Caution::NotUsed { key, value, why: FILE_ALONE });
                    continue;
                }
                (Rank::BehindFile, Some(_)) => continue,
                (Rank::BeforeFile, Some(before)) => {
                    let first = before.at.line;
                    self.warn(at, Caution::Repeated { key, value, first });
                }
                (Rank::BeforeFile | Rank::BehindFile, None) => {}
            }
            self.entries.insert(name.to_owned(), setting.clone());
        }
    }

    /// A key that is understood, and of which the service has no part yet.
    pub(super) fn without_effect(&mut self, key: &'static str, why: &'static str) {
        if let Some(Setting { at, key, value }) = self.peek(key) {
            self.warn(at, Caution::NotUsed { key, value, why });
        }
    }

    /// A key that is understood, and takes away what its operator may think that there is.
    #[cfg(feature = "tls")]
    pub(super) fn weakens(&mut self, key: &'static str, what: &'static str) {
        if let Some(Setting { at, key, value }) = self.peek(key) {
            self.warn(at, Caution::Weakens { key, value, what });
        }
    }

    /// A key has to be set, and is not.
    pub(super) fn missing(&self, key: &'static str, why: &'static str) -> ConfigError {
        ConfigError::Missing { file: self.file.to_owned(), key, why }
    }

    pub(super) fn warn(&mut self, at: Place, caution: Caution) {
        self.warnings.push(Warning { at, caution });
    }

    pub(super) fn peek(&self, key: &'static str) -> Option<Setting> {
        self.entries.get(key).cloned()
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Setting> {
        self.asked.push(key);
        self.entries.remove(key)
    }

    pub(super) fn number(
        &mut self,
        key: &'static str,
        min: u32,
        max: u32,
    ) -> Result<Option<u32>, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.value.parse().ok().filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(entry.value_error(format!("a whole number from {min} to {max}"))),
        }
    }

    /// A count of at least 1.
    pub(super) fn count(
        &mut self,
        key: &'static str,
        default: usize,
    ) -> Result<usize, ConfigError> {
        let count = self.number(key, 1, MAX)?;
        Ok(count.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// A count, or 0 for none.
    pub(super) fn count_or_none(
        &mut self,
        key: &'static str,
        default: usize,
    ) -> Result<usize, ConfigError> {
        let count = self.number(key, 0, MAX)?;
        Ok(count.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    pub(super) fn kibibytes(
        &mut self,
        key: &'static str,
        default: u64,
    ) -> Result<u64, ConfigError> {
        Ok(self.number(key, 1, MAX)?.map_or(default, |kibibytes| u64::from(kibibytes) << 10))
    }

    pub(super) fn log_bytes(&mut self) -> Result<u64, ConfigError> {
        let bytes = self.kibibytes("snapSizeLimitInKb", 4 << 30)?;
        if self.entries.get("txnLogSizeLimitInKb").is_some_and(|entry| entry.value == "-1") {
            self.take("txnLogSizeLimitInKb");
        }
        Ok(bytes.min(self.kibibytes("txnLogSizeLimitInKb", bytes)?))
    }

    /// How long a request may be (`jute.maxbuffer`), and a transaction: that, and the extra size for what stands
    /// around it (`zookeeper.jute.maxbuffer.extrasize`), which is as much again unless it is said, and never
    /// less than ZooKeeper allows. As in `BinaryInputArchive`, which adds them as an `i32` each.
    pub(super) fn buffers(&mut self) -> Result<(usize, usize), ConfigError> {
        let buffer = self.java_number("jute.maxbuffer", 1)?.unwrap_or(BUFFER);
        let extra = self.java_number("jute.maxbuffer.extrasize", 0)?.unwrap_or(buffer);
        let wanted = buffer.saturating_add(extra.max(Limits::TXN_BYTES_MIN));
        Ok((buffer, wanted.min(Limits::TXN_BYTES_MAX)))
    }

    /// A number as Java reads a system property: `0x` before it makes it hexadecimal, `0` octal.
    fn java_number(&mut self, key: &'static str, min: u32) -> Result<Option<usize>, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let text = entry.value.to_ascii_lowercase();
        let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
            (Some(digits), _) => (digits, 16),
            (None, Some(digits)) if !digits.is_empty() => (digits, 8),
            (None, _) => (&*text, 10),
        };
        let number = u32::from_str_radix(digits, radix).ok();
        match number.filter(|number| (min..=MAX).contains(number)) {
            Some(number) => Ok(Some(usize::try_from(number).unwrap_or(usize::MAX))),
            None => Err(entry.value_error(format!("a whole number from {min} to {MAX}"))),
        }
    }

    pub(super) fn snapshots_kept(&mut self) -> Result<Option<usize>, ConfigError> {
        let interval = self.number("autopurge.purgeInterval", 0, MAX)?.unwrap_or(0);
        let kept = self.count("autopurge.snapRetainCount", 3)?.max(3);
        Ok((interval > 0).then_some(kept))
    }

    /// How it is found out who is to lead.
    pub(super) fn election(&mut self) -> Result<Election, ConfigError> {
        let kind = self.take("quorate.election");
        let least = self.peek("quorate.election.minTimeout");
        let longest = self.peek("quorate.election.maxTimeout");
        let ties = self.peek("quorate.election.ties");
        let min = self.millis("quorate.election.minTimeout", 4)?;
        let max = self.millis("quorate.election.maxTimeout", 4)?;
        let pre_vote = self.boolean("quorate.election.preVote", true)?;
        self.take("quorate.election.ties");
        match kind.as_ref().map(|entry| entry.value.as_str()) {
            None | Some("fast") => return Ok(Election::Fast),
            Some("generation") => {}
            Some(_) => {
                let wrong = kind.map(|entry| entry.value_error("fast or generation".to_owned()));
                return wrong.map_or(Ok(Election::Fast), Err);
            }
        }
        let min = min.unwrap_or_else(|| max.map_or(Duration::from_secs(1), |max| max / 2));
        let max = max.unwrap_or(min * 2);
        if let Some(entry) = longest.or(least).filter(|_| max < min) {
            let expected =
                format!("at least quorate.election.minTimeout, which is {}", min.as_millis());
            return Err(entry.value_error(expected));
        }
        let ties = match ties {
            None => Ties::BetterRanked,
            Some(entry) => match entry.value.as_str() {
                "rank" => Ties::BetterRanked,
                "first" => Ties::FirstCome,
                _ => return Err(entry.value_error("rank or first".to_owned())),
            },
        };
        Ok(Election::Generation(Generations { pre_vote, ties, ..Generations::within(min, max) }))
    }

    /// The version of a membership, in hexadecimal.
    pub(super) fn version(&mut self, key: &'static str) -> Result<Option<i64>, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match i64::from_str_radix(&entry.value, 16).ok().filter(|version| *version >= 0) {
            Some(version) => Ok(Some(version)),
            None => {
                Err(entry.value_error("the version of a membership, in hexadecimal".to_owned()))
            }
        }
    }

    /// `snapshotSizeFactor` in hundredths.
    pub(super) fn size_factor(&mut self) -> Result<Option<u64>, ConfigError> {
        let Some(entry) = self.take("snapshotSizeFactor") else { return Ok(Some(33)) };
        match entry.value.parse::<f64>().ok().filter(|factor| factor.is_finite()) {
            None => Err(entry.value_error("a number such as 0.33, negative for never".to_owned())),
            Some(factor) if factor < 0.0 => Ok(None),
            Some(factor) => Ok(Some(hundredths(factor))),
        }
    }

    pub(super) fn millis(
        &mut self,
        key: &'static str,
        min: u32,
    ) -> Result<Option<Duration>, ConfigError> {
        let entry = self.peek(key);
        match (self.number(key, min, MAX), entry) {
            (Err(_), Some(entry)) => {
                let expected = format!("a whole number of milliseconds from {min} to {MAX}");
                Err(entry.value_error(expected))
            }
            (number, _) => Ok(number?.map(|millis| Duration::from_millis(millis.into()))),
        }
    }

    pub(super) fn disk_floor(&mut self) -> Result<DiskFloor, ConfigError> {
        let Some(entry) = self.take("quorate.disk.floor") else { return Ok(DiskFloor::default()) };
        let floor = DiskFloor::from_text(&entry.value);
        floor.ok_or_else(|| entry.value_error("bytes, such as 512m, snapshot or off".to_owned()))
    }

    /// -1 stands for "not set".
    pub(super) fn millis_or_off(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Duration>, ConfigError> {
        if self.entries.get(key).is_some_and(|entry| entry.value == "-1") {
            self.take(key);
        }
        self.millis(key, 0)
    }

    /// -1 and 0 stand for "not set".
    pub(super) fn number_or_off(&mut self, key: &'static str) -> Result<Option<u32>, ConfigError> {
        if self.entries.get(key).is_some_and(|entry| entry.value == "-1") {
            self.take(key);
        }
        Ok(self.number(key, 0, MAX)?.filter(|number| *number > 0))
    }

    pub(super) fn boolean(
        &mut self,
        key: &'static str,
        default: bool,
    ) -> Result<bool, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(default) };
        match entry.value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(entry.value_error("true or false".to_owned())),
        }
    }

    /// `yes`, as ZooKeeper writes a switch or two.
    pub(super) fn yes(&mut self, key: &'static str, default: bool) -> Result<bool, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(default) };
        match entry.value.as_str() {
            "" => Ok(default),
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(entry.value_error("yes or no".to_owned())),
        }
    }

    pub(super) fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, ConfigError> {
        match self.take(key) {
            Some(entry) if entry.value.is_empty() => Err(entry.value_error("a path".to_owned())),
            entry => Ok(entry.map(|entry| entry.value.into())),
        }
    }

    pub(super) fn words(&mut self, key: &'static str, default: &[&str]) -> Vec<String> {
        let Some(entry) = self.take(key) else {
            return default.iter().map(|word| (*word).to_owned()).collect();
        };
        let words = entry.value.split(',').map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect()
    }

    /// A host, loopback unless it is said, and a port; port 0 is one that the system picks.
    pub(super) fn address(
        &mut self,
        host: &'static str,
        port: &'static str,
        default: u16,
    ) -> Result<HostPort, ConfigError> {
        let port = self.number(port, 0, u16::MAX.into())?;
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(default);
        let Some(entry) = self.take(host) else {
            return Ok(HostPort { host: "127.0.0.1".to_owned(), port });
        };
        let host = entry.value.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(entry.value_error("a host".to_owned()));
        }
        Ok(HostPort { host, port })
    }

    /// `host:port`, an IPv6 host in brackets.
    pub(super) fn host_port(&mut self, key: &'static str) -> Result<Option<HostPort>, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let parts = entry.value.rsplit_once(':').and_then(|(host, port)| {
            let host = match host.strip_prefix('[') {
                Some(host) => host.strip_suffix(']')?,
                None => Some(host).filter(|host| !host.contains(':'))?,
            };
            let host = Some(host).filter(|host| !host.is_empty() && !host.contains(' '))?;
            Some(HostPort { host: host.to_owned(), port: port.parse().ok()? })
        });
        let wrong = || entry.value_error("host:port".to_owned());
        parts.map(Some).ok_or_else(wrong)
    }

    /// `clientPort` and `clientPortAddress`; port 0 is one that the system picks.
    pub(super) fn client_address(&mut self) -> Result<Option<HostPort>, ConfigError> {
        let port = self.number("clientPort", 0, u16::MAX.into())?;
        let port = port.and_then(|port| u16::try_from(port).ok());
        let address = self.take("clientPortAddress");
        match (port, address) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(ConfigError::Missing {
                file: self.file.to_owned(),
                key: "clientPort",
                why: "clientPortAddress is set",
            }),
            (Some(port), None) => Ok(Some(HostPort { host: "0.0.0.0".to_owned(), port })),
            (Some(port), Some(entry)) => {
                let host = entry.value.trim_start_matches('[').trim_end_matches(']').to_owned();
                if host.is_empty() || host.contains(char::is_whitespace) {
                    return Err(entry.value_error("a host".to_owned()));
                }
                Ok(Some(HostPort { host, port }))
            }
        }
    }

    /// All settings, by their names without `zookeeper.`.
    pub(super) const fn all(&self) -> &BTreeMap<String, Setting> {
        &self.entries
    }

    /// `extendedTypesEnabled`: owners of TTL nodes are told from sessions by the byte that is a server's id there.
    pub(super) fn check_extended_types(
        &mut self,
        mut members: impl Iterator<Item = ServerId>,
    ) -> Result<(), ConfigError> {
        let Some(setting) = self.peek("extendedTypesEnabled") else { return Ok(()) };
        let too_large = members.find(|id| id.0 >= EXTENDED);
        match too_large.filter(|_| setting.value.eq_ignore_ascii_case("true")) {
            Some(id) => Err(ConfigError::IdExtended { setting: setting.into(), id }),
            None => Ok(()),
        }
    }

    /// Warnings in the order of lines, those about a whole file last.
    pub(super) fn finish(mut self) -> Vec<Warning> {
        for (name, Setting { at, key, value }) in std::mem::take(&mut self.entries) {
            let caution = match why_not_used(&name) {
                Some(why) => Caution::NotUsed { key, value, why },
                None => {
                    let nearest = nearest(&name, self.asked.iter().copied().chain(not_used()));
                    Caution::UnknownKey { key, value, nearest }
                }
            };
            self.warn(at, caution);
        }
        self.warnings.sort_by_key(|warning| (warning.at.line == 0, warning.at.line));
        self.warnings
    }
}

/// A factor of more than this is as good as any.
fn hundredths(factor: f64) -> u64 {
    (0..=100_000_u32)
        .find(|percent| f64::from(*percent) >= (factor * 100.0).round())
        .unwrap_or(100_000)
        .into()
}

/// The known key that looks most like `name`; none if none really does.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    known
        .map(|key| (strsim::normalized_damerau_levenshtein(&name, &key.to_ascii_lowercase()), key))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

/// The first byte of what owns a container or a TTL node (`EphemeralType.MAX_EXTENDED_SERVER_ID` is one less).
const EXTENDED: i64 = 255;

/// Of keys that differ in more than a third of their messages none was meant for the other.
const LIKENESS_MIN: f64 = 0.7;

/// The largest number, as in Java.
pub(super) const MAX: u32 = i32::MAX as u32;

const FILE_ALONE: &str = "ZooKeeper reads it from its file alone, and so do we";

/// `jute.maxbuffer` where nothing is said.
const BUFFER: usize = 0xf_ffff;
