//! The lines of quorate's servers: the text on stderr, one JSON object a line, and what `serve --json` writes.
//!
//! A change reads alike in all of them: `vote A -> B`, its round, its reason.

use quorate_core::id::ServerId;
use quorate_core::report::How;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};
use serde_json::Value;

use crate::event::{Said, What};
use crate::stamp::{self, Stamp};

/// What a line of text says, behind its time.
pub(crate) fn read(text: &str) -> Option<Said> {
    if let Some((_, rest)) = text.split_once("server starts ") {
        return Some(Said { what: What::Started, own: field(rest, "sid=") });
    }
    if let Some((_, rest)) = text.split_once("server ends ") {
        return Some(Said { what: What::Stopped, own: field(rest, "sid=") });
    }
    let (_, told) = text.split_once("drive::publish: ")?;
    let (change, rest) = told.split_once(" event=").or_else(|| told.split_once(" sid="))?;
    let fields = told.get(change.len()..)?;
    let why = rest.split_once("reason=").map_or("", |(_, why)| why.trim_end());
    let round = field(fields, " round=").map(|ServerId(round)| Round(round));
    let what = changed(change, why, round.unwrap_or_default())?;
    Some(Said { what, own: field(fields, " sid=") })
}

/// What a JSON object says, and when. The time of `serve --json` begins with its server, in 1970.
pub(crate) fn read_json(line: &str) -> Option<(Stamp, Said)> {
    let object: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let number = |key: &str| object.get(key).and_then(Value::as_i64);
    if let Some(at) = text("ts") {
        let (stamp, _) = stamp::read(at)?;
        let round = Round(number("round").unwrap_or_default());
        let what = match text("event") {
            Some("server.starting") => What::Started,
            Some("server.stopped") => What::Stopped,
            _ => changed(text("msg")?, text("reason").unwrap_or_default(), round)?,
        };
        return Some((stamp, Said { what, own: number("sid").map(ServerId) }));
    }
    let millis = object.get("at_ms")?.as_f64().filter(|millis| (0.0..1e12).contains(millis))?;
    #[allow(clippy::cast_possible_truncation, reason = "at most 1e15")]
    let stamp = Stamp { at: (millis * 1000.0) as i64, fine: 1 };
    let (to, why) = (text("to")?, text("reason").unwrap_or_default());
    let from = text("from").map(|from| format!("{from} -> ")).unwrap_or_default();
    let change = match text("change")? {
        "accepted_epoch" => format!("accepted epoch {to}"),
        "current_epoch" => format!("current epoch {to}"),
        "sync" => format!("learner {}", to.replace(" by ", " is brought up by ")),
        what @ ("vote" | "state" | "phase" | "round" | "learner") => format!("{what} {from}{to}"),
        _ => return None,
    };
    let round = Round(number("round").unwrap_or_default());
    let own = number("server").map(ServerId);
    Some((stamp, Said { what: changed(&change, why, round)?, own }))
}

/// A change as `quorate_core::report::Change` writes it.
fn changed(change: &str, why: &str, round: Round) -> Option<What> {
    let members = braces(why);
    let why = why.chars().take(WHY_MAX).collect::<String>();
    let to = || change.split_once(" -> ").map(|(_, to)| to);
    let (subject, rest) = change.split_once(' ')?;
    Some(match subject {
        "vote" => What::Votes { vote: vote(to()?)?, round, says: says(&why), why },
        "state" => {
            let to = state(to()?)?;
            let leader = (to == ServerState::Following)
                .then(|| number_after(&why, "} for ").or_else(|| number_after(&why, "follows ")))
                .flatten()
                .or_else(|| number_after(&why, "leadership to "));
            // Those that already follow decided before, in another vote.
            let members = if why.starts_with("quorum") && !why.contains("already") {
                members
            } else {
                Vec::new()
            };
            What::State { to, leader, members, why }
        }
        "phase" => What::Phase { to: phase(to()?)?, members, why },
        "accepted" => What::Promised { epoch: epoch(rest)?, members, why },
        "current" if why.starts_with("leader") => What::TookOver { epoch: epoch(rest) },
        "learner" => learner(rest)?,
        _ => return None,
    })
}

