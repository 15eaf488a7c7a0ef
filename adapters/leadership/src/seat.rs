//! The side of whoever runs an election: who may be let in, and who is to go.
//!
//! What it does not do: know why. It says to guards what the election says to it.

use std::fmt;
use std::sync::PoisonError;
use std::time::Instant;

use event_listener::Event as Bell;
#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

use crate::error::{LeadershipError, Lost};
use crate::token::FencingToken;

/// The seat of the leader, as the guards at one candidate see it: the side of whoever runs an election.
///
/// The election says what is so ([`set`](Self::set), [`end`](Self::end)), and those who wait to lead
/// [`take`](Self::take) a guard. To give the seat up in order: [`send_away`](Self::send_away), then wait
/// until it [`is_released`](Self::is_released).
pub struct Seat {
    state: Mutex<State>,
    pub(crate) changed: Bell,
    /// Nobody is left whom the election waits for.
    released: AtomicBool,
    /// Nobody is let in any more once the last guard of a reign has gone.
    once: bool,
    /// Wakes the election.
    bell: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct State {
    /// The token of this candidate's reign, if it leads.
    leads: Option<FencingToken>,
    /// How often that has changed, or the guards were sent away.
    reign: u64,
    /// The guards were sent away, and none is let in.
    leaving: bool,
    /// In which reign guards were sent away last.
    sent_away: Option<u64>,
    /// Until when no other can be established, if voters promise that.
    lease: Option<Instant>,
    /// Whoever confirms the reign is out of reach.
    suspended: bool,
    guards: usize,
    /// There were guards in this reign, and the last has left without being sent away.
    left: bool,
    ended: bool,
}

impl Seat {
    /// A seat that nobody has. `bell` is rung when the last guard has gone: it wakes the election, which
    /// looks at [`is_released`](Self::is_released) or [`send_away_if_left`](Self::send_away_if_left). It
    /// is called from wherever the guard is dropped, so it must not wait.
    pub fn new(bell: impl Fn() + Send + Sync + 'static) -> Self {
        let (state, changed) = (Mutex::default(), Bell::new());
        Self { state, changed, released: AtomicBool::new(false), once: false, bell: Box::new(bell) }
    }

    /// The same, but a reign is over for all when its last guard has gone: nobody is let in again before
    /// the election has [seen](Self::send_away_if_left) that, and begun another.
    pub fn once(bell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { once: true, ..Self::new(bell) }
    }

    /// Lets a guard in, if this candidate leads: with its token, in this reign.
    pub(crate) fn enter(&self) -> Result<Option<(FencingToken, u64)>, LeadershipError> {
        let mut state = self.locked();
        if state.ended {
            return Err(LeadershipError::Ended);
        }
        let is_open = !state.leaving && !state.suspended;
        let entered = state.leads.filter(|_| is_open).map(|token| (token, state.reign));
        state.guards += usize::from(entered.is_some());
        Ok(entered)
    }

    /// Whether a reign goes on, and until when at least, if that is known.
    pub(crate) fn check(&self, reign: u64) -> Result<Option<Instant>, Lost> {
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

    pub(crate) fn leave(&self) {
        let mut state = self.locked();
        state.guards = state.guards.saturating_sub(1);
        let last = state.guards == 0;
        if last && state.leaving {
            // While nobody can be let in: said later, it would be taken for the end of others.
            self.released.store(true, Ordering::Release);
        }
        state.left = last && !state.leaving;
        state.leaving |= state.left && self.once;
        drop(state);
        if last {
            (self.bell)();
        }
    }

    /// Says whether this candidate leads, with which token, and until when at least. Guards of a reign that
    /// is over are told. Returns whether it was [suspended](Self::suspend) before.
    pub fn set(&self, leads: Option<FencingToken>, lease: Option<Instant>) -> bool {
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
            state.left = false;
        }
        let resumed = std::mem::take(&mut state.suspended);
        drop(state);
        if changed || sooner || resumed {
            self.changed.notify(usize::MAX);
        }
        resumed
    }

    /// Leadership is not confirmed at the moment, until it is [`set`](Self::set) again: none is let in, and
    /// [`Leadership::check`](crate::Leadership::check) says no. What is under way goes on: nobody else leads before the lease is over.
    pub fn suspend(&self) {
        self.locked().suspended = true;
    }

    /// The seat is to be given up: sends the guards away, and lets none in.
    pub fn send_away(&self) {
        self.send_away_all(self.locked());
    }

    /// The same, if guards were there and the last has gone by itself: whoever did the leader's work does it
    /// no more. Says whether that was so.
    pub fn send_away_if_left(&self) -> bool {
        let state = self.locked();
        let left = state.left && state.guards == 0 && state.leads.is_some();
        if left {
            self.send_away_all(state);
        }
        left
    }

