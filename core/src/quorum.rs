//! Quorums: is this set of servers enough?
//!
//! ```text
//!   a configuration = groups of weighted voters          {1,2,3 | 4,5,6 | 7,8,9}
//!   a group is won  = more than half of its weight        1,2 win the first, 4,5 the second
//!   enough          = more than half of the groups won    {1,2,4,5} is a quorum
//!   a majority      = one group, all weights 1
//!   a joint pair    = enough in the old configuration and in the new one
//! ```
//!
//! Any two quorums share a voter; everything safe about elections and commits rests on it. The one
//! exception is the oracle of a two-server ensemble, which trades it away knowingly.
//!
//! [`Support`] is a set of voters that knows at any time whether it is enough: sums are kept, not
//! recounted, so one vote costs the same among three servers and among 255. This module counts
//! members of sets; what makes a server a member of one is the business of those who count.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::ServerId;

/// How many voters of one configuration are enough.
///
/// Weights are at least 0; a group whose weights are all 0 is not counted, and a voter of weight 0
/// may follow but is never elected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorum {
    /// Ascending by id.
    voters: Vec<Voter>,
    /// Positions of the ids 0..=255 in `voters`; [`ABSENT`] if there is none.
    positions: Box<[u16]>,
    /// Total weight of each group, those of the old configuration first.
    groups: Vec<u64>,
    /// One or, while the membership changes, two configurations.
    systems: Vec<System>,
    /// Whether this is a plain majority: one group, all weights 1.
    plain: bool,
    weightless: bool,
    oracle: Option<Oracle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Voter {
    id: ServerId,
    /// Where it counts in the old and in the new configuration.
    shares: [Option<Share>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Share {
    group: u16,
    weight: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct System {
    /// How many groups have weight.
    counted: u16,
}

/// The outside arbiter of a two-server ensemble, as last heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Oracle {
    /// What it last said to us.
    yes: bool,
    /// Whether its word is asked for: not while the leader has a follower.
    needed: bool,
}

/// What [`Quorum::positions`] says of an id that has no vote.
const ABSENT: u16 = u16::MAX;

impl Quorum {
    /// Strictly more than half of `voters`, dead or alive.
    pub fn majority(voters: impl IntoIterator<Item = ServerId>) -> Self {
        let group: Vec<_> = voters.into_iter().map(|id| (id, 1)).collect();
        Self::hierarchical([group])
    }

    /// A majority of the weight in each of a majority of the groups.
    ///
    /// A server that is named twice counts where it was named first.
    pub fn hierarchical(
        groups: impl IntoIterator<Item = impl IntoIterator<Item = (ServerId, u64)>>,
    ) -> Self {
        let mut totals = Vec::new();
        let mut shares = BTreeMap::new();
        for (group, members) in groups.into_iter().take(usize::from(ABSENT)).enumerate() {
            let group = u16::try_from(group).unwrap_or(ABSENT);
            let mut total = 0u64;
            for (id, weight) in members {
                if let alloc::collections::btree_map::Entry::Vacant(free) = shares.entry(id) {
                    free.insert([Some(Share { group, weight }), None]);
                    total = total.saturating_add(weight);
                }
            }
            totals.push(total);
        }
        Self::assemble(shares, totals, 1)
    }

    /// Enough in `old` and in `new`: what every decision needs while the membership changes.
    pub fn joint(old: &Self, new: &Self) -> Self {
        let shift = u16::try_from(old.groups.len()).unwrap_or(ABSENT);
        let mut shares = BTreeMap::new();
        for voter in &old.voters {
            shares.insert(voter.id, [voter.shares[0], None]);
        }
        for voter in &new.voters {
            let share =
                voter.shares[0].map(|s| Share { group: s.group.saturating_add(shift), ..s });
            shares.entry(voter.id).or_insert([None, None])[1] = share;
        }
        let totals = old.groups.iter().chain(&new.groups).copied().collect::<Vec<_>>();
        let mut joint = Self::assemble(shares, totals, 2);
        joint.systems = vec![old.systems[0], new.systems[0]];
        joint
    }

    /// Lets an outside arbiter allow the survivor of two voters to go on alone. With more voters, or
    /// while the membership changes, it is never heard.
    ///
    /// Both of two separated servers may be told yes, if the arbiter errs: this quorum is only as
    /// safe as the arbiter.
    #[must_use]
    pub fn with_oracle(mut self) -> Self {
        self.oracle = Some(Oracle { yes: false, needed: true });
        self
    }

    /// Takes over what the arbiter said from the quorum whose place this one takes.
    #[must_use]
    pub fn in_place_of(mut self, old: &Self) -> Self {
        self.oracle = self.oracle.and(old.oracle);
        self
    }

    fn assemble(
        shares: BTreeMap<ServerId, [Option<Share>; 2]>,
        groups: Vec<u64>,
        systems: usize,
    ) -> Self {
        let voters: Vec<_> = shares.into_iter().map(|(id, shares)| Voter { id, shares }).collect();
        let mut positions = vec![ABSENT; 256].into_boxed_slice();
        for (at, voter) in voters.iter().enumerate().take(usize::from(ABSENT)) {
            if let Some(slot) = usize::try_from(voter.id.0).ok().and_then(|i| positions.get_mut(i))
            {
                *slot = u16::try_from(at).unwrap_or(ABSENT);
            }
        }
        let counted = groups.iter().filter(|total| **total > 0).count();
        let counted = u16::try_from(counted).unwrap_or(ABSENT);
        let weight = |voter: &Voter| voter.shares[0].or(voter.shares[1]).map_or(0, |s| s.weight);
        let plain = systems == 1 && groups.len() == 1 && voters.iter().all(|v| weight(v) == 1);
        let weightless = voters.iter().any(|v| weight(v) == 0);
        let systems = vec![System { counted }; systems];
        Self { voters, positions, groups, systems, plain, weightless, oracle: None }
    }

    /// The voters of all configurations, ascending.
    pub fn voters(&self) -> impl ExactSizeIterator<Item = ServerId> + '_ {
        self.voters.iter().map(|voter| voter.id)
    }

    /// Where `id` stands among [`Quorum::voters`]; none if it has no vote.
    #[inline]
    pub fn position(&self, id: ServerId) -> Option<usize> {
        match usize::try_from(id.0).ok().and_then(|i| self.positions.get(i)) {
            Some(&ABSENT) => None,
            Some(&at) => Some(usize::from(at)),
            None => self.voters.binary_search_by_key(&id, |voter| voter.id).ok(),
        }
    }

    /// The voter at `position`.
    ///
    /// # Panics
    ///
    /// If there is none: positions come from [`Quorum::position`].
    #[inline]
    pub fn id(&self, position: usize) -> ServerId {
        self.voters[position].id
    }

    /// Whether `id` has a vote, be it one of weight 0.
    #[inline]
    pub fn is_voter(&self, id: ServerId) -> bool {
        self.position(id).is_some()
    }

    /// The weight of `id` in the present configuration, or in the next if it has no vote in the
    /// present one; 0 if it has none at all.
    #[inline]
    pub fn weight(&self, id: ServerId) -> u64 {
        self.position(id).map_or(0, |at| {
            let shares = self.voters[at].shares;
            shares[0].or(shares[1]).map_or(0, |share| share.weight)
        })
    }

    /// Whether `id` counts for anything, in the present configuration or the next.
    pub fn has_weight(&self, id: ServerId) -> bool {
        let shares = self.position(id).map(|at| self.voters[at].shares);
        shares.is_some_and(|shares| shares.iter().flatten().any(|share| share.weight > 0))
    }

    /// Whether some voter has weight 0.
    #[inline]
    pub const fn has_weightless(&self) -> bool {
        self.weightless
    }

    /// How many voters are enough, where all count alike and no oracle is heard.
    #[inline]
    pub fn plain_majority(&self) -> Option<usize> {
        (self.plain && self.oracle.is_none()).then_some(self.voters.len() / 2 + 1)
    }

    /// An empty set of voters.
    pub fn support(&self) -> Support {
        Support {
            members: vec![false; self.voters.len()],
            sums: vec![0; self.groups.len()],
            won: [0; 2],
        }
    }

    /// Whether `servers` are a quorum; those without a vote are not counted.
    pub fn is_quorum(&self, servers: impl IntoIterator<Item = ServerId>) -> bool {
        let mut support = self.support();
        for id in servers {
            support.add(self, id);
        }
        support.is_enough(self)
    }

    /// Takes note of what the arbiter says. Without an oracle nothing changes.
    pub fn hear_oracle(&mut self, yes: bool) {
        if let Some(oracle) = &mut self.oracle {
            oracle.yes = yes;
        }
    }

    /// Whether the arbiter is to be asked: not while the leader has a follower.
    pub fn need_oracle(&mut self, needed: bool) {
        if let Some(oracle) = &mut self.oracle {
            oracle.needed = needed;
        }
    }

    /// What the arbiter says, if there are two voters and its word is needed.
    pub fn oracle(&self) -> Option<bool> {
        let heard = self.oracle.filter(|oracle| oracle.needed)?;
        (self.voters.len() == 2 && self.systems.len() == 1).then_some(heard.yes)
    }

    fn system_of(&self, share: usize) -> Option<&System> {
        self.systems.get(share)
    }
}

/// A set of voters, with the weight it has gathered.
///
/// It belongs to the quorum that made it; positions and sums mean nothing to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Support {
    members: Vec<bool>,
    sums: Vec<u64>,
    /// Groups won in each configuration.
    won: [u16; 2],
}

