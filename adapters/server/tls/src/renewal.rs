//! Which link is closed next, so that it is made anew: for its worn keys, or since its other side would not be let in now.
//!
//! ```text
//!   worn to 3/4, or unwanted; and nothing waits ──► this one ──► its server is back, or a time has passed ──► the next
//! ```
//!
//! One at a time: a leader that closed the links of two learners at once could lose its quorum. The leader decides for
//! the links of its learners, since it alone sees all of them; a learner decides for itself only later, where its
//! leader does not (a Java server, or one whose links are never quiet). All that a leader sends goes to each of its
//! learners, so their links are worn alike: two learners that decided at the same number of records would be away at
//! once. Each has a number of its own.

use std::time::Duration;

use quorate_core::id::{LinkId, ServerId};

/// A link that is to be made anew, now or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worn {
    /// Which.
    pub link: LinkId,
    /// With whom; none if that is no member.
    pub peer: Option<ServerId>,
    /// How many records have passed in the direction in which more have.
    pub records: u64,
    /// How many may.
    pub limit: u64,
    /// Since when it is unwanted; none if it is not.
    pub unwanted: Option<Duration>,
    /// What it is.
    pub kind: WornKind,
    /// Whether nothing waits on it, and its learner has all.
    pub is_quiet: bool,
}

/// What a link is, for closing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WornKind {
    /// For elections.
    Election,
    /// A learner's, which this server leads.
    Learner,
    /// This server's to its leader.
    Leader,
}

/// Which link is closed next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewals {
    own: ServerId,
    /// The member whose link was closed last, and when, until it is back.
    under_way: Option<(ServerId, WornKind, Duration)>,
}

impl Renewals {
    /// Those of this server.
    pub const fn of(own: ServerId) -> Self {
        Self { own, under_way: None }
    }

    /// Which of these to close now, at a time that only counts up; `is_back` says whether a server has a link of that kind
    /// again, `can_do_without` whether this server leads or follows on without it for a moment.
    pub fn next(
        &mut self,
        now: Duration,
        worn: &[Worn],
        is_back: impl Fn(ServerId, WornKind) -> bool,
        can_do_without: impl Fn(&Worn) -> bool,
    ) -> Option<LinkId> {
        let own = self.own;
        let is_due = |worn: &&Worn| worn.is_due(own, now, &can_do_without);
        // Whom no membership names is missed by none.
        if let Some(stranger) = worn.iter().filter(is_due).find(|worn| worn.peer.is_none()) {
            return Some(stranger.link);
        }
        if let Some((peer, kind, since)) = self.under_way {
            if !is_back(peer, kind) && now.saturating_sub(since) < PATIENCE {
                return None;
            }
            self.under_way = None;
        }
        let next = worn.iter().filter(is_due).max_by_key(|worn| worn.records)?;
        self.under_way = next.peer.map(|peer| (peer, next.kind, now));
        Some(next.link)
    }
}

impl Worn {
    /// Whether it is one to close now, at this server.
    fn is_due(&self, own: ServerId, now: Duration, can_do_without: impl Fn(&Self) -> bool) -> bool {
        let parts = u128::from(self.records) * PARTS / u128::from(self.limit.max(1));
        // Near its end it is closed at any moment: it would end at a worse one.
        if self.limit < u64::MAX && parts >= AT_LAST {
            return true;
        }
        let (from, after) = match self.kind {
            WornKind::Election | WornKind::Learner => (SOON, Duration::ZERO),
            WornKind::Leader => {
                (LATER + u128::from(own.0.rem_euclid(TURNS).unsigned_abs()), PATIENCE)
            }
        };
        let is_worn = self.limit < u64::MAX && parts >= from;
        let is_unwanted = self.unwanted.is_some_and(|since| now.saturating_sub(since) >= after);
        (is_worn || is_unwanted) && self.is_quiet && can_do_without(self)
    }
}

