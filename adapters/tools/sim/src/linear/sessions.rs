//! Whether one order explains what the sessions of a history were told of nodes.
//!
//! ```text
//!   session 1:  create ├────┤ ├──┤ set …      its operations take effect in this order
//!   session 2:     multi ├────────?           its client was never told: it happened, at any time from then on, or not;
//!                                             what the session asks for on its next connection may come before it
//!   session 3:           sync ├─┤ read├──┤    a read may be as old as the sync before it, and no older
//! ```
//!
//! Every operation takes effect at one moment between its beginning and its end, those of a session that are answered one
//! behind the other, and answers what [`Nodes`] answer then. The search is Wing's and Gong's (*Testing and verifying concurrent objects*,
//! 1993): of the operations that come next in their sessions one is carried out that has begun before any other that is
//! left has ended; what led nowhere is remembered (Lowe, *Testing for linearizability*, 2017). Where a server has said when
//! something took effect, that is tried first: a right history is explained at the first attempt, whatever its length.
//! Whether there is an order does not depend on what servers said of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use crate::hash::Mix;
use crate::linear::Unexplained;
use crate::linear::nodes::{Act, Nodes, Told, Undo};

/// How many operations are tried in vain before a history counts as one that nothing explains.
const TRIED_MAX: usize = 50_000;

/// An operation of a session.
#[derive(Clone, Debug)]
struct Operation {
    act: Act,
    /// What it was answered; none if its client was never told.
    told: Option<Told>,
    called: u64,
    /// When it was answered.
    returned: u64,
    /// When it took effect, as a server says; none if it says that it did not, or nothing.
    hint: Option<i64>,
}

/// What sessions asked for and were told, in the order in which it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    operations: BTreeMap<i64, Vec<Operation>>,
    /// When the last sync of each began, behind which it has read.
    synced: BTreeMap<i64, u64>,
    now: u64,
}

impl Sessions {
    /// A session asks for something. Returns its number there. Reads that follow no sync are left out.
    pub(crate) fn call(&mut self, session: i64, act: Act) -> Option<usize> {
        self.now += 1;
        let mut called = self.now;
        match act {
            Act::Sync => drop(self.synced.insert(session, called)),
            Act::GetData { .. } | Act::Exists { .. } | Act::GetChildren { .. } => {
                called = *self.synced.get(&session)?;
            }
            Act::Create { .. }
            | Act::Delete { .. }
            | Act::SetData { .. }
            | Act::Check { .. }
            | Act::Multi(_)
            | Act::End => {}
        }
        let all = self.operations.entry(session).or_default();
        all.push(Operation { act, told: None, called, returned: u64::MAX, hint: None });
        Some(all.len() - 1)
    }

    /// It is answered; `hint`: by which moment of the history, as the server says.
    pub(crate) fn told(&mut self, session: i64, at: usize, told: Told, hint: i64) {
        self.now += 1;
        let now = self.now;
        let operations = self.operations.get_mut(&session);
        if let Some(operation) = operations.and_then(|all| all.get_mut(at)) {
            (operation.told, operation.returned) = (Some(told), now);
            operation.hint = Some(hint);
        }
    }

    /// What was never answered took effect at this moment of the history, as servers say.
    pub(crate) fn hint(&mut self, session: i64, at: usize, hint: i64) {
        let operations = self.operations.get_mut(&session);
        if let Some(operation) = operations.and_then(|all| all.get_mut(at)) {
            operation.hint = operation.hint.or(Some(hint));
        }
    }

    /// A session has ended at this moment of the history, as servers say, whether its client asked for that or not.
    pub(crate) fn ended(&mut self, session: i64, hint: i64) {
        let all = self.operations.entry(session).or_default();
        // What its client asked for may have come behind an end of another cause.
        let asked = all.iter().any(|one| one.act == Act::End && one.hint == Some(hint));
        if !asked {
            all.push(Operation {
                act: Act::End,
                told: None,
                called: 0,
                returned: u64::MAX,
                hint: Some(hint),
            });
        }
    }

    /// A connection is lost, and with it the syncs and reads of the session that were not answered.
    pub(crate) fn lost(&mut self, session: i64) {
        let Some(all) = self.operations.get(&session) else { return };
        let syncs = all.iter().filter(|one| one.act == Act::Sync && one.told.is_some());
        match syncs.map(|sync| sync.called).next_back() {
            Some(called) => drop(self.synced.insert(session, called)),
            None => drop(self.synced.remove(&session)),
        }
    }

