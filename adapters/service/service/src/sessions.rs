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
//! above the highest one of this server that is known, so that a clock that was set back does no harm.

use alloc::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::id::ServerId;

/// The ids that this server gives out, and the sessions that it has heard from.
#[derive(Debug)]
pub(crate) struct Sessions {
    sid: u64,
    next: i64,
    /// With the time-outs of their connections, in milliseconds.
    touched: BTreeMap<i64, i32>,
}

impl Sessions {
    pub(crate) fn new(id: ServerId) -> Self {
        let sid = id.0.unsigned_abs() & 0xff;
        Self { sid, next: 0, touched: BTreeMap::new() }
    }

    /// Starts the ids anew, as each time that the server begins to serve; `known` are the sessions of its tree.
    pub(crate) fn begin(&mut self, wall_ms: i64, known: impl Iterator<Item = i64>) {
        let of_clock = first_id(self.sid, wall_ms);
        let own = known.filter(|id| (*id as u64) >> 56 == self.sid).map(low_bits).max();
        let above = own.map_or(0, |own| own + 1);
        let clock = low_bits(of_clock);
        // Closed ids above that one are in no table. Where the clock is behind they are passed by far, and by the clock: so
        // another start, with the clock behind still, does not come to the same.
        let above = if above > clock { above + IDS_APART + clock % IDS_APART } else { 0 };
        let low = clock.max(above).max(low_bits(self.next));
        // At the ceiling, after a clock that was far ahead, it goes on from where the wall clock is.
        let low = if low > LOW_BITS { low_bits(of_clock) } else { low };
        self.next = (self.sid << 56 | low) as i64;
    }

    /// An id that no session has.
    pub(crate) fn next(&mut self, taken: impl Fn(i64) -> bool) -> i64 {
        loop {
            let id = self.next;
            let low = (low_bits(id) + 1) & LOW_BITS;
            self.next = (self.sid << 56 | low) as i64;
            if id != 0 && id != i64::MIN && !taken(id) {
                return id;
            }
        }
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

/// The first id of a server that begins at this time.
const fn first_id(sid: u64, wall_ms: i64) -> i64 {
    let time = ((wall_ms as u64) << 24) >> 8;
    (time | sid << 56) as i64
}

const fn low_bits(id: i64) -> u64 {
    (id as u64) & LOW_BITS
}

/// All but the server's id.
const LOW_BITS: u64 = (1 << 56) - 1;
/// How far the ids of a server whose clock was set back are above those of its sessions that live: as much as the clock's
/// part of an id counts in some hours, more than it has given out since.
const IDS_APART: u64 = 1 << 40;
/// A session and its time-out.
const TOUCHED_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two as a ZooKeeper server with that clock would give them out.
    #[test]
    fn ids_are_made_of_the_server_and_its_clock() {
        let mut sessions = Sessions::new(ServerId(3));
        sessions.begin(1_700_000_000_000, core::iter::empty());
        assert_eq!(sessions.next(|_| false), 0x038b_cfe5_6800_0000);
        assert_eq!(sessions.next(|_| false), 0x038b_cfe5_6800_0001);
        let mut sessions = Sessions::new(ServerId(200));
        sessions.begin(1_700_000_000_000, core::iter::empty());
        assert_eq!(sessions.next(|_| false), -3_995_871_660_161_892_352);
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_id_out_again() {
        let mut sessions = Sessions::new(ServerId(3));
        let known = 0x038b_cfe5_6800_0007;
        sessions.begin(1_600_000_000_000, [known, 0x058b_cfe5_6800_0099].into_iter());
        let clock = low_bits(first_id(3, 1_600_000_000_000));
        let first = known + 1 + (IDS_APART + clock % IDS_APART) as i64;
        assert_eq!(sessions.next(|_| false), first, "those just above it may be closed ones");
        sessions.begin(1_500_000_000_000, core::iter::empty());
        assert_eq!(sessions.next(|_| false), first + 1, "nor without a table that shows it");
        assert_eq!(sessions.next(|id| id == first + 2), first + 3);
    }

    #[test]
    fn the_counter_never_reaches_the_servers_id() {
        let mut sessions = Sessions::new(ServerId(3));
        sessions.begin(1_700_000_000_000, [0x03ff_ffff_ffff_ffff].into_iter());
        assert_eq!(sessions.next(|_| false), 0x038b_cfe5_6800_0000);
        let mut sessions = Sessions::new(ServerId(128));
        sessions.begin(0, core::iter::empty());
        assert_eq!(sessions.next(|_| false), i64::MIN + 1);
    }

    #[test]
    fn what_was_heard_from_is_told_once() {
        let mut sessions = Sessions::new(ServerId(1));
        sessions.touch(7, 1000);
        sessions.touch(9, 2000);
        sessions.touch(7, 4000);
        let list = sessions.take_touched();
        assert_eq!(touched(&list).collect::<alloc::vec::Vec<_>>(), [(7, 4000), (9, 2000)]);
        assert!(sessions.take_touched().is_empty());
        assert_eq!(touched(&list[..15]).count(), 1, "half an entry is none");
    }
}
