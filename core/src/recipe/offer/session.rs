//! The session with the store: what its beginning, silence and end mean for our offer and our leadership.
//!
//! An offer lives as long as its session. A silent session may be over at the store without our knowing it, so the
//! leadership ends by our own clock before the store can give the place away. How sessions are kept alive is the
//! client's affair.

use alloc::vec::Vec;

use crate::recipe::boundary::Loss;
use crate::recipe::offer::boundary::{Output, Session};
use crate::recipe::offer::row::{Live, Own, Place};
use crate::recipe::offer::{Candidate, tell};
use crate::time::Instant;

impl Candidate {
    pub(super) fn on_session(&mut self, event: Session, out: &mut Vec<Output>) {
        match event {
            Session::Connected { session, timeout } => {
                let known = self.session.map(|live| live.id);
                if known.is_some_and(|known| known != session) {
                    self.expire(out);
                }
                self.disconnect(out);
                let contact = self.session.filter(|live| live.id == session);
                let contact = contact.and_then(|live| live.contact);
                let live = Live { id: session, timeout, connected: true, contact };
                self.session = Some(live);
                self.retry_at = None;
                if let Some(until) = self.relied_on(live) {
                    self.leadership.shorten(until);
                }
            }
            Session::Suspended => self.disconnect(out),
            Session::Expired => self.expire(out),
            Session::Renewed { session, sent } => {
                let sent = sent.min(self.now);
                if let Some(live) = self.session.as_mut().filter(|live| live.id == session) {
                    live.contact = live.contact.max(Some(sent));
                }
                self.confirm(out);
            }
        }
    }

    /// What was watched or read on a connection is not known any more.
    pub(super) fn disconnect(&mut self, out: &mut Vec<Output>) {
        let Some(live) = self.session.as_mut().filter(|live| live.connected) else { return };
        live.connected = false;
        self.abandon();
        self.place = Place::STALE;
        if let Own::Held { watch, .. } = &mut self.own {
            *watch = None;
        }
        tell(self.leadership.suspend(), out);
    }

    /// The session is over, and with it all our nodes in the store.
    pub(super) fn expire(&mut self, out: &mut Vec<Output>) {
        if self.session.take().is_none() {
            return;
        }
        let had = !matches!(self.own, Own::None);
        if self.leadership.is_held() {
            self.lose(Loss::Expired, out);
        } else if had {
            self.fail(out);
        }
        self.own = Own::None;
        self.strays.clear();
        self.pending = None;
        self.retry_at = None;
    }

    /// Until when no other candidate can lead, if the store keeps its sessions as it says.
    pub(super) fn confirmed(&self) -> Option<Instant> {
        let live = self.session.filter(|live| live.connected)?;
        self.relied_on(live).filter(|until| *until > self.now)
    }

    /// The same of this session, connected or not.
    pub(super) fn relied_on(&self, live: Live) -> Option<Instant> {
        let margin = self.config.margin.unwrap_or(live.timeout / 10);
        live.contact.map(|sent| sent + live.timeout.saturating_sub(margin))
    }

    /// Tells the guards for how long we lead, if our node is known to exist.
    pub(super) fn confirm(&mut self, out: &mut Vec<Output>) {
        let watched = matches!(self.own, Own::Held { watch: Some(_), .. });
        if let Some(until) = self.confirmed().filter(|_| watched) {
            tell(self.leadership.confirm(until), out);
        }
    }
}
