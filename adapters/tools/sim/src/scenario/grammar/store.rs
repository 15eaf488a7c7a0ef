//! Commands that act on candidates that elect through a store, and on their calls.

use crate::scenario::Problem;
use crate::scenario::command::Command;
use crate::scenario::words::Words;
use crate::store::{CallFault, CallKind, Leg};

const CALL_KINDS: [(&str, CallKind); 7] = [
    ("root", CallKind::Root),
    ("create", CallKind::Create),
    ("list", CallKind::List),
    ("read", CallKind::Read),
    ("write", CallKind::Write),
    ("delete", CallKind::Delete),
    ("ping", CallKind::Ping),
];
/// What is done through a store, if the next word is one of these commands.
pub(super) fn command(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
        "stop" => Command::Stop(words.ids()?),
        "lose" => fault(words, false)?,
        "late" => fault(words, true)?,
        "delete" => Command::Delete(words.id()?),
        "end" => Command::End(words.id()?),
        "linger" => Command::Linger(!words.has("off")),
        "guards" => {
            let id = words.id()?;
            words.word("keep")?;
            Command::Guards(id, words.duration()?)
        }
        _ => return Ok(None),
    }))
}

/// What becomes of a call: it is lost, or it is late.
fn fault(words: &mut Words<'_>, late: bool) -> Result<Command, Problem> {
    let part = words.one_of(&[("request", Leg::Request), ("answer", Leg::Answer)])?;
    let id = words.id()?;
    let kind = words.one_of(&CALL_KINDS)?;
    let what = if late { CallFault::Late(words.duration()?) } else { CallFault::Lost };
    Ok(Command::CallFault { id, kind, part, what })
}
