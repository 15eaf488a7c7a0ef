//! One server: holds its role and routes what happens to the machine that decides.
//!
//! ```text
//!   Input ──►  Peer  ──► Elector     votes (or a GenerationClock)   looking
//!               │   ├──► Leader      discovery, synchronization, broadcast   leading
//!               │   ├──► Learner     the same from the other side            following, observing
//!               │   └──► Links       who is connected
//!   Output ◄────┘
//! ```
//!
//! The machines do not know one another. An election returns a decision, a role returns a
//! `RoleChange`; what follows from either is built here, and nothing else is decided here.
//!
//! This page is the boundary. What happens is handed out in `events`; what becomes of the role stands in
//! `turns`, what always holds in `checks`. What belongs to the server whatever its role is in `shared`,
//! and what it says in elections in `voting` and `generations`.

mod backoff;
mod checks;
mod early;
mod electing;
mod events;
mod generations;
mod linking;
mod listening;
mod role;
mod shared;
mod turns;
mod unreachable;
mod voting;

use alloc::vec::Vec;

use crate::config::{Config, ConfigError};
use crate::durable::Durable;
use crate::election::ElectorEvent;
use crate::generation::ClockEvent;
use crate::input::{Event, Input};
use crate::leader::pending::Purpose;
use crate::output::{Leadership, Output};
use crate::peer::backoff::Backoff;
use crate::peer::role::Role;
use crate::peer::shared::SharedParts;
use crate::reasons::Fault;
use crate::status::Status;
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{ServerState, Standing};
use crate::zxid::{Epoch, Zxid};

/// One server's protocol, complete: hand it inputs, carry out its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    role: Role,
    shared: SharedParts,
    /// The epoch in which this server serves.
    serving: Option<Epoch>,
    backoff: Backoff,
    /// The leadership was given to another server, or to us, and the new leadership has not begun.
    appointed: bool,
    /// What was said last of our leadership.
    told: Option<Leadership>,
}

