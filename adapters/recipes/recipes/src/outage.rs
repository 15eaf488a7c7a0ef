//! While the store is out of reach: whether this candidate leads by designation, and when that ends.
//!
//! ```text
//!   out of reach for a whole session ──► a designation names us ──► leads, designated
//!   in reach again ──► guards are revoked ──► they are gone ──► the machine hears that it is connected
//! ```
//!
//! The rule behind it: a designated leader and an elected one never overlap on this candidate. An elected leader
//! has stopped by its own clock before a designation counts, and the machine learns of a new session only when the
//! guards of a designated leader are gone.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::recipe::offer::Session;
use quorate_leadership::FencingToken;

use crate::clock::now;
use crate::contender::Contender;
use crate::designation::Designation;
use crate::reporter::StoreEvent;
use crate::settings::Settings;

/// The designated leader, and for how long that counts; none if there is none.
pub(crate) type Found = Option<(Contender, Duration)>;

/// What follows from a look at the designation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing changes.
    Nothing,
    /// This candidate leads by designation with this token, until then.
    Lead { token: FencingToken, until: Instant },
    /// Its leadership by designation is over.
    End,
}

/// What a candidate knows of its store being out of reach.
pub(crate) struct Outage {
    designation: Option<Designation>,
    identity: Bytes,
    /// How long an elected leader may still act after the store went out of reach.
    session_time: Duration,
    /// The look at the designation that is under way; other events do not restart it.
    look: Option<Pin<Box<dyn Future<Output = Found> + Send>>>,
    /// Since when the store is out of reach, or was looked for in vain.
    since: Option<Instant>,
    /// This candidate leads by designation.
    is_designated: bool,
    /// A designation has ended, and its guards may still be there.
    lingers: bool,
    /// The store is in reach again; the machine hears of it when those guards are gone.
    held_back: Option<StoreEvent>,
}

/// How often a designation is looked for while the store is out of reach.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Outage {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            designation: settings.designation.clone(),
            identity: settings.identity.clone(),
            session_time: settings.session_timeout,
            look: None,
            since: Some(now()),
            is_designated: false,
            lingers: false,
            held_back: None,
        }
    }

    /// Whether this candidate leads by designation.
    pub(crate) const fn is_designated(&self) -> bool {
        self.is_designated
    }

    /// Notes whether the store is in reach. Returns whether leadership by designation has to end, since it is.
    pub(crate) fn note(&mut self, event: &StoreEvent) -> bool {
        match event {
            StoreEvent::Session(Session::Connected { .. }) => {
                self.since = None;
                self.is_designated
            }
            StoreEvent::Session(Session::Suspended | Session::Expired) => {
                self.since.get_or_insert_with(now);
                self.held_back = None;
                false
            }
            StoreEvent::Session(Session::Renewed { .. })
            | StoreEvent::Trouble(_)
            | StoreEvent::Offer { .. }
            | StoreEvent::Lease { .. }
            | StoreEvent::Fired { .. }
            | StoreEvent::Over => false,
        }
    }

    /// The event for the machine, unless it has to wait for the guards of a designation. The store is listened to
    /// all the same: of the sessions that come and go meanwhile the last counts.
    pub(crate) fn pass(&mut self, event: StoreEvent) -> Option<StoreEvent> {
        if self.lingers && matches!(event, StoreEvent::Session(Session::Connected { .. })) {
            self.held_back = Some(event);
            return None;
        }
        Some(event)
    }

    /// There are no guards: what was held back for them can pass.
    pub(crate) fn release(&mut self) -> Option<StoreEvent> {
        self.lingers = false;
        self.held_back.take()
    }

    /// Leadership by designation is over: its guards were revoked.
    pub(crate) const fn end(&mut self) {
        self.is_designated = false;
        self.lingers = true;
    }

    /// The designated leader, after a while; never while the store is in reach or the guards of an earlier
    /// designation are there. Dropping the future loses nothing.
    pub(crate) async fn look(&mut self) -> Found {
        if self.since.is_none() || self.lingers {
            return pending().await;
        }
        let Some(designation) = &self.designation else { return pending().await };
        let look = self.look.get_or_insert_with(|| {
            let designation = designation.clone();
            Box::pin(async move {
                tokio::time::sleep(LOOK_EVERY).await;
                // A page takes its time.
                let read = tokio::task::spawn_blocking(move || designation.read().ok());
                read.await.ok().flatten()
            })
        });
        let found = look.await;
        self.look = None;
        found
    }

    /// What follows from the designation that was found, for a candidate that leads with this token or does not.
    pub(crate) fn judge(&mut self, found: Found, leads: Option<FencingToken>) -> Order {
        let now = now();
        let waited = self.since.is_some_and(|since| since + self.session_time <= now);
        let is_elected = leads.is_some() && !self.is_designated;
        if !waited || is_elected {
            return Order::Nothing;
        }
        let found = found.filter(|(leader, _)| leader.identity == self.identity);
        let token = found.as_ref().map(|(leader, _)| leader.token);
        if self.is_designated && token != leads {
            // With another token this candidate leads again when these guards are gone.
            return Order::End;
        }
        let Some((leader, left)) = found else { return Order::Nothing };
        self.is_designated = true;
        Order::Lead { token: leader.token, until: now + left }
    }
}
