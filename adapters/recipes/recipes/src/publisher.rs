//! Publishes the events and the status of a candidate.

use quorate_core::recipe::offer::Session;
use tokio::sync::{broadcast, watch};

use crate::error::StoreError;
use crate::events::{Event, Status};
use crate::reporter::StoreEvent;

/// How many events wait for a slow reader.
const EVENTS_MAX: usize = 256;

/// Publishes the events and the status of a candidate.
#[derive(Debug)]
pub(crate) struct Publisher {
    events: broadcast::Sender<Event>,
    status: watch::Sender<Status>,
}

impl Publisher {
    pub(crate) fn new() -> Self {
        Self {
            events: broadcast::channel(EVENTS_MAX).0,
            status: watch::channel(Status::default()).0,
        }
    }

    /// Where to subscribe to events, for as long as the candidate lives.
    pub(crate) fn events(&self) -> broadcast::WeakSender<Event> {
        self.events.downgrade()
    }

    /// A view of the status.
    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(crate) fn event(&self, event: Event) {
        // An error means that there are no readers.
        drop(self.events.send(event));
    }

    pub(crate) fn set_status(&self, set: impl FnOnce(&mut Status)) {
        self.status.send_modify(set);
    }

    /// Sets the status, and wakes its readers only if that changes it.
    pub(crate) fn refresh_status(&self, set: impl FnOnce(&mut Status)) {
        self.status.send_if_modified(|status| {
            let before = status.clone();
            set(status);
            *status != before
        });
    }

    /// Publishes what a report of the store says of the session.
    pub(crate) fn report(&self, event: &StoreEvent) {
        match event {
            StoreEvent::Session(Session::Connected { session, timeout }) => {
                tracing::info!(%session, ?timeout, "connected");
                self.set_status(|status| {
                    status.connected = true;
                    status.trouble = None;
                });
            }
            StoreEvent::Session(Session::Suspended | Session::Expired) => {
                self.set_status(|status| status.connected = false);
            }
            StoreEvent::Trouble(error) => {
                tracing::warn!(%error, "no session");
                self.set_status(|status| status.trouble = Some(error.clone()));
                self.event(Event::Trouble { error: error.clone(), again: None });
            }
            StoreEvent::Over => {
                tracing::warn!("the session is over, and the candidate ends with it");
                self.set_status(|status| {
                    status.connected = false;
                    status.trouble = Some(StoreError::Expired);
                });
            }
            StoreEvent::Session(Session::Renewed { .. })
            | StoreEvent::Offer { .. }
            | StoreEvent::Lease { .. }
            | StoreEvent::Fired { .. } => {}
        }
    }
}
