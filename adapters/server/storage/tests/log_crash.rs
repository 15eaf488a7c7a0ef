//! Power cuts, killed processes and disk errors at every single step of a server's life: its epochs and
//! its history together. Whatever is left opens, nothing that was said to be durable is missing, no epoch
//! goes back, and nothing is logged of an epoch that was not promised.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support;
use std::io::{self, Write};

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::durable::Epochs;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::check::check_on;
use quorate_storage::install::Install;
use quorate_storage::segments::{Roll, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Found, Log, LogError, OpenOptions};

type Failure = Box<dyn std::error::Error>;

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;
const E3: i64 = 3 << 32;
const E4: i64 = 4 << 32;
const TXN_BYTES_MAX: usize = 256;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    let body = vec![u8::try_from(zxid & 0x7f).unwrap() | 0x80; usize::try_from(zxid & 7).unwrap()];
    Txn { zxid: Zxid(zxid), header, body: Bytes::from(body) }
}

fn open(disk: &Forgetful, separate: bool) -> Result<(Log<Forgetful>, Found), LogError> {
    let history = SegmentOptions {
        preallocate: 512,
        roll: Roll { records: 4, bytes: 1 << 20 },
        txn_bytes_max: TXN_BYTES_MAX,
        ..SegmentOptions::default()
    };
    let data_log_dir = separate.then(|| "/logs".into());
    let options =
        OpenOptions { data_log_dir, segments: history, autocreate: true, ..OpenOptions::default() };
    let (mut log, found) = Log::open_on(disk.clone(), "/data", options)?;
    if support::found(found.durable.snapshot.0, found.installed.as_ref()) {
        support::kept().unwrap();
        log.memberships_kept()?;
    }
    Ok((log, found))
}

/// What may be found after a crash.
#[derive(Clone, Debug)]
struct Promise {
    /// At least these.
    epochs: Epochs,
    /// One of these histories, at least through its second part.
    histories: Vec<(Vec<i64>, i64)>,
}

const NOTHING: Epochs = Epochs { accepted_epoch: Epoch::ZERO, current_epoch: Epoch::ZERO };

impl Promise {
    fn nothing() -> Self {
        Self { epochs: NOTHING, histories: vec![(Vec::new(), 0)] }
    }

    /// Checks what was opened, and returns its transactions as a history of its own.
    fn check(&self, log: &mut Log<Forgetful>, found: &Found, context: &str) -> Vec<i64> {
        let durable = &found.durable;
        let (floor, last) = (durable.floor.0, durable.last_zxid.0);
        assert_eq!(log.epochs().accepted_epoch, durable.accepted_epoch);
        assert_eq!(log.epochs().current_epoch, durable.current_epoch);
        assert!(durable.accepted_epoch >= self.epochs.accepted_epoch, "{context}: {durable:?}");
        assert!(durable.current_epoch >= self.epochs.current_epoch, "{context}: {durable:?}");
        assert!(durable.current_epoch <= durable.accepted_epoch, "{context}: {durable:?}");
        assert!(durable.last_zxid.epoch() <= durable.accepted_epoch, "{context}: {durable:?}");
        assert!(floor <= durable.snapshot.0, "{context}: {durable:?}");
        let label = found.snapshot.as_ref().map_or(Zxid::ZERO, |snapshot| snapshot.label);
        assert_eq!(label, durable.snapshot);
        let mut reader = log.read(durable.floor, durable.last_zxid).unwrap();
        let mut read = Vec::new();
        while let Some(chunk) = reader.next_chunk(100).unwrap() {
            for found in chunk.txns() {
                assert_eq!(found, txn(found.zxid.0));
                read.push(found.zxid.0);
            }
        }
        let fits = |(zxids, through): &(Vec<i64>, i64)| {
            let expected: Vec<_> =
                zxids.iter().copied().filter(|zxid| *zxid > floor && *zxid <= last).collect();
            last >= *through && (last == 0 || zxids.contains(&last)) && expected == read
        };
        let fitting = self.histories.iter().find(|history| fits(history));
        let (zxids, _) = fitting.unwrap_or_else(|| {
            panic!("{context}: found {floor:x}..={last:x} {read:x?}, promised {self:x?}")
        });
        zxids.iter().copied().filter(|zxid| *zxid <= last).collect()
    }
}

