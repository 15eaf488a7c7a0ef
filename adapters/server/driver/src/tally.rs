//! What was seen of many transactions one after the other, put in together where it is alike: in whole milliseconds most of it
//! is, and to put it in takes longer than to compare.

use std::time::Instant;

use crate::measures::{Counted, Measures, Took};

/// What was seen and is not put in yet.
#[derive(Debug)]
pub(crate) struct Tally {
    /// How much, and how often.
    alike: [(u64, u32); Took::ALL.len()],
    /// Of what there is any, a bit each.
    any: u64,
    counts: [u32; Counted::ALL.len()],
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self { alike: [(0, 0); Took::ALL.len()], any: 0, counts: [0; Counted::ALL.len()] }
    }

    /// There is so much of something.
    pub(crate) fn saw(&mut self, measures: &Measures, now: Instant, what: Took, much: u64) {
        self.saw_alike(measures, now, what, (much, 1));
    }

    /// There was so much of something, so often.
    pub(crate) fn saw_alike(
        &mut self,
        measures: &Measures,
        now: Instant,
        what: Took,
        (much, more): (u64, u32),
    ) {
        let (value, count) = &mut self.alike[what as usize];
        if *count > 0 && *value != much {
            measures.saw_alike(now, what, (*value, *count));
            *count = 0;
        }
        (*value, *count) = (much, count.saturating_add(more));
        self.any |= 1 << what as u64;
    }

    /// So many more of something.
    pub(crate) const fn count(&mut self, what: Counted, more: u32) {
        let count = &mut self.counts[what as usize];
        *count = count.saturating_add(more);
    }

    /// Puts in what was seen.
    pub(crate) fn put(&mut self, measures: &Measures, now: Instant) {
        while self.any != 0 {
            let at = self.any.trailing_zeros() as usize;
            self.any &= self.any - 1;
            measures.saw_alike(now, Took::ALL[at], self.alike[at]);
            self.alike[at].1 = 0;
        }
        for (what, count) in
            Counted::ALL.iter().zip(&mut self.counts).filter(|(_, count)| **count > 0)
        {
            measures.count(*what, std::mem::take(count) as usize);
        }
    }
}

const _: () = assert!(Took::ALL.len() <= 64);

#[cfg(test)]
mod tests {
    use quorate_leadership::boot_time;

    use super::*;

    #[test]
    fn what_is_alike_is_put_in_together_and_nothing_of_it_is_lost_or_told_twice() {
        let (measures, now) = (Measures::default(), boot_time::now());
        let mut tally = Tally::new();
        for much in [0, 0, 3, 3, 3, 0] {
            tally.saw(&measures, now, Took::Commit, much);
            tally.saw(&measures, now, Took::Propose, 7);
            tally.count(Counted::Commits, 1);
        }
        assert_eq!(measures.counted(Counted::Commits), 0, "not yet");
        assert_eq!(measures.spread(Took::Propose).count, 0, "not yet");
        for _ in 0..2 {
            tally.put(&measures, now);
            assert_eq!(measures.counted(Counted::Commits), 6);
            let spread = measures.spread(Took::Commit);
            assert_eq!((spread.count, spread.sum, spread.min, spread.max), (6, 9, 0, 3));
            let spread = measures.spread(Took::Propose);
            assert_eq!((spread.count, spread.sum), (6, 42));
            assert_eq!(spread.quantiles, Some([7; 5]));
        }
        tally.saw(&measures, now, Took::Propose, 7);
        tally.put(&measures, now);
        assert_eq!(measures.spread(Took::Propose).count, 7);
    }
}
