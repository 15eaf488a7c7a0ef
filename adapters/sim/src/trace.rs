//! What a run leaves behind: a hash of everything that happened, and one readable line per event.
//!
//! The hash is always made; two runs of one seed must agree in it. The lines are made only when asked
//! for, since a failing seed can simply be run again.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};

use quorate_core::durable::Durable;
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::time::Instant;
use quorate_core::txn::Txn;

/// How many lines are kept.
const LINES_MAX: usize = 20_000;

/// The hash and the lines.
#[derive(Debug)]
pub(crate) struct Trace {
    hasher: Mix,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    pub(crate) fn new(keep_lines: bool) -> Self {
        Self { hasher: Mix(0), lines: keep_lines.then(VecDeque::new) }
    }

    /// Takes something into the hash.
    pub(crate) fn mix(&mut self, what: &impl Hash) {
        what.hash(&mut self.hasher);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// Whether lines are kept, so that they need not be made otherwise.
    pub(crate) fn keeps_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, at: Instant, who: ServerId, what: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            let micros = at.since_origin().as_micros();
            lines.push_back(format!(
                "{:>8}.{:03} ms  server {who} {what}",
                micros / 1000,
                micros % 1000
            ));
        }
    }

    /// The last lines, one string.
    pub(crate) fn tail(&self, count: usize) -> String {
        let Some(lines) = &self.lines else { return String::new() };
        let skip = lines.len().saturating_sub(count);
        lines.iter().skip(skip).fold(String::new(), |all, line| all + line + "\n")
    }
}

/// A fast hasher that gives the same result on every machine; not for tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mix(u64);

impl Mix {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.word(u64::from(n));
    }

    fn write_u16(&mut self, n: u16) {
        self.word(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn write_i32(&mut self, n: i32) {
        self.word(i64::from(n) as u64);
    }

    fn write_i64(&mut self, n: i64) {
        self.word(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.word(n as u64);
    }
}

/// A message in few words.
struct Said<'a>(&'a Message);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Message::Notification(notification) => notification.fmt(f),
            Message::Packet(packet) => packet_line(packet, f),
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others are told by their names")]
fn packet_line(packet: &Packet, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(packet.name())?;
    match packet {
        Packet::FollowerInfo(info) | Packet::ObserverInfo(info) => {
            write!(f, " (accepted epoch {})", info.accepted_epoch)
        }
        Packet::LeaderInfo { epoch, .. } => write!(f, " (epoch {epoch})"),
        Packet::AckEpoch { last, current_epoch: None } => write!(f, " (no promise, last {last})"),
        Packet::AckEpoch { last, current_epoch: Some(epoch) } => {
            write!(f, " (current epoch {epoch}, last {last})")
        }
        Packet::Proposal(txn) | Packet::Inform(txn) => write!(f, " {}", txn.zxid),
        Packet::Proposals(txns) => write!(f, " {}", Zxids(txns)),
        Packet::Acks(run) | Packet::Commits(run) => write!(f, " {}..={}", run.first, run.last),
        Packet::Request(request) => write!(f, " {} (op {})", request.id, request.op),
        Packet::Commit(zxid)
        | Packet::Diff(zxid)
        | Packet::Trunc(zxid)
        | Packet::Snap(zxid)
        | Packet::Ack(zxid)
        | Packet::NewLeader { zxid, .. }
        | Packet::Ping { zxid, .. } => write!(f, " {zxid}"),
        _ => Ok(()),
    }
}

/// The first and the last.
struct Zxids<'a>(&'a [Txn]);

impl fmt::Display for Zxids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [txn] => txn.zxid.fmt(f),
            [first, .., last] => write!(f, "{}..={}", first.zxid, last.zxid),
        }
    }
}

/// What a server finds on its disk, in one line.
pub(crate) struct Opened<'a>(pub(crate) &'a Durable);

impl fmt::Display for Opened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Durable { accepted_epoch, current_epoch, last_zxid, floor, snapshot, window } = self.0;
        write!(f, "accepted {accepted_epoch}, current {current_epoch}, last {last_zxid}, ")?;
        write!(f, "floor {floor}, snapshot {snapshot}, window of {}", window.len())
    }
}

/// An event in one line.
pub(crate) struct Happened<'a>(pub(crate) &'a Event);

impl fmt::Display for Happened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::Tick => f.write_str("tick"),
            Event::LinkUp(up) => {
                let how = if up.dialled { "dialled" } else { "accepted" };
                write!(f, "{} up ({:?}, {how}", up.link, up.plane)?;
                match up.peer {
                    Some(peer) => write!(f, ", server {peer})"),
                    None => f.write_str(")"),
                }
            }
            Event::LinkDown { link, cause } => write!(f, "{link} down ({cause:?})"),
            Event::DialFailed { plane, peer } => {
                write!(f, "dial failed ({plane:?}, server {peer})")
            }
            Event::Received { link, message } => write!(f, "{link} {}", Said(message)),
            Event::Persisted(ticket) => write!(f, "{ticket} durable"),
            Event::Propose(request) => write!(f, "propose {}", request.id),
            Event::Prepared { epoch, drafts } => {
                write!(f, "prepared {} in epoch {epoch}", drafts.len())
            }
            Event::Oracle(yes) => write!(f, "oracle {yes}"),
            Event::StepDown => f.write_str("step down"),
            Event::HandOver(None) => f.write_str("hand over"),
            Event::HandOver(Some(to)) => write!(f, "hand over to {to}"),
            Event::Released => f.write_str("released"),
            Event::Shutdown => f.write_str("shutdown"),
            Event::Drained(_)
            | Event::Progress(_)
            | Event::Located { .. }
            | Event::Streamed { .. }
            | Event::Restored(_)
            | Event::SnapshotTaken(_)
            | Event::Read(_) => write!(f, "{:?}", self.0),
        }
    }
}

/// An output in one line.
pub(crate) struct Done<'a>(pub(crate) &'a Output);

impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Output::Dial { plane, peer, .. } => write!(f, "dial server {peer} ({plane:?})"),
            Output::Hangup { link, reason } => write!(f, "{link} hang up: {reason}"),
            Output::Send { link, message } => write!(f, "{link} {}", Said(message)),
            Output::Persist { ticket, write: Write::Append(txns) } => {
                write!(f, "{ticket} append {}", Zxids(txns))
            }
            Output::Persist { ticket, write: Write::Beside(txn) } => {
                write!(f, "{ticket} append {} beside", txn.zxid)
            }
            Output::Persist { ticket, write } => write!(f, "{ticket} {write:?}"),
            Output::Prepare { epoch, request, .. } => {
                write!(f, "prepare {} in epoch {epoch}", request.id)
            }
            Output::Pace(_)
            | Output::Locate { .. }
            | Output::StreamLog { .. }
            | Output::DeliverThrough(_)
            | Output::TakeSnapshot(_)
            | Output::SendSnapshot { .. }
            | Output::ReceiveSnapshot { .. }
            | Output::Abandon
            | Output::Answer(_)
            | Output::Accepted(_)
            | Output::Refused { .. }
            | Output::Release
            | Output::Keep
            | Output::HandedOver(_)
            | Output::ReadRefused { .. } => write!(f, "{:?}", self.0),
            Output::Report(report) => report.fmt(f),
            Output::Halt(fault) => write!(f, "halt: {fault}"),
        }
    }
}
