//! The elections in a timeline: who lost whom, who decided when, how long each phase took, and who waited for whom.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState};
use quorate_core::zxid::Epoch;

use crate::causes::{Link, Message};
use crate::event::What;
use crate::lanes::Lanes;
use crate::order::Order;

/// One election, from the first that looked for a leader until the last of them serves. Of one server alone it is a
/// return to a leader that is there.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    /// The first sign and the last event, microseconds since 1970 by the reference.
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) leader: Option<ServerId>,
    pub(crate) round: Option<Round>,
    pub(crate) epoch: Option<Epoch>,
    /// The event with which the leader was lost first, if it was.
    pub(crate) lost: Option<usize>,
    /// Events that the words and the measures come from, by what they are.
    pub(crate) parts: Vec<Part>,
    pub(crate) phases: Vec<Measure>,
    pub(crate) waits: Vec<Wait>,
    /// Whether the leader was elected in it.
    pub(crate) elects: bool,
}

/// A server's part in an election.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) id: ServerId,
    /// When it began to look, what its last vote was, when it decided, when it served.
    pub(crate) looks: usize,
    pub(crate) vote: Option<usize>,
    pub(crate) decides: Option<usize>,
    pub(crate) serves: Option<usize>,
}

/// How long a phase took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) micros: i64,
}

/// Who waited for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) who: ServerId,
    pub(crate) whom: ServerId,
    /// What was the last that it needed.
    pub(crate) what: Message,
    /// The event that it could do then.
    pub(crate) until: usize,
    pub(crate) cause: usize,
    /// How long, from the step before it on its own server until the cause.
    pub(crate) micros: i64,
    /// How long it then took until the event itself.
    pub(crate) then: i64,
}

/// All elections, in order.
pub(crate) fn elections(lanes: &Lanes, order: &Order) -> Vec<Election> {
    let mut parts: Vec<Part> =
        lanes.lanes.iter().flat_map(|lane| parts_of(lanes, lane.id, lane.range.clone())).collect();
    let first = |part: &Part| order.times[part.looks];
    let last = |part: &Part| {
        let end = part.serves.or(part.decides).or(part.vote).unwrap_or(part.looks);
        order.times[end]
    };
    parts.sort_by_key(first);
    let mut groups: Vec<(i64, Vec<Part>)> = Vec::new();
    for part in parts {
        match groups.last_mut().filter(|(end, _)| first(&part) <= *end) {
            Some((end, group)) => {
                *end = (*end).max(last(&part));
                group.push(part);
            }
            None => groups.push((last(&part), vec![part])),
        }
    }
    groups.into_iter().map(|(_, parts)| election(lanes, order, parts)).collect()
}

fn parts_of(lanes: &Lanes, id: ServerId, range: std::ops::Range<usize>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open = false;
    for at in range {
        let what = &lanes.events[at].what;
        let looks = match what {
            What::State { to, .. } => *to == ServerState::Looking,
            What::Started => false,
            // Of ours, that begins without a change of state.
            What::Votes { .. } | What::Begins { .. } => !open,
            _ => false,
        };
        if looks {
            parts.push(Part { id, looks: at, vote: None, decides: None, serves: None });
            open = true;
        }
        let Some(part) = parts.last_mut().filter(|_| open) else { continue };
        match what {
            What::Votes { .. } if part.decides.is_none() => part.vote = Some(at),
            What::State { to, .. } if *to != ServerState::Looking => {
                part.decides = part.decides.or(Some(at))
            }
            What::Phase { to: Phase::Broadcast, .. } | What::UpToDate | What::Quorum { .. }
                if part.decides.is_some() =>
            {
                part.serves = Some(at);
                open = false;
            }
            What::Started | What::Stopped if !looks => open = false,
            _ => {}
        }
    }
    parts
}

fn election(lanes: &Lanes, order: &Order, parts: Vec<Part>) -> Election {
    let what = |at: usize| &lanes.events[at].what;
    let leads = |part: &&Part| {
        part.decides
            .is_some_and(|at| matches!(what(at), What::State { to: ServerState::Leading, .. }))
    };
    // Those that did not serve were not the one.
    let by = parts.iter().filter(leads).max_by_key(|part| (part.serves.is_some(), part.decides));
    let elects = by.is_some();
    let follows = |part: &Part| match what(part.decides?) {
        What::State { leader, .. } => *leader,
        _ => None,
    };
    let leader = by.map(|part| part.id).or_else(|| parts.iter().rev().find_map(follows));
    let round = by.or(parts.last()).and_then(|part| match what(part.vote?) {
        What::Votes { round, .. } => Some(*round),
        _ => None,
    });
    let end = |part: &Part| part.serves.or(part.decides).or(part.vote).unwrap_or(part.looks);
    let to = parts.iter().map(|part| order.times[end(part)]).max().unwrap_or(0);
    let lost = parts.iter().filter_map(|part| loss(lanes, part)).min_by_key(|at| order.times[*at]);
    let from = parts
        .iter()
        .map(|part| part.looks)
        .chain(lost)
        .map(|at| order.times[at])
        .min()
        .unwrap_or(0);
    let epoch = by.and_then(|part| epoch_of(lanes, part));
    let phases = by.map(|part| measures(lanes, order, &parts, part, lost)).unwrap_or_default();
    let waits = waits(lanes, order, &parts);
    Election { from, to, leader, round, epoch, lost, parts, phases, waits, elects }
}

