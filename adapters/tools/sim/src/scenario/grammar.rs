//! What can stand in a line.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::ballot::{Ballot, Body, Claim, Generation, Letter, Poll};
use quorate_core::config::{Election, Generations};
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, Message, Packet};
use quorate_core::recipe::lease::Expiry;
use quorate_core::recipe::offer::Naming;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::vote::ServerState;
use quorate_core::wire::{decode_introduction, encode_introduction};
use quorate_core::zxid::{Epoch, Zxid};

use super::Problem;
use super::command::{
    self, Being, Command, Condition, Demand, Expected, Line, Means, Outcome, Point, Setting, Trap,
};
use super::words::{Words, server, zxid};
use crate::disk::{Contents, Survival};
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::network::Dialect;
use crate::record::Topic;
use crate::stage::{learner_info, says};
use crate::store::{Errand, Mishap, Part};

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
  strangers 1 tell 2 election|quorum ffff0001 00…               (bytes, one piece after the other)
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

/// The shortest tick: what a [`Config`](quorate_core::config::Config) allows. With less a server does nothing else
/// than look at its clock.
const TICK_MIN: Duration = Duration::from_millis(1);
/// The shortest session, or lease: a few ways there and back. One that is over before an answer has come is
/// renewed again and again, and nobody ever leads.
const SESSION_MIN: Duration = Duration::from_millis(10);

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

const ERRANDS: [(&str, Errand); 7] = [
    ("root", Errand::Root),
    ("create", Errand::Create),
    ("list", Errand::List),
    ("read", Errand::Read),
    ("write", Errand::Write),
    ("delete", Errand::Delete),
    ("ping", Errand::Ping),
];
const PLANES: [(&str, Plane); 2] = [("election", Plane::Election), ("quorum", Plane::Quorum)];

const STATES: [(&str, ServerState); 4] = [
    ("LOOKING", ServerState::Looking),
    ("FOLLOWING", ServerState::Following),
    ("LEADING", ServerState::Leading),
    ("OBSERVING", ServerState::Observing),
];

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
        "servers" => Demand::Set(Setting::Servers(servers(words)?)),
        "groups" => Demand::Set(Setting::Servers(groups(words)?)),
        "view" => {
            let id = words.id()?;
            words.word("servers")?;
            Demand::Set(Setting::View(id, servers(words)?))
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
        "disk" => Demand::Set(disk(words)?),
        "set" => Demand::Set(setting(words)?),
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
            let expected = expected(words)?;
            let limit = if words.has("within") { words.duration()? } else { PATIENCE };
            Demand::Until(expected, limit)
        }
        "hold" => {
            let expected = expected(words)?;
            words.word("for")?;
            Demand::Holds(expected, words.duration()?)
        }
        "expect" => Demand::Expect(expected(words)?),
        _ => {
            *words = start;
            Demand::Do(command(words)?)
        }
    })
}

