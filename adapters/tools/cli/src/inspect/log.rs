//! `quorate log dump`: a log file, record by record.

use std::path::PathBuf;

use clap::Args;
use quorate_storage::dump::{Dump, Ending, Entry};
use quorate_storage::record::TXN_BYTES_MAX;
use quorate_tokio::core::txn::Txn;
use serde::Serialize;

use super::body::{Body, op};
use super::page::{Page, written};
use crate::failure::Failure;
use crate::utc::utc;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The file.
    file: PathBuf,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
    /// The longest transaction: jute.maxbuffer and its extrasize, where an ensemble has raised them.
    #[arg(long, value_name = "BYTES", default_value_t = TXN_BYTES_MAX)]
    longest: usize,
}

/// A line of JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Record {
        offset: u64,
        #[serde(flatten)]
        txn: TxnLine,
    },
    Damaged {
        offset: u64,
        problem: String,
        #[serde(flatten)]
        txn: Option<TxnLine>,
    },
    End {
        offset: u64,
        ending: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
        records: u64,
        damaged: u64,
    },
}

#[derive(Debug, Serialize)]
struct TxnLine {
    zxid: String,
    session: String,
    cxid: i32,
    time_ms: i64,
    kind: i32,
    op: String,
    #[serde(flatten)]
    body: Body,
}

impl TxnLine {
    fn new(txn: &Txn) -> Self {
        let header = txn.header;
        Self {
            zxid: txn.zxid.to_string(),
            session: format!("{:#x}", header.client),
            cxid: header.cxid,
            time_ms: header.time,
            kind: header.kind,
            op: op(header.kind),
            body: Body::new(header.kind, &txn.body),
        }
    }

    fn text(&self, offset: u64) -> String {
        format!(
            "{offset:>10}  {:<12} {:<25} {:<18} {:>10}  {} {}",
            self.zxid,
            utc(self.time_ms),
            self.session,
            self.cxid,
            self.op,
            self.body,
        )
    }
}

/// Shows a log file. The failure says how much of it is damaged.
pub(super) fn dump(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { file, json, longest } = arguments;
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let entries = Dump::open(file, *longest).map_err(|error| cannot(&error))?;
    let mut page = Page::new(*json);
    let (mut records, mut damaged, mut broken) = (0, 0, false);
    written(|| {
        page.line(&format!(
            "{:>10}  {:<12} {:<25} {:<18} {:>10}  what",
            "offset", "zxid", "time", "session", "cxid"
        ))?;
        for entry in entries {
            match entry.map_err(|error| cannot(&error))? {
                Entry::Record { offset, txn } => {
                    records += 1;
                    let txn = TxnLine::new(&txn);
                    if page.is_json() {
                        page.object(&Line::Record { offset, txn })?;
                    } else {
                        page.line(&txn.text(offset))?;
                    }
                }
                Entry::Damaged { offset, damage, txn } => {
                    damaged += 1;
                    let txn = txn.as_ref().map(TxnLine::new);
                    page.line(&format!("{offset:>10}  DAMAGED: {damage}"))?;
                    if let Some(txn) = &txn {
                        page.line(&format!("{}  (not to be believed)", txn.text(offset)))?;
                    }
                    page.object(&Line::Damaged { offset, problem: damage.to_string(), txn })?;
                }
                Entry::End { offset, ending } => {
                    let (ending, bytes, problem) = match ending {
                        Ending::Padding { bytes } => ("padding", Some(bytes), None),
                        Ending::Torn { bytes } => ("torn", Some(bytes), None),
                        Ending::Broken(damage) => ("broken", None, Some(damage.to_string())),
                    };
                    broken = problem.is_some();
                    let how = match (&problem, bytes.unwrap_or_default()) {
                        (Some(problem), _) => format!("BROKEN: {problem}"),
                        (None, bytes) if ending == "torn" => format!(
                            "a record of which {bytes} bytes are there was not written to its end; \
                             a start cuts it off"
                        ),
                        (None, 0) => "the end of the file".to_owned(),
                        (None, bytes) => format!("{bytes} zero bytes to the end of the file"),
                    };
                    page.line(&format!("{offset:>10}  {how}"))?;
                    page.line(&format!("{records} whole records, {damaged} damaged"))?;
                    page.object(&Line::End { offset, ending, bytes, problem, records, damaged })?;
                }
            }
        }
        page.end()
    })?;
    match (damaged, broken) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::failed(format!("{}: the end is damaged", file.display()))),
        (damaged, _) => {
            Err(Failure::failed(format!("{}: {damaged} damaged record(s)", file.display())))
        }
    }
}
