//! The audit at the end of a demo: whether the servers' disks hold all that was acknowledged to the clients.
//!
//! ```text
//!   server 1   0x100000001  0x100000002  0x200000001 …     each zxid with what was written
//!   server 2   0x100000001  0x100000002  0x200000001 …     the same, or they have diverged
//!   clients    0: 0x100000001   1: 0x200000001             each on every disk, or it is lost
//! ```
//!
//! The logs are read with the readers of `quorate-storage`, record by record, through the last acknowledged
//! transaction: all servers have said that they applied it. Nothing is purged in a demo, so they are
//! complete; where one begins later all the same, because its server was brought up with a snapshot,
//! that snapshot's sum must be the one that the others' logs give. So must every snapshot's. When all have
//! been brought up in that way, of what is before all logs only the number can be compared.
//!
//! What it does not do: look at anything that a server tells.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use quorate_storage::Disk;
use quorate_storage::check::{Severity, check};
use quorate_storage::dump::{Dump, DumpError, Entry};
use quorate_storage::error::FileError;
use quorate_storage::record::TXN_BYTES_MAX;
use quorate_storage::snapshot::{SnapshotError, SnapshotReader};
use quorate_tokio::core::txn::Txn;
use quorate_tokio::core::zxid::Zxid;
use quorate_tokio::{Application as _, Restore as _, RestoreError};
use quorate_znode::kind;
use thiserror::Error;

use super::ledger::{self, Application, Sum};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Acknowledged writes that are not on every server's disk as what they were acknowledged.
    pub(super) lost: usize,
    /// Writes that were carried out more than once.
    pub(super) duplicated: usize,
    /// Servers whose histories are not the others'.
    pub(super) diverged: usize,
    /// In words, the first few.
    pub(super) details: Vec<String>,
}

impl Verdict {
    /// Whether all is well.
    pub(super) fn is_clean(&self) -> bool {
        (self.lost, self.duplicated, self.diverged) == (0, 0, 0)
    }

    fn say(&mut self, detail: String) {
        if self.details.len() < DETAILS_MAX {
            self.details.push(detail);
        }
    }
}

/// A record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    zxid: i64,
    /// Of everything in it.
    hash: u64,
    /// Of the write, if it is one.
    number: Option<u64>,
    /// After it.
    sum: Sum,
}

/// What a server has on disk.
#[derive(Debug)]
struct History {
    server: i64,
    marks: Vec<Mark>,
    /// Each snapshot's label and state.
    snapshots: Vec<(i64, Sum)>,
}

impl History {
    /// The state from which a log goes on that begins with this transaction: the latest snapshot before it, the
    /// first state if there is none.
    fn before(&self, first: i64) -> (i64, Sum) {
        let before = self.snapshots.iter().filter(|(label, _)| *label < first);
        before.max_by_key(|(label, _)| *label).copied().unwrap_or_default()
    }

    /// The state from which its log goes on.
    fn base(&self) -> (i64, Sum) {
        self.before(self.marks.first().map_or(i64::MAX, |mark| mark.zxid))
    }
}

/// Why a server's disk cannot be compared.
#[derive(Debug, Error)]
#[error("server {server}: {source}")]
pub(super) struct AuditError {
    server: i64,
    source: DiskError,
}

#[derive(Debug, Error)]
enum DiskError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Log(#[from] DumpError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("{}: {error}", path.display())]
    State { path: PathBuf, error: RestoreError },
}

/// Compares all servers' disks with each other and with what was acknowledged.
pub(super) fn audit(
    servers: &[(i64, PathBuf)],
    acknowledged: &[(u64, i64)],
) -> Result<Verdict, AuditError> {
    let mut verdict = Verdict::default();
    let through = acknowledged.iter().map(|(_, zxid)| *zxid).max().unwrap_or_default();
    let mut histories = Vec::new();
    for (server, dir) in servers {
        let history = read(*server, dir, through, &mut verdict);
        histories.push(history.map_err(|source| AuditError { server: *server, source })?);
    }
    judge(&histories, acknowledged, &mut verdict);
    Ok(verdict)
}