fn command(words: &mut Words<'_>) -> Result<Command, Problem> {
    if words.peek().is_some_and(|word| word.parse::<i64>().is_ok()) {
        let id = words.id()?;
        return said(id, words);
    }
    let start = *words;
    Ok(match words.next().unwrap_or_default() {
        "start" => Command::Start(words.ids()?),
        "crash" => {
            let ids = words.ids()?;
            let power = words.has("power");
            Command::Crash(ids, if power { CrashKind::Power } else { CrashKind::Process })
        }
        "restart" => {
            let ids = words.ids()?;
            let survival = words.peek().is_some().then(|| words.one_of(&SURVIVALS));
            Command::Restart(ids, survival.transpose()?)
        }
        "trap" => Command::Trap(words.id()?, trap(words)?),
        "wipe" => Command::Wipe(words.id()?),
        "pause" => Command::Pause(words.id()?),
        "resume" => Command::Resume(words.id()?),
        "stop" => Command::Stop(words.ids()?),
        "lose" => mishap(words, false)?,
        "late" => mishap(words, true)?,
        "delete" => Command::Delete(words.id()?),
        "end" => Command::End(words.id()?),
        "linger" => Command::Linger(!words.has("off")),
        "guards" => {
            let id = words.id()?;
            words.word("keep")?;
            Command::Guards(id, words.duration()?)
        }
        "cut" => {
            let a = words.id()?;
            if words.peek().is_none() {
                return Ok(Command::CutOff(a));
            }
            let both = words.one_of(&[("->", false), ("<->", true)])?;
            let b = words.id()?;
            Command::Cut(if both { vec![(a, b), (b, a)] } else { vec![(a, b)] })
        }
        "split" => {
            let mut groups = vec![words.ids()?];
            while words.has("|") {
                groups.push(words.ids()?);
            }
            Command::Split(groups)
        }
        "break" => {
            let a = words.id()?;
            if words.peek().is_none() {
                return Ok(Command::BreakOff(a));
            }
            Command::Break(a, words.id()?)
        }
        "heal" => Command::Heal,
        "strangers" => {
            let crowd = words.take("how many, 1 to 1000", |word| {
                word.parse().ok().filter(|n| (1..=1000).contains(n))
            })?;
            words.word("tell")?;
            let (to, plane) = (words.id()?, words.one_of(&PLANES)?);
            let mut pieces = Vec::new();
            while words.peek().is_some() {
                pieces.push(words.take("bytes, two digits each", bytes)?);
            }
            Command::Strangers { crowd, to, plane, pieces }
        }
        "black-hole" => Command::BlackHole(words.id()?, !words.has("off")),
        "advertise" => Command::Advertise(words.id()?, words.take("host:port", address)?),
        "write" if words.peek().is_none() => Command::WriteHere,
        "write" => Command::Write(words.id()?, words.take("one letter", letter)?),
        "read" => Command::Read(words.id()?),
        "hand" => {
            words.word("over")?;
            let from = words.id()?;
            let to = if words.has("to") { Some(words.id()?) } else { None };
            Command::HandOver(from, to)
        }
        "reconfigure" => Command::Reconfigure(words.id()?, reconfiguration(words)?),
        "step" => {
            words.word("down")?;
            Command::StepDown(words.id()?)
        }
        "snapshot" => Command::Snapshot(words.zxid()?),
        "sync" => Command::Sync,
        _ => return Err(start.wrong("a command")),
    })
}

/// What becomes of a call: it is lost, or it is late.
fn mishap(words: &mut Words<'_>, late: bool) -> Result<Command, Problem> {
    let part = words.one_of(&[("request", Part::Request), ("answer", Part::Answer)])?;
    let id = words.id()?;
    let errand = words.one_of(&ERRANDS)?;
    let what = if late { Mishap::Late(words.duration()?) } else { Mishap::Lost };
    Ok(Command::Mishap { id, errand, part, what })
}

fn reconfiguration(words: &mut Words<'_>) -> Result<Reconfiguration, Problem> {
    let (mut joining, mut leaving) = (Vec::new(), Vec::new());
    while joining.is_empty() && leaving.is_empty() || words.peek().is_some() {
        match words.one_of(&[("join", 0), ("observe", 1), ("leave", 2)])? {
            2 => leaving.extend(words.ids()?.into_iter().map(command::id)),
            role => {
                let ids = words.ids()?.into_iter().map(command::id);
                joining.extend(ids.map(|id| Ensemble::member(id, role == 0)));
            }
        }
    }
    Ok(Reconfiguration::change(joining, leaving))
}

/// An address that others can read where a server introduces itself with it.
fn address(word: &str) -> Option<HostPort> {
    let (host, port) = word.rsplit_once(':')?;
    let address = HostPort { host: host.to_owned(), port: port.parse().ok()? };
    let introduction = Introduction { id: ServerId(1), addresses: vec![address.clone()] };
    let mut bytes = BytesMut::from(encode_introduction(&introduction));
    decode_introduction(&mut bytes).is_ok().then_some(address)
}

