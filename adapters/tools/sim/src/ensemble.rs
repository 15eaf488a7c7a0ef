//! Who takes part in a simulated ensemble, and what makes a quorum of it.
//!
//! The arithmetic of quorums is written here a second time, from the rule and not from the core's code,
//! so that the checker can disagree with the core.

use std::collections::BTreeMap;
use std::net::IpAddr;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::membership::{Member, Membership, MembershipError, Role, ServerAddress};

/// The quorum port of every simulated server.
const QUORUM_PORT: u16 = 2888;
/// The election port of every simulated server.
const ELECTION_PORT: u16 = 3888;

/// From here on ids belong to non-members.
const FIRST_NON_MEMBER: i64 = 200;

/// One server of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimMember {
    /// Who.
    pub id: ServerId,
    /// Whether it votes; an observer otherwise.
    pub voter: bool,
    /// Its group; 0 for everybody without groups.
    pub group: i64,
    /// Its weight; 1 for everybody without groups.
    pub weight: u64,
}

/// The servers of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensemble {
    members: Vec<SimMember>,
    hierarchical: bool,
}

impl Ensemble {
    /// The voters 1 to `voters`, each with one vote.
    pub fn majority(voters: i64) -> Self {
        let member = |id| SimMember { id: ServerId(id), voter: true, group: 0, weight: 1 };
        Self { members: (1..=voters).map(member).collect(), hierarchical: false }
    }

    /// Groups of voters with weights; the groups are numbered from 1.
    pub fn hierarchical(groups: &[&[(i64, u64)]]) -> Self {
        let mut members = Vec::new();
        for (group, of_group) in (1..).zip(groups) {
            for (id, weight) in *of_group {
                members.push(SimMember { id: ServerId(*id), voter: true, group, weight: *weight });
            }
        }
        members.sort_by_key(|member| member.id);
        Self { members, hierarchical: true }
    }

    /// What a membership says, in which quorums are majorities.
    pub fn of(membership: &Membership) -> Self {
        let member = |member: &Member| {
            let voter = member.role == Role::Participant;
            SimMember { id: member.id, voter, group: 0, weight: u64::from(voter) }
        };
        Self { members: membership.members().iter().map(member).collect(), hierarchical: false }
    }

    /// The line of a server in a membership.
    pub fn line_of(id: ServerId, voter: bool) -> Member {
        let role = if voter { Role::Participant } else { Role::Observer };
        let host = Self::address(id, Plane::Election).host;
        Member::new(id, role, ServerAddress::new(&host, QUORUM_PORT, ELECTION_PORT))
    }

    /// Whether quorums are majorities.
    pub fn is_plain(&self) -> bool {
        !self.hierarchical
    }

    /// Adds observers with these ids.
    #[must_use]
    pub fn with_observers(mut self, ids: impl IntoIterator<Item = i64>) -> Self {
        let member = |id| SimMember { id: ServerId(id), voter: false, group: 0, weight: 0 };
        self.members.extend(ids.into_iter().map(member));
        self.members.sort_by_key(|member| member.id);
        self
    }

    /// The same with another voter; where quorums are majorities.
    #[must_use]
    pub fn with_voter(mut self, id: ServerId) -> Self {
        self.members.push(SimMember { id, voter: true, group: 0, weight: 1 });
        self.members.sort_by_key(|member| member.id);
        self
    }

    /// The same without one server, as a member with an older configuration would see it.
    #[must_use]
    pub fn without(mut self, id: i64) -> Self {
        self.members.retain(|member| member.id != ServerId(id));
        self
    }

    /// The same with one server turned into an observer.
    #[must_use]
    pub fn with_demoted(mut self, id: i64) -> Self {
        for member in self.members.iter_mut().filter(|member| member.id == ServerId(id)) {
            *member = SimMember { voter: false, group: 0, weight: 0, ..*member };
        }
        self
    }

    /// The servers, ascending by id.
    pub fn members(&self) -> &[SimMember] {
        &self.members
    }