/// A life, told as it happens.
struct Life {
    disk: Forgetful,
    log: Log<Forgetful>,
    zxids: Vec<i64>,
    promise: Promise,
}

impl Life {
    fn begin(disk: &Forgetful, separate: bool, promise: &Promise) -> Result<Self, Failure> {
        let (mut log, found) = open(disk, separate)?;
        let zxids = promise.check(&mut log, &found, "at open");
        let histories = vec![(zxids.clone(), found.durable.last_zxid.0)];
        let promise = Promise { epochs: log.epochs(), histories };
        Ok(Self { disk: disk.clone(), log, zxids, promise })
    }

    fn stage(&self, label: i64, received: bool) -> Result<StagedSnapshot<Forgetful>, Failure> {
        let (disk, dir) = (self.disk.clone(), &self.log.dirs().snapshots);
        let mut writer = match received {
            true => SnapshotWriter::receive(disk, dir, Zxid(label))?,
            false => SnapshotWriter::take(disk, dir, Zxid(label))?,
        };
        writer.write_all(b"state")?;
        Ok(writer.finish(Parts::default())?)
    }

    fn accept(&mut self, epoch: i64) -> Result<(), Failure> {
        self.log.write_accepted_epoch(Epoch(epoch))?;
        self.promise.epochs = self.log.epochs();
        Ok(())
    }

    fn enter(&mut self, epoch: i64) -> Result<(), Failure> {
        self.log.write_current_epoch(Epoch(epoch))?;
        self.promise.epochs = self.log.epochs();
        assert_eq!(self.promise.epochs.current_epoch, Epoch(epoch));
        Ok(())
    }

    fn append(&mut self, zxids: &[i64]) -> Result<(), Failure> {
        let txns: Vec<_> = zxids.iter().copied().map(txn).collect();
        let durable = self.log.durable().0;
        self.log.append(&txns)?;
        self.zxids.extend(zxids);
        self.promise.histories = vec![(self.zxids.clone(), durable)];
        let through = self.log.sync()?.through.0;
        self.promise.histories = vec![(self.zxids.clone(), through)];
        Ok(())
    }

    fn publish(&mut self, label: i64) -> Result<(), Failure> {
        let staged = self.stage(label, false)?;
        Ok(self.log.publish(staged)?)
    }

    fn truncate(&mut self, zxid: i64) -> Result<(), Failure> {
        self.promise.histories = vec![(self.zxids.clone(), zxid)];
        self.log.truncate(Zxid(zxid))?;
        self.zxids.retain(|have| *have <= zxid);
        self.promise.histories = vec![(self.zxids.clone(), zxid)];
        Ok(())
    }

    fn receive(&mut self, label: i64, behind: &[i64]) -> Result<(), Failure> {
        let staged = self.stage(label, true)?;
        let install = Install::new(staged, self.log.dirs(), self.log.txn_bytes_max());
        self.log.stage(install)?;
        for zxid in behind {
            self.log.append_staged(&[txn(*zxid)])?;
        }
        Ok(())
    }

    fn install(&mut self, label: i64, behind: &[i64]) -> Result<(), Failure> {
        let new = [&[label], behind].concat();
        let last = new[new.len() - 1];
        self.promise.histories.push((new.clone(), last));
        support::to_be_kept(label);
        self.log.install(Zxid(label), &support::memberships(), support::kept)?;
        self.promise.histories = vec![(new.clone(), last)];
        self.zxids = new;
        Ok(())
    }
}

