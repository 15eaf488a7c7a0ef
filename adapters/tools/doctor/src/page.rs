//! The report, for people: the worst first, each finding in a few lines, and a sentence.

use crate::finding::{Finding, Level};
use crate::report::{NotLooked, Report};

/// How words are made to stand out: as they are, or in colours.
pub type Paint<'a> = &'a dyn Fn(Level, &str) -> String;

/// The text of a report.
pub fn text(report: &Report, paint: Paint<'_>) -> String {
    let mut text = String::new();
    let mut rest: Vec<&Finding> = report.findings.iter().collect();
    while let Some(first) = rest.first().copied() {
        // What is true of several servers alike is told once.
        let key = |finding: &Finding| (finding.rule, finding.level, finding.finding.clone());
        let is_alike = |other: &&Finding| key(other) == key(first);
        let (alike, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_alike);
        text += &shown(&alike, first, paint);
        text.push('\n');
        rest = others;
    }
    if !report.not_looked_at.is_empty() {
        text += "not looked at\n";
        let shown = report.not_looked_at.iter().take(PLACES);
        shown.for_each(|place| text += &not_looked(place));
        if let Some(more) = report.not_looked_at.len().checked_sub(PLACES).filter(|more| *more > 0)
        {
            text += &format!("  … and {more} more\n");
        }
        text.push('\n');
    }
    text + &summary(report)
}

/// A finding, in three to eight lines.
fn shown(alike: &[&Finding], finding: &Finding, paint: Paint<'_>) -> String {
    let level = finding.level.to_string();
    let head = paint(finding.level, &format!("{level:<8} {}", finding.rule));
    let subjects: Vec<_> = alike.iter().map(|finding| finding.subject.to_string()).collect();
    let mut text = format!("{head}  {}\n  {}\n", subjects.join("; "), finding.finding);
    let evidence = alike.iter().flat_map(|finding| &finding.evidence);
    let seen: Vec<_> = evidence.map(|seen| format!("{}: {}", seen.source, seen.value)).collect();
    for line in seen.iter().take(EVIDENCE) {
        text += &format!("  seen  {line}\n");
    }
    if seen.len() > EVIDENCE {
        text += &format!("        … and {} more (--json has all)\n", seen.len() - EVIDENCE);
    }
    text += &format!("  why   {}\n", finding.why);
    text + &format!("  do    {}\n", finding.todo.join("; "))
}

fn not_looked(place: &NotLooked) -> String {
    let server = place.server.map_or(String::new(), |id| format!(" of server {id}"));
    let address = place.address.as_ref().map_or(String::new(), |at| format!(" ({at})"));
    format!("  {}{server}{address}: {}\n", place.what, place.because)
}

fn summary(report: &Report) -> String {
    let count = |number: usize, what: &str| {
        let s = if number == 1 { "" } else { "s" };
        format!("{number} {what}{s}")
    };
    let all = report.summary;
    let (answered, members) = report.members;
    format!(
        "{}, {}, {}; looked at {answered} of {members} members\n",
        count(all.error, "error"),
        count(all.warning, "warning"),
        count(all.notice, "notice"),
    )
}

/// So much evidence of a finding is shown.
const EVIDENCE: usize = 3;
/// So many places that were not looked at are.
const PLACES: usize = 20;
