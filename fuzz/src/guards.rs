//! What the guards of a candidate are told makes sense: terms come one after the other, and each is confirmed
//! for longer and longer, a lost contact aside, but never for longer than the store has promised.

use quorate_core::recipe::{Seat, Token};
use quorate_core::time::Instant;

/// What the guards know.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// The present term: its token, and until when it is confirmed.
    pub(crate) term: Option<(Token, Instant)>,
    /// Guarded work may still run.
    pub(crate) guarded: bool,
    /// Contact was lost since it was confirmed.
    suspended: bool,
    /// The seat is to be given up.
    release: bool,
}

impl Guards {
    /// Tells them; `promised` is until when nobody else can lead.
    pub(crate) fn hear(&mut self, seat: Seat, now: Instant, promised: Option<Instant>) {
        let confirmed = |until: Instant| {
            assert!(until > now, "it is over already");
            assert!(Some(until) <= promised, "until {until:?}, promised {promised:?}");
        };
        match seat {
            Seat::Taken { token, until } => {
                assert!(self.term.is_none() && !self.guarded, "a term in another");
                confirmed(until);
                (self.term, self.guarded, self.release) = (Some((token, until)), true, false);
                self.suspended = false;
            }
            Seat::Confirmed { until } => {
                let (_, before) = self.term.as_mut().expect("there is a term");
                confirmed(until);
                assert!(until >= *before || self.suspended, "it shrinks");
                (*before, self.suspended) = (until, false);
            }
            Seat::Suspended => {
                assert!(self.term.is_some(), "there is no term");
                self.suspended = true;
            }
            Seat::Release => {
                assert!(self.term.is_some() && !self.release, "nobody has a seat to give up");
                self.release = true;
            }
            Seat::Lost(_) => assert!(self.term.take().is_some(), "there was no term"),
        }
    }

    /// They have gone. Of a term that goes on this means nothing.
    pub(crate) fn go(&mut self) {
        self.guarded &= self.term.is_some() && !self.release;
    }

    /// Nothing is confirmed longer than it was said.
    pub(crate) fn look(&self, now: Instant, leads: Option<Token>) {
        assert_eq!(self.term.map(|(token, _)| token), leads);
        assert!(self.term.is_none_or(|(_, until)| until > now), "it leads beyond its time");
    }
}
