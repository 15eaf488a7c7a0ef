//! Rules of links between members: who cannot dial whom, what wears, and what the network loses.

use crate::facts::{Facts, Link, Member, Told, Wearing};
use crate::finding::{Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.one-way",
        levels: &[Level::Error, Level::Warning],
        when: "a member has no link to another one and cannot dial it, twice, though that one answers here; or it answers \
               here, and does not dial back (--reverse); a warning where a log says again and again that a larger id is to \
               dial, and that server is not heard",
        why: "of two servers the one with the larger id owns the link: one blocked direction is enough to keep a server out",
        todo: "see that each server reaches the election port of each other one, in both directions, and what each side \
               resolves the other's name to",
        sources: &["QuorumCnxManager.java", "zookeeperAdmin.md"],
        explains: &["live.left-out", "live.round-grows"],
        check: one_way,
    },
    Rule {
        id: "live.tls-records",
        levels: &[Level::Warning],
        when: "a link over TLS 1.2 that has been up for a minute or longer reaches the limit of records of its keys within an \
               hour, at the rate that it has had",
        why: "TLS 1.2 cannot change its keys: such a link is made anew each time, and each time a learner is away for a moment",
        todo: "let servers speak TLS 1.3: without ssl.quorum.protocol and ssl.quorum.enabledProtocols, from ZooKeeper 3.9.2 on; \
               or set ssl.quorum.ciphersuites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 on all, for Java from 12 on",
        sources: &["RFC 8446, 5.5", "RFC 8446, 4.6.3"],
        explains: &[],
        check: records,
    },
    Rule {
        id: "net.mtu",
        levels: &[Level::Warning],
        when: "a link from here repeats one and the same piece, at two looks, while smaller messages come",
        why: "a tunnel on the way swallows large packets: pings pass, a synchronisation never ends",
        todo: "compare the MTU of both hosts and of what is between them: `ping -M do -s 1472 HOST`; lower it, or let ICMP \
               \"fragmentation needed\" through",
        sources: &["RFC 2923"],
        explains: &["live.sync-slow"],
        check: mtu,
    },
    Rule {
        id: "net.loss",
        levels: &[Level::Warning],
        when: "of 1000 segments or more of a link from here, more than 1 % were sent again",
        why: "each loss holds up all behind it, for 200 ms or more where little is under way",
        todo: "look at the counters of the interfaces and switches on the way (`ip -s link`)",
        sources: &["RFC 6298"],
        explains: &[],
        check: loss,
    },
    Rule {
        id: "net.rtt",
        levels: &[Level::Notice],
        when: "the round trip of a link from here is longer than a tenth of tickTime",
        why: "each write waits for one, and time limits are counted in ticks",
        todo: "raise tickTime, or put the servers nearer to one another",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: round_trip,
    },
];

fn one_way(facts: &Facts) -> Vec<Found> {
    let answers = |member: &Member| member.heard().is_some();
    let mut found = Vec::new();
    for member in &facts.members {
        for (to, why) in member.told().map_or(&[][..], |told| &told.unreached) {
            let was_so = |told: &Told| told.unreached.iter().any(|(id, _)| id == to);
            let twice = facts.both_times(member, |member| member.told().is_some_and(was_so));
            let is_there = |to: &&Member| facts.both_times(to, answers);
            if twice && facts.member(*to).as_ref().is_some_and(is_there) {
                let what = format!("it cannot dial server {to}, whose election port answers here");
                let source = format!("/quorate/reach of server {}", member.id);
                found.push(Found::error(Subject::server(member.id), what).seen(source, why));
            }
        }
    }
    for (id, dialled) in &facts.dialled_back {
        if !dialled && facts.member(*id).is_some_and(answers) {
            let what = "it answers here, and does not dial back";
            found.push(Found::error(Subject::server(*id), what));
        }
    }
    found
}

fn records(facts: &Facts) -> Vec<Found> {
    // Both ends may tell of one link: it is told once.
    let told_by = |id, of: &Wearing, to| {
        let told = facts.member(id).and_then(Member::told);
        told.is_some_and(|told| told.wearing.iter().any(|at| at.peer == to && at.plane == of.plane))
    };
    let mut found = Vec::new();
    for member in &facts.members {
        for link in member.told().map_or(&[][..], |told| &told.wearing) {
            let Wearing { peer, plane, records, records_max, age } = link;
            let again = *peer < member.id && told_by(*peer, link, member.id);
            let Some(lasts) = lasts(link).filter(|lasts| *lasts <= 3600 && !again) else {
                continue;
            };
            let what = format!(
                "the keys of its {plane} link with server {peer} last {} min at its present rate",
                (lasts / 60).max(1)
            );
            let seen = format!("{records} of {records_max} records in {} min", age.as_secs() / 60);
            let source = format!("/quorate/status of server {}", member.id);
            found.push(Found::warning(Subject::server(member.id), what).seen(source, seen));
        }
    }
    found
}

/// How many seconds the keys of a link last; none if it is too young to say, or nothing has passed.
fn lasts(link: &Wearing) -> Option<u128> {
    let age = Some(link.age.as_secs()).filter(|age| *age >= 60)?;
    (u128::from(link.records_max) * u128::from(age)).checked_div(link.records.into())
}

fn subject(link: &Link) -> (Subject, String) {
    (Subject::server(link.server), format!("the link {} to {}", link.local, link.remote))
}

fn mtu(facts: &Facts) -> Vec<Found> {
    let hangs = |link: &Link| link.unacknowledged > 0 && link.backoff > 0;
    let mut found = Vec::new();
    for link in facts.links.iter().filter(|link| hangs(link)) {
        let ends = (link.local, link.remote);
        let before = facts.links_before.iter().find(|before| (before.local, before.remote) == ends);
        let stood = before.is_some_and(|before| {
            hangs(before) && before.acknowledged_bytes == link.acknowledged_bytes
        });
        let hears = link.received_ms_ago.is_some_and(|ago| ago < 5_000);
        if stood && hears {
            let (subject, source) = subject(link);
            let bytes = link.segment_bytes.map(|most| format!(" of up to {most} bytes"));
            let what = format!(
                "a piece{} is sent to it again and again for {:.0} s, while it sends",
                bytes.unwrap_or_default(),
                facts.seconds_between
            );
            let seen = format!("sent again {} times in a row", link.backoff);
            found.push(Found::warning(subject, what).seen(source, seen));
        }
    }
    found
}

fn loss(facts: &Facts) -> Vec<Found> {
    let lossy = |link: &&Link| link.segments >= 1000 && link.repeated * 100 > link.segments;
    let links = facts.links.iter().filter(lossy).map(|link| {
        let (subject, source) = subject(link);
        let percent = link.repeated * 100 / link.segments;
        let what = format!("{percent} % of what was sent to it had to be sent again");
        let seen = format!("{} of {} segments since it was made", link.repeated, link.segments);
        Found::warning(subject, what).seen(source, seen)
    });
    links.collect()
}

fn round_trip(facts: &Facts) -> Vec<Found> {
    let tick = facts.read_files().map(|(_, cfg)| cfg.tick_time.as_secs_f64() * 1000.0).next();
    let links = facts.links.iter().filter_map(|link| {
        let (trip, tick) = (link.round_trip_ms?, tick?);
        (trip > tick / 10.0).then(|| {
            let (subject, source) = subject(link);
            let what = format!("a round trip to it takes {trip:.0} ms; tickTime is {tick:.0} ms");
            Found::notice(subject, what).seen(source, format!("rtt {trip}"))
        })
    });
    links.collect()
}
