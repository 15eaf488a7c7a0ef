//! Rules of the certificates of members, in their stores or as they were served: who would take them, and for whom.

use quorate_core::id::ServerId;

use crate::facts::{Facts, Held, Member};
use crate::finding::{Found, Level, Subject};
use crate::java::Version;
use crate::rule::Rule;
use crate::rules::security::fips_by_default;
use crate::rules::steps::{has_tls, of_ensembles};
use crate::rules::stores::days;
use crate::words::Words;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.tls-mismatch",
        levels: &[Level::Warning],
        when: "a server shows another certificate than its key store has; or a log shows that one of two servers speaks TLS and \
               the other does not",
        why: "a certificate that was not taken up ends unseen; two servers of which one speaks TLS have no link",
        todo: "set sslQuorum alike on all servers; to change it while they serve, use portUnification",
        sources: &["zookeeperAdmin.md, \"Upgrading existing non-TLS cluster with no downtime\""],
        explains: &[],
        check: mismatch,
    },
    Rule {
        id: "live.tls-chain",
        levels: &[Level::Error, Level::Warning],
        when: "a member's certificate has no path to an authority of another member's trust store; a warning where a log says so",
        why: "the two servers have no link",
        todo: "put the authority's certificate into the trust store of every server",
        sources: &["zookeeperAdmin.md, ssl.quorum.trustStore"],
        explains: &[],
        check: chain,
    },
    Rule {
        id: "live.tls-name",
        levels: &[Level::Error, Level::Warning],
        when: "a member's certificate names no host of its server.N line, and another member is one that looks; a warning where \
               none is known to, or where a log says so",
        why: "who looks at names refuses it: the two servers have no link",
        todo: "make certificates with the names and addresses of the server lines",
        sources: &["zookeeperAdmin.md, ssl.quorum.hostnameVerification"],
        explains: &[],
        check: name,
    },
    Rule {
        id: "live.tls-eku",
        levels: &[Level::Error],
        when: "by its extended key usage a member's certificate may only accept, or only dial",
        why: "each server does both: an ensemble of such certificates never forms, and no log says why",
        todo: "make it anew with serverAuth and clientAuth, or without extended key usage",
        sources: &["RFC 5280, 4.2.1.12", "zookeeperAdmin.md, \"Quorum TLS\""],
        explains: &["live.no-leader", "live.left-out"],
        check: usage,
    },
    Rule {
        id: "live.tls-weak",
        levels: &[Level::Warning],
        when: "a certificate of a member's chain is signed with SHA-1 or has a key that is too short; or its file allows TLS 1.2 \
               alone, and all members could 1.3",
        why: "such signatures are forged and such keys found, with money; TLS 1.2 wears its keys, and its links are made anew \
              for it",
        todo: "make the certificate anew, with P-256 or RSA of 2048 bits and SHA-256",
        sources: &["https://shattered.io", "RFC 8446, 5.5"],
        explains: &[],
        check: weak,
    },
    Rule {
        id: "live.tls-shared",
        levels: &[Level::Notice],
        when: "one certificate is several members', or names the hosts of several",
        why: "its holder may be each of them: a server that was taken over is not kept to its own id",
        todo: "give each server a certificate of its own that names its own host; where they share a host, \
               urn:quorate:server:N in it and quorate.ssl.identity=id",
        sources: &["https://github.com/stackabletech/zookeeper-operator/issues/760"],
        explains: &[],
        check: shared,
    },
    Rule {
        id: "live.tls-wildcard-binding",
        levels: &[Level::Notice],
        when: "a wildcard in a member's certificate covers the hosts of several",
        why: "its holder may be each of them: a server that was taken over is not kept to its own id",
        todo: "name the host of its own server.N line in place of the wildcard",
        sources: &[
            "RFC 6125, 7.2",
            "https://github.com/stackabletech/zookeeper-operator/issues/760",
        ],
        explains: &[],
        check: wildcard,
    },
];

/// A member's certificates: as its store here has them, or as it showed them if they are others.
struct Chain<'a> {
    id: Option<ServerId>,
    subject: Subject,
    leaf: &'a Held,
    all: &'a [Held],
}

