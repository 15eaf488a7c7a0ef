//! Commands before the start: members, disks, timing, chance.

use std::time::Duration;

use quorate_core::config::{Election, Generations};
use quorate_core::generation_message::GrantedVote;
use quorate_core::zxid::{Epoch, Zxid};

use super::SURVIVALS;
use crate::disk::Contents;
use crate::ensemble::Ensemble;
use crate::scenario::Problem;
use crate::scenario::command::{self, Setting};
use crate::scenario::words::{Words, server, zxid};

/// The shortest tick: what a [`Config`](quorate_core::config::Config) allows. With less a server does nothing else
/// than look at its clock.
const TICK_MIN: Duration = Duration::from_millis(1);
/// The shortest session, or lease: a few ways there and back. One that is over before an answer has come is
/// renewed again and again, and no candidate ever leads.
const SESSION_MIN: Duration = Duration::from_millis(10);

pub(super) fn servers(words: &mut Words<'_>) -> Result<Ensemble, Problem> {
    let voters = words.take("how many voters, 1 to 9", |word| {
        word.parse().ok().filter(|n| (1..=9).contains(n))
    })?;
    let ensemble = Ensemble::majority(voters);
    let observers = if words.has("observers") { words.ids()? } else { Vec::new() };
    possible(ensemble.with_observers(observers))
}

/// Some servers are no ensemble: one is listed twice, or none has a vote.
fn possible(ensemble: Ensemble) -> Result<Ensemble, Problem> {
    match ensemble.membership() {
        Ok(_) => Ok(ensemble),
        Err(error) => Err(Problem::Impossible(error.to_string())),
    }
}

pub(super) fn groups(words: &mut Words<'_>) -> Result<Ensemble, Problem> {
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

pub(super) fn disk(words: &mut Words<'_>) -> Result<Setting, Problem> {
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
        contents.granted_vote = GrantedVote { generation: words.generation()?, vote };
    }
    Ok(Setting::Disk(id, Box::new(contents)))
}

pub(super) fn setting(words: &mut Words<'_>) -> Result<Setting, Problem> {
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
