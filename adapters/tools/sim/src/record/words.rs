//! Numbers, messages and writes in few words.

use std::fmt;

use quorate_core::message::{Message, Notification, Packet, Request, Run};
use quorate_core::output::Write;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::Zxid;

/// A time in milliseconds, to a tenth of one.
pub(crate) fn millis(at: Instant) -> String {
    let tenths = at.since_origin().as_micros() / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A zxid as epoch and counter: `1.5` for 0x100000005.
#[derive(Clone, Copy, Debug)]
pub struct Short(
    /// The zxid.
    pub Zxid,
);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Zxid::NONE || self.0 == Zxid::UNKNOWN {
            return f.write_str("none");
        }
        write!(f, "{}.{}", self.0.epoch(), self.0.counter().0)
    }
}

/// A text of the core with its zxids as epoch and counter.
pub(super) fn shortened(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        match i64::from_str_radix(&part[..end], 16) {
            Ok(zxid) => short += &format!("{}{}", Short(Zxid(zxid)), &part[end..]),
            Err(_) => short += &format!("0x{part}"),
        }
    }
    short
}

/// A vote in few words: for whom, and how new that server's history is.
pub(super) struct For<'a>(pub(super) &'a Vote);

impl fmt::Display for For<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Vote::ABSTENTION {
            return f.write_str("nobody");
        }
        let Vote { peer_epoch, zxid, leader } = self.0;
        write!(f, "{leader} (epoch {peer_epoch}, zxid {})", Short(*zxid))
    }
}

/// A message in few words.
pub(super) struct Said<'a>(pub(super) &'a Message);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Message::Notification(notification) => notified(notification, f),
            Message::Packet(packet) => packed(packet, f),
            Message::Generation(message) => f.write_str(&shortened(&message.to_string())),
            Message::Probe(probe) if probe.hears_you => f.write_str("is alive, and hears you"),
            Message::Probe(_) => f.write_str("is alive"),
        }
    }
}

fn notified(notification: &Notification, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let standing = &notification.standing;
    let (state, round) = (standing.state, standing.round);
    match state {
        ServerState::Looking => {
            write!(f, "{state}, votes {}, round {round}", For(&standing.vote))
        }
        ServerState::Following | ServerState::Observing => {
            write!(f, "{state} {}, round {round}", For(&standing.vote))
        }
        ServerState::Leading => write!(f, "{state} as {}, round {round}", For(&standing.vote)),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others are told by their names")]
fn packed(packet: &Packet, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(packet.name())?;
    match packet {
        Packet::FollowerInfo(info) | Packet::ObserverInfo(info) => {
            write!(f, " accepted {}", info.accepted_epoch)
        }
        Packet::LeaderInfo { epoch, .. } => write!(f, " epoch {epoch}"),
        Packet::AckEpoch { last, current_epoch: None } => {
            write!(f, " no promise, last {}", Short(*last))
        }
        Packet::AckEpoch { last, current_epoch: Some(epoch) } => {
            write!(f, " current {epoch}, last {}", Short(*last))
        }
        Packet::Proposal(txn) | Packet::Inform(txn) => write!(f, " {}", Short(txn.zxid)),
        Packet::Proposals(txns) => write!(f, " {}", Zxids(txns)),
        Packet::MayLead(yes) => f.write_str(if *yes { " yes" } else { " no" }),
        Packet::Acks(Run { first, last }) | Packet::Commits(Run { first, last }) => {
            write!(f, " {} to {}", Short(*first), Short(*last))
        }
        Packet::Request(request) if request.op == Request::SYNC => f.write_str(" to sync"),
        Packet::Commit(zxid)
        | Packet::Diff(zxid)
        | Packet::Trunc(zxid)
        | Packet::Snap { label: zxid, .. }
        | Packet::Ack(zxid)
        | Packet::CommitAndActivate { zxid, .. }
        | Packet::NewLeader { zxid, .. }
        | Packet::Ping { zxid, .. } => write!(f, " {}", Short(*zxid)),
        Packet::Transfer { vote, .. } => write!(f, " to {}", vote.leader),
        _ => Ok(()),
    }
}

/// The first and the last.
pub(super) struct Zxids<'a>(pub(super) &'a [Txn]);

impl fmt::Display for Zxids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [txn] => Short(txn.zxid).fmt(f),
            [first, .., last] => write!(f, "{} to {}", Short(first.zxid), Short(last.zxid)),
        }
    }
}

/// A write in few words.
pub(super) struct Written<'a>(pub(super) &'a Write);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Write::AcceptedEpoch(epoch) => write!(f, "accepted epoch {epoch}"),
            Write::CurrentEpoch(epoch) => write!(f, "current epoch {epoch}"),
            Write::GrantedVote { generation, vote } => {
                write!(f, "vote for {vote} in generation {generation}")
            }
            Write::Lease(longest) => write!(f, "longest lease {longest:?}"),
            Write::Append(txns) => Zxids(txns).fmt(f),
            Write::Truncate(zxid) => write!(f, "cut after {}", Short(*zxid)),
            Write::AppendStaged(txn) => write!(f, "{} beside", Short(txn.zxid)),
            Write::Install { label, .. } => write!(f, "snapshot {} installed", Short(*label)),
            Write::Membership(_) => f.write_str("membership"),
            Write::NextMembership(Some(_)) => f.write_str("next membership"),
            Write::NextMembership(None) => f.write_str("no next membership"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zxids_in_a_text_become_epoch_and_counter() {
        assert_eq!(shortened("zxid 0x100000005 > 0x0, says 3"), "zxid 1.5 > 0.0, says 3");
        assert_eq!(shortened("none of these 0xzz"), "none of these 0xzz");
    }
}
