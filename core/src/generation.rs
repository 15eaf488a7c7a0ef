//! Election by generation: one vote for each server and generation, and heartbeats from the leader.
//!
//! ```text
//!                 time-out, or a closed link            a quorum grants
//!   following ─────────────────────────────► looking ───────────────────► leading
//!       ▲     ◄───────────────────────────────  ▲                            │
//!       │          a leader is heard            └────────────────────────────┘
//!       └── every heartbeat: another time-out     a later generation, or no quorum answers its heartbeats
//! ```
//!
//! A server that hears no leader asks whether it would be elected (the *pre-vote*); if so it raises the generation by
//! one, votes for itself, and asks the others to. Each server gives one vote in a generation, to the first that asks
//! and is at least as new as itself, and has it on disk before anybody hears of it. Two quorums share a voter, so a
//! generation has at most one leader, in every schedule and after every crash.
//!
//! It replaces one question only: who is proposed. The winner is a prospective leader like that of the
//! [fast election](crate::election): the new epoch, the histories and what is committed are found out
//! by [discovery and synchronisation](crate::leader), and safety rests on these alone. A leader
//! that is elected on a stale majority, or two that believe to lead in different generations, cost time and
//! nothing else.
//!
//! # Which of the two
//!
//! Everything behind an election, and every promise of this crate, is the same. All servers of an ensemble use the same
//! kind; the two refuse each other by name.
//!
//! | | [fast election](crate::election), the default | election by generation |
//! |---|---|---|
//! | choose it | beside ZooKeeper servers; where `syncLimit` notices a silent leader soon enough; where the server with the newest history, and of equals the highest id, is to lead at once | among servers of ours alone; where a leader that falls silent (its machine is gone, or its network) is to be replaced within a second or two |
//! | a leader's process dies | another leads a few milliseconds later | some milliseconds more: a vote is on disk before it counts |
//! | a leader falls silent | noticed after `syncLimit` ticks | noticed after [`timeout_min`](crate::config::Generations::timeout_min) to [`timeout_max`](crate::config::Generations::timeout_max) (1 to 2 s), whatever the tick |
//! | messages of an election among 5 (63) servers | 28 (19,343): they grow with n² | 18 (366): they grow with n |
//! | on disk | nothing | the vote; a server that has lost it does not start rather than vote twice |
//! | leads among equals | the highest id | the highest id, unless it tries in vain; or [the first that asks](crate::config::Ties) |
//!
//! # Driven alone
//!
//! [`GenerationClock`] is the election alone, and can be driven alone: it is told [`ClockEvent`]s and says
//! [`ClockOutput`]s. The driver keeps each [`GrantedVote`](crate::generation_message::GrantedVote) on disk, in order, and says so.
//!
//! Where the idea appears: Raft's elections (Ongaro and Ousterhout, *In Search of an Understandable Consensus
//! Algorithm*, 2014; pre-votes and a leader that steps down by its own clock are in Ongaro's thesis, 9.6 and 6.2),
//! the patterns *Leader and Followers*, *Generation Clock* and *HeartBeat* (Joshi, *Patterns of Distributed Systems*,
//! 2023), Viewstamped Replication's primary, a distinguished proposer in Paxos. Raft's log is compared by its last
//! term; here the current epoch takes its place, since Zab numbers leaderships anew in discovery.

mod boundary;
mod campaign;
mod clock;
mod granting;
mod heartbeats;

use alloc::vec::Vec;

pub use crate::generation::boundary::{ClockConfig, ClockEvent, ClockOutput, Recipient};
pub use crate::generation::clock::GenerationClock;
pub use crate::generation_message::Cue;
use crate::generation_message::{Body, GenerationMessage};
use crate::id::ServerId;
use crate::report::Reason;
use crate::time::Instant;
use crate::vote::{ServerState, Vote};

impl GenerationClock {
    /// What has to be done because of `event`.
    pub fn step(&mut self, at: Instant, event: ClockEvent) -> Vec<ClockOutput> {
        let mut outputs = Vec::new();
        self.step_into(at, event, &mut outputs);
        outputs
    }