/// Restores a state from a file.
fn state(label: Zxid, from: &mut impl BufRead) -> Result<Sum, RestoreError> {
    let mut restore = Application::restore(label);
    loop {
        let mut bytes = from.fill_buf()?;
        let length = bytes.len();
        let whole = restore.push(&mut bytes)?;
        let taken = length - bytes.len();
        from.consume(taken);
        match whole {
            Some(sum) => return Ok(sum),
            None if taken == 0 => return Err("it ends within the state".into()),
            None => {}
        }
    }
}

/// Reads a server's disk through a transaction.
fn read(
    server: i64,
    dir: &Path,
    through: i64,
    verdict: &mut Verdict,
) -> Result<History, DiskError> {
    let report = check(dir, None)?;
    for finding in report.findings.iter().filter(|found| found.severity == Severity::Error) {
        verdict.say(format!("server {server}: {finding}"));
    }
    let mut snapshots = Vec::new();
    for line in report.snapshots.iter().filter(|line| line.content.is_some()) {
        let file = &line.file;
        let mut reader = SnapshotReader::open(Disk, file)?;
        let state = state(file.label, &mut reader);
        let state = state.map_err(|error| DiskError::State { path: file.path.clone(), error })?;
        if file.label.0 <= through {
            snapshots.push((file.label.0, state));
        }
    }
    let mut history = History { server, marks: Vec::new(), snapshots };
    let mut sum = None;
    for line in &report.logs {
        let entries = Dump::open(&line.path, TXN_BYTES_MAX)?;
        for entry in entries {
            let Entry::Record { txn, .. } = entry? else {
                // What is damaged is not there.
                continue;
            };
            if txn.zxid.0 > through {
                continue;
            }
            let sum = sum.get_or_insert_with(|| history.before(txn.zxid.0).1);
            let command = command(&txn);
            if let Some(command) = command {
                sum.add(txn.zxid, command);
            }
            let number = command.and_then(ledger::number);
            history.marks.push(Mark { zxid: txn.zxid.0, hash: hash(&txn), number, sum: *sum });
        }
    }
    Ok(history)
}

fn judge(histories: &[History], acknowledged: &[(u64, i64)], verdict: &mut Verdict) {
    let Some(reference) = reference(histories) else {
        verdict.lost = acknowledged.len();
        if verdict.lost > 0 {
            verdict.say("no server has a log".to_owned());
        }
        return;
    };
    // All servers may have been brought up with a snapshot, one after the other. What is before all logs has only
    // the number of writes in that state to vouch for it: writes of unknown outcome that took effect are in it, too,
    // and could hide as many that are lost.
    let (base, state) = reference.base();
    let before = acknowledged.iter().filter(|(_, zxid)| *zxid <= base).count();
    let missing = before.saturating_sub(usize::try_from(state.writes).unwrap_or(usize::MAX));
    if missing > 0 {
        let (label, writes) = (Zxid(base), state.writes);
        verdict.say(format!(
            "{before} writes were acknowledged by {label}, {writes} are in its state"
        ));
    }
    let mut lost = BTreeSet::new();
    for history in histories {
        let diverged = divergence(history, reference);
        if let Some(what) = &diverged {
            verdict.diverged += 1;
            verdict.say(format!("server {}: {what}", history.server));
        }
        if diverged.is_none() && !std::ptr::eq(history, reference) {
            // It has what the reference has.
            continue;
        }
        for (number, zxid) in acknowledged.iter().filter(|(_, zxid)| *zxid > base) {
            let there = at(&history.marks, *zxid).is_some_and(|mark| mark.number == Some(*number));
            if !there && lost.insert(*number) {
                let zxid = Zxid(*zxid);
                let server = history.server;
                verdict.say(format!(
                    "server {server}: write {number}, acknowledged as {zxid}, is lost"
                ));
            }
        }
    }
    verdict.lost = lost.len() + missing;
    for history in histories {
        let mut numbers: Vec<_> = history.marks.iter().filter_map(|mark| mark.number).collect();
        numbers.sort_unstable();
        let mut again: Vec<_> =
            numbers.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        again.dedup();
        if again.len() > verdict.duplicated {
            verdict.duplicated = again.len();
            let server = history.server;
            verdict.say(format!("server {server}: carried out more than once: {again:?}"));
        }
    }
}

