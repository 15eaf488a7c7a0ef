//! What a server says in elections, and what it does for them.
//!
//! ```text
//!   disk, configuration ─► fenced? ─► our vote ─► Elector ─► carry_out ─┬─► notifications, dials, reports
//!   a newer configuration ─► adopted                                   └─► a decision, for the roof
//! ```
//!
//! Who wins is the business of the [`election`](crate::election); what becomes of the winner is decided
//! above.

use crate::election::{Decision, ElectorOutput, Recipient};
use crate::id::{LinkId, ServerId};
use crate::membership::binding::is_later;
use crate::membership::{Membership, Role as MemberRole};
use crate::message::{Mark, Message, Notification};
use crate::output::Write;
use crate::peer::electing::Electing;
use crate::peer::shared::SharedParts;
use crate::report::{Change, Reason};
use crate::vote::{Standing, Vote};

impl SharedParts {
    /// Sees to it that everything that the vote tells is on disk; returns whether it is: a promise made
    /// with what only memory holds could be broken by a crash.
    pub(super) fn fence(&mut self) -> bool {
        let last = self.history.last().epoch();
        if self.epochs.current_epoch < last {
            // A synchronisation was interrupted. A transaction of an epoch is logged only behind all
            // that its leader brought into it, so we have that.
            self.outbox.persist(Write::CurrentEpoch(last));
            self.epochs.current_epoch = last;
            self.outbox.report(Change::CurrentEpoch(last), Reason::Started);
        }
        self.heal();
        self.context().forget_unheld();
        if core::mem::take(&mut self.quorum_changed) {
            self.elector.update_quorum(&self.config, self.now);
        }
        self.outbox.is_settled()
    }

    /// What our history was found to hold of the membership at start, and what was not seen when it was written, goes
    /// to the disk.
    fn heal(&mut self) {
        for write in core::mem::take(&mut self.healing) {
            self.outbox.persist(write);
        }
    }

    /// The vote that we begin with: for ourselves, or for who was found to be needed more; no server in particular
    /// if we may not be elected, or could not be followed. Where servers elect by generation, a server that begins with a vote for another has
    /// its own history in it: there a vote is what we claim to have, not what we have heard of.
    pub(super) fn own_vote(&mut self) -> Vote {
        let nominee = self.concessions.nominee.take();
        let nominee = nominee.filter(|vote| self.elector.quorum().is_voter(vote.leader));
        let own = self.own_history();
        match (nominee, &self.elector) {
            (None, _) => own,
            (Some(nominee), Electing::Fast(_)) => nominee,
            (Some(_), Electing::Generation(_)) if own == Vote::ABSTENTION => own,
            (Some(nominee), Electing::Generation(_)) => Vote { leader: nominee.leader, ..own },
        }
    }

    /// The vote for ourselves with what we have now, or for no server in particular.
    pub(super) fn own_history(&self) -> Vote {
        let (peer_epoch, zxid) = (self.epochs.current_epoch, self.history.claim());
        match self.config.membership.member(self.config.id).map(|member| member.role) {
            Some(MemberRole::Participant) if self.elector.may_lead() => {
                Vote { peer_epoch, zxid, leader: self.config.id }
            }
            Some(MemberRole::Observer) if !self.elector.quorum().is_voter(self.config.id) => {
                Vote::ABSTENTION
            }
            Some(MemberRole::Observer | MemberRole::Participant) | None => {
                Vote { peer_epoch, zxid, leader: ServerId::NONE }
            }
        }
    }