    /// How many operations that were answered one order explains.
    ///
    /// # Errors
    ///
    /// What it cannot explain.
    pub(crate) fn check(&self) -> Result<usize, Unexplained> {
        Search::new(self).run()
    }
}

/// What was answered of a session, or one operation that was not: it comes whenever it comes.
struct Thread<'a> {
    session: i64,
    operations: Vec<&'a Operation>,
    next: usize,
    /// Of this operation and those behind it, when the first ends.
    ends: Vec<u64>,
}

struct Search<'a> {
    threads: Vec<Thread<'a>>,
    nodes: Nodes,
    dead: BTreeSet<u64>,
    tried: usize,
    /// How far it came, and what stood in the way there.
    farthest: (usize, String),
}

/// A step that was taken, and what is left to try in its place.
struct Taken {
    thread: usize,
    undo: Undo,
    others: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(history: &'a Sessions) -> Self {
        let mut threads = Vec::new();
        for (session, all) in &history.operations {
            let (answered, not): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.told.is_some());
            let mut ends = vec![u64::MAX; answered.len() + 1];
            for (at, one) in answered.iter().enumerate() {
                ends[at] = one.returned;
            }
            threads.push(Thread { session: *session, operations: answered, next: 0, ends });
            // A read that was not answered says nothing.
            for one in not.into_iter().filter(|one| !is_read(&one.act)) {
                let (operations, ends) = (vec![one], vec![u64::MAX; 2]);
                threads.push(Thread { session: *session, operations, next: 0, ends });
            }
        }
        Self {
            threads,
            nodes: Nodes::default(),
            dead: BTreeSet::new(),
            tried: 0,
            farthest: (0, String::new()),
        }
    }

    fn run(mut self) -> Result<usize, Unexplained> {
        let answered =
            |thread: &Thread<'_>| thread.operations.iter().filter(|one| one.told.is_some()).count();
        let count = self.threads.iter().map(answered).sum();
        let mut way: Vec<Taken> = Vec::new();
        let mut choices = self.choices();
        loop {
            if self.is_over() {
                return Ok(count);
            }
            // The best is the last.
            if let Some(thread) = choices.pop() {
                if let Some(undo) = self.take(thread) {
                    way.push(Taken { thread, undo, others: std::mem::take(&mut choices) });
                    choices = if self.is_dead() { Vec::new() } else { self.choices() };
                } else {
                    self.tried += 1;
                }
                if self.tried <= TRIED_MAX {
                    continue;
                }
                break;
            }
            let Some(Taken { thread, undo, others }) = way.pop() else { break };
            self.dead.insert(self.state());
            self.threads[thread].next -= 1;
            self.nodes.take_back(undo);
            choices = others;
            self.tried += 1;
            if self.tried > TRIED_MAX {
                break;
            }
        }
        let (done, why) = self.farthest;
        let tried = self.tried;
        Err(Unexplained(format!("behind {done} operations, after {tried} tries: {why}")))
    }

    /// Whether everything that was answered is explained.
    fn is_over(&self) -> bool {
        self.threads.iter().all(|thread| thread.ends[thread.next] == u64::MAX)
    }

    fn state(&self) -> u64 {
        let mut mix = Mix::default();
        self.threads.iter().for_each(|thread| thread.next.hash(&mut mix));
        self.nodes.hashed().hash(&mut mix);
        mix.finish()
    }

    fn is_dead(&self) -> bool {
        !self.dead.is_empty() && self.dead.contains(&self.state())
    }

    /// What may come next, the most likely last.
    fn choices(&self) -> Vec<usize> {
        let end = self.threads.iter().map(|thread| thread.ends[thread.next]).min();
        let end = end.unwrap_or(u64::MAX);
        let mut all = Vec::new();
        for (at, thread) in self.threads.iter().enumerate() {
            let Some(one) = thread.operations.get(thread.next) else { continue };
            if one.called < end {
                // Writes before the reads that show them.
                all.push((one.hint.map(|hint| (hint, is_read(&one.act))), at));
            }
        }
        // What servers say nothing of is tried when nothing else is left.
        all.sort_by_key(|(hint, _)| std::cmp::Reverse(hint.unwrap_or((i64::MAX, true))));
        all.into_iter().map(|(_, thread)| thread).collect()
    }

    /// Takes a step, if what was answered is what the nodes answer.
    fn take(&mut self, thread: usize) -> Option<Undo> {
        let (of, mut undo) = (&self.threads[thread], Undo::default());
        let one = of.operations[of.next];
        let answer = self.nodes.act(of.session, &one.act, &mut undo);
        if one.told.as_ref().is_some_and(|told| *told != answer) {
            self.nodes.take_back(undo);
            let done: usize = self.threads.iter().map(|thread| thread.next).sum();
            if done > self.farthest.0 {
                self.farthest = (done, format!("{one:?} would be answered {answer:?}"));
            }
            return None;
        }
        self.threads[thread].next += 1;
        Some(undo)
    }
}

