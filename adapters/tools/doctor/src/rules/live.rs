//! Rules of an ensemble as it answers: who leads, who follows, who is silent.
//!
//! A server that is being restarted is silent or looks for a leader, too, for a while. So what these rules see has to be
//! so twice, some seconds apart.

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_core::membership::Role;

use crate::facts::{Facts, Heard, Member, Silence};
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.no-majority",
        levels: &[Level::Error],
        when: "fewer voters answer than a quorum takes, with groups and weights, twice",
        why: "without a quorum no server leads, and nothing is written or served",
        todo: "start the servers that are down; if they run, look at their ports and the network between",
        sources: &["zookeeperAdmin.md"],
        explains: &["live.no-leader", "live.port-closed", "live.round-grows", "live.left-out"],
        check: no_majority,
    },
    Rule {
        id: "live.no-leader",
        levels: &[Level::Error, Level::Notice],
        when: "no server leads with a quorum, twice; a notice where a log of ours says that none was found for long",
        why: "nothing is written, and nothing is served but to read-only clients",
        todo: "look at what keeps the voters from one another: `quorate probe`, then `quorate timeline` of their logs",
        sources: &["zookeeperInternals.md"],
        explains: &["live.round-grows"],
        check: no_leader,
    },
    Rule {
        id: "live.not-serving",
        levels: &[Level::Error, Level::Warning],
        when: "a quorum names its leader, and no client port serves, twice; a warning where one does and a follower's does not",
        why: "an election ends, and what follows it does not: the followers do not come to the leader, or are not brought up",
        todo: "let the followers reach the leader's quorum port, the first of its server.N line; then look at the leader's log \
               and disk",
        sources: &["zookeeperInternals.md"],
        explains: &["live.round-grows", "live.elections-slow", "live.flapping"],
        check: not_serving,
    },
    Rule {
        id: "live.port-closed",
        levels: &[Level::Error, Level::Warning],
        when: "a member's election port refuses, drops, or has no route, twice; or a log tells that it does for that server",
        why: "this member takes no part in elections; one more that fails may end the service",
        todo: "refused: start the process, or correct the port. No connection in time: a firewall or security group drops \
               packets. No route: the address or the network is wrong",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: port_closed,
    },
    Rule {
        id: "live.two-leaders",
        levels: &[Level::Error, Level::Warning],
        when: "two members say LEADING, twice; an error if in one epoch",
        why: "two leaders of one epoch are a split brain; of two epochs, the old one has not yet noticed that it is cut off",
        todo: "of one epoch: stop all servers and keep their disks. Of two: look again after syncLimit ticks",
        sources: &["zookeeperInternals.md"],
        explains: &["live.votes-differ"],
        check: two_leaders,
    },
    Rule {
        id: "live.votes-differ",
        levels: &[Level::Warning],
        when: "voters that have a leader name different ones, or one in different epochs, twice",
        why: "a server that comes finds no quorum for either and cannot join",
        todo: "restart the servers that name the leader which fewer others name, one at a time",
        sources: &["ZOOKEEPER-1514", "ZOOKEEPER-1732"],
        explains: &[],
        check: votes_differ,
    },
    Rule {
        id: "live.left-out",
        levels: &[Level::Warning],
        when: "a voter looks for a leader while a quorum has one, twice",
        why: "it is as good as down: one more that fails may end the service",
        todo: "look at its log: it may not reach the leader's quorum port, or its synchronisation fails",
        sources: &["ZOOKEEPER-2164"],
        explains: &["live.round-grows"],
        check: left_out,
    },
    Rule {
        id: "live.observer-cut",
        levels: &[Level::Warning],
        when: "a configured observer looks for a leader while there is one, twice",
        why: "its clients are served nothing",
        todo: "look at its log, and whether it reaches the leader's quorum port",
        sources: &["zookeeperObservers.md"],
        explains: &[],
        check: observer_cut,
    },
    Rule {
        id: "live.round-grows",
        levels: &[Level::Error, Level::Notice],
        when: "a member that looks for a leader is more than 10 rounds above the others, or 3 rounds further than seconds ago",
        why: "an election does not end: a leader is chosen and lost again and again",
        todo: "look at why it loses its leader: `quorate timeline` of the logs of all servers",
        sources: &["ZOOKEEPER-2164"],
        explains: &[],
        check: round_grows,
    },
];

fn shown(ids: &[ServerId]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    match ids.as_slice() {
        [] => "no server".to_owned(),
        [one] => format!("server {one}"),
        many => format!("servers {}", many.join(", ")),
    }
}

/// Whether the members were asked twice.
fn twice(facts: &Facts) -> bool {
    !facts.before.is_empty()
}

