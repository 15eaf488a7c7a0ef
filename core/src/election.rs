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
mod proposal;
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
use crate::report::{Change, Reason};
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Filed, Round, ServerState, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

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

    /// The seat was given to the leader of `vote` without an election, in this round: everybody says the same as if
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

    /// A voter that is looking, as we are.
    #[inline]
    fn on_looking(
        &mut self,
        at: Instant,
        from: ServerId,
        position: usize,
        heard: Standing,
        at_once: bool,
        out: &mut Vec<ElectorOutput>,
    ) {
        // A voter without a candidate never counts, whatever round it is in: it joins the round of those that look.
        // Its vote may be needed by voters who know of a membership that it does not know yet, or by the server that
        // leads in its place because it cannot be followed. Once it proposes
        // a candidate it stays in that round, so that two who do not hear each other cannot call it to and fro.
        let undecided =
            || self.vote.leader == ServerId::NONE && (self.config.may_change || self.barred);
        let candidate = || self.config.quorum.is_voter(heard.vote.leader);
        if heard.round < self.round && !(undecided() && candidate()) {
            // It is behind: not counted, but told, so that it can catch up.
            out.push(ElectorOutput::Notify { to: Recipient::One(from), standing: self.standing() });
            return;
        }
        let filed = Filed { standing: heard, versioned: false, at_once };
        if heard.round == self.round && self.votes.filed()[position] == Some(filed) {
            return;
        }
        if !candidate() || heard.vote.zxid == Zxid::UNKNOWN || self.own.zxid == Zxid::UNKNOWN {
            return;
        }
        // A voter of the next membership alone lets those of the present one propose themselves, since not all
        // of them need know it yet. If they have less than it has, it has to lead.
        let ours = if undecided() && !self.barred && self.config.quorum.is_voter(self.config.id) {
            Vote { leader: self.config.id, ..self.own }
        } else {
            self.own
        };
        if self.has_outlived(heard.vote) {
            let reason = Reason::Outlived { from, zxid: heard.vote.zxid };
            self.change_round(at, heard.round.next().max(heard.round), reason.clone(), out);
            self.forget_unreachable(out);
            self.propose(self.own, reason, out);
            return self.count(at, out);
        }
        if heard.round != self.round {
            // What was collected belongs to an earlier round; so does what we proposed: the vote that
            // came is compared with the one for ourselves.
            if self.hears_few(at, position) {
                // No other voter tells us how this round ends.
                self.ask_soon(at);
            }
            let better = self.why_better(from, heard.vote, self.own).is_some();
            let (vote, reason) = if better || !self.yields(at, position, heard.vote) {
                let reason = Reason::LaterRound { from, theirs: heard.round, ours: self.round };
                (if better { heard.vote } else { ours }, reason)
            } else {
                (heard.vote, Reason::HearsFew { from })
            };
            self.change_round(at, heard.round, reason.clone(), out);
            self.forget_unreachable(out);
            self.propose(vote, reason, out);
        } else if heard.vote != self.vote {
            if let Some(reason) = self.why_better(from, heard.vote, self.vote) {
                self.propose(heard.vote, reason, out);
            } else if ours != self.own {
                self.propose(ours, Reason::OwnVote, out);
            } else if heard.vote > self.vote {
                self.votes.uncompared = true;
            }
        }
        self.file(position, filed);
        self.count(at, out);
    }

    /// Whether this is a vote for ourselves with more than we have. It was cast when we had it: since then our disk
    /// was emptied, or we followed a leader that sent us a snapshot instead, and an earlier round came again. A voter
    /// that adopted it would elect us for a history that is gone. So the round begins anew: those who vote so begin
    /// with their own votes again, and hear what is.
    fn has_outlived(&self, vote: Vote) -> bool {
        let history = |vote: Vote| (vote.peer_epoch, vote.zxid);
        let own = self.own.leader == self.config.id && vote.leader == self.config.id;
        own && history(vote) > history(self.own)
    }

    /// A voter that has a leader already.
    fn on_settled(
        &mut self,
        at: Instant,
        position: usize,
        heard: Standing,
        versioned: bool,
        at_once: bool,
        out: &mut Vec<ElectorOutput>,
    ) {
        let leads = heard.vote.leader == self.config.id;
        if !self.config.quorum.is_voter(heard.vote.leader) || (leads && self.barred) {
            return;
        }
        let needle = Filed { standing: heard, versioned, at_once };
        if heard.round == self.round {
            // Filed without its version, so that between peers of today the leader alone counts.
            self.file(position, Filed { versioned: false, ..needle });
            self.votes.uncompared = true;
            if let Some(support) = self.joinable(self.votes.filed(), &needle) {
                return self.join(at, heard, support, out);
            }
        }
        self.settled[position] = Some(needle);
        if let Some(support) = self.joinable(&self.settled, &needle) {
            return self.join(at, heard, support, out);
        }
        let (leader, from) = (heard.vote.leader, self.config.quorum.id(position));
        if leader == from && self.heard[position] {
            if let Some(support) = self.completed(at, &needle) {
                return self.join(at, heard, support, out);
            }
        }
        let reason = if heard.state != ServerState::Leading {
            return;
        } else if leader == from && self.heard[position] && self.hears_few(at, position) {
            Reason::OnlyLeaderHeard { leader }
        } else if self.config.quorum.oracle() == Some(false) {
            // The arbiter prefers the other of two servers, and that one leads.
            Reason::Oracle { leader }
        } else {
            if leader == from {
                self.ask_when_known(at);
            }
            return;
        };
        let mut support = self.config.quorum.support();
        support.add_at(&self.config.quorum, position);
        self.follow(at, heard, support, reason, out);
    }

    fn joinable(&self, votes: &[Option<Filed>], needle: &Filed) -> Option<Support> {
        votes::joinable(votes, needle, &self.config.quorum, self.config.id, self.round)
    }

    /// Takes the ensemble's word for who leads.
    fn join(
        &mut self,
        at: Instant,
        heard: Standing,
        support: Support,
        out: &mut Vec<ElectorOutput>,
    ) {
        let leader = heard.vote.leader;
        let members = support.members(&self.config.quorum).collect();
        self.follow(at, heard, support, Reason::Joined { members, leader }, out);
    }

    /// Goes with who leads already, and into its round, even if that is lower than ours.
    fn follow(
        &mut self,
        at: Instant,
        heard: Standing,
        support: Support,
        reason: Reason,
        out: &mut Vec<ElectorOutput>,
    ) {
        if heard.round != self.round {
            let change = Change::Round { from: self.round, to: heard.round };
            out.push(ElectorOutput::Changed(change, reason.clone()));
            self.round = heard.round;
            self.votes.forget();
        }
        self.votes.support = support;
        self.decide(at, heard.vote, reason, out);
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

    /// Why `vote` should be adopted in place of `over`: it is better, and its server may be elected.
    ///
    /// What a server without weight says is no reason. It may be the only one that hears whom it votes for; a quorum
    /// that hears itself would elect that one again and again. A server that can be elected is heard by those with
    /// weight.
    fn why_better(&self, from: ServerId, vote: Vote, over: Vote) -> Option<Reason> {
        let quorum = &self.config.quorum;
        if self.barred {
            let history = |vote: Vote| (vote.peer_epoch, vote.zxid);
            let older = over.leader == ServerId::NONE && history(vote) < history(self.own);
            if vote.leader == self.config.id || older {
                return None;
            }
        }
        let some_weigh_nothing = quorum.has_weightless();
        if some_weigh_nothing && !quorum.has_weight(from) {
            return None;
        }
        if some_weigh_nothing || over.leader == ServerId::NONE {
            if quorum.weight(vote.leader) == 0 {
                return None;
            }
            if quorum.weight(over.leader) == 0 && over != Vote::ABSTENTION {
                return Some(Reason::MayBeElected { from });
            }
        }
        vote.better_than(&over).map(|why| Reason::BetterVote { from, why })
    }
}
