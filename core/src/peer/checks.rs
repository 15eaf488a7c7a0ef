//! What always holds of a server, and a clock that model checkers turn by hand.
//!
//! What holds between servers no server can see: simulators and model checkers look at that from outside.

use alloc::vec::Vec;

use crate::output::Output;
use crate::peer::Peer;
use crate::peer::electing::Electing;
use crate::peer::role::Role;
use crate::peer::shared::SharedParts;
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timer;

impl Peer {
    /// What does not hold of this server though it always should, if anything. It is asked after every step: a
    /// server of which something is untrue stops, and does nothing of what that step would have done
    /// ([`Fault::Broken`](crate::reasons::Fault::Broken)).
    pub fn broken(&self) -> Option<&'static str> {
        let SharedParts { epochs, history, elector, config, told, .. } = &self.shared;
        if epochs.current_epoch > epochs.accepted_epoch {
            return Some("its current epoch was never accepted");
        }
        if history.last().epoch() > epochs.accepted_epoch {
            return Some("it has logged something of an epoch that it never accepted");
        }
        if self.serving.is_some_and(|epoch| epoch != epochs.current_epoch) {
            return Some("it serves in an epoch that is not its current one");
        }
        if !told.is_empty() {
            return Some("something that its election wants was left undone");
        }
        let agree = match &self.role {
            Role::Stopped => true,
            Role::Looking => elector.is_looking(),
            Role::Leading(_) => {
                !elector.is_looking() && elector.standing().vote.leader == config.id
            }
            Role::Idle | Role::Fencing | Role::Resting | Role::Learning(_) => !elector.is_looking(),
        };
        if agree { history.broken() } else { Some("its role and its election disagree") }
    }

    /// When a deadline of this name passes, if there is one. [`Peer::deadline`] tells the earliest of all.
    pub fn due(&self, timer: Timer) -> Option<Instant> {
        match timer {
            Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat => {
                self.shared.elector.due(timer)
            }
            Timer::Redial => self.shared.links.deadline(),
            Timer::Claim => self.shared.links.claim_deadline(),
            Timer::Start
            | Timer::Backoff
            | Timer::Introduction
            | Timer::Listening
            | Timer::Connect
            | Timer::ConnectLimit
            | Timer::Silence
            | Timer::Init
            | Timer::Transfer
            | Timer::Lease
            | Timer::Ping => self.shared.timers.get(timer),
        }
    }

    /// Lets one deadline pass, whatever else is due and whenever it would be, and the clock stand. None if
    /// there is no such deadline now.
    ///
    /// For model checkers only: a driver says [`Event::Tick`](crate::input::Event::Tick). A
    /// checker wants to see deadlines pass in every order, and few states. So the time of every input is the
    /// same: the deadlines that are set lie as far ahead as ever, and what asks how long something has lasted
    /// finds that it has just begun. See also [`Peer::rewind`].
    pub fn fire(&mut self, timer: Timer) -> Option<Vec<Output>> {
        let due = self.due(timer)?;
        let mut outputs = Vec::new();
        self.shared.outbox.swap(&mut outputs);
        if let Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat = timer {
            let SharedParts { elector, now, told, .. } = &mut self.shared;
            match elector {
                Electing::Fast(elector) => {
                    elector.fire(*now, told);
                    self.carry_out();
                }
                Electing::Generation(by) => {
                    by.clock.fire(*now, &mut by.told);
                    let after = self.shared.carry_generations();
                    self.follow(after);
                }
            }
        } else if timer == Timer::Redial {
            let (_, cx) = self.context();
            cx.links.redial(cx.now, due, cx.outbox);
        } else if timer == Timer::Claim {
            self.settle_claims(due);
        } else {
            self.on_timer(timer, due);
        }
        self.conclude(0, &mut outputs);
        Some(outputs)
    }

    /// Jitter begins anew, so that states do not differ by how often it was needed. For model checkers.
    pub fn rewind(&mut self) {
        self.shared.rng = Rng::new(self.shared.config.seed);
        self.shared.elector.rewind();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::config::Config;
    use crate::durable::Durable;
    use crate::id::ServerId;
    use crate::input::{Event, Input};
    use crate::membership::Membership;
    use crate::reasons::Fault;
    use crate::zxid::Epoch;

    /// A server that has just begun to look, and what its first step said.
    fn looking() -> (Peer, Vec<Output>) {
        let text = "server.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\nversion=0";
        let membership = Membership::parse(text).expect("two servers");
        let config = Config::new(ServerId(1), membership);
        let mut peer = Peer::new(config, Durable::default()).expect("a server");
        let outputs = peer.step(Input { at: Instant::ORIGIN, event: Event::Tick });
        assert_eq!(peer.broken(), None);
        (peer, outputs)
    }

    #[test]
    fn a_server_of_which_something_is_untrue_stops_and_leaves_its_step_undone() {
        type Break = fn(&mut Peer);
        let breaks: [(&str, Break); 3] = [
            ("never accepted", |peer| peer.shared.epochs.current_epoch = Epoch(9)),
            ("not its current one", |peer| peer.serving = Some(Epoch(9))),
            ("disagree", |peer| peer.role = Role::Resting),
        ];
        for (what, break_it) in breaks {
            let (mut peer, mut outputs) = looking();
            let before = outputs.clone();
            break_it(&mut peer);
            peer.step_into(Input { at: Instant::ORIGIN, event: Event::Tick }, &mut outputs);
            let Some(Output::Halt(Fault::Broken(said))) = outputs.pop() else {
                panic!("{what}: {outputs:?}");
            };
            assert!(said.contains(what), "{said}");
            assert_eq!(outputs, before, "what was said before stands, and nothing more is said");
            assert_eq!(peer.step(Input { at: Instant::ORIGIN, event: Event::Tick }), vec![]);
        }
    }
}
