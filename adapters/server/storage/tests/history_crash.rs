//! Power cuts and disk errors at every single step of a history's life: what was reported durable is
//! there afterwards, nothing is there that was never written, and there is no hole.
//!
//! In the annals: ZOOKEEPER-2872 (a snapshot that was acknowledged and not durable), -3701 (a truncation
//! that failed and was not noticed), -2247 and -4882 (a server that went on with a failing disk).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support;
use std::io::{self, Write};

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::install::Install;
use quorate_storage::record;
use quorate_storage::segments::{Dirs, OpenError, Opened, Roll, SegmentOptions, Segments};
use quorate_storage::snapshot::{Parts, SnapshotWriter, StagedSnapshot};

type Failure = Box<dyn std::error::Error>;

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;
const E3: i64 = 3 << 32;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    let body = vec![u8::try_from(zxid & 0x7f).unwrap() | 0x80; usize::try_from(zxid & 7).unwrap()];
    Txn { zxid: Zxid(zxid), header, body: Bytes::from(body) }
}

fn options() -> SegmentOptions {
    SegmentOptions {
        preallocate: 512,
        roll: Roll { records: 4, bytes: 1 << 20 },
        txn_bytes_max: 256,
        trust_empty_snapshot: true,
        ..SegmentOptions::default()
    }
}

fn dirs(separate: bool) -> Dirs {
    let snapshots = "/data/version-2".into();
    let logs = if separate { "/logs/version-2" } else { "/data/version-2" }.into();
    Dirs { snapshots, logs }
}

fn open(disk: &Forgetful, dirs: &Dirs) -> Result<(Segments<Forgetful>, Opened), OpenError> {
    let (mut history, opened) = Segments::open(disk.clone(), dirs.clone(), options())?;
    let label = opened.snapshot.as_ref().map_or(0, |snapshot| snapshot.label.0);
    if support::found(label, opened.installed.as_ref()) {
        support::kept().unwrap();
        history.memberships_kept()?;
    }
    Ok((history, opened))
}

/// What may be found after a crash: any of these histories, at least through its second part.
#[derive(Clone, Debug)]
struct Promise {
    histories: Vec<(Vec<i64>, i64)>,
}

impl Promise {
    /// Checks what was opened, and returns it as a history of its own.
    fn check(&self, history: &mut Segments<Forgetful>, opened: &Opened, context: &str) -> Vec<i64> {
        let found = contents(history, opened);
        let (floor, last) = (opened.floor.0, opened.last.0);
        let fits = |(zxids, through): &(Vec<i64>, i64)| {
            let expected: Vec<_> =
                zxids.iter().copied().filter(|zxid| *zxid > floor && *zxid <= last).collect();
            let ends = last >= *through && (last == 0 || zxids.contains(&last));
            ends && expected == found
        };
        let label = opened.snapshot.as_ref().map_or(0, |snapshot| snapshot.label.0);
        assert!(floor <= label, "{context}: a start from {label} has what follows it: {opened:?}");
        let fitting = self.histories.iter().find(|history| fits(history));
        let (zxids, _) = fitting.unwrap_or_else(|| {
            panic!("{context}: found {floor:x}..={last:x} {found:x?}, promised {self:x?}")
        });
        zxids.iter().copied().filter(|zxid| *zxid <= last).collect()
    }
}

fn contents(history: &mut Segments<Forgetful>, opened: &Opened) -> Vec<i64> {
    let mut reader = history.read(opened.floor, opened.last).unwrap();
    let mut found = Vec::new();
    while let Some(chunk) = reader.next_chunk(100).unwrap() {
        for read in chunk.txns() {
            assert_eq!(read, txn(read.zxid.0));
            found.push(read.zxid.0);
        }
    }
    let window: Vec<_> = opened.window.iter().map(|txn| txn.zxid.0).collect();
    assert!(window.iter().rev().zip(found.iter().rev()).all(|(a, b)| a == b), "{opened:?}");
    found
}

/// A life, told as it happens.
struct Life {
    disk: Forgetful,
    dirs: Dirs,
    history: Segments<Forgetful>,
    /// Everything appended.
    zxids: Vec<i64>,
    promise: Promise,
}

impl Life {
    fn begin(disk: &Forgetful, dirs: &Dirs, promise: &mut Promise) -> Result<Self, Failure> {
        let (mut history, opened) = open(disk, dirs)?;
        let zxids = promise.check(&mut history, &opened, "at open");
        let promise = Promise { histories: vec![(zxids.clone(), opened.last.0)] };
        Ok(Self { disk: disk.clone(), dirs: dirs.clone(), history, zxids, promise })
    }

