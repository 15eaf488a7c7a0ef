//! Rules of this host: clocks, limits of processes, memory, pauses.

use crate::facts::{Facts, Process};
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "host.clock",
        levels: &[Level::Error, Level::Warning],
        when: "the logs of two servers show that their clocks are more than 1 s apart; an error beyond 30 s",
        why: "the protocol does not need clocks; certificates, TTL nodes and those who read logs do",
        todo: "synchronise the clocks of all hosts (chrony, systemd-timesyncd)",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: clock,
    },
    Rule {
        id: "host.limits",
        levels: &[Level::Warning],
        when: "a server's process here may open fewer than 4096 descriptors, or has 85 % of them open",
        why: "each client and each file takes one: without any left, clients are turned away and logs cannot be begun",
        todo: "set LimitNOFILE=65536 in its unit, or nofile in limits.conf",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: limits,
    },
    Rule {
        id: "host.swap",
        levels: &[Level::Warning],
        when: "a part of a server's process here is swapped out",
        why: "what is swapped in again makes the server stand still, and its followers leave",
        todo: "give the host more memory or Java a smaller heap, and turn swapping off",
        sources: &["zookeeperAdmin.md, \"Don't swap\""],
        explains: &[],
        check: swap,
    },
    Rule {
        id: "host.pause",
        levels: &[Level::Warning],
        when: "a log tells of a pause of half a second, or the kernel throttled a server here in 5 % of all periods",
        why: "a server that stands still is taken for dead: pauses cause elections",
        todo: "look at the garbage collector's log and heap; raise or remove the CPU limit of the container",
        sources: &["zookeeperAdmin.md"],
        explains: &["live.flapping"],
        check: pause,
    },
];

fn clock(facts: &Facts) -> Vec<Found> {
    let first = facts.clocks.iter().min_by_key(|(_, offset)| *offset);
    let last = facts.clocks.iter().max_by_key(|(_, offset)| *offset);
    let (Some((first, low)), Some((last, high))) = (first, last) else { return Vec::new() };
    let apart = high.saturating_sub(*low);
    let level = match apart {
        30_000_001.. => Level::Error,
        1_000_001.. => Level::Warning,
        _ => return Vec::new(),
    };
    let what = format!(
        "the clock of server {last} is {} s behind that of server {first}",
        apart / 1_000_000
    );
    let evidence = facts.clocks.iter().map(|(id, offset)| {
        Evidence::new(format!("the log of server {id}"), format!("{} ms", offset / 1000))
    });
    vec![Found::new(level, Subject::default(), what).seen_all(evidence)]
}

fn subject(process: &Process) -> Subject {
    Subject {
        server: process.id.map(|id| id.0),
        ..Subject::host(format!("process {}", process.pid))
    }
}

fn limits(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for process in &facts.machine.processes {
        let Some(max) = process.descriptors_max else { continue };
        let open = process.descriptors;
        let what = if let Some(open) = open.filter(|open| open * 100 > max * 85) {
            format!("{open} of {max} descriptors are open")
        } else if max < 4096 {
            format!("it may open {max} descriptors")
        } else {
            continue;
        };
        found.push(
            Found::warning(subject(process), what)
                .seen(format!("/proc/{}/limits", process.pid), format!("Max open files {max}")),
        );
    }
    found
}

fn swap(facts: &Facts) -> Vec<Found> {
    let swapped = facts.machine.processes.iter().filter_map(|process| {
        let bytes = process.swapped.filter(|bytes| *bytes > 0)?;
        let what = format!("{} KiB of it are swapped out", bytes >> 10);
        let source = format!("/proc/{}/status", process.pid);
        Some(Found::warning(subject(process), what).seen(source, "VmSwap"))
    });
    swapped.collect()
}

fn pause(facts: &Facts) -> Vec<Found> {
    let throttled = facts.machine.processes.iter().filter_map(|process| {
        let (throttled, periods) = process.throttled?;
        if periods == 0 || throttled * 20 < periods {
            return None;
        }
        let what = format!("it was throttled in {throttled} of {periods} periods");
        Some(
            Found::warning(subject(process), what)
                .seen("cpu.stat", format!("nr_throttled {throttled}")),
        )
    });
    throttled.collect()
}
