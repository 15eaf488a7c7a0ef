//! A leader's watch over all sessions: which have been silent for too long.
//!
//! ```text
//!   deadline = the next tick behind (heard + time-out)
//!
//!   due ─┬─ heard by a learner ─┬────► held until each has answered, within a tick, a ping sent since; or two, however late
//!        │                      │      its link ends: a time-out more, from then
//!        ├─ heard by nobody yet ┤
//!        └─ our own client's ───┴────► held while a step of ours that came more than a tick late is less than a tick ago
//!   held for a whole time-out in all, or not held ──► expires: closeSession
//! ```
//!
//! A session is heard at the server that its client is connected to, which tells us in its answers to pings. So that a
//! session is silent is known only of one whose server has spoken since. Which one that is, is not known for sure: a server
//! of ZooKeeper tells once of each session that is opened, wherever (`LearnerSessionTracker.commitSession`). A leader of
//! ZooKeeper expires, when it wakes from a pause, all whose time passed meanwhile, though their pings lie unread in its
//! sockets.
//!
//! A server that stood still, ours or a learner's, reads first what came meanwhile: that the first answer is not late shows
//! that it did not.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Included, Unbounded};
use core::time::Duration;

use quorate_core::id::LinkId;
use quorate_core::time::Instant;

/// The sessions of the ensemble and their deadlines.
#[derive(Debug)]
pub(crate) struct Tracker {
    tick: Duration,
    sessions: BTreeMap<i64, Tracked>,
    /// When to look at each session: at its deadline; if that is held, when it cannot be held any longer.
    due: BTreeSet<(Instant, i64)>,
    /// Those whose deadline is held until a learner has spoken.
    held: BTreeSet<(LinkId, i64)>,
    learners: BTreeMap<LinkId, Answers>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    timeout: Duration,
    deadline: Instant,
    /// When it is looked at, see [`Tracker::due`].
    look: Instant,
    at: At,
    /// How long deadlines of it were held since it was heard.
    held: Duration,
}

/// Where a session's client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At any server: it was opened before this one led, or its learner was lost, or another tells of it. `renewed`: how
    /// many nanoseconds its deadline was put off for learners that were lost since it was heard, a time-out at most.
    Any { renewed: u64 },
    /// At this server.
    Own,
    /// At a learner, which has opened it, or asked whether it lives.
    Learner(LinkId),
}

impl At {
    const fn learner(self) -> Option<LinkId> {
        match self {
            Self::Learner(link) => Some(link),
            Self::Any { .. } | Self::Own => None,
        }
    }

    /// Whether its client may have spoken to that learner.
    fn may_be(self, link: LinkId) -> bool {
        matches!(self, Self::Any { .. }) || self == Self::Learner(link)
    }
}

/// Which pings a learner has answered.
#[derive(Clone, Copy, Debug)]
struct Answers {
    /// When the newest was sent that was answered within a tick.
    prompt: Instant,
    /// When the newest was sent, and the one before it.
    newest: [Instant; 2],
}

impl Answers {
    const NONE: Self = Self { prompt: Instant::ORIGIN, newest: [Instant::ORIGIN; 2] };

