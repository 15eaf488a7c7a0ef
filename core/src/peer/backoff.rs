//! Back-off: how long a server waits between a role and the next election.
//!
//! ```text
//!   a follower whose leader is gone ──► not at all
//!   an observer ──────────────────────► a little, so that the voters are done by then
//!   turned away again and again ──────► 10 ms, 20 ms, … 1 s
//! ```
//!
//! Why the role ended is not looked at: what ends it may ask for a longer back-off.

use core::time::Duration;

use crate::context::Context;
use crate::vote::ServerState;

/// What there is to remember of the roles before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    /// How often in a row a leader has turned us away before we served.
    turned_away: u32,
}

impl Backoff {
    /// A leader has let us serve, or we lead.
    pub(super) const fn on_served(&mut self) {
        self.turned_away = 0;
    }

    /// How long to back off after a role in this state, in which we `served` or not: an observer a little
    /// longer than the voters.
    pub(super) fn length(
        &mut self,
        cx: &mut Context<'_>,
        from: ServerState,
        served: bool,
    ) -> Duration {
        let delay = if from == ServerState::Observing {
            let most = cx.config.timing.observer_delay.as_nanos();
            Duration::from_nanos(cx.rng.below(u64::try_from(most).unwrap_or(u64::MAX)))
        } else {
            Duration::ZERO
        };
        delay.max(self.respite(cx, from, served))
    }

    /// How long a learner waits that was turned away again and again. A leader that will not have it
    /// closes each link at once, and coming back at the speed of the network would cost every voter
    /// an exchange of votes each time. Being turned away a few times is what happens to those who are
    /// early, and costs nothing.
    fn respite(&mut self, cx: &mut Context<'_>, from: ServerState, served: bool) -> Duration {
        const EARLY: u32 = 3;
        if served || from == ServerState::Leading {
            return Duration::ZERO;
        }
        self.turned_away = self.turned_away.saturating_add(1);
        let Some(times) = self.turned_away.checked_sub(EARLY) else { return Duration::ZERO };
        let (min, max) = (cx.config.timing.redial_min, cx.config.timing.redial_max);
        cx.rng.around(min.saturating_mul(1 << times.min(16)).min(max))
    }
}
