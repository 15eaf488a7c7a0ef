//! What must hold after every single step, whatever the network and the disks have done.
//!
//! | rule | |
//! |---|---|
//! | [`Leadership`](Rule::Leadership) | one established leader per epoch, over all history; it may be elected at all |
//! | [`Promise`](Rule::Promise) | what leaves a server as a promise is on its disk at that moment |
//! | [`Durability`](Rule::Durability) | epochs on disk never go back, and the current one is not above the accepted one |
//! | [`Quorum`](Rule::Quorum) | whoever is elected or established has a quorum, counted again here |
//! | [`Newest`](Rule::Newest) | the history of a leader is at least as new as that of a quorum |
//! | [`Rounds`](Rule::Rounds) | a server's round never goes back, except to join a leader that others follow |
//! | [`Service`](Rule::Service) | a learner serves only under the established leader of its epoch |
//! | [`Boundary`](Rule::Boundary) | outputs name links that are up, dials do not overlap, writes have new tickets |
//!
//! The checker sees what the disks really hold, which no server does, and counts quorums with its own
//! arithmetic. It trusts nothing that a server reports beyond its state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{Message, Notification, Packet};
use quorate_core::output::Output;
use quorate_core::report::{Change, Reason, Status};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::Epoch;

use crate::ensemble::Ensemble;

/// What was broken; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Two leaders of one epoch, or one that may not lead.
    Leadership,
    /// A promise that the disk does not hold.
    Promise,
    /// A disk that went back.
    Durability,
    /// A decision without a quorum.
    Quorum,
    /// A leader that lacks history.
    Newest,
    /// A round that went back.
    Rounds,
    /// A learner that serves under nobody.
    Service,
    /// An output that makes no sense.
    Boundary,
    /// A message that does not survive its bytes.
    Codec,
    /// A server that spins, or stopped.
    Progress,
}

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule:?} broken by server {server}: {detail}")]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// By whom.
    pub server: ServerId,
    /// How.
    pub detail: String,
}

/// Looks at everything and objects.
#[derive(Debug)]
pub struct Checker {
    ensemble: Ensemble,
    servers: BTreeMap<ServerId, Seen>,
    /// Every leader that was ever established.
    leaders: BTreeMap<Epoch, ServerId>,
    /// What each server could vote with before it took over the history of an epoch.
    before: BTreeMap<Epoch, BTreeMap<ServerId, Vote>>,
    elected: u64,
}

/// What is known of one server.
#[derive(Debug)]
struct Seen {
    durable: Durable,
    round: Round,
    state: ServerState,
    established: bool,
    links: BTreeSet<LinkId>,
    dials: BTreeSet<(Plane, ServerId)>,
    /// The epoch announced on each link.
    announced: BTreeMap<LinkId, Epoch>,
    ticket: Ticket,
    /// The oldest vote for itself in each round, over all its incarnations; none where it joined a
    /// leader that others followed, since that is no vote.
    own_votes: BTreeMap<Round, Option<Vote>>,
}

impl Checker {
    /// A checker for an ensemble.
    pub fn new(ensemble: Ensemble) -> Self {
        Self {
            ensemble,
            servers: BTreeMap::new(),
            leaders: BTreeMap::new(),
            before: BTreeMap::new(),
            elected: 0,
        }
    }

    /// Every leader that was established, by its epoch.
    pub fn leaders(&self) -> &BTreeMap<Epoch, ServerId> {
        &self.leaders
    }

    /// How many elections were won, established or not.
    pub fn elected(&self) -> u64 {
        self.elected
    }

    /// A server starts with what its disk holds.
    pub(crate) fn on_start(&mut self, id: ServerId, durable: &Durable) {
        let own_votes = self.servers.remove(&id).map(|seen| seen.own_votes).unwrap_or_default();
        let seen = Seen {
            durable: durable.clone(),
            round: Round::default(),
            state: ServerState::Looking,
            established: false,
            links: BTreeSet::new(),
            dials: BTreeSet::new(),
            announced: BTreeMap::new(),
            ticket: Ticket(0),
            own_votes,
        };
        self.servers.insert(id, seen);
    }

    /// A server's disk is emptied; nothing that it promised binds it any more.
    pub(crate) fn on_wipe(&mut self, id: ServerId) {
        self.servers.remove(&id);
    }