fn chains(facts: &Facts) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    for stores in &facts.stores {
        let subject = Subject::file(&stores.file, stores.id).key("key store");
        let leaf = stores.own.first();
        chains.extend(leaf.map(|leaf| Chain { id: stores.id, subject, leaf, all: &stores.own }));
    }
    for served in &facts.served {
        let (id, subject) = (Some(served.id), Subject::server(served.id).key("as it is served"));
        let Some(leaf) = served.chain.first() else { continue };
        if !chains.iter().any(|known| known.id == id && known.leaf.der == leaf.der) {
            chains.push(Chain { id, subject, leaf, all: &served.chain });
        }
    }
    chains
}

fn mismatch(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for served in &facts.served {
        let stores = facts.stores.iter().find(|stores| stores.id == Some(served.id));
        let Some(own) = stores.and_then(|stores| stores.own.first()) else { continue };
        let Some(leaf) = served.chain.first().filter(|leaf| leaf.der != own.der) else { continue };
        let what = format!(
            "it shows another certificate of {} than its key store has, of {}",
            leaf.subject, own.subject
        );
        let todo = "restart it; ours take it up by themselves, ZooKeeper with sslQuorumReloadCertFiles=true";
        found.push(
            Found::warning(Subject::server(served.id), what)
                .seen(&served.address, end(facts, leaf))
                .seen("key store", end(facts, own))
                .todo(todo),
        );
    }
    found
}

/// When a certificate ends.
fn end(facts: &Facts, held: &Held) -> String {
    match facts.now.map(|now| held.to.saturating_sub(now)) {
        Some(left) if left < 0 => format!("{}, ended {} ago", held.subject, days(-left)),
        Some(left) => format!("{}, ends in {}", held.subject, days(left)),
        None => held.subject.clone(),
    }
}

fn chain(facts: &Facts) -> Vec<Found> {
    let each = facts.distrusted.iter().map(|distrust| {
        let what =
            format!("server {} does not trust its certificate: {}", distrust.by, distrust.why);
        Found::error(Subject::server(distrust.of), what)
            .seen(&distrust.seen, "its certificates")
            .seen(distrust.file.display(), format!("the trust store of server {}", distrust.by))
    });
    each.collect()
}

/// Whether a member is known to look at names: by what it is, and what its file says.
fn looks_at_names(facts: &Facts, member: &Member) -> bool {
    let file = facts.files.iter().find(|file| file.id == Some(member.id));
    let setting = file.and_then(|file| file.setting("ssl.quorum.hostnameVerification"));
    let is_off = setting.is_some_and(|setting| setting.value.trim().eq_ignore_ascii_case("false"));
    let is_known =
        member.words().is_some_and(|words| words.is_ours() || words.number_of_version().is_some());
    is_known && !is_off && fips_by_default(member, file).is_none()
}

fn name(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for Chain { id, subject, leaf, .. } in chains(facts) {
        let lacks = match id {
            Some(id) if !leaf.members.contains(&id) => format!("no host of server.{id}"),
            None if leaf.members.is_empty() => "no host of any member".to_owned(),
            Some(_) | None => continue,
        };
        let others = facts.members.iter().filter(|member| Some(member.id) != id);
        let lookers: Vec<_> = others
            .filter(|member| looks_at_names(facts, member))
            .map(|member| format!("server {}", member.id))
            .collect();
        let what = format!("the certificate of {} names {lacks}", leaf.subject);
        found.push(match lookers.as_slice() {
            [] => Found::warning(subject, what),
            lookers => {
                Found::error(subject, format!("{what}: {} refuse(s) it", lookers.join(", ")))
            }
        });
    }
    found
}

fn usage(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for Chain { subject, leaf, .. } in chains(facts) {
        let (may, lacks) = match (leaf.accepts, leaf.dials) {
            (true, true) => continue,
            (true, false) => ("only accept", "clientAuth"),
            (false, true) => ("only dial", "serverAuth"),
            (false, false) => ("neither accept nor dial", "serverAuth and clientAuth"),
        };
        let what = format!("the certificate of {} may {may}: it lacks {lacks}", leaf.subject);
        found.push(Found::error(subject, what));
    }
    found
}

