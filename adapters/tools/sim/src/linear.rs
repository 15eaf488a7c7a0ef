//! Whether one order explains what clients saw of some cells; and of nodes, see [`sessions`].
//!
//! ```text
//!   write 1 ├──────┤              ├──┤ read 1
//!   write 2     ├─────────?                      (its client was never told)
//!   read 2            ├──┤                  the order would be 2, 1: it does not exist if this read
//!                                           had ended before write 1 began
//! ```
//!
//! Linearizability (Herlihy, Wing: *Linearizability: a correctness condition for concurrent objects*,
//! 1990) is a property of each cell by itself. Where no two writes write the same, it need not be searched
//! for: all that happened to one value, its write and the reads that saw it, lies together in any order.
//! Such a cluster has a zone, from the first end of any of its operations to the last beginning. If the
//! end comes first the value was surely there all the time between (a forward zone), else it was there at
//! some moment between (a backward zone). There is an order if no two forward zones overlap and no
//! backward zone lies inside a forward one (Gibbons, Korach: *Testing shared memories*, 1997). The tests
//! compare that with a search for the order itself.

pub(crate) mod nodes;
pub(crate) mod sessions;

use std::collections::BTreeMap;
use std::fmt::Debug;

use thiserror::Error;

/// What no order explains.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unexplained(String);

fn unexplained<T>(detail: String) -> Result<T, Unexplained> {
    Err(Unexplained(detail))
}

/// An operation on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation<V> {
    cell: u8,
    write: bool,
    /// What was written or read; none is what was there at first.
    value: Option<V>,
    called: u64,
    /// When its client was told; none if it never was.
    returned: Option<u64>,
    /// It surely did not happen, or what was read is unknown.
    void: bool,
}

/// Everything that clients did to some cells, in the order in which it began: whether one order explains it
/// (linearizability), says [`check`](Self::check). No two writes of a cell may write the same.
///
/// The example `quorum_reads` has one of a few lines, and the one of each [`World`](crate::World) is kept there.
#[derive(Clone, Debug)]
pub struct History<V> {
    operations: Vec<Operation<V>>,
    now: u64,
}

impl<V> Default for History<V> {
    fn default() -> Self {
        Self { operations: Vec::new(), now: 0 }
    }
}

/// Everything that happened to one value.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    written: u64,
    first_end: u64,
    last_begin: u64,
}

impl<V: Copy + Ord + Debug> History<V> {
    /// An operation on a cell begins: a write of this value, or a read if there is none; returns its number.
    pub fn call(&mut self, cell: u8, write: Option<V>) -> usize {
        self.now += 1;
        self.operations.push(Operation {
            cell,
            write: write.is_some(),
            value: write,
            called: self.now,
            returned: None,
            void: false,
        });
        self.operations.len() - 1
    }

    /// The write of this number has happened, and its client is told. Without a number, and with one that [`Self::call`]
    /// has not returned, nothing is noted.
    pub fn wrote(&mut self, operation: Option<usize>) {
        self.now += 1;
        if let Some(operation) = operation.and_then(|at| self.operations.get_mut(at)) {
            operation.returned = Some(self.now);
        }
    }

    /// The client of the read of this number is told what it has read; none is what was there before any write.
    pub fn read(&mut self, operation: usize, value: Option<V>) {
        self.now += 1;
        if let Some(operation) = self.operations.get_mut(operation) {
            (operation.value, operation.returned) = (value, Some(self.now));
        }
    }

    /// The operation of this number surely never happens.
    pub fn forget(&mut self, operation: Option<usize>) {
        if let Some(operation) = operation.and_then(|at| self.operations.get_mut(at)) {
            operation.void = true;
        }
    }

    /// How many operations one order explains: those of which a client was told. A write of which none was told may have
    /// happened at any time since it began, or never.
    ///
    /// # Errors
    ///
    /// [`Unexplained`] if no order does: what two values, or a value that was never written, stand in its way.
    pub fn check(&self) -> Result<usize, Unexplained> {
        let mut cells: BTreeMap<u8, BTreeMap<Option<V>, Cluster>> = BTreeMap::new();
        let known = || self.operations.iter().filter(|operation| !operation.void);
        for write in known().filter(|operation| operation.write) {
            let first_end = write.returned.unwrap_or(u64::MAX);
            let (written, last_begin) = (write.called, write.called);
            let values = cells.entry(write.cell).or_default();
            values.insert(write.value, Cluster { written, first_end, last_begin });
        }
        for read in known().filter(|operation| !operation.write) {
            let Some(returned) = read.returned else { continue };
            let values = cells.entry(read.cell).or_default();
            // What was there at first has been written before anything.
            let first = Cluster { written: 0, first_end: 0, last_begin: 0 };
            let cluster = match read.value {
                None => values.entry(None).or_insert(first),
                Some(value) => values.get_mut(&Some(value)).ok_or_else(|| {
                    let what = format!("cell {}: {value:?} was read and never written", read.cell);
                    Unexplained(what)
                })?,
            };
            if returned < cluster.written {
                let value = read.value;
                return unexplained(format!(
                    "cell {}: {value:?} was read before its write",
                    read.cell
                ));
            }
            cluster.first_end = cluster.first_end.min(returned);
            cluster.last_begin = cluster.last_begin.max(read.called);
        }
        for (cell, values) in &cells {
            Self::check_zones(*cell, values)?;
        }
        Ok(known().filter(|operation| operation.returned.is_some()).count())
    }