    /// The same, appended to `out`.
    pub fn step_into(&mut self, at: Instant, event: ClockEvent, out: &mut Vec<ClockOutput>) {
        match event {
            ClockEvent::Heard { from, message } => self.on_heard(at, from, message, out),
            ClockEvent::Kept(granted_vote) => self.on_kept(at, granted_vote, out),
            ClockEvent::Look { own, cue } => self.on_look(at, own, cue, out),
            ClockEvent::Reachable(peer) => self.on_reachable(at, peer, out),
            ClockEvent::MayLead(may) => self.on_may_lead(at, may),
            ClockEvent::Oracle(yes) => {
                self.config.quorum.hear_oracle(yes);
                self.count(at, out);
            }
            ClockEvent::Tick => {
                while self.deadline().is_some_and(|(due, _)| due <= at) {
                    self.fire(at, out);
                }
            }
        }
    }

    /// The leadership was given to the leader of `vote`, or we follow the same leader in another way; returns whether
    /// that ends the election at once. If not, [`ClockEvent::Look`] has to follow, with [`Cue::Appointed`]: the
    /// server that was named is elected like any other, at once and without a pre-vote.
    pub fn appoint(&mut self, vote: Vote, reason: Reason, out: &mut Vec<ClockOutput>) -> bool {
        let follows = matches!(self.state, ServerState::Following | ServerState::Observing);
        if !follows || self.vote.leader != vote.leader {
            return false;
        }
        self.decide(vote, reason, out);
        true
    }

    /// What [`GenerationClock::deadline`] tells has come, whatever the time is. Otherwise for model checkers only.
    pub fn fire(&mut self, at: Instant, out: &mut Vec<ClockOutput>) {
        // A leader says that it leads, and waits for nothing else.
        if self.beat_at.take().is_some() {
            self.beat(at, out);
        } else if self.due.take().is_some() {
            if self.looking {
                self.ask(at, out);
            } else if self.has_standing() {
                self.leave_silent(out);
            }
        }
    }

    fn on_look(&mut self, at: Instant, own: Vote, cue: Cue, out: &mut Vec<ClockOutput>) {
        if self.looking {
            if own != self.own {
                // Whom we began with has not been elected in time: from now on we ask for ourselves.
                (self.own, self.campaign) = (own, None);
                self.listen(at);
            }
            return;
        }
        self.retire();
        (self.looking, self.own, self.tries) = (true, own, 0);
        self.appointed = None;
        self.listen(at);
        match cue {
            Cue::Fresh => {}
            Cue::Silence => self.due = self.due.map(|_| at),
            Cue::Closed => self.due = self.due.map(|due| due.min(at + self.turn())),
            Cue::Appointed(to) => {
                self.appointed = Some(to);
                if to == self.config.id {
                    self.due = self.due.map(|_| at);
                }
            }
        }
        if cue != Cue::Fresh {
            self.heard = None;
        }
        out.push(ClockOutput::Redial);
        if cue == Cue::Fresh || self.due.is_none() {
            // Is there a leader? The leader answers.
            self.tell(at, Recipient::Voters, out);
        }
        self.answer_early(at, out);
        if self.looking && self.due.is_some_and(|due| due <= at) {
            self.fire(at, out);
        }
    }

    /// An attempt of ours that is under way goes on: it is as good as elected, or comes to nothing.
    fn on_may_lead(&mut self, at: Instant, may: bool) {
        if self.barred == may {
            self.barred = !may;
            if self.looking {
                self.listen(at);
            }
        }
    }

    fn on_heard(
        &mut self,
        at: Instant,
        from: ServerId,
        message: GenerationMessage,
        out: &mut Vec<ClockOutput>,
    ) {
        if message.from != from || !message.generation.is_valid() {
            return;
        }
        let Some(position) = self.config.quorum.position(from) else {
            // A server without a vote is told where we stand, if it asks, and otherwise not listened to.
            let asks = matches!(message.body, Body::Heartbeat { leader: ServerId::NONE, .. });
            if asks || matches!(message.body, Body::VoteRequest(_)) {
                self.tell(at, Recipient::One(from), out);
            }
            return;
        };
        match message.body {
            Body::VoteRequest(attempt) => {
                let valid =
                    attempt.generation.is_valid() && attempt.generation >= message.generation;
                if valid {
                    self.on_request(at, position, message, attempt, out);
                }
            }
            Body::VoteResponse { attempt, granted } => {
                if self.looking {
                    self.on_answer(at, from, &message, attempt, granted, out);
                }
            }
            Body::Heartbeat { leader, beat } if leader == from => {
                self.on_leading(at, &message, beat, out);
            }
            Body::Heartbeat { leader, beat } => {
                self.on_standing(at, position, &message, leader, beat, out);
            }
        }
    }
}
