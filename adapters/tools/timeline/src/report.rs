//! A timeline in words: what was read, by what the clocks differ, and each election with its phases and who waited.

use std::fmt::Write as _;

use crate::log::Damage;
use crate::order::Order;
use crate::stamp::{clock, span};
use crate::view::View;
use crate::words::{story, thing};

/// What was read, and what of it could not be.
pub(crate) fn read(view: &View<'_>, beyond: usize) -> Vec<String> {
    let lines: usize = view.logs.iter().map(|log| log.lines).sum();
    let mut told = vec![format!(
        "{} logs of {} servers, {lines} lines, {} events",
        view.logs.len(),
        view.lanes.lanes.len(),
        view.lanes.events.len()
    )];
    for log in view.logs {
        let Damage { huge, no_text, half, beyond, nobody } = log.damage;
        let mut tell = |number: usize, what: &str| {
            if number > 0 {
                told.push(format!("{}: {number} {what}", log.name));
            }
        };
        tell(huge, "lines too long, their beginning was read");
        tell(no_text, "lines with bytes that are no text");
        tell(beyond, "events more than are shown");
        tell(nobody, "events of no known server: say whose log it is, as 2=FILE");
        if half {
            told.push(format!("{}: its last line, {}, has no end", log.name, log.lines));
        }
    }
    if beyond > 0 {
        told.push(format!("{beyond} servers more than are shown"));
    }
    told.extend(clocks(view));
    told
}

/// The clocks, and what contradicts itself.
pub(crate) fn clocks(view: &View<'_>) -> Vec<String> {
    let mut told = Vec::new();
    let reference = view.lanes.lanes.get(view.clocks.reference).map(|lane| lane.id);
    for (at, lane) in view.lanes.lanes.iter().enumerate() {
        let offset = view.clocks.offsets[at];
        if !view.clocks.tied[at] {
            told.push(format!(
                "clock of {}: nothing ties it to the others, taken as it is",
                lane.id
            ));
        } else if let (true, Some(reference)) = (offset != 0, reference) {
            let which = if offset > 0 { "behind" } else { "ahead of" };
            told.push(format!(
                "clock of {}: {} {which} that of {reference}, corrected",
                lane.id,
                span(offset.abs())
            ));
        }
    }
    if told.is_empty() && view.lanes.lanes.len() > 1 {
        told.push("clocks: no cause is after its effect, none is corrected".to_owned());
    }
    for conflict in view.clocks.conflicts.iter().take(CONFLICTS_MAX) {
        told.push(format!(
            "conflict: {} before {} does not fit the others, by {}",
            view.place(conflict.link.cause),
            view.place(conflict.link.effect),
            span(conflict.by)
        ));
    }
    let more = view.clocks.conflicts.len().saturating_sub(CONFLICTS_MAX);
    if more > 0 {
        told.push(format!("conflict: {more} more"));
    }
    told
}

/// So many are told one by one.
const CONFLICTS_MAX: usize = 10;

/// Everything, as text.
pub(crate) fn text(view: &View<'_>, order: &Order, beyond: usize) -> String {
    let mut out = read(view, beyond).join("\n");
    out.push('\n');
    for (number, election) in &view.elections {
        let _ = write!(out, "\nelection {number}, {}: ", clock(election.from));
        let claims = story(view.lanes, order, election);
        let claims: Vec<_> = claims
            .iter()
            .map(|claim| match claim.event {
                Some(event) => format!("{} [{}]", claim.text, view.place(event)),
                None => claim.text.clone(),
            })
            .collect();
        let _ = writeln!(out, "{}.", claims.join("; "));
        for phase in &election.phases {
            let (from, to) = (view.place(phase.from), view.place(phase.to));
            let _ = writeln!(out, "  {:<18}{:>12}  {from} to {to}", phase.name, span(phase.micros));
        }
        for wait in &election.waits {
            let (what, whom) = (thing(wait.what), wait.whom);
            let (micros, then) = (span(wait.micros), span(wait.then));
            let place = view.place(wait.until);
            let _ = writeln!(
                out,
                "  {} waited for {:<24}{micros:>12}, then took {then}  {place}",
                wait.who,
                format!("{what} of {whom}")
            );
        }
    }
    if view.elections.is_empty() {
        out += "\nno election\n";
    }
    out
}