impl Support {
    /// Adds `id`; false if it has no vote or was in already.
    pub fn add(&mut self, quorum: &Quorum, id: ServerId) -> bool {
        quorum.position(id).is_some_and(|at| self.add_at(quorum, at))
    }

    /// Removes `id`; false if it was not in.
    pub fn remove(&mut self, quorum: &Quorum, id: ServerId) -> bool {
        quorum.position(id).is_some_and(|at| self.remove_at(quorum, at))
    }

    /// Adds the voter at [`Quorum::position`] `at`.
    #[inline]
    pub fn add_at(&mut self, quorum: &Quorum, at: usize) -> bool {
        if core::mem::replace(&mut self.members[at], true) {
            return false;
        }
        if quorum.plain {
            self.sums[0] += 1;
            self.won[0] = u16::from(self.sums[0] > quorum.groups[0] / 2);
            return true;
        }
        for (system, share) in quorum.voters[at].shares.iter().enumerate() {
            if let Some(share) = share {
                let group = usize::from(share.group);
                let (half, before) = (quorum.groups[group] / 2, self.sums[group]);
                self.sums[group] = before + share.weight;
                self.won[system] += u16::from(before <= half && self.sums[group] > half);
            }
        }
        true
    }

    /// Removes the voter at [`Quorum::position`] `at`.
    #[inline]
    pub fn remove_at(&mut self, quorum: &Quorum, at: usize) -> bool {
        if !core::mem::replace(&mut self.members[at], false) {
            return false;
        }
        if quorum.plain {
            self.sums[0] -= 1;
            self.won[0] = u16::from(self.sums[0] > quorum.groups[0] / 2);
            return true;
        }
        for (system, share) in quorum.voters[at].shares.iter().enumerate() {
            if let Some(share) = share {
                let group = usize::from(share.group);
                let (half, before) = (quorum.groups[group] / 2, self.sums[group]);
                self.sums[group] = before - share.weight;
                self.won[system] -= u16::from(before > half && self.sums[group] <= half);
            }
        }
        true
    }

