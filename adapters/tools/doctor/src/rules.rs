//! The one table of rules. Each is a pure function of the facts; what it says beside is told by `--rules` and `--explain`.

mod addresses;
mod alike;
mod certificates;
mod disk;
mod exposed;
mod identity;
mod links;
mod live;
mod load;
mod logs;
mod machine;
mod security;
mod settings;
mod steps;
mod stores;
mod versions;
mod voters;

pub use self::exposed::is_public;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::rule::Rule;

/// All rules, in the order in which they are told.
pub static RULES: &[&[Rule]] = &[
    identity::RULES,
    alike::RULES,
    addresses::RULES,
    voters::RULES,
    settings::RULES,
    steps::RULES,
    security::RULES,
    stores::RULES,
    certificates::RULES,
    exposed::RULES,
    live::RULES,
    load::RULES,
    links::RULES,
    versions::RULES,
    disk::RULES,
    machine::RULES,
    logs::RULES,
];

/// All rules in a row.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().flatten()
}

/// A rule by its name.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id == id)
}

/// All that the rules find, each finding by itself.
pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules() {
        let found = (rule.check)(facts).into_iter().chain(logs::found_by(rule, facts));
        findings.extend(found.map(|found| Finding {
            rule: rule.id,
            level: found.level,
            subject: found.subject,
            finding: found.what,
            evidence: found.evidence,
            why: rule.why,
            todo: if found.todo.is_empty() { vec![rule.todo.to_owned()] } else { found.todo },
            sources: rule.sources,
            explains: Vec::new(),
        }));
    }
    findings
}
