//! Fast leader election: from LOOKING to a decision.
//!
//! ```text
//!            look()                    a quorum votes like us
//!   settled ───────► looking ─────────────────────────────────► waiting ──► settled
//!      ▲               │  ▲   ◄───── a better vote ─────────────   │          ▲
//!      │               │  │                             200 ms, or no vote   │
//!      │               │  └── later round, better vote: adopt, tell all       │
//!      │               └───── a quorum already has a leader, who says so ─────┘
//!      └── answers everybody who is looking
//! ```
//!
//! A round begins with a vote for oneself. Better votes are adopted and passed on, so that all who
//! hear one another end with the best vote, that is with the newest history. A quorum that votes
//! alike has decided; a short wait lets a better vote arrive that is still on its way. Where no voter
//! is left that could send one there is no wait: every voter votes alike; or those that do not are
//! known to be unreachable, and a quorum of the others is known not to wait either. A voter that waits may go on with a
//! better vote, and then those who settled early go back into the round ([`Elector::go_back`]). Those that lose a leader notice it one after the other; what the early
//! ones say is kept for the others, since they say it only once.
//!
//! A server that comes late finds the election over. It joins the leader that a quorum reports, if
//! the leader says so itself; otherwise it might follow a corpse that the others have not noticed yet
//! (ZOOKEEPER-569). Only a server that hears too few to know takes the leader's word alone (`edge`).
//!
//! [`Elector`] is the election alone: no connections, no epochs, no history. It is what
//! [`Peer`](crate::peer::Peer) drives, and what one drives who brings a recovery of one's own: hand
//! it votes, deliver what it tells, act on [`ElectorOutput::Decided`].
//!
//! The names in the Java code: `recvset` is `filed`, `outofelection` is `settled`, `logicalclock`
//! is `round`, `lookForLeader` the looking state, `totalOrderPredicate` the order on
//! [`Vote`]. `recvqueue` and the `WorkerReceiver` that fills it are [`ElectorEvent::Heard`], one at a time, and what
//! answers those without a vote; `sendqueue` and `WorkerSender` are [`ElectorOutput::Notify`].

mod back;
mod boundary;
mod edge;
mod looking;
mod proposal;
mod settled;
mod votes;

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

pub use crate::election::boundary::{
    Decision, ElectorConfig, ElectorEvent, ElectorOutput, Recipient,
};
pub use crate::election::votes::DIAL_TELLS;
use crate::election::votes::Votes;
use crate::id::ServerId;
use crate::quorum::{Quorum, Support};
use crate::report::Reason;
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Filed, Round, ServerState, Standing, Vote};
use crate::zxid::Epoch;

/// The election of one server, round after round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elector {
    config: ElectorConfig,
    state: ServerState,
    round: Round,
    /// The highest round that we have looked in. A server that joins an ensemble takes its round, which may be lower;
    /// one that looked in a round for a second time would say what the others have on file already, and that no voter
    /// answers.
    looked: Round,
    /// How often we may still go back into this round.
    returns: usize,
    /// The vote for ourselves of this round.
    own: Vote,
    /// What we propose; once settled, what ended the election.
    vote: Vote,
    votes: Votes,
    /// What each voter said from outside of an election.
    settled: Vec<Option<Filed>>,
    /// The newest vote of each voter that began to look before us, for when we do.
    early: Vec<Option<(Standing, bool)>>,
    began: Instant,
    /// Since when we are in this round, and whom we have heard in it.
    round_began: Instant,
    heard: Vec<bool>,
    wait: Duration,
    notify_at: Option<Instant>,
    finalize_at: Option<Instant>,
    /// We may not be elected.
    barred: bool,
}

impl Elector {
    /// A server that has not begun to look; its round is 0.
    pub fn new(config: ElectorConfig) -> Self {
        let voters = config.quorum.voters().len();
        Self {
            state: ServerState::Looking,
            round: Round(0),
            looked: Round(0),
            returns: 0,
            own: Vote::ABSTENTION,
            vote: Vote::ABSTENTION,
            votes: Votes::new(&config.quorum),
            settled: vec![None; voters],
            early: vec![None; voters],
            began: Instant::ORIGIN,
            round_began: Instant::ORIGIN,
            heard: vec![false; voters],
            wait: config.notification_min,
            notify_at: None,
            finalize_at: None,
            barred: false,
            config,
        }
    }

    /// Where we stand.
    pub const fn standing(&self) -> Standing {
        Standing { state: self.state, vote: self.vote, round: self.round }
    }

    /// Whether we have anything to say: we are looking, or have a leader. Not before the first
    /// election, nor between the end of a role and the next one.
    pub const fn has_standing(&self) -> bool {
        self.is_looking() || !matches!(self.state, ServerState::Looking)
    }

