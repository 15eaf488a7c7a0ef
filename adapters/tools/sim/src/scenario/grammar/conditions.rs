//! Conditions that a story waits for, holds to, and expects.

use quorate_core::vote::ServerState;

use super::PLANES;
use crate::scenario::Problem;
use crate::scenario::command::{Being, Condition, Expected, Outcome};
use crate::scenario::words::Words;

pub(super) fn expected(words: &mut Words<'_>) -> Result<Expected, Problem> {
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
