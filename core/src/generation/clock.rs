//! What a server knows of an election by generation, and the few moves that all its parts share.
//!
//! ```text
//!   generation   the highest seen          granted_vote   the last vote given, durable or on its way
//!   campaign     an attempt of ours        heard    when the leader was, so for how long no other is granted
//! ```
//!
//! What is asked, granted and heard is judged in the neighbouring rooms.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::generation::boundary::{Campaign, ClockConfig, ClockOutput, Early, Owed, Recipient};
use crate::generation_message::{Body, Claim, Cue, Generation, GenerationMessage, GrantedVote};
use crate::id::ServerId;
use crate::quorum::{Quorum, Support};
use crate::report::{Change, Reason};
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// The elections of one server by generation, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GenerationClock {
    pub(super) config: ClockConfig,
    pub(super) rng: Rng,
    pub(super) state: ServerState,
    pub(super) looking: bool,
    /// The highest generation seen.
    pub(super) generation: Generation,
    /// The last vote given.
    pub(super) granted_vote: GrantedVote,
    /// Votes of this generation and before are on disk.
    pub(super) kept: Generation,
    /// The vote for ourselves; its epoch and zxid are our claim.
    pub(super) own: Vote,
    /// What we stand for: ourselves as candidate, the leader once there is one.
    pub(super) vote: Vote,
    /// To whom the last leader gave its leadership.
    pub(super) appointed: Option<ServerId>,
    pub(super) campaign: Option<Campaign>,
    pub(super) attempts: u64,
    /// How often we have asked since we look.
    pub(super) tries: u32,
    pub(super) owed: Option<Owed>,
    pub(super) early: Early,
    /// When the leader was heard last.
    pub(super) heard: Option<Instant>,
    /// A leader's: when it said what each voter has answered, by position.
    pub(super) beats: Vec<Instant>,
    pub(super) support: Support,
    /// When we ask to lead, or give up the leader that we follow.
    pub(super) due: Option<Instant>,
    /// A leader's: when it says again that it leads.
    pub(super) beat_at: Option<Instant>,
    /// We may not be elected.
    pub(super) barred: bool,
}

impl GenerationClock {
    /// A server that finds `granted_vote` on its disk and has not begun to look.
    pub fn new(config: ClockConfig, granted_vote: GrantedVote) -> Self {
        let voters = config.quorum.voters().len();
        Self {
            rng: Rng::new(config.seed),
            state: ServerState::Looking,
            looking: false,
            generation: granted_vote.generation,
            granted_vote,
            kept: granted_vote.generation,
            own: Vote::ABSTENTION,
            vote: Vote::ABSTENTION,
            appointed: None,
            campaign: None,
            attempts: 0,
            tries: 0,
            owed: None,
            early: Early::new(voters),
            heard: None,
            beats: vec![Instant::ORIGIN; voters],
            support: config.quorum.support(),
            due: None,
            beat_at: None,
            barred: false,
            config,
        }
    }

    /// Where we stand; the round is the generation.
    pub const fn standing(&self) -> Standing {
        Standing { state: self.state, vote: self.vote, round: Round(self.generation.0) }
    }

    /// Whether we are looking or have a leader. Not before the first election, nor between the end of a role
    /// and the next one.
    pub const fn has_standing(&self) -> bool {
        self.looking || !matches!(self.state, ServerState::Looking)
    }

    /// Whether an election is going on.
    pub const fn is_looking(&self) -> bool {
        self.looking
    }

    /// Whether we lead.
    pub(super) const fn leads(&self) -> bool {
        matches!(self.state, ServerState::Leading)
    }

    /// The highest generation that this server has seen.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// The last vote that it has given; it may be on its way to the disk.
    pub const fn granted_vote(&self) -> GrantedVote {
        self.granted_vote
    }

    /// Who votes.
    pub const fn quorum(&self) -> &Quorum {
        &self.config.quorum
    }

    /// Who votes, for those who know that others vote now: [`GenerationClock::update_quorum`] has to follow then.
    pub const fn quorum_mut(&mut self) -> &mut Quorum {
        &mut self.config.quorum
    }

    /// On whose grants a leader's decision rests.
    pub const fn support(&self) -> &Support {
        &self.support
    }

    /// The next time at which something is due, and what.
    pub fn deadline(&self) -> Option<(Instant, Timer)> {
        let due = self.due.map(|at| (at, Timer::Candidacy));
        let beat = self.beat_at.map(|at| (at, Timer::Heartbeat));
        [due, beat].into_iter().flatten().min()
    }

    /// Takes note that the ensemble serves in `epoch`.
    pub const fn establish(&mut self, epoch: Epoch) {
        self.vote.peer_epoch = epoch;
    }

    /// The role that the last election led to is over. Votes that were given stay given, and what waits for
    /// the disk is still told.
    pub fn retire(&mut self) {
        (self.state, self.looking) = (ServerState::Looking, false);
        (self.due, self.beat_at, self.campaign) = (None, None, None);
        self.vote = Vote::ABSTENTION;
    }

