//! Every rule has a fault that is planted, and sees it: the lists of the other files held against the table.

use std::collections::BTreeSet;

use quorate_doctor::{Facts, Level, diagnose, rule, rules};

use crate::{certificates, configuration, links, live, logs, machine, security};

/// A fault and what must be said of it.
pub(crate) struct Plant {
    /// The rule that must fire.
    pub(crate) rule: &'static str,
    /// How much it must matter.
    pub(crate) level: Level,
    /// A part of the subject, as it is shown.
    pub(crate) at: &'static str,
    /// A part of the sentence.
    pub(crate) says: &'static str,
    pub(crate) facts: fn() -> Facts,
}

pub(crate) const fn plant(
    rule: &'static str,
    level: Level,
    at: &'static str,
    says: &'static str,
    facts: fn() -> Facts,
) -> Plant {
    Plant { rule, level, at, says, facts }
}

fn all() -> impl Iterator<Item = &'static Plant> {
    [
        certificates::PLANTS,
        configuration::PLANTS,
        links::PLANTS,
        live::PLANTS,
        logs::PLANTS,
        machine::PLANTS,
        security::PLANTS,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn every_planted_fault_is_seen_by_its_rule_at_its_place() {
    let mut missed = Vec::new();
    for (nth, plant) in all().enumerate() {
        let findings = diagnose(&(plant.facts)());
        let is_it = |finding: &&quorate_doctor::Finding| {
            finding.rule == plant.rule
                && finding.level == plant.level
                && finding.subject.to_string().contains(plant.at)
                && finding.finding.contains(plant.says)
        };
        if !findings.iter().any(|finding| is_it(&finding)) {
            let told: Vec<_> = findings
                .iter()
                .map(|f| format!("{} {} [{}] {}", f.level, f.rule, f.subject, f.finding))
                .collect();
            missed.push(format!("{nth}: {} was missed; found {told:#?}", plant.rule));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_rule_and_each_of_its_levels_has_a_planted_fault() {
    let planted: BTreeSet<_> = all().map(|plant| (plant.rule, plant.level)).collect();
    let table: BTreeSet<_> =
        rules().flat_map(|rule| rule.levels.iter().map(|level| (rule.id, *level))).collect();
    assert_eq!(planted, table);
}

#[test]
fn the_table_names_each_rule_once_and_explains_only_what_is_in_it_without_a_circle() {
    let mut seen = BTreeSet::new();
    for one in rules() {
        assert!(seen.insert(one.id), "{} stands there twice", one.id);
        assert!(one.levels.is_sorted(), "{}", one.id);
        for text in [one.when, one.why, one.todo] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", one.id);
        }
        assert!(!one.sources.is_empty(), "{}", one.id);
    }
    fn leads_to(from: &str, to: &str, depth: usize) -> bool {
        let explains = rule(from).unwrap_or_else(|| panic!("there is no rule {from}")).explains;
        assert!(depth < 20, "a circle through {from}");
        explains.iter().any(|id| *id == to || leads_to(id, to, depth + 1))
    }
    for one in rules() {
        assert!(!leads_to(one.id, one.id, 0), "{} explains itself", one.id);
    }
}
