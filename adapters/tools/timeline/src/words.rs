//! An election in words, each claim with the line that it comes from.

use quorate_core::id::ServerId;
use quorate_core::vote::ServerState;

use crate::causes::Message;
use crate::elections::{Election, Part, Wait};
use crate::event::What;
use crate::lanes::Lanes;
use crate::order::Order;
use crate::stamp::{clock, span};

/// What is claimed, and the event that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) text: String,
    pub(crate) event: Option<usize>,
}

/// The story of an election, to be joined by semicolons.
pub(crate) fn story(lanes: &Lanes, order: &Order, election: &Election) -> Vec<Claim> {
    let mut claims = vec![beginning(lanes, order, election)];
    if !election.elects {
        claims.extend(election.parts.iter().map(|part| joined(lanes, order, part)));
        return claims;
    }
    let Some(leader) = election.leader else { return claims };
    let part = election.parts.iter().find(|part| part.id == leader);
    if let Some(decides) = part.and_then(|part| part.decides) {
        claims.push(agreed(lanes, election, leader, decides));
    }
    let measured = |name| election.phases.iter().find(|phase| phase.name == name);
    let slowest = election.waits.iter().max_by_key(|wait| wait.micros);
    claims.extend(slowest.filter(|wait| wait.micros >= 1000).map(waited));
    // `FastLeaderElection.finalizeWait`.
    let idle = |wait: &&Wait| {
        wait.what == Message::Vote && wait.then >= 200_000 && lanes.events[wait.until].late == 0
    };
    claims.extend(election.waits.iter().find(idle).map(|wait| Claim {
        text: format!(
            "{} had all votes {} before it decided, of which ZooKeeper waits 200 ms for better ones",
            wait.who,
            span(wait.then)
        ),
        event: Some(wait.until),
    }));
    match measured("without a leader") {
        Some(gap) => claims.push(Claim {
            text: format!("clients waited {}", span(gap.micros)),
            event: Some(gap.to),
        }),
        None => claims.push(Claim {
            text: format!("{leader} did not come to serve"),
            event: part.and_then(|part| part.decides),
        }),
    }
    for part in election.parts.iter().filter(|part| part.decides.is_none()) {
        claims
            .push(Claim { text: format!("{} decided nothing", part.id), event: Some(part.looks) });
    }
    claims
}

fn beginning(lanes: &Lanes, order: &Order, election: &Election) -> Claim {
    let at = |event: usize| clock(order.times[event]);
    if let Some(lost) = election.lost.filter(|_| election.elects) {
        let why = match &lanes.events[lost].what {
            What::Lost { why } | What::State { why, .. } => why.as_str(),
            _ => "",
        };
        let led = election.parts.iter().find_map(|part| leader_before(lanes, part));
        let who = led.map_or_else(|| "the leader".to_owned(), |id| format!("server {id}"));
        return Claim {
            text: format!("{who} was lost at {} ({why})", at(lost)),
            event: Some(lost),
        };
    }
    let first =
        election.parts.iter().map(|part| part.looks).min_by_key(|looks| order.times[*looks]);
    let mut ids: Vec<_> = election.parts.iter().map(|part| part.id).collect();
    ids.sort();
    ids.dedup();
    let when = first.map(at).unwrap_or_default();
    let text = match ids.as_slice() {
        [one] => format!("server {one} looked for a leader from {when} on"),
        many => format!("servers {} looked for a leader from {when} on", list(many)),
    };
    Claim { text, event: first }
}

/// Whom a server had before it looked.
fn leader_before(lanes: &Lanes, part: &Part) -> Option<ServerId> {
    let lane = lanes.lanes.get(lanes.lane(part.id)?)?;
    let mut before = lanes.events[lane.range.start..part.looks].iter().rev();
    before.find_map(|event| match &event.what {
        What::State { to: ServerState::Leading, .. } => Some(Some(part.id)),
        What::State { to: ServerState::Looking, .. } | What::Started => Some(None),
        What::State { leader, .. } => Some(*leader),
        _ => None,
    })?
}

fn agreed(lanes: &Lanes, election: &Election, leader: ServerId, decides: usize) -> Claim {
    let (members, decision) = match &lanes.events[decides].what {
        What::State { members, why, .. } => (members.clone(), why.clone()),
        _ => (Vec::new(), String::new()),
    };
    let took = election
        .phases
        .iter()
        .find(|phase| phase.name == "election")
        .map(|phase| span(phase.micros));
    let took = took.unwrap_or_default();
    // Why the others gave their own votes up.
    let mut reasons =
        election.parts.iter().filter_map(|part| match &lanes.events[part.vote?].what {
            What::Votes { vote, why, says: Some(_), .. } if vote.leader == leader => {
                Some((why.split(", says ").next()?.to_owned(), part.vote))
            }
            _ => None,
        });
    let (why, event) = reasons.next_back().unwrap_or((decision, Some(decides)));
    let text = match members.as_slice() {
        [] => format!("it took {took} to elect {leader}: {why}"),
        members => format!("{} took {took} to agree on {leader} because {why}", list(members)),
    };
    Claim { text, event }
}

fn waited(wait: &Wait) -> Claim {
    let text = format!(
        "{} waited {} for {} of {}",
        wait.who,
        span(wait.micros),
        thing(wait.what),
        wait.whom
    );
    Claim { text, event: Some(wait.until) }
}

/// What was waited for.
pub(crate) fn thing(what: Message) -> &'static str {
    match what {
        Message::Vote => "the vote",
        Message::Connection => "the connection",
        Message::Epoch => "the epoch",
        Message::Promise => "the promise",
        Message::History => "the history",
        Message::Acknowledgement => "the acknowledgement",
        Message::UpToDate => "the word to serve",
    }
}

fn joined(lanes: &Lanes, order: &Order, part: &Part) -> Claim {
    let Some(decides) = part.decides else {
        return Claim { text: format!("{} found none", part.id), event: Some(part.looks) };
    };
    let what = &lanes.events[decides].what;
    let (leader, why) = match what {
        What::State { leader, why, .. } => (*leader, why.as_str()),
        _ => (None, ""),
    };
    let follows = leader.map_or_else(|| "its leader".to_owned(), |id| id.to_string());
    let mut text = format!(
        "{} followed {follows} after {}",
        part.id,
        span(order.times[decides] - order.times[part.looks])
    );
    if !why.is_empty() {
        text += &format!(" because {why}");
    }
    match part.serves {
        Some(serves) => {
            text +=
                &format!(", and served {} later", span(order.times[serves] - order.times[decides]))
        }
        None => text += ", and did not come to serve",
    }
    Claim { text, event: Some(decides) }
}

/// `1`, `1 and 2`, `1, 2 and 3`.
pub(crate) fn list(ids: &[ServerId]) -> String {
    let names: Vec<_> = ids.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
