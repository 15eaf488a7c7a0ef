//! What must hold after every single step, whatever the network and the disks have done.
//!
//! ```text
//!   Checker ── rule         what there is to break
//!           ├─ elections    who may lead, and with whose support
//!           ├─ promises     what is on disk when it is promised, and after a crash
//!           ├─ leases       whom a voter may help to establish, and in which order leaderships begin
//!           ├─ conduct      what servers owe to one another
//!           ├─ accounting   what is done with transactions, and who is told
//!           └─ Ledger       transactions: what is committed, who has it, who was told
//! ```
//!
//! The checker sees what the disks really hold, which no server does, and counts quorums with its own
//! arithmetic. It trusts nothing that a server reports beyond its state.

mod accounting;
mod conduct;
mod elections;
mod leases;
mod promises;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::config::Config;
use quorate_core::generation_message::Generation;
use quorate_core::id::{ReadId, ServerId, Ticket};
use quorate_core::output::{Output, Write};
use quorate_core::report::{Change, Reason};
use quorate_core::status::{Phase, Status};
use quorate_core::txn::{RequestId, Txn};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::checker::conduct::Conduct;
use crate::checker::leases::Leases;
use crate::checker::seen::Seen;
use crate::disk::{Contents, Disk, Held};
use crate::ensemble::Ensemble;
use crate::ledger::{Answer, Ledger, Outcome};
use crate::rule::{Rule, Violation, broken};

pub(crate) use accounting::{Around, Standing};

/// The most links that one server of ours may have at a time, of any kind and in any state.
const LINKS_MAX: usize = 512;
/// The most that one step may want done.
const OUTPUTS_MAX: usize = 20_000;

/// Looks at everything and objects.
#[derive(Debug)]
pub struct Checker {
    ensemble: Ensemble,
    servers: BTreeMap<ServerId, Seen>,
    /// Every leader that was ever established.
    leaders: BTreeMap<Epoch, ServerId>,
    /// What each server could vote with when it promised an epoch.
    promised: BTreeMap<Epoch, BTreeMap<ServerId, Vote>>,
    /// To whom each voter has promised an epoch.
    granted: BTreeMap<(ServerId, Epoch), ServerId>,
    elected: u64,
    /// Who was elected in each generation, where servers elect by generation.
    generations: BTreeMap<Round, ServerId>,
    /// For whom each voter has voted in a generation, as it has told.
    voted: BTreeMap<(ServerId, Generation), ServerId>,
    /// Whether the membership may change.
    pub(crate) may_change: bool,
    /// Who cannot be told of each change that comes with a snapshot.
    pub(crate) untold: BTreeSet<ServerId>,
    /// Whether servers elect by generation.
    pub(crate) by_generation: bool,
    /// The longest transaction that anybody logs.
    pub(crate) txn_bytes: usize,
    /// Servers of which no peer knows that they end a round at once: they speak as servers of ZooKeeper do.
    pub(crate) foreign: BTreeSet<ServerId>,
    /// What those are configured with who are not of the first ensemble.
    pub(crate) spares: BTreeMap<ServerId, Ensemble>,
    pub(crate) ledger: Ledger,
    pub(crate) conduct: Conduct,
    pub(crate) leases: Leases,
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
            granted: BTreeMap::new(),
            elected: 0,
            generations: BTreeMap::new(),
            voted: BTreeMap::new(),
            may_change: false,
            untold: BTreeSet::new(),
            by_generation: false,
            txn_bytes: Txn::BYTES_MAX,
            foreign: BTreeSet::new(),
            spares: BTreeMap::new(),
            conduct: Conduct::default(),
            leases: Leases::default(),
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

    /// By what a server counts until a membership has come into force on its disk: a spare knows the others and itself.
    fn configured(&self, id: ServerId) -> &Ensemble {
        self.spares.get(&id).unwrap_or(&self.ensemble)
    }

    /// This is the ensemble from now on, until a change is committed.
    pub(crate) fn agree_on(&mut self, ensemble: Ensemble) {
        self.ensemble = ensemble;
    }

    /// How many elections were won, established or not.
    pub fn elected(&self) -> u64 {
        self.elected
    }

    /// How many transactions are committed.
    pub fn commits(&self) -> u64 {
        self.ledger.commits()
    }

    /// Whether a server's disk holds a transaction, or a state that it is in; of none, yes.
    pub(crate) fn holds(&self, id: ServerId, zxid: Zxid) -> bool {
        zxid == Zxid::ZERO || self.ledger.holds(id, zxid)
    }