/// A first start, elections, a cut, a snapshot from a leader, and what a leader broadcasts.
fn live_on(life: &mut Life) -> Result<(), Failure> {
    let first = life.stage(0, false)?;
    life.log.begin_with(first)?;
    life.accept(1)?;
    life.enter(1)?;
    life.append(&[E1 + 1, E1 + 2])?;
    life.append(&[E1 + 3])?;
    life.publish(E1 + 2)?;
    life.append(&[E1 + 4, E1 + 5])?;
    // Another leader, which lacks the last two.
    life.accept(2)?;
    life.truncate(E1 + 3)?;
    life.append(&[E2 + 1])?;
    life.enter(2)?;
    life.append(&[E2 + 2, E2 + 3])?;
    life.publish(E2 + 2)?;
    // The next one sends everything; first somebody who does not come to the end.
    life.accept(3)?;
    life.receive(E2 + 1, &[E2 + 2])?;
    life.log.discard_staged()?;
    life.receive(E3, &[E3 + 1, E3 + 2])?;
    life.install(E3, &[E3 + 1, E3 + 2])?;
    life.enter(3)?;
    for zxid in E3 + 3..E3 + 8 {
        life.append(&[zxid])?;
        life.publish(zxid)?;
    }
    while life.log.purge(3, 1)?.more {}
    life.accept(4)?;
    life.append(&[E4 + 1])?;
    life.enter(4)?;
    Ok(())
}

fn live(disk: &Forgetful, separate: bool, promise: &mut Promise) -> Result<(), Failure> {
    let mut life = Life::begin(disk, separate, promise)?;
    let result = live_on(&mut life);
    *promise = life.promise;
    if result.is_err() && disk.0.borrow().fail.is_some() {
        refuses_everything(&mut life.log);
    }
    result
}

/// Whatever failed, the epochs or the history: from then on neither is written.
fn refuses_everything(log: &mut Log<Forgetful>) {
    let last = log.last().0;
    let next = if last == 0 { E1 + 1 } else { last + 1 };
    // An error in a file of its own, a snapshot that was not published, does not concern the rest.
    if log.sync().is_ok() {
        return;
    }
    let Epochs { accepted_epoch, current_epoch } = log.epochs();
    let failed = |result: Result<(), LogError>| {
        assert!(matches!(result, Err(LogError::Failed { .. })), "{result:?}");
    };
    failed(log.write_accepted_epoch(Epoch(accepted_epoch.0 + 1)));
    failed(log.write_current_epoch(current_epoch));
    failed(log.append(&[txn(next)]));
    failed(log.truncate(Zxid(0)));
    failed(log.append_staged(&[txn(next)]));
    failed(log.install(Zxid(0), &support::memberships(), support::kept));
    failed(log.discard_staged());
    failed(log.purge(3, 1).map(drop));
    assert_eq!(log.epochs(), Epochs { accepted_epoch, current_epoch });
}

fn fates(state: &State) -> impl Iterator<Item = usize> + use<> {
    let count = state.fates();
    let step = (count / 40).max(1);
    (0..count).step_by(step).chain([count - 1])
}

/// What is left can be opened, says what was promised, and can be gone on with.
fn survives(left: State, separate: bool, promise: &Promise, context: &str) {
    let disk = Forgetful::new(left);
    let logs = separate.then_some("/logs".as_ref());
    let report = check_on(disk.clone(), "/data".as_ref(), logs, TXN_BYTES_MAX).unwrap();
    assert!(report.is_sound(), "{context}: {:?}", report.findings);
    let (mut log, found) =
        open(&disk, separate).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut zxids = promise.check(&mut log, &found, context);
    // A start reads no more than it must; the rest goes further back.
    assert_eq!(report.last, found.durable.last_zxid);
    assert!(report.floor <= found.durable.floor, "{context}");
    if found.snapshot.is_none() {
        let writer = SnapshotWriter::take(disk.clone(), &log.dirs().snapshots, Zxid::ZERO).unwrap();
        log.begin_with(writer.finish(Parts::default()).unwrap()).unwrap();
    }
    let epoch = Epoch(found.durable.accepted_epoch.0 + 1);
    log.write_accepted_epoch(epoch).unwrap();
    let next = Zxid::start_of(epoch).0 + 1;
    log.append(&[txn(next)]).unwrap();
    log.sync().unwrap();
    log.write_current_epoch(epoch).unwrap();
    let epochs = log.epochs();
    drop(log);
    zxids.push(next);
    let promise = Promise { epochs, histories: vec![(zxids, next)] };
    let (mut log, found) =
        open(&disk, separate).unwrap_or_else(|error| panic!("{context}: {error}"));
    promise.check(&mut log, &found, context);
}

