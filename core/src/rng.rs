//! A small seeded generator: every jitter of the core is drawn from one, and all that a simulation draws.
//!
//! SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014): one word
//! of state, no float, the same sequence for ever. Not for secrets.

use core::time::Duration;

/// A generator; the same seed gives the same sequence on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng(u64);

impl Rng {
    /// A generator that begins at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if the bound is 0. The bias is below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A duration between three quarters of `mean` and five quarters of it.
    pub fn around(&mut self, mean: Duration) -> Duration {
        let nanos = u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos / 4 * 3 + self.below(nanos / 2 + 1))
    }
}
