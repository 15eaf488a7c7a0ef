//! Times of one kind, summed up.

use std::time::Duration;

use serde::Serialize;

use crate::event::millis;

/// Smallest, middle, nearly largest and largest of some times.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Spread {
    /// None if there were no times.
    pub(super) min: Option<f64>,
    pub(super) median: Option<f64>,
    /// Where there are a hundred, the largest but for one of them.
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Spread {
    pub(super) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        let (Some(min), Some(max)) = (times.first(), times.last()) else {
            return Self::default();
        };
        let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
        Self {
            min: Some(millis(*min)),
            median: Some(millis((low + high) / 2)),
            p99: Some(millis(times[(times.len() * 99).div_ceil(100) - 1])),
            max: Some(millis(*max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let spread = Spread::of([4, 1, 2, 9].map(Duration::from_millis));
        assert_eq!((spread.min, spread.median, spread.max), (Some(1.0), Some(3.0), Some(9.0)));
        let spread = Spread::of([3, 1, 2].map(Duration::from_micros));
        assert_eq!(spread.median, Some(0.002));
        assert_eq!(Spread::of([]).median, None);
    }
}
