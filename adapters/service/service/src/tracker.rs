//! A leader's watch over all sessions: which have been silent for too long.
//!
//! ```text
//!   deadline = the next tick behind (heard + time-out)
//!   due, and its server has answered a ping since ──► expires: closeSession
//!   due, and not heard from that server ────────────► waits for it, or for the end of its link
//!   due while we stood still ───────────────────────► a tick more: what came meanwhile is read first
//! ```
//!
//! A session is heard at the server that its client is connected to, which tells us in its answers to pings. So that a
//! session is silent is known only of one whose server has spoken since. A leader of ZooKeeper expires, when it wakes from a
//! pause, all whose time passed meanwhile, though their pings lie unread in its sockets.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quorate_core::id::LinkId;
use quorate_core::time::Instant;

/// The sessions of the ensemble and their deadlines.
#[derive(Debug)]
pub(crate) struct Tracker {
    tick: Duration,
    sessions: BTreeMap<i64, Tracked>,
    due: BTreeSet<(Instant, i64)>,
    /// When the newest ping was sent that a learner has answered.
    learners: BTreeMap<LinkId, Instant>,
    /// When we stepped last.
    stepped: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    timeout: Duration,
    deadline: Instant,
    /// Where it was heard last; none: by our own client, or nowhere yet.
    heard_by: Option<LinkId>,
    /// The deadline has come, and is held until its server has spoken: once for each time it was heard.
    excused: bool,
}

impl Tracker {
    /// All sessions of the table begin with their full time-outs.
    pub(crate) fn new(
        tick: Duration,
        now: Instant,
        sessions: impl Iterator<Item = (i64, i32)>,
    ) -> Self {
        let mut tracker = Self {
            tick,
            sessions: BTreeMap::new(),
            due: BTreeSet::new(),
            learners: BTreeMap::new(),
            stepped: now,
        };
        for (session, timeout_ms) in sessions {
            tracker.add(now, session, timeout_ms);
        }
        tracker
    }

    /// A session is opened, or heard from by our own client.
    pub(crate) fn add(&mut self, now: Instant, session: i64, timeout_ms: i32) {
        self.set(now, session, timeout_ms, None);
    }

    /// A session that is tracked was heard from.
    pub(crate) fn touch(
        &mut self,
        now: Instant,
        session: i64,
        timeout_ms: i32,
        by: Option<LinkId>,
    ) {
        if self.sessions.contains_key(&session) {
            self.set(now, session, timeout_ms, by);
        }
    }

    fn set(&mut self, now: Instant, session: i64, timeout_ms: i32, heard_by: Option<LinkId>) {
        let timeout = self.timeout(timeout_ms);
        let deadline = self.next_tick(now + timeout);
        let tracked = Tracked { timeout, deadline, heard_by, excused: false };
        if let Some(before) = self.sessions.insert(session, tracked) {
            self.due.remove(&(before.deadline, session));
        }
        self.due.insert((deadline, session));
    }

    /// What is no time-out, in a table that an odd client has filled, counts as the shortest.
    fn timeout(&self, timeout_ms: i32) -> Duration {
        let given = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        if given.is_zero() { self.tick * 2 } else { given }
    }

    /// Deadlines are rounded up to ticks, so that what expires together is closed together.
    fn next_tick(&self, at: Instant) -> Instant {
        let tick = Instant::from_origin(self.tick).0.max(1);
        Instant((at.0 / tick).saturating_add(1).saturating_mul(tick))
    }

    /// A learner has answered a ping that was sent then.
    pub(crate) fn answered(&mut self, from: LinkId, asked: Instant) {
        let newest = self.learners.entry(from).or_insert(asked);
        *newest = asked.max(*newest);
    }

    /// The link of a learner has ended: its clients have their full time-outs to come to another server.
    pub(crate) fn lost(&mut self, now: Instant, link: LinkId) {
        self.learners.remove(&link);
        let of_it = self.sessions.iter().filter(|(_, tracked)| tracked.heard_by == Some(link));
        let of_it: Vec<_> = of_it.map(|(session, tracked)| (*session, tracked.timeout)).collect();
        for (session, timeout) in of_it {
            let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
            self.set(now, session, millis, None);
        }
    }

    /// A session has ended.
    pub(crate) fn remove(&mut self, session: i64) {
        if let Some(tracked) = self.sessions.remove(&session) {
            self.due.remove(&(tracked.deadline, session));
        }
    }