    /// The zxid of the change that the membership in force came with; zero, if it is the first one.
    pub(crate) fn changed_at(&self) -> Zxid {
        self.ledger.changed_at()
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
    pub(crate) fn on_start(&mut self, id: ServerId, contents: &Contents) -> Result<(), Violation> {
        self.on_open(id, contents)?;
        self.ledger.on_start(id, contents)?;
        self.conduct.on_start(id);
        self.leases.on_start(id);
        let own_votes = self.servers.remove(&id).map(|seen| seen.own_votes).unwrap_or_default();
        let seen = Seen {
            durable: Held::of(contents),
            round: Round::default(),
            state: ServerState::Looking,
            established: false,
            links: BTreeMap::new(),
            stops: false,
            ended: None,
            deaf: false,
            dials: BTreeSet::new(),
            announced: BTreeMap::new(),
            told_to_vote: BTreeSet::new(),
            ticket: Ticket(0),
            own_votes,
            leadership: None,
            serving: false,
            membership: contents.membership.as_ref().map(Ensemble::of),
            next_membership: promises::seen(contents.next_membership.clone()),
        };
        self.servers.insert(id, seen);
        Ok(())
    }

    /// A server's disk is emptied; nothing that it promised binds it any more.
    pub(crate) fn on_wipe(&mut self, id: ServerId) {
        self.servers.remove(&id);
        self.granted.retain(|(server, _), _| *server != id);
        self.voted.retain(|(server, _), _| *server != id);
        self.ledger.on_wipe(id);
    }

    /// A server has done what it wanted to do in a step: what its disk will hold, and what it goes by itself, are bound
    /// by every change in its history.
    pub(crate) fn on_bound(
        &self,
        id: ServerId,
        disk: &Disk,
        config: &Config,
    ) -> Result<(), Violation> {
        if self.untold.contains(&id) {
            return Ok(());
        }
        let latest = disk.latest();
        let (present, next) = (&config.membership, config.next_membership.as_ref());
        let own = latest.unbound_by(Some(present), next).map(|change| (change, "it does"));
        let kept = latest.unbound().map(|change| (change, "its disk will"));
        let Some((change, whose)) = own.or(kept) else { return Ok(()) };
        let detail = format!("{change} is in its history, and {whose} not go by it");
        broken(Rule::Membership, id, detail)
    }

    /// The end of a server's log is damaged: it has to start with less than became durable.
    pub(crate) fn on_damage(&mut self, id: ServerId, contents: &Contents) {
        if let Some(seen) = self.servers.get_mut(&id) {
            seen.durable = Held::of(contents);
        }
        self.ledger.on_damage(id, contents.last());
    }

    /// The outputs of a step as a whole: how many, in which order, and whether a link that has ended is hung up.
    fn keeps_boundary(&self, id: ServerId, outputs: &[Output]) -> Result<(), Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(()) };
        if outputs.len() > OUTPUTS_MAX || seen.links.len() > LINKS_MAX {
            let detail = format!("{} outputs, {} links", outputs.len(), seen.links.len());
            return broken(Rule::Bounds, id, detail);
        }
        // What other servers hear of a step may allow another leader: the holders of leadership are told before.
        let tells = |output: &Output| matches!(output, Output::Leadership(_));
        if let Some(late) = outputs.iter().skip(1).find(|output| tells(output)) {
            return broken(Rule::Boundary, id, format!("{late:?} is not the first of its step"));
        }
        // A link that has ended stays open until the core hangs it up, once.
        if let Some(link) = seen.ended {
            let answers =
                |output: &&Output| matches!(output, Output::Hangup { link: of, .. } if *of == link);
            let count = outputs.iter().filter(answers).count();
            if count != 1 {
                return broken(
                    Rule::Boundary,
                    id,
                    format!("hangs up {link}, which has ended, {count} times"),
                );
            }
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
        self.conduct.on_step(id, status, outputs)?;
        self.keeps_boundary(id, outputs)?;
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = (seen.round, seen.state, seen.established);
        let leads = status.state == ServerState::Leading;
        seen.round = status.round;
        seen.state = status.state;
        seen.established = leads && status.serving;
        // A round may begin and end in one step.
        if before.1 == ServerState::Looking && status.voter {
            let durable = &seen.durable;
            // Who cannot be followed need not be elected by those who have as much.
            let leader = if seen.deaf { ServerId::NONE } else { id };
            let vote = Vote { peer_epoch: durable.current_epoch, zxid: durable.last_zxid, leader };
            let entry = seen.own_votes.entry(status.round).or_insert(Some(vote));
            *entry = entry.map(|earlier| earlier.min(vote));
        }
        if outputs.iter().any(|output| is_joining(output) || is_yielding(output)) {
            seen.own_votes.insert(status.round, None);
        }
        let established = seen.established;
        if status.round < before.0 {
            let joins = matches!(status.state, ServerState::Following | ServerState::Observing);
            // With another membership rounds begin anew; and where there may be one, a server without a candidate
            // joins the round of the others.
            let follows = (!status.voter && self.may_change) || seen.deaf;
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
                    // It may be over within the step, after a long pause say: then the vote is another by now.
                    if leads {
                        self.on_elected(id, status, &report.reason)?;
                    }
                }
            }
        }
        // A leadership may begin and end in one step: what it inherited may take its leader's vote away.
        let begins = before.1 == ServerState::Leading && outputs.iter().any(is_beginning);
        if (established || begins) && !before.2 {
            self.on_established(id, status)?;
        }
        self.serves_under_its_leader(id, status)
    }

    /// A server that serves without leading does so under the leader of its epoch.
    fn serves_under_its_leader(&self, id: ServerId, status: &Status) -> Result<(), Violation> {
        if status.serving && status.state != ServerState::Leading {
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

    /// A transaction that a server logs is no longer than may be.
    fn logs_what_may_be(&self, id: ServerId, write: &Write) -> Result<(), Violation> {
        let txns: &[Txn] = if let Write::Append(txns) = write {
            txns
        } else if let Write::AppendStaged(txn) = write {
            std::slice::from_ref(txn)
        } else {
            &[]
        };
        if let Some(long) = txns.iter().find(|txn| txn.len() > self.txn_bytes) {
            let detail = format!("logs {}, which has {} bytes", long.zxid, long.len());
            return broken(Rule::Bounds, id, detail);
        }
        Ok(())
    }

    /// A server's output is carried out now; `durable` is what its disk holds at this moment.
    pub(crate) fn on_output(&mut self, id: ServerId, output: &Output) -> Result<(), Violation> {
        self.conduct.on_output(id, output)?;
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        match output {
            Output::Dial { plane, peer, addresses } => {
                if addresses.is_empty() || !seen.dials.insert((*plane, *peer)) {
                    let detail = format!("a second dial of {peer} on {plane:?}, or to nowhere");
                    return broken(Rule::Boundary, id, detail);
                }
            }
            Output::CancelDial { plane, peer } => {
                if !seen.dials.contains(&(*plane, *peer)) {
                    let detail = format!("calls off a dial of {peer} on {plane:?} that is over");
                    return broken(Rule::Boundary, id, detail);
                }
            }
            Output::Hangup { link, .. } => {
                if seen.links.remove(link).is_none()
                    && seen.ended.take_if(|ended| *ended == *link).is_none()
                {
                    return broken(Rule::Boundary, id, format!("hangs up {link}, which is not up"));
                }
            }
            Output::Send { link, message } => {
                if !seen.links.contains_key(link) {
                    let detail = format!("sends on {link}, which is not up: {message:?}");
                    return broken(Rule::Boundary, id, detail);
                }
                return self.on_send(id, *link, message);
            }
            Output::Persist { ticket, write } => {
                if *ticket <= seen.ticket {
                    return broken(Rule::Boundary, id, format!("{ticket} again"));
                }
                seen.ticket = *ticket;
                seen.on_membership(write);
                return self.logs_what_may_be(id, write);
            }
            Output::Leadership(leadership) => {
                let before = std::mem::replace(&mut seen.leadership, *leadership);
                if before == *leadership {
                    return broken(Rule::Boundary, id, format!("{output:?} is said again"));
                }
            }
            Output::Serving { .. } | Output::Retired => {
                let serves = matches!(output, Output::Serving { .. });
                if std::mem::replace(&mut seen.serving, serves) == serves {
                    return broken(Rule::Boundary, id, format!("{output:?} is said again"));
                }
            }
            Output::Report(report) => return self.on_report(id, report),
            Output::Halt(fault) => return broken(Rule::Progress, id, fault.to_string()),
            Output::NotifyDrained(link)
            | Output::Resolve { link, .. }
            | Output::Locate { link, .. }
            | Output::StreamLog { link, .. }
            | Output::SendSnapshot { link, .. }
            | Output::ReceiveSnapshot { link, .. } => {
                if !seen.links.contains_key(link) {
                    let detail = format!("{output:?}, and that is not up");
                    return broken(Rule::Boundary, id, detail);
                }
            }
            Output::Prepare { .. }
            | Output::Adopt { .. }
            | Output::Deliver(_)
            | Output::Replay { .. }
            | Output::Discard
            | Output::TakeSnapshot(_)
            | Output::Abandon
            | Output::Answer(_)
            | Output::Accepted(_)
            | Output::Lost(_)
            | Output::Unknown { .. }
            | Output::Refused { .. }
            | Output::ReadRefused { .. }
            | Output::Pinged
            | Output::Touched { .. }
            | Output::Revalidate { .. }
            | Output::Revalidated(_)
            | Output::Release(_)
            | Output::Keep
            | Output::Transferred(_) => {}
        }
        Ok(())
    }
}

fn is_joining(output: &Output) -> bool {
    matches!(output, Output::Report(report) if matches!(report.reason, Reason::Joined { .. }))
}

/// A server that hears few does not insist on itself, nor when it goes back into that round.
fn is_yielding(output: &Output) -> bool {
    let Output::Report(report) = output else { return false };
    matches!(report.reason, Reason::HearsFew { .. } | Reason::OnlyLeaderHeard { .. })
}

/// Whether a server begins to broadcast; a leader, if that is what it is.
pub(crate) fn is_beginning(output: &Output) -> bool {
    let begun = |change: &Change| matches!(change, Change::Phase { to: Phase::Broadcast, .. });
    matches!(output, Output::Report(report) if begun(&report.change))
}

fn is_reconfiguring(output: &Output) -> bool {
    matches!(output, Output::Report(report) if matches!(report.change, Change::Configuration(_)))
}
