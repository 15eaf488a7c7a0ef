//! How long the answers to one client took.

use core::time::Duration;

/// Figures of one connection, in milliseconds (`ServerCnxn.updateStatsForResponse`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latencies {
    pub(crate) last: u64,
    pub(crate) max: u64,
    least: Option<u64>,
    sum: u64,
    count: u64,
}

impl Latencies {
    /// One more answer, which took so long.
    pub(crate) fn add(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.last = millis;
        self.max = self.max.max(millis);
        self.least = Some(self.least.map_or(millis, |least| least.min(millis)));
        self.sum = self.sum.saturating_add(millis);
        self.count += 1;
    }

    /// The shortest; 0 if there is none.
    pub(crate) fn min(&self) -> u64 {
        self.least.unwrap_or(0)
    }

    /// The average, rounded down; 0 if there is none.
    pub(crate) fn average(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_the_least_the_average_and_the_most() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.min(), latencies.average(), latencies.max), (0, 0, 0));
        for millis in [7, 2, 4] {
            latencies.add(Duration::from_millis(millis));
        }
        assert_eq!((latencies.last, latencies.min(), latencies.average()), (4, 2, 4));
        assert_eq!(latencies.max, 7);
    }
}
