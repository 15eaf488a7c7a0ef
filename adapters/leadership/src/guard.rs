//! The leadership guard: leadership is kept for as long as it lives.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::or;

use crate::clock::Clock;
use crate::error::{LeadershipError, Lost};
use crate::gate::LeadershipGate;
use crate::token::FencingToken;

/// The leadership guard: the right to do what only the leader may.
///
/// There may be several at one server; leadership is kept for all of them. To share one, put it in an
/// [`Arc`]. One that is leaked keeps leadership from being transferred in order, and nothing else.
pub struct Leadership<C: Clock> {
    gate: Arc<LeadershipGate>,
    clock: C,
    token: FencingToken,
    version: u64,
}

impl LeadershipGate {
    /// Waits until this candidate leads, and gives a guard. Dropping the future is harmless.
    ///
    /// # Errors
    ///
    /// If the election ends before.
    pub async fn acquire<C: Clock>(
        self: &Arc<Self>,
        clock: &C,
    ) -> Result<Leadership<C>, LeadershipError> {
        loop {
            let changed = self.changed.listen();
            if let Some((token, version)) = self.admit()? {
                return Ok(Leadership {
                    gate: Arc::clone(self),
                    clock: clock.clone(),
                    token,
                    version,
                });
            }
            changed.await;
        }
    }
}

impl<C: Clock> Leadership<C> {
    /// The fencing token of this leadership: greater than that of every earlier one.
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The token, if leadership is not over at this moment.
    ///
    /// To be asked before each single action of a leader, not once: the answer may be stale as soon as it is
    /// given. There is no way to ask whether a server *is* the leader.
    ///
    /// Where there are leases it compares this machine's monotonic clock, with the time in which the machine was
    /// suspended where the system tells it (Linux): see [`boot_time`](crate::boot_time).
    ///
    /// # Errors
    ///
    /// Why it is over.
    pub fn check(&self) -> Result<FencingToken, Lost> {
        self.standing()?;
        if self.gate.is_suspended() { Err(Lost::Unconfirmed) } else { Ok(self.token) }
    }

    /// Until when no other leader can be established, if the voters promise that: leadership that is over at
    /// this time was over before the next began. It moves on for as long as they answer. None where
    /// leases are off, or too few voters know of them: then only the token separates two leaders.
    pub fn lease(&self) -> Option<Instant> {
        self.standing().ok().flatten()
    }

    /// Until when leadership lasts at least, if that is known.
    fn standing(&self) -> Result<Option<Instant>, Lost> {
        match self.gate.check(self.version)? {
            // By our own clock: this process may have been paused, and have learnt nothing since.
            Some(until) if until <= self.clock.now() => Err(Lost::Deposed),
            lease => Ok(lease),
        }
    }

    /// Waits until leadership is over, and tells why. A leader that gives it up in order waits until the guard is
    /// dropped. After a suspension of the machine it may take up to half a second until a lease is found to be over; a
    /// [`check`](Self::check) finds that at once.
    pub async fn lost(&self) -> Lost {
        loop {
            let changed = self.gate.changed.listen();
            match self.standing() {
                Ok(Some(until)) => {
                    let left = until.saturating_duration_since(self.clock.now());
                    // A timer may stand still while the machine is suspended.
                    or(changed, self.clock.sleep(left.min(LOOK_EVERY))).await;
                }
                Ok(None) => changed.await,
                Err(lost) => return lost,
            }
        }
    }

    /// Does some work for as long as leadership lasts, confirmed or not at every moment: when it is over, the work
    /// is dropped at the point where it waits. Work that does not wait is not interrupted.
    ///
    /// # Errors
    ///
    /// Why leadership is over, if that was before the work was done.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        self.standing()?;
        // The loss first: work that is ready at the same time is too late.
        or(async { Err(self.lost().await) }, async { Ok(work.await) }).await
    }
}

/// How long a wait for the end of a lease is at most before the clock is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl<C: Clock> Drop for Leadership<C> {
    fn drop(&mut self) {
        self.gate.leave();
    }
}

impl<C: Clock> fmt::Debug for Leadership<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Leadership");
        debug.field("token", &self.token.as_u64()).field("lost", &self.check().err()).finish()
    }
}
