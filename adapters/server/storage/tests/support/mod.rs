//! A disk in memory that forgets what was not synced, counts what is read and fails where it is told to.
#![allow(dead_code, unreachable_pub, reason = "every test file uses a part of it")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use quorate_storage::install::Memberships;
use quorate_storage::{Files, Holder, Lock};

/// A disk that forgets, and stops working after a number of steps.
#[derive(Clone, Debug, Default)]
pub struct Forgetful(pub Rc<RefCell<State>>);

#[derive(Clone, Debug)]
pub struct State {
    pub contents: Vec<Content>,
    pub names: BTreeMap<PathBuf, usize>,
    pub synced_names: BTreeMap<PathBuf, usize>,
    /// What happened to names since they were synced, in order.
    pub pending: Vec<Change>,
    /// Steps that still succeed.
    pub steps_left: usize,
    /// Steps that were tried.
    pub steps: usize,
    /// This one fails, and those after it succeed.
    pub fail: Option<(usize, io::ErrorKind)>,
    /// Also lose the first half of what was written, and not the second.
    pub scrambles: bool,
    /// A sync that fails drops what it was to write: it can be read, and the next sync takes it for written.
    pub drops: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            contents: Vec::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            pending: Vec::new(),
            steps_left: usize::MAX,
            steps: 0,
            fail: None,
            scrambles: false,
            drops: false,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Content {
    pub written: Rc<Vec<u8>>,
    pub synced: Rc<Vec<u8>>,
    /// How many bytes were read from it.
    pub read: usize,
    /// The sectors that a failed sync has dropped.
    pub dropped: BTreeSet<usize>,
}

impl Content {
    /// Whether a power cut takes nothing.
    fn is_durable(&self) -> bool {
        Rc::ptr_eq(&self.written, &self.synced) || self.written == self.synced
    }

    /// What may be there after a power cut.
    fn left(&self, choice: usize) -> Rc<Vec<u8>> {
        let Self { written, synced, .. } = self;
        if choice < 2 {
            return Rc::clone(if choice == 0 { synced } else { written });
        }
        if written.len() < synced.len() && synced.starts_with(written) {
            return synced[..(written.len() + synced.len()) / 2].to_vec().into();
        }
        let changed = self.changed();
        let first = changed.first().map_or(written.len(), |range| range.start);
        let end = changed.last().map_or(first, |range| range.end);
        // The beginning of what was written, or the other sectors.
        let middle = (first + end) / 2;
        let (from, to) = if choice == 2 { (0, middle) } else { (middle / SECTOR * SECTOR, end) };
        let mut left = synced.to_vec();
        left.resize(written.len(), 0);
        left[from..to].copy_from_slice(&written[from..to]);
        left.into()
    }

    /// The sectors, or parts of them, that a power cut may take, ascending.
    pub fn changed(&self) -> Vec<std::ops::Range<usize>> {
        let Self { written, synced, .. } = self;
        let mut changed = Vec::new();
        for start in (0..written.len()).step_by(SECTOR) {
            let end = written.len().min(start + SECTOR);
            let old = &synced[start.min(synced.len())..end.min(synced.len())];
            let new = &written[start..end];
            if new[..old.len()] == *old && new[old.len()..].iter().all(|byte| *byte == 0) {
                continue;
            }
            let differs = |at: &usize| new[*at] != old.get(*at).copied().unwrap_or_default();
            let first = (0..new.len()).find(differs).unwrap_or_default();
            let last = (0..new.len()).rev().find(differs).unwrap_or_default();
            changed.push(start + first..start + last + 1);
        }
        changed
    }

    /// What is there when of these sectors only those survive that `keep` names.
    pub fn with(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut left = self.synced.to_vec();
        left.resize(self.written.len(), 0);
        for (at, range) in self.changed().into_iter().enumerate() {
            if keep(at) {
                left[range.clone()].copy_from_slice(&self.written[range]);
            }
        }
        let left = Rc::new(left);
        Self { written: Rc::clone(&left), synced: left, ..Self::default() }
    }
}

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub enum Change {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Create(path, file) => drop(names.insert(path.clone(), *file)),
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            Self::Remove(path) => drop(names.remove(path)),
        }
    }

    fn dir(&self) -> Option<&Path> {
        match self {
            Self::Create(path, _) | Self::Rename(_, path, _) | Self::Remove(path) => path.parent(),
        }
    }
}

