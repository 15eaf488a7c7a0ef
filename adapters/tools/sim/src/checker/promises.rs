//! Promises are durable: epochs, votes and acknowledgements are on the disk when they leave, and after a crash.

use quorate_core::generation_message::{Body, Generation, GenerationMessage, GrantedVote};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Notification, Packet, Run};
use quorate_core::output::Write;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::checker::{Checker, Seen};
use crate::disk::{Contents, Done, Held, kept};
use crate::ensemble::Ensemble;
use crate::rule::{Rule, Violation, broken};

impl Checker {
    /// What a disk holds when its server starts is what became durable on it, whatever happened since.
    pub(super) fn on_open(&self, id: ServerId, contents: &Contents) -> Result<(), Violation> {
        let (before, now) = (self.servers.get(&id).map(|seen| seen.durable), Held::of(contents));
        match before.filter(|before| *before != now) {
            None => Ok(()),
            Some(before) => broken(
                Rule::Durability,
                id,
                format!("starts with {now:?}, on its disk was {before:?}"),
            ),
        }
    }

    /// A write has become durable.
    pub(crate) fn on_durable(&mut self, id: ServerId, done: &Done) -> Result<(), Violation> {
        self.ledger.on_durable(id, done, &self.ensemble)?;
        if let Some(change) = done.unbound.filter(|_| !self.untold.contains(&id)) {
            let detail = format!("{change} is on its disk and does not bind it: {:?}", done.write);
            return broken(Rule::Membership, id, detail);
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others put nothing in force")]
        let in_force = match &done.write {
            Write::Membership(text) | Write::Install { membership: text, .. } => kept(text),
            _ => None,
        };
        let change = in_force.filter(Membership::is_change).map(|change| Zxid(change.version()));
        if let Some(change) = change.filter(|change| !self.ledger.is_committed(*change)) {
            let detail = format!("{change} is in force on its disk, and was never committed");
            return broken(Rule::Membership, id, detail);
        }
        let now = done.held;
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut seen.durable, now);
        if now.accepted_epoch > before.accepted_epoch {
            let vote =
                Vote { peer_epoch: before.current_epoch, zxid: before.last_zxid, leader: id };
            self.promised.entry(now.accepted_epoch).or_default().entry(id).or_insert(vote);
        }
        let voted = (before.granted_vote.generation, now.granted_vote.generation);
        if voted.1 < voted.0 || (voted.1 == voted.0 && before.granted_vote != now.granted_vote) {
            let detail = format!("voted {:?} after {:?}", now.granted_vote, before.granted_vote);
            return broken(Rule::Durability, id, detail);
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

    pub(super) fn on_send(
        &mut self,
        id: ServerId,
        link: LinkId,
        message: &Message,
    ) -> Result<(), Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(()) };
        let durable = seen.durable;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others promise nothing")]
        let kept = match message {
            Message::Notification(Notification { standing, .. }) => {
                let own = standing.state == ServerState::Looking && standing.vote.leader == id;
                !own || (standing.vote.peer_epoch, standing.vote.zxid)
                    <= (durable.current_epoch, durable.last_zxid)
            }
            Message::Packet(Packet::LeaderInfo { epoch, .. }) => durable.accepted_epoch == *epoch,
            Message::Packet(Packet::AckEpoch { last, current_epoch }) => {
                self.on_epoch_ack(id, link, *last, *current_epoch)?
            }
            Message::Packet(Packet::Ack(zxid)) if zxid.is_epoch_start() => {
                self.ledger.on_history_ack(id, zxid.epoch())?;
                // Below the promise of its sender no leader may count it: not even one that counts every server in its
                // membership.
                let below = durable.accepted_epoch > zxid.epoch();
                let counts =
                    seen.may_vote(id, self.configured(id)) || seen.told_to_vote.contains(&link);
                durable.current_epoch >= zxid.epoch() && !(below && counts)
            }
            Message::Packet(Packet::Ack(zxid) | Packet::Acks(Run { last: zxid, .. })) => {
                durable.current_epoch >= zxid.epoch() && durable.last_zxid >= *zxid
            }
            Message::Packet(Packet::UpToDate) => {
                self.leaders.get(&durable.current_epoch) == Some(&id)
            }
            // A candidate that is elected by what it claims has to have that.
            Message::Generation(GenerationMessage {
                body: Body::VoteRequest(_), claim, ..
            }) => (claim.current_epoch, claim.last) <= (durable.current_epoch, durable.last_zxid),
            Message::Generation(GenerationMessage {
                body: Body::VoteResponse { attempt, granted: true },
                ..
            }) if !attempt.pre => self.on_vote(id, link, attempt.generation)?,
            _ => true,
        };
        if kept {
            return Ok(());
        }
        broken(Rule::Promise, id, format!("{message:?} leaves, and its disk holds {durable:?}"))
    }

