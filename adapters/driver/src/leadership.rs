//! Leadership as a guard: the right to do what only a leader may, for as long as the guard is there.
//!
//! ```text
//!   leadership().await ──► Leadership ── token() ──► with every write to whatever is guarded
//!                             ├── run(work) ──► work is dropped when the seat is lost
//!                             ├── lost() ─────► when
//!                             └── dropped ────► the seat may go to another server
//! ```
//!
//! A leader that gives its seat up by itself (to hand it over, to step down, to shut down) first tells its
//! guards, and keeps the seat until they are gone. One that loses it cannot wait: it tells them, and
//! whatever they still do may overlap with what the next leader does. That is what the token is for: what
//! is guarded refuses a token that is smaller than one it has seen.
//!
//! What it does not do: decide who leads, or when that is over.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_channel::Sender;
use event_listener::Event as Bell;
use futures_lite::future::or;
use quorate_core::zxid::Epoch;
use thiserror::Error;

use crate::link::Happened;
use crate::runtime::Runtime;

/// The right to do what only the leader may. See [`Server::leadership`](crate::Server::leadership).
///
/// There may be several at one server; the seat is kept for all of them. To share one, put it in an
/// [`Arc`]. One that is leaked keeps the seat from being handed over in order, and nothing else.
pub struct Leadership<R: Runtime> {
    seat: Arc<Seat>,
    runtime: R,
    token: FencingToken,
    reign: u64,
}

/// A number that every later leader's is greater than: the epoch of the reign.
///
/// No two reigns have the same, whoever led, and whatever was restarted in between. What is guarded by
/// leadership has to compare it: a store that has seen a token refuses a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(epoch: Epoch) -> Self {
        Self(u64::try_from(epoch.0).unwrap_or(0))
    }

    /// As a number, for a store that knows numbers only.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another leader may be in office already.
    #[error("this server no longer leads")]
    Deposed,
    /// The seat is to be given up; it is kept until the guards are gone.
    #[error("this server is about to give up its seat")]
    Leaving,
    /// The server has ended.
    #[error("this server has ended")]
    Ended,
}

/// Why there is no leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LeadershipError {
    /// The server has ended.
    #[error("this server has ended")]
    Ended,
    /// It did not come to lead in time.
    #[error("this server did not come to lead within {0:?}")]
    Elapsed(Duration),
}

impl<R: Runtime> Leadership<R> {
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
        self.standing().map(|_| self.token)
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
            Some(until) if until <= self.runtime.now() => Err(Lost::Deposed),
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
                    let left = until.saturating_duration_since(self.runtime.now());
                    or(changed, self.runtime.sleep(left)).await;
                }
                Ok(None) => changed.await,
                Err(lost) => return lost,
            }
        }
    }

    /// Does some work, for as long as leadership lasts: when it is over, the work is dropped at the point
    /// where it waits. Work that does not wait is not interrupted.
    ///
    /// # Errors
    ///
    /// Why leadership is over, if that was before the work was done.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        self.check()?;
        // The loss first: work that is ready at the same time came too late.
        or(async { Err(self.lost().await) }, async { Ok(work.await) }).await
    }
}

impl<R: Runtime> Drop for Leadership<R> {
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl<R: Runtime> fmt::Debug for Leadership<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Leadership");
        debug.field("token", &self.token.0).field("lost", &self.check().err()).finish()
    }
}

/// The seat of the leader, as the guards at one server see it.
#[derive(Debug)]
pub(crate) struct Seat {
    state: Mutex<State>,
    changed: Bell,
    /// Nobody is left whom the loop waits for.
    released: AtomicBool,
    /// Wakes the loop.
    bell: Sender<Happened>,
}

#[derive(Debug, Default)]
struct State {
    /// The epoch in which this server leads, if it does.
    leads: Option<Epoch>,
    /// How often that has changed, or the guards were sent away.
    reign: u64,
    /// The guards were sent away, and none is let in.
    leaving: bool,
    /// In which reign guards were sent away last.
    sent_away: Option<u64>,
    /// Until when no other can be established, if voters promise that.
    lease: Option<Instant>,
    guards: usize,
    ended: bool,
}

impl Seat {
    pub(crate) fn new(bell: Sender<Happened>) -> Self {
        let (state, changed) = (Mutex::default(), Bell::new());
        Self { state, changed, released: AtomicBool::new(false), bell }
    }

    /// Waits until this server leads, and lets a guard in.
    pub(crate) async fn take<R: Runtime>(
        self: &Arc<Self>,
        runtime: &R,
    ) -> Result<Leadership<R>, LeadershipError> {
        loop {
            let changed = self.changed.listen();
            {
                let mut state = self.locked();
                if state.ended {
                    return Err(LeadershipError::Ended);
                }
                if let Some(epoch) = state.leads.filter(|_| !state.leaving) {
                    state.guards += 1;
                    return Ok(Leadership {
                        seat: Arc::clone(self),
                        runtime: runtime.clone(),
                        token: FencingToken::new(epoch),
                        reign: state.reign,
                    });
                }
            }
            changed.await;
        }
    }

