//! Transaction numbers: an epoch and a counter in 64 bits.
//!
//! ```text
//!   63            32 31             0
//!  ┌────────────────┬────────────────┐
//!  │     epoch      │    counter     │     0x500000010 = epoch 5, counter 16
//!  └────────────────┴────────────────┘
//! ```
//!
//! Counter 0 is the epoch itself (its NEWLEADER); transactions count from 1. Everything compares as
//! signed 64-bit, as ZooKeeper does: an observer votes with `i64::MIN` and must lose.

use core::fmt;

/// The leadership of one leader: the high half of a [`Zxid`].
///
/// Three different things are called "epoch" in ZooKeeper. This type is two of them, the *accepted*
/// and the *current* (in votes: *peer*) epoch; the third, the election epoch, is
/// [`Round`](crate::vote::Round).
///
/// It is as wide as on the wire. Only [`Epoch::ZERO`]`..=`[`Epoch::MAX`] are epochs; the rest are the
/// marks that the wire uses for "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

impl Epoch {
    /// Before any leader.
    pub const ZERO: Self = Self(0);
    /// The last epoch whose zxids are positive. Higher ones are refused, from peers and from disk.
    pub const MAX: Self = Self(0x7fff_ffff);
    /// What a server that may not be elected puts into its vote.
    pub const NONE: Self = Self(i64::MIN);

    /// Whether this is an epoch at all, see the type.
    pub const fn is_valid(self) -> bool {
        self.0 >= 0 && self.0 <= Self::MAX.0
    }

    /// The epoch after this one, none after the last.
    pub const fn next(self) -> Option<Self> {
        let next = Self(self.0.wrapping_add(1));
        if next.is_valid() { Some(next) } else { None }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE { f.write_str("none") } else { self.0.fmt(f) }
    }
}

/// The low half of a [`Zxid`]: which transaction of its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(pub u32);

impl Counter {
    /// The last counter that a leader hands out; reaching it ends the epoch (ZOOKEEPER-1277).
    pub const LAST: Self = Self(0xffff_fffe);
}

/// A transaction's number; a bigger last zxid means newer history, since only leaders issue them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zxid(pub i64);

impl Zxid {
    /// No transaction at all.
    pub const ZERO: Self = Self(0);
    /// What a server that may not be elected puts into its vote.
    pub const NONE: Self = Self(i64::MIN);
    /// A server whose history is not known says this; such votes are ignored.
    pub const UNKNOWN: Self = Self(-1);

    /// The transaction `counter` of `epoch`. The epoch's low 32 bits are taken.
    pub const fn new(epoch: Epoch, counter: Counter) -> Self {
        Self(epoch.0 << 32 | counter.0 as i64)
    }

    /// The bare start of `epoch`: counter 0, its NEWLEADER.
    pub const fn start_of(epoch: Epoch) -> Self {
        Self::new(epoch, Counter(0))
    }

    /// The high half, with its sign.
    pub const fn epoch(self) -> Epoch {
        Epoch(self.0 >> 32)
    }

    /// The low half.
    pub const fn counter(self) -> Counter {
        Counter((self.0 as u64 & 0xffff_ffff) as u32)
    }

    /// Whether this is the bare start of an epoch, which is no transaction.
    pub const fn is_epoch_start(self) -> bool {
        self.counter().0 == 0
    }

    /// Whether this transaction can stand directly behind `last`: the next of its epoch, or the first of
    /// a later one. Anything else would be a hole.
    pub const fn follows(self, last: Self) -> bool {
        let (epoch, before) = (self.epoch().0, last.epoch().0);
        (epoch == before && self.0 == last.0.wrapping_add(1))
            || (epoch > before && self.counter().0 == 1)
    }

    /// The next transaction of the same epoch; none when the counter is at its end and a new epoch
    /// must begin.
    pub const fn next(self) -> Option<Self> {
        if self.counter().0 >= Counter::LAST.0 { None } else { Some(Self(self.0 + 1)) }
    }
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE { f.write_str("none") } else { write!(f, "0x{:x}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_epoch_5_counter_16_as_0x500000010() {
        let zxid = Zxid::new(Epoch(5), Counter(16));
        assert_eq!(zxid, Zxid(0x5_0000_0010));
        assert_eq!((zxid.epoch(), zxid.counter()), (Epoch(5), Counter(16)));
    }

    #[test]
    fn the_last_counter_of_an_epoch_is_below_the_start_of_the_next() {
        assert!(Zxid::new(Epoch(1), Counter(0xffff_ffff)) < Zxid::start_of(Epoch(2)));
    }

    #[test]
    fn the_end_of_the_counter_has_no_next() {
        assert_eq!(Zxid::new(Epoch(1), Counter(0xffff_fffd)).next(), Some(Zxid(0x1_ffff_fffe)));
        assert_eq!(Zxid::new(Epoch(1), Counter::LAST).next(), None);
        assert_eq!(Zxid::new(Epoch(1), Counter(0xffff_ffff)).next(), None);
        assert_eq!(Epoch::MAX.next(), None);
        assert_eq!(Epoch(-1).next(), Some(Epoch::ZERO));
        assert_eq!(Epoch(i64::MAX).next(), None);
    }

    #[test]
    fn corner_values_split_and_order_as_signed() {
        let corners = [i64::MIN, -1, 0, (1 << 31) - 1, 1 << 31, i64::MAX];
        for pair in corners.windows(2) {
            assert!(Zxid(pair[0]) < Zxid(pair[1]));
        }
        for corner in corners {
            let zxid = Zxid(corner);
            assert_eq!(Zxid::new(zxid.epoch(), zxid.counter()), zxid);
        }
        assert!(!Zxid(i64::MIN).epoch().is_valid());
        assert!(Zxid(i64::MAX).epoch().is_valid());
    }
}
