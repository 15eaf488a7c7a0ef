//! What a client port answers to four-letter words (`srvr`, `mntr`, `conf`), or an admin server to commands, from text to
//! values.
//!
//! Java's texts and ours. What a line does not say is absent: an absent value and a 0 are different things.

use std::collections::BTreeMap;

use quorate_core::zxid::Zxid;
use serde_json::{Map, Value};

use crate::java::Version;

/// What a server said at its client port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The version as it says it: `3.8.0-5a02a05…, built on …`.
    pub version: Option<String>,
    /// `leader`, `follower`, `observer`, `standalone`, `read-only`.
    pub mode: Option<String>,
    /// The last transaction that it has processed.
    pub zxid: Option<Zxid>,
    /// Requests under way.
    pub outstanding: Option<u64>,
    /// The lines of `mntr`, without `zk_`.
    pub mntr: BTreeMap<String, String>,
    /// The lines of `conf` but for the membership.
    pub conf: BTreeMap<String, String>,
    /// Words that it does not answer, by its whitelist.
    pub refused: Vec<String>,
    /// It says that it does not serve: it has no leader.
    pub is_not_serving: bool,
    /// Something that is no answer of ZooKeeper at all.
    pub strange: Option<String>,
}

impl Words {
    /// Reads the answers to the words that were sent, whatever their bytes.
    pub fn of<'a>(answers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut words = Self::default();
        for (word, bytes) in answers {
            let text = String::from_utf8_lossy(bytes);
            if text.contains("is not executed because it is not in the whitelist") {
                words.refused.push(word.to_owned());
            } else if text.contains("This ZooKeeper instance is not currently serving requests") {
                words.is_not_serving = true;
            } else {
                words.read(word, &text);
            }
        }
        words
    }

    /// Reads what the commands `monitor` and `server_stats` of an admin server answer, whatever their bytes.
    pub fn of_commands(monitor: &[u8], server_stats: &[u8]) -> Self {
        let mut words = Self::default();
        for bytes in [monitor, server_stats] {
            match serde_json::from_slice(bytes) {
                Ok(Value::Object(fields)) => words.read_command(&fields),
                Ok(_) | Err(_) => {
                    let text = String::from_utf8_lossy(bytes);
                    let line = text.lines().next().unwrap_or_default();
                    words.strange = Some(line.chars().take(80).collect());
                }
            }
        }
        if words.version.is_some() || words.is_not_serving {
            words.strange = None;
        }
        words
    }

    fn read_command(&mut self, fields: &Map<String, Value>) {
        let text = |fields: &Map<String, Value>, name: &str| {
            fields.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let error = text(fields, "error").unwrap_or_default();
        self.is_not_serving |= error.contains("not currently serving requests");
        self.version = text(fields, "version").or(self.version.take());
        let Some(Value::Object(stats)) = fields.get("server_stats") else {
            for (name, value) in fields.iter().take(LINES_MAX) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.mntr.insert(name.clone(), value);
            }
            return;
        };
        self.mode = text(stats, "server_state").or(self.mode.take());
        let zxid = stats.get("last_processed_zxid").and_then(Value::as_i64);
        self.zxid = zxid.map(Zxid).or(self.zxid);
        self.outstanding = stats.get("outstanding_requests").and_then(Value::as_u64);
    }

    fn read(&mut self, word: &str, text: &str) {
        let is_known = match word {
            "srvr" => self.read_srvr(text),
            "mntr" => self.read_mntr(text),
            "conf" => self.read_conf(text),
            _ => text.starts_with("imok"),
        };
        if !is_known && !text.is_empty() {
            let line = text.lines().next().unwrap_or_default();
            self.strange = Some(line.chars().take(80).collect());
        }
    }

    fn read_srvr(&mut self, text: &str) -> bool {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        self.version = field("Zookeeper version:").or(self.version.take());
        self.mode = field("Mode:").or(self.mode.take());
        self.zxid = field("Zxid:").and_then(|text| zxid(&text)).or(self.zxid);
        self.outstanding = field("Outstanding:").and_then(|text| text.parse().ok());
        self.version.is_some()
    }

    fn read_mntr(&mut self, text: &str) -> bool {
        for line in text.lines().take(LINES_MAX) {
            if let Some((name, value)) = line.split_once('\t') {
                let name = name.strip_prefix("zk_").unwrap_or(name);
                self.mntr.insert(name.to_owned(), value.trim().to_owned());
            }
        }
        if self.version.is_none() {
            self.version = self.mntr.get("version").cloned();
        }
        !self.mntr.is_empty()
    }

    fn read_conf(&mut self, text: &str) -> bool {
        for line in text.lines().take(LINES_MAX) {
            match line.split_once('=') {
                Some((name, value)) if !name.contains('.') && name != "version" => {
                    self.conf.insert(name.to_owned(), value.trim().to_owned());
                }
                Some(_) | None => {}
            }
        }
        self.conf.contains_key("clientPort")
    }

    /// A number of `mntr`; none if there is no such line, or it is no number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.mntr.get(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether the server is one of ours.
    pub fn is_ours(&self) -> bool {
        self.version.as_deref().is_some_and(|version| version.contains("quorate"))
    }

    /// Its version as ZooKeeper counts them.
    pub fn number_of_version(&self) -> Option<Version> {
        Version::read(self.version.as_deref()?)
    }
}

/// `0x100000000`.
fn zxid(text: &str) -> Option<Zxid> {
    let digits = text.trim().strip_prefix("0x")?;
    i64::from_str_radix(digits, 16).ok().map(Zxid)
}

/// An answer has no more lines.
const LINES_MAX: usize = 10_000;
