//! The sessions of the ensemble at a leader of ZooKeeper: `SessionTrackerImpl` and `ExpiryQueue`.
//!
//! A session expires when its tick has come, and nothing is asked of the server at which its client is. So a leader that stood
//! still expires all whose time passed meanwhile, before it hears what came.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::id::Origin;
use quorate_core::time::Instant;

/// `SessionTrackerImpl.SessionImpl`.
#[derive(Clone, Copy, Debug)]
struct Session {
    closing: bool,
    /// By which way its requests come; none if that is not known yet.
    owner: Option<Origin>,
    expires: Instant,
    timeout_ms: i32,
}

/// Why a session may not be asked for something: `SessionTracker.checkSession`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not known, or ends.
    Expired,
    /// Its requests come by another way.
    Moved,
}

#[derive(Debug)]
pub(super) struct Tracker {
    tick: Duration,
    sessions: BTreeMap<i64, Session>,
    /// `ExpiryQueue.expiryMap`.
    buckets: BTreeSet<(Instant, i64)>,
}

impl Tracker {
    pub(super) fn new(tick: Duration) -> Self {
        Self { tick, sessions: BTreeMap::new(), buckets: BTreeSet::new() }
    }

    /// `trackSession`: of one that is known the owner stays, and so does that it ends.
    pub(super) fn track(&mut self, now: Instant, id: i64, timeout_ms: i32) {
        let new = Session { closing: false, owner: None, expires: now, timeout_ms };
        self.sessions.entry(id).or_insert(new);
        self.update(now, id, timeout_ms);
    }

    /// `touchSession`.
    pub(super) fn touch(&mut self, now: Instant, id: i64, timeout_ms: i32) -> bool {
        let lives = self.sessions.get(&id).is_some_and(|session| !session.closing);
        if lives {
            self.update(now, id, timeout_ms);
        }
        lives
    }

    /// A client of its own has spoken: the time-out is that of the connection (`ServerCnxn.getSessionTimeout`), whether the
    /// session is in the leader's tree yet or not. `ZooKeeperServer.touch`.
    pub(super) fn touch_own(&mut self, now: Instant, id: i64) {
        let lives = self.sessions.get(&id).filter(|session| !session.closing);
        if let Some(timeout_ms) = lives.map(|session| session.timeout_ms) {
            self.update(now, id, timeout_ms);
        }
    }

    /// `checkSession`.
    pub(super) fn check(&mut self, id: i64, by: Origin) -> Result<(), Refused> {
        let session = self.sessions.get_mut(&id).filter(|session| !session.closing);
        let session = session.ok_or(Refused::Expired)?;
        if *session.owner.get_or_insert(by) == by { Ok(()) } else { Err(Refused::Moved) }
    }

    /// `setOwner`.
    pub(super) fn set_owner(&mut self, id: i64, owner: Option<Origin>) {
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.closing) {
            session.owner = owner;
        }
    }

    /// `setSessionClosing`.
    pub(super) fn set_closing(&mut self, id: i64) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.closing = true;
        }
    }

    /// `removeSession`.
    pub(super) fn remove(&mut self, id: i64) {
        if let Some(session) = self.sessions.remove(&id) {
            self.buckets.remove(&(session.expires, id));
        }
    }

    /// `ExpiryQueue.update`: one that has expired is not in the queue any more, and comes back to it.
    fn update(&mut self, now: Instant, id: i64, timeout_ms: i32) {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        let expires = self.next_interval(now + timeout);
        if let Some(session) = self.sessions.get_mut(&id) {
            self.buckets.remove(&(session.expires, id));
            session.expires = expires;
            self.buckets.insert((expires, id));
        }
    }

    /// `ExpiryQueue.roundToNextInterval`.
    fn next_interval(&self, at: Instant) -> Instant {
        let tick = Instant::from_origin(self.tick).0.max(1);
        Instant((at.0 / tick + 1) * tick)
    }

    /// `ExpiryQueue.poll`: those whose tick has come; each of them is closing.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<i64> {
        let mut expired = Vec::new();
        while let Some((at, id)) = self.buckets.first().copied().filter(|(at, _)| *at <= now) {
            self.buckets.remove(&(at, id));
            self.set_closing(id);
            expired.push(id);
        }
        expired
    }

    /// `ExpiryQueue.getWaitTime`.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.buckets.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::id::LinkId;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn a_session_expires_at_its_tick_whatever_its_server_has_not_told_yet() {
        let mut tracker = Tracker::new(Duration::from_millis(500));
        tracker.track(at(0), 7, 1000);
        tracker.track(at(0), 8, 1000);
        tracker.track(at(0), 9, 1000);
        assert!(tracker.touch(at(600), 8, 1000));
        tracker.touch_own(at(1400), 9);
        assert_eq!(tracker.poll(at(1499)), Vec::<i64>::new());
        assert_eq!(tracker.poll(at(2000)), [7, 8]);
        assert_eq!(tracker.poll(at(9000)), [9], "of a leader that stood still, all");
        assert!(!tracker.touch(at(9000), 8, 1000));
        assert_eq!(tracker.check(8, Origin::Service), Err(Refused::Expired));
    }

    #[test]
    fn the_first_request_says_by_which_way_others_come_until_it_is_said_anew() {
        let mut tracker = Tracker::new(Duration::from_millis(500));
        tracker.track(at(0), 7, 1000);
        let learner = Origin::Learner(LinkId(3));
        assert_eq!(tracker.check(7, Origin::Service), Ok(()));
        assert_eq!(tracker.check(7, learner), Err(Refused::Moved));
        tracker.set_owner(7, Some(learner));
        assert_eq!(tracker.check(7, Origin::Service), Err(Refused::Moved));
        assert_eq!(tracker.check(7, learner), Ok(()));
    }
}
