//! Rules of ports that answer where they should not: what they tell a host that reaches them and has proved nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quorate_core::id::ServerId;

use crate::facts::{Facts, Heard, Member, Port};
use crate::file::ConfigFile;
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;
use crate::rules::steps::is_true;
use crate::words::Words;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.exposed-quorum",
        levels: &[Level::Warning],
        when: "the leader's quorum port takes connections at an address that is not private, without TLS, and its file has no \
               quorate.quorumAllow",
        why: "who reaches it may be an observer of any id, has the whole tree, also what access lists keep from it, and may \
              change it",
        todo: "close the port to all but the other servers, and let these link with TLS: sslQuorum=true",
        sources: &["CVE-2018-8012", "zookeeperAdmin.md, \"Quorum TLS\""],
        explains: &["live.exposed-election"],
        check: exposed_quorum,
    },
    Rule {
        id: "live.exposed-election",
        levels: &[Level::Warning],
        when: "an election port answers at an address that is not private, without TLS, and its file has no quorate.quorumAllow",
        why: "who reaches it learns all members and their addresses, may vote under any id, and takes the place of a real link",
        todo: "close the port to all but the other servers, and let these link with TLS: sslQuorum=true",
        sources: &["CVE-2018-8012", "zookeeperAdmin.md, \"Quorum TLS\""],
        explains: &[],
        check: exposed_election,
    },
    Rule {
        id: "live.exposed-client",
        levels: &[Level::Notice],
        when: "a client port answers at an address that is not private, without TLS, and by its file no client has to prove \
               anything",
        why: "a node without an access list is everybody's, and passwords cross the network as they are",
        todo: "close the port to all but the clients; give these secureClientPort, and ask them for a proof: \
               enforce.auth.enabled=true with enforce.auth.schemes",
        sources: &["zookeeperAdmin.md, \"Authentication & Authorization Options\""],
        explains: &[],
        check: exposed_client,
    },
    Rule {
        id: "live.exposed-admin",
        levels: &[Level::Warning],
        when: "an admin server of ZooKeeper's answers beyond loopback, or one of ours at an address that is not private; or one \
               shows a property that is named as a secret",
        why: "it tells the environment, the configuration and the properties of the JVM, passwords of stores among them, and \
              since 3.9 takes and restores snapshots",
        todo: "set admin.serverAddress=127.0.0.1, or admin.enableServer=false; name passwords by passwordPath",
        sources: &[
            "CVE-2025-58457",
            "CVE-2024-51504",
            "zookeeperAdmin.md, \"AdminServer configuration\"",
        ],
        explains: &[],
        check: exposed_admin,
    },
];

/// Whether an address is one that others than the neighbours have a way to, as far as its number says.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            // The network of providers behind their translation of addresses (RFC 6598).
            let is_shared =
                Ipv4Addr::from_bits(ip.to_bits() & 0xffc0_0000) == Ipv4Addr::new(100, 64, 0, 0);
            !(ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified()
                || is_shared)
        }
        IpAddr::V6(ip) => {
            let is_local = |ip: Ipv6Addr| ip.is_unique_local() || ip.is_unicast_link_local();
            !(ip.is_loopback() || ip.is_unspecified() || is_local(ip))
        }
    }
}

/// Where a port answered who proved nothing, if others have a way there.
fn bare<T>(port: Option<&Port<T>>) -> Option<IpAddr> {
    let port = port.filter(|port| port.answer.is_ok())?;
    port.bare.filter(|ip| is_public(*ip))
}

/// The member's own file.
fn own(facts: &Facts, id: ServerId) -> Option<&ConfigFile> {
    facts.files.iter().find(|file| file.id == Some(id))
}

/// Whether its file says from where its ports for peers take connections: then it is this place that is let in.
fn is_fenced(facts: &Facts, id: ServerId) -> bool {
    let allow = own(facts, id).and_then(|file| file.setting("quorate.quorumAllow"));
    allow.is_some_and(|setting| !setting.value.trim().is_empty())
}

/// One finding for all of them: they have one cause. What one does, and what several do.
fn of_all(level: Level, seen: Vec<(ServerId, Evidence)>, one: &str, several: &str) -> Vec<Found> {
    let ids: Vec<_> = seen.iter().map(|(id, _)| id.to_string()).collect();
    let (subject, what) = match seen.as_slice() {
        [] => return Vec::new(),
        [(id, _)] => (Subject::server(*id), one.to_owned()),
        _ => (Subject::default(), format!("servers {} {several}", ids.join(", "))),
    };
    let found = Found::new(level, subject, what);
    vec![found.seen_all(seen.into_iter().map(|(_, evidence)| evidence))]
}

