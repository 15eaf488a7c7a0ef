//! Rules of configuration: how many vote, and with what weight.

use quorate_core::membership::Role;

use crate::facts::Facts;
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.even",
        levels: &[Level::Warning],
        when: "an even number of servers votes, four or more",
        why: "it tolerates no more failures than one voter less, and has one more that can fail",
        todo: "make one of them an observer, or add a voter",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: even,
    },
    Rule {
        id: "cfg.one",
        levels: &[Level::Notice],
        when: "one server votes",
        why: "no failure is tolerated",
        todo: "have three voters where the service must go on when one fails",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: one,
    },
    Rule {
        id: "cfg.two",
        levels: &[Level::Warning],
        when: "two servers vote, without an arbiter (oraclePath)",
        why: "the service stops when either fails: it is less available than one server alone",
        todo: "add a third voter",
        sources: &["zookeeperAdmin.md", "zookeeperOracleQuorums.md"],
        explains: &[],
        check: two,
    },
    Rule {
        id: "cfg.weights-odd",
        levels: &[Level::Warning],
        when: "a group has no weight, or one group decides alone",
        why: "a group without weight counts for nothing: fewer failures are tolerated than the number of servers suggests",
        todo: "give the voters of every group a weight, and have three groups or none",
        sources: &["zookeeperHierarchicalQuorums.md"],
        explains: &[],
        check: weights_odd,
    },
];

fn voters(facts: &Facts) -> Option<usize> {
    let membership = facts.membership().filter(|membership| !membership.is_hierarchical())?;
    Some(membership.participants().count())
}

fn even(facts: &Facts) -> Vec<Found> {
    let many = voters(facts).filter(|voters| *voters >= 4 && voters % 2 == 0);
    let found = many.map(|voters| {
        let what = format!(
            "{voters} voters tolerate {} failure(s), as {} do",
            (voters - 1) / 2,
            voters - 1
        );
        Found::warning(Subject::default(), what)
    });
    found.into_iter().collect()
}

fn one(facts: &Facts) -> Vec<Found> {
    let one = voters(facts).filter(|voters| *voters == 1);
    one.map(|_| Found::notice(Subject::default(), "one voter decides alone")).into_iter().collect()
}

fn two(facts: &Facts) -> Vec<Found> {
    let has_oracle = facts.read_files().any(|(_, cfg)| cfg.oracle_path.is_some());
    let two = voters(facts).filter(|voters| *voters == 2 && !has_oracle);
    two.map(|_| Found::warning(Subject::default(), "there are two voters, and both are needed"))
        .into_iter()
        .collect()
}

fn weights_odd(facts: &Facts) -> Vec<Found> {
    let Some(membership) = facts.membership().filter(|membership| membership.is_hierarchical())
    else {
        return Vec::new();
    };
    let quorum = membership.quorum();
    let text = String::from_utf8_lossy(membership.text()).into_owned();
    let groups: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("group.")?.split_once('='))
        .map(|(group, ids)| {
            let ids = ids.split(':').filter_map(|id| id.parse().ok());
            (group, ids.map(|id| quorum.weight(quorate_core::id::ServerId(id))).sum())
        })
        .collect();
    let with_weight = groups.iter().filter(|(_, weight)| *weight > 0).count();
    let mut found: Vec<_> = groups
        .iter()
        .filter(|(_, weight)| *weight == 0)
        .map(|(group, _)| {
            let what = format!("no voter of group {group} has any weight");
            Found::warning(Subject::default().key(format!("group.{group}")), what)
        })
        .collect();
    let voters = membership.members().iter().filter(|member| member.role == Role::Participant);
    if with_weight == 1 && voters.count() > 1 {
        let what = "all the weight lies in one group, which decides alone";
        found.push(Found::warning(Subject::default().key("group"), what));
    }
    found
}
