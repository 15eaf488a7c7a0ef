//! Who takes part, as bits: small enough to be asked for, and compared, in every state.

use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership};
use quorate_sim::Ensemble;

/// Voters and observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// Who votes: a bit for each server, by its number.
    pub voters: u8,
    /// Who observes.
    pub observers: u8,
}

impl Members {
    /// These voters and these observers, by their ids.
    pub fn of(voters: &[i64], observers: &[i64]) -> Self {
        let bits = |ids: &[i64]| ids.iter().fold(0, |all, id| all | 1 << (id - 1));
        Self { voters: bits(voters), observers: bits(observers) }
    }

    /// The membership.
    pub fn membership(self, version: i64) -> Membership {
        let among = |bits: u8| move |id: &i64| bits >> (id - 1) & 1 == 1;
        let all = (1..=8).filter(among(self.voters | self.observers));
        let member = |id: i64| Ensemble::line_of(ServerId(id), among(self.voters)(&id));
        let members: Vec<Member> = all.map(member).collect();
        Membership::build(members, [], [], version).expect("an ensemble")
    }
}

/// Who votes in a membership.
pub fn voters(membership: &Membership) -> u8 {
    let voters = membership.participants().map(|member| member.id.0);
    voters.fold(0, |all, id| all | 1 << (id - 1))
}

/// Whether these are a majority of each of two sets of voters.
pub fn is_majority(of: u8, both: [u8; 2]) -> bool {
    both.into_iter().all(|voters| 2 * (of & voters).count_ones() > voters.count_ones())
}
