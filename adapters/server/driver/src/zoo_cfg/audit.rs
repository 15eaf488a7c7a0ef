//! What a `zoo.cfg` says of the log of what clients have changed.

use std::fmt;
use std::path::PathBuf;

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;

/// The log of changes (`audit.enable`, false).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// Where it is written (`quorate.audit.log`: a path, `stdout`, `stderr` or `journald`; `stderr`, where the server's own
    /// log is), and what happens when that is too slow (`quorate.audit.onFull`: `wait` or `drop`; `wait`).
    pub log: AuditLog,
    /// How (`quorate.audit.format`: `java` or `json`; `java`). The service for clients reads it.
    pub json: bool,
}

/// Where what clients have changed is written (`quorate.audit.log`), and what happens where that is too slow or fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLog {
    /// Where.
    pub to: AuditTarget,
    /// What happens when 4 MiB of lines wait to be written (`quorate.audit.onFull`).
    pub when_full: WhenFull,
}

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// To the end of this file, which is made for its owner and group to read if it is not there.
    File(PathBuf),
    /// To the standard output of the process.
    Stdout,
    /// To its standard error, which systemd gives to the journal.
    Stderr,
}

impl fmt::Display for AuditTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdout => f.write_str("stdout"),
            Self::Stderr => f.write_str("stderr"),
        }
    }
}

/// What happens when too many lines wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Nothing more is taken from clients until there is room: what cannot be told is not done.
    #[default]
    Wait,
    /// Lines are dropped, and counted (`quorate_audit_dropped_total`).
    Drop,
}

impl AuditSettings {
    /// None where nothing is to be told.
    pub(super) fn read(entries: &mut Entries<'_>) -> Result<Option<Self>, ConfigError> {
        let enabled = entries.boolean("audit.enable", false)?;
        if entries.peek("audit.impl.class").is_some_and(|entry| entry.value != LOGGER) {
            entries.without_effect("audit.impl.class", NO_CLASSES);
        }
        entries.take("audit.impl.class");
        let to = match entries.take("quorate.audit.log") {
            None => AuditTarget::Stderr,
            Some(entry) => match &*entry.value {
                "stdout" => AuditTarget::Stdout,
                // systemd has the journal at the other end of it.
                "stderr" | "journald" => AuditTarget::Stderr,
                path => AuditTarget::File(PathBuf::from(path)),
            },
        };
        let when_full = match entries.take("quorate.audit.onFull") {
            None => WhenFull::default(),
            Some(entry) => match &*entry.value {
                "wait" => WhenFull::Wait,
                "drop" => WhenFull::Drop,
                _ => return Err(entry.value_error("wait or drop".to_owned())),
            },
        };
        let json = match entries.take("quorate.audit.format") {
            None => false,
            Some(entry) => match &*entry.value {
                "java" => false,
                "json" => true,
                _ => return Err(entry.value_error("java or json".to_owned())),
            },
        };
        Ok(enabled.then_some(Self { log: AuditLog { to, when_full }, json }))
    }
}

const LOGGER: &str = "org.apache.zookeeper.audit.Slf4jAuditLogger";
const NO_CLASSES: &str = "the audit log is written as Slf4jAuditLogger writes it";