/// The history that most servers with a complete log have.
fn reference(histories: &[History]) -> Option<&History> {
    let begin =
        histories.iter().filter_map(|history| history.marks.first()).min_by_key(|m| m.zxid)?;
    let whole = || {
        histories.iter().filter(|history| history.marks.first().map(|m| m.zxid) == Some(begin.zxid))
    };
    let votes = |one: &History| whole().filter(|other| other.marks == one.marks).count();
    // The first of those with the most: `max_by_key` takes the last.
    whole().rev().max_by_key(|history| votes(history))
}

/// How a history differs from the reference, if it does.
fn divergence(history: &History, reference: &History) -> Option<String> {
    let Some(first) = history.marks.first() else {
        let missing = reference.marks.len();
        return (missing > 0).then(|| format!("its log is empty, others have {missing} records"));
    };
    let begin = reference.marks.partition_point(|mark| mark.zxid < first.zxid);
    let same = |ours: &Mark, theirs: &Mark| (ours.zxid, ours.hash) == (theirs.zxid, theirs.hash);
    let rest = &reference.marks[begin..];
    let differ = history.marks.iter().zip(rest).position(|(ours, theirs)| !same(ours, theirs));
    let shorter = history.marks.len().min(rest.len());
    if let Some(at) = differ.or((history.marks.len() != rest.len()).then_some(shorter)) {
        let zxid = |mark: Option<&Mark>| {
            mark.map_or("nothing".to_owned(), |mark| Zxid(mark.zxid).to_string())
        };
        let (ours, theirs) = (zxid(history.marks.get(at)), zxid(rest.get(at)));
        return Some(format!("its log has {ours} where the others' have {theirs}"));
    }
    // A snapshot that is older than all logs cannot be checked.
    let (base, state) = reference.base();
    let differs = |label: i64, is: Sum| {
        let after = reference.marks.partition_point(|mark| mark.zxid <= label);
        let expected = after.checked_sub(1).map_or(state, |last| reference.marks[last].sum);
        label >= base && is != expected
    };
    if let Some((label, _)) =
        history.snapshots.iter().find(|(label, state)| differs(*label, *state))
    {
        return Some(format!("its snapshot of {} is not what the log gives", Zxid(*label)));
    }
    // What the log has not, a snapshot must vouch for.
    let before = begin.checked_sub(1).map(|last| reference.marks[last].zxid);
    match before {
        Some(zxid) if !history.snapshots.iter().any(|(label, _)| *label >= zxid) => Some(format!(
            "its log begins with {}, and no snapshot has what is before",
            Zxid(first.zxid)
        )),
        _ => None,
    }
}

fn at(marks: &[Mark], zxid: i64) -> Option<&Mark> {
    marks.binary_search_by_key(&zxid, |mark| mark.zxid).ok().map(|at| &marks[at])
}

fn hash(txn: &Txn) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&txn.head());
    hasher.write(&txn.body);
    hasher.finish()
}

/// The command in a transaction: it travels as the data of a `setData`.
fn command(txn: &Txn) -> Option<&[u8]> {
    if txn.header.kind != kind::SET_DATA {
        return None;
    }
    let counted = |bytes: &'_ [u8]| -> Option<usize> {
        usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()
    };
    let rest = txn.body.get(4 + counted(&txn.body)?..)?;
    rest.get(4..)?.get(..counted(rest)?)
}