    /// Whether it is tracked.
    pub(crate) fn knows(&self, session: i64) -> bool {
        self.sessions.contains_key(&session)
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The sessions that have been silent for too long. They are tracked on, a time-out longer, until they are closed.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<i64> {
        let mut expired = Vec::new();
        let stood_still = now.since(self.stepped.max(self.deadline().unwrap_or(now))) > self.tick;
        while let Some((at, session)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, session));
            let Some(tracked) = self.sessions.get_mut(&session) else { continue };
            let silent = tracked.heard_by.and_then(|by| self.learners.get(&by));
            let unheard = tracked.heard_by.is_some() && silent.is_none_or(|asked| *asked < at);
            // At most its own time-out longer, however often it is put off.
            let put_off = (unheard || stood_still) && !tracked.excused;
            let later = if !put_off {
                expired.push(session);
                tracked.timeout
            } else if unheard {
                tracked.excused = true;
                tracked.timeout.min(self.tick * 2)
            } else {
                tracked.excused = true;
                self.tick
            };
            let next = self.next_tick(now + later);
            if let Some(tracked) = self.sessions.get_mut(&session) {
                tracked.deadline = next;
            }
            self.due.insert((next, session));
        }
        expired
    }

    /// The service has stepped.
    pub(crate) fn stepped(&mut self, now: Instant) {
        self.stepped = now;
    }

    /// The sessions by deadline, in milliseconds of the core's time.
    pub(crate) fn by_deadline(&self) -> impl Iterator<Item = (Instant, i64)> {
        self.due.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(500);

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn tracker(sessions: &[(i64, i32)]) -> Tracker {
        Tracker::new(TICK, at(0), sessions.iter().copied())
    }

    /// Steps every 100 ms until then; when it expired.
    fn until(tracker: &mut Tracker, from: u64, to: u64) -> Option<u64> {
        (from..=to).step_by(100).find(|ms| {
            let expired = tracker.expire(at(*ms));
            tracker.stepped(at(*ms));
            !expired.is_empty()
        })
    }

    #[test]
    fn a_silent_session_expires_at_the_next_tick_behind_its_time_out() {
        let mut tracker = tracker(&[(7, 1000)]);
        assert_eq!(tracker.deadline(), Some(at(1500)));
        assert_eq!(until(&mut tracker, 100, 3000), Some(1500));
        tracker.touch(at(1999), 7, 1000, None);
        assert_eq!(tracker.deadline(), Some(at(3000)));
        tracker.remove(7);
        assert_eq!(tracker.deadline(), None);
    }

    #[test]
    fn what_is_no_time_out_is_the_shortest() {
        for odd in [0, -1, i32::MIN] {
            assert_eq!(tracker(&[(7, odd)]).deadline(), Some(at(1500)));
        }
    }

    #[test]
    fn a_leader_that_stood_still_hears_first_what_came_meanwhile() {
        let mut paused = tracker(&[(7, 1000)]);
        assert_eq!(until(&mut paused, 100, 900), None);
        assert!(paused.expire(at(5000)).is_empty());
        paused.stepped(at(5000));
        assert_eq!(until(&mut paused, 5100, 9000), Some(5600).map(|_| 6000));
    }

    #[test]
    fn a_session_of_a_learner_expires_when_that_has_spoken_since() {
        let link = LinkId(4);
        let mut tracker = tracker(&[(7, 1000)]);
        tracker.touch(at(0), 7, 1000, Some(link));
        tracker.answered(link, at(1400));
        assert!(tracker.expire(at(1500)).is_empty(), "asked before the deadline");
        tracker.stepped(at(1500));
        tracker.answered(link, at(1600));
        assert_eq!(until(&mut tracker, 1600, 9000), Some(3000).map(|_| 3000));
    }

    #[test]
    fn sessions_of_a_learner_that_is_lost_have_their_full_time_outs() {
        let link = LinkId(4);
        let mut tracker = tracker(&[(7, 1000), (8, 1000)]);
        tracker.touch(at(0), 7, 1000, Some(link));
        tracker.lost(at(1200), link);
        assert_eq!(tracker.expire(at(1500)), [8]);
        tracker.stepped(at(1500));
        tracker.remove(8);
        assert_eq!(until(&mut tracker, 1600, 9000), Some(2500));
    }
}
