//! The guards of a candidate, and what they are told: leaderships come one after the other, and each is confirmed for
//! longer and longer, a lost contact aside, but never for longer than the store has promised.

use quorate_core::recipe::{LeadershipChange, Token};
use quorate_core::time::Instant;

/// What the guards know.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// The present leadership: its token, and until when it is confirmed.
    pub(crate) leadership: Option<(Token, Instant)>,
    /// Guarded work may still run.
    pub(crate) guarded: bool,
    /// Contact was lost since it was confirmed.
    suspended: bool,
    /// The leadership is to be released.
    release: bool,
}

impl Guards {
    /// Tells them; `promised` is until when no other candidate can lead.
    pub(crate) fn hear(
        &mut self,
        change: LeadershipChange,
        now: Instant,
        promised: Option<Instant>,
    ) {
        let confirmed = |until: Instant| {
            assert!(until > now, "it is over already");
            assert!(Some(until) <= promised, "until {until:?}, promised {promised:?}");
        };
        match change {
            LeadershipChange::Taken { token, until } => {
                assert!(self.leadership.is_none() && !self.guarded, "a leadership in another");
                confirmed(until);
                (self.leadership, self.guarded, self.release) = (Some((token, until)), true, false);
                self.suspended = false;
            }
            LeadershipChange::Confirmed { until } => {
                let (_, before) = self.leadership.as_mut().expect("there is a leadership");
                confirmed(until);
                assert!(until >= *before || self.suspended, "it shrinks");
                (*before, self.suspended) = (until, false);
            }
            LeadershipChange::Suspended => {
                assert!(self.leadership.is_some(), "there is no leadership");
                self.suspended = true;
            }
            LeadershipChange::Release => {
                assert!(
                    self.leadership.is_some() && !self.release,
                    "there is no leadership to release"
                );
                self.release = true;
            }
            LeadershipChange::Lost(_) => {
                assert!(self.leadership.take().is_some(), "there was no leadership")
            }
        }
    }

    /// They have gone. For a leadership that goes on this means nothing.
    pub(crate) fn go(&mut self) {
        self.guarded &= self.leadership.is_some() && !self.release;
    }

    /// Nothing is confirmed longer than it was said.
    pub(crate) fn look(&self, now: Instant, leads: Option<Token>) {
        assert_eq!(self.leadership.map(|(token, _)| token), leads);
        assert!(self.leadership.is_none_or(|(_, until)| until > now), "it leads beyond its time");
    }
}
