//! The report, for people: the worst first, each finding in a few lines, and a sentence.

use crate::finding::{Finding, Level};
use crate::report::{NotLooked, Report};

/// How words are made to stand out: as they are, or in colours.
pub type Paint<'a> = &'a dyn Fn(Level, &str) -> String;

/// The text of a report.
pub fn text(report: &Report, paint: Paint<'_>) -> String {
    let mut text = String::new();
    let told = told(report);
    for alike in &told {
        text += &shown(alike, paint);
        text.push('\n');
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
    text + &summary(report, &told)
}

/// What is told: findings that say the same of several servers together.
fn told(report: &Report) -> Vec<Vec<&Finding>> {
    let key = |finding: &Finding| (finding.rule, finding.level, finding.finding.clone());
    let mut told: Vec<Vec<&Finding>> = Vec::new();
    for finding in &report.findings {
        let is_alike = |alike: &&mut Vec<&Finding>| {
            alike.first().is_some_and(|first| key(first) == key(finding))
        };
        match told.iter_mut().find(is_alike) {
            Some(alike) => alike.push(finding),
            None => told.push(vec![finding]),
        }
    }
    told
}

/// What is said of some servers alike, in three to eight lines.
fn shown(alike: &[&Finding], paint: Paint<'_>) -> String {
    let Some(finding) = alike.first() else { return String::new() };
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

/// How much was told, and of how many members.
fn summary(report: &Report, told: &[Vec<&Finding>]) -> String {
    let count = |level: Level, what: &str| {
        let is_of = |alike: &&Vec<&Finding>| alike.first().is_some_and(|of| of.level == level);
        let number = told.iter().filter(is_of).count();
        let s = if number == 1 { "" } else { "s" };
        format!("{number} {what}{s}")
    };
    let (answered, members) = report.members;
    format!(
        "{}, {}, {}; looked at {answered} of {members} members\n",
        count(Level::Error, "error"),
        count(Level::Warning, "warning"),
        count(Level::Notice, "notice"),
    )
}

/// So much evidence of a finding is shown.
const EVIDENCE: usize = 3;
/// So many places that were not looked at are.
const PLACES: usize = 20;
