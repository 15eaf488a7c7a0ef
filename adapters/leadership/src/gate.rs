//! Which guards are admitted, and which are revoked: the gate that an election holds and its guards pass.
//!
//! What it does not do: know why. It tells guards what the election tells it.

use std::fmt;
use std::sync::PoisonError;
use std::time::Instant;

use event_listener::Event;
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

/// The gate between an election and the guards of one candidate: the side of the election.
///
/// The election reports what is so ([`set`](Self::set), [`end`](Self::end)), and callers that want to lead
/// [`acquire`](Self::acquire) a guard. To give leadership up in order: [`revoke`](Self::revoke), then wait
/// until [`is_released`](Self::is_released).
pub struct LeadershipGate {
    state: Mutex<State>,
    /// Notified when a guard, or a caller that waits for one, has to look again.
    pub(crate) changed: Event,
    /// The guards that the election waits for are gone.
    released: AtomicBool,
    /// Once the last guard is dropped, none is admitted before leadership begins anew.
    held_by_guards: bool,
    /// Wakes the election.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct State {
    /// The token of this candidate's leadership, if it leads.
    leads: Option<FencingToken>,
    /// Counts each beginning, end and revocation of leadership: a guard is valid while its own number is this.
    version: u64,
    /// Leadership was revoked, and no guard is admitted.
    leaving: bool,
    /// The version whose guards were revoked last.
    revoked: Option<u64>,
    /// Until when no other leader can be established, if the voters promise that.
    lease: Option<Instant>,
    /// What confirms leadership (voters, a store) is out of reach.
    suspended: bool,
    guards: usize,
    /// There were guards, and the last one was dropped without having been revoked.
    abandoned: bool,
    ended: bool,
}