    fn append(&mut self, zxids: &[i64]) -> Result<(), Failure> {
        let txns: Vec<_> = zxids.iter().copied().map(txn).collect();
        self.history.append(&txns)?;
        self.zxids.extend(zxids);
        let durable = self.history.durable().0;
        self.promise.histories = vec![(self.zxids.clone(), durable)];
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        let synced = self.history.sync()?;
        assert_eq!(synced.through, self.history.last());
        self.promise.histories = vec![(self.zxids.clone(), synced.through.0)];
        Ok(())
    }

    fn stage(&self, label: i64, received: bool) -> Result<StagedSnapshot<Forgetful>, Failure> {
        let (disk, dir) = (self.disk.clone(), &self.dirs.snapshots);
        let mut writer = match received {
            true => SnapshotWriter::receive(disk, dir, Zxid(label))?,
            false => SnapshotWriter::take(disk, dir, Zxid(label))?,
        };
        writer.write_all(b"state")?;
        Ok(writer.finish(Parts::default())?)
    }

    fn publish(&mut self, label: i64) -> Result<(), Failure> {
        let staged = self.stage(label, false)?;
        Ok(self.history.publish(staged)?)
    }

    fn truncate(&mut self, zxid: i64) -> Result<(), Failure> {
        self.promise.histories = vec![(self.zxids.clone(), zxid)];
        self.history.truncate(Zxid(zxid))?;
        self.zxids.retain(|have| *have <= zxid);
        self.promise.histories = vec![(self.zxids.clone(), zxid)];
        assert_eq!((self.history.last().0, self.history.durable().0), (zxid, zxid));
        Ok(())
    }

    /// The new history has the snapshot's label as if it were a transaction.
    fn install(&mut self, label: i64, behind: &[i64]) -> Result<(), Failure> {
        let mut install = Install::new(self.stage(label, true)?, &self.dirs, 256);
        for zxid in behind {
            install.append(&[txn(*zxid)])?;
        }
        let new = [&[label], behind].concat();
        let last = install.last().0;
        self.promise.histories.push((new.clone(), last));
        support::to_be_kept(label);
        self.history.install(install, &support::memberships(), support::kept)?;
        self.promise.histories = vec![(new.clone(), last)];
        self.zxids = new;
        Ok(())
    }
}

/// Everything that happens to a history. The promise is kept up to date, also where it ends early.
fn live(disk: &Forgetful, dirs: &Dirs, promise: &mut Promise) -> Result<(), Failure> {
    let mut life = Life::begin(disk, dirs, promise)?;
    let result = live_on(&mut life);
    *promise = life.promise;
    if result.is_err() && disk.0.borrow().fail.is_some() {
        refuses_everything(&mut life.history);
    }
    result
}

fn live_on(life: &mut Life) -> Result<(), Failure> {
    life.append(&[E1 + 1])?;
    life.sync()?;
    life.append(&[E1 + 2, E1 + 3])?;
    life.append(&[E1 + 4, E1 + 5])?;
    life.sync()?;
    life.publish(E1 + 4)?;
    life.append(&[E1 + 6])?;
    life.sync()?;
    life.history.roll()?;
    life.append(&[E1 + 7, E1 + 8])?;
    life.sync()?;
    life.publish(E1 + 7)?;
    life.append(&[E1 + 9])?;
    life.sync()?;
    // The snapshot of 7 must go, that of 4 leads to 6.
    life.truncate(E1 + 6)?;
    life.append(&[E2 + 1, E2 + 2])?;
    life.sync()?;
    life.truncate(E2 + 1)?;
    life.append(&[E2 + 2, E2 + 3])?;
    life.sync()?;
    life.publish(E2 + 3)?;
    life.append(&[E2 + 4])?;
    life.sync()?;
    life.install(E3, &[E3 + 1, E3 + 2])?;
    life.append(&[E3 + 3, E3 + 4])?;
    life.sync()?;
    life.install(E3 + 8, &[])?;
    for zxid in E3 + 9..E3 + 14 {
        life.append(&[zxid])?;
        life.sync()?;
        life.history.roll()?;
        life.publish(zxid)?;
    }
    let purged = life.history.purge(3, 100)?;
    assert_eq!((purged.snapshots, purged.logs), (3, 3));
    life.append(&[E3 + 14])?;
    life.sync()?;
    // A leader may send a snapshot older than what we have; files of the same names are there.
    life.install(E3 + 11, &[E3 + 12])?;
    life.append(&[E3 + 13])?;
    life.sync()?;
    Ok(())
}

