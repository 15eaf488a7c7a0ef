//! Crashes at every single step of setting the epochs, with each write that was not synced surviving
//! or not (ZOOKEEPER-2307, -1653, -4269: servers that refused to start, or took a promise back).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quorate_core::zxid::Epoch;
use quorate_log::{Durable, Files, Lock, Log, LogError, OpenOptions};

/// A disk that forgets, and stops working after a number of steps.
#[derive(Clone, Debug, Default)]
struct Forgetful(Rc<RefCell<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    /// What happened to names since they were synced, in order.
    pending: Vec<Change>,
    /// Steps that still succeed.
    steps_left: usize,
}

#[derive(Clone, Debug, Default)]
struct Content {
    written: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Change {
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
}

impl State {
    fn step(&mut self) -> io::Result<()> {
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

    /// What is left after a power cut. `fate` is taken apart into one choice per unsynced thing;
    /// none if it is larger than the number of possible outcomes.
    fn crash(&self, mut fate: usize) -> Option<Self> {
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
        let contents = self
            .contents
            .iter()
            .map(|Content { written, synced }| {
                let left = match written == synced {
                    true => 0,
                    false => choose(3),
                };
                let left = match left {
                    0 => synced.clone(),
                    1 => written.clone(),
                    _ => written[..written.len() / 2].to_vec(),
                };
                Content { written: left.clone(), synced: left }
            })
            .collect();
        let synced_names = names.clone();
        (fate == 0).then_some(Self {
            contents,
            names,
            synced_names,
            pending: Vec::new(),
            steps_left: usize::MAX,
        })
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
        Ok(state.names.get(path).map(|file| state.contents[*file].written.clone()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let file = match state.find(path) {
            Ok(file) => file,
            Err(_) => {
                let file = state.contents.len();
                state.contents.push(Content::default());
                state.change(Change::Create(path.to_owned(), file));
                file
            }
        };
        state.contents[file].written = bytes.to_vec();
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<usize> {
        self.0.borrow().find(path)
    }

    fn sync(&self, file: &usize) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let content = &mut state.contents[*file];
        content.synced = content.written.clone();
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

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        state.synced_names = state.names.clone();
        state.pending.clear();
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Lock<()>> {
        Ok(Lock::Ours(()))
    }
}

fn open(disk: &Forgetful) -> Result<(Log<Forgetful>, Durable), LogError> {
    Log::open_on(disk.clone(), "/data", OpenOptions::default())
}

/// Sets both epochs to 5 and then to 6, noting what was said to be durable.
fn run(disk: &Forgetful, durable: &mut Durable) -> Result<(), LogError> {
    let (mut log, found) = open(disk)?;
    check(&found, durable);
    *durable = found;
    for epoch in [5, 6] {
        log.write_accepted_epoch(Epoch(epoch))?;
        *durable = log.durable().clone();
        log.write_current_epoch(Epoch(epoch))?;
        *durable = log.durable().clone();
    }
    Ok(())
}

fn check(found: &Durable, said: &Durable) {
    assert!(found.accepted_epoch >= said.accepted_epoch, "{found:?} after {said:?} was durable");
    assert!(found.current_epoch >= said.current_epoch, "{found:?} after {said:?} was durable");
    assert!(found.current_epoch <= found.accepted_epoch, "{found:?}");
}

#[test]
fn every_crash_leaves_a_legal_state_and_no_epoch_goes_back() {
    let mut states = 0;
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut said = Durable::default();
        let finished = run(&disk, &mut said).is_ok();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            states += 1;
            let (_, found) = open(&Forgetful(Rc::new(RefCell::new(left.clone())))).unwrap();
            check(&found, &said);
            crash_again(&left, &said);
        }
        if finished {
            assert_eq!((said.accepted_epoch, said.current_epoch), (Epoch(6), Epoch(6)));
            assert!(steps > 20 && states > 50, "{states} states after {steps} steps");
            return;
        }
    }
}

/// What is left of a crash is itself run and crashed at every step.
fn crash_again(left: &State, said: &Durable) {
    for steps in 0.. {
        let disk = Forgetful(Rc::new(RefCell::new(left.clone())));
        disk.0.borrow_mut().steps_left = steps;
        let mut said = said.clone();
        let finished = run_again(&disk, &mut said).is_ok();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            check(&open(&Forgetful(Rc::new(RefCell::new(left)))).unwrap().1, &said);
        }
        if finished {
            return;
        }
    }
}

fn run_again(disk: &Forgetful, durable: &mut Durable) -> Result<(), LogError> {
    let (mut log, found) = open(disk)?;
    check(&found, durable);
    *durable = found;
    log.write_accepted_epoch(Epoch(7))?;
    *durable = log.durable().clone();
    log.write_current_epoch(Epoch(7))?;
    *durable = log.durable().clone();
    Ok(())
}

/// A process that dies, unlike a machine, leaves unsynced names in the page cache. The next one reads
/// them; it must not speak of them before they would survive a power cut.
#[test]
fn what_a_killed_process_left_is_synced_before_it_is_believed() {
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let finished = run(&disk, &mut Durable::default()).is_ok();
        disk.0.borrow_mut().steps_left = usize::MAX;
        let (_, said) = open(&disk).unwrap();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            check(&open(&Forgetful(Rc::new(RefCell::new(left)))).unwrap().1, &said);
        }
        if finished {
            return;
        }
    }
}

#[test]
fn after_a_failed_write_nothing_is_written_any_more() {
    for steps in 0..4 {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = usize::MAX;
        let (mut log, found) = open(&disk).unwrap();
        disk.0.borrow_mut().steps_left = steps;
        assert!(matches!(log.write_accepted_epoch(Epoch(5)), Err(LogError::Io { .. })));
        assert_eq!(log.durable(), &found, "memory changes after the file");
        disk.0.borrow_mut().steps_left = usize::MAX;
        assert!(matches!(log.write_accepted_epoch(Epoch(5)), Err(LogError::Failed { .. })));
    }
}