    /// Others vote from now on, see [`GenerationClock::quorum_mut`], and perhaps we follow in another way.
    /// Generation and votes are those of the server, whatever the membership.
    pub fn update_quorum(&mut self, observer: bool, now: Instant) {
        let voters = self.config.quorum.voters().len();
        self.config.observer = observer;
        self.early = Early::new(voters);
        self.beats = vec![now; voters];
        self.support = self.config.quorum.support();
        self.campaign = None;
    }

    /// Begins anew under another configuration: settled on no leader.
    pub fn reconfigure(&mut self, config: ClockConfig, now: Instant) {
        let observer = config.observer;
        self.config = config;
        self.retire();
        self.update_quorum(observer, now);
    }

    /// Jitter begins anew. For model checkers.
    pub fn rewind(&mut self) {
        self.rng = Rng::new(self.config.seed);
    }

    /// How new we are, and say that we are.
    pub(super) const fn claim(&self) -> Claim {
        Claim { current_epoch: self.own.peer_epoch, last: self.own.zxid }
    }

    /// A message with what every message tells.
    pub(super) fn message(&self, claim: Claim, body: Body) -> GenerationMessage {
        let (from, generation, config) = (self.config.id, self.generation, Bytes::new());
        GenerationMessage { from, generation, claim, body, config, knows_probes: false }
    }

    /// Says something, with all that every message tells.
    pub(super) fn send(&self, to: Recipient, body: Body, out: &mut Vec<ClockOutput>) {
        let message = self.message(self.claim(), body);
        out.push(ClockOutput::Send { to, message });
    }

    /// Whether we may ask to lead: we have weight, and a history that is known, could be followed, and begin with
    /// a vote for no other server: that one goes first.
    pub(super) fn is_candidate(&self) -> bool {
        let ours = self.own.leader == self.config.id || self.own.leader == ServerId::NONE;
        let knows = self.own.zxid != Zxid::UNKNOWN && self.own != Vote::ABSTENTION;
        let weighs = self.config.quorum.weight(self.config.id) > 0;
        ours && knows && weighs && !self.barred
    }

    /// Whether a leader lives, as far as we know: no other server is granted anything.
    pub(super) fn has_live_leader(&self, at: Instant) -> bool {
        let recent = |heard: Instant| at.since(heard) < self.config.rules.timeout_min;
        self.leads() || self.heard.is_some_and(recent)
    }

    /// A time-out, drawn anew.
    pub(super) fn draw(&mut self) -> Duration {
        let (min, max) = (self.config.rules.timeout_min, self.config.rules.timeout_max);
        let span = u64::try_from((max.saturating_sub(min)).as_nanos()).unwrap_or(u64::MAX);
        min + Duration::from_nanos(self.rng.below(span.saturating_add(1)))
    }

    /// When we ask to lead, if nothing happens before. A voter of the next membership alone lets those of the
    /// present one go first.
    pub(super) fn listen(&mut self, at: Instant) {
        if !self.is_candidate() {
            self.due = None;
            return;
        }
        let wait = self.draw();
        let later = if self.own.leader == self.config.id { Duration::ZERO } else { wait };
        self.due = Some(at + wait + later);
    }

    /// A later generation is seen: ours is over, and with it what we were about to do in it. Our vote
    /// is another matter.
    pub(super) fn see(
        &mut self,
        generation: Generation,
        reason: Reason,
        out: &mut Vec<ClockOutput>,
    ) {
        if generation <= self.generation {
            return;
        }
        let change = Change::Round { from: Round(self.generation.0), to: Round(generation.0) };
        out.push(ClockOutput::Changed(change, reason));
        self.generation = generation;
        self.campaign = None;
    }

    /// This server votes for a candidate.
    pub(super) fn stand_for(&mut self, vote: Vote, reason: Reason, out: &mut Vec<ClockOutput>) {
        if vote != self.vote {
            let change = Change::Vote { from: self.vote, to: vote };
            out.push(ClockOutput::Changed(change, reason));
        }
        self.vote = vote;
    }

    /// The election is over.
    pub(super) fn decide(&mut self, vote: Vote, reason: Reason, out: &mut Vec<ClockOutput>) {
        let to = if vote.leader == self.config.id {
            ServerState::Leading
        } else if self.config.observer {
            ServerState::Observing
        } else {
            ServerState::Following
        };
        self.stand_for(vote, reason.clone(), out);
        let change = Change::State { from: self.state, to };
        out.push(ClockOutput::Changed(change, reason));
        (self.state, self.looking, self.campaign) = (to, false, None);
        (self.tries, self.appointed) = (0, None);
        out.push(ClockOutput::Decided(self.standing()));
    }

    /// Our role is to end.
    pub(super) fn leave(&mut self, reason: Reason, out: &mut Vec<ClockOutput>) {
        (self.due, self.beat_at) = (None, None);
        out.push(ClockOutput::Leave(reason, Cue::Fresh));
    }

    /// The same, since the leader was silent for a time-out.
    pub(super) fn leave_silent(&mut self, out: &mut Vec<ClockOutput>) {
        (self.due, self.beat_at) = (None, None);
        let leader = self.vote.leader;
        out.push(ClockOutput::Leave(Reason::LeaderSilent { leader }, Cue::Silence));
    }
}
