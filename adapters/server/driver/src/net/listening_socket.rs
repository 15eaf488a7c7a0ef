//! A listening socket, open or about to be: whether it accepts connections is told to the loop when that changes.

use std::sync::Arc;

use quorate_core::input::Plane;

use crate::net::events::{LoopEvent, Shared};

/// One socket of a [port](crate::net::port_health::PortHealth). Dropping it takes it away.
#[derive(Debug)]
pub(crate) struct ListeningSocket {
    shared: Arc<Shared>,
    plane: Plane,
    number: u64,
}

impl ListeningSocket {
    /// One more, which works.
    pub(crate) fn new(shared: &Arc<Shared>, plane: Plane) -> Self {
        Self { shared: Arc::clone(shared), plane, number: shared.ports.add(plane) }
    }

    /// Takes note of whether it fails.
    pub(crate) async fn report(&self, failing: bool) {
        let before = self.shared.ports.note(self.plane, self.number, failing);
        // Said again for as long as it fails: what a socket that went has changed may have found no room.
        if failing || before != Some(failing) {
            // The loop has ended.
            drop(self.shared.events.send(LoopEvent::Ports(self.plane)).await);
        }
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        self.shared.ports.remove(self.plane, self.number);
        // Full: the next report of this port tells. A listener that closes is followed by one that opens.
        drop(self.shared.events.try_send(LoopEvent::Ports(self.plane)));
    }
}