/// The event with which a server lost its leader: that in which it said so, before it looked.
fn loss(lanes: &Lanes, part: &Part) -> Option<usize> {
    let lane = lanes.lanes.get(lanes.lane(part.id)?)?;
    let before = lane.range.start..part.looks;
    let said = before
        .rev()
        .take(16)
        .find(|at| matches!(lanes.events[*at].what, What::Lost { .. } | What::State { .. }));
    let said = said.filter(|at| matches!(lanes.events[*at].what, What::Lost { .. }));
    let own = matches!(&lanes.events[part.looks].what, What::State { why, .. } if !why.is_empty());
    said.or(own.then_some(part.looks))
}

fn epoch_of(lanes: &Lanes, leader: &Part) -> Option<Epoch> {
    let end = leader.serves?;
    (leader.decides?..=end).rev().find_map(|at| match lanes.events[at].what {
        What::Promised { epoch, .. } => Some(epoch),
        What::Quorum { epoch, .. } => epoch,
        _ => None,
    })
}

/// What each phase took, on the leader; the detection on those that lost one.
fn measures(
    lanes: &Lanes,
    order: &Order,
    parts: &[Part],
    leader: &Part,
    lost: Option<usize>,
) -> Vec<Measure> {
    let mut found = Vec::new();
    let mut measure = |name, from: Option<usize>, to: Option<usize>| {
        if let (Some(from), Some(to)) = (from, to) {
            found.push(Measure { name, from, to, micros: order.times[to] - order.times[from] });
        }
    };
    let first = parts.iter().map(|part| part.looks).min_by_key(|at| order.times[*at]);
    let decided = leader.decides;
    let lane = lanes.lane(leader.id).and_then(|at| lanes.lanes.get(at));
    let end = lane.map_or(0, |lane| lane.range.end);
    let first_of = |is: &dyn Fn(&What) -> bool| {
        (decided?..end).take(4096).find(|at| is(&lanes.events[*at].what))
    };
    let synchronises =
        first_of(&|what| matches!(what, What::Phase { to: Phase::Synchronization, .. }));
    // All that lost it look, or those of them that a decision needed.
    if lost.is_some() {
        let needed = parts.iter().filter(|part| part.decides.is_some());
        let last = needed.map(|part| part.looks).max_by_key(|at| order.times[*at]);
        measure(
            "detection",
            lost,
            last.filter(|last| decided.is_some_and(|at| order.times[*last] <= order.times[at])),
        );
    }
    measure("election", first, decided);
    measure(
        "discovery",
        decided,
        synchronises.filter(|at| leader.serves.is_some_and(|end| *at <= end)),
    );
    measure("synchronisation", synchronises.or(decided), leader.serves);
    let epoch = epoch_of(lanes, leader);
    let wrote =
        first_of(&|what| matches!(what, What::Wrote { zxid } if Some(zxid.epoch()) == epoch));
    measure("first write", leader.serves, wrote);
    measure("without a leader", lost.or(first), leader.serves);
    found
}

/// For each event of the election that needed others: the last of them that came.
fn waits(lanes: &Lanes, order: &Order, parts: &[Part]) -> Vec<Wait> {
    let lane_of = lanes.lane_of_each();
    let mut last: BTreeMap<usize, Link> = BTreeMap::new();
    let decided = |at: usize| {
        parts.iter().any(|part| {
            part.looks <= at && at <= part.serves.or(part.decides).unwrap_or(part.looks)
        })
    };
    for link in order.links.iter().filter(|link| decided(link.effect)) {
        let needed = matches!(
            lanes.events[link.effect].what,
            What::State { .. }
                | What::Promised { .. }
                | What::Phase { .. }
                | What::Quorum { .. }
                | What::UpToDate
        );
        if needed {
            let entry = last.entry(link.effect).or_insert(*link);
            if order.times[link.cause] > order.times[entry.cause] {
                *entry = *link;
            }
        }
    }
    let mut found: Vec<Wait> = last
        .into_iter()
        .filter_map(|(until, link)| {
            let lane = &lanes.lanes[lane_of[until]];
            let before =
                (lane.range.start..until).rev().find(|at| is_step(&lanes.events[*at].what))?;
            let [before, cause, end] = [before, link.cause, until].map(|at| order.times[at]);
            (cause > before).then(|| Wait {
                who: lane.id,
                whom: lanes.lanes[lane_of[link.cause]].id,
                what: link.what,
                until,
                cause: link.cause,
                micros: cause - before,
                then: end - cause,
            })
        })
        .collect();
    found.sort_by_key(|wait| (order.times[wait.until], wait.until));
    found
}

/// What a server does itself: not what it hears, nor what it writes about others.
fn is_step(what: &What) -> bool {
    matches!(
        what,
        What::Begins { .. }
            | What::Votes { .. }
            | What::State { .. }
            | What::Phase { .. }
            | What::Promised { .. }
            | What::TookOver { .. }
            | What::Quorum { .. }
    )
}