fn refuses_everything(history: &mut Segments<Forgetful>) {
    let last = history.last();
    // An error in a file of its own, a snapshot not yet published, does not concern the history.
    if history.append(&[]).is_ok() {
        return;
    }
    history.append(&[txn(last.0 + 1)]).unwrap_err();
    history.sync().unwrap_err();
    history.roll().unwrap_err();
    history.truncate(Zxid(1)).unwrap_err();
    history.purge(3, 100).unwrap_err();
}

fn nothing() -> Promise {
    Promise { histories: vec![(Vec::new(), 0)] }
}

/// Some of the fates, among them that everything survives and that nothing does.
fn fates(state: &State) -> impl Iterator<Item = usize> + use<> {
    let count = state.fates();
    let step = (count / 60).max(1);
    (0..count).step_by(step).chain([count - 1])
}

/// What is left can be opened, says what was promised, and can be continued.
fn survives(left: State, dirs: &Dirs, promise: &Promise, context: &str) {
    let disk = Forgetful::new(left);
    let (mut history, opened) =
        open(&disk, dirs).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut zxids = promise.check(&mut history, &opened, context);
    let next = (((opened.last.0 >> 32) + 1) << 32) + 1;
    history.append(&[txn(next)]).unwrap();
    history.sync().unwrap();
    drop(history);
    zxids.push(next);
    let promise = Promise { histories: vec![(zxids, next)] };
    let (mut history, opened) =
        open(&disk, dirs).unwrap_or_else(|error| panic!("{context}: {error}"));
    promise.check(&mut history, &opened, context);
}

/// ZOOKEEPER-1489: what was appended behind a cut was lost at the next start. Here cuts, and what follows them, are among
/// the steps.
#[test]
fn a_power_cut_at_any_step_loses_nothing_that_was_durable() {
    for separate in [false, true] {
        let dirs = dirs(separate);
        let mut states = 0;
        for steps in 0.. {
            let disk = Forgetful::default();
            disk.0.borrow_mut().steps_left = steps;
            let mut promise = nothing();
            let result = live(&disk, &dirs, &mut promise);
            let state = disk.0.borrow().clone();
            for fate in fates(&state) {
                let Some(left) = state.crash(fate) else { continue };
                states += 1;
                survives(left, &dirs, &promise, &format!("step {steps}, fate {fate}"));
            }
            if result.is_ok() {
                assert!(steps > 100 && states > 1000, "{steps} steps, {states} states");
                break;
            }
        }
    }
}

/// A log of a Java server that ends, torn, before the snapshot its leader sent: it must be gone before
/// anything follows the snapshot, and until then nothing may be lost.
#[test]
fn a_power_cut_while_an_outdated_log_goes_leaves_no_hole() {
    let dirs = dirs(true);
    let mut before = State::default();
    for (name, zxids) in [("log.100000001", [E1 + 1, E1 + 2]), ("log.100000003", [E1 + 3, E1 + 4])]
    {
        let mut bytes = record::FILE_HEADER.to_vec();
        zxids.iter().for_each(|zxid| record::encode(&txn(*zxid), &mut bytes));
        bytes.truncate(bytes.len() - usize::from(zxids[0] == E1 + 3));
        before.put(dirs.logs.join(name), &bytes);
    }
    before.put(dirs.snapshots.join("snapshot.100000007"), b"0123456789\0\0\0\x01/");
    let found = Promise { histories: vec![(vec![E1 + 7], E1 + 7)] };
    let live = |disk: &Forgetful, promise: &mut Promise| -> Result<(), Failure> {
        let mut life = Life::begin(disk, &dirs, promise)?;
        let result = life.append(&[E1 + 8, E1 + 9]).and_then(|()| life.sync());
        *promise = life.promise;
        result
    };
    for steps in 0.. {
        let disk = Forgetful::new(before.clone());
        disk.0.borrow_mut().steps_left = steps;
        let mut promise = found.clone();
        let finished = live(&disk, &mut promise).is_ok();
        let state = disk.0.borrow().clone();
        for fate in 0..state.fates() {
            let Some(left) = state.crash(fate) else { continue };
            survives(left, &dirs, &promise, &format!("step {steps}, fate {fate}"));
        }
        if finished {
            assert!(steps > 8, "{steps} steps");
            break;
        }
    }
}

