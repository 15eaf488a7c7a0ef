//! Power cuts that leave any sectors of a batch and not others, and damage to what was acknowledged: the
//! first is cut off and never keeps a server from starting, the second is refused by name.
//!
//! ZooKeeper refuses to start over a record that lost its middle ("CRC check failed"), and ends the log
//! without a word at a sector of zero bytes in the middle of what was acknowledged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::rc::Rc;

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::rng::Rng;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::check::{Severity, check_on};
use quorate_storage::error::Corruption;
use quorate_storage::segments::{Dirs, OpenError, Opened, Roll, SegmentOptions, Segments};
use quorate_storage::{record, sync_mark};

const DIR: &str = "/data/version-2";
const LOG: &str = "/data/version-2/log.100000001";
const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;

fn txn(zxid: i64, bytes: usize) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    let fill = u8::try_from(zxid & 0x3f).unwrap() | 0x80;
    Txn { zxid: Zxid(zxid), header, body: Bytes::from(vec![fill; bytes]) }
}

fn options() -> SegmentOptions {
    SegmentOptions {
        preallocate: 0,
        txn_bytes_max: 16 << 10,
        trust_empty_snapshot: true,
        roll: Roll { records: u64::MAX, bytes: 300 << 10 },
        ..SegmentOptions::default()
    }
}

fn open(disk: &Forgetful) -> Result<(Segments<Forgetful>, Opened), OpenError> {
    Segments::open(disk.clone(), Dirs::one(DIR), options())
}

/// Appends batches of any size until the disk stops; returns the last transaction that was acknowledged.
fn write(disk: &Forgetful, rng: &mut Rng) -> i64 {
    let Ok((mut history, opened)) = open(disk) else { return 0 };
    let (mut next, mut acknowledged) = (E1 + 1, opened.last.0);
    loop {
        let most = [40, 600, 3000, 12_000][usize::try_from(rng.below(4)).unwrap()];
        for _ in 0..=rng.below(6) {
            let bytes = usize::try_from(rng.below(most)).unwrap();
            history.append(&[txn(next, bytes)]).unwrap();
            next += 1;
        }
        let done = match rng.below(20) {
            0 => history.roll().map(drop),
            1 => history.sync().and_then(|_| history.mark()),
            _ => history.sync().map(drop),
        };
        if done.is_err() {
            return acknowledged.max(history.durable().0);
        }
        acknowledged = history.durable().0;
    }
}

/// (On 953d248 it fails with the first seed: "the record is damaged".)
#[test]
fn after_a_power_cut_that_takes_any_sectors_a_log_opens_with_all_that_was_acknowledged() {
    let (mut cut, mut whole, mut nothing) = (0, 0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = usize::try_from(rng.below(400)).unwrap();
        let acknowledged = write(&disk, &mut rng);
        let state = disk.0.borrow().clone();
        for chance in [1, 2, 3, 4, 8] {
            let left = state.torn(|| rng.below(chance) == 0);
            let disk = Forgetful::new(left);
            let report = check_on(disk.clone(), Path::new("/data"), None, 16 << 10).unwrap();
            let errors = report.findings.iter().filter(|finding| {
                // There is no snapshot, which is not what this is about.
                finding.severity == Severity::Error && finding.path.ends_with("log.100000001")
            });
            assert_eq!(errors.count(), 0, "seed {seed}: {:?}", report.findings);
            let (mut history, opened) =
                open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(opened.last.0 >= acknowledged, "seed {seed}: {} lost", acknowledged);
            match opened.last.0 {
                0 => nothing += 1,
                last if last == acknowledged => cut += 1,
                _ => whole += 1,
            }
            // One can go on from it, and lose the power again.
            history.append(&[txn(E2 + 1, 100)]).unwrap();
            history.sync().unwrap();
            let again = disk.0.borrow().torn(|| rng.below(2) == 0);
            assert_eq!(open(&Forgetful::new(again)).unwrap().1.last.0, E2 + 1, "seed {seed}");
        }
    }
    assert!(cut > 200 && whole > 200 && nothing > 2, "{cut} {whole} {nothing}");
}

