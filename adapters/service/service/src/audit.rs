//! The audit log: who has changed what here, a record for each change, as ZooKeeper writes them since 3.6.
//!
//! This is what a record says, and how. Digests in access lists are not told, where ZooKeeper tells them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::net::IpAddr;

use quorate_application::clients::Note;
use quorate_core::message::Identity;
use quorate_znode::acl::Acl;
use quorate_znode::{ErrorCode, Gone, Outcome};
use serde::Serialize;

use crate::options::AuditFormat;
use crate::wire::{Request, op};

/// A record.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip: Option<String>,
    pub(crate) operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) znode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) znode_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acl: Option<&'a str>,
    pub(crate) result: &'a str,
}

/// A record with its time.
#[derive(Serialize)]
struct Timed<'a> {
    time: String,
    #[serde(flatten)]
    record: &'a Record<'a>,
}

impl Record<'_> {
    /// A line of the log.
    pub(crate) fn line(&self, format: AuditFormat, wall_ms: i64) -> String {
        let mut line = match format {
            AuditFormat::Json => {
                let timed = Timed { time: utc_json(wall_ms), record: self };
                serde_json::to_string(&timed).unwrap_or_default()
            }
            AuditFormat::Java => {
                let time = utc(wall_ms, ' ', ',');
                let mut line = format!("{time} INFO audit.Slf4jAuditLogger: ");
                let fields = [
                    ("session", self.session.as_deref()),
                    ("user", self.user),
                    ("ip", self.ip.as_deref()),
                    ("operation", Some(self.operation)),
                    ("znode", self.znode),
                    ("znode_type", self.znode_type),
                    ("acl", self.acl),
                    ("result", Some(self.result)),
                ];
                let mut between = "";
                for (name, value) in fields {
                    let Some(value) = value else { continue };
                    // Writing to a string cannot fail.
                    let _ = write!(line, "{between}{name}=");
                    // What could begin a field or a record of its own.
                    line.extend(value.chars().map(|c| if c.is_control() { '?' } else { c }));
                    between = "\t";
                }
                line
            }
        };
        line.push('\n');
        line
    }
}

/// The line for something that ZooKeeper does not tell: a JSON object whose other fields are the note's.
pub(crate) fn noted(note: &Note, wall_ms: i64) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        time: String,
        operation: &'a str,
        #[serde(flatten)]
        fields: BTreeMap<&'a str, &'a str>,
        result: &'a str,
    }
    let fields = note.fields.iter().map(|(name, value)| (*name, &**value)).collect();
    let (operation, result) = (note.operation, note.result);
    let line = Line { time: utc_json(wall_ms), operation, fields, result };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// A change that a client asks for, kept until its outcome is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    session: i64,
    users: Option<String>,
    ip: IpAddr,
    change: Change,
}

/// Who asks for a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) session: i64,
    pub(crate) identities: &'a [Identity],
    pub(crate) ip: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// `path` without the suffix of a sequential node.
    Create {
        path: String,
        flags: i32,
    },
    Delete(String),
    SetData(String),
    SetAcl {
        path: String,
        acl: String,
    },
    /// The flags of those that create, in their order.
    Multi(Vec<i32>),
    Reconfig,
}

impl Asked {
    /// None for what changes no node by itself.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others read, or end a session")]
    pub(crate) fn of(who: Who<'_>, request: &Request) -> Option<Box<Self>> {
        let change = match request {
            Request::Create { path, flags, op, .. } => {
                Change::Create { path: path.clone(), flags: mode(*op, *flags) }
            }
            Request::Delete { path, .. } => Change::Delete(path.clone()),
            Request::SetData { path, .. } => Change::SetData(path.clone()),
            Request::SetAcl { path, acl, .. } => {
                Change::SetAcl { path: path.clone(), acl: text(acl.as_deref().unwrap_or_default()) }
            }
            Request::Multi(elements) => {
                let flags = elements.iter().filter_map(|element| match element {
                    Request::Create { flags, op, .. } => Some(mode(*op, *flags)),
                    _ => None,
                });
                Change::Multi(flags.collect())
            }
            Request::Reconfig { .. } => Change::Reconfig,
            _ => return None,
        };
        let Who { session, identities, ip } = who;
        Some(Box::new(Self { session, users: users(identities), ip, change }))
    }

