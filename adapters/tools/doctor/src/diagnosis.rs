//! From facts to findings: the rules, and then one finding for one cause.

use crate::facts::Facts;
use crate::finding::{Evidence, Finding};
use crate::rules::{check, rule};

/// What is wrong, the worst first. A finding that comes of another is folded under it.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings = fold(check(facts));
    findings.sort_by(|a, b| (a.level, a.rule, &a.subject).cmp(&(b.level, b.rule, &b.subject)));
    findings.dedup_by(|b, a| a.rule == b.rule && a.subject == b.subject && a.finding == b.finding);
    findings
}

/// Whether one finding comes of the other: by the table, or as what a log says of a server that was asked itself.
fn explains(cause: &Finding, effect: &Finding) -> bool {
    let explained = rule(cause.rule).map_or(&[] as &[_], |rule| rule.explains);
    let is_of_one = cause.subject.server.is_none() || cause.subject.server == effect.subject.server;
    let tells_again = cause.rule == effect.rule && cause.rule.starts_with("live.");
    (explained.contains(&effect.rule)
        && cause.level <= effect.level
        && cause.subject.concerns(&effect.subject))
        || (tells_again && is_of_one && cause.level < effect.level)
}

/// Puts each finding that another explains under it, as evidence.
fn fold(findings: Vec<Finding>) -> Vec<Finding> {
    let causes: Vec<Vec<usize>> = findings
        .iter()
        .map(|effect| {
            let of = findings.iter().enumerate().filter(|(_, cause)| explains(cause, effect));
            of.map(|(at, _)| at).collect()
        })
        .collect();
    let mut folded = findings.clone();
    for (at, effect) in findings.iter().enumerate() {
        for cause in roots(&causes, at).into_iter().filter(|cause| *cause != at) {
            if let Some(cause) = folded.get_mut(cause) {
                if cause.rule != effect.rule && !cause.explains.contains(&effect.rule) {
                    cause.explains.push(effect.rule);
                }
                cause.evidence.push(Evidence::new(effect.rule, effect.finding.clone()));
            }
        }
    }
    let mut keep = causes.iter().map(Vec::is_empty);
    folded.retain(|_| keep.next().unwrap_or(true));
    folded
}

/// What is behind a finding in the end; itself, if nothing is. The table of rules has no circle.
fn roots(causes: &[Vec<usize>], at: usize) -> Vec<usize> {
    match causes.get(at) {
        Some(behind) if !behind.is_empty() => {
            let mut roots: Vec<_> = behind.iter().flat_map(|cause| roots(causes, *cause)).collect();
            roots.sort_unstable();
            roots.dedup();
            roots
        }
        Some(_) | None => vec![at],
    }
}