    /// Empties the set, keeping its memory.
    pub fn clear(&mut self) {
        self.members.fill(false);
        self.sums.fill(0);
        self.won = [0; 2];
    }

    /// Whether the set is a quorum of every configuration concerned, or the arbiter of two servers
    /// allows what the votes do not. The empty set is never one.
    #[inline]
    pub fn is_enough(&self, quorum: &Quorum) -> bool {
        self.is_quorum(quorum)
            || (quorum.oracle() == Some(true) && self.members.iter().any(|member| *member))
    }

    /// Whether the set is a quorum of one of the configurations concerned: enough to follow whom they follow,
    /// which decides nothing.
    pub fn is_enough_to_follow(&self, quorum: &Quorum) -> bool {
        let of_one = |share: usize| {
            quorum.system_of(share).is_some_and(|system| self.won[share] > system.counted / 2)
        };
        self.is_enough(quorum) || (!quorum.plain && (0..2).any(of_one))
    }

    /// Whether the set is a quorum by its votes alone.
    #[inline]
    pub fn is_quorum(&self, quorum: &Quorum) -> bool {
        if quorum.plain {
            return self.won[0] > 0;
        }
        (0..2).all(|share| match quorum.system_of(share) {
            Some(system) => self.won[share] > system.counted / 2,
            None => true,
        })
    }