    /// Whether a reign goes on, and until when at least, if that is known.
    fn check(&self, reign: u64) -> Result<Option<Instant>, Lost> {
        let state = self.locked();
        if state.ended {
            Err(Lost::Ended)
        } else if state.reign == reign {
            Ok(state.lease)
        } else if state.sent_away == Some(reign) {
            Err(Lost::Leaving)
        } else {
            Err(Lost::Deposed)
        }
    }

    fn leave(&self) {
        let mut state = self.locked();
        state.guards = state.guards.saturating_sub(1);
        let released = state.guards == 0 && state.leaving;
        if released {
            // While nobody can be let in: said later, it would be taken for the end of others.
            self.released.store(true, Ordering::Release);
        }
        drop(state);
        if released {
            // Full: the loop is awake, and looks here before it waits again.
            drop(self.bell.try_send(Happened::Rung));
        }
    }

    /// The loop says whether this server leads, in which epoch, and until when at least.
    pub(crate) fn set(&self, leads: Option<Epoch>, lease: Option<Instant>) {
        let mut state = self.locked();
        // Those who wait for a lease to be over look again only if that may be sooner than they know.
        let sooner = match (state.lease, lease) {
            (Some(before), Some(until)) => until < before,
            (before, until) => before != until,
        };
        state.lease = lease;
        let changed = state.leads != leads;
        if changed {
            state.leads = leads;
            state.reign += 1;
            state.leaving = false;
        }
        drop(state);
        if changed || sooner {
            self.changed.notify(usize::MAX);
        }
    }

    /// The seat is to be given up: sends the guards away.
    pub(crate) fn send_away(&self) {
        let mut state = self.locked();
        state.sent_away = Some(state.reign);
        state.reign += 1;
        state.leaving = true;
        self.released.store(state.guards == 0, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// The seat is kept after all.
    pub(crate) fn keep(&self) {
        let mut state = self.locked();
        state.leaving = false;
        self.released.store(false, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// Whether those that were sent away are gone; says so once.
    pub(crate) fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire) && self.released.swap(false, Ordering::AcqRel)
    }

    /// The server has ended.
    pub(crate) fn end(&self) {
        self.locked().ended = true;
        self.changed.notify(usize::MAX);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use async_channel::{Receiver, bounded};
    use futures_lite::future::{block_on, poll_once};

    use super::*;

    fn seat() -> (Seat, Receiver<Happened>) {
        let (bell, rung) = bounded(1);
        (Seat::new(bell), rung)
    }

    /// Whether those who wait look again when the loop says this after that.
    fn tells(before: Option<u64>, after: Option<u64>) -> bool {
        let (seat, _rung) = seat();
        let (now, epoch) = (Instant::now(), Some(Epoch(1)));
        let at = |ms: Option<u64>| ms.map(|ms| now + Duration::from_millis(ms));
        seat.set(epoch, at(before));
        let changed = seat.changed.listen();
        seat.set(epoch, at(after));
        block_on(poll_once(changed)).is_some()
    }

    /// They sleep until the end that they know of, and the loop may be held up when a sooner one comes.
    #[test]
    fn a_lease_that_ends_sooner_than_before_is_told() {
        assert!(tells(Some(9), Some(5)));
        assert!(tells(None, Some(5)), "they know of none");
        assert!(tells(Some(5), None));
        assert!(!tells(Some(5), Some(9)), "they look again in time");
        assert!(!tells(None, None) && !tells(Some(5), Some(5)));
    }

    #[test]
    fn the_seat_is_released_once_and_by_those_who_were_sent_away() {
        let (seat, rung) = seat();
        let enter = |seat: &Seat| seat.locked().guards += 1;
        seat.set(Some(Epoch(1)), None);
        seat.send_away();
        assert!(seat.is_released(), "nobody is there");
        assert!(!seat.is_released(), "it is said once");
        seat.keep();
        enter(&seat);
        enter(&seat);
        seat.send_away();
        seat.leave();
        assert!(!seat.is_released(), "one is left");
        // Called off, and somebody else let in: the end of the first is nobody's release.
        seat.keep();
        enter(&seat);
        seat.leave();
        assert!(!seat.is_released());
        seat.send_away();
        assert!(!seat.is_released() && rung.is_empty());
        seat.leave();
        assert!(rung.try_recv().is_ok() && seat.is_released());
        // What was released and then kept is not released.
        seat.send_away();
        seat.keep();
        assert!(!seat.is_released());
    }
}