const fn is_read(act: &Act) -> bool {
    matches!(act, Act::GetData { .. } | Act::Exists { .. } | Act::GetChildren { .. } | Act::Sync)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_core::rng::Rng;

    use super::*;

    const NO_NODE: Told = Told::Failed(-101);

    fn create(path: &str, ephemeral: bool, sequential: bool) -> Act {
        Act::Create { path: path.to_owned(), data: None, ephemeral, sequential }
    }

    fn set(path: &str, data: &'static str, version: i32) -> Act {
        let data = Some(Bytes::from_static(data.as_bytes()));
        Act::SetData { path: path.to_owned(), data, version }
    }

    fn delete(path: &str, version: i32) -> Act {
        Act::Delete { path: path.to_owned(), version }
    }

    fn exists(path: &str) -> Act {
        Act::Exists { path: path.to_owned() }
    }

    fn created(path: &str) -> Told {
        Told::Created(path.to_owned())
    }

    /// One operation behind the other, each of a session, with what it was told; none if it never was.
    fn history(all: &[(i64, Act, Option<Told>)]) -> Sessions {
        let mut history = Sessions::default();
        for (session, act, told) in all {
            let at = history.call(*session, act.clone());
            if let (Some(at), Some(told)) = (at, told) {
                history.told(*session, at, told.clone(), 0);
            }
        }
        history
    }

    #[track_caller]
    fn explained(all: &[(i64, Act, Option<Told>)]) {
        history(all).check().unwrap();
    }

    #[track_caller]
    fn refused(all: &[(i64, Act, Option<Told>)]) {
        assert!(history(all).check().is_err());
    }

    #[test]
    fn a_version_that_was_not_there_is_refused() {
        let made = || (1, create("/a", false, false), Some(created("/a")));
        let first = || (1, set("/a", "x", 0), Some(Told::Set(1)));
        explained(&[made(), first(), (2, set("/a", "y", 0), Some(Told::Failed(-103)))]);
        refused(&[made(), first(), (2, set("/a", "y", 0), Some(Told::Set(1)))]);
        refused(&[made(), first(), (2, delete("/a", 0), Some(Told::Done))]);
        refused(&[made(), (1, delete("/a", -1), Some(NO_NODE))]);
    }

    #[test]
    fn a_number_that_is_given_out_twice_is_refused() {
        let made = || (1, create("/q", false, false), Some(created("/q")));
        let next = |session, told| (session, create("/q/n-", false, true), Some(created(told)));
        let gone = (1, delete("/q/n-0000000000", -1), Some(Told::Done));
        explained(&[made(), next(1, "/q/n-0000000000"), next(2, "/q/n-0000000001")]);
        refused(&[made(), next(1, "/q/n-0000000000"), gone, next(2, "/q/n-0000000000")]);
    }

    #[test]
    fn half_a_multi_is_refused() {
        let both = || Act::Multi(vec![create("/a", false, false), delete("/b", -1)]);
        let failed = Told::Multi(vec![Told::Failed(0), NO_NODE]);
        let sync = || (2, Act::Sync, Some(Told::Done));
        let seen = |told| (2, exists("/a"), Some(told));
        let there = Told::Stat((0, 0, 0, 0));
        explained(&[(1, both(), Some(failed.clone())), sync(), seen(NO_NODE)]);
        refused(&[(1, both(), Some(failed)), sync(), seen(there)]);
    }

    #[test]
    fn a_read_may_be_as_old_as_the_sync_before_it_and_no_older() {
        let made = || (1, create("/a", false, false), Some(created("/a")));
        let sync = || (2, Act::Sync, Some(Told::Done));
        let nothing = || (2, exists("/a"), Some(NO_NODE));
        explained(&[sync(), made(), nothing()]);
        refused(&[made(), sync(), nothing()]);
        // Of what follows no sync nothing is known.
        explained(&[made(), nothing()]);
        // And never older than what it has seen, or written itself.
        let there = || (2, exists("/a"), Some(Told::Stat((0, 0, 0, 0))));
        refused(&[sync(), made(), there(), nothing()]);
        refused(&[sync(), (2, create("/a", false, false), Some(created("/a"))), nothing()]);
    }

    #[test]
    fn what_was_never_answered_may_have_happened_or_not_but_not_both() {
        let made = || (1, create("/a", false, false), None);
        let sync = || (2, Act::Sync, Some(Told::Done));
        let there = || (2, exists("/a"), Some(Told::Stat((0, 0, 0, 0))));
        let nothing = || (2, exists("/a"), Some(NO_NODE));
        explained(&[made(), sync(), there()]);
        explained(&[made(), sync(), nothing()]);
        explained(&[made(), sync(), nothing(), sync(), there()]);
        refused(&[made(), sync(), there(), sync(), nothing()]);
    }

    #[test]
    fn an_ephemeral_node_that_outlives_its_session_is_refused() {
        let made = || (1, create("/e", true, false), Some(created("/e")));
        let sync = || (2, Act::Sync, Some(Told::Done));
        let there = || (2, exists("/e"), Some(Told::Stat((0, 0, 0, 1))));
        explained(&[made(), (1, Act::End, None), sync(), there()]);
        explained(&[made(), (1, Act::End, None), sync(), (2, exists("/e"), Some(NO_NODE))]);
        refused(&[made(), (1, Act::End, Some(Told::Done)), sync(), there()]);
        refused(&[
            made(),
            (1, Act::End, None),
            (1, create("/e", true, false), Some(created("/e"))),
        ]);
    }

    #[test]
    fn operations_of_a_session_take_effect_in_its_order() {
        let mut history = Sessions::default();
        let first = history.call(1, set("/a", "1", -1)).unwrap();
        let second = history.call(1, create("/a", false, false)).unwrap();
        history.told(1, first, Told::Set(1), 0);
        history.told(1, second, created("/a"), 0);
        assert!(history.check().is_err(), "asked for at once, and yet in order");
    }

    /// What three sessions do at an atomic store: each operation happens at some moment while it is under way, or never
    /// if no client hears of it; one of many is told wrong.
    fn made_up(rng: &mut Rng, hints: bool, wrong: bool) -> Sessions {
        let (mut history, mut nodes, mut moment) = (Sessions::default(), Nodes::default(), 0);
        let mut under_way: Vec<(i64, Option<usize>, Act)> = Vec::new();
        for _ in 0..40 {
            let session = 1 + i64::try_from(rng.below(3)).unwrap();
            let busy = under_way.iter().position(|(of, ..)| *of == session);
            let Some(busy) = busy else {
                let path = ["/a", "/b", "/a/x"][usize::try_from(rng.below(3)).unwrap()];
                let act = match rng.below(7) {
                    0 | 1 => create(path, false, false),
                    2 => create("/a/n-", false, true),
                    3 => set(path, "x", i32::try_from(rng.below(2)).unwrap() - 1),
                    4 => delete(path, -1),
                    5 => Act::Sync,
                    _ => exists(path),
                };
                under_way.push((session, history.call(session, act.clone()), act));
                continue;
            };
            let (session, at, act) = under_way.swap_remove(busy);
            if rng.below(8) == 0 {
                // No client hears of it.
                if rng.below(2) == 0 {
                    nodes.act(session, &act, &mut Undo::default());
                    moment += 1;
                    at.filter(|_| hints)
                        .into_iter()
                        .for_each(|at| history.hint(session, at, moment));
                }
                continue;
            }
            moment += 1;
            let mut told = nodes.act(session, &act, &mut Undo::default());
            if wrong && rng.below(20) == 0 {
                told = if told == NO_NODE { Told::Done } else { NO_NODE };
            }
            if let Some(at) = at {
                history.told(session, at, told, if hints { moment } else { 0 });
            }
        }
        history
    }

    #[test]
    fn an_atomic_store_is_explained_with_and_without_its_word_and_one_that_lies_is_not() {
        let mut rng = Rng::new(11);
        for seed in 0..400 {
            made_up(&mut Rng::new(seed), true, false).check().unwrap();
            made_up(&mut Rng::new(seed), false, false).check().unwrap();
        }
        let refused = |_: &u64| made_up(&mut rng, true, true).check().is_err();
        let found = (0..400_u64).filter(refused).count();
        // Where no client was told wrong, or could tell, it is explained.
        assert!((200..400).contains(&found), "{found}");
    }
}
