//! The heartbeats of a session, and which of them ZooKeeper's leader is sure to count.
//!
//! ```text
//!   heartbeat   sent ── answered ─── a quarter of the time-out ───►   the next one, answered: the first counts
//!   follower              ───── ping ─── whom it has heard ─────►  leader
//! ```
//!
//! ZooKeeper's leader ends a session by what it has counted. A follower passes on which sessions it has heard of with
//! its answer to the leader's next ping, which comes every half tick (Leader.lead, Learner.ping); a heartbeat that was
//! answered before means nothing if the follower is lost then. On the connection between the two nothing overtakes:
//! once a heartbeat is answered that was sent half a tick after another was answered, that other one is counted.
//! Sessions last two ticks at least (`minSessionTimeout`), so a quarter of the time-out is enough.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The heartbeats of one session.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeats {
    /// When the newest one that is known to count was sent; none if none is.
    counted: Option<Instant>,
    /// When later ones were sent, and answered.
    answered: VecDeque<(Instant, Instant)>,
    /// How long a follower may take to pass on what it has heard.
    lag: Duration,
}

impl Heartbeats {
    /// Of a session that was requested at `opened`: the request passes the leader. Of one that others have opened it is
    /// not known when.
    pub(crate) fn new(opened: Option<Instant>, timeout: Duration) -> Self {
        Self { counted: opened, answered: VecDeque::new(), lag: timeout / 4 }
    }

    /// How long after an answer the next heartbeat is sent.
    pub(crate) fn pause(&self) -> Duration {
        self.lag / 2
    }

    /// The heartbeat sent at `sent` has passed the leader, and is answered now.
    pub(crate) fn answered(&mut self, sent: Instant, now: Instant) {
        self.counted(sent);
        self.answered.push_back((sent, now));
    }

    /// When the newest heartbeat was sent that the leader counts, now that the one sent at `sent` is answered; none if
    /// none counts yet. What was sent then has to pass the leader as well.
    pub(crate) fn counted(&mut self, sent: Instant) -> Option<Instant> {
        while let Some((beat, _)) = self.answered.front().filter(|(_, at)| *at + self.lag <= sent) {
            self.counted = Some(*beat);
            self.answered.pop_front();
        }
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_counts_when_one_is_answered_that_was_sent_a_while_after_its_answer() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut beats = Heartbeats::new(Some(begun), Duration::from_millis(400));
        assert_eq!(beats.counted(at(20)), Some(begun));
        beats.answered(at(20), at(30));
        beats.answered(at(80), at(90));
        assert_eq!(beats.counted(at(129)), Some(begun), "its answer came at 30");
        assert_eq!(beats.counted(at(130)), Some(at(20)));
        assert_eq!(beats.counted(at(500)), Some(at(80)));
        assert_eq!(beats.counted(at(100)), Some(at(80)), "it is known by now");
        // The answer was long on its way: what was sent soon after it proves nothing.
        beats.answered(at(500), at(900));
        assert_eq!(beats.counted(at(950)), Some(at(80)));
    }

    #[test]
    fn of_a_session_that_others_have_opened_nothing_counts_before_the_second_heartbeat() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut beats = Heartbeats::new(None, Duration::from_millis(400));
        beats.answered(at(0), at(10));
        assert_eq!(beats.counted(at(109)), None);
        assert_eq!(beats.counted(at(110)), Some(at(0)));
    }
}
