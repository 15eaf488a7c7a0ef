//! The grammar of a line of a story, by section of [`COMMANDS`].

mod actions;
mod beginning;
mod conditions;
mod stage;
mod store;

use std::time::Duration;

use quorate_core::input::Plane;
use quorate_core::recipe::lease::Expiry;
use quorate_core::recipe::offer::Naming;

use super::Problem;
use super::command::{Command, Demand, Means, Setting};
use super::words::Words;
use crate::disk::Survival;
use crate::network::Dialect;
use crate::record::Topic;

/// Every command, for people.
pub const COMMANDS: &str = "\
before anything starts
  servers 5 [observers 6 7]        how many vote (1 to 9), and who does not; later: the files say so now
  groups 1 2 3 | 4 5 6=0           groups of voters; 6 has weight 0, the others 1
  view 1 servers 2                 the configuration of server 1 says something else (also while it is down)
  spares 4 5                       these are no members at first, and know those who are
  disk 2 accepted 1 current 1 last 1.5 [2.1 2.2] [snapshot 1.3 [floor]] [voted 3 in 7]
  speak 3.4|3.5|3.8 1 2            these say and understand what that ZooKeeper does
  disk 2 unmarked                  empty, and it may not always have been (db.autocreate=false)
  set tick 200ms | init 10 | sync 5 | latency 1ms | silence 5s | stream 50ms | window 5 | snap 20 |
      crash nothing|prefix|any|everything | settle off | reconfig on | seed 7 | disk by hand |
      election generation | session 10s | lease 2 30s | margin 1s | counter 2147483647
  stage 1                          only server 1 is real, the others are scripted
  elect 3 by offers|java|session|latch|kazoo|etcd|lease|observed      no servers: candidates that elect through a
                                   store, each with a node in a row, or all for one lease
  show nothing | votes phases messages disk deliveries clients links | all
what is done
  start 1 2 3      crash 3 [power]      restart 3      wipe 3      pause 3      resume 3
  trap 1 before|after accepted-epoch|current-epoch|append|install|LEADERINFO|ACK|NEWLEADER
  cut 1 -> 2       cut 1 <-> 2          split 1 2 | 3 4 5          break 1 2    heal
  black-hole 3 [off]                    advertise 1 0.0.0.0:3888
  non_members 1 tell 2 election|quorum ffff0001 00…               (bytes, one piece after the other)
  write 1 x        read 1               hand over 3 [to 2]         step down 3
  reconfigure 3 [join 4 5] [observe 6] [leave 1 2]
  run 200ms        until CONDITION [within 5s]      hold CONDITION for 5s      expect CONDITION
on a stage
  1 hears 2: LOOKING votes 3 zxid 1.5 round 1 epoch 1     (or FOLLOWING 3 …, LEADING 2 …)
  1 hears 3: FOLLOWERINFO 5 | OBSERVERINFO 5 | LEADERINFO 6 | ACKEPOCH current 5 last 5.2 |
      ACKEPOCH again last 5.2 | DIFF 1.2 | TRUNC 1.2 | SNAP 1.2 | PROPOSAL 1.3 | COMMIT 1.3 |
      INFORM 1.3 | NEWLEADER 2 | UPTODATE | ACK 2.1
  1 hears 2: REQUEST vote|pre-vote 6 epoch 5 zxid 5.2 | GRANTS vote|pre-vote 6 [seen 6] |
      REFUSES vote|pre-vote 6 [seen 9] | FOLLOWS 3 in 6 | FOLLOWS nobody in 6 | LEADS 6
  3 connects       3 hangs up           snapshot 1.5       sync    write       restart 1 [nothing]
through a store
  start 1 2        stop 1 2        crash 1        pause 1        resume 1
  cut 1            break 1         heal           nothing passes to the store; the connection breaks; all is well
  lose request|answer 1 root|create|list|read|write|delete|ping      the next such call, with the connection
  late request|answer 1 ping 5s    it comes so much later: a request with all behind it, also when the connection is
                                   lost; an answer on its own
  delete 1         end 1           an operator deletes its nodes, or ends its session
  linger [off]                     nodes of sessions that are over stay in the store
  guards 1 keep 3s                 so long its guarded work takes to end
conditions
  led [by 3]   no leader   settled [1 2 3]   level
  1 is looking|following|leading|observing|serving|not-serving|down
  1 follows 3   1 in round 2   1 votes 3   links 1 2 election|quorum = 1
  voters 1 = 1 2 3   next voters 1 = 3 4 5 | none
  log 1 = 1.1 1.2   log 1 ends 1.5   disk 1 accepted 2 current 1   applied 3 = 5   committed 1.5
  last write done [1.5]|accepted|refused|lost|open         last read done [1.5]|refused|open
  1 is leading|suspended|waiting|stopped|down|working|idle          led   no leader   settled
  nodes = 2   nodes of 1 = 1   made = 5   terms = 2                 (through a store)";

