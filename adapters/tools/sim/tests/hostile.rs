//! Texts that somebody may write who is in a hurry, or means no good: each is refused at the line that is wrong, or
//! comes to an end. None of them panics, runs for ever, or finds something true of a server that is not there.

use std::time::Duration;

use quorate_core::time::Instant;
use quorate_sim::record::Topic;
use quorate_sim::scenario::{Player, Scenario, ScenarioError};

/// The line at which something is wrong, from 1, and a part of what is said of it; the lines.
type Refused = (usize, &'static str, &'static [&'static str]);

/// What is no story, or none that can be played.
const REFUSED: &[Refused] = &[
    // Numbers that are none.
    (1, "at most a year", &["run 31536001s"]),
    (1, "at most a year", &["run 99999999999999999999s"]),
    (2, "at most a year", &["elect 2 by offers", "guards 1 keep 18446744073709551615s"]),
    (2, "at most a year", &["elect 2 by offers", "late request 1 ping 18446744073709551615s"]),
    (2, "at most a year", &["elect 2 by offers", "late answer 1 ping 18446744073709551615s"]),
    (2, "at most a year", &["stage 1", "until 1 is leading within 18446744073709551615s"]),
    (2, "at most a year", &["elect 2 by offers", "hold no leader for 18446744073709551615s"]),
    (1, "1ms to a year", &["set tick 0s"]),
    (1, "1ms to a year", &["set tick 1us"]),
    (1, "1ms to a year", &["set tick 18446744073709551615s"]),
    (1, "at most a year", &["set latency 18446744073709551615s"]),
    (1, "at most a year", &["set silence 18446744073709551615s"]),
    (1, "10ms to a year", &["set session 0s"]),
    (1, "10ms to a year", &["set session 1us"]),
    (1, "10ms to a year", &["set session 18446744073709551615s"]),
    (1, "10ms to a year", &["set lease 1 1us"]),
    (1, "ticks, at least 1", &["set init 0"]),
    (1, "ticks, at least 1", &["set sync 0"]),
    (1, "an epoch, 0 to 2147483647", &["disk 1 accepted -1 current 0 last 0.0"]),
    (1, "an epoch that was accepted", &["disk 1 accepted 1 current 9223372036854775807 last 0.0"]),
    (1, "an epoch that was accepted", &["disk 1 accepted 1 current 2 last 0.0"]),
    (1, "of an epoch that was accepted", &["disk 1 accepted 1 current 1 last 2.1"]),
    (1, "of an epoch that was accepted", &["disk 1 accepted 1 current 1 last 1.0"]),
    (1, "the next transaction", &["disk 1 accepted 1 current 1 last 1.4294967295 1.4294967295"]),
    (1, "the next transaction", &["disk 1 accepted 1 current 1 last 1.5 1.7"]),
    (1, "a transaction of the log", &["disk 1 accepted 1 current 1 last 1.5 snapshot 1.9 floor"]),
    (1, "a transaction of the log", &["disk 1 accepted 1 current 1 last 1.5 snapshot 0.0"]),
    (1, "no other", &["disk 1 accepted 1 current 1 last 1.5000 snapshot 1.4999"]),
    (1, "a generation", &["disk 1 accepted 1 current 1 last 1.5 voted 3 in 9223372036854775807"]),
    (2, "a generation", &["stage 1", "1 hears 2: GRANTS pre-vote -9223372036854775808"]),
    (2, "a generation", &["stage 1", "1 hears 2: LEADS -9223372036854775808"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: FOLLOWERINFO 4294967296"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: FOLLOWERINFO -9223372036854775808"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: OBSERVERINFO 4294967296"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: LEADERINFO 9223372036854775807"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: NEWLEADER 9223372036854775807"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: ACKEPOCH current 9223372036854775807 last 5.2"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: LOOKING votes 2 zxid 1.1 round 1 epoch -7"]),
    (2, "an epoch, 0 to", &["stage 1", "1 hears 2: REQUEST vote 1 epoch 2147483648 zxid 1.1"]),
    (2, "1 to 199", &["stage 1", "9223372036854775807 connects"]),
    (2, "1 to 199", &["stage 1", "-3 connects"]),
    (2, "who speaks", &["stage 1", "1 hears -9223372036854775808: FOLLOWERINFO 1"]),
    // Ensembles that are none.
    (1, "none could vote", &["groups"]),
    (1, "server.1 is set twice", &["groups 1 1"]),
    (1, "server.1 is set twice", &["servers 3 observers 1"]),
    (1, "server.2 is set twice", &["view 1 servers 3 observers 2"]),
    (1, "is not a weight", &["groups 1=18446744073709551615 2=1"]),
    (1, "add up to more", &["groups 1=9223372036854775807 2=1"]),
    (1, "no quorum is possible", &["groups 1=0 2=0"]),
    (1, "a server", &["groups -5 99999 | "]),
    (1, "1 to 199", &["servers 3 observers 200"]),
    (3, "server.1 is set twice", &["servers 3", "spares 1 2 3", "start 1"]),
    (3, "server.4 is set twice", &["spares 4", "view 4 servers 4", "start 1"]),
    (3, "`view` before it", &["servers 3", "view 9 servers 2", "start 1 2"]),
    (2, "`disk` before it", &["disk 9 accepted 1 current 1 last 0.0", "start 1 2"]),
    (2, "no server 9", &["speak 3.4 9", "start 1 2"]),
    (3, "no server 4", &["start 1 2 3", "until led", "servers 4"]),
    (4, "server.2 is set twice", &["start 2", "run 1s", "# down", "view 1 servers 3 observers 2"]),
    // Settings that go together with nothing, or not with one another.
    (2, "longer than its margin", &["set margin 20s", "elect 2 by lease"]),
    (2, "longer than its margin", &["set margin 20s", "elect 2 by observed"]),
    (2, "`servers` before it", &["servers 9", "elect 2 by offers"]),
    (2, "`set latency` before it", &["set latency 3s", "elect 2 by offers"]),
    (2, "`set lease` before it", &["set lease 2 5s", "elect 2 by lease"]),
    (2, "`set lease` before it", &["set lease 3 5s", "elect 2 by observed"]),
    (2, "`set counter` before it", &["set counter 5", "elect 2 by etcd"]),
    (2, "`set session` before it", &["set session 5s", "start 1"]),
    (2, "`set disk by hand` before it", &["set disk by hand", "start 1"]),
    (2, "`set latency` before it", &["set latency 5ms", "stage 1"]),
    (2, "`disk` before it", &["disk 2 unmarked", "stage 1"]),
    (2, "started already", &["elect 3 by observed", "set session 5s"]),
    (2, "started already", &["stage 1", "set election generation"]),
    (1, "no server 4", &["stage 4"]),
    // Servers that do not exist, or stand elsewhere, or are down.
    (2, "1 to 199", &["start 1 2 3", "pause 200"]),
    (2, "no server 99", &["start 1 2 3", "start 99"]),
    (2, "no server 99", &["start 1 2 3", "pause 99"]),
    (2, "no server 99", &["start 1 2 3", "resume 99"]),
    (2, "no server 99", &["start 1 2 3", "cut 1 -> 99"]),
    (2, "no server 99", &["start 1 2 3", "split 99 | 3"]),
    (2, "no server 99", &["start 1 2 3", "break 1 99"]),
    (2, "no server 99", &["start 1 2 3", "black-hole 99"]),
    (2, "no server 99", &["start 1 2 3", "advertise 99 x:1"]),
    // What changes nothing.
    (2, "server 1 runs", &["start 1 2 3", "start 1"]),
    (2, "server 1 is down", &["start 2 3", "crash 1"]),
    (3, "server 1 is down", &["start 1 2 3", "crash 1", "crash 1 power"]),
    (2, "server 1 is down", &["start 2 3", "restart 1"]),
    (3, "server 1 stands still already", &["start 1 2 3", "pause 1", "pause 1"]),
    (2, "server 1 does not stand still", &["start 1 2 3", "resume 1"]),
    (4, "server 1 is down", &["start 1 2 3", "pause 1", "crash 1", "resume 1"]),
    // What nobody could read as an address.
    (2, "host:port", &["start 1 2 3", "advertise 1 10\u{10}.0.0.2:3888"]),
    (2, "host:port", &["start 1 2 3", "advertise 1 a|b:3888"]),
    (2, "host:port", &["start 1 2 3", "advertise 1 a[:3888"]),
    (2, "host:port", &["start 1 2 3", "advertise 1 a:65536"]),
    (2, "no server 99", &["start 1 2 3", "trap 99 after append"]),
    (2, "no server 99", &["start 1 2 3", "wipe 99"]),
    (2, "no server 99", &["start 1 2 3", "hand over 3 to 99"]),
    (2, "no server 99", &["start 1 2 3", "hand over 99"]),
    (2, "no server 99", &["start 1 2 3", "step down 99"]),
    (2, "no server 99", &["start 1 2 3", "read 99"]),
    (2, "no server 99", &["start 1 2 3", "write 99 x"]),
    (2, "no server 99", &["start 1 2 3", "reconfigure 99 leave 1"]),
    (2, "server 3 is down", &["start 1 2", "read 3"]),
    (2, "server 3 is down", &["start 1 2", "pause 3"]),
    (2, "server 3 is down", &["start 1 2", "step down 3"]),
    (2, "only on a stage", &["start 1 2 3", "write"]),
    (2, "no server 99", &["start 1 2 3", "expect 99 is down"]),
    (2, "no server 99", &["start 1 2 3", "expect log 99 ="]),
    (2, "no server 99", &["start 1 2 3", "expect log 99 ends 0.0"]),
    (2, "no server 99", &["start 1 2 3", "expect next voters 99 = none"]),
    (2, "no server 99", &["start 1 2 3", "expect links 1 99 election = 0"]),
    (2, "no server 99", &["start 1 2 3", "hold links 99 98 quorum = 0 for 1s"]),
    (2, "no server 99", &["start 1 2 3", "until 99 is leading within 100000s"]),
    (2, "no server 99", &["start 1 2 3", "until 1 votes 99"]),
    (2, "no server 99", &["start 1 2 3", "until led by 99"]),
    (2, "candidates of a store", &["start 1 2 3", "until 1 is suspended"]),
    (2, "candidates of a store", &["start 1 2 3", "expect 1 is idle"]),
    (2, "no store", &["start 1 2 3", "expect nodes = 0"]),
    (2, "no write was asked for", &["start 1 2 3", "expect last write open"]),
    (2, "no read was asked for", &["start 1 2 3", "expect last read open"]),
    (2, "no server 7", &["stage 1", "7 hears 2: FOLLOWERINFO 1"]),
    (2, "only server 1 is real", &["stage 1", "3 hears 2: FOLLOWERINFO 1"]),
    (2, "server 1 is real", &["stage 1", "1 hears 1: FOLLOWERINFO 1"]),
    (2, "server 1 is real", &["stage 1", "1 connects"]),
    (2, "no server 77", &["stage 1", "restart 77"]),
    (2, "only server 1 is real", &["stage 1", "expect links 1 2 election = 0"]),
    (2, "only server 1 is real", &["stage 1", "expect 2 is down"]),
    (2, "only server 1 is real", &["stage 1", "expect last write open"]),
    (2, "only server 1 is real", &["stage 1", "until level within 100000s"]),
    (2, "only server 1 is real", &["stage 1", "until led within 100000s"]),
    (2, "only server 1 is real", &["stage 1", "until applied 1 = 0"]),
    (2, "a snapshot here ends", &["stage 1", "snapshot 1.4294967295"]),
    (2, "a snapshot here ends", &["stage 1", "snapshot 1.0"]),
    (
        7,
        "announced no such snapshot",
        &[
            "stage 1",
            "1 hears 2: LOOKING votes 3 zxid 1.3 round 1 epoch 1",
            "1 hears 3: LOOKING votes 3 zxid 1.3 round 1 epoch 1",
            "run 1s",
            "1 hears 3: LEADERINFO 2",
            "1 hears 3: SNAP 2.50",
            "snapshot 3.50",
        ],
    ),
    // What cannot be asked is not waited for.
    (4, "no candidate 7", &["elect 2 by offers", "start 1", "until led", "until 7 is leading"]),
    (2, "asked of servers", &["elect 2 by offers", "until level within 100000s"]),
    (2, "asked of servers", &["elect 2 by offers", "until 1 is following within 100000s"]),
    (2, "asked of servers", &["elect 2 by offers", "expect settled 1 2"]),
    // More than can be read.
    (3, "a year at most", &["start 1 2 3", "run 1s", "hold no leader for 31536000s"]),
    (3, "a year at most", &["elect 2 by offers", "run 31536000us", "run 31536000s"]),
    (3, "1000000 things", &["set tick 1ms", "start 1 2 3", "run 31536000s"]),
    (3, "1000000 things", &["elect 2 by offers", "start 1", "until led by 2 within 31000000s"]),
    (2, "1000000 things", &["stage 1", "hold 1 is looking for 31000000s"]),
    // What is wrong is said in its own words.
    (1, "expected `led`, but no server leads", &["expect\tled"]),
    (1, "expected `led by 2`, but no server leads", &["hold  led by 2 for 4s"]),
    (1, "found `leader`", &["expect leader 2"]),
];

/// Odd, and possible: it comes to its end.
const PLAYED: &[&[&str]] = &[
    &[],
    &["# nothing"],
    &["set init 4294967295", "set sync 4294967295", "start 1 2 3", "run 1s"],
    &["set tick 31536000s", "start 1 2 3", "run 1s"],
    &["set latency 31536000s", "start 1 2 3", "run 1s"],
    &["set silence 31536000s", "start 1 2 3", "until led", "crash 1 power", "run 1s"],
    &["set window 0", "set snap 0", "set stream 0s", "start 1 2 3", "until led", "write 1 x"],
    &["set window 18446744073709551615", "set snap 18446744073709551615", "start 1 2", "until led"],
    &["set seed 18446744073709551615", "set latency 0s", "set silence 0s", "start 1 2 3", "run 9s"],
    &["servers 9 observers 199", "start 1 2 3 4 5", "until led", "servers 1", "run 1s"],
    &["start 1 1 1", "until 1 is looking", "crash 1 1", "run 1s"],
    &["set counter -2147483648", "elect 2 by latch", "start 1 2", "until settled"],
    &["set session 10ms", "elect 2 by offers", "start 1", "run 1s"],
    &["set session 31536000s", "elect 2 by offers", "start 1", "until led"],
    &["elect 2 by offers", "start 1", "late request 1 ping 31536000s", "run 30s"],
    &["elect 2 by offers", "guards 1 keep 31536000s", "start 1", "until led", "stop 1", "run 1s"],
    &["disk 1 accepted 2147483647 current 2147483647 last 2147483647.4294967295", "stage 1"],
    &["stage 1", "1 hears 2: NEWLEADER 2147483647", "run 1s"],
    &["stage 1", "1 hears 2: FOLLOWERINFO 2147483647", "run 1s"],
    &[
        "stage 1",
        "1 hears 2: LOOKING votes 2 zxid 1.4294967295 round 9223372036854775807 epoch 2147483647",
        "run 10s",
    ],
    &["set election generation", "stage 1", "1 hears 2: LEADS 9223372036854775806", "run 10s"],
];

fn play(lines: &[&str]) -> Result<(), ScenarioError> {
    let scenario = Scenario::read("hostile", &lines.join("\n"))?;
    let mut player = Player::new();
    for step in scenario.steps() {
        player.play(step).1.map_err(|problem| scenario.error(step.line, problem))?;
    }
    Ok(())
}

#[test]
fn what_cannot_be_played_is_refused_at_its_line() {
    let mut wrong = Vec::new();
    for (line, said, lines) in REFUSED {
        match std::panic::catch_unwind(|| play(lines)) {
            Ok(Err(error)) if error.line == *line && error.to_string().contains(said) => {}
            Ok(Err(error)) => wrong.push(format!("{lines:?}: {error}, not {line}: … {said} …")),
            Ok(Ok(())) => wrong.push(format!("{lines:?}: is played, not {line}: … {said} …")),
            Err(_) => wrong.push(format!("{lines:?}: panics")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_only_odd_comes_to_its_end() {
    let mut wrong = Vec::new();
    for lines in PLAYED {
        match std::panic::catch_unwind(|| play(lines)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => wrong.push(format!("{lines:?}: {error}")),
            Err(_) => wrong.push(format!("{lines:?}: panics")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The test looks whenever something happens, however short that is.
#[test]
fn what_has_to_hold_holds_at_every_moment() {
    let story = ["start 1", "until led by 1", "start 2", "until settled", "guards 1 keep 2001ms"];
    let lines: Vec<&str> = ["elect 2 by offers"].into_iter().chain(story).collect();
    let lines = [&lines[..], &["stop 1", "hold led for 4s"]].concat();
    let Err(error) = play(&lines) else { panic!("nobody leads between 2029 and 2037 ms") };
    assert_eq!(error.to_string(), "hostile:8: expected `led`, but no candidate leads");
}

/// More happens within one command than a record keeps.
#[test]
fn however_long_a_command_takes_its_beginning_is_told() {
    let text = "servers 3\nset tick 10ms\nstart 1 2 3\nrun 60s";
    let scenario = Scenario::read("long", text).unwrap();
    let mut player = Player::new();
    for step in scenario.steps() {
        player.play(step).1.unwrap();
    }
    let elected = player.moments().iter().find(|moment| moment.topic() == Topic::Phases).unwrap();
    assert!(elected.at < Instant::ORIGIN + Duration::from_secs(1), "{elected}");
}
