//! Stdout of these commands, as text or as one JSON object per line, until its reader has gone.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Stdout, until its reader has gone.
pub(super) struct Page {
    out: BufWriter<StdoutLock<'static>>,
    /// One JSON object per line.
    json: bool,
}

/// The reader wants no more, or cannot be written to.
pub(super) enum Gone {
    /// It has closed its end: that is no failure.
    Quietly,
    /// The system refuses.
    With(Failure),
}

impl Page {
    pub(super) fn new(json: bool) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), json }
    }

    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// A line for people; nothing in JSON.
    pub(super) fn line(&mut self, text: &str) -> Result<(), Gone> {
        if self.json {
            return Ok(());
        }
        writeln!(self.out, "{text}").map_err(gone)
    }

    /// A line for programs; nothing in text.
    pub(super) fn object(&mut self, object: &impl Serialize) -> Result<(), Gone> {
        if !self.json {
            return Ok(());
        }
        let text = serde_json::to_string(object).map_err(|error| gone(error.into()))?;
        writeln!(self.out, "{text}").map_err(gone)
    }

    /// Everything has been said.
    pub(super) fn end(mut self) -> Result<(), Gone> {
        self.out.flush().map_err(gone)
    }
}

fn gone(error: io::Error) -> Gone {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Gone::Quietly;
    }
    Gone::With(Failure::failed(format!("cannot write to stdout: {error}")))
}

impl From<Failure> for Gone {
    fn from(failure: Failure) -> Self {
        Self::With(failure)
    }
}

/// What `work` has written is what the command does.
pub(super) fn written(work: impl FnOnce() -> Result<(), Gone>) -> Result<(), Failure> {
    match work() {
        Ok(()) | Err(Gone::Quietly) => Ok(()),
        Err(Gone::With(failure)) => Err(failure),
    }
}

/// Bytes, so that they stay on one line; no more than some of them.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    if bytes.len() > SHOWN {
        format!("\"{shown}…\" ({} bytes)", bytes.len())
    } else {
        format!("\"{shown}\"")
    }
}
