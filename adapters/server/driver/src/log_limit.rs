//! Warnings that outsiders can cause, at a bounded rate: a log is no place that they may fill.
//!
//! ```text
//!   (event, address) ──► 3 at once, then 1 in 10 s ──► 50 a second of all ──► said, with the number that was not
//! ```
//!
//! What was kept back is counted, and the count is said with the next one. The service does the same for its clients, in
//! the time of its steps and without a lock; below both are only the core and the traits, which log nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::locked;

/// Lets a few warnings of each kind and address through, and counts the rest.
#[derive(Debug)]
pub(crate) struct LogLimit {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    buckets: BTreeMap<(&'static str, Option<IpAddr>), Bucket>,
    /// How many were said in the second that began then.
    second: (Option<Instant>, u32),
}

/// The lines of one kind about one address.
#[derive(Debug)]
struct Bucket {
    /// Since when the lines that were said are forgotten, one after the other.
    since: Instant,
    said: u32,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self { inner: Mutex::new(Inner { buckets: BTreeMap::new(), second: (None, 0) }) }
    }

    /// Whether to speak of this event now, which that address has caused; if so, how many of them were kept back since the
    /// last time.
    pub(crate) fn permit(
        &self,
        event: &'static str,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<u64> {
        let mut inner = locked(&self.inner);
        let Inner { buckets, second } = &mut *inner;
        let mut key = (event, address.map(|address| address.to_canonical()));
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| bucket.suppressed > 0 || bucket.refill(now) > 0);
            if buckets.len() >= BUCKETS_MAX {
                key.1 = None;
            }
        }
        let new = || Bucket { since: now, said: 0, suppressed: 0 };
        let bucket = buckets.entry(key).or_insert_with(new);
        let may = bucket.refill(now) < AT_ONCE;
        let (begun, said) = *second;
        let said = match begun {
            Some(begun) if now.saturating_duration_since(begun) < SECOND => said,
            _ => {
                *second = (Some(now), 0);
                0
            }
        };
        if may && said < A_SECOND {
            second.1 += 1;
            bucket.said += 1;
            Some(std::mem::take(&mut bucket.suppressed))
        } else {
            bucket.suppressed += 1;
            None
        }
    }
}

impl Bucket {
    /// Forgets lines that were said long ago. Returns how many are left.
    fn refill(&mut self, now: Instant) -> u32 {
        let forgotten = now.saturating_duration_since(self.since).as_millis() / EVERY.as_millis();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX);
        self.said = self.said.saturating_sub(forgotten);
        self.since = if self.said > 0 { self.since + EVERY * forgotten } else { now };
        self.said
    }
}

const EVERY: Duration = Duration::from_secs(10);
const AT_ONCE: u32 = 3;
const SECOND: Duration = Duration::from_secs(1);
const A_SECOND: u32 = 50;
/// How many kinds and addresses are told apart. Those beyond have one bucket for each kind.
const BUCKETS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[test]
    fn a_flood_is_counted_not_said() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let permit = |event, seconds| limit.permit(event, HERE, start + SECOND * seconds);
        assert_eq!((0..1000).filter_map(|_| permit("flood", 0)).count(), 3);
        assert_eq!(permit("other", 0), Some(0), "one event does not hide another");
        assert_eq!(limit.permit("flood", None, start), Some(0), "nor one address");
        assert_eq!(permit("flood", 10), Some(997));
        assert_eq!(permit("flood", 11), None, "one in ten seconds");
        assert_eq!(permit("flood", 20), Some(1));
        assert_eq!((0..9).filter_map(|_| permit("flood", 90)).count(), 3);
    }

    #[test]
    fn a_thousand_addresses_together_say_no_more_than_fifty_lines_a_second_and_are_not_all_kept() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let flood = |at| {
            let permit =
                |host: u32| limit.permit("flood", Some(IpAddr::from(host.to_be_bytes())), at);
            (0..1000).filter_map(permit).count()
        };
        assert_eq!(flood(start), 50);
        assert!(flood(start + SECOND) <= 50);
        assert!(locked(&limit.inner).buckets.len() <= BUCKETS_MAX + 1);
    }
}
