//! Finishing an installation that a crash interrupted, and removing what waited for one.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::error::InstallError;
use super::marker::{MARKER_TMP, Marked, Memberships, is_log, marker, remove_marker};
use crate::dirs::Dirs;
use crate::error::at;
use crate::files::Files;
use crate::names::{RECEIVING, STAGED, TAKING};
use crate::segment;
use crate::snapshot;

/// At start: does what is left to do of an installation whose marker is there, and removes what waited
/// for one. The marker stays if it tells of memberships, which are returned.
pub(crate) fn resume<F: Files>(
    files: &F,
    dirs: &Dirs,
) -> Result<Option<Memberships>, InstallError> {
    let mut memberships = None;
    if let Some((marker, marked)) = marker(files, dirs)? {
        // A killed process may have left the marker in the page cache only; it must outlive what it
        // tells us to remove.
        let file = files.open(&marker).map_err(at("open", &marker))?;
        files.sync(&file).map_err(at("sync", &marker))?;
        drop(file);
        dirs.sync(files)?;
        complete(files, dirs, &marked.names)?;
        memberships = marked.memberships;
        if memberships.is_none() {
            remove_marker(files, dirs)?;
        }
    }
    for dir in dirs.each() {
        let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
        for name in names {
            let text = name.to_string_lossy();
            if is_leftover(&text) {
                let path = dir.join(&name);
                files.remove(&path).map_err(at("remove", &path))?;
            }
        }
    }
    Ok(memberships)
}

/// For a check, which changes nothing: the marker of an installation that a start would finish, if there is one,
/// and where the files of that history are at present.
pub(crate) fn pending<F: Files>(
    files: &F,
    dirs: &Dirs,
) -> Result<Option<(PathBuf, Vec<PathBuf>)>, InstallError> {
    let Some((marker, Marked { names, .. })) = marker(files, dirs)? else { return Ok(None) };
    let moves = moves(files, dirs, &names)?;
    let present = names.iter().map(|name| {
        let staged = moves.iter().find(|(_, path)| path.ends_with(name));
        let dir = if is_log(name) { &dirs.logs } else { &dirs.snapshots };
        staged.map_or_else(|| dir.join(name), |(staged, _)| staged.clone())
    });
    Ok(Some((marker, present.collect())))
}

/// Whether a file of that name was left behind by an interrupted write, unless a marker names it.
pub(crate) fn is_leftover(name: &str) -> bool {
    name == MARKER_TMP || [STAGED, RECEIVING, TAKING].iter().any(|prefix| name.starts_with(prefix))
}

/// What is still to be renamed, from which name to which.
fn moves<F: Files>(
    files: &F,
    dirs: &Dirs,
    names: &[String],
) -> Result<Vec<(PathBuf, PathBuf)>, InstallError> {
    let mut moves = Vec::new();
    for name in names {
        let dir = if is_log(name) { &dirs.logs } else { &dirs.snapshots };
        let (staged, path) = (dir.join(format!("{STAGED}{name}")), dir.join(name));
        if files.size(&staged).map_err(at("look at", &staged))?.is_some() {
            moves.push((staged, path));
        } else if files.size(&path).map_err(at("look at", &path))?.is_none() {
            return Err(InstallError::Missing { path: staged });
        }
    }
    Ok(moves)
}

/// Everything behind the marker but its end. May be interrupted and done again at any step.
pub(super) fn complete<F: Files>(
    files: &F,
    dirs: &Dirs,
    names: &[String],
) -> Result<(), InstallError> {
    let moves = moves(files, dirs, names)?;
    let kept = |name: &OsStr| names.iter().any(|kept| OsStr::new(kept) == name);
    for dir in dirs.each() {
        let found = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
        for name in found {
            let history =
                segment::start_of(&name).is_some() || snapshot::parse_name(&name).is_some();
            if history && !kept(&name) {
                let path = dir.join(&name);
                files.remove(&path).map_err(at("remove", &path))?;
            }
        }
    }
    for (staged, path) in moves {
        files.rename(&staged, &path).map_err(at("rename", &staged))?;
    }
    Ok(dirs.sync(files)?)
}