    fn send_away_all(&self, mut state: MutexGuard<'_, State>) {
        state.left = false;
        state.sent_away = Some(state.reign);
        state.reign += 1;
        state.leaving = true;
        self.released.store(state.guards == 0, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// The seat is kept after all: guards are let in again.
    pub fn keep(&self) {
        let mut state = self.locked();
        state.leaving = false;
        self.released.store(false, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// Whether those that were sent away are gone; says so once.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire) && self.released.swap(false, Ordering::AcqRel)
    }

    /// Whether no guard is there, of this reign or an earlier one. The bell rings when the last has gone.
    pub fn is_vacant(&self) -> bool {
        self.locked().guards == 0
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.locked().suspended
    }

    /// The election has ended, here: there will be no leadership any more.
    pub fn end(&self) {
        self.locked().ended = true;
        self.changed.notify(usize::MAX);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("state", &*self.locked()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use futures_lite::future::{block_on, poll_once};

    use std::sync::Arc;

    use super::*;
    use crate::clock::Clock;

    /// A seat, and how often it has rung.
    fn seat() -> (Seat, Arc<AtomicUsize>) {
        let rung = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&rung);
        let bell = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        (Seat::new(bell), rung)
    }

    const FIRST: Option<FencingToken> = Some(FencingToken::elected(1));

    /// Whether those who wait look again when the loop says this after that.
    fn tells(before: Option<u64>, after: Option<u64>) -> bool {
        let (seat, _rung) = seat();
        let now = Instant::now();
        let at = |ms: Option<u64>| ms.map(|ms| now + Duration::from_millis(ms));
        seat.set(FIRST, at(before));
        let changed = seat.changed.listen();
        seat.set(FIRST, at(after));
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
        seat.set(FIRST, None);
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
        assert!(!seat.is_released() && rung.load(Ordering::Relaxed) == 0);
        seat.leave();
        assert!(rung.load(Ordering::Relaxed) == 1 && seat.is_released());
        // What was released and then kept is not released.
        seat.send_away();
        seat.keep();
        assert!(!seat.is_released());
    }

    #[derive(Clone)]
    struct Stopped(Instant);

    impl Clock for Stopped {
        fn now(&self) -> Instant {
            self.0
        }

        fn sleep(&self, _: Duration) -> impl Future<Output = ()> + Send {
            std::future::pending()
        }
    }

    #[test]
    fn leadership_that_is_not_confirmed_permits_nothing_and_ends_nothing() {
        let (seat, _) = seat();
        let seat = Arc::new(seat);
        let now = Instant::now();
        let (clock, until) = (Stopped(now), Some(now + Duration::from_secs(1)));
        seat.set(FIRST, until);
        let guard = block_on(seat.take(&clock)).expect("it leads");
        seat.suspend();
        assert_eq!(guard.check(), Err(Lost::Unconfirmed));
        assert_eq!(guard.lease(), until, "nobody else leads before that");
        assert!(block_on(poll_once(guard.lost())).is_none());
        assert_eq!(block_on(guard.run(async { 7 })), Ok(7));
        let mut second = Box::pin(seat.take(&clock));
        assert!(block_on(poll_once(&mut second)).is_none(), "nobody is let in");
        seat.set(FIRST, until);
        assert!(guard.check().is_ok() && block_on(poll_once(&mut second)).is_some());
        // By its own clock it is over, whatever was said.
        seat.set(FIRST, Some(now));
        assert_eq!(guard.check(), Err(Lost::Deposed));
    }

    #[test]
    fn a_seat_that_its_guards_have_left_by_themselves_is_given_up_once() {
        let (seat, rung) = seat();
        let enter = |seat: &Seat| seat.locked().guards += 1;
        seat.set(FIRST, None);
        assert!(!seat.send_away_if_left(), "nobody was there");
        enter(&seat);
        enter(&seat);
        seat.leave();
        assert!(!seat.send_away_if_left(), "one is left");
        seat.leave();
        assert_eq!(rung.load(Ordering::Relaxed), 1);
        assert!(seat.send_away_if_left() && seat.is_released());
        assert!(!seat.send_away_if_left(), "it is said once");
        // Somebody came back in time.
        seat.set(Some(FencingToken::elected(2)), None);
        enter(&seat);
        seat.leave();
        enter(&seat);
        assert!(!seat.send_away_if_left());
        // A reign that has ended meanwhile is not given up.
        seat.leave();
        seat.set(None, None);
        assert!(!seat.send_away_if_left());
    }

    #[test]
    fn a_reign_is_over_for_all_when_its_last_guard_has_gone_where_that_is_so() {
        let clock = Stopped(Instant::now());
        for once in [false, true] {
            let seat = Arc::new(if once { Seat::once(|| {}) } else { Seat::new(|| {}) });
            seat.set(FIRST, None);
            drop(block_on(seat.take(&clock)));
            let mut again = Box::pin(seat.take(&clock));
            let taken = block_on(poll_once(&mut again));
            assert_eq!(taken.is_none(), once);
            assert_eq!(seat.send_away_if_left(), once, "somebody is there again");
            seat.set(Some(FencingToken::elected(2)), None);
            if once {
                assert!(block_on(poll_once(&mut again)).is_some(), "another reign");
            }
        }
    }
}
