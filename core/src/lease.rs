//! Leases: for how long a voter takes no part in establishing another leader.
//!
//! ```text
//!   leader ── LEASE(length), sent at t ──► follower: no other leader until it came + length
//!          ◄── LEASE ────────────────────
//!   answered by a quorum: no other leader until t + length, and a little less on a clock that may be slower
//! ```
//!
//! A leader that a quorum has promised so knows by its own clock until when no other can be established: any
//! quorum that establishes another shares a voter with the one that promised. So it can declare its leadership
//! over before the next one begins, even if it was paused, cut off, or never hears of it.
//!
//! The promise is not written down: a server that has restarted behaves as if it had just made it. What is
//! written down is how long the longest is that it may ever have made: the settings may say less at the next start,
//! or nothing, and what was promised before that still binds. It is on disk before the first election in which it
//! may be promised, and written only where it grows.
//!
//! A leader that closes a link has done without that promise before, so a voter is free when the leader to which
//! it made the promise closes the link; no other server can give the promise back.

use core::time::Duration;

use crate::time::Instant;
use crate::zxid::Epoch;

/// What this server has promised to a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lease {
    /// In which leadership; none if it was before a restart, perhaps.
    epoch: Option<Epoch>,
    until: Instant,
    /// The longest that may ever have been promised.
    longest: Duration,
}

impl Lease {
    /// That of a server that finds on its disk how long the longest may have been.
    pub const fn found(longest: Duration) -> Self {
        Self { epoch: None, until: Instant::ORIGIN, longest }
    }

    /// The server has just started, and may have promised the longest just before; from now on it promises up to
    /// `length`, if anything. Returns what has to be on disk before it promises that, if that is more than before.
    pub fn begin(&mut self, now: Instant, length: Option<Duration>) -> Option<Duration> {
        let length = length.unwrap_or_default();
        let grown = (length > self.longest).then_some(length);
        self.longest = self.longest.max(length);
        (self.epoch, self.until) = (None, now + self.longest);
        grown
    }

    /// Promises the leader of `epoch` to take no part in establishing another.
    pub fn grant(&mut self, epoch: Epoch, until: Instant) {
        (self.epoch, self.until) = (Some(epoch), self.until.max(until));
    }

    /// The leader of `epoch` does without what it was promised.
    pub fn release(&mut self, epoch: Epoch, now: Instant) {
        if self.epoch == Some(epoch) {
            self.until = now;
        }
    }

    /// Until when we take no part in establishing the leader of `epoch`, if that is not over.
    pub fn forbids(&self, epoch: Epoch, now: Instant) -> Option<Instant> {
        let bound = self.until > now && self.epoch != Some(epoch);
        bound.then_some(self.until)
    }
}

/// For how long a leader counts on a lease of this length: clocks may run a tenth apart.
pub fn relied_on(length: Duration) -> Duration {
    length - length / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_promise_binds_against_others_until_it_is_over_or_released() {
        let at = |seconds| Instant::ORIGIN + s(seconds);
        let mut lease = Lease::default();
        assert_eq!(lease.begin(at(0), None), None);
        assert_eq!(lease.forbids(Epoch(2), at(0)), None, "nothing was promised");
        lease.grant(Epoch(1), at(10));
        assert_eq!(lease.forbids(Epoch(2), at(9)), Some(at(10)));
        assert_eq!(lease.forbids(Epoch(1), at(9)), None, "the same leader again");
        assert_eq!(lease.forbids(Epoch(2), at(10)), None);
        lease.grant(Epoch(1), at(8));
        assert_eq!(lease.forbids(Epoch(2), at(9)), Some(at(10)), "a promise is not shortened");
        lease.release(Epoch(2), at(3));
        assert_eq!(lease.forbids(Epoch(2), at(3)), Some(at(10)), "it was not promised to that one");
        lease.release(Epoch(1), at(3));
        assert_eq!(lease.forbids(Epoch(2), at(3)), None);
        let mut restarted = Lease::default();
        assert_eq!(restarted.begin(at(0), Some(s(5))), Some(s(5)), "it is longer than any before");
        restarted.release(Epoch(1), at(3));
        assert_eq!(restarted.forbids(Epoch(1), at(4)), Some(at(5)), "as if just promised");
    }

    #[test]
    fn a_start_waits_for_the_longest_that_may_have_been_promised_whatever_the_settings_say_now() {
        for (now, kept) in
            [(None, None), (Some(s(2)), None), (Some(s(5)), None), (Some(s(6)), Some(s(6)))]
        {
            let mut lease = Lease::found(s(5));
            assert_eq!(lease.begin(Instant::ORIGIN, now), kept, "{now:?}");
            let until = Instant::ORIGIN + s(5).max(now.unwrap_or_default());
            assert_eq!(lease.forbids(Epoch(1), Instant::ORIGIN), Some(until), "{now:?}");
        }
    }
}
