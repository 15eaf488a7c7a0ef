//! The settings of a `zoo.cfg`, taken out one by one.
//!
//! ```text
//!   key=value ─► number │ millis │ boolean │ path │ …   each of its kind, or the file is refused
//!   what nobody has taken ─► a warning: not used here, or unknown, and what was perhaps meant
//! ```
//!
//! What a setting is for is not known here, except for a few of which ZooKeeper has two.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::{Election, Generations, Ties};
use quorate_core::properties::Line;

use crate::zoo_cfg::findings::{Caution, ConfigError, Place, Setting, Warning};

/// The lines that are not the membership's. Whoever asks for a key takes its line away; those left at
/// the end are of no use to anyone.
pub(super) struct Entries<'a> {
    file: &'a Path,
    entries: BTreeMap<String, Setting>,
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

    pub(super) fn kibibytes(
        &mut self,
        key: &'static str,
        default: u64,
    ) -> Result<u64, ConfigError> {
        Ok(self.number(key, 1, MAX)?.map_or(default, |kibibytes| u64::from(kibibytes) << 10))
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

    /// `clientPort` and `clientPortAddress`; port 0 is none.
    pub(super) fn client_address(&mut self) -> Result<Option<HostPort>, ConfigError> {
        let port = self.number("clientPort", 0, u16::MAX.into())?.unwrap_or(0);
        let port = u16::try_from(port).unwrap_or(0);
        let address = self.take("clientPortAddress");
        match (port, address) {
            (0, None) => Ok(None),
            (0, Some(_)) => Err(ConfigError::Missing {
                file: self.file.to_owned(),
                key: "clientPort",
                why: "clientPortAddress is set",
            }),
            (port, None) => Ok(Some(HostPort { host: "0.0.0.0".to_owned(), port })),
            (port, Some(entry)) => {
                let host = entry.value.trim_start_matches('[').trim_end_matches(']').to_owned();
                if host.is_empty() || host.contains(char::is_whitespace) {
                    return Err(entry.value_error("a host".to_owned()));
                }
                Ok(Some(HostPort { host, port }))
            }
        }
    }

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

    pub(super) fn refuse_unsupported(&mut self) -> Result<(), ConfigError> {
        for (key, what) in NOT_SUPPORTED {
            let entry = self.peek(key);
            if let (Some(setting), true) = (entry, self.boolean(key, false)?) {
                return Err(ConfigError::NotSupported { setting: setting.into(), what });
            }
        }
        Ok(())
    }

    /// Warnings in the order of lines, those about a whole file last.
    pub(super) fn finish(mut self) -> Vec<Warning> {
        for (name, Setting { at, key, value }) in std::mem::take(&mut self.entries) {
            let known = NOT_USED.contains(&name.as_str())
                || NOT_USED_FAMILIES.iter().any(|family| name.starts_with(family));
            let caution = if known {
                Caution::NotUsed { key, value }
            } else {
                let nearest = nearest(&name, self.asked.iter().chain(&NOT_USED).copied());
                Caution::UnknownKey { key, value, nearest }
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

/// Of keys that differ in more than a third of their letters none was meant for the other.
const LIKENESS_MIN: f64 = 0.7;

/// The largest number, as in Java.
pub(super) const MAX: u32 = i32::MAX as u32;

/// Keys that look like settings; the second part says what to write.
const ELECTION_PORT: &str =
    "the election port is the second port of each server.N=host:quorumPort:electionPort";
const BIND_RETRY: &str = "write electionPortBindRetry instead";

const MEMBER_KINDS: [(&str, &str); 3] = [
    ("server", "a server is written as server.N=host:quorumPort:electionPort"),
    ("group", "a group is written as group.G=1:2:3"),
    ("weight", "a weight is written as weight.N=1"),
];

/// Keys that turn on what we cannot do.
const NOT_SUPPORTED: [(&str, &str); 5] = [
    ("sslQuorum", "TLS between servers"),
    ("portUnification", "TLS between servers"),
    ("quorum.auth.enableSasl", "SASL between servers"),
    ("quorum.auth.learnerRequireSasl", "SASL between servers"),
    ("quorum.auth.serverRequireSasl", "SASL between servers"),
];

/// Keys of ZooKeeper that have no effect here.
const NOT_USED: [&str; 62] = [
    "admin.commandURL",
    "admin.enableServer",
    "admin.idleTimeout",
    "admin.serverAddress",
    "admin.serverPort",
    "audit.enable",
    "client.portUnification",
    "clientPortListenBacklog",
    "closeSessionTxn.enabled",
    "commitLogSize",
    "commitProcessor.maxCommitBatchSize",
    "commitProcessor.maxReadBatchSize",
    "commitProcessor.numWorkerThreads",
    "commitProcessor.shutdownTimeout",
    "connectionMaxTokens",
    "datadir.autocreate",
    "digest.enabled",
    "emulate353TTLNodes",
    "enforceQuota",
    "enableEagerACLCheck",
    "extendedTypesEnabled",
    "flushDelay",
    "follower.nodelay",
    "forceSync",
    "fsync.warningthresholdms",
    "globalOutstandingLimit",
    "jute.maxbuffer",
    "largeRequestMaxBytes",
    "largeRequestThreshold",
    "leader.closeSocketAsync",
    "leader.nodelay",
    "leaderConnectDelayDuringRetryMs",
    "leaderServes",
    "learner.asyncSending",
    "learner.closeSocketAsync",
    "localSessionsEnabled",
    "localSessionsUpgradingEnabled",
    "maxBatchSize",
    "maxClientCnxns",
    "maxCnxns",
    "maxResponseCacheSize",
    "maxGetChildrenResponseCacheSize",
    "maxSessionTimeout",
    "maxWriteQueuePollTime",
    "minSessionTimeout",
    "observer.reconnectDelayMs",
    "observerMasterPort",
    "quorum.cnxn.threads.size",
    "readonlymode.enabled",
    "request_throttler.shutdownTimeout",
    "secureClientPort",
    "secureClientPortAddress",
    "serializeLastProcessedZxid.enabled",
    "serverCnxnFactory",
    "sessionRequireClientSASLAuth",
    "skipACL",
    "sslQuorumReloadCertFiles",
    "syncEnabled",
    "txnLogSizeLimitInKb",
    "warnThreshold",
    "watchManagerName",
    "znode.container.checkIntervalMs",
];

/// Beginnings of keys of ZooKeeper that have no effect here.
const NOT_USED_FAMILIES: [&str; 15] = [
    "authProvider.",
    "connection",
    "DigestAuthenticationProvider.",
    "jute.",
    "kerberos.",
    "metricsProvider.",
    "multiAddress.",
    "netty.",
    "nio",
    "quorum.auth.",
    "sasl",
    "snapshot.",
    "ssl.",
    "watch",
    "znode.container.",
];
