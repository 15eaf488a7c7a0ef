//! Leadership as a guard: the right to do what only a leader may, for as long as the guard is there.
//!
//! ```text
//!   leadership().await ──► Leadership ── token() ──► with every write to whatever is guarded
//!                             ├── run(work) ──► work is dropped when the seat is lost
//!                             ├── lost() ─────► when
//!                             └── dropped ────► the seat may go to another
//!
//!   whoever runs an election ──► Seat ── set(leads, lease), send_away(), keep(), end()
//!                                  └──── take() ──► a guard, for who waits to lead
//! ```
//!
//! The guard is the same whatever elects: a server of one's own, or a store that is there already.
//!
//! A leader that gives its seat up by itself (to hand it over, to step down, to shut down) first tells its
//! guards, and keeps the seat until they are gone. One that loses it cannot wait: it tells them, and
//! whatever they still do may overlap with what the next leader does. That is what the token is for: what
//! is guarded refuses a token that is smaller than one it has seen.
//!
//! What it does not do: decide who leads, or when that is over. Programs that want to lead need nothing of
//! this crate by name: the crates that elect name it again. [`Seat`] and [`Clock`] are for those.
#![forbid(unsafe_code, unused_must_use)]

mod seat;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::or;
use thiserror::Error;

pub use crate::seat::Seat;

/// What a guard needs of an async runtime.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// The right to do what only the leader may.
///
/// There may be several at one server; the seat is kept for all of them. To share one, put it in an
/// [`Arc`]. One that is leaked keeps the seat from being handed over in order, and nothing else.
pub struct Leadership<C: Clock> {
    seat: Arc<Seat>,
    clock: C,
    token: FencingToken,
    reign: u64,
}

/// A number that every later leader's is greater than: the epoch of the reign, or the revision at which a
/// store took note of the leader.
///
/// No two reigns have the same, whoever led, and whatever was restarted in between. What is guarded by
/// leadership has to compare it: a store that has seen a token refuses a smaller one.
///
/// The token of a leader that was designated by an operator instead of elected is the operator's number,
/// and is marked ([`is_designated`](Self::is_designated)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    number: u64,
    designated: bool,
}

impl FencingToken {
    /// The token of an elected leader. For whoever runs the election, which gives each number once.
    pub const fn elected(number: u64) -> Self {
        Self { number, designated: false }
    }

    /// The token of a leader that an operator has designated, who answers for the number.
    pub const fn designated(number: u64) -> Self {
        Self { number, designated: true }
    }

    /// As a number, for a store that knows numbers only.
    pub const fn as_u64(self) -> u64 {
        self.number
    }

    /// Whether the leader was designated by an operator; elected if not.
    pub const fn is_designated(self) -> bool {
        self.designated
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another leader may be in office already.
    #[error("leadership is over, and another may lead already")]
    Deposed,
    /// Whoever confirms leadership is out of reach. Nobody else leads before what
    /// [`lease`](Leadership::lease) has said last; by then it is confirmed again, or lost for good.
    #[error("leadership is not confirmed at the moment")]
    Unconfirmed,
    /// The seat is to be given up; it is kept until the guards are gone.
    #[error("leadership is about to be given up")]
    Leaving,
    /// Whoever stood for it has ended: the server, or the candidate.
    #[error("leadership is over: whoever stood for it has ended")]
    Ended,
}

/// Why there is no leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LeadershipError {
    /// Whoever stood for it has ended: the server, or the candidate.
    #[error("nobody stands for leadership here any more")]
    Ended,
    /// It did not come to lead in time.
    #[error("leadership did not come within {0:?}")]
    Elapsed(Duration),
}

impl<C: Clock> Leadership<C> {
    /// What tells this reign from all others.
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The token, if leadership is not over at this moment.
    ///
    /// To be asked before each thing that only a leader may do, not once: what it says is over as soon as it
    /// is said. There is no way to ask whether a server *is* the leader.
    ///
    /// Where there are leases it looks at this machine's monotonic clock. One that stands still while the
    /// machine is suspended tells nothing of that time: there, the token is the guarantee.
    ///
    /// # Errors
    ///
    /// Why it is over.
    pub fn check(&self) -> Result<FencingToken, Lost> {
        self.standing()?;
        if self.seat.is_suspended() { Err(Lost::Unconfirmed) } else { Ok(self.token) }
    }

    /// Until when no other leader can be established, if the voters promise that: leadership that is over at
    /// this time was over before the next began. It moves on for as long as they answer. None where
    /// leases are off, or too few voters know of them: then only the token tells two leaders apart.
    pub fn lease(&self) -> Option<Instant> {
        self.standing().ok().flatten()
    }

    /// Until when leadership lasts at least, if that is known.
    fn standing(&self) -> Result<Option<Instant>, Lost> {
        match self.seat.check(self.reign)? {
            // By our own clock: we may have been paused, and not heard of anything since.
            Some(until) if until <= self.clock.now() => Err(Lost::Deposed),
            lease => Ok(lease),
        }
    }

    /// Waits until leadership is over, and tells why. The seat is not given up before the guard is dropped,
    /// if that is up to us.
    pub async fn lost(&self) -> Lost {
        loop {
            let changed = self.seat.changed.listen();
            match self.standing() {
                Ok(Some(until)) => {
                    let left = until.saturating_duration_since(self.clock.now());
                    or(changed, self.clock.sleep(left)).await;
                }
                Ok(None) => changed.await,
                Err(lost) => return lost,
            }
        }
    }

    /// Does some work, for as long as leadership lasts, confirmed or not at every moment: when it is over, the work is dropped at the point
    /// where it waits. Work that does not wait is not interrupted.
    ///
    /// # Errors
    ///
    /// Why leadership is over, if that was before the work was done.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        self.standing()?;
        // The loss first: work that is ready at the same time came too late.
        or(async { Err(self.lost().await) }, async { Ok(work.await) }).await
    }
}

impl<C: Clock> Drop for Leadership<C> {
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl<C: Clock> fmt::Debug for Leadership<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Leadership");
        debug.field("token", &self.token.as_u64()).field("lost", &self.check().err()).finish()
    }
}