    fn check_zones(cell: u8, values: &BTreeMap<Option<V>, Cluster>) -> Result<(), Unexplained> {
        let zones = || values.iter().map(|(value, zone)| (zone.first_end, zone.last_begin, value));
        let mut forward: Vec<_> = zones().filter(|(end, begin, _)| end < begin).collect();
        forward.sort_unstable();
        for pair in forward.windows(2) {
            if pair[1].0 < pair[0].1 {
                let detail =
                    format!("cell {cell}: {:?} and {:?} were there at once", pair[0], pair[1]);
                return unexplained(detail);
            }
        }
        for (end, begin, value) in zones().filter(|(end, begin, _)| end >= begin) {
            let before = forward.partition_point(|(from, _, _)| *from < begin);
            let around = before.checked_sub(1).map(|at| forward[at]);
            if let Some(around) = around.filter(|(_, to, _)| end < *to) {
                return unexplained(format!(
                    "cell {cell}: {value:?} came while {around:?} was there"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use quorate_core::rng::Rng;

    use super::*;

    /// Looks for an order (Wing, Gong: *Testing and verifying concurrent objects*, 1993), one operation
    /// after the other; what was tried is remembered (Lowe, 2017).
    fn has_order(operations: &[Operation<u32>]) -> bool {
        fn goes_on(
            operations: &[Operation<u32>],
            done: u32,
            value: Option<u32>,
            tried: &mut BTreeSet<(u32, Option<u32>)>,
        ) -> bool {
            let left = || (0..operations.len()).filter(move |at| done >> at & 1 == 0);
            if left().all(|at| operations[at].returned.is_none()) {
                return true;
            }
            if !tried.insert((done, value)) {
                return false;
            }
            // The next is one that began before any other that is left had ended.
            let end = left().filter_map(|at| operations[at].returned).min().unwrap_or(u64::MAX);
            left().filter(|at| operations[*at].called < end).any(|at| {
                let operation = &operations[at];
                (operation.write || operation.value == value)
                    && goes_on(operations, done | 1 << at, operation.value, tried)
            })
        }
        goes_on(operations, 0, None, &mut BTreeSet::new())
    }

    /// Up to nine operations of three clients on one cell that mostly, but not always, do what they say.
    fn made_up(rng: &mut Rng) -> History<u32> {
        let (mut history, mut value, mut written) = (History::default(), None, 0);
        let mut under_way: Vec<(usize, Option<u32>, bool)> = Vec::new();
        for _ in 0..rng.below(20) + 4 {
            if under_way.len() < 3 && history.operations.len() < 9 && rng.below(2) == 0 {
                let write = rng.below(2) == 0;
                written += u32::from(write);
                under_way.push((history.call(0, write.then_some(written)), None, write));
            } else if let Some(at) =
                usize::try_from(rng.below(4)).ok().filter(|at| *at < under_way.len())
            {
                let (number, _, write) = under_way.swap_remove(at);
                let wrong = rng.below(6) == 0;
                if write {
                    if !wrong {
                        value = history.operations[number].value;
                    }
                    if rng.below(4) > 0 {
                        history.wrote(Some(number));
                    }
                } else {
                    let other =
                        u32::try_from(rng.below(5)).ok().filter(|n| (1..=written).contains(n));
                    history.read(number, if wrong { other } else { value });
                }
            }
        }
        history
    }

    #[test]
    fn zones_and_a_search_for_the_order_say_the_same() {
        let (mut rng, mut verdicts) = (Rng::new(7), [0, 0]);
        for _ in 0..60_000 {
            let history = made_up(&mut rng);
            // A read that has not returned has nothing to say.
            let said = |o: &Operation<u32>| o.write || o.returned.is_some();
            let told: Vec<_> = history.operations.iter().copied().filter(said).collect();
            let expected = has_order(&told);
            assert_eq!(history.check().is_ok(), expected, "{told:#?}\n{:?}", history.check());
            verdicts[usize::from(expected)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 3_000), "both occur: {verdicts:?}");
    }

    #[test]
    fn a_write_of_which_nobody_was_told_may_have_happened_or_not() {
        let mut history = History::default();
        let write = history.call(1, Some(1));
        history.wrote(Some(write));
        history.call(1, Some(2));
        for seen in [1, 2] {
            let read = history.call(1, None);
            history.read(read, Some(seen));
        }
        assert_eq!(history.check(), Ok(3), "before it, then after it");
        let read = history.call(1, None);
        history.read(read, Some(1));
        assert!(history.check().is_err(), "not before it again");
    }

    /// Why a leader is needed: a cell on three servers, each write and each read at any two of them, the newest
    /// of what is read counts. A write reaches server 1 and gets no further; one reader asks 1 and 2, a later one
    /// 2 and 3. In other schedules of the same operations there is an order; that is no comfort.
    #[test]
    fn reads_and_writes_through_plain_quorums_have_no_order() {
        let (mut explained, mut not) = (0, 0);
        for reached in 0..8_u32 {
            for (first, second) in [([1, 2], [2, 3]), ([2, 3], [1, 2]), ([1, 2], [1, 3])] {
                let mut history = History::default();
                let mut servers = [0; 4];
                let write = history.call(1, Some(1));
                servers[1..].fill(1);
                history.wrote(Some(write));
                // x = 2 is on its way, and the writer stalls.
                history.call(1, Some(2));
                for (server, value) in servers.iter_mut().enumerate().skip(1) {
                    if reached >> (server - 1) & 1 == 1 {
                        *value = 2;
                    }
                }
                for pair in [first, second] {
                    let read = history.call(1, None);
                    history.read(read, pair.map(|server| servers[server]).into_iter().max());
                }
                let told = (reached, first, second);
                if told == (0b001, [1, 2], [2, 3]) {
                    assert!(history.check().is_err(), "2 is read, and then 1");
                }
                *(if history.check().is_ok() { &mut explained } else { &mut not }) += 1;
            }
        }
        assert!(explained > 0 && not > 0, "{explained} explained, {not} not");
    }
}
