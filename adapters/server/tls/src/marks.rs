//! Whether files have changed since they were read.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::settings::{Settings, StoreFile, StorePassword};

/// What tells one content of the stores, and of the files with their passwords, from another without reading them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<Option<Mark>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    length: u64,
    modified: Option<SystemTime>,
    file: Option<(u64, u64)>,
}

impl Marks {
    /// Those of now. Links are followed. Blocks.
    pub fn of(settings: &Settings) -> Self {
        let mut marks = Self::of_stores([&settings.key_store, &settings.trust_store]);
        marks.0.push(mark(settings.revoked.as_ref().map(|file| &*file.path)));
        marks
    }

    /// Those of these stores.
    pub(crate) fn of_stores<'a>(stores: impl IntoIterator<Item = &'a StoreFile>) -> Self {
        let files = stores.into_iter().flat_map(|store| [Some(&*store.path), password(store)]);
        Self(files.map(mark).collect())
    }
}

fn password(store: &StoreFile) -> Option<&Path> {
    match &store.password {
        Some(StorePassword::File(path)) => Some(path),
        Some(StorePassword::Inline(_)) | None => None,
    }
}

fn mark(path: Option<&Path>) -> Option<Mark> {
    let found = fs::metadata(path?).ok()?;
    #[cfg(unix)]
    let file = {
        use std::os::unix::fs::MetadataExt;
        Some((found.dev(), found.ino()))
    };
    #[cfg(not(unix))]
    let file = None;
    Some(Mark { length: found.len(), modified: found.modified().ok(), file })
}
