//! What must hold after every single step, whatever the network and the disks have done.
//!
//! | rule | |
//! |---|---|
//! | [`Leadership`](Rule::Leadership) | one leader per epoch with a quorum of promises, over all history; it may be elected at all |
//! | [`Promise`](Rule::Promise) | what leaves a server as a promise is on its disk at that moment |
//! | [`Durability`](Rule::Durability) | epochs on disk never go back, and the current one is not above the accepted one |
//! | [`Quorum`](Rule::Quorum) | whoever is elected or established has a quorum, counted again here |
//! | [`Newest`](Rule::Newest) | the history of a leader is at least as new as that of a quorum |
//! | [`Rounds`](Rule::Rounds) | a server's round never goes back, except to join a leader that others follow |
//! | [`Service`](Rule::Service) | a learner serves only under the established leader of its epoch |
//! | [`Boundary`](Rule::Boundary) | outputs name links that are up, dials do not overlap, writes have new tickets |
//!
//! What must hold of transactions stands in a table of its own, in `ledger.rs`.
//!
//! The checker sees what the disks really hold, which no server does, and counts quorums with its own
//! arithmetic. It trusts nothing that a server reports beyond its state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use quorate_core::id::{LinkId, ReadId, ServerId, Ticket};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{Message, Notification, Packet, Run};
use quorate_core::output::Output;
use quorate_core::report::{Change, Phase, Reason, Status};
use quorate_core::txn::RequestId;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::{Contents, Done, Held};
use crate::ensemble::Ensemble;
use crate::ledger::{Answer, Ledger, Outcome};

/// What was broken; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Two leaders of one epoch, established or promised by a quorum, or one that may not lead.
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
    /// Two transactions of one zxid, or one that no leader proposed.
    Payload,
    /// A committed transaction that is not on a quorum of disks, is missing at a leader, or is cut.
    Committed,
    /// A server that applies what it must not.
    Applied,
    /// An acknowledgement of NEWLEADER without the leader's history.
    Synchronised,
    /// A log with a hole.
    Contiguous,
    /// A snapshot that holds something else than its label says.
    Snapshot,
    /// A read that misses what was acknowledged before.
    Read,
    /// A client was told what is not so.
    Outcome,
    /// Work that only one may do begins at a leader while another can still count on its lease.
    Lease,
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
    /// What each server could vote with when it promised an epoch.
    promised: BTreeMap<Epoch, BTreeMap<ServerId, Vote>>,
    elected: u64,
    /// Whether the membership may change.
    pub(crate) may_change: bool,
    pub(crate) ledger: Ledger,
}

/// What is known of one server.
#[derive(Debug)]
struct Seen {
    durable: Held,
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
    /// A checker for an ensemble whose disks hold this.
    pub(crate) fn new(ensemble: Ensemble, disks: &BTreeMap<ServerId, Contents>) -> Self {
        Self {
            ledger: Ledger::new(disks),
            ensemble,
            servers: BTreeMap::new(),
            leaders: BTreeMap::new(),
            promised: BTreeMap::new(),
            elected: 0,
            may_change: false,
        }
    }

    /// Every leader that was established, by its epoch.
    pub fn leaders(&self) -> &BTreeMap<Epoch, ServerId> {
        &self.leaders
    }

    /// Who takes part now, and what makes a quorum: what the last committed change has led to.
    pub fn ensemble(&self) -> &Ensemble {
        self.ledger.in_force().unwrap_or(&self.ensemble)
    }

    /// How many elections were won, established or not.
    pub fn elected(&self) -> u64 {
        self.elected
    }

    /// How many transactions are committed.
    pub fn commits(&self) -> u64 {
        self.ledger.commits()
    }

    /// The last committed transaction.
    pub fn committed(&self) -> Zxid {
        self.ledger.committed()
    }

    /// How many requests were applied where they were asked.
    pub fn acknowledged(&self) -> u64 {
        self.ledger.acknowledged()
    }

