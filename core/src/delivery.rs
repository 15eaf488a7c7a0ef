//! What the application gets next: it is a cursor, as a learner is.
//!
//! ```text
//!        position         base          before               through       last
//!           │              │ label of the │  window: in memory  │ committed │
//!   ────────┼──────────────┼ staged state ┼─────────────────────┼───────────┤
//!           └── Adopt ────►│              │                     │
//!                          └── Replay ───►└────── Deliver ─────►│
//! ```
//!
//! Everything that the application has to do goes through one queue, so that each thing finds it where it must be:
//! behind what was delivered before. Nothing waits as long as the application keeps up. If it does not, what was
//! handed to it and is not [applied](crate::input::Event::Applied) is bounded by
//! [`delivery_bytes`](crate::config::HistoryLimits::delivery_bytes), and the rest waits here: transactions in the
//! window or on the disk, everything else by the limits of those who ask.
//!
//! A state is staged until everything in it is known to be committed: the newest snapshot on the disk at the
//! start, or one that was received and installed since. An application that has come further by itself keeps its
//! own. As long as it is behind that state it is given nothing else, since the log begins only there.

use alloc::collections::VecDeque;

use crate::config::HistoryLimits;
use crate::history::History;
use crate::links::Links;
use crate::outbox::Outbox;
use crate::output::Output;
use crate::reasons::{Fault, Refusal};
use crate::zxid::Zxid;

/// How far the application has come, and what it is to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The last transaction that was handed out, or the label of the state that was.
    position: Zxid,
    /// What is known to be committed, and handed out: it may be the start of an epoch.
    confirmed: Zxid,
    /// What was handed out and is not applied, and how much memory it takes.
    under_way: VecDeque<(Zxid, usize)>,
    bytes: usize,
    /// The log is being read through this.
    replaying: Option<Zxid>,
    tasks: VecDeque<Task>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// Deliver everything through this.
    Through(Zxid),
    /// Something else, behind that.
    Then(Output),
}

/// The next step of delivering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Adopt(Zxid),
    Replay(Zxid),
    Deliver,
    /// It is there, or comes with the staged state.
    Nothing,
}

/// An answer waits until no more transactions than these are replayed that it need not have waited for.
const REPLAYED_AT_ONCE: i64 = 1000;

impl Default for Delivery {
    fn default() -> Self {
        Self {
            position: Zxid::ZERO,
            confirmed: Zxid::ZERO,
            under_way: VecDeque::with_capacity(64),
            bytes: 0,
            replaying: None,
            tasks: VecDeque::new(),
        }
    }
}

impl Delivery {
    /// Everything through this is committed.
    pub fn through(&mut self, zxid: Zxid) {
        if let Some(Task::Through(through)) = self.tasks.back_mut() {
            *through = zxid.max(*through);
        } else {
            self.tasks.push_back(Task::Through(zxid));
        }
    }

    /// The application is to do this behind what is to be delivered by now.
    pub fn then(&mut self, output: Output, history: &mut History, outbox: &mut Outbox) {
        if self.tasks.is_empty() {
            self.give(output, history, outbox);
        } else {
            self.tasks.push_back(Task::Then(output));
        }
    }

    /// What was to be prepared is not wanted any more.
    pub fn abandon(&mut self, history: &mut History, outbox: &mut Outbox) {
        self.tasks.retain(|task| !matches!(task, Task::Then(Output::Prepare { .. })));
        self.then(Output::Abandon, history, outbox);
    }

    /// The service that has not been told yet is over. Returns whether there was one.
    pub fn withdraw_service(&mut self) -> bool {
        let before = self.tasks.len();
        self.tasks.retain(|task| !matches!(task, Task::Then(Output::Serving { .. })));
        self.tasks.len() < before
    }

    /// Whether something can be handed out.
    pub fn is_due(&self) -> bool {
        !self.tasks.is_empty() && self.replaying.is_none()
    }

    /// The last transaction that was handed out, or the label of the state that was.
    pub const fn position(&self) -> Zxid {
        self.position
    }

    /// Everything through this is applied, as far as it was to be delivered.
    pub fn applied(&self) -> Zxid {
        match self.under_way.front() {
            None => self.confirmed,
            // What lies between two that are handed out is in neither.
            Some((first, _)) => Zxid(first.0 - 1).min(self.confirmed),
        }
    }

    /// The application has applied everything that was handed to it through this.
    pub fn on_applied(&mut self, through: Zxid) {
        while let Some((_, bytes)) = self.under_way.front().filter(|(zxid, _)| *zxid <= through) {
            self.bytes -= bytes;
            self.under_way.pop_front();
        }
    }