/// How many findings are told in words.
const DETAILS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that holds these writes under zxids 1, 2, …
    fn history(server: i64, numbers: &[u64]) -> History {
        let mut sum = Sum::default();
        let marks = numbers.iter().zip(1..).map(|(number, zxid)| {
            sum.add(Zxid(zxid), &ledger::command(*number, 8));
            Mark { zxid, hash: *number, number: Some(*number), sum }
        });
        History { server, marks: marks.collect(), snapshots: vec![(0, Sum::default())] }
    }

    fn judged(histories: &[History], acknowledged: &[(u64, i64)]) -> (usize, usize, usize) {
        let mut verdict = Verdict::default();
        judge(histories, acknowledged, &mut verdict);
        assert_eq!(verdict.is_clean(), verdict.details.is_empty(), "{verdict:?}");
        (verdict.lost, verdict.duplicated, verdict.diverged)
    }

    #[test]
    fn equal_histories_with_everything_are_clean() {
        let histories = [1, 2, 3].map(|server| history(server, &[10, 11, 12]));
        assert_eq!(judged(&histories, &[(10, 1), (12, 3)]), (0, 0, 0));
    }

    #[test]
    fn what_no_server_has_is_lost() {
        let histories = [1, 2, 3].map(|server| history(server, &[10, 11, 12]));
        assert_eq!(judged(&histories, &[(10, 1), (13, 4)]), (1, 0, 0));
        assert_eq!(judged(&histories, &[(10, 2)]), (1, 0, 0), "as another transaction");
        assert_eq!(judged(&[], &[(10, 1)]).0, 1);
    }

    #[test]
    fn what_one_server_has_not_is_lost_and_it_has_diverged() {
        for missing in 0..3 {
            let mut histories = [1, 2, 3].map(|server| history(server, &[10, 11, 12]));
            histories[1].marks.remove(missing);
            let acknowledged = [(10, 1), (11, 2), (12, 3)];
            assert_eq!(judged(&histories, &acknowledged), (1, 0, 1), "{missing}");
        }
        let mut histories = [1, 2, 3].map(|server| history(server, &[10, 11, 12]));
        histories[2].marks.clear();
        assert_eq!(judged(&histories, &[(10, 1)]), (1, 0, 1));
    }

    #[test]
    fn another_write_under_the_same_zxid_is_a_divergence() {
        let histories = [history(1, &[10, 11]), history(2, &[10, 12]), history(3, &[10, 11])];
        assert_eq!(judged(&histories, &[(10, 1)]), (0, 0, 1));
        assert_eq!(judged(&histories, &[(11, 2)]), (1, 0, 1), "one of them does not have it");
    }

    #[test]
    fn what_is_before_all_logs_is_counted_in_the_snapshots() {
        let late = |server| {
            let mut late = history(server, &[10, 11, 12, 13]);
            late.snapshots = vec![(2, late.marks[1].sum)];
            late.marks.drain(..2);
            late
        };
        let acknowledged = [(10, 1), (11, 2), (12, 3), (13, 4)];
        assert_eq!(judged(&[late(1), late(2)], &acknowledged), (0, 0, 0));
        assert_eq!(judged(&[late(1), late(2)], &[(10, 1), (11, 2), (14, 2)]), (1, 0, 0));
        assert_eq!(judged(&[late(1), late(2)], &[(15, 5)]), (1, 0, 0));
        let mut other = late(2);
        other.snapshots[0].1 = Sum::default();
        assert_eq!(judged(&[late(1), other], &acknowledged), (0, 0, 1));
    }

    #[test]
    fn a_write_carried_out_twice_is_found() {
        let histories = [1, 2, 3].map(|server| history(server, &[10, 11, 10]));
        assert_eq!(judged(&histories, &[(11, 2)]), (0, 1, 0));
    }

    #[test]
    fn a_snapshot_vouches_for_what_a_log_has_not() {
        let whole = || history(1, &[10, 11, 12, 13]);
        let vouched = || {
            let mut late = whole();
            late.snapshots = vec![(2, late.marks[1].sum)];
            late.marks.drain(..2);
            late
        };
        let acknowledged = [(12, 3), (13, 4)];
        assert_eq!(judged(&[whole(), vouched()], &acknowledged), (0, 0, 0));
        let mut wrong = vouched();
        wrong.snapshots[0].1 = Sum::default();
        assert_eq!(judged(&[whole(), wrong], &acknowledged), (0, 0, 1), "another state");
        let mut early = vouched();
        early.snapshots = vec![(0, Sum::default())];
        assert_eq!(judged(&[whole(), early], &acknowledged), (0, 0, 1), "a hole");
    }

    #[test]
    fn a_state_that_is_not_what_the_log_gives_is_a_divergence() {
        let mut histories = [1, 2, 3].map(|server| history(server, &[10, 11, 12]));
        histories[0].snapshots.push((2, Sum::default()));
        assert_eq!(judged(&histories, &[(10, 1)]), (0, 0, 1));
    }
}