    /// The ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.members.iter().map(|member| member.id)
    }

    /// The leadership of a server.
    pub fn member(&self, id: ServerId) -> Option<&SimMember> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Whether a server may be elected: it votes and has weight.
    pub fn may_lead(&self, id: ServerId) -> bool {
        self.member(id).is_some_and(|member| member.voter && member.weight > 0)
    }

    /// Whether the servers of which `has` is true are a quorum: more than half of the weight in each of
    /// more than half of the groups that have weight.
    pub fn is_quorum(&self, has: impl Fn(ServerId) -> bool) -> bool {
        let mut groups: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.voter) {
            let (there, total) = groups.entry(member.group).or_default();
            *total += member.weight;
            *there += if has(member.id) { member.weight } else { 0 };
        }
        groups.retain(|_, (_, total)| *total > 0);
        let won = groups.values().filter(|(there, total)| 2 * there > *total).count();
        2 * won > groups.len()
    }

    /// Whether an id is one that no member ever has.
    pub fn is_non_member(id: ServerId) -> bool {
        id.0 >= FIRST_NON_MEMBER
    }

    /// Whether an address is one of theirs.
    pub(crate) fn is_strange(address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return true };
        Self::is_non_member(ServerId(i64::from(address.octets()[3])))
    }

    /// A non-member; there are a few.
    pub(crate) fn non_member(number: u64) -> ServerId {
        ServerId(FIRST_NON_MEMBER + i64::try_from(number % 40).unwrap_or(0))
    }

    /// Where a server listens.
    pub fn address(id: ServerId, plane: Plane) -> HostPort {
        let port = match plane {
            Plane::Election => ELECTION_PORT,
            Plane::Quorum => QUORUM_PORT,
        };
        HostPort { host: format!("10.0.0.{}", id.0), port }
    }

    /// Which server listens at an address; none if no server of the simulated world does.
    pub fn at(address: &HostPort, plane: Plane) -> Option<ServerId> {
        let id: u8 = address.host.strip_prefix("10.0.0.")?.parse().ok()?;
        let id = ServerId(i64::from(id));
        (Self::address(id, plane) == *address).then_some(id)
    }

    /// The membership that every server is configured with.
    ///
    /// # Errors
    ///
    /// If this is no ensemble, say without a voter.
    pub fn membership(&self) -> Result<Membership, MembershipError> {
        let member = |member: &SimMember| Self::line_of(member.id, member.voter);
        let mut groups: BTreeMap<i64, Vec<ServerId>> = BTreeMap::new();
        let mut weights = Vec::new();
        if self.hierarchical {
            for member in self.members.iter().filter(|member| member.voter) {
                groups.entry(member.group).or_default().push(member.id);
                weights.push((member.id, member.weight));
            }
        }
        Membership::build(self.members.iter().map(member), groups, weights, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pieces of arithmetic written apart say the same of every set of servers.
    #[test]
    fn the_core_counts_quorums_as_the_rule_says() {
        for ensemble in [
            Ensemble::majority(3),
            Ensemble::majority(4).with_observers([9]),
            Ensemble::hierarchical(&[&[(1, 1), (2, 1), (3, 1)], &[(4, 1), (5, 2)], &[(6, 0)]]),
            Ensemble::hierarchical(&[&[(1, 3), (2, 1)], &[(3, 1), (4, 1), (5, 1)], &[(6, 2)]]),
        ] {
            let quorum = ensemble.membership().unwrap().quorum();
            for set in 0u32..1 << 10 {
                let has = |id: ServerId| set >> id.0 & 1 == 1;
                let expected = quorum.is_quorum(ensemble.ids().filter(|id| has(*id)));
                assert_eq!(ensemble.is_quorum(has), expected, "{set:b} of {ensemble:?}");
            }
        }
    }

    #[test]
    fn addresses_lead_back_to_their_servers() {
        for plane in [Plane::Election, Plane::Quorum] {
            let address = Ensemble::address(ServerId(7), plane);
            assert_eq!(Ensemble::at(&address, plane), Some(ServerId(7)));
        }
        assert_eq!(
            Ensemble::at(&Ensemble::address(ServerId(7), Plane::Quorum), Plane::Election),
            None
        );
    }
}