/// The process is killed in the middle of a batch and started, and the power goes while it starts.
#[test]
fn a_power_cut_while_opening_what_a_killed_process_left_takes_nothing_either() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = usize::try_from(rng.below(300)).unwrap();
        let acknowledged = write(&disk, &mut rng);
        disk.0.borrow_mut().steps_left = usize::try_from(rng.below(6)).unwrap();
        drop(open(&disk));
        let left = disk.0.borrow().torn(|| rng.below(3) == 0);
        let opened = open(&Forgetful::new(left));
        let opened = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}")).1;
        assert!(opened.last.0 >= acknowledged, "seed {seed}");
    }
}

/// Batches of three transactions, and where each of the batches ends.
fn written(batches: i64, marked: bool) -> (State, Vec<usize>) {
    let disk = Forgetful::default();
    let (mut history, _) = open(&disk).unwrap();
    let (mut ends, mut end) = (vec![16], 16);
    for first in (0..batches).map(|batch| E1 + 1 + 3 * batch) {
        for zxid in first..first + 3 {
            let txn = txn(zxid, 700);
            end += txn.len() + record::OVERHEAD;
            history.append(&[txn]).unwrap();
        }
        history.sync().unwrap();
        ends.push(end);
    }
    assert!(history.is_unmarked());
    if marked {
        history.mark().unwrap();
        assert!(!history.is_unmarked());
    }
    let state = disk.0.borrow().clone();
    (state, ends)
}

/// The same with some bytes of the log changed.
fn changed(state: &State, change: impl FnOnce(&mut Vec<u8>)) -> Forgetful {
    let mut state = state.clone();
    let file = state.names[Path::new(LOG)];
    change(Rc::make_mut(&mut state.contents[file].written));
    let written = Rc::clone(&state.contents[file].written);
    state.contents[file].synced = written;
    Forgetful::new(state)
}

#[track_caller]
fn refused(disk: &Forgetful, offset: usize) {
    let before = disk.0.borrow().content(LOG).unwrap().written.to_vec();
    let error = open(disk).map(|(_, opened)| opened.last).unwrap_err();
    let OpenError::Corrupt(Corruption::Record { path, offset: at, .. }) = &error else {
        panic!("{error}")
    };
    assert!(*path == Path::new(LOG) && *at <= offset as u64, "{error}");
    assert!(*disk.0.borrow().content(LOG).unwrap().written == before, "nothing is changed");
    let report = check_on(disk.clone(), Path::new("/data"), None, 16 << 10).unwrap();
    assert!(
        report.findings.iter().any(|finding| {
            finding.severity == Severity::Error && finding.path.ends_with("log.100000001")
        }),
        "{:?}",
        report.findings
    );
}

#[test]
fn what_is_damaged_before_the_last_sync_is_refused_by_name_whatever_it_looks_like() {
    for marked in [false, true] {
        let (state, ends) = written(4, marked);
        // Without one of its own, the last batch has no mark: see below.
        let synced = if marked { ends[4] } else { ends[3] };
        for place in (16..synced).step_by(7) {
            refused(&changed(&state, |bytes| bytes[place] ^= 0x10), place);
        }
        // A sector that was never written, or a page: a write that was lost though it was acknowledged.
        for (from, length) in (16..synced).step_by(97).flat_map(|from| [(from, 512), (from, 4096)])
        {
            refused(&changed(&state, |bytes| bytes[from..from + length].fill(0)), from);
        }
        // All the rest, as if nothing had ever been there.
        for from in (16..synced).step_by(131) {
            refused(&changed(&state, |bytes| bytes[from..ends[4]].fill(0)), from);
        }
    }
}

