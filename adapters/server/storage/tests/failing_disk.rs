//! A disk that refuses one step and then works again: full, or broken for a moment. The server that it
//! belongs to writes nothing any more and says where it was refused; whoever opens the directory next
//! finds what was durable, and nothing half done.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support;
use std::io::{ErrorKind, Write};

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::install::Install;
use quorate_storage::segments::{Roll, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Found, Log, LogError, OpenOptions};

type Failure = Box<dyn std::error::Error>;

/// What `EIO` is here: it has no kind of its own.
const EIO: ErrorKind = ErrorKind::Other;
const ENOSPC: ErrorKind = ErrorKind::StorageFull;

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(b"body") }
}

fn options() -> OpenOptions {
    let roll = Roll { records: 4, bytes: 1 << 20 };
    let history = SegmentOptions { preallocate: 512, roll, ..SegmentOptions::default() };
    OpenOptions { segments: history, ..OpenOptions::default() }
}

fn open(disk: &Forgetful) -> (Log<Forgetful>, Found) {
    let (mut log, found) = Log::open_on(disk.clone(), "/data", options()).unwrap();
    if found.installed.is_some() {
        log.memberships_kept().unwrap();
    }
    (log, found)
}

/// A server's disk with 1.1 and 1.2 in its log, the promise of epoch 2, and what it is about to do.
struct Server {
    disk: Forgetful,
    log: Log<Forgetful>,
    staged: Option<StagedSnapshot<Forgetful>>,
}

impl Server {
    fn new() -> Self {
        let disk = Forgetful::default();
        let (mut log, _) = open(&disk);
        let first = SnapshotWriter::take(disk.clone(), &log.dirs().snapshots, Zxid::ZERO).unwrap();
        log.begin_with(first.finish(Parts::default()).unwrap()).unwrap();
        log.write_accepted_epoch(Epoch(1)).unwrap();
        log.write_current_epoch(Epoch(1)).unwrap();
        let mut server = Self { disk, log, staged: None };
        server.append(&[E1 + 1, E1 + 2]).unwrap();
        server.log.write_accepted_epoch(Epoch(2)).unwrap();
        server
    }

    fn append(&mut self, zxids: &[i64]) -> Result<(), Failure> {
        let txns: Vec<_> = zxids.iter().copied().map(txn).collect();
        self.log.append(&txns)?;
        self.log.sync()?;
        Ok(())
    }

