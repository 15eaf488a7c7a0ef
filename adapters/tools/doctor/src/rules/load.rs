//! Rules of an ensemble that serves: how far members are behind, how much waits, how large the tree is.

use crate::facts::{Facts, Member};
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "live.lag",
        levels: &[Level::Error, Level::Warning],
        when: "a follower is more than 500 transactions behind the leader, twice and not less the second time; an error \
               beyond snapCount",
        why: "behind the transactions that a leader keeps in memory, the next loss of the link costs a whole snapshot",
        todo: "look at its disk (disk.fsync), its pauses (host.pause) and the network",
        sources: &["zookeeperAdmin.md, commitLogCount"],
        explains: &[],
        check: lag,
    },
    Rule {
        id: "live.outstanding",
        levels: &[Level::Warning, Level::Notice],
        when: "more than 100 requests are under way at a server, twice; a notice beyond 10",
        why: "clients wait: a disk or the network is slower than they are",
        todo: "look at fsync times and at who sends so much",
        sources: &["Zabbix' template for ZooKeeper"],
        explains: &[],
        check: outstanding,
    },
    Rule {
        id: "live.pending-syncs",
        levels: &[Level::Warning],
        when: "more than 10 syncs of followers wait at the leader, twice",
        why: "clients that ask for the newest state wait",
        todo: "look at the leader's load and fsync times",
        sources: &["Zabbix' template for ZooKeeper"],
        explains: &[],
        check: pending_syncs,
    },
    Rule {
        id: "live.sync-slow",
        levels: &[Level::Warning],
        when: "a synchronisation took more than half of what initLimit allows, or has been under way so long",
        why: "one that takes longer than initLimit is given up and begins again: this server never comes back",
        todo: "raise initLimit; look at the network, at this server's disk, and at the size of snapshots",
        sources: &["zookeeperAdmin.md, initLimit", "ZOOKEEPER-1521"],
        explains: &[],
        check: sync_slow,
    },
    Rule {
        id: "live.elections-slow",
        levels: &[Level::Warning],
        when: "of three or more elections the mean took more than 1 s",
        why: "nothing is served so long",
        todo: "look at pauses of the garbage collector, the network, the size of snapshots",
        sources: &["zookeeperMonitor.md"],
        explains: &[],
        check: elections_slow,
    },
    Rule {
        id: "live.digest",
        levels: &[Level::Error],
        when: "digest_mismatches_count is not 0",
        why: "this server's data are not those of the leader",
        todo: "keep its data directory, then let it take everything from the others: stop it, move version-2 away, start it",
        sources: &["ZOOKEEPER-3114"],
        explains: &[],
        check: digest,
    },
    Rule {
        id: "live.counter",
        levels: &[Level::Error, Level::Warning],
        when: "the counter of transactions is beyond 0xc0000000, or full within 7 days at the present rate; an error beyond \
               0xf0000000, or within a day",
        why: "a full counter forces an election at any moment: after 49.7 days at 1,000 writes a second",
        todo: "restart the leader at a quiet time: a new epoch counts from 0",
        sources: &["ZOOKEEPER-1277", "ZOOKEEPER-2789"],
        explains: &[],
        check: counter,
    },
    Rule {
        id: "live.tree-size",
        levels: &[Level::Notice],
        when: "more than 1,000,000 nodes, 1 GiB of data, or 10,000 watches at a server",
        why: "snapshots are long in the making and on their way, and a start takes long",
        todo: "see which part of the tree grows: `quorate snapshot dump`",
        sources: &["zookeeperMonitor.md, sample alerts"],
        explains: &[],
        check: tree_size,
    },
];

fn lag(facts: &Facts) -> Vec<Found> {
    let snap_count = facts.read_files().map(|(_, cfg)| i64::from(cfg.snap_count)).next();
    let mut found = Vec::new();
    for (id, now) in Facts::lags(&facts.members) {
        let before = Facts::lags(&facts.before).find(|(before, _)| *before == id);
        let Some((_, before)) = before.filter(|(_, before)| *before <= now) else { continue };
        let level = if now > snap_count.unwrap_or(100_000) { Level::Error } else { Level::Warning };
        let what = format!("it is {now} transactions behind the leader, and was {before}");
        found.push(Found::new(level, Subject::server(id), what));
    }
    found
}

fn sync_slow(facts: &Facts) -> Vec<Found> {
    let limits = facts.read_files().filter(|(_, cfg)| !cfg.alone).map(|(_, cfg)| cfg);
    let limits = limits.map(|cfg| cfg.tick_time.as_secs_f64() * f64::from(cfg.init_limit));
    let Some(limit) = limits.reduce(f64::min) else { return Vec::new() };
    let is_under_way = |member: &Member| {
        let state = member.words().and_then(|words| words.mntr.get("peer_state"));
        state.is_some_and(|state| state.contains("synchronization") && !state.starts_with("lead"))
    };
    let mut found = Vec::new();
    for member in &facts.members {
        let took = ["max_follower_sync_time", "max_observer_sync_time"];
        let took = took.iter().filter_map(|name| number(member, name)).fold(0.0, f64::max) / 1000.0;
        let since = facts.seconds_between;
        let what = if facts.both_times(member, is_under_way) && since > limit / 2.0 {
            format!("it has been taking over the leader's history for {since:.1} s at least")
        } else if took > limit / 2.0 {
            format!("to take over a leader's history took it {took:.1} s")
        } else {
            continue;
        };
        let what = format!("{what}; initLimit allows {limit:.1} s");
        found.push(Found::warning(Subject::server(member.id), what));
    }
    found
}

