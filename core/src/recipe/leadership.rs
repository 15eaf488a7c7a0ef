//! The leadership of one candidate: until when it is confirmed, and what its guards have to be told.
//!
//! Shared by both recipes. A token is given once for each leadership; when it ends, the guards are revoked before the
//! candidate asks for anything again. What confirms it, an offer or a lease, is the recipe's affair.

use crate::recipe::boundary::{LeadershipChange, Loss, Token};
use crate::time::Instant;

/// The leadership of one candidate, if it leads, and whether guards may be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Leadership {
    held: Option<Held>,
    /// Guards of the present or of the last leadership may be there.
    guarded: bool,
}

/// The present leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Held {
    token: Token,
    until: Instant,
    suspended: bool,
    /// The guards were asked to go.
    release: bool,
}

impl Leadership {
    pub(crate) fn token(&self) -> Option<Token> {
        self.held.map(|held| held.token)
    }

    /// When it ends, if nothing else is heard.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.held.map(|held| held.until)
    }

    /// Until when it is confirmed.
    pub(crate) fn confirmed(&self) -> Option<Instant> {
        self.held.filter(|held| !held.suspended).map(|held| held.until)
    }

    pub(crate) const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether it is over, and its guards may still be there.
    pub(crate) const fn is_winding_up(&self) -> bool {
        self.guarded && self.held.is_none()
    }

    /// Whether guards may be there.
    pub(crate) const fn is_guarded(&self) -> bool {
        self.guarded
    }

    pub(crate) const fn take(&mut self, token: Token, until: Instant) -> LeadershipChange {
        self.held = Some(Held { token, until, suspended: false, release: false });
        self.guarded = true;
        LeadershipChange::Taken { token, until }
    }

    /// The store has confirmed it, so that it lasts until then.
    pub(crate) fn confirm(&mut self, until: Instant) -> Option<LeadershipChange> {
        let held = self.held.as_mut().filter(|held| until > held.until || held.suspended)?;
        (held.until, held.suspended) = (until, false);
        Some(LeadershipChange::Confirmed { until })
    }

    /// The store keeps the session for a shorter time than before: it ends by then, if it is not confirmed.
    pub(crate) fn shorten(&mut self, until: Instant) {
        if let Some(held) = &mut self.held {
            held.until = held.until.min(until);
        }
    }

    pub(crate) fn suspend(&mut self) -> Option<LeadershipChange> {
        let held = self.held.as_mut().filter(|held| !held.suspended)?;
        held.suspended = true;
        Some(LeadershipChange::Suspended)
    }

    /// Asks the guards to go.
    pub(crate) fn release(&mut self) -> Option<LeadershipChange> {
        let held = self.held.as_mut().filter(|held| !held.release)?;
        held.release = true;
        Some(LeadershipChange::Release)
    }

    /// The guards have gone. Where leadership goes on this means nothing.
    pub(crate) fn on_released(&mut self) -> Option<LeadershipChange> {
        if self.held.is_some_and(|held| !held.release) {
            return None;
        }
        self.guarded = false;
        self.held.take().map(|_| LeadershipChange::Lost(Loss::Stopped))
    }

    pub(crate) fn lose(&mut self, loss: Loss) -> Option<LeadershipChange> {
        self.held.take().map(|_| LeadershipChange::Lost(loss))
    }
}
