//! A data directory with files that hold anything: it is refused, or it is a history without a hole, the
//! same at every start, that can be read from its floor to its end and goes on.

// The disk of the log's own tests: in memory, it forgets what is not synced.
#[allow(clippy::unwrap_used, missing_docs, reason = "made for tests")]
#[path = "../../adapters/server/storage/tests/support/mod.rs"]
pub(crate) mod support;

use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_storage::check::check_on;
use quorate_storage::dump::Dump;
use quorate_storage::record::{FILE_HEADER, encode};
use quorate_storage::segments::SegmentOptions;
use quorate_storage::{Found, Log, LogError, OpenOptions};
use support::{Forgetful, State};

use crate::snapshot;

const DIR: &str = "/data/version-2";
/// The longest transaction.
const TXN_BYTES_MAX: usize = 128;

#[derive(Arbitrary, Debug)]
struct Directory {
    trusting: bool,
    before: Option<Small>,
    snapshots: Vec<Snapshot>,
    logs: Vec<LogFile>,
    accepted: Option<Number>,
    current: Option<Number>,
}

#[derive(Arbitrary, Debug)]
struct Snapshot {
    label: Small,
    bytes: Option<Vec<u8>>,
}

/// A file, of which a byte may be wrong and the end missing.
#[derive(Arbitrary, Debug)]
struct LogFile {
    first: Small,
    headless: bool,
    pieces: Vec<Piece>,
    wrong: Option<(u16, u8)>,
    end: Option<u16>,
}

#[derive(Arbitrary, Debug)]
enum Piece {
    Txns { first: Small, many: u8, body: u8 },
    Bytes(Vec<u8>),
    Zeros(u8),
}

/// Epochs as a file may tell them.
#[derive(Arbitrary, Debug)]
enum Number {
    Good(u8),
    Bytes(Vec<u8>),
}

/// Small numbers, so that they meet.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Small {
    Of { epoch: u8, counter: u8 },
    Any(i64),
}

impl Small {
    fn zxid(self) -> Zxid {
        match self {
            Self::Of { epoch, counter } => {
                Zxid::new(Epoch(i64::from(epoch % 4)), Counter(u32::from(counter % 16)))
            }
            Self::Any(zxid) => Zxid(zxid),
        }
    }
}

fn txn(zxid: Zxid, body: u8) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1, time: 0, kind: 5 };
    let body = vec![body; usize::from(body)];
    Txn { zxid, header, body: body.into() }
}

impl LogFile {
    fn bytes(&self) -> Vec<u8> {
        let mut out = if self.headless { Vec::new() } else { FILE_HEADER.to_vec() };
        for piece in self.pieces.iter().take(8) {
            match piece {
                Piece::Txns { first, many, body } => {
                    let first = first.zxid().0;
                    for zxid in first..=first.saturating_add(i64::from(many % 8)) {
                        encode(&txn(Zxid(zxid), *body), &mut out);
                    }
                }
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Zeros(many) => out.resize(out.len() + 4 * usize::from(*many), 0),
            }
        }
        if let Some((at, byte)) = self.wrong.filter(|_| !out.is_empty()) {
            let at = usize::from(at) % out.len();
            out[at] ^= byte;
        }
        if let Some(end) = self.end {
            out.truncate(usize::from(end));
        }
        out
    }
}

impl Number {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Good(epoch) => (epoch % 4).to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Directory {
    fn state(&self) -> State {
        let mut state = State::default();
        let at = |name: String| Path::new(DIR).join(name);
        for Snapshot { label, bytes } in self.snapshots.iter().take(4) {
            let bytes = bytes.clone().unwrap_or_else(|| snapshot::whole(b"", label.zxid()));
            state.put(at(format!("snapshot.{:x}", label.zxid().0)), &bytes);
        }
        for file in self.logs.iter().take(4) {
            state.put(at(format!("log.{:x}", file.first.zxid().0)), &file.bytes());
        }
        for (name, number) in [("acceptedEpoch", &self.accepted), ("currentEpoch", &self.current)] {
            if let Some(number) = number {
                state.put(at(name.to_owned()), &number.bytes());
            }
        }
        state
    }

