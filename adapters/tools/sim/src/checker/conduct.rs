//! What servers owe to one another: a snapshot that is of use, nothing that has to be refused, and the
//! leader's own word before anybody follows it.
//!
//! A server that is owed this survives without it, as a rule: it hangs up and comes again. So nothing else would
//! show that it is missing.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{Message, Packet};
use quorate_core::output::Output;
use quorate_core::reasons::Hangup;
use quorate_core::report::Reason;
use quorate_core::status::Status;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::disk::Contents;
use crate::ensemble::Ensemble;
use crate::rule::{Rule, Violation, broken};

/// What is known of what they have told one another.
#[derive(Debug, Default)]
pub(crate) struct Conduct {
    /// Who is at the other end of a link for elections.
    voters: BTreeMap<(ServerId, LinkId), ServerId>,
    /// Who has told a server that it leads, since that began to look.
    heard: BTreeMap<ServerId, BTreeSet<ServerId>>,
    /// Who has told it on a connection that was held: it may be heard when the server looks again.
    held: BTreeMap<(ServerId, LinkId), Option<ServerId>>,
    /// Where the history of the learner on a link ends, as it says.
    learners: BTreeMap<(ServerId, LinkId), Zxid>,
    /// Links of those who are no servers of this ensemble, by the address that they come from: what they say is
    /// drawn at random, and refusing it is what is wanted. Of servers it would be a fault of theirs.
    strange: BTreeSet<(ServerId, LinkId)>,
    /// Whom a non-member claims to be, in the connection that a server hears of now.
    claimed: Option<(ServerId, ServerId)>,
}

impl Conduct {
    /// A server starts: it has no links, and has heard nothing.
    pub(crate) fn on_start(&mut self, id: ServerId) {
        self.voters.retain(|(server, _), _| *server != id);
        self.learners.retain(|(server, _), _| *server != id);
        self.strange.retain(|(server, _)| *server != id);
        self.held.retain(|(server, _), _| *server != id);
        self.heard.remove(&id);
    }

    /// A server is about to hear something.
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else tells of others")]
    pub(crate) fn on_event(&mut self, id: ServerId, event: &Event) {
        self.claimed = None;
        match event {
            Event::LinkUp(up) => {
                if up.remote.is_some_and(Ensemble::is_strange) {
                    self.strange.insert((id, up.link));
                }
                if let (Plane::Election, Some(peer)) = (up.plane, up.peer) {
                    self.voters.insert((id, up.link), peer);
                    let strange = self.strange.contains(&(id, up.link));
                    self.claimed = strange.then_some((id, peer));
                }
            }
            Event::LinkDown { link, .. } => {
                // It may have taken the place meanwhile, and then what it said was heard.
                if let Some(from) = self.held.remove(&(id, *link)).flatten() {
                    self.heard.entry(id).or_default().insert(from);
                }
                self.voters.remove(&(id, *link));
                self.learners.remove(&(id, *link));
                self.strange.remove(&(id, *link));
            }
            Event::Received { link, message: Message::Notification(notification) } => {
                let standing = &notification.standing;
                if let Some(from) = self.voters.get(&(id, *link)) {
                    if standing.state == ServerState::Leading && standing.vote.leader == *from {
                        self.heard.entry(id).or_default().insert(*from);
                        self.held.entry((id, *link)).and_modify(|said| *said = Some(*from));
                    }
                }
            }
            Event::Received { link, message: Message::Packet(Packet::AckEpoch { last, .. }) } => {
                self.learners.insert((id, *link), *last);
            }
            _ => {}
        }
    }

    /// A server has taken a step.
    pub(crate) fn on_step(
        &mut self,
        id: ServerId,
        status: &Status,
        outputs: &[Output],
    ) -> Result<(), Violation> {
        for output in outputs {
            if let Output::Resolve { link, .. } = output {
                self.held.insert((id, *link), None);
            }
            let Output::Report(report) = output else { continue };
            let (Reason::Joined { leader, .. } | Reason::OnlyLeaderHeard { leader }) =
                &report.reason
            else {
                continue;
            };
            let says_so = self.heard.get(&id).is_some_and(|heard| heard.contains(leader));
            let mut held = self.held.iter().filter(|((at, _), _)| *at == id);
            let says_so = says_so || held.any(|(_, said)| *said == Some(*leader));
            if *leader != id && !says_so {
                let detail = format!("joins {leader}, which has not said that it leads");
                return broken(Rule::Leadership, id, detail);
            }
        }
        if status.state != ServerState::Looking {
            self.heard.remove(&id);
        }
        Ok(())
    }

    /// A server's output is about to be carried out.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others owe nothing")]
    pub(crate) fn on_output(&self, id: ServerId, output: &Output) -> Result<(), Violation> {
        match output {
            Output::Hangup {
                reason: reason @ (Hangup::Hole { .. } | Hangup::Differs(_) | Hangup::OutOfTurn(_)),
                link,
            } if !self.strange.contains(&(id, *link)) => {
                broken(Rule::Conduct, id, format!("has to refuse what it is sent: {reason}"))
            }
            _ => Ok(()),
        }
    }

    /// A server hangs up a link; `lives` tells whether both ends live, and can reach each other. If it does so for the
    /// sake of another one, that is none of a non-member.
    pub(crate) fn on_hangup(
        &mut self,
        id: ServerId,
        link: LinkId,
        reason: Hangup,
        lives: bool,
    ) -> Result<(), Violation> {
        let strange = self.strange.remove(&(id, link));
        self.held.remove(&(id, link));
        let Hangup::Replaced(peer) = reason else { return Ok(()) };
        if strange || !lives {
            return Ok(());
        }
        let of = |(at, link): &(ServerId, LinkId)| {
            *at == id && self.voters.get(&(*at, *link)) == Some(&peer)
        };
        if self.claimed == Some((id, peer)) || self.strange.iter().any(of) {
            let detail =
                format!("its link to {peer} gives way to a connection that claims to be {peer}");
            return broken(Rule::Claims, id, detail);
        }
        Ok(())
    }

    /// A leader, `established` or not, sends a snapshot to the learner on a link; its disk holds this.
    pub(crate) fn on_snapshot(
        &self,
        id: ServerId,
        link: LinkId,
        label: Zxid,
        established: Option<Epoch>,
        held: &Contents,
        readable: bool,
    ) -> Result<(), Violation> {
        if let Some(epoch) = established.filter(|epoch| label < Zxid::start_of(*epoch)) {
            let detail =
                format!("is established in epoch {epoch}, and sends a snapshot of {label}");
            return broken(Rule::Snapshot, id, detail);
        }
        let Some(last) = self.learners.get(&(id, link)).copied() else { return Ok(()) };
        let holds = last == held.floor || held.get(last).is_some();
        if label < last && last > Zxid::ZERO && holds && readable {
            let detail = format!("sends a snapshot of {label} to one that has {last}, as it has");
            return broken(Rule::Snapshot, id, detail);
        }
        Ok(())
    }
}