    /// Whether `id` would bring the set nearer to a quorum: it is not in it, and has weight in a group
    /// that is not won, of a configuration in which groups are still missing.
    pub fn lacks(&self, quorum: &Quorum, id: ServerId) -> bool {
        let Some(at) = quorum.position(id).filter(|at| !self.members[*at]) else { return false };
        quorum.voters[at].shares.iter().enumerate().any(|(system, share)| {
            let (Some(share), Some(of)) = (share, quorum.system_of(system)) else { return false };
            let group = usize::from(share.group);
            share.weight > 0
                && self.sums[group] <= quorum.groups[group] / 2
                && self.won[system] <= of.counted / 2
        })
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, quorum: &Quorum, id: ServerId) -> bool {
        quorum.position(id).is_some_and(|at| self.members[at])
    }

    /// The members, ascending.
    pub fn members<'a>(&'a self, quorum: &'a Quorum) -> impl Iterator<Item = ServerId> + 'a {
        quorum.voters().zip(&self.members).filter_map(|(id, member)| member.then_some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn ids(of: &[i64]) -> Vec<ServerId> {
        of.iter().map(|id| ServerId(*id)).collect()
    }

    #[test]
    fn a_majority_is_more_than_half_of_the_configured_voters() {
        for (voters, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)] {
            let quorum = Quorum::majority((1..=voters).map(ServerId));
            assert!(quorum.is_quorum((1..=needed).map(ServerId)), "{needed} of {voters}");
            assert!(!quorum.is_quorum((1..needed).map(ServerId)), "{} of {voters}", needed - 1);
        }
    }

    #[test]
    fn two_f_plus_one_servers_tolerate_f_failures_and_four_no_more_than_three() {
        for failures in 1..=3i64 {
            let quorum = Quorum::majority((1..=2 * failures + 1).map(ServerId));
            assert!(quorum.is_quorum((1..=failures + 1).map(ServerId)));
            assert!(!quorum.is_quorum((1..=failures).map(ServerId)));
        }
        let four = Quorum::majority((1..=4).map(ServerId));
        assert!(four.is_quorum(ids(&[1, 2, 3])) && !four.is_quorum(ids(&[1, 2])));
    }

    #[test]
    fn non_members_and_observers_are_not_counted() {
        let quorum = Quorum::majority(ids(&[1, 2, 3]));
        assert!(!quorum.is_quorum(ids(&[1, 4, 5, -1])));
        assert_eq!((quorum.weight(ServerId(4)), quorum.weight(ServerId(1))), (0, 1));
        assert!(!Quorum::majority([]).is_quorum([]), "the empty set is never a quorum");
    }

    #[test]
    fn three_groups_of_three() {
        let group = |of: &[i64]| of.iter().map(|id| (ServerId(*id), 1)).collect::<Vec<_>>();
        let quorum =
            Quorum::hierarchical([group(&[1, 2, 3]), group(&[4, 5, 6]), group(&[7, 8, 9])]);
        assert!(quorum.is_quorum(ids(&[1, 2, 4, 5])));
        assert!(!quorum.is_quorum(ids(&[1, 2, 3, 4])));
        assert!(!quorum.is_quorum(ids(&[1, 4, 7])));
    }

    /// `group.1=1:2 group.2=3 weight.2=2 weight.3=0`, seen on a real ensemble: everybody elects 2.
    #[test]
    fn a_group_without_weight_is_not_counted() {
        let quorum = Quorum::hierarchical([
            vec![(ServerId(1), 1), (ServerId(2), 2)],
            vec![(ServerId(3), 0)],
        ]);
        assert!(quorum.is_quorum(ids(&[2])));
        assert!(!quorum.is_quorum(ids(&[1, 3])));
        assert!(quorum.is_voter(ServerId(3)) && quorum.weight(ServerId(3)) == 0);
    }

    #[test]
    fn a_joint_pair_needs_a_quorum_of_both() {
        let joint =
            Quorum::joint(&Quorum::majority(ids(&[1, 2, 3])), &Quorum::majority(ids(&[3, 4, 5])));
        assert_eq!(joint.voters().collect::<Vec<_>>(), ids(&[1, 2, 3, 4, 5]));
        assert!(joint.is_quorum(ids(&[1, 3, 4])));
        assert!(!joint.is_quorum(ids(&[1, 2, 3])));
        assert!(!joint.is_quorum(ids(&[3, 4, 5])));
    }

    #[test]
    fn the_oracle_is_heard_with_two_voters_only() {
        let mut two = Quorum::majority(ids(&[1, 2])).with_oracle();
        assert!(!two.is_quorum(ids(&[1])));
        two.hear_oracle(true);
        assert!(two.is_quorum(ids(&[1])));
        assert!(!two.is_quorum([]), "nobody is never enough");
        two.need_oracle(false);
        assert!(!two.is_quorum(ids(&[1])));
        let mut three = Quorum::majority(ids(&[1, 2, 3])).with_oracle();
        three.hear_oracle(true);
        assert!(!three.is_quorum(ids(&[1])));
    }

    #[test]
    fn a_set_lacks_those_who_bring_it_nearer_to_a_quorum() {
        let lacking = |quorum: &Quorum, of: &[i64]| {
            let mut set = quorum.support();
            for id in of {
                set.add(quorum, ServerId(*id));
            }
            let lacking = quorum.voters().filter(|id| set.lacks(quorum, *id)).map(|id| id.0);
            lacking.collect::<Vec<_>>()
        };
        let three = Quorum::majority(ids(&[1, 2, 3]));
        assert_eq!(lacking(&three, &[]), [1, 2, 3]);
        assert_eq!(lacking(&three, &[1]), [2, 3]);
        assert_eq!(lacking(&three, &[1, 2]), []);
        assert!(!three.support().lacks(&three, ServerId(9)), "it has no vote");
        let weighed =
            Quorum::hierarchical([vec![(ServerId(1), 1), (ServerId(2), 2), (ServerId(3), 0)]]);
        assert_eq!(lacking(&weighed, &[1]), [2], "one without weight brings nothing");
        let group = |of: &[i64]| of.iter().map(|id| (ServerId(*id), 1)).collect::<Vec<_>>();
        let groups =
            Quorum::hierarchical([group(&[1, 2, 3]), group(&[4, 5, 6]), group(&[7, 8, 9])]);
        assert_eq!(lacking(&groups, &[1, 2, 4]), [5, 6, 7, 8, 9], "the first group is won");
        assert_eq!(lacking(&groups, &[1, 2, 4, 5]), []);
        let joint =
            Quorum::joint(&Quorum::majority(ids(&[1, 2, 3])), &Quorum::majority(ids(&[3, 4, 5])));
        assert_eq!(lacking(&joint, &[1, 3]), [4, 5], "there is a quorum of the old ones");
    }

    /// Random systems of groups, weights and joint pairs: two sets that do not meet are never both
    /// quorums; adding and removing keeps the sums that a recount would find.
    #[test]
    fn any_two_quorums_intersect() {
        let mut rng = Rng::new(0x51);
        for _ in 0..if cfg!(miri) { 5 } else { 2_000 } {
            let mut system = |low: i64| {
                let groups = (0..=rng.below(3))
                    .map(|g| {
                        (0..=rng.below(3))
                            .map(|i| (ServerId(low + (g * 4 + i) as i64), rng.below(4)))
                            .collect::<Vec<_>>()
                    })
                    .collect::<Vec<_>>();
                Quorum::hierarchical(groups)
            };
            let (old, new) = (system(1), system(3));
            let quorum = if rng.below(2) == 0 { old } else { Quorum::joint(&old, &new) };
            let (mut left, mut right) = (quorum.support(), quorum.support());
            for id in quorum.voters() {
                match rng.below(3) {
                    0 => left.add(&quorum, id),
                    1 => right.add(&quorum, id),
                    _ => false,
                };
            }
            assert!(!(left.is_enough(&quorum) && right.is_enough(&quorum)), "{quorum:?}");
            let mut churned = left.clone();
            for id in quorum.voters() {
                if churned.add(&quorum, id) {
                    assert!(churned.remove(&quorum, id));
                }
            }
            assert_eq!(churned, left);
            for id in quorum.voters() {
                let (mut with, mut without) = (left.clone(), left.clone());
                for other in quorum.voters().filter(|other| *other != id && rng.below(2) == 0) {
                    with.add(&quorum, other);
                    without.add(&quorum, other);
                }
                let decides = with.add(&quorum, id) && with.is_quorum(&quorum);
                let decides = decides && !without.is_quorum(&quorum);
                assert!(!decides || left.lacks(&quorum, id), "{id} decides: {left:?}");
            }
            assert_eq!(quorum.is_quorum(left.members(&quorum)), left.is_enough(&quorum));
        }
    }
}