impl State {
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if let Some((step, kind)) = self.fail {
            if step + 1 == self.steps {
                return Err(kind.into());
            }
        }
        self.steps_left = self.steps_left.checked_sub(1).ok_or(io::ErrorKind::Other)?;
        Ok(())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn new_file(&mut self, path: &Path) -> usize {
        let file = self.contents.len();
        self.contents.push(Content::default());
        self.change(Change::Create(path.to_owned(), file));
        file
    }

    /// How many outcomes a power cut may have.
    pub fn fates(&self) -> usize {
        let contents = self.contents.iter();
        let unsynced = contents.filter(|content| !content.is_durable()).count();
        let outcomes = if self.scrambles { 4 } else { 3 };
        let choices = std::iter::repeat_n(2, self.pending.len().min(20));
        choices.chain(std::iter::repeat_n(outcomes, unsynced)).product()
    }

    /// What is left after a power cut. `fate` is taken apart into one choice per unsynced thing;
    /// none if it is larger than the number of possible outcomes.
    pub fn crash(&self, mut fate: usize) -> Option<Self> {
        let mut choose = |of| {
            let choice = fate % of;
            fate /= of;
            choice
        };
        let mut names = self.synced_names.clone();
        for change in &self.pending {
            if choose(2) == 1 {
                change.apply(&mut names);
            }
        }
        let outcomes = if self.scrambles { 4 } else { 3 };
        let contents = self
            .contents
            .iter()
            .map(|content| {
                let choice = if content.is_durable() { 0 } else { choose(outcomes) };
                let left = content.left(choice);
                Content { written: Rc::clone(&left), synced: left, ..Content::default() }
            })
            .collect();
        let synced_names = names.clone();
        (fate == 0).then_some(Self { contents, names, synced_names, ..Self::default() })
    }

    /// What is left after a power cut that takes any sectors and any names: each for which `keeps` does
    /// not say otherwise.
    pub fn torn(&self, mut keeps: impl FnMut() -> bool) -> Self {
        let mut names = self.synced_names.clone();
        for change in &self.pending {
            if keeps() {
                change.apply(&mut names);
            }
        }
        let contents = self.contents.iter().map(|content| {
            if content.is_durable() {
                return content.clone();
            }
            let kept: Vec<_> = content.changed().iter().map(|_| keeps()).collect();
            content.with(|at| kept[at])
        });
        let contents = contents.collect();
        Self { contents, synced_names: names.clone(), names, ..Self::default() }
    }

    /// Puts a file there, durably.
    pub fn put(&mut self, path: impl AsRef<Path>, bytes: &[u8]) {
        let file = self.contents.len();
        let bytes = Rc::new(bytes.to_vec());
        let content = Content { written: Rc::clone(&bytes), synced: bytes, ..Content::default() };
        self.contents.push(content);
        self.names.insert(path.as_ref().to_owned(), file);
        self.synced_names.insert(path.as_ref().to_owned(), file);
    }

    /// The content of a file.
    pub fn content(&self, path: impl AsRef<Path>) -> Option<&Content> {
        self.names.get(path.as_ref()).map(|file| &self.contents[*file])
    }
}

impl Forgetful {
    pub fn new(state: State) -> Self {
        Self(Rc::new(RefCell::new(state)))
    }
}

impl Files for Forgetful {
    type File = usize;
    type Lock = ();

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn names(&self, dir: &Path) -> io::Result<Option<Vec<OsString>>> {
        let state = self.0.borrow();
        let inside = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(Some(inside.filter_map(|path| path.file_name()).map(Into::into).collect()))
    }

