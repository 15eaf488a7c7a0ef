//! What came of a command: as text, or as one JSON object.

use std::io::{self, Write};

use serde::Serialize;
use zookeeper_client::Stat;

use super::error::{ClientError, Code};
use crate::utc::utc;

/// What came of a command.
#[derive(Debug, Serialize)]
#[serde(tag = "command", rename_all = "camelCase", rename_all_fields = "snake_case")]
pub(super) enum Outcome {
    Ls {
        path: String,
        children: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stat: Option<StatPage>,
    },
    Get {
        path: String,
        #[serde(flatten)]
        data: Data,
        #[serde(skip_serializing_if = "Option::is_none")]
        stat: Option<StatPage>,
    },
    Create {
        path: String,
    },
    Set {
        path: String,
        stat: StatPage,
    },
    Delete {
        path: String,
        nodes: usize,
    },
    Stat {
        path: String,
        stat: StatPage,
    },
    Watch {
        event: String,
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        zxid: Option<String>,
    },
    Multi {
        done: Vec<Self>,
    },
    Check {
        path: String,
    },
    GetAcl {
        path: String,
        acl: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stat: Option<StatPage>,
    },
    SetAcl {
        path: String,
        stat: StatPage,
    },
    Addauth {
        scheme: String,
    },
    Sync {
        path: String,
    },
}

/// The data of a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) enum Data {
    #[serde(rename = "data")]
    Text(String),
    /// What is no text, or would do more to a terminal than to stand there.
    #[serde(rename = "data_hex")]
    Hex(String),
}

impl Data {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains(odd) => Self::Text(text),
            Ok(text) => Self::Hex(hex(text.as_bytes())),
            Err(error) => Self::Hex(hex(error.as_bytes())),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A node's stat.
#[derive(Debug, Serialize)]
pub(super) struct StatPage {
    czxid: String,
    ctime_ms: i64,
    mzxid: String,
    mtime_ms: i64,
    pzxid: String,
    cversion: i32,
    version: i32,
    aversion: i32,
    ephemeral_owner: String,
    data_length: i32,
    children: i32,
}

impl From<Stat> for StatPage {
    fn from(stat: Stat) -> Self {
        let hex = |number: i64| format!("{number:#x}");
        Self {
            czxid: hex(stat.czxid),
            ctime_ms: stat.ctime,
            mzxid: hex(stat.mzxid),
            mtime_ms: stat.mtime,
            pzxid: hex(stat.pzxid),
            cversion: stat.cversion,
            version: stat.version,
            aversion: stat.aversion,
            ephemeral_owner: hex(stat.ephemeral_owner),
            data_length: stat.data_length,
            children: stat.num_children,
        }
    }
}

impl StatPage {
    /// Under the names that zkCli has for the fields.
    fn lines(&self) -> [String; 11] {
        [
            format!("cZxid = {}", self.czxid),
            format!("ctime = {}", utc(self.ctime_ms)),
            format!("mZxid = {}", self.mzxid),
            format!("mtime = {}", utc(self.mtime_ms)),
            format!("pZxid = {}", self.pzxid),
            format!("cversion = {}", self.cversion),
            format!("dataVersion = {}", self.version),
            format!("aclVersion = {}", self.aversion),
            format!("ephemeralOwner = {}", self.ephemeral_owner),
            format!("dataLength = {}", self.data_length),
            format!("numChildren = {}", self.children),
        ]
    }
}

impl Outcome {
    /// For people. What only repeats the command is not said.
    fn lines(&self) -> Vec<String> {
        let with = |mut lines: Vec<String>, stat: &Option<StatPage>| {
            lines.extend(stat.iter().flat_map(StatPage::lines));
            lines
        };
        match self {
            Self::Ls { children, stat, .. } => with(children.clone(), stat),
            Self::Get { data: Data::Text(text), stat, .. } => with(vec![text.clone()], stat),
            Self::Get { data: Data::Hex(hex), stat, .. } => with(vec![hex.clone()], stat),
            Self::Create { path } => vec![path.clone()],
            Self::Stat { stat, .. } => stat.lines().into(),
            Self::Watch { event, path, zxid } => {
                let zxid = zxid.as_ref().map(|zxid| format!("  zxid {zxid}")).unwrap_or_default();
                vec![format!("{event}  {path}{zxid}")]
            }
            Self::Multi { done } => done.iter().flat_map(Self::lines).collect(),
            Self::GetAcl { acl, stat, .. } => with(acl.clone(), stat),
            Self::Set { .. }
            | Self::Delete { .. }
            | Self::Check { .. }
            | Self::SetAcl { .. }
            | Self::Addauth { .. }
            | Self::Sync { .. } => Vec::new(),
        }
    }
}

/// Where outcomes are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    json: bool,
}

/// A command that has failed, for programs.
#[derive(Debug, Serialize)]
struct Failed {
    error: String,
    code: Option<i32>,
    message: String,
}

impl Page {
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// What came of a command.
    pub(super) fn say(self, outcome: &Outcome) -> io::Result<()> {
        if self.json {
            return object(outcome);
        }
        let mut out = io::stdout().lock();
        for line in outcome.lines() {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    /// That a command has failed: for people it is said on stderr only.
    pub(super) fn fail(self, error: &ClientError) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let code = error.code();
        object(&Failed {
            error: code.as_ref().map_or("Usage", |code: &Code| &code.name).to_owned(),
            code: code.map(|code| code.number),
            message: error.to_string(),
        })
    }
}

fn object(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_shown_as_text() {
        let text = |bytes: &[u8]| Data::new(bytes.to_vec());
        assert_eq!(text("häuser\n".as_bytes()), Data::Text("häuser\n".to_owned()));
        assert_eq!(text(&[0xff, 0]), Data::Hex("ff00".to_owned()));
        assert_eq!(text(b"\x1b[2J"), Data::Hex("1b5b324a".to_owned()));
    }

    #[test]
    fn json_has_one_name_for_each_kind_of_data() {
        let get = |data| Outcome::Get { path: "/a".to_owned(), data, stat: None };
        let json = serde_json::to_string(&get(Data::Hex("ff".to_owned()))).unwrap();
        assert_eq!(json, r#"{"command":"get","path":"/a","data_hex":"ff"}"#);
    }
}