    fn take(&mut self, label: i64) -> Result<(), Failure> {
        let dir = &self.log.dirs().snapshots;
        let mut writer = SnapshotWriter::take(self.disk.clone(), dir, Zxid(label))?;
        writer.write_all(b"state")?;
        self.staged = Some(writer.finish(Parts::default())?);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Failure> {
        Ok(self.log.publish(self.staged.take().unwrap())?)
    }

    fn receive(&mut self, label: i64) -> Result<(), Failure> {
        let dir = &self.log.dirs().snapshots;
        let mut writer = SnapshotWriter::receive(self.disk.clone(), dir, Zxid(label))?;
        writer.write_all(b"state")?;
        let staged = writer.finish(Parts::default())?;
        let install = Install::new(staged, self.log.dirs(), self.log.txn_bytes_max());
        Ok(self.log.stage(install)?)
    }

    /// From the next step on, the disk refuses the one with this number.
    fn refuse(&self, step: usize, kind: ErrorKind) {
        let mut state = self.disk.0.borrow_mut();
        state.fail = Some((state.steps + step, kind));
    }

    fn steps(&self) -> usize {
        self.disk.0.borrow().steps
    }
}

/// Something that a server does.
struct Deed {
    name: &'static str,
    /// What it has done before.
    before: fn(&mut Server) -> Result<(), Failure>,
    act: fn(&mut Server) -> Result<(), Failure>,
    /// Where the log may end afterwards, done or not.
    ends: &'static [i64],
    /// The epochs that may be on disk afterwards.
    epochs: &'static [(i64, i64)],
}

const NOTHING: fn(&mut Server) -> Result<(), Failure> = |_| Ok(());
const KEPT: &[(i64, i64)] = &[(2, 1)];

const DEEDS: [Deed; 8] = [
    Deed {
        name: "append",
        before: NOTHING,
        act: |server| server.append(&[E1 + 3]),
        ends: &[E1 + 2, E1 + 3],
        epochs: KEPT,
    },
    Deed {
        name: "the first record of a new file",
        before: |server| server.append(&[E1 + 3, E1 + 4]),
        act: |server| server.append(&[E1 + 5]),
        ends: &[E1 + 4, E1 + 5],
        epochs: KEPT,
    },
    Deed {
        name: "publish a snapshot",
        before: |server| server.take(E1 + 2),
        act: Server::publish,
        ends: &[E1 + 2],
        epochs: KEPT,
    },
    Deed {
        name: "acceptedEpoch",
        before: NOTHING,
        act: |server| Ok(server.log.write_accepted_epoch(Epoch(3))?),
        ends: &[E1 + 2],
        epochs: &[(2, 1), (3, 1)],
    },
    Deed {
        name: "currentEpoch",
        before: NOTHING,
        act: |server| Ok(server.log.write_current_epoch(Epoch(2))?),
        ends: &[E1 + 2],
        epochs: &[(2, 1), (2, 2)],
    },
    Deed {
        name: "cut",
        before: NOTHING,
        act: |server| Ok(server.log.truncate(Zxid(E1 + 1))?),
        ends: &[E1 + 1, E1 + 2],
        epochs: KEPT,
    },
    Deed {
        name: "cut in an earlier file",
        before: |server| {
            server.append(&[E1 + 3, E1 + 4])?;
            server.append(&[E1 + 5])
        },
        act: |server| Ok(server.log.truncate(Zxid(E1 + 3))?),
        // The newer file goes first.
        ends: &[E1 + 3, E1 + 4, E1 + 5],
        epochs: KEPT,
    },
    Deed {
        name: "install",
        before: |server| {
            server.receive(E2)?;
            Ok(server.log.append_staged(&[txn(E2 + 1)])?)
        },
        act: |server| Ok(server.log.install(Zxid(E2), &support::memberships(), support::kept)?),
        ends: &[E1 + 2, E2 + 1],
        epochs: KEPT,
    },
];

/// ZOOKEEPER-3701: a cut failed on a full disk, the error was swallowed, and the server went on with what
/// should have been given up. ZOOKEEPER-2247: a leader whose disk failed led on.
#[test]
fn b3_whatever_a_disk_refuses_is_named_and_nothing_is_written_after_it() {
    for (deed, kind) in DEEDS.iter().flat_map(|deed| [(deed, ENOSPC), (deed, EIO)]) {
        let mut step = 0;
        loop {
            let mut server = Server::new();
            (deed.before)(&mut server).unwrap();
            let (epochs, durable) = (server.log.epochs(), server.log.durable());
            server.refuse(step, kind);
            let context = format!("{}, step {step}, {kind}", deed.name);
            let Err(error) = (deed.act)(&mut server) else { break };
            let text = error.to_string();
            assert!(text.starts_with("cannot ") && text.contains(" /data/"), "{context}: {text}");
            assert!(text.ends_with(&format!(": {kind}")), "{context}: {text}");
            assert_eq!(server.log.epochs(), epochs, "{context}: memory changes after the file");
            assert!(server.log.durable() <= durable, "{context}: nothing more is durable");
            writes_nothing(&mut server, &context);
            let state = server.disk.0.borrow().clone();
            drop(server);
            opens(State { fail: None, ..state.clone() }, deed, &format!("{context}, killed"));
            for fate in 0..state.fates() {
                let Some(left) = state.crash(fate) else { continue };
                opens(left, deed, &format!("{context}, power cut {fate}"));
            }
            step += 1;
        }
        assert!(step > 1, "{} is {step} steps", deed.name);
    }
}

/// The disk would take it; the log does not even ask.
#[track_caller]
fn writes_nothing(server: &mut Server, context: &str) {
    let steps = server.steps();
    let refused = |result: Result<(), LogError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, LogError::Failed { .. }), "{context}: {error}");
        let text = "nothing is written to /data/version-2 after an earlier write failed";
        assert_eq!(error.to_string(), text, "{context}");
    };
    let log = &mut server.log;
    let next = log.last().0 + 1;
    assert!(log.sync().is_err(), "{context}");
    refused(log.append(&[txn(next)]));
    refused(log.write_accepted_epoch(Epoch(9)));
    refused(log.write_current_epoch(Epoch(2)));
    refused(log.truncate(Zxid(E1 + 1)));
    refused(log.install(Zxid(E2), &support::memberships(), support::kept));
    refused(log.purge(3, 1).map(drop));
    assert_eq!(server.steps(), steps, "{context}");
}

/// What is left is a state before or after the deed, and one can go on from it.
#[track_caller]
fn opens(left: State, deed: &Deed, context: &str) {
    let disk = Forgetful::new(left);
    let (mut log, found) = open(&disk);
    let (last, epochs) = (found.durable.last_zxid, log.epochs());
    assert!(deed.ends.contains(&last.0), "{context}: ends at {last}");
    let found = (epochs.accepted_epoch.0, epochs.current_epoch.0);
    assert!(deed.epochs.contains(&found), "{context}: {found:?}");
    let epoch = Epoch(epochs.accepted_epoch.0 + 1);
    log.write_accepted_epoch(epoch).unwrap();
    let next = Zxid::start_of(epoch).0 + 1;
    log.append(&[txn(next)]).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&disk).1.durable.last_zxid, Zxid(next), "{context}");
}

