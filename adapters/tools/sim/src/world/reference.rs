//! How a server of ZooKeeper elects, around one of ours.
//!
//! ```text
//!   a notification ─► waits? ─┬─ not better: gone, and the wait begins anew
//!                             ├─ better ─────────────────────────────────► the server, as ever
//!                     has a role? answered, and nothing else comes of it
//! ```
//!
//! From `FastLeaderElection` and `QuorumCnxManager` of 3.8, as far as rounds go: a server that has counted a quorum
//! takes what comes for another 200 ms, looks at nothing but whether the vote is better, and begins to wait
//! again with each one that is not; a server with a role answers those that look, and goes on with it whatever
//! they say; the first that is said on a new link is what was said last. A leader listens once it leads, and no
//! sooner; a follower knocks five times.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, LinkUp, Plane};
use quorate_core::message::{Mark, Message, Notification};
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState;

use crate::faults::FaultClass;
use crate::world::World;

/// How long a quorum is waited upon, from the last notification on (`finalizeWait`).
const WAIT: Duration = Duration::from_millis(200);
/// How often, and for how long, a follower knocks (`leaderConnectDelayDuringRetryMs`, five times).
const KNOCKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));

/// What a server of ZooKeeper has on its mind.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// Until when it waits, by its own clock, once it has counted a quorum.
    until: Option<Instant>,
    links: BTreeMap<LinkId, ServerId>,
    /// What it said last to everybody, and since then to one.
    told: Option<Notification>,
    answered: BTreeMap<ServerId, Notification>,
}

/// The durations of such a server.
pub(super) fn timing(ours: &Timing) -> Timing {
    let (every, patience) = KNOCKS;
    let ticks = patience.as_nanos().div_ceil(ours.tick.as_nanos().max(1));
    Timing {
        finalize_wait: WAIT,
        connect_retry_min: every,
        connect_retry_max: every,
        connect_limit: Some(u32::try_from(ticks).unwrap_or(1)),
        ..ours.clone()
    }
}

impl Reference {
    /// When the server is to be told the time: not before its wait is over.
    pub(super) fn deadline(&self, peer: &Peer) -> Option<Instant> {
        let (due, _) = peer.deadline()?;
        let waits = peer.due(Timer::Finalize).and(self.until);
        Some(waits.map_or(due, |until| due.max(until)))
    }

    /// Takes note of what comes of a step, and mends what such a server would not say.
    fn after(&mut self, now: Instant, peer: &Peer, up: Option<LinkId>, outputs: &mut [Output]) {
        let begun = peer.due(Timer::Finalize).is_some();
        self.until = begun.then(|| self.until.unwrap_or(now + WAIT));
        for output in outputs {
            let Output::Send { link, message: Message::Notification(said) } = output else {
                continue;
            };
            let to = self.links.get(link);
            if said.standing.state == ServerState::Looking {
                if self.told.as_ref().map(|told| told.standing) != Some(said.standing) {
                    self.answered.clear();
                }
                self.told = Some(said.clone());
            } else if up == Some(*link) {
                let before = to.and_then(|to| self.answered.get(to)).or(self.told.as_ref());
                *said = before.cloned().unwrap_or_else(|| said.clone());
            } else if let Some(to) = to {
                self.answered.insert(*to, said.clone());
            }
        }
    }
}

impl World {
    /// Whether something is kept from a server that elects as ZooKeeper's do: it waits, or has a role. One with a
    /// role answers.
    pub(super) fn withholds(&mut self, id: ServerId, event: &Event) -> bool {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return false };
        let (Some(reference), Some(peer)) = (&mut server.reference, &server.peer) else {
            return false;
        };
        if let Event::LinkUp(LinkUp { link, plane: Plane::Election, peer: Some(peer), .. }) = event
        {
            reference.links.insert(*link, *peer);
        }
        let Event::Received { link, message: Message::Notification(heard) } = event else {
            return false;
        };
        let Some(from) = reference.links.get(link).copied() else { return false };
        let (standing, heard) = (peer.standing(), heard.standing);
        let votes = peer.config().quorum().is_voter(from);
        if peer.due(Timer::Finalize).is_some() {
            // A peer that is behind is told so by the thread that reads, and goes into the queue all the same.
            let behind = heard.state == ServerState::Looking && heard.round < standing.round;
            let better = heard.vote.better_than(&standing.vote).is_some() && !behind;
            if votes && !better {
                reference.until = Some(server.clock.shows(now) + WAIT);
                self.coverage.hit(FaultClass::WaitBegunAnew);
            }
            return votes && !better && !behind;
        }
        let settled = server.brief.is_some_and(|brief| brief.state != ServerState::Looking);
        if !settled || peer.due(Timer::Notification).is_some() {
            return false;
        }
        if heard.state == ServerState::Looking || !votes {
            let config = peer.config().membership.text().clone();
            let version = Notification::VERSION;
            let answer = Notification { standing, version, config, mark: Mark::NONE };
            reference.answered.insert(from, answer.clone());
            self.network.send(now, *link, Message::Notification(answer));
        }
        true
    }

    /// A server that elects as ZooKeeper's do has made a step.
    pub(super) fn after_reference(
        &mut self,
        id: ServerId,
        up: Option<LinkId>,
        outputs: &mut [Output],
    ) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        let (Some(reference), Some(peer)) = (&mut server.reference, &server.peer) else { return };
        reference.after(server.clock.shows(now), peer, up, outputs);
        let leads = peer.status().state == ServerState::Leading;
        self.network.listens(id, leads);
    }
}
