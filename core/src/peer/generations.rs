//! What a server says in elections by generation, and what it does for them.
//!
//! ```text
//!   GenerationClock ─► carry_generations ─┬─► messages, with our configuration; dials, reports
//!          ▲                          ├─► votes to the disk ─► kept ──┐
//!          └──────────────────────────┼──────────────────────────────┘
//!                                     └─► what follows, for the roof
//! ```
//!
//! Whose turn it is to lead is the business of [`generation`](crate::generation); the counterpart for
//! ZooKeeper's election is `voting`.

use crate::generation::{ClockEvent, ClockOutput, Cue, Recipient};
use crate::generation_message::{GenerationMessage, GrantedVote};
use crate::message::Message;
use crate::output::Write;
use crate::peer::electing::Electing;
use crate::peer::shared::SharedParts;
use crate::report::Reason;
use crate::vote::Standing;

/// What an election by generation has come to in this step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing is decided.
    Nothing,
    /// There is a role for us, and why.
    Decided(Standing, Option<Reason>),
    /// Our role is over.
    Leave(Reason, Cue),
}

impl SharedParts {
    /// Tells the clock, if there is one, and does what it wants; what is left is for those above.
    pub(super) fn on_clock(&mut self, event: ClockEvent) -> After {
        let Electing::Generation(by) = &mut self.elector else { return After::Nothing };
        by.clock.step_into(self.now, event, &mut by.told);
        self.carry_generations()
    }

    /// Does what the clock wants.
    pub(super) fn carry_generations(&mut self) -> After {
        let Electing::Generation(by) = &mut self.elector else { return After::Nothing };
        let mut told = core::mem::take(&mut by.told);
        let (mut after, mut why) = (After::Nothing, None);
        for output in told.drain(..) {
            match output {
                ClockOutput::Send { to, message } => self.post(to, message),
                ClockOutput::Keep(GrantedVote { generation, vote }) => {
                    let ticket = self.outbox.persist(Write::GrantedVote { generation, vote });
                    if let Electing::Generation(by) = &mut self.elector {
                        by.writes.push_back((ticket, GrantedVote { generation, vote }));
                    }
                }
                ClockOutput::Redial => self.links.sweep(self.now, &mut self.outbox),
                ClockOutput::Changed(change, reason) => {
                    why = Some(reason.clone());
                    self.outbox.report(change, reason);
                }
                ClockOutput::Decided(standing) => after = After::Decided(standing, why.take()),
                ClockOutput::Leave(reason, cue) => after = After::Leave(reason, cue),
            }
        }
        if let Electing::Generation(by) = &mut self.elector {
            by.told = told;
        }
        after
    }

    /// The next vote that has reached the disk and of which the clock does not know.
    pub(super) fn next_kept(&mut self) -> Option<GrantedVote> {
        let Electing::Generation(by) = &mut self.elector else { return None };
        let (ticket, granted_vote) = *by.writes.front()?;
        if !self.outbox.is_durable(ticket) {
            return None;
        }
        by.writes.pop_front();
        Some(granted_vote)
    }

    /// Takes note why the next election begins; an earlier reason of this server's role is over.
    pub(super) fn cue(&mut self, cue: Cue) {
        if let Electing::Generation(by) = &mut self.elector {
            by.cue = cue;
        }
    }

    /// Why the election begins that is about to, and from then on there is no reason.
    pub(super) fn take_cue(&mut self) -> Cue {
        match &mut self.elector {
            Electing::Generation(by) => core::mem::replace(&mut by.cue, Cue::Fresh),
            Electing::Fast(_) => Cue::Fresh,
        }
    }

    fn post(&mut self, to: Recipient, message: GenerationMessage) {
        let config = self.config.membership.text().clone();
        let message = GenerationMessage { config, knows_probes: true, ..message };
        match to {
            Recipient::One(peer) => {
                if let Some(link) = self.links.to_answer(peer, self.now) {
                    self.outbox.send(link, Message::Generation(message));
                }
            }
            Recipient::Voters | Recipient::Members => {
                let observers = matches!(to, Recipient::Members);
                let observers = self.links.to_observers().filter(|_| observers);
                for link in self.links.to_voters().chain(observers) {
                    self.outbox.send(link, Message::Generation(message.clone()));
                }
            }
        }
    }
}