/// The repair at open is itself interrupted, at every step.
#[test]
fn a_power_cut_while_opening_loses_nothing_either() {
    let dirs = dirs(false);
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut promise = nothing();
        let result = live(&disk, &dirs, &mut promise);
        let state = disk.0.borrow().clone();
        for fate in [0, state.fates() / 3, state.fates() - 1] {
            let Some(left) = state.crash(fate) else { continue };
            for more in 0.. {
                let disk = Forgetful::new(left.clone());
                disk.0.borrow_mut().steps_left = more;
                let opened = open(&disk, &dirs).is_ok();
                let state = disk.0.borrow().clone();
                for second in [0, state.fates() / 2, state.fates() - 1] {
                    let Some(left) = state.crash(second) else { continue };
                    let context = format!("step {steps}, fate {fate}, {more} more, {second}");
                    survives(left, &dirs, &promise, &context);
                }
                if opened {
                    break;
                }
            }
        }
        if result.is_ok() {
            break;
        }
    }
}

/// First the process dies, and what it did is in the page cache only; then, while the next one opens the
/// directory, the machine does.
#[test]
fn a_power_cut_while_opening_what_a_killed_process_left_loses_nothing() {
    let dirs = dirs(true);
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut promise = nothing();
        let result = live(&disk, &dirs, &mut promise);
        for more in 0.. {
            let disk = Forgetful::new(disk.0.borrow().clone());
            disk.0.borrow_mut().steps_left = more;
            let opened = open(&disk, &dirs).is_ok();
            let state = disk.0.borrow().clone();
            for fate in fates(&state).step_by(4) {
                let Some(left) = state.crash(fate) else { continue };
                let context = format!("killed at {steps}, {more} more, fate {fate}");
                survives(left, &dirs, &promise, &context);
            }
            if opened {
                break;
            }
        }
        if result.is_ok() {
            break;
        }
    }
}

/// A process that dies, unlike a machine, leaves the page cache behind. What the next one reports from
/// there must survive a power cut.
#[test]
fn what_a_killed_process_left_is_durable_before_it_is_reported() {
    let dirs = dirs(true);
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut promise = nothing();
        let result = live(&disk, &dirs, &mut promise);
        disk.0.borrow_mut().steps_left = usize::MAX;
        let (mut history, opened) = open(&disk, &dirs).unwrap();
        let zxids = promise.check(&mut history, &opened, "killed");
        let promise = Promise { histories: vec![(zxids, opened.last.0)] };
        let state = disk.0.borrow().clone();
        for fate in fates(&state) {
            let Some(left) = state.crash(fate) else { continue };
            survives(left, &dirs, &promise, &format!("killed at {steps}, fate {fate}"));
        }
        if result.is_ok() {
            break;
        }
    }
}

#[test]
fn a_disk_that_fails_once_is_never_trusted_again_and_keeps_what_it_has() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        let dirs = dirs(true);
        for step in 0.. {
            let disk = Forgetful::default();
            disk.0.borrow_mut().fail = Some((step, kind));
            let mut promise = nothing();
            if live(&disk, &dirs, &mut promise).is_ok() {
                assert!(step > 100);
                break;
            }
            let state = disk.0.borrow().clone();
            survives(State { fail: None, ..state.clone() }, &dirs, &promise, &format!("{step}"));
            for fate in fates(&state) {
                let Some(left) = state.crash(fate) else { continue };
                survives(left, &dirs, &promise, &format!("failed at {step}, fate {fate}"));
            }
        }
    }
}

/// Of a batch that was never acknowledged, a later part may survive and an earlier one may not. That is
/// no damage: it lies behind the place through which the log was synced, and is cut off. (On 953d248 it was
/// refused, and after a power cut at one site a majority might not have started.)
#[test]
fn a_batch_that_lost_its_beginning_is_cut_and_never_taken_for_more() {
    let dirs = dirs(false);
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        disk.0.borrow_mut().scrambles = true;
        let mut promise = nothing();
        let ended = live(&disk, &dirs, &mut promise).is_ok();
        let state = disk.0.borrow().clone();
        for fate in fates(&state) {
            let Some(left) = state.crash(fate) else { continue };
            survives(left, &dirs, &promise, &format!("step {steps}, fate {fate}"));
        }
        if ended {
            break;
        }
    }
}
