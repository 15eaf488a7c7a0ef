//! Rules of the stores of keys on this machine: whether they can be read, by whom, and how long their certificates hold.

use crate::facts::{Facts, Held, Member, Stores};
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;
use crate::words::Words;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.tls-store",
        levels: &[Level::Error],
        when: "a store for links between servers cannot be read as its server would, a password file is missing, the key is not \
               that of the certificate, or a certificate of the own chain does not hold yet",
        why: "the server does not start, or no peer links with it",
        todo: "`quorate tls check ZOO.CFG` says all that is in the stores; correct the path, the password or the store",
        sources: &["zookeeperAdmin.md, \"Quorum TLS\""],
        explains: &[],
        check: tls_store,
    },
    Rule {
        id: "cfg.tls-java-cannot-read",
        levels: &[Level::Warning, Level::Notice],
        when: "a store is read by servers of ours and would not be, or not all of it, by ZooKeeper's; a notice where no member is \
               known to be one",
        why: "the same files on a server in Java keep it out, as they do when one goes back to it",
        todo: "convert the store, with the command in the finding",
        sources: &["zookeeperAdmin.md, \"Quorum TLS\"", "PEMFileLoader.java"],
        explains: &[],
        check: java_cannot_read,
    },
    Rule {
        id: "cfg.secret-mode",
        levels: &[Level::Warning],
        when: "a key store, a file with a password or a JAAS file may be read by every user of this machine",
        why: "each of them can be this server",
        todo: "give it to the user of the server, and take the rights of others away: chmod o= FILE",
        sources: &["zookeeperAdmin.md, \"Quorum TLS\""],
        explains: &[],
        check: secret_mode,
    },
    Rule {
        id: "live.tls-expired",
        levels: &[Level::Error, Level::Warning],
        when: "a certificate of the chain of a server here, or of one that was looked at with --tls, has ended; a warning for one in its trust store, or where a log says that \
               one has",
        why: "links that are up stay, and none is made any more: the ensemble ends with the next election",
        todo: "put a new certificate in its place, on all servers whose certificate ends then",
        sources: &["https://github.com/apache/pulsar-helm-chart/issues/285"],
        explains: &["live.tls-chain"],
        check: expired,
    },
    Rule {
        id: "live.tls-expiring",
        levels: &[Level::Error, Level::Warning],
        when: "a certificate in a store here, or that a server shows, ends within 30 days and has a third of its time left or less; an error for one of a \
               server's own chain within 3 days and a tenth",
        why: "links that are up stay when it has ended, and none is made any more: the ensemble ends with the next election",
        todo: "put a new certificate in its place; ours take it up by themselves, ZooKeeper with sslQuorumReloadCertFiles=true \
               or when it is restarted",
        sources: &["https://github.com/apache/pulsar-helm-chart/issues/359"],
        explains: &[],
        check: expiring,
    },
];

fn subject(stores: &Stores) -> Subject {
    Subject::file(&stores.file, stores.id)
}

fn tls_store(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for stores in &facts.stores {
        let problems = stores.problems.iter();
        found.extend(problems.map(|problem| Found::error(subject(stores), problem)));
        let not_yet = |held: &&Held| facts.now.is_some_and(|now| now < held.from);
        found.extend(stores.own.iter().filter(not_yet).map(|held| {
            let what = format!("the certificate of {} does not hold yet", held.subject);
            Found::error(subject(stores), what).todo("wait, or set the clock of this machine right")
        }));
    }
    found
}

fn java_cannot_read(facts: &Facts) -> Vec<Found> {
    let mut answered = facts.members.iter().filter_map(Member::words);
    let is_javas = |words: &Words| words.version.is_some() && !words.is_ours();
    let level = if answered.any(is_javas) { Level::Warning } else { Level::Notice };
    let each = facts
        .stores
        .iter()
        .flat_map(|stores| stores.java_cannot.iter().map(move |what| (stores, what)));
    each.map(|(stores, what)| Found::new(level, subject(stores), what)).collect()
}

fn secret_mode(facts: &Facts) -> Vec<Found> {
    let each = facts.readable.iter().map(|readable| {
        let path = readable.path.display().to_string();
        let what = format!("{path} may be read by all users of this machine");
        let subject = Subject::file(&readable.file, readable.id).key(&readable.key);
        Found::warning(subject, what)
            .seen(&path, format!("mode {:03o}", readable.mode & 0o777))
            .todo(format!("chmod o= {path}"))
    });
    each.collect()
}

fn expired(facts: &Facts) -> Vec<Found> {
    each_certificate(facts, |held, is_own, left| {
        let level = if is_own { Level::Error } else { Level::Warning };
        let what = || format!("the certificate of {} ended {} ago", held.subject, days(-left));
        (left < 0).then(|| (level, what()))
    })
}

fn expiring(facts: &Facts) -> Vec<Found> {
    each_certificate(facts, |held, is_own, left| {
        let life = held.to.saturating_sub(held.from);
        // Certificates of hours are replaced by machines: they are measured by their own life.
        let is_within = |days: i64, part: i64| left < days * DAY && left <= life / part;
        let level = match () {
            () if left < 0 => return None,
            () if is_own && is_within(3, 10) => Level::Error,
            () if is_within(30, 3) => Level::Warning,
            () => return None,
        };
        Some((level, format!("the certificate of {} ends in {}", held.subject, days(left))))
    })
}

/// What is said of each certificate, by whether it is of the own chain, and how many seconds it has left.
fn each_certificate(
    facts: &Facts,
    says: impl Fn(&Held, bool, i64) -> Option<(Level, String)>,
) -> Vec<Found> {
    let Some(now) = facts.now else { return Vec::new() };
    let mut found = Vec::new();
    for stores in &facts.stores {
        // An authority may stand in both.
        let trusted = stores.trusted.iter().filter(|held| {
            !stores.own.iter().any(|own| own.subject == held.subject && own.to == held.to)
        });
        let all = stores.own.iter().map(|held| (held, true));
        for (held, is_own) in all.chain(trusted.map(|held| (held, false))) {
            let said = says(held, is_own, held.to.saturating_sub(now));
            let store = if is_own { "key store" } else { "trust store" };
            found.extend(
                said.map(|(level, what)| Found::new(level, subject(stores).key(store), what)),
            );
        }
    }
    for served in &facts.served {
        let of = facts.stores.iter().filter(|stores| stores.id == Some(served.id));
        let known: Vec<_> = of.flat_map(|stores| &stores.own).map(|held| &held.der).collect();
        for held in served.chain.iter().filter(|held| !known.contains(&&held.der)) {
            let said = says(held, true, held.to.saturating_sub(now));
            let subject = Subject::server(served.id).key("as it is served");
            found.extend(said.map(|(level, what)| {
                Found::new(level, subject.clone(), what).seen(&served.address, "a handshake")
            }));
        }
    }
    found
}

const DAY: i64 = 86_400;

/// A time, in days; in hours if it is less than two.
pub(super) fn days(seconds: i64) -> String {
    match seconds {
        seconds if seconds < 2 * DAY => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / DAY),
    }
}