impl LeadershipGate {
    /// A gate without leadership. `wake` is called when the last guard was dropped, to make the election look
    /// at [`is_released`](Self::is_released) or [`revoke_if_abandoned`](Self::revoke_if_abandoned). It is
    /// called where the guard is dropped, so it must not block.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Mutex::default(),
            changed: Event::new(),
            released: AtomicBool::new(false),
            held_by_guards: false,
            wake: Box::new(wake),
        }
    }

    /// The same, but leadership lasts only as long as guards do: after the last one was dropped, none is
    /// admitted before the election has [seen](Self::revoke_if_abandoned) that, and leadership has begun anew.
    pub fn held_by_guards(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { held_by_guards: true, ..Self::new(wake) }
    }

    /// Admits a guard, if this candidate leads: with its token and the version under which it is valid.
    pub(crate) fn admit(&self) -> Result<Option<(FencingToken, u64)>, LeadershipError> {
        let mut state = self.locked();
        if state.ended {
            return Err(LeadershipError::Ended);
        }
        let is_open = !state.leaving && !state.suspended;
        let admitted = state.leads.filter(|_| is_open).map(|token| (token, state.version));
        state.guards += usize::from(admitted.is_some());
        Ok(admitted)
    }

    /// Whether a guard of this version is valid, and until when at least, if that is known.
    pub(crate) fn check(&self, version: u64) -> Result<Option<Instant>, Lost> {
        let state = self.locked();
        if state.ended {
            Err(Lost::Ended)
        } else if state.version == version {
            Ok(state.lease)
        } else if state.revoked == Some(version) {
            Err(Lost::Leaving)
        } else {
            Err(Lost::Deposed)
        }
    }

    /// A guard was dropped.
    pub(crate) fn leave(&self) {
        let mut state = self.locked();
        state.guards = state.guards.saturating_sub(1);
        let last = state.guards == 0;
        if last && state.leaving {
            // While none can be admitted: set later, it would be taken for the release of later guards.
            self.released.store(true, Ordering::Release);
        }
        state.abandoned = last && !state.leaving;
        state.leaving |= state.abandoned && self.held_by_guards;
        drop(state);
        if last {
            (self.wake)();
        }
    }

    /// Sets whether this candidate leads, with which token, and until when at least. Guards of a leadership that
    /// is over are told. Returns whether it was [suspended](Self::suspend) before.
    pub fn set(&self, leads: Option<FencingToken>, lease: Option<Instant>) -> bool {
        let mut state = self.locked();
        // Guards that sleep until the end of a lease are woken only if it may end sooner than they know.
        let sooner = match (state.lease, lease) {
            (Some(before), Some(until)) => until < before,
            (before, until) => before != until,
        };
        state.lease = lease;
        let changed = state.leads != leads;
        if changed {
            state.leads = leads;
            state.version += 1;
            state.leaving = false;
            state.abandoned = false;
        }
        let resumed = std::mem::take(&mut state.suspended);
        drop(state);
        if changed || sooner || resumed {
            self.changed.notify(usize::MAX);
        }
        resumed
    }

    /// Until when at least this candidate leads; none if it does not, or if nobody knows.
    pub fn lease(&self) -> Option<Instant> {
        let state = self.locked();
        state.leads.and(state.lease)
    }

    /// Leadership is not confirmed until it is [`set`](Self::set) again: no guard is admitted, and
    /// [`Leadership::check`](crate::Leadership::check) fails. Work under way goes on: no other candidate leads
    /// before the lease is over.
    pub fn suspend(&self) {
        self.locked().suspended = true;
    }

    /// Leadership is to be given up: revokes all guards, and admits none.
    pub fn revoke(&self) {
        self.revoke_all(self.locked());
    }

    /// The same, if there were guards and the last one was dropped by its owner: the leader's work is no longer
    /// done here. Returns whether that was so.
    pub fn revoke_if_abandoned(&self) -> bool {
        let state = self.locked();
        let abandoned = state.abandoned && state.guards == 0 && state.leads.is_some();
        if abandoned {
            self.revoke_all(state);
        }
        abandoned
    }

    fn revoke_all(&self, mut state: MutexGuard<'_, State>) {
        state.abandoned = false;
        state.revoked = Some(state.version);
        state.version += 1;
        state.leaving = true;
        self.released.store(state.guards == 0, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// Leadership is kept after all: guards are admitted again. Those that were revoked stay revoked.
    pub fn reopen(&self) {
        let mut state = self.locked();
        state.leaving = false;
        self.released.store(false, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
    }

    /// Whether all revoked guards have been dropped; true once.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire) && self.released.swap(false, Ordering::AcqRel)
    }

    /// Whether there are guards, valid or not. The election is woken when the last one was dropped.
    pub fn has_guards(&self) -> bool {
        self.locked().guards > 0
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

impl fmt::Debug for LeadershipGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeadershipGate").field("state", &*self.locked()).finish_non_exhaustive()
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

    /// A gate, and how often it has woken its election.
    fn gate() -> (LeadershipGate, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&woken);
        let wake = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        (LeadershipGate::new(wake), woken)
    }

    const FIRST: Option<FencingToken> = Some(FencingToken::elected(1));

    /// Whether a guard that waits is woken when the election sets this after that.
    fn tells(before: Option<u64>, after: Option<u64>) -> bool {
        let (gate, _woken) = gate();
        let now = Instant::now();
        let at = |ms: Option<u64>| ms.map(|ms| now + Duration::from_millis(ms));
        gate.set(FIRST, at(before));
        let changed = gate.changed.listen();
        gate.set(FIRST, at(after));
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
    fn leadership_is_released_once_and_by_the_guards_that_were_revoked() {
        let (gate, woken) = gate();
        let admit = |gate: &LeadershipGate| gate.locked().guards += 1;
        gate.set(FIRST, None);
        gate.revoke();
        assert!(gate.is_released(), "there is no guard");
        assert!(!gate.is_released(), "it is said once");
        gate.reopen();
        admit(&gate);
        admit(&gate);
        gate.revoke();
        gate.leave();
        assert!(!gate.is_released(), "one is left");
        // Called off, and another admitted: the end of the first is no release.
        gate.reopen();
        admit(&gate);
        gate.leave();
        assert!(!gate.is_released());
        gate.revoke();
        assert!(!gate.is_released() && woken.load(Ordering::Relaxed) == 0);
        gate.leave();
        assert!(woken.load(Ordering::Relaxed) == 1 && gate.is_released());
        // What was released and then kept is not released.
        gate.revoke();
        gate.reopen();
        assert!(!gate.is_released());
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

    /// The clock of a machine that is suspended whenever it waits: its timer ends early, by that clock.
    #[derive(Clone)]
    struct Suspended(Arc<Mutex<(Instant, Vec<Duration>)>>);

    impl Suspended {
        fn sleeps(&self) -> Vec<Duration> {
            self.0.lock().unwrap().1.clone()
        }
    }

    impl Clock for Suspended {
        fn now(&self) -> Instant {
            self.0.lock().unwrap().0
        }

        fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
            let (now, sleeps) = &mut *self.0.lock().unwrap();
            *now += Duration::from_secs(3600);
            sleeps.push(duration);
            std::future::ready(())
        }
    }

    /// A timer stands still while its machine does, and would end an hour after the lease.
    #[test]
    fn a_lease_is_over_at_once_on_a_machine_that_was_suspended() {
        let gate = Arc::new(gate().0);
        let begun = Instant::now();
        let clock = Suspended(Arc::new(Mutex::new((begun, Vec::new()))));
        gate.set(FIRST, Some(begun + Duration::from_secs(600)));
        let guard = block_on(gate.acquire(&clock)).unwrap();
        assert!(guard.check().is_ok());
        assert_eq!(block_on(guard.lost()), Lost::Deposed);
        assert_eq!((guard.check(), guard.lease()), (Err(Lost::Deposed), None));
        assert_eq!(
            clock.sleeps(),
            [Duration::from_millis(500)],
            "the clock is looked at again soon"
        );
    }

    #[test]
    fn leadership_that_is_not_confirmed_permits_nothing_and_ends_nothing() {
        let (gate, _) = gate();
        let gate = Arc::new(gate);
        let now = Instant::now();
        let (clock, until) = (Stopped(now), Some(now + Duration::from_secs(1)));
        gate.set(FIRST, until);
        let guard = block_on(gate.acquire(&clock)).expect("it leads");
        gate.suspend();
        assert_eq!(guard.check(), Err(Lost::Unconfirmed));
        assert_eq!(guard.lease(), until, "no other leads before that");
        assert!(block_on(poll_once(guard.lost())).is_none());
        assert_eq!(block_on(guard.run(async { 7 })), Ok(7));
        let mut second = Box::pin(gate.acquire(&clock));
        assert!(block_on(poll_once(&mut second)).is_none(), "none is admitted");
        gate.set(FIRST, until);
        assert!(guard.check().is_ok() && block_on(poll_once(&mut second)).is_some());
        // By its own clock it is over, whatever was said.
        gate.set(FIRST, Some(now));
        assert_eq!(guard.check(), Err(Lost::Deposed));
    }

    #[test]
    fn leadership_that_its_guards_have_abandoned_is_given_up_once() {
        let (gate, woken) = gate();
        let admit = |gate: &LeadershipGate| gate.locked().guards += 1;
        gate.set(FIRST, None);
        assert!(!gate.revoke_if_abandoned(), "there was no guard");
        admit(&gate);
        admit(&gate);
        gate.leave();
        assert!(!gate.revoke_if_abandoned(), "one is left");
        gate.leave();
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert!(gate.revoke_if_abandoned() && gate.is_released());
        assert!(!gate.revoke_if_abandoned(), "it is said once");
        // Another came in time.
        gate.set(Some(FencingToken::elected(2)), None);
        admit(&gate);
        gate.leave();
        admit(&gate);
        assert!(!gate.revoke_if_abandoned());
        // Leadership that has ended meanwhile is not given up.
        gate.leave();
        gate.set(None, None);
        assert!(!gate.revoke_if_abandoned());
    }

    #[test]
    fn leadership_held_by_guards_is_over_when_the_last_of_them_has_gone() {
        let clock = Stopped(Instant::now());
        for held in [false, true] {
            let gate = Arc::new(if held {
                LeadershipGate::held_by_guards(|| {})
            } else {
                LeadershipGate::new(|| {})
            });
            gate.set(FIRST, None);
            drop(block_on(gate.acquire(&clock)));
            let mut again = Box::pin(gate.acquire(&clock));
            let taken = block_on(poll_once(&mut again));
            assert_eq!(taken.is_none(), held);
            assert_eq!(gate.revoke_if_abandoned(), held, "there is a guard again");
            gate.set(Some(FencingToken::elected(2)), None);
            if held {
                assert!(block_on(poll_once(&mut again)).is_some(), "it leads anew");
            }
        }
    }
}