fn letter(word: &str) -> Option<u8> {
    let [letter] = word.as_bytes() else { return None };
    letter.is_ascii_alphanumeric().then_some(*letter)
}

fn bytes(word: &str) -> Option<Bytes> {
    let digits = word.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    digits.map(byte).collect()
}

fn servers(words: &mut Words<'_>) -> Result<Ensemble, Problem> {
    let voters = words.take("how many voters, 1 to 9", |word| {
        word.parse().ok().filter(|n| (1..=9).contains(n))
    })?;
    let ensemble = Ensemble::majority(voters);
    let observers = if words.has("observers") { words.ids()? } else { Vec::new() };
    possible(ensemble.with_observers(observers))
}

/// Some servers are no ensemble: one has two seats, or nobody has a vote.
fn possible(ensemble: Ensemble) -> Result<Ensemble, Problem> {
    match ensemble.membership() {
        Ok(_) => Ok(ensemble),
        Err(error) => Err(Problem::Impossible(error.to_string())),
    }
}

fn groups(words: &mut Words<'_>) -> Result<Ensemble, Problem> {
    let weighted = |word: &str| -> Option<(i64, u64)> {
        let (id, weight) = word.split_once('=').unwrap_or((word, "1"));
        Some((server(id)?, weight.parse().ok()?))
    };
    let mut groups: Vec<Vec<(i64, u64)>> = vec![Vec::new()];
    while words.peek().is_some() {
        if words.has("|") {
            groups.push(Vec::new());
        } else if let Some(group) = groups.last_mut() {
            group.push(words.take("a server, `6` or `6=0`", weighted)?);
        }
    }
    let groups: Vec<&[(i64, u64)]> = groups.iter().map(Vec::as_slice).collect();
    possible(Ensemble::hierarchical(&groups))
}

fn disk(words: &mut Words<'_>) -> Result<Setting, Problem> {
    let id = words.id()?;
    if words.has("unmarked") {
        return Ok(Setting::Disk(id, Box::new(Contents::unmarked())));
    }
    words.word("accepted")?;
    let accepted = words.epoch()?;
    words.word("current")?;
    let current = words.take("an epoch that was accepted", |word| {
        word.parse().ok().map(Epoch).filter(|epoch| (Epoch::ZERO..=accepted).contains(epoch))
    })?;
    words.word("last")?;
    // What no server could have written is no disk of one.
    let last = words.take("a transaction of an epoch that was accepted, or `0.0`", |word| {
        let is_one = |zxid: &Zxid| *zxid == Zxid::ZERO || !zxid.is_epoch_start();
        zxid(word).filter(|zxid| is_one(zxid) && zxid.epoch() <= accepted)
    })?;
    let mut contents = Contents::ending(accepted.0, current.0, last);
    while words.peek().is_some_and(|word| zxid(word).is_some()) {
        let next = words.take("the next transaction of an epoch", |word| {
            let follows = |zxid: &Zxid| zxid.follows(contents.last());
            zxid(word).filter(|zxid| follows(zxid) && zxid.epoch() <= accepted)
        })?;
        contents = contents.and(next.epoch().0);
    }
    if words.has("snapshot") {
        if !contents.snapshots.is_empty() {
            let why = "so long a history begins with a snapshot, and there is no other";
            return Err(Problem::Impossible(why.to_owned()));
        }
        let label = words.take("a transaction of the log", |word| {
            zxid(word).filter(|zxid| contents.get(*zxid).is_some())
        })?;
        contents = contents.with_snapshot(label);
        if words.has("floor") {
            contents = contents.with_floor(label);
        }
    }
    if words.has("voted") {
        let vote = command::id(words.id()?);
        words.word("in")?;
        contents.ballot = Ballot { generation: words.generation()?, vote };
    }
    Ok(Setting::Disk(id, Box::new(contents)))
}