/// How long `until` waits if nothing is said.
const PATIENCE: Duration = Duration::from_secs(30);

const SURVIVALS: [(&str, Survival); 4] = [
    ("nothing", Survival::Nothing),
    ("prefix", Survival::Prefix),
    ("any", Survival::Any),
    ("everything", Survival::Everything),
];

const MEANS: [(&str, Means); 8] = [
    ("offers", Means::Offers(Naming::Guid)),
    ("java", Means::Offers(Naming::Java)),
    ("session", Means::Offers(Naming::Session)),
    ("latch", Means::Offers(Naming::Latch)),
    ("kazoo", Means::Offers(Naming::Kazoo)),
    ("etcd", Means::Offers(Naming::Lease)),
    ("lease", Means::Lease(Expiry::Store)),
    ("observed", Means::Lease(Expiry::Observed)),
];

const PLANES: [(&str, Plane); 2] = [("election", Plane::Election), ("quorum", Plane::Quorum)];

/// Reads a line.
pub(super) fn demand(text: &str) -> Result<Demand, Problem> {
    let mut words = Words::new(text);
    let read = one(&mut words)?;
    words.end()?;
    Ok(read)
}

fn one(words: &mut Words<'_>) -> Result<Demand, Problem> {
    let start = *words;
    Ok(match words.next().unwrap_or_default() {
        "servers" => Demand::Set(Setting::Servers(beginning::servers(words)?)),
        "groups" => Demand::Set(Setting::Servers(beginning::groups(words)?)),
        "view" => {
            let id = words.id()?;
            words.word("servers")?;
            Demand::Set(Setting::View(id, beginning::servers(words)?))
        }
        "spares" => Demand::Set(Setting::Spares(words.ids()?)),
        "speak" => {
            let known = [
                ("3.4", Dialect::V34),
                ("3.5", Dialect::V35),
                ("3.8", Dialect::V38),
                ("earlier", Dialect::Earlier),
            ];
            let dialect = words.one_of(&known)?;
            Demand::Set(Setting::Speak(dialect, words.ids()?))
        }
        "disk" => Demand::Set(beginning::disk(words)?),
        "set" => Demand::Set(beginning::setting(words)?),
        "stage" => Demand::Stage(words.id()?),
        "elect" => {
            let count = words.take("how many candidates, 1 to 9", |word| {
                word.parse().ok().filter(|n| (1..=9).contains(n))
            })?;
            words.word("by")?;
            Demand::Elect(count, words.one_of(&MEANS)?)
        }
        "show" => Demand::Show(topics(words)?),
        "run" => Demand::Run(words.duration()?),
        "until" => {
            let expected = conditions::expected(words)?;
            let limit = if words.has("within") { words.duration()? } else { PATIENCE };
            Demand::Until(expected, limit)
        }
        "hold" => {
            let expected = conditions::expected(words)?;
            words.word("for")?;
            Demand::Holds(expected, words.duration()?)
        }
        "expect" => Demand::Expect(conditions::expected(words)?),
        _ => {
            *words = start;
            Demand::Do(command(words)?)
        }
    })
}

fn command(words: &mut Words<'_>) -> Result<Command, Problem> {
    if words.peek().is_some_and(|word| word.parse::<i64>().is_ok()) {
        let id = words.id()?;
        return stage::said(id, words);
    }
    let start = *words;
    let sections =
        [actions::servers, actions::network, actions::clients, stage::command, store::command];
    for section in sections {
        if let Some(command) = section(words)? {
            return Ok(command);
        }
        *words = start;
    }
    Err(start.wrong("a command"))
}

fn topics(words: &mut Words<'_>) -> Result<Vec<Topic>, Problem> {
    const KNOWN: [(&str, Option<Topic>); 8] = [
        ("votes", Some(Topic::Votes)),
        ("phases", Some(Topic::Phases)),
        ("messages", Some(Topic::Messages)),
        ("disk", Some(Topic::Disk)),
        ("deliveries", Some(Topic::Deliveries)),
        ("clients", Some(Topic::Clients)),
        ("links", Some(Topic::Rest)),
        ("all", None),
    ];
    if words.has("nothing") {
        return Ok(vec![Topic::Fate]);
    }
    let mut topics = vec![Topic::Fate];
    while topics.len() == 1 || words.peek().is_some() {
        match words.one_of(&KNOWN)? {
            Some(topic) => topics.push(topic),
            None => topics.extend(Topic::ALL),
        }
    }
    Ok(topics)
}
