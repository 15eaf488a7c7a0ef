//! Commands on a stage: notifications, messages and packets of scripted servers.

use bytes::Bytes;
use quorate_core::generation_message::{Attempt, Body, Claim, Generation, GenerationMessage};
use quorate_core::id::ServerId;
use quorate_core::message::{Message, Packet};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::scenario::Problem;
use crate::scenario::command::{self, Command, Line};
use crate::scenario::words::{Words, server};
use crate::stage::{learner_info, says};

const STATES: [(&str, ServerState); 4] = [
    ("LOOKING", ServerState::Looking),
    ("FOLLOWING", ServerState::Following),
    ("LEADING", ServerState::Leading),
    ("OBSERVING", ServerState::Observing),
];

/// What is done on a stage, if the next word is one of these commands.
pub(super) fn command(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
        "snapshot" => Command::Snapshot(words.zxid()?),
        "sync" => Command::Sync,
        _ => return Ok(None),
    }))
}

/// `3 connects`, `3 hangs up`, `1 hears 2: …`.
pub(super) fn said(id: i64, words: &mut Words<'_>) -> Result<Command, Problem> {
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
    if let Some(message) = generation_message_of(peer, words)? {
        return Ok(message);
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
        _ => return Err(start.wrong("a state or the name of a packet or message")),
    };
    Ok(Line::Ready(Message::Packet(packet)))
}

/// What is said in elections by generation, if this is.
fn generation_message_of(peer: i64, words: &mut Words<'_>) -> Result<Option<Line>, Problem> {
    let message = |generation, body, claim| {
        let from = command::id(peer);
        let config = Bytes::new();
        let message =
            GenerationMessage { from, generation, claim, body, config, knows_probes: false };
        Some(Line::Ready(Message::Generation(message)))
    };
    let unknown = Claim { current_epoch: Epoch::ZERO, last: Zxid::ZERO };
    let kind = [("vote", false), ("pre-vote", true)];
    let answers = [("REFUSES", false), ("GRANTS", true)];
    if let Some((name, granted)) = answers.into_iter().find(|(name, _)| words.peek() == Some(name))
    {
        words.word(name)?;
        let pre = words.one_of(&kind)?;
        let asked = words.generation()?;
        // A pre-vote that is asked for puts no server into its generation.
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
        message(wanted, Body::VoteRequest(Attempt { generation: wanted, number: 1, pre }), claim)
    } else if words.has("LEADS") {
        let leader = command::id(peer);
        message(words.generation()?, Body::Heartbeat { leader, beat: 1 }, unknown)
    } else if words.has("FOLLOWS") {
        let leader = if words.has("nobody") { ServerId::NONE } else { command::id(words.id()?) };
        words.word("in")?;
        message(words.generation()?, Body::Heartbeat { leader, beat: 0 }, unknown)
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