    /// How many reads were answered.
    pub fn reads_answered(&self) -> u64 {
        self.ledger.reads_answered
    }

    /// What has become of a request.
    pub fn outcome(&self, id: RequestId) -> Option<Outcome> {
        self.ledger.outcome(id)
    }

    /// What has become of a read.
    pub fn answer(&self, server: i64, read: ReadId) -> Option<Answer> {
        self.ledger.answer(ServerId(server), read)
    }

    /// A server starts with what its disk holds.
    pub(crate) fn on_start(&mut self, id: ServerId, contents: &Contents) {
        self.ledger.on_start(id);
        let own_votes = self.servers.remove(&id).map(|seen| seen.own_votes).unwrap_or_default();
        let seen = Seen {
            durable: Held::of(contents),
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
        self.ledger.on_wipe(id);
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
            | Event::Drained(_)
            | Event::Progress(_)
            | Event::Located { .. }
            | Event::Streamed { .. }
            | Event::Restored(_)
            | Event::SnapshotTaken(_)
            | Event::Propose(_)
            | Event::Prepared { .. }
            | Event::Read(_)
            | Event::Oracle(_)
            | Event::StepDown
            | Event::HandOver(_)
            | Event::Released
            | Event::Shutdown => {}
        }
    }

    /// A write has become durable.
    pub(crate) fn on_durable(&mut self, id: ServerId, done: &Done) -> Result<(), Violation> {
        self.ledger.on_durable(id, done)?;
        let now = done.held;
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut seen.durable, now);
        if now.accepted_epoch > before.accepted_epoch {
            let vote =
                Vote { peer_epoch: before.current_epoch, zxid: before.last_zxid, leader: id };
            self.promised.entry(now.accepted_epoch).or_default().entry(id).or_insert(vote);
        }
        if now.accepted_epoch < before.accepted_epoch || now.current_epoch < before.current_epoch {
            return broken(Rule::Durability, id, format!("from {before:?} to {now:?}"));
        }
        let highest = now.current_epoch.max(now.last_zxid.epoch());
        if highest > now.accepted_epoch {
            return broken(Rule::Durability, id, format!("above the accepted epoch: {now:?}"));
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
            // With another membership rounds begin anew; and where there may be one, whoever proposes nobody
            // goes with the others.
            let follows = !status.voter && self.may_change;
            let anew = follows || outputs.iter().any(is_reconfiguring);
            if !anew && (before.1 != ServerState::Looking || !joins) {
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
        // A reign may begin and end in one step: what it inherited may take its leader's vote away.
        let begins = before.1 == ServerState::Leading && outputs.iter().any(is_beginning);
        if (established || begins) && !before.2 {
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
        // Whoever has not heard of a change counts by what was before, and is found out when it is established.
        let changed = self.ledger.has_changes();
        if !changed && !self.ensemble.may_lead(id) {
            return broken(Rule::Leadership, id, "it may not lead, and was elected".to_owned());
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else elects")]
        let members: BTreeSet<ServerId> = match reason {
            Reason::Quorum { members, .. }
            | Reason::Settled { members, .. }
            | Reason::Joined { members, .. } => members.iter().copied().collect(),
            // Whoever gives the seat away led a quorum, and the next reign is not established without one.
            Reason::HandedOver { .. } => return Ok(()),
            other => return broken(Rule::Quorum, id, format!("elected because {other}")),
        };
        if !changed && !self.ensemble.is_quorum(|member| members.contains(&member)) {
            return broken(Rule::Quorum, id, format!("elected by {members:?}"));
        }
        let own = status.vote;
        if own.leader != id {
            return broken(Rule::Leadership, id, format!("leads with a vote for {own}"));
        }
        // Where others follow already, perhaps since an earlier round, a higher id alone is no reason.
        let joined = matches!(reason, Reason::Joined { .. });
        // Nor does it matter then what those said of it: it brings what it has.
        let held = self.servers.get(&id).filter(|_| joined).map(|seen| seen.durable);
        let held =
            held.map_or(own, |h| Vote { peer_epoch: h.current_epoch, zxid: h.last_zxid, ..own });
        let own = own.max(held);
        let newer = |theirs: &Vote| {
            (theirs.peer_epoch, theirs.zxid) > (own.peer_epoch, own.zxid)
                || (*theirs > own && !joined)
        };
        let may_lead = |member: &ServerId| !changed && self.ensemble.may_lead(*member);
        for member in members.into_iter().filter(may_lead) {
            if let Some(theirs) = self.own_vote(member, status.round).filter(newer) {
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
        let promised = self.promised.get(&epoch);
        let own = promised.and_then(|votes| votes.get(&id));
        let ensemble = self.ensemble();
        self.ledger.on_established(id, epoch, ensemble)?;
        if !holds(&id) {
            return broken(Rule::Promise, id, format!("leads epoch {epoch}, not on its disk"));
        }
        if !ensemble.is_quorum(|member| holds(&member)) {
            return broken(Rule::Quorum, id, format!("no quorum has epoch {epoch} on disk"));
        }
        // Whoever stood behind the new leader had no newer history when it promised to follow nobody
        // older. A higher id alone is no newer history. Who comes later may have one: it is cut.
        let no_newer = |member: ServerId| {
            let theirs = promised.and_then(|votes| votes.get(&member));
            theirs.zip(own).is_some_and(|(theirs, own)| {
                (theirs.peer_epoch, theirs.zxid) <= (own.peer_epoch, own.zxid)
            })
        };
        if !ensemble.is_quorum(no_newer) {
            return broken(Rule::Newest, id, format!("{own:?} leads {promised:?}"));
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
            Output::Pace(link)
            | Output::Locate { link, .. }
            | Output::StreamLog { link, .. }
            | Output::SendSnapshot { link, .. }
            | Output::ReceiveSnapshot { link, .. } => {
                if !seen.links.contains(link) {
                    let detail = format!("{output:?}, and that is not up");
                    return broken(Rule::Boundary, id, detail);
                }
            }
            Output::Prepare { .. }
            | Output::DeliverThrough(_)
            | Output::TakeSnapshot(_)
            | Output::Abandon
            | Output::Answer(_)
            | Output::Accepted(_)
            | Output::Refused { .. }
            | Output::ReadRefused { .. }
            | Output::Release
            | Output::Keep
            | Output::HandedOver(_)
            | Output::Report(_) => {}
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
                // One that comes back blank has told the truth on an earlier link.
                let blank = *last == Zxid::ZERO && current_epoch.is_none();
                (*last == durable.last_zxid || blank)
                    && announced.is_some_and(|epoch| durable.accepted_epoch == *epoch)
                    && current_epoch.is_none_or(|epoch| durable.current_epoch == epoch)
            }
            Message::Packet(Packet::Ack(zxid)) if zxid.is_epoch_start() => {
                self.ledger.on_history_ack(id, zxid.epoch())?;
                durable.current_epoch >= zxid.epoch()
            }
            Message::Packet(Packet::Ack(zxid) | Packet::Acks(Run { last: zxid, .. })) => {
                durable.current_epoch >= zxid.epoch() && durable.last_zxid >= *zxid
            }
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

/// Whether a server begins to broadcast; a leader, if that is what it is.
pub(crate) fn is_beginning(output: &Output) -> bool {
    let begun = |change: &Change| matches!(change, Change::Phase { to: Phase::Broadcast, .. });
    matches!(output, Output::Report(report) if begun(&report.change))
}

fn is_reconfiguring(output: &Output) -> bool {
    matches!(output, Output::Report(report) if matches!(report.change, Change::Configuration(_)))
}

pub(crate) fn broken<T>(rule: Rule, server: ServerId, detail: String) -> Result<T, Violation> {
    Err(Violation { rule, server, detail })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
