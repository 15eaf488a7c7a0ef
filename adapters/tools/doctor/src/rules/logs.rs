//! What logs say, by their lines: findings of other rules, and the rules that only logs can show.

use quorate_core::id::ServerId;

use crate::facts::{Facts, Log, LogLine};
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.flapping",
        levels: &[Level::Error, Level::Warning, Level::Notice],
        when: "by the logs three changes of the leader lie within 10 minutes; two are a warning",
        why: "each change of the leader stops the service for a while",
        todo: "look, in this order, at pauses, fsync, syncLimit, clocks, losses of the network; `quorate timeline` shows each",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: flapping,
    },
    Rule {
        id: "live.connections",
        levels: &[Level::Warning],
        when: "a log says that connections of one host were turned away",
        why: "clients behind one address, or one that leaks connections, cannot connect any more",
        todo: "find who does not close its connections; raise maxClientCnxns (60) where many clients share an address",
        sources: &["zookeeperAdmin.md, maxClientCnxns"],
        explains: &[],
        check: |_| Vec::new(),
    },
    Rule {
        id: "live.client-protocol",
        levels: &[Level::Notice],
        when: "a log tells of a packet of a length that is the beginning of HTTP or TLS",
        why: "a probe, browser or TLS client was pointed at the plain client port",
        todo: "point it at the admin port, or at secureClientPort",
        sources: &["NIOServerCnxn.java"],
        explains: &[],
        check: |_| Vec::new(),
    },
    Rule {
        id: "live.sasl-fips",
        levels: &[Level::Warning],
        when: "a log says that DIGEST-MD5 is configured between servers and refused",
        why: "fips-mode, which is on from 3.9.0, forbids DIGEST-MD5: the ensemble never forms",
        todo: "set fips-mode=false, or use Kerberos or TLS between servers",
        sources: &["ZOOKEEPER-4393", "zookeeperAdmin.md, fips-mode"],
        explains: &[],
        check: |_| Vec::new(),
    },
];

/// So long, in microseconds, are changes of the leader counted together.
const WINDOW: i64 = 600_000_000;

/// The first election of a log is no change: who led before is not known.
fn flapping(facts: &Facts) -> Vec<Found> {
    let changes = facts.elected.get(1..).unwrap_or_default();
    let within = |from: usize| {
        let begun = changes.get(from).map_or(0, |(at, _)| *at);
        changes.iter().skip(from).take_while(move |(at, _)| at - begun <= WINDOW)
    };
    let Some(from) = (0..changes.len()).max_by_key(|from| within(*from).count()) else {
        return Vec::new();
    };
    let leaders: Vec<_> = within(from).map(|(_, leader)| leader.to_string()).collect();
    let level = match leaders.len() {
        0 | 1 => return Vec::new(),
        2 => Level::Warning,
        _ => Level::Error,
    };
    let what = format!(
        "{} elections within 10 minutes: of server {}",
        leaders.len(),
        leaders.join(", then of ")
    );
    vec![Found::new(level, Subject::default(), what)]
}

/// What lines of logs mean for a rule. Of sizes the worst level alone is told.
pub(crate) fn found_by(rule: &Rule, facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for log in &facts.logs {
        let mut lines: Vec<&LogLine> = log
            .found
            .iter()
            .filter(|line| line.meaning.rule == rule.id && line.count >= line.meaning.count_min())
            .collect();
        if let Some(worst) = lines.iter().map(|line| line.meaning.level).min() {
            lines.retain(|line| !line.meaning.is_of_size() || line.meaning.level == worst);
        }
        found.extend(lines.into_iter().map(|line| told(log, line)));
    }
    found
}

fn told(log: &Log, line: &LogLine) -> Found {
    let meaning = line.meaning;
    let number = line.number.map_or("?".to_owned(), |number| number.to_string());
    let times = if line.count > 1 { format!(" ({} times)", line.count) } else { String::new() };
    let of = log.id.map_or(String::new(), |id| format!(" of server {id}"));
    let what = format!("the log{of} says: {}{times}", meaning.what.replace("{}", &number));
    let named = line.number.filter(|_| meaning.names_a_server()).map(ServerId);
    let subject = Subject {
        server: named.or(log.id).map(|id| id.0),
        file: Some(log.name.clone().into()),
        line: Some(line.line),
        ..Subject::default()
    };
    Found::new(meaning.level, subject, what)
        .seen(format!("{}:{}", log.name, line.line), &*line.text)
}