    fn read(&self, path: &Path, _: u64) -> io::Result<Option<Vec<u8>>> {
        let state = self.0.borrow();
        Ok(state.names.get(path).map(|file| state.contents[*file].written.to_vec()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let file = state.find(path).unwrap_or_else(|_| state.new_file(path));
        state.contents[file].written = bytes.to_vec().into();
        Ok(file)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<usize> {
        self.0.borrow().find(path)
    }

    fn open(&self, path: &Path) -> io::Result<usize> {
        self.0.borrow().find(path)
    }

    fn create(&self, path: &Path) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        match state.find(path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => Ok(state.new_file(path)),
        }
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.0.borrow().content(path).map(|content| content.written.len() as u64))
    }

    fn read_at(&self, file: &usize, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = &mut self.0.borrow_mut().contents[*file];
        let start = usize::try_from(offset).unwrap().min(content.written.len());
        let length = buffer.len().min(content.written.len() - start);
        buffer[..length].copy_from_slice(&content.written[start..start + length]);
        content.read += length;
        Ok(length)
    }

    fn write_at(&self, file: &usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let result = state.step();
        // Nobody says how much was written when it failed.
        let bytes = if result.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        let written = Rc::make_mut(&mut state.contents[*file].written);
        let offset = usize::try_from(offset).unwrap();
        let end = offset + bytes.len();
        if written.len() < end {
            written.resize(end, 0);
        }
        written[offset..end].copy_from_slice(bytes);
        state.contents[*file]
            .dropped
            .retain(|at| !(offset / SECTOR..end.div_ceil(SECTOR)).contains(at));
        result
    }

    fn reserve(&self, file: &usize, size: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let written = Rc::make_mut(&mut state.contents[*file].written);
        let size = usize::try_from(size).unwrap().max(written.len());
        written.resize(size, 0);
        Ok(())
    }

    fn cut(&self, file: &usize, size: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let size = usize::try_from(size).unwrap();
        let content = &mut state.contents[*file];
        Rc::make_mut(&mut content.written).resize(size, 0);
        // The last one is written anew.
        content.dropped.retain(|at| (at + 1) * SECTOR <= size);
        Ok(())
    }

    fn sync_data(&self, file: &usize) -> io::Result<()> {
        self.sync(file)
    }

    fn sync(&self, file: &usize) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let (result, drops) = (state.step(), state.drops);
        let content = &mut state.contents[*file];
        if let Err(error) = result {
            if drops {
                let changed = content.changed();
                content.dropped.extend(changed.iter().map(|range| range.start / SECTOR));
            }
            return Err(error);
        }
        let dropped = &content.dropped;
        let kept = match dropped.is_empty() {
            true => Rc::clone(&content.written),
            false => {
                let changed = content.changed();
                content.with(|at| !dropped.contains(&(changed[at].start / SECTOR))).synced
            }
        };
        content.synced = kept;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let file = state.find(from)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.find(path)?;
        state.step()?;
        state.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            state.pending.drain(..).partition(|change| change.dir() == Some(dir));
        state.pending = elsewhere;
        for change in here {
            change.apply(&mut state.synced_names);
        }
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Lock<()>> {
        Ok(Lock::Ours(()))
    }

    fn holder(&self, _: &Path) -> io::Result<Option<Holder>> {
        Ok(None)
    }
}

thread_local! {
    /// The label of a history that was installed, as long as what came with it of the membership is kept nowhere.
    static UNKEPT: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

/// What comes with each history of the membership.
pub fn memberships() -> Memberships {
    let text = |members: &str| Bytes::copy_from_slice(members.as_bytes());
    Memberships {
        present: text("server.1=a:1:2\nserver.2=b:1:2\nversion=100000007"),
        next: Some(text("server.1=a:1:2\nversion=200000001")),
    }
}

/// From now on a history with this label is found with its memberships, until [`kept`] has run.
pub fn to_be_kept(label: i64) {
    UNKEPT.set(label);
}

/// Keeps them.
pub fn kept() -> Result<(), (PathBuf, io::Error)> {
    UNKEPT.set(0);
    Ok(())
}

/// What a start has found of a history with this label; whether there is something to keep.
pub fn found(label: i64, installed: Option<&Memberships>) -> bool {
    if UNKEPT.get() == label {
        assert!(label == 0 || installed.is_some(), "memberships were lost with a crash");
    }
    assert!(installed.is_none_or(|installed| *installed == memberships()));
    installed.is_some()
}