    /// Whether it would have told by now what it has heard before that moment.
    fn has_spoken_since(self, at: Instant) -> bool {
        self.prompt.max(self.newest[1]) >= at
    }
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
            held: BTreeSet::new(),
            learners: BTreeMap::new(),
        };
        for (session, timeout_ms) in sessions {
            tracker.add(now, session, timeout_ms);
        }
        tracker
    }

    /// A session is opened.
    pub(crate) fn add(&mut self, now: Instant, session: i64, timeout_ms: i32) {
        let timeout = self.timeout(timeout_ms);
        self.set(now, session, timeout, At::Any { renewed: 0 }, Duration::ZERO);
    }

    /// The client of a session that is tracked has come to a learner, or to us; or ours has spoken.
    pub(crate) fn touch(
        &mut self,
        now: Instant,
        session: i64,
        timeout_ms: i32,
        by: Option<LinkId>,
    ) {
        if self.sessions.contains_key(&session) {
            let timeout = self.timeout(timeout_ms);
            let at = by.map_or(At::Own, At::Learner);
            self.set(now, session, timeout, at, Duration::ZERO);
        }
    }

    /// A session that is tracked has its full time-out from now on, wherever its client is.
    pub(crate) fn renew(&mut self, now: Instant, session: i64) {
        if let Some(&Tracked { timeout, at, .. }) = self.sessions.get(&session) {
            self.set(now, session, timeout, at, Duration::ZERO);
        }
    }

    /// A learner tells of a session, which need not be its own: but it may be, though its client has come to another
    /// server, or to us, by what was read last. What it has given up may be read after what it did next.
    pub(crate) fn told(&mut self, now: Instant, session: i64, timeout_ms: i32, by: LinkId) {
        if let Some(Tracked { at, .. }) = self.sessions.get(&session) {
            let at = match *at {
                at @ At::Learner(learner) if learner == by => at,
                At::Learner(_) | At::Own | At::Any { .. } => At::Any { renewed: 0 },
            };
            let timeout = self.timeout(timeout_ms);
            self.set(now, session, timeout, at, Duration::ZERO);
        }
    }

    fn set(&mut self, now: Instant, session: i64, timeout: Duration, at: At, held: Duration) {
        self.put(session, timeout, self.next_tick(now + timeout), at, held);
    }

    fn put(&mut self, session: i64, timeout: Duration, deadline: Instant, at: At, held: Duration) {
        self.remove(session);
        let tracked = Tracked { timeout, deadline, look: deadline, at, held };
        self.sessions.insert(session, tracked);
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

    /// A learner has answered a ping that was sent then; what it has heard is told behind this. An answer to none says
    /// nothing of when it was given.
    pub(crate) fn answered(&mut self, now: Instant, from: LinkId, asked: Instant) {
        let answers = self.learners.entry(from).or_insert(Answers::NONE);
        let [newest, _] = answers.newest;
        if asked <= newest {
            return;
        }
        answers.newest = [asked, newest];
        if now.since(asked) <= self.tick {
            answers.prompt = asked;
        }
        let answers = *answers;
        let spoken = |tracked: &Tracked| answers.has_spoken_since(tracked.deadline);
        self.look_again(from, spoken);
    }

    /// Of the sessions that are held for a learner these are looked at, as if their deadlines came now.
    fn look_again(&mut self, link: LinkId, which: impl Fn(&Tracked) -> bool) {
        let held = self.held.range((link, i64::MIN)..=(link, i64::MAX));
        let held: Vec<_> = held.map(|(_, session)| *session).collect();
        for session in held {
            if let Some(tracked) = self.sessions.get_mut(&session).filter(|tracked| which(tracked))
            {
                self.due.remove(&(tracked.look, session));
                tracked.look = tracked.deadline;
                self.due.insert((tracked.look, session));
                self.held.remove(&(link, session));
            }
        }
    }

    /// The link of a learner has ended: its clients have their full time-outs to come to another server.
    pub(crate) fn lost(&mut self, now: Instant, link: LinkId) {
        self.learners.remove(&link);
        self.look_again(link, |_| true);
        let of_it = self.sessions.iter().filter(|(_, tracked)| tracked.at.may_be(link));
        let of_it: Vec<_> = of_it.map(|(session, tracked)| (*session, *tracked)).collect();
        for (session, Tracked { timeout, deadline, at, held, .. }) in of_it {
            let renewed = match at {
                At::Any { renewed } => Some(Duration::from_nanos(renewed)),
                At::Own | At::Learner(_) => None,
            };
            let most = renewed.map_or(Duration::MAX, |renewed| timeout.saturating_sub(renewed));
            let more = self.next_tick(now + timeout).since(deadline).min(most);
            if more.is_zero() && renewed.is_some() {
                continue;
            }
            let renewed = Instant::from_origin(renewed.unwrap_or_default() + more).0;
            let held = held + now.since(deadline);
            self.put(session, timeout, deadline + more, At::Any { renewed }, held);
        }
    }

    /// A session has ended.
    pub(crate) fn remove(&mut self, session: i64) {
        if let Some(tracked) = self.sessions.remove(&session) {
            self.due.remove(&(tracked.look, session));
            if !self.held.is_empty() {
                for link in tracked.at.learner().iter().chain(self.learners.keys()) {
                    self.held.remove(&(*link, session));
                }
            }
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
    /// `awake_at`: when this server will have heard what came while it stood still.
    pub(crate) fn expire(&mut self, now: Instant, awake_at: Option<Instant>) -> Vec<i64> {
        let mut expired = Vec::new();
        while let Some((at, session)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            let Some(tracked) = self.sessions.get(&session).copied() else {
                self.due.remove(&(at, session));
                continue;
            };
            // All that it is held together is no longer than it may be silent.
            let last = tracked.deadline + tracked.timeout.saturating_sub(tracked.held);
            let (until, waits_for) = self.held_until(&tracked, awake_at).unzip();
            match until.map(|until| until.min(last)).filter(|until| *until > now) {
                Some(until) => {
                    self.due.remove(&(at, session));
                    self.due.insert((until, session));
                    self.held.extend(waits_for.flatten().map(|link| (link, session)));
                    if let Some(tracked) = self.sessions.get_mut(&session) {
                        tracked.look = until;
                    }
                }
                None => {
                    expired.push(session);
                    self.set(now, session, tracked.timeout, tracked.at, Duration::ZERO);
                }
            }
        }
        expired
    }

    /// Until when at least nothing can be known of a session whose deadline has come, and until which learner has spoken.
    fn held_until(
        &self,
        tracked: &Tracked,
        awake_at: Option<Instant>,
    ) -> Option<(Instant, Option<LinkId>)> {
        let awake_at = awake_at.map(|at| (at, None));
        if tracked.at == At::Own {
            return awake_at;
        }
        let its_own = tracked.at.learner();
        let silent = |link: &LinkId| {
            let answers = self.learners.get(link).copied().unwrap_or(Answers::NONE);
            !answers.has_spoken_since(tracked.deadline)
        };
        // It is looked at when the learner answers.
        let silent = its_own.iter().chain(self.learners.keys()).copied().find(silent);
        let answers = silent.map(|link| (Instant(u64::MAX), Some(link)));
        answers.or(awake_at.filter(|_| its_own.is_none()))
    }

    /// The last deadline, if there is a session.
    pub(crate) fn last_deadline(&self) -> Option<Instant> {
        self.due.last().map(|(at, _)| *at)
    }

    /// The sessions by deadline.
    pub(crate) fn by_deadline(&self) -> impl Iterator<Item = (Instant, i64)> {
        self.due.iter().copied()
    }

    /// The session whose deadline comes next behind that of another, or the first.
    pub(crate) fn deadline_behind(&self, behind: Option<(Instant, i64)>) -> Option<(Instant, i64)> {
        let from = behind.map_or(Unbounded, Excluded);
        self.due.range((from, Unbounded)).next().copied()
    }

    /// The next session with this deadline.
    pub(crate) fn session_behind(&self, at: Instant, behind: Option<i64>) -> Option<i64> {
        let from = behind.map_or(Included((at, i64::MIN)), |session| Excluded((at, session)));
        let next = self.due.range((from, Unbounded)).next()?;
        (next.0 == at).then_some(next.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(500);
    const LINK: LinkId = LinkId(4);
    const OTHER: LinkId = LinkId(2);

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn tracker(sessions: &[(i64, i32)]) -> Tracker {
        Tracker::new(TICK, at(0), sessions.iter().copied())
    }

    /// One whose session 7, of 1000 ms, was heard by a learner at 0: its deadline is 1500.
    fn of_learner() -> Tracker {
        let mut tracker = tracker(&[(7, 1000)]);
        tracker.touch(at(0), 7, 1000, Some(LINK));
        tracker
    }

    /// Steps every 100 ms until then; when it expired.
    fn until(tracker: &mut Tracker, from: u64, to: u64) -> Option<u64> {
        (from..=to).step_by(100).find(|ms| !tracker.expire(at(*ms), None).is_empty())
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

    /// Tick 2000: 4000 from 10500 on, and from 10000 on. Tick 500: 1000 from 0 and from 999 on.
    #[test]
    fn deadlines_are_ticks_and_never_before_the_time_out() {
        for (tick, heard, timeout, deadline) in [
            (2000, 10_500, 4000, 16_000),
            (2000, 10_000, 4000, 16_000),
            (500, 0, 1000, 1500),
            (500, 999, 1000, 2000),
        ] {
            let tick = Duration::from_millis(tick);
            let tracker = Tracker::new(tick, at(heard), [(7, timeout)].into_iter());
            assert_eq!(tracker.deadline(), Some(at(deadline)), "{heard}");
        }
    }

    #[test]
    fn what_is_no_time_out_is_the_shortest() {
        for odd in [0, -1, i32::MIN] {
            assert_eq!(tracker(&[(7, odd)]).deadline(), Some(at(1500)));
        }
    }

    /// Once behind a creation a server of ZooKeeper tells of sessions that are another's.
    #[test]
    fn who_tells_of_a_session_need_not_be_where_its_client_is() {
        for lives in [true, false] {
            let mut tracker = of_learner();
            tracker.answered(at(250), LINK, at(240));
            tracker.answered(at(300), OTHER, at(290));
            tracker.told(at(300), 7, 1000, OTHER);
            // The leader stands still. The other one is read first.
            tracker.answered(at(2301), OTHER, at(2300));
            assert!(tracker.expire(at(2301), None).is_empty(), "its own server has not spoken");
            tracker.answered(at(2302), LINK, at(2300));
            if lives {
                tracker.told(at(2302), 7, 1000, LINK);
            }
            assert_eq!(tracker.expire(at(2302), None).is_empty(), lives);
        }
        let mut tracker = of_learner();
        tracker.told(at(300), 7, 1000, OTHER);
        tracker.lost(at(1200), LINK);
        assert_eq!(until(&mut tracker, 1300, 9000), Some(2500), "its server is lost");
    }

    /// It was opened before this server led, and its client is a learner's, which has heard it.
    #[test]
    fn of_a_session_that_nobody_has_told_of_yet_each_learner_is_waited_for() {
        for lives in [true, false] {
            let mut tracker = tracker(&[(7, 1000), (8, 1000)]);
            tracker.touch(at(400), 8, 1000, None);
            tracker.answered(at(250), LINK, at(240));
            tracker.answered(at(300), OTHER, at(290));
            tracker.answered(at(2301), OTHER, at(2300));
            assert_eq!(tracker.expire(at(2301), None), [8], "our own client's");
            tracker.answered(at(2302), LINK, at(2300));
            if lives {
                tracker.told(at(2302), 7, 1000, LINK);
            }
            let due = tracker.expire(at(2302), None);
            assert_eq!(due.is_empty(), lives);
        }
    }

    #[test]
    fn a_leader_that_stood_still_hears_first_what_came_meanwhile() {
        let mut paused = tracker(&[(7, 4000), (8, 4000)]);
        assert!(paused.expire(at(5000), Some(at(5500))).is_empty());
        assert!(paused.expire(at(5400), Some(at(5500))).is_empty());
        paused.touch(at(5450), 8, 4000, None);
        assert_eq!(paused.expire(at(5500), None), [7], "of it nothing came");
        assert_eq!(paused.deadline(), Some(at(9500)));
    }

    #[test]
    fn however_often_a_leader_stands_still_a_deadline_is_put_off_by_one_time_out_at_most() {
        let mut paused = tracker(&[(7, 1000)]);
        for ms in (1500..2500).step_by(100) {
            assert!(paused.expire(at(ms), Some(at(ms + 500))).is_empty(), "{ms}");
        }
        assert_eq!(paused.expire(at(2500), Some(at(3000))), [7]);
        // Heard anew, it has the same again.
        paused.touch(at(2600), 7, 1000, None);
        assert!(paused.expire(at(4000), Some(at(4500))).is_empty());
        assert_eq!(paused.expire(at(5000), Some(at(5500))), [7]);
    }

    #[test]
    fn a_session_of_a_learner_expires_when_that_has_spoken_since() {
        let mut tracker = of_learner();
        tracker.answered(at(1450), LINK, at(1400));
        assert_eq!(until(&mut tracker, 1500, 1600), None, "it was asked before the deadline");
        tracker.answered(at(1650), LINK, at(1600));
        assert_eq!(until(&mut tracker, 1700, 9000), Some(1700));
        let mut tracker = of_learner();
        assert_eq!(until(&mut tracker, 1500, 1600), None);
        tracker.answered(at(1650), LINK, at(1600));
        tracker.told(at(1650), 7, 1000, LINK);
        tracker.answered(at(2900), LINK, at(2800));
        assert_eq!(until(&mut tracker, 1700, 9000), Some(3000 + 1000), "heard in what it has told");
    }

    /// A learner that stood still answers at once what it finds, and reads its clients then.
    #[test]
    fn of_a_learner_that_answers_late_two_answers_are_waited_for() {
        let mut tracker = of_learner();
        assert_eq!(until(&mut tracker, 1500, 2100), None);
        tracker.answered(at(2150), LINK, at(1600));
        assert_eq!(until(&mut tracker, 2200, 2200), None, "more than a tick late");
        tracker.answered(at(2250), LINK, at(1500));
        assert_eq!(
            until(&mut tracker, 2300, 2300),
            None,
            "the same once more, or an older one, is none"
        );
        tracker.answered(at(2350), LINK, at(1700));
        assert_eq!(until(&mut tracker, 2400, 9000), Some(2400));
    }

    #[test]
    fn an_answer_to_no_ping_says_nothing() {
        let mut tracker = of_learner();
        for ms in (1500..2400).step_by(100) {
            tracker.answered(at(ms), LINK, Instant::ORIGIN);
            assert!(tracker.expire(at(ms), None).is_empty(), "{ms}");
        }
    }

    #[test]
    fn a_deadline_is_held_for_a_silent_learner_by_one_time_out_at_most() {
        let mut tracker = of_learner();
        tracker.answered(at(900), LINK, at(800));
        assert_eq!(until(&mut tracker, 1000, 9000), Some(2500));
        tracker.remove(7);
        assert!(tracker.due.is_empty() && tracker.held.is_empty());
    }

    #[test]
    fn sessions_of_a_learner_that_is_lost_have_their_full_time_outs() {
        let mut tracker = tracker(&[(7, 1000), (8, 1000)]);
        tracker.touch(at(0), 7, 1000, Some(LINK));
        tracker.touch(at(0), 8, 1000, None);
        tracker.lost(at(1200), LINK);
        assert_eq!(tracker.expire(at(1500), None), [8]);
        tracker.remove(8);
        assert_eq!(until(&mut tracker, 1600, 9000), Some(2500));
    }

    /// Its client may have been at any of them: however often they are lost, it is put off by a time-out.
    #[test]
    fn of_a_session_that_may_be_anywhere_each_learner_that_is_lost_counts() {
        let mut tracker = tracker(&[(7, 1000)]);
        for (ms, deadline) in [(900, 2000), (1400, 2500), (1900, 2500)] {
            tracker.lost(at(ms), OTHER);
            assert_eq!(tracker.deadline(), Some(at(deadline)));
        }
        tracker.told(at(2450), 7, 1000, LINK);
        tracker.lost(at(2900), LINK);
        assert_eq!(tracker.deadline(), Some(at(4000)));
    }

    /// What its deadline was held before counts: 500 ms, and 500 ms more.
    #[test]
    fn a_session_whose_learner_is_lost_while_it_is_held_has_its_time_once() {
        let mut tracker = of_learner();
        assert_eq!(until(&mut tracker, 1500, 2000), None);
        tracker.lost(at(2000), LINK);
        assert!(tracker.held.is_empty());
        assert_eq!(tracker.deadline(), Some(at(3500)));
        tracker.lost(at(3000), LINK);
        assert_eq!(tracker.deadline(), Some(at(3500)), "it is nobody's now");
        assert!(tracker.expire(at(3900), Some(at(4400))).is_empty());
        assert_eq!(tracker.expire(at(4000), Some(at(4400))), [7]);
    }
}