/// The width of one sync is what nobody can decide: a batch without a mark may have been acknowledged, or
/// torn in the middle of its sync. It is cut; the others that acknowledged it have it still.
#[test]
fn damage_to_the_last_batch_is_cut_until_its_mark_is_there() {
    let (state, ends) = written(4, false);
    for place in (ends[3]..ends[4]).step_by(5) {
        let disk = changed(&state, |bytes| bytes[place] ^= 0x10);
        let last = open(&disk).unwrap().1.last.0;
        let whole = E1 + 9 + i64::try_from((place - ends[3]) / ((ends[4] - ends[3]) / 3)).unwrap();
        assert_eq!(last, whole, "at {place}");
    }
}

#[test]
fn one_lost_mark_is_made_up_for_by_the_other_and_two_make_a_file_like_those_of_java() {
    let (state, ends) = written(4, false);
    let size = state.content(LOG).unwrap().written.len() as u64;
    let slots = sync_mark::slots(size).unwrap().map(|slot| usize::try_from(slot).unwrap());
    for slot in slots {
        let disk = changed(&state, |bytes| {
            bytes[slot..slot + 512].fill(0x5a);
            bytes[ends[3] + 20] ^= 1;
        });
        assert_eq!(open(&disk).unwrap().1.last.0, E1 + 9, "a torn batch");
        let disk = changed(&state, |bytes| {
            bytes[slot..slot + 512].fill(0x5a);
            bytes[ends[1] + 20] ^= 1;
        });
        refused(&disk, ends[1] + 20);
    }
    let disk = changed(&state, |bytes| {
        slots.iter().for_each(|slot| bytes[*slot..slot + 512].fill(0));
        bytes[ends[3] + 20] ^= 1;
    });
    refused(&disk, ends[3] + 20);
}

/// What ends with its records was durable when it was shortened: it has no mark, and is all refused.
#[test]
fn a_file_that_was_cut_rolled_or_opened_is_refused_over_any_damage() {
    type Deed = fn(&mut Segments<Forgetful>);
    let deeds: [(Deed, i64); 3] = [
        (|history| assert!(history.roll().unwrap().rolled), 12),
        (|history| history.truncate(Zxid(E1 + 8)).unwrap(), 8),
        (|_| {}, 12),
    ];
    for (deed, count) in deeds {
        let disk = Forgetful::default();
        let (mut history, _) = open(&disk).unwrap();
        for zxid in E1 + 1..=E1 + 12 {
            history.append(&[txn(zxid, 700)]).unwrap();
            history.sync().unwrap();
        }
        deed(&mut history);
        drop(history);
        assert_eq!(open(&disk).unwrap().1.last.0, E1 + count);
        let length = disk.0.borrow().content(LOG).unwrap().written.len();
        let record = txn(E1, 700).len() + record::OVERHEAD;
        assert_eq!(length, 16 + usize::try_from(count).unwrap() * record);
        let state = disk.0.borrow().clone();
        for place in (16..length).step_by(11) {
            refused(&changed(&state, |bytes| bytes[place] ^= 0x10), place);
        }
    }
}

/// What a Java server wrote behind a file of ours that it found after a power cut.
#[test]
fn a_torn_file_that_another_server_went_on_behind_is_read_as_far_as_it_goes() {
    let (state, ends) = written(4, false);
    let torn = |state: &State, next: i64| {
        let disk = changed(state, |bytes| bytes[ends[3] + 300..ends[3] + 900].fill(0));
        let mut bytes = record::FILE_HEADER.to_vec();
        record::encode(&txn(next, 10), &mut bytes);
        disk.0.borrow_mut().put(format!("{DIR}/log.{next:x}"), &bytes);
        open(&disk).map(|(_, opened)| (opened.floor.0, opened.last.0))
    };
    assert_eq!(torn(&state, E1 + 10).unwrap(), (0, E1 + 10), "it goes on");
    assert_eq!(torn(&state, E2 + 1).unwrap(), (E2 + 1, E2 + 1), "something may be missing");
    assert!(matches!(torn(&state, E1 + 13), Err(OpenError::Corrupt(Corruption::Hole { .. }))));
    // In the middle of what was synced it is another matter.
    let (state, _) = written(4, true);
    let error = torn(&state, E2 + 1).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt(Corruption::Record { .. })), "{error}");
}