fn no_majority(facts: &Facts) -> Vec<Found> {
    let Some(membership) = facts.membership() else { return Vec::new() };
    let quorum = membership.quorum();
    let answering = |members: &[Member]| -> Vec<ServerId> {
        let answering = members.iter().filter(|member| is_there(facts, member));
        answering.map(|member| member.id).filter(|id| quorum.is_voter(*id)).collect()
    };
    let mut now = answering(&facts.members);
    let is_lacking = |voters: &[ServerId]| !quorum.is_quorum(voters.iter().copied());
    if !twice(facts) || !is_lacking(&now) || !is_lacking(&answering(&facts.before)) {
        return Vec::new();
    }
    let voters: Vec<_> = quorum.voters().collect();
    let silent: Vec<_> = voters.iter().copied().filter(|id| !now.contains(id)).collect();
    let there = now.len();
    let mut more = 0;
    for id in &silent {
        if is_lacking(&now) {
            now.push(*id);
            more += 1;
        }
    }
    let what = format!(
        "{there} of {} voters {}: a quorum takes {more} more, of {}",
        voters.len(),
        if there == 1 { "answers" } else { "answer" },
        shown(&silent)
    );
    let evidence = facts.members.iter().filter(|member| silent.contains(&member.id));
    let evidence = evidence.filter_map(|member| {
        let port = member.election.as_ref()?;
        let because = port.answer.as_ref().err()?;
        Some(Evidence::new(
            format!("server {} at {}", member.id, port.address),
            because.to_string(),
        ))
    });
    vec![Found::error(Subject::default(), what).seen_all(evidence)]
}

/// Whether a process is there: one that speaks TLS takes a connection, and tells nothing.
fn is_there(facts: &Facts, member: &Member) -> bool {
    let is_mute =
        matches!(member.silence(), Some(Silence::HungUp | Silence::NoAnswer | Silence::Strange(_)));
    let is_secret = matches!(member.silence(), Some(Silence::Tls | Silence::Shut(_)));
    member.answers() || is_secret || (facts.speaks_tls() && is_mute)
}

fn no_leader(facts: &Facts) -> Vec<Found> {
    let all_tell =
        || facts.members.iter().all(|member| !is_there(facts, member) || member.answers());
    let asked = facts.members.iter().any(|member| member.election.is_some()) && all_tell();
    if !asked || !twice(facts) || facts.is_led(&facts.members) || facts.is_led(&facts.before) {
        return Vec::new();
    }
    let what = format!(
        "no server leads with a quorum behind it, now and {:.0} s before",
        facts.seconds_between
    );
    let evidence = facts.members.iter().filter_map(|member| {
        let heard = member.heard()?;
        let vote = heard.leader().map_or("no server".to_owned(), |id| format!("server {id}"));
        let state = heard.state();
        Some(Evidence::new(
            format!("server {}", member.id),
            format!("{state}, votes for {vote}, round {}", heard.round()),
        ))
    });
    vec![Found::error(Subject::default(), what).seen_all(evidence)]
}

/// A leader whose quorum port is closed to the others is elected again and again: each follows it in the election. One with
/// `leaderServes=no` says that it does not serve, too, but its followers do.
fn not_serving(facts: &Facts) -> Vec<Found> {
    if !twice(facts) || !facts.is_led(&facts.members) || !facts.is_led(&facts.before) {
        return Vec::new();
    }
    let is_idle = |member: &Member| facts.both_times(member, |m| m.is_not_serving() && !m.looks());
    let idle: Vec<_> = facts.members.iter().filter(|member| is_idle(member)).collect();
    let (leaders, followers): (Vec<_>, Vec<_>) = idle.into_iter().partition(|m| m.leads());
    let one_serves = facts.members.iter().filter_map(Member::words).any(|w| !w.is_not_serving);
    let Some(leader) = leaders.first().filter(|_| !one_serves && !followers.is_empty()) else {
        let what = "it has a leader, and does not serve";
        let warning = |member: &&Member| Found::warning(Subject::server(member.id), what);
        return followers.iter().filter(|_| one_serves).map(warning).collect();
    };
    let seconds = facts.seconds_between;
    let what = format!("it is elected, and does not serve, now and {seconds:.0} s before");
    let mut found = Found::error(Subject::server(leader.id), what);
    if let Some(port) = &leader.quorum {
        let said =
            port.answer.as_ref().map_or_else(ToString::to_string, |()| "open from here".to_owned());
        found = found.seen(format!("its quorum port {}", port.address), said);
        if port.answer.as_ref().is_err_and(|silence| *silence != Silence::Tls) {
            found =
                found.todo(format!("open its quorum port {} to the other servers", port.address));
        }
    }
    vec![found]
}