#[test]
fn a_power_cut_at_any_step_leaves_epochs_and_history_that_fit() {
    for separate in [false, true] {
        let mut states = 0;
        for steps in 0.. {
            let disk = Forgetful::default();
            disk.0.borrow_mut().steps_left = steps;
            let mut promise = Promise::nothing();
            let result = live(&disk, separate, &mut promise);
            let state = disk.0.borrow().clone();
            for fate in fates(&state) {
                let Some(left) = state.crash(fate) else { continue };
                states += 1;
                survives(left, separate, &promise, &format!("step {steps}, fate {fate}"));
            }
            if result.is_ok() {
                assert!(steps > 150 && states > 1000, "{steps} steps, {states} states");
                break;
            }
        }
    }
}

#[test]
fn a_power_cut_while_opening_what_a_killed_process_left_loses_nothing() {
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut promise = Promise::nothing();
        let result = live(&disk, true, &mut promise);
        for more in 0.. {
            let disk = Forgetful::new(disk.0.borrow().clone());
            disk.0.borrow_mut().steps_left = more;
            let opened = open(&disk, true);
            let opened = opened.map(|(mut log, found)| {
                // What was reported is promised from here on.
                let zxids = promise.check(&mut log, &found, "killed");
                let histories = vec![(zxids, found.durable.last_zxid.0)];
                Promise { epochs: log.epochs(), histories }
            });
            let promise = opened.as_ref().unwrap_or(&promise);
            let state = disk.0.borrow().clone();
            for fate in fates(&state).step_by(5) {
                let Some(left) = state.crash(fate) else { continue };
                let context = format!("killed at {steps}, {more} more, fate {fate}");
                survives(left, true, promise, &context);
            }
            if opened.is_ok() {
                break;
            }
        }
        if result.is_ok() {
            break;
        }
    }
}

#[test]
fn a_disk_that_fails_once_is_never_written_to_again() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for step in 0.. {
            let disk = Forgetful::default();
            disk.0.borrow_mut().fail = Some((step, kind));
            let mut promise = Promise::nothing();
            if live(&disk, false, &mut promise).is_ok() {
                assert!(step > 150);
                break;
            }
            let state = disk.0.borrow().clone();
            let context = format!("failed at {step}");
            survives(State { fail: None, ..state.clone() }, false, &promise, &context);
            for fate in fates(&state).step_by(3) {
                let Some(left) = state.crash(fate) else { continue };
                survives(left, false, &promise, &format!("{context}, fate {fate}"));
            }
        }
    }
}

/// Every error says what was tried and on which file.
#[test]
fn a_disk_that_is_full_is_named_with_file_and_action() {
    let mut seen = std::collections::BTreeSet::new();
    for step in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().fail = Some((step, io::ErrorKind::StorageFull));
        let Err(error) = live(&disk, false, &mut Promise::nothing()) else { break };
        let text = error.to_string();
        if text == "no storage space" {
            // From the body of a snapshot, which its application writes.
            continue;
        }
        let (action, rest) = text.strip_prefix("cannot ").unwrap().split_once(" /").unwrap();
        assert!(rest.contains(": no storage space"), "{text}");
        seen.insert(action.to_owned());
    }
    for action in
        ["create", "write to", "sync", "make room in", "rename", "replace", "remove", "cut"]
    {
        assert!(seen.contains(action), "{action} is not in {seen:?}");
    }
}
