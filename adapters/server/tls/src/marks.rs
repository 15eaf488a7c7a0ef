//! Whether files have changed since they were read.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::settings::{RevokedFile, Settings, StoreFile, StorePassword};

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
        let stores = [&settings.key_store, &settings.trust_store];
        Self::of_files(stores, settings.revoked.as_ref())
    }

    /// Those of these files.
    pub(crate) fn of_files<'a>(
        stores: impl IntoIterator<Item = &'a StoreFile>,
        revoked: Option<&'a RevokedFile>,
    ) -> Self {
        let files = stores.into_iter().flat_map(|store| [Some(&*store.path), password(store)]);
        let revoked = revoked.map(|file| &*file.path);
        Self(files.chain([revoked]).map(mark).collect())
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