    /// What became of it, a record for each node that it has changed.
    pub(crate) fn records<'a>(&'a self, outcome: Option<&'a Outcome>) -> Vec<Record<'a>> {
        let failure = match outcome {
            None => true,
            Some(Outcome::Failed(code)) => *code != ErrorCode::OK,
            Some(outcome) => outcome.error().is_some(),
        };
        let result = if failure { "failure" } else { "success" };
        let record = |operation, znode| Record {
            session: Some(hex(self.session)),
            user: self.users.as_deref(),
            ip: Some(self.ip.to_string()),
            operation,
            znode,
            result,
            ..Record::default()
        };
        let created = |path, flags| Record { znode_type: kind(flags), ..record("create", path) };
        match (&self.change, outcome) {
            (Change::Create { flags, .. }, Some(Outcome::Created { path, .. })) => {
                Vec::from([created(Some(path), *flags)])
            }
            (Change::Create { path, flags }, _) => Vec::from([created(Some(path), *flags)]),
            (Change::Delete(path), _) => Vec::from([record("delete", Some(path))]),
            (Change::SetData(path), _) => Vec::from([record("setData", Some(path))]),
            (Change::SetAcl { path, acl }, _) => {
                Vec::from([Record { acl: Some(acl), ..record("setAcl", Some(path)) }])
            }
            (Change::Multi(flags), Some(Outcome::Multi(outcomes))) if !failure => {
                let mut flags = flags.iter();
                let each = outcomes.iter().filter_map(|outcome| match outcome {
                    Outcome::Created { path, .. } => {
                        Some(created(Some(path), flags.next().copied().unwrap_or(-1)))
                    }
                    Outcome::Deleted(Gone { path, .. }) => Some(record("delete", Some(path))),
                    Outcome::DataSet { path, .. } => Some(record("setData", Some(path))),
                    Outcome::AclSet { .. }
                    | Outcome::Checked { .. }
                    | Outcome::SessionOpened { .. }
                    | Outcome::SessionClosed { .. }
                    | Outcome::Multi(_)
                    | Outcome::Failed(_) => None,
                });
                each.collect()
            }
            (Change::Multi(_), _) => Vec::from([record("multiOperation", None)]),
            (Change::Reconfig, _) => Vec::from([record("reconfig", None)]),
        }
    }
}

/// The flags that say what kind of node is created: an operation of its own says it for a container.
const fn mode(op: i32, flags: i32) -> i32 {
    if op == op::CREATE_CONTAINER { 4 } else { flags }
}

/// The kind of a node that is created, as `CreateMode` names it.
const fn kind(flags: i32) -> Option<&'static str> {
    Some(match flags {
        0 => "persistent",
        1 => "ephemeral",
        2 => "persistent_sequential",
        3 => "ephemeral_sequential",
        4 => "container",
        5 => "persistent_with_ttl",
        6 => "persistent_sequential_with_ttl",
        _ => return None,
    })
}

/// The names of a client: of a digest what stands before its colon, else the whole identity; its address last. The mark of
/// who may do everything is none.
pub(crate) fn users(identities: &[Identity]) -> Option<String> {
    let is_address = |identity: &&Identity| identity.scheme == "ip";
    let names = identities.iter().filter(|identity| !is_address(identity));
    let names = names.chain(identities.iter().filter(is_address));
    let names: Vec<_> = names
        .filter(|identity| identity.scheme != "super")
        .map(|Identity { scheme, id }| match &**scheme {
            "digest" => id.split(':').next().unwrap_or_default(),
            _ => id,
        })
        .collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// An access list as Java's `ZKUtil` writes it, without the digests of passwords: `digest:sara:x:cdrwa,world:anyone:r`.
fn text(list: &[Acl]) -> String {
    let entries = list.iter().map(|Acl { perms, scheme, id }| {
        let id = match &**scheme {
            "digest" => format!("{}:x", id.split(':').next().unwrap_or_default()),
            _ => id.to_string(),
        };
        let letters = [(4, 'c'), (8, 'd'), (1, 'r'), (2, 'w'), (16, 'a')];
        let letters = letters.iter().filter(|(bit, _)| perms & bit != 0).map(|(_, letter)| letter);
        format!("{scheme}:{id}:{}", letters.collect::<String>())
    });
    entries.collect::<Vec<_>>().join(",")
}

pub(crate) fn hex(session: i64) -> String {
    format!("0x{session:x}")
}

/// A moment as JSON has it (RFC 3339).
fn utc_json(wall_ms: i64) -> String {
    utc(wall_ms, 'T', '.') + "Z"
}

/// A moment since 1970 as a date and a time of UTC (proleptic Gregorian calendar).
fn utc(wall_ms: i64, between: char, before_millis: char) -> String {
    let (day, ms) = (wall_ms.div_euclid(DAY_MS), wall_ms.rem_euclid(DAY_MS));
    // Years that begin in March end with the day that may be missing; 400 of them have 146,097 days.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, millis) = (ms / 1000, ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{before_millis}{millis:03}"
    )
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00,000"),
            (951_782_399_999, "2000-02-28 23:59:59,999"),
            (951_782_400_000, "2000-02-29 00:00:00,000"),
            (1_763_884_800_123, "2025-11-23 08:00:00,123"),
            (4_107_542_400_000, "2100-03-01 00:00:00,000"),
            (-1, "1969-12-31 23:59:59,999"),
        ] {
            assert_eq!(utc(ms, ' ', ','), text);
        }
    }

    #[test]
    fn a_name_cannot_begin_a_field_or_a_record() {
        let user = Some("a\tresult=success\nuser=b");
        let record = Record { user, operation: "delete", result: "failure", ..Record::default() };
        let line = record.line(AuditFormat::Java, 0);
        let told = "user=a?result=success?user=b\toperation=delete\tresult=failure\n";
        assert_eq!(line.split_once(": ").unwrap().1, told);
        let line = record.line(AuditFormat::Json, 0);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
    }
}
