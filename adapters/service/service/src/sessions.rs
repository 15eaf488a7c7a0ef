//! The sessions of this server's clients: their ids, and which of them were heard from.
//!
//! An id is made as ZooKeeper makes it: the server's id, 40 bits of a clock in milliseconds, room to count.
//! ```text
//!   63      56 55                            16 15            0
//!   ┌─────────┬────────────────────────────────┬───────────────┐
//!   │   sid   │  milliseconds, low 40 bits     │    counter    │
//!   └─────────┴────────────────────────────────┴───────────────┘
//! ```
//! The clock is the wall's: ZooKeeper's starts again with its machine, and gives closed ids out once more. Ids are also
//! above the highest one of this server that its tree or its log shows, and above a bound that is kept beside them, since a
//! log is purged: so a clock that was set back does no harm. The bound is kept in steps, each ahead of the ids.

use alloc::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::id::ServerId;

/// The ids that this server gives out, and the sessions that it has heard from.
#[derive(Debug)]
pub(crate) struct Sessions {
    sid: u64,
    /// The next id, without the server's; beyond [`LOW_BITS`] there is none.
    next: u64,
    /// Ids that may have been given out are below this, which is kept or about to be.
    bound: u64,
    /// With the time-outs of their connections, in milliseconds.
    touched: BTreeMap<i64, i32>,
}

impl Sessions {
    /// `kept`: what [`Sessions::raise_bound`] has said last, before the server was started.
    pub(crate) fn new(id: ServerId, kept: Option<i64>) -> Self {
        let sid = id.0.unsigned_abs() & 0xff;
        let kept = kept.and_then(|kept| u64::try_from(kept).ok()).unwrap_or(0).min(LOW_BITS + 1);
        Self { sid, next: kept, bound: kept, touched: BTreeMap::new() }
    }

    /// Starts the ids anew, as each time that the server begins to serve; `known` are the sessions of its tree.
    pub(crate) fn begin(&mut self, wall_ms: i64, known: impl Iterator<Item = i64>) {
        for id in known {
            self.see(id);
        }
        let of_clock = place_of(wall_ms);
        let next = self.next.max(of_clock);
        // At the ceiling, after a clock that was far ahead, it goes on from where the wall clock is.
        self.next = if next > LOW_BITS { of_clock } else { next };
    }

    /// A session that was opened before this server served; its own count.
    pub(crate) fn see(&mut self, id: i64) {
        if (id as u64) >> 56 == self.sid {
            self.next = self.next.max(low_bits(id) + 1);
        }
    }

    /// An id that no session has.
    pub(crate) fn next(&mut self, wall_ms: i64, taken: impl Fn(i64) -> bool) -> i64 {
        loop {
            if self.next > LOW_BITS {
                self.next = place_of(wall_ms);
            }
            let id = (self.sid << 56 | self.next) as i64;
            self.next += 1;
            if id != 0 && id != i64::MIN && !taken(id) {
                return id;
            }
        }
    }

    /// What is to be kept from now on, if that is another bound than before: a step ahead of the ids. Those that are given
    /// out before it is kept are in the log yet.
    pub(crate) fn raise_bound(&mut self) -> Option<i64> {
        let ahead = self.next + STEP / 2..=self.next + STEP;
        if ahead.contains(&self.bound) {
            return None;
        }
        self.bound = self.next + STEP;
        i64::try_from(self.bound.min(LOW_BITS + 1)).ok()
    }

    /// A session was heard from, at this server.
    pub(crate) fn touch(&mut self, session: i64, timeout_ms: i32) {
        self.touched.insert(session, timeout_ms);
    }

    /// What was heard from since the last time, as PING carries it: i64 session, i32 time-out in milliseconds, each.
    pub(crate) fn take_touched(&mut self) -> Bytes {
        let mut list = BytesMut::with_capacity(self.touched.len() * TOUCHED_BYTES);
        for (session, timeout) in core::mem::take(&mut self.touched) {
            list.put_i64(session);
            list.put_i32(timeout);
        }
        list.freeze()
    }

    /// Forgets what was heard.
    pub(crate) fn forget(&mut self) {
        self.touched.clear();
    }
}

/// The sessions in a PING of a learner; what is no whole entry at its end is left out.
pub(crate) fn touched(list: &[u8]) -> impl Iterator<Item = (i64, i32)> {
    list.chunks_exact(TOUCHED_BYTES).filter_map(|entry| {
        let (session, timeout) = entry.split_first_chunk()?;
        let timeout = timeout.first_chunk().copied().map(i32::from_be_bytes)?;
        Some((i64::from_be_bytes(*session), timeout))
    })
}

/// Where the ids of a server begin that begins at this time.
const fn place_of(wall_ms: i64) -> u64 {
    ((wall_ms as u64) << 24) >> 8
}

