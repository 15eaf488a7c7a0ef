//! The files of a workspace: read from a folder, and written to another where they differ.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// What is no part of a workspace: what was built, what git holds, and what fuzzing has found.
const LEFT_OUT: &[&str] = &["target", ".git", "corpus", "artifacts"];

/// The files of a workspace, by their path from its root, with `/` between its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// What they hold.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Why a tree was not read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {path}")]
pub struct TreeError {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn at(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TreeError {
    let path = path.to_owned();
    move |source| TreeError { act, path, source }
}

impl Tree {
    /// Reads all files below `root`.
    pub fn read(root: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, dir: &Path, prefix: &str) -> Result<(), TreeError> {
        for entry in std::fs::read_dir(dir).map_err(at("list", dir))? {
            let entry = entry.map_err(at("list", dir))?;
            let path = entry.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if LEFT_OUT.contains(&name) {
                continue;
            }
            let below = format!("{prefix}{name}");
            if path.is_dir() {
                self.add(&path, &(below + "/"))?;
            } else {
                let content = std::fs::read(&path).map_err(at("read", &path))?;
                self.files.insert(below, content);
            }
        }
        Ok(())
    }

    /// The text of a file, if it is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).and_then(|content| std::str::from_utf8(content).ok())
    }

    /// Makes the files below `root` these, except for what is left out. A file that holds what it should is not
    /// touched: cargo builds what is newer than what it has built.
    pub fn write(&self, root: &Path) -> Result<(), TreeError> {
        std::fs::create_dir_all(root).map_err(at("create", root))?;
        let present = Self::read(root)?;
        for path in present.files.keys().filter(|path| !self.files.contains_key(*path)) {
            let path = root.join(path);
            std::fs::remove_file(&path).map_err(at("remove", &path))?;
        }
        for (path, content) in &self.files {
            if present.files.get(path) == Some(content) {
                continue;
            }
            let path = root.join(path);
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(at("create", dir))?;
            }
            std::fs::write(&path, content).map_err(at("write", &path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        Tree { files: files.iter().map(file).collect() }
    }

    #[test]
    fn only_what_differs_is_written_and_what_was_built_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        tree(&[("a.rs", "a"), ("src/b.rs", "b"), ("c.rs", "c")]).write(root).unwrap();
        std::fs::create_dir(root.join("target")).unwrap();
        std::fs::write(root.join("target/built"), "d").unwrap();
        let age = std::time::SystemTime::UNIX_EPOCH;
        for path in ["a.rs", "src/b.rs"] {
            let file = std::fs::File::options().append(true).open(root.join(path)).unwrap();
            file.set_modified(age).unwrap();
        }
        let next = tree(&[("a.rs", "a"), ("src/b.rs", "B")]);
        next.write(root).unwrap();
        assert_eq!(Tree::read(root).unwrap(), next);
        let modified = |path: &str| root.join(path).metadata().unwrap().modified().unwrap();
        assert_eq!(modified("a.rs"), age);
        assert_ne!(modified("src/b.rs"), age);
        assert!(root.join("target/built").exists());
    }
}