    /// A server is about to hear something.
    pub(crate) fn on_event(&mut self, id: ServerId, event: &Event) {
        let Some(seen) = self.servers.get_mut(&id) else { return };
        match event {
            Event::LinkUp(up) => {
                seen.links.insert(up.link);
                if let (true, Some(peer)) = (up.dialled, up.peer) {
                    seen.dials.remove(&(up.plane, peer));
                }
            }
            Event::LinkDown { link, .. } => {
                seen.links.remove(link);
                seen.announced.remove(link);
            }
            Event::DialFailed { plane, peer } => {
                seen.dials.remove(&(*plane, *peer));
            }
            Event::Received {
                link,
                message: Message::Packet(Packet::LeaderInfo { epoch, .. }),
            } => {
                seen.announced.insert(*link, *epoch);
            }
            Event::Tick
            | Event::Received { .. }
            | Event::Persisted(_)
            | Event::Oracle(_)
            | Event::StepDown
            | Event::Shutdown => {}
        }
    }

    /// A write has become durable.
    pub(crate) fn on_durable(&mut self, id: ServerId, now: &Durable) -> Result<(), Violation> {
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut seen.durable, now.clone());
        if now.current_epoch > before.current_epoch {
            let vote =
                Vote { peer_epoch: before.current_epoch, zxid: before.last_zxid, leader: id };
            self.before.entry(now.current_epoch).or_default().entry(id).or_insert(vote);
        }
        if now.accepted_epoch < before.accepted_epoch || now.current_epoch < before.current_epoch {
            return broken(Rule::Durability, id, format!("from {before:?} to {now:?}"));
        }
        if now.current_epoch > now.accepted_epoch {
            return broken(Rule::Durability, id, format!("current above accepted: {now:?}"));
        }
        Ok(())
    }

    /// A server has taken a step; its outputs are about to be carried out.
    pub(crate) fn on_step(
        &mut self,
        id: ServerId,
        status: &Status,
        outputs: &[Output],
    ) -> Result<(), Violation> {
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = (seen.round, seen.state, seen.established);
        let leads = status.state == ServerState::Leading;
        seen.round = status.round;
        seen.state = status.state;
        seen.established = leads && status.serving;
        // A round may begin and end in one step.
        if before.1 == ServerState::Looking && status.voter {
            let durable = &seen.durable;
            let vote =
                Vote { peer_epoch: durable.current_epoch, zxid: durable.last_zxid, leader: id };
            let entry = seen.own_votes.entry(status.round).or_insert(Some(vote));
            *entry = entry.map(|earlier| earlier.min(vote));
        }
        if outputs.iter().any(is_joining) {
            seen.own_votes.insert(status.round, None);
        }
        let established = seen.established;
        if status.round < before.0 {
            let joins = matches!(status.state, ServerState::Following | ServerState::Observing);
            if before.1 != ServerState::Looking || !joins {
                let detail = format!("{} after {}, {}", status.round, before.0, status.state);
                return broken(Rule::Rounds, id, detail);
            }
        }
        for output in outputs {
            if let Output::Report(report) = output {
                if let Change::State { to: ServerState::Leading, .. } = report.change {
                    self.elected += 1;
                    self.on_elected(id, status, &report.reason)?;
                }
            }
        }
        if established && !before.2 {
            self.on_established(id, status)?;
        }
        if status.serving && !leads {
            let leader = self.leaders.get(&status.current_epoch);
            if leader.is_none() || leader.copied() != status.leader {
                let detail = format!(
                    "serves under {:?} in epoch {}, which {leader:?} leads",
                    status.leader, status.current_epoch
                );
                return broken(Rule::Service, id, detail);
            }
        }
        Ok(())
    }

    fn on_elected(&self, id: ServerId, status: &Status, reason: &Reason) -> Result<(), Violation> {
        if !self.ensemble.may_lead(id) {
            return broken(Rule::Leadership, id, "it may not lead, and was elected".to_owned());
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else elects")]
        let members: BTreeSet<ServerId> = match reason {
            Reason::Quorum { members, .. }
            | Reason::Settled { members, .. }
            | Reason::Joined { members, .. } => members.iter().copied().collect(),
            other => return broken(Rule::Quorum, id, format!("elected because {other}")),
        };
        if !self.ensemble.is_quorum(|member| members.contains(&member)) {
            return broken(Rule::Quorum, id, format!("elected by {members:?}"));
        }
        let own = status.vote;
        if own.leader != id {
            return broken(Rule::Leadership, id, format!("leads with a vote for {own}"));
        }
        for member in members.into_iter().filter(|member| self.ensemble.may_lead(*member)) {
            if let Some(theirs) = self.own_vote(member, status.round).filter(|v| *v > own) {
                let detail = format!("won with {own}, {member} began the round with {theirs}");
                return broken(Rule::Newest, id, detail);
            }
        }
        Ok(())
    }

    fn own_vote(&self, id: ServerId, round: Round) -> Option<Vote> {
        *self.servers.get(&id)?.own_votes.get(&round)?
    }

    fn on_established(&mut self, id: ServerId, status: &Status) -> Result<(), Violation> {
        let epoch = status.current_epoch;
        if let Some(first) = self.leaders.insert(epoch, id) {
            let detail = format!("established in epoch {epoch}, which {first} led already");
            return broken(Rule::Leadership, id, detail);
        }
        let holds = |member: &ServerId| {
            self.servers.get(member).is_some_and(|seen| seen.durable.current_epoch >= epoch)
        };
        let before = self.before.get(&epoch);
        let own = before.and_then(|votes| votes.get(&id));
        if !holds(&id) {
            return broken(Rule::Promise, id, format!("leads epoch {epoch}, not on its disk"));
        }
        if !self.ensemble.is_quorum(|member| holds(&member)) {
            return broken(Rule::Quorum, id, format!("no quorum has epoch {epoch} on disk"));
        }
        // Whoever stands behind the new leader had no newer history when it took over the leader's.
        // A higher id alone is no newer history.
        let no_newer = |member: ServerId| {
            let theirs = before.and_then(|votes| votes.get(&member));
            holds(&member)
                && theirs.zip(own).is_none_or(|(theirs, own)| {
                    (theirs.peer_epoch, theirs.zxid) <= (own.peer_epoch, own.zxid)
                })
        };
        if !self.ensemble.is_quorum(no_newer) {
            return broken(Rule::Newest, id, format!("{own:?} leads {before:?}"));
        }
        Ok(())
    }

    /// A server's output is carried out now; `durable` is what its disk holds at this moment.
    pub(crate) fn on_output(&mut self, id: ServerId, output: &Output) -> Result<(), Violation> {
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        match output {
            Output::Dial { plane, peer, addresses } => {
                if addresses.is_empty() || !seen.dials.insert((*plane, *peer)) {
                    let detail = format!("a second dial of {peer} on {plane:?}, or to nowhere");
                    return broken(Rule::Boundary, id, detail);
                }
            }
            Output::Hangup { link, .. } => {
                if !seen.links.remove(link) {
                    return broken(Rule::Boundary, id, format!("hangs up {link}, which is not up"));
                }
            }
            Output::Send { link, message } => {
                if !seen.links.contains(link) {
                    let detail = format!("sends on {link}, which is not up: {message:?}");
                    return broken(Rule::Boundary, id, detail);
                }
                return self.on_send(id, *link, message);
            }
            Output::Persist { ticket, .. } => {
                if *ticket <= seen.ticket {
                    return broken(Rule::Boundary, id, format!("{ticket} again"));
                }
                seen.ticket = *ticket;
            }
            Output::Halt(fault) => return broken(Rule::Progress, id, fault.to_string()),
            Output::Report(_) => {}
        }
        Ok(())
    }

    fn on_send(&self, id: ServerId, link: LinkId, message: &Message) -> Result<(), Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(()) };
        let durable = &seen.durable;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others promise nothing")]
        let kept = match message {
            Message::Notification(Notification { standing, .. }) => {
                let own = standing.state == ServerState::Looking && standing.vote.leader == id;
                !own || standing.vote.peer_epoch <= durable.current_epoch
            }
            Message::Packet(Packet::LeaderInfo { epoch, .. }) => durable.accepted_epoch == *epoch,
            Message::Packet(Packet::AckEpoch { last, current_epoch }) => {
                let announced = seen.announced.get(&link);
                *last == durable.last_zxid
                    && announced.is_some_and(|epoch| durable.accepted_epoch == *epoch)
                    && current_epoch.is_none_or(|epoch| durable.current_epoch == epoch)
            }
            Message::Packet(Packet::Ack(zxid)) => durable.current_epoch >= zxid.epoch(),
            Message::Packet(Packet::UpToDate) => {
                self.leaders.get(&durable.current_epoch) == Some(&id)
            }
            _ => true,
        };
        if kept {
            return Ok(());
        }
        broken(Rule::Promise, id, format!("{message:?} leaves, and its disk holds {durable:?}"))
    }
}

fn is_joining(output: &Output) -> bool {
    matches!(output, Output::Report(report) if matches!(report.reason, Reason::Joined { .. }))
}

pub(crate) fn broken<T>(rule: Rule, server: ServerId, detail: String) -> Result<T, Violation> {
    Err(Violation { rule, server, detail })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
