//! The membership that an operator asks for.

use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{Member, Membership, MembershipError};
use quorate_tokio::core::reconfiguration::Reconfiguration;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which one; the present one, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The servers that join, or are changed, as lines of a membership.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<String>,
    /// The servers that leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<i64>,
    /// A whole membership instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) members: Option<String>,
    /// The version that the present one must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i64>,
    /// How long to wait, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// What is wrong with it.
#[derive(Debug, Error)]
pub(crate) enum WantedError {
    /// A server's line.
    #[error("{0:?} is no server: write server.4=host:2888:3888[:observer][;clientPort]")]
    Member(String),
    /// A whole membership.
    #[error("the membership cannot be read: {0}")]
    Membership(#[from] MembershipError),
    /// Both kinds.
    #[error("a whole membership leaves nothing to add or to remove")]
    Both,
}

impl Wanted {
    /// The change that it asks for; none if it asks for the present membership only.
    pub(crate) fn change(&self) -> Result<Option<Reconfiguration>, WantedError> {
        let asked = match &self.members {
            Some(_) if !(self.add.is_empty() && self.remove.is_empty()) => {
                return Err(WantedError::Both);
            }
            Some(text) => Reconfiguration::whole(Membership::parse(text)?),
            None if self.add.is_empty() && self.remove.is_empty() => return Ok(None),
            None => {
                let joining: Result<Vec<_>, _> = self.add.iter().map(|line| member(line)).collect();
                Reconfiguration::change(joining?, self.remove.iter().copied().map(ServerId))
            }
        };
        Ok(Some(match self.version {
            Some(version) => asked.if_version(version),
            None => asked,
        }))
    }
}

/// `server.4=host:2888:3888…`, or the same without `server.`.
fn member(line: &str) -> Result<Member, WantedError> {
    let unreadable = || WantedError::Member(line.to_owned());
    let (key, value) = line.split_once('=').ok_or_else(unreadable)?;
    let key = key.trim();
    let id = key.strip_prefix("server.").unwrap_or(key).parse().map_err(|_| unreadable())?;
    Member::parse(ServerId(id), value.trim()).map_err(|_| unreadable())
}