    /// Whether a promise of an epoch may leave: it is on the disk, and the first one that this server gives for it.
    fn on_epoch_ack(
        &mut self,
        id: ServerId,
        link: LinkId,
        last: Zxid,
        current_epoch: Option<Epoch>,
    ) -> Result<bool, Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(true) };
        let durable = &seen.durable;
        let announced = seen.announced.get(&link);
        // One that comes back blank has told the truth on an earlier link.
        let blank = last == Zxid::UNKNOWN && current_epoch.is_none();
        if current_epoch.is_some() {
            let (epoch, to) = (durable.accepted_epoch, seen.links.get(&link).copied());
            if let Some(to) = to.flatten() {
                if let Some(first) = self.granted.insert((id, epoch), to) {
                    let detail = format!("promises epoch {epoch} to {to}, and {first} has it");
                    return broken(Rule::Promise, id, detail);
                }
            }
        }
        // An observer may follow a leader below its promise, and promises nothing then.
        let observes = current_epoch.is_none() && !seen.may_vote(id, self.configured(id));
        let follows = |epoch: &Epoch| {
            durable.accepted_epoch == *epoch || (observes && durable.accepted_epoch > *epoch)
        };
        Ok((last == durable.last_zxid || blank)
            && announced.is_some_and(follows)
            && current_epoch.is_none_or(|epoch| durable.current_epoch == epoch))
    }

    /// Whether a vote in a generation may leave: it is on the disk, and the only one that this server gives there.
    fn on_vote(
        &mut self,
        id: ServerId,
        link: LinkId,
        generation: Generation,
    ) -> Result<bool, Violation> {
        let Some(seen) = self.servers.get(&id) else { return Ok(true) };
        let durable = &seen.durable;
        let Some(to) = seen.links.get(&link).copied().flatten() else { return Ok(true) };
        let granted_vote = GrantedVote { generation, vote: to };
        let first = *self.voted.entry((id, generation)).or_insert(to);
        if first != to {
            let detail = format!("votes for {to} in {generation}, and {first} has its vote");
            return broken(Rule::Promise, id, detail);
        }
        // It may have voted in a later generation meanwhile, which takes nothing of this one away.
        Ok(durable.granted_vote == granted_vote
            || durable.granted_vote.generation > granted_vote.generation)
    }
}

/// A membership that is to follow, and its version.
pub(super) fn seen(membership: Option<Membership>) -> Option<(i64, Ensemble)> {
    membership.map(|next| (next.version(), Ensemble::of(&next)))
}

impl Seen {
    /// Whether this server has a vote in a membership that it has seen.
    fn may_vote(&self, id: ServerId, configured: &Ensemble) -> bool {
        let present = self.membership.as_ref().unwrap_or(configured);
        let next = self.next_membership.as_ref().map(|(_, next)| next);
        let mut seen = std::iter::once(present).chain(next);
        seen.any(|ensemble| ensemble.member(id).is_some_and(|member| member.voter))
    }

    /// A write of the membership is on its way to the disk: from now on its server counts by that.
    pub(super) fn on_membership(&mut self, write: &Write) {
        let of = |membership: Option<Membership>| membership.as_ref().map(Ensemble::of);
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others say nothing of it")]
        match write {
            Write::Membership(text) => {
                let present = kept(text);
                let version = present.as_ref().map_or(0, Membership::version);
                self.next_membership.take_if(|(next, _)| *next <= version);
                self.membership = of(present);
            }
            Write::Install { membership, next, .. } => {
                self.membership = of(kept(membership));
                self.next_membership = seen(next.as_ref().and_then(|next| kept(next)));
            }
            Write::NextMembership(text) => {
                self.next_membership = seen(text.as_ref().and_then(|text| kept(text)));
            }
            _ => {}
        }
    }
}
