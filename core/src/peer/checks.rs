//! What always holds of a server, and a clock that model checkers turn by hand.

use alloc::vec::Vec;

use crate::output::Output;
use crate::peer::Peer;
use crate::peer::electing::Electing;
use crate::peer::instruments::Instruments;
use crate::peer::role::Role;
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timer;

impl Peer {
    /// What always holds; called after every step in debug builds.
    ///
    /// # Panics
    ///
    /// If an invariant of ours is broken.
    pub fn check(&self) {
        let (epochs, last) = (&self.instruments.epochs, self.instruments.history.last());
        assert!(epochs.current_epoch <= epochs.accepted_epoch, "no epoch is current unpromised");
        assert!(last.epoch() <= epochs.accepted_epoch, "nothing is logged of an epoch unpromised");
        if let Some(epoch) = self.serving {
            assert_eq!(epoch, epochs.current_epoch, "a server serves in its current epoch");
        }
        self.instruments.history.check();
        let looking = matches!(self.role, Role::Looking);
        assert!(
            looking == self.instruments.elector.is_looking() || matches!(self.role, Role::Stopped),
            "the role and the election agree"
        );
        assert!(self.instruments.told.is_empty(), "nothing of the election is left undone");
        if let Role::Leading(_) = self.role {
            assert_eq!(self.instruments.elector.standing().vote.leader, self.instruments.config.id);
        }
    }

    /// When a deadline of this name passes, if there is one. [`Peer::deadline`] tells the earliest of all.
    pub fn due(&self, timer: Timer) -> Option<Instant> {
        match timer {
            Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat => {
                self.instruments.elector.due(timer)
            }
            Timer::Redial => self.instruments.links.deadline(),
            Timer::Start
            | Timer::Rest
            | Timer::Introduction
            | Timer::Connect
            | Timer::ConnectLimit
            | Timer::Silence
            | Timer::Init
            | Timer::HandOver
            | Timer::Lease
            | Timer::Ping => self.instruments.timers.get(timer),
        }
    }

    /// Lets one deadline pass, whatever else is due and whenever it would be, and the clock stand. None if
    /// there is no such deadline now.
    ///
    /// For model checkers, and for nobody else: a driver says [`Event::Tick`](crate::input::Event::Tick). A
    /// checker wants to see deadlines pass in every order, and few states. So the time of every input is the
    /// same: the deadlines that are set lie as far ahead as ever, and what asks how long something has lasted
    /// finds that it has just begun. See also [`Peer::rewind`].
    pub fn fire(&mut self, timer: Timer) -> Option<Vec<Output>> {
        let due = self.due(timer)?;
        let mut outputs = Vec::new();
        self.instruments.outbox.swap(&mut outputs);
        if let Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat = timer {
            let Instruments { elector, now, told, .. } = &mut self.instruments;
            match elector {
                Electing::Fast(elector) => {
                    elector.fire(*now, told);
                    self.carry_out();
                }
                Electing::Generation(by) => {
                    by.clock.fire(*now, &mut by.told);
                    let after = self.instruments.carry_letters();
                    self.follow(after);
                }
            }
        } else if timer == Timer::Redial {
            let (_, cx) = self.lend();
            cx.links.redial(cx.now, due, cx.outbox);
        } else {
            self.on_timer(timer, due);
        }
        self.conclude(&mut outputs);
        Some(outputs)
    }

    /// Jitter begins anew, so that states do not differ by how often it was needed. For model checkers.
    pub fn rewind(&mut self) {
        self.instruments.rng = Rng::new(self.instruments.config.seed);
        self.instruments.elector.rewind();
    }
}
