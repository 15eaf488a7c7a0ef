//! A socket that listens, or is to: whether it accepts connections, told to the loop when that changes.

use std::sync::Arc;

use quorate_core::input::Plane;

use crate::net::events::{Happened, Shared};

/// One socket of a [port](crate::net::ports::Ports). Dropping it takes it away.
#[derive(Debug)]
pub(crate) struct Socket {
    shared: Arc<Shared>,
    plane: Plane,
    number: u64,
}

impl Socket {
    /// One more, which is well.
    pub(crate) fn new(shared: &Arc<Shared>, plane: Plane) -> Self {
        Self { shared: Arc::clone(shared), plane, number: shared.ports.add(plane) }
    }

    /// Takes note of how it is.
    pub(crate) async fn is(&self, failing: bool) {
        let before = self.shared.ports.note(self.plane, self.number, failing);
        // Said again for as long as it fails: what a socket that went has changed may have found no room.
        if failing || before != Some(failing) {
            // Nobody listens: the server ends.
            drop(self.shared.events.send(Happened::Ports(self.plane)).await);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shared.ports.remove(self.plane, self.number);
        // Full: what comes next on this port tells. A door that closes is followed by one that opens.
        drop(self.shared.events.try_send(Happened::Ports(self.plane)));
    }
}