const fn low_bits(id: i64) -> u64 {
    (id as u64) & LOW_BITS
}

/// All but the server's id.
const LOW_BITS: u64 = (1 << 56) - 1;
/// How far ahead of the ids the bound is kept: what is left of it when a server ends is 16 ms of its clock.
const STEP: u64 = 1 << 20;
/// A session and its time-out.
const TOUCHED_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn none(_: i64) -> bool {
        false
    }

    /// The first two as a ZooKeeper server with that clock would give them out.
    #[test]
    fn ids_are_made_of_the_server_and_its_clock() {
        let mut sessions = Sessions::new(ServerId(3), None);
        sessions.begin(NOW, core::iter::empty());
        assert_eq!(sessions.next(NOW, none), 0x038b_cfe5_6800_0000);
        assert_eq!(sessions.next(NOW, none), 0x038b_cfe5_6800_0001);
        let mut sessions = Sessions::new(ServerId(200), None);
        sessions.begin(NOW, core::iter::empty());
        assert_eq!(sessions.next(NOW, none), -3_995_871_660_161_892_352);
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_id_out_again() {
        let mut sessions = Sessions::new(ServerId(3), None);
        let known = 0x038b_cfe5_6800_0007;
        sessions.begin(1_600_000_000_000, [known, 0x058b_cfe5_6800_0099].into_iter());
        assert_eq!(sessions.next(NOW, none), known + 1);
        sessions.begin(1_500_000_000_000, core::iter::empty());
        assert_eq!(sessions.next(NOW, none), known + 2, "nor without a table that shows it");
        assert_eq!(sessions.next(NOW, |id| id == known + 3), known + 4);
        // One that the log alone shows, since it was closed.
        sessions.see(known + 9);
        sessions.begin(1_500_000_000_000, core::iter::empty());
        assert_eq!(sessions.next(NOW, none), known + 10);
    }

    #[test]
    fn what_is_kept_is_ahead_of_every_id_and_a_new_start_is_behind_none() {
        let mut sessions = Sessions::new(ServerId(3), None);
        sessions.begin(NOW, core::iter::empty());
        let mut kept = sessions.raise_bound().unwrap();
        let (mut last, mut writes) = (0, 0);
        for _ in 0..3 * STEP {
            last = sessions.next(NOW, none);
            if let Some(bound) = sessions.raise_bound() {
                (kept, writes) = (bound, writes + 1);
            }
            assert!(low_bits(last) < kept as u64);
        }
        assert_eq!(writes, 5, "half a step each");
        let mut again = Sessions::new(ServerId(3), Some(kept));
        again.begin(NOW - 1_000_000, core::iter::empty());
        let first = again.next(NOW, none);
        assert!(first > last, "{first:x} behind {last:x}");
        assert!(again.raise_bound().is_some_and(|bound| bound > kept));
        for damaged in [-1, i64::MIN, i64::MAX] {
            let mut sessions = Sessions::new(ServerId(3), Some(damaged));
            sessions.begin(NOW, core::iter::empty());
            assert_eq!(sessions.next(NOW, none), 0x038b_cfe5_6800_0000, "{damaged}");
        }
    }

    #[test]
    fn the_counter_never_reaches_the_servers_id() {
        let begins_at = |id, wall_ms, known| {
            let mut sessions = Sessions::new(ServerId(id), None);
            sessions.begin(wall_ms, Some(known).into_iter());
            sessions
        };
        let mut sessions = begins_at(3, NOW, 0x03ff_ffff_ffff_ffff);
        assert_eq!(sessions.next(NOW, none), 0x038b_cfe5_6800_0000);
        // It was below the ceiling when it began, and goes on past what is in the table.
        let mut sessions = begins_at(3, NOW, 0x03ff_ffff_ffff_fffe);
        assert_eq!(sessions.next(NOW, none), 0x03ff_ffff_ffff_ffff);
        let here = 0x038b_cfe5_6800_0000;
        assert_eq!(sessions.next(NOW, |id| id <= here + 1), here + 2);
        assert_eq!(sessions.raise_bound(), Some(low_bits(here) as i64 + 3 + STEP as i64));
        let mut sessions = Sessions::new(ServerId(128), None);
        sessions.begin(0, core::iter::empty());
        assert_eq!(sessions.next(0, none), i64::MIN + 1);
    }

    #[test]
    fn what_was_heard_from_is_told_once() {
        let mut sessions = Sessions::new(ServerId(1), None);
        sessions.touch(7, 1000);
        sessions.touch(9, 2000);
        sessions.touch(7, 4000);
        let list = sessions.take_touched();
        assert_eq!(touched(&list).collect::<alloc::vec::Vec<_>>(), [(7, 4000), (9, 2000)]);
        assert!(sessions.take_touched().is_empty());
        assert_eq!(touched(&list[..15]).count(), 1, "half an entry is none");
    }
}
