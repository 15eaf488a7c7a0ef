//! Commands that act on servers and on the network between them; requests of clients and operators.

use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::message::Introduction;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::wire::{decode_introduction, encode_introduction};

use super::{PLANES, SURVIVALS};
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::scenario::Problem;
use crate::scenario::command::{self, Command, Point, Trap};
use crate::scenario::words::Words;

/// What happens to servers, if the next word is one of these commands.
pub(super) fn servers(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
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
        _ => return Ok(None),
    }))
}

/// What happens to the network.
pub(super) fn network(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
        "cut" => {
            let a = words.id()?;
            if words.peek().is_none() {
                return Ok(Some(Command::CutOff(a)));
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
                return Ok(Some(Command::BreakOff(a)));
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
            Command::NonMembers { crowd, to, plane, pieces }
        }
        "black-hole" => Command::BlackHole(words.id()?, !words.has("off")),
        "advertise" => Command::Advertise(words.id()?, words.take("host:port", address)?),
        _ => return Ok(None),
    }))
}

/// What clients and operators ask for.
pub(super) fn clients(words: &mut Words<'_>) -> Result<Option<Command>, Problem> {
    Ok(Some(match words.next().unwrap_or_default() {
        "write" if words.peek().is_none() => Command::WriteHere,
        "write" => Command::Write(words.id()?, words.take("one letter", letter)?),
        "read" => Command::Read(words.id()?),
        "hand" => {
            words.word("over")?;
            let from = words.id()?;
            let to = if words.has("to") { Some(words.id()?) } else { None };
            Command::Transfer(from, to)
        }
        "reconfigure" => Command::Reconfigure(words.id()?, reconfiguration(words)?),
        "step" => {
            words.word("down")?;
            Command::StepDown(words.id()?)
        }
        _ => return Ok(None),
    }))
}

fn reconfiguration(words: &mut Words<'_>) -> Result<Reconfiguration, Problem> {
    let (mut joining, mut leaving) = (Vec::new(), Vec::new());
    while joining.is_empty() && leaving.is_empty() || words.peek().is_some() {
        match words.one_of(&[("join", 0), ("observe", 1), ("leave", 2)])? {
            2 => leaving.extend(words.ids()?.into_iter().map(command::id)),
            role => {
                let ids = words.ids()?.into_iter().map(command::id);
                joining.extend(ids.map(|id| Ensemble::line_of(id, role == 0)));
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
