//! tokio's clock, as guards and the machines of the core see it.

use std::future::Future;
use std::time::{Duration, Instant};

use quorate_core::time::Instant as CoreInstant;
use quorate_leadership::{Clock, boot_time};

/// The clock of guards: tokio's, with the time in which the machine was suspended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

impl Clock for Tokio {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std() + boot_time::suspended()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
}

/// The time at which a request is sent, say: the only one that may be reported to a candidate, and compared with
/// others of this function only. Time in which the machine was suspended counts.
pub fn now() -> Instant {
    Tokio.now()
}

/// Waits until this time has come. A timer may stand still while the machine is suspended, so the clock is looked at now
/// and then.
pub async fn until(time: Instant) {
    loop {
        let left = time.saturating_duration_since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}

/// How often the clock is looked at during a wait.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The instant from which the core's time counts, for one candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(Instant);

impl Origin {
    /// Counts from now.
    pub(crate) fn start() -> Self {
        Self(Tokio.now())
    }

    /// The present time, for the core.
    pub(crate) fn now(self) -> CoreInstant {
        self.to_core(Tokio.now())
    }

    /// The core's name of an instant.
    pub(crate) fn to_core(self, at: Instant) -> CoreInstant {
        CoreInstant::from_origin(at.saturating_duration_since(self.0))
    }

    /// The instant that the core means.
    pub(crate) fn to_std(self, at: CoreInstant) -> Instant {
        // Beyond what the clock can express: as good as never.
        let far = Duration::from_secs(86_400 * 365);
        self.0 + at.since_origin().min(now().saturating_duration_since(self.0) + far)
    }
}
