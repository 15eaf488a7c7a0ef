//! Who may lead: elections that were won, leaderships that begin, and the quorums behind both.
//!
//! Quorums are counted by the rule as `ensemble.rs` has it, and what a server is said to have promised or
//! taken over is looked up on its disk.

use std::collections::BTreeSet;

use quorate_core::generation_message::{Generation, GrantedVote};
use quorate_core::id::ServerId;
use quorate_core::report::{Change, Reason, Report};
use quorate_core::status::{Phase, Status};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::Zxid;

use crate::checker::{Checker, Seen};
use crate::ensemble::Ensemble;
use crate::rule::{Rule, Violation, broken};

impl Checker {
    pub(super) fn on_elected(
        &mut self,
        id: ServerId,
        status: &Status,
        reason: &Reason,
    ) -> Result<(), Violation> {
        // A server that has not heard of a change counts by what was before, and is found out when it is established.
        let changed = self.ledger.has_changes();
        if !changed && !self.ensemble.may_lead(id) {
            return broken(Rule::Leadership, id, "it may not lead, and was elected".to_owned());
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else elects")]
        let members: BTreeSet<ServerId> = match reason {
            Reason::Quorum { members, .. }
            | Reason::Settled { members, .. }
            | Reason::Joined { members, .. } => members.iter().copied().collect(),
            // A leader that transfers its leadership led a quorum, and the next is not established without one.
            Reason::Transferred { .. } => return Ok(()),
            other => return broken(Rule::Quorum, id, format!("elected because {other}")),
        };
        if self.by_generation {
            let first = *self.generations.entry(status.round).or_insert(id);
            if first != id {
                let detail = format!("elected in generation {}, and so was {first}", status.round);
                return broken(Rule::Leadership, id, detail);
            }
            let granted_vote = self.servers.get(&id).map(|seen| seen.durable.granted_vote);
            let own = GrantedVote { generation: Generation(status.round.0), vote: id };
            if granted_vote != Some(own) {
                let detail =
                    format!("leads with its own vote, and on its disk is {granted_vote:?}");
                return broken(Rule::Promise, id, detail);
            }
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
        // A server that took over the same epoch by a snapshot under the label of its start has just its initial
        // history, as the one that others follow in it has: an epoch is current only with that history on disk,
        // and the label (the start of the epoch) names no transaction, only the end of it. It is a higher number
        // for the same history, or for an older one. Only of one that was joined: in a count of votes the server with
        // the higher number wins.
        let initial = |theirs: &Vote| {
            joined
                && theirs.peer_epoch == own.peer_epoch
                && theirs.zxid == Zxid::start_of(own.peer_epoch)
        };
        let newer = |theirs: &Vote| {
            !initial(theirs)
                && ((theirs.peer_epoch, theirs.zxid) > (own.peer_epoch, own.zxid)
                    || (*theirs > own && !joined && !self.by_generation))
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

    pub(super) fn on_established(
        &mut self,
        id: ServerId,
        status: &Status,
    ) -> Result<(), Violation> {
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
        // Until a change is in force a spare counts by what it is configured with: a majority of the others and itself
        // has a server in common with each quorum of the others.
        let told = self.servers.get(&id).is_some_and(|seen| seen.membership.is_some());
        let first = self.ledger.in_force().is_none() && !told;
        let ensemble = if first { self.configured(id) } else { self.ensemble() };
        self.ledger.on_established(id, epoch, ensemble)?;
        if !holds(&id) {
            return broken(Rule::Promise, id, format!("leads epoch {epoch}, not on its disk"));
        }
        let inherited = self.ledger.pending(epoch);
        for ensemble in std::iter::once(ensemble).chain(inherited) {
            if !ensemble.is_quorum(|member| holds(&member)) {
                return broken(Rule::Quorum, id, format!("no quorum has epoch {epoch} on disk"));
            }
        }
        // A voter that stood behind the new leader had no newer history when it promised to follow no older
        // server. A higher id alone is no newer history. A server that comes later may have one: it is cut.
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

    /// A server has ended a round at once: all vote alike, or a quorum with its leader in it is known to do the same.
    fn on_haste(
        &self,
        id: ServerId,
        seen: &Seen,
        leader: ServerId,
        members: &[ServerId],
    ) -> Result<(), Violation> {
        let known = |of: ServerId| members.contains(&of) && !self.foreign.contains(&of);
        let present = seen.membership.as_ref().unwrap_or(self.configured(id));
        let next = seen.next_membership.as_ref().map(|(_, next)| next);
        let all = std::iter::once(present).chain(next);
        let votes =
            |ensemble: &Ensemble, of| ensemble.member(of).is_some_and(|member| member.voter);
        let alike = all
            .clone()
            .all(|ensemble| ensemble.ids().all(|of| members.contains(&of) || !votes(ensemble, of)));
        let fast = known(leader) && all.clone().all(|ensemble| ensemble.is_quorum(known));
        // A server that was told of other members follows by its own count: no quorum comes of it here.
        let voted = |of: ServerId| members.contains(&of);
        let elsewhere = !all.clone().all(|ensemble| ensemble.is_quorum(voted));
        // Where there are changes it may go by one that its disk does not have: an election told it, or a state.
        let changed = |seen: &Seen| seen.membership.is_some() || seen.next_membership.is_some();
        let unknown = |of: &ServerId| !all.clone().any(|ensemble| votes(ensemble, *of));
        let elsewhere =
            elsewhere || members.iter().any(unknown) || self.servers.values().any(changed);
        if alike || fast || elsewhere || self.foreign.contains(&id) {
            return Ok(());
        }
        let voters: Vec<_> = present.ids().filter(|of| votes(present, *of)).collect();
        let wait = &self.foreign;
        let detail = format!("{members:?} of {voters:?} are for {leader}, and {wait:?} wait");
        broken(Rule::Haste, id, detail)
    }

    /// A server says what it has decided, and who stands behind that: a quorum, in the membership that its
    /// disk has, and in the one that is to follow it.
    pub(super) fn on_report(&self, id: ServerId, report: &Report) -> Result<(), Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(()) };
        if let (Change::State { .. }, Reason::Settled { members, leader, .. }) =
            (&report.change, &report.reason)
        {
            self.on_haste(id, seen, *leader, members)?;
        }
        let nothing: fn(&Seen, &Seen) -> bool = |_, _| true;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others take no quorum")]
        let (members, has) = match (&report.change, &report.reason) {
            (
                Change::State { to: ServerState::Leading, .. },
                Reason::Quorum { members, .. }
                | Reason::Settled { members, .. }
                | Reason::Joined { members, .. },
            )
            | (Change::AcceptedEpoch(_), Reason::Connected { members, .. }) => (members, nothing),
            (Change::Phase { to: Phase::Synchronization, .. }, Reason::Promised { members }) => {
                let promised: fn(&Seen, &Seen) -> bool =
                    |theirs, ours| theirs.durable.accepted_epoch >= ours.durable.accepted_epoch;
                (members, promised)
            }
            (Change::Phase { to: Phase::Broadcast, .. }, Reason::Acknowledged { members }) => {
                let took_over: fn(&Seen, &Seen) -> bool =
                    |theirs, ours| theirs.durable.current_epoch >= ours.durable.current_epoch;
                (members, took_over)
            }
            _ => return Ok(()),
        };
        let members: BTreeSet<ServerId> = members.iter().copied().collect();
        let present = seen.membership.as_ref().unwrap_or(self.configured(id));
        for ensemble in
            std::iter::once(present).chain(seen.next_membership.as_ref().map(|(_, next)| next))
        {
            if !ensemble.is_quorum(|member| members.contains(&member)) {
                return broken(Rule::Quorum, id, format!("{report}, no quorum of {ensemble:?}"));
            }
        }
        let lacks =
            |member: &&ServerId| self.servers.get(member).is_none_or(|theirs| !has(theirs, seen));
        match members.iter().find(lacks) {
            None => Ok(()),
            Some(member) => {
                let durable = self.servers.get(member).map(|seen| seen.durable);
                let detail = format!("{report}, and on the disk of {member} is {durable:?}");
                broken(Rule::Promise, id, detail)
            }
        }
    }
}
