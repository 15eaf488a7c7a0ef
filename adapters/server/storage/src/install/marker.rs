//! The marker of an installation: which files are the history now, and what binds of its membership.

use std::path::PathBuf;

use bytes::{Buf as _, Bytes};

use super::error::InstallError;
use crate::dirs::Dirs;
use crate::error::at;
use crate::files::Files;
use crate::segment;
use crate::snapshot;

/// What a history holds of the membership of its ensemble, as the text of ZooKeeper's dynamic configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memberships {
    /// The one in force.
    pub present: Bytes,
    /// The one seen last, if that is another.
    pub next: Option<Bytes>,
}

/// What a marker says.
pub(super) struct Marked {
    pub(super) names: Vec<String>,
    /// None from a version of this crate that did not write them here.
    pub(super) memberships: Option<Memberships>,
}

impl Marked {
    /// A line for each name; then, for each membership, a line that tells how many bytes follow, and these.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in &self.names {
            out.extend_from_slice(format!("{name}\n").as_bytes());
        }
        if let Some(Memberships { present, next }) = &self.memberships {
            for (key, text) in [(PRESENT, Some(present)), (NEXT, next.as_ref())] {
                let Some(text) = text else { continue };
                out.extend_from_slice(format!("{key}{}\n", text.len()).as_bytes());
                out.extend_from_slice(text);
                out.push(b'\n');
            }
        }
        out
    }

    fn decode(text: Vec<u8>) -> Option<Self> {
        let mut rest = Bytes::from(text);
        let (mut names, mut present, mut next) = (Vec::new(), None, None);
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = rest.split_to(end + 1);
            let line = std::str::from_utf8(&line[..end]).ok()?;
            let mut text = |length: &str| {
                let length: usize = length.parse().ok()?;
                let whole = rest.get(length) == Some(&b'\n');
                let text = whole.then(|| rest.split_to(length))?;
                rest.advance(1);
                Some(text)
            };
            if let Some(length) = line.strip_prefix(PRESENT) {
                present = Some(text(length)?);
            } else if let Some(length) = line.strip_prefix(NEXT) {
                next = Some(text(length)?);
            } else {
                names.push(line.to_owned());
            }
        }
        let memberships = present.map(|present| Memberships { present, next });
        are_a_history(&names).then_some(Self { names, memberships })
    }
}

/// The marker and what it says, if there is one.
pub(super) fn marker<F: Files>(
    files: &F,
    dirs: &Dirs,
) -> Result<Option<(PathBuf, Marked)>, InstallError> {
    let marker = dirs.snapshots.join(MARKER);
    let text = files.read(&marker, MARKER_BYTES_MAX).map_err(at("read", &marker))?;
    let Some(text) = text else { return Ok(None) };
    match Marked::decode(text) {
        Some(marked) => Ok(Some((marker, marked))),
        None => Err(InstallError::Marker { path: marker }),
    }
}

/// The memberships are kept elsewhere. Before that nothing may be appended to the new history: the marker would take it
/// away again.
pub(crate) fn remove_marker<F: Files>(files: &F, dirs: &Dirs) -> Result<(), InstallError> {
    let marker = dirs.snapshots.join(MARKER);
    files.remove(&marker).map_err(at("remove", &marker))?;
    files.sync_dir(&dirs.snapshots).map_err(at("sync", &dirs.snapshots))?;
    Ok(())
}

/// One snapshot, and perhaps one log.
fn are_a_history(names: &[String]) -> bool {
    let snapshot = names.first().is_some_and(|name| snapshot::parse_name(name.as_ref()).is_some());
    snapshot && names.len() <= 2 && names.iter().skip(1).all(|name| is_log(name))
}

pub(super) fn is_log(name: &str) -> bool {
    segment::start_of(name.as_ref()).is_some()
}

pub(super) const MARKER: &str = "quorate.install";
pub(super) const MARKER_TMP: &str = "quorate.install.tmp";
/// Names, and two texts of memberships.
const MARKER_BYTES_MAX: u64 = 4 << 20;
const PRESENT: &str = "membership ";
const NEXT: &str = "next ";
