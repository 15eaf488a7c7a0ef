//! Whether something is the case, and what is if it is not.

use quorate_core::input::Plane;
use quorate_core::membership::Membership;
use quorate_core::zxid::Zxid;

use super::Problem;
use super::command::{Being, Condition, Outcome};
use crate::disk::Contents;
use crate::record::Short;
use crate::world::Brief;

/// Whoever can be asked.
pub(super) trait Place {
    /// Where a server stands; none while it is down.
    fn brief(&self, id: i64) -> Option<Brief>;

    /// What is on its disk.
    fn contents(&self, id: i64) -> Option<&Contents>;

    /// The number of transactions that it has applied.
    fn applied(&self, id: i64) -> Option<u64>;

    /// The last transaction that anybody has delivered.
    fn committed(&self) -> Zxid;

    /// Who leads and serves.
    fn leader(&self) -> Option<i64>;

    /// Whether these, or all, serve under one leader.
    fn is_settled(&self, ids: &[i64]) -> bool;

    /// Whether all have applied everything.
    fn is_level(&self) -> bool;

    /// How many connections join two servers, known to both.
    fn links(&self, a: i64, b: i64, plane: Plane) -> usize;

    /// What became of the last write, or read.
    fn outcome(&self, write: bool) -> Outcome;
}

/// Tests a condition; an error says what is the case instead.
///
/// # Errors
///
/// [`Problem::Otherwise`] if it does not hold.
pub(super) fn test(place: &dyn Place, condition: &Condition, said: &str) -> Result<(), Problem> {
    let (holds, found) = look(place, condition);
    if holds {
        return Ok(());
    }
    Err(Problem::Otherwise { expected: format!("`{said}`"), found })
}

fn look(place: &dyn Place, condition: &Condition) -> (bool, String) {
    let brief = |id: &i64| place.brief(*id);
    let told = |id: &i64| describe(*id, place.brief(*id).as_ref());
    let led = || match place.leader() {
        Some(leader) => format!("{leader} leads"),
        None => "nobody leads".to_owned(),
    };
    match condition {
        Condition::Led(who) => {
            let leader = place.leader();
            (leader.is_some() && who.is_none_or(|who| leader == Some(who)), led())
        }
        Condition::NoLeader => (place.leader().is_none(), led()),
        Condition::Settled(ids) => (place.is_settled(ids), led()),
        Condition::Level => (place.is_level(), "somebody has not applied everything".to_owned()),
        Condition::Is(id, being) => {
            let holds = match (being, brief(id)) {
                (Being::Down, None) => true,
                (Being::In(state), Some(brief)) => brief.state == *state,
                (Being::Serving, Some(brief)) => brief.serving,
                (Being::NotServing, Some(brief)) => !brief.serving,
                (Being::Down, Some(_))
                | (Being::In(_) | Being::Serving | Being::NotServing, None)
                | (
                    Being::Suspended
                    | Being::Waiting
                    | Being::Stopped
                    | Being::Working
                    | Being::Idle,
                    _,
                ) => false,
            };
            (holds, told(id))
        }
        Condition::Follows(id, leader) => {
            let follows = |brief: &Brief| brief.leader.is_some_and(|id| id.0 == *leader);
            (id != leader && brief(id).as_ref().is_some_and(follows), told(id))
        }
        Condition::Round(id, round) => {
            (brief(id).is_some_and(|brief| brief.round.0 == *round), told(id))
        }
        Condition::Votes(id, whom) => {
            (brief(id).is_some_and(|brief| brief.vote.leader.0 == *whom), told(id))
        }
        Condition::Links(a, b, plane, count) => {
            let found = place.links(*a, *b, *plane);
            (found == *count, format!("there are {found}"))
        }
        Condition::LogIs(id, zxids) => {
            let log: Vec<Zxid> = place
                .contents(*id)
                .map(|contents| contents.log.iter().map(|txn| txn.zxid).collect())
                .unwrap_or_default();
            let shown: Vec<_> = log.iter().map(|zxid| Short(*zxid).to_string()).collect();
            (log == *zxids, format!("it is {}", shown.join(" ")))
        }
        Condition::LogEnds(id, zxid) => {
            let last = place.contents(*id).map_or(Zxid::ZERO, Contents::last);
            (last == *zxid, format!("it ends with {}", Short(last)))
        }
        Condition::Epochs(id, accepted, current) => {
            let epochs = place.contents(*id).map(|c| (c.accepted_epoch, c.current_epoch));
            let found = epochs.map_or("nothing".to_owned(), |(accepted, current)| {
                format!("accepted {accepted} current {current}")
            });
            (epochs == Some((*accepted, *current)), found)
        }
        Condition::Applied(id, count) => {
            let applied = place.applied(*id);
            (applied == Some(*count), format!("it is {}", applied.unwrap_or(0)))
        }
        Condition::Voters(id, ids) => {
            let found = place.contents(*id).and_then(|contents| contents.membership.as_ref());
            has_voters(found, ids)
        }
        Condition::NextVoters(id, ids) => {
            let found = place.contents(*id).and_then(|contents| contents.next_membership.as_ref());
            has_voters(found, ids)
        }
        Condition::Committed(zxid) => {
            let committed = place.committed();
            (committed == *zxid, format!("it is {}", Short(committed)))
        }
        Condition::LastWrite(outcome) => became(*outcome, place.outcome(true)),
        Condition::LastRead(outcome) => became(*outcome, place.outcome(false)),
        Condition::Nodes(_) | Condition::NodesOf(..) | Condition::Made(_) | Condition::Terms(_) => {
            (false, "there is no store here".to_owned())
        }
    }
}

fn has_voters(found: Option<&Membership>, ids: &[i64]) -> (bool, String) {
    let voters = found.into_iter().flat_map(Membership::participants);
    let voters: Vec<i64> = voters.map(|member| member.id.0).collect();
    (voters == ids, format!("it is {voters:?}"))
}

fn became(expected: Outcome, found: Outcome) -> (bool, String) {
    let holds = match (expected, found) {
        (Outcome::Done(None), Outcome::Done(_)) => true,
        (expected, found) => expected == found,
    };
    let words = match found {
        Outcome::Done(Some(zxid)) => format!("it is done, as {}", Short(zxid)),
        Outcome::Done(None) => "it is done".to_owned(),
        Outcome::Accepted => "it is accepted".to_owned(),
        Outcome::Refused => "it is refused".to_owned(),
        Outcome::Lost => "it is lost".to_owned(),
        Outcome::Open => "nothing is known of it".to_owned(),
    };
    (holds, words)
}

fn describe(id: i64, brief: Option<&Brief>) -> String {
    let Some(Brief { state, leader, round, vote, serving, .. }) = brief else {
        return format!("{id} is down");
    };
    let under = leader.map_or(String::new(), |leader| format!(" under {leader}"));
    let serves = if *serving { ", serving" } else { "" };
    format!("{id} is {state}{under}{serves}, in round {round}, votes {}", vote.leader)
}