/// What a failed `fsync` left in the page cache is marked clean by many systems: the next one succeeds,
/// and nothing has been written.
#[test]
fn a_sync_that_failed_is_not_tried_again() {
    for kind in [ENOSPC, EIO] {
        let mut server = Server::new();
        server.log.append(&[txn(E1 + 3)]).unwrap();
        // The record is written, its mark, and then both are synced.
        server.refuse(2, kind);
        let text = server.log.sync().unwrap_err().to_string();
        assert!(text.starts_with("cannot sync /data/version-2/log.100000001: "), "{text}");
        let steps = server.steps();
        assert!(server.log.sync().is_err());
        assert_eq!(server.steps(), steps, "the disk is not asked again");
        assert_eq!(server.log.durable(), Zxid(E1 + 2), "and what it did not take does not count");
    }
}

/// A snapshot is written beside everything else: one that cannot be written costs nothing but itself.
#[test]
fn a_snapshot_that_cannot_be_written_leaves_the_log_as_it_is() {
    for (kind, received) in [(ENOSPC, false), (EIO, false), (ENOSPC, true), (EIO, true)] {
        let mut step = 0;
        loop {
            let mut server = Server::new();
            server.refuse(step, kind);
            let label = if received { E2 } else { E1 + 2 };
            let done = if received { server.receive(label) } else { server.take(label) };
            if done.is_ok() {
                break;
            }
            let text = done.unwrap_err().to_string();
            assert!(text.contains(&kind.to_string()), "{text}");
            server.append(&[E1 + 3]).unwrap();
            assert!(
                server.log.install(Zxid(label), &support::memberships(), support::kept).is_err(),
                "it is none"
            );
            let left = server.disk.0.borrow().clone();
            drop(server);
            let found = open(&Forgetful::new(State { fail: None, ..left })).1;
            let snapshot = found.snapshot.map(|snapshot| snapshot.label);
            assert_eq!(found.durable.last_zxid, Zxid(E1 + 3));
            assert_eq!(snapshot, Some(Zxid::ZERO), "nobody takes it for a snapshot");
            step += 1;
        }
        assert!(step > 1, "{step} steps");
    }
}

/// Opens the directory again as the process does that was told of the failure.
fn open_again(server: &Server) -> Result<(Log<Forgetful>, Found), LogError> {
    let options = OpenOptions { remains: Some(server.log.remains()), ..options() };
    Log::open_on(server.disk.clone(), "/data", options)
}

/// What PostgreSQL found in 2018 ("fsyncgate"): a sync fails, its pages are marked clean, and the next sync says that all is
/// well. What could be read was never on the disk.
#[test]
fn what_a_failed_sync_has_dropped_is_not_believed_by_who_opens_the_directory_again() {
    for deed in &DEEDS {
        let mut step = 0;
        loop {
            let mut server = Server::new();
            (deed.before)(&mut server).unwrap();
            server.disk.0.borrow_mut().drops = true;
            server.refuse(step, EIO);
            if (deed.act)(&mut server).is_ok() {
                break;
            }
            let context = format!("{}, step {step}", deed.name);
            server.disk.0.borrow_mut().fail = None;
            let (mut log, found) = open_again(&server).unwrap();
            log.memberships_kept().unwrap();
            log.try_out(4096).unwrap();
            let last = found.durable.last_zxid;
            assert!(deed.ends.contains(&last.0), "{context}: {last}");
            let next = Zxid(last.0 + 1);
            log.append(&[txn(next.0)]).unwrap();
            log.sync().unwrap();
            let epochs = log.epochs();
            // The power goes: of what was said to be durable everything is there.
            let left = Forgetful::new(server.disk.0.borrow().crash(0).unwrap());
            let (log, found) = open(&left);
            assert_eq!((found.durable.last_zxid, log.epochs()), (next, epochs), "{context}");
            step += 1;
        }
        assert!(step > 0, "{}: no step", deed.name);
    }
}

/// A file system that was unmounted, and another directory in its place: a server that went on there would have forgotten
/// its promises.
#[test]
fn a_directory_that_is_gone_is_not_made_anew_by_who_opens_it_again() {
    let server = Server::new();
    let whole = server.disk.0.borrow().clone();
    let remains = server.log.remains();
    server.disk.0.borrow_mut().names.clear();
    let gone = open_again(&server).unwrap_err();
    assert!(matches!(gone, LogError::Lost { .. } | LogError::File(_)), "{gone}");
    *server.disk.0.borrow_mut() = whole;
    let mut log = open(&server.disk).0;
    log.truncate(Zxid(E1 + 1)).unwrap();
    let options = OpenOptions { remains: Some(remains), ..options() };
    let lost = Log::open_on(server.disk, "/data", options).unwrap_err();
    assert!(lost.to_string().contains("was durable through 0x100000002"), "{lost}");
}

/// Also where its end cannot be written.
#[test]
fn a_snapshot_for_which_there_is_no_room_leaves_nothing_behind() {
    let names = |server: &Server| server.disk.0.borrow().names.keys().cloned().collect::<Vec<_>>();
    let mut step = 1;
    loop {
        let mut server = Server::new();
        let before = names(&server);
        server.refuse(step, ENOSPC);
        if server.take(E1 + 2).is_ok() {
            break;
        }
        assert_eq!(names(&server), before, "step {step}");
        server.append(&[E1 + 3]).unwrap();
        step += 1;
    }
    assert!(step > 1);
}
