//! Judges a condition of a story, and says what is the case where it does not hold.

use quorate_core::input::Plane;
use quorate_core::membership::Membership;
use quorate_core::zxid::{Epoch, Zxid};

use super::Problem;
use super::command::{Being, Condition, Outcome};
use crate::brief::Brief;
use crate::disk::Contents;
use crate::record::Short;

/// Where a condition can be asked.
pub(super) trait Place {
    /// Nothing is said of a server that does not exist.
    ///
    /// # Errors
    ///
    /// If there is no such server.
    fn known(&self, id: i64) -> Result<(), Problem>;

    /// Where a server stands; none while it is down.
    ///
    /// # Errors
    ///
    /// If there is no such server, or it is not real.
    fn brief(&self, id: i64) -> Result<Option<Brief>, Problem>;

    /// What is on its disk.
    ///
    /// # Errors
    ///
    /// If there is no such server, or it is not real.
    fn contents(&self, id: i64) -> Result<&Contents, Problem>;

    /// The last transaction that anybody has delivered.
    fn committed(&self) -> Zxid;

    /// Where all servers are real.
    ///
    /// # Errors
    ///
    /// If they are not.
    fn world(&self) -> Result<&dyn Whole, Problem>;
}

/// A world in which all servers are real.
pub(super) trait Whole {
    /// The number of transactions that a server has applied; none while it is down.
    fn applied(&self, id: i64) -> Option<u64>;

    /// Who leads and serves.
    fn leader(&self) -> Option<i64>;

    /// Whether these, or all, serve under one leader.
    fn is_settled(&self, ids: &[i64]) -> bool;

    /// Whether all have applied everything.
    fn is_level(&self) -> bool;

    /// How many connections join two servers, known to both.
    fn links(&self, a: i64, b: i64, plane: Plane) -> usize;

    /// What became of the last write.
    ///
    /// # Errors
    ///
    /// If there was none.
    fn written(&self) -> Result<Outcome, Problem>;

    /// What became of the last read.
    ///
    /// # Errors
    ///
    /// If there was none.
    fn was_read(&self) -> Result<Outcome, Problem>;
}

/// Whether something is the case, and what is.
///
/// # Errors
///
/// [`Problem::Impossible`] if that cannot be told here.
pub(super) fn look(place: &dyn Place, condition: &Condition) -> Result<(bool, String), Problem> {
    let led = || match place.world().ok().and_then(|world| world.leader()) {
        Some(leader) => format!("{leader} leads"),
        None => "no server leads".to_owned(),
    };
    Ok(match condition {
        Condition::Led(who) => {
            who.map_or(Ok(()), |who| place.known(who))?;
            let leader = place.world()?.leader();
            (leader.is_some() && who.is_none_or(|who| leader == Some(who)), led())
        }
        Condition::NoLeader => (place.world()?.leader().is_none(), led()),
        Condition::Settled(ids) => {
            ids.iter().try_for_each(|id| place.known(*id))?;
            (place.world()?.is_settled(ids), led())
        }
        Condition::Level => {
            (place.world()?.is_level(), "a server has not applied everything".to_owned())
        }
        Condition::Is(id, being) => {
            let brief = place.brief(*id)?;
            (is(brief.as_ref(), *being)?, describe(*id, brief.as_ref()))
        }
        Condition::Follows(id, leader) => {
            place.known(*leader)?;
            follows(*id, *leader, place.brief(*id)?.as_ref())
        }
        Condition::Round(id, round) => {
            let brief = place.brief(*id)?;
            (brief.is_some_and(|brief| brief.round.0 == *round), describe(*id, brief.as_ref()))
        }
        Condition::Votes(id, whom) => {
            place.known(*whom)?;
            let brief = place.brief(*id)?;
            let votes = brief.is_some_and(|brief| brief.vote.leader.0 == *whom);
            (votes, describe(*id, brief.as_ref()))
        }
        Condition::Links(a, b, plane, count) => {
            place.known(*a)?;
            place.known(*b)?;
            let found = place.world()?.links(*a, *b, *plane);
            (found == *count, format!("there are {found}"))
        }
        Condition::LogIs(id, zxids) => has_log(place.contents(*id)?, zxids),
        Condition::LogEnds(id, zxid) => {
            let last = place.contents(*id)?.last();
            (last == *zxid, format!("it ends with {}", Short(last)))
        }
        Condition::Epochs(id, accepted, current) => {
            has_epochs(place.contents(*id)?, *accepted, *current)
        }
        Condition::Applied(id, count) => {
            place.known(*id)?;
            has_applied(*id, *count, place.world()?.applied(*id))
        }
        Condition::Voters(id, ids) => has_voters(place.contents(*id)?.membership.as_ref(), ids),
        Condition::NextVoters(id, ids) => {
            has_voters(place.contents(*id)?.next_membership.as_ref(), ids)
        }
        Condition::Committed(zxid) => {
            let committed = place.committed();
            (committed == *zxid, format!("it is {}", Short(committed)))
        }
        Condition::LastWrite(outcome) => became(*outcome, place.world()?.written()?),
        Condition::LastRead(outcome) => became(*outcome, place.world()?.was_read()?),
        Condition::Nodes(_) | Condition::NodesOf(..) | Condition::Made(_) | Condition::Terms(_) => {
            return Err(Problem::Impossible("there is no store here".to_owned()));
        }
    })
}

/// Whether a server is in this state.
fn is(brief: Option<&Brief>, being: Being) -> Result<bool, Problem> {
    Ok(match being {
        Being::Down => brief.is_none(),
        Being::In(state) => brief.is_some_and(|brief| brief.state == state),
        Being::Serving => brief.is_some_and(|brief| brief.serving),
        Being::NotServing => brief.is_some_and(|brief| !brief.serving),
        Being::Suspended | Being::Waiting | Being::Stopped | Being::Working | Being::Idle => {
            let why = "that can be asked of the candidates of a store, not of servers";
            return Err(Problem::Impossible(why.to_owned()));
        }
    })
}

fn follows(id: i64, leader: i64, brief: Option<&Brief>) -> (bool, String) {
    let follows = |brief: &Brief| brief.leader.is_some_and(|id| id.0 == leader);
    (id != leader && brief.is_some_and(follows), describe(id, brief))
}

fn has_applied(id: i64, count: u64, applied: Option<u64>) -> (bool, String) {
    let found = applied.map_or(format!("{id} is down"), |applied| format!("it is {applied}"));
    (applied == Some(count), found)
}

fn has_log(contents: &Contents, zxids: &[Zxid]) -> (bool, String) {
    let log: Vec<Zxid> = contents.log.iter().map(|txn| txn.zxid).collect();
    let shown: Vec<_> = log.iter().map(|zxid| Short(*zxid).to_string()).collect();
    (log == zxids, format!("it is {}", shown.join(" ")))
}

fn has_epochs(contents: &Contents, accepted: Epoch, current: Epoch) -> (bool, String) {
    let Contents { accepted_epoch, current_epoch, .. } = contents;
    let holds = (*accepted_epoch, *current_epoch) == (accepted, current);
    (holds, format!("accepted {accepted_epoch} current {current_epoch}"))
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
        Outcome::Unknown => "what became of it is unknown".to_owned(),
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