    /// Does what the election wants; returns how it ended, if it has, and why if not by a quorum's votes.
    pub(super) fn carry_out(&mut self) -> Option<(Decision, Option<Reason>)> {
        let mut told = core::mem::take(&mut self.told);
        let mut decision = None;
        let mut why = None;
        for output in told.drain(..) {
            match output {
                ElectorOutput::Notify { to: Recipient::Voters, standing } => {
                    let message = self.notification(standing);
                    for link in self.links.to_voters() {
                        self.outbox.send(link, message.clone());
                    }
                }
                ElectorOutput::Notify { to: Recipient::One(peer), standing } => {
                    if let Some(link) = self.links.to_answer(peer, self.now) {
                        self.notify(link, standing);
                    }
                }
                ElectorOutput::Redial => self.links.sweep(self.now, &mut self.outbox),
                ElectorOutput::Changed(change, reason) => {
                    if let Reason::Transferred { .. }
                    | Reason::Reconfigured { .. }
                    | Reason::OnlyLeaderHeard { .. } = reason
                    {
                        why = Some(reason.clone());
                    }
                    self.outbox.report(change, reason);
                }
                ElectorOutput::Decided(decided) => decision = Some(decided),
            }
        }
        self.told = told;
        decision.map(|decision| (decision, why))
    }

    /// Takes over a newer configuration that a peer knows; returns whether the election has to begin
    /// anew because the members differ. One that is no member here may have joined while we were away; but it
    /// may belong to another ensemble, too, or to none: what it knows has to name both of us, and us where we
    /// are.
    pub(super) fn adopt(&mut self, from: ServerId, text: &[u8]) -> bool {
        if text.is_empty() || text == &self.config.membership.text()[..] {
            return false;
        }
        let Ok(newer) = Membership::parse(text) else { return false };
        let bound = self.config.next_membership.as_ref().is_some_and(Membership::is_change);
        // What a leader gave a version tells of no change, and takes the place of none.
        if !is_later(newer.version(), self.config.membership.version())
            || bound && !newer.is_change()
        {
            return false;
        }
        if !self.config.is_member(from) {
            let addresses = |membership: &Membership| {
                membership.member(self.config.id).map(|own| own.addresses.clone())
            };
            let ours = addresses(&newer)
                .is_some_and(|own| Some(own) == addresses(&self.config.membership));
            if !ours || newer.member(from).is_none() {
                return false;
            }
        }
        let same = newer.same_members(&self.config.membership);
        self.outbox.persist(Write::Membership(newer.text().clone()));
        let change = Change::Configuration(newer.version());
        self.outbox.report(change, Reason::NewerConfiguration { from });
        let next = self.config.next_membership.as_ref();
        let over = next.is_some_and(|next| next.version() <= newer.version());
        if over {
            self.config.next_membership = None;
        }
        self.config.membership = newer;
        // The servers of a change that is over bind no server any more.
        if same && !over {
            return false;
        }
        self.elector.reconfigure(&self.config, self.now);
        self.links.reconfigure(&self.config, &mut self.outbox);
        true
    }

    /// Whether a server that looks may have settled on this server. Where servers elect by generation, only while it asks
    /// for itself.
    pub(super) fn may_lead(&self) -> bool {
        matches!(self.elector, Electing::Fast(_))
            || self.elector.standing().vote.leader == self.config.id
    }

    /// A link for elections has come up. A member hears where we stand: what was under way on an
    /// earlier link may have been lost with it.
    pub(super) fn greet(&mut self, link: LinkId, peer: ServerId) {
        let fast = matches!(self.elector, Electing::Fast(_));
        if fast && self.elector.has_standing() && self.config.is_member(peer) {
            self.notify(link, self.elector.standing());
        }
    }

    /// Tells the members without a vote where we stand. A leader by generation has told them itself.
    pub(super) fn tell_observers(&mut self, standing: Standing) {
        if let Electing::Generation(_) = self.elector {
            return;
        }
        let message = self.notification(standing);
        for link in self.links.to_observers() {
            self.outbox.send(link, message.clone());
        }
    }

    fn notification(&self, standing: Standing) -> Message {
        Message::Notification(Notification {
            standing,
            version: Notification::VERSION,
            config: self.config.membership.text().clone(),
            mark: self.mark(),
        })
    }

    /// What we say of ourselves to servers of ours.
    const fn mark(&self) -> Mark {
        let settles = self.config.finish_when_settled;
        let settles = if settles { Mark::SETTLES_AT_ONCE } else { Mark::NONE };
        settles.and(Mark::KNOWS_PROBES)
    }

    fn notify(&mut self, link: LinkId, standing: Standing) {
        let message = self.notification(standing);
        self.outbox.send(link, message);
    }
}
