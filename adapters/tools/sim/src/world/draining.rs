//! Servers that are stopped in order: their clients go to others first, none in the middle of what it asks.
//!
//! ```text
//!   drain ─► Stopping ─► the service closes a share at a time ─► Vacated, or twice the time is over ─► the process ends
//! ```

use std::time::Duration;

use quorate_application::clients::Event as Told;
use quorate_core::id::ServerId;

use crate::faults::{CrashKind, FaultClass};
use crate::rule::Violation;
use crate::world::World;
use crate::world::front::Order;

/// How long a server that was stopped is away.
const AWAY: Duration = Duration::from_millis(400);

impl World {
    /// A server is told to stop, within so long, and starts again a while later.
    pub(crate) fn drain(&mut self, id: i64, within: Duration) {
        let id = ServerId(id);
        let front = self.servers.get(&id).and_then(|server| server.front.as_ref());
        if front.is_some_and(|front| front.serves && front.drains.is_none()) {
            self.coverage.hit(FaultClass::Drained);
            self.order(id, Order::Tell(Told::Stopping { within }));
        }
    }

    /// Its clients have gone, or it waits no longer: the process ends.
    pub(super) fn stops(&mut self, id: ServerId, incarnation: u64) -> Result<(), Violation> {
        if self.is_same(id, incarnation) || self.waits_for_disk(id, incarnation) {
            self.crash(id.0, CrashKind::Process)?;
            self.start_after(id.0, AWAY);
        }
        Ok(())
    }
}