/// As long as a reason may be: longer ones are damage.
const WHY_MAX: usize = 300;

fn learner(rest: &str) -> Option<What> {
    let (id, what) = rest.split_once(' ')?;
    let id = ServerId(id.parse().ok()?);
    let sync = |how| What::Sync { learner: id, how };
    Some(match what {
        "synchronised" => What::Learner { id, synced: true },
        "lost" => What::Learner { id, synced: false },
        "is brought up by DIFF" => sync(How::Diff),
        "is brought up by TRUNC" => sync(How::Trunc),
        "is brought up by SNAP" => sync(How::Snap),
        _ => return None,
    })
}

/// `2 (peer epoch 1, zxid 0x100000004)`.
fn vote(text: &str) -> Option<Vote> {
    let (leader, rest) = text.split_once(" (peer epoch ")?;
    let (peer_epoch, zxid) = rest.split_once(", zxid ")?;
    let zxid = zxid.strip_prefix("0x")?.strip_suffix(')')?;
    Some(Vote {
        leader: ServerId(leader.parse().ok()?),
        peer_epoch: Epoch(peer_epoch.parse().ok()?),
        zxid: Zxid(i64::from_str_radix(zxid, 16).ok()?),
    })
}

fn state(text: &str) -> Option<ServerState> {
    [ServerState::Looking, ServerState::Following, ServerState::Leading, ServerState::Observing]
        .into_iter()
        .find(|state| state.to_string() == text)
}

fn phase(text: &str) -> Option<Phase> {
    [Phase::Election, Phase::Discovery, Phase::Synchronization, Phase::Broadcast]
        .into_iter()
        .find(|phase| phase.to_string() == text)
}

fn epoch(text: &str) -> Option<Epoch> {
    text.split_once(' ')?.1.parse().ok().map(Epoch)
}

/// The first set of servers in a reason, `{1,2}`.
fn braces(why: &str) -> Vec<ServerId> {
    let inner =
        why.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(set, _)| set);
    inner.split(',').filter_map(|id| id.parse().ok().map(ServerId)).take(256).collect()
}

/// The peer at the end of `server id 3 > 2, says 3`.
fn says(why: &str) -> Option<ServerId> {
    why.rsplit_once(", says ")?.1.parse().ok().map(ServerId)
}

fn number_after(text: &str, words: &str) -> Option<ServerId> {
    let rest = text.split_once(words)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok().map(ServerId)
}

fn field(text: &str, key: &str) -> Option<ServerId> {
    number_after(text, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_say_the_same() {
        let text = "  INFO quorate_driver::drive::publish: vote 2 (peer epoch 0, zxid 0x0) -> 3 (peer epoch 0, zxid 0x0) event=\"election.vote_changed\" sid=2 round=1 epoch=0 reason=server id 3 > 2, says 1";
        let said = read(text).unwrap();
        let vote = Vote { leader: ServerId(3), peer_epoch: Epoch(0), zxid: Zxid(0) };
        let why = "server id 3 > 2, says 1".to_owned();
        let what = What::Votes { vote, round: Round(1), why, says: Some(ServerId(1)) };
        assert_eq!(said, Said { what, own: Some(ServerId(2)) });
        // Before events had names.
        assert_eq!(read(&text.replace(" event=\"election.vote_changed\"", "")), Some(said.clone()));
        let json = r#"{"ts":"2026-11-26T13:19:59.891634Z","level":"info","event":"election.vote_changed","sid":2,"round":1,"epoch":0,"reason":"server id 3 > 2, says 1","msg":"vote 2 (peer epoch 0, zxid 0x0) -> 3 (peer epoch 0, zxid 0x0)"}"#;
        assert_eq!(read_json(json).map(|(_, said)| said), Some(said.clone()));
        let served = r#"{"event":"change","at_ms":37.867,"server":2,"change":"vote","from":"2 (peer epoch 0, zxid 0x0)","to":"3 (peer epoch 0, zxid 0x0)","reason":"server id 3 > 2, says 1","round":1}"#;
        assert_eq!(read_json(served), Some((Stamp { at: 37_867, fine: 1 }, said)));
    }
}
