//! What a server has promised is on its disk: at the moment when the promise leaves, and after a crash.

use quorate_core::ballot::{Ballot, Body, Letter};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Notification, Packet, Run};
use quorate_core::output::Write;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::Zxid;

use crate::checker::{Checker, Rule, Seen, Violation, broken};
use crate::disk::{Contents, Done, Held};
use crate::ensemble::Ensemble;

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
        let now = done.held;
        let Some(seen) = self.servers.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut seen.durable, now);
        if now.accepted_epoch > before.accepted_epoch {
            let vote =
                Vote { peer_epoch: before.current_epoch, zxid: before.last_zxid, leader: id };
            self.promised.entry(now.accepted_epoch).or_default().entry(id).or_insert(vote);
        }
        let voted = (before.ballot.generation, now.ballot.generation);
        if voted.1 < voted.0 || (voted.1 == voted.0 && before.ballot != now.ballot) {
            let detail = format!("voted {:?} after {:?}", now.ballot, before.ballot);
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
        let durable = &seen.durable;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others promise nothing")]
        let kept = match message {
            Message::Notification(Notification { standing, .. }) => {
                let own = standing.state == ServerState::Looking && standing.vote.leader == id;
                !own || (standing.vote.peer_epoch, standing.vote.zxid)
                    <= (durable.current_epoch, durable.last_zxid)
            }
            Message::Packet(Packet::LeaderInfo { epoch, .. }) => durable.accepted_epoch == *epoch,
            Message::Packet(Packet::AckEpoch { last, current_epoch }) => {
                let announced = seen.announced.get(&link);
                // One that comes back blank has told the truth on an earlier link.
                let blank = *last == Zxid::UNKNOWN && current_epoch.is_none();
                if current_epoch.is_some() {
                    let (epoch, to) = (durable.accepted_epoch, seen.links.get(&link).copied());
                    if let Some(to) = to.flatten() {
                        if let Some(first) = self.granted.insert((id, epoch), to) {
                            let detail =
                                format!("promises epoch {epoch} to {to}, and {first} has it");
                            return broken(Rule::Promise, id, detail);
                        }
                    }
                }
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
            Message::Letter(Letter { body: Body::Answer { poll, granted: true }, .. })
                if !poll.pre =>
            {
                let Some(to) = seen.links.get(&link).copied().flatten() else { return Ok(()) };
                let ballot = Ballot { generation: poll.generation, vote: to };
                let first = *self.voted.entry((id, poll.generation)).or_insert(to);
                if first != to {
                    let generation = poll.generation;
                    let detail =
                        format!("votes for {to} in {generation}, and {first} has its vote");
                    return broken(Rule::Promise, id, detail);
                }
                // It may have voted in a later generation meanwhile, which takes nothing of this one away.
                durable.ballot == ballot || durable.ballot.generation > ballot.generation
            }
            _ => true,
        };
        if kept {
            return Ok(());
        }
        broken(Rule::Promise, id, format!("{message:?} leaves, and its disk holds {durable:?}"))
    }
}

impl Seen {
    /// A write of the membership is on its way to the disk: from now on its server counts by that.
    pub(super) fn on_membership(&mut self, write: &Write) {
        let read = |text: &[u8]| Membership::parse(text).ok().map(|next| Ensemble::of(&next));
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others say nothing of it")]
        match write {
            Write::Membership(text) => (self.membership, self.next_membership) = (read(text), None),
            Write::NextMembership(text) => {
                self.next_membership = text.as_ref().and_then(|text| read(text));
            }
            _ => {}
        }
    }
}
