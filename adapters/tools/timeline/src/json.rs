//! A timeline as one JSON object: for programs, and for a picture of one's own.

use serde_json::{Value, json};

use crate::order::Order;
use crate::view::View;
use crate::words::{story, thing};

/// Everything, as one object.
pub(crate) fn json(view: &View<'_>, order: &Order) -> Value {
    let name = |lane: usize| view.lanes.lanes[lane].id.0;
    let lane_of = view.lanes.lane_of_each();
    let event = |at: usize| {
        let event = &view.lanes.events[at];
        let (what, why) = event.what.words();
        json!({
            "id": at, "server": name(lane_of[at]), "at_us": view.times[at], "logged_us": event.at, "what": what, "why": why,
            "log": view.logs.get(event.log).map(|log| log.name.as_str()), "line": event.line,
        })
    };
    let elections: Vec<_> = view
        .elections
        .iter()
        .map(|(number, election)| {
            let phases = election.phases.iter().map(|phase| json!({"phase": phase.name, "us": phase.micros, "from": phase.from, "to": phase.to}));
            let waits = election.waits.iter().map(|wait| json!({
                "server": wait.who.0, "for": wait.whom.0, "what": thing(wait.what), "us": wait.micros, "then_us": wait.then, "until": wait.until, "cause": wait.cause,
            }));
            let words = story(view.lanes, order, election);
            let words = words.iter().map(|claim| json!({"claim": claim.text, "event": claim.event}));
            json!({
                "election": number, "from_us": election.from, "to_us": election.to, "leader": election.leader.map(|id| id.0),
                "round": election.round.map(|round| round.0), "epoch": election.epoch.map(|epoch| epoch.0), "elects": election.elects,
                "phases": phases.collect::<Vec<_>>(), "waits": waits.collect::<Vec<_>>(), "words": words.collect::<Vec<_>>(),
            })
        })
        .collect();
    let clocks: Vec<_> = (0..view.lanes.lanes.len())
        .map(|lane| json!({"server": name(lane), "offset_us": view.clocks.offsets[lane], "tied": view.clocks.tied[lane]}))
        .collect();
    let conflicts: Vec<_> = view
        .clocks
        .conflicts
        .iter()
        .map(|conflict| json!({"cause": event(conflict.link.cause), "effect": event(conflict.link.effect), "by_us": conflict.by}))
        .collect();
    let logs: Vec<_> = view
        .logs
        .iter()
        .map(|log| json!({
            "log": log.name, "lines": log.lines, "too_long": log.damage.huge, "no_text": log.damage.no_text, "half": log.damage.half,
            "not_shown": log.damage.beyond, "of_nobody": log.damage.nobody,
        }))
        .collect();
    let messages: Vec<_> = view
        .links
        .iter()
        .map(|link| json!({"what": thing(link.what), "cause": link.cause, "effect": link.effect}))
        .collect();
    json!({
        "logs": logs, "clocks": clocks, "conflicts": conflicts, "elections": elections,
        "events": view.events.iter().map(|at| event(*at)).collect::<Vec<_>>(), "messages": messages,
    })
}