    /// The role that the last election led to is over; the next election has not begun. Until it does
    /// we claim nothing: a server that joined us on the word of an office we have left would wait for
    /// a leader that is gone.
    pub const fn retire(&mut self) {
        self.state = ServerState::Looking;
    }

    /// Whether an election is going on.
    pub const fn is_looking(&self) -> bool {
        self.notify_at.is_some()
    }

    /// Whether this server may be elected, as was last said ([`ElectorEvent::MayLead`]).
    pub const fn may_lead(&self) -> bool {
        !self.barred
    }

    /// Who votes.
    pub const fn quorum(&self) -> &Quorum {
        &self.config.quorum
    }

    /// Who votes like us while we look; afterwards, on whose word the decision rests.
    pub const fn support(&self) -> &Support {
        &self.votes.support
    }

    /// Who votes, for those who know whether the arbiter is needed, or that others vote now:
    /// [`Elector::update_quorum`] has to follow then.
    pub const fn quorum_mut(&mut self) -> &mut Quorum {
        &mut self.config.quorum
    }

    /// The next time at which something is due, and what.
    pub fn deadline(&self) -> Option<(Instant, Timer)> {
        match (self.finalize_at, self.notify_at) {
            (Some(at), _) => Some((at, Timer::Finalize)),
            (None, Some(at)) => Some((at, Timer::Notification)),
            (None, None) => None,
        }
    }

    /// Takes note that the ensemble serves in `epoch`, so that all its members tell a newcomer the
    /// same.
    pub fn establish(&mut self, epoch: Epoch) {
        self.vote.peer_epoch = epoch;
        self.returns = 0;
    }

    /// The leadership was given to the leader of `vote` without an election, in this round: everybody says the same as if
    /// that had ended one. No server goes back for that: one that is ahead of the leader that gave it away, since that
    /// one came back from a crash to those who still followed it, goes on from its own round; and who keeps its leader
    /// (in another membership) keeps its round.
    pub fn appoint(
        &mut self,
        at: Instant,
        vote: Vote,
        round: Round,
        reason: Reason,
        out: &mut Vec<ElectorOutput>,
    ) {
        if self.is_looking() {
            return;
        }
        let least = if vote.leader == self.vote.leader { self.round } else { self.round.next() };
        let round = round.max(least);
        self.change_round(at, round, reason.clone(), out);
        self.returns = 0;
        self.settled.fill(None);
        self.votes.support_all(&self.config.quorum);
        self.began = at;
        self.decide(at, vote, reason, out);
    }

    /// Begins anew under another configuration: settled on no leader, round 0.
    pub fn reconfigure(&mut self, config: ElectorConfig) {
        *self = Self::new(config);
    }

    /// Others vote from now on, see [`Elector::quorum_mut`], and perhaps we follow in another way; what ended
    /// the last election stands.
    pub fn update_quorum(&mut self, observer: bool) {
        let voters = self.config.quorum.voters().len();
        self.config.observer = observer;
        self.settled = vec![None; voters];
        self.early = vec![None; voters];
        self.heard = vec![false; voters];
        self.votes = Votes::new(&self.config.quorum);
        self.returns = 0;
    }

    /// What has to be done because of `event`.
    pub fn step(&mut self, at: Instant, event: ElectorEvent) -> Vec<ElectorOutput> {
        let mut outputs = Vec::new();
        self.step_into(at, event, &mut outputs);
        outputs
    }

    /// The same, appended to `out`; allocates nothing unless a vote changes or the election ends.
    pub fn step_into(&mut self, at: Instant, event: ElectorEvent, out: &mut Vec<ElectorOutput>) {
        match event {
            ElectorEvent::Heard { from, standing, versioned, at_once } => {
                self.on_heard(at, from, standing, versioned, at_once, out);
            }
            ElectorEvent::Look(own) => self.on_look(at, own, out),
            ElectorEvent::Unreachable { peer, dialled } => {
                self.on_unreachable(at, peer, dialled, out);
            }
            ElectorEvent::Reachable(peer) => self.on_reachable(at, peer),
            ElectorEvent::MayLead(may) => self.barred = !may,
            ElectorEvent::Oracle(yes) => {
                self.config.quorum.hear_oracle(yes);
                // It is the arbiter's turn only after a first wait for the other server.
                if self.wait > self.config.notification_min {
                    self.count(at, out);
                }
            }
            ElectorEvent::Tick => self.on_tick(at, out),
        }
    }