fn exposed_quorum(facts: &Facts) -> Vec<Found> {
    let leaders = facts.members.iter().filter(|member| !is_fenced(facts, member.id));
    let seen = leaders.filter_map(|member| {
        let (port, ip) = (member.quorum.as_ref()?, bare(member.quorum.as_ref())?);
        let said =
            "it takes connections, and no TLS: followers and observers come there".to_owned();
        Some((member.id, Evidence::new(format!("{} at {ip}", port.address), said)))
    });
    of_all(
        Level::Warning,
        seen.collect(),
        "it takes learners at an address that is not private, and asks them for no proof",
        "take learners at addresses that are not private, and ask them for no proof",
    )
}

fn exposed_election(facts: &Facts) -> Vec<Found> {
    let members = facts.members.iter().filter(|member| !is_fenced(facts, member.id));
    let seen = members.filter_map(|member| {
        let (port, ip) = (member.election.as_ref()?, bare(member.election.as_ref())?);
        let told = learnt(port.answer.as_ref().ok()?);
        Some((member.id, Evidence::new(format!("{} at {ip}", port.address), told)))
    });
    of_all(
        Level::Warning,
        seen.collect(),
        "its election port answers a stranger, at an address that is not private",
        "answer strangers at their election ports, at addresses that are not private",
    )
}

/// What an election port tells anybody.
fn learnt(heard: &Heard) -> String {
    let leader = heard.leader().map_or("no server".to_owned(), |id| format!("server {id}"));
    let members = heard.membership.as_ref().map_or(&[] as &[_], |members| members.members());
    let hosts: Vec<_> =
        members.iter().map(|member| member.election_address().to_string()).collect();
    let hosts = match hosts.as_slice() {
        [] => String::new(),
        hosts => format!("; members at {}", hosts.join(", ")),
    };
    format!("{}, votes for {leader}, round {}{hosts}", heard.state(), heard.round())
}

fn exposed_client(facts: &Facts) -> Vec<Found> {
    let asks = |file: &ConfigFile| {
        is_true(file, "enforce.auth.enabled") || is_true(file, "sessionRequireClientSASLAuth")
    };
    let seen = facts.members.iter().filter_map(|member| {
        let file = own(facts, member.id);
        if file.is_some_and(asks) {
            return None;
        }
        let (port, ip) = (member.client.as_ref()?, bare(member.client.as_ref())?);
        let mut told = answered(member.client_words()?);
        if file.is_some_and(|file| file.setting(SUPER_DIGEST).is_none()) {
            told.push_str("; no superDigest is set");
        }
        Some((member.id, Evidence::new(format!("{} at {ip}", port.address), told)))
    });
    of_all(
        Level::Notice,
        seen.collect(),
        "it takes clients without TLS or a proof, at an address that is not private",
        "take clients without TLS or a proof, at addresses that are not private",
    )
}

/// Who may mend an access list that locks all others out.
const SUPER_DIGEST: &str = "DigestAuthenticationProvider.superDigest";

/// Which words were answered.
fn answered(words: &Words) -> String {
    let told = [
        ("srvr", words.version.is_some()),
        ("mntr", !words.mntr.is_empty()),
        ("conf", !words.conf.is_empty()),
    ];
    let told: Vec<_> = told.iter().filter(|(_, told)| *told).map(|(word, _)| *word).collect();
    match told.as_slice() {
        [] => "it takes connections".to_owned(),
        told => format!("it answers {}", told.join(", ")),
    }
}

fn exposed_admin(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for member in &facts.members {
        let (Some(port), Some(told)) = (&member.http, member.told()) else { continue };
        let is_ours = member.words().is_some_and(Words::is_ours);
        let is_far =
            |ip: IpAddr| if is_ours { is_public(ip) } else { !ip.to_canonical().is_loopback() };
        let open = port.bare.filter(|ip| is_far(*ip));
        if open.is_none() && told.secrets.is_empty() {
            continue;
        }
        let who = format!("its admin server {}", port.address);
        let what = match (open, told.secrets.is_empty()) {
            (Some(_), true) => format!("{who} answers any host that reaches it"),
            (Some(_), false) => {
                format!("{who} answers any host that reaches it, and shows secrets")
            }
            (None, _) => format!("{who} shows secrets to every user of its machine"),
        };
        let mut one = Found::warning(Subject::server(member.id), what);
        if let Some(ip) = open {
            one = one.seen(format!("{} at {ip}", port.address), answers_commands(member));
        }
        if !told.secrets.is_empty() {
            one = one.seen("system_properties", format!("has {}", told.secrets.join(", ")));
        }
        found.push(one);
    }
    found
}

fn answers_commands(member: &Member) -> String {
    let words = member.told().map(|told| &told.words);
    let version = words.and_then(|words| words.version.as_deref()).unwrap_or("an unknown version");
    let version = version.split(',').next().unwrap_or_default();
    format!("it answers commands without a proof, as {version}")
}