fn weak(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for Chain { subject, all, .. } in chains(facts) {
        let weak = all.iter().filter_map(|held| Some((held, held.weakness.as_ref()?)));
        found.extend(weak.map(|(held, weakness)| {
            let what = format!("the certificate of {} {weakness}", held.subject);
            Found::warning(subject.clone(), what)
        }));
    }
    found.extend(old_versions(facts));
    found
}

/// Files that keep links to TLS 1.2 though every member could 1.3: all are known to be ours, or ZooKeeper from 3.9.2 on.
fn old_versions(facts: &Facts) -> Vec<Found> {
    let can = |member: &Member| {
        let version = |words: &Words| words.number_of_version();
        let words = member.words();
        words.is_some_and(|words| words.is_ours() || version(words) >= Some(Version(3, 9, 2)))
    };
    if facts.members.is_empty() || !facts.members.iter().all(can) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for file in of_ensembles(facts).filter(|file| has_tls(file)) {
        let says = file.setting("ssl.quorum.enabledProtocols");
        let Some(setting) = says.or_else(|| file.setting("ssl.quorum.protocol")) else { continue };
        let has = |name: &str| setting.value.split(',').any(|version| version.trim() == name);
        if has("TLSv1.2") && !has("TLSv1.3") {
            let what = "links have TLS 1.2 alone, and every member could 1.3";
            let subject = Subject::file(&file.path, file.id).set_by(setting);
            found.push(
                Found::warning(subject, what).todo("remove the line, on one server at a time"),
            );
        }
    }
    found
}

/// Certificates, and whose they are: unless ids stand in them and count.
fn holders(facts: &Facts) -> Vec<(&Held, Vec<Chain<'_>>)> {
    let by_id = |chain: &Chain<'_>| {
        let file = facts.files.iter().find(|file| file.id.is_some() && file.id == chain.id);
        let setting = file.and_then(|file| file.setting("quorate.ssl.identity"));
        setting.is_some_and(|setting| setting.value.trim() == "id")
    };
    let mut holders: Vec<(&Held, Vec<Chain<'_>>)> = Vec::new();
    for chain in chains(facts).into_iter().filter(|chain| !by_id(chain)) {
        match holders.iter_mut().find(|(leaf, _)| leaf.der == chain.leaf.der) {
            Some((_, same)) => same.push(chain),
            None => holders.push((chain.leaf, vec![chain])),
        }
    }
    holders
}

fn shown(ids: &[ServerId]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

/// Of whom it is said: the one that has it, or all of them.
fn subject_of(chains: Vec<Chain<'_>>) -> Subject {
    let mut chains = chains.into_iter();
    match (chains.next(), chains.next()) {
        (Some(one), None) => one.subject,
        _ => Subject::default(),
    }
}

fn shared(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (leaf, chains) in holders(facts) {
        let mut ids: Vec<_> = chains.iter().filter_map(|chain| chain.id).collect();
        ids.dedup();
        let named = leaf.members.iter().filter(|id| !leaf.by_wildcard.contains(id)).count();
        let what = match (ids.as_slice(), named) {
            _ if leaf.by_wildcard.len() > 1 => continue,
            ([_, _, ..], _) => {
                format!("servers {} have one certificate, of {}", shown(&ids), leaf.subject)
            }
            (_, 2..) => format!(
                "the certificate of {} names hosts of servers {}",
                leaf.subject,
                shown(&leaf.members)
            ),
            _ => continue,
        };
        found.push(Found::notice(subject_of(chains), what));
    }
    found
}

fn wildcard(facts: &Facts) -> Vec<Found> {
    let several = holders(facts).into_iter().filter(|(leaf, _)| leaf.by_wildcard.len() > 1);
    let each = several.map(|(leaf, chains)| {
        let what = format!(
            "a wildcard in the certificate of {} covers hosts of servers {}",
            leaf.subject,
            shown(&leaf.by_wildcard)
        );
        Found::notice(subject_of(chains), what)
    });
    each.collect()
}
