//! Terms of leadership, one after the other, and what their guards have to be told.

use crate::recipe::terms::{Loss, Seat, Token};
use crate::time::Instant;

/// The present term, if there is one, and whether guards may be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tenure {
    term: Option<Term>,
    /// Guards of the present or of the last term may be there.
    guarded: bool,
}

/// A term in which we lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Term {
    token: Token,
    until: Instant,
    suspended: bool,
    /// The guards were asked to go.
    release: bool,
}

impl Tenure {
    pub(crate) fn token(&self) -> Option<Token> {
        self.term.map(|term| term.token)
    }

    /// When the term ends, if nothing else is heard.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.term.map(|term| term.until)
    }

    /// Until when leadership is confirmed.
    pub(crate) fn confirmed(&self) -> Option<Instant> {
        self.term.filter(|term| !term.suspended).map(|term| term.until)
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.term.is_some()
    }

    /// Whether guards of a term that is over may be there.
    pub(crate) const fn is_winding_up(&self) -> bool {
        self.guarded && self.term.is_none()
    }

    /// Whether guards may be there.
    pub(crate) const fn is_guarded(&self) -> bool {
        self.guarded
    }

    pub(crate) const fn take(&mut self, token: Token, until: Instant) -> Seat {
        self.term = Some(Term { token, until, suspended: false, release: false });
        self.guarded = true;
        Seat::Taken { token, until }
    }

    /// The store has confirmed it, so that it lasts until then.
    pub(crate) fn confirm(&mut self, until: Instant) -> Option<Seat> {
        let term = self.term.as_mut().filter(|term| until > term.until || term.suspended)?;
        (term.until, term.suspended) = (until, false);
        Some(Seat::Confirmed { until })
    }

    /// The store keeps the session for a shorter time than before: the term ends by then, if it is not confirmed.
    pub(crate) fn shorten(&mut self, until: Instant) {
        if let Some(term) = &mut self.term {
            term.until = term.until.min(until);
        }
    }

    pub(crate) fn suspend(&mut self) -> Option<Seat> {
        let term = self.term.as_mut().filter(|term| !term.suspended)?;
        term.suspended = true;
        Some(Seat::Suspended)
    }

    /// Asks the guards to go.
    pub(crate) fn release(&mut self) -> Option<Seat> {
        let term = self.term.as_mut().filter(|term| !term.release)?;
        term.release = true;
        Some(Seat::Release)
    }

    /// The guards have gone. Of a term that goes on this means nothing.
    pub(crate) fn on_released(&mut self) -> Option<Seat> {
        if self.term.is_some_and(|term| !term.release) {
            return None;
        }
        self.guarded = false;
        self.term.take().map(|_| Seat::Lost(Loss::Stopped))
    }

    pub(crate) fn lose(&mut self, loss: Loss) -> Option<Seat> {
        self.term.take().map(|_| Seat::Lost(loss))
    }
}