fn port_closed(facts: &Facts) -> Vec<Found> {
    let is_closed = |member: &Member| {
        matches!(member.silence(), Some(Silence::Refused | Silence::Filtered | Silence::NoRoute))
    };
    let closed = facts.members.iter().filter(|member| facts.both_times(member, is_closed));
    let mut found = Vec::new();
    for member in closed {
        let (Some(port), Some(silence)) = (&member.election, member.silence()) else { continue };
        let (means, todo) = match silence {
            Silence::Filtered => (
                "packets are dropped",
                "let the port through the firewall or security group on the way",
            ),
            Silence::NoRoute => ("there is no route", "correct the address, or the route to it"),
            Silence::Refused if member.words().is_some() => (
                "nothing listens there, though its client port answers",
                "correct the election port in its server line, here or there; if it is right, the server listens at another \
                 address: `quorate doctor` on its host sees which",
            ),
            Silence::Refused
            | Silence::Unresolved(_)
            | Silence::NoAnswer
            | Silence::HungUp
            | Silence::Tls
            | Silence::Shut(_)
            | Silence::Strange(_)
            | Silence::Other(_) => {
                ("nothing listens there", "start the server; if it runs, correct its election port")
            }
        };
        let what = format!("its election port {} is closed: {means}", port.address);
        found.push(
            Found::error(Subject::server(member.id), what)
                .seen(&port.address, silence.to_string())
                .todo(todo),
        );
    }
    found
}

fn two_leaders(facts: &Facts) -> Vec<Found> {
    let (now, before) = (Facts::leaders(&facts.members), Facts::leaders(&facts.before));
    if now.len() < 2 || before.len() < 2 {
        return Vec::new();
    }
    let of_one_epoch = now.iter().enumerate().any(|(at, (_, epoch))| {
        epoch.is_some() && now.iter().skip(at + 1).any(|(_, other)| other == epoch)
    });
    let ids: Vec<_> = now.iter().map(|(id, _)| *id).collect();
    let epochs = now.iter().map(|(id, epoch)| {
        let epoch = epoch.map_or("of no epoch".to_owned(), |epoch| format!("of epoch {epoch}"));
        Evidence::new(format!("server {id}"), format!("LEADING {epoch}"))
    });
    let (level, what) = if of_one_epoch {
        (Level::Error, format!("{} lead one and the same epoch", shown(&ids)))
    } else {
        (Level::Warning, format!("{} say that they lead, in different epochs", shown(&ids)))
    };
    vec![Found::new(level, Subject::default(), what).seen_all(epochs)]
}

fn votes_differ(facts: &Facts) -> Vec<Found> {
    type Votes = BTreeMap<(Option<ServerId>, Option<i64>), Vec<ServerId>>;
    let votes = |members: &[Member]| {
        let mut votes = Votes::new();
        for member in members.iter().filter(|member| member.role == Role::Participant) {
            if let Some(heard) = member.heard().filter(|_| !member.looks()) {
                votes.entry((heard.leader(), heard.epoch())).or_default().push(member.id);
            }
        }
        votes
    };
    let now = votes(&facts.members);
    if now.len() < 2 || votes(&facts.before) != now {
        return Vec::new();
    }
    let evidence = now.iter().map(|((leader, epoch), ids)| {
        let leader = leader.map_or("no server".to_owned(), |id| format!("server {id}"));
        let epoch = epoch.map_or("no epoch".to_owned(), |epoch| format!("epoch {epoch}"));
        Evidence::new(shown(ids), format!("{leader} leads, {epoch}"))
    });
    let what = "servers that have a leader do not name the same one, in the same epoch";
    vec![Found::warning(Subject::default(), what).seen_all(evidence)]
}

/// Those of a role that look for a leader, both times, while others have one.
fn looking(facts: &Facts, role: Role) -> impl Iterator<Item = (&Member, &Heard)> {
    let is_led = twice(facts) && facts.is_led(&facts.members) && facts.is_led(&facts.before);
    let members = facts.members.iter().filter(move |member| is_led && member.role == role);
    members
        .filter(|member| facts.both_times(member, Member::looks))
        .filter_map(|member| Some((member, member.heard()?)))
}

fn left_out(facts: &Facts) -> Vec<Found> {
    let leaders = Facts::leaders(&facts.members);
    let leader: Vec<_> = leaders.iter().map(|(id, _)| *id).collect();
    looking(facts, Role::Participant)
        .map(|(member, heard)| {
            let what = format!(
                "it looks for a leader, in round {}, while {} leads",
                heard.round(),
                shown(&leader)
            );
            Found::warning(Subject::server(member.id), what)
        })
        .collect()
}

fn observer_cut(facts: &Facts) -> Vec<Found> {
    looking(facts, Role::Observer)
        .map(|(member, _)| {
            let what = "this observer has no leader, while there is one";
            Found::warning(Subject::server(member.id), what)
        })
        .collect()
}

fn round_grows(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for member in facts.members.iter().filter(|member| facts.both_times(member, Member::looks)) {
        let round = |member: &Member| member.heard().map(Heard::round);
        let Some(now) = round(member) else { continue };
        let before = facts.first(member).and_then(round).unwrap_or(now);
        let others = facts.members.iter().filter(|other| other.id != member.id);
        let highest = others.filter_map(round).max();
        let what = if now.saturating_sub(before) >= 3 {
            format!("its round went from {before} to {now} within {:.0} s", facts.seconds_between)
        } else if let Some(highest) = highest.filter(|other| now.saturating_sub(*other) > 10) {
            format!("it is in round {now}, the others in {highest} at most")
        } else {
            continue;
        };
        found.push(Found::error(Subject::server(member.id), what));
    }
    found
}