fn outstanding(facts: &Facts) -> Vec<Found> {
    let of = |member: &Member| member.words().and_then(|words| words.outstanding).unwrap_or(0);
    let mut found = Vec::new();
    for member in facts.members.iter().filter(|member| facts.both_times(member, |m| of(m) > 10)) {
        let before = facts.first(member).map_or(0, of);
        let least = before.min(of(member));
        let level = if least > 100 { Level::Warning } else { Level::Notice };
        let what = format!("{} requests are under way, and {before} were", of(member));
        found.push(Found::new(level, Subject::server(member.id), what));
    }
    found
}

fn pending_syncs(facts: &Facts) -> Vec<Found> {
    let of = |member: &Member| number(member, "pending_syncs").unwrap_or(0.0);
    let waits = facts.members.iter().filter(|member| facts.both_times(member, |m| of(m) > 10.0));
    waits
        .map(|member| {
            Found::warning(Subject::server(member.id), format!("{} syncs wait", of(member)))
        })
        .collect()
}

fn number(member: &Member, name: &str) -> Option<f64> {
    member.words()?.number(name)
}

fn elections_slow(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for member in &facts.members {
        let (Some(count), Some(mean)) =
            (number(member, "cnt_election_time"), number(member, "avg_election_time"))
        else {
            continue;
        };
        if count >= 3.0 && mean > 1000.0 {
            let what = format!("its {count:.0} elections took {mean:.0} ms in the mean");
            found.push(
                Found::warning(Subject::server(member.id), what)
                    .seen("mntr", format!("zk_avg_election_time {mean}")),
            );
        }
    }
    found
}

fn digest(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for member in &facts.members {
        let mismatches = number(member, "digest_mismatches_count").filter(|count| *count > 0.0);
        if let Some(count) = mismatches {
            let what = format!("its tree was not the leader's {count:.0} time(s)");
            found.push(
                Found::error(Subject::server(member.id), what)
                    .seen("mntr", format!("zk_digest_mismatches_count {count:.0}")),
            );
        }
    }
    found
}

const DAY: f64 = 86_400.0;

fn counter(facts: &Facts) -> Vec<Found> {
    let newest =
        |members: &[Member]| members.iter().filter_map(Member::zxid).max_by_key(|zxid| zxid.0);
    let Some(now) = newest(&facts.members) else { return Vec::new() };
    let counted = now.0 & 0xffff_ffff;
    let before = newest(&facts.before).filter(|before| before.epoch() == now.epoch());
    let made = before.map_or(0, |before| now.0 - before.0);
    let days = if made > 0 && facts.seconds_between > 1.0 {
        #[expect(clippy::cast_precision_loss, reason = "both are below 2^32")]
        let (left, made) = ((0x1_0000_0000 - counted) as f64, made as f64);
        left * facts.seconds_between / made / DAY
    } else {
        f64::INFINITY
    };
    let level = if counted >= 0xf000_0000 || days < 1.0 {
        Level::Error
    } else if counted >= 0xc000_0000 || days < 7.0 {
        Level::Warning
    } else {
        return Vec::new();
    };
    let when = if days.is_finite() { format!(", full in {days:.1} days") } else { String::new() };
    let what = format!("the counter of transactions is at {counted:#x}{when}");
    vec![Found::new(level, Subject::default(), what).seen("srvr", format!("Zxid: {now}"))]
}

fn tree_size(facts: &Facts) -> Vec<Found> {
    let limits = [
        ("znode_count", 1e6, "nodes"),
        ("approximate_data_size", f64::from(1 << 30), "bytes of data"),
        ("watch_count", 1e4, "watches"),
    ];
    let mut found = Vec::new();
    for member in &facts.members {
        let large: Vec<_> = limits
            .iter()
            .filter_map(|(name, limit, what)| {
                let value = number(member, name).filter(|value| value > limit)?;
                Some((*name, value, *what))
            })
            .collect();
        if large.is_empty() {
            continue;
        }
        let what: Vec<_> =
            large.iter().map(|(_, value, what)| format!("{value:.0} {what}")).collect();
        let seen = large
            .iter()
            .map(|(name, value, _)| Evidence::new("mntr", format!("zk_{name} {value:.0}")));
        found.push(
            Found::notice(Subject::server(member.id), format!("it has {}", what.join(", ")))
                .seen_all(seen),
        );
    }
    found
}