    /// A round begins: one more than any before, everything collected is forgotten.
    fn on_look(&mut self, at: Instant, own: Vote, out: &mut Vec<ElectorOutput>) {
        if self.is_looking() && own == self.own {
            return;
        }
        self.state = ServerState::Looking;
        let round = self.round.max(self.looked).next();
        let reason = if own == Vote::ABSTENTION { Reason::NoVote } else { Reason::OwnVote };
        self.change_round(at, round, reason.clone(), out);
        self.own = own;
        self.began = at;
        self.wait = self.config.notification_min;
        self.notify_at = Some(at + self.wait);
        self.settled.fill(None);
        self.forget_unreachable(out);
        self.propose(own, reason, out);
        self.count(at, out);
        for position in 0..self.early.len() {
            if let Some((heard, at_once)) = self.early[position].take() {
                if self.is_looking() {
                    let from = self.config.quorum.id(position);
                    self.on_looking(at, from, position, heard, at_once, out);
                    self.heard[position] = true;
                }
            }
        }
    }

    fn on_heard(
        &mut self,
        at: Instant,
        from: ServerId,
        heard: Standing,
        versioned: bool,
        at_once: bool,
        out: &mut Vec<ElectorOutput>,
    ) {
        let Some(position) = self.config.quorum.position(from) else {
            // A server without a vote is answered and otherwise not listened to; between two elections
            // with what it can neither count nor follow.
            if self.round > Round(0) {
                let none = Standing { vote: Vote::ABSTENTION, ..self.standing() };
                let standing = if self.has_standing() { self.standing() } else { none };
                out.push(ElectorOutput::Notify { to: Recipient::One(from), standing });
            }
            return;
        };
        if !self.is_looking() {
            self.early[position] = None;
            if heard.state == ServerState::Looking {
                // Those that lose a leader notice it one after the other. What the first one says
                // now it does not say again for 200 ms.
                if heard.round > self.round {
                    self.early[position] = Some((heard, at_once));
                } else if heard.round == self.round && self.returns > 0 {
                    let filed = Filed { standing: heard, versioned: false, at_once };
                    self.votes.note(position, filed);
                }
                if self.has_standing() {
                    let standing = self.standing();
                    out.push(ElectorOutput::Notify { to: Recipient::One(from), standing });
                }
            }
            return;
        }
        match heard.state {
            ServerState::Looking => {
                // Whatever leader it told of is over for it: counted on, it could elect one that it would not vote for.
                self.settled[position] = None;
                self.on_looking(at, from, position, heard, at_once, out);
            }
            ServerState::Following | ServerState::Leading => {
                self.on_settled(at, position, heard, versioned, at_once, out);
            }
            ServerState::Observing => {}
        }
        self.heard[position] = true;
    }

    fn on_unreachable(
        &mut self,
        at: Instant,
        peer: ServerId,
        dialled: Instant,
        out: &mut Vec<ElectorOutput>,
    ) {
        let Some(position) = self.config.quorum.position(peer) else { return };
        self.votes.on_unreachable(position, dialled);
        // What it said in this round, that may be old, is not what it would say now.
        self.heard[position] = false;
        self.count(at, out);
    }

    /// A server that was alone for long says soon again what it says now: the peer looks, too, and where it leads
    /// by the time when it hears that, it answers so. Nothing else would tell it for up to a minute.
    fn on_reachable(&mut self, at: Instant, peer: ServerId) {
        let Some(position) = self.config.quorum.position(peer) else { return };
        self.votes.on_reachable(position);
        self.ask_soon(at);
    }

    /// The wait for notifications begins anew, as short as at first.
    fn ask_soon(&mut self, at: Instant) {
        if let Some(due) = self.notify_at {
            self.wait = self.config.notification_min;
            self.notify_at = Some(due.min(at + self.wait));
        }
    }

    fn on_tick(&mut self, at: Instant, out: &mut Vec<ElectorOutput>) {
        // A wait that elects no leader may have hidden that it is time to tell the vote again.
        while self.deadline().is_some_and(|(due, _)| due <= at) {
            self.fire(at, out);
        }
    }

    /// For model checkers only: what [`Elector::deadline`] tells has come, whatever the time is.
    pub fn fire(&mut self, at: Instant, out: &mut Vec<ElectorOutput>) {
        if self.finalize_at.take().is_some() {
            // One of those that were counted may have gone with another leader meanwhile.
            if self.votes.support.is_enough(&self.config.quorum) {
                let members = self.votes.support.members(&self.config.quorum).collect();
                let reason = Reason::Quorum { members, leader: self.vote.leader };
                self.decide(at, self.vote, reason, out);
            }
        } else if self.notify_at.is_some() {
            out.push(ElectorOutput::Notify { to: Recipient::Voters, standing: self.standing() });
            out.push(ElectorOutput::Redial);
            self.wait = (self.wait * 2).min(self.config.notification_max);
            self.notify_at = Some(at + self.wait);
            // The arbiter may have changed its mind since the last count.
            self.count(at, out);
        }
    }
}
