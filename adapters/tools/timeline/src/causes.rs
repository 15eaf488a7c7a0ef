//! What was before what on different servers, by what the events carry and never by their times: sender, round and vote of
//! a notification; the epoch and the learner of what follows.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState, Vote};

use crate::event::What;
use crate::lanes::Lanes;
use crate::terms::{Term, terms};

/// One event was before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) cause: usize,
    pub(crate) effect: usize,
    pub(crate) what: Message,
}

/// What went from one server to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Message {
    /// A vote.
    Vote,
    /// A learner's connection.
    Connection,
    /// The leader's epoch.
    Epoch,
    /// The learner's promise.
    Promise,
    /// The history, or its beginning.
    History,
    /// The learner has it.
    Acknowledgement,
    /// The leader serves.
    UpToDate,
}

/// Every match, each once.
pub(crate) fn links(lanes: &Lanes) -> Vec<Link> {
    let mut found = votes(lanes);
    followings(lanes, &mut found);
    let lane_of = lanes.lane_of_each();
    found.retain(|link| lane_of[link.cause] != lane_of[link.effect]);
    found.sort_unstable();
    found.dedup();
    found
}

/// Sender, leader and round of a vote.
type Ballot = (ServerId, ServerId, Round);

/// Votes that were heard, that changed another's vote, or that decided.
fn votes(lanes: &Lanes) -> Vec<Link> {
    let mut cast: BTreeMap<Ballot, Vec<(usize, Vote)>> = BTreeMap::new();
    let mut rounds: BTreeMap<(ServerId, Round), Vec<(usize, Vote)>> = BTreeMap::new();
    for lane in &lanes.lanes {
        for at in lane.range.clone() {
            if let What::Votes { vote, round, .. } = &lanes.events[at].what {
                cast.entry((lane.id, vote.leader, *round)).or_default().push((at, *vote));
                rounds.entry((lane.id, *round)).or_default().push((at, *vote));
            }
        }
    }
    let mut found = Vec::new();
    for lane in &lanes.lanes {
        // A vote is told again and again; its first hearing is the message.
        let mut heard = BTreeMap::new();
        for at in lane.range.clone() {
            let mut link = |cause: Option<usize>| {
                if let Some(cause) = cause {
                    found.push(Link { cause, effect: at, what: Message::Vote });
                }
            };
            match &lanes.events[at].what {
                What::Heard { from, state: ServerState::Looking, vote, round } => {
                    let alike = cast.get(&(*from, vote.leader, *round));
                    let alike = alike.map(|all| {
                        all.iter().filter(|(_, of)| of == vote).copied().collect::<Vec<_>>()
                    });
                    let cause = nearest(lanes, alike.as_ref(), at);
                    if cause.is_some_and(|cause| heard.insert(cause, at).is_none()) {
                        link(cause);
                    }
                }
                What::Votes { vote, round, says: Some(from), .. } => {
                    let same = nearest(lanes, cast.get(&(*from, vote.leader, *round)), at);
                    link(same.or_else(|| nearest(lanes, rounds.get(&(*from, *round)), at)));
                }
                What::State { members, leader, to, .. } if *to != ServerState::Looking => {
                    let Some(leader) = leader.or((*to == ServerState::Leading).then_some(lane.id))
                    else {
                        continue;
                    };
                    let Some(round) = last_round(lanes, lane.range.start, at) else { continue };
                    for member in members {
                        link(nearest(lanes, cast.get(&(*member, leader, round)), at));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The round of the last vote before this event.
pub(crate) fn last_round(lanes: &Lanes, start: usize, at: usize) -> Option<Round> {
    lanes.events[start..at].iter().rev().take(BACK_MAX).find_map(|event| match event.what {
        What::Votes { round, .. } => Some(round),
        _ => None,
    })
}

/// An election has no more events between a vote and what comes of it.
const BACK_MAX: usize = 4096;

/// The one of them, or that whose time is nearest: rounds begin anew when all servers have.
fn nearest(lanes: &Lanes, all: Option<&Vec<(usize, Vote)>>, to: usize) -> Option<usize> {
    let time = lanes.events[to].at;
    let apart = |at: usize| lanes.events[at].at.abs_diff(time);
    all?.iter().map(|(at, _)| *at).min_by_key(|at| apart(*at))
}

/// What learners and their leaders tell of each other, term by term.
fn followings(lanes: &Lanes, found: &mut Vec<Link>) {
    let terms = terms(lanes);
    for leader in terms.iter().filter(|term| term.leads) {
        for lane in &lanes.lanes {
            let mut of: Vec<&Term> = terms
                .iter()
                .filter(|term| term.id == lane.id && !term.leads && term.leader == Some(leader.id))
                .filter(|term| {
                    term.round.is_some()
                        && term.round == leader.round
                        && belongs(lanes, &terms, leader, term)
                })
                .collect();
            of.sort_by_key(|term| term.start);
            let sessions = leader.sessions(lanes, lane.id);
            if of.len() == sessions.len() {
                for (learner, session) in of.iter().zip(&sessions) {
                    session_links(lanes, leader, learner, session, found);
                }
            }
        }
    }
}

/// Of several terms of one leader in one round, as after a restart of all, the nearest is the one.
fn belongs(lanes: &Lanes, terms: &[Term], leader: &Term, learner: &Term) -> bool {
    let apart = |term: &Term| lanes.events[term.start].at.abs_diff(lanes.events[learner.start].at);
    let same = terms
        .iter()
        .filter(|term| term.leads && term.id == leader.id && term.round == leader.round);
    same.min_by_key(|term| apart(term)).is_some_and(|term| term.start == leader.start)
}

/// What one learner and its leader tell of one connection.
fn session_links(
    lanes: &Lanes,
    leader: &Term,
    learner: &Term,
    session: &[usize],
    found: &mut Vec<Link>,
) {
    let in_session =
        |is: &dyn Fn(&What) -> bool| session.iter().copied().find(|at| is(&lanes.events[*at].what));
    let of_leader = |is: &dyn Fn(&What) -> bool| leader.first(lanes, is);
    let of_learner = |is: &dyn Fn(&What) -> bool| learner.first(lanes, is);
    let mut link = |cause: Option<usize>, effect: Option<usize>, what| {
        if let (Some(cause), Some(effect)) = (cause, effect) {
            found.push(Link { cause, effect, what });
        }
    };
    let names = |members: &[ServerId]| members.contains(&learner.id);
    let begins = of_leader(&|what| matches!(what, What::Promised { .. }));
    let counted =
        of_leader(&|what| matches!(what, What::Promised { members, .. } if names(members)));
    let connected = in_session(&|what| matches!(what, What::Connected { .. }));
    let started = Some(learner.start);
    link(started, connected, Message::Connection);
    link(started, counted, Message::Connection);
    let promised = of_learner(&|what| matches!(what, What::Promised { .. }));
    let synchronises =
        of_learner(&|what| matches!(what, What::Phase { to: Phase::Synchronization, .. }));
    link(begins, promised.or(synchronises), Message::Epoch);
    let compared = in_session(&|what| matches!(what, What::Compared { .. }));
    let all_promised = of_leader(
        &|what| matches!(what, What::Phase { to: Phase::Synchronization, members, .. } if names(members)),
    );
    link(promised, compared.or(all_promised), Message::Promise);
    let sync = |what: &What| matches!(what, What::Sync { .. });
    let sends = in_session(&sync).or(compared);
    link(sends, of_learner(&sync), Message::History);
    let took_over = of_learner(&|what| matches!(what, What::TookOver { .. }));
    let synced = in_session(&|what| matches!(what, What::Learner { synced: true, .. }));
    let quorum = of_leader(&|what| match what {
        What::Quorum { members, .. } | What::Phase { to: Phase::Broadcast, members, .. } => {
            names(members)
        }
        _ => false,
    });
    link(took_over, synced, Message::Acknowledgement);
    link(took_over, quorum, Message::Acknowledgement);
    let serves = of_leader(&|what| match what {
        What::Quorum { .. } => true,
        What::Phase { to: Phase::Broadcast, members, .. } => !members.is_empty(),
        _ => false,
    });
    let may_serve = of_learner(&|what| {
        matches!(what, What::UpToDate | What::Phase { to: Phase::Broadcast, .. })
    });
    link(serves, may_serve, Message::UpToDate);
}