    fn options(&self) -> OpenOptions {
        let history = SegmentOptions {
            preallocate: 0,
            txn_bytes_max: TXN_BYTES_MAX,
            window_count: 4,
            snapshot_before: self.before.map(Small::zxid),
            trust_empty_snapshot: self.trusting,
            ..SegmentOptions::default()
        };
        OpenOptions { segments: history, ..OpenOptions::default() }
    }
}

/// Opens the directory that these bytes describe.
pub fn feed(data: &[u8]) {
    let Ok(directory) = Directory::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let files = Forgetful::new(directory.state());
    look(&files);
    let open = || Log::open_on(files.clone(), "/data", directory.options());
    match open() {
        Err(error) => {
            assert_eq!(open().map_err(|again| again.to_string()).err(), Some(error.to_string()));
        }
        Ok((mut log, found)) => {
            let all = read(&mut log, &found);
            drop(log);
            // What was opened is durable, and opening has left nothing that is read otherwise.
            let left = files.0.borrow().crash(0).expect("the first of all outcomes");
            let left = Forgetful::new(left);
            for files in [&files, &left] {
                let (mut log, again) =
                    Log::open_on(files.clone(), "/data", directory.options()).expect("again");
                assert_eq!((&again, &read(&mut log, &again)), (&found, &all));
            }
            look(&files);
            if goes_on(&files, &directory, &found, all).is_err() {
                panic!("{found:?} does not go on");
            }
        }
    }
}

/// What an operator sees without starting a server.
fn look(files: &Forgetful) {
    if let Ok(report) = check_on(files.clone(), Path::new("/data"), None, TXN_BYTES_MAX) {
        for finding in &report.findings {
            assert!(!finding.to_string().is_empty());
        }
    }
    let paths: Vec<_> = files.0.borrow().names.keys().cloned().collect();
    for path in paths {
        let Ok(mut dump) = Dump::open_on(files.clone(), &path, TXN_BYTES_MAX) else { continue };
        // Each entry takes bytes, but for the one that says how the file ends.
        let mut most = 1 + files.0.borrow().content(&path).map_or(0, |file| file.written.len());
        while let Ok(Some(_)) = dump.next_entry() {
            most = most.checked_sub(1).expect("it goes on for ever");
        }
    }
}

/// Everything from the floor to the end.
fn read(log: &mut Log<Forgetful>, found: &Found) -> Vec<Txn> {
    let durable = &found.durable;
    if durable.last_zxid == Zxid::UNKNOWN {
        return Vec::new();
    }
    assert!(durable.floor <= durable.last_zxid && durable.snapshot <= durable.last_zxid);
    assert!(durable.current_epoch <= durable.accepted_epoch);
    let mut reader = log.read(durable.floor, durable.last_zxid).expect("it was opened");
    let (mut all, mut last) = (Vec::new(), durable.floor);
    while let Some(chunk) = reader.next_chunk(64).expect("it was opened") {
        for txn in chunk.txns() {
            assert!(txn.zxid.follows(last), "{} after {last}", txn.zxid);
            last = txn.zxid;
            all.push(txn);
        }
    }
    assert_eq!(last, durable.last_zxid);
    // The floor itself may be there as well, if it is the first transaction of an epoch.
    let window: Vec<Txn> =
        durable.window.iter().skip_while(|txn| txn.zxid == durable.floor).cloned().collect();
    assert!(all.ends_with(&window), "{window:?} is not the end of {all:?}");
    all
}

/// One more transaction, which is there after a crash with all the others.
fn goes_on(
    files: &Forgetful,
    directory: &Directory,
    found: &Found,
    mut all: Vec<Txn>,
) -> Result<(), LogError> {
    let next = found.durable.last_zxid.next();
    let within = next.filter(|next| next.epoch() <= found.durable.accepted_epoch);
    let (Some(next), Some(_)) = (within, &found.snapshot) else { return Ok(()) };
    let next = Txn { body: Bytes::from_static(b"more"), ..txn(next, 0) };
    let (mut log, _) = Log::open_on(files.clone(), "/data", directory.options())?;
    log.append(std::slice::from_ref(&next))?;
    log.sync()?;
    drop(log);
    let left = Forgetful::new(files.0.borrow().crash(0).expect("the first of all outcomes"));
    let (mut log, again) = Log::open_on(left, "/data", directory.options())?;
    all.push(next);
    let now = read(&mut log, &again);
    assert!(all.ends_with(&now) && !now.is_empty(), "{now:?} is left of {all:?}");
    Ok(())
}