/// In how many parts a limit is divided.
const PARTS: u128 = 256;
/// 3/4.
const SOON: u128 = 192;
/// 7/8, for the first learner.
const LATER: u128 = 224;
/// How many learners have a number of records of their own between 7/8 and the last.
const TURNS: i64 = 16;
/// 15/16.
const AT_LAST: u128 = 240;
/// How long a server may take to be back before others have their turn, and how long a learner leaves it to its leader to
/// close a link.
const PATIENCE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    fn learner(peer: i64, records: u64) -> Worn {
        let link = LinkId(u64::try_from(peer).unwrap());
        let (kind, peer) = (WornKind::Learner, Some(ServerId(peer)));
        Worn { link, peer, records, limit: 1_000, unwanted: None, kind, is_quiet: true }
    }

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn alone(now: u64, worn: Worn) -> Option<LinkId> {
        Renewals::of(ServerId(16)).next(second(now), &[worn], |_, _| true, |_| true)
    }

    #[test]
    fn a_link_is_renewed_at_three_quarters_and_a_learners_own_choice_comes_later() {
        assert_eq!(alone(1, learner(1, 749)), None);
        assert_eq!(alone(1, learner(1, 750)), Some(LinkId(1)));
        let leader = |records| Worn { kind: WornKind::Leader, ..learner(1, records) };
        assert_eq!(alone(1, leader(874)), None);
        assert_eq!(alone(1, leader(875)), Some(LinkId(1)));
        let unlimited = |records| Worn { records, limit: u64::MAX, ..learner(1, 0) };
        assert_eq!(alone(1, unlimited(u64::MAX)), None);
    }

    /// Whoever leads says the same to all of them, so their links come to their ends together.
    #[test]
    fn learners_of_a_leader_that_closes_none_have_a_number_of_records_each() {
        let leader =
            |records| Worn { limit: 1 << 23, kind: WornKind::Leader, ..learner(9, records) };
        let closes = |own, records| {
            let worn = [leader(records)];
            Renewals::of(ServerId(own)).next(second(1), &worn, |_, _| true, |_| true).is_some()
        };
        let first = |own| (0..=256).map(|part| part << 15).find(|records| closes(own, *records));
        let at: Vec<_> = (-1..15).map(|own| first(own).unwrap()).collect();
        let mut apart = at.clone();
        apart.sort_unstable();
        apart.dedup();
        assert_eq!(apart.len(), at.len(), "{at:?}");
        let quarters = |records| records / (1 << 21);
        assert!(apart.iter().all(|records| quarters(*records) == 3 && *records < 15 << 19));
    }

    #[test]
    fn never_two_at_once_and_the_most_worn_first() {
        let mut renewals = Renewals::of(ServerId(16));
        let worn = [learner(1, 800), learner(2, 900)];
        let away = |_, _| false;
        assert_eq!(renewals.next(second(1), &worn, away, |_| true), Some(LinkId(2)));
        let left = [learner(1, 999)];
        assert_eq!(renewals.next(second(2), &left, away, |_| true), None, "2 is not back");
        let back = |peer, _| peer == ServerId(2);
        assert_eq!(renewals.next(second(3), &left, back, |_| true), Some(LinkId(1)));
        // One that does not come back holds the others up for a while only.
        let other = [learner(2, 800)];
        assert_eq!(renewals.next(second(17), &other, away, |_| true), None);
        assert_eq!(renewals.next(second(18), &other, away, |_| true), Some(LinkId(2)));
    }

    #[test]
    fn one_that_is_needed_or_busy_waits_until_it_would_end_anyway() {
        for (is_quiet, needed) in [(false, false), (true, true), (false, true)] {
            let next = |records, unwanted| {
                let worn = Worn { is_quiet, unwanted, ..learner(1, records) };
                Renewals::of(ServerId(16)).next(second(100), &[worn], |_, _| true, |_| !needed)
            };
            assert_eq!(next(930, None), None);
            assert_eq!(next(0, Some(second(1))), None, "a leader keeps its quorum");
            assert_eq!(next(940, None), Some(LinkId(1)));
        }
    }

    #[test]
    fn one_that_is_unwanted_is_closed_by_who_leads_and_later_by_who_follows() {
        let unwanted =
            |kind| Worn { unwanted: Some(second(10)), limit: u64::MAX, kind, ..learner(1, 0) };
        assert_eq!(alone(10, unwanted(WornKind::Learner)), Some(LinkId(1)));
        assert_eq!(alone(10, unwanted(WornKind::Election)), Some(LinkId(1)));
        assert_eq!(alone(24, unwanted(WornKind::Leader)), None);
        assert_eq!(alone(25, unwanted(WornKind::Leader)), Some(LinkId(1)));
        // A stranger's holds none up.
        let stranger = Worn { peer: None, link: LinkId(7), ..unwanted(WornKind::Learner) };
        let mut renewals = Renewals::of(ServerId(16));
        let both = [unwanted(WornKind::Learner), stranger];
        assert_eq!(renewals.next(second(10), &both, |_, _| false, |_| true), Some(LinkId(7)));
        assert_eq!(renewals.next(second(10), &both[..1], |_, _| false, |_| true), Some(LinkId(1)));
    }
}