    /// What was read of the log is applied through `reached`, and that is all that there is to read unless it cannot
    /// be read on.
    pub fn on_replayed(
        &mut self,
        reached: Zxid,
        whole: bool,
        history: &History,
        outbox: &mut Outbox,
    ) {
        let Some(through) = self.replaying.take() else { return };
        self.under_way.retain(|(zxid, _)| *zxid != through);
        if !whole {
            self.position = reached;
            // An installed snapshot has taken the place of what was to be read: then it goes on with that state.
            if reached >= history.base() {
                outbox.halt(Fault::Unreadable { after: reached });
            }
        }
    }

    fn next(&self, through: Zxid, history: &History) -> Next {
        let base = history.base();
        if self.position < base {
            return if base <= through { Next::Adopt(base) } else { Next::Nothing };
        }
        if self.position >= through {
            return Next::Nothing;
        }
        if !history.remembers_after(self.position) {
            return Next::Replay(through.min(history.on_disk_through()));
        }
        match history.after(self.position).next() {
            Some(txn) if txn.zxid <= through => Next::Deliver,
            Some(_) | None => Next::Nothing,
        }
    }

    /// How far the log may be read at once, though answers stand in between: they see more than they have to, and come in
    /// the same order. Each stretch costs the application an opening of the log, so that one that is behind, and is
    /// asked for reads, would fall further behind with each of them.
    fn past_answers(&self, history: &History) -> Zxid {
        let most = Zxid(self.position.0.saturating_add(REPLAYED_AT_ONCE));
        let mut end = Zxid::ZERO;
        for task in &self.tasks {
            match task {
                Task::Through(through) => end = *through,
                Task::Then(Output::Answer(_)) => {}
                Task::Then(_) => break,
            }
        }
        end.min(most).min(history.on_disk_through())
    }

    /// Hands out what can be; not what is for a learner whose link has ended meanwhile.
    pub fn hand_out(
        &mut self,
        history: &mut History,
        links: &Links,
        limits: &HistoryLimits,
        outbox: &mut Outbox,
    ) {
        while self.replaying.is_none() {
            match self.tasks.front() {
                None => break,
                Some(Task::Then(_)) => {
                    if let Some(Task::Then(output)) = self.tasks.pop_front() {
                        let up = |link| links.place(link).is_some();
                        if !matches!(output, Output::SendSnapshot { link, .. } if !up(link)) {
                            self.give(output, history, outbox);
                        }
                    }
                    continue;
                }
                Some(Task::Through(through)) => {
                    let through = *through;
                    match self.next(through, history) {
                        Next::Nothing => {
                            if self.position >= history.base() {
                                self.confirmed = self.confirmed.max(through);
                            }
                            self.tasks.pop_front();
                        }
                        Next::Adopt(label) => {
                            self.position = label;
                            self.under_way.push_back((label, 0));
                            outbox.push(Output::Adopt { label });
                        }
                        Next::Replay(end) => {
                            let after = self.position;
                            let end = end.max(self.past_answers(history));
                            (self.position, self.replaying) = (end, Some(end));
                            self.under_way.push_back((end, 0));
                            outbox.push(Output::Replay { after, through: end });
                        }
                        Next::Deliver => {
                            if !self.deliver(through, history, limits, outbox) {
                                break;
                            }
                        }
                    }
                }
            }
        }
        history.on_delivered(self.position);
    }

    /// Delivers what is in memory, through this. Returns whether all of it could be: the rest waits until more is applied.
    fn deliver(
        &mut self,
        through: Zxid,
        history: &History,
        limits: &HistoryLimits,
        outbox: &mut Outbox,
    ) -> bool {
        for txn in history.after(self.position).take_while(|txn| txn.zxid <= through) {
            let (zxid, bytes) = (txn.zxid, txn.len());
            if self.bytes > 0 && self.bytes + bytes > limits.delivery_bytes {
                return false;
            }
            outbox.put(|| Output::Deliver(txn.clone()));
            (self.position, self.bytes) = (zxid, self.bytes + bytes);
            self.under_way.push_back((zxid, bytes));
        }
        true
    }

    /// Something that the application is to do, at its turn; or why it cannot any more.
    fn give(&self, output: Output, history: &mut History, outbox: &mut Outbox) {
        let behind = self.position < history.base();
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "the others mean the same wherever it is"
        )]
        match output {
            // Its state is not that of the label, and never will be: another history was installed.
            Output::TakeSnapshot(_) if behind => drop(history.on_snapshot_taken()),
            // It was to see what a snapshot has, whose state is not the application's yet.
            Output::Answer(read) if behind => {
                outbox.push(Output::ReadRefused { read, reason: Refusal::Behind });
            }
            Output::SendSnapshot { link, label, memberships, .. } => {
                outbox.push(Output::SendSnapshot { link, label, memberships, staged: behind });
            }
            other => outbox.push(other),
        }
    }
}