fn setting(words: &mut Words<'_>) -> Result<Setting, Problem> {
    let start = *words;
    Ok(match words.next().unwrap_or_default() {
        "seed" => Setting::Seed(words.number("a seed")?),
        "tick" => Setting::Tick(words.period(TICK_MIN)?),
        "init" => Setting::InitLimit(words.at_least(1, "ticks")?),
        "sync" => Setting::SyncLimit(words.at_least(1, "ticks")?),
        "latency" => Setting::Latency(words.duration()?),
        "silence" => Setting::Silence(words.duration()?),
        "stream" => Setting::Stream(words.duration()?),
        "window" => Setting::Window(words.number("how many transactions")?),
        "snap" => Setting::Snap(words.number("how many transactions")?),
        "crash" => Setting::Crash(words.one_of(&SURVIVALS)?),
        "settle" => Setting::Settle(words.one_of(&[("off", false), ("on", true)])?),
        "election" => {
            words.word("generation")?;
            Setting::Election(Election::Generation(Generations::default()))
        }
        "session" => Setting::Session(words.period(SESSION_MIN)?),
        "lease" => Setting::Lease(words.id()?, words.period(SESSION_MIN)?),
        "margin" => Setting::Margin(words.duration()?),
        "counter" => Setting::Counter(words.number("a counter")?),
        "reconfig" => Setting::Reconfig(words.one_of(&[("off", false), ("on", true)])?),
        "disk" => {
            words.word("by")?;
            words.word("hand")?;
            Setting::DiskByHand
        }
        _ => {
            return Err(start.wrong(
                "`seed`, `tick`, `init`, `sync`, `latency`, `silence`, `stream`, `window`, `snap`, \
                 `crash`, `settle`, `election`, `reconfig`, `disk`, `session`, `lease`, `margin` or \
                 `counter`",
            ));
        }
    })
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

fn trap(words: &mut Words<'_>) -> Result<Trap, Problem> {
    let after = words.one_of(&[("before", false), ("after", true)])?;
    let at = words.one_of(&[
        ("accepted-epoch", Point::AcceptedEpoch),
        ("current-epoch", Point::CurrentEpoch),
        ("append", Point::Append),
        ("install", Point::Install),
        ("LEADERINFO", Point::LeaderInfo),
        ("ACK", Point::Ack),
        ("NEWLEADER", Point::NewLeader),
    ])?;
    Ok(Trap { after, at })
}

fn expected(words: &mut Words<'_>) -> Result<Expected, Problem> {
    let start = *words;
    let condition = condition(words)?;
    Ok(Expected { condition, said: words.since(&start).to_owned() })
}

fn condition(words: &mut Words<'_>) -> Result<Condition, Problem> {
    if words.peek().is_some_and(|word| word.parse::<i64>().is_ok()) {
        return of_one(words);
    }
    let start = *words;
    Ok(match words.next().unwrap_or_default() {
        "led" => Condition::Led(if words.has("by") { Some(words.id()?) } else { None }),
        "no" => {
            words.word("leader")?;
            Condition::NoLeader
        }
        "settled" => Condition::Settled(words.maybe_ids()),
        "level" => Condition::Level,
        "links" => {
            let (a, b, plane) = (words.id()?, words.id()?, words.one_of(&PLANES)?);
            words.word("=")?;
            Condition::Links(a, b, plane, words.number("how many connections")?)
        }
        "log" => {
            let id = words.id()?;
            if words.one_of(&[("=", true), ("ends", false)])? {
                Condition::LogIs(id, words.zxids())
            } else {
                Condition::LogEnds(id, words.zxid()?)
            }
        }
        "disk" => {
            let id = words.id()?;
            words.word("accepted")?;
            let accepted = words.epoch()?;
            words.word("current")?;
            Condition::Epochs(id, accepted, words.epoch()?)
        }
        "applied" => {
            let id = words.id()?;
            words.word("=")?;
            Condition::Applied(id, words.number("how many transactions")?)
        }
        "voters" => {
            let id = words.id()?;
            words.word("=")?;
            Condition::Voters(id, words.ids()?)
        }
        "next" => {
            words.word("voters")?;
            let id = words.id()?;
            words.word("=")?;
            let none = words.has("none");
            Condition::NextVoters(id, if none { Vec::new() } else { words.ids()? })
        }
        "committed" => Condition::Committed(words.zxid()?),
        "nodes" => {
            let whose = if words.has("of") { Some(words.id()?) } else { None };
            let count = number(words, "how many nodes")?;
            whose.map_or(Condition::Nodes(count), |id| Condition::NodesOf(id, count))
        }
        "made" => Condition::Made(number(words, "how many nodes")?),
        "terms" => Condition::Terms(number(words, "how many terms")?),
        "last" => {
            let write = words.one_of(&[("write", true), ("read", false)])?;
            let outcome = outcome(words)?;
            if write { Condition::LastWrite(outcome) } else { Condition::LastRead(outcome) }
        }
        _ => return Err(start.wrong("a condition")),
    })
}

/// `= 5`.
fn number(words: &mut Words<'_>, what: &str) -> Result<u64, Problem> {
    words.word("=")?;
    words.number(what)
}

fn of_one(words: &mut Words<'_>) -> Result<Condition, Problem> {
    let id = words.id()?;
    let start = *words;
    Ok(match words.next().unwrap_or_default() {
        "is" => Condition::Is(
            id,
            words.one_of(&[
                ("looking", Being::In(ServerState::Looking)),
                ("following", Being::In(ServerState::Following)),
                ("leading", Being::In(ServerState::Leading)),
                ("observing", Being::In(ServerState::Observing)),
                ("serving", Being::Serving),
                ("not-serving", Being::NotServing),
                ("down", Being::Down),
                ("suspended", Being::Suspended),
                ("waiting", Being::Waiting),
                ("stopped", Being::Stopped),
                ("working", Being::Working),
                ("idle", Being::Idle),
            ])?,
        ),
        "follows" => Condition::Follows(id, words.id()?),
        "votes" => Condition::Votes(id, words.id()?),
        "in" => {
            words.word("round")?;
            Condition::Round(id, words.number("a round")?)
        }
        _ => return Err(start.wrong("`is`, `follows`, `votes` or `in round`")),
    })
}

fn outcome(words: &mut Words<'_>) -> Result<Outcome, Problem> {
    let outcome = words.one_of(&[
        ("done", Outcome::Done(None)),
        ("accepted", Outcome::Accepted),
        ("refused", Outcome::Refused),
        ("lost", Outcome::Lost),
        ("unknown", Outcome::Unknown),
        ("open", Outcome::Open),
    ])?;
    if outcome == Outcome::Done(None) && words.peek().is_some_and(|word| word.contains('.')) {
        return Ok(Outcome::Done(Some(words.zxid()?)));
    }
    Ok(outcome)
}

/// `3 connects`, `3 hangs up`, `1 hears 2: …`.
fn said(id: i64, words: &mut Words<'_>) -> Result<Command, Problem> {
    match words.one_of(&[("hears", 0), ("connects", 1), ("hangs", 2)])? {
        0 => {
            let peer =
                words.take("who speaks, say `2:`", |word| server(word.strip_suffix(':')?))?;
            Ok(Command::Hears { id, peer, line: line(peer, words)? })
        }
        1 => Ok(Command::Connects(id)),
        _ => {
            words.word("up")?;
            Ok(Command::HangsUp(id))
        }
    }
}

fn line(peer: i64, words: &mut Words<'_>) -> Result<Line, Problem> {
    if let Some((_, state)) = STATES.into_iter().find(|(name, _)| words.peek() == Some(*name)) {
        words.next();
        return notification(state, words);
    }
    if let Some(letter) = letter_of(peer, words)? {
        return Ok(letter);
    }
    let start = *words;
    let packet = match words.next().unwrap_or_default() {
        "FOLLOWERINFO" => Packet::FollowerInfo(learner_info(peer, words.epoch()?.0)),
        "OBSERVERINFO" => Packet::ObserverInfo(learner_info(peer, words.epoch()?.0)),
        "LEADERINFO" => {
            let epoch = words.epoch()?;
            Packet::LeaderInfo { epoch, protocol: learner_info(peer, 0).protocol }
        }
        "ACKEPOCH" => {
            let current_epoch = if words.has("again") {
                None
            } else {
                words.word("current")?;
                Some(words.epoch()?)
            };
            words.word("last")?;
            Packet::AckEpoch { last: words.zxid()?, current_epoch }
        }
        "DIFF" => Packet::Diff(words.zxid()?),
        "TRUNC" => Packet::Trunc(words.zxid()?),
        "SNAP" => Packet::snap(words.zxid()?),
        "PROPOSAL" => return Ok(Line::Proposal(words.zxid()?)),
        "INFORM" => return Ok(Line::Inform(words.zxid()?)),
        "COMMIT" => Packet::Commit(words.zxid()?),
        "NEWLEADER" => {
            let zxid = Zxid::start_of(words.epoch()?);
            Packet::NewLeader { zxid, config: Bytes::new() }
        }
        "UPTODATE" => Packet::UpToDate,
        "ACK" => Packet::Ack(words.zxid()?),
        _ => return Err(start.wrong("a state or the name of a packet or letter")),
    };
    Ok(Line::Ready(Message::Packet(packet)))
}

/// What is said in elections by generation, if this is.
fn letter_of(peer: i64, words: &mut Words<'_>) -> Result<Option<Line>, Problem> {
    let letter = |generation, body, claim| {
        let from = command::id(peer);
        let config = Bytes::new();
        let letter = Letter { from, generation, claim, body, config, knows_probes: false };
        Some(Line::Ready(Message::Letter(letter)))
    };
    let unknown = Claim { current_epoch: Epoch::ZERO, last: Zxid::ZERO };
    let kind = [("vote", false), ("pre-vote", true)];
    let answers = [("REFUSES", false), ("GRANTS", true)];
    if let Some((name, granted)) = answers.into_iter().find(|(name, _)| words.peek() == Some(name))
    {
        words.word(name)?;
        let pre = words.one_of(&kind)?;
        let asked = words.generation()?;
        // Nobody is in a generation for having been asked for a pre-vote in it.
        let own = Generation((asked.0 - i64::from(pre)).max(0));
        let seen = if words.has("seen") { words.generation()? } else { own };
        return Ok(Some(Line::Answer { granted, pre, asked, seen }));
    }
    Ok(if words.has("REQUEST") {
        let pre = words.one_of(&kind)?;
        let wanted = words.generation()?;
        words.word("epoch")?;
        let current_epoch = words.epoch()?;
        words.word("zxid")?;
        let claim = Claim { current_epoch, last: words.zxid()? };
        letter(wanted, Body::Request(Poll { generation: wanted, attempt: 1, pre }), claim)
    } else if words.has("LEADS") {
        let leader = command::id(peer);
        letter(words.generation()?, Body::Standing { leader, beat: 1 }, unknown)
    } else if words.has("FOLLOWS") {
        let leader = if words.has("nobody") { ServerId::NOBODY } else { command::id(words.id()?) };
        words.word("in")?;
        letter(words.generation()?, Body::Standing { leader, beat: 0 }, unknown)
    } else {
        None
    })
}

fn notification(state: ServerState, words: &mut Words<'_>) -> Result<Line, Problem> {
    if state == ServerState::Looking {
        words.word("votes")?;
    }
    let leader = words.id()?;
    words.word("zxid")?;
    let zxid = words.zxid()?;
    words.word("round")?;
    let round = words.number("a round")?;
    words.word("epoch")?;
    let epoch = words.epoch()?.0;
    let said = says(state, leader, epoch, zxid.0, round);
    Ok(Line::Ready(Message::Notification(said)))
}