impl Peer {
    /// A server that finds `durable` on its disk. Its first election begins with the first
    /// [`Event::Tick`], which [`Peer::deadline`] asks for at once.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub fn new(config: Config, durable: Durable) -> Result<Self, ConfigError> {
        Ok(Self {
            role: Role::Idle,
            shared: SharedParts::new(config, durable)?,
            serving: None,
            backoff: Backoff::default(),
            appointed: false,
            told: None,
        })
    }

    /// What has to be done because of `input`.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.step_into(input, &mut outputs);
        outputs
    }

    /// The same, appended to `outputs`; a notification that changes nothing allocates nothing.
    pub fn step_into(&mut self, input: Input, outputs: &mut Vec<Output>) {
        if matches!(self.role, Role::Stopped) {
            return;
        }
        self.shared.now = self.shared.now.max(input.at);
        let before = outputs.len();
        self.shared.outbox.swap(outputs);
        match input.event {
            Event::Received { link, message } => self.on_received(link, message),
            Event::Tick => self.on_tick(),
            Event::LinkUp(up) => self.on_link_up(&up),
            Event::LinkDown { link, cause } => self.on_link_down(link, cause),
            Event::DialFailed { plane, peer } => self.on_dial_failed(plane, peer),
            Event::Resolved { link, addresses } => self.on_resolved(link, addresses),
            Event::ListenFailed(plane) => self.on_listen_failed(plane),
            Event::Listening(plane) => self.on_listening(plane),
            Event::DiskLow(low) => self.shared.disk_low = low,
            Event::Persisted(ticket) => {
                self.shared.outbox.on_persisted(ticket);
                self.shared.history.on_persisted(&self.shared.outbox);
                while let Some(granted_vote) = self.shared.next_kept() {
                    self.on_clock(ClockEvent::Kept(granted_vote));
                }
                self.on_persisted();
            }
            Event::Prepared { epoch, drafts } => {
                self.with_leader(|leader, cx| leader.on_prepared(cx, epoch, drafts));
            }
            Event::Applied(through) => {
                let SharedParts { delivery, requests, outbox, .. } = &mut self.shared;
                delivery.on_applied(through);
                requests.on_applied(delivery.applied(), outbox);
            }
            Event::Replayed { through, outcome } => {
                let SharedParts { delivery, requests, history, outbox, .. } = &mut self.shared;
                delivery.on_replayed(through, outcome.is_ok(), history, outbox);
                requests.on_applied(delivery.applied(), outbox);
            }
            Event::Propose(request) => self.on_propose(request),
            Event::Submit { epoch, request } => self.on_submit(epoch, request),
            Event::Read(read) => self.on_read(read),
            Event::Touch(sessions) => {
                self.with_learner(|learner, cx| learner.on_touch(cx, sessions));
            }
            Event::Revalidate(body) => {
                self.with_learner(|learner, cx| learner.on_revalidate(cx, body));
            }
            Event::Revalidated { to, body } => {
                self.with_leader(|leader, cx| leader.on_revalidated(cx, to, body));
            }
            Event::Drained(link) => self.with_leader(|leader, cx| leader.on_drained(cx, link)),
            Event::Progress(link) => {
                self.with_leader(|leader, cx| leader.on_progress(cx, link));
                self.with_learner(|learner, cx| learner.on_progress(cx, link));
            }
            Event::Located { link, located } => {
                self.with_leader(|leader, cx| leader.on_located(cx, link, located));
                self.with_learner(|learner, cx| learner.on_located(cx, link, located));
            }
            Event::Streamed { link, outcome } => {
                self.with_leader(|leader, cx| leader.on_streamed(cx, link, outcome));
            }
            Event::Restored { link, membership } => {
                self.with_learner(|learner, cx| learner.on_restored(cx, link, membership.as_ref()));
            }
            Event::SnapshotTaken(_) => self.shared.context().on_snapshot_taken(),
            Event::TakeSnapshot => self.shared.context().on_snapshot_asked(),
            Event::Oracle(yes) => {
                self.elect(ElectorEvent::Oracle(yes));
                self.on_clock(ClockEvent::Oracle(yes));
            }
            Event::StepDown => {
                self.with_leader(|leader, cx| leader.on_transfer(cx, None, Purpose::StepDown));
            }
            Event::TransferLeadership(to) => self.on_transfer(to),
            Event::Released(release) => {
                self.with_leader(|leader, cx| leader.on_released(cx, release));
            }
            Event::Shutdown => self.on_shutdown(),
        }
        self.conclude(before, outputs);
    }

    /// The end of a step: `outputs` is what is to be done, those of this step behind the first `before`.
    #[inline]
    fn conclude(&mut self, before: usize, outputs: &mut Vec<Output>) {
        if self.shared.delivery.is_due() {
            self.shared.hand_out();
        }
        if let Some(what) = self.broken() {
            self.shared.outbox.stop_short(before, Fault::Broken(what));
        }
        if self.shared.outbox.is_halted() {
            self.role = Role::Stopped;
            self.serving = None;
        }
        let leadership = self.leadership();
        if leadership != self.told {
            self.told = leadership;
            self.shared.outbox.push_first(before, Output::Leadership(leadership));
        }
        self.shared.outbox.swap(outputs);
    }

    /// The earliest time at which a [`Event::Tick`] is due, and what for. A stopped server has none.
    pub fn deadline(&self) -> Option<(Instant, Timer)> {
        if matches!(self.role, Role::Stopped) {
            return None;
        }
        self.shared.deadline()
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        let standing = self.shared.elector.standing();
        let (phase, leader, learners) = self.role.seen_by(self.shared.config.id);
        Status {
            id: self.shared.config.id,
            state: if leader.is_some() { standing.state } else { ServerState::Looking },
            phase,
            round: standing.round,
            vote: standing.vote,
            leader,
            accepted_epoch: self.shared.epochs.accepted_epoch,
            current_epoch: self.shared.epochs.current_epoch,
            last: self.shared.history.last(),
            processed: self.serving.map_or(self.shared.history.last(), |epoch| {
                Zxid::start_of(epoch).max(self.shared.history.committed())
            }),
            serving: self.serving.is_some(),
            voter: self.shared.config.is_voter(),
            voters: self.shared.elector.quorum().voters().len(),
            learners,
            linked: self.shared.links.linked().collect(),
        }
    }

    /// The leadership of this server, if it leads an established ensemble: what the last
    /// [`Output::Leadership`] said.
    pub const fn leadership(&self) -> Option<Leadership> {
        match (&self.role, self.serving) {
            (Role::Leading(leader), Some(epoch)) if !leader.awaits_lease() => {
                Some(Leadership { epoch, lease: leader.lease() })
            }
            _ => None,
        }
    }

    /// The last transaction that is known here to be committed; zero if none is.
    pub fn committed(&self) -> Zxid {
        self.shared.history.committed()
    }

    /// Where this server stands in the election, as it tells others.
    pub const fn standing(&self) -> Standing {
        self.shared.elector.standing()
    }

    /// What this server was told, with the configuration as it is now.
    pub const fn config(&self) -> &Config {
        &self.shared.config
    }
}
