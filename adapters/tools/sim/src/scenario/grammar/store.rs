//! What is done to candidates that elect through a store, and to their calls on it.

use crate::scenario::Problem;
use crate::scenario::command::Command;
use crate::scenario::words::Words;
use crate::store::{Errand, Mishap, Part};

const ERRANDS: [(&str, Errand); 7] = [
    ("root", Errand::Root),
    ("create", Errand::Create),
    ("list", Errand::List),
    ("read", Errand::Read),
    ("write", Errand::Write),
    ("delete", Errand::Delete),
    ("ping", Errand::Ping),
];
/// What is done through a store, if the next word is one of these commands.
pub(super) fn command(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
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
        _ => return Ok(None),
    }))
}

/// What becomes of a call: it is lost, or it is late.
fn mishap(words: &mut Words<'_>, late: bool) -> Result<Command, Problem> {
    let part = words.one_of(&[("request", Part::Request), ("answer", Part::Answer)])?;
    let id = words.id()?;
    let errand = words.one_of(&ERRANDS)?;
    let what = if late { Mishap::Late(words.duration()?) } else { Mishap::Lost };
    Ok(Command::Mishap { id, errand, part, what })
}
