//! When a connection is made anew because its keys are worn.
//!
//! ```text
//!   worn to 3/4, and nothing waits ──► this one ──► its server is back, or a time has passed ──► the next
//! ```
//!
//! One at a time: a leader that renewed two learners at once could lose its quorum. Whoever leads decides for the links of its
//! learners, since it alone sees all of them; a learner decides for itself only later, where its leader does not.

use std::time::Duration;

use quorate_core::id::{LinkId, ServerId};

/// A connection over TLS 1.2, as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worn {
    /// Which.
    pub link: LinkId,
    /// With whom.
    pub peer: ServerId,
    /// How many records have passed in the direction in which more have.
    pub records: u64,
    /// How many may.
    pub limit: u64,
    /// What it is.
    pub kind: WornKind,
    /// Whether nothing waits on it, and its learner has all.
    pub is_quiet: bool,
}

/// What a connection is, for renewing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WornKind {
    /// For elections, and this server has dialled it.
    Election,
    /// A learner's, which this server leads.
    Learner,
    /// This server's to its leader.
    Leader,
}

/// Which connection is renewed next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewals {
    /// The server whose link was closed last, and when, until it is back.
    under_way: Option<(ServerId, WornKind, Duration)>,
}

impl Renewals {
    /// Which of these to close now, at a time that only counts up; `is_back` says whether a server has a link of that kind
    /// again, `can_do_without` whether this server leads or follows on without it for a moment.
    pub fn next(
        &mut self,
        now: Duration,
        worn: &[Worn],
        is_back: impl Fn(ServerId, WornKind) -> bool,
        can_do_without: impl Fn(&Worn) -> bool,
    ) -> Option<LinkId> {
        if let Some((peer, kind, since)) = self.under_way {
            if !is_back(peer, kind) && now.saturating_sub(since) < PATIENCE {
                return None;
            }
            self.under_way = None;
        }
        let due = worn.iter().filter(|worn| {
            let parts = u128::from(worn.records) * PARTS / u128::from(worn.limit.max(1));
            let own = match worn.kind {
                WornKind::Election | WornKind::Learner => SOON,
                WornKind::Leader => LATER,
            };
            // Near its end it is closed at any moment: it would end at a worse one.
            parts >= AT_LAST || parts >= own && worn.is_quiet && can_do_without(worn)
        });
        let next = due.max_by_key(|worn| worn.records)?;
        self.under_way = Some((next.peer, next.kind, now));
        Some(next.link)
    }
}

/// In how many parts a limit is divided.
const PARTS: u128 = 16;
/// 3/4.
const SOON: u128 = 12;
/// 7/8.
const LATER: u128 = 14;
/// 15/16.
const AT_LAST: u128 = 15;
/// How long a server may take to be back before others have their turn.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn learner(peer: i64, records: u64) -> Worn {
        let link = LinkId(u64::try_from(peer).unwrap());
        let kind = WornKind::Learner;
        Worn { link, peer: ServerId(peer), records, limit: 1_000, kind, is_quiet: true }
    }

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_link_is_renewed_at_three_quarters_and_a_learners_own_choice_comes_later() {
        let next = |worn| Renewals::default().next(second(1), &[worn], |_, _| true, |_| true);
        assert_eq!(next(learner(1, 749)), None);
        assert_eq!(next(learner(1, 750)), Some(LinkId(1)));
        let leader = |records| Worn { kind: WornKind::Leader, ..learner(1, records) };
        assert_eq!(next(leader(874)), None);
        assert_eq!(next(leader(875)), Some(LinkId(1)));
        let unlimited = Worn { records: u64::MAX / 2, limit: u64::MAX, ..learner(1, 0) };
        assert_eq!(next(unlimited), None);
    }

    #[test]
    fn never_two_at_once_and_the_most_worn_first() {
        let mut renewals = Renewals::default();
        let worn = [learner(1, 800), learner(2, 900)];
        let away = |_, _| false;
        assert_eq!(renewals.next(second(1), &worn, away, |_| true), Some(LinkId(2)));
        let left = [learner(1, 999)];
        assert_eq!(renewals.next(second(2), &left, away, |_| true), None, "2 is not back");
        let back = |peer, _| peer == ServerId(2);
        assert_eq!(renewals.next(second(3), &left, back, |_| true), Some(LinkId(1)));
        // One that does not come back holds the others up for a while only.
        let other = [learner(2, 800)];
        assert_eq!(renewals.next(second(62), &other, away, |_| true), None);
        assert_eq!(renewals.next(second(63), &other, away, |_| true), Some(LinkId(2)));
    }

    #[test]
    fn one_that_is_needed_or_busy_waits_until_it_would_end_anyway() {
        for (quiet, needed) in [(false, false), (true, true), (false, true)] {
            let worn = |records| Worn { is_quiet: quiet, ..learner(1, records) };
            let next =
                |worn| Renewals::default().next(second(1), &[worn], |_, _| true, |_| !needed);
            assert_eq!(next(worn(930)), None);
            assert_eq!(next(worn(940)), Some(LinkId(1)));
        }
    }
}
