//! A summary: how many observations, their sum, the least and the largest, and quantiles of the last ten minutes.
//!
//! Quantiles come from counts in buckets that are exact below 32 and 1/32 of their value wide above, so a quantile is
//! off by less than 3 %. Five slices of two minutes each make the window, as in the client library that ZooKeeper's
//! provider uses; the oldest makes room as a whole.

use alloc::vec::Vec;
use core::time::Duration;

/// Observations of one quantity: whole numbers, of milliseconds mostly.
///
/// [`observe`](Self::observe) takes no lock and allocates only the first time that a slice sees a value larger than all
/// before it: at most 4 KiB a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    slices: [Slice; SLICES],
}

/// The observations of two minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slice {
    /// Which two minutes.
    turn: u64,
    counts: Vec<u32>,
}

/// A [`Summary`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many observations there were.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least of them, 0 if there was none.
    pub min: u64,
    /// The largest of them, 0 if there was none.
    pub max: u64,
    /// The quantiles 0.5, 0.9, 0.95, 0.99 and 0.999 of the last ten minutes; none if nothing was observed then.
    pub quantiles: Option<[u64; 5]>,
}

impl Spread {
    /// What [`Spread::quantiles`] are.
    pub const QUANTILES: [&'static str; 5] = ["0.5", "0.9", "0.95", "0.99", "0.999"];
    /// The same in ten-thousandths.
    const PARTS: [u64; 5] = [5_000, 9_000, 9_500, 9_900, 9_990];

    /// The average in ten-thousandths, rounded down; 0 if there was nothing.
    pub const fn average_e4(&self) -> u128 {
        let sum = self.sum as u128 * 10_000;
        match self.count {
            0 => 0,
            count => sum / count as u128,
        }
    }
}

impl Summary {
    /// One more observation. `at` is a time since a moment that stays the same, and does not go back.
    pub fn observe(&mut self, at: Duration, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        let slice = &mut self.slices[place(turn(at))];
        if slice.turn != turn(at) {
            slice.turn = turn(at);
            slice.counts.fill(0);
        }
        let bucket = bucket(value);
        if slice.counts.len() <= bucket {
            slice.counts.resize(bucket + 1, 0);
        }
        slice.counts[bucket] = slice.counts[bucket].saturating_add(1);
    }

    /// One more duration, in whole milliseconds.
    pub fn observe_time(&mut self, at: Duration, took: Duration) {
        self.observe(at, u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }

    /// How things stand at a time.
    pub fn spread(&self, at: Duration) -> Spread {
        let Self { count, sum, min, max, .. } = *self;
        Spread { count, sum, min, max, quantiles: self.quantiles(at) }
    }

    fn quantiles(&self, at: Duration) -> Option<[u64; 5]> {
        let present = turn(at);
        let window = || self.slices.iter().filter(|s| is_in_window(s.turn, present));
        let longest = window().map(|slice| slice.counts.len()).max().unwrap_or(0);
        let of = |bucket| {
            let counts = window().filter_map(move |slice| slice.counts.get(bucket));
            counts.map(|count| u64::from(*count)).sum()
        };
        quantiles(&(0..longest).map(of).collect::<Vec<_>>(), self.min, self.max)
    }
}

/// The quantiles of observations, of which each bucket has so many; none of none.
pub(crate) fn quantiles(counts: &[u64], min: u64, max: u64) -> Option<[u64; 5]> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    // The observation of this rank is wanted, the first being 1.
    let ranks = Spread::PARTS.map(|part| (total * part).div_ceil(10_000).max(1));
    let mut found = [0; 5];
    let (mut seen, mut next) = (0, 0);
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        while next < ranks.len() && ranks[next] <= seen {
            found[next] = middle(bucket).clamp(min, max);
            next += 1;
        }
    }
    Some(found)
}

/// Whether a slice of that turn tells of the last ten minutes.
pub(crate) const fn is_in_window(turn: u64, present: u64) -> bool {
    turn + SLICES as u64 > present
}

/// The slice of a moment: two minutes each, from 1 on, so that an empty slice is of none.
pub(crate) const fn turn(at: Duration) -> u64 {
    at.as_secs() / SLICE_SECS + SLICES as u64
}

/// Where it is kept.
#[allow(clippy::cast_possible_truncation, reason = "less than five")]
pub(crate) const fn place(turn: u64) -> usize {
    (turn % SLICES as u64) as usize
}

/// The bucket of a value: itself below 32, else by its highest bit and the five behind it.
#[allow(clippy::cast_possible_truncation, reason = "five bits, and the number of a bit")]
pub(crate) const fn bucket(value: u64) -> usize {
    let value = if value > LARGEST { LARGEST } else { value };
    if value < FINE {
        return value as usize;
    }
    let shift = value.ilog2() - FINE_BITS;
    let within = (value >> shift) & (FINE - 1);
    FINE as usize * (1 + shift as usize) + within as usize
}

/// The middle of the values of a bucket.
const fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < FINE {
        return bucket;
    }
    let (shift, within) = (bucket / FINE - 1, bucket % FINE);
    let least = (FINE + within) << shift;
    least + (1 << shift) / 2
}

/// How many slices the window has.
pub(crate) const SLICES: usize = 5;
/// How long one is.
const SLICE_SECS: u64 = 120;
/// Into how many buckets each octave is divided, as a power of two.
const FINE_BITS: u32 = 5;
const FINE: u64 = 1 << FINE_BITS;
/// Larger values count as this one in quantiles: in milliseconds a month and a half.
const LARGEST: u64 = u32::MAX as u64;
/// How many buckets there are.
pub(crate) const BUCKETS: usize = bucket(LARGEST) + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_thirtysecond_of_its_values_wide() {
        for value in (0..4096).chain((12..32).flat_map(|bit| {
            let base = 1_u64 << bit;
            [base - 1, base, base + base / 3, base + base / 2 + 1]
        })) {
            let middle = middle(bucket(value));
            let off = middle.abs_diff(value);
            assert!(off * 32 <= value, "{value} is told as {middle}");
        }
        assert_eq!(bucket(u64::MAX), bucket(LARGEST));
        const { assert!(BUCKETS < 1024) };
    }
}
